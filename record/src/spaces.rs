//! Which file is mapped where in each process, and when.
#![forbid(unsafe_code)]

use crate::elf_file::regular;
use crate::event::{behind_files, boot_behind_files};
use crate::file_proof::{DELETED, FileMapping, FileProof, inode_of, is_program};
use crate::stacks::CodePlace;
use crate::symbols::Jit;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use topdown_seam::records::Inode;

/// A file, or memory, that addresses are in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Module {
    /// A file at a path of the process's; addresses are offsets in the file.
    File { path: String, proof: FileProof },
    /// Memory of a process (of a user) that is no file's, such as what a JIT compiler makes; addresses are the process's.
    Anonymous {
        pid: i32,
        user: u32,
        /// Another number for each function that an address had, as far as the functions were known then.
        version: u64,
        /// What the process calls the memory, if memfd_create(2) made the memory; else "".
        memfd: String,
    },
    /// Code that the kernel maps into each process.
    Vdso,
    /// The kernel, with its modules; addresses are the kernel's.
    Kernel,
    /// All processes of a name. As the outermost frame of a stack, at 0, this module tells whose the stack is.
    Process(String),
}

/// All processes.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    of: HashMap<i32, Space>,
    pub modules: Vec<Module>,
    known: HashMap<Module, u32>,
    /// Of processes that have memory of no file in which code is.
    jits: HashMap<i32, Jit>,
    /// So many processes' code of no file has ended.
    ended_jits: u64,
    /// Of each process the code of no file that was seen.
    seen: HashMap<i32, CodeTimes>,
    /// Names of code of no file, of programs that have ended, and why some names are missing.
    made: (BTreeMap<CodePlace, String>, Vec<String>),
    /// Processes that have ended, and when.
    ended: HashMap<i32, u64>,
    /// Files that were found, by path and inode.
    found: HashMap<(String, Inode), FoundFile>,
    /// Modules' files that are open: names are looked up when their processes have ended, and their root directories are gone.
    pub open: HashMap<u32, File>,
}

/// Since when a process runs its program, by the clock of files; of a process that has ended, so long ago that the time does not matter.
fn began_ns(pid: i32) -> i128 {
    let ticks_of = |stat: &str| stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse::<i128>().ok();
    let ticks = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| ticks_of(&stat));
    // (USER_HZ is 100 on all that is supported)
    ticks.map_or(0, |ticks| ticks * 10_000_000 + boot_behind_files())
}

/// A file that was found when a process mapped the file.
#[derive(Debug)]
struct FoundFile {
    module: u32,
    /// The file's size when it was found.
    size: u64,
    written: (i64, i64),
}

/// So many files are kept open.
const MOST_OPEN: usize = 400;

/// A file's size, and when the file was written last.
fn state(file: &File) -> Option<(u64, (i64, i64))> {
    let about = file.metadata().ok()?;
    Some((about.len(), (about.mtime(), about.mtime_nsec())))
}

#[derive(Clone, Debug, Default)]
struct Space {
    /// In the order of time.
    mapped: Vec<MappedFile>,
    /// When the process executed its program: what was mapped before is not there any more.
    executed: u64,
    /// The module of the process's name.
    name: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct MappedFile {
    since: u64,
    start: u64,
    end: u64,
    offset: u64,
    module: u32,
    anonymous: bool,
}

/// Beginnings of names of mappings that are no file's, though the names look like a file's.
const ANONYMOUS: [&str; 4] = ["//", "/anon_hugepage", "/dev/zero", "/SYSV"];
const MEMFD: &str = "/memfd:";

/// The user of a process; of a process that has ended already the recorder's user, who may record no other user's processes without being root.
fn user_of(pid: i32) -> u32 {
    let user = |process: &str| Some(fs::metadata(format!("/proc/{process}")).ok()?.uid());
    user(&pid.to_string()).or_else(|| user("self")).unwrap_or(0)
}

#[cfg(test)]
impl Module {
    /// The file that is at a path now, or a file that was not seen.
    pub fn at(path: &str) -> Module {
        let proof =
            crate::elf_file::regular(Path::new(path)).map_or(FileProof::Unseen, |file| FileProof::of(&file));
        Module::File { path: path.into(), proof }
    }
}

/// Code that was seen, and when it was seen first and last.
type CodeTimes = HashMap<CodePlace, (u64, u64)>;

fn names_of(jit: &Jit, seen: &CodeTimes) -> (Vec<(CodePlace, String)>, Vec<String>) {
    let places: Vec<(&CodePlace, &(u64, u64))> = seen.iter().collect();
    let addresses: Vec<_> = places.iter().map(|(place, times)| (place.address, **times)).collect();
    let (names, refused) = jit.names(&addresses);
    let named = places.into_iter().zip(names).filter_map(|((place, _), name)| Some((*place, name?)));
    (named.collect(), refused)
}

/// What a process has mapped. (Where its first thread has ended before the others, these know.)
fn maps_of(pid: i32) -> io::Result<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    if !maps.is_empty() {
        return Ok(maps);
    }
    let of_threads = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut known = of_threads.filter_map(|thread| fs::read_to_string(thread.path().join("maps")).ok());
    Ok(known.find(|maps| !maps.is_empty()).unwrap_or_default())
}

impl Spaces {
    /// The number of the module that a process has mapped, and whether the mapping is no file's.
    fn module(&mut self, pid: i32, mapped: &MappedFile, file: (&str, Inode), since_ns: i128) -> (u32, bool) {
        let (name, inode) = file;
        let path = name.trim_end_matches(DELETED);
        let MappedFile { start, end, .. } = *mapped;
        let mapping = FileMapping { pid, start, end, path, inode, since_ns };
        let is_file = match name.strip_prefix(MEMFD) {
            Some(_) => mapping.file().as_ref().is_some_and(is_program), // (a compiler writes to any other)
            None => name.starts_with('/') && !ANONYMOUS.iter().any(|anonymous| name.starts_with(anonymous)),
        };
        if is_file {
            return (self.file_module(mapping), false);
        }
        let module = match name {
            "[vdso]" => Module::Vdso,
            _ => {
                let memfd = path.strip_prefix(MEMFD).unwrap_or_default().into();
                Module::Anonymous { pid, user: self.jit(pid, since_ns).user, version: 0, memfd }
            }
        };
        (self.number(module), true)
    }

    /// What a process says of the code that it makes, from its first memory of no file on. The process was there at `by_ns`.
    fn jit(&mut self, pid: i32, by_ns: i128) -> &mut Jit {
        let executed = self.of.get(&pid).map_or(0, |space| space.executed);
        let program = self.ended_jits;
        self.jits.entry(pid).or_insert_with(|| {
            let executed_ns = if executed > 0 { i128::from(executed) + behind_files() } else { 0 };
            Jit::of(pid, program, user_of(pid), executed_ns.max(began_ns(pid)).min(by_ns))
        })
    }

    /// A process has its code of no file no more: names that are known of the code are kept.
    fn end_jit(&mut self, pid: i32) {
        let Some(jit) = self.jits.remove(&pid) else { return };
        self.ended_jits += 1;
        let seen = self.seen.remove(&pid).unwrap_or_default();
        let (names, refused) = names_of(&jit, &seen);
        self.made.0.extend(names);
        self.made.1.extend(refused);
    }

    /// Names of all code of no file that was seen; and why some names are missing.
    pub fn made(&self) -> (BTreeMap<CodePlace, String>, Vec<String>) {
        let (mut names, mut refused) = self.made.clone();
        for (pid, seen) in &self.seen {
            let Some(jit) = self.jits.get(pid) else { continue };
            let (found, why) = names_of(jit, seen);
            names.extend(found);
            refused.extend(why);
        }
        (names, refused)
    }

    #[cfg(test)]
    pub fn look_for_maps_in(&mut self, pid: i32, directory: &Path) {
        self.jit(pid, i128::MAX).directory = File::open(directory).ok();
    }

    /// The number of the module of a file that a process has mapped. The file is looked for now.
    fn file_module(&mut self, mut mapping: FileMapping) -> u32 {
        let FileMapping { pid, path, inode, since_ns, .. } = mapping;
        let known = (path.to_string(), inode);
        if let Some(FoundFile { module, size, written }) = self.found.get(&known) {
            // (the file may have been written over since)
            if self.open.get(module).and_then(state) == Some((*size, *written)) {
                return *module;
            }
        }
        let is_dump = path.ends_with(".dump"); // (a dump grows, and is asked for its names alone)
        if is_dump {
            mapping.since_ns = i128::MAX;
        }
        let found = mapping.file();
        if is_dump {
            let file = found.as_ref().and_then(|file| file.try_clone().ok());
            self.jit(pid, since_ns).has_mapped(path, file);
        }
        let proof = found.as_ref().map_or(FileProof::Unseen, FileProof::of);
        let module = self.number(Module::File { path: known.0.clone(), proof });
        let Some(file) = found else { return module };
        if let Some((size, written)) = state(&file).filter(|_| self.open.len() < MOST_OPEN) {
            self.found.insert(known, FoundFile { module, size, written });
            self.open.insert(module, file);
        }
        module
    }

    /// The file of a module, if the file is still the one that ran.
    pub fn file(&self, module: u32) -> Option<File> {
        let Module::File { path, proof } = &self.modules[module as usize] else { return None };
        let open = self.open.get(&module).and_then(|file| file.try_clone().ok());
        open.or_else(|| regular(Path::new(path))).filter(|file| proof.is_of(file))
    }

    fn number(&mut self, module: Module) -> u32 {
        let next = self.modules.len() as u32;
        let number = *self.known.entry(module.clone()).or_insert(next);
        if number == next {
            self.modules.push(module);
        }
        number
    }

    /// The kernel's number.
    pub fn kernel(&mut self) -> u32 {
        self.number(Module::Kernel)
    }

    /// A process has this name from now on.
    pub fn named(&mut self, pid: i32, name: String) {
        let name = self.number(Module::Process(name));
        self.of.entry(pid).or_default().name = Some(name);
    }

    /// The frame that tells whose a process's stacks are; None: the process has no name.
    pub fn process(&self, pid: i32) -> Option<CodePlace> {
        let module = self.of.get(&pid)?.name;
        module.map(|module| CodePlace { module: Some(module), address: 0 })
    }

    /// A process has mapped a file of this name and inode at an instant of the records' clock.
    pub fn mapped(&mut self, since: u64, pid: i32, start: u64, len: u64, offset: u64, file: (&str, Inode)) {
        let end = start.saturating_add(len);
        let mapped = MappedFile { since, start, end, offset, module: 0, anonymous: false };
        self.add(pid, mapped, file, i128::from(since) + behind_files());
    }

    /// Adds a mapping. A file that has changed since `since_ns` of the clock of files is another file.
    fn add(&mut self, pid: i32, mapped: MappedFile, file: (&str, Inode), since_ns: i128) {
        let (module, anonymous) = self.module(pid, &mapped, file, since_ns);
        self.of.entry(pid).or_default().mapped.push(MappedFile { module, anonymous, ..mapped });
    }

    pub fn executed(&mut self, time: u64, pid: i32) {
        let space = self.of.entry(pid).or_default();
        space.executed = time;
        space.mapped.retain(|mapped| mapped.since >= time);
        self.end_jit(pid);
    }

    pub fn forked(&mut self, parent: i32, child: i32) {
        if self.ended.remove(&child).is_some() {
            self.of.remove(&child); // (another process of the same number)
            self.end_jit(child);
        }
        if let Some(space) = self.of.get(&parent).cloned() {
            self.of.entry(child).or_insert(space);
        }
    }

    /// A process's first thread has ended.
    pub fn exited(&mut self, time: u64, pid: i32) {
        self.ended.insert(pid, time);
    }

    /// Forgets processes that had ended by `by`.
    pub fn forget(&mut self, by: u64) {
        let gone = |pid: i32| !Path::new("/proc").join(pid.to_string()).exists();
        let of = &mut self.of;
        self.ended.retain(|pid, time| {
            let forgotten = *time < by && gone(*pid);
            if forgotten {
                of.remove(pid);
            }
            !forgotten
        });
    }

    /// What a process that is there already is called and has mapped.
    ///
    /// # Errors
    /// The process may not be looked at (of a process that has ended there is nothing).
    pub fn look_at(&mut self, pid: i32) -> io::Result<()> {
        if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
            self.named(pid, name.trim_end_matches('\n').into());
        }
        let maps = match maps_of(pid) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            maps => maps.unwrap_or_default(),
        };
        for line in maps.lines() {
            let mut words = line.splitn(6, ' ');
            let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let file = words.nth(2).unwrap_or("").trim_start();
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let ends = range.split_once('-').and_then(|(start, end)| number(start).zip(number(end)));
            let (Some((start, end)), Some(offset)) = (ends, number(offset)) else { continue };
            if rights.contains('x') {
                let mapped = MappedFile { since: 0, start, end, offset, module: 0, anonymous: false };
                self.add(pid, mapped, (file, inode_of(line).unwrap_or_default()), i128::MAX);
            }
        }
        Ok(())
    }

    /// Where an address of a process was at `time`.
    pub fn place(&mut self, pid: i32, time: u64, address: u64) -> CodePlace {
        let found = self.of.get(&pid).and_then(|space| {
            let at = |mapped: &&MappedFile| {
                mapped.since <= time.max(space.executed) && (mapped.start..mapped.end).contains(&address)
            };
            space.mapped.iter().rev().find(at)
        });
        match found.copied() {
            Some(mapped) if mapped.anonymous => self.place_of_no_file(mapped.module, time, address),
            Some(mapped) => {
                CodePlace { module: Some(mapped.module), address: address - mapped.start + mapped.offset }
            }
            None => CodePlace { module: None, address },
        }
    }

    fn place_of_no_file(&mut self, module: u32, time: u64, address: u64) -> CodePlace {
        let mut place = CodePlace { module: Some(module), address };
        let Module::Anonymous { pid, user, memfd, .. } = self.modules[module as usize].clone() else {
            return place;
        };
        let version = self.jits.get_mut(&pid).map_or(0, |jit| jit.program << 40 | jit.version(address, time));
        place.module = Some(self.number(Module::Anonymous { pid, user, version, memfd }));
        let (first, last) = self.seen.entry(pid).or_default().entry(place).or_insert((time, time));
        (*first, *last) = (time.min(*first), time.max(*last));
        place
    }
}

/// A file's part that is mapped somewhere.
pub(crate) struct MappedPart<'a> {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub module: u32,
    pub file: &'a str,
}

impl Spaces {
    /// Another number whenever a process has mapped more, or executed a program.
    pub fn age(&self, pid: i32) -> Option<(u64, usize)> {
        self.of.get(&pid).map(|space| (space.executed, space.mapped.len()))
    }

    /// Files that a process has mapped, in the order of time.
    pub fn files(&self, pid: i32) -> impl Iterator<Item = MappedPart<'_>> {
        let mapped = self.of.get(&pid).into_iter().flat_map(|space| &space.mapped);
        mapped.filter_map(|mapped| match &self.modules[mapped.module as usize] {
            Module::File { path, .. } => {
                let MappedFile { start, end, offset, module, .. } = *mapped;
                Some(MappedPart { start, end, offset, module, file: path })
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::now;
    use crate::file_proof::{inode_at, memfd};
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    const NO_INODE: Inode = Inode { major: 0, minor: 0, number: 0 };

    #[test]
    fn an_address_is_of_what_was_mapped_last() {
        let mut spaces = Spaces::default();
        spaces.mapped(10, 1, 0x1000, 0x1000, 0x500, ("/lib/a", NO_INODE));
        spaces.mapped(20, 1, 0x1000, 0x800, 0, ("/lib/b", NO_INODE));
        spaces.mapped(20, 1, 0x8000, 0x800, 0, ("//anon", NO_INODE));
        spaces.forked(1, 2);
        let of = |spaces: &mut Spaces, pid, time, address| {
            let CodePlace { module, address } = spaces.place(pid, time, address);
            (module.map(|module| spaces.modules[module as usize].clone()), address)
        };
        let file = |name: &str| Some(Module::at(name));
        let memfd = String::new();
        let anonymous = Some(Module::Anonymous { pid: 1, user: user_of(1), version: 0, memfd });
        for pid in [1, 2] {
            assert_eq!(of(&mut spaces, pid, 15, 0x1100), (file("/lib/a"), 0x600));
            assert_eq!(of(&mut spaces, pid, 25, 0x1100), (file("/lib/b"), 0x100));
            assert_eq!(of(&mut spaces, pid, 25, 0x1900), (file("/lib/a"), 0xe00));
            assert_eq!(of(&mut spaces, pid, 25, 0x8100), (anonymous.clone(), 0x8100));
            assert_eq!(of(&mut spaces, pid, 5, 0x1100), (None, 0x1100));
        }
        spaces.executed(30, 1);
        spaces.mapped(31, 1, 0x1000, 0x1000, 0, ("/bin/c", NO_INODE));
        assert_eq!(of(&mut spaces, 1, 35, 0x1100), (file("/bin/c"), 0x100));
        assert_eq!(of(&mut spaces, 1, 35, 0x8100), (None, 0x8100));
        assert_eq!(of(&mut spaces, 2, 35, 0x1100), (file("/lib/b"), 0x100));
    }

    #[test]
    fn memory_of_no_file_is_its_process_and_users() {
        let mut spaces = Spaces::default();
        let pid = std::process::id() as i32;
        let user = fs::metadata("/proc/self").unwrap().uid();
        let names = [
            "//anon",
            "[anon:v8]",
            "",
            "/memfd:doublemapper (deleted)",
            "/dev/zero (deleted)",
            "/SYSV00000000",
        ];
        for (name, start) in names.into_iter().zip((0x1000..).step_by(0x1000)) {
            spaces.mapped(0, pid, start, 0x1000, 0x8000, (name, NO_INODE));
            let CodePlace { module, address } = spaces.place(pid, 1, start + 8);
            let memfd = if name.contains("memfd") { "doublemapper".into() } else { String::new() };
            let module = &spaces.modules[module.unwrap() as usize];
            assert_eq!(*module, Module::Anonymous { pid, user, version: 0, memfd }, "{name}");
            assert_eq!(address, start + 8);
        }
        // a process that has ended
        assert_eq!(user_of(i32::MAX), user);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut spaces = Spaces::default();
        let (parent, child) = (std::process::id() as i32, i32::MAX); // (the child has no directory)
        let file = |spaces: &mut Spaces, time| {
            let module = spaces.place(child, time, 0x1100).module?;
            Some(spaces.modules[module as usize].clone())
        };
        let is = |name: &str| Some(Module::at(name));
        spaces.mapped(0, parent, 0x1000, 0x1000, 0, ("/bin/parent", NO_INODE));
        spaces.forked(parent, child);
        spaces.executed(10, child);
        spaces.mapped(11, child, 0x1000, 0x1000, 0, ("/bin/first", NO_INODE));
        spaces.exited(20, child);
        spaces.forget(20); // (samples of the process's last moments may come still)
        assert_eq!(file(&mut spaces, 15), is("/bin/first"));
        spaces.forked(parent, child);
        assert_eq!(file(&mut spaces, 30), is("/bin/parent"));
        spaces.exited(40, child);
        spaces.exited(41, parent);
        spaces.forget(50);
        assert!(!spaces.of.contains_key(&child) && spaces.of.contains_key(&parent));
    }

    #[test]
    fn a_file_is_the_one_that_was_mapped_or_none() {
        let scratch = crate::symbols::tests::Scratch::new("mapped");
        let path = scratch.path("app").display().to_string();
        let write = |text: &str| {
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            (fs::File::open(&path).unwrap(), inode_at(&path))
        };
        let mut spaces = Spaces::default();
        let mut text_of = |inode: Inode, name: &str, since: u64| {
            spaces.mapped(since, i32::MAX, 0x1000, 0x1000, 0, (name, inode));
            let module = spaces.place(i32::MAX, since, 0x1100).module.unwrap();
            spaces.file(module).map(|mut file| {
                file.rewind().unwrap();
                io::read_to_string(file).unwrap()
            })
        };
        let (_first, first) = write("first");
        assert_eq!(text_of(first, &path, now()).as_deref(), Some("first"));
        // another inode is at the path, which was mapped then; the first file is known, since it is open
        let (_second, second) = write("second");
        assert_eq!(text_of(second, &path, now()).as_deref(), Some("second"));
        assert_eq!(text_of(first, &path, now()).as_deref(), Some("first"));
        // a file in no directory that the recorder sees, and a deleted file
        let elsewhere = Inode { number: second.number + 1000, ..second };
        assert_eq!(text_of(elsewhere, &path, now()), None);
        assert_eq!(text_of(elsewhere, &format!("{path}{DELETED}"), now()), None);
        assert_eq!(text_of(NO_INODE, &path, now()), None);
        // a file that has changed since
        let before = now() - 10_000_000_000;
        let (_third, third) = write("third");
        assert_eq!(text_of(third, &path, before), None);
    }

    #[test]
    fn a_program_in_a_memfd_is_a_file() {
        let memfd = memfd(c"app");
        io::copy(&mut File::open("/bin/cat").unwrap(), &mut &memfd).unwrap();
        let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
        let mut child = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // (once the program answers the file has been mapped)
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let (mut spaces, pid) = (Spaces::default(), child.id() as i32);
        spaces.look_at(pid).unwrap();
        let proof = FileProof::of(&memfd);
        let module = spaces.known.get(&Module::File { path: "/memfd:app".into(), proof }).copied();
        let file = module.and_then(|module| spaces.file(module));
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(file.is_some(), "{:?}", spaces.modules);
    }

    #[test]
    fn this_process_is_found_in_its_own_program() {
        let mut spaces = Spaces::default();
        let pid = std::process::id() as i32;
        spaces.look_at(pid).unwrap();
        let here = this_process_is_found_in_its_own_program as *const () as u64;
        let module = spaces.place(pid, 1, here).module.unwrap();
        let program = std::env::current_exe().unwrap().display().to_string();
        assert_eq!(spaces.modules[module as usize], Module::at(&program));
        // a process's name is its first thread's, and its children's until they have another name
        let name = |spaces: &Spaces, pid| match &spaces.modules[spaces.process(pid)?.module? as usize] {
            Module::Process(name) => Some(name.clone()),
            _ => None,
        };
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        spaces.forked(pid, i32::MAX);
        assert_eq!(
            [pid, i32::MAX].map(|pid| name(&spaces, pid)),
            [Some(own.trim().into()), Some(own.trim().into())]
        );
        spaces.named(i32::MAX, "other".into());
        assert_eq!(name(&spaces, i32::MAX), Some("other".into()));
        assert_eq!((name(&spaces, pid), name(&spaces, 1)), (Some(own.trim().into()), None));
    }
}
