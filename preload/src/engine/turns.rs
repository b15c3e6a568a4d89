//! Where no group of counters holds the wanted level, groups of its parts take turns in a thread: one is on at a time. Each counts in a
//! tree of regions of its own, with records of its own, so that a begin and an end are what they are without turns. A turn ends where an
//! execution ends, so each is of one group, but for those that are open then: they end there, and begin again in the next turn's tree.
//! At the end of a turn each region's slots in it are one of a random sample (docs/error-bound-sums.md, Turns).

use super::frame::{ExecutionStart, Frame};
use super::node::{self, RegionNode, look_up};
use super::record;
use super::slow::{end_execution, leave};
use super::thread::ThreadState;
use crate::process::MeasuredProcess;
use crate::stack;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, Release};
use topdown::{PeriodTotals, Rotation, Sample, Sum, TopDown};
use topdown_table::{NodeInTurns, Record, RecordedCore, THREAD};

/// No CPU's level takes more groups, nor measures a group of them more nodes below level 1 (src/sum/turns.rs tests both).
const MOST_TURNS: usize = 8;
const _: () = assert!(topdown_table::MOST_NODES_IN_TURNS == topdown::MOST_NODES_IN_TURNS);
/// Nanoseconds of the first turn; of later ones from half of this to one and a half, at random, as what is counted may have a period.
const TURN_NS: u64 = 20_000_000;
const FIRST_NS: u64 = TURN_NS / 2;
/// The end of a turn takes no more than one in so many nanoseconds of it, if it takes so long, and so long for each region that was executed in it.
/// (A clock may be a system call, for which the program's seccomp filter may kill.)
const WORTH: u64 = 50;
const END_NS: u64 = 20_000;
const REGION_NS: u64 = 3_000;

/// What a group has in a thread's state while it is its turn.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub td: *const TopDown,
    pub root: *mut RegionNode,
    pub record: *mut Record,
    /// See `ThreadState`.
    pub start: Sample,
    pub zero: PeriodTotals,
    pub before: Sum,
}

/// The groups of a thread, in memory that a forked child finds zeroed.
pub struct Turns {
    of: [Turn; MOST_TURNS],
    count: usize,
    now: usize,
    rotation: Rotation,
    /// On the clock of the group whose turn it is: when it began, and what was seen last; and how long it is to be.
    begun_ns: u64,
    seen_ns: u64,
    length_ns: u64,
    /// It could not be switched: the group that is on goes on.
    stuck: bool,
}

impl Turns {
    /// All of a state's groups; none, if it has but one.
    ///
    /// # Safety
    /// A state.
    pub(super) unsafe fn of(thread: *mut ThreadState) -> &'static mut [Turn] {
        // SAFETY: the state's own, which is never unmapped; who calls this does so once at a time.
        unsafe {
            let turns = (*thread).turns;
            if turns.is_null() { &mut [] } else { &mut (&mut (*turns).of)[..(*turns).count] }
        }
    }

    fn is_due(&self) -> bool {
        !self.stuck && self.seen_ns.wrapping_sub(self.begun_ns) >= self.length_ns
    }
}

/// Has other groups take turns with the one that the state has begun with; they are switched off. `random`: a seed.
///
/// # Safety
/// The calling thread's state, which has begun, and its handles, with the names of their cores.
pub unsafe fn take(
    thread: *mut ThreadState,
    others: impl Iterator<Item = (*const TopDown, RecordedCore)>,
    name: &CStr,
    random: u64,
) -> Option<()> {
    // SAFETY: zeroed memory of that size, of which zeros are valid, and records of the thread's own.
    unsafe {
        let turns: *mut Turns = node::pages(size_of::<Turns>().next_multiple_of(4096)).ok()?.cast();
        let first = (*thread).record;
        let ThreadState { td, start, zero, before, .. } = &*thread;
        (*turns).of[0] = Turn {
            td: *td,
            root: ThreadState::root(thread),
            record: first,
            start: *start,
            zero: *zero,
            before: *before,
        };
        (*turns).count = 1;
        for (td, core) in others.take(MOST_TURNS - 1) {
            let start = (*td).read().ok()?;
            let (record, number) = (*(*thread).tables).take(name)?;
            let root = node::new_root(thread, name, record, number)?;
            ((*record).parent, (*record).thread, (*record).tid) = ((*first).thread, number, (*first).tid);
            (*record).core = core;
            (*record).kind.store(THREAD, Release);
            let zero = PeriodTotals { slots: start.slots, ns: start.time_enabled_ns };
            let before = Sum::default();
            (*turns).of[(*turns).count] = Turn { td, root, record, start, zero, before };
            (*turns).count += 1;
        }
        (*turns).rotation = Rotation::new((*turns).count, random);
        (*thread).turns = turns;
        first_turn(thread);
        Some(())
    }
}

/// The first turn is any group's, so that none has the beginnings of all threads.
///
/// # Safety
/// As `take`.
pub(super) unsafe fn first_turn(thread: *mut ThreadState) {
    // SAFETY: the caller's word.
    unsafe {
        let turns = (*thread).turns;
        if !turns.is_null() {
            (*turns).rotation.start_over();
            (*turns).stuck = false;
            next(thread, turns);
            (*turns).length_ns = FIRST_NS;
        }
    }
}

/// A reading of the group whose turn it is.
///
/// # Safety
/// The calling thread's state.
#[inline(always)]
pub(super) unsafe fn saw(thread: *mut ThreadState, seen: PeriodTotals) {
    // SAFETY: the caller's word.
    unsafe {
        if !(*thread).turns.is_null() {
            (*(*thread).turns).seen_ns = seen.ns;
        }
    }
}

/// An execution has ended: if the turn has lasted long enough, the next begins.
///
/// # Safety
/// The calling thread's state, in a call of the slow path that has nothing left to do.
#[inline(always)]
pub(super) unsafe fn end_if_due(thread: *mut ThreadState) {
    // SAFETY: the caller's word.
    unsafe {
        let turns = (*thread).turns;
        if !turns.is_null() && (*turns).is_due() {
            end(thread, turns);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn end(thread: *mut ThreadState, turns: *mut Turns) {
    if MeasuredProcess::get().is_none_or(MeasuredProcess::has_ended) {
        return;
    }
    // (whoever holds it is not waited for: the turn ends at the next end then)
    let Some(guard) = stack::try_lock() else { return };
    // SAFETY: as `end_if_due`.
    stack::call(&guard, || unsafe { next(thread, turns) });
}

/// The next turn begins.
unsafe fn next(thread: *mut ThreadState, turns: *mut Turns) {
    // SAFETY: as `end_if_due`.
    unsafe {
        let chosen = (*turns).rotation.choose();
        let old = (*thread).td;
        pause_open(thread);
        ThreadState::update(thread);
        let next = (*turns).of[chosen];
        let switches = next.td != old;
        let off = !switches || (*old).switch(false).is_ok();
        let regions = add_all(thread);
        if off && switches {
            if (*next.td).switch(true).is_ok() {
                (*turns).now = chosen;
                ((*thread).td, (*thread).record) = (next.td, next.record);
                ((*thread).start, (*thread).zero, (*thread).before) = (next.start, next.zero, next.before);
                (*thread).frames[0].node = next.root;
            } else {
                (*turns).stuck = true;
                let _ = (*old).switch(true);
            }
        }
        (*turns).stuck |= !off;
        resume_open(thread);
        (*turns).begun_ns = (*(*thread).td).read().map_or((*turns).seen_ns, |now| now.time_enabled_ns);
        (*turns).seen_ns = (*turns).begun_ns;
        let length = (*turns).rotation.length(TURN_NS);
        (*turns).length_ns = length.max(WORTH * (END_NS + REGION_NS * regions));
    }
}

/// What the regions of the group whose turn it is have counted in it is one turn more; of how many regions. (Where it is not over, the
/// rest is in the next.)
///
/// # Safety
/// The calling thread's state, in which no other call is at work.
pub(super) unsafe fn add_all(thread: *mut ThreadState) -> u64 {
    // SAFETY: the caller's word.
    unsafe {
        let (mut region, mut count) = (ThreadState::root(thread), 0);
        while !region.is_null() && !(*thread).turns.is_null() {
            count += u64::from(add(thread, region));
            region = following(region);
        }
        count
    }
}

/// The region after this one in a walk through the whole tree; NULL: there is none.
unsafe fn following(region: *mut RegionNode) -> *mut RegionNode {
    // SAFETY: nodes stay as long as the thread's state, and no one else is at them.
    unsafe {
        if !(*region).children.is_null() {
            return (*region).children;
        }
        let mut region = region;
        while !region.is_null() && (*region).sibling.is_null() {
            region = (*region).parent;
        }
        if region.is_null() { null_mut() } else { (*region).sibling }
    }
}

/// What was counted in this turn is one more of the record's; whether anything was.
unsafe fn add(thread: *mut ThreadState, region: *mut RegionNode) -> bool {
    // SAFETY: as `end_if_due`: the thread's own node, and its record.
    unsafe {
        let record = (*region).record;
        if record.is_null() {
            return false;
        }
        if !(*region).parent.is_null() {
            record::complete(region); // (of the thread's own node it is: `publish`)
        }
        let mut now = (*region).sum;
        now.add_counted((*record).counted_executions.load(Relaxed), &*(*region).counted[0]);
        if (*region).then.is_null() {
            let Ok(then) = node::allocate(thread, size_of::<Sum>()) else { return false };
            (*region).then = then.cast();
            (*region).then.write(Sum::default());
        }
        let in_turn = now.since(&*(*region).then);
        if in_turn.measured_slots == 0 {
            return false;
        }
        (*region).then.write(now);
        let turns = &mut (*record).turns;
        let count = turns.turns.load(Relaxed).wrapping_add(1);
        turns.next.store(count, Release);
        let told = in_turn.nodes_in_turns(|node, parent, slots| {
            let mine = |one: &&mut NodeInTurns| one.number == 0 || one.number == node.id + 1;
            if let Some(one) = turns.node.iter_mut().find(mine) {
                one.number = node.id + 1;
                tally(one, node, parent, slots);
            }
        });
        if told.is_ok() {
            turns.slots += in_turn.slots as f64;
            turns.turns.store(count, Release);
        } else {
            turns.next.store(count.wrapping_sub(1), Release);
        }
        true
    }
}

fn tally(one: &mut NodeInTurns, node: &topdown::Node, parent: f64, slots: f64) {
    let mut more = topdown::TurnTally::default();
    more.add(node, parent, slots);
    for (all, more) in [
        (&mut one.own, more.own),
        (&mut one.parent, more.parent),
        (&mut one.own_own, more.own_own),
        (&mut one.own_parent, more.own_parent),
        (&mut one.parent_parent, more.parent_parent),
        (&mut one.far, more.far),
    ] {
        *all += more;
    }
}

/// Open executions end, the innermost first.
unsafe fn pause_open(thread: *mut ThreadState) {
    // SAFETY: frames up to the depth are filled in; one that began with a reading has a record.
    unsafe {
        for k in (1..=ThreadState::depth(thread)).rev() {
            let frame = &raw mut (*thread).frames[k];
            if (*frame).state.is_read() {
                if end_execution(thread, (*frame).node) == 0 {
                    (*(*(*frame).node).record).turns.pieces += 1;
                } else {
                    (*frame).state = ExecutionStart::Unread;
                }
            }
        }
    }
}

/// They go on in the tree of the group whose turn it is now, the outermost first.
unsafe fn resume_open(thread: *mut ThreadState) {
    // SAFETY: as `pause_open`; names stay as long as the state.
    unsafe {
        let depth = ThreadState::depth(thread);
        for k in 1..=depth {
            let Frame { node: old, state, again } = (*thread).frames[k];
            let within = (*thread).frames[k - 1].node;
            let Ok(node) = look_up(thread, within, (*old).name.text()) else {
                leave(thread, k - 1);
                break;
            };
            (*node).direct &= (*old).direct;
            let known = !(*node).record.is_null();
            let state = if state.is_read() && !known { ExecutionStart::Unread } else { state };
            (*thread).frames[k] = Frame { node, state, again };
        }
        for k in 1..=ThreadState::depth(thread) {
            let frame = &raw mut (*thread).frames[k];
            let node = (*frame).node;
            if (*frame).state.is_read()
                && (*(*thread).td).begin(&mut (*node).sum, &*(*node).counted[0]).is_err()
            {
                (*(*node).record).missed += 1;
                (*frame).state = ExecutionStart::Unread;
            }
        }
    }
}
