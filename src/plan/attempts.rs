//! In which ways td_open tries to count, one after the other: on one kind of core.
#![forbid(unsafe_code)]

use crate::error::{Error, TD_ENOTCOUNTING};

use crate::options::{Options, SourceKind, Target};

/// What a handle may count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// The P-cores' general-purpose counters, if nobody else needs them now.
    FreeCounters,
    /// SLOTS and PERF_METRICS.
    Registers,
    /// General-purpose counters, down to this level; 0: the deepest that fits.
    Counters(u32),
    /// Level 1 by general-purpose counters that leave SLOTS to others.
    BesideRegisters,
}

/// After which failure of an attempt the next is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivesWay {
    /// None: it is the last.
    Never,
    /// Others have the counters.
    IfTaken,
    Always,
}

/// One way to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub means: Means,
    pub gives_way: GivesWay,
    /// Its group has to be on the counters all the while, or it fails.
    pub always: bool,
    /// What the handle's note says if a later attempt succeeds; "": what it says of an earlier one.
    pub instead: &'static str,
}

impl Attempt {
    const fn new(means: Means, gives_way: GivesWay, instead: &'static str) -> Attempt {
        Attempt { means, gives_way, always: false, instead }
    }

    const fn last(means: Means) -> Attempt {
        Attempt::new(means, GivesWay::Never, "")
    }

    /// Whether the next is made after this failure.
    pub fn gives_way_after(&self, failure: &Error) -> bool {
        match self.gives_way {
            GivesWay::Never => false,
            GivesWay::IfTaken => failure.code() == TD_ENOTCOUNTING,
            GivesWay::Always => true,
        }
    }
}

/// What the core has for the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreCounters {
    /// SLOTS and PERF_METRICS, and general-purpose counters perhaps.
    Registers,
    /// General-purpose counters, down to this level, and it is believed that they count before they do.
    General { deepest: u32, proven: bool },
}

/// The attempts, the first first. An attempt `BesideRegisters` fails as the one before it did.
pub(crate) fn attempts(options: &Options, counters: CoreCounters) -> Vec<Attempt> {
    use GivesWay::{Always, IfTaken};
    use Means::{BesideRegisters, Counters, FreeCounters, Registers};
    const LEVEL_1_ALONE: &str = "level 1 alone";
    let own = options.target == Target::This;
    // (of what counts for others it cannot be told whether it is free)
    let may_choose = options.source == SourceKind::Automatic && own;
    match counters {
        CoreCounters::Registers if may_choose && options.level <= 1 => vec![
            Attempt::new(FreeCounters, Always, "registers are counted"),
            Attempt::new(Registers, IfTaken, LEVEL_1_ALONE),
            Attempt::last(BesideRegisters),
        ],
        CoreCounters::Registers if may_choose => {
            vec![Attempt::new(FreeCounters, Always, "registers are counted"), Attempt::last(Registers)]
        }
        CoreCounters::Registers => vec![Attempt::last(Registers)],
        CoreCounters::General { deepest, proven } => {
            if options.level != 0 || options.of_part() || deepest == 1 {
                return vec![Attempt::last(Counters(options.level))];
            }
            let all = Attempt::new(Counters(0), Always, LEVEL_1_ALONE);
            let all = Attempt { always: options.on_exec || may_choose && proven, ..all };
            match own && !options.of_e_cores() {
                true => vec![all, Attempt::new(Counters(1), IfTaken, ""), Attempt::last(BesideRegisters)],
                false => vec![all, Attempt::last(Counters(1))],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metrics::TD_NODE_NONE;
    use crate::options::CoreKind;

    /// Whatever is wanted, of whatever core: each attempt but the last gives way, none is made twice, a note says what is less, and level 1 alone
    /// is tried where nobody asked for more.
    #[test]
    fn attempts_end_and_none_is_made_twice() {
        let targets = [Target::This, Target::Task(7), Target::TaskOn(7, 1), Target::Cpu(1)];
        let founds = [CoreCounters::Registers].into_iter().chain(
            [1, 2, 3]
                .into_iter()
                .flat_map(|deepest| [false, true].map(|proven| CoreCounters::General { deepest, proven })),
        );
        let mut made = 0;
        for (found, target) in founds.flat_map(|found| targets.map(|target| (found, target))) {
            for source in [SourceKind::Automatic, SourceKind::Registers, SourceKind::Counters] {
                for (level, subtree, cores, on_exec) in [
                    (0, TD_NODE_NONE, CoreKind::Automatic, false),
                    (1, TD_NODE_NONE, CoreKind::Automatic, false),
                    (2, TD_NODE_NONE, CoreKind::Performance, false),
                    (0, TD_NODE_NONE, CoreKind::Efficiency, false),
                    (0, TD_NODE_NONE, CoreKind::Automatic, true),
                    (0, 3, CoreKind::Automatic, false),
                ] {
                    let options =
                        Options { target, source, level, subtree, cores, on_exec, ..Options::default() };
                    if found == CoreCounters::Registers && (subtree != TD_NODE_NONE || options.of_e_cores()) {
                        continue; // of those there are none
                    }
                    let all = attempts(&options, found);
                    let (last, others) = all.split_last().expect("there is one");
                    assert_eq!(*last, Attempt::last(last.means), "{options:?}");
                    assert!(others.iter().all(|one| one.gives_way != GivesWay::Never), "{options:?}");
                    let means: Vec<_> = all.iter().map(|attempt| attempt.means).collect();
                    assert!((1..means.len()).all(|k| !means[..k].contains(&means[k])), "{means:?}");
                    let is_less =
                        |means: &Means| matches!(means, Means::Counters(1) | Means::BesideRegisters);
                    if let Some(first) = means.iter().position(is_less).filter(|first| *first > 0) {
                        assert!(level <= 1 && subtree == TD_NODE_NONE, "{options:?}");
                        assert_eq!(all[first - 1].instead, "level 1 alone", "{options:?}");
                    }
                    let by_choice = means.contains(&Means::FreeCounters);
                    assert!(!by_choice || source == SourceKind::Automatic && target == Target::This);
                    made += means.len();
                }
            }
        }
        assert!(made > 500, "{made}");
    }

    #[test]
    fn registers_come_after_free_counters_and_level_1_after_what_others_hold() {
        use GivesWay::{Always, IfTaken, Never};
        use Means::{BesideRegisters, Counters, FreeCounters, Registers};
        let counters = CoreCounters::General { deepest: 2, proven: true };
        let of = |target, level, found| {
            let options = Options { target, level, ..Options::default() };
            let all = attempts(&options, found);
            all.iter().map(|one| (one.means, one.gives_way, one.always)).collect::<Vec<_>>()
        };
        let first = (FreeCounters, Always, false);
        let level_1 = (BesideRegisters, Never, false);
        assert_eq!(
            of(Target::This, 0, CoreCounters::Registers),
            [first, (Registers, IfTaken, false), level_1]
        );
        assert_eq!(of(Target::This, 2, CoreCounters::Registers), [first, (Registers, Never, false)]);
        assert_eq!(of(Target::Cpu(1), 0, CoreCounters::Registers), [(Registers, Never, false)]);
        let all = [(Counters(0), Always, true), (Counters(1), IfTaken, false), level_1];
        assert_eq!(of(Target::This, 0, counters), all);
        let of_another = [(Counters(0), Always, false), (Counters(1), Never, false)];
        assert_eq!(of(Target::Task(7), 0, counters), of_another);
        assert_eq!(of(Target::This, 2, counters), [(Counters(2), Never, false)]);
    }

    #[test]
    fn an_attempt_gives_way_after_its_failures_alone() {
        let after = |gives_way, code| {
            Attempt::new(Means::Registers, gives_way, "").gives_way_after(&Error::new(code, "so it is"))
        };
        assert!(after(GivesWay::Always, -libc::EACCES) && !after(GivesWay::Never, TD_ENOTCOUNTING));
        assert!(after(GivesWay::IfTaken, TD_ENOTCOUNTING) && !after(GivesWay::IfTaken, -libc::EACCES));
    }
}
