//! `name=value,name,...`: what a PMU is to count.

mod unresolved;

use crate::Attr;
use crate::attr::Word;
use crate::format::TermFormat;
use crate::numbers::unsigned;
use crate::sysfs::SysfsPmu;
pub use unresolved::Unresolved;

/// Sets in `attr` what the terms say. A value goes to sampling, to a whole word (where it is ORed), to a field of the
/// PMU's `format/` (where it replaces what an earlier term put there), or the term is one of its `events/` and stands
/// for that one's terms. Returns the text of a name= term.
pub fn apply(pmu: &SysfsPmu, terms: &str, attr: &mut Attr) -> Result<Option<String>, Unresolved> {
    let mut state = Terms { pmu, attr, fields: Vec::new(), name: None };
    state.all(terms, Aliases::Known)?;
    let Terms { attr, fields, name, .. } = state;
    for field in fields {
        field.word.set(attr, field.bits);
    }
    Ok(name)
}

/// Whether terms may be names of events: those in `events/` may not.
#[derive(Clone, Copy, PartialEq)]
enum Aliases {
    Known,
    Unknown,
}

struct Field {
    term: String,
    word: Word,
    bits: u64,
}

struct Terms<'a> {
    pmu: &'a SysfsPmu,
    attr: &'a mut Attr,
    fields: Vec<Field>,
    name: Option<String>,
}

impl Terms<'_> {
    fn all(&mut self, terms: &str, aliases: Aliases) -> Result<(), Unresolved> {
        terms.split(',').try_for_each(|term| match term.split_once('=') {
            Some((name, value)) => self.one(name, Some(value), aliases),
            None => self.one(term, None, aliases),
        })
    }

    fn one(&mut self, term: &str, value: Option<&str>, aliases: Aliases) -> Result<(), Unresolved> {
        if term.is_empty() {
            return Err(Unresolved::because(format!("Empty term for {}", self.pmu.name())));
        }
        if let ("name", Some(text)) = (term, value) {
            self.name = Some(plain(text));
            return Ok(());
        }
        let number = match value {
            None => 1,
            Some(text) => c_number(text).ok_or_else(|| {
                Unresolved::because(format!("Value {text} of {term} is larger than 64 bits"))
            })?,
        };
        match (term, Word::named(term)) {
            ("period", _) => self.sampling(number, 0),
            ("freq", _) => self.sampling(number, 1),
            (_, Some(word)) => word.set(self.attr, number),
            _ => return self.known_to_pmu(term, value.is_some(), number, aliases),
        }
        Ok(())
    }

    fn sampling(&mut self, number: u64, freq: u64) {
        self.attr.__bindgen_anon_1.sample_period = number;
        self.attr.set_freq(freq);
    }

    fn known_to_pmu(
        &mut self,
        term: &str,
        valued: bool,
        number: u64,
        aliases: Aliases,
    ) -> Result<(), Unresolved> {
        let pmu = self.pmu;
        if let Some(format) = pmu.format(term) {
            return self.field(term, &format, number);
        }
        if valued {
            return Err(Unresolved::because(format!("Cannot open kernel format {term} of {}", pmu.name())));
        }
        match pmu.event(term) {
            Some(terms) if aliases == Aliases::Known => self.all(&terms, Aliases::Unknown),
            _ => Err(Unresolved::UNKNOWN),
        }
    }

    fn field(&mut self, term: &str, text: &str, number: u64) -> Result<(), Unresolved> {
        let pmu = self.pmu.name();
        let format = TermFormat::parse(text)
            .ok_or_else(|| Unresolved::because(format!("Unknown format {text} of {term} of {pmu}")))?;
        let bits = format.place(number).ok_or_else(|| {
            Unresolved::because(format!("Value {number:#x} of {term} is too big for {text} of {pmu}"))
        })?;
        let field = Field { term: term.to_string(), word: format.word, bits };
        match self.fields.iter_mut().find(|earlier| earlier.term == term) {
            Some(earlier) => *earlier = field,
            None => self.fields.push(field),
        }
        Ok(())
    }
}

/// Without quotes, up to white space.
fn plain(text: &str) -> String {
    text.replace(['"', '\''], "").split_whitespace().next().unwrap_or_default().to_string()
}

/// As strtoull reads it: signed, 0x is hexadecimal, 0 octal, what follows the digits is ignored and no digits are 0.
/// None above 64 bits.
fn c_number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, _) = unsigned(text);
    let number = number?;
    Some(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests;
