//! A value that its thread changes as a whole, without a lock and without a system call, although a signal handler may come
//! between at any instruction, change it, too, or leave by siglongjmp.
//!
//! A change works on a copy, in a place of its own, and takes effect with the one instruction that makes its place the current
//! one. One that a handler's came before does not take effect. One that was left never ends, and keeps its place until no
//! other is free.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

const PLACES: usize = 8;

/// A value that its thread changes as a whole.
pub struct ThreadValue<T> {
    places: [UnsafeCell<T>; PLACES],
    /// The current place, and above it the number of the change that made it so.
    current: AtomicU64,
    /// The number of the change that has each place; 0 for none.
    numbers: [Cell<u32>; PLACES],
    /// Counts changes, and all else that is to be done in one go.
    latest: Cell<u32>,
    /// Changes that have begun and not ended.
    open: Cell<u32>,
    /// The number of the last change that did not end, as far as has been told.
    told: Cell<u32>,
}

/// A change on its way: a copy of the value, in a place that nobody else has.
pub struct ValueChange<'a, T> {
    kept: &'a ThreadValue<T>,
    place: usize,
    /// Its number.
    pub number: u32,
    /// What was current when it began.
    from: u64,
    /// Others have begun and not ended: a signal handler has interrupted them, or left them. Told once of each.
    pub others: bool,
}

fn place_of(current: u64) -> usize {
    current as u32 as usize
}

impl<T: Copy> ThreadValue<T> {
    /// Holds this at first.
    pub fn new(value: T) -> ThreadValue<T> {
        ThreadValue {
            places: std::array::from_fn(|_| UnsafeCell::new(value)),
            current: AtomicU64::new(0),
            numbers: Default::default(),
            latest: Cell::new(0),
            open: Cell::new(0),
            told: Cell::new(0),
        }
    }

    /// Takes of the value what `what` does. A handler's changes may come meanwhile, after which it is taken again.
    #[inline]
    pub fn get<R>(&self, what: impl Fn(&T) -> R) -> R {
        loop {
            let current = self.current.load(Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            // SAFETY: the place has a value, and nobody writes to it while it is current.
            let result = what(unsafe { &*self.places[place_of(current)].get() });
            compiler_fence(Ordering::SeqCst);
            if self.current.load(Ordering::Relaxed) == current {
                return result;
            }
        }
    }

    /// The value as it is. If a handler's changes come meanwhile, parts of it may be of another: whoever looks asks
    /// `is_newest` before it believes what it saw.
    #[inline]
    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let current = self.current.load(Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the place has a value, of plain data.
        let result = look(unsafe { &*self.places[place_of(current)].get() });
        compiler_fence(Ordering::SeqCst);
        result
    }

    /// Begins what is to be done in one go: its number.
    #[inline]
    pub fn next_number(&self) -> u32 {
        let next = self.latest.get().wrapping_add(1);
        let next = if next == 0 { 1 } else { next };
        self.latest.set(next);
        next
    }

    /// Whether nothing else has begun since.
    #[inline]
    pub fn is_newest(&self, number: u32) -> bool {
        compiler_fence(Ordering::SeqCst);
        self.latest.get() == number
    }

    /// Begins a change.
    pub fn begin(&self) -> ValueChange<'_, T> {
        let number = self.next_number();
        let others = self.open.get() > 0 && self.tell(number);
        // a handler's change from here on sees that another is on its way
        self.open.set(self.open.get() + 1);
        compiler_fence(Ordering::SeqCst);
        let (mut from, mut place);
        loop {
            from = self.current.load(Ordering::Relaxed);
            place =
                if self.open.get() == 1 { (place_of(from) + 1) % PLACES } else { self.free(from, number) };
            self.numbers[place].set(number);
            compiler_fence(Ordering::SeqCst);
            // a handler's change before that line may have taken effect in the same place
            if self.current.load(Ordering::Relaxed) == from {
                // SAFETY: this place has no other change; what is read is plain data.
                unsafe { self.places[place].get().write(*self.places[place_of(from)].get()) };
                compiler_fence(Ordering::SeqCst);
            }
            // nor may two of a handler's changes have come meanwhile, the second of them where this was copied from
            if self.current.load(Ordering::Relaxed) == from {
                break;
            }
            self.numbers[place].set(0);
        }
        ValueChange { kept: self, place, number, from, others }
    }

    /// Whether a change has begun and not ended of which the next is to be told.
    #[inline]
    pub fn unfinished(&self) -> bool {
        self.open.get() > 0 && self.untold(self.latest.get()).is_some()
    }

    /// The number of the last change that did not end, if nobody has been told of it.
    #[cold]
    fn untold(&self, now: u32) -> Option<u32> {
        let age = |other: u32| now.wrapping_sub(other);
        let others = self.numbers.iter().map(Cell::get).filter(|other| *other != 0);
        let latest = others.min_by_key(|other| age(*other));
        latest.filter(|latest| age(*latest) < age(self.told.get()))
    }

    /// Whether a change that did not end is told of for the first time.
    #[cold]
    fn tell(&self, number: u32) -> bool {
        let untold = self.untold(number);
        self.told.set(untold.unwrap_or(self.told.get()));
        untold.is_some()
    }

    /// A free place, or that of the change which has been on its way for the longest time.
    #[cold]
    fn free(&self, from: u64, number: u32) -> usize {
        let others = (0..PLACES).filter(|place| *place != place_of(from));
        let age = |place: &usize| match self.numbers[*place].get() {
            0 => u32::MAX,
            other => number.wrapping_sub(other),
        };
        others.max_by_key(age).expect("there are others")
    }
}

impl<T: Copy> ValueChange<'_, T> {
    /// The copy.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: the place is this change's until it ends; it is reused only for one that is younger than seven others,
        // which come from handlers that have all ended, or else were left, as this one was then.
        unsafe { &mut *self.kept.places[self.place].get() }
    }

    /// Whether no other change has taken effect since this one began.
    #[inline]
    pub fn goes_on(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        self.kept.current.load(Ordering::Relaxed) == self.from
    }

    /// Ends it. Returns whether it took effect.
    pub fn end(self) -> bool {
        let kept = self.kept;
        compiler_fence(Ordering::SeqCst);
        let next = u64::from(self.number) << 32 | self.place as u64;
        let done =
            kept.current.compare_exchange(self.from, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.cancel();
        done
    }

    /// Ends it without effect.
    pub fn cancel(self) {
        compiler_fence(Ordering::SeqCst);
        self.kept.numbers[self.place].set(0);
        self.kept.open.set(self.kept.open.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(change: ValueChange<u32>, value: u32) -> bool {
        let mut change = change;
        *change.value() = value;
        change.end()
    }

    #[test]
    fn a_change_that_another_came_before_does_not_take_effect() {
        let kept = ThreadValue::new(1);
        let outer = kept.begin();
        let inner = kept.begin();
        assert!(!outer.others && inner.others);
        assert!(change(inner, 2));
        assert!(!outer.goes_on());
        assert!(!change(outer, 3));
        assert_eq!(kept.get(|value| *value), 2);
        let next = kept.begin();
        assert!(!next.others, "both have ended");
        assert!(change(next, 4));
        assert_eq!(kept.get(|value| *value), 4);
    }

    #[test]
    fn changes_that_were_left_are_told_of_once_each_and_there_is_always_a_place() {
        let kept = ThreadValue::new(0);
        for left in 1..50 {
            assert!(!kept.unfinished(), "{left}");
            let _ = kept.begin();
            assert!(kept.unfinished(), "{left}");
            let first = kept.begin();
            assert!(first.others, "{left}");
            assert!(change(first, left));
            let second = kept.begin();
            assert!(!second.others, "{left}");
            assert!(change(second, left + 1000));
            assert_eq!(kept.get(|value| *value), left + 1000);
        }
    }

    #[test]
    fn a_change_has_its_place_alone_whatever_comes_between() {
        let kept = ThreadValue::new(0);
        for _ in 0..20 {
            let _ = kept.begin(); // left
        }
        let outer = kept.begin();
        for value in 1..100 {
            let inner = kept.begin();
            assert_ne!(inner.place, outer.place);
            assert!(change(inner, value));
            assert_ne!(place_of(kept.current.load(Ordering::Relaxed)), outer.place);
        }
        assert!(!change(outer, 1000));
        assert_eq!(kept.get(|value| *value), 99);
    }
}
