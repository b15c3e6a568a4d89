//! Hooked functions that have been entered and not left.
//!
//! What runs here runs in front of any function at any time, in signal handlers too: no lock, no allocation, errno as
//! it was, and nothing that could enter a hooked function again but the engine, for which `busy` makes them plain.

use super::stubs::{hooked, overwritten, pass_address, return_address, started};
use crate::at_work::AtWork;
use crate::regions;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*, compiler_fence};

/// One call of a hooked function, until it returns. The first five fields are what an unwinder reads.
#[repr(C, align(16))]
pub struct OpenCall {
    pub return_address: usize,
    /// The caller's rbx (x86-64) or x19 (arm64).
    pub kept: usize,
    /// `pass_address()`.
    pub pass: usize,
    /// What is taken for the end of td_return's frame: see `frame_end`.
    pub frame: usize,
    /// Where on the stack the return address was.
    pub slot: usize,
    number: u32,
    /// `ThreadOfCalls::lists` when it was entered.
    lists: u32,
    /// The thread that entered it, until that ends; another one may leave it (a coroutine).
    thread: AtomicPtr<ThreadOfCalls>,
    newer: *mut OpenCall,
    older: *mut OpenCall,
    /// On the thread's own stack, so its place there tells whether it still lives.
    own: bool,
    /// `OPEN`, `LEFT` or `GONE`.
    state: AtomicU32,
}

/// The function runs.
const OPEN: u32 = 0;
/// The function seems to have been left by longjmp, or an exception goes through it: its region is abandoned, or has ended, but the entry is kept
/// until nobody can return through it, or unwind.
const LEFT: u32 = 1;
/// The function returned in another thread.
const GONE: u32 = 2;

const ENTRIES: usize = 818;

/// Where entries come from: mapped when a thread has no more, and given to the next when it ends.
#[repr(C)]
struct Chunk {
    next: *mut Chunk,
    entries: [OpenCall; ENTRIES],
}

/// A thread's own; all zero at its start.
#[repr(C)]
pub struct ThreadOfCalls {
    /// Not 0: the code below is at work, or the engine, for the call with its return address here. Whoever comes now
    /// has interrupted it or is called by it.
    busy: AtomicUsize,
    /// How often the lists below were given up.
    lists: u32,
    /// Entries that are open, newest first.
    open: *mut OpenCall,
    /// Entries that were left.
    left: *mut OpenCall,
    /// Entries that can be had again, linked by `older`.
    free: *mut OpenCall,
    chunks: *mut Chunk,
    /// Entries of the newest chunk that were never used.
    fresh: usize,
    /// The thread's own stack: it ends at `top`, and reaches so far down at least; 0: not looked at.
    top: usize,
    low: usize,
}

unsafe extern "C" {
    safe fn td_own_thread() -> *mut ThreadOfCalls;
}

/// The calling thread's own.
pub fn own_thread() -> *mut ThreadOfCalls {
    td_own_thread()
}

/// Chunks of threads that have ended.
static SPARE: AtomicPtr<Chunk> = AtomicPtr::new(ptr::null_mut());
/// What tells that a thread ends.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
/// How far a stack reaches down, and the top of the first thread's.
static REACH: AtomicUsize = AtomicUsize::new(0);
static TOP: AtomicUsize = AtomicUsize::new(0);

impl OpenCall {
    /// Whether the function runs, as far as is known.
    pub fn is_open(&self) -> bool {
        self.state.load(Relaxed) == OPEN
    }
}

/// The end of td_return's frame for an unwinder, and one byte above it that of td_pass's. They are between the ends of the hooked
/// function's frame and of its caller's; and as the function that was called first of those that tail-called one another has the same
/// place, but the one caller at which an unwinder may stop, its are above those of the others.
fn frame_end(slot: usize, tail_call: bool) -> usize {
    slot + size_of::<usize>() + if tail_call { 1 } else { 3 }
}

/// Where the trampoline goes, and the entry that it takes along; no entry: nothing is to be measured.
#[repr(C)]
pub struct Detour {
    function: usize,
    entry: *mut OpenCall,
}

/// To be called once, before anything is hooked.
pub fn prepare() {
    const USUAL: u64 = 8 << 20;
    // SAFETY: no pointers but to the variables; the destructor below is a function of the library, which stays.
    unsafe {
        let mut key = 0;
        if libc::pthread_key_create(&mut key, Some(thread_ends)) == 0 {
            KEY.store(key, Relaxed);
        }
        let mut limit = libc::rlimit { rlim_cur: USUAL, rlim_max: USUAL };
        libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
        let reach = if limit.rlim_cur > 1 << 30 { USUAL } else { limit.rlim_cur };
        REACH.store(reach as usize, Relaxed);
        // the program's name is above all that is on the first stack
        TOP.store(libc::getauxval(libc::AT_EXECFN) as usize, Relaxed);
    }
}

/// A hooked function is about to run: its return address is at `slot`, what its caller has in rbx or x19 is `kept`.
///
/// Neither here nor in `leave` is anything to be dropped: a cancellation may go through (`cancellation`), and is as a handler that leaves
/// by longjmp.
///
/// # Safety
/// The trampoline calls it.
pub unsafe extern "C-unwind" fn enter(
    thread: *mut ThreadOfCalls,
    number: usize,
    slot: *mut usize,
    kept: usize,
) -> Detour {
    let (function, name) = hooked(number);
    if !started() {
        return Detour { function, entry: ptr::null_mut() };
    }
    // SAFETY: the thread's own, and `slot` is on its stack.
    unsafe {
        let own = is_own(&mut *thread, slot as usize);
        let busy = (*thread).busy.load(Relaxed);
        // one here or further down the stack is no more: a signal handler interrupted it, and left by longjmp
        let is_over = own && busy <= slot as usize && is_own(&mut *thread, busy);
        if busy != 0 && !is_over {
            return Detour { function, entry: ptr::null_mut() };
        }
        if busy != 0 {
            give_up_lists(thread);
        }
        (*thread).busy.store(slot as usize, Relaxed);
        compiler_fence(SeqCst);
        let errno = libc::__errno_location();
        let kept_errno = *errno;
        if own {
            abandon_left(thread, slot);
        }
        let entry = take(thread);
        if !entry.is_null() {
            ptr::write(
                entry,
                OpenCall {
                    return_address: *slot,
                    kept,
                    pass: pass_address(),
                    frame: frame_end(slot as usize, *slot == return_address()),
                    slot: slot as usize,
                    number: number as u32,
                    lists: (*thread).lists,
                    thread: AtomicPtr::new(thread),
                    newer: ptr::null_mut(),
                    older: ptr::null_mut(),
                    own,
                    state: AtomicU32::new(OPEN),
                },
            );
            link(&raw mut (*thread).open, entry);
            regions::begin::<false>(name);
        }
        *errno = kept_errno;
        compiler_fence(SeqCst);
        (*thread).busy.store(0, Relaxed);
        Detour { function, entry }
    }
}

/// A hooked function has returned.
///
/// # Safety
/// The trampoline calls it, with an entry that `enter` gave.
pub unsafe extern "C-unwind" fn leave(thread: *mut ThreadOfCalls, entry: *mut OpenCall) {
    // SAFETY: the thread's own, and an entry, which is its owner's until it is GONE.
    unsafe {
        busily(thread, entry, || {
            let state = (*entry).state.load(Relaxed);
            if state == OPEN {
                regions::end(hooked((*entry).number as usize).1);
            }
            if is_listed(thread, entry) {
                let list = if state == OPEN { &raw mut (*thread).open } else { &raw mut (*thread).left };
                unlink(list, entry);
                free(thread, entry);
            } else {
                (*entry).state.store(GONE, Release); // its owner will see
            }
        });
    }
}

/// An exception goes through a hooked function.
///
/// # Safety
/// The calling thread's own, and an entry that is open.
pub unsafe fn unwound(thread: *mut ThreadOfCalls, entry: *mut OpenCall) {
    // SAFETY: as in `leave`.
    unsafe {
        busily(thread, entry, || {
            regions::end(hooked((*entry).number as usize).1);
            (*entry).state.store(LEFT, Release);
            if is_listed(thread, entry) {
                unlink(&raw mut (*thread).open, entry);
                link(&raw mut (*thread).left, entry);
            }
        });
    }
}

/// Does this at the thread's lists for an entry. Nothing that runs while the thread is busy has one: who was at work then is no more, see
/// `enter`.
///
/// # Safety
/// The calling thread's own, and an entry.
unsafe fn busily(thread: *mut ThreadOfCalls, entry: *mut OpenCall, work: impl FnOnce()) {
    // SAFETY: as the caller says.
    unsafe {
        if (*thread).busy.load(Relaxed) != 0 {
            give_up_lists(thread);
        }
        (*thread).busy.store((*entry).slot, Relaxed);
        compiler_fence(SeqCst);
        let errno = libc::__errno_location();
        let kept_errno = *errno;
        work();
        *errno = kept_errno;
        compiler_fence(SeqCst);
        (*thread).busy.store(0, Relaxed);
    }
}

/// Whether the entry is in one of the thread's lists.
///
/// # Safety
/// As `busily`.
unsafe fn is_listed(thread: *mut ThreadOfCalls, entry: *mut OpenCall) -> bool {
    // SAFETY: as the caller says.
    unsafe { (*entry).thread.load(Relaxed) == thread && (*entry).lists == (*thread).lists }
}

/// Who was at the lists may have left them half done. What is in them can be left as before, but is not used again.
///
/// # Safety
/// The thread's own.
unsafe fn give_up_lists(thread: *mut ThreadOfCalls) {
    // SAFETY: as the caller says.
    unsafe {
        (*thread).lists += 1;
        (*thread).open = ptr::null_mut();
        (*thread).left = ptr::null_mut();
        (*thread).free = ptr::null_mut();
    }
}

/// Whether the address is on the thread's own stack, not on a coroutine's or a signal handler's: if in doubt, no.
fn is_own(thread: &mut ThreadOfCalls, address: usize) -> bool {
    if thread.top == 0 {
        // glibc has a thread's own at the upper end of its stack, but for the first
        // SAFETY: no pointers.
        let first = unsafe { libc::getpid() == libc::gettid() };
        thread.top = if first { TOP.load(Relaxed) } else { &raw const *thread as usize };
        thread.low = thread.top - REACH.load(Relaxed).min(thread.top);
    }
    (thread.low..thread.top).contains(&address)
}

/// Functions whose frames were further down the stack than this call's are no more: longjmp left them.
///
/// # Safety
/// The thread's own, and a slot on its stack.
unsafe fn abandon_left(thread: *mut ThreadOfCalls, slot: *mut usize) {
    // SAFETY: as the caller says; entries in lists are valid.
    unsafe {
        // the slot is that of another entry, too, if that function tail-calls this one
        let tail_call = *slot == return_address();
        let mut entry = (*thread).open;
        while !entry.is_null() {
            let older = (*entry).older;
            if (*entry).own {
                if (*entry).slot > slot as usize || ((*entry).slot == slot as usize && tail_call) {
                    return;
                }
                unlink(&raw mut (*thread).open, entry);
                // what returned in another thread is none of this one's regions any more
                if (*entry).state.compare_exchange(OPEN, LEFT, AcqRel, Acquire).is_ok() {
                    regions::abandon(hooked((*entry).number as usize).1);
                }
                link(&raw mut (*thread).left, entry);
            }
            entry = older;
        }
    }
}

/// An entry, or null if there is no memory.
///
/// # Safety
/// The thread's own, busy.
unsafe fn take(thread: *mut ThreadOfCalls) -> *mut OpenCall {
    // SAFETY: as the caller says; chunks are mapped for good.
    unsafe {
        let this = &mut *thread;
        if this.free.is_null() && this.fresh == 0 {
            sweep(thread);
        }
        if !this.free.is_null() {
            let entry = this.free;
            this.free = (*entry).older;
            return entry;
        }
        if this.fresh == 0 {
            let chunk = new_chunk();
            if chunk.is_null() {
                return ptr::null_mut();
            }
            libc::pthread_setspecific(KEY.load(Relaxed), thread.cast());
            (*chunk).next = this.chunks;
            this.chunks = chunk;
            compiler_fence(SeqCst); // this may be where it ends, see `enter`
            this.fresh = ENTRIES;
        }
        this.fresh -= 1;
        &raw mut (*this.chunks).entries[this.fresh]
    }
}

/// # Safety
/// The entry is in none of the thread's lists.
unsafe fn free(thread: *mut ThreadOfCalls, entry: *mut OpenCall) {
    // SAFETY: as the caller says.
    unsafe {
        (*entry).older = (*thread).free;
        (*thread).free = entry;
    }
}

/// Frees the entries that nobody can return through: those that another thread left, and those that were left
/// by longjmp if what was their return address is overwritten.
///
/// # Safety
/// The thread's own, busy.
#[inline(never)]
unsafe fn sweep(thread: *mut ThreadOfCalls) {
    // SAFETY: as the caller says; entries in lists are valid.
    unsafe {
        for list in [&raw mut (*thread).left, &raw mut (*thread).open] {
            let is_left = list == &raw mut (*thread).left;
            let mut entry = *list;
            while !entry.is_null() {
                let older = (*entry).older;
                if (*entry).state.load(Acquire) == GONE
                    || (is_left && overwritten((*entry).slot, (*thread).busy.load(Relaxed)))
                {
                    unlink(list, entry);
                    free(thread, entry);
                }
                entry = older;
            }
        }
    }
}

/// # Safety
/// The entry is in no list; the lists are the caller's.
unsafe fn link(list: *mut *mut OpenCall, entry: *mut OpenCall) {
    // SAFETY: as the caller says.
    unsafe {
        let older = *list;
        (*entry).newer = ptr::null_mut();
        (*entry).older = older;
        if !older.is_null() {
            (*older).newer = entry;
        }
        *list = entry;
    }
}

/// # Safety
/// The entry is in this list, which is the caller's.
unsafe fn unlink(list: *mut *mut OpenCall, entry: *mut OpenCall) {
    // SAFETY: as the caller says.
    unsafe {
        let (newer, older) = ((*entry).newer, (*entry).older);
        if newer.is_null() {
            *list = older;
        } else {
            (*newer).older = older;
        }
        if !older.is_null() {
            (*older).newer = newer;
        }
    }
}

/// One that a thread left, or memory from the system; null if there is none.
fn new_chunk() -> *mut Chunk {
    // all are taken and the rest given back: to take only the first could take one that is first for a second time
    let spare = SPARE.swap(ptr::null_mut(), Acquire);
    // SAFETY: spare chunks are nobody's; mmap gives new memory.
    unsafe {
        if !spare.is_null() {
            give_chunks((*spare).next);
            return spare;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), size_of::<Chunk>(), access, flags, -1, 0);
        if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
    }
}

/// # Safety
/// The chunks are the caller's, and hold nothing.
unsafe fn give_chunks(first: *mut Chunk) {
    if first.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    unsafe {
        let mut last = first;
        while !(*last).next.is_null() {
            last = (*last).next;
        }
        let mut head = SPARE.load(Relaxed);
        loop {
            (*last).next = head;
            match SPARE.compare_exchange_weak(head, first, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The thread ends, so what is on its stack does, too; its regions the engine ends. Chunks with an entry of a
/// coroutine, which another thread may go on with, are lost.
unsafe extern "C" fn thread_ends(thread: *mut c_void) {
    let _work = AtWork::new();
    let thread: *mut ThreadOfCalls = thread.cast();
    // SAFETY: the thread's own.
    unsafe {
        (*thread).busy.store(1, Relaxed);
        if started() {
            sweep(thread);
        }
        let mut all_ended = (*thread).lists == 0;
        for list in [(*thread).open, (*thread).left] {
            let mut entry = list;
            while !entry.is_null() {
                (*entry).thread.store(ptr::null_mut(), Relaxed);
                all_ended &= (*entry).own;
                entry = (*entry).older;
            }
        }
        if all_ended {
            give_chunks((*thread).chunks);
        }
        ptr::write(thread, std::mem::zeroed());
    }
}
