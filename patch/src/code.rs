//! What is in a function.

use crate::frames::{Frame, Frames, Function};
use crate::moved::Moved;
use crate::{Code, Entry, JUMP, Refusal};
use gimli::X86_64;
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

/// Callee-saved registers, but for rsp and rbp.
const KEPT: [(Register, gimli::Register); 5] = [
    (Register::RBX, X86_64::RBX),
    (Register::R12, X86_64::R12),
    (Register::R13, X86_64::R13),
    (Register::R14, X86_64::R14),
    (Register::R15, X86_64::R15),
];

/// A function that may be patched, as far as it says itself.
pub struct Candidate {
    /// Its number among those with frames.
    pub function: usize,
    pub entry: u64,
    /// The bytes that are replaced begin here: at the entry, or behind its endbr64.
    at: u64,
    pub end: u64,
    replaced: Vec<u8>,
    moved: Moved,
    /// Functions, by number, that it jumps to.
    pub leads_to: Vec<usize>,
    /// Those that jump to its first instruction.
    led_from: Vec<usize>,
    refusal: Option<Refusal>,
}

/// How something leads to a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    Call,
    /// By a jump of code that may be anything's.
    Jump,
    /// By a jump of a function, by number, whose stack is as behind a call.
    TailCall(usize),
    /// By a jump of a function, in the middle of its work.
    Inner(usize),
    /// An address or a symbol.
    Label,
}

pub fn decoder(bytes: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE)
}

/// Where an instruction may go to directly.
pub fn target(instruction: &Instruction) -> Option<u64> {
    (instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64)
        .then(|| instruction.near_branch64())
}

/// The address that an instruction has as an operand, not to go there but for what is done with it.
pub fn operand(instruction: &Instruction, code: &Code) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    const IMMEDIATES: [OpKind; 3] = [OpKind::Immediate32, OpKind::Immediate32to64, OpKind::Immediate64];
    if !code.fixed {
        return None;
    }
    let has_memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if has_memory && instruction.memory_base() == Register::None {
        return Some(instruction.memory_displacement64());
    }
    (0..instruction.op_count())
        .find(|&operand| IMMEDIATES.contains(&instruction.op_kind(operand)))
        .map(|operand| instruction.immediate(operand))
}

/// Whether an instruction of a function jumps to where a register or memory says: itself, or by way of code that compilers put
/// in such a jump's place (-mindirect-branch=thunk, -mretpoline), somewhere else or here.
pub fn is_indirect_jump(instruction: &Instruction, function: &Function, code: &Code) -> bool {
    match target(instruction) {
        None => instruction.flow_control() == FlowControl::IndirectBranch,
        Some(_) if instruction.flow_control() == FlowControl::Call => is_retpoline(instruction, code),
        Some(to) => !(function.start..function.end).contains(&to) && is_thunk(to, code),
    }
}

/// Whether the code here goes to where a register says.
fn is_thunk(at: u64, code: &Code) -> bool {
    const FENCES: [Mnemonic; 2] = [Mnemonic::Endbr64, Mnemonic::Lfence];
    let mut first = decoder(code.from(at), at).into_iter().take(FENCES.len() + 1);
    first.find(|instruction| !FENCES.contains(&instruction.mnemonic())).is_some_and(|instruction| {
        match instruction.flow_control() {
            FlowControl::IndirectBranch => instruction.op0_kind() == OpKind::Register,
            FlowControl::Call => is_retpoline(&instruction, code),
            _ => false,
        }
    })
}

/// Whether a call only has a return go elsewhere: nobody comes back to what follows it, where a CPU that thought so waits.
fn is_retpoline(call: &Instruction, code: &Code) -> bool {
    const NEAR: u64 = 32;
    let next = call.next_ip();
    let waits = || {
        let what =
            decoder(code.from(next), next).into_iter().next().map(|instruction| instruction.mnemonic());
        matches!(what, Some(Mnemonic::Pause | Mnemonic::Lfence))
    };
    target(call).is_some_and(|to| to > next && to - next < NEAR) && waits()
}

impl Candidate {
    pub fn of(entry: u64, code: &Code, frames: &Frames) -> Result<Candidate, Refusal> {
        let function = frames.at(entry).ok_or(Refusal::NoFrame)?;
        let range = &frames.all()[function];
        let frame = frames.frame(range).ok_or(Refusal::NoFrame)?;
        if !frame.begins_called(entry) {
            return Err(Refusal::NotCalled);
        }
        let bytes = code.bytes(entry, range.end).ok_or(Refusal::NoFrame)?;
        let instructions: Vec<Instruction> = decoder(bytes, entry).into_iter().collect();
        if instructions.iter().any(Instruction::is_invalid) {
            return Err(Refusal::NotCode);
        }
        let skipped = usize::from(instructions.first().is_some_and(|first| first.code() == Opcode::Endbr64));
        let at = instructions.get(skipped).ok_or(Refusal::Short)?.ip();
        let last = instructions.iter().find(|i| i.next_ip() >= at + JUMP as u64).ok_or(Refusal::Short)?;
        let end = last.next_ip();
        let first: Vec<Instruction> =
            instructions.iter().filter(|i| (at..end).contains(&i.ip())).copied().collect();
        let replaced = code.bytes(at, end).ok_or(Refusal::NoFrame)?.to_vec();
        let moved = Moved::of(&first, &replaced).ok_or(Refusal::Fixed)?;
        let indirect = |i: &&Instruction| is_indirect_jump(i, range, code);
        let jumps: Vec<u64> = instructions.iter().filter(indirect).map(Instruction::ip).collect();
        let may_begin_again =
            jumps.iter().any(|jump| frame.caller_stack(*jump).is_none_or(|stack| stack == CALLED));
        let own = |i: &Instruction| operand(i, code).is_some_and(|at| (entry..range.end).contains(&at));
        // (with the address of any of its instructions it can compute that of any other)
        let knows_itself = instructions.iter().any(own);
        if may_jump_into(&first, &jumps, &instructions, &frame, knows_itself)
            || knows_itself && may_begin_again
        {
            return Err(Refusal::JumpedInto);
        }
        if !keeps_registers(&instructions, &frame) || leaves_stack(&instructions, &frame) {
            return Err(Refusal::Registers);
        }
        if looks_back(&instructions, &frame) {
            return Err(Refusal::ReturnAddress);
        }
        Ok(Candidate {
            function,
            entry,
            at,
            end,
            replaced,
            moved,
            leads_to: Vec::new(),
            led_from: Vec::new(),
            refusal: None,
        })
    }

    pub fn into_entry(self, name: &str) -> Result<Entry, Refusal> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        // two pieces of code that jump to each other are one function, whose loop may begin here
        if self.led_from.iter().any(|from| self.leads_to.contains(from)) {
            return Err(Refusal::Loop);
        }
        Ok(Entry {
            name: name.into(),
            function: self.entry,
            address: self.at,
            replaced: self.replaced,
            moved: self.moved,
        })
    }

    /// Something leads here.
    pub fn led_to(&mut self, lead: Lead, target: u64) {
        if target != self.entry && target != self.at {
            self.refusal = Some(Refusal::JumpedInto);
            return;
        }
        let refusal = match lead {
            Lead::Call | Lead::Jump | Lead::Label => None,
            Lead::TailCall(from) | Lead::Inner(from) if from == self.function => Some(Refusal::Loop),
            Lead::TailCall(from) => {
                self.led_from.push(from);
                None
            }
            Lead::Inner(_) => Some(Refusal::NotCalled),
        };
        self.refusal = self.refusal.or(refusal);
    }
}

/// Where the caller's stack pointer is as a call leaves it.
pub const CALLED: (gimli::Register, i64) = (X86_64::RSP, 8);

/// Whether one of these indirect jumps of the function may lead to one of its first instructions other than the very first: the
/// stack may be the same there. (To the very first it is as a call.)
fn may_jump_into(
    first: &[Instruction],
    jumps: &[u64],
    instructions: &[Instruction],
    frame: &Frame,
    knows_itself: bool,
) -> bool {
    first.iter().skip(1).map(Instruction::ip).any(|within| {
        // (what grows may be for the arguments of a call, which the loop that begins there gives back: only tables tell)
        let grows = !knows_itself && stack_grows_after(within, instructions);
        jumps.iter().any(|jump| frame.may_be_same(within, *jump, grows))
    })
}

/// Whether the stack grows between this instruction and the next from which execution may go on elsewhere: it is larger wherever
/// that leads, until the frame is given up.
fn stack_grows_after(address: u64, instructions: &[Instruction]) -> bool {
    instructions
        .iter()
        .skip_while(|instruction| instruction.ip() < address)
        .take_while(|instruction| instruction.flow_control() == FlowControl::Next)
        .any(|instruction| {
            let allocates =
                instruction.mnemonic() == Mnemonic::Sub && instruction.op0_register() == Register::RSP;
            instruction.stack_pointer_increment() < 0 || allocates
        })
}

/// Whether it uses only those callee-saved registers that it saves.
fn keeps_registers(instructions: &[Instruction], frame: &Frame) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let unsaved: Vec<Register> =
        KEPT.iter().filter(|(_, number)| !frame.saves(*number)).map(|(register, _)| *register).collect();
    instructions.iter().all(|instruction| {
        let pushed = matches!(instruction.code(), Opcode::Push_r64);
        pushed
            || factory.info(instruction).used_registers().iter().all(|used| {
                !unsaved.contains(&used.register().full_register()) || used.access() == OpAccess::None
            })
    })
}

/// Whether it goes to another stack, as coroutines do: registers are restored from there then, whatever it saves.
fn leaves_stack(instructions: &[Instruction], frame: &Frame) -> bool {
    instructions.iter().any(|i| {
        let sets = match i.mnemonic() {
            Mnemonic::Mov => i.op0_register() == Register::RSP,
            Mnemonic::Xchg => [i.op0_register(), i.op1_register()].contains(&Register::RSP),
            _ => false,
        };
        // (where the space of arguments is released, unwind information says so)
        let stack = frame.caller_stack(i.ip());
        sets && stack.is_some_and(|(register, _)| register == X86_64::RSP)
            && frame.caller_stack(i.next_ip()).is_none_or(|next| Some(next) == stack)
    })
}

/// Whether it looks at its return address, which is somebody else's while it runs: unwinders begin with it, and functions that
/// return twice keep it.
fn looks_back(instructions: &[Instruction], frame: &Frame) -> bool {
    // (an `or` of what is on top of the stack is a memory barrier)
    let looks = |i: &&Instruction| i.flow_control() != FlowControl::Return && i.mnemonic() != Mnemonic::Or;
    instructions.iter().filter(looks).any(|i| {
        let Some((register, above)) = frame.caller_stack(i.ip()) else { return false };
        let base = if register == X86_64::RSP { Register::RSP } else { Register::RBP };
        let by_memory = i.memory_base() == base
            && i.memory_index() == Register::None
            && i.memory_displacement64() as i64 == above - 8
            && [X86_64::RSP, X86_64::RBP].contains(&register);
        let by_pop = (register, above) == CALLED && i.mnemonic() == Mnemonic::Pop;
        by_memory || by_pop
    })
}
