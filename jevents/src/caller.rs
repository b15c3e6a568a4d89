//! What callers were compiled with. `struct perf_event_attr` grows with the kernel's headers (112 bytes until Linux 5.4,
//! 136 since 6.3, 144 now), and `struct event` has one in its middle. Our headers put its size above the address.

/// Bits of an address; above them is the size, in units of 8 bytes (JEVENTS_SIZED in jevents.h).
const ADDRESS_BITS: u32 = 57;

/// That of a caller who was not compiled with our headers: Linux 5.14 to 6.2.
const USUAL: usize = 128;

/// An address from a caller, and the size of its `struct perf_event_attr`.
#[derive(Debug)]
pub struct Caller<T> {
    /// Without what was above it.
    pub pointer: *mut T,
    /// In bytes.
    pub attr_size: usize,
}

impl<T> Clone for Caller<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Caller<T> {}

impl<T> Caller<T> {
    /// Takes an argument apart.
    pub fn of(argument: *mut T) -> Self {
        let units = argument.addr() >> ADDRESS_BITS;
        Caller {
            pointer: argument.map_addr(|bits| bits & ((1 << ADDRESS_BITS) - 1)),
            attr_size: if units == 0 { USUAL } else { units * 8 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_above_the_address() {
        let mut value = 7u64;
        let pointer: *mut u64 = &mut value;
        let sized = Caller::of(pointer.map_addr(|bits| bits | (144 / 8) << 57));
        assert_eq!((sized.pointer, sized.attr_size), (pointer, 144));
        let plain = Caller::of(pointer);
        assert_eq!((plain.pointer, plain.attr_size), (pointer, 128));
        assert!(Caller::of(std::ptr::without_provenance_mut::<u64>((112 / 8) << 57)).pointer.is_null());
    }
}
