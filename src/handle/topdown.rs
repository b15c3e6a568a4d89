//! The handle of Rust programs.
#![forbid(unsafe_code)]

use super::{
    Handle, Info, PeriodTotals, any_read, begin_steadily, close, end_counted, info, last_read, nodes,
    of_plain, open, reset, set_mix, set_per_cycle, simulated_sample, sum_begin, sum_empty, sum_end, switch,
};
use crate::error::Result;
use crate::options::Options;
use crate::sample::{Increments, Sample};
use crate::source::simulated::Mix;
use crate::sum::{Execution, Sum};
use crate::sys::page::Times;
use crate::sys::records::Records;
use crate::sys::signals::SignalBlock;
use crate::tree::Node;

/// An open handle, for Rust programs. It belongs to the thread that opened it.
///
/// ```
/// use topdown::{Options, TopDown};
/// let td = TopDown::open(&Options { simulate: true, ..Options::default() })?;
/// let before = td.read()?;
/// let work: u64 = (0..100_000).map(std::hint::black_box).sum();
/// let shares = topdown::decode_l1(Some(&before), &td.read()?)?;
/// println!("{work}: {:.0} % retiring, within {:.0} points", 100.0 * shares.retiring, 100.0 * shares.error);
/// # Ok::<(), topdown::Error>(())
/// ```
pub struct TopDown(Handle);

impl TopDown {
    /// Opens the counters and proves that they count.
    ///
    /// # Errors
    /// As `td_open`: the code says what keeps the library from measuring, the text what to do about it.
    pub fn open(options: &Options) -> Result<TopDown> {
        open(options, &SignalBlock::new()).map(TopDown)
    }

    /// Totals since the period began. A handful of instructions where RDPMC is possible.
    ///
    /// # Errors
    /// The operating system's, of read(2).
    #[inline]
    pub fn read(&self) -> Result<Sample> {
        any_read(self.0)
    }

    /// An execution of the sum's region begins, as `td_sum_begin`. Where general-purpose counters tell all of executions, `before` is what they
    /// counted in those that `end_counted` ended.
    ///
    /// # Errors
    /// Those of `read`.
    #[inline]
    pub fn begin(&self, sum: &mut Sum, before: &Increments) -> Result<()> {
        sum_begin(self.0, sum, before)
    }

    /// It ends, as `td_sum_end`; with the same `before`.
    ///
    /// # Errors
    /// Those of `read`; -EINVAL: none had begun; TD_ESTALE: a reset came between.
    #[inline]
    pub fn end(&self, sum: &mut Sum, before: &Increments) -> Result<PeriodTotals> {
        sum_end(self.0, sum, before)
    }

    /// As `begin`, if that takes a reading by the fast path alone; false: nothing happened. By the handle's own thread.
    #[inline(always)]
    pub fn begin_steadily(&self, sum: &mut Sum, before: &Increments) -> bool {
        begin_steadily(self.0.shared(), sum, before)
    }

    /// As `end`, if that takes a reading by the fast path alone; None: nothing happened. The caller adds the execution
    /// to the sum's before the next call of `begin` or `end`.
    #[inline(always)]
    pub fn end_steadily(&self, sum: &mut Sum) -> Option<(Execution, PeriodTotals)> {
        if !sum.is_counting() || sum.was_due() {
            return None;
        }
        let to = self.0.shared().slots_only_or_zero(); // which no execution began with
        sum.end_steadily(&to).map(|execution| (execution, PeriodTotals { slots: to.slots, ns: to.enabled }))
    }

    /// As `end_steadily`, where general-purpose counters tell all of the execution: what they counted in those before and in it goes into
    /// `after`, and the sum has none of these. By the handle's own thread.
    #[inline(always)]
    pub fn end_counted(&self, sum: &mut Sum, after: &mut Increments) -> Option<PeriodTotals> {
        end_counted(self.0.shared(), sum, after)
    }

    /// An execution begins, as `td_sum_begin`.
    ///
    /// # Errors
    /// Those of `read`.
    #[inline]
    pub(crate) fn begin_execution(&self, sum: &mut Sum) -> Result<()> {
        if super::sum_begin_steadily(self.0, sum) { Ok(()) } else { self.begin(sum, Increments::NONE) }
    }

    /// It ends, as `td_sum_end`.
    ///
    /// # Errors
    /// Those of `end`.
    #[inline]
    pub(crate) fn end_execution(&self, sum: &mut Sum) -> Result<PeriodTotals> {
        match super::end_one(self.0.shared(), sum) {
            Some(totals) => Ok(totals),
            None => self.end(sum, Increments::NONE),
        }
    }

    /// If an execution of nothing is due before the next: a sum to begin and end it with, as those are that are counted steadily. What
    /// it counted is for `Sum::add_empty`.
    #[inline]
    pub fn empty(&self, sum: &mut Sum) -> Option<Sum> {
        sum_empty(self.0, sum)
    }

    /// The last reading, for a process that ends: by any thread, while the owner may be at work. By read(2), so the
    /// bound is that of a handle on another thread. Afterwards readings fail, and `drop` alone is left.
    ///
    /// # Errors
    /// The operating system's, of read(2); -EBUSY: the owner is in a call on the handle.
    pub fn read_last(&self) -> Result<Sample> {
        last_read(self.0)
    }

    /// Starts a new period: earlier samples do not go with later ones.
    ///
    /// # Errors
    /// The operating system's, of read(2).
    pub fn reset(&self) -> Result<()> {
        reset(self.0)
    }

    /// Whether general-purpose counters count from now on; what they have counted stays. Switched off they leave the counters to another handle, and
    /// no time passes for them. (Those of others may be off from the start: `Options::off`.)
    ///
    /// # Errors
    /// The operating system's, of ioctl(2); -EINVAL: the handle has others.
    pub fn switch(&self, on: bool) -> Result<()> {
        switch(self.0, on)
    }

    /// The buffer into which the kernel writes records of threads (`Options::record_slots`).
    ///
    /// # Errors
    /// -EINVAL: the handle has none; the operating system's, of mmap(2).
    pub fn records(&self) -> Result<Records> {
        of_plain(self.0, |source| source.counters().main().records())
    }

    /// What a record says that a thread has counted, as a sample: with that of times and values of zero it gives the shares of all that
    /// the thread did.
    ///
    /// # Errors
    /// -EINVAL: the record is not one of this handle's.
    pub fn sample_of_record(&self, time: Times, values: &[u64]) -> Result<Sample> {
        of_plain(self.0, |source| {
            Ok(source.sample_of_counts(&source.counters().main().counts_of(time, values)?))
        })
    }

    /// What is measured, and how.
    ///
    /// # Errors
    /// In a forked child: TD_EWRONGTHREAD.
    pub fn info(&self) -> Result<Info> {
        info(self.0)
    }

    /// The nodes of the CPU's tree of metrics, and which of them this handle measures. Their figures are NaN: they come
    /// with [`decode_tree`](crate::decode_tree).
    ///
    /// # Errors
    /// In a forked child: TD_EWRONGTHREAD.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        nodes(self.0).map(Iterator::collect)
    }

    /// What simulated general-purpose counters count of others in so much of their time, of which the first are nanoseconds of work: with that of none
    /// it gives the shares of all that they did.
    ///
    /// # Errors
    /// -ENOTSUP: the handle has PERF_METRICS, or measures real counters.
    pub fn simulated_sample(&self, busy_ns: u64, time: Times) -> Result<Sample> {
        simulated_sample(self.0, busy_ns, time)
    }

    /// Sets how the slots of the simulated PMU divide from now on.
    ///
    /// # Errors
    /// -EINVAL: not a mix; -ENOTSUP: the handle measures real counters.
    pub fn set_mix(&self, mix: &Mix) -> Result<()> {
        set_mix(self.0, mix)
    }

    /// Sets what simulated general-purpose counters count in a cycle from now on, in the order of `Sample::counter`.
    ///
    /// # Errors
    /// -EINVAL: too many, or not between 0 and 64; -ENOTSUP: the handle has PERF_METRICS, or measures real counters.
    pub fn set_per_cycle(&self, per_cycle: &[f64]) -> Result<()> {
        set_per_cycle(self.0, per_cycle)
    }
}

impl Drop for TopDown {
    fn drop(&mut self) {
        close(self.0);
    }
}
