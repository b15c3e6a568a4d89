//! Groups of four raw counters around parts of a program. Each thread measures one group at a time; what groups of the
//! same name and members counted, in any thread, is one result.

use crate::rdpmc::Counter;
use libc::{FILE, c_char, c_int};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// N_COUNTER.
pub const COUNTERS: usize = 4;

/// What prints in place of a total: group, totals, which of them.
pub type Function = unsafe extern "C" fn(*mut Measure, *mut u64, c_int) -> u64;

/// struct measure: a member of a group.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// NULL: counted, not printed.
    pub name: *mut c_char,
    /// The raw event.
    pub counter: u64,
    /// Printed as a percentage of this member; -1: it is not.
    pub ratio_to: c_int,
    /// Or None.
    pub func: Option<Function>,
}

impl Measure {
    fn is(&self, other: &Measure) -> bool {
        let key = |m: &Measure| (m.name, m.counter, m.ratio_to, m.func.map(|function| function as usize));
        key(self) == key(other)
    }
}

/// What is printed of a group.
struct Results {
    name: CString,
    members: [Measure; COUNTERS],
    totals: [AtomicU64; COUNTERS],
}

// SAFETY: the names and functions of members are the caller's, who may print from any thread.
unsafe impl Send for Results {}
// SAFETY: as above.
unsafe impl Sync for Results {}

static ALL: Mutex<Vec<Arc<Results>>> = Mutex::new(Vec::new());

fn all<T>(work: impl FnOnce(&mut Vec<Arc<Results>>) -> T) -> T {
    work(&mut ALL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The group that a thread measures.
struct Current {
    results: Arc<Results>,
    counters: Vec<Counter>,
    started: Option<[u64; COUNTERS]>,
}

impl Current {
    fn read(&self) -> [u64; COUNTERS] {
        std::array::from_fn(|i| self.counters[i].read())
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // the leader is the last
        while self.counters.pop().is_some() {}
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The thread's group. There is none when the thread ends (what runs at exit may still ask).
fn current<T>(work: impl FnOnce(&mut Option<Current>) -> T) -> Option<T> {
    CURRENT.try_with(|current| work(&mut current.borrow_mut())).ok()
}

/// The thread measures this group from now on, and no other; false if the events do not open, which is said on standard
/// error.
pub fn init(members: [Measure; COUNTERS], name: &CStr) -> bool {
    finish();
    let mut counters = Vec::with_capacity(COUNTERS);
    for member in &members {
        match Counter::open_raw(member.counter, counters.first()) {
            Some(counter) => counters.push(counter),
            None => {
                while counters.pop().is_some() {}
                return false;
            }
        }
    }
    let results = results_of(members, name);
    current(|current| *current = Some(Current { results, counters, started: None })).is_some()
}

fn results_of(members: [Measure; COUNTERS], name: &CStr) -> Arc<Results> {
    all(|all| {
        let same = |results: &&Arc<Results>| {
            *results.name == *name && results.members.iter().zip(&members).all(|(a, b)| a.is(b))
        };
        if let Some(results) = all.iter().find(same) {
            return Arc::clone(results);
        }
        let results = Arc::new(Results { name: name.into(), members, totals: Default::default() });
        all.push(Arc::clone(&results));
        results
    })
}

/// What follows is measured.
pub fn start() {
    current(|current| {
        if let Some(current) = current {
            current.started = Some(current.read());
        }
    });
}

/// What follows is not.
pub fn stop() {
    current(|current| {
        let Some(current) = current else { return };
        if let Some(started) = current.started.take() {
            let stopped = current.read();
            for i in 0..COUNTERS {
                // (a child that was forked in between has no counters, and reads 0)
                current.results.totals[i].fetch_add(stopped[i].saturating_sub(started[i]), Ordering::Relaxed);
            }
        }
    });
}

/// The thread measures no group; what was measured remains.
pub fn finish() {
    current(Option::take);
}

/// Forgets all that was measured.
pub fn free_all() {
    drop(all(std::mem::take));
}

/// Prints all that was measured, groups in the order in which they came up.
///
/// # Safety
/// `out` is open, and what the members point to is there.
pub unsafe fn print_all(out: *mut FILE) {
    // functions of members may call the library
    for results in all(|all| all.clone()) {
        // SAFETY: the caller's word.
        unsafe { results.print(out) };
    }
}

impl Results {
    /// # Safety
    /// As `print_all`.
    unsafe fn print(&self, out: *mut FILE) {
        let mut members = self.members;
        let mut totals: [u64; COUNTERS] = std::array::from_fn(|i| self.totals[i].load(Ordering::Relaxed));
        // SAFETY: the caller's word; formats and arguments agree.
        unsafe {
            for i in 0..COUNTERS {
                if let Some(function) = members[i].func.filter(|_| !members[i].name.is_null()) {
                    totals[i] = function(members.as_mut_ptr(), totals.as_mut_ptr(), i as c_int);
                }
            }
            libc::fprintf(out, c"%s:\n".as_ptr(), self.name.as_ptr());
            for (member, total) in members.iter().zip(totals).filter(|(member, _)| !member.name.is_null()) {
                libc::fprintf(out, c"%20s\t%8llu ".as_ptr(), member.name, total);
                if let Some(percent) = percent(total, &totals, member.ratio_to) {
                    libc::fprintf(out, c"(%.2f%%)".as_ptr(), percent);
                }
                libc::fprintf(out, c"\n".as_ptr());
            }
        }
    }
}

/// None: there is nothing to relate it to.
fn percent(total: u64, totals: &[u64; COUNTERS], ratio_to: c_int) -> Option<f64> {
    let whole = *usize::try_from(ratio_to).ok().and_then(|i| totals.get(i))?;
    (whole != 0).then(|| 100.0 * total as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn sum(group: *mut Measure, totals: *mut u64, i: c_int) -> u64 {
        // SAFETY: arrays of COUNTERS.
        unsafe {
            assert_eq!((*group.add(i as usize)).counter, 7);
            (0..COUNTERS).map(|k| *totals.add(k)).sum()
        }
    }

    fn member(name: Option<&'static CStr>, ratio_to: c_int) -> Measure {
        let name = name.map_or(std::ptr::null_mut(), |name| name.as_ptr().cast_mut());
        Measure { name, counter: 0xc0, ratio_to, func: None }
    }

    fn printed() -> String {
        let (mut text, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: a stream into memory, which is there once it is closed.
        unsafe {
            let out = libc::open_memstream(&mut text, &mut length);
            print_all(out);
            libc::fclose(out);
            let copy = CStr::from_ptr(text).to_str().unwrap().to_owned();
            libc::free(text.cast());
            copy
        }
    }

    #[test]
    fn every_group_is_printed_with_its_own_totals() {
        let add = |results: &Results, values: [u64; COUNTERS]| {
            for (total, value) in results.totals.iter().zip(values) {
                total.fetch_add(value, Ordering::Relaxed);
            }
        };
        let plain = [
            member(Some(c"whole"), -1),
            member(Some(c"part"), 0),
            member(None, 0),
            member(Some(c"no such member"), 4),
        ];
        let first = results_of(plain, c"first");
        add(&first, [200, 50, 999, 3]);
        let with_function = [
            member(Some(c"of the sum"), 1),
            Measure { func: Some(sum), counter: 7, ..plain[1] },
            plain[2],
            plain[2],
        ];
        add(&results_of(with_function, c""), [10, 20, 30, 40]);
        // the same group again, of another thread, say
        let again = results_of(plain, c"first");
        assert!(Arc::ptr_eq(&again, &first));
        add(&again, [200, 50, 0, 1]);
        let nothing = results_of(plain, c"nothing");
        assert!(!Arc::ptr_eq(&nothing, &first));

        let line = |name: &str, total: u64, percent: &str| format!("{name:>20}\t{total:>8} {percent}\n");
        let expected = [
            "first:\n".into(),
            line("whole", 400, ""),
            line("part", 100, "(25.00%)"),
            line("no such member", 4, ""),
            ":\n".into(),
            line("of the sum", 10, "(10.00%)"),
            line("part", 100, "(1000.00%)"),
            "nothing:\n".into(),
            line("whole", 0, ""),
            line("part", 0, ""),
            line("no such member", 0, ""),
        ];
        assert_eq!(printed(), expected.concat());
        free_all();
        assert_eq!(printed(), "");
    }

    #[test]
    fn without_a_group_nothing_happens() {
        start();
        stop();
        finish();
    }
}
