//! jitdump: records of code that was loaded, with its name and bytes, or moved (tools/perf/Documentation/jitdump-specification.txt).
//!
//! What it says of lines is not used: compilers differ in whether addresses there begin behind the header of the file that `perf
//! inject` makes, 64 bytes further on.
#![forbid(unsafe_code)]

use super::{JitMap, LONGEST_NAME, MOST_FUNCTIONS, too_many};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

/// "JiTD" as a number, in this machine's byte order.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER: u32 = 40;
/// Of each record: what it is, its size, and when it was written.
const PREFIX: u32 = 16;
const LOADED: u32 = 0;
const MOVED: u32 = 1;
/// Among the header's flags: times are those of another clock than perf's.
const OTHER_CLOCK: u64 = 1;
/// What is behind so many records, or bytes, is not read. (Code is passed over.)
const MOST_RECORDS: usize = 4 << 20;
const MOST_BYTES: u64 = 16 << 30;

/// A file that is read from its beginning.
struct DumpReader {
    file: BufReader<File>,
    /// Bytes that follow.
    left: u64,
}

/// What a record says of code, and when.
pub(super) struct DumpRecord {
    pub time: u64,
    pub code: JitCode,
}

/// A function is there, or has been moved.
pub(super) enum JitCode {
    Loaded { start: u64, length: u64, name: String },
    Moved { from: u64, to: u64, length: u64 },
}

impl DumpReader {
    fn new(mut file: File, start: u64) -> Option<DumpReader> {
        let left = file.metadata().ok()?.len().min(MOST_BYTES).checked_sub(start)?;
        file.seek(SeekFrom::Start(start)).ok()?;
        Some(DumpReader { file: BufReader::new(file), left })
    }

    /// Passes over the header, and returns its flags; None: it is that of another format.
    fn begin(&mut self) -> Option<u64> {
        let (magic, version, size) = (self.u32()?, self.u32()?, self.u32()?);
        if (magic, version) != (MAGIC, VERSION) {
            return None;
        }
        self.skip(20)?; // machine, padding, process and time
        let flags = self.u64()?;
        self.skip(u64::from(size.max(HEADER) - HEADER))?;
        Some(flags)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.left = self.left.checked_sub(N as u64)?;
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        self.file.seek_relative(i64::try_from(bytes).ok()?).ok()
    }

    /// Up to its end, which is a zero; of a longer one than `most` bytes its beginning.
    fn name(&mut self, most: u64) -> Option<String> {
        let mut bytes = Vec::new();
        let read = self.file.by_ref().take(most).read_until(0, &mut bytes).ok()?;
        self.left = self.left.checked_sub(read as u64)?;
        let name = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

/// A dump that is read as it grows.
#[derive(Debug)]
pub(crate) struct Dump {
    file: File,
    /// So much is read.
    read: u64,
    /// The records' times are of perf's clock.
    pub is_timed: bool,
    records: usize,
}

impl Dump {
    /// One that a process has mapped.
    pub fn new(file: File) -> Dump {
        Dump { file, read: 0, is_timed: false, records: 0 }
    }

    /// The same, to be read from its beginning.
    pub fn again(&self) -> Option<Dump> {
        Some(Dump::new(self.file.try_clone().ok()?))
    }

    /// Takes what has been written since the last time, as far as it is whole.
    ///
    /// # Errors
    /// It is no dump, or too long.
    pub(super) fn follow(&mut self, mut take: impl FnMut(DumpRecord)) -> Result<(), String> {
        let end = self.file.metadata().map_or(0, |about| about.len()).min(MOST_BYTES);
        if end == self.read {
            return if end == 0 { Err("it is empty".into()) } else { Ok(()) };
        }
        let reader = self.file.try_clone().ok().and_then(|file| DumpReader::new(file, self.read));
        let Some(mut dump) = reader.filter(|dump| dump.left > 0) else { return Ok(()) };
        let end = self.read + dump.left;
        if self.read == 0 {
            let flags = dump.begin().ok_or_else(|| format!("it is no jitdump of version {VERSION}"))?;
            self.is_timed = flags & OTHER_CLOCK == 0;
            self.read = end - dump.left;
        }
        while let Some(record) = dump.record() {
            self.read = end - dump.left;
            self.records += 1;
            record.into_iter().for_each(&mut take);
            if self.records >= MOST_RECORDS {
                return Err(format!("what is behind its first {MOST_RECORDS} records is not read"));
            }
        }
        Ok(())
    }
}

impl DumpReader {
    /// The next record, if it says of code; None: there is none yet, or not whole.
    fn record(&mut self) -> Option<Option<DumpRecord>> {
        let (kind, size, time) = (self.u32()?, self.u32()?, self.u64()?);
        let size = u64::from(size.checked_sub(PREFIX)?);
        let behind = self.left.checked_sub(size)?;
        let code = match kind {
            LOADED if size >= 40 => {
                let (_thread, _vma) = (self.u64()?, self.u64()?);
                let (start, length, _index) = (self.u64()?, self.u64()?, self.u64()?);
                let name = self.name((size - 40).min(4 * LONGEST_NAME as u64))?;
                Some(JitCode::Loaded { start, length, name })
            }
            MOVED if size >= 48 => {
                let (_thread, _vma) = (self.u64()?, self.u64()?);
                let (from, to, length) = (self.u64()?, self.u64()?, self.u64()?);
                Some(JitCode::Moved { from, to, length })
            }
            _ => None,
        };
        self.skip(self.left.checked_sub(behind)?)?;
        Some(code.map(|code| DumpRecord { time, code }))
    }
}

impl JitMap {
    /// Takes a record's place in it.
    ///
    /// # Errors
    /// It has too many functions.
    pub(super) fn add_record(&mut self, DumpRecord { time, code }: DumpRecord) -> Result<(), String> {
        if self.functions.len() >= MOST_FUNCTIONS {
            return Err(too_many(MOST_FUNCTIONS));
        }
        match code {
            JitCode::Loaded { start, length, name } => self.put(start, length, &name, time),
            JitCode::Moved { from, to, length } => self.moved(from, to, length, time),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tests::Scratch;
    use std::fs;

    fn header(size: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [MAGIC, VERSION, size, 62, 0, 7].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(size as usize, 0);
        bytes
    }

    fn record(kind: u32, words: &[u64], rest: &[u8]) -> Vec<u8> {
        let size = PREFIX + 8 * words.len() as u32 + rest.len() as u32;
        let prefix = [kind.to_ne_bytes(), size.to_ne_bytes()].concat();
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        prefix.into_iter().chain(77_u64.to_ne_bytes()).chain(words).chain(rest.iter().copied()).collect()
    }

    fn loaded(start: u64, length: u64, name: &str) -> Vec<u8> {
        let code = vec![0x90; length.min(100) as usize];
        record(LOADED, &[7 << 32 | 7, start, start, length, 1], &[name.as_bytes(), b"\0", &code].concat())
    }

    /// What a process that wrote these bytes is known to have made, in the end.
    fn of(scratch: &Scratch, bytes: &[u8]) -> JitMap {
        let path = scratch.path("jit-7.dump").display().to_string();
        fs::write(&path, bytes).unwrap();
        read_again(&path)
    }

    fn read_again(path: &str) -> JitMap {
        let (mut map, mut records) = (JitMap::default(), Vec::new());
        let mut dump = Dump::new(File::open(path).unwrap());
        let all = dump.follow(|record| records.push(record));
        map.refused.extend(all.err().map(|why| format!("{path}: {why}")));
        records.into_iter().for_each(|record| map.add_record(record).unwrap());
        map
    }

    fn names<const N: usize>(map: &JitMap, addresses: [u64; N]) -> [Option<&str>; N] {
        addresses.map(|address| map.at(address))
    }

    #[test]
    fn code_that_was_loaded_and_moved_has_its_names() {
        let scratch = Scratch::new("dump");
        let records = [
            header(48),
            loaded(0x100, 0x20, "f\x1b"),
            record(2, &[0x200, 1, 0x240], b"\x01\0\0\0\0\0\0\0x.js\0"),
            loaded(0x200, 0x20, "g"),
            record(4, &[1, 2, 3], b"unwinding"),
            loaded(0x300, 0x20, "gone"),
            loaded(0x310, 0x20, "h"),
            record(MOVED, &[7 << 32 | 7, 0x200, 0x200, 0x500, 0x20, 1], b""),
            record(MOVED, &[7 << 32 | 7, 0, 0x700, 0x600, 0x20, 1], b""),
            record(3, &[], b""),
        ];
        let map = of(&scratch, &records.concat());
        assert_eq!(names(&map, [0x100, 0x11f, 0x120]), [Some("f\u{fffd}"), Some("f\u{fffd}"), None]);
        assert_eq!(
            names(&map, [0x200, 0x510, 0x600, 0x300, 0x32f]),
            [None, Some("g"), None, None, Some("h")]
        );
    }

    #[test]
    fn of_a_dump_that_ends_anywhere_the_whole_records_are_there() {
        let scratch = Scratch::new("torn-dump");
        let records = [header(HEADER), loaded(0x100, 0x20, "f"), loaded(0x200, 0x20, "g")];
        let whole = records.concat();
        let ends = [HEADER as usize + records[1].len(), whole.len()];
        for end in 0..=whole.len() {
            let map = of(&scratch, &whole[..end]);
            assert_eq!(
                names(&map, [0x100, 0x200]).map(|name| name.is_some()),
                ends.map(|last| end >= last),
                "{end}"
            );
        }
    }

    #[test]
    fn what_is_no_dump_or_too_much_is_left_out() {
        let scratch = Scratch::new("no-dump");
        let f = || loaded(0x100, 0x20, "f");
        let known = |bytes: &[u8]| of(&scratch, bytes).at(0x100).map(str::to_string);
        assert_eq!(known(&[header(HEADER), f()].concat()).as_deref(), Some("f"));
        let with = |place: usize, value: u32| {
            let mut bytes = [header(HEADER), f()].concat();
            bytes[place..place + 4].copy_from_slice(&value.to_ne_bytes());
            bytes
        };
        // another byte order or version; a header, or a record, that has more than there is, or less than it must have
        for (place, value) in
            [(0, MAGIC.swap_bytes()), (4, 2), (8, u32::MAX), (44, u32::MAX), (44, 15), (44, 0), (40, 9)]
        {
            assert_eq!(known(&with(place, value)), None, "{place} {value}");
            // (the end of what can be read may be the end of what has been written)
            let refused = of(&scratch, &with(place, value)).refused;
            assert_eq!(refused.len(), usize::from(place < 12), "{place} {value}: {refused:?}");
            assert!(
                refused.iter().all(|why| why.ends_with("jit-7.dump: it is no jitdump of version 1")),
                "{refused:?}"
            );
        }
        assert_eq!(known(&with(8, 0)).as_deref(), Some("f"));
        assert_eq!(known(&[header(HEADER), record(LOADED, &[0; 4], b"")].concat()), None);
        assert_eq!(known(&[header(HEADER), loaded(0x100, u64::MAX, "f")].concat()), None);
        let name = |bytes: &[u8]| known(bytes).map(|name| name.len());
        assert_eq!(
            name(&[header(HEADER), loaded(0x100, 0x20, &"x".repeat(70_000))].concat()),
            Some(LONGEST_NAME)
        );
        // (a name without its end is all that there is)
        assert_eq!(name(&[header(HEADER), record(LOADED, &[0, 0, 0x100, 8, 1], b"abc")].concat()), Some(3));
        let sparse = scratch.path("jit-7.dump");
        fs::File::options().append(true).open(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_again(sparse.to_str().unwrap()).at(0x100), Some("abc"));
    }
}
