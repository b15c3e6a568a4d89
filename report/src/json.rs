//! JSON in which nothing is obeyed by a terminal, or ends the script that it may be put into; objects and arrays that have no others in
//! them are on a line each, which halves a report of many regions. It is written as it is made: a large report is never whole in memory.
#![forbid(unsafe_code)]

use serde::Serialize;
use std::io::{self, Write};

/// Writes a value.
///
/// # Errors
/// It cannot be written.
pub fn write(what: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines { out, line: Vec::new(), held: None, is_first: true };
    serde_json::to_writer_pretty(&mut lines, what)?;
    lines.end()
}

/// A value as a text.
pub fn text(what: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    write(what, &mut bytes).expect("texts and numbers");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Takes pretty JSON.
struct Lines<'w> {
    out: &'w mut dyn Write,
    /// What there is of the line that is being written.
    line: Vec<u8>,
    /// What came after the line that opened what is innermost so far, if one did.
    held: Option<String>,
    is_first: bool,
}

impl Lines<'_> {
    fn end_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(io::Error::other)?;
        let text = line.trim_start();
        if let Some(inner) = self.held.take_if(|_| text.starts_with(['}', ']'])) {
            let inner: Vec<&str> = inner.lines().map(str::trim_start).collect();
            return self.put(&format!("{} {text}", inner.join(" ")));
        }
        let begin = if std::mem::take(&mut self.is_first) { "" } else { "\n" };
        let opens = text.ends_with(['{', '[']);
        match &mut self.held {
            Some(held) if !opens => *held += &format!("{begin}{line}"),
            held => {
                let before = held.take().unwrap_or_default();
                self.put(&format!("{before}{begin}{line}"))?;
            }
        }
        if opens {
            self.held = Some(String::new());
        }
        Ok(())
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        // of these only a line feed is outside of a text
        let is_plain = |c: char| c == '\n' || !topdown_table::is_hostile(c) && !matches!(c, '<' | '>' | '&');
        if text.chars().all(is_plain) {
            return self.out.write_all(text.as_bytes());
        }
        let mut escaped = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            match is_plain(c) {
                true => escaped.push(c),
                false => {
                    escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")))
                }
            }
        }
        self.out.write_all(escaped.as_bytes())
    }

    fn end(mut self) -> io::Result<()> {
        self.end_line()?;
        let rest = self.held.take().unwrap_or_default();
        self.put(&(rest + "\n"))
    }
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        self.line.extend(parts.next().unwrap_or_default());
        for part in parts {
            self.end_line()?;
            self.line.extend(part);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::{Value, json as value};

    #[test]
    fn innermost_objects_are_on_a_line_and_all_is_what_it_was() {
        let what = value!({"a": {"x": 1, "y": [1.5, null]}, "b": [{"t": "{"}, {}, []], "c": "]\n}<\u{202e}"});
        let json = text(&what);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), what);
        for line in [
            r#"    "y": [ 1.5, null ]"#,
            r#"    { "t": "{" },"#,
            r#"    {},"#,
            r#"  "c": "]\n}\u003c\u202e""#,
        ] {
            assert!(json.lines().any(|one| one == line), "{line}: {json}");
        }
        assert_eq!(text(&value!({})), "{}\n");
        assert_eq!(text(&value!([1, 2])), "[ 1, 2 ]\n");
        assert_eq!(text(&value!([[], [1, [2]]])), "[\n  [],\n  [\n    1,\n    [ 2 ]\n  ]\n]\n");
    }
}
