//! The simulated PMU.

use super::border::{at, guard, handle, td};
use crate::error::Error;
use crate::handle;
use crate::source::simulated::Mix;
use std::ffi::c_int;

/// Sets how the slots of a handle's simulated PMU divide from now on.
///
/// For programs that are developed or tested where there is no PMU: open with TD_FLAG_SIMULATE. Slots then follow the
/// time-stamp counter, also while the thread sleeps, and the registers round and are reset as real ones are. A handle
/// begins with retiring 0.4, bad speculation 0.1, frontend bound 0.2, backend bound 0.3. Threads as in td_read.
///
/// Returns 0, or:
///  -EINVAL         an argument is NULL, mix->size is wrong, or the shares are not a mix
///  -ENOTSUP        the handle was not opened with TD_FLAG_SIMULATE
/// or as td_read.
///
/// # Safety
/// `td` is NULL or from td_open, `mix` NULL or points to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn td_simulate_mix(td: *mut td, mix: *const Mix) -> c_int {
    // SAFETY: each pointer is NULL or what the header calls it, which the C caller promises.
    guard(|| unsafe {
        let mix = at(mix, "mix")?;
        if mix.size as usize != size_of::<Mix>() || mix.reserved != 0 {
            return Err(Error::invalid("mix->size is not sizeof(struct td_mix), or mix->reserved is not 0"));
        }
        handle::set_mix(handle(td)?, mix).map(|()| 0)
    })
}
