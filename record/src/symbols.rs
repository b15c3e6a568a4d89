//! Functions at addresses, those that were inlined there as well, and lines: from DWARF (also split) and ELF symbols of the program, its libraries or their
//! separate debug files, from the maps and dumps that JIT compilers write for perf, and the kernel's from /proc/kallsyms. Each address is looked up once, and each file is open
//! while its addresses are.
#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod jit;
mod kallsyms;
mod names;
pub(crate) use names::printable;
mod separate;
mod split;

use crate::processes::PROCESS;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use kallsyms::KernelSymbols;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Whose code an address is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol {
    pub name: String,
    /// The file's name without its directories; "" for none.
    pub module: String,
    /// The file.
    pub path: String,
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file's path, as the compiler knew it.
    pub file: String,
    /// Its number, from 1 on.
    pub line: u32,
}

/// A function at a place, and the line in it: of a function into which others were inlined, that of the call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Located<Function> {
    pub function: Function,
    /// Others are inlined somewhere in it, as far as DWARF tells. (Of a function that is itself inlined it is not told)
    pub has_inlined: bool,
    pub line: Option<SourceLine>,
}

impl<Function> Located<Function> {
    /// A function of which no line is known.
    fn without_line(function: Function) -> Located<Function> {
        Located { function, line: None, has_inlined: false }
    }
}

/// Where files are that tell of other files' code.
#[derive(Clone, Debug)]
pub(crate) struct LookIn {
    /// Separate debug files.
    pub debug: PathBuf,
    /// Maps of JIT compilers.
    pub jit: PathBuf,
    /// The kernel's symbols.
    pub kernel: PathBuf,
}

impl Default for LookIn {
    fn default() -> LookIn {
        LookIn { debug: "/usr/lib/debug".into(), jit: "/tmp".into(), kernel: "/proc/kallsyms".into() }
    }
}

/// What is known of all places in which something was seen.
pub(crate) struct Symbols {
    all: HashMap<CodePlace, Vec<Located<Symbol>>>,
    /// Some are the kernel's, which shows its symbols' addresses to nobody like this user.
    pub kernel_is_hidden: bool,
    /// Sentences on files that are missing or not read, or not all of them, and why.
    pub notes: Vec<String>,
}

impl Symbols {
    /// Looks these places up.
    pub fn look_up(
        places: impl IntoIterator<Item = CodePlace>,
        modules: &[Module],
        look_in: &LookIn,
    ) -> Symbols {
        let mut of_modules: BTreeMap<Option<u32>, BTreeSet<u64>> = BTreeMap::new();
        for CodePlace { module, address } in places {
            of_modules.entry(module).or_default().insert(address);
        }
        let (mut all, mut kernel_is_hidden, mut notes) = (HashMap::new(), false, Vec::new());
        for (module, addresses) in of_modules {
            let of = module.map(|module| &modules[module as usize]);
            if of == Some(&Module::Kernel) {
                let kernel = KernelSymbols::read(&look_in.kernel);
                kernel_is_hidden = kernel.are_hidden();
                let located = |address| (CodePlace { module, address }, of_kernel(&kernel, address));
                all.extend(addresses.into_iter().map(located));
                continue;
            }
            let (name, path, found) = of_module(of, modules, &addresses, look_in, &mut notes);
            let symbol = |Located { function, has_inlined, line }| {
                let symbol = Symbol { name: function, module: name.clone(), path: path.clone() };
                Located { function: symbol, has_inlined, line }
            };
            for (address, functions) in addresses.into_iter().zip(found) {
                all.insert(CodePlace { module, address }, functions.into_iter().map(symbol).collect());
            }
        }
        Symbols { all, kernel_is_hidden, notes }
    }

    /// The functions at a place that was looked up, the innermost inlined one first.
    pub fn at(&self, place: CodePlace) -> &[Located<Symbol>] {
        &self.all[&place]
    }
}

/// What is known of an address of the kernel.
fn of_kernel(kernel: &KernelSymbols, address: u64) -> Vec<Located<Symbol>> {
    const KERNEL: &str = "[kernel]";
    let symbol = match kernel.at(address) {
        Some((name, module)) => Symbol {
            name: names::printable(name),
            module: names::printable(module.unwrap_or(KERNEL)),
            path: String::new(),
        },
        None => Symbol { name: KERNEL.into(), module: String::new(), path: String::new() },
    };
    vec![Located::without_line(symbol)]
}

/// A module's name and path, and what is known of each of its addresses.
fn of_module(
    module: Option<&Module>,
    modules: &[Module],
    addresses: &BTreeSet<u64>,
    look_in: &LookIn,
    notes: &mut Vec<String>,
) -> (String, String, Vec<Vec<Located<String>>>) {
    let nothing = || vec![Vec::new(); addresses.len()];
    let (name, path, mut found) = match module {
        Some(Module::File(path)) => {
            let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
            let found = elf::located(Path::new(path), addresses, &look_in.debug, notes);
            (names::printable(&name), path.clone(), found.unwrap_or_else(nothing))
        }
        Some(Module::Anonymous { pid, user }) => {
            let files = modules.iter().filter_map(|module| match module {
                Module::File(path) => Some(&**path),
                _ => None,
            });
            let map = jit::JitMap::of(&look_in.jit, files, *pid, *user);
            let missing = |why| format!("Names of code that a JIT compiler made are missing: {why}.");
            notes.extend(map.refused.iter().map(missing));
            let at = |address: &u64| {
                map.at(*address).into_iter().map(|name| Located::without_line(name.to_string())).collect()
            };
            ("[jit]".into(), String::new(), addresses.iter().map(at).collect())
        }
        Some(Module::Vdso) => ("[vdso]".into(), String::new(), nothing()),
        Some(Module::Process(name)) => {
            let process = vec![Located::without_line(names::printable(name))];
            (PROCESS.into(), String::new(), vec![process; addresses.len()])
        }
        Some(Module::Kernel) | None => (String::new(), String::new(), nothing()),
    };
    let unknown = if name.is_empty() { "[unknown]".into() } else { format!("[unknown in {name}]") };
    for functions in &mut found {
        match functions.last_mut() {
            None => functions.push(Located::without_line(unknown.clone())),
            Some(outermost) if outermost.function.is_empty() => outermost.function.clone_from(&unknown),
            Some(_) => (),
        }
    }
    (name, path, found)
}

#[cfg(test)]
pub(crate) mod tests;
