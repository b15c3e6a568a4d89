//! The report as one page, which needs no other file, no network, and no script: the one in it sorts and hides.
#![forbid(unsafe_code)]

mod bar;

use crate::model::{DOUBTFUL, Figures, Item, Region, Report, Thread};
use crate::words::{self, clean, percent, thousands, time};
use bar::{LARGE, SMALL};
use std::collections::HashMap;
use topdown::{LEVEL_1, LEVEL_2, Metric};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");
/// Side by side, the largest if there are more.
const MOST_THREADS: usize = 48;
/// Regions with bars, the largest if there are more. (A page of 2,000 regions in 64 threads is to have less than 5 MB.)
const MOST_REGIONS: usize = 100;
/// Bars of regions in threads.
const MOST_CELLS: usize = 600;
/// Places of regions in the trees of threads.
const MOST_PLACES: usize = 2500;
/// Regions that are ranked by what they wasted.
const RANKED: usize = 10;
/// Hatching, for all bars.
const DEFINITIONS: &str = r##"<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="7" height="7" style="fill:var(--card);opacity:.25;stroke:none"/>
<rect width="3" height="7" style="fill:var(--card);opacity:.6;stroke:none"/></pattern></defs></svg>
"##;

/// Text in an element or a quoted attribute, harmless in either.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

pub fn render(report: &Report) -> String {
    let (command, much) = words::title(report);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<title>topdown: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         {DEFINITIONS}<main>\n<header>\n<p class=\"over\">Where the pipeline slots went</p>\n<h1 title=\"{title}\">{title}</h1>\n",
        title = escape(&command)
    );
    if let Some(occasion) = words::occasion(report) {
        out += &format!("<p class=\"machine\">{}</p>\n", escape(&occasion));
    }
    for machine in &report.machines {
        out += &format!("<p class=\"machine\">{}</p>\n", escape(&words::machine(machine)));
    }
    if words::simulated(report) {
        out += "<p class=\"simulated\">SIMULATED: the figures are made up, since there was nothing to measure with.</p>\n";
    }
    let remarks = words::remarks(report);
    if !remarks.is_empty() {
        let items: String = remarks.iter().map(|remark| format!("<li>{}</li>\n", escape(remark))).collect();
        out += &format!("<ul class=\"remarks\">\n{items}</ul>\n");
    }
    out += "</header>\n";
    if !report.machines.is_empty() {
        whole(&mut out, report, &much);
        wasted(&mut out, report);
        regions(&mut out, report);
        matrix(&mut out, report);
        trees(&mut out, report);
        figures(&mut out, report);
    }
    out += &format!(
        "<footer>libtopdown {}. Each share is within its bound of the truth; docs/report.md says how.</footer>\n\
         </main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        report.version
    );
    out
}

/// All of it, and what the colours mean.
fn whole(out: &mut String, report: &Report, much: &str) {
    let figures = &report.whole.inclusive;
    *out += &format!(
        "<section class=\"card\" id=\"whole\">\n<div class=\"whole\">\n<div>\n<p class=\"over\">Whole program</p>\n\
         <p class=\"number\">{} slots</p>\n<p class=\"meta\">{} of threads' time<br>{much}, {}</p>\n</div>\n<div>\n",
        words::slots(figures.slots as f64),
        time(figures.time_ns as f64),
        words::count(report.regions.len() as u64, "region")
    );
    bar_of(out, "whole program", figures);
    *out += "</div>\n</div>\n<div class=\"legend\">\n";
    for (k, metric) in LEVEL_1.iter().enumerate() {
        *out += &format!("<div><b><i style=\"background:var(--a{k})\"></i>{}</b>", metric.title());
        for (half, part) in LEVEL_2[2 * k..2 * k + 2].iter().enumerate() {
            let (place, title) = (2 * k + half, part.title());
            *out += &format!("<span><i style=\"background:var(--b{place})\"></i>{title}</span>");
        }
        *out += "</div>\n";
    }
    *out += &format!(
        "</div>\n<div class=\"marks\">\n<span><svg width=\"34\" height=\"16\"><rect class=\"a0\" width=\"17\" \
         height=\"16\"/><rect class=\"a3\" x=\"17\" width=\"17\" height=\"16\"/><g class=\"whisker\"><line class=\"halo\" \
         x1=\"9\" x2=\"25\" y1=\"8\" y2=\"8\"/><line x1=\"9\" x2=\"25\" y1=\"8\" y2=\"8\"/><line x1=\"9\" x2=\"9\" y1=\"4\" \
         y2=\"12\"/><line x1=\"25\" x2=\"25\" y1=\"4\" y2=\"12\"/></g></svg>the bound: a part may be so much longer or \
         shorter</span>\n<span><svg width=\"34\" height=\"16\"><rect class=\"a2\" width=\"34\" height=\"16\"/><rect \
         fill=\"url(#hatch)\" width=\"34\" height=\"16\"/></svg>the bound is above {:.0} points</span>\n<span><svg \
         class=\"bar\" style=\"display:inline\" width=\"34\" height=\"16\"><rect class=\"nothing\" x=\"1\" y=\"1\" \
         width=\"32\" height=\"14\"/></svg>not measured</span>\n<span>level 1 above, its parts (level 2) below</span>\n\
         </div>\n</section>\n",
        100.0 * DOUBTFUL
    );
}

/// Where the most slots were wasted, and what to do next.
fn wasted(out: &mut String, report: &Report) {
    let all = words::wasted(report, RANKED);
    if all.is_empty() {
        return;
    }
    *out += "<section class=\"card\" id=\"next\">\n<h2>Wasted slots, and what next</h2>\n<ol>\n";
    for one in all {
        let share = one.slots as f64 / report.whole.inclusive.slots as f64;
        let error = one.figures.level_1.map_or(0.0, |one| 100.0 * one.error);
        *out += &format!(
            "<li><b>{}</b> <span class=\"meta\">{} slots, {} of all; its shares within {error:.1} points</span><br>{}<br>{}</li>\n",
            escape(one.name),
            words::slots(one.slots as f64),
            percent(share),
            escape(&one.figures.bottleneck),
            escape(&one.next)
        );
    }
    *out += "</ol>\n</section>\n";
}

/// ": the 100 largest of 2,000", if there are so many.
fn largest(shown: usize, all: usize) -> String {
    if shown < all { format!(": the {shown} largest of {}", thousands(all as u64)) } else { String::new() }
}

/// A verdict, its bound, and the bar.
fn bar_of(out: &mut String, name: &str, figures: &Figures) {
    let bound = match (&figures.level_1, &figures.level_2) {
        (Some(one), Some(two)) => {
            format!("within {:.1} points; level 2: {:.1}", 100.0 * one.error, 100.0 * two.error)
        }
        (Some(one), None) => format!("within {:.1} points", 100.0 * one.error),
        _ => String::new(),
    };
    *out += &format!(
        "<div class=\"head\"><span class=\"verdict\">{}</span><span class=\"bound\">{bound}</span></div>\n{}\n",
        escape(&figures.bottleneck),
        bar::draw(&clean(name), figures, LARGE)
    );
    let others: String = words::other_nodes(figures)
        .map(|(name, node)| format!("<li>{}: {}</li>", escape(&name), escape(&node.text())))
        .collect();
    if !others.is_empty() {
        *out += &format!("<ul class=\"nodes\">{others}</ul>\n");
    }
}

/// A bar for each region.
fn regions(out: &mut String, report: &Report) {
    if report.regions.is_empty() {
        return;
    }
    let shown = report.regions.len().min(MOST_REGIONS);
    *out += &format!(
        "<section class=\"card\">\n<div class=\"tools\"><h2>Regions{}</h2>\n",
        largest(shown, report.regions.len())
    );
    *out += "<form onsubmit=\"return false\">\n\
             <span><label><input type=\"radio\" name=\"which\" id=\"inclusive\" checked> inclusive</label>\n\
             <label><input type=\"radio\" name=\"which\" id=\"exclusive\"> exclusive: without the regions in it</label></span>\n\
             <label class=\"scripted\" hidden>sort by <select id=\"order\"><option value=\"slots\">slots</option>\
             <option value=\"exclusive\">exclusive slots</option><option value=\"wasted\">wasted slots</option>\
             <option value=\"executions\">executions</option>\
             <option value=\"name\">name</option></select></label>\n\
             <input class=\"scripted\" hidden id=\"filter\" type=\"search\" placeholder=\"name\" aria-label=\"only names with\">\n\
             </form></div>\n<div id=\"regions\">\n";
    for region in &report.regions[..shown] {
        self::region(out, region);
    }
    *out += "</div>\n";
    let rest = &report.whole.exclusive;
    if rest.slots > 0 {
        *out += &format!(
            "<div class=\"exclusive\"><div class=\"region\"><div><div class=\"name\">outside regions</div>\n\
             <div class=\"meta\">{}</div></div>\n<div>",
            amount(rest)
        );
        bar_of(out, "outside regions", rest);
        *out += "</div></div></div>\n";
    }
    *out += "</section>\n";
}

/// "1.23 G slots, 123 ms, 45.6 % of all"
fn amount(figures: &Figures) -> String {
    let share = percent(figures.share.unwrap_or(0.0));
    format!("{} slots, {}, {share} of all", words::slots(figures.slots as f64), time(figures.time_ns as f64))
}

fn region(out: &mut String, region: &Region) {
    let Item { counts, inclusive, exclusive } = &region.item;
    let name = escape(&region.name);
    *out += &format!(
        "<article class=\"region\" data-name=\"{name}\" data-slots=\"{}\" data-exclusive=\"{}\" data-wasted=\"{}\" data-executions=\"{}\">\n\
         <div><div class=\"name\" title=\"{name}\">{name}</div>\n<div class=\"meta\">{}</div>\n",
        inclusive.slots,
        exclusive.slots,
        region.wasted.unwrap_or(0),
        counts.executions,
        words::count(counts.executions, "execution")
    );
    for (class, figures) in [("inclusive", inclusive), ("exclusive", exclusive)] {
        let share = figures.share.unwrap_or(0.0);
        *out += &format!(
            "<div class=\"{class}\"><div class=\"meta\">{}</div>\n<div class=\"weight\"><div \
             style=\"width:{:.2}%\"></div></div></div>\n",
            amount(figures),
            100.0 * share.min(1.0)
        );
    }
    *out += "</div>\n<div>\n";
    for (class, figures) in [("inclusive", inclusive), ("exclusive", exclusive)] {
        *out += &format!("<div class=\"{class}\">\n");
        bar_of(out, &region.name, figures);
        *out += "</div>\n";
    }
    let mut chips = Vec::new();
    if counts.measured < counts.executions {
        let sample =
            if counts.measured > 0 { ": a random sample, bounds are four standard errors" } else { "" };
        chips.push((
            "",
            format!("{} of {} measured{sample}", thousands(counts.measured), thousands(counts.executions)),
        ));
    }
    if let Some(running) = inclusive.running.filter(|running| *running < 0.9995) {
        chips.push((" warn", format!("counted {} of the time", percent(running))));
    }
    chips.extend(words::oddities(&region.name, counts).into_iter().map(|odd| (" warn", odd)));
    if !chips.is_empty() {
        let chips: String = chips
            .iter()
            .map(|(class, chip)| format!("<span class=\"chip{class}\">{}</span>", escape(chip)))
            .collect();
        *out += &format!("<div class=\"chips\">{chips}</div>\n");
    }
    *out += "</div>\n</article>\n";
}

/// The thread's process first, if there are several.
fn title_of(report: &Report, pid: i32, thread: &Thread) -> String {
    let process = if report.processes.len() > 1 { format!("process {pid}, ") } else { String::new() };
    format!(
        "{process}thread {} {}{}",
        thread.tid,
        clean(&thread.name),
        if thread.ended { "" } else { " (killed)" }
    )
}

/// Threads side by side: what each did in each region.
fn matrix(out: &mut String, report: &Report) {
    let threads = words::threads(report, MOST_THREADS);
    let all: usize = report.processes.iter().map(|process| process.threads.len()).sum();
    if threads.len() < 2 {
        return;
    }
    let which = largest(threads.len(), all);
    let rows = report.regions.len().min(MOST_CELLS / threads.len());
    *out += &format!(
        "<section class=\"card\">\n<h2>Threads{which}</h2>\n<div class=\"scroll\"><table class=\"matrix\" \
         style=\"width:{}px\">\n<thead><tr><th></th>",
        176 + 100 * threads.len()
    );
    for one in &threads {
        let process = if report.processes.len() > 1 {
            format!("<small>process {}</small>", one.process.pid)
        } else {
            String::new()
        };
        let share = one.thread.item.inclusive.share.map_or(String::new(), percent);
        let share = format!("<small>{share}</small>");
        let before = match one.thread.before {
            0 => String::new(),
            before => format!("<small>and {before} before it</small>"),
        };
        let killed = if one.thread.ended { "" } else { "<small>killed</small>" };
        *out += &format!(
            "<th>{}<small>{}</small>{before}{process}{share}{killed}</th>",
            escape(&one.thread.name),
            one.thread.tid
        );
    }
    *out += "</tr></thead>\n<tbody>\n<tr><th>all of it</th>";
    for one in &threads {
        *out += &cell(&title_of(report, one.process.pid, one.thread), &one.thread.item.inclusive);
    }
    *out += "</tr>\n";
    for region in &report.regions[..rows] {
        let name = escape(&region.name);
        *out += &format!("<tr><th title=\"{name}\"><span class=\"label\">{name}</span></th>");
        let of: HashMap<(usize, usize), &Item> =
            region.threads.iter().map(|one| (one.place, &one.item)).collect();
        for one in &threads {
            *out += &match of.get(&one.place) {
                None => "<td>–</td>".into(),
                Some(item) => {
                    let thread = title_of(report, one.process.pid, one.thread);
                    cell(&format!("{} in {thread}", clean(&region.name)), &item.inclusive)
                }
            };
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div>\n";
    if rows < report.regions.len() {
        *out += &format!("<p class=\"meta\">Regions{}</p>\n", largest(rows, report.regions.len()));
    }
    *out += "</section>\n";
}

fn cell(title: &str, figures: &Figures) -> String {
    format!("<td>{}</td>", bar::draw(title, figures, SMALL))
}

/// Which region began in which.
fn trees(out: &mut String, report: &Report) {
    if !report.regions.iter().any(|region| region.nests) {
        return;
    }
    *out += "<section class=\"card\">\n<details><summary><h2>What began in what</h2></summary>\n";
    let (mut places, mut left_out) = (0, 0);
    for process in &report.processes {
        for thread in process.threads.iter().filter(|thread| !thread.tree.is_empty()) {
            places += thread.tree.len();
            if places > MOST_PLACES {
                left_out += 1;
                continue;
            }
            *out += &format!(
                "<details><summary>{}</summary>\n<div class=\"scroll\"><table><thead><tr><th>region</th>\
                 <th class=\"n\">executions</th><th class=\"n\">of all slots</th><th class=\"n\">without those in it</th>\
                 <th>bottleneck</th></tr></thead><tbody>\n",
                escape(&title_of(report, process.pid, thread))
            );
            for node in &thread.tree {
                let share = |figures: &Figures| figures.share.map_or("–".into(), percent);
                *out += &format!(
                    "<tr><td style=\"padding-left:{}px\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                     <td class=\"n\">{}</td><td>{}</td></tr>\n",
                    8 + 18 * node.depth.min(30),
                    escape(&node.name),
                    thousands(node.item.counts.executions),
                    share(&node.item.inclusive),
                    share(&node.item.exclusive),
                    escape(&node.item.inclusive.bottleneck)
                );
            }
            *out += "</tbody></table></div></details>\n";
        }
    }
    if left_out > 0 {
        let threads = words::count(left_out, "thread");
        *out += &format!("<p class=\"meta\">and {threads} more: -o FILE.json has all</p>\n");
    }
    *out += "</details>\n</section>\n";
}

/// All numbers, for who wants them, or cannot see the bars.
fn figures(out: &mut String, report: &Report) {
    *out += "<section class=\"card\">\n<details><summary><h2>All figures</h2></summary>\n<div class=\"scroll\">\
             <table class=\"figures\">\n<thead><tr><th>region</th>";
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let metrics = |level: &[Metric]| level.iter().map(Metric::title).collect::<Vec<_>>();
    let columns = [texts(&["executions", "slots", "time", "running"]), metrics(&LEVEL_1), texts(&["within"])];
    let titles = columns.into_iter().chain([metrics(&LEVEL_2), texts(&["level 2 within"])]).flatten();
    titles.for_each(|title| *out += &format!("<th class=\"n\">{title}</th>"));
    *out += "</tr></thead>\n<tbody>\n";
    row(out, "whole program", &report.whole, &report.whole.inclusive);
    for region in &report.regions {
        row(out, &region.name, &region.item, &region.item.inclusive);
        if region.nests {
            let name = format!("{} (without the regions in it)", region.name);
            row(out, &name, &region.item, &region.item.exclusive);
        }
    }
    if !report.regions.is_empty() {
        row(out, "outside regions", &report.whole, &report.whole.exclusive);
    }
    *out += "</tbody></table></div></details>\n</section>\n";
}

/// A cell, with the number to sort by where the text is none.
fn number(out: &mut String, value: f64, text: &str) {
    let plain = text.parse::<f64>().is_ok();
    let sorts = if plain { String::new() } else { format!(" data-v=\"{value}\"") };
    *out += &format!("<td{sorts}>{text}</td>");
}

fn row(out: &mut String, name: &str, item: &Item, figures: &Figures) {
    *out += &format!("<tr><td>{}</td>", escape(name));
    let (slots, ns) = (figures.slots as f64, figures.time_ns as f64);
    number(out, item.counts.executions as f64, &thousands(item.counts.executions));
    number(out, slots, &words::slots(slots));
    number(out, ns, &time(ns));
    let mut share = |share: Option<f64>| {
        number(out, -1.0, &share.map_or("–".into(), |share| format!("{:.1}", 100.0 * share)));
    };
    share(figures.running);
    (0..LEVEL_1.len()).for_each(|k| share(figures.level_1.map(|one| one.of[k])));
    share(figures.level_1.map(|one| one.error));
    (0..LEVEL_2.len()).for_each(|k| share(figures.level_2.map(|two| two.of[k])));
    share(figures.level_2.map(|two| two.error));
    *out += "</tr>\n";
}
