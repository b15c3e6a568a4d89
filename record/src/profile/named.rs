//! Stacks of functions, of places in code.
#![forbid(unsafe_code)]

use crate::file_proof::boot_id;
use crate::processes;
use crate::recording::Recording;
use crate::stacks::CodePlace;
use crate::symbols::{FunctionLine, LookIn, SourceLine, Symbol, Symbols};
use std::collections::HashMap;

/// A function of a stack, by its number.
pub(super) struct NamedFrame {
    pub function: usize,
    pub line: Option<SourceLine>,
    /// Into the next one.
    pub inlined: bool,
    /// Others are inlined into it.
    pub has_inlined: bool,
}

/// A stack of functions, inlined ones as well, the innermost first.
pub(super) type NamedStack = Vec<NamedFrame>;

/// The functions of a stack that go on until they return or jump.
pub(super) fn called(stack: &NamedStack) -> impl Iterator<Item = usize> {
    stack.iter().skip_while(|frame| frame.inlined).map(|frame| frame.function)
}

/// What runs is one function, into which no other is inlined.
pub(super) fn is_whole(stack: &NamedStack) -> bool {
    stack.first().is_some_and(|innermost| !innermost.inlined && !innermost.has_inlined)
}

/// All functions, all stacks, and what is known of where they are.
pub(super) fn named(recording: &Recording) -> (Vec<Symbol>, Vec<NamedStack>, Symbols) {
    let all_stacks =
        processes::stacks(&recording.stacks, &recording.modules, recording.totals.cpus.is_some());
    let places = all_stacks.iter().copied().flatten().copied();
    let mut look_in = LookIn::with(&recording.files, &recording.made);
    // (its functions are elsewhere after another start)
    look_in.kernel = look_in.kernel.filter(|_| !boot_id().is_empty() && recording.totals.boot == boot_id());
    let symbols = Symbols::look_up(places, &recording.modules, &look_in);
    let (mut all, mut known) = (Vec::new(), HashMap::new());
    let mut number = |symbol: &Symbol| {
        *known.entry(symbol.clone()).or_insert_with(|| {
            all.push(symbol.clone());
            all.len() - 1
        })
    };
    let mut stack = |stack: &&[CodePlace]| {
        let mut frames = NamedStack::new();
        for functions in stack.iter().map(|place| symbols.at(*place)) {
            for (depth, FunctionLine { function, has_inlined, line }) in functions.iter().enumerate() {
                let inlined = depth + 1 < functions.len();
                let (function, line, has_inlined) = (number(function), line.clone(), *has_inlined);
                frames.push(NamedFrame { function, line, inlined, has_inlined });
            }
        }
        frames
    };
    let stacks = all_stacks.iter().map(&mut stack).collect();
    (all, stacks, symbols)
}
