//! Comma-separated values (RFC 4180): a row for each function, below one of names.
#![forbid(unsafe_code)]

use super::name;
use crate::profile::{FunctionFigures, Profile};
use std::fmt::Write;
use topdown_report::model::SIMULATED_PATH;
use topdown_report::{ShareInterval, quoted};

/// Each profile in CSV begins so.
pub(crate) const BEGINNING: &str = "core,function,module,scope,";

/// Fields of a value and its ends, or nothing.
pub(crate) fn with_ends(part: Option<ShareInterval>) -> String {
    part.map_or(",,".into(), |part| format!("{:.6},{:.6},{:.6}", part.value, part.low, part.high))
}

fn figures(row: &mut String, figures: &FunctionFigures, nodes: &[Option<usize>]) {
    let told = figures.shares.as_ref().ok();
    let windows = told.map_or(0, |told| told.windows);
    let _ = write!(row, ",{},{},{windows}", figures.time_ns, with_ends(Some(figures.time)));
    for node in nodes {
        let share = told.zip(*node).map(|(told, node)| told.shares[node]);
        let _ = write!(row, ",{}", with_ends(share));
    }
}

pub(super) fn csv(profile: &Profile) -> String {
    let mut names: Vec<&str> = Vec::new();
    for node in profile.cores.iter().flat_map(|core| &core.nodes) {
        if !names.contains(&name(node)) {
            names.push(name(node));
        }
    }
    // (of a condition they are parts of the sampling event's counts)
    let time = match profile.is_of_time() {
        true => "time_ns,time,time_low,time_high",
        false => "events,part,part_low,part_high",
    };
    let mut text = format!("{BEGINNING}{time},windows");
    names.iter().for_each(|name| _ = write!(text, ",{name},{name}_low,{name}_high"));
    let by = if profile.is_of_time() { format!(",{}", profile.time_by()) } else { String::new() };
    text.push_str(if by.is_empty() { "" } else { ",time_by" });
    // (each row says that it is made up, whoever takes some of them)
    text.push_str(if profile.simulated.is_some() { ",path\n" } else { "\n" });
    let by = if profile.simulated.is_some() { format!("{by},{SIMULATED_PATH}") } else { by };
    let places = |core: usize| -> Vec<Option<usize>> {
        let nodes = &profile.cores[core].nodes;
        names.iter().map(|wanted| nodes.iter().position(|node| name(node) == *wanted)).collect()
    };
    for (place, core) in profile.cores.iter().enumerate() {
        let _ = write!(text, "{},\"\",\"\",all", quoted(core.name));
        figures(&mut text, &core.all, &places(place));
        let _ = writeln!(text, "{by}");
    }
    for function in &profile.functions {
        for (scope, of) in [("own", &function.own), ("inclusive", &function.inclusive)] {
            let core = profile.cores[function.core].name;
            let _ = write!(
                text,
                "{},{},{},{scope}",
                quoted(core),
                quoted(&function.name),
                quoted(&function.module)
            );
            figures(&mut text, of, &places(function.core));
            let _ = writeln!(text, "{by}");
        }
    }
    text
}
