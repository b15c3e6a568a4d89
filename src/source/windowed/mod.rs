//! SLOTS and PERF_METRICS, read by RDPMC or read(2): windows of the registers, one after the other, added up in totals.
//!
//! A reading on the fast path (src/read) is the totals at the window's start plus the registers. The rest is here: the first
//! reading after a context switch, a new window when the budget has one, readings by read(2).
#![forbid(unsafe_code)]

mod renewal;
mod window;

use super::remembered::{ReadingRing, key};
use super::{MOST_TRIES, Source, interrupted, no_mark, registers_of, stale_mark};
use crate::bound::{MOST_WHILE_HANDLED, UNCHECKED_MS, uncounted_part, wraps_after_ns};
use crate::budget::{Budget, BudgetSettings};
use crate::error::Result;
use crate::model::perf_metrics::MOST_MOVED;
use crate::model::{self, slots_per_ns};
use crate::read::{Access, Entry, MetricsCounters, PageSchedule, SeenRegisters, Shared, Snapshot};
use crate::registers::{CATEGORIES, RawSlots, Registers};
use crate::sample::{
    CALLED, Head, Mark, OF_READINGS, Sample, SlotsOnly, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_UNBOUNDED, ms,
};
use crate::sys::kept::ThreadValue;
use crate::sys::page::{PLAIN_WIDTH, PlainCounter, Times};
use renewal::Renewal;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use window::{LastSlots, OwnSlots, RegisterContents, StartKind, Window, counted_since};

/// A group with SLOTS and PERF_METRICS, and the windows of its registers.
pub(crate) struct WindowedSource<C: ?Sized> {
    window: ThreadValue<Window>,
    last_slots: LastSlots,
    own_work: OwnSlots,
    /// Slots of its own work that are in the totals, so far, at the most.
    own_error: AtomicU64,
    shown: ReadingRing<PageStart>,
    /// When the registers were last known not to have been reset by somebody else, as `Base::checked_ms`.
    checked_ms: Cell<u32>,
    budget: Cell<Budget>,
    /// A read(2) may have come after a signal handler's change: the registers do not hold what they should.
    read_after_handler: Cell<bool>,
    /// No more can pass.
    most_slots_per_ns: f64,
    /// It takes SLOTS longer than this to come round.
    wraps_after_ms: u32,
    counters: C,
}

/// What samples start from since the page was last looked at. Marks are of one of these.
#[derive(Clone, Copy, Default)]
struct PageStart {
    start: Head,
    ns: u64,
    /// The library's own work right after, which does not count.
    own_work: (RawSlots, [i64; CATEGORIES]),
    /// What the counters beside the registers said at that reading, and their totals without.
    said: [u64; MOST_MOVED],
    beside: [u64; MOST_MOVED],
    /// What SLOTS said at the reading that showed this, and the bound of that reading.
    from: u64,
    error: u64,
}

/// What became of a change.
enum Changed {
    /// The window begins at the snapshot, if readings are those of the registers; the number of the change.
    To(Option<Snapshot>, u32),
    /// A signal handler used the handle meanwhile: it did not take effect, or is not the latest any more.
    Not,
}

/// What a reading of the registers comes to.
#[allow(clippy::large_enum_variant)] // readings allocate nothing
enum RegistersReading {
    /// It was told; SLOTS said this.
    Reading(RawSlots),
    /// This snapshot is to end this window, after which the budget stands so.
    EndOfWindow(Snapshot, u32, Budget),
    /// The registers are not there, somebody else reset them, or a signal handler came between.
    Nothing,
}

impl<C: MetricsCounters + 'static> WindowedSource<C> {
    /// Starts the first period. `start`: what its samples have in common.
    // (a frame of its own: it is large)
    #[inline(never)]
    pub fn new(
        counters: C,
        shared: &Shared,
        mut start: Head,
        settings: BudgetSettings,
    ) -> Result<Box<WindowedSource<C>>> {
        if counters.scheduled() == PageSchedule::Unknown {
            start.flags |= TD_SAMPLE_UNBOUNDED; // nobody counts how often the registers are saved and restored
        }
        let mut source = Box::new(WindowedSource {
            counters,
            window: ThreadValue::new(Window::first(start)),
            last_slots: LastSlots::default(),
            own_work: OwnSlots::default(),
            own_error: AtomicU64::new(0),
            shown: ReadingRing::new(),
            checked_ms: Cell::new(0),
            budget: Cell::new(Budget::new(settings)),
            read_after_handler: Cell::new(false),
            most_slots_per_ns: slots_per_ns(settings.slots_per_cycle),
            wraps_after_ms: ms(wraps_after_ns(settings.slots_per_cycle)),
        });
        match source.reset(shared) {
            Ok(()) => Ok(source),
            Err(error) => {
                source.free();
                Err(error)
            }
        }
    }

    /// Ends it, where no call on it was interrupted.
    pub fn free(&mut self) {
        self.shown.free();
    }

    /// The group.
    pub fn counters(&self) -> &C {
        &self.counters
    }

    /// The group, to be changed.
    pub fn counters_mut(&mut self) -> &mut C {
        &mut self.counters
    }
}

// (once, whatever counts)
impl WindowedSource<dyn MetricsCounters> {
    fn change_budget(&self, change: impl FnOnce(&mut Budget)) {
        let mut budget = self.budget.get();
        change(&mut budget);
        self.budget.set(budget);
    }

    fn reads_registers(&self) -> bool {
        self.counters.access() == Access::Rdpmc
    }

    /// Milliseconds for which nobody has looked whether the registers were reset, at that enabled time.
    fn unchecked_ms(&self, enabled_ns: u64) -> u32 {
        const HANDLERS_MS: u32 = 10_000;
        let unchecked = ms(enabled_ns).wrapping_sub(self.checked_ms.get());
        // a signal handler, which takes no longer than that, may have looked after that time was taken
        if unchecked > u32::MAX - HANDLERS_MS { 0 } else { unchecked }
    }

    /// Changes the window, if it is the one that the change is meant for, and shows readings where the next begins if
    /// that is at registers. Then `out` is the first. The fast path waits for `attach`.
    fn change(
        &self,
        shared: &Shared,
        of: Option<u32>,
        out: &mut Sample,
        work: impl FnOnce(&mut Renewal) -> Result<Option<Snapshot>>,
    ) -> Result<Changed> {
        let mut change = self.window.begin();
        let window = change.value();
        if of.is_some_and(|number| number != window.number()) {
            change.cancel();
            return Ok(Changed::Not);
        }
        shared.detach();
        if let Some((slots, parts)) = self.own_work.of(window.number()) {
            window.totals.skip(slots, &parts);
        }
        let own_error = self.own_error.load(Ordering::Relaxed);
        window.totals.may_be_off_by(own_error - std::mem::replace(&mut window.own_error, own_error));
        let distrust = self.read_after_handler.replace(false) || change.others;
        let mut renewal = Renewal { source: self, change };
        if distrust {
            renewal.interrupted();
        }
        let begins = work(&mut renewal);
        if begins.is_err() {
            // what read(2) may have told is lost, and will be told again
            *renewal.window() = self.window.get(|window| *window);
            renewal.interrupted();
        }
        let number = renewal.change.number;
        if !renewal.change.end() {
            return Ok(Changed::Not);
        }
        let begins = begins?;
        let Some((head, counted)) = self.show_new(shared, &begins, number) else { return Ok(Changed::Not) };
        let (registers, ns) =
            begins.as_ref().map_or_else(Default::default, |start| (start.registers, start.ns));
        *out = head.sample(registers, ns);
        self.put_beside(out, counted);
        Ok(Changed::To(begins, number))
    }

    /// The window that has begun is there for the fast path, too.
    fn attach(&self, shared: &Shared) {
        if let Some(reader) = self.counters.reader() {
            shared.attach(reader, self.counters.beside());
        }
    }

    /// What samples of the window that this change began start from. None if a signal handler has used the handle since.
    /// Then what was counted beside the registers, too.
    fn show_new(
        &self,
        shared: &Shared,
        begins: &Option<Snapshot>,
        number: u32,
    ) -> Option<(Head, [u64; MOST_MOVED])> {
        self.window.look(|window| match begins {
            Some(start) => {
                let counted = counted_since(start.beside(), window.beside_begun);
                self.show(shared, window, start, number).map(|head| (head, counted))
            }
            None => {
                let start = window.start;
                let counted = counted_since(window.beside, window.beside_begun);
                let newest = || self.window.is_newest(number);
                let shown =
                    PageStart { start, error: start.base.error, beside: counted, ..PageStart::default() };
                newest().then(|| self.remember(&shown, newest)).map(|()| (start, counted))
            }
        })
    }

    /// What was counted beside the registers in this period.
    #[inline(always)]
    fn put_beside(&self, out: &mut Sample, counted: [u64; MOST_MOVED]) {
        let count = self.counters.beside();
        out.counter[..count].copy_from_slice(&counted[..count]);
    }

    /// read(2) of the group: adds what the kernel has counted to the totals, and starts a window, or with it a period.
    /// `out`: its first reading.
    fn renew(&self, shared: &Shared, next: StartKind, out: &mut Sample) -> Result<()> {
        for _ in 0..MOST_TRIES {
            if let Changed::To(..) = self.change(shared, None, out, |renewal| renewal.renew(next))? {
                self.attach(shared);
                return Ok(());
            }
        }
        Err(interrupted())
    }

    /// The last step of a reading that began a window at `start` by the change of this number: the library's own work since
    /// then does not count either. What comes after is short. A signal handler's reading, which takes the slow path here, has
    /// some of that work in it; then it counts.
    fn skip_to_now(&self, shared: &Shared, start: &Snapshot, number: u32, out: &mut Sample) {
        let (place, window) = (self.shown.latest(), out.base.window);
        let now = (0..MOST_LOOKS).find_map(|_| self.counters.registers(start.time()));
        let own = now.and_then(|now| now.registers.slots.0.checked_sub(start.registers.slots.0));
        let (Some(now), Some(own)) = (now, own.filter(|own| *own <= MOST_WHILE_HANDLED)) else {
            // a signal handler, or others' turn: nobody knows how much is the library's
            return self.add_own_error(shared, place, 0, MOST_WHILE_HANDLED, out);
        };
        let after = uncounted_part(own, ONE_IN_AFTER_WINDOW);
        if now.sequence != start.sequence || !self.window.is_newest(number) {
            return self.add_own_error(shared, place, 0, own + after, out);
        }
        // (255 for the sum of the fields, in 16 bits behind the point: it is close, and there is no time to divide)
        let unit = (own << 16) / 255;
        let mut parts =
            std::array::from_fn(|k| ((unit * (now.registers.metrics.0 >> (8 * k) & 0xff)) >> 16) as i64);
        model::move_parts(out.base.model, counted_since(now.beside(), start.beside()), &mut parts);
        let own = Registers { slots: RawSlots(own), metrics: now.registers.metrics };
        self.own_work.set(window, own.slots, &parts);
        if !self.window.is_newest(number) {
            // it may have come over that of a signal handler's window
            self.own_work.forget();
            self.read_after_handler.set(true);
            return self.add_own_error(shared, place, 0, own.slots.0 + after, out);
        }
        shared.skip(own.slots, &parts, after, || self.window.is_newest(number));
        out.skip(own.slots, &parts);
        out.add(own, 0);
        for k in 0..self.counters.beside() {
            out.counter[k] = out.counter[k].wrapping_add(now.beside()[k].wrapping_sub(start.beside()[k]));
        }
        self.last_slots.set(window, now.registers.slots);
        self.own_error.fetch_add(after, Ordering::Relaxed);
        self.shown.update(place, |shown| {
            let mut of = shown.get();
            (of.own_work, of.from, of.error) = ((own.slots, parts), now.registers.slots.0, out.base.error);
            of.start.base.error += after;
            of.said = now.beside.map(|counter| counter.raw);
            shown.set(of);
            self.window.is_newest(number)
        });
    }

    /// Lets samples start from where this reading found page and clock, and returns what they start from. None if a signal
    /// handler has used the handle since the change of this number: the window may be another by now.
    #[inline(always)]
    fn show(&self, shared: &Shared, window: &Window, now: &Snapshot, number: u32) -> Option<Head> {
        let mut start = window.start;
        if let Some((slots, parts)) = self.own_work.of(start.base.window) {
            start.skip(slots, &parts);
        }
        start.time_is(now.clock.zero_since(window.begun), now.ns);
        start.flags &= !TD_SAMPLE_COARSE_TIME;
        start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        start.base.error += self.own_error.load(Ordering::Relaxed) - window.own_error;
        start.base.sequence = now.sequence;
        start.base.switches = window.switches(now.sequence).min(u16::MAX.into()) as u16;
        let newest = || self.window.is_newest(number);
        if !newest() {
            return None;
        }
        // (what a handler that comes from here on leaves is of another window, or as good)
        self.last_slots.set(start.base.window, now.registers.slots);
        let count = self.counters.beside();
        let mut limit = self.budget.get().limit();
        for counter in &now.beside[..count] {
            limit = limit.min(now.registers.slots.0.saturating_add(counter.left / 2)); // none comes round unseen
        }
        let beside = (&now.beside, &window.beside_begun, count);
        shared.restart_beside((now.clock.scale, limit), &start, beside, newest);
        let shown = PageStart {
            start,
            ns: now.ns,
            said: now.beside.map(|counter| counter.raw),
            beside: std::array::from_fn(|k| now.beside[k].base.wrapping_sub(window.beside_begun[k])),
            from: now.registers.slots.0,
            error: start.base.error,
            ..PageStart::default()
        };
        self.remember(&shown, newest);
        Some(start)
    }

    fn remember(&self, shown: &PageStart, newest: impl FnOnce() -> bool) {
        let base = &shown.start.base;
        self.shown.add(key(base.sequence, base.window), shown, newest);
        self.checked_ms.set(base.checked_ms);
    }

    /// A reading of the registers in this window, without a system call.
    fn read_registers(&self, shared: &Shared, seen: SeenRegisters, out: &mut Sample) -> RegistersReading {
        // (by the numbers of before)
        let beside = if self.counters.beside() > 0 { shared.seen_beside(out) } else { Default::default() };
        let number = self.window.next_number();
        // (the registers first: what is executed before counts)
        let Some(mut now) = self.registers() else { return RegistersReading::Nothing };
        self.window.look(|window| {
            if !self.are_of(window, &mut now, number) {
                return RegistersReading::Nothing;
            }
            now = seen_of(&now, seen, beside);
            let mut budget = self.budget.get();
            // to keep the next reading exact, or because it is long ago that the kernel's count was compared with the
            // registers, which an overflow resets
            let wanted = budget.wants_window(now.pace, now.registers.slots.0);
            if wanted || self.unchecked_ms(window.enabled_ns(&now)) > UNCHECKED_MS {
                return RegistersReading::EndOfWindow(now, window.number(), budget);
            }
            self.budget.set(budget);
            let Some(head) = self.show(shared, window, &now, number) else {
                return RegistersReading::Nothing;
            };
            *out = head.sample(now.registers, now.ns);
            self.put_beside(out, counted_since(now.beside(), window.beside_begun));
            RegistersReading::Reading(now.registers.slots)
        })
    }

    /// The last step of a reading at which SLOTS said this: what the library has executed since is in the totals, and in the bound;
    /// and what is executed beside that, which is not counted. `before`: on the way to the reading, too.
    fn bound_own_work(&self, shared: &Shared, from: RawSlots, before: bool, out: &mut Sample) {
        let place = self.shown.latest();
        let now = (0..MOST_LOOKS).find_map(|_| self.registers());
        let slots = now.and_then(|now| now.registers.slots.0.checked_sub(from.0));
        // (more than that is a signal handler's)
        let slots = slots.map_or(MOST_WHILE_HANDLED, |slots| slots.min(MOST_WHILE_HANDLED));
        let before = if before { uncounted_part(slots, ONE_IN_BEFORE) } else { 0 };
        self.add_own_error(shared, place, before, slots + uncounted_part(slots, ONE_IN_AFTER), out);
    }

    /// So many slots of the library's own work before a reading, and after it, are in the totals, at the most.
    fn add_own_error(&self, shared: &Shared, place: usize, before: u64, after: u64, out: &mut Sample) {
        out.base.error += before;
        self.own_error.fetch_add(before + after, Ordering::Relaxed);
        shared.add_error(before + after);
        self.shown.update(place, |shown| {
            let mut now = shown.get();
            (now.from, now.error) = (out.registers().slots.0, out.base.error);
            now.start.base.error += before + after;
            shown.set(now);
            true
        });
    }

    fn registers(&self) -> Option<Snapshot> {
        if self.reads_registers() { self.counters.registers(Times::default()) } else { None }
    }

    /// Whether the registers are of this window, and nobody else reset them. (A change that this signal handler has
    /// interrupted may just have zeroed them.)
    fn are_of(&self, window: &Window, now: &mut Snapshot, number: u32) -> bool {
        if now.clock.scale == 0 {
            now.clock.zero = now.clock.zero.latest(window.totals.times());
        }
        let last = self.last_slots.get(window.number());
        window.holds == RegisterContents::ThisWindow
            && !self.read_after_handler.get()
            && !self.window.unfinished()
            && now.registers.slots.0 >= last
            && self.window.is_newest(number)
    }

    /// Ends the window of this number at this snapshot, and returns the first of the next, if there is one.
    fn end_window(&self, shared: &Shared, now: &Snapshot, number: u32, out: &mut Sample) -> Result<Changed> {
        self.change(shared, Some(number), out, |renewal| {
            let enabled = renewal.window().enabled_ns(now);
            renewal.mind_wrap(enabled);
            if !renewal.window().multiplexed && renewal.window().holds == RegisterContents::ThisWindow {
                if let Some(start) = renewal.close_by_registers(now)? {
                    return Ok(Some(start));
                }
                return renewal.renew(StartKind::Window);
            }
            let start = renewal.renew(StartKind::Window)?;
            if let Some(start) = &start {
                self.change_budget(|budget| budget.opened(now.pace, start.pace));
            }
            Ok(start)
        })
    }
}

/// One in so many instructions of a reading on the slow path comes before the fast path has seen the registers, where it has not, and
/// after they are read last; and of what follows the read(2) that opens a window.
const ONE_IN_BEFORE: u64 = 3;
const ONE_IN_AFTER: u64 = 4;
const ONE_IN_AFTER_WINDOW: u64 = 2;

/// How often the registers are looked for, where something may have come between.
const MOST_LOOKS: u32 = 4;

/// This snapshot, with what the fast path saw of the registers, and of what is beside them, right before it, if they were of the same
/// stretch on the counters.
fn seen_of(now: &Snapshot, seen: SeenRegisters, beside: [PlainCounter; MOST_MOVED]) -> Snapshot {
    let own = now.registers.slots.0.wrapping_sub(seen.registers.slots.0);
    let is_before = (1..=now.registers.slots.0).contains(&seen.registers.slots.0);
    let mut all = Snapshot { registers: seen.registers, ..*now };
    let mut same = is_before && seen.sequence == now.sequence;
    for (now, seen) in all.beside.iter_mut().zip(beside).filter(|(now, _)| now.left != 0) {
        same &= seen.number == now.number && now.raw.wrapping_sub(seen.raw) <= own;
        now.raw = seen.raw;
    }
    if same { all } else { *now }
}

source_of_any!(WindowedSource<MetricsCounters>);

// (as `Source` has them)
impl WindowedSource<dyn MetricsCounters> {
    fn read(&self, shared: &Shared, seen: SeenRegisters, out: &mut Sample) -> Result<()> {
        for tries in 0..MOST_TRIES {
            shared.pause(); // a signal handler's readings are seen from here on
            let seen = if tries == 0 { seen } else { SeenRegisters::default() };
            let changed = match self.read_registers(shared, seen, out) {
                RegistersReading::Reading(slots) => {
                    let before = seen.is_later || slots != seen.registers.slots;
                    self.bound_own_work(shared, slots, before, out);
                    return Ok(());
                }
                RegistersReading::EndOfWindow(now, window, budget) => {
                    self.budget.set(budget);
                    self.end_window(shared, &now, window, out)?
                }
                RegistersReading::Nothing => {
                    self.change(shared, None, out, |renewal| renewal.renew(StartKind::Window))?
                }
            };
            match changed {
                Changed::To(Some(start), number) => {
                    self.skip_to_now(shared, &start, number, out);
                    self.attach(shared);
                    return Ok(());
                }
                // nothing since the read(2) can be seen
                Changed::To(None, _) => return Ok(()),
                Changed::Not => {}
            }
        }
        Err(interrupted())
    }

    /// No windows are opened for it if that can be helped.
    fn slots_only(&self, shared: &Shared) -> Result<SlotsOnly> {
        let number = self.window.next_number();
        let mut now = self.registers();
        let seen = now.as_mut().and_then(|now| {
            self.window.look(|window| {
                let here = self.are_of(window, now, number)
                    && self.unchecked_ms(window.enabled_ns(now)) <= UNCHECKED_MS;
                let head = if here { self.show(shared, window, now, number) } else { None };
                head.map(|head| head.sample(now.registers, now.ns))
            })
        });
        if let Some(sample) = seen {
            return Ok(sample.slots_only());
        }
        let mut out = Sample::default();
        self.renew(shared, StartKind::Window, &mut out)?;
        Ok(out.slots_only())
    }

    /// In a fresh window, if the budget allows. Returns whether it is.
    fn read_fresh(&self, shared: &Shared, new: bool, out: &mut Sample) -> Result<bool> {
        let window = self.window.get(Window::number);
        self.change_budget(|budget| budget.request_window(new));
        self.read(shared, SeenRegisters::default(), out)?;
        let fresh = self.window.get(Window::number) != window;
        // an execution begins here, and nothing ends: most of what follows the first reading comes before another one
        let first = *out;
        if fresh && shared.read(out).is_ok() {
            out.base.error -= out.base.error.saturating_sub(first.base.error) / 2;
        } else {
            *out = first;
        }
        Ok(fresh)
    }

    fn reset(&self, shared: &Shared) -> Result<()> {
        self.renew(shared, StartKind::Period, &mut Sample::default())
    }

    fn read_last(&self, shared: &Shared) -> Result<Sample> {
        let mut out = Sample::default();
        match self.change(shared, None, &mut out, |renewal| renewal.read_from_outside().map(|()| None))? {
            Changed::To(..) => Ok(out),
            Changed::Not => Err(interrupted()),
        }
    }

    fn mark(&self, shared: &Shared, _: std::result::Result<&Sample, Option<Entry>>) -> Result<Mark> {
        let mut sample = Sample::default();
        self.read(shared, SeenRegisters::default(), &mut sample)?;
        Ok(sample.mark())
    }

    fn sample_of(&self, mark: &Mark) -> Result<Sample> {
        let registers = registers_of(mark)?;
        let wanted = key(mark.sequence, mark.window);
        // (a mark is of the latest reading on the slow path that was before it, or is that)
        let before = |shown: &PageStart| shown.from <= registers.slots.0;
        let (_, PageStart { mut start, ns, own_work: (slots, parts), said, beside, from, error }) =
            self.shown.find_latest(wanted, before).ok_or_else(stale_mark)?;
        let is_it = key(start.base.sequence, start.base.window) == wanted;
        start.skip(slots, &parts);
        if from == registers.slots.0 {
            start.base.error = error;
        }
        let mut sample = start.sample(registers, ns);
        sample.flags |= TD_SAMPLE_COARSE_TIME | if mark.slots & CALLED != 0 { OF_READINGS } else { 0 };
        for k in 0..self.counters.beside() {
            // (a mark that is no more than that reading has none of them)
            let said = if from == mark.slots { said[k] } else { mark.counter[k] };
            if said >> PLAIN_WIDTH != 0 {
                return Err(no_mark());
            }
            if from != mark.slots && said >> (PLAIN_WIDTH - 1) == 0 {
                return Err(stale_mark()); // of a reading on the slow path that is not remembered: what counts says more
            }
            sample.counter[k] = beside[k].wrapping_add(said);
        }
        if is_it { Ok(sample) } else { Err(stale_mark()) }
    }

    fn budget(&self) -> Option<Budget> {
        Some(self.budget.get())
    }
}

#[cfg(test)]
mod tests;
