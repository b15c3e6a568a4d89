//! Which level can be counted here: found out before anything runs.
#![forbid(unsafe_code)]

use super::cpus::{P_CORES, cpus_of};
use std::collections::BTreeSet;
use topdown::{Error, Options, SourceKind, TD_NODE_NONE, TopDown, TurnPart, deep_tree, subtrees_of_level};

pub use topdown::DEEPEST_PUBLISHED as DEEPEST;

/// What is to be counted, and by what.
pub struct LevelTrial<'a> {
    /// CPUs, if these alone are counted.
    pub cpus: Option<&'a BTreeSet<u32>>,
    pub kernel: bool,
    /// What may count a level that one group holds; parts of levels have general-purpose counters.
    pub source: SourceKind,
}

/// The level that is counted where one was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct ReachedLevel {
    /// Down to here it is counted.
    pub level: u32,
    /// The deepest level that the groups tell, of a tree that has no deeper one.
    pub told: u32,
    /// Why the next one is not counted; empty: it is the one that was asked for.
    pub why_no_deeper: String,
}

impl LevelTrial<'_> {
    /// The deepest level down to this one that can be counted.
    ///
    /// # Errors
    /// None can be, and why.
    pub fn reached(&self, asked: u32) -> Result<ReachedLevel, String> {
        deepest(asked, |level| self.counts(level))
    }

    /// Whether levels below 2 can be counted, and down to which they go.
    ///
    /// # Errors
    /// They cannot be, and why.
    pub fn deep(&self) -> Result<u32, String> {
        let (parts, told) = self.deep_parts(DEEPEST)?;
        self.any_counts(&parts).map(|()| told)
    }

    /// Which level the groups tell that count this one, or why none do.
    fn counts(&self, level: u32) -> Result<u32, String> {
        let part = |subtree| TurnPart { subtree, group: 0 };
        let parts: Vec<TurnPart> = subtrees_of_level(level).into_iter().map(part).collect();
        let (parts, told) = match &parts[..] {
            [] if level > 2 => self.deep_parts(level)?,
            _ => (parts, level),
        };
        if !parts.is_empty() {
            return self.any_counts(&parts).map(|()| told);
        }
        let whole = Options { level, source: self.source, kernel: self.kernel, ..Options::default() };
        TopDown::open(&whole).map(|_| level).map_err(|why| cause(&why))
    }

    /// What counts deeper levels down to this one, and which it tells.
    fn deep_parts(&self, level: u32) -> Result<(Vec<TurnPart>, u32), String> {
        let tree = deep_tree().ok_or("no deeper level is published for this CPU")?;
        only_p_cores(self.cpus)?;
        let groups = tree.groups_of(level, &[]).into_iter().filter(|group| group.level > 2);
        let (mut parts, mut told) = (Vec::new(), 0);
        for group in groups {
            parts.push(TurnPart { subtree: TD_NODE_NONE, group: group.number });
            told = told.max(group.level);
        }
        if parts.is_empty() { Err(NO_ROOM.into()) } else { Ok((parts, told)) }
    }

    fn any_counts(&self, parts: &[TurnPart]) -> Result<(), String> {
        let all = Options { source: SourceKind::Counters, kernel: self.kernel, ..Options::default() };
        let mut refused = None::<Error>;
        for part in parts {
            match TopDown::open(&part.options(&all)) {
                Ok(_) => return Ok(()),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        // (of a level in parts it is the reason that they have in common)
        Err(refused.map_or_else(String::new, |why| match &*why.reason().why {
            "" => cause(&why),
            common => common.into(),
        }))
    }
}

/// Beside level 1 nothing of deeper levels can be counted.
pub const NO_ROOM: &str =
    "beside level 1 no node of levels 3 to 6 fits into the counters here (`topdown list --nodes`)";

/// Deeper levels are of a hybrid CPU's P-cores alone.
///
/// # Errors
/// Others are counted, too.
pub fn only_p_cores(cpus: Option<&BTreeSet<u32>>) -> Result<(), String> {
    match cpus_of(P_CORES) {
        Some(p_cores) if !cpus.is_some_and(|cpus| cpus.is_subset(&p_cores)) => {
            let p_cores: Vec<String> = p_cores.iter().map(u32::to_string).collect();
            Err(format!(
                "levels 3 to 6 and companion figures are of this CPU's P-cores alone: `topdown stat -C {}` counts these, by whoever may count CPUs",
                p_cores.join(",")
            ))
        }
        _ => Ok(()),
    }
}

/// What is not counted and why, without how to ask for less, which is done.
pub fn cause(why: &Error) -> String {
    let reason = why.reason();
    match &*reason.why {
        "" => reason.what.to_string(),
        why => format!("{}: {why}", reason.what),
    }
}

/// The deepest level down to this one of which `counts` tells which level is told then; or why not even the first is.
///
/// # Errors
/// That.
pub fn deepest(asked: u32, counts: impl Fn(u32) -> Result<u32, String>) -> Result<ReachedLevel, String> {
    let mut why_no_deeper = String::new();
    for level in (1..=asked).rev() {
        match counts(level) {
            Ok(told) => return Ok(ReachedLevel { level, told, why_no_deeper }),
            Err(why) => why_no_deeper = why,
        }
    }
    Err(why_no_deeper)
}

impl ReachedLevel {
    /// That it is another one than was asked for; None: it is that one.
    pub fn remark(&self, asked: u32) -> Option<String> {
        let ReachedLevel { level, why_no_deeper, .. } = self;
        (*level < asked).then(|| {
            format!(
                "--td-level {asked}: level {level} is counted, the deepest that can be here: {why_no_deeper}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(asked: u32, most: u32) -> Result<ReachedLevel, String> {
        deepest(asked, |level| if level <= most { Ok(level) } else { Err(format!("no {level}")) })
    }

    #[test]
    fn the_deepest_level_is_counted_and_the_reason_is_that_of_the_next_one() {
        let as_asked = reached(2, 2).unwrap();
        assert_eq!(as_asked, ReachedLevel { level: 2, told: 2, why_no_deeper: String::new() });
        assert_eq!(as_asked.remark(2), None);
        let less = reached(6, 1).unwrap();
        assert_eq!(less, ReachedLevel { level: 1, told: 1, why_no_deeper: "no 2".into() });
        assert!(
            less.remark(6).is_some_and(|said| said.contains("level 1 is counted") && said.ends_with("no 2"))
        );
    }

    #[test]
    fn where_nothing_counts_the_reason_is_that_of_level_1() {
        assert_eq!(reached(3, 0), Err("no 1".into()));
    }
}
