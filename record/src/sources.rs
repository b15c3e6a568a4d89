//! Lines of source files, for views: found by the paths that compilers wrote into debug information, which anybody may have made up.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// A larger file is not read.
const MOST_BYTES: u64 = 32 << 20;
/// No more is read of all files together.
const MOST_OF_ALL: u64 = 512 << 20;
/// Of a line no more characters are kept.
const LONGEST_LINE: usize = 400;
/// A tab goes on to a multiple of so many columns.
const TAB: usize = 4;
/// So many lines before and behind a wanted one are kept.
pub(crate) const CONTEXT: u32 = 3;

/// Where source files are, if not where they were compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// What such paths begin with; None: any, of which the last part that is there counts.
    from: Option<PathBuf>,
    to: PathBuf,
}

impl SourcePlace {
    /// `DIRECTORY`, or `FROM=DIRECTORY`, which takes the place of the beginning FROM.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn of(text: &str) -> Result<SourcePlace, String> {
        let (from, to) = match text.split_once('=') {
            Some((from, to)) => (Some(PathBuf::from(from)), PathBuf::from(to)),
            None => (None, PathBuf::from(text)),
        };
        match fs::metadata(&to) {
            Ok(metadata) if metadata.is_dir() => Ok(SourcePlace { from, to }),
            Ok(_) => Err(format!("'{}' is no directory", to.display())),
            Err(error) => Err(format!("{}: {error}", to.display())),
        }
    }

    /// Where the file could be, most likely first.
    fn candidates(&self, file: &Path) -> Vec<PathBuf> {
        match &self.from {
            Some(from) => file.strip_prefix(from).map(|rest| self.to.join(plain(rest))).into_iter().collect(),
            None => {
                let file = plain(file);
                let parts: Vec<Component> = file.components().collect();
                let behind = |start| self.to.join(parts[start..].iter().collect::<PathBuf>());
                (0..parts.len()).map(behind).collect()
            }
        }
    }
}

/// A relative path without what leads out of where it begins.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => _ = plain.pop(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    plain
}

/// Why there is no text of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingText {
    Absent,
    NotRegular,
    /// It is neither everybody's nor that of the program's owner.
    Private,
    Large,
    NotText,
    /// It has fewer lines than the program knows.
    Short,
    /// So much of others was read.
    TooMany,
}

impl fmt::Display for MissingText {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MissingText::Absent => {
                write!(formatter, "the file is not there or cannot be read (--source says where it is)")
            }
            MissingText::NotRegular => write!(formatter, "it is no regular file"),
            MissingText::Private => {
                write!(
                    formatter,
                    "not everybody may read the file, and the program is another user's: it could name any file"
                )
            }
            MissingText::Large => write!(formatter, "the file has more than {} MiB", MOST_BYTES >> 20),
            MissingText::NotText => write!(formatter, "the file is no text"),
            MissingText::Short => write!(formatter, "the file has fewer lines: it is not what was compiled"),
            MissingText::TooMany => write!(formatter, "{} MiB of other files were read", MOST_OF_ALL >> 20),
        }
    }
}

/// Some lines of a file.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    /// Where it was found.
    pub path: PathBuf,
    /// It was written after the program: its lines may be others.
    pub newer: bool,
    pub lines: BTreeMap<u32, String>,
}

/// Lines of source files, by the program's path and the file's as the program knows it.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<(String, String), Result<SourceText, MissingText>>);

impl Sources {
    /// Lines of these numbers and those beside them: of a program, a file, and a number each.
    pub(crate) fn read<'a>(
        wanted: impl IntoIterator<Item = (&'a str, &'a str, u32)>,
        places: &[SourcePlace],
    ) -> Sources {
        let mut numbers: BTreeMap<(&str, &str), BTreeSet<u32>> = BTreeMap::new();
        for (program, file, line) in wanted {
            numbers.entry((program, file)).or_default().insert(line);
        }
        let mut left = MOST_OF_ALL;
        let mut text = |((program, file), numbers): ((&str, &str), BTreeSet<u32>)| {
            let text = text_of(Path::new(program), Path::new(file), &numbers, places, &mut left);
            ((program.to_string(), file.to_string()), text)
        };
        Sources(numbers.into_iter().map(&mut text).collect())
    }

    /// None: it was not asked for.
    pub(crate) fn of(&self, program: &str, file: &str) -> Option<&Result<SourceText, MissingText>> {
        self.0.get(&(program.to_string(), file.to_string()))
    }

    /// Files that were written after the program.
    pub(crate) fn newer(&self) -> impl Iterator<Item = &Path> {
        let read = self.0.values().filter_map(|text| text.as_ref().ok());
        read.filter(|text| text.newer).map(|text| &*text.path)
    }

    /// A line, if it is known.
    pub(crate) fn line(&self, program: &str, file: &str, line: u32) -> Option<&str> {
        let text = self.of(program, file)?.as_ref().ok()?;
        text.lines.get(&line).map(String::as_str)
    }
}

/// The file, where it really is; a name that is a link leads to what it is of.
fn found(file: &Path, places: &[SourcePlace]) -> Option<(PathBuf, Metadata)> {
    let elsewhere = places.iter().flat_map(|place| place.candidates(file));
    let there = file.is_absolute().then(|| file.to_path_buf());
    elsewhere.chain(there).find_map(|path| {
        let path = fs::canonicalize(path).ok()?;
        let metadata = fs::metadata(&path).ok().filter(|metadata| !metadata.is_dir())?;
        Some((path, metadata))
    })
}

/// A program can name any file as its source: one that its owner may not read, but who records it may, is not shown.
fn may_be_shown(program: Option<&Metadata>, path: &Path, file: &Metadata) -> bool {
    let owner = program.map(MetadataExt::uid);
    let searchable = |directory: &Path| fs::metadata(directory).is_ok_and(|about| about.mode() & 0o001 != 0);
    let everybodys = || file.mode() & 0o004 != 0 && path.ancestors().skip(1).all(searchable);
    owner == Some(0) || owner == Some(file.uid()) || everybodys()
}

fn text_of(
    program: &Path,
    file: &Path,
    numbers: &BTreeSet<u32>,
    places: &[SourcePlace],
    left: &mut u64,
) -> Result<SourceText, MissingText> {
    let (path, metadata) = found(file, places).ok_or(MissingText::Absent)?;
    // (to open what is none could already do something)
    if !metadata.is_file() {
        return Err(MissingText::NotRegular);
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(&path).map_err(|_| MissingText::Absent)?;
    let metadata = file.metadata().map_err(|_| MissingText::Absent)?;
    let program = fs::metadata(program).ok();
    let size = metadata.len();
    match () {
        () if !metadata.is_file() => return Err(MissingText::NotRegular),
        () if !may_be_shown(program.as_ref(), &path, &metadata) => return Err(MissingText::Private),
        () if size > MOST_BYTES => return Err(MissingText::Large),
        () if size > *left => return Err(MissingText::TooMany),
        () => *left -= size,
    }
    let newer = program.is_some_and(|program| written(&metadata) > written(&program));
    Ok(SourceText { path, newer, lines: lines_of(file, numbers)? })
}

fn written(metadata: &Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

/// The wanted lines and those beside them.
fn lines_of(file: File, numbers: &BTreeSet<u32>) -> Result<BTreeMap<u32, String>, MissingText> {
    let last = numbers.last().copied().unwrap_or(0);
    let kept = |number: u32| {
        let beside = number.saturating_sub(CONTEXT)..=number.saturating_add(CONTEXT);
        numbers.range(beside).next().is_some()
    };
    let (mut lines, mut bytes) = (BTreeMap::new(), Vec::new());
    let mut file = BufReader::new(file.take(MOST_BYTES)); // (it may grow)
    for number in 1..=last.saturating_add(CONTEXT) {
        bytes.clear();
        match file.read_until(b'\n', &mut bytes) {
            Ok(0) if number <= last => return Err(MissingText::Short),
            Ok(0) => break,
            Ok(_) if bytes.contains(&0) => return Err(MissingText::NotText),
            Ok(_) if kept(number) => _ = lines.insert(number, line(&bytes)),
            Ok(_) => {}
            Err(_) => return Err(MissingText::Absent),
        }
    }
    Ok(lines)
}

/// A line without its end, with spaces for tabs.
fn line(bytes: &[u8]) -> String {
    let mut line = String::new();
    let mut columns = 0;
    let start = &bytes[..bytes.len().min(4 * LONGEST_LINE)];
    for c in String::from_utf8_lossy(start).trim_end().chars() {
        let wide = if c == '\t' { TAB - columns % TAB } else { 1 };
        if columns + wide > LONGEST_LINE {
            line.push('…');
            break;
        }
        line.extend(std::iter::repeat_n(if c == '\t' { ' ' } else { c }, wide));
        columns += wide;
    }
    line
}

#[cfg(test)]
mod tests;
