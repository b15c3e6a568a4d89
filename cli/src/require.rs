//! `--require`: what a report is to have measured, and an exit status for scripts where it has not.
#![forbid(unsafe_code)]

use crate::outcome::Failure;
use crate::stat::levels::DEEPEST;
use crate::sys::End;
use std::str::FromStr;
use topdown_report::Report;

/// Exit status where less was measured than was required, of a command that succeeded.
pub const UNMEASURED: u8 = 123;

/// What is lacking of figures that are made up.
pub const NOT_SIMULATED: &str = "no slots are measured: they are simulated (TOPDOWN_SIMULATE)";

/// What the whole is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Slots, however they divide.
    Slots,
    /// Nodes of this level.
    Level(u32),
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
        match text.parse() {
            _ if text == "slots" => Ok(Requirement::Slots),
            Ok(level) if (1..=DEEPEST).contains(&level) => Ok(Requirement::Level(level)),
            _ => Err(format!("neither slots nor a level from 1 to {DEEPEST}")),
        }
    }
}

impl Requirement {
    /// What a report lacks of it, and why; None: nothing.
    pub fn lacks(self, report: &Report) -> Option<String> {
        let figures = &report.whole.inclusive;
        if topdown_report::simulated(report) {
            return Some(NOT_SIMULATED.into());
        }
        if figures.slots == 0 {
            let of_processes = report.processes.iter().map(|process| &process.trouble);
            let mut why = [&report.trouble].into_iter().chain(of_processes).filter(|why| !why.is_empty());
            let why = why.next().map_or("nothing was counted", String::as_str);
            return Some(format!("no slots of the whole are measured: {why}"));
        }
        let of_levels = [figures.level_1.is_some(), figures.level_2.is_some()];
        let of_levels = (1..).zip(of_levels).filter(|(_, is_measured)| *is_measured).map(|(level, _)| level);
        let of_tree = figures.tree.0.iter().map(|node| node.kind.level);
        let measured = of_levels.chain(of_tree).max().unwrap_or(0);
        match self {
            Requirement::Level(level) if measured < level => Some(match measured {
                0 => "how the slots of the whole divide is not measured".into(),
                _ => format!("the whole is measured down to level {measured}, not {level}"),
            }),
            _ => None,
        }
    }
}

/// How a command ended whose report lacks this of what was required. (A command that failed keeps its status.)
pub fn judged(end: End, lacks: Option<String>) -> Result<End, Failure> {
    match (end, lacks) {
        (End::Status(0), Some(lacks)) => Err((UNMEASURED, format!("--require: {lacks}"))),
        (end, _) => Ok(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown_report::OutsideCount;

    #[test]
    fn a_requirement_is_slots_or_a_level() {
        assert_eq!("slots".parse(), Ok(Requirement::Slots));
        assert_eq!("6".parse(), Ok(Requirement::Level(6)));
        for text in ["", "0", "7", "-1", "level", "Slots", "1.5"] {
            assert!(text.parse::<Requirement>().is_err(), "{text}");
        }
    }

    #[test]
    fn who_has_measured_nothing_lacks_it_with_the_reason_and_a_failed_command_keeps_its_status() {
        let nothing = Report { trouble: "no PMU".into(), ..Report::new(&[], Some(OutsideCount::default())) };
        let lacks = Requirement::Slots.lacks(&nothing).unwrap();
        assert!(lacks.contains("no PMU"), "{lacks}");
        assert!(Requirement::Level(1).lacks(&nothing).is_some());
        let status = |end, lacks| match judged(end, lacks) {
            Ok(End::Status(status)) | Err((status, _)) => status,
            Ok(End::Signal(signal)) => signal as u8,
        };
        assert_eq!(status(End::Status(0), Some(lacks.clone())), UNMEASURED);
        assert_eq!(status(End::Status(3), Some(lacks.clone())), 3);
        assert_eq!(status(End::Signal(9), Some(lacks)), 9);
        assert_eq!(status(End::Status(0), None), 0);
    }
}
