//! What machine this is: what a report says of it, and what the checks need to know. Nothing that names a person or a
//! host.
#![forbid(unsafe_code)]

use super::raw;
use std::fs::{read_dir, read_to_string};
use std::io;
use std::path::Path;
use topdown_seam::thread::may_run_on;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// The PMU that has SLOTS.
pub struct SlotsPmu {
    pub name: &'static str,
    /// Its number for `perf_event_attr.type`.
    pub kind: u32,
    /// How many metric events it has: four of level 1, or eight.
    pub metrics: usize,
    /// On a hybrid CPU, its CPUs.
    pub cpus: Option<Vec<usize>>,
}

/// The machine, and where on it the checks run.
pub struct TestMachine {
    pub pmu: SlotsPmu,
    /// The CPU that this thread is pinned to.
    pub cpu: usize,
    /// Another that has the PMU, if there is one.
    pub other: Option<usize>,
    /// One that has not.
    pub e_core: Option<usize>,
    /// Whether this is the machine of c-tests/vm, where a program says itself how its slots divide.
    pub emulated: bool,
}

fn text(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| clean(&text))
}

/// Without what a text file does not hold: some files of sysfs are padded with NUL.
fn clean(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_string()
}

fn pmu() -> Option<SlotsPmu> {
    let name = ["cpu", "cpu_core"]
        .into_iter()
        .find(|name| Path::new(&format!("{DEVICES}/{name}/events/slots")).exists())?;
    let file = |path: &str| text(&format!("{DEVICES}/{name}/{path}"));
    Some(SlotsPmu {
        name,
        kind: file("type")?.parse().ok()?,
        metrics: if file("events/topdown-heavy-ops").is_some() { 8 } else { 4 },
        cpus: file("cpus").map(|list| numbers(&list)),
    })
}

/// A list of sysfs: `0-3,8`.
fn numbers(list: &str) -> Vec<usize> {
    topdown_seam::numbers::listed(list).into_iter().map(|cpu| cpu as usize).collect()
}

impl TestMachine {
    /// Finds the PMU and pins this thread to a CPU that has it: none if there is none.
    pub fn find() -> Option<io::Result<TestMachine>> {
        pmu().map(TestMachine::pinned_to)
    }

    fn pinned_to(pmu: SlotsPmu) -> io::Result<TestMachine> {
        let e_cores =
            text(&format!("{DEVICES}/cpu_atom/cpus")).map(|list| numbers(&list)).unwrap_or_default();
        let allowed = may_run_on(0).into_iter().map(|cpu| cpu as usize);
        let mut fit = allowed.filter(|cpu| pmu.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu)));
        let cpu = fit.next().ok_or_else(|| {
            io::Error::other(format!(
                "this program may run on no CPU of '{}', or the kernel does not tell: start it with another affinity",
                pmu.name
            ))
        })?;
        let other = fit.next();
        raw::pin(cpu)?;
        Ok(TestMachine { pmu, cpu, other, e_core: e_cores.first().copied(), emulated: is_emulated() })
    }

    /// Back to the CPU where the checks run.
    pub fn return_home(&self) -> io::Result<()> {
        raw::pin(self.cpu)
    }
}

/// The emulated machine calls itself QEMU and, unlike a guest of KVM, hides that it is a virtual one.
pub fn is_emulated() -> bool {
    let vendor = text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let flags = text("/proc/cpuinfo").unwrap_or_default();
    vendor.contains("QEMU") && !field(&flags, "flags").split(' ').any(|flag| flag == "hypervisor")
}

/// A field of /proc/cpuinfo, of the first CPU.
fn field<'a>(info: &'a str, name: &str) -> &'a str {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key.trim() == name).then_some(value.trim()))
        .unwrap_or("unknown")
}

/// Bytes of the last level of cache; none if the kernel does not tell.
pub fn last_level_cache() -> Option<usize> {
    let sizes = (0..8).filter_map(|k| text(&format!("/sys/devices/system/cpu/cpu0/cache/index{k}/size")));
    sizes.filter_map(|size| bytes(&size)).max()
}

/// `2048K` in bytes.
fn bytes(size: &str) -> Option<usize> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" | " kB" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(unit)
}

/// Bytes of memory that may be taken without harm.
pub fn available_memory() -> usize {
    let info = text("/proc/meminfo").unwrap_or_default();
    bytes(field(&info, "MemAvailable")).unwrap_or(64 << 20)
}

/// The head of a report: what machine it is of.
pub fn describe() -> Vec<(&'static str, String)> {
    let info = text("/proc/cpuinfo").unwrap_or_default();
    let of = |name| field(&info, name);
    let hypervisor = if of("flags").split(' ').any(|flag| flag == "hypervisor") {
        format!("yes ({})", text("/sys/class/dmi/id/sys_vendor").unwrap_or_else(|| "unnamed".into()))
    } else {
        "none that shows itself".into()
    };
    let mut lines = vec![
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("CPU", of("model name").to_string()),
        (
            "signature",
            format!(
                "{} family {} model {} stepping {}",
                of("vendor_id"),
                of("cpu family"),
                of("model"),
                of("stepping")
            ),
        ),
        ("microcode", of("microcode").to_string()),
        ("kernel", text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())),
        ("hypervisor", hypervisor),
        ("paranoid", text("/proc/sys/kernel/perf_event_paranoid").unwrap_or_else(|| "no perf events".into())),
        ("watchdog", text("/proc/sys/kernel/nmi_watchdog").unwrap_or_else(|| "unknown".into())),
        ("SMT", text("/sys/devices/system/cpu/smt/control").unwrap_or_else(|| "unknown".into())),
        (
            "caches",
            last_level_cache().map_or("unknown".into(), |size| format!("last level {} KB", size >> 10)),
        ),
    ];
    for name in ["cpu", "cpu_core", "cpu_atom", "cpu_lowpower"] {
        lines.extend(files(name));
    }
    lines
}

/// What sysfs shows of a PMU, if there is one of that name.
fn files(name: &str) -> Vec<(&'static str, String)> {
    let root = format!("{DEVICES}/{name}");
    let values = |path: &str, names: &[String]| -> Vec<String> {
        names.iter().filter_map(|name| Some(format!("{name}={}", text(&format!("{path}/{name}"))?))).collect()
    };
    let settings = values(&root, &["type", "cpus", "rdpmc"].map(String::from));
    if settings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![("PMU", format!("{name}: {}", settings.join(" ")))];
    for directory in ["caps", "events", "format"] {
        let path = format!("{root}/{directory}");
        let entries = read_dir(&path).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|file| directory != "events" || file.starts_with("slots") || file.starts_with("topdown"))
            .collect();
        names.sort();
        if !names.is_empty() {
            lines.push((directory, values(&path, &names).join(" ")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_sysfs() {
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(numbers("5"), [5]);
        assert_eq!(numbers(""), [0usize; 0]);
    }

    #[test]
    fn padding_is_left_out() {
        assert_eq!(clean("event=0x73,umask=0x0\0\0\0\n\0"), "event=0x73,umask=0x0");
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("2048K"), Some(2 << 20));
        assert_eq!(bytes("1024 kB"), Some(1 << 20));
        assert_eq!(bytes("lots"), None);
    }

    #[test]
    fn the_head_names_neither_host_nor_user() {
        let host = text("/proc/sys/kernel/hostname").expect("each Linux has one");
        for (_, value) in describe() {
            assert!(!value.contains("/home") && value.split_whitespace().all(|word| word != host), "{value}");
        }
    }
}
