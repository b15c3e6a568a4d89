//! The library that `topdown run` has loaded into programs, and how LD_PRELOAD names it.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libtopdown-preload.so";
/// Debian's directory for libraries.
const MULTIARCH: &str =
    if cfg!(target_arch = "x86_64") { "../lib/x86_64-linux-gnu" } else { "../lib/aarch64-linux-gnu" };
/// The root directory, by a path that is one only where `$LIB` is expanded (ld.so(8)): to lib/x86_64-linux-gnu, lib64, lib ...
const GNU_ROOT: &str = "/usr/$LIB/../../..";
/// musl's loader, where programs linked with it can be started.
const MUSL: &str =
    if cfg!(target_arch = "x86_64") { "/lib/ld-musl-x86_64.so.1" } else { "/lib/ld-musl-aarch64.so.1" };

/// Where the library is.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    let there = |path: &Path| path.is_file().then(|| std::path::absolute(path)).and_then(Result::ok);
    let found = match given {
        Some(path) => {
            there(path).ok_or(format!("{}: no such library; name {LIBRARY} by --preload", path.display()))?
        }
        None => {
            let own = own_path();
            let beside = own.parent().unwrap_or(Path::new(""));
            let places = ["", "../lib", "../lib64", MULTIARCH].map(|at| beside.join(at).join(LIBRARY));
            places.iter().find_map(|path| there(path)).ok_or(format!(
                "{LIBRARY} is neither in {} nor in ../lib of it; `make install` puts it there, or name it by --preload or \
                 TOPDOWN_PRELOAD",
                beside.display()
            ))?
        }
    };
    // ld.so takes either of them for the end of a name
    match found.to_str() {
        Some(name) if !name.contains([' ', ':']) => Ok(found),
        _ => Err(format!(
            "{}: LD_PRELOAD cannot name a file with a space or a colon in its path; install it elsewhere, or name a link \
             by --preload",
            found.display()
        )),
    }
}

/// Where this program is: where there is no /proc, by the name that it was executed by.
fn own_path() -> PathBuf {
    let executed = || {
        // SAFETY: it takes any number.
        let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
        if name.is_null() {
            return PathBuf::new(); // (not every emulator of Linux tells it)
        }
        // SAFETY: the kernel's copy of the name, which stays.
        let path = PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
        path.canonicalize().unwrap_or(path)
    };
    std::env::current_exe().unwrap_or_else(|_| executed())
}

/// LD_PRELOAD with ours first. Programs linked with musl, which a shell may start, cannot load the library; their loader does
/// not expand `$LIB`, so it finds no such file and passes it over, where the GNU C library's finds it. (Only where there are such
/// programs: who expands it calls readlink(2), for which a seccomp filter may kill a program that has no need of it.)
pub fn list(library: &Path, before: Option<OsString>) -> OsString {
    named(if Path::new(MUSL).exists() && expands(GNU_ROOT) { GNU_ROOT } else { "" }, library, before)
}

/// Makes regions of MPI's functions: beside the library, and loaded into ranks alone (docs/mpi.md).
const MPI: &str = "libtopdown-mpi.so";
/// 0: it is not loaded.
const NO_MPI: &str = "TOPDOWN_MPI";

/// What is loaded besides into a rank of a job, before what is to be loaded anyway; None: this is no rank.
pub fn of_ranks(library: &Path, before: Option<OsString>) -> Option<OsString> {
    let is_wanted = std::env::var_os(NO_MPI).is_none_or(|value| value != "0");
    let mpi = library.with_file_name(MPI);
    let is_rank = is_wanted && topdown_report::pattern::rank_among(std::env::vars_os()).is_some();
    if is_rank && mpi.exists() { Some(list(&mpi, before)) } else { None }
}

fn named(root: &str, library: &Path, before: Option<OsString>) -> OsString {
    let mut all = OsString::from(root);
    all.push(library);
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        all.push(":");
        all.push(before);
    }
    all
}

/// Whether the loader of the GNU C library finds files behind this path.
fn expands(root: &str) -> bool {
    let mut about = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: an address inside the C library, and room for what is known of it; its name lives as long as the library.
    let own = unsafe {
        if libc::dladdr(libc::getpid as *const libc::c_void, about.as_mut_ptr()) == 0 {
            return false;
        }
        CStr::from_ptr(about.assume_init().dli_fname)
    };
    let Ok(name) = CString::new([root.as_bytes(), own.to_bytes()].concat()) else { return false };
    // SAFETY: a C string; RTLD_NOLOAD asks for the library that is here, by whatever name, and loads nothing.
    unsafe {
        let found = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        !found.is_null() && libc::dlclose(found) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_behind_ours() {
        let all = |before: Option<&str>| list(Path::new("/l/ours.so"), before.map(OsString::from));
        let ours = all(None).into_string().unwrap();
        assert!(ours.ends_with("/l/ours.so"), "{ours}");
        assert_eq!(all(Some("")), *ours);
        assert_eq!(all(Some("a.so:b.so")), *format!("{ours}:a.so:b.so"));
    }

    #[test]
    fn a_loader_that_expands_nothing_finds_no_library() {
        if expands(GNU_ROOT) {
            let own = std::env::current_exe().unwrap();
            assert!(!Path::new(&named(GNU_ROOT, &own, None)).exists());
        }
        assert!(expands(""));
        assert!(!expands("/usr/$LIB/nowhere"));
    }
}
