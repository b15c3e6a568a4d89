//! CPU time of what a whole is of, in user mode and in the kernel, and how much of it was counted.
#![forbid(unsafe_code)]

use crate::model::{Figures, Run};
use crate::words::{percent, time};
use serde::Serialize;

/// CPU time by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds in user mode.
    pub user_ns: u64,
    /// Nanoseconds in the kernel.
    pub system_ns: u64,
}

impl CpuTime {
    /// Both.
    pub fn total_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// So many nanoseconds, divided as these are; None: there are none.
    pub fn scaled_to(self, total_ns: u64) -> Option<CpuTime> {
        let user = u128::from(self.user_ns) * u128::from(total_ns);
        let user_ns = user.checked_div(self.total_ns().into())? as u64;
        Some(CpuTime { user_ns, system_ns: total_ns - user_ns })
    }

    /// Part of it in the kernel.
    pub fn system_share(self) -> f64 {
        self.system_ns as f64 / self.total_ns().max(1) as f64
    }

    /// Whether the kernel's share is above `SHARE` for certain. The kernel divides a process's time by what ran at ticks of its clock: if
    /// the true share were `SHARE`, at least this many of the ticks would be in the kernel with a probability of at most exp(-`evidence`)
    /// (Chernoff's bound).
    fn is_much_kernel(self) -> bool {
        let share = self.system_share();
        let part = |of: f64, expected: f64| if of > 0.0 { of * (of / expected).ln() } else { 0.0 };
        let ticks = self.total_ns() as f64 / LONGEST_TICK_NS;
        let evidence = ticks * (part(share, SHARE) + part(1.0 - share, 1.0 - SHARE));
        share > SHARE && evidence > SURE
    }
}

/// The kernel's share from which on a line says that it was not counted.
const SHARE: f64 = 0.1;
/// Below this share of user mode the verdict begins with the kernel.
const LITTLE_USER: f64 = 0.25;
/// No kernel's clock ticks less often (CONFIG_HZ is 100 to 1000).
const LONGEST_TICK_NS: f64 = 1e7;
/// Four standard errors, as in the bound of a random sample: a normal variable is so far above its mean with a probability of exp(-10.36).
const SURE: f64 = 10.36;

/// CPU time of a run, and what of it the counters count.
#[derive(Clone, Debug, Default)]
pub struct CpuUse {
    /// All nanoseconds; None: not known.
    pub total_ns: Option<u64>,
    /// The same by mode; None: how they divide is not known.
    pub time: Option<CpuTime>,
    /// Whether the kernel's slots are counted, too.
    pub counts_kernel: bool,
    /// Why the kernel may not be counted, and what permits it; empty: it may be.
    pub refused: String,
}

impl CpuUse {
    /// The time, if much of it is the kernel's and was not counted.
    fn uncounted(&self) -> Option<CpuTime> {
        self.time.filter(|time| !self.counts_kernel && time.is_much_kernel())
    }

    /// That much of it is the kernel's and was not counted, and what to do; None: it is not much, or was counted.
    pub fn remark(&self) -> Option<String> {
        let time_of = self.uncounted()?;
        Some(format!(
            "{} of its {} of CPU time ({}) are the kernel's, which was not counted: {}",
            time(time_of.system_ns as f64),
            time(time_of.total_ns() as f64),
            percent(time_of.system_share()),
            self.how_to_count()
        ))
    }

    fn how_to_count(&self) -> String {
        match &self.refused[..] {
            "" => "`topdown stat --kernel` counts it, too".into(),
            why => format!("`topdown stat --kernel` counts it, too, once that is permitted: {why}"),
        }
    }

    /// If little of it is user mode's: what comes before a verdict on that, and what to do first.
    pub(crate) fn leads(&self) -> Option<KernelVerdict> {
        let time = self.uncounted().filter(|time| time.system_share() > 1.0 - LITTLE_USER)?;
        let share = percent(time.system_share());
        Some(KernelVerdict {
            verdict: format!("kernel {share} of CPU time, not counted"),
            next: format!("kernel {share} of CPU time: {}", self.how_to_count()),
        })
    }
}

/// What is said first of a program that is mostly the kernel's.
pub(crate) struct KernelVerdict {
    verdict: String,
    pub(crate) next: String,
}

impl KernelVerdict {
    /// The verdict on what was counted, after that on what was not.
    pub(crate) fn before(&self, bottleneck: &str) -> String {
        format!("{}; of the rest {bottleneck}", self.verdict)
    }
}

/// How much of a whole's CPU time was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CountedTime {
    /// Nanoseconds in which counters counted it; None: not known.
    pub counted_time_ns: Option<u64>,
    /// All of its nanoseconds; None: not known.
    pub cpu_time_ns: Option<u64>,
    /// Those in user mode.
    pub user_time_ns: Option<u64>,
    /// Those in the kernel.
    pub system_time_ns: Option<u64>,
}

impl CountedTime {
    /// Of a run with these figures. (Those of CPUs have their time, idle or not, so that its part that was counted is that of the time in
    /// use.)
    pub(crate) fn new(run: &Run, figures: &Figures) -> CountedTime {
        let CpuUse { total_ns: cpu_time_ns, time, counts_kernel, .. } = run.cpu;
        let countable_ns = if counts_kernel { cpu_time_ns } else { time.map(|time| time.user_ns) };
        let seen = (figures.time_ns as f64 / cpu_time_ns.unwrap_or(0).max(1) as f64).min(1.0);
        let part = figures.running.unwrap_or(0.0).min(1.0) * seen;
        CountedTime {
            counted_time_ns: countable_ns.map(|ns| (ns as f64 * part) as u64),
            cpu_time_ns,
            user_time_ns: time.map(|time| time.user_ns),
            system_time_ns: time.map(|time| time.system_ns),
        }
    }

    /// "CPU time 3.40 s (user 12.3 ms, system 3.39 s), counted 12.3 ms"; None: it is not known. What is less than a tick may be chance.
    pub fn text(&self) -> Option<String> {
        let counted = self.counted_time_ns.map(|counted| format!(", counted {}", by_ticks(counted)));
        self.total_text().map(|total| total + &counted.unwrap_or_default())
    }

    /// The same of what nothing was counted of.
    pub fn total_text(&self) -> Option<String> {
        let modes = self.user_time_ns.zip(self.system_time_ns);
        let modes =
            modes.map(|(user, system)| format!(" (user {}, system {})", by_ticks(user), by_ticks(system)));
        let total = time(self.cpu_time_ns? as f64);
        Some(format!("CPU time {total}{}", modes.unwrap_or_default()))
    }
}

fn by_ticks(ns: u64) -> String {
    match ns as f64 {
        ns if ns < LONGEST_TICK_NS => format!("under {}", time(LONGEST_TICK_NS)),
        ns => time(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn used(user_ms: u64, system_ms: u64) -> CpuUse {
        let time = CpuTime { user_ns: user_ms * MS, system_ns: system_ms * MS };
        CpuUse { total_ns: Some(time.total_ns()), time: Some(time), ..CpuUse::default() }
    }

    #[test]
    fn a_line_says_that_the_kernel_was_not_counted_and_how_to_count_it() {
        assert_eq!(
            used(14, 3400).remark().unwrap(),
            "3.40 s of its 3.41 s of CPU time (99.6 %) are the kernel's, which was not counted: `topdown stat --kernel` counts it, too"
        );
        let refused = CpuUse { refused: "kernel.perf_event_paranoid is 2".into(), ..used(14, 3400) };
        let line = refused.remark().unwrap();
        assert!(line.ends_with("once that is permitted: kernel.perf_event_paranoid is 2"), "{line}");
        assert_eq!(CpuUse { counts_kernel: true, ..used(14, 3400) }.remark(), None);
        assert_eq!(CpuUse::default().remark(), None);
    }

    #[test]
    fn few_ticks_say_nothing() {
        // by the binomial distribution, in ticks of 10 ms: the fewest ticks, all in the kernel, that chance would not give at a tenth
        let unlikely = (-SURE).exp();
        let ticks = (1..).find(|ticks| SHARE.powi(*ticks) < unlikely).unwrap() as u64;
        assert!(used(0, 10 * ticks).remark().is_some() && used(0, 10 * (ticks - 1)).remark().is_none());
        // a share near a tenth takes a longer program than one far above
        for (user, system) in [(850, 150), (5000, 750), (300, 100)] {
            assert_eq!(used(user, system).remark(), None, "{user} and {system} ms");
        }
        for (user, system) in [(85_000, 15_000), (3000, 1000), (150, 150)] {
            assert!(used(user, system).remark().is_some(), "{user} and {system} ms");
        }
        // and a tenth or less is no matter however long the program is
        assert_eq!(used(9_000_000, 1_000_000).remark(), None);
        assert_eq!(used(0, 0).remark(), None);
    }

    #[test]
    fn the_line_is_as_sure_as_the_binomial_distribution_has_it() {
        for ticks in 1..=400_u32 {
            // the probability of so many ticks in the kernel, and of more
            let mut chance: Vec<f64> = (0..=ticks)
                .scan(1.0_f64, |ways, k| {
                    let this = *ways * SHARE.powi(k as i32) * (1.0 - SHARE).powi((ticks - k) as i32);
                    *ways = *ways * f64::from(ticks - k) / f64::from(k + 1);
                    Some(this)
                })
                .collect();
            (0..ticks as usize).rev().for_each(|k| chance[k] += chance[k + 1]);
            let told = |k: u64| used(10 * (u64::from(ticks) - k), 10 * k).remark().is_some();
            let first = (0..=u64::from(ticks)).find(|k| told(*k));
            assert!(first.is_none_or(|k| chance[k as usize] <= (-SURE).exp()), "{ticks} ticks, {first:?}");
            assert!(first.is_none_or(|k| (k..=u64::from(ticks)).all(told)), "{ticks} ticks, {first:?}");
        }
    }

    #[test]
    fn the_verdict_begins_with_the_kernel_where_little_is_user_mode() {
        assert!(used(260, 740).leads().is_none() && used(260, 740).remark().is_some());
        let leads = used(240, 760).leads().unwrap();
        assert_eq!(
            leads.before("memory bound"),
            "kernel 76.0 % of CPU time, not counted; of the rest memory bound"
        );
        assert_eq!(leads.next, "kernel 76.0 % of CPU time: `topdown stat --kernel` counts it, too");
        assert!(
            used(0, 10).leads().is_none()
                && CpuUse { counts_kernel: true, ..used(0, 9000) }.leads().is_none()
        );
    }

    #[test]
    fn a_text_has_what_is_known() {
        let time = |user, system, counted, all| CountedTime {
            counted_time_ns: counted,
            cpu_time_ns: all,
            user_time_ns: user,
            system_time_ns: system,
        };
        let text = |time: CountedTime| time.text().unwrap();
        let (user, system) = (Some(20 * MS), Some(3380 * MS));
        assert_eq!(
            text(time(user, system, user, Some(3400 * MS))),
            "CPU time 3.40 s (user 20.0 ms, system 3.38 s), counted 20.0 ms"
        );
        assert_eq!(
            text(time(Some(0), system, Some(0), system)),
            "CPU time 3.38 s (user under 10.0 ms, system 3.38 s), counted under 10.0 ms"
        );
        assert_eq!(text(time(None, None, None, Some(MS))), "CPU time 1.00 ms");
        assert_eq!(CountedTime::default().text(), None);
    }

    #[test]
    fn parts_add_up_to_what_they_are_scaled_to() {
        let time = CpuTime { user_ns: 1, system_ns: 2 };
        assert_eq!(time.scaled_to(100), Some(CpuTime { user_ns: 33, system_ns: 67 }));
        assert_eq!(time.scaled_to(0), Some(CpuTime::default()));
        assert_eq!(CpuTime::default().scaled_to(100), None);
        let longest = CpuTime { user_ns: u64::MAX / 2, system_ns: 1 };
        assert_eq!(longest.scaled_to(u64::MAX).unwrap().total_ns(), u64::MAX);
    }
}
