//! Names to attrs.
use crate::Attr;
use crate::generic;
use crate::list::{self, ListedEvent};
use crate::perfmon::term_value;
use crate::qualifier;
use crate::say::{self, say};
use perf_event_open_sys::bindings::PERF_TYPE_RAW;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use topdown_seam::attr;
use topdown_seam::format::TermFormat;
use topdown_seam::sysfs::{Sysfs, SysfsPmu};
use topdown_seam::terms;
use topdown_seam::terms::Unresolved;

/// What a name turned out to be.
#[derive(Debug)]
pub struct ResolvedEvent {
    /// All but what the text says is zero; `size` is as small as what is set allows.
    pub attr: Attr,
    /// From a name= term.
    pub name: Option<String>,
    /// The string that resolved, PMU/terms/.
    pub decoded: String,
    /// Several PMUs count it.
    pub multi_pmu: bool,
    /// Full sysfs paths of the PMUs.
    pub pmus: Vec<String>,
}

/// Events whose codes in lists name a fixed counter: these count on any, and may have other terms besides.
const ON_ANY_COUNTER: [(&str, &str); 3] = [
    ("inst_retired.any", "event=0xc0"),
    ("cpu_clk_unhalted.thread", "event=0x3c"),
    ("cpu_clk_unhalted.thread_any", "event=0x3c,any=1"),
];

/// Short names of events of the cores.
const SHORT: [(&str, &str); 2] = [("cycles", "cpu-cycles"), ("branches", "branch-instructions")];

/// Terms of PortMask and FCMask.
const PORTS: [&str; 2] = ["ch_mask", "fc_mask"];

/// The PMU of the cores, by the name that all lists and callers use.
const CORE: &str = "cpu";

/// `resolve_event_extra`: lists, then the kernel's names, then bare terms. Err: it says why on standard error itself.
pub(crate) fn resolve_event(sysfs: &Sysfs, name: &str) -> Result<ResolvedEvent, ()> {
    event(sysfs, list::find, name).map_err(|why| told(why, name))
}

/// `jevent_name_to_attr_extra`: the kernel's names. Err: as above.
pub(crate) fn name_to_attr(sysfs: &Sysfs, name: &str) -> Result<ResolvedEvent, ()> {
    kernel_name(sysfs, name).map_err(|why| told(why, name))
}

fn told(failure: Unresolved, name: &str) {
    match failure.reason() {
        Some(reason) => say!("{reason}"),
        None => say::keep(&format!("{name}: no list, no PMU and not the kernel has such an event")),
    }
}

/// As `resolve_event`, from a list of one's own, and says nothing.
pub fn event(
    sysfs: &Sysfs,
    list: impl Fn(&str) -> Option<Arc<ListedEvent>>,
    name: &str,
) -> Result<ResolvedEvent, Unresolved> {
    let (base, qualifiers) = parted(name);
    let on_pmu = |pmu: &str, terms: &str| {
        on_pmu(sysfs, pmu, terms, qualifiers, &format!("{pmu}/{terms}/{qualifiers}"))
    };
    let listed = || {
        let event = list(base).ok_or(Unresolved::UNKNOWN)?;
        let fixed = ON_ANY_COUNTER.iter().find(|(name, _)| event.name.eq_ignore_ascii_case(name));
        let terms = fixed.map_or(event.terms.as_str(), |(_, terms)| terms);
        on_pmu(&event.pmu, &umask_in_room(sysfs, &event.name, &event.pmu, terms))
    };
    let bare = || match base.is_empty() || name.contains('/') {
        true => Err(Unresolved::UNKNOWN),
        false => on_pmu(CORE, base),
    };
    listed()
        .or_else(|why| kernel_name(sysfs, name).map_err(|later| why.or(later)))
        .or_else(|why| bare().map_err(|later| why.or(later)))
}

/// The terms of a listed event for its PMU. Where the PMU's umask has no room for UMaskExt, umask has the other bits: of an event with
/// masks of ports (IIO), which UMaskExt repeats, these say it alone; of a core's that is said.
fn umask_in_room<'a>(sysfs: &Sysfs, name: &str, pmu: &str, terms: &'a str) -> Cow<'a, str> {
    let format = || sysfs.pmu(pmu)?.format("umask");
    let has_room = |umask| {
        format()
            .and_then(|format| TermFormat::parse(&format))
            .is_none_or(|format| format.place(umask).is_some())
    };
    let has_ports = PORTS.iter().any(|term| term_value(terms, term).is_some());
    match term_value(terms, "umask") {
        Some(umask) if (has_ports || pmu.starts_with(CORE)) && !has_room(umask) => {
            if !has_ports {
                say!(
                    "{name}: this kernel's umask of {pmu} ({}) has no room for {umask:#x}: resolved with umask={:#x}, which may be another \
                     event; a newer kernel has room",
                    format().unwrap_or_default().trim(),
                    umask & 0xff
                );
            }
            let narrow = |term: &str| match term.strip_prefix("umask=") {
                Some(_) => format!("umask={:#x}", umask & 0xff),
                None => term.to_string(),
            };
            terms.split(',').map(narrow).collect::<Vec<_>>().join(",").into()
        }
        _ => terms.into(),
    }
}

/// As `name_to_attr`, and says nothing.
pub fn kernel_name(sysfs: &Sysfs, name: &str) -> Result<ResolvedEvent, Unresolved> {
    let (base, qualifiers) = parted(name);
    let short = SHORT.iter().find(|(short, _)| *short == base).filter(|_| sysfs.core().is_some());
    if let Some((_, terms)) = short {
        on_pmu(sysfs, CORE, terms, qualifiers, name)
    } else if let Some(digits) = raw_digits(base) {
        raw(sysfs, digits, qualifiers, name)
    } else if let Some((pmu, term)) = implicit(sysfs, base) {
        on(sysfs, &pmu, PERF_TYPE_RAW, term, qualifiers, name)
    } else if let Some((pmu, rest)) = name.split_once('/') {
        // PMU/terms/qualifiers, with or without the second slash
        let (terms, qualifiers) = rest.split_once('/').unwrap_or((rest, ""));
        on_pmu(sysfs, pmu, terms, qualifiers, name)
    } else {
        let generic = generic::numbers(base).map(|(kind, config)| (kind, config, qualifiers));
        let (kind, config, qualifiers) = generic.map_or_else(|| generic::tracepoint(sysfs, name), Ok)?;
        by_number(sysfs, kind, config, qualifiers, name)
    }
}

fn by_number(
    sysfs: &Sysfs,
    kind: u32,
    config: u64,
    qualifiers: &str,
    decoded: &str,
) -> Result<ResolvedEvent, Unresolved> {
    let mut attr = attr::new(kind);
    attr.config = config;
    qualifier::apply(sysfs, qualifiers, &mut attr, decoded)?;
    Ok(resolved(attr, None, decoded, &[sysfs.path_of_type(kind)]))
}

/// Into what is before the first colon and what is behind it.
fn parted(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or((name, ""))
}

/// `r1b7`
fn raw_digits(name: &str) -> Option<&str> {
    let digits = name.strip_prefix('r')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

fn raw(sysfs: &Sysfs, digits: &str, qualifiers: &str, decoded: &str) -> Result<ResolvedEvent, Unresolved> {
    let mut attr = attr::new(PERF_TYPE_RAW);
    attr.config = u64::from_str_radix(digits, 16)
        .map_err(|_| Unresolved::because(format!("{decoded} is larger than 64 bits")))?;
    qualifier::apply(sysfs, qualifiers, &mut attr, decoded)?;
    Ok(resolved(attr, None, decoded, &[sysfs.core_path()]))
}

/// `instructions` or `/instructions`: an event of the cores' PMU, which is a term there.
fn implicit<'a>(sysfs: &Sysfs, base: &'a str) -> Option<(SysfsPmu, &'a str)> {
    let term = base.strip_prefix('/').unwrap_or(base);
    let pmu = sysfs.core()?;
    pmu.event(term).is_some().then_some((pmu, term))
}

fn on_pmu(
    sysfs: &Sysfs,
    pmu: &str,
    terms: &str,
    qualifiers: &str,
    decoded: &str,
) -> Result<ResolvedEvent, Unresolved> {
    let pmu = sysfs.pmu(pmu).ok_or(Unresolved::UNKNOWN)?;
    let kind =
        pmu.kind().ok_or_else(|| Unresolved::because(format!("Cannot read the type of {}", pmu.name())))?;
    on(sysfs, &pmu, kind, terms, qualifiers, decoded)
}

fn on(
    sysfs: &Sysfs,
    pmu: &SysfsPmu,
    kind: u32,
    terms: &str,
    qualifiers: &str,
    decoded: &str,
) -> Result<ResolvedEvent, Unresolved> {
    let mut attr = attr::new(kind);
    let name = terms::apply(pmu, terms, &mut attr)?;
    qualifier::apply(sysfs, qualifiers, &mut attr, decoded)?;
    Ok(resolved(attr, name, decoded, &pmu.paths))
}

fn resolved(attr: Attr, name: Option<String>, decoded: &str, pmus: &[impl AsRef<Path>]) -> ResolvedEvent {
    ResolvedEvent {
        attr,
        name,
        decoded: decoded.to_string(),
        multi_pmu: pmus.len() > 1,
        pmus: pmus.iter().map(|path| path.as_ref().to_string_lossy().into_owned()).collect(),
    }
}

#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(test)]
mod tests;
