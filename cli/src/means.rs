//! What else can be measured of a command, of processes or of CPUs: on this CPU, and by this user.
#![forbid(unsafe_code)]

use crate::record::Sampled;
use crate::simulation;
use crate::stat::StatTarget;
use crate::stat::levels::only_p_cores;
use crate::{sys, unmeasured};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use topdown::deep_tree;
use topdown_report::steps::{ABRIDGED, Means, SOME_COMMAND, quoted};

const DEVICES: &str = "/sys/bus/event_source/devices";
/// What samples addresses of loads: Intel's PEBS, as far as the kernel offers it, AMD's IBS, and Arm's SPE.
const SAMPLERS: [&str; 4] = ["cpu/events/mem-loads", "cpu_core/events/mem-loads", "ibs_op", "arm_spe_0"];
/// A longer command line is not repeated.
const LONGEST: usize = 160;
/// What the list of steps calls a program for 32 bits.
const OF_32_BIT: &str = "32-bit";

/// A command as the end of a line, and whether another text stands for it.
fn command_line(command: &[OsString]) -> (String, bool) {
    let words: Option<Vec<String>> = command.iter().map(|word| word.to_str().map(quoted)).collect();
    let line = words.map(|words| format!("-- {}", words.join(" ")));
    let is_short = |line: &String| line.chars().count() <= LONGEST && !line.chars().any(char::is_control);
    // (a line's end in a word is nothing that one line can show)
    let line = line.filter(is_short);
    let is_abridged = line.is_none();
    (line.unwrap_or(SOME_COMMAND.into()), is_abridged)
}

/// Of a command.
pub fn of_command(command: &[OsString]) -> Means {
    let (line, is_abridged) = command_line(command);
    here(line, None)
        .and(ABRIDGED, is_abridged)
        .and(OF_32_BIT, command.first().is_some_and(|program| unmeasured::is_32_bit(program)))
}

/// Of a command of which `topdown record` samples time alone: what sees threads from their first instruction.
pub fn from_the_start(means: Means) -> Means {
    let may_all = matches!(Sampled::here(&["-a"]), Ok(Sampled::Time(..)));
    let may_ptrace = !means.has.contains(OF_32_BIT) && Sampled::by_stops_here().is_ok();
    means.and("may-ptrace", may_ptrace).and("may-all", may_all)
}

/// The same where no slots are counted: what time alone is told by is tried.
pub fn without_slots(means: Means) -> Means {
    let has_timer = Sampled::here(&[]).is_ok();
    let may_stop = means.whom.starts_with("--") && !means.has.contains(OF_32_BIT);
    let has_stops = !has_timer && may_stop && Sampled::by_stops_here().is_ok();
    means.and("timer", has_timer).and("stops", has_stops)
}

/// Of others. (A thread alone is nothing that all commands know.)
pub fn of(target: &StatTarget) -> Means {
    match target {
        StatTarget::Threads(_) => Means::default(),
        StatTarget::Cpus(Some(cpus)) => here(option(target), Some(cpus)),
        _ => here(option(target), None),
    }
}

/// Of others until a command ends; of none: until they end. (Of processes `topdown record` knows no such end.)
pub fn of_until(target: &StatTarget, command: &[OsString]) -> Means {
    let means = of(target);
    if command.is_empty() || !matches!(target, StatTarget::Cpus(_)) {
        return means;
    }
    let (line, is_abridged) = command_line(command);
    Means { whom: format!("{} {line}", means.whom), ..means }.and(ABRIDGED, is_abridged)
}

/// What names them on a command line.
fn option(target: &StatTarget) -> String {
    fn list<N: ToString>(numbers: &BTreeSet<N>) -> String {
        numbers.iter().map(N::to_string).collect::<Vec<_>>().join(",")
    }
    match target {
        StatTarget::Processes(ids) => format!("-p {}", list(ids)),
        StatTarget::Threads(ids) => format!("-t {}", list(ids)),
        StatTarget::Cpus(None) => "-a".into(),
        StatTarget::Cpus(Some(cpus)) => format!("-C {}", list(cpus)),
    }
}

/// Why others cannot be counted; with the command that samples their time, if one does.
pub fn refusal_of(target: &StatTarget, why: &str) -> String {
    let (option, of_what) = match target {
        StatTarget::Threads(ids) => {
            let processes: BTreeSet<String> = ids.iter().filter_map(|id| process_of(*id)).collect();
            let all: Vec<String> = processes.into_iter().collect();
            (format!("-p {}", all.join(",")), " of the whole process")
        }
        all => (option(all), ""),
    };
    match Sampled::of_others_here(&option.split(' ').collect::<Vec<_>>()) {
        Ok(Sampled::Time(..)) => {
            format!("{why}; time alone can be had{of_what}, by function: `topdown record {option}`")
        }
        _ => why.into(),
    }
}

/// The id of the process of a thread.
fn process_of(thread: i32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")).map(|id| id.trim().into())
}

/// Of a recording: it can be read again, and no more.
pub fn of_file(file: &Path) -> Means {
    let whom = file.to_str().map_or(String::new(), |file| format!("--from {}", quoted(file)));
    Means { whom, ..Means::default() }.and("from", true)
}

/// `cpus`: these alone.
fn here(whom: String, cpus: Option<&BTreeSet<u32>>) -> Means {
    let has_perf = is_in_path("perf");
    let is_virtual = fs::read_to_string("/proc/cpuinfo").is_ok_and(|about| is_virtual(&about));
    let environment = match simulation::core() {
        Ok(Some(_)) => simulation::assignment(),
        _ => String::new(),
    };
    Means { whom, environment, ..Means::default() }
        .and("deep", deep_tree().is_some() && only_p_cores(cpus).is_ok())
        .and("may-kernel", sys::kernel_is_refused().is_empty())
        .and("perf", has_perf)
        .and("perf-mem", has_perf && !is_virtual && samples_addresses(Path::new(DEVICES)))
}

fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn is_virtual(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn samples_addresses(devices: &Path) -> bool {
    SAMPLERS.iter().any(|sampler| devices.join(sampler).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whom(words: &[&str]) -> String {
        of_command(&words.iter().map(OsString::from).collect::<Vec<_>>()).whom
    }

    #[test]
    fn a_command_is_repeated_as_a_shell_takes_it_unless_it_is_long() {
        assert_eq!(whom(&["./a.out", "a b", "$HOME"]), "-- ./a.out 'a b' '$HOME'");
        let script = r#"cd /tmp; ./ex "a b" | tail -n 100; echo done"#;
        assert_eq!(whom(&["sh", "-c", script]), format!("-- sh -c '{script}'"));
        assert_eq!(whom(&["./a.out", &"x".repeat(LONGEST)]), SOME_COMMAND);
        assert_eq!(whom(&["./a.out", "two\nlines"]), SOME_COMMAND);
        assert_eq!(of(&StatTarget::Processes([7, 9].into())).whom, "-p 7,9");
        assert_eq!(of(&StatTarget::Cpus(Some([0, 2].into()))).whom, "-C 0,2");
        assert_eq!(of(&StatTarget::Threads([7].into())).whom, "");
        let until = |target, words: &[&str]| {
            of_until(&target, &words.iter().map(OsString::from).collect::<Vec<_>>()).whom
        };
        assert_eq!(until(StatTarget::Cpus(None), &["sh", "-c", "sleep 1"]), "-a -- sh -c 'sleep 1'");
        assert_eq!(until(StatTarget::Cpus(Some([0].into())), &["two\nlines"]), "-C 0 -- COMMAND");
        assert_eq!(until(StatTarget::Cpus(None), &[]), "-a");
        assert_eq!(until(StatTarget::Processes([7].into()), &["sleep", "1"]), "-p 7");
    }

    #[test]
    fn perf_mem_is_named_where_the_kernel_offers_what_it_needs() {
        let devices = env::temp_dir().join(format!("topdown-means-{}", std::process::id()));
        fs::create_dir_all(devices.join("cpu/events")).unwrap();
        assert!(!samples_addresses(&devices));
        fs::write(devices.join("cpu/events/mem-loads"), "event=0xcd,umask=0x1,ldlat=3").unwrap();
        assert!(samples_addresses(&devices));
        fs::remove_dir_all(&devices).unwrap();
        assert!(is_virtual("flags\t\t: fpu vme hypervisor lahf_lm\n") && !is_virtual("flags\t\t: fpu vme\n"));
    }
}
