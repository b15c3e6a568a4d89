//! Words and numbers of texts, and what is wrong with one.

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1 on; 0: in the whole.
    pub line: usize,
    pub what: String,
}

/// A text without these last words, and whether it had them.
pub fn without<'t>(text: &'t str, last: &str) -> (&'t str, bool) {
    text.strip_suffix(last).map_or((text, false), |before| (before.trim(), true))
}

pub fn number(word: &str) -> Result<u64, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("'{word}' is no number"))
}

pub fn small(word: &str) -> Result<u32, String> {
    u32::try_from(number(word)?).map_err(|_| format!("{word} is too large"))
}
