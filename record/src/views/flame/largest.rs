//! Which frames are shown of very many: a page of all of them would be larger than browsers like.
#![forbid(unsafe_code)]

use super::FlameFrame;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Frames by where they are in memory: a tree that has them stays where it is.
#[derive(Default)]
pub(crate) struct LargestFrames {
    frames: HashSet<usize>,
    /// Others are as large as is wanted, and there are too many.
    pub is_cut: bool,
}

fn place(frame: &FlameFrame) -> usize {
    std::ptr::from_ref(frame).addr()
}

impl LargestFrames {
    /// At most so many within `root` that have `least` or more. Those of most time, and of those of as much the outermost: so none is
    /// without what holds it.
    pub fn of(root: &FlameFrame, least: f64, most: usize) -> LargestFrames {
        let (mut largest, mut number) = (LargestFrames::default(), 0_u64);
        let mut waiting = BTreeMap::from([((u64::MAX, Reverse(0), Reverse(0)), root)]);
        while let Some(((_, Reverse(depth), _), frame)) = waiting.pop_last() {
            if largest.frames.len() > most {
                largest.is_cut = true;
                break;
            }
            largest.frames.insert(place(frame));
            for inner in frame.inner.values().filter(|inner| inner.ns > 0.0 && inner.ns >= least) {
                number += 1;
                waiting.insert((inner.ns as u64, Reverse(depth + 1), Reverse(number)), inner);
            }
        }
        largest
    }

    pub fn has(&self, frame: &FlameFrame) -> bool {
        self.frames.contains(&place(frame))
    }
}
