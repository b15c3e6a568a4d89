//! What a record of a table file measured, as the sum that the core decodes.
#![forbid(unsafe_code)]

use crate::account::Account;
use crate::elapsed::Elapsed;
use crate::nodes::TalliedNode;
use topdown::{Empties, Increments, InputSum, Sum, TurnTally};
use topdown_table::{Measurement, NodeInTurns, RecordedCounts, RecordedEmpties, TableEntry, TableInput};

/// The record's sum, without what the library itself executed between the readings of counted executions. None: it cannot be what the
/// library wrote, or is of a core that this version does not know.
pub fn of(entry: &TableEntry) -> Option<Sum> {
    let Measurement { executions, measured, slots, measured_slots, enabled_ns, running_ns, .. } =
        entry.measurement;
    let Measurement { flags, level, counted, edges, squares, input, empties, .. } = entry.measurement;
    let one = |(k, input): (usize, &TableInput)| {
        let TableInput { sum, rounding, products, squares } = *input;
        (counted >> k & 1 != 0).then_some(InputSum { sum, rounding, products, squares })
    };
    let inputs = input.iter().enumerate().map(one);
    let mut sum = Sum {
        flags,
        executions,
        slots,
        time_enabled_ns: enabled_ns,
        time_running_ns: running_ns,
        measured_slots,
        xx: squares,
        ..Sum::of_inputs(&entry.core, level, measured, edges, inputs)?
    };
    let RecordedCounts { slots, ns, counter } = entry.counted;
    sum.add_counted(entry.counted_executions, &Increments { slots, ns, counter });
    let RecordedEmpties { weight, slots, slots_squares, apart, counter, squares } = empties;
    sum.set_empties(&Empties { weight, slots, slots_squares, apart, counter, squares });
    Some(sum.without_edges())
}

/// What measured the threads of a record's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSource {
    /// One group of counters.
    Group,
    /// Groups that took turns, of which the record is of one.
    Turns,
    /// Clocks alone.
    Clocks,
}

/// What the record says.
pub fn account_of(entry: &TableEntry, source: RecordSource) -> Option<Account> {
    if source == RecordSource::Clocks {
        return Some(Account::of_clocks(entry.measurement.executions, Elapsed::of(entry)?));
    }
    let sum = of(entry)?;
    if source == RecordSource::Group {
        return Account::new(&sum);
    }
    let (turns, slots) = entry.turns;
    let tallies = entry.in_turns.iter().map(|one| {
        let NodeInTurns { number, above, own, parent, own_own, own_parent, parent_parent, far } = *one;
        let tally =
            TurnTally { turns, slots, own, parent, own_own, own_parent, parent_parent, far, whole: slots };
        TalliedNode { id: number - 1, above, tally }
    });
    let finite = |one: &TalliedNode| {
        let TurnTally { slots, own, parent, own_own, own_parent, parent_parent, far, .. } = one.tally;
        [slots, own, parent, own_own, own_parent, parent_parent, far].iter().all(|sum| sum.is_finite())
    };
    Account::of_turns(&sum, (&entry.core, turns), tallies.filter(finite).collect())
}
