use super::*;
use crate::symbols::tests::Scratch;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

/// A scratch directory with a program and a source file of these bytes.
struct Tree {
    scratch: Scratch,
    program: String,
    source: String,
}

impl Tree {
    fn new(name: &str, source: &[u8]) -> Tree {
        let scratch = Scratch::new(name);
        let path = |name: &str| scratch.path(name).display().to_string();
        let (program, file) = (path("program"), path("a.c"));
        fs::write(&file, source).unwrap();
        fs::write(&program, "").unwrap();
        Tree { program, source: file, scratch }
    }

    fn read(&self, line: u32, places: &[SourcePlace]) -> Result<SourceText, MissingText> {
        self.read_as(&self.source, line, places)
    }

    fn read_as(&self, file: &str, line: u32, places: &[SourcePlace]) -> Result<SourceText, MissingText> {
        let sources = Sources::read([(&*self.program, file, line)], places);
        assert!(sources.of(&self.program, "/other").is_none());
        sources.of(&self.program, file).unwrap().clone()
    }

    /// Why nothing is shown of the file.
    fn why(&self) -> Option<MissingText> {
        self.read(1, &[]).err()
    }
}

#[test]
fn lines_and_those_beside_them_are_read() {
    let text: String = (1..=20).map(|k| format!("\tline {k}  \r\n")).collect();
    let tree = Tree::new("beside", text.as_bytes());
    let lines = |line| tree.read(line, &[]).unwrap().lines;
    assert_eq!(lines(10).keys().copied().collect::<Vec<_>>(), (7..=13).collect::<Vec<_>>());
    assert_eq!(lines(10)[&10], "    line 10");
    assert_eq!(lines(1).keys().copied().collect::<Vec<_>>(), (1..=4).collect::<Vec<_>>());
    assert_eq!(lines(20).keys().copied().collect::<Vec<_>>(), (17..=20).collect::<Vec<_>>());
    assert_eq!(tree.read(21, &[]).unwrap_err(), MissingText::Short);
    assert_eq!(tree.read(u32::MAX, &[]).unwrap_err(), MissingText::Short);
}

#[test]
fn a_file_that_was_written_after_the_program_is_newer() {
    let tree = Tree::new("newer", b"a\n");
    assert!(!tree.read(1, &[]).unwrap().newer);
    let program = File::open(&tree.program).unwrap();
    let written = program.metadata().unwrap().modified().unwrap();
    let set = |path: &str, seconds: i64| {
        let second = std::time::Duration::from_secs(seconds.unsigned_abs());
        let time = if seconds < 0 { written - second } else { written + second };
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set(&tree.source, 1);
    assert!(tree.read(1, &[]).unwrap().newer);
    set(&tree.source, -1);
    assert!(!tree.read(1, &[]).unwrap().newer);
    set(&tree.program, -2);
    assert!(tree.read(1, &[]).unwrap().newer);
    // of one that is not there any more it is not known
    fs::remove_file(&tree.program).unwrap();
    assert!(tree.read(1, &[]).is_ok_and(|text| !text.newer) || tree.why() == Some(MissingText::Private));
}

#[test]
fn files_are_looked_for_where_the_user_says() {
    let tree = Tree::new("places", b"compiled\n");
    let deeper = tree.scratch.path("other/src");
    fs::create_dir_all(&deeper).unwrap();
    fs::write(deeper.join("a.c"), "other\n").unwrap();
    let other = tree.scratch.path("other").display().to_string();
    let place = |text: String| SourcePlace::of(&text).unwrap();
    let line =
        |file: &str, places: &[SourcePlace]| tree.read_as(file, 1, places).map(|text| text.lines[&1].clone());
    assert_eq!(line("/build/x/src/a.c", &[]), Err(MissingText::Absent));
    for (file, place_of) in [
        ("/build/x/src/a.c", other.clone()),
        ("src/a.c", other.clone()),
        ("./src/../src/a.c", other.clone()),
        ("/build/x/src/a.c", format!("/build/x={other}")),
        ("/build/x/src/a.c", format!("/build/x/src={other}/src")),
        ("./src/a.c", format!(".={other}")),
        (&tree.source, format!("{}={other}/src", tree.scratch.0.display())),
    ] {
        assert_eq!(line(file, &[place(place_of.clone())]).as_deref(), Ok("other"), "{file} {place_of}");
    }
    // by the longest part that is there; else where it was compiled
    let both = [place(tree.scratch.0.display().to_string()), place(other.clone())];
    assert_eq!(line("/build/a.c", &both).as_deref(), Ok("compiled"));
    assert_eq!(line("/build/other/src/a.c", &both).as_deref(), Ok("other"));
    assert_eq!(line(&tree.source, &[place(format!("/build/y={other}"))]).as_deref(), Ok("compiled"));
    // none leads out of its place
    assert_eq!(
        line("/build/../../program", &[place(format!("/build={other}/src"))]),
        Err(MissingText::Absent)
    );
    assert_eq!(line("../a.c", &[place(other.clone())]), Err(MissingText::Absent));
    // a part of a name is no beginning
    assert_eq!(line("/builder/src/a.c", &[place(format!("/build={other}"))]), Err(MissingText::Absent));
    for (text, why) in
        [("/nowhere", "No such file"), ("x=/etc/passwd", "'/etc/passwd' is no directory"), ("x=", "")]
    {
        assert!(SourcePlace::of(text).unwrap_err().contains(why), "{text}");
    }
}

#[test]
fn what_is_no_source_is_not_read() {
    let tree = Tree::new("hostile", b"\0\n");
    assert_eq!(tree.why(), Some(MissingText::NotText));
    // a file of a terabyte that takes no room
    File::create(&tree.source).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(tree.why(), Some(MissingText::Large));
    File::create(&tree.source).unwrap().set_len(MOST_BYTES).unwrap();
    assert_eq!(tree.why(), Some(MissingText::NotText));
    fs::write(&tree.source, "").unwrap();
    assert_eq!(tree.why(), Some(MissingText::Short));
    fs::remove_file(&tree.source).unwrap();
    assert_eq!(tree.why(), Some(MissingText::Absent));
    assert!(Command::new("mkfifo").arg(&tree.source).status().unwrap().success());
    assert_eq!(tree.why(), Some(MissingText::NotRegular));
    for device in ["/dev/zero", "/dev/tty", "/proc/self/fd/0"] {
        assert!(tree.read_as(device, 1, &[]).is_err(), "{device}");
    }
    assert!(["/", "", "/proc/self", "\u{fffd}"].iter().all(|file| tree.read_as(file, 1, &[]).is_err()));
}

#[test]
fn long_lines_are_cut_and_what_is_no_text_replaced() {
    let long = ["x".repeat(5000), "\t".repeat(5000), "\u{1f600}".repeat(5000)].join("\n") + "\n\u{ff}";
    let mut bytes = long.into_bytes();
    bytes.push(0xff);
    let tree = Tree::new("long", &bytes);
    let lines = tree.read(2, &[]).unwrap().lines;
    assert_eq!(lines[&1], format!("{}…", "x".repeat(LONGEST_LINE)));
    assert_eq!(lines[&2], "");
    assert!(lines[&3].chars().count() <= LONGEST_LINE + 1, "{}", lines[&3].chars().count());
    assert_eq!(lines[&4], "\u{ff}\u{fffd}");
}

/// More files than may be read: what is left of them is said.
#[test]
fn there_is_a_limit_for_all_files_together() {
    let tree = Tree::new("many", b"");
    let path = |k: u64| tree.scratch.path(&format!("{k}.c")).display().to_string();
    let files: Vec<String> = (0..=MOST_OF_ALL / MOST_BYTES).map(path).collect();
    for file in &files {
        fs::write(file, "a\nb\nc\nd\n").unwrap();
        File::options().append(true).open(file).unwrap().set_len(MOST_BYTES).unwrap();
    }
    let wanted = files.iter().map(|file| (&*tree.program, &**file, 1));
    let sources = Sources::read(wanted, &[]);
    let all = files.iter().map(|file| sources.of(&tree.program, file).unwrap().as_ref().map(|_| ()));
    assert_eq!(all.clone().filter(|one| *one == Err(&MissingText::TooMany)).count(), 1);
    assert_eq!(all.filter(|one| *one == Ok(())).count(), files.len() - 1);
}

/// A program may name whatever file it likes, and its profile may be shown to its owner.
#[test]
fn files_that_the_programs_owner_may_not_read_are_not_shown() {
    let tree = Tree::new("private", b"secret\n");
    let mode = |path: &str, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&tree.source, 0o600);
    assert_eq!(tree.why(), None);
    if fs::metadata(&tree.source).unwrap().uid() != 0 {
        eprintln!("only root can give files to others: nothing more is tested");
        return;
    }
    chown(&tree.program, Some(7), None).unwrap();
    assert_eq!(tree.why(), Some(MissingText::Private));
    let link = tree.scratch.path("link.c").display().to_string();
    symlink(&tree.source, &link).unwrap();
    assert_eq!(tree.read_as(&link, 1, &[]).unwrap_err(), MissingText::Private);
    chown(&tree.source, Some(7), None).unwrap();
    assert_eq!(tree.why(), None);
    chown(&tree.source, Some(8), None).unwrap();
    mode(&tree.source, 0o644);
    assert_eq!(tree.why(), None);
    assert_eq!(tree.read_as(&link, 1, &[]).unwrap().lines[&1], "secret");
    // in a directory that is not everybody's
    mode(tree.scratch.0.to_str().unwrap(), 0o700);
    assert_eq!(tree.why(), Some(MissingText::Private));
    // root's own programs name what was compiled
    chown(&tree.program, Some(0), None).unwrap();
    assert_eq!(tree.why(), None);
}
