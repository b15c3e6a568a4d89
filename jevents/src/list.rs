//! The loaded list of events.
//!
//! The first use loads it, once, however many threads come at the same time. [`read`] replaces it; who still walks the
//! old one keeps that.

use crate::environment::{Environment, readable};
use crate::files;
use crate::perfmon;
use crate::say::{reason, say};
use parking_lot::Mutex;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use topdown_seam::cpu::identify;

/// An event of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEvent {
    /// Lower case.
    pub name: String,
    /// Terms, without PMU.
    pub terms: String,
    /// Description.
    pub desc: String,
    /// PMU.
    pub pmu: String,
}

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFailure {
    /// No file, or not one that can be read (errno says why) or understood (EIO).
    Unreadable(i32),
    /// Nothing says where files could be.
    Nowhere,
}

impl ListFailure {
    /// The code that C callers know.
    pub fn code(self) -> i32 {
        match self {
            ListFailure::Unreadable(_) => -libc::EIO,
            ListFailure::Nowhere => -libc::ENOMEM,
        }
    }

    /// What errno says beside the code.
    pub fn errno(self) -> i32 {
        match self {
            ListFailure::Unreadable(errno) => errno,
            ListFailure::Nowhere => libc::ENOMEM,
        }
    }
}

/// Events.
#[derive(Debug, Default)]
pub struct ListedEvents {
    /// By name; those of one name in the order of their files: those of cores come first.
    events: Vec<Arc<ListedEvent>>,
}

impl ListedEvents {
    fn new(mut events: Vec<ListedEvent>) -> Self {
        events.sort_by(|a, b| a.name.cmp(&b.name));
        ListedEvents { events: events.into_iter().map(Arc::new).collect() }
    }

    /// All.
    pub fn events(&self) -> &[Arc<ListedEvent>] {
        &self.events
    }

    /// The first of a name, in any case.
    pub fn find(&self, name: &str) -> Option<&Arc<ListedEvent>> {
        let name = name.to_ascii_lowercase();
        let place = self.events.partition_point(|event| event.name < name);
        self.events.get(place).filter(|event| event.name == name)
    }

    /// The event with the code of bits 0 to 7, and the umask of bits 8 to 15. Several may have them; one of a core is
    /// taken, and of these the first, by name, with the fewest terms.
    pub fn with_code(&self, code: u32) -> Option<&Arc<ListedEvent>> {
        let wanted = [u64::from(code & 0xff), u64::from(code >> 8 & 0xff)];
        let found = self.events.iter().filter(|event| {
            ["event", "umask"].map(|term| perfmon::term_value(&event.terms, term).unwrap_or(0)) == wanted
        });
        found.min_by_key(|event| (!event.pmu.starts_with("cpu"), event.terms.split(',').count()))
    }
}

/// None: not used yet. A list that could not be loaded stays so: files are not looked for at each name.
static LIST: Mutex<Option<Result<Arc<ListedEvents>, ListFailure>>> = Mutex::new(None);

/// All events; loads them on first use.
pub fn all() -> Result<Arc<ListedEvents>, ListFailure> {
    let mut list = LIST.lock();
    // The lock is held meanwhile: others wait, and find what was loaded.
    list.get_or_insert_with(|| load(None).map(|events| Arc::new(ListedEvents::new(events)))).clone()
}

/// The event of this name, in any case; loads the lists on first use. None also if there are no lists.
pub fn find(name: &str) -> Option<Arc<ListedEvent>> {
    all().ok()?.find(name).cloned()
}

/// Replaces the list by that of a file, or of the files for this CPU. Fails: it is empty then, and stays so, since
/// who names a list does not want another one.
pub fn read(file: Option<&Path>) -> Result<(), ListFailure> {
    let loaded = load(file);
    let result = loaded.as_ref().map(|_| ()).map_err(|failure| *failure);
    let list = Arc::new(ListedEvents::new(loaded.unwrap_or_default()));
    let old = LIST.lock().replace(Ok(list));
    drop(old); // takes a while, without the lock
    result
}

/// The events of a file, or of the files for this CPU.
pub fn load(file: Option<&Path>) -> Result<Vec<ListedEvent>, ListFailure> {
    match file {
        Some(file) => events_of(file),
        None => {
            let files = files::choose(&Environment::real(), &identify(), readable)?;
            let mut events = events_of(&files.core)?;
            events.extend(files.more.iter().filter_map(|file| events_of(file).ok()).flatten());
            Ok(events)
        }
    }
}

fn events_of(file: &Path) -> Result<Vec<ListedEvent>, ListFailure> {
    let name = file.display();
    let bytes = contents(file).map_err(|error| {
        say!("Cannot read events from {name}: {}", reason(&error));
        ListFailure::Unreadable(error.raw_os_error().unwrap_or(libc::EIO))
    })?;
    perfmon::parse(&bytes, files::pmu_of(file)).map_err(|error| {
        let text = error.to_string();
        let fault = text.rsplit_once(" at line ").map_or(&*text, |(fault, _)| fault);
        say!("{name}:{}:{}: {fault}: no events are read from this file", error.line(), error.column());
        ListFailure::Unreadable(libc::EIO)
    })
}

/// More than an event file has; those of servers have 5 MB.
const LARGEST: u64 = 256 << 20;

/// All of a file, which must have a size: what has none (a pipe, a device, most of /proc) may have no end, or wait for ever.
fn contents(file: &Path) -> io::Result<Vec<u8>> {
    let refused = |why: &str| Err(io::Error::other(why));
    let sized = |metadata: Metadata| match metadata.len() {
        _ if !metadata.is_file() => refused("not a regular file: save the list in one"),
        0 => refused("the file is empty, or has no size: save the list in a regular file"),
        size if size > LARGEST => {
            refused(&format!("{size} bytes are more than any event list has ({LARGEST})"))
        }
        size => Ok(size),
    };
    sized(file.metadata()?)?; // to open a device may have effects
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
    let size = sized(opened.metadata()?)?; // it may be another file now
    let mut bytes = Vec::new();
    opened.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use topdown_seam::clocks::own_cpu_ns;

    fn event(name: &str, terms: &str, pmu: &str) -> ListedEvent {
        ListedEvent {
            name: name.into(),
            terms: terms.into(),
            desc: format!("What {name} is"),
            pmu: pmu.into(),
        }
    }

    #[test]
    fn names_are_whole_and_the_first_of_one_counts() {
        let list = ListedEvents::new(vec![
            event("b.c", "event=0x1", "cpu"),
            event("a", "", "cpu"),
            event("b.c", "", "imc"),
        ]);
        let all: Vec<_> = list.events().iter().map(|event| (&*event.name, &*event.pmu)).collect();
        assert_eq!(all, [("a", "cpu"), ("b.c", "cpu"), ("b.c", "imc")]);
        for name in ["b.c", "B.C", "B.c"] {
            assert_eq!(list.find(name).map(|event| &*event.pmu), Some("cpu"), "{name}");
        }
        for name in ["", "b", "b.", "b.cd", "b.c ", "c", "0"] {
            assert_eq!(list.find(name), None, "{name:?}");
        }
        assert_eq!(ListedEvents::default().find("a"), None);
    }

    #[test]
    fn codes_find_events_of_cores_first_and_plain_ones() {
        let list = ListedEvents::new(vec![
            event("stalls", "umask=0x01,cmask=1,inv=1,event=0xe", "cpu"),
            event("issued", "umask=0x01,event=0xe", "cpu"),
            event("issued_2", "umask=1,event=0x0E", "cpu"),
            event("clocks", "event=0x3c", "cpu_core"),
            event("cas", "umask=0x3,event=0x4", "imc"),
            event("loads", "umask=0x3,event=0x4", "cpu_atom"),
            event("reads", "umask=0x5,event=0x4", "imc"),
            event("tor", "umask=0xc001fe01,event=0x35", "cha"),
            event("other", "umask=0x7,other_event=0x99,event=0x77", "cpu"),
        ]);
        let name = |code| list.with_code(code).map(|event| event.name.as_str());
        assert_eq!(name(0x10e), Some("issued"));
        assert_eq!(name(0x3c), Some("clocks"));
        assert_eq!(name(0xff0000 | 0x3c), Some("clocks"), "other bits do not count");
        assert_eq!(name(0x304), Some("loads"));
        assert_eq!(name(0x504), Some("reads"));
        assert_eq!(name(0x135), None, "the umask has more bits");
        assert_eq!(name(0x799), None, "another term");
        assert_eq!(name(0), None);
    }

    /// A list of the shape that servers have, of so many bytes.
    fn list_of(bytes: usize) -> String {
        let mut file = String::from("{\n  \"Header\": {\"Version\": \"1.03\"},\n  \"Events\": [\n");
        let mut count = 0;
        while file.len() < bytes {
            if count > 0 {
                file.push_str(",\n");
            }
            file += &format!(
                r#"    {{
      "Unit": "CHA",
      "EventCode": "0x{:02X}",
      "UMask": "0x{:02X}",
      "PortMask": "0x00",
      "FCMask": "0x00",
      "UMaskExt": "0x00C8{:04X}",
      "EventName": "UNC_CHA_TOR_INSERTS.REQUEST_{count}",
      "BriefDescription": "Requests from local cores that missed \"the\" cache, number {count}",
      "PublicDescription": "TOR Inserts : counts the number of entries successfully inserted into the TOR that match qualifications specified by the subevent. Does not include addressless requests such as locks and interrupts.",
      "Counter": "0,1,2,3",
      "ELLC": "0",
      "Filter": "na",
      "ExtSel": "0",
      "Deprecated": "0",
      "FILTER_VALUE": "0",
      "CounterType": "PGMABLE"
    }}"#,
                count % 256,
                count / 256,
                count
            );
            count += 1;
        }
        file + "\n  ]\n}\n"
    }

    /// The shortest of five CPU times in which a list of so many bytes loads, and its last event is found.
    fn time_of(bytes: usize) -> Duration {
        let text = list_of(bytes);
        let path = std::env::temp_dir().join(format!("event-file-{}-{bytes}", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let count = text.matches("EventName").count();
        let times = (0..5).map(|_| {
            let start = own_cpu_ns();
            let list = ListedEvents::new(load(Some(&path)).unwrap());
            let time = Duration::from_nanos(own_cpu_ns() - start);
            assert_eq!(list.events().len(), count);
            assert!(list.find(&format!("UNC_CHA_TOR_INSERTS.REQUEST_{}", count - 1)).is_some());
            time
        });
        let best = times.min().unwrap();
        std::fs::remove_file(&path).unwrap();
        eprintln!("{:.1} MB: {best:?}", text.len() as f64 / 1e6);
        best
    }

    /// Servers have lists of 5 MB: one takes no more for each byte than a short one does, whatever else the machine does.
    #[test]
    fn a_large_file_loads_at_once() {
        let (short, large) = (time_of(250_000), time_of(5_000_000));
        assert!(large < 60 * short, "{short:?} {large:?}");
    }
}
