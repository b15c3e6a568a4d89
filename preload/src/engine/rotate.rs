//! Where no group of counters holds the wanted level, groups of its parts take turns in a thread: one is on at a time. Each counts in a
//! tree of regions of its own, with records of its own, so that a begin and an end are what they are without turns. A turn ends where an
//! execution ends, so each is of one group, but for those that are open then: they end there, and begin again in the next turn's tree.
//! At the end of a turn each region's slots in it are one of a random sample (docs/error-bound-sums.md, Turns).
#![forbid(unsafe_code)]

use super::execution;
use super::frame::{ExecutionStart, Frame};
use super::groups::{ThreadGroup, Turns};
use super::handle::ThreadHandle;
use super::node::RegionNode;
use super::thread::ThreadState;
use super::tree::walk;
use super::turn_clock::{TURN_NS, TurnClock};
use crate::process::MeasuredProcess;
use crate::record::OwnRecord;
use crate::{arena, stack};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Relaxed, Release};
use topdown::{MOST_TURNS, Node, PeriodTotals, Sum, TurnTally};
use topdown_table::{NodeInTurns, THREAD, TableCore};

/// No CPU's group measures more nodes below level 1 (src/sum/turns.rs tests it).
const _: () = assert!(topdown_table::MOST_NODES_IN_TURNS == topdown::MOST_NODES_IN_TURNS);

/// Has other groups take turns with the one that the thread has begun with; they are switched off. Each has the nodes that its turns tell
/// (none: all), of the first they are `nodes`. `random`: a seed. None: the thread goes on with that one alone.
pub fn take_turns(
    thread: &ThreadState,
    nodes: &'static [u32],
    others: impl Iterator<Item = (ThreadHandle, &'static [u32], TableCore)>,
    name: &CStr,
    random: u64,
) -> Option<()> {
    let first = ThreadGroup { nodes, ..thread.groups.now() };
    thread.groups.set(&first);
    let mut groups = [None; MOST_TURNS];
    groups[0] = Some(first);
    for (group, (td, nodes, core)) in groups[1..].iter_mut().zip(others) {
        let start = td.counters()?.read().ok()?;
        let (record, number) = thread.nodes.tables().take(name)?;
        let root = thread.nodes.new_root(record, number)?;
        record.parent().set(first.record.thread().get());
        record.thread().set(number);
        record.tid().set(first.record.tid().get());
        record.core().set(core);
        record.kind().store(THREAD, Release);
        let zero = PeriodTotals { slots: start.slots, ns: start.time_enabled_ns };
        *group = Some(ThreadGroup { td, root, record, start, zero, before: Sum::default(), nodes });
    }
    let turns = arena::keep(Turns::new(&groups, first, random)).ok()?;
    thread.groups.take_turns(turns);
    first_turn(thread);
    Some(())
}

/// The first turn is any group's, so that none has the beginnings of all threads.
pub fn first_turn(thread: &ThreadState) {
    let Some(turns) = thread.groups.turns() else { return };
    turns.rotation.borrow_mut().start_over();
    turns.on_clock(TurnClock::go);
    next(thread, turns);
    turns.on_clock(TurnClock::is_first);
}

/// An execution has ended, and a call of the slow path has nothing left to do: if the turn has lasted long enough, the next begins.
#[inline(always)]
pub fn end_if_due(thread: &ThreadState) {
    if let Some(turns) = thread.groups.turns().filter(|turns| turns.is_due()) {
        end(thread, turns);
    }
}

#[cold]
#[inline(never)]
fn end(thread: &ThreadState, turns: &Turns) {
    if MeasuredProcess::get().is_none_or(MeasuredProcess::has_ended) {
        return;
    }
    // (a signal handler's end, which interrupted a begin or an end: that one has a region of this turn at hand)
    if thread.open.regions().any(|(_, frame)| frame.state.is_read() && !frame.node.has_begun()) {
        return;
    }
    // (whoever holds it is not waited for: the turn ends at the next end then)
    let Some(guard) = stack::try_lock() else { return };
    stack::call(&guard, || next(thread, turns));
}

/// The next turn begins.
fn next(thread: &ThreadState, turns: &Turns) {
    let mut rotation = turns.rotation.borrow_mut();
    let (old, next) = (thread.groups.td(), turns.groups()[rotation.choose()].get());
    pause_open(thread);
    thread.groups.update();
    let switches = next.td != old;
    let switch = |td: ThreadHandle, on| td.counters().is_some_and(|td| td.switch(on).is_ok());
    let off = !switches || switch(old, false);
    let regions = add_all(thread);
    if off && switches {
        if switch(next.td, true) {
            thread.groups.set(&next);
            thread.open.set(0, Frame::new(next.root, ExecutionStart::Thread));
        } else {
            turns.on_clock(TurnClock::stop);
            switch(old, true);
        }
    }
    if !off {
        turns.on_clock(TurnClock::stop);
    }
    resume_open(thread);
    let now = thread.groups.td().read().ok().map(|now| now.time_enabled_ns);
    let length = rotation.length(TURN_NS);
    turns.on_clock(|clock| clock.begin(now, length, regions));
}

/// What the regions of the group whose turn it is have counted in it is one turn more; of how many regions. (Where it is not over, the
/// rest is in the next.)
pub fn add_all(thread: &ThreadState) -> u64 {
    if thread.groups.turns().is_none() {
        return 0;
    }
    walk(thread.groups.root()).map(|region| u64::from(add(thread, region).is_some())).sum()
}

/// What was counted in this turn is one more of the record's. None: nothing was.
fn add(thread: &ThreadState, region: &RegionNode) -> Option<()> {
    let record = region.record()?;
    if region.parent().is_some() {
        region.complete(); // (of the thread's own node it is: `publish`)
    }
    let mut now = region.sum();
    now.add_counted(record.counted_executions().load(Relaxed), &region.counted());
    let then = region.last_turn(|| thread.nodes.new_sum())?;
    let in_turn = now.since(&then.get());
    if in_turn.measured_slots == 0 {
        return None;
    }
    then.set(now);
    let [turns, ahead] = record.turns();
    let count = turns.load(Relaxed).wrapping_add(1);
    ahead.store(count, Release);
    let kept = thread.groups.nodes();
    let told = in_turn.nodes_in_turns(|node, above, parent, slots| {
        if kept.is_empty() || kept.contains(&node.id) {
            tally(record.nodes_in_turns(), node, above, parent, slots);
        }
    });
    if told.is_ok() {
        let slots = record.slots_in_turns();
        slots.set(slots.get() + in_turn.slots as f64);
        turns.store(count, Release);
    } else {
        ahead.store(count.wrapping_sub(1), Release);
    }
    Some(())
}

/// Adds what a turn tells of a node to the one of its number, or to one that is not in use.
fn tally(nodes: &[Cell<NodeInTurns>], node: &Node, above: u32, parent: f64, slots: f64) {
    let number = node.id + 1;
    let Some(place) = nodes.iter().find(|one| [0, number].contains(&one.get().number)) else { return };
    let mut more = TurnTally::default();
    more.add(node, parent, slots);
    let mut one = place.get();
    // (a turn in which that is not known tells nothing of the part that the node has of it)
    if one.number == number && one.above != above {
        return;
    }
    (one.number, one.above) = (number, above);
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
    place.set(one);
}

/// Open executions end, the innermost first.
fn pause_open(thread: &ThreadState) {
    for (number, frame) in thread.open.regions().rev().filter(|(_, frame)| frame.state.is_read()) {
        match frame.node.record() {
            Some(record) if execution::end(thread, frame.node) == 0 => {
                record.add(OwnRecord::pieces_in_turns, 1);
            }
            _ => thread.open.set(number, Frame { state: ExecutionStart::Unread, ..frame }),
        }
    }
}

/// They go on in the tree of the group whose turn it is now, the outermost first.
fn resume_open(thread: &ThreadState) {
    for (number, frame) in thread.open.regions() {
        let within = thread.open.at(number - 1).node;
        let Ok(node) = thread.nodes.look_up(thread.groups.root(), within, frame.node.name().text()) else {
            execution::leave(thread, number - 1);
            break;
        };
        node.set_direct(node.is_direct() && frame.node.is_direct());
        let is_unread = frame.state.is_read() && node.record().is_none();
        let state = if is_unread { ExecutionStart::Unread } else { frame.state };
        thread.open.set(number, Frame { node, state, ..frame });
    }
    for (number, frame) in thread.open.regions().filter(|(_, frame)| frame.state.is_read()) {
        if frame.node.begin(thread.groups.td()).is_err() {
            if let Some(record) = frame.node.record() {
                record.add(OwnRecord::missed, 1);
            }
            thread.open.set(number, Frame { state: ExecutionStart::Unread, ..frame });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown::TD_NODE_NONE;

    #[test]
    fn a_node_has_one_place_for_all_turns() {
        let nodes: [Cell<NodeInTurns>; 3] = std::array::from_fn(|_| Cell::default());
        let node =
            |id, value| Node { id, value, low: value - 0.01, high: value + 0.01, ..Default::default() };
        tally(&nodes, &node(7, 0.25), TD_NODE_NONE, 100.0, 400.0);
        tally(&nodes, &node(0, 0.5), TD_NODE_NONE, 100.0, 400.0);
        tally(&nodes, &node(7, 0.75), TD_NODE_NONE, 100.0, 400.0);
        let numbers: Vec<u32> = nodes.iter().map(|node| node.get().number).collect();
        assert_eq!(numbers, [8, 1, 0]);
        assert_eq!(nodes[0].get().own, 400.0);
        assert_eq!(nodes[0].get().parent, 200.0);
        assert_eq!(nodes[1].get().own, 200.0);
        // one that finds no place is left out
        tally(&nodes, &node(3, 0.5), TD_NODE_NONE, 100.0, 400.0);
        tally(&nodes, &node(4, 0.5), TD_NODE_NONE, 100.0, 400.0);
        assert_eq!(nodes.clone().map(|node| node.get().number), [8, 1, 4]);
        // nor has one any of a turn in which another node is the one above it
        let before = nodes[0].get();
        tally(&nodes, &node(7, 0.5), 2, 100.0, 400.0);
        assert_eq!(nodes[0].get(), before);
    }
}
