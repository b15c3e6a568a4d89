//! Event files: perfmon JSON, in each of the shapes it is and was published in.
//!
//! An array of entries, or an object with it as member `Events`; what else the object has is not looked at. An entry
//! is an object whose values are strings, numbers or booleans. Read in one pass, and no tree is made of it: lists are
//! large, and programs wait for them when they start.

mod entry;

use crate::list::ListedEvent;
use entry::PerfmonEntry;
pub(crate) use entry::term_value;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::borrow::Cow;
use std::fmt;

/// The events of a file; those that do not name a PMU are of `pmu`.
pub fn parse(file: &[u8], pmu: &str) -> Result<Vec<ListedEvent>, serde_json::Error> {
    // Some files have a letter of another encoding in a description.
    let text = String::from_utf8_lossy(file);
    let mut json = serde_json::Deserializer::from_str(text.strip_prefix('\u{feff}').unwrap_or(&text));
    let mut events = Vec::new();
    PerfmonFile { events: &mut events, pmu }.deserialize(&mut json)?;
    json.end()?;
    Ok(events)
}

/// The whole, to be put in `events`.
struct PerfmonFile<'a> {
    events: &'a mut Vec<ListedEvent>,
    pmu: &'a str,
}

impl<'de> DeserializeSeed<'de> for PerfmonFile<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PerfmonFile<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("events, or an object with Events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<PerfmonEntry>()? {
            self.events.extend(entry.event(self.pmu));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let PerfmonFile { events, pmu } = self;
        while let Some(JsonText(key)) = members.next_key()? {
            if key.eq_ignore_ascii_case("Events") {
                members.next_value_seed(Events(PerfmonFile { events, pmu }))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The array in an object.
struct Events<'a>(PerfmonFile<'a>);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.0.visit_seq(entries)
    }
}

impl<'de> Deserialize<'de> for PerfmonEntry<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = PerfmonEntry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut entry = PerfmonEntry::default();
        while let Some(JsonText(key)) = members.next_key()? {
            match entry::field(&key) {
                Some(field) => entry.set(field, members.next_value::<JsonText>()?.0),
                None => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(entry)
    }
}

/// A string, or another value that is written as one. What has no text (null, arrays, objects) has an empty one.
struct JsonText<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for JsonText<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = JsonText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(JsonText(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(JsonText(text.to_string().into()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(JsonText(if value { "1" } else { "0" }.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(JsonText(value.to_string().into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(JsonText(value.to_string().into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(JsonText(value.to_string().into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(JsonText("".into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        self.visit_unit()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.visit_unit()
    }
}

#[cfg(test)]
mod tests;
