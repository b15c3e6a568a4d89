//! Regions that may end in any order, as those of LIKWID and ITT, made of regions that nest.
//!
//! When one ends that has others within it, those end first and begin again after it: none of their slots is lost, and
//! none is counted twice; each piece of them is an execution.

use crate::at_work::WorkGuard;
use crate::{memory, regions};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// Regions that one thread can have open and measured here at once; of as many more it is known that they are open.
const DEPTH: usize = 64;
const ROOM: usize = 2 * DEPTH;

/// Which region is meant, as the API in question tells them apart.
pub type RegionKey = u64;

#[derive(Clone, Copy)]
struct Open {
    key: RegionKey,
    /// None: not measured, but its end will come.
    name: Option<&'static CStr>,
    /// Others had all the room when it began: not measured either.
    is_over: bool,
    /// Address on the stack of the call that began it.
    stack: usize,
}

impl Open {
    /// Its name, if it is measured.
    fn measured(&self) -> Option<&'static CStr> {
        self.name.filter(|_| !self.is_over)
    }
}

struct Stack {
    /// How many are open: the first of `open`.
    depth: Cell<usize>,
    /// How many began since that found no place.
    over: Cell<usize>,
    open: [Cell<Open>; ROOM],
}

thread_local! {
    /// The thread's own, or NULL. Not the stack itself: a library that is loaded late (ITT) finds little room for
    /// thread-locals. And without a destructor, for which the C library would allocate, or end the process.
    static STACK: Cell<*mut Stack> = const { Cell::new(null_mut()) };
}

/// The key of a thread's stack, whose destructor frees that. Above 2^32: made.
static KEY: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn free(stack: *mut c_void) {
    let _alone = WorkGuard::new();
    STACK.set(null_mut());
    // SAFETY: the thread's own, made by `own`, and no call of this thread is at it.
    drop(unsafe { Box::from_raw(stack.cast::<Stack>()) });
}

/// The thread's stack, made if there is none. NULL: there is no memory.
#[cold]
fn own() -> *mut Stack {
    let _alone = WorkGuard::new(); // (a signal handler may have been first)
    if STACK.get().is_null() && memory::secure(size_of::<Stack>()) {
        let open = [const { Cell::new(Open { key: 0, name: None, is_over: false, stack: 0 }) }; ROOM];
        let stack = Box::into_raw(Box::new(Stack { depth: Cell::new(0), over: Cell::new(0), open }));
        STACK.set(stack);
        // SAFETY: a function of this library, which is not unloaded; without a key the stack stays for good.
        unsafe {
            let mut key = KEY.load(Ordering::Acquire);
            if key == 0 {
                let mut made = 0;
                if libc::pthread_key_create(&mut made, Some(free)) == 0 {
                    key = 1 << 32 | u64::from(made);
                    if let Err(other) = KEY.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                        libc::pthread_key_delete(made);
                        key = other;
                    }
                }
            }
            if key != 0 {
                libc::pthread_setspecific(key as u32, stack.cast());
            }
        }
    }
    STACK.get()
}

/// Does this with the thread's stack; None: there is no memory for one.
fn with<T>(work: impl FnOnce(&Stack) -> T) -> Option<T> {
    let mut stack = STACK.get();
    if stack.is_null() {
        stack = own();
    }
    // SAFETY: the thread's own; freed when it has ended.
    unsafe { stack.as_ref() }.map(work)
}

impl Stack {
    fn begin(&self, key: RegionKey, name: Option<&'static CStr>, stack: usize) -> c_int {
        let depth = self.depth.get();
        if depth == ROOM {
            self.over.set(self.over.get() + 1);
            return -libc::ENOSPC;
        }
        // In this order a signal handler that has regions of its own leaves this one alone.
        self.depth.set(depth + 1);
        compiler_fence(Ordering::SeqCst);
        let is_over = self.open[..depth].iter().filter(|open| !open.get().is_over).count() >= DEPTH;
        self.open[depth].set(Open { key, name, is_over, stack });
        match name {
            Some(_) if is_over => -libc::ENOSPC,
            Some(name) => regions::begin_named(name),
            None => 0,
        }
    }

    /// The innermost of those that are meant.
    fn find(&self, is_meant: impl Fn(&Open) -> bool) -> Option<usize> {
        (0..self.depth.get()).rev().find(|&i| is_meant(&self.open[i].get()))
    }

    fn leave(&self, this: usize, leave: impl FnOnce(&'static CStr) -> c_int) -> c_int {
        let depth = self.depth.get();
        let within = || self.open[this + 1..depth].iter().filter_map(|open| open.get().measured());
        for name in within().rev() {
            regions::end_named(name);
        }
        let code = self.open[this].get().measured().map_or(0, leave);
        for name in within() {
            regions::begin_piece(name);
        }
        for i in this + 1..depth {
            self.open[i - 1].set(self.open[i].get());
        }
        compiler_fence(Ordering::SeqCst);
        self.depth.set(depth - 1);
        code
    }

    /// The region of this place ends, and its execution does not count.
    fn abandon(&self, this: usize) {
        self.leave(this, |name| {
            regions::abandon_named(name);
            0
        });
    }
}

/// A region begins in this thread. Returns as `regions::begin`; -ENOSPC: too many are open; -ENOMEM: there is no
/// memory.
pub fn begin(key: RegionKey, name: Option<&'static CStr>) -> c_int {
    with(|stack| stack.begin(key, name, 0)).unwrap_or(-libc::ENOMEM)
}

/// As `begin`, of an API in which regions of one key may be within each other: a region of this key and name that is open, and was not
/// begun further up the stack, has lost its end. That one does not count, and the later one does.
pub fn begin_within(key: RegionKey, name: Option<&'static CStr>) -> c_int {
    let here = std::hint::black_box(0_u8);
    let here = (&raw const here).addr();
    with(|stack| {
        let lost = |open: &Open| open.key == key && open.name == name && open.stack <= here;
        if let Some(lost) = stack.find(lost) {
            stack.over.set(0); // (they began in it, and are lost with it)
            stack.abandon(lost);
        }
        stack.begin(key, name, here)
    })
    .unwrap_or(-libc::ENOMEM)
}

/// The innermost region of this key ends. Returns as `regions::end`; -ENOSPC: there may be no place for it; None: there is none.
pub fn end(key: RegionKey) -> Option<c_int> {
    with(|stack| {
        if let Some(fewer) = stack.over.get().checked_sub(1) {
            // Most likely this is the one that found no place.
            stack.over.set(fewer);
            return Some(-libc::ENOSPC);
        }
        let this = stack.find(|open| open.key == key)?;
        Some(stack.leave(this, regions::end_named))
    })?
}

/// As `end`, but the execution does not count.
pub fn abandon(key: RegionKey) {
    with(|stack| {
        if stack.over.get() > 0 {
            return;
        }
        if let Some(this) = stack.find(|open| open.key == key) {
            stack.abandon(this);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In no measured process: what is open is all that there is.
    #[test]
    fn more_than_there_is_room_for_lose_their_ends_and_begin_again() {
        const MANY: RegionKey = ROOM as RegionKey + 6;
        let is_full = |key| key >= ROOM as RegionKey;
        for again in [false, true] {
            for key in 0..MANY {
                let code = begin_within(key, None);
                assert_eq!(code, if is_full(key) { -libc::ENOSPC } else { 0 }, "{key} {again}");
            }
        }
        // those that found no place end first
        assert!((0..MANY).filter(|key| is_full(*key)).all(|key| end(key) == Some(-libc::ENOSPC)));
        assert!((0..MANY).all(|key| end(key) == if is_full(key) { None } else { Some(0) }));
        assert_eq!((begin_within(7, None), end(7), end(7)), (0, Some(0), None));
    }

    #[test]
    fn however_many_lose_their_ends_each_time_as_many_as_have_room_are_measured() {
        let begun = || -> Vec<_> {
            (0..100).map(|key| begin_within(key, Some(c"lost")) == 0).collect() // (the key tells them apart)
        };
        let measured = |begun: Vec<bool>| begun.into_iter().filter(|begun| *begun).count();
        for _ in 0..5 {
            assert_eq!(measured(begun()), DEPTH);
        }
        assert!((0..100).all(|key| end(key).is_some() && end(key).is_none()));
        assert_eq!((begin_within(200, Some(c"after")), end(200)), (0, Some(0)));
    }

    #[test]
    fn one_that_is_not_measured_for_want_of_room_takes_no_other_ones_end() {
        let measured = |key| end(key).is_some();
        let begun: Vec<_> = (100..100 + DEPTH as RegionKey + 2).map(|key| begin(key, Some(c"one"))).collect();
        assert_eq!(begun[DEPTH - 1..], [0, -libc::ENOSPC, -libc::ENOSPC]);
        assert!(measured(103) && !measured(103), "one with a place, before those without one");
        assert!((100..103).chain(104..102 + DEPTH as RegionKey).all(measured));
    }
}
