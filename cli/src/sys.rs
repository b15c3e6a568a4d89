//! Running a command as time(1) does: signals from the terminal are for it, and its end is ours.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// How a command ended.
pub enum End {
    /// By this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

extern "C" fn leave_it_to_the_command(_: libc::c_int) {}

/// A file that would be longer than it may be (`ulimit -f`) is an error of write(2), not the end of this process.
pub fn let_files_be_too_large() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain data; the handler does nothing, and unlike SIG_IGN does not last over exec.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut before);
        if before.sa_sigaction == libc::SIG_DFL {
            libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t);
        }
    }
}

/// Runs a command to its end. What the terminal sends meanwhile (SIGINT, SIGQUIT) is for the command.
///
/// # Errors
/// It cannot be executed.
pub fn run_to_end(command: &mut Command) -> io::Result<End> {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // a handler, unlike SIG_IGN, does not last over exec; whoever ignored it for the command goes on to
        // SAFETY: plain data; the handler does nothing.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = leave_it_to_the_command as *const () as usize;
                ours.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const ours, std::ptr::null_mut());
            }
        }
    }
    let status = command.spawn()?.wait()?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => End::Status(code as u8),
        (None, signal) => End::Signal(signal.unwrap_or(libc::SIGKILL)),
    })
}

/// Ends as the command did, but for the core that it left already.
pub fn raise(signal: i32) {
    // SAFETY: plain data; what is changed is this process's end.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
