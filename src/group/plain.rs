//! A perf group of plain counters, as E-cores have them: cycles lead, each other event counts the slots of one category.
#![forbid(unsafe_code)]

use super::{PATIENCE, Siblings, given_up, leader, no_counters, open_named, spin, starved, stood_still};
use crate::detect::Pmu;
use crate::detect::blockers::{Attempt, explain};
use crate::error::Result;
use crate::model::e_cores::EVENTS;
use crate::model::perf_metrics::CYCLES;
use crate::options::{Options, Target};
use crate::read::{MOST_COUNTERS, PlainCounters, PlainCounts};
use crate::sys::Kernel;
use crate::sys::group_read;

/// An open group.
#[derive(Debug)]
pub(crate) struct PlainGroup<K: Kernel> {
    kernel: K,
    _siblings: Siblings<K::Fd>,
    leader: K::Fd,
    options: Options,
    /// Slots per cycle.
    width: u64,
}

impl<K: Kernel> PlainGroup<K> {
    /// Opens the events of this PMU, with these encodings, starts them, and proves that they count.
    pub fn open(
        kernel: K,
        pmu: &Pmu,
        encodings: [u64; EVENTS.len()],
        options: &Options,
    ) -> Result<PlainGroup<K>> {
        let mut attr = leader(pmu, CYCLES.config, options);
        attr.read_format = group_read::GROUP;
        let mut members = vec![(CYCLES.name, attr)];
        attr.set_disabled(0);
        for (name, encoding) in EVENTS.iter().zip(encodings) {
            attr.config = encoding;
            members.push((*name, attr));
        }
        let mut opened = open_named(&kernel, options, &members, None)?;
        let siblings = Siblings::new(opened.split_off(1));
        let leader = opened.remove(0);
        kernel.enable(&leader).map_err(|e| explain(&kernel, options, Attempt::Other("ioctl ENABLE"), &e))?;
        let width = pmu.model.slots_per_cycle.into();
        let group = PlainGroup { kernel, _siblings: siblings, leader, options: *options, width };
        group.prove(pmu).inspect_err(|_| group.stop())?;
        Ok(group)
    }

    /// As far as this thread can: the group gets its turn if it is on such a core.
    fn prove(&self, pmu: &Pmu) -> Result<()> {
        let begun = self.kernel.cpu_time();
        let (mut last, mut stands_still) = (self.counts()?, false);
        while self.options.target == Target::This && pmu.covers(self.kernel.cpu()) {
            spin();
            let now = self.counts()?;
            if now.slots > 0 {
                break;
            }
            stands_still |= stood_still((last.slots, last.time), (now.slots, now.time));
            last = now;
            if self.kernel.cpu_time() >= begun + PATIENCE {
                return Err(if stands_still { no_counters() } else { starved() });
            }
        }
        Ok(())
    }

    /// Before it is closed: a forked child that has copies of the descriptors does not keep it on the counters.
    pub fn stop(&self) {
        // One that is not there any more counts nothing.
        let _ = self.kernel.disable(&self.leader);
    }
}

impl<K: Kernel> PlainCounters for PlainGroup<K> {
    fn counts(&self) -> Result<PlainCounts> {
        let mut words = [0; group_read::GROUP_HEAD + 1 + EVENTS.len()];
        let got = self
            .kernel
            .read(&self.leader, &mut words)
            .map_err(|e| explain(&self.kernel, &self.options, Attempt::Other("read"), &e))?;
        let (time, values) = group_read::group(&words[..got], 1 + EVENTS.len()).ok_or_else(given_up)?;
        let mut counter = [0; MOST_COUNTERS];
        counter[..EVENTS.len()].copy_from_slice(&values[1..]);
        Ok(PlainCounts { time, slots: values[0].saturating_mul(self.width), counter })
    }

    fn counts_itself(&self) -> bool {
        self.options.target == Target::This
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TD_ENOTCOUNTING;
    use crate::model;
    use crate::sys::scripted::Scripted;

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

    fn open(kernel: &Scripted) -> Result<PlainGroup<Scripted>> {
        PlainGroup::open(kernel.clone(), &pmu(), [0xc2, 0x71, 0x74], &Options::default())
    }

    #[test]
    fn slots_are_cycles_times_width() {
        let kernel = Scripted::sapphire_rapids();
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
        let kernel = Scripted::sapphire_rapids();
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
        let kernel = Scripted::sapphire_rapids();
        kernel.starve();
        kernel.run_on(4);
        assert_eq!(open(&kernel).err().unwrap().code(), TD_ENOTCOUNTING);
        kernel.run_on(0);
        assert!(open(&kernel).is_ok());
        let still = Scripted::sapphire_rapids();
        still.stand_still();
        still.run_on(4);
        assert_eq!(open(&still).err().unwrap().code(), -libc::ENODEV);
        let preempted = Scripted::sapphire_rapids();
        preempted.run_in_the_kernel_alone();
        preempted.run_on(4);
        assert_eq!(open(&preempted).err().unwrap().code(), TD_ENOTCOUNTING);
    }
}
