//! What a handle has in its memory once more if it has two groups: where readings of the second one start from.
#![forbid(unsafe_code)]

use super::{Handle, POOL};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering;

/// A part of a handle that readings of a second group look at.
pub(super) fn take(handle: Handle) -> Result<Handle> {
    let second = POOL.take().map_err(|e| {
        Error::errno(e.raw_os_error().unwrap_or(libc::ENOMEM), format!("no memory for a handle: {e}"))
    })?;
    second.shared().present.store(1, Ordering::Relaxed);
    second.shared().prepare_for(handle.shared());
    Ok(second)
}

/// The part of a handle that readings of the second group looked at is not used any more.
pub(super) fn give_back(second: Handle) {
    second.shared().detach();
    second.shared().prepare();
    POOL.give(second);
}
