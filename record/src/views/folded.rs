//! Folded stacks: functions from the outermost on, and microseconds of CPU time, or counts of a condition's event.
#![forbid(unsafe_code)]

use crate::profile::Profile;
use std::collections::BTreeMap;

pub(super) fn folded(profile: &Profile) -> String {
    let unit = if profile.is_of_time() { 1000 } else { 1 };
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, ns) in &profile.stacks {
        // (a semicolon separates functions, a line end lines)
        let names = stack.functions().map(|(name, _)| name.replace([';', '\n'], ":"));
        *lines.entry(names.collect::<Vec<_>>().join(";")).or_default() += ns;
    }
    lines.into_iter().map(|(stack, ns)| format!("{stack} {}\n", ns / unit)).collect()
}
