//! What leads to the first instructions of functions: jumps and calls of all code, addresses in code and data, tables of
//! switches, and symbols.

use crate::Code;
use crate::code::{CALLED, Candidate, Lead, decoder, is_indirect_jump, operand, target};
use crate::frames::{Frames, Function};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use object::elf::{R_X86_64_RELATIVE, SHF_EXECINSTR};
use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, SymbolKind};
use std::collections::HashMap;

/// How many entries of a table are looked at, and how many that lead nowhere may be between two that do (tables of records).
const TABLE: usize = 1 << 16;
const BETWEEN: usize = 8;

/// Candidates in the order of their addresses, which do not overlap.
struct Candidates<'c, 'p>(&'c mut [&'p mut Candidate]);

impl Candidates<'_, '_> {
    /// The one whose first instructions an address is in.
    fn at(&mut self, address: u64) -> Option<&mut Candidate> {
        let (first, last) = (self.0.first()?.entry, self.0.last()?.end);
        if !(first..last).contains(&address) {
            return None; // (most are)
        }
        let at = self.0.partition_point(|candidate| candidate.end <= address);
        self.0.get_mut(at).filter(|candidate| candidate.entry <= address).map(|candidate| &mut **candidate)
    }

    fn led_to(&mut self, lead: Lead, address: u64) {
        if let Some(candidate) = self.at(address) {
            candidate.led_to(lead, address);
        }
    }
}

/// Notes what leads to the candidates' first instructions. They are in the order of their addresses.
pub fn find(candidates: &mut [&mut Candidate], file: &ElfFile64<LittleEndian>, code: &Code, frames: &Frames) {
    let numbers: HashMap<usize, usize> =
        candidates.iter().enumerate().map(|(number, candidate)| (candidate.function, number)).collect();
    let mut candidates = Candidates(candidates);
    let pointers = Pointers::of(file, code);
    for from in 0..frames.all().len() {
        let leads_to = of_function(&mut candidates, from, frames, code, &pointers);
        if let Some(number) = numbers.get(&from) {
            candidates.0[*number].leads_to = leads_to;
        }
    }
    without_frames(&mut candidates, file, code, frames);
    pointers.for_each(code, |address| candidates.led_to(Lead::Label, address));
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_place = !matches!(symbol.kind(), SymbolKind::Tls | SymbolKind::File | SymbolKind::Section);
        if is_place && symbol.section_index().is_some() {
            candidates.led_to(Lead::Label, symbol.address());
        }
    }
}

/// What leads somewhere from a function; which others, by number, it jumps to.
fn of_function(
    candidates: &mut Candidates,
    from: usize,
    frames: &Frames,
    code: &Code,
    pointers: &Pointers,
) -> Vec<usize> {
    let function = &frames.all()[from];
    let mut leads_to = Vec::new();
    let Some(bytes) = code.bytes(function.start, function.end) else { return leads_to };
    let mut frame = None; // (few jump to others)
    let (mut is_switch, mut tables) = (false, Vec::new());
    for instruction in decoder(bytes, function.start) {
        is_switch |= is_indirect_jump(&instruction, function, code);
        if let Some(address) = operand(&instruction, code) {
            candidates.led_to(Lead::Label, address);
            // (what is read from one place is no table)
            if !instruction.is_ip_rel_memory_operand() || instruction.mnemonic() == Mnemonic::Lea {
                tables.push(address);
            }
        }
        let Some(to) = target(&instruction) else { continue };
        let calls = instruction.flow_control() == FlowControl::Call;
        if !calls && !(function.start..function.end).contains(&to) {
            leads_to.extend(frames.around(to));
        }
        let Some(candidate) = candidates.at(to) else { continue };
        let lead = match calls {
            true => Lead::Call,
            false => {
                let frame = frame.get_or_insert_with(|| frames.frame(function));
                let stack = frame.as_ref().and_then(|frame| frame.caller_stack(instruction.ip()));
                if stack == Some(CALLED) { Lead::TailCall(from) } else { Lead::Inner(from) }
            }
        };
        candidate.led_to(lead, to);
    }
    if is_switch {
        tables.sort_unstable();
        tables.dedup();
        let parts: Vec<Function> =
            leads_to.iter().map(|part| frames.all()[*part]).chain([*function]).collect();
        let is_own = |to: &u64| parts.iter().any(|part| (part.start..part.end).contains(to));
        for (number, table) in tables.iter().enumerate() {
            let end = tables.get(number + 1).copied().unwrap_or(u64::MAX);
            let mut nowhere = 0;
            let by_pointers = pointers.between(*table, end, code).take_while(|to| {
                nowhere = if to.is_some_and(|to| is_own(&to)) { 0 } else { nowhere + 1 };
                nowhere <= BETWEEN
            });
            for to in distances(*table, end, code).take_while(is_own).chain(by_pointers.flatten()) {
                // (some other function's address, among them, is not jumped to)
                if is_own(&to) {
                    candidates.led_to(Lead::TailCall(from), to);
                }
            }
        }
    }
    leads_to
}

/// Where a table of a switch leads to, if one is here: each entry is how far from it that is.
fn distances<'a>(table: u64, end: u64, code: &'a Code) -> impl Iterator<Item = u64> + use<'a> {
    let most = usize::try_from((end - table) / 4).unwrap_or(TABLE).min(TABLE);
    let entries = code.data_from(table).chunks_exact(4).take(most);
    let far = |entry: &[u8]| i64::from(i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]));
    entries.map(move |entry| table.wrapping_add_signed(far(entry)))
}

/// What leads somewhere from code that unwinders know nothing of, as far as it can be read.
fn without_frames(candidates: &mut Candidates, file: &ElfFile64<LittleEndian>, code: &Code, frames: &Frames) {
    let mut look = |from: u64, to: u64| {
        let instructions = decoder(code.bytes(from, to).unwrap_or_default(), from);
        for (instruction, to) in
            instructions.into_iter().filter_map(|one: Instruction| Some((one, target(&one)?)))
        {
            let calls = instruction.flow_control() == FlowControl::Call;
            candidates.led_to(if calls { Lead::Call } else { Lead::Jump }, to);
        }
    };
    for section in file.sections() {
        if !matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & SHF_EXECINSTR.0 != 0)
        {
            continue;
        }
        let (mut at, end) = (section.address(), section.address().saturating_add(section.size()));
        for function in frames.all() {
            if function.start >= end {
                break;
            }
            if function.start > at {
                look(at, function.start);
            }
            at = at.max(function.end);
        }
        if at < end {
            look(at, end);
        }
    }
}

/// Addresses of its own that an object's data have, by their places; where the object's are fixed: none, for any word may be one.
struct Pointers(Vec<(u64, u64)>);

impl Pointers {
    fn of(file: &ElfFile64<LittleEndian>, code: &Code) -> Pointers {
        let (endian, data) = (LittleEndian, file.data());
        let mut found = Vec::new();
        for section in file.elf_section_table().iter().filter(|_| !code.fixed) {
            if let Ok(Some((relocations, _))) = section.rela(endian, data) {
                let relative =
                    relocations.iter().filter(|one| one.r_type(endian, false) == R_X86_64_RELATIVE);
                found.extend(relative.map(|one| (one.r_offset.get(endian), one.r_addend.get(endian) as u64)));
            }
            if let Ok(Some(places)) = section.relr(endian, data) {
                found.extend(places.filter_map(|place| Some((place, word(code.data_from(place))?))));
            }
        }
        found.sort_unstable();
        Pointers(found)
    }

    /// Does this with each.
    fn for_each(&self, code: &Code, mut work: impl FnMut(u64)) {
        self.0.iter().for_each(|(_, address)| work(*address));
        for (start, bytes) in code.all.iter().filter(|_| code.fixed) {
            let aligned = (start.wrapping_neg() % 8) as usize;
            bytes.get(aligned..).unwrap_or_default().chunks_exact(8).filter_map(word).for_each(&mut work);
        }
    }

    /// What the words from this place to that are.
    fn between<'a>(
        &'a self,
        from: u64,
        to: u64,
        code: &'a Code,
    ) -> Box<dyn Iterator<Item = Option<u64>> + 'a> {
        let most = usize::try_from((to - from) / 8).unwrap_or(TABLE).min(TABLE);
        if code.fixed {
            return Box::new(code.data_from(from).chunks_exact(8).take(most).map(word));
        }
        let mut next = self.0.partition_point(|(place, _)| *place < from);
        Box::new((0..most).map(move |number| {
            let place = from.saturating_add(8 * number as u64);
            let (there, address) = self.0.get(next)?;
            if *there > place {
                return None;
            }
            next += 1;
            Some(*address)
        }))
    }
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}
