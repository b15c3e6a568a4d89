//! What DWARF tells of an address.
#![forbid(unsafe_code)]

use super::elf::{ElfFile, regular};
use super::names::printable;
use super::separate::SharedDwarf;
use super::split::SplitDwarf;
use super::{FunctionLine, SourceLine};
use addr2line::gimli::{self, EndianSlice, NativeEndian};
use addr2line::{LookupContinuation, LookupResult};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::{CompressionFormat, Object, ObjectSection, ReadCache};
use ruzstd::decoding::StreamingDecoder;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Sections that would be larger once they are decompressed are not read.
pub(super) const MOST: usize = 4 << 30;

/// The sections of a file, decompressed.
pub(super) struct DwarfSections<'data> {
    own: gimli::DwarfSections<Cow<'data, [u8]>>,
    /// Of the file to which dwz has moved parts of them.
    shared: Option<gimli::DwarfSections<Cow<'static, [u8]>>>,
}

pub(super) type Slice<'sections> = EndianSlice<'sections, NativeEndian>;

/// A file's DWARF.
pub(super) struct Dwarf<'sections> {
    context: addr2line::Context<Slice<'sections>>,
    split: &'sections SplitDwarf,
    /// Of units that were looked into: the code of functions into which others are inlined.
    with_inlined: RefCell<HashMap<*const gimli::Unit<Slice<'sections>>, Vec<gimli::Range>>>,
}

/// A function of which nothing is known, into which others may be inlined.
const UNREADABLE: FunctionLine<Option<String>> =
    FunctionLine { function: None, line: None, has_inlined: true };

/// Everything.
const ALL: gimli::Range = gimli::Range { begin: 0, end: u64::MAX };

/// The code of those functions of a unit into which others are inlined.
fn with_inlined(unit: &gimli::UnitRef<Slice>) -> gimli::Result<Vec<gimli::Range>> {
    let (mut all, mut cursor, mut depth) = (Vec::new(), unit.entries(), 0);
    // functions that contain the entry: their depths, and their code until it is among the results
    let mut around: Vec<(isize, Vec<gimli::Range>)> = Vec::new();
    while let Some((step, entry)) = cursor.next_dfs()? {
        depth += step;
        while around.last().is_some_and(|(of, _)| *of >= depth) {
            around.pop();
        }
        match entry.tag() {
            gimli::DW_TAG_subprogram => around.push((depth, code(unit, entry)?)),
            gimli::DW_TAG_inlined_subroutine => {
                if let Some((_, function)) = around.last_mut() {
                    all.append(function);
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Where an entry has code.
fn code<'sections>(
    unit: &gimli::UnitRef<Slice<'sections>>,
    entry: &gimli::DebuggingInformationEntry<Slice<'sections>>,
) -> gimli::Result<Vec<gimli::Range>> {
    let (mut ranges, mut all) = (unit.die_ranges(entry)?, Vec::new());
    while let Some(range) = ranges.next()? {
        all.push(range);
    }
    Ok(all)
}

/// A section; none that is not there, or that cannot be read.
fn section<'data>(file: &ElfFile<'data>, name: &str) -> Option<Cow<'data, [u8]>> {
    contents(&file.section_by_name(name)?)
}

/// None: it cannot be read, or is compressed otherwise than by zlib or zstd.
pub(super) fn contents<'data>(
    section: &object::Section<'data, '_, &'data ReadCache<File>>,
) -> Option<Cow<'data, [u8]>> {
    let section = section.compressed_data().ok()?;
    match section.format {
        CompressionFormat::None => Some(section.data.into()),
        CompressionFormat::Zlib => Some(decompress_to_vec_zlib_with_limit(section.data, MOST).ok()?.into()),
        CompressionFormat::Zstandard => {
            Some(decompressed_zstd(section.data, section.uncompressed_size, MOST as u64)?.into())
        }
        _ => None,
    }
}

/// None: it is not of the size that the file says, or is larger than `most`.
fn decompressed_zstd(data: &[u8], size: u64, most: u64) -> Option<Vec<u8>> {
    if size > most {
        return None;
    }
    let (mut reader, mut all) = (StreamingDecoder::new(data).ok()?, Vec::new());
    // (one byte more, if there is one, is too much)
    reader.by_ref().take(size + 1).read_to_end(&mut all).ok()?;
    (all.len() as u64 == size).then_some(all)
}

impl<'data> DwarfSections<'data> {
    /// Those of a file at a path. None: it has no DWARF, or parts of it, such as names, are in another file, which is not there.
    pub fn of(file: &ElfFile<'data>, path: &Path, debug: &Path) -> Option<DwarfSections<'data>> {
        section(file, ".debug_info").filter(|section| !section.is_empty())?;
        let shared = match SharedDwarf::named_by(file) {
            Some(shared) => Some(shared_sections(&shared.find(path, debug)?)?),
            None => None,
        };
        let section = |id: gimli::SectionId| Ok::<_, ()>(section(file, id.name()).unwrap_or_default());
        let own = gimli::DwarfSections::load(section).ok()?;
        Some(DwarfSections { own, shared })
    }

    /// How many units there are, as far as they can be read.
    pub fn units(&self) -> usize {
        let mut units = self.own.borrow(|section| EndianSlice::new(section, NativeEndian)).units();
        std::iter::from_fn(|| units.next().ok().flatten()).count()
    }
}

/// All that several files share; kept in memory, unlike the sections of these.
fn shared_sections(path: &Path) -> Option<gimli::DwarfSections<Cow<'static, [u8]>>> {
    let data = ReadCache::new(regular(path)?);
    let file = ElfFile::parse(&data).ok()?;
    let section = |id: gimli::SectionId| {
        let section = section(&file, id.name()).unwrap_or_default();
        Ok::<_, ()>(Cow::Owned(section.into_owned()))
    };
    gimli::DwarfSections::load(section).ok()
}

impl<'sections> Dwarf<'sections> {
    /// None: it cannot be read.
    pub fn of(
        sections: &'sections DwarfSections<'sections>,
        split: &'sections SplitDwarf,
    ) -> Option<Dwarf<'sections>> {
        let slice = |section: &'sections Cow<[u8]>| EndianSlice::new(section, NativeEndian);
        let mut dwarf = sections.own.borrow(slice);
        if let Some(shared) = &sections.shared {
            dwarf.set_sup(shared.borrow(slice));
        }
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Dwarf { context, split, with_inlined: RefCell::default() })
    }

    /// What a lookup finds, with the split DWARF that it asks for.
    fn found<Lookup>(&self, mut lookup: LookupResult<Lookup>) -> Lookup::Output
    where
        Lookup: LookupContinuation<Buf = Slice<'sections>>,
    {
        loop {
            lookup = match lookup {
                LookupResult::Output(found) => return found,
                LookupResult::Load { load, continuation } => continuation.resume(self.split.find(&load)),
            };
        }
    }

    /// Whether others are inlined into the function at an address; also if that cannot be read.
    fn has_inlined(&self, address: u64) -> bool {
        let Some(unit) = self.found(self.context.find_dwarf_and_unit(address)) else { return false };
        let mut known = self.with_inlined.borrow_mut();
        // (by its place in memory, where it stays: units of several .dwo files have the same offset)
        let ranges = known
            .entry(std::ptr::from_ref(unit.unit))
            .or_insert_with(|| with_inlined(&unit).unwrap_or(vec![ALL]));
        ranges.iter().any(|range| range.begin <= address && address < range.end)
    }

    /// The functions at an address, the innermost inlined one first, as their names are mangled; none has no name.
    pub fn at(&self, address: u64) -> Vec<FunctionLine<Option<String>>> {
        let mut located = Vec::new();
        // (the last address has no next one, which the crate would want)
        let frames = (address < u64::MAX).then(|| self.found(self.context.find_frames(address)).ok());
        let Some(mut frames) = frames.flatten() else { return located };
        loop {
            match frames.next() {
                Ok(Some(addr2line::Frame { function, location, .. })) => {
                    let name = function.as_ref().and_then(|function| function.raw_name().ok());
                    let function = name.map(Cow::into_owned).filter(|name| !name.is_empty());
                    located.push(FunctionLine {
                        function,
                        line: location.and_then(line),
                        has_inlined: false,
                    });
                }
                Ok(None) => {
                    let has_inlined = located.len() > 1 || self.has_inlined(address);
                    match located.last_mut() {
                        Some(outermost) => outermost.has_inlined = has_inlined,
                        None if has_inlined => located.push(UNREADABLE),
                        None => {}
                    }
                    return located;
                }
                Err(_) => return vec![UNREADABLE], // who is outermost is not known
            }
        }
    }
}

fn line(location: addr2line::Location) -> Option<SourceLine> {
    let line = location.line.filter(|line| *line > 0)?;
    Some(SourceLine { file: printable(location.file?), line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn a_section_is_as_large_as_the_file_says() {
        let text = b"some text, some text, some text";
        let (data, size) = (compress_to_vec(&text[..], CompressionLevel::Fastest), text.len() as u64);
        assert_eq!(decompressed_zstd(&data, size, 1000).as_deref(), Some(&text[..]));
        for (size, most) in
            [(size + 1, 1000), (size - 1, 1000), (0, 1000), (size, size - 1), (u64::MAX, u64::MAX - 1)]
        {
            assert_eq!(decompressed_zstd(&data, size, most), None, "{size} {most}");
        }
        for cut in 0..data.len() {
            decompressed_zstd(&data[..cut], size, 1000);
        }
        assert_eq!(decompressed_zstd(b"text", 4, 1000), None);
    }
}
