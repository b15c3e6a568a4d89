//! Numbers and lists of numbers as the kernel, C and people write them.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;

/// The digits at the start of a text as strtoull(3) reads them with base 0: 0x means hexadecimal, 0 octal. Their number
/// (0 if there are none, None above 64 bits), and what follows them.
pub fn unsigned(text: &str) -> (Option<u64>, &str) {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (base, digits) = match hex.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit())) {
        Some(digits) => (16, digits),
        None => (if text.starts_with('0') { 8 } else { 10 }, text),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let number = digits
        .chars()
        .filter_map(|c| c.to_digit(base))
        .try_fold(0u64, |number, digit| number.checked_mul(base.into())?.checked_add(digit.into()));
    (number, rest)
}

/// The same of a text that is a number and nothing else but white space around it.
pub fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    match unsigned(text) {
        (number, "") if !text.is_empty() => number,
        _ => None,
    }
}

/// The ranges of a list such as `0-3,8`, in which `5-` has no end; None in the place of what is no range.
pub fn ranges(list: &str) -> impl Iterator<Item = Option<RangeInclusive<u64>>> {
    list.split(',').filter(|range| !range.trim().is_empty()).map(|range| {
        let (first, last) = match range.split_once('-') {
            None => (whole(range)?, whole(range)?),
            Some((first, last)) if last.trim().is_empty() => (whole(first)?, u64::MAX),
            Some((first, last)) => (whole(first)?, whole(last)?),
        };
        (first <= last).then_some(first..=last)
    })
}

/// The numbers of a list; of ranges without an end, or of more than there can be CPUs, none.
pub fn listed(list: &str) -> Vec<u32> {
    const MOST: u64 = 1 << 16;
    ranges(list).flatten().filter(|range| *range.end() < MOST).flatten().map(|number| number as u32).collect()
}

/// Whether a list, such as one of CPUs in /sys, names a number.
pub fn contains(list: &str, number: u32) -> bool {
    ranges(list).flatten().any(|range| range.contains(&number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_numbers_of_its_ranges() {
        assert_eq!(listed("0-2,7\n"), [0, 1, 2, 7]);
        assert!(["", "\n", "x", "3-1", "5-", "0-65536"].iter().all(|list| listed(list).is_empty()));
    }

    #[test]
    fn numbers_are_those_of_c() {
        for (text, number, rest) in [
            ("", Some(0), ""),
            ("12", Some(12), ""),
            ("0x1F", Some(31), ""),
            ("0X1f:u", Some(31), ":u"),
            ("0x", Some(0), "x"),
            ("0xg", Some(0), "xg"),
            ("017", Some(15), ""),
            ("08", Some(0), "8"),
            ("+3", Some(0), "+3"),
            ("0xffffffffffffffff", Some(u64::MAX), ""),
            ("0x10000000000000000", None, ""),
            ("18446744073709551616,", None, ","),
            ("\u{e9}", Some(0), "\u{e9}"),
        ] {
            assert_eq!(unsigned(text), (number, rest), "{text:?}");
        }
        for (text, number) in [(" 0x10\n", Some(16)), ("", None), ("1 2", None), ("-1", None), ("x", None)] {
            assert_eq!(whole(text), number, "{text:?}");
        }
    }

    #[test]
    fn lists_are_ranges() {
        let all = |list| ranges(list).collect::<Vec<_>>();
        assert_eq!(all("0-3,8,\n"), [Some(0..=3), Some(8..=8)]);
        assert_eq!(all("5-, 0x10"), [Some(5..=u64::MAX), Some(16..=16)]);
        assert_eq!(all("x,7-5,-3,1-2-3,4"), [None, None, None, None, Some(4..=4)]);
        assert_eq!(all(""), []);
        assert!(contains("0-3,8\n", 8) && contains("x,3", 3) && !contains("0-3,8", 4) && !contains("", 0));
    }
}
