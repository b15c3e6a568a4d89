//! Where a profile is written to.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use topdown::{Error, Result};
use topdown_record::views::View;
use topdown_report::Output;

/// A file, or standard output, and the format of its ending.
pub struct ProfileOutput {
    path: PathBuf,
    pub view: View,
}

/// Codes of what can go wrong with a file.
const CODES: [(ErrorKind, i32); 8] = [
    (ErrorKind::NotFound, libc::ENOENT),
    (ErrorKind::PermissionDenied, libc::EACCES),
    (ErrorKind::StorageFull, libc::ENOSPC),
    (ErrorKind::QuotaExceeded, libc::EDQUOT),
    (ErrorKind::IsADirectory, libc::EISDIR),
    (ErrorKind::NotADirectory, libc::ENOTDIR),
    (ErrorKind::ReadOnlyFilesystem, libc::EROFS),
    (ErrorKind::BrokenPipe, libc::EPIPE),
];

fn unwritten(error: &io::Error) -> Error {
    let known = CODES.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, code)| *code);
    Error::new(-error.raw_os_error().or(known).unwrap_or(libc::EIO), error.to_string())
}

impl ProfileOutput {
    /// Of a path; "-" is standard output.
    ///
    /// # Errors
    /// -EINVAL: its ending is that of no format; the file cannot be written.
    pub fn new(path: &Path) -> Result<ProfileOutput> {
        if path == Path::new("") {
            return Err(
                Error::new(-libc::EINVAL, "`path` is empty").remedy("use NULL to discard the recording")
            );
        }
        let view = View::of(path).map_err(|why| Error::new(-libc::EINVAL, why))?;
        Output::check(path).map_err(|error| unwritten(&error))?;
        Ok(ProfileOutput { path: path.into(), view })
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, text: &[u8]) -> Result<()> {
        let written = if self.path == Path::new("-") {
            // (the library of Rust takes a closed standard output for a success)
            let output = io::stdout().as_fd().try_clone_to_owned();
            output.and_then(|output| File::from(output).write_all(text)).map_err(|error| {
                Error::new(-error.raw_os_error().unwrap_or(libc::EIO), "standard output")
                    .why(error.to_string())
            })
        } else {
            let written = Output::create(&self.path).and_then(|mut output| {
                output.write_all(text)?;
                output.finish()
            });
            written.map_err(|error| unwritten(&error))
        };
        written.map_err(|error| error.remedy("call td_record_stop with another path: the profile is kept"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_with_its_code() {
        for (path, code) in [
            ("/tmp/a.xyz", libc::EINVAL),
            ("/nowhere/a.html", libc::ENOENT),
            ("/dev/null/a.html", libc::ENOTDIR),
            ("/", libc::EISDIR),
            ("", libc::EINVAL),
        ] {
            let error = ProfileOutput::new(Path::new(path)).err().expect(path);
            assert_eq!(error.code(), -code, "{path}: {error}");
        }
        let full = ProfileOutput::new(Path::new("/dev/full")).unwrap();
        let error = full.write(&[b'x'; 100]).unwrap_err();
        assert_eq!(error.code(), -libc::ENOSPC, "{error}");
        assert!(error.to_string().contains("with another path"));
    }
}
