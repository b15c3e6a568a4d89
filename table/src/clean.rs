//! Names and texts that anybody may have chosen, as a terminal can have them.
#![forbid(unsafe_code)]

/// What a terminal would obey, or does not show: control characters (C0, DEL, C1), those that end a line or turn the direction
/// of writing, and those without a width.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A character as a terminal can have it: what it would obey is written as `\u{1b}`.
pub fn cleaned(c: char) -> impl Iterator<Item = char> {
    let hostile = is_hostile(c);
    c.escape_unicode().filter(move |_| hostile).chain((!hostile).then_some(c))
}

/// A text of which a terminal obeys nothing.
pub fn clean(name: &str) -> String {
    name.chars().flat_map(cleaned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(clean("a\x1b[31m\n\u{202e}b"), "a\\u{1b}[31m\\u{a}\\u{202e}b");
    }
}
