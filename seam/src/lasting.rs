//! Files of sysfs that say the same as long as the kernel runs: what a PMU's events and formats are, and its number. To look one up
//! takes the kernel some 20,000 instructions, and td_open asks for 10 to 30, the same ones each time.
#![forbid(unsafe_code)]

use std::io;
use std::sync::Mutex;

/// Where they are.
const DEVICES: &str = "/sys/bus/event_source/devices/";

/// No longer name, and no longer text, is remembered.
const NAME: usize = 112;
const TEXT: usize = 64;
const MOST: usize = 64;

/// What is remembered, in memory that is always there. The first are kept: they are asked for again.
pub(crate) struct LastingFiles(Mutex<[SysfsFile; MOST]>);

#[derive(Clone, Copy)]
struct SysfsFile {
    name: ShortText<NAME>,
    /// None: there is none.
    text: Option<ShortText<TEXT>>,
}

#[derive(Clone, Copy)]
struct ShortText<const N: usize> {
    bytes: [u8; N],
    length: u8,
}

impl SysfsFile {
    /// (all zeros, which take no room in the library's file)
    const NONE: SysfsFile = SysfsFile { name: ShortText { bytes: [0; NAME], length: 0 }, text: None };

    fn is_none(&self) -> bool {
        self.name.length == 0
    }
}

impl<const N: usize> ShortText<N> {
    fn new(text: &str) -> Option<ShortText<N>> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(ShortText { bytes, length: text.len() as u8 })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }

    fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// What of a file does not change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastingPart {
    Nothing,
    /// That there is none; or that there is, as of a PMU's directory.
    Existence,
    Text,
}

/// Of this one. (Which CPUs a PMU has, and whether RDPMC is allowed, changes.)
fn lasts(path: &str) -> LastingPart {
    let Some(file) = path.strip_prefix(DEVICES) else { return LastingPart::Nothing };
    match file.split_once('/') {
        None | Some((_, "cpus")) => LastingPart::Existence,
        Some((_, "type")) => LastingPart::Text,
        Some((_, file)) if file.starts_with("events/") || file.starts_with("format/") => LastingPart::Text,
        Some(_) => LastingPart::Nothing,
    }
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

impl LastingFiles {
    pub const fn new() -> LastingFiles {
        LastingFiles(Mutex::new([SysfsFile::NONE; MOST]))
    }

    /// The text of a file, which is read unless it lasts and was read before. (Whoever finds the lock held reads: in a forked child that
    /// is for ever.)
    pub fn text(&self, path: &str, read: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
        let lasts = lasts(path);
        if lasts == LastingPart::Nothing {
            return read();
        }
        if let Some(file) = self.known(path) {
            let text = file.text.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
            return Ok(text.text().to_owned());
        }
        let found = read();
        match &found {
            Ok(text) if lasts == LastingPart::Text => self.remember(path, ShortText::new(text).map(Some)),
            // (where nothing of the directory was seen it may be hidden, as in a container, and be shown later)
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && self.has_seen(directory(path)) => {
                self.remember(path, Some(None));
            }
            _ => (),
        }
        found
    }

    /// Whether a directory of a PMU is there, unless it was.
    pub fn exists(&self, path: &str, look: impl FnOnce() -> bool) -> bool {
        if lasts(path) != LastingPart::Existence {
            return look();
        }
        if self.known(path).is_some_and(|file| file.text.is_some()) {
            return true;
        }
        let found = look();
        if found {
            self.remember(path, ShortText::new("").map(Some));
        }
        found
    }

    /// Whether a file of this directory was read.
    fn has_seen(&self, wanted: &str) -> bool {
        let Ok(files) = self.0.try_lock() else { return false };
        let is_of_it = |file: &SysfsFile| file.text.is_some() && directory(file.name.text()) == wanted;
        files.iter().take_while(|file| !file.is_none()).any(is_of_it)
    }

    fn known(&self, path: &str) -> Option<SysfsFile> {
        let files = self.0.try_lock().ok()?;
        files.iter().find(|file| !file.is_none() && file.name.bytes() == path.as_bytes()).copied()
    }

    fn remember(&self, path: &str, text: Option<Option<ShortText<TEXT>>>) {
        let (Some(name), Some(text)) = (ShortText::new(path), text) else { return };
        if let Ok(mut files) = self.0.try_lock() {
            // (another thread may have done it: the first one counts)
            if let Some(place) = files.iter_mut().find(|file| file.is_none()) {
                *place = SysfsFile { name, text };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_lasts_is_read_once_and_any_other_each_time() {
        let files = LastingFiles::new();
        let mut reads = 0;
        let mut ask = |path: &str, text: Option<&str>| {
            let found = files.text(path, || {
                reads += 1;
                text.map(str::to_owned).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
            });
            (found.map_err(|error| error.raw_os_error()), reads)
        };
        let path = |file: &str| format!("{DEVICES}cpu/{file}");
        let slots = path("events/slots");
        assert_eq!(ask(&slots, Some("event=0x00,umask=0x4\n")), (Ok("event=0x00,umask=0x4\n".into()), 1));
        assert_eq!(ask(&slots, Some("another")), (Ok("event=0x00,umask=0x4\n".into()), 1));
        assert_eq!(ask(&path("events/none"), None), (Err(Some(libc::ENOENT)), 2));
        assert_eq!(ask(&path("events/none"), None), (Err(Some(libc::ENOENT)), 2));
        for changing in [path("cpus"), path("rdpmc"), "/proc/sys/kernel/nmi_watchdog".into()] {
            assert_eq!(ask(&changing, Some("1")).0, Ok("1".into()));
            assert_eq!(ask(&changing, Some("0")).0, Ok("0".into()), "{changing}");
        }
        // too long, or more than there is room for
        let long = "x".repeat(TEXT + 1);
        assert_eq!(ask(&path("type"), Some(&long)).0, Ok(long.clone()));
        assert_eq!(ask(&path("type"), Some("4\n")).0, Ok("4\n".into()));
        for k in 0..2 * MOST {
            assert_eq!(ask(&path(&format!("events/{k}")), Some("1")).0, Ok("1".into()));
        }
        assert_eq!(ask(&path("events/127"), Some("2")).0, Ok("2".into()));
        assert_eq!(ask(&slots, Some("another")).0, Ok("event=0x00,umask=0x4\n".into()));
    }

    #[test]
    fn that_a_pmu_is_there_lasts_and_that_it_is_not_does_not() {
        let files = LastingFiles::new();
        let cpu = format!("{DEVICES}cpu");
        assert_eq!([false, true, false].map(|is| files.exists(&cpu, || is)), [false, true, true]);
        assert_eq!([true, false].map(|is| files.exists("/proc/vz", || is)), [true, false]);
        // a PMU that has no list of CPUs never gets one, but may be hidden as long as nothing of it is seen
        let cpus = format!("{cpu}/cpus");
        let missing = || Err(io::Error::from_raw_os_error(libc::ENOENT));
        assert!(files.text(&cpus, missing).is_err());
        assert_eq!(files.text(&cpus, || Ok("0-3".into())).unwrap(), "0-3");
        assert_eq!(files.text(&format!("{cpu}/type"), || Ok("4".into())).unwrap(), "4");
        assert!(files.text(&cpus, missing).is_err());
        assert!(files.text(&cpus, || Ok("0-3".into())).is_err());
        // nor does a file of the PMU's tell of its events
        let slots = format!("{cpu}/events/slots");
        assert!(files.text(&slots, missing).is_err());
        assert_eq!(files.text(&slots, || Ok("event=0x00,umask=0x4".into())).unwrap(), "event=0x00,umask=0x4");
    }

    #[test]
    fn what_could_not_be_read_is_asked_for_again() {
        let files = LastingFiles::new();
        let path = format!("{DEVICES}cpu/type");
        let refused = files.text(&path, || Err(io::Error::from_raw_os_error(libc::EACCES)));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert_eq!(files.text(&path, || Ok("4\n".into())).unwrap(), "4\n");
    }
}
