//! Processes in views for people.
#![forbid(unsafe_code)]

use super::*;

#[test]
fn processes_have_a_table_of_what_ran_in_them() {
    let mut profile = profile();
    let text = |profile: &Profile| String::from_utf8(View::Text.write(profile, &HEADING)).unwrap();
    let html = |profile: &Profile| String::from_utf8(View::Html.write(profile, &HEADING)).unwrap();
    assert!(!text(&profile).contains("process") && !html(&profile).contains("Processes"));
    for (name, ns) in [("less", 1_000_000_000), ("more", 3_000_000_000), ("hardly", 10_000_000)] {
        let process = function(name, ns, Some([0.5, 0.1, 0.15, 0.25]));
        let (own, lines) = (figures(0, None), Vec::new());
        let (module, path) = ("[process]".into(), String::new());
        profile.functions.push(ProfiledFunction { own, lines, module, path, ..process });
    }
    profile.functions[2].inclusive.time.value = 0.001;
    assert!(!text(&profile).contains("process"), "one alone");
    profile.functions[2].inclusive.time.value = 0.25;
    let text = text(&profile);
    let mut rows = text.lines().skip_while(|line| !line.ends_with("   process"));
    assert!(rows.next().unwrap().starts_with("     time %   wasted"), "{text}");
    assert_eq!(
        rows.next().unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
        "75.0 ± 2.0 37.5 50.0 ± 1.0 10.0 ± 1.0 15.0 ± 1.0 25.0 ± 1.0 more"
    );
    assert!(rows.next().unwrap().starts_with(" 25.0 ± 2.0     12.5") && !text.contains("hardly"), "{text}");
    let page = html(&profile);
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}: {page}"));
    assert!(at("Processes that waste most slots") < at(">more<") && at(">more<") < at(">less<"));
    assert_eq!(page.matches(">more<").count(), 1);
    profile.held = Some(held());
    let (text, page) = (
        super::text::text(&profile, &HEADING, false, &topdown_report::terminal::Layout::FILE),
        html(&profile),
    );
    assert!(text.contains("samples   process\n 75.0 ± 2.0          50   more\n"), "{text}");
    assert!(page.contains("processes in which most of the stretches end"));
}
