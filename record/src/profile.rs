//! What a recording says of each function.
#![forbid(unsafe_code)]

use crate::budget::Pace;
use crate::cpus::CpuTotals;
use crate::estimate::{
    Background, BurstTime, EstimatedShares, NoShares, SeenIn, SeenInAll, UnsharedWindows, shares,
};
use crate::event_sampling::{EventSampling, SamplesOf, Tally};
use crate::held::EventShare;
use crate::mean_latency::{LatencyTally, MeanLatency};
use crate::processes::PROCESS;
use crate::recording::{Burst, Recording};
use crate::records::CallGraph;
use crate::simulation::{BY_STOPS, BY_TIMER, SimulatedMixes};
use crate::sources::Sources;
use crate::statistics::proportion;
use crate::strata::{BurstCount, Stratum, ThreadInstant, evened};
use crate::symbols::{SourceLine, Symbol, printable};
use crate::unseen::Unseen;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use topdown::{SampledEvents, SampledNode, TD_NODE_RETIRING};
use topdown_report::ShareInterval;

mod call_stacks;
mod named;
mod threads;

use call_stacks::CallStacks;
pub use call_stacks::{CallStack, ProfiledSample, StackFrame};
use named::{NamedFrame, NamedStack, called, is_whole, named};
pub use threads::ProfiledThread;
use threads::processes_of;

/// Time and shares of a function, or of all.
#[derive(Clone, Debug)]
pub struct FunctionFigures {
    /// Its part of the CPU time in user mode, or in both modes if what the kernel does was recorded, too.
    pub time: ShareInterval,
    /// The same in nanoseconds.
    pub time_ns: u64,
    /// Bursts that began in it.
    pub bursts: usize,
    /// How its slots divide, or why that cannot be told.
    pub shares: Result<EstimatedShares, NoShares>,
    /// Of samples of an event, the retire latency of its instructions, if enough of them tell it.
    pub latency: Option<MeanLatency>,
}

/// A line of a function, in which something was seen.
#[derive(Clone, Debug)]
pub struct ProfiledLine {
    /// Path of the source file, as the compiler knew it.
    pub file: String,
    /// Its number.
    pub line: u32,
    /// Its part of the CPU time in user mode.
    pub time: ShareInterval,
    /// The same in nanoseconds.
    pub time_ns: u64,
    /// Bursts that began in it.
    pub bursts: usize,
    /// As of a function.
    pub latency: Option<MeanLatency>,
}

/// A function on one kind of core.
#[derive(Clone, Debug)]
pub struct ProfiledFunction {
    /// Its name, demangled.
    pub name: String,
    /// Its module has no name for it, and `name` says so.
    pub is_unnamed: bool,
    /// Name of the program or library.
    pub module: String,
    /// Path of the same.
    pub path: String,
    /// Place among [`Profile::cores`].
    pub core: usize,
    /// Of the function alone, without what was inlined into it, and wherever it was inlined itself.
    pub own: FunctionFigures,
    /// With what it calls, as far as callers are known.
    pub inclusive: FunctionFigures,
    /// Lines of the function alone as far as they are known, those of most time first.
    pub lines: Vec<ProfiledLine>,
}

impl ProfiledFunction {
    /// It is a process, which calls all that ran in it, or all processes of a name.
    #[must_use]
    pub fn is_process(&self) -> bool {
        self.module == PROCESS && self.path.is_empty()
    }
}

/// A kind of core, and all that ran on it.
#[derive(Clone, Debug)]
pub struct ProfiledCore {
    /// Its name.
    pub name: &'static str,
    /// The nodes of which shares are told.
    pub nodes: Vec<SampledNode>,
    /// Of all functions together.
    pub all: FunctionFigures,
    /// Windows with both ends anywhere.
    pub windows: usize,
    /// What a window has in excess at its start, as a share of the shorter windows; of the worst node.
    pub excess: f64,
    /// Why these events were counted and no others; empty: that needs no saying.
    pub note: String,
}

/// A recording, by function.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Kinds of cores on which something ran.
    pub cores: Vec<ProfiledCore>,
    /// Functions, those that waste most first.
    pub functions: Vec<ProfiledFunction>,
    /// Threads on each kind of core, those of most time first.
    pub by_thread: Vec<ProfiledThread>,
    /// CPU time of each stack, in nanoseconds.
    pub stacks: BTreeMap<CallStack, u64>,
    /// What was seen at each instant, in the order of time; none, if it is not known when that was.
    pub samples: Vec<ProfiledSample>,
    /// How long was recorded.
    pub elapsed: Duration,
    /// Bursts that were of their instants.
    pub bursts: usize,
    /// Threads that were seen.
    pub threads: usize,
    /// None: threads were recorded, not CPUs.
    pub cpus: Option<CpuTotals>,
    /// Threads (or CPUs) on which no counters could be opened, and why.
    pub refused: (usize, String),
    /// What threads did before they were sampled.
    pub unseen: Unseen,
    /// Threads whose time bursts tell, in the kernel, too: the kernel's part may be off.
    pub unclocked: usize,
    /// Threads whose time a timer tells.
    pub by_timer: usize,
    /// Processes that still ran when those that were waited for had ended.
    pub left_running: usize,
    /// Records for which there was no room.
    pub lost: u64,
    /// How often the kernel throttled samples, or let them go on.
    pub throttled: u64,
    /// Windows that were left out, since others took the counters, samples were throttled, or a record was lost.
    pub parted: u64,
    /// Bursts whose windows were left out, since an event counted more than there were slots.
    pub impossible: u64,
    /// Bursts per second and thread, and what limits them.
    pub pace: Pace,
    /// Samples were taken only where this held. A burst is one of them then, times are parts of the stretches in which it held, and
    /// nanoseconds are what the sampling event counted in them.
    pub held: Option<EventShare>,
    /// How slots divide is made up, and this told the time: there were no counters.
    pub simulated: Option<&'static str>,
    /// What was to tell callers.
    pub callers: CallGraph,
    /// Branch records were to tell callers, and none did.
    pub without_callers: bool,
    /// What the kernel does was recorded, but it does not show the addresses of its functions.
    pub kernel_is_hidden: bool,
    /// Sentences on what could not be read: the names that a JIT compiler has written, split DWARF, or the end of a recording.
    pub notes: Vec<String>,
    /// Lines of source files, once a view has read those that it shows.
    pub sources: Sources,
}

/// What is gathered of a function, or of all.
#[derive(Default)]
struct TimeTally {
    seen: SeenIn,
    time_ns: u64,
    bursts: usize,
    latency: LatencyTally,
}

/// What was seen in a line.
#[derive(Default)]
struct LineTally {
    time_ns: u64,
    bursts: usize,
    latency: LatencyTally,
}

/// What was seen in lines.
type SeenLines<'a> = BTreeMap<&'a SourceLine, LineTally>;

/// All time, of how many bursts of the same weight it is worth, and which part of all that ran it is at the least. Of a timer's any may be the
/// kernel's, and nobody knows which.
struct SampledWhole {
    time_ns: f64,
    bursts: f64,
    sampled: f64,
    unseen_ns: f64,
    by_timer: bool,
    latency: LatencyTally,
}

impl SampledWhole {
    fn of(recording: &Recording) -> SampledWhole {
        let weights = || recording.bursts.iter().map(|burst| burst.weight_ns as f64);
        let (sum, squares): (f64, f64) = (weights().sum(), weights().map(|weight| weight * weight).sum());
        let mut latency = LatencyTally::default();
        recording.bursts.iter().for_each(|burst| latency.add(burst.latency));
        let before = if recording.is_of_time() { recording.totals.unseen.ns as f64 } else { 0.0 };
        let unsampled = |(sampling, tally): &(EventSampling, Tally)| sampling.unsampled(tally, sum);
        let unseen = before + recording.sampling.as_ref().map_or(0.0, unsampled);
        SampledWhole {
            time_ns: sum,
            bursts: if squares > 0.0 { sum * sum / squares } else { 0.0 },
            sampled: if sum > 0.0 { sum / (sum + unseen) } else { 1.0 },
            unseen_ns: unseen,
            by_timer: recording.totals.is_by_timer(),
            latency,
        }
    }

    /// What was not sampled may all be the function's, or none of it; so may all that a timer tells.
    fn time(&self, ns: u64) -> ShareInterval {
        let value = if self.time_ns > 0.0 { ns as f64 / self.time_ns } else { 0.0 };
        if self.by_timer {
            return ShareInterval { value, low: 0.0, high: 1.0 };
        }
        let (low, high) = proportion(value * self.bursts, self.bursts);
        let (low, high) = (low * self.sampled, 1.0 - (1.0 - high) * self.sampled);
        ShareInterval { value, low: low.min(value), high: high.max(value) }
    }

    /// Which part of what a thread did was not sampled at the most: all of that may be one thread's.
    fn unsampled(&self, thread: &TimeTally) -> f64 {
        let all = thread.time_ns as f64 + self.unseen_ns;
        if all > 0.0 { self.unseen_ns / all } else { 0.0 }
    }

    /// Lines of a function; those of most time first.
    fn lines(&self, lines: &SeenLines) -> Vec<ProfiledLine> {
        let line = |(SourceLine { file, line }, seen): (&&SourceLine, &LineTally)| ProfiledLine {
            file: file.clone(),
            line: *line,
            time: self.time(seen.time_ns),
            time_ns: seen.time_ns,
            bursts: seen.bursts,
            latency: seen.latency.mean(&self.latency),
        };
        let mut lines: Vec<ProfiledLine> = lines.iter().map(line).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.time_ns));
        lines
    }

    /// `events`: what windows have counted; None: there are none. `unsampled`: so large a part of what it did was not sampled.
    fn figures(
        &self,
        gathered: &TimeTally,
        events: Option<&SampledEvents>,
        besides: Background,
        unsampled: f64,
    ) -> FunctionFigures {
        FunctionFigures {
            time: self.time(gathered.time_ns),
            time_ns: gathered.time_ns,
            bursts: gathered.bursts,
            latency: gathered.latency.mean(&self.latency),
            shares: events.map_or(Err(NoShares::Conditional), |events| {
                shares(events, &gathered.seen, besides, unsampled)
            }),
        }
    }
}

impl FunctionFigures {
    /// How its slots divide, if that says much: for views that have no bounds, and for people. (CSV and JSON have `shares`.)
    pub(crate) fn told(&self, nodes: &[SampledNode]) -> Result<&EstimatedShares, NoShares> {
        match &self.shares {
            Ok(told) if told.says_little(nodes).is_some() => Err(NoShares::Little),
            Ok(told) => Ok(told),
            Err(why) => Err(*why),
        }
    }

    /// The part of its slots that were not retired; None: it cannot be told.
    pub(crate) fn wasted_share(&self, nodes: &[SampledNode]) -> Option<f64> {
        let retiring = nodes.iter().position(|node| node.metric.id == TD_NODE_RETIRING)?;
        let shares = self.told(nodes).ok()?;
        Some(1.0 - shares.shares[retiring].value)
    }

    /// The part of all time in which slots were not retired; None: it cannot be told.
    #[must_use]
    pub fn wasted(&self, nodes: &[SampledNode]) -> Option<f64> {
        Some(self.time.value * self.wasted_share(nodes)?)
    }
}

/// Where in a burst nothing but the innermost function ran, if it is where the samples are. Of inlined ones calls and returns do not tell.
fn alone(burst: &Burst, stacks: &[&NamedStack]) -> UnsharedWindows {
    let is_whole = |place: usize| stacks.get(place).is_some_and(|stack| is_whole(stack));
    let one_ran = |window: usize| is_whole(window) && is_whole(window + 1) && burst.calls.one_ran(window);
    UnsharedWindows {
        windows: (0..burst.windows.len()).map(one_ran).collect(),
        throughout: is_whole(0) && is_whole(burst.windows.len()) && burst.calls.one_ran_throughout(),
    }
}

/// Bursts by kind of core and function.
#[derive(Default)]
struct SortedBursts<'a> {
    own: BTreeMap<(usize, usize), TimeTally>,
    inclusive: BTreeMap<(usize, usize), TimeTally>,
    all: BTreeMap<usize, TimeTally>,
    threads: BTreeMap<(usize, i32), TimeTally>,
    windows: BTreeMap<usize, usize>,
    /// Nanoseconds of stacks by kind of core and number.
    stacks: BTreeMap<(usize, u32), u64>,
    lines: BTreeMap<(usize, usize), SeenLines<'a>>,
    /// The time that is told may be of others.
    is_doubtful: bool,
}

impl<'a> SortedBursts<'a> {
    fn add(&mut self, burst: &Burst, evened: BurstCount, stacks: &'a [NamedStack]) {
        let samples: Vec<&NamedStack> = burst.stacks.iter().map(|number| &stacks[*number as usize]).collect();
        let kind = burst.kind;
        let leaves: Vec<Option<usize>> = samples.iter().map(|stack| Some(stack.first()?.function)).collect();
        let strata: Vec<Stratum> =
            leaves.iter().map(|function| Stratum { thread: burst.thread, function: *function }).collect();
        let is_doubtful = self.is_doubtful;
        let gather = |gathered: &mut TimeTally, inside: &[bool], alone: &UnsharedWindows| {
            gathered.seen.time.is_doubtful = is_doubtful;
            gathered.seen.add(
                inside,
                &burst.windows,
                burst.long,
                alone,
                BurstTime { at: burst.at, strata: &strata, evened },
            );
            if inside.first() == Some(&true) {
                gathered.seen.time.add(strata[0], burst.at, burst.weight_ns);
                gathered.time_ns += burst.weight_ns;
                gathered.bursts += usize::from(burst.weight_ns > 0);
                gathered.latency.add(burst.latency);
            }
        };
        let alone = alone(burst, &samples);
        for leaf in leaves.iter().flatten().collect::<BTreeSet<_>>() {
            let inside: Vec<bool> = leaves.iter().map(|other| other.as_ref() == Some(leaf)).collect();
            gather(self.own.entry((kind, *leaf)).or_default(), &inside, &alone);
        }
        let anywhere: Vec<BTreeSet<usize>> =
            samples.iter().map(|stack| stack.iter().map(|frame| frame.function).collect()).collect();
        for function in anywhere.iter().flatten().collect::<BTreeSet<_>>() {
            let inside: Vec<bool> = anywhere.iter().map(|stack| stack.contains(function)).collect();
            // (what is called runs until it returns)
            let runs = |window: usize| {
                burst.calls.none_returned(window) && called(samples[window]).any(|called| called == *function)
            };
            let alone =
                UnsharedWindows { windows: (0..burst.windows.len()).map(runs).collect(), throughout: false };
            gather(self.inclusive.entry((kind, *function)).or_default(), &inside, &alone);
        }
        let (anywhere, none) = (vec![true; samples.len()], UnsharedWindows::default());
        gather(self.all.entry(kind).or_default(), &anywhere, &none);
        // (an old recording does not know which ran; windows in which a CPU switched threads are left out)
        if burst.thread != 0 {
            gather(self.threads.entry((kind, burst.thread)).or_default(), &anywhere, &none);
        }
        *self.windows.entry(kind).or_default() += burst.windows.iter().flatten().count();
        let Some(first) = burst.stacks.first().filter(|_| burst.weight_ns > 0) else { return };
        *self.stacks.entry((kind, *first)).or_default() += burst.weight_ns;
        if let Some(NamedFrame { function, line: Some(line), .. }) = stacks[*first as usize].first() {
            let seen = self.lines.entry((kind, *function)).or_default().entry(line).or_default();
            seen.time_ns += burst.weight_ns;
            seen.bursts += 1;
            seen.latency.add(burst.latency);
        }
    }
}

/// Samples of time, and beside each the burst that is made up.
fn simulated(recording: &Recording, stacks: &[NamedStack], functions: &[Symbol]) -> Vec<Burst> {
    let Some(events) = recording.events.first() else { return recording.bursts.clone() };
    let mut mixes = SimulatedMixes::new(events);
    let with_burst = |(number, sample): (usize, &Burst)| {
        let frame = sample.stacks.first().and_then(|stack| stacks[*stack as usize].first());
        let name = frame.map_or("", |frame| &functions[frame.function].name);
        let made = mixes.burst(sample, number, name, recording.settings.gap);
        [sample.clone()].into_iter().chain(made)
    };
    recording.bursts.iter().enumerate().flat_map(with_burst).collect()
}

impl Profile {
    /// Of a recording. Files of programs and libraries are looked into now.
    #[must_use]
    pub fn new(recording: &Recording) -> Profile {
        let (functions_seen, stacks, symbols) = named(recording);
        let whole = SampledWhole::of(recording);
        let mut sorted = SortedBursts { is_doubtful: whole.by_timer, ..SortedBursts::default() };
        let with_simulated = recording.simulated.map(|_| simulated(recording, &stacks, &functions_seen));
        let all_bursts = with_simulated.as_ref().unwrap_or(&recording.bursts);
        let came: Vec<ThreadInstant> = all_bursts.iter().map(Burst::came).collect();
        let bursts = all_bursts.iter().zip(evened(&came));
        bursts.for_each(|(burst, evened)| sorted.add(burst, evened, &stacks));
        let kinds: Vec<usize> = sorted.all.keys().copied().collect();
        let (mut cores, mut functions, mut by_thread) = (Vec::new(), Vec::new(), Vec::new());
        let processes = processes_of(recording, all_bursts);
        let held = recording.sampling.as_ref().map(|(sampling, tally)| EventShare::of(sampling, tally));
        for (place, kind) in kinds.into_iter().enumerate() {
            let events = recording.events.get(kind);
            let of_kind = || sorted.own.iter().filter(move |((of, _), _)| *of == kind);
            let of_kind = || of_kind().map(|(_, gathered)| &gathered.seen);
            let in_all = events.map_or(SeenInAll::default(), |events| SeenInAll::of(events, of_kind()));
            let kernel = recording.settings.kernel;
            let besides = if kernel { Background::Interrupts } else { Background::User(&in_all) };
            let worst = in_all.excess.iter().fold(0.0, |worst: f64, one| worst.max(one.abs()));
            let width = events.map_or(1, |events| events.slots_per_cycle);
            let shorter = (recording.settings.gap * u64::from(width)) as f64;
            let sampled =
                recording.sampling.as_ref().and_then(|(sampling, _)| sampling.pmus().get(kind).copied());
            cores.push(ProfiledCore {
                name: events.map(|events| events.core).or(sampled).unwrap_or_default(),
                nodes: events.map_or(Vec::new(), SampledEvents::nodes),
                all: whole.figures(&sorted.all[&kind], events, besides, 1.0 - whole.sampled),
                windows: sorted.windows[&kind],
                excess: if kernel { 0.0 } else { worst / shorter },
                note: events.map_or(String::new(), |events| events.note.clone()),
            });
            for ((_, tid), seen) in sorted.threads.iter().filter(|((of, _), _)| *of == kind) {
                by_thread.push(ProfiledThread {
                    tid: *tid,
                    process: processes.get(tid).map_or(String::new(), |name| printable(name)),
                    core: place,
                    figures: whole.figures(seen, events, besides, whole.unsampled(seen)),
                });
            }
            for ((_, function), inclusive) in sorted.inclusive.iter().filter(|((of, _), _)| *of == kind) {
                let own = sorted.own.get(&(kind, *function));
                let Symbol { name, is_unnamed, module, path } = functions_seen[*function].clone();
                functions.push(ProfiledFunction {
                    name,
                    is_unnamed,
                    module,
                    path,
                    core: place,
                    own: whole.figures(own.unwrap_or(&TimeTally::default()), events, besides, 0.0),
                    inclusive: whole.figures(inclusive, events, besides, 1.0 - whole.sampled),
                    lines: sorted
                        .lines
                        .get(&(kind, *function))
                        .map_or(Vec::new(), |lines| whole.lines(lines)),
                });
            }
        }
        by_thread
            .sort_by_key(|thread: &ProfiledThread| (std::cmp::Reverse(thread.figures.time_ns), thread.tid));
        let is_timed = recording.sampling.as_ref().is_some_and(|(sampling, _)| sampling.is_timed());
        let untimed = (is_timed && whole.latency.is_always_nothing())
            .then(|| "Samples have no retire latency with this kernel, or on this CPU.".to_string());
        let numbers: BTreeMap<usize, usize> = sorted.all.keys().copied().zip(0..).collect();
        let is_marked = recording.simulated.is_some();
        let call_stacks = CallStacks::new(&sorted.stacks, &stacks, &functions_seen, &numbers, is_marked);
        let mut profile = Profile {
            cores,
            functions,
            by_thread,
            samples: call_stacks.samples(all_bursts, recording.is_of_time()),
            stacks: call_stacks.times,
            elapsed: recording.totals.elapsed,
            // (the others are samples of clocks)
            bursts: all_bursts.iter().filter(|burst| held.is_some() || !burst.windows.is_empty()).count(),
            threads: recording.totals.threads,
            cpus: recording.totals.cpus.clone(),
            refused: recording.totals.refused.clone(),
            unseen: recording.totals.unseen,
            unclocked: recording.totals.unclocked,
            by_timer: recording.totals.by_timer,
            left_running: recording.totals.left_running,
            lost: recording.totals.lost,
            throttled: recording.totals.throttled,
            parted: recording.totals.parted,
            impossible: recording.totals.impossible,
            pace: recording.totals.pace,
            held,
            simulated: recording.simulated,
            callers: recording.settings.callers,
            without_callers: recording.settings.callers == CallGraph::Lbr && !recording.tells_callers(),
            kernel_is_hidden: symbols.kernel_is_hidden,
            notes: symbols
                .notes
                .into_iter()
                .chain(recording.totals.unnamed.iter().map(|why| printable(why)))
                .chain(untimed)
                .collect(),
            sources: Sources::default(),
        };
        profile.rank();
        profile
    }

    /// The event that samples stand for, if that is not time.
    pub(crate) fn event(&self) -> Option<&EventShare> {
        self.held.as_ref().filter(|held| !held.of.is_time())
    }

    /// Whether what samples stand for is time.
    pub(crate) fn is_of_time(&self) -> bool {
        self.event().is_none()
    }

    /// Why slots are not told, where time alone is.
    #[must_use]
    pub fn no_slots(&self) -> Option<&str> {
        match &self.held.as_ref()?.of {
            SamplesOf::Time { why, .. } => Some(why),
            SamplesOf::Condition { .. } | SamplesOf::Node { .. } => None,
        }
    }

    /// Whether threads were stopped and looked at.
    pub(crate) fn is_by_stops(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.of.is_by_stops())
    }

    /// What tells the time, of one thread or CPU at least: of "timer" nobody knows how wrong it is, of "stops" threads were looked at, "bursts" may be wrong by more than the intervals say; else "counter".
    pub(crate) fn time_by(&self) -> &'static str {
        if let Some(simulated) = self.simulated {
            return simulated;
        }
        if self.is_by_stops() {
            return BY_STOPS;
        }
        match self.held.is_some() || self.cpus.as_ref().map_or(self.by_timer > 0, |cpus| cpus.by_timer) {
            true => BY_TIMER,
            false if self.unclocked > 0 => "bursts",
            false => "counter",
        }
    }

    /// Those that waste most come first; where that cannot be told, as much as all on average.
    fn rank(&mut self) {
        let cores = &self.cores;
        let wasted = |function: &ProfiledFunction| {
            let core = &cores[function.core];
            let average = core.all.wasted(&core.nodes).map_or(1.0, |part| part / core.all.time.value);
            function.own.wasted(&core.nodes).unwrap_or(function.own.time.value * average)
        };
        let key = |function: &ProfiledFunction| (wasted(function), function.inclusive.time.value);
        self.functions.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
    }
}

#[cfg(test)]
mod tests;
