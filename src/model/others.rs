//! CPUs that this version knows but cannot measure: their topdown shares are formulas over general
//! counters. Named, so that the error can say why.

use super::{Counting, Model, sixteens};

/// Family 0x19, too, without event 0x1a0.
const ZEN_3: [u32; 80] = sixteens(&[0x00, 0x20, 0x30, 0x40, 0x50]);

const GENERAL: &str =
    "its topdown shares are formulas over general counters, which this version does not count";

const fn row(
    core: &'static str,
    vendor: &'static str,
    family: u32,
    models: &'static [u32],
    width: u32,
) -> Model {
    Model {
        core,
        vendor,
        family,
        models,
        slots_per_cycle: width,
        counting: Counting::None(GENERAL),
        proved: "",
    }
}

const fn none(core: &'static str, vendor: &'static str, family: u32, models: &'static [u32]) -> Model {
    let counting = Counting::None("it has no events that count slots");
    Model { core, vendor, family, models, slots_per_cycle: 0, counting, proved: "" }
}

pub(super) const ROWS: &[Model] = &[
    row("Haswell or Broadwell", "GenuineIntel", 6, &[0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56], 4),
    none("Zen 3", "AuthenticAMD", 0x19, &ZEN_3),
    none("Zen 1 or 2", "AuthenticAMD", 0x17, &[]),
];
