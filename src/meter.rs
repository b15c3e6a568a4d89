//! One handle's readings: windows of the registers, one after the other, added up in the ledger.
#![forbid(unsafe_code)]

use crate::error::{Error, Result, TD_ESTALE};
use crate::model::slots_per_ns;
use crate::pace::{Pace, Wish};
use crate::read::{Counters, Glance, Hot, Snapshot, Taken};
use crate::registers::{EDGE_SLOTS, RawMetrics, RawSlots, Registers};
use crate::sample::{
    Base, Mark, OF_READINGS, Sample, TD_SAMPLE_CLEARED, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_UNBOUNDED,
    TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE, UNCHECKED_MS, ms,
};
use crate::window::{Counts, HANDFUL, Ledger, Times, switches_between};

/// What a read(2) of the group starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A window of the registers: the totals go on.
    Window,
    /// A period: they start from zero.
    Period,
}

/// The state behind a handle's readings.
pub(crate) struct Meter {
    ledger: Ledger,
    /// Times when the period began.
    begun: Times,
    /// The sequence number right before the last read(2).
    sequence: Option<u32>,
    /// What the kernel counts until the next read(2) is, in part, another program's.
    foreign: bool,
    /// It may be: the counters were taken away as the registers were zeroed, and nobody saw them since.
    unsure: bool,
    /// Somewhere in this period saves and restores of the registers could not be counted.
    unbounded: bool,
    /// The registers hold what has come since the last read(2), and nothing else.
    attached: bool,
    /// SLOTS at the last reading: if it goes back, somebody else reset the registers.
    seen: u64,
    /// The group lost its turn in this period: the kernel's own account of the categories is worth its price.
    crowded: bool,
    /// What samples would be were registers and clock at zero.
    start: Sample,
    looks: Looks,
    /// No more can pass.
    slots_per_ns: f64,
    /// It takes SLOTS longer than this to come round.
    round_ms: u32,
    pub pace: Pace,
}

/// Slots of the library's own work for a reading by read(2), on the way in and on the way back.
const BY_READ: u64 = 32 * EDGE_SLOTS;

/// Looks that are remembered.
const LOOKS: usize = 64;

/// What samples were at the last looks at page and registers, the latest at one place and the older ones before it,
/// around the end: a mark is of one of them.
struct Looks {
    ring: Box<[Sample; LOOKS]>,
    latest: usize,
}

impl Looks {
    /// Remembers what samples start from.
    fn add(&mut self, start: &Sample, ns: u64) {
        let last = &self.ring[self.latest];
        if !start.is_like(last.base.sequence, last.base.window) {
            self.latest = (self.latest + 1) % LOOKS;
        }
        let look = &mut self.ring[self.latest];
        *look = *start;
        look.add(Registers::default(), ns);
    }

    fn latest(&mut self) -> &mut Sample {
        &mut self.ring[self.latest]
    }

    fn find(&self, mark: &Mark) -> Option<&Sample> {
        self.ring.iter().find(|look| look.size != 0 && look.is_like(mark.sequence, mark.window))
    }
}

impl Meter {
    /// Starts the first period. `start`: what its samples have in common.
    pub fn new(counters: &mut dyn Counters, hot: &Hot, start: Sample, wish: Wish) -> Result<Meter> {
        let mut meter = Meter {
            ledger: Ledger::default(),
            begun: Times::default(),
            sequence: None,
            foreign: false,
            unsure: false,
            unbounded: false,
            attached: false,
            seen: 0,
            crowded: false,
            start,
            looks: Looks { ring: Box::new([Sample::default(); LOOKS]), latest: 0 },
            slots_per_ns: slots_per_ns(wish.slots_per_cycle),
            round_ms: ms(((1u64 << 48) as f64 / slots_per_ns(wish.slots_per_cycle)) as u64),
            pace: Pace::new(wish),
        };
        meter.renew(counters, hot, Next::Period)?;
        Ok(meter)
    }

    /// read(2) of the group: takes what the kernel has counted into the ledger, and starts a window, or
    /// with it a period.
    ///
    /// The read(2) zeroes the registers only if it finds the group running; and a task that is switched
    /// out right after it, before it ran an instruction that counts, may come back to registers that
    /// hold another program's numbers (kernel-facts I). The page's sequence number tells: if it is the
    /// same on both sides of the read(2), neither happened.
    ///
    /// Returns the window's first reading, if readings are those of the registers.
    pub fn renew(&mut self, counters: &mut dyn Counters, hot: &Hot, next: Next) -> Result<Option<Snapshot>> {
        hot.detach();
        if counters.clears() {
            let now = self.take(counters);
            if next == Next::Period {
                self.ledger.restart();
                self.begun = self.ledger.times();
                // what the registers still hold is of before the period, and will come to light in it
                self.unbounded = now.is_none();
                self.begin(now, next);
            }
            return Ok(now);
        }
        let mut attached = std::mem::take(&mut self.attached);
        let (mut begins, mut exact) = (None, false);
        for _ in 0..8 {
            let known = self.ledger.times();
            let end = counters.registers(known);
            let (opening, before) = (counters.sequence(), counters.counting());
            let counts = counters.counts()?;
            exact = counts.exact;
            if !counts.exact {
                self.mind_overflow(counts.time.since(self.begun).enabled);
            }
            let (after, closing) = (counters.counting(), counters.sequence());
            let start = counters.registers(counts.time);

            // an overflow reset the registers, and the kernel's account may be short of what was shown
            let back = attached && end.is_some_and(|end| end.registers.slots.0 < self.seen);
            let at_rest = before.is_some() && before == after;
            // where that cannot be seen: it counted all the time, so it did when it was read
            let zeroed = at_rest || (counters.never_rests() && self.ledger.ran_throughout(&counts));
            let switches = match (self.sequence, closing) {
                (Some(from), Some(to)) => switches_between(from, to),
                _ => 0,
            };
            self.take_in(&counts, switches, zeroed, end.filter(|_| attached));
            if back {
                self.ledger.take_unknown(self.pace.limit());
            }
            self.sequence = opening;
            if closing.is_none() && !counts.exact {
                self.unbounded = true;
            }
            let (Some(_), Some(start)) = (end, start) else {
                self.crowded = true;
                self.unsure |= end.is_some();
                // A switch right after the read(2) may leave another program's PERF_METRICS, and SLOTS that the kernel
                // has cleared (kernel-facts C.4): once more. Without a switch this thread has run since, and is safe.
                if opening == closing || counts.exact || !counters.counts_itself() {
                    break;
                }
                self.foreign = true;
                continue;
            };
            if at_rest && Some(start.sequence) == after {
                self.attached = true;
                begins = Some(start);
                break;
            }
            self.suspect(Some(start));
            attached = false;
        }
        if next == Next::Period {
            self.ledger.restart();
            self.begun = self.ledger.times();
            self.unbounded = self.sequence.is_none() && !exact;
            self.crowded = begins.is_none();
        }
        self.pace.restarted();
        let begins = begins.filter(|_| counters.by_registers());
        match &begins {
            Some(start) => self.begin_readings(counters, hot, start, next),
            None => {
                if counters.counts_itself() {
                    self.ledger.admit(BY_READ);
                }
                self.begin_window(next);
                self.looks.add(&self.start, 0);
            }
        }
        Ok(begins)
    }

    /// Begins a window, or a period, at this first reading: what the registers hold by now is the library's own work.
    fn begin_readings(&mut self, counters: &dyn Counters, hot: &Hot, start: &Snapshot, next: Next) {
        self.ledger.skip(start.registers.slots, &start.registers.split());
        self.begin_window(next);
        self.show(hot, start);
        if let Some(reader) = counters.reader() {
            hot.attach(reader);
        }
    }

    /// Takes what the kernel counted into the ledger, if it is this target's. `end`: the registers, right
    /// before, if they had been this handle's all the time.
    fn take_in(&mut self, counts: &Counts, switches: u64, zeroed: bool, end: Option<Snapshot>) {
        let counted = self.ledger.since(counts);
        let most = self.ledger.most_since(counts);
        let beyond = counted.saturating_sub(most.unwrap_or(u64::MAX));
        if std::mem::take(&mut self.foreign) || beyond > HANDFUL {
            // among them another program's: none can be told from the others, and all that may have passed
            // is missing
            self.ledger.discard(counts, zeroed);
            self.ledger.admit(most.unwrap_or(HANDFUL));
            return;
        }
        self.ledger.admit(beyond);
        if self.unsure && counted > 0 {
            self.unsure = false;
            self.ledger.admit(counted);
            let ran = counts.time.since(self.ledger.times()).running;
            if counted > (ran as f64 * self.slots_per_ns) as u64 + HANDFUL {
                self.ledger.discard(counts, zeroed); // more than can have passed
                return;
            }
        }
        // registers that hold less than the kernel counted were reset by somebody else; an overflow
        // interrupt that does so after a switch makes the kernel count twice (kernel-facts B.8)
        if let (true, Some(end)) = (switches > 0, end) {
            let beyond = counted.saturating_sub(end.registers.slots.0);
            self.ledger.admit(if beyond > HANDFUL { beyond } else { 0 });
        }
        self.ledger.absorb(counts, switches, zeroed);
    }

    /// A window for less: read(2) of the leader alone, right after the registers said how its slots divide. None if
    /// the thread was switched out on the way.
    fn sharpen(
        &mut self,
        counters: &mut dyn Counters,
        hot: &Hot,
        visit: &Snapshot,
    ) -> Result<Option<Snapshot>> {
        hot.detach();
        let end = counters.registers(self.ledger.times());
        let Some(end) = end.filter(|end| end.sequence == visit.sequence) else { return Ok(None) };
        // what the kernel counted until it read is this thread's, whatever happens then
        let (slots, time) = counters.slots()?;
        let switches = self.switches(end.sequence);
        if self.ledger.close(visit.registers, end.registers, switches, slots, time).is_none() {
            // somebody reset the registers: the kernel's account tells, but it may be short of what was shown
            self.attached = false;
            self.ledger.take_unknown(self.pace.limit());
            return Ok(None);
        }
        self.sequence = Some(end.sequence);
        let start = counters.registers(time);
        let Some(start) = start.filter(|start| start.sequence == end.sequence) else {
            self.begin_window(Next::Window);
            self.attached = false;
            self.suspect(start);
            return Ok(None);
        };
        self.pace.opened(visit.pace, start.pace);
        self.begin_readings(counters, hot, &start, Next::Window);
        Ok(Some(start))
    }

    /// The last step of a reading that began a window at `start`: the library's own work since then does not count
    /// either. What comes after is short.
    fn skip_to_now(&mut self, counters: &mut dyn Counters, hot: &Hot, start: &Snapshot, out: &mut Sample) {
        let Some(now) = counters.registers(start.time()) else { return };
        let Some(own) = now.registers.slots.0.checked_sub(start.registers.slots.0) else { return };
        if now.sequence != start.sequence {
            return;
        }
        // (255 for the sum of the fields: it is close, and there is no time to divide)
        let parts = std::array::from_fn(|k| (own * (now.registers.metrics.0 >> (8 * k) & 0xff) / 255) as i64);
        let own = Registers { slots: RawSlots(own), metrics: now.registers.metrics };
        self.ledger.skip(own.slots, &parts);
        self.start.skip(own.slots, &parts);
        self.looks.latest().skip(own.slots, &parts);
        hot.skip(own.slots, &parts);
        out.skip(own.slots, &parts);
        out.add(own, 0);
        self.seen = now.registers.slots.0;
    }

    /// A switch right after the registers were zeroed: what they hold now is this thread's, or not.
    fn suspect(&mut self, start: Option<Snapshot>) {
        let slots = start.map_or(0, |start| start.registers.slots.0);
        self.ledger.admit(slots.min(HANDFUL));
        self.foreign = slots > HANDFUL;
        self.unsure |= start.is_none();
    }

    /// How often the registers were saved and restored since the window began.
    fn switches(&self, sequence: u32) -> u64 {
        self.sequence.map_or(0, |from| switches_between(from, sequence))
    }

    /// Notes where the totals stand as the registers start from zero.
    fn begin_window(&mut self, next: Next) {
        self.seen = 0;
        let Sample { flags, base, .. } = &mut self.start;
        *flags &= !(TD_SAMPLE_UNBOUNDED | TD_SAMPLE_COARSE_TIME);
        *flags |= if self.unbounded { TD_SAMPLE_UNBOUNDED } else { 0 };
        if next == Next::Period {
            base.period = base.period.wrapping_add(1);
            base.window = base.first_window();
        } else {
            base.window = base.window.wrapping_add(1);
        }
        base.sequence = self.sequence.unwrap_or(0);
        base.error = self.ledger.error;
        base.category = Base::keep(&self.ledger.category);
        self.start.slots = self.ledger.slots;
        self.start.slots_before = self.ledger.slots;
        self.time_is(self.ledger.times().since(self.begun), 0);
        self.start.base.switches = 0;
    }

    /// Times of the period at clock zero, and the clock.
    fn time_is(&mut self, zero: Times, ns: u64) {
        self.start.time_enabled_ns = zero.enabled;
        self.start.time_running_ns = zero.running;
        self.start.base.checked_ms = ms(zero.enabled.wrapping_add(ns));
    }

    /// Lets samples start from where this reading found page and clock.
    fn show(&mut self, hot: &Hot, now: &Snapshot) {
        self.seen = now.registers.slots.0;
        self.time_is(now.clock.zero_since(self.begun), now.ns);
        self.start.flags &= !TD_SAMPLE_COARSE_TIME;
        self.start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        self.start.base.sequence = now.sequence;
        self.start.base.switches = self.switches(now.sequence).min(u16::MAX.into()) as u16;
        hot.restart(now.clock.scale, self.pace.limit(), &self.start);
        self.looks.add(&self.start, now.ns);
    }

    /// The sample of a mark.
    pub fn sample_of(&self, mark: &Mark) -> Result<Sample> {
        let registers = Registers { slots: RawSlots(mark.slots), metrics: RawMetrics(mark.metrics) };
        if !registers.are_possible() {
            return Err(Error::invalid("not a mark: SLOTS is a counter of 48 bits"));
        }
        let mut sample = *self.looks.find(mark).ok_or_else(|| {
            Error::new(
                TD_ESTALE,
                format!(
                    "the mark is of another handle, or from more than {LOOKS} context switches \
                     and windows ago; make a sample of it soon after the region's end"
                ),
            )
        })?;
        // it may be of a reading that took the slow path
        sample.flags |= TD_SAMPLE_COARSE_TIME | OF_READINGS;
        sample.add(registers, 0);
        Ok(sample)
    }

    /// Takes what the registers hold, where that clears them, and starts the next window. None if they are not on this
    /// CPU: what they hold will come to light later.
    fn take(&mut self, counters: &mut dyn Counters) -> Option<Snapshot> {
        let mut pending = 0;
        for _ in 0..16 {
            match counters.take(self.ledger.times()) {
                Taken::Disturbed(slots) => pending += slots.0, // cleared, each time, or not
                Taken::Away(time) => {
                    self.ledger.time_is(time);
                    break;
                }
                Taken::All(now) => {
                    self.ledger.time_is(now.time());
                    self.mind_overflow(self.enabled_ns(&now));
                    let slots = now.registers.slots.0;
                    if slots < pending {
                        self.ledger.take_unknown(pending); // cleared, and not seen
                    } else if pending > 0 {
                        self.ledger.admit(pending.saturating_add(slots)); // cleared or not
                    }
                    self.ledger.take(now.registers, self.switches(now.sequence));
                    self.sequence = Some(now.sequence);
                    self.begin(Some(now), Next::Window);
                    return Some(now);
                }
            }
        }
        self.ledger.admit(pending);
        None
    }

    /// Starts a window, or a period, after a reading that cleared the registers.
    fn begin(&mut self, now: Option<Snapshot>, next: Next) {
        self.begin_window(next);
        let Some(now) = now else { return };
        self.time_is(now.clock.zero_since(self.begun), now.ns);
        self.start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        self.start.flags |= TD_SAMPLE_CLEARED;
        self.looks.add(&self.start, now.ns);
    }

    /// A reading where the steady state does not serve. `seen`: what the steady state saw before it gave up, if it saw
    /// anything; what has come since is the library's own work.
    pub fn read(
        &mut self,
        counters: &mut dyn Counters,
        hot: &Hot,
        mut seen: Registers,
        out: &mut Sample,
    ) -> Result<()> {
        if counters.clears() {
            let now = self.take(counters);
            *out = self.start;
            match now {
                Some(now) => {
                    out.add(Registers::default(), now.ns);
                    // the library's own work since then does not count; if this fails, it does
                    let _ = counters.take(self.ledger.times());
                }
                None => {
                    // a mark of this reading has no bound either: it needs a number of its own
                    out.base.window = out.base.window.wrapping_add(1);
                    self.start.base.window = out.base.window;
                    let time = self.ledger.times().since(self.begun);
                    (out.time_enabled_ns, out.time_running_ns) = (time.enabled, time.running);
                    out.flags |= TD_SAMPLE_UNBOUNDED | TD_SAMPLE_COARSE_TIME;
                    self.looks.add(out, 0);
                }
            }
            return Ok(());
        }
        let window = self.start.base.window;
        let now = match self.read_registers(counters, hot, &mut seen)? {
            Some(now) => Some(now),
            None => self.renew(counters, hot, Next::Window)?,
        };
        *out = self.start;
        // without registers: nothing since the read(2) can be seen
        if let Some(now) = now {
            out.flags |= TD_SAMPLE_WORK_AFTER;
            out.flags |= if seen.slots.0 == 0 { TD_SAMPLE_WORK_BEFORE } else { 0 };
            out.add(now.registers, now.ns);
            if self.start.base.window != window {
                self.skip_to_now(counters, hot, &now, out);
            }
        }
        Ok(())
    }

    /// The last reading, which another thread than the handle's may take: what the kernel has counted. (With metrics_clear
    /// the kernel's counts mean nothing: what the last reading of the registers said.)
    pub fn read_last(&mut self, counters: &mut dyn Counters) -> Result<Sample> {
        self.attached = false;
        if !counters.clears() {
            let counts = counters.counts()?;
            let now = counters.sequence();
            let switches = match (self.sequence, now) {
                (Some(from), Some(to)) => switches_between(from, to),
                _ => 0,
            };
            self.take_in(&counts, switches, false, None);
            self.sequence = now;
            self.unbounded |= now.is_none() && !counts.exact;
        }
        self.begin_window(Next::Window);
        Ok(self.start)
    }

    /// A reading that begins a measured execution: in a fresh window, if the budget allows. Returns whether it is.
    /// `new`: of a region that was hardly measured yet.
    pub fn read_fresh(
        &mut self,
        counters: &mut dyn Counters,
        hot: &Hot,
        new: bool,
        out: &mut Sample,
    ) -> Result<bool> {
        let window = self.start.base.window;
        self.pace.is_urgent(new);
        self.read(counters, hot, Registers::default(), out)?;
        Ok(self.start.base.window != window)
    }

    /// Totals without the categories, where the steady state does not serve; no windows are opened if it can be helped.
    pub fn glance(&mut self, counters: &mut dyn Counters, hot: &Hot) -> Result<Glance> {
        if counters.clears() {
            let mut sample = Sample::default();
            self.read(counters, hot, Registers::default(), &mut sample)?;
            return Ok(sample.glance());
        }
        let now = match self
            .registers(counters)
            .filter(|now| self.start.unchecked_ms(self.enabled_ns(now)) <= UNCHECKED_MS)
        {
            Some(now) => {
                self.show(hot, &now);
                Some(now)
            }
            None => self.renew(counters, hot, Next::Window)?,
        };
        let mut sample = self.start;
        if let Some(now) = now {
            sample.add(now.registers, now.ns);
        }
        Ok(sample.glance())
    }

    /// The registers, if they are there and nobody else reset them.
    fn registers(&self, counters: &mut dyn Counters) -> Option<Snapshot> {
        if !self.attached || !counters.by_registers() {
            return None;
        }
        counters.registers(self.ledger.times()).filter(|now| now.registers.slots.0 >= self.seen)
    }

    /// A reading of the registers, in this window or a new one; none if they are not there or were reset by
    /// somebody else.
    fn read_registers(
        &mut self,
        counters: &mut dyn Counters,
        hot: &Hot,
        seen: &mut Registers,
    ) -> Result<Option<Snapshot>> {
        let Some(mut now) = self.registers(counters) else { return Ok(None) };
        if now.sequence == self.start.base.sequence && (1..=now.registers.slots.0).contains(&seen.slots.0) {
            now.registers = *seen;
        } else {
            *seen = Registers::default();
        }
        self.mind_overflow(self.enabled_ns(&now));
        if !self.wants_window(&now) {
            self.show(hot, &now);
            return Ok(Some(now));
        }
        if !self.crowded {
            return self.sharpen(counters, hot, &now);
        }
        let start = self.renew(counters, hot, Next::Window)?;
        if let Some(start) = &start {
            self.pace.opened(now.pace, start.pace);
        }
        Ok(start)
    }

    /// Admits all there is if SLOTS, which is 48 bits wide, can have come round since the last look.
    fn mind_overflow(&mut self, enabled_ns: u64) {
        if self.start.unchecked_ms(enabled_ns) > self.round_ms {
            self.ledger.admit(1 << 48);
        }
    }

    /// The period's enabled time.
    fn enabled_ns(&self, now: &Snapshot) -> u64 {
        now.clock.zero_since(self.begun).enabled.wrapping_add(now.ns)
    }

    /// Whether this reading is to open a window: to keep the next one exact, or because it is long ago that
    /// the kernel's count was compared with the registers, which an overflow resets.
    fn wants_window(&mut self, now: &Snapshot) -> bool {
        let wants = self.pace.wants_window(now.pace, now.registers.slots.0);
        wants || self.start.unchecked_ms(self.enabled_ns(now)) > UNCHECKED_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_l1;
    use crate::read::Clock;

    /// Counters that a test moves: so much in the registers, so much that the kernel counted, and a clock.
    #[derive(Default)]
    struct Moved {
        held: u64,
        counted: u64,
        ms: u64,
        reads: u32,
    }

    impl Moved {
        fn run(&mut self, slots: u64, ms: u64) {
            self.held += slots;
            self.ms += ms;
        }

        fn time(&self) -> Times {
            Times { enabled: self.ms * 1_000_000, running: self.ms * 1_000_000 }
        }
    }

    impl Counters for Moved {
        fn counts(&mut self) -> Result<Counts> {
            let (slots, time) = self.slots()?;
            Ok(Counts { slots, time, category: [slots, 0, 0, 0, 0, 0, 0, 0], ..Counts::default() })
        }

        fn slots(&mut self) -> Result<(u64, Times)> {
            self.reads += 1;
            self.counted += std::mem::take(&mut self.held);
            Ok((self.counted, self.time()))
        }

        fn registers(&mut self, _: Times) -> Option<Snapshot> {
            let registers = Registers { slots: RawSlots(self.held), metrics: RawMetrics(0xff) };
            let clock = Clock { zero: self.time(), ..Clock::default() };
            Some(Snapshot { registers, sequence: 0, clock, ns: 0, pace: self.time().enabled })
        }

        fn counting(&mut self) -> Option<u32> {
            Some(0)
        }

        fn never_rests(&self) -> bool {
            true
        }

        fn sequence(&mut self) -> Option<u32> {
            Some(0)
        }

        fn by_registers(&self) -> bool {
            true
        }
    }

    fn meter(counters: &mut Moved, max_error: u32) -> (Box<Hot>, Meter) {
        let hot = Box::<Hot>::default();
        let start = Sample {
            size: size_of::<Sample>() as u32,
            base: Base { handle: 1, level: 1, model: crate::model::SIMULATED as u8, ..Base::default() },
            ..Sample::default()
        };
        let wish = Wish { max_error, max_overhead: 10_000, level: 1, slots_per_cycle: 6 };
        let meter = Meter::new(counters, &hot, start, wish).unwrap();
        (hot, meter)
    }

    #[test]
    fn totals_go_on_over_windows_and_an_overdue_reading_opens_one() {
        let mut counters = Moved::default();
        let (hot, mut meter) = meter(&mut counters, 1_000_000); // none for exactness' sake
        let mut sample = Sample::default();
        let reads = counters.reads;
        for turn in 1..=10 {
            counters.run(1_000_000, 10);
            meter.read(&mut counters, &hot, Registers::default(), &mut sample).unwrap();
            assert_eq!((sample.slots, counters.reads), (1_000_000 * turn, reads));
        }
        counters.run(1_000_000, 1_500);
        meter.read(&mut counters, &hot, Registers::default(), &mut sample).unwrap();
        assert_eq!((sample.slots, counters.reads), (11_000_000, reads + 1));
        assert_eq!(sample.registers().slots.0, 0, "a window of its own");
    }

    #[test]
    fn a_glance_after_hours_hides_nothing() {
        let mut counters = Moved::default();
        let (hot, mut meter) = meter(&mut counters, 10_000);
        let mut samples = [Sample::default(); 2];
        counters.run(50_000_000, 1);
        meter.read(&mut counters, &hot, Registers::default(), &mut samples[0]).unwrap();
        counters.run(50_000_000, 14_400_000);
        meter.glance(&mut counters, &hot).unwrap();
        counters.run(50_000_000, 1);
        meter.read(&mut counters, &hot, Registers::default(), &mut samples[1]).unwrap();
        assert_eq!(decode_l1(Some(&samples[0]), &samples[1]).unwrap().error, 1.0);
    }

    #[test]
    fn after_hours_without_a_reading_nothing_is_claimed_of_them() {
        let mut counters = Moved::default();
        let (hot, mut meter) = meter(&mut counters, 10_000);
        let mut samples = [Sample::default(); 3];
        for (sample, ms) in samples.iter_mut().zip([1, 7_200_000, 1]) {
            counters.run(50_000_000, ms);
            meter.read(&mut counters, &hot, Registers::default(), sample).unwrap();
        }
        let [before, hours, after] = samples;
        assert_eq!(decode_l1(Some(&before), &hours).unwrap().error, 1.0, "SLOTS can have come round");
        assert!(decode_l1(Some(&hours), &after).unwrap().error < 0.01, "it cannot");
    }
}
