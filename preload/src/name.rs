//! A region's name, and whether a text says the same: sixteen bytes at a time, without a call, for who has to be quick.

use crate::bytes::{Bytes, bytes_at, equal, ones};
use std::ffi::{CStr, c_char};

const HEAD: usize = size_of::<Bytes>();
/// All bytes of a head.
const ALL: u32 = 0xffff;
/// Set in `Name::others` of names that end in their head.
const SHORT: u32 = ALL + 1;

/// A name in memory of its owner's, which goes on for a head's length after the name, and does not cross a page.
#[derive(Clone, Copy)]
pub struct Name {
    /// The name's first bytes, and which of them do not count: those after the NUL, if that is among them.
    head: Bytes,
    others: u32,
    text: *const c_char,
}

impl Name {
    /// `text` is where the name is kept.
    pub fn new(text: &'static CStr) -> Name {
        let bytes = text.to_bytes_with_nul();
        let length = bytes.len().min(HEAD);
        let mut head = [0_u8; HEAD];
        head[..length].copy_from_slice(&bytes[..length]);
        // SAFETY: the same bytes.
        let head = unsafe { std::mem::transmute::<[u8; HEAD], Bytes>(head) };
        let others = if length == bytes.len() { SHORT | ALL & (ALL << length) } else { 0 };
        Name { head, others, text: text.as_ptr() }
    }

    /// Where the name is kept.
    pub fn text(&self) -> &'static CStr {
        // SAFETY: `new` had it.
        unsafe { CStr::from_ptr(self.text) }
    }

    /// Whether the text says the same.
    pub fn is(&self, name: &CStr) -> bool {
        // SAFETY: both are C strings.
        unsafe { libc::strcmp(self.text, name.as_ptr()) == 0 }
    }

    /// Whether the text says the same, of names that end in their head.
    ///
    /// # Safety
    /// `name` is a C string, whose head does not cross a page.
    #[inline(always)]
    pub unsafe fn is_at_sight(&self, name: *const c_char) -> bool {
        // SAFETY: the caller's word.
        unsafe { self.alike(name) == SHORT | ALL }
    }

    /// Whether the text says the same, of longer names; also false where a quick look does not tell.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn is_longer(&self, name: *const c_char) -> bool {
        // SAFETY: the caller's word.
        unsafe { self.alike(name) == ALL && goes_on(self.text, name) }
    }

    /// `ALL`, if the heads are the same, and `SHORT`.
    #[inline(always)]
    unsafe fn alike(&self, name: *const c_char) -> u32 {
        // SAFETY: the caller's word.
        unsafe { ones(equal(bytes_at(name), self.head)) | self.others }
    }
}

/// Whether two names whose heads are the same are so from the head's last byte on, which may be the NUL of both.
#[inline(always)]
unsafe fn goes_on(mut own: *const c_char, mut name: *const c_char) -> bool {
    // SAFETY: neither has ended before; what is kept is within a page.
    unsafe {
        (own, name) = (own.add(HEAD - 1), name.add(HEAD - 1));
        loop {
            if crosses(name) {
                return false;
            }
            let kept = bytes_at(own);
            let same = ones(equal(bytes_at(name), kept));
            let end = ones(equal(kept, std::mem::zeroed()));
            if end != 0 {
                let all = end ^ (end - 1); // up to the first NUL
                return all & !same == 0;
            }
            if same != ALL {
                return false;
            }
            (own, name) = (own.add(HEAD), name.add(HEAD));
        }
    }
}

/// Whether sixteen bytes at `name` may be on two pages; also if it is NULL (and where a page begins).
#[inline(always)]
pub fn crosses(name: *const c_char) -> bool {
    const PAGE: usize = 4096;
    (name as usize).wrapping_add(HEAD - 1) & (PAGE - HEAD) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    /// A page of something else with a name in it.
    fn page(at: usize, length: usize, other: Option<usize>) -> Box<Page> {
        let mut page = Box::new(Page([b'#'; 4096]));
        page.0[at..at + length].iter_mut().enumerate().for_each(|(k, byte)| *byte = b'a' + (k % 26) as u8);
        if let Some(k) = other {
            page.0[at + k] = b'!';
        }
        page.0[at + length] = 0;
        page
    }

    #[test]
    fn a_quick_look_knows_names_of_every_length_whatever_comes_after() {
        for length in 1..70 {
            let mut kept = page(64, length, None);
            kept.0[64 + length..].fill(0);
            let kept: &'static Page = Box::leak(kept);
            let name = Name::new(CStr::from_bytes_until_nul(&kept.0[64..]).unwrap());
            // SAFETY: names of a page, or NULL.
            let quickly = |text: *const u8| unsafe {
                let text = text.cast();
                !crosses(text) && (name.is_at_sight(text) || name.is_longer(text))
            };
            let says = |page: &Page, at: usize| quickly(&page.0[at]);
            assert!(says(&page(1, length, None), 1), "{length}");
            assert!(!says(&page(1, length + 1, None), 1), "{length}: a longer one");
            for k in 0..length {
                assert!(!says(&page(1, length, Some(k)), 1), "{length}: another at {k}");
                assert!(k == 0 || !says(&page(1, k, None), 1), "{length}: the first {k}");
            }
            let last = 4095 - length;
            assert!(
                last <= 4080 || !says(&page(last, length, None), last),
                "{length}: it does not look beyond"
            );
            assert!(!quickly(std::ptr::null()));
        }
    }
}
