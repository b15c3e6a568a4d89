//! CPU time, by mode, of processes, threads and CPUs that are there already: as the kernel tells it in /proc, in ticks of 10 ms.

use std::fs;
use std::time::Duration;
use topdown_report::CpuTime;

/// How often it is seen how much was used: what a process did after that is not known, once it has ended.
pub const LOOK: Duration = Duration::from_secs(1);

/// CPU time of all of these since the first look.
pub struct CpuTimeOf {
    sources: Vec<Source>,
    looked: Duration,
}

/// A text of the kernel's, and what it told first and last.
struct Source {
    path: String,
    parse: Parse,
    first: Option<CpuTime>,
    last: Option<CpuTime>,
}

enum Parse {
    /// A process, and its children that it waited for.
    Process,
    Thread,
    /// A CPU's name, or that of all, and its numbers.
    Cpu(String),
}

impl CpuTimeOf {
    /// Of processes, and the children that they wait for.
    pub fn processes(ids: impl Iterator<Item = i32>) -> CpuTimeOf {
        CpuTimeOf::of(ids.map(|id| (format!("/proc/{id}/stat"), Parse::Process)))
    }

    /// Of threads.
    pub fn threads(ids: impl Iterator<Item = i32>) -> CpuTimeOf {
        CpuTimeOf::of(ids.map(|id| (format!("/proc/{id}/task/{id}/stat"), Parse::Thread)))
    }

    /// Of CPUs, by their names in /proc/stat.
    pub fn cpus(names: impl Iterator<Item = String>) -> CpuTimeOf {
        CpuTimeOf::of(names.map(|name| ("/proc/stat".into(), Parse::Cpu(name))))
    }

    fn of(sources: impl Iterator<Item = (String, Parse)>) -> CpuTimeOf {
        let source = |(path, parse)| Source { path, parse, first: None, last: None };
        let mut all = CpuTimeOf { sources: sources.map(source).collect(), looked: Duration::ZERO };
        all.look();
        all
    }

    /// Sees what was used, so long after the start, if that was not seen just before.
    pub fn look_at(&mut self, at: Duration) {
        if at >= self.looked + LOOK {
            self.looked = at;
            self.look();
        }
    }

    /// Sees what was used by those that are still there.
    pub fn look(&mut self) {
        for source in &mut self.sources {
            let Some(now) = fs::read_to_string(&source.path).ok().and_then(|text| source.parse.of(&text))
            else {
                continue;
            };
            source.first.get_or_insert(now);
            source.last = Some(now);
        }
    }

    /// What was used until the last look; None: it is less than a tick, or not known.
    pub fn used(&self) -> Option<CpuTime> {
        let mut used = CpuTime::default();
        for (first, last) in self.sources.iter().filter_map(|source| source.first.zip(source.last)) {
            used.user_ns += last.user_ns.saturating_sub(first.user_ns);
            used.system_ns += last.system_ns.saturating_sub(first.system_ns);
        }
        (used.total_ns() > 0).then_some(used)
    }
}

impl Parse {
    /// Which fields of the text (proc(5)), from the one behind the name on, are user mode and which the kernel. (Time of guests is in that of
    /// user mode; that of the idle task and of the hypervisor is nobody's.)
    fn fields(&self) -> (&'static [usize], &'static [usize]) {
        match self {
            Parse::Process => (&[11, 13], &[12, 14]),
            Parse::Thread => (&[11], &[12]),
            Parse::Cpu(_) => (&[0, 1], &[2, 5, 6]),
        }
    }

    fn of(&self, text: &str) -> Option<CpuTime> {
        let numbers = match self {
            // (a name may have blanks and parentheses)
            Parse::Process | Parse::Thread => text.rsplit_once(')')?.1,
            Parse::Cpu(name) => text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?,
        };
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let ticks = |fields: &[usize]| {
            fields.iter().map(|at| numbers.get(*at)?.parse::<u64>().ok()).sum::<Option<u64>>()
        };
        let (user, system) = self.fields();
        Some(CpuTime { user_ns: ticks(user)? * TICK_NS, system_ns: ticks(system)? * TICK_NS })
    }
}

/// The unit of these texts: USER_HZ is 100 on all machines that are measured.
pub const TICK_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) S 1 7 7 0 -1 4194560 99 98 0 0 3 40 500 6000 20 0 1 0 1000 1 2";
    const CPUS: &str =
        "cpu  10 20 300 9 9 1000 2000 9 5 0\ncpu1 1 2 3 9 9 4 5 9 0 0\ncpu11 7 0 0 0 0 0 0 0 0 0\nintr 7\n";

    fn ticks(user: u64, system: u64) -> Option<CpuTime> {
        Some(CpuTime { user_ns: user * TICK_NS, system_ns: system * TICK_NS })
    }

    #[test]
    fn texts_of_the_kernel_are_read() {
        assert_eq!(Parse::Process.of(STAT), ticks(503, 6040));
        assert_eq!(Parse::Thread.of(STAT), ticks(3, 40));
        let cpu = |name: &str| Parse::Cpu(name.into()).of(CPUS);
        assert_eq!(
            (cpu("cpu"), cpu("cpu1"), cpu("cpu11"), cpu("cpu2")),
            (ticks(30, 3300), ticks(3, 12), ticks(7, 0), None)
        );
        for cut in ["", "7 (a", "7 (a) S 1 2", "cpu  1 2"] {
            assert_eq!((Parse::Process.of(cut), Parse::Cpu("cpu".into()).of(cut)), (None, None), "{cut}");
        }
    }

    #[test]
    fn what_this_process_uses_is_seen() {
        let mut own = CpuTimeOf::processes([std::process::id() as i32].into_iter());
        assert_eq!(own.used(), None);
        while own.used().is_none() {
            own.look();
        }
        assert_eq!(CpuTimeOf::threads([0].into_iter()).used(), None);
    }
}
