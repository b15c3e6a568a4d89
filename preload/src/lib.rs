//! libtopdown-preload.so: loaded before a program's own libraries (LD_PRELOAD), it measures the program's threads and
//! regions from start to end, and the program runs as it would without.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod apart;
mod directory;
mod engine;
mod fault;
mod hooks;
mod instrument;
mod interpose;
mod itt;
mod likwid;
mod memory;
mod name;
mod names;
mod output;
mod overlap;
mod perfmon;
mod private;
mod process;
mod quiet;
mod say;
mod stack;
mod tables;
mod word;

use std::ffi::{c_char, c_int};

/// A region begins in this thread: include/topdown_region.h.
#[unsafe(no_mangle)]
unsafe extern "C" fn td_region_begin(name: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    unsafe { engine::begin(name) }
}

/// It ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn td_region_end(name: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    unsafe { engine::end(name) }
}

extern "C" fn loaded() {
    interpose::prepare();
    if process::start() {
        hooks::start();
        instrument::start();
    }
}

extern "C" fn unloaded() {
    hooks::finish();
    process::finish();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = unloaded;
