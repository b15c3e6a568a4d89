//! Names of functions as people write them.
#![forbid(unsafe_code)]

/// A compiler has encoded parameters and namespaces in it.
pub(super) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// Without characters that a terminal obeys.
pub(crate) fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Demangled, and printable.
pub(super) fn readable(name: &str) -> String {
    printable(&topdown_report::function_name(name).unwrap_or_else(|| name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled() {
        assert_eq!(readable("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(readable("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(readable("main"), "main");
        assert_eq!(readable("a\x1b[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(readable("_Zebra"), "_Zebra");
    }
}
