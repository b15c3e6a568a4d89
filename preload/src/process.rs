//! The process: what is set up before main, for each thread, after a fork, and what is left when it ends.

use crate::directory;
use crate::engine::{GONE, Thread};
use crate::quiet::Quiet;
use crate::say;
use crate::stack::{self, Turn};
use crate::tables::{Tables, put};
use crate::word;
use std::ffi::{CStr, CString, OsStr, OsString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{addr_of, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use topdown::{Options, TopDown};
use topdown_report::table::{EXECED, EXITED, HEADER_SIZE, Header, RUNS};

/// What is measured of this process.
struct Process {
    pid: libc::pid_t,
    tables: Tables,
    options: Options,
    output: Output,
    /// Counters could be opened.
    measured: AtomicBool,
    ended: AtomicBool,
    threads: Mutex<Threads>,
}

/// So many threads have records of their own; later ones go on in those of threads of their name that have ended, and
/// with so many records, of any.
const OWN_RECORDS: usize = 64;
const MOST_RECORDS: usize = 1024;

#[derive(Default)]
struct Threads {
    live: Vec<Measured>,
    /// Those that have ended, and can be gone on with.
    ended: Vec<*mut Thread>,
    /// How many have records.
    records: usize,
}

/// A thread that is measured, and its handle.
struct Measured {
    thread: *mut Thread,
    td: Box<TopDown>,
}

/// Where figures go.
#[derive(Clone)]
struct Output {
    /// None: standard error.
    report: Option<PathBuf>,
    /// Table files are this, a number or two and ".topdown".
    stem: OsString,
    /// They are what is wanted; somebody else makes the report.
    raw: bool,
}

/// NULL: nothing is measured. Never freed: other threads may be looking.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// Its destructor ends a thread. Above 2^32: made.
static KEY: AtomicU64 = AtomicU64::new(0);

fn process() -> Option<&'static Process> {
    // SAFETY: it is never freed.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

fn threads(process: &Process) -> MutexGuard<'_, Threads> {
    process.threads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anything is measured.
pub fn active() -> bool {
    process().is_some_and(|process| !process.ended.load(Ordering::Relaxed))
}

/// Before main, or when the library is loaded; whether regions can be counted.
pub fn start() -> bool {
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return false; // it runs with rights that its user does not have
    }
    if !stack::prepare() {
        return false; // no memory
    }
    let quiet = Quiet::new();
    let turn = stack::turn();
    let begun = stack::call(&turn, || {
        say::prepare();
        let output = Output::from_environment();
        match output.create() {
            Ok(tables) => {
                begin_process(tables, output, &[]);
                true
            }
            Err(error) => {
                let at = Path::new(&output.stem).parent().unwrap_or(Path::new("/")).display();
                say::say(&format!(
                    "nothing is measured: no table file can be made in {at}: {error}; choose another place by \
                     TOPDOWN_OUTPUT or TMPDIR"
                ));
                false
            }
        }
    });
    drop((turn, quiet));
    if !begun {
        return false;
    }
    // SAFETY: functions of this library, which is not unloaded.
    unsafe {
        let mut key = 0;
        if libc::pthread_key_create(&mut key, Some(thread_ends)) == 0 {
            KEY.store(1 << 32 | u64::from(key), Ordering::Relaxed);
            libc::pthread_setspecific(key, word::get().cast());
        }
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
    }
    word::get() > GONE
}

fn begin_process(tables: Tables, output: Output, open: &[(CString, u32)]) {
    let header = tables.header();
    let options = Options {
        simulate: std::env::var_os("TOPDOWN_SIMULATE").is_some_and(|value| value == "1"),
        ..Options::default()
    };
    // SAFETY: getpid has no preconditions.
    let pid = unsafe { libc::getpid() };
    let process = Process {
        pid,
        tables,
        options,
        output,
        measured: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        threads: Mutex::default(),
    };
    let process = Box::into_raw(Box::new(process));
    // SAFETY: just made; the header is mapped, and nobody else writes to it yet.
    unsafe {
        let header = &mut *header;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        header.started_unix_ns = now.as_nanos() as u64;
        header.pid = pid;
        header.parent = libc::getppid();
        header.root = root_of(&(*process).output, pid);
        let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let command: Vec<u8> = command.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
        put(&mut header.command, command.trim_ascii_end());
        match begin_thread(&*process, open) {
            Ok(()) => {
                (*process).measured.store(true, Ordering::Relaxed);
                let Some(Ok(info)) = threads(&*process).live.first().map(|first| first.td.info()) else {
                    return;
                };
                header.path = info.path as u32;
                header.level = info.level;
                header.slots_per_cycle = info.slots_per_cycle;
                header.max_error_ppm = info.max_error_ppm;
                header.max_overhead_ppm = info.max_overhead_ppm;
                put(&mut header.cpu, info.cpu.as_bytes());
                put(&mut header.pmu, info.pmu.as_bytes());
                put(&mut header.core, info.core.as_bytes());
                put(&mut header.note, info.note.as_bytes());
            }
            Err(error) => {
                word::set(GONE);
                put(&mut header.trouble, error.text().as_bytes());
            }
        }
    }
    PROCESS.store(process, Ordering::Release);
}

/// Starts to measure the calling thread.
fn begin_thread(process: &Process, open: &[(CString, u32)]) -> Result<(), topdown::Error> {
    let td = Box::new(with_high_descriptors(|descriptors_from| {
        TopDown::open(&Options { descriptors_from, ..process.options })
    })?);
    let mut name = [0_u8; 17];
    // SAFETY: PR_GET_NAME writes 16 bytes at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let thread = go_on(process, &td, name)
        .or_else(|| Thread::begin(&*td, &process.tables, name, open))
        .ok_or(topdown::Error::new(-libc::ENOSPC, "no room in the table file"))?;
    threads(process).live.push(Measured { thread, td });
    let key = KEY.load(Ordering::Relaxed);
    if key != 0 {
        // SAFETY: a key that was made.
        unsafe { libc::pthread_setspecific(key as u32, thread.cast()) };
    }
    Ok(())
}

/// Starts to measure the calling thread in the records of one that has ended. None: it is to have its own.
fn go_on(process: &Process, td: &TopDown, name: &CStr) -> Option<*mut Thread> {
    let mut threads = threads(process);
    if threads.records < OWN_RECORDS || threads.ended.is_empty() {
        threads.records += 1;
        return None;
    }
    // SAFETY: those that are listed are not freed, and nobody else's.
    let named = threads.ended.iter().rposition(|ended| unsafe { Thread::has_name(*ended, name) });
    let any = || (threads.records >= MOST_RECORDS).then_some(0);
    let Some(at) = named.or_else(any) else {
        threads.records += 1;
        return None;
    };
    let thread = threads.ended.swap_remove(at);
    drop(threads);
    // SAFETY: as above.
    unsafe { Thread::begin_again(thread, td) }.map(|()| thread)
}

/// Opens descriptors where the program does not come upon them: above its own limit, which is raised meanwhile; if
/// that is as high as it can be, in its upper half.
fn with_high_descriptors<T>(open: impl FnOnce(i32) -> T) -> T {
    let (mut own, mut then) =
        (libc::rlimit { rlim_cur: 0, rlim_max: 0 }, libc::rlimit { rlim_cur: 0, rlim_max: 0 });
    // SAFETY: live rlimits.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut own);
        let raised = libc::rlimit { rlim_cur: own.rlim_max, ..own };
        let room = own.rlim_max > own.rlim_cur && libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0;
        let from = if room { own.rlim_cur } else { own.rlim_cur / 2 };
        let result = open(from.min(HIGH_ENOUGH) as i32);
        if room && libc::prlimit(0, libc::RLIMIT_NOFILE, &own, &mut then) == 0 {
            // the program has set another one meanwhile
            if (then.rlim_cur, then.rlim_max) != (raised.rlim_cur, raised.rlim_max) {
                libc::setrlimit(libc::RLIMIT_NOFILE, &then);
            }
        }
        result
    }
}

/// Descriptors need not be higher than this: the kernel's table of them is as long as the highest, and copied by each
/// fork.
const HIGH_ENOUGH: libc::rlim_t = 1 << 14;

/// Starts to measure the calling thread, at its start or when it first comes to a region. Returns its state, or GONE.
#[cold]
pub fn attach() -> *mut Thread {
    if word::get() == GONE {
        return GONE;
    }
    // (nobody in a child of vfork, or of a fork that nobody told us of)
    let Some(process) = here() else { return GONE };
    if !process.measured.load(Ordering::Relaxed) || process.ended.load(Ordering::Relaxed) {
        word::set(GONE);
        return GONE;
    }
    let _quiet = Quiet::new();
    let turn = stack::turn();
    if stack::call(&turn, || begin_thread(process, &[])).is_err() {
        // SAFETY: the header is mapped as long as the process is this one.
        unsafe { (*process.tables.header()).refused.fetch_add(1, Ordering::Relaxed) };
        word::set(GONE);
    }
    word::get()
}

/// The calling thread ends.
unsafe extern "C" fn thread_ends(thread: *mut c_void) {
    let thread: *mut Thread = thread.cast();
    let Some(process) = here().filter(|process| !process.ended.load(Ordering::Relaxed)) else { return };
    if word::get() != thread {
        return;
    }
    let _quiet = Quiet::new();
    stack::call(&stack::turn(), || {
        let mut threads = threads(process);
        if let Some(at) = threads.live.iter().position(|one| one.thread == thread) {
            // SAFETY: it is this thread's, and lives.
            unsafe { Thread::end(thread) };
            let Measured { thread, td } = threads.live.swap_remove(at);
            threads.ended.push(thread);
            drop(threads);
            drop(td);
        }
    });
}

/// The process is about to become another program, or to abort: what there is to know of this thread.
pub fn look(execs: bool) {
    let Some(process) = here() else { return };
    let _quiet = Quiet::new();
    let thread = word::get();
    if thread > GONE {
        // SAFETY: this thread's own state.
        unsafe { Thread::look(thread) };
    }
    if execs {
        // SAFETY: the header is mapped as long as the process is this one.
        unsafe { (*process.tables.header()).ended.store(EXECED, Ordering::Relaxed) };
    }
}

/// The process that is measured, if the caller is in it and not in a child that shares its memory.
fn here() -> Option<&'static Process> {
    // SAFETY: getpid has no preconditions.
    process().filter(|process| process.pid == unsafe { libc::getpid() })
}

/// The process ends in an orderly way.
pub fn finish() {
    let Some(process) = here() else { return };
    if process.ended.swap(true, Ordering::AcqRel) {
        return;
    }
    let own = word::get();
    let quiet = Quiet::new();
    let turn = stack::turn();
    stack::call(&turn, || {
        for Measured { thread, .. } in threads(process).live.iter() {
            // SAFETY: threads that are listed have their states.
            unsafe { if *thread == own { Thread::end(*thread) } else { Thread::end_of_another(*thread) } }
        }
    });
    // SAFETY: the header is mapped as long as the process is this one.
    unsafe { (*process.tables.header()).ended.store(EXITED, Ordering::Release) };
    drop(quiet); // the report may wait for whoever reads it
    stack::call(&turn, || process.output.report(process));
}

/// Names of the forking thread's open regions; locked from before the fork until after it.
static OPEN: Mutex<Vec<(CString, u32)>> = Mutex::new(Vec::new());
/// What is locked while a process forks, so that no other thread holds it in the child.
static HELD: AtomicPtr<Held> = AtomicPtr::new(null_mut());
struct Held {
    _threads: MutexGuard<'static, Threads>,
    open: MutexGuard<'static, Vec<(CString, u32)>>,
    turn: Turn,
    /// Until everything is let go of.
    quiet: Quiet,
}

extern "C" fn before_fork() {
    // (whoever is at its end may be at the report, and have forked in a signal handler)
    let Some(process) = here().filter(|process| !process.ended.load(Ordering::Relaxed)) else { return };
    let quiet = Quiet::new();
    let turn = stack::turn();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.clear();
    let thread = word::get();
    if thread > GONE {
        // SAFETY: this thread's own state.
        let regions = unsafe { Thread::open_regions(thread) };
        open.extend(regions.into_iter().map(|(name, again)| (name.to_owned(), again)));
    }
    let held = Held { _threads: threads(process), open, turn, quiet };
    HELD.store(Box::into_raw(Box::new(held)), Ordering::Relaxed);
}

fn release() -> Option<Box<Held>> {
    let held = HELD.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: made by `before_fork` in this thread, or in the one that this is a copy of.
    (!held.is_null()).then(|| unsafe { Box::from_raw(held) })
}

extern "C" fn after_fork() {
    drop(release());
}

extern "C" fn in_child() {
    let Some(held) = release() else { return };
    let open = held.open.clone();
    let Held { _threads, open: names, turn, quiet: _quiet } = *held;
    drop((_threads, names));
    let old = PROCESS.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: it is never freed.
    let Some(old) = (unsafe { old.as_ref() }) else { return };
    word::set(null_mut());
    // the parent's handles, whose descriptors this child has, too
    threads(old).live.clear();
    let output = old.output.clone();
    stack::call(&turn, || {
        // (without a word: the program has begun, and may not be where files can be made)
        let Ok(tables) = output.create() else { return };
        begin_process(tables, output, &open);
    });
}

impl Output {
    /// As TOPDOWN_OUTPUT says.
    fn from_environment() -> Output {
        let report = std::env::var_os("TOPDOWN_OUTPUT").filter(|value| !value.is_empty()).map(PathBuf::from);
        // (the program may go to another directory)
        let report = report.map(|path| std::path::absolute(&path).unwrap_or(path));
        match report {
            None => {
                let stem = std::env::temp_dir().join("topdown").into_os_string();
                Output { report: None, stem, raw: false }
            }
            Some(path) if path.extension().is_some_and(|ending| ending == "topdown") => {
                Output { stem: path.with_extension("").into_os_string(), report: None, raw: true }
            }
            Some(path) => Output { stem: path.clone().into_os_string(), report: Some(path), raw: false },
        }
    }

    /// The table file of a process: the program that it was in before an exec has the lower number.
    fn table(&self, pid: libc::pid_t, number: u32) -> PathBuf {
        let mut path = self.stem.clone();
        path.push(format!(".{pid}.{number}.topdown"));
        path.into()
    }

    fn create(&self) -> std::io::Result<Tables> {
        // SAFETY: getpid has no preconditions.
        let pid = unsafe { libc::getpid() };
        for number in 0..10_000 {
            match Tables::create(&self.table(pid, number)) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    /// Makes the report, if it is this process's to make: no ancestor is measured that will.
    fn report(&self, process: &Process) {
        // SAFETY: the header is mapped as long as the process is this one.
        let header = unsafe { &*process.tables.header() };
        if self.raw || (header.root != process.pid && is_measured(self, header.root)) {
            return;
        }
        if self.report.is_none() && !say::stderr_is_known() {
            return; // that is the program's now; the table files stay
        }
        let files: Vec<PathBuf> = self.tables_of(header.root, header.started_unix_ns);
        let output = self
            .report
            .as_deref()
            .map(|path| if header.root == process.pid { path.to_owned() } else { beside(path, process.pid) });
        if let Err(error) = say::unharmed(|| topdown_report::write(&files, output.as_deref())) {
            let name = output.as_deref().unwrap_or(Path::new("standard error")).display();
            let files = files.first().unwrap_or(&self.stem.clone().into()).display().to_string();
            say::say(&format!("no report in {name}: {error}; the figures are in {files}"));
            return;
        }
        for file in files {
            let ended =
                read_header(&file).is_none_or(|header| !is_alive(&header) || header.pid == process.pid);
            if ended {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// All table files of that process and what descends from it.
    fn tables_of(&self, root: libc::pid_t, since: u64) -> Vec<PathBuf> {
        let stem = Path::new(&self.stem);
        let (Some(directory), Some(name)) = (stem.parent(), stem.file_name()) else { return Vec::new() };
        let mut prefix = name.as_bytes().to_vec();
        prefix.push(b'.');
        let Ok(names) = directory::names(directory) else { return Vec::new() };
        let mut files: Vec<(u64, PathBuf)> = names
            .iter()
            .map(|name| name.as_bytes())
            .filter(|name| name.starts_with(&prefix) && name.ends_with(b".topdown"))
            .filter_map(|name| {
                let path = directory.join(OsStr::from_bytes(name));
                let header = read_header(&path)?;
                let ours = header.root == root && header.started_unix_ns >= since;
                ours.then_some((header.started_unix_ns, path))
            })
            .collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }
}

/// FILE.ENDING is FILE.PID.ENDING.
fn beside(path: &Path, pid: libc::pid_t) -> PathBuf {
    let ending = path.extension().unwrap_or_default().to_owned();
    let mut name = path.with_extension("").into_os_string();
    name.push(format!(".{pid}."));
    name.push(ending);
    name.into()
}

/// The process that reports for this one: the same as for the nearest ancestor that is measured, or itself.
fn root_of(output: &Output, pid: libc::pid_t) -> libc::pid_t {
    let mut ancestor = pid;
    while let Some(parent) = parent_of(ancestor).filter(|parent| *parent > 1) {
        ancestor = parent;
        if let Some(header) = latest(output, ancestor) {
            return header.root;
        }
    }
    pid
}

/// The header of a process's last table file, if it runs.
fn latest(output: &Output, pid: libc::pid_t) -> Option<Header> {
    let paths = (0..10_000).map(|number| output.table(pid, number)).take_while(|path| path.exists());
    read_header(&paths.last()?).filter(is_alive)
}

fn is_measured(output: &Output, pid: libc::pid_t) -> bool {
    latest(output, pid).is_some()
}

fn is_alive(header: &Header) -> bool {
    // SAFETY: signal 0 is none.
    let there = unsafe { libc::kill(header.pid, 0) } == 0
        || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    there && matches!(header.ended.load(Ordering::Relaxed), RUNS | EXECED)
}

fn parent_of(pid: libc::pid_t) -> Option<libc::pid_t> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn read_header(path: &Path) -> Option<Header> {
    use std::io::Read;
    let mut page = [0_u64; HEADER_SIZE / 8];
    // SAFETY: the same bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(page.as_mut_ptr().cast::<u8>(), HEADER_SIZE) };
    std::fs::File::open(path).ok()?.read_exact(bytes).ok()?;
    // SAFETY: a header is shorter, aligned as these are, and numbers and bytes alone.
    let header: Header = unsafe { addr_of!(page).cast::<Header>().read() };
    header.is_ours().then_some(header)
}
