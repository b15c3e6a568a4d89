//! A sum, as a record of the table file has it.
#![forbid(unsafe_code)]

use topdown::{Empties, InputSum, Sum};
use topdown_table::{MOST_INPUTS, Measurement, RecordedEmpties, TableInput};

/// What the sum says of its executions.
pub fn of(sum: &Sum) -> Measurement {
    let (mut counted, mut input) = (0, [TableInput::default(); MOST_INPUTS]);
    for (k, one) in sum.inputs().take(MOST_INPUTS).enumerate() {
        if let Some(InputSum { sum, rounding, products, squares }) = one {
            counted |= 1 << k;
            input[k] = TableInput { sum, rounding, products, squares };
        }
    }
    let Empties { weight, slots, slots_squares, apart, counter, squares } = sum.empties();
    Measurement {
        executions: sum.executions,
        measured: sum.measured,
        slots: sum.slots,
        measured_slots: sum.measured_slots,
        enabled_ns: sum.time_enabled_ns,
        flags: sum.flags,
        level: sum.level,
        running_ns: sum.time_running_ns,
        counted,
        reserved: 0,
        edges: sum.edges(),
        squares: sum.xx,
        input,
        empties: RecordedEmpties { weight, slots, slots_squares, apart, counter, squares },
    }
}
