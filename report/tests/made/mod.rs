//! Table files, made for tests and examples.
#![allow(dead_code)] // each uses some

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use topdown::{Options, Sample, Sum, TopDown};
use topdown_table::{
    EXITED, HEADER_SIZE, Header, MAGIC, NAME, NONE, REGION, Record, THREAD, TableCore, VERSION,
    offset_of_record,
};

#[path = "../../../preload/src/measurement.rs"]
mod measurement;

/// The core that all of them ran on.
pub const CORE: &str = "Golden or Raptor Cove";

/// A directory of the test's own, also beside other tests of its process.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let path = std::env::temp_dir().join(format!("topdown-test-{name}-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// What an execution was: slots, and of those by category, in the order of `topdown::Base::category`.
#[derive(Clone, Copy)]
pub struct Ran {
    pub slots: u64,
    /// Retiring, bad speculation, frontend bound, backend bound.
    pub one: [u64; 4],
    /// Heavy operations, branch mispredicts, fetch latency, memory bound.
    pub two: [u64; 4],
    /// Bound on each part, in slots; at level 2 twice that.
    pub error: u64,
    pub ns: u64,
    /// Of those.
    pub running_ns: u64,
}

/// So many slots, in percent.
pub fn ran(slots: u64, one: [u64; 4], two: [u64; 4], error: u64) -> Ran {
    let part = |percent: u64| slots * percent / 100;
    Ran { slots, one: one.map(part), two: two.map(part), error, ns: slots / 10, running_ns: slots / 10 }
}

impl Ran {
    /// Its sum.
    pub fn sum(self) -> Sum {
        let mut sum = Sum::default();
        self.add_to(&mut sum);
        sum
    }

    /// One execution more: all in windows that were closed, so that nothing but `error` bounds it.
    pub fn add_to(self, sum: &mut Sum) {
        let one_of =
            TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap().read().unwrap();
        let [retiring, bad, frontend, _] = self.one.map(|n| n as i64);
        let [heavy, mispredicts, latency, memory] = self.two.map(|n| n as i64);
        let mut from = Sample {
            raw_metrics: 0,
            slots: 0,
            slots_before: 0,
            time_enabled_ns: 0,
            time_running_ns: 0,
            ..one_of
        };
        from.flags = 0;
        from.base.category = [0; 7];
        from.base.error = 0;
        let mut to = Sample {
            slots: self.slots,
            slots_before: self.slots,
            time_enabled_ns: self.ns,
            time_running_ns: self.running_ns,
            ..from
        };
        to.base.category = [retiring, bad, frontend, heavy, mispredicts, latency, memory];
        to.base.error = self.error;
        sum.add(&from, &to).unwrap();
    }
}

/// So many executions, CPU time being known of so many of them, of elapsed time and of that.
pub fn timed(executions: u64, with_cpu: u64, wall_ns: u64, cpu_ns: u64) -> Sum {
    Sum {
        executions,
        measured: with_cpu,
        time_enabled_ns: wall_ns,
        time_running_ns: cpu_ns,
        ..Sum::default()
    }
}

/// A process's table file on the way.
pub struct TableContent {
    pub header: Header,
    pub records: Vec<Record>,
}

fn put(field: &mut [u8], text: &str) {
    field[..text.len()].copy_from_slice(text.as_bytes());
}

/// The core of this name, as this version knows it.
pub fn core(name: &str) -> TableCore {
    let mut field = [0; 48];
    put(&mut field, name);
    TableCore { name: field, fingerprint: topdown::fingerprint(name).unwrap_or(0) }
}

impl TableContent {
    pub fn new(pid: i32, command: &str) -> TableContent {
        // SAFETY: integers and arrays of them.
        let mut header: Header = unsafe { std::mem::zeroed() };
        header.magic = MAGIC;
        header.version = VERSION;
        header.record_size = size_of::<Record>() as u32;
        (header.pid, header.parent) = (pid, 1);
        header.started_unix_ns = 1_700_000_000_000_000_000 + pid as u64;
        *header.ended.get_mut() = EXITED;
        (header.path, header.level, header.slots_per_cycle) = (1, 2, 6);
        (header.max_error_ppm, header.max_overhead_ppm) = (10_000, 10_000);
        put(&mut header.cpu, "Intel(R) Xeon(R) Gold 6430");
        put(&mut header.pmu, "cpu");
        put(&mut header.core, CORE);
        put(&mut header.command, command);
        TableContent { header, records: Vec::new() }
    }

    /// A process of which clocks alone tell.
    pub fn by_clocks(pid: i32, command: &str, why: &str) -> TableContent {
        let mut made = TableContent::new(pid, command);
        (made.header.path, made.header.level, made.header.slots_per_cycle) = (0, 0, 0);
        (made.header.max_error_ppm, made.header.max_overhead_ppm) = (0, 0);
        (made.header.cpu, made.header.pmu, made.header.core) = ([0; 64], [0; 32], [0; 48]);
        made.header.time_alone = 1;
        put(&mut made.header.trouble, why);
        made
    }

    /// A process of 64 threads, 2,000 regions, which the first executes all, and the others some: one in the other by pairs, those of
    /// low numbers for longer.
    pub fn large() -> TableContent {
        let one = |slots| ran(slots, [30, 10, 20, 40], [10, 5, 5, 20], 5_000).sum();
        let mut made = TableContent::new(1000, "large");
        for thread in 0..64 {
            let root = made.thread(&format!("thread {thread}"), one(1_000_000_000));
            let mut within = root;
            for k in 0..if thread == 0 { 2000 } else { 100 } {
                let parent = if k % 2 == 0 { root } else { within };
                let slots = 1_000_000 - 400 * k - thread;
                within = made.region(&format!("a_function_with_a_long_name_{k}"), parent, one(slots));
            }
        }
        made
    }

    fn record(&mut self, kind: u32, name: &str, parent: u32, sum: Sum) -> u32 {
        let number = self.records.len() as u32;
        // SAFETY: integers, floating point numbers, and arrays of them.
        let mut record: Record = unsafe { std::mem::zeroed() };
        *record.kind.get_mut() = kind;
        *record.current.get_mut() = number; // even or odd
        record.parent = parent;
        record.thread =
            if parent == NONE || kind == THREAD { number } else { self.records[parent as usize].thread };
        record.tid =
            if parent == NONE { self.header.pid + number as i32 } else { self.records[parent as usize].tid };
        *record.ended.get_mut() = 1;
        put(&mut record.name[..NAME], name);
        record.core = core(if self.header.time_alone == 0 { CORE } else { "" });
        record.measurement[(number & 1) as usize] = measurement::of(&sum);
        self.records.push(record);
        number
    }

    pub fn thread(&mut self, name: &str, sum: Sum) -> u32 {
        self.record(THREAD, name, NONE, sum)
    }

    /// What another group has counted of a thread, which takes turns with that of its record.
    pub fn turn(&mut self, thread: u32, name: &str, sum: Sum) -> u32 {
        self.record(THREAD, name, thread, sum)
    }

    pub fn region(&mut self, name: &str, parent: u32, sum: Sum) -> u32 {
        self.record(REGION, name, parent, sum)
    }

    pub fn at(&mut self, number: u32) -> &mut Record {
        &mut self.records[number as usize]
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; offset_of_record(self.records.len() as u32)];
        let raw = |from: *const u8, size| {
            // SAFETY: a value of this size, whose bytes were all zeroed or written.
            unsafe { std::slice::from_raw_parts(from, size) }
        };
        bytes[..size_of::<Header>()]
            .copy_from_slice(raw((&raw const self.header).cast(), size_of::<Header>()));
        let records = raw(self.records.as_ptr().cast(), size_of_val(self.records.as_slice()));
        bytes[HEADER_SIZE..].copy_from_slice(records);
        bytes
    }

    pub fn write(&self, directory: &Path) -> PathBuf {
        let path = directory.join(format!("run.{}.0.topdown", self.header.pid));
        fs::write(&path, self.bytes()).unwrap();
        path
    }
}

/// 1000 slots, of which "a" has 600, and "b" in it 200.
pub fn nested() -> TableContent {
    let mut made = TableContent::new(10, "nested");
    let root = made.thread("main", ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum());
    let a = made.region("a", root, ran(600, [70, 5, 5, 20], [10, 5, 5, 10], 12).sum());
    made.region("b", a, ran(200, [10, 5, 5, 80], [5, 5, 5, 70], 4).sum());
    made
}
