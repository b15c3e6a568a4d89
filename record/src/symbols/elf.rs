//! Functions and lines of ELF files: by their symbols, and by what DWARF knows of lines and inlined functions.
#![forbid(unsafe_code)]

use super::dwarf::{Dwarf, DwarfSections};
use super::names::{is_mangled, readable};
use super::{Located, separate};
pub(super) use crate::elf_file::{ElfFile, regular};
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::BTreeSet;
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

/// What is known of offsets in a file, whose debug file may be in a directory; None: it is no program.
pub(super) fn located(path: &Path, offsets: &BTreeSet<u64>, debug: &Path) -> Option<Vec<Located<String>>> {
    let data = ReadCache::new(regular(path)?);
    let file = ElfFile::parse(&data).ok()?;
    let sections = DwarfSections::of(&file);
    let separate = if sections.is_none() { separate::of(&file, path, debug) } else { None };
    let separate = separate.as_ref().and_then(|data| ElfFile::parse(data).ok());
    let files = [Some(&file), separate.as_ref()];
    let symbols = files.into_iter().flatten().flat_map(|file| file.symbols()).chain(file.dynamic_symbols());
    let code = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let symbols = ByAddress::new(code.map(|symbol| (symbol.address(), symbol.size(), symbol)).collect());
    let sections = sections.or_else(|| separate.as_ref().and_then(DwarfSections::of));
    let dwarf = sections.as_ref().and_then(Dwarf::of);
    let at = |offset: &u64| {
        let Some(address) = address(&file, *offset) else { return Located::default() };
        let names = symbols.at(address).into_iter().filter_map(|symbol| symbol.name().ok());
        let symbol = names.filter(|name| !name.is_empty()).min();
        let Located { functions, has_inlined, line } =
            dwarf.as_ref().map_or(Located::default(), |dwarf| dwarf.at(address));
        Located { functions: named(functions, symbol), has_inlined, line }
    };
    Some(offsets.iter().map(at).collect())
}

/// Names of functions, the outermost of which has this symbol.
fn named(mut functions: Vec<Option<String>>, symbol: Option<&str>) -> Vec<String> {
    let outermost = match (functions.pop().flatten(), symbol) {
        // (GCC leaves the names of what is local to a file of C++ as they are in the source, without their namespaces)
        (Some(name), Some(symbol)) if is_mangled(symbol) && !is_mangled(&name) => Some(symbol.into()),
        (Some(name), _) => Some(name),
        (None, symbol) => symbol.map(str::to_string),
    };
    if functions.is_empty() && outermost.is_none() {
        return Vec::new();
    }
    functions.push(outermost);
    let readable = |name: Option<String>| name.map_or("[unnamed]".into(), |name| readable(&name));
    functions.into_iter().map(readable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let some = |name: &str| Some(name.to_string());
        assert_eq!(named(vec![some("in"), some("f")], Some("f.part.0")), ["in", "f"]);
        assert_eq!(named(vec![some("in"), some("f")], Some("_ZN3foo1fEv")), ["in", "foo::f()"]);
        assert_eq!(named(vec![None, None], Some("f")), ["[unnamed]", "f"]);
        assert_eq!(named(Vec::new(), Some("f")), ["f"]);
        assert!(named(vec![None], None).is_empty() && named(Vec::new(), None).is_empty());
    }
}
