//! What is to be measured, as the user wrote it: LIBRARY:FUNCTION globs.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

/// One LIBRARY:FUNCTION. Its counts are what is said of it in the end.
pub struct Pattern {
    library: Option<CString>,
    function: CString,
    /// Functions it named.
    pub found: usize,
    /// Places that call one of them, and now call its stub.
    pub hooked: usize,
    /// Functions it named that cannot be hooked.
    pub refused: BTreeSet<String>,
}

/// The patterns of a list. A colon divides one; C++'s two colons do not.
pub fn parse(list: &str) -> Vec<Pattern> {
    split(list)
        .map(|text| {
            let colon = text.find(':').filter(|&at| !text[at + 1..].starts_with(':'));
            let (library, function) = match colon {
                Some(at) => (c_string(&text[..at]), &text[at + 1..]),
                None => (None, text),
            };
            let function = c_string(function).unwrap_or_else(|| c"*".to_owned());
            Pattern { library, function, found: 0, hooked: 0, refused: BTreeSet::new() }
        })
        .collect()
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty())
}

fn c_string(text: &str) -> Option<CString> {
    if text.is_empty() { None } else { CString::new(text).ok() }
}

impl Pattern {
    /// Whether it means an object of one of these names.
    pub fn wants_library(&self, names: &[&CStr]) -> bool {
        self.library.as_deref().is_none_or(|glob| names.iter().any(|name| matches(glob, name)))
    }

    /// Whether it says of which object.
    #[cfg_attr(target_arch = "aarch64", allow(dead_code))]
    pub fn names_library(&self) -> bool {
        self.library.is_some()
    }

    pub fn wants_function(&self, name: &CStr) -> bool {
        matches(&self.function, name)
    }

    pub fn text(&self) -> String {
        let function = self.function.to_string_lossy();
        self.library.as_ref().map_or(function.to_string(), |l| format!("{}:{function}", l.to_string_lossy()))
    }
}

/// Whether `name` is as the glob says.
pub fn matches(glob: &CStr, name: &CStr) -> bool {
    // SAFETY: both are C strings.
    unsafe { libc::fnmatch(glob.as_ptr(), name.as_ptr(), 0) == 0 }
}

/// Functions that the trampoline cannot stand between: those that return twice or on another stack, those whose
/// return address matters to them, and those that are not called as functions are.
const REFUSED: [&CStr; 35] = [
    c"setjmp",
    c"_setjmp",
    c"sigsetjmp",
    c"__sigsetjmp",
    c"longjmp",
    c"_longjmp",
    c"siglongjmp",
    c"__longjmp_chk",
    c"____longjmp_chk",
    c"vfork",
    c"__vfork",
    c"clone",
    c"__clone",
    c"clone3",
    c"getcontext",
    c"setcontext",
    c"makecontext",
    c"swapcontext",
    c"_exit",
    c"_Exit",
    c"__libc_start_main",
    c"dlopen",
    c"dlmopen",
    c"dlsym",
    c"dlvsym",
    c"__tls_get_addr",
    c"__morestack",
    c"mcount",
    c"_mcount",
    c"__fentry__",
    c"_dl_*",
    c"_Unwind_*",
    c"__regcall*",
    c"__cyg_profile_func_*",
    c"td_region_*",
];

/// Whether no function of this name is hooked.
pub fn refused(name: &CStr) -> bool {
    REFUSED.iter().any(|glob| matches(glob, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_divides_library_and_function() {
        let patterns = parse(" libm.so.6:exp, libopenblas*:dgemm_ ,,cos,");
        let texts: Vec<String> = patterns.iter().map(Pattern::text).collect();
        assert_eq!(texts, ["libm.so.6:exp", "libopenblas*:dgemm_", "cos"]);
        assert!(patterns[0].wants_library(&[c"libm-2.31.so", c"libm.so.6"]));
        assert!(!patterns[0].wants_library(&[c"libmvec.so.1"]));
        assert!(patterns[1].wants_library(&[c"libopenblas.so.0"]));
        assert!(patterns[2].wants_library(&[c"anything"]));
        assert!(patterns[0].wants_function(c"exp") && !patterns[0].wants_function(c"exp2"));
    }

    #[test]
    fn two_colons_do_not_divide() {
        assert_eq!(parse("a::b")[0].text(), "a::b");
        assert!(parse("a::b")[0].wants_library(&[c"x"]));
        assert_eq!(parse("lib:")[0].text(), "lib:*");
    }

    #[test]
    fn what_returns_twice_is_refused() {
        assert!(refused(c"setjmp") && refused(c"_dl_fixup") && refused(c"vfork"));
        assert!(!refused(c"exp") && !refused(c"fork"));
    }
}
