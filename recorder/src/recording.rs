//! The recording of this process: one at a time.
#![forbid(unsafe_code)]

use crate::helper::Helper;
use crate::options::Wishes;
use crate::output::ProfileOutput;
use parking_lot::{Mutex, MutexGuard};
use std::mem;
use std::path::Path;
use std::process;
use topdown::{Error, Result};
use topdown_seam::signals::NeverCancelled;

/// A recording that was begun, and is not written yet.
struct OpenRecording {
    /// Whose it is: a fork's child finds that of its parent.
    pid: u32,
    /// It has ended, and a file could not be written.
    stopped: bool,
    helper: Helper,
}

static RECORDING: Mutex<Option<OpenRecording>> = parking_lot::const_mutex(None);

/// Nobody waits for it, so none waits in a signal handler or in a fork's child for ever.
fn recording() -> Result<MutexGuard<'static, Option<OpenRecording>>> {
    let busy = || Error::new(-libc::EBUSY, "another thread is starting or stopping the recording");
    RECORDING.try_lock().ok_or_else(busy)
}

/// Begins to record this process.
///
/// # Errors
/// -EBUSY; what stands in the way of counting.
pub fn start(wishes: Wishes) -> Result<()> {
    let quiet = NeverCancelled::new();
    let mut recording = recording()?;
    if recording.as_ref().is_some_and(|begun| begun.pid != process::id()) {
        // (its thread is not there: what it has is nobody's)
        mem::forget(recording.take());
    }
    match &*recording {
        Some(OpenRecording { stopped: true, .. }) => {
            Err(Error::new(-libc::EBUSY, "a recording was stopped, but its file could not be written")
                .remedy("call td_record_stop with another path, or with NULL to discard it"))
        }
        Some(_) => Err(Error::new(-libc::EBUSY, "this process is being recorded already")),
        None => {
            let helper = Helper::start(&quiet, wishes)?;
            *recording = Some(OpenRecording { pid: process::id(), stopped: false, helper });
            Ok(())
        }
    }
}

/// Ends the recording, and writes it; without a path, discards it.
///
/// # Errors
/// -ENODATA: there is none; the path's, before which it goes on, and the file's, after which it is kept.
pub fn stop(path: Option<&Path>) -> Result<()> {
    let _quiet = NeverCancelled::new();
    let mut recording = recording()?;
    let begun = match &mut *recording {
        None => {
            return Err(
                Error::new(-libc::ENODATA, "nothing is being recorded").remedy("call td_record_start")
            );
        }
        Some(begun) if begun.pid != process::id() => {
            return Err(Error::new(-libc::ENODATA, "nothing is being recorded in this process")
                .why(format!("it was forked from process {}, whose recording has no children", begun.pid)));
        }
        Some(begun) => begun,
    };
    let written = path.map_or(Ok(()), |path| {
        let destination = ProfileOutput::new(path)?;
        begun.stopped = true;
        match begun.helper.profile(destination.view) {
            Ok(text) => destination.write(&text),
            Err(error) => Err(error),
        }
    });
    if written.is_ok() {
        recording.take().into_iter().for_each(|begun| begun.helper.end());
    }
    written
}
