//! Whose a stack is: the outermost of its frames is a process, where CPUs were recorded or there are several.
#![forbid(unsafe_code)]

use crate::spaces::Module;
use crate::stacks::CodePlace;
use std::collections::BTreeSet;

/// The module of processes, each a function of that name which calls all that the process does.
pub(crate) const PROCESS: &str = "[process]";

/// Whether it is the process of a stack, and no code.
pub(crate) fn is_process(place: &CodePlace, modules: &[Module]) -> bool {
    place.module.is_some_and(|module| matches!(modules[module as usize], Module::Process(_)))
}

/// The name of the process of a stack, if that is known.
pub(crate) fn name_of<'s>(stack: &[CodePlace], modules: &'s [Module]) -> Option<&'s str> {
    match &modules[stack.last()?.module? as usize] {
        Module::Process(name) => Some(name),
        _ => None,
    }
}

/// Stacks as they are shown: they begin with processes if whatever ran was recorded, or these are of more than one name.
pub(crate) fn stacks<'s>(
    all: &'s [Vec<CodePlace>],
    modules: &[Module],
    whatever_ran: bool,
) -> Vec<&'s [CodePlace]> {
    let process_of = |stack: &'s [CodePlace]| stack.last().filter(|place| is_process(place, modules));
    let shows =
        whatever_ran || all.iter().filter_map(|stack| process_of(stack)).collect::<BTreeSet<_>>().len() > 1;
    let shown = |stack: &'s Vec<CodePlace>| {
        let left_out = usize::from(!shows && process_of(stack).is_some());
        &stack[..stack.len() - left_out]
    };
    all.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_shown_if_there_are_several_or_whatever_ran_was_recorded() {
        let place = |module: u32, address: u64| CodePlace { module: Some(module), address };
        let process = |name: &str| Module::Process(name.into());
        let modules = [Module::at("/bin/a"), process("a"), process("b")];
        let nowhere = CodePlace { module: None, address: 7 };
        let mut all = vec![
            vec![place(0, 1), place(1, 0)],
            vec![place(0, 2), nowhere, place(1, 0)],
            vec![nowhere],
            vec![],
        ];
        let depths = |all: &[Vec<CodePlace>], whatever_ran: bool| {
            stacks(all, &modules, whatever_ran).iter().map(|stack| stack.len()).collect::<Vec<_>>()
        };
        assert_eq!(depths(&all, false), [1, 2, 1, 0]);
        assert_eq!(depths(&all, true), [2, 3, 1, 0]);
        all.push(vec![place(0, 1), place(2, 0)]);
        assert_eq!(depths(&all, false), [2, 3, 1, 0, 2]);
    }
}
