//! Functions that a JIT compiler has made, by what it writes for perf: a map, which has a start, a size and a name in each line, or a dump
//! (jitdump). Both are files that anybody may have made, of any name.
#![forbid(unsafe_code)]

mod dump;

use super::names::printable;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What is behind so many bytes, or functions, is not read.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FUNCTIONS: usize = 1 << 20;
/// Of a name no more characters are kept.
const LONGEST_NAME: usize = 1000;

/// What a process's files say.
#[derive(Default)]
pub(super) struct JitMap {
    /// Functions by start; none is in another.
    functions: BTreeMap<u64, (u64, String)>,
    /// Files that are not read, or not all of them, and why.
    pub refused: Vec<String>,
}

fn too_many(most: usize) -> String {
    format!("what is behind its first {most} functions is not read")
}

/// Opens what a process of this user has written: a regular file that is the user's or root's, and no link.
///
/// # Errors
/// Why that is not so.
fn opened(path: &Path, user: u32) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => "it is a link".into(),
        _ => error.to_string(),
    })?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let owner = metadata.uid();
    match () {
        () if !metadata.is_file() => Err("it is no regular file".into()),
        () if ![0, user].contains(&owner) => {
            Err(format!("it belongs to user {owner}, neither to root nor to the process's user {user}"))
        }
        () => Ok(file),
    }
}

/// Whether a file that a process has mapped is its dump: that is how compilers tell of it.
fn is_dump(path: &str, pid: i32) -> bool {
    Path::new(path).file_name().is_some_and(|name| *name == *format!("jit-{pid}.dump"))
}

impl JitMap {
    /// As the files are now: the map in a directory, and of what was mapped the dumps, which say more.
    pub fn of<'a>(directory: &Path, mapped: impl Iterator<Item = &'a str>, pid: i32, user: u32) -> JitMap {
        let mut map = JitMap::default();
        map.take(&directory.join(format!("perf-{pid}.map")), user, JitMap::add_map);
        for path in mapped.filter(|path| is_dump(path, pid)) {
            map.take(Path::new(path), user, JitMap::add_dump);
        }
        map
    }

    /// Adds a file, if it is there, and notes why it is not read, or not all of it.
    fn take(&mut self, path: &Path, user: u32, add: fn(&mut JitMap, File) -> Result<(), String>) {
        // (most processes have none)
        let is_there = path.symlink_metadata().is_ok();
        if let (true, Err(why)) = (is_there, opened(path, user).and_then(|file| add(self, file))) {
            self.refused.push(format!("{}: {why}", path.display()));
        }
    }

    fn add_map(&mut self, file: File) -> Result<(), String> {
        let long = file.metadata().is_ok_and(|about| about.len() > MOST_BYTES);
        self.read(BufReader::new(file.take(MOST_BYTES)), MOST_FUNCTIONS)?;
        if long {
            Err(format!("what is behind its first {} MiB is not read", MOST_BYTES >> 20))
        } else {
            Ok(())
        }
    }

    fn read(&mut self, mut file: impl BufRead, most: usize) -> Result<(), String> {
        let mut line = Vec::new();
        // (without an end a line is still being written)
        while file.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
            if self.functions.len() >= most {
                return Err(too_many(most));
            }
            self.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let mut words = line.trim_end().splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        let (start, size) = (number()?, number()?);
        self.put(start, size, words.next()?);
        Some(())
    }

    /// A function that is there from now on.
    fn put(&mut self, start: u64, size: u64, name: &str) {
        let Some(end) = start.checked_add(size).filter(|_| size > 0) else { return };
        let name: String = printable(name).chars().take(LONGEST_NAME).collect();
        // (it has taken the place of what was there before)
        let before = self.functions.range(..end).rev().take_while(|(_, (end, _))| *end > start);
        let before: Vec<u64> = before.map(|(start, _)| *start).collect();
        before.iter().for_each(|start| _ = self.functions.remove(start));
        self.functions.insert(start, (end, name));
    }

    /// A function has been moved; where it was there is none.
    fn moved(&mut self, from: u64, to: u64, size: u64) {
        if let Some((_, name)) = self.functions.remove(&from) {
            self.put(to, size, &name);
        }
    }

    /// The function that an address is in.
    pub fn at(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tests::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn read(text: &[u8]) -> JitMap {
        let mut map = JitMap::default();
        assert_eq!(map.read(text, MOST_FUNCTIONS), Ok(()));
        map
    }

    #[test]
    fn a_line_has_a_function() {
        let map = read(b"7f00 10 LazyCompile:~f x.js:1\n0x7f10 0x8 g\nnonsense\n7f20 0 h\n\xff \xff\n7f30 8 \x1b[31m\xff\n");
        assert_eq!([0x7eff, 0x7f18, 0x7f20].map(|address| map.at(address)), [None; 3]);
        assert_eq!(map.at(0x7f00), Some("LazyCompile:~f x.js:1"));
        assert_eq!(map.at(0x7f17), Some("g"));
        assert_eq!(map.at(0x7f30), Some("\u{fffd}[31m\u{fffd}"));
    }

    #[test]
    fn a_later_line_takes_the_place_of_earlier_ones() {
        let map = read(b"100 40 a\n140 40 b\n180 40 c\n120 80 d\n");
        assert_eq!(
            [0x100, 0x120, 0x19f, 0x1a0].map(|address| map.at(address)),
            [None, Some("d"), Some("d"), None]
        );
        let map = read(b"100 40 a\n100 20 b\n");
        assert_eq!([0x100, 0x120].map(|address| map.at(address)), [Some("b"), None]);
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let map = read(b"ffffffffffffffff 2 a\n10000000000000000 2 b\n100 ffffffffffffffff c\n200 8 d");
        assert!(map.functions.is_empty());
        let name = read(format!("100 8 {}\n", "x".repeat(5000)).as_bytes()).at(0x100).map(str::len);
        assert_eq!(name, Some(LONGEST_NAME));
        let mut map = JitMap::default();
        let why = map.read(&b"100 8 a\n108 8 b\n110 8 c\n"[..], 2).unwrap_err();
        assert_eq!((map.at(0x110), &*why), (None, "what is behind its first 2 functions is not read"));
    }

    #[test]
    fn a_map_is_a_regular_file_of_the_user_or_root() {
        let scratch = Scratch::new("jit");
        let directory = &scratch.0;
        let map = directory.join("perf-7.map");
        let of = |user: u32| JitMap::of(directory, [].into_iter(), 7, user);
        let at = |user: u32| of(user).at(0x100).map(str::to_string);
        let why = |user: u32| {
            let [why] = &of(user).refused[..] else { return String::new() };
            why.strip_prefix(&format!("{}: ", map.display())).unwrap().to_string()
        };
        let own = fs::metadata(directory).unwrap().uid();
        assert_eq!((at(own), why(own)), (None, String::new()));
        fs::write(&map, "100 8 f\n").unwrap();
        assert_eq!((at(own), why(own)), (Some("f".into()), String::new()));
        // (root's is anybody's)
        assert_eq!(at(own + 1).is_some(), own == 0);
        if own == 0 {
            std::os::unix::fs::chown(&map, Some(1), None).unwrap();
            assert_eq!((at(0), at(1), at(2)), (None, Some("f".into()), None));
            assert_eq!(why(2), "it belongs to user 1, neither to root nor to the process's user 2");
        }
        fs::rename(&map, directory.join("other")).unwrap();
        symlink("other", &map).unwrap();
        assert_eq!((at(1).or(at(own)), &*why(own)), (None, "it is a link"));
        fs::remove_file(&map).unwrap();
        fs::create_dir(&map).unwrap();
        assert_eq!((at(own), &*why(own)), (None, "it is no regular file"));
        fs::remove_dir(&map).unwrap();
        assert!(Command::new("mkfifo").arg(&map).status().unwrap().success());
        assert_eq!(at(own), None);
    }
}
