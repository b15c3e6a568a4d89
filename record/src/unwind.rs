//! Callers from copies of the stack, by what files say in .eh_frame and .debug_frame.
#![forbid(unsafe_code)]

use crate::elf_file::ElfFile;
use crate::records::{RawSample, StackCopy};
use crate::spaces::{MappedPart, Spaces};
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, SegmentFlags, elf};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;

/// As many as the kernel follows frame pointers.
pub(crate) const MOST_CALLERS: usize = 127;
/// User space has so many bits of addresses on arm64, where the others of a return address may be a signature.
#[cfg(target_arch = "aarch64")]
const ADDRESSES: u64 = (1 << 48) - 1;

/// A return address, without its signature.
#[cfg(target_arch = "aarch64")]
pub(crate) fn code_address(address: u64) -> u64 {
    address & ADDRESSES
}

/// The same: it has none.
#[cfg(target_arch = "x86_64")]
pub(crate) fn code_address(address: u64) -> u64 {
    address
}

type SectionBytes = Rc<[u8]>;

/// What a file has to say.
#[derive(Default)]
struct UnwindTables {
    sections: ExplicitModuleSectionInfo<SectionBytes>,
    /// Parts of the file that hold code, and their addresses.
    code: Vec<(Range<u64>, u64)>,
}

/// The range and the data of a section.
fn section(file: &ElfFile, name: &str) -> Option<(Range<u64>, SectionBytes)> {
    let section = file.section_by_name(name)?;
    let data = section.data().ok().filter(|data| !data.is_empty())?;
    Some((section.address()..section.address().checked_add(data.len() as u64)?, data.into()))
}

impl UnwindTables {
    /// None: it is no program.
    fn of(file: File) -> Option<UnwindTables> {
        let data = ReadCache::new(file);
        let file = ElfFile::parse(&data).ok()?;
        let is_code = |segment: &object::Segment<_>| match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.0 & elf::PF_X.0 != 0,
            _ => false,
        };
        let part = |segment: object::Segment<_>| {
            let (start, size) = segment.file_range();
            (start..start.saturating_add(size), segment.address())
        };
        let code = file.segments().filter(is_code).map(part).collect();
        let mut sections = ExplicitModuleSectionInfo::default();
        (sections.eh_frame_svma, sections.eh_frame) = section(&file, ".eh_frame").unzip();
        (sections.eh_frame_hdr_svma, sections.eh_frame_hdr) = section(&file, ".eh_frame_hdr").unzip();
        (_, sections.debug_frame) = section(&file, ".debug_frame").unzip();
        sections.got_svma = section(&file, ".got").map(|(range, _)| range);
        sections.text_svma =
            file.section_by_name(".text").map(|text| text.address()..text.address() + text.size());
        Some(UnwindTables { sections, code })
    }

    /// How far from their addresses in the file things are where this part of it is mapped.
    fn bias(&self, part: &MappedPart) -> Option<u64> {
        let mapped = part.offset..part.offset.saturating_add(part.end - part.start);
        let (code, address) =
            self.code.iter().find(|(code, _)| code.start < mapped.end && mapped.start < code.end)?;
        Some(part.start.wrapping_add(code.start.wrapping_sub(part.offset)).wrapping_sub(*address))
    }
}

/// A process as it was when it had mapped so much.
struct KnownProcess {
    age: (u64, usize),
    unwinder: UnwinderNative<SectionBytes, MayAllocateDuringUnwind>,
}

/// All processes.
#[derive(Default)]
pub(crate) struct StackUnwinder {
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// None: a file that is no program.
    files: HashMap<u32, Option<UnwindTables>>,
    processes: HashMap<i32, KnownProcess>,
}

impl std::fmt::Debug for StackUnwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackUnwinder").finish_non_exhaustive()
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(registers: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let [bp, sp, ip] = *registers else { return None };
    Some((ip, sp, UnwindRegsNative::new(ip, sp, bp)))
}

#[cfg(target_arch = "aarch64")]
fn registers(registers: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let [fp, lr, sp, pc] = *registers else { return None };
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(ADDRESSES);
    Some((pc, sp, UnwindRegsNative::new_with_ptr_auth_mask(mask, lr, sp, fp)))
}

impl StackUnwinder {
    /// Return addresses of a sample's callers, if it has a copy of the stack: as far as it reaches.
    pub fn callers(&mut self, spaces: &Spaces, pid: i32, sample: &RawSample) -> Vec<u64> {
        let Some(StackCopy { registers: all, stack }) = &sample.copy else { return Vec::new() };
        let (Some((ip, sp, registers)), Some(age)) = (registers(all), spaces.age(pid)) else {
            return Vec::new();
        };
        let StackUnwinder { cache, files, processes } = self;
        let known = processes.get(&pid).is_some_and(|process| process.age == age);
        if !known {
            processes.insert(pid, KnownProcess { age, unwinder: unwinder(spaces, pid, files) });
        }
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let bytes = stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_ne_bytes(*bytes))
        };
        let mut frames = processes[&pid].unwinder.iter_frames(ip, registers, cache, &mut read);
        let next = || frames.next().ok().flatten().map(|frame| frame.address());
        std::iter::from_fn(next).skip(1).take(MOST_CALLERS).collect()
    }
}

/// With all files that a process has mapped.
fn unwinder(
    spaces: &Spaces,
    pid: i32,
    files: &mut HashMap<u32, Option<UnwindTables>>,
) -> UnwinderNative<SectionBytes, MayAllocateDuringUnwind> {
    let mut mapped: Vec<MappedPart> = Vec::new();
    for part in spaces.files(pid) {
        // (where something is mapped, what was there before is not any more)
        mapped.retain(|other| other.end <= part.start || part.end <= other.start);
        mapped.push(part);
    }
    let mut unwinder = UnwinderNative::new();
    for part in mapped {
        let tables =
            files.entry(part.module).or_insert_with(|| spaces.file(part.module).and_then(UnwindTables::of));
        let Some((tables, bias)) = tables.as_ref().and_then(|tables| Some((tables, tables.bias(&part)?)))
        else {
            continue;
        };
        let (name, range) = (part.file.to_string(), part.start..part.end);
        unwinder.add_module(Module::new(name, range, bias, tables.sections.clone()));
    }
    unwinder
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::event::now;
    use crate::file_proof::inode_at;
    use crate::symbols::tests::{Scratch, offsets_of};
    use std::process::Command;
    use topdown_seam::random::Random;
    use topdown_seam::records::Inode;

    /// Two functions without frame pointers, of which the inner one has pushed a register and made room for 40 bytes.
    const SOURCE: &str = ".text\n.globl inner\n.type inner, @function\ninner:\n.cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n\
        sub $40, %rsp\n.cfi_adjust_cfa_offset 40\nnop\nadd $40, %rsp\n.cfi_adjust_cfa_offset -40\npop %rbx\n\
        .cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size inner, .-inner\n.globl outer\n.type outer, @function\nouter:\n\
        .cfi_startproc\nsub $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall inner\nadd $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n\
        .cfi_endproc\n.size outer, .-outer\n";

    fn compiled(scratch: &Scratch) -> String {
        let (source, program) = (scratch.0.join("source.s"), scratch.0.join("program.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-nostdlib", "-Wl,-z,separate-code"]).arg(&source).arg("-o").arg(&program);
        assert!(compiler.status().unwrap().success());
        program.display().to_string()
    }

    #[test]
    fn callers_are_found_without_frame_pointers() {
        let scratch = Scratch::new("unwind");
        let path = compiled(&scratch);
        let (inner, outer) = (offsets_of(&path, "inner"), offsets_of(&path, "outer"));
        let (inner, outer) = (inner[0], outer[0]);
        // the page that has both is mapped over another one, and of another process that of another program
        const START: u64 = 0x7f00_0000_0000;
        let (mut spaces, page) = (Spaces::default(), inner & !0xfff);
        let (file, other) = ((&*path, inode_at(&path)), ("/nowhere/other", Inode::default()));
        spaces.mapped(now(), 7, START + inner - page + 1, 0x1000, page, file);
        spaces.mapped(now(), 7, START, 0x1000, page, file);
        spaces.mapped(now(), 8, START, 0x1000, page, other);
        let at = |offset: u64| START + offset - page;
        let (sp, root) = (0x7fff_0000_0000_u64, at(outer) + 0xdead);
        let after_call = at(outer) + 4 + 5;
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let mut unwinder = StackUnwinder::default();
        let mut callers = |pid: i32, ip: u64, stack: &[u64]| {
            let copy = Some(StackCopy { registers: vec![0x1234, sp, ip], stack: words(stack) });
            unwinder.callers(&spaces, pid, &RawSample { copy, ..RawSample::default() })
        };
        // behind push and sub: room, the register, the return address; and outer's room and return address
        let stack = [0, 0, 0, 0, 0, 0xb, after_call, 0, root];
        assert_eq!(callers(7, at(inner) + 5, &stack)[..2], [after_call, root]);
        // before push
        assert_eq!(callers(7, at(inner), &stack[6..])[..2], [after_call, root]);
        // of a stack that was copied in part, as far as it reaches
        assert_eq!(callers(7, at(inner) + 5, &stack[..7]), [after_call]);
        assert!(callers(7, at(inner) + 5, &stack[..6]).is_empty());
        // of what is unknown, nothing by these tables
        assert!(!callers(8, at(inner) + 5, &stack).contains(&after_call));
        assert!(callers(9, at(inner) + 5, &stack).is_empty());
        let without = RawSample::default();
        assert!(unwinder.callers(&spaces, 7, &without).is_empty());
    }

    /// Whatever a file says, and whatever is on the stack.
    #[test]
    fn damaged_tables_harm_nobody() {
        let scratch = Scratch::new("damaged-tables");
        let path = compiled(&scratch);
        let (whole, inner) = (std::fs::read(&path).unwrap(), offsets_of(&path, "inner")[0]);
        let tables: Vec<usize> = {
            let file = object::File::parse(&*whole).unwrap();
            let names = [".eh_frame", ".eh_frame_hdr"];
            let ranges = names.map(|name| file.section_by_name(name).unwrap().file_range().unwrap());
            ranges.into_iter().flat_map(|(start, size)| start as usize..(start + size) as usize).collect()
        };
        let (mut random, start) = (Random::new(1), 0x7f00_0000_0000);
        let mut next = || random.number();
        for _ in 0..500 {
            let mut damaged = whole.clone();
            for _ in 0..1 + next() % 4 {
                damaged[tables[next() as usize % tables.len()]] = next() as u8;
            }
            std::fs::write(&path, damaged).unwrap();
            let mut spaces = Spaces::default();
            spaces.mapped(now(), 7, start, 0x1000, inner & !0xfff, (&path, inode_at(&path)));
            let words = [next(), start + next() % 64, next(), 0x7fff_0000_0000 + next() % 64];
            let stack: Vec<u8> = words.iter().cycle().take(64).flat_map(|word| word.to_ne_bytes()).collect();
            for ip in 0..32 {
                let registers = vec![0x7fff_0000_0010, 0x7fff_0000_0000, start + (inner & 0xfff) + ip];
                let copy = Some(StackCopy { registers, stack: stack.clone() });
                let callers =
                    StackUnwinder::default().callers(&spaces, 7, &RawSample { copy, ..RawSample::default() });
                assert!(callers.len() <= MOST_CALLERS);
            }
        }
    }
}
