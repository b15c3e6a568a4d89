//! Two users of the counters on one CPU.
#![forbid(unsafe_code)]

use super::kernels::work;
use super::machine::TestMachine;
use super::raw::{self, EventTarget, SlotsGroup, Start};
use super::registers::PLENTY;
use super::report::{CheckObstacle, CheckResult, seen, untried};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Sets a flag at the end of a scope, however it ends.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs something while another thread of ours, on that CPU, counts its own work.
pub fn beside_a_rival<T>(machine: &TestMachine, cpu: usize, body: impl FnOnce() -> T) -> io::Result<T> {
    let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let rival = scope.spawn(|| {
            let group = raw::pin(cpu).and_then(|()| SlotsGroup::start(&machine.pmu));
            ready.store(true, Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) && group.is_ok() {
                work(200_000);
                thread::sleep(Duration::from_micros(20)); // whoever waits for the CPU gets it
            }
            group.map(drop)
        });
        let end = AtEnd(&stop);
        while !ready.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(500));
        }
        let result = body();
        drop(end);
        rival.join().unwrap_or_else(|_| Err(io::Error::other("the rival failed"))).map(|()| result)
    })
}

/// Two groups in one thread take turns, and each finds its registers again.
pub fn turns(machine: &TestMachine) -> CheckResult {
    let groups = [SlotsGroup::start(&machine.pmu)?, SlotsGroup::start(&machine.pmu)?];
    let (mut last, mut went_back, mut out) = ([0; 2], 0, [0u32; 2]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(60) {
        work(50_000);
        for k in 0..2 {
            match groups[k].registers() {
                Some(now) => {
                    went_back += u32::from(now.slots < last[k]);
                    last[k] = now.slots;
                }
                None => out[k] += 1,
            }
        }
    }
    let mut share = [0.0; 2];
    for (share, group) in share.iter_mut().zip(&groups) {
        let count = group.count()?;
        *share = count.running as f64 / count.enabled.max(1) as f64;
    }
    seen(
        share.iter().all(|share| (0.1..0.9).contains(share))
            && out.iter().all(|out| *out > 0)
            && went_back == 0,
        format!(
            "counted {:.0} % and {:.0} % of the time; index 0 at {} and {} looks; SLOTS went back {went_back} times",
            100.0 * share[0],
            100.0 * share[1],
            out[0],
            out[1]
        ),
    )
}

/// Slots that a thread counts per turn, which computes a little, is in the kernel for long, and is read by another
/// thread meanwhile.
fn sleeper(machine: &TestMachine, reader: usize, time: Duration) -> Result<u64, CheckObstacle> {
    let (stop, id, rounds) = (AtomicBool::new(false), AtomicI32::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 1 << 16];
            let random = raw::pin(machine.cpu).and_then(|()| std::fs::File::open("/dev/urandom"));
            id.store(if random.is_ok() { raw::thread_id() } else { -1 }, Ordering::Relaxed);
            while let (Ok(mut random), false) = (random.as_ref(), stop.load(Ordering::Relaxed)) {
                work(3000);
                rounds.fetch_add(1, Ordering::Relaxed);
                let _ = random.read(&mut buffer); // in the kernel, where nothing of it counts
                thread::sleep(Duration::from_micros(100));
            }
        });
        let _end = AtEnd(&stop);
        raw::pin(reader)?;
        while id.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_micros(500));
        }
        let of = EventTarget::Thread(id.load(Ordering::Relaxed));
        let group = SlotsGroup::open(&machine.pmu, machine.pmu.metrics, of, Start::Disabled)?;
        group.enable()?;
        let (begun, start) = (rounds.load(Ordering::Relaxed), Instant::now());
        while start.elapsed() < time {
            thread::sleep(Duration::from_micros(200));
            group.count()?;
        }
        let turns = rounds.load(Ordering::Relaxed) - begun;
        let slots = group.count()?.slots;
        slots.checked_div(turns).ok_or_else(|| CheckObstacle("the thread that is read had no turn".into()))
    })
}

/// A thread that is switched out after a reset, before it counted anything, comes back to foreign slots.
pub fn stale(machine: &TestMachine) -> CheckResult {
    let Some(other) = machine.other else { return untried("it takes a second CPU, to read from") };
    let time = Duration::from_millis(if machine.emulated { 100 } else { 1000 });
    let alone = sleeper(machine, other, time);
    let beside = beside_a_rival(machine, machine.cpu, || sleeper(machine, other, time));
    raw::pin(machine.cpu)?;
    let (alone, beside) = (alone?, beside??);
    let what = format!("{alone} slots a turn alone, {beside} beside a rival");
    if beside > alone.saturating_mul(2) + PLENTY / 100 {
        seen(true, what)
    } else {
        untried(format!("it is a race, and did not happen: {what}"))
    }
}
