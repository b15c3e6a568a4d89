//! Groups of trees of deeper levels by their names, as reports and programs that simulate another CPU name them. (Rows of such groups come
//! behind those of the table for good, so this is a process of its own.)

use topdown::{Options, TopDown, core_named, core_of_subtree, cores, decode_tree, fingerprint};

/// The groups of a text, each by the name of the first node that it tells.
fn groups(table: &str) -> Vec<&'static str> {
    let path = format!("{}/cpus/deep/{table}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let nodes = text.lines().filter_map(|line| line.strip_prefix("node")?.split_once('='));
    let title = |path: &str| path.rsplit('>').next().unwrap_or_default().trim().replace('_', " ");
    nodes.filter_map(|(path, _)| core_named(&format!("{table}, {}", title(path)))).collect()
}

#[test]
fn groups_are_simulated_by_their_names_and_each_tells_its_nodes() {
    let listed = cores().count();
    let mut told = 0;
    for (table, core) in [("lnl-p", "Lion Cove"), ("skx", "Skylake or Cascade Lake")] {
        let groups = groups(table);
        assert!(groups.len() >= 10, "{table}: {groups:?}");
        for name in groups {
            assert_eq!(core_of_subtree(name), core);
            let td = TopDown::open(&Options { simulate: true, core: name, ..Options::default() }).unwrap();
            assert_eq!(td.info().unwrap().core, name);
            let mut sample = td.read().unwrap();
            while sample.slots < 1_000_000 {
                sample = td.read().unwrap();
            }
            let nodes = decode_tree(None, &sample).unwrap();
            let measured =
                |level: u32| nodes.iter().filter(move |node| node.level == level && node.measured == 1);
            assert_eq!(measured(1).count(), 4, "{name}");
            assert!(
                nodes
                    .iter()
                    .all(|node| node.measured == 0 || node.low <= node.value && node.value <= node.high)
            );
            told += (2..=6).map(|level| measured(level).count()).sum::<usize>();
        }
    }
    assert!(told > 100, "{told}");
    // they are no cores of the list, and each has a fingerprint of its own
    assert_eq!(cores().count(), listed);
    let all: Vec<Option<u64>> = groups("lnl-p").into_iter().map(fingerprint).collect();
    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() == all.len() && all.iter().all(Option::is_some));
    assert!(core_named("lnl-p, no such node").is_none() && core_named("no such table, x").is_none());
}
