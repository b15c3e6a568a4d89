//! A handle: opened, read, reset, closed, by one thread.
#![forbid(unsafe_code)]

use crate::detect::{self, Pmu};
use crate::error::{Error, Reason, Result, TD_ENORDPMC, TD_EWRONGTHREAD};
use crate::events::Events;
use crate::group::Group;
use crate::meter::Meter;
use crate::model::{self, Counting};
use crate::options::{Options, Target};
use crate::pace::Wish;
use crate::read::simulated::{Mix, Simulated};
use crate::read::{Counters, Glance, Hot};
use crate::registers::Registers;
use crate::sample::{Base, Head, Mark, Sample, TD_SAMPLE_SIMULATED};
use crate::sum::{Execution, Sum};
use crate::sys::cpu::{self, Identity};
use crate::sys::guarded::{Guarded, Remains};
use crate::sys::numbers::contains;
use crate::sys::signals::Blocked;
use crate::sys::slot::{Place, Pool, Slot};
use crate::sys::{Kernel, Linux, fault, identity, thread};
use crate::tree::{self, Node};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub note: Reason,
    /// Wanted bound on each share's error, in parts per million.
    pub max_error_ppm: u32,
    /// Time that may go into new windows of the registers, in parts per million.
    pub max_overhead_ppm: u32,
    /// New windows so far.
    pub windows: u64,
    /// Nanoseconds that they took; ticks of the time-stamp counter where the kernel gives no clock.
    pub windows_ns: u64,
}

/// `Cold::owner` of a handle that is read no more, but not closed yet. No thread has this number.
const NOBODY: u64 = u64::MAX;

/// Totals of a handle's period when an execution ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Pipeline slots.
    pub slots: u64,
    /// Nanoseconds, as `Sample::time_enabled_ns`.
    pub ns: u64,
}

/// What only the slow path needs.
#[derive(Default)]
pub(crate) struct Cold {
    /// The thread that opened, as long as the handle is open; 0 then.
    owner: AtomicU64,
    state: Guarded<State>,
}

struct State {
    info: Info,
    /// Place of the CPU's row in the table of models.
    row: u8,
    source: Source,
    meter: Meter,
    /// How often RDPMC had faulted in this process when the handle was opened.
    faults: u64,
}

impl State {
    /// Nothing can be said any more if RDPMC of this handle may have faulted.
    fn check(&self, hot: &Hot) -> Result<()> {
        let Source::Real(group) = &self.source else { return Ok(()) };
        if !group.looks_at_registers() || fault::count() == self.faults {
            return Ok(());
        }
        hot.detach(); // for good
        Err(rdpmc_taken(&self.info.pmu))
    }
}

/// The counters behind a handle.
enum Source {
    Real(Group<Linux>),
    ECores(Events<Linux>),
    Simulated(Box<Simulated>),
}

impl Source {
    fn counters(&self) -> &dyn Counters {
        match self {
            Source::Real(group) => group,
            Source::ECores(events) => events,
            Source::Simulated(pmu) => pmu.as_ref(),
        }
    }

    /// In a forked child: the mappings are not there any more.
    fn forget_mappings(&mut self) {
        if let Source::Real(group) = self {
            group.forget_mappings();
        }
    }
}

pub(crate) type Handle = Slot<Hot, Cold>;
static POOL: Pool<Hot, Cold> = Pool::new();

/// Opens a handle on the kernel that runs this process.
pub(crate) fn open(options: &Options, _: &Blocked) -> Result<Handle> {
    if options.level > model::DEEPEST {
        return Err(Error::invalid(format!(
            "level {} is none: 0 (the deepest), or 1 to {}",
            options.level,
            model::DEEPEST
        )));
    }
    if let Target::Task(id @ ..=0) = options.target {
        return Err(Error::invalid(format!(
            "{id} is no thread id; for the calling thread use TD_TARGET_SELF"
        )));
    }
    let handle = POOL.take().map_err(|e| {
        Error::errno(e.raw_os_error().unwrap_or(libc::ENOMEM), format!("no memory for a handle: {e}"))
    })?;
    let state = start(options, handle);
    if state.is_err() {
        handle.hot().detach();
        POOL.give(handle);
    }
    handle.cold().state.put(Box::new(state?));
    handle.cold().owner.store(thread::enroll(), Ordering::Relaxed);
    Ok(handle)
}

/// Opens the counters of a handle and starts the first period.
fn start(options: &Options, handle: Handle) -> Result<State> {
    let faults = fault::count();
    let (source, info, row) =
        if options.simulate { simulate(options)? } else { real(options, handle.control())? };
    let first = Head {
        size: size_of::<Sample>() as u32,
        flags: if options.simulate { TD_SAMPLE_SIMULATED } else { 0 },
        base: Base { model: row as u8, level: info.level as u8, ..Base::of_handle(identity::unique()) },
        ..Head::default()
    };
    let wish = Wish {
        max_error: info.max_error_ppm,
        max_overhead: info.max_overhead_ppm,
        level: info.level,
        slots_per_cycle: info.slots_per_cycle,
    };
    handle.hot().present.store(1, Ordering::Relaxed);
    let meter = Meter::new(source.counters(), handle.hot(), first, wish)?;
    Ok(State { info, row: row as u8, source, meter, faults })
}

pub(crate) fn level_of(options: &Options, most: u32, what: &dyn std::fmt::Display) -> Result<u32> {
    match options.level {
        0 => Ok(most),
        level if level <= most => Ok(level),
        level => Err(Error::errno(libc::ENOTSUP, format!("{what} has no level {level} in its counters"))
            .remedy(format!("open with level {most}, or 0 for the deepest"))),
    }
}

fn simulate(options: &Options) -> Result<(Source, Info, u32)> {
    if options.target != Target::This || options.inherit || options.kernel || options.e_cores {
        return Err(Error::errno(
            libc::ENOTSUP,
            "the simulated PMU counts for the thread that opens it, in user mode",
        )
        .remedy(
            "leave target, TD_FLAG_INHERIT, TD_FLAG_KERNEL and TD_FLAG_E_CORES out with TD_FLAG_SIMULATE",
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
        note: Reason::new("simulated (TD_FLAG_SIMULATE)").why("the numbers say nothing about this machine"),
        max_error_ppm: or_a_hundredth(options.max_error_ppm),
        max_overhead_ppm: or_a_hundredth(options.max_overhead_ppm),
        windows: 0,
        windows_ns: 0,
    };
    Ok((Source::Simulated(Box::new(Simulated::new(level, model.slots_per_cycle))), info, model::SIMULATED))
}

fn real(options: &Options, place: Place) -> Result<(Source, Info, u32)> {
    let cpu = cpu::identify();
    let linux = Linux { descriptors_from: options.descriptors_from };
    let (pmu, encodings) = if options.e_cores {
        detect::e_cores(&linux, &cpu).map(|(pmu, encodings)| (pmu, Some(encodings)))?
    } else {
        (detect::pmu(&linux, &cpu)?, None)
    };
    let level = level_of(options, pmu.level, &cpu)?;
    check_target(&linux, &pmu, &cpu, options)?;
    let (source, why) = match encodings {
        Some(encodings) => {
            let events = Events::open(linux, &pmu, encodings, options)?;
            (Source::ECores(events), Some(Reason::new("read by read(2)").why("E-cores have no PERF_METRICS")))
        }
        None => {
            let (group, why) = Group::open(linux, &pmu, level, options, Some(place))?;
            (Source::Real(group), why)
        }
    };
    let info = Info {
        path: if why.is_none() { Path::Rdpmc } else { Path::Read },
        level,
        slots_per_cycle: pmu.model.slots_per_cycle,
        cpu: cpu.name,
        pmu: pmu.name.into(),
        core: pmu.model.core.into(),
        note: why.unwrap_or_default(),
        max_error_ppm: or_a_hundredth(options.max_error_ppm),
        max_overhead_ppm: or_a_hundredth(options.max_overhead_ppm),
        windows: 0,
        windows_ns: 0,
    };
    Ok((source, info, pmu.place))
}

/// One point, or one per cent, unless told otherwise.
fn or_a_hundredth(ppm: u32) -> u32 {
    if ppm == 0 { 10_000 } else { ppm }
}

pub(crate) fn check_target(
    kernel: &impl Kernel,
    pmu: &Pmu,
    identity: &Identity,
    options: &Options,
) -> Result<()> {
    let Target::Cpu(cpu) = options.target else { return Ok(()) };
    let online = kernel.text("/sys/devices/system/cpu/online").unwrap_or_default();
    if !contains(&online, cpu) {
        return Err(Error::invalid(format!("there is no CPU {cpu} online"))
            .remedy(format!("online are {}", online.trim())));
    }
    if !pmu.covers(cpu) {
        return Err(Error::errno(
            libc::ENOTSUP,
            format!(
                "CPU {cpu} of {identity} is not one of '{}' (CPUs {})",
                pmu.name,
                pmu.cpus.as_deref().unwrap_or("unknown"),
            ),
        )
        .remedy(format!(
            "choose one of these, or measure {} TD_FLAG_E_CORES",
            if options.e_cores { "a P-core, without" } else { "an E-core, with" }
        )));
    }
    Ok(())
}

/// Runs `work` on the handle's state, if the calling thread may and the counters can be read.
fn with<T>(handle: Handle, work: impl FnOnce(&State, &Hot) -> Result<T>) -> Result<T> {
    with_state(handle, |state, hot| {
        state.check(hot)?;
        let result = work(state, hot)?;
        state.check(hot)?;
        Ok(result)
    })
}

/// Runs `work` on the handle's state, if the calling thread may.
fn with_state<T>(handle: Handle, work: impl FnOnce(&State, &Hot) -> Result<T>) -> Result<T> {
    may_call(handle)?;
    let result = handle.cold().state.work(|state| work(state, handle.hot()));
    result.unwrap_or_else(|| Err(closed()))
}

/// Whether the calling thread may use the handle.
fn may_call(handle: Handle) -> Result<()> {
    let owner = handle.cold().owner.load(Ordering::Relaxed);
    if owner == 0 {
        return Err(closed());
    }
    if owner != thread::current() {
        return Err(wrong_thread());
    }
    if handle.hot().present.load(Ordering::Relaxed) == 0 {
        return Err(forked());
    }
    Ok(())
}

pub(crate) fn closed() -> Error {
    Error::errno(libc::EBADF, "the handle is closed").why("td_close was called for it").remedy("open another")
}

pub(crate) fn wrong_thread() -> Error {
    Error::new(TD_EWRONGTHREAD, "the handle belongs to the thread that opened it")
        .remedy("open one in each thread that measures")
}

pub(crate) fn forked() -> Error {
    Error::new(TD_EWRONGTHREAD, "the handle was opened before fork and belongs to the parent")
        .remedy("td_close it here and open one of the child's own")
}

fn busy() -> Error {
    Error::errno(libc::EBUSY, "the thread that the handle belongs to is in a call on it").remedy("try again")
}

/// (A text that takes no memory: this may be in a signal handler.)
pub(crate) fn interrupted() -> Error {
    Error::errno(libc::EBUSY, "signal handlers used the handle again and again while this call was at work")
        .remedy("call again")
}

/// (Texts that take no memory: this may be in a signal handler.)
pub(crate) fn rdpmc_taken(pmu: &str) -> Error {
    Error::new(TD_ENORDPMC, "RDPMC was taken away while the handle was open")
        .why(if pmu == "cpu_core" {
            "0 was written to /sys/bus/event_source/devices/cpu_core/rdpmc"
        } else {
            "0 was written to /sys/bus/event_source/devices/cpu/rdpmc"
        })
        .remedy(
            "earlier samples are as good as ever, further ones need a new handle: td_close this one and td_open, which \
             reads by read(2) until 1 is written there",
        )
}

/// A reading, by the steady state if it serves.
#[inline]
pub(crate) fn any_read(handle: Handle) -> Result<Sample> {
    let mut sample = Sample::default();
    if !handle.hot().read(&mut sample) {
        read(handle, Registers::default(), &mut sample)?;
    }
    Ok(sample)
}

/// A reading where the steady state does not serve.
pub(crate) fn read(handle: Handle, seen: Registers, out: &mut Sample) -> Result<()> {
    with(handle, |state, hot| state.meter.read(state.source.counters(), hot, seen, out))
}

#[inline]
fn glance(handle: Handle) -> Result<Glance> {
    match handle.hot().glance() {
        Some(glance) => Ok(glance),
        None => glance_slowly(handle),
    }
}

#[cold]
fn glance_slowly(handle: Handle) -> Result<Glance> {
    with(handle, |state, hot| state.meter.glance(state.source.counters(), hot))
}

/// An execution begins.
#[inline]
pub(crate) fn sum_begin(handle: Handle, sum: &mut Sum) -> Result<()> {
    sum.begins_anew();
    if sum.is_due() {
        return begin_measured(handle, sum);
    }
    sum.begins(glance(handle)?);
    Ok(())
}

/// One that is to be measured.
#[cold]
fn begin_measured(handle: Handle, sum: &mut Sum) -> Result<()> {
    with(handle, |state, hot| {
        let mut from = Sample::default();
        let fresh = state.meter.read_fresh(state.source.counters(), hot, sum.is_new(), &mut from)?;
        sum.begins_measured(from, fresh); // the last thing that is done: what comes after is in the execution
        Ok(())
    })
}

/// Which execution is the next to be measured.
#[cold]
fn draw(handle: Handle, sum: &mut Sum, seen: Seen) -> Result<()> {
    with(handle, |state, _| {
        sum.draw(state.meter.pace().one_in(sum.turn_ns(seen.ns)));
        Ok(())
    })
}

/// The execution that began ends.
#[inline]
pub(crate) fn sum_end(handle: Handle, sum: &mut Sum) -> Result<Seen> {
    let seen = if sum.is_measuring() {
        let to = any_read(handle)?;
        sum.ends_measured(&to)?;
        Seen { slots: to.slots, ns: to.time_enabled_ns }
    } else {
        let to = glance(handle)?;
        sum.ends(&to)?;
        Seen { slots: to.slots, ns: to.enabled }
    };
    if sum.was_due() {
        // the execution counts whatever becomes of this; if it fails, the next one is measured, too
        let _ = draw(handle, sum, seen);
    }
    Ok(seen)
}

/// The last reading of a handle, by another thread than its owner, which reads no more from here on.
fn last_read(handle: Handle) -> Result<Sample> {
    let (hot, cold) = (handle.hot(), handle.cold());
    if hot.present.load(Ordering::Relaxed) == 0 {
        return Err(forked());
    }
    let read = |state: &State| {
        cold.owner.store(NOBODY, Ordering::Relaxed);
        hot.detach();
        state.meter.read_last(state.source.counters(), hot)
    };
    cold.state.work_from_outside(&Blocked::new(), read).unwrap_or_else(|| Err(busy()))
}

/// The sample of a mark.
pub(crate) fn sample_of(handle: Handle, mark: &Mark) -> Result<Sample> {
    with_state(handle, |state, _| state.meter.sample_of(mark))
}

/// Starts a new period.
pub(crate) fn reset(handle: Handle) -> Result<()> {
    with(handle, |state, hot| state.meter.reset(state.source.counters(), hot))
}

/// What the handle measures.
pub(crate) fn info(handle: Handle) -> Result<Info> {
    with_state(handle, |state, _| {
        let pace = state.meter.pace();
        Ok(Info { windows: pace.windows, windows_ns: pace.spent, ..state.info.clone() })
    })
}

/// The nodes of the handle's tree of metrics.
pub(crate) fn nodes(handle: Handle) -> Result<impl ExactSizeIterator<Item = Node>> {
    with_state(handle, |state, _| tree::list(state.row, state.info.level))
}

/// Sets how the slots of the simulated PMU divide.
pub(crate) fn set_mix(handle: Handle, mix: &Mix) -> Result<()> {
    with(handle, |state, _| match &state.source {
        Source::Simulated(pmu) => pmu.set_mix(mix),
        _ => Err(Error::errno(
            libc::ENOTSUP,
            "the handle measures real counters, whose mix is what the program does",
        )
        .remedy("open with TD_FLAG_SIMULATE")),
    })
}

/// Ends a handle, in whatever thread or forked child.
pub(crate) fn close(handle: Handle) {
    let signals = Blocked::new(); // once it has begun it is done
    let (hot, cold) = (handle.hot(), handle.cold());
    let here = hot.present.load(Ordering::Relaxed) != 0;
    let owner = cold.owner.swap(0, Ordering::Relaxed);
    if owner == 0 {
        return; // it is closed, or being closed
    }
    let by_owner = owner == thread::current();
    let Some(remains) = cold.state.take(&signals, here, by_owner) else { return };
    hot.detach();
    if by_owner {
        hot.leave();
    }
    let end = |source: &mut Source| match here {
        true => source.counters().stop(),
        false => source.forget_mappings(),
    };
    match remains {
        Remains::Whole(mut state) => end(&mut state.source),
        // what this signal handler interrupted goes on, or never will: the meter stays, as the slot does
        Remains::InUse(state) => {
            let State { mut source, meter, .. } = ManuallyDrop::into_inner(state);
            std::mem::forget(meter);
            end(&mut source);
            return;
        }
    }
    // the child's own mappings may be where the control page was
    if here {
        POOL.give(handle);
    }
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
    /// As `td_open`: the code says what keeps the library from measuring, the text what to do about it.
    pub fn open(options: &Options) -> Result<TopDown> {
        open(options, &Blocked::new()).map(TopDown)
    }

    /// Totals since the period began. A handful of instructions where RDPMC is possible.
    ///
    /// # Errors
    /// The operating system's, of read(2).
    #[inline]
    pub fn read(&self) -> Result<Sample> {
        any_read(self.0)
    }

    /// An execution of the sum's region begins, as `td_sum_begin`.
    ///
    /// # Errors
    /// Those of `read`.
    #[inline]
    pub fn begin(&self, sum: &mut Sum) -> Result<()> {
        sum_begin(self.0, sum)
    }

    /// It ends, as `td_sum_end`.
    ///
    /// # Errors
    /// Those of `read`; -EINVAL: none had begun; TD_ESTALE: a reset came between.
    #[inline]
    pub fn end(&self, sum: &mut Sum) -> Result<Seen> {
        sum_end(self.0, sum)
    }

    /// As `begin`, if that takes a reading of the steady state alone; false: nothing happened.
    #[inline(always)]
    pub fn begin_steadily(&self, sum: &mut Sum) -> bool {
        self.0.hot().begin(sum)
    }

    /// As `end`, if that takes a reading of the steady state alone; None: nothing happened. The caller adds the execution
    /// to the sum's before the next call of `begin` or `end`.
    #[inline(always)]
    pub fn end_steadily(&self, sum: &mut Sum) -> Option<(Execution, Seen)> {
        if !sum.is_counting() || sum.was_due() {
            return None;
        }
        let to = self.0.hot().glance_or_zero(); // which no execution began with
        sum.end_steadily(&to).map(|execution| (execution, Seen { slots: to.slots, ns: to.enabled }))
    }

    /// The last reading, for a process that ends: by any thread, while the owner may be at work. By read(2), so the
    /// bound is that of a handle on another thread. Afterwards readings fail, and `drop` alone is left.
    ///
    /// # Errors
    /// The operating system's, of read(2); -EBUSY: the owner is in a call on the handle.
    pub fn read_last(&self) -> Result<Sample> {
        last_read(self.0)
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

    /// The nodes of the CPU's tree of metrics, and which of them this handle measures. Their figures are NaN: they come
    /// with [`decode_tree`](crate::decode_tree).
    ///
    /// # Errors
    /// In a forked child: TD_EWRONGTHREAD.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        nodes(self.0).map(Iterator::collect)
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
