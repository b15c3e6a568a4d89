//! What a record of a table file measured, as the sum that the core decodes.
#![forbid(unsafe_code)]

use topdown::{InputSum, Sum};
use topdown_table::{Entry, Input, Measurement, RecordedCounts};

/// The record's sum. None: it cannot be what the library wrote, or is of a core that this version does not know.
pub fn of(entry: &Entry) -> Option<Sum> {
    let Measurement { executions, measured, slots, measured_slots, enabled_ns, running_ns, .. } =
        entry.measurement;
    let Measurement { flags, level, counted, edges, squares, input, .. } = entry.measurement;
    let one = |(k, input): (usize, &Input)| {
        let Input { sum, rounding, products, squares } = *input;
        (counted >> k & 1 != 0).then_some(InputSum { sum, rounding, products, squares })
    };
    let inputs = input.iter().enumerate().map(one);
    let mut sum = Sum {
        flags,
        executions,
        slots,
        time_enabled_ns: enabled_ns,
        time_running_ns: running_ns,
        measured,
        measured_slots,
        xx: squares,
        ..Sum::of_inputs(&entry.core, level, edges, inputs)?
    };
    let RecordedCounts { slots, ns, counter } = entry.counted;
    sum.add_counted(entry.counted_executions, &topdown::Increments { slots, ns, counter });
    Some(sum)
}
