//! jevents.h: event files, and lists of events.

use super::{copy, guard, text};
use crate::cpu;
use crate::list::{self, ListFailure};
use crate::say;
use libc::{c_char, c_int, c_uint, c_void};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use topdown_seam::cpu::identify;

// Functions of the caller's are called without the guard: what they throw (C++) goes to who called this library.
type OnFileEvent =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, *mut c_char, *mut c_char, *mut c_char) -> c_int;
type OnEvent = unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, *mut c_char, *mut c_char) -> c_int;

/// A C string of our own for a callback, which may write to it; used again for the next.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Buffer {
    fn set(&mut self, parts: &[&str]) -> *mut c_char {
        self.0.clear();
        self.0.extend(parts.iter().flat_map(|part| part.bytes()).chain([0]));
        self.0.as_mut_ptr().cast()
    }
}

/// The name of a file; None for NULL.
///
/// # Safety
/// NULL, or a C string that lives as long as is needed.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: the caller's word.
    (!name.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

/// The code, and errno.
fn failed(why: ListFailure) -> c_int {
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = why.errno() };
    why.code()
}

/// Calls back for each event of a file, or of the files for this CPU if `file` is NULL. Returns what `callback`
/// returned if that is not 0, which ends it; -EIO for a file that cannot be read (errno says why: ENOENT,
/// EACCES, ...; EIO: it is no event list), -ENOMEM if nothing says where to look.
///
/// # Safety
/// As jevents.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn json_events(
    file: *const c_char,
    callback: Option<OnFileEvent>,
    data: *mut c_void,
) -> c_int {
    let Some(callback) = callback else { return -1 };
    // SAFETY: the caller's word.
    let loaded = guard(None, || Some(list::load(unsafe { path(file) })));
    let events = match loaded {
        Some(Ok(events)) => events,
        Some(Err(why)) => return failed(why),
        None => return -1,
    };
    let mut buffers: [Buffer; 4] = Default::default();
    let [name, terms, desc, pmu] = &mut buffers;
    let call = |event: &list::ListedEvent| {
        let (name, terms) = (name.set(&[&event.name]), terms.set(&[&event.terms]));
        // SAFETY: C strings, and the caller's function.
        unsafe { callback(data, name, terms, desc.set(&[&event.desc]), pmu.set(&[&event.pmu])) }
    };
    events.iter().map(call).find(|value| *value != 0).unwrap_or(0)
}

/// Replaces the list by that of a file, or of the files for this CPU if `file` is NULL. Returns 0, or as json_events.
///
/// # Safety
/// As jevents.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read_events(file: *const c_char) -> c_int {
    // SAFETY: the caller's word.
    guard(-1, || list::read(unsafe { path(file) }).map_or_else(failed, |()| 0))
}

/// Calls back for each event of the list, by name. Returns what `callback` returned if that is not 0, which ends it;
/// -1 if there is no list.
///
/// # Safety
/// As jevents.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn walk_events(callback: Option<OnEvent>, data: *mut c_void) -> c_int {
    let Some(callback) = callback else { return -1 };
    let Some(list) = guard(None, || list::all().ok()) else { return -1 };
    let mut buffers: [Buffer; 3] = Default::default();
    let [name, event, desc] = &mut buffers;
    let mut call = |found: &list::ListedEvent| {
        let (name, event) = (name.set(&[&found.name]), event.set(&[&found.pmu, "/", &found.terms, "/"]));
        // SAFETY: C strings, and the caller's function.
        unsafe { callback(data, name, event, desc.set(&[&found.desc])) }
    };
    list.events().iter().map(|event| call(event)).find(|value| *value != 0).unwrap_or(0)
}

/// The name and description of an event by its code (bits 0 to 7) and umask (8 to 15). Returns 0, or -1 if there is
/// none. Callers do not free the texts, and nobody else does: a list may be replaced while another thread has them.
///
/// # Safety
/// As jevents.h says; each of the pointers may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmap_event(code: c_uint, name: *mut *mut c_char, desc: *mut *mut c_char) -> c_int {
    guard(-1, || {
        let Ok(list) = list::all() else { return -1 };
        let Some(event) = list.with_code(code) else { return -1 };
        for (out, text) in [(name, &event.name), (desc, &event.desc)] {
            if !out.is_null() {
                // SAFETY: the caller's word.
                unsafe { out.write(kept(text)) };
            }
        }
        0
    })
}

/// A C string for this text that stays; one for each different text.
fn kept(text: &str) -> *mut c_char {
    static KEPT: Mutex<BTreeMap<String, AtomicPtr<c_char>>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock();
    if !kept.contains_key(text) {
        kept.insert(text.into(), AtomicPtr::new(copy(text)));
    }
    kept[text].load(Ordering::Relaxed)
}

/// VENDOR-FAMILY-MODEL-core of this CPU; for the caller to free.
#[unsafe(no_mangle)]
pub extern "C" fn get_cpu_str() -> *mut c_char {
    guard(null_mut(), || copy(&(cpu::id(&identify()) + "-core")))
}

/// VENDOR-FAMILY-MODEL of this CPU and a suffix; and with the stepping into `with_stepping`, if that is not NULL.
/// Both are for the caller to free.
///
/// # Safety
/// As jevents.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn get_cpu_str_type(
    suffix: *const c_char,
    with_stepping: *mut *mut c_char,
) -> *mut c_char {
    guard(null_mut(), || {
        // SAFETY: the caller's word.
        let Some(suffix) = (unsafe { text(suffix) }) else { return null_mut() };
        let here = identify();
        if !with_stepping.is_null() {
            // SAFETY: the caller's word.
            unsafe { with_stepping.write(copy(&(cpu::id_with_stepping(&here) + &suffix))) };
        }
        copy(&(cpu::id(&here) + &suffix))
    })
}

/// What a code of this library says: 0, -1, -2 (no event list, in some versions of libjevents), and those of
/// json_events and read_events.
#[unsafe(no_mangle)]
pub extern "C" fn jevent_error_to_string(code: c_int) -> *const c_char {
    let text = match code.wrapping_neg() {
        0 => c"Success",
        1 => c"The event, or what was asked for, is not known or cannot be had",
        2 => c"There is no event list for this CPU",
        libc::EIO => c"The event list cannot be read",
        libc::ENOMEM => c"Nothing says where event lists are: set HOME or JEVENTS_CACHEDIR",
        _ => c"Unknown error",
    };
    text.as_ptr()
}

/// What was wrong when a function of this library last failed in this thread; "" if none did.
#[unsafe(no_mangle)]
pub extern "C" fn jevent_get_error_details() -> *const c_char {
    guard(c"".as_ptr(), say::kept)
}
