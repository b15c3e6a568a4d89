//! All that was seen.
#![forbid(unsafe_code)]

use crate::budget::{BurstBudget, Pace};
use crate::cpus::CpuTotals;
use crate::event_sampling::{EventSampling, Tally};
use crate::file_proof::boot_id;
use crate::processes::is_process;
use crate::proof::Calls;
use crate::settings::Settings;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use crate::strata::ThreadInstant;
use crate::unseen::Unseen;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use topdown::SampledEvents;

/// Two neighbouring samples of a burst, or three, each in a stack; or one that an event has taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Burst {
    pub kind: usize,
    /// Which ran.
    #[serde(default)]
    pub thread: i32,
    /// When, by the clock of all records.
    #[serde(default)]
    pub at: u64,
    pub long: bool,
    /// The thread's time for which it stands; of events how many it stands for.
    pub weight_ns: u64,
    pub stacks: Vec<u32>,
    /// What was counted between each two; none where that is not proved.
    pub windows: Vec<Option<Vec<u64>>>,
    #[serde(default, skip_serializing_if = "Calls::are_unknown")]
    pub calls: Calls,
    /// The retire latency of what an event has sampled, in cycles, where it is told.
    #[serde(skip)]
    pub latency: Option<u16>,
}

impl Burst {
    /// When it came, and what it tells.
    pub fn came(&self) -> ThreadInstant {
        let windows = self.windows.iter().any(Option::is_some);
        ThreadInstant { of: (self.kind, self.thread), at: self.at, ns: self.weight_ns, windows }
    }
}

/// All that was seen.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) events: Vec<SampledEvents>,
    pub(crate) settings: Settings,
    pub(crate) bursts: Vec<Burst>,
    pub(crate) stacks: Vec<Vec<CodePlace>>,
    pub(crate) modules: Vec<Module>,
    /// Modules' files that are open since they were mapped.
    pub(crate) files: Arc<HashMap<u32, File>>,
    /// Names of code of no file, as they were when the recording ended.
    pub(crate) made: Arc<BTreeMap<CodePlace, String>>,
    pub(crate) totals: Totals,
    /// Samples are of this event: `events` are none, and a burst is one sample.
    pub(crate) sampling: Option<(EventSampling, Tally)>,
    /// Of each sample of time the views show windows that are made up.
    /// What has told the time.
    pub(crate) simulated: Option<&'static str>,
}

/// What is told of it besides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub elapsed: Duration,
    pub threads: usize,
    /// Threads on which no counters could be opened, and why the first could not.
    pub refused: (usize, String),
    #[serde(default)]
    pub unseen: Unseen,
    /// Threads whose time bursts tell, in the kernel, too.
    #[serde(default)]
    pub unclocked: usize,
    /// Threads whose time a timer tells.
    #[serde(default)]
    pub by_timer: usize,
    /// Processes that still ran when those that were waited for had ended.
    #[serde(default)]
    pub left_running: usize,
    /// Sentences on names of code that a JIT compiler made and that are missing.
    #[serde(default)]
    pub unnamed: Vec<String>,
    /// Of the machine's start in which it was recorded.
    #[serde(default)]
    pub boot: String,
    pub lost: u64,
    /// The kernel throttled samples, or let them go on.
    pub throttled: u64,
    /// Windows in which others took the counters, samples were throttled, or a record was lost.
    pub parted: u64,
    /// Bursts in which an event counted more than there were slots.
    pub impossible: u64,
    pub pace: Pace,
    /// None: threads were recorded, not CPUs.
    #[serde(default)]
    pub cpus: Option<CpuTotals>,
}

impl Totals {
    /// A timer tells the time, of one thread or CPU at least.
    pub fn is_by_timer(&self) -> bool {
        self.cpus.as_ref().map_or(self.by_timer > 0, |cpus| cpus.by_timer)
    }
}

impl Recording {
    /// In which nothing was seen yet.
    pub(crate) fn none(events: Vec<SampledEvents>, settings: Settings) -> Recording {
        let pace = BurstBudget::new(settings.frequency, settings.budget).pace();
        let totals = Totals {
            elapsed: Duration::ZERO,
            threads: 0,
            refused: (0, String::new()),
            unseen: Unseen::default(),
            unclocked: 0,
            by_timer: 0,
            left_running: 0,
            unnamed: Vec::new(),
            boot: boot_id().into(),
            lost: 0,
            throttled: 0,
            parted: 0,
            impossible: 0,
            pace,
            cpus: None,
        };
        let (bursts, stacks, modules) = (Vec::new(), Vec::new(), Vec::new());
        let (files, made) = (Arc::default(), Arc::default());
        Recording {
            events,
            settings,
            bursts,
            stacks,
            modules,
            files,
            made,
            totals,
            sampling: None,
            simulated: None,
        }
    }

    /// Weights are nanoseconds: no events are sampled.
    pub(crate) fn is_of_time(&self) -> bool {
        self.sampling.as_ref().is_none_or(|(sampling, _)| sampling.of().is_time())
    }

    /// Whether of any sample a caller is known. (A process is the outermost frame of its stacks, and calls nothing.)
    pub(crate) fn tells_callers(&self) -> bool {
        let is_code = |place: &&CodePlace| !is_process(place, &self.modules);
        self.stacks.iter().any(|stack| stack.iter().filter(is_code).count() > 1)
    }
}
