//! `topdown compare`: two recordings, two reports, and what is refused.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A function with this share of retiring slots, in all of the time.
fn recording(command: &str, retiring: f64) -> String {
    let (low, high) = (retiring - 0.02, retiring + 0.02);
    let figures = format!(
        r#"{{"time_ns": 1000000000, "time": {{"value": 1, "low": 0.98, "high": 1}},
            "shares": {{"tma_retiring": {{"value": {retiring}, "low": {low}, "high": {high}}}}}}}"#
    );
    format!(
        r#"{{"format": "topdown-record-1", "command": "{command}", "cores": [{{"name": "Zen 4", "all": {figures}}}],
            "functions": [{{"name": "f", "module": "a.out", "path": "/a.out", "core": "Zen 4", "own": {figures}, "inclusive": {figures}}}]}}"#
    )
}

const REPORT: &str = "region,pid,executions,slots,time_ns,retiring,error_1\n,,1,2,3,0.5,0.1\n";

/// The beginning of what `topdown record` has kept, and of a profile in CSV.
const KEPT: &str = r#"{"recording":{"version":3,"command":"a b","occasion":"","settings":{"frequency":500,"gap":1000,"budget":0.01,"kernel":false,"callers":"frame_pointers"},"cores":[]}}
{"module":{"file":{"path":"/nowhere/a","proof":"unseen"}}}
"#;
const PROFILE: &str = "core,function,module,scope,time_ns,time,time_low,time_high,windows,tma_retiring\n";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("topdown-compare-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn compare(&self, files: [(&str, &str); 2], options: &[&str]) -> Output {
        for (name, text) in files {
            fs::write(self.0.join(name), text).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_topdown"));
        command.current_dir(&self.0).arg("compare").args(options).args(files.map(|(name, _)| name));
        command.output().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn recordings_are_compared_by_function() {
    let scratch = Scratch::new("recordings");
    let (before, after) = (recording("./a.out 1", 0.3), recording("./a.out \\u001b[2J", 0.5));
    let files = [("before.json", &*before), ("after.json", &*after)];
    let output = scratch.compare(files, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.starts_with("topdown: from before.json to after.json\n"),
        "{text}"
    );
    assert!(text.contains("before: ./a.out 1\nafter: ./a.out \\u{1b}[2J\n"), "{text}");
    assert!(text.contains("30.0 %      50.0 %       +20.0 points (+16.0 to +24.0)\n"), "{text}");
    let output = scratch.compare(files, &["-o", "changes.csv"]);
    assert!(output.status.success());
    assert!(
        fs::read_to_string(scratch.0.join("changes.csv"))
            .unwrap()
            .contains(",0.200000,0.160000,0.240000,yes\n")
    );
    let output = scratch.compare(files, &["-o", "changes.html"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_cannot_be_compared_is_named() {
    let scratch = Scratch::new("refused");
    let whole = recording("./a.out", 0.3);
    let damaged = whole.replace("\"own\"", "\"other\"");
    for (files, wanted) in [
        ([("a.json", &*whole), ("b.csv", REPORT)], "a.json is a recording of topdown record, b.csv is none"),
        ([("b.csv", REPORT), ("a.json", &*whole)], "a.json is a recording of topdown record, b.csv is none"),
        ([("a.json", &*whole), ("b.json", &*damaged)], "b.json: a damaged recording: missing field `own`"),
        (
            [("a.json", &*whole), ("b.html.12.recording", KEPT)],
            "b.html.12.recording: it is a .recording, of which profiles are made: \
             `topdown record --from b.html.12.recording -o b.html.12.json`, and compare the JSON",
        ),
        (
            [("a.csv", PROFILE), ("b.csv", PROFILE)],
            "a.csv: it is a profile in CSV, which is not compared: write the profile as JSON (`topdown record -o FILE.json`,",
        ),
        (
            [("a.txt", "topdown: a.out (1.0 s)\n"), ("b.csv", REPORT)],
            "a.txt: a page or text for people to read is not compared",
        ),
        (
            [("b.csv", REPORT), ("a.html", "<!DOCTYPE html>\n")],
            "a.html: a page or text for people to read is not compared",
        ),
        ([("a.json", "{}"), ("b.csv", REPORT)], "a.json: no report of this version"),
        ([("a.json", "{"), ("b.csv", REPORT)], "a.json: no JSON: EOF"),
    ] {
        let output = scratch.compare(files, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(wanted) && output.stdout.is_empty(), "{wanted}: {said}");
    }
    assert!(scratch.compare([("a.csv", REPORT), ("b.csv", REPORT)], &[]).status.success());
}

#[test]
fn a_condition_fails_beyond_the_bounds_alone() {
    let scratch = Scratch::new("conditions");
    let report = |retiring: f64| {
        format!("region,pid,executions,slots,time_ns,retiring,error_1\n,,1,2,3,{retiring},0.01\n")
    };
    let (before, fallen, near) = (report(0.5), report(0.45), report(0.49));
    let compare = |after: &str, options: &[&str]| {
        let output = scratch.compare([("a.csv", &before), ("b.csv", after)], options);
        (output.status.code(), String::from_utf8(output.stderr).unwrap(), output.stdout)
    };
    let (status, said, shown) = compare(&fallen, &["--fail-if", "core_bound>90,retiring<-2"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("core_bound>90: core_bound was not measured in both"), "{said}");
    assert!(
        said.contains("retiring<-2: retiring has changed by -5.0 points (-7.0 to -3.0)") && !shown.is_empty(),
        "{said}"
    );
    let (status, said, _) = compare(&fallen, &["--fail-if=retiring<-2"]);
    assert_eq!(status, Some(3), "{said}");
    assert_eq!(compare(&fallen, &["--fail-if=retiring<-4"]).0, Some(0));
    assert_eq!(compare(&near, &["--fail-if=retiring<0,retiring>0"]).0, Some(0));
    let (status, said, _) = compare(&near, &["--fail-if=slots>5"]);
    assert!(status == Some(2) && said.contains("there is no node slots"), "{said}");
    let of_recordings = scratch.compare(
        [("a.json", &recording("a", 0.5)), ("b.json", &recording("b", 0.4))],
        &["--fail-if=retiring<-1"],
    );
    let said = String::from_utf8(of_recordings.stderr).unwrap();
    assert!(of_recordings.status.code() == Some(1) && said.contains("--fail-if is of reports"), "{said}");
}

#[test]
fn two_rows_of_a_name_are_compared_each_with_its_own() {
    let scratch = Scratch::new("kinds");
    let report = |slots: u64, ns: u64| {
        format!(
            "region,pid,executions,slots,time_ns,retiring,error_1,time_alone,wall_ns\n,,1,9000,3000,0.5,0.01,no,\n\
             solve,,2,{slots},1000,0.5,0.01,no,\nsolve,,3,,{ns},,,yes,{ns}\n\"a\nb\",,1,100,10,0.5,0.01,no,\n"
        )
    };
    let (before, after) = (report(800, 50_000), report(900, 70_000));
    let output = scratch
        .compare([("a.csv", &before), ("b.csv", &after)], &["--csv", "--fail-if", "a\\u{a}b:retiring>5"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "solve,slots,800,900,100,,",
        "solve (time alone),wall_ns,50000,70000,20000,,",
        "solve (time alone),executions,3,3,0,,",
    ] {
        assert!(shown.lines().any(|one| one == line), "{line}: {shown}");
    }
}
