//! What groups counted from one reading to the next, of each kind of core.
#![forbid(unsafe_code)]

use super::drill;
use super::group::GroupCount;
use super::group::{GroupTarget, Reading, StatGroup};
use super::ipc::IpcCounts;
use super::stretches::CountedStretches;
use topdown::{Error, Node, Sample, Sum};

/// What was counted from one reading to the next.
#[derive(Clone, Default)]
pub struct StatFigures {
    /// Of groups that took turns: slots and times alone.
    pub sum: Sum,
    /// If they did: the stretches.
    pub stretches: Option<CountedStretches>,
    /// None: not counted, or not all the time.
    pub ipc: Option<IpcCounts>,
}

impl StatFigures {
    /// Those from one sample to another.
    ///
    /// # Errors
    /// Those of [`Sum::add`].
    pub fn between(from: &Sample, to: &Sample) -> Result<StatFigures, Error> {
        let reading = |sample: &Sample| Reading { sample: *sample, ..Reading::default() };
        let mut figures = StatFigures::default();
        figures.add(&reading(from), &reading(to))?;
        Ok(figures)
    }

    /// Adds those of another part of the same kind of cores.
    fn add(&mut self, from: &Reading, to: &Reading) -> Result<(), Error> {
        let is_first = self.sum.time_enabled_ns == 0 && self.sum.executions == 0;
        let (first, last) = (&from.sample, &to.sample);
        if let Some(stretches) = &to.stretches {
            self.stretches = Some(
                from.stretches.as_ref().map_or_else(|| (**stretches).clone(), |then| stretches.since(then)),
            );
            let slots = last.slots - first.slots;
            let counted = u64::from(slots > 0);
            self.sum = Sum {
                slots,
                measured_slots: slots,
                executions: counted,
                measured: counted,
                time_enabled_ns: last.time_enabled_ns - first.time_enabled_ns,
                time_running_ns: last.time_running_ns - first.time_running_ns,
                from: *last, // of which cores it is
                last: *last,
                ..Sum::default()
            };
            return Ok(());
        }
        if last.slots == first.slots {
            // (an execution that was not measured would be unknown)
            self.sum.time_enabled_ns += last.time_enabled_ns - first.time_enabled_ns;
            self.sum.time_running_ns += last.time_running_ns - first.time_running_ns;
            self.sum.from = *first; // of which cores it is
        } else {
            self.sum.add(first, last)?;
        }
        let ran = last.time_running_ns - first.time_running_ns;
        let both = from.ipc.zip(to.ipc).and_then(|(from, to)| to.since(&from, ran));
        let stood_still = (first.time_enabled_ns, first.slots) == (last.time_enabled_ns, last.slots);
        self.ipc = match self.ipc {
            _ if is_first => both,
            all if stood_still => all,
            all => all.zip(both).map(|(all, both)| all.plus(&both)),
        };
        Ok(())
    }

    /// The nodes of the tree of metrics, those that were not measured, too; none, if nothing was counted.
    pub fn nodes(&self) -> Vec<Node> {
        drill::of_tree(self.all_nodes())
    }

    /// These, and what bottlenecks take besides.
    pub fn all_nodes(&self) -> Vec<Node> {
        let Some(stretches) = &self.stretches else { return self.sum.decode_tree().unwrap_or_default() };
        let uncounted = stretches.gaps().uncounted(&self.sum);
        let part = if uncounted > 0.0 { uncounted / (uncounted + self.sum.slots as f64) } else { 0.0 };
        stretches.nodes(part)
    }
}

/// The figures of some groups for each PMU, the first to come first; with the first group that has it.
///
/// # Errors
/// Those of [`Sum::add`].
pub fn by_pmu<'c>(
    counted: impl IntoIterator<Item = &'c GroupCount<'c>>,
) -> Result<Vec<(&'c StatGroup, StatFigures)>, Error> {
    let mut kinds: Vec<(&StatGroup, StatFigures)> = Vec::new();
    for one in counted {
        let place = kinds.iter().position(|(group, _)| group.info.pmu == one.group.info.pmu);
        let place = place.unwrap_or_else(|| {
            kinds.push((one.group, StatFigures::default()));
            kinds.len() - 1
        });
        kinds[place].1.add(&one.from, &one.to)?;
    }
    Ok(kinds)
}

/// Of several kinds of cores each is enabled all the time: of that, a kind's is what it counted, and what none has counted. They are
/// not read at once; where one alone has counted, its own reading tells how long that was.
pub fn apart(kinds: &mut [(&StatGroup, StatFigures)]) {
    if kinds.len() < 2 || kinds.iter().any(|(group, _)| matches!(group.of, GroupTarget::Cpu(_))) {
        return;
    }
    let times =
        |(_, figures): &(&StatGroup, StatFigures)| (figures.sum.time_enabled_ns, figures.sum.time_running_ns);
    let all: Vec<(u64, u64)> = kinds.iter().map(times).collect();
    let mut counted = all.iter().filter(|(_, running)| *running > 0);
    let enabled = match (counted.next(), counted.next()) {
        (Some((enabled, _)), None) => *enabled,
        _ => all.iter().map(|(enabled, _)| *enabled).max().unwrap_or(0),
    };
    let none = enabled.saturating_sub(all.iter().map(|(_, running)| running).sum());
    for (_, figures) in kinds {
        figures.sum.time_enabled_ns = figures.sum.time_running_ns + none;
    }
}
