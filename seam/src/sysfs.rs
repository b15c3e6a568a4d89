//! What the kernel says of PMUs and CPUs.
use crate::Kernel;
use crate::format::TermFormat;
use crate::numbers::whole;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel shows its PMUs.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// Names of the PMUs of CPUs, or of their P-cores: x86's, and arm64's as the kernel's driver gives them, by ACPI the first.
const PMUS: [&str; 14] = [
    "cpu",
    "cpu_core",
    "armv8_pmuv3_0",
    "armv8_pmuv3",
    "armv8_neoverse_n1",
    "armv8_neoverse_v1",
    "armv8_neoverse_v2",
    "armv8_neoverse_v3",
    "armv8_neoverse_v3ae",
    "armv9_neoverse_n2",
    "armv8_neoverse_n2",
    "armv8_neoverse_n3",
    "armv9_neoverse_n3",
    "armv8_nvidia_olympus",
];

/// Name of the PMU of the CPU, or of its P-cores, whatever it counts.
pub fn device(kernel: &impl Kernel) -> Option<&'static str> {
    PMUS.into_iter().find(|name| kernel.exists(&format!("{DEVICES}/{name}")))
}

/// `event=0x003d` to a config, as the PMUs of arm64 have it.
#[must_use]
pub fn config_of_arm64(text: &str) -> Option<u64> {
    TermFormat::parse("config:0-15")?.place(whole(first_line(text).strip_prefix("event=")?)?)
}

/// Where it says so.
#[derive(Debug, Clone)]
pub struct Sysfs {
    /// PMUs: type, format/, events/, cpumask.
    pub devices: PathBuf,
    /// CPUs: cpuN/online, cpuN/topology/.
    pub cpus: PathBuf,
    /// Where tracefs may be mounted.
    pub tracing: Vec<PathBuf>,
}

/// The PMU of the cores; on CPUs with two kinds of cores there is none of that name, and the second counts on the
/// faster ones, with the same type.
const CORE: &str = "cpu";
const FASTER_CORE: &str = "cpu_core";

/// One that counts, or several alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysfsPmu {
    /// Its directory, and those of the others; never empty.
    pub paths: Vec<PathBuf>,
}

/// An event that the kernel names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEvent {
    /// PMU.
    pub pmu: String,
    /// Name.
    pub name: String,
    /// Terms.
    pub terms: String,
}

impl Sysfs {
    /// That of this system.
    pub fn real() -> Self {
        Sysfs {
            devices: DEVICES.into(),
            cpus: "/sys/devices/system/cpu".into(),
            tracing: ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from).into(),
        }
    }

    /// The PMU of this name, or uncore_NAME, or all uncore_NAME_NUMBER in the order of their names as text.
    pub fn pmu(&self, name: &str) -> Option<SysfsPmu> {
        let one = |name: &str| self.device(name).map(|path| SysfsPmu { paths: vec![path] });
        let core = || (name == CORE).then(|| one(FASTER_CORE)).flatten();
        one(name).or_else(|| one(&format!("uncore_{name}"))).or_else(|| self.instances(name)).or_else(core)
    }

    /// The PMU of the cores.
    pub fn core(&self) -> Option<SysfsPmu> {
        self.pmu(CORE)
    }

    /// The directory of the PMU of the cores, even if there is none.
    pub fn core_path(&self) -> PathBuf {
        self.core().map_or_else(|| self.devices.join(CORE), |pmu| pmu.paths[0].clone())
    }

    fn instances(&self, name: &str) -> Option<SysfsPmu> {
        let prefix = format!("uncore_{name}_");
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_one = |device: &String| device.strip_prefix(&prefix).is_some_and(number);
        let paths: Vec<_> =
            self.names().into_iter().filter(is_one).filter_map(|device| self.device(&device)).collect();
        (!paths.is_empty()).then_some(SysfsPmu { paths })
    }

    fn device(&self, name: &str) -> Option<PathBuf> {
        inside(&self.devices, name).filter(|path| path.is_dir())
    }

    /// The names of all PMUs, sorted.
    fn names(&self) -> Vec<String> {
        entries(&self.devices)
    }

    /// Whether the PMU before the first slash of an event is one that counts once a socket: it has a cpumask, which
    /// starts with CPU 0.
    pub fn is_uncore(&self, event: &str) -> bool {
        let Some((pmu, _)) = event.split_once('/') else { return false };
        let candidates =
            [pmu.to_string(), format!("uncore_{pmu}"), format!("uncore_{pmu}_0"), format!("uncore_{pmu}_1")];
        let mask = candidates.iter().find_map(|name| line(&inside(&self.devices, name)?, "cpumask"));
        mask.is_some_and(|mask| {
            mask.split(|c: char| !c.is_ascii_digit()).next().is_some_and(|cpu| cpu.parse() == Ok(0))
        })
    }

    /// The lowest CPU of each package, in the order of package numbers; None without topology.
    pub fn socket_cpus(&self) -> Option<Vec<i32>> {
        let mut lowest = BTreeMap::<i32, i32>::new();
        for directory in entries(&self.cpus) {
            let Some(cpu) = directory.strip_prefix("cpu").and_then(|number| number.parse::<i32>().ok())
            else {
                continue;
            };
            let package = line(&self.cpus.join(directory), "topology/physical_package_id");
            let Some(package) = package.and_then(|number| number.parse().ok()) else { continue };
            lowest.entry(package).and_modify(|other| *other = cpu.min(*other)).or_insert(cpu);
        }
        (!lowest.is_empty()).then(|| lowest.into_values().collect())
    }

    /// The name of the first PMU (by name) of a type.
    pub fn pmu_of_type(&self, kind: u32) -> Option<String> {
        self.names().into_iter().find(|name| self.device(name).and_then(|path| kind_of(&path)) == Some(kind))
    }

    /// The directory of the PMU of a type; that of the cores for events that the kernel brings to them, and if there is none.
    pub fn path_of_type(&self, kind: u32) -> PathBuf {
        let pmu = self.pmu_of_type(kind).and_then(|name| self.device(&name));
        pmu.unwrap_or_else(|| self.core_path())
    }

    /// The number of a tracepoint.
    pub fn tracepoint(&self, system: &str, event: &str) -> io::Result<u64> {
        let unknown = || io::Error::from(io::ErrorKind::NotFound);
        let mut result = Err(unknown());
        for tracing in &self.tracing {
            let system = inside(&tracing.join("events"), system).ok_or_else(unknown)?;
            result = fs::read_to_string(inside(&system, event).ok_or_else(unknown)?.join("id"));
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                continue;
            }
            break;
        }
        result?.trim_end().parse().map_err(|_| unknown())
    }

    /// The list of CPUs that have the PMU of a type; None if it does not say (all have it, or it is no PMU of CPUs).
    pub fn cpus_with(&self, kind: u32) -> Option<String> {
        line(&self.device(&self.pmu_of_type(kind)?)?, "cpus")
    }

    /// The most precise that events of this type can be; 0 if they cannot.
    pub fn max_precise(&self, kind: u32) -> u64 {
        let pmu = self.pmu_of_type(kind).and_then(|name| self.device(&name));
        pmu.and_then(|path| line(&path, "caps/max_precise")?.parse().ok()).unwrap_or(0)
    }

    /// Whether a CPU's `online` file says 1.
    pub fn online(&self, cpu: i32) -> bool {
        let file: &Path = &self.cpus.join(format!("cpu{cpu}/online"));
        fs::read_to_string(file).is_ok_and(|text| text.starts_with('1'))
    }

    /// Every event that the kernel names, sorted by path. Names with a dot say more of another event.
    pub fn events(&self) -> Vec<NamedEvent> {
        let mut events = Vec::new();
        for pmu in self.names() {
            let directory = self.devices.join(&pmu).join("events");
            for name in entries(&directory).into_iter().filter(|name| !name.contains('.')) {
                if let Some(terms) = line(&directory, &name) {
                    events.push(NamedEvent { pmu: pmu.clone(), name, terms });
                }
            }
        }
        events.sort_by_cached_key(|event| format!("{}/events/{}", event.pmu, event.name));
        events
    }
}

impl SysfsPmu {
    /// Its number for the kernel.
    pub fn kind(&self) -> Option<u32> {
        kind_of(&self.paths[0])
    }

    /// The format of a term; None if it has no such.
    pub fn format(&self, term: &str) -> Option<String> {
        line(&self.paths[0], &inside(Path::new("format"), term)?)
    }

    /// The terms of an event.
    pub fn event(&self, name: &str) -> Option<String> {
        line(&self.paths[0], &inside(Path::new("events"), name)?)
    }

    /// Its name: that of the first.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        self.paths[0].file_name().unwrap_or_default().to_string_lossy()
    }
}

/// A file of a directory, by a name that came from outside: none that leads elsewhere.
fn inside(directory: &Path, name: &str) -> Option<PathBuf> {
    (!name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']))
        .then(|| directory.join(name))
}

/// The first line of a file of /sys. (Those of hybrid CPUs' PMUs are filled up with zero bytes: kernel-facts I.)
pub fn first_line(text: &str) -> &str {
    text.split(['\n', '\0']).next().unwrap_or_default().trim_end()
}

fn line(directory: &Path, file: impl AsRef<Path>) -> Option<String> {
    let text = fs::read(directory.join(file)).ok()?;
    Some(first_line(&String::from_utf8_lossy(&text)).to_string())
}

/// The type of the PMU of this directory.
pub fn kind_of(pmu: &Path) -> Option<u32> {
    line(pmu, "type")?.parse().ok()
}

/// The names in a directory, sorted.
fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing, feature = "scripted"))]
pub mod tree;
