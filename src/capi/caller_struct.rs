//! Structures that a caller fills in: read with care, since an older or a newer program may have made them.

use super::border;
use crate::error::{Error, Result};

/// A structure whose first field, a u32, is the caller's size of it. It grows at its end alone.
///
/// # Safety
/// It has no padding, any bytes make one, and it has `KNOWN` bytes at least.
pub unsafe trait CallerStruct: Copy {
    /// As C calls it.
    const NAME: &'static str;
    /// What size 0 means, in all versions: a program that leaves it 0 may be older than this library, and have no more than that.
    const FIRST: usize;
    /// Where the fields end that each program has.
    const LEAST: usize;
    /// Where the fields end that this version knows. What follows is zeros.
    const KNOWN: usize;
}

/// More than any version will have.
const MOST: usize = 4096;

/// Copies a caller's structure, by the caller's size. Fields behind that are zero.
///
/// # Safety
/// `pointer` is NULL or points to as many bytes as its first field says (`FIRST` if that is 0).
pub unsafe fn read_by_size<T: CallerStruct>(pointer: *const T, what: &str) -> Result<T> {
    border::check(pointer, what)?;
    // SAFETY: not NULL and aligned, as checked; the C caller's structure has its first field at least.
    let size = match unsafe { pointer.cast::<u32>().read() } as usize {
        0 => T::FIRST,
        size => size,
    };
    if size < T::LEAST {
        return Err(Error::invalid(format!("{what}->size is {size}"))
            .remedy(format!("set it to sizeof(struct {})", T::NAME)));
    }
    if size > MOST {
        return Err(Error::errno(libc::E2BIG, format!("{what}->size is {size}, more than any version has")));
    }
    // SAFETY: the C caller says that the structure is so long.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let (known, rest) = bytes.split_at(size.min(T::KNOWN));
    if rest.iter().any(|byte| *byte != 0) {
        let behind = format!("{what} has a value behind the fields that this version knows");
        return Err(Error::errno(libc::E2BIG, behind)
            .remedy("clear the struct first, or use the library that the program was built for"));
    }
    // SAFETY: any bytes make one.
    let mut own: T = unsafe { std::mem::zeroed() };
    // SAFETY: own has `KNOWN` bytes at least, and any bytes make one.
    unsafe { std::ptr::copy_nonoverlapping(known.as_ptr(), (&raw mut own).cast(), known.len()) };
    Ok(own)
}
