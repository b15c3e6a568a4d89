//! A table file, as bytes that anybody may have written, to what it says.

use crate::{
    FREE, HEADER_SIZE, Header, MAGIC, MOST_BYTES, Measurement, NAME, NodeInTurns, REGION, Record,
    RecordedCounts, THREAD, VERSION, offset_of_record,
};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

/// What a table file says.
pub struct Table {
    /// The file.
    pub path: PathBuf,
    /// Its first page.
    pub header: Header,
    /// The records that are in use.
    pub entries: Vec<TableEntry>,
    /// Records that cannot be what was written.
    pub damaged: u64,
}

/// A record that is in use, and its number.
pub struct TableEntry {
    /// Its place in the file.
    pub number: u32,
    /// `THREAD` or `REGION`.
    pub kind: u32,
    /// See `Record`.
    pub parent: u32,
    /// See `Record`.
    pub thread: u32,
    /// See `Record`.
    pub tid: i32,
    /// See `Record`.
    pub ended: bool,
    /// See `Record`.
    pub nested: u64,
    /// See `Record`.
    pub before: u64,
    /// See `Record`.
    pub unended: u64,
    /// See `Record`.
    pub unbalanced: u64,
    /// See `Record::split`.
    pub split: u64,
    /// See `Record::split_by`.
    pub split_by: u32,
    /// See `Record`.
    pub missed: u64,
    /// See `Record`.
    pub seen_slots: u64,
    /// See `Record`.
    pub seen_ns: u64,
    /// See `Record`.
    pub name: String,
    /// See `Record`.
    pub core: String,
    /// See `TableCore`.
    pub fingerprint: u64,
    /// The one that holds.
    pub measurement: Measurement,
    /// See `Record`.
    pub counted_executions: u64,
    /// The one that holds.
    pub counted: RecordedCounts,
    /// Turns of the group that counted, and slots in them; none, if it took none or they were being worked on.
    pub turns: (u64, f64),
    /// See `RecordedTurns`.
    pub pieces: u64,
    /// What the turns told.
    pub in_turns: Vec<NodeInTurns>,
}

/// Plain data: any bytes are a value of it.
///
/// # Safety
/// It is.
pub(crate) unsafe trait Plain: Sized {
    /// The value that these bytes are; they are as many as it has.
    fn of(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), size_of::<Self>());
        // SAFETY: there are as many bytes as the value has, and whatever they are, they are one. It need not be aligned.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}
// SAFETY: integers, atomic or not, and arrays of them.
unsafe impl Plain for Header {}
// SAFETY: integers, atomic or not, floating point numbers, and arrays of them.
unsafe impl Plain for Record {}

/// Where a table is: a file, or a part of one.
#[derive(Clone, Debug)]
pub struct TablePlace {
    /// The file.
    pub path: PathBuf,
    /// Where it begins in the file, and how many bytes it has there; None: it is the whole file.
    pub part: Option<(u64, u64)>,
}

impl From<&PathBuf> for TablePlace {
    fn from(path: &PathBuf) -> TablePlace {
        TablePlace { path: path.clone(), part: None }
    }
}

impl TablePlace {
    /// Opens the file, which is one of those that are read.
    fn open(&self) -> io::Result<Result<File, String>> {
        // (a device may do something when it is opened)
        if let Some(what) = self.refusal(&fs::metadata(&self.path)?) {
            return Ok(Err(what));
        }
        // (what has become a FIFO meanwhile does not wait for a writer)
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&self.path)?;
        let refused = self.refusal(&file.metadata()?);
        Ok(refused.map_or(Ok(file), Err))
    }

    /// Why a file of this kind and size is not read at all.
    fn refusal(&self, about: &Metadata) -> Option<String> {
        const REMEDY: &str = "name a *.topdown file that libtopdown-preload.so left";
        let kind = about.file_type();
        if kind.is_dir() {
            Some("it is a directory; name the *.topdown files in it".into())
        } else if !kind.is_file() {
            let what = if kind.is_fifo() {
                "a FIFO"
            } else if kind.is_socket() {
                "a socket"
            } else {
                "a device"
            };
            Some(format!("it is {what}, no table file; {REMEDY}"))
        } else if self.part.is_none() && about.len() > MOST_BYTES {
            Some(format!(
                "no table file: it has {} bytes, and none has more than {MOST_BYTES}; {REMEDY}",
                about.len()
            ))
        } else {
            None
        }
    }
}

/// Reads a table.
///
/// # Errors
/// It cannot be read, or is no table of this version; the text names the file.
pub fn read(place: &TablePlace) -> io::Result<Table> {
    let path = &place.path;
    let failed = |kind, what: String| io::Error::new(kind, format!("{}: {what}", path.display()));
    let invalid = |what: String| failed(io::ErrorKind::InvalidData, what);
    let unreadable = |error: io::Error| failed(error.kind(), format!("cannot read it: {error}"));
    let mut file = place.open().map_err(unreadable)?.map_err(invalid)?;
    let (begin, bytes) = place.part.unwrap_or((0, MOST_BYTES));
    file.seek(SeekFrom::Start(begin)).map_err(unreadable)?;
    let mut file = BufReader::with_capacity(1 << 16, file.take(bytes));

    let mut page = [0; HEADER_SIZE];
    let found = fill(&mut file, &mut page).map_err(unreadable)?;
    if found < MAGIC.len() || page[..MAGIC.len()] != MAGIC {
        return Err(invalid(
            "no table file (it does not begin as one); name a *.topdown file that libtopdown-preload.so left"
                .into(),
        ));
    }
    if found < HEADER_SIZE {
        return Err(invalid(format!(
            "it ends after {found} bytes, within its first page; the disk may have been full, or it was copied in part: \
             copy it again, or measure again"
        )));
    }
    let header = Header::of(&page[..size_of::<Header>()]);
    if header.version != VERSION || header.record_size as usize != size_of::<Record>() {
        return Err(invalid(format!(
            "of another version of libtopdown: layout {} with records of {} bytes, where this one has {VERSION} and {}; \
             read it with the `topdown` of the version that wrote it",
            header.version,
            header.record_size,
            size_of::<Record>()
        )));
    }
    let (mut entries, mut damaged) = (Vec::new(), 0);
    let mut bytes = vec![0; size_of::<Record>()];
    for number in 0.. {
        // the rest of a record that is not there was never written
        if fill(&mut file, &mut bytes).map_err(unreadable)? < bytes.len() {
            break;
        }
        let mut record = Record::of(&bytes);
        for _ in 0..MOST_TRIES {
            if is_whole(&record)
                || file.get_ref().get_ref().read_exact_at(&mut bytes, begin + at(number)).is_err()
            {
                break;
            }
            record = Record::of(&bytes);
        }
        match record.kind.load(Relaxed) {
            FREE => {}
            kind @ (THREAD | REGION) if is_whole(&record) => entries.push(entry(number, kind, &record)),
            _ => damaged += 1,
        }
    }
    Ok(Table { path: path.clone(), header, entries, damaged })
}

/// When the process of a table file began to be measured, its id, and its host: no two files have all of these in common. None: it cannot be
/// read, or is no table file of this version.
pub fn began(place: &TablePlace) -> Option<(u64, i32, [u8; 64])> {
    let mut page = [0; size_of::<Header>()];
    place.open().ok()?.ok()?.read_exact_at(&mut page, place.part.map_or(0, |(begin, _)| begin)).ok()?;
    let header = Header::of(&page);
    header.is_ours().then_some((header.started_unix_ns, header.pid, header.host))
}

/// How often a record is read that changes meanwhile.
const MOST_TRIES: u32 = 20;

/// Where a record is in the file.
fn at(number: u32) -> u64 {
    offset_of_record(number) as u64
}

/// Whether nobody wrote to what holds while it was read.
fn is_whole(record: &Record) -> bool {
    let Record { counted_executions, counted_next, .. } = record;
    counted_next.load(Relaxed).wrapping_sub(counted_executions.load(Relaxed)) <= 1
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while found < buffer.len() {
        match file.read(&mut buffer[found..]) {
            Ok(0) => break,
            Ok(more) => found += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn entry(number: u32, kind: u32, record: &Record) -> TableEntry {
    let turns = &record.turns;
    let count = turns.turns.load(Relaxed);
    let holds = turns.next.load(Relaxed) == count;
    let nodes = turns.node.iter().filter(|node| holds && node.number != 0);
    TableEntry {
        turns: if holds { (count, turns.slots) } else { (0, 0.0) },
        pieces: turns.pieces,
        in_turns: nodes.copied().collect(),
        number,
        kind,
        parent: record.parent,
        thread: record.thread,
        tid: record.tid,
        ended: record.ended.load(Relaxed) != 0,
        nested: record.nested,
        before: record.before,
        unended: record.unended,
        unbalanced: record.unbalanced,
        missed: record.missed,
        split: record.split,
        split_by: record.split_by,
        seen_slots: record.seen_slots,
        seen_ns: record.seen_ns,
        name: name(&record.name[..NAME]),
        core: text(&record.core.name),
        fingerprint: record.core.fingerprint,
        measurement: record.measurement[(record.current.load(Relaxed) & 1) as usize],
        counted_executions: record.counted_executions.load(Relaxed),
        counted: record.counted[(record.counted_executions.load(Relaxed) & 1) as usize],
    }
}

/// A region's or thread's. (One of blanks alone would be none, which means all that ran.)
fn name(bytes: &[u8]) -> String {
    let name = text(bytes);
    let is_blank = name.is_empty() && bytes.first().is_some_and(|first| *first != 0);
    if is_blank { "(blank)".into() } else { name }
}

/// Up to NUL, or the array's end.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().into()
}
