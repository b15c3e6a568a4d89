//! What sorts and filters a list of functions: hidden until the script shows it, since without it the list is complete all the same.
#![forbid(unsafe_code)]

use crate::profile::{Profile, ProfiledCore, ProfiledFunction};
use maud::{Markup, html};
use topdown_report::count;

/// Sorts and filters.
pub(super) const SCRIPT: &str = include_str!("sorting.js");

/// What lists can be sorted by, besides names: in the script's words, and in the reader's.
pub(super) struct SortKey {
    pub key: String,
    pub title: String,
}

impl SortKey {
    fn new(key: &str, title: &str) -> SortKey {
        SortKey { key: key.into(), title: title.into() }
    }

    /// Of functions with shares; the first is how they come.
    pub fn of_shares(core: &ProfiledCore) -> Vec<SortKey> {
        let shares = core.nodes.iter().filter(|node| node.level == 1).enumerate();
        let shares = shares.map(|(k, node)| SortKey::new(&format!("share{k}"), &node.metric.title()));
        [SortKey::new("wasted", "wasted slots"), SortKey::new("time", "CPU time")]
            .into_iter()
            .chain(shares)
            .collect()
    }

    /// Of functions with nothing but a part of all.
    pub fn of_parts(is_time: bool) -> Vec<SortKey> {
        vec![SortKey::new("time", if is_time { "CPU time" } else { "events" })]
    }
}

/// The controls of a list of so many functions.
pub(super) fn controls(keys: &[SortKey], functions: usize) -> Markup {
    let order: Vec<&str> = keys.iter().map(|key| &*key.key).collect();
    html! {
        div.tools.sorting.scripted hidden data-order=(order.join(" ")) {
            form onsubmit="return false" {
                label { "filter " input.filter type="search" size="22" placeholder="part of a name"; }
                output { (count(functions as u64, "function")) }
            }
            div.keys role="group" aria-label="sort by" {
                span aria-hidden="true" { "sort by" }
                @for (k, SortKey { key, title }) in keys.iter().enumerate() {
                    button type="button" data-key=(key) aria-pressed=(k == 0) { (title) }
                }
                button type="button" data-key="name" aria-pressed="false" { "name" }
            }
        }
    }
}

/// The values of a function in the order of its list's keys; of one whose slots cannot be told there are no shares.
pub(super) fn values(profile: &Profile, core: &ProfiledCore, function: &ProfiledFunction) -> String {
    let figures = &function.own;
    let told = figures.told(&core.nodes).ok();
    let shares = core.nodes.iter().zip(told.iter().flat_map(|told| &told.shares));
    let shares = shares.filter(|(node, _)| node.level == 1).map(|(_, share)| share.value);
    let wasted = profile.held.is_none().then(|| figures.wasted(&core.nodes).unwrap_or(0.0));
    let all = wasted.into_iter().chain([figures.time.value]).chain(shares);
    all.map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(" ")
}
