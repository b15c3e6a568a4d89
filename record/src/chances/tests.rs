use super::*;

const THREADS: usize = 300;
const FREQUENCY: f64 = 500.0;
const RATE: ChanceRate = ChanceRate { frequency: FREQUENCY, apart_ns: 0.0 };
const MS: f64 = 1e6;

/// A thread that ran last from then until then, and when a burst was asked for that did not come by then.
#[derive(Clone, Copy, Default)]
struct Simulated {
    ran: (u64, u64),
    asked: Option<u64>,
}

impl Simulated {
    fn runs(&self, now: u64) -> bool {
        self.ran.0 <= now && now < self.ran.1
    }

    fn waits(&self, now: u64) -> bool {
        self.asked.is_some_and(|asked| self.ran.1 <= asked || self.ran.0 > now)
    }
}

/// Two CPUs, on each of which a random thread of 300 runs for a stretch, and then another. Of each kind of threads the time of the first and of
/// the second halves of all stretches, by bursts and in truth; and how many bursts there were.
fn simulated(stretches: &[f64], seconds: f64, late_ns: f64) -> (Vec<[(f64, f64); 2]>, usize) {
    let mut chances = Chances::new(88_172_645_463_325_252);
    let mut random = Chances::new(4_101_842_887_655_102_017);
    let mut threads = vec![Simulated::default(); THREADS];
    let mut of_kind = vec![[(0.0, 0.0); 2]; stretches.len()];
    let mut bursts = 0;
    (0..THREADS).for_each(|tid| chances.joins(tid as i32, 0, RATE));
    let mut cpus = [0_u64; 2];
    // (shorter stretches come more often: each kind has as much of the time)
    let often: f64 = stretches.iter().map(|length| 1.0 / length).sum();
    while (cpus[0].min(cpus[1]) as f64) < seconds * 1e9 {
        let now = chances.next() + (late_ns * random.random()) as u64;
        for cpu in &mut cpus {
            while *cpu <= now {
                let mut chosen = random.random() * often;
                let kind = stretches.iter().position(|length| {
                    chosen -= 1.0 / length;
                    chosen < 0.0
                });
                let kind = kind.unwrap_or(stretches.len() - 1);
                let tid = loop {
                    let tid = (random.random() * THREADS as f64) as usize;
                    if tid % stretches.len() == kind && threads[tid].ran.1 <= *cpu {
                        break tid;
                    }
                };
                let length = (stretches[kind] * (0.5 + random.random())) as u64;
                threads[tid].ran = (*cpu, *cpu + length);
                of_kind[kind].iter_mut().for_each(|(_, truth)| *truth += length as f64 / 2.0);
                *cpu += length;
            }
        }
        for chance in chances.take(now, RATE, |tid| threads[tid as usize].waits(now)) {
            let thread = &mut threads[chance.tid as usize];
            thread.asked = Some(now);
            if thread.runs(now) {
                thread.asked = None;
                bursts += 1;
                let half = usize::from(now - thread.ran.0 > (thread.ran.1 - thread.ran.0) / 2);
                of_kind[chance.tid as usize % stretches.len()][half].0 += chance.weight_ns as f64;
            }
        }
    }
    (of_kind, bursts)
}

#[test]
fn time_is_true_whatever_stretches_threads_run_for() {
    for (late_ns, seconds, most) in [(0.0, 300.0, 0.03), (0.5 * MS, 100.0, 0.05)] {
        let stretches = [0.1 * MS, 1.0 * MS, 5.0 * MS, 50.0 * MS];
        let (kinds, bursts) = simulated(&stretches, seconds, late_ns);
        assert!(bursts as f64 > 250.0 * seconds, "{bursts}");
        for (stretch, kind) in stretches.iter().zip(kinds) {
            for (told, truth) in kind {
                // (of the shortest stretches there are 5,000 bursts and 1,700: this is two standard deviations)
                assert!((told / truth - 1.0).abs() < most, "{stretch} {late_ns}: {kind:?}");
            }
        }
    }
}

#[test]
fn the_two_threads_that_run_have_the_bursts() {
    let (_, bursts) = simulated(&[100.0 * MS], 20.0, 0.0);
    assert!((bursts as f64 / 20.0) > 0.9 * 2.0 * FREQUENCY, "{bursts}");
}

#[test]
fn a_thread_that_runs_has_a_chance_in_each_interval() {
    let mut chances = Chances::new(7);
    chances.joins(5, 1000, RATE);
    let interval = (1e9 / FREQUENCY) as u64;
    let (ran, mut sum) = (|_| false, 0.0);
    for k in 0..10_000 {
        let due = chances.next();
        let start = 1000 + k * interval;
        assert!((start..start + interval).contains(&due), "{k}: {due}");
        assert_eq!(chances.take(due - 1, RATE, ran), []);
        assert_eq!(chances.take(due, RATE, ran), [Chance { tid: 5, weight_ns: interval }]);
        sum += (due - start) as f64 / interval as f64;
    }
    assert!((sum / 10_000.0 - 0.5).abs() < 0.01);
    // a late one stands for that time, too
    let late = 1000 + 10_005 * interval;
    assert_eq!(chances.take(late, RATE, ran), [Chance { tid: 5, weight_ns: 5 * interval }]);
    assert!(chances.next() >= late);
}

#[test]
fn chances_are_apart_where_the_kernel_permits_no_more() {
    let mut chances = Chances::new(7);
    let apart = ChanceRate { apart_ns: 1e9, ..RATE };
    chances.joins(5, 0, apart);
    let mut last = None;
    for _ in 0..10_000 {
        let due = chances.next();
        assert_eq!(chances.take(due, apart, |_| false).len(), 1);
        assert!(last.is_none_or(|last| due - last >= (0.5e9 / FREQUENCY) as u64));
        last = Some(due);
    }
}

#[test]
fn more_threads_than_can_be_asked_have_fewer_chances() {
    let mut chances = Chances::new(7);
    (100..150).for_each(|tid| chances.joins(tid, 0, RATE));
    let mut asked = [0_usize; 2];
    for (second, asked) in (1..).zip(&mut asked) {
        while chances.next() < second * 1_000_000_000 {
            *asked += chances.take(chances.next(), RATE, |_| false).len();
        }
    }
    assert!((asked[1] as f64 - MOST_PER_SECOND).abs() < 0.02 * MOST_PER_SECOND, "{asked:?}");
}

#[test]
fn a_thread_that_has_gone_has_no_chance() {
    let mut chances = Chances::new(7);
    assert_eq!((chances.next(), chances.leaves(5)), (u64::MAX, u64::MAX));
    chances.joins(5, 0, RATE);
    let due = chances.next();
    assert_eq!((chances.leaves(5), chances.next()), (due, u64::MAX));
    chances.joins(6, 0, RATE);
    let due = chances.next();
    assert_eq!(chances.take(due, RATE, |_| true), []);
    let end = chances.next();
    assert!(end > due && end <= (1e9 / FREQUENCY) as u64);
    assert_eq!(chances.take(end, RATE, |_| true), []);
    let look = chances.next();
    assert!(look > end && look < u64::MAX);
    assert_eq!(chances.take(look, RATE, |_| true), []);
    assert!(chances.next() > look);
    assert_eq!(chances.leaves(6), chances.look);
    assert_eq!(chances.next(), u64::MAX);
}
