//! Formulas, in the grammar of perf's metrics (tools/perf/util/expr.y), which has those of the other formats in it. From weak to strong:
//! `a if b else c`; `|`; `^`; `&`; `<` and `>`; `+` and `-`; `*`, `/` and `%`; a minus before one operand. `|`, `^` and `&` are 1 or 0.

use crate::{MOST_BRACKETS, MOST_DEPTH, MOST_FORMULA, MOST_NAME, MOST_WORDS};
use topdown::{Expression, Operator};

/// The least number above 0: what is less than it, and not below 0, is 0.
const ABOVE_ZERO: f64 = f64::from_bits(1);

/// An expression, and how large it is.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    pub expression: Expression,
    /// Operators within one another.
    pub depth: usize,
    /// Operators, numbers and names.
    pub words: usize,
}

impl Formula {
    pub fn number(number: f64) -> Formula {
        Formula { expression: Expression::Number(number), depth: 1, words: 1 }
    }

    pub fn name(name: &str) -> Formula {
        Formula { expression: Expression::Name(name.into()), depth: 1, words: 1 }
    }

    fn as_number(&self) -> Option<f64> {
        match self.expression {
            Expression::Number(number) => Some(number),
            _ => None,
        }
    }

    /// What an operator makes of two.
    pub fn of(operator: Operator, a: Formula, b: Formula) -> Result<Formula, String> {
        if let (Some(a), Some(b)) = (a.as_number(), b.as_number()) {
            let is = |is: bool| Ok(Formula::number(f64::from(u8::from(is))));
            match operator {
                Operator::Less => return is(a < b),
                Operator::NotLess => return is(a >= b),
                _ => {}
            }
        }
        let (depth, words) = (1 + a.depth.max(b.depth), 1 + a.words + b.words);
        bounded(Formula {
            expression: Expression::Of(operator, Box::new([a.expression, b.expression])),
            depth,
            words,
        })
    }

    /// The second where the first is not 0 (or no number, as perf has it), else the third.
    pub fn choice(condition: Formula, then: Formula, otherwise: Formula) -> Result<Formula, String> {
        if let Some(number) = condition.as_number() {
            return Ok(if number == 0.0 { otherwise } else { then });
        }
        let is_plain = match &condition.expression {
            Expression::Of(Operator::Less | Operator::NotLess, _) => true,
            Expression::Name(name) => name == "smt_on",
            _ => false,
        };
        let condition = if is_plain { condition } else { condition.compared_with_zero()? };
        let depth = 1 + condition.depth.max(then.depth).max(otherwise.depth);
        let words = 1 + condition.words + then.words + otherwise.words;
        let all = [condition.expression, then.expression, otherwise.expression];
        bounded(Formula { expression: Expression::If(Box::new(all)), depth, words })
    }

    /// 1 where it is not 0, else 0: a comparison, as conditions have to be.
    fn compared_with_zero(self) -> Result<Formula, String> {
        let minus = Formula::of(Operator::Minus, Formula::number(0.0), self.clone())?;
        let size = Formula::of(Operator::Max, self, minus)?;
        Formula::of(Operator::NotLess, size, Formula::number(ABOVE_ZERO))
    }

    /// The same as 1 or 0.
    fn truth(self) -> Result<Formula, String> {
        match &self.expression {
            Expression::Of(Operator::Less | Operator::NotLess, _) => Ok(self),
            _ => Formula::choice(self, Formula::number(1.0), Formula::number(0.0)),
        }
    }

    fn both(a: Formula, b: Formula) -> Result<Formula, String> {
        Formula::choice(a, b.truth()?, Formula::number(0.0))
    }

    fn either(a: Formula, b: Formula) -> Result<Formula, String> {
        Formula::choice(a, Formula::number(1.0), b.truth()?)
    }

    fn one_alone(a: Formula, b: Formula) -> Result<Formula, String> {
        let b = b.truth()?;
        let not_b = Formula::choice(b.clone(), Formula::number(0.0), Formula::number(1.0))?;
        Formula::choice(a, not_b, b)
    }

    /// The ratio, or nothing of nothing.
    fn d_ratio(a: Formula, b: Formula) -> Result<Formula, String> {
        let ratio = Formula::of(Operator::By, a, b.clone())?;
        Formula::choice(b, ratio, Formula::number(0.0))
    }
}

fn bounded(formula: Formula) -> Result<Formula, String> {
    match formula {
        Formula { depth, .. } if depth > MOST_DEPTH => {
            Err(format!("its formula has more than {MOST_DEPTH} operators in one another"))
        }
        Formula { words, .. } if words > MOST_WORDS => {
            Err(format!("its formula has more than {MOST_WORDS} words"))
        }
        formula => Ok(formula),
    }
}

/// Reads a formula. Names are as they are written, without backslashes; a literal has its `#`, and what `has_event` is asked of is one name,
/// `has_event(NAME)`.
///
/// # Errors
/// What is wrong, or not supported.
pub(crate) fn read(text: &str) -> Result<Formula, String> {
    if text.len() > MOST_FORMULA {
        return Err(format!("its formula has more than {MOST_FORMULA} bytes"));
    }
    let words = words(text)?;
    let mut parser = FormulaParser { words: &words, brackets: 0 };
    let formula = parser.choice()?;
    match parser.words {
        [] => Ok(formula),
        [word, ..] => Err(format!("in its formula '{}' follows the end", word.text())),
    }
}

/// A word of a formula.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Number(f64),
    Name(String),
    Sign(&'static str),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Number(number) => number.to_string(),
            Word::Name(name) => name.clone(),
            Word::Sign(sign) => (*sign).into(),
        }
    }
}

const SIGNS: [&str; 15] = ["<=", ">=", "<", ">", "+", "-", "*", "/", "%", "|", "^", "&", "(", ")", ","];

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (number, name) = (number_length(rest), name_length(rest));
        let length = if number > 0 && number >= name {
            let value = rest[..number].parse().map_err(|_| format!("'{}' is no number", &rest[..number]))?;
            words.push(Word::Number(value));
            number
        } else if name > 0 {
            let written: String = rest[..name].chars().filter(|c| *c != '\\').collect();
            if written.len() > MOST_NAME {
                return Err(format!("its formula has a name of more than {MOST_NAME} bytes"));
            }
            words.push(Word::Name(written));
            name
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            words.push(Word::Sign(sign));
            sign.len()
        } else {
            let sign = rest.chars().next().unwrap_or_default();
            return Err(format!("its formula has {sign:?}, which is not supported"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

/// Of a number at the beginning, as in `12`, `.5` and `1e-9`.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut length = whole;
    if text[length..].starts_with('.') {
        let part = digits(&text[length + 1..]);
        length += if whole + part > 0 { 1 + part } else { 0 };
    }
    let power = &text[length..];
    if length > 0 && power.starts_with(['e', 'E']) {
        let sign = usize::from(power[1..].starts_with(['-', '+']));
        let digits = digits(&power[1 + sign..]);
        length += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    length
}

/// Of a name at the beginning: letters, digits and `_.:@?`, and what has a backslash before it; or a literal.
fn name_length(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.:@?".contains(c);
    let mut length = usize::from(text.starts_with('#'));
    let mut is_escaped = false;
    for c in text[length..].chars() {
        if is_escaped && c.is_ascii_graphic() {
            is_escaped = false;
        } else if c == '\\' && !is_escaped {
            is_escaped = true;
        } else if is_escaped || !is_of_name(c) {
            break;
        }
        length += c.len_utf8();
    }
    length
}

struct FormulaParser<'w> {
    words: &'w [Word],
    brackets: usize,
}

/// From weak to strong, between two of the next.
const RANKS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<", ">", "<=", ">="], &["+", "-"], &["*", "/", "%"]];

impl FormulaParser<'_> {
    fn is_next(&self, sign: &str) -> bool {
        match self.words.first() {
            Some(Word::Sign(next)) => *next == sign,
            Some(Word::Name(next)) => next == sign,
            _ => false,
        }
    }

    fn took(&mut self, sign: &str) -> bool {
        let is_next = self.is_next(sign);
        self.words = &self.words[usize::from(is_next)..];
        is_next
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        let next = self.words.first().map_or("its end".into(), |next| format!("'{}'", next.text()));
        match self.took(sign) {
            true => Ok(()),
            false => Err(format!("in its formula {next} stands where '{sign}' should")),
        }
    }

    fn choice(&mut self) -> Result<Formula, String> {
        let then = self.ranked(0)?;
        if !self.took("if") {
            return Ok(then);
        }
        let condition = self.ranked(0)?;
        self.expect("else")?;
        let otherwise = self.deeper(Self::choice)?;
        Formula::choice(condition, then, otherwise)
    }

    /// Operands between signs of this rank, from the left.
    fn ranked(&mut self, rank: usize) -> Result<Formula, String> {
        let Some(signs) = RANKS.get(rank) else { return self.operand() };
        let mut all = self.ranked(rank + 1)?;
        while let Some(sign) = signs.iter().find(|sign| self.is_next(sign)) {
            self.took(sign);
            let next = self.ranked(rank + 1)?;
            all = match *sign {
                "|" => Formula::either(all, next),
                "^" => Formula::one_alone(all, next),
                "&" => Formula::both(all, next),
                "<" => Formula::of(Operator::Less, all, next),
                ">" => Formula::of(Operator::Less, next, all),
                ">=" => Formula::of(Operator::NotLess, all, next),
                "<=" => Formula::of(Operator::NotLess, next, all),
                "+" => Formula::of(Operator::Plus, all, next),
                "-" => Formula::of(Operator::Minus, all, next),
                "*" => Formula::of(Operator::Times, all, next),
                "/" => Formula::of(Operator::By, all, next),
                _ => Err("its formula has %, which is not supported".into()),
            }?;
        }
        Ok(all)
    }

    fn operand(&mut self) -> Result<Formula, String> {
        let Some((word, rest)) = self.words.split_first() else {
            return Err("its formula ends too early".into());
        };
        self.words = rest;
        match word {
            Word::Number(number) => Ok(Formula::number(*number)),
            Word::Sign("-") => match self.deeper(Self::operand)? {
                Formula { expression: Expression::Number(number), .. } => Ok(Formula::number(-number)),
                of => Formula::of(Operator::Minus, Formula::number(0.0), of),
            },
            Word::Sign("(") => self.deeper(|parser| {
                let within = parser.choice()?;
                parser.expect(")")?;
                Ok(within)
            }),
            Word::Sign(sign) => Err(format!("in its formula '{sign}' stands where a value should")),
            Word::Name(name) if self.is_next("(") => self.function(name),
            Word::Name(name) if name == "if" || name == "else" => {
                Err(format!("in its formula '{name}' stands where a value should"))
            }
            Word::Name(name) => Ok(Formula::name(name)),
        }
    }

    fn function(&mut self, name: &str) -> Result<Formula, String> {
        let of_two = match name {
            "min" => |a, b| Formula::of(Operator::Min, a, b),
            "max" => |a, b| Formula::of(Operator::Max, a, b),
            "d_ratio" => Formula::d_ratio,
            "has_event" => return self.has_event(),
            _ => return Err(format!("its formula has {name}(), which is not supported")),
        };
        self.expect("(")?;
        self.deeper(|parser| {
            let first = parser.choice()?;
            parser.expect(",")?;
            let second = parser.choice()?;
            parser.expect(")")?;
            of_two(first, second)
        })
    }

    fn has_event(&mut self) -> Result<Formula, String> {
        match self.words {
            [_, Word::Name(event), Word::Sign(")"), rest @ ..] => {
                self.words = rest;
                Ok(Formula::name(&format!("has_event({event})")))
            }
            _ => Err("its formula has has_event() of what is no name".into()),
        }
    }

    /// What is read one level deeper.
    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<Formula, String>) -> Result<Formula, String> {
        self.brackets += 1;
        if self.brackets > MOST_BRACKETS {
            return Err(format!("its formula has more than {MOST_BRACKETS} brackets in one another"));
        }
        let within = read(self)?;
        self.brackets -= 1;
        Ok(within)
    }
}
