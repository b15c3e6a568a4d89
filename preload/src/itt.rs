//! A collector of Intel's ITT API: the program's static part (ittnotify_static.c) loads the library that
//! INTEL_LIBITTNOTIFY64 names at its first call and has `__itt_api_init` fill its table of functions. What is not in
//! `FUNCTIONS` stays NULL there, and the static part passes it over.

use crate::names::{Interner, mix};
use crate::{overlap, regions};
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use topdown_seam::cancelled_later;

/// `__itt_global`, as far as it has been the same since `API_INFO`.
#[repr(C)]
pub struct Global {
    magic: [u8; 8],
    version_major: c_ulong,
    version_minor: c_ulong,
    version_build: c_ulong,
    api_initialized: c_long,
    mutex_initialized: c_long,
    atomic_counter: c_long,
    mutex: libc::pthread_mutex_t,
    lib: *mut c_void,
    error_handler: *mut c_void,
    dll_path: *mut *const c_char,
    api_list: *mut ApiInfo,
}

/// ITT_MAGIC.
const MAGIC: [u8; 8] = [0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30];
/// Versions up to this one have another `ApiInfo`.
const API_INFO: c_ulong = 20_101_001;

/// `__itt_api_info`: a function of the API.
#[repr(C)]
struct ApiInfo {
    name: *const c_char,
    pointer: *mut *const c_void,
    init: *const c_void,
    null: *const c_void,
    group: c_int,
}

/// `__itt_domain`.
#[repr(C)]
struct Domain {
    /// The program may set it to 0: then it does not call.
    flags: AtomicI32,
    name: *const c_char,
    name_wide: *const c_void,
    extra1: c_int,
    extra2: *mut c_void,
    next: *mut Domain,
}

/// `__itt_string_handle`.
#[repr(C)]
struct StringHandle {
    text: *const c_char,
    text_wide: *const c_void,
    extra1: c_int,
    extra2: *mut c_void,
    next: *mut StringHandle,
}

// SAFETY: the pointers are to texts that stay, or NULL, and only `flags` changes.
unsafe impl Sync for Domain {}
// SAFETY: nothing changes.
unsafe impl Sync for StringHandle {}

/// `__itt_id`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Id([u64; 3]);

const NO_ID: Id = Id([0; 3]);

static DOMAINS: Interner<Domain> = Interner::new();
static HANDLES: Interner<StringHandle> = Interner::new();
static EVENTS: Interner<CString> = Interner::new();
static FUNCTION_NAMES: Interner<CString> = Interner::new();
static PAUSED: AtomicBool = AtomicBool::new(false);

/// What a region is to the API: only a thing of its own kind ends it.
#[derive(Clone, Copy)]
enum IttKind {
    Task = 1,
    OverlappedTask,
    Region,
    Frame,
    Event,
}

/// Two regions with one key are as unlikely as two equal random numbers of 64 bits.
fn key(kind: IttKind, of: usize, Id([a, b, c]): Id) -> overlap::RegionKey {
    [kind as u64, of as u64, a, b, c].into_iter().fold(0, mix)
}

/// A region begins, unless collection is paused or its name is NULL: then it is only known to end.
///
/// # Safety
/// `name` is NULL or a C string that stays.
unsafe fn begin(key: overlap::RegionKey, name: *const c_char) -> c_int {
    let measured = !name.is_null() && !PAUSED.load(Ordering::Relaxed);
    // SAFETY: the caller's word.
    overlap::begin_within(key, measured.then(|| unsafe { CStr::from_ptr(name) }))
}

/// The text of a handle, which may be NULL.
///
/// # Safety
/// `handle` is NULL or what `__itt_string_handle_create` returned, the static part's or ours.
unsafe fn text(handle: *const StringHandle) -> *const c_char {
    // SAFETY: the caller's word.
    unsafe { handle.as_ref() }.map_or(null_mut(), |handle| handle.text)
}

fn kept(text: &CStr) -> *const c_char {
    text.to_owned().into_raw()
}

/// The name of a function: that of its symbol, or its address in its file.
fn function_name(function: *const c_void) -> Option<&'static CString> {
    let name = || {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: it only looks; a failure leaves zeros.
        let found = unsafe {
            libc::dladdr(function, found.as_mut_ptr());
            found.assume_init()
        };
        if !found.dli_sname.is_null() {
            // SAFETY: a C string in a loaded object.
            return unsafe { CStr::from_ptr(found.dli_sname) }.to_owned();
        }
        let mut text = Vec::new();
        if !found.dli_fname.is_null() {
            // SAFETY: as above.
            let path = unsafe { CStr::from_ptr(found.dli_fname) }.to_bytes();
            text.extend(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path));
        }
        text.extend(format!("+{:#x}", (function as usize).wrapping_sub(found.dli_fbase as usize)).bytes());
        CString::new(text).unwrap_or_default()
    };
    FUNCTION_NAMES.find(&(function as usize).to_ne_bytes(), name).map(|(_, name)| name)
}

/// A clock of the program's own: what it times is not what this thread does between the calls. The CPU's (NULL) is, but
/// for the timestamp, which is taken to be now.
type ClockDomain = c_void;

/// Functions with a clock and a timestamp, which are another one if the clock is the CPU's, and else nothing.
macro_rules! with_clock {
    ($($name:ident($($parameter:ident: $kind:ty),*) is $other:ident)*) => {$(
        unsafe extern "C" fn $name(
            domain: *const Domain,
            clock: *const ClockDomain,
            _time: u64,
            $($parameter: $kind),*
        ) {
            if clock.is_null() {
                // SAFETY: as its caller says.
                unsafe { $other(domain, $($parameter),*) };
            }
        }
    )*};
}

with_clock! {
    task_begin_ex(id: Id, parent: Id, name: *const StringHandle) is task_begin
    task_begin_fn_ex(id: Id, parent: Id, function: *const c_void) is task_begin_fn
    task_end_ex() is task_end
    task_begin_overlapped_ex(id: Id, parent: Id, name: *const StringHandle) is task_begin_overlapped
    task_end_overlapped_ex(id: Id) is task_end_overlapped
}

/// The key of a frame, whose id may be NULL.
///
/// # Safety
/// `id` is NULL or an id.
unsafe fn frame(domain: *const Domain, id: *const Id) -> overlap::RegionKey {
    // SAFETY: the caller's word.
    key(IttKind::Frame, domain as usize, unsafe { id.as_ref() }.copied().unwrap_or(NO_ID))
}

/// The name of an event and its key.
fn known_event(event: c_int) -> Option<(overlap::RegionKey, &'static CString)> {
    let name = EVENTS.at(usize::try_from(event).ok()?.checked_sub(1)?)?;
    Some((key(IttKind::Event, event as usize, NO_ID), name))
}

cancelled_later! {
unsafe extern "C" fn domain_create(name: *const c_char) -> *mut Domain {
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: the API's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let domain = DOMAINS.find(name.to_bytes(), || Domain {
        flags: AtomicI32::new(1),
        name: kept(name),
        name_wide: null_mut(),
        extra1: 0,
        extra2: null_mut(),
        next: null_mut(),
    });
    domain.map_or(null_mut(), |(_, domain)| from_ref(domain).cast_mut())
}

unsafe extern "C" fn string_handle_create(text: *const c_char) -> *mut StringHandle {
    if text.is_null() {
        return null_mut();
    }
    // SAFETY: the API's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let handle = HANDLES.find(text.to_bytes(), || StringHandle {
        text: kept(text),
        text_wide: null_mut(),
        extra1: 0,
        extra2: null_mut(),
        next: null_mut(),
    });
    handle.map_or(null_mut(), |(_, handle)| from_ref(handle).cast_mut())
}

unsafe extern "C" fn task_begin(domain: *const Domain, _id: Id, _parent: Id, name: *const StringHandle) {
    // SAFETY: the API's promise; handles stay.
    unsafe { begin(key(IttKind::Task, domain as usize, NO_ID), text(name)) };
}

unsafe extern "C" fn task_begin_fn(domain: *const Domain, _id: Id, _parent: Id, function: *const c_void) {
    let name = function_name(function).map_or(null_mut(), |name| name.as_ptr().cast_mut());
    // SAFETY: names of functions stay.
    unsafe { begin(key(IttKind::Task, domain as usize, NO_ID), name) };
}

unsafe extern "C" fn task_end(domain: *const Domain) {
    overlap::end(key(IttKind::Task, domain as usize, NO_ID));
}

unsafe extern "C" fn task_begin_overlapped(
    domain: *const Domain,
    id: Id,
    _parent: Id,
    name: *const StringHandle,
) {
    // SAFETY: the API's promise; handles stay.
    unsafe { begin(key(IttKind::OverlappedTask, domain as usize, id), text(name)) };
}

unsafe extern "C" fn task_end_overlapped(domain: *const Domain, id: Id) {
    overlap::end(key(IttKind::OverlappedTask, domain as usize, id));
}

unsafe extern "C" fn region_begin(domain: *const Domain, id: Id, _parent: Id, name: *const StringHandle) {
    // SAFETY: the API's promise; handles stay.
    unsafe { begin(key(IttKind::Region, domain as usize, id), text(name)) };
}

unsafe extern "C" fn region_end(domain: *const Domain, id: Id) {
    overlap::end(key(IttKind::Region, domain as usize, id));
}

unsafe extern "C" fn frame_begin(domain: *const Domain, id: *const Id) {
    // SAFETY: the API's promise; domains stay.
    unsafe { begin(frame(domain, id), domain.as_ref().map_or(null_mut(), |domain| domain.name)) };
}

unsafe extern "C" fn frame_end(domain: *const Domain, id: *const Id) {
    // SAFETY: the API's promise.
    overlap::end(unsafe { frame(domain, id) });
}

/// An event's number is its place in the table, and one more, so that none is 0.
unsafe extern "C" fn event_create(name: *const c_char, length: c_int) -> c_int {
    if name.is_null() {
        return 0;
    }
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the API's promise: that many bytes, or fewer and a NUL.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), libc::strnlen(name, length)) };
    EVENTS.find(name, || CString::new(name).unwrap_or_default()).map_or(0, |(place, _)| place as c_int + 1)
}

/// Events may have no end: one that starts again had none.
unsafe extern "C" fn event_start(event: c_int) -> c_int {
    let Some((key, name)) = known_event(event) else { return -libc::EINVAL };
    overlap::abandon(key);
    // SAFETY: names of events stay.
    unsafe { begin(key, name.as_ptr()) }
}

unsafe extern "C" fn event_end(event: c_int) -> c_int {
    let Some((key, name)) = known_event(event) else { return -libc::EINVAL };
    // (which counts an end without a beginning)
    overlap::end(key).unwrap_or_else(|| regions::end_named(name))
}
}

unsafe extern "C" fn pause() {
    PAUSED.store(true, Ordering::Relaxed);
}

unsafe extern "C" fn resume() {
    PAUSED.store(false, Ordering::Relaxed);
}

/// The part of `__itt_collection_scope` that is not for other devices.
const HOST: c_uint = 1;

unsafe extern "C" fn pause_scoped(scope: c_uint) {
    if scope & HOST != 0 {
        PAUSED.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn resume_scoped(scope: c_uint) {
    if scope & HOST != 0 {
        PAUSED.store(false, Ordering::Relaxed);
    }
}

/// The API's clock of a program's own: it is known by its address, and what a program may read of it says nothing.
#[repr(C)]
struct IttClock {
    frequency: u64,
    base: u64,
    function: *const c_void,
    data: *mut c_void,
    extra1: c_int,
    extra2: *mut c_void,
    next: *mut IttClock,
}
// SAFETY: nothing changes.
unsafe impl Sync for IttClock {}

/// One for all: with NULL, what is on other devices would be taken for this thread's.
unsafe extern "C" fn clock_domain_create(_function: *const c_void, _data: *mut c_void) -> *const IttClock {
    static CLOCK: IttClock = IttClock {
        frequency: 0,
        base: 0,
        function: null_mut(),
        data: null_mut(),
        extra1: 0,
        extra2: null_mut(),
        next: null_mut(),
    };
    &raw const CLOCK
}

/// Programs take NULL to mean that there is no collector (OpenCV does).
unsafe extern "C" fn api_version() -> *const c_char {
    c"ITT-API-Version 3".as_ptr()
}

/// A function that the static part's table is given the address of.
struct IttFunction(*const c_void);
// SAFETY: code.
unsafe impl Sync for IttFunction {}

static FUNCTIONS: [(&CStr, IttFunction); 25] = [
    (c"__itt_domain_create", IttFunction(domain_create as *const c_void)),
    (c"__itt_string_handle_create", IttFunction(string_handle_create as *const c_void)),
    (c"__itt_task_begin", IttFunction(task_begin as *const c_void)),
    (c"__itt_task_begin_fn", IttFunction(task_begin_fn as *const c_void)),
    (c"__itt_task_end", IttFunction(task_end as *const c_void)),
    (c"__itt_task_begin_ex", IttFunction(task_begin_ex as *const c_void)),
    (c"__itt_task_begin_fn_ex", IttFunction(task_begin_fn_ex as *const c_void)),
    (c"__itt_task_end_ex", IttFunction(task_end_ex as *const c_void)),
    (c"__itt_task_begin_overlapped", IttFunction(task_begin_overlapped as *const c_void)),
    (c"__itt_task_end_overlapped", IttFunction(task_end_overlapped as *const c_void)),
    (c"__itt_task_begin_overlapped_ex", IttFunction(task_begin_overlapped_ex as *const c_void)),
    (c"__itt_task_end_overlapped_ex", IttFunction(task_end_overlapped_ex as *const c_void)),
    (c"__itt_region_begin", IttFunction(region_begin as *const c_void)),
    (c"__itt_region_end", IttFunction(region_end as *const c_void)),
    (c"__itt_frame_begin_v3", IttFunction(frame_begin as *const c_void)),
    (c"__itt_frame_end_v3", IttFunction(frame_end as *const c_void)),
    (c"__itt_event_create", IttFunction(event_create as *const c_void)),
    (c"__itt_event_start", IttFunction(event_start as *const c_void)),
    (c"__itt_event_end", IttFunction(event_end as *const c_void)),
    (c"__itt_pause", IttFunction(pause as *const c_void)),
    (c"__itt_resume", IttFunction(resume as *const c_void)),
    (c"__itt_pause_scoped", IttFunction(pause_scoped as *const c_void)),
    (c"__itt_resume_scoped", IttFunction(resume_scoped as *const c_void)),
    (c"__itt_clock_domain_create", IttFunction(clock_domain_create as *const c_void)),
    (c"__itt_api_version", IttFunction(api_version as *const c_void)),
];

/// The static part calls this once, holding its lock, after it has loaded this library. It asks for groups of functions,
/// which does not matter here: those that it does not know are not in its table. A version that is not known keeps
/// its own functions, which do nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn __itt_api_init(global: *mut Global, _groups: c_int) {
    // SAFETY: the static part's own.
    let Some(global) = (unsafe { global.as_ref() }) else { return };
    if global.magic != MAGIC || global.version_major != 3 || global.version_build <= API_INFO {
        return;
    }
    let mut api = global.api_list;
    // SAFETY: a table that ends with a name that is NULL, of pointers that are the static part's to be set.
    unsafe {
        while !(*api).name.is_null() {
            let name = CStr::from_ptr((*api).name);
            let ours = FUNCTIONS.iter().find(|(known, _)| *known == name);
            *(*api).pointer = ours.map_or((*api).null, |(_, function)| function.0);
            api = api.add(1);
        }
    }
}

const _: () = {
    assert!(offset_of!(Global, api_list) == 80 + size_of::<libc::pthread_mutex_t>());
    assert!(size_of::<ApiInfo>() == 40);
    assert!(offset_of!(IttClock, next) == 48);
    assert!(offset_of!(Domain, next) == 40 && offset_of!(StringHandle, next) == 32);
};
