//! What DWARF tells of an address.
#![forbid(unsafe_code)]

use super::elf::ElfFile;
use super::names::printable;
use super::{Located, SourceLine};
use addr2line::gimli::{self, EndianSlice, NativeEndian};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::{CompressionFormat, Object, ObjectSection};
use std::borrow::Cow;

/// Sections that would be larger once they are decompressed are not read.
const MOST: usize = 4 << 30;

/// The sections of a file, decompressed.
pub(super) struct DwarfSections<'data>(gimli::DwarfSections<Cow<'data, [u8]>>);

/// A file's DWARF.
pub(super) struct Dwarf<'sections>(addr2line::Context<EndianSlice<'sections, NativeEndian>>);

/// A section; none that is not there, or that is compressed otherwise than by zlib.
fn section<'data>(file: &ElfFile<'data>, name: &str) -> Option<Cow<'data, [u8]>> {
    let section = file.section_by_name(name)?.compressed_data().ok()?;
    match section.format {
        CompressionFormat::None => Some(section.data.into()),
        CompressionFormat::Zlib => Some(decompress_to_vec_zlib_with_limit(section.data, MOST).ok()?.into()),
        _ => None,
    }
}

impl<'data> DwarfSections<'data> {
    /// None: the file has no DWARF, or (by dwz) has left parts of it, such as names, to another file.
    pub fn of(file: &ElfFile<'data>) -> Option<DwarfSections<'data>> {
        section(file, ".debug_info").filter(|section| !section.is_empty())?;
        if file.section_by_name(".gnu_debugaltlink").is_some() {
            return None;
        }
        let section = |id: gimli::SectionId| Ok::<_, ()>(section(file, id.name()).unwrap_or_default());
        gimli::DwarfSections::load(section).ok().map(DwarfSections)
    }
}

impl<'sections> Dwarf<'sections> {
    /// None: it cannot be read.
    pub fn of(sections: &'sections DwarfSections) -> Option<Dwarf<'sections>> {
        let dwarf = sections.0.borrow(|section| EndianSlice::new(section, NativeEndian));
        addr2line::Context::from_dwarf(dwarf).ok().map(Dwarf)
    }

    /// The line of an address, and functions there as their names are mangled; none has no name.
    pub fn at(&self, address: u64) -> Located<Option<String>> {
        let mut located = Located::default();
        // (the last address has no next one, which the crate would want)
        let frames = (address < u64::MAX).then(|| self.0.find_frames(address).skip_all_loads().ok());
        let Some(mut frames) = frames.flatten() else { return located };
        loop {
            match frames.next() {
                Ok(Some(addr2line::Frame { function, location, .. })) => {
                    if located.functions.is_empty() {
                        located.line = location.and_then(line);
                    }
                    let name = function.as_ref().and_then(|function| function.raw_name().ok());
                    located.functions.push(name.map(Cow::into_owned).filter(|name| !name.is_empty()));
                }
                Ok(None) => return located,
                Err(_) => return Located::default(), // who is outermost is not known
            }
        }
    }
}

fn line(location: addr2line::Location) -> Option<SourceLine> {
    let line = location.line.filter(|line| *line > 0)?;
    Some(SourceLine { file: printable(location.file?), line })
}
