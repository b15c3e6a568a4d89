//! A stratum in cells of time, of some bursts and some samples of the clock each: where bursts of one function come more often for their time than bursts
//! of another, the difference may change with time, too. Where a stratum is cut depends on when bursts came alone, and not on what they counted.
#![forbid(unsafe_code)]

/// When a burst or a sample of the clock was, and its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    pub at: u64,
    pub place: usize,
}

/// Samples of the clock and bursts of each cell, by their places: no fewer than `fewest` of either, or all.
pub(super) fn cells(
    mut samples: Vec<Instant>,
    mut bursts: Vec<Instant>,
    fewest: usize,
) -> Vec<(Vec<usize>, Vec<usize>)> {
    let when = |one: &Instant| (one.at, one.place);
    samples.sort_unstable_by_key(when);
    bursts.sort_unstable_by_key(when);
    let mut all = Vec::new();
    let mut left = vec![(&samples[..], &bursts[..])];
    while let Some((samples, bursts)) = left.pop() {
        match cut(samples, bursts, fewest) {
            Some((sample, burst)) => {
                left.push((&samples[..sample], &bursts[..burst]));
                left.push((&samples[sample..], &bursts[burst..]));
            }
            None => {
                let places = |all: &[Instant]| all.iter().map(|one| one.place).collect();
                all.push((places(samples), places(bursts)));
            }
        }
    }
    all
}

/// Where to cut: before which sample and which burst, as near to the middle of the bursts as can be. None: nowhere.
fn cut(samples: &[Instant], bursts: &[Instant], fewest: usize) -> Option<(usize, usize)> {
    // (in the middle between two bursts that were not at once)
    let between = |burst: usize| {
        let (before, behind) = (bursts[burst - 1].at, bursts[burst].at);
        let middle = before + (behind - before).div_ceil(2);
        let sample = samples.partition_point(|sample| sample.at < middle);
        let enough = before < behind && fewest <= sample.min(samples.len() - sample);
        enough.then_some((sample, burst))
    };
    let middle = bursts.len() / 2;
    (fewest..bursts.len().saturating_sub(fewest) + 1)
        .filter_map(between)
        .min_by_key(|(_, burst)| burst.abs_diff(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(all: &[u64]) -> Vec<Instant> {
        all.iter().copied().zip(0..).map(|(at, place)| Instant { at, place }).collect()
    }

    #[test]
    fn a_cell_has_bursts_and_samples_enough_and_each_is_in_one() {
        let samples = [1, 2, 3, 4, 5, 6, 91, 92];
        let cells = cells(at(&samples), at(&[10, 20, 30, 40, 50, 60, 95, 96]), 2);
        // (between 60 and 95, where two samples are on the right: nearer to the middle there are none)
        assert_eq!(cells.len(), 2);
        let mut all: [Vec<usize>; 2] = Default::default();
        for (samples, bursts) in &cells {
            assert!(samples.len() >= 2 && bursts.len() >= 2, "{cells:?}");
            all[0].extend(samples);
            all[1].extend(bursts);
        }
        all.iter_mut().for_each(|places| places.sort_unstable());
        assert_eq!(all, [(0..8).collect::<Vec<_>>(), (0..8).collect()]);
    }

    #[test]
    fn what_came_at_once_is_not_cut() {
        assert_eq!(cells(at(&[0; 30]), at(&[0; 30]), 2).len(), 1);
        assert_eq!(cells(at(&[]), at(&[]), 2), [(vec![], vec![])]);
    }
}
