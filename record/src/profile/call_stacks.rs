//! Stacks as views show them, and what was seen at each instant.
#![forbid(unsafe_code)]

use super::named::{NamedFrame, NamedStack};
use crate::processes::PROCESS;
use crate::recording::Burst;
use crate::symbols::{SourceLine, Symbol};
use std::collections::BTreeMap;
use topdown_report::SIMULATED;

/// A function in a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFrame {
    /// Its name and module.
    pub function: (String, String),
    /// The line in it, as far as known; of a caller that of the call.
    pub line: Option<SourceLine>,
    /// It is inlined into the next outer one.
    pub inlined: bool,
}

/// A stack that was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallStack {
    /// Place among [`Profile::cores`](super::Profile::cores).
    pub core: usize,
    /// Its functions, the outermost first.
    pub frames: Vec<StackFrame>,
}

/// A sample of the clock, or of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfiledSample {
    /// Nanoseconds since what the first one stands for began.
    pub at_ns: u64,
    /// The thread that ran.
    pub thread: i32,
    /// For so much of the thread's time the sample stands, or for so many events.
    pub weight_ns: u64,
    /// Place among [`Profile::stacks`](super::Profile::stacks).
    pub stack: usize,
}

impl CallStack {
    /// The same below a frame that says that shares are made up, whatever shows it: of some formats nothing but stacks is shown.
    fn marked(mut self) -> CallStack {
        let function = (SIMULATED.into(), PROCESS.into());
        self.frames.insert(0, StackFrame { function, line: None, inlined: false });
        self
    }

    /// Names and modules of the functions, the outermost first.
    pub(crate) fn functions(&self) -> impl DoubleEndedIterator<Item = &(String, String)> {
        self.frames.iter().map(|frame| &frame.function)
    }
}

/// Stacks that differ in what views show, each with its CPU time.
pub(super) struct CallStacks {
    pub times: BTreeMap<CallStack, u64>,
    /// The place of each kind of core's stacks among these, by the stack's number.
    places: BTreeMap<(usize, u32), usize>,
}

impl CallStacks {
    /// `seen`: nanoseconds by kind of core and number. `cores`: places of kinds of cores. `is_marked`: shares are made up.
    pub fn new(
        seen: &BTreeMap<(usize, u32), u64>,
        stacks: &[NamedStack],
        functions: &[Symbol],
        cores: &BTreeMap<usize, usize>,
        is_marked: bool,
    ) -> CallStacks {
        let frame = |frame: &NamedFrame| {
            let Symbol { name, module, .. } = functions[frame.function].clone();
            StackFrame { function: (name, module), line: frame.line.clone(), inlined: frame.inlined }
        };
        let named = |(kind, stack): (usize, u32)| {
            let frames = stacks[stack as usize].iter().rev().map(frame).collect();
            let stack = CallStack { core: cores[&kind], frames };
            if is_marked { stack.marked() } else { stack }
        };
        let all: Vec<CallStack> = seen.keys().map(|key| named(*key)).collect();
        let mut times = BTreeMap::new();
        all.iter().zip(seen.values()).for_each(|(stack, ns)| *times.entry(stack.clone()).or_default() += ns);
        let order: BTreeMap<&CallStack, usize> = times.keys().zip(0..).collect();
        let places = seen.keys().copied().zip(all.iter().map(|stack| order[stack])).collect();
        CallStacks { times, places }
    }

    /// What was seen at each instant, in the order of time; none, if of a sample it is not known when it was. `is_time`: weights are.
    pub fn samples(&self, bursts: &[Burst], is_time: bool) -> Vec<ProfiledSample> {
        let timed = bursts.iter().filter(|burst| burst.weight_ns > 0);
        let first = timed.clone().min_by_key(|burst| burst.at).filter(|first| first.at > 0);
        let Some(first) = first else { return Vec::new() };
        let began = if is_time { first.at.saturating_sub(first.weight_ns) } else { first.at };
        let sample = |burst: &Burst| {
            let stack = self.places.get(&(burst.kind, *burst.stacks.first()?))?;
            let Burst { at, thread, weight_ns, .. } = *burst;
            Some(ProfiledSample { at_ns: at - began, thread, weight_ns, stack: *stack })
        };
        let mut samples: Vec<ProfiledSample> = timed.filter_map(sample).collect();
        samples.sort_by_key(|sample| (sample.at_ns, sample.thread));
        samples
    }
}
