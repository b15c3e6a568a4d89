//! A file of where the slots of benchmarks go, which are measured in time as ever.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::hint::black_box;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use topdown::{Error, LEVEL_1, LEVEL_2, Metric, Options, Result, Sample, Sum, TD_SAMPLE_SIMULATED, TopDown};

/// Writes where the slots of benchmarks go, and how long they take, as Google Benchmark writes its results (JSON):
/// `topdown compare OLD.json NEW.json --fail-if 'memory_bound>2'` reads two such files.
///
/// ```no_run
/// use criterion::Criterion;
/// use topdown_criterion::Report;
///
/// let report = Report::to("target/topdown.json").unwrap_or_else(|error| panic!("{error}"));
/// let mut criterion = Criterion::default();
/// criterion.bench_function("sum", |bencher| {
///     bencher.iter_custom(|iterations| report.run("sum", iterations, || (0..1000_u64).sum::<u64>()))
/// });
/// report.finish().unwrap();
/// ```
///
/// All iterations count, those of Criterion's warm-up too: figures are of one of them. Counted is the thread that opened the report, in user
/// mode; another cannot have it:
///
/// ```compile_fail,E0277
/// # use topdown_criterion::Report;
/// let report = Report::to("target/topdown.json").unwrap_or_else(|error| panic!("{error}"));
/// std::thread::spawn(move || report.run("sum", 1, || 0));
/// ```
///
/// The file is written by [`Report::finish`], or when the report is dropped, and replaces one that is there; its directories are made. If
/// nothing was run, as with `--list`, or a benchmark has panicked, nothing is written.
pub struct Report {
    counters: TopDown,
    path: PathBuf,
    /// In the order in which they first ran.
    benchmarks: RefCell<Vec<Benchmark>>,
}

/// All runs under a name.
#[derive(Default)]
struct Benchmark {
    name: String,
    iterations: u64,
    time: Duration,
    slots: Sum,
    /// The first reason for which a run is not in `slots`.
    error: Option<Error>,
}

impl Report {
    /// Opens counters of the calling thread, for a report in this file.
    ///
    /// # Errors
    /// As [`TopDown::open`]: the text says what is in the way, and what to do about it.
    pub fn to(path: impl Into<PathBuf>) -> Result<Report> {
        Report::with(path, &Options::default())
    }

    /// The same by other options.
    ///
    /// # Errors
    /// As [`Report::to`].
    pub fn with(path: impl Into<PathBuf>, options: &Options) -> Result<Report> {
        Ok(Report { counters: TopDown::open(options)?, path: path.into(), benchmarks: RefCell::default() })
    }

    /// Runs a benchmark's routine so many times, adds what was counted meanwhile to what else ran under the name, and gives the time that
    /// Criterion's `iter_custom` wants. (The two readings of the clock are counted, too.) What cannot be counted leaves the time alone in
    /// the file, and standard error tells why at the end.
    pub fn run<T>(&self, name: &str, iterations: u64, mut routine: impl FnMut() -> T) -> Duration {
        let before = self.counters.read();
        let begin = Instant::now();
        for _ in 0..iterations {
            black_box(routine());
        }
        let time = begin.elapsed();
        let after = self.counters.read();
        let mut all = self.benchmarks.borrow_mut();
        let place = all.iter().position(|one| one.name == name).unwrap_or_else(|| {
            all.push(Benchmark { name: name.into(), ..Benchmark::default() });
            all.len() - 1
        });
        all[place].add(iterations, time, before, after);
        time
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written: the text has its path.
    pub fn finish(self) -> io::Result<()> {
        self.write()
    }

    /// (Once: there are no benchmarks left.)
    fn write(&self) -> io::Result<()> {
        let benchmarks = self.benchmarks.take();
        if benchmarks.is_empty() {
            return Ok(());
        }
        let (benchmarks, errors): (Vec<Value>, Vec<Option<Error>>) =
            benchmarks.into_iter().map(Benchmark::result).unzip();
        if let Some(error) = errors.iter().flatten().next() {
            let count = errors.iter().flatten().count();
            eprintln!("topdown: {count} of {} benchmarks have no shares: {error}", errors.len());
        }
        let executable = std::env::args_os().next().unwrap_or_default();
        let context = json!({ "executable": executable.to_string_lossy() });
        let text = format!("{:#}\n", json!({ "context": context, "benchmarks": benchmarks }));
        self.replace(&text)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display())))
    }

    /// Whoever reads the file meanwhile has the old one or the new one.
    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut part = OsString::from(&self.path);
        part.push(format!(".{}", std::process::id()));
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &self.path));
        written.inspect_err(|_| drop(fs::remove_file(&part)))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Err(error) = self.write() {
            eprintln!("topdown: {error}");
        }
    }
}

impl Benchmark {
    fn add(&mut self, iterations: u64, time: Duration, before: Result<Sample>, after: Result<Sample>) {
        self.iterations += iterations;
        self.time += time;
        let added = before.and_then(|before| self.slots.add(&before, &after?));
        self.error = self.error.take().or(added.err());
    }

    /// As Google Benchmark writes it with the counters of topdown_benchmark.h; and why it has none of these.
    fn result(self) -> (Value, Option<Error>) {
        let each = |sum: f64| sum / self.iterations.max(1) as f64;
        let mut result = json!({
            "name": self.name, "run_name": self.name, "run_type": "iteration", "iterations": self.iterations,
            "real_time": each(self.time.as_nanos() as f64), "time_unit": "ns",
        });
        let one = match self.error.map_or_else(|| self.slots.l1(), Err) {
            Ok(one) => one,
            Err(error) => return (result, Some(error)),
        };
        result["slots"] = each(self.slots.slots as f64).into();
        if one.flags & TD_SAMPLE_SIMULATED != 0 {
            result["simulated"] = 1.into();
        }
        let mut add = |metrics: &[Metric], shares: &[f64], name: &str, error: f64| {
            for (metric, share) in metrics.iter().zip(shares) {
                result[metric.field()] = (*share).into();
            }
            result[name] = error.into();
        };
        add(
            &LEVEL_1,
            &[one.retiring, one.bad_speculation, one.frontend_bound, one.backend_bound],
            "error",
            one.error,
        );
        // (not every core has level 2)
        if let Ok(two) = self.slots.l2() {
            let shares = [
                two.heavy_operations,
                two.light_operations,
                two.branch_mispredicts,
                two.machine_clears,
                two.fetch_latency,
                two.fetch_bandwidth,
                two.memory_bound,
                two.core_bound,
            ];
            add(&LEVEL_2, &shares, "error_level_2", two.error);
        }
        (result, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use criterion::Criterion;
    use std::path::Path;
    use topdown::Mix;
    use topdown_report::{Comparison, ConditionState, compare};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            Scratch(std::env::temp_dir().join(format!("topdown-criterion-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn simulated(path: &Path, level: u32) -> Report {
        Report::with(path, &Options { simulate: true, level, ..Options::default() }).unwrap()
    }

    fn work() -> u64 {
        (0..100_000_u64).map(black_box).sum()
    }

    fn results(path: &Path) -> Vec<Value> {
        let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert!(file["context"].is_object());
        file["benchmarks"].as_array().unwrap().clone()
    }

    #[test]
    fn compare_finds_another_mix_and_nothing_else() {
        let scratch = Scratch::new("compared");
        let (less_memory, default) = (Mix { memory_bound: 0.1, ..Mix::default() }, Mix::default());
        let files = [("old", &default), ("same", &default), ("other", &less_memory)].map(|(name, mix)| {
            let path = scratch.0.join("made/for it").join(name);
            let report = simulated(&path, 0);
            report.counters.set_mix(mix).unwrap();
            for _ in 0..20 {
                report.run("a \"sum\"", 10, work);
            }
            report.finish().unwrap();
            path
        });
        let [old, same, other] = files;
        let [same, other] = [same, other].map(|new| compare(&old, &new).unwrap());
        let fails = |comparison: &Comparison, condition: &str| {
            matches!(comparison.state_of(&condition.parse().unwrap()), ConditionState::Holds(_))
        };
        let either_way = |metric: &Metric| ["<0", ">0"].map(|change| format!("{}{change}", metric.field()));
        for condition in LEVEL_1.iter().chain(&LEVEL_2).flat_map(either_way) {
            assert!(!fails(&same, &condition), "{condition}");
            let has_changed = ["memory_bound<0", "core_bound>0"].contains(&condition.as_str());
            assert_eq!(fails(&other, &condition), has_changed, "{condition}");
        }
        let memory = other.regions[0].figures.iter().find(|(name, _)| *name == "memory_bound").unwrap().1;
        let [low, high] = memory.ends.unwrap();
        assert!(low <= -0.1 && -0.1 <= high && other.regions[0].region == "a \"sum\"");
    }

    #[test]
    fn runs_of_one_name_add_up() {
        let scratch = Scratch::new("added");
        let report = simulated(&scratch.0, 1);
        let mut runs = 0;
        let mut time = |name, iterations| {
            report
                .run(name, iterations, || {
                    runs += 1;
                    work()
                })
                .as_nanos() as f64
        };
        let all = time("sum", 3) + time("sum", 4);
        time("other", 1);
        assert_eq!(runs, 8);
        drop(report);
        let results = results(&scratch.0);
        assert_eq!(results.len(), 2);
        let number = |name: &str| results[0][name].as_f64();
        assert_eq!((number("iterations"), number("simulated")), (Some(7.0), Some(1.0)));
        assert!((number("real_time").unwrap() - all / 7.0).abs() < 1e-6 * all);
        assert!(number("slots").unwrap() > 0.0);
        assert!((number("retiring").unwrap() - 0.4).abs() <= number("error").unwrap());
        assert_eq!((number("heavy_operations"), number("error_level_2")), (None, None)); // level 1 was asked for
        fs::remove_file(&scratch.0).unwrap();
    }

    #[test]
    fn what_is_not_counted_has_times_alone() {
        let mut benchmark = Benchmark { name: "sum".into(), ..Benchmark::default() };
        let error = Error::new(-libc::EIO, "no reading");
        let path = Path::new("/nowhere");
        let counters = simulated(path, 0).counters.read();
        benchmark.add(2, Duration::from_nanos(9), counters, Err(error.clone()));
        assert_eq!(
            benchmark.result(),
            (
                json!({
                    "name": "sum", "run_name": "sum", "run_type": "iteration", "iterations": 2, "real_time": 4.5, "time_unit": "ns",
                }),
                Some(error)
            )
        );
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let scratch = Scratch::new("written");
        let path = scratch.0.join("report.json");
        simulated(&path, 0).finish().unwrap();
        let panicked = std::panic::catch_unwind(|| {
            let report = simulated(&path, 0);
            report.run("sum", 1, work);
            report.run("none", 1, || panic!("as it should"));
        });
        assert!(panicked.is_err() && !scratch.0.exists());
        let report = simulated(&path, 0);
        report.run("sum", 1, work);
        report.finish().unwrap();
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
        // a file is no directory
        let path = path.join("report.json");
        let report = simulated(&path, 0);
        report.run("sum", 1, work);
        let error = report.finish().unwrap_err().to_string();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn benchmarks_of_criterion_leave_a_file() {
        let scratch = Scratch::new("report");
        let path = scratch.0.join("report.json");
        let brief = Duration::from_millis(5);
        let mut criterion = Criterion::default().output_directory(&scratch.0).sample_size(10);
        criterion = criterion.warm_up_time(brief).measurement_time(brief).nresamples(2000);
        let report = simulated(&path, 0);
        let mut iterations = 0;
        criterion.bench_function("sum", |bencher| {
            bencher.iter_custom(|more| {
                iterations += more;
                report.run("sum", more, work)
            })
        });
        report.finish().unwrap();
        assert_eq!(results(&path)[0]["iterations"], iterations);
        assert!(iterations > 10);
    }
}
