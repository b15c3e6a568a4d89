//! What `topdown list` says is what docs/cpus.md says.

use serde_json::Value;
use std::process::Command;

fn list(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_topdown")).arg("list").args(arguments).output().expect("it runs");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// TOPDOWN_WRITE_CPUS=1 writes it.
#[test]
fn the_document_has_every_core() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cpus.md");
    let document = std::fs::read_to_string(path).expect("it is there");
    let begin = document.find("| core |").expect("a table");
    let end = document[begin..].find("\n\n").map_or(document.len(), |end| begin + end + 1);
    let now = format!("{}{}{}", &document[..begin], list(&["--markdown"]), &document[end..]);
    if std::env::var_os("TOPDOWN_WRITE_CPUS").is_some() {
        std::fs::write(path, now).expect("it can be written");
    } else {
        assert!(document == now, "run `make cpus` and commit it");
    }
}

#[test]
fn json_has_what_can_be_measured() {
    let json: Value = serde_json::from_str(&list(&["--json"])).expect("JSON");
    let all = json.as_array().expect("an array");
    let zen = all.iter().find(|core| core["core"] == "Zen 4").expect("it is there");
    assert_eq!(
        (&zen["slots_per_cycle"], &zen["general_counters"], &zen["level"]),
        (&6.into(), &5.into(), &1.into())
    );
    // (in the words of the command)
    let why = zen["no_deeper"].as_str().expect("a text");
    assert!(why.ends_with("; `topdown stat --subtree` counts a part of it"), "{why}");
    assert!(!json.to_string().contains("td_options"), "{json}");
    assert!(all.iter().all(|core| !core["models"].as_array().expect("an array").is_empty()));
    assert!(all.iter().all(|core| core["core"] != "made-up core" && core["core"] != "Zen 3"));
}

#[test]
fn a_core_that_cannot_be_measured_is_named_with_the_reason_and_what_is_possible() {
    let text = list(&[]);
    let (measured, not) = text.split_once("Known, and not measured:\n").expect("two parts");
    let n1 = not.lines().find(|line| line.starts_with("Neoverse N1 ")).expect("a line");
    assert!(
        n1.contains("count stalled cycles, not slots: `perf stat -e cycles,stalled-cycles-frontend"),
        "{n1}"
    );
    assert!(
        !measured.contains("Neoverse N1")
            && measured.contains("1, and 2 below bad_speculation, frontend_bound, backend_bound; by 3 "),
        "{measured}"
    );
    assert!(!not.contains("Neoverse N2"), "{not}");
}

#[test]
fn this_machine_comes_first() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_topdown")).args(["check", "--json"]).output().expect("it runs");
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = list(&[]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("This machine:"));
    assert_eq!(lines.next(), check["findings"][0]["found"].as_str());
    let measured = lines.next().expect("a line").trim_start();
    let works = check["overall"]["works"] == true;
    assert!(
        measured.starts_with(if works { "measured down to level" } else { "not measured: " }),
        "{measured}"
    );
    // (it is no more among the others)
    if let Some(core) = check["overall"]["core"].as_str() {
        let others = text.split_once("Others that are measured:").expect("others").1;
        assert!(!others.lines().any(|line| line.starts_with(&format!("{core} "))), "{text}");
    }
}
