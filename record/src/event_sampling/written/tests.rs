use super::*;

fn is_pmu(name: &str) -> bool {
    ["cpu", "cpu_core", "cpu_atom"].contains(&name)
}

fn parsed(text: &str) -> ConditionText {
    ConditionText::parse(text, &is_pmu).unwrap()
}

fn event(pmu: Option<&str>, terms: &str) -> EventText {
    EventText { pmu: pmu.map(Into::into), terms: terms.into() }
}

#[test]
fn the_event_that_samples_is_the_one_there_is_more_of() {
    let low = parsed("ipc<0.5");
    assert_eq!(low.text, "ipc < 0.5");
    assert_eq!((low.sampled, low.other), (event(None, "cycles"), event(None, "instructions")));
    assert_eq!((low.ratio, low.period), (2.0, None));
    let high = parsed(" ipc > 2 ");
    assert_eq!((high.sampled, high.other), (event(None, "instructions"), event(None, "cycles")));
    assert_eq!(high.ratio, 2.0);
    let misses = parsed("cache-misses/instructions>0.01");
    assert_eq!((misses.sampled, misses.other), (event(None, "cache-misses"), event(None, "instructions")));
    assert_eq!((&*misses.text, misses.ratio), ("cache-misses/instructions > 0.01", 0.01));
}

#[test]
fn events_may_be_terms_of_a_pmu() {
    let (misses, branches) = (event(Some("cpu_atom"), "event=0xc5,umask=0"), event(None, "branches"));
    let one = parsed("cpu_atom/event=0xc5,umask=0//branches>0.1");
    assert_eq!((&one.sampled, &one.other), (&misses, &branches));
    let two = parsed("branches/cpu_atom/event=0xc5,umask=0/<10");
    assert_eq!((&two.sampled, &two.other, two.ratio), (&misses, &branches, 0.1));
    let both = parsed("cpu/event=0xc5//cpu/event=0xc4/>0.1");
    assert_eq!(
        (both.sampled, both.other),
        (event(Some("cpu"), "event=0xc5"), event(Some("cpu"), "event=0xc4"))
    );
}

#[test]
fn perfs_group_is_the_same() {
    for text in [
        "instructions/period=20000/,cycles/ratio-to-prev=0.5/",
        "{instructions,cycles/period=10000,ratio-to-prev=0.5/}",
        "{instructions/period=20000/, cycles/period=10000,ratio-to-prev=0.5/}",
    ] {
        let written = parsed(text);
        assert_eq!(
            (&written.sampled, &written.other),
            (&event(None, "instructions"), &event(None, "cycles"))
        );
        assert_eq!(
            (&*written.text, written.ratio, written.period),
            ("instructions/cycles > 2", 2.0, Some(20000))
        );
    }
    let of_documentation =
        parsed("{cpu_atom/cycles/, cpu_atom/instructions,period=200000,ratio-to-prev=2.0/}");
    assert_eq!(of_documentation.sampled, event(Some("cpu_atom"), "cycles"));
    assert_eq!(of_documentation.other, event(Some("cpu_atom"), "instructions"));
    assert_eq!((of_documentation.ratio, of_documentation.period), (0.5, Some(100_000)));
    assert_eq!(parsed("cycles,instructions/ratio-to-prev=3/").period, None);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, why) in [
        ("", "no condition"),
        ("ipc", "no condition"),
        ("ipc=0.5", "no condition"),
        ("ipc<", "'' is no ratio"),
        ("ipc<0", "'0' is no ratio: a number above 0"),
        ("ipc<-1", "'-1' is no ratio"),
        ("ipc<=1", "'=1' is no ratio"),
        ("ipc<nan", "'nan' is no ratio"),
        ("ipc<inf", "'inf' is no ratio"),
        ("ipc<1e300", "'1e300' is no ratio"),
        ("ipc<1<2", "'1<2' is no ratio"),
        ("cycles<1", "'cycles' is no ratio of two events"),
        ("a/b/c<1", "'a/b/c' is no ratio of two events"),
        ("cpu_big/a//b>1", "'cpu_big/a//b' is no ratio of two events"),
        ("instructions,cycles/ratio-to-prev=0/", "'0' is no ratio"),
        ("instructions,cycles/ratio-to-prev=-2/", "'-2' is no ratio"),
        ("instructions,cycles/ratio-to-prev/", "ratio-to-prev has no number"),
        ("instructions/ratio-to-prev=2/,cycles", "it belongs to the second"),
        ("instructions/ratio-to-prev=2/", "1 events"),
        ("a,b/ratio-to-prev=2/,c", "3 events"),
        ("a/period=many/,b/ratio-to-prev=2/", "'period=many' is no number of events"),
        (
            "a/period=100/,b/period=100,ratio-to-prev=2/",
            "the periods contradict the ratio: 2 times 100 is 200, not 100",
        ),
        ("a/freq=4000/,b/ratio-to-prev=2/", "'freq=4000': counters that reload each other"),
        ("a/acr_mask=2/,b/ratio-to-prev=2/", "'acr_mask=2': masks follow"),
        ("{a,b/ratio-to-prev=2/", "one of the braces"),
        ("a,b/ratio-to-prev=2", "the last / is missing"),
        ("a,b/ratio-to-prev=2/u", "what follows the last /"),
    ] {
        let said = ConditionText::parse(text, &is_pmu).expect_err(text);
        assert!(said.contains(why) && said.starts_with(&format!("--where '{text}'")), "{text}: {said}");
    }
}

#[test]
fn periods_have_the_ratio() {
    let of = |ratio, given, least| {
        Periods::of(ratio, given, least).map(|Periods { sampled, other }| (sampled, other))
    };
    assert_eq!(of(2.0, None, 0), Ok((1_000_000, 500_000)));
    assert_eq!(of(0.01, None, 0), Ok((10_000, 1_000_000)));
    assert_eq!(of(1e-6, None, 0), Ok((100, 100_000_000)));
    assert_eq!(of(1e6, None, 0), Ok((100_000_000, 100)));
    assert_eq!(of(2.0, None, 4_000_000), Ok((4_000_000, 2_000_000)));
    assert_eq!(of(0.5, Some(20_000), 4_000_000), Ok((20_000, 40_000)));
    for (ratio, given, why) in [
        (2.0, Some(150), "too short"),
        (2.0, Some(0), "too short"),
        (1.5, Some(1 << 41), "too long"),
        (1e-9, Some(10_000), "too long"),
    ] {
        let said = of(ratio, given, 0).unwrap_err();
        assert!(said.contains(why), "{ratio}: {said}");
    }
}
