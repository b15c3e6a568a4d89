//! What the names in formulas stand for: events, other metrics, and what is known of the machine. A metric is put in the place of its name, so that
//! what is left is of events and of what is published for this CPU.

use crate::event::{EventFields, EventLayout, SLOTS};
use crate::file::{MetricFile, RawEvent, RawMetric};
use crate::formula::{self, Formula};
use crate::{MOST_DEPTH, MOST_EVENTS_OF_METRIC, MOST_REFERENCES, MOST_WORDS, MOST_WORDS_OF_ALL};
use std::collections::{HashMap, HashSet};
use topdown::{DeepEvent, Expression, GivenMetric, GivenMetrics, Operator, PublishedNames};

/// What formulas and events depend on.
pub struct Machine<'m> {
    /// Where the parts of an event are in its number.
    pub layout: EventLayout,
    /// It has persistent memory.
    pub has_pmem: bool,
    /// The kernel's part is counted, too.
    pub counts_kernel: bool,
    /// What this CPU's text has.
    pub published: &'m PublishedNames,
    /// An event by the name that the kernel has for it: its `config` and `config1`.
    pub kernel: &'m dyn Fn(&str) -> Option<(u64, u64)>,
}

/// All that some files ask for.
#[derive(Clone, Debug, Default)]
pub struct FileMetrics {
    /// The metrics in the order of the files, and the events that they take.
    pub given: GivenMetrics,
    /// Of each metric the file that it is of.
    pub files: Vec<usize>,
}

/// Resolves the metrics of these files. Of several metrics, or events, of one name the first is meant.
#[must_use]
pub fn resolve(files: &[MetricFile], machine: &Machine) -> FileMetrics {
    let mut resolver = Resolver::new(files, machine);
    let mut all = FileMetrics::default();
    for place in 0..resolver.metrics.len() {
        resolver.visit(place);
        let (file, metric) = resolver.metrics[place];
        let told = resolver.told[place].clone().unwrap_or_else(|| Err("it was not resolved".into()));
        let value = told.and_then(|told| scaled(told.formula, metric.scale)).map(|all| all.expression);
        all.files.push(file);
        all.given.metrics.push(GivenMetric { name: metric.name.clone(), unit: metric.unit.clone(), value });
    }
    all.given.events = resolver.taken;
    all
}

/// A metric's formula without names of metrics.
#[derive(Clone)]
struct ToldMetric {
    formula: Formula,
    /// Metrics that follow from one another down to this one.
    references: usize,
}

/// What the metrics that one takes are, together.
#[derive(Default)]
struct TakenMetrics {
    references: usize,
    words: usize,
}

struct Resolver<'m> {
    machine: &'m Machine<'m>,
    metrics: Vec<(usize, &'m RawMetric)>,
    formulas: Vec<Result<Formula, String>>,
    /// In the order of `metrics`; None: not yet.
    told: Vec<Option<Result<ToldMetric, String>>>,
    /// By their names in small letters: metrics, and events.
    by_name: HashMap<String, usize>,
    events: HashMap<String, &'m RawEvent>,
    published: HashMap<String, &'m DeepEvent>,
    /// Names that no event has.
    others: HashSet<String>,
    /// What is counted; by its numbers the name that it has in formulas; and all these names.
    taken: Vec<DeepEvent>,
    taken_names: HashMap<(u64, u64, bool), String>,
    names: HashSet<String>,
    /// Words of all formulas so far.
    words: usize,
}

/// Names of the core's own, which are no events.
const VALUES: [&str; 5] =
    ["smt_on", "tsc_ghz", "duration_time", "TOPDOWN.SLOTS", "TOPDOWN.SLOTS:PERF_METRICS"];

/// A name that is no metric.
enum Named {
    Value(Formula),
    Event(DeepEvent),
}

fn scaled(formula: Formula, scale: f64) -> Result<Formula, String> {
    match scale == 1.0 {
        true => Ok(formula),
        false => Formula::of(Operator::Times, Formula::number(scale), formula),
    }
}

impl<'m> Resolver<'m> {
    fn new(files: &'m [MetricFile], machine: &'m Machine<'m>) -> Resolver<'m> {
        let (mut metrics, mut by_name, mut events) = (Vec::new(), HashMap::new(), HashMap::new());
        for (place, file) in files.iter().enumerate() {
            for metric in &file.metrics {
                let own = metrics.len();
                if *by_name.entry(metric.name.to_ascii_lowercase()).or_insert(own) == own {
                    metrics.push((place, metric));
                }
            }
            for event in &file.events {
                events.entry(event.name.to_ascii_lowercase()).or_insert(event);
            }
        }
        let published = machine.published.events.iter();
        Resolver {
            machine,
            formulas: metrics.iter().map(|(_, metric)| formula_of(metric)).collect(),
            told: vec![None; metrics.len()],
            metrics,
            by_name,
            events,
            published: published.map(|event| (event.name.to_ascii_lowercase(), event)).collect(),
            others: machine
                .published
                .names
                .iter()
                .map(String::as_str)
                .chain(VALUES)
                .map(String::from)
                .collect(),
            taken: Vec::new(),
            taken_names: HashMap::new(),
            names: HashSet::new(),
            words: 0,
        }
    }

    /// The metric that a name in another's formula means.
    fn metric(&self, name: &str) -> Option<usize> {
        let lower = name.to_ascii_lowercase();
        let place = *self.by_name.get(&lower)?;
        let is_event = self.events.contains_key(&lower) || self.published.contains_key(&lower);
        (self.metrics[place].1.name == name || !is_event).then_some(place)
    }

    /// Resolves a metric, those that it takes first. (Without recursion: how far metrics follow from one another is the files' choice.)
    fn visit(&mut self, first: usize) {
        let mut open: Vec<(usize, Vec<usize>)> = vec![(first, self.needs(first))];
        let mut is_open = vec![false; self.metrics.len()];
        is_open[first] = true;
        while let Some((place, needs)) = open.last_mut() {
            let place = *place;
            if self.told[place].is_some() {
                is_open[place] = false;
                open.pop();
                continue;
            }
            match needs.pop() {
                Some(next) if is_open[next] => {
                    let what = format!("its formula follows from itself, by {}", self.metrics[next].1.name);
                    self.told[place] = Some(Err(what));
                }
                Some(next) if self.told[next].is_none() => {
                    is_open[next] = true;
                    let needs = self.needs(next);
                    open.push((next, needs));
                }
                Some(_) => {}
                None => {
                    let told = self.tell(place);
                    self.words += told.as_ref().map_or(0, |told| told.formula.words);
                    self.told[place] = Some(told);
                }
            }
        }
    }

    /// The metrics that one takes.
    fn needs(&self, place: usize) -> Vec<usize> {
        // (what Intel's formulas take are aliases)
        if self.metrics[place].1.aliases.is_some() {
            return Vec::new();
        }
        let names = self.formulas[place].as_ref().map_or(Vec::new(), |formula| formula.expression.names());
        names.into_iter().filter_map(|name| self.metric(name)).collect()
    }

    fn tell(&mut self, place: usize) -> Result<ToldMetric, String> {
        let formula = self.formulas[place].clone()?;
        if self.words + formula.words > MOST_WORDS_OF_ALL {
            return Err(format!("the formulas before it have {MOST_WORDS_OF_ALL} words: name fewer metrics"));
        }
        let mut taken = TakenMetrics::default();
        let formula = self.substitute(&formula.expression, place, &mut taken, 0);
        self.words += taken.words;
        let formula = formula?;
        let events: HashSet<&str> = formula.expression.names().into_iter().collect();
        if events.len() > MOST_EVENTS_OF_METRIC {
            return Err(format!(
                "it takes {} events, and at most {MOST_EVENTS_OF_METRIC} are counted",
                events.len()
            ));
        }
        match taken.references > MOST_REFERENCES {
            true => Err(format!("more than {MOST_REFERENCES} metrics follow from one another down to it")),
            false => Ok(ToldMetric { formula, references: taken.references }),
        }
    }

    fn substitute(
        &mut self,
        all: &Expression,
        place: usize,
        taken: &mut TakenMetrics,
        depth: usize,
    ) -> Result<Formula, String> {
        if depth > MOST_DEPTH {
            return Err(format!("its formula has more than {MOST_DEPTH} operators in one another"));
        }
        let mut of = |one: &Expression| self.substitute(one, place, taken, depth + 1);
        match all {
            Expression::Number(number) => Ok(Formula::number(*number)),
            Expression::Of(operator, operands) => {
                Formula::of(*operator, of(&operands[0])?, of(&operands[1])?)
            }
            Expression::If(operands) => {
                let condition = of(&operands[0])?;
                // (what is not taken need not be counted)
                if let Expression::Number(number) = condition.expression {
                    return of(&operands[if number == 0.0 { 2 } else { 1 }]);
                }
                Formula::choice(condition, of(&operands[1])?, of(&operands[2])?)
            }
            Expression::Name(name) => self.name(name, place, taken),
        }
    }

    fn name(&mut self, name: &str, place: usize, taken: &mut TakenMetrics) -> Result<Formula, String> {
        let metric = self.metrics[place].1;
        if let Some(aliases) = &metric.aliases {
            let of = |list: &[(String, String)]| {
                list.iter().find(|(alias, _)| alias == name).map(|(_, name)| name.clone())
            };
            if let Some(event) = of(&aliases.events) {
                return self.event_or_value(&event);
            }
            let constant = of(&aliases.constants).unwrap_or_else(|| name.into());
            let takes_time = aliases.constants.iter().any(|(_, name)| is_time(name));
            return match constant_of(&constant, takes_time) {
                Some(value) => value,
                None => self.event_or_value(&constant),
            };
        }
        if let Some(other) = self.metric(name) {
            return match &self.told[other] {
                Some(Ok(told)) => {
                    taken.references = taken.references.max(told.references + 1);
                    taken.words += told.formula.words;
                    match taken.words > MOST_WORDS {
                        true => Err(format!(
                            "with the metrics that it takes its formula has more than {MOST_WORDS} words"
                        )),
                        false => Ok(told.formula.clone()),
                    }
                }
                Some(Err(why)) => Err(of_metric(&self.metrics[other].1.name, why)),
                None => Err(of_metric(&self.metrics[other].1.name, "it was not resolved")),
            };
        }
        self.event_or_value(name)
    }

    fn event_or_value(&mut self, name: &str) -> Result<Formula, String> {
        match self.named(name)? {
            Named::Value(value) => Ok(value),
            Named::Event(event) if event.config == SLOTS && self.machine.layout == EventLayout::Intel => {
                Ok(Formula::name("TOPDOWN.SLOTS"))
            }
            Named::Event(event) => {
                let numbers = (event.config, event.config1, event.fixed);
                if let Some(own) = self.taken_names.get(&numbers) {
                    return Ok(Formula::name(own));
                }
                // (two events of one name, in two files' words, are two)
                let mut event = self.in_counters(event);
                while self.names.contains(&event.name) || self.others.contains(&event.name) {
                    event.name.push('\'');
                }
                let formula = Formula::name(&event.name);
                self.names.insert(event.name.clone());
                self.taken_names.insert(numbers, event.name.clone());
                self.taken.push(event);
                Ok(formula)
            }
        }
    }

    /// The event in the counters that this CPU's text has for its code and umask, where nothing else says which count it.
    fn in_counters(&self, event: DeepEvent) -> DeepEvent {
        const CODE_AND_UMASK: u64 = 0xffff;
        if event.fixed || event.counters != 0 || self.machine.layout != EventLayout::Intel {
            return event;
        }
        let is_same = |other: &&DeepEvent| other.config & CODE_AND_UMASK == event.config & CODE_AND_UMASK;
        let counters = self.machine.published.events.iter().filter(is_same).map(|other| other.counters);
        DeepEvent { counters: counters.max().unwrap_or_default(), ..event }
    }

    fn named(&self, name: &str) -> Result<Named, String> {
        let number = |number: f64| Ok(Named::Value(Formula::number(number)));
        let lower = name.to_ascii_lowercase();
        if let Some(event) = name.strip_prefix("has_event(").and_then(|rest| rest.strip_suffix(')')) {
            return number(f64::from(u8::from(matches!(self.event(event), Ok(Named::Event(_))))));
        }
        match lower.as_str() {
            "#smt_on" => return Ok(Named::Value(Formula::name("smt_on"))),
            "#core_wide" => return number(0.0),
            "#has_pmem" => return number(f64::from(u8::from(self.machine.has_pmem))),
            "#slots" if self.machine.published.slots_per_cycle > 0 => {
                return number(f64::from(self.machine.published.slots_per_cycle));
            }
            "#system_tsc_freq" => return Ok(Named::Value(tsc_frequency()?)),
            "duration_time" => return Ok(Named::Value(Formula::name("duration_time"))),
            _ if lower.starts_with('#') => return Err(format!("{name} is not known here")),
            _ => {}
        }
        self.event(name)
    }

    /// An event, or the name of what this CPU's text has.
    fn event(&self, name: &str) -> Result<Named, String> {
        let lower = name.to_ascii_lowercase();
        if let Some(event) = self.whole(&lower, name) {
            return event.map(Named::Event);
        }
        if let Some((pmu, rest)) = name.split_once('@') {
            return self.of_terms(name, pmu, rest).map(Named::Event);
        }
        if let Some((base, modifiers)) = name.split_once(':') {
            return self.modified(name, base, modifiers.split(':'));
        }
        let own = lower.strip_prefix("tma_").unwrap_or(&lower);
        if self.others.contains(own) && !VALUES.contains(&own) {
            return Ok(Named::Value(Formula::name(own)));
        }
        match lower.as_str() {
            _ if lower.starts_with("perf_metrics.") || lower.starts_with("topdown-") => {
                return Err(format!("{name} is in PERF_METRICS alone"));
            }
            _ if lower.starts_with("unc_") => return Err(format!("{name} is an uncore event")),
            _ => {}
        }
        if let Some(event) = self.of_kernel(name, &lower) {
            return event.map(Named::Event);
        }
        let raw = lower.strip_prefix('r').filter(|digits| (1..=16).contains(&digits.len()));
        if let Some(config) = raw.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            return Ok(Named::Event(DeepEvent { name: name.into(), config, ..DeepEvent::default() }));
        }
        Err(format!("{name} is no event of the files, of this CPU or of its kernel"))
    }

    /// An event whose name, with all modifiers, is in a file or in this CPU's text.
    fn whole(&self, lower: &str, name: &str) -> Option<Result<DeepEvent, String>> {
        if let Some(event) = self.events.get(lower) {
            return Some(match &event.pmu {
                Some(pmu) => Err(format!("{name} is an event of another PMU ({pmu})")),
                None => event.fields.event(name, self.machine.layout),
            });
        }
        let slots = ["slots", "topdown.slots", "topdown.slots:perf_metrics"].contains(&lower);
        if slots && self.machine.layout == EventLayout::Intel {
            return Some(Ok(DeepEvent { name: name.into(), config: SLOTS, ..DeepEvent::default() }));
        }
        self.published.get(lower).map(|event| Ok((*event).clone()))
    }

    /// An event of the kernel's, `events/` of the PMU.
    fn of_kernel(&self, name: &str, lower: &str) -> Option<Result<DeepEvent, String>> {
        let same = match lower {
            "cycles" => "cpu-cycles",
            "branches" => "branch-instructions",
            _ => lower,
        };
        let (config, config1) = [name, same].iter().find_map(|name| (self.machine.kernel)(name))?;
        let event = DeepEvent { name: name.into(), config, config1, ..DeepEvent::default() };
        // (which are fixed, and which in PERF_METRICS, their numbers tell)
        Some(EventFields::of(&event, self.machine.layout).event(name, self.machine.layout))
    }

    /// `cpu@EVENT,cmask=1@`, `cpu@event=0x3c,umask=0@k`.
    fn of_terms(&self, name: &str, pmu: &str, rest: &str) -> Result<DeepEvent, String> {
        let pmu = pmu.to_ascii_lowercase();
        if !["cpu", "cpu_core"].contains(&pmu.as_str()) && !pmu.starts_with("armv8") {
            return Err(format!("{name} is an event of another PMU ({pmu})"));
        }
        let (terms, modifiers) = rest.rsplit_once('@').unwrap_or((rest, ""));
        let mut fields = None;
        let mut later = Vec::new();
        for term in terms.split(',') {
            match term.split_once('=') {
                Some((term, value)) => later.push((term.trim().to_ascii_lowercase(), Some(value))),
                None if ["inv", "edge", "any", "percore"].contains(&term) => later.push((term.into(), None)),
                None => match self.event(term.trim())? {
                    Named::Event(event) => fields = Some(EventFields::of(&event, self.machine.layout)),
                    Named::Value(_) => return Err(format!("{term} is no event")),
                },
            }
        }
        let mut fields = fields.unwrap_or_default();
        later
            .iter()
            .filter(|(term, _)| term != "name")
            .try_for_each(|(term, value)| fields.set(term, *value))?;
        self.check_mode(name, modifiers.trim_start_matches(':'))?;
        fields.event(name, self.machine.layout)
    }

    /// `EVENT:c1`, `EVENT:ocr_msr_val=0x10`, `EVENT:u`.
    fn modified<'n>(
        &self,
        name: &str,
        base: &str,
        modifiers: impl Iterator<Item = &'n str>,
    ) -> Result<Named, String> {
        let latency =
            |modifier: &str| ["r", "retire_latency"].contains(&modifier.to_ascii_lowercase().as_str());
        let modifiers: Vec<&str> = modifiers.collect();
        if modifiers.iter().any(|modifier| latency(modifier)) {
            return Err(format!("the retire latency of {base} is not measured"));
        }
        let mut fields = None;
        for modifier in modifiers {
            let lower = modifier.to_ascii_lowercase();
            if is_mode(&lower) {
                self.check_mode(name, &lower)?;
                continue;
            }
            let fields = match &mut fields {
                Some(fields) => fields,
                None => match self.base(base, &lower)? {
                    Named::Event(event) => fields.insert(EventFields::of(&event, self.machine.layout)),
                    Named::Value(_) => return Err(format!("{base} is no event")),
                },
            };
            set_modifier(fields, &lower)?;
        }
        match fields {
            Some(fields) => fields.event(name, self.machine.layout).map(Named::Event),
            None => self.event(base),
        }
    }

    /// The event that a modifier is of; of an extra register's value any off-core response.
    fn base(&self, base: &str, modifier: &str) -> Result<Named, String> {
        let found = self.event(base);
        if found.is_ok() || !modifier.starts_with("ocr_msr_val") {
            return found;
        }
        let is_response = |event: &&DeepEvent| event.config1 != 0 && event.name.starts_with("OCR.");
        let any = self.machine.published.events.iter().find(is_response);
        any.map(|event| Named::Event(event.clone())).ok_or(format!("{base} is not known here"))
    }

    fn check_mode(&self, name: &str, mode: &str) -> Result<(), String> {
        match mode.to_ascii_lowercase().as_str() {
            "" => Ok(()),
            "u" | "user" if !self.machine.counts_kernel => Ok(()),
            "uk" | "ku" if self.machine.counts_kernel => Ok(()),
            _ => Err(format!("{name}: the parts of user and kernel mode are not counted apart")),
        }
    }
}

fn of_metric(name: &str, why: &str) -> String {
    // (of a long chain the last says it)
    match why.starts_with("it takes ") {
        true => why.into(),
        false => format!("it takes {name}: {why}"),
    }
}

fn formula_of(metric: &RawMetric) -> Result<Formula, String> {
    formula::read(&metric.formula)
}

fn is_mode(modifier: &str) -> bool {
    ["sup", "user"].contains(&modifier)
        || !modifier.is_empty() && modifier.chars().all(|c| "ukhg".contains(c))
}

/// `c1`, `e1`, `u0x10`, `ocr_msr_val=0x10`; `perf_metrics` says where SLOTS is counted.
fn set_modifier(fields: &mut EventFields, modifier: &str) -> Result<(), String> {
    if modifier == "perf_metrics" {
        return Ok(());
    }
    if let Some((name, value)) = modifier.split_once('=') {
        return fields.set(name, Some(value));
    }
    let letters = modifier.find(|c: char| c.is_ascii_digit()).unwrap_or(modifier.len());
    let (name, value) = modifier.split_at(letters);
    // (some have 0x twice)
    let value = if value.starts_with("0x0x") { &value[2..] } else { value };
    match name {
        "u" => fields.set("umask", Some(value)),
        "c" | "e" | "i" | "eq" if !value.is_empty() => fields.set(name, Some(value)),
        _ => Err(format!("the modifier ':{modifier}' is not known")),
    }
}

/// Cycles per second of the time-stamp counter.
fn tsc_frequency() -> Result<Formula, String> {
    Formula::of(Operator::Times, Formula::name("tsc_ghz"), Formula::number(1e9))
}

fn is_time(constant: &str) -> bool {
    constant.to_ascii_uppercase().starts_with("DURATIONTIMEIN")
}

/// A constant of Intel's formulas; None: it is none.
fn constant_of(name: &str, takes_time: bool) -> Option<Result<Formula, String>> {
    if let Some(number) = name.parse::<f64>().ok().filter(|number| number.is_finite()) {
        return Some(Ok(Formula::number(number)));
    }
    let seconds = || Formula::name("duration_time");
    let upper = name.to_ascii_uppercase();
    Some(match upper.as_str() {
        "HYPERTHREADING_ON" | "SMT_ON" => Ok(Formula::name("smt_on")),
        "THREADS_PER_CORE" => Formula::of(Operator::Plus, Formula::number(1.0), Formula::name("smt_on")),
        "DURATIONTIMEINSECONDS" => Ok(seconds()),
        "DURATIONTIMEINMILLISECONDS" => Formula::of(Operator::Times, Formula::number(1000.0), seconds()),
        // (such a formula divides by the time what the counter went on in it)
        "SYSTEM_TSC_FREQ" if takes_time => {
            tsc_frequency().and_then(|frequency| Formula::of(Operator::Times, frequency, seconds()))
        }
        "SYSTEM_TSC_FREQ" => tsc_frequency(),
        "CHAS_PER_SOCKET" | "SOCKET_COUNT" | "CORES_PER_SOCKET" | "TSC" | "COUNT" => {
            Err(format!("{name} is not known here"))
        }
        _ => return None,
    })
}
