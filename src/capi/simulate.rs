//! The simulated PMU.

use super::border::{check, guard, handle, put, td};
use super::caller_struct::{CallerStruct, read_by_size};
use super::options::{self, COptions};
use crate::error::Error;
use crate::handle;
use crate::model;
use crate::options::Options;
use crate::read::MOST_COUNTERS;
use crate::source::simulated::Mix;
use crate::sys::signals::SignalBlock;
use std::ffi::{CStr, c_char, c_int};

// SAFETY: it is numbers without padding.
unsafe impl CallerStruct for Mix {
    const NAME: &'static str = "td_mix";
    const FIRST: usize = 72;
    const LEAST: usize = 72;
    const KNOWN: usize = size_of::<Mix>();
}

const _: () = assert!(size_of::<Mix>() == 72);

/// Sets how the slots of a handle's simulated PMU (TD_FLAG_SIMULATE) divide from now on. Slots follow the time-stamp
/// counter, also while the thread sleeps; the registers round and are reset as real ones are. A handle begins with
/// retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3.
///
/// Threads and returns as td_read; -EINVAL also if mix->size is wrong or the shares are not a mix, -E2BIG for a mix of
/// a later version, -ENOTSUP if the handle has no simulated registers.
///
/// # Safety
/// `td` is NULL or from td_open, `mix` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_simulate_mix(td: *mut td, mix: *const Mix) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let mix = read_by_size(mix, "mix")?;
        if mix.reserved != 0 {
            return Err(Error::invalid("mix->reserved is not 0"));
        }
        handle::set_mix(handle(td)?, &mix).map(|()| 0)
    })
}

/// As td_open, of the simulated PMU of a chosen core, to try a program as on other CPUs. `core` is a name that `topdown
/// list` prints, as in td_info.core, or "made-up core": general counters and a tree of three levels, the last in
/// cycles. TD_FLAG_SIMULATE need not be set. td_simulate_counters sets what a core with general counters counts,
/// td_simulate_mix what any other does. Threads and returns as td_open; -EINVAL also if no core has it (td_last_error has
/// all).
///
/// # Safety
/// `out` and `options` are NULL or point to what their types say, `core` is NULL or a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_simulate(
    out: *mut *mut td,
    options: *const COptions,
    core: *const c_char,
) -> c_int {
    let signals = SignalBlock::new(); // until the caller has the handle: a handler that leaves by siglongjmp would lose it
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        put(out, "out", || {
            check(core, "core")?;
            let name = CStr::from_ptr(core).to_string_lossy();
            let (_, model) = model::named(&name).ok_or_else(|| handle::unknown_core(&name))?;
            let options = Options { simulate: true, core: model.core, ..options::read(options)? };
            Ok(handle::open(&options, &signals)?.into_raw())
        })
    })
}

/// Sets how much each general counter of a handle's simulated PMU counts per cycle of the time-stamp counter from now
/// on: `per_cycle` has `count` numbers from 0 to 64, of the core's first counter and on; all others stand still.
/// Threads and returns as td_read; -EINVAL also if there are more than 15 numbers or one is out of range, -ENOTSUP if
/// the handle has no simulated general counters.
///
/// # Safety
/// `td` is NULL or from td_open, `per_cycle` NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_simulate_counters(td: *mut td, per_cycle: *const f64, count: u32) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        check(per_cycle, "per_cycle")?;
        if count as usize > MOST_COUNTERS {
            return Err(Error::invalid(format!("{count} counters are more than a sample has")));
        }
        let per_cycle = std::slice::from_raw_parts(per_cycle, count as usize);
        handle::set_per_cycle(handle(td)?, per_cycle).map(|()| 0)
    })
}
