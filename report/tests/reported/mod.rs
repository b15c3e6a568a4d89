//! Reports of made-up table files, and what is asked of them.
#![allow(dead_code)] // each test uses some

use crate::made::{Scratch, TableContent};
use topdown_report::model::{Figures, Region};
use topdown_report::{Report, merge};

pub fn report(name: &str, processes: &[TableContent]) -> Report {
    let scratch = Scratch::new(name);
    merge(&processes.iter().map(|made| made.write(&scratch.0)).collect::<Vec<_>>(), None).unwrap()
}

pub fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

pub fn parts_are_of_their_parents(figures: &Figures) {
    let (Some(one), Some(two)) = (figures.level_1, figures.level_2) else { return };
    for (k, parent) in one.of.into_iter().enumerate() {
        near(two.of[2 * k] + two.of[2 * k + 1], parent);
        assert!(two.of[2 * k] >= 0.0 && two.of[2 * k + 1] >= 0.0, "{two:?}");
    }
}

pub fn region<'r>(report: &'r Report, name: &str) -> &'r Region {
    report.regions.iter().find(|region| region.name == name).expect(name)
}
