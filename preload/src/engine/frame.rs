//! The stack of a thread's open regions.

use super::node::RegionNode;
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::addr_of;

/// Regions that may be open in a thread, each in the other.
pub const DEEPEST: usize = 511;

/// Names that are known of regions that are open deeper.
const OVER_NAMES: usize = 64;

/// How an execution began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub struct Frame {
    pub node: &'static RegionNode,
    pub state: ExecutionStart,
    /// How often the region began in itself since, and did not end.
    pub again: u32,
}

impl Frame {
    pub fn new(node: &'static RegionNode, state: ExecutionStart) -> Frame {
        Frame { node, state, again: 0 }
    }
}

/// The place of a frame, which is empty or has one.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct FramePlace {
    node: Option<&'static RegionNode>,
    state: ExecutionStart,
    again: u32,
}

impl FramePlace {
    const EMPTY: FramePlace = FramePlace { node: None, state: ExecutionStart::Read, again: 0 };
    /// What `state` and `again` are together in an execution that began with a reading.
    const PLAIN: u64 = 0;

    /// Has the frame of such an execution, in one store.
    ///
    /// # Safety
    /// A place of the calling thread's.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn set_plain(place: *mut FramePlace, node: &'static RegionNode) {
        use std::arch::x86_64::{__m128i, _mm_set_epi64x};
        let node = std::ptr::from_ref(node) as i64;
        // SAFETY: the place is as long as the two words; SSE2 is part of x86-64.
        unsafe { place.cast::<__m128i>().write_volatile(_mm_set_epi64x(FramePlace::PLAIN as i64, node)) };
    }

    /// Has the frame of such an execution, in one store.
    ///
    /// # Safety
    /// A place of the calling thread's.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn set_plain(place: *mut FramePlace, node: &'static RegionNode) {
        const { assert!(FramePlace::PLAIN == 0) };
        // SAFETY: the place is as long as the two words.
        unsafe {
            std::arch::asm!("stp {}, xzr, [{}]", in(reg) std::ptr::from_ref(node), in(reg) place, options(nostack, preserves_flags))
        };
    }
}

const _: () = {
    assert!(ExecutionStart::Read as u64 == FramePlace::PLAIN && offset_of!(FramePlace, state) % 8 == 0);
    assert!(size_of::<FramePlace>() == 16);
};

/// The frames, the thread's own first. A signal handler may come between any two instructions; it leaves them as they were.
pub struct OpenRegions {
    /// Where the innermost region's frame is, in bytes from the first, which is the thread's: of a place that is filled in.
    innermost: Cell<usize>,
    /// Regions that began deeper than there are places, and hashes of the last ones' names.
    pub over: Cell<usize>,
    over_names: [Cell<u32>; OVER_NAMES],
    /// Pieces of regions that overlapped may be open (`split`).
    pub pieces: Cell<bool>,
    places: [Cell<FramePlace>; DEEPEST + 1],
}

impl OpenRegions {
    /// No region is open in the thread of this node.
    pub fn new(root: &'static RegionNode) -> OpenRegions {
        let open = OpenRegions {
            innermost: Cell::new(0),
            over: Cell::new(0),
            over_names: [const { Cell::new(0) }; OVER_NAMES],
            pieces: Cell::new(false),
            places: [const { Cell::new(FramePlace::EMPTY) }; DEEPEST + 1],
        };
        open.set(0, Frame::new(root, ExecutionStart::Thread));
        open
    }

    /// How many are open: the number of the innermost region's frame.
    #[inline]
    pub fn depth(&self) -> usize {
        self.innermost.get() / size_of::<FramePlace>()
    }

    /// The frame of this number. Above `depth`: of a region that was open, if no other has taken its place.
    #[inline]
    pub fn above(&self, number: usize) -> Option<Frame> {
        let FramePlace { node, state, again } = self.places[number].get();
        node.map(|node| Frame { node, state, again })
    }

    /// The frame of this number, which is no more than `depth`.
    #[inline]
    pub fn at(&self, number: usize) -> Frame {
        self.above(number).expect("frames up to the depth are there")
    }

    /// The innermost region's; the thread's own, if none is open.
    #[inline]
    pub fn innermost(&self) -> Frame {
        self.at(self.depth())
    }

    /// Frames of regions with their numbers, the outermost first.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = (usize, Frame)> {
        (1..=self.depth()).map(|number| (number, self.at(number)))
    }

    /// The innermost one that is called so.
    pub fn find(&self, name: &std::ffi::CStr) -> Option<usize> {
        self.regions().rev().find(|(_, frame)| frame.node.is_called(name)).map(|(number, _)| number)
    }

    /// The frame of this number is another.
    #[inline]
    pub fn set(&self, number: usize, frame: Frame) {
        let Frame { node, state, again } = frame;
        self.places[number].set(FramePlace { node: Some(node), state, again });
    }

    /// The region of this number has begun in itself so often. (Of its frame nothing else is written: a signal handler in between may have
    /// ended a turn, and the frame have another node since.)
    pub fn set_again(&self, number: usize, again: u32) {
        // SAFETY: the thread's own place, of which nobody has a reference.
        unsafe { (*self.places[number].as_ptr()).again = again };
    }

    /// A region begins deeper than there are places.
    pub fn begin_over(&self, name: &std::ffi::CStr) {
        let over = self.over.get();
        self.over_names[over % OVER_NAMES].set(short_hash(name));
        self.over.set(over + 1);
    }

    /// A region ends; whether it may be one that began deeper than there are places. It is none of them if it is around all: then they have
    /// lost their ends.
    pub fn end_over(&self, name: &std::ffi::CStr) -> bool {
        let over = self.over.get();
        let known = &self.over_names[..over.min(OVER_NAMES)];
        let is_one = known.iter().any(|known| known.get() == short_hash(name));
        let ends = over > 0 && (is_one || self.find(name).is_none());
        self.over.set(if ends { over - 1 } else { 0 });
        ends
    }

    /// The place above `depth` is empty.
    pub fn clear(&self, number: usize) {
        assert!(number > self.depth());
        self.places[number].set(FramePlace::EMPTY);
    }

    /// A region begins. False: too many are open.
    #[inline]
    #[must_use]
    pub fn push(&self, frame: Frame) -> bool {
        let number = self.depth() + 1;
        if number > DEEPEST {
            return false;
        }
        self.set(number, frame);
        // what is below `depth` is there, for a signal handler, too
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
        self.innermost.set(number * size_of::<FramePlace>());
        true
    }

    /// Regions deeper than this have ended; so many are open now.
    #[inline]
    pub fn cut(&self, depth: usize) {
        assert!(depth <= self.depth());
        self.innermost.set(depth * size_of::<FramePlace>());
    }
}

/// The quick path.
impl OpenRegions {
    #[inline(always)]
    fn place(&self, bytes: usize) -> *mut FramePlace {
        self.places.as_ptr().cast::<FramePlace>().wrapping_byte_add(bytes).cast_mut()
    }

    /// The innermost region's node, or the thread's own.
    #[inline(always)]
    pub fn innermost_node(&self) -> &'static RegionNode {
        // SAFETY: `innermost` is that of a place that is filled in.
        unsafe { (*self.place(self.innermost.get())).node.unwrap_unchecked() }
    }

    /// The innermost region's node, if its execution began with a reading, and not again in itself.
    #[inline(always)]
    pub fn innermost_plain(&self) -> Option<&'static RegionNode> {
        let place = self.place(self.innermost.get());
        // SAFETY: as `innermost_node`; `state` and `again` are the eight bytes from `state` on, and integers.
        unsafe {
            let is_plain = addr_of!((*place).state).cast::<u64>().read() == FramePlace::PLAIN;
            if is_plain { Some((*place).node.unwrap_unchecked()) } else { None }
        }
    }

    /// An execution of the node's region begins with a reading. False: too many are open.
    #[inline(always)]
    #[must_use]
    pub fn push_plain(&self, node: &'static RegionNode) -> bool {
        let inner = self.innermost.get() + size_of::<FramePlace>();
        if inner > DEEPEST * size_of::<FramePlace>() {
            return false;
        }
        let place = self.place(inner);
        // SAFETY: one of the places.
        unsafe {
            FramePlace::set_plain(place, node);
            self.innermost.as_ptr().write_volatile(inner);
            // A handler that came before that had its own frame there. One that comes now and begins this region finds
            // it begun, and does not touch the sum.
            FramePlace::set_plain(place, node);
        }
        true
    }

    /// The innermost region, which `push_plain` or `push` has begun, has ended.
    #[inline(always)]
    pub fn pop(&self) {
        self.innermost.set(self.innermost.get() - size_of::<FramePlace>());
    }
}

/// FNV-1a.
fn short_hash(name: &std::ffi::CStr) -> u32 {
    name.to_bytes().iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::name::Name;

    fn node() -> &'static RegionNode {
        RegionNode::new(&Arena::new(), None, Name::new(c"one"), 0, None).unwrap()
    }

    #[test]
    fn regions_are_open_from_their_begin_to_their_end() {
        let (root, one) = (node(), node());
        let open = OpenRegions::new(root);
        assert!(open.depth() == 0 && std::ptr::eq(open.innermost().node, root));
        assert!(open.innermost().state == ExecutionStart::Thread && open.innermost_plain().is_none());
        assert!(open.push_plain(one));
        assert!(open.depth() == 1 && open.innermost().state == ExecutionStart::Read);
        assert!(open.innermost_plain().is_some_and(|node| std::ptr::eq(node, one)));
        open.set(1, Frame { again: 1, ..open.at(1) });
        assert!(open.innermost_plain().is_none() && std::ptr::eq(open.innermost_node(), one));
        assert_eq!(open.find(c"one"), Some(1));
        assert_eq!(open.find(c"other"), None);
        open.pop();
        assert!(open.depth() == 0 && open.above(1).is_some_and(|frame| frame.again == 1));
        open.clear(1);
        assert!(open.above(1).is_none());
    }

    #[test]
    fn no_more_are_open_than_there_are_places() {
        let (root, one) = (node(), node());
        let open = OpenRegions::new(root);
        for depth in 1..=DEEPEST {
            let pushed = if depth % 2 == 0 {
                open.push_plain(one)
            } else {
                open.push(Frame::new(one, ExecutionStart::Unread))
            };
            assert!(pushed && open.depth() == depth);
        }
        assert!(!open.push_plain(one) && !open.push(Frame::new(one, ExecutionStart::Read)));
        open.cut(3);
        assert_eq!(open.regions().map(|(number, _)| number).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
