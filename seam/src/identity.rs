//! A number that no other handle has, in this process or another, of this boot or another.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

/// Such a number.
pub fn unique() -> u64 {
    of(random())
}

/// The kernel's random numbers, and what tells execs, forks and calls apart where it gives none (a seccomp filter, or early
/// in a boot). A forked child has a copy of all that is in memory: it differs by its process id and the time.
fn of(random: Option<[u64; 2]>) -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new();
    (random, of_exec(), process::id()).hash(&mut hasher);
    (SystemTime::now(), Instant::now(), CALLS.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
    hasher.finish()
}

/// From getrandom(2). Not libc's function: programs replace it to repeat their runs.
fn random() -> Option<[u64; 2]> {
    let mut words = [0_u64; 2];
    let size = size_of_val(&words);
    // SAFETY: as many bytes as there is room for, and any make a number.
    let got = unsafe { libc::syscall(libc::SYS_getrandom, words.as_mut_ptr(), size, libc::GRND_NONBLOCK) };
    (usize::try_from(got) == Ok(size)).then_some(words)
}

/// The 16 random bytes that the kernel gives each exec.
fn of_exec() -> Option<[u8; 16]> {
    // SAFETY: getauxval has no preconditions.
    let at = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    // SAFETY: what AT_RANDOM points to is there as long as the process.
    (!at.is_null()).then(|| unsafe { at.read() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_alike_with_random_numbers_or_without() {
        let numbers: HashSet<u64> =
            (0..20_000).map(|k| if k % 2 == 0 { unique() } else { of(None) }).collect();
        assert_eq!(numbers.len(), 20_000);
    }
}
