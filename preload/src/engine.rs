//! Regions begin and end, in the thread that calls: the tree of its regions, the stack of those that have begun, and the
//! handle that is read at both ends.
//!
//! A begin and an end of the steady state take no lock, no memory and no system call, and work in a signal handler. Names
//! are looked up by where they are and what they say: a cache of a thread's own, then the children of the region in
//! which it began.

use crate::name::{Name, crosses};
use crate::process;
use crate::quiet::Quiet;
use crate::tables::Tables;
use crate::word;
use std::arch::x86_64::{__m128i, _mm_set_epi64x};
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::offset_of;
use std::ptr::{addr_of, addr_of_mut, null_mut};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::compiler_fence;
use topdown::{Sample, Seen, Sum, TopDown};
use topdown_report::table::{NAME, NONE, REGION, Record, THREAD};

/// Names that a thread's cache has room for.
const CACHE: usize = 512;
/// Regions that may be open in a thread, each in the other.
const DEEPEST: usize = 511;
/// Bytes of memory that nodes are taken from, at a time; for good, as threads' states are.
const ARENA: usize = 1 << 14;

/// How an execution began.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum State {
    /// With a reading.
    Read,
    /// The reading failed, or there is no record.
    Unread,
    /// In the parent process.
    BeforeFork,
    /// It is the thread's own.
    Thread,
}

/// A region in the place where it began.
#[repr(align(128))]
struct Node {
    parent: *mut Node,
    /// Kept in its record, or in the arena if there is none.
    name: Name,
    /// NULL: there was no room.
    record: *mut Record,
    /// The one of the record's sums that holds.
    sum: *mut Sum,
    number: u32,
    children: *mut Node,
    sibling: *mut Node,
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Frame {
    node: *mut Node,
    state: State,
    /// How often the region began in itself since, and did not end.
    again: u32,
}

impl Frame {
    /// What `state` and `again` are together in an execution that began with a reading.
    const PLAIN: u64 = 0;

    /// Makes it that, in one store.
    #[inline(always)]
    unsafe fn set(frame: *mut Frame, node: *mut Node) {
        // SAFETY: a frame of the caller's, as long as the two words; SSE2 is part of x86-64.
        unsafe { frame.cast::<__m128i>().write_volatile(_mm_set_epi64x(Frame::PLAIN as i64, node as i64)) };
    }

    #[inline(always)]
    unsafe fn is_plain(frame: *const Frame) -> bool {
        // SAFETY: as above.
        unsafe { addr_of!((*frame).state).cast::<u64>().read() == Frame::PLAIN }
    }

    fn new(node: *mut Node, state: State) -> Frame {
        Frame { node, state, again: 0 }
    }
}

/// What a thread needs, in memory that a forked child finds zeroed.
pub struct Thread {
    /// Not 0: it is as this process has made it.
    alive: usize,
    /// Not 0: and not too deep in regions.
    idle: usize,
    /// Where the innermost region's frame is, in bytes from the first, which is the thread's.
    innermost: usize,
    /// Regions that began deeper than there are frames.
    over: usize,
    td: *const TopDown,
    /// The thread's own.
    record: *mut Record,
    start: Sample,
    /// What the handle said when the record's figures were zero, or would have.
    zero: Seen,
    /// What the threads before it had, whose records it has.
    before: Sum,
    /// Where the rest of the present arena is, and how long.
    arena: (*mut u8, usize),
    tables: *const Tables,
    /// The thread's own node where there is no other yet: it is below none.
    cache: [*mut Node; CACHE],
    frames: [Frame; DEEPEST + 1],
}

/// A thread's word when it is measured no more, or cannot be.
pub const GONE: *mut Thread = std::ptr::without_provenance_mut(1);

/// A region begins in this thread. Returns 0, or as td_read; -EINVAL, -ENAMETOOLONG, -ENOSPC: no name, or
/// too long a one, or no room: it is not counted.
///
/// # Safety
/// `name` is a C string, or NULL.
#[inline]
pub unsafe fn begin(name: *const c_char) -> c_int {
    // SAFETY: the caller's word; the thread is this one's.
    unsafe {
        let thread = word::get();
        if is_steady(thread) { begin_steadily(thread, name) } else { begin_slowly(name) }
    }
}

/// The innermost region of this name ends; those within it that did not end are counted as unended. Returns 0, or as
/// td_read; -EINVAL: none had begun (which is counted).
///
/// # Safety
/// `name` is a C string, or NULL.
#[inline]
pub unsafe fn end(name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        let thread = word::get();
        if is_steady(thread) { end_steadily(thread, name) } else { end_slowly(name) }
    }
}

/// Whether the thread's state can be looked at, and no call that changes it was interrupted.
#[inline(always)]
unsafe fn is_steady(thread: *mut Thread) -> bool {
    // SAFETY: a thread's word is NULL, GONE or its own state.
    unsafe { thread > GONE && (*thread).idle != 0 }
}

/// The frame so many bytes from the first.
#[inline(always)]
unsafe fn frame_at(thread: *mut Thread, bytes: usize) -> *mut Frame {
    // SAFETY: the caller's word: it is one of the thread's.
    unsafe { addr_of_mut!((*thread).frames).byte_add(bytes).cast() }
}

/// The number of the innermost region's frame.
unsafe fn depth(thread: *mut Thread) -> usize {
    // SAFETY: the thread's own state.
    unsafe { (*thread).innermost / size_of::<Frame>() }
}

/// Now this is the innermost.
unsafe fn set_depth(thread: *mut Thread, depth: usize) {
    // SAFETY: as above.
    unsafe { (*thread).innermost = depth * size_of::<Frame>() };
}

/// A begin that needs nothing new, and whose execution is not to be measured. Each step goes on to the next or to
/// `begin_slowly`, and nothing has happened then; so the quickest way has no frame on the stack.
#[inline(always)]
unsafe fn begin_steadily(thread: *mut Thread, name: *const c_char) -> c_int {
    // SAFETY: the thread's own state; a C string.
    unsafe {
        let within = (*frame_at(thread, (*thread).innermost)).node;
        let node = *addr_of_mut!((*thread).cache).cast::<*mut Node>().add(place(within, name));
        if (*node).parent != within || crosses(name) {
            return begin_slowly(name);
        }
        if !(*node).name.is_at_sight(name) {
            return begin_longer(name, node);
        }
        enter(thread, node, name)
    }
}

/// It is not known at sight that this is the node.
#[inline(never)]
unsafe extern "C" fn begin_longer(name: *const c_char, node: *mut Node) -> c_int {
    // SAFETY: as above; the head of the name does not cross a page.
    unsafe { if (*node).name.is_longer(name) { enter(word::get(), node, name) } else { begin_slowly(name) } }
}

/// A signal handler may interrupt it with begins and ends of its own: it leaves the stack as it was.
#[inline(always)]
unsafe fn enter(thread: *mut Thread, node: *mut Node, name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        let inner = (*thread).innermost + size_of::<Frame>();
        if inner > DEEPEST * size_of::<Frame>() {
            return begin_slowly(name);
        }
        let frame = frame_at(thread, inner);
        Frame::set(frame, node);
        addr_of_mut!((*thread).innermost).write_volatile(inner);
        // A handler that came before that had its own frame there. One that comes now and begins this region finds
        // it begun, and does not touch the sum.
        Frame::set(frame, node);
        if (*(*thread).td).begin_steadily(&mut *(*node).sum) {
            return 0;
        }
        (*word::get()).innermost -= size_of::<Frame>();
        begin_slowly(name)
    }
}

/// The end of such an execution.
#[inline(always)]
unsafe fn end_steadily(thread: *mut Thread, name: *const c_char) -> c_int {
    // SAFETY: as above. The first frame's node has a record.
    unsafe {
        let frame = frame_at(thread, (*thread).innermost);
        let node = (*frame).node;
        if !Frame::is_plain(frame) || crosses(name) {
            return end_slowly(name);
        }
        if !(*node).name.is_at_sight(name) {
            return end_longer(name, node);
        }
        exit(thread, node, name)
    }
}

/// As `begin_longer`.
#[inline(never)]
unsafe extern "C" fn end_longer(name: *const c_char, node: *mut Node) -> c_int {
    // SAFETY: as there.
    unsafe { if (*node).name.is_longer(name) { exit(word::get(), node, name) } else { end_slowly(name) } }
}

#[inline(always)]
unsafe fn exit(thread: *mut Thread, node: *mut Node, name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(seen) = (*(*thread).td).end_steadily(&mut *(*node).sum) else { return end_slowly(name) };
        let thread = word::get();
        (*thread).innermost -= size_of::<Frame>();
        saw(thread, seen);
        0
    }
}

/// So far the thread has come.
#[inline(always)]
unsafe fn saw(thread: *mut Thread, seen: Seen) {
    // SAFETY: as above.
    unsafe {
        let record = (*thread).record;
        (*record).seen_slots = seen.slots.wrapping_sub((*thread).zero.slots);
        (*record).seen_ns = seen.ns.wrapping_sub((*thread).zero.ns);
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn begin_slowly(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's word; the thread is this one's.
    unsafe {
        let again = in_itself(name);
        if !again.is_null() {
            (*again).again += 1;
            let record = (*(*again).node).record;
            if !record.is_null() {
                (*record).nested += 1;
            }
            return 0;
        }
        in_thread(|thread| begin_in(thread, name))
    }
}

/// The innermost frame, if it is of a region of this name; else NULL.
#[inline(always)]
unsafe fn in_itself(name: *const c_char) -> *mut Frame {
    let thread = word::get();
    // SAFETY: the thread's own state; a C string.
    unsafe {
        if !is_steady(thread) || depth(thread) == 0 {
            return null_mut();
        }
        let frame = addr_of_mut!((*thread).frames[depth(thread)]);
        if (*(*frame).node).name.is(name) { frame } else { null_mut() }
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn end_slowly(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: as above.
    unsafe {
        let again = in_itself(name);
        if !again.is_null() && (*again).again > 0 {
            (*again).again -= 1;
            return 0;
        }
        in_thread(|thread| end_in(thread, name))
    }
}

/// As `end`, but what was executed does not count: the region was left by longjmp.
///
/// # Safety
/// `name` is a C string.
pub unsafe fn abandon(name: *const c_char) {
    // SAFETY: as above.
    unsafe {
        in_thread(|thread| {
            if let Some(at) = find(thread, name) {
                leave(thread, at);
                let frame = addr_of_mut!((*thread).frames[at]);
                if (*frame).again > 0 { left(frame, 1) } else { leave(thread, at - 1) }
            }
            0
        });
    }
}

/// Whether anything is measured in this process.
pub fn active() -> bool {
    process::active()
}

/// Does this work on the thread's own state. No signal handler runs meanwhile: one that left by longjmp would leave the handle
/// busy for good, and one that had regions would find the state as no call leaves it. Nor is the thread cancelled.
unsafe fn in_thread(work: impl FnOnce(*mut Thread) -> c_int) -> c_int {
    if word::get() == GONE {
        return 0;
    }
    let _quiet = Quiet::new();
    let mut thread = word::get();
    // SAFETY: a thread's word is NULL, GONE or its own state.
    unsafe {
        if thread <= GONE || (*thread).alive == 0 {
            thread = process::attach();
            if thread <= GONE {
                return 0;
            }
        }
        let code = work(thread);
        (*thread).idle = usize::from((*thread).over == 0);
        code
    }
}

unsafe fn root(thread: *mut Thread) -> *mut Node {
    // SAFETY: the first frame is filled in as long as the thread lives.
    unsafe { (*thread).frames[0].node }
}

/// Where a name's node of a parent may be in the cache.
#[inline(always)]
unsafe fn place(parent: *mut Node, name: *const c_char) -> usize {
    // SAFETY: a node of the thread's.
    (name as usize ^ unsafe { (*parent).number } as usize) % CACHE
}

#[inline(always)]
unsafe fn begin_in(thread: *mut Thread, name: *const c_char) -> c_int {
    // SAFETY: the thread's own state; a C string.
    unsafe {
        let depth = depth(thread);
        let within = (*thread).frames[depth].node;
        if depth == DEEPEST {
            (*thread).over += 1;
            return -libc::ENOSPC;
        }
        let mut node = (*thread).cache[place(within, name)];
        if (*node).parent != within || !(*node).name.is(name) {
            node = match look_up(thread, within, name) {
                Ok(node) => node,
                Err(code) => return code,
            };
        }
        let frame = addr_of_mut!((*thread).frames[depth + 1]);
        frame.write(Frame::new(node, State::Unread));
        compiler_fence(Release); // what is below `depth` is there, for a signal handler, too
        set_depth(thread, depth + 1);
        if (*node).record.is_null() {
            return -libc::ENOSPC;
        }
        match (*(*thread).td).begin(&mut *(*node).sum) {
            Ok(()) => {
                (*frame).state = State::Read;
                0
            }
            Err(error) => missed(node, &error),
        }
    }
}

#[inline(always)]
unsafe fn end_in(thread: *mut Thread, name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        if (*thread).over > 0 {
            (*thread).over -= 1;
            return 0;
        }
        if depth(thread) == 0 || !(*(*thread).frames[depth(thread)].node).name.is(name) {
            match find(thread, name) {
                Some(at) => leave(thread, at),
                None => return unbalanced(thread, name),
            }
        }
        let frame = addr_of_mut!((*thread).frames[depth(thread)]);
        if (*frame).again > 0 {
            (*frame).again -= 1; // of one in which others were left open
            return 0;
        }
        set_depth(thread, depth(thread) - 1);
        if (*frame).state != State::Read {
            return 0;
        }
        let node = (*frame).node;
        let sum = (*node).sum;
        if (*sum).is_measuring() {
            return end_measured(thread, node);
        }
        match (*(*thread).td).end(&mut *sum) {
            Ok(seen) => {
                saw(thread, seen);
                0
            }
            Err(error) => missed(node, &error),
        }
    }
}

/// The end of a measured execution changes the whole sum: it is done in the other one of the record's, which then takes
/// the first one's place, so that the file holds one or the other.
#[cold]
unsafe fn end_measured(thread: *mut Thread, node: *mut Node) -> c_int {
    // SAFETY: the thread's own state and record.
    unsafe {
        let mut sum = *(*node).sum;
        if let Err(error) = (*(*thread).td).end(&mut sum) {
            return missed(node, &error);
        }
        (*node).sum = hold((*node).record, &sum);
        publish(thread, &sum.last);
        0
    }
}

/// Makes this the record's sum; returns where it is.
unsafe fn hold(record: *mut Record, sum: &Sum) -> *mut Sum {
    // SAFETY: the caller's own record.
    unsafe {
        let next = 1 - ((*record).current.load(Relaxed) & 1);
        let place = addr_of_mut!((*record).sum[next as usize]);
        place.write(*sum);
        (*record).current.store(next, Release);
        place
    }
}

/// The thread's own figures, up to this reading.
unsafe fn publish(thread: *mut Thread, now: &Sample) {
    // SAFETY: the thread's own state and record.
    unsafe {
        let node = root(thread);
        let mut sum = (*thread).before;
        if sum.add(&(*thread).start, now).is_ok() {
            (*node).sum = hold((*node).record, &sum);
        }
    }
}

#[cold]
unsafe fn missed(node: *mut Node, error: &topdown::Error) -> c_int {
    // SAFETY: its record is the thread's own.
    unsafe {
        // (handles are taken away from threads that run when the process ends)
        if process::active() {
            (*(*node).record).missed += 1;
        }
    }
    error.code()
}

/// The innermost open frame of this name.
#[cold]
unsafe fn find(thread: *mut Thread, name: *const c_char) -> Option<usize> {
    // SAFETY: frames up to `depth` are filled in.
    unsafe { (1..=depth(thread)).rev().find(|at| (*(*thread).frames[*at].node).name.is(name)) }
}

/// Leaves all regions deeper than this, which do not count.
#[cold]
unsafe fn leave(thread: *mut Thread, depth: usize) {
    // SAFETY: as above.
    unsafe {
        while self::depth(thread) > depth {
            let frame = addr_of_mut!((*thread).frames[self::depth(thread)]);
            left(frame, (*frame).again);
            let record = (*(*frame).node).record;
            if (*frame).state == State::Read {
                (*record).unended += 1;
            }
            set_depth(thread, self::depth(thread) - 1);
        }
    }
}

/// So many executions in themselves of a frame's region will not end.
unsafe fn left(frame: *mut Frame, times: u32) {
    // SAFETY: as above.
    unsafe {
        (*frame).again -= times;
        let record = (*(*frame).node).record;
        if !record.is_null() {
            (*record).nested = (*record).nested.saturating_sub(u64::from(times)); // some were of the parent
            (*record).unended += u64::from(times);
        }
    }
}

#[cold]
unsafe fn unbalanced(thread: *mut Thread, name: *const c_char) -> c_int {
    // SAFETY: as above.
    unsafe {
        let within = (*thread).frames[depth(thread)].node;
        if let Ok(node) = look_up(thread, within, name) {
            if !(*node).record.is_null() {
                (*(*node).record).unbalanced += 1;
            }
        }
    }
    -libc::EINVAL
}

/// The node of this name below another, found or made.
#[cold]
unsafe fn look_up(
    thread: *mut Thread,
    within: *mut Node,
    name: *const c_char,
) -> std::result::Result<*mut Node, c_int> {
    // SAFETY: the thread's own state and nodes; a C string.
    unsafe {
        let text = CStr::from_ptr(name);
        match text.count_bytes() {
            0 => return Err(-libc::EINVAL),
            1..=NAME => {}
            _ => return Err(-libc::ENAMETOOLONG),
        }
        let mut node = (*within).children;
        while !node.is_null() && !(*node).name.is(name) {
            node = (*node).sibling;
        }
        if node.is_null() {
            node = new_node(thread, within, text)?;
        }
        // (without a record there is no steady state)
        if !(*node).record.is_null() {
            (*thread).cache[place(within, name)] = node;
        }
        Ok(node)
    }
}

unsafe fn new_node(
    thread: *mut Thread,
    within: *mut Node,
    name: &CStr,
) -> std::result::Result<*mut Node, c_int> {
    // SAFETY: as above; memory of the arena is the thread's own.
    unsafe {
        let node: *mut Node = allocate(thread, size_of::<Node>())?.cast();
        let (record, number) = match (*(*thread).tables).take(name) {
            Some((record, number)) => {
                (*record).parent = (*within).number;
                (*record).thread = (*(*thread).frames[0].node).number;
                (*record).kind.store(REGION, Release);
                (record, number)
            }
            None => (null_mut(), NONE),
        };
        let own = if record.is_null() {
            let copy = allocate(thread, name.count_bytes() + 1)?;
            copy.copy_from_nonoverlapping(name.as_ptr().cast(), name.count_bytes() + 1);
            copy.cast_const()
        } else {
            addr_of!((*record).name).cast()
        };
        let sum = if record.is_null() { null_mut() } else { addr_of_mut!((*record).sum[0]) };
        node.write(Node {
            parent: within,
            name: Name::new(name, own.cast()),
            record,
            sum,
            number,
            children: null_mut(),
            sibling: (*within).children,
        });
        (*within).children = node;
        Ok(node)
    }
}

/// Memory of the thread's own, which stays until the thread ends: from mmap(2), since this may be in a signal handler.
unsafe fn allocate(thread: *mut Thread, size: usize) -> std::result::Result<*mut u8, c_int> {
    // SAFETY: the thread's own state.
    unsafe {
        let size = size.next_multiple_of(align_of::<Node>());
        if (*thread).arena.1 < size {
            (*thread).arena = (pages(ARENA).map_err(|_| -libc::ENOMEM)?, ARENA);
        }
        let at = (*thread).arena.0;
        (*thread).arena = (at.add(size), (*thread).arena.1 - size);
        Ok(at)
    }
}

/// All sums from here on are of another thread.
unsafe fn go_on(node: *mut Node, then: &Sample, now: &Sample) {
    // SAFETY: the thread's own nodes; a node without a record has no sum.
    unsafe {
        if !(*node).sum.is_null() {
            (*(*node).sum).go_on(then, now);
        }
        let mut child = (*node).children;
        while !child.is_null() {
            go_on(child, then, now);
            child = (*child).sibling;
        }
    }
}

/// Zeroed memory that a forked child finds zeroed again.
fn pages(size: usize) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel likes.
    unsafe {
        let at = libc::mmap(null_mut(), size, access, flags, -1, 0);
        if at == libc::MAP_FAILED || libc::madvise(at, size, libc::MADV_WIPEONFORK) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(at.cast())
    }
}

impl Thread {
    /// Starts to measure the calling thread. The handle and the tables live as long as the process is this one. `open`:
    /// regions that began in the parent process.
    pub fn begin(
        td: *const TopDown,
        tables: &Tables,
        name: &CStr,
        open: &[(CString, u32)],
    ) -> Option<*mut Thread> {
        // SAFETY: the handle is the calling thread's.
        let start = unsafe { (*td).read() }.ok()?;
        let (record, number) = tables.take(name)?;
        let thread: *mut Thread = pages(size_of::<Thread>().next_multiple_of(4096)).ok()?.cast();
        // SAFETY: zeroed memory of that size, of which zeros are valid, and a record of the thread's own.
        unsafe {
            ((*thread).td, (*thread).record) = (td, record);
            ((*thread).start, (*thread).tables) = (start, tables);
            let node: *mut Node = allocate(thread, size_of::<Node>()).ok()?.cast();
            node.write(Node {
                parent: null_mut(),
                name: Name::new(name, addr_of!((*record).name).cast()),
                record,
                sum: addr_of_mut!((*record).sum[0]),
                number,
                children: null_mut(),
                sibling: null_mut(),
            });
            (*thread).frames[0] = Frame::new(node, State::Thread);
            (*thread).cache = [node; CACHE];
            (*thread).zero = Seen { slots: start.slots, ns: start.time_enabled_ns };
            (*record).thread = number;
            (*record).tid = libc::syscall(libc::SYS_gettid) as i32;
            (*record).kind.store(THREAD, Release);
            for (name, again) in open.iter().take(DEEPEST) {
                let within = (*thread).frames[depth(thread)].node;
                let Ok(node) = look_up(thread, within, name.as_ptr()) else { break };
                set_depth(thread, depth(thread) + 1);
                (*thread).frames[depth(thread)] = Frame { node, state: State::BeforeFork, again: *again };
            }
            ((*thread).alive, (*thread).idle) = (1, 1);
        }
        word::set(thread);
        Some(thread)
    }

    /// Starts to measure the calling thread in the records of one that has ended.
    ///
    /// # Safety
    /// That one's state, which nobody else looks at.
    pub unsafe fn begin_again(thread: *mut Thread, td: *const TopDown) -> Option<()> {
        // SAFETY: the caller's word.
        unsafe {
            let start = (*td).read().ok()?;
            let node = root(thread);
            let before = *(*node).sum;
            go_on(node, &before.last, &start);
            ((*thread).td, (*thread).start, (*thread).before) = (td, start, before);
            (*thread).zero = Seen {
                slots: start.slots.wrapping_sub(before.slots),
                ns: start.time_enabled_ns.wrapping_sub(before.time_enabled_ns),
            };
            let record = (*thread).record;
            (*record).tid = libc::syscall(libc::SYS_gettid) as i32;
            (*record).before += 1;
            (*record).ended.store(0, Release);
            ((*thread).alive, (*thread).idle) = (1, 1);
        }
        word::set(thread);
        Some(())
    }

    /// Whether a thread of this name ran in its records.
    ///
    /// # Safety
    /// Its state, which is not freed.
    pub unsafe fn has_name(thread: *mut Thread, name: &CStr) -> bool {
        // SAFETY: the caller's word.
        unsafe { (*root(thread)).name.is(name.as_ptr()) }
    }

    /// The calling thread's figures up to now go to its record; it goes on.
    ///
    /// # Safety
    /// The thread's own state, which lives.
    pub unsafe fn look(thread: *mut Thread) {
        // SAFETY: the caller's word.
        unsafe {
            if let Ok(now) = (*(*thread).td).read() {
                publish(thread, &now);
            }
        }
    }

    /// The calling thread ends: regions that are open never ended, or were left by longjmp, and do not count.
    ///
    /// # Safety
    /// As above.
    pub unsafe fn end(thread: *mut Thread) {
        // SAFETY: the caller's word.
        unsafe {
            (*thread).over = 0;
            leave(thread, 0);
            Thread::look(thread);
            (*(*root(thread)).record).ended.store(1, Release);
            ((*thread).alive, (*thread).idle) = (0, 0);
        }
        word::set(GONE);
    }

    /// The process ends while this thread, another one, runs: what the kernel knows of it.
    ///
    /// # Safety
    /// The thread's state is not unmapped.
    pub unsafe fn end_of_another(thread: *mut Thread) {
        // SAFETY: the caller's word; at this point nobody minds what the thread itself writes to its record meanwhile.
        unsafe {
            for _ in 0..1000 {
                match (*(*thread).td).read_last() {
                    Err(error) if error.code() == -libc::EBUSY => _ = libc::sched_yield(),
                    Err(_) => break,
                    Ok(now) => {
                        publish(thread, &now);
                        break;
                    }
                }
            }
            // (not by `leave`: the thread itself may be at it)
            for at in 1..=depth(thread).min(DEEPEST) {
                let Frame { node, state, again } = (*thread).frames[at];
                if !node.is_null() && state == State::Read {
                    (*(*node).record).unended += 1 + u64::from(again);
                    (*(*node).record).nested = (*(*node).record).nested.saturating_sub(u64::from(again));
                }
            }
            (*(*root(thread)).record).ended.store(1, Release);
        }
    }

    /// Names of the regions that have begun, the outermost first, and how often each began in itself.
    ///
    /// # Safety
    /// As in `look`.
    pub unsafe fn open_regions<'a>(thread: *mut Thread) -> Vec<(&'a CStr, u32)> {
        // SAFETY: names live as long as the thread.
        unsafe {
            let frames = (1..=depth(thread)).map(|at| (*thread).frames[at]);
            frames.map(|frame| (CStr::from_ptr((*frame.node).name.text()), frame.again)).collect()
        }
    }
}

const _: () = assert!(State::Read as u64 == Frame::PLAIN && offset_of!(Frame, state) % 8 == 0);
