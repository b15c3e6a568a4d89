//! The present window of the registers: where the totals stood as it began, and what is known of the registers since.
#![forbid(unsafe_code)]

use crate::bound::{MOST_WHILE_HANDLED, switches_between};
use crate::model::{self, perf_metrics::MOST_MOVED};
use crate::read::{GroupCounts, PageSchedule, Snapshot};
use crate::registers::RawSlots;
use crate::sample::{Base, CATEGORIES, Head, TD_SAMPLE_COARSE_TIME};
use crate::sys::page::Times;
use crate::totals::WindowTotals;
use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

/// What a read(2) of the group starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    /// A window of the registers: the totals go on.
    Window,
    /// A period: they start from zero.
    Period,
}

/// The totals as read(2) told them last, and the window of the registers that began there.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub totals: WindowTotals,
    /// Times when the period began.
    pub begun: Times,
    /// The sequence number right before the last read(2).
    pub sequence: Option<u32>,
    pub holds: RegisterContents,
    pub origin: Origin,
    /// The group was multiplexed in this period: windows are closed by read(2) of the group, since the kernel's own account
    /// of the categories is worth its price.
    pub multiplexed: bool,
    /// Changes that a signal handler has interrupted or left since: each may have read the group.
    pub interrupted: u64,
    /// `WindowedSource::own_error` as far as it is in the totals.
    pub own_error: u64,
    /// What was counted beside the registers when the period began, and where the totals are from.
    pub beside_begun: [u64; MOST_MOVED],
    pub beside: [u64; MOST_MOVED],
    /// What samples of this window would be were registers and clock at zero, as far as that is known at its beginning.
    pub start: Head,
}

/// What the registers hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterContents {
    /// What has come since the last read(2), and nothing else: readings can come from them.
    ThisWindow,
    /// Something else, or nobody knows: only read(2) tells.
    Unknown,
}

/// Whose slots the kernel counts until the next read(2) of the group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// This target's alone.
    Own,
    /// Descheduled during a reset and not observed since: another task's may be among them.
    Uncertain,
    /// Another task's are among them.
    Foreign,
    /// Another task's are among them, and may be among those until the read(2) after the next.
    ForeignThenUncertain,
}

impl Origin {
    /// Another task's may be among them.
    pub fn doubt(&mut self) {
        *self = match self {
            Origin::Own | Origin::Uncertain => Origin::Uncertain,
            Origin::Foreign | Origin::ForeignThenUncertain => Origin::ForeignThenUncertain,
        };
    }

    /// Whether another task's are among them: known to be, or known not to be.
    pub fn is_foreign(&mut self, foreign: bool) {
        *self = match (foreign, *self) {
            (false, Origin::Own | Origin::Foreign) => Origin::Own,
            (false, Origin::Uncertain | Origin::ForeignThenUncertain) => Origin::Uncertain,
            (true, Origin::Own | Origin::Foreign) => Origin::Foreign,
            (true, Origin::Uncertain | Origin::ForeignThenUncertain) => Origin::ForeignThenUncertain,
        };
    }

    /// The group was read: what was foreign is over. Returns whether it was.
    pub fn take_foreign(&mut self) -> bool {
        let foreign = matches!(self, Origin::Foreign | Origin::ForeignThenUncertain);
        self.is_foreign(false);
        foreign
    }
}

impl Window {
    pub fn first(start: Head) -> Window {
        Window {
            totals: WindowTotals::default(),
            begun: Times::default(),
            sequence: None,
            holds: RegisterContents::Unknown,
            origin: Origin::Own,
            multiplexed: false,
            interrupted: 0,
            own_error: 0,
            beside_begun: [0; MOST_MOVED],
            beside: [0; MOST_MOVED],
            start,
        }
    }

    pub fn number(&self) -> u32 {
        self.start.base.window
    }

    /// How often the registers were saved and restored since the window began.
    pub fn switches(&self, sequence: u32) -> u64 {
        self.sequence.map_or(0, |from| switches_between(from, sequence))
    }

    /// The same, if anything can tell.
    pub fn switches_by(&self, page: PageSchedule) -> u64 {
        page.sequence().map_or(0, |to| self.switches(to))
    }

    /// The period's enabled time.
    pub fn enabled_ns(&self, now: &Snapshot) -> u64 {
        now.clock.zero_since(self.begun).enabled.wrapping_add(now.ns)
    }

    /// A switch right after the registers were zeroed: what they hold now is this thread's, or not.
    pub fn suspect(&mut self, start: Option<Snapshot>) {
        let slots = start.map_or(0, |start| start.registers.slots.0);
        self.totals.may_be_off_by(slots.min(MOST_WHILE_HANDLED));
        self.origin.is_foreign(slots > MOST_WHILE_HANDLED);
        if start.is_none() {
            self.origin.doubt();
        }
    }

    /// Adds what the kernel counted to the totals, if it is this target's. `end`: the registers right before, if they held this
    /// window's.
    pub fn add_counts(
        &mut self,
        counts: &GroupCounts,
        switches: u64,
        zeroed: bool,
        end: Option<Snapshot>,
        most_slots_per_ns: f64,
    ) {
        // a read(2) that is not known of rounded as a switch does
        let switches = switches.saturating_add(std::mem::take(&mut self.interrupted));
        let counted = self.totals.since(counts);
        let most = self.totals.most_since(counts);
        let beyond = counted.saturating_sub(most.unwrap_or(u64::MAX));
        if self.origin.take_foreign() || beyond > MOST_WHILE_HANDLED {
            // among them another program's: none can be told from the others, and all that may have passed is missing
            self.totals.discard(counts, zeroed);
            self.totals.may_be_off_by(most.unwrap_or(MOST_WHILE_HANDLED));
            return;
        }
        self.totals.may_be_off_by(beyond);
        if self.origin == Origin::Uncertain && counted > 0 {
            self.origin = Origin::Own;
            self.totals.may_be_off_by(counted);
            let ran = counts.time.since(self.totals.times()).running;
            if counted > (ran as f64 * most_slots_per_ns) as u64 + MOST_WHILE_HANDLED {
                self.totals.discard(counts, zeroed); // more than can have passed
                return;
            }
        }
        // registers that hold less than the kernel counted were reset by somebody else; an overflow
        // interrupt that does so after a switch makes the kernel count twice (kernel-facts B.8)
        if let (true, Some(end)) = (switches > 0, end) {
            let beyond = counted.saturating_sub(end.registers.slots.0);
            self.totals.may_be_off_by(if beyond > MOST_WHILE_HANDLED { beyond } else { 0 });
        }
        self.totals.add_counts(counts, switches, zeroed);
    }

    /// Starts a period: all totals are zero from here on.
    pub fn begin_period(&mut self, multiplexed: bool) {
        self.totals.restart();
        self.begun = self.totals.times();
        self.beside_begun = self.beside;
        self.multiplexed = multiplexed;
    }

    /// Notes where the totals stand as the registers start from zero.
    pub fn begin(&mut self, next: StartKind) {
        let base = &mut self.start.base;
        if next == StartKind::Period {
            base.period = base.period.wrapping_add(1);
            base.window = base.first_window();
        } else {
            base.window = base.window.wrapping_add(1);
        }
        base.sequence = self.sequence.unwrap_or(0);
        base.error = self.totals.error;
        base.category = Base::keep(&self.totals.category);
        base.switches = 0;
        self.start.flags &= !TD_SAMPLE_COARSE_TIME;
        self.start.slots = self.totals.slots;
        self.start.slots_before = self.totals.slots;
        self.start.time_is(self.totals.times().since(self.begun), 0);
    }

    /// As `begin`, at this first reading: what the registers hold by now is the library's own work.
    /// (More than that can be is a signal handler's, and counts.)
    pub fn begin_at(&mut self, start: &Snapshot, next: StartKind) {
        if start.registers.slots.0 <= MOST_WHILE_HANDLED {
            let mut parts = start.registers.split();
            model::move_parts(self.start.base.model, counted_since(start.beside(), self.beside), &mut parts);
            self.totals.skip(start.registers.slots, &parts);
        }
        self.begin(next);
    }
}

/// What counters beside the registers counted between.
pub(super) fn counted_since(now: [u64; MOST_MOVED], then: [u64; MOST_MOVED]) -> [u64; MOST_MOVED] {
    std::array::from_fn(|k| now[k].wrapping_sub(then[k]))
}

/// SLOTS of the last reading, and its window: if it goes back in one window, somebody else reset the registers. In one word,
/// which a signal handler does not see or leave half written: 48 bits of SLOTS, and 16 of the window's number.
#[derive(Default)]
pub(super) struct LastSlots(Cell<u64>);

impl LastSlots {
    pub fn set(&self, window: u32, slots: RawSlots) {
        self.0.set(u64::from(window) << 48 | slots.0 & ((1 << 48) - 1));
    }

    /// Of this window; 0 if it was another's.
    pub fn get(&self, window: u32) -> u64 {
        let last = self.0.get();
        if last >> 48 == u64::from(window as u16) { last & ((1 << 48) - 1) } else { 0 }
    }
}

/// The library's own work after a window began, which does not count: slots, and how they divide.
#[derive(Default)]
pub(super) struct OwnSlots {
    /// The window that it is of.
    window: Cell<Option<u32>>,
    slots: Cell<(RawSlots, [i64; CATEGORIES])>,
}

impl OwnSlots {
    pub fn set(&self, window: u32, slots: RawSlots, parts: &[i64; CATEGORIES]) {
        self.forget();
        compiler_fence(Ordering::SeqCst);
        self.slots.set((slots, *parts));
        compiler_fence(Ordering::SeqCst);
        self.window.set(Some(window));
    }

    pub fn forget(&self) {
        self.window.set(None);
    }

    pub fn of(&self, window: u32) -> Option<(RawSlots, [i64; CATEGORIES])> {
        (self.window.get() == Some(window)).then(|| self.slots.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Clock;
    use crate::registers::{RawMetrics, Registers};

    const MOST_PER_NS: f64 = 48.0;

    /// The kernel has counted so many slots, all retiring, in as many nanoseconds.
    fn counts(slots: u64) -> GroupCounts {
        let category = [slots, 0, 0, 0, 0, 0, 0, 0];
        GroupCounts {
            slots,
            category,
            time: Times { enabled: slots, running: slots },
            ..GroupCounts::default()
        }
    }

    fn holding(slots: u64) -> Snapshot {
        let registers = Registers { slots: RawSlots(slots), metrics: RawMetrics(0xff) };
        Snapshot {
            registers,
            sequence: 2,
            clock: Clock::default(),
            ns: 0,
            pace: 0,
            beside: Default::default(),
        }
    }

    fn window(origin: Origin) -> Window {
        Window { origin, ..Window::first(Head::default()) }
    }

    impl Window {
        fn add(&mut self, counts: &GroupCounts, switches: u64, end: Option<Snapshot>) {
            self.add_counts(counts, switches, true, end, MOST_PER_NS);
        }
    }

    #[test]
    fn slots_of_unknown_origin_count_and_are_all_in_the_bound_once() {
        let mut window = window(Origin::Uncertain);
        window.add(&counts(0), 0, None);
        assert!(window.origin == Origin::Uncertain, "nothing was counted, so nothing is known yet");
        window.add(&counts(255_000), 0, None);
        assert_eq!((window.totals.slots, window.totals.error), (255_000, 255_000 + 1_001));
        assert!(window.origin == Origin::Own);
        window.add(&counts(510_000), 0, None);
        assert_eq!((window.totals.slots, window.totals.error), (510_000, 255_000 + 2 * 1_001));
    }

    #[test]
    fn more_slots_than_can_have_passed_are_left_out() {
        let mut window = window(Origin::Uncertain);
        let slots = 48 * 1_000 + MOST_WHILE_HANDLED + 1;
        let time = Times { enabled: 1_000, running: 1_000 };
        window.add(&GroupCounts { time, ..counts(slots) }, 0, None);
        assert_eq!((window.totals.slots, window.totals.error), (0, slots));
    }

    #[test]
    fn foreign_slots_are_left_out_and_uncertainty_outlasts_them() {
        for (origin, after) in
            [(Origin::Foreign, Origin::Own), (Origin::ForeignThenUncertain, Origin::Uncertain)]
        {
            let mut window = window(origin);
            window.add(&counts(1_000_000), 0, None);
            assert_eq!((window.totals.slots, window.totals.error), (0, MOST_WHILE_HANDLED));
            assert!(window.origin == after);
        }
    }

    #[test]
    fn beyond_what_the_cycles_allow_slots_are_anothers() {
        let most = |slots, most| GroupCounts { most: Some(most), ..counts(slots) };
        let mut window = window(Origin::Own);
        window.add(&most(0, 0), 0, None);
        window.add(&most(255_000, 254_000), 0, None);
        assert_eq!((window.totals.slots, window.totals.error), (255_000, 1_000 + 1_001));
        window.add(&most(1_255_000, 354_000), 0, None);
        assert_eq!((window.totals.slots, window.totals.error), (255_000, 2_001 + 100_000), "left out");
    }

    #[test]
    fn registers_that_hold_less_than_was_counted_over_a_switch_are_in_the_bound() {
        for (switches, held, beyond) in
            [(0, 100_000, 0), (1, 255_000 - MOST_WHILE_HANDLED, 0), (1, 100_000, 155_000)]
        {
            let mut window = window(Origin::Own);
            window.add(&counts(255_000), switches, Some(holding(held)));
            assert_eq!(window.totals.error, beyond + 1_001 + 2 * switches * 1_001, "{switches} {held}");
        }
    }

    #[test]
    fn a_change_that_a_handler_interrupted_rounds_as_a_switch_does() {
        let mut window = window(Origin::Own);
        window.interrupted = 2;
        window.add(&counts(255_000), 1, None);
        assert_eq!((window.totals.error, window.interrupted), (7 * 1_001, 0));
    }

    #[test]
    fn a_switch_as_the_registers_were_zeroed_makes_them_suspect() {
        let mut window = window(Origin::Own);
        window.suspect(Some(holding(MOST_WHILE_HANDLED)));
        assert!(window.origin == Origin::Own);
        window.suspect(Some(holding(MOST_WHILE_HANDLED + 1)));
        assert!(window.origin == Origin::Foreign);
        assert_eq!(window.totals.error, 2 * MOST_WHILE_HANDLED);
        window.suspect(None);
        assert!(window.origin == Origin::Uncertain, "nobody has seen them since");
    }

    #[test]
    fn slots_seen_last_are_those_of_the_window_alone() {
        let last = LastSlots::default();
        last.set(7, RawSlots(1 << 40));
        assert_eq!((last.get(7), last.get(8)), (1 << 40, 0));
        last.set(8, RawSlots((1 << 48) - 1));
        assert_eq!(last.get(8), (1 << 48) - 1);
    }
}
