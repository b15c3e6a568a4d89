//! LIKWID's marker API: what a program built with -DLIKWID_PERFMON calls. These take the place of liblikwid's, also for
//! its Fortran interface, which calls them; what is not here (pinning, topology, GPUs) stays liblikwid's.

use crate::at_work::AtWork;
use crate::engine::{SoFar, forget, so_far};
use crate::names::Interner;
use crate::{overlap, perfmon, regions};
use std::ffi::{CStr, CString, c_char, c_double, c_int};
use topdown_seam::cancelled_later;

static TAGS: Interner<CString> = Interner::new();

/// A tag and the key of its region.
///
/// # Safety
/// `tag` is NULL or a C string.
unsafe fn known(tag: *const c_char) -> Result<(overlap::RegionKey, &'static CStr), c_int> {
    if tag.is_null() {
        return Err(-libc::EINVAL);
    }
    // SAFETY: the caller's word.
    let tag = unsafe { CStr::from_ptr(tag) };
    let (_, name) = TAGS.find(tag.to_bytes(), || tag.to_owned()).ok_or(-libc::ENOSPC)?;
    Ok((name.as_ptr() as overlap::RegionKey, name))
}

/// Nothing is left to be set up.
#[unsafe(no_mangle)]
extern "C" fn likwid_markerInit() {
    perfmon::expect_questions();
}

/// Nor for a thread. LIKWID would pin it here, if likwid-perfctr were told to.
#[unsafe(no_mangle)]
extern "C" fn likwid_markerThreadInit() {}

/// There is one group of events (`perfmon`).
#[unsafe(no_mangle)]
extern "C" fn likwid_markerNextGroup() {}

/// The report is made when the process ends.
#[unsafe(no_mangle)]
extern "C" fn likwid_markerClose() {}

/// No file in LIKWID's format.
#[unsafe(no_mangle)]
extern "C" fn likwid_markerWriteFile(_file: *const c_char) -> c_int {
    -libc::ENOTSUP
}

cancelled_later! {
#[unsafe(no_mangle)]
unsafe extern "C" fn likwid_markerRegisterRegion(tag: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    unsafe { known(tag) }.map_or_else(|code| code, |_| 0)
}

/// As in LIKWID a region that was started already starts anew.
#[unsafe(no_mangle)]
unsafe extern "C" fn likwid_markerStartRegion(tag: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    match unsafe { known(tag) } {
        Ok((key, name)) => {
            overlap::abandon(key);
            overlap::begin(key, Some(name))
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn likwid_markerStopRegion(tag: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    match unsafe { known(tag) } {
        // (which counts an end without a beginning)
        Ok((key, name)) => overlap::end(key).unwrap_or_else(|| regions::end_named(name)),
        Err(code) => code,
    }
}

/// `likwid_markerGetRegion` begins at zero again. The report keeps the region's earlier executions.
#[unsafe(no_mangle)]
unsafe extern "C" fn likwid_markerResetRegion(tag: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    match unsafe { known(tag) } {
        Ok((_, name)) => {
            forget(name);
            0
        }
        Err(code) => code,
    }
}

/// No events, since LIKWID's are not counted, but the calling thread's time in the region, in seconds, and its executions.
#[unsafe(no_mangle)]
unsafe extern "C" fn likwid_markerGetRegion(
    tag: *const c_char,
    nr_events: *mut c_int,
    _events: *mut c_double,
    time: *mut c_double,
    count: *mut c_int,
) {
    // SAFETY: as its caller says.
    let SoFar { executions, ns } =
        unsafe { known(tag) }.map_or_else(|_| SoFar::default(), |(_, name)| so_far(name));
    let _work = AtWork::new();
    // SAFETY: NULL, or its caller's.
    unsafe {
        if let Some(nr_events) = nr_events.as_mut() {
            *nr_events = 0;
        }
        if let Some(time) = time.as_mut() {
            *time = ns as c_double / 1e9;
        }
        if let Some(count) = count.as_mut() {
            *count = executions.try_into().unwrap_or(c_int::MAX);
        }
    }
}
}
