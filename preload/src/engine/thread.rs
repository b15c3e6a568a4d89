//! A measured thread, from its start to its end.

use super::frame::{DEEPEST, ExecutionStart, Frame};
use super::index::{Cache, Index};
use super::node::{self, RegionNode};
use super::turns::{self, Turns};
use super::{record, slow, totals};
use crate::tables::TableFile;
use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::Ordering::Release;
use topdown::{PeriodTotals, Sample, Sum, TopDown};
use topdown_table::{Record, RecordedCore, THREAD};

/// What a thread needs, in memory that a forked child finds zeroed.
pub struct ThreadState {
    /// Not 0: it is as this process has made it.
    pub(super) alive: usize,
    /// Not 0: and not too deep in regions, and no call of the slow path was interrupted.
    pub(super) idle: usize,
    /// Where the innermost region's frame is, in bytes from the first, which is the thread's.
    pub(super) innermost: usize,
    /// Regions that began deeper than there are frames.
    pub(super) over: usize,
    /// Pieces of regions that overlapped may be open (`split`).
    pub(super) pieces: bool,
    pub(super) td: *const TopDown,
    /// The thread's own.
    pub(super) record: *mut Record,
    pub(super) start: Sample,
    /// What the handle said when the record's figures were zero, or would have.
    pub(super) zero: PeriodTotals,
    /// What the threads before it had, whose records it has.
    pub(super) before: Sum,
    /// Where the rest of the present arena is, and how long.
    pub(super) arena: (*mut u8, usize),
    pub(super) tables: *const TableFile,
    /// Groups that take turns: `td`, `record`, `start`, `zero` and `before` are of the one whose turn it is. NULL: there is one alone.
    pub(super) turns: *mut Turns,
    /// What counts executions of nothing; NULL at first.
    pub(super) empty: *mut RegionNode,
    /// The thread's own node where there is no other yet: it is below none.
    pub(super) cache: Cache,
    pub(super) index: Index,
    pub(super) frames: [Frame; DEEPEST + 1],
}

/// What a thread has instead of a state when it cannot be measured.
pub const GONE: *mut ThreadState = std::ptr::without_provenance_mut(1);
/// What a thread has instead of a state when its measured end has come, and the program has it go on.
pub const ENDED: *mut ThreadState = std::ptr::without_provenance_mut(2);

mod slot {
    topdown_seam::thread_local_slot!("topdown_region_thread", first 0);
}

/// The calling thread's state: NULL at first, or GONE or ENDED.
#[inline(always)]
pub fn current() -> *mut ThreadState {
    slot::get() as *mut ThreadState
}

impl ThreadState {
    /// From now on this is the calling thread's.
    pub fn set_current(thread: *mut ThreadState) {
        slot::set(thread as u64);
    }

    /// Whether `current` says that the thread has a state.
    #[inline(always)]
    pub fn is_state(thread: *mut ThreadState) -> bool {
        thread > ENDED
    }

    /// Whether `current` says that the thread will have no state.
    pub fn is_for_good_without(thread: *mut ThreadState) -> bool {
        thread == GONE || thread == ENDED
    }

    /// Whether this is a state, and of a thread that is measured.
    ///
    /// # Safety
    /// What `current` says.
    #[inline(always)]
    pub unsafe fn has_begun(thread: *mut ThreadState) -> bool {
        // SAFETY: states are never unmapped.
        unsafe { ThreadState::is_state(thread) && (*thread).alive != 0 }
    }

    /// Whether the state can be looked at, and no call that changes it was interrupted.
    ///
    /// # Safety
    /// What `current` says.
    #[inline(always)]
    pub unsafe fn is_idle(thread: *mut ThreadState) -> bool {
        // SAFETY: states are never unmapped.
        unsafe { ThreadState::is_state(thread) && (*thread).idle != 0 }
    }

    /// Starts to measure the calling thread. The handle and the tables live as long as the process is this one. `open`:
    /// regions that began in the parent process.
    pub fn begin(
        td: *const TopDown,
        tables: &TableFile,
        name: &CStr,
        core: &RecordedCore,
        open: &[(CString, u32)],
    ) -> Option<*mut ThreadState> {
        // SAFETY: the handle is the calling thread's.
        let start = unsafe { (*td).read() }.ok()?;
        let (record, number) = tables.take(name)?;
        let thread: *mut ThreadState =
            node::pages(size_of::<ThreadState>().next_multiple_of(4096)).ok()?.cast();
        // SAFETY: zeroed memory of that size, of which zeros are valid, and a record of the thread's own.
        unsafe {
            ((*thread).td, (*thread).record) = (td, record);
            ((*thread).start, (*thread).tables) = (start, tables);
            let root = node::new_root(thread, name, record, number)?;
            (*thread).frames[0] = Frame::new(root, ExecutionStart::Thread);
            Cache::begin(thread, root)?;
            (*thread).zero = PeriodTotals { slots: start.slots, ns: start.time_enabled_ns };
            (*record).thread = number;
            (*record).tid = libc::syscall(libc::SYS_gettid) as i32;
            (*record).core = *core;
            (*record).kind.store(THREAD, Release);
            for (name, again) in open.iter().take(DEEPEST) {
                let within = (*ThreadState::innermost(thread)).node;
                let Ok(node) = node::look_up(thread, within, name.as_ptr()) else { break };
                let depth = ThreadState::depth(thread) + 1;
                let begun =
                    !(*node).record.is_null() && (*td).begin(&mut (*node).sum, &*(*node).counted[0]).is_ok();
                let state = if begun { ExecutionStart::BeforeFork } else { ExecutionStart::Unread };
                (*thread).frames[depth] = Frame { node, state, again: *again };
                ThreadState::set_depth(thread, depth);
            }
            ((*thread).alive, (*thread).idle) = (1, 1);
        }
        ThreadState::set_current(thread);
        Some(thread)
    }

    /// Has other groups, which are switched off, take turns with the one that it began with; None: it goes on with that alone.
    ///
    /// # Safety
    /// The calling thread's state, which has begun. The handles live as long as the process is this one.
    pub unsafe fn take_turns(
        thread: *mut ThreadState,
        others: impl Iterator<Item = (*const TopDown, RecordedCore)>,
        name: &CStr,
        random: u64,
    ) -> Option<()> {
        // SAFETY: the caller's word.
        unsafe { turns::take(thread, others, name, random) }
    }

    /// Starts to measure the calling thread in the records of one that has ended.
    ///
    /// # Safety
    /// That one's state, which no other thread uses; as many handles as it had.
    pub unsafe fn begin_again(
        thread: *mut ThreadState,
        mut handles: impl Iterator<Item = *const TopDown>,
    ) -> Option<()> {
        // SAFETY: the caller's word.
        unsafe {
            let first = Turns::of(thread).first();
            let (root, record) =
                first.map_or((ThreadState::root(thread), (*thread).record), |turn| (turn.root, turn.record));
            let td = handles.next()?;
            let (start, zero, before) = goes_on(root, td)?;
            for (k, turn) in Turns::of(thread).iter_mut().enumerate() {
                turn.td = if k == 0 { td } else { handles.next()? };
                (turn.start, turn.zero, turn.before) =
                    if k == 0 { (start, zero, before) } else { goes_on(turn.root, turn.td)? };
            }
            ((*thread).td, (*thread).record) = (td, record);
            ((*thread).start, (*thread).zero, (*thread).before) = (start, zero, before);
            (*thread).frames[0].node = root;
            (*record).tid = libc::syscall(libc::SYS_gettid) as i32;
            (*record).before += 1;
            (*record).ended.store(0, Release);
            ((*thread).alive, (*thread).idle) = (1, 1);
            turns::first_turn(thread);
        }
        ThreadState::set_current(thread);
        Some(())
    }

    /// Whether a thread of this name ran in its records.
    ///
    /// # Safety
    /// A state.
    pub unsafe fn has_name(thread: *mut ThreadState, name: &CStr) -> bool {
        // SAFETY: states and nodes are never unmapped.
        unsafe { (*ThreadState::root(thread)).name.is(name.as_ptr()) }
    }

    /// Whether its records are of such cores, and so of what such handles count.
    ///
    /// # Safety
    /// A state.
    pub unsafe fn is_of(thread: *mut ThreadState, cores: &[RecordedCore]) -> bool {
        // SAFETY: states and records are never unmapped.
        unsafe {
            let turns = Turns::of(thread).iter().map(|turn| (*turn.record).core);
            match cores {
                [core] => (*thread).turns.is_null() && (*(*thread).record).core == *core,
                cores => turns.eq(cores.iter().copied()),
            }
        }
    }

    /// The thread's own nodes: one, or one for each group that takes turns.
    ///
    /// # Safety
    /// A state.
    pub(super) unsafe fn roots(thread: *mut ThreadState) -> impl Iterator<Item = *mut RegionNode> {
        // SAFETY: the caller's word.
        unsafe {
            let turns = Turns::of(thread).iter().map(|turn| turn.root);
            let alone = (*thread).turns.is_null().then(|| ThreadState::root(thread));
            turns.chain(alone)
        }
    }

    /// Its records say that it has ended.
    unsafe fn has_ended(thread: *mut ThreadState) {
        // SAFETY: a state, whose own nodes have records.
        unsafe { ThreadState::roots(thread).for_each(|root| (*(*root).record).ended.store(1, Release)) };
    }

    /// The calling thread's figures up to now go to its record; it goes on.
    ///
    /// # Safety
    /// The calling thread's state, which has begun.
    pub unsafe fn update(thread: *mut ThreadState) {
        // SAFETY: the caller's word.
        unsafe {
            if let Ok(now) = (*(*thread).td).read() {
                record::publish(thread, &now);
            }
        }
    }

    /// The calling thread ends: regions that are open never ended, or were left by longjmp, and do not count.
    ///
    /// # Safety
    /// The calling thread's state, which has begun.
    pub unsafe fn end(thread: *mut ThreadState) {
        // SAFETY: the caller's word.
        unsafe {
            (*thread).over = 0;
            slow::leave(thread, 0);
            ThreadState::update(thread);
            turns::add_all(thread);
            ThreadState::has_ended(thread);
            ((*thread).alive, (*thread).idle) = (0, 0);
        }
        ThreadState::set_current(ENDED);
    }

    /// A thread whose measured end has come executes a region of this name: it is one that could not be read.
    ///
    /// # Safety
    /// The state that the thread had, which no other thread uses; a C string.
    pub unsafe fn miss(thread: *mut ThreadState, name: *const c_char) {
        // SAFETY: the caller's word.
        unsafe {
            if let Ok(node) = node::look_up(thread, ThreadState::root(thread), name) {
                if !(*node).record.is_null() {
                    (*(*node).record).missed += 1;
                }
            }
        }
    }

    /// Whether the last thread that ran in its records is of this id.
    ///
    /// # Safety
    /// A state.
    pub unsafe fn is_of_task(thread: *mut ThreadState, tid: libc::pid_t) -> bool {
        // SAFETY: states and records are never unmapped.
        unsafe { ThreadState::roots(thread).next().is_some_and(|root| (*(*root).record).tid == tid) }
    }

    /// The process ends while this thread, another one, runs: what the kernel knows of it.
    ///
    /// # Safety
    /// A state.
    pub unsafe fn end_of_another(thread: *mut ThreadState) {
        // SAFETY: states are never unmapped; at this point nobody minds what the thread itself writes to its record meanwhile.
        unsafe {
            for _ in 0..1000 {
                match (*(*thread).td).read_last() {
                    Err(error) if error.code() == -libc::EBUSY => _ = libc::sched_yield(),
                    Err(_) => break,
                    Ok(now) => {
                        record::publish(thread, &now);
                        break;
                    }
                }
            }
            // (not by `leave`: the thread itself may be at it)
            for at in 1..=ThreadState::depth(thread).min(DEEPEST) {
                let Frame { node, state, again } = (*thread).frames[at];
                if !node.is_null() && state.is_to_end() {
                    (*(*node).record).unended += 1 + u64::from(again);
                    (*(*node).record).nested = (*(*node).record).nested.saturating_sub(u64::from(again));
                }
            }
            ThreadState::has_ended(thread);
        }
    }

    /// Names of the regions that have begun, the outermost first, and how often each began in itself.
    ///
    /// # Safety
    /// The calling thread's state, which has begun.
    pub unsafe fn open_regions<'a>(thread: *mut ThreadState) -> Vec<(&'a CStr, u32)> {
        // SAFETY: names live as long as the thread.
        unsafe {
            let frames = (1..=ThreadState::depth(thread)).map(|at| (*thread).frames[at]);
            frames.map(|frame| (CStr::from_ptr((*frame.node).name.text()), frame.again)).collect()
        }
    }
}

/// The tree below a thread's own node goes on with this handle of another thread: what its samples start from, and what was before.
unsafe fn goes_on(root: *mut RegionNode, td: *const TopDown) -> Option<(Sample, PeriodTotals, Sum)> {
    // SAFETY: the calling thread's handle, and nodes that no other thread uses.
    unsafe {
        let start = (*td).read().ok()?;
        let before = (*root).sum;
        go_on(root, &before.last, &start);
        let zero = PeriodTotals {
            slots: start.slots.wrapping_sub(before.slots),
            ns: start.time_enabled_ns.wrapping_sub(before.time_enabled_ns),
        };
        Some((start, zero, before))
    }
}

/// All sums from here on are of another thread.
unsafe fn go_on(node: *mut RegionNode, then: &Sample, now: &Sample) {
    // SAFETY: the state's own nodes, which no other thread uses.
    unsafe {
        (*node).sum.go_on(then, now);
        (*node).since = totals::of(node);
        let mut child = (*node).children;
        while !child.is_null() {
            go_on(child, then, now);
            child = (*child).sibling;
        }
    }
}
