//! Names to attrs, and what belongs to them (jevents.h).

use super::{copy, guard, text};
use crate::caller::Caller;
use crate::extra::Extra;
use crate::print_attr::print_attr;
use crate::resolve::{ResolvedEvent, name_to_attr, resolve_event as resolve};
use crate::say::say;
use crate::{Attr, format, qualifier};
use libc::{FILE, c_char, c_int, c_void};
use perf_event_open_sys::bindings::PERF_TYPE_RAW;
use std::ptr::null_mut;
use topdown_seam::attr;
use topdown_seam::sysfs::Sysfs;

/// No header has a smaller `struct perf_event_attr` (Linux 5.4; before, none had all that this library needs).
const SMALLEST: usize = 112;

type Resolver = fn(&Sysfs, &str) -> Result<ResolvedEvent, ()>;

/// Event lists, then the kernel's names, then bare terms.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
pub(super) unsafe fn resolve_event(size: usize, name: *const c_char, attr: *mut Attr) -> c_int {
    // SAFETY: as above.
    guard(-1, || unsafe { named(resolve, name, Caller::new(attr, size)) }.map_or(-1, done))
}

/// As resolve_event, and what else is known of it.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
pub(super) unsafe fn resolve_event_extra(
    size: usize,
    name: *const c_char,
    attr: *mut Attr,
    extra: *mut Extra,
) -> c_int {
    // SAFETY: as above.
    guard(-1, || unsafe {
        fill(extra, named(resolve, name, Caller::new(attr, size)).map(Extra::from_resolved))
    })
}

/// The kernel's names.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
pub(super) unsafe fn jevent_name_to_attr(size: usize, name: *const c_char, attr: *mut Attr) -> c_int {
    // SAFETY: as above.
    guard(-1, || unsafe { named(name_to_attr, name, Caller::new(attr, size)) }.map_or(-1, done))
}

/// As jevent_name_to_attr, and what else is known of it but the string, which the caller has.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
pub(super) unsafe fn jevent_name_to_attr_extra(
    size: usize,
    name: *const c_char,
    attr: *mut Attr,
    extra: *mut Extra,
) -> c_int {
    guard(-1, || {
        // SAFETY: as above.
        let resolved = unsafe { named(name_to_attr, name, Caller::new(attr, size)) };
        let undecoded = resolved.map(|resolved| {
            let mut extra = Extra::from_resolved(resolved);
            extra.drop_decoded();
            extra
        });
        // SAFETY: as above.
        unsafe { fill(extra, undecoded) }
    })
}

fn done(_: ResolvedEvent) -> c_int {
    0
}

/// What a resolver makes of a name, in the caller's attr. That is cleared in any case: a caller who goes on after a
/// failure opens no event from what happened to be there.
///
/// # Safety
/// NULL, or a C string; NULL, or a pointer to so much memory.
unsafe fn named(resolver: Resolver, name: *const c_char, caller: Caller<Attr>) -> Option<ResolvedEvent> {
    if caller.pointer.is_null() {
        return None;
    }
    // SAFETY: as above.
    let name = unsafe { text(name) };
    let resolved =
        name.and_then(|name| resolver(&Sysfs::real(), &name).ok().filter(|found| fits(found, &caller)));
    // SAFETY: as above.
    unsafe {
        write(&caller, &resolved.as_ref().map_or_else(|| attr::new(PERF_TYPE_RAW), |found| found.attr))
    };
    resolved
}

fn fits(found: &ResolvedEvent, caller: &Caller<Attr>) -> bool {
    let needed = found.attr.size as usize;
    let fits = needed <= caller.attr_size;
    if !fits {
        let (name, has) = (&found.decoded, caller.attr_size);
        say!("{name} needs a struct perf_event_attr of {needed} bytes, and the program has one of {has}");
    }
    fits
}

/// As much as the caller's struct has; it may be larger than ours.
///
/// # Safety
/// So much is the caller's.
unsafe fn write(caller: &Caller<Attr>, attr: &Attr) {
    let bytes = attr::bytes(attr);
    let common = bytes.len().min(caller.attr_size);
    let to: *mut u8 = caller.pointer.cast();
    // SAFETY: as above.
    unsafe {
        to.copy_from_nonoverlapping(bytes.as_ptr(), common);
        to.add(common).write_bytes(0, caller.attr_size - common);
    }
}

/// Fills the caller's struct, empty after a failure; 0 or -1.
///
/// # Safety
/// NULL, or so much memory.
unsafe fn fill(to: *mut Extra, extra: Option<Extra>) -> c_int {
    let result = if extra.is_some() { 0 } else { -1 };
    let mut extra = extra.unwrap_or_default();
    if to.is_null() {
        extra.free();
    } else {
        // SAFETY: as above.
        unsafe { to.write(extra) };
    }
    result
}

/// How much of an attr may be read: its own `size` says it, and the kernel's first is always there.
///
/// # Safety
/// An attr.
unsafe fn readable(attr: *const Attr) -> usize {
    // SAFETY: as above.
    let size = unsafe { (&raw const (*attr).size).read_unaligned() };
    (size as usize).clamp(attr::FIRST_SIZE as usize, size_of::<Attr>())
}

/// A copy of an attr.
///
/// # Safety
/// NULL, or an attr.
unsafe fn read(attr: *const Attr) -> Option<Attr> {
    // SAFETY: as above.
    (!attr.is_null())
        .then(|| attr::from_bytes(unsafe { std::slice::from_raw_parts(attr.cast(), readable(attr)) }))
}

/// Applies qualifiers; an attr that they do not fit stays as it is.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevents_update_qual(
    qual: *const c_char,
    attr: *mut Attr,
    of: *const c_char,
) -> c_int {
    guard(-1, || {
        // SAFETY: as above.
        let (Some(qual), Some(before), of) = (unsafe { (text(qual), read(attr), text(of)) }) else {
            return -1;
        };
        let of = of.as_deref().unwrap_or("an event");
        let mut after = before;
        if let Err(why) = qualifier::apply(&Sysfs::real(), &qual, &mut after, of) {
            say!("{}", why.reason().unwrap_or_default());
            return -1;
        }
        // SAFETY: as above.
        let room = unsafe { readable(attr) }.max(SMALLEST);
        if after.size > before.size && after.size as usize > room {
            say!(
                "{qual} of {of} needs a struct perf_event_attr of {} bytes: its size says {}",
                after.size,
                before.size
            );
            return -1;
        }
        let to: *mut u8 = attr.cast();
        for (at, (old, new)) in attr::bytes(&before).iter().zip(attr::bytes(&after)).enumerate() {
            if old != new {
                // SAFETY: in the room that there is.
                unsafe { to.add(at).write(*new) };
            }
        }
        0
    })
}

/// Makes attr count on the next PMU: 1. 0 if there is none, -1 if its type cannot be read.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_next_pmu(extra: *mut Extra, attr: *mut Attr) -> c_int {
    guard(-1, || {
        // SAFETY: as above.
        let (Some(extra), false) = (unsafe { extra.as_mut() }, attr.is_null()) else { return -1 };
        let Some(path) = extra.next_path() else { return 0 };
        let Some(kind) = topdown_seam::sysfs::kind_of(&path) else { return -1 };
        // SAFETY: as above.
        unsafe { (&raw mut (*attr).type_).write_unaligned(kind) };
        1
    })
}

/// The name of a PMU of an event, NULL behind the last; the number of the next.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_pmu_name(extra: *mut Extra, num: c_int, next_num: *mut c_int) -> *mut c_char {
    guard(null_mut(), || {
        if !next_num.is_null() {
            // SAFETY: as above.
            unsafe { next_num.write(if num < 0 { -1 } else { num.saturating_add(1) }) };
        }
        // SAFETY: as above.
        let (Some(extra), Ok(number)) = (unsafe { extra.as_ref() }, usize::try_from(num)) else {
            return null_mut();
        };
        extra.pmu_name(number).map_or(null_mut(), |name| name.as_ptr().cast_mut())
    })
}

/// Frees what is in it; it is empty then.
///
/// # Safety
/// As jevents.h says, if it is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_free_extra(extra: *mut Extra) {
    // SAFETY: as above.
    guard((), || unsafe { extra.as_mut() }.map_or((), Extra::free));
}

/// A copy for `dst`, which has nothing to be freed.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_copy_extra(dst: *mut Extra, src: *mut Extra) {
    guard((), || {
        // SAFETY: as above.
        let copy = unsafe { src.as_ref() }.map(Extra::copy_of);
        // SAFETY: as above.
        unsafe { fill(dst, copy) };
    });
}

/// Whether an event is counted once a socket.
///
/// # Safety
/// A C string, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_pmu_uncore(event: *const c_char) -> bool {
    // SAFETY: as above.
    guard(false, || unsafe { text(event) }.is_some_and(|event| Sysfs::real().is_uncore(&event)))
}

/// The name of the first PMU of a type, to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn resolve_pmu(kind: c_int) -> *mut c_char {
    let pmu = || Sysfs::real().pmu_of_type(kind as u32);
    guard(null_mut(), || pmu().map_or(null_mut(), |name| copy(&name)))
}

/// An event for perf from an attr, to be freed.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn format_raw_event(attr: *mut Attr, name: *const c_char) -> *mut c_char {
    guard(null_mut(), || {
        // SAFETY: as above.
        let (Some(attr), name) = (unsafe { (read(attr), text(name)) }) else { return null_mut() };
        format::raw_event(&Sysfs::real(), &attr, name.as_deref()).map_or(null_mut(), |event| copy(&event))
    })
}

/// The lowest CPU of each socket, to be freed.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevents_socket_cpus(length: *mut c_int, cpus: *mut *mut c_int) -> c_int {
    guard(-1, || {
        let Some(found) = Sysfs::real().socket_cpus().filter(|_| !length.is_null() && !cpus.is_null()) else {
            return -1;
        };
        // SAFETY: as above; an array of so many, if it is not NULL.
        unsafe {
            let array: *mut c_int = libc::calloc(found.len(), size_of::<c_int>()).cast();
            if array.is_null() {
                return -1;
            }
            array.copy_from_nonoverlapping(found.as_ptr(), found.len());
            (*length, *cpus) = (found.len() as c_int, array);
        }
        0
    })
}

/// The text of an attr.
///
/// # Safety
/// As jevents.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jevent_print_attr(file: *mut FILE, attr: *mut Attr) {
    guard((), || {
        // SAFETY: as above.
        if let (false, Some(attr)) = (file.is_null(), unsafe { read(attr) }) {
            print_attr(file, &attr);
        }
    });
}

/// Called without the guard, as those of lists.
type Walker = unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, *mut c_char, *mut c_char) -> c_int;

/// Each event that the kernel names, until the function returns other than 0; -1 if there are none.
///
/// # Safety
/// As jevents.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn walk_perf_events(func: Option<Walker>, data: *mut c_void) -> c_int {
    let (Some(func), events) = (func, guard(Vec::new(), || Sysfs::real().events())) else { return -1 };
    if events.is_empty() {
        return -1;
    }
    for event in events {
        // the function may write into them
        let [mut name, mut terms, mut desc] = [
            format!("{0}/{1}/\0", event.pmu, event.name),
            format!("{}/{}/\0", event.pmu, event.terms),
            "\0".into(),
        ]
        .map(String::into_bytes);
        let [name, terms, desc] = [&mut name, &mut terms, &mut desc].map(|text| text.as_mut_ptr().cast());
        // SAFETY: the caller's function; C strings.
        match unsafe { func(data, name, terms, desc) } {
            0 => {}
            stop => return stop,
        }
    }
    0
}
