//! From the table file of a measured process to a report.
//!
//! The file is the memory in which the process kept its figures (`table`), so it holds what was there when the process
//! ended, however it ended.

pub mod table;

use std::path::{Path, PathBuf};

/// Writes the report.
pub fn write(_files: &[PathBuf], _output: Option<&Path>) -> std::io::Result<()> {
    Ok(())
}
