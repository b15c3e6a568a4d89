//! Which file is mapped where in each process, and when.
#![forbid(unsafe_code)]

use crate::event::now;
use crate::stacks::CodePlace;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Something that addresses are in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Module {
    /// A file; addresses are offsets in it.
    File(String),
    /// Memory of a process (of a user) that is no file's, such as what a JIT compiler makes; addresses are its own.
    Anonymous { pid: i32, user: u32 },
    /// What the kernel puts into each process.
    Vdso,
    /// The kernel, with its modules; addresses are its own.
    Kernel,
    /// All processes of a name. As the outermost of a stack, at 0, it tells whose the stack is.
    Process(String),
}

/// All processes.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    of: HashMap<i32, Space>,
    pub modules: Vec<Module>,
    known: HashMap<Module, u32>,
    /// Whose processes these were when they first had such memory.
    users: HashMap<i32, u32>,
    /// Processes that have ended, and when.
    ended: HashMap<i32, u64>,
    /// Files, and when they were mapped first; 0: they were gone by then.
    files: BTreeMap<u32, u64>,
}

#[derive(Clone, Debug, Default)]
struct Space {
    /// In the order of time.
    mapped: Vec<MappedFile>,
    /// What was mapped before is not there any more.
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

/// Names of mappings that are no file's, though they may look like one.
const ANONYMOUS: [&str; 5] = ["//", "/memfd:", "/anon_hugepage", "/dev/zero", "/SYSV"];

/// Behind the name of a mapped file that is not there any more, or another one has its name.
const DELETED: &str = " (deleted)";

/// Whose process this is; if it has ended already the recorder's user, who may record no others' unless it is root.
fn user_of(pid: i32) -> u32 {
    let user = |process: &str| Some(fs::metadata(format!("/proc/{process}")).ok()?.uid());
    user(&pid.to_string()).or_else(|| user("self")).unwrap_or(0)
}

impl Spaces {
    fn module(&mut self, pid: i32, file: &str) -> (u32, bool) {
        let module = match file {
            "[vdso]" => Module::Vdso,
            file if file.starts_with('/') && !ANONYMOUS.iter().any(|name| file.starts_with(name)) => {
                Module::File(file.trim_end_matches(DELETED).to_string())
            }
            _ => Module::Anonymous { pid, user: *self.users.entry(pid).or_insert_with(|| user_of(pid)) },
        };
        let anonymous = !matches!(module, Module::File(_));
        (self.number(module), anonymous)
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

    /// Whose a stack of a process is; None: it is not known.
    pub fn process(&self, pid: i32) -> Option<CodePlace> {
        let module = self.of.get(&pid)?.name;
        module.map(|module| CodePlace { module: Some(module), address: 0 })
    }

    pub fn mapped(&mut self, since: u64, pid: i32, start: u64, len: u64, offset: u64, file: &str) {
        let end = start.saturating_add(len);
        let mapped = MappedFile { since, start, end, offset, module: 0, anonymous: false };
        self.add(pid, mapped, file, since);
    }

    /// Adds a mapping, seen at that time.
    fn add(&mut self, pid: i32, mapped: MappedFile, file: &str, seen: u64) {
        let (module, anonymous) = self.module(pid, file);
        if !anonymous {
            let seen = if file.ends_with(DELETED) { 0 } else { seen };
            self.files.entry(module).and_modify(|first| *first = seen.min(*first)).or_insert(seen);
        }
        self.of.entry(pid).or_default().mapped.push(MappedFile { module, anonymous, ..mapped });
    }

    pub fn executed(&mut self, time: u64, pid: i32) {
        let space = self.of.entry(pid).or_default();
        space.executed = time;
        space.mapped.retain(|mapped| mapped.since >= time);
    }

    pub fn forked(&mut self, parent: i32, child: i32) {
        if self.ended.remove(&child).is_some() {
            self.of.remove(&child); // (another process of the same number)
        }
        if let Some(space) = self.of.get(&parent).cloned() {
            self.of.entry(child).or_insert(space);
        }
    }

    /// A process's first thread has ended.
    pub fn exited(&mut self, time: u64, pid: i32) {
        self.ended.insert(pid, time);
    }

    /// Forgets processes that had ended by then.
    pub fn forget(&mut self, by: u64) {
        let gone = |pid: i32| !Path::new("/proc").join(pid.to_string()).exists();
        let (of, users) = (&mut self.of, &mut self.users);
        self.ended.retain(|pid, time| {
            let forgotten = *time < by && gone(*pid);
            if forgotten {
                of.remove(pid);
                users.remove(pid);
            }
            !forgotten
        });
    }

    /// Files that were replaced or changed after they were mapped, the clock of all records being so far behind that of files.
    pub fn changed(&self, behind_ns: i128) -> Vec<String> {
        let changed = |(module, mapped): (&u32, &u64)| {
            let Module::File(path) = &self.modules[*module as usize] else { return None };
            let about = fs::metadata(path).ok()?;
            let changed_ns = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
            (*mapped == 0 || changed_ns > i128::from(*mapped) + behind_ns).then(|| path.clone())
        };
        self.files.iter().filter_map(changed).collect()
    }

    /// What a process that is there already is called and has mapped.
    ///
    /// # Errors
    /// It may not be seen (of a process that has ended there is nothing).
    pub fn look_at(&mut self, pid: i32) -> io::Result<()> {
        if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
            self.named(pid, name.trim_end_matches('\n').into());
        }
        let maps = match fs::read_to_string(format!("/proc/{pid}/maps")) {
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
                self.add(pid, mapped, file, now());
            }
        }
        Ok(())
    }

    /// Where an address of a process was at that time.
    pub fn place(&self, pid: i32, time: u64, address: u64) -> CodePlace {
        let found = self.of.get(&pid).and_then(|space| {
            let at = |mapped: &&MappedFile| {
                mapped.since <= time.max(space.executed) && (mapped.start..mapped.end).contains(&address)
            };
            space.mapped.iter().rev().find(at)
        });
        match found {
            Some(mapped) if mapped.anonymous => CodePlace { module: Some(mapped.module), address },
            Some(mapped) => {
                CodePlace { module: Some(mapped.module), address: address - mapped.start + mapped.offset }
            }
            None => CodePlace { module: None, address },
        }
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
            Module::File(file) => {
                let MappedFile { start, end, offset, module, .. } = *mapped;
                Some(MappedPart { start, end, offset, module, file })
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::behind_files;

    #[test]
    fn an_address_is_of_what_was_mapped_last() {
        let mut spaces = Spaces::default();
        spaces.mapped(10, 1, 0x1000, 0x1000, 0x500, "/lib/a");
        spaces.mapped(20, 1, 0x1000, 0x800, 0, "/lib/b");
        spaces.mapped(20, 1, 0x8000, 0x800, 0, "//anon");
        spaces.forked(1, 2);
        let of = |spaces: &Spaces, pid, time, address| {
            let CodePlace { module, address } = spaces.place(pid, time, address);
            (module.map(|module| spaces.modules[module as usize].clone()), address)
        };
        let file = |name: &str| Some(Module::File(name.to_string()));
        let anonymous = Some(Module::Anonymous { pid: 1, user: user_of(1) });
        for pid in [1, 2] {
            assert_eq!(of(&spaces, pid, 15, 0x1100), (file("/lib/a"), 0x600));
            assert_eq!(of(&spaces, pid, 25, 0x1100), (file("/lib/b"), 0x100));
            assert_eq!(of(&spaces, pid, 25, 0x1900), (file("/lib/a"), 0xe00));
            assert_eq!(of(&spaces, pid, 25, 0x8100), (anonymous.clone(), 0x8100));
            assert_eq!(of(&spaces, pid, 5, 0x1100), (None, 0x1100));
        }
        spaces.executed(30, 1);
        spaces.mapped(31, 1, 0x1000, 0x1000, 0, "/bin/c");
        assert_eq!(of(&spaces, 1, 35, 0x1100), (file("/bin/c"), 0x100));
        assert_eq!(of(&spaces, 1, 35, 0x8100), (None, 0x8100));
        assert_eq!(of(&spaces, 2, 35, 0x1100), (file("/lib/b"), 0x100));
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
            spaces.mapped(0, pid, start, 0x1000, 0x8000, name);
            let CodePlace { module, address } = spaces.place(pid, 1, start + 8);
            assert_eq!(spaces.modules[module.unwrap() as usize], Module::Anonymous { pid, user }, "{name}");
            assert_eq!(address, start + 8);
        }
        // one that has ended
        assert_eq!(user_of(i32::MAX), user);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut spaces = Spaces::default();
        let (parent, child) = (std::process::id() as i32, i32::MAX); // (the child has no directory)
        let file = |spaces: &Spaces, time| {
            let module = spaces.place(child, time, 0x1100).module?;
            Some(spaces.modules[module as usize].clone())
        };
        let is = |name: &str| Some(Module::File(name.to_string()));
        spaces.mapped(0, parent, 0x1000, 0x1000, 0, "/bin/parent");
        spaces.forked(parent, child);
        spaces.executed(10, child);
        spaces.mapped(11, child, 0x1000, 0x1000, 0, "/bin/first");
        spaces.exited(20, child);
        spaces.forget(20); // (samples of its last moments may come still)
        assert_eq!(file(&spaces, 15), is("/bin/first"));
        spaces.forked(parent, child);
        assert_eq!(file(&spaces, 30), is("/bin/parent"));
        spaces.exited(40, child);
        spaces.exited(41, parent);
        spaces.forget(50);
        assert!(!spaces.of.contains_key(&child) && spaces.of.contains_key(&parent));
    }

    #[test]
    fn a_file_that_changes_after_it_was_mapped_is_named() {
        let scratch = crate::symbols::tests::Scratch::new("changed");
        let paths = ["stays", "replaced", "deleted"].map(|name| scratch.path(name));
        paths.iter().for_each(|path| fs::write(path, "").unwrap());
        let mut spaces = Spaces::default();
        let [stays, replaced, deleted] = paths.each_ref().map(|path| path.to_str().unwrap());
        for path in [stays, replaced] {
            spaces.mapped(now(), 7, 0x1000, 0x1000, 0, path);
        }
        assert_eq!(spaces.changed(behind_files()), Vec::<String>::new());
        spaces.mapped(now(), 8, 0x1000, 0x1000, 0, &format!("{deleted}{DELETED}"));
        // (times of files are those of ticks)
        std::thread::sleep(std::time::Duration::from_millis(50));
        // by one that says that it is older
        let new = fs::File::create(scratch.path("new")).unwrap();
        new.set_modified(std::time::UNIX_EPOCH).unwrap();
        fs::rename(scratch.path("new"), &paths[1]).unwrap();
        // (whoever maps it later maps what is there)
        spaces.mapped(now() + 9_000_000_000, 8, 0x1000, 0x1000, 0, replaced);
        assert_eq!(spaces.changed(behind_files()), [replaced, deleted]);
        // one that was gone by then is another one, however old that is
        assert_eq!(spaces.changed(2 * behind_files()), [deleted]);
        fs::remove_file(&paths[1]).unwrap();
        assert_eq!(spaces.changed(behind_files()), [deleted]);
    }

    #[test]
    fn this_process_is_found_in_its_own_program() {
        let mut spaces = Spaces::default();
        let pid = std::process::id() as i32;
        spaces.look_at(pid).unwrap();
        let here = this_process_is_found_in_its_own_program as *const () as u64;
        let module = spaces.place(pid, 1, here).module.unwrap();
        let program = std::env::current_exe().unwrap().display().to_string();
        assert!(!spaces.changed(behind_files()).contains(&program));
        assert_eq!(spaces.modules[module as usize], Module::File(program));
        // its name is its first thread's, and its children's until they have another one
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
