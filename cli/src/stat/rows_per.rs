//! What each row of `topdown stat` is of.
#![forbid(unsafe_code)]

use super::group::{GroupTarget, StatGroup};
use std::fs;

/// What rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsPer {
    Core,
    Socket,
    Thread,
    Process,
    Cgroup,
}

impl RowsPer {
    pub fn name(self) -> &'static str {
        match self {
            RowsPer::Core => "core",
            RowsPer::Socket => "socket",
            RowsPer::Thread => "thread",
            RowsPer::Process => "process",
            RowsPer::Cgroup => "cgroup",
        }
    }

    /// Of what a group is, in perf's words.
    pub fn label(self, group: &StatGroup) -> String {
        let topology = |cpu: u32, what: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
            fs::read_to_string(path).map_or("?".into(), |text| text.trim().to_string())
        };
        match (self, &group.of) {
            (RowsPer::Core, GroupTarget::Cpu(cpu)) => {
                format!("S{}-C{}", topology(*cpu, "physical_package_id"), topology(*cpu, "core_id"))
            }
            (RowsPer::Socket, GroupTarget::Cpu(cpu)) => format!("S{}", topology(*cpu, "physical_package_id")),
            (_, GroupTarget::Thread(id)) => format!("{id} {}", name_of(*id)),
            _ => String::new(),
        }
    }
}

/// What a process or thread calls itself.
pub fn name_of(id: i32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).map_or("ended".into(), |name| name.trim_end().into())
}
