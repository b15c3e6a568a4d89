//! Lists of events (jsession.h).

use super::{guard, text};
use crate::caller::Caller;
use crate::session::layout::RawEvent;
use crate::session::open::{self, ENABLE_ON_EXEC, MEASURE_ALL};
use crate::session::print::{self, PrintStyle, ProgramFile, SessionPrint};
use crate::session::{Event, EventList, List, parse, read};
use libc::{FILE, c_char, c_double, c_int, pid_t};
use std::ptr::{NonNull, null_mut};
use topdown_seam::sysfs::Sysfs;

/// 0 or -1.
fn code(result: Option<Result<(), ()>>) -> c_int {
    if result == Some(Ok(())) { 0 } else { -1 }
}

/// An event, and a CPU that it can have.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
unsafe fn on_cpu(size: usize, event: *mut RawEvent, cpu: c_int) -> Option<(Event, usize)> {
    // SAFETY: the caller's word.
    Some((unsafe { Event::of(event, size) }?, cpu.try_into().ok()?))
}

/// A list.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
unsafe fn list(size: usize, list: *mut EventList) -> Option<List> {
    // SAFETY: the caller's word.
    unsafe { List::of(Caller::new(list, size)) }
}

/// An empty list; NULL without memory.
#[unsafe(no_mangle)]
pub extern "C" fn alloc_eventlist() -> *mut EventList {
    guard(null_mut(), || {
        // SAFETY: no memory is passed.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1);
        let sockets = Sysfs::real().socket_cpus().unwrap_or_default();
        List::alloc(cpus as c_int, &sockets).map_or(null_mut(), NonNull::as_ptr)
    })
}

/// Appends the events of a text.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn parse_events(size: usize, el: *mut EventList, events: *const c_char) -> c_int {
    // SAFETY: as above.
    guard(-1, || code(unsafe { list(size, el).zip(text(events)) }.map(|(el, events)| parsed(el, &events))))
}

fn parsed(list: List, events: &str) -> Result<(), ()> {
    parse::parse_events(&Sysfs::real(), list, events)
}

/// Opens all events on all CPUs, for a process and from its exec on, or for all processes.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn setup_events(
    size: usize,
    el: *mut EventList,
    measure_all: bool,
    measure_pid: pid_t,
) -> c_int {
    let flags = if measure_all { MEASURE_ALL } else { ENABLE_ON_EXEC };
    // SAFETY: as above.
    guard(-1, || code(unsafe { list(size, el) }.map(|el| set_up(el, measure_pid, None, flags))))
}

/// Opens all events on some CPUs, `a,b-c,d-`; NULL: all.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn setup_events_cpumask(
    size: usize,
    el: *mut EventList,
    measure_pid: pid_t,
    cpumask: *const c_char,
    flags: c_int,
) -> c_int {
    guard(-1, || {
        // SAFETY: as above.
        let (el, mask) = unsafe { (list(size, el), text(cpumask)) };
        code(el.map(|el| set_up(el, measure_pid, mask.as_deref(), flags)))
    })
}

fn set_up(list: List, pid: pid_t, mask: Option<&str>, flags: c_int) -> Result<(), ()> {
    open::setup_events_cpumask(&Sysfs::real(), list, pid, mask, flags)
}

/// Opens an event on a CPU; it counts from the exec of the process on, or at once.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn setup_event(
    size: usize,
    e: *mut RawEvent,
    cpu: c_int,
    leader: *mut RawEvent,
    measure_all: bool,
    measure_pid: pid_t,
) -> c_int {
    let flags = if measure_all { 0 } else { ENABLE_ON_EXEC };
    // SAFETY: as above.
    unsafe { set_up_event(size, e, cpu, leader, measure_pid, flags) }
}

/// Opens an event on a CPU.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn setup_event_flags(
    size: usize,
    e: *mut RawEvent,
    cpu: c_int,
    leader: *mut RawEvent,
    measure_pid: pid_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { set_up_event(size, e, cpu, leader, measure_pid, flags) }
}

/// # Safety
/// As jsession.h says, of each argument that is not NULL.
unsafe fn set_up_event(
    size: usize,
    e: *mut RawEvent,
    cpu: c_int,
    leader: *mut RawEvent,
    measure_pid: pid_t,
    flags: c_int,
) -> c_int {
    guard(-1, || {
        // SAFETY: as above.
        let (event, leader) = unsafe { (on_cpu(size, e, cpu), Event::of(leader, size)) };
        let open =
            |(event, cpu)| open::setup_event_flags(&Sysfs::real(), event, cpu, leader, measure_pid, flags);
        code(event.map(open))
    })
}

/// Reads an event on a CPU.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn read_event(size: usize, e: *mut RawEvent, cpu: c_int) -> c_int {
    // SAFETY: as above.
    guard(-1, || code(unsafe { on_cpu(size, e, cpu) }.map(|(event, cpu)| read::read_event(event, cpu))))
}

/// Reads all that are open.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn read_all_events(size: usize, el: *mut EventList) -> c_int {
    // SAFETY: as above.
    guard(-1, || code(unsafe { list(size, el) }.map(read::read_all_events)))
}

/// What was read, scaled to the time that it was enabled.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn event_scaled_value(size: usize, e: *mut RawEvent, cpu: c_int) -> u64 {
    // SAFETY: as above.
    guard(0, || unsafe { on_cpu(size, e, cpu) }.map_or(0, |(event, cpu)| read::scaled(event.efd(cpu))))
}

/// The same of an event and its clones.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn event_scaled_value_sum(size: usize, e: *mut RawEvent, cpu: c_int) -> u64 {
    // SAFETY: as above.
    guard(0, || unsafe { on_cpu(size, e, cpu) }.map_or(0, |(event, cpu)| read::scaled_sum(event, cpu)))
}

/// Closes and frees all.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn free_eventlist(size: usize, el: *mut EventList) {
    // SAFETY: as above.
    guard((), || unsafe { list(size, el) }.into_iter().for_each(open::free));
}

/// What the events' texts resolved to.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn print_event_list_attr(size: usize, el: *mut EventList, f: *mut FILE) {
    // SAFETY: as above.
    let both = unsafe { list(size, el).zip(ProgramFile::of(f)) };
    guard((), || both.into_iter().for_each(|(el, out)| print::print_event_list_attr(out, el)));
}

/// A printing function, with a program's arguments.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
unsafe fn printed(
    print: fn(ProgramFile, List, &PrintStyle),
    size: usize,
    outfh: *mut FILE,
    el: *mut EventList,
    arg: *const SessionPrint,
) {
    // SAFETY: the caller's word.
    let (both, style) = unsafe { (ProgramFile::of(outfh).zip(list(size, el)), PrintStyle::of(arg)) };
    guard((), || both.into_iter().for_each(|(out, el)| print(out, el, &style)));
}

/// CSV.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn session_print_csv(
    size: usize,
    outfh: *mut FILE,
    el: *mut EventList,
    arg: *const SessionPrint,
) {
    // SAFETY: as above.
    unsafe { printed(print::session_print_csv, size, outfh, el, arg) }
}

/// Sums over all CPUs.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn session_print_aggr(
    size: usize,
    outfh: *mut FILE,
    el: *mut EventList,
    arg: *const SessionPrint,
) {
    // SAFETY: as above.
    unsafe { printed(print::session_print_aggr, size, outfh, el, arg) }
}

/// CPU by CPU.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
pub(super) unsafe fn session_print(
    size: usize,
    outfh: *mut FILE,
    el: *mut EventList,
    arg: *const SessionPrint,
) {
    // SAFETY: as above.
    unsafe { printed(print::session_print, size, outfh, el, arg) }
}

/// Seconds as a prefix.
///
/// # Safety
/// As jsession.h says, of each argument that is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn session_print_timestamp(buf: *mut c_char, bufs: c_int, ts: c_double) {
    if let (false, Ok(size)) = (buf.is_null(), usize::try_from(bufs)) {
        // SAFETY: as above.
        unsafe { print::session_print_timestamp(buf, size, ts) }
    }
}
