//! The process: what is set up before main, for each thread, after a fork, and what is left when it ends.

use crate::engine::{GONE, Thread};
use crate::memory;
use crate::output::{Output, Run, stat};
use crate::quiet::Quiet;
use crate::say;
use crate::stack::{self, Turn};
use crate::tables::{Tables, put};
use crate::word;
use crate::{apart, fault, private};
use std::ffi::{CStr, CString, c_void};
use std::io::Read;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use topdown::{Options, TopDown};
use topdown_report::table::{EXECED, EXITED};

/// Bytes that are allocated at most before main, when a thread begins to be measured, and when a process forks (names of
/// its open regions); a message.
const START: usize = 1 << 17;
const THREAD: usize = 1 << 17;
const FORK: usize = 1 << 19;
const MESSAGE: usize = 1 << 14;

/// What is measured of this process.
struct Process {
    pid: libc::pid_t,
    run: Run,
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

impl Threads {
    /// Whether one more can begin, and all that have begun can end, without an allocation.
    fn has_room(&mut self) -> bool {
        self.live.try_reserve(1).is_ok() && self.ended.try_reserve(self.live.len() + 1).is_ok()
    }
}

/// A thread that is measured, and its handle.
struct Measured {
    thread: *mut Thread,
    td: Box<TopDown>,
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
    say::prepare();
    let Some(turn) = prepare() else {
        say::say("nothing is measured: no memory");
        return false;
    };
    let quiet = Quiet::new();
    let begun = stack::call(&turn, || {
        let begun = Output::from_environment().and_then(|output| Ok((output.create()?, output)));
        match begun {
            Ok((tables, output)) => {
                begin_process(tables, output, &[]);
                true
            }
            Err(error) => {
                say::say(&format!(
                    "nothing is measured: {error}; choose another place by TOPDOWN_OUTPUT or TMPDIR"
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

/// Memory for what comes before main; None: there is none.
fn prepare() -> Option<Turn> {
    let enough = stack::prepare() && memory::secure(START + private::environment_size());
    enough.then(stack::turn)
}

fn begin_process(tables: Tables, output: Output, open: &[(CString, u32)]) {
    let header = tables.header();
    let options = Options {
        simulate: std::env::var_os("TOPDOWN_SIMULATE").is_some_and(|value| value == "1"),
        ..Options::default()
    };
    // SAFETY: getpid has no preconditions.
    let pid = unsafe { libc::getpid() };
    let run = output.run_of(pid);
    let process = Process {
        pid,
        run,
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
        (header.root, header.run) = (run.root, run.token);
        header.birth = stat(pid).map_or(0, |(_, birth)| birth);
        command(&mut header.command);
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
                put(&mut header.note, info.note.to_string().as_bytes());
            }
            Err(error) => {
                word::set(GONE);
                put(&mut header.trouble, error.to_string().as_bytes());
            }
        }
    }
    PROCESS.store(process, Ordering::Release);
    fault::survive(|address| self::process().is_some_and(|process| process.tables.has(address)));
}

/// The command, as far as there is room for it, its NULs made spaces.
fn command(field: &mut [u8; 512]) {
    let mut bytes = [0; 512];
    let open = std::fs::File::open("/proc/self/cmdline");
    let length = open.and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    bytes[..length].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    put(field, bytes[..length].trim_ascii_end());
}

/// Starts to measure the calling thread.
fn begin_thread(process: &Process, open: &[(CString, u32)]) -> Result<(), topdown::Error> {
    let no_memory = || topdown::Error::new(-libc::ENOMEM, "no memory");
    if !memory::secure(THREAD) || !threads(process).has_room() {
        return Err(no_memory());
    }
    let td = Box::new(with_high_descriptors(|descriptors_from| {
        TopDown::open(&Options { descriptors_from, ..process.options })
    })?);
    let mut name = [0_u8; 17];
    // SAFETY: PR_GET_NAME writes 16 bytes at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let thread = go_on(process, &td, name)
        .or_else(|| Thread::begin(&*td, &process.tables, name, open))
        .ok_or(topdown::Error::new(-libc::ENOSPC, "no memory, or no room in the table file"))?;
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
    if fault::has_lost() {
        lost(process);
    }
    // SAFETY: the header is mapped as long as the process is this one. (A copy of the process does not have it.)
    unsafe { (*process.tables.header()).ended.store(EXITED, Ordering::Release) };
    drop(quiet); // the report may wait for whoever reads it
    let (output, run, own) = (&process.output, process.run, process.tables.path());
    let is_ours = || run.root == process.pid || !memory::secure(THREAD) || output.is_ours_to_report(&run);
    if output.reports() && stack::call(&turn, is_ours) {
        let report = || output.report(process.pid, &run, own);
        if let Err(why) = apart::run(|| stack::call(&turn, report)) {
            if memory::secure(MESSAGE) {
                output.no_report(own, &why);
            }
        }
    }
}

/// Somebody truncated the table file: says so, also in the file, if there is something left of it.
#[cold]
fn lost(process: &Process) {
    const WHY: &str = "its table file was truncated while it ran";
    // SAFETY: the header is mapped as long as the process is this one.
    unsafe { put(&mut (*process.tables.header()).trouble, WHY.as_bytes()) };
    if memory::secure(MESSAGE) {
        say::say(&format!(
            "{}: truncated while the program ran: what was measured is lost in part",
            process.tables.path().display()
        ));
    }
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
    if !memory::secure(FORK) {
        return; // the child is not measured
    }
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
    let Some(mut held) = release() else { return };
    let open = std::mem::take(&mut *held.open);
    let Held { _threads, open: names, turn, quiet: _quiet } = *held;
    drop((_threads, names));
    let old = PROCESS.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: it is never freed.
    let Some(old) = (unsafe { old.as_ref() }) else { return };
    word::set(null_mut());
    fault::forget();
    // the parent's handles, whose descriptors this child has, too
    threads(old).live.clear();
    stack::call(&turn, || {
        let output = old.output.clone();
        // (without a word: the program has begun, and may not be where files can be made)
        let Ok(tables) = output.create() else { return };
        begin_process(tables, output, &open);
    });
}
