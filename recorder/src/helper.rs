//! The thread that records the others, and makes the profile.
#![forbid(unsafe_code)]

use crate::descriptors::OwnDescriptors;
use crate::handover::Handover;
use crate::options::Wishes;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;
use topdown::{Error, Result};
use topdown_record::views::{Heading, View};
use topdown_record::{Profile, RecordUntil, Recorder, counted_events};
use topdown_seam::signals::NeverCancelled;

/// Such a thread, from outside.
pub struct Helper {
    between: Arc<HelperHandovers>,
    thread: JoinHandle<()>,
}

/// What the two threads hand to one another.
struct HelperHandovers {
    stop: Arc<AtomicBool>,
    begun: Handover<Result<()>>,
    /// How the profile is wanted; the end: no more.
    views: Handover<View>,
    texts: Handover<Vec<u8>>,
}

fn failed_in_itself() -> Error {
    Error::new(-libc::EFAULT, "the library failed in itself, please report it")
}

impl Helper {
    /// Starts one, and returns when it records. It has the caller's mask: no handler of the program runs in it.
    ///
    /// # Errors
    /// What stands in the way of counting, or of a thread.
    pub fn start(_: &NeverCancelled, wishes: Wishes) -> Result<Helper> {
        let (begun, views, texts) = (Handover::new(), Handover::new(), Handover::new());
        let between = Arc::new(HelperHandovers { stop: Arc::default(), begun, views, texts });
        let its = HelperShare(between.clone());
        let thread = Builder::new().name("topdown-record".into()).spawn(move || its.run(wishes));
        let thread = thread.map_err(|error| {
            Error::new(-error.raw_os_error().unwrap_or(libc::EAGAIN), "no thread can be made that records")
                .why(error.to_string())
        })?;
        match between.begun.take().unwrap_or_else(|| Err(failed_in_itself())) {
            Ok(()) => Ok(Helper { between, thread }),
            Err(error) => {
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// Ends the recording, if it has not ended yet, and returns the profile so.
    ///
    /// # Errors
    /// The thread has panicked.
    pub fn profile(&self, view: View) -> Result<Vec<u8>> {
        self.between.stop.store(true, Ordering::Release);
        self.between.views.give(view);
        self.between.texts.take().ok_or_else(failed_in_itself)
    }

    /// Ends the recording, if it has not ended yet, and the thread.
    pub fn end(self) {
        self.between.stop.store(true, Ordering::Release);
        self.between.views.close();
        let _ = self.thread.join();
    }
}

/// The thread's share: when it ends, by a panic as well, nobody waits for it.
struct HelperShare(Arc<HelperHandovers>);

impl Drop for HelperShare {
    fn drop(&mut self) {
        self.0.begun.close();
        self.0.texts.close();
    }
}

impl HelperShare {
    fn run(self, wishes: Wishes) {
        let between = &self.0;
        let _descriptors = OwnDescriptors::new();
        let recorder = counted_events(wishes.level, false, &BTreeSet::new())
            .and_then(|events| Recorder::of_this_process(events, wishes.settings));
        let mut recorder = match recorder {
            Ok(recorder) => recorder,
            Err(error) => return between.begun.give(Err(error)),
        };
        let start = Instant::now();
        between.begun.give(Ok(()));
        recorder.run(RecordUntil { stop: Some(between.stop.clone()), ..RecordUntil::default() });
        let (recording, _) = recorder.finish(start.elapsed());
        // (of a recording that nobody wants no names are looked up)
        let Some(mut view) = between.views.take() else { return };
        let mut profile = Profile::new(&recording);
        let command = topdown_report::clean(&command());
        loop {
            view.read_sources(&mut profile, &[]);
            between
                .texts
                .give(view.write(&profile, &Heading { command: &command, occasion: "", means: None }));
            let Some(another) = between.views.take() else { return };
            view = another;
        }
    }
}

/// The program and its arguments.
fn command() -> String {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}
