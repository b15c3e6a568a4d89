//! Which event files to load.
//!
//! The downloader names them CPU-TYPE.json, for a hybrid CPU CPU-hybridcore-ROLE.json, and puts them in a directory
//! pmu-events of a cache directory.

use crate::cpu;
use crate::environment::Environment;
use crate::list::ListFailure;
use std::path::{Path, PathBuf};
use topdown_seam::cpu::Identity;

/// Types with events of cores, one of which must be there, and the PMU that their events are of.
const CORE: [(&str, &str); 4] = [
    ("-core.json", "cpu"),
    ("-hybridcore-Core.json", "cpu_core"),
    ("-hybridcore-Atom.json", "cpu_atom"),
    ("-hybridcore-LowPower_Atom.json", "cpu_lowpower"),
];

/// Types that are loaded, too, where they are.
const MORE: [&str; 3] = ["-uncore.json", "-uncoreexperimental.json", "-offcore.json"];

/// What to load, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// It must load.
    pub core: PathBuf,
    /// What does not load of these is left out.
    pub more: Vec<PathBuf>,
}

/// The files for a CPU; `readable` tells which there are. All are of one directory: the first with events of cores.
pub fn choose(
    environment: &Environment,
    cpu: &Identity,
    readable: impl Fn(&Path) -> bool,
) -> Result<Files, ListFailure> {
    let ids = match &environment.event_map {
        Some(file) if readable(Path::new(file)) => {
            return Ok(Files { core: file.into(), more: Vec::new() });
        }
        Some(id) => vec![id.to_string_lossy().into_owned()],
        None => cpu::ids(cpu),
    };
    let directories = directories(environment);
    if directories.is_empty() {
        return Err(ListFailure::Nowhere);
    }
    let chosen = |directory: &PathBuf| {
        let of_type = |ending: &str| {
            ids.iter().map(|id| directory.join(format!("{id}{ending}"))).find(|path| readable(path))
        };
        let mut cores = CORE.iter().filter_map(|(ending, _)| of_type(ending));
        let core = cores.next()?;
        Some(Files { core, more: cores.chain(MORE.iter().filter_map(|ending| of_type(ending))).collect() })
    };
    directories.iter().find_map(chosen).ok_or(ListFailure::Unreadable(libc::ENOENT))
}

/// Where event files may be, the best first.
fn directories(environment: &Environment) -> Vec<PathBuf> {
    let Environment { event_map: _, jevents_cache, xdg_cache, sudo_home, home, downloads } = environment;
    let cache = |home: &Option<PathBuf>| home.as_ref().map(|home| home.join(".cache"));
    [jevents_cache.clone(), xdg_cache.clone(), cache(sudo_home), cache(home)]
        .into_iter()
        .flatten()
        .map(|cache| cache.join("pmu-events"))
        .chain(downloads.clone())
        .collect()
}

/// The PMU of those events of a file that do not name one.
pub fn pmu_of(file: &Path) -> &'static str {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    CORE.iter().find(|(ending, _)| name.ends_with(ending)).map_or("cpu", |(_, pmu)| pmu)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is chosen among these files on a Skylake-SP of stepping 4.
    fn chosen(environment: &Environment, there: &[&str]) -> Result<Vec<String>, ListFailure> {
        let cpu = Identity::of("GenuineIntel", 0x5_0654);
        let files = choose(environment, &cpu, |path| there.iter().any(|there| Path::new(there) == path))?;
        let paths = std::iter::once(files.core).chain(files.more);
        Ok(paths.map(|path| path.to_str().unwrap().to_string()).collect())
    }

    fn all() -> Environment {
        Environment {
            event_map: None,
            jevents_cache: Some("/j".into()),
            xdg_cache: Some("/x".into()),
            sudo_home: Some("/s".into()),
            home: Some("/h".into()),
            downloads: Some("/d".into()),
        }
    }

    #[test]
    fn directories_are_asked_in_turn() {
        let there = [
            "/j/pmu-events/GenuineIntel-6-55-4-core.json",
            "/x/pmu-events/GenuineIntel-6-55-4-core.json",
            "/s/.cache/pmu-events/GenuineIntel-6-55-4-core.json",
            "/h/.cache/pmu-events/GenuineIntel-6-55-4-core.json",
            "/d/GenuineIntel-6-55-4-core.json",
        ];
        for first in 0..there.len() {
            assert_eq!(chosen(&all(), &there[first..]), Ok(vec![there[first].into()]));
        }
        assert_eq!(chosen(&all(), &[]), Err(ListFailure::Unreadable(libc::ENOENT)));
        assert_eq!(chosen(&Environment::default(), &there), Err(ListFailure::Nowhere));
        let home = Environment { home: Some("/h".into()), ..Environment::default() };
        assert_eq!(chosen(&home, &there), Ok(vec![there[3].into()]));
        assert_eq!(chosen(&home, &there[..3]), Err(ListFailure::Unreadable(libc::ENOENT)));
    }

    #[test]
    fn a_stepping_has_its_own_files() {
        let both =
            ["/j/pmu-events/GenuineIntel-6-55-core.json", "/j/pmu-events/GenuineIntel-6-55-4-core.json"];
        assert_eq!(chosen(&all(), &both), Ok(vec![both[1].into()]));
        assert_eq!(chosen(&all(), &both[..1]), Ok(vec![both[0].into()]));
    }

    #[test]
    fn all_types_of_one_directory_are_loaded_and_core_comes_first() {
        let there = [
            "/j/pmu-events/GenuineIntel-6-55-uncore.json", // without core: not this directory
            "/x/pmu-events/GenuineIntel-6-55-offcore.json",
            "/x/pmu-events/GenuineIntel-6-55-4-uncoreexperimental.json",
            "/x/pmu-events/GenuineIntel-6-55-uncore.json",
            "/x/pmu-events/GenuineIntel-6-55-core.json",
            "/h/.cache/pmu-events/GenuineIntel-6-55-4-uncore.json",
        ];
        let expected = [there[4], there[3], there[2], there[1]].map(String::from);
        assert_eq!(chosen(&all(), &there), Ok(expected.into()));
    }

    #[test]
    fn hybrid_cpus_have_a_file_for_each_kind_of_core() {
        let there = [
            "/j/pmu-events/GenuineIntel-6-55-hybridcore-Atom.json",
            "/j/pmu-events/GenuineIntel-6-55-uncore.json",
            "/j/pmu-events/GenuineIntel-6-55-hybridcore-Core.json",
        ];
        assert_eq!(chosen(&all(), &there), Ok([there[2], there[0], there[1]].map(String::from).into()));
        for (file, pmu) in [
            (there[0], "cpu_atom"),
            (there[1], "cpu"),
            (there[2], "cpu_core"),
            ("x-hybridcore-LowPower_Atom.json", "cpu_lowpower"),
            ("/j/pmu-events/GenuineIntel-6-55-core.json", "cpu"),
            ("/", "cpu"),
        ] {
            assert_eq!(pmu_of(Path::new(file)), pmu, "{file}");
        }
    }

    #[test]
    fn event_map_is_a_file_or_another_cpu() {
        let there = [
            "/my/events",
            "/j/pmu-events/GenuineIntel-6-8F-core.json",
            "/j/pmu-events/GenuineIntel-6-55-4-core.json",
            "/j/pmu-events/GenuineIntel-6-55-4-uncore.json",
        ];
        let map = |map: &str| Environment { event_map: Some(map.into()), ..all() };
        assert_eq!(chosen(&map("/my/events"), &there), Ok(vec!["/my/events".into()]));
        assert_eq!(chosen(&map("GenuineIntel-6-8F"), &there), Ok(vec![there[1].into()]));
        assert_eq!(chosen(&map("GenuineIntel-6-00"), &there), Err(ListFailure::Unreadable(libc::ENOENT)));
        let nowhere = Environment { event_map: Some("/my/events".into()), ..Environment::default() };
        assert_eq!(chosen(&nowhere, &there), Ok(vec!["/my/events".into()]));
    }
}
