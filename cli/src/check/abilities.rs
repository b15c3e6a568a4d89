//! What can be done here: each thing is tried as the command that does it would.
#![forbid(unsafe_code)]

use super::surroundings::Surroundings;
use crate::record::Sampled;
use crate::stat::drill::{DeepNodes, TurnPlan};
use crate::stat::levels::{DEEPEST, LevelTrial, cause};
use crate::stat::{StatTarget, timed};
use crate::{preload, sys};
use std::fs;
use topdown::{
    CoreKind, Error, Info, Obstacle, Options, Path, SourceKind, TimedEvent, TopDown, withheld_by_watchdog,
};
use topdown_record::TimedStart;

/// One thing that `topdown` does.
pub struct Ability {
    /// Its name for scripts, which stays as it is.
    pub name: &'static str,
    /// How its user writes it.
    pub title: &'static str,
    pub found: Result<Extent, Refusal>,
}

/// How far it goes.
#[derive(Default)]
pub struct Extent {
    /// Down to this level.
    pub level: Option<u32>,
    /// By what, or what of it: "rdpmc" or "read", "slots" or `TIME`; "": that is no question.
    pub how: &'static str,
    /// Why it goes no further; empty: it does all that there is.
    pub less: Refusal,
}

/// `Extent::how` of what tells no slots.
const TIME: &str = "time";

/// Why it does not go, or not further.
#[derive(Clone, Default)]
pub struct Refusal {
    pub why: String,
    /// What would permit it.
    pub obstacle: Option<Obstacle>,
}

type Trial = fn(&Here) -> Result<Extent, Refusal>;

/// What is tried, in the order in which it is told: its name, its title, and how.
const TRIALS: [(&str, &str, Trial); 10] = [
    ("stat", "stat", stat),
    ("run", "run", run),
    ("regions", "regions", regions),
    ("record", "record", record),
    ("record_ptrace", "record --ptrace", record_ptrace),
    ("drill", "stat --drill", drill),
    ("record_tpebs", "stat --record-tpebs", record_tpebs),
    ("kernel", "stat --kernel", kernel),
    ("all_cpus", "stat -a, top", all_cpus),
    ("record_all_cpus", "record -a", record_all_cpus),
];

/// What all need.
struct Here {
    /// Why a thread's slots of user mode cannot be counted; None: they can.
    refused: Option<Refusal>,
}

/// Tries everything.
pub fn abilities(surroundings: &Surroundings) -> Vec<Ability> {
    let here = Here { refused: TopDown::open(&counters(false)).err().map(|why| Refusal::of(&why, 2)) };
    let ability = |(name, title, tried): &(&'static str, &'static str, Trial)| {
        let lack = surroundings.lack(name);
        let found = tried(&here).map_err(|refusal| lack.map_or(refusal, Refusal::new));
        Ability { name, title, found }
    };
    TRIALS.iter().map(ability).collect()
}

fn counters(kernel: bool) -> Options {
    Options { level: 1, kernel, source: SourceKind::Counters, ..Options::default() }
}

impl Refusal {
    fn new(why: impl Into<String>) -> Refusal {
        Refusal { why: why.into(), obstacle: None }
    }

    /// By the kernel, of what needs kernel.perf_event_paranoid to be no more than that.
    fn of(error: &Error, needed: i64) -> Refusal {
        Refusal { why: cause(error), obstacle: obstacle(error, needed) }
    }
}

/// What stands in the way, if that is a setting.
fn obstacle(error: &Error, needed: i64) -> Option<Obstacle> {
    let text = |path| fs::read_to_string(path).ok();
    match -error.code() {
        libc::EACCES => {
            let found =
                text("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.trim().parse().ok());
            found.is_none_or(|found| found > needed).then_some(Obstacle::Paranoid { found, needed })
        }
        libc::EPERM | libc::ENOSYS => {
            let status = text("/proc/thread-self/status").unwrap_or_default();
            let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
            mode.is_none_or(|mode| mode.trim() != "0").then_some(Obstacle::Seccomp)
        }
        _ => None,
    }
}

impl Here {
    /// Why this cannot be done: as nothing can, or for a reason of its own.
    fn refusal(&self, why: impl Into<String>) -> Refusal {
        self.refused.clone().unwrap_or_else(|| Refusal::new(why))
    }

    /// How deep this counts, on each kind of core.
    fn level(&self, trial: &LevelTrial) -> Result<Extent, Refusal> {
        let reached = trial.reached(DEEPEST).map_err(|why| self.refusal(why))?;
        let (mut level, mut why) = (reached.told, reached.why_no_deeper);
        if let Some(e_cores) = e_cores().filter(|e_cores| e_cores.level < level) {
            (level, why) = (e_cores.level, format!("of E-cores {}", e_cores.note));
        }
        let watchdog = withheld_by_watchdog().filter(|withheld| *withheld > level);
        let less = Refusal { why, obstacle: watchdog.map(|_| Obstacle::Watchdog) };
        Ok(Extent { level: Some(level), less, ..Extent::default() })
    }
}

/// What the E-cores of a hybrid CPU are counted by: as much as fits.
fn e_cores() -> Option<Info> {
    TopDown::open(&Options { cores: CoreKind::Efficiency, ..Options::default() })
        .and_then(|td| td.info())
        .ok()
}

const OUTSIDE: LevelTrial = LevelTrial { cpus: None, kernel: false, source: SourceKind::Counters };

fn stat(here: &Here) -> Result<Extent, Refusal> {
    here.level(&OUTSIDE)
}

fn run(here: &Here) -> Result<Extent, Refusal> {
    let inside = regions(here)?;
    match here.level(&LevelTrial { source: SourceKind::Automatic, ..OUTSIDE }) {
        Err(_) if inside.how == TIME => Ok(inside),
        level => level,
    }
}

/// (Without counters the library has clocks.)
fn regions(_: &Here) -> Result<Extent, Refusal> {
    preload::find(None).map_err(Refusal::new)?;
    Ok(match TopDown::open(&Options::default()).and_then(|td| td.info()) {
        Ok(Info { path: Path::Rdpmc, .. }) => Extent { how: "rdpmc", ..Extent::default() },
        Ok(info) => Extent { how: "read", less: Refusal::new(info.note.to_string()), ..Extent::default() },
        Err(why) => Extent { how: TIME, less: Refusal::of(&why, 2), ..Extent::default() },
    })
}

fn record(here: &Here) -> Result<Extent, Refusal> {
    recorded(here.refused.as_ref(), &[], 2)
}

fn record_ptrace(_: &Here) -> Result<Extent, Refusal> {
    let time = Extent { how: TIME, ..Extent::default() };
    Sampled::by_stops_here().map(|()| time).map_err(Refusal::new)
}

fn record_all_cpus(here: &Here) -> Result<Extent, Refusal> {
    let refused = all_cpus(here).err().or(here.refused.clone());
    recorded(refused.as_ref(), &["-a"], 0)
}

/// What `topdown record` samples, where counting is refused or not. Whatever there is to count, kernel.perf_event_paranoid has to be `needed` or less.
fn recorded(refused: Option<&Refusal>, options: &[&str], needed: i64) -> Result<Extent, Refusal> {
    let refusal = |why| refused.cloned().unwrap_or_else(|| Refusal::new(why));
    match Sampled::here(options) {
        Ok(Sampled::Time(_, why)) => Ok(Extent { how: TIME, less: refusal(why), ..Extent::default() }),
        Ok(_) => Ok(Extent { how: "slots", ..Extent::default() }),
        Err(why) => Err(match sys::events_are_refused(needed < 2) {
            Some(error) => Refusal::of(&error, needed),
            None => refusal(why),
        }),
    }
}

fn drill(here: &Here) -> Result<Extent, Refusal> {
    let level = OUTSIDE.deep().map_err(|why| here.refusal(why))?;
    Ok(Extent { level: Some(level), ..Extent::default() })
}

fn record_tpebs(here: &Here) -> Result<Extent, Refusal> {
    let wanted = DeepNodes { record_tpebs: true, ..DeepNodes::default() };
    let plan = TurnPlan::of(None, &wanted, &OUTSIDE)
        .map_err(|(_, why)| here.refusal(why.trim_start_matches("--record-tpebs, --tpebs-mode: ")))?;
    let group = plan.timed.first().map_or(0, |event| event.group);
    let events: Vec<TimedEvent> = plan.timed.into_iter().filter(|event| event.group == group).collect();
    let places = timed::places(&[std::process::id() as i32], std::iter::empty());
    let opened = timed::open(&events, places, false, TimedStart::Switched);
    opened.map(|_| Extent::default()).map_err(|why| here.refusal(cause(&why)))
}

fn kernel(_: &Here) -> Result<Extent, Refusal> {
    TopDown::open(&counters(true)).map(|_| Extent::default()).map_err(|why| Refusal::of(&why, 1))
}

fn all_cpus(_: &Here) -> Result<Extent, Refusal> {
    let level_1 = Options { level: 1, ..Options::default() };
    let opened = StatTarget::Cpus(None).open(&level_1, &[]);
    opened.map(|_| Extent::default()).map_err(|why| Refusal::of(&why, 0))
}
