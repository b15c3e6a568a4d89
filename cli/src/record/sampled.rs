//! What `topdown record` samples: slots, an event that was asked for, or where nothing tells slots, time alone.
#![forbid(unsafe_code)]

use super::Arguments;
use crate::require::{NOT_SIMULATED, Requirement};
use crate::stat::StatTarget;
use crate::stat::levels::cause;
use crate::sys;
use crate::{say, simulation, unmeasured};
use clap::Parser;
use std::process::Command;
use std::time::Duration;
use topdown::{Error, SampledEvents};
use topdown_record::{
    CallGraph, EventSampling, Journal, RecordUntil, Recorder, Recording, RecordingEnd, Settings,
    StopRecorder, counted_events,
};

/// Samples of time in a second of it, if no others are asked for.
const TIME_FREQUENCY: u32 = 1000;
/// The same by stops, of which each takes some ten microseconds.
const STOP_FREQUENCY: u32 = 250;

/// What is sampled.
pub enum Sampled {
    /// How slots divide.
    Slots(Vec<SampledEvents>),
    /// An event.
    Event(EventSampling),
    /// Time alone, as this says why slots are not told.
    Time(EventSampling, String),
    /// Time alone, by stops.
    Stops(String),
    /// Time, in one of these ways, and with it slots of a simulated core, down to a level.
    Simulated(Box<Sampled>, &'static str, u32),
    /// Nothing can be, and why.
    Nothing(String),
}

/// What records.
pub enum AnyRecorder {
    Events(Box<Recorder>),
    Stops(Box<StopRecorder>),
    /// What it records is of time, and becomes what this core's counters would have told, down to a level.
    Simulated(Box<AnyRecorder>, &'static str, u32),
}

impl AnyRecorder {
    /// Records until something ends it.
    pub fn run(&mut self, until: RecordUntil) -> RecordingEnd {
        match self {
            AnyRecorder::Events(recorder) => recorder.run(until),
            AnyRecorder::Stops(recorder) => recorder.run(&until),
            AnyRecorder::Simulated(recorder, ..) => recorder.run(until),
        }
    }

    /// What keeps in a file what is recorded, as it comes, if there is any.
    pub fn keeper(&mut self) -> Option<&mut Recorder> {
        match self {
            AnyRecorder::Events(recorder) if !recorder.samples_events() => Some(recorder),
            AnyRecorder::Events(_) | AnyRecorder::Stops(_) | AnyRecorder::Simulated(..) => None,
        }
    }

    /// What was recorded in so much time, and the file in which it was kept.
    pub fn finish(self, elapsed: Duration) -> (Recording, Option<Journal>) {
        match self {
            AnyRecorder::Events(recorder) => recorder.finish(elapsed),
            AnyRecorder::Stops(recorder) => (recorder.finish(elapsed), None),
            AnyRecorder::Simulated(recorder, core, level) => {
                let (recording, _) = recorder.finish(elapsed);
                (recording.simulated(core, level).expect("it was seen that the core can be"), None)
            }
        }
    }
}

impl Sampled {
    /// What was asked for, and can be had.
    ///
    /// # Errors
    /// What is wrong with the event.
    pub fn of(arguments: &Arguments) -> Result<Sampled, String> {
        if let Some(sampling) = arguments.sampling()? {
            return Ok(Sampled::Event(sampling));
        }
        if arguments.ptrace {
            return Ok(Sampled::Stops("--ptrace counts nothing".into()));
        }
        let cpus = arguments.of_cpus().unwrap_or(StatTarget::Cpus(None)).online().unwrap_or_default();
        let events = |level| counted_events(level, arguments.kernel, &cpus);
        let asked = arguments.td_level.unwrap_or(0);
        let why = match events(asked) {
            Ok(events) => return Ok(Sampled::Slots(events)),
            Err(why) => why,
        };
        Ok(match if asked > 1 { events(1).ok() } else { None } {
            Some(events) => {
                say(&format!(
                    "--td-level {asked}: level 1 is sampled, the deepest that can be here: {}",
                    cause(&why)
                ));
                Sampled::Slots(events)
            }
            None => Sampled::time(arguments, &why.to_string()),
        })
    }

    /// Whether there are slots to divide.
    pub fn tells_slots(&self) -> bool {
        matches!(self, Sampled::Slots(_) | Sampled::Event(_))
    }

    fn time(arguments: &Arguments, why: &str) -> Sampled {
        let mut settings = settings(arguments, TIME_FREQUENCY);
        if settings.callers == CallGraph::Lbr {
            settings.callers = CallGraph::FramePointers;
            say(
                "--call-graph lbr: samples of time have no branch records: callers are those that frame pointers tell",
            );
        }
        match EventSampling::of_time(settings, arguments.of_cpus().is_some(), why.into()) {
            Ok(sampling) => Sampled::Time(sampling, why.into()),
            Err(refused) => Sampled::Nothing(format!(
                "{why}; nor can time be sampled: {refused}{}",
                if arguments.command.is_empty() || arguments.kernel || !sys::has_proc() {
                    ""
                } else if unmeasured::is_32_bit(&arguments.command[0]) {
                    "; nor can a 32-bit program be recorded by --ptrace"
                } else {
                    "; --ptrace stops the command's threads and looks at them (debuggers and setuid programs do not work in it)"
                }
            )),
        }
    }

    /// Time, with slots of this simulated core.
    ///
    /// # Errors
    /// What is asked for is nothing that it counts, or time cannot be sampled.
    pub fn simulated(arguments: &Arguments, core: &'static str) -> Result<Sampled, String> {
        let asked = [
            (arguments.condition.is_some(), "--where"),
            (arguments.locate.is_some(), "--locate"),
            (arguments.drill, "--drill"),
        ];
        if let Some((_, option)) = asked.iter().find(|(is_asked, _)| *is_asked) {
            return Err(simulation::refused(option, "counts no single events, nor levels 3 to 6"));
        }
        let level = arguments.td_level.unwrap_or(0);
        if !Recording::can_simulate(core) {
            return Err(format!("{}: what {core} counts between samples is not known", simulation::VARIABLE));
        }
        let why = "slots are simulated";
        let time = match Sampled::time(arguments, why) {
            _ if arguments.ptrace => Sampled::Stops(why.into()),
            // (where the kernel has no timer for it, stops tell the time of a command, too)
            Sampled::Nothing(_)
                if !arguments.command.is_empty() && arguments.of_cpus().is_none() && !arguments.kernel =>
            {
                Sampled::Stops(why.into())
            }
            time => time,
        };
        Ok(Sampled::Simulated(Box::new(time), core, level))
    }

    /// What `topdown record` with these options would sample of a command, once it was opened on this process.
    ///
    /// # Errors
    /// Nothing, and why.
    pub fn here(options: &[&str]) -> Result<Sampled, String> {
        let arguments = parsed(&[options, &["true"]].concat())?;
        let sampled = Sampled::of(&arguments)?;
        sampled.recorder(&arguments, &[std::process::id() as i32], true)?;
        Ok(sampled)
    }

    /// What `topdown record` with these options would sample of the processes or CPUs that they name, once it was opened on these.
    ///
    /// # Errors
    /// Nothing, and why.
    pub fn of_others_here(options: &[&str]) -> Result<Sampled, String> {
        let arguments = parsed(options)?;
        let sampled = Sampled::of(&arguments)?;
        sampled.recorder(&arguments, &arguments.pid, true)?;
        Ok(sampled)
    }

    /// Whether `--ptrace` can be: tried on a command of its own.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn by_stops_here() -> Result<(), String> {
        threads_are_seen()?;
        let open = |pid| StopRecorder::of_command(pid, Settings::default(), String::new());
        let run = |recorder: &mut Result<StopRecorder, Error>, _, _| {
            recorder.iter_mut().for_each(|recorder| _ = recorder.run(&RecordUntil::default()));
        };
        let ran = sys::run_attended(&mut Command::new("true"), open, run);
        let (_, recorder) = ran.map_err(|error| format!("cannot run true: {error}"))?;
        recorder.map(drop).map_err(|error| cause(&error))
    }

    /// Opens it.
    ///
    /// # Errors
    /// The kernel's, and what was refused.
    pub fn recorder(&self, arguments: &Arguments, pids: &[i32], there: bool) -> Result<AnyRecorder, String> {
        let cpus = || arguments.cpus.clone();
        let of_cpus = arguments.of_cpus().is_some();
        if !of_cpus {
            threads_are_seen()?;
        }
        let recorder = match self {
            Sampled::Nothing(why) => return Err(why.clone()),
            Sampled::Simulated(time, core, level) => {
                let time = Box::new(time.recorder(arguments, pids, there)?);
                return Ok(AnyRecorder::Simulated(time, core, *level));
            }
            Sampled::Stops(why) => {
                let settings = settings(arguments, STOP_FREQUENCY);
                let recorder = StopRecorder::of_command(pids[0], settings, why.clone());
                return recorder
                    .map(|all| AnyRecorder::Stops(Box::new(all)))
                    .map_err(|error| error.to_string());
            }
            Sampled::Event(sampling) | Sampled::Time(sampling, _) if of_cpus => {
                Recorder::of_events_on_cpus(vec![sampling.clone()], cpus())
            }
            Sampled::Event(sampling) | Sampled::Time(sampling, _) => {
                Recorder::of_events(vec![sampling.clone()], pids, there)
            }
            Sampled::Slots(events) => {
                let settings = settings(arguments, Settings::default().frequency);
                match of_cpus {
                    true => Recorder::of_cpus(events.clone(), cpus(), settings),
                    false => Recorder::new(events.clone(), pids, there, settings),
                }
            }
        };
        recorder.map(|all| AnyRecorder::Events(Box::new(all))).map_err(|error| error.to_string())
    }

    /// Why what is recorded itself cannot be kept, to make other profiles of it later; None: it can.
    pub fn has_no_recording(&self) -> Option<String> {
        match self {
            Sampled::Slots(_) | Sampled::Nothing(_) => None,
            Sampled::Event(_) => {
                Some("there is no .recording of samples of an event; choose another ending".into())
            }
            Sampled::Simulated(..) => {
                Some(simulation::refused("-o FILE.recording", "leaves nothing to make other profiles of"))
            }
            Sampled::Time(_, why) | Sampled::Stops(why) => Some(format!(
                "slots cannot be told here ({why}), and of time alone there is no .recording; choose another ending"
            )),
        }
    }

    /// What is lacking of what is required; None: nothing.
    pub fn lacks(&self, required: Requirement) -> Option<String> {
        let levels = |events: &Vec<SampledEvents>| {
            events.iter().flat_map(SampledEvents::nodes).map(|node| node.level).max().unwrap_or(0)
        };
        match (self, required) {
            (Sampled::Simulated(..), _) => Some(NOT_SIMULATED.into()),
            (Sampled::Nothing(why) | Sampled::Time(_, why) | Sampled::Stops(why), _) => {
                Some(format!("slots are not told: {why}"))
            }
            (Sampled::Event(sampling), _) => {
                Some(format!("slots are not told of samples of {}", sampling.event()))
            }
            (Sampled::Slots(events), Requirement::Level(level)) if levels(events) < level => {
                Some(format!("slots are told down to level {}, not {level}", levels(events)))
            }
            (Sampled::Slots(_), _) => None,
        }
    }
}

/// Why no threads are recorded where they cannot be found.
pub const NO_PROC: &str = "/proc is not there, where threads are found: mount -t proc proc /proc";

fn threads_are_seen() -> Result<(), String> {
    if sys::has_proc() { Ok(()) } else { Err(NO_PROC.into()) }
}

/// Arguments of `topdown record`.
fn parsed(arguments: &[&str]) -> Result<Arguments, String> {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: Arguments,
    }
    let parsed = Alone::try_parse_from([&["record"], arguments].concat());
    parsed.map(|alone| alone.arguments).map_err(|error| error.to_string())
}

/// How to record: so many samples or bursts in a second, unless -F says otherwise.
fn settings(arguments: &Arguments, frequency: u32) -> Settings {
    Settings {
        frequency: arguments.frequency.unwrap_or(frequency),
        gap: arguments.gap,
        budget: arguments.budget / 100.0,
        callers: arguments.call_graph,
        kernel: arguments.kernel,
    }
}
