//! One handle's readings: windows of the registers, one after the other, added up in the ledger.
//!
//! Signal handlers may come between at any instruction, read the same handle, and return or leave by siglongjmp. So what
//! readings go by is in cells: what takes effect as a whole is in an `Account` (see `kept`), and the rest is right, or seen
//! not to be, after any of its stores.
#![forbid(unsafe_code)]

use crate::error::{Error, Result, TD_ESTALE};
use crate::model::slots_per_ns;
use crate::pace::{Pace, Wish};
use crate::read::{Counters, Glance, Hot, Snapshot};
use crate::registers::{EDGE_SLOTS, RawMetrics, RawSlots, Registers};
use crate::sample::{
    Base, CATEGORIES, Head, Mark, OF_READINGS, Sample, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_UNBOUNDED,
    TD_SAMPLE_WORK_AFTER, TD_SAMPLE_WORK_BEFORE, UNCHECKED_MS, ms,
};
use crate::sys::kept::{Change, Kept};
use crate::window::{Counts, HANDFUL, Ledger, Times, switches_between};
use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

/// What a read(2) of the group starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A window of the registers: the totals go on.
    Window,
    /// A period: they start from zero.
    Period,
}

/// The state behind a handle's readings.
pub(crate) struct Meter {
    account: Kept<Account>,
    /// SLOTS of the last reading, and the window that it is of: if it goes back in one window, somebody else reset the
    /// registers.
    seen: Seen,
    own_work: OwnWork,
    looks: Looks,
    pace: Cell<Pace>,
    /// A read(2) may have come after a signal handler's change: the registers do not hold what they should.
    late: Cell<bool>,
    /// No more can pass.
    slots_per_ns: f64,
    /// It takes SLOTS longer than this to come round.
    round_ms: u32,
}

/// The totals as read(2) told them last, and the window of the registers that began there.
#[derive(Clone, Copy)]
struct Account {
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
    /// The group lost its turn in this period: the kernel's own account of the categories is worth its price.
    crowded: bool,
    /// Changes that a signal handler has interrupted or left since: each may have read the group.
    interrupted: u64,
    /// What samples of this window would be were registers and clock at zero, as far as that is known at its beginning.
    start: Head,
}

/// Slots of the library's own work for a reading by read(2), on the way in and on the way back.
const BY_READ: u64 = 30 * EDGE_SLOTS;

/// How often a change is begun anew after a signal handler's own.
const TURNS: u32 = 64;

/// In one word, which a signal handler does not see or leave half written: 48 bits of SLOTS, and 16 of the window's number.
#[derive(Default)]
struct Seen(Cell<u64>);

impl Seen {
    fn set(&self, window: u32, slots: RawSlots) {
        self.0.set(u64::from(window) << 48 | slots.0 & ((1 << 48) - 1));
    }

    /// Of this window; 0 if it was another's.
    fn get(&self, window: u32) -> u64 {
        let seen = self.0.get();
        if seen >> 48 == u64::from(window as u16) { seen & ((1 << 48) - 1) } else { 0 }
    }
}

/// The library's own work after a window began, which does not count: slots, and how they divide.
struct OwnWork {
    /// The window that it is of.
    window: Cell<Option<u32>>,
    slots: Cell<(RawSlots, [i64; CATEGORIES])>,
}

impl OwnWork {
    fn set(&self, window: u32, slots: RawSlots, parts: &[i64; CATEGORIES]) {
        self.window.set(None);
        compiler_fence(Ordering::SeqCst);
        self.slots.set((slots, *parts));
        compiler_fence(Ordering::SeqCst);
        self.window.set(Some(window));
    }

    fn of(&self, window: u32) -> Option<(RawSlots, [i64; CATEGORIES])> {
        (self.window.get() == Some(window)).then(|| self.slots.get())
    }
}

/// Looks that are remembered.
const LOOKS: usize = 64;

/// What samples were at the last looks at page and registers, the latest at one place and the older ones before it,
/// around the end: a mark is of one of them. What a signal handler interrupts is not found.
struct Looks {
    ring: Box<[Remembered; LOOKS]>,
    latest: Cell<usize>,
    /// `checked_ms` of the latest.
    checked_ms: Cell<u32>,
}

struct Remembered {
    /// Sequence number and window, as `key`; none while the rest changes.
    key: Cell<Option<u64>>,
    look: Cell<Head>,
    ns: Cell<u64>,
    /// The library's own work right after, which does not count.
    own_work: Cell<(RawSlots, [i64; CATEGORIES])>,
}

fn key(sequence: u32, window: u32) -> u64 {
    u64::from(window) << 32 | u64::from(sequence)
}

impl Looks {
    fn new() -> Looks {
        let nothing = |_| Remembered {
            key: Cell::new(None),
            look: Cell::default(),
            ns: Cell::new(0),
            own_work: Cell::default(),
        };
        Looks { ring: Box::new(std::array::from_fn(nothing)), latest: Cell::new(0), checked_ms: Cell::new(0) }
    }

    /// Changes what is remembered at this place; half of it is not found.
    fn change(&self, place: usize, key: Option<u64>, change: impl FnOnce(&Remembered) -> bool) {
        let remembered = &self.ring[place];
        remembered.key.set(None);
        compiler_fence(Ordering::SeqCst);
        let whole = change(remembered);
        compiler_fence(Ordering::SeqCst);
        remembered.key.set(key.filter(|_| whole));
    }

    /// Remembers what samples start from. (Half of this and half of what a signal handler remembered is not found: `key`
    /// belongs to what is there, and to the whole of it only if this is still the `newest`.)
    fn add(&self, start: &Head, ns: u64, newest: impl FnOnce() -> bool) {
        let key = Some(key(start.base.sequence, start.base.window));
        let mut place = self.latest.get();
        if self.ring[place].key.get() != key {
            place = (place + 1) % LOOKS;
        }
        self.change(place, key, |remembered| {
            remembered.look.set(*start);
            remembered.ns.set(ns);
            remembered.own_work.set(Default::default());
            newest()
        });
        self.latest.set(place);
        self.checked_ms.set(start.base.checked_ms);
    }

    /// Whether the latest is of that window, under that sequence number.
    fn latest_is(&self, sequence: u32, window: u32) -> bool {
        self.ring[self.latest.get()].key.get() == Some(key(sequence, window))
    }

    /// Milliseconds for which nobody has looked whether the registers were reset, at that enabled time.
    fn unchecked_ms(&self, enabled_ns: u64) -> u32 {
        ms(enabled_ns).wrapping_sub(self.checked_ms.get())
    }

    /// So many slots right after the look at this place, so divided, do not count.
    fn skip(&self, place: usize, slots: RawSlots, parts: &[i64; CATEGORIES], newest: impl FnOnce() -> bool) {
        let key = self.ring[place].key.get();
        self.change(place, key, |remembered| {
            remembered.own_work.set((slots, *parts));
            newest()
        });
    }

    fn find(&self, mark: &Mark) -> Option<(Head, u64)> {
        let key = Some(key(mark.sequence, mark.window));
        let found = self.ring.iter().find(|remembered| remembered.key.get() == key)?;
        let (mut look, (slots, parts)) = (found.look.get(), found.own_work.get());
        let is_it = self::key(look.base.sequence, look.base.window) == self::key(mark.sequence, mark.window);
        look.skip(slots, &parts);
        is_it.then(|| (look, found.ns.get()))
    }
}

/// What becomes of a change.
enum Changed {
    /// The window begins at the snapshot, if readings are those of the registers; in this turn.
    To(Option<Snapshot>, u32),
    /// A signal handler used the handle meanwhile: it did not take effect, or is not the latest any more.
    Not,
}

/// What a look at the registers comes to.
enum Look {
    Reading,
    /// This snapshot is to end this window, after which the budget stands so; and flags of the reading.
    Window(Snapshot, u32, Pace, u32),
    /// They are not there, somebody else reset them, or a signal handler came between.
    Nothing,
}

impl Meter {
    /// Starts a period.
    pub fn reset(&self, counters: &dyn Counters, hot: &Hot) -> Result<()> {
        self.renew(counters, hot, Next::Period, &mut Sample::default())
    }

    /// Starts the first period. `start`: what its samples have in common.
    pub fn new(counters: &dyn Counters, hot: &Hot, start: Head, wish: Wish) -> Result<Meter> {
        let account = Account {
            ledger: Ledger::default(),
            begun: Times::default(),
            sequence: None,
            foreign: false,
            unsure: false,
            unbounded: false,
            attached: false,
            crowded: false,
            interrupted: 0,
            start,
        };
        let meter = Meter {
            account: Kept::new(account),
            seen: Seen::default(),
            own_work: OwnWork { window: Cell::new(None), slots: Cell::default() },
            looks: Looks::new(),
            pace: Cell::new(Pace::new(wish)),
            late: Cell::new(false),
            slots_per_ns: slots_per_ns(wish.slots_per_cycle),
            round_ms: ms(((1u64 << 48) as f64 / slots_per_ns(wish.slots_per_cycle)) as u64),
        };
        meter.reset(counters, hot)?;
        Ok(meter)
    }

    /// How windows are paid for.
    pub fn pace(&self) -> Pace {
        self.pace.get()
    }

    fn pace_is(&self, change: impl FnOnce(&mut Pace)) {
        let mut pace = self.pace.get();
        change(&mut pace);
        self.pace.set(pace);
    }

    /// Changes the account, if it is of the window that the change is meant for, and shows readings where the next begins if
    /// that is at registers. Then `out` is the first.
    fn change(
        &self,
        counters: &dyn Counters,
        hot: &Hot,
        of: Option<u32>,
        out: &mut Sample,
        work: impl FnOnce(&mut Renewal) -> Result<Option<Snapshot>>,
    ) -> Result<Changed> {
        let mut change = self.account.begin();
        let account = change.value();
        if of.is_some_and(|window| window != account.start.base.window) {
            change.cancel();
            return Ok(Changed::Not);
        }
        hot.detach();
        if let Some((slots, parts)) = self.own_work.of(account.start.base.window) {
            account.ledger.skip(slots, &parts);
        }
        let distrust = self.late.replace(false) || change.others;
        let mut renewal = Renewal { meter: self, counters, change };
        if distrust {
            renewal.interrupted();
        }
        let begins = work(&mut renewal);
        if begins.is_err() {
            // what read(2) may have told is lost, and will be told again
            *renewal.now() = self.account.get(|account| *account);
            renewal.interrupted();
        }
        let turn = renewal.change.turn;
        if !renewal.change.end() {
            return Ok(Changed::Not);
        }
        let begins = begins?;
        let head = self.account.look(|account| match &begins {
            Some(start) => self.show(hot, account, start, turn),
            None => {
                let head = account.start;
                let newest = || self.account.is_newest(turn);
                newest().then(|| self.looks.add(&head, 0, newest)).map(|()| head)
            }
        });
        let Some(head) = head else { return Ok(Changed::Not) };
        let (registers, ns) =
            begins.as_ref().map_or_else(Default::default, |start| (start.registers, start.ns));
        *out = head.sample(registers, ns);
        if let Some(reader) = counters.reader().filter(|_| begins.is_some()) {
            hot.attach(reader);
        }
        Ok(Changed::To(begins, turn))
    }

    /// read(2) of the group: takes what the kernel has counted into the ledger, and starts a window, or with it a period.
    /// `out`: its first reading.
    fn renew(&self, counters: &dyn Counters, hot: &Hot, next: Next, out: &mut Sample) -> Result<()> {
        for _ in 0..TURNS {
            if let Changed::To(..) = self.change(counters, hot, None, out, |renewal| renewal.renew(next))? {
                return Ok(());
            }
        }
        Err(crate::handle::interrupted())
    }

    /// The last step of a reading that began a window at `start` in this turn: the library's own work since then does not
    /// count either. What comes after is short.
    fn skip_to_now(&self, counters: &dyn Counters, hot: &Hot, start: &Snapshot, turn: u32, out: &mut Sample) {
        let (place, window) = (self.looks.latest.get(), out.base.window);
        let Some(now) = counters.registers(start.time()) else { return };
        let Some(own) = now.registers.slots.0.checked_sub(start.registers.slots.0) else { return };
        if now.sequence != start.sequence || !self.account.is_newest(turn) {
            return;
        }
        // (255 for the sum of the fields: it is close, and there is no time to divide)
        let parts = std::array::from_fn(|k| (own * (now.registers.metrics.0 >> (8 * k) & 0xff) / 255) as i64);
        let own = Registers { slots: RawSlots(own), metrics: now.registers.metrics };
        self.own_work.set(window, own.slots, &parts);
        if !self.account.is_newest(turn) {
            // it may have come over that of a signal handler's window
            self.own_work.window.set(None);
            self.late.set(true);
            return;
        }
        self.looks.skip(place, own.slots, &parts, || self.account.is_newest(turn));
        hot.skip(own.slots, &parts, || self.account.is_newest(turn));
        out.skip(own.slots, &parts);
        out.add(own, 0);
        self.seen.set(window, now.registers.slots);
    }

    /// Lets samples start from where this reading found page and clock, and returns what they start from. None if a signal
    /// handler has used the handle since this turn: the account may be another by now.
    #[inline(always)]
    fn show(&self, hot: &Hot, account: &Account, now: &Snapshot, turn: u32) -> Option<Head> {
        let mut start = account.start;
        if let Some((slots, parts)) = self.own_work.of(start.base.window) {
            start.skip(slots, &parts);
        }
        start.time_is(now.clock.zero_since(account.begun), now.ns);
        start.flags &= !TD_SAMPLE_COARSE_TIME;
        start.flags |= if now.clock.coarse { TD_SAMPLE_COARSE_TIME } else { 0 };
        start.base.sequence = now.sequence;
        start.base.switches = account.switches(now.sequence).min(u16::MAX.into()) as u16;
        let newest = || self.account.is_newest(turn);
        if !newest() {
            return None;
        }
        // (what a handler that comes from here on leaves is of another window, or as good)
        self.seen.set(start.base.window, now.registers.slots);
        hot.restart(now.clock.scale, self.pace.get().limit(), &start, newest);
        self.looks.add(&start, now.ns, || self.account.is_newest(turn));
        Some(start)
    }

    /// The sample of a mark.
    pub fn sample_of(&self, mark: &Mark) -> Result<Sample> {
        let registers = Registers { slots: RawSlots(mark.slots), metrics: RawMetrics(mark.metrics) };
        if !registers.are_possible() {
            return Err(Error::invalid("not a mark").why("SLOTS is a counter of 48 bits"));
        }
        let (look, ns) = self.looks.find(mark).ok_or_else(|| {
            Error::new(
                TD_ESTALE,
                format!(
                    "the mark is of another handle, or from more than {LOOKS} context switches and windows ago"
                ),
            )
            .remedy("make a sample of it soon after the region's end")
        })?;
        let mut sample = look.sample(registers, ns);
        // it may be of a reading that took the slow path
        sample.flags |= TD_SAMPLE_COARSE_TIME | OF_READINGS;
        Ok(sample)
    }

    /// A reading where the steady state does not serve. `seen`: what the steady state saw before it gave up, if it saw
    /// anything; what has come since is the library's own work.
    pub fn read(&self, counters: &dyn Counters, hot: &Hot, seen: Registers, out: &mut Sample) -> Result<()> {
        for _ in 0..TURNS {
            let (changed, flags) = match self.look(counters, hot, seen, out) {
                Look::Reading => return Ok(()),
                Look::Window(now, window, pace, flags) => {
                    self.pace.set(pace);
                    (self.end_window(counters, hot, &now, window, out)?, flags)
                }
                Look::Nothing => {
                    let change =
                        self.change(counters, hot, None, out, |renewal| renewal.renew(Next::Window))?;
                    (change, TD_SAMPLE_WORK_AFTER | TD_SAMPLE_WORK_BEFORE)
                }
            };
            match changed {
                Changed::To(Some(start), turn) => {
                    out.flags |= flags;
                    self.skip_to_now(counters, hot, &start, turn, out);
                    return Ok(());
                }
                // nothing since the read(2) can be seen
                Changed::To(None, _) => return Ok(()),
                Changed::Not => {}
            }
        }
        Err(crate::handle::interrupted())
    }

    /// A reading of the registers in this window, without a system call.
    fn look(&self, counters: &dyn Counters, hot: &Hot, seen: Registers, out: &mut Sample) -> Look {
        let turn = self.account.turn();
        // (the registers first: what is executed before counts)
        let Some(mut now) = self.registers(counters) else { return Look::Nothing };
        self.account.look(|account| {
            if !self.is_of(account, &mut now, turn) {
                return Look::Nothing;
            }
            let mut flags = TD_SAMPLE_WORK_AFTER;
            if self.looks.latest_is(now.sequence, account.start.base.window)
                && (1..=now.registers.slots.0).contains(&seen.slots.0)
            {
                now.registers = seen;
            } else {
                flags |= TD_SAMPLE_WORK_BEFORE;
            }
            let mut pace = self.pace.get();
            // to keep the next reading exact, or because it is long ago that the kernel's count was compared with the
            // registers, which an overflow resets
            let wanted = pace.wants_window(now.pace, now.registers.slots.0);
            if wanted || self.looks.unchecked_ms(account.enabled_ns(&now)) > UNCHECKED_MS {
                return Look::Window(now, account.start.base.window, pace, flags);
            }
            self.pace.set(pace);
            let Some(head) = self.show(hot, account, &now, turn) else { return Look::Nothing };
            *out = head.sample(now.registers, now.ns);
            out.flags |= flags;
            Look::Reading
        })
    }

    fn registers(&self, counters: &dyn Counters) -> Option<Snapshot> {
        if counters.by_registers() { counters.registers(Times::default()) } else { None }
    }

    /// Whether the registers are of this account's window, and nobody else reset them.
    fn is_of(&self, account: &Account, now: &mut Snapshot, turn: u32) -> bool {
        if now.clock.scale == 0 {
            now.clock.zero = now.clock.zero.latest(account.ledger.times());
        }
        let seen = self.seen.get(account.start.base.window);
        account.attached && !self.late.get() && now.registers.slots.0 >= seen && self.account.is_newest(turn)
    }

    /// Ends the window at this snapshot, and returns the first of the next, if there is one.
    fn end_window(
        &self,
        counters: &dyn Counters,
        hot: &Hot,
        now: &Snapshot,
        window: u32,
        out: &mut Sample,
    ) -> Result<Changed> {
        self.change(counters, hot, Some(window), out, |renewal| {
            let enabled = renewal.now().enabled_ns(now);
            renewal.mind_overflow(enabled);
            if !renewal.now().crowded && renewal.now().attached {
                if let Some(start) = renewal.sharpen(now)? {
                    return Ok(Some(start));
                }
                return renewal.renew(Next::Window);
            }
            let start = renewal.renew(Next::Window)?;
            if let Some(start) = &start {
                renewal.meter.pace_is(|pace| pace.opened(now.pace, start.pace));
            }
            Ok(start)
        })
    }

    /// The last reading, which another thread than the handle's may take: what the kernel has counted.
    pub fn read_last(&self, counters: &dyn Counters, hot: &Hot) -> Result<Sample> {
        let mut out = Sample::default();
        let last = self.change(counters, hot, None, &mut out, |renewal| {
            renewal.now().attached = false;
            let counts = counters.counts()?;
            let sequence = counters.sequence();
            let switches = match (renewal.now().sequence, sequence) {
                (Some(from), Some(to)) => switches_between(from, to),
                _ => 0,
            };
            renewal.take_in(&counts, switches, false, None);
            renewal.now().sequence = sequence;
            renewal.now().unbounded |= sequence.is_none() && !counts.exact;
            renewal.begin_window(Next::Window);
            Ok(None)
        })?;
        match last {
            Changed::To(..) => Ok(out),
            Changed::Not => Err(crate::handle::interrupted()),
        }
    }

    /// A reading that begins a measured execution: in a fresh window, if the budget allows. Returns whether it is.
    /// `new`: of a region that was hardly measured yet.
    pub fn read_fresh(
        &self,
        counters: &dyn Counters,
        hot: &Hot,
        new: bool,
        out: &mut Sample,
    ) -> Result<bool> {
        let window = self.account.get(|account| account.start.base.window);
        self.pace_is(|pace| pace.is_urgent(new));
        self.read(counters, hot, Registers::default(), out)?;
        Ok(self.account.get(|account| account.start.base.window) != window)
    }

    /// Totals without the categories, where the steady state does not serve; no windows are opened if it can be helped.
    pub fn glance(&self, counters: &dyn Counters, hot: &Hot) -> Result<Glance> {
        let turn = self.account.turn();
        let mut now = self.registers(counters);
        let seen = now.as_mut().and_then(|now| {
            self.account.look(|account| {
                let here = self.is_of(account, now, turn)
                    && self.looks.unchecked_ms(account.enabled_ns(now)) <= UNCHECKED_MS;
                let head = if here { self.show(hot, account, now, turn) } else { None };
                head.map(|head| head.sample(now.registers, now.ns))
            })
        });
        if let Some(sample) = seen {
            return Ok(sample.glance());
        }
        let mut out = Sample::default();
        self.renew(counters, hot, Next::Window, &mut out)?;
        Ok(out.glance())
    }
}

impl Account {
    /// How often the registers were saved and restored since the window began.
    fn switches(&self, sequence: u32) -> u64 {
        self.sequence.map_or(0, |from| switches_between(from, sequence))
    }

    /// The period's enabled time.
    fn enabled_ns(&self, now: &Snapshot) -> u64 {
        now.clock.zero_since(self.begun).enabled.wrapping_add(now.ns)
    }

    /// A switch right after the registers were zeroed: what they hold now is this thread's, or not.
    fn suspect(&mut self, start: Option<Snapshot>) {
        let slots = start.map_or(0, |start| start.registers.slots.0);
        self.ledger.admit(slots.min(HANDFUL));
        self.foreign = slots > HANDFUL;
        self.unsure |= start.is_none();
    }
}

/// A change of the account, on its way.
struct Renewal<'a> {
    meter: &'a Meter,
    counters: &'a dyn Counters,
    change: Change<'a, Account>,
}

impl Renewal<'_> {
    /// The account as it will be.
    fn now(&mut self) -> &mut Account {
        self.change.value()
    }

    /// A change was interrupted by a signal handler's, or left in it. It may have read the group, after which the registers
    /// start from zero, and the thread may have been switched out right then.
    fn interrupted(&mut self) {
        let sequence = self.counters.sequence();
        let now = self.now();
        now.attached = false;
        now.interrupted += 1;
        now.ledger.admit(BY_READ); // the library's own work that was to be skipped
        now.unsure |= now.sequence != sequence;
    }

    /// Before each system call: what it tells would be lost, and what it does would be undone unseen, if a signal handler
    /// has changed the account meanwhile.
    fn goes_on(&self) -> Result<()> {
        if self.change.goes_on() { Ok(()) } else { Err(crate::handle::interrupted()) }
    }

    /// A read(2) has told so many slots. If a signal handler's change has taken effect meanwhile, and was told no more, the
    /// read(2) came after: the registers do not hold what that change left in them.
    fn asked(&self, slots: u64) {
        if !self.change.goes_on() && self.meter.account.look(|account| slots >= account.ledger.told()) {
            self.meter.late.set(true);
        }
    }

    /// The read(2) zeroes the registers only if it finds the group running; and a task that is switched
    /// out right after it, before it ran an instruction that counts, may come back to registers that
    /// hold another program's numbers (kernel-facts I). The page's sequence number tells: if it is the
    /// same on both sides of the read(2), neither happened.
    fn renew(&mut self, next: Next) -> Result<Option<Snapshot>> {
        let counters = self.counters;
        let mut attached = std::mem::take(&mut self.now().attached);
        let (mut begins, mut exact) = (None, false);
        for _ in 0..8 {
            self.goes_on()?;
            let known = self.now().ledger.times();
            let end = counters.registers(known);
            let (opening, before) = (counters.sequence(), counters.counting());
            let counts = counters.counts()?;
            self.asked(counts.slots);
            exact = counts.exact;
            if !counts.exact {
                let enabled = counts.time.since(self.now().begun).enabled;
                self.mind_overflow(enabled);
            }
            let (after, closing) = (counters.counting(), counters.sequence());
            let start = counters.registers(counts.time);

            // an overflow reset the registers, and the kernel's account may be short of what was shown
            let window = self.now().start.base.window;
            let seen = self.meter.seen.get(window);
            let back = attached && end.is_some_and(|end| end.registers.slots.0 < seen);
            let at_rest = before.is_some() && before == after;
            // where that cannot be seen: it counted all the time, so it did when it was read
            let zeroed = at_rest || (counters.never_rests() && self.now().ledger.ran_throughout(&counts));
            let switches = match (self.now().sequence, closing) {
                (Some(from), Some(to)) => switches_between(from, to),
                _ => 0,
            };
            self.take_in(&counts, switches, zeroed, end.filter(|_| attached));
            let limit = self.meter.pace.get().limit();
            let now = self.now();
            if back {
                now.ledger.take_unknown(limit);
            }
            now.sequence = opening;
            if closing.is_none() && !counts.exact {
                now.unbounded = true;
            }
            let (Some(_), Some(start)) = (end, start) else {
                now.crowded = true;
                now.unsure |= end.is_some();
                // A switch right after the read(2) may leave another program's PERF_METRICS, and SLOTS that the kernel
                // has cleared (kernel-facts C.4): once more. Without a switch this thread has run since, and is safe.
                if opening == closing || counts.exact || !counters.counts_itself() {
                    break;
                }
                now.foreign = true;
                continue;
            };
            if at_rest && Some(start.sequence) == after {
                now.attached = true;
                begins = Some(start);
                break;
            }
            now.suspect(Some(start));
            attached = false;
        }
        let now = self.now();
        if next == Next::Period {
            now.ledger.restart();
            now.begun = now.ledger.times();
            now.unbounded = now.sequence.is_none() && !exact;
            now.crowded = begins.is_none();
        }
        self.meter.pace_is(Pace::restarted);
        let begins = begins.filter(|_| counters.by_registers());
        match &begins {
            Some(start) => self.begin_readings(start, next),
            None => {
                if counters.counts_itself() {
                    self.now().ledger.admit(BY_READ);
                }
                self.begin_window(next);
            }
        }
        Ok(begins)
    }

    /// Begins a window, or a period, at this first reading: what the registers hold by now is the library's own work.
    fn begin_readings(&mut self, start: &Snapshot, next: Next) {
        self.now().ledger.skip(start.registers.slots, &start.registers.split());
        self.begin_window(next);
    }

    /// Takes what the kernel counted into the ledger, if it is this target's. `end`: the registers, right
    /// before, if they had been this handle's all the time.
    fn take_in(&mut self, counts: &Counts, switches: u64, zeroed: bool, end: Option<Snapshot>) {
        let slots_per_ns = self.meter.slots_per_ns;
        let now = self.now();
        // a read(2) that is not known of rounded as a switch does
        let switches = switches.saturating_add(std::mem::take(&mut now.interrupted));
        let counted = now.ledger.since(counts);
        let most = now.ledger.most_since(counts);
        let beyond = counted.saturating_sub(most.unwrap_or(u64::MAX));
        if std::mem::take(&mut now.foreign) || beyond > HANDFUL {
            // among them another program's: none can be told from the others, and all that may have passed
            // is missing
            now.ledger.discard(counts, zeroed);
            now.ledger.admit(most.unwrap_or(HANDFUL));
            return;
        }
        now.ledger.admit(beyond);
        if now.unsure && counted > 0 {
            now.unsure = false;
            now.ledger.admit(counted);
            let ran = counts.time.since(now.ledger.times()).running;
            if counted > (ran as f64 * slots_per_ns) as u64 + HANDFUL {
                now.ledger.discard(counts, zeroed); // more than can have passed
                return;
            }
        }
        // registers that hold less than the kernel counted were reset by somebody else; an overflow
        // interrupt that does so after a switch makes the kernel count twice (kernel-facts B.8)
        if let (true, Some(end)) = (switches > 0, end) {
            let beyond = counted.saturating_sub(end.registers.slots.0);
            now.ledger.admit(if beyond > HANDFUL { beyond } else { 0 });
        }
        now.ledger.absorb(counts, switches, zeroed);
    }

    /// A window for less: read(2) of the leader alone, right after the registers said how its slots divide. None if
    /// the thread was switched out on the way.
    fn sharpen(&mut self, visit: &Snapshot) -> Result<Option<Snapshot>> {
        let counters = self.counters;
        let end = counters.registers(self.now().ledger.times());
        let Some(end) = end.filter(|end| end.sequence == visit.sequence) else { return Ok(None) };
        self.goes_on()?;
        // what the kernel counted until it read is this thread's, whatever happens then
        let (slots, time) = counters.slots()?;
        self.asked(slots);
        let limit = self.meter.pace.get().limit();
        let now = self.now();
        let switches = now.switches(end.sequence);
        if now.ledger.close(visit.registers, end.registers, switches, slots, time).is_none() {
            // somebody reset the registers: the kernel's account tells, but it may be short of what was shown
            now.attached = false;
            now.ledger.take_unknown(limit);
            return Ok(None);
        }
        now.sequence = Some(end.sequence);
        let start = counters.registers(time);
        let Some(start) = start.filter(|start| start.sequence == end.sequence) else {
            now.attached = false;
            now.suspect(start);
            self.begin_window(Next::Window);
            return Ok(None);
        };
        self.meter.pace_is(|pace| pace.opened(visit.pace, start.pace));
        self.begin_readings(&start, Next::Window);
        Ok(Some(start))
    }

    /// Notes where the totals stand as the registers start from zero.
    fn begin_window(&mut self, next: Next) {
        let now = self.now();
        let Head { flags, base, .. } = &mut now.start;
        *flags &= !(TD_SAMPLE_UNBOUNDED | TD_SAMPLE_COARSE_TIME);
        *flags |= if now.unbounded { TD_SAMPLE_UNBOUNDED } else { 0 };
        if next == Next::Period {
            base.period = base.period.wrapping_add(1);
            base.window = base.first_window();
        } else {
            base.window = base.window.wrapping_add(1);
        }
        base.sequence = now.sequence.unwrap_or(0);
        base.error = now.ledger.error;
        base.category = Base::keep(&now.ledger.category);
        base.switches = 0;
        now.start.slots = now.ledger.slots;
        now.start.slots_before = now.ledger.slots;
        now.start.time_is(now.ledger.times().since(now.begun), 0);
    }

    /// Admits all there is if SLOTS, which is 48 bits wide, can have come round since the last look.
    fn mind_overflow(&mut self, enabled_ns: u64) {
        if self.meter.looks.unchecked_ms(enabled_ns) > self.meter.round_ms {
            self.now().ledger.admit(1 << 48);
        }
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
        held: Cell<u64>,
        counted: Cell<u64>,
        ms: Cell<u64>,
        reads: Cell<u32>,
    }

    impl Moved {
        fn run(&self, slots: u64, ms: u64) {
            self.held.set(self.held.get() + slots);
            self.ms.set(self.ms.get() + ms);
        }

        fn time(&self) -> Times {
            Times { enabled: self.ms.get() * 1_000_000, running: self.ms.get() * 1_000_000 }
        }
    }

    impl Counters for Moved {
        fn counts(&self) -> Result<Counts> {
            let (slots, time) = self.slots()?;
            Ok(Counts { slots, time, category: [slots, 0, 0, 0, 0, 0, 0, 0], ..Counts::default() })
        }

        fn slots(&self) -> Result<(u64, Times)> {
            self.reads.set(self.reads.get() + 1);
            self.counted.set(self.counted.get() + self.held.take());
            Ok((self.counted.get(), self.time()))
        }

        fn registers(&self, _: Times) -> Option<Snapshot> {
            let registers = Registers { slots: RawSlots(self.held.get()), metrics: RawMetrics(0xff) };
            let clock = Clock { zero: self.time(), ..Clock::default() };
            Some(Snapshot { registers, sequence: 0, clock, ns: 0, pace: self.time().enabled })
        }

        fn counting(&self) -> Option<u32> {
            Some(0)
        }

        fn never_rests(&self) -> bool {
            true
        }

        fn sequence(&self) -> Option<u32> {
            Some(0)
        }

        fn by_registers(&self) -> bool {
            true
        }
    }

    fn meter(counters: &Moved, max_error: u32) -> (Box<Hot>, Meter) {
        let hot = Box::<Hot>::default();
        let start = Head {
            size: size_of::<Sample>() as u32,
            base: Base { handle: 1, level: 1, model: crate::model::SIMULATED as u8, ..Base::default() },
            ..Head::default()
        };
        let wish = Wish { max_error, max_overhead: 10_000, level: 1, slots_per_cycle: 6 };
        let meter = Meter::new(counters, &hot, start, wish).unwrap();
        (hot, meter)
    }

    #[test]
    fn totals_go_on_over_windows_and_an_overdue_reading_opens_one() {
        let counters = Moved::default();
        let (hot, meter) = meter(&counters, 1_000_000); // none for exactness' sake
        let mut sample = Sample::default();
        let reads = counters.reads.get();
        for turn in 1..=10 {
            counters.run(1_000_000, 10);
            meter.read(&counters, &hot, Registers::default(), &mut sample).unwrap();
            assert_eq!((sample.slots, counters.reads.get()), (1_000_000 * turn, reads));
        }
        counters.run(1_000_000, 1_500);
        meter.read(&counters, &hot, Registers::default(), &mut sample).unwrap();
        assert_eq!((sample.slots, counters.reads.get()), (11_000_000, reads + 1));
        assert_eq!(sample.registers().slots.0, 0, "a window of its own");
    }

    #[test]
    fn a_glance_after_hours_hides_nothing() {
        let counters = Moved::default();
        let (hot, meter) = meter(&counters, 10_000);
        let mut samples = [Sample::default(); 2];
        counters.run(50_000_000, 1);
        meter.read(&counters, &hot, Registers::default(), &mut samples[0]).unwrap();
        counters.run(50_000_000, 14_400_000);
        meter.glance(&counters, &hot).unwrap();
        counters.run(50_000_000, 1);
        meter.read(&counters, &hot, Registers::default(), &mut samples[1]).unwrap();
        assert_eq!(decode_l1(Some(&samples[0]), &samples[1]).unwrap().error, 1.0);
    }

    #[test]
    fn after_hours_without_a_reading_nothing_is_claimed_of_them() {
        let counters = Moved::default();
        let (hot, meter) = meter(&counters, 10_000);
        let mut samples = [Sample::default(); 3];
        for (sample, ms) in samples.iter_mut().zip([1, 7_200_000, 1]) {
            counters.run(50_000_000, ms);
            meter.read(&counters, &hot, Registers::default(), sample).unwrap();
        }
        let [before, hours, after] = samples;
        assert_eq!(decode_l1(Some(&before), &hours).unwrap().error, 1.0, "SLOTS can have come round");
        assert!(decode_l1(Some(&hours), &after).unwrap().error < 0.01, "it cannot");
    }
}
