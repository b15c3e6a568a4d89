//! Stacks of frames, each kept once.
#![forbid(unsafe_code)]

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
