//! Stacks of frames, each kept once.
#![forbid(unsafe_code)]

use crate::records::RawSample;
use crate::spaces::Spaces;
use crate::unwind::StackUnwinder;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A place in a module, or an address that is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CodePlace {
    pub module: Option<u32>,
    pub address: u64,
}

/// All stacks that were seen, the innermost frame first.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub all: Vec<Vec<CodePlace>>,
    known: HashMap<Vec<CodePlace>, u32>,
}

impl Stacks {
    /// The number of the stack in which a sample was taken.
    pub fn number_of(
        &mut self,
        sample: &RawSample,
        spaces: &mut Spaces,
        unwinder: &mut StackUnwinder,
    ) -> u32 {
        let pid = sample.pid;
        let callers = unwinder.callers(spaces, pid, sample);
        let kernel = (sample.in_kernel > 0).then(|| spaces.kernel());
        let frames = sample.chain.iter().chain(&callers).enumerate().map(|(depth, address)| {
            // (a return address is behind the call)
            let address = address.saturating_sub(u64::from(depth > 0));
            match kernel {
                Some(_) if depth < sample.in_kernel => CodePlace { module: kernel, address },
                _ => spaces.place(pid, sample.time, address),
            }
        });
        let mut frames: Vec<CodePlace> = frames.collect();
        frames.extend(spaces.process(pid));
        self.number(frames)
    }

    /// The number of a stack.
    pub fn number(&mut self, stack: Vec<CodePlace>) -> u32 {
        if let Some(number) = self.known.get(&stack) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(stack.clone());
        self.known.insert(stack, number);
        number
    }
}
