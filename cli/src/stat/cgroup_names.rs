//! Which cgroups there are: their ids, as the kernel's records have them, their paths, and the container, pod or unit that a path tells of.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Paths of cgroups by their ids.
pub struct CgroupNames {
    /// Where the hierarchy is mounted that the kernel's records are of.
    mount: PathBuf,
    paths: HashMap<u64, String>,
    /// An id was asked for whose path is not known.
    is_incomplete: bool,
}

impl CgroupNames {
    /// Those that there are now.
    ///
    /// # Errors
    /// No hierarchy of them is mounted.
    pub fn read() -> Result<CgroupNames, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount = mounted(&mounts).ok_or(
            "no cgroup hierarchy is mounted here: mount -t cgroup2 none /sys/fs/cgroup (as root), or in a container share the host's /sys/fs/cgroup",
        )?;
        let mut names = CgroupNames { mount, paths: HashMap::new(), is_incomplete: false };
        names.look();
        Ok(names)
    }

    /// Those of a test, where none is mounted.
    #[cfg(test)]
    pub fn known(paths: &[(u64, &str)]) -> CgroupNames {
        let paths = paths.iter().map(|(id, path)| (*id, path.to_string())).collect();
        CgroupNames { mount: "/nowhere".into(), paths, is_incomplete: false }
    }

    /// That there is a cgroup of this path from the root, as `path` has them.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, path: &str) -> Result<(), String> {
        match self.paths.values().any(|known| known == path) {
            true => Ok(()),
            false => Err(format!(
                "there is no cgroup {path} in {}: find {0} -type d lists them",
                self.mount.display()
            )),
        }
    }

    /// A cgroup was made.
    pub fn made(&mut self, id: u64, path: String) {
        self.paths.insert(id, path);
    }

    /// The path of this id will be asked for.
    pub fn wanted(&mut self, id: u64) {
        self.is_incomplete |= !self.paths.contains_key(&id);
    }

    /// Looks for those that are not known, once: what was removed meanwhile is not found then, nor later.
    pub fn refresh(&mut self) {
        if self.is_incomplete {
            self.look();
        }
    }

    fn look(&mut self) {
        self.is_incomplete = false;
        let mut directories = vec![(self.mount.clone(), String::from("/"))];
        while let Some((directory, path)) = directories.pop() {
            let Ok(metadata) = fs::metadata(&directory) else { continue };
            self.paths.insert(metadata.ino(), path.clone());
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    directories.push((entry.path(), format!("{}/{name}", path.trim_end_matches('/'))));
                }
            }
        }
    }

    /// The processes that are now in these cgroups and in their descendants.
    pub fn processes(&self, paths: &[String]) -> Vec<i32> {
        let within = |path: &str| paths.iter().any(|around| is_in(path, around));
        let all = processes().filter(|(_, said)| path_of(said).is_some_and(within));
        all.filter_map(|(process, _)| process.file_name()?.to_str()?.parse().ok()).collect()
    }

    /// In which cgroup each thread is now.
    pub fn threads(&self) -> HashMap<i32, u64> {
        let ids: HashMap<&str, u64> = self.paths.iter().map(|(id, path)| (path.as_str(), *id)).collect();
        let mut threads = HashMap::new();
        for (process, said) in processes() {
            let Some(id) = path_of(&said).and_then(|path| ids.get(path)) else { continue };
            for thread in fs::read_dir(process.join("task")).into_iter().flatten().flatten() {
                let tid = thread.file_name().to_str().and_then(|name| name.parse().ok());
                threads.extend(tid.map(|tid: i32| (tid, *id)));
            }
        }
        threads
    }

    /// The path of a cgroup from the root of the hierarchy.
    pub fn path(&self, id: u64) -> String {
        self.paths.get(&id).cloned().unwrap_or_else(|| format!("/(removed cgroup {id})"))
    }
}

/// A path without what is more than so many levels below the root.
pub fn cut(path: &str, depth: usize) -> String {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).take(depth).collect();
    format!("/{}", steps.join("/"))
}

/// Whether a cgroup is this one, or a descendant of it, by their paths.
pub fn is_in(path: &str, around: &str) -> bool {
    let around = around.trim_end_matches('/');
    path.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The directory of each process, and what its `cgroup` file says.
fn processes() -> impl Iterator<Item = (PathBuf, String)> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter_map(|process| fs::read_to_string(process.join("cgroup")).ok().map(|said| (process, said)))
}

/// Where cgroups are mounted: version 2, or of version 1 the hierarchy of perf_event, if there is such a one.
fn mounted(mountinfo: &str) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or_default());
        let place = before.split(' ').nth(4)?;
        let of_perf = kind == "cgroup" && options.split(',').any(|option| option == "perf_event");
        (of_perf || kind == "cgroup2").then(|| (of_perf, unescaped(place)))
    };
    let all: Vec<(bool, PathBuf)> = mountinfo.lines().filter_map(mount).collect();
    let first = all.iter().find(|(of_perf, _)| *of_perf).or(all.first());
    first.map(|(_, place)| place.clone())
}

/// The path in a process's `cgroup` file: that of perf_event's own hierarchy, else that of version 2.
fn path_of(said: &str) -> Option<&str> {
    let fields = |line| str::splitn(line, 3, ':');
    let of_perf = said.lines().find(|line| {
        fields(line).nth(1).is_some_and(|names| names.split(',').any(|name| name == "perf_event"))
    });
    of_perf.or(said.lines().find(|line| line.starts_with("0::")))?.splitn(3, ':').nth(2)
}

/// A path as mountinfo has it: with octal numbers for blanks.
fn unescaped(text: &str) -> PathBuf {
    Path::new(&text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")).into()
}

/// Names of runtimes as their units have them before a container's id.
const RUNTIMES: [(&str, &str); 5] = [
    ("docker", "docker"),
    ("libpod", "podman"),
    ("crio", "cri-o"),
    ("cri-containerd", "containerd"),
    ("nerdctl", "nerdctl"),
];

/// As much of a container's id as its runtime shows.
const SHOWN: usize = 12;

/// What a cgroup is, as its path tells: a container, with its pod, a machine or a unit; else the path.
pub fn title(path: &str) -> String {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let pod = steps.iter().rev().find_map(|step| pod(step));
    let of_pod = pod.as_ref().map(|pod| format!("pod {pod}"));
    let container = steps.iter().enumerate().rev().find_map(|(k, step)| {
        let around = k.checked_sub(1).map(|k| steps[k]);
        container(step, around, pod.is_some()).map(|name| (k, name))
    });
    if let Some((k, name)) = container {
        // (what a container has made in itself is shown with it)
        let below: String = steps[k + 1..].iter().map(|step| format!("/{step}")).collect();
        return of_pod.map(|pod| format!("{pod} ")).unwrap_or_default() + &name + &below;
    }
    let last = steps.last().copied().unwrap_or_default();
    if let Some(machine) = last.strip_prefix("machine-").and_then(|name| name.strip_suffix(".scope")) {
        return format!("machine {}", unit_text(machine));
    }
    if let Some(name) = last.strip_prefix("lxc.payload.") {
        return format!("lxc {name}");
    }
    match (of_pod, last.strip_suffix(".service")) {
        (Some(pod), _) => pod,
        (None, Some(_)) => unit_text(last),
        (None, None) if steps.is_empty() => "/".into(),
        _ => path.into(),
    }
}

/// The container of a step: `docker-ID.scope`, or an ID alone below what says that containers are there.
fn container(step: &str, around: Option<&str>, in_pod: bool) -> Option<String> {
    let is_id = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = |id: &str| id[..SHOWN].to_string();
    if let Some((runtime, id)) = step.strip_suffix(".scope").and_then(|unit| unit.rsplit_once('-')) {
        let name = RUNTIMES.iter().find(|(prefix, _)| *prefix == runtime);
        return name.filter(|_| is_id(id)).map(|(_, name)| format!("{name} {}", shown(id)));
    }
    if !is_id(step) {
        return None;
    }
    let name = match around {
        Some("docker") => "docker",
        _ if in_pod => "container",
        Some("libpod_parent") => "podman",
        _ => return None,
    };
    Some(format!("{name} {}", shown(step)))
}

/// The uid of a pod: `pod8d2c...`, or `kubepods-burstable-pod8d2c_....slice`.
fn pod(step: &str) -> Option<String> {
    let unit = step.strip_suffix(".slice").unwrap_or(step);
    let at = unit.rfind("pod")?;
    let (before, uid) = (&unit[..at], &unit[at + 3..]);
    let is_uid = uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-_".contains(&byte));
    (is_uid && (before.is_empty() || before.starts_with("kubepods"))).then(|| uid.replace('_', "-"))
}

/// A unit's name, in which systemd writes other characters by their numbers.
fn unit_text(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        let byte = rest.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte.filter(u8::is_ascii) else { break };
        text.push_str(&rest[..at]);
        text.push(byte.into());
        rest = &rest[at + 4..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2a1b9c0d1e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c";

    #[test]
    fn a_path_tells_the_container() {
        let titles = [
            (format!("/system.slice/docker-{ID}.scope"), "docker 3f2a1b9c0d1e"),
            (format!("/docker/{ID}"), "docker 3f2a1b9c0d1e"),
            (format!("/docker/{ID}/init"), "docker 3f2a1b9c0d1e/init"),
            (format!("/machine.slice/libpod-{ID}.scope/container"), "podman 3f2a1b9c0d1e/container"),
            (
                format!(
                    "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod8d2c1f00_1111_2222_3333_444455556666.slice/cri-containerd-{ID}.scope"
                ),
                "pod 8d2c1f00-1111-2222-3333-444455556666 containerd 3f2a1b9c0d1e",
            ),
            (
                format!("/kubepods/burstable/pod8d2c1f00-1111-2222-3333-444455556666/{ID}"),
                "pod 8d2c1f00-1111-2222-3333-444455556666 container 3f2a1b9c0d1e",
            ),
            (
                "/kubepods/pod8d2c1f00-1111-2222-3333-444455556666".into(),
                "pod 8d2c1f00-1111-2222-3333-444455556666",
            ),
            ("/machine.slice/machine-deb\\x2dsid.scope".into(), "machine deb-sid"),
            ("/lxc.payload.web".into(), "lxc web"),
            ("/system.slice/ssh.service".into(), "ssh.service"),
            ("/user.slice/user-0.slice/session-1.scope".into(), "/user.slice/user-0.slice/session-1.scope"),
            (format!("/some/{ID}"), &format!("/some/{ID}")),
            ("/".into(), "/"),
        ];
        for (path, name) in titles {
            assert_eq!(title(&path), name, "{path}");
        }
    }

    #[test]
    fn the_path_of_a_process_is_in_that_hierarchy() {
        assert_eq!(path_of("0::/a/b:c\n"), Some("/a/b:c"));
        assert_eq!(path_of("3:cpu,cpuacct:/x\n2:perf_event:/y\n0::/z\n"), Some("/y"));
        assert_eq!(path_of(""), None);
    }

    #[test]
    fn the_hierarchy_of_perf_event_is_found() {
        let two = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mounted(two), Some("/sys/fs/cgroup".into()));
        let one = "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                   32 30 0:28 / /sys/fs/cgroup/perf\\040event rw - cgroup cgroup rw,perf_event\n";
        assert_eq!(mounted(one), Some("/sys/fs/cgroup/perf event".into()));
        assert_eq!(mounted("22 1 0:20 / /proc rw - proc proc rw\n"), None);
    }
}
