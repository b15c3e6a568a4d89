//! The dynamic linker's own functions, as this library calls them.

use super::elf::{Dyn, Object};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The versions of the linker's functions: from when they were in libc, and those of libdl, as old as the architecture.
const VERSIONS: [&CStr; 2] =
    [c"GLIBC_2.34", if cfg!(target_arch = "x86_64") { c"GLIBC_2.2.5" } else { c"GLIBC_2.17" }];

static DLOPEN: AtomicUsize = AtomicUsize::new(0);
static DLSYM: AtomicUsize = AtomicUsize::new(0);

/// Where the linker's dlopen is.
pub fn real_dlopen() -> usize {
    real(&DLOPEN, c"dlopen")
}

/// Where the linker's dlsym is.
pub fn real_dlsym() -> usize {
    real(&DLSYM, c"dlsym")
}

/// Where the next library's function of this name is.
fn real(cache: &AtomicUsize, name: &CStr) -> usize {
    let mut address = cache.load(Relaxed);
    if address == 0 {
        // dlvsym is the one of these that is not our own; libdl's functions moved to libc in 2.34
        address = VERSIONS
            .iter()
            // SAFETY: C strings.
            .map(|version| unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) } as usize)
            .find(|&address| address != 0)
            .unwrap_or_else(|| std::process::abort());
        cache.store(address, Relaxed);
    }
    address
}

/// The linker's dlsym.
///
/// # Safety
/// As dlsym's.
pub unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: it is the function of that name.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
            std::mem::transmute(real_dlsym());
        function(handle, name)
    }
}

/// An object that stays loaded meanwhile.
pub struct HeldObject(*mut c_void);

/// The beginning of <link.h>'s link_map.
#[repr(C)]
struct LinkMap {
    base: usize,
    _name: *const c_char,
    dynamic: *const Dyn,
}

/// Holds the object, if it is still the one that it was. Waits until a dlopen in another thread is through with it.
pub fn hold(object: &Object) -> Option<HeldObject> {
    let path = if object.path.is_empty() { ptr::null() } else { object.path.as_ptr() };
    // SAFETY: dlopen of what is there already, by its own path, loads nothing; the map is the linker's.
    unsafe {
        let function: unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void =
            std::mem::transmute(real_dlopen());
        let handle = function(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            libc::dlerror(); // nobody is to see it
            return None;
        }
        let held = HeldObject(handle);
        let mut map: *const LinkMap = ptr::null();
        let found = libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) == 0;
        (found && (*map).base == object.base && (*map).dynamic == object.dynamic).then_some(held)
    }
}

impl HeldObject {
    /// Where the object, or what it was loaded with, has this function; 0 if it has not.
    pub fn lookup(&self, name: &CStr, version: Option<&CStr>) -> usize {
        lookup(self.0, name, version)
    }

    /// Where the linker would find the function for this object: in what the program was started with, else in what
    /// the object was loaded with.
    pub fn resolve(&self, name: &CStr, version: Option<&CStr>) -> usize {
        match lookup(libc::RTLD_DEFAULT, name, version) {
            0 => self.lookup(name, version),
            address => address,
        }
    }
}

impl Drop for HeldObject {
    fn drop(&mut self) {
        // SAFETY: it was opened.
        unsafe { libc::dlclose(self.0) };
    }
}

fn lookup(handle: *mut c_void, name: &CStr, version: Option<&CStr>) -> usize {
    // SAFETY: an open handle, and C strings.
    unsafe {
        let address = match version {
            Some(version) => libc::dlvsym(handle, name.as_ptr(), version.as_ptr()),
            None => dlsym(handle, name.as_ptr()),
        };
        if address.is_null() {
            libc::dlerror(); // nobody is to see it
        }
        address as usize
    }
}
