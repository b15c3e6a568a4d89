//! Before main: whether the process is to be measured.

use crate::at_work::WorkGuard;
use crate::begin::begin_process;
use crate::engine::ThreadState;
use crate::output::Destination;
use crate::stack::{self, StackGuard};
use crate::threads::notice_ends;
use crate::{elsewhere, fork, memory, private, report, sandbox, say};
use std::io::Error;

/// Bytes that are allocated at most before main.
const START: usize = 1 << 17;

/// Before main, or when the library is loaded; whether regions can be counted.
pub fn start() -> bool {
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return false; // it runs with rights that its user does not have
    }
    // (nothing before this may be a system call that a filter kills for)
    if report::is_made_here() || sandbox::is_inherited() {
        return false;
    }
    say::prepare();
    let Some(guard) = prepare() else {
        say::say("nothing is measured: no memory");
        return false;
    };
    let alone = WorkGuard::new();
    let begun = stack::call(&guard, begin);
    drop((guard, alone));
    if !begun {
        return false;
    }
    notice_ends();
    fork::notice();
    ThreadState::current().is_some()
}

/// Whether the process has a table. If not, says why, but for a program that a measured one or `topdown run` has executed: the rest is
/// measured, and the line would be among what its user reads.
fn begin() -> bool {
    let is_first = sandbox::announce();
    let no = |error: Error| {
        if is_first {
            say::say(&format!(
                "nothing is measured: {error}; choose another place by TOPDOWN_OUTPUT or TMPDIR"
            ));
        }
    };
    let Ok(output) = Destination::from_environment().map_err(no) else { return false };
    elsewhere::prepare();
    match output.create() {
        Ok(tables) => begin_process(tables, output, &[]),
        Err(error) => {
            no(error);
            return false;
        }
    }
    true
}

/// Memory for what comes before main; None: there is none.
fn prepare() -> Option<StackGuard> {
    // (for each variable that is added, the pointers are copied)
    let enough = stack::prepare() && memory::secure(START + 2 * private::environment_size());
    enough.then(stack::lock)
}
