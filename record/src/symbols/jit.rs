//! Functions that a JIT compiler has made, by what it writes for perf: a map, which has a start, a size and a name in each line, or a dump
//! (jitdump). Both are files that anybody may have made, of any name.
#![forbid(unsafe_code)]

mod dump;

use super::names::printable;
use dump::Dump;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What is behind so many bytes, or functions, is not read.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FUNCTIONS: usize = 1 << 20;
/// Of a name no more characters are kept.
const LONGEST_NAME: usize = 1000;

/// What a process's files say.
#[derive(Debug, Default)]
pub(super) struct JitMap {
    /// Functions by start; none is in another.
    functions: BTreeMap<u64, MadeFunction>,
    /// How many functions have come.
    puts: u64,
    /// It is not known when functions came: where there were several nobody knows which it was.
    keeps_all: bool,
    /// Where that was, by start; none is in another.
    contested: BTreeMap<u64, u64>,
    /// Files that are not read, or not all of them, and why.
    pub refused: Vec<String>,
}

#[derive(Debug)]
struct MadeFunction {
    end: u64,
    name: String,
    /// When it came, by the records' clock.
    time: u64,
    /// Another one for each.
    number: u64,
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

impl JitMap {
    /// The map in a directory, as it is now, of a process that has this number there and began at that time of the clock of files.
    fn of(directory: &Path, number: i32, user: u32, since_ns: i128) -> JitMap {
        let mut map = JitMap { keeps_all: true, ..JitMap::default() };
        let (name, path) = (format!("perf-{number}.map"), directory.join(format!("perf-{number}.map")));
        // (most processes have none)
        let is_there = path.symlink_metadata().is_ok();
        let mut taken = || map.add_map(is_written_since(opened(&path, user)?, since_ns)?);
        if let Some(Err(why)) = is_there.then(&mut taken) {
            map.refused.push(format!("{name}: {why}"));
        }
        map
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
        self.put(start, size, words.next()?, 0);
        Some(())
    }

    /// A function that is there from now on.
    fn put(&mut self, start: u64, size: u64, name: &str, time: u64) {
        let Some(end) = start.checked_add(size).filter(|_| size > 0) else { return };
        let name: String = printable(name).chars().take(LONGEST_NAME).collect();
        // (it has taken the place of what was there before)
        let before = self.functions.range(..end).rev().take_while(|(_, made)| made.end > start);
        let before: Vec<u64> = before.map(|(start, _)| *start).collect();
        for other_start in before {
            let Some(other) = self.functions.remove(&other_start) else { continue };
            if self.keeps_all && other.name != name {
                self.contest(other_start.max(start), other.end.min(end));
            }
        }
        self.puts += 1;
        self.functions.insert(start, MadeFunction { end, name, time, number: self.puts });
    }

    fn contest(&mut self, mut start: u64, mut end: u64) {
        while let Some((from, to)) = self.contested.range(..=end).next_back().filter(|(_, to)| **to >= start)
        {
            let from = *from;
            (start, end) = (start.min(from), end.max(*to));
            self.contested.remove(&from);
        }
        self.contested.insert(start, end);
    }

    /// A function has been moved; where it was there is none.
    fn moved(&mut self, from: u64, to: u64, size: u64, time: u64) {
        if let Some(MadeFunction { name, .. }) = self.functions.remove(&from) {
            self.put(to, size, &name, time);
        }
    }

    fn made(&self, address: u64) -> Option<&MadeFunction> {
        let (_, made) = self.functions.range(..=address).next_back()?;
        (address < made.end).then_some(made)
    }

    /// The function that an address is in.
    pub fn at(&self, address: u64) -> Option<&str> {
        self.made(address).map(|made| &*made.name)
    }

    /// Several functions have been there, and when is not known.
    fn is_contested(&self, address: u64) -> bool {
        self.contested.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }
}

/// A file that was written last before its process began is another one's.
fn is_written_since(file: File, since_ns: i128) -> Result<File, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    let written_ns = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
    // (times of files are those of the last tick, of which there are 100 a second or more)
    if written_ns + 10_000_000 < since_ns { Err("it is older than the process".into()) } else { Ok(file) }
}

/// What is told instead of the name of code whose address several functions had.
const USED_AGAIN: &str = "[unknown in [jit]: its address was used again]";

/// What a process says of the code that it makes.
#[derive(Debug)]
pub(crate) struct Jit {
    /// Another number for each program that a process executes.
    pub program: u64,
    pub user: u32,
    /// The process's number in its own namespace, and its own /tmp: that is where it writes. None: it had ended.
    number: i32,
    pub directory: Option<File>,
    /// When it began its program, by the clock of files.
    since_ns: i128,
    dump: Option<Dump>,
    /// The dump as far as it has come.
    known: JitMap,
}

/// An address, and between which times it was seen.
pub(crate) type SeenAddress = (u64, (u64, u64));

impl Jit {
    /// Of a process of this user, as long as it is there.
    pub fn of(pid: i32, program: u64, user: u32, since_ns: i128) -> Jit {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let number = numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY);
        let directory = options.open(format!("/proc/{pid}/root/tmp")).or_else(|_| options.open("/tmp"));
        Jit {
            program,
            user,
            number: number.unwrap_or(pid),
            directory: directory.ok(),
            since_ns,
            dump: None,
            known: JitMap::default(),
        }
    }

    /// The process has mapped a file. (Compilers tell of their dumps so.)
    pub fn has_mapped(&mut self, path: &str, file: Option<File>) {
        let is_dump =
            Path::new(path).file_name().is_some_and(|name| *name == *format!("jit-{}.dump", self.number));
        let is_theirs =
            |file: &File| file.metadata().is_ok_and(|about| [0, self.user].contains(&about.uid()));
        if let Some(file) = file.filter(|file| is_dump && is_theirs(file)) {
            (self.dump, self.known) = (Some(Dump::new(file)), JitMap::default());
        }
    }

    /// Another number for each function that an address has had, as far as is known when it is seen.
    pub fn version(&mut self, address: u64, time: u64) -> u64 {
        let Some(dump) = &mut self.dump else { return 0 };
        let known = &mut self.known;
        let _ = dump.follow(|record| _ = known.add_record(record));
        known.made(address).map_or(0, |made| 2 * made.number + u64::from(made.time <= time))
    }

    /// Names of addresses; none has no name. And why some are missing.
    pub fn names(&self, seen: &[SeenAddress]) -> (Vec<Option<String>>, Vec<String>) {
        let (dumped, refused) = self.dumped(seen);
        let mut map = JitMap::default();
        if let Some(directory) = &self.directory {
            let directory = format!("/proc/thread-self/fd/{}", directory.as_raw_fd());
            map = JitMap::of(Path::new(&directory), self.number, self.user, self.since_ns);
        }
        let of_map = |address: u64| match map.is_contested(address) {
            true => Some(USED_AGAIN.to_string()),
            false => map.at(address).map(str::to_string),
        };
        let names = seen.iter().zip(dumped).map(|((address, _), dumped)| dumped.or_else(|| of_map(*address)));
        let names = names.collect();
        map.refused.extend(refused);
        (names, map.refused)
    }

    /// By the dump: what was there at both times, if it is the same.
    fn dumped(&self, seen: &[SeenAddress]) -> (Vec<Option<String>>, Option<String>) {
        let mut names = vec![None; seen.len()];
        let Some(mut dump) = self.dump.as_ref().and_then(Dump::again) else { return (names, None) };
        let mut records = Vec::new();
        let mut refused = dump.follow(|record| records.push(record)).err();
        // (some compilers leave times at 0)
        let is_timed = dump.is_timed && records.iter().all(|record| record.time > 0);
        let mut map = JitMap { keeps_all: !is_timed, ..JitMap::default() };
        let times = |(first, last): (u64, u64)| if is_timed { [first, last] } else { [u64::MAX; 2] };
        let ends = seen.iter().enumerate();
        let mut looks: Vec<(u64, usize)> =
            ends.flat_map(|(place, (_, ends))| times(*ends).map(|time| (time, place))).collect();
        looks.sort_unstable();
        records.sort_by_key(|record| record.time);
        let mut records = records.into_iter().peekable();
        let mut first = vec![None; seen.len()];
        for (time, place) in looks {
            while let Some(record) = records.next_if(|record| record.time <= time) {
                refused = map.add_record(record).err().or(refused);
            }
            let address = seen[place].0;
            let made = map.made(address).map(|made| (made.number, made.name.clone()));
            match first[place].replace(made) {
                None => {}
                Some(before) => {
                    let now = first[place].take().flatten();
                    let same =
                        before.as_ref().map(|(number, _)| number) == now.as_ref().map(|(number, _)| number);
                    names[place] = match now {
                        _ if !same || map.is_contested(address) => Some(USED_AGAIN.into()),
                        now => now.map(|(_, name)| name),
                    };
                }
            }
        }
        (names, refused.map(|why| format!("jit-{}.dump: {why}", self.number)))
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
        assert!(map.contested.is_empty());
        assert_eq!(
            [0x100, 0x120, 0x19f, 0x1a0].map(|address| map.at(address)),
            [None, Some("d"), Some("d"), None]
        );
        let map = read(b"100 40 a\n100 20 b\n");
        assert_eq!([0x100, 0x120].map(|address| map.at(address)), [Some("b"), None]);
        // (when is not known)
        let mut map = JitMap { keeps_all: true, ..JitMap::default() };
        map.read(&b"100 100 a\n100 100 b\n140 10 c\n140 10 c\n180 100 d\n300 8 e\n"[..], MOST_FUNCTIONS)
            .unwrap();
        let contested = |address| map.is_contested(address);
        assert_eq!([0x100, 0x148, 0x160, 0x1ff].map(contested), [true; 4]);
        assert_eq!([0xff, 0x200, 0x27f, 0x300].map(contested), [false; 4]);
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
        let of = |user: u32| JitMap::of(directory, 7, user, 0);
        let at = |user: u32| of(user).at(0x100).map(str::to_string);
        let why = |user: u32| {
            let [why] = &of(user).refused[..] else { return String::new() };
            why.strip_prefix("perf-7.map: ").unwrap().to_string()
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
        // one that was there before the process
        let written = |since: i128| is_written_since(File::open(&map).unwrap(), since).is_ok();
        let about = fs::metadata(&map).unwrap();
        let at = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        assert!(written(at) && !written(at + 1_000_000_000));
        fs::rename(&map, directory.join("other")).unwrap();
        symlink("other", &map).unwrap();
        let at = |user: u32| of(user).at(0x100).map(str::to_string);
        assert_eq!((at(1).or(at(own)), &*why(own)), (None, "it is a link"));
        fs::remove_file(&map).unwrap();
        fs::create_dir(&map).unwrap();
        assert_eq!((at(own), &*why(own)), (None, "it is no regular file"));
        fs::remove_dir(&map).unwrap();
        assert!(Command::new("mkfifo").arg(&map).status().unwrap().success());
        assert_eq!(at(own), None);
    }
}
