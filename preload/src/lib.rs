//! libtopdown-preload.so: loaded before a program's own libraries (LD_PRELOAD), it measures the program's threads and
//! regions from start to end, and the program runs as it would without.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

// What the rest stands on.
mod arena;
mod at_work;
#[cfg_attr(target_arch = "aarch64", path = "bytes_neon.rs")]
mod bytes;
mod memory;
mod name;
mod names;
mod stack;

// The table file.
mod measurement;
mod record;
mod tables;

// The regions of a thread.
mod engine;

// The process and its threads.
mod apart;
mod begin;
mod descriptors;
mod elsewhere;
mod end;
mod fault;
mod fork;
mod output;
mod private;
mod process;
mod report;
mod say;
mod start;
mod threads;

// Where regions come from.
mod functions;
mod hooks;
mod instrument;
mod interpose;
mod itt;
mod likwid;
mod marks;
mod overlap;
mod perfmon;
mod regions;
mod sandbox;

use at_work::AtWork;
use process::MeasuredProcess;
use std::ffi::{c_char, c_int};

/// A region begins in this thread: include/topdown_region.h.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn td_region_begin(name: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    unsafe { regions::begin::<true>(name) }
}

/// A region ends in this thread: include/topdown_region.h.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn td_region_end(name: *const c_char) -> c_int {
    // SAFETY: as its caller says.
    unsafe { regions::end(name) }
}

/// (The C library gives initializers what it gives main.)
unsafe extern "C" fn loaded(count: c_int, arguments: *const *const c_char) {
    at_work::prepare();
    engine::empty::prepare([td_region_begin, td_region_end]);
    let _work = AtWork::new();
    // SAFETY: as main's.
    unsafe { private::remember_start(count, arguments) };
    interpose::prepare();
    // (this library's own tests are not measured)
    if !cfg!(test) && start::start() {
        marks::find();
        // (what is patched needs no hook)
        functions::start();
        hooks::start();
    }
}

extern "C" fn unloaded() {
    let _work = AtWork::new();
    // (from here on threads that end the process, too, wait)
    if MeasuredProcess::here().is_some() {
        end::is_first();
    }
    hooks::finish();
    end::finish();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: unsafe extern "C" fn(c_int, *const *const c_char) = loaded;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = unloaded;
