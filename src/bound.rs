//! The rules by which errors are bounded, each under the name that docs/error-bound.md derives it by. All bounds are in slots,
//! for one category.
#![forbid(unsafe_code)]

use crate::model::slots_per_ns;
use crate::registers::{FULL, RawSlots, Registers};

// One reading

/// Slots that may pass between the reading of SLOTS and that of PERF_METRICS, and between either and the instructions
/// around them, on a core that executes out of order: 40 cycles of 8 slots.
pub(crate) const SKID_SLOTS: u64 = 320;

/// How many slots `n` units of a field stand for, rounded up.
pub(crate) fn units(slots: RawSlots, n: u64) -> u64 {
    slots.0.saturating_mul(n).div_ceil(FULL)
}

/// Rounding of each of `Registers::split`, after the registers were saved and restored so many times: one unit for the reading
/// and one for each switch. A field is within one unit of the truth, however the hardware rounds; dividing by the sum of the
/// fields moves a category by no more than that sum is off.
pub(crate) fn rounding(registers: Registers, switches: u64) -> u64 {
    if registers.slots.0 == 0 {
        return 0;
    }
    units(registers.slots, switches.saturating_add(1 + registers.metrics.whole().abs_diff(FULL)))
}

/// Up to so many switches, `rounding_of_few` does not overflow.
pub(crate) const FEW_SWITCHES: u16 = 1 << 14;

/// `rounding` of possible registers after few switches. `whole`: the sum of the fields.
#[allow(clippy::manual_div_ceil)] // which takes twice the instructions
#[inline(always)]
pub(crate) fn rounding_of_few(registers: Registers, whole: u64, switches: u16) -> u64 {
    let units = 1 + (whole as i64 - FULL as i64).unsigned_abs() + u64::from(switches);
    (registers.slots.0 * units + (FULL - 1)) / FULL
}

/// Skid of both readings, and of the readings that closed so many windows between them: one of the registers and one by
/// read(2) for each.
#[inline(always)]
pub(crate) fn skid(readings: [Registers; 2], windows: u32) -> u64 {
    let readings = readings.map(|registers| u64::from(registers.slots.0 > 0));
    (readings[0] + readings[1] + 2 * u64::from(windows)) * SKID_SLOTS
}

/// Of both readings of a counter beside the registers, as of another general-purpose counter.
pub(crate) const SKID_BESIDE: u64 = 2 * SKID_SLOTS / 4;

/// Skid of both readings of so many general-purpose counters, and of those by read(2) between them, the later of both among these. By RDPMC
/// the counters of a reading are read one after the other, in the same order each time: what passes between them is the same
/// work at both ends, and takes as long but for a quarter of the skid for each.
pub(crate) fn skid_of_counters(windows: u32, counters: usize) -> u64 {
    match u64::from(windows) {
        0 => 2 * (SKID_SLOTS + counters as u64 * SKID_SLOTS / 4),
        windows => 2 * windows * SKID_SLOTS,
    }
}

// Context switches

/// How often the registers were saved and restored between two sequence numbers of the control page, at the most: each time
/// moves the number by four or more (out and in, by two each).
pub(crate) fn switches_between(from: u32, to: u32) -> u64 {
    u64::from(to.wrapping_sub(from) / 4)
}

// Windows

/// A window that a read(2) of the group closed. The kernel takes the registers at their word, which is rounded to 8 bits of
/// all that they hold (`held` at the start, `slots` more at the end), at either end and each time that it saves and restores
/// them; each save may also make it drop a negative difference of up to a unit (kernel-facts B.2, B.4). `missing`: how much
/// the categories and the slots differ. Never more than all slots.
pub(crate) fn closed_by_read(slots: u64, held: u64, switches: u64, missing: u64) -> u64 {
    let roundings = switches.saturating_mul(2).saturating_add(1);
    let start = units(RawSlots(held), 1);
    let end = units(RawSlots(held.saturating_add(slots)), roundings);
    // the kernel rounds each category down to whole slots, each time
    start.saturating_add(end).saturating_add(missing).saturating_add(roundings).min(slots)
}

/// A window that a reading of its registers closed. `lost`: slots that an overflow took from the registers.
pub(crate) fn closed_by_registers(reading: Registers, switches: u64, lost: u64) -> u64 {
    rounding(reading, switches).saturating_add(lost).min(reading.slots.0 + lost)
}

/// Slots that pass while the library handles the registers, at the most: a difference of more is somebody else's doing.
pub(crate) const MOST_WHILE_HANDLED: u64 = 1 << 16;

// The library's own work

/// What of a reading on the slow path is not counted, where so many slots of it are: it is a part of the same code, of no more than
/// one in so many instructions, so it has no more slots, at whatever speed.
pub(crate) fn uncounted_part(slots: u64, one_in: u64) -> u64 {
    slots.div_ceil(one_in)
}

/// Where that is not counted: after a reading on the slow path, on the way back to the caller.
pub(crate) const WORK_AFTER: u64 = 8 * SKID_SLOTS;
/// Before it, if the fast path noticed nothing.
pub(crate) const WORK_BEFORE: u64 = 4 * SKID_SLOTS;
/// Before a reading of general-purpose counters on the slow path, which looks at the page of each.
pub(crate) const WORK_BEFORE_COUNTERS: u64 = 64 * SKID_SLOTS;
/// For a look at the pages of general-purpose counters that came to nothing.
pub(crate) const WORK_BY_LOOK: u64 = 10 * SKID_SLOTS;
/// For a reading by read(2), on the way in and on the way back, if the calling thread is the one that is measured.
pub(crate) const WORK_BY_READ: u64 = 30 * SKID_SLOTS;

// When a window is opened

/// The most that the registers may hold at the first reading of a region of so many slots, for this error of a share of this
/// level: both readings are rounded, a difference of two fields twice, and a window may be closed on the way.
pub(crate) fn most_held(region: u64, max_error_ppm: u32, level: u32) -> u64 {
    let region = region as f64;
    let rounding = region * f64::from(max_error_ppm) / 1e6 - (4 * SKID_SLOTS) as f64;
    ((rounding * FULL as f64 / f64::from(level.max(1)) - region) / 2.0) as u64
}

// Time that was not counted

/// Slots that may have passed in so many nanoseconds that were not counted: at the rate at which so many were counted, or at the
/// highest that any such core has, whichever is more.
pub(crate) fn uncounted(enabled_ns: f64, running_ns: f64, slots: f64, most_slots_per_ns: f64) -> f64 {
    let rate = if running_ns > 0.0 { slots / running_ns } else { 0.0 };
    (enabled_ns - running_ns).max(0.0) * rate.max(most_slots_per_ns)
}

// Sums

/// Executions that are so few make no random sample.
pub(crate) const LEAST_SAMPLE: u64 = 8;

/// Standard errors in the bound of a random sample.
const STANDARD_ERRORS: f64 = 4.0;

/// Sums over the measured executions of a sum: of the squares of their slots (`xx`), of the products of these and a category's
/// (`xy`), and of the squares of the category's (`yy`).
pub(crate) struct Moments {
    pub xx: f64,
    pub xy: f64,
    pub yy: f64,
}

/// A random sample of all executions: how many they are, and their slots.
pub(crate) struct RandomSample {
    pub measured: u64,
    pub executions: u64,
    pub measured_slots: f64,
    pub slots: f64,
}

/// How far the mean of a random sample of so many may be off, which have this sum, and this sum of their squares: its standard
/// errors, and what one count is more or less.
pub(crate) fn mean_of_sample(count: f64, sum: f64, squares: f64) -> f64 {
    let variance = (squares - sum * sum / count).max(0.0) / (count - 1.0);
    STANDARD_ERRORS * (variance / count).sqrt() + 1.0
}

/// What is seldom and has not been seen in a random sample of so many readings may add so much to their mean, as an event of
/// a skid's length.
pub(crate) fn unseen(count: f64) -> f64 {
    STANDARD_ERRORS * SKID_SLOTS as f64 / count
}

/// How far a category's share may be off as only some of all executions were measured, chosen at random: the ratio estimator's
/// standard error, for a part of a finite number, and what the sample has missed.
pub(crate) fn random_sample(chosen: &RandomSample, share: f64, moments: &Moments) -> f64 {
    let RandomSample { measured, executions, measured_slots: slots, .. } = *chosen;
    let Moments { xx, xy, yy } = *moments;
    if measured == executions {
        return 0.0;
    }
    // (what a few long ones among many short ones say is not said by many)
    if !is_enough(measured, slots, xx) {
        return 1.0;
    }
    let (m, all) = (measured as f64, executions as f64);
    let squares = (yy - 2.0 * share * xy + share * share * xx).max(0.0);
    let variance = squares / (m - 1.0) * m * (1.0 - m / all);
    STANDARD_ERRORS * variance.max(0.0).sqrt() / slots + missed_by_sample(chosen)
}

/// Some of all turns, chosen at random: how many they are, and the slots of a node in them.
pub(crate) struct SomeTurns {
    pub turns: u64,
    /// None: each stands for as many as its weight says, which is in its slots.
    pub all_turns: Option<u64>,
    pub slots: f64,
    pub all_slots: f64,
    /// The part of all slots of any node that is not in them.
    pub left_out: f64,
}

/// Whether so many, which have so many slots together, and their squares, tell how all are: as many of one length would.
pub(crate) fn is_enough(sampled: u64, slots: f64, squares: f64) -> bool {
    sampled >= LEAST_SAMPLE && slots * slots >= LEAST_SAMPLE as f64 * squares
}

/// As many standard errors of a mean of so few as `STANDARD_ERRORS` are of many: quantiles of Student's t, by the first terms of their
/// expansion in the degrees of freedom (Abramowitz and Stegun, 26.7.5).
pub(crate) fn errors_of_few(freedom: f64) -> f64 {
    let z = STANDARD_ERRORS;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |rest, term| (rest + term) / freedom) + z
}

/// What the sum of squares of the residuals of turns, of which `squares` is that of their slots, is to be multiplied by for the square of
/// how far their sum may be off. None: they are too few to tell.
pub(crate) fn spread_of_turns(some: &SomeTurns, squares: f64) -> Option<f64> {
    let SomeTurns { turns, all_turns, slots, left_out, .. } = *some;
    if left_out <= 0.0 {
        return Some(0.0);
    }
    if !is_enough(turns, slots, squares) {
        return None;
    }
    let n = turns as f64;
    // (a few that were unlikely say as much as all others)
    let errors = match all_turns {
        Some(_) => STANDARD_ERRORS,
        None => errors_of_few((slots * slots / squares - 1.0).max(1.0)),
    };
    Some(errors * errors * n / (n - 1.0) * left_out)
}

/// So many turns are expected, and none is among some at random, as seldom as an error is more than four standard errors: one time in 31,574.
const UNSEEN_TURNS: f64 = 10.36;

/// In which part of all slots may be what none of these turns has seen, or few have: they have this sum of slots, and of their squares.
pub(crate) fn unseen_by_turns(some: &SomeTurns, squares: f64) -> f64 {
    (UNSEEN_TURNS * squares / (some.slots * some.slots)).min(1.0) * some.left_out.max(0.0)
}

/// By what the square of an error of few turns is larger that is not of a share: nothing limits what there is in a few of them, so that their
/// errors lean to one side, the more so the fewer they are, which have this sum of slots and of their squares.
pub(crate) fn skew(slots: f64, squares: f64) -> f64 {
    1.0 + STANDARD_ERRORS * STANDARD_ERRORS * squares / (slots * slots)
}

/// How far the part that a child has of a node may be off, where it is that of some turns: as `random_sample`, of whole turns, each
/// with the slots of the node (x) and of the child (y). None: they are too few to tell.
pub(crate) fn random_turns(some: &SomeTurns, part: f64, moments: &Moments) -> Option<f64> {
    let Moments { xx, xy, yy } = *moments;
    let spread = spread_of_turns(some, xx)?;
    if some.left_out <= 0.0 {
        return Some(0.0);
    }
    let squares = (yy - 2.0 * part * xy + part * part * xx).max(0.0);
    Some((spread * squares).sqrt() / some.slots + missed_by_turns(some, xx))
}

/// The part of a node's slots that some turns have missed. All its slots are known: if they are more than so many turns can have, each
/// with as much as the mean of these is at the most, some are long of whose kind none is among these. So they are if weighted turns stand
/// for less, by more than the standard errors of such a sum (whose variance is no more than its squares).
pub(crate) fn missed_by_turns(some: &SomeTurns, squares: f64) -> f64 {
    let SomeTurns { turns, all_turns, slots, all_slots, .. } = *some;
    let accounted = match all_turns {
        Some(all) => all as f64 * (slots / turns as f64 + mean_of_sample(turns as f64, slots, squares)),
        None if all_slots > slots + STANDARD_ERRORS * squares.sqrt() => slots,
        None => all_slots,
    };
    ((all_slots - accounted) / all_slots).max(0.0)
}

/// The part of all slots that a random sample has missed. All executions' slots are known: if they are more than so many executions
/// of the sample's mean, some are long of whose kind none was measured.
pub(crate) fn missed_by_sample(chosen: &RandomSample) -> f64 {
    let RandomSample { measured, executions, measured_slots, slots } = *chosen;
    let accounted = executions as f64 * measured_slots / measured as f64;
    if slots > 0.0 { ((slots - accounted) / slots).max(0.0) } else { 0.0 }
}

// What is assumed

/// As long as this the registers are taken to be those of the window although nobody looked: an overflow comes
/// much later, and it takes less than this to pass what a window may hold.
pub(crate) const UNCHECKED_MS: u32 = 1000;

/// SLOTS has 48 bits. At the highest rate of a core of this width it takes so many nanoseconds to come round.
pub(crate) fn wraps_after_ns(slots_per_cycle: u32) -> u64 {
    ((1u64 << 48) as f64 / slots_per_ns(slots_per_cycle)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::RawMetrics;

    fn registers(slots: u64, metrics: u64) -> Registers {
        Registers { slots: RawSlots(slots), metrics: RawMetrics(metrics) }
    }

    #[test]
    fn rounding_is_one_unit_and_more_where_the_fields_do_not_add_up() {
        assert_eq!(rounding(registers(255_000, 0x3333_6633), 0), 1000);
        assert_eq!(rounding(registers(255_000, 0x3232_6432), 0), 6000);
        assert_eq!(rounding(registers(255_000, 0x3333_6633), 2), 3000, "two switches");
        assert!(rounding(registers(255_000, 0), 0) > 255_000, "empty fields say nothing");
        assert_eq!(rounding(registers(0, 0), 7), 0);
    }

    #[test]
    fn each_switch_adds_two_units_to_a_window_closed_by_read_and_no_bound_exceeds_the_window() {
        assert_eq!(closed_by_read(255_000, 0, 0, 0), 1_001);
        assert_eq!(closed_by_read(255_000, 0, 3, 0), 7_007);
        assert_eq!(closed_by_read(255_000, 0, u64::MAX, 0), 255_000);
        assert_eq!(switches_between(10, 10), 0);
        assert_eq!(switches_between(10, 16), 1, "as today's kernels do it: six");
        assert_eq!(switches_between(u32::MAX - 1, 6), 2, "the sequence number goes round");
    }

    #[test]
    fn standard_errors_of_few_are_those_of_students_t() {
        // (quantiles that one in 31,574 is above, as of four in a normal distribution; there are never fewer than eight turns)
        for (freedom, t) in [(1e9, 4.0), (100.0, 4.177), (24.0, 4.834), (10.0, 6.567), (7.0, 8.467)] {
            let ratio = errors_of_few(freedom) / t;
            assert!((0.97..1.001).contains(&ratio), "{freedom} {ratio}");
        }
    }

    #[test]
    fn the_document_derives_each_rule_under_its_name() {
        let read =
            |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (rules, document) = (read("src/bound.rs"), read("docs/error-bound.md"));
        let name = |line: &str| {
            let item = line.strip_prefix("pub(crate) fn ").or(line.strip_prefix("pub(crate) const "))?;
            item.split(['(', ':']).next().map(str::to_owned)
        };
        let steps = ["units", "FEW_SWITCHES", "rounding_of_few"]; // how `rounding` is computed
        let names: Vec<_> =
            rules.lines().filter_map(name).filter(|name| !steps.contains(&name.as_str())).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(document.contains(&format!("`{name}`")), "docs/error-bound.md does not name `{name}`");
        }
    }
}
