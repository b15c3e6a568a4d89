//! A recording as a file of JSON lines, written while it is made: if the recorder is killed, all but its last burst is there.
//!
//! The first line says of what it is; then each module, stack and burst has a line, those that a burst names before it; and now and
//! then one has the totals so far. A last line without its end was being written.
#![forbid(unsafe_code)]

mod checked;

use crate::recording::{Burst, Recording, Totals};
use crate::settings::Settings;
use crate::spaces::Module;
use crate::stacks::CodePlace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use topdown::SampledEvents;
use topdown_report::{open_regular, unreadable};

/// Of the file's format.
const VERSION: u32 = 3;
/// Each file begins so.
pub(crate) const BEGINNING: &[u8] = b"{\"recording\":";
/// No line is so long: a stack of as many callers as are followed has some kilobytes, totals name as many files as were mapped.
const LONGEST_LINE: u64 = 16 << 20;
/// The totals are written so often.
const TOTALS_EVERY: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Recording {
        version: u32,
        command: String,
        occasion: String,
        settings: Settings,
        cores: Vec<JournalCore>,
    },
    Module(Module),
    Stack(Vec<CodePlace>),
    Burst(Burst),
    /// The name of a place in code of no file.
    Made(CodePlace, String),
    Totals(Totals),
}

/// What was counted on a kind of core.
#[derive(Serialize, Deserialize)]
struct JournalCore {
    core: String,
    /// Of the tree and the events that were counted, as `topdown::fingerprint` has it.
    fingerprint: u64,
    level: u32,
    slots_each: u64,
    events: Vec<String>,
    /// Why these were counted.
    note: String,
}

impl JournalCore {
    fn of(events: &SampledEvents) -> JournalCore {
        JournalCore {
            core: events.core.into(),
            fingerprint: topdown::fingerprint(events.core).unwrap_or(0),
            level: events.level,
            slots_each: events.slots_each,
            events: events.events.iter().map(|(name, _)| (*name).into()).collect(),
            note: events.note.clone(),
        }
    }

    fn events(&self) -> Result<SampledEvents, String> {
        let named = SampledEvents::of_core(&self.core);
        let events = named.ok_or_else(|| format!("no core '{}' is known", self.core.escape_debug()))?;
        if topdown::fingerprint(&self.core).is_none_or(|known| known != self.fingerprint) {
            return Err(format!(
                "another version has counted a {} by other events or formulas: make its profiles with the topdown that recorded it",
                events.core
            ));
        }
        // (what leads the group may be another event than here)
        let members = |events: &SampledEvents| events.events.iter().skip(1).map(|(name, _)| *name).collect();
        let here: Vec<&str> = members(&events);
        let recorded = self.events.get(1..).unwrap_or(&[]);
        let each = [1, events.slots_per_cycle.into()].contains(&self.slots_each);
        if !each || recorded.len() > here.len() || recorded.iter().zip(&here).any(|(a, b)| a != b) {
            return Err(format!("its events are not those of a {}", events.core));
        }
        if !(1..=events.level).contains(&self.level) {
            return Err(format!("a {} has no level {}", events.core, self.level));
        }
        let (mut events, counted) = (events, recorded.len());
        events.events.truncate(1 + counted);
        (events.level, events.slots_each) = (self.level, self.slots_each);
        events.note = topdown_report::clean(&self.note);
        if events.sampler == 0 {
            events.sampled_per_cycle =
                if self.slots_each == 1 { events.slots_per_cycle.max(1).into() } else { 1 };
        }
        if !events.are_enough() {
            return Err(format!("of a {} these events tell no level {}", events.core, events.level));
        }
        Ok(events)
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// So many of each are written.
    modules: usize,
    stacks: usize,
    bursts: usize,
    totals: Option<Duration>,
    failed: Option<io::Error>,
}

impl Journal {
    /// Begins a new file.
    ///
    /// # Errors
    /// It is there already, or cannot be written.
    pub fn create(path: &Path) -> io::Result<Journal> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let path = path.into();
        Ok(Journal { path, file, modules: 0, stacks: 0, bursts: 0, totals: None, failed: None })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it is not whole, if that is so.
    #[must_use]
    pub fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    fn lines(&mut self, lines: impl Iterator<Item = Line>) {
        let mut text = Vec::new();
        for line in lines {
            // (no map in them has keys that are no text)
            let _ = serde_json::to_writer(&mut text, &line);
            text.push(b'\n');
        }
        if self.failed.is_none() {
            self.failed = self.file.write_all(&text).err();
        }
    }

    /// The first line.
    pub(crate) fn begin(
        &mut self,
        command: &str,
        occasion: &str,
        settings: Settings,
        events: &[SampledEvents],
    ) {
        let cores = events.iter().map(JournalCore::of).collect();
        let (command, occasion) = (command.into(), occasion.into());
        self.lines([Line::Recording { version: VERSION, command, occasion, settings, cores }].into_iter());
    }

    /// What has come since the last time.
    pub(crate) fn write(
        &mut self,
        modules: &[Module],
        stacks: &[Vec<CodePlace>],
        bursts: &[Burst],
        totals: Option<Totals>,
    ) {
        let new_modules = modules[self.modules..].iter().cloned().map(Line::Module);
        let new_stacks = stacks[self.stacks..].iter().cloned().map(Line::Stack);
        let new_bursts = bursts[self.bursts..].iter().cloned().map(Line::Burst);
        self.lines(new_modules.chain(new_stacks).chain(new_bursts).chain(totals.map(Line::Totals)));
        (self.modules, self.stacks, self.bursts) = (modules.len(), stacks.len(), bursts.len());
    }

    /// Names of code of no file, when all modules are known.
    pub(crate) fn write_made(&mut self, modules: &[Module], made: &BTreeMap<CodePlace, String>) {
        let new_modules = modules[self.modules..].iter().cloned().map(Line::Module);
        let names = made.iter().map(|(place, name)| Line::Made(*place, name.clone()));
        self.lines(new_modules.chain(names));
        self.modules = modules.len();
    }

    /// Whether the totals are to be written, so long after the start.
    pub(crate) fn wants_totals(&mut self, elapsed: Duration) -> bool {
        let wants = self.totals.is_none_or(|last| elapsed >= last + TOTALS_EVERY);
        if wants {
            self.totals = Some(elapsed);
        }
        wants
    }
}

/// A recording that was kept in a file.
#[derive(Debug)]
pub struct JournalContents {
    /// What was recorded.
    pub recording: Recording,
    /// The command, or the processes.
    pub command: String,
    /// When and where, or nothing.
    pub occasion: String,
    /// Why the file has not all that was recorded, as far as that can be seen; empty: it cannot.
    pub cut: String,
    made: BTreeMap<CodePlace, String>,
}

impl JournalContents {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not such a file; the text names it, and the line.
    pub fn read(path: &Path) -> io::Result<JournalContents> {
        let name = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let mut file = BufReader::new(open_regular(path)?);
        let beginning = file.fill_buf().map_err(|error| name(error.to_string()))?;
        if let Some(why) = unreadable(beginning) {
            return Err(name(why.into()));
        }
        JournalContents::of(file).map_err(name)
    }

    pub(crate) fn of(mut file: impl BufRead) -> Result<JournalContents, String> {
        let (mut text, mut number, mut kept) = (Vec::new(), 0, None);
        loop {
            text.clear();
            file.by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut text)
                .map_err(|error| error.to_string())?;
            if text.is_empty() {
                break;
            }
            number += 1;
            if text.len() as u64 == LONGEST_LINE {
                return Err(format!(
                    "line {number}: longer than {LONGEST_LINE} bytes, which no line of a recording is"
                ));
            }
            if !text.ends_with(b"\n") {
                let begun: &mut JournalContents = kept.as_mut().ok_or("not a recording of topdown record")?;
                begun.cut = format!(
                    "Line {number} of the recording, its last, is cut and left out: it was being written when the recorder was killed \
                     or found no room, or the file is the beginning of a longer one. What came after it is not in this."
                );
                break;
            }
            let at = |why: String| format!("line {number}: {why}");
            let line = serde_json::from_slice(&text);
            match (&mut kept, line) {
                (None, Ok(Line::Recording { version, command, occasion, settings, cores })) => {
                    if version != VERSION {
                        return Err(at(format!(
                            "version {version} of the format; this topdown reads {VERSION}"
                        )));
                    }
                    kept = Some(begun(command, occasion, settings, &cores).map_err(at)?);
                }
                (None, _) => return Err("not a recording of topdown record".into()),
                (Some(kept), Ok(line)) => kept.add(line).map_err(at)?,
                (Some(_), Err(error)) => return Err(at(error.to_string())),
            }
        }
        let mut kept = kept.ok_or("not a recording of topdown record")?;
        kept.recording.made = Arc::new(std::mem::take(&mut kept.made));
        checked::whole(&kept.recording)?;
        Ok(kept)
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        let recording = &mut self.recording;
        match line {
            Line::Module(module) => recording.modules.push(module),
            Line::Stack(stack) => {
                checked::stack(&stack, recording)?;
                recording.stacks.push(stack);
            }
            Line::Made(place, name) => {
                checked::made(place, recording)?;
                self.made.insert(place, name);
            }
            Line::Burst(burst) => {
                checked::burst(&burst, recording)?;
                recording.bursts.push(burst);
            }
            Line::Totals(totals) => {
                checked::totals(&totals)?;
                recording.totals = totals;
                recording.totals.refused.1 = topdown_report::clean(&recording.totals.refused.1);
            }
            Line::Recording { .. } => return Err("a second recording".into()),
        }
        Ok(())
    }
}

fn begun(
    command: String,
    occasion: String,
    settings: Settings,
    cores: &[JournalCore],
) -> Result<JournalContents, String> {
    checked::settings(settings)?;
    let events = cores.iter().map(JournalCore::events).collect::<Result<Vec<_>, _>>()?;
    Ok(JournalContents {
        recording: Recording::none(events, settings),
        command,
        occasion,
        cut: String::new(),
        made: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Calls;
    use crate::symbols::tests::Scratch;

    fn events() -> Vec<SampledEvents> {
        vec![SampledEvents::of_core("Golden or Raptor Cove, bare counters").unwrap()]
    }

    fn modules() -> [Module; 2] {
        [
            Module::at("/bin/a \"quoted\"\n"),
            Module::Anonymous { pid: 7, user: 1000, version: 0, memfd: String::new() },
        ]
    }

    fn burst(stack: u32) -> Burst {
        Burst {
            long: stack > 0,
            weight_ns: 2_000_000,
            stacks: vec![0, stack, stack],
            windows: vec![None, Some(vec![6000, 3000, 1200, 600, 300, 900, 50, 600])],
            calls: Calls { returns: vec![None, Some(3)], stack: vec![0, -16, 16] },
            ..Burst::default()
        }
    }

    /// Two stretches, as they come.
    fn written(scratch: &Scratch) -> PathBuf {
        let path = scratch.path("a.recording");
        let mut journal = Journal::create(&path).unwrap();
        let place = |module, address| CodePlace { module, address };
        let stacks = [vec![place(Some(0), 16), place(None, u64::MAX)], vec![place(Some(1), 32)]];
        let totals = Recording::none(events(), Settings::default()).totals;
        let totals = |lost| Totals { lost, elapsed: Duration::from_millis(1500), ..totals.clone() };
        journal.begin("a b", "today", Settings::default(), &events());
        journal.write(&modules()[..1], &stacks[..1], &[burst(0)], Some(totals(1)));
        journal.write(&modules(), &stacks, &[burst(0), burst(1)], Some(totals(2)));
        assert!(journal.failed().is_none() && journal.path() == path);
        path
    }

    #[test]
    fn what_was_written_is_read() {
        let scratch = Scratch::new("journal");
        let path = written(&scratch);
        let JournalContents { recording, command, occasion, cut, .. } = JournalContents::read(&path).unwrap();
        assert_eq!((&*command, &*occasion, &*cut), ("a b", "today", ""));
        assert_eq!(recording.modules, modules());
        assert_eq!((recording.stacks.len(), recording.bursts.len()), (2, 2));
        assert_eq!(recording.stacks[0][1].address, u64::MAX);
        assert_eq!(recording.bursts[1].windows, burst(1).windows);
        assert_eq!(recording.bursts[1].calls, burst(1).calls);
        assert_eq!((recording.totals.lost, recording.totals.elapsed.as_millis()), (2, 1500));
        assert_eq!((recording.events[0].core, recording.events[0].level), (events()[0].core, 2));
        assert_eq!(Journal::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn of_a_file_that_ends_anywhere_the_whole_lines_are_there() {
        let scratch = Scratch::new("torn");
        let text = std::fs::read(written(&scratch)).unwrap();
        let first = text.iter().position(|byte| *byte == b'\n').unwrap();
        let mut bursts = 0;
        for end in 0..=text.len() {
            match JournalContents::of(&text[..end]) {
                Ok(kept) => {
                    assert!(end > first && kept.recording.bursts.len() >= bursts, "{end}");
                    bursts = kept.recording.bursts.len();
                    let lines = text[..end].split_inclusive(|byte| *byte == b'\n').count();
                    let said = format!("Line {lines} of the recording, its last, is cut");
                    assert_eq!(kept.cut.starts_with(&said), text[end - 1] != b'\n', "{end}: {}", kept.cut);
                    assert_eq!(kept.cut.is_empty(), text[end - 1] == b'\n', "{end}");
                }
                Err(why) => assert!(end <= first && why.contains("not a recording"), "{end}: {why}"),
            }
        }
        assert_eq!(bursts, 2);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_line() {
        let scratch = Scratch::new("foreign");
        let text = std::fs::read_to_string(written(&scratch)).unwrap();
        assert!(text.as_bytes().starts_with(BEGINNING));
        let last_event = format!(",{:?}", events()[0].events[7].0);
        for (what, instead, why) in [
            ("\"version\":3", "\"version\":2", "line 1: version 2 "),
            (
                "\"fingerprint\":",
                "\"fingerprint\":7,\"was\":",
                "line 1: another version has counted a Golden or Raptor",
            ),
            ("Golden or", "Silver or", "line 1: no core 'Silver or"),
            ("\"level\":2", "\"level\":3", "line 1: a Golden or Raptor Cove, bare counters has no level 3"),
            ("\"slots_each\":1", "\"slots_each\":2", "line 1: its events"),
            ("\"gap\":1000", "\"gap\":0", "line 1: a gap of 0"),
            ("\"frequency\":500", "\"frequency\":0", "line 1: 0 bursts a second"),
            ("\"budget\":0.01", "\"budget\":-0.01", "line 1: 500 bursts a second that may take -0.01"),
            (&*last_event, ",\"ELSE\"", "line 1: its events"),
            (
                &*last_event,
                "",
                "line 1: of a Golden or Raptor Cove, bare counters these events tell no level 2",
            ),
            ("\"kind\":0", "\"kind\":1", "line 4: a burst that cannot be"),
            (
                "\"stacks\":[0,0,0],\"windows\":[null",
                "\"stacks\":[],\"windows\":[null",
                "line 4: a burst that",
            ),
            ("[6000,3000,", "[3000,", "line 4: a burst of stacks or events"),
            ("[6000,3000,", "[6000,30000,", "line 4: a window in which more"),
            ("[6000,3000,", "[0,0,", "line 4: a window in which more"),
            ("[6000,3000,", "[18446744073709551615,3000,", "line 4: a window in which more"),
            ("[6000,3000,", "[6000000,3000,", "line 4: a window in which more"),
            ("\"threads\":0", "\"threads\":4000000000000000", "line 5: totals that cannot be"),
            ("\"ns\":0", "\"ns\":18446744073709551615", "line 5: totals that cannot be"),
            ("\"secs\":1,", "\"secs\":1000000000000,", "line 5: totals that cannot be"),
            (
                "\"secs\":1,\"nanos\":500000000",
                "\"secs\":18446744073709551615,\"nanos\":4000000000",
                "line 5: overflow",
            ),
            ("\"frequency\":500.0", "\"frequency\":-500.0", "line 5: totals that cannot be"),
            ("\"burst_ns\":", "\"burst_ns\":1e300,\"was\":", "line 5: totals that cannot be"),
            ("\"weight_ns\":2000000", "\"weight_ns\":1200000000000000", "line 4: a burst that"),
            ("\"stacks\":[0,0,0]", "\"stacks\":[0,0,1]", "line 4: a burst of stacks"),
            ("\"stacks\":[0,0,0]", "\"stacks\":[0,0]", "line 4: a burst that cannot be"),
            ("\"module\":0,\"address\"", "\"module\":1,\"address\"", "line 3: a stack of modules"),
            ("\"returns\":[null,3]", "\"returns\":[3]", "line 4: a burst that cannot be"),
            ("\"stack\":[0,-16,16]", "\"stack\":[0,-16]", "line 4: a burst that cannot be"),
            ("{\"burst\"", "{\"brust\"", "line 4: unknown variant `brust`"),
        ] {
            let changed = text.replacen(what, instead, 1);
            assert_ne!(changed, text, "{what}");
            let said = JournalContents::of(changed.as_bytes()).unwrap_err();
            assert!(said.starts_with(why), "{what}: {said}");
        }
        let burst = text.lines().find(|line| line.starts_with("{\"burst\"")).unwrap();
        let many = |count: usize, change: &dyn Fn(usize) -> String| {
            (0..count).fold(text.clone(), |text, k| text + &change(k) + "\n")
        };
        let longer = |k: usize| {
            burst.replace("\"long\":false", if k < 20 { "\"long\":true" } else { "\"long\":false" })
        };
        assert_eq!(
            JournalContents::of(many(40, &longer).as_bytes()).unwrap_err(),
            "the longer windows of Golden or Raptor Cove, bare counters are no longer than the shorter"
        );
        assert!(JournalContents::of(many(20, &longer).as_bytes()).is_ok());
        assert_eq!(JournalContents::of(&b"{}\n"[..]).unwrap_err(), "not a recording of topdown record");
        // a line without end
        let endless = BufReader::new(text.as_bytes().chain(io::repeat(b'x')));
        let lines = text.lines().count() + 1;
        let why = JournalContents::of(endless).unwrap_err();
        assert!(why.starts_with(&format!("line {lines}: longer than 16777216 bytes")), "{why}");
    }
}
