//! Why a program left no table file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why, and what to do about it.
pub fn why(program: &OsStr) -> String {
    let Some(path) = find(program) else {
        return format!("{} was not found again", program.to_string_lossy());
    };
    let path = &path;
    let name = path.display();
    let Ok(about) = fs::metadata(path) else { return format!("{name} cannot be looked at") };
    let mode = about.permissions().mode();
    if mode & 0o6000 != 0 && (about.uid() != 0 || mode & 0o2000 != 0 || !is_root()) {
        return format!(
            "{name} is setuid or setgid, and LD_PRELOAD does not reach such a program; run it as its owner"
        );
    }
    match fs::read(path).as_deref().map(linked) {
        Ok(Linked::Statically) => format!(
            "{name} is linked statically, and LD_PRELOAD does not reach such a program; link it dynamically, or measure \
             in it with topdown.h"
        ),
        Ok(Linked::Not) => format!(
            "{name} is a script whose interpreter LD_PRELOAD does not reach (a static or setuid program), or which \
             unset LD_PRELOAD"
        ),
        Ok(Linked::Otherwise) => format!("{name} is for another kind of CPU than libtopdown-preload.so"),
        Ok(Linked::Dynamically) => format!(
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
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|directory| directory.join(Path::new(program))).find(executable)
}

#[derive(Debug, PartialEq)]
enum Linked {
    Dynamically,
    Statically,
    /// Not for x86-64.
    Otherwise,
    /// No ELF file.
    Not,
}

/// How an executable is linked: the kernel starts ld.so if it has a PT_INTERP.
fn linked(elf: &[u8]) -> Linked {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, size: usize| {
        let bytes = elf.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte)))
    };
    if !elf.starts_with(b"\x7fELF") {
        return Linked::Not;
    }
    // ELFCLASS64, little endian, EM_X86_64
    if elf.get(4..6) != Some(&[2, 1]) || number(18, 2) != Some(62) {
        return Linked::Otherwise;
    }
    let (Some(table), Some(size), Some(entries)) = (number(32, 8), number(54, 2), number(56, 2)) else {
        return Linked::Statically;
    };
    let kind = |k: u64| number(usize::try_from(table.checked_add(k * size)?).ok()?, 4);
    if (0..entries).any(|k| kind(k) == Some(PT_INTERP.into())) {
        Linked::Dynamically
    } else {
        Linked::Statically
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_dynamic_and_without_its_interpreter_static() {
        let mut own = fs::read("/proc/self/exe").unwrap();
        assert_eq!(linked(&own), Linked::Dynamically);
        let table = u64::from_le_bytes(own[32..40].try_into().unwrap()) as usize;
        let entries = u16::from_le_bytes(own[56..58].try_into().unwrap()) as usize;
        for entry in 0..entries {
            let kind = table + 56 * entry;
            if own[kind] == 3 {
                own[kind] = 0;
            }
        }
        assert_eq!(linked(&own), Linked::Statically);
        own[18] = 183;
        assert_eq!(linked(&own), Linked::Otherwise);
        assert_eq!(linked(b"#!/bin/sh\n"), Linked::Not);
        assert_eq!(linked(b"\x7fELF\x02\x01"), Linked::Otherwise);
        assert_eq!(linked(&own[..19].iter().copied().chain([0]).collect::<Vec<_>>()), Linked::Otherwise);
    }
}
