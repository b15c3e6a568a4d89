//! `topdown record --drill`: groups take turns until it is known which nodes are over their thresholds, and from then on the events are
//! sampled that locate these.
#![forbid(unsafe_code)]

use super::{Arguments, NOTHING_KEPT};
use crate::outcome::{Failure, failed, not_run};
use crate::say;
use crate::stat::drill::{DeepNodes, TurnPlan};
use crate::stat::levels::LevelTrial;
use crate::stat::{GroupsInTurns, OutsideGroups, StatTarget};
use crate::sys::{self, End};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::process::Command;
use std::time::{Duration, Instant};
use topdown::{Error, Options, SourceKind, deep_tree};
use topdown_record::views::{Heading, View};
use topdown_record::{EventSampling, Profile, RecordUntil, Recorder, Recording, RecordingEnd};
use topdown_report::model::Finding;
use topdown_report::terminal::{Layout, Stream, say_written};
use topdown_report::{Format, OutsideCount, Report, encode, save, write_to};

/// What is there for certain is located after this time at the earliest, and what may be there after the longer one.
const CERTAIN: Duration = Duration::from_secs(1);
const PERHAPS: Duration = Duration::from_secs(4);
/// So many events are sampled at once at most: each takes two counters, and of many events four can count them.
const MOST: usize = 2;

/// What the file says that it is.
const FORMAT: &str = "topdown-drill-1";

/// Who is followed while a program is drilled down, to be sampled later.
enum Followed {
    /// Threads, from the start on.
    Threads(Box<Recorder>),
    /// CPUs, these or all: whatever runs there then.
    Cpus(Option<BTreeSet<u32>>),
}

/// A program that is drilled down, and then sampled.
struct DrillRecorder {
    /// While it is drilled down.
    groups: Option<OutsideGroups>,
    followed: Option<Followed>,
    /// What was counted until events were sampled.
    counted: Option<OutsideCount>,
    located: Located,
}

/// What ended the first part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DrillEnd {
    /// It is known what to locate.
    Found,
    /// The time, while what is recorded goes on.
    TimeOver,
    /// What is recorded has ended, or was interrupted.
    Ended,
}

/// What was sampled, in so much time.
#[derive(Default)]
struct Located {
    sampled_for: Duration,
    recordings: Vec<Recording>,
    /// What was not sampled, or with what else.
    remarks: Vec<String>,
}

/// What it can write.
pub(super) fn checked(view: Option<View>) -> Result<View, Failure> {
    view.filter(|view| matches!(view, View::Text | View::Lines | View::Json)).ok_or_else(|| {
        failed(
            "-o: --drill writes a text or .json; other formats have one node that it finds (--locate NODE)",
        )
    })
}

pub(super) fn recorded(arguments: &Arguments, view: View) -> Result<End, Failure> {
    if deep_tree().is_none() {
        return Err(failed(
            "--drill: no tree with thresholds is published for this CPU, or its core is not counted (`topdown check` says which); `topdown record` \
             without it tells which functions waste slots",
        ));
    }
    let wanted = DeepNodes { drill: true, ..DeepNodes::default() };
    let cpus = arguments.of_cpus().and_then(|cpus| cpus.online());
    let trial = LevelTrial { cpus: cpus.as_ref(), kernel: false, source: SourceKind::Counters };
    let plan = TurnPlan::of(None, &wanted, &trial)?;
    if arguments.command.is_empty() {
        others(arguments, view, &plan)
    } else {
        command(arguments, view, &plan)
    }
}

fn command(arguments: &Arguments, view: View, plan: &TurnPlan) -> Result<End, Failure> {
    let (program, rest) = arguments.command.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command.args(rest);
    let (title, occasion) = (arguments.command_line(), sys::occasion());
    let recorder = |pid: i32| match arguments.of_cpus() {
        Some(cpus) => DrillRecorder::of(&cpus, plan),
        None => DrillRecorder::of_command(pid, plan),
    };
    let attend = |recorder: &mut Result<DrillRecorder, String>, pid: i32, start: Instant| {
        let Ok(recorder) = recorder else { return };
        match sys::process(pid) {
            Ok(process) => {
                let ends = [process];
                recorder.run(&arguments.until(&ends, None), start, &title);
            }
            Err(error) => say(&format!("nothing is located: pidfd_open: {error}")),
        }
    };
    let ran = sys::run_attended(&mut command, recorder, attend);
    let (ran, recorder) = ran.map_err(|error| not_run(program, &error))?;
    let whole = |groups: OutsideGroups| groups.end(&ran, &arguments.command, false);
    let heading = Heading { command: &title, occasion: &occasion, means: None };
    match recorder {
        Ok(recorder) => recorder.write(whole, arguments, view, &heading).unwrap_or_else(|why| say(&why)),
        Err(why) => say(&format!("nothing is recorded: {why}")),
    }
    Ok(ran.end)
}

fn others(arguments: &Arguments, view: View, plan: &TurnPlan) -> Result<End, Failure> {
    let (whom, processes) = arguments.whom()?;
    let interrupts = sys::interrupts().map_err(failed)?;
    let mut recorder = DrillRecorder::of(&whom, plan).map_err(failed)?;
    let (start, occasion, title) = (Instant::now(), sys::occasion(), whom.title());
    let title = topdown_report::clean(&title);
    recorder.run(&arguments.until(&processes, Some(&interrupts)), start, &title);
    drop(interrupts); // a second one ends what follows
    let whole = |mut groups: OutsideGroups| groups.so_far(start.elapsed(), title.to_string());
    let heading = Heading { command: &title, occasion: &occasion, means: None };
    recorder.write(whole, arguments, view, &heading).map_err(failed)?;
    Ok(End::Status(0))
}

impl DrillRecorder {
    fn new(groups: OutsideGroups, followed: Followed) -> DrillRecorder {
        let (groups, followed) = (Some(groups), Some(followed));
        DrillRecorder { groups, followed, counted: None, located: Located::default() }
    }

    /// On a process that is about to execute the command.
    fn of_command(pid: i32, plan: &TurnPlan) -> Result<DrillRecorder, String> {
        // (the groups take what descriptors are left, and say best why there is nothing)
        let recorder = Recorder::of_events(Vec::new(), &[pid], false);
        let groups = OutsideGroups::of_whole(pid, &Options::default(), &[], plan).map_err(text)?;
        Ok(DrillRecorder::new(groups, Followed::Threads(Box::new(recorder.map_err(text)?))))
    }

    /// On others.
    fn of(whom: &StatTarget, plan: &TurnPlan) -> Result<DrillRecorder, String> {
        let followed = match whom {
            StatTarget::Cpus(cpus) => Followed::Cpus(cpus.clone()),
            _ => {
                let recorder = Recorder::of_events(Vec::new(), &whom.pids(), true).map_err(text)?;
                Followed::Threads(Box::new(recorder))
            }
        };
        let groups = OutsideGroups::of(whom, &Options::default(), plan).map_err(text)?;
        Ok(DrillRecorder::new(groups, followed))
    }

    /// Until something ends it.
    fn run(&mut self, until: &RecordUntil, start: Instant, title: &str) {
        let is_found = match self.drill_down(until, start) {
            DrillEnd::Ended => return,
            end => end == DrillEnd::Found,
        };
        let Some(mut groups) = self.groups.take() else { return };
        match groups.so_far(start.elapsed(), title.into()) {
            Ok(counted) => {
                drop(groups); // (the events take their counters)
                let rest = until.timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
                if let Some(followed) = self.followed.take().filter(|_| is_found) {
                    let until = RecordUntil { timeout: rest, ..until.clone() };
                    self.located = Located::of(followed, &counted.run.findings, until);
                }
                self.counted = Some(counted);
            }
            Err(_) => self.groups = Some(groups), // (it is read again in the end)
        }
    }

    /// Drills down until something was found to be located, or something ends it.
    fn drill_down(&mut self, until: &RecordUntil, start: Instant) -> DrillEnd {
        loop {
            let Some(groups) = &mut self.groups else { return DrillEnd::Ended };
            let at = start.elapsed();
            let found = groups.groups.rotation().and_then(GroupsInTurns::settled).unwrap_or_default();
            let is_certain = found.iter().any(|one| one.sure);
            if !found.is_empty() && at >= if is_certain { CERTAIN } else { PERHAPS } {
                return DrillEnd::Found;
            }
            let next = groups.groups.turn(at, None).map_or(at + CERTAIN, |next| next.after(at));
            if until.timeout.is_some_and(|timeout| at >= timeout) {
                return DrillEnd::TimeOver;
            }
            let next = until.timeout.map_or(next, |timeout| next.min(timeout));
            if self.wait(until, start + next) != RecordingEnd::TimedOut {
                return DrillEnd::Ended;
            }
        }
    }

    /// Until then, if nothing ends it before.
    fn wait(&mut self, until: &RecordUntil, then: Instant) -> RecordingEnd {
        if let Some(Followed::Threads(recorder)) = &mut self.followed {
            let timeout = Some(then.saturating_duration_since(Instant::now()));
            return recorder.run(RecordUntil { timeout, ..until.clone() });
        }
        let descriptors: Vec<RawFd> = until.interrupt.iter().chain(&until.ends).copied().collect();
        match sys::wait_for(&descriptors, Some(then)).contains(&true) {
            true => RecordingEnd::Interrupted,
            false => RecordingEnd::TimedOut,
        }
    }

    /// `whole`: what was counted, if nothing was sampled.
    fn write(
        self,
        whole: impl FnOnce(OutsideGroups) -> Result<OutsideCount, Error>,
        arguments: &Arguments,
        view: View,
        heading: &Heading,
    ) -> Result<(), String> {
        let counted = match (self.counted, self.groups) {
            (Some(counted), _) => counted,
            (None, Some(groups)) => whole(groups).map_err(text)?,
            (None, None) => OutsideCount::default(),
        };
        let counted_for = Duration::from_nanos(counted.run.wall_ns);
        let layout = Layout::of_output(arguments.output.as_deref(), Stream::Error);
        let profiles = self.located.recordings.iter().map(|recording| {
            let mut profile = Profile::new(recording);
            view.read_sources(&mut profile, &arguments.source);
            view.write_for(&profile, heading, &layout)
        });
        let profiles: Vec<Vec<u8>> = profiles.collect();
        let report = Report::new(&[], Some(counted));
        let remarks = self.located.remarks_of(&report, counted_for);
        let mut written = Vec::new();
        if view == View::Json {
            let start =
                serde_json::json!({ "format": FORMAT, "command": heading.command, "remarks": remarks });
            let start = start.to_string();
            written.extend_from_slice(start.trim_end_matches('}').as_bytes());
            written.extend_from_slice(b",\"counted\":");
            written.extend(encode(&report, Format::Json).map_err(text)?);
            written.extend_from_slice(b",\"located\":[");
            written.extend(profiles.join(&b","[..]));
            written.extend_from_slice(b"]}\n");
        } else {
            write_to(&report, Format::Text, &layout, &mut written).map_err(text)?;
            let said = |line: &String| written.extend((layout.sentence(line) + "\n").into_bytes());
            remarks.iter().for_each(said);
            profiles.iter().for_each(|profile| written.extend([b"\n", &profile[..]].concat()));
        }
        let written = match arguments.place() {
            None => io::stderr().write_all(&written),
            Some(path) => save(&written, &path).map(|()| say_written("profile", &path)),
        };
        written.map_err(|error| format!("the profile cannot be written: {error}; {NOTHING_KEPT}"))
    }
}

impl Located {
    /// Samples what locates these, the first of them, until something ends it.
    fn of(followed: Followed, findings: &[Finding], until: RecordUntil) -> Located {
        let most = deep_tree().map_or(1, |tree| (tree.counters / 2).clamp(1, MOST));
        let (mut events, mut remarks): (Vec<(String, EventSampling)>, _) = (Vec::new(), Vec::new());
        // (what is there for certain comes first)
        let (sure, perhaps): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|one| one.sure);
        for finding in sure.into_iter().chain(perhaps) {
            let node = finding.node.trim_start_matches("tma_");
            match EventSampling::locating(node, None) {
                Err(why) => remarks.push(why),
                Ok(event) => match events.iter().find(|(_, other)| other.event() == event.event()) {
                    Some((other, _)) => remarks.push(format!("What locates {other} locates {node}, too.")),
                    None if events.len() == most
                        || !events.iter().all(|(_, other)| event.goes_with(other)) =>
                    {
                        remarks.push(format!(
                            "What locates {node} was not sampled beside the others: `topdown record --locate {node}`."
                        ));
                    }
                    None => events.push((node.into(), event)),
                },
            }
        }
        let sampled = events.into_iter().map(|(_, event)| event).collect();
        let start = Instant::now();
        let recorder = match followed {
            Followed::Threads(mut recorder) => recorder.sample(sampled).map(|()| recorder),
            Followed::Cpus(cpus) => Recorder::of_events_on_cpus(sampled, cpus).map(Box::new),
        };
        let mut recorder = match recorder {
            Ok(recorder) => recorder,
            Err(why) => {
                remarks.push(format!("Nothing is located: {why}."));
                return Located { remarks, ..Located::default() };
            }
        };
        recorder.run(until);
        let sampled_for = start.elapsed();
        Located { sampled_for, recordings: recorder.finish_each(sampled_for), remarks }
    }

    /// What is said between what was counted, in so much time, and what was sampled.
    fn remarks_of(&self, report: &Report, counted_for: Duration) -> Vec<String> {
        let has_found = report.run.as_ref().is_some_and(|run| !run.findings.is_empty());
        let first = match (self.recordings.is_empty(), has_found) {
            (false, _) => Some(format!(
                "The tree was counted for the first {:.3} s; what locates the nodes that were found was sampled for the {:.3} s after them.",
                counted_for.as_secs_f64(),
                self.sampled_for.as_secs_f64()
            )),
            (true, _) if !self.remarks.is_empty() => None,
            (true, true) => {
                Some("Nothing was sampled: it ended, or the time was over, before it was certain what is to be located.".to_string())
            }
            (true, false) => Some(format!(
                "Nothing was sampled: in {:.3} s nothing was found that could be located.",
                counted_for.as_secs_f64()
            )),
        };
        first.into_iter().chain(self.remarks.iter().cloned()).collect()
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
