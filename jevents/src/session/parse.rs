//! A text such as `cycles,{cpu/event=1,umask=2/,branches}` -> its parts -> linked events.

use super::layout::{Event, Flags, List};
use crate::capi::copy;
use crate::extra::Extra;
use crate::resolve::{ResolvedEvent, resolve_event};
use crate::say::say;
use topdown_seam::sysfs::Sysfs;

/// One event, or one group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPart {
    /// The events' texts.
    pub members: Vec<String>,
    /// Whether it is a group.
    pub braces: bool,
    /// The letters of `{...}:letters`, for each member.
    pub modifiers: String,
}

/// Takes a text apart. A comma between slashes separates terms, not events. A comma at the end, an open group at the end
/// and a brace too many are no errors; an empty text is an event that does not resolve.
pub fn parts(text: &str) -> Vec<ListPart> {
    let mut parts = Vec::new();
    let mut open: Option<ListPart> = None;
    for item in items(text) {
        let member = item.strip_prefix('{').unwrap_or(item);
        if member.len() < item.len() {
            parts.extend(open.take());
            open = Some(ListPart { braces: true, ..ListPart::default() });
        }
        let mut part = open.take().unwrap_or_default();
        let closed = closed(member);
        let (member, modifiers) = closed.unwrap_or((member, ""));
        part.members.push(member.into());
        part.modifiers = modifiers.into();
        if part.braces && closed.is_none() { open = Some(part) } else { parts.push(part) }
    }
    parts.extend(open);
    parts
}

/// The texts between commas that are outside of slashes; a last one that is empty is none.
fn items(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut items: Vec<&str> = text
        .split(|character| {
            inside ^= character == '/';
            character == ',' && !inside
        })
        .collect();
    if items.last() == Some(&"") {
        items.pop();
    }
    items
}

/// A member at the end of a group, and the group's modifiers.
fn closed(member: &str) -> Option<(&str, &str)> {
    let (member, behind) = member.rsplit_once('}')?;
    match behind.strip_prefix(':') {
        _ if behind.is_empty() => Some((member, "")),
        Some(letters) if !letters.contains('/') => Some((member, letters)),
        _ => None,
    }
}

/// The event with more modifiers. The slash behind its terms may be missing.
fn modified(event: &str, letters: &str) -> String {
    let unclosed = event.matches('/').count() == 1 && !event.starts_with('/');
    match letters {
        "" => event.into(),
        _ if unclosed => format!("{event}/{letters}"),
        _ => format!("{event}:{letters}"),
    }
}

/// A member of a part, by number; and which of its PMUs, if several count it.
type MemberPlace = (usize, Option<usize>);

/// The events of a part in the order of the list, group by group: members on one PMU first, then those that several PMUs
/// count, a group for each PMU. `pmus` says of each member how many there are. None: these cannot be grouped, since they
/// are not on the same number of PMUs.
fn places(pmus: &[Option<usize>]) -> Option<Vec<Vec<MemberPlace>>> {
    let (plain, several): (Vec<usize>, Vec<usize>) =
        (0..pmus.len()).partition(|&member| pmus[member].is_none());
    let count = several.first().and_then(|&first| pmus[first]).unwrap_or(0);
    if several.iter().any(|&member| pmus[member] != Some(count)) {
        return None;
    }
    let mut groups: Vec<Vec<MemberPlace>> = Vec::new();
    if !plain.is_empty() {
        groups.push(plain.into_iter().map(|member| (member, None)).collect());
    }
    groups.extend((0..count).map(|pmu| several.iter().map(|&member| (member, Some(pmu))).collect()));
    Some(groups)
}

/// `parse_events`: appends to the list. What comes before the first part that fails stays there; a group comes whole or
/// not at all.
pub fn parse_events(sysfs: &Sysfs, list: List, text: &str) -> Result<(), ()> {
    parts(text).iter().try_for_each(|part| add(list, sysfs, part))
}

/// A member that resolved, and the types of its PMUs if several count it.
struct PartMember<'a> {
    text: &'a str,
    resolved: ResolvedEvent,
    kinds: Option<Vec<u32>>,
}

impl<'a> PartMember<'a> {
    /// Err: why not, as the end of a line.
    fn resolve(sysfs: &Sysfs, list: List, text: &'a str, modifiers: &str) -> Result<Self, &'static str> {
        let found = if text.is_empty() { Err(()) } else { resolve_event(sysfs, &modified(text, modifiers)) };
        let resolved = found.map_err(|()| "")?;
        if resolved.attr.size as usize > list.attr_size() {
            return Err(": the program's struct perf_event_attr is too short for it");
        }
        let kinds =
            || resolved.pmus.iter().map(|pmu| kind(pmu)).collect::<Option<_>>().ok_or(": a PMU has no type");
        let kinds = resolved.multi_pmu.then(kinds).transpose()?;
        Ok(PartMember { text, resolved, kinds })
    }

    /// An event, not linked.
    fn into_event(self, sysfs: &Sysfs, list: List) -> Result<(Event, Option<Vec<u32>>), ()> {
        let event = list.new_event()?;
        event.set_text(copy(self.text));
        event.set_attr(&self.resolved.attr);
        event.set_flags(Flags { uncore: sysfs.is_uncore(&self.resolved.decoded), ..Flags::default() });
        *event.extra() = Extra::from_resolved(self.resolved);
        Ok((event, self.kinds))
    }
}

/// The type of the PMU at a path.
fn kind(pmu: &str) -> Option<u32> {
    std::fs::read_to_string(format!("{pmu}/type")).ok()?.trim().parse().ok()
}

/// One PMU's event of `original`, not linked. The original is in no list: it is found by its clones, and points to the
/// first of them, so that event_scaled_value_sum(original) is their sum. By that `free` knows it, too.
fn clone_of(original: Event, kind: u32, list: List) -> Result<Event, ()> {
    let event = list.new_event()?;
    event.set_text(copy(&original.text()));
    let mut attr = original.attr();
    attr.type_ = kind;
    event.set_attr(&attr);
    event.set_flags(original.flags());
    *event.extra() = Extra::copy_of(original.extra());
    event.set_orig(original);
    if original.next().is_none() {
        original.set_next(Some(event));
    }
    Ok(event)
}

/// Of the events that no list has but their clones: those that `parse_events` made.
pub(super) fn is_hidden_original(original: Event, first_clone: Event) -> bool {
    original.next() == Some(first_clone)
}

fn add(list: List, sysfs: &Sysfs, part: &ListPart) -> Result<(), ()> {
    let resolve = |text| {
        PartMember::resolve(sysfs, list, text, &part.modifiers)
            .map_err(|why| say!("Cannot resolve {text}{why}"))
    };
    let members = part.members.iter().map(|text| resolve(text)).collect::<Result<Vec<_>, ()>>()?;
    let counts: Vec<_> = members.iter().map(|member| member.kinds.as_ref().map(Vec::len)).collect();
    let Some(groups) = places(&counts) else {
        say!("Cannot group events that are on different numbers of PMUs: {}", part.members.join(","));
        return Err(());
    };
    let into_event = |member: PartMember| member.into_event(sysfs, list);
    let events = members.into_iter().map(into_event).collect::<Result<Vec<_>, ()>>()?;
    for group in groups {
        let last = group.len() - 1;
        for (place, (member, pmu)) in group.into_iter().enumerate() {
            let (original, kinds) = &events[member];
            let event = match (kinds, pmu) {
                (Some(kinds), Some(pmu)) => clone_of(*original, kinds[pmu], list)?,
                _ => *original,
            };
            event.set_flags(Flags {
                leader: part.braces && place == 0,
                member: part.braces,
                end: part.braces && place == last,
                ..event.flags()
            });
            list.append(event);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::session::read::scaled_sum;
    use topdown_seam::sysfs::tree::SysfsTree;

    fn shown(text: &str) -> Vec<String> {
        let shown = |part: &ListPart| match (part.members.join(" "), part.braces, part.modifiers.as_str()) {
            (members, true, modifiers) => format!("{{{members}}}{modifiers}"),
            (members, false, _) => members,
        };
        parts(text).iter().map(shown).collect()
    }

    #[test]
    fn commas_outside_of_slashes_part_events() {
        assert_eq!(shown("a,b"), ["a", "b"]);
        assert_eq!(shown("cpu/event=1,umask=2/,b:k"), ["cpu/event=1,umask=2/", "b:k"]);
        assert_eq!(shown("cpu/a,b/u,cpu/c,d/"), ["cpu/a,b/u", "cpu/c,d/"]);
        assert_eq!(shown("a,cpu/b,c"), ["a", "cpu/b,c"], "an open slash reaches to the end");
        assert_eq!(shown(" a, b"), [" a", " b"], "spaces are part of a name, which then resolves to nothing");
    }

    #[test]
    fn one_comma_at_the_end_is_no_event() {
        assert_eq!(shown(""), [""; 0]);
        assert_eq!(shown("a,"), ["a"]);
        assert_eq!(shown("a,,"), ["a", ""]);
        assert_eq!(shown(","), [""]);
        assert_eq!(shown("a,,b"), ["a", "", "b"]);
    }

    #[test]
    fn braces_group() {
        assert_eq!(shown("{a,b},c,{d}"), ["{a b}", "c", "{d}"]);
        assert_eq!(shown("{cpu/a,b/,c/d/u}"), ["{cpu/a,b/ c/d/u}"]);
        assert_eq!(shown("{a,b"), ["{a b}"], "an open group ends with the text");
        assert_eq!(shown("a},b"), ["a", "b"], "there was no group to close");
        assert_eq!(shown("{a,{b,c}"), ["{a}", "{b c}"]);
        assert_eq!(shown("a{b"), ["a{b"], "only as the first character");
        assert_eq!(shown("{}"), ["{}"]);
    }

    #[test]
    fn a_group_has_modifiers() {
        assert_eq!(shown("{a,cpu/b/}:u,c"), ["{a cpu/b/}u", "c"]);
        assert_eq!(shown("{a,b}u"), ["{a b}u}"], "more than modifiers is a name");
        assert_eq!(modified("a", ""), "a");
        assert_eq!(modified("a:k", "u"), "a:k:u");
        assert_eq!(modified("cpu/a/", "u"), "cpu/a/:u");
        assert_eq!(modified("cpu/a", "u"), "cpu/a/u");
        assert_eq!(modified("/cycles", "u"), "/cycles:u");
    }

    #[test]
    fn events_on_several_pmus_make_a_group_of_each() {
        assert_eq!(places(&[None]), Some(vec![vec![(0, None)]]));
        assert_eq!(places(&[Some(2)]), Some(vec![vec![(0, Some(0))], vec![(0, Some(1))]]));
        let mixed = places(&[Some(2), None, Some(2)]);
        let groups = [vec![(1, None)], vec![(0, Some(0)), (2, Some(0))], vec![(0, Some(1)), (2, Some(1))]];
        assert_eq!(mixed, Some(groups.into()));
        assert_eq!(places(&[Some(2), Some(3)]), None);
        assert_eq!(places(&[Some(3), Some(2)]), None);
    }

    /// A list on a made-up tree: types and configs in order, groups in braces.
    fn listed(tree: &SysfsTree, list: List, text: &str) -> Result<String, ()> {
        parse_events(&tree.sysfs, list, text)?;
        let shown = list.events().map(|event| {
            let (attr, flags) = (event.attr(), event.flags());
            let [open, close] =
                [(flags.leader, "{"), (flags.end, "}")].map(|(is, brace)| if is { brace } else { "" });
            format!("{open}{}:{}{close}", attr.type_, attr.config)
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn clones_have_an_original_that_is_in_no_list() {
        let tree = SysfsTree::new(&[
            ("one/type", "7"),
            ("uncore_two_0/type", "20"),
            ("uncore_two_1/type", "21"),
            ("uncore_two_0/cpumask", "0"),
        ]);
        // SAFETY: a list of `alloc`.
        let list = unsafe { List::of(Caller::new(List::alloc(2, &[0]).unwrap().as_ptr(), 128)) }.unwrap();
        assert_eq!(listed(&tree, list, "two/config=1/").as_deref(), Ok("20:1 21:1"));
        let clones: Vec<Event> = list.events().collect();
        let original = clones[0].orig().unwrap();
        assert_eq!((clones[1].orig(), original.num_clones()), (Some(original), 2));
        assert!(is_hidden_original(original, clones[0]) && !is_hidden_original(original, clones[1]));
        assert!(clones.iter().all(|clone| clone.flags() == Flags { uncore: true, ..Flags::default() }));
        assert!(original.extra().multi_pmu && !clones[0].extra().multi_pmu);
        clones.iter().enumerate().for_each(|(index, clone)| clone.efd(1).val[0] = 10 + index as u64);
        assert_eq!(scaled_sum(original, 1), 21);
        let more = listed(&tree, list, "{two/config=2/,one/config=3/,two/config=4/}");
        assert_eq!(more.as_deref(), Ok("20:1 21:1 {7:3} {20:2 20:4} {21:2 21:4}"));
        crate::session::open::free(list);
    }
}
