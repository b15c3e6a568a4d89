//! Sources of samples: SLOTS and PERF_METRICS in windows (`windowed`), general-purpose counters (`plain`), and PMUs that are not
//! there (`simulated`), which are read as either.
//!
//! Signal handlers may come between at any instruction, read the same source, and return or leave by siglongjmp. So what
//! readings go by is in cells: what takes effect as a whole is in a `ThreadValue`, and the rest is right, or seen not to be, after any
//! of its stores. Whoever closes a handle in such a signal handler drops a copy of its source, so what the source has on the heap
//! is given back only by `free`.
#![forbid(unsafe_code)]

/// A source's methods are there once, for whatever counts (`dyn`): these lead there.
macro_rules! source_of_any {
    ($source:ident<$counters:ident>) => {
        impl<C: $counters + 'static> Source for $source<C> {
            fn read(&self, shared: &Shared, seen: SeenRegisters, out: &mut Sample) -> Result<()> {
                $source::<dyn $counters>::read(self, shared, seen, out)
            }

            fn slots_only(&self, shared: &Shared) -> Result<SlotsOnly> {
                $source::<dyn $counters>::slots_only(self, shared)
            }

            fn read_fresh(&self, shared: &Shared, new: bool, out: &mut Sample) -> Result<bool> {
                $source::<dyn $counters>::read_fresh(self, shared, new, out)
            }

            fn reset(&self, shared: &Shared) -> Result<()> {
                $source::<dyn $counters>::reset(self, shared)
            }

            fn read_last(&self, shared: &Shared) -> Result<Sample> {
                $source::<dyn $counters>::read_last(self, shared)
            }

            fn mark(
                &self,
                shared: &Shared,
                seen: std::result::Result<&Sample, Option<Entry>>,
            ) -> Result<Mark> {
                $source::<dyn $counters>::mark(self, shared, seen)
            }

            fn sample_of(&self, mark: &Mark) -> Result<Sample> {
                $source::<dyn $counters>::sample_of(self, mark)
            }

            fn budget(&self) -> Option<Budget> {
                $source::<dyn $counters>::budget(self)
            }
        }
    };
}

pub(crate) mod plain;
mod remembered;
pub(crate) mod simulated;
pub(crate) mod windowed;

use crate::budget::Budget;
use crate::error::{Error, Result, TD_ESTALE};
use crate::read::{Entry, SeenRegisters, Shared};
use crate::registers::{RawMetrics, RawSlots, Registers};
use crate::sample::{CALLED, Mark, Sample, SlotsOnly};
use remembered::REMEMBERED;

/// What readings ask of a source.
pub(crate) trait Source {
    /// A reading where the fast path does not serve. `seen`: what the fast path saw of the registers before it gave up, if it
    /// saw anything; what has come since is the library's own work.
    fn read(&self, shared: &Shared, seen: SeenRegisters, out: &mut Sample) -> Result<()>;
    /// Totals without the categories, where the fast path does not serve.
    fn slots_only(&self, shared: &Shared) -> Result<SlotsOnly>;
    /// A reading that begins a measured execution. Returns whether it is as exact as such a reading is to be; one that the
    /// budget had nothing left for is not. `new`: of a region that was hardly measured yet.
    fn read_fresh(&self, shared: &Shared, new: bool, out: &mut Sample) -> Result<bool>;
    /// Starts a period.
    fn reset(&self, shared: &Shared) -> Result<()>;
    /// The last reading, which another thread than the handle's may take: what the kernel has counted.
    fn read_last(&self, shared: &Shared) -> Result<Sample>;
    /// A reading that `sample_of` finds again. `seen`: what the fast path read, or where the library's own work began.
    fn mark(&self, shared: &Shared, seen: std::result::Result<&Sample, Option<Entry>>) -> Result<Mark>;
    /// The sample of a mark.
    fn sample_of(&self, mark: &Mark) -> Result<Sample>;
    /// How windows are paid for; None: there are none.
    fn budget(&self) -> Option<Budget>;
}

/// How often a change is begun anew after a signal handler's own.
const MOST_TRIES: u32 = 64;

/// (A text that takes no memory: this may be in a signal handler.)
pub(crate) fn interrupted() -> Error {
    Error::errno(libc::EBUSY, "signal handlers used the handle again and again while this call was at work")
        .remedy("call again")
}

/// What a mark says of the registers.
fn registers_of(mark: &Mark) -> Result<Registers> {
    let registers = Registers { slots: RawSlots(mark.slots & !CALLED), metrics: RawMetrics(mark.metrics) };
    if registers.are_possible() { Ok(registers) } else { Err(no_mark()) }
}

fn no_mark() -> Error {
    Error::invalid("not a mark").why("counters have 48 bits")
}

fn stale_mark() -> Error {
    let what = format!(
        "the mark is of another handle, or from more than {REMEMBERED} context switches and windows ago"
    );
    Error::new(TD_ESTALE, what).remedy("make a sample of it soon after the region's end")
}
