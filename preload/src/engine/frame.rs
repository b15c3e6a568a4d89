//! The stack of a thread's open regions.

use super::node::RegionNode;
use super::thread::ThreadState;
use std::mem::offset_of;
use std::ptr::addr_of;

/// Regions that may be open in a thread, each in the other.
pub const DEEPEST: usize = 511;

/// How an execution began.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ExecutionStart {
    /// With a reading.
    Read,
    /// The reading failed, or there is no record.
    Unread,
    /// In the parent process; what is executed in this one begins with a reading.
    BeforeFork,
    /// It is the thread's own.
    Thread,
    /// With a reading, after another region ended in which it was open (`split`).
    ReadAgain,
}

impl ExecutionStart {
    /// Whether the execution began with a reading.
    pub fn is_read(self) -> bool {
        matches!(self, ExecutionStart::Read | ExecutionStart::ReadAgain | ExecutionStart::BeforeFork)
    }

    /// Whether it is unended if it does not end: who forks ends a region mostly in the parent.
    pub fn is_to_end(self) -> bool {
        matches!(self, ExecutionStart::Read | ExecutionStart::ReadAgain)
    }
}

/// An open region.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Frame {
    pub node: *mut RegionNode,
    pub state: ExecutionStart,
    /// How often the region began in itself since, and did not end.
    pub again: u32,
}

impl Frame {
    /// What `state` and `again` are together in an execution that began with a reading.
    const PLAIN: u64 = 0;

    pub fn new(node: *mut RegionNode, state: ExecutionStart) -> Frame {
        Frame { node, state, again: 0 }
    }

    /// Makes it that of such an execution, in one store.
    ///
    /// # Safety
    /// A frame of the calling thread's.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub unsafe fn set_plain(frame: *mut Frame, node: *mut RegionNode) {
        use std::arch::x86_64::{__m128i, _mm_set_epi64x};
        // SAFETY: the caller's frame is as long as the two words; SSE2 is part of x86-64.
        unsafe { frame.cast::<__m128i>().write_volatile(_mm_set_epi64x(Frame::PLAIN as i64, node as i64)) };
    }

    /// Makes it that of such an execution, in one store.
    ///
    /// # Safety
    /// A frame of the calling thread's.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub unsafe fn set_plain(frame: *mut Frame, node: *mut RegionNode) {
        const { assert!(Frame::PLAIN == 0) };
        // SAFETY: the caller's frame is as long as the two words.
        unsafe {
            std::arch::asm!("stp {}, xzr, [{}]", in(reg) node, in(reg) frame, options(nostack, preserves_flags))
        };
    }

    /// # Safety
    /// A frame of the calling thread's.
    #[inline(always)]
    pub unsafe fn is_plain(frame: *const Frame) -> bool {
        // SAFETY: `state` and `again` are the eight bytes from `state` on, and integers.
        unsafe { addr_of!((*frame).state).cast::<u64>().read() == Frame::PLAIN }
    }
}

/// The frames, the thread's own first, in the thread's state.
impl ThreadState {
    /// The frame so many bytes from the first.
    ///
    /// # Safety
    /// The thread's state; one of its frames.
    #[inline(always)]
    pub(super) unsafe fn frame_at(thread: *mut ThreadState, bytes: usize) -> *mut Frame {
        // SAFETY: the caller's word: it is within the frames.
        unsafe { (&raw mut (*thread).frames).byte_add(bytes).cast() }
    }

    /// The innermost region's frame; the thread's own, if none is open.
    ///
    /// # Safety
    /// The thread's state.
    #[inline(always)]
    pub(super) unsafe fn innermost(thread: *mut ThreadState) -> *mut Frame {
        // SAFETY: `innermost` is always that of a frame that is filled in.
        unsafe { ThreadState::frame_at(thread, (*thread).innermost) }
    }

    /// The number of the innermost region's frame: how many are open.
    ///
    /// # Safety
    /// The thread's state.
    pub(super) unsafe fn depth(thread: *mut ThreadState) -> usize {
        // SAFETY: a field of the state.
        unsafe { (*thread).innermost / size_of::<Frame>() }
    }

    /// Now this is the innermost.
    ///
    /// # Safety
    /// The thread's state; the frame is filled in.
    pub(super) unsafe fn set_depth(thread: *mut ThreadState, depth: usize) {
        // SAFETY: a field of the state.
        unsafe { (*thread).innermost = depth * size_of::<Frame>() };
    }

    /// The frame of the thread itself is of this node.
    ///
    /// # Safety
    /// The thread's state, which has begun.
    pub(super) unsafe fn root(thread: *mut ThreadState) -> *mut RegionNode {
        // SAFETY: the first frame is filled in as long as the state is mapped.
        unsafe { (*thread).frames[0].node }
    }
}

const _: () = assert!(ExecutionStart::Read as u64 == Frame::PLAIN && offset_of!(Frame, state) % 8 == 0);
