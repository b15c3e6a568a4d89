//! Printing what was read, to the program's FILE and by its LC_NUMERIC.

use super::layout::{Efd, Event, List};
use super::open::descriptor;
use super::read::scaled;
use crate::print_attr::print_attr;
use libc::{FILE, c_char, c_double, c_int, c_ulong};
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr;

/// `struct session_print`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SessionPrint {
    /// Of the program's struct; 0: of this one.
    pub size: c_int,
    /// Between columns of CSV, NULL for `;`.
    pub sep: *const c_char,
    /// At the start of each line, or NULL.
    pub prefix: *const c_char,
    /// One line for an event and its clones. C's `bool`.
    pub merge: u8,
}

const _: () = assert!(size_of::<SessionPrint>() == 32);

/// How to print.
pub struct PrintStyle<'a> {
    separator: &'a CStr,
    prefix: &'a CStr,
    merge: bool,
}

impl PrintStyle<'_> {
    /// As the program says; NULL says nothing, and neither does what its struct is too short for.
    ///
    /// # Safety
    /// `arg` is NULL or points to `size` bytes of the struct (all of it if `size` is 0); its texts outlive the result.
    pub unsafe fn of(arg: *const SessionPrint) -> Self {
        let mut style = PrintStyle { separator: c";", prefix: c"", merge: false };
        if arg.is_null() {
            return style;
        }
        // SAFETY: `size` is there. A member is read only if it is inside of the program's struct.
        unsafe {
            let size = (*arg).size;
            let has = |end: usize| size <= 0 || size as usize >= end;
            if has(offset_of!(SessionPrint, prefix)) && !(*arg).sep.is_null() {
                style.separator = CStr::from_ptr((*arg).sep);
            }
            if has(offset_of!(SessionPrint, merge)) && !(*arg).prefix.is_null() {
                style.prefix = CStr::from_ptr((*arg).prefix);
            }
            style.merge = has(offset_of!(SessionPrint, merge) + 1) && (*arg).merge != 0;
        }
        style
    }
}

/// What a line says of one event, on one CPU or on all.
#[derive(Debug, Default, PartialEq, Eq)]
struct PrintedCounts {
    value: u64,
    enabled: u64,
    running: u64,
}

impl PrintedCounts {
    fn add(&mut self, value: u64, [_, enabled, running]: [u64; 3]) {
        self.value = self.value.saturating_add(value);
        self.enabled = self.enabled.saturating_add(enabled);
        self.running = self.running.saturating_add(running);
    }

    /// Of some events on one CPU; None if none is open.
    fn on(events: &[Event], cpu: usize) -> Option<Self> {
        let mut counts = None;
        for event in events.iter().filter(|event| descriptor(**event, cpu).is_some()) {
            let efd: &Efd = event.efd(cpu);
            counts.get_or_insert_with(PrintedCounts::default).add(scaled(efd), efd.val);
        }
        counts
    }

    /// Of some events on all CPUs; times count only where the event has run, if it has run at all.
    fn everywhere(events: &[Event], cpus: usize) -> Self {
        let mut counts = PrintedCounts::default();
        let mut idle = PrintedCounts::default();
        for efd in events.iter().flat_map(|event| (0..cpus).map(|cpu| event.efd(cpu))) {
            let counted = if efd.val[2] > 0 { &mut counts } else { &mut idle };
            counted.add(scaled(efd), efd.val);
        }
        counts.value = counts.value.saturating_add(idle.value);
        if counts.running == 0 {
            counts.enabled = idle.enabled;
        }
        counts
    }

    /// The part of the time that it was counting, in percent, if that is not all of it.
    fn percent(&self) -> Option<c_double> {
        (self.enabled != self.running).then(|| self.running as c_double * 100.0 / self.enabled as c_double)
    }
}

/// The events of each line: one, or, merged, all that are clones of the same event, where the first of them is.
fn lines(list: List, merge: bool) -> Vec<Vec<Event>> {
    let mut lines: Vec<Vec<Event>> = Vec::new();
    let mut place = std::collections::HashMap::new();
    for event in list.events() {
        let original = if merge { event.orig().unwrap_or(event) } else { event };
        let line = *place.entry(original.pointer()).or_insert_with(|| {
            lines.push(Vec::new());
            lines.len() - 1
        });
        lines[line].push(event);
    }
    lines
}

/// From a name= term, or the event's text.
fn name(event: Event) -> *const c_char {
    let names = [event.extra().name.cast_const(), event.text_in_place(), c"".as_ptr()];
    names.into_iter().find(|name| !name.is_null()).unwrap_or(ptr::null())
}

/// The program's FILE.
#[derive(Clone, Copy)]
pub struct ProgramFile(*mut FILE);

impl ProgramFile {
    /// None for NULL.
    ///
    /// # Safety
    /// NULL, or a stream that is open as long as the result is used.
    pub unsafe fn of(file: *mut FILE) -> Option<Self> {
        (!file.is_null()).then_some(ProgramFile(file))
    }

    /// The rest of a line: ` [PERCENT]`, if it did not count all the time, and its end.
    fn end_line(self, counts: &PrintedCounts) {
        // SAFETY: `of`; the arguments are what the formats say.
        unsafe {
            if let Some(percent) = counts.percent() {
                libc::fprintf(self.0, c" [%2.2f%%]".as_ptr(), percent);
            }
            libc::fputc(c_int::from(b'\n'), self.0);
        }
    }
}

/// `session_print`: a line for each event and CPU.
pub fn session_print(out: ProgramFile, list: List, style: &PrintStyle) {
    for events in lines(list, style.merge) {
        for cpu in 0..list.cpus() {
            let Some(counts) = PrintedCounts::on(&events, cpu) else { continue };
            let format = c"%s%3d %-30s %'15lu".as_ptr();
            // SAFETY: `ProgramFile::of`; the arguments are what the format says, and texts end with NUL.
            unsafe {
                let value = counts.value as c_ulong;
                libc::fprintf(out.0, format, style.prefix.as_ptr(), cpu as c_int, name(events[0]), value);
            }
            out.end_line(&counts);
        }
    }
}

/// `session_print_aggr`: a line for each event, the sum over all CPUs.
pub fn session_print_aggr(out: ProgramFile, list: List, style: &PrintStyle) {
    for events in lines(list, style.merge) {
        let counts = PrintedCounts::everywhere(&events, list.cpus());
        let format = c"%s%-30s %'15lu".as_ptr();
        // SAFETY: as above.
        unsafe {
            let value = counts.value as c_ulong;
            libc::fprintf(out.0, format, style.prefix.as_ptr(), name(events[0]), value);
        }
        out.end_line(&counts);
    }
}

/// `session_print_csv`: columns CPU, name, value, time enabled, time running.
pub fn session_print_csv(out: ProgramFile, list: List, style: &PrintStyle) {
    let separator = style.separator.as_ptr();
    for events in lines(list, style.merge) {
        for cpu in 0..list.cpus() {
            let Some(PrintedCounts { value, enabled, running }) = PrintedCounts::on(&events, cpu) else {
                continue;
            };
            let [value, enabled, running] = [value, enabled, running].map(|number| number as c_ulong);
            // SAFETY: as above.
            unsafe {
                libc::fprintf(
                    out.0,
                    c"%s%3d%s%s%s%lu%s%lu%s%lu\n".as_ptr(),
                    style.prefix.as_ptr(),
                    cpu as c_int,
                    separator,
                    name(events[0]),
                    separator,
                    value,
                    separator,
                    enabled,
                    separator,
                    running,
                );
            }
        }
    }
}

/// `print_event_list_attr`: what was resolved.
pub fn print_event_list_attr(out: ProgramFile, list: List) {
    // SAFETY: `ProgramFile::of`; texts end with NUL.
    let text = |format: &CStr, text: *const c_char| unsafe { libc::fprintf(out.0, format.as_ptr(), text) };
    for event in list.events() {
        let extra = event.extra();
        let shown = event.text_in_place();
        text(c"%s:\n", if shown.is_null() { c"".as_ptr() } else { shown });
        if !extra.name.is_null() {
            text(c"name: %s\n", extra.name);
        }
        if !extra.decoded.is_null() {
            text(c"perf: %s\n", extra.decoded);
        }
        print_attr(out.0, &event.attr());
        for number in 0.. {
            let Some(pmu) = extra.pmu_name(number) else { break };
            // SAFETY: as above.
            unsafe { libc::fprintf(out.0, c"pmu%d: ".as_ptr(), number as c_int) };
            text(c"%s\n", pmu.as_ptr());
        }
        text(c"\n", ptr::null());
    }
}

/// `session_print_timestamp`: seconds, as a prefix.
///
/// # Safety
/// `buffer` has room for `size` bytes.
pub unsafe fn session_print_timestamp(buffer: *mut c_char, size: usize, seconds: c_double) {
    // SAFETY: the caller's word.
    unsafe { libc::snprintf(buffer, size, c"% 12.9f\t".as_ptr(), seconds) };
}
