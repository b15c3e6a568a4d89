//! Each thread's last failure, in memory that needs no allocation and no destructor.
#![forbid(unsafe_code)]

use std::cell::RefCell;

const ROOM: usize = 600;

struct Text {
    length: usize,
    bytes: [u8; ROOM],
}

thread_local! {
    static LAST: RefCell<Text> = const { RefCell::new(Text { length: 0, bytes: [0; ROOM] }) };
}

/// Keeps a text, cut at a character's end if it is too long.
pub(super) fn set(text: &str) {
    let mut length = text.len().min(ROOM);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    LAST.with(|last| {
        // a signal handler that interrupts this very copy leaves no text
        if let Ok(mut last) = last.try_borrow_mut() {
            last.length = length;
            last.bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        }
    });
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
        set("first");
        set("second");
        std::thread::spawn(|| with(|text| assert_eq!(text, b""))).join().unwrap();
        with(|text| assert_eq!(text, b"second"));
        set(&format!("x{}", "é".repeat(ROOM)));
        with(|text| assert_eq!(std::str::from_utf8(text).unwrap().len(), ROOM - 1));
    }
}
