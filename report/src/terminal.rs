//! How texts are laid out where they are read: how wide, with which colours, how names are cut, and what is said while work goes on.
#![forbid(unsafe_code)]

mod layout;
mod names;
mod progress;

pub use layout::{Layout, Stream};
pub use names::{columns, short, shortened, told_apart};
pub use progress::Progress;

use std::io::{self, Write};
use std::path::Path;
use topdown_table::clean;

/// A line for the user, who may have no standard error; wrapped where that is a terminal.
pub fn say(line: &str) {
    let line = Layout::of(Stream::Error).sentence(&format!("topdown: {}", clean(line)));
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says which file was written, if standard error is a terminal: scripts know it, and read what else is there.
pub fn say_written(what: &str, path: &Path) {
    // (a device or FIFO keeps nothing that could be looked for)
    if Layout::of(Stream::Error).is_terminal && path.is_file() {
        say(&format!("{what} written to {}", path.display()));
    }
}
