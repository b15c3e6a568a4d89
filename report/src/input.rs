//! Files that people name to be read: regular ones, of a size that a report can have.
#![forbid(unsafe_code)]

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// No report, and no recording in JSON, is larger.
const MOST_BYTES: u64 = 2 << 30;

/// What programs write at the start of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a regular file. (Another one, such as a FIFO, may keep its reader waiting for ever, or never end.)
///
/// # Errors
/// It cannot be opened, or is none; the text names it.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let name = |error: io::Error| {
        io::Error::new(error.kind(), format!("{}: cannot read it: {error}", path.display()))
    };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(name)?;
    let kind = file.metadata().map_err(name)?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let why = if kind.is_dir() {
        "it is a directory"
    } else {
        "no regular file (of a pipe, save what it carries first)"
    };
    Err(io::Error::other(format!("{}: {why}", path.display())))
}

/// Why a file that begins so is none that can be read, whatever it should be.
#[must_use]
pub fn unreadable(beginning: &[u8]) -> Option<&'static str> {
    const COMPRESSED: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "it is compressed by gzip: read what `gzip -dc` makes of it"),
        (b"\xfd7zXZ", "it is compressed by xz: read what `xz -dc` makes of it"),
        (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: read what `zstd -dc` makes of it"),
        (b"BZh", "it is compressed by bzip2: read what `bzip2 -dc` makes of it"),
    ];
    const WIDE: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
    if beginning.is_empty() {
        return Some("it is empty");
    }
    if WIDE.iter().any(|mark| beginning.starts_with(mark)) {
        return Some("it is a text in UTF-16: save it in UTF-8");
    }
    COMPRESSED.iter().find(|(magic, _)| beginning.starts_with(magic)).map(|(_, why)| *why)
}

/// All of a regular file, without a byte order mark.
///
/// # Errors
/// It cannot be read, is empty, compressed or too large; the text names it.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let failed = |why: &str| io::Error::other(format!("{}: {why}", path.display()));
    let unread = |error: io::Error| {
        io::Error::new(error.kind(), format!("{}: cannot read it: {error}", path.display()))
    };
    let too_large = || failed("it is larger than 2 GiB, which no report is");
    let mut file = open_regular(path)?;
    // (before any of it is read)
    if file.metadata().map_err(unread)?.len() > MOST_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    unreadable(&bytes).map_or(Ok(bytes), |why| Err(failed(why)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn what_is_no_regular_text_is_refused_by_what_it_is() {
        let path = std::env::temp_dir().join(format!("topdown-input-{}", std::process::id()));
        let why = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read_whole(&path).map_err(|error| error.to_string())
        };
        assert_eq!(why(b"\xef\xbb\xbfregion,"), Ok(b"region,".to_vec()));
        for (bytes, said) in [
            (&b""[..], "it is empty"),
            (b"\xef\xbb\xbf", "it is empty"),
            (b"\x1f\x8b\x08\0", "it is compressed by gzip"),
            (b"\x28\xb5\x2f\xfd", "it is compressed by zstd"),
            (b"\xff\xfer\0", "it is a text in UTF-16"),
        ] {
            let why = why(bytes).unwrap_err();
            assert!(why.starts_with(&format!("{}: {said}", path.display())), "{why}");
        }
        fs::remove_file(&path).unwrap();
        // a FIFO without a writer keeps nobody waiting
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let why = read_whole(&path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(why.contains("no regular file"), "{why}");
        let directory = std::env::temp_dir();
        let why = read_whole(&directory).unwrap_err().to_string();
        assert_eq!(why, format!("{}: it is a directory", directory.display()));
        // of one that is too large nothing is read
        File::create(&path).unwrap().set_len(20 << 30).unwrap();
        let bytes_read = || {
            let all = fs::read_to_string("/proc/self/io").unwrap();
            all.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap()
        };
        let before = bytes_read();
        let why = read_whole(&path).unwrap_err().to_string();
        let after = bytes_read();
        fs::remove_file(&path).unwrap();
        assert!(why.contains("it is larger than 2 GiB"), "{why}");
        assert!(after - before < 1 << 20, "{} bytes were read", after - before);
        assert!(read_whole(&path).unwrap_err().to_string().contains("cannot read it: No such file"));
    }
}
