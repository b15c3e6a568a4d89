//! A handle: opened, read, reset, closed, by one thread.
#![forbid(unsafe_code)]

use crate::detect::cpu::{self, Identity};
use crate::detect::{self, Pmu, contains};
use crate::error::{Error, Result, TD_EWRONGTHREAD};
use crate::group::Group;
use crate::model::{self, Counting};
use crate::options::{Options, Target};
use crate::read::simulated::{Mix, Simulated};
use crate::read::{Counters, Head, Hot, Snapshot};
use crate::registers::Registers;
use crate::sample::{Base, Sample, TD_SAMPLE_COARSE_TIME, TD_SAMPLE_SIMULATED, TD_SAMPLE_UNBOUNDED};
use crate::sys::slot::{Pool, Slot};
use crate::sys::{Kernel, Linux, thread};
use crate::window::{Counts, Ledger, Times, switches_between};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How a handle's counters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// RDPMC, from user space.
    Rdpmc = 1,
    /// read(2).
    Read = 2,
    /// The simulated PMU.
    Simulated = 3,
}

/// What a handle measures, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// How it is read.
    pub path: Path,
    /// Deepest level: 1 or 2.
    pub level: u32,
    /// Pipeline slots per cycle of the core; 0 if not known.
    pub slots_per_cycle: u32,
    /// Brand string of the CPU; "simulated" if there is none behind it.
    pub cpu: String,
    /// Name of the PMU in sysfs; "simulated" if there is none.
    pub pmu: String,
    /// Name of the core.
    pub core: String,
    /// Why it is not read by RDPMC, and what to do about it; empty if it is.
    pub note: String,
    /// Wanted bound on each share's error, in parts per million.
    pub max_error_ppm: u32,
}

/// What only the slow path needs.
#[derive(Default)]
pub(crate) struct Cold {
    /// The thread that opened, as long as the handle is open; 0 then.
    owner: AtomicU64,
    state: RefCell<Option<Box<State>>>,
}

struct State {
    info: Info,
    source: Source,
    ledger: Ledger,
    /// Times when the period began.
    begun: Times,
    /// The sequence number right before the last read(2).
    sequence: Option<u32>,
    /// What the kernel counts until the next read(2) is, in part, another program's.
    foreign: bool,
    /// Somewhere in this period saves and restores of the registers could not be counted.
    unbounded: bool,
    /// The registers hold what has come since the last read(2), and nothing else.
    attached: bool,
}

/// What a read(2) of the group starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A window of the registers: the totals go on.
    Window,
    /// A period: they start from zero.
    Period,
}

/// Slots that pass while the library handles the registers, at the most; more are somebody else's doing.
const HANDFUL: u64 = 1 << 16;

/// The counters behind a handle.
enum Source {
    Real(Group<Linux>),
    Simulated(Box<Simulated>),
}

impl Source {
    fn counters(&mut self) -> &mut dyn Counters {
        match self {
            Source::Real(group) => group,
            Source::Simulated(pmu) => pmu.as_mut(),
        }
    }
}

pub(crate) type Handle = Slot<Hot, Cold>;
static POOL: Pool<Hot, Cold> = Pool::new();

/// Opens a handle on the kernel that runs this process.
pub(crate) fn open(options: &Options) -> Result<Handle> {
    if options.level > 2 {
        return Err(Error::invalid(format!("level {} is none: 0 (the deepest), 1 or 2", options.level)));
    }
    if let Target::Task(id @ ..=0) = options.target {
        return Err(Error::invalid(format!(
            "{id} is no thread id; for the calling thread use TD_TARGET_SELF"
        )));
    }
    let (source, info, place) = if options.simulate { simulate(options)? } else { real(options)? };
    let handle = POOL.take().map_err(|e| {
        Error::errno(e.raw_os_error().unwrap_or(libc::ENOMEM), format!("no memory for a handle: {e}"))
    })?;
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        if number != 0 {
            break number;
        }
    };
    let owner = thread::enroll();
    let flags = if options.simulate { TD_SAMPLE_SIMULATED } else { 0 };
    let base = Base { handle: number, model: place as u16, level: info.level as u16, ..Base::default() };
    let mut state = Box::new(State {
        info,
        source,
        ledger: Ledger::default(),
        begun: Times::default(),
        sequence: None,
        foreign: false,
        unbounded: false,
        attached: false,
    });
    let hot = handle.hot();
    hot.start(flags, base);
    if let Err(error) = state.renew(hot, owner, Next::Period) {
        hot.detach();
        POOL.give(handle);
        return Err(error);
    }
    *handle.cold().state.borrow_mut() = Some(state);
    handle.cold().owner.store(owner, Ordering::Relaxed);
    Ok(handle)
}

fn level_of(options: &Options, most: u32, what: &dyn std::fmt::Display) -> Result<u32> {
    match options.level {
        0 => Ok(most),
        level if level <= most => Ok(level),
        level => Err(Error::errno(
            libc::ENOTSUP,
            format!(
                "{what} has no level {level} in its counters; open with level {most}, or 0 for the deepest"
            ),
        )),
    }
}

fn simulate(options: &Options) -> Result<(Source, Info, u32)> {
    if options.target != Target::This || options.inherit || options.kernel {
        return Err(Error::errno(
            libc::ENOTSUP,
            "the simulated PMU counts for the thread that opens it, in user mode; leave target, TD_FLAG_INHERIT and \
             TD_FLAG_KERNEL out with TD_FLAG_SIMULATE",
        ));
    }
    let model = model::at(model::SIMULATED).expect("a fixed row");
    let Counting::PerfMetrics { level: most } = model.counting else { unreachable!("a fixed row") };
    let level = level_of(options, most, &model.core)?;
    let info = Info {
        path: Path::Simulated,
        level,
        slots_per_cycle: model.slots_per_cycle,
        cpu: "simulated".into(),
        pmu: "simulated".into(),
        core: model.core.into(),
        note: "simulated (TD_FLAG_SIMULATE): the numbers say nothing about this machine".into(),
        max_error_ppm: wanted_error(options),
    };
    Ok((Source::Simulated(Box::new(Simulated::new(level, model.slots_per_cycle))), info, model::SIMULATED))
}

fn real(options: &Options) -> Result<(Source, Info, u32)> {
    let cpu = cpu::identify();
    let pmu = detect::pmu(&Linux, &cpu)?;
    let level = level_of(options, pmu.level, &cpu)?;
    check_target(&Linux, &pmu, &cpu, options)?;
    let (group, why) = Group::open(Linux, &pmu, level, options)?;
    let info = Info {
        path: if why.is_none() { Path::Rdpmc } else { Path::Read },
        level,
        slots_per_cycle: pmu.model.slots_per_cycle,
        cpu: cpu.name,
        pmu: pmu.name.into(),
        core: pmu.model.core.into(),
        note: why.map(|why| format!("read by read(2): {why}")).unwrap_or_default(),
        max_error_ppm: wanted_error(options),
    };
    Ok((Source::Real(group), info, pmu.place))
}

/// One point, unless told otherwise.
fn wanted_error(options: &Options) -> u32 {
    if options.max_error_ppm == 0 { 10_000 } else { options.max_error_ppm }
}

fn check_target(kernel: &impl Kernel, pmu: &Pmu, identity: &Identity, options: &Options) -> Result<()> {
    let Target::Cpu(cpu) = options.target else { return Ok(()) };
    let online = kernel.text("/sys/devices/system/cpu/online").unwrap_or_default();
    if !contains(&online, cpu) {
        return Err(Error::invalid(format!("there is no CPU {cpu} online; online are {}", online.trim())));
    }
    if !pmu.covers(cpu) {
        return Err(Error::errno(
            libc::ENOTSUP,
            format!(
                "CPU {cpu} of {identity} is an E-core, which has no PERF_METRICS; choose one of '{}': CPUs {}",
                pmu.name,
                pmu.cpus.as_deref().unwrap_or("unknown")
            ),
        ));
    }
    Ok(())
}

impl Hot {
    /// A handle's first state.
    fn start(&self, flags: u32, base: Base) {
        self.present.store(1, Ordering::Relaxed);
        self.head.set(Head { size: size_of::<Sample>() as u32, flags, slots: 0 });
        self.base.set(base);
    }

    fn flag(&self, flag: u32, on: bool) {
        let head = self.head.get();
        self.head.set(Head { flags: if on { head.flags | flag } else { head.flags & !flag }, ..head });
    }
}

impl State {
    /// read(2) of the group: takes what the kernel has counted into the ledger, and starts a window, or
    /// with it a period.
    ///
    /// The read(2) zeroes the registers only if it finds the group running; and a task that is switched
    /// out right after it, before it ran an instruction that counts, may come back to registers that
    /// hold another program's numbers (kernel-facts I). The page's sequence number tells: if it is the
    /// same on both sides of the read(2), neither happened.
    fn renew(&mut self, hot: &Hot, owner: u64, next: Next) -> Result<()> {
        hot.detach();
        let mut attached = std::mem::take(&mut self.attached);
        for _ in 0..8 {
            let known = self.ledger.times();
            let counters = self.source.counters();
            let end = counters.registers(known);
            let (opening, before) = (counters.sequence(), counters.counting());
            let counts = counters.counts()?;
            let (after, closing) = (counters.counting(), counters.sequence());
            let start = counters.registers(known);

            let at_rest = before.is_some() && before == after;
            // where that cannot be seen: it counted all the time, so it did when it was read
            let zeroed = at_rest || (counters.never_rests() && self.ledger.ran_throughout(&counts));
            let switches = match (self.sequence, closing) {
                (Some(from), Some(to)) => switches_between(from, to),
                _ => 0,
            };
            self.take_in(&counts, switches, zeroed, end.filter(|_| attached));
            self.sequence = opening;
            if closing.is_none() {
                self.unbounded = true;
            }
            let (Some(_), Some(start)) = (end, start) else { break };
            if at_rest && Some(start.sequence) == after {
                self.attached = true;
                break;
            }
            // a switch: what the registers hold now is this thread's, or not
            self.ledger.admit(start.registers.slots.0.min(HANDFUL));
            self.foreign = start.registers.slots.0 > HANDFUL;
            attached = false;
        }
        if next == Next::Period {
            self.ledger.restart();
            self.begun = self.ledger.times();
            self.unbounded = self.sequence.is_none();
        }
        hot.flag(TD_SAMPLE_UNBOUNDED, self.unbounded);
        self.begin_window(hot, next);
        if let Some(steady) = self.source.counters().steady().filter(|_| self.attached) {
            let clock = hot.attach(steady.page, steady.rseq, self.ledger.times(), self.begun, owner);
            hot.flag(TD_SAMPLE_COARSE_TIME, !clock);
        }
        Ok(())
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
        // registers that hold less than the kernel counted were reset by somebody else; an overflow
        // interrupt that does so after a switch makes the kernel count twice (kernel-facts B.8)
        if let (true, Some(end)) = (switches > 0, end) {
            let beyond = counted.saturating_sub(end.registers.slots.0);
            self.ledger.admit(if beyond > HANDFUL { beyond } else { 0 });
        }
        self.ledger.absorb(counts, switches, zeroed);
    }

    /// Notes where the totals stand as the registers start from zero.
    fn begin_window(&self, hot: &Hot, next: Next) {
        let base = hot.base.get();
        hot.base.set(Base {
            period: base.period.wrapping_add((next == Next::Period).into()),
            sequence: self.sequence.unwrap_or(0),
            error: self.ledger.error,
            category: Base::keep(&self.ledger.category),
            ..base
        });
        hot.head.set(Head { slots: self.ledger.slots, ..hot.head.get() });
        hot.last.set(0);
    }

    /// A reading by the way that is open now.
    fn read(&mut self, hot: &Hot, owner: u64) -> Result<Sample> {
        if self.attached && self.source.counters().by_registers() {
            // the usual reason to be here: the thread was switched out, and is back
            let clock = hot.follow(self.ledger.times(), self.begun);
            hot.flag(TD_SAMPLE_COARSE_TIME, !clock);
            if let Some(sample) = self.read_registers(hot) {
                return Ok(sample);
            }
        }
        self.renew(hot, owner, Next::Window)?;
        if self.attached && self.source.counters().by_registers() {
            if let Some(sample) = self.read_registers(hot) {
                return Ok(sample);
            }
        }
        // nothing since the read(2) can be seen
        let base = hot.base.get();
        let time = self.ledger.times().since(self.begun);
        Ok(hot.head.get().sample(Registers::default(), base.sequence, time, base))
    }

    /// A reading of the registers; none if they are not there or were reset by somebody else.
    fn read_registers(&mut self, hot: &Hot) -> Option<Sample> {
        let snapshot = self.source.counters().registers(self.ledger.times())?;
        let slots = snapshot.registers.slots.0;
        if slots < hot.last.get() {
            return None;
        }
        hot.last.set(slots);
        let time = snapshot.time.since(self.begun);
        Some(hot.head.get().sample(snapshot.registers, snapshot.sequence, time, hot.base.get()))
    }
}

/// Runs `work` on the handle's state, if the calling thread may.
fn with<T>(handle: Handle, work: impl FnOnce(&mut State, &Hot, u64) -> Result<T>) -> Result<T> {
    let (hot, cold) = (handle.hot(), handle.cold());
    let owner = cold.owner.load(Ordering::Relaxed);
    if owner == 0 {
        return Err(Error::errno(libc::EBADF, "the handle is closed: td_close was called for it"));
    }
    if owner != thread::current() {
        return Err(Error::new(
            TD_EWRONGTHREAD,
            "the handle belongs to the thread that opened it; open one in each thread that measures",
        ));
    }
    if hot.present.load(Ordering::Relaxed) == 0 {
        return Err(Error::new(
            TD_EWRONGTHREAD,
            "the handle was opened before fork and belongs to the parent; td_close it here and open one of the \
             child's own",
        ));
    }
    let Ok(mut state) = cold.state.try_borrow_mut() else {
        return Err(Error::errno(
            libc::EBUSY,
            "the handle is in use by the code that this signal handler interrupted; try again when it returns",
        ));
    };
    match state.as_mut() {
        Some(state) => work(state, hot, owner),
        None => Err(Error::errno(libc::EBADF, "the handle is closed: td_close was called for it")),
    }
}

/// A reading where the steady state does not serve.
pub(crate) fn read(handle: Handle) -> Result<Sample> {
    with(handle, |state, hot, owner| state.read(hot, owner))
}

/// Starts a new period.
pub(crate) fn reset(handle: Handle) -> Result<()> {
    with(handle, |state, hot, owner| state.renew(hot, owner, Next::Period))
}

/// What the handle measures.
pub(crate) fn info(handle: Handle) -> Result<Info> {
    with(handle, |state, _, _| Ok(state.info.clone()))
}

/// Sets how the slots of the simulated PMU divide.
pub(crate) fn set_mix(handle: Handle, mix: &Mix) -> Result<()> {
    with(handle, |state, _, _| match &mut state.source {
        Source::Simulated(pmu) => pmu.set_mix(mix),
        Source::Real(_) => Err(Error::errno(
            libc::ENOTSUP,
            "the handle measures real counters, whose mix is what the program does; open with TD_FLAG_SIMULATE",
        )),
    })
}

/// Ends a handle, in whatever thread or forked child.
pub(crate) fn close(handle: Handle) {
    let (hot, cold) = (handle.hot(), handle.cold());
    let here = hot.present.load(Ordering::Relaxed) != 0;
    let Ok(mut place) = cold.state.try_borrow_mut() else { return };
    let Some(mut state) = place.take() else { return };
    let owner = cold.owner.swap(0, Ordering::Relaxed);
    hot.detach();
    if owner == thread::current() {
        hot.leave();
    }
    if !here {
        state.source.counters().forget_mappings();
    }
    drop(state);
    drop(place);
    POOL.give(handle);
}

/// An open handle, for Rust programs. It belongs to the thread that opened it.
///
/// ```
/// use topdown::{Options, TopDown};
/// let td = TopDown::open(&Options { simulate: true, ..Options::default() })?;
/// let before = td.read()?;
/// let work: u64 = (0..100_000).map(std::hint::black_box).sum();
/// let shares = topdown::decode_l1(Some(&before), &td.read()?)?;
/// println!("{work}: {:.0} % retiring, within {:.0} points", 100.0 * shares.retiring, 100.0 * shares.error);
/// # Ok::<(), topdown::Error>(())
/// ```
pub struct TopDown(Handle);

impl TopDown {
    /// Opens the counters and proves that they count.
    ///
    /// # Errors
    /// As `td_open`: the code says which wall, the text what to do about it.
    pub fn open(options: &Options) -> Result<TopDown> {
        open(options).map(TopDown)
    }

    /// Totals since the period began. A handful of instructions where RDPMC is possible.
    ///
    /// # Errors
    /// The operating system's, of read(2).
    #[inline]
    pub fn read(&self) -> Result<Sample> {
        let mut sample = Sample::default();
        if self.0.hot().read(&mut sample) { Ok(sample) } else { read(self.0) }
    }

    /// Starts a new period: earlier samples do not go with later ones.
    ///
    /// # Errors
    /// The operating system's, of read(2).
    pub fn reset(&self) -> Result<()> {
        reset(self.0)
    }

    /// What is measured, and how.
    ///
    /// # Errors
    /// In a forked child: TD_EWRONGTHREAD.
    pub fn info(&self) -> Result<Info> {
        info(self.0)
    }

    /// Sets how the slots of the simulated PMU divide from now on.
    ///
    /// # Errors
    /// -EINVAL: not a mix; -ENOTSUP: the handle measures real counters.
    pub fn set_mix(&self, mix: &Mix) -> Result<()> {
        set_mix(self.0, mix)
    }
}

impl Drop for TopDown {
    fn drop(&mut self) {
        close(self.0);
    }
}
