//! Functions whose first instructions are replaced by a jump to their stubs, so that every call of them is measured, wherever it
//! comes from.
//!
//! Which functions these are is found out in a process of its own (`crate::apart`): that takes memory, and reads files that may be
//! anything. It leaves what it found in memory that both processes share. Code is written before the program begins, while this is its only
//! thread: nobody executes what is written to.

use super::elf::Object;
use super::patterns::{self, Pattern};
use super::{FUNCTIONS, prepare, stubs};
use crate::process::MeasuredProcess;
use crate::{apart, memory, say};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;
use std::fs::{self, File};
use std::mem::zeroed;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use topdown_patch::{Entry, JUMP, Refusal, plan};
use topdown_table::NAME;

/// Bytes that are replaced at most: a jump's, the last of which may be any instruction's first.
const LONGEST: usize = JUMP - 1 + 15;
/// `jmp` to an address that follows it.
const FAR_JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
/// Bytes that a far jump takes, before which the moved instructions begin.
const WAY: usize = 16;
/// Bytes that the way to a stub and back takes at most.
const ISLAND: usize = 96;
/// How far from an object its ways may be, so that jumps reach it and its data.
const NEAR: usize = 1 << 30;
/// Bytes for names and for what is to be said in the end.
const TEXT: usize = stubs::STUBS * (NAME + 1) + (1 << 20);
/// Objects that nothing is patched in: what this library itself is called by, and calls.
const LEFT_ALONE: [&CStr; 11] = [
    c"libc.so*",
    c"libc-*.so",
    c"ld-*.so*",
    c"libpthread.so*",
    c"libpthread-*.so",
    c"libdl.so*",
    c"libdl-*.so",
    c"libgcc_s*",
    c"libtopdown*",
    c"lib?san.so*",
    c"linux-vdso*",
];

/// What was found out, in memory that both processes have.
#[repr(C)]
struct Findings {
    /// All was looked at, and the rest is valid.
    is_complete: bool,
    count: usize,
    patches: [Patch; stubs::STUBS],
    /// What is to be said when the program ends begins here in the text; each line ends with NUL.
    said_from: usize,
    used: usize,
    text: [u8; TEXT],
}

/// A function that is to go to its stub.
#[repr(C)]
struct Patch {
    function: usize,
    /// Where its bytes are replaced, and which they are.
    at: usize,
    replaced: [u8; LONGEST],
    length: usize,
    /// Where the way to its stub begins, and its moved instructions.
    way: usize,
    moved: usize,
    /// Where in the text its name is.
    name: usize,
}

/// An object in which functions are wanted.
struct Wanted<'a> {
    object: &'a Object,
    patterns: Vec<usize>,
    /// Where its ways are to be; None: there is no room near it.
    island: Option<*mut u8>,
}

/// Whether a patch was written.
enum Written {
    Yes,
    /// No: the code is not that of its file.
    IsOther,
    /// No: the system does not let it be written.
    Refused,
}

const UNWRITABLE: &str = "the system does not let code be written (SELinux, PR_SET_MDWE)";

const OTHER_FILE: &str = "its file is another than the one that is loaded";

static FINDINGS: OnceLock<&'static Findings> = OnceLock::new();
/// Something may have to be said in the end: the process is not one that a measured one started.
static MAY_COMPLAIN: AtomicBool = AtomicBool::new(false);

/// Has those functions go to stubs that the patterns mean; to be called once, before the program begins.
pub fn start(patterns: &[Pattern], objects: &[Object]) {
    let mut wanted: Vec<Wanted> = objects.iter().filter_map(|object| Wanted::of(object, patterns)).collect();
    if wanted.is_empty() || !prepare(FUNCTIONS) {
        return;
    }
    if !has_one_thread() {
        FUNCTIONS.say("no function is patched: threads run before the program begins, or there is no /proc");
        return;
    }
    let size = stubs::left() * ISLAND;
    let Some(findings) = map(null_mut(), size_of::<Findings>(), false) else {
        FUNCTIONS.say("no memory to look for functions: none is patched");
        return;
    };
    // SAFETY: a new mapping of zeros, which are findings, and stays.
    let findings = unsafe { &mut *findings.cast::<Findings>() };
    for one in &mut wanted {
        one.island = map_near(one.object, size);
    }
    if let Err(why) = apart::run(|| {
        findings.find(&wanted, patterns);
        true
    }) {
        FUNCTIONS.say(&format!("no function is patched: {why}"));
        return;
    }
    if !findings.is_complete {
        FUNCTIONS.say("no function is patched: the process that looks for them has failed");
        return;
    }
    let islands: Vec<*mut u8> = wanted.iter().filter_map(|one| one.island).collect();
    // SAFETY: mappings of this function, of so many bytes.
    let executable = islands
        .iter()
        .all(|island| unsafe { libc::mprotect(island.cast(), size, libc::PROT_READ | libc::PROT_EXEC) } == 0);
    if !executable {
        FUNCTIONS.say(&format!("no function is patched: {UNWRITABLE}"));
        return;
    }
    let is_root = MeasuredProcess::here().is_some_and(|process| process.run.root == process.pid);
    let mut left_out = [0; 2];
    undisturbed(|| {
        for patch in &findings.patches[..findings.count] {
            match patch.write(findings) {
                Written::Yes => {}
                Written::IsOther => left_out[0] += 1,
                Written::Refused => left_out[1] += 1,
            }
        }
    });
    for (count, why) in left_out.iter().zip(["their file has other code there (a breakpoint?)", UNWRITABLE]) {
        if *count > 0 && is_root {
            FUNCTIONS.say(&format!("{count} of the functions not measured: {why}"));
        }
    }
    MAY_COMPLAIN.store(is_root, Relaxed);
    if FINDINGS.set(findings).is_ok() && findings.count > 0 {
        stubs::STARTED.store(true, std::sync::atomic::Ordering::Release);
    }
}

/// Whether this function goes to its stub.
pub fn is_patched(function: usize) -> bool {
    let patches = FINDINGS.get().map(|findings| &findings.patches[..findings.count]);
    patches.is_some_and(|patches| patches.iter().any(|patch| patch.function == function))
}

/// Whether something may have to be said in the end. The first to ask has to say it.
pub fn may_complain() -> bool {
    MAY_COMPLAIN.swap(false, Relaxed)
}

/// Says what came to nothing.
pub fn complain() {
    let Some(findings) = FINDINGS.get() else { return };
    let said = &findings.text[findings.said_from..findings.used];
    for line in said.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok()) {
        if !line.is_empty() {
            say::say(line);
        }
    }
}

impl<'a> Wanted<'a> {
    /// The object, if patterns mean functions of it. Without a library they mean the program's.
    fn of(object: &'a Object, patterns: &[Pattern]) -> Option<Wanted<'a>> {
        let names = object.names();
        let names = [names[0].as_c_str(), names[1].as_c_str()];
        let means = |pattern: &Pattern| match pattern.names_library() {
            true => pattern.wants_library(&names),
            false => object.path.is_empty(),
        };
        let mine: Vec<usize> = (0..patterns.len()).filter(|&i| means(&patterns[i])).collect();
        (!mine.is_empty()).then_some(Wanted { object, patterns: mine, island: None })
    }

    fn is_left_alone(&self) -> bool {
        let names = self.object.names();
        self.object.has_code_at(stubs::stub(0))
            || LEFT_ALONE.iter().any(|glob| names.iter().any(|name| patterns::matches(glob, name)))
    }

    /// Whether the bytes of an entry are in the object as it is loaded, so that they can be read.
    fn has_code_of(&self, entry: &Entry) -> bool {
        let first = self.object.base.wrapping_add(entry.address as usize);
        let last = first.wrapping_add(entry.replaced.len() - 1);
        self.object.has_code_at(first) && self.object.has_code_at(last)
    }

    /// Whether the object's first page, with its headers and its build id, is that of this file, which may have taken the name of the one that
    /// was loaded. (In the other process: what cannot be read ends that alone.)
    fn is_loaded_from(&self, file: &[u8]) -> bool {
        let head = &file[..file.len().min(memory::page())];
        // SAFETY: the first page of a loaded object is mapped as long as this process is.
        head == unsafe { slice::from_raw_parts(self.object.extent().start as *const u8, head.len()) }
    }

    fn name(&self) -> String {
        self.object.names()[0].to_string_lossy().into_owned()
    }
}

impl Findings {
    /// Finds out which functions can go to stubs, and writes their ways. (In the other process.)
    fn find(&mut self, wanted: &[Wanted], patterns: &[Pattern]) {
        let list = FUNCTIONS.spelled();
        let mut said = Vec::new();
        let mut found: Vec<usize> = patterns.iter().map(|pattern| pattern.found).collect();
        for one in wanted {
            if let Err(why) = self.find_in(one, patterns, &mut found, &mut said) {
                said.push(format!("{list}: no function of {} is patched: {why}", one.name()));
            }
        }
        let names: Vec<String> = wanted.iter().map(Wanted::name).collect();
        // (`topdown run` knows of all processes)
        let is_known = MeasuredProcess::get().is_some_and(|process| process.output.is_raw());
        for (pattern, _) in patterns.iter().zip(&found).filter(|(_, found)| **found == 0 && !is_known) {
            said.push(format!(
                "{list}: '{}' names no function of {}: nm shows which there are; inlined ones are not",
                pattern.text(),
                names.join(", ")
            ));
        }
        self.said_from = self.used;
        for line in said {
            self.keep(&line);
        }
        self.is_complete = true;
    }

    fn find_in(
        &mut self,
        wanted: &Wanted,
        patterns: &[Pattern],
        found: &mut [usize],
        said: &mut Vec<String>,
    ) -> Result<(), String> {
        if wanted.is_left_alone() {
            wanted.patterns.iter().for_each(|&i| found[i] += 1);
            return Err("this library itself depends on it; --regions measures what it offers".into());
        }
        let file = File::open(wanted.object.file()).map_err(|error| error.to_string())?;
        // SAFETY: who writes into the file of a running program ends the program, too; here, this process alone.
        let file = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| error.to_string())?;
        if !wanted.is_loaded_from(&file) {
            return Err(OTHER_FILE.into());
        }
        let mut not_hooked = Vec::new();
        let meant = |text: &str| {
            let Ok(name) = CString::new(text) else { return false };
            let mut is_meant = false;
            for &i in wanted.patterns.iter().filter(|&&i| patterns[i].wants_function(&name)) {
                found[i] += 1;
                is_meant = true;
            }
            if is_meant && patterns::refused(&name) {
                not_hooked.push(text.to_owned());
                return false;
            }
            is_meant
        };
        let plan = plan(&file, meant).map_err(|why| why.to_string())?;
        if !plan.entries.iter().all(|entry| wanted.has_code_of(entry)) {
            return Err(OTHER_FILE.into());
        }
        let island = wanted.island.ok_or("there is no room near it")?;
        let list = FUNCTIONS.spelled();
        let mut place = island as usize;
        let mut left = 0;
        for entry in &plan.entries {
            match self.add(entry, place, wanted.object.base) {
                Some(end) => place = end,
                None => left += 1,
            }
        }
        if left > 0 {
            said.push(format!(
                "{list}: {left} functions of {} not measured: {} can be, name fewer",
                wanted.name(),
                stubs::STUBS
            ));
        }
        said.extend(refusals(&plan.refused, &wanted.name(), list));
        if !not_hooked.is_empty() {
            not_hooked.sort();
            not_hooked.dedup(); // (most have two symbols)
            let names: Vec<&str> = not_hooked.iter().map(String::as_str).collect();
            said.push(not_measured(
                &"that by their names are not called as the ABI says",
                &names,
                &wanted.name(),
                list,
            ));
        }
        Ok(())
    }

    /// Adds a function whose ways are at this place; where the next may be. None: there is no room.
    fn add(&mut self, entry: &Entry, place: usize, base: usize) -> Option<usize> {
        let number = self.count;
        if number == stubs::left() {
            return None;
        }
        let moved = place + WAY;
        let code = entry.moved.placed(moved as u64, base as u64)?;
        let name = self.keep(&region_name(entry))?;
        let mut patch = Patch {
            function: base + entry.function as usize,
            at: base + entry.address as usize,
            replaced: [0; LONGEST],
            length: entry.replaced.len(),
            way: place,
            moved,
            name,
        };
        patch.replaced[..patch.length].copy_from_slice(&entry.replaced);
        let stub = stubs::stub(stubs::STUBS - stubs::left() + number);
        // SAFETY: the island has so many bytes for each stub that is left.
        let island = unsafe { slice::from_raw_parts_mut(place as *mut u8, ISLAND) };
        island[..FAR_JUMP.len()].copy_from_slice(&FAR_JUMP);
        island[FAR_JUMP.len()..FAR_JUMP.len() + 8].copy_from_slice(&stub.to_le_bytes());
        island[WAY..WAY + code.len()].copy_from_slice(&code);
        self.patches[number] = patch;
        self.count += 1;
        Some(place + (WAY + code.len()).next_multiple_of(WAY))
    }

    /// Keeps a text, as a C string; where it is. None: there is no room.
    fn keep(&mut self, text: &str) -> Option<usize> {
        let at = self.used;
        self.text.get_mut(at..at + text.len())?.copy_from_slice(text.as_bytes());
        (at + text.len() < TEXT).then(|| self.used = at + text.len() + 1)?;
        Some(at)
    }
}

impl Patch {
    /// Has the function go to its stub, if it is as its file says.
    fn write(&self, findings: &Findings) -> Written {
        // (its way leads to the stub that is the next, whatever becomes of it)
        let Some(number) = stubs::take() else { return Written::Refused };
        stubs::set_hooked(number, self.moved, findings.text[self.name..].as_ptr().cast::<c_char>());
        let page = memory::page();
        let first = self.at & !(page - 1);
        let pages = (self.at + self.length).next_multiple_of(page) - first;
        let executed = libc::PROT_READ | libc::PROT_EXEC;
        let mut code = [0xcc; LONGEST]; // (nobody comes to what follows the jump)
        code[0] = 0xe9;
        let distance = (self.way as isize - (self.at + JUMP) as isize) as i32; // within NEAR
        code[1..JUMP].copy_from_slice(&distance.to_le_bytes());
        // SAFETY: code of a loaded object (`Wanted::has_code_of`). This is the only thread, no signal comes, and what runs here is none of
        // the object's, so that nobody executes it. What is not writable yet is only read.
        unsafe {
            let bytes = slice::from_raw_parts_mut(self.at as *mut u8, self.length);
            if *bytes != self.replaced[..self.length] {
                return Written::IsOther;
            }
            // It can be executed all the time: a system that lets nobody execute what was written to (SELinux's execmod) would leave
            // the program without its code.
            if libc::mprotect(first as *mut _, pages, executed | libc::PROT_WRITE) != 0 {
                return Written::Refused;
            }
            bytes.copy_from_slice(&code[..self.length]);
            libc::mprotect(first as *mut _, pages, executed); // (if that fails it can be written to, which does not hurt)
        }
        Written::Yes
    }
}

/// What the function's region is called: as the function, or if that is too long for a region by its beginning and its address.
fn region_name(entry: &Entry) -> Cow<'_, str> {
    if entry.name.len() <= NAME {
        return Cow::Borrowed(&entry.name);
    }
    let end = format!("...@{:#x}", entry.function);
    let mut beginning = NAME - end.len();
    while !entry.name.is_char_boundary(beginning) {
        beginning -= 1;
    }
    Cow::Owned(format!("{}{end}", &entry.name[..beginning]))
}

/// What is said of functions that were refused, by reasons.
fn refusals(refused: &[(String, Refusal)], object: &str, list: &str) -> Vec<String> {
    let mut reasons: BTreeMap<Refusal, Vec<&str>> = BTreeMap::new();
    for (name, why) in refused {
        reasons.entry(*why).or_default().push(name);
    }
    reasons.iter().map(|(why, names)| not_measured(why, names, object, list)).collect()
}

/// A line of functions that are not measured, the first of which it names.
fn not_measured(why: &dyn Display, names: &[&str], object: &str, list: &str) -> String {
    const NAMED: usize = 3;
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = names[..names.len().min(NAMED)].join(", ");
    format!("{list}: not measured in {object}: functions {why}: {named}{more}")
}

/// Whether this is the only thread, as far as /proc tells.
fn has_one_thread() -> bool {
    // (a directory's links are those of itself, of its parent, and of its directories)
    fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == 3)
}

/// Does this while no signal can come.
fn undisturbed(work: impl FnOnce()) {
    // SAFETY: signal sets of this function.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
    }
}

/// Memory that a copy of this process has, too; at this place alone, if it is to be.
fn map(at: *mut u8, size: usize, fixed: bool) -> Option<*mut u8> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let fixed_flag = if fixed { libc::MAP_FIXED_NOREPLACE } else { 0 };
    // SAFETY: a new mapping, where nothing is.
    unsafe {
        let got = libc::mmap(at.cast(), size, libc::PROT_READ | libc::PROT_WRITE, flags | fixed_flag, -1, 0);
        if got == libc::MAP_FAILED {
            return None;
        }
        if fixed && got != at.cast() {
            libc::munmap(got, size); // a kernel that does not know the flag
            return None;
        }
        Some(got.cast())
    }
}

/// Memory within reach of all of an object: below it, so that a heap that follows it can grow.
fn map_near(object: &Object, size: usize) -> Option<*mut u8> {
    const STEP: usize = 1 << 20;
    let extent = object.extent();
    let size = size.next_multiple_of(memory::page());
    let highest = (extent.start & !(memory::page() - 1)).checked_sub(size)?;
    let lowest = extent.end.saturating_sub(NEAR);
    (0..NEAR / STEP)
        .filter_map(|step| highest.checked_sub(step * STEP))
        .take_while(|at| *at >= lowest.max(STEP))
        .find_map(|at| map(at as *mut u8, size, true))
}
