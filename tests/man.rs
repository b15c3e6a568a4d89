//! man/*.3 are made of the headers' comments and of examples, by the list man/pages: `make man` writes them.

#[path = "man/header.rs"]
mod header;
#[path = "man/mdoc.rs"]
mod mdoc;
#[path = "man/page.rs"]
mod page;
#[path = "man/said.rs"]
mod said;

use header::Header;
use page::Page;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What each library exports, and whose headers have it.
const SYMBOLS: [&str; 3] = ["abi/symbols.txt", "abi/record-symbols.txt", "abi/jevents-symbols.txt"];
/// For another size of a struct: a header names them, programs do not.
const OF_OTHER_SIZES: &str = "jevents_attr";
/// Has a page in section 2, before which `man` would show ours.
const SYSTEM_CALL: &str = "perf_event_open";
/// What begins so is the library's own.
const OWN: [&str; 4] = ["TD_INLINE_", "TD_CONTROL_", "TD_REGION_ENABLED", "td_region_functions"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn pages() -> Vec<Page> {
    Page::all(&read("man/pages"))
}

/// The headers of these pages, by name.
fn headers(pages: &[Page]) -> BTreeMap<String, Header> {
    let names = pages.iter().flat_map(|page| &page.headers).cloned().collect::<BTreeSet<_>>();
    names.into_iter().map(|name| (name.clone(), Header::new(&read(&format!("include/{name}"))))).collect()
}

#[test]
fn pages_are_up_to_date() {
    let pages = pages();
    let headers = headers(&pages);
    let homes: BTreeMap<&str, &str> = pages
        .iter()
        .flat_map(|page| page.items(&headers).into_iter().map(move |item| (item, &*page.name)))
        .filter(|(item, _)| item.is_called())
        .map(|(item, page)| (&*item.name, page))
        .collect();
    let mut stale = Vec::new();
    for page in &pages {
        let made = page.made(&headers, &homes, &read(&page.example));
        let path = format!("man/{}.3", page.name);
        if std::env::var_os("TOPDOWN_WRITE_MAN").is_some() {
            fs::write(root().join(&path), &made).expect("the page can be written");
        }
        if fs::read_to_string(root().join(&path)).unwrap_or_default() != made {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "{stale:?} are not what the headers say; run `make man` and commit them");
    let names: BTreeSet<_> = pages.iter().map(|page| format!("{}.3", page.name)).collect();
    for entry in fs::read_dir(root().join("man")).expect("there are pages") {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".3") || names.contains(&name), "man/{name} is not in man/pages");
    }
}

#[test]
fn all_that_is_public_has_a_page() {
    let pages = pages();
    let headers = headers(&pages);
    let mut placed = BTreeMap::<&str, usize>::new();
    for item in pages.iter().flat_map(|page| page.items(&headers)) {
        *placed.entry(&item.name).or_default() += 1;
    }
    let twice: Vec<_> = placed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "in several pages: {twice:?}");
    let symbols = SYMBOLS.map(read).join("\n");
    let symbols = symbols.lines().filter_map(|line| line.split('@').next()).filter(|name| !name.is_empty());
    let public = headers.iter().filter(|(name, _)| !name.starts_with("jevents/"));
    let public = public
        .flat_map(|(_, header)| &header.items)
        .filter(|item| !item.comment.is_empty() && !OWN.iter().any(|own| item.name.starts_with(own)));
    let wanted = symbols
        .filter(|name| !name.starts_with(OF_OTHER_SIZES) && *name != SYSTEM_CALL)
        .chain(public.map(|item| &*item.name));
    let missing: BTreeSet<_> = wanted.filter(|name| !placed.contains_key(name)).collect();
    assert!(missing.is_empty(), "in no page of man/pages: {missing:?}");
}
