//! Writes table files of programs that never ran into a directory, to look at reports of them.
//!
//!     cargo run -p topdown-report --example tables -- DIRECTORY [large | job PROCESSES THREADS REGIONS]

#[path = "../tests/made/mod.rs"]
mod made;

use made::{TableContent, ran};
use std::path::{Path, PathBuf};
use topdown::Sum;
use topdown_table::RUNS;

/// Long, and with what would do harm in a page.
const HOSTILE: &str =
    "void solver::<lambda(const std::vector<double>&)>::operator()(\"quoted\") & <script>alert(1)</script>";

fn main() {
    let directory = PathBuf::from(std::env::args().nth(1).expect("a directory"));
    if std::env::args().nth(2).is_some_and(|what| what == "large") {
        println!("{}", TableContent::large().write(&directory).display());
        return;
    }
    let numbers: Vec<u32> = std::env::args().skip(3).map(|text| text.parse().expect("a number")).collect();
    if let [processes, threads, regions] = numbers[..] {
        job(&directory, processes, threads, regions);
        return;
    }
    let million = 1_000_000;
    let mut server = TableContent::new(4000, "./server --threads 8 --data /srv/data");
    let mixes: [(&str, [u64; 4], [u64; 4]); 11] = [
        ("request", [35, 8, 22, 35], [6, 6, 12, 21]),
        ("parse", [30, 25, 30, 15], [3, 22, 20, 5]),
        ("lookup", [12, 3, 5, 80], [1, 2, 3, 74]),
        ("hash", [80, 2, 8, 10], [4, 1, 3, 2]),
        ("render", [40, 10, 38, 12], [20, 8, 30, 6]),
        ("compress", [60, 18, 7, 15], [5, 16, 3, 6]),
        ("matrix multiply", [45, 1, 2, 52], [2, 0, 1, 8]),
        ("json::Value::operator[]", [25, 10, 45, 20], [2, 8, 35, 10]),
        ("garbage collection", [20, 5, 10, 65], [3, 4, 6, 60]),
        ("log", [33, 10, 32, 25], [10, 7, 20, 13]),
        (HOSTILE, [50, 5, 15, 30], [5, 4, 8, 15]),
    ];
    for thread in 0..8 {
        let name = if thread == 0 { "main".into() } else { format!("worker {thread}") };
        let root =
            server.thread(&name, ran(4000 * million, [38, 9, 18, 35], [6, 7, 10, 24], 9 * million).sum());
        let mut parent = root;
        for (k, (name, one, two)) in mixes.iter().enumerate() {
            if (k + thread) % 7 == 3 {
                continue;
            }
            let mut sum = Sum::default();
            let slots = if k == 0 { 2500 } else { 900 / (k as u64 + 1) + 20 * thread as u64 } * million;
            // some are less exact than others
            let error = slots * [4, 8, 6, 12, 60, 10, 5, 90, 15, 300, 9][k] / 1000;
            let mut this = ran(slots, *one, *two, error);
            if k == 4 {
                this.running_ns = this.ns * 8 / 10;
            }
            this.add_to(&mut sum);
            sum.executions += 9_999 * u64::from(k == 3);
            let region = server.region(name, if k < 6 { parent } else { root }, sum);
            if k == 0 {
                parent = region;
            }
        }
        let idle = server.region("never counted", root, Sum::default());
        server.at(idle).unbalanced = u64::from(thread == 2);
    }
    let mut killed = TableContent::new(4100, "./server --child");
    *killed.header.ended.get_mut() = RUNS;
    let root = killed.thread("main", ran(300 * million, [20, 5, 10, 65], [3, 4, 6, 60], 4 * million).sum());
    killed.region(
        "garbage collection",
        root,
        ran(200 * million, [15, 2, 5, 78], [1, 1, 3, 74], 2 * million).sum(),
    );
    *killed.at(root).ended.get_mut() = 0;
    killed.at(root).seen_slots = 310 * million;
    let mut nothing = TableContent::new(4101, "/usr/bin/env true");
    nothing.header.path = 0;
    let why = b"no topdown counters on this CPU: the container hides /sys";
    nothing.header.trouble[..why.len()].copy_from_slice(why);
    for process in [server, killed, nothing] {
        println!("{}", process.write(&directory).display());
    }
}

/// As many processes, each with as many threads of as many regions, of no two the same slots.
fn job(directory: &Path, processes: u32, threads: u32, regions: u32) {
    let one = |slots| ran(slots, [30, 10, 20, 40], [10, 5, 5, 20], 5_000).sum();
    for process in 0..processes {
        let mut made = TableContent::new(1000 + process as i32, "./solve");
        for thread in 0..threads {
            let root = made.thread(&format!("worker {thread}"), one(1_000_000_000 + u64::from(process)));
            for k in 0..regions {
                let slots = 1_000_000 + 997 * u64::from(process) + 31 * u64::from(thread) + u64::from(k);
                made.region(&format!("region {k}"), root, one(slots));
            }
        }
        made.write(directory);
    }
}
