//! Names of functions as their source has them: those that a compiler has mangled, as those of hooked and instrumented functions
//! of C++ and Rust are.
#![forbid(unsafe_code)]

use cpp_demangle::{DemangleOptions, Symbol};
use std::fmt::{self, Write};

/// Longer ones stay as they are. (A mangled name may refer to its own parts, and so stand for one of any length.)
const MOST_BYTES: usize = 2000;

/// A text of at most so many bytes.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > MOST_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

/// The function of a mangled name; None: it is not mangled, or not readable.
pub fn function(name: &str) -> Option<String> {
    let mut out = Short(String::new());
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(out, "{rust:#}").ok()?; // without the hash
        return Some(out.0);
    }
    let symbol = Symbol::new(name.as_bytes()).ok()?;
    symbol.structured_demangle(&mut out, &DemangleOptions::new().no_return_type()).ok()?;
    Some(out.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_both_languages_are_named_as_in_their_source() {
        let is = |name, function_is: &str| assert_eq!(function(name).as_deref(), Some(function_is));
        is(
            "_ZN4json5Value5parseERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            "json::Value::parse(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
        );
        is("_Z5solvei", "solve(int)");
        is("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
        is("_RNvC7mycrate5solve", "mycrate::solve");
        for plain in ["solve", "_Z", "_Zebra", "_R", "_ZN", "td _Z5solvei"] {
            assert_eq!(function(plain), None, "{plain}");
        }
    }

    #[test]
    fn a_name_that_stands_for_an_endless_one_stays_as_it_is() {
        // each parameter is a pair of the one before
        let mut name = String::from("_Z1fSt4pairIiiE");
        for part in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars() {
            name += &format!("S_IS{part}_S{part}_E");
        }
        assert!(name.len() < 512 && Symbol::new(&name).is_ok(), "{name}");
        assert_eq!(function(&name), None);
    }
}
