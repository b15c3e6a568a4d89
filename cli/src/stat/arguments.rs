//! The options of `topdown stat`.
#![forbid(unsafe_code)]

use super::cgroups::CgroupRows;
use super::cpus::{E_CORES, cpu_list};
use super::drill::{DeepNodes, TurnPlan};
use super::groups::RECORD_SLOTS;
use super::levels::{DEEPEST, LevelTrial};
use super::rows_per::RowsPer;
use super::table::Style;
use super::target::StatTarget;
use crate::metrics::Endpoint;
use crate::outcome::{Failure, failed};
use crate::require::Requirement;
use crate::{say, simulation, sys};
use clap::ArgGroup;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use topdown::{Options, SourceKind, TD_NODE_NONE, TopDown};
use topdown_report::Format;

/// Options of `topdown stat`.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("of_cpus").args(["all_cpus", "cpus"]).multiple(true)))]
#[command(group(ArgGroup::new("of_threads").args(["pid", "tid"])))]
pub struct Arguments {
    /// Count these processes: all their threads, and what those start from now on. Until they end, COMMAND ends, or Ctrl-C
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), help_heading = WHOM)]
    pub(super) pid: Vec<i32>,
    /// Count these threads, and what they start from now on
    #[arg(short, long, value_name = "TID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "pid", help_heading = WHOM)]
    pub(super) tid: Vec<i32>,
    /// Count whatever runs on all CPUs, until COMMAND ends or Ctrl-C (kernel.perf_event_paranoid at most 0, or CAP_PERFMON)
    #[arg(short, long, conflicts_with_all = ["pid", "tid"], help_heading = WHOM)]
    pub(super) all_cpus: bool,
    /// Count whatever runs on these CPUs: a list such as 0-3,7
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = cpu_list, conflicts_with_all = ["pid", "tid"], help_heading = WHOM)]
    pub(super) cpus: Option<BTreeSet<u32>>,
    /// Count these cgroups, each with its descendants, on all CPUs or those of -C: a row for each. They are named by their paths below the mount
    /// point of the hierarchy (mostly /sys/fs/cgroup)
    #[arg(short = 'G', long, value_name = "CGROUP,...", value_delimiter = ',', conflicts_with_all = ["pid", "tid", "per_core", "per_socket"], help_heading = WHOM)]
    pub(super) cgroup: Vec<String>,
    /// End after so many milliseconds; a command gets SIGTERM then
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=LONGEST), help_heading = WHOM)]
    pub(super) timeout: Option<u64>,
    /// If the command leaves processes behind, wait until they have ended, too, or for Ctrl-C
    #[arg(long, conflicts_with_all = OTHERS, help_heading = WHOM)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) what: CountOptions,
    /// Exit with status 123 if the command succeeds and of the whole no slots are measured, or no nodes of this level: of a report, not of rows
    #[arg(long, value_name = "slots|LEVEL")]
    pub(super) require: Option<Requirement>,
    /// A row for each interval of so many milliseconds, from 10 up
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=LONGEST), help_heading = ROWS)]
    pub(super) interval_print: Option<u64>,
    /// Run the command so often: a row for each run, their mean, and their spread (the standard deviation)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = OTHERS, conflicts_with = "interval_print", help_heading = ROWS)]
    pub(super) repeat: Option<u32>,
    /// A row for each core, with its hardware threads
    #[arg(long, conflicts_with_all = ["pid", "tid", "per_socket"], requires = "of_cpus", help_heading = ROWS)]
    pub(super) per_core: bool,
    /// A row for each socket
    #[arg(long, conflicts_with_all = ["pid", "tid"], requires = "of_cpus", help_heading = ROWS)]
    pub(super) per_socket: bool,
    /// A row for each cgroup in which something runs, on all CPUs or those of -C. With DEPTH, cgroups more than so many levels below the root are
    /// counted in their ancestor at that level
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, require_equals = true, default_missing_value = "1000", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["pid", "tid", "cgroup", "per_core", "per_socket"], help_heading = ROWS)]
    pub(super) per_cgroup: Option<u32>,
    /// With -p or -t: a row for each thread that was there at the start, with what it started. Else a row for each thread of the
    /// command and of all that it starts, and one for the rest (Linux 6.12 or later)
    #[arg(long, conflicts_with_all = ["of_cpus", "cgroup", "per_cgroup"], help_heading = ROWS)]
    pub(super) per_thread: bool,
    /// A row for each process of the command, and one for the rest (Linux 6.12 or later)
    #[arg(long, conflicts_with_all = OTHERS, conflicts_with_all = ["per_thread", "interval_print", "repeat"], help_heading = ROWS)]
    pub(super) per_process: bool,
    /// Write the report to FILE (- for standard output), in the format of its ending: .csv, .json, .html, .parquet, .pftrace, .txt or none
    /// [default: a text to standard error]. In the name, %p stands for the process id, %h for the host, %r for the rank, %n for the program,
    /// %t for the time
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
    /// Write what was counted in each interval to FILE, too: .csv, .json, or .pftrace for ui.perfetto.dev. With it, or with an HTML
    /// report, -I says how long intervals are [default: 10]; they are doubled whenever there are 1,000
    #[arg(long, value_name = "FILE", conflicts_with_all = PARTS, help_heading = OUTPUT)]
    pub(super) timeline: Option<PathBuf>,
    /// Answer HTTP requests for OpenMetrics (/metrics) at this address meanwhile: HOST:PORT, or a PORT of this machine alone
    #[arg(long, value_name = "ADDR", conflicts_with = "repeat", help_heading = OUTPUT)]
    pub(super) open_metrics: Option<String>,
    /// Write rows of values with SEP between them, below a row of their names
    #[arg(short = 'x', long, value_name = "SEP", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = OUTPUT)]
    pub(super) field_separator: Option<String>,
    /// Write each row as JSON, on a line
    #[arg(short, long, conflicts_with = "field_separator", help_heading = OUTPUT)]
    pub(super) json_output: bool,
    /// Write the whole report as JSON, whatever the ending
    #[arg(long, conflicts_with_all = TABLES, help_heading = OUTPUT)]
    pub(super) json: bool,
    /// Write the whole report as comma-separated values, whatever the ending
    #[arg(long, conflicts_with = "json", conflicts_with_all = TABLES, help_heading = OUTPUT)]
    pub(super) csv: bool,
    /// The command and its arguments
    #[arg(required_unless_present_any = OTHERS, trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Milliseconds: thirty years.
pub const LONGEST: u64 = 1_000_000_000_000;
const WHOM: &str = "Whom";
const ROWS: &str = "Rows";
const OUTPUT: &str = "Output";
/// What is counted if not a command.
const OTHERS: [&str; 6] = ["pid", "tid", "all_cpus", "cpus", "cgroup", "per_cgroup"];
/// What has rows, not a report.
const TABLES: [&str; 10] = [
    "interval_print",
    "cgroup",
    "per_cgroup",
    "repeat",
    "per_core",
    "per_socket",
    "per_thread",
    "per_process",
    "field_separator",
    "json_output",
];

/// What has rows of parts.
const PARTS: [&str; 9] = [
    "repeat",
    "cgroup",
    "per_cgroup",
    "per_core",
    "per_socket",
    "per_thread",
    "per_process",
    "field_separator",
    "json_output",
];

/// What is counted.
#[derive(clap::Args, Clone, Default)]
pub struct CountOptions {
    /// Count down to this level [default: the deepest that the general-purpose counters have; of rows of text 1. Level 1 takes three or four
    /// general-purpose counters, level 2 seven or eight]. Where no group of them holds the level whole, groups of its parts take turns
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=DEEPEST.into()))]
    pub(super) td_level: Option<u32>,
    #[command(flatten)]
    pub(super) deep: DeepNodes,
    /// Count what is below this node beside level 1, on cores whose counters cannot hold all of a level in one group: perf's name
    /// of it, such as frontend_bound
    #[arg(long, value_name = "NODE", value_parser = subtree, conflicts_with_all = ["nodes", "drill", "metrics"])]
    pub(super) subtree: Option<u32>,
    /// Count what the kernel does, too
    #[arg(long)]
    pub(super) kernel: bool,
    /// The core that is simulated, if one is.
    #[arg(skip)]
    pub(super) simulated: Option<&'static str>,
}

fn subtree(name: &str) -> Result<u32, &'static str> {
    topdown::subtree_of_name(name)
        .ok_or("no node that is the parent of others; `topdown list` has their names")
}

/// How it is called.
pub const USAGE: &str = "topdown stat [OPTIONS] COMMAND...
       topdown stat [OPTIONS] -p PID,... | -t TID,... [COMMAND...]
       topdown stat [OPTIONS] -a | -C CPUS [COMMAND...]
       topdown stat [OPTIONS] --per-cgroup | -G CGROUP,... [COMMAND...]";

/// What `topdown stat --help` says of the rest.
pub const HELP: &str = "\
Nothing is loaded into the command, which runs as it would without: same input and output, same exit status. It is counted with all
threads and processes that it starts, in user mode, to the end of each, whatever ends it; static programs, too. What cannot be
counted runs all the same, and one line says why. Regions are for `topdown run`.

Rows have perf's names of the metrics, as shares of the slots; `within`, the bound on the error of each share in points; `running`, the
part of the time in which the counters counted; instructions per cycle and the clock where they can be counted beside. On hybrid CPUs P-
and E-cores each have a row.

Exit status: that of the command, and if a signal killed it, by the same signal; 126 if the command cannot be
executed, 127 if it is not found; 125 if `topdown` itself fails before it runs, as for wrong arguments; 123 if it succeeds and less was
measured than --require says.";

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Report(Format),
    Rows(Style),
}

impl Arguments {
    /// What the patterns in names of files stand for.
    pub(super) fn name_files(&mut self) -> Result<(), Failure> {
        let program = self.command.first();
        for file in self.output.iter_mut().chain(&mut self.timeline) {
            *file = sys::named(file, program).map_err(failed)?;
        }
        Ok(())
    }

    /// What is counted in turns; none: one group holds it, or none does.
    pub(super) fn turns(&self) -> Result<TurnPlan, Failure> {
        let deep = &self.what.deep;
        let has_rows = matches!(self.show()?, Show::Rows(_));
        if has_rows && deep.drill && (self.interval_print.is_some() || self.repeat.is_some()) {
            return Err(failed(
                "--drill finds what a report has, and -I and -r show rows: without these, or --td-level 6 in place of --drill",
            ));
        }
        if let Show::Report(format) = self.show()? {
            deep.check_format(format)?;
        }
        if has_rows && self.require.is_some() {
            return Err(failed(
                "--require looks at what a report has, and -I, -r, -x, -j, -G and --per-... show rows: without these",
            ));
        }
        if has_rows && deep.has_figures() {
            return Err(failed(
                "--metrics and --record-tpebs tell what a report has, and -I, -r, -x, -j, -G and --per-... show rows: without these",
            ));
        }
        if let Some(core) = self.what.simulated {
            return self.simulated_turns(core);
        }
        let trial =
            LevelTrial { cpus: self.cpus.as_ref(), kernel: self.what.kernel, source: SourceKind::Counters };
        let turns = TurnPlan::of(self.what.td_level, &self.what.deep, &trial)?;
        let refused = [(self.by().is_some(), "rows of parts (--per-..., -G)"), (self.wait, "--wait")];
        match refused.iter().find(|(given, _)| *given && !turns.parts.is_empty()) {
            Some((_, what)) => Err(failed(format!(
                "--td-level, --drill, --nodes, --metrics: no group holds this level here, so groups of its parts take turns, of all that is counted and while the \
                 command runs: not with {what}; --subtree counts a part of it all the time"
            ))),
            None => Ok(turns),
        }
    }

    /// The level that is counted where a core is simulated, of which nothing takes turns.
    fn simulated_turns(&self, core: &'static str) -> Result<TurnPlan, Failure> {
        self.what.deep.refuse_simulated().map_err(failed)?;
        if self.by_task().is_some() || self.cgroups().is_some() {
            let what = "does not tell threads and processes of a command apart, nor cgroups";
            return Err(failed(simulation::refused("--per-thread, --per-process, --per-cgroup, -G", what)));
        }
        let Some(level) = self.what.td_level else {
            // (what cannot be, as this subtree, is known before anything runs)
            let options = simulation::options(&self.options(&self.show()?));
            return TopDown::open(&options).map(|_| TurnPlan::default()).map_err(failed);
        };
        let reached = simulation::reached(core, level).map_err(failed)?;
        let remark = reached.remark(level);
        remark.iter().for_each(|line| say(line));
        Ok(TurnPlan { level_instead: remark.map(|_| reached.level), ..TurnPlan::default() })
    }

    /// Who is counted, if not the command.
    pub(super) fn whom(&self) -> Option<StatTarget> {
        match self {
            _ if !self.pid.is_empty() => Some(StatTarget::Processes(self.pid.iter().copied().collect())),
            _ if !self.tid.is_empty() => Some(StatTarget::Threads(self.tid.iter().copied().collect())),
            _ if self.all_cpus || self.cpus.is_some() || self.cgroups().is_some() => {
                Some(StatTarget::Cpus(self.cpus.clone()))
            }
            _ => None,
        }
    }

    /// Which cgroups are told apart, if they are.
    pub(super) fn cgroups(&self) -> Option<CgroupRows> {
        match self.per_cgroup {
            Some(depth) => Some(CgroupRows::Each(depth as usize)),
            None if !self.cgroup.is_empty() => Some(CgroupRows::named(&self.cgroup)),
            None => None,
        }
    }

    pub(super) fn by(&self) -> Option<RowsPer> {
        let ways = [
            (self.cgroups().is_some(), RowsPer::Cgroup),
            (self.per_core, RowsPer::Core),
            (self.per_socket, RowsPer::Socket),
            (self.per_thread, RowsPer::Thread),
            (self.per_process, RowsPer::Process),
        ];
        ways.into_iter().find(|(chosen, _)| *chosen).map(|(_, by)| by)
    }

    /// If the command's threads or processes are told apart: which.
    pub(super) fn by_task(&self) -> Option<RowsPer> {
        self.by().filter(|by| matches!(by, RowsPer::Thread | RowsPer::Process) && self.whom().is_none())
    }

    /// Of a hybrid CPU, whose kinds of cores have no subtree in common, what to choose.
    pub(super) fn e_cores_instead(&self) -> String {
        let cpus = fs::read_to_string(format!("/sys/bus/event_source/devices/{E_CORES}/cpus"));
        match cpus {
            Ok(cpus) if self.what.subtree.is_some() && self.cpus.is_none() => {
                format!("; of the E-cores (-C {}) other subtrees can be (docs/cpus.md)", cpus.trim())
            }
            _ => String::new(),
        }
    }

    /// Options that do not go together, and that clap cannot tell.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.what.subtree.is_some() && self.what.td_level.is_some() {
            return Err(failed(
                "--subtree counts level 1 and what is below its node, as deep as one group holds: leave --td-level out; or leave --subtree \
                 out, and a level that no group holds is counted by groups that take turns",
            ));
        }
        match self.by_task().is_some() && (self.interval_print.is_some() || self.repeat.is_some()) {
            true => Err(failed("--per-thread of a command: not with --interval-print or --repeat")),
            false => Ok(()),
        }
    }

    pub(super) fn show(&self) -> Result<Show, Failure> {
        let parts = self.repeat.is_some() || self.by().is_some();
        let rows = self.interval_print.is_some() || parts;
        let format = Format::of(self.output.as_deref()).map_err(failed)?;
        Ok(match (&self.field_separator, format) {
            (Some(separator), _) => Show::Rows(Style::Separated(separator.clone())),
            _ if self.json_output => Show::Rows(Style::JsonLines),
            _ if self.json => Show::Report(Format::Json),
            _ if self.csv => Show::Report(Format::Csv),
            (_, format) if !rows => Show::Report(format),
            // intervals are its timeline
            (_, format) if self.timeline.is_some() => Show::Report(format),
            (_, Format::Html | Format::Trace | Format::Parquet) if !parts => Show::Report(format),
            (_, Format::Text) => Show::Rows(Style::Text),
            (_, Format::Csv) => Show::Rows(Style::Separated(",".into())),
            (_, Format::Json) => Show::Rows(Style::JsonArray),
            (_, Format::Html) => return Err(failed("rows are a text, .csv or .json, not .html")),
            (_, Format::Trace) => return Err(failed("rows are a text, .csv or .json, not a trace")),
            (_, Format::Parquet) => return Err(failed("rows are a text, .csv or .json, not .parquet")),
        })
    }

    /// What all groups have in common.
    pub(super) fn options(&self, show: &Show) -> Options {
        let CountOptions { td_level, subtree, kernel, simulated, .. } = self.what;
        let level = if *show == Show::Rows(Style::Text) && subtree.is_none() { 1 } else { 0 };
        let (level, subtree) = (td_level.unwrap_or(level), subtree.unwrap_or(TD_NODE_NONE));
        let (simulate, core) = (simulated.is_some(), simulated.unwrap_or_default());
        let record_cgroups = self.cgroups().is_some();
        let record_slots = if record_cgroups { RECORD_SLOTS } else { 0 };
        Options { level, subtree, kernel, simulate, core, record_slots, record_cgroups, ..Options::default() }
    }

    /// Opens where requests for metrics are answered.
    pub(super) fn endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let Some(address) = &self.open_metrics else { return Ok(None) };
        let command: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let what = self.whom().map_or(command.join(" "), |whom| whom.title());
        let endpoint = Endpoint::open(address, &what, Box::new(|| None)).map_err(failed)?;
        say(&format!("metrics are at {}", endpoint.url()));
        Ok(Some(endpoint))
    }

    pub(super) fn interval(&self) -> Option<Duration> {
        self.interval_print.map(Duration::from_millis)
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_millis)
    }
}
