//! A group of general-purpose counters that a smaller one relieves while others hold its counters.
//!
//! What is of a CPU (`perf stat -a`) comes before what is of a thread, and takes no turns with it: a group that does not fit beside it
//! counts nothing until it ends. Level 1 takes fewer counters than all levels, none of them the one that SLOTS is in. So when a reading
//! finds that the group is not on the counters, the group is switched off, and a *spare* of level 1 on, which is opened then. (Both
//! at a time would take turns: of a thread's groups the kernel tries none behind one that does not fit.) Now and then a reading looks whether
//! the group would get the counters again. Both count the same events, each while it is switched on, so what both have counted is added
//! up, times too, but for the library's own work meanwhile. Of stretches by the spare level 1 alone is known: samples tell how many there
//! were, and if there was one between two of them (`level_between`) no deeper level is decoded.
#![forbid(unsafe_code)]

use super::{MOST_SIBLINGS, PlainGroup};
use crate::detect::Pmu;
use crate::error::{Error, Result};
use crate::model::{Counting, Leader};
use crate::options::{Options, Target};
use crate::plan::Plan;
use crate::read::{CountersSnapshot, Entry, MEASURES_ITSELF, PlainCounters, PlainCounts, Reader, Shared};
use crate::sys::Kernel;
use crate::sys::kept::ThreadValue;
use crate::sys::memory::ReservedPage;
use crate::sys::page::{PlainCounter, Times};
use crate::sys::signals::SignalBlock;
use perf_event_open_sys::bindings::perf_event_attr;
use std::cell::{Cell, OnceCell};

/// After so much of the thread's time a reading looks whether the group gets the counters again.
const LOOKS_AFTER_NS: u64 = 20_000_000;

/// A limit on the leader's counter leaves at least so many.
const LEAST_LEFT: u64 = 1_000_000;

/// Events of a group.
const MOST_EVENTS: usize = 1 + MOST_SIBLINGS;

/// CPUs that are told apart.
const MOST_CPUS: usize = 1024;

/// What the spare is to count. (In place: what is dropped may be a copy.)
#[derive(Debug)]
pub(crate) struct SpareEvents {
    attr: perf_event_attr,
    configs: [u64; MOST_EVENTS],
    events: usize,
    slots_each: u64,
    general_counters: u32,
    is_shallower: bool,
    /// The CPUs that have these counters.
    cpus: [u64; MOST_CPUS / 64],
}

impl SpareEvents {
    /// Of a group of this plan. None: there is no smaller one, or it is not this thread's.
    pub fn of(pmu: &Pmu, plan: &Plan, options: &Options) -> Option<SpareEvents> {
        let Counting::Counters(counters) = pmu.model.counting else { return None };
        if options.target != Target::This || options.inherit || options.in_turns {
            return None;
        }
        let all = counters.tree.inputs_of(1);
        // (without what corrects them, which the intervals have then: fewer are more often left)
        let level_1 = if all < plan.members.len() { counters.tree.sources_of_level_1() } else { all };
        let is_general = |leader: &&Leader| leader.general && leader.by_cycle == plan.leader.by_cycle;
        let leader = counters.leaders.iter().find(is_general).unwrap_or(&plan.leader);
        let is_shallower = level_1 < plan.members.len();
        if !is_shallower && leader.event == plan.leader.event {
            return None;
        }
        let members = &plan.members[..level_1];
        let mut configs = [0; MOST_EVENTS];
        let events = std::iter::once(&leader.event).chain(members);
        configs.iter_mut().zip(events).for_each(|(place, event)| *place = event.config);
        let mut cpus = [0; MOST_CPUS / 64];
        (0..MOST_CPUS)
            .filter(|cpu| pmu.covers(*cpu as u32))
            .for_each(|cpu| cpus[cpu / 64] |= 1 << (cpu % 64));
        Some(SpareEvents {
            attr: super::leader(pmu, leader.event.config, options),
            configs,
            events: 1 + members.len(),
            slots_each: plan.slots_each,
            general_counters: crate::model::general_counters(leader, members) as u32,
            is_shallower,
            cpus,
        })
    }

    fn attrs(&self) -> [perf_event_attr; MOST_EVENTS] {
        let mut attrs = [self.attr; MOST_EVENTS];
        for (place, attr) in attrs.iter_mut().enumerate() {
            attr.config = self.configs[place];
            attr.read_format = crate::sys::group_read::GROUP;
            attr.set_disabled((place == 0).into());
        }
        attrs
    }

    fn may_run_on(&self, cpu: u32) -> bool {
        let cpu = cpu as usize % MOST_CPUS;
        self.cpus[cpu / 64] >> (cpu % 64) & 1 != 0
    }
}

/// Which of both is switched on, and what is to be added to what it has counted.
#[derive(Clone, Copy, Default)]
struct CarriedCounts {
    /// It is the spare.
    is_over: bool,
    stretches: u16,
    /// The totals, less what the one that is on has counted; with wrap-around.
    away: PlainCounts,
    /// Time enabled when a reading looked whether the group gets the counters.
    looked: u64,
}

/// A group, and its spare, which is opened when it is needed. (Signal handlers may read at any instruction. They are blocked while one
/// is switched off and the other on, and a reading that they interrupted is taken again, by `Plain`.)
pub(crate) struct RelievedGroup<K: Kernel> {
    main: PlainGroup<K>,
    wanted: Option<SpareEvents>,
    spare: OnceCell<PlainGroup<K>>,
    /// Where readings of the spare start from, and the place of its leader's control page behind it; None: it is read by read(2).
    second: Option<&'static Shared>,
    place: Cell<Option<ReservedPage>>,
    /// It could not be opened.
    is_refused: Cell<bool>,
    carried: ThreadValue<CarriedCounts>,
    /// Times of the group at the last read(2).
    last: Cell<Times>,
    /// It is to count nothing for now.
    is_off: Cell<bool>,
    /// A system call failed while one was switched off and the other on: nobody knows what has passed since.
    is_lost: Cell<bool>,
}

impl<K: Kernel + Clone> RelievedGroup<K> {
    /// An open group. `second`: see there.
    pub fn new(
        main: PlainGroup<K>,
        wanted: Option<SpareEvents>,
        second: Option<(&'static Shared, ReservedPage)>,
    ) -> RelievedGroup<K> {
        let (second, place) = second.unzip();
        let [is_refused, is_off, is_lost] = [false; 3].map(Cell::new);
        let (spare, carried) = (OnceCell::new(), ThreadValue::new(CarriedCounts::default()));
        let (place, last) = (Cell::new(place), Cell::default());
        RelievedGroup { main, wanted, spare, second, place, is_refused, carried, last, is_off, is_lost }
    }

    /// The group.
    pub fn main(&self) -> &PlainGroup<K> {
        &self.main
    }

    /// As `PlainGroup::forget_mappings`.
    pub fn forget_mappings(&mut self) {
        self.main.forget_mappings();
        self.spare.get_mut().into_iter().for_each(PlainGroup::forget_mappings);
    }

    /// As `PlainGroup::leave_zeros`.
    pub fn leave_zeros(&mut self) {
        self.main.leave_zeros();
        self.spare.get_mut().into_iter().for_each(PlainGroup::leave_zeros);
    }

    /// As `PlainGroup::stop`.
    pub fn stop(&self) {
        self.main.stop();
        self.spare.get().inspect(|spare| spare.stop());
    }

    /// As `PlainGroup::switch`.
    pub fn switch(&self, on: bool) -> Result<()> {
        self.is_off.set(!on);
        self.on().switch(on)
    }

    /// The group by which readings are.
    fn on(&self) -> &PlainGroup<K> {
        let is_over = self.carried.get(|carried| carried.is_over);
        self.spare.get().filter(|_| is_over).unwrap_or(&self.main)
    }

    /// How many general-purpose counters the spare takes, if readings are by it, and whether it counts level 1 of more.
    pub fn is_over(&self) -> Option<(u32, bool)> {
        let is_over = self.carried.get(|carried| carried.is_over);
        self.wanted.as_ref().filter(|_| is_over).map(|spare| (spare.general_counters, spare.is_shallower))
    }

    /// The spare, if it is there or can be opened.
    fn spare(&self, wanted: &SpareEvents, _: &SignalBlock) -> Option<&PlainGroup<K>> {
        if self.spare.get().is_none() && !self.is_refused.get() {
            match self.main.beside(&wanted.attrs()[..wanted.events], wanted.slots_each, self.place.take()) {
                Some(spare) => drop(self.spare.set(spare)),
                None => self.is_refused.set(true),
            }
        }
        self.spare.get()
    }

    /// Whether the group is not on the counters, where it could be. `time`: what it has just told.
    fn is_starved(&self, wanted: &SpareEvents, time: Times) -> bool {
        let last = self.last.replace(time);
        let is_on = match self.main.scheduled() {
            Some((_, is_on)) => is_on,
            None => {
                last.enabled == 0
                    || time.running.wrapping_sub(last.running) >= time.enabled.wrapping_sub(last.enabled)
            }
        };
        !is_on && wanted.may_run_on(self.main.cpu())
    }

    /// Whether the group, which has just been switched on, is on the counters.
    fn gets_its_turn(&self) -> Result<bool> {
        if let Some((_, is_on)) = self.main.scheduled() {
            return Ok(is_on);
        }
        let before = self.main.counts()?.time;
        Ok(self.main.counts()?.time.running > before.running)
    }

    /// The group is switched off, and the spare on, and nothing of it is in the totals. They are returned; None: nothing happened.
    fn go_over(&self, wanted: &SpareEvents, signals: &SignalBlock) -> Result<Option<PlainCounts>> {
        let now = self.main.counts()?;
        let mut change = self.carried.begin();
        let carried = change.value();
        if carried.is_over || (wanted.is_shallower && carried.stretches == u16::MAX) {
            change.cancel();
            return Ok(None);
        }
        let total = carried.total(&now);
        self.is_lost.set(true);
        self.main.switch(false)?;
        let spare = self.spare(wanted, signals).filter(|spare| spare.switch(true).is_ok());
        let Some(spare) = spare else {
            change.cancel();
            self.main.switch(true)?;
            self.is_lost.set(false);
            return Ok(None);
        };
        carried.is_over = true;
        carried.stretches += u16::from(wanted.is_shallower);
        carried.go_on(&total, &spare.counts()?);
        let all = self.told(carried, total);
        change.end();
        self.is_lost.set(false);
        Ok(Some(all))
    }

    /// A reading by the spare. Now and then the group is switched on again, if it gets the counters; the rest as of `go_over`.
    fn counts_over(&self, spare: &PlainGroup<K>, _: &SignalBlock) -> Result<PlainCounts> {
        let now = self.on().counts()?;
        let mut change = self.carried.begin();
        let carried = change.value();
        let total = carried.total(&now);
        if !carried.is_over || total.time.enabled.wrapping_sub(carried.looked) < LOOKS_AFTER_NS {
            let all = self.told(carried, total);
            change.cancel();
            return Ok(all);
        }
        self.is_lost.set(true);
        spare.switch(false)?;
        self.main.switch(true)?;
        carried.is_over = !self.gets_its_turn()?;
        if carried.is_over {
            self.main.switch(false)?;
            spare.switch(true)?;
        }
        let on = if carried.is_over { spare } else { &self.main };
        carried.go_on(&total, &on.counts()?);
        self.last.set(Times::default());
        let all = self.told(carried, total);
        change.end();
        self.is_lost.set(false);
        Ok(all)
    }

    /// These totals, with what is to be known of them.
    fn told(&self, carried: &CarriedCounts, total: PlainCounts) -> PlainCounts {
        let is_shallower = self.wanted.as_ref().is_some_and(|wanted| wanted.is_shallower);
        PlainCounts { stretches: carried.stretches, is_stretch: carried.is_over && is_shallower, ..total }
    }

    /// What both have counted, by a reading of the one that is switched on.
    fn counts_of_both(&self, read: impl Fn(&PlainGroup<K>) -> Result<PlainCounts>) -> Result<PlainCounts> {
        if self.is_lost.get() {
            return Err(lost());
        }
        let carried = self.carried.get(|carried| *carried);
        let on = self.spare.get().filter(|_| carried.is_over).unwrap_or(&self.main);
        Ok(self.told(&carried, carried.total(&read(on)?)))
    }
}

fn lost() -> Error {
    Error::errno(libc::EIO, "nobody knows what was counted")
        .why("a system call failed while this group and a smaller one changed places")
        .remedy("close the handle and open it again")
}

/// All that was counted, by two, or less these.
fn put_together(a: &PlainCounts, b: &PlainCounts, with: impl Fn(u64, u64) -> u64) -> PlainCounts {
    PlainCounts {
        time: Times {
            enabled: with(a.time.enabled, b.time.enabled),
            running: with(a.time.running, b.time.running),
        },
        slots: with(a.slots, b.slots),
        counter: std::array::from_fn(|k| with(a.counter[k], b.counter[k])),
        ..*a
    }
}

impl CarriedCounts {
    /// What both have counted, if the one that is switched on has counted this.
    fn total(&self, counts: &PlainCounts) -> PlainCounts {
        put_together(counts, &self.away, u64::wrapping_add)
    }

    /// The totals go on from these, now that the one that is on has counted this: what came between is the library's own work.
    fn go_on(&mut self, total: &PlainCounts, on: &PlainCounts) {
        self.away = put_together(total, on, u64::wrapping_sub);
        self.looked = total.time.enabled;
    }
}

impl<K: Kernel + Clone> PlainCounters for RelievedGroup<K> {
    fn counts(&self) -> Result<PlainCounts> {
        let Some(wanted) = &self.wanted else { return self.main.counts() };
        if self.is_lost.get() {
            return Err(lost());
        }
        let carried = self.carried.get(|carried| *carried);
        if let Some(spare) = self.spare.get().filter(|_| carried.is_over && !self.is_off.get()) {
            return self.counts_over(spare, &SignalBlock::new());
        }
        let now = self.on().counts()?;
        let goes_over = !self.is_off.get() && !self.is_refused.get() && self.is_starved(wanted, now.time);
        let gone = if goes_over { self.go_over(wanted, &SignalBlock::new())? } else { None };
        Ok(gone.unwrap_or_else(|| self.told(&carried, carried.total(&now))))
    }

    fn last_counts(&self) -> Result<PlainCounts> {
        self.counts_of_both(PlainGroup::last_counts)
    }

    fn counts_itself(&self) -> bool {
        self.main.counts_itself()
    }

    fn calls(&self) -> u64 {
        self.main.calls() + self.spare.get().map_or(0, PlainGroup::calls)
    }

    fn second(&self) -> Option<&Shared> {
        self.second
    }

    fn snapshot(&self, entry: &Entry, out: &mut CountersSnapshot) -> Option<()> {
        let carried = self.carried.get(|carried| *carried);
        let CarriedCounts { is_over, away, stretches, looked, .. } = carried;
        let on = match is_over {
            true => self.spare.get().filter(|_| self.second.is_some())?,
            false => &self.main,
        };
        on.snapshot(entry, out)?;
        out.goes_with_entry &= !MEASURES_ITSELF || entry.is_second == is_over;
        out.counter[1 + out.count..].fill(PlainCounter::default());
        for (counter, more) in out.counter[1..].iter_mut().zip(away.counter).take(out.count) {
            counter.base = counter.base.wrapping_add(more);
        }
        out.slots_away = out.slots_away.wrapping_add(away.slots);
        let ran = out.clock.zero.running.wrapping_add(out.ns);
        let zero = &mut out.clock.zero;
        zero.enabled = zero.enabled.wrapping_add(away.time.enabled);
        zero.running = zero.running.wrapping_add(away.time.running);
        out.stretches = stretches;
        if is_over {
            let enabled = out.clock.zero.enabled.wrapping_add(out.ns);
            let looked = enabled.wrapping_sub(looked);
            if looked >= LOOKS_AFTER_NS {
                return None; // read(2) looks
            }
            // (then readings are to take the slow path: at the pace so far, and a quarter more)
            let leader = &mut out.counter[0];
            let counted = leader.base.wrapping_add(leader.raw).wrapping_mul(out.slots_each);
            let pace = counted as f64 / ran.max(1) as f64;
            let left = 5.0 / 3.0 * pace * (LOOKS_AFTER_NS - looked) as f64; // (less a quarter: `margin`)
            leader.left = leader.left.min(left as u64 + LEAST_LEFT);
            (out.is_second, out.is_level_1) =
                (true, self.wanted.as_ref().is_some_and(|wanted| wanted.is_shallower));
        }
        Some(())
    }

    fn reader(&self) -> Option<(Reader, usize)> {
        self.main.reader()
    }
}
