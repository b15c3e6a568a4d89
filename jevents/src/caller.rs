//! What callers were compiled with. `struct perf_event_attr` grows with the kernel's headers (112 bytes until Linux 5.4,
//! 136 since 6.3, 144 now), and `struct event` has one in its middle. Which of its functions a caller calls says the size
//! (`capi::sized`).

/// A pointer from a caller, and the size of its `struct perf_event_attr`.
#[derive(Debug)]
pub struct Caller<T> {
    /// As the caller has it.
    pub pointer: *mut T,
    /// In bytes.
    pub attr_size: usize,
}

impl<T> Caller<T> {
    /// Of a caller with this size.
    pub fn new(pointer: *mut T, attr_size: usize) -> Self {
        Caller { pointer, attr_size }
    }
}
