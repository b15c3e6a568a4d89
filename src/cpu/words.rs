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

/// `PARENT > NAME`, or `NAME` of a root: the parent, the name, and its level, where nodes above are of these levels.
///
/// # Errors
/// There is no such parent.
pub fn node_path(
    path: &str,
    level_of: impl FnOnce(&str) -> Option<u32>,
) -> Result<(Option<&str>, &str, u32), String> {
    let Some((parent, name)) = path.split_once('>') else { return Ok((None, path.trim(), 1)) };
    let (parent, name) = (parent.trim(), name.trim());
    let above = level_of(parent).ok_or_else(|| format!("there is no node {parent} above {name}"))?;
    Ok((Some(parent), name, above + 1))
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
