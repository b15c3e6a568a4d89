//! Split DWARF (`-gsplit-dwarf`): the compiler puts most of each unit into a file beside the object file (.dwo), and `dwp` packs those of a
//! program into one (.dwp). The program has a skeleton of the unit, which names the file and has the unit's id.
#![forbid(unsafe_code)]

use super::dwarf::{DwarfSections, MOST, Slice, contents};
use super::elf::{ElfFile, regular};
use super::names::printable;
use addr2line::SplitDwarfLoad;
use addr2line::gimli::{self, EndianSlice, NativeEndian, Reader, Section, SectionId};
use object::{Object, ObjectSection, ReadCache};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sections that are read; the others tell of macros.
const USED: [&str; 10] = [
    ".debug_abbrev.dwo",
    ".debug_cu_index",
    ".debug_info.dwo",
    ".debug_line.dwo",
    ".debug_rnglists.dwo",
    ".debug_str.dwo",
    ".debug_str_offsets.dwo",
    // (not used, but gimli wants what an index names)
    ".debug_loc.dwo",
    ".debug_loclists.dwo",
    ".debug_types.dwo",
];

/// Why a file is not used.
const NOT_THERE: &str = "it is not there, or is no regular file that may be read";
const NO_ELF: &str = "it is no ELF file, or is damaged";
const NO_UNIT: &str = "it has no unit of this compilation";
const TOO_LARGE: &str = "of a program's no more than 4 GiB are read";

/// Sections of a file by name, decompressed.
type Sections = HashMap<String, Vec<u8>>;

/// The split DWARF of a program. What was read of it stays in memory.
pub(super) struct SplitDwarf {
    program: PathBuf,
    /// Where its package may be.
    packages: Vec<PathBuf>,
    /// None: it has none. Read when the first unit is looked for.
    package: OnceCell<Option<Sections>>,
    /// Room for the file of each unit, so that what refers to it need not own it.
    files: Vec<OnceCell<Sections>>,
    files_used: Cell<usize>,
    /// Bytes of files that may still be read.
    left: Cell<usize>,
    /// Files of units that are missing, each with the reason.
    missing: RefCell<Vec<String>>,
}

/// Reads a file, and takes the size of its sections from what is left.
fn read(path: &Path, left: &mut usize) -> Result<Sections, &'static str> {
    let data = ReadCache::new(regular(path).ok_or(NOT_THERE)?);
    let file = ElfFile::parse(&data).map_err(|_| NO_ELF)?;
    let mut sections = Sections::new();
    for section in file.sections() {
        let Some(name) = section.name().ok().filter(|name| USED.contains(name)) else { continue };
        let data = contents(&section).ok_or(NO_ELF)?;
        *left = left.checked_sub(data.len()).ok_or(TOO_LARGE)?;
        // (of -fdebug-types-section several may have one name: units of types before that of the code)
        sections.entry(name.to_string()).or_default().extend_from_slice(&data);
    }
    Ok(sections)
}

fn slice(sections: &Sections, id: SectionId) -> gimli::Result<Slice<'_>> {
    let data = id.dwo_name().and_then(|name| sections.get(name));
    Ok(EndianSlice::new(data.map_or(&[], |data| data), NativeEndian))
}

/// The DWARF with that unit alone which has this id: addr2line takes the first unit, whatever its id.
fn only<'sections>(
    mut dwarf: gimli::Dwarf<Slice<'sections>>,
    id: gimli::DwoId,
) -> Option<gimli::Dwarf<Slice<'sections>>> {
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let (start, length) = (header.offset().as_debug_info_offset()?, header.length_including_self());
        if dwarf.unit(header).is_ok_and(|unit| unit.dwo_id == Some(id)) {
            let mut unit = *dwarf.debug_info.reader();
            unit.skip(start.0).and_then(|()| unit.truncate(length)).ok()?;
            dwarf.debug_info = unit.into();
            return Some(dwarf);
        }
    }
    None
}

/// A unit of a .dwo file.
fn of_file<'sections>(
    sections: &'sections Sections,
    load: &SplitDwarfLoad<Slice<'sections>>,
) -> Option<gimli::Dwarf<Slice<'sections>>> {
    let mut dwarf = gimli::Dwarf::load(|id| slice(sections, id)).ok()?;
    dwarf.make_dwo(&load.parent);
    only(dwarf, load.dwo_id)
}

/// A unit of a .dwp file.
fn of_package<'sections>(
    sections: &'sections Sections,
    load: &SplitDwarfLoad<Slice<'sections>>,
) -> Option<gimli::Dwarf<Slice<'sections>>> {
    let none = EndianSlice::new(&[], NativeEndian);
    let package = gimli::DwarfPackage::load(|id| slice(sections, id), none).ok()?;
    only(package.find_cu(load.dwo_id, &load.parent).ok()??, load.dwo_id)
}

fn path_of(name: Option<Slice>) -> PathBuf {
    name.map_or(PathBuf::new(), |name| OsStr::from_bytes(name.slice()).into())
}

impl SplitDwarf {
    /// That of a program with this DWARF, which may be in a debug file.
    pub fn of(program: &Path, debug_file: Option<&Path>, sections: &DwarfSections) -> SplitDwarf {
        let package = |path: &Path| {
            let mut package = path.as_os_str().to_os_string();
            package.push(".dwp");
            package.into()
        };
        SplitDwarf {
            program: program.to_path_buf(),
            packages: debug_file.into_iter().chain([program]).map(package).collect(),
            package: OnceCell::new(),
            files: vec![OnceCell::new(); sections.units()],
            files_used: Cell::new(0),
            left: Cell::new(MOST),
            missing: RefCell::default(),
        }
    }

    /// The unit that a skeleton asks for. None: it is missing, which is noted.
    pub fn find<'split>(
        &'split self,
        load: &SplitDwarfLoad<Slice<'split>>,
    ) -> Option<Arc<gimli::Dwarf<Slice<'split>>>> {
        let package = self.package.get_or_init(|| self.read_package()).as_ref();
        let packaged = package.and_then(|sections| of_package(sections, load));
        let found = packaged.map_or_else(|| self.in_file(load), Ok);
        let note = |missing| self.missing.borrow_mut().push(missing);
        found.map_err(note).ok().map(Arc::new)
    }

    /// The first package that is there; it has nothing if it cannot be read.
    fn read_package(&self) -> Option<Sections> {
        let mut packages = self.packages.iter().map(|path| read(path, &mut { MOST }));
        packages.find(|package| *package != Err(NOT_THERE)).map(Result::unwrap_or_default)
    }

    /// A unit's file: where the compiler has put it, or beside the program.
    ///
    /// # Errors
    /// Which file is not used, and why.
    fn in_file<'split>(
        &'split self,
        load: &SplitDwarfLoad<Slice<'split>>,
    ) -> Result<gimli::Dwarf<Slice<'split>>, String> {
        // (a relative path is one from the program, wherever the recorder runs)
        let directory = self.program.parent().unwrap_or(Path::new("/"));
        let name = path_of(load.path);
        let compiled = directory.join(path_of(load.comp_dir)).join(&name);
        let beside = name.file_name().map(|name| directory.join(name)).filter(|beside| *beside != compiled);
        let mut refused = Vec::new();
        for path in [compiled].into_iter().chain(beside) {
            match self.unit_of(&path, load) {
                Ok(dwarf) => return Ok(dwarf),
                Err(why) => refused.push((path, why)),
            }
        }
        let said = refused.iter().find(|(_, why)| *why != NOT_THERE).unwrap_or(&refused[0]);
        Err(format!("{}: {}", said.0.display(), said.1))
    }

    fn unit_of<'split>(
        &'split self,
        path: &Path,
        load: &SplitDwarfLoad<Slice<'split>>,
    ) -> Result<gimli::Dwarf<Slice<'split>>, &'static str> {
        let mut left = self.left.get();
        let sections = read(path, &mut left)?;
        of_file(&sections, load).ok_or(NO_UNIT)?;
        let room = self.files.get(self.files_used.get()).ok_or(TOO_LARGE)?;
        self.left.set(left);
        self.files_used.set(self.files_used.get() + 1);
        of_file(room.get_or_init(|| sections), load).ok_or(NO_UNIT)
    }

    /// A sentence on the units that are missing.
    pub fn note(&self) -> Option<String> {
        let (missing, name) = (self.missing.borrow(), self.program.display());
        let (first, files) = (missing.first()?, missing.len());
        let package = self.package.get().is_some_and(Option::is_some);
        let neither = if package { ", and its .dwp has none of them" } else { "" };
        Some(printable(&format!(
            "Inlined functions of {name} may be missing: {files} of its .dwo files cannot be used{neither}; the first is {first}."
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tests::Scratch;

    #[test]
    fn no_more_is_read_than_is_left() {
        let scratch = Scratch::new("split-left");
        scratch.compiled("program", &["-g", "-gsplit-dwarf"]);
        let path = scratch.path("program-source.dwo");
        let mut left = MOST;
        let sections = read(&path, &mut left).unwrap();
        let size = MOST - left;
        assert!(size > 0 && sections.values().map(Vec::len).sum::<usize>() == size);
        assert_eq!(read(&path, &mut { size }), Ok(sections));
        assert_eq!(read(&path, &mut { size - 1 }), Err(TOO_LARGE));
    }
}
