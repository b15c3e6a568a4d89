//! The directory beside a report in which the ranks of a job leave what they measured.
//!
//! `lives` says which ranks have begun, and run ([`Lives`]); HOST.ranks is what those of a host have left ([`HostFile`]). Who ends and sees that no other
//! still runs, or that the job fails, makes the report of all that is there, under a lock of its own; a later one replaces it.
#![forbid(unsafe_code)]

use super::JobPlace;
use super::host_file::{ENDING, HostFile, Part};
use super::lives::Lives;
use super::place::plain;
use super::rank_file::{EndedRank, RankFile};
use crate::merge::OutsideCount;
use crate::model::{RankEnd, Report};
use crate::output::Claim;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use topdown_table::TablePlace;
use topdown_table::run::is_own;

/// So often the same rank of the same job may write the same report before it ends.
const MOST: u32 = 100;
/// Ending of table files.
const TABLE: &str = "topdown";
/// Which ranks the report has.
const REPORTED: &str = "reported";
/// What the report's file was when the first rank began, or the last report was written; and its name.
const CLAIM: &str = "claim";

/// The directory of a rank's job.
pub struct JobDirectory {
    path: PathBuf,
    place: JobPlace,
    file: RankFile,
    /// Its byte is locked.
    lives: Lives,
}

/// What came of a rank's joining.
pub enum Joined {
    /// It is part of a job.
    Job(Box<JobDirectory>),
    /// It has a report of its own, and why, if that is worth a word.
    Alone(Option<String>),
}

/// What a rank has done in the end.
pub enum Left {
    /// Others still run: the last one makes the report.
    Others,
    /// It has made the report.
    Report(JobReport),
}

/// A report of as many ranks as there were.
pub struct JobReport {
    /// Where it is.
    pub path: PathBuf,
    /// How many ranks that have ended are in it.
    pub ranks: usize,
    /// Of how many.
    pub size: u32,
    /// No other is to come.
    pub complete: bool,
    /// Where more is left, if one may.
    pub rest: PathBuf,
}

impl JobReport {
    /// Where it is, and of which ranks.
    pub fn text(&self) -> String {
        let JobReport { path, ranks, size, complete, rest } = self;
        let (path, rest) = (path.display(), rest.display());
        match complete {
            true => format!("report is in {path}, of {size} ranks"),
            false => format!(
                "report is in {path}, of {ranks} of {size} ranks so far; with what others leave it is made again, or by `topdown report -o {path} {rest}`"
            ),
        }
    }
}

impl JobDirectory {
    /// The beginning of a rank whose report is to be in `output`. `pattern`: its name before patterns were replaced, the same in all ranks.
    /// `was`: what the file was ([`Claim::state`]); None: what it is now.
    pub fn join(
        (pattern, output, was): (&Path, &Path, Option<&str>),
        place: JobPlace,
        (host, command, tables): (String, String, PathBuf),
    ) -> Joined {
        match JobDirectory::joined(pattern, (output, was), &place) {
            Ok((path, lives)) => {
                let file = RankFile {
                    version: env!("CARGO_PKG_VERSION").into(),
                    rank: place.rank,
                    size: place.size,
                    host,
                    command,
                    tables,
                    ended: None,
                };
                let own = JobDirectory { path, place, file, lives };
                match own.host_file().add(&own.file, &[]) {
                    Ok(()) => Joined::Job(own.into()),
                    Err(error) => Joined::Alone(Some(own.why(&error))),
                }
            }
            Err(why) => Joined::Alone(Some(format!("rank {} has a report of its own: {why}", place.rank))),
        }
    }

    fn why(&self, error: &io::Error) -> String {
        format!("rank {} has a report of its own: {}: {error}", self.place.rank, self.path.display())
    }

    fn joined(
        pattern: &Path,
        (output, was): (&Path, Option<&str>),
        place: &JobPlace,
    ) -> Result<(PathBuf, Lives), String> {
        // A rank may run several commands for one report, as in a script: each is a job of its own, in which ranks are that have not begun it yet.
        for _ in 0..MOST {
            let there = numbers(pattern, place);
            let next = there.last().map_or(1, |last| last + 1);
            for number in there.into_iter().chain([next]).take_while(|number| *number <= MOST) {
                let path = name_of(pattern, place, number);
                if number == next {
                    match DirBuilder::new().mode(0o700).create(&path) {
                        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                            return Err(format!("{}: {error}", path.display()));
                        }
                        _ => {}
                    }
                }
                match begun_in(&path, place.rank, (output, was))? {
                    Some(lives) => return Ok((path, lives)),
                    None => continue,
                }
            }
        }
        Err(format!("{} has been claimed too often", name_of(pattern, place, MOST).display()))
    }

    /// (Machines that share a file system may have the same name, but were not started as the same)
    fn host_file(&self) -> HostFile {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let start = boot.split('-').next().unwrap_or_default();
        HostFile::of(&self.path, &plain(&format!("{}-{start}", self.file.host)))
    }

    /// The end of the rank: its tables are moved here, and if it is for it to do, the report is made and written by `write`. `late`: it joined
    /// only now, as the others do, so that nobody knows which of them run. Then it is for each that finds twice as many as are
    /// reported, and the last.
    ///
    /// # Errors
    /// The report cannot be made, or what was measured be left here: that stays where it is; the text says so.
    pub fn leave(
        mut self,
        tables: &[PathBuf],
        outside: &OutsideCount,
        (trouble, late): (&str, bool),
        write: impl FnOnce(&Report, &Path) -> io::Result<()>,
    ) -> io::Result<Left> {
        let ended = EndedRank::new(outside, trouble);
        let fails = ended.failed();
        self.file.ended = Some(ended);
        self.host_file().add(&self.file, tables)?;
        // (what stays is in the way of nobody)
        tables.iter().for_each(|table| drop(fs::remove_file(table)));
        self.lives.take_turn()?;
        // (who was here before has reported this rank, too, and was the last)
        if !self.path.join(CLAIM).exists() {
            return Ok(Left::Others);
        }
        let ranks = read(&self.path)?;
        let reported: BTreeSet<u32> = fs::read_to_string(self.path.join(REPORTED))
            .map(|text| text.split_whitespace().filter_map(|rank| rank.parse().ok()).collect())
            .unwrap_or_default();
        let others = ranks.iter().filter(|rank| rank.file.rank != self.place.rank);
        let run = others.clone().any(|rank| rank.runs);
        let fails = fails
            || others.clone().any(|rank| match &rank.file.ended {
                Some(ended) => ended.failed(),
                None => !rank.runs,
            });
        let waits = match late {
            true => ranks.len() < self.place.size as usize && ranks.len() < 2 * reported.len(),
            false => run && !fails,
        };
        if reported.contains(&self.place.rank) || waits {
            return Ok(Left::Others);
        }
        let report = merged(&self.path, &ranks, &outside.run)?;
        let path = self.written(&report, write)?;
        let ended = ranks.iter().filter(|rank| rank.file.ended.is_some());
        let names: Vec<String> = ended.clone().map(|rank| rank.file.rank.to_string()).collect();
        replace(&self.path, REPORTED, names.join(" ").as_bytes())?;
        // (of another host's `topdown run` a lock may not be seen: it may yet come)
        let is_over =
            |rank: &FoundRank| rank.file.ended.is_some() || (!rank.runs && rank.file.host == self.file.host);
        let complete = ranks.len() == self.place.size as usize && others.clone().all(is_over);
        if complete {
            // (of a file that another host has open a network file system keeps something)
            let _ = fs::remove_dir_all(&self.path);
        }
        Ok(Left::Report(JobReport {
            path,
            ranks: names.len(),
            size: self.place.size,
            complete,
            rest: self.path,
        }))
    }

    /// Writes the report where all ranks have it, unless another command has written that file meanwhile.
    fn written(
        &self,
        report: &Report,
        write: impl FnOnce(&Report, &Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let (state, output) = claim_of(&self.path)?;
        let claim = Claim::since(&output, &state).unwrap_or_else(|| Claim::of(&output));
        let place = claim.place();
        write(report, &place)?;
        let now = Claim::state_now(&place);
        replace(&self.path, CLAIM, &claim_text(&now, &place))?;
        Ok(place)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a directory is one of a job.
pub fn is_job(directory: &Path) -> bool {
    directory.is_dir() && read(directory).is_ok_and(|ranks| !ranks.is_empty())
}

/// The report of what is in a job's directory.
///
/// # Errors
/// It cannot be read; the text names the file.
pub fn report_of(directory: &Path) -> io::Result<Report> {
    merged(directory, &read(directory)?, &crate::model::Run::default())
}

/// A rank that has begun.
struct FoundRank {
    file: RankFile,
    tables: Vec<TablePlace>,
    /// Its `topdown run` lives.
    runs: bool,
}

/// The ranks in a directory, in their order.
fn read(directory: &Path) -> io::Result<Vec<FoundRank>> {
    let lives = Lives::open_to_see(directory)?;
    let (mut said, mut tables) = (BTreeMap::new(), BTreeMap::<u32, Vec<TablePlace>>::new());
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        for part in HostFile::read(&path)? {
            match part {
                Part::Said(file) => drop(said.insert(file.rank, *file)),
                Part::Table(rank, table) => tables.entry(rank).or_default().push(table),
            }
        }
    }
    let found = said.into_iter().map(|(rank, file)| {
        let (tables, runs) = match &file.ended {
            Some(_) => (tables.remove(&rank).unwrap_or_default(), false),
            // (where they were made, if that is this machine)
            None => (tables_in(&file.tables), lives.runs(rank)),
        };
        FoundRank { file, tables, runs }
    });
    Ok(found.collect())
}

fn tables_in(directory: &Path) -> Vec<TablePlace> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let own = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == TABLE) && topdown_table::run::has_begun(path)
    };
    paths.filter(own).map(|path| TablePlace::from(&path)).collect()
}

/// `like`: a run of the same command, whose means are those of the report.
fn merged(directory: &Path, ranks: &[FoundRank], like: &crate::model::Run) -> io::Result<Report> {
    let mut parts = Vec::new();
    for FoundRank { file, tables, runs } in ranks {
        let outside = match &file.ended {
            Some(ended) => Some(ended.outside(file).ok_or_else(|| {
                let (directory, rank) = (directory.display(), file.rank);
                io::Error::new(ErrorKind::InvalidData, format!("{directory}: sums of rank {rank} are none"))
            })?),
            None => None,
        };
        let end = match (&file.ended, runs) {
            (Some(ended), _) => match (ended.signal, ended.status) {
                (Some(signal), _) => RankEnd::Signal(signal),
                (None, Some(status)) => RankEnd::Status(status),
                (None, None) => RankEnd::Exited,
            },
            (None, true) => RankEnd::Runs,
            (None, false) => RankEnd::Lost,
        };
        parts.push(crate::RankPart {
            rank: file.rank,
            host: file.host.clone(),
            command: file.command.clone(),
            end,
            tables: tables.clone(),
            outside,
            trouble: file.ended.as_ref().map_or_else(String::new, |ended| ended.trouble.clone()),
        });
    }
    let size = ranks.iter().map(|rank| rank.file.size).max().unwrap_or(0);
    crate::merge_ranks(size, parts, &like.means)
}

/// A rank's beginning in a directory; None: it has begun there before, or the directory is gone, as its job has ended.
fn begun_in(path: &Path, rank: u32, (output, was): (&Path, Option<&str>)) -> Result<Option<Lives>, String> {
    let told = |what: &str, error: io::Error| match error.kind() {
        ErrorKind::NotFound => Ok(None),
        _ => Err(format!("{}: {what}{error}", path.display())),
    };
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) => return told("", error),
    };
    if !about.is_dir() || !is_own(&about, 0o077) {
        return Err(format!("{} is not this user's alone", path.display()));
    }
    let lives = match Lives::open(path) {
        Ok(lives) => lives,
        Err(error) => return told("", error),
    };
    match lives.begin(rank) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return told("no locks: ", error),
    }
    match keep_claim(path, rank, (output, was)) {
        Ok(()) => Ok(Some(lives)),
        Err(error) => told("", error),
    }
}

/// Numbers of the job's directories that are there, in their order.
fn numbers(pattern: &Path, place: &JobPlace) -> Vec<u32> {
    let first = name_of(pattern, place, 1);
    let directory = first.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let first = first.file_name().unwrap_or_default().as_encoded_bytes();
    let number = |name: OsString| {
        let rest = name.as_encoded_bytes().strip_prefix(first)?;
        match rest {
            [] => Some(1),
            [b'-', digits @ ..] => {
                std::str::from_utf8(digits).ok()?.parse().ok().filter(|number| *number > 1)
            }
            _ => None,
        }
    };
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut found: Vec<u32> = entries.filter_map(|entry| number(entry.ok()?.file_name())).collect();
    found.sort_unstable();
    found
}

fn name_of(pattern: &Path, place: &JobPlace, number: u32) -> PathBuf {
    let mut name = pattern.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".ranks-{}", place.job));
    if number > 1 {
        name.push(format!("-{number}"));
    }
    pattern.with_file_name(name)
}

/// Of all ranks the first says what the report's file was, and its name.
fn keep_claim(directory: &Path, rank: u32, (output, was): (&Path, Option<&str>)) -> io::Result<()> {
    let claim = directory.join(CLAIM);
    if claim.exists() {
        return Ok(());
    }
    let own = directory.join(format!("{CLAIM}.{rank}"));
    private(OpenOptions::new().write(true).create(true).truncate(true))
        .open(&own)?
        .write_all(&claim_text(&was.map_or_else(|| Claim::state_now(output), String::from), output))?;
    let linked = fs::hard_link(&own, &claim);
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn claim_text(state: &str, output: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = format!("{state}\n").into_bytes();
    text.extend(output.as_os_str().as_bytes());
    text
}

fn claim_of(directory: &Path) -> io::Result<(String, PathBuf)> {
    use std::os::unix::ffi::OsStringExt;
    let text = fs::read(directory.join(CLAIM))?;
    let end = text.iter().position(|byte| *byte == b'\n').ok_or(ErrorKind::InvalidData)?;
    let state = String::from_utf8_lossy(&text[..end]).into_owned();
    Ok((state, OsString::from_vec(text[end + 1..].to_vec()).into()))
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// A file that is there as a whole or not.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let part = directory.join(format!("{name}.{}.part", std::process::id()));
    private(OpenOptions::new().write(true).create(true).truncate(true)).open(&part)?.write_all(bytes)?;
    fs::rename(part, directory.join(name))
}
