//! Rows that count nodes which somebody names (`td_options.nodes`).
#![forbid(unsafe_code)]

use super::groups::{self, DeepCore};
#[cfg(test)]
use super::text_of_name;
use super::{DeepFacts, END, MOST_ROWS, events_of, own_of, put_rows, row_at, rows, text_of};
#[cfg(test)]
use crate::model::Counters;
use crate::model::metrics::Metric;
use crate::model::{self, PlacedRow};
use crate::options::WantedNodes;
use crate::sys::cpu::Identity;
use crate::sys::short;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

/// The row of this CPU, or of its P-cores, that counts these nodes, and as many below them as it has room for: down to this level, or
/// their own children (0). It is made where somebody first asks for it.
///
/// # Errors
/// Why there is none.
pub(crate) fn row_of_nodes(cpu: &Identity, wanted: &WantedNodes) -> Result<PlacedRow, String> {
    let mut nodes: Vec<Metric> = wanted.ids().filter_map(model::metric).copied().collect();
    short::sort_by_key(&mut nodes, |node| node.id); // (a list in another order is the same)
    let (_, own) = model::by_counters(cpu).ok_or("its core is not counted")?;
    let names: Vec<&str> = nodes.iter().map(|node| node.field()).collect();
    let name = match wanted.level {
        0 => format!("{} with {}", own.core, names.join(", ")),
        level => format!("{} with {} to level {level}", own.core, names.join(", ")),
    };
    let made = || rows().find(|(_, row)| row.core == name);
    if let Some(row) = made() {
        return Ok(row);
    }
    // (of two threads that ask at once one makes it; in a forked child the lock may be held for ever)
    static MAKING: Mutex<()> = Mutex::new(());
    let _one =
        (0..MOST_WAITS).find_map(|_| MAKING.try_lock().ok().or_else(|| (std::thread::yield_now(), None).1));
    if let Some(row) = made() {
        return Ok(row);
    }
    let Some((place, text)) = text_of(cpu).filter(|(_, text)| !text.nodes.is_empty()) else {
        return model::row_with(own, &nodes);
    };
    // (there may be many lists: the rows of the tree come before them)
    let _tree = super::of(cpu);
    if END.load(Relaxed) >= MOST_ROWS {
        return Err(NO_ROOM.into());
    }
    let (own, counters) = own_of(&text).ok_or("its core is not counted")?;
    let core = DeepCore::new(&text, events_of(place, &text), own, counters);
    let group = groups::plan_nodes(&core, &nodes, wanted.level, &DeepFacts::of_this_machine(own))?;
    let place = put_rows(own, &[group.counters], |_| name.clone());
    let place = place.ok_or(NO_ROOM)?;
    Ok((place as u32, row_at(place).ok_or("no row")?))
}

/// Why no row can be made.
const NO_ROOM: &str = "this process has asked for so many other lists that there is no room for one more";

/// How often another thread is awaited that makes a row.
const MOST_WAITS: u32 = 10_000;

/// The group that such nodes take.
#[cfg(test)]
pub(crate) fn planned_nodes(
    name: &str,
    facts: &DeepFacts,
    nodes: &[Metric],
    level: u32,
) -> Result<(&'static Counters, Vec<Metric>), String> {
    let (place, text, own, counters) = text_of_name(name);
    let core = DeepCore::new(&text, events_of(place, &text), own, counters);
    let group = groups::plan_nodes(&core, nodes, level, facts)?;
    Ok((group.counters, group.told))
}
