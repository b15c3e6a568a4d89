//! A handle: opened, read, reset, closed, by one thread.
#![forbid(unsafe_code)]

mod any_source;
mod by_counters;
mod by_registers;
mod hybrid;
mod info;
mod level_1;
mod open;
mod second;
mod topdown;
mod ways;

use crate::error::{Error, Result, TD_ENORDPMC, TD_EWRONGTHREAD};
use crate::group::RelievedGroup;
use crate::read::{Entry, SeenRegisters, Shared};
use crate::sample::{Increments, Mark, Sample, SlotsOnly};
use crate::source::plain::Plain;
use crate::source::simulated::Mix;
use crate::sum::Sum;
use crate::sys::guarded::{GuardedValue, Remains};
use crate::sys::memory::{HandleMemory, Pool};
use crate::sys::page::Times;
use crate::sys::signals::SignalBlock;
use crate::sys::{Linux, thread};
use crate::tree::{self, Node};
use any_source::AnySource;
pub use info::{Info, Path};
#[cfg(test)]
pub(crate) use info::{check_target, level_of};
pub(crate) use open::{open, unknown_core};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
pub use topdown::TopDown;

/// `Private::owner` of a handle that is read no more, but not closed yet. No thread has this number.
const NOBODY: u64 = u64::MAX;

/// Totals of a handle's period when an execution ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeriodTotals {
    /// Pipeline slots.
    pub slots: u64,
    /// Nanoseconds, as `Sample::time_enabled_ns`.
    pub ns: u64,
}

/// What only the slow path needs.
#[derive(Default)]
pub(crate) struct Private {
    /// The thread that opened, as long as the handle is open; 0 then.
    owner: AtomicU64,
    state: GuardedValue<State>,
}

struct State {
    info: Info,
    /// Place of the CPU's row in the table of models.
    row: u8,
    source: AnySource,
}

impl State {
    /// Nothing can be said any more if RDPMC of this handle may have faulted.
    fn check(&self, shared: &Shared) -> Result<()> {
        if !self.source.may_have_faulted() {
            return Ok(());
        }
        shared.detach(); // for good
        Err(rdpmc_taken(&self.info.pmu))
    }
}

pub(crate) type Handle = HandleMemory<Shared, Private>;
static POOL: Pool<Shared, Private> = Pool::new();

/// Runs `work` on the handle's state, if the calling thread may and the counters can be read.
fn with<T>(handle: Handle, work: impl FnOnce(&State, &Shared) -> Result<T>) -> Result<T> {
    with_state(handle, |state, shared| {
        state.check(shared)?;
        let result = work(state, shared)?;
        state.check(shared)?;
        Ok(result)
    })
}

/// Runs `work` on the handle's state, if the calling thread may.
fn with_state<T>(handle: Handle, work: impl FnOnce(&State, &Shared) -> Result<T>) -> Result<T> {
    may_call(handle)?;
    let result = handle.private().state.work(|state| work(state, handle.shared()));
    result.unwrap_or_else(|| Err(closed()))
}

/// Whether the calling thread may use the handle.
fn may_call(handle: Handle) -> Result<()> {
    let owner = handle.private().owner.load(Ordering::Relaxed);
    if owner == 0 {
        return Err(closed());
    }
    if owner != thread::current() {
        return Err(wrong_thread());
    }
    if handle.shared().present.load(Ordering::Relaxed) == 0 {
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

/// (Texts that take no memory: this may be in a signal handler.)
pub(crate) fn rdpmc_taken(pmu: &str) -> Error {
    Error::new(TD_ENORDPMC, "RDPMC was taken away while the handle was open")
        .why(match pmu {
            "cpu" => "0 was written to /sys/bus/event_source/devices/cpu/rdpmc",
            "cpu_core" => "0 was written to /sys/bus/event_source/devices/cpu_core/rdpmc",
            "cpu_atom" => "0 was written to /sys/bus/event_source/devices/cpu_atom/rdpmc",
            _ => "0 was written to the file rdpmc of cpu_core or cpu_atom in /sys/bus/event_source/devices",
        })
        .remedy(
            "earlier samples are as good as ever, further ones need a new handle: td_close this one and td_open, which \
             reads by read(2) until 1 is written there",
        )
}

/// Runs `work` on the general-purpose counters of a handle.
fn of_plain<T>(handle: Handle, work: impl FnOnce(&Plain<RelievedGroup<Linux>>) -> Result<T>) -> Result<T> {
    with(handle, |state, _| match &state.source {
        AnySource::Counters(source, _) => work(source),
        _ => Err(Error::invalid("the handle counts no general counters")),
    })
}

/// Whether general-purpose counters count from now on.
fn switch(handle: Handle, on: bool) -> Result<()> {
    with(handle, |state, _| match &state.source {
        AnySource::Counters(source, _) => source.counters().switch(on),
        AnySource::SimulatedCounters(source) => {
            source.counters().switch(on);
            Ok(())
        }
        _ => Err(Error::invalid("the handle counts no general counters of one kind of core")),
    })
}

/// A reading, by the fast path if it serves.
#[inline]
pub(crate) fn any_read(handle: Handle) -> Result<Sample> {
    let mut sample = Sample::default();
    if let Err(seen) = handle.shared().read(&mut sample) {
        read(handle, SeenRegisters { is_later: true, ..seen }, &mut sample)?;
    }
    Ok(sample)
}

/// A reading where the fast path does not serve.
pub(crate) fn read(handle: Handle, mut seen: SeenRegisters, out: &mut Sample) -> Result<()> {
    seen.entry = Entry::early(handle.shared()); // what comes from here on is the library's own work
    with(handle, |state, shared| state.source.source().read(shared, seen, out))
}

#[inline]
fn slots_only(handle: Handle) -> Result<SlotsOnly> {
    match handle.shared().slots_only() {
        Some(slots) => Ok(slots),
        None => slots_only_slowly(handle),
    }
}

#[cold]
fn slots_only_slowly(handle: Handle) -> Result<SlotsOnly> {
    with(handle, |state, shared| state.source.source().slots_only(shared))
}

/// An execution begins, after so much was counted where general-purpose counters tell all of executions, if that takes a reading by the
/// fast path alone; false: nothing happened.
#[inline(always)]
pub(crate) fn begin_steadily(shared: &Shared, sum: &mut Sum, before: &Increments) -> bool {
    if sum.begins_unmeasured() {
        return begin_unmeasured(shared, sum);
    }
    sum.is_between_steady() && begin_counted(shared, sum, before)
}

#[inline(always)]
fn begin_unmeasured(shared: &Shared, sum: &mut Sum) -> bool {
    sum.begins_anew();
    let begun = sum.waits() && shared.slots_only_into(sum);
    sum.has_begun_unmeasured(begun)
}

#[inline(always)]
fn begin_counted(shared: &Shared, sum: &mut Sum, before: &Increments) -> bool {
    let begun = shared.count_from(sum, before);
    if begun {
        sum.has_begun_steadily();
    }
    begun
}

/// One ends of which general-purpose counters tell all, if that takes no more than them: what was counted in those before and in it goes into
/// `after`. None: nothing happened.
#[inline(always)]
pub(crate) fn end_counted(shared: &Shared, sum: &mut Sum, after: &mut Increments) -> Option<PeriodTotals> {
    // (a signal handler that executes the same region in between is nested in this execution, and ends before it goes on)
    if !sum.is_counted() || !shared.count_to(sum, after) {
        return None;
    }
    let (slots, ns) = sum.has_ended_steadily(after, shared.limit())?;
    Some(PeriodTotals { slots, ns })
}

/// An execution begins, or ends, if that takes a reading by the fast path alone; false: nothing happened.
#[inline(always)]
pub(crate) fn sum_begin_steadily(handle: Handle, sum: &mut Sum) -> bool {
    let shared = handle.shared();
    if sum.begins_unmeasured() {
        return begin_unmeasured(shared, sum);
    }
    shared.may_count() && sum.is_between_steady() && begin_counted(shared, sum, Increments::NONE)
}

/// See `sum_begin_steadily`.
#[inline(always)]
pub(crate) fn sum_end_steadily(handle: Handle, sum: &mut Sum) -> bool {
    let shared = handle.shared();
    // (what the execution began with is read in the sequence, and whether there is one is looked at behind it: a signal handler
    // before it may have executed the sum, and then there is none any more)
    if !sum.was_due() {
        let execution = sum.end_since(&shared.slots_since(sum));
        return execution.is_some_and(|execution| sum.add_execution(&execution));
    }
    end_one(shared, sum).is_some()
}

/// An execution ends of which general-purpose counters tell all, and is added to the sum's. None: nothing happened.
#[inline(always)]
fn end_one(shared: &Shared, sum: &mut Sum) -> Option<PeriodTotals> {
    let add = |sum: &mut Sum, one: &Increments| {
        let ended = if sum.is_counted() { sum.has_ended_steadily(one, shared.limit()) } else { None };
        if ended.is_some() {
            sum.add_one_counted(one, shared.counters());
        }
        ended
    };
    let (slots, ns) = if shared.may_count() { shared.count_one(sum, add)?? } else { return None };
    Some(PeriodTotals { slots, ns })
}

/// Executions that are counted steadily may begin from here on; whether this one has.
#[cold]
fn begin_counted_anew(shared: &Shared, sum: &mut Sum, before: &Increments) -> bool {
    let start = shared.counters_start();
    sum.begins_steadily();
    start.is_some_and(|start| sum.starts_from(&start)) && begin_counted(shared, sum, before)
}

/// An execution of nothing, to be begun and ended as those of the sum are that are counted steadily, and then given to
/// `Sum::add_empty`. None: none is due, or they are not counted so.
#[cold]
pub(crate) fn sum_empty(handle: Handle, sum: &mut Sum) -> Option<Sum> {
    if !sum.is_empty_due() {
        return None;
    }
    sum.choose_next_empty();
    let start = handle.shared().counters_start()?;
    sum.begins_steadily(); // as the next execution does
    sum.empty(&start)
}

/// An execution begins, before which so much was counted, where executions that are counted steadily are added to that.
#[inline]
pub(crate) fn sum_begin(handle: Handle, sum: &mut Sum, before: &Increments) -> Result<()> {
    if sum.is_steady() && begin_counted_anew(handle.shared(), sum, before) {
        return Ok(());
    }
    sum.begins_anew();
    if sum.is_due() {
        return begin_measured(handle, sum);
    }
    sum.begins(slots_only(handle)?);
    Ok(())
}

/// One that is to be measured.
#[cold]
fn begin_measured(handle: Handle, sum: &mut Sum) -> Result<()> {
    with(handle, |state, shared| {
        let mut from = Sample::default();
        let fresh = state.source.source().read_fresh(shared, sum.is_new(), &mut from)?;
        sum.begins_measured(from, fresh); // the last thing that is done: what comes after is in the execution
        Ok(())
    })
}

/// Which execution is the next to be measured.
#[cold]
fn choose_next(handle: Handle, sum: &mut Sum, seen: PeriodTotals) -> Result<()> {
    with(handle, |state, _| {
        match state.source.source().budget() {
            Some(budget) => sum.choose_next(budget.one_in(sum.turn_ns(seen.ns))),
            None => sum.choose_next_empty(),
        }
        Ok(())
    })
}

/// The execution that began ends, before which so much had been counted.
#[inline]
pub(crate) fn sum_end(handle: Handle, sum: &mut Sum, before: &Increments) -> Result<PeriodTotals> {
    let begun = sum.begun(before);
    let seen = if begun.is_measured() {
        let to = any_read(handle)?;
        sum.ends_measured(begun, &to)?;
        PeriodTotals { slots: to.slots, ns: to.time_enabled_ns }
    } else {
        let to = slots_only(handle)?;
        sum.ends(begun, &to)?;
        PeriodTotals { slots: to.slots, ns: to.enabled }
    };
    if sum.was_due() {
        // the execution counts whatever becomes of this; if it fails, the next one is measured, too
        let _ = choose_next(handle, sum, seen);
    }
    Ok(seen)
}

/// The last reading of a handle, by another thread than its owner, which reads no more from here on.
fn last_read(handle: Handle) -> Result<Sample> {
    let (shared, private) = (handle.shared(), handle.private());
    if shared.present.load(Ordering::Relaxed) == 0 {
        return Err(forked());
    }
    let read = |state: &State| {
        private.owner.store(NOBODY, Ordering::Relaxed);
        shared.detach();
        state.source.source().read_last(shared)
    };
    private.state.work_from_outside(&SignalBlock::new(), read).unwrap_or_else(|| Err(busy()))
}

/// A mark, where the program's own reading does not serve.
pub(crate) fn mark(handle: Handle) -> Result<Mark> {
    let mut out = Sample::default();
    if handle.shared().reads_registers() {
        match handle.shared().read(&mut out) {
            Ok(()) => {
                if let Some(mark) = handle.shared().mark_of_registers(&out) {
                    return Ok(mark.called());
                }
                read(handle, SeenRegisters { is_later: true, ..SeenRegisters::default() }, &mut out)?;
            }
            Err(seen) => read(handle, SeenRegisters { is_later: true, ..seen }, &mut out)?,
        }
        return Ok(out.mark());
    }
    // (an inlined one that was interrupted is of a look, as those are that were not)
    let by_call = !handle.shared().is_inlined();
    let seen = match by_call && handle.shared().read(&mut out).is_ok() {
        true => Ok(&out),
        false => Err(Entry::early(handle.shared())),
    };
    with(handle, |state, shared| state.source.source().mark(shared, seen))
}

/// The sample of a mark.
pub(crate) fn sample_of(handle: Handle, mark: &Mark) -> Result<Sample> {
    with_state(handle, |state, _| state.source.source().sample_of(mark))
}

/// Starts a new period.
pub(crate) fn reset(handle: Handle) -> Result<()> {
    with(handle, |state, shared| state.source.source().reset(shared))
}

/// What the handle measures.
pub(crate) fn info(handle: Handle) -> Result<Info> {
    with_state(handle, |state, _| {
        let (windows, windows_ns) =
            state.source.source().budget().map_or((0, 0), |budget| (budget.windows, budget.spent));
        let info = Info { windows, windows_ns, ..state.info.clone() };
        Ok(state.source.relief().map_or(info.clone(), |relief| level_1::relieved(info, relief)))
    })
}

/// The nodes of the handle's tree of metrics.
pub(crate) fn nodes(handle: Handle) -> Result<impl ExactSizeIterator<Item = Node>> {
    with_state(handle, |state, _| tree::list(state.row, state.info.level))
}

/// Sets how the slots of the simulated PMU divide.
pub(crate) fn set_mix(handle: Handle, mix: &Mix) -> Result<()> {
    with(handle, |state, _| match &state.source {
        AnySource::SimulatedRegisters(source) => source.counters().set_mix(mix),
        AnySource::SimulatedCounters(_) => {
            Err(Error::errno(libc::ENOTSUP, "the simulated core has general-purpose counters")
                .remedy("say what each counts: td_simulate_counters"))
        }
        _ => Err(not_simulated()),
    })
}

/// Sets what the simulated general-purpose counters count in a cycle, in the order of the tree's inputs.
pub(crate) fn set_per_cycle(handle: Handle, per_cycle: &[f64]) -> Result<()> {
    with(handle, |state, _| match &state.source {
        AnySource::SimulatedCounters(source) => source.counters().set_per_cycle(per_cycle),
        AnySource::SimulatedRegisters(_) => {
            Err(Error::errno(libc::ENOTSUP, "the simulated core has PERF_METRICS")
                .remedy("say how its slots divide: td_simulate_mix"))
        }
        _ => Err(not_simulated()),
    })
}

/// What simulated general-purpose counters count of others in so much of their time, of which so much is work.
pub(super) fn simulated_sample(handle: Handle, busy_ns: u64, time: Times) -> Result<Sample> {
    with(handle, |state, _| match &state.source {
        AnySource::SimulatedCounters(source) => {
            Ok(source.sample_of_counts(&source.counters().counts_of(busy_ns, time)))
        }
        AnySource::SimulatedRegisters(_) => Err(Error::errno(
            libc::ENOTSUP,
            "the simulated core has PERF_METRICS, which count their own thread alone",
        )
        .remedy("choose one that has general-purpose counters of slots")),
        _ => Err(not_simulated()),
    })
}

fn not_simulated() -> Error {
    Error::errno(libc::ENOTSUP, "the handle measures real counters, whose mix is what the program does")
        .remedy("open with TD_FLAG_SIMULATE")
}

/// Ends a handle, in whatever thread or forked child.
pub(crate) fn close(handle: Handle) {
    let signals = SignalBlock::new(); // once it has begun it is done
    let (shared, private) = (handle.shared(), handle.private());
    let here = shared.present.load(Ordering::Relaxed) != 0;
    let owner = private.owner.swap(0, Ordering::Relaxed);
    if owner == 0 {
        return; // it is closed, or being closed
    }
    let by_owner = owner == thread::current();
    let Some(remains) = private.state.take(&signals, here, by_owner) else { return };
    shared.detach();
    if by_owner {
        shared.leave();
    }
    let end = |source: &mut AnySource| match here {
        true => source.stop(),
        false => source.forget_mappings(),
    };
    let second = match remains {
        Remains::Whole(mut state) => {
            end(&mut state.source);
            state.source.free();
            state.source.second()
        }
        // what this signal handler interrupted goes on, or never will: all but what is open stays, as the slot does
        Remains::InUse(state) => {
            let State { info, mut source, .. } = ManuallyDrop::into_inner(state);
            std::mem::forget(info);
            end(&mut source);
            source.leave_zeros();
            source.drop_in_its_place();
            return;
        }
    };
    // the child's own mappings may be where the control page was
    if here {
        second.into_iter().for_each(second::give_back);
        POOL.give(handle);
    }
}
