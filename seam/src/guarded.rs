//! What the owner of a handle works on: its owner's alone until the handle is closed, which any thread may do.
//!
//! A signal handler may come between at any instruction of the owner's, work on it, close it, or leave by siglongjmp: so it
//! is given out as a shared reference, and `T` keeps what is changed so that half of a change does no harm.

use super::signals::SignalBlock;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// A value that its owner works on, and that any thread may take away.
pub struct GuardedValue<T> {
    /// Another thread reads it for the last time, or somebody takes it away.
    held: AtomicBool,
    /// The owner works on it; or did, and left by siglongjmp.
    in_use: AtomicBool,
    content: UnsafeCell<Option<Box<T>>>,
}

impl<T> Default for GuardedValue<T> {
    fn default() -> GuardedValue<T> {
        GuardedValue {
            held: AtomicBool::new(false),
            in_use: AtomicBool::new(false),
            content: UnsafeCell::new(None),
        }
    }
}

/// What was taken away.
pub enum Remains<T> {
    /// The value; nobody works on it.
    Whole(Box<T>),
    /// A copy. The owner may work on the original yet, whose memory is not given back: what is used there must not be
    /// dropped, and what is in boxes there only by `drop_in_its_place`.
    InUse(ManuallyDrop<T>),
}

/// Memory that is never given back.
struct KeptMemory {
    _memory: *mut u8,
    _next: *mut KeptMemory,
}

/// All of it: checkers of leaks can see that it is not lost.
static STAYS: AtomicPtr<KeptMemory> = AtomicPtr::new(null_mut());

fn stays(memory: *mut u8) {
    let stays = Box::into_raw(Box::new(KeptMemory { _memory: memory, _next: null_mut() }));
    let mut first = STAYS.load(Ordering::Relaxed);
    loop {
        // SAFETY: nobody else knows of it yet.
        unsafe { (*stays)._next = first };
        match STAYS.compare_exchange_weak(first, stays, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Drops what is in a box of such remains. Its memory stays as it is, for good: a call that was interrupted may look at it yet.
pub fn drop_in_its_place<T>(content: Box<T>) {
    let original = Box::into_raw(content);
    stays(original.cast());
    // SAFETY: it is dropped once, here: the box is none any more.
    unsafe { original.drop_in_place() };
}

/// So long another thread waits for the end of the owner's work, which takes some microseconds.
const PATIENCE: Duration = Duration::from_millis(100);

impl<T> GuardedValue<T> {
    /// Who has just got the slot, and alone knows of it, puts this there.
    pub fn put(&self, content: Box<T>) {
        // SAFETY: nobody else looks here.
        unsafe { *self.content.get() = Some(content) };
    }

    /// The owner works on it. None if it was taken away, or is on its way.
    #[inline]
    pub fn work<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        // (the exchange comes before `held` is read, and who holds it does it the other way round)
        let outer = self.in_use.swap(true, Ordering::SeqCst);
        let result = match self.held.load(Ordering::SeqCst) {
            true => None,
            // SAFETY: nobody takes it away while it is in use, or it stays in memory.
            false => unsafe { (*self.content.get()).as_deref() }.map(work),
        };
        self.in_use.store(outer, Ordering::Release);
        result
    }

    /// Another thread works on it, unless the owner does.
    pub fn work_from_outside<R>(&self, signals: &SignalBlock, work: impl FnOnce(&T) -> R) -> Option<R> {
        self.hold(signals);
        let idle = !self.stays_in_use();
        // SAFETY: the owner is not at work, and does not begin: it is held.
        let result = idle.then(|| unsafe { (*self.content.get()).as_deref() }.map(work)).flatten();
        self.held.store(false, Ordering::Release);
        result
    }

    /// Takes it away, for good: the owner, or another thread, which waits until the owner's work is done. `here`: not in a
    /// forked child, where a thread that it does not have may hold it.
    pub fn take(&self, signals: &SignalBlock, here: bool, by_owner: bool) -> Option<Remains<T>> {
        if here {
            self.hold(signals);
        }
        let in_use = match here {
            true if by_owner => self.in_use.load(Ordering::SeqCst), // this is in a signal handler, or after a siglongjmp
            true => self.stays_in_use(),
            false => false,
        };
        // SAFETY: held, so nobody else begins; in a forked child there is nobody else.
        let content = unsafe { (*self.content.get()).take() };
        self.in_use.store(false, Ordering::Relaxed);
        self.held.store(false, Ordering::Release);
        let content = content?;
        if !in_use {
            return Some(Remains::Whole(content));
        }
        let original = Box::into_raw(content);
        stays(original.cast());
        // SAFETY: the box is not dropped, so what it points to stays, and is dropped by nobody but the caller.
        Some(Remains::InUse(ManuallyDrop::new(unsafe { original.read() })))
    }

    /// Signals are blocked: who holds it comes to an end.
    fn hold(&self, _: &SignalBlock) {
        while self.held.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    fn stays_in_use(&self) -> bool {
        let begun = Instant::now();
        while self.in_use.load(Ordering::SeqCst) {
            if begun.elapsed() > PATIENCE {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }
}
