//! Functions by name, in programs that nobody recompiled (TOPDOWN_REGIONS): patterns say which, elf knows what is
//! loaded, bind makes calls go to stubs, trampoline leads them in and out, entries are those that are under way,
//! unwinding is how exceptions pass, and exports is how libraries come later. docs/preload-regions.md has the whole of it.

mod bind;
pub mod elf;
mod entries;
mod exports;
mod loader;
pub mod patterns;
mod stubs;
#[cfg_attr(target_arch = "aarch64", path = "trampoline_aarch64.rs")]
mod trampoline;
mod unwinding;

use crate::at_work::{AtWork, WorkGuard};
use crate::{apart, memory, private, say};
use bind::Hooks;
use std::ffi::CStr;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

static HOOKS: Mutex<Option<Hooks>> = Mutex::new(None);
/// What the linker had added and removed when it was last looked at.
static ADDED: AtomicU64 = AtomicU64::new(0);
static REMOVED: AtomicU64 = AtomicU64::new(0);
/// The process that looked; its forked children have nothing to add.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// A list of patterns in the environment. There is memory to parse it.
pub fn variable(name: &str) -> Option<String> {
    let value = private::variable(name)?;
    const FOR_A_BYTE: usize = 256; // of a list: a pattern may have as little as that and a comma
    if !memory::secure(FOR_A_BYTE * value.count_bytes()) {
        say::say("no memory for the patterns of functions: none is measured");
        return None;
    }
    Some(value.to_string_lossy().into_owned())
}

const SHADOW_STACK: &str = if cfg!(target_arch = "x86_64") {
    "TOPDOWN_REGIONS: this program runs with a shadow stack, so nothing is hooked: turn it off (GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)"
} else {
    "TOPDOWN_REGIONS: this program runs with a guarded control stack, so nothing is hooked: turn it off (GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=0)"
};

/// Hooks what TOPDOWN_REGIONS says; to be called once, before the program begins.
pub fn start() {
    let Some(list) = variable("TOPDOWN_REGIONS") else { return };
    let patterns = patterns::parse(&list);
    if patterns.is_empty() || !crate::process::active() {
        return;
    }
    if trampoline::has_shadow_stack() {
        say::say(SHADOW_STACK);
        return;
    }
    trampoline::prepare();
    entries::prepare();
    *HOOKS.lock().unwrap_or_else(|e| e.into_inner()) = Some(Hooks::new(patterns));
    PROCESS.store(process::id(), Relaxed);
    stubs::STARTED.store(true, Release);
    rescan();
}

/// Says what came to nothing; to be called when the program ends. What is hooked goes by without a system call from then on.
pub fn finish() {
    if !stubs::STARTED.swap(false, AcqRel) || PROCESS.load(Relaxed) != process::id() {
        return;
    }
    if let Ok(hooks) = HOOKS.try_lock() {
        // (there may be any number of names in it)
        if !hooks.as_ref().is_some_and(Hooks::has_complaints) {
            return;
        }
        let _ = apart::run(|| {
            hooks
                .iter()
                .flat_map(Hooks::complaints)
                .for_each(|line| say::say(&format!("TOPDOWN_REGIONS: {line}")));
            true
        });
    }
}

/// Hooks what was loaded since the last time. Says whether anything is hooked at all.
pub fn rescan() -> bool {
    if !stubs::STARTED.load(Acquire) {
        return false;
    }
    let _work = AtWork::new();
    let now = elf::changes();
    if (ADDED.load(Relaxed), REMOVED.load(Relaxed)) == (now.added, now.removed) {
        return true;
    }
    let _alone = WorkGuard::new(); // (who left by siglongjmp would leave it locked)
    // whoever has it is at it, maybe this thread
    if let Ok(mut hooks) = HOOKS.try_lock() {
        ADDED.store(now.added, Relaxed);
        REMOVED.store(now.removed, Relaxed);
        hooks.iter_mut().for_each(Hooks::scan);
    }
    true
}

/// The stub to be called instead of the function of this name and address.
fn stub_of(name: &CStr, address: usize) -> Option<usize> {
    let _alone = WorkGuard::new(); // as in `rescan`
    HOOKS.try_lock().ok()?.as_mut()?.stub_of(name, address)
}
