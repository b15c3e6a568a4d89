//! Names of files that say which process, host or rank wrote them: `%p`, `%h`, `%r`, `%n`, `%t`, and `%%` for a per cent sign.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use topdown_table::RANKS;

/// What the patterns stand for.
#[derive(Clone, Debug, Default)]
pub struct PatternNames {
    /// `%p`: the id of the process.
    pub pid: u32,
    /// `%h`: the host.
    pub host: String,
    /// `%n`: the program, without directories.
    pub program: OsString,
    /// `%t`: the local time, as 20260131-123456.
    pub time: String,
    /// `%r`: the rank, if it is one of many ([`rank_among`]).
    pub rank: Option<OsString>,
}

/// The rank that a process's environment tells it.
pub fn rank_among(environment: impl Iterator<Item = (OsString, OsString)>) -> Option<OsString> {
    let place = |name: &OsStr| RANKS.iter().position(|known| name == *known);
    let ranks = environment.filter(|(_, rank)| !rank.is_empty());
    ranks.filter_map(|(name, rank)| Some((place(&name)?, rank))).min().map(|(_, rank)| rank)
}

/// The file of this name. Of other letters the sign is one of the name.
///
/// # Errors
/// A rank is asked for, and there is none; the text says so.
pub fn named(path: &Path, names: &PatternNames) -> io::Result<PathBuf> {
    let (mut out, mut rest) = (Vec::new(), path.as_os_str().as_bytes());
    let plain = |text: &OsStr| -> Vec<u8> {
        text.as_bytes().iter().map(|byte| if *byte == b'/' { b'_' } else { *byte }).collect()
    };
    while let Some((first, more)) = rest.split_first() {
        let (part, used) = match (first, more.first()) {
            (b'%', Some(b'%')) => (b"%".to_vec(), 2),
            (b'%', Some(b'p')) => (names.pid.to_string().into_bytes(), 2),
            (b'%', Some(b'h')) => (plain(OsStr::new(&names.host)), 2),
            (b'%', Some(b'n')) => (plain(Path::new(&names.program).file_name().unwrap_or_default()), 2),
            (b'%', Some(b't')) => (plain(OsStr::new(&names.time)), 2),
            (b'%', Some(b'r')) => match &names.rank {
                Some(rank) => (plain(rank), 2),
                None => {
                    return Err(io::Error::other(format!(
                        "-o {}: %r is the rank of a process, and none of {} tells it",
                        path.display(),
                        RANKS.join(", ")
                    )));
                }
            },
            (byte, _) => (vec![*byte], 1),
        };
        out.extend(part);
        rest = &rest[used..];
    }
    Ok(OsString::from_vec(out).into())
}

/// Whether a name has one of these patterns in it.
pub fn has_any(path: &Path, patterns: &[u8]) -> bool {
    let mut rest = path.as_os_str().as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        match rest.get(at + 1) {
            Some(next) if patterns.contains(next) => return true,
            _ => rest = &rest[(at + 2).min(rest.len())..],
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_is_what_it_stands_for() {
        let names = PatternNames {
            pid: 7,
            host: "node/1".into(),
            program: "./bin/solve".into(),
            time: "20260131-123456".into(),
            rank: None,
        };
        let named = |path: &str| named(Path::new(path), &names).map(|path| path.display().to_string());
        assert_eq!(named("r.%p.%h.%n.%t.json").unwrap(), "r.7.node_1.solve.20260131-123456.json");
        assert_eq!(named("100%%.%x%").unwrap(), "100%.%x%");
        assert!(named("%r.json").unwrap_err().to_string().contains("SLURM_PROCID"));
        assert!(has_any(Path::new("a.%t.%r.json"), b"rph") && !has_any(Path::new("%%r.%t.%"), b"rph"));
        let told = [("SLURM_PROCID", "3"), ("PMI_RANK", ""), ("PMIX_RANK", "2"), ("HOME", "1")];
        let rank = rank_among(told.map(|(name, rank)| (name.into(), rank.into())).into_iter());
        assert_eq!(rank, Some("2".into()));
        let ranked = PatternNames { rank, ..names.clone() };
        assert_eq!(super::named(Path::new("%r.json"), &ranked).unwrap(), Path::new("2.json"));
    }
}
