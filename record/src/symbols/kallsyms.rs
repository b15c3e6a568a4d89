//! The kernel's symbols, as /proc/kallsyms has them: an address, a type, a name, and for a module's its name in brackets.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

/// No function is longer: farther behind a symbol is something else.
const LONGEST: u64 = 1 << 20;

struct KernelSymbol {
    address: u64,
    is_code: bool,
    name: String,
    /// With its brackets; None: the kernel itself.
    module: Option<String>,
}

/// All symbols, by address.
pub(super) struct KernelSymbols(Vec<KernelSymbol>);

fn symbol(line: &str) -> Option<KernelSymbol> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?.into();
    Some(KernelSymbol { address, is_code, name, module: words.next().map(str::to_string) })
}

impl KernelSymbols {
    /// Those of a file; none if it cannot be read, or shows no addresses.
    pub fn read(path: &Path) -> KernelSymbols {
        let text = fs::read_to_string(path).unwrap_or_default();
        let shown = text.lines().filter_map(symbol).filter(|symbol| symbol.address > 0);
        let mut all: Vec<KernelSymbol> = shown.collect();
        all.sort_by_key(|symbol| symbol.address); // (of those at one address the first stays the first)
        KernelSymbols(all)
    }

    pub fn are_hidden(&self) -> bool {
        self.0.is_empty()
    }

    /// The function at an address, and its module.
    pub fn at(&self, address: u64) -> Option<(&str, Option<&str>)> {
        let behind = self.0.partition_point(|symbol| symbol.address <= address);
        let last = self.0[..behind].last().filter(|last| address - last.address < LONGEST)?;
        let first = self.0.partition_point(|symbol| symbol.address < last.address);
        let code = self.0[first..behind].iter().find(|symbol| symbol.is_code)?;
        Some((&code.name, code.module.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tests::Scratch;

    const SHOWN: &str = "0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t do_one
ffffffff81000200 D table
ffffffffc0000000 t helper\t[ext4]
not a line
ffffffff81000180 W weak
";

    #[test]
    fn an_address_is_of_the_function_before_it() {
        let scratch = Scratch::new("kallsyms");
        let path = scratch.0.join("kallsyms");
        fs::write(&path, SHOWN).unwrap();
        let symbols = KernelSymbols::read(&path);
        assert!(!symbols.are_hidden());
        let at = |address| symbols.at(address);
        assert_eq!(at(0xffff_ffff_8100_0000), Some(("_stext", None)));
        assert_eq!(at(0xffff_ffff_8100_00ff), Some(("_stext", None)));
        assert_eq!(at(0xffff_ffff_8100_0100), Some(("do_one", None)));
        assert_eq!(at(0xffff_ffff_8100_01ff), Some(("weak", None)));
        assert_eq!(at(0xffff_ffff_c000_0010), Some(("helper", Some("[ext4]"))));
        // data, before the first, and far behind the last
        for address in [0xffff_ffff_8100_0210, 0xffff_ffff_80ff_ffff, 0xffff_ffff_d000_0000] {
            assert_eq!(at(address), None, "{address:x}");
        }
    }

    #[test]
    fn addresses_that_are_hidden_name_nothing() {
        let scratch = Scratch::new("kallsyms-hidden");
        let path = scratch.0.join("kallsyms");
        fs::write(&path, "0000000000000000 T _text\n0000000000000000 t do_one\n").unwrap();
        for path in [path, scratch.0.join("nothing")] {
            let symbols = KernelSymbols::read(&path);
            assert!(symbols.are_hidden() && symbols.at(0xffff_ffff_8100_0000).is_none());
        }
    }
}
