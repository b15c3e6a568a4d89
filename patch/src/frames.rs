//! What unwinders know of functions: where each begins and ends, where its caller's stack pointer is, and which registers
//! it has saved (.eh_frame).

use gimli::{BaseAddresses, CfaRule, EhFrame, Register, RegisterRule, UnwindContext, UnwindSection, X86_64};
use gimli::{CieOrFde, EndianSlice, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

pub struct Frames<'a> {
    section: EhFrame<Reader<'a>>,
    bases: BaseAddresses,
    /// By where they begin.
    functions: Vec<Function>,
}

/// A stretch of code with unwind information of its own, mostly a function.
#[derive(Clone, Copy)]
pub struct Function {
    pub start: u64,
    pub end: u64,
    /// Where in the section this is said.
    offset: usize,
}

/// From one instruction of a function to another its frame is the same.
pub struct Row {
    start: u64,
    end: u64,
    /// Where the caller's stack pointer is: a register, and so far above it; None: an expression says.
    caller_stack: Option<(Register, i64)>,
    /// Registers that are saved in memory.
    saved: Vec<Register>,
    /// The return address is just below the caller's stack pointer.
    return_address: bool,
}

/// A function's rows.
pub struct Frame(Vec<Row>);

impl<'a> Frames<'a> {
    pub fn of(file: &ElfFile64<'a, object::LittleEndian>) -> Frames<'a> {
        let section = file.section_by_name(".eh_frame");
        let data = section.as_ref().and_then(|section| section.data().ok()).unwrap_or_default();
        let bases = BaseAddresses::default().set_eh_frame(section.map_or(0, |section| section.address()));
        let section = EhFrame::new(data, LittleEndian);
        let mut functions = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
            let (start, length) = (fde.initial_address(), fde.len());
            if length > 0 {
                functions.push(Function { start, end: start.saturating_add(length), offset: fde.offset() });
            }
        }
        functions.sort_by_key(|function| function.start);
        Frames { section, bases, functions }
    }

    pub fn all(&self) -> &[Function] {
        &self.functions
    }

    /// The number of the function that begins here, if one alone does.
    pub fn at(&self, start: u64) -> Option<usize> {
        let at = self.functions.partition_point(|function| function.start < start);
        let begins = |at: usize| self.functions.get(at).is_some_and(|function| function.start == start);
        (begins(at) && !begins(at + 1)).then_some(at)
    }

    /// The number of the function that an address is in.
    pub fn around(&self, address: u64) -> Option<usize> {
        let at = self.functions.partition_point(|function| function.start <= address).checked_sub(1)?;
        (address < self.functions[at].end).then_some(at)
    }

    /// A function's frame; None: it is a signal handler's, or cannot be read.
    pub fn frame(&self, function: &Function) -> Option<Frame> {
        let offset = gimli::EhFrameOffset(function.offset);
        let fde = self.section.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
        if fde.is_signal_trampoline() {
            return None;
        }
        let mut context = UnwindContext::new();
        let mut table = fde.rows(&self.section, &self.bases, &mut context).ok()?;
        let mut rows = Vec::new();
        while let Some(row) = table.next_row().ok()? {
            let caller_stack = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => Some((*register, *offset)),
                CfaRule::Expression(_) => None,
            };
            let saved = |rule: &RegisterRule<usize>| {
                matches!(rule, RegisterRule::Offset(_) | RegisterRule::Expression(_))
            };
            let saved = row.registers().filter(|(_, rule)| saved(rule));
            let mut saved: Vec<Register> = saved.map(|(register, _)| *register).collect();
            saved.sort();
            rows.push(Row {
                start: row.start_address(),
                end: row.end_address(),
                caller_stack,
                saved,
                return_address: row.register(X86_64::RA) == RegisterRule::Offset(-8),
            });
        }
        Some(Frame(rows))
    }
}

impl Frame {
    /// Whether its first instruction finds the return address on top of the stack, as a call leaves it.
    pub fn begins_called(&self, start: u64) -> bool {
        self.row(start).is_some_and(|row| row.caller_stack == Some((X86_64::RSP, 8)) && row.return_address)
    }

    /// Whether the stack may be as large at one instruction as at another; `grows`: it grows behind the first.
    pub fn may_be_same(&self, one: u64, other: u64, grows: bool) -> bool {
        let (Some(one), Some(other)) = (self.row(one), self.row(other)) else { return true };
        let (Some(stack), Some(other_stack)) = (one.caller_stack, other.caller_stack) else { return true };
        // (relative to a frame pointer the caller's stack is the same however large the own one is)
        let tells = stack.0 != X86_64::RSP && (grows || one.saved != other.saved);
        stack == other_stack && !tells
    }

    /// Whether the register is saved somewhere.
    pub fn saves(&self, register: Register) -> bool {
        self.0.iter().any(|row| row.saved.contains(&register))
    }

    /// Where the caller's stack pointer is at this instruction: a register, and so far above it; None: not known.
    pub fn caller_stack(&self, address: u64) -> Option<(Register, i64)> {
        self.row(address)?.caller_stack
    }

    fn row(&self, address: u64) -> Option<&Row> {
        let at = self.0.partition_point(|row| row.start <= address).checked_sub(1)?;
        Some(&self.0[at]).filter(|row| address < row.end)
    }
}
