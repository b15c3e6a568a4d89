//! Split DWARF: .dwo files and packages of them.

use super::*;
use std::os::unix::fs::FileExt;

/// A program in a directory of its own.
struct Split {
    directory: Scratch,
    program: String,
    outer: &'static str,
}

/// What is known of each byte of `outer`, and the notes.
type Known = (Vec<Vec<FunctionLine<Symbol>>>, Vec<String>);

const VERSIONS: [&str; 2] = ["-gdwarf-4", "-gdwarf-5"];
const DWO: &str = "objects/source.dwo";

impl Split {
    fn new(name: &str, language: &str) -> Split {
        let directory = Scratch::new(name);
        fs::create_dir_all(directory.path("objects")).unwrap();
        let program = directory.path("program").display().to_string();
        let outer = if language == "c" { "outer" } else { "_Z5outerj" };
        let split = Split { directory, program, outer };
        split.write("");
        split
    }

    /// The program above with what is inlined in a header, so that calls are in another file, and with a type.
    fn write(&self, more: &str) {
        let at = SOURCE.find("__attribute__((noinline)) void outer").unwrap();
        fs::write(self.directory.path("source.h"), &SOURCE[..at]).unwrap();
        let text = format!("#include \"source.h\"\n{}struct Two {{ int a, b; }} two;\n{more}", &SOURCE[at..]);
        fs::write(self.directory.path("source"), text).unwrap();
    }

    fn tool(&self, words: &str) {
        tool(&self.directory.0, words);
    }

    /// Compiles it: the names of the source and the .dwo file are relative.
    fn compile(&self, flags: &str) {
        let language = if self.outer == "outer" { "c" } else { "c++" };
        self.tool(&format!("cc -O2 {flags} -fPIC -x {language} -c source -o objects/source.o"));
        self.tool("cc -shared -nostdlib -Wl,--build-id -o program objects/source.o");
    }

    fn known(&self) -> Known {
        known_at(&self.program, &offsets_of(&self.program, self.outer))
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.directory.path(name)).unwrap();
    }
}

fn known_at(program: &str, offsets: &[u64]) -> Known {
    let places: Vec<CodePlace> =
        offsets.iter().map(|address| CodePlace { module: Some(0), address: *address }).collect();
    let modules = [Module::at(program)];
    let symbols = Symbols::look_up(places.iter().copied(), &modules, &LookIn::default());
    (places.iter().map(|place| symbols.at(*place).to_vec()).collect(), symbols.notes)
}

/// Names alone.
fn named(known: &Known) -> BTreeSet<Vec<String>> {
    let names = |functions: &Vec<FunctionLine<Symbol>>| {
        functions.iter().map(|located| located.function.name.clone()).collect()
    };
    known.0.iter().map(names).collect()
}

/// Why the .dwo file of such a program is not used.
fn note(split: &Split, first: &str) -> String {
    let of = &split.program;
    format!(
        "Inlined functions of {of} may be missing: 1 of its .dwo files cannot be used; the first is {first}."
    )
}

const NOT_THERE: &str = "it is not there, or is no regular file that may be read";

#[test]
fn all_is_known_as_if_the_dwarf_were_not_split() {
    for language in ["c", "c++"] {
        let split = Split::new(&format!("split-{language}"), language);
        for (version, more) in VERSIONS.iter().flat_map(|version| {
            ["", " -fdebug-types-section", " -gz=zlib", " -fno-pic"].map(|more| (version, more))
        }) {
            split.compile(&format!("-g {version}{more}"));
            let whole = split.known();
            split.compile(&format!("-g {version}{more} -gsplit-dwarf"));
            assert!(split.directory.path(DWO).exists());
            let names: Vec<Vec<String>> = named(&whole).into_iter().collect();
            assert!(names.len() == 3 && names.iter().any(|names| names.len() == 3), "{names:?}");
            assert_eq!(split.known(), whole, "{language} {version}{more}");
        }
    }
}

/// Units of several .dwo files are at the same place in their files.
#[test]
fn units_of_several_files_are_told_apart() {
    let split = Split::new("split-several", "c");
    let more = "volatile unsigned other_sink;\nvoid other(unsigned n)\n{\n    other_sink = n;\n}\n";
    fs::write(split.directory.path("other.c"), more).unwrap();
    for version in VERSIONS {
        split.compile(&format!("-g {version} -gsplit-dwarf"));
        split.tool(&format!("cc -O2 -g {version} -gsplit-dwarf -fPIC -c other.c -o objects/other.o"));
        split.tool("cc -shared -nostdlib -o program objects/other.o objects/source.o");
        let (outer, other) = (offsets_of(&split.program, "outer")[0], offsets_of(&split.program, "other")[0]);
        let (known, notes) = known_at(&split.program, &[outer, other]);
        let seen: Vec<(&str, bool)> = known
            .iter()
            .map(|functions| functions.last().unwrap())
            .map(|outermost| (&*outermost.function.name, outermost.has_inlined))
            .collect();
        assert_eq!((seen, notes), (vec![("outer", true), ("other", false)], Vec::new()), "{version}");
        // a note has their number
        fs::remove_dir_all(split.directory.path("objects")).unwrap();
        fs::create_dir_all(split.directory.path("objects")).unwrap();
        let (_, notes) = known_at(&split.program, &[outer, outer + 1, other]);
        let of = &split.program;
        let begin = format!("Inlined functions of {of} may be missing: 2 of its .dwo files cannot be used; ");
        assert!(notes.len() == 1 && notes[0].starts_with(&begin), "{notes:?}");
    }
}

#[test]
fn files_are_found_beside_a_program_that_was_moved() {
    for version in VERSIONS {
        let split = Split::new("split-moved", "c");
        split.compile(&format!("-g {version} -gsplit-dwarf"));
        let (known, offsets) = (split.known(), offsets_of(&split.program, "outer"));
        let elsewhere = Scratch::new("split-moved-to");
        for name in ["program", DWO] {
            let from = split.directory.path(name);
            fs::rename(&from, elsewhere.path(&from.file_name().unwrap().to_string_lossy())).unwrap();
        }
        let program = elsewhere.path("program").display().to_string();
        let (functions, notes) = known_at(&program, &offsets);
        let names = |known: &[Vec<FunctionLine<Symbol>>]| named(&(known.to_vec(), Vec::new()));
        assert_eq!((names(&functions), notes), (names(&known.0), Vec::new()));
        // also if another compilation's file is where the compiler had put it
        split.write("int more;\n");
        split.compile(&format!("-g {version} -gsplit-dwarf"));
        let (functions, notes) = known_at(&program, &offsets);
        assert_eq!((names(&functions), notes), (names(&known.0), Vec::new()));
    }
}

/// As reproducible builds have them.
#[test]
fn relative_directories_are_those_of_the_program() {
    for version in VERSIONS {
        let split = Split::new("split-relative", "c");
        let directory = split.directory.0.display().to_string();
        split.compile(&format!("-g {version} -gsplit-dwarf -ffile-prefix-map={directory}=."));
        let known = split.known();
        assert_eq!((named(&known), known.1), (inlined(), Vec::new()));
    }
}

#[test]
fn of_a_file_that_is_missing_or_of_another_compilation_symbols_and_lines_are_left() {
    for version in VERSIONS {
        let split = Split::new("split-missing", "c");
        let path = split.directory.path(DWO);
        let without = |why: &str| {
            let (functions, notes) = split.known();
            assert!(functions.iter().all(|functions| functions.len() == 1), "{functions:?}");
            assert!(functions.iter().all(|functions| functions[0].function.name == "outer"));
            let lines: BTreeSet<_> =
                functions.iter().filter_map(|functions| functions[0].line.as_ref()).collect();
            assert!(lines.iter().any(|line| line.file.ends_with("source.h")), "{lines:?}");
            assert_eq!(notes, [note(&split, &format!("{}: {why}", path.display()))]);
        };
        let compile = || split.compile(&format!("-g {version} -gsplit-dwarf"));
        compile();
        let program = fs::read(&split.program).unwrap();
        split.remove(DWO);
        without(NOT_THERE);
        // what would block
        split.tool(&format!("mkfifo {DWO}"));
        without(NOT_THERE);
        split.remove(DWO);
        fs::write(&path, "no ELF file").unwrap();
        without("it is no ELF file, or is damaged");
        // a program and its .dwo file of another compilation
        split.write("unsigned more(unsigned n) { return n + sink; }\n");
        compile();
        fs::write(&split.program, program).unwrap();
        without("it has no unit of this compilation");
    }
}

/// Packers, and the version of DWARF that they read; none: this test itself.
const PACKERS: [(Option<&str>, &str); 4] = [
    (None, "-gdwarf-5"),
    (Some("dwp"), "-gdwarf-4"), // (that of binutils, which knows no other version)
    (Some("llvm-dwp"), "-gdwarf-4"),
    (Some("llvm-dwp"), "-gdwarf-5"),
];

impl Split {
    /// Whether the program's .dwo file is now in this package alone.
    fn pack(&self, packer: Option<&str>, package: &str) -> bool {
        match packer {
            Some(packer) => {
                // (llvm-dwp of LLVM 14 does not end for what GCC 12 writes as DWARF 5)
                let mut command = Command::new("timeout");
                command.args(["5", packer, "-e", "program", "-o", package]).current_dir(&self.directory.0);
                if !command.status().unwrap().success() {
                    eprintln!("{packer} is not installed, or fails: it is not tested");
                    return false;
                }
            }
            None => {
                fs::write(self.directory.path("index"), index(&self.directory.path(DWO))).unwrap();
                self.tool(&format!("objcopy --add-section .debug_cu_index=index {DWO} {package}"));
            }
        }
        fs::rename(self.directory.path(DWO), self.directory.path("aside")).unwrap();
        true
    }
}

/// What makes a .dwo file of DWARF 5 a package of one unit.
fn index(dwo: &Path) -> Vec<u8> {
    let data = fs::read(dwo).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let columns =
        [(1, "info"), (3, "abbrev"), (4, "line"), (5, "loclists"), (6, "str_offsets"), (8, "rnglists")];
    let sections = columns.map(|(_, name)| file.section_by_name(&format!(".debug_{name}.dwo")).unwrap());
    // (behind length, version, type, size of addresses and offset of abbreviations)
    let id = &sections[0].data().unwrap()[12..20];
    // of two slots, that of the id's last bit
    let (mut ids, mut rows) = ([0; 16], [0; 2]);
    let slot = usize::from(id[0] & 1);
    ids[slot * 8..][..8].copy_from_slice(id);
    rows[slot] = 1;
    let bytes = |words: Vec<u32>| words.into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
    let sizes = sections.iter().map(|section| section.size() as u32).collect();
    [
        bytes(vec![5, columns.len() as u32, 1, 2]),
        ids.to_vec(),
        bytes(rows.to_vec()),
        bytes(columns.map(|(column, _)| column).to_vec()),
        bytes(vec![0; columns.len()]),
        bytes(sizes),
    ]
    .concat()
}

#[test]
fn packages_are_read_of_programs_and_of_debug_files() {
    for (packer, version) in PACKERS {
        let split = Split::new("split-package", "c++");
        let compile = || split.compile(&format!("-g {version} -gsplit-dwarf"));
        compile();
        let whole = split.known();
        assert_eq!((named(&whole).len(), &whole.1), (3, &Vec::new()));
        if !split.pack(packer, "program.dwp") {
            continue;
        }
        assert_eq!(split.known(), whole, "{packer:?} {version}");
        // of a stripped program
        let offsets = offsets_of(&split.program, split.outer);
        split.tool("objcopy --only-keep-debug program program.debug");
        split.tool("objcopy --strip-all --add-gnu-debuglink=program.debug program");
        assert_eq!(known_at(&split.program, &offsets), whole);
        split.tool("mv program.dwp program.debug.dwp");
        assert_eq!(known_at(&split.program, &offsets), whole);
        // of another compilation
        split.tool("mkdir kept");
        split.tool("cp program program.debug aside kept");
        split.write("int more;\n");
        compile();
        fs::rename(split.directory.path("kept/aside"), split.directory.path("right")).unwrap();
        assert!(split.pack(packer, "program.debug.dwp"));
        split.tool("cp kept/program kept/program.debug .");
        let (functions, notes) = known_at(&split.program, &offsets);
        assert!(functions.iter().all(|functions| functions.len() == 1));
        let note = note(&split, &format!("{}: {NOT_THERE}", split.directory.path(DWO).display()));
        assert_eq!(notes, [note.replace("used;", "used, and its .dwp has none of them;")]);
        // where the .dwo file is right
        fs::rename(split.directory.path("right"), split.directory.path(DWO)).unwrap();
        assert_eq!(known_at(&split.program, &offsets), whole);
    }
}

/// Looks a program up whose file is cut off anywhere, or overwritten.
fn damaged(split: &Split, file: &str, step: usize) {
    let path = split.directory.path(file);
    let (offsets, whole) = (offsets_of(&split.program, split.outer), fs::read(&path).unwrap());
    // (a file that is truncated to nothing is written to the disk before it can be read)
    let file = File::options().write(true).open(&path).unwrap();
    let with = |data: &[u8]| {
        file.write_all_at(data, 0).unwrap();
        file.set_len(data.len() as u64).unwrap();
        known_at(&split.program, &offsets);
    };
    // (unoptimised builds at fewer places: `make explore` tests optimised ones)
    let step = if cfg!(debug_assertions) { 4 * step + 1 } else { step };
    for at in (0..whole.len()).step_by(step) {
        with(&whole[..at]);
        for (byte, length) in [(0xff, 8), (0x7f, 4), (0, 2), (0x80, 1)] {
            let mut spoilt = whole.clone();
            let end = (at + length).min(whole.len());
            spoilt[at..end].fill(byte);
            with(&spoilt);
        }
    }
    fs::write(&path, whole).unwrap();
}

#[test]
fn damaged_files_are_survived() {
    for version in VERSIONS {
        let split = Split::new("split-damaged", "c++");
        split.compile(&format!("-g {version} -gsplit-dwarf"));
        damaged(&split, "program", 61);
        damaged(&split, DWO, 3);
        let packer = (version == "-gdwarf-4").then_some("dwp");
        if split.pack(packer, "program.dwp") {
            damaged(&split, "program.dwp", 9);
        }
    }
}
