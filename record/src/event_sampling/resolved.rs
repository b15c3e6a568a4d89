//! A condition as events of the PMUs of this machine that have auto counter reload.
#![forbid(unsafe_code)]

use super::samples_of::SamplesOf;
use super::written::{ConditionText, EventText, Periods};
use crate::records::CallGraph;
use perf_event_open_sys::bindings::perf_event_attr;
use topdown_seam::attr::{self, Word};
use topdown_seam::sysfs::{Sysfs, SysfsPmu};
use topdown_seam::terms;

/// PMUs of cores.
const CORES: [&str; 4] = ["cpu", "cpu_core", "cpu_atom", "cpu_lowpower"];
/// What the kernel lists in `format/` of a PMU whose counters can be reloaded.
const MASK: &str = "acr_mask";
/// perf's names of events that sysfs calls otherwise.
const ALIASES: [(&str, &str); 2] = [("cycles", "cpu-cycles"), ("branches", "branch-instructions")];
/// Events that the kernel counts itself.
const SOFTWARE: [&str; 14] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "faults",
    "minor-faults",
    "major-faults",
    "context-switches",
    "cs",
    "cpu-migrations",
    "migrations",
    "alignment-faults",
    "emulation-faults",
    "cgroup-switches",
    "bpf-output",
];
/// How often events happen in a cycle, at most, of which that is known, by the names of sysfs.
const FASTEST: [(&str, f64); 2] = [("cpu-cycles", 1.0), ("instructions", 8.0)];
/// Cycles in a second, at most.
const CLOCK: f64 = 5e9;

/// An event of a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub config: u64,
    pub config1: u64,
}

/// Codes of off-core responses, for which there are two extra registers (Linux, arch/x86/events/intel/core.c).
const OFFCORE: [u64; 4] = [0x2a, 0x2b, 0xb7, 0xbb];

impl Config {
    /// Whether both have their values of extra registers at the same time: one of each register, but for off-core responses.
    pub fn goes_with(&self, other: &Config) -> bool {
        let code = |event: &Config| event.config & 0xff;
        let (is_extra, is_same) = (self.config1 != 0 && other.config1 != 0, code(self) == code(other));
        !(is_extra && is_same) || self.config1 == other.config1 || OFFCORE.contains(&code(self))
    }
}

/// What samples on one PMU.
#[derive(Clone, Debug)]
pub(crate) struct PmuSampling {
    pub name: &'static str,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// CPUs that have it, if not all do.
    pub cpus: Option<String>,
    pub(super) sampled: Config,
    /// `perf_event_attr.precise_ip`.
    pub(super) precise_ip: u64,
    /// Samples tell the retire latency, where the kernel gives it.
    pub(super) is_timed: bool,
    /// Of the kernel, too.
    pub(super) kernel: bool,
    pub(super) callers: CallGraph,
    /// What makes it a condition; none: each overflow is a sample.
    pub(super) reload: Option<Reload>,
    /// From one sample to the next it counts another number now and then, so much on average: no program keeps pace with it.
    pub(super) is_random: bool,
    /// There is a counter for a second one, which counts all.
    pub(super) is_counted_beside: bool,
}

/// An event beside the one that samples: each overflow of one reloads the other's counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reload {
    pub other: Config,
    /// Instructions: what the test of the PMU counts.
    pub instructions: Config,
    /// What makes an event the one that the other reloads, and one that is reloaded by either.
    pub masks: [u64; 2],
}

/// What is sampled, on this machine.
#[derive(Clone, Debug)]
pub(crate) struct SamplingRule {
    pub of: SamplesOf,
    /// The event that samples, as users call it.
    pub event: String,
    pub periods: Periods,
    pub pmus: Vec<PmuSampling>,
    /// PMUs of cores that are not sampled.
    pub without: Vec<&'static str>,
}

/// What is here to be looked at.
pub(super) struct MachineFacts<'a> {
    pub sysfs: &'a Sysfs,
    /// The kernel's release, and the CPU's name.
    pub kernel: &'a str,
    pub cpu: &'a str,
    /// kernel.perf_event_max_sample_rate, if it can be read.
    pub max_sample_rate: Option<f64>,
}

pub(super) fn core_pmus(sysfs: &Sysfs) -> Vec<(&'static str, SysfsPmu)> {
    let pmu = |name: &&'static str| sysfs.pmu(name).filter(|pmu| pmu.name() == *name).map(|pmu| (*name, pmu));
    CORES.iter().filter_map(pmu).collect()
}

/// Why a mask would be ignored, and every sample taken whatever holds.
fn no_reload(machine: &MachineFacts, pmus: &[&'static str]) -> String {
    let pmus = if pmus.is_empty() {
        "there is no PMU of cores".into()
    } else {
        format!("{} here has none", pmus.join(", "))
    };
    format!(
        "--where needs auto counter reload (format/{MASK} of a PMU in /sys/bus/event_source/devices): {pmus}. This is {}, Linux {}. \
         CPUs that have it: the E-cores of Lunar, Arrow and Panther Lake and Clearwater Forest from Linux 6.16 on, Diamond Rapids from \
         7.1 on. On others record without --where",
        machine.cpu, machine.kernel
    )
}

/// The values of terms are whole numbers: of others the parser of terms takes what it can.
fn numbers_are_whole(terms: &str) -> Result<(), String> {
    let is_number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).is_ok() && !digits.starts_with('+'),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok(),
    };
    let wrong =
        terms.split(',').find(|term| term.split_once('=').is_some_and(|(_, value)| !is_number(value)));
    wrong.map_or(Ok(()), |term| Err(format!("'{term}' has no number")))
}

fn resolve(pmu: &SysfsPmu, kind: u32, text: &EventText) -> Result<Config, String> {
    numbers_are_whole(&text.terms)?;
    let alias = |term: &str| {
        let known = ALIASES.iter().find(|(name, _)| *name == term && pmu.event(name).is_none());
        known.map_or(term, |(_, other)| *other).to_string()
    };
    let terms: Vec<String> = text.terms.split(',').map(alias).collect();
    let mut attr = attr::new(kind);
    let named = terms::apply(pmu, &terms.join(","), &mut attr).map_err(|unresolved| {
        if SOFTWARE.contains(&&*text.terms) {
            return format!("{} is a software event, which no counter counts and none can reload", text.terms);
        }
        match unresolved.reason() {
            Some(reason) => format!("{}: {reason}", text.terms),
            None => format!(
                "{} is no event of {}: those of /sys/bus/event_source/devices/{}/events are, and terms such as event=0xc5,umask=0",
                text.terms,
                pmu.name(),
                pmu.name()
            ),
        }
    })?;
    let others = [Word::Config2, Word::Config3, Word::Config4].iter().any(|word| word.of(&attr) != 0);
    let samples = text.terms.split(',').any(|term| term.starts_with("period") || term.starts_with("freq"));
    if named.is_some() || others || samples {
        return Err(format!(
            "{}: what does not select an event has no place here (--period has the period)",
            text.terms
        ));
    }
    Ok(Config { config: Word::Config.of(&attr), config1: Word::Config1.of(&attr) })
}

/// The condition on one PMU; None as the second: it has no auto counter reload.
fn on_pmu(
    name: &'static str,
    pmu: &SysfsPmu,
    sysfs: &Sysfs,
    written: &ConditionText,
) -> Result<PmuSampling, String> {
    let kind = pmu.kind().ok_or_else(|| format!("{name} has no type in sysfs"))?;
    let mask = |bits: u64| -> Result<u64, String> {
        let mut attr = attr::new(kind);
        let set = terms::apply(pmu, &format!("{MASK}={bits:#x}"), &mut attr);
        match Word::Config2.of(&attr) {
            word if set.is_ok() && word != 0 => Ok(word),
            _ => Err(format!("format/{MASK} of {name} is not in config2, as it is in Linux up to 7.3")),
        }
    };
    let instructions = EventText { pmu: None, terms: "instructions".into() };
    let of = |text: &EventText| resolve(pmu, kind, text);
    let (sampled, other) = (of(&written.sampled)?, of(&written.other)?);
    if sampled == other {
        return Err(format!("{} and {} are one event", written.sampled.terms, written.other.terms));
    }
    // (bit k is the group's event k. The first is reloaded when the second overflows, and the second when either does, without an
    // interrupt of its own: so the first alone samples, where it comes first)
    let masks = [mask(0b10)?, mask(0b11)?];
    let instructions = of(&instructions)?;
    let reload = Some(Reload { other, instructions, masks });
    let cpus = sysfs.cpus_with(kind);
    Ok(PmuSampling {
        name,
        kind,
        cpus,
        sampled,
        precise_ip: 0,
        is_timed: false,
        reload,
        is_random: false,
        is_counted_beside: true,
        kernel: false,
        callers: CallGraph::FramePointers,
    })
}

/// The shortest period of an event that has no more samples than half of what the kernel permits; 0: it is not known how often the
/// event happens.
fn least_period(event: &str, machine: &MachineFacts) -> u64 {
    let name = ALIASES.iter().find(|(name, _)| *name == event).map_or(event, |(_, other)| other);
    let each = FASTEST.iter().find(|(known, _)| *known == name);
    match (each, machine.max_sample_rate) {
        (Some((_, per_cycle)), Some(rate)) => (2.0 * CLOCK * per_cycle / rate.max(1.0)) as u64,
        _ => 0,
    }
}

impl SamplingRule {
    /// Of a text. `period`: of the event that samples, if it was given beside it.
    ///
    /// # Errors
    /// What is wrong with the text, or missing in the machine.
    pub(super) fn of(
        text: &str,
        period: Option<u64>,
        machine: &MachineFacts,
    ) -> Result<SamplingRule, String> {
        let all = core_pmus(machine.sysfs);
        // (what is wrong with a text is wrong on each machine)
        let is_pmu = |name: &str| CORES.contains(&name) || machine.sysfs.pmu(name).is_some();
        let written = ConditionText::parse(text, &is_pmu)?;
        let wrong = |why: String| format!("--where '{}': {why}", text.trim());
        if written.period.is_some() && period.is_some() && written.period != period {
            return Err(wrong("it has another period than --period".into()));
        }
        let given = written.period.or(period);
        let least = least_period(&written.sampled.terms, machine);
        let periods = Periods::of(written.ratio, given, least).map_err(wrong)?;
        let (with, without): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, pmu)| pmu.format(MASK).is_some());
        let without: Vec<&'static str> = without.into_iter().map(|(name, _)| name).collect();
        if with.is_empty() {
            return Err(no_reload(machine, &without));
        }
        let named: Vec<&str> =
            [&written.sampled, &written.other].iter().filter_map(|event| event.pmu.as_deref()).collect();
        if let [one, other] = named[..] {
            if one != other {
                return Err(wrong(format!(
                    "{one} and {other} are two PMUs: counters of one reload each other"
                )));
            }
        }
        let chosen: Vec<_> =
            with.iter().filter(|(name, _)| named.iter().all(|named| named == name)).collect();
        if let (true, Some(named)) = (chosen.is_empty(), named.first()) {
            let with: Vec<&str> = with.iter().map(|(name, _)| *name).collect();
            return Err(wrong(format!(
                "{named} has no auto counter reload (format/{MASK}), of this machine's PMUs {} has",
                with.join(", ")
            )));
        }
        let pmus = chosen.into_iter().map(|(name, pmu)| on_pmu(name, pmu, machine.sysfs, &written));
        let pmus = pmus.collect::<Result<Vec<PmuSampling>, String>>().map_err(wrong)?;
        let left_out =
            with.iter().map(|(name, _)| *name).filter(|name| pmus.iter().all(|pmu| pmu.name != *name));
        let without = without.into_iter().chain(left_out).collect();
        let of = SamplesOf::Condition { condition: written.text };
        Ok(SamplingRule { of, event: written.sampled.terms, periods, pmus, without })
    }
}

/// Sets what the group's events have in common.
pub(super) fn attr_of(kind: u32, event: Config, mask: u64) -> perf_event_attr {
    let mut attr = perf_event_attr { type_: kind, config: event.config, ..perf_event_attr::default() };
    Word::Config1.set(&mut attr, event.config1);
    Word::Config2.set(&mut attr, mask);
    attr
}

#[cfg(test)]
mod tests;
