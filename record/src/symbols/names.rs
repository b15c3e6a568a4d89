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
    printable(&demangled(name))
}

fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    let cpp = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name.as_bytes()).ok());
    cpp.flatten()
        .and_then(|symbol| symbol.demangle(&cpp_demangle::DemangleOptions::default()).ok())
        .unwrap_or(name.into())
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
    }
}
