//! Finds the functions that patterns mean, and has every place that calls them call their stubs.
//!
//! A call into another object goes through a slot of the caller's own data, which the dynamic linker filled in, or will
//! at the first call. Where a slot holds the address of a function that is meant, it gets the address of a stub.

use super::elf::{self, LinkerSlot, Object};
use super::loader::{self, HeldObject};
use super::patches;
use super::patterns::{self, Pattern};
use super::stubs::{self, STUBS};
use crate::memory;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};

/// What measures functions that are called within a program or library.
const INNER: &str = "--functions measures functions within a program or library (and marks in its source do, td_region_begin)";

/// What is hooked so far.
pub struct Hooks {
    patterns: Vec<Pattern>,
    functions: HashMap<CString, Vec<HookedFunction>>,
    /// Objects that were looked at.
    seen: Vec<Object>,
    stubs: Stubs,
    page: usize,
    /// How often there was no memory to look at what is loaded.
    unseen: usize,
}

/// Which stubs are taken.
#[derive(Default)]
struct Stubs {
    /// Stubs whose function is no longer loaded.
    spare: Vec<usize>,
    /// Calls of functions for which none was left.
    refused: usize,
}

/// A function that is meant; one name may have several (versions, libraries).
struct HookedFunction {
    address: usize,
    /// The number of its stub, once somebody calls it.
    stub: Option<usize>,
    object: usize,
    patterns: Vec<usize>,
}

impl Hooks {
    pub fn new(patterns: Vec<Pattern>) -> Self {
        // SAFETY: no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        Hooks {
            patterns,
            functions: HashMap::new(),
            seen: Vec::new(),
            stubs: Stubs::default(),
            page,
            unseen: 0,
        }
    }

    /// Looks at what was loaded since the last time.
    pub fn scan(&mut self) {
        // held, so that nobody unloads them, nor is still about to bind them
        let Some(objects) = elf::loaded() else {
            self.unseen += 1;
            return;
        };
        let objects: Vec<(Object, HeldObject)> = objects
            .into_iter()
            .filter(|object| !object.has_code_at(stubs::stub(0)))
            .filter_map(|object| loader::hold(&object).map(|held| (object, held)))
            .collect();
        self.forget_unloaded(&objects);
        let new: Vec<&(Object, HeldObject)> =
            objects.iter().filter(|(object, _)| !self.seen.contains(object)).collect();
        for (object, held) in &new {
            self.find(object, held);
        }
        for (object, held) in &new {
            self.bind(object, held);
        }
        self.seen = objects.into_iter().map(|(object, _)| object).collect();
    }

    /// The stub of the function of this name and address.
    pub fn stub_of(&mut self, name: &CStr, address: usize) -> Option<usize> {
        let function = self.functions.get_mut(name)?.iter_mut().find(|f| f.address == address)?;
        if function.stub.is_none() && !memory::secure(2 * name.count_bytes()) {
            return None;
        }
        let stub = self.stubs.of(function, name)?;
        for &pattern in &function.patterns {
            self.patterns[pattern].hooked += 1;
        }
        Some(stub)
    }

    /// Whether there is something that the user should know in the end.
    pub fn has_complaints(&self) -> bool {
        let pattern = |pattern: &Pattern| pattern.found == 0 || pattern.hooked == 0;
        self.unseen > 0 || self.stubs.refused > 0 || self.patterns.iter().any(pattern)
    }

    /// What the user should know in the end: a line for each pattern that came to nothing.
    pub fn complaints(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for pattern in &self.patterns {
            let text = pattern.text();
            if pattern.found == 0 && pattern.refused.is_empty() {
                lines.push(format!(
                    "'{text}' matches no function that a loaded library offers to others; {INNER}"
                ));
            } else if pattern.found == 0 {
                let names: Vec<_> = pattern.refused.iter().map(String::as_str).collect();
                lines.push(format!(
                    "'{text}': cannot be hooked (docs/preload-regions.md says why): {}",
                    names.join(", ")
                ));
            } else if pattern.hooked == 0 {
                lines.push(format!("'{text}': no call of it goes through the dynamic linker; {INNER}"));
            }
        }
        if self.unseen > 0 {
            lines.push("no memory to look for functions in all that is loaded".into());
        }
        if self.stubs.refused > 0 {
            let (refused, most) = (self.stubs.refused, STUBS);
            lines.push(format!(
                "{refused} calls of other functions not hooked; {most} functions can be: name fewer"
            ));
        }
        lines
    }

    fn forget_unloaded(&mut self, objects: &[(Object, HeldObject)]) {
        let loaded = |object: &Object| objects.iter().any(|(other, _)| other == object);
        let gone: Vec<usize> = self.seen.iter().filter(|o| !loaded(o)).map(|o| o.base).collect();
        for functions in self.functions.values_mut() {
            let (unloaded, kept) = functions.drain(..).partition(|f| gone.contains(&f.object));
            *functions = kept;
            let unloaded: Vec<HookedFunction> = unloaded;
            self.stubs.spare.extend(unloaded.iter().filter_map(|f| f.stub));
        }
        self.functions.retain(|_, functions| !functions.is_empty());
    }

    /// The functions of an object that are meant.
    fn find(&mut self, object: &Object, held: &HeldObject) {
        let names = object.names();
        let names = [names[0].as_c_str(), names[1].as_c_str()];
        let of_library: Vec<usize> =
            (0..self.patterns.len()).filter(|&i| self.patterns[i].wants_library(&names)).collect();
        if of_library.is_empty() {
            return;
        }
        // a function that is meant has a name, a place in the table, and a list of patterns
        const FUNCTION: usize = 512;
        let (names, symbols) = object.size_of_names();
        if !memory::secure(2 * names + symbols * (FUNCTION + size_of::<usize>() * of_library.len())) {
            self.unseen += 1;
            return;
        }
        object.functions(|function| {
            let meant: Vec<usize> = of_library
                .iter()
                .copied()
                .filter(|&i| self.patterns[i].wants_function(function.name))
                .collect();
            if meant.is_empty() {
                return;
            }
            if patterns::refused(function.name) || function.all_registers {
                let name = function.name.to_string_lossy().into_owned();
                for i in meant {
                    self.patterns[i].refused.insert(name.clone());
                }
                return;
            }
            let address = match function.indirect {
                // the linker asks the function that chooses, and has reasons when it does so
                true => held.lookup(function.name, function.version),
                false => function.address,
            };
            if patches::is_patched(address) {
                // (each call of it is measured, through the linker or not)
                for &i in &meant {
                    (self.patterns[i].found, self.patterns[i].hooked) = (1, 1);
                }
                return;
            }
            let known = self.functions.get(function.name);
            if address == 0 || known.is_some_and(|known| known.iter().any(|f| f.address == address)) {
                return;
            }
            for &i in &meant {
                self.patterns[i].found += 1;
            }
            let functions = self.functions.entry(function.name.to_owned()).or_default();
            functions.push(HookedFunction { address, stub: None, object: object.base, patterns: meant });
        });
    }

    /// Has the object call stubs.
    fn bind(&mut self, object: &Object, held: &HeldObject) {
        object.slots(|slot| {
            let Some(functions) = self.functions.get(slot.name) else { return };
            let address = bound_to(&slot, functions, object, held);
            let place = slot.place;
            if let Some(stub) = self.stub_of(slot.name, address) {
                self.write(object, place, stub);
            }
        });
    }

    /// Writes a slot, which the linker may have made read-only.
    fn write(&self, object: &Object, slot: *mut usize, value: usize) {
        let page = (slot as usize & !(self.page - 1)) as *mut c_void;
        let protect = object.is_read_only(slot, self.page);
        // SAFETY: a slot of a loaded object, aligned; its page is the linker's, and gets its protection back.
        unsafe {
            if protect && libc::mprotect(page, self.page, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return;
            }
            slot.write_volatile(value);
            if protect {
                libc::mprotect(page, self.page, libc::PROT_READ);
            }
        }
    }
}

impl Stubs {
    /// The function's stub.
    fn of(&mut self, function: &mut HookedFunction, name: &CStr) -> Option<usize> {
        if function.stub.is_none() {
            function.stub = self.spare.pop().or_else(stubs::take);
            let Some(stub) = function.stub else {
                self.refused += 1;
                return None;
            };
            stubs::set_hooked(stub, function.address, CString::from(name).into_raw());
        }
        function.stub.map(stubs::stub)
    }
}

/// What is called through the slot; if that is not decided yet, what the linker would decide.
fn bound_to(slot: &LinkerSlot, functions: &[HookedFunction], object: &Object, held: &HeldObject) -> usize {
    // SAFETY: a slot of a loaded object.
    let address = unsafe { slot.place.read_volatile() };
    // not bound yet: it leads back into the object's own code, which asks the linker
    if slot.call && object.has_code_at(address) && !functions.iter().any(|f| f.address == address) {
        return held.resolve(slot.name, slot.version);
    }
    address
}
