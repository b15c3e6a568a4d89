//! Names that are too long for their column.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use topdown_table::clean;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// In place of what was cut out.
const GAP: &str = "…";
/// In fewer columns names cannot be told apart beyond their ends.
const ENOUGH: usize = 8;

/// How many columns a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// The first of these that fit into so many columns.
fn beginning<'t>(graphemes: &[&'t str], columns: usize) -> Vec<&'t str> {
    let mut used = 0;
    let fits = |grapheme: &&&str| {
        used += grapheme.width();
        used <= columns
    };
    graphemes.iter().take_while(fits).copied().collect()
}

/// The last ones.
fn end<'t>(graphemes: &[&'t str], columns: usize) -> Vec<&'t str> {
    let reversed: Vec<&str> = graphemes.iter().rev().copied().collect();
    let mut last = beginning(&reversed, columns);
    last.reverse();
    last
}

/// At most so many columns, without its end if it is longer.
pub fn short(text: &str, columns: usize) -> String {
    let text = clean(text);
    if text.width() <= columns {
        return text;
    }
    cut_after(&text.graphemes(true).collect::<Vec<_>>(), columns)
}

/// As many as fit beside what says that there are more.
fn cut_after(graphemes: &[&str], columns: usize) -> String {
    match columns {
        0 => String::new(),
        _ => beginning(graphemes, columns - 1).concat() + GAP,
    }
}

/// A name of at most so many columns, without its middle if it is longer: names differ at their ends more often.
pub fn shortened(name: &str, columns: usize) -> String {
    let name = clean(name);
    without_middle(&name.graphemes(true).collect::<Vec<_>>(), columns)
}

fn without_middle(name: &[&str], columns: usize) -> String {
    if name.concat().width() <= columns {
        return name.concat();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let last = end(name, room / 2).concat();
    let first = beginning(name, room - last.width()).concat();
    first + GAP + &last
}

/// The same of all names of a list: where different ones would be alike, what is shown of these is where they differ, or else a number.
pub fn told_apart<'n>(names: impl IntoIterator<Item = &'n str>, columns: usize) -> Vec<String> {
    let names: Vec<String> = names.into_iter().map(clean).collect();
    let graphemes: Vec<Vec<&str>> = names.iter().map(|name| name.graphemes(true).collect()).collect();
    let mut shown: Vec<String> = graphemes.iter().map(|name| without_middle(name, columns)).collect();
    if columns < ENOUGH {
        return shown;
    }
    let all: Vec<usize> = (0..names.len()).collect();
    for these in alike(&names, &shown, &all) {
        tell_apart(&names, &graphemes, &these, columns, &mut shown);
    }
    // (what is shown of some may have come to be what is shown of others)
    for place in alike(&names, &shown, &all).into_iter().flatten() {
        let first = names.iter().position(|name| *name == names[place]).unwrap_or(place);
        let number = format!("{GAP}#{}", first + 1);
        shown[place] =
            beginning(&graphemes[place], columns.saturating_sub(number.width())).concat() + &number;
    }
    shown
}

/// Of these places those where different names are shown alike, together.
fn alike(names: &[String], shown: &[String], places: &[usize]) -> Vec<Vec<usize>> {
    let mut by_text: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    places.iter().for_each(|place| by_text.entry(&shown[*place]).or_default().push(*place));
    let differ =
        |these: &Vec<usize>| these.iter().map(|place| &names[*place]).collect::<BTreeSet<_>>().len() > 1;
    by_text.into_values().filter(differ).collect()
}

/// Shows of these names what follows what all of them have in common.
fn tell_apart(
    names: &[String],
    graphemes: &[Vec<&str>],
    these: &[usize],
    columns: usize,
    shown: &mut [String],
) {
    let first = &graphemes[these[0]];
    let in_common = |other: &usize| {
        first.iter().zip(&graphemes[*other]).take_while(|(one, another)| one == another).count()
    };
    let common = these.iter().map(in_common).min().unwrap_or(0);
    for place in these {
        shown[*place] = from_where_they_differ(&graphemes[*place], common, columns);
    }
    for fewer in alike(names, shown, these) {
        if fewer.len() < these.len() {
            tell_apart(names, graphemes, &fewer, columns, shown);
        }
    }
}

/// How the name begins, and what it is from this place on.
fn from_where_they_differ(name: &[&str], place: usize, columns: usize) -> String {
    let first = beginning(&name[..place], columns / 3).concat();
    let room = columns - first.width() - 1;
    let rest = &name[place..];
    let rest = if rest.concat().width() <= room { rest.concat() } else { cut_after(rest, room) };
    first + GAP + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are the same each time.
    fn numbers() -> impl FnMut(usize) -> usize {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        }
    }

    #[test]
    fn texts_lose_their_end_and_names_their_middle() {
        assert_eq!((short("abcdef", 4), short("naïve", 5)), ("abc…".into(), "naïve".into()));
        assert_eq!(shortened("llvm::InlineFunctionImpl(llvm::CallBase&, bool)", 21), "llvm::Inli…se&, bool)");
        assert_eq!(
            (shortened("abc", 3), shortened("abcd", 1), shortened("abcd", 0)),
            ("abc".into(), "…".into(), "".into())
        );
        // (a letter with its accent, and one of two columns, stay whole)
        assert_eq!(shortened("e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", 3), "e\u{301}…e\u{301}");
        assert_eq!(shortened("測定測定測定", 6), "測…定");
    }

    #[test]
    fn names_that_differ_in_the_middle_alone_are_told_apart() {
        let names = [
            "void sort<Iterator, Less>(Iterator, Iterator)",
            "void sort<Iterator, More>(Iterator, Iterator)",
        ];
        let [less, more] = told_apart(names, 20).try_into().unwrap();
        assert!(less.contains("Less") && more.contains("More"), "{less} {more}");
        // (others, and the same again, stay as they are)
        let all = [names[0], "main", names[1], names[0]];
        assert_eq!(told_apart(all, 20), [less.clone(), "main".into(), more, less]);
    }

    #[test]
    fn no_cut_name_is_too_long_and_different_ones_differ() {
        const LETTERS: [&str; 8] = ["a", "b", "::", "<", "ü", "e\u{301}", "測", "👩‍🔬"];
        let mut number = numbers();
        for _ in 0..3000 {
            let columns = number(40);
            let mut word = |most: usize| -> String {
                (0..number(most)).map(|_| LETTERS[number(LETTERS.len())]).collect()
            };
            // much in common, before and behind where they differ
            let (before, behind) = (word(60), word(60));
            let names: Vec<String> = (0..6).map(|_| format!("{before}{}{behind}", word(6))).collect();
            let shown = told_apart(names.iter().map(String::as_str), columns);
            for (name, shown) in names.iter().map(|name| clean(name)).zip(&shown) {
                let name = &name;
                assert!(shown.width() <= columns, "{columns}: {name}: {shown}");
                assert!(name.width() > columns || name == shown, "{columns}: {name}: {shown}");
                let is_part = |part: &str| name.contains(part) || part.starts_with('#');
                assert!(shown.split('…').all(is_part), "{name}: {shown}");
            }
            let differ = |all: &[String]| all.iter().collect::<BTreeSet<_>>().len();
            if columns >= ENOUGH {
                assert_eq!(differ(&names), differ(&shown), "{columns}: {names:?}: {shown:?}");
            }
        }
    }
}
