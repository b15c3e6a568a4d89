//! What a handle measures, and how, and whether it can.
#![forbid(unsafe_code)]

use crate::budget::BudgetSettings;
use crate::detect::Pmu;
use crate::error::{Error, Reason, Result};
use crate::model::{self, Model, NoDeeper};
use crate::options::{Options, Target, names};
use crate::sample::{Base, Head, Sample, TD_SAMPLE_SIMULATED};
use crate::sys::cpu::Identity;
use crate::sys::numbers::contains;
use crate::sys::{Kernel, identity};

/// How a handle's counters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// RDPMC, from user space.
    Rdpmc = 1,
    /// read(2).
    Read = 2,
    /// The simulated PMU.
    Simulated = 3,
}

/// What a handle measures, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// How it is read.
    pub path: Path,
    /// Deepest level.
    pub level: u32,
    /// General-purpose counters that it takes; 0: it counts SLOTS and PERF_METRICS, with what corrects them beside them up to Redwood Cove.
    pub counters: u32,
    /// Pipeline slots per cycle of the core; 0 if not known.
    pub slots_per_cycle: u32,
    /// Brand string of the CPU; "simulated" if there is none behind it.
    pub cpu: String,
    /// Name of the PMU in sysfs; "simulated" if there is none.
    pub pmu: String,
    /// Both kinds of core of a hybrid CPU are counted, and `pmu` names both.
    pub of_both_kinds: bool,
    /// Name of the core.
    pub core: String,
    /// Why it is not read by RDPMC, why level 1 alone is counted, or why registers are rather than general-purpose counters, and what
    /// to do about it; else empty.
    pub note: Reason,
    /// `note` says why it is not read by RDPMC, and nothing else.
    pub notes_path: bool,
    /// Wanted bound on each share's error, in parts per million.
    pub max_error_ppm: u32,
    /// Time that may go into new windows of the registers, in parts per million.
    pub max_overhead_ppm: u32,
    /// New windows so far.
    pub windows: u64,
    /// Nanoseconds that they took; ticks of the time-stamp counter where the kernel gives no clock.
    pub windows_ns: u64,
}

impl Info {
    pub(super) fn new(options: &Options, model: &Model, level: u32) -> Info {
        Info {
            path: Path::Simulated,
            level,
            counters: 0,
            slots_per_cycle: model.slots_per_cycle,
            cpu: "simulated".into(),
            pmu: "simulated".into(),
            of_both_kinds: false,
            core: model.core.into(),
            note: Reason::default(),
            notes_path: false,
            max_error_ppm: or_a_hundredth(options.max_error_ppm),
            max_overhead_ppm: or_a_hundredth(options.max_overhead_ppm),
            windows: 0,
            windows_ns: 0,
        }
    }

    pub(super) fn budget_settings(&self) -> BudgetSettings {
        BudgetSettings {
            max_error: self.max_error_ppm,
            max_overhead: self.max_overhead_ppm,
            level: self.level,
            slots_per_cycle: self.slots_per_cycle,
        }
    }

    /// What all samples of a handle have in common. `row`: place of the CPU's row in the table of models.
    pub(super) fn head(&self, row: u32) -> Head {
        Head {
            size: size_of::<Sample>() as u32,
            flags: if self.path == Path::Simulated { TD_SAMPLE_SIMULATED } else { 0 },
            base: Base::of_handle(identity::unique(), row as u8, self.level as u8),
            ..Head::default()
        }
    }
}

/// `why`: it is read by read(2); none if by RDPMC.
pub(super) fn info_of(options: &Options, cpu: Identity, pmu: &Pmu, level: u32, why: Option<Reason>) -> Info {
    Info {
        path: if why.is_none() { Path::Rdpmc } else { Path::Read },
        cpu: cpu.name,
        pmu: pmu.name.into(),
        notes_path: why.is_some(),
        note: why.unwrap_or_default(),
        ..Info::new(options, pmu.model, level)
    }
}

/// One point, or one per cent, unless told otherwise.
fn or_a_hundredth(ppm: u32) -> u32 {
    if ppm == 0 { 10_000 } else { ppm }
}

pub(crate) fn level_of(
    options: &Options,
    most: u32,
    what: &dyn std::fmt::Display,
    why: NoDeeper,
) -> Result<u32> {
    match options.level {
        0 => Ok(most),
        level if level <= most => Ok(level),
        level => {
            let in_turns = match model::groups_of_level(level, options.core)[..] {
                [] => String::new(),
                _ => {
                    format!("; regions under libtopdown-preload.so have it in turns (TOPDOWN_LEVEL={level})")
                }
            };
            Err(Error::errno(libc::ENOTSUP, format!("{what} has no level {level} in its counters"))
                .why(why.to_string())
                .remedy(format!("set {} to {most}, or leave it out{in_turns}", names().level)))
        }
    }
}

pub(crate) fn check_target(
    kernel: &impl Kernel,
    pmu: &Pmu,
    identity: &Identity,
    options: &Options,
) -> Result<()> {
    let (Target::Cpu(cpu) | Target::TaskOn(_, cpu)) = options.target else { return Ok(()) };
    let online = kernel.text("/sys/devices/system/cpu/online").unwrap_or_default();
    if !contains(&online, cpu) {
        return Err(Error::invalid(format!("there is no CPU {cpu} online"))
            .remedy(format!("online are {}", online.trim())));
    }
    if !pmu.covers(cpu) {
        return Err(Error::errno(
            libc::ENOTSUP,
            format!(
                "CPU {cpu} of {identity} is not one of '{}' (CPUs {})",
                pmu.name,
                pmu.cpus.as_deref().unwrap_or("unknown"),
            ),
        )
        .remedy(format!(
            "choose one of these, or measure {} TD_CORES_E",
            if options.of_e_cores() { "a P-core, without" } else { "an E-core, with" }
        )));
    }
    Ok(())
}
