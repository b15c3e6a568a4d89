//! While the library is at work in one of the program's threads, the program does not see it: not in its floating-point environment,
//! nor, where it is built with ThreadSanitizer, by what that thinks of memory that functions of the C library touch. (It knows of no
//! synchronization here, as the library is not built with it.)

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use topdown_seam::floating::Floating;
use topdown_seam::signals::{self, NeverCancelled};

type Annotate = unsafe extern "C" fn(*const c_char, c_int);

/// ThreadSanitizer's functions for the beginning, and for the end; NULL: it is not in this program.
static BEGIN: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];
static END: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];
const BEGINS: [&CStr; 2] = [c"AnnotateIgnoreReadsBegin", c"AnnotateIgnoreWritesBegin"];
const ENDS: [&CStr; 2] = [c"AnnotateIgnoreWritesEnd", c"AnnotateIgnoreReadsEnd"];

/// Whether ThreadSanitizer is in front of this library (in the program's file), so that it calls this one's pthread_create.
static IN_FRONT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// ThreadSanitizer knows of this thread; of those that it starts for itself, and of others before it has begun, it must not be
    /// told anything.
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread has been in the program's code.
pub fn is_the_programs() {
    KNOWN.set(true);
}

/// A thread begins: does this, before the program's code.
pub fn begin(work: impl FnOnce()) {
    let in_front = IN_FRONT.load(Relaxed);
    KNOWN.set(!in_front);
    work();
    // (its own have all signals blocked)
    KNOWN.set(!in_front || !signals::all_are_blocked());
}

/// To be called before anything else; it looks for them.
pub fn prepare() {
    is_the_programs();
    let find = |name: &CStr| -> *mut () {
        // SAFETY: a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).cast() }
    };
    // (other programs have functions of these names that do nothing)
    let found = [BEGINS, ENDS].map(|names| names.map(find));
    if !find(c"__tsan_init").is_null() && found.iter().flatten().all(|function| !function.is_null()) {
        let known = END.iter().chain(&BEGIN);
        let found = found[1].iter().chain(&found[0]);
        known.zip(found).for_each(|(known, function)| known.store(*function, Relaxed));
        let objects = [find(c"pthread_create") as *const c_void, prepare as *const c_void].map(base);
        IN_FRONT.store(objects[0] != objects[1], Relaxed);
    }
}

/// Where the object is that has this function. (The address of one that is exported may be another object's.)
fn base(function: *const c_void) -> *mut c_void {
    // SAFETY: the structure is filled in, or stays zero.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(function, &mut about);
        about.dli_fbase
    }
}

/// The library is at work in this thread as long as the value lives.
pub struct AtWork {
    _floating: Floating,
    /// ThreadSanitizer looks away.
    unseen: bool,
}

impl AtWork {
    /// The library is at work from now on.
    #[allow(clippy::new_without_default)] // it does something
    #[inline]
    pub fn new() -> AtWork {
        let unseen = !BEGIN[0].load(Relaxed).is_null() && KNOWN.get();
        let work = AtWork { _floating: Floating::new(), unseen };
        if work.unseen {
            annotate(&BEGIN);
        }
        work
    }
}

impl Drop for AtWork {
    #[inline]
    fn drop(&mut self) {
        if self.unseen {
            annotate(&END);
        }
    }
}

#[cold]
fn annotate(functions: &[AtomicPtr<()>; 2]) {
    for function in functions {
        // SAFETY: functions of this type, found by their names.
        unsafe { transmute::<*mut (), Annotate>(function.load(Relaxed))(c"topdown".as_ptr(), 0) };
    }
}

/// The library is at work, no signal handler runs in the thread, and the thread is not cancelled.
pub struct WorkGuard {
    _work: AtWork,
    _blocked: NeverCancelled,
}

impl WorkGuard {
    /// The library is so at work from now on.
    #[allow(clippy::new_without_default)] // it does something
    #[inline]
    pub fn new() -> WorkGuard {
        let blocked = NeverCancelled::new();
        WorkGuard { _work: AtWork::new(), _blocked: blocked }
    }
}
