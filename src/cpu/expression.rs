//! Arithmetic over events and nodes, as the texts of cores have it, in perf's syntax: `+ - * /`, brackets, `min(a, b)`, `max(a, b)`,
//! numbers and names; in trees of deeper levels also `a if b < c else d`. A minus has spaces around it, since names may contain one.

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Number(f64),
    /// An event, a node, `slots`, or `width`.
    Name(String),
    /// What an operator makes of two.
    Of(Operator, Box<[Expression; 2]>),
    /// The second where the first is not 0, else the third.
    If(Box<[Expression; 3]>),
}

/// What is done with two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The sum.
    Plus,
    /// The first less the second.
    Minus,
    /// The product.
    Times,
    /// The first divided by the second.
    By,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// 1 where the first is less, else 0.
    Less,
    /// 0 there, else 1.
    NotLess,
}

/// No expression is longer, in words and signs.
const MOST_WORDS: usize = 1000;
/// Nor has more brackets in one another.
const MOST_BRACKETS: usize = 30;

impl Expression {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn read(text: &str) -> Result<Expression, String> {
        let words = words(text)?;
        let mut reader = ExpressionParser { words: &words, brackets: 0 };
        let expression = reader.choice()?;
        match reader.words {
            [] => Ok(expression),
            [word, ..] => Err(format!("'{word}' follows the end of the expression")),
        }
    }

    /// Whether it is this name alone.
    #[allow(dead_code)] // (the library itself reads deeper trees alone)
    pub fn is_name(&self, name: &str) -> bool {
        matches!(self, Expression::Name(own) if own == name)
    }

    /// Each name in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Name(name) => vec![name],
            Expression::Of(_, operands) => operands.iter().flat_map(Expression::names).collect(),
            Expression::If(operands) => operands.iter().flat_map(Expression::names).collect(),
        }
    }

    /// Whether something in it depends on which of two is less, or is 0.
    #[allow(dead_code)] // (the same)
    pub fn has_choice(&self) -> bool {
        match self {
            Expression::Number(_) | Expression::Name(_) => false,
            Expression::Of(operator, operands) => {
                matches!(operator, Operator::Less | Operator::NotLess)
                    || operands.iter().any(Expression::has_choice)
            }
            Expression::If(_) => true,
        }
    }
}

/// Names, numbers and signs.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    for part in text.split_whitespace() {
        let mut rest = part;
        while !rest.is_empty() {
            let is_sign = |c: char| "+*/(),<>".contains(c);
            let length = match rest.find(is_sign) {
                _ if rest == "-" => 1,
                Some(0) if rest.starts_with("<=") || rest.starts_with(">=") => 2,
                Some(0) => 1,
                Some(place) => place,
                None => rest.len(),
            };
            words.push(&rest[..length]);
            rest = &rest[length..];
        }
    }
    match words.len() {
        0 => Err("an expression is missing".into()),
        1..=MOST_WORDS => Ok(words),
        _ => Err(format!("the expression has more than {MOST_WORDS} words")),
    }
}

struct ExpressionParser<'t> {
    words: &'t [&'t str],
    brackets: usize,
}

impl<'t> ExpressionParser<'t> {
    fn next(&mut self) -> Result<&'t str, String> {
        let (word, rest) = self.words.split_first().ok_or("the expression ends too early")?;
        self.words = rest;
        Ok(word)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.next()? {
            word if word == wanted => Ok(()),
            word => Err(format!("'{word}' stands where '{wanted}' should")),
        }
    }

    /// Operands between signs of one rank, from the left.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Expression, String>,
        signs: [(&str, Operator); 2],
    ) -> Result<Expression, String> {
        let mut all = operand(self)?;
        while let Some((_, operator)) = signs.iter().find(|(sign, _)| self.words.first() == Some(sign)) {
            self.next()?;
            all = Expression::Of(*operator, Box::new([all, operand(self)?]));
        }
        Ok(all)
    }

    fn choice(&mut self) -> Result<Expression, String> {
        let first = self.comparison()?;
        if self.words.first() != Some(&"if") {
            return Ok(first);
        }
        self.next()?;
        let condition = self.comparison()?;
        self.expect("else")?;
        self.deeper(|reader| Ok(Expression::If(Box::new([condition, first, reader.choice()?]))))
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let first = self.sum()?;
        let Some(&sign) = self.words.first().filter(|word| ["<", ">", "<=", ">="].contains(word)) else {
            return Ok(first);
        };
        self.next()?;
        let second = self.sum()?;
        let (operator, operands) = match sign {
            "<" => (Operator::Less, [first, second]),
            ">" => (Operator::Less, [second, first]),
            ">=" => (Operator::NotLess, [first, second]),
            _ => (Operator::NotLess, [second, first]),
        };
        Ok(Expression::Of(operator, Box::new(operands)))
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain(Self::product, [("+", Operator::Plus), ("-", Operator::Minus)])
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain(Self::operand, [("*", Operator::Times), ("/", Operator::By)])
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let word = self.next()?;
        match word {
            "(" => self.within_brackets(Self::choice),
            "min" | "max" if self.words.first() == Some(&"(") => {
                self.next()?;
                let operator = if word == "min" { Operator::Min } else { Operator::Max };
                self.within_brackets(|reader| {
                    let first = reader.choice()?;
                    reader.expect(",")?;
                    Ok(Expression::Of(operator, Box::new([first, reader.choice()?])))
                })
            }
            // (a node is called 4k_aliasing)
            _ if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                || word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('_') =>
            {
                Ok(Expression::Name(word.into()))
            }
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let number = word.parse().map_err(|_| format!("'{word}' is no number"))?;
                Ok(Expression::Number(number))
            }
            _ => Err(format!("'{word}' is neither a name nor a number")),
        }
    }

    fn within_brackets(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        self.deeper(|reader| {
            let within = read(reader)?;
            reader.expect(")")?;
            Ok(within)
        })
    }

    /// What is read one level deeper.
    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        self.brackets += 1;
        if self.brackets > MOST_BRACKETS {
            return Err(format!("there are more than {MOST_BRACKETS} brackets in one another"));
        }
        let within = read(self)?;
        self.brackets -= 1;
        Ok(within)
    }
}
