//! Texts that C gets.

use crate::handle::{Info, Path};
use std::ffi::{c_char, c_int};

/// td_info.path: readings are RDPMC, from user space.
pub const TD_PATH_RDPMC: u32 = 1;
/// td_info.path: readings are read(2); td_info.note tells why.
pub const TD_PATH_READ: u32 = 2;
/// td_info.path: the numbers are simulated (TD_FLAG_SIMULATE).
pub const TD_PATH_SIMULATED: u32 = 3;

const _: () = assert!(
    Path::Rdpmc as u32 == TD_PATH_RDPMC
        && Path::Read as u32 == TD_PATH_READ
        && Path::Simulated as u32 == TD_PATH_SIMULATED
        && size_of::<CInfo>() == 384
);

/// What a handle measures, and how.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CInfo {
    /// sizeof(struct td_info), written by the library.
    pub size: u32,
    /// TD_PATH_*.
    pub path: u32,
    /// Deepest level that is counted: 1 or 2.
    pub level: u32,
    /// Pipeline slots per cycle of the core; 0 if no document tells.
    pub slots_per_cycle: u32,
    /// Brand string of the CPU; "simulated" if none is behind the numbers.
    pub cpu: [c_char; 64],
    /// Name of the PMU in sysfs; "simulated" if none is behind the numbers.
    pub pmu: [c_char; 32],
    /// Name of the core.
    pub core: [c_char; 48],
    /// Why readings are not RDPMC, and what to do about it; empty if they are.
    pub note: [c_char; 192],
    /// Wanted bound on each share's error, in parts per million.
    pub max_error_ppm: u32,
    /// What windows of td_read's own may take of the thread's time, in parts per million.
    pub max_overhead_ppm: u32,
    /// Windows that readings (td_read, td_read_mark, td_sum_begin) opened on their own since td_open.
    pub windows: u64,
    /// Nanoseconds that they took (ticks of the time-stamp counter where the kernel gives no clock to user space).
    pub windows_ns: u64,
    /// Zeros.
    pub reserved: [u64; 1],
}

impl From<&Info> for CInfo {
    fn from(info: &Info) -> CInfo {
        CInfo {
            size: size_of::<CInfo>() as u32,
            path: info.path as u32,
            level: info.level,
            slots_per_cycle: info.slots_per_cycle,
            cpu: array(&info.cpu),
            pmu: array(&info.pmu),
            core: array(&info.core),
            note: array(&info.note.to_string()),
            max_error_ppm: info.max_error_ppm,
            max_overhead_ppm: info.max_overhead_ppm,
            windows: info.windows,
            windows_ns: info.windows_ns,
            reserved: [0; 1],
        }
    }
}

/// A text in a field, cut if it must be, NUL-terminated.
fn array<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    // SAFETY: the field has room for N.
    unsafe { copy(text.as_bytes(), field.as_mut_ptr(), N) };
    field
}

/// Copies as much of a text as there is room for with its NUL; returns the length of the whole.
///
/// # Safety
/// `buffer` has room for `length` bytes.
pub(super) unsafe fn copy(text: &[u8], buffer: *mut c_char, length: usize) -> c_int {
    if length > 0 {
        let fits = text.len().min(length - 1);
        // SAFETY: fits + 1 <= length; a text and a caller's buffer do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, fits);
            buffer.add(fits).write(0);
        }
    }
    text.len() as c_int
}
