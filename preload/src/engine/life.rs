//! A measured thread, from its start to its end.

use super::execution;
use super::frame::{DEEPEST, ExecutionStart, Frame, OpenRegions};
use super::groups::{ThreadGroup, ThreadGroups};
use super::handle::ThreadHandle;
use super::rotate;
use super::thread::{ENDED, ThreadState};
use super::tree::{ThreadNodes, walk};
use crate::arena;
use crate::record::OwnRecord;
use crate::tables::TableFile;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering::Release;
use std::time::Instant;
use topdown::{PeriodTotals, Sum};
use topdown_table::{THREAD, TableCore};

fn tid() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Starts to measure the calling thread. `open`: regions that began in the parent process.
pub fn begin(
    td: ThreadHandle,
    tables: &'static TableFile,
    name: &CStr,
    core: &TableCore,
    open: &[(CString, u32)],
) -> Option<&'static ThreadState> {
    let start = td.read().ok()?;
    let (record, number) = tables.take(name)?;
    let (nodes, root) = ThreadNodes::new(tables, record, number)?;
    let zero = PeriodTotals { slots: start.slots, ns: start.time_enabled_ns };
    let group = ThreadGroup { td, root, record, start, zero, before: Sum::default(), nodes: &[] };
    let thread =
        arena::keep(ThreadState::new(OpenRegions::new(root), nodes, ThreadGroups::new(group))).ok()?;
    record.thread().set(number);
    record.tid().set(tid());
    record.core().set(*core);
    record.kind().store(THREAD, Release);
    for (name, again) in open.iter().take(DEEPEST) {
        let within = thread.open.innermost().node;
        let Ok(node) = thread.nodes.look_up(root, within, name) else { break };
        let begun = node.record().is_some() && node.begin(td).is_ok();
        let state = if begun { ExecutionStart::BeforeFork } else { ExecutionStart::Unread };
        if !thread.open.push(Frame { node, state, again: *again }) {
            break;
        }
    }
    thread.has_begun();
    ThreadState::set_current(thread);
    Some(thread)
}

/// What a thread does at its end, or before, or is asked for.
impl ThreadState {
    /// Starts to measure the calling thread in the records of one that has ended, which no other thread uses; as many handles as that
    /// one had.
    pub fn begin_again(&'static self, mut handles: impl Iterator<Item = ThreadHandle>) -> Option<()> {
        let first = match self.groups.turns() {
            None => goes_on(self.groups.now(), handles.next()?)?,
            Some(turns) => {
                for group in turns.groups() {
                    group.set(goes_on(group.get(), handles.next()?)?);
                }
                turns.groups()[0].get()
            }
        };
        self.groups.set(&first);
        self.open.set(0, Frame::new(first.root, ExecutionStart::Thread));
        first.record.tid().set(tid());
        first.record.add(OwnRecord::before, 1);
        first.record.ended().store(0, Release);
        self.has_begun();
        rotate::first_turn(self);
        ThreadState::set_current(self);
        Some(())
    }

    /// Whether a thread of this name ran in the state's records.
    pub fn has_name(&self, name: &CStr) -> bool {
        self.groups.root().is_called(name)
    }

    /// Whether the state's records are of such cores, and so of what such handles count.
    pub fn is_of_cores(&self, cores: &[TableCore]) -> bool {
        let roots = self.groups.roots().map(|root| root.record().map(|record| record.core().get()));
        roots.eq(cores.iter().map(|core| Some(*core)))
    }

    /// Whether the last thread that ran in the state's records is the calling one.
    pub fn was_of_this_thread(&self) -> bool {
        let first = self.groups.roots().next().and_then(|root| root.record());
        first.is_some_and(|record| record.tid().get() == tid())
    }

    /// The thread, whose measured end has come, executes a region of this name: it is one that could not be read.
    pub fn miss(&self, name: &CStr) {
        let root = self.groups.root();
        if let Some(record) = self.nodes.look_up(root, root, name).ok().and_then(|node| node.record()) {
            record.add(OwnRecord::missed, 1);
        }
    }

    /// The state's records say that its thread has ended.
    fn mark_ended(&self) {
        self.groups
            .roots()
            .filter_map(|root| root.record())
            .for_each(|record| record.ended().store(1, Release));
    }

    /// The calling thread ends: regions that are open never ended, or were left by longjmp, and do not count.
    pub fn end(&self) {
        self.open.over.set(0);
        execution::leave(self, 0);
        self.groups.update();
        rotate::add_all(self);
        self.mark_ended();
        self.has_ended();
        ThreadState::set_current(ENDED);
    }

    /// The process ends while this thread, another one, runs: what the kernel knows of it. (Nobody minds what the thread itself writes
    /// to its record meanwhile.)
    pub fn end_of_another(&self, until: Instant) {
        loop {
            match self.groups.td().read_last(self.groups.now().record.tid().get()) {
                Err(error) if error.code() == -libc::EBUSY && Instant::now() < until => {
                    std::thread::yield_now();
                }
                Err(_) => break,
                Ok(now) => {
                    self.groups.publish(&now);
                    break;
                }
            }
        }
        // (not by `leave`: the thread itself may be at it)
        let open = (1..=self.open.depth().min(DEEPEST)).filter_map(|number| self.open.above(number));
        for Frame { node, again, .. } in open.filter(|frame| frame.state.is_to_end()) {
            if let Some(record) = node.record() {
                record.leave_nested(again.into());
                record.add(OwnRecord::unended, 1);
            }
        }
        self.mark_ended();
    }

    /// Names of the regions that have begun, the outermost first, and how often each began in itself.
    pub fn open_regions(&self) -> Vec<(&'static CStr, u32)> {
        self.open.regions().map(|(_, frame)| (frame.node.name().text(), frame.again)).collect()
    }
}

/// The group goes on with this handle of another thread: what its samples start from, and what was before.
fn goes_on(group: ThreadGroup, td: ThreadHandle) -> Option<ThreadGroup> {
    let start = td.read().ok()?;
    let before = group.root.sum();
    for node in walk(group.root) {
        node.go_on(&before.last, &start);
        node.forget();
    }
    let zero = PeriodTotals {
        slots: start.slots.wrapping_sub(before.slots),
        ns: start.time_enabled_ns.wrapping_sub(before.time_enabled_ns),
    };
    Some(ThreadGroup { td, start, zero, before, ..group })
}
