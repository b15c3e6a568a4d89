mod shared;
mod split;

use super::*;
use crate::file_proof::inode_at;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use topdown_seam::records::Inode;

/// A function into which two others are inlined, one in the other, and one that calls it.
pub(crate) const SOURCE: &str = "\
volatile unsigned sink;
static inline __attribute__((always_inline)) void innermost(unsigned n)
{
    sink += n; /* innermost */
}
static inline __attribute__((always_inline)) void between(unsigned n)
{
    sink ^= n; /* between */
    innermost(n);
}
__attribute__((noinline)) void outer(unsigned n)
{
    sink = 0; /* outer */
    for (unsigned k = 0; k < n; k++)
        between(k);
    sink = 1; /* outer */
}
__attribute__((noinline)) void caller(unsigned n)
{
    outer(n);
    sink = 2; /* caller */
}
";

/// A directory of a test's own, removed at its end.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("topdown-record-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A file there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Compiles the program above to a shared object, and returns its path.
    pub fn compiled(&self, name: &str, flags: &[&str]) -> String {
        let (source, program) = (self.0.join("source.c"), self.0.join(name));
        fs::write(&source, SOURCE).unwrap();
        let mut command = Command::new("cc");
        command
            .args(["-O2", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id"])
            .args(flags);
        assert!(command.arg("-o").arg(&program).arg(&source).status().unwrap().success());
        program.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Offsets in a file of all bytes of a function.
pub(crate) fn offsets_of(path: &str, function: &str) -> Vec<u64> {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let symbol =
        file.symbols().chain(file.dynamic_symbols()).find(|symbol| symbol.name() == Ok(function)).unwrap();
    let segment = file
        .segments()
        .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&symbol.address()));
    let segment = segment.unwrap();
    let start = symbol.address() - segment.address() + segment.file_range().0;
    (start..start + symbol.size()).collect()
}

/// The names of functions at these bytes of a file, and the line.
fn known_of(path: &str, offsets: &[u64], look_in: &LookIn) -> BTreeSet<(Vec<String>, Option<SourceLine>)> {
    let modules = [Module::at(path)];
    let place = |address: &u64| CodePlace { module: Some(0), address: *address };
    let places: Vec<CodePlace> = offsets.iter().map(place).collect();
    let symbols = Symbols::look_up(places.iter().copied(), &modules, look_in);
    let known = |place: &CodePlace| {
        let functions = symbols.at(*place);
        let names = functions.iter().map(|located| located.function.name.clone()).collect();
        (names, functions[0].line.clone())
    };
    places.iter().map(known).collect()
}

/// Of all of `outer`.
fn all_stacks(path: &str) -> BTreeSet<(Vec<String>, Option<SourceLine>)> {
    known_of(path, &offsets_of(path, "outer"), &LookIn::default())
}

fn stacks(path: &str) -> BTreeSet<Vec<String>> {
    all_stacks(path).into_iter().map(|(names, _)| names).collect()
}

fn names(stack: &[&str]) -> Vec<String> {
    stack.iter().map(|name| (*name).to_string()).collect()
}

/// Those of the program above.
fn inlined() -> BTreeSet<Vec<String>> {
    BTreeSet::from([&["innermost", "between", "outer"][..], &["between", "outer"], &["outer"]].map(names))
}

#[test]
fn it_is_known_of_each_function_whether_others_are_inlined_into_it() {
    let scratch = Scratch::new("has-inlined");
    let has = |path: &str, function: &str| {
        let place = |address| CodePlace { module: Some(0), address };
        let places: Vec<CodePlace> = offsets_of(path, function).into_iter().map(place).collect();
        let modules = [Module::at(path)];
        let symbols = Symbols::look_up(places.iter().copied(), &modules, &LookIn::default());
        let has_inlined = |place: &CodePlace| symbols.at(*place).last().unwrap().has_inlined;
        places.iter().map(has_inlined).collect::<BTreeSet<bool>>()
    };
    for flags in [&["-g"][..], &["-gdwarf-4"], &["-g1"]] {
        let path = scratch.compiled("dwarf", flags);
        // (at each address of it, also where it is itself the innermost)
        assert_eq!(has(&path, "outer"), BTreeSet::from([true]), "{flags:?}");
        assert_eq!(has(&path, "caller"), BTreeSet::from([false]), "{flags:?}");
    }
    assert_eq!(has(&scratch.compiled("none", &["-g0"]), "outer"), BTreeSet::from([false]));
}

#[test]
fn inlined_functions_are_told_where_there_is_dwarf() {
    let scratch = Scratch::new("inlined");
    assert_eq!(stacks(&scratch.compiled("dwarf", &["-g"])), inlined());
    assert_eq!(stacks(&scratch.compiled("dwarf-4", &["-gdwarf-4"])), inlined());
    assert_eq!(stacks(&scratch.compiled("compressed", &["-g", "-gz=zlib"])), inlined());
    assert_eq!(stacks(&scratch.compiled("none", &["-g0"])), BTreeSet::from([names(&["outer"])]));
    // (names of dynamic symbols)
    assert_eq!(stacks(&scratch.compiled("stripped", &["-s"])), BTreeSet::from([names(&["outer"])]));
}

/// Lines of the program above that have this comment.
pub(crate) fn lines_with(comment: &str) -> BTreeSet<u32> {
    let all = SOURCE.lines().zip(1..).filter(|(line, _)| line.contains(&format!("/* {comment} */")));
    all.map(|(_, number)| number).collect()
}

#[test]
fn lines_are_those_of_the_innermost_function() {
    let scratch = Scratch::new("lines");
    let all = all_stacks(&scratch.compiled("dwarf", &["-g"]));
    for name in ["innermost", "between", "outer"] {
        let of_function =
            || all.iter().filter(|(names, _)| names[0] == name).filter_map(|(_, line)| line.as_ref());
        assert!(of_function().all(|line| line.file.ends_with("/source.c")), "{all:?}");
        let lines: BTreeSet<u32> = of_function().map(|line| line.line).collect();
        assert!(lines.is_superset(&lines_with(name)), "{name}: {lines:?}");
        for other in ["innermost", "between", "outer"] {
            assert!(other == name || lines.is_disjoint(&lines_with(other)), "{name}: {lines:?}");
        }
    }
    assert!(all_stacks(&scratch.compiled("none", &["-g0"])).iter().all(|(_, line)| line.is_none()));
}

/// Runs a tool in a directory.
fn tool(directory: &Path, words: &str) {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap());
    assert!(command.args(words).current_dir(directory).status().unwrap().success());
}

/// What is known of a stripped program whose debug file is at a path; `spoil` changes the latter.
fn with_debug_file(
    scratch: &Scratch,
    path: &str,
    build_id: bool,
    spoil: impl Fn(&Path),
) -> BTreeSet<Vec<String>> {
    let directory = Scratch(scratch.0.join("program"));
    fs::create_dir_all(&directory.0).unwrap();
    let id = if build_id { "-Wl,--build-id=0xabcdef01" } else { "-Wl,--build-id=none" };
    let program = directory.compiled("program", &["-g", id]);
    let offsets = offsets_of(&program, "outer");
    tool(&directory.0, "objcopy --only-keep-debug program program.debug");
    tool(&directory.0, "objcopy --strip-all --add-gnu-debuglink=program.debug program");
    let look_in = LookIn { debug: directory.0.join("debug"), ..LookIn::default() };
    // (below the directory of debug files, or not)
    let below = look_in.debug.join(directory.0.strip_prefix("/").unwrap());
    let place = directory.0.join(path.replace("BELOW", below.to_str().unwrap()));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::rename(directory.0.join("program.debug"), &place).unwrap();
    spoil(&place);
    known_of(&program, &offsets, &look_in).into_iter().map(|(names, _)| names).collect()
}

#[test]
fn separate_debug_files_are_found_by_build_id_and_by_link() {
    let scratch = Scratch::new("separate");
    let stripped = || BTreeSet::from([names(&["outer"])]);
    let by_id = "debug/.build-id/ab/cdef01.debug";
    let links = ["program.debug", ".debug/program.debug", "BELOW/program.debug"];
    assert_eq!(with_debug_file(&scratch, by_id, true, |_| ()), inlined());
    assert_eq!(with_debug_file(&scratch, by_id, false, |_| ()), stripped());
    assert_eq!(with_debug_file(&scratch, "elsewhere/program.debug", true, |_| ()), stripped());
    for path in links {
        assert_eq!(with_debug_file(&scratch, path, true, |_| ()), inlined(), "{path}");
        assert_eq!(with_debug_file(&scratch, path, false, |_| ()), inlined(), "{path}");
    }
    // those of another build
    let other = |path: &Path| {
        let source = path.with_extension("c");
        fs::write(&source, "int outer(int n) { return n; }").unwrap();
        let mut command = Command::new("cc");
        command.args(["-g", "-shared", "-Wl,--build-id=0xabcdef02", "-o"]).arg(path).arg(source);
        assert!(command.status().unwrap().success());
    };
    for path in links.into_iter().chain([by_id]) {
        assert_eq!(with_debug_file(&scratch, path, true, other), stripped(), "{path}");
    }
}

/// A symbol without a size, as `_init` of the C library's start files has none, ends with its section.
#[test]
fn calls_of_other_objects_are_no_function_of_the_program() {
    let scratch = Scratch::new("plt");
    let (source, program) = (scratch.path("plt.s"), scratch.path("plt"));
    let text = "\
        .section .init, \"ax\", %progbits
        .globl _init
        .type _init, %function
_init:  .fill 16, 1, 0
        .section .plt.sec, \"ax\", %progbits
        .fill 16, 1, 0
        .section .other, \"ax\", %progbits
        .fill 16, 1, 0
";
    fs::write(&source, text).unwrap();
    let mut command = Command::new("cc");
    command.args(["-shared", "-nostdlib", "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success());
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    for (section, name) in [(".init", "_init"), (".plt.sec", "[plt]"), (".other", "[unknown in plt]")] {
        let (start, size) = file.section_by_name(section).unwrap().file_range().unwrap();
        let offsets: Vec<u64> = (start..start + size).collect();
        let known = known_of(program.to_str().unwrap(), &offsets, &LookIn::default());
        assert_eq!(known, BTreeSet::from([(names(&[name]), None)]), "{section}");
    }
}

/// As by -gz=zstd of compilers that have it.
#[test]
fn dwarf_may_be_compressed_by_zstd() {
    let scratch = Scratch::new("zstd");
    let program = scratch.compiled("program", &["-g"]);
    let compressed = scratch.path("compressed").display().to_string();
    let mut command = Command::new("objcopy");
    command.args(["--compress-debug-sections=zstd", &program, &compressed]);
    if !command.status().unwrap().success() {
        eprintln!("objcopy cannot compress by zstd here: nothing is tested");
        return;
    }
    let whole = fs::read(&compressed).unwrap();
    assert!(whole.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]));
    assert_eq!(stacks(&compressed), inlined());
    // whatever is overwritten
    let offsets = offsets_of(&program, "outer");
    for start in (0..whole.len()).step_by(97) {
        let mut spoilt = whole.clone();
        let end = (start + 8).min(whole.len());
        spoilt[start..end].fill(0xff);
        fs::write(&compressed, spoilt).unwrap();
        known_of(&compressed, &offsets[..1], &LookIn::default());
    }
}

/// Of a file that was there when it was mapped, and another one is now: at its path, or in it.
#[test]
fn what_did_not_run_names_nothing() {
    let scratch = Scratch::new("rebuilt");
    for flags in [&["-Wl,--build-id"][..], &["-Wl,--build-id=none"]] {
        let path = scratch.compiled("app", flags);
        let (module, offset) = (Module::at(&path), offsets_of(&path, "outer")[0]);
        let name = |look_in: &LookIn| {
            let place = CodePlace { module: Some(0), address: offset };
            let symbols = Symbols::look_up([place], std::slice::from_ref(&module), look_in);
            symbols.at(place)[0].function.name.clone()
        };
        assert_eq!(name(&LookIn::default()), "outer", "{flags:?}");
        // (kept open)
        let open =
            LookIn::with(&Arc::new(HashMap::from([(0, fs::File::open(&path).unwrap())])), &Arc::default());
        let ran = fs::read(&path).unwrap();
        fs::rename(&path, scratch.path("ran")).unwrap();
        let more: Vec<&str> = flags.iter().copied().chain(["-O0"]).collect();
        scratch.compiled("app", &more);
        let other = "[unknown in app: another file is at its path]";
        assert_eq!((name(&LookIn::default()).as_str(), name(&open).as_str()), (other, "outer"), "{flags:?}");
        // the same contents, which the linker's number proves and nothing else does
        fs::write(&path, &ran).unwrap();
        let again = name(&LookIn::default());
        assert_eq!(again, if flags[0].ends_with("none") { other } else { "outer" });
        fs::remove_file(&path).unwrap();
        assert_eq!(name(&LookIn::default()), "[unknown in app: it is not at its path]");
        // one that is written over is not what ran any more, whoever has it open
        let rebuilt = scratch.compiled("other", &more);
        fs::write(scratch.path("ran"), fs::read(rebuilt).unwrap()).unwrap();
        assert_eq!(name(&open), "[unknown in app: it is not at its path]");
        fs::remove_file(scratch.path("ran")).unwrap();
    }
}

#[test]
fn what_is_no_program_has_no_names() {
    let scratch = Scratch::new("broken");
    let whole = scratch.compiled("whole", &["-g"]);
    let (offsets, whole) = (offsets_of(&whole, "outer"), fs::read(&whole).unwrap());
    let path = scratch.0.join("bro\x1bken").display().to_string();
    let name = || {
        let places = offsets.iter().map(|address| CodePlace { module: Some(0), address: *address });
        let symbols = Symbols::look_up(places, &[Module::at(&path)], &LookIn::default());
        symbols.at(CodePlace { module: Some(0), address: offsets[0] })[0].function.name.clone()
    };
    assert_eq!(name(), "[unknown in bro\u{fffd}ken: the file that ran was not found]");
    // whatever is cut off, or overwritten
    for cut in (0..whole.len()).step_by(193) {
        fs::write(&path, &whole[..cut]).unwrap();
        name();
        let mut spoilt = whole.clone();
        let end = (cut + 32).min(whole.len());
        spoilt[cut..end].fill(0xff);
        fs::write(&path, spoilt).unwrap();
        name();
    }
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(name(), "[unknown in bro\u{fffd}ken: the file that ran was not found]");
}

#[test]
fn this_test_has_its_name() {
    let here = this_test_has_its_name as *const () as u64;
    let mut spaces = crate::spaces::Spaces::default();
    let pid = std::process::id() as i32;
    spaces.look_at(pid).unwrap();
    let place = spaces.place(pid, 1, here);
    let symbols = Symbols::look_up([place], &spaces.modules, &LookIn::default());
    let name = &symbols.at(place).last().unwrap().function.name;
    assert!(name.ends_with("this_test_has_its_name"), "{name}");
}

/// What code of no file is called, in a process that has said so.
fn made(spaces: &crate::spaces::Spaces, places: &[CodePlace]) -> (Vec<String>, Vec<String>) {
    let (names, refused) = spaces.made();
    let look_in = LookIn::with(&Arc::default(), &Arc::new(names));
    let symbols = Symbols::look_up(places.iter().copied(), &spaces.modules, &look_in);
    (places.iter().map(|place| symbols.at(*place)[0].function.name.clone()).collect(), refused)
}

#[test]
fn code_of_no_file_has_the_names_of_the_map_of_its_process() {
    let scratch = Scratch::new("maps");
    let mut spaces = crate::spaces::Spaces::default();
    let pid = std::process::id() as i32;
    let map = scratch.path(&format!("perf-{pid}.map"));
    fs::write(&map, "8000 100 made\n8200 100 first\n8280 100 second\n8400 10 same\n8400 10 same\n").unwrap();
    spaces.mapped(0, pid, 0x8000, 0x1000, 0, ("//anon", Inode::default()));
    spaces.look_for_maps_in(pid, &scratch.0);
    let places = [0x8010, 0x8100, 0x8300, 0x8280, 0x8408].map(|address| spaces.place(pid, 1, address));
    // (when the second one took the place of the first is not in a map)
    let again = "[unknown in [jit]: its address was used again]";
    let (names, refused) = made(&spaces, &places);
    assert_eq!(names, ["made", "[unknown in [jit]]", "second", again, "same"]);
    assert!(refused.is_empty());
    // one that was there before the process is another one's
    fs::File::options().write(true).open(&map).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let (names, refused) = made(&spaces, &places[..1]);
    assert_eq!(names, ["[unknown in [jit]]"]);
    assert_eq!(refused, [format!("perf-{pid}.map: it is older than the process")]);
    fs::rename(&map, scratch.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &map).unwrap();
    assert_eq!(made(&spaces, &places[..1]).1, [format!("perf-{pid}.map: it is a link")]);
}

/// A dump of code that was loaded at 0x8000 at these times, under these names.
fn dump_of(flags: u64, loaded: &[(u64, &str)]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0x4a69_5444_u32, 1, 40, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(flags.to_ne_bytes());
    for (time, name) in loaded {
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend((57 + name.len() as u32).to_ne_bytes());
        bytes.extend([*time, 0, 0x8000, 0x8000, 0x100, 1].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend([name.as_bytes(), b"\0"].concat());
    }
    bytes
}

/// The mapping of its dump is how a compiler tells of it; the code itself is in memory of no file.
#[test]
fn code_of_no_file_has_the_names_of_a_dump_that_its_process_has_mapped() {
    let scratch = Scratch::new("dumps");
    let pid = std::process::id() as i32;
    let dump = scratch.path(&format!("jit-{pid}.dump")).display().to_string();
    let names_of_loaded = |loaded: [(u64, &str); 3], flags: u64, mapped: &str| {
        fs::write(&dump, dump_of(flags, &loaded[..2])).unwrap();
        let mut spaces = crate::spaces::Spaces::default();
        spaces.mapped(0, pid, 0x8000, 0x1000, 0, ("//anon", Inode::default()));
        spaces.look_for_maps_in(pid, &scratch.0);
        spaces.mapped(crate::event::now(), pid, 0x4000, 0x1000, 0, (mapped, inode_at(mapped)));
        let mut places: Vec<CodePlace> = [5, 15, 25].map(|time| spaces.place(pid, time, 0x8010)).into();
        // (it grows)
        fs::write(&dump, dump_of(flags, &loaded)).unwrap();
        places.extend([25, 35].map(|time| spaces.place(pid, time, 0x8010)));
        made(&spaces, &places).0
    };
    let loaded = |times: [u64; 3]| [(times[0], "a"), (times[1], "b"), (times[2], "c")];
    let names_of = |flags, mapped: &str| names_of_loaded(loaded([10, 20, 30]), flags, mapped);
    let (unknown, again) = ("[unknown in [jit]]", "[unknown in [jit]: its address was used again]");
    // what was seen before and behind a change that was not known yet is not told
    assert_eq!(names_of(0, &dump), [again, again, "b", "b", "c"]);
    // times of another clock tell nothing
    assert_eq!(names_of(1, &dump), [again; 5]);
    // nor do those that a compiler leaves out
    assert_eq!(names_of_loaded(loaded([0; 3]), 0, &dump), [again; 5]);
    let other = scratch.path("other.dump").display().to_string();
    fs::copy(&dump, &other).unwrap();
    assert_eq!(names_of(0, &other), [unknown; 5]);
}
