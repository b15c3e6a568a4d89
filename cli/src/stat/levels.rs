//! Which level can be counted here: found out before anything runs.
#![forbid(unsafe_code)]

use super::cpus::cpus_of;
use super::drill::P_CORES;
use std::collections::BTreeSet;
use topdown::{Error, Options, SourceKind, TD_NODE_NONE, TopDown, TurnPart, deep_tree, subtrees_of_level};

/// What is to be counted, and by what.
pub struct LevelTrial<'a> {
    /// CPUs, if these alone are counted.
    pub cpus: Option<&'a BTreeSet<u32>>,
    pub kernel: bool,
    /// What may count a level that one group holds; parts of levels have general-purpose counters.
    pub source: SourceKind,
}

/// The level that is counted where another one was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct ReachedLevel {
    pub level: u32,
    /// Why the next one is not; empty: it is the one that was asked for.
    pub why_no_deeper: String,
}

impl LevelTrial<'_> {
    /// The deepest level down to this one that can be counted. (Where nothing can, that one: who opens it says why.)
    pub fn reached(&self, asked: u32) -> ReachedLevel {
        deepest(asked, |level| self.counts(level))
    }

    /// Whether this level can be counted, or why not.
    fn counts(&self, level: u32) -> Result<(), String> {
        let part = |subtree| TurnPart { subtree, group: 0 };
        let parts: Vec<TurnPart> = subtrees_of_level(level).into_iter().map(part).collect();
        if !parts.is_empty() {
            return self.any_counts(&parts);
        }
        if level > 2 {
            return self.any_counts(&self.deep_parts(level)?);
        }
        let whole = Options { level, source: self.source, kernel: self.kernel, ..Options::default() };
        TopDown::open(&whole).map(drop).map_err(|why| cause(&why))
    }

    /// What counts deeper levels down to this one.
    fn deep_parts(&self, level: u32) -> Result<Vec<TurnPart>, String> {
        let tree = deep_tree().ok_or("no deeper level is published for this CPU")?;
        only_p_cores(self.cpus)?;
        let groups = tree.groups_of(level, &[]).into_iter().filter(|group| group.level > 2);
        let parts: Vec<TurnPart> =
            groups.map(|group| TurnPart { subtree: TD_NODE_NONE, group: group.number }).collect();
        if parts.is_empty() {
            return Err(NO_ROOM.into());
        }
        Ok(parts)
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
                "levels 3 to 6 and companion figures are of this CPU's P-cores alone: `topdown stat -C {}` counts these",
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

fn deepest(asked: u32, counts: impl Fn(u32) -> Result<(), String>) -> ReachedLevel {
    let as_asked = ReachedLevel { level: asked, why_no_deeper: String::new() };
    let mut why_no_deeper = String::new();
    for level in (1..=asked).rev() {
        match counts(level) {
            Ok(()) => return ReachedLevel { level, why_no_deeper },
            Err(why) => why_no_deeper = why,
        }
    }
    as_asked
}

impl ReachedLevel {
    /// That it is another one than was asked for; None: it is that one.
    pub fn remark(&self, asked: u32) -> Option<String> {
        let ReachedLevel { level, why_no_deeper } = self;
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

    fn reached(asked: u32, most: u32) -> ReachedLevel {
        deepest(asked, |level| if level <= most { Ok(()) } else { Err(format!("no {level}")) })
    }

    #[test]
    fn the_deepest_level_is_counted_and_the_reason_is_that_of_the_next_one() {
        assert_eq!(reached(2, 2), ReachedLevel { level: 2, why_no_deeper: String::new() });
        assert_eq!(reached(2, 2).remark(2), None);
        let less = reached(6, 1);
        assert_eq!(less, ReachedLevel { level: 1, why_no_deeper: "no 2".into() });
        assert!(
            less.remark(6)
                .is_some_and(|remark| remark.contains("level 1 is counted") && remark.ends_with("no 2"))
        );
    }

    #[test]
    fn where_nothing_counts_it_is_left_to_who_opens_it() {
        assert_eq!(reached(3, 0), ReachedLevel { level: 3, why_no_deeper: String::new() });
        assert_eq!(reached(3, 0).remark(3), None);
    }
}
