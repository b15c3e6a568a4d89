//! jitdump: records of code that was loaded, with its name and bytes, or moved (tools/perf/Documentation/jitdump-specification.txt).
//!
//! What it says of lines is not used: compilers differ in whether addresses there begin behind the header of the file that `perf
//! inject` makes, 64 bytes further on.
#![forbid(unsafe_code)]

use super::{JitMap, LONGEST_NAME, MOST_FUNCTIONS, too_many};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// "JiTD" as a number, in this machine's byte order.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER: u32 = 40;
/// Of each record: what it is, its size, and when it was written.
const PREFIX: u32 = 16;
const LOADED: u32 = 0;
const MOVED: u32 = 1;
/// What is behind so many records, or bytes, is not read. (Code is passed over.)
const MOST_RECORDS: usize = 4 << 20;
const MOST_BYTES: u64 = 16 << 30;

/// A file that is read from its beginning.
struct DumpReader {
    file: BufReader<File>,
    /// Bytes that follow.
    left: u64,
}

impl DumpReader {
    fn new(file: File) -> Option<DumpReader> {
        let left = file.metadata().ok()?.len().min(MOST_BYTES);
        Some(DumpReader { file: BufReader::new(file), left })
    }

    /// Passes over the header; None: it is that of another format.
    fn begin(&mut self) -> Option<()> {
        let (magic, version, size) = (self.u32()?, self.u32()?, self.u32()?);
        if (magic, version) != (MAGIC, VERSION) {
            return None;
        }
        self.skip(u64::from(size.max(HEADER) - 12))
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

impl JitMap {
    /// What a dump says, as far as it can be read.
    ///
    /// # Errors
    /// It is no dump, or too long.
    pub(super) fn add_dump(&mut self, file: File) -> Result<(), String> {
        let mut dump = DumpReader::new(file).filter(|dump| dump.left > 0).ok_or("it is empty")?;
        dump.begin().ok_or_else(|| format!("it is no jitdump of version {VERSION}"))?;
        for _ in 0..MOST_RECORDS {
            if self.functions.len() >= MOST_FUNCTIONS {
                return Err(too_many(MOST_FUNCTIONS));
            }
            if self.add_record(&mut dump).is_none() {
                return Ok(());
            }
        }
        Err(format!("what is behind its first {MOST_RECORDS} records is not read"))
    }

    /// None: it was the last one, or is still being written.
    fn add_record(&mut self, dump: &mut DumpReader) -> Option<()> {
        let (kind, size, _time) = (dump.u32()?, dump.u32()?, dump.u64()?);
        let size = u64::from(size.checked_sub(PREFIX)?);
        let behind = dump.left.checked_sub(size)?;
        match kind {
            LOADED if size >= 40 => {
                let (_thread, _vma) = (dump.u64()?, dump.u64()?);
                let (start, length, _index) = (dump.u64()?, dump.u64()?, dump.u64()?);
                let name = dump.name((size - 40).min(4 * LONGEST_NAME as u64))?;
                self.put(start, length, &name);
            }
            MOVED if size >= 48 => {
                let (_thread, _vma) = (dump.u64()?, dump.u64()?);
                let (from, to, length) = (dump.u64()?, dump.u64()?, dump.u64()?);
                self.moved(from, to, length);
            }
            _ => {}
        }
        dump.skip(dump.left.checked_sub(behind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tests::Scratch;
    use std::fs::{self, metadata};
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

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

    fn of(scratch: &Scratch, bytes: &[u8]) -> JitMap {
        let path = scratch.path("jit-7.dump").display().to_string();
        fs::write(&path, bytes).unwrap();
        let user = metadata(&path).unwrap().uid();
        JitMap::of(&scratch.0, [&*path].into_iter(), 7, user)
    }

    fn names<const N: usize>(map: &JitMap, addresses: [u64; N]) -> [Option<&str>; N] {
        addresses.map(|address| map.at(address))
    }

    #[test]
    fn code_that_was_loaded_and_moved_has_its_names() {
        let scratch = Scratch::new("dump");
        fs::write(scratch.path("perf-7.map"), "100 40 mapped\n900 10 alone\n").unwrap();
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
        assert_eq!(
            names(&map, [0x100, 0x11f, 0x120, 0x905]),
            [Some("f\u{fffd}"), Some("f\u{fffd}"), None, Some("alone")]
        );
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
        let user = metadata(&sparse).unwrap().uid();
        assert_eq!(
            JitMap::of(&scratch.0, [sparse.to_str().unwrap()].into_iter(), 7, user).at(0x100),
            Some("abc")
        );
    }

    #[test]
    fn a_dump_is_mapped_of_the_process_and_no_link() {
        let scratch = Scratch::new("whose-dump");
        assert!(of(&scratch, &[header(HEADER), loaded(0x100, 0x20, "f")].concat()).at(0x100).is_some());
        let path = |name: &str| scratch.path(name).display().to_string();
        let user = metadata(path("jit-7.dump")).unwrap().uid();
        let known = |mapped: &str, pid: i32, user: u32| {
            JitMap::of(Path::new("/nowhere"), [mapped].into_iter(), pid, user).at(0x100).is_some()
        };
        assert!(known(&path("jit-7.dump"), 7, user) && !known(&path("jit-7.dump"), 8, user));
        fs::copy(path("jit-7.dump"), path("other.dump")).unwrap();
        assert!(!known(&path("other.dump"), 7, user));
        if user == 0 {
            std::os::unix::fs::chown(path("jit-7.dump"), Some(1), None).unwrap();
            assert!(!known(&path("jit-7.dump"), 7, 0) && known(&path("jit-7.dump"), 7, 1));
        }
        fs::remove_file(path("jit-7.dump")).unwrap();
        symlink(path("other.dump"), path("jit-7.dump")).unwrap();
        assert!(!known(&path("jit-7.dump"), 7, user));
    }
}
