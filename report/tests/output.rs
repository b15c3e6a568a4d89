//! Where a report goes, and what becomes of the one that was there.

mod made;

use made::{Scratch, TableContent, ran};
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use topdown_report::{Claim, Format, Output, merge};

impl Scratch {
    /// A table with so many regions.
    fn table(&self, pid: i32, regions: usize) -> PathBuf {
        let mut made = TableContent::new(pid, "reported");
        let one = ran(1000, [50, 10, 10, 30], [10, 5, 5, 20], 10).sum();
        let root = made.thread("main", one);
        for k in 0..regions {
            made.region(&format!("region {k}"), root, one);
        }
        made.write(&self.0)
    }

    fn out(&self, name: &str) -> PathBuf {
        let out = self.0.join("out");
        fs::create_dir_all(&out).unwrap();
        out.join(name)
    }

    /// What is where reports go.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.join("out"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn write(files: &[PathBuf], output: Option<&Path>) -> std::io::Result<()> {
    topdown_report::write(&merge(files, None)?, output, Format::of(output)?)
}

fn is_report(path: &Path) -> bool {
    fs::read_to_string(path).unwrap().starts_with("region,pid,")
}

#[test]
fn of_two_that_found_nothing_both_have_a_report() {
    let scratch = Scratch::new("two");
    let (out, beside) = (scratch.out("report.csv"), format!("report.{}.csv", std::process::id()));
    let [mut first, mut second] = [(); 2].map(|()| Output::create(&out).unwrap());
    first.write_all(b"the first").unwrap();
    second.write_all(b"the second").unwrap();
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(scratch.names(), [beside.as_str(), "report.csv"]);
    let texts = [out, scratch.out(&beside)].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, ["the first", "the second"]);
}

#[test]
fn of_two_that_found_an_old_one_both_have_a_report() {
    let scratch = Scratch::new("two olds");
    let (out, beside) = (scratch.out("report.csv"), format!("report.{}.csv", std::process::id()));
    fs::write(&out, "the old one").unwrap();
    let [mut first, mut second] = [(); 2].map(|()| Output::create(&out).unwrap());
    first.write_all(b"the first").unwrap();
    second.write_all(b"the second").unwrap();
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(scratch.names(), [beside.as_str(), "report.csv"]);
    let texts = [out, scratch.out(&beside)].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, ["the second", "the first"]);
}

/// What came between a claim and the writing is another command's.
#[test]
fn what_was_claimed_replaces_nothing_but_what_was_there() {
    for old in [false, true] {
        let scratch = Scratch::new("claimed");
        let (out, beside) = (scratch.out("report.csv"), format!("report.{}.csv", std::process::id()));
        if old {
            fs::write(&out, "the old one").unwrap();
        }
        let claim = Claim::of(&out);
        assert_eq!(claim.place(), out);
        fs::write(&out, "another's").unwrap();
        let mut output = Output::create(&out).unwrap();
        output.write_all(b"ours").unwrap();
        output.finish().unwrap();
        assert_eq!(scratch.names(), [beside.as_str(), "report.csv"]);
        let texts = [out, scratch.out(&beside)].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(texts, ["another's", "ours"]);
    }
}

#[test]
fn the_new_report_takes_the_old_ones_place_permissions_and_owner() {
    let scratch = Scratch::new("replace");
    let (table, out) = (scratch.table(10, 3), scratch.out("report.csv"));
    for mode in [0o600, 0o640, 0o666] {
        fs::write(&out, "the old one").unwrap();
        fs::set_permissions(&out, Permissions::from_mode(mode)).unwrap();
        let owner =
            if fs::metadata(&out).unwrap().uid() == 0 { 65534 } else { fs::metadata(&out).unwrap().uid() };
        std::os::unix::fs::chown(&out, Some(owner), None).unwrap();
        write(std::slice::from_ref(&table), Some(&out)).unwrap();
        let about = fs::metadata(&out).unwrap();
        assert_eq!((about.mode() & 0o777, about.uid()), (mode, owner));
        assert!(is_report(&out));
    }
    let fresh = scratch.out(&"n".repeat(250));
    write(std::slice::from_ref(&table), Some(&fresh)).unwrap();
    assert!(fs::read_to_string(&fresh).unwrap().starts_with("topdown: reported"));
    File::create(scratch.out("as others are")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&fresh), mode(&scratch.out("as others are")), "the umask holds");
    assert_eq!(scratch.names(), ["as others are", &"n".repeat(250), "report.csv"]);
}

#[test]
fn a_report_that_is_not_finished_leaves_the_old_one() {
    let scratch = Scratch::new("unfinished");
    let out = scratch.out("report.csv");
    fs::write(&out, "the old one").unwrap();
    let mut output = Output::create(&out).unwrap();
    std::io::Write::write_all(&mut output, b"half of").unwrap();
    assert_eq!(scratch.names().len(), 2);
    drop(output);
    Output::check(&out).unwrap();
    Output::check(&scratch.out("none yet")).unwrap();
    assert_eq!(
        (scratch.names(), fs::read_to_string(&out).unwrap()),
        (vec!["report.csv".into()], "the old one".into())
    );
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let scratch = Scratch::new("links");
    let table = scratch.table(10, 3);
    fs::write(scratch.0.join("target.csv"), "the old one").unwrap();
    symlink("../target.csv", scratch.out("link.csv")).unwrap();
    symlink("link.csv", scratch.out("link of a link.csv")).unwrap();
    symlink("../not yet.csv", scratch.out("dangling.csv")).unwrap();
    for (name, target) in [("link of a link.csv", "target.csv"), ("dangling.csv", "not yet.csv")] {
        write(std::slice::from_ref(&table), Some(&scratch.out(name))).unwrap();
        assert!(is_report(&scratch.0.join(target)), "{target}");
        assert!(fs::symlink_metadata(scratch.out(name)).unwrap().is_symlink());
    }
    assert_eq!(scratch.names(), ["dangling.csv", "link of a link.csv", "link.csv"]);
    symlink("circle", scratch.out("circle")).unwrap();
    let text = write(std::slice::from_ref(&table), Some(&scratch.out("circle"))).unwrap_err().to_string();
    assert!(text.contains("circle: cannot write the report: Too many levels of symbolic links"), "{text}");
}

#[test]
fn what_cannot_be_replaced_is_written_straight() {
    let scratch = Scratch::new("straight");
    let table = scratch.table(10, 3);
    let fifo = scratch.out("fifo.csv");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    Output::check(&fifo).unwrap(); // does not wait for a reader
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read_to_string(&fifo).unwrap());
        write(std::slice::from_ref(&table), Some(&fifo)).unwrap();
        reader.join().unwrap()
    });
    assert!(read.starts_with("region,pid,") && read.ends_with('\n'), "{read}");
    // an open descriptor, by either of its names, of a file that others go on writing to
    for name in ["/proc/self/fd", "/dev/fd"] {
        let mut open =
            File::options().read(true).append(true).create(true).open(scratch.out("open")).unwrap();
        let inode = open.metadata().unwrap().ino();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        write(std::slice::from_ref(&table), Some(Path::new(&format!("{name}/{number}")))).unwrap();
        std::io::Write::write_all(&mut open, b"and more").unwrap();
        let mut all = String::new();
        open.read_to_string(&mut all).unwrap();
        let all = fs::read_to_string(scratch.out("open")).unwrap() + &all;
        assert!(all.starts_with("topdown: reported") && all.ends_with("and more"), "{all}");
        assert_eq!(fs::metadata(scratch.out("open")).unwrap().ino(), inode);
    }
    let text = write(std::slice::from_ref(&table), Some(Path::new("/dev/full"))).unwrap_err().to_string();
    assert!(text.starts_with("/dev/full: cannot write the report: No space left on device"), "{text}");
    for directory in [scratch.out(""), scratch.out("."), "/".into()] {
        let text = write(std::slice::from_ref(&table), Some(&directory)).unwrap_err().to_string();
        assert!(text.contains(": cannot write the report: Is a directory"), "{text}");
        assert!(Output::check(&directory).is_err());
    }
    assert_eq!(scratch.names(), ["fifo.csv", "open"]);
}

/// Two write to one file again and again, and whoever reads it meets the whole report of either; nothing else is left.
#[test]
fn of_two_reports_at_once_each_is_whole_or_not_there() {
    let scratch = Scratch::new("both");
    let out = scratch.out("report.json");
    let tables = [scratch.table(10, 2), scratch.table(11, 40)];
    write(&tables[..1], Some(&out)).unwrap();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let writers = [0, 1].map(|k| {
            let (tables, out) = (&tables[k..=k], &out);
            scope.spawn(move || (0..30).for_each(|_| write(tables, Some(out)).unwrap()))
        });
        let reader = scope.spawn(|| {
            let mut seen = [0; 2];
            while !done.load(Ordering::Relaxed) {
                let json: serde_json::Value =
                    serde_json::from_str(&fs::read_to_string(&out).unwrap()).expect("whole");
                seen[json["processes"][0]["pid"].as_u64().unwrap() as usize - 10] += 1;
            }
            seen
        });
        let written = writers.map(|writer| writer.join());
        done.store(true, Ordering::Relaxed);
        written.into_iter().for_each(|result| result.unwrap());
        reader.join().unwrap()
    });
    assert!(seen.iter().sum::<i32>() > 0, "{seen:?}");
    // (one that meets the other's, which came meanwhile, leaves it and goes beside it)
    let beside = format!("report.{}", std::process::id());
    let names = scratch.names();
    assert!(names.contains(&"report.json".into()), "{names:?}");
    for name in names {
        assert!(name == "report.json" || name.starts_with(&beside), "{name}");
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(scratch.out(&name)).unwrap()).expect("whole");
        assert!([10, 11].contains(&json["processes"][0]["pid"].as_u64().unwrap()), "{name}");
    }
}
