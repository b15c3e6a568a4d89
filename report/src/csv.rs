//! The report as comma-separated values (RFC 4180, lines end in a line feed).
//!
//! One line for each region and thread, and sums over either: an empty region is all that ran, an empty tid all
//! threads, an empty pid all processes. The nodes of the tree of metrics follow the columns that all reports have. Where figures are made up,
//! the last column says so in each row, whoever takes some of them.
#![forbid(unsafe_code)]

use crate::account::{BoundedShares, Level1, Level2};
use crate::model::{Figures, Item, Process, Report, SIMULATED_PATH};
use crate::nodes::NodeKind;
use crate::timeline::{SeriesSubject, Timeline, TimelineInterval};
use crate::words::{clean, simulated};
use std::io::{self, Write};

/// A text that no terminal obeys and no spreadsheet takes for a formula: an apostrophe comes before what would begin one, also in an
/// Asian width, and before an apostrophe, so that one at the start never belongs to the text.
#[must_use]
pub fn cell(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(clean).collect();
    let mut text = lines.join("\n");
    if text.trim_start().starts_with(['=', '+', '-', '@', '\'', '＝', '＋', '－', '＠']) {
        text.insert(0, '\'');
    }
    text
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text as one field among fields that one of these separates: in quotes, if a reader needs them.
#[must_use]
pub fn separated(text: &str, separators: &[&str]) -> String {
    let needs_quotes = ["\"", "\n"].iter().chain(separators).any(|mark| text.contains(mark));
    if needs_quotes { in_quotes(text) } else { text.into() }
}

/// [`cell`] as one field.
pub fn field(text: &str) -> String {
    separated(&cell(text), &[",", ";"])
}

/// [`cell`] as one field that is always in quotes.
pub fn quoted(text: &str) -> String {
    in_quotes(&cell(text))
}

/// A number, or nothing.
pub fn number<T: ToString>(number: Option<T>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

/// Yes, no, or nothing.
pub fn yes_or_no(yes: Option<bool>) -> &'static str {
    yes.map_or("", |yes| if yes { "yes" } else { "no" })
}

/// The last column of figures that are made up: its name.
const PATH: &str = "path";

/// Which columns there are besides those that all reports have.
#[derive(Clone, Copy)]
struct Columns<'r> {
    nodes: &'r [NodeKind],
    /// Those of time alone.
    times: bool,
    /// The rank and its host.
    ranks: bool,
    is_simulated: bool,
}

fn header(Columns { nodes, times, ranks, is_simulated }: Columns) -> String {
    let mut names: Vec<String> = ["region", "pid", "tid", "thread", "ended"].map(String::from).into();
    names.extend(
        ["executions", "measured", "nested", "unended", "unbalanced", "missed", "split"].map(String::from),
    );
    for of in ["", "exclusive_"] {
        names.extend(["slots", "share", "time_ns", "running"].map(|name| format!("{of}{name}")));
        names.extend(Level1::metrics().iter().map(|metric| format!("{of}{}", metric.field())));
        names.push(format!("{of}error_1"));
        names.extend(Level2::metrics().iter().map(|metric| format!("{of}{}", metric.field())));
        names.push(format!("{of}error_2"));
        names.push(format!("{of}bottleneck"));
    }
    for of in ["", "exclusive_"] {
        for node in nodes {
            names.extend(["", "_low", "_high"].map(|end| format!("{of}{}{end}", node.name())));
        }
    }
    if times {
        names.extend(["time_alone", "wall_ns", "exclusive_wall_ns"].map(String::from));
    }
    if ranks {
        names.extend(["rank", "host"].map(String::from));
    }
    names.extend(is_simulated.then(|| PATH.into()));
    names.join(",") + "\n"
}

fn shares<const N: usize>(row: &mut Vec<String>, shares: Option<&BoundedShares<N>>) {
    row.extend((0..N).map(|k| number(shares.map(|shares| shares.of[k]))));
    row.push(number(shares.map(|shares| shares.error)));
}

fn figures(row: &mut Vec<String>, figures: &Figures) {
    row.extend([number(figures.slots()), number(figures.share), number(figures.time_ns())]);
    row.push(number(figures.running));
    shares(row, figures.level_1.as_ref());
    shares(row, figures.level_2.as_ref());
    row.push(field(&figures.bottleneck));
}

fn tree(row: &mut Vec<String>, nodes: &[NodeKind], figures: &Figures) {
    for node in nodes {
        let shown = figures.tree.find(node.metric.id).map(|node| node.share);
        row.extend(
            [shown.map(|one| one.value), shown.map(|one| one.low), shown.map(|one| one.high)].map(number),
        );
    }
}

/// Which rank, and its host.
type RankLabel<'a> = (Option<u32>, &'a str);

/// Which thread, and whether it ended.
type ThreadLabel<'a> = (String, String, &'a str, &'static str);

fn line(
    out: &mut dyn Write,
    Columns { nodes, times, ranks, is_simulated }: Columns,
    region: &str,
    (pid, tid, thread, ended): ThreadLabel,
    item: &Item,
    of: RankLabel,
) -> io::Result<()> {
    let counts = &item.counts;
    let mut row = vec![field(region), pid, tid, field(thread), ended.into()];
    row.extend(
        [
            counts.executions,
            counts.measured,
            counts.nested,
            counts.unended,
            counts.unbalanced,
            counts.missed,
            counts.split,
        ]
        .map(|n| n.to_string()),
    );
    figures(&mut row, &item.inclusive);
    figures(&mut row, &item.exclusive);
    tree(&mut row, nodes, &item.inclusive);
    tree(&mut row, nodes, &item.exclusive);
    if times {
        row.push(yes_or_no(Some(item.inclusive.time_alone.is_some())).into());
        row.extend([&item.inclusive, &item.exclusive].map(|figures| number(figures.wall_ns())));
    }
    if ranks {
        row.extend([number(of.0), field(of.1)]);
    }
    row.extend(is_simulated.then(|| SIMULATED_PATH.into()));
    out.write_all((row.join(",") + "\n").as_bytes())
}

/// A timeline: a line for each interval of each series, with slots of each node that any of them has.
pub fn timeline(timeline: &Timeline, is_simulated: bool) -> String {
    let intervals = || timeline.series.iter().flat_map(|series| &series.intervals);
    let mut nodes: Vec<NodeKind> = Vec::new();
    for node in intervals().flat_map(|interval| &interval.nodes) {
        if !nodes.contains(&node.kind) {
            nodes.push(node.kind);
        }
    }
    let mut names: Vec<&str> = vec!["of", "begin_ns", "end_ns", "slots", "time_ns", "running"];
    names.extend(nodes.iter().map(NodeKind::name));
    names.extend(["error_1", "error_2"]);
    names.extend(is_simulated.then_some(PATH));
    let mut out = names.join(",") + "\n";
    for series in &timeline.series {
        let of = if series.of == SeriesSubject::Whole { String::new() } else { field(&series.of.title()) };
        for interval in &series.intervals {
            let TimelineInterval { begin_ns, end_ns, slots, time_ns, running, .. } = interval;
            let mut row = vec![of.clone()];
            row.extend([begin_ns, end_ns, slots, time_ns].map(u64::to_string));
            row.push(number(*running));
            row.extend(nodes.iter().map(|kind| {
                let node = interval.nodes.iter().find(|node| node.kind == *kind);
                number(node.map(|node| interval.count(node)))
            }));
            row.extend([1, 2].map(|level| number(interval.error(level))));
            row.extend(is_simulated.then(|| SIMULATED_PATH.into()));
            out += &(row.join(",") + "\n");
        }
    }
    out
}

fn rank_of(process: &Process) -> RankLabel<'_> {
    (process.rank, process.host.as_deref().unwrap_or_default())
}

pub fn render(report: &Report) -> String {
    let mut bytes = Vec::new();
    write(report, &mut bytes).expect("memory takes it");
    String::from_utf8(bytes).expect("texts and numbers")
}

/// Line by line: a large report is never whole in memory.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let is_simulated = simulated(report);
    let columns = Columns {
        nodes: &report.nodes,
        times: report.time_alone.is_some(),
        ranks: report.ranks_of.is_some(),
        is_simulated,
    };
    out.write_all(header(columns).as_bytes())?;
    let all = || (String::new(), String::new(), "", "");
    let no_rank = (None, "");
    line(out, columns, "", all(), &report.whole, no_rank)?;
    let yes = |ended: bool| yes_or_no(Some(ended));
    for rank in &report.ranks {
        let ended = (String::new(), String::new(), "", yes(rank.ended == "exited"));
        line(out, columns, "", ended, &rank.item, (Some(rank.rank), &rank.host))?;
    }
    for process in &report.processes {
        let pid = process.pid.to_string();
        let ended = yes(process.ended != crate::model::ProcessEnd::Killed);
        let rank = rank_of(process);
        line(out, columns, "", (pid.clone(), String::new(), "", ended), &process.item, rank)?;
        for thread in &process.threads {
            let who = (pid.clone(), thread.tid.to_string(), thread.name.as_str(), yes(thread.ended));
            line(out, columns, "", who, &thread.item, rank)?;
        }
    }
    for one in report.outside.iter().flat_map(|outside| &outside.processes).filter(|one| one.is_unseen()) {
        let pid = one.pid.map_or("rest".into(), |pid| pid.to_string());
        line(out, columns, "", (pid, String::new(), &one.name, ""), &one.item, no_rank)?;
    }
    for region in &report.regions {
        line(out, columns, &region.name, all(), &region.item, no_rank)?;
        for one in &region.threads {
            let process = &report.processes[one.place.0];
            let thread = &process.threads[one.place.1];
            let who = (one.pid.to_string(), one.tid.to_string(), thread.name.as_str(), yes(thread.ended));
            line(out, columns, &region.name, who, &one.item, rank_of(process))?;
        }
    }
    Ok(())
}
