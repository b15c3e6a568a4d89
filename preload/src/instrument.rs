//! Programs built with -finstrument-functions: the compiler calls these two at the beginning and end of every
//! function, and TOPDOWN_FUNCTIONS says which are regions; by default none.
//!
//! What was decided of a function is in a table that is read without a lock: one that is not wanted costs a probe.
//! Names are read from the files of all that is loaded before the program begins, so that the decision allocates
//! nothing (it may be malloc that is looked at), but for libraries that come later.

use crate::at_work::WorkGuard;
use crate::hooks::FUNCTIONS;
use crate::hooks::elf::{self, Object};
use crate::hooks::patterns::Pattern;
use crate::{memory, regions};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};
use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::fs::File;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use std::sync::{Mutex, OnceLock};
use topdown_seam::cancelled_later;

/// Twice as many as functions are distinguished.
const PLACES: usize = 1 << 17;
/// How many places are looked at before a function is taken for unwanted.
const PROBES: usize = 16;

/// What was decided of a function.
struct Decision {
    function: AtomicUsize,
    /// The function's name, if the function is wanted; `UNWANTED`; null: not decided yet.
    name: AtomicPtr<c_char>,
}

static TABLE: [Decision; PLACES] =
    [const { Decision { function: AtomicUsize::new(0), name: AtomicPtr::new(ptr::null_mut()) } }; PLACES];
static UNWANTED: u8 = 0;
/// Whether any function is wanted.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static NAMES: OnceLock<WantedNames> = OnceLock::new();
/// Names of functions in what was loaded later.
static LATER: Mutex<Vec<ObjectFunctions>> = Mutex::new(Vec::new());

thread_local! {
    /// This thread decides, so what is called meanwhile is its own work.
    static DECIDES: Cell<bool> = const { Cell::new(false) };
}

/// What is wanted, and the functions of that kind in all that was loaded when the program began.
struct WantedNames {
    patterns: Mutex<Vec<Pattern>>,
    objects: Vec<ObjectFunctions>,
}

/// Functions of an object that are wanted, by their addresses.
pub struct ObjectFunctions {
    object: Object,
    functions: Vec<(usize, CString)>,
}

/// The functions in these objects that are wanted.
pub fn find(objects: Vec<Object>, patterns: &mut [Pattern]) -> Vec<ObjectFunctions> {
    objects.into_iter().map(|object| ObjectFunctions::of(object, patterns)).collect()
}

/// Has them measured; to be called once, before the program begins.
pub fn start(patterns: Vec<Pattern>, objects: Vec<ObjectFunctions>) {
    if NAMES.set(WantedNames { patterns: Mutex::new(patterns), objects }).is_ok() {
        ACTIVE.store(true, Release);
    }
}

/// Nothing is measured or decided any more.
pub fn stop() {
    ACTIVE.store(false, Release);
}

impl WantedNames {
    /// The function's name, if it is wanted; it stays, as the region may be called by it. Nothing, if that cannot be
    /// said now.
    fn wanted(&self, function: usize) -> Option<Option<*const c_char>> {
        if let Some(functions) = self.objects.iter().find(|f| f.object.has_code_at(function)) {
            return Some(functions.name(function));
        }
        // whoever has it may have been another thread of the process that this one was forked from
        let mut later = LATER.try_lock().ok()?;
        if !later.iter().any(|f| f.object.has_code_at(function)) {
            let object = elf::loaded()?.into_iter().find(|object| object.has_code_at(function))?;
            later.push(ObjectFunctions::of(object, &mut self.patterns.try_lock().ok()?));
        }
        later.iter().find(|f| f.object.has_code_at(function)).map(|functions| functions.name(function))
    }
}

impl ObjectFunctions {
    /// Reads the object's file; if that cannot be, nothing is wanted.
    fn of(object: Object, patterns: &mut [Pattern]) -> ObjectFunctions {
        let functions = ObjectFunctions::read(&object, patterns).unwrap_or_default();
        ObjectFunctions { object, functions }
    }

    fn read(object: &Object, patterns: &mut [Pattern]) -> Option<Vec<(usize, CString)>> {
        let names = object.names();
        let names = [names[0].as_c_str(), names[1].as_c_str()];
        let mut patterns: Vec<&mut Pattern> =
            patterns.iter_mut().filter(|p| p.wants_library(&names)).collect();
        let mut found = Vec::new();
        let file = File::open(object.file()).ok()?;
        // SAFETY: who writes into the file of a running program ends the program, too.
        let bytes = unsafe { memmap2::Mmap::map(&file) }.ok()?;
        let file = ElfFile64::<LittleEndian>::parse(&*bytes).ok()?;
        // a function that is wanted has a name and a place in the list, which is sorted
        const FUNCTION: usize = 160;
        let symbols = || file.symbols().chain(file.dynamic_symbols());
        let names: usize = symbols().map(|symbol| symbol.name_bytes().map_or(0, <[u8]>::len)).sum();
        if !memory::secure(2 * names + symbols().count() * FUNCTION) {
            FUNCTIONS.say("no memory to look for them in all that is loaded");
            return None;
        }
        for symbol in symbols() {
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
                continue;
            }
            let Ok(name) = symbol.name_bytes().map(CString::new) else { continue };
            let Ok(name) = name else { continue };
            let mut meant = false;
            for pattern in patterns.iter_mut().filter(|pattern| pattern.wants_function(&name)) {
                pattern.found += 1;
                meant = true;
            }
            if meant {
                found.push((object.base + symbol.address() as usize, name));
            }
        }
        found.sort();
        found.dedup_by_key(|(address, _)| *address);
        Some(found)
    }

    fn name(&self, function: usize) -> Option<*const c_char> {
        let at = self.functions.binary_search_by_key(&function, |(address, _)| *address).ok()?;
        Some(self.functions[at].1.as_ptr())
    }
}

/// The name of the function if it is wanted.
#[inline(always)]
fn wanted(function: usize) -> Option<*const c_char> {
    if !ACTIVE.load(Acquire) {
        return None;
    }
    let place = &TABLE[hash(function)];
    if place.function.load(Acquire) == function {
        let name = place.name.load(Acquire);
        if name.cast_const().cast() == &raw const UNWANTED {
            return None;
        }
        if !name.is_null() {
            return Some(name);
        }
    }
    probe_further(function)
}

fn hash(function: usize) -> usize {
    // the upper bits of the product are those that all of the address's have a part in
    function.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - PLACES.trailing_zeros())
}

#[cold]
#[inline(never)]
fn probe_further(function: usize) -> Option<*const c_char> {
    for probe in 0..PROBES {
        let place = &TABLE[(hash(function) + probe) % PLACES];
        let mut key = place.function.load(Acquire);
        if key == 0 {
            key = match place.function.compare_exchange(0, function, AcqRel, Acquire) {
                Ok(_) => function,
                Err(other) => other,
            };
        }
        if key == function {
            let mut name = place.name.load(Acquire);
            if name.is_null() {
                // SAFETY: an address, at which it does not look.
                name = unsafe { decide(function) };
                if name.is_null() {
                    return None;
                }
                place.name.store(name, Release);
            }
            return (name.cast_const().cast() != &raw const UNWANTED).then_some(name.cast_const());
        }
    }
    None
}

cancelled_later! {
/// The function's name or `UNWANTED`; NULL if that cannot be said now.
unsafe extern "C" fn decide(function: usize) -> *mut c_char {
    let _alone = WorkGuard::new(); // (who left by siglongjmp would leave names locked)
    if DECIDES.replace(true) {
        return ptr::null_mut();
    }
    let name = NAMES.get().and_then(|names| names.wanted(function));
    DECIDES.set(false);
    name.map_or(ptr::null_mut(), |name| name.unwrap_or((&raw const UNWANTED).cast()).cast_mut())
}
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __cyg_profile_func_enter(function: *const c_void, _caller: *const c_void) {
    if let Some(name) = wanted(function as usize) {
        // SAFETY: a name of NAMES.
        unsafe { regions::begin::<false>(name) };
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __cyg_profile_func_exit(function: *const c_void, _caller: *const c_void) {
    if let Some(name) = wanted(function as usize) {
        // SAFETY: a name of NAMES.
        unsafe { regions::end(name) };
    }
}
