//! PMUs that are not there. A clock drives their counters, and a mix divides its slots: SLOTS and PERF_METRICS, with the
//! rounding to 8 bits and the reset at each read(2) that the real ones have, or general-purpose counters.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::read::{
    Access, Clock, GroupCounts, MOST_COUNTERS, MetricsCounters, PageSchedule, PlainCounters, PlainCounts,
    Snapshot,
};
use crate::registers::{CATEGORIES, RawMetrics, RawSlots, Registers, rounded};
use crate::sys::kept::ThreadValue;
use crate::sys::page::Times;
use crate::sys::short;
use std::time::Instant;

/// A whole, in the units that shares are counted in.
pub(crate) const WHOLE: u64 = 1 << 20;

/// How the slots of a simulated PMU truly divide: shares of all slots, 0 to 1. Level 1 adds up to 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// sizeof(struct td_mix), set by the caller; 0 means 72.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Level 1.
    pub retiring: f64,
    /// Level 1.
    pub bad_speculation: f64,
    /// Level 1.
    pub frontend_bound: f64,
    /// Level 1.
    pub backend_bound: f64,
    /// Level 2: at most retiring.
    pub heavy_operations: f64,
    /// Level 2: at most bad_speculation.
    pub branch_mispredicts: f64,
    /// Level 2: at most frontend_bound.
    pub fetch_latency: f64,
    /// Level 2: at most backend_bound.
    pub memory_bound: f64,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            size: size_of::<Mix>() as u32,
            reserved: 0,
            retiring: 0.4,
            bad_speculation: 0.1,
            frontend_bound: 0.2,
            backend_bound: 0.3,
            heavy_operations: 0.1,
            branch_mispredicts: 0.075,
            fetch_latency: 0.1,
            memory_bound: 0.2,
        }
    }
}

impl Mix {
    /// The shares in the order of the fields, in units of `WHOLE`; level 1 adds up to it exactly.
    fn shares(&self) -> Result<[u64; CATEGORIES]> {
        let level_1 = [self.retiring, self.bad_speculation, self.frontend_bound, self.backend_bound];
        let level_2 = [self.heavy_operations, self.branch_mispredicts, self.fetch_latency, self.memory_bound];
        let all = || level_1.iter().chain(&level_2);
        if !all().all(|share| (0.0..=1.0).contains(share)) {
            return Err(Error::invalid("a share of the mix is not between 0 and 1"));
        }
        let whole: f64 = level_1.iter().sum();
        if (whole - 1.0).abs() > 1e-6 {
            return Err(Error::invalid(format!("the level 1 shares of the mix add up to {whole}, not to 1")));
        }
        if level_2.iter().zip(&level_1).any(|(part, parent)| *part > parent + 1e-9) {
            return Err(Error::invalid("a level 2 share of the mix is more than its level 1 share"));
        }
        let units = |share: &f64| rounded(share * WHOLE as f64);
        let mut shares: [u64; CATEGORIES] =
            std::array::from_fn(|k| units(all().nth(k).expect("eight shares")));
        // what rounding left over goes to the largest, which has room for it either way
        let largest = (0..4).max_by_key(|k| shares[*k]).expect("four shares");
        shares[largest] = shares[largest] + WHOLE - shares[..4].iter().sum::<u64>();
        for k in 0..4 {
            shares[4 + k] = shares[4 + k].min(shares[k]);
        }
        Ok(shares)
    }
}

/// A simulated group with SLOTS and PERF_METRICS.
pub(crate) struct SimulatedRegisters {
    level: u32,
    /// Slots per cycle.
    width: u64,
    begun: Instant,
    state: ThreadValue<SimulatedState>,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedState {
    mix: [u64; CATEGORIES],
    /// When the registers last moved on.
    at: Moment,
    slots: u64,
    /// Slots of each category since the reset, times `WHOLE`.
    exact: [u128; CATEGORIES],
    /// What read(2) has told so far.
    counts: GroupCounts,
}

impl SimulatedRegisters {
    pub fn new(level: u32, width: u32) -> SimulatedRegisters {
        let mix = Mix::default().shares().expect("the default mix is a mix");
        let state = SimulatedState {
            mix,
            at: Moment::now(),
            slots: 0,
            exact: [0; CATEGORIES],
            counts: GroupCounts::default(),
        };
        SimulatedRegisters {
            level,
            width: width.into(),
            begun: Instant::now(),
            state: ThreadValue::new(state),
        }
    }

    /// How slots divide from now on.
    pub fn set_mix(&self, mix: &Mix) -> Result<()> {
        let shares = mix.shares()?;
        self.change(|state| state.mix = shares);
        Ok(())
    }

    /// Moves on to now, and changes this then. Returns what was there before the change. (A signal handler's own may come
    /// between.)
    fn change(&self, work: impl Fn(&mut SimulatedState)) -> SimulatedState {
        loop {
            let mut change = self.state.begin();
            change.value().move_on(self.width);
            let before = *change.value();
            work(change.value());
            if change.end() {
                return before;
            }
        }
    }

    fn look(&self) -> Snapshot {
        self.snapshot(&self.change(|_| {}))
    }

    fn snapshot(&self, state: &SimulatedState) -> Snapshot {
        let time = state.at.since(self.begun);
        Snapshot {
            registers: Registers { slots: RawSlots(state.slots), metrics: state.metrics(self.level) },
            sequence: 0,
            clock: Clock { zero: Times { enabled: time, running: time }, ..Clock::default() },
            ns: 0,
            pace: time,
            beside: Default::default(),
        }
    }
}

impl SimulatedState {
    fn move_on(&mut self, width: u64) {
        let slots = self.at.move_on() * width;
        self.slots += slots;
        for (exact, share) in self.exact.iter_mut().zip(self.mix) {
            *exact += u128::from(slots) * u128::from(share);
        }
    }

    /// PERF_METRICS: each share rounded to 8 bits, level 1 so that the fields add up to 255.
    fn metrics(&self, level: u32) -> RawMetrics {
        if self.slots == 0 {
            return RawMetrics(0);
        }
        let whole = u128::from(self.slots) * u128::from(WHOLE);
        let mut fields: [u64; CATEGORIES] = std::array::from_fn(|k| (self.exact[k] * 255 / whole) as u64);
        let mut order = [0, 1, 2, 3];
        short::sort_by_key(&mut order, |k| std::cmp::Reverse(self.exact[*k] * 255 % whole));
        let missing = 255 - fields[..4].iter().sum::<u64>();
        for k in &order[..missing as usize] {
            fields[*k] += 1;
        }
        for (field, exact) in fields.iter_mut().zip(self.exact).skip(4) {
            *field = if level < 2 { 0 } else { (exact * 510 / whole).div_ceil(2) as u64 };
        }
        RawMetrics(fields.iter().enumerate().map(|(k, field)| field << (8 * k)).sum())
    }
}

impl MetricsCounters for SimulatedRegisters {
    fn counts(&self) -> Result<GroupCounts> {
        let take = |state: &mut SimulatedState| {
            let snapshot = self.snapshot(state);
            let Registers { slots, metrics } = snapshot.registers;
            state.counts.slots += slots.0;
            for (k, count) in state.counts.category.iter_mut().enumerate() {
                *count += (u128::from(slots.0) * u128::from(metrics.0 >> (8 * k) & 0xff) / 255) as u64;
            }
            state.counts.time = snapshot.clock.zero;
            (state.slots, state.exact) = (0, [0; CATEGORIES]);
        };
        let mut before = self.change(take);
        take(&mut before);
        Ok(before.counts)
    }

    fn slots(&self) -> Result<(u64, Times)> {
        let counts = self.counts()?;
        Ok((counts.slots, counts.time))
    }

    fn registers(&self, _: Times) -> Option<Snapshot> {
        Some(self.look())
    }

    fn scheduled(&self) -> PageSchedule {
        PageSchedule::In(0)
    }

    fn access(&self) -> Access {
        Access::Rdpmc
    }
}

/// The clock of a simulated core that counts others, of whose CPU time nanoseconds alone are known.
const CYCLES_PER_NS: u64 = 3;

/// A simulated group of general-purpose counters: each counts so much in a cycle.
pub(crate) struct SimulatedCounters {
    /// Slots per cycle.
    width: u64,
    begun: Instant,
    state: ThreadValue<SimulatedCounts>,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedCounts {
    /// What a cycle adds to each counter, in units of `WHOLE`.
    per_cycle: [u64; MOST_COUNTERS],
    /// When the counters last moved on.
    at: Moment,
    cycles: u64,
    /// Times `WHOLE`.
    counter: [u128; MOST_COUNTERS],
    /// Switched off; and nanoseconds in which they were.
    off: bool,
    off_ns: u64,
}

impl SimulatedCounters {
    /// Counters that count so much in a cycle each.
    pub fn new(per_cycle: &[f64], width: u32) -> SimulatedCounters {
        let per_cycle = units_of(per_cycle).expect("a table's numbers");
        let counter = [0; MOST_COUNTERS];
        let state =
            SimulatedCounts { per_cycle, at: Moment::now(), cycles: 0, counter, off: false, off_ns: 0 };
        SimulatedCounters { width: width.into(), begun: Instant::now(), state: ThreadValue::new(state) }
    }

    /// What a cycle adds to each counter from now on.
    pub fn set_per_cycle(&self, per_cycle: &[f64]) -> Result<()> {
        let units = units_of(per_cycle)?;
        self.change(|state| state.per_cycle = units);
        Ok(())
    }

    /// What they count of others in so much of their time, of which so much is work: as they do of their own, but by no clock of this thread.
    pub fn counts_of(&self, busy_ns: u64, time: Times) -> PlainCounts {
        let cycles = busy_ns.saturating_mul(CYCLES_PER_NS);
        let per_cycle = self.change(|_| {}).per_cycle;
        let counted = |units: u64| (u128::from(cycles) * u128::from(units) / u128::from(WHOLE)) as u64;
        PlainCounts {
            time,
            slots: cycles.saturating_mul(self.width),
            counter: per_cycle.map(counted),
            ..PlainCounts::default()
        }
    }

    /// From now on they count, or not.
    pub fn switch(&self, on: bool) {
        self.change(|state| state.off = !on);
    }

    /// Moves on to now, and changes this then. (A signal handler's own may come between.)
    fn change(&self, work: impl Fn(&mut SimulatedCounts)) -> SimulatedCounts {
        loop {
            let mut change = self.state.begin();
            change.value().move_on();
            work(change.value());
            let after = *change.value();
            if change.end() {
                return after;
            }
        }
    }
}

/// Numbers of 0 to 64 in units of `WHOLE`.
fn units_of(numbers: &[f64]) -> Result<[u64; MOST_COUNTERS]> {
    if numbers.len() > MOST_COUNTERS || !numbers.iter().all(|number| (0.0..=64.0).contains(number)) {
        return Err(Error::invalid("what counters count in a cycle is not between 0 and 64"));
    }
    let units = |k: usize| numbers.get(k).map_or(0, |number| rounded(number * WHOLE as f64));
    Ok(std::array::from_fn(units))
}

impl SimulatedCounts {
    fn move_on(&mut self) {
        let before = self.at.time;
        let cycles = self.at.move_on();
        if self.off {
            self.off_ns += self.at.since(before);
            return;
        }
        self.cycles += cycles;
        for (counter, units) in self.counter.iter_mut().zip(self.per_cycle) {
            *counter += u128::from(cycles) * u128::from(units);
        }
    }
}

impl PlainCounters for SimulatedCounters {
    fn counts(&self) -> Result<PlainCounts> {
        let state = self.change(|_| {});
        let time = state.at.since(self.begun).saturating_sub(state.off_ns);
        Ok(PlainCounts {
            time: Times { enabled: time, running: time },
            slots: state.cycles * self.width,
            slots_maybe_over: 0,
            counter: state.counter.map(|counter| (counter / u128::from(WHOLE)) as u64),
            ..PlainCounts::default()
        })
    }

    fn counts_itself(&self) -> bool {
        true
    }

    fn calls(&self) -> u64 {
        0 // (it counts nothing while it is read)
    }
}

/// Cycles and time, of one moment: no more slots have passed than can in the time.
#[derive(Clone, Copy, Debug)]
struct Moment {
    cycles: u64,
    time: Instant,
}

/// Cycles between the two clocks of a moment, unless the thread was preempted in between.
const CLOSE: u64 = 10_000;

impl Moment {
    fn now() -> Moment {
        let mut moment = Moment { cycles: clock(), time: Instant::now() };
        for _ in 0..100 {
            let after = clock();
            if after.wrapping_sub(moment.cycles) < CLOSE {
                break;
            }
            moment = Moment { cycles: after, time: Instant::now() };
        }
        moment
    }

    /// Moves on to now: so many cycles. (A CPU's time-stamp counter may be behind another's.)
    fn move_on(&mut self) -> u64 {
        let before = std::mem::replace(self, Moment::now());
        self.cycles.saturating_sub(before.cycles)
    }

    /// Nanoseconds.
    fn since(&self, begun: Instant) -> u64 {
        self.time.saturating_duration_since(begun).as_nanos() as u64
    }
}

/// Cycles of the simulated core: the time-stamp counter where there is one.
fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    return crate::sys::rdpmc::rdtsc();
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_within_a_unit_of_the_truth_and_level_1_adds_up() {
        let pmu = SimulatedRegisters::new(2, 6);
        let mixes = [
            Mix::default(),
            Mix {
                retiring: 1.0,
                bad_speculation: 0.0,
                frontend_bound: 0.0,
                backend_bound: 0.0,
                branch_mispredicts: 0.0,
                fetch_latency: 0.0,
                memory_bound: 0.0,
                ..Mix::default()
            },
            Mix {
                retiring: 0.333,
                bad_speculation: 0.333,
                frontend_bound: 0.333,
                backend_bound: 0.001,
                memory_bound: 0.001,
                ..Mix::default()
            },
        ];
        for mix in mixes {
            pmu.counts().unwrap();
            pmu.set_mix(&mix).unwrap();
            let mut state =
                SimulatedState { slots: 0, exact: [0; CATEGORIES], ..pmu.state.get(|state| *state) };
            while state.slots < 100_000 {
                state.move_on(6);
            }
            let metrics = state.metrics(2).0;
            let field = |k: usize| (metrics >> (8 * k) & 0xff) as f64 / 255.0;
            let truth = mix.shares().unwrap().map(|share| share as f64 / WHOLE as f64);
            for (k, truth) in truth.iter().enumerate() {
                assert!((field(k) - truth).abs() <= 1.0 / 255.0, "{k}: {} is not {truth}", field(k));
            }
            assert_eq!((0..4).map(|k| metrics >> (8 * k) & 0xff).sum::<u64>(), 255);
        }
    }

    #[test]
    fn a_level_1_core_has_no_upper_half() {
        let pmu = SimulatedRegisters::new(1, 5);
        while pmu.look().registers.slots.0 < 1000 {}
        let metrics = pmu.look().registers.metrics.0;
        assert_eq!(metrics >> 32, 0);
        assert_ne!(metrics, 0);
    }

    #[test]
    fn impossible_mixes_are_refused() {
        for (mix, word) in [
            (Mix { retiring: 0.5, ..Mix::default() }, "add up"),
            (Mix { retiring: f64::NAN, ..Mix::default() }, "between 0 and 1"),
            (Mix { retiring: -0.1, backend_bound: 0.8, ..Mix::default() }, "between 0 and 1"),
            (Mix { memory_bound: 0.9, ..Mix::default() }, "more than its level 1"),
        ] {
            assert!(
                SimulatedRegisters::new(2, 6).set_mix(&mix).unwrap_err().to_string().contains(word),
                "{mix:?}"
            );
        }
    }
}
