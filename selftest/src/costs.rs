//! What a reading costs, in cycles of the time-stamp counter.
#![forbid(unsafe_code)]

use super::kernels::work;
use super::machine::TestMachine;
use super::raw::{CHandle, SlotsGroup, tsc};
use super::registers::registers;
use super::report::{CheckObstacle, CheckResult, seen};
use std::hint::black_box;
use topdown::{Options, SourceKind, TopDown};

/// Least and median of many.
#[derive(Clone, Copy)]
struct Cost {
    least: u64,
    median: u64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.median, self.least)
    }
}

fn cost(turns: usize, each: u64, mut prepare: impl FnMut(), mut call: impl FnMut()) -> Cost {
    let mut all: Vec<u64> = (0..turns)
        .map(|_| {
            prepare();
            let start = tsc();
            call();
            tsc().wrapping_sub(start) / each
        })
        .collect();
    all.sort_unstable();
    Cost { least: all[0], median: all[turns / 2] }
}

/// A reading is not much more than the two RDPMC that it needs.
pub fn costs(machine: &TestMachine) -> CheckResult {
    const EACH: u32 = 32;
    let turns = if machine.emulated { 101 } else { 2001 };
    let (bare, reset, read) = {
        let group = SlotsGroup::start(&machine.pmu)?;
        registers(&group)?;
        let bare = cost(turns, EACH.into(), || (), || _ = black_box(group.bare_pairs(EACH)));
        let reset = cost(turns, 1, || (), || _ = black_box(group.reset()));
        let read = cost(turns, 1, || (), || _ = black_box(group.count()));
        (bare, reset, read)
    };
    let handle = CHandle::open()?;
    let reading = cost(turns, EACH.into(), || (), || _ = black_box(handle.read(EACH)));
    drop(handle);
    let (window, windows) = window(turns)?;
    seen(
        reading.median <= 5 * bare.median.max(1),
        format!(
            "median (least) of {turns}: SLOTS and PERF_METRICS by RDPMC {bare}, td_read {reading}, td_read that \
             opens a window {window} ({windows} windows), RESET of the group {reset}, read(2) of the group {read}"
        ),
    )
}

/// td_read with more in the registers than it wants, and a budget that lets it do something about it.
fn window(turns: usize) -> Result<(Cost, u64), CheckObstacle> {
    let td = TopDown::open(&Options {
        source: SourceKind::Registers,
        max_overhead_ppm: 1_000_000,
        ..Options::default()
    })?;
    let before = td.info()?.windows;
    let cost = cost(turns, 1, || work(1_000_000), || _ = black_box(td.read()));
    Ok((cost, td.info()?.windows - before))
}
