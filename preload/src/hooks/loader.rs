//! The dynamic linker's own functions: as we call them, and as the program does.
//!
//! dlopen and dlsym are exported, so that what a program loads while it runs is found: whatever it does with a library
//! that it has loaded begins with a call of one of them. They end in a jump to the real ones, which look at their
//! return address to know whose RUNPATH or RTLD_NEXT is meant.

use super::elf::{Dyn, Object};
use super::{rescan, stub_of};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".section .text.td_loader, \"ax\", @progbits",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "  endbr64",
    "  push rdi",
    "  .cfi_adjust_cfa_offset 8",
    "  push rsi",
    "  .cfi_adjust_cfa_offset 8",
    "  sub rsp, 8",
    "  .cfi_adjust_cfa_offset 8",
    "  call {before_dlopen}",
    "  add rsp, 8",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rsi",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rdi",
    "  .cfi_adjust_cfa_offset -8",
    "  jmp rax",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".globl dlsym",
    ".type dlsym, @function",
    "dlsym:",
    ".cfi_startproc",
    "  endbr64",
    "  push rdi",
    "  .cfi_adjust_cfa_offset 8",
    "  push rsi",
    "  .cfi_adjust_cfa_offset 8",
    "  sub rsp, 8",
    "  .cfi_adjust_cfa_offset 8",
    "  call {before_dlsym}",
    "  add rsp, 8",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rsi",
    "  .cfi_adjust_cfa_offset -8",
    "  pop rdi",
    "  .cfi_adjust_cfa_offset -8",
    "  test rax, rax",
    "  jz 2f",
    "  jmp rax",
    "2: mov rax, rdx",
    "  ret",
    ".cfi_endproc",
    ".size dlsym, . - dlsym",
    ".text",
    before_dlopen = sym before_dlopen,
    before_dlsym = sym before_dlsym,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".section .text.td_loader, \"ax\", @progbits",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "  hint #34", // BTI C
    "  stp x29, x30, [sp, #-32]!",
    "  .cfi_def_cfa_offset 32",
    "  .cfi_offset 29, -32",
    "  .cfi_offset 30, -24",
    "  stp x0, x1, [sp, #16]",
    "  bl {before_dlopen}",
    "  mov x16, x0",
    "  ldp x0, x1, [sp, #16]",
    "  ldp x29, x30, [sp], #32",
    "  .cfi_def_cfa_offset 0",
    "  .cfi_restore 29",
    "  .cfi_restore 30",
    "  br x16",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".globl dlsym",
    ".type dlsym, @function",
    "dlsym:",
    ".cfi_startproc",
    "  hint #34",
    "  stp x29, x30, [sp, #-32]!",
    "  .cfi_def_cfa_offset 32",
    "  .cfi_offset 29, -32",
    "  .cfi_offset 30, -24",
    "  stp x0, x1, [sp, #16]",
    "  bl {before_dlsym}",
    "  mov x16, x0",
    "  mov x17, x1",
    "  ldp x0, x1, [sp, #16]",
    "  ldp x29, x30, [sp], #32",
    "  .cfi_def_cfa_offset 0",
    "  .cfi_restore 29",
    "  .cfi_restore 30",
    "  cbz x16, 2f",
    "  br x16",
    "2: mov x0, x17",
    "  ret",
    ".cfi_endproc",
    ".size dlsym, . - dlsym",
    ".text",
    before_dlopen = sym before_dlopen,
    before_dlsym = sym before_dlsym,
);

/// The versions of the linker's functions: from when they were in libc, and those of libdl, as old as the architecture.
const VERSIONS: [&CStr; 2] =
    [c"GLIBC_2.34", if cfg!(target_arch = "x86_64") { c"GLIBC_2.2.5" } else { c"GLIBC_2.17" }];

static DLOPEN: AtomicUsize = AtomicUsize::new(0);
static DLSYM: AtomicUsize = AtomicUsize::new(0);

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

extern "C" fn before_dlopen() -> usize {
    rescan();
    real(&DLOPEN, c"dlopen")
}

/// The real function, or 0 and the answer.
#[repr(C)]
struct Answer {
    function: usize,
    address: usize,
}

unsafe extern "C" fn before_dlsym(handle: *mut c_void, name: *const c_char) -> Answer {
    let function = real(&DLSYM, c"dlsym");
    // these two depend on who asks
    if !rescan() || handle == libc::RTLD_NEXT || handle == libc::RTLD_DEFAULT || name.is_null() {
        return Answer { function, address: 0 };
    }
    // SAFETY: the caller's arguments, passed on.
    let (address, name) = unsafe { (dlsym(handle, name) as usize, CStr::from_ptr(name)) };
    Answer { function: 0, address: stub_of(name, address).unwrap_or(address) }
}

/// The linker's dlsym.
///
/// # Safety
/// As dlsym's.
unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: it is the function of that name.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
            std::mem::transmute(real(&DLSYM, c"dlsym"));
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
            std::mem::transmute(real(&DLOPEN, c"dlopen"));
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
