//! Functions at addresses, those that were inlined there as well, and lines: from DWARF (also split) and ELF symbols of the program, its libraries or their
//! separate debug files, from what JIT compilers have told of the code that they made, and the kernel's from /proc/kallsyms. Each address is looked up once, and each file is open
//! while its addresses are.
#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod jit;
pub(crate) use jit::Jit;
mod kallsyms;
mod names;
pub(crate) use names::printable;
mod separate;
mod split;

use crate::elf_file::regular;
use crate::file_proof::{FileProof, why_not};
use crate::processes::PROCESS;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use kallsyms::KernelSymbols;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whose code an address is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol {
    pub name: String,
    /// Its module has no name for it, and `name` says so.
    pub is_unnamed: bool,
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
pub(crate) struct FunctionLine<Function> {
    pub function: Function,
    /// Others are inlined somewhere in it, as far as DWARF tells. (Of a function that is itself inlined it is not told)
    pub has_inlined: bool,
    pub line: Option<SourceLine>,
}

impl<Function> FunctionLine<Function> {
    /// A function of which no line is known.
    fn without_line(function: Function) -> FunctionLine<Function> {
        FunctionLine { function, line: None, has_inlined: false }
    }
}

/// Where files are that tell of other files' code.
#[derive(Clone, Debug)]
pub(crate) struct LookIn {
    /// Separate debug files.
    pub debug: PathBuf,
    /// The kernel's symbols; None: another one was recorded.
    pub kernel: Option<PathBuf>,
    /// Modules' files that are open since they were mapped.
    pub files: Arc<HashMap<u32, File>>,
    /// Names of code of no file.
    pub made: Arc<BTreeMap<CodePlace, String>>,
}

impl LookIn {
    /// With these open files, and names of code of no file.
    pub fn with(files: &Arc<HashMap<u32, File>>, made: &Arc<BTreeMap<CodePlace, String>>) -> LookIn {
        LookIn { files: files.clone(), made: made.clone(), ..LookIn::default() }
    }

    /// The file that ran.
    fn file(&self, module: Option<u32>, path: &str, proof: &FileProof) -> Option<File> {
        let open = module.and_then(|module| self.files.get(&module)?.try_clone().ok());
        let at_path = || regular(Path::new(path)).filter(|file| proof.is_of(file));
        open.filter(|file| proof.is_of(file)).or_else(at_path)
    }
}

impl Default for LookIn {
    fn default() -> LookIn {
        LookIn {
            debug: "/usr/lib/debug".into(),
            kernel: Some("/proc/kallsyms".into()),
            files: Arc::default(),
            made: Arc::default(),
        }
    }
}

/// What is known of all places in which something was seen.
pub(crate) struct Symbols {
    all: HashMap<CodePlace, Vec<FunctionLine<Symbol>>>,
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
                let kernel = look_in.kernel.as_deref().map(KernelSymbols::read);
                kernel_is_hidden = kernel.as_ref().is_some_and(KernelSymbols::are_hidden);
                if kernel.is_none() {
                    notes.push(OTHER_KERNEL.into());
                }
                let located = |address| (CodePlace { module, address }, of_kernel(kernel.as_ref(), address));
                all.extend(addresses.into_iter().map(located));
                continue;
            }
            let (module_name, path, unknown, found) =
                of_module(module, modules, &addresses, look_in, &mut notes);
            let symbol = |FunctionLine { function, has_inlined, line }: FunctionLine<String>| {
                let is_unnamed = function.is_empty();
                let name = if is_unnamed { unknown.clone() } else { function };
                let symbol = Symbol { name, is_unnamed, module: module_name.clone(), path: path.clone() };
                FunctionLine { function: symbol, has_inlined, line }
            };
            for (address, functions) in addresses.into_iter().zip(found) {
                all.insert(CodePlace { module, address }, functions.into_iter().map(symbol).collect());
            }
        }
        Symbols { all, kernel_is_hidden, notes }
    }

    /// The functions at a place that was looked up, the innermost inlined one first.
    pub fn at(&self, place: CodePlace) -> &[FunctionLine<Symbol>] {
        &self.all[&place]
    }
}

const OTHER_KERNEL: &str = "The machine was started again, or is another one, since this was recorded, so the kernel's functions have no names.";

/// What is known of an address of the kernel.
fn of_kernel(kernel: Option<&KernelSymbols>, address: u64) -> Vec<FunctionLine<Symbol>> {
    const KERNEL: &str = "[kernel]";
    let symbol = match kernel.and_then(|kernel| kernel.at(address)) {
        Some((name, module)) => Symbol {
            name: names::printable(name),
            is_unnamed: false,
            module: names::printable(module.unwrap_or(KERNEL)),
            path: String::new(),
        },
        None => Symbol { name: KERNEL.into(), is_unnamed: false, module: String::new(), path: String::new() },
    };
    vec![FunctionLine::without_line(symbol)]
}

/// A module's name and path, how a function of no name is called in it, and the functions at each of its addresses; "": of no name.
fn of_module(
    number: Option<u32>,
    modules: &[Module],
    addresses: &BTreeSet<u64>,
    look_in: &LookIn,
    notes: &mut Vec<String>,
) -> (String, String, String, Vec<Vec<FunctionLine<String>>>) {
    let nothing = || vec![Vec::new(); addresses.len()];
    let mut why = "";
    let (name, path, mut found) = match number.map(|number| &modules[number as usize]) {
        Some(Module::File { path, proof }) => {
            let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
            let file = look_in.file(number, path, proof);
            if file.is_none() {
                why = why_not(proof, path);
                notes.push(names::printable(&format!("{path}: {why}, so its functions have no names.")));
            }
            let found =
                file.and_then(|file| elf::located(file, Path::new(path), addresses, &look_in.debug, notes));
            (names::printable(&name), path.clone(), found.unwrap_or_else(nothing))
        }
        Some(Module::Anonymous { memfd, .. }) => {
            let name = if memfd.is_empty() { "[jit]".into() } else { printable(&format!("[memfd:{memfd}]")) };
            let at = |address: &u64| {
                let name = look_in.made.get(&CodePlace { module: number, address: *address });
                name.map(|name| FunctionLine::without_line(names::printable(name))).into_iter().collect()
            };
            (name, String::new(), addresses.iter().map(at).collect())
        }
        Some(Module::Vdso) => ("[vdso]".into(), String::new(), nothing()),
        Some(Module::Process(name)) => {
            let process = vec![FunctionLine::without_line(names::printable(name))];
            (PROCESS.into(), String::new(), vec![process; addresses.len()])
        }
        Some(Module::Kernel) | None => (String::new(), String::new(), nothing()),
    };
    let unknown = match (&*name, why) {
        ("", _) => "[unknown]".into(),
        (name, "") => format!("[unknown in {name}]"),
        (name, why) => format!("[unknown in {name}: {why}]"),
    };
    for functions in found.iter_mut().filter(|functions| functions.is_empty()) {
        functions.push(FunctionLine::without_line(String::new()));
    }
    (name, path, unknown, found)
}

#[cfg(test)]
pub(crate) mod tests;
