//! Which groups take turns in a thread for nodes of deeper levels that somebody names. (As tests/deep.rs, a process of its own.)

use topdown::{RegionTurn, TD_NODE_NONE, deep_tree_of};

fn turns_of(names: &str) -> Result<Vec<RegionTurn>, String> {
    deep_tree_of("spr").unwrap().region_turns(&[TD_NODE_NONE], names.split(','))
}

#[test]
fn each_node_that_is_named_is_in_one_group_behind_the_whole_levels() {
    let tree = deep_tree_of("spr").unwrap();
    let names = ["l1_bound", "tma_icache_misses", "divider"];
    let turns = turns_of(&names.join(",")).unwrap();
    assert_eq!(turns[0], RegionTurn::default());
    let mut told: Vec<u32> = turns[1..].iter().flat_map(|turn| turn.nodes.clone()).collect();
    let mut wanted = names.map(|name| tree.node_of_name(name).unwrap());
    told.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(told, wanted);
    for turn in &turns[1..] {
        let group = tree.groups().iter().find(|group| group.number == turn.part.group).unwrap();
        assert!(turn.nodes.iter().all(|id| group.nodes.contains(id)));
    }
}

#[test]
fn what_is_no_node_and_what_takes_too_many_groups_is_refused() {
    let is = |names: &str, why: &str| {
        let error = turns_of(names).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    is("l1_bound,nothing", "nothing is no node of this CPU's tree");
    let tree = deep_tree_of("spr").unwrap();
    let all = tree.nodes().filter(|id| !tree.is_untold(*id));
    let all: Vec<&str> = all.map(|id| topdown::metric(id).unwrap().field()).collect();
    is(&all.join(","), "a thread has at most 8");
    if let Some((id, why)) = tree.untold().next() {
        is(topdown::metric(id).unwrap().field(), why);
    }
}
