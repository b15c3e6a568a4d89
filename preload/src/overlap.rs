//! Regions that may end in any order, as those of LIKWID and ITT, made of regions that nest.
//!
//! When one ends that has others within it, those end first and begin again after it: none of their slots is lost, and
//! none is counted twice; each piece of them is an execution.

use crate::engine;
use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, c_int};
use std::sync::atomic::{Ordering, compiler_fence};

/// Regions that one thread can have open here at once.
const DEPTH: usize = 64;

/// Which region is meant, as the API in question tells them apart.
pub type Key = u64;

#[derive(Clone, Copy)]
struct Open {
    key: Key,
    /// None: not measured, but its end will come.
    name: Option<&'static CStr>,
}

struct Stack {
    depth: Cell<usize>,
    open: [Cell<Open>; DEPTH],
}

// Not the stack itself: a library that is loaded late (ITT) finds little room for thread-locals.
thread_local! {
    static STACK: OnceCell<Box<Stack>> = const { OnceCell::new() };
}

/// Does this with the thread's stack, if it still has one.
fn with<T>(work: impl FnOnce(&Stack) -> T) -> Option<T> {
    let work = |stack: &OnceCell<Box<Stack>>| {
        if stack.get().is_none() {
            let depth = Cell::new(0);
            let open = [const { Cell::new(Open { key: 0, name: None }) }; DEPTH];
            let _ = stack.set(Box::new(Stack { depth, open })); // (a signal handler may have been first)
        }
        stack.get().map(|stack| work(stack))
    };
    STACK.try_with(work).ok().flatten()
}

impl Stack {
    fn begin(&self, key: Key, name: Option<&'static CStr>) -> c_int {
        let depth = self.depth.get();
        // In this order a signal handler that has regions of its own leaves this one alone.
        self.depth.set(depth + 1);
        compiler_fence(Ordering::SeqCst);
        if depth >= DEPTH {
            return -libc::ENOSPC;
        }
        self.open[depth].set(Open { key, name });
        // SAFETY: a C string.
        name.map_or(0, |name| unsafe { engine::begin(name.as_ptr()) })
    }

    fn leave(&self, key: Key, leave: impl FnOnce(&'static CStr) -> c_int) -> Option<c_int> {
        let depth = self.depth.get();
        let this = (0..depth).rev().find(|&i| self.open[i].get().key == key)?;
        let within = || self.open[this + 1..depth].iter().filter_map(|open| open.get().name);
        for name in within().rev() {
            // SAFETY: a C string.
            unsafe { engine::end(name.as_ptr()) };
        }
        let code = self.open[this].get().name.map_or(0, leave);
        for name in within() {
            // SAFETY: a C string.
            unsafe { engine::begin(name.as_ptr()) };
        }
        for i in this + 1..depth {
            self.open[i - 1].set(self.open[i].get());
        }
        compiler_fence(Ordering::SeqCst);
        self.depth.set(depth - 1);
        Some(code)
    }
}

/// A region begins in this thread. Returns as `engine::begin`; -ENOSPC: too many are open; -ESRCH: the thread ends.
pub fn begin(key: Key, name: Option<&'static CStr>) -> c_int {
    with(|stack| stack.begin(key, name)).unwrap_or(-libc::ESRCH)
}

/// The innermost region of this key ends. Returns as `engine::end`, or -ENOSPC as `begin` did; None: there is none.
pub fn end(key: Key) -> Option<c_int> {
    with(|stack| {
        if stack.depth.get() > DEPTH {
            // Most likely this is the one that found no place.
            stack.depth.set(stack.depth.get() - 1);
            return Some(-libc::ENOSPC);
        }
        // SAFETY: a C string.
        stack.leave(key, |name| unsafe { engine::end(name.as_ptr()) })
    })?
}

/// As `end`, but its execution does not count.
pub fn abandon(key: Key) {
    with(|stack| {
        if stack.depth.get() > DEPTH {
            return;
        }
        stack.leave(key, |name| {
            // SAFETY: a C string.
            unsafe { engine::abandon(name.as_ptr()) };
            0
        });
    });
}
