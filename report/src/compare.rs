//! Two reports, before and after: what has changed, and whether it is more than the bounds of both leave open.
#![forbid(unsafe_code)]

mod benchmarks;
mod condition;

pub use condition::{Condition, ConditionState};

use crate::account::{BoundedShares, Level1, Level2};
use crate::csv::{field, number, yes_or_no};
use crate::model::{Figures, Item, Report, SIMULATED_PATH};
use crate::nodes::ShareInterval;
use crate::terminal::{Layout, shortened, told_apart};
use crate::words::{self, clean, percent, thousands, time};
use crate::{Format, json, merge, read_whole};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use topdown::{LEVEL_1, LEVEL_2, Metric};

/// What a report says of a region, over all threads, or of the whole.
#[derive(Clone, Debug, Default, PartialEq)]
struct RegionRow {
    executions: u64,
    /// None: time alone was measured.
    slots: Option<u64>,
    /// None: not known.
    time_ns: Option<u64>,
    /// Of time alone.
    wall_ns: Option<u64>,
    /// Shares in the order of LEVEL_1 and LEVEL_2, each with its bound.
    shares: [Option<(f64, f64)>; SHARES],
    /// Nodes of the tree that are none of these, or have no such bound.
    nodes: Vec<(&'static str, ShareInterval)>,
}

const SHARES: usize = LEVEL_1.len() + LEVEL_2.len();

fn metrics() -> impl Iterator<Item = &'static Metric> {
    LEVEL_1.iter().chain(&LEVEL_2)
}

/// What a report says: of the whole, whose name is empty, and of regions in its order.
type Rows = Vec<(String, RegionRow)>;

/// The same, and whether it is made up.
type ReadRows = (Rows, bool);

impl RegionRow {
    fn new(Item { counts, inclusive, .. }: &Item) -> RegionRow {
        fn all<const N: usize>(
            shares: Option<&BoundedShares<N>>,
        ) -> impl Iterator<Item = Option<(f64, f64)>> {
            (0..N).map(move |k| shares.map(|shares| (shares.of[k], shares.error)))
        }
        let Figures { level_1, level_2, tree, .. } = inclusive;
        let (one, two): (Option<&Level1>, Option<&Level2>) = (level_1.as_ref(), level_2.as_ref());
        let mut shares = [None; SHARES];
        shares.iter_mut().zip(all(one).chain(all(two))).for_each(|(to, from)| *to = from);
        let nodes = tree.0.iter().map(|node| (node.kind.metric.field(), node.share));
        RegionRow {
            executions: counts.executions,
            slots: inclusive.slots(),
            time_ns: inclusive.time_ns(),
            wall_ns: inclusive.wall_ns(),
            shares,
            nodes: Vec::new(),
        }
        .with_nodes(nodes)
    }

    /// With those of these nodes whose shares are not there yet.
    fn with_nodes(mut self, nodes: impl Iterator<Item = (&'static str, ShareInterval)>) -> RegionRow {
        let known: Vec<&str> = metrics()
            .zip(&self.shares)
            .filter(|(_, share)| share.is_some())
            .map(|(metric, _)| metric.field())
            .collect();
        self.nodes.extend(nodes.filter(|(name, _)| !known.contains(name)));
        self
    }

    /// All shares: of both levels as far to either side as their bound.
    fn intervals(&self) -> Vec<(&'static str, ShareInterval)> {
        let of_levels = metrics().zip(self.shares).filter_map(|(metric, share)| {
            let (value, error) = share?;
            Some((metric.field(), ShareInterval { value, low: value - error, high: value + error }))
        });
        of_levels.chain(self.nodes.iter().copied()).collect()
    }

    /// With a function that has the value of a CSV column of this name, or of the JSON name that it stands for, and one that has such a node.
    /// `is_time`: it is of time alone.
    fn of_fields(
        is_time: bool,
        number: &dyn Fn(&str) -> Option<f64>,
        nodes: impl Iterator<Item = (&'static str, ShareInterval)>,
    ) -> Option<RegionRow> {
        let whole = |name| number(name).map(|value| value as u64);
        let errors = [number("error_1"), number("error_2")];
        let mut shares = [None; SHARES];
        for (k, (share, metric)) in shares.iter_mut().zip(metrics()).enumerate() {
            *share = number(metric.field()).zip(errors[usize::from(k >= LEVEL_1.len())]);
        }
        let (slots, time_ns) = (whole("slots"), whole("time_ns"));
        if !is_time && (slots.is_none() || time_ns.is_none()) {
            return None;
        }
        let row = RegionRow {
            executions: whole("executions")?,
            slots,
            time_ns,
            wall_ns: whole("wall_ns"),
            shares,
            nodes: Vec::new(),
        };
        Some(row.with_nodes(nodes))
    }
}

/// The node of perf's name, as this version calls it.
fn node_of_name(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("tma_")?;
    topdown::metric_of_name(name).map(|metric| metric.field())
}

fn of_json(text: &str) -> Option<ReadRows> {
    let report: Value = serde_json::from_str(text).ok()?;
    let row = |item: &Value| {
        let figures = &item["inclusive"];
        let number = |name: &str| match name {
            "executions" => item[name].as_f64(),
            "slots" | "time_ns" | "wall_ns" => figures[name].as_f64(),
            "error_1" => figures["level_1"]["error"].as_f64(),
            "error_2" => figures["level_2"]["error"].as_f64(),
            share => figures["level_1"][share].as_f64().or_else(|| figures["level_2"][share].as_f64()),
        };
        let node = |(name, share): (&String, &Value)| {
            let end = |name: &str| share[name].as_f64();
            let share = ShareInterval { value: end("value")?, low: end("low")?, high: end("high")? };
            Some((node_of_name(name)?, share))
        };
        let nodes = figures["tree"].as_object().into_iter().flatten();
        RegionRow::of_fields(figures.get("wall_ns").is_some(), &number, nodes.filter_map(node))
    };
    let mut rows = vec![(String::new(), row(&report["whole"])?)];
    for region in report["regions"].as_array()? {
        rows.push((clean(region["name"].as_str()?), row(region)?));
    }
    let mut machines = report["machines"].as_array().into_iter().flatten();
    let is_simulated = machines.any(|machine| machine["path"] == SIMULATED_PATH);
    (report["schema"] == crate::SCHEMA).then_some((rows, is_simulated))
}

fn of_csv(text: &str) -> Option<ReadRows> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().ok()?.clone();
    let place: HashMap<&str, usize> = header.iter().enumerate().map(|(place, name)| (name, place)).collect();
    let (mut rows, mut is_simulated) = (Vec::new(), false);
    let is_finite = Cell::new(true);
    for record in reader.records() {
        let record = record.ok()?;
        let field = |name: &str| place.get(name).and_then(|place| record.get(*place));
        is_simulated |= field("path") == Some(SIMULATED_PATH);
        if !field("pid")?.is_empty() {
            continue; // of one process or thread
        }
        if field("rank").is_some_and(|rank| !rank.is_empty()) {
            continue; // of one rank
        }
        let number = |name: &str| {
            let number = field(name)?.parse::<f64>().ok()?;
            is_finite.set(is_finite.get() && number.is_finite());
            Some(number)
        };
        let region = field("region")?;
        let node = |name: &str| {
            let [value, low, high] = ["", "_low", "_high"].map(|end| number(&format!("{name}{end}")));
            Some((node_of_name(name)?, ShareInterval { value: value?, low: low?, high: high? }))
        };
        let is_time = field("time_alone") == Some("yes");
        let row = RegionRow::of_fields(is_time, &number, header.iter().filter_map(node))?;
        rows.push((clean(region.strip_prefix('\'').unwrap_or(region)), row));
    }
    (!rows.is_empty() && is_finite.get()).then_some((rows, is_simulated))
}

/// Reads a report in CSV or JSON, table files' figures, or results of benchmarks.
fn read(path: &Path) -> io::Result<ReadRows> {
    let bytes = read_whole(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let of_report = |report: &Report| -> ReadRows {
        let regions = report.regions.iter().map(|region| (clean(&region.name), RegionRow::new(&region.item)));
        let rows = [(String::new(), RegionRow::new(&report.whole))].into_iter().chain(regions).collect();
        (rows, words::simulated(report))
    };
    let rows = match bytes.first() {
        Some(b'{') => of_json(&text).or_else(|| benchmarks::of_json(&text)),
        Some(b'r') => of_csv(&text),
        _ => return merge(&[path.to_path_buf()], None).map(|report| of_report(&report)),
    };
    rows.ok_or_else(|| {
        io::Error::other(format!(
            "{}: no report of this version in CSV or JSON, nor a table file, nor a recording (.json of topdown record), nor results of Google Benchmark in JSON",
            path.display()
        ))
    })
}

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// None: not known there.
    pub before: Option<f64>,
    /// The same.
    pub after: Option<f64>,
    /// None: not known of both.
    pub difference: Option<f64>,
    /// Of the difference: the bounds of both.
    pub bound: Option<f64>,
    /// Whether the difference is more than its bound.
    pub significant: Option<bool>,
    /// Between which it truly is.
    #[serde(skip)]
    pub ends: Option<[f64; 2]>,
}

impl Change {
    /// Of counts, which have no bound.
    fn of_counts(before: Option<f64>, after: Option<f64>) -> Change {
        let difference = before.zip(after).map(|(before, after)| after - before);
        Change { before, after, difference, bound: None, significant: None, ends: None }
    }

    /// Of intervals: the difference is significant if they do not overlap.
    fn of_intervals([before, after]: [Option<ShareInterval>; 2]) -> Change {
        let bound = before.zip(after).map(|(before, after)| match after.value >= before.value {
            true => (before.high - before.value) + (after.value - after.low),
            false => (before.value - before.low) + (after.high - after.value),
        });
        let value = |share: Option<ShareInterval>| share.map(|share| share.value);
        let change = Change::of_counts(value(before), value(after));
        let significant = change.difference.zip(bound).map(|(difference, bound)| difference.abs() > bound);
        let ends =
            before.zip(after).map(|(before, after)| [after.low - before.high, after.high - before.low]);
        Change { bound, significant, ends, ..change }
    }
}

/// What has changed of a region.
#[derive(Clone, Debug, Serialize)]
pub struct RegionChange {
    /// Empty: the whole.
    pub region: String,
    /// Executions, slots, and nanoseconds (of time alone elapsed ones, too), which have no bound; then the shares of both levels, and the other nodes.
    #[serde(serialize_with = "by_name")]
    pub figures: Vec<(&'static str, Change)>,
}

impl RegionChange {
    /// Whether both files have it.
    fn in_both(&self) -> bool {
        self.figures.iter().any(|(name, change)| *name == "executions" && change.difference.is_some())
    }
}

/// Writes the change of each figure under the figure's name.
///
/// # Errors
/// The serializer's.
pub fn by_name<N: Serialize, C: Serialize, S: Serializer>(
    figures: &[(N, C)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|(name, change)| (name, change)))
}

/// What either side has under each key, in the order in which keys come first; of several values of one key the first.
pub fn pairs<K: Clone + Ord, V>(sides: [impl IntoIterator<Item = (K, V)>; 2]) -> Vec<(K, [Option<V>; 2])> {
    let (mut pairs, mut places) = (Vec::new(), BTreeMap::new());
    for (side, values) in sides.into_iter().enumerate() {
        for (key, value) in values {
            let place = *places.entry(key.clone()).or_insert(pairs.len());
            if place == pairs.len() {
                pairs.push((key, [None, None]));
            }
            pairs[place].1[side].get_or_insert(value);
        }
    }
    pairs
}

/// A line on shares of which it is not known whether they have changed, if there are any; what of them overlaps.
pub fn unsure(shares: usize, what: &str) -> String {
    if shares == 0 {
        return String::new();
    }
    format!("  {} not known to have changed: the {what} overlap\n", words::count(shares as u64, "share"))
}

/// The name of the last column of a comparison of figures that are made up, and what is in it.
#[must_use]
pub fn path_column(path: Option<&str>) -> (&'static str, String) {
    path.map_or(("", String::new()), |path| (",path", format!(",{path}")))
}

/// In a text, the line below the first that says the same.
#[must_use]
pub fn simulated_line(path: Option<&str>, layout: &Layout) -> String {
    path.map_or(String::new(), |_| layout.warning(words::SIMULATED) + "\n")
}

/// A comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `SCHEMA`.
    pub schema: u32,
    /// Names of the files.
    pub files: [String; 2],
    /// "simulated": figures of either are made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'static str>,
    /// The whole, then the regions of either, those with the most slots first.
    pub regions: Vec<RegionChange>,
}

const COUNTS: [&str; 4] = ["executions", "slots", "time_ns", "wall_ns"];

/// A region that some processes have slots of, and others time alone, is two rows: each has its name.
fn with_kinds(mut rows: Rows) -> Rows {
    let with_slots = rows.iter().filter(|(_, row)| row.slots.is_some()).map(|(name, _)| name.clone());
    let with_slots: BTreeSet<String> = with_slots.collect();
    for (name, row) in &mut rows {
        if row.slots.is_none() && with_slots.contains(name) {
            *name += " (time alone)";
        }
    }
    rows
}

/// Compares what two files say.
///
/// # Errors
/// One of them cannot be read, or is no report; the text names it.
pub fn compare(before: &Path, after: &Path) -> io::Result<Comparison> {
    let ((rows_before, made_up_before), (rows_after, made_up_after)) = (read(before)?, read(after)?);
    let path = (made_up_before || made_up_after).then_some(SIMULATED_PATH);
    let mut rows = pairs([rows_before, rows_after].map(with_kinds));
    let size =
        |both: &[Option<RegionRow>; 2]| both.iter().flatten().map(|row| (row.slots, row.wall_ns)).max();
    rows.sort_by_cached_key(|(name, both)| (!name.is_empty(), Reverse(size(both)), name.clone()));
    let has_times = rows.iter().any(|(_, both)| both.iter().flatten().any(|row| row.wall_ns.is_some()));
    let compared = |(region, [before, after]): (String, [Option<RegionRow>; 2])| {
        let counts = |row: &RegionRow| [Some(row.executions), row.slots, row.time_ns, row.wall_ns];
        let count = |row: &Option<RegionRow>, k: usize| counts(row.as_ref()?)[k].map(|count| count as f64);
        let counted = COUNTS
            .iter()
            .enumerate()
            .filter(|(_, name)| has_times || **name != "wall_ns")
            .map(|(k, name)| (*name, Change::of_counts(count(&before, k), count(&after, k))));
        let shares = |row: &Option<RegionRow>| row.as_ref().map_or(Vec::new(), RegionRow::intervals);
        let shares = pairs([shares(&before), shares(&after)]);
        let of_name = |name: &'static str| {
            let both =
                shares.iter().find(|(other, _)| *other == name).map_or([None, None], |(_, both)| *both);
            (name, Change::of_intervals(both))
        };
        let is_other = |name: &&'static str| metrics().all(|metric| metric.field() != *name);
        let others = shares.iter().map(|(name, _)| *name).filter(is_other);
        let shares: Vec<_> = metrics().map(|metric| metric.field()).chain(others).map(of_name).collect();
        RegionChange { region, figures: counted.chain(shares).collect() }
    };
    Ok(Comparison {
        schema: crate::SCHEMA,
        files: [before, after].map(|path| clean(&path.display().to_string())),
        path,
        regions: rows.into_iter().map(compared).collect(),
    })
}

impl Comparison {
    /// As a text, CSV or JSON; None: there is no such format of it.
    pub fn render(&self, format: Format) -> Option<String> {
        self.render_for(format, &Layout::FILE)
    }

    /// The same, where a text is laid out so.
    pub fn render_for(&self, format: Format, layout: &Layout) -> Option<String> {
        match format {
            Format::Text => Some(self.text(layout)),
            Format::Csv => Some(self.csv()),
            Format::Json => Some(json(self)),
            Format::Html | Format::Trace | Format::Parquet => None,
        }
    }

    fn csv(&self) -> String {
        let (name_of_path, path) = path_column(self.path);
        let mut out = format!("region,figure,before,after,difference,bound,significant{name_of_path}\n");
        for RegionChange { region, figures } in &self.regions {
            for (name, change) in figures {
                let Change { before, after, difference, bound, significant, .. } = *change;
                let numbers = [before, after, difference, bound].map(number).join(",");
                out += &format!("{},{name},{numbers},{}{path}\n", field(region), yes_or_no(significant));
            }
        }
        out
    }

    fn text(&self, layout: &Layout) -> String {
        let [before, after] = &self.files;
        let mut out = layout.heading(&layout.sentence(&format!("topdown: from {before} to {after}"))) + "\n";
        out += &simulated_line(self.path, layout);
        let names = told_apart(self.regions.iter().map(|one| &*one.region), 60);
        for (row, name) in self.regions.iter().zip(names) {
            let (RegionChange { region, figures }, in_both) = (row, row.in_both());
            let name = if region.is_empty() { "whole program".into() } else { name };
            let (counts, shares) =
                figures.split_at(figures.iter().take_while(|(name, _)| COUNTS.contains(name)).count());

            let only = match (in_both, counts[0].1.before) {
                (true, _) => "",
                (false, Some(_)) => ": only before",
                (false, None) => ": only after",
            };
            out += &format!("\n{}\n", layout.heading(&(name + only)));
            for (name, change) in counts.iter().filter(|(_, change)| in_both && change.before != Some(0.0)) {
                let (Some(before), Some(after)) = (change.before, change.after) else { continue };
                let (word, show): (_, fn(f64) -> String) = match *name {
                    "slots" => ("slots", words::slots),
                    "time_ns" => ("time", time),
                    "wall_ns" => ("elapsed", time),
                    _ => ("executions", |n| thousands(n as u64)),
                };
                let more = 100.0 * (after - before) / before;
                out += &format!("  {word:20}{:>12}{:>12}{more:>+12.1} %\n", show(before), show(after));
            }
            let mut unsure = 0;
            for (name, change) in shares {
                let (Some(difference), Some(bound)) = (change.difference, change.bound) else { continue };
                if change.significant == Some(false) {
                    unsure += 1;
                    continue;
                }
                let [before, after] =
                    [change.before, change.after].map(|share| share.map_or("-".into(), percent));
                let name = name.replace('_', " ");
                let name = if layout.is_terminal {
                    shortened(&name, layout.columns.saturating_sub(58).max(20))
                } else {
                    name
                };
                out += &format!(
                    "  {name:20}{before:>12}{after:>12}{:>+12.1} points, within {:.1}\n",
                    100.0 * difference,
                    100.0 * bound
                );
            }
            out += &self::unsure(unsure, "bounds");
            if in_both && shares.iter().all(|(_, change)| change.difference.is_none()) {
                out += match (counts[1].1.before, counts[1].1.after) {
                    (None, None) => "  time alone: there are no shares\n",
                    (None, Some(_)) => "  time alone before: slots and shares cannot be compared\n",
                    (Some(_), None) => "  time alone after: slots and shares cannot be compared\n",
                    (Some(_), Some(_)) => "  shares are not known of both\n",
                };
            }
        }
        out
    }
}
