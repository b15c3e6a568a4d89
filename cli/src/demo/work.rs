//! The program that `topdown demo` shows: three functions, each of its own kind, and a second thread. (What is made up of a function follows from its
//! name: those of these are of their kinds.)
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// How long each function works.
const WORK: Duration = Duration::from_millis(200);
/// Links of the list, which no cache near the core holds: a power of 2.
const LINKS: u32 = 1 << 20;

/// Does some work.
pub fn run() -> ExitCode {
    let (links, numbers) = (links(), numbers());
    let other = thread::Builder::new().name("adder".into()).spawn(|| during(WORK / 2, || sum(1)));
    let mut place = 0;
    during(WORK, || {
        place = follow_links(&links, place);
        u64::from(place)
    });
    during(WORK, || count_odd(&numbers));
    during(WORK / 2, || sum(2));
    if let Ok(other) = other {
        let _ = other.join();
    }
    ExitCode::SUCCESS
}

/// Again and again, for so long.
fn during(long: Duration, mut work: impl FnMut() -> u64) {
    let begun = Instant::now();
    while begun.elapsed() < long {
        black_box(work());
    }
}

/// The next of a row that comes once to each number below a power of 2 (Hull and Dobell: of the factor less 1 is 4 a part, and what is added is odd).
fn next(number: u32) -> u32 {
    number.wrapping_mul(0x915f_77f5).wrapping_add(0x6d2b_79f5)
}

/// A list that goes once through all places, each far from the one before.
fn links() -> Vec<u32> {
    (0..LINKS).map(|place| next(place) % LINKS).collect()
}

fn numbers() -> Vec<u32> {
    let mut number = 1;
    let mut all = vec![0; 4096];
    for one in &mut all {
        number = next(number);
        *one = number >> 16; // (the lowest digits of the row come in turns)
    }
    all
}

/// Waits for memory: where the next link is, this one says.
#[inline(never)]
fn follow_links(links: &[u32], mut place: u32) -> u32 {
    let mut steps = 20_000_u32;
    while steps > 0 {
        place = links[place as usize];
        steps -= 1;
    }
    place
}

/// Branches on numbers that no predictor foresees.
#[inline(never)]
fn count_odd(numbers: &[u32]) -> u64 {
    let (mut odd, mut place) = (0, 0);
    while place < numbers.len() {
        if numbers[place] & 1 == 1 {
            odd = black_box(odd + 1);
        }
        place += 1;
    }
    odd
}

/// Waits for nothing.
#[inline(never)]
fn sum(step: u64) -> u64 {
    let (mut sum, mut number) = (0_u64, 0);
    while number < 100_000 {
        sum = black_box(sum) + step;
        number += 1;
    }
    sum
}
