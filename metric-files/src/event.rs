//! Events: what stands for them in perf_event_attr.

use topdown::DeepEvent;

/// Where the parts of an event are in `config` of the core's PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLayout {
    /// Code in bits 0 to 7, umask in 8 to 15 and 40 to 47; some codes of 0 are fixed counters.
    Intel,
    /// Code in bits 0 to 7 and 32 to 35.
    Amd,
    /// The event's number alone.
    Arm,
}

/// General-purpose counters that a list may name.
const MOST_COUNTERS: u32 = 32;
/// The first umask of code 0 that is a field of PERF_METRICS.
const FIRST_METRIC: u64 = 0x80;
/// SLOTS, as perf_event_open(2) takes it.
pub(crate) const SLOTS: u64 = 0x0400;
/// What the fixed counters of Intel's cores count, in their order.
const FIXED: [u64; 4] = [0xc0, 0x3c, 0x0300, SLOTS];

/// An event, as a file describes it or terms make it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFields {
    pub code: u64,
    pub umask: u64,
    pub cmask: u64,
    pub invert: bool,
    pub edge: bool,
    pub any: bool,
    pub equal: bool,
    /// The value of the extra register.
    pub extra: u64,
    /// A bit for each general-purpose counter that counts it; 0: all do.
    pub counters: u32,
    /// The fixed counter that counts it.
    pub fixed: Option<usize>,
}

/// A number, decimal or hexadecimal; of several with commas between them the first.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.split(',').next().unwrap_or_default().trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl EventFields {
    /// Of what `Counter` says: "0,1,2,3", "Fixed counter 1".
    pub fn set_counters(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        if let Some(rest) = lower.trim().strip_prefix("fixed") {
            self.fixed = rest.split_whitespace().last().and_then(|last| last.parse().ok());
            return;
        }
        let numbers = text.split(',').filter_map(|number| number.trim().parse::<u32>().ok());
        self.counters = numbers.filter(|one| *one < MOST_COUNTERS).fold(0, |all, one| all | 1 << one);
    }

    /// What perf_event_open(2) takes, if the PMU has such an event.
    pub fn event(&self, name: &str, layout: EventLayout) -> Result<DeepEvent, String> {
        let not = |why: &str| Err(format!("{name} is {why}"));
        let mut config = match layout {
            EventLayout::Arm => self.code,
            EventLayout::Intel if self.code > 0xff || self.umask > 0xffff => {
                return not("no event of the core's PMU");
            }
            EventLayout::Amd if self.code > 0xfff || self.umask > 0xff => {
                return not("no event of the core's PMU");
            }
            EventLayout::Intel => self.code | (self.umask & 0xff) << 8 | (self.umask >> 8) << 40,
            EventLayout::Amd => self.code & 0xff | (self.code >> 8) << 32 | self.umask << 8,
        };
        if self.cmask > 0xff {
            return not("told to have a count mask of more than 255");
        }
        let flags = [(self.edge, 18), (self.any, 21), (self.invert, 23), (self.equal, 36)];
        let flags = flags.iter().fold(self.cmask << 24, |all, (is, bit)| all | u64::from(*is) << bit);
        if layout == EventLayout::Arm && flags != 0 {
            return not("told to have a count mask, which this PMU does not");
        }
        let mut fixed = false;
        if layout == EventLayout::Intel {
            let of_code = (self.code == 0 && (1..=4).contains(&self.umask)).then(|| self.umask as usize - 1);
            if let Some(counter) = self.fixed.or(of_code).filter(|_| flags == 0) {
                let Some(of_counter) = FIXED.get(counter) else {
                    return not("counted by a fixed counter alone that is not counted here");
                };
                config = *of_counter;
            } else if self.code == 0 && self.umask >= FIRST_METRIC {
                return not("in PERF_METRICS alone");
            } else if self.code == 0 {
                return not("told to have code 0, which counts nothing");
            }
            fixed = flags == 0 && FIXED.contains(&config);
        }
        config |= flags;
        let counters = if fixed { 0 } else { self.counters };
        Ok(DeepEvent {
            name: name.into(),
            config,
            config1: self.extra,
            fixed,
            counters,
            ..DeepEvent::default()
        })
    }

    /// The same of an event that is known by its `config`.
    pub fn of(event: &DeepEvent, layout: EventLayout) -> EventFields {
        let DeepEvent { config, config1: extra, counters, .. } = *event;
        if layout == EventLayout::Arm {
            return EventFields { code: config, extra, counters, ..EventFields::default() };
        }
        let bit = |bit: u32| config >> bit & 1 == 1;
        let (high_code, high_umask) = match layout {
            EventLayout::Amd => ((config >> 32 & 0xf) << 8, 0),
            _ => (0, (config >> 40 & 0xff) << 8),
        };
        EventFields {
            code: config & 0xff | high_code,
            umask: config >> 8 & 0xff | high_umask,
            cmask: config >> 24 & 0xff,
            invert: bit(23),
            edge: bit(18),
            any: bit(21),
            equal: layout == EventLayout::Intel && bit(36),
            extra,
            counters,
            fixed: None,
        }
    }

    /// Sets a term of perf's (`cmask=1`, `inv`) or a modifier of Intel's (`c1`).
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let value = match value {
            None => 1,
            Some(text) => number(text).ok_or_else(|| format!("'{name}={text}' has no number"))?,
        };
        let is = value != 0;
        match name {
            "event" => self.code = value,
            "umask" => self.umask = value,
            "cmask" | "c" => self.cmask = value,
            "inv" | "i" => self.invert = is,
            "edge" | "e" => self.edge = is,
            "any" => self.any = is,
            "eq" => self.equal = is,
            "offcore_rsp" | "ldlat" | "frontend" | "config1" | "ocr_msr_val" => self.extra = value,
            "period" | "percore" => {}
            _ => return Err(format!("'{name}' of an event is not known")),
        }
        Ok(())
    }
}
