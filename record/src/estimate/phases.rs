//! Programs of phases that sleep differently, and so have more or fewer bursts in their time, while what their functions do goes with the phases.
use super::tests::{Random, normalised, sunny_cove};
use super::*;
use crate::statistics::at_most;
use crate::strata::{ThreadInstant, evened};

/// On one thread, and what it did: how long, how many times as often bursts come in its time, and the part of the time and the mix of each function.
struct Phase {
    time: f64,
    often: f64,
    parts: [f64; 4],
    mixes: [[f64; 4]; 4],
}

/// Of 2 to 6 phases on 1 to 3 threads, of which each begins when it likes; `repeated`: so often all of them come.
struct PhasedProgram {
    threads: Vec<Vec<Phase>>,
    repeated: usize,
}

const SLOTS: f64 = 6000.0;
/// Behind the functions: all of them, and then each thread.
const ALL: usize = 4;

fn phased(random: &mut Random, repeated: usize) -> PhasedProgram {
    let mix = |random: &mut Random| normalised([0; 4].map(|_| 0.05 + random.next()));
    let phase = |random: &mut Random| Phase {
        time: 0.2 + random.next(),
        often: 0.1 * 100_f64.powf(random.next()),
        parts: normalised([0; 4].map(|_| 0.1 + random.next())),
        mixes: [0; 4].map(|_| mix(random)),
    };
    let thread = |random: &mut Random| {
        let phases = 2 + random.below(5);
        (0..phases).map(|_| phase(random)).collect()
    };
    PhasedProgram { threads: (0..1 + random.below(3)).map(|_| thread(random)).collect(), repeated }
}

impl PhasedProgram {
    /// What all did, one function, or one thread: each category's part of its time.
    fn truth(&self, of: usize) -> [f64; 4] {
        let (function, thread) = ((of < ALL).then_some(of), of.checked_sub(ALL + 1));
        let mut sums = [0.0; 4];
        let threads =
            self.threads.iter().enumerate().filter(|(k, _)| thread.is_none_or(|wanted| wanted == *k));
        for phase in threads.flat_map(|(_, phases)| phases) {
            for k in (0..4).filter(|k| function.is_none_or(|wanted| wanted == *k)) {
                let time = phase.time * phase.parts[k];
                sums.iter_mut().zip(phase.mixes[k]).for_each(|(sum, share)| *sum += time * share);
            }
        }
        normalised(sums)
    }

    /// Instants of a thread, `number` in all of its time if they come evenly: phase, when, and function.
    fn instants(
        &self,
        random: &mut Random,
        thread: usize,
        number: f64,
        often: fn(&Phase) -> f64,
    ) -> Vec<(usize, u64, usize)> {
        let (phases, mut all, mut begin) = (&self.threads[thread], Vec::new(), 0.0);
        for (place, phase) in (0..self.repeated).flat_map(|_| phases.iter().enumerate()) {
            let length = phase.time / self.repeated as f64;
            // (one in each stretch of a mean interval, as chances are)
            let expected = number * length * often(phase);
            for k in 0..(expected + random.next()) as usize {
                let at = begin + length * (k as f64 + random.next()).min(expected) / expected;
                let mut point = random.next();
                let function = phase.parts.iter().position(|part| {
                    point -= part;
                    point < 0.0
                });
                all.push((place, (at * 1e9) as u64, function.unwrap_or(0)));
            }
            begin += length;
        }
        all
    }

    /// What was seen of each of the functions, of all, and of each thread, by about so many bursts, and samples of the clock.
    fn seen(&self, random: &mut Random, number: f64, with_time: bool) -> Vec<SeenIn> {
        let mut seen: Vec<SeenIn> = (0..=ALL + self.threads.len()).map(|_| SeenIn::default()).collect();
        let each = number / self.threads.iter().flatten().map(|phase| phase.time).sum::<f64>();
        let asked: f64 = self.threads.iter().flatten().map(|phase| phase.time * phase.often).sum();
        for thread in 0..self.threads.len() {
            let stratum = |function: usize| Stratum { thread: thread as i32, function: Some(function) };
            let bursts = self.instants(random, thread, number / asked, |phase| phase.often);
            let samples = self.instants(random, thread, each, |_| 1.0);
            let came = |windows: bool| {
                move |(_, at, _): &(usize, u64, usize)| ThreadInstant {
                    of: (0, 0),
                    at: *at,
                    ns: u64::from(!windows) * 1_000_000,
                    windows,
                }
            };
            let came: Vec<ThreadInstant> =
                bursts.iter().map(came(true)).chain(samples.iter().map(came(false))).collect();
            let evened = if with_time { evened(&came) } else { vec![[1.0; 2]; bursts.len()] };
            for ((phase, at, function), evened) in bursts.into_iter().zip(evened) {
                let [retiring, _, frontend, backend] =
                    self.threads[thread][phase].mixes[function].map(|share| (SLOTS * share) as u64);
                let windows = [0, 1].map(|_| Some(vec![SLOTS as u64, retiring, backend, frontend]));
                let at = if with_time { at } else { 0 };
                let coming = BurstTime { at, strata: &[stratum(function); 3], evened };
                for of in [function, ALL, ALL + 1 + thread] {
                    seen[of].add(&[true; 3], &windows, false, &UnsharedWindows::default(), coming);
                }
            }
            for (_, at, function) in samples {
                [function, ALL, ALL + 1 + thread]
                    .iter()
                    .for_each(|of| seen[*of].time.add(stratum(function), at, 1_000_000));
            }
        }
        seen
    }
}

/// Shares outside of their intervals, of how many, and the furthest from the truth: of all that programs did, of their functions, and of their threads.
#[derive(Debug, Default)]
struct MissedIntervals {
    outside: usize,
    all: usize,
    furthest: f64,
    width: f64,
}

fn outside(programs: u64, repeated: usize, with_time: bool) -> [MissedIntervals; 3] {
    let (events, mut kinds) = (sunny_cove(), [(); 3].map(|()| MissedIntervals::default()));
    for seed in 1..=programs {
        let mut random = Random::of(seed);
        let program = phased(&mut random, repeated);
        let number = 300.0 + 900.0 * random.next();
        let seen = program.seen(&mut random, number, with_time);
        for (of, seen) in seen.iter().enumerate() {
            let in_all = SeenInAll { excess: vec![0.0; 4], ..SeenInAll::default() };
            let Ok(told) = shares(&events, seen, Background::User(&in_all), 0.0) else { continue };
            let truth = program.truth(of);
            // (what others had of the windows is not in question here)
            let sampling = told.sampling - at_most(0.0, seen.clusters.len() as f64);
            let sums = &mut kinds[if of < ALL { 1 } else { usize::from(of > ALL) * 2 }];
            for (share, truth) in told.shares.iter().zip(truth) {
                let off = (share.value - truth).abs();
                sums.all += 1;
                sums.outside += usize::from(off > sampling.max(0.0));
                sums.furthest = sums.furthest.max(off);
                sums.width += sampling;
            }
        }
    }
    kinds
}

/// (unoptimised, they take a second each)
const PROGRAMS: u64 = if cfg!(debug_assertions) { 40 } else { 200 };

#[test]
fn what_phases_do_that_sleep_differently_is_in_the_intervals() {
    for repeated in [1, 2, 4] {
        let (with, without) = (outside(PROGRAMS, repeated, true), outside(PROGRAMS, repeated, false));
        for (of, (with, without)) in
            ["all", "functions", "threads"].into_iter().zip(with.iter().zip(&without))
        {
            eprintln!("{of}, {repeated} times: {with:?}; if nobody knew when bursts came {without:?}");
            assert!(with.all as u64 >= PROGRAMS && with.outside * 20 <= with.all, "{of}: {with:?}");
            assert!(
                without.outside * 5 > without.all && with.furthest < without.furthest,
                "{of}: {without:?}"
            );
        }
    }
}
