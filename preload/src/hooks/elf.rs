//! What is loaded: each object's dynamic section, as it is in memory.

use crate::memory;
use libc::Elf64_Sym as Symbol;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

// <elf.h>'s names and numbers.
const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_SONAME: u64 = 14;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERNEED: u64 = 0x6fff_fffe;
const STB_LOCAL: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
/// What a relocation asks for: R_X86_64_64, R_AARCH64_ABS64 ...
const WORD: u32 = if cfg!(target_arch = "x86_64") { 1 } else { 257 };
const GLOB_DAT: u32 = if cfg!(target_arch = "x86_64") { 6 } else { 1025 };
const JUMP_SLOT: u32 = if cfg!(target_arch = "x86_64") { 7 } else { 1026 };
/// STO_AARCH64_VARIANT_PCS; x86-64 has no such bit.
const VARIANT_PCS: u8 = 0x80;
/// In a DT_VERSYM: the rest is the version's number.
const VERSION: u16 = 0x7fff;

#[repr(C)]
pub struct Dyn {
    tag: u64,
    value: u64,
}

#[repr(C)]
struct Relocation {
    offset: u64,
    kind: u32,
    symbol: u32,
    addend: i64,
}

/// Elf64_Verdef
#[repr(C)]
struct Defined {
    _version: u16,
    _flags: u16,
    number: u16,
    _count: u16,
    _hash: u32,
    names: u32,
    next: u32,
}

/// Elf64_Verneed
#[repr(C)]
struct VersionNeed {
    _version: u16,
    count: u16,
    _file: u32,
    names: u32,
    next: u32,
}

/// Elf64_Vernaux
#[repr(C)]
struct NeededName {
    _hash: u32,
    _flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

/// A loaded object. Its memory stays as long as somebody holds it open (`loader::HeldObject`).
#[derive(Clone)]
pub struct Object {
    /// What its addresses are relative to.
    pub base: usize,
    /// Where it was loaded from; empty for the program itself.
    pub path: CString,
    pub dynamic: *const Dyn,
    strings: usize,
    relro: Range<usize>,
    #[cfg_attr(target_arch = "aarch64", allow(dead_code))]
    extent: Range<usize>,
    code: Vec<Range<usize>>,
}

/// A function that an object defines for others.
pub struct DefinedFunction<'a> {
    pub name: &'a CStr,
    /// Where it is; for one that is chosen at run time where the choice is made.
    pub address: usize,
    pub indirect: bool,
    /// The function is called with more in registers than others are (arm64's vector PCS).
    pub all_registers: bool,
    pub version: Option<&'a CStr>,
}

/// A place in an object that holds a function's address.
pub struct LinkerSlot<'a> {
    pub place: *mut usize,
    pub name: &'a CStr,
    pub version: Option<&'a CStr>,
    /// Only calls go through it, so it may not be bound yet.
    pub call: bool,
}

/// How often objects were added and removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    pub added: u64,
    pub removed: u64,
}

/// What changed so far. Allocates nothing.
pub fn changes() -> Changes {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
        // SAFETY: the linker's record, and the variable below.
        unsafe { *to.cast::<Changes>() = Changes { added: (*info).dlpi_adds, removed: (*info).dlpi_subs } };
        1
    }
    let mut seen = Changes { added: 0, removed: 0 };
    // SAFETY: `first` writes a Changes.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut seen).cast()) };
    seen
}

/// All that is loaded and has a dynamic section, the program first; there is memory to hold it, and to look at each one's
/// versions. None: there is no memory.
pub fn loaded() -> Option<Vec<Object>> {
    const OBJECT: usize = 1 << 13;
    const VERSIONS: usize = 1 << 17;
    if !memory::secure(VERSIONS + changes().added as usize * OBJECT) {
        return None;
    }
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
        // SAFETY: the linker's record, and the vector below.
        unsafe {
            let objects = &mut *to.cast::<Vec<Object>>();
            objects.extend(Object::of(&*info));
        }
        0
    }
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: `each` adds to a vector of objects.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut objects).cast()) };
    Some(objects)
}

// SAFETY: its pointer is to memory that only the linker writes to.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        (self.base, self.dynamic, &self.path) == (other.base, other.dynamic, &other.path)
    }
}

impl Object {
    /// # Safety
    /// The record is the linker's.
    unsafe fn of(info: &libc::dl_phdr_info) -> Option<Object> {
        let base = info.dlpi_addr as usize;
        // SAFETY: the linker's table of program headers, and its name for the object.
        let (headers, path) = unsafe {
            let headers = slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            (headers, CStr::from_ptr(info.dlpi_name).to_owned())
        };
        let range = |h: &libc::Elf64_Phdr| base + h.p_vaddr as usize..base + (h.p_vaddr + h.p_memsz) as usize;
        let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC).map(range)?.start as *const Dyn;
        let relro = headers.iter().find(|h| h.p_type == libc::PT_GNU_RELRO).map(range).unwrap_or(0..0);
        let executable = |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0;
        let code = headers.iter().filter(executable).map(range).collect();
        let loaded = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD).map(range);
        let extent = loaded().map(|r| r.start).min()?..loaded().map(|r| r.end).max()?;
        let mut object = Object { base, path, dynamic, strings: 0, relro, extent, code };
        object.strings = object.pointer(DT_STRTAB)?;
        Some(object)
    }

    /// Whether the address is in its code.
    pub fn has_code_at(&self, address: usize) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    /// Whether the linker has made the place read-only.
    pub fn is_read_only(&self, place: *mut usize, page: usize) -> bool {
        // as the linker does: what shares the last page with something else stays writable
        (self.relro.start & !(page - 1)..self.relro.end & !(page - 1)).contains(&(place as usize))
    }

    /// The object's file.
    pub fn file(&self) -> PathBuf {
        let path = self.path.to_bytes();
        PathBuf::from(OsStr::from_bytes(if path.is_empty() { b"/proc/self/exe" } else { path }))
    }

    /// The names a pattern may call it by: its file's and the one it says it has.
    pub fn names(&self) -> [CString; 2] {
        let file =
            if self.path.is_empty() { fs::read_link(self.file()).unwrap_or_default() } else { self.file() };
        let file = file.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        let soname = self.value(DT_SONAME).map(|at| self.string(at as u32).to_owned()).unwrap_or_default();
        [CString::new(file).unwrap_or_default(), soname]
    }

    /// Calls `each` for every function that it defines for others.
    pub fn functions<'a>(&'a self, mut each: impl FnMut(DefinedFunction<'a>)) {
        let versions = self.versions();
        for (index, symbol) in self.symbols().iter().enumerate() {
            let (kind, binding) = (symbol.st_info & 0xf, symbol.st_info >> 4);
            let defined = symbol.st_shndx != 0 && symbol.st_value != 0;
            if defined && binding != STB_LOCAL && (kind == STT_FUNC || kind == STT_GNU_IFUNC) {
                each(DefinedFunction {
                    name: self.string(symbol.st_name),
                    address: self.base + symbol.st_value as usize,
                    indirect: kind == STT_GNU_IFUNC,
                    all_registers: cfg!(target_arch = "aarch64") && symbol.st_other & VARIANT_PCS != 0,
                    version: self.version(&versions, index),
                });
            }
        }
    }

    /// Whether it has others define a symbol of this name.
    pub fn needs_symbol(&self, name: &CStr) -> bool {
        self.symbols().iter().any(|symbol| symbol.st_shndx == 0 && self.string(symbol.st_name) == name)
    }

    /// Where its code and data begin and end.
    #[cfg_attr(target_arch = "aarch64", allow(dead_code))]
    pub fn extent(&self) -> Range<usize> {
        self.extent.clone()
    }

    /// Bytes of the names of all its symbols, and how many there are.
    pub fn size_of_names(&self) -> (usize, usize) {
        let symbols = self.symbols();
        (symbols.iter().map(|symbol| self.string(symbol.st_name).count_bytes()).sum(), symbols.len())
    }

    /// Calls `each` for every place that holds the address of something by name.
    pub fn slots<'a>(&'a self, mut each: impl FnMut(LinkerSlot<'a>)) {
        let versions = self.versions();
        let Some(symbols) = self.pointer(DT_SYMTAB) else { return };
        for (table, size) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
            let (Some(table), Some(size)) = (self.pointer(table), self.value(size)) else { continue };
            // SAFETY: the dynamic section says where the table is, and how many bytes it has.
            let table = unsafe {
                slice::from_raw_parts(table as *const Relocation, size as usize / size_of::<Relocation>())
            };
            for relocation in table {
                let call = relocation.kind == JUMP_SLOT;
                let address =
                    relocation.kind == GLOB_DAT || (relocation.kind == WORD && relocation.addend == 0);
                if !(call || address) || relocation.symbol == 0 {
                    continue;
                }
                let index = relocation.symbol as usize;
                // SAFETY: the relocation is the linker's, and names a symbol of the table.
                let symbol = unsafe { &*(symbols as *const Symbol).add(index) };
                each(LinkerSlot {
                    place: (self.base + relocation.offset as usize) as *mut usize,
                    name: self.string(symbol.st_name),
                    version: self.version(&versions, index),
                    call,
                });
            }
        }
    }

    /// A value of the dynamic section.
    fn value(&self, tag: u64) -> Option<u64> {
        let mut at = self.dynamic;
        // SAFETY: the section ends with DT_NULL.
        unsafe {
            while (*at).tag != DT_NULL {
                if (*at).tag == tag {
                    return Some((*at).value);
                }
                at = at.add(1);
            }
        }
        None
    }

    /// An address of the dynamic section. The linker has made it absolute, but for objects that are read-only (vDSO).
    fn pointer(&self, tag: u64) -> Option<usize> {
        let value = self.value(tag)? as usize;
        Some(if value < self.base { self.base + value } else { value })
    }

    fn string(&self, offset: u32) -> &CStr {
        // SAFETY: the string table of a loaded object, which ends in NUL.
        unsafe { CStr::from_ptr((self.strings + offset as usize) as *const c_char) }
    }

    /// The symbols that the hash table knows, and those before them: the defined ones are all among them.
    fn symbols(&self) -> &[Symbol] {
        let Some(table) = self.pointer(DT_SYMTAB) else { return &[] };
        // SAFETY: as the hash table says.
        unsafe { slice::from_raw_parts(table as *const Symbol, self.symbol_count()) }
    }

    fn symbol_count(&self) -> usize {
        if let Some(hash) = self.pointer(DT_HASH) {
            // SAFETY: the second word of this table is the number of symbols.
            return unsafe { *(hash as *const u32).add(1) } as usize;
        }
        let Some(hash) = self.pointer(DT_GNU_HASH) else { return 0 };
        let hash = hash as *const u32;
        // SAFETY: four words, so many words of 8 bytes, so many buckets, then a chain for each bucket whose last
        // element is odd.
        unsafe {
            let (buckets, first, words) = (*hash as usize, *hash.add(1) as usize, *hash.add(2) as usize);
            let table = hash.add(4 + 2 * words);
            let chains = table.add(buckets);
            let Some(mut last) = (0..buckets).map(|i| *table.add(i) as usize).max().filter(|&l| l >= first)
            else {
                return first;
            };
            while *chains.add(last - first) & 1 == 0 {
                last += 1;
            }
            last + 1
        }
    }

    /// The name of the version that a symbol has, or has to have.
    fn version<'a>(&'a self, versions: &[(u16, &'a CStr)], index: usize) -> Option<&'a CStr> {
        let table = self.pointer(DT_VERSYM)? as *const u16;
        // SAFETY: the table has an element for each symbol.
        let number = unsafe { *table.add(index) } & VERSION;
        versions.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
    }

    /// The versions that it defines and needs, by their numbers.
    fn versions(&self) -> Vec<(u16, &CStr)> {
        let mut versions = Vec::new();
        let mut at = self.pointer(DT_VERDEF).unwrap_or(0);
        // SAFETY: both are chains of records that the linker has gone through before.
        unsafe {
            while at != 0 {
                let defined = &*(at as *const Defined);
                // number 1 is the object's own name, which no symbol has
                if defined.number & VERSION > 1 {
                    let name = *((at + defined.names as usize) as *const u32);
                    versions.push((defined.number & VERSION, self.string(name)));
                }
                at = if defined.next == 0 { 0 } else { at + defined.next as usize };
            }
            at = self.pointer(DT_VERNEED).unwrap_or(0);
            while at != 0 {
                let needed = &*(at as *const VersionNeed);
                let mut name_at = at + needed.names as usize;
                for _ in 0..needed.count {
                    let name = &*(name_at as *const NeededName);
                    versions.push((name.number & VERSION, self.string(name.name)));
                    name_at += name.next as usize;
                }
                at = if needed.next == 0 { 0 } else { at + needed.next as usize };
            }
        }
        versions
    }
}
