//! Each thread's last failure, in memory that needs no allocation and no destructor.
#![forbid(unsafe_code)]

use crate::error::Reason;
use std::cell::RefCell;
use std::fmt::{self, Write};

const ROOM: usize = 600;

struct LastText {
    length: usize,
    bytes: [u8; ROOM],
}

thread_local! {
    static LAST: RefCell<LastText> = const { RefCell::new(LastText { length: 0, bytes: [0; ROOM] }) };
}

/// Keeps a reason, cut at a character's end if it is too long.
pub(super) fn set(reason: &Reason) {
    LAST.with(|last| {
        // a signal handler that interrupts this very copy leaves no text
        if let Ok(mut last) = last.try_borrow_mut() {
            last.length = 0;
            let _ = write!(last, "{reason}"); // fails where it is cut
        }
    });
}

impl fmt::Write for LastText {
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

/// Hands out the text that is kept.
pub(super) fn with<T>(work: impl FnOnce(&[u8]) -> T) -> T {
    LAST.with(|last| match last.try_borrow() {
        Ok(last) => work(&last.bytes[..last.length]),
        Err(_) => work(b""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_text_of_its_thread_and_cuts_long_ones_between_characters() {
        set(&Reason::new("first"));
        set(&Reason::new("second").why("why").remedy("remedy"));
        std::thread::spawn(|| with(|text| assert_eq!(text, b""))).join().unwrap();
        with(|text| assert_eq!(text, b"second: why; remedy"));
        set(&Reason::new("x").why("é".repeat(ROOM)).remedy("lost"));
        with(|text| {
            assert_eq!(std::str::from_utf8(text).unwrap(), format!("x: {}", "é".repeat((ROOM - 3) / 2)))
        });
    }
}
