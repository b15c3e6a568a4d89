//! An attr, as text.

use crate::Attr;
use libc::FILE;
use std::ffi::CString;
use topdown_seam::attr::Word;

/// The name of a bit of an attr, and the bit.
type Flag = (&'static str, fn(&Attr) -> u64);

const FLAGS: [Flag; 17] = [
    ("disabled", Attr::disabled),
    ("inherit", Attr::inherit),
    ("pinned", Attr::pinned),
    ("exclusive", Attr::exclusive),
    ("exclude_user", Attr::exclude_user),
    ("exclude_kernel", Attr::exclude_kernel),
    ("exclude_hv", Attr::exclude_hv),
    ("exclude_idle", Attr::exclude_idle),
    ("mmap", Attr::mmap),
    ("comm", Attr::comm),
    ("freq", Attr::freq),
    ("inherit_stat", Attr::inherit_stat),
    ("enable_on_exec", Attr::enable_on_exec),
    ("task", Attr::task),
    ("watermark", Attr::watermark),
    ("exclude_host", Attr::exclude_host),
    ("exclude_guest", Attr::exclude_guest),
];

/// Its lines, to a C stream.
pub(crate) fn print_attr(file: *mut FILE, attr: &Attr) {
    let Ok(text) = CString::new(text(attr)) else { return };
    // SAFETY: the caller's stream; a C string.
    unsafe { libc::fputs(text.as_ptr(), file) };
}

/// Words and sample_type are left out where they are zero.
fn text(attr: &Attr) -> String {
    // SAFETY: both of the union are the same number.
    let sampling = unsafe { attr.__bindgen_anon_1.sample_period };
    let mut text = format!(
        "type: {}\nconfig: {:x}\nread_format: {:x}\n",
        attr.type_ as i32, attr.config, attr.read_format
    );
    if attr.sample_type != 0 {
        text += &format!("sample_type: {:x}\n", attr.sample_type);
    }
    text += &format!("sample_period/freq: {}\n", sampling as i64);
    for word in Word::ALL[1..].iter().filter(|word| word.of(attr) != 0) {
        text += &format!("{}: {:x}\n", word.name(), word.of(attr));
    }
    text.push_str("flags: ");
    for (name, _) in FLAGS.iter().filter(|(_, is_set)| is_set(attr) != 0) {
        text.extend([name, " "]);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown_seam::attr;

    #[test]
    fn little_is_set() {
        let expected = "type: 4\nconfig: 0\nread_format: 0\nsample_period/freq: 0\nflags: \n";
        assert_eq!(text(&attr::new(4)), expected);
    }

    #[test]
    fn all_is_set() {
        let all = attr::from_bytes(&[0xff; 144]);
        let f = "f".repeat(16);
        let expected = format!(
            "type: -1\nconfig: {f}\nread_format: {f}\nsample_type: {f}\nsample_period/freq: -1\nconfig1: {f}\n\
             config2: {f}\nconfig3: {f}\nconfig4: {f}\nflags: disabled inherit pinned exclusive exclude_user \
             exclude_kernel exclude_hv exclude_idle mmap comm freq inherit_stat enable_on_exec task watermark \
             exclude_host exclude_guest \n"
        );
        assert_eq!(text(&all), expected);
    }

    #[test]
    fn each_flag_is_its_own() {
        for (position, (name, _)) in (0..15).chain([19, 20]).zip(FLAGS) {
            let mut bytes = [0; 144];
            bytes[40..48].copy_from_slice(&(1u64 << position).to_ne_bytes());
            assert!(text(&attr::from_bytes(&bytes)).ends_with(&format!("flags: {name} \n")));
        }
    }

    #[test]
    fn config2_is_config2() {
        let mut attr = attr::new(4);
        Word::Config1.set(&mut attr, 0x11);
        Word::Config2.set(&mut attr, 0x22);
        assert!(text(&attr).contains("config1: 11\nconfig2: 22\n"));
    }
}
