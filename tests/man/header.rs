//! What a header declares, each with the comment before it or behind it.

/// A header: its first comment, and what it declares.
pub struct Header {
    pub about: Vec<String>,
    pub items: Vec<Item>,
}

/// A declaration.
pub struct Item {
    pub name: String,
    /// Lines of its comment.
    pub comment: Vec<String>,
    /// Of constants: what the comment before the first of them says of all.
    pub of_all: Vec<String>,
    pub kind: Kind,
}

pub enum Kind {
    /// Type and parameters.
    Function(String, Vec<String>),
    /// Parameters.
    Macro(Vec<String>),
    Constant,
    Struct(Vec<Field>),
}

/// A member of a structure.
pub struct Field {
    pub code: String,
    pub comment: Vec<String>,
}

impl Item {
    /// Whether it is a function, or looks like one.
    pub fn is_called(&self) -> bool {
        matches!(self.kind, Kind::Function(..) | Kind::Macro(_))
    }
}

impl Header {
    pub fn new(text: &str) -> Header {
        let mut header = Header { about: Vec::new(), items: Vec::new() };
        let mut lines = text.lines();
        let (mut before, mut of_all) = (Vec::new(), Vec::new());
        while let Some(line) = lines.next() {
            if line.starts_with("/*") {
                before = comment(line, &mut lines);
                if !line.starts_with("/**") {
                    of_all.clone_from(&before);
                }
                if header.about.is_empty() {
                    header.about = std::mem::take(&mut before);
                }
                continue;
            }
            let said = std::mem::take(&mut before);
            if line.is_empty() {
                of_all.clear();
            } else if let Some(rest) = line.strip_prefix("#define ") {
                header.items.extend(defined(rest, said, &of_all));
            } else if let Some(name) = line.strip_prefix("struct ").and_then(|line| line.strip_suffix(" {")) {
                let kind = Kind::Struct(fields(&mut lines));
                header.items.push(Item { name: name.into(), comment: said, of_all: Vec::new(), kind });
            } else if line.contains('(') && line.starts_with(|c: char| c.is_ascii_lowercase()) {
                let mut code = line.to_string();
                while !code.ends_with([';', '{', '}', ')']) {
                    code += lines.next().expect("the end of a declaration").trim_start();
                }
                if let Some(item) = function(&code, said) {
                    header.items.push(item);
                }
            }
        }
        header
    }

    pub fn named(&self, pattern: &str) -> Vec<&Item> {
        let all = self.items.iter();
        match pattern.strip_suffix('*') {
            Some(prefix) => all
                .filter(|item| matches!(item.kind, Kind::Constant) && item.name.starts_with(prefix))
                .collect(),
            // (where there are several, the last one that says something is what it is to a program)
            None => {
                let named: Vec<_> = all.filter(|item| item.name == pattern).collect();
                let says = named.iter().rfind(|item| !item.comment.is_empty()).or(named.first());
                says.copied().into_iter().collect()
            }
        }
    }
}

/// The lines of a comment that begins with this line.
fn comment<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut text = Vec::new();
    let mut line =
        first.trim_start().trim_start_matches("/**").trim_start_matches("/*").trim_start_matches('<');
    loop {
        let (said, ended) = line.split_once("*/").map_or((line, false), |(said, _)| (said, true));
        text.push(said.strip_prefix(' ').unwrap_or(said).trim_end().to_string());
        if ended {
            return text;
        }
        line = lines.next().expect("the end of a comment").trim_start();
        line = line.strip_prefix('*').filter(|_| !line.starts_with("*/")).unwrap_or(line);
    }
}

/// A comment behind code, in the same line.
fn behind(line: &str) -> (&str, Vec<String>) {
    match line.split_once("/**<") {
        Some((code, said)) => (code.trim(), comment(said, &mut std::iter::empty())),
        None => (line.trim(), Vec::new()),
    }
}

fn defined(rest: &str, before: Vec<String>, of_all: &[String]) -> Option<Item> {
    let (code, said) = behind(rest);
    let name_ends = code.find([' ', '(']).unwrap_or(code.len());
    let (name, rest) = code.split_at(name_ends);
    let parameters = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let kind = match parameters {
        Some((names, _)) => Kind::Macro(names.split(", ").map(String::from).collect()),
        None if rest.trim().is_empty() => return None,
        None => Kind::Constant,
    };
    let comment = match kind {
        // (a comment without a second asterisk is of all that follow)
        Kind::Constant if !said.is_empty() || before == of_all => said,
        _ => before,
    };
    Some(Item { name: name.into(), comment, of_all: of_all.to_vec(), kind })
}

fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut before = Vec::new();
    loop {
        let line = lines.next().expect("the end of a structure");
        if line == "};" {
            return fields;
        }
        if line.trim_start().starts_with("/*") {
            before = comment(line, lines);
            continue;
        }
        let (code, said) = behind(line);
        let comment = if said.is_empty() { std::mem::take(&mut before) } else { said };
        fields.push(Field { code: code.trim_end_matches(';').into(), comment });
    }
}

fn function(code: &str, comment: Vec<String>) -> Option<Item> {
    let code = code.trim_start_matches("static inline ").trim_start_matches("static __inline__ ");
    let (head, rest) = code.split_once('(')?;
    let name = head.rsplit([' ', '*']).next()?;
    let mut parameters = vec![String::new()];
    let mut depth = 0;
    for c in rest.chars() {
        match c {
            ')' if depth == 0 => break,
            // (also those of a parameter that is a function: a line can be broken between them)
            ',' => parameters.push(String::new()),
            _ => {
                depth += i32::from(c == '(') - i32::from(c == ')');
                parameters.last_mut()?.push(c);
            }
        }
    }
    let parameters = parameters.iter().map(|parameter| parameter.trim().to_string()).collect();
    let kind = Kind::Function(head[..head.len() - name.len()].trim().into(), parameters);
    Some(Item { name: name.into(), comment, of_all: Vec::new(), kind })
}
