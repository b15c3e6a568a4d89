//! Instructions and cycles beside a group, by the fixed counters: where they would take a general-purpose counter from the group they are not
//! counted.
#![forbid(unsafe_code)]

use super::cpus::{E_CORES, P_CORES};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_TYPE_HARDWARE,
};
use std::fs;
use topdown::{CoreKind, Options, SourceKind, Target, TopDown};
use topdown_seam::page::Times;
use topdown_seam::thread::on_cpus;
use topdown_seam::{Attr, Kernel, Linux, group_read};

/// An open pair.
pub struct Ipc {
    leader: <Linux as Kernel>::Fd,
    _cycles: Vec<<Linux as Kernel>::Fd>,
}

/// What it has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IpcCounts {
    pub instructions: u64,
    pub cycles: u64,
    enabled_ns: u64,
    running_ns: u64,
}

impl IpcCounts {
    /// What was counted since then; None if that was less than the group's time on the counters.
    pub fn since(&self, then: &IpcCounts, ran_ns: u64) -> Option<IpcCounts> {
        const SKEW_NS: u64 = 1_000_000; // the two are not read at once
        let running_ns = self.running_ns.checked_sub(then.running_ns)?;
        let counted = IpcCounts {
            instructions: self.instructions.checked_sub(then.instructions)?,
            cycles: self.cycles.checked_sub(then.cycles)?,
            enabled_ns: self.enabled_ns.checked_sub(then.enabled_ns)?,
            running_ns,
        };
        (running_ns + SKEW_NS + ran_ns / 100 >= ran_ns).then_some(counted)
    }

    pub fn plus(&self, other: &IpcCounts) -> IpcCounts {
        IpcCounts {
            instructions: self.instructions + other.instructions,
            cycles: self.cycles + other.cycles,
            enabled_ns: self.enabled_ns + other.enabled_ns,
            running_ns: self.running_ns + other.running_ns,
        }
    }

    /// Instructions per cycle.
    pub fn ipc(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.instructions as f64 / self.cycles as f64)
    }
}

/// A PMU on which the pair can be counted beside a group.
#[derive(Clone, Debug)]
pub struct IpcPmu {
    pub pmu: &'static str,
    number: u64,
}

impl Ipc {
    /// The PMUs on which a group with such options leaves the pair its counters. To be asked before groups are open: they would be in
    /// the way of the one that is tried.
    pub fn kinds(options: &Options) -> Vec<IpcPmu> {
        if options.simulate {
            return Vec::new();
        }
        let kind = |pmu: &'static str| {
            let of = |file| fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/{file}")).ok();
            let number = of("type")?.trim().parse().ok()?;
            // (a PMU of some of the CPUs is chosen by its number in the upper half)
            let cpus = of("cpus");
            let kind = IpcPmu { pmu, number: if cpus.is_some() { number } else { 0 } };
            on_cpus(cpus.as_deref(), || kind.fits(options) == Some(true))?.then_some(kind)
        };
        ["cpu", P_CORES, E_CORES].into_iter().filter_map(kind).collect()
    }

    pub fn read(&self) -> Option<IpcCounts> {
        let mut words = [0; group_read::GROUP_HEAD + 2];
        let got = Linux::default().read(&self.leader, &mut words).ok()?;
        let (Times { enabled, running }, values) = group_read::group(&words[..got], 2)?;
        let [instructions, cycles] = values else { return None };
        Some(IpcCounts {
            instructions: *instructions,
            cycles: *cycles,
            enabled_ns: enabled,
            running_ns: running,
        })
    }
}

impl IpcPmu {
    /// Opens the pair for the target of these options.
    pub fn open(&self, options: &Options) -> Option<Ipc> {
        let (pid, cpu) = match options.target {
            Target::This => (0, -1),
            Target::Task(id) => (id, -1),
            Target::TaskOn(id, cpu) => (id, cpu as i32),
            Target::Cpu(cpu) => (-1, cpu as i32),
        };
        let of = |event: u32, leads: bool| {
            let mut attr = Attr {
                type_: PERF_TYPE_HARDWARE,
                size: size_of::<Attr>() as u32,
                config: self.number << 32 | u64::from(event),
                read_format: group_read::GROUP,
                ..Attr::default()
            };
            attr.set_exclude_kernel((!options.kernel).into());
            attr.set_exclude_hv(1);
            attr.set_exclude_guest(1);
            attr.set_inherit(options.inherit.into());
            attr.set_disabled((options.on_exec && leads).into());
            attr.set_enable_on_exec((options.on_exec && leads).into());
            attr
        };
        let attrs = [of(PERF_COUNT_HW_INSTRUCTIONS, true), of(PERF_COUNT_HW_CPU_CYCLES, false)];
        let mut opened = Linux::default().open_group(&attrs, pid, cpu, None).ok()?;
        let leader = opened.remove(0);
        Some(Ipc { leader, _cycles: opened })
    }

    /// Whether the pair is on the counters beside a group, here and now.
    fn fits(&self, options: &Options) -> Option<bool> {
        let e_cores = self.pmu == E_CORES;
        let own = Options {
            target: Target::This,
            inherit: false,
            on_exec: false,
            no_rdpmc: true,
            cores: if e_cores { CoreKind::Efficiency } else { CoreKind::Automatic },
            level: if e_cores { 0 } else { options.level },
            source: SourceKind::Counters,
            ..*options
        };
        let group = TopDown::open(&own).ok()?;
        let ipc = self.open(&own)?;
        let counts = ipc.read()?;
        drop(group);
        Some(counts.running_ns > 0 && counts.running_ns == counts.enabled_ns)
    }
}
