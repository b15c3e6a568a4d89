//! The way back from an attr to an event.

use crate::Attr;
use perf_event_open_sys::bindings::PERF_TYPE_RAW;
use topdown_seam::attr::Word;
use topdown_seam::sysfs::Sysfs;

/// `PMU/config=0x..,config1=0x..,name=NAME/`, for perf; None if the type has no PMU.
pub(crate) fn raw_event(sysfs: &Sysfs, attr: &Attr, name: Option<&str>) -> Option<String> {
    let unnamed = || (attr.type_ == PERF_TYPE_RAW).then(|| "cpu".to_string());
    let pmu = sysfs.pmu_of_type(attr.type_).or_else(unnamed)?;
    let words = Word::ALL.into_iter().filter(|word| *word == Word::Config || word.of(attr) != 0);
    let mut terms: Vec<_> = words.map(|word| format!("{}={}", word.name(), c_hex(word.of(attr)))).collect();
    terms.extend(name.map(|name| format!("name={name}")));
    Some(format!("{pmu}/{}/", terms.join(",")))
}

/// As printf's %#llx.
fn c_hex(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown_seam::attr;
    use topdown_seam::sysfs::tree::SysfsTree;

    #[test]
    fn words_and_name() {
        let tree = SysfsTree::new(&[("cpu/type", "4"), ("x/type", "17"), ("a/type", "17")]);
        let mut attr = attr::new(4);
        assert_eq!(raw_event(&tree.sysfs, &attr, None).as_deref(), Some("cpu/config=0/"));
        attr.config = 0x1b7;
        Word::Config1.set(&mut attr, u64::MAX);
        Word::Config3.set(&mut attr, 8);
        attr.type_ = 17;
        let long = "n".repeat(3000);
        let expected = format!("a/config=0x1b7,config1=0xffffffffffffffff,config3=0x8,name={long}/");
        assert_eq!(raw_event(&tree.sysfs, &attr, Some(&long)), Some(expected));
        attr.type_ = 18;
        assert_eq!(raw_event(&tree.sysfs, &attr, None), None);
    }

    #[test]
    fn raw_without_a_cpu() {
        let raw = attr::new(4);
        assert_eq!(raw_event(&SysfsTree::new(&[]).sysfs, &raw, None).as_deref(), Some("cpu/config=0/"));
        let hybrid = SysfsTree::new(&[("cpu_atom/type", "10"), ("cpu_core/type", "4")]);
        assert_eq!(raw_event(&hybrid.sysfs, &raw, None).as_deref(), Some("cpu_core/config=0/"));
    }
}
