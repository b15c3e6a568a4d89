//! The perf group of SLOTS, which leads, and the metric events.
//!
//! The order is what the kernel's driver demands (kernel-facts, rules 2 and 3, and B.6): the leader is
//! opened disabled, all siblings join, then the group is enabled, then reset while it runs. The leader
//! is closed last, since metric events die with it.
#![forbid(unsafe_code)]

use super::{
    Rdpmc, Siblings, given_up, leader, no_counters, open_named, spin, starved, stood_still, user_access,
    was_on_always,
};
use crate::detect::Pmu;
use crate::detect::blockers::{RefusedCall, explain};
use crate::error::{Error, Reason, Result};
use crate::model::perf_metrics::{CYCLES, METRICS, MOST_MOVED, MOST_SLOTS_PER_CYCLE, SLOTS, metrics_of};
use crate::options::{Options, Target};
use crate::read::{
    Access, FAST, GroupCounts, METRICS_INDEX, MetricsCounters, PageSchedule, Reader, SLOTS_INDEX, Snapshot,
    snapshot,
};
use crate::registers::CATEGORIES;
use crate::sys::group_read;
use crate::sys::memory::ReservedPage;
use crate::sys::page::Times;
use crate::sys::{Kernel, Mapping, fault, rseq, thread};
use std::io;
use std::time::Duration;

/// An open group. Fields are dropped in this order: the leader goes last.
#[derive(Debug)]
pub(crate) struct Group<K: Kernel> {
    kernel: K,
    /// The leader's control page: RDPMC needs it, and its sequence number counts how often the registers
    /// are saved and restored. Inherited events cannot be mapped.
    map: Option<K::Map>,
    siblings: Siblings<K::Fd>,
    /// How many events there are, the leader included.
    events: usize,
    leader: K::Fd,
    options: Options,
    /// The registers can be seen: they are this thread's, and RDPMC was granted.
    visible: bool,
    access: Access,
    /// How often RDPMC had faulted in this process before the group was opened.
    faults: u64,
    /// This thread's descriptor of restartable sequences.
    rseq: Option<*mut u64>,
    /// RDPMC of these registers does not fault on any CPU of this machine.
    everywhere: bool,
    /// A sibling behind the metric events counts cycles: no more than this many slots pass in each.
    slots_per_cycle: Option<u64>,
    /// How many siblings, behind those, are in general-purpose counters beside the registers, and their pages, if RDPMC reads them.
    moved: usize,
    beside: [Option<K::Map>; MOST_MOVED],
}

impl<K: Kernel> Group<K> {
    /// Opens the events of `level` for the target, starts them, and proves that they count, within so much CPU time. The leader's
    /// control page is mapped at `place`.
    pub fn open(
        kernel: K,
        pmu: &Pmu,
        level: u32,
        options: &Options,
        place: Option<ReservedPage>,
        patience: Duration,
    ) -> Result<(Group<K>, Option<Reason>)> {
        let faults = fault::count();
        let mut attr = leader(pmu, SLOTS.config, options);
        let rseq = rseq::descriptor();
        let leader = open_named(&kernel, options, &[(SLOTS.name, attr)], None)?.remove(0);

        let mapped = (!options.inherit).then(|| kernel.map(&leader, place)).transpose();
        let map = match mapped {
            Ok(map) => map,
            Err(_) if options.no_rdpmc => None,
            Err(refusal) => return Err(explain(&kernel, options, RefusedCall::Map, &refusal)),
        };
        let granted = map.as_ref().is_some_and(Mapping::grants_rdpmc);
        let rdpmc = Rdpmc::new(options, pmu, granted, rseq.is_some());
        let visible = rdpmc.visible;

        attr.set_disabled(0);
        // where the registers cannot be seen, cycles tell how many slots can have passed (nothing bounds what
        // is inherited)
        let slots_per_cycle = (!visible && !options.inherit).then(|| match pmu.model.slots_per_cycle {
            0 => MOST_SLOTS_PER_CYCLE,
            width => width.into(),
        });
        let mut members = Vec::with_capacity(METRICS.len() + 1);
        for event in metrics_of(level).iter().chain(slots_per_cycle.map(|_| &CYCLES)) {
            attr.config = event.config;
            // any member of a group can read it whole: the first sibling does, the leader alone is cheaper
            attr.read_format = if members.is_empty() { group_read::GROUP } else { group_read::TIMES };
            members.push((event.name, attr));
        }
        for moved in pmu.model.moved() {
            attr.config = moved.event.config;
            members.push((moved.event.name, attr));
        }
        let siblings = Siblings::new(open_named(&kernel, options, &members, Some(&leader))?);
        let mut group = Group {
            kernel,
            map,
            siblings,
            events: 1 + members.len(),
            leader,
            options: *options,
            visible,
            access: Access::by_read(options),
            faults,
            rseq,
            everywhere: pmu.cpus.is_none(),
            slots_per_cycle,
            moved: pmu.model.moved().len(),
            beside: [const { None }; MOST_MOVED],
        };
        if visible {
            group.map_beside()?;
        }
        group.start()?;
        let why = rdpmc.why_not(options, || user_access::refusal(&group.kernel, pmu));
        if why.is_none() {
            group.access = Access::Rdpmc;
        }
        group.prove(pmu, patience).inspect_err(|_| group.stop())?;
        Ok((group, why))
    }

    /// In a forked child: the mappings are not there any more.
    pub fn forget_mappings(&mut self) {
        for map in self.map.take().into_iter().chain(self.beside.iter_mut().filter_map(Option::take)) {
            map.forget();
        }
    }

    /// What a call that was interrupted may look at yet is not unmapped, but becomes zeros.
    pub fn leave_zeros(&mut self) {
        self.beside.iter_mut().filter_map(Option::take).for_each(Mapping::leave_zeros);
    }

    /// The pages of what counts beside the registers.
    fn map_beside(&mut self) -> Result<()> {
        let first = self.events - 1 - self.moved;
        for (place, sibling) in self.beside.iter_mut().zip(self.siblings.iter().skip(first)) {
            let map = self.kernel.map(sibling, None);
            *place = Some(map.map_err(|e| explain(&self.kernel, &self.options, RefusedCall::Map, &e))?);
        }
        Ok(())
    }

    /// Whether it was on the counters all the while since it was opened.
    pub fn had_its_turn_always(&self) -> Result<bool> {
        self.counts().map(|counts| was_on_always(self.options.target, counts.time))
    }

    /// Whether RDPMC of these registers may have faulted since the group was opened.
    pub fn may_have_faulted(&self) -> bool {
        self.visible && fault::count() != self.faults
    }

    /// Before it is closed: a forked child that has copies of the descriptors does not keep it on the counters.
    pub fn stop(&self) {
        // One that is not there any more counts nothing.
        let _ = self.kernel.disable(&self.leader);
    }

    fn explained<T>(&self, call: &str, result: io::Result<T>) -> Result<T> {
        result.map_err(|e| explain(&self.kernel, &self.options, RefusedCall::Other(call), &e))
    }

    fn start(&self) -> Result<()> {
        self.explained("ioctl ENABLE", self.kernel.enable(&self.leader))?;
        self.explained("ioctl RESET", self.kernel.reset(&self.leader))
    }

    /// Lets the group count, and checks that what counts is SLOTS and PERF_METRICS. Other threads and
    /// CPUs cannot be made to run: of those, that the group can be read is all that is checked.
    fn prove(&mut self, pmu: &Pmu, patience: Duration) -> Result<()> {
        let start = self.counts()?;
        if self.options.target != Target::This {
            return Ok(());
        }
        let (mut last, mut stands_still) = (start, false);
        let begun = self.kernel.cpu_time();
        loop {
            spin();
            let index = self.map.as_ref().filter(|_| self.visible).map(Mapping::index);
            match index {
                Some(SLOTS_INDEX) if self.prove_members()? => break,
                Some(SLOTS_INDEX) | Some(0) => {}
                Some(other) => return Err(junk(SLOTS.name, other)),
                None => {}
            }
            let now = self.counts()?;
            let ran = now.time.running > start.time.running;
            if index.is_none() && ran && now.slots > start.slots && now.category[..4].iter().any(|c| *c > 0) {
                break;
            }
            if !ran && !pmu.covers(self.kernel.cpu()) {
                return Ok(()); // on an E-core: it will count when the thread gets to a P-core
            }
            stands_still |= stood_still((last.slots, last.time), (now.slots, now.time));
            last = now;
            if self.kernel.cpu_time() >= begun + patience {
                return Err(if stands_still { no_counters() } else { starved() });
            }
        }
        Ok(())
    }

    /// Whether every metric event reads PERF_METRICS; not, for now, if the group has just lost its turn.
    fn prove_members(&self) -> Result<bool> {
        // (what counts beside the registers follows)
        let others = self.moved + usize::from(self.slots_per_cycle.is_some());
        let metrics = self.siblings.iter().take(self.events - 1 - others);
        for (event, sibling) in METRICS.iter().zip(metrics) {
            let map = self
                .kernel
                .map(sibling, None)
                .map_err(|e| explain(&self.kernel, &self.options, RefusedCall::Map, &e))?;
            match map.index() {
                METRICS_INDEX => {}
                0 => return Ok(false),
                other => return Err(junk(event.name, other)),
            }
        }
        Ok(true)
    }
}

pub(crate) fn junk(event: &str, index: u32) -> Error {
    Error::errno(
        libc::ENODEV,
        format!(
            "'{event}' opened but counts in counter {:#x}, which is not PERF_METRICS or its SLOTS",
            index.wrapping_sub(1)
        ),
    )
    .why("this kernel does not know this CPU's topdown counters")
    .remedy("use a newer one")
}

impl<K: Kernel> MetricsCounters for Group<K> {
    fn counts(&self) -> Result<GroupCounts> {
        let mut words = [0; group_read::GROUP_HEAD + 1 + CATEGORIES + 1 + MOST_MOVED];
        let group = self.siblings.iter().next().expect("a group has siblings");
        let got = self.explained("read", self.kernel.read(group, &mut words))?;
        let (time, values) = group_read::group(&words[..got], self.events).ok_or_else(given_up)?;
        let (slots, values) = (values[0], &values[1..]);
        let (values, moved) = values.split_at(values.len() - self.moved);
        let mut beside = [0; MOST_MOVED];
        beside[..moved.len()].copy_from_slice(moved);
        let (metrics, cycles) = values.split_at(values.len() - usize::from(self.slots_per_cycle.is_some()));
        let mut category = [0; CATEGORIES];
        category[..metrics.len()].copy_from_slice(metrics);
        let most = self.slots_per_cycle.map(|width| cycles[0].saturating_mul(width));
        Ok(GroupCounts { time, slots, most, category, beside })
    }

    fn slots(&self) -> Result<(u64, Times)> {
        let mut words = [0; 3];
        let got = self.explained("read", self.kernel.read(&self.leader, &mut words))?;
        group_read::alone(&words[..got]).ok_or_else(given_up)
    }

    fn registers(&self, known: Times) -> Option<Snapshot> {
        let map = self.map.as_ref().filter(|_| self.visible)?;
        for _ in 0..16 {
            let page = map.snapshot()?;
            let snapshot = snapshot(map, &page, &self.beside, self.rseq, known);
            if snapshot.is_some() {
                return snapshot;
            }
        }
        None
    }

    fn scheduled(&self) -> PageSchedule {
        let Some(map) = &self.map else { return PageSchedule::Unknown };
        match map.snapshot() {
            Some(page) if page.index == SLOTS_INDEX => PageSchedule::In(page.sequence),
            Some(page) => PageSchedule::Out(page.sequence),
            None => PageSchedule::Out(map.sequence()), // it changes too fast to be read
        }
    }

    fn access(&self) -> Access {
        self.access
    }

    fn reader(&self) -> Option<Reader> {
        let rseq = self.rseq.filter(|_| self.access == Access::Rdpmc && FAST())?;
        Some(Reader { thread: thread::pointer(), rseq, everywhere: self.everywhere })
    }

    fn beside(&self) -> usize {
        self.moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TD_ENOTCOUNTING;
    use crate::group::PATIENCE;
    use crate::model;
    use crate::sys::scripted::ScriptedKernel;

    fn pmu() -> Pmu {
        let model = model::at(model::SIMULATED).unwrap();
        Pmu { name: "cpu", kind: 4, model, row: model::SIMULATED, level: 2, cpus: None }
    }

    fn open(kernel: &ScriptedKernel, pmu: &Pmu) -> Result<(Group<ScriptedKernel>, Option<Reason>)> {
        Group::open(kernel.clone(), pmu, 2, &Options { no_rdpmc: true, ..Options::default() }, None, PATIENCE)
    }

    #[test]
    fn a_group_that_counts_opens_and_closes_its_leader_last() {
        let kernel = ScriptedKernel::sapphire_rapids();
        let (group, why) = open(&kernel, &pmu()).unwrap();
        assert_eq!(kernel.open_things(), 10 + 1, "leader, eight metric events, cycles, one page");
        assert!(why.unwrap().to_string().contains("TD_FLAG_NO_RDPMC"));
        drop(group);
        assert_eq!(kernel.open_things(), 0);
        assert_eq!(kernel.closed().last(), Some(&0), "the leader is descriptor 0");
    }

    #[test]
    fn whichever_call_fails_nothing_stays_open() {
        let kernel = ScriptedKernel::sapphire_rapids();
        kernel.fail(u32::MAX, 0);
        open(&kernel, &pmu()).unwrap();
        let calls = kernel.calls();
        assert!(calls > 10 + 3, "opens, page, enable, reset, reads: {calls}");
        let map = 2; // behind the thread and the leader; without RDPMC the page is a convenience
        for call in (0..calls).filter(|call| *call != map) {
            for errno in [libc::EACCES, libc::EPERM, libc::EMFILE, libc::ENOMEM, libc::EINVAL] {
                kernel.fail(call, errno);
                assert!(open(&kernel, &pmu()).is_err(), "call {call}");
                assert_eq!(kernel.open_things(), 0, "call {call}");
            }
        }
    }

    #[test]
    fn registers_other_than_slots_and_perf_metrics_are_refused() {
        for (leader, members) in [(3, 0x2000_0001), (0x4000_0001, 0x2000_0001), (0x4000_0004, 1)] {
            let kernel = ScriptedKernel::sapphire_rapids();
            kernel.grant_rdpmc();
            kernel.show_index(leader, members);
            let error =
                Group::open(kernel.clone(), &pmu(), 2, &Options::default(), None, PATIENCE).err().unwrap();
            assert_eq!(error.code(), -libc::ENODEV);
            assert!(error.to_string().contains("which is not PERF_METRICS"), "{error}");
            assert_eq!(kernel.open_things(), 0);
        }
    }

    #[test]
    fn what_does_not_count_is_not_opened() {
        let still = ScriptedKernel::sapphire_rapids();
        still.stand_still();
        assert_eq!(open(&still, &pmu()).err().unwrap().code(), -libc::ENODEV);

        let starved = ScriptedKernel::sapphire_rapids();
        starved.starve();
        assert_eq!(open(&starved, &pmu()).err().unwrap().code(), TD_ENOTCOUNTING);
        assert!(!starved.is_counting(), "a forked child may have copies of its descriptors");

        let hybrid = Pmu { cpus: Some("0-1".into()), ..pmu() };
        starved.run_on(2);
        assert!(open(&starved, &hybrid).is_ok(), "an E-core: it will count on a P-core");
        assert!(starved.is_counting());
        starved.run_on(1);
        assert_eq!(open(&starved, &hybrid).err().unwrap().code(), TD_ENOTCOUNTING);

        let preempted = ScriptedKernel::sapphire_rapids();
        preempted.run_in_the_kernel_alone();
        assert_eq!(open(&preempted, &pmu()).err().unwrap().code(), TD_ENOTCOUNTING);
    }
}
