//! Opening a handle: which PMU, down to which level, and the source of its samples.
#![forbid(unsafe_code)]

use super::any_source::AnySource;
use super::by_counters::measure_by_counters;
use super::by_registers::measure_by_registers;
use super::info::{Info, level_of};
use super::level_1::{beside_registers, measure_level_1};
use super::ways::{AT_ONCE, measure_in_a_way, unless_it_took_turns};
use super::{Handle, POOL, Path, State, hybrid};
use crate::detect::{self, Pmu};
use crate::error::{Error, Reason, Result};
use crate::model::metrics::TD_NODE_NONE;
use crate::model::{self, Counting, Model, NoDeeper};
use crate::options::{Options, SourceKind, Target};
use crate::plan::{CoreCounters, Means, Plan, attempts};
use crate::source::plain::Plain;
use crate::source::simulated::{SimulatedCounters, SimulatedRegisters};
use crate::source::windowed::WindowedSource;
use crate::sys::cpu::{self, Identity};
use crate::sys::signals::SignalBlock;
use crate::sys::{Linux, rseq, thread};
use std::iter::once;
use std::sync::atomic::Ordering;

/// Opens a handle on the kernel that runs this process.
pub(crate) fn open(options: &Options, _: &SignalBlock) -> Result<Handle> {
    let simulated = if options.simulate { Some(simulated(options)?) } else { None };
    let deepest = simulated.map_or(0, |(_, model)| model.levels()).max(model::DEEPEST);
    if options.level > deepest {
        let level = options.level;
        return Err(Error::invalid(format!("level {level} is none: 0 (the deepest), or 1 to {deepest}")));
    }
    if let Target::Task(id @ ..=0) | Target::TaskOn(id @ ..=0, _) = options.target {
        return Err(Error::invalid(format!(
            "{id} is no thread id; for the calling thread use TD_TARGET_SELF"
        )));
    }
    let plain = options.source == SourceKind::Counters || options.of_e_cores();
    let of_task = matches!(options.target, Target::Task(_) | Target::TaskOn(..));
    if options.on_exec && !(plain && of_task) {
        return Err(Error::invalid(
            "`on_exec` is for general-purpose counters of another thread (`Target::Task`)",
        ));
    }
    if options.off && !(plain && options.target != Target::This) {
        return Err(Error::invalid("`off` is for general-purpose counters of another thread, or of a CPU"));
    }
    let of_threads =
        matches!(options.target, Target::TaskOn(..)) && options.inherit && !options.record_cgroups;
    let of_cgroups = matches!(options.target, Target::Cpu(_)) && options.record_cgroups;
    if options.record_slots > 0 && !(plain && (of_threads || of_cgroups)) {
        return Err(Error::invalid(
            "`record_slots` is for inherited general-purpose counters of another thread on a CPU (`Target::TaskOn`), or with \
             `record_cgroups` for those of a CPU",
        ));
    }
    let handle = POOL.take().map_err(|e| {
        Error::errno(e.raw_os_error().unwrap_or(libc::ENOMEM), format!("no memory for a handle: {e}"))
    })?;
    handle.shared().present.store(1, Ordering::Relaxed);
    handle.shared().prepare();
    let state = match simulated {
        Some(simulated) => simulate(options, simulated, handle),
        None => measure(options, handle),
    };
    if state.is_err() {
        handle.shared().detach();
        POOL.give(handle);
    }
    handle.private().state.put(state?);
    handle.private().owner.store(thread::enroll(), Ordering::Relaxed);
    Ok(handle)
}

/// The row of the CPU that is to be simulated, with its place.
fn simulated(options: &Options) -> Result<(u32, &'static Model)> {
    let (row, model) = match options.core {
        "" => (model::SIMULATED, model::at(model::SIMULATED).expect("a fixed row")),
        core => model::named(core).ok_or_else(|| unknown_core(core))?,
    };
    match options.subtree {
        TD_NODE_NONE if options.group != 0 => detect::row_of_deep_group(&cpu::identify(), options.group),
        TD_NODE_NONE => Ok((row, model)),
        node => detect::row_of_subtree(model, node, options.level),
    }
}

pub(crate) fn unknown_core(name: &str) -> Error {
    // (td_last_error has no room for all; those that count a subtree are chosen by td_options.subtree, too, and those of hybrid CPUs
    // are two of the others)
    let names: Vec<_> = model::names_of_cores().collect();
    Error::invalid(format!("no core '{name}' can be simulated")).remedy(format!(
        "use a name of `topdown list`: {}, or made-up core; of P-cores also with ', by counters'",
        enumerated(&names)
    ))
}

/// "Zen 4, 5, Neoverse V1, V2": a first word that a name has in common with the one before it is not said again.
fn enumerated(names: &[&str]) -> String {
    let first = |name: &str| name.split_once(' ').map_or("", |(first, _)| first).to_string();
    let mut text = String::new();
    for (place, name) in names.iter().enumerate() {
        let common = first(name);
        let said = place > 0 && !common.is_empty() && first(names[place - 1]) == common;
        text += if place > 0 { ", " } else { "" };
        text += if said { &name[common.len() + 1..] } else { name };
    }
    text
}

fn simulate(options: &Options, (row, model): (u32, &'static Model), handle: Handle) -> Result<Box<State>> {
    if options.target != Target::This || options.inherit || options.kernel || options.of_e_cores() {
        return Err(Error::errno(
            libc::ENOTSUP,
            "the simulated PMU counts for the thread that opens it, in user mode",
        )
        .remedy("leave target, TD_FLAG_INHERIT, TD_FLAG_KERNEL and TD_CORES_E out with TD_FLAG_SIMULATE"));
    }
    let tree = model::tree_of(row as u8).expect("a row with a tree");
    let level = level_of(options, model.levels(), &model.core, NoDeeper::default())?;
    let info = Info {
        counters: model::counters_down_to(row as u8, level as u8) as u32,
        note: Reason::new("simulated (TD_FLAG_SIMULATE)").why("the numbers say nothing about this machine"),
        ..Info::new(options, model, level)
    };
    let width = model::simulated_width(model.slots_per_cycle);
    let source = if tree.takes_counters() {
        let counters = SimulatedCounters::new(tree.per_cycle, width);
        AnySource::SimulatedCounters(Plain::new(counters, handle.shared(), info.head(row))?)
    } else {
        let registers = SimulatedRegisters::new(level, width);
        let (head, settings) = (info.head(row), info.budget_settings());
        AnySource::SimulatedRegisters(WindowedSource::new(registers, handle.shared(), head, settings)?)
    };
    Ok(Box::new(State { info, row: row as u8, source }))
}

fn measure(options: &Options, handle: Handle) -> Result<Box<State>> {
    let cpu = cpu::identify();
    let linux = Linux { descriptors_from: options.descriptors_from };
    if !hybrid::is_wanted(options, &cpu) {
        return measure_one_kind(options, linux, cpu, handle);
    }
    let not_both = match hybrid::measure(options, &linux, &cpu, handle) {
        Ok(state) => return Ok(state),
        Err(why) => why,
    };
    let mut state = measure_one_kind(options, linux, cpu, handle)?;
    if state.info.path == Path::Rdpmc || state.info.note == Reason::default() {
        state.info.note = Reason::new("P-cores alone are counted").why(not_both.to_string());
        state.info.notes_path = false;
    }
    Ok(state)
}

/// The only kind of core, or the one that the options tell; of a hybrid CPU else the P-cores. In the first way that succeeds.
fn measure_one_kind(options: &Options, linux: Linux, cpu: Identity, handle: Handle) -> Result<Box<State>> {
    let mut registers = match options.source {
        _ if options.of_e_cores() || options.of_part() => None,
        SourceKind::Registers => Some(detect::pmu(&linux, &cpu)?),
        SourceKind::Counters => None,
        SourceKind::Automatic => registers(&linux, &cpu, options)?,
    };
    let (mut ways, mut no_deeper) = (None, NoDeeper::default());
    let (found, level) = match &registers {
        Some(pmu) => (CoreCounters::Registers, level_of(options, pmu.level, &cpu, no_deeper)?),
        None => {
            let mut all = ways_of(options, options.level, &linux, &cpu).peekable();
            if let Some(Err(_)) = all.peek() {
                all.next().expect("the same")?;
            }
            let Some(Ok((pmu, plan))) = all.peek() else { unreachable!("there is a way") };
            no_deeper = plan.no_deeper;
            let found = CoreCounters::General { deepest: pmu.level, proven: !plan.unproven };
            ways = Some(all);
            (found, options.level)
        }
    };
    let (mut note, mut before) = (Reason::default(), None);
    for attempt in attempts(options, found) {
        let made = match attempt.means {
            Means::FreeCounters => measure_by_free_counters(options, level, &linux, &cpu, handle),
            Means::Registers => {
                let linux = Linux { descriptors_from: options.descriptors_from };
                let pmu = registers.take().expect("they were found, and are tried once");
                measure_by_registers(options, linux, cpu.clone(), (pmu, level), handle)
            }
            Means::Counters(level) => {
                let options = Options { level, ..*options };
                let ways = ways.take().unwrap_or_else(|| ways_of(&options, level, &linux, &cpu).peekable());
                measure_in_a_way(&options, &cpu, ways, handle, attempt.always)
                    .map_err(|taken| detect::with_smt_off(&linux, &cpu, taken))
            }
            Means::BesideRegisters => measure_level_1(options, &linux, cpu.clone(), handle)
                .map_err(|error| before.take().unwrap_or(error)),
        };
        match made {
            Ok(mut state) => {
                if note == Reason::default()
                    && options.level == 0
                    && state.info.level == 1
                    && !no_deeper.is_empty()
                {
                    note = Reason::new("level 1 alone").why(no_deeper.to_string());
                }
                if state.info.note == Reason::default() {
                    state.info.note = note;
                }
                return Ok(state);
            }
            Err(failure) if attempt.gives_way_after(&failure) => {
                if !attempt.instead.is_empty() {
                    let why = match attempt.means {
                        Means::FreeCounters => failure.to_string(),
                        _ => failure.reason().cause(),
                    };
                    note = Reason::new(attempt.instead).why(why);
                }
                before = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    unreachable!("the last attempt gives way to none")
}

/// The ways to count by general-purpose counters, down to a level.
fn ways_of<'a>(
    options: &Options,
    level: u32,
    linux: &'a Linux,
    cpu: &'a Identity,
) -> Box<dyn ExactSizeIterator<Item = Result<(Pmu, Plan)>> + 'a> {
    if options.of_e_cores() {
        return Box::new(once(detect::e_cores(linux, cpu, options.subtree, level)));
    }
    if options.group != 0 {
        return Box::new(once(detect::deep_group(linux, cpu, options.group)));
    }
    if !options.nodes.is_empty() {
        return Box::new(once(detect::nodes(linux, cpu, &options.nodes)));
    }
    if options.subtree != TD_NODE_NONE {
        return Box::new(once(detect::subtree(linux, cpu, options.subtree, level)));
    }
    let ways = detect::ways(linux, cpu, options, level);
    if options.beside_registers { Box::new(ways.map(beside_registers)) } else { Box::new(ways) }
}

/// The PMU with SLOTS and PERF_METRICS; None: there are general-purpose counters alone.
fn registers(linux: &Linux, cpu: &Identity, options: &Options) -> Result<Option<Pmu>> {
    if model::of_cpu(cpu).is_some_and(|(_, row)| matches!(row.counting, Counting::Counters(_))) {
        return Ok(None);
    }
    match detect::pmu(linux, cpu) {
        // a virtual machine, or a kernel that is older than the CPU
        Err(why) if why.code() == -libc::ENODEV => {
            detect::counters(linux, cpu, options.level).map_err(|_| why)?;
            Ok(None)
        }
        pmu => pmu.map(Some),
    }
}

/// By the P-cores' general-purpose counters, if they give what the registers would, and nobody else needs them now.
#[inline(never)]
fn measure_by_free_counters(
    options: &Options,
    level: u32,
    linux: &Linux,
    cpu: &Identity,
    handle: Handle,
) -> Result<Box<State>> {
    let own = options.target == Target::This && !options.inherit && !options.no_rdpmc;
    if own && rseq::descriptor().is_none() {
        return Err(Error::errno(libc::ENOTSUP, "general counters are read in restartable sequences")
            .why("this C library does not register them")
            .remedy("glibc 2.35 or later does"));
    }
    let options = Options { level, ..*options };
    // (with fewer counters registers tell as much)
    let (pmu, plan) = detect::ways(linux, cpu, &options, level).next().expect("there is a way")?;
    let linux = Linux { descriptors_from: options.descriptors_from };
    let state = measure_by_counters(&options, linux, cpu.clone(), (&pmu, &plan), handle, AT_ONCE)?;
    unless_it_took_turns(state, handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::page::Times;
    use crate::{TD_SAMPLE_SIMULATED, TopDown, decode_l1, decode_tree};

    #[test]
    fn every_core_of_the_list_is_simulated_by_its_name_and_an_unknown_name_gets_the_list() {
        let mut levels = [0; 4];
        for core in model::cores() {
            let options = Options { simulate: true, core: core.core, ..Options::default() };
            let td = TopDown::open(&options).unwrap();
            let info = td.info().unwrap();
            assert_eq!((info.core.as_ref(), info.level), (core.core, core.level));
            let mut sample = td.read().unwrap();
            for _ in 0..1_000_000 {
                sample = if sample.slots < 1_000_000 { td.read().unwrap() } else { break };
            }
            let l1 = decode_l1(None, &sample).unwrap();
            let whole = l1.shares().iter().sum::<f64>() + l1.smt_contention;
            assert!(
                (whole - 1.0).abs() < 1e-9 && l1.shares().iter().all(|share| *share > 0.01),
                "{core:?} {l1:?}"
            );
            let nodes = decode_tree(None, &sample).unwrap();
            for (node, listed) in nodes.iter().zip(td.nodes().unwrap()) {
                assert_eq!((node.id, node.measured), (listed.id, listed.measured), "{core:?}");
                assert!(node.measured == 0 || node.value > 0.0, "{core:?} {node:?}");
            }
            levels[core.level as usize] += nodes.iter().filter(|node| node.measured == 1).count();
        }
        assert!(levels[1] > 10 && levels[2] > 100, "{levels:?}");
        let unknown = unknown_core("Graviton").to_string();
        for word in [
            "'Graviton'",
            "Zen 4, 5, 6",
            "hip08",
            "N3, V1, V2",
            "Skylake or Cascade Lake",
            "Skymont",
            "Golden or Raptor Cove",
        ] {
            assert!(unknown.contains(word), "{unknown}");
        }
        assert!(unknown.len() < 500, "{}: td_last_error has no room for more", unknown.len());
    }

    #[test]
    fn from_outside_a_simulated_core_counts_so_much_in_a_time_and_samples_the_same() {
        let time = Times { enabled: 2_000_000, running: 1_500_000 };
        // (each counter is rounded to its unit)
        let rounding = crate::read::MOST_COUNTERS as f64 / crate::source::simulated::WHOLE as f64;
        let mut alone = Vec::new();
        for core in model::cores() {
            let Ok(core) = crate::simulated_by_counters(core.core) else {
                alone.push(core.core);
                continue;
            };
            let td = TopDown::open(&Options { simulate: true, core, ..Options::default() }).unwrap();
            let sample = |ns| td.simulated_sample(ns, time).unwrap();
            let all = sample(1_000_000);
            let slots = 3_000_000 * u64::from(model::simulated_width(td.info().unwrap().slots_per_cycle));
            assert_eq!((all.time_enabled_ns, all.time_running_ns), (time.enabled, time.running));
            assert_eq!((all.slots, all.flags & TD_SAMPLE_SIMULATED), (slots, TD_SAMPLE_SIMULATED), "{core}");
            let of_level_1 = |from: u64| -> Vec<f64> {
                let nodes = decode_tree(Some(&sample(from)), &all).unwrap();
                nodes.iter().filter(|node| node.level == 1).map(|node| node.value).collect()
            };
            let events = crate::SampledEvents::of_core(core).unwrap();
            let sampled = events.shares(&events.simulated(1e6).unwrap()).unwrap();
            for (place, share) in of_level_1(0).into_iter().enumerate() {
                let others = [of_level_1(500_000)[place], sampled[place]];
                assert!(
                    others.iter().all(|other| (other - share).abs() < rounding),
                    "{core} {share} {others:?}"
                );
            }
        }
        alone.retain(|core| !core.contains(',')); // (of the others, one by counters stands for them)
        assert_eq!(alone, ["Panther Cove"]);
        assert_eq!(crate::simulated_by_counters("").unwrap(), "made-up core");
        let td = TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap();
        assert!(td.simulated_sample(1, time).unwrap_err().to_string().contains("PERF_METRICS"));
    }

    #[test]
    fn who_wants_a_level_that_no_group_holds_is_told_what_has_it_in_turns() {
        let open = |core, level| {
            let options = Options { simulate: true, core, level, ..Options::default() };
            TopDown::open(&options).err().unwrap().to_string()
        };
        assert!(
            open("Zen 4", 2).contains("set td_options.level to 1, or leave it out; regions under"),
            "{}",
            open("Zen 4", 2)
        );
        assert!(open("Crestmont", 3).contains("TOPDOWN_LEVEL=3"));
        assert!(open("Neoverse V1", 2).ends_with("or leave it out"), "{}", open("Neoverse V1", 2));
    }

    #[test]
    fn a_simulated_core_counts_the_subtree_that_is_asked_for() {
        let open = |core, subtree| {
            TopDown::open(&Options { simulate: true, core, subtree, ..Options::default() })
                .and_then(|td| td.info())
                .map(|info| (info.core.to_string(), info.level, info.counters))
        };
        let frontend = open("Zen 5", crate::TD_NODE_FRONTEND_BOUND).unwrap();
        assert_eq!(frontend, ("Zen 5, frontend bound".into(), 2, 5));
        assert_eq!(open("Zen 5", TD_NODE_NONE).unwrap(), ("Zen 5".into(), 1, 4));
        let latency = open("Skymont", crate::TD_NODE_IFETCH_LATENCY).unwrap();
        assert_eq!(latency, ("Skymont, ifetch latency".into(), 3, 8));
        let ampere = open("AmpereOneX", crate::TD_NODE_BACKEND_BOUND).unwrap();
        assert_eq!(ampere, ("AmpereOneX, backend bound".into(), 2, 6));
        let v3 = open("Neoverse V3", crate::TD_NODE_FRONTEND_BOUND).unwrap();
        assert_eq!(v3, ("Neoverse V3, frontend bound".into(), 2, 6));
        for core in ["Skymont", "Lion Cove and Skymont", "Lion Cove, by counters", "Cougar Cove and Darkmont"]
        {
            let refused = open(core, crate::TD_NODE_FRONTEND_BOUND).unwrap_err();
            assert_eq!(refused.code(), -libc::ENOTSUP);
            assert_eq!(open(core, crate::TD_NODE_IFETCH_LATENCY).is_ok(), core == "Skymont", "{core}");
        }
    }
}
