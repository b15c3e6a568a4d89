//! What programs with LIKWID's markers ask of its perfmon module: how many groups of events there are, to execute all once for
//! each (`perfmon_getNumberOfGroups`), and which. liblikwid has none then, since its own markers never start: there is one
//! here, without events. A program that starts the module itself (`perfmon_init`) or has no markers is given liblikwid's answers.

use crate::interpose::real;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

static MARKERS: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicBool = AtomicBool::new(false);

/// The program has markers.
pub fn expect_questions() {
    MARKERS.store(true, Relaxed);
}

/// Whether this module answers.
fn answers() -> bool {
    MARKERS.load(Relaxed) && !STARTED.load(Relaxed)
}

/// The only group.
const GROUP: c_int = 0;
/// What liblikwid says if it has no groups, or not this one.
const NONE: c_int = -libc::EINVAL;

/// One of liblikwid's functions.
struct Likwid {
    name: &'static CStr,
    known: AtomicPtr<c_void>,
}

impl Likwid {
    const fn function(name: &'static CStr) -> Likwid {
        Likwid { name, known: AtomicPtr::new(null_mut()) }
    }

    /// The function's address; None if liblikwid is not loaded.
    fn address(&self) -> Option<*mut c_void> {
        let address = real(self.name, &self.known);
        (!address.is_null()).then_some(address)
    }

    /// `int name(void)`
    fn number(&self, ours: c_int) -> c_int {
        if answers() {
            return ours;
        }
        self.address().map_or(NONE, |address| {
            // SAFETY: likwid.h declares the function so.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(address)() }
        })
    }

    /// `int name(int group)`
    fn number_of(&self, group: c_int, ours: c_int) -> c_int {
        if answers() {
            return if group == GROUP { ours } else { NONE };
        }
        self.address().map_or(NONE, |address| {
            // SAFETY: likwid.h declares the function so; it checks the number.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(address)(group) }
        })
    }

    /// `char *name(int group)`
    fn text_of(&self, group: c_int, ours: &'static CStr) -> *const c_char {
        if answers() {
            return if group == GROUP { ours.as_ptr() } else { null() };
        }
        self.address().map_or(null(), |address| {
            // SAFETY: likwid.h declares the function so; it checks the number.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *const c_char>(address)(group) }
        })
    }

    /// `char *name(int group, int which)`: of a thing that the group here does not have.
    fn text_within(&self, group: c_int, which: c_int) -> *const c_char {
        if answers() {
            return null();
        }
        self.address().map_or(null(), |address| {
            // SAFETY: likwid.h declares the function so; it checks the numbers.
            unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn(c_int, c_int) -> *const c_char>(address)(
                    group, which,
                )
            }
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getNumberOfGroups() -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getNumberOfGroups");
    LIKWID.number(1)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getIdOfActiveGroup() -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getIdOfActiveGroup");
    LIKWID.number(GROUP)
}

/// Regions with results that LIKWID's other functions give.
#[unsafe(no_mangle)]
extern "C" fn perfmon_getNumberOfRegions() -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getNumberOfRegions");
    LIKWID.number(0)
}

/// Threads with such results.
#[unsafe(no_mangle)]
extern "C" fn perfmon_getNumberOfThreads() -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getNumberOfThreads");
    LIKWID.number(0)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getNumberOfEvents(group: c_int) -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getNumberOfEvents");
    LIKWID.number_of(group, 0)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getNumberOfMetrics(group: c_int) -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getNumberOfMetrics");
    LIKWID.number_of(group, 0)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getGroupName(group: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getGroupName");
    LIKWID.text_of(group, c"topdown")
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getGroupInfoShort(group: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getGroupInfoShort");
    LIKWID.text_of(group, c"measured by libtopdown")
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getGroupInfoLong(group: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getGroupInfoLong");
    LIKWID.text_of(group, c"measured by libtopdown, without events of LIKWID's")
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getEventName(group: c_int, event: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getEventName");
    LIKWID.text_within(group, event)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getCounterName(group: c_int, event: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getCounterName");
    LIKWID.text_within(group, event)
}

#[unsafe(no_mangle)]
extern "C" fn perfmon_getMetricName(group: c_int, metric: c_int) -> *const c_char {
    static LIKWID: Likwid = Likwid::function(c"perfmon_getMetricName");
    LIKWID.text_within(group, metric)
}

/// The program uses the module itself.
#[unsafe(no_mangle)]
unsafe extern "C" fn perfmon_init(threads: c_int, cpus: *const c_int) -> c_int {
    static LIKWID: Likwid = Likwid::function(c"perfmon_init");
    STARTED.store(true, Relaxed);
    LIKWID.address().map_or(-libc::ENOSYS, |address| {
        // SAFETY: likwid.h declares the function so; the arguments are the program's.
        unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(c_int, *const c_int) -> c_int>(address)(
                threads, cpus,
            )
        }
    })
}
