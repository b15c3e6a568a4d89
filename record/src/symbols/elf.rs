//! Functions and lines of ELF files: by their symbols, and by what DWARF knows of lines and inlined functions.
#![forbid(unsafe_code)]

use super::dwarf::{Dwarf, DwarfSections};
use super::names::{is_mangled, readable};
use super::split::SplitDwarf;
use super::{FunctionLine, separate};
pub(super) use crate::elf_file::{ElfFile, regular};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// Things that begin at addresses.
pub(super) struct ByAddress<T>(Vec<(u64, u64, T)>);

impl<T> ByAddress<T> {
    /// Of starts and sizes; who has no size ends where the next begins.
    pub fn new(mut all: Vec<(u64, u64, T)>) -> ByAddress<T> {
        all.sort_by_key(|(start, size, _)| (*start, std::cmp::Reverse(*size)));
        ByAddress(all)
    }

    /// What an address is in; of several that begin at one address the longest.
    pub fn at(&self, address: u64) -> Vec<&T> {
        let next = self.0.partition_point(|(start, ..)| *start <= address);
        let Some((start, ..)) = self.0[..next].last() else { return Vec::new() };
        let here = &self.0[self.0.partition_point(|(other, ..)| other < start)..next];
        let size = here[0].1;
        let end = match size {
            0 => self.0.get(next).map_or(u64::MAX, |(start, ..)| *start),
            size => start.saturating_add(size),
        };
        let longest = here.iter().filter(|(_, other, _)| address < end && *other == size);
        longest.map(|(_, _, thing)| thing).collect()
    }
}

/// Where an offset in a file has its address.
fn address(file: &ElfFile, offset: u64) -> Option<u64> {
    let within = |segment: object::Segment<_>| {
        let (start, size) = segment.file_range();
        let inside = offset.checked_sub(start).filter(|inside| *inside < size)?;
        segment.address().checked_add(inside)
    };
    file.segments().find_map(within)
}

/// What is known of offsets in a file, which was at that path, and whose debug file may be in a directory, and a note if parts of its DWARF are missing; None: it is
/// no program.
pub(super) fn located(
    file: File,
    path: &Path,
    offsets: &BTreeSet<u64>,
    debug: &Path,
    notes: &mut Vec<String>,
) -> Option<Vec<Vec<FunctionLine<String>>>> {
    let data = ReadCache::new(file);
    let file = ElfFile::parse(&data).ok()?;
    let sections = DwarfSections::of(&file, path, debug);
    let of_debug = if sections.is_none() { separate::of(&file, path, debug) } else { None };
    let data = of_debug.as_ref().and_then(|path| regular(path)).map(ReadCache::new);
    let separate = data.as_ref().and_then(|data| ElfFile::parse(data).ok());
    let files = [Some(&file), separate.as_ref()].into_iter().flatten();
    let symbols =
        files.flat_map(|file| code(file, file.symbols())).chain(code(&file, file.dynamic_symbols()));
    let symbols = ByAddress::new(symbols.collect());
    let sections = sections.or_else(|| DwarfSections::of(separate.as_ref()?, of_debug.as_ref()?, debug));
    let split = sections.as_ref().map(|sections| SplitDwarf::of(path, of_debug.as_deref(), sections));
    let dwarf =
        sections.as_ref().zip(split.as_ref()).and_then(|(sections, split)| Dwarf::of(sections, split));
    let at = |offset: &u64| {
        let Some(address) = address(&file, *offset) else { return Vec::new() };
        let here = symbols.at(address).into_iter().filter(|(_, end)| address < *end);
        let names = here.filter_map(|(symbol, _)| symbol.name().ok());
        let symbol = names.filter(|name| !name.is_empty()).min().or_else(|| linkage(&file, address));
        named(dwarf.as_ref().map_or(Vec::new(), |dwarf| dwarf.at(address)), symbol)
    };
    let known = offsets.iter().map(at).collect();
    notes.extend(split.as_ref().and_then(SplitDwarf::note));
    Some(known)
}

/// Symbols of functions, each with its start, its size, and where its section ends: one without a size reaches no further.
fn code<'file, 'data: 'file, Symbol: ObjectSymbol<'data>>(
    file: &'file ElfFile<'data>,
    symbols: impl Iterator<Item = Symbol>,
) -> impl Iterator<Item = (u64, u64, (Symbol, u64))> {
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    functions.map(|symbol| {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let end = section.map_or(u64::MAX, |section| section.address().saturating_add(section.size()));
        (symbol.address(), symbol.size(), (symbol, end))
    })
}

/// What code is called that the linker made for calls of other objects' functions.
fn linkage(file: &ElfFile, address: u64) -> Option<&'static str> {
    let is_here = |section: &object::Section<_>| {
        address.checked_sub(section.address()).is_some_and(|inside| inside < section.size())
    };
    let section = file.sections().find(is_here)?;
    section.name().is_ok_and(|name| name.starts_with(".plt")).then_some("[plt]")
}

/// Functions with their names; the outermost one has this symbol, and no name ("") if there is neither.
fn named(
    mut functions: Vec<FunctionLine<Option<String>>>,
    symbol: Option<&str>,
) -> Vec<FunctionLine<String>> {
    let outermost = functions.pop().unwrap_or(FunctionLine::without_line(None));
    let FunctionLine { function, line, has_inlined } = outermost;
    let name = match (function, symbol) {
        // (GCC leaves the names of what is local to a file of C++ as they are in the source, without their namespaces)
        (Some(name), Some(symbol)) if is_mangled(symbol) && !is_mangled(&name) => Some(symbol.into()),
        (Some(name), _) => Some(name),
        (None, symbol) => symbol.map(str::to_string),
    };
    if functions.is_empty() && name.is_none() && line.is_none() {
        return Vec::new();
    }
    let inlined = |FunctionLine { function, line, has_inlined }: FunctionLine<Option<String>>| {
        let function = function.map_or("[unnamed]".into(), |name| readable(&name));
        FunctionLine { function, line, has_inlined }
    };
    let mut functions: Vec<FunctionLine<String>> = functions.into_iter().map(inlined).collect();
    functions.push(FunctionLine { function: readable(&name.unwrap_or_default()), line, has_inlined });
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::SourceLine;

    #[test]
    fn things_end_where_they_say_or_where_the_next_begins() {
        let things =
            ByAddress::new(vec![(10, 0, "b"), (0, 5, "a"), (20, 10, "c"), (20, 10, "d"), (20, 2, "e")]);
        let at = |address| things.at(address).into_iter().copied().collect::<Vec<_>>();
        assert_eq!([4, 10, 19].map(at), [["a"], ["b"], ["b"]]);
        assert_eq!(at(21), ["c", "d"]);
        assert!(at(5).is_empty() && at(30).is_empty());
        assert!(ByAddress::new(vec![(u64::MAX - 1, u64::MAX, "z")]).at(0).is_empty());
    }

    #[test]
    fn the_outermost_function_has_the_name_that_says_more() {
        let names = |names: &[Option<&str>], symbol| {
            let functions = names.iter().map(|name| FunctionLine::without_line(name.map(str::to_string)));
            let named = named(functions.collect(), symbol).into_iter();
            named.map(|located| located.function).collect::<Vec<String>>()
        };
        assert_eq!(names(&[Some("in"), Some("f")], Some("f.part.0")), ["in", "f"]);
        assert_eq!(names(&[Some("in"), Some("f")], Some("_ZN3foo1fEv")), ["in", "foo::f()"]);
        assert_eq!(names(&[None, None], Some("f")), ["[unnamed]", "f"]);
        assert_eq!(names(&[], Some("f")), ["f"]);
        assert!(names(&[None], None).is_empty() && names(&[], None).is_empty());
        let line = Some(SourceLine { file: "a.s".into(), line: 7 });
        let of_no_name =
            named(vec![FunctionLine { line: line.clone(), ..FunctionLine::without_line(None) }], None);
        assert_eq!(of_no_name, [FunctionLine { line, ..FunctionLine::without_line(String::new()) }]);
    }
}
