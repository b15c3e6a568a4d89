//! Opening a handle: which PMU, down to which level, and the source of its samples.
#![forbid(unsafe_code)]

use super::level_1::{beside_registers, measure_level_1};
use super::{AnySource, Handle, Info, POOL, Path, State, hybrid, second};
use crate::budget::BudgetSettings;
use crate::detect::no_subtree;
use crate::detect::{self, Plan, Pmu};
use crate::error::{Error, Reason, Result, TD_ENOTCOUNTING};
use crate::group::{Group, PATIENCE, PlainGroup, Relieved, Spare};
use crate::model::metrics::TD_NODE_NONE;
use crate::model::p_counters::SLOTS_P;
use crate::model::{self, Counting, Model};
use crate::options::{Corrections, Options, SourceKind, Target};
use crate::sample::{Base, Head, Sample, TD_SAMPLE_SIMULATED};
use crate::source::Source;
use crate::source::plain::Plain;
use crate::source::simulated::{SimulatedCounters, SimulatedRegisters};
use crate::source::windowed::Windowed;
use crate::sys::cpu::{self, Identity};
use crate::sys::numbers::contains;
use crate::sys::signals::Blocked;
use crate::sys::{Kernel, Linux, identity, rseq, thread};
use std::iter::once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Opens a handle on the kernel that runs this process.
pub(crate) fn open(options: &Options, _: &Blocked) -> Result<Handle> {
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
    let plain = options.source == SourceKind::Counters || options.e_cores;
    let of_task = matches!(options.target, Target::Task(_) | Target::TaskOn(..));
    if options.on_exec && !(plain && of_task) {
        return Err(Error::invalid("`on_exec` is for plain counters of another thread (`Target::Task`)"));
    }
    if options.off && !(plain && options.target != Target::This) {
        return Err(Error::invalid("`off` is for plain counters of another thread, or of a CPU"));
    }
    let on_cpu = matches!(options.target, Target::TaskOn(..));
    if options.record_slots > 0 && !(plain && on_cpu && options.inherit) {
        return Err(Error::invalid(
            "`record_slots` is for inherited plain counters of another thread on a CPU (`Target::TaskOn`)",
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

impl Info {
    fn new(options: &Options, model: &Model, level: u32) -> Info {
        Info {
            path: Path::Simulated,
            level,
            counters: 0,
            slots_per_cycle: model.slots_per_cycle,
            cpu: "simulated".into(),
            pmu: "simulated".into(),
            core: model.core.into(),
            note: Reason::default(),
            max_error_ppm: or_a_hundredth(options.max_error_ppm),
            max_overhead_ppm: or_a_hundredth(options.max_overhead_ppm),
            windows: 0,
            windows_ns: 0,
        }
    }

    fn budget_settings(&self) -> BudgetSettings {
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

pub(crate) fn level_of(
    options: &Options,
    most: u32,
    what: &dyn std::fmt::Display,
    why: &'static str,
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
                .why(why)
                .remedy(format!("open with level {most}, or 0 for the deepest{in_turns}")))
        }
    }
}

/// The row of the CPU that is to be simulated, with its place.
fn simulated(options: &Options) -> Result<(u32, &'static Model)> {
    let (row, model) = match options.core {
        "" => (model::SIMULATED, model::at(model::SIMULATED).expect("a fixed row")),
        core => model::named(core).ok_or_else(|| unknown_core(core))?,
    };
    match options.subtree {
        TD_NODE_NONE => Ok((row, model)),
        node => model::with_subtree(model, node).ok_or_else(|| no_subtree(model.core, Some(model))),
    }
}

/// Ends the names of P-cores by general counters.
const BY_COUNTERS: &str = ", by counters";
/// Ends those of P-cores by general counters without what corrects them.
const FEWER_COUNTERS: &str = ", fewer counters";
/// Ends those of registers without what corrects them.
const ALONE: &str = ", registers alone";
/// Is in those of sources as they are.
const BARE: &str = ", bare";

pub(crate) fn unknown_core(name: &str) -> Error {
    // (td_last_error has no room for all; those that count a subtree are chosen by td_options.subtree, too, and those of hybrid CPUs
    // are two of the others)
    let another =
        |core: &str| [BY_COUNTERS, FEWER_COUNTERS, ALONE, BARE].iter().any(|word| core.contains(word));
    let listed = |core: &&str| is_default(core) && !another(core) && !core.contains(" and ");
    let names: Vec<_> = model::cores().map(|core| core.core).filter(listed).collect();
    Error::invalid(format!("no core '{name}' can be simulated")).remedy(format!(
        "use a name of `topdown list`: {}, or made-up core; of P-cores also with '{BY_COUNTERS}'",
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

fn is_default(core: &str) -> bool {
    model::named(core).is_some_and(|(_, row)| row.subtree() == TD_NODE_NONE)
}

fn simulate(options: &Options, (row, model): (u32, &'static Model), handle: Handle) -> Result<Box<State>> {
    if options.target != Target::This || options.inherit || options.kernel || options.e_cores {
        return Err(Error::errno(
            libc::ENOTSUP,
            "the simulated PMU counts for the thread that opens it, in user mode",
        )
        .remedy(
            "leave target, TD_FLAG_INHERIT, TD_FLAG_KERNEL and TD_FLAG_E_CORES out with TD_FLAG_SIMULATE",
        ));
    }
    let tree = model::tree_of(row as u8).expect("a row with a tree");
    let level = level_of(options, model.levels(), &model.core, "")?;
    let info = Info {
        counters: model::counters_down_to(row as u8, level as u8) as u32,
        note: Reason::new("simulated (TD_FLAG_SIMULATE)").why("the numbers say nothing about this machine"),
        ..Info::new(options, model, level)
    };
    let width = if model.slots_per_cycle == 0 { 8 } else { model.slots_per_cycle }; // (some width)
    let source = if tree.takes_counters() {
        let counters = SimulatedCounters::new(tree.per_cycle, width);
        AnySource::SimulatedCounters(Plain::new(counters, handle.shared(), info.head(row))?)
    } else {
        let registers = SimulatedRegisters::new(level, width);
        let (head, settings) = (info.head(row), info.budget_settings());
        AnySource::SimulatedRegisters(Windowed::new(registers, handle.shared(), head, settings)?)
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
    }
    Ok(state)
}

/// The only kind of core, or the one that the options tell; of a hybrid CPU else the P-cores.
fn measure_one_kind(options: &Options, linux: Linux, cpu: Identity, handle: Handle) -> Result<Box<State>> {
    let registers = match options.source {
        _ if options.e_cores || options.subtree != TD_NODE_NONE => None,
        SourceKind::Registers => Some(detect::pmu(&linux, &cpu)?),
        SourceKind::Counters => None,
        SourceKind::Automatic => registers(&linux, &cpu, options)?,
    };
    let Some(registers) = registers else {
        return measure_by_deepest(options, linux, cpu, handle);
    };
    let level = level_of(options, registers.level, &cpu, "")?;
    let mut why = Reason::default();
    // (of what counts for others it cannot be told whether it is free)
    if options.source == SourceKind::Automatic && options.target == Target::This {
        match measure_by_free_counters(options, level, &linux, &cpu, handle) {
            Ok(state) => return Ok(state),
            Err(taken) => why = Reason::new("registers are counted").why(taken.to_string()),
        }
    }
    let by_registers = measure_by_registers(options, linux, cpu.clone(), (registers, level), handle);
    let may_be_level_1 =
        options.source == SourceKind::Automatic && options.target == Target::This && options.level <= 1;
    let mut state = match by_registers {
        Err(taken) if may_be_level_1 && taken.code() == TD_ENOTCOUNTING => {
            why = Reason::new("level 1 alone").why(taken.reason().cause());
            measure_level_1(options, &linux, cpu, handle).map_err(|_| taken)?
        }
        state => state?,
    };
    if state.info.note == Reason::default() {
        state.info.note = why;
    }
    Ok(state)
}

/// The PMU with SLOTS and PERF_METRICS; None: there are general counters alone.
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

/// CPU time in which a group of general counters that are free has counted.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

/// By SLOTS and PERF_METRICS, with counters beside them for what the published metrics take elsewhere, if such are free.
#[inline(never)]
fn measure_by_registers(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, level): (Pmu, u32),
    handle: Handle,
) -> Result<Box<State>> {
    check_target(&linux, &pmu, &cpu, options)?;
    let alone = |pmu: Pmu| {
        let bare = options.corrections == Corrections::Bare;
        let (row, model) = model::registers_alone((pmu.row, pmu.model), bare);
        Pmu { row, model, ..pmu }
    };
    if options.corrections == Corrections::Bare || pmu.model.moved().is_empty() {
        return measure_by_group(options, linux, cpu, (&alone(pmu), level), handle, PATIENCE);
    }
    let again = Linux { descriptors_from: options.descriptors_from };
    let beside = match options.corrections {
        Corrections::Counted => beside_are_free(options, &pmu, level),
        _ => Err(others_count()),
    };
    let beside = beside
        .and_then(|()| measure_by_group(options, linux, cpu.clone(), (&pmu, level), handle, AT_ONCE))
        .and_then(|state| unless_registers_took_turns(state, handle));
    beside.or_else(|why| {
        if why.code() != TD_ENOTCOUNTING {
            return Err(why);
        }
        let mut state = measure_by_group(options, again, cpu, (&alone(pmu), level), handle, PATIENCE)?;
        if state.info.note == Reason::default() {
            let what = "the intervals have slots that no counter is left for (INT_MISC.UOP_DROPPING)";
            state.info.note = Reason::new(what).why(why.to_string());
        }
        Ok(state)
    })
}

/// As `are_free`, of what counts beside the registers: of a group on others.
fn beside_are_free(options: &Options, pmu: &Pmu, level: u32) -> Result<()> {
    let linux = Linux { descriptors_from: options.descriptors_from };
    if options.target == Target::This && !options.on_exec || !pmu.covers(linux.cpu()) {
        return Ok(());
    }
    let own = Options { no_rdpmc: true, ..Options::default() };
    let (group, _) = Group::open(linux, pmu, level, &own, None, AT_ONCE)?;
    let always = group.had_its_turn_always();
    group.stop();
    if always? { Ok(()) } else { Err(others_count()) }
}

/// As `unless_it_took_turns`, of registers.
fn unless_registers_took_turns(mut state: Box<State>, handle: Handle) -> Result<Box<State>> {
    if let AnySource::Registers(source) = &mut state.source {
        if !source.counters().had_its_turn_always()? {
            source.counters().stop();
            source.free();
            return Err(others_count());
        }
        source.reset(handle.shared())?; // what has told that is not the program's
    }
    Ok(state)
}

fn measure_by_group(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, level): (&Pmu, u32),
    handle: Handle,
    patience: Duration,
) -> Result<Box<State>> {
    let (group, why) = Group::open(linux, pmu, level, options, Some(handle.control()), patience)?;
    let info = info_of(options, cpu, pmu, level, why);
    let (head, settings) = (info.head(pmu.row), info.budget_settings());
    let source = AnySource::Registers(Windowed::new(group, handle.shared(), head, settings)?);
    Ok(Box::new(State { info, row: pmu.row as u8, source }))
}

/// By the P-cores' general counters, if they give what the registers would, and nobody else needs them now.
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

/// In the first of these ways in which a group is on the counters all the while, or in the last. `always`: so is the last, or it fails.
pub(super) fn measure_in_a_way(
    options: &Options,
    cpu: &Identity,
    mut ways: impl ExactSizeIterator<Item = Result<(Pmu, Plan)>>,
    handle: Handle,
    always: bool,
) -> Result<Box<State>> {
    let of_another = matches!(options.target, Target::Task(_) | Target::TaskOn(..));
    let mut opened = Err(others_count());
    while let Some(way) = ways.next() {
        let (pmu, plan) = &way?;
        let is_last = ways.len() == 0;
        let (always, patience) = if is_last { (always, PATIENCE) } else { (true, AT_ONCE) };
        let free = if always && of_another { are_free(options, pmu, plan) } else { Ok(()) };
        let linux = Linux { descriptors_from: options.descriptors_from };
        opened = free
            .and_then(|()| measure_by_counters(options, linux, cpu.clone(), (pmu, plan), handle, patience))
            .and_then(|state| match always && !of_another {
                true => unless_it_took_turns(state, handle),
                false => Ok(state),
            });
        if opened.is_ok() {
            break;
        }
    }
    opened
}

/// A group that was on the counters all the while since it was opened.
fn unless_it_took_turns(mut state: Box<State>, handle: Handle) -> Result<Box<State>> {
    if let AnySource::Counters(source, _) = &mut state.source {
        if !source.counters().main().had_its_turn_always()? {
            source.counters().stop();
            source.free();
            let second = state.source.second();
            drop(state);
            second.into_iter().for_each(second::give_back);
            return Err(others_count());
        }
        source.reset(handle.shared())?; // what has told that is not the program's
    }
    Ok(state)
}

fn others_count() -> Error {
    Error::new(TD_ENOTCOUNTING, "others use general counters").why("this group took turns with theirs")
}

/// Whether nobody else needs the counters of this plan now. A group on a command that is yet to be executed shows nothing of that while
/// it is opened: one of this thread's tells in its place, if it runs on such a core. (Who opens groups on other threads may have some
/// on this one, which take nothing from those.)
fn are_free(options: &Options, pmu: &Pmu, plan: &Plan) -> Result<()> {
    let linux = Linux { descriptors_from: options.descriptors_from };
    if !pmu.covers(linux.cpu()) {
        return Ok(());
    }
    let (group, _) = PlainGroup::open(linux, pmu, plan, &Options::default(), None, AT_ONCE)?;
    let always = group.had_its_turn_always();
    group.stop();
    if always? { Ok(()) } else { Err(others_count()) }
}

/// By general counters: all levels, or level 1 if that alone fits them; on a core that has no registers, beside what others
/// count.
fn measure_by_deepest(options: &Options, linux: Linux, cpu: Identity, handle: Handle) -> Result<Box<State>> {
    let find = |level| -> Box<dyn ExactSizeIterator<Item = Result<(Pmu, Plan)>>> {
        if options.e_cores {
            return Box::new(once(detect::e_cores(&linux, &cpu, options.subtree, level)));
        }
        if options.subtree != TD_NODE_NONE {
            return Box::new(once(detect::subtree(&linux, &cpu, options.subtree, level)));
        }
        let ways = detect::ways(&linux, &cpu, options, level);
        if options.beside_registers { Box::new(ways.map(beside_registers)) } else { Box::new(ways) }
    };
    let mut ways = find(options.level).peekable();
    if let Some(Err(_)) = ways.peek() {
        ways.next().expect("the same")?;
    }
    let Some(Ok((pmu, plan))) = ways.peek() else { unreachable!("there is a way") };
    let (most, unproven, no_deeper) = (pmu.level, plan.unproven, plan.no_deeper);
    let may_be_level_1 = options.level == 0 && options.subtree == TD_NODE_NONE && most > 1;
    let own = options.target == Target::This && !options.e_cores;
    let only_source = options.source == SourceKind::Automatic && options.target == Target::This;
    let always = may_be_level_1 && (options.on_exec || only_source && !unproven);
    let all = measure_in_a_way(options, &cpu, ways, handle, always)
        .map_err(|taken| detect::with_smt_off(&linux, &cpu, taken));
    let (mut state, no_deeper) = match all {
        Err(why) if may_be_level_1 => {
            let level_1 = Options { level: 1, ..*options };
            let state = measure_in_a_way(&level_1, &cpu, find(1), handle, false);
            let state = state.or_else(|taken| match own && taken.code() == TD_ENOTCOUNTING {
                true => measure_level_1(options, &linux, cpu, handle).map_err(|_| taken),
                false => Err(taken),
            })?;
            (state, why.reason().cause())
        }
        state => (state?, no_deeper.into()),
    };
    if options.level == 0
        && state.info.level == 1
        && !no_deeper.is_empty()
        && state.info.note == Reason::default()
    {
        state.info.note = Reason::new("level 1 alone").why(no_deeper);
    }
    Ok(state)
}

/// The plans that were proved in this process, by the PMU's row: a proof beside open groups of the same plan might get no turn.
static PROVED: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

/// Of a row a plan is known by what leads it and by how many follow.
fn bit_of(plan: &Plan) -> u32 {
    1 << (plan.members.len() % 16 + if plan.leader.event == SLOTS_P { 16 } else { 0 })
}

fn is_proved(pmu: &Pmu, plan: &Plan) -> bool {
    PROVED[pmu.row as usize % PROVED.len()].load(Ordering::Relaxed) & bit_of(plan) != 0
}

fn proved(pmu: &Pmu, plan: &Plan) {
    PROVED[pmu.row as usize % PROVED.len()].fetch_or(bit_of(plan), Ordering::Relaxed);
}

/// By plain counters.
#[inline(never)]
pub(super) fn measure_by_counters(
    options: &Options,
    linux: Linux,
    cpu: Identity,
    (pmu, plan): (&Pmu, &Plan),
    handle: Handle,
    patience: Duration,
) -> Result<Box<State>> {
    let level = level_of(options, pmu.level, &cpu, plan.no_deeper)?;
    check_target(&linux, pmu, &cpu, options)?;
    let shows_itself = options.target == Target::This && !options.inherit && !options.no_rdpmc;
    if (plan.leader.event == SLOTS_P || plan.unproven) && !shows_itself && !is_proved(pmu, plan) {
        // that group shows nothing of itself: another one is proved in its place
        let plain = Options { descriptors_from: options.descriptors_from, ..Options::default() };
        let linux = Linux { descriptors_from: options.descriptors_from };
        PlainGroup::open(linux, pmu, plan, &plain, Some(handle.control()), patience)?.0.stop();
        proved(pmu, plan);
    }
    let (group, why) = PlainGroup::open(linux, pmu, plan, options, Some(handle.control()), patience)?;
    let mut info = Info { counters: plan.general_counters(), ..info_of(options, cpu, pmu, level, why) };
    if plan.leader.by_cycle {
        info.slots_per_cycle = plan.slots_each as u32; // which on arm64 the kernel may tell alone
    }
    if options.on_exec {
        info.note = Reason::default(); // nobody expects that another way
    }
    let head = info.head(pmu.row);
    let wanted = Spare::of(pmu, plan, options);
    let second = if wanted.is_some() && info.path == Path::Rdpmc { second::take(handle).ok() } else { None };
    let place = second.map(|second| (second.shared_for_ever(), second.control()));
    let group = Relieved::new(group, wanted, place);
    let source = Plain::new(group, handle.shared(), head).inspect_err(|_| {
        second.into_iter().for_each(second::give_back);
    })?;
    let source = AnySource::Counters(source, second);
    Ok(Box::new(State { info, row: pmu.row as u8, source }))
}

/// `why`: it is read by read(2); none if by RDPMC.
pub(super) fn info_of(options: &Options, cpu: Identity, pmu: &Pmu, level: u32, why: Option<Reason>) -> Info {
    Info {
        path: if why.is_none() { Path::Rdpmc } else { Path::Read },
        cpu: cpu.name,
        pmu: pmu.name.into(),
        note: why.unwrap_or_default(),
        ..Info::new(options, pmu.model, level)
    }
}

/// One point, or one per cent, unless told otherwise.
fn or_a_hundredth(ppm: u32) -> u32 {
    if ppm == 0 { 10_000 } else { ppm }
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
            "choose one of these, or measure {} TD_FLAG_E_CORES",
            if options.e_cores { "a P-core, without" } else { "an E-core, with" }
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TopDown, decode_l1, decode_tree};

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
            "V1, N2, V2",
            "Skylake or Cascade Lake",
            "Skymont",
            "Golden or Raptor Cove",
        ] {
            assert!(unknown.contains(word), "{unknown}");
        }
        assert!(unknown.len() < 500, "{}: td_last_error has no room for more", unknown.len());
    }

    #[test]
    fn who_wants_a_level_that_no_group_holds_is_told_what_has_it_in_turns() {
        let open = |core, level| {
            let options = Options { simulate: true, core, level, ..Options::default() };
            TopDown::open(&options).err().unwrap().to_string()
        };
        assert!(
            open("Zen 4", 2).contains("open with level 1, or 0 for the deepest; regions under"),
            "{}",
            open("Zen 4", 2)
        );
        assert!(open("Crestmont", 3).contains("TOPDOWN_LEVEL=3"));
        assert!(open("Neoverse V1", 2).ends_with("for the deepest"), "{}", open("Neoverse V1", 2));
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
        assert_eq!(latency, ("Skymont, fetch latency".into(), 3, 8));
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
