//! What a group asks of the kernel so that user space may read its counters: nothing on x86-64, where the PMU's `rdpmc` file in
//! sysfs says whether all may; on arm64 the sysctl kernel.perf_user_access says so, of events that ask for it.
#![forbid(unsafe_code)]

use crate::detect::{DEVICES, Pmu};
use crate::error::Result;
use crate::sys::Kernel;
use perf_event_open_sys::bindings::perf_event_attr;

/// Bits of `config1` of the armv8_pmuv3 PMUs (drivers/perf/arm_pmuv3.c), which their folders `format` in sysfs name so.
const BITS: [(&str, &str, u64); 2] = [("rdpmc", "config1:1", USER), ("long", "config1:0", LONG)];
/// User space may read the counter.
const USER: u64 = 2;
/// It has 64 bits.
const LONG: u64 = 1;

const ARM64: bool = cfg!(target_arch = "aarch64");
const SYSCTL: &str = "/proc/sys/kernel/perf_user_access";

/// No more than a group that is read by read(2).
pub(super) const NONE: &[u64] = &[0];

/// A group whose pages cannot be mapped, or whose counters user space may no longer read, is read by read(2) from then on. (Of
/// x86-64's groups that have a page, callers count on it.)
pub(super) const MAY_DO_WITHOUT: bool = ARM64;

/// What to ask for, the best first. 64-bit counters do not overflow, but not every core has them, and 32-bit ones do as well: what a
/// page says holds for both.
pub(super) fn requests<K: Kernel>(kernel: &K, pmu: &Pmu) -> &'static [u64] {
    match has_bits(kernel, pmu) && sysctl(kernel).as_deref() == Some("1") {
        true => &[USER | LONG, USER, 0],
        false => NONE,
    }
}

fn has_bits<K: Kernel>(kernel: &K, pmu: &Pmu) -> bool {
    let has = |name: &str, bits: &str| {
        let format = kernel.text(&format!("{DEVICES}/{}/format/{name}", pmu.name));
        format.is_ok_and(|format| format.trim() == bits)
    };
    ARM64 && BITS.iter().all(|(name, bits, _)| has(name, bits))
}

fn sysctl<K: Kernel>(kernel: &K) -> Option<String> {
    kernel.text(SYSCTL).ok().map(|text| text.trim().to_string())
}

/// Opens events with the first of these in `config1` with which the kernel takes all of them: with what it did, and which.
pub(super) fn open<T>(
    requests: &[u64],
    events: &mut [(&str, perf_event_attr)],
    open: impl Fn(&[(&str, perf_event_attr)]) -> Result<T>,
) -> Result<(T, u64)> {
    let asks = requests.iter().any(|request| *request != 0); // (where nothing is asked for, the word is the event's own)
    let mut with = |request: u64| {
        events.iter_mut().filter(|_| asks).for_each(|(_, attr)| attr.__bindgen_anon_3.config1 = request);
        open(events).map(|opened| (opened, request))
    };
    let (least, better) = requests.split_last().unwrap_or((&0, &[]));
    better.iter().find_map(|request| with(*request).ok()).map_or_else(|| with(*least), Ok)
}

/// Whether the pages of events that were opened with this show their counters.
pub(super) fn shows_counters(request: u64) -> bool {
    !ARM64 || request & USER != 0
}

/// Why user space may not read the counters of this PMU, and what to do about it.
pub(super) fn refusal<K: Kernel>(kernel: &K, pmu: &Pmu) -> (&'static str, String) {
    if cfg!(target_arch = "x86_64") {
        return ("the kernel does not grant RDPMC", format!("write 1 to {DEVICES}/{}/rdpmc", pmu.name));
    }
    match sysctl(kernel).as_deref() {
        _ if !ARM64 => ("this version reads counters in user space on x86-64 and arm64 alone", String::new()),
        None => ("this kernel does not let user space read counters", "Linux 5.17 or later does".into()),
        Some("0") => ("kernel.perf_user_access is 0", "sysctl kernel.perf_user_access=1".into()),
        Some(_) => ("the kernel does not let user space read these counters", String::new()),
    }
}
