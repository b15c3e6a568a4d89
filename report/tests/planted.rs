//! Reports in directories where others can make names: what another user has put under the name, before or meanwhile, is neither
//! written to nor taken; what is one's own is as in a shell.
//!
//! The other user is one that root makes files for, so only root's run has one; what is one's own is tried by anybody.

mod made;

use made::Scratch;
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use topdown_report::Output;

const OTHER: u32 = 65534;
const ALL: u32 = 0o1777;

/// A scratch directory with one for all in it, and a file that nobody chose.
struct Shared {
    scratch: Scratch,
    shared: PathBuf,
    victim: PathBuf,
}

impl Shared {
    fn new(name: &str) -> Shared {
        let scratch = Scratch::new(name);
        let (shared, victim) = (scratch.0.join("shared"), scratch.0.join("victim"));
        fs::create_dir(&shared).unwrap();
        fs::write(&victim, "precious").unwrap();
        let shared = Shared { scratch, shared, victim };
        shared.mode(ALL);
        shared
    }

    fn mode(&self, mode: u32) {
        fs::set_permissions(&self.shared, Permissions::from_mode(mode)).unwrap();
    }

    fn place(&self) -> PathBuf {
        self.shared.join("report.csv")
    }

    fn fifo(&self) -> PathBuf {
        assert!(Command::new("mkfifo").arg(self.place()).status().unwrap().success());
        self.place()
    }

    fn link(&self, to: &Path) -> PathBuf {
        symlink(to, self.place()).unwrap();
        self.place()
    }

    fn file(&self) -> PathBuf {
        fs::write(self.place(), "theirs").unwrap();
        self.place()
    }

    fn is_untouched(&self) -> bool {
        fs::read_to_string(&self.victim).unwrap() == "precious"
    }

    /// Nothing but these is in the directory.
    fn has(&self, names: &[&str]) {
        let there = fs::read_dir(&self.shared).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(there.collect::<Vec<_>>(), names);
    }
}

fn own() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

fn is_root() -> bool {
    own() == 0
}

const WAYS: [fn(&Path) -> std::io::Result<Output>; 2] = [Output::create, Output::row_by_row];

fn write(path: &Path, open: fn(&Path) -> std::io::Result<Output>) -> std::io::Result<()> {
    let mut output = open(path)?;
    output.write_all(b"report")?;
    output.finish()
}

fn is_own_report(path: &Path) -> bool {
    let about = fs::symlink_metadata(path).unwrap();
    about.is_file() && about.uid() == own() && fs::read_to_string(path).unwrap() == "report"
}

#[test]
fn own_links_and_files_there_are_as_in_a_shell() {
    for open in WAYS {
        let shared = Shared::new("own");
        let link = shared.link(&shared.victim);
        write(&link, open).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && is_own_report(&shared.victim));
        fs::remove_file(&shared.victim).unwrap();
        write(&link, open).unwrap(); // the link dangles
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && is_own_report(&shared.victim));
        fs::remove_file(&link).unwrap();
        let file = shared.file();
        write(&file, open).unwrap();
        assert!(is_own_report(&file));
        fs::remove_file(&file).unwrap();
        write(&file, open).unwrap(); // nothing was there
        assert!(is_own_report(&file));
        shared.has(&["report.csv"]);
    }
}

#[test]
fn what_another_user_has_put_there_is_refused() {
    type Make = fn(&Shared) -> PathBuf;
    let made: [(&str, Make); 5] = [
        ("link", |shared| shared.link(&shared.victim)),
        ("link", |shared| shared.link(&shared.scratch.0.join("nothing yet"))),
        ("link", |shared| shared.link(Path::new("/proc/self/fd/1"))),
        ("file", Shared::file),
        ("FIFO", Shared::fifo),
    ];
    for (k, (what, make)) in made.into_iter().enumerate().filter(|_| is_root()) {
        for open in WAYS {
            let shared = Shared::new("planted");
            let path = make(&shared);
            lchown(&path, Some(OTHER), Some(OTHER)).unwrap();
            for answer in [Output::check(&path), open(&path).map(drop)] {
                let error = answer.expect_err(what);
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{k}: {error}");
                let why = format!("cannot write the report: user {OTHER} has put a {what} there");
                assert!(error.to_string().contains(&why), "{k}: {error}");
            }
            assert!(shared.is_untouched() && !shared.scratch.0.join("nothing yet").exists());
            shared.has(&["report.csv"]);
            // in a directory where nobody else can make names they were not planted
            shared.mode(0o755);
            Output::check(&path).unwrap();
            // nor in one of theirs, where the kernel follows them too
            shared.mode(ALL);
            chown(&shared.shared, Some(OTHER), None).unwrap();
            Output::check(&path).unwrap();
        }
    }
}

/// A link of one's own to a directory for all does not make trusted what is there.
#[test]
fn an_own_link_to_what_another_user_has_put_there_is_refused() {
    for way in WAYS.into_iter().filter(|_| is_root()) {
        let shared = Shared::new("through");
        let theirs = shared.link(&shared.victim);
        lchown(&theirs, Some(OTHER), Some(OTHER)).unwrap();
        let link = shared.scratch.0.join("link");
        symlink(&theirs, &link).unwrap();
        assert_eq!(write(&link, way).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert!(shared.is_untouched());
    }
}

/// Between the two looks of a writer: what comes after the first is replaced, and never followed.
#[test]
fn what_is_put_there_meanwhile_is_not_written_to() {
    let made: [fn(&Shared) -> PathBuf; 3] =
        [|shared| shared.link(&shared.victim), Shared::file, Shared::fifo];
    for make in made {
        for before in [false, true] {
            let shared = Shared::new("meanwhile");
            if before {
                shared.file();
            }
            let mut output = Output::create(&shared.place()).unwrap();
            let _ = fs::remove_file(shared.place());
            let planted = make(&shared);
            if is_root() {
                lchown(&planted, Some(OTHER), Some(OTHER)).unwrap();
            } else if planted.symlink_metadata().unwrap().is_file() {
                continue; // (it is as another command's report, which is kept)
            }
            output.write_all(b"report").unwrap();
            output.finish().unwrap();
            assert!(is_own_report(&shared.place()) && shared.is_untouched());
            shared.has(&["report.csv"]);
        }
    }
}

/// Another user (a thread with that user's id) makes links and removes them as fast as it can: no run overwrites what they lead to.
#[test]
fn a_user_who_plants_links_all_the_time_has_nothing_overwritten() {
    const RUNS: usize = 300;
    if !is_root() {
        return assert_ne!(own(), 0, "only root has another user at hand");
    }
    let shared = Shared::new("racing");
    fs::set_permissions(&shared.scratch.0, Permissions::from_mode(0o755)).unwrap();
    let (planted, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let plant = || {
        let other = Uid::from_raw(OTHER);
        set_thread_res_uid(other, other, other).unwrap();
        while !done.load(Relaxed) {
            planted.fetch_add(usize::from(symlink(&shared.victim, shared.place()).is_ok()), Relaxed);
            let _ = fs::remove_file(shared.place());
        }
    };
    let overwritten = std::thread::scope(|scope| {
        let planter = scope.spawn(plant);
        let mut overwritten = 0;
        for run in 0.. {
            let _ = write(&shared.place(), WAYS[run % 2]); // refused, if a link was met
            overwritten += usize::from(!shared.is_untouched());
            let _ = fs::remove_file(shared.place());
            if run >= RUNS && planted.load(Relaxed) >= RUNS || planter.is_finished() {
                break;
            }
        }
        done.store(true, Relaxed);
        planter.join().unwrap();
        overwritten
    });
    assert_eq!(overwritten, 0);
}
