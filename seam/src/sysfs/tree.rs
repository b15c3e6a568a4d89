//! A tree of a test's own.

use super::Sysfs;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A tree of a test's own, removed at its end. PMU files are at the top, those of CPUs below `cpus`.
pub struct SysfsTree {
    root: PathBuf,
    /// What reads it.
    pub sysfs: Sysfs,
}

impl SysfsTree {
    /// With these files.
    pub fn new(files: &[(&str, &str)]) -> SysfsTree {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("topdown-sysfs-{}-{number}", std::process::id()));
        let sysfs = Sysfs {
            devices: root.join("devices"),
            cpus: root.join("cpus"),
            tracing: vec![root.join("nowhere"), root.join("tracing")],
        };
        for (path, text) in files {
            let path = if path.starts_with("cpus/") || path.starts_with("tracing/") {
                root.join(path)
            } else {
                sysfs.devices.join(path)
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        SysfsTree { root, sysfs }
    }

    /// Directories of these PMUs.
    pub fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.sysfs.devices.join(name)).collect()
    }
}

impl Drop for SysfsTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
