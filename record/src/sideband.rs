//! What the kernel tells of threads: mappings, exec, new threads and ended ones. One event per thread and CPU, which counts nothing
//! and goes to all that the thread starts; all of a CPU share a ring. Or one per CPU, of all threads.
#![forbid(unsafe_code)]

use crate::event::{CLOCK, TaskEvent};
use crate::records::SIDEBAND_TYPE;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use topdown_seam::group_read;
use topdown_seam::records::{Records, TaskRecord};

const RING_PAGES: usize = 16;
/// Of all threads, if so much may be locked.
const RING_PAGES_OF_ALL: usize = 64;

/// The events of all CPUs.
#[derive(Debug, Default)]
pub(crate) struct Sideband {
    online: Vec<u32>,
    cpus: Vec<OfCpu>,
}

#[derive(Debug)]
struct OfCpu {
    cpu: u32,
    records: Records,
    /// The first has the ring of `records`.
    events: Vec<TaskEvent>,
    /// The first one's thread has ended, with all that it started: poll(2) would return at once for ever. The ring goes on.
    ended: bool,
    /// For how long the first had been enabled when it was last looked at.
    enabled: u64,
}

fn attr() -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY.into(),
        sample_type: SIDEBAND_TYPE,
        clockid: CLOCK,
        read_format: group_read::TIMES,
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr
}

impl Sideband {
    /// On these CPUs; of no thread yet.
    pub fn new(cpus: Vec<u32>) -> Sideband {
        Sideband { online: cpus, ..Sideband::default() }
    }

    /// Also of these threads and whatever they start. Those that have ended are left out.
    ///
    /// # Errors
    /// The kernel's.
    pub fn follow(&mut self, tids: &[i32]) -> io::Result<()> {
        let ended = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        for cpu in &self.online {
            for tid in tids {
                let event = match TaskEvent::open(attr(), *tid, *cpu as i32, None) {
                    Err(error) if ended(&error) => continue,
                    opened => opened?,
                };
                match self.cpus.iter_mut().find(|of_cpu| of_cpu.cpu == *cpu) {
                    None => {
                        let records = Records::of_pages(&event, RING_PAGES)?;
                        self.cpus.push(OfCpu {
                            cpu: *cpu,
                            records,
                            events: vec![event],
                            ended: false,
                            enabled: 0,
                        });
                    }
                    Some(of_cpu) => {
                        event.set_output(&of_cpu.events[0])?;
                        of_cpu.events.push(event);
                    }
                }
            }
        }
        Ok(())
    }

    /// Of all threads on one CPU more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(&mut self, cpu: u32) -> io::Result<()> {
        let mut attr = attr();
        attr.set_inherit(0);
        // (it is read at each burst; a ring that fills sooner wakes the recorder)
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = 1 << 14;
        let event = TaskEvent::open(attr, -1, cpu as i32, None)?;
        let most = Records::of_pages(&event, RING_PAGES_OF_ALL);
        let records = most.or_else(|_| Records::of_pages(&event, RING_PAGES))?;
        self.cpus.push(OfCpu { cpu, records, events: vec![event], ended: false, enabled: 0 });
        Ok(())
    }

    /// Whether a CPU's event was there all the time since the last look: one whose CPU goes offline stays away when it comes back.
    pub fn was_there(&mut self, cpu: u32) -> bool {
        self.cpus.iter_mut().filter(|of_cpu| of_cpu.cpu == cpu).any(|of_cpu| {
            let enabled = of_cpu.events[0].times().map_or(0, |times| times.enabled);
            std::mem::replace(&mut of_cpu.enabled, enabled) < enabled
        })
    }

    /// Those with an event.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().map(|of_cpu| of_cpu.cpu)
    }

    /// A CPU less.
    pub fn leave(&mut self, cpu: u32) {
        self.cpus.retain(|of_cpu| of_cpu.cpu != cpu);
    }

    /// Can be read when there is something.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.cpus.iter().filter(|of_cpu| !of_cpu.ended).map(|of_cpu| of_cpu.events[0].as_raw_fd())
    }

    /// This descriptor has come to its end: it is none of them any more.
    pub fn end(&mut self, descriptor: RawFd) {
        let of = |of_cpu: &&mut OfCpu| of_cpu.events[0].as_raw_fd() == descriptor;
        self.cpus.iter_mut().filter(of).for_each(|of_cpu| of_cpu.ended = true);
    }

    /// What has happened since the last time, in its order.
    pub fn drain(&mut self) -> Vec<TaskRecord> {
        let mut all: Vec<_> = self.cpus.iter_mut().flat_map(|of_cpu| of_cpu.records.take()).collect();
        all.sort_by_key(|record| record.time);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::wait;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use topdown_seam::records::{RecordContent, TaskId};

    /// Of two programs the first ends: what is waited for is the other, and its end is seen.
    #[test]
    fn a_thread_that_has_ended_wakes_nobody() {
        let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (mut first, mut second) = (cat(), cat());
        let tids = [first.id(), second.id()].map(|pid| pid as i32);
        let cpus: Vec<u32> = (0..std::thread::available_parallelism().unwrap().get() as u32).collect();
        let mut sideband = Sideband::new(cpus);
        if sideband.follow(&tids).is_err() {
            first.kill().unwrap();
            second.kill().unwrap();
            eprintln!("perf_event_open is not permitted here: nothing is tested");
            return;
        }
        drop(first.stdin.take());
        first.wait().unwrap();
        let descriptors: Vec<RawFd> = sideband.descriptors().collect();
        let polled = wait(&descriptors, Instant::now() + Duration::from_secs(20));
        assert!(polled.iter().all(|one| one.ended), "{polled:?}");
        descriptors.into_iter().for_each(|descriptor| sideband.end(descriptor));
        assert_eq!(sideband.descriptors().count(), 0);
        drop(second.stdin.take());
        second.wait().unwrap();
        let all = sideband.drain();
        for tid in tids {
            assert!(
                all.iter().any(|record| record.says == RecordContent::Ends(TaskId { pid: tid, tid })),
                "{tid}: {all:?}"
            );
        }
    }
}
