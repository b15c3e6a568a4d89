//! Threads: measured from their start, or from their first region, to their end.

use crate::at_work::WorkGuard;
use crate::descriptors::with_high_descriptors;
use crate::engine::{GONE, ThreadHandle, ThreadState, life, rotate};
use crate::process::{MeasuredProcess, MeasuredThread};
use crate::tables::put;
use crate::{memory, private, stack};
use std::ffi::{CStr, CString, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use topdown::{Options, TopDown};
use topdown_table::TableCore;

/// Bytes that are allocated at most when a thread begins to be measured.
pub const THREAD: usize = 1 << 17;

/// So many threads have records of their own; later ones go on in those of threads of their name that have ended, and
/// with so many records, of any.
const OWN_RECORDS: usize = 64;
const MOST_RECORDS: usize = 1024;

/// The key of a thread's value whose destructor ends the thread. Above 2^32: made.
static KEY: AtomicU64 = AtomicU64::new(0);

/// Has the ends of threads noticed, that of the calling one too.
pub fn notice_ends() {
    let mut key = 0;
    // SAFETY: a function of this library, which is not unloaded.
    unsafe {
        if libc::pthread_key_create(&mut key, Some(thread_ends)) == 0 {
            KEY.store(1 << 32 | u64::from(key), Ordering::Relaxed);
            let thread = ThreadState::current().map_or(null(), std::ptr::from_ref);
            libc::pthread_setspecific(key, thread.cast());
        }
    }
}

/// Measures the calling thread from now on, if it is not measured and can be.
#[cold]
pub fn measure() {
    if ThreadState::is_for_good_without() || ThreadState::measured().is_some() {
        return;
    }
    // (nobody in a child of vfork, or of a fork that no handler told of)
    let Some(process) = MeasuredProcess::here() else { return };
    if !process.measured.load(Ordering::Relaxed) || process.has_ended() {
        ThreadState::set_current(GONE);
        return;
    }
    let _alone = WorkGuard::new();
    let guard = stack::lock();
    if let Err(why) = stack::call(&guard, || begin_thread(process, &[])) {
        stack::call(&guard, || process.tables.refuse_thread(&why.to_string()));
        ThreadState::set_current(GONE);
    }
}

/// The calling thread, whose measured end has come, executes a region of this name.
#[cold]
pub fn miss(name: &CStr) {
    let Some(process) = MeasuredProcess::here().filter(|process| !process.has_ended()) else { return };
    let _alone = WorkGuard::new();
    let threads = process.threads();
    // (states that are listed are nobody's as long as the list is locked)
    match threads.ended.iter().rfind(|ended| ended.was_of_this_thread()) {
        Some(thread) => thread.miss(name),
        // (another thread goes on in its records)
        None => process.tables.refuse(),
    }
}

/// Starts to measure the calling thread. The result is why a group is not there that was to take turns with others.
pub fn begin_thread(
    process: &'static MeasuredProcess,
    open: &[(CString, u32)],
) -> Result<Option<topdown::Error>, topdown::Error> {
    let no_memory = || topdown::Error::new(-libc::ENOMEM, "no memory");
    if !memory::secure(THREAD * process.groups.len().max(1)) || !process.threads().has_room() {
        return Err(no_memory());
    }
    let ThreadHandles { td, others, nodes, refused } = open_handles(process)?;
    let mut name = [0_u8; 17];
    // SAFETY: PR_GET_NAME writes 16 bytes at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let all = || td.as_deref().into_iter().chain(&others);
    let mut cores: Vec<_> = all().map(core_of).collect::<Result<_, _>>()?;
    if td.is_none() {
        cores.push(TableCore { name: [0; 48], fingerprint: 0 });
    }
    let no_room = || topdown::Error::new(-libc::ENOSPC, "no memory, or no room in the table file");
    let clocks = td.is_none().then_some(ThreadHandle::CLOCKS);
    // SAFETY: they are in the list of threads that live until this one ends.
    let handles = || all().map(|td| unsafe { ThreadHandle::new(td) }).chain(clocks);
    let thread = match go_on(process, handles(), name, &cores) {
        Some(thread) => thread,
        None => {
            let first = handles().next().ok_or_else(no_room)?;
            let thread = life::begin(first, &process.tables, name, &cores[0], open).ok_or_else(no_room)?;
            if !others.is_empty() {
                let mut nodes = nodes.into_iter();
                let of_first = nodes.next().unwrap_or_default();
                let others = handles().zip(cores.iter().copied()).skip(1).zip(nodes);
                let others = others.map(|((td, core), nodes)| (td, nodes, core));
                let random = private::random().map_or(1, u64::from_ne_bytes).max(1);
                rotate::take_turns(thread, of_first, others, name, random);
            }
            thread
        }
    };
    process.threads().live.push(MeasuredThread { thread, td, others });
    let key = KEY.load(Ordering::Relaxed);
    if key != 0 {
        // SAFETY: a key that was made.
        unsafe { libc::pthread_setspecific(key as u32, std::ptr::from_ref(thread).cast()) };
    }
    Ok(refused)
}

/// A thread's handles: the one that is on, and others that take turns with it.
struct ThreadHandles {
    /// None: there are clocks alone.
    td: Option<Box<TopDown>>,
    others: Vec<TopDown>,
    /// The nodes that are kept of the first and of the others ([`RegionTurn::nodes`]).
    nodes: Vec<&'static [u32]>,
    /// Why one that was to take turns is not there.
    refused: Option<topdown::Error>,
}

/// Opens those of the calling thread. Each is proved alone, as it will be on the counters.
fn open_handles(process: &'static MeasuredProcess) -> Result<ThreadHandles, topdown::Error> {
    let open = |options: Options| {
        with_high_descriptors(|descriptors_from| TopDown::open(&Options { descriptors_from, ..options }))
    };
    let alone = |refused| {
        let td = Some(Box::new(open(process.options)?));
        Ok(ThreadHandles { td, others: Vec::new(), nodes: Vec::new(), refused })
    };
    if process.by_clocks.load(Ordering::Relaxed) {
        return Ok(ThreadHandles { td: None, others: Vec::new(), nodes: Vec::new(), refused: None });
    }
    if process.groups.is_empty() {
        return alone(None);
    }
    let (mut all, mut nodes, mut refused) = (Vec::with_capacity(process.groups.len()), Vec::new(), None);
    for group in &process.groups {
        let in_turns = process.groups.len() > 1;
        let opened = open(Options { in_turns, ..group.part.options(&process.options) });
        match opened.and_then(|td| td.switch(false).map(|()| td)) {
            Ok(td) => {
                all.push(td);
                nodes.push(&group.nodes[..]);
            }
            Err(why) => refused = Some(why),
        }
    }
    let mut all = all.into_iter();
    match (all.next(), refused) {
        (Some(td), refused) => {
            td.switch(true)?;
            Ok(ThreadHandles { td: Some(Box::new(td)), others: all.collect(), nodes, refused })
        }
        // (what one group holds is better than nothing)
        (None, refused) => alone(refused),
    }
}

/// Starts to measure the calling thread in the records of one that has ended, whose handles counted the same. None: it is to
/// have its own.
fn go_on(
    process: &MeasuredProcess,
    handles: impl Iterator<Item = ThreadHandle>,
    name: &CStr,
    cores: &[TableCore],
) -> Option<&'static ThreadState> {
    let mut threads = process.threads();
    if threads.records < OWN_RECORDS || threads.ended.is_empty() {
        threads.records += 1;
        return None;
    }
    let is_of = |ended: &&'static ThreadState| ended.is_of_cores(cores);
    let named = threads.ended.iter().rposition(|ended| is_of(ended) && ended.has_name(name));
    let any = || (threads.records >= MOST_RECORDS).then(|| threads.ended.iter().position(is_of)).flatten();
    let Some(at) = named.or_else(any) else {
        threads.records += 1;
        return None;
    };
    let thread = threads.ended.swap_remove(at);
    drop(threads);
    thread.begin_again(handles).map(|()| thread)
}

/// The handle's core, as records have it.
fn core_of(td: &TopDown) -> Result<TableCore, topdown::Error> {
    let core = td.info()?.core;
    let mut name = [0; 48];
    put(&mut name, core.as_bytes());
    Ok(TableCore { name, fingerprint: topdown::fingerprint(&core).unwrap_or(0) })
}

/// The calling thread ends.
unsafe extern "C" fn thread_ends(thread: *mut c_void) {
    let Some(process) = MeasuredProcess::here().filter(|process| !process.has_ended()) else { return };
    let Some(thread) = ThreadState::current().filter(|own| std::ptr::eq(*own, thread.cast())) else { return };
    let _alone = WorkGuard::new();
    stack::call(&stack::lock(), || {
        let mut threads = process.threads();
        if let Some(at) = threads.live.iter().position(|one| std::ptr::eq(one.thread, thread)) {
            thread.end();
            let MeasuredThread { thread, td, others } = threads.live.swap_remove(at);
            threads.ended.push(thread);
            drop(threads);
            drop((td, others));
        }
    });
}
