//! What permits a measurement: the only home of these texts.
#![forbid(unsafe_code)]

/// A setting of the system that keeps somebody from measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// kernel.perf_event_paranoid is `found`, and has to be `needed` or less.
    Paranoid {
        /// Its value; None: it cannot be read.
        found: Option<i64>,
        /// The highest that permits it.
        needed: i64,
    },
    /// A seccomp filter refuses perf_event_open(2).
    Seccomp,
    /// The kernel's watchdog holds a general-purpose counter.
    Watchdog,
}

/// One of the ways out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// "once", "for good", "one command", "container".
    pub reach: &'static str,
    /// What to do: a command, or words.
    pub what: String,
}

/// Where settings that are to stay are.
const SETTINGS: &str = "/etc/sysctl.d/90-topdown.conf";

impl Obstacle {
    /// In a few words, for the end of an error.
    #[must_use]
    pub fn short(self) -> String {
        match self {
            Obstacle::Paranoid { found, needed } => {
                let capability = match found {
                    Some(3..) => "CAP_SYS_ADMIN (CAP_PERFMON is not enough above 2)",
                    _ => "CAP_PERFMON",
                };
                format!(
                    "set it (`sysctl kernel.perf_event_paranoid={needed}`), or give the program {capability}"
                )
            }
            Obstacle::Seccomp => {
                "run it with a profile that allows perf_event_open (Docker, Podman: --cap-add PERFMON or --security-opt \
                 seccomp=PROFILE)"
                    .into()
            }
            Obstacle::Watchdog => "sysctl kernel.nmi_watchdog=0".into(),
        }
    }

    /// All ways, in a container with those that are its runtime's.
    #[must_use]
    pub fn remedies(self, in_container: bool) -> Vec<Remedy> {
        let setting = self.setting();
        let host = if in_container { " (on the host)" } else { "" };
        let of_setting = setting.iter().flat_map(|setting| {
            let once = format!("sudo sysctl {setting}{host}");
            let for_good = format!("echo {setting} | sudo tee -a {SETTINGS}{host}");
            [("once", once), ("for good", for_good)]
        });
        let of_command = self.capability().map(|capability| {
            let what = format!(
                "sudo; or for stat, record and top a copy that may: cp \"$(command -v topdown)\" . && sudo setcap {capability}+ep \
                 ./topdown"
            );
            ("one command", what)
        });
        let of_container = self.container().filter(|_| in_container || self == Obstacle::Seccomp);
        let all = of_setting.chain(of_command).chain(of_container.map(|what| ("container", what)));
        all.map(|(reach, what)| Remedy { reach, what }).collect()
    }

    /// As sysctl(8) takes it.
    fn setting(self) -> Option<String> {
        match self {
            Obstacle::Paranoid { needed, .. } => Some(format!("kernel.perf_event_paranoid={needed}")),
            Obstacle::Watchdog => Some("kernel.nmi_watchdog=0".into()),
            Obstacle::Seccomp => None,
        }
    }

    /// What a program needs in place of the setting, as setcap(8) takes it. (Debian's and Ubuntu's kernels refuse above 2 whoever has less.)
    fn capability(self) -> Option<&'static str> {
        match self {
            Obstacle::Paranoid { found: Some(3..), .. } => Some("cap_sys_admin"),
            Obstacle::Paranoid { .. } => Some("cap_perfmon"),
            _ => None,
        }
    }

    /// What the runtime of a container takes, for root in it.
    fn container(self) -> Option<String> {
        let capability = match self {
            Obstacle::Watchdog => return None,
            Obstacle::Paranoid { found: Some(3..), .. } => "SYS_ADMIN",
            _ => "PERFMON",
        };
        Some(format!(
            "docker run, podman run: --cap-add {capability} (an old runtime: --security-opt seccomp=PROFILE, too, which allows perf_event_open); Kubernetes: \
             securityContext: {{capabilities: {{add: [{capability}]}}}}; for root in it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(obstacle: Obstacle, in_container: bool) -> Vec<&'static str> {
        obstacle.remedies(in_container).iter().map(|remedy| remedy.reach).collect()
    }

    #[test]
    fn a_setting_is_changed_once_and_for_good_and_done_without() {
        let paranoid = Obstacle::Paranoid { found: Some(2), needed: 0 };
        assert_eq!(reaches(paranoid, false), ["once", "for good", "one command"]);
        assert_eq!(reaches(paranoid, true), ["once", "for good", "one command", "container"]);
        assert_eq!(reaches(Obstacle::Watchdog, true), ["once", "for good"]);
        assert_eq!(reaches(Obstacle::Seccomp, false), ["container"]);
        let [once, for_good, ..] = &paranoid.remedies(true)[..] else { panic!() };
        assert_eq!(once.what, "sudo sysctl kernel.perf_event_paranoid=0 (on the host)");
        assert!(for_good.what.starts_with("echo kernel.perf_event_paranoid=0 | sudo tee -a /etc/sysctl.d/"));
    }

    #[test]
    fn the_capability_is_the_one_that_suffices() {
        for (found, capability) in [(Some(2), "perfmon"), (Some(3), "sys_admin"), (None, "perfmon")] {
            let all = Obstacle::Paranoid { found, needed: 1 }.remedies(true);
            let [.., one_command, container] = &all[..] else { panic!() };
            assert!(one_command.what.contains(&format!("cap_{capability}+ep")), "{one_command:?}");
            assert!(container.what.contains(&capability.to_uppercase()), "{container:?}");
        }
    }
}
