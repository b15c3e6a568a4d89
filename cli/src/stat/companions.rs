//! Companion figures of a count whose groups took turns: each event is estimated from the turns in which it was counted, and each figure
//! follows from such estimates (docs/error-bound-sums.md, Companion figures).
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use topdown::{CompanionMetric, CountPlace, SampledTurns, Sum, TD_NODE_NONE};
use topdown_record::{FEWEST_LATENCIES, LONGEST_LATENCY, TimedSamples};
use topdown_report::model::CompanionFigure;

/// What the figures take of the turns.
#[derive(Debug, Default)]
pub struct WantedCompanions {
    pub metrics: Rc<Vec<CompanionMetric>>,
    /// `Options::group` of each turn, if it counts for them; else 0.
    pub groups: Vec<u32>,
    /// Retire latencies are published constants of some machine, and not of this program.
    pub has_published_latencies: bool,
}

/// What the turns of one group counted: sums, each turn as many times as it stands for, and sums of products.
#[derive(Clone, Default)]
pub struct TurnCounts {
    turns: u64,
    /// Slots, unweighted.
    slots: f64,
    /// Slots, then what `index` says.
    sums: Vec<f64>,
    /// Of each two of these.
    products: Vec<f64>,
    /// The most of each in a slot.
    most: Vec<f64>,
    /// What samples of each event told that were taken beside.
    timed: Vec<TimedSamples>,
}

impl TurnCounts {
    /// Adds a turn, which stands for so many, with what was sampled beside it.
    pub fn add(&mut self, sum: &Sum, timed: &[TimedSamples], weight: f64) {
        let counted = [sum.slots].into_iter().chain(sum.counted).map(|count| count as f64);
        let of_samples = timed.iter().flat_map(|told| [told.latencies, told.events]);
        let counts: Vec<f64> = counted.chain(of_samples).collect();
        self.timed.resize(timed.len(), TimedSamples::default());
        self.timed.iter_mut().zip(timed).for_each(|(all, told)| all.add(told));
        let size = counts.len();
        self.sums.resize(size, 0.0);
        self.most.resize(size, 0.0);
        self.products.resize(size * size, 0.0);
        self.turns += 1;
        self.slots += counts[0];
        for (k, count) in counts.iter().enumerate() {
            self.sums[k] += weight * count;
            self.most[k] = self.most[k].max(count / counts[0]);
            for (l, other) in counts.iter().enumerate() {
                self.products[k * size + l] += weight * count * weight * other;
            }
        }
    }

    /// Those since then.
    pub fn since(&self, then: Option<&TurnCounts>) -> TurnCounts {
        let Some(then) = then.filter(|then| then.turns > 0) else { return self.clone() };
        let less = |all: &[f64], then: &[f64]| all.iter().zip(then).map(|(all, then)| all - then).collect();
        TurnCounts {
            turns: self.turns - then.turns,
            slots: self.slots - then.slots,
            sums: less(&self.sums, &then.sums),
            products: less(&self.products, &then.products),
            most: self.most.clone(),
            timed: self.timed.iter().enumerate().map(|(k, all)| all.since(then.timed.get(k))).collect(),
        }
    }

    /// What samples told of this one of the events that are sampled.
    fn timed_at(&self, event: usize) -> TimedSamples {
        self.timed.get(event).copied().unwrap_or_default()
    }

    /// What there may be more of what samples tell at this place, of which so much is told: events that no sample stands for, with the longest
    /// latencies that their field holds.
    fn unsampled_at(&self, place: CountPlace, count: f64) -> f64 {
        let (CountPlace::Latencies(event) | CountPlace::Timed(event)) = place else { return 0.0 };
        let told = self.timed_at(event);
        if told.events == 0.0 {
            return 0.0;
        }
        let events = told.unsampled() / told.events;
        match place {
            CountPlace::Latencies(_) if told.latencies == 0.0 => 0.0,
            CountPlace::Latencies(_) => {
                count / (told.latencies / told.events) * events * LONGEST_LATENCY as f64
            }
            CountPlace::Timed(_) | CountPlace::Counter(_) => count * events,
        }
    }

    /// None: there were none.
    fn sample(&self) -> Option<SampledTurns> {
        let slots = *self.sums.first()?;
        let squares = self.product(0, 0);
        Some(SampledTurns { turns: self.turns, counted: self.slots, slots, squares })
    }

    fn product(&self, k: usize, l: usize) -> f64 {
        self.products[k * self.sums.len() + l]
    }
}

/// All that was counted, of which turns tell a part.
pub struct WholeCount {
    pub turns: u64,
    pub slots: f64,
    /// Some turns were likelier than others.
    pub is_weighted: bool,
    /// What may have passed in the time in which threads ran and nothing was counted: no more slots than this,
    pub uncounted: f64,
    /// and as likely as not so many.
    pub likely_uncounted: f64,
    /// Of a cycle.
    pub slots_per_cycle: f64,
    /// From start to end.
    pub wall: Duration,
}

/// What a figure takes, estimated.
struct Estimates {
    counts: Vec<f64>,
    /// By the groups that counted them.
    groups: Vec<GroupEstimates>,
    /// What of each may have passed uncounted.
    more: Vec<f64>,
}

/// Of one group: how far what it counted may be off.
struct GroupEstimates {
    /// Which of the counts are its.
    places: Vec<usize>,
    /// Of each two of these the covariance, times the square of the standard errors that are reckoned with.
    spread: Vec<Vec<f64>>,
    /// The part of all slots that it has counted.
    part: f64,
}

/// The figures that were asked for.
pub fn figures(
    wanted: &WantedCompanions,
    counted: &BTreeMap<u32, TurnCounts>,
    whole: &WholeCount,
) -> Vec<CompanionFigure> {
    let of = |companion| figure(companion, counted, whole, wanted.has_published_latencies);
    wanted.metrics.iter().map(of).collect()
}

fn figure(
    companion: &CompanionMetric,
    counted: &BTreeMap<u32, TurnCounts>,
    whole: &WholeCount,
    is_published: bool,
) -> CompanionFigure {
    let none = CompanionFigure {
        name: companion.name.clone(),
        unit: companion.unit.clone(),
        why: companion.untold.clone(),
        ..CompanionFigure::default()
    };
    if !none.why.is_empty() {
        return none;
    }
    let places: Vec<(u32, CountPlace)> = companion.places().collect();
    let latencies = latencies(&places, counted);
    let estimated = estimates(&places, counted, whole);
    let sampled =
        estimated.and_then(|estimates| match unsampled(companion, &latencies, &estimates, counted) {
            Some(_) if is_published => Err("no retire latency of its events is published".into()),
            Some(why) => Err(why),
            None => Ok(estimates),
        });
    match sampled {
        Err(why) => CompanionFigure { why, ..none },
        Ok(estimates) => {
            let estimates = estimates.with_slots(whole);
            let seconds = whole.wall.as_secs_f64();
            let told = |counts: &[f64]| match counts.split_last() {
                Some((slots, counts)) => companion.value(*slots, seconds, counts),
                None => f64::NAN,
            };
            let [value, low, high] = estimates.value_and_bounds(told, companion.bends());
            let why = if value.is_some() { "" } else { "nothing was seen of what it is divided by" };
            // (what was not counted is the likeliest as the rest: of a share of counts that is nothing, of a rate it is some)
            let all = 1.0 + whole.likely_uncounted / whole.slots;
            let scaled: Vec<f64> = estimates.counts.iter().map(|count| count * all).collect();
            let likely = value.and(Some(told(&scaled)).filter(|likely| likely.is_finite()));
            let likely = likely.map(|likely| high.map_or(likely, |high| likely.min(high)));
            let value = likely.map(|likely| low.map_or(likely, |low| likely.max(low)));
            // (a latency that its field does not hold, or of an event that was not seen, may be of any length: a node is more or less with it)
            let is_open = latencies.iter().any(|told| {
                told.saturated > 0 || told.samples == 0 || told.latencies == 0.0 && told.unsampled() > 0.0
            });
            let is_constant = is_published && !latencies.is_empty();
            let high = high.filter(|_| !is_open && !is_constant);
            let low = low.filter(|_| !is_constant && (!is_open || companion.node == TD_NODE_NONE));
            CompanionFigure { value, low, high, why: why.into(), ..none }
        }
    }
}

/// What samples told of each retire latency at these places.
fn latencies(places: &[(u32, CountPlace)], counted: &BTreeMap<u32, TurnCounts>) -> Vec<TimedSamples> {
    let of_place = |(group, place): &(u32, CountPlace)| match place {
        CountPlace::Latencies(event) => {
            Some(counted.get(group).map_or(TimedSamples::default(), |group| group.timed_at(*event)))
        }
        CountPlace::Counter(_) | CountPlace::Timed(_) => None,
    };
    places.iter().filter_map(of_place).collect()
}

/// Why retire latencies that a figure takes are not known; None: they are, or there are none.
fn unsampled(
    companion: &CompanionMetric,
    latencies: &[TimedSamples],
    estimates: &Estimates,
    counted: &BTreeMap<u32, TurnCounts>,
) -> Option<String> {
    if latencies.is_empty() {
        return None;
    }
    let all = counted.values().flat_map(|group| &group.timed);
    let (samples, cycles) =
        all.fold((0, 0.0), |(samples, cycles), told| (samples + told.samples, cycles + told.latencies));
    if samples >= FEWEST_LATENCIES && cycles == 0.0 {
        return Some("samples have no retire latency with this kernel, or on this CPU".into());
    }
    if let Some(event) = companion.unsampled(&estimates.counts) {
        return Some(format!("{} was not sampled", event.to_lowercase()));
    }
    let few = latencies.iter().find(|told| (1..FEWEST_LATENCIES).contains(&told.samples));
    few.map(|told| format!("only {} samples of an event tell its retire latency", told.samples))
}

/// Where `TurnCounts` sum this, behind the slots: the counters, then what samples of each event tell.
fn index(place: CountPlace) -> usize {
    let behind = 1 + Sum::default().counted.len();
    match place {
        CountPlace::Counter(k) => 1 + k,
        CountPlace::Latencies(k) => behind + 2 * k,
        CountPlace::Timed(k) => behind + 2 * k + 1,
    }
}

/// Of counts at these places of groups. What is wrong: why they are not told.
fn estimates(
    places: &[(u32, CountPlace)],
    counted: &BTreeMap<u32, TurnCounts>,
    whole: &WholeCount,
) -> Result<Estimates, String> {
    let mut groups: Vec<GroupEstimates> = Vec::new();
    let (mut counts, mut more) = (vec![0.0; places.len()], vec![0.0; places.len()]);
    let numbers: BTreeSet<u32> = places.iter().map(|(group, _)| *group).collect();
    let all_turns = (!whole.is_weighted).then_some(whole.turns);
    for number in numbers {
        let told = counted.get(&number).and_then(|group| {
            let sample = group.sample()?;
            Some((group, sample.spread(all_turns, whole.slots)?, sample.unseen(whole.slots)))
        });
        let Some((group, spread, unseen)) = told else {
            return Err("its events were counted in too few turns".into());
        };
        let scale = whole.slots / group.sums[0];
        let own: Vec<usize> = (0..places.len()).filter(|k| places[*k].0 == number).collect();
        for k in &own {
            let place = index(places[*k].1);
            counts[*k] = group.sums[place] * scale;
            let (mean, most) = (counts[*k] / whole.slots, group.most[place]);
            // (what is seldom may be in so many turns without being seen in one; of what never was seen there is no more than one in a cycle)
            let seldom = if most > 0.0 { most } else { 1.0 / whole.slots_per_cycle };
            more[*k] = most * whole.uncounted + unseen * (seldom - mean).max(0.0) * whole.slots;
            more[*k] += group.unsampled_at(places[*k].1, counts[*k]);
        }
        let of_pair = |k: usize, l: usize| {
            let (a, b) = (index(places[k].1), index(places[l].1));
            let (rate_a, rate_b) = (counts[k] / whole.slots, counts[l] / whole.slots);
            let residuals = group.product(a, b) - rate_a * group.product(0, b) - rate_b * group.product(0, a)
                + rate_a * rate_b * group.product(0, 0);
            // (what one is more or less)
            spread * scale * scale * if k == l { residuals.max(0.0) + 1.0 } else { residuals }
        };
        let spread = own.iter().map(|k| own.iter().map(|l| of_pair(*k, *l)).collect()).collect();
        groups.push(GroupEstimates { places: own, spread, part: group.slots / whole.slots });
    }
    Ok(Estimates { counts, groups, more })
}

impl GroupEstimates {
    /// How the counts are off together that change such a function the most, and by how much they do that.
    fn along(&self, slopes: &[f64]) -> (Vec<f64>, f64) {
        let own: Vec<f64> = self.places.iter().map(|k| slopes[*k]).collect();
        let times = |row: &Vec<f64>| row.iter().zip(&own).map(|(spread, slope)| spread * slope).sum();
        let along: Vec<f64> = self.spread.iter().map(times).collect();
        let far = along.iter().zip(&own).map(|(along, slope)| along * slope).sum::<f64>().max(0.0).sqrt();
        (along, far)
    }
}

impl Estimates {
    /// With all slots behind the counts: of these nothing is estimated, but what passed uncounted had some.
    fn with_slots(mut self, whole: &WholeCount) -> Estimates {
        self.counts.push(whole.slots);
        self.more.push(whole.uncounted);
        self
    }

    /// A function of the counts, and the ends of its interval: its values where the counts are as far off as their errors go, in the direction in
    /// which it changes the most, with what was not counted. Where it `bends`, it changes in other directions elsewhere: its ends in these are
    /// among them. None: no number, or no end.
    fn value_and_bounds(&self, of: impl Fn(&[f64]) -> f64, bends: bool) -> [Option<f64>; 3] {
        let value = Some(of(&self.counts)).filter(|value| value.is_finite());
        let mut directions = vec![slopes(&of, &self.counts)];
        // (what is moved to nothing may be one event, too: the last that a choice does not see as nothing)
        let mut least_counts = vec![0.0];
        if bends {
            let elsewhere = self.corners().into_iter().map(|corner| slopes(&of, &corner));
            directions.extend(elsewhere.filter(|slopes| slopes.iter().all(|slope| slope.is_finite())));
            least_counts.push(1.0);
        }
        let moved = |sign: f64, slopes: &[f64], least: f64| -> Vec<f64> {
            let all = self.counts.iter().zip(self.along(slopes)).enumerate();
            all.map(|(k, (count, off))| {
                let more = if sign * slopes[k] > 0.0 { self.more[k] } else { 0.0 };
                (count + sign * off).max(count.min(least)) + more
            })
            .collect()
        };
        let end = |sign: f64| {
            let of_all =
                directions.iter().flat_map(|slopes| least_counts.iter().map(move |least| (slopes, *least)));
            let ends = of_all.map(|(slopes, least)| of(&moved(sign, slopes, least)));
            let ends: Option<Vec<f64>> = ends.map(|end| Some(end).filter(|end| end.is_finite())).collect();
            // (where it bends, an end may be on the other side)
            let further = |a: f64, b: f64| if sign < 0.0 { a.min(b) } else { a.max(b) };
            ends?.into_iter().chain(value).reduce(further)
        };
        [value, end(-1.0), end(1.0)]
    }

    /// How the counts are off that change a function of these slopes the most.
    fn along(&self, slopes: &[f64]) -> Vec<f64> {
        let (mut off, mut fars) = (vec![0.0; self.counts.len()], Vec::new());
        for group in &self.groups {
            let (along, far) = group.along(slopes);
            group.places.iter().zip(along).for_each(|(place, along)| off[*place] = along);
            fars.push((far, (group.part / (1.0 - group.part)).sqrt()));
        }
        let squares: f64 = fars.iter().map(|(far, _)| far * far).sum();
        // (a turn of one group is none of another: where that had more of a phase this had less, by as much as they could have)
        let shared: f64 = (0..fars.len())
            .flat_map(|k| (0..k).map(move |l| (k, l)))
            .map(|(k, l)| 2.0 * fars[k].0 * fars[l].0 * (fars[k].1 * fars[l].1).min(1.0))
            .sum();
        let far = if squares > 0.0 { (squares + shared).sqrt() / squares } else { 0.0 };
        off.into_iter().map(|off| far * off).collect()
    }

    /// The counts where each is as far off as it may be, in both directions, and the others with it.
    fn corners(&self) -> Vec<Vec<f64>> {
        let mut corners = Vec::new();
        for (k, sign) in (0..self.counts.len()).flat_map(|k| [(k, -1.0), (k, 1.0)]) {
            let mut slopes = vec![0.0; self.counts.len()];
            slopes[k] = 1.0;
            let moved = self.counts.iter().zip(self.along(&slopes)).zip(&self.more).enumerate();
            corners.push(
                moved
                    .map(|(place, ((count, off), more))| {
                        let more = if place == k && sign > 0.0 { *more } else { 0.0 };
                        (count + sign * off).max(0.0) + more
                    })
                    .collect(),
            );
        }
        corners
    }
}

/// How much a function changes with each of these counts.
fn slopes(of: &impl Fn(&[f64]) -> f64, counts: &[f64]) -> Vec<f64> {
    let slope = |k: usize| {
        let step = (counts[k] * 1e-6).max(1e-3);
        let at = |by: f64| {
            let mut moved = counts.to_vec();
            moved[k] += by;
            of(&moved)
        };
        // (no count is below nothing)
        if counts[k] >= step { (at(step) - at(-step)) / (2.0 * step) } else { (at(step) - at(0.0)) / step }
    };
    (0..counts.len()).map(slope).collect()
}

/// What each turn counts for these figures, by its group; nothing where none is wanted.
pub fn wanted_of(
    metrics: &Rc<Vec<CompanionMetric>>,
    groups: impl Iterator<Item = u32>,
    has_published_latencies: bool,
) -> Option<Rc<WantedCompanions>> {
    let taken = groups_of(metrics);
    let groups = groups.map(|group| if taken.contains(&group) { group } else { 0 }).collect();
    (!metrics.is_empty())
        .then(|| Rc::new(WantedCompanions { metrics: Rc::clone(metrics), groups, has_published_latencies }))
}

/// The groups that count these: `Options::group` of each.
pub fn groups_of(metrics: &[CompanionMetric]) -> BTreeSet<u32> {
    metrics.iter().flat_map(CompanionMetric::places).map(|(group, _)| group).collect()
}

#[cfg(test)]
mod tests;
