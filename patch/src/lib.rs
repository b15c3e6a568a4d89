//! Functions of an x86-64 program whose first instructions can be replaced by a jump, and a copy of these instructions that can be
//! executed elsewhere: `frames` has where functions begin and what unwinders know of them, `code` what is in them, `jumps` what leads
//! to them, and `moved` the copies.
//!
//! A function is refused unless all of this holds, by its code and its unwind information (.eh_frame):
//!
//! 1. It is entered as a function of the ABI: a return address is on top of the stack, wherever it is jumped to from, too;
//!    callee-saved registers are used only where they are saved, the stack pointer among them; and it does not look at its return
//!    address, which will be another.
//! 2. All of its bytes are instructions. Those that are replaced can be executed elsewhere.
//! 3. Nothing leads to the middle of them: no direct jump or call of the whole object, no symbol, and no address in data or
//!    code; and no indirect jump of the function, for where it jumps the stack is another than there. (Landing pads of
//!    exceptions begin where nothing falls through.)
//! 4. No loop of its own begins with the first of them, by direct jumps or by a table: each iteration would be an execution.

mod code;
mod frames;
mod jumps;
mod moved;

pub use moved::Moved;

use code::Candidate;
use frames::Frames;
use object::read::elf::ElfFile64;
use object::{Architecture, LittleEndian, Object as _, ObjectKind, ObjectSegment as _, ObjectSymbol as _};
use object::{SegmentFlags, SymbolKind, elf};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a jump to anywhere within 2 GiB.
pub const JUMP: usize = 5;

/// A function that can be patched.
#[derive(Debug)]
pub struct Entry {
    /// Its symbol's name.
    pub name: String,
    /// Where the function begins, relative to the object's base.
    pub function: u64,
    /// Where the bytes are that are replaced, relative to the object's base.
    pub address: u64,
    /// These bytes.
    pub replaced: Vec<u8>,
    /// What is executed in their place.
    pub moved: Moved,
}

/// Why a function is not patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// There is no unwind information of it.
    NoFrame,
    /// It is not entered as a function is.
    NotCalled,
    /// It is shorter than a jump.
    Short,
    /// Not all of it are instructions.
    NotCode,
    /// One of its first instructions cannot be executed elsewhere.
    Fixed,
    /// Jumps lead into its first instructions, or an indirect one may.
    JumpedInto,
    /// A loop begins with its first instruction.
    Loop,
    /// It changes callee-saved registers without saving them, or takes arguments in them.
    Registers,
    /// It looks at its return address, as unwinders do.
    ReturnAddress,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoFrame => "without unwind information",
            Refusal::NotCalled => "not entered by calls",
            Refusal::Short => "shorter than a jump",
            Refusal::NotCode => "with bytes that are no instructions",
            Refusal::Fixed => "whose first instructions cannot be moved",
            Refusal::JumpedInto => "into whose first instructions jumps may lead",
            Refusal::Loop => "that begin with a loop",
            Refusal::Registers => "that use registers otherwise than the ABI says",
            Refusal::ReturnAddress => "that look at their return addresses",
        })
    }
}

/// Why nothing of an object is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no ELF file for x86-64.
    NotX86,
    /// Its code can be written to.
    Writable,
    /// It has no symbols of functions, nor dynamic ones.
    NoSymbols,
    /// Its functions call one another as this language does, not as the ABI says.
    Language(&'static str),
    /// Its stacks grow in pieces, and are as small as its functions need them (-fsplit-stack).
    SplitStack,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unfit::NotX86 => f.write_str("it is no ELF file for x86-64"),
            Unfit::Writable => f.write_str("its code can be written to"),
            Unfit::NoSymbols => f.write_str("it has no symbols"),
            Unfit::Language(language) => write!(f, "functions of {language} are not called as the ABI says"),
            Unfit::SplitStack => f.write_str("its stacks have no room for more (-fsplit-stack)"),
        }
    }
}

/// Functions that are wanted.
#[derive(Debug, Default)]
pub struct Plan {
    /// Those that can be patched, by address.
    pub entries: Vec<Entry>,
    /// The others, by address.
    pub refused: Vec<(String, Refusal)>,
}

/// Symbols and sections that tell of languages whose functions are called otherwise.
const LANGUAGES: [(&str, &str); 3] =
    [("caml_program", "OCaml"), ("stg_upd_frame_info", "Haskell"), ("runtime.morestack", "Go")];

/// Which of the functions whose names are wanted can be patched, in the object that this file (ELF) is of.
///
/// # Errors
/// Why none of the object's can.
pub fn plan(file: &[u8], mut wanted: impl FnMut(&str) -> bool) -> Result<Plan, Unfit> {
    let file = ElfFile64::<LittleEndian>::parse(file).map_err(|_| Unfit::NotX86)?;
    if file.architecture() != Architecture::X86_64 {
        return Err(Unfit::NotX86);
    }
    if file.section_by_name(".gopclntab").is_some() {
        return Err(Unfit::Language("Go"));
    }
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    let mut any = false;
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if let Some((_, language)) = LANGUAGES.iter().find(|(symbol, _)| *symbol == name) {
            return Err(Unfit::Language(language));
        }
        if name == "__morestack" {
            return Err(Unfit::SplitStack);
        }
        // (what is chosen at run time is of another kind)
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() || symbol.address() == 0 {
            continue;
        }
        any = true;
        // (a part of a function, which compilers put elsewhere, is no other one)
        if !name.contains(".cold") && wanted(name) {
            names.entry(symbol.address()).or_insert(name);
        }
    }
    if !any {
        return Err(Unfit::NoSymbols);
    }
    let mut plan = Plan::default();
    if names.is_empty() {
        return Ok(plan);
    }
    let code = Code::of(&file).ok_or(Unfit::Writable)?;
    let frames = Frames::of(&file);
    let mut candidates = Vec::new();
    for (&address, &name) in &names {
        match Candidate::of(address, &code, &frames) {
            Ok(candidate) => candidates.push((name, candidate)),
            Err(why) => plan.refused.push((name.into(), why)),
        }
    }
    let mut fit: Vec<&mut Candidate> = candidates.iter_mut().map(|(_, candidate)| candidate).collect();
    jumps::find(&mut fit, &file, &code, &frames);
    for (name, candidate) in candidates {
        match candidate.into_entry(name) {
            Ok(entry) => plan.entries.push(entry),
            Err(why) => plan.refused.push((name.into(), why)),
        }
    }
    Ok(plan)
}

/// What of the file is in memory, by addresses.
struct Code<'a> {
    /// The bytes that are executed.
    executed: Vec<(u64, &'a [u8])>,
    all: Vec<(u64, &'a [u8])>,
    /// It is always at the same addresses, so these are in its code and data as they are.
    fixed: bool,
}

impl<'a> Code<'a> {
    /// The file's; None: some of it can be written to.
    fn of(file: &ElfFile64<'a, LittleEndian>) -> Option<Code<'a>> {
        let fixed = file.kind() == ObjectKind::Executable;
        let mut code = Code { executed: Vec::new(), all: Vec::new(), fixed };
        for segment in file.segments() {
            let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { continue };
            let bytes = segment.data().ok().map(|data| (segment.address(), data));
            code.all.extend(bytes);
            if p_flags.0 & elf::PF_X.0 != 0 {
                if p_flags.0 & elf::PF_W.0 != 0 {
                    return None;
                }
                code.executed.extend(bytes);
            }
        }
        Some(code)
    }

    /// The bytes that are executed from this address to that.
    fn bytes(&self, from: u64, to: u64) -> Option<&'a [u8]> {
        self.executed.iter().find_map(|(start, bytes)| {
            let first = usize::try_from(from.checked_sub(*start)?).ok()?;
            bytes.get(first..usize::try_from(to.checked_sub(*start)?).ok()?)
        })
    }

    /// What is executed from this address on; empty: nothing.
    fn from(&self, address: u64) -> &'a [u8] {
        from(&self.executed, address)
    }

    /// What is in memory from this address on, as the file has it.
    fn data_from(&self, address: u64) -> &'a [u8] {
        from(&self.all, address)
    }
}

fn from<'a>(parts: &[(u64, &'a [u8])], address: u64) -> &'a [u8] {
    let in_part = |(start, bytes): &(u64, &'a [u8])| {
        let first = usize::try_from(address.checked_sub(*start)?).ok()?;
        bytes.get(first..).filter(|rest| !rest.is_empty())
    };
    parts.iter().find_map(in_part).unwrap_or_default()
}
