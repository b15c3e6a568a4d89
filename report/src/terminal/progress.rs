//! A line on what long work has come to.
#![forbid(unsafe_code)]

use super::{Layout, Stream, short};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Work that is over sooner needs no line.
const SOON: Duration = Duration::from_millis(500);
/// It changes no more often.
const PACE: Duration = Duration::from_millis(100);

/// A line on standard error while work goes on; gone when this is dropped. Where that is no terminal there is none.
pub struct Progress {
    what: String,
    /// When it is written next; None: never.
    due: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    /// Of this work.
    pub fn of(what: &str) -> Progress {
        let due = Layout::of(Stream::Error).has_escapes.then(|| Instant::now() + SOON);
        Progress { what: what.into(), due, is_shown: false }
    }

    /// So many of all are done.
    pub fn at(&mut self, done: usize, all: usize) {
        if self.due.is_some_and(|due| Instant::now() >= due) {
            self.show(&format!("{}: {done} of {all}", self.what));
        }
    }

    /// It goes on for a while, and it is not known how far it has come.
    pub fn begin(&mut self) {
        if self.due.is_some() {
            self.show(&format!("{}...", self.what));
        }
    }

    fn show(&mut self, text: &str) {
        self.due = Some(Instant::now() + PACE);
        let text = short(&format!("topdown: {text}"), Layout::of(Stream::Error).columns - 1);
        let before = if self.is_shown { ERASE } else { SAVE };
        let _ = write!(io::stderr(), "{before}{text}");
        self.is_shown = true;
    }
}

/// Where the cursor is: a command may have left the beginning of a line there.
const SAVE: &str = "\x1b7";
/// Back to there, and what is behind it is gone.
const ERASE: &str = "\x1b8\x1b[J";

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "{ERASE}");
        }
    }
}
