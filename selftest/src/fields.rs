//! What the registers themselves do: how the fields round, when they overflow, how many slots pass between two looks.
#![forbid(unsafe_code)]

use super::kernels::{self, SlotMix, work};
use super::machine::TestMachine;
use super::raw::{RegisterPair, SlotsGroup};
use super::registers::{HANDFUL, registers, tally};
use super::report::{CheckObstacle, CheckResult, seen, untried};
use std::hint::black_box;
use std::time::{Duration, Instant};
use topdown_seam::random::Random;

/// Readings after all sorts of work, each of more than a handful of slots.
fn readings(machine: &TestMachine) -> Result<Vec<RegisterPair>, CheckObstacle> {
    const READINGS: usize = 2000;
    let group = SlotsGroup::start(&machine.pmu)?;
    let (mut random, mut branches) = (Random::new(4), 5);
    let mut up_to = |most: u64| random.below(most + 1);
    let mut all = Vec::with_capacity(READINGS);
    for turn in 0..10 * READINGS {
        if turn % 16 == 0 {
            group.reset()?;
        }
        if machine.emulated {
            let retiring = up_to(63);
            let bad = up_to(63 - retiring);
            let frontend = up_to(63 - retiring - bad);
            let [heavy, mispredicts, latency, memory] = [up_to(15), up_to(15), up_to(15), up_to(15)];
            kernels::set_mix(
                Some(SlotMix { retiring, bad, frontend, heavy, mispredicts, latency, memory }),
                0,
            );
        }
        match up_to(3) {
            0 => kernels::adds(up_to(100)),
            1 => _ = black_box(kernels::divides(up_to(100))),
            2 => _ = black_box(kernels::branches(up_to(500), &mut branches)),
            _ => work(up_to(5000)),
        }
        // while others have the counters there is nothing to read
        all.extend(group.registers().filter(|now| now.slots > HANDFUL));
        if all.len() == READINGS {
            break;
        }
    }
    if machine.emulated {
        kernels::set_mix(None, 0);
    }
    registers(&group)?;
    Ok(all)
}

/// The four fields of level 1 add up to a whole.
pub fn whole(machine: &TestMachine) -> CheckResult {
    let sums: Vec<u64> =
        readings(machine)?.into_iter().map(|now| (0..4).map(|k| now.field(k)).sum()).collect();
    if sums.is_empty() {
        return untried("no reading could be taken");
    }
    seen(sums.iter().all(|sum| *sum == 255), format!("{} readings, the sum is {}", sums.len(), tally(&sums)))
}

/// No part is above its parent, by more than what rounding does.
pub fn parts(machine: &TestMachine) -> CheckResult {
    if machine.pmu.metrics < 8 {
        return untried("this PMU has level 1 only");
    }
    let over: Vec<u64> = readings(machine)?
        .into_iter()
        .flat_map(|now| (0..4).map(move |k| now.field(4 + k).saturating_sub(now.field(k))))
        .collect();
    if over.is_empty() {
        return untried("no reading could be taken");
    }
    seen(over.iter().all(|units| *units <= 1), format!("above its parent by units: {}", tally(&over)))
}

/// The library looks at the kernel's count once a second, since a second's slots do not overflow.
const A_SECOND: u64 = 1 << 35;

/// SLOTS goes on, without a reading, for longer than the library lets it.
pub fn overflow(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    if machine.emulated {
        // each instruction counts as 16^4: hours pass at once
        kernels::set_mix(
            Some(SlotMix {
                retiring: 32,
                bad: 8,
                frontend: 8,
                heavy: 4,
                mispredicts: 8,
                latency: 8,
                memory: 8,
            }),
            4,
        );
    }
    let tried = run_on(&group, if machine.emulated { 2000 } else { 1_000_000 });
    if machine.emulated {
        kernels::set_mix(None, 0);
    }
    tried
}

fn run_on(group: &SlotsGroup, stretch: u64) -> CheckResult {
    let (mut last, mut before, mut went_back) = (0, 0u64, Vec::new());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(6) && before + last < 4 * A_SECOND {
        work(stretch);
        let now = registers(group)?.slots;
        if now < last {
            went_back.push(last);
            before += last;
        }
        last = now;
    }
    let most = went_back.iter().copied().max().unwrap_or(0).max(last);
    let least = went_back.iter().copied().min();
    let what = format!(
        "{most:.2e} slots at the most, went back {} times{}; the kernel counts {:.2} of what was shown",
        went_back.len(),
        least.map_or(String::new(), |slots| format!(
            ", first after {slots:.2e} slots (2^{:.1})",
            (slots as f64).log2()
        )),
        group.count()?.slots as f64 / (before + last).max(1) as f64,
    );
    if least.is_none() && most < A_SECOND {
        return untried(format!("6 seconds had too few slots: {what}"));
    }
    seen(least.is_none_or(|slots| slots >= A_SECOND), what)
}

/// What the library takes for the most that pass between two RDPMC, one after the other.
const EDGE: u64 = 320;

/// Slots between two RDPMC of SLOTS.
pub fn edge(machine: &TestMachine) -> CheckResult {
    let group = SlotsGroup::start(&machine.pmu)?;
    let mut passed: Vec<u64> = Vec::new();
    for turn in 0..if machine.emulated { 5_000 } else { 200_000 } {
        kernels::adds(turn % 7); // what is in flight
        passed.extend(group.slots_twice().map(|(a, b)| b.wrapping_sub(a)));
    }
    passed.sort_unstable();
    let at = |part: f64| passed.get((part * passed.len().saturating_sub(1) as f64) as usize).copied();
    let (Some(middle), Some(rare), Some(most)) = (at(0.5), at(0.999), at(1.0)) else {
        return untried("no pair could be read");
    };
    let above = passed.iter().filter(|slots| **slots > EDGE).count();
    seen(
        most <= EDGE,
        format!(
            "{} pairs: median {middle}, 999 of 1000 up to {rare}, all up to {most}; {above} above",
            passed.len()
        ),
    )
}
