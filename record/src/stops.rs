//! Time alone where perf_event_open(2) is refused: the threads of a command are stopped at random instants by ptrace(2), and looked at.
//!
//! An instant is a random one for each program, whatever that does when. A thread that runs then is looked at, for all of the time since the
//! instant before. (What it had done since its own last look would be told of what runs first after a nap.) One that is in a system call was
//! in the kernel: that time has no sample, and is in the intervals.
#![forbid(unsafe_code)]

use crate::budget::Pace;
use crate::event::{now, wait};
use crate::event_sampling::{EventSampling, Tally};
use crate::recorder::{RecordUntil, RecordingEnd};
use crate::recording::{Burst, Recording};
use crate::records::{CallGraph, RawSample, StackCopy};
use crate::settings::Settings;
use crate::spaces::Spaces;
use crate::stacks::Stacks;
use crate::unwind::{MOST_CALLERS, StackUnwinder, code_address};
use crate::whom::process_of;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};
use topdown::Error;
use topdown_seam::clocks::{ScheduledTime, own_cpu_ns, scheduled};
use topdown_seam::ptrace::{self, Stop, StopDescriptor, StoppedRegisters};
use topdown_seam::random::Random;
use topdown_seam::thread;

/// Of all time that passes, looking takes no more than such a part,
const MOST_COST: f64 = 0.02;
/// and so much more, since what a process has mapped is read first.
const FIRST_COST: Duration = Duration::from_millis(20);
/// Threads that do not come to a stop by then, once the command has ended, are let go when this process ends.
const PATIENCE: Duration = Duration::from_millis(200);
/// Threads that are to be let go are asked for so often, at the least.
const LOOKS: Duration = Duration::from_millis(20);

/// An instant comes so late if this process had to wait for a CPU (a timer alone is 60 µs late). What it waited for may be what a thread did:
/// of one that slept in between, or has begun since, nothing is known then.
const LATE: Duration = Duration::from_micros(200);
/// Of a thread that did not run so many times in a row it is asked less often whether it does,
const IDLE: u64 = 4;
/// and the most seldom once in so many instants.
const SELDOM: u64 = 64;
/// Of no more than so many it is asked at an instant, on average.
const MOST_ASKED: f64 = 64.0;

/// A thread that is traced.
#[derive(Debug)]
struct TracedThread {
    pid: i32,
    /// Its CPU time that is in the whole, in nanoseconds.
    counted_ns: u64,
    /// At its last look.
    looked: ScheduledTime,
    /// So many times in a row it did not run.
    idle: u64,
    /// So often it had given up its CPU then, and has in stops since.
    sleeps: u64,
    /// Its program has begun, and it was not looked at since. (It goes on where this process would have been, which so is late.)
    is_new: bool,
    /// It was told to stop.
    asked: Option<AskedLook>,
}

impl TracedThread {
    /// Of it is asked at one of so many instants.
    fn seldom(&self) -> f64 {
        (self.idle / IDLE).clamp(1, SELDOM) as f64
    }
}

/// A look to come.
#[derive(Clone, Copy, Debug)]
struct AskedLook {
    /// For so much time, in which it may have waited for a CPU.
    ns: f64,
    is_late: bool,
}

/// A recording of a command's time under way.
#[derive(Debug)]
pub struct StopRecorder {
    command: i32,
    settings: Settings,
    why: String,
    /// Those that have something to say come to the calling thread alone.
    stops: StopDescriptor,
    threads: BTreeMap<i32, TracedThread>,
    seen: usize,
    /// What each process had mapped when it was looked at last.
    maps: HashMap<i32, u64>,
    spaces: Spaces,
    unwinder: StackUnwinder,
    stacks: Stacks,
    bursts: Vec<Burst>,
    /// CPU time of all.
    all_ns: u64,
    /// The instant before.
    instant: Instant,
    /// The next one.
    due: Instant,
    /// Looks at what was in the kernel, could not be looked at, or had ended when that was due, stand for so much.
    unseen_ns: f64,
    /// Why some could not be.
    unread: Option<&'static str>,
    /// For how long threads were waited for, to be let go.
    letting_go: Duration,
    /// Processes that still ran when the command had ended.
    left_running: usize,
    random: Random,
}

/// How often it has given up its CPU.
fn sleeps(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

/// Whether it runs, or would if a CPU were free.
fn runs(tid: i32) -> bool {
    let state =
        |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'));
    fs::read_to_string(format!("/proc/{tid}/stat")).is_ok_and(state)
}

/// Return addresses that frame pointers lead to.
fn by_frame_pointers(pid: i32, registers: &StoppedRegisters) -> Vec<u64> {
    let mut callers = Vec::new();
    let (mut frame, mut before) = (registers.frame_pointer, registers.stack_pointer.saturating_sub(1));
    while callers.len() < MOST_CALLERS && frame > before && frame % 8 == 0 {
        let mut pair = [0_u8; 16];
        if ptrace::read_memory(pid, frame, &mut pair) < pair.len() {
            break;
        }
        let (next, caller) = pair.split_at(8);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        match code_address(word(caller)) {
            0 => break,
            caller => callers.push(caller),
        }
        (before, frame) = (frame, word(next));
    }
    callers
}

/// What callers are unwound from.
fn stack_copy(pid: i32, registers: &StoppedRegisters, bytes: u32) -> StackCopy {
    let mut stack = vec![0; bytes as usize];
    let read = ptrace::read_memory(pid, registers.stack_pointer, &mut stack);
    stack.truncate(read);
    let StoppedRegisters { instruction, stack_pointer, frame_pointer, link, .. } = *registers;
    let registers = match cfg!(target_arch = "aarch64") {
        true => vec![frame_pointer, link, stack_pointer, instruction],
        false => vec![frame_pointer, stack_pointer, instruction],
    };
    StackCopy { registers, stack }
}

/// Why files of /proc cannot be read, if that is no matter of the thread.
fn no_descriptor(error: &io::Error) -> Option<&'static str> {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
        .then_some("no descriptor is left (ulimit -n)")
}

impl StopRecorder {
    /// Of a process that is about to execute a command, and all that it starts. `why`: no slots are told.
    ///
    /// # Errors
    /// ptrace(2)'s: others trace it, or a container forbids that.
    pub fn of_command(pid: i32, settings: Settings, why: String) -> Result<StopRecorder, Error> {
        let refused = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            Error::new(-errno, format!("ptrace: {error}"))
                .why("kernel.yama.ptrace_scope is above 1, a container forbids it, or the program is traced already")
        };
        let stops = StopDescriptor::new().map_err(refused)?;
        ptrace::seize(pid).map_err(refused)?;
        let mut recorder = StopRecorder {
            command: pid,
            settings,
            why,
            stops,
            threads: BTreeMap::new(),
            seen: 0,
            maps: HashMap::new(),
            spaces: Spaces::default(),
            unwinder: StackUnwinder::default(),
            stacks: Stacks::default(),
            bursts: Vec::new(),
            all_ns: 0,
            instant: Instant::now(),
            due: Instant::now(),
            unseen_ns: 0.0,
            unread: None,
            letting_go: Duration::ZERO,
            left_running: 0,
            random: Random::new(now()),
        };
        recorder.follow(pid);
        Ok(recorder)
    }

    /// A thread is traced from now on.
    fn follow(&mut self, tid: i32) {
        let Some(pid) = process_of(tid) else { return };
        let is_first_of_process = !self.threads.values().any(|thread| thread.pid == pid);
        if is_first_of_process {
            // (what it has mapped is looked at in its first sample)
            self.spaces.forked(0, pid);
            self.maps.remove(&pid);
        }
        let (looked, sleeps) = match tid == self.command {
            true => (scheduled(tid).unwrap_or_default(), sleeps(tid).unwrap_or(0)),
            false => Default::default(),
        };
        let thread =
            TracedThread { pid, counted_ns: looked.ran, looked, sleeps, idle: 0, is_new: true, asked: None };
        self.threads.insert(tid, thread);
        self.seen += 1;
    }

    /// Records until something ends it.
    pub fn run(&mut self, until: &RecordUntil) -> RecordingEnd {
        let started = Instant::now();
        let deadline = until.timeout.map(|timeout| started + timeout);
        thread::short_slices(); // (to be on time)
        let spent = own_cpu_ns();
        self.instant = started;
        self.due = started + self.gap(Duration::ZERO).mul_f64(self.random.part());
        let end = loop {
            if self.attend() {
                let left: BTreeSet<i32> = self.threads.values().map(|thread| thread.pid).collect();
                self.left_running = left.len();
                break RecordingEnd::Processes;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break RecordingEnd::TimedOut;
            }
            if Instant::now() >= self.due {
                self.tick();
                let all = Duration::from_nanos(own_cpu_ns() - spent);
                let paid = all.saturating_sub(FIRST_COST).mul_f64(1.0 / MOST_COST);
                self.due = self.instant + self.gap(paid.saturating_sub(started.elapsed()));
            }
            let descriptors: Vec<_> = [self.stops.as_raw_fd()].into_iter().chain(until.interrupt).collect();
            let polled = wait(&descriptors, deadline.map_or(self.due, |deadline| deadline.min(self.due)));
            if polled.get(1).is_some_and(|interrupt| interrupt.readable) {
                break RecordingEnd::Interrupted;
            }
            self.stops.clear();
        };
        let began = Instant::now();
        self.let_all_go(end == RecordingEnd::Processes);
        self.letting_go = began.elapsed();
        end
    }

    /// Until the next instant, on average no less than this: no program keeps pace with it, also where looks of one cost decide.
    fn gap(&mut self, least: Duration) -> Duration {
        let mean = Duration::from_secs(1) / self.settings.frequency.max(1);
        mean.max(least).mul_f64(0.5 + self.random.part())
    }

    /// An instant: tells threads to stop that run. Those that did not for long are looked for at some instants alone, at random, for more time
    /// each.
    fn tick(&mut self) {
        let instant = Instant::now();
        let since_ns = (instant - self.instant).as_nanos() as f64;
        let is_late = instant > self.due + LATE;
        self.instant = instant;
        let asked: f64 = self.threads.values().map(|thread| 1.0 / thread.seldom()).sum();
        for (tid, thread) in &mut self.threads {
            if let Some(look) = &mut thread.asked {
                // (the kernel has not come to stop it)
                look.ns += if runs(*tid) { since_ns } else { 0.0 };
                continue;
            }
            let seldom = thread.seldom() * (asked / MOST_ASKED).max(1.0);
            if self.random.part() * seldom >= 1.0 {
                continue;
            }
            thread.idle += 1;
            if runs(*tid) {
                thread.idle = 0;
                let look = AskedLook { ns: since_ns * seldom, is_late };
                thread.asked = ptrace::interrupt(*tid).is_ok().then_some(look);
            }
        }
    }

    /// Takes notice of all that stopped; whether the command has ended.
    fn attend(&mut self) -> bool {
        while let Some((tid, stop)) = ptrace::next_stop(self.command) {
            if stop == Stop::Ended && tid == self.command {
                self.end(tid);
                return true;
            }
            self.has_stopped(tid, stop);
            if stop != Stop::Ended {
                ptrace::resume(tid, stop);
            }
        }
        false
    }

    fn has_stopped(&mut self, tid: i32, stop: Stop) {
        match stop {
            Stop::Ended => return self.end(tid),
            _ if !self.threads.contains_key(&tid) => self.follow(tid),
            _ => {}
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.sleeps = thread.sleeps.saturating_add(1);
        match stop {
            Stop::Told => {
                if let Some(asked) = thread.asked.take() {
                    self.look(tid, asked);
                }
            }
            Stop::Executed => {
                let pid = thread.pid;
                self.unseen_ns += thread.asked.take().map_or(0.0, |asked| asked.ns);
                // (whichever thread has executed it has this number now)
                if let Some(former) = ptrace::told(tid).and_then(|former| self.threads.remove(&former)) {
                    self.threads.insert(tid, TracedThread { is_new: true, asked: None, ..former });
                }
                self.account(tid);
                self.threads.retain(|other, thread| *other == tid || thread.pid != pid);
                self.spaces.executed(now(), pid);
                self.maps.remove(&pid);
            }
            Stop::Ending => {
                let asked = thread.asked.take().map_or(0.0, |asked| asked.ns);
                self.account(tid);
                self.unseen_ns += asked + self.overdue_ns();
            }
            // (it may not have stopped yet: all that is traced is known)
            Stop::Began => match ptrace::told(tid) {
                Some(begun) if !self.threads.contains_key(&begun) => self.follow(begun),
                _ => {}
            },
            Stop::Group | Stop::Signal(_) | Stop::Ended => {}
        }
    }

    /// What the look stands for that a thread has escaped by ending, since an instant is overdue. (Of threads that end soon it would else
    /// be told what they do later alone.)
    fn overdue_ns(&self) -> f64 {
        let now = Instant::now();
        if now >= self.due { (now - self.instant).as_nanos() as f64 } else { 0.0 }
    }

    /// What a thread has had until now is in the whole.
    fn account(&mut self, tid: i32) -> Option<ScheduledTime> {
        let thread = self.threads.get_mut(&tid)?;
        let scheduled =
            scheduled(tid).inspect_err(|error| self.unread = self.unread.or(no_descriptor(error)));
        let now = scheduled.ok()?;
        self.all_ns += now.ran.saturating_sub(thread.counted_ns);
        thread.counted_ns = now.ran.max(thread.counted_ns);
        Some(now)
    }

    /// A thread has ended.
    fn end(&mut self, tid: i32) {
        self.account(tid);
        let asked = self.threads.remove(&tid).and_then(|thread| thread.asked);
        self.unseen_ns += asked.map_or(0.0, |asked| asked.ns);
    }

    /// Looks at a thread that has stopped.
    fn look(&mut self, tid: i32, asked: AskedLook) {
        let Some((scheduled, thread)) = self.account(tid).zip(self.threads.get_mut(&tid)) else { return };
        let before = std::mem::replace(&mut thread.looked, scheduled);
        let ran = scheduled.ran.saturating_sub(before.ran);
        let waited = scheduled.waited.saturating_sub(before.waited);
        let part = if ran > 0 { ran as f64 / (ran + waited) as f64 } else { 1.0 };
        let (pid, weight_ns) = (thread.pid, part * asked.ns);
        // (before it is asked how often it slept: the kernel answers when the thread has given up its CPU for this stop, too)
        let registers = ptrace::registers(tid).inspect_err(|error| {
            if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                self.unread = Some("programs of 32 bits cannot be looked at");
            }
        });
        let all_sleeps = sleeps(tid).unwrap_or(u64::MAX);
        let slept = all_sleeps > std::mem::replace(&mut thread.sleeps, all_sleeps);
        let is_new = std::mem::replace(&mut thread.is_new, false);
        let seen = registers.ok().filter(|registers| !registers.in_system_call);
        let Some(registers) = seen.filter(|_| !(asked.is_late && (slept || is_new))) else {
            self.unseen_ns += weight_ns;
            return;
        };
        self.look_at_maps(pid, tid);
        let mut chain = vec![registers.instruction];
        let copy = match self.settings.callers {
            CallGraph::Dwarf(bytes) => Some(stack_copy(tid, &registers, bytes)),
            CallGraph::FramePointers | CallGraph::Lbr => {
                chain.extend(by_frame_pointers(tid, &registers));
                None
            }
        };
        let sample = RawSample { pid, tid, time: now(), chain, copy, ..RawSample::default() };
        let stacks = vec![self.stacks.number_of(&sample, &mut self.spaces, &mut self.unwinder)];
        let weight_ns = weight_ns as u64;
        self.bursts.push(Burst { thread: tid, at: sample.time, weight_ns, stacks, ..Burst::default() });
    }

    /// What a process has mapped, if that has changed.
    fn look_at_maps(&mut self, pid: i32, tid: i32) {
        let mut hasher = DefaultHasher::new();
        let maps = fs::read(format!("/proc/{tid}/maps"));
        let maps = maps.inspect_err(|error| self.unread = self.unread.or(no_descriptor(error)));
        maps.unwrap_or_default().hash(&mut hasher);
        let mapped = hasher.finish();
        if self.maps.insert(pid, mapped) != Some(mapped) {
            let _ = self.spaces.look_at(pid);
        }
    }

    /// Threads go on without being traced: each once it has stopped, however long that takes (one that waits for a vfork(2) does not before). Who has
    /// waited for the end of the command waits no longer than a moment.
    fn let_all_go(&mut self, has_ended: bool) {
        let mut traced: BTreeSet<i32> = self.threads.keys().copied().collect();
        traced.iter().for_each(|tid| _ = self.account(*tid));
        traced.iter().for_each(|tid| _ = ptrace::interrupt(*tid)); // (one that ends says so)
        let patience = Instant::now() + PATIENCE;
        while !(traced.is_empty() || has_ended && Instant::now() >= patience) {
            for tid in traced.clone() {
                let stop = match ptrace::stop_of(tid, self.command) {
                    Ok(None) => continue,
                    Ok(Some(stop)) => stop,
                    Err(_) => Stop::Ended,
                };
                traced.remove(&tid);
                if stop == Stop::Began {
                    traced.extend(ptrace::told(tid));
                }
                if stop != Stop::Ended {
                    ptrace::let_go(tid, stop);
                }
            }
            if !traced.is_empty() {
                wait(&[self.stops.as_raw_fd()], Instant::now() + LOOKS);
                self.stops.clear();
            }
        }
    }

    /// What was recorded in so much time.
    #[must_use]
    pub fn finish(mut self, elapsed: Duration) -> Recording {
        // (what was seen of it, or not, is all CPU time)
        let weights: f64 = self.bursts.iter().map(|burst| burst.weight_ns as f64).sum();
        let scale = self.all_ns as f64 / (weights + self.unseen_ns);
        if scale.is_finite() && scale > 0.0 {
            self.bursts
                .iter_mut()
                .for_each(|burst| burst.weight_ns = (burst.weight_ns as f64 * scale) as u64);
        }
        let sampled: u64 = self.bursts.iter().map(|burst| burst.weight_ns).sum();
        let held = self.bursts.len() as u64;
        let sampling =
            EventSampling::of_stops(self.settings, sampled / held.max(1), std::mem::take(&mut self.why));
        let (made, refused) = self.spaces.made();
        let missing = |why| format!("Names of code that a JIT compiler made are missing: {why}.");
        let mut recording = Recording::none(Vec::new(), self.settings);
        recording.totals.pace = Pace::NONE;
        recording.totals.elapsed = elapsed.saturating_sub(self.letting_go);
        recording.totals.left_running = self.left_running;
        recording.totals.threads = self.seen;
        let unread = self.unread.map(|why| format!("Not all threads could be looked at: {why}."));
        recording.totals.unnamed = refused.into_iter().map(missing).chain(unread).collect();
        recording.bursts = self.bursts;
        recording.stacks = self.stacks.all;
        recording.modules = std::mem::take(&mut self.spaces.modules);
        recording.files = Arc::new(std::mem::take(&mut self.spaces.open));
        recording.made = Arc::new(made);
        recording.sampling = Some((sampling, Tally::of_time(held, sampled, self.all_ns.max(sampled))));
        recording
    }
}
