//! A perf group of general-purpose counters. One that counts slots leads (or cycles, where none does), and each other event counts those
//! of one category.
#![forbid(unsafe_code)]

use super::jumps::{GroupTotals, Jumps};
use super::{
    MOST_SIBLINGS, Rdpmc, Siblings, given_up, leader, no_counters, open_named, spin, starved, stood_still,
    user_access, was_on_always, work_of_all_kinds,
};
use crate::detect::Pmu;
use crate::detect::blockers::{RefusedCall, explain};
use crate::error::{Error, Reason, Result};
use crate::model::perf_metrics::SLOTS;
use crate::model::slots_per_ns;
use crate::options::{Options, Target};
use crate::plan::Plan;
use crate::read::{
    Access, CountersSnapshot, Entry, FAST, MOST_COUNTERS, PlainCounters, PlainCounts, Reader,
    counters_snapshot,
};
use crate::sys::group_read;
use crate::sys::memory::ReservedPage;
use crate::sys::page::Times;
use crate::sys::records::{Records, SAMPLE_TYPE, SAMPLE_TYPE_OF_CGROUPS};
use crate::sys::{Kernel, Linux, Mapping, fault, ring, rseq, thread};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CGROUP_SWITCHES, PERF_TYPE_SOFTWARE, perf_event_attr};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An open group. Fields are dropped in this order: the leader goes last.
#[derive(Debug)]
pub(crate) struct PlainGroup<K: Kernel> {
    kernel: K,
    /// Control pages of all events, if RDPMC reads them.
    maps: Option<Maps<K::Map>>,
    siblings: Siblings<K::Fd>,
    leader: K::Fd,
    options: Options,
    /// How many events there are besides the leader that count on this PMU.
    members: usize,
    /// How many follow them that do not.
    others: usize,
    /// Slots for each that the leader counts.
    slots_each: u64,
    /// How often it was read by read(2).
    calls: AtomicU64,
    /// Of a leader whose count may jump.
    jumps: Option<Jumps>,
    access: Access,
    /// How often RDPMC had faulted in this process before the group was opened.
    faults: u64,
    /// This thread's descriptor of restartable sequences.
    rseq: Option<*mut u64>,
}

/// In place, as `Siblings` are.
#[derive(Debug)]
struct Maps<M> {
    leader: M,
    members: [Option<M>; MOST_SIBLINGS],
}

impl<M: Mapping> Maps<M> {
    fn of<K: Kernel<Map = M>>(
        kernel: &K,
        leader: &K::Fd,
        siblings: &Siblings<K::Fd>,
        place: ReservedPage,
    ) -> io::Result<Maps<M>> {
        let leader = kernel.map(leader, Some(place))?;
        let mut maps = Maps { leader, members: std::array::from_fn(|_| None) };
        for (slot, sibling) in maps.members.iter_mut().zip(siblings.iter()) {
            *slot = Some(kernel.map(sibling, None)?);
        }
        Ok(maps)
    }

    fn members(&self) -> impl Iterator<Item = &M> + Clone {
        self.members.iter().flatten()
    }
}

impl<K: Kernel> PlainGroup<K> {
    /// Opens the events of a plan on this PMU, starts them, and proves that they count. The leader's control page is mapped at
    /// `place`; without one, all is read by read(2). Returns why it is read by read(2), too, if so. After `patience`, in CPU time,
    /// a group that has not counted is given up.
    pub fn open(
        kernel: K,
        pmu: &Pmu,
        plan: &Plan,
        options: &Options,
        place: Option<ReservedPage>,
        patience: Duration,
    ) -> Result<(PlainGroup<K>, Option<Reason>)> {
        let faults = fault::count();
        let mut attr = leader(pmu, plan.leader.event.config, options);
        attr.read_format = group_read::GROUP;
        attr.set_enable_on_exec((options.on_exec && !options.off).into());
        if options.record_slots > 0 {
            writes_records(&mut attr, options, plan.slots_each);
        }
        let mut events = vec![(plan.leader.event.name, attr)];
        writes_none(&mut attr);
        attr.set_disabled(0);
        attr.set_enable_on_exec(0);
        for event in &plan.members {
            attr.config = event.config;
            attr.__bindgen_anon_3.config1 = event.config1;
            attr.set_exclude_user(event.never.into());
            attr.set_exclude_kernel((event.never || !options.kernel).into());
            events.push((event.name, attr));
        }
        if options.record_cgroups {
            events.push(("cgroup-switches", cgroup_switches(&attr)));
        }
        let rseq = rseq::descriptor();
        let place = place.filter(|_| options.target == Target::This && !options.inherit && !options.no_rdpmc);
        // (user access of a group that is read by read(2) all the same would keep its events from being chained)
        let accesses = match place {
            Some(_) if !options.kernel && rseq.is_some() => user_access::requests(&kernel, pmu),
            _ => user_access::NONE,
        };
        let (mut opened, access) =
            user_access::open(accesses, &mut events, |events| open_named(&kernel, options, events, None))?;
        let siblings = Siblings::new(opened.split_off(1));
        let leader = opened.remove(0);
        let mut maps = None;
        if let Some(place) = place.filter(|_| user_access::shows_counters(access)) {
            maps = match Maps::of(&kernel, &leader, &siblings, place) {
                Ok(maps) => Some(maps),
                Err(_) if user_access::MAY_DO_WITHOUT => None,
                Err(refusal) => return Err(explain(&kernel, options, RefusedCall::Map, &refusal)),
            };
        }
        let granted = maps.as_ref().is_some_and(|maps| maps.leader.grants_rdpmc());
        let rdpmc = Rdpmc::new(options, pmu, granted, rseq.is_some());
        if !options.on_exec && !options.off {
            let refused = |e| explain(&kernel, options, RefusedCall::Other("ioctl ENABLE"), &e);
            kernel.enable(&leader).map_err(refused)?;
        }
        let mut why = rdpmc.why_not(options, || user_access::refusal(&kernel, pmu));
        if why.is_none() && rseq.is_none() {
            why = Some(
                Reason::new("read by read(2)")
                    .why("this C library does not register restartable sequences, in which several counters are read")
                    .remedy("glibc 2.35 or later does"),
            );
        }
        if why.is_none() && !FAST() {
            why = Some(Reason::new("read by read(2)").why("td_read's fast path needs AVX and BMI2"));
        }
        let group = PlainGroup {
            kernel,
            maps,
            siblings,
            leader,
            options: *options,
            members: plan.members.len(),
            others: usize::from(options.record_cgroups),
            slots_each: plan.slots_each,
            calls: AtomicU64::new(0),
            jumps: (plan.leader.event == SLOTS).then(|| Jumps::new(slots_per_ns(pmu.model.slots_per_cycle))),
            access: if why.is_none() { Access::Rdpmc } else { Access::by_read(options) },
            faults,
            rseq,
        };
        group.prove(pmu, plan, patience).inspect_err(|_| group.stop())?;
        Ok((group, why))
    }

    /// Another group of the same thread's, of the events that these ask for, switched off, and read as this one is if its leader's
    /// control page gets a place. It takes no memory.
    pub fn beside(
        &self,
        attrs: &[perf_event_attr],
        slots_each: u64,
        place: Option<ReservedPage>,
    ) -> Option<PlainGroup<K>>
    where
        K: Clone,
    {
        let mut places = std::array::from_fn::<_, { 1 + MOST_SIBLINGS }, _>(|_| None);
        self.kernel.open_own_group(attrs, &mut places).ok()?;
        let [leader, siblings @ ..] = places;
        let (leader, siblings) = (leader?, Siblings(siblings));
        let place = place.filter(|_| self.access == Access::Rdpmc);
        let maps = place.and_then(|place| Maps::of(&self.kernel, &leader, &siblings, place).ok());
        let access = if maps.is_some() { self.access } else { Access::by_read(&self.options) };
        Some(PlainGroup {
            kernel: self.kernel.clone(),
            maps,
            siblings,
            leader,
            options: self.options,
            members: attrs.len() - 1,
            others: 0,
            calls: Default::default(),
            slots_each,
            jumps: None,
            access,
            faults: self.faults,
            rseq: self.rseq,
        })
    }

    /// The CPU that runs this.
    pub fn cpu(&self) -> u32 {
        self.kernel.cpu()
    }

    /// Whether a group of this thread's was on the counters whenever it was enabled. (It never was, if the thread has not yet run on a
    /// core that has them.)
    pub fn had_its_turn_always(&self) -> Result<bool> {
        self.counts().map(|counts| was_on_always(self.options.target, counts.time))
    }

    /// As far as this thread can: the group gets its turn if it is on such a core, slots pass, no event is where it cannot
    /// count, and those that a hypervisor may withhold count something.
    fn prove(&self, pmu: &Pmu, plan: &Plan, patience: Duration) -> Result<()> {
        let begun = self.kernel.cpu_time();
        let (mut last, mut stands_still) = (self.counts()?, false);
        while self.options.target == Target::This && pmu.covers(self.kernel.cpu()) {
            if plan.unproven {
                work_of_all_kinds()
            } else {
                spin()
            }
            let now = self.counts()?;
            let silent = plan
                .members
                .iter()
                .zip(now.counter)
                .find(|(event, n)| plan.unproven && *n == 0 && !event.may_be_silent);
            if now.slots > 0 && silent.is_none() && self.are_where_they_count(plan)? {
                break;
            }
            stands_still |= stood_still((last.slots, last.time), (now.slots, now.time));
            last = now;
            if self.kernel.cpu_time() >= begun + patience {
                return Err(match silent {
                    Some((event, _)) if now.slots > 0 => withheld(event.name),
                    _ if stands_still => no_counters(),
                    _ => starved(),
                });
            }
        }
        Ok(())
    }

    /// Whether each event that only one counter counts is in that one, as far as pages tell; not, for now, if the group has just
    /// lost its turn.
    fn are_where_they_count(&self, plan: &Plan) -> Result<bool> {
        let Some(maps) = &self.maps else { return Ok(true) };
        for (event, map) in plan.members.iter().zip(maps.members()) {
            let Some(counter) = event.counter else { continue };
            match map.index() {
                index if index == counter + 1 => {}
                0 if maps.leader.grants_rdpmc() => return Ok(false),
                // (a kernel that shows SLOTS knows the core, and where its events count)
                0 if plan.leader.event == SLOTS => {}
                0 => return Err(unplaced(event.name)),
                other => return Err(misplaced(event.name, other - 1)),
            }
        }
        Ok(true)
    }

    /// In a forked child: the mappings are not there any more.
    pub fn forget_mappings(&mut self) {
        if let Some(Maps { leader, members }) = self.maps.take() {
            leader.forget();
            members.into_iter().flatten().for_each(Mapping::forget);
        }
    }

    /// Gives the mappings up, and leaves pages of zeros: a call that was interrupted may look at them yet.
    pub fn leave_zeros(&mut self) {
        if let Some(Maps { leader: _, members }) = self.maps.take() {
            members.into_iter().flatten().for_each(Mapping::leave_zeros);
        }
    }

    /// Whether RDPMC of these counters may have faulted since the group was opened, of which nothing is left to be said.
    pub fn may_have_faulted(&self) -> bool {
        self.access == Access::Rdpmc && !user_access::MAY_DO_WITHOUT && self.was_refused()
    }

    fn was_refused(&self) -> bool {
        fault::count() != self.faults
    }

    /// Whether user space reads the counters, as far as is known now.
    fn in_user_space(&self) -> bool {
        self.access == Access::Rdpmc && !(user_access::MAY_DO_WITHOUT && self.was_refused())
    }

    /// What the leader's page says, if RDPMC reads the group: its sequence number, and whether the group is on this CPU.
    pub fn scheduled(&self) -> Option<(u32, bool)> {
        let leader = &self.maps.as_ref().filter(|_| self.access == Access::Rdpmc)?.leader;
        let sequence = leader.sequence();
        Some((sequence, leader.index() != 0))
    }

    /// The counts without the jumps of the slots.
    fn settled(&self, counts: PlainCounts) -> PlainCounts {
        let Some(jumps) = &self.jumps else { return counts };
        let told = told(counts.slots, &counts.counter, counts.time.running);
        let jumped = jumps.judge(&told);
        let slots_maybe_over = jumps.note(&told, jumped);
        PlainCounts { slots: counts.slots.wrapping_sub(jumped.by), slots_maybe_over, ..counts }
    }

    /// The same of a snapshot. None: there may be a jump, for which read(2) tells the time, too (the page's clock may be coarse).
    fn settle(&self, snapshot: &mut CountersSnapshot) -> Option<()> {
        let Some(jumps) = &self.jumps else { return Some(()) };
        let [slots, named @ ..]: [u64; 1 + NAMED] = std::array::from_fn(|k| {
            let counter = &snapshot.counter[k];
            counter.base.wrapping_add(counter.raw)
        });
        let told = told(slots, &named, snapshot.clock.zero.running.wrapping_add(snapshot.ns));
        let jumped = jumps.goes_on(&told)?;
        jumps.note(&told, jumped);
        snapshot.counter[0].base = snapshot.counter[0].base.wrapping_sub(jumped.by);
        Some(())
    }

    fn read(&self, event: &K::Fd, words: &mut [u64]) -> Result<usize> {
        let read = self.kernel.read(event, words);
        read.map_err(|e| explain(&self.kernel, &self.options, RefusedCall::Other("read"), &e))
    }

    /// From now on it counts, or not; what it has counted stays.
    pub fn switch(&self, on: bool) -> Result<()> {
        let (done, name) = match on {
            true => (self.kernel.enable(&self.leader), "ENABLE"),
            false => (self.kernel.disable(&self.leader), "DISABLE"),
        };
        done.map_err(|e| explain(&self.kernel, &self.options, RefusedCall::Other(name), &e))
    }

    /// How many events a reading tells of.
    fn events(&self) -> usize {
        1 + self.members + self.others
    }

    /// Before it is closed: a forked child that has copies of the descriptors does not keep it on the counters.
    pub fn stop(&self) {
        // One that is not there any more counts nothing.
        let _ = self.kernel.disable(&self.leader);
    }
}

impl PlainGroup<Linux> {
    /// The buffer into which the kernel writes this group's records (`Options::record_slots`).
    pub fn records(&self) -> Result<Records> {
        let refused = |refusal: io::Error| {
            let errno = refusal.raw_os_error().unwrap_or(libc::EIO);
            Error::errno(errno, format!("no buffer for the kernel's records: {refusal}"))
                .remedy("raise kernel.perf_event_mlock_kb or the limit of locked memory (ulimit -l)")
        };
        let records = Records::map(&self.leader).map_err(refused)?;
        for other in self.siblings.iter().skip(self.members) {
            ring::write_into(other, &self.leader).map_err(refused)?;
        }
        Ok(records)
    }

    /// What a record's values are counts of.
    pub fn counts_of(&self, time: Times, values: &[u64]) -> Result<PlainCounts> {
        let (Some((leader, members)), true) = (values.split_first(), values.len() == self.events()) else {
            return Err(Error::invalid("the record is of another group"));
        };
        let mut counter = [0; MOST_COUNTERS];
        counter[..self.members].copy_from_slice(&members[..self.members]);
        let slots = leader.saturating_mul(self.slots_each);
        let Some(jumps) = &self.jumps else {
            return Ok(PlainCounts { time, slots, counter, ..PlainCounts::default() });
        };
        let jumped = jumps.judge_all(&told(slots, &counter, time.running));
        let slots = slots.wrapping_sub(jumped.by);
        Ok(PlainCounts { time, slots, slots_maybe_over: jumped.maybe_by, counter, ..PlainCounts::default() })
    }
}

/// So many counters of different categories.
const NAMED: usize = 3;

/// What a group that SLOTS leads has told. (Each tree of P-cores begins with the counters of three different categories.)
fn told(slots: u64, counter: &[u64], running_ns: u64) -> GroupTotals {
    GroupTotals {
        slots,
        named: counter[..NAMED].iter().fold(0, |sum, more| sum.saturating_add(*more)),
        running_ns,
    }
}

/// The leader samples: each time with what the group has counted for the thread that it interrupts. Its records tell of threads'
/// beginnings, ends and names, too. In all events `sample_type` is the same, as inherited groups have it.
fn writes_records(attr: &mut perf_event_attr, options: &Options, slots_each: u64) {
    attr.__bindgen_anon_1.sample_period = (u64::from(options.record_slots) / slots_each.max(1)).max(1);
    attr.set_sample_id_all(1);
    attr.set_task(1);
    if options.record_cgroups {
        attr.sample_type = SAMPLE_TYPE_OF_CGROUPS;
        attr.set_cgroup(1);
        return;
    }
    attr.sample_type = SAMPLE_TYPE;
    attr.set_comm(1);
    attr.set_comm_exec(1);
}

/// The event that happens when a CPU changes to another cgroup's task, as a member of a group that writes records. It happens in the kernel.
fn cgroup_switches(member: &perf_event_attr) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CGROUP_SWITCHES.into(),
        ..*member
    };
    attr.__bindgen_anon_1.sample_period = 1;
    attr.__bindgen_anon_3.config1 = 0;
    attr.set_exclude_user(0);
    attr.set_exclude_kernel(0);
    attr
}

/// What follows the leader does not sample.
fn writes_none(attr: &mut perf_event_attr) {
    attr.__bindgen_anon_1.sample_period = 0;
    attr.set_task(0);
    attr.set_comm(0);
    attr.set_comm_exec(0);
    attr.set_cgroup(0);
}

pub(crate) fn withheld(event: &str) -> Error {
    Error::errno(libc::ENODEV, format!("slots pass, but '{event}' counts none"))
        .why("the hypervisor does not let this virtual machine count the event")
        .remedy("measure on the host")
}

pub(crate) fn misplaced(event: &str, counter: u32) -> Error {
    let what = format!("'{event}' opened but counts in counter {counter}, where it counts something else");
    Error::errno(libc::ENODEV, what)
        .why("this kernel does not know this CPU's counters")
        .remedy("use a newer one, or measure level 1")
}

fn unplaced(event: &str) -> Error {
    Error::errno(libc::ENODEV, format!("nobody can tell in which counter '{event}' counts"))
        .why("the kernel shows no SLOTS, so it may not know this CPU, and does not grant RDPMC")
        .remedy("write 1 to the PMU's rdpmc file, or measure level 1")
}

impl<K: Kernel> PlainCounters for PlainGroup<K> {
    fn counts(&self) -> Result<PlainCounts> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut words = [0; group_read::GROUP_HEAD + 2 + MOST_COUNTERS];
        let got = self.read(&self.leader, &mut words)?;
        let (time, values) = group_read::group(&words[..got], self.events()).ok_or_else(given_up)?;
        let mut counter = [0; MOST_COUNTERS];
        counter[..self.members].copy_from_slice(&values[1..][..self.members]);
        let slots = values[0].saturating_mul(self.slots_each);
        Ok(self.settled(PlainCounts { time, slots, counter, ..PlainCounts::default() }))
    }

    fn last_counts(&self) -> Result<PlainCounts> {
        let whole = self.counts();
        if whole.is_ok() || self.options.inherit {
            return whole;
        }
        // each event for itself, which then is a group of one (for which old kernels want room as for the whole)
        let alone = |event| {
            let mut words = [0; group_read::GROUP_HEAD + 1 + MOST_COUNTERS];
            let got = self.read(event, &mut words)?;
            let (time, values) = group_read::group(&words[..got], 1).ok_or_else(given_up)?;
            Ok((time, values[0]))
        };
        let (time, slots) = alone(&self.leader)?;
        let mut counter = [0; MOST_COUNTERS];
        for (count, event) in counter.iter_mut().zip(self.siblings.iter()) {
            *count = alone(event)?.1;
        }
        let slots = slots.saturating_mul(self.slots_each);
        Ok(self.settled(PlainCounts { time, slots, counter, ..PlainCounts::default() }))
    }

    fn counts_itself(&self) -> bool {
        self.options.target == Target::This
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn snapshot(&self, entry: &Entry, out: &mut CountersSnapshot) -> Option<()> {
        let maps = self.maps.as_ref().filter(|_| self.in_user_space())?;
        (out.count, out.is_level_1) = (self.members, false);
        (out.slots_each, out.slots_away, out.is_second, out.stretches) = (self.slots_each, 0, false, 0);
        counters_snapshot(&maps.leader, maps.members(), self.rseq?, entry, out)?;
        if out.goes_with_entry { self.settle(out) } else { Some(()) }
    }

    fn reader(&self) -> Option<(Reader, usize)> {
        let rseq = self.rseq.filter(|_| self.in_user_space() && FAST())?;
        // (`everywhere` is for SLOTS and PERF_METRICS: readings of these look at the page first)
        Some((Reader { thread: thread::pointer(), rseq, everywhere: false }, self.members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TD_ENOTCOUNTING;
    use crate::group::PATIENCE;
    use crate::model;
    use crate::model::{Event, INTEL_CYCLES};
    use crate::sys::scripted::ScriptedKernel;

    fn pmu() -> Pmu {
        let (row, model) = model::of_e_cores(&crate::sys::cpu::Identity {
            vendor: "GenuineIntel".into(),
            family: 6,
            model: 0x97,
            ..Default::default()
        })
        .unwrap();
        let cpus = Some("4-7".into());
        Pmu { name: "cpu_atom", kind: 10, model, row, level: 1, cpus }
    }

    fn plan() -> Plan {
        let members = [("topdown-retiring", 0xc2), ("topdown-fe-bound", 0x71), ("topdown-be-bound", 0x74)];
        let members = members.map(|(name, config)| Event::new(name, config)).to_vec();
        Plan {
            leader: INTEL_CYCLES,
            slots_each: 5,
            members,
            unproven: false,
            no_deeper: crate::model::NoDeeper::default(),
        }
    }

    fn open(kernel: &ScriptedKernel) -> Result<PlainGroup<ScriptedKernel>> {
        let opened = PlainGroup::open(kernel.clone(), &pmu(), &plan(), &Options::default(), None, PATIENCE);
        opened.map(|(group, _)| group)
    }

    #[test]
    fn slots_are_cycles_times_width() {
        let kernel = ScriptedKernel::sapphire_rapids();
        kernel.run_on(4);
        let events = open(&kernel).unwrap();
        let counts = events.counts().unwrap();
        // the scripted kernel: each sibling counts a quarter of what its leader does
        let [retiring, frontend, backend] = counts.counter[..3] else { unreachable!() };
        assert_eq!(counts.slots, retiring * 4 * 5);
        assert_eq!((frontend, backend), (retiring, retiring));
        drop(events);
        assert_eq!(kernel.open_things(), 0);
    }

    #[test]
    fn whichever_call_fails_nothing_stays_open() {
        let kernel = ScriptedKernel::sapphire_rapids();
        kernel.run_on(4);
        kernel.fail(u32::MAX, 0);
        open(&kernel).unwrap();
        for call in 0..kernel.calls() {
            kernel.fail(call, libc::EMFILE);
            assert!(open(&kernel).is_err(), "call {call}");
            assert_eq!(kernel.open_things(), 0, "call {call}");
        }
    }

    #[test]
    fn who_gets_no_turn_is_told_unless_it_runs_on_a_p_core() {
        let kernel = ScriptedKernel::sapphire_rapids();
        kernel.starve();
        kernel.run_on(4);
        assert_eq!(open(&kernel).err().unwrap().code(), TD_ENOTCOUNTING);
        kernel.run_on(0);
        assert!(open(&kernel).is_ok());
        let still = ScriptedKernel::sapphire_rapids();
        still.stand_still();
        still.run_on(4);
        assert_eq!(open(&still).err().unwrap().code(), -libc::ENODEV);
        let preempted = ScriptedKernel::sapphire_rapids();
        preempted.run_in_the_kernel_alone();
        preempted.run_on(4);
        assert_eq!(open(&preempted).err().unwrap().code(), TD_ENOTCOUNTING);
    }
}
