//! Which columns rows have.
#![forbid(unsafe_code)]

use super::arguments::Arguments;
use super::counted::CountedGroups;
use super::rows_per::RowsPer;
use super::table::Columns;
use std::collections::BTreeSet;

pub fn columns(arguments: &Arguments, groups: &CountedGroups) -> Columns {
    let cpus = groups.counts_cpus();
    let pmus: BTreeSet<&str> = groups.each().map(|group| group.info.pmu.as_str()).collect();
    let repeats = arguments.repeat.is_some();
    let mut columns = Columns {
        simulated: arguments.what.simulated.is_some(),
        time: arguments.interval_print.is_some(),
        of: arguments.by().map(RowsPer::name).or(repeats.then_some("run")),
        pmu: pmus.len() > 1,
        slots: arguments.by_task().is_some() || arguments.cgroups().is_some(),
        seconds: repeats,
        cpus: !cpus || arguments.cgroups().is_some(),
        // (of user mode alone the cycles are known, but not the time)
        clock: arguments.what.kernel && !cpus,
        ..Columns::default()
    };
    for group in groups.each() {
        columns.add(&group.nodes().unwrap_or_default());
    }
    columns
}
