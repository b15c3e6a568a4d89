//! Stretches of code in which the thread is left alone.

/// As long as it lives, no signal handler runs in this thread, and nobody cancels it.
pub use topdown_seam::signals::NeverCancelled as Quiet;
