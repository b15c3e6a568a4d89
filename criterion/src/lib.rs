//! Criterion benchmarks that count pipeline slots instead of time: all of a thread's, or those of a node of TopDown (TMA).
//!
//! ```no_run
//! use criterion::Criterion;
//! use topdown_criterion::Slots;
//!
//! let slots = Slots::of("memory_bound").unwrap_or_else(|error| panic!("{error}"));
//! let mut criterion = Criterion::default().with_measurement(slots);
//! criterion.bench_function("sum", |bencher| bencher.iter(|| (0..1000_u64).map(std::hint::black_box).sum::<u64>()));
//! ```
//!
//! The figures are slots for each iteration, in user mode: what one costs, whatever the clock does meanwhile. Criterion's intervals are
//! about how iterations differ; what the counters leave unknown is told at the end, when the measurement is dropped.
//!
//! Benchmarks that are measured in time as ever leave a file of where their slots go by a [`Report`].
#![forbid(unsafe_code)]

mod report;

pub use report::Report;

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use std::cell::Cell;
use topdown::{Options, Result, Sample, TopDown};

/// Slots of the calling thread, in which the benchmarks have to run, too.
pub struct Slots {
    counters: TopDown,
    /// Of all slots if it is TD_NODE_NONE.
    node: u32,
    unit: Unit,
    /// Sums over all samples: slots of the node, and how far they may be from the truth.
    counted: Cell<f64>,
    unknown: Cell<f64>,
}

impl Slots {
    /// All slots.
    ///
    /// # Errors
    /// As [`TopDown::open`]: the text says what is in the way, and what to do about it.
    pub fn all() -> Result<Slots> {
        Slots::with("", &Options::default())
    }

    /// The slots of a node by perf's name, with "tma_" or without: "memory_bound".
    ///
    /// # Errors
    /// As [`TopDown::open`]; -EINVAL: no node is called so; -ENOTSUP: it is no share of slots that is counted here.
    pub fn of(node: &str) -> Result<Slots> {
        Slots::with(node, &Options::default())
    }

    /// The same by other options; all slots if `node` is empty. Nodes of deeper levels are to be named in `options.nodes`.
    ///
    /// # Errors
    /// As [`Slots::of`].
    pub fn with(node: &str, options: &Options) -> Result<Slots> {
        let counters = TopDown::open(options)?;
        let name = node.strip_prefix("tma_").unwrap_or(node);
        let node = match name {
            "" => topdown::TD_NODE_NONE,
            name => counted_node(&counters, name)?,
        };
        let unit = Unit(if name.is_empty() { "slots".into() } else { format!("{name} slots") });
        Ok(Slots { counters, node, unit, counted: Cell::default(), unknown: Cell::default() })
    }

    fn read(&self) -> Sample {
        self.counters.read().unwrap_or_else(|error| panic!("{error}"))
    }
}

fn counted_node(counters: &TopDown, name: &str) -> Result<u32> {
    let nodes = counters.nodes()?;
    let found = nodes.iter().find(|node| node.name().strip_prefix("tma_") == Some(name));
    let counted = found.filter(|node| node.measured == 1 && node.unit == topdown::TD_UNIT_SLOTS);
    counted.map(|node| node.id).ok_or_else(|| {
        let code = if topdown::metric_of_name(name).is_some() { -libc::ENOTSUP } else { -libc::EINVAL };
        topdown::Error::new(code, format!("no slots of '{name}' are counted here"))
            .remedy("`topdown list` has the nodes of each core; deeper ones are named in Options::nodes")
    })
}

impl Measurement for Slots {
    type Intermediate = Sample;
    type Value = f64;

    fn start(&self) -> Sample {
        self.read()
    }

    fn end(&self, before: Sample) -> f64 {
        let after = self.read();
        let nodes = topdown::decode_tree(Some(&before), &after).unwrap_or_else(|error| panic!("{error}"));
        let slots = match nodes.iter().find(|node| node.id == self.node) {
            None => (after.slots - before.slots) as f64,
            Some(node) => {
                let whole = node.whole as f64;
                assert!(
                    node.measured == 1,
                    "{} was not counted in this iteration: others have its counters",
                    self.unit.0
                );
                let unknown = (node.high - node.value).max(node.value - node.low);
                self.unknown.set(self.unknown.get() + whole * unknown);
                whole * node.value
            }
        };
        self.counted.set(self.counted.get() + slots);
        slots
    }

    fn add(&self, first: &f64, second: &f64) -> f64 {
        first + second
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.unit
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.unknown.get() > 0.0 && self.counted.get() > 0.0 {
            let Unit(unit) = &self.unit;
            let part = 100.0 * self.unknown.get() / self.counted.get();
            eprintln!("topdown: all {unit} of these benchmarks are within {part:.2} % of what was counted");
        }
    }
}

/// What is counted, as Criterion prints it.
struct Unit(String);

/// From the largest on: how many slots, how a value begins, how an axis is called.
const SCALES: [(f64, &str, &str); 4] =
    [(1e9, "G ", "Gslots"), (1e6, "M ", "Mslots"), (1e3, "k ", "kslots"), (1.0, "", "slots")];

fn scale_of(value: f64) -> (f64, &'static str, &'static str) {
    SCALES.into_iter().find(|(least, ..)| value >= *least).unwrap_or(SCALES[3])
}

fn divide(values: &mut [f64], by: f64) {
    values.iter_mut().for_each(|value| *value /= by);
}

impl ValueFormatter for Unit {
    fn format_value(&self, value: f64) -> String {
        let (scale, sign, _) = scale_of(value);
        format!("{:.4} {sign}{}", value / scale, self.0)
    }

    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (scale, _, unit) = scale_of(typical);
        divide(values, scale);
        unit
    }

    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (amount, unit) = match *throughput {
            Throughput::Bytes(amount) | Throughput::BytesDecimal(amount) => (amount, "slots/byte"),
            Throughput::Bits(amount) => (amount, "slots/bit"),
            Throughput::Elements(amount) => (amount, "slots/element"),
        };
        divide(values, amount as f64);
        unit
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "slots"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use criterion::Criterion;
    use std::hint::black_box;

    fn simulated() -> Options {
        Options { simulate: true, ..Options::default() }
    }

    #[test]
    fn slots_of_a_node_are_its_share_of_all() {
        let (retiring, whole) =
            (Slots::with("tma_retiring", &simulated()).unwrap(), Slots::with("", &simulated()).unwrap());
        let work = || (0..1_000_000_u64).map(black_box).sum::<u64>();
        // one within the other: the outer has more slots. A simulated handle begins with 0.4.
        let (outer, inner) = (whole.start(), retiring.start());
        black_box(work());
        let (part, all) = (retiring.end(inner), whole.end(outer));
        assert!(part <= 0.4 * all + retiring.unknown.get(), "{part} of {all}");
        let (outer, inner) = (retiring.start(), whole.start());
        black_box(work());
        let (all, part) = (whole.end(inner), retiring.end(outer));
        assert!(part >= 0.4 * all - retiring.unknown.get(), "{part} of {all}");
    }

    #[test]
    fn benchmarks_run() {
        let home = std::env::temp_dir().join(format!("topdown-criterion-{}", std::process::id()));
        let slots = Slots::with("memory_bound", &simulated()).unwrap();
        let brief = std::time::Duration::from_millis(5);
        let mut criterion = Criterion::default().with_measurement(slots).output_directory(&home);
        criterion = criterion.sample_size(10).warm_up_time(brief).measurement_time(brief).nresamples(2000);
        criterion.bench_function("sum", |bencher| bencher.iter(|| (0..1000_u64).map(black_box).sum::<u64>()));
        assert!(home.join("sum/new/estimates.json").exists());
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn what_is_not_counted_is_named() {
        for name in ["memory_bond", "l1_bound"] {
            let error = Slots::with(name, &simulated()).err().unwrap().to_string();
            assert!(error.contains(name) && error.contains("topdown list"), "{error}");
        }
    }

    #[test]
    fn values_have_their_unit() {
        let unit = Unit("memory_bound slots".into());
        assert_eq!(unit.format_value(27_421.875), "27.4219 k memory_bound slots");
        assert_eq!(unit.format_value(0.5), "0.5000 memory_bound slots");
        let mut values = [2e6, 5e5];
        assert_eq!((unit.scale_values(1e6, &mut values), values), ("Mslots", [2.0, 0.5]));
        assert_eq!(
            (unit.scale_throughputs(0.0, &Throughput::Bytes(4), &mut values), values),
            ("slots/byte", [0.5, 0.125])
        );
    }
}
