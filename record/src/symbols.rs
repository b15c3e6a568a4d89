//! Functions at addresses, those that were inlined there as well, and lines: from DWARF and ELF symbols of the program, its libraries or their
//! separate debug files, from the maps and dumps that JIT compilers write for perf, and the kernel's from /proc/kallsyms. Each address is looked up once, and each file is open
//! while its addresses are.
#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod jit;
mod kallsyms;
mod names;
mod separate;

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
pub(crate) struct SourceLine {
    /// The file's path, as the compiler knew it.
    pub file: String,
    pub line: u32,
}

/// What is known of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located<Function> {
    /// The innermost inlined one first.
    pub functions: Vec<Function>,
    /// Others are inlined somewhere in the outermost, as far as DWARF tells.
    pub has_inlined: bool,
    /// In the innermost one.
    pub line: Option<SourceLine>,
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
    all: HashMap<CodePlace, Located<Symbol>>,
    /// Some are the kernel's, which shows its symbols' addresses to nobody like this user.
    pub kernel_is_hidden: bool,
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
        let (mut all, mut kernel_is_hidden) = (HashMap::new(), false);
        for (module, addresses) in of_modules {
            let of = module.map(|module| &modules[module as usize]);
            if of == Some(&Module::Kernel) {
                let kernel = KernelSymbols::read(&look_in.kernel);
                kernel_is_hidden = kernel.are_hidden();
                let located = |address| (CodePlace { module, address }, of_kernel(&kernel, address));
                all.extend(addresses.into_iter().map(located));
                continue;
            }
            let (name, path, found) = of_module(of, modules, &addresses, look_in);
            let symbol =
                |function: String| Symbol { name: function, module: name.clone(), path: path.clone() };
            for (address, Located { functions, has_inlined, line }) in addresses.into_iter().zip(found) {
                let functions = functions.into_iter().map(symbol).collect();
                all.insert(CodePlace { module, address }, Located { functions, has_inlined, line });
            }
        }
        Symbols { all, kernel_is_hidden }
    }

    /// A place that was looked up.
    pub fn at(&self, place: CodePlace) -> &Located<Symbol> {
        &self.all[&place]
    }
}

/// What is known of an address of the kernel.
fn of_kernel(kernel: &KernelSymbols, address: u64) -> Located<Symbol> {
    const KERNEL: &str = "[kernel]";
    let symbol = match kernel.at(address) {
        Some((name, module)) => Symbol {
            name: names::printable(name),
            module: names::printable(module.unwrap_or(KERNEL)),
            path: String::new(),
        },
        None => Symbol { name: KERNEL.into(), module: String::new(), path: String::new() },
    };
    Located { functions: vec![symbol], has_inlined: false, line: None }
}

/// A module's name and path, and what is known of each of its addresses.
fn of_module(
    module: Option<&Module>,
    modules: &[Module],
    addresses: &BTreeSet<u64>,
    look_in: &LookIn,
) -> (String, String, Vec<Located<String>>) {
    let nothing = || vec![Located::default(); addresses.len()];
    let (name, path, mut found) = match module {
        Some(Module::File(path)) => {
            let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
            let found = elf::located(Path::new(path), addresses, &look_in.debug);
            (names::printable(&name), path.clone(), found.unwrap_or_else(nothing))
        }
        Some(Module::Anonymous { pid, user }) => {
            let files = modules.iter().filter_map(|module| match module {
                Module::File(path) => Some(&**path),
                _ => None,
            });
            let map = jit::JitMap::of(&look_in.jit, files, *pid, *user);
            let at = |address: &u64| Located {
                functions: map.at(*address).into_iter().map(str::to_string).collect(),
                has_inlined: false, // (a map does not tell)
                line: None,
            };
            ("[jit]".into(), String::new(), addresses.iter().map(at).collect())
        }
        Some(Module::Vdso) => ("[vdso]".into(), String::new(), nothing()),
        Some(Module::Kernel) | None => (String::new(), String::new(), nothing()),
    };
    let unknown = if name.is_empty() { "[unknown]".into() } else { format!("[unknown in {name}]") };
    for located in found.iter_mut().filter(|located| located.functions.is_empty()) {
        located.functions.push(unknown.clone());
    }
    (name, path, found)
}

#[cfg(test)]
pub(crate) mod tests;
