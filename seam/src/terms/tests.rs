use super::*;
use crate::attr;
use crate::sysfs::tree::SysfsTree;

fn tree() -> SysfsTree {
    SysfsTree::new(&[
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7,32-35"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/low", "config:0-3"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("cpu/format/all", "config1:0-63"),
        ("cpu/format/acr", "config2:0-63"),
        ("cpu/format/three", "config3:0-15"),
        ("cpu/format/four", "config4:8"),
        ("cpu/format/broken", "config9:0"),
        ("cpu/events/loads", "event=0xcd,umask=0x1,ldlat=3"),
        ("cpu/events/again", "loads"),
        ("cpu/events/asks", "event=5,umask=?"),
    ])
}

fn parsed(terms: &str) -> Result<(Attr, Option<String>), Unresolved> {
    let mut attr = attr::new(4);
    let name = apply(&tree().sysfs.pmu("cpu").unwrap(), terms, &mut attr)?;
    Ok((attr, name))
}

/// config to config4
fn words(terms: &str) -> [u64; 5] {
    let (attr, _) = parsed(terms).unwrap_or_else(|why| panic!("{terms}: {why:?}"));
    Word::ALL.map(|word| word.of(&attr))
}

#[test]
fn values_go_to_their_bits() {
    assert_eq!(words("event=0x3c,umask=1"), [0x13c, 0, 0, 0, 0]);
    assert_eq!(words("event=0x1c0"), [0x1_0000_00c0, 0, 0, 0, 0]);
    assert_eq!(words("event"), [1, 0, 0, 0, 0]);
    assert_eq!(words("all=0xffffffffffffffff"), [0, u64::MAX, 0, 0, 0]);
    assert_eq!(words("acr=3,three=4,four"), [0, 0, 3, 4, 0x100]);
    assert_eq!(words("config=1,config1=2,config2=3,config3=4,config4=5"), [1, 2, 3, 4, 5]);
    assert_eq!(words("config=18446744073709551615"), [u64::MAX, 0, 0, 0, 0]);
}

#[test]
fn fields_are_replaced_and_words_ored() {
    assert_eq!(words("loads"), [0x1cd, 3, 0, 0, 0]);
    assert_eq!(words("loads,ldlat=8"), [0x1cd, 8, 0, 0, 0]);
    assert_eq!(words("ldlat=8,loads"), [0x1cd, 3, 0, 0, 0]);
    assert_eq!(words("event=1,event=2"), [2, 0, 0, 0, 0]);
    assert_eq!(words("config=1,config=2"), [3, 0, 0, 0, 0]);
    assert_eq!(words("event=0x10,config=3"), [0x13, 0, 0, 0, 0]);
    assert_eq!(words("event=0x10,low=3"), [0x13, 0, 0, 0, 0]);
}

#[test]
fn the_attr_is_as_large_as_needed() {
    for (terms, size) in [
        ("event=1", 64),
        ("config1=1", 64),
        ("acr=1", 72),
        ("config2=1", 72),
        ("three=1", 136),
        ("four=1", 144),
    ] {
        assert_eq!(parsed(terms).unwrap().0.size, size, "{terms}");
    }
    assert_eq!(parsed("four=0,three=0,acr=0").unwrap().0.size, 64);
}

#[test]
fn what_is_no_count() {
    let (attr, name) = parsed("period=1000,name=\"an 'event'\",event=1").unwrap();
    // SAFETY: a number.
    assert_eq!((unsafe { attr.__bindgen_anon_1.sample_period }, attr.freq()), (1000, 0));
    assert_eq!(name.as_deref(), Some("an"));
    let (attr, name) = parsed("freq=99").unwrap();
    // SAFETY: a number.
    assert_eq!((unsafe { attr.__bindgen_anon_1.sample_freq }, attr.freq(), name), (99, 1, None));
    assert_eq!(parsed("freq=99,period=5").unwrap().0.freq(), 0);
    assert_eq!(parsed("name='x'").unwrap().1.as_deref(), Some("x"));
    assert_eq!((attr.sample_type, attr.read_format, attr.type_), (0, 0, 4));
}

#[test]
fn failures() {
    let why = |terms: &str| parsed(terms).expect_err(terms).reason().map(String::from);
    for (terms, said) in [
        ("event=0x1000", "0x1000 of event is too big"),
        ("event=-1", "too big"),
        ("loads,ldlat=65536", "too big"),
        ("config=18446744073709551616", "larger than 64 bits"),
        ("nothing=1", "Cannot open kernel format nothing"),
        ("loads=1", "Cannot open kernel format loads"),
        ("broken=1", "Unknown format config9:0"),
        ("../type=1", "Cannot open kernel format"),
        ("", "Empty term"),
        ("event=1,", "Empty term"),
        ("event=1,,umask=1", "Empty term"),
        ("=3", "Empty term"),
    ] {
        assert!(why(terms).is_some_and(|reason| reason.contains(said)), "{terms}: {:?}", why(terms));
    }
    for terms in ["nothing", "again", " event", "name", "config5"] {
        assert_eq!(why(terms), None, "{terms}");
    }
}

#[test]
fn numbers_as_in_c() {
    for (text, number) in [
        ("", Some(0)),
        ("?", Some(0)),
        ("12", Some(12)),
        ("0x1F", Some(31)),
        ("0X1f:u", Some(31)),
        ("0x", Some(0)),
        ("0xg", Some(0)),
        ("017", Some(15)),
        ("08", Some(0)),
        (" \t7 8", Some(7)),
        ("+3", Some(3)),
        ("-1", Some(u64::MAX)),
        ("0x8000000000000000", Some(1 << 63)),
        ("0xffffffffffffffff", Some(u64::MAX)),
        ("0x10000000000000000", None),
        ("18446744073709551616", None),
        ("é", Some(0)),
    ] {
        assert_eq!(c_number(text), number, "{text:?}");
    }
    assert_eq!(words("asks"), [5, 0, 0, 0, 0]);
    assert_eq!(words("asks,umask=2"), [0x205, 0, 0, 0, 0]);
}

#[test]
fn nothing_is_cut() {
    let long = "x".repeat(10_000);
    assert_eq!(parsed(&format!("name={long}")).unwrap().1, Some(long.clone()));
    assert_eq!(parsed(&long).unwrap_err(), Unresolved::UNKNOWN);
    let many = vec!["event=1"; 5000].join(",");
    assert_eq!(words(&format!("{many},umask=2")), [0x201, 0, 0, 0, 0]);
}
