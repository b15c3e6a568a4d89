//! A thread's regions with a simulated handle and a table of its own, in no measured process.

use super::frame::{DEEPEST, ExecutionStart, Frame};
use super::node::{RegionNode, SoFar};
use super::steady::{self, Clocks};
use super::thread::ThreadState;
use super::{ThreadHandle, execution, forget, life, rotate, so_far, split};
use crate::record::OwnRecord;
use crate::tables::TableFile;
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use topdown::{Options, TopDown};
use topdown_seam::clocks::{elapsed_ns, own_cpu_ns};
use topdown_table::{Measurement, THREAD, TableCore};

const CORE: TableCore = TableCore { name: [b'x'; 48], fingerprint: 7 };

fn handle() -> ThreadHandle {
    let td = TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap();
    // SAFETY: the handle lives for ever.
    unsafe { ThreadHandle::new(Box::leak(Box::new(td))) }
}

/// A thread's state, and its table's file, which goes when the test ends.
struct MeasuredTest {
    thread: &'static ThreadState,
    path: PathBuf,
}

impl Drop for MeasuredTest {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The calling thread is measured, and its regions open from before a fork are these.
fn measured(open: &[(CString, u32)]) -> MeasuredTest {
    measured_by(handle(), open)
}

fn measured_by(handle: ThreadHandle, open: &[(CString, u32)]) -> MeasuredTest {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let path = std::env::temp_dir().join(format!("topdown-regions-{}-{number}", std::process::id()));
    let table = Box::leak(Box::new(TableFile::create(&path).unwrap()));
    MeasuredTest { thread: life::begin(handle, table, c"thread", &CORE, open).unwrap(), path }
}

fn begin(thread: &ThreadState, name: &CStr) -> i32 {
    split::before(thread, name);
    execution::begin(thread, name, true)
}

/// The innermost region ends, or one around others.
fn end(thread: &ThreadState, name: &CStr) -> i32 {
    match thread.open.find(name) {
        Some(at) if at == thread.open.depth() => execution::end_innermost(thread),
        Some(at) => split::end_around(thread, at),
        None => -libc::EINVAL,
    }
}

/// The node of this path of names.
fn node(thread: &ThreadState, path: &[&CStr]) -> &'static RegionNode {
    let root = thread.groups.root();
    path.iter().fold(root, |within, name| thread.nodes.look_up(root, within, name).unwrap())
}

fn executions(thread: &ThreadState, path: &[&CStr]) -> u64 {
    node(thread, path).so_far().executions
}

fn count(thread: &ThreadState, path: &[&CStr], of: fn(OwnRecord) -> &'static std::cell::Cell<u64>) -> u64 {
    of(node(thread, path).record().unwrap()).get()
}

#[test]
fn regions_count_where_they_begin() {
    let test = measured(&[]);
    let thread = test.thread;
    for _ in 0..5 {
        assert_eq!(begin(thread, c"a"), 0);
        for _ in 0..3 {
            assert_eq!(begin(thread, c"b"), 0);
            assert_eq!(end(thread, c"b"), 0);
        }
        assert_eq!(end(thread, c"a"), 0);
    }
    assert_eq!(begin(thread, c"b"), 0);
    assert_eq!(end(thread, c"b"), 0);
    assert_eq!(executions(thread, &[c"a"]), 5);
    assert_eq!(executions(thread, &[c"a", c"b"]), 15);
    assert_eq!(executions(thread, &[c"b"]), 1);
    assert_eq!(so_far(c"b").executions, 16);
    forget(c"b");
    assert_eq!(so_far(c"b"), SoFar::default());
    assert_eq!(so_far(c"a").executions, 5);
    let record = node(thread, &[c"a", c"b"]).record().unwrap();
    assert_eq!(record.parent().get(), node(thread, &[c"a"]).number());
    assert_eq!(record.thread().get(), thread.groups.root().number());
    assert!(record.core().get() == CORE);
    assert_eq!(begin(thread, c""), -libc::EINVAL);
}

#[test]
fn a_region_that_outlasts_the_one_around_it_has_two_executions() {
    let test = measured(&[]);
    let thread = test.thread;
    assert_eq!(begin(thread, c"a"), 0);
    assert_eq!(begin(thread, c"b"), 0);
    assert_eq!(end(thread, c"a"), 0);
    assert_eq!(thread.open.depth(), 1);
    assert!(thread.open.innermost().state == ExecutionStart::ReadAgain);
    assert_eq!(end(thread, c"b"), 0);
    assert_eq!((executions(thread, &[c"a"]), executions(thread, &[c"a", c"b"])), (1, 1));
    assert_eq!(executions(thread, &[c"b"]), 1);
    assert_eq!(count(thread, &[c"a", c"b"], OwnRecord::split), 1);
    let by = node(thread, &[c"a", c"b"]).record().unwrap().split_by().get();
    assert_eq!(by, node(thread, &[c"a"]).number() + 1);
}

#[test]
fn a_piece_whose_region_begins_again_does_not_count() {
    let test = measured(&[]);
    let thread = test.thread;
    assert_eq!(begin(thread, c"a"), 0);
    assert_eq!(begin(thread, c"b"), 0);
    assert_eq!(end(thread, c"a"), 0);
    assert_eq!(begin(thread, c"b"), 0);
    assert_eq!(thread.open.depth(), 1);
    assert_eq!(end(thread, c"b"), 0);
    assert_eq!(executions(thread, &[c"b"]), 1);
    assert_eq!(count(thread, &[c"b"], OwnRecord::unended), 1);
}

#[test]
fn of_many_pieces_none_counts() {
    let test = measured(&[]);
    let thread = test.thread;
    let names: Vec<_> = (0..17).map(|k| CString::new(format!("forgotten {k}")).unwrap()).collect();
    for (k, name) in names.iter().enumerate() {
        assert_eq!(begin(thread, c"around"), 0);
        assert_eq!(begin(thread, name), 0);
        assert_eq!(end(thread, c"around"), 0);
        assert_eq!(thread.open.depth(), if k < 16 { k + 1 } else { 0 });
    }
    // the first time that each was split it counted
    assert_eq!(executions(thread, &[c"around", &names[0]]), 1);
}

#[test]
fn what_is_left_is_unended_and_recursion_is_not_nested_then() {
    let test = measured(&[]);
    let thread = test.thread;
    assert_eq!(begin(thread, c"a"), 0);
    let record = node(thread, &[c"a"]).record().unwrap();
    record.nested().set(5);
    thread.open.set(1, Frame { again: 2, ..thread.open.at(1) });
    assert_eq!(begin(thread, c"b"), 0);
    execution::leave(thread, 0);
    assert_eq!(thread.open.depth(), 0);
    assert_eq!((record.nested().get(), record.unended().get()), (3, 3));
    assert_eq!(count(thread, &[c"a", c"b"], OwnRecord::unended), 1);
    assert_eq!((executions(thread, &[c"a"]), executions(thread, &[c"a", c"b"])), (0, 0));
}

#[test]
fn regions_that_are_too_deep_are_missed_and_take_no_other_ones_end() {
    let test = measured(&[]);
    let thread = test.thread;
    assert_eq!(begin(thread, c"around"), 0);
    for _ in 1..DEEPEST {
        assert_eq!(begin(thread, c"deep"), 0);
    }
    for over in 1..=3 {
        assert_eq!(begin(thread, c"deeper"), -libc::ENOSPC);
        assert_eq!((thread.open.depth(), thread.open.over.get()), (DEEPEST, over));
    }
    let path = [&[c"around"], &[c"deep"; DEEPEST - 1][..], &[c"deeper"]].concat();
    assert_eq!(count(thread, &path, OwnRecord::missed), 3);
    assert!(thread.open.end_over(c"deeper") && thread.open.over.get() == 2);
    // one around all: what is deeper has lost its ends
    assert!(!thread.open.end_over(c"around") && thread.open.over.get() == 0);
    assert!(!thread.open.end_over(c"deeper"));
    assert_eq!(begin(thread, c"deep"), -libc::ENOSPC);
    thread.settle();
    assert!(ThreadState::idle().is_none() && ThreadState::measured().is_some());
    thread.open.over.set(0);
    thread.settle();
    assert!(ThreadState::idle().is_some_and(|idle| std::ptr::eq(idle, thread)));
}

#[test]
fn a_thread_goes_on_in_the_records_of_one_that_has_ended() {
    let test = measured(&[]);
    let thread = test.thread;
    let record = thread.groups.now().record;
    assert_eq!((record.kind().load(Relaxed), record.before().get()), (THREAD, 0));
    assert_eq!(begin(thread, c"a"), 0);
    assert_eq!(end(thread, c"a"), 0);
    assert_eq!(begin(thread, c"open"), 0);
    assert!(!thread.is_of_cores(&[]) && thread.is_of_cores(&[CORE]) && !thread.is_of_cores(&[CORE; 2]));
    assert!(thread.has_name(c"thread") && thread.was_of_this_thread());
    thread.end();
    assert!(ThreadState::measured().is_none() && ThreadState::is_for_good_without());
    assert_eq!((record.ended().load(Relaxed), count(thread, &[c"open"], OwnRecord::unended)), (1, 1));
    thread.miss(c"late");
    assert_eq!(count(thread, &[c"late"], OwnRecord::missed), 1);
    thread.begin_again(std::iter::once(handle())).unwrap();
    assert_eq!((record.ended().load(Relaxed), record.before().get()), (0, 1));
    assert_eq!(so_far(c"a"), SoFar::default());
    assert_eq!(begin(thread, c"a"), 0);
    assert_eq!(end(thread, c"a"), 0);
    assert_eq!((so_far(c"a").executions, executions(thread, &[c"a"])), (1, 2));
    thread.end();
}

#[test]
fn regions_that_a_fork_found_open_are_so_in_the_child() {
    let test = measured(&[(c"a".into(), 0), (c"b".into(), 2)]);
    let thread = test.thread;
    assert_eq!(thread.open_regions(), [(c"a", 0), (c"b", 2)]);
    execution::leave(thread, 1);
    assert_eq!(end(thread, c"a"), 0);
    assert_eq!(executions(thread, &[c"a"]), 1);
    // (its begin was the parent's, and its end mostly is)
    let record = node(thread, &[c"a", c"b"]).record().unwrap();
    assert_eq!((record.unended().get(), record.nested().get()), (2, 0));
}

#[test]
fn one_group_alone_has_no_turns() {
    let test = measured(&[]);
    let thread = test.thread;
    rotate::first_turn(thread);
    assert_eq!(rotate::add_all(thread), 0);
    assert_eq!(thread.groups.roots().count(), 1);
}

/// What a node's record says. (Clocks write to the first of the two.)
fn recorded(thread: &ThreadState, path: &[&CStr]) -> Measurement {
    node(thread, path).record().unwrap().measurement().get()[0]
}

#[test]
fn by_clocks_executions_have_the_time_between_their_ends_and_cpu_time_if_they_are_long() {
    const LONG_NS: u64 = 60_000;
    let test = measured_by(ThreadHandle::CLOCKS, &[]);
    let thread = test.thread;
    assert!(ThreadState::idle().is_none() && ThreadState::idle_by_clocks().is_some());
    // SAFETY: the calling thread's state, and C strings.
    let [begins, ends] = unsafe {
        [
            |name: &CStr| steady::begin::<true, Clocks>(ThreadState::own(), name.as_ptr()),
            |name: &CStr| steady::end::<Clocks>(ThreadState::own(), name.as_ptr()),
        ]
    };
    // (there is no measured process, so the first one is begun as the slow path does it)
    for name in [c"long", c"short"] {
        assert_eq!((begin(thread, name), end(thread, name)), (0, 0));
    }
    let (mut inside, mut outside) = ([0; 2], [0; 2]);
    let now = || [elapsed_ns(), own_cpu_ns()];
    let before = recorded(thread, &[c"long"]);
    for _ in 0..100 {
        let outer = now();
        assert_eq!(begins(c"long"), 0);
        let inner = now();
        while own_cpu_ns() < inner[1] + LONG_NS {}
        let within = now();
        assert_eq!(ends(c"long"), 0);
        let without = now();
        for k in 0..2 {
            inside[k] += within[k] - inner[k];
            outside[k] += without[k] - outer[k];
        }
        assert_eq!((begins(c"short"), ends(c"short")), (0, 0));
    }
    let long = recorded(thread, &[c"long"]);
    assert_eq!((long.executions, long.measured, long.slots), (101, 101, 0));
    let times = [long.enabled_ns - before.enabled_ns, long.running_ns - before.running_ns];
    for k in 0..2 {
        assert!((inside[k]..=outside[k]).contains(&times[k]), "{times:?}: {inside:?} to {outside:?}");
    }
    let short = recorded(thread, &[c"short"]);
    assert_eq!((short.executions, short.measured), (101, 16));
    assert_eq!(so_far(c"long").ns, long.enabled_ns);
    // regions that end in another order, and what the thread was in all
    assert_eq!(
        (begin(thread, c"a"), begin(thread, c"b"), end(thread, c"a"), end(thread, c"b")),
        (0, 0, 0, 0)
    );
    assert_eq!((executions(thread, &[c"a", c"b"]), executions(thread, &[c"b"])), (1, 1));
    let root = thread.groups.root().record().unwrap();
    assert!(root.seen_ns().get() > long.enabled_ns);
    thread.end();
    let all = root.measurement().get()[(root.current().load(Relaxed) & 1) as usize];
    assert_eq!((all.executions, all.measured), (1, 1));
    assert!(all.enabled_ns >= root.seen_ns().get() && all.running_ns > long.running_ns);
    assert!(ThreadState::idle_by_clocks().is_none());
}
