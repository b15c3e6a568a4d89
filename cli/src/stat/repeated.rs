//! A command that is counted again and again.
#![forbid(unsafe_code)]

use super::StatCount;
use super::ipc::Ipc;
use super::outside::OutsideGroups;
use super::spread::{mean, spread};
use super::table::StatRow;
use crate::outcome::Failure;
use crate::say;
use crate::sys::{self, End};
use std::collections::BTreeSet;
use topdown_report::CpuUse;

impl StatCount<'_> {
    /// Counts the command again and again: each run, then mean and spread.
    pub(super) fn repeatedly(&mut self) -> Result<End, Failure> {
        let options = self.arguments.options(&self.show);
        let kinds = Ipc::kinds(&options);
        let mut runs: Vec<Vec<StatRow>> = Vec::new();
        let mut number = 0;
        let mut cpu = CpuUse::default();
        let end = loop {
            number += 1;
            let turns = self.turns.clone();
            let watched = |pid| OutsideGroups::of_whole(pid, &options, &kinds, &turns);
            let (ran, groups) =
                self.run(watched, |_, groups, at| groups.as_mut().ok()?.groups.turn(at, None))?;
            let last = Some(number) == self.arguments.repeat || matches!(ran.end, End::Signal(_));
            match groups {
                Err(why) => say(&format!("nothing is measured: {why}")),
                Ok(mut groups) => {
                    let outlived = groups.outlived(false);
                    let loss = groups.loss(&ran, outlived);
                    cpu = groups.cpu_use(&ran, 0);
                    let rows = self.read(&mut groups.groups, ran.wall, outlived != Some(false), Some(loss));
                    let rows: Vec<_> =
                        rows.into_iter().map(|row| StatRow { of: number.to_string(), ..row }).collect();
                    self.write(&rows);
                    runs.push(rows);
                }
            }
            if last || sys::interrupted() {
                break ran.end;
            }
        };
        if runs.is_empty() {
            self.empty("it could not be counted in any run");
        }
        let mut pmus: Vec<String> = Vec::new();
        for row in runs.iter().flatten() {
            if !pmus.contains(&row.pmu) {
                pmus.push(row.pmu.clone());
            }
        }
        let ways = |pmu: &String| {
            let rows = runs.iter().flatten().filter(|row| row.pmu == *pmu);
            rows.map(|row| &row.core).collect::<BTreeSet<_>>()
        };
        pmus.retain(|pmu| {
            let ways: Vec<_> = ways(pmu).into_iter().map(String::as_str).collect();
            if ways.len() > 1 {
                say(&format!(
                    "{pmu}: no mean and no spread: others held counters in some of the runs, so they were not all counted in one way ({})",
                    ways.join("; ")
                ));
            }
            ways.len() <= 1
        });
        for (what, figure) in [("mean", mean as fn(&[f64]) -> Option<f64>), ("spread", spread)] {
            for pmu in &pmus {
                let rows: Vec<_> = runs.iter().flatten().filter(|row| row.pmu == *pmu).cloned().collect();
                self.write(&[StatRow::over(&rows, what, &figure)]);
            }
        }
        self.say_of_kernel(&cpu); // (of the last run, which stands for all)
        Ok(end)
    }
}
