//! Rows of what is counted: of intervals, of threads or processes, or one of all.
#![forbid(unsafe_code)]

use super::StatCount;
use super::arguments::Show;
use super::columns::columns;
use super::counted::CountedGroups;
use super::figures::{StatFigures, apart, by_pmu};
use super::group::{GroupCount, StatGroup};
use super::groups::RecordsUpTo;
use super::outside::{Loss, OutsideGroups};
use super::rows_per::RowsPer;
use super::table::{StatRow, StatTable, Style};
use super::tasks::ALL;
use crate::say;
use std::io::ErrorKind;
use std::time::Duration;
use topdown_report::UNCOUNTED;

impl StatCount<'_> {
    /// Rows of what was counted since the last; `loss`: of a command that has ended.
    pub(super) fn rows(
        &mut self,
        groups: &mut CountedGroups,
        at: Duration,
        at_work: bool,
        loss: Option<Loss>,
    ) {
        let rows = match self.cgroups {
            Some(_) => self.cgroup_rows(groups, at, at_work),
            None => self.read(groups, at, at_work, loss),
        };
        self.write(&rows);
    }

    /// Rows of cgroups.
    fn cgroup_rows(&mut self, groups: &mut CountedGroups, at: Duration, at_work: bool) -> Vec<StatRow> {
        self.take_records(groups, RecordsUpTo::Now);
        let columns = &self.columns.get_or_insert_with(|| columns(self.arguments, groups)).clone();
        let is_text = self.show == Show::Rows(Style::Text);
        let Some(cgroups) = &mut self.cgroups else { return Vec::new() };
        let counted: Result<Vec<_>, _> = groups.count(at_work, at).into_iter().collect();
        let row = |counted: &[GroupCount], of: &str, has_time: bool, wall_s: f64| {
            let kinds = by_pmu(counted)?;
            let rows = kinds.iter().filter(|(_, figures)| figures.sum.slots > 0).map(|(group, figures)| {
                let row = StatRow::new(columns, figures, wall_s);
                StatRow {
                    time: at.as_nanos() as f64 / 1e9,
                    of: of.into(),
                    pmu: group.info.pmu.clone(),
                    core: format!("{}, level {}", group.info.core, group.info.level),
                    cpus: row.cpus.filter(|_| has_time),
                    ..row
                }
            });
            Ok(rows.collect::<Vec<_>>())
        };
        let rows = counted.and_then(|counted| {
            let since = counted.iter().map(|one| one.since).min().unwrap_or_default();
            let wall_s = at.saturating_sub(since).as_secs_f64();
            let mut rows = Vec::new();
            for one in cgroups.rows(&counted, &self.cgroups_before)? {
                let of = one.path.as_ref().filter(|_| !is_text).unwrap_or(&one.name);
                // (idle time is the root cgroup's)
                let has_time = one.path.as_ref().is_some_and(|path| path != "/");
                rows.extend(row(&one.counted, of, has_time, wall_s)?);
            }
            rows.extend(row(&counted, ALL, false, wall_s)?);
            Ok(rows)
        });
        self.cgroups_before = cgroups.so_far();
        rows.unwrap_or_else(|why: topdown::Error| {
            say(&format!("rows are missing: {why}"));
            Vec::new()
        })
    }

    /// Rows of a command's threads or processes.
    pub(super) fn task_rows(
        &mut self,
        groups: &mut OutsideGroups,
        by: RowsPer,
        (at, at_work): (Duration, bool),
        loss: Loss,
    ) {
        groups.take_records(RecordsUpTo::Now);
        let Some(tasks) = &groups.tasks else {
            return self.rows(&mut groups.groups, at, at_work, Some(loss));
        };
        let columns = self.columns.get_or_insert_with(|| columns(self.arguments, &groups.groups)).clone();
        let enabled_ns = groups.groups.enabled_ns();
        let counted: Result<Vec<_>, _> = groups.groups.count(at_work, at).into_iter().collect();
        let rows = counted.as_ref().map_err(Clone::clone).and_then(|counted| {
            let enabled_ns = enabled_ns.or(counted.iter().map(GroupCount::enabled_ns).max()).unwrap_or(0);
            let lost_ns = loss.of(enabled_ns);
            let mut all = tasks.figures(counted, enabled_ns, by)?;
            // (it is of no thread that was counted)
            let last = all.last_mut().into_iter().flat_map(|all| &mut all.kinds);
            last.for_each(|(_, figures)| figures.sum.time_enabled_ns += lost_ns);
            let row = |name: &str, (group, figures): &(&StatGroup, StatFigures)| StatRow {
                of: name.into(),
                pmu: group.info.pmu.clone(),
                core: format!("{}, level {}", group.info.core, group.info.level),
                ..StatRow::new(&columns, figures, at.as_secs_f64())
            };
            let rows = all.iter().flat_map(|one| {
                let title = one.title();
                one.kinds.iter().map(move |kind| row(&title, kind))
            });
            Ok(rows.collect::<Vec<_>>())
        });
        match rows {
            Ok(rows) => {
                self.write(&rows);
                tasks.remarks().iter().for_each(|line| say(line));
            }
            Err(why) => {
                say(&format!("nothing is measured: {why}"));
                self.empty(&why.to_string());
            }
        }
    }

    /// The same, to be written.
    pub(super) fn read(
        &mut self,
        groups: &mut CountedGroups,
        at: Duration,
        at_work: bool,
        loss: Option<Loss>,
    ) -> Vec<StatRow> {
        let columns = self.columns.get_or_insert_with(|| columns(self.arguments, groups)).clone();
        let room_ns = groups.room_ns();
        let (counted, failed): (Vec<_>, Vec<_>) =
            groups.count(at_work, at).into_iter().partition(Result::is_ok);
        if let (Some(Err(why)), false) = (failed.first(), self.unread) {
            self.unread = true;
            say(&format!("a row is missing, and its figures are in the next, if there is one: {why}"));
        }
        let counted: Vec<_> = counted.into_iter().flatten().collect();
        let enabled = counted.iter().map(GroupCount::enabled_ns).max();
        let mut lost_ns = loss.zip(enabled).map_or(0, |(loss, enabled)| loss.of(enabled));
        if self.arguments.interval().is_some() {
            let before = std::mem::replace(&mut self.room_ns, room_ns);
            let ran = counted.iter().map(GroupCount::enabled_since_ns).max().unwrap_or(0);
            let lost_here = (room_ns - before).saturating_sub(ran);
            let all_lost = std::mem::replace(&mut lost_ns, lost_here);
            if all_lost > 0 {
                let lost_s = all_lost as f64 / 1e9;
                let seen = match room_ns {
                    0 => "",
                    _ => {
                        "; in the bounds of rows from the first of these programs on is all that the CPUs may have done meanwhile"
                    }
                };
                say(&format!(
                    "{lost_s:.3} s of the command's CPU time were counted in no row: {UNCOUNTED}{seen}"
                ));
            }
        }
        let (mut rows, mut remark) = (Vec::new(), None);
        for label in labels(&counted) {
            let these = || counted.iter().filter(|one| one.group.label == label);
            let since = these().map(|one| one.since).min().unwrap_or_default();
            let wall_s = at.saturating_sub(since).as_secs_f64();
            let Ok(mut kinds) = by_pmu(these()) else { continue };
            apart(&mut kinds);
            // (it may have been on any kind of core)
            kinds.iter_mut().for_each(|(_, figures)| figures.sum.time_enabled_ns += lost_ns);
            remark = remark.or(kinds.iter().find_map(|(_, figures)| figures.stretches.as_ref()?.remark()));
            rows.extend(kinds.iter().map(|(group, figures)| StatRow {
                time: at.as_nanos() as f64 / 1e9,
                of: label.into(),
                pmu: group.info.pmu.clone(),
                core: format!("{}, level {}", group.info.core, group.info.level),
                ..StatRow::new(&columns, figures, wall_s)
            }));
        }
        if self.arguments.interval().is_some() && lost_ns > 0 {
            rows.iter_mut().for_each(|row| row.cpus = None); // (of the lost ones it is known how many they may have used alone)
        }
        if let Some(remark) = remark.filter(|_| !std::mem::replace(&mut self.remarked, true)) {
            say(&remark);
        }
        rows
    }

    /// There are no rows: a file has their names alone, or as a text why there are none, and nothing of an earlier count.
    pub(super) fn empty(&mut self, why: &str) {
        if self.arguments.output.is_none() {
            return;
        }
        self.columns.get_or_insert_with(|| columns(self.arguments, &CountedGroups::default()));
        self.begin();
        if let Some(Err(error)) = self.table.as_mut().map(|table| table.nothing(why)) {
            say(&format!("no report: {error}"));
        }
    }

    /// Opens where rows go.
    pub(super) fn begin(&mut self) {
        let (Show::Rows(style), Some(columns)) = (&self.show, &self.columns) else { return };
        if self.table.is_none() && !self.broken {
            match StatTable::new(style.clone(), columns.clone(), self.arguments.output.as_deref()) {
                Ok(table) => self.table = Some(table),
                Err(error) => {
                    self.broken = true;
                    say(&format!("no report: {error}"));
                }
            }
        }
    }

    pub(super) fn write(&mut self, rows: &[StatRow]) {
        self.begin();
        let Some(table) = self.table.as_mut().filter(|_| !self.broken) else { return };
        if let Err(error) = rows.iter().try_for_each(|row| table.write(row)) {
            self.broken = true;
            // (who closes the pipe has read enough)
            if error.kind() != ErrorKind::BrokenPipe {
                say(&format!("no more rows: {error}"));
            }
        }
    }
}

/// What rows are of, each once. (Groups of CPUs that came online are the last of all)
fn labels<'c>(counted: &'c [GroupCount]) -> Vec<&'c str> {
    let mut labels: Vec<&str> = Vec::new();
    for one in counted {
        if !labels.contains(&one.group.label.as_str()) {
            labels.push(&one.group.label);
        }
    }
    labels
}
