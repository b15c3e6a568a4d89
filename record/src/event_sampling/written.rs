//! A condition as users write it: `ipc<0.5`, `A/B>0.01`, or perf's group of two events with `ratio-to-prev`.
#![forbid(unsafe_code)]

/// An event by its terms, as perf writes them: `PMU/terms/`, `EVENT/terms/` or `EVENT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventText {
    /// None: any that has the event.
    pub pmu: Option<String>,
    pub terms: String,
}

/// Samples are taken where `sampled` happens more than `ratio` times as often as `other`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConditionText {
    /// In a heading.
    pub text: String,
    pub sampled: EventText,
    pub other: EventText,
    pub ratio: f64,
    /// Of the event that samples, if it was given.
    pub period: Option<u64>,
}

/// What the counts are compared with has so many digits after the point, at most.
const DIGITS: f64 = 1e9;

impl ConditionText {
    /// `is_pmu`: whether this is a PMU's name.
    ///
    /// # Errors
    /// What is wrong, and how it is written.
    pub fn parse(text: &str, is_pmu: &dyn Fn(&str) -> bool) -> Result<ConditionText, String> {
        let text = text.trim();
        let wrong = |why: String| format!("--where '{text}': {why}");
        // (terms of events have no < and no >)
        match text.split_once(['<', '>']) {
            Some((ratio, limit)) => compared(ratio, text.contains('<'), limit, is_pmu),
            None if text.contains("ratio-to-prev") => group(text, is_pmu),
            None => Err("no condition: ipc<0.5, EVENT/EVENT>0.01, or \
                         'instructions/period=20000/,cycles/ratio-to-prev=0.5/'"
                .into()),
        }
        .map_err(wrong)
    }
}

/// A number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| (1.0 / DIGITS..=DIGITS).contains(number));
    number.ok_or_else(|| format!("'{}' is no ratio: a number above 0", text.trim()))
}

/// `ipc<N`, `A/B>N`.
fn compared(
    ratio: &str,
    below: bool,
    limit: &str,
    is_pmu: &dyn Fn(&str) -> bool,
) -> Result<ConditionText, String> {
    let limit = positive(limit)?;
    let ratio = ratio.trim();
    let events = if ratio == "ipc" { "instructions/cycles" } else { ratio };
    let event = |pmu: Option<&str>, terms: &str| EventText { pmu: pmu.map(Into::into), terms: terms.into() };
    let (above, divisor) = match events.split('/').map(str::trim).collect::<Vec<_>>()[..] {
        [a, b] => (event(None, a), event(None, b)),
        [pmu, a, "", b] if is_pmu(pmu) => (event(Some(pmu), a), event(None, b)),
        [a, pmu, b, ""] if is_pmu(pmu) => (event(None, a), event(Some(pmu), b)),
        [one, a, "", other, b, ""] if is_pmu(one) && is_pmu(other) => {
            (event(Some(one), a), event(Some(other), b))
        }
        _ => {
            return Err(format!(
                "'{ratio}' is no ratio of two events: ipc, EVENT/EVENT or PMU/TERMS//PMU/TERMS/ (one of sysfs)"
            ));
        }
    };
    let text = format!("{ratio} {} {limit}", if below { '<' } else { '>' });
    let (sampled, other, ratio) = if below { (divisor, above, 1.0 / limit) } else { (above, divisor, limit) };
    Ok(ConditionText { text, sampled, other, ratio, period: None })
}

/// An event of perf's group, with what it says besides.
struct MemberText {
    event: EventText,
    period: Option<u64>,
    ratio: Option<f64>,
}

/// The events of a group: those commas separate that are not between the slashes of an event.
fn members(text: &str) -> Result<Vec<&str>, String> {
    let text = match (text.strip_prefix('{'), text.strip_suffix('}')) {
        (Some(_), Some(_)) => &text[1..text.len() - 1],
        (None, None) => text,
        _ => return Err("one of the braces is missing".into()),
    };
    let (mut all, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '/' => inside = !inside,
            ',' if !inside => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("the last / is missing".into());
    }
    all.push(text[start..].trim());
    Ok(all)
}

fn member(text: &str, is_pmu: &dyn Fn(&str) -> bool) -> Result<MemberText, String> {
    let (head, rest) = text.split_once('/').unwrap_or((text, ""));
    let Some(terms) = rest.strip_suffix('/').or(rest.is_empty().then_some("")) else {
        return Err(format!("'{text}': what follows the last / is not known here"));
    };
    let (pmu, first) = if is_pmu(head) { (Some(head), None) } else { (None, Some(head)) };
    let (mut period, mut ratio) = (None, None);
    let mut left: Vec<&str> = first.into_iter().collect();
    for term in terms.split(',').map(str::trim).filter(|term| !term.is_empty()) {
        match term.split_once('=') {
            Some(("period", number)) => {
                let number = number.parse().map_err(|_| format!("'{term}' is no number of events"))?;
                period = Some(number);
            }
            Some(("ratio-to-prev", number)) => ratio = Some(positive(number)?),
            _ if term == "ratio-to-prev" => return Err("ratio-to-prev has no number".into()),
            Some(("freq" | "frequency", _)) => {
                return Err(format!(
                    "'{term}': counters that reload each other have a period, and no frequency"
                ));
            }
            Some(("acr_mask", _)) => {
                return Err(format!("'{term}': masks follow from ratio-to-prev, leave them out"));
            }
            _ => left.push(term),
        }
    }
    Ok(MemberText { event: EventText { pmu: pmu.map(Into::into), terms: left.join(",") }, period, ratio })
}

/// perf's form: the second event's period is `ratio-to-prev` times that of the first, which samples.
fn group(text: &str, is_pmu: &dyn Fn(&str) -> bool) -> Result<ConditionText, String> {
    let members: Vec<MemberText> =
        members(text)?.into_iter().map(|text| member(text, is_pmu)).collect::<Result<_, _>>()?;
    let [first, second] = <[MemberText; 2]>::try_from(members)
        .map_err(|all| format!("{} events: a group of two has a ratio", all.len()))?;
    if first.ratio.is_some() {
        return Err("ratio-to-prev of the first event: none precedes it, it belongs to the second".into());
    }
    let Some(ratio) = second.ratio else { return Err("the second event has no ratio-to-prev".into()) };
    let period = match (first.period, second.period) {
        (Some(period), None) => Some(period),
        (None, Some(period)) => Some((period as f64 / ratio).round() as u64),
        (None, None) => None,
        (Some(one), Some(two)) if (one as f64 * ratio).round() == two as f64 => Some(one),
        (Some(one), Some(two)) => {
            return Err(format!(
                "the periods contradict the ratio: {ratio} times {one} is {}, not {two}; give one period alone",
                (one as f64 * ratio).round()
            ));
        }
    };
    let name = |event: &EventText| match &event.pmu {
        Some(pmu) => format!("{pmu}/{}/", event.terms),
        None => event.terms.clone(),
    };
    let text = format!("{}/{} > {}", name(&first.event), name(&second.event), shortened(1.0 / ratio));
    Ok(ConditionText { text, sampled: first.event, other: second.event, ratio: 1.0 / ratio, period })
}

/// Without digits that only binary fractions have.
fn shortened(number: f64) -> f64 {
    format!("{number:.6}").parse().unwrap_or(number)
}

/// Periods of the two events: the first that overflows tells whether the condition held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Periods {
    pub sampled: u64,
    pub other: u64,
}

/// The longer of two periods that nobody has given.
const PERIOD: f64 = 1e6;
/// A stretch has at least so many of either event: the ratio of whole numbers is right to 1 %, and it is not chance which comes first.
const LEAST: u64 = 100;
/// The kernel's limit is 2^47; so many cycles are minutes.
const MOST: u64 = 1 << 40;

impl Periods {
    /// `given`: of the event that samples, or else one such that it has no more than one sample in `least` of it.
    ///
    /// # Errors
    /// They are too short, or too long.
    pub fn of(ratio: f64, given: Option<u64>, least: u64) -> Result<Periods, String> {
        let chosen = || {
            let longer = PERIOD.max(LEAST as f64 * ratio.max(1.0 / ratio));
            if ratio < 1.0 { longer * ratio } else { longer }.max(least as f64)
        };
        let sampled = given.map_or_else(chosen, |period| period as f64);
        let other = sampled / ratio;
        let least = LEAST as f64 - 0.5;
        if sampled < least || other < least {
            return Err(format!(
                "a stretch of {sampled:.0} of the one event and {other:.0} of the other is too short: {LEAST} of each at least"
            ));
        }
        if sampled > MOST as f64 || other > MOST as f64 {
            return Err(format!(
                "a stretch of {sampled:.0} of the one event and {other:.0} of the other is too long: {MOST} of each at most"
            ));
        }
        Ok(Periods { sampled: sampled.round() as u64, other: other.round() as u64 })
    }
}

#[cfg(test)]
mod tests;
