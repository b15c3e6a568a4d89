//! Files of metrics that `--metrics` names: read before anything is counted, and refused by their names.
#![forbid(unsafe_code)]

use crate::outcome::{Failure, failed};
use crate::say;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use topdown::{CompanionMetric, GivenMetrics, PublishedNames, TD_NODE_NONE, published_names};
use topdown_metric_files::{
    EventLayout, FileMetrics, MOST_BYTES, MOST_FILES, MOST_METRICS, Machine, MetricFile, Product, read,
    resolve,
};
use topdown_seam::attr::{self, Word};
use topdown_seam::cpu::{self, Identity};
use topdown_seam::sysfs::{Sysfs, SysfsPmu};
use topdown_seam::terms;

/// Where the firmware tells of persistent memory (as perf looks for it).
const PERSISTENT_MEMORY: &str = "/sys/firmware/acpi/tables/NFIT";
/// So many names are said, where there are many.
const MOST_SAID: usize = 6;
/// PMUs of arm64's cores.
const ARM_PMUS: [&str; 2] = ["armv8_pmuv3_0", "armv8_pmuv3"];

/// Whether an item of `--metrics` is a file, and not a name of a figure or a group.
pub fn is_file(item: &str) -> bool {
    item.contains('/') || item.ends_with(".json")
}

/// The metrics of some files.
#[derive(Default)]
pub struct MetricFiles {
    paths: Vec<String>,
    all: FileMetrics,
}

impl MetricFiles {
    /// Reads files.
    ///
    /// # Errors
    /// One cannot be read, is not what it should be, or is of another CPU, or none has a metric.
    pub fn read(paths: Vec<String>, counts_kernel: bool) -> Result<MetricFiles, Failure> {
        if paths.is_empty() {
            return Ok(MetricFiles::default());
        }
        if paths.len() > MOST_FILES {
            return Err(failed(format!("--metrics: more than {MOST_FILES} files: name those that you need")));
        }
        let cpu = cpu::identify();
        let read = |path: &String| {
            let of_file = |why: String| failed(format!("--metrics: {path}: {why}"));
            let file = contents(Path::new(path)).map_err(|error| {
                of_file(format!("{error} (names of figures have no / in them, and do not end with .json)"))
            });
            let file = read(&file?).map_err(of_file)?;
            match &file.product {
                Some(product) if !is_of(product, &cpu) => Err(of_file(format!(
                    "it is of {} (implementer {:#x}, part {:#x}), and this CPU is {}: name the file of this CPU",
                    product.name, product.implementer, product.part, cpu.name
                ))),
                _ => Ok(file),
            }
        };
        let files = paths.iter().map(read).collect::<Result<Vec<MetricFile>, Failure>>()?;
        let metrics: usize = files.iter().map(MetricFile::metrics).sum();
        if metrics > MOST_METRICS {
            return Err(failed(format!(
                "--metrics: {}: these files have {metrics} metrics, and at most {MOST_METRICS} are read: keep those that you need",
                paths.join(", ")
            )));
        }
        if metrics == 0 {
            return Err(failed(format!(
                "--metrics: {}: it has no metrics, but {} events: name a file of metrics, too",
                paths[0],
                files[0].events()
            )));
        }
        let published = published_names();
        Ok(MetricFiles { all: resolved(&files, &published, &cpu, counts_kernel), paths })
    }

    /// What is to be counted for them.
    pub fn given(&self) -> &GivenMetrics {
        &self.all.given
    }

    /// Files none of whose metrics is among what can be counted are refused.
    ///
    /// # Errors
    /// The first of them, and why its first metric cannot be counted.
    pub fn check(&self, planned: &[CompanionMetric]) -> Result<(), Failure> {
        let figures = || planned.iter().filter(|one| one.node == TD_NODE_NONE);
        let untold = |name: &str| figures().find(|one| one.name == name).map(|one| one.untold.as_str());
        for (place, path) in self.paths.iter().enumerate() {
            let metrics = self.all.files.iter().zip(&self.all.given.metrics);
            let own: Vec<&str> =
                metrics.filter(|(file, _)| **file == place).map(|(_, metric)| metric.name.as_str()).collect();
            if let Some(first) = own.first().filter(|_| own.iter().all(|name| untold(name) != Some(""))) {
                let why = untold(first).unwrap_or("no core of this CPU is counted");
                return Err(failed(format!(
                    "--metrics: {path}: none of its {} metrics can be counted on this CPU: name a file for it; of {first}: {why}",
                    own.len()
                )));
            }
        }
        Ok(())
    }

    /// Says in whose places of built-in figures some of these are, if there are such.
    pub fn say_replaced(&self, built_in: &[CompanionMetric]) {
        let own: Vec<String> = self.all.given.metrics.iter().map(|one| one.published_name()).collect();
        let replaced = built_in.iter().filter(|one| own.contains(&one.name));
        let names: Vec<&str> = replaced.map(|one| one.name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        let more = match names.len().saturating_sub(MOST_SAID) {
            0 => String::new(),
            more => format!(" and {more} others"),
        };
        let said = names[..names.len().min(MOST_SAID)].join(", ");
        say(&format!("--metrics: of the files, and not as they are built in: {said}{more}"));
    }
}

/// As much of a file as it may have, and a byte more, which says that it is too large.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_of(product: &Product, cpu: &Identity) -> bool {
    let implementer = u32::try_from(product.implementer).map(cpu::implementer);
    cpu.family == cpu::ARM64
        && product.part == u64::from(cpu.model)
        && implementer.as_ref() == Ok(&cpu.vendor)
}

fn resolved(
    files: &[MetricFile],
    published: &PublishedNames,
    cpu: &Identity,
    counts_kernel: bool,
) -> FileMetrics {
    let sysfs = Sysfs::real();
    let pmu = sysfs.core().or_else(|| ARM_PMUS.iter().find_map(|name| sysfs.pmu(name)));
    let machine = Machine {
        layout: match cpu.vendor.as_str() {
            _ if cpu.family == cpu::ARM64 => EventLayout::Arm,
            "GenuineIntel" => EventLayout::Intel,
            _ => EventLayout::Amd,
        },
        has_pmem: Path::new(PERSISTENT_MEMORY).exists(),
        counts_kernel,
        published,
        kernel: &|name| event_of_kernel(pmu.as_ref()?, name),
    };
    resolve(files, &machine)
}

/// What stands for an event of the kernel's (`events/` of the PMU).
fn event_of_kernel(pmu: &SysfsPmu, name: &str) -> Option<(u64, u64)> {
    let mut attr = attr::new(pmu.kind()?);
    terms::apply(pmu, &pmu.event(name)?, &mut attr).ok()?;
    Some((Word::Config.of(&attr), Word::Config1.of(&attr)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refused(path: &str) -> String {
        match MetricFiles::read(vec![path.into()], false) {
            Ok(_) => panic!("{path} is read"),
            Err((_, what)) => what,
        }
    }

    #[test]
    fn items_with_a_slash_or_json_are_files() {
        assert!(["a.json", "./ipc", "/dev/fd/63", "x/y.json"].iter().all(|item| is_file(item)));
        assert!(!["ipc", "tma_info_thread_ipc", "MemoryBW"].iter().any(|item| is_file(item)));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let directory = std::env::temp_dir().join(format!("metric-files-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_string()
        };
        let of_another = "{\"product_configuration\": {\"product_name\": \"Other\", \"implementer\": \"0x3f\", \"part_num\": \"0xfff\"},
            \"metrics\": {\"a\": {\"formula\": \"X / Y\", \"units\": \"per cycle\"}}}";
        let cases = [
            (file("no.json", "{\"a\": [1,\n 2"), "it is not JSON"),
            (file("none.json", "[]"), "neither metrics nor events"),
            (
                file("events.json", "[{\"EventName\": \"A.B\", \"EventCode\": \"0x10\"}]"),
                "it has no metrics, but 1 events",
            ),
            (file("other.json", of_another), "it is of Other (implementer 0x3f, part 0xfff)"),
            (file("large.json", &" ".repeat(MOST_BYTES as usize + 1)), "more than 4 MiB"),
            (directory.join("missing.json").to_str().unwrap().into(), "No such file"),
            (directory.to_str().unwrap().into(), "directory"),
            ("/dev/zero".into(), "more than 4 MiB"),
        ];
        for (path, why) in cases {
            let what = refused(&path);
            assert!(what.starts_with(&format!("--metrics: {path}: ")) && what.contains(why), "{what}");
        }
        let many = vec!["a.json".to_string(); MOST_FILES + 1];
        assert!(MetricFiles::read(many, false).is_err());
        let half = vec!["{\"MetricName\": \"a\", \"MetricExpr\": \"b\"}"; MOST_METRICS / 2 + 1].join(",");
        let half = file("half.json", &format!("[{half}]"));
        let (_, what) = MetricFiles::read(vec![half.clone(), half], false).map(|_| ()).unwrap_err();
        assert!(what.contains("these files have 1002 metrics"), "{what}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
