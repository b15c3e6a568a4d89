//! Makes the tables of CPUs from the texts of their cores (`cpus/*.txt`). Gives the shared library its SONAME, and keeps it loaded:
//! threads point the kernel to its restartable sequences. `abi/cc` adds the symbol versions.

#[path = "src/cpu/expression.rs"]
mod expression;
#[path = "src/cpu/groups.rs"]
mod groups;
#[path = "build/tables.rs"]
mod tables;
#[path = "src/cpu/text.rs"]
mod text;

use groups::Groups;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tables::Read;
use text::Text;

const TEXTS: &str = "cpus";

fn main() {
    for changed in ["build.rs", "build", "abi", "src/cpu", TEXTS] {
        println!("cargo:rerun-if-changed={changed}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtopdown.so.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");

    let mut paths: Vec<PathBuf> = fs::read_dir(TEXTS).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let cores: Vec<Read> = paths.iter().map(|path| core(path)).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    fs::write(out.join("cpus.rs"), tables::tables(&cores)).unwrap();
}

/// What is wrong with a text ends the build.
fn core(path: &Path) -> Read {
    let file = path.display();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let text = Text::read(&text).unwrap_or_else(|fault| panic!("{file}:{}: {}", fault.line, fault.what));
    let groups =
        (text.counters > 0).then(|| Groups::of(&text).unwrap_or_else(|what| panic!("{file}: {what}")));
    (text, groups)
}
