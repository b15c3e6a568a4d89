//! Where a term's value goes in `struct perf_event_attr`: files of a PMU's `format/`.
#![forbid(unsafe_code)]

use crate::attr::Word;

/// Where a term's value goes: bits of a word, the lowest of the value first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermFormat {
    /// The word.
    pub word: Word,
    ranges: Vec<(u32, u32)>,
}

impl TermFormat {
    /// As in a format file: `config1:0-7,32-35`.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, bits) = text.split_once(':')?;
        let ranges: Option<Vec<_>> = bits.split(',').map(range).collect();
        Some(TermFormat { word: Word::named(word)?, ranges: ranges? })
    }

    /// A value's bits in the word; None if there are not enough. One that is too large for a field of several ranges may
    /// have its bits where they belong already, as event lists write those of ExtSel.
    pub fn place(&self, value: u64) -> Option<u64> {
        let (mut left, mut placed, mut field) = (value, 0, 0);
        for &(first, last) in &self.ranges {
            let bits = last - first + 1;
            let range = u64::MAX >> (64 - bits);
            placed |= (left & range) << first;
            field |= range << first;
            left = left.checked_shr(bits).unwrap_or(0);
        }
        match left {
            0 => Some(placed),
            _ => (self.ranges.len() > 1 && value & !field == 0).then_some(value),
        }
    }
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < 64).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let place =
            |text: &str, value| TermFormat::parse(text).map(|format| (format.word, format.place(value)));
        assert_eq!(place("config:0-7", 0xff), Some((Word::Config, Some(0xff))));
        assert_eq!(place("config:0-7", 0x100), Some((Word::Config, None)));
        assert_eq!(place("config:0-7,32-35", 0xfa5), Some((Word::Config, Some(0xf_0000_00a5))));
        assert_eq!(place("config:0-7,32-35", 0x1000), Some((Word::Config, None)));
        assert_eq!(place("config:0-7,21", 0x138), Some((Word::Config, Some(0x20_0038))));
        assert_eq!(
            place("config:0-7,21", 0x20_0038),
            Some((Word::Config, Some(0x20_0038))),
            "where it belongs"
        );
        assert_eq!(place("config:0-7,21", 0x20_0138), Some((Word::Config, None)));
        assert_eq!(place("config:8-15", 0x1200), Some((Word::Config, None)));
        assert_eq!(place("config:8-15,3,40-41", 0x701), Some((Word::Config, Some(0x300_0000_0108))));
        assert_eq!(place("config1:23", 1), Some((Word::Config1, Some(1 << 23))));
        assert_eq!(place("config1:23", 2), Some((Word::Config1, None)));
        assert_eq!(place("config2:0-63", u64::MAX), Some((Word::Config2, Some(u64::MAX))));
        assert_eq!(place("config3:63", 1), Some((Word::Config3, Some(1 << 63))));
        assert_eq!(place("config4:32-63,0-31", 0x1_0000_0002), Some((Word::Config4, Some(0x2_0000_0001))));
        for broken in [
            "",
            "config",
            "config:",
            "config5:0",
            "config:7-0",
            "config:64",
            "config:0-64",
            "config:a",
            "config:1,",
        ] {
            assert_eq!(TermFormat::parse(broken), None, "{broken:?}");
        }
    }
}
