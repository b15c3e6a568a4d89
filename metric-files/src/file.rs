//! The JSON of a file: which metrics and events it has. The three formats are told apart by their structure. It is read in one pass, entry by
//! entry, and of each entry only what is looked at is kept.

use crate::event::{EventFields, number};
use crate::{MOST_BYTES, MOST_EVENTS, MOST_METRICS, MOST_NAME};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::fmt;

/// What a file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricFile {
    pub(crate) metrics: Vec<RawMetric>,
    pub(crate) events: Vec<RawEvent>,
    /// Which CPU it is of, if it says so.
    pub product: Option<Product>,
    /// Metrics and events of E-cores, which are not kept.
    pub of_e_cores: usize,
}

/// The CPU that an Arm file is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Product {
    /// Its name.
    pub name: String,
    /// Of MIDR_EL1.
    pub implementer: u64,
    /// The same.
    pub part: u64,
}

/// A metric, as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RawMetric {
    pub name: String,
    pub formula: String,
    /// What it is in; of one if it is "share".
    pub unit: String,
    /// The formula's value times this is in that.
    pub scale: f64,
    /// Words of Intel's formulas, and the event or the constant that each stands for.
    pub aliases: Option<Aliases>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Aliases {
    pub events: Vec<(String, String)>,
    pub constants: Vec<(String, String)>,
}

/// An event, as it is described.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RawEvent {
    pub name: String,
    pub fields: EventFields,
    /// The PMU that counts it, if that is not the core's.
    pub pmu: Option<String>,
}

impl MetricFile {
    /// How many metrics it has.
    #[must_use]
    pub fn metrics(&self) -> usize {
        self.metrics.len()
    }

    /// How many events it describes.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    fn add_metric<E: Error>(&mut self, metric: RawMetric) -> Result<(), E> {
        if self.metrics.len() == MOST_METRICS {
            return Err(E::custom(format_args!(
                "it has more than {MOST_METRICS} metrics: keep those that you need"
            )));
        }
        self.metrics.push(metric);
        Ok(())
    }

    fn add_event<E: Error>(&mut self, event: RawEvent) -> Result<(), E> {
        if self.events.len() == MOST_EVENTS {
            return Err(E::custom(format_args!(
                "it has more than {MOST_EVENTS} events: keep those that you need"
            )));
        }
        self.events.push(event);
        Ok(())
    }
}

/// Reads a file.
///
/// # Errors
/// It is too large, no JSON, none of the three formats, or has neither metrics nor events.
pub fn read(bytes: &[u8]) -> Result<MetricFile, String> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {} MiB: keep the metrics that you need", MOST_BYTES >> 20));
    }
    // (some files have a letter of another encoding in a description)
    let text = String::from_utf8_lossy(bytes);
    let mut json = serde_json::Deserializer::from_str(text.strip_prefix('\u{feff}').unwrap_or(&text));
    let mut file = MetricFile::default();
    let read = json.deserialize_any(WholeFile(&mut file)).and_then(|()| json.end());
    read.map_err(|error| match error.classify() {
        serde_json::error::Category::Data => format!("{error} (docs/metrics.md has the formats)"),
        _ => format!("it is not JSON: {error} (docs/metrics.md has the formats)"),
    })?;
    match (file.metrics.is_empty() && file.events.is_empty(), file.of_e_cores) {
        (true, 0) => {
            Err("it has neither metrics nor events: it is to be Intel's, Linux perf's or Arm's JSON of \
                          metrics (docs/metrics.md)"
                .into())
        }
        (true, _) => Err("it has metrics and events of E-cores alone, which are not counted".into()),
        (false, _) => Ok(file),
    }
}

struct WholeFile<'f>(&'f mut MetricFile);

impl<'de> Visitor<'de> for WholeFile<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array, or an object with metrics or events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        Entries(self.0).visit_seq(entries)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(JsonText(key)) = members.next_key()? {
            match key.as_str() {
                "Metrics" | "Events" => members.next_value_seed(Entries(&mut *self.0))?,
                "metrics" | "events" => {
                    let is_of_metrics = key == "metrics";
                    members.next_value_seed(ArmEntries { file: &mut *self.0, is_of_metrics })?;
                }
                "product_configuration" => {
                    let entry: Entry = members.next_value()?;
                    self.0.product = entry.product();
                }
                _ => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// An array of metrics and events, of Intel's or perf's.
struct Entries<'f>(&'f mut MetricFile);

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of metrics or events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Entry>()? {
            if entry.is("Unit", "cpu_atom") {
                self.0.of_e_cores += 1;
            } else if let Some(metric) = entry.metric() {
                self.0.add_metric(metric)?;
            } else if let Some(event) = entry.event() {
                self.0.add_event(event)?;
            }
        }
        Ok(())
    }
}

/// The object of metrics, or of events, of Arm's.
struct ArmEntries<'f> {
    file: &'f mut MetricFile,
    is_of_metrics: bool,
}

impl<'de> DeserializeSeed<'de> for ArmEntries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ArmEntries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of metrics or events by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some((JsonText(name), entry)) = entries.next_entry::<JsonText, Entry>()? {
            match (self.is_of_metrics, entry.get("formula"), entry.get("code").and_then(number)) {
                (true, Some(formula), _) => {
                    let unit = plain(entry.get("units").unwrap_or_default());
                    let metric = RawMetric {
                        name: plain(&name),
                        formula: formula.into(),
                        unit,
                        scale: 1.0,
                        aliases: None,
                    };
                    self.file.add_metric(metric.in_shares())?;
                }
                (false, _, Some(code)) => {
                    let fields = EventFields { code, ..EventFields::default() };
                    self.file.add_event(RawEvent { name: plain(&name), fields, pmu: None })?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl RawMetric {
    /// Percent as a share of one.
    fn in_shares(self) -> RawMetric {
        match ["percent", "%"].contains(&self.unit.as_str()) {
            true => RawMetric { unit: "share".into(), scale: self.scale / 100.0, ..self },
            false => self,
        }
    }
}

/// What is looked at of an entry's members, in all formats.
const FIELDS: [&str; 26] = [
    "MetricName",
    "MetricExpr",
    "ScaleUnit",
    "UnitOfMeasure",
    "Formula",
    "Unit",
    "EventName",
    "EventCode",
    "UMask",
    "UMaskExt",
    "CounterMask",
    "Invert",
    "EdgeDetect",
    "AnyThread",
    "Counter",
    "MSRIndex",
    "MSRValue",
    "ConfigCode",
    "formula",
    "units",
    "code",
    "product_name",
    "implementer",
    "part_num",
    "Name",
    "Alias",
];

/// An entry: its texts, and Intel's aliases.
#[derive(Default)]
struct Entry {
    texts: Vec<(&'static str, String)>,
    aliases: Aliases,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a metric or an event, as an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Entry, A::Error> {
        let mut entry = Entry::default();
        while let Some(JsonText(key)) = members.next_key()? {
            if let Some(field) = FIELDS.iter().find(|field| **field == key) {
                let JsonText(text) = members.next_value()?;
                // (the first of one name)
                if entry.get(field).is_none() {
                    entry.texts.push((field, text));
                }
            } else if key == "Events" {
                members.next_value_seed(AliasList(&mut entry.aliases.events))?;
            } else if key == "Constants" {
                members.next_value_seed(AliasList(&mut entry.aliases.constants))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(entry)
    }
}

/// What the aliases of a metric of Intel's stand for.
struct AliasList<'l>(&'l mut Vec<(String, String)>);

impl<'de> DeserializeSeed<'de> for AliasList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AliasList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of names and their aliases")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Entry>()? {
            let (Some(name), Some(alias)) = (entry.get("Name"), entry.get("Alias")) else { continue };
            if self.0.len() == MOST_EVENTS {
                return Err(A::Error::custom("a metric has too many events"));
            }
            self.0.push((plain(alias), plain(name)));
        }
        Ok(())
    }

    // (null)
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Entry {
    fn get(&self, field: &str) -> Option<&str> {
        self.texts.iter().find(|(own, _)| *own == field).map(|(_, text)| text.as_str())
    }

    fn is(&self, field: &str, text: &str) -> bool {
        self.get(field).is_some_and(|own| own.eq_ignore_ascii_case(text))
    }

    fn metric(&self) -> Option<RawMetric> {
        let name = plain(self.get("MetricName")?);
        if let Some(formula) = self.get("MetricExpr") {
            let (scale, unit) = scale_and_unit(self.get("ScaleUnit").unwrap_or_default());
            let metric = RawMetric { name, formula: formula.into(), unit, scale, aliases: None };
            return Some(metric.in_shares());
        }
        let formula = self.get("Formula")?.into();
        let unit = plain(self.get("UnitOfMeasure").unwrap_or_default());
        let aliases = Some(self.aliases.clone());
        Some(RawMetric { name, formula, unit, scale: 1.0, aliases }.in_shares())
    }

    fn event(&self) -> Option<RawEvent> {
        let name = plain(self.get("EventName")?);
        let of = |field: &str| self.get(field).and_then(number);
        let is = |field: &str| of(field).is_some_and(|value| value != 0) || self.is(field, "true");
        let code = of("EventCode").or(of("ConfigCode"));
        let mut fields = EventFields {
            code: code.unwrap_or_default(),
            umask: of("UMask").unwrap_or_default() | of("UMaskExt").unwrap_or_default().min(0xff) << 8,
            cmask: of("CounterMask").unwrap_or_default(),
            invert: is("Invert"),
            edge: is("EdgeDetect"),
            any: is("AnyThread"),
            // (a list of registers begins with the one that is meant)
            extra: if of("MSRIndex").unwrap_or_default() != 0 {
                of("MSRValue").unwrap_or_default()
            } else {
                0
            },
            ..EventFields::default()
        };
        fields.set_counters(self.get("Counter").unwrap_or_default());
        // (what has no code is known by its name to whoever reads such files)
        if code.is_none() && fields.fixed.is_none() {
            return None;
        }
        let pmu = self
            .get("Unit")
            .filter(|unit| !["", "cpu", "cpu_core"].contains(&unit.to_ascii_lowercase().as_str()));
        Some(RawEvent { name, fields, pmu: pmu.map(plain) })
    }

    fn product(&self) -> Option<Product> {
        let of = |field: &str| self.get(field).and_then(number);
        let name = plain(self.get("product_name").unwrap_or_default());
        Some(Product { name, implementer: of("implementer")?, part: of("part_num")? })
    }
}

/// Of the number before a unit.
const MOST_DIGITS: usize = 40;

/// "100%", "1per_branch", "6.103515625e-5MiB": the number, and what follows it.
fn scale_and_unit(text: &str) -> (f64, String) {
    let text = text.trim();
    // (an e is of the number if digits follow it)
    let ends = (1..=text.len().min(MOST_DIGITS)).rev().filter(|end| text.is_char_boundary(*end));
    let mut numbers =
        ends.filter_map(|end| Some((end, text[..end].parse::<f64>().ok().filter(|it| it.is_finite())?)));
    let (end, scale) = numbers.next().unwrap_or((0, 1.0));
    (scale, plain(&text[end..].replace('_', " ")))
}

/// Without what no line has, and not too long.
fn plain(text: &str) -> String {
    let text = text.trim().chars().map(|c| if c.is_control() { '?' } else { c });
    let mut length = 0;
    text.take_while(|c| {
        length += c.len_utf8();
        length <= MOST_NAME
    })
    .collect()
}

/// A string, or another value that is written as one. What has no text (null, arrays, objects) has an empty one.
struct JsonText(String);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = JsonText;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonText, E> {
        Ok(JsonText(text.into()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<JsonText, E> {
        Ok(JsonText(if value { "1" } else { "0" }.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<JsonText, E> {
        Ok(JsonText(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<JsonText, E> {
        Ok(JsonText(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<JsonText, E> {
        Ok(JsonText(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<JsonText, E> {
        Ok(JsonText(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<JsonText, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        self.visit_unit()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<JsonText, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.visit_unit()
    }
}
