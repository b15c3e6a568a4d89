//! Names of functions as their source has them: those that a compiler has mangled, as those of hooked and instrumented functions
//! of C++ and Rust are.
#![forbid(unsafe_code)]

use cpp_demangle::{DemangleOptions, Symbol};
use std::fmt::{self, Write};

/// Longer ones stay as they are. (A mangled name may refer to its own parts, and so stand for one of any length.)
const MOST_BYTES: usize = 2000;

/// A text of at most so many bytes.
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > MOST_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

/// The function of a mangled name; None: it is not mangled, or not readable.
#[must_use]
pub fn function(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return None;
    }
    let mut out = BoundedText(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(out, "{rust:#}").ok()?; // without the hash
        return Some(out.0);
    }
    if name.is_ascii() { cpp(name) } else { cpp_of_any_letters(name) }
}

fn cpp(name: &str) -> Option<String> {
    let mut out = BoundedText(String::new());
    let symbol = Symbol::new(name.as_bytes()).ok()?;
    symbol.structured_demangle(&mut out, &DemangleOptions::new().no_return_type()).ok()?;
    Some(out.0)
}

/// The same of a name whose identifiers have letters beyond ASCII, which the demangler refuses: another identifier of the same length
/// stands for each of them meanwhile.
fn cpp_of_any_letters(name: &str) -> Option<String> {
    let (mut ascii, mut rest, mut replaced) = (String::new(), name, Vec::new());
    while let Some(digits) = rest.find(|c: char| c.is_ascii_digit()) {
        ascii += &rest[..digits];
        rest = &rest[digits..];
        let number = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        ascii += number;
        rest = &rest[number.len()..];
        let identifier =
            number.parse().ok().and_then(|length| rest.get(..length)).filter(|of| is_identifier(of));
        // (a number that is none's length, as of an array: its letters come next)
        let Some(identifier) = identifier else { continue };
        if identifier.is_ascii() {
            ascii += identifier;
        } else {
            let stand_in = format!("{:z<width$}", format!("zz{}", replaced.len()), width = identifier.len());
            if stand_in.len() > identifier.len() || name.contains(&stand_in) {
                return None;
            }
            ascii += &stand_in;
            replaced.push((stand_in, identifier));
        }
        rest = &rest[identifier.len()..];
    }
    ascii += rest;
    let mut function = cpp(&ascii)?;
    for (stand_in, identifier) in replaced {
        function = function.replace(&stand_in, identifier);
    }
    Some(function)
}

/// Whether an identifier of C++ may be written so, and whole. (A literal's number is followed by E, an array's by _.)
fn is_identifier(text: &str) -> bool {
    let letter = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '_' || c == '$';
    !text.is_empty() && text.chars().all(letter) && (text.is_ascii() || !text.starts_with(['E', '_']))
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
    fn identifiers_may_have_letters_beyond_ascii() {
        let is = |name, function_is: &str| assert_eq!(function(name).as_deref(), Some(function_is), "{name}");
        is("_Z6naïvev", "naïve()");
        is("_ZN3foo6naïveEi", "foo::naïve(int)");
        is("_ZN7größe3barILi5E6naïveEEvv", "größe::bar<5, naïve>()");
        is("_Z1fPA10_6naïve", "f(naïve (*) [10])");
        is("_ZN8größe26naïveES_", "größe2::naïve(größe2)");
        is("_Z6ünderIiET_S0_", "ünder<int>(int)");
        is("_Z3zz06naïve", "zz0(naïve)");
        assert_eq!(function("_Z12температvT_"), None);
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
