//! Functions by name, in programs that nobody recompiled (TOPDOWN_REGIONS): patterns say which, elf knows what is
//! loaded, bind makes calls go to stubs, trampoline leads them in and out, entries are those that are under way,
//! unwinding is how exceptions pass, and exports is how libraries come later. patches has functions themselves go to
//! stubs (TOPDOWN_FUNCTIONS). docs/preload-regions.md has the whole of it.

mod bind;
pub mod elf;
mod entries;
mod exports;
mod loader;
#[cfg_attr(target_arch = "aarch64", path = "patches_aarch64.rs")]
pub mod patches;
pub mod patterns;
mod stubs;
#[cfg_attr(target_arch = "aarch64", path = "trampoline_aarch64.rs")]
mod trampoline;
mod unwinding;

use crate::at_work::{AtWork, WorkGuard};
use crate::process::MeasuredProcess;
use crate::{apart, memory, private, say};
use bind::Hooks;
use patterns::Pattern;
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

/// A list of patterns in the environment, and the option of `topdown run` that sets it.
#[derive(Clone, Copy)]
pub struct PatternList {
    variable: &'static str,
    option: &'static str,
}

pub const REGIONS: PatternList = PatternList { variable: "TOPDOWN_REGIONS", option: "--regions" };
pub const FUNCTIONS: PatternList = PatternList { variable: "TOPDOWN_FUNCTIONS", option: "--functions" };

impl PatternList {
    /// The patterns. There is memory to parse them.
    pub fn parse(self) -> Vec<Pattern> {
        let Some(value) = private::variable(self.variable) else { return Vec::new() };
        const FOR_A_BYTE: usize = 256; // of a list: a pattern may have as little as that and a comma
        if !memory::secure(FOR_A_BYTE * value.count_bytes()) {
            self.say("no memory for the patterns of functions: none is measured");
            return Vec::new();
        }
        patterns::parse(&value.to_string_lossy())
    }

    /// As its user wrote it: who makes the report elsewhere is `topdown run`.
    pub fn spelled(self) -> &'static str {
        let by_option = MeasuredProcess::get().is_some_and(|process| process.output.is_raw());
        if by_option { self.option } else { self.variable }
    }

    /// Says this of it.
    pub fn say(self, what: &str) {
        say::say(&format!("{}: {what}", self.spelled()));
    }
}

const SHADOW_STACK: &str = if cfg!(target_arch = "x86_64") {
    "this program runs with a shadow stack, so nothing is hooked: turn it off (GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)"
} else {
    "this program runs with a guarded control stack, so nothing is hooked: turn it off (GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=0)"
};

/// Hooks what TOPDOWN_REGIONS says; to be called once, before the program begins.
pub fn start() {
    let patterns = REGIONS.parse();
    if patterns.is_empty() || !crate::process::active() {
        return;
    }
    if !prepare(REGIONS) {
        return;
    }
    *HOOKS.lock().unwrap_or_else(|e| e.into_inner()) = Some(Hooks::new(patterns));
    stubs::STARTED.store(true, Release);
    rescan();
}

/// Prepares the way in and out; whether there can be one. If not, says why.
fn prepare(list: PatternList) -> bool {
    if trampoline::has_shadow_stack() {
        list.say(SHADOW_STACK);
        return false;
    }
    if PROCESS.swap(process::id(), Relaxed) == 0 {
        trampoline::prepare();
        entries::prepare();
    }
    true
}

/// Says what came to nothing; to be called when the program ends. What is hooked goes by without a system call from then on.
pub fn finish() {
    let (started, may_complain) = (stubs::STARTED.swap(false, AcqRel), patches::may_complain());
    if !(started || may_complain) || PROCESS.load(Relaxed) != process::id() {
        return;
    }
    if may_complain {
        patches::complain();
    }
    if let Ok(hooks) = HOOKS.try_lock() {
        // (there may be any number of names in it)
        if !hooks.as_ref().is_some_and(Hooks::has_complaints) {
            return;
        }
        let _ = apart::run(|| {
            hooks.iter().flat_map(Hooks::complaints).for_each(|line| REGIONS.say(&line));
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
