//! `struct td_info`: what a handle measures.

use super::border::{guard, handle, put, td};
use crate::handle::{self, Info, Path};
use crate::sys::cancelled_later;
use crate::sys::signals::SignalBlock;
use std::ffi::{c_char, c_int};

/// In user space, by RDPMC; on arm64 by MRS, where kernel.perf_user_access is 1.
pub const TD_PATH_RDPMC: u32 = 1;
/// By read(2); td_info.note says why.
pub const TD_PATH_READ: u32 = 2;
/// Nothing is read: the numbers are simulated.
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
    /// sizeof(struct td_info), set by the library.
    pub size: u32,
    /// TD_PATH_*: how the counters are read.
    pub path: u32,
    /// Deepest level that is counted.
    pub level: u32,
    /// Pipeline slots per cycle of the core; 0 if not known.
    pub slots_per_cycle: u32,
    /// Brand string of the CPU; "simulated" with TD_FLAG_SIMULATE.
    pub cpu: [c_char; 64],
    /// Name of the PMU in sysfs; "simulated" with TD_FLAG_SIMULATE.
    pub pmu: [c_char; 32],
    /// Name of the core, such as "Redwood Cove".
    pub core: [c_char; 48],
    /// Why path, level or source are not the best there are, and what to do; else empty. All may change meanwhile.
    pub note: [c_char; 192],
    /// td_options.max_error_ppm, or its default.
    pub max_error_ppm: u32,
    /// td_options.max_overhead_ppm, or its default.
    pub max_overhead_ppm: u32,
    /// How often readings have reset the registers for accuracy since td_open.
    pub windows: u64,
    /// Nanoseconds that this took; cycles if the kernel gives user space no clock.
    pub windows_ns: u64,
    /// General counters that the handle takes; 0: registers, and what corrects them.
    pub counters: u32,
    /// Zero.
    pub reserved: u32,
}

/// Describes what a handle measures, and how. Signals are blocked during the call. Threads and returns as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `out` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn td_get_info(td: *const td, out: *mut CInfo) -> c_int {
    // SAFETY: the caller's word.
    unsafe { info(td, out) }
}

cancelled_later! {
/// # Safety
/// As td_get_info.
unsafe extern "C" fn info(td: *const td, out: *mut CInfo) -> c_int {
    let _signals = SignalBlock::new(); // it takes memory, which a handler that leaves by siglongjmp would lose
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe { put(out, "out", || Ok(CInfo::from(&handle::info(handle(td)?)?))) })
}
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
            counters: info.counters,
            reserved: 0,
        }
    }
}

/// A text in a field, NUL-terminated. Of one that has no room, its first words and "...".
fn array<const N: usize>(text: &str) -> [c_char; N] {
    const CUT: &[u8] = b" ...";
    let text = text.as_bytes();
    let (mut words, mut end) = (text, &b""[..]);
    if text.len() >= N {
        let room = N - 1 - CUT.len();
        words = &text[..text[..=room].iter().rposition(|&byte| byte == b' ').unwrap_or(room)];
        end = CUT;
    }
    let mut field = [0; N];
    words.iter().chain(end).zip(&mut field).for_each(|(&byte, place)| *place = byte as c_char);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_room_ends_after_a_word() {
        let field = |text: &str| -> String {
            array::<12>(text).iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
        };
        for whole in ["", "a word", "ab cd ef gh"] {
            assert_eq!(field(whole), whole);
        }
        assert_eq!(field("ab cd ef gh!"), "ab cd ...");
        assert_eq!(field("abcdefg hijk"), "abcdefg ...");
        assert_eq!(field("abcdefgh ijk"), "abcdefg ...");
    }
}
