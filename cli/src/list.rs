//! `topdown list`: which CPUs can be measured.

use crate::{print, say};
use serde::Serialize;
use std::process::ExitCode;
use topdown::{Core, Survey, companions, cores, deep_tree, metric, not_measured, probe};
use topdown_report::clean;
use topdown_report::terminal::{Layout, Stream};

/// The family of cores that MIDR_EL1 identifies; their models are its part numbers.
const ARM64: u32 = 0;

/// Options of `topdown list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON array, for scripts
    #[arg(long)]
    json: bool,
    /// The nodes of this CPU's tree to its last level: of what each is a share, above which share it is flagged, the event that locates it,
    /// and which cannot be counted here, and why
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    nodes: bool,
    /// The companion figures of this CPU (`topdown stat --metrics`): what each is in, the groups that it is of, and which cannot be counted
    /// here, and why
    #[arg(long, conflicts_with_all = ["json", "markdown", "nodes"])]
    metrics: bool,
    /// Print the table of docs/cpus.md
    #[arg(long, hide = true, conflicts_with = "json")]
    markdown: bool,
}

/// What `topdown list --help` says of the rest.
pub const HELP: &str = "\
First this machine: what it can be measured to, or why it cannot be. Then, for each kind of core: what is counted, how many general counters that takes, down to which level, and how it was proved. Levels
that no group of counters holds whole are counted below one node at a time. Below, cores that cannot be measured, and why.";

/// Exit status 0, unless nothing can be written.
pub fn run(arguments: &Arguments) -> ExitCode {
    let layout = Layout::of(Stream::Output);
    let text = if arguments.json {
        topdown_report::json(&cores().map(ListJson::new).collect::<Vec<_>>())
    } else if arguments.nodes {
        nodes(&layout)
    } else if arguments.metrics {
        metrics(&layout)
    } else if arguments.markdown {
        markdown()
    } else {
        table(&probe(), &layout)
    };
    match print(&text) {
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// The tree of deeper levels of the CPU that runs this.
fn nodes(layout: &Layout) -> String {
    let line = |text: &str| layout.sentence(text) + "\n";
    let Some(tree) = deep_tree() else {
        return line("no tree of levels 3 to 6 is published for this CPU, or its core is not counted");
    };
    let head = format!("TMA {}: level, node, threshold, and what to do", tree.version);
    let mut out = layout.heading(&line(&head));
    for id in tree.nodes() {
        let Some(node) = metric(id) else { continue };
        let level = tree.level(id);
        let above = tree.threshold(id).map_or(String::new(), |above| format!("  > {:.0} %", 100.0 * above));
        let located = tree.samples(id).next();
        let located = located.map_or(String::new(), |event| format!("  [{}]", event.name.to_lowercase()));
        let why = tree.untold().find(|(untold, _)| *untold == id);
        let why = match why {
            Some(_) if tree.timed().any(|timed| timed == id) => "  with --record-tpebs".into(),
            Some((_, why)) => format!("  not counted here: {why}"),
            None => String::new(),
        };
        let indent = "  ".repeat(level as usize - 1);
        out += &line(&format!("{indent}{level} {}{above}{located}{why}", node.field()));
        if let Some(advice) = topdown_report::advice(node.field()) {
            out += &line(&format!("{indent}    {advice}"));
        }
    }
    out
}

/// The companion figures of the CPU that runs this.
fn metrics(layout: &Layout) -> String {
    let line = |text: &str| layout.sentence(text) + "\n";
    let companions = companions();
    if companions.is_empty() {
        return line("no companion figures are published for this CPU, or its core is not counted");
    }
    let mut out = layout.heading(&line("companion figures: name, what it is in, and its groups"));
    for one in &companions {
        let why =
            if one.untold.is_empty() { String::new() } else { format!("  not counted here: {}", one.untold) };
        out += &line(&format!("{}  {}  [{}]{why}", one.name, one.unit, one.groups.join(" ")));
    }
    out
}

#[derive(Serialize)]
struct ListJson {
    core: &'static str,
    base: &'static str,
    subtree: &'static str,
    vendor: &'static str,
    family: u32,
    models: &'static [u32],
    slots_per_cycle: u32,
    general_counters: usize,
    level: u32,
    proved: &'static str,
    no_deeper: String,
    untold: &'static [&'static str],
}

impl ListJson {
    fn new(core: Core) -> ListJson {
        ListJson {
            core: core.core,
            base: core.base,
            subtree: core.subtree,
            vendor: core.vendor,
            family: core.family,
            models: core.models,
            slots_per_cycle: core.slots_per_cycle,
            general_counters: core.general_counters,
            level: core.level,
            proved: core.proved,
            no_deeper: core.no_deeper.to_string(),
            untold: core.untold,
        }
    }
}

/// A core, and each way to count it: the first unless it is told otherwise.
struct Ways(Vec<Core>);

fn all() -> Vec<Ways> {
    let mut all: Vec<Ways> = cores().filter(|core| core.is_default).map(|core| Ways(vec![core])).collect();
    for core in cores().filter(|core| !core.is_default) {
        let of_core = |ways: &&mut Ways| ways.0[0].base == core.base;
        all.iter_mut().filter(of_core).for_each(|ways| ways.0.push(core));
    }
    all
}

impl Ways {
    fn own(&self) -> &Core {
        &self.0[0]
    }

    fn parts(&self) -> impl Iterator<Item = &Core> {
        self.0.iter().filter(|core| !core.subtree.is_empty())
    }

    /// "SLOTS and PERF_METRICS, or 8 or 7 general-purpose counters", "5 or 4 general-purpose counters; 6 below a node".
    fn source(&self) -> String {
        let mut counters: Vec<usize> = Vec::new();
        for core in self.0.iter().filter(|core| core.subtree.is_empty() && core.general_counters > 0) {
            if !counters.contains(&core.general_counters) {
                counters.push(core.general_counters);
            }
        }
        let words: Vec<String> = counters.iter().map(usize::to_string).collect();
        let below = self.parts().map(|part| part.general_counters).max();
        let below = below.map_or(String::new(), |most| format!("; {most} below a node"));
        let counters = format!("{} general counters{below}", words.join(" or "));
        match (self.own().general_counters, words.is_empty()) {
            (0, true) => "SLOTS and PERF_METRICS".into(),
            (0, false) => format!("SLOTS and PERF_METRICS, or {counters}"),
            _ => counters,
        }
    }

    /// "2, and 3 below ifetch_latency, core_bound; not branch_detect".
    fn levels(&self) -> String {
        let below: Vec<&str> = self.parts().map(|part| part.subtree).collect();
        let mut text = self.own().level.to_string();
        if let Some(deepest) = self.parts().map(|part| part.level).max() {
            let rest = if deepest == self.own().level { "the rest" } else { &deepest.to_string() };
            text += &format!(", and {rest} below {}", below.join(", "));
        }
        if !self.own().untold.is_empty() {
            text += &format!("; not {}", self.own().untold.join(", "));
        }
        text
    }

    fn proved(&self) -> String {
        let words = |core: &Core| if core.proved.is_empty() { "not run" } else { core.proved };
        let own = words(self.own());
        match self.parts().next().filter(|part| words(part) != own) {
            Some(part) => format!("{own}; level {}: {}", part.level, words(part)),
            None => own.into(),
        }
    }
}

/// The machine that runs this, then all others.
fn table(survey: &Survey, layout: &Layout) -> String {
    let row = |core: &str, what: &str| match layout.is_terminal {
        true => format!("{core}\n{}\n", layout.sentence(&format!("    {what}"))),
        false => format!("{core:40} {what}\n"),
    };
    let ways_of = |ways: &Ways| format!("level {}; by {}; {}", ways.levels(), ways.source(), ways.proved());
    let own = survey.open.as_ref().ok();
    let (of_this, others): (Vec<_>, Vec<_>) = all()
        .into_iter()
        .partition(|ways| own.is_some_and(|info| ways.0.iter().any(|core| core.core == info.core)));
    let mut out = layout.heading("This machine:") + "\n";
    let cpu = survey.findings.iter().find(|finding| finding.name == "cpu");
    out += &(layout.sentence(&clean(cpu.map_or("", |cpu| &cpu.found))) + "\n");
    let measured = match &survey.open {
        Ok(info) => format!("    measured down to level {}, as {}", info.level, info.core),
        Err(why) => format!("    not measured: {why}"),
    };
    out += &(layout.sentence(&clean(&measured)) + "\n");
    of_this.iter().for_each(|ways| out += &row(ways.own().core, &ways_of(ways)));
    out += &format!("\n{}\n", layout.heading("Others that are measured:"));
    others.iter().for_each(|ways| out += &row(ways.own().core, &ways_of(ways)));
    out += &format!("\n{}\n", layout.heading("Known, and not measured:"));
    not_measured().for_each(|(core, why)| out += &row(core, why));
    out
}

/// "0x6a, 0x6c", and of many in a row the first and the last.
fn models(models: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for model in models {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *model => *last = *model,
            _ => ranges.push((*model, *model)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { format!("{first:#x}") } else { format!("{first:#x}-{last:#x}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn markdown() -> String {
    let mut out = String::from(
        "| core | family | models | slots per cycle | counted by | level | proved |\n|---|---|---|---|---|---|---|\n",
    );
    for ways in all() {
        let core = ways.own();
        out += &format!(
            "| {} | {} {} | {} | {} | {} | {} | {} |\n",
            core.core,
            core.vendor,
            if core.family == ARM64 { "arm64".into() } else { core.family.to_string() },
            models(core.models),
            if core.slots_per_cycle == 0 { "not known".into() } else { core.slots_per_cycle.to_string() },
            ways.source(),
            ways.levels(),
            ways.proved(),
        );
    }
    out
}
