//! Texts and things that a program made up once and names again and again: found without a lock, and without an
//! allocation after the first time. They stay for good, so whoever has one may keep it.

use crate::at_work::AtWork;
use crate::memory;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// As many things as a table holds. Programs name dozens.
const SLOTS: usize = 4096;

/// Bytes that are allocated for one of them at most, but for its texts.
const MADE: usize = 1 << 15;

struct InternerEntry<T> {
    key: Box<[u8]>,
    thing: T,
}

/// Things by their keys.
pub struct Interner<T>([AtomicPtr<InternerEntry<T>>; SLOTS]);

impl<T: Sync + 'static> Interner<T> {
    pub const fn new() -> Self {
        Interner([const { AtomicPtr::new(null_mut()) }; SLOTS])
    }

    /// The thing of this key, `make` if there is none, and its place; `make` allocates no more than some texts of the key's length,
    /// or of a symbol's. None: the table is full, or there is no memory.
    pub fn find(&self, key: &[u8], make: impl FnOnce() -> T) -> Option<(usize, &'static T)> {
        let first = hash(key) as usize;
        let mut made = null_mut();
        let mut make = Some(make);
        for place in (0..SLOTS).map(|step| (first + step) % SLOTS) {
            let mut entry = self.0[place].load(Ordering::Acquire);
            if entry.is_null() {
                if let Some(make) = make.take() {
                    let _work = AtWork::new();
                    if !memory::secure(MADE + 4 * key.len()) {
                        return None;
                    }
                    made = Box::into_raw(Box::new(InternerEntry { key: key.into(), thing: make() }));
                }
                match self.0[place].compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        // SAFETY: what is in the table stays.
                        return Some((place, unsafe { &(*made).thing }));
                    }
                    Err(other) => entry = other,
                }
            }
            // SAFETY: as above.
            let found = unsafe { &*entry };
            if *found.key == *key {
                if !made.is_null() {
                    // SAFETY: it came from a box and into no table: another thread was first.
                    drop(unsafe { Box::from_raw(made) });
                }
                return Some((place, &found.thing));
            }
        }
        None
    }

    /// The thing at a place that `find` gave.
    pub fn at(&self, place: usize) -> Option<&'static T> {
        let entry = self.0.get(place)?.load(Ordering::Acquire);
        // SAFETY: what is in the table stays.
        unsafe { entry.as_ref() }.map(|entry| &entry.thing)
    }
}

/// One word more in a hash; the last one's bits reach all of it.
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn hash(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
    let hash =
        words.fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_ne_bytes(word.try_into().unwrap())));
    mix(hash, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_key_has_one_thing_and_one_place_whoever_asks_first() {
        static TABLE: Interner<String> = Interner::new();
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..1000)
                            .map(|n: u32| {
                                let key = format!("name {n}");
                                let (place, thing) = TABLE.find(key.as_bytes(), || key.clone()).unwrap();
                                assert_eq!(*thing, key);
                                assert!(std::ptr::eq(TABLE.at(place).unwrap(), thing));
                                (place, std::ptr::from_ref(thing) as usize)
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| *one == all[0]));
        assert_eq!(all[0].iter().collect::<HashSet<_>>().len(), 1000);
    }

    #[test]
    fn a_full_table_says_so_and_knows_what_it_has() {
        static TABLE: Interner<usize> = Interner::new();
        for n in 0..SLOTS {
            assert!(TABLE.find(&n.to_ne_bytes(), || n).is_some());
        }
        assert!(TABLE.find(&SLOTS.to_ne_bytes(), || SLOTS).is_none());
        assert_eq!(TABLE.find(&7usize.to_ne_bytes(), || 0).map(|(_, n)| *n), Some(7));
        assert!(TABLE.at(SLOTS).is_none());
    }
}
