//! One entry of an event file, and the event that it makes.

use crate::list::ListedEvent;
use crate::say::say;
use std::borrow::Cow;
use std::fmt::Write;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use topdown_seam::numbers::unsigned;

/// What a member of an entry tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryField {
    Name,
    /// The value of a term, in which it is written as it is.
    Term(&'static str),
    Umask,
    /// Bits of the umask from 8 on.
    UmaskExt,
    Code,
    ExtSel,
    Counter,
    MsrIndex,
    MsrValue,
    Filter,
    FilterValue,
    Unit,
    Brief,
    Errata,
    DataLa,
    Pebs,
}

/// Members by name. The last eight are those of uncore units that have such a field in the kernel's format/.
const FIELDS: [(&str, EntryField); 28] = [
    ("EventName", EntryField::Name),
    ("EventCode", EntryField::Code),
    ("UMask", EntryField::Umask),
    ("UMaskExt", EntryField::UmaskExt),
    ("CounterMask", EntryField::Term("cmask")),
    ("Invert", EntryField::Term("inv")),
    ("AnyThread", EntryField::Term("any")),
    ("EdgeDetect", EntryField::Term("edge")),
    ("SampleAfterValue", EntryField::Term("period")),
    ("ExtSel", EntryField::ExtSel),
    ("Counter", EntryField::Counter),
    ("MSRIndex", EntryField::MsrIndex),
    ("MSRValue", EntryField::MsrValue),
    ("Filter", EntryField::Filter),
    ("FILTER_VALUE", EntryField::FilterValue),
    ("Unit", EntryField::Unit),
    ("BriefDescription", EntryField::Brief),
    ("Errata", EntryField::Errata),
    ("Data_LA", EntryField::DataLa),
    ("PEBS", EntryField::Pebs),
    ("PortMask", EntryField::Term("ch_mask")),
    ("FCMask", EntryField::Term("fc_mask")),
    ("RdWrMask", EntryField::Term("rdwrmask")),
    ("EnAllCores", EntryField::Term("enallcores")),
    ("EnAllSlices", EntryField::Term("enallslices")),
    ("SliceId", EntryField::Term("sliceid")),
    ("ThreadMask", EntryField::Term("threadmask")),
    ("NodeType", EntryField::Term("type")),
];

/// Units whose PMU is not called as they are.
const UNITS: [(&str, &str); 9] = [
    ("CBO", "cbox"),
    ("QPI LL", "qpi"),
    ("SBO", "sbox"),
    ("IMPH-U", "cbox"),
    ("NCU", "cbox"),
    ("UPI LL", "upi"),
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
];

/// Registers that the kernel writes for an event, and the term for each.
const MSRS: [(u64, &str); 4] =
    [(0x3f6, "ldlat"), (0x1a6, "offcore_rsp"), (0x1a7, "offcore_rsp"), (0x3f7, "frontend")];

/// The field of this name, in any case.
pub(super) fn field(name: &str) -> Option<EntryField> {
    FIELDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, field)| *field)
}

/// What was read of an entry. Texts that were not there are empty.
#[derive(Debug, Default)]
pub(super) struct PerfmonEntry<'a> {
    name: Cow<'a, str>,
    code: u64,
    umask: Cow<'a, str>,
    umask_ext: u64,
    /// Terms and their values, as they come. The value of `umask` is above.
    terms: Vec<(&'static str, Cow<'a, str>)>,
    counter: Cow<'a, str>,
    msr: Cow<'a, str>,
    msr_value: Cow<'a, str>,
    filter: Cow<'a, str>,
    filter_value: Cow<'a, str>,
    unit: Cow<'a, str>,
    brief: Cow<'a, str>,
    pebs: Cow<'a, str>,
    /// What else is in the description, in the order of fields.
    remarks: Vec<Remark<'a>>,
}

#[derive(Debug)]
enum Remark<'a> {
    Errata(Cow<'a, str>),
    Address,
    Unit,
}

impl<'a> PerfmonEntry<'a> {
    pub(super) fn set(&mut self, field: EntryField, text: Cow<'a, str>) {
        match field {
            EntryField::Name => self.name = text,
            EntryField::Term(term) => self.terms.push((term, text)),
            EntryField::Umask => {
                self.umask = text;
                self.terms.push(("umask", "".into()));
            }
            EntryField::UmaskExt => {
                self.umask_ext = number(&text) << 8;
                self.terms.push(("umask", "".into()));
            }
            EntryField::Code => self.code |= number(&text),
            // In its place: such a PMU's format/event is config:0-7,21.
            EntryField::ExtSel => self.code |= number(&text) << 21,
            EntryField::Counter => self.counter = text,
            EntryField::MsrIndex => self.msr = text,
            EntryField::MsrValue => self.msr_value = text,
            EntryField::Filter => self.filter = text,
            EntryField::FilterValue => self.filter_value = text,
            EntryField::Unit if text.is_empty() => {}
            EntryField::Unit => {
                self.unit = text;
                self.remarks.push(Remark::Unit);
            }
            EntryField::Brief => self.brief = text,
            EntryField::Errata if text.is_empty() || text == "null" => {}
            EntryField::Errata => self.remarks.push(Remark::Errata(text)),
            EntryField::DataLa if is_zero(&text) => {}
            EntryField::DataLa => self.remarks.push(Remark::Address),
            EntryField::Pebs => self.pebs = text,
        }
    }

    /// The event; none without a name.
    pub(super) fn event(&self, default_pmu: &str) -> Option<ListedEvent> {
        if self.name.is_empty() {
            return None;
        }
        let pmu = match UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(&self.unit)) {
            Some((_, pmu)) => pmu.to_string(),
            None if self.unit.is_empty() => default_pmu.to_string(),
            None => self.unit.to_ascii_lowercase(),
        };
        let terms = self.terms();
        Some(ListedEvent { name: self.name.to_ascii_lowercase(), terms, desc: self.description(&pmu), pmu })
    }

    fn terms(&self) -> String {
        // The one counter of an uncore unit that counts nothing else. The kernel has a code for it.
        let fixed = !self.unit.is_empty() && self.counter.eq_ignore_ascii_case("fixed");
        let mut out = String::with_capacity(64);
        let mut umask = match (fixed, self.umask_ext) {
            (true, _) => "".into(),
            (false, 0) => Cow::Borrowed(&*self.umask),
            // The kernel's files have the bits of UMaskExt in UMask, too.
            (false, bits) => format!("{:#x}", number(&self.umask) | bits).into(),
        };
        for (term, text) in &self.terms {
            // Once, where its first part was.
            let text = if *term == "umask" { take(&mut umask) } else { Cow::Borrowed(&**text) };
            if !is_zero(&text) {
                _ = write!(out, "{term}={},", first(&text));
            }
        }
        match if fixed { 0xff } else { self.code } {
            0 => out.push_str("event=0"),
            code => _ = write!(out, "event={code:#x}"),
        }
        if let Some(term) = self.msr_term().filter(|_| !self.msr_value.is_empty()) {
            _ = write!(out, ",{term}={}", self.msr_value);
        }
        if is_terms(&self.filter) {
            _ = write!(out, ",{}", self.filter);
        } else if self.filter.eq_ignore_ascii_case("Filter1") && !is_zero(&self.filter_value) {
            _ = write!(out, ",config1={}", self.filter_value);
        }
        out
    }

    fn msr_term(&self) -> Option<&'static str> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if is_zero(&self.msr) {
            return None;
        }
        let index = number(&self.msr);
        let known = MSRS.iter().find(|(known, _)| *known == index).map(|(_, term)| *term);
        if known.is_none() && !WARNED.swap(true, Ordering::Relaxed) {
            say!("Unknown MSR in event file {}", self.msr);
        }
        known
    }

    fn description(&self, pmu: &str) -> String {
        let brief = self.brief.trim_end();
        let mut out = brief.strip_suffix('.').unwrap_or(brief).to_string();
        for remark in &self.remarks {
            if !out.is_empty() {
                out.push_str(".  ");
            }
            _ = match remark {
                Remark::Errata(text) => write!(out, "Spec update: {text}"),
                Remark::Address => write!(out, "Supports address when precise"),
                Remark::Unit => write!(out, "Unit: {pmu}"),
            };
        }
        if out.is_empty() {
            return "No description.".into();
        }
        if !is_zero(&self.pebs) && !out.contains("(Precise Event)") {
            out.push_str(if self.pebs == "2" { " (Must be precise)" } else { " (Precise event)" });
        }
        out
    }
}

/// A text up to its first comma: fields have one value for each of several counters or registers, and the first serves.
fn first(text: &str) -> &str {
    text.split(',').next().unwrap_or_default()
}

/// Whether a value is zero, in whatever way written, or not there.
fn is_zero(text: &str) -> bool {
    let text = first(text);
    text.strip_prefix("0x").unwrap_or(text).bytes().all(|digit| digit == b'0')
}

/// The number at the start of a text, as C reads it; 0 if there is none.
fn number(text: &str) -> u64 {
    unsigned(text.trim_start()).0.unwrap_or(u64::MAX)
}

/// Whether a filter is terms that can be used, name=value,...: most only say which register filters (CBoFilter0[23:17]).
fn is_terms(filter: &str) -> bool {
    filter.split(',').all(|term| {
        let (name, value) = term.split_once('=').unwrap_or_default();
        let word = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        word(name) && word(value)
    })
}

/// The value of a term in an event's text, if it is there.
pub(crate) fn term_value(terms: &str, name: &str) -> Option<u64> {
    let value = terms.split(',').find_map(|term| term.strip_prefix(name)?.strip_prefix('='))?;
    Some(number(value))
}
