//! A text of each thread, in memory that is not thread-local storage: what a library with initial-exec slots has of that is taken from the
//! little that the C library keeps for all that dlopen loads.
//!
//! A thread gets its memory with its first text, by mmap(2), as a signal handler may come first that interrupted malloc. An ended
//! thread's goes to the next one whose control block is where its was.

use super::thread;
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a text.
pub const ROOM: usize = 600;

struct KeptText {
    length: usize,
    bytes: [u8; ROOM],
}

/// The memory of a thread. It is never unmapped.
struct TextMemory {
    /// The thread's control block.
    owner: u64,
    next: *const TextMemory,
    text: RefCell<KeptText>,
}

mod slot {
    crate::thread_local_slot!("topdown_text", first 0);
}

/// All that there is of it: only ever added to.
static ALL: AtomicPtr<TextMemory> = AtomicPtr::new(ptr::null_mut());

/// This thread's memory, if it has some.
fn known() -> Option<&'static TextMemory> {
    // SAFETY: the slot is 0 or has what `own` put there, which is initialized and stays mapped.
    unsafe { (slot::get() as *const TextMemory).as_ref() }
}

/// This thread's memory; None: there is none to be had. (A signal handler that comes between gets the same, or one more.)
fn own() -> Option<&'static TextMemory> {
    known().or_else(|| {
        let memory = left(thread::pointer()).or_else(map)?;
        slot::set(memory as u64);
        known()
    })
}

/// What an ended thread left whose control block was here, emptied.
fn left(owner: u64) -> Option<*mut TextMemory> {
    let mut memory = ALL.load(Ordering::Acquire);
    // SAFETY: all in the list is initialized and stays mapped; `owner` and `next` do not change.
    while let Some(seen) = unsafe { memory.as_ref() } {
        if seen.owner == owner {
            // SAFETY: no two threads run at once whose control blocks are here, and this one has no reference to it yet.
            unsafe { (&raw mut (*memory).text).write(RefCell::new(KeptText::NONE)) };
            return Some(memory);
        }
        memory = seen.next.cast_mut();
    }
    None
}

/// New memory, in the list.
fn map() -> Option<*mut TextMemory> {
    const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
    const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, wherever there is room.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), size_of::<TextMemory>(), READ_WRITE, PRIVATE, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let memory = mapped.cast::<TextMemory>();
    let (owner, mut next) = (thread::pointer(), ALL.load(Ordering::Relaxed));
    loop {
        let text = RefCell::new(KeptText::NONE);
        // SAFETY: it is mapped, aligned as pages are, large enough, and not yet in the list.
        unsafe { memory.write(TextMemory { owner, next, text }) };
        match ALL.compare_exchange_weak(next, memory, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(memory),
            Err(other) => next = other,
        }
    }
}

/// Keeps a text, cut at a character's end if it is too long.
pub fn set(text: &dyn fmt::Display) {
    // a signal handler that interrupts this very copy leaves no text
    if let Some(mut kept) = own().and_then(|memory| memory.text.try_borrow_mut().ok()) {
        kept.length = 0;
        let _ = write!(kept, "{text}"); // fails where it is cut
    }
}

/// Hands out the text that is kept.
pub fn with<T>(work: impl FnOnce(&[u8]) -> T) -> T {
    match known().and_then(|memory| memory.text.try_borrow().ok()) {
        Some(kept) => work(&kept.bytes[..kept.length]),
        None => work(b""),
    }
}

impl KeptText {
    const NONE: KeptText = KeptText { length: 0, bytes: [0; ROOM] };
}

impl fmt::Write for KeptText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let mut fits = more.len().min(room.len());
        while !more.is_char_boundary(fits) {
            fits -= 1;
        }
        room[..fits].copy_from_slice(&more.as_bytes()[..fits]);
        self.length += fits;
        if fits == more.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_text_of_its_thread_and_cuts_long_ones_between_characters() {
        set(&"first");
        set(&"second");
        std::thread::spawn(|| with(|text| assert_eq!(text, b""))).join().unwrap();
        with(|text| assert_eq!(text, b"second"));
        set(&format!("x{}", "é".repeat(ROOM)));
        with(|text| assert_eq!(std::str::from_utf8(text).unwrap(), format!("x{}", "é".repeat(ROOM / 2 - 1))));
    }

    #[test]
    fn an_ended_threads_memory_goes_to_the_next_there_without_its_text() {
        let mut places = std::collections::HashMap::new();
        for _ in 0..100 {
            let of_thread = || {
                with(|text| assert_eq!(text, b""));
                set(&"");
                with(|text| assert_eq!(text, b""));
                set(&"left");
                (thread::pointer(), own().map(ptr::from_ref).map_or(0, |memory| memory as usize))
            };
            let (owner, memory) = std::thread::spawn(of_thread).join().unwrap();
            assert_eq!(*places.entry(owner).or_insert(memory), memory);
        }
    }
}
