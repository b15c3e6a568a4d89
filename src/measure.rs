//! A closure, measured: what a Rust program needs that has one question.
#![forbid(unsafe_code)]

use crate::decode::decode_l1;
use crate::error::Result;
use crate::handle::TopDown;
use crate::options::Options;
use crate::sample::L1;
use crate::tree::{Node, decode_tree};

/// Where the slots of a closure went.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Level 1, with the bound on each share's error.
    pub l1: L1,
    /// Each node of the CPU's tree, with its own bound ([`Node::low`], [`Node::high`]).
    pub nodes: Vec<Node>,
}

/// Runs `work`, and tells where the slots of the calling thread went meanwhile, in user mode. It runs in any case, once; the error says
/// what keeps the library from measuring, and what to do about it.
///
/// Counters are opened for it, which takes half a million instructions: who measures often opens a [`TopDown`], and calls
/// [`TopDown::measure`].
///
/// ```
/// let (sum, measured) = topdown::measure(|| (0..100_000).map(std::hint::black_box).sum::<u64>());
/// match measured {
///     Ok(measured) => {
///         println!("{sum}: {:.1} % retiring, within {:.1} points", 100.0 * measured.l1.retiring, 100.0 * measured.l1.error);
///         for node in measured.nodes.iter().filter(|node| node.measured == 1) {
///             println!("{:30} {:.3} to {:.3}", node.name(), node.low, node.high);
///         }
///     }
///     Err(error) => println!("{sum}: not measured: {error}"),
/// }
/// ```
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Result<Measured>) {
    match TopDown::open(&Options::default()) {
        Ok(counters) => counters.measure(work),
        Err(error) => (work(), Err(error)),
    }
}

impl TopDown {
    /// As [`measure`](crate::measure), by this handle.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Result<Measured>) {
        let before = self.read();
        let value = work();
        let after = self.read();
        let measured = before.and_then(|before| {
            let after = after?;
            Ok(Measured { l1: decode_l1(Some(&before), &after)?, nodes: decode_tree(Some(&before), &after)? })
        });
        (value, measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_has_the_truth_within_its_bounds() {
        let counters = TopDown::open(&Options { simulate: true, ..Options::default() }).unwrap();
        let (sum, measured) = counters.measure(|| (0..1_000_000_u64).map(std::hint::black_box).sum::<u64>());
        let Measured { l1, nodes } = measured.unwrap();
        assert_eq!(sum, 499_999_500_000);
        assert!((l1.retiring - 0.4).abs() <= l1.error && (l1.backend_bound - 0.3).abs() <= l1.error);
        let retiring = nodes.iter().find(|node| node.name() == "tma_retiring").unwrap();
        assert!(retiring.low <= 0.4 && 0.4 <= retiring.high);
    }

    #[test]
    fn it_runs_once_in_any_case() {
        let mut runs = 0;
        let (value, measured) = measure(|| {
            runs += 1;
            7
        });
        assert_eq!((value, runs), (7, 1));
        assert!(
            measured.is_ok_and(|measured| measured.l1.slots > 0)
                || TopDown::open(&Options::default()).is_err()
        );
    }
}
