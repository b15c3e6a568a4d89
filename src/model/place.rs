//! What is looked up of a row by its place in the table, as samples name it, in a handful of instructions.
#![forbid(unsafe_code)]

use super::perf_metrics::{Correction, MOST_MOVED};
use super::sums::Sums;
use super::tree::Tree;
use super::{Counting, Model, TABLE, tree_of_row};
use crate::sys::late::LateRef;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8};

/// Of each row that has a tree what the expression says of row and tree, by its place. Rows that come later have theirs put in, if need be
/// (`put`).
macro_rules! by_place {
    ($name:ident: $cell:ty = $none:expr, |$row:ident, $tree:ident| $value:expr) => {
        static $name: [$cell; 256] = {
            let (mut all, mut place): ([$cell; 256], usize) = ([const { $none }; 256], 0);
            while let Some($row) = row_at(place) {
                if let Some($tree) = tree_of_row($row) {
                    all[place] = $value;
                }
                place += 1;
            }
            all
        };
    };
}

/// More than any tree has.
const LEVELS: usize = 8;

by_place!(MOVED: &[Correction] = &[], |row, _tree| row.moved());
by_place!(LEVELS_BY_CATEGORY: u8 = 0, |_row, tree| if tree.takes_counters() { 0 } else { tree.depth() as u8 });
by_place!(IS_CORRECTED: AtomicBool = AtomicBool::new(false), |_row, tree| AtomicBool::new(tree.is_corrected()));
by_place!(IS_SURE: bool = true, |_row, tree| tree.is_sure());
by_place!(SUMS: Option<&'static Sums> = None, |_row, tree| sums_of(tree));
by_place!(INPUTS_DOWN_TO: [AtomicU8; LEVELS] = [const { AtomicU8::new(0) }; LEVELS], |_row, tree| {
    let (mut inputs, mut level) = ([const { AtomicU8::new(0) }; LEVELS], 0);
    while level < LEVELS {
        inputs[level] = AtomicU8::new(tree.inputs_of(level as u32) as u8);
        level += 1;
    }
    inputs
});
by_place!(COUNTERS_DOWN_TO: [AtomicU8; LEVELS] = [const { AtomicU8::new(0) }; LEVELS], |_row, tree| {
    let (mut counters, mut level) = ([const { AtomicU8::new(0) }; LEVELS], 0);
    while level < LEVELS && tree.takes_counters() {
        counters[level] = AtomicU8::new(tree.inputs_of(level as u32) as u8);
        level += 1;
    }
    counters
});
by_place!(COUNTERS_AT_SIGHT: [u8; LEVELS] = [0; LEVELS], |_row, tree| {
    let (mut counters, mut level) = ([0; LEVELS], 0);
    while level < LEVELS && tree.takes_counters() {
        counters[level] = tree.inputs_of(level as u32) as u8;
        level += 1;
    }
    counters
});
by_place!(SOURCES: AtomicU8 = AtomicU8::new(0), |_row, tree| AtomicU8::new(tree.sources_of_level_1() as u8));
by_place!(LEVELS_OF_TREE: AtomicU8 = AtomicU8::new(0), |_row, tree| AtomicU8::new(tree.depth() as u8));
by_place!(TREES: LateRef<Tree> = LateRef::new(None), |_row, tree| LateRef::new(Some(tree)));

const fn sums_of(tree: &'static Tree) -> Option<&'static Sums> {
    if tree.is_sure() && tree.takes_counters() { tree.sums } else { None }
}

/// Puts in what is looked up of a row of general-purpose counters that is no row of the table. (It is sure, as nothing in its tree is in doubt;
/// and whoever asks for its `sums` goes by its tree.)
pub(super) fn put(place: usize, tree: &'static Tree) {
    IS_CORRECTED[place].store(tree.is_corrected(), Relaxed);
    for level in 0..LEVELS {
        let inputs = tree.inputs_of(level as u32) as u8;
        INPUTS_DOWN_TO[place][level].store(inputs, Relaxed);
        COUNTERS_DOWN_TO[place][level].store(inputs, Relaxed);
    }
    SOURCES[place].store(tree.sources_of_level_1() as u8, Relaxed);
    LEVELS_OF_TREE[place].store(tree.depth() as u8, Relaxed);
    TREES[place].put(Some(tree)); // (the last: whoever finds it finds all of the above)
}

/// The tree of metrics of the row at a place.
#[inline(always)]
pub(crate) fn tree_of(place: u8) -> Option<&'static Tree> {
    TREES[usize::from(place)].get()
}

/// Level of the deepest node of the row at a place; 0 if it has no tree.
#[inline(always)]
pub(crate) fn levels(place: u8) -> u8 {
    LEVELS_OF_TREE[usize::from(place)].load(Relaxed)
}

/// How many inputs, from the first, the nodes of the row at a place take down to a level.
#[inline(always)]
pub(crate) fn inputs_down_to(place: u8, level: u32) -> usize {
    INPUTS_DOWN_TO[usize::from(place)][level as usize % LEVELS].load(Relaxed).into()
}

/// How many of these level 1 of the row at a place takes without those that correct others.
#[inline(always)]
pub(crate) fn sources_of_level_1(place: u8) -> usize {
    SOURCES[usize::from(place)].load(Relaxed).into()
}

/// What the row at a place counts beside the registers.
#[inline(always)]
pub(crate) fn moved(place: u8) -> &'static [Correction] {
    MOVED[usize::from(place)]
}

/// Whether general-purpose counters of the row at a place correct others of them.
#[inline(always)]
pub(crate) fn is_corrected(place: u8) -> bool {
    IS_CORRECTED[usize::from(place)].load(Relaxed)
}

/// Whether what the row at a place counts is all that decides its nodes.
#[inline(always)]
pub(crate) fn is_sure(place: u8) -> bool {
    IS_SURE[usize::from(place)]
}

/// Level of the deepest node of the row at a place, if its tree takes the categories of PERF_METRICS; else 0.
#[inline(always)]
pub(crate) fn levels_by_category(place: u8) -> u8 {
    LEVELS_BY_CATEGORY[usize::from(place)]
}

/// Whether the row at a place has `sums`.
#[inline(always)]
pub(crate) fn has_sums(place: u8) -> bool {
    SUMS[usize::from(place)].is_some()
}

/// Level 1 of the row at a place as sums of general-purpose counters, if it is that, and they decide it.
#[inline(always)]
pub(crate) fn sums(place: u8) -> Option<&'static Sums> {
    SUMS[usize::from(place)]
}

/// How many general-purpose counters the nodes of the row at a place take down to a level; 0 if its tree takes none.
#[inline(always)]
pub(crate) fn counters_down_to(place: u8, level: u8) -> usize {
    COUNTERS_DOWN_TO[usize::from(place)][usize::from(level) % LEVELS].load(Relaxed).into()
}

/// The same of the rows of the table alone.
#[inline(always)]
pub(crate) fn counters_at_sight(place: u8, level: u8) -> usize {
    COUNTERS_AT_SIGHT[usize::from(place)][usize::from(level) % LEVELS].into()
}

/// Of slots of the row at this place that divide so by the registers, and beside which so much was counted: as the published metrics
/// have them.
pub(crate) fn move_parts(place: u8, counted: [u64; MOST_MOVED], parts: &mut [i64]) {
    for (moved, counted) in moved(place).iter().zip(counted) {
        let slots = (counted as i64).wrapping_mul(moved.each.into());
        moved.from.iter().for_each(|k| parts[*k] = parts[*k].wrapping_sub(slots));
        moved.to.iter().for_each(|k| parts[*k] = parts[*k].wrapping_add(slots));
    }
}

/// The row at a place; None: the table ends before.
pub(super) const fn row_at(mut place: usize) -> Option<&'static Model> {
    let mut part = 0;
    while part < TABLE.len() {
        if place < TABLE[part].len() {
            return Some(&TABLE[part][place]);
        }
        (place, part) = (place - TABLE[part].len(), part + 1);
    }
    None
}

impl Model {
    /// What it counts beside the registers.
    pub const fn moved(&self) -> &'static [Correction] {
        if let Counting::PerfMetrics { moved, .. } = self.counting { moved } else { &[] }
    }
}
