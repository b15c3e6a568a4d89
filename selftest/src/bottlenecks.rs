//! Microkernels whose bottleneck is known have to show it, between two readings of the library.
#![forbid(unsafe_code)]

use super::kernels::{self, Chase, MachineCode, SlotMix};
use super::machine;
use super::report::{CheckObstacle, CheckResult, seen, untried};
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};
use topdown::{L1, L2, LEVEL_1, LEVEL_2, Metric, Sample, TopDown};

/// One stretch of a microkernel.
pub type Stretch = Box<dyn FnMut()>;

/// A microkernel, and what must come out.
pub struct Bottleneck {
    pub name: &'static str,
    /// What it is.
    pub code: &'static str,
    pub demand: Demand,
    /// On the emulated machine: how its slots divide.
    pub mix: SlotMix,
    make: fn(&WorkloadSize) -> io::Result<Stretch>,
}

/// Which category stands out.
pub struct Demand {
    /// Place in LEVEL_1.
    pub category: usize,
    /// What it has at the least.
    pub at_least: f64,
    /// Place in LEVEL_2 of a share that is above the other one of the same parent.
    pub part: usize,
}

/// How much of everything.
struct WorkloadSize {
    time: Duration,
    /// Bytes of the pointer chase, and of the code that jumps about.
    memory: usize,
    code: usize,
}

impl WorkloadSize {
    fn new(emulated: bool) -> WorkloadSize {
        if emulated {
            // no caches there, and each new block of code takes long
            return WorkloadSize { time: Duration::from_micros(300), memory: 1 << 20, code: 1 << 15 };
        }
        let past = machine::last_level_cache().unwrap_or(0).saturating_mul(4).clamp(256 << 20, 1 << 30);
        WorkloadSize {
            time: Duration::from_millis(40),
            memory: past.min(machine::available_memory() / 4),
            code: 8 << 20,
        }
    }
}

const fn mix(retiring: u64, bad: u64, frontend: u64, part: [u64; 4]) -> SlotMix {
    let [heavy, mispredicts, latency, memory] = part;
    SlotMix { retiring, bad, frontend, heavy, mispredicts, latency, memory }
}

/// A stretch that runs this, whose result is not optimised away.
fn stretch<T>(mut run: impl FnMut() -> T + 'static) -> io::Result<Stretch> {
    Ok(Box::new(move || _ = black_box(run())))
}

/// The table.
pub const ALL: [Bottleneck; 6] = [
    Bottleneck {
        name: "retiring",
        code: "adds that wait for nothing",
        demand: Demand { category: 0, at_least: 0.5, part: 1 },
        mix: mix(48, 2, 4, [1, 8, 8, 4]),
        make: |_| stretch(|| kernels::adds(5000)),
    },
    Bottleneck {
        name: "core-bound",
        code: "divides that wait for each other",
        demand: Demand { category: 3, at_least: 0.5, part: 7 },
        mix: mix(6, 1, 2, [1, 8, 8, 2]),
        make: |_| stretch(|| kernels::divides(2000)),
    },
    Bottleneck {
        name: "memory-bound",
        code: "a chain of loads past the caches",
        demand: Demand { category: 3, at_least: 0.5, part: 6 },
        mix: mix(4, 1, 3, [1, 8, 8, 14]),
        make: |size| {
            let mut chase = Chase::new(size.memory);
            stretch(move || chase.run(200))
        },
    },
    Bottleneck {
        name: "branch-mispredicts",
        code: "branches that go either way at random",
        demand: Demand { category: 1, at_least: 0.25, part: 2 },
        mix: mix(14, 32, 12, [1, 14, 10, 4]),
        make: |_| {
            let mut seed = 3;
            stretch(move || kernels::branches(5000, &mut seed))
        },
    },
    Bottleneck {
        name: "fetch-latency",
        code: "jumps all over a large stretch of code",
        demand: Demand { category: 2, at_least: 0.5, part: 4 },
        mix: mix(8, 2, 48, [1, 8, 14, 4]),
        make: |size| MachineCode::jumps(size.code).and_then(|code| stretch(move || code.call(0))),
    },
    Bottleneck {
        name: "machine-clears",
        code: "code that modifies its next instruction",
        demand: Demand { category: 1, at_least: 0.1, part: 3 },
        mix: mix(4, 30, 20, [4, 1, 14, 4]),
        make: |_| MachineCode::modifying().and_then(|code| stretch(move || code.call(500))),
    },
];

impl Demand {
    /// In words.
    pub fn text(&self) -> String {
        let Demand { category, at_least, part } = *self;
        format!(
            "{} {:.0} % at the least; where there is a level 2, {} above {}",
            LEVEL_1[category].title(),
            100.0 * at_least,
            LEVEL_2[part].title(),
            LEVEL_2[part ^ 1].title()
        )
    }

    /// Whether the shares meet it, and what they are. What the bounds leave open is not decided.
    pub fn judge(&self, l1: &L1, l2: Option<&L2>) -> CheckResult {
        let Demand { category, at_least, part } = *self;
        let one = l1.shares();
        let mut what = shares(&LEVEL_1, &one, l1.error);
        let above = |difference: f64, error: f64| (difference.abs() > error).then_some(difference > 0.0);
        let mut answers = vec![above(one[category] - at_least, l1.error)];
        if let Some(l2) = l2 {
            let two = l2.shares();
            what += &format!(";\n              {}", shares(&LEVEL_2, &two, l2.error));
            answers.push(above(two[part] - two[part ^ 1], 2.0 * l2.error));
        }
        what +=
            &format!(";\n              {} slots, counted {:.0} % of the time", l1.slots, 100.0 * l1.running);
        if answers.contains(&Some(false)) {
            seen(false, what)
        } else if answers.contains(&None) {
            untried(format!("the bound leaves it open: {what}"))
        } else {
            seen(true, what)
        }
    }
}

fn shares(metrics: &[Metric], values: &[f64], error: f64) -> String {
    let share = |(metric, value): (&Metric, &f64)| format!("{} {:.1}", metric.title(), 100.0 * value);
    let list: Vec<String> = metrics.iter().zip(values).map(share).collect();
    format!("{} (within {:.1} points)", list.join(", "), 100.0 * error)
}

impl Bottleneck {
    /// Runs it; on the emulated machine, with that mix.
    pub fn run(&self, td: &TopDown, emulated: bool, mix: SlotMix) -> CheckResult {
        self.region(
            td,
            emulated.then_some(mix),
            WorkloadSize::new(emulated).time,
            &mut self.stretch(emulated)?,
        )
    }

    /// A stretch of it, which has run once.
    pub fn stretch(&self, emulated: bool) -> Result<Stretch, CheckObstacle> {
        let mut stretch = (self.make)(&WorkloadSize::new(emulated))
            .or_else(|error| untried(format!("no memory for it, or none that may be executed: {error}")))?;
        stretch();
        Ok(stretch)
    }

    fn region(
        &self,
        td: &TopDown,
        mix: Option<SlotMix>,
        time: Duration,
        stretch: &mut Stretch,
    ) -> CheckResult {
        let (before, after) = samples(td, mix, time, stretch)?;
        let l1 = topdown::decode_l1(Some(&before), &after)?;
        let l2 = match topdown::decode_l2(Some(&before), &after) {
            Err(error) if error.code() == -libc::ENOTSUP => None, // level 1 alone, or other nodes, as E-cores have
            l2 => Some(l2?),
        };
        self.demand.judge(&l1, l2.as_ref())
    }
}

/// Two readings, and as much of a microkernel between them as fits; on the emulated machine, with a mix.
pub fn samples(
    td: &TopDown,
    mix: Option<SlotMix>,
    time: Duration,
    stretch: &mut Stretch,
) -> topdown::Result<(Sample, Sample)> {
    if mix.is_some() {
        kernels::set_mix(mix, 0);
    }
    let before = td.read();
    let start = Instant::now();
    while start.elapsed() < time {
        stretch();
    }
    let after = td.read();
    if mix.is_some() {
        kernels::set_mix(None, 0);
    }
    Ok((before?, after?))
}

/// How long a microkernel runs.
pub fn time(emulated: bool) -> Duration {
    WorkloadSize::new(emulated).time
}

/// On the emulated machine: a kernel with the mix of another has to be refused, else the verdicts above say nothing.
pub fn refuses(td: &TopDown) -> CheckResult {
    let mut believed = Vec::new();
    for (k, bottleneck) in ALL.iter().enumerate() {
        // three on: another level 1 category
        let wrong = ALL[(k + 3) % ALL.len()].mix;
        if !matches!(bottleneck.run(td, true, wrong), Ok(verdict) if !verdict.holds) {
            believed.push(bottleneck.name);
        }
    }
    let refused = ALL.len() - believed.len();
    seen(
        believed.is_empty(),
        format!("{refused} of {} refused; not: {}", ALL.len(), or_none(&believed.join(", "))),
    )
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::Options;

    /// The shares that the emulated machine would show.
    fn shares_of(mix: SlotMix, error: f64) -> (L1, L2) {
        let parent = [mix.retiring, mix.bad, mix.frontend, 64 - mix.retiring - mix.bad - mix.frontend];
        let [retiring, bad_speculation, frontend_bound, backend_bound] = parent.map(|n| n as f64 / 64.0);
        let part = |whole: f64, n: u64| (whole * n as f64 / 16.0, whole * (16 - n) as f64 / 16.0);
        let (heavy_operations, light_operations) = part(retiring, mix.heavy);
        let (branch_mispredicts, machine_clears) = part(bad_speculation, mix.mispredicts);
        let (fetch_latency, fetch_bandwidth) = part(frontend_bound, mix.latency);
        let (memory_bound, core_bound) = part(backend_bound, mix.memory);
        let l1 = L1 { retiring, bad_speculation, frontend_bound, backend_bound, error, ..L1::default() };
        let l2 = L2 {
            heavy_operations,
            light_operations,
            branch_mispredicts,
            machine_clears,
            fetch_latency,
            fetch_bandwidth,
            memory_bound,
            core_bound,
            error,
            ..L2::default()
        };
        (l1, l2)
    }

    #[test]
    fn each_demand_is_met_by_its_own_mix_alone() {
        for (k, bottleneck) in ALL.iter().enumerate() {
            for (j, Bottleneck { mix, .. }) in ALL.iter().enumerate() {
                let (l1, l2) = shares_of(*mix, 0.01);
                let verdict = bottleneck.demand.judge(&l1, Some(&l2)).unwrap();
                assert_eq!(verdict.holds, k == j, "{} with the mix of {}", bottleneck.name, ALL[j].name);
            }
            let (l1, _) = shares_of(ALL[(k + 3) % ALL.len()].mix, 0.01);
            assert!(!bottleneck.demand.judge(&l1, None).unwrap().holds, "{} at level 1", bottleneck.name);
        }
    }

    #[test]
    fn what_the_bound_leaves_open_is_neither_held_nor_refuted() {
        let demand = Demand { category: 0, at_least: 0.5, part: 1 };
        let verdict = |retiring, error| {
            let l1 = L1 { retiring, backend_bound: 1.0 - retiring, error, ..L1::default() };
            demand.judge(&l1, None).map(|verdict| verdict.holds).ok()
        };
        assert_eq!(verdict(0.52, 0.01), Some(true));
        assert_eq!(verdict(0.48, 0.01), Some(false));
        assert_eq!(verdict(0.52, 0.03), None);
        assert_eq!(verdict(0.48, 0.03), None);
    }

    #[test]
    fn the_numbers_and_their_bound_are_told() {
        let (l1, l2) = shares_of(ALL[0].mix, 0.004);
        let what = ALL[0].demand.judge(&l1, Some(&l2)).unwrap().what;
        assert!(what.contains("retiring 75.0") && what.contains("(within 0.4 points)"), "{what}");
        assert!(what.contains("light operations 70.3"), "{what}");
    }

    #[test]
    fn a_region_of_the_simulated_pmu_passes_through_to_a_verdict() {
        let td = TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap();
        let set = |mix: SlotMix| {
            let parent = [mix.retiring, mix.bad, mix.frontend].map(|n| n as f64 / 64.0);
            let part = |k: usize, n: u64| parent[k] * n as f64 / 16.0;
            td.set_mix(&topdown::Mix {
                retiring: parent[0],
                bad_speculation: parent[1],
                frontend_bound: parent[2],
                heavy_operations: part(0, mix.heavy),
                branch_mispredicts: part(1, mix.mispredicts),
                fetch_latency: part(2, mix.latency),
                backend_bound: 1.0 - parent.iter().sum::<f64>(),
                memory_bound: (1.0 - parent.iter().sum::<f64>()) * mix.memory as f64 / 16.0,
                ..topdown::Mix::default()
            })
            .unwrap();
        };
        for (k, bottleneck) in ALL.iter().enumerate() {
            let region = |mix| {
                set(mix);
                let mut stretch: Stretch = Box::new(|| kernels::work(100_000));
                bottleneck.region(&td, None, Duration::from_millis(5), &mut stretch).unwrap().holds
            };
            assert!(region(bottleneck.mix), "{}", bottleneck.name);
            assert!(!region(ALL[(k + 3) % ALL.len()].mix), "{}", bottleneck.name);
        }
    }
}
