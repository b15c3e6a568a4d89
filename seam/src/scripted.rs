//! A kernel that does as a test tells it.
#![forbid(unsafe_code)]

use super::memory::ReservedPage;
use super::page::{Page, PageSnapshot};
use super::{Kernel, Mapping, Refusal};
use perf_event_open_sys::bindings::perf_event_attr;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// The kernel's names of the metric events of a Sapphire Rapids, in the order of their encodings.
const METRIC_EVENTS: [&str; 8] = [
    "topdown-retiring",
    "topdown-bad-spec",
    "topdown-fe-bound",
    "topdown-be-bound",
    "topdown-heavy-ops",
    "topdown-br-mispredict",
    "topdown-fetch-lat",
    "topdown-mem-bound",
];

/// Files by path, and how many descriptors and mappings are open.
#[derive(Clone, Default)]
pub struct ScriptedKernel {
    files: Rc<RefCell<BTreeMap<String, std::result::Result<String, i32>>>>,
    script: Rc<Script>,
}

#[derive(Default)]
struct Script {
    /// Calls so far, and the number of the one that fails, with what.
    calls: Cell<u32>,
    fail: Cell<Option<(u32, i32)>>,
    /// What is open now: descriptors and mappings.
    open: Cell<i32>,
    /// The order in which descriptors were closed; the leader is number 0.
    closed: RefCell<Vec<i32>>,
    next: Cell<i32>,
    /// RDPMC number plus one that pages of leader and members show.
    index: Cell<(u32, u32)>,
    slots: Cell<u64>,
    rdpmc: Cell<bool>,
    stands_still: Cell<bool>,
    starved: Cell<bool>,
    /// Of the time between two calls the group ran a part, without an instruction in user mode.
    preempted: Cell<bool>,
    /// Between enable and disable.
    counting: Cell<bool>,
    cpu_time: Cell<u64>,
    cpu: Cell<u32>,
    /// What every open, and every mmap, fails with.
    refuse_open: Cell<Option<i32>>,
    refuse_map: Cell<Option<i32>>,
}

/// A descriptor or a mapping.
pub struct Thing {
    number: i32,
    script: Rc<Script>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.script.open.set(self.script.open.get() - 1);
        self.script.closed.borrow_mut().push(self.number);
    }
}

impl ScriptedKernel {
    fn thing_of(&self, attr: &perf_event_attr, pid: i32, leader: Option<&Thing>) -> io::Result<Thing> {
        self.call()?;
        refused(&self.script.refuse_open)?;
        self.permits(attr, pid)?;
        let number = leader.map_or(0, |_| self.script.next.get());
        self.script.next.set(number + 1);
        Ok(self.thing(number))
    }

    /// A kernel on a Sapphire Rapids, whose group counts.
    pub fn sapphire_rapids() -> ScriptedKernel {
        let kernel = ScriptedKernel::default();
        let pmu = "/sys/bus/event_source/devices/cpu";
        kernel.add(&format!("{pmu}/type"), "4\n");
        kernel.add(&format!("{pmu}/events/cpu-cycles"), "event=0x3c\n");
        kernel.add(&format!("{pmu}/events/slots"), "event=0x00,umask=0x4\n");
        for (event, umask) in METRIC_EVENTS.into_iter().zip(0x80..) {
            kernel.add(&format!("{pmu}/events/{event}"), &format!("event=0x00,umask={umask:#x}\n"));
        }
        kernel.script.index.set((0x4000_0004, 0x2000_0001));
        kernel
    }

    /// A file with this text.
    pub fn add(&self, path: &str, text: &str) {
        self.files.borrow_mut().insert(path.into(), Ok(text.into()));
    }

    /// A file that is there, but cannot be read.
    pub fn hide(&self, path: &str, errno: i32) {
        self.files.borrow_mut().insert(path.into(), Err(errno));
    }

    /// The file is not there.
    pub fn remove(&self, path: &str) {
        self.files.borrow_mut().remove(path);
    }

    /// In all paths the first part is another.
    pub fn rename(&self, from: &str, to: &str) {
        let mut files = self.files.borrow_mut();
        *files = std::mem::take(&mut *files).into_iter().map(|(p, t)| (p.replacen(from, to, 1), t)).collect();
    }

    /// Lets the call of this number fail.
    pub fn fail(&self, call: u32, errno: i32) {
        self.script.fail.set(Some((call, errno)));
        self.script.calls.set(0);
        self.script.closed.borrow_mut().clear();
    }

    /// How many there were since the last `fail`.
    pub fn calls(&self) -> u32 {
        self.script.calls.get()
    }

    /// Descriptors and mappings that are open.
    pub fn open_things(&self) -> i32 {
        self.script.open.get()
    }

    /// Whether the group was enabled and not disabled since.
    pub fn is_counting(&self) -> bool {
        self.script.counting.get()
    }

    /// What was closed, in this order; the leader is number 0.
    pub fn closed(&self) -> Vec<i32> {
        self.script.closed.borrow().clone()
    }

    /// The index that pages of leader and members show.
    pub fn show_index(&self, leader: u32, members: u32) {
        self.script.index.set((leader, members));
    }

    /// Pages grant RDPMC.
    pub fn grant_rdpmc(&self) {
        self.script.rdpmc.set(true);
    }

    /// Counters do not count.
    pub fn stand_still(&self) {
        self.script.stands_still.set(true);
    }

    /// The group is never scheduled.
    pub fn starve(&self) {
        self.script.starved.set(true);
    }

    /// The group runs, but no instruction in user mode.
    pub fn run_in_the_kernel_alone(&self) {
        self.script.preempted.set(true);
    }

    /// The CPU that runs this.
    pub fn run_on(&self, cpu: u32) {
        self.script.cpu.set(cpu);
    }

    /// What every open fails with.
    pub fn refuse_open(&self, errno: i32) {
        self.script.refuse_open.set(Some(errno));
    }

    /// What every mmap fails with.
    pub fn refuse_map(&self, errno: i32) {
        self.script.refuse_map.set(Some(errno));
    }

    /// What /proc/sys/kernel/perf_event_paranoid permits, if it is there.
    fn permits(&self, attr: &perf_event_attr, pid: i32) -> io::Result<()> {
        let level =
            self.text("/proc/sys/kernel/perf_event_paranoid").ok().and_then(|t| t.trim().parse().ok());
        let needed = if pid == -1 { 0 } else { 1 + attr.exclude_kernel() as i32 };
        if level.unwrap_or(-1) > needed { Err(io::Error::from_raw_os_error(libc::EACCES)) } else { Ok(()) }
    }

    fn call(&self) -> io::Result<()> {
        let call = self.script.calls.get();
        self.script.calls.set(call + 1);
        match self.script.fail.get() {
            Some((number, errno)) if number == call => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn thing(&self, number: i32) -> Thing {
        self.script.open.set(self.script.open.get() + 1);
        Thing { number, script: self.script.clone() }
    }
}

fn refused(with: &Cell<Option<i32>>) -> io::Result<()> {
    with.get().map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
}

impl Kernel for ScriptedKernel {
    type Fd = Thing;
    type Map = Thing;

    fn open(&self, attr: &perf_event_attr, pid: i32, _: i32) -> io::Result<Thing> {
        self.thing_of(attr, pid, None)
    }

    fn open_group(
        &self,
        attrs: &[perf_event_attr],
        pid: i32,
        _: i32,
        leader: Option<&Thing>,
    ) -> Result<Vec<Thing>, Refusal> {
        self.call().map_err(|error| Refusal { event: None, error })?;
        let mut opened: Vec<Thing> = Vec::new();
        for attr in attrs {
            let thing = self.thing_of(attr, pid, leader.or(opened.first()));
            opened.push(thing.map_err(|error| Refusal { event: Some(opened.len()), error })?);
        }
        Ok(opened)
    }

    fn open_own_group(&self, attrs: &[perf_event_attr], places: &mut [Option<Thing>]) -> io::Result<()> {
        let opened = self.open_group(attrs, 0, -1, None).map_err(|refusal| refusal.error)?;
        places.iter_mut().zip(opened).for_each(|(place, thing)| *place = Some(thing));
        Ok(())
    }

    fn enable(&self, _: &Thing) -> io::Result<()> {
        self.call()?;
        self.script.counting.set(true);
        Ok(())
    }

    fn disable(&self, _: &Thing) -> io::Result<()> {
        self.script.counting.set(false);
        self.call()
    }

    fn reset(&self, _: &Thing) -> io::Result<()> {
        self.call()
    }

    fn read(&self, _: &Thing, words: &mut [u64]) -> io::Result<usize> {
        self.call()?;
        let script = &self.script;
        if !script.stands_still.get() && !script.starved.get() && !script.preempted.get() {
            script.slots.set(script.slots.get() + 1000);
        }
        let events = script.next.get() as usize;
        let enabled = 10 * u64::from(script.calls.get());
        let running = match () {
            () if script.starved.get() => 0,
            () if script.preempted.get() => enabled / 2,
            () => enabled,
        };
        words[..4].copy_from_slice(&[events as u64, enabled, running, script.slots.get()]);
        words[4..3 + events].fill(script.slots.get() / 4);
        Ok(3 + events)
    }

    fn map(&self, event: &Thing, _: Option<ReservedPage>) -> io::Result<Thing> {
        self.call()?;
        refused(&self.script.refuse_map)?;
        Ok(self.thing(100 + event.number))
    }

    fn text(&self, path: &str) -> io::Result<String> {
        let text = self.files.borrow().get(path).cloned().unwrap_or(Err(libc::ENOENT));
        text.map_err(io::Error::from_raw_os_error)
    }

    fn exists(&self, path: &str) -> bool {
        self.files.borrow().keys().any(|file| file == path || file.starts_with(&format!("{path}/")))
    }

    fn cpu(&self) -> u32 {
        self.script.cpu.get()
    }

    fn cpu_time(&self) -> Duration {
        self.script.cpu_time.set(self.script.cpu_time.get() + 1);
        Duration::from_millis(self.script.cpu_time.get())
    }
}

impl Mapping for Thing {
    fn page(&self) -> *const Page {
        std::ptr::null()
    }

    fn snapshot(&self) -> Option<PageSnapshot> {
        Some(PageSnapshot { index: self.index(), ..PageSnapshot::default() })
    }

    fn grants_rdpmc(&self) -> bool {
        self.script.rdpmc.get()
    }

    fn index(&self) -> u32 {
        let (leader, members) = self.script.index.get();
        if self.number == 100 { leader } else { members }
    }

    fn sequence(&self) -> u32 {
        0
    }

    fn forget(self) {}

    fn leave_zeros(self) {}
}
