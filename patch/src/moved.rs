//! Instructions for another place than that for which they were made.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// A function's first instructions, then a jump to what follows them, for a place that is chosen later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    code: Vec<u8>,
    links: Vec<Link>,
}

/// A part of the code that depends on its place and on the object's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    /// Where in the code.
    at: usize,
    /// What it is the address of, relative to the object's base.
    target: u64,
    kind: LinkKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LinkKind {
    /// 32 bits: how far the target is from the end of the instruction, which is at this byte of the code.
    Relative { end: usize },
    /// The address in 64 bits.
    Absolute,
}

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const JMP: u8 = 0xe9;

impl Moved {
    /// The instructions, which these bytes are, for another place; None: one of them cannot be executed elsewhere.
    pub fn of(instructions: &[Instruction], bytes: &[u8]) -> Option<Moved> {
        let mut moved = Moved { code: ENDBR64.into(), links: Vec::new() };
        let start = instructions.first()?.ip();
        let mut goes_on = true;
        for (number, instruction) in instructions.iter().enumerate() {
            // (what is called returns to the instruction behind the call, which must not be replaced)
            let calls = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            if calls && number + 1 < instructions.len() {
                return None;
            }
            let at = (instruction.ip() - start) as usize;
            goes_on = moved.add(instruction, &bytes[at..at + instruction.len()])?;
        }
        if goes_on {
            moved.jump(&[JMP], instructions.last()?.next_ip());
        }
        Some(moved)
    }

    /// Adds one; whether execution goes on behind it.
    fn add(&mut self, instruction: &Instruction, bytes: &[u8]) -> Option<bool> {
        let direct = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64;
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::Return | FlowControl::IndirectBranch => {
                self.copy(instruction, bytes)?;
                Some(instruction.flow_control() == FlowControl::Next)
            }
            FlowControl::UnconditionalBranch if direct => {
                self.jump(&[JMP], instruction.near_branch64());
                Some(false)
            }
            FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
                // the condition is in the last byte of the opcode, which one byte of distance follows, or four
                let condition = bytes[bytes.len() - if instruction.is_jcc_short() { 2 } else { 5 }] & 0xf;
                self.jump(&[0x0f, 0x80 | condition], instruction.near_branch64());
                Some(true)
            }
            FlowControl::IndirectCall => {
                self.call_indirect(instruction, bytes)?;
                Some(false)
            }
            FlowControl::Call if direct => {
                self.call(instruction.near_branch64(), instruction.next_ip());
                Some(false)
            }
            _ => None,
        }
    }

    /// Copies an instruction that goes nowhere, or nowhere that depends on its place.
    fn copy(&mut self, instruction: &Instruction, bytes: &[u8]) -> Option<()> {
        let here = self.code.len();
        self.code.extend(bytes);
        if instruction.is_ip_rel_memory_operand() {
            let mut decoder = Decoder::with_ip(64, bytes, instruction.ip(), DecoderOptions::NONE);
            let offsets = {
                let again = decoder.decode();
                decoder.get_constant_offsets(&again)
            };
            if offsets.displacement_size() != 4 || instruction.memory_base() != Register::RIP {
                return None;
            }
            self.links.push(Link {
                at: here + offsets.displacement_offset(),
                target: instruction.ip_rel_memory_address(),
                kind: LinkKind::Relative { end: here + bytes.len() },
            });
        }
        Some(())
    }

    fn jump(&mut self, opcode: &[u8], target: u64) {
        self.code.extend(opcode);
        let at = self.code.len();
        self.code.extend([0; 4]);
        self.links.push(Link { at, target, kind: LinkKind::Relative { end: at + 4 } });
    }

    /// A call that returns to where the moved one would have: unwinders know that place, and not this.
    fn call(&mut self, target: u64, back: u64) {
        self.push(5, back);
        self.jump(&[JMP], target);
        self.code.extend([0; 8]);
    }

    /// The same of a call through a register, or through memory that has not to do with the stack; None: it is another one.
    fn call_indirect(&mut self, instruction: &Instruction, bytes: &[u8]) -> Option<()> {
        let by_stack = [instruction.memory_base(), instruction.op0_register()].contains(&Register::RSP);
        let prefix = usize::from(bytes[0] & 0xf0 == 0x40);
        if by_stack || bytes[prefix] != 0xff {
            return None;
        }
        let mut jump = bytes.to_vec();
        jump[prefix + 1] ^= 0x30; // FF /2 is the call, FF /4 the jump
        self.push(jump.len(), instruction.next_ip());
        self.copy(instruction, &jump)?;
        self.code.extend([0; 8]);
        Some(())
    }

    /// Pushes an address, which is kept behind so many bytes that follow this instruction.
    fn push(&mut self, behind: usize, address: u64) {
        self.code.extend([0xff, 0x35]);
        self.code.extend((behind as u32).to_le_bytes());
        self.links.push(Link { at: self.code.len() + behind, target: address, kind: LinkKind::Absolute });
    }

    /// The code for this place, of an object with this base; None: it is too far from it.
    pub fn placed(&self, place: u64, base: u64) -> Option<Vec<u8>> {
        let mut code = self.code.clone();
        for link in &self.links {
            let target = base.wrapping_add(link.target);
            match link.kind {
                LinkKind::Relative { end } => {
                    let distance = target.wrapping_sub(place + end as u64) as i64;
                    code[link.at..link.at + 4].copy_from_slice(&i32::try_from(distance).ok()?.to_le_bytes());
                }
                LinkKind::Absolute => code[link.at..link.at + 8].copy_from_slice(&target.to_le_bytes()),
            }
        }
        Some(code)
    }
}
