use super::*;

/// Terms of the only event among members of an entry.
fn terms(members: &str) -> String {
    one(members).terms
}

fn desc(members: &str) -> String {
    one(members).desc
}

fn one(members: &str) -> ListedEvent {
    let file = format!(r#"[{{"EventName": "A.B", {members}}}]"#);
    let mut events = parse(file.as_bytes(), "cpu").unwrap_or_else(|error| panic!("{error}: {file}"));
    assert_eq!(events.len(), 1, "{file}");
    events.remove(0)
}

fn names(file: &str) -> Vec<String> {
    let events = parse(file.as_bytes(), "cpu").unwrap_or_else(|error| panic!("{error}: {file}"));
    events.into_iter().map(|event| event.name).collect()
}

#[test]
fn an_entry_of_a_core_becomes_an_event() {
    let event = one(
        r#""EventCode": "0xB7, 0xBB", "UMask": "0x01", "BriefDescription": "Reads. ", "Counter": "0,1,2,3",
        "SampleAfterValue": "100003", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x0000010001", "CounterMask": "0",
        "Invert": "0", "AnyThread": "0", "EdgeDetect": "0", "PEBS": "0", "Data_LA": "0", "Errata": "null""#,
    );
    let expected = ListedEvent {
        name: "a.b".into(),
        terms: "umask=0x01,period=100003,event=0xb7,offcore_rsp=0x0000010001".into(),
        desc: "Reads".into(),
        pmu: "cpu".into(),
    };
    assert_eq!(event, expected);
}

#[test]
fn fields_are_terms_in_the_order_of_the_file() {
    assert_eq!(
        terms(
            r#""EventCode": "0x0E", "Invert": "1", "CounterMask": "2", "UMask": "0x1,0x2", "AnyThread": "1",
            "EdgeDetect": "0x1", "SampleAfterValue": "7""#
        ),
        "inv=1,cmask=2,umask=0x1,any=1,edge=0x1,period=7,event=0xe"
    );
    assert_eq!(terms(r#""umask": "0x3", "EVENTCODE": "0x4""#), "umask=0x3,event=0x4");
    for zero in ["0", "0x0", "0x00", "0x00000000", ""] {
        assert_eq!(terms(&format!(r#""UMask": "{zero}", "EventCode": "0x00""#)), "event=0", "{zero:?}");
    }
    assert_eq!(terms(r#""UMask": "0x10""#), "umask=0x10,event=0");
}

#[test]
fn values_are_strings_numbers_or_booleans() {
    assert_eq!(
        terms(r#""EventCode": 60, "UMask": 1, "Invert": true, "EdgeDetect": false, "CounterMask": null"#),
        "umask=1,inv=1,event=0x3c"
    );
    assert_eq!(terms(r#""EventCode": 18446744073709551615"#), "event=0xffffffffffffffff");
    assert_eq!(
        terms(r#""EventCode": [1, {"UMask": "2"}], "UMask": {"EventCode": 3}, "Other": [[{}]]"#),
        "event=0"
    );
    assert_eq!(terms(r#""SampleAfterValue": 1.5, "MSRIndex": -1"#), "period=1.5,event=0");
}

#[test]
fn codes_are_numbers_as_in_c() {
    for (text, code) in [
        ("0x3C", "0x3c"),
        ("0X3c", "0x3c"),
        ("60", "0x3c"),
        ("074", "0x3c"),
        (" 60", "0x3c"),
        ("0xD0,0xD1", "0xd0"),
        ("9zz", "0x9"),
        ("089", "0"),
        ("zz", "0"),
        ("", "0"),
        ("0x10000000000000000", "0xffffffffffffffff"),
    ] {
        assert_eq!(terms(&format!(r#""EventCode": "{text}""#)), format!("event={code}"), "{text:?}");
    }
}

#[test]
fn registers_are_terms_of_their_own() {
    for (index, term) in [
        ("0x3F6", ",ldlat=0x80"),
        ("0x3f7", ",frontend=0x80"),
        ("0x1A6", ",offcore_rsp=0x80"),
        ("0x1a7", ",offcore_rsp=0x80"),
        ("1014,0", ",ldlat=0x80"),
        ("0x123", ""),
        ("0", ""),
        ("0x00", ""),
    ] {
        let members = format!(r#""MSRValue": "0x80", "MSRIndex": "{index}", "EventCode": 1"#);
        assert_eq!(terms(&members), format!("event=0x1{term}"), "{index}");
    }
    assert_eq!(terms(r#""MSRIndex": "0x3f6""#), "event=0", "without a value");
}

#[test]
fn units_are_pmus() {
    for (unit, pmu) in [
        ("CBO", "cbox"),
        ("cbo", "cbox"),
        ("QPI LL", "qpi"),
        ("SBO", "sbox"),
        ("iMPH-U", "cbox"),
        ("NCU", "cbox"),
        ("UPI LL", "upi"),
        ("iMC", "imc"),
        ("CHA", "cha"),
        ("cpu_core", "cpu_core"),
        ("cpu_atom", "cpu_atom"),
        ("L3PMC", "amd_l3"),
        ("", "cpu"),
    ] {
        assert_eq!(one(&format!(r#""Unit": "{unit}""#)).pmu, pmu, "{unit}");
    }
    let hybrid = br#"[{"EventName": "a"}, {"EventName": "b", "Unit": "CBO"}]"#;
    let pmus: Vec<_> = parse(hybrid, "cpu_core").unwrap().into_iter().map(|event| event.pmu).collect();
    assert_eq!(pmus, ["cpu_core", "cbox"]);
}

/// Entries as Intel publishes them, and what of the kernel's format/ they come to (cha: event config:0-7, umask
/// config:8-15,32-55; iio: ch_mask config:36-47, fc_mask config:48-50; qpi: event config:0-7,21).
#[test]
fn events_of_uncore_units_are_whole() {
    let common = r#""ELLC": "0", "Filter": "na", "ExtSel": "0", "Deprecated": "0", "FILTER_VALUE": "0", "Counter": "0,1""#;
    for (members, expected) in [
        // Granite Rapids
        (
            r#""Unit": "CHA", "EventCode": "0x35", "UMask": "0x01", "PortMask": "0x00", "FCMask": "0x00", "UMaskExt": "0x00C80FFD""#,
            "umask=0xc80ffd01,event=0x35",
        ),
        (
            r#""Unit": "CHA", "EventCode": "0x01", "UMask": "0x00", "PortMask": "0x00", "FCMask": "0x00", "UMaskExt": "0x00000000""#,
            "event=0x1",
        ),
        // Ice Lake in the kernel's files: the bits are in both
        (
            r#""EventCode": "0x35", "UMask": "0xC001FE01", "UMaskExt": "0xC001FE""#,
            "umask=0xc001fe01,event=0x35",
        ),
        (r#""UMaskExt": "0xC001FE", "EventCode": "0x35", "UMask": "0x01""#, "umask=0xc001fe01,event=0x35"),
        (r#""EventCode": "0x35", "UMaskExt": 1"#, "umask=0x100,event=0x35"),
        (
            r#""Unit": "IIO", "EventCode": "0x83", "FCMask": "0x07", "PortMask": "0x01", "UMask": "0x04""#,
            "fc_mask=0x07,ch_mask=0x01,umask=0x04,event=0x83",
        ),
    ] {
        assert_eq!(terms(&format!("{members}, {common}")), expected, "{members}");
    }
    for (members, expected) in [
        (r#""EventCode": "0x38", "ExtSel": "1", "Unit": "QPI LL""#, "event=0x200038"),
        (
            r#""EventCode": "0x83", "Filter": "ch_mask=0x1f", "PortMask": "0x01", "Unit": "IIO""#,
            "ch_mask=0x01,event=0x83,ch_mask=0x1f",
        ),
        (
            r#""EventCode": "0x35", "Filter": "filter_opc=0x182,filter_nid=1""#,
            "event=0x35,filter_opc=0x182,filter_nid=1",
        ),
        (
            r#""EventCode": "0x35", "Filter": "Filter1", "FILTER_VALUE": "0x40433""#,
            "event=0x35,config1=0x40433",
        ),
        (r#""EventCode": "0x35", "Filter": "CBoFilter0[23:17]""#, "event=0x35"),
        (r#""EventCode": "0x35", "Filter": "fc, chnl""#, "event=0x35"),
        (r#""EventCode": "0x35", "Filter": "a=1,b""#, "event=0x35"),
        (r#""Unit": "iMC", "Counter": "FIXED", "EventCode": "0x0", "UMask": "0x1""#, "event=0xff"),
        (r#""Counter": "Fixed counter 0", "UMask": "0x1""#, "umask=0x1,event=0"),
        (
            r#""Unit": "L3PMC", "EventCode": "0x04", "EnAllCores": "0x1", "SliceId": "0x3""#,
            "enallcores=0x1,sliceid=0x3,event=0x4",
        ),
    ] {
        assert_eq!(terms(members), expected, "{members}");
    }
}

#[test]
fn descriptions_say_what_else_is_known() {
    for (members, expected) in [
        (r#""UMask": "1""#, "No description."),
        (r#""BriefDescription": null"#, "No description."),
        (r#""BriefDescription": "Two dots..  ""#, "Two dots."),
        (r#""BriefDescription": "Inner. Dot""#, "Inner. Dot"),
        (r#""BriefDescription": "A.", "Errata": "null", "Data_LA": "0", "PEBS": "0""#, "A"),
        (r#""BriefDescription": "A", "Errata": null, "PEBS": 0"#, "A"),
        (
            r#""BriefDescription": "A.", "Errata": "HSD11", "Data_LA": "1""#,
            "A.  Spec update: HSD11.  Supports address when precise",
        ),
        (
            r#""Data_LA": 1, "BriefDescription": "A.", "Errata": "HSD11""#,
            "A.  Supports address when precise.  Spec update: HSD11",
        ),
        (r#""BriefDescription": "A", "PEBS": "1""#, "A (Precise event)"),
        (r#""PEBS": 2, "BriefDescription": "A""#, "A (Must be precise)"),
        (r#""PEBS": "1", "BriefDescription": "A (Precise Event)""#, "A (Precise Event)"),
        (r#""PEBS": "1""#, "No description."),
        // As in files: the unit comes first in an entry
        (r#""Unit": "iMC", "BriefDescription": "DRAM reads.""#, "DRAM reads.  Unit: imc"),
        (
            r#""BriefDescription": "DRAM reads", "Unit": "CBO", "Errata": "X""#,
            "DRAM reads.  Unit: cbox.  Spec update: X",
        ),
        (r#""Unit": "iMC""#, "Unit: imc"),
        (r#""Unit": null, "BriefDescription": "A""#, "A"),
    ] {
        assert_eq!(desc(members), expected, "{members}");
    }
}

#[test]
fn strings_mean_what_they_say() {
    assert_eq!(desc(r#""BriefDescription": "Intel\u00ae \"quoted\"\tC:\\""#), "Intel® \"quoted\"\tC:\\");
    assert_eq!(terms(r#""\u0055Mask": "0x\u0031""#), "umask=0x1,event=0");
    let latin_1 = b"\xef\xbb\xbf[{\"EventName\": \"a\", \"BriefDescription\": \"Intel\xae\"}]";
    assert_eq!(parse(latin_1, "cpu").unwrap()[0].desc, "Intel\u{fffd}");
}

#[test]
fn files_are_arrays_or_objects() {
    assert_eq!(names(r#"[{"EventName": "A"}, {"EventName": "B"}]"#), ["a", "b"]);
    assert_eq!(names(r#"{"Header": {"Version": "1", "Legend": ""}, "Events": [{"EventName": "A"}]}"#), ["a"]);
    assert_eq!(
        names(
            r#" {"Header": {"n": 1.5, "x": [null, {"Events": [{"EventName": "no"}]}]}, "v": 2, "events": [{"eventname": "A"}], "t": true}"#
        ),
        ["a"]
    );
    assert_eq!(names(r#"{"Events": [{"EventName": "A"}], "EVENTS": [{"EventName": "B"}]}"#), ["a", "b"]);
    for none in ["[]", "{}", r#"{"Events": []}"#, r#"{"Header": {}}"#] {
        assert!(names(none).is_empty(), "{none}");
    }
}

#[test]
fn what_is_no_event_is_left_out() {
    // The kernel's files have metrics among the events.
    assert_eq!(
        names(
            r#"[{"EventName": "A", "ArchStdEvent": "X", "Deprecated": "1"}, {"MetricName": "M", "MetricExpr": "a / b"},
            {"EventCode": "1"}, {"EventName": ""}, {"EventName": null}, {},
            {"EventName": "B"}]"#
        ),
        ["a", "b"]
    );
}

#[test]
fn what_is_no_event_file_is_refused() {
    for wrong in [
        "",
        " ",
        "x",
        "1",
        "null",
        "\"Events\"",
        "[",
        "[{]",
        "[] []",
        "{} x",
        r#"[{"EventName": "A"}"#,
        r#"[{"EventName": "A",}]"#,
        r#"[{"EventName" "A"}]"#,
        r#"[{"EventName": "A}]"#,
        r#"{"Events": {"EventName": "A"}}"#,
        r#"{"Events": "A"}"#,
        r#"[{"EventName": "A"}, null]"#,
        r#"["A"]"#,
        "[[]]",
        r#"{"Events": [{"EventName": "A"}], "Rest": }"#,
        "\0",
    ] {
        assert!(parse(wrong.as_bytes(), "cpu").is_err(), "{wrong:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse(deep.as_bytes(), "cpu").is_err());
    assert!(parse(format!(r#"{{"x": {deep}"#).as_bytes(), "cpu").is_err());
}
