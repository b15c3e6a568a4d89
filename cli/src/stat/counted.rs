//! What a count is of: groups that are read together, or groups that take turns, which are to the reader as one.
#![forbid(unsafe_code)]

use super::drill::TurnPlan;
use super::group::{GroupCount, GroupTarget, Reading, StatGroup};
use super::groups::Groups;
use super::ipc::IpcPmu;
use super::rotation::{FIRST, GroupsInTurns};
use super::rows_per::RowsPer;
use super::target::StatTarget;
use super::watch::NextTick;
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use topdown::{Error, Options};

/// Groups that are read together; none, if there are some that take turns.
#[derive(Default)]
pub struct CountedGroups {
    together: Groups,
    rotation: Option<GroupsInTurns>,
}

impl From<Groups> for CountedGroups {
    fn from(together: Groups) -> CountedGroups {
        CountedGroups { together, rotation: None }
    }
}

impl Deref for CountedGroups {
    type Target = Groups;

    fn deref(&self) -> &Groups {
        &self.together
    }
}

impl DerefMut for CountedGroups {
    fn deref_mut(&mut self) -> &mut Groups {
        &mut self.together
    }
}

impl CountedGroups {
    /// On a process from its exec on, with all that it starts, and instructions and cycles on these PMUs; or of a level in parts below
    /// these nodes, which take turns.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of_command(
        pid: i32,
        options: &Options,
        kinds: &[IpcPmu],
        turns: &TurnPlan,
    ) -> Result<CountedGroups, Error> {
        match turns.parts[..] {
            [] => Groups::of_command(pid, options, kinds).map(CountedGroups::from),
            _ => GroupsInTurns::of_command(pid, options, turns)
                .map(|rotation| CountedGroups::in_turns(options, rotation)),
        }
    }

    /// The same on others.
    ///
    /// # Errors
    /// Those of `td_open`.
    pub fn of(
        whom: &StatTarget,
        options: &Options,
        kinds: &[IpcPmu],
        turns: &TurnPlan,
    ) -> Result<CountedGroups, Error> {
        match turns.parts[..] {
            [] => whom.open(options, kinds).map(CountedGroups::from),
            _ => GroupsInTurns::of(whom, options, turns)
                .map(|rotation| CountedGroups::in_turns(options, rotation)),
        }
    }

    fn in_turns(options: &Options, rotation: GroupsInTurns) -> CountedGroups {
        CountedGroups { together: Groups::new(options, &[]), rotation: Some(rotation) }
    }

    /// If they take turns: how.
    pub fn rotation(&self) -> Option<&GroupsInTurns> {
        self.rotation.as_ref()
    }

    /// Each group, whether they take turns or not.
    pub fn each(&self) -> impl Iterator<Item = &StatGroup> {
        self.together.all.iter().chain(self.rotation.iter().flat_map(GroupsInTurns::groups))
    }

    /// Whether CPUs are counted.
    pub fn counts_cpus(&self) -> bool {
        self.each().any(|group| matches!(group.of, GroupTarget::Cpu(_)))
    }

    /// Begins the next turn, if it is time. When to do so again: with each interval that is wanted otherwise, or before.
    pub fn turn(&mut self, at: Duration, interval: Option<Duration>) -> Option<NextTick> {
        let next = interval.map(NextTick::Multiple);
        let Some(rotation) = &mut self.rotation else { return next };
        let turn = at + rotation.turn();
        Some(NextTick::At(next.map_or(turn, |next| next.after(at).min(turn))))
    }

    /// The same, of the first time.
    pub fn first_turn(&self, interval: Option<Duration>) -> Option<Duration> {
        interval.into_iter().chain(self.rotation.as_ref().map(|_| FIRST)).min()
    }

    /// What was counted last of each group: where the next row or report begins.
    pub fn last(&self) -> Vec<Reading> {
        match &self.rotation {
            Some(rotation) => vec![rotation.last().clone()],
            None => self.together.last(),
        }
    }

    /// What each group shows now; rows and reports go on from where they were.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn peek(&mut self, at_work: bool) -> Result<Vec<Reading>, Error> {
        match &mut self.rotation {
            Some(rotation) => Ok(vec![rotation.read(at_work)]),
            None => self.together.readings(at_work).into_iter().collect(),
        }
    }

    /// What each group counted from one of its readings to another. A group that was opened in between begins
    /// where it was opened.
    pub fn between<'g>(
        &'g self,
        from: &'g [Reading],
        to: &'g [Reading],
    ) -> impl Iterator<Item = GroupCount<'g>> {
        let stands_for_all = self.rotation().and_then(GroupsInTurns::group);
        self.together.all.iter().chain(stands_for_all).zip(to).enumerate().map(|(k, (group, to))| {
            let from = from.get(k).unwrap_or(&group.opened).clone();
            GroupCount { group, since: Duration::ZERO, from, to: to.clone() }
        })
    }

    /// What each has counted since the last time, `at` this time from the start; what cannot be read now is in the next reading, with
    /// all of its label. `at_work`: what is counted may be ending meanwhile.
    pub fn count(&mut self, at_work: bool, at: Duration) -> Vec<Result<GroupCount<'_>, Error>> {
        match &mut self.rotation {
            Some(rotation) => rotation.count(at_work, at).map(Ok).into_iter().collect(),
            None => self.together.count(at_work, at),
        }
    }

    /// Opens groups on those of these CPUs that came online ([`Groups::follow`]).
    pub fn follow(
        &mut self,
        online: &BTreeSet<u32>,
        looked_at: Instant,
        by: Option<RowsPer>,
    ) -> Vec<(u32, Error)> {
        match &mut self.rotation {
            Some(rotation) => rotation.follow(online, looked_at),
            None => self.together.follow(online, looked_at, by),
        }
    }
}
