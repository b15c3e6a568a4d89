use super::*;
use crate::proof::Calls;

/// Where nothing is known of all functions.
fn alone(events: &SampledEvents, seen: &SeenIn) -> Result<EstimatedShares, NoShares> {
    shares(events, seen, Background::User(&SeenInAll { excess: vec![0.0; 4], ..SeenInAll::default() }), 0.0)
}

impl<'a> BurstTime<'a> {
    /// One that counts once.
    pub fn of(at: u64, strata: &'a [Stratum]) -> BurstTime<'a> {
        BurstTime { at, strata, evened: [1.0; 2] }
    }
}

/// Numbers that seem random.
pub(super) struct Random(u64);

impl Random {
    pub fn of(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }
}

/// A function of a made-up program: its shares of the four categories of level 1, by how much those of one of its runs differ, and
/// how many slots its runs are long, on average.
struct SimulatedFunction {
    shares: [f64; 4],
    scatter: f64,
    length: f64,
    /// The function that it is compiled into: itself, or another.
    within: usize,
}

/// A run of a function, from one slot on, with what has returned before, and the stack pointer.
struct FunctionRun {
    function: usize,
    from: f64,
    shares: [f64; 4],
    returned: u64,
    stack: i64,
}

pub(super) fn normalised(shares: [f64; 4]) -> [f64; 4] {
    let sum: f64 = shares.iter().sum();
    shares.map(|share| share / sum)
}

fn made(random: &mut Random, longer: f64, place: usize) -> SimulatedFunction {
    let shares = normalised([0; 4].map(|_| 0.05 + random.next()));
    let length = longer * 6_000.0 * 1000_f64.powf(random.next());
    SimulatedFunction { shares, scatter: 0.3 * random.next(), length, within: place }
}

/// Each inlined into the first with this probability.
fn functions(random: &mut Random, longer: f64, inlined: f64) -> Vec<SimulatedFunction> {
    let n = 2 + random.below(8);
    let mut functions: Vec<SimulatedFunction> = (0..n).map(|place| made(random, longer, place)).collect();
    for place in 1..n {
        if random.next() < inlined {
            functions[place].within = random.below(place);
            functions[place].within = functions[functions[place].within].within;
        }
    }
    functions
}

/// It is not inlined, nor is another into it: calls and returns tell.
fn is_whole(functions: &[SimulatedFunction], function: usize) -> bool {
    functions.iter().filter(|made| made.within == functions[function].within).count() == 1
}

/// Which function runs next, what has returned, and the stack.
struct Flow {
    function: usize,
    callers: Vec<usize>,
    returned: u64,
    stack: i64,
}

impl Flow {
    /// Calls, returns, goes on in a part of the same function that was another one in the source, or (with this probability) jumps.
    fn goes_on(&mut self, random: &mut Random, functions: &[SimulatedFunction], jumps: f64) {
        let within = |function: &usize| functions[*function].within == functions[self.function].within;
        let parts: Vec<usize> = (0..functions.len()).filter(within).collect();
        if random.next() < jumps {
            self.function = random.below(functions.len());
        } else if parts.len() > 1 && random.next() < 0.5 {
            self.function = parts[random.below(parts.len())];
        } else if random.next() < 0.5 {
            self.callers.push(self.function);
            self.stack -= 64;
            self.function = random.below(functions.len());
        } else {
            self.returned += 1;
            self.stack += 64;
            self.function = self.callers.pop().unwrap_or_else(|| random.below(functions.len()));
        }
    }
}

/// A stretch of a program around an instant.
fn stretch(random: &mut Random, functions: &[SimulatedFunction], slots: f64, kind: Kind) -> Vec<FunctionRun> {
    let (mut runs, mut at) = (Vec::new(), 0.0);
    // (it begins long before, so that the instant is anywhere in a run)
    let all: f64 = functions.iter().map(|made| made.length).sum();
    let mut point = random.next() * all;
    let first = functions.iter().position(|made| {
        point -= made.length;
        point < 0.0
    });
    let mut flow = Flow { function: first.unwrap_or(0), callers: Vec::new(), returned: 0, stack: 0 };
    while at < slots {
        let Flow { function, returned, stack, .. } = flow;
        let SimulatedFunction { shares, scatter, length, .. } = functions[function];
        // (of runs of the same length each instant is as likely)
        let whole = if runs.is_empty() { length * random.next() } else { length };
        // runs differ, but not on average
        let seldom = kind.seldom;
        let most = shares[0].min(shares[3]);
        let shift = match random.next() < seldom {
            true => scatter * most * (1.0 - seldom) * 2.0,
            false => -scatter * most * seldom * 2.0,
        };
        let of_run = [shares[0] + shift, shares[1], shares[2], shares[3] - shift];
        runs.push(FunctionRun { function, from: at, shares: of_run, returned, stack });
        at += whole;
        flow.goes_on(random, functions, kind.jumps);
    }
    runs
}

/// Slots, retiring, backend bound and frontend bound from one slot to another, as the counters of Sunny Cove count them.
fn counted(runs: &[FunctionRun], from: f64, to: f64) -> Vec<u64> {
    let mut sums = [0.0; 4];
    for (k, run) in runs.iter().enumerate() {
        let end = runs.get(k + 1).map_or(f64::INFINITY, |next| next.from);
        let slots = (end.min(to) - run.from.max(from)).max(0.0);
        sums.iter_mut().zip(run.shares).for_each(|(sum, share)| *sum += slots * share);
    }
    let [retiring, _, frontend, backend] = sums;
    [to - from, retiring, backend, frontend].iter().map(|n| n.round() as u64).collect()
}

fn at(runs: &[FunctionRun], slot: f64) -> &FunctionRun {
    runs.iter().rev().find(|run| run.from <= slot).unwrap_or(&runs[0])
}

/// What a random program is like, and what is believed of it.
#[derive(Clone, Copy)]
struct Kind {
    /// Functions run so many times as long as those of others.
    longer: f64,
    inlined: f64,
    jumps: f64,
    /// So many of a function's runs have another mix than the rest.
    seldom: f64,
    /// Of which functions calls and returns tell.
    believed: fn(&[SimulatedFunction], usize) -> bool,
}

/// Returns are not counted.
const PLAIN: Kind = Kind { longer: 1.0, inlined: 0.0, jumps: 0.0, seldom: 0.5, believed: |_, _| false };

/// A random program, and what bursts show of it.
fn program(seed: u64, kind: Kind) -> (Vec<SimulatedFunction>, Vec<SeenIn>) {
    let mut random = Random::of(seed);
    let functions = functions(&mut random, kind.longer, kind.inlined);
    let mut seen: Vec<SeenIn> = functions.iter().map(|_| SeenIn::default()).collect();
    for _ in 0..200 + random.below(1000) {
        let long = random.next() < 0.5;
        let gap = (0.5 + random.next()) * if long { 24_000.0 } else { 6_000.0 };
        let runs = stretch(&mut random, &functions, 2.0 * gap, kind);
        let ends = [0.0, gap, 2.0 * gap].map(|slot| at(&runs, slot));
        let windows = [counted(&runs, 0.0, gap), counted(&runs, gap, 2.0 * gap)].map(Some);
        let calls = Calls {
            returns: ends.windows(2).map(|pair| Some(pair[1].returned - pair[0].returned)).collect(),
            stack: ends.iter().map(|end| end.stack).collect(),
        };
        for (function, seen) in seen.iter_mut().enumerate() {
            let believed = (kind.believed)(&functions, function);
            let alone = UnsharedWindows {
                windows: (0..2).map(|window| believed && calls.one_ran(window)).collect(),
                throughout: believed && calls.one_ran_throughout(),
            };
            seen.add(
                &ends.map(|end| end.function == function),
                &windows,
                long,
                &alone,
                BurstTime::of(0, &[]),
            );
        }
    }
    (functions, seen)
}

/// Of shares of random programs.
#[derive(Debug, Default)]
struct Misses {
    outside: usize,
    all: usize,
    /// Half of their intervals, added up.
    width: f64,
}

/// Unoptimised builds are tested with so many times fewer programs; `make explore` tests optimised ones.
const FEWER: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// Of this many random programs.
fn misses(programs: usize, kind: Kind) -> Misses {
    let (events, mut misses) = (sunny_cove(), Misses::default());
    for seed in 1..=programs as u64 {
        let (functions, seen) = program(seed, kind);
        let in_all = SeenInAll::of(&events, seen.iter());
        for (made, seen) in functions.iter().zip(&seen) {
            let Ok(told) = shares(&events, seen, Background::User(&in_all), 0.0) else { continue };
            for (share, truth) in told.shares.iter().zip(made.shares) {
                misses.all += 1;
                misses.outside += usize::from(truth < share.low || truth > share.high);
                misses.width += share.error();
            }
        }
    }
    misses
}

pub(super) fn sunny_cove() -> SampledEvents {
    SampledEvents::of_core("Sunny, Willow or Cypress Cove, bare counters").unwrap()
}

#[test]
fn of_500_random_programs_no_more_than_promised_is_outside() {
    let Misses { outside, all, .. } = misses(500 / FEWER, PLAIN);
    eprintln!("{outside} of {all} are outside");
    assert!(all > 5000 / FEWER, "{all}");
    assert!(outside * 20 <= all, "{outside} of {all} are outside of intervals of 95 %");
}

/// Of these programs some functions are inlined into others, some are called by what they have called.
const RETURNS: Kind = Kind { inlined: 0.4, believed: is_whole, ..PLAIN };

#[test]
fn with_returns_counted_no_more_than_promised_is_outside_and_intervals_are_narrower() {
    let (with, without) =
        (misses(500 / FEWER, RETURNS), misses(500 / FEWER, Kind { believed: PLAIN.believed, ..RETURNS }));
    eprintln!("with returns {with:?}, without {without:?}");
    assert!(with.all > 5000 / FEWER && with.all == without.all, "{with:?}");
    assert!(with.outside * 20 <= with.all, "{with:?}");
    assert!(with.width < 0.8 * without.width, "{with:?} {without:?}");
}

#[test]
fn of_functions_that_run_long_with_returns_counted_the_sample_is_all_that_is_off() {
    let kind = Kind { longer: 100.0, inlined: 0.0, ..RETURNS };
    let (with, without) =
        (misses(200 / FEWER, kind), misses(200 / FEWER, Kind { believed: PLAIN.believed, ..kind }));
    eprintln!("with returns {with:?}, without {without:?}");
    assert!(with.all > 2000 / FEWER && with.outside * 20 <= with.all, "{with:?}");
    assert!(with.width < 0.6 * without.width, "{with:?} {without:?}");
}

#[test]
fn what_a_function_does_now_and_then_is_in_its_interval() {
    for seldom in [0.3, 0.2, 0.1, 0.05, 0.02] {
        let kind = Kind { longer: 100.0, inlined: 0.0, seldom, ..RETURNS };
        let with = misses(200 / FEWER, kind);
        eprintln!("{seldom}: {with:?}");
        // (two of the four shares are the same in all runs)
        assert!(with.all > 2000 / FEWER && with.outside * 20 <= with.all / 2, "{seldom}: {with:?}");
    }
}

#[test]
fn where_functions_jump_no_more_than_promised_is_outside() {
    for jumps in [0.1, 0.5, 0.9] {
        let with = misses(100 / FEWER, Kind { jumps, ..RETURNS });
        eprintln!("{jumps}: {with:?}");
        assert!(with.all > 1000 / FEWER && with.outside * 20 <= with.all, "{jumps}: {with:?}");
    }
}

/// The share that retires of a function of which all slots do, and which is left for another of which none does, and come back to, again
/// and again without a return: inlined, or by jumps.
fn of_one_of_two(alone: &UnsharedWindows) -> ShareInterval {
    let (mut random, mut seen) = (Random(7), SeenIn::default());
    for _ in 0..1000 {
        let (mut runs, mut from, begun) = (Vec::new(), 0.0, random.next() < 0.5);
        while from < 20_000.0 {
            let function = (runs.len() + usize::from(begun)) % 2;
            let shares = if function == 0 { [1.0, 0.0, 0.0, 0.0] } else { [0.0, 0.0, 0.0, 1.0] };
            runs.push(FunctionRun { function, from, shares, returned: 0, stack: 0 });
            from += 2_000.0 * random.next();
        }
        let windows = [counted(&runs, 0.0, 6_000.0), counted(&runs, 6_000.0, 12_000.0)].map(Some);
        seen.add(
            &[0.0, 6_000.0, 12_000.0].map(|slot| at(&runs, slot).function == 0),
            &windows,
            false,
            alone,
            BurstTime::of(0, &[]),
        );
    }
    let in_all = SeenInAll { excess: vec![0.0; 4], ..SeenInAll::of(&sunny_cove(), [&seen].into_iter()) };
    shares(&sunny_cove(), &seen, Background::User(&in_all), 0.0).unwrap().shares[0]
}

#[test]
fn of_what_comes_and_goes_without_returns_they_tell_nothing() {
    let believed = |throughout| UnsharedWindows { windows: vec![true; 2], throughout };
    // as an inlined function; as one of which it is not known; as if nobody looked at the sample in the middle
    let (inlined, jumps, blind) = (
        of_one_of_two(&UnsharedWindows::default()),
        of_one_of_two(&believed(true)),
        of_one_of_two(&believed(false)),
    );
    assert!(inlined.high >= 1.0 && jumps.high >= 1.0, "{inlined:?} {jumps:?}");
    assert!(blind.high < 0.6 && blind.value == jumps.value, "{blind:?}");
}

#[test]
fn a_random_sample_is_off_by_as_much_as_it_says() {
    // (no function is left and come back to in a window, so the sample is all that is off)
    let (events, mut outside, mut all) = (sunny_cove(), 0, 0_u32);
    for seed in 1..=120 {
        let (functions, seen) = program(seed, Kind { longer: 1000.0, ..PLAIN });
        for (made, seen) in functions.iter().zip(&seen).filter(|(_, seen)| seen.clusters.len() >= LEAST) {
            let clusters: Vec<&Cluster> = seen.clusters.iter().collect();
            let ratios = ratio(&events, &clusters).unwrap();
            // (retiring and backend bound: the others are the same in all runs)
            for node in [0, 3] {
                all += 1;
                outside += u32::from((ratios[node].0 - made.shares[node]).abs() > ratios[node].1 + 1e-4);
            }
        }
    }
    let part = f64::from(outside) / f64::from(all);
    assert!(all > 800 && part > 0.03 && part < 0.07, "{outside} of {all}");
}

#[test]
fn a_function_that_comes_back_within_windows_has_a_wide_interval() {
    let events = sunny_cove();
    let one = |elsewhere: u64| {
        let cluster = Cluster {
            counts: vec![6000.0, 3000.0, 1000.0, 1000.0],
            windows: 2,
            weight: 2.0,
            ..Cluster::default()
        };
        let returns = [Returns { all: 10_000, elsewhere }, Returns::default()];
        let seen = SeenIn { clusters: vec![cluster; 100], returns, ..SeenIn::default() };
        alone(&events, &seen).unwrap()
    };
    let share = |elsewhere| one(elsewhere).shares[0];
    assert!(share(0).error() < 0.003 && share(1000).error() > 0.05, "{:?} {:?}", share(0), share(1000));
    assert!((share(0).value - 0.5).abs() < 1e-12);
    // that others were seen to run there is so in longer runs, too; that none was has another bound in these
    assert!(one(0).sampling > 0.0 && one(1000).sampling < one(0).sampling);
}

#[test]
fn few_bursts_tell_nothing() {
    let cluster = Cluster {
        counts: vec![6000.0, 3000.0, 1000.0, 1000.0],
        windows: 2,
        weight: 2.0,
        ..Cluster::default()
    };
    let seen = SeenIn { clusters: vec![cluster; LEAST - 1], ..SeenIn::default() };
    assert_eq!(alone(&sunny_cove(), &seen).unwrap_err(), NoShares::Few(LEAST - 1));
}

#[test]
fn what_windows_have_at_their_start_is_in_the_interval() {
    let events = sunny_cove();
    // 600 slots of each window are backend bound, whatever its length, the others retiring
    let of = |slots: f64, long| Cluster {
        counts: vec![slots, slots - 600.0, 600.0, 0.0],
        windows: 1,
        weight: 1.0,
        long,
        ..Cluster::default()
    };
    let clusters =
        (0..200).map(|k| if k % 2 == 0 { of(6_000.0, false) } else { of(24_000.0, true) }).collect();
    let seen = SeenIn { clusters, returns: [Returns { all: 10_000, elsewhere: 0 }; 2], ..SeenIn::default() };
    let excess = excess(&events, [&seen].into_iter());
    assert!((excess[3] - 600.0).abs() < 1e-6 && (excess[0] + 600.0).abs() < 1e-6, "{excess:?}");
    let told =
        shares(&events, &seen, Background::User(&SeenInAll { excess, ..SeenInAll::default() }), 0.0).unwrap();
    assert!(told.shares[0].high >= 1.0 && told.shares[3].low <= 0.0, "{told:?}");
    let without = alone(&events, &seen).unwrap();
    assert!(without.shares[0].high < 0.99 && without.shares[3].low > 0.01, "{without:?}");
}

#[test]
fn windows_count_where_both_ends_are_inside() {
    let windows = [vec![10, 1], vec![20, 2]].map(Some);
    let mut seen = SeenIn::default();
    seen.add(&[true, true, true], &windows, false, &UnsharedWindows::default(), BurstTime::of(0, &[]));
    seen.add(&[true, false, true], &windows, false, &UnsharedWindows::default(), BurstTime::of(0, &[]));
    seen.add(&[false, true, true], &windows, true, &UnsharedWindows::default(), BurstTime::of(0, &[]));
    seen.add(&[true, true], &windows[..1], true, &UnsharedWindows::default(), BurstTime::of(0, &[]));
    seen.add(&[true], &[], true, &UnsharedWindows::default(), BurstTime::of(0, &[]));
    let counts: Vec<_> =
        seen.clusters.iter().map(|cluster| (cluster.counts.clone(), cluster.windows)).collect();
    assert_eq!(counts, [(vec![30.0, 3.0], 2), (vec![20.0, 2.0], 1), (vec![10.0, 1.0], 1)]);
    assert_eq!(seen.returns, [Returns { all: 2, elsewhere: 1 }, Returns::default()]);
}

/// Slots of the interrupts at the ends of a window, by all four counts.
const INTERRUPTS: [u64; 4] = [5000, 4000, 300, 600];

#[test]
fn what_interrupts_count_is_in_no_share() {
    let (events, mut outside, mut all, mut blind) = (sunny_cove(), 0, 0_u32, 0);
    for seed in 1..=200 {
        let (functions, mut seen) =
            program(seed, Kind { longer: if seed % 2 == 0 { 1.0 } else { 1000.0 }, ..PLAIN });
        for seen in &mut seen {
            for cluster in &mut seen.clusters {
                let windows = cluster.windows as f64;
                cluster.counts.iter_mut().zip(INTERRUPTS).for_each(|(n, more)| *n += windows * more as f64);
            }
        }
        let is_off = |told: &EstimatedShares, made: &SimulatedFunction| {
            let off = |(share, truth): (&ShareInterval, &f64)| *truth < share.low || *truth > share.high;
            told.shares.iter().zip(&made.shares).filter(|pair| off(*pair)).count()
        };
        for (made, seen) in functions.iter().zip(&seen) {
            let Ok(told) = shares(&events, seen, Background::Interrupts, 0.0) else { continue };
            all += 4;
            outside += is_off(&told, made);
            blind += alone(&events, seen).map_or(0, |told| is_off(&told, made));
        }
    }
    eprintln!("{outside} of {all} are outside; {blind} with the interrupts' slots");
    assert!(
        all > 1000 && outside as u32 * 20 <= all && blind as u32 * 2 > all,
        "{outside} and {blind} of {all}"
    );
}

#[test]
fn without_windows_of_both_lengths_nothing_is_told_beside_interrupts() {
    let mut seen = SeenIn::default();
    for k in 0..100 {
        seen.add(
            &[true; 3],
            &[Some(vec![9000, 3000, 3000, 1000]), None],
            k < 5,
            &UnsharedWindows::default(),
            BurstTime::of(0, &[]),
        );
    }
    assert_eq!(shares(&sunny_cove(), &seen, Background::Interrupts, 0.0).unwrap_err(), NoShares::Few(5));
}

/// What all of a program did of which some threads have more bursts in their time than others: how many shares of it are outside of their intervals,
/// of how many.
fn misses_of_all(with_time: bool) -> (usize, usize) {
    let (events, mut random, mut outside, mut all) = (sunny_cove(), Random(11), 0, 0);
    for _ in 0..200 {
        let threads: Vec<SimulatedFunction> = (0..4).map(|place| made(&mut random, 1000.0, place)).collect();
        let time = normalised([0; 4].map(|_| 0.1 + random.next()));
        let often = [0; 4].map(|_| 0.2 + random.next());
        let drawn = |random: &mut Random, parts: [f64; 4]| {
            let mut point = random.next();
            parts.iter().position(|part| {
                point -= part;
                point < 0.0
            })
        };
        let stratum = |thread: usize| Stratum { thread: thread as i32, function: Some(thread) };
        let (mut seen, bursts) =
            (SeenIn::default(), normalised([0, 1, 2, 3].map(|k: usize| time[k] * often[k])));
        for _ in 0..400 {
            let thread = drawn(&mut random, bursts).unwrap_or(0);
            let windows = [0, 1].map(|_| {
                let [retiring, _, frontend, backend] =
                    threads[thread].shares.map(|share| (6000.0 * share) as u64);
                Some(vec![6000, retiring, backend, frontend])
            });
            seen.add(
                &[true; 3],
                &windows,
                false,
                &UnsharedWindows::default(),
                BurstTime::of(0, &[stratum(thread); 3]),
            );
            if with_time {
                seen.time.add(stratum(drawn(&mut random, time).unwrap_or(0)), 0, 1_000_000);
            }
        }
        let told = alone(&events, &seen).unwrap();
        for (node, share) in told.shares.iter().enumerate() {
            let truth: f64 = (0..4).map(|thread| time[thread] * threads[thread].shares[node]).sum();
            // (what others had of the windows is not in question here)
            let sampling = told.sampling - at_most(0.0, 400.0);
            all += 1;
            outside += usize::from((share.value - truth).abs() > sampling.max(0.0));
        }
    }
    (outside, all)
}

#[test]
fn what_all_did_is_told_by_the_time_of_each_thread_however_bursts_come() {
    let (outside, all) = misses_of_all(true);
    let (blind, _) = misses_of_all(false);
    eprintln!("{outside} of {all} are outside, by bursts alone {blind}");
    assert!(outside * 20 <= all && blind * 5 > all, "{outside} and {blind} of {all}");
}

#[test]
fn what_was_not_sampled_may_be_all_of_a_node() {
    let mut seen = SeenIn::default();
    let window = || Some(vec![6000, 3000, 1000, 1000]);
    (0..1000).for_each(|_| {
        seen.add(
            &[true; 3],
            &[window(), window()],
            false,
            &UnsharedWindows::default(),
            BurstTime::of(0, &[Stratum::default(); 3]),
        )
    });
    let in_all = SeenInAll { excess: vec![0.0; 4], ..SeenInAll::default() };
    let told =
        |unsampled| shares(&sunny_cove(), &seen, Background::User(&in_all), unsampled).unwrap().shares[3];
    let (all, half) = (told(0.0), told(0.5));
    assert_eq!(all.value, half.value);
    // (a sixth of what was sampled: so large a part of the other half may be, or none of it)
    assert!((half.error() - all.error() - 0.5 * 5.0 / 6.0).abs() < 0.02, "{all:?} {half:?}");
}
