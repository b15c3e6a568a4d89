//! What the ranks of one host have left, in one file: a thousand ranks of sixteen hosts are sixteen files.
//!
//! After MAGIC and the number of bytes that count, each with its head (rank, kind, bytes), follow what ranks said of themselves and their tables. Who adds
//! to it has it locked, writes behind the bytes that count, and then their number: of one that is killed meanwhile, or found the disk full, nothing counts.
#![forbid(unsafe_code)]

use super::rank_file::RankFile;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use topdown_table::TablePlace;

/// Ending of its name.
pub const ENDING: &str = "ranks";
const MAGIC: [u8; 8] = *b"TDRANKS1";
/// Where the number of bytes is, and where the first part begins.
const LENGTH: u64 = MAGIC.len() as u64;
const BEGIN: u64 = LENGTH + 8;
/// Bytes of a part's head.
const HEAD: usize = 16;
/// Kinds of parts.
const SAID: u32 = 0;
const TABLE: u32 = 1;

/// A part of the file.
pub enum Part {
    /// What a rank says of itself: the last holds.
    Said(Box<RankFile>),
    /// A table of a rank.
    Table(u32, TablePlace),
}

/// The file of this host.
pub struct HostFile(PathBuf);

impl HostFile {
    /// In a directory. `host`: a name that no other machine has there.
    pub fn of(directory: &Path, host: &str) -> HostFile {
        HostFile(directory.join(format!("{host}.{ENDING}")))
    }

    /// Adds a rank's tables, and what it says of itself: all or nothing.
    pub fn add(&self, said: &RankFile, tables: &[PathBuf]) -> io::Result<()> {
        self.added(said, tables)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.0.display())))
    }

    fn added(&self, said: &RankFile, tables: &[PathBuf]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.0)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut at = length(&file)?.unwrap_or(BEGIN);
        for table in tables {
            file.seek(SeekFrom::Start(at + HEAD as u64))?;
            let bytes = io::copy(&mut File::open(table)?, &mut file)?;
            at = add_head(&file, at, (said.rank, TABLE, bytes))?;
        }
        let text = serde_json::to_vec(said)?;
        file.seek(SeekFrom::Start(at + HEAD as u64))?;
        file.write_all(&text)?;
        at = add_head(&file, at, (said.rank, SAID, text.len() as u64))?;
        file.write_all_at(&[&MAGIC[..], &at.to_le_bytes()].concat(), 0)
    }

    /// What is in such a file.
    pub fn read(path: &Path) -> io::Result<Vec<Part>> {
        let invalid = |why: String| {
            io::Error::new(
                ErrorKind::InvalidData,
                format!("{}: no file of ranks of this version: {why}", path.display()),
            )
        };
        let mut file = File::open(path)?;
        let Some(end) = length(&file).map_err(|error| invalid(error.to_string()))? else {
            return Ok(Vec::new());
        };
        let (mut at, mut parts) = (BEGIN, Vec::new());
        while at < end {
            let mut head = [0; HEAD];
            file.read_exact_at(&mut head, at)?;
            let (rank, kind, bytes) = head_of(head);
            at += HEAD as u64;
            if bytes > end.saturating_sub(at) {
                return Err(invalid("a part is longer than the file".into()));
            }
            match kind {
                TABLE => {
                    let place = TablePlace { path: path.into(), part: Some((at, bytes)) };
                    parts.push(Part::Table(rank, place));
                }
                _ => {
                    let mut text = Vec::new();
                    file.seek(SeekFrom::Start(at))?;
                    (&file).take(bytes).read_to_end(&mut text)?;
                    let said: RankFile =
                        serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
                    if said.version != env!("CARGO_PKG_VERSION") {
                        return Err(invalid(format!("it is of version {}", said.version)));
                    }
                    parts.push(Part::Said(said.into()));
                }
            }
            at += bytes;
        }
        Ok(parts)
    }
}

/// Where what counts ends; None: nothing was written.
fn length(file: &File) -> io::Result<Option<u64>> {
    let mut begin = [0; BEGIN as usize];
    if file.read_at(&mut begin, 0)? < begin.len() || begin == [0; BEGIN as usize] {
        return Ok(None);
    }
    let (magic, length) = begin.split_at(LENGTH as usize);
    match (magic == MAGIC, length.try_into().map(u64::from_le_bytes)) {
        (true, Ok(length)) => Ok(Some(length)),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "it does not begin as one")),
    }
}

/// Writes a part's head; where the next begins.
fn add_head(file: &File, at: u64, (rank, kind, bytes): (u32, u32, u64)) -> io::Result<u64> {
    let head = [&rank.to_le_bytes()[..], &kind.to_le_bytes(), &bytes.to_le_bytes()].concat();
    file.write_all_at(&head, at)?;
    Ok(at + HEAD as u64 + bytes)
}

fn head_of(head: [u8; HEAD]) -> (u32, u32, u64) {
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    (word(0), word(4), u64::from(word(8)) | u64::from(word(12)) << 32)
}

#[cfg(test)]
mod tests {
    use super::{ENDING, HostFile, Part, RankFile};
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::{Path, PathBuf};

    fn said(rank: u32) -> RankFile {
        RankFile { rank, size: 2, version: env!("CARGO_PKG_VERSION").into(), ..RankFile::default() }
    }

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("topdown-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// Each part's rank, and of tables what they are.
    fn read(path: &Path) -> Vec<(u32, Option<Vec<u8>>)> {
        let bytes = fs::read(path).unwrap();
        let part = |part| match part {
            Part::Said(said) => (said.rank, None),
            Part::Table(rank, place) => {
                let (at, length) = place.part.unwrap();
                (rank, Some(bytes[at as usize..(at + length) as usize].to_vec()))
            }
        };
        HostFile::read(path).unwrap().into_iter().map(part).collect()
    }

    #[test]
    fn what_was_not_written_whole_does_not_count() {
        let directory = scratch("host-file");
        let (table, path) = (directory.join("1.topdown"), directory.join(format!("node.{ENDING}")));
        fs::write(&table, b"figures").unwrap();
        let host = HostFile::of(&directory, "node");
        host.add(&said(1), std::slice::from_ref(&table)).unwrap();
        let first = vec![(1, Some(b"figures".to_vec())), (1, None)];
        assert_eq!(read(&path), first);
        // one that was killed, or found the disk full
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[7; 100]).unwrap();
        assert_eq!(read(&path), first);
        assert!(host.add(&said(0), &[table, directory.join("none")]).is_err());
        assert_eq!(read(&path), first);
        host.add(&said(0), &[]).unwrap();
        assert_eq!(read(&path), [first, vec![(0, None)]].concat());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let directory = scratch("host-file-other");
        let path = directory.join(format!("node.{ENDING}"));
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            HostFile::read(&path).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused(b"something else altogether").contains("node.ranks: no file of ranks"));
        let host = HostFile::of(&directory, "node");
        fs::remove_file(&path).unwrap();
        host.add(&RankFile { version: "0.0.9".into(), ..said(1) }, &[]).unwrap();
        let whole = fs::read(&path).unwrap();
        assert!(refused(&whole).contains("version 0.0.9"));
        let mut longer = whole;
        longer[24] = 255;
        longer[25] = 255;
        assert!(refused(&longer).contains("longer than the file"));
        fs::remove_dir_all(directory).unwrap();
    }
}
