//! The ranks of a job in words.
#![forbid(unsafe_code)]

use crate::model::{Figures, OverRanks, Rank, Region, Report};
use crate::words::{clean, percent, time};
use std::collections::{BTreeMap, BTreeSet};

/// "rank 3", "ranks 0-2, 5".
fn named(ranks: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => spans.push((*rank, *rank)),
        }
    }
    let span = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let all: Vec<String> = spans.iter().map(span).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, all.join(", "))
}

/// Which ranks did not end as they should, or are not in the report.
pub fn remarks(report: &Report) -> Vec<String> {
    let Some(size) = report.ranks_of else { return Vec::new() };
    let mut ends: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for Rank { rank, ended, status, signal, host, .. } in &report.ranks {
        let how = match (*ended, status, signal) {
            (_, _, Some(signal)) => format!("killed by signal {signal}"),
            ("exited", None | Some(0), _) => continue,
            ("exited", status, _) => format!("exit status {}", status.unwrap_or(0)),
            ("runs", ..) => "did not finish: still ran when this report was made".into(),
            _ => format!("did not finish: its `topdown run` was killed (on {})", clean(host)),
        };
        ends.entry(how).or_default().push(*rank);
    }
    let begun: BTreeSet<u32> = report.ranks.iter().map(|rank| rank.rank).collect();
    let absent: Vec<u32> = (0..size).filter(|rank| !begun.contains(rank)).collect();
    if !absent.is_empty() {
        ends.entry("not measured, or not yet: it has left nothing".into()).or_default().extend(absent);
    }
    ends.into_iter().map(|(how, ranks)| format!("{} of {size}: {how}", named(&ranks))).collect()
}

/// "rank 3 on node1".
pub fn label(rank: &Rank) -> String {
    format!("rank {} on {}", rank.rank, clean(&rank.host))
}

/// Those with the most time, at most so many, in their order.
pub fn shown(report: &Report, most: usize) -> Vec<&Rank> {
    let mut all: Vec<&Rank> = report.ranks.iter().collect();
    if all.len() > most {
        all.sort_by_key(|rank| std::cmp::Reverse(time_of(&rank.item.inclusive)));
        all.truncate(most);
        all.sort_by_key(|rank| rank.rank);
    }
    all
}

/// Nanoseconds of its threads' time; of time alone elapsed.
pub fn time_of(of: &Figures) -> u64 {
    of.wall_ns().or_else(|| of.time_ns()).unwrap_or(0)
}

/// How a region's time divides among the ranks.
pub fn sentence(region: &Region, report: &Report) -> Option<String> {
    let over = region.over_ranks.as_ref()?;
    let OverRanks { ranks, min_ns, mean_ns, max_ns, slowest, imbalance, .. } = over;
    Some(format!(
        "over ranks: {} to {}, mean {}; slowest rank {slowest}, imbalance {}{}",
        time(*min_ns as f64),
        time(*max_ns as f64),
        time(*mean_ns as f64),
        percent(*imbalance),
        if *ranks < report.ranks.len() {
            format!("; in {ranks} of {} ranks", report.ranks.len())
        } else {
            String::new()
        }
    ))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn ranks_in_a_row_are_one_span() {
        assert_eq!(named(&[3]), "rank 3");
        assert_eq!(named(&[0, 1, 3, 4, 5, 6, 9]), "ranks 0, 1, 3-6, 9");
    }
}
