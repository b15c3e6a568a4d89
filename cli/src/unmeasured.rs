//! Programs into which the library cannot be loaded, and why a program left no table file.

use crate::sys;
use object::LittleEndian;
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, Machine};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the library is for.
const MACHINE: Machine = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };

/// Why, and what to do about it.
pub fn why(program: &OsStr) -> String {
    let Some(path) = find(program) else {
        return format!("{} was not found again", program.to_string_lossy());
    };
    let path = &path;
    let name = path.display();
    let Ok(status) = fs::metadata(path) else { return format!("{name} cannot be looked at") };
    let mode = status.permissions().mode();
    if mode & 0o6000 != 0 && (status.uid() != 0 || mode & 0o2000 != 0 || !is_root()) {
        return format!(
            "{name} is setuid or setgid, and LD_PRELOAD does not reach such a program; run it as its owner"
        );
    }
    match sys::mapped(path).map(|elf| about(&elf).linked) {
        Ok(Linkage::Statically) => format!(
            "{name} is linked statically, and LD_PRELOAD does not reach such a program; link it dynamically, or measure \
             in it with topdown.h"
        ),
        Ok(Linkage::Not) => format!(
            "{name} is a script whose interpreter LD_PRELOAD does not reach (a static or setuid program), or which \
             unset LD_PRELOAD"
        ),
        Ok(Linkage::Otherwise) => format!("{name} is for another kind of CPU than libtopdown-preload.so"),
        Ok(Linkage::Dynamically) => format!(
            "{name} left no table file: it could not write one (disk full, no memory?), has file capabilities, which keep \
             LD_PRELOAD away, or ld.so did not load the library and says so"
        ),
        Err(error) => format!("{name} left no table file, and why cannot be seen: {error}"),
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Where execvp found it.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|directory| directory.join(Path::new(program))).find(executable)
}

/// Why a program would not start with the library loaded; None: it would, or nothing speaks against it.
pub fn refuses(program: &OsStr) -> Option<&'static str> {
    // (to open a FIFO is to wait for its writer)
    let path = find(program).filter(|path| path.is_file())?;
    let elf = sys::mapped(&path).ok()?;
    if elf.starts_with(ELF_32) {
        return Some("it is a 32-bit program, and the library is for 64-bit ones"); // (ld.so would say so among its errors)
    }
    let about = about(&elf);
    if about.interpreter.contains("/ld-musl-") {
        Some("it is linked with musl, and the library is for programs of the GNU C library")
    } else if about.needed.iter().any(|name| name.starts_with("libasan.so")) {
        Some("AddressSanitizer is to be the first library of a program")
    } else {
        None
    }
}

/// Whether a program is for 32 bits. (To open a FIFO is to wait for its writer.)
pub fn is_32_bit(program: &OsStr) -> bool {
    let path = find(program).filter(|path| path.is_file());
    let file = path.and_then(|path| fs::File::open(path).ok());
    let mut begin = [0; ELF_32.len()];
    file.is_some_and(|mut file| file.read_exact(&mut begin).is_ok() && begin == *ELF_32)
}

/// Whether LD_PRELOAD reaches a program that is in these bytes.
pub fn is_reached(elf: &[u8]) -> bool {
    about(elf).linked == Linkage::Dynamically
}

/// How an executable for 32 bits begins: its class is ELFCLASS32.
const ELF_32: &[u8; 5] = b"\x7fELF\x01";

#[derive(Debug, PartialEq)]
enum Linkage {
    Dynamically,
    Statically,
    /// Not for this kind of CPU.
    Otherwise,
    /// No ELF file.
    Not,
}

/// What an executable says of how it is to be started.
struct About {
    linked: Linkage,
    /// Empty: there is none.
    interpreter: String,
    /// Libraries that it names itself.
    needed: Vec<String>,
}

/// How an executable is linked: the kernel starts ld.so if it has a PT_INTERP.
fn about(elf: &[u8]) -> About {
    let none = |linked| About { linked, interpreter: String::new(), needed: Vec::new() };
    if !elf.starts_with(b"\x7fELF") {
        return none(Linkage::Not);
    }
    let Ok(file) = ElfFile64::<LittleEndian>::parse(elf) else { return none(Linkage::Otherwise) };
    let endian = LittleEndian;
    if file.elf_header().e_machine(endian) != MACHINE {
        return none(Linkage::Otherwise);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut segments = file.elf_program_headers().iter();
    let interpreter = segments.find_map(|one| one.interpreter(endian, elf).ok().flatten());
    let Some(interpreter) = interpreter.map(text) else { return none(Linkage::Statically) };
    let table = file.elf_dynamic_table().unwrap_or_default();
    let needed = table.iter().filter(|entry| entry.tag == DT_NEEDED);
    let needed = needed.filter_map(|entry| table.string(entry).ok()).map(text).collect();
    About { linked: Linkage::Dynamically, interpreter, needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_dynamic_and_without_its_interpreter_static() {
        let mut own = fs::read("/proc/self/exe").unwrap();
        let linked = |elf: &[u8]| about(elf).linked;
        assert_eq!(linked(&own), Linkage::Dynamically);
        let found = about(&own);
        assert!(found.interpreter.contains("ld-linux") && found.needed.contains(&"libc.so.6".to_owned()));
        let table = u64::from_le_bytes(own[32..40].try_into().unwrap()) as usize;
        let entries = u16::from_le_bytes(own[56..58].try_into().unwrap()) as usize;
        for entry in 0..entries {
            let kind = table + 56 * entry;
            if own[kind] == 3 {
                own[kind] = 0;
            }
        }
        assert_eq!(linked(&own), Linkage::Statically);
        own[18] = 8; // EM_MIPS
        assert_eq!(linked(&own), Linkage::Otherwise);
        assert_eq!(linked(b"#!/bin/sh\n"), Linkage::Not);
        assert_eq!(linked(b"\x7fELF\x02\x01"), Linkage::Otherwise);
        assert_eq!(linked(&own[..19].iter().copied().chain([0]).collect::<Vec<_>>()), Linkage::Otherwise);
    }

    #[test]
    fn a_32_bit_program_is_refused() {
        let path = std::env::temp_dir().join(format!("topdown-32-bit-{}", std::process::id()));
        let refused = |class: u8| {
            let mut own = fs::read("/proc/self/exe").unwrap();
            own[4] = class;
            fs::write(&path, own).unwrap();
            refuses(path.as_os_str())
        };
        assert!(refused(1).unwrap().contains("32-bit"));
        assert!(is_32_bit(path.as_os_str()));
        assert_eq!(refused(2), None);
        assert!(!is_32_bit(path.as_os_str()));
        fs::remove_file(&path).unwrap();
    }
}
