use super::*;
use topdown_seam::attr;
use topdown_seam::sysfs::tree::SysfsTree;

type Flag = (&'static str, fn(&Attr) -> u64);

const EXCLUDED: [Flag; 5] = [
    ("user", Attr::exclude_user),
    ("kernel", Attr::exclude_kernel),
    ("hv", Attr::exclude_hv),
    ("host", Attr::exclude_host),
    ("guest", Attr::exclude_guest),
];

fn qualified(text: &str) -> Result<Attr, Unresolved> {
    let tree = SysfsTree::new(&[("cpu/type", "4"), ("cpu/caps/max_precise", "2")]);
    let mut attr = attr::new(4);
    apply(&tree.sysfs, text, &mut attr, "it")?;
    Ok(attr)
}

fn excluded(attr: &Attr) -> String {
    let names = EXCLUDED.iter().filter(|(_, is_set)| is_set(attr) != 0).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_excluded() {
    for (text, others) in [
        ("", ""),
        ("u", "kernel hv guest"),
        ("k", "user hv"),
        ("h", "user kernel"),
        ("uk", "hv guest"),
        ("k:u", "hv guest"),
        ("uh", "kernel guest"),
        ("ukh", "guest"),
        ("H", "guest"),
        ("G", "host"),
        ("GH", ""),
        ("uG", "kernel hv host"),
        ("uGH", "kernel hv"),
        ("p", ""),
        (":::", ""),
    ] {
        assert_eq!(excluded(&qualified(text).unwrap()), others, "{text}");
    }
}

#[test]
fn what_is_excluded_stays_so() {
    let mut attr = attr::new(4);
    attr.set_exclude_kernel(1);
    attr.set_exclude_host(1);
    apply(&SysfsTree::new(&[]).sysfs, "kGH", &mut attr, "it").unwrap();
    assert_eq!(excluded(&attr), "user kernel hv host");
}

#[test]
fn the_other_letters() {
    let attr = qualified("IDeS").unwrap();
    assert_eq!((attr.exclude_idle(), attr.pinned(), attr.exclusive(), attr.sample_type), (1, 1, 1, 16));
    for (text, precise) in [("p", 1), ("ppp", 3), ("p:p", 2), ("P", 2), ("Pp", 3)] {
        assert_eq!(qualified(text).unwrap().precise_ip(), precise, "{text}");
    }
    let nothing = attr::new(4);
    assert_eq!(attr::bytes(&qualified("WbRX").unwrap()), attr::bytes(&nothing));
    assert_eq!(qualified("I").unwrap().pinned(), 0);
}

#[test]
fn words() {
    for (text, words) in [
        ("config=1f", [0x1f, 0, 0, 0, 0]),
        ("config1=0x4043200000000", [0, 0x4_0432_0000_0000, 0, 0, 0]),
        ("config2=0X2:config3=3:config4=4", [0, 0, 2, 3, 4]),
        ("config=1:config=2", [3, 0, 0, 0, 0]),
        ("uconfig=1k", [1, 0, 0, 0, 0]),
        ("config=ffffffffffffffff", [u64::MAX, 0, 0, 0, 0]),
    ] {
        let attr = qualified(text).unwrap();
        assert_eq!(Word::ALL.map(|word| word.of(&attr)), words, "{text}");
    }
    assert_eq!(excluded(&qualified("config1=1:u").unwrap()), "kernel hv guest");
    assert_eq!(excluded(&qualified("uconfig=1k").unwrap()), "hv guest");
    assert_eq!(qualified("config2=1").unwrap().size, 72);
}

#[test]
fn failures() {
    for (text, said) in [
        ("x", "Unknown modifier x for it"),
        ("u,", "Unknown modifier ,"),
        ("uké", "Unknown modifier é"),
        ("pppp", "More than three"),
        ("u k", "Unknown modifier  "),
        ("/", "Unknown modifier /"),
        ("config", "Unknown modifier c"),
        ("config5=1", "Unknown modifier c"),
        ("config=", "config= of it needs"),
        ("config1=0x", "config1= of it needs"),
        ("config=10000000000000000", "up to 64 bits"),
    ] {
        let why = qualified(text).expect_err(text);
        assert!(why.reason().is_some_and(|reason| reason.contains(said)), "{text}: {why:?}");
    }
}

#[test]
fn many_letters_are_read_at_once() {
    let start = std::time::Instant::now();
    let attr = qualified(&("u".repeat(1 << 20) + "k")).unwrap();
    assert_eq!(excluded(&attr), "hv guest");
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
