//! Sentences that views share: what is not listed, what is in no share, and how it would be.
#![forbid(unsafe_code)]

use crate::budget::{Limit, Pace};
use crate::chances::MOST_PER_SECOND;
use crate::cpus::{CpuChange, CpuTotals};
use crate::estimate::{EstimatedShares, NoShares};
use crate::event_sampling::SamplesOf;
use crate::held::EventShare;
use crate::profile::{FunctionFigures, Profile, ProfiledCore, ProfiledFunction};
use crate::simulation::BY_STOPS;
use crate::strata::LEAST;
use crate::unseen::Unseen;
use std::collections::BTreeSet;
use topdown_report::{SIMULATED, count, thousands};

/// Functions and lines of less time are not listed.
pub(crate) const LEAST_TIME: f64 = 0.005;
/// Windows whose start differs by more than this are mentioned.
const MUCH_EXCESS: f64 = 0.005;
/// Of all time, what was not sampled and is not mentioned.
const LITTLE_UNSEEN: f64 = 0.005;
/// If no smaller part of the bursts that were asked for came that needs no saying.
const MANY_CAME: f64 = 0.5;
/// Of fewer that were to come it may be chance.
const MANY: f64 = 20.0;
/// Shares that may be off by more are not told.
const MUCH: f64 = 0.25;
/// The error of a share that a longer run is advised for.
const WANTED: f64 = 0.01;

/// The functions that people are shown of a core, those that waste most first.
pub(super) fn listed(profile: &Profile, core: usize) -> impl Iterator<Item = &ProfiledFunction> {
    profile.functions.iter().filter(move |f| f.core == core && f.own.time.value >= LEAST_TIME)
}

/// How many functions people are not shown of a core, and how much time these have.
pub(super) fn of_unlisted(profile: &Profile, core: usize) -> Option<String> {
    let unlisted = profile
        .functions
        .iter()
        .filter(|f| f.core == core && f.own.time_ns > 0 && f.own.time.value < LEAST_TIME)
        .map(|f| f.own.time.value);
    let (number, part) = unlisted.fold((0, 0.0), |(number, sum), part| (number + 1, sum + part));
    let of = profile.held.as_ref().map_or("the time", |held| held.of.all());
    (number > 0).then(|| {
        format!(
            "Not listed: {} of less than {} % of {of} each, {:.1} % together (.json and .csv have all).",
            count(number, "function"),
            100.0 * LEAST_TIME,
            100.0 * part
        )
    })
}

/// The processes that people are shown of a core, by inclusive figures, those that waste most first. None where one alone has had time.
pub(super) fn processes(profile: &Profile, core: usize) -> Vec<&ProfiledFunction> {
    let all = || profile.functions.iter().filter(|f| f.is_process() && f.inclusive.time.value >= LEAST_TIME);
    let names: BTreeSet<&str> = all().map(|process| &*process.name).collect();
    if names.len() < 2 {
        return Vec::new();
    }
    let nodes = &profile.cores[core].nodes;
    let wasted = |f: &ProfiledFunction| f.inclusive.wasted(nodes).unwrap_or(f.inclusive.time.value);
    let mut listed: Vec<_> = all().filter(|process| process.core == core).collect();
    listed.sort_by(|a, b| wasted(b).total_cmp(&wasted(a)));
    listed
}

/// Why a function's shares are not told, and for how long to record.
pub(super) fn untold(untold: NoShares, figures: &FunctionFigures, profile: &Profile) -> String {
    let bursts = match untold {
        NoShares::Few(bursts) => bursts,
        NoShares::Little => return of_little(figures, profile),
        NoShares::Conditional => return "cannot be told: samples of an event have no windows".into(),
    };
    if bursts == 0 && figures.bursts >= LEAST {
        let met = count(figures.bursts as u64, "burst");
        return format!("cannot be told: runs for less than a gap ({met}, no window)");
    }
    let met = if bursts == 0 { figures.bursts } else { bursts };
    let longer = profile.elapsed.as_secs_f64() * LEAST as f64 / met.max(1) as f64;
    let from = count(bursts as u64, "burst");
    format!("cannot be told from {from}: record some {} s or more", seconds(longer.max(1.0)))
}

/// Why shares that are known are not told. (.json and .csv have them)
fn of_little(figures: &FunctionFigures, profile: &Profile) -> String {
    let told = figures.shares.as_ref().ok();
    let nodes = profile.cores.iter().map(|core| &core.nodes);
    let known =
        |told: &EstimatedShares| nodes.filter_map(|nodes| told.says_little(nodes)).fold(0.0, f64::max);
    let off = format!("cannot be told: known to ±{:.0} points alone", 100.0 * told.map_or(1.0, known));
    match told.map_or(0.0, |told| told.sampling / MUCH) {
        // (as random errors fall)
        longer if longer > 1.0 => {
            format!("{off}; record {} s", seconds(profile.elapsed.as_secs_f64() * longer.powi(2)))
        }
        _ => format!("{off}; --gap"),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds < 9.95 { format!("{seconds:.1}") } else { format!("{seconds:.0}") }
}

/// Of the listed functions of a core.
pub(super) fn of_core(profile: &Profile, place: usize, core: &ProfiledCore) -> Vec<String> {
    let mut remarks: Vec<String> = of_unlisted(profile, place).into_iter().collect();
    if !core.note.is_empty() {
        remarks.push(format!("{}.", core.note));
    }
    let told = listed(profile, place).filter_map(|function| function.own.told(&core.nodes).ok());
    let slow = told.map(|told| told.sampling).fold(0.0, f64::max);
    if slow > WANTED {
        let longer = profile.elapsed.as_secs_f64() * (slow / WANTED).powi(2);
        remarks.push(format!(
            "The sample's error is below a point in all that are told after some {} s.",
            seconds(longer)
        ));
    }
    if core.excess > MUCH_EXCESS {
        remarks.push(format!(
            "Windows start with up to {:.1} % of a node's slots more or less than they go on with; that is within the \
             bounds. Longer gaps (--gap) have less of it.",
            100.0 * core.excess
        ));
    }
    remarks
}

/// Why fewer bursts were asked for than `-F` says, of each thread or CPU.
fn of_pace(pace: &Pace, each: &str) -> Option<String> {
    let Pace { asked, frequency, burst_ns, budget, limit } = *pace;
    let why = match limit {
        Limit::Asked => return None,
        Limit::Cost => format!(
            "each takes {:.1} us, and all may take {} % of the time (--budget)",
            burst_ns / 1e3,
            100.0 * budget
        ),
        Limit::Kernel => "more would be throttled (sysctl kernel.perf_event_max_sample_rate, which the kernel may have lowered itself: a \
                          higher one permits more)"
            .into(),
    };
    Some(format!(
        "No more than {frequency:.0} bursts a second and {each} were asked for instead of {asked}: {why}."
    ))
}

/// How many bursts came, if that is much less than were asked for.
fn of_came(profile: &Profile) -> Option<String> {
    let (frequency, bursts) = (profile.pace.frequency, profile.bursts as f64);
    let time_ns = profile.cores.iter().map(|core| core.all.time_ns).sum::<u64>();
    let seconds = time_ns as f64 / 1e9;
    let came = bursts / seconds;
    let by_chance = seconds * frequency < MANY;
    if profile.held.is_some() || by_chance || profile.elapsed.is_zero() || came >= MANY_CAME * frequency {
        return None;
    }
    let a_second = |number: f64| if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") };
    let in_all = bursts / profile.elapsed.as_secs_f64();
    let why = if in_all > MANY_CAME * MOST_PER_SECOND {
        format!("of all {}s together no more than {MOST_PER_SECOND} a second are asked for", each(profile))
    } else {
        match profile.cpus {
            None => "only those of threads that run at that moment count, so where more want to run than there are CPUs, or they often \
                     sleep, few do"
                .into(),
            Some(_) => "only those of CPUs that run at that moment what is recorded count".into(),
        }
    };
    Some(format!(
        "In a second of CPU time {} bursts came ({} a second in all), far fewer than the {} a second and {} that were to come: {why}.",
        a_second(came),
        a_second(in_all),
        a_second(frequency),
        each(profile)
    ))
}

/// What there was to say of how many bursts there were.
fn of_bursts(profile: &Profile) -> impl Iterator<Item = String> {
    of_pace(&profile.pace, each(profile)).into_iter().chain(of_came(profile))
}

/// What samples of a condition are.
fn of_condition(held: &EventShare, condition: &str) -> Vec<String> {
    let EventShare { event, period, samples, .. } = held;
    let stretch = format!("{} {event}", thousands(*period));
    let part = match &held.part {
        Some(part) if part.high - part.low < 0.001 => format!("{:.1} %", 100.0 * part.value),
        Some(part) => format!("{:.1} to {:.1} %", 100.0 * part.low, 100.0 * part.high),
        None => "of a part that cannot be told".into(),
    };
    let all = held.pmus.join(" and ");
    vec![
        format!(
            "{condition} held in {} of {stretch} each: {part} of all {event} that {all} executed in user mode.",
            if *samples == 1 { "1 stretch".into() } else { format!("{} stretches", thousands(*samples)) }
        ),
        format!(
            "A function has the stretches that end in it. One that runs for less than {stretch} shares its stretches with what runs \
             beside it."
        ),
        "How slots divide cannot be told: conditional samples have no windows.".into(),
    ]
}

/// So many samples tell parts of a few points.
const MANY_SAMPLES: u64 = 1000;
/// More samples would cost too much of the time.
const LEAST_PERIOD: u64 = 1000;
/// Where samples are of fewer events, that is said.
const WELL_SAMPLED: f64 = 0.98;

/// What samples that locate a node are.
fn of_node(held: &EventShare, precise: bool, above: Option<&str>, other_events: &[String]) -> Vec<String> {
    let EventShare { event, period, samples, all, .. } = held;
    let mut remarks = vec![format!(
        "{} of {event}, one in {}, of {} in user mode.",
        count(*samples, "sample"),
        thousands(*period),
        thousands(*all)
    )];
    remarks.extend(
        above.map(|above| format!("No event locates the node alone: this one locates {above}, above it.")),
    );
    remarks.push(match precise {
        true => "The CPU tells the instruction itself (PEBS).".into(),
        false => "An interrupt is taken some instructions after the event: a line may have samples of those before it.".into(),
    });
    let sampled = (samples * period) as f64 / (*all).max(1) as f64;
    let shorter = (*all / MANY_SAMPLES).max(LEAST_PERIOD);
    let is_throttled = held.part.is_some_and(|part| part.high < WELL_SAMPLED);
    if !held.is_counted {
        remarks.push(
            "How many of these events there were is not known, and parts may be anything: the kernel throttled samples, or there was no room, \
             and one counter alone counts the event. A longer --period has fewer samples at once."
                .into(),
        );
    } else if is_throttled || held.left_out as f64 > (1.0 - WELL_SAMPLED) * *samples as f64 {
        remarks.push(format!(
            "Samples stand for {:.0} % of these events: the kernel throttled the rest, or there was no room. It may be of any function, and \
             is in the intervals. A longer --period has fewer samples at once.",
            100.0 * sampled
        ));
    } else if shorter * 2 < *period && *all > 0 {
        // (more are wanted than there are, and more can be had)
        remarks.push(format!("With --period {shorter} there are more samples, and intervals are narrower."));
    }
    if !other_events.is_empty() {
        remarks.push(format!("{} locates it, too (--locate NODE=EVENT).", other_events.join(" or ")));
    }
    remarks
}

/// Why slots are not told, where time alone is.
fn of_no_slots(profile: &Profile) -> Option<String> {
    let why = profile.no_slots()?.trim_end_matches('.');
    Some(format!("How slots divide cannot be told here, and this is time alone: {why}."))
}

/// What samples of time are.
fn of_time(held: &EventShare, by_stops: bool) -> Vec<String> {
    let each_ms = held.period as f64 / 1e6;
    let mut remarks = vec![if by_stops && held.period == 0 {
        "Threads that run are stopped and looked at (ptrace). Here none was.".into()
    } else if by_stops {
        format!(
            "Threads that ran were stopped and looked at (ptrace), once in {each_ms:.1} ms of CPU time on average. Page faults are told of what they \
             interrupted."
        )
    } else {
        format!(
            "A timer of the kernel samples once in {each_ms:.1} ms of CPU time. What is due while the kernel has interrupts off is told of what runs next: \
         functions that make system calls, touch new pages or sleep may have some of the kernel's time."
        )
    }];
    if let Some(part) = held.part.filter(|part| part.high < WELL_SAMPLED) {
        remarks.push(format!(
            "Samples stand for {:.1} % of the CPU time. The rest is the kernel's{}. It may be of any function, and is in \
             the intervals.",
            100.0 * part.value,
            if by_stops { ", came after the last look at a thread, or passed while topdown waited for a CPU" } else { " (--kernel samples it), or was throttled" },
        ));
    }
    remarks
}

/// Of samples of an event: what they are, and what is not in them.
pub(super) fn of_held(held: &EventShare) -> Vec<String> {
    let (mut remarks, why) = match &held.of {
        SamplesOf::Time { by_stops, .. } => (of_time(held, *by_stops), "there was no room"),
        SamplesOf::Condition { condition } => (
            of_condition(held, condition),
            "the thread was descheduled within the stretch, or there was no room",
        ),
        SamplesOf::Node { precise, above, other_events, .. } => {
            (of_node(held, *precise, above.as_deref(), other_events), "there was no room")
        }
    };
    if held.left_out > 0 {
        remarks.push(format!("{} left out: {why}.", count(held.left_out, "sample")));
    }
    if held.counted < 0.99 {
        remarks.push(format!(
            "The counters were others' for {:.0} % of the time, of which nothing is known.",
            100.0 * (1.0 - held.counted)
        ));
    }
    if !held.without.is_empty() {
        remarks.push(format!("What ran on {} is not in this.", held.without.join(" and ")));
    }
    remarks
}

/// Where nothing can be shown.
pub(super) fn of_nothing(profile: &Profile) -> Option<&'static str> {
    if !profile.is_of_time() {
        return None; // (that nothing was sampled is what was asked)
    }
    // (where slots are made up time is real, and sampled as where it is alone)
    if profile.no_slots().is_some() || profile.simulated.is_some() {
        let is_by_stops = profile.is_by_stops() || profile.simulated == Some(BY_STOPS);
        return profile.cores.is_empty().then_some(match is_by_stops {
            true => {
                "Nothing was sampled: it slept, was stopped, was in the kernel, or ran too short (-F N has more samples); or it may not be looked \
                 at (a program of 32 bits)."
            }
            false => {
                "Nothing was sampled: it slept, was stopped, was in the kernel, or ran too short (-F N has more samples); or the kernel does not let \
                 a user sample it (setuid, file capabilities, or not readable): record as root, or with --ptrace."
            }
        });
    }
    profile.cores.is_empty().then_some(
        "Nothing was sampled: it slept, was stopped, ran too short, or is a thread of the kernel; or the kernel does not let a user count it (setuid, file capabilities, \
         or not readable): record as root; or others hold the counters (a pinned or system-wide measurement such as perf stat -a): \
         end those and record again.",
    )
}

/// Why a profile has nothing to say of how slots divide, if it has not, for those who see another view than the text.
#[must_use]
pub fn says_nothing(profile: &Profile) -> Option<String> {
    if let Some(nothing) = of_nothing(profile) {
        return Some(nothing.into());
    }
    let told = profile
        .functions
        .iter()
        .any(|function| function.own.told(&profile.cores[function.core].nodes).is_ok());
    (!told && profile.held.is_none()).then(|| {
        let fewer: String = of_bursts(profile).map(|why| format!(" {why}")).collect();
        let bursts = count(profile.bursts as u64, "burst");
        format!("How slots divide cannot be told of any function, from {bursts}: record longer.{fewer}")
    })
}

/// Why a profile has no callers although they were asked for, if it has none, for the same.
#[must_use]
pub fn says_no_callers(profile: &Profile) -> Option<String> {
    let none = profile.without_callers && !profile.cores.is_empty();
    none.then(|| {
        "No sample has callers: the CPU's branch records, which --call-graph lbr reads, were empty. Some virtual machines show such records \
         and have none; else nothing called anything meanwhile. --call-graph fp and dwarf do without."
            .into()
    })
}

/// What threads did before they were sampled.
fn of_unseen(profile: &Profile) -> Option<String> {
    let Unseen { threads, ns } = profile.unseen;
    let part = unseen_part(profile);
    let of_elapsed = ns as f64 / profile.elapsed.as_nanos().max(1) as f64;
    if threads == 0 && part.unwrap_or(of_elapsed) < LITTLE_UNSEEN {
        return None;
    }
    let all = count(profile.threads as u64, "thread");
    let ended = match threads {
        0 => String::new(),
        ended => format!("{} of {all} had ended by then. ", thousands(ended as u64)),
    };
    let part = part.map_or_else(String::new, |part| format!(", {:.1} % of all,", 100.0 * part));
    Some(format!(
        "Not sampled are new threads until their counters are open, and threads whose samples were lost or whose clock's counter others had. {ended}At most {:.1} ms{part} are not in this.",
        ns as f64 / 1e6
    ))
}

/// How much of all time is not sampled, at most. (Of events it is not known for how long all ran: as long as one thread did, at the least.)
pub(super) fn unseen_part(profile: &Profile) -> Option<f64> {
    let ns = profile.unseen.ns;
    let seen = profile.cores.iter().map(|core| core.all.time_ns).sum::<u64>();
    profile.is_of_time().then(|| ns as f64 / (ns + seen).max(1) as f64)
}

/// Where the functions of files and of generated code have no names, and how they get these.
fn of_unnamed(profile: &Profile) -> Option<String> {
    let listed = (0..profile.cores.len()).flat_map(|core| listed(profile, core));
    let unnamed: BTreeSet<&str> = listed
        .filter(|function| function.is_unnamed && !function.module.is_empty())
        .map(|function| &*function.module)
        .collect();
    if unnamed.is_empty() {
        return None;
    }
    let all: Vec<&str> = unnamed.into_iter().collect();
    Some(format!(
        "Functions of {} have no names. A stripped file needs its debug file (of the same build id), code that a JIT compiler made a map or dump of it \
         (/tmp/perf-PID.map, jit-PID.dump).",
        all.join(", ")
    ))
}

/// What is to be known before all else: that shares are made up, or that there are none.
pub(super) fn first(profile: &Profile) -> Option<String> {
    let mark = format!("{SIMULATED}: samples of time are real, how slots divide is not.");
    profile.simulated.map(|_| mark).or_else(|| of_no_slots(profile))
}

/// Of the whole: what was seen and is in no share, and why there were fewer bursts than were asked for.
pub(super) fn of_all(profile: &Profile) -> Vec<String> {
    let of_held = profile.held.as_ref().map_or(Vec::new(), of_held);
    let mut remarks: Vec<String> = first(profile).into_iter().chain(of_held).collect();
    if profile.refused.0 > 0 {
        let ((refused, why), each) = (&profile.refused, each(profile));
        remarks.push(format!("{refused} {each}s are not in this, the first because of: {why}"));
    }
    remarks.extend(of_unseen(profile));
    if profile.left_running > 0 {
        let (processes, it) = match profile.left_running {
            1 => ("1 process still ran".into(), "it"),
            more => (format!("{} processes still ran", thousands(more as u64)), "they"),
        };
        remarks.push(format!(
            "{processes} when what was recorded had ended: what {it} did then is not in this (-p PID)."
        ));
    }
    if profile.unclocked > 0 {
        remarks.push(format!(
            "Of {} bursts tell the time, since no clock was to be had (ulimit -l, ulimit -n): that of signal handlers, of functions \
             that make many system calls, and of the kernel may be off by more than the intervals say.",
            count(profile.unclocked as u64, "thread")
        ));
    }
    if profile.by_timer > 0 {
        remarks.push(format!(
            "Of {} a timer tells the time, since no counter is left for cycles (on AMD, sysctl kernel.nmi_watchdog=0 leaves one): what \
             is due while the kernel has interrupts off is told of what runs next. So functions that make system calls, touch new pages \
             or sleep, and those behind them, may have much of the kernel's time. How much is not known: the intervals of time reach from \
             none of it to all.",
            count(profile.by_timer as u64, "thread")
        ));
    }
    if profile.kernel_is_hidden {
        remarks.push(
            "The kernel's functions are one, [kernel]: it does not show their addresses to this user (sysctl \
             kernel.kptr_restrict=0 with kernel.perf_event_paranoid at most 1, or CAP_SYSLOG)."
                .into(),
        );
    }
    remarks.extend(says_no_callers(profile));
    remarks.extend(of_unnamed(profile));
    remarks.extend(profile.notes.iter().cloned());
    if profile.lost > 0 {
        let fewer = match profile.held {
            Some(_) if !profile.is_of_time() => "A longer --period has fewer",
            _ => "A lower -F, or --call-graph fp, has fewer and smaller ones",
        };
        remarks.push(format!(
            "{} records found no room: the recorder came late, since other programs had its CPU or it was stopped, or stacks are large. {fewer}.",
            thousands(profile.lost)
        ));
    }
    if profile.throttled > 0 {
        let fewer = match (&profile.held, profile.pace.limit) {
            (Some(_), _) if !profile.is_of_time() => "a longer --period has fewer of them at once",
            // (it is as low as it can be)
            (None, Limit::Kernel) => "a higher one permits more",
            _ => "a lower -F has fewer of them at once",
        };
        remarks.push(format!(
            "The kernel throttled samples {} times (sysctl kernel.perf_event_max_sample_rate): {fewer}.",
            profile.throttled.div_ceil(2)
        ));
    }
    if profile.parted > 0 {
        remarks.push(format!(
            "{} left out: others took the counters, samples were throttled, or a record was lost.",
            count(profile.parted, "window")
        ));
    }
    if profile.impossible > 0 {
        remarks.push(format!(
            "The time alone is told by {}: an event counted more than there were slots.",
            count(profile.impossible, "burst")
        ));
    }
    remarks.extend(profile.cpus.iter().flat_map(of_cpus));
    remarks.extend(of_bursts(profile).filter(|_| !profile.cores.is_empty()));
    remarks
}

/// What counters were opened on.
fn each(profile: &Profile) -> &'static str {
    if profile.cpus.is_some() { "CPU" } else { "thread" }
}

/// Of CPUs that were recorded.
fn of_cpus(cpus: &CpuTotals) -> Vec<String> {
    let mut remarks = Vec::new();
    if !cpus.changed.is_empty() {
        let changed: Vec<String> = cpus.changed.iter().map(u32::to_string).collect();
        let change = |CpuChange { cpu, online, seen_ns }: &CpuChange| {
            let (what, seconds) = (if *online { "came" } else { "went" }, *seen_ns as f64 / 1e9);
            format!("CPU {cpu} {what} by {seconds:.1} s")
        };
        let changes: Vec<String> = cpus.changes.iter().map(change).collect();
        let changes = if changes.is_empty() { String::new() } else { format!(" ({})", changes.join(", ")) };
        remarks.push(format!(
            "CPUs went offline or came online meanwhile: {}{changes}. What ran there for half a second after one came, at the most, is not in this.",
            changed.join(", ")
        ));
    }
    if cpus.switched > 0 {
        remarks
            .push(format!("{} left out: another thread ran in them, too.", count(cpus.switched, "window")));
    }
    if cpus.by_timer {
        remarks.push(
            "A timer tells the time, since no counter is left for cycles (on AMD, sysctl kernel.nmi_watchdog=0 leaves one): where \
             threads wake each other after a few microseconds of work their parts of it are off by some points, and where they enter the \
             kernel often by more. How much is not known: the intervals of time reach from none of it to all."
                .into(),
        );
    }
    if cpus.hidden > 0 {
        remarks.push(format!(
            "Processes of other users that were there already: {}. What they have mapped may not be seen, so their functions have no names \
             (CAP_SYS_PTRACE).",
            thousands(cpus.hidden as u64)
        ));
    }
    remarks
}

/// "4.0 s, 1 thread, 2,000 bursts".
pub(super) fn amount(profile: &Profile) -> String {
    let unit = if profile.held.is_some() { "sample" } else { "burst" };
    let (threads, bursts) = (count(profile.threads as u64, "thread"), count(profile.bursts as u64, unit));
    let cpus = profile.cpus.as_ref().map_or(String::new(), |cpus| count(cpus.cpus as u64, "CPU") + ", ");
    format!("{:.1} s, {cpus}{threads}, {bursts}", profile.elapsed.as_secs_f64())
}
