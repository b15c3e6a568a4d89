//! `struct perf_event_attr` by its words and bytes. It is plain numbers: any bytes are one.

use crate::Attr;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE};
use std::mem::offset_of;

/// As large as the kernel's first, which each kernel takes.
pub const FIRST_SIZE: u32 = 64;

/// An event that counts nothing: for what the kernel tells beside counts.
#[must_use]
pub fn dummy() -> Attr {
    Attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<Attr>() as u32,
        config: PERF_COUNT_SW_DUMMY.into(),
        ..Attr::default()
    }
}

/// A word that says what a PMU is to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// config
    Config,
    /// config1
    Config1,
    /// config2
    Config2,
    /// config3
    Config3,
    /// config4
    Config4,
}

impl Word {
    /// All of them.
    pub const ALL: [Word; 5] = [Word::Config, Word::Config1, Word::Config2, Word::Config3, Word::Config4];

    /// As terms and formats call it.
    pub fn name(self) -> &'static str {
        ["config", "config1", "config2", "config3", "config4"][self as usize]
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Word> {
        Word::ALL.into_iter().find(|word| word.name() == name)
    }

    fn offset(self) -> usize {
        [
            offset_of!(Attr, config),
            offset_of!(Attr, __bindgen_anon_3),
            offset_of!(Attr, __bindgen_anon_4),
            offset_of!(Attr, config3),
            offset_of!(Attr, config4),
        ][self as usize]
    }

    /// What it holds.
    pub fn of(self, attr: &Attr) -> u64 {
        let (word, _) = bytes(attr)[self.offset()..].split_first_chunk().expect("a word of the attr");
        u64::from_ne_bytes(*word)
    }

    /// Sets bits of it; the attr's size then covers it.
    pub fn set(self, attr: &mut Attr, bits: u64) {
        let at = self.offset();
        let word = (self.of(attr) | bits).to_ne_bytes();
        bytes_mut(attr)[at..at + word.len()].copy_from_slice(&word);
        if bits != 0 {
            attr.size = attr.size.max((at + word.len()) as u32);
        }
    }
}

/// All zero, of a PMU and the first size.
pub fn new(pmu: u32) -> Attr {
    Attr { type_: pmu, size: FIRST_SIZE, ..Attr::default() }
}

/// What these bytes start; zeros beyond them.
pub fn from_bytes(start: &[u8]) -> Attr {
    let mut attr = Attr::default();
    let length = start.len().min(size_of::<Attr>());
    bytes_mut(&mut attr)[..length].copy_from_slice(&start[..length]);
    attr
}

/// As it lies in memory.
pub fn bytes(attr: &Attr) -> &[u8; size_of::<Attr>()] {
    // SAFETY: numbers without padding between them.
    unsafe { &*std::ptr::from_ref(attr).cast() }
}

fn bytes_mut(attr: &mut Attr) -> &mut [u8; size_of::<Attr>()] {
    // SAFETY: numbers without padding between them, and any bytes are numbers.
    unsafe { &mut *std::ptr::from_mut(attr).cast() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_where_the_kernel_has_them() {
        for (word, end) in Word::ALL.into_iter().zip([16, 64, 72, 136, 144]) {
            let mut attr = new(4);
            word.set(&mut attr, 0);
            assert_eq!(attr.size, 64);
            word.set(&mut attr, 1 << 63 | 2);
            word.set(&mut attr, 4);
            assert_eq!(word.of(&attr), 1 << 63 | 6);
            assert_eq!(attr.size, end.max(64));
            assert_eq!(bytes(&attr)[end as usize - 1] & 0x80, 0x80);
            assert_eq!(Word::named(word.name()), Some(word));
        }
        assert_eq!(Word::named("config5"), None);
        assert_eq!(size_of::<Attr>(), 144);
    }

    #[test]
    fn bytes_beyond_are_zero() {
        let attr = from_bytes(&[0xaa; 72]);
        assert_eq!(Word::Config2.of(&attr), 0xaaaa_aaaa_aaaa_aaaa);
        assert_eq!(&bytes(&attr)[72..], &[0; 72]);
        assert_eq!(bytes(&from_bytes(&[1; 999])), &[1; 144]);
    }
}
