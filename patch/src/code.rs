//! What is in a function, and what jumps to its first instructions.

use crate::frames::{Frame, Frames};
use crate::moved::Moved;
use crate::{Code, Entry, JUMP, Refusal};
use gimli::X86_64;
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

/// Registers that functions give back as they found them, but for the stack's and rbp.
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
    function: usize,
    entry: u64,
    /// The bytes that make way begin here: at the entry, or behind its endbr64.
    at: u64,
    end: u64,
    replaced: Vec<u8>,
    moved: Moved,
    /// Functions, by number, that it jumps to.
    leads_to: Vec<usize>,
    /// Those that jump to its first instruction.
    led_from: Vec<usize>,
    refusal: Option<Refusal>,
}

fn decoder(bytes: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE)
}

/// Where an instruction may go to directly.
fn target(instruction: &Instruction) -> Option<u64> {
    (instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64)
        .then(|| instruction.near_branch64())
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
        if may_jump_into(&first, &instructions, &frame) {
            return Err(Refusal::JumpedInto);
        }
        if !keeps_registers(&instructions, &frame) {
            return Err(Refusal::Registers);
        }
        let (leads_to, led_from) = (Vec::new(), Vec::new());
        Ok(Candidate { function, entry, at, end, replaced, moved, leads_to, led_from, refusal: None })
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

    /// An instruction of this function leads here directly.
    fn led_to(&mut self, from: usize, instruction: &Instruction, target: u64) {
        let jumps = instruction.flow_control() != FlowControl::Call;
        if target != self.entry && target != self.at {
            self.refusal = Some(Refusal::JumpedInto);
        } else if jumps && from == self.function {
            self.refusal = Some(self.refusal.unwrap_or(Refusal::Loop));
        } else if jumps {
            self.led_from.push(from);
        }
    }
}

/// Whether an indirect jump of the function may lead to one of its first instructions other than the very first: the stack
/// may be the same there. (To the very first it is as a call.)
fn may_jump_into(first: &[Instruction], instructions: &[Instruction], frame: &Frame) -> bool {
    let indirect = |i: &&Instruction| i.flow_control() == FlowControl::IndirectBranch;
    let jumps: Vec<u64> = instructions.iter().filter(indirect).map(Instruction::ip).collect();
    first.iter().skip(1).map(Instruction::ip).any(|within| {
        let grows = stack_grows_after(within, instructions);
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

/// Whether it uses only those registers that it saves, of those that it gives back as it found them.
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

/// Notes what of all code with frames leads to the candidates' first instructions. They are in the order of their addresses.
pub fn find_jumps(candidates: &mut [&mut Candidate], code: &Code, frames: &Frames) {
    let mut leads: Vec<(usize, usize)> = Vec::new(); // by candidate: where to
    let of_function: std::collections::HashMap<usize, usize> =
        candidates.iter().enumerate().map(|(number, candidate)| (candidate.function, number)).collect();
    for (from, function) in frames.all().iter().enumerate() {
        let Some(bytes) = code.bytes(function.start, function.end) else { continue };
        for instruction in decoder(bytes, function.start) {
            let Some(target) = target(&instruction) else { continue };
            let at = candidates.partition_point(|candidate| candidate.end <= target);
            if let Some(candidate) = candidates.get_mut(at).filter(|candidate| candidate.entry <= target) {
                candidate.led_to(from, &instruction, target);
            }
            let own = of_function.get(&from);
            if let (Some(&own), true) = (own, instruction.flow_control() != FlowControl::Call) {
                if !(function.start..function.end).contains(&target) {
                    leads.extend(frames.around(target).map(|to| (own, to)));
                }
            }
        }
    }
    for (candidate, to) in leads {
        candidates[candidate].leads_to.push(to);
    }
}
