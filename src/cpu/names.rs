//! What nodes are called and mean (`cpus/nodes.list`): a line has its number, its name, a word or two, and the sentence that names it as the
//! bottleneck.

use super::words::Fault;

/// A node, in whichever tree it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    /// The same for ever; not 0.
    pub id: u32,
    /// perf's, without "tma_".
    pub name: String,
    pub short: String,
    /// With `%` in the place of its share; "": the parent's says it.
    pub verdict: String,
}

/// Adds those of a list to others.
///
/// # Errors
/// The first fault.
pub fn read(text: &str, names: &mut Vec<NodeName>) -> Result<(), Fault> {
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let name = node(line, names).map_err(|what| Fault { line: place + 1, what })?;
        names.push(name);
    }
    Ok(())
}

fn node(line: &str, names: &[NodeName]) -> Result<NodeName, String> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [id, name, short, verdict] = fields[..] else {
        return Err(format!("'{line}' has {} fields, and not four", fields.len()));
    };
    let id = id.parse().ok().filter(|id| *id > 0).ok_or_else(|| format!("'{id}' is no number from 1 on"))?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("'{name}' is no name of a metric"));
    }
    if short.is_empty() {
        return Err(format!("{name} has no short name"));
    }
    if !verdict.is_empty() && verdict.matches('%').count() != 1 {
        return Err(format!("the sentence of {name} has no place for its share, or several"));
    }
    if let Some(other) = names.iter().find(|other| other.id == id || other.name == name) {
        return Err(format!("{} has the number or the name already", other.name));
    }
    Ok(NodeName { id, name: name.into(), short: short.into(), verdict: verdict.into() })
}
