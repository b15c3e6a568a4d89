//! `topdown top`: where slots go now, on a terminal.
#![forbid(unsafe_code)]

mod rows;
mod screen;

use crate::outcome::{Failure, ended, failed, not_run};
use crate::simulation;
use crate::stat::cgroups::{CgroupCounts, CgroupRows};
use crate::stat::cpu_list;
use crate::stat::groups::{Groups, RECORD_SLOTS, RecordsUpTo};
use crate::stat::ipc::Ipc;
use crate::stat::target::{Ending, StatTarget};
use crate::sys::{self, End, Interrupts};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rows::{Order, TopGroups};
use screen::{Screen, ScreenHead};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use topdown::Options;

/// Options of `topdown top`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show these processes: all their threads, and what those start from now on
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,
    /// Show these threads, and what they start from now on
    #[arg(short, long, value_name = "TID,...", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "pid")]
    tid: Vec<i32>,
    /// Show all CPUs: as without any of these (kernel.perf_event_paranoid at most 0, or CAP_PERFMON)
    #[arg(short, long, conflicts_with_all = ["pid", "tid"])]
    all_cpus: bool,
    /// Show these CPUs: a list such as 0-3,7
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = cpu_list, conflicts_with_all = ["pid", "tid"])]
    cpus: Option<BTreeSet<u32>>,
    /// Show cgroups, on all CPUs or those of -C. With DEPTH, cgroups more than so many levels below the root are counted in their ancestor at that
    /// level
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, require_equals = true, default_missing_value = "1000", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["pid", "tid"])]
    per_cgroup: Option<u32>,
    /// Milliseconds between two readings
    #[arg(short = 'I', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=LONGEST))]
    interval: u64,
    /// Count what the kernel does, too
    #[arg(long)]
    kernel: bool,
    /// A command to run and show, with all that it starts; what it writes to the terminal is discarded
    #[arg(trailing_var_arg = true, value_name = "COMMAND", conflicts_with_all = ["pid", "tid", "all_cpus", "cpus", "per_cgroup"])]
    command: Vec<OsString>,
}

/// Milliseconds.
const LONGEST: u64 = 60_000;

/// What `topdown top --help` says of the rest.
pub const HELP: &str = "\
Keys: q, Esc or Ctrl-C ends; s sorts by slots, wasted slots or name; + and - make intervals longer and shorter; arrows scroll.
Without a terminal `topdown stat -I` writes rows. NO_COLOR: letters instead of colours.

Exit status: 0, or that of the command, which gets SIGTERM if it runs when `topdown top` ends; 125 if `topdown` itself
fails, as for wrong arguments.";

/// Exit status 0, or that of the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    ended(shown(arguments))
}

fn shown(arguments: &Arguments) -> Result<End, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(failed(
            "top: standard input and output are not a terminal; `topdown stat -I 1000` writes rows instead",
        ));
    }
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return Err(failed(
            "top: this terminal moves no cursor (TERM is dumb, or not set); `topdown stat -I 1000` writes rows instead",
        ));
    }
    if crossterm::terminal::size().is_ok_and(|(columns, lines)| columns == 0 || lines == 0) {
        return Err(failed(
            "top: this terminal says that it has no columns or no lines: `stty columns 80 rows 24` tells it, or `topdown stat -I 1000` \
             writes rows instead",
        ));
    }
    let simulated = simulation::core_by_counters().map_err(failed)?;
    let (simulate, core) = (simulated.is_some(), simulated.unwrap_or_default());
    let cgroups = arguments.per_cgroup.map(|depth| CgroupCounts::new(CgroupRows::Each(depth as usize)));
    let cgroups = cgroups.transpose().map_err(failed)?;
    if simulate && cgroups.is_some() {
        return Err(failed(simulation::refused("--per-cgroup", "does not tell cgroups apart")));
    }
    let options = Options {
        level: 1,
        kernel: arguments.kernel,
        simulate,
        core,
        record_slots: if cgroups.is_some() { RECORD_SLOTS } else { 0 },
        record_cgroups: cgroups.is_some(),
        ..Options::default()
    };
    if arguments.command.is_empty() {
        others(arguments, &options, cgroups)
    } else {
        command(arguments, &options)
    }
}

/// Shows CPUs, processes or threads that are there.
fn others(arguments: &Arguments, options: &Options, cgroups: Option<CgroupCounts>) -> Result<End, Failure> {
    let whom = match arguments {
        Arguments { pid, .. } if !pid.is_empty() => StatTarget::Processes(pid.iter().copied().collect()),
        Arguments { tid, .. } if !tid.is_empty() => StatTarget::Threads(tid.iter().copied().collect()),
        _ => StatTarget::Cpus(arguments.cpus.clone()),
    };
    sys::raise_descriptors();
    let endings = whom.endings().map_err(failed)?;
    let groups = whom.open(options, &Ipc::kinds(options)).map_err(failed)?;
    let interrupts = sys::interrupts().map_err(failed)?;
    let ends: Vec<i32> = endings.iter().map(Ending::descriptor).collect();
    let live =
        Live { title: whom.title(), interval: arguments.interval, whom: Some(whom), start: Instant::now() };
    let mut source = TopGroups::new(groups, !matches!(live.whom, Some(StatTarget::Cpus(_))));
    if let Some(cgroups) = cgroups {
        source.show(cgroups);
    }
    live.show(&mut source, ends, Some(&interrupts)).map_err(failed)?;
    Ok(End::Status(0))
}

/// Runs a command, and shows it.
fn command(arguments: &Arguments, options: &Options) -> Result<End, Failure> {
    let (program, rest) = arguments.command.split_first().expect("it is not empty");
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null());
    if io::stderr().is_terminal() {
        command.stderr(Stdio::null());
    }
    let kinds = Ipc::kinds(options);
    let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
    let watch = |pid| Groups::of_command(pid, options, &kinds).map(|groups| TopGroups::new(groups, true));
    let mut broken = None;
    let attend = |source: &mut Result<TopGroups, _>, pid: i32, start| {
        let (Ok(source), Ok(process)) = (source, sys::process(pid)) else { return };
        let live = Live { title: words.join(" "), interval: arguments.interval, whom: None, start };
        broken = live.show(source, vec![process.as_raw_fd()], None).err();
        sys::signal(&process, libc::SIGTERM);
    };
    let (ran, source) =
        sys::run_attended(&mut command, watch, attend).map_err(|error| not_run(program, &error))?;
    match (source, broken) {
        (Err(why), _) => crate::say(&format!("nothing is shown: {why}")),
        (_, Some(why)) => crate::say(&format!("the terminal cannot be used: {why}")),
        _ => {}
    }
    Ok(ran.end)
}

/// What is shown.
struct Live {
    title: String,
    /// Milliseconds.
    interval: u64,
    whom: Option<StatTarget>,
    start: Instant,
}

/// What a key asks for.
enum KeyAction {
    End,
    Redraw,
    Nothing,
}

impl Live {
    /// Until a key ends it, or one of the interrupts comes, or all of `ends` have come to theirs.
    fn show(
        mut self,
        source: &mut TopGroups,
        mut ends: Vec<i32>,
        interrupts: Option<&Interrupts>,
    ) -> io::Result<()> {
        let mut screen = Screen::open()?;
        let mut view = ScreenHead {
            title: self.title.clone(),
            machine: source.machine(),
            order: Order::Slots,
            scrolled: 0,
        };
        let stdin = io::stdin().as_raw_fd();
        let waits = !ends.is_empty();
        let mut next = Instant::now() + self.length();
        screen.draw(&view, source.rows(view.order), self.length())?;
        while !(waits && ends.is_empty()) {
            let descriptors: Vec<i32> = [stdin]
                .into_iter()
                .chain(interrupts.map(Interrupts::descriptor))
                .chain(ends.iter().copied())
                .collect();
            let mut come = sys::wait_for(&descriptors, Some(source.due(next))).into_iter();
            // (or the window has another size: that is an event, too)
            let _typed = come.next();
            if interrupts.is_some() && come.next() == Some(true) {
                return Ok(());
            }
            ends.retain(|_| come.next() != Some(true));
            let mut redraw = false;
            while event::poll(Duration::ZERO)? {
                match self.asks(&event::read()?, &mut view) {
                    KeyAction::End => return Ok(()),
                    KeyAction::Redraw => redraw = true,
                    KeyAction::Nothing => {}
                }
            }
            let now = Instant::now();
            source.take_records(RecordsUpTo::LastTime);
            if now >= next {
                next = now + self.length();
                source.read(now - self.start, self.whom.as_ref());
                view.title = self.title.clone() + &source.losses();
                redraw = true;
            }
            if redraw {
                screen.draw(&view, source.rows(view.order), self.length())?;
            }
        }
        Ok(())
    }

    fn length(&self) -> Duration {
        Duration::from_millis(self.interval)
    }

    fn asks(&mut self, event: &Event, view: &mut ScreenHead) -> KeyAction {
        let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
            return if matches!(event, Event::Resize(..)) { KeyAction::Redraw } else { KeyAction::Nothing };
        };
        match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return KeyAction::End,
            KeyCode::Char('q') | KeyCode::Esc => return KeyAction::End,
            KeyCode::Char('s') => view.order = view.order.next(),
            KeyCode::Char('+') => self.interval = (self.interval * 2).min(LONGEST),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(50),
            KeyCode::Down => view.scrolled += 1,
            KeyCode::Up => view.scrolled = view.scrolled.saturating_sub(1),
            _ => return KeyAction::Nothing,
        }
        KeyAction::Redraw
    }
}
