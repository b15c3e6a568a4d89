//! What a person acts on: what can be done here, what cannot, and what permits it.
#![forbid(unsafe_code)]

use super::abilities::{Ability, Extent, Refusal};
use serde::Serialize;
use std::mem::discriminant;
use topdown::{Obstacle, Remedy};
use topdown_report::terminal::Layout;

/// Columns before the words.
const INDENT: usize = 11;
/// Before the words of a remedy.
const REACH: usize = 15;

/// The summary as a text, which ends with an empty line.
pub fn text(abilities: &[Ability], in_container: bool, layout: &Layout) -> String {
    let can: Vec<String> = abilities.iter().filter_map(can).collect();
    let can = if can.is_empty() { "nothing".into() } else { can.join(", ") };
    let mut out = block(layout, "you can:", INDENT, &can);
    let of: [(&str, Told); 2] = [("no more:", less), ("not:", refused)];
    for (mut label, refusals) in of {
        for (titles, why) in merged(abilities.iter().filter_map(refusals)) {
            out += &block(layout, label, INDENT, &format!("{}: {why}", titles.join(", ")));
            label = "";
        }
    }
    out + &ways_out(abilities, in_container, layout) + "\n"
}

/// "stat to level 6".
fn can(Ability { name, title, found }: &Ability) -> Option<String> {
    let Extent { level, how, .. } = found.as_ref().ok()?;
    let how = match *how {
        "rdpmc" => " by RDPMC",
        "read" => " by read(2)",
        "slots" => " (slots by function)",
        "time" if ["run", "regions"].contains(name) => " (time, no slots)",
        "time" => " (time by function, no slots)",
        _ => "",
    };
    Some(match level {
        Some(level) => format!("{title} to level {level}{how}"),
        None => format!("{title}{how}"),
    })
}

/// A title, and a reason.
type Refused<'a> = (&'static str, &'a Refusal);
type Told = for<'a> fn(&'a Ability) -> Option<Refused<'a>>;

fn refused(ability: &Ability) -> Option<Refused<'_>> {
    ability.found.as_ref().err().map(|refusal| (ability.title, refusal))
}

/// Why what can be done goes no further.
fn less(ability: &Ability) -> Option<Refused<'_>> {
    let extent = ability.found.as_ref().ok().filter(|extent| !extent.less.why.is_empty())?;
    Some((ability.title, &extent.less))
}

/// Each reason once, with all that it is the reason of.
fn merged<'a>(all: impl Iterator<Item = Refused<'a>>) -> Vec<(Vec<&'static str>, &'a str)> {
    let mut merged: Vec<(Vec<&str>, &str)> = Vec::new();
    for (title, refusal) in all {
        match merged.iter_mut().find(|(_, why)| *why == refusal.why) {
            Some((titles, _)) => titles.push(title),
            None => merged.push((vec![title], &refusal.why)),
        }
    }
    merged
}

/// What permits the rest: all ways out of each obstacle, and of one that is a setting's other value the first.
fn ways_out(abilities: &[Ability], in_container: bool, layout: &Layout) -> String {
    let mut all: Vec<(Vec<String>, Obstacle)> = Vec::new();
    let of_none = abilities.iter().filter_map(refused).map(|(title, refusal)| (title.into(), refusal));
    let of_less =
        abilities.iter().filter_map(less).map(|(title, refusal)| (format!("more of {title}"), refusal));
    for (title, refusal) in of_less.chain(of_none) {
        let Some(obstacle) = refusal.obstacle else { continue };
        match all.iter_mut().find(|(_, other)| *other == obstacle) {
            Some((titles, _)) => titles.push(title),
            None => all.push((vec![title], obstacle)),
        }
    }
    let mut out = String::new();
    for (k, (titles, obstacle)) in all.iter().enumerate() {
        let is_first = !all[..k].iter().any(|(_, other)| discriminant(other) == discriminant(obstacle));
        let shown = if is_first { usize::MAX } else { 1 };
        let more = if is_first { "" } else { " (the other ways as above)" };
        out += &block(layout, "to have", "to have ".len(), &format!("{}{more}:", titles.join(", ")));
        for Remedy { reach, what } in obstacle.remedies(in_container).into_iter().take(shown) {
            out += &block(layout, &format!("  {reach}"), REACH, &what);
        }
    }
    out
}

/// Words behind a label, in lines that fit.
fn block(layout: &Layout, label: &str, indent: usize, words: &str) -> String {
    let lines = layout.lines(&format!("{label:indent$}"), &format!("{:indent$}", ""), words);
    lines.join("\n") + "\n"
}

/// The same for scripts.
#[derive(Serialize)]
pub struct AbilityJson {
    name: &'static str,
    can: bool,
    level: Option<u32>,
    how: Option<&'static str>,
    why: String,
    remedies: Vec<RemedyJson>,
}

#[derive(Serialize)]
struct RemedyJson {
    reach: &'static str,
    what: String,
}

/// Each ability.
pub fn json(abilities: &[Ability], in_container: bool) -> Vec<AbilityJson> {
    let one = |ability: &Ability| {
        let extent = ability.found.as_ref().ok();
        let refusal = ability.found.as_ref().map_or_else(|refusal| refusal, |extent| &extent.less);
        let remedies = refusal.obstacle.map_or(Vec::new(), |obstacle| obstacle.remedies(in_container));
        AbilityJson {
            name: ability.name,
            can: extent.is_some(),
            level: extent.and_then(|extent| extent.level),
            how: extent.map(|extent| extent.how).filter(|how| !how.is_empty()),
            why: refusal.why.clone(),
            remedies: remedies.into_iter().map(|Remedy { reach, what }| RemedyJson { reach, what }).collect(),
        }
    };
    abilities.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ability(title: &'static str, found: Result<Extent, Refusal>) -> Ability {
        Ability { name: title, title, found }
    }

    fn paranoid(needed: i64) -> Refusal {
        Refusal {
            why: format!("it is 4, not {needed}"),
            obstacle: Some(Obstacle::Paranoid { found: Some(4), needed }),
        }
    }

    #[test]
    fn what_can_be_done_comes_first_and_each_reason_and_way_out_once() {
        let all = [
            ability("stat", Ok(Extent { level: Some(2), ..Extent::default() })),
            ability("record", Ok(Extent { how: "time", less: paranoid(2), ..Extent::default() })),
            ability("run", Ok(Extent { how: "time", less: paranoid(2), ..Extent::default() })),
            ability("regions", Err(paranoid(2))),
            ability("top", Err(paranoid(0))),
        ];
        let text = text(&all, false, &Layout::FILE);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "you can:   stat to level 2, record (time by function, no slots), run (time, no slots)"
        );
        assert_eq!(lines[1], "no more:   record, run: it is 4, not 2");
        assert_eq!(lines[2], "not:       regions: it is 4, not 2");
        assert_eq!(lines[3], "           top: it is 4, not 0");
        assert_eq!(lines[4], "to have more of record, more of run, regions:");
        assert_eq!(text.matches("sysctl.d").count(), 1);
        assert!(text.contains("to have top (the other ways as above):\n  once         sudo sysctl kernel.perf_event_paranoid=0\n"));
        assert!(
            text.ends_with("\n\n") && lines.iter().all(|line| line.chars().count() <= Layout::FILE.columns)
        );
    }

    #[test]
    fn who_can_do_nothing_reads_that() {
        assert_eq!(
            text(
                &[ability("stat", Err(Refusal { why: "no PMU".into(), obstacle: None }))],
                true,
                &Layout::FILE
            ),
            "you can:   nothing\nnot:       stat: no PMU\n\n"
        );
    }
}
