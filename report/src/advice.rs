//! What a node that is flagged means, and what to do about it (`advice.list`).

use crate::model::Finding;
use crate::nodes::NodeKind;
use crate::words::percent;
use topdown::{TD_UNIT_CLOCKS, TD_UNIT_OPERATIONS};

const LIST: &str = include_str!("advice.list");

/// Of the node of this name, without "tma_"; None: there is nothing to say.
#[must_use]
pub fn advice(node: &str) -> Option<&'static str> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let mut pairs = lines.filter_map(|line| line.split_once('|'));
    pairs.find(|(name, _)| name.trim() == node).map(|(_, advice)| advice.trim())
}

/// What this share of a node means.
#[must_use]
pub fn meaning(kind: &NodeKind, share: f64) -> String {
    let verdict = match kind.metric.verdict {
        "" => format!("{}: % of slots", kind.metric.title()),
        verdict => verdict.into(),
    };
    // (what is of slots on one core may be of cycles on another)
    let of = match kind.unit {
        TD_UNIT_CLOCKS => "% of cycles",
        TD_UNIT_OPERATIONS => "% of operations",
        _ => "% of slots",
    };
    let of_unit = verdict.replacen("% of slots", of, 1).replacen("% of cycles", of, 1);
    of_unit.replacen('%', &percent(share), 1)
}

impl Finding {
    /// The same in words.
    #[must_use]
    pub fn text(&self) -> String {
        let Finding { share, above, meaning, .. } = self;
        let above: Vec<String> = above
            .iter()
            .map(|(title, share)| match share {
                Some(share) => format!("{title} {}", percent(*share)),
                None => title.clone(),
            })
            .collect();
        let sure = if self.sure { "" } else { "maybe " };
        let bound = format!("between {} and {}", percent(share.low), percent(share.high));
        let advice = if self.advice.is_empty() { String::new() } else { format!("; {}", self.advice) };
        let locate = match self.locate.is_empty() {
            true => String::new(),
            false => format!("; where: `topdown record --locate {}`", self.node.trim_start_matches("tma_")),
        };
        format!("{sure}{meaning} ({bound}; in {}){advice}{locate}", above.join(" > "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_one_line() {
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.filter_map(|line| Some(line.split_once('|')?.0.trim())).collect();
        for name in &names {
            assert!(topdown::metric_of_name(name).is_some(), "{name}");
            assert!(advice(name).is_some_and(|advice| !advice.is_empty() && advice.len() <= 160), "{name}");
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
        }
        assert!(names.len() > 140, "{}", names.len());
        assert_eq!(advice("made_up_dram_bound"), None);
    }
}
