//! What the rows show: what was counted in the last interval, of all and of each part.
#![forbid(unsafe_code)]

use crate::stat::TAKE_CGROUPS;
use crate::stat::cgroups::{CgroupCounts, CgroupSums};
use crate::stat::counted::CountedGroups;
use crate::stat::figures::by_pmu;
use crate::stat::group::{GroupCount, GroupTarget, Reading};
use crate::stat::groups::{Groups, RecordsUpTo};
use crate::stat::intervals::{interval, name, parts, series_of};
use crate::stat::target::StatTarget;
use std::time::{Duration, Instant};
use topdown::LEVEL_1;
use topdown_report::SIMULATED;
use topdown_report::timeline::{SeriesSubject, TimelineInterval};

/// How often it is seen which CPUs are online.
const LOOK: Duration = Duration::from_secs(1);

/// What rows below the first are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Slots,
    Wasted,
    Name,
}

impl Order {
    pub fn next(self) -> Order {
        match self {
            Order::Slots => Order::Wasted,
            Order::Wasted => Order::Name,
            Order::Name => Order::Slots,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Order::Slots => "slots",
            Order::Wasted => "wasted slots",
            Order::Name => "name",
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct TopRow {
    pub of: SeriesSubject,
    pub counted: TimelineInterval,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
}

impl TopRow {
    /// Shares of the four categories; None: nothing was counted.
    pub fn shares(&self) -> Option<[f64; 4]> {
        let nodes = &self.counted.nodes;
        let share =
            |k: usize| nodes.iter().find(|node| *node.kind.metric == LEVEL_1[k]).map(|node| node.share.value);
        let shares: Option<Vec<f64>> = (0..4).map(share).collect();
        shares?.try_into().ok()
    }

    /// Nanoseconds from end to end.
    pub fn length(&self) -> f64 {
        (self.counted.end_ns - self.counted.begin_ns).max(1) as f64
    }

    fn wasted(&self) -> u64 {
        (self.counted.slots as f64 * (1.0 - self.shares().map_or(1.0, |shares| shares[0]))) as u64
    }
}

/// Groups, with their last reading but one and what was counted since.
pub struct TopGroups {
    groups: CountedGroups,
    /// What is counted may end meanwhile.
    at_work: bool,
    names: Vec<String>,
    last: (Duration, Vec<Reading>),
    looked: Duration,
    rows: Vec<TopRow>,
    /// If cgroups are shown: what is counted of them, and what was before the last interval.
    cgroups: Option<(CgroupCounts, CgroupSums)>,
}

impl TopGroups {
    pub fn new(groups: Groups, at_work: bool) -> TopGroups {
        let groups = CountedGroups::from(groups);
        let names = groups.all.iter().map(name).collect();
        let last = (Duration::ZERO, groups.last());
        TopGroups { groups, at_work, names, last, looked: Duration::ZERO, rows: Vec::new(), cgroups: None }
    }

    /// Shows cgroups, not CPUs.
    pub fn show(&mut self, cgroups: CgroupCounts) {
        self.cgroups = Some((cgroups, CgroupSums::default()));
    }

    /// When records are to be taken, at the latest, or the next interval is over.
    pub fn due(&self, next: Instant) -> Instant {
        self.cgroups.as_ref().map_or(next, |_| next.min(Instant::now() + TAKE_CGROUPS))
    }

    /// Takes up what the kernel says of cgroups.
    pub fn take_records(&mut self, up_to: RecordsUpTo) {
        if let Some((cgroups, _)) = &mut self.cgroups {
            let records = self.groups.records(up_to);
            cgroups.take(records, |group| self.groups.all[group].info.pmu.clone());
        }
    }

    /// Behind the title: that rows are too small.
    pub fn losses(&self) -> String {
        match self.cgroups.as_ref().map_or(0, |(cgroups, _)| cgroups.lost()) {
            0 => String::new(),
            lost => format!(" ({lost} records lost: rows are too small)"),
        }
    }

    /// With what it is counted.
    pub fn machine(&self) -> String {
        let mut names: Vec<String> =
            self.groups.all.iter().map(|group| format!("{} ({})", group.info.cpu, group.info.core)).collect();
        names.dedup();
        names.truncate(2);
        let names = names.join("; ");
        // (first: what does not fit is cut off at the end)
        if self.groups.are_simulated() { format!("{SIMULATED}; {names}") } else { names }
    }

    /// Takes a reading, this time after the start; what cannot be read is in the next.
    pub fn read(&mut self, at: Duration, whom: Option<&StatTarget>) {
        self.take_records(RecordsUpTo::Now);
        let Ok(now) = self.groups.peek(self.at_work) else { return };
        let (since, before) = std::mem::replace(&mut self.last, (at, now));
        let now = &self.last.1;
        let row = |of: SeriesSubject, chosen: &dyn Fn(&GroupTarget) -> bool| {
            let counted: Vec<GroupCount> =
                self.groups.between(&before, now).filter(|one| chosen(&one.group.of)).collect();
            let kinds = by_pmu(&counted).ok()?;
            let mut ipcs =
                kinds.iter().filter(|(_, figures)| figures.sum.slots > 0).map(|(_, figures)| figures.ipc);
            let first = ipcs.next().flatten();
            let ipc = first.and_then(|first| ipcs.try_fold(first, |all, more| Some(all.plus(&more?))));
            let counted = interval(&counted, None, 0, (since, at))?;
            Some(TopRow { of, counted, ipc: ipc.and_then(|ipc| ipc.ipc()) })
        };
        let mut rows: Vec<TopRow> = row(SeriesSubject::Whole, &|_| true).into_iter().collect();
        if let Some((cgroups, sums)) = &mut self.cgroups {
            let counted: Vec<GroupCount> = self.groups.between(&before, now).collect();
            for one in cgroups.rows(&counted, sums).into_iter().flatten() {
                let counted = interval(&one.counted, None, 0, (since, at));
                let row = |(of, counted)| TopRow { of, counted, ipc: None };
                rows.extend(one.series().zip(counted).map(row));
            }
            *sums = cgroups.so_far();
        } else {
            let parts = parts(&self.groups);
            for part in parts.iter().filter(|_| parts.len() > 1) {
                rows.extend(row(series_of(&self.groups, part, &self.names), &|of| of == *part));
            }
        }
        self.rows = rows;
        if at >= self.looked + LOOK {
            self.looked = at;
            let looked_at = Instant::now();
            if let Some(online) = whom.and_then(StatTarget::online) {
                self.groups.follow(&online, looked_at, None);
            }
        }
    }

    /// The whole first.
    pub fn rows(&mut self, order: Order) -> &[TopRow] {
        if let Some((_, parts)) = self.rows.split_first_mut() {
            match order {
                Order::Slots => parts.sort_by_key(|row| std::cmp::Reverse(row.counted.slots)),
                Order::Wasted => parts.sort_by_key(|row| std::cmp::Reverse(row.wasted())),
                Order::Name => parts.sort_by_key(|row| match row.of {
                    SeriesSubject::Cpu { cpu } => (u64::from(cpu), String::new()),
                    _ => (0, row.of.title()),
                }),
            }
        }
        &self.rows
    }
}
