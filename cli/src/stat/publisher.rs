//! Puts what was counted so far where requests for metrics find it.
#![forbid(unsafe_code)]

use super::cgroups::{CgroupCounts, CgroupSums};
use super::counted::CountedGroups;
use super::figures::by_pmu;
use super::group::{GroupCount, Reading};
use super::intervals::{interval, name, parts, series_of};
use crate::metrics::{CountedTotals, TotalsCell};
use std::time::Duration;
use topdown_report::timeline::SeriesSubject;

/// How long from one publication to the next.
pub const PACE: Duration = Duration::from_secs(1);

/// How many cgroups are published, the largest: a scraper keeps a series for each set of labels, for days.
const MOST_CGROUPS: usize = 1000;

/// What is published, and where.
pub struct Publisher {
    to: TotalsCell,
    start: Vec<Reading>,
    names: Vec<String>,
    due: Duration,
}

impl Publisher {
    /// Of what is counted from the groups' last count on.
    pub fn new(groups: &CountedGroups, to: TotalsCell) -> Publisher {
        let names = groups.all.iter().map(name).collect();
        Publisher { to, start: groups.last(), names, due: Duration::ZERO }
    }

    /// Publishes, if it is time.
    pub fn tick(
        &mut self,
        groups: &mut CountedGroups,
        cgroups: Option<&mut CgroupCounts>,
        at: Duration,
        at_work: bool,
    ) {
        if at < self.due {
            return;
        }
        self.due = at + PACE * 3 / 4; // (a tick may come a little early after one that was late)
        let enabled_ns = groups.enabled_ns();
        let Ok(now) = groups.peek(at_work) else { return };
        let all: Vec<GroupCount> = groups.between(&self.start, &now).collect();
        let Some(whole) = interval(&all, enabled_ns, groups.room_ns(), (Duration::ZERO, at)) else { return };
        let mut series = vec![(SeriesSubject::Whole, whole)];
        let parts = parts(groups);
        for part in parts.iter().filter(|_| parts.len() > 1) {
            let own = groups.between(&self.start, &now).filter(|one| one.group.of == **part);
            let own = interval(&own.collect::<Vec<_>>(), None, 0, (Duration::ZERO, at));
            series.extend(own.map(|own| (series_of(groups, part, &self.names), own)));
        }
        let cgroups = cgroups.and_then(|cgroups| cgroups.rows(&all, &CgroupSums::default()).ok());
        for one in cgroups.into_iter().flatten().take(MOST_CGROUPS) {
            let counted = interval(&one.counted, None, 0, (Duration::ZERO, at));
            series.extend(one.series().zip(counted));
        }
        let ipc = by_pmu(&all).ok().and_then(|kinds| {
            let mut kinds = kinds.iter().map(|(_, figures)| figures.ipc);
            let first = kinds.next()??;
            kinds.try_fold(first, |all, more| Some(all.plus(&more?)))
        });
        let simulated = groups.are_simulated();
        self.to.set(CountedTotals { simulated, series, ipc: ipc.map(|ipc| (ipc.instructions, ipc.cycles)) });
    }
}
