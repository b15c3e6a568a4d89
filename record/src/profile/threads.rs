//! What a recording says of each thread.
#![forbid(unsafe_code)]

use super::FunctionFigures;
use crate::processes;
use crate::recording::{Burst, Recording};
use std::collections::{BTreeMap, HashMap};

/// A thread on one kind of core.
#[derive(Clone, Debug)]
pub struct ProfiledThread {
    /// Its id. (A kernel gives the id of one that has ended to another one in the end: such are one here.)
    pub tid: i32,
    /// The name of its process, for most of its time; empty: it is not known.
    pub process: String,
    /// Place among [`Profile::cores`](super::Profile::cores).
    pub core: usize,
    /// Of all that it did.
    pub figures: FunctionFigures,
}

/// The process in which most time of each thread passed.
pub(super) fn processes_of<'r>(recording: &'r Recording, bursts: &[Burst]) -> HashMap<i32, &'r str> {
    let mut times: HashMap<i32, BTreeMap<&str, u64>> = HashMap::new();
    for burst in bursts {
        let stack = burst.stacks.first().map(|stack| &recording.stacks[*stack as usize]);
        if let Some(name) = stack.and_then(|stack| processes::name_of(stack, &recording.modules)) {
            *times.entry(burst.thread).or_default().entry(name).or_default() += burst.weight_ns;
        }
    }
    let most = |(tid, names): (i32, BTreeMap<_, u64>)| {
        names.into_iter().max_by_key(|(_, ns)| *ns).map(|(name, _)| (tid, name))
    };
    times.into_iter().filter_map(most).collect()
}
