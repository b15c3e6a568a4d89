//! What a machine says of its CPU and PMUs, as a block of text to send: all that a row of the library's tables needs.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use topdown_report::clean;

/// What /proc/cpuinfo says of the first CPU, by the names of x86 and of arm64.
const IDENTITY: [&str; 12] = [
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "microcode",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "siblings",
];
/// Files that say more of the machine.
const FILES: [&str; 8] = [
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/version",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/sys/kernel/nmi_watchdog",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
    "sys/hypervisor/type",
];
const PMUS: &str = "sys/bus/event_source/devices";
/// What is shown of a core's PMU.
const PARTS: [&str; 3] = ["caps", "format", "events"];
/// A value that is longer is cut.
const LONGEST: usize = 200;

/// The block; `root` is "/", or another tree of such files.
pub fn block(root: &Path) -> String {
    let mut lines = vec![format!("topdown {}", env!("CARGO_PKG_VERSION"))];
    lines.extend(identity(&fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default()));
    let value = |path: &Path| {
        fs::read_to_string(path).ok().map(|text| clean(text.trim()).chars().take(LONGEST).collect::<String>())
    };
    let line = |name: &str| value(&root.join(name)).map(|value| format!("/{name}: {value}"));
    lines.extend(FILES.into_iter().filter_map(line));
    lines.extend(counters());
    for pmu in entries(&root.join(PMUS)) {
        let name = name_of(&pmu);
        if !is_of_cores(&pmu, &name) {
            continue;
        }
        for part in
            ["type", "cpus"].map(PathBuf::from).into_iter().chain(PARTS.into_iter().flat_map(|part| {
                entries(&pmu.join(part)).into_iter().map(move |file| Path::new(part).join(name_of(&file)))
            }))
        {
            lines.extend(
                value(&pmu.join(&part))
                    .map(|value| format!("{name}/{}: {value}", clean(&part.to_string_lossy()))),
            );
        }
    }
    let others: Vec<_> = entries(&root.join(PMUS)).iter().map(|pmu| name_of(pmu)).collect();
    lines.push(format!("PMUs: {}", if others.is_empty() { "none".into() } else { clean(&others.join(" ")) }));
    lines.join("\n") + "\n"
}

/// What the CPU says of its counters: the leaves of CPUID that do. (On arm64 user space cannot ask; `topdown check` tries how many are
/// free)
#[cfg(target_arch = "x86_64")]
fn counters() -> Vec<String> {
    use topdown_seam::cpu::cpuid;
    // Intel's general and fixed ones; those of each kind of core; AMD's
    const LEAVES: [(u32, u32); 4] = [(0xa, 0), (0x23, 0), (0x23, 1), (0x8000_0022, 0)];
    let most = |leaf: u32| cpuid(leaf & 0x8000_0000, 0).eax;
    let there = LEAVES.into_iter().filter(|(leaf, _)| *leaf <= most(*leaf));
    there
        .map(|(leaf, subleaf)| {
            let said = cpuid(leaf, subleaf);
            format!(
                "cpuid {leaf:#x} {subleaf}: {:08x} {:08x} {:08x} {:08x}",
                said.eax, said.ebx, said.ecx, said.edx
            )
        })
        .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn counters() -> Vec<String> {
    Vec::new()
}

/// Lines of /proc/cpuinfo that identify the first CPU.
fn identity(cpuinfo: &str) -> Vec<String> {
    let first = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
    let fields =
        first.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let mut lines: Vec<_> = fields
        .clone()
        .filter(|(name, _)| IDENTITY.contains(name))
        .map(|(name, value)| format!("{name}: {}", clean(value)))
        .collect();
    if fields
        .clone()
        .any(|(name, value)| name == "flags" && value.split(' ').any(|flag| flag == "hypervisor"))
    {
        lines.push("virtual machine: yes".into());
    }
    lines
}

/// A PMU of cores: x86 calls them cpu, cpu_core, cpu_atom; arm64's name their CPUs.
fn is_of_cores(pmu: &Path, name: &str) -> bool {
    name.starts_with("cpu") || pmu.join("cpus").exists()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_block_has_what_a_row_of_the_tables_needs() {
        let root = std::env::temp_dir().join(format!("topdown-describe-{}", std::process::id()));
        put(
            &root,
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 254\nmodel name\t: Some \x1b CPU\nflags\t\t: fpu \
             hypervisor avx\n\nprocessor\t: 1\nmodel\t\t: 1\n",
        );
        put(&root, "proc/sys/kernel/osrelease", "6.12.1\n");
        for (name, text) in [
            ("cpu/type", "4\n"),
            ("cpu/caps/branches", "32\n"),
            ("cpu/format/event", "config:0-7\n"),
            ("cpu/events/slots", "event=0x00,umask=0x4\n"),
            ("armv8_neoverse_v2/cpus", "0-3\n"),
            ("uncore_imc_0/events/reads", "event=0x4\n"),
        ] {
            put(&root, &format!("{PMUS}/{name}"), text);
        }
        let block = block(&root);
        fs::remove_dir_all(&root).unwrap();
        for expected in [
            "vendor_id: GenuineIntel",
            "cpu family: 6",
            "model: 254",
            "virtual machine: yes",
            "/proc/sys/kernel/osrelease: 6.12.1",
            "cpu/type: 4",
            "cpu/caps/branches: 32",
            "cpu/format/event: config:0-7",
            "cpu/events/slots: event=0x00,umask=0x4",
            "armv8_neoverse_v2/cpus: 0-3",
            "PMUs: armv8_neoverse_v2 cpu uncore_imc_0",
        ] {
            assert!(block.lines().any(|line| line == expected), "{expected}: {block}");
        }
        #[cfg(target_arch = "x86_64")]
        assert!(block.lines().any(|line| line.starts_with("cpuid 0xa 0: ") && line.len() == 48), "{block}");
        assert!(
            !block.contains("model: 1\n") && !block.contains('\x1b') && !block.contains("uncore_imc_0/"),
            "{block}"
        );
    }
}
