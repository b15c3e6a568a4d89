//! What follows an event: `:ukppp`, `:config1=HEX`.
//!
//! The letters are those of perf-list(1). They name what is counted: `u`, `k`, `h` user, kernel, hypervisor; `H`, `G`
//! the host, guests. With any of a kind, the others of it are excluded; `u` alone excludes guests, too.
//! `I` not while idle, `p` (up to three) and `P` (as far as the PMU can) precise, `D` pinned, `e` exclusive, `S` reads
//! counters when sampling. Nothing in an attr says `W` (weak group), `b` (count by BPF), `R` (retire latency), `X` (not
//! to be regrouped): they change nothing.

use crate::Attr;
use perf_event_open_sys::bindings::PERF_SAMPLE_READ;
use topdown_seam::attr::Word;
use topdown_seam::sysfs::Sysfs;
use topdown_seam::terms::Unresolved;

/// Applies qualifiers to an attr; what is excluded already stays so. `of` is for messages. What fails may have changed
/// the attr.
pub fn apply(sysfs: &Sysfs, qualifiers: &str, attr: &mut Attr, of: &str) -> Result<(), Unresolved> {
    let mut counted = PrivilegeLevels::default();
    let mut rest = qualifiers;
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = word(rest, attr, of)? {
            rest = behind;
            continue;
        }
        match letter {
            ':' | 'W' | 'b' | 'R' | 'X' => {}
            'u' => counted.user = true,
            'k' => counted.kernel = true,
            'h' => counted.hypervisor = true,
            'H' => counted.host = true,
            'G' => counted.guest = true,
            'I' => attr.set_exclude_idle(1),
            'D' => attr.set_pinned(1),
            'e' => attr.set_exclusive(1),
            'S' => attr.sample_type |= u64::from(PERF_SAMPLE_READ),
            'P' => attr.set_precise_ip(sysfs.max_precise(attr.type_).min(MOST_PRECISE)),
            'p' if attr.precise_ip() < MOST_PRECISE => attr.set_precise_ip(attr.precise_ip() + 1),
            'p' => return Err(Unresolved::because(format!("More than three modifiers p for {of}"))),
            unknown => return Err(Unresolved::because(format!("Unknown modifier {unknown} for {of}"))),
        }
        rest = &rest[letter.len_utf8()..];
    }
    counted.exclude_others(attr);
    Ok(())
}

/// What precise_ip has room for.
const MOST_PRECISE: u64 = 3;

#[derive(Default)]
struct PrivilegeLevels {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    host: bool,
    guest: bool,
}

impl PrivilegeLevels {
    fn exclude_others(&self, attr: &mut Attr) {
        let levels = self.user || self.kernel || self.hypervisor;
        let machines = self.host || self.guest;
        let guest = if machines { !self.guest } else { self.user };
        attr.set_exclude_user(attr.exclude_user() | u64::from(levels && !self.user));
        attr.set_exclude_kernel(attr.exclude_kernel() | u64::from(levels && !self.kernel));
        attr.set_exclude_hv(attr.exclude_hv() | u64::from(levels && !self.hypervisor));
        attr.set_exclude_host(attr.exclude_host() | u64::from(machines && !self.host));
        attr.set_exclude_guest(attr.exclude_guest() | u64::from(guest));
    }
}

/// `configN=HEX` at the start: ORs it in, and returns what is behind it.
fn word<'a>(text: &'a str, attr: &mut Attr, of: &str) -> Result<Option<&'a str>, Unresolved> {
    let named = |word: Word| Some((word, text.strip_prefix(word.name())?.strip_prefix('=')?));
    let Some((word, value)) = Word::ALL.into_iter().find_map(named) else { return Ok(None) };
    let name = word.name();
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")).unwrap_or(value);
    let behind = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    let number = &digits[..digits.len() - behind.len()];
    let number = u64::from_str_radix(number, 16).map_err(|_| {
        Unresolved::because(format!("{name}= of {of} needs a hexadecimal number of up to 64 bits"))
    })?;
    word.set(attr, number);
    Ok(Some(behind))
}

#[cfg(test)]
mod tests;
