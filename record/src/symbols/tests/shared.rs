//! DWARF of which dwz has moved parts to a file that several programs share.

use super::*;

/// Code of 32 bytes, the latter half of which is another function, inlined. All names, and that function, are in the shared file.
const PROGRAM: &str = "\
        .text
        .globl outer
        .type outer, %function
outer:  .fill 32, 1, 0
        .size outer, 32
        .section .debug_abbrev
        .byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0                  /* unit: low_pc, high_pc */
        .byte 2, 0x2e, 1, NAME, 0x11, 0x01, 0x12, 0x06, 0, 0            /* function: name, low_pc, high_pc */
        .byte 3, 0x1d, 0, ORIGIN, 0x11, 0x01, 0x12, 0x06, 0, 0          /* inlined: origin, low_pc, high_pc */
        .byte 0
        .section .debug_info
        .4byte 2f - 1f
1:      .2byte 4
        .4byte 0
        .byte 8
        .byte 1; .8byte outer; .4byte 32
        .byte 2; .4byte 0; .8byte outer; .4byte 32
        .byte 3; .4byte 12; .8byte outer + 16; .4byte 16
        .byte 0, 0
2:      LINK
        .asciz \"shared.debug\"
        .byte CHECKSUM 0xab, 0xcd, 0xef
";
const SHARED: &str = "\
        .section .debug_abbrev
        .byte 1, 0x3c, 1, 0, 0                                          /* partial unit */
        .byte 2, 0x2e, 0, 0x03, 0x0e, 0x20, 0x0b, 0, 0                  /* function: name (strp), inline (data1) */
        .byte 0
        .section .debug_info
        .4byte 2f - 1f
1:      .2byte 4
        .4byte 0
        .byte 8
        .byte 1
        .byte 2; .4byte 6; .byte 1
        .byte 0
2:      .section .debug_str
        .asciz \"whole\"
        .asciz \"within\"
";
/// The forms that refer to the shared file, and how it is named.
const GNU: [(&str, &str); 4] = [
    ("NAME", "0x03, 0xa1, 0x3e"),   // DW_FORM_GNU_strp_alt, 0x1f21
    ("ORIGIN", "0x31, 0xa0, 0x3e"), // DW_FORM_GNU_ref_alt, 0x1f20
    ("LINK", ".section .gnu_debugaltlink"),
    ("CHECKSUM", ""),
];
const STANDARD: [(&str, &str); 4] = [
    ("NAME", "0x03, 0x1d"),   // DW_FORM_strp_sup
    ("ORIGIN", "0x31, 0x1c"), // DW_FORM_ref_sup4
    ("LINK", ".section .debug_sup; .2byte 5; .byte 0"),
    ("CHECKSUM", "3,"),
];

/// With this build id.
fn assembled(path: &Path, text: &str, id: &str) {
    let source = path.with_extension("s");
    fs::write(&source, text).unwrap();
    let mut command = Command::new("cc");
    command.args(["-shared", "-nostdlib", &format!("-Wl,--build-id={id}"), "-o"]).arg(path).arg(source);
    assert!(command.status().unwrap().success());
}

/// Names in a program whose shared file has this place and build id.
fn with_shared_file(
    scratch: &Scratch,
    forms: [(&str, &str); 4],
    place: &str,
    id: &str,
) -> BTreeSet<Vec<String>> {
    let directory = Scratch(scratch.path("program"));
    fs::create_dir_all(&directory.0).unwrap();
    let text = forms.iter().fold(PROGRAM.to_string(), |text, (word, is)| text.replace(word, is));
    let (program, shared) = (directory.path("program"), directory.path(place));
    assembled(&program, &text, "none");
    fs::create_dir_all(shared.parent().unwrap()).unwrap();
    // (of the standard's forms the checksum of a section)
    if forms == GNU {
        assembled(&shared, SHARED, &format!("0x{id}"));
    } else {
        let bytes = format!("0x{}, 0x{}, 0x{}", &id[..2], &id[2..4], &id[4..]);
        let text = format!("{SHARED}.section .debug_sup\n.2byte 5; .byte 1, 0, 3, {bytes}\n");
        assembled(&shared, &text, "none");
    }
    let program = program.display().to_string();
    let look_in = LookIn { debug: directory.path("debug"), ..LookIn::default() };
    known_of(&program, &offsets_of(&program, "outer"), &look_in).into_iter().map(|(names, _)| names).collect()
}

#[test]
fn what_several_programs_share_is_read_from_the_file_of_that_build_id() {
    let scratch = Scratch::new("shared");
    let all = BTreeSet::from([names(&["whole"]), names(&["within", "whole"])]);
    let none = BTreeSet::from([names(&["outer"])]);
    for forms in [GNU, STANDARD] {
        for place in ["shared.debug", "debug/.dwz/shared.debug", "debug/.build-id/ab/cdef.debug"] {
            assert_eq!(with_shared_file(&scratch, forms, place, "abcdef"), all, "{place}");
            assert_eq!(with_shared_file(&scratch, forms, place, "abcdee"), none, "{place}");
        }
        assert_eq!(with_shared_file(&scratch, forms, "elsewhere/shared.debug", "abcdef"), none);
    }
}

/// Where dwz is there (Debian: apt-get install dwz).
#[test]
fn what_dwz_writes_is_read() {
    if Command::new("dwz").arg("--version").output().is_err() {
        eprintln!("dwz is not installed: nothing is tested");
        return;
    }
    let scratch = Scratch::new("dwz");
    for (flags, options) in [
        (&["-g"][..], "-m shared.debug"),
        (&["-g"], "--dwarf-5 -m shared.debug"),
        (&["-gdwarf-4"], "-m shared.debug"),
        (&["-g"], ""),
    ] {
        let program = scratch.compiled("a", flags);
        scratch.compiled("b", flags);
        tool(&scratch.0, format!("dwz {options} a b").replace("  ", " ").trim());
        let known = all_stacks(&program);
        let names: BTreeSet<Vec<String>> = known.iter().map(|(names, _)| names.clone()).collect();
        assert_eq!(names, inlined(), "{options}");
        let lines: BTreeSet<u32> = known.iter().filter_map(|(_, line)| Some(line.as_ref()?.line)).collect();
        assert!(lines.is_superset(&lines_with("innermost")), "{options}: {lines:?}");
        // the debug file of a stripped program has the link
        let offsets = offsets_of(&program, "outer");
        tool(&scratch.0, "objcopy --only-keep-debug a a.debug");
        tool(&scratch.0, "objcopy --strip-all --add-gnu-debuglink=a.debug a");
        let stripped = known_of(&program, &offsets, &LookIn::default());
        assert_eq!(stripped, known, "{options}");
        // whatever is overwritten, in either file
        for file in ["a.debug", "shared.debug"] {
            let whole = fs::read(scratch.path(file)).unwrap_or_default();
            for start in (0..whole.len()).step_by(97) {
                let mut spoilt = whole.clone();
                let end = (start + 8).min(whole.len());
                spoilt[start..end].fill(0xff);
                fs::write(scratch.path(file), spoilt).unwrap();
                known_of(&program, &offsets, &LookIn::default());
            }
            fs::write(scratch.path(file), whole).unwrap();
        }
    }
}
