//! Rows of figures: for intervals, cores, threads, runs. As a text, as separated values, or as JSON lines, each written at once.
#![forbid(unsafe_code)]

use super::figures::StatFigures;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;
use topdown::Node;
use topdown_report::model::SIMULATED_PATH;
use topdown_report::terminal::{Layout, Stream};
use topdown_report::{Output, SIMULATED, clean, separated};

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    Text,
    /// With this between values, and their names in the first line.
    Separated(String),
    JsonLines,
    /// A JSON document: an array of them.
    JsonArray,
}

/// Which columns there are besides the shares.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Figures are made up: rows say so, each for itself, whoever takes some of them.
    pub simulated: bool,
    /// Seconds since the start, for intervals.
    pub time: bool,
    /// What rows are of, if not of all: "core", "thread"...
    pub of: Option<&'static str>,
    /// Name of the PMU, where there is more than one.
    pub pmu: bool,
    /// Seconds that a run took.
    pub seconds: bool,
    /// Slots in a text, too.
    pub slots: bool,
    /// How many CPUs were used.
    pub cpus: bool,
    /// The clock.
    pub clock: bool,
    /// The metrics, in order: id and perf's name.
    pub nodes: Vec<(u32, &'static str)>,
    /// Deepest level of these.
    pub level: u32,
}

impl Columns {
    /// Takes up the metrics of a group.
    pub fn add(&mut self, nodes: &[Node]) {
        for node in nodes {
            if !self.nodes.iter().any(|(id, _)| *id == node.id) {
                self.nodes.push((node.id, node.name()));
            }
            self.level = self.level.max(node.level);
        }
    }
}

/// A row.
#[derive(Clone, Debug, Default)]
pub struct StatRow {
    pub time: f64,
    pub of: String,
    pub pmu: String,
    /// By what it was counted.
    pub core: String,
    pub slots: u64,
    /// In the order of the columns; None: not counted.
    pub shares: Vec<Option<f64>>,
    /// Bounds on the error of the shares of each level.
    pub error: [Option<f64>; 3],
    pub running: Option<f64>,
    pub ipc: Option<f64>,
    pub clock_ghz: Option<f64>,
    pub cpus: Option<f64>,
    pub seconds: f64,
}

impl StatRow {
    /// The figures of such a time, in which threads ran, or CPUs were there.
    pub fn new(columns: &Columns, figures: &StatFigures, wall_s: f64) -> StatRow {
        let StatFigures { sum, ipc, .. } = figures;
        let nodes = figures.nodes();
        let find = |id: u32| nodes.iter().find(|node| node.id == id && node.measured != 0);
        let error = |level: u32| {
            let far = nodes.iter().filter(|node| node.level == level && node.measured != 0);
            far.map(|node| (node.value - node.low).max(node.high - node.value)).reduce(f64::max)
        };
        let (enabled, ran) = (sum.time_enabled_ns as f64, sum.time_running_ns as f64);
        StatRow {
            slots: sum.slots,
            shares: columns.nodes.iter().map(|(id, _)| find(*id).map(|node| node.value)).collect(),
            error: [error(1), error(2), error(3)],
            running: (enabled > 0.0).then(|| (ran / enabled).min(1.0)),
            ipc: ipc.and_then(|ipc| ipc.ipc()),
            clock_ghz: ipc.filter(|_| ran > 0.0).map(|ipc| ipc.cycles as f64 / ran),
            cpus: (wall_s > 0.0).then(|| enabled / 1e9 / wall_s),
            seconds: wall_s,
            ..StatRow::default()
        }
    }

    /// The mean of each figure, or its spread: the standard deviation.
    pub fn over(rows: &[StatRow], of: &str, figure: &dyn Fn(&[f64]) -> Option<f64>) -> StatRow {
        let number = |get: &dyn Fn(&StatRow) -> Option<f64>| {
            figure(&rows.iter().map(get).collect::<Option<Vec<f64>>>()?)
        };
        let first = rows.first().cloned().unwrap_or_default();
        StatRow {
            of: of.into(),
            slots: number(&|row| Some(row.slots as f64)).unwrap_or(0.0) as u64,
            shares: (0..first.shares.len()).map(|k| number(&|row| row.shares[k])).collect(),
            error: [0, 1, 2].map(|k| number(&|row| row.error[k])),
            running: number(&|row| row.running),
            ipc: number(&|row| row.ipc),
            clock_ghz: number(&|row| row.clock_ghz),
            cpus: number(&|row| row.cpus),
            seconds: number(&|row| Some(row.seconds)).unwrap_or(0.0),
            ..first
        }
    }

    fn cells(&self, columns: &Columns) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        let mut add = |there: bool, title, name, value| {
            if there {
                cells.push(Cell { title, name, value });
            }
        };
        add(columns.time, "time", "time", CellValue::Number(Some(self.time), 6));
        add(
            columns.of.is_some(),
            columns.of.unwrap_or(""),
            columns.of.unwrap_or(""),
            CellValue::Words(&self.of),
        );
        add(columns.pmu, "pmu", "pmu", CellValue::Words(&self.pmu));
        add(true, if columns.slots { "slots" } else { "" }, "slots", CellValue::Count(self.slots));
        for ((_, name), share) in columns.nodes.iter().zip(&self.shares) {
            add(true, name, name, CellValue::Share(*share));
        }
        let bounds = [("within", "error_1"), ("within (2)", "error_2"), ("within (3)", "error_3")];
        for (k, (title, name)) in bounds.into_iter().enumerate() {
            add(k < columns.level as usize, title, name, CellValue::Points(self.error[k]));
        }
        add(true, "running", "running", CellValue::Share(self.running));
        add(true, "IPC", "ipc", CellValue::Number(self.ipc, 2));
        add(columns.clock, "GHz", "ghz", CellValue::Number(self.clock_ghz, 2));
        add(columns.cpus, "CPUs", "cpus", CellValue::Number(self.cpus, 2));
        add(columns.seconds, "seconds", "seconds", CellValue::Number(Some(self.seconds), 6));
        add(columns.simulated, "path", "path", CellValue::Words(SIMULATED_PATH));
        cells
    }
}

struct Cell<'r> {
    /// In a text; empty: not shown there.
    title: &'static str,
    name: &'static str,
    value: CellValue<'r>,
}

enum CellValue<'r> {
    Words(&'r str),
    Count(u64),
    /// With so many digits behind the point in a text.
    Number(Option<f64>, usize),
    /// Shown in per cent.
    Share(Option<f64>),
    /// A bound on the error of shares.
    Points(Option<f64>),
}

impl CellValue<'_> {
    fn text(&self) -> String {
        let or_none = |number: Option<String>| number.unwrap_or_else(|| "-".into());
        match self {
            CellValue::Words(words) => clean(words),
            CellValue::Count(count) => count.to_string(),
            CellValue::Number(number, digits) => or_none(number.map(|number| format!("{number:.digits$}"))),
            CellValue::Share(share) => or_none(share.map(|share| format!("{:.1} %", 100.0 * share))),
            CellValue::Points(bound) => or_none(bound.map(|bound| format!("{:.1}", round_up(100.0 * bound)))),
        }
    }

    fn value(&self) -> Value {
        match self {
            CellValue::Words(words) => clean(words).into(),
            CellValue::Count(count) => (*count).into(),
            CellValue::Number(number, _) | CellValue::Share(number) | CellValue::Points(number) => {
                (*number).into()
            } // not finite: null
        }
    }
}

/// To one digit; a bound is not made smaller.
fn round_up(points: f64) -> f64 {
    (10.0 * points).ceil() / 10.0
}

/// Where rows go.
pub struct StatTable {
    style: Style,
    columns: Columns,
    out: Box<dyn Write>,
    layout: Layout,
    begun: bool,
    has_rows: bool,
}

/// A row as JSON.
fn object(cells: &[Cell]) -> String {
    let all: Map<String, Value> =
        cells.iter().map(|cell| (cell.name.to_string(), cell.value.value())).collect();
    Value::Object(all).to_string()
}

impl Drop for StatTable {
    fn drop(&mut self) {
        if self.style == Style::JsonArray {
            let end = if self.begun { "\n]\n" } else { "[]\n" };
            let _ = self.out.write_all(end.as_bytes()).and_then(|()| self.out.flush());
        }
    }
}

impl StatTable {
    /// Into this file, standard output (`-`), or without one standard error.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub fn new(style: Style, columns: Columns, output: Option<&Path>) -> io::Result<StatTable> {
        let out: Box<dyn Write> = match output {
            None => Box::new(io::stderr()),
            Some(path) if path == Path::new("-") => Box::new(io::stdout()),
            Some(path) => Box::new(Output::row_by_row(path)?),
        };
        let layout = Layout::of_output(output, Stream::Error);
        Ok(StatTable { style, columns, out, layout, begun: false, has_rows: false })
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&mut self, row: &StatRow) -> io::Result<()> {
        self.put(row, true)
    }

    /// Writes the names of the columns alone; in a text, why there are no rows.
    ///
    /// # Errors
    /// The operating system's.
    pub fn nothing(&mut self, why: &str) -> io::Result<()> {
        if self.style != Style::Text {
            return self.put(&StatRow::default(), false);
        }
        let line = format!("nothing is measured: {}", clean(why));
        writeln!(self.out, "{}", self.layout.sentence(&line))?;
        self.out.flush()
    }

    fn put(&mut self, row: &StatRow, values: bool) -> io::Result<()> {
        let cells = row.cells(&self.columns);
        let mut lines = String::new();
        match &self.style {
            Style::JsonLines if !values => {}
            Style::JsonLines => lines += &(object(&cells) + "\n"),
            Style::JsonArray => {
                lines += if !self.begun { "[" } else { "" };
                if values {
                    lines += if self.has_rows { ",\n" } else { "\n" };
                    lines += &object(&cells);
                }
            }
            Style::Separated(separator) => {
                let separated = |value: &str| separated(value, &[separator]);
                let value = |cell: &Cell| match cell.value.value() {
                    Value::Null => String::new(),
                    Value::String(words) => separated(&topdown_report::cell(&words)),
                    number => separated(&number.to_string()),
                };
                if !self.begun {
                    let names: Vec<_> = cells.iter().map(|cell| separated(cell.name)).collect();
                    lines += &(names.join(separator) + "\n");
                }
                if values {
                    lines += &(cells.iter().map(value).collect::<Vec<_>>().join(separator) + "\n");
                }
            }
            Style::Text => {
                let shown = || cells.iter().filter(|cell| !cell.title.is_empty());
                let width = |cell: &Cell| match cell.value {
                    CellValue::Words(_) => 16,
                    CellValue::Count(_) => 14,
                    CellValue::Number(_, 6) => 12,
                    _ => cell.title.len().max(7),
                };
                let pad = |cell: &Cell, text: &str| {
                    let width = width(cell);
                    if matches!(cell.value, CellValue::Words(_)) {
                        format!("{text:width$}")
                    } else {
                        format!("{text:>width$}")
                    }
                };
                let line = |text: &dyn Fn(&Cell) -> String| {
                    let cells: Vec<_> = shown().map(|cell| pad(cell, &text(cell))).collect();
                    cells.join("  ").trim_end().to_string()
                };
                if !self.begun && self.columns.simulated {
                    lines += &(self.layout.warning(SIMULATED) + "\n");
                }
                if !self.begun {
                    lines += &(self.layout.heading(&line(&|cell| cell.title.into())) + "\n");
                }
                if values {
                    lines += &(line(&|cell| cell.value.text()) + "\n");
                }
            }
        }
        self.begun = true;
        self.has_rows |= values;
        self.out.write_all(lines.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
#[path = "../../../report/tests/schemas/mod.rs"]
mod schemas;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::rows_per::RowsPer;

    #[test]
    fn a_bound_is_never_shown_smaller() {
        let shown = |bound| CellValue::Points(Some(bound)).text();
        assert_eq!([0.0, 0.00001, 0.0123, 1.0].map(shown), ["0.0", "0.1", "1.3", "100.0"]);
        assert_eq!(CellValue::Points(None).text(), "-");
    }

    #[test]
    fn rows_of_a_json_file_are_one_document() {
        let path = std::env::temp_dir().join(format!("topdown-array-{}", std::process::id()));
        for rows in 0..3 {
            let mut table = StatTable::new(Style::JsonArray, Columns::default(), Some(&path)).unwrap();
            (0..rows).for_each(|_| table.write(&StatRow::default()).unwrap());
            drop(table);
            let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            assert_eq!(document.as_array().map(Vec::len), Some(rows));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn rows_obey_their_schema() {
        use RowsPer::{Cgroup, Core, Process, Socket, Thread};
        let directory = std::env::temp_dir().join(format!("topdown-schema-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let write = |of: &'static str| {
            let nodes = topdown::LEVEL_1.iter().map(|metric| (metric.id, metric.name.to_str().unwrap()));
            let columns = Columns {
                simulated: true,
                time: true,
                of: Some(of),
                pmu: true,
                seconds: true,
                slots: true,
                cpus: true,
                clock: true,
                nodes: nodes.collect(),
                level: 3,
            };
            let counted = StatRow { shares: vec![Some(0.25); 4], running: Some(1.0), ..StatRow::default() };
            let rows = [counted, StatRow { shares: vec![None; 4], ..StatRow::default() }];
            let files = [(Style::JsonArray, "json"), (Style::JsonLines, "jsonl")];
            files.map(|(style, ending)| {
                let file = directory.join(format!("{of}.{ending}"));
                let mut table = StatTable::new(style, columns.clone(), Some(&file)).unwrap();
                rows.iter().for_each(|row| table.write(row).unwrap());
                file
            })
        };
        let kinds = [Core, Socket, Thread, Process, Cgroup].map(RowsPer::name);
        let files: Vec<_> = kinds.into_iter().chain(["run"]).flat_map(write).collect();
        schemas::have_all("row.schema.json", &files);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn names_with_the_separator_are_quoted_as_values_are() {
        let path = std::env::temp_dir().join(format!("topdown-rows-{}", std::process::id()));
        let mut table =
            StatTable::new(Style::Separated("pc".into()), Columns::default(), Some(&path)).unwrap();
        table.write(&StatRow::default()).unwrap();
        let rows = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(rows, "slotspcrunningpc\"ipc\"\n0pcpc\n");
    }
}
