//! A change of the window, on its way: what read(2) tells goes into the totals, and the next window begins.
#![forbid(unsafe_code)]

use super::window::{RegisterContents, StartKind, Window};
use super::{WindowedSource, interrupted};
use crate::bound::{MOST_WHILE_HANDLED, WORK_BY_READ};
use crate::budget::Budget;
use crate::error::Result;
use crate::read::{MetricsCounters, PageSchedule, Snapshot};
use crate::registers::Registers;
use crate::sys::kept::ValueChange;

/// How often the group is read until it was read without a context switch beside it.
const MOST_READS: u32 = 8;

pub(super) struct Renewal<'a> {
    pub source: &'a WindowedSource<dyn MetricsCounters>,
    pub change: ValueChange<'a, Window>,
}

impl Renewal<'_> {
    /// The window as it will be.
    pub fn window(&mut self) -> &mut Window {
        self.change.value()
    }

    /// A change was interrupted by a signal handler's, or left in it. It may have read the group, after which the registers
    /// start from zero, and the thread may have been switched out right then.
    pub fn interrupted(&mut self) {
        let sequence = self.source.counters.scheduled().sequence();
        let window = self.window();
        window.holds = RegisterContents::Unknown;
        window.interrupted += 1;
        window.totals.may_be_off_by(WORK_BY_READ); // the library's own work that was to be skipped
        if window.sequence != sequence {
            window.origin.doubt();
        }
    }

    /// Before each system call: what it tells would be lost, and what it does would be undone unseen, if a signal handler
    /// has changed the window meanwhile.
    fn goes_on(&self) -> Result<()> {
        if self.change.goes_on() { Ok(()) } else { Err(interrupted()) }
    }

    /// A read(2) has told so many slots. If a signal handler's change has taken effect meanwhile, and was told no more, the
    /// read(2) came after: the registers do not hold what that change left in them.
    fn was_told(&self, slots: u64) {
        let came_after = |window: &Window| slots >= window.totals.counted_slots();
        if !self.change.goes_on() && self.source.window.look(came_after) {
            self.source.read_after_handler.set(true);
        }
    }

    /// read(2) of the group, until it is known what the registers hold. Returns the first reading of the next window, or of the
    /// next period, if readings come from the registers and this one can.
    ///
    /// The read(2) zeroes the registers only if it finds the group running; and a task that is switched
    /// out right after it, before it ran an instruction that counts, may come back to registers that
    /// hold another program's numbers (kernel-facts I). The page's sequence number tells: if it is the
    /// same on both sides of the read(2), neither happened.
    pub fn renew(&mut self, next: StartKind) -> Result<Option<Snapshot>> {
        let mut held_this_window = self.window().holds == RegisterContents::ThisWindow;
        self.window().holds = RegisterContents::Unknown;
        let mut begins = None;
        for _ in 0..MOST_READS {
            match self.read_group(held_this_window)? {
                RenewalOutcome::Undisturbed(start) => {
                    self.window().holds = RegisterContents::ThisWindow;
                    begins = Some(start);
                    break;
                }
                RenewalOutcome::Unseen => break,
                RenewalOutcome::BesideSwitch => {}
                RenewalOutcome::Suspect(start) => {
                    self.window().suspect(Some(start));
                    held_this_window = false;
                }
            }
        }
        if next == StartKind::Period {
            self.window().begin_period(begins.is_none());
        }
        self.source.change_budget(Budget::restarted);
        let begins = begins.filter(|_| self.source.reads_registers());
        let counts_itself = self.source.counters.access().counts_itself();
        let window = self.window();
        match &begins {
            Some(start) => window.begin_at(start, next),
            None => {
                if counts_itself {
                    window.totals.may_be_off_by(WORK_BY_READ);
                }
                window.begin(next);
            }
        }
        Ok(begins)
    }

    /// One read(2) of the group, and what the registers and the page say on both sides of it.
    fn read_group(&mut self, held_this_window: bool) -> Result<RenewalOutcome> {
        let counters = &self.source.counters;
        self.goes_on()?;
        let known = self.window().totals.times();
        let end = counters.registers(known);
        let before = counters.scheduled();
        let counts = counters.counts()?;
        self.was_told(counts.slots);
        let enabled = counts.time.since(self.window().begun).enabled;
        self.mind_wrap(enabled);
        let after = counters.scheduled();
        let start = counters.registers(counts.time);

        // an overflow reset the registers, and the kernel's account may be short of what was shown
        let last = self.source.last_slots.get(self.window().number());
        let went_back = held_this_window && end.is_some_and(|end| end.registers.slots.0 < last);
        let at_rest = matches!(before, PageSchedule::In(_)) && before == after;
        // where that cannot be seen: it counted all the time, so it did when it was read
        let access = counters.access();
        let zeroed = at_rest || (access.runs_while_enabled() && self.window().totals.ran_throughout(&counts));
        let switches = self.window().switches_by(after);
        let limit = self.source.budget.get().limit();
        let most_slots_per_ns = self.source.most_slots_per_ns;
        let window = self.window();
        window.add_counts(&counts, switches, zeroed, end.filter(|_| held_this_window), most_slots_per_ns);
        if went_back {
            window.totals.add_unknown(limit);
        }
        window.sequence = before.sequence();
        window.beside = counts.beside;
        Ok(match (end, start) {
            (Some(_), Some(start)) if at_rest && PageSchedule::In(start.sequence) == after => {
                RenewalOutcome::Undisturbed(start)
            }
            (Some(_), Some(start)) => RenewalOutcome::Suspect(start),
            _ => {
                window.multiplexed = true;
                if end.is_some() {
                    window.origin.doubt();
                }
                // A switch right after the read(2) may leave another program's PERF_METRICS, and SLOTS that the kernel
                // has cleared (kernel-facts C.4): once more. Without a switch this thread has run since, and is safe.
                if before.sequence() == after.sequence() || !access.counts_itself() {
                    return Ok(RenewalOutcome::Unseen);
                }
                window.origin.is_foreign(true);
                RenewalOutcome::BesideSwitch
            }
        })
    }

    /// A cheaper window: read(2) of the leader alone, right after the registers said how its slots divide. None if
    /// the thread was switched out on the way.
    pub fn close_by_registers(&mut self, reading: &Snapshot) -> Result<Option<Snapshot>> {
        let counters = &self.source.counters;
        let end = counters.registers(self.window().totals.times());
        let Some(end) = end.filter(|end| end.sequence == reading.sequence) else { return Ok(None) };
        // a signal handler has read more than this reading, or has executed what is not the library's own work: that counts
        let number = self.window().number();
        let shown_since = |closed: Registers| self.source.last_slots.get(number) > closed.slots.0;
        let handled = end.registers.slots.0.saturating_sub(reading.registers.slots.0) > MOST_WHILE_HANDLED;
        let last = if handled || shown_since(reading.registers) { &end } else { reading };
        let closed_at = last.registers;
        self.goes_on()?;
        // what the kernel counted until it read is this thread's, whatever happens then
        let (slots, time) = counters.slots()?;
        self.was_told(slots);
        let limit = self.source.budget.get().limit();
        let window = self.window();
        let switches = window.switches(end.sequence);
        let closed = window.totals.close_by_registers(
            closed_at,
            end.registers,
            shown_since(closed_at),
            switches,
            slots,
            time,
        );
        if closed.is_none() {
            // somebody reset the registers: the kernel's account tells, but it may be short of what was shown
            window.holds = RegisterContents::Unknown;
            window.totals.add_unknown(limit);
            return Ok(None);
        }
        window.sequence = Some(end.sequence);
        let start = counters.registers(time);
        let Some(start) = start.filter(|start| start.sequence == end.sequence) else {
            window.holds = RegisterContents::Unknown;
            window.suspect(start);
            window.begin(StartKind::Window);
            return Ok(None);
        };
        self.source.change_budget(|budget| budget.opened(reading.pace, start.pace));
        // (what a signal handler has shown counts, whatever it was)
        self.window().beside = if shown_since(closed_at) { start.beside() } else { last.beside() };
        self.window().begin_at(&start, StartKind::Window);
        Ok(Some(start))
    }

    /// What the kernel has counted, told to another thread than the handle's.
    pub fn read_from_outside(&mut self) -> Result<()> {
        self.window().holds = RegisterContents::Unknown;
        let counts = self.source.counters.counts()?;
        let page = self.source.counters.scheduled();
        let most_slots_per_ns = self.source.most_slots_per_ns;
        let window = self.window();
        let switches = window.switches_by(page);
        window.add_counts(&counts, switches, false, None, most_slots_per_ns);
        window.beside = counts.beside;
        window.sequence = page.sequence();
        window.begin(StartKind::Window);
        Ok(())
    }

    /// All slots may be wrong if SLOTS, which is 48 bits wide, can have come round since anybody looked.
    pub fn mind_wrap(&mut self, enabled_ns: u64) {
        if self.source.unchecked_ms(enabled_ns) > self.source.wraps_after_ms {
            self.window().totals.may_be_off_by(1 << 48);
        }
    }
}

/// What came of a read(2) of the group.
enum RenewalOutcome {
    /// It zeroed the registers, which hold this and nothing else.
    Undisturbed(Snapshot),
    /// The thread was switched out beside it: the registers, which now say this, may hold another task's slots.
    Suspect(Snapshot),
    /// The registers cannot be seen, and no switch was.
    Unseen,
    /// They cannot be seen, and there was a switch.
    BesideSwitch,
}
