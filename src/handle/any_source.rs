//! Where a handle's samples come from.
#![forbid(unsafe_code)]

use super::Handle;
use crate::error::Result;
use crate::group::{Group, HybridGroup, RelievedGroup};
use crate::source::Source;
use crate::source::plain::Plain;
use crate::source::simulated::{SimulatedCounters, SimulatedRegisters};
use crate::source::windowed::WindowedSource;
use crate::sys::Linux;
use crate::sys::guarded::drop_in_its_place;

/// Where a handle's samples come from.
pub(super) enum AnySource {
    Registers(Box<WindowedSource<Group<Linux>>>),
    /// With the memory that readings of the spare look at.
    Counters(Box<Plain<RelievedGroup<Linux>>>, Option<Handle>),
    /// Of both kinds of core; with the memory that readings of the second group look at.
    Hybrid(Box<Plain<HybridGroup<Linux>>>, Option<Handle>),
    SimulatedRegisters(Box<WindowedSource<SimulatedRegisters>>),
    SimulatedCounters(Box<Plain<SimulatedCounters>>),
}

impl AnySource {
    pub(super) fn source(&self) -> &dyn Source {
        match self {
            AnySource::Registers(source) => &**source,
            AnySource::Counters(source, _) => &**source,
            AnySource::Hybrid(source, _) => &**source,
            AnySource::SimulatedRegisters(source) => &**source,
            AnySource::SimulatedCounters(source) => &**source,
        }
    }

    /// Whether RDPMC of it may have faulted since it was opened.
    pub(super) fn may_have_faulted(&self) -> bool {
        match self {
            AnySource::Registers(source) => source.counters().may_have_faulted(),
            AnySource::Counters(source, _) => source.counters().main().may_have_faulted(),
            AnySource::Hybrid(source, _) => source.counters().may_have_faulted(),
            AnySource::SimulatedRegisters(_) | AnySource::SimulatedCounters(_) => false,
        }
    }

    /// Whether its group was on the counters all the while since it was opened.
    pub(super) fn had_its_turn_always(&self) -> Result<bool> {
        match self {
            AnySource::Registers(source) => source.counters().had_its_turn_always(),
            AnySource::Counters(source, _) => source.counters().main().had_its_turn_always(),
            _ => Ok(true),
        }
    }

    /// As `RelievedGroup::is_over`.
    pub(super) fn relief(&self) -> Option<(u32, bool)> {
        match self {
            AnySource::Counters(source, _) => source.counters().is_over(),
            _ => None,
        }
    }

    /// Before it is closed: a forked child that has copies of the descriptors does not keep it on the counters.
    pub(super) fn stop(&self) {
        match self {
            AnySource::Registers(source) => source.counters().stop(),
            AnySource::Counters(source, _) => source.counters().stop(),
            AnySource::Hybrid(source, _) => source.counters().stop(),
            AnySource::SimulatedRegisters(_) | AnySource::SimulatedCounters(_) => {}
        }
    }

    /// Ends it, where no call on it was interrupted.
    pub(super) fn free(&mut self) {
        match self {
            AnySource::Registers(source) => source.free(),
            AnySource::Counters(source, _) => source.free(),
            AnySource::Hybrid(source, _) => source.free(),
            AnySource::SimulatedRegisters(source) => source.free(),
            AnySource::SimulatedCounters(source) => source.free(),
        }
    }

    /// What a call that was interrupted may look at yet is not unmapped, but becomes zeros.
    pub(super) fn leave_zeros(&mut self) {
        match self {
            AnySource::Registers(source) => source.counters_mut().leave_zeros(),
            AnySource::Counters(source, _) => source.counters_mut().leave_zeros(),
            AnySource::Hybrid(source, _) => source.counters_mut().leave_zeros(),
            _ => {}
        }
    }

    /// What is open is closed; the memory stays.
    pub(super) fn drop_in_its_place(self) {
        match self {
            AnySource::Registers(source) => drop_in_its_place(source),
            AnySource::Counters(source, _) => drop_in_its_place(source),
            AnySource::Hybrid(source, _) => drop_in_its_place(source),
            AnySource::SimulatedRegisters(source) => drop_in_its_place(source),
            AnySource::SimulatedCounters(source) => drop_in_its_place(source),
        }
    }

    /// What a handle has besides its own memory.
    pub(super) fn second(&self) -> Option<Handle> {
        match self {
            AnySource::Counters(_, second) | AnySource::Hybrid(_, second) => *second,
            _ => None,
        }
    }

    /// In a forked child: the mappings are not there any more.
    pub(super) fn forget_mappings(&mut self) {
        match self {
            AnySource::Registers(source) => source.counters_mut().forget_mappings(),
            AnySource::Counters(source, _) => source.counters_mut().forget_mappings(),
            AnySource::Hybrid(source, _) => source.counters_mut().forget_mappings(),
            AnySource::SimulatedRegisters(_) | AnySource::SimulatedCounters(_) => {}
        }
    }
}
