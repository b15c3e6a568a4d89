//! `struct event` and `struct eventlist` as callers lay them out. The former has a `struct perf_event_attr` in its
//! middle, whose size is the caller's (`Caller`): all that follows it moves.

use crate::Attr;
use crate::caller::Caller;
use crate::extra::Extra;
use crate::say::say;
use libc::{c_char, c_int};
use std::borrow::Cow;
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

/// One CPU's descriptor, and what was read from it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Efd {
    /// -1: not open.
    pub fd: c_int,
    /// Not 0: it counts a process, which is on this CPU only some of the time. The C struct has padding here, which
    /// programs that make events themselves leave 0.
    pub of_process: u32,
    /// Value, time enabled, time running.
    pub val: [u64; 3],
}

/// As in jsession.h.
#[repr(C)]
pub struct EventList {
    /// The first event.
    pub eventlist: *mut RawEvent,
    /// The last one.
    pub eventlist_last: *mut RawEvent,
    /// How many `Efd` each has.
    pub num_cpus: c_int,
    /// How many `socket_cpus` there are.
    pub num_sockets: c_int,
    /// The first CPU of each socket; of malloc.
    pub socket_cpus: *mut c_int,
}

/// The head of a `struct event`. There follow the attr, a `Tail` and the `Efd`s.
#[repr(C)]
pub struct RawEvent {
    next: *mut RawEvent,
}

/// What comes between the attr and the `Efd`s. The flags are C's `bool`.
#[repr(C)]
struct Tail {
    event: *mut c_char,
    end_group: u8,
    group_leader: u8,
    ingroup: u8,
    uncore: u8,
    orig: *mut RawEvent,
    num_clones: c_int,
    extra: Extra,
}

/// Where the attr begins.
const ATTR: usize = size_of::<RawEvent>();

const _: () = {
    assert!(size_of::<Efd>() == 32 && size_of::<EventList>() == 32 && size_of::<Extra>() == 104);
    assert!(offset_of!(Tail, end_group) == 144 - 136 && offset_of!(Tail, uncore) == 147 - 136);
    assert!(offset_of!(Tail, orig) == 152 - 136 && offset_of!(Tail, num_clones) == 160 - 136);
    assert!(offset_of!(Tail, extra) == 168 - 136 && size_of::<Tail>() == 272 - 136);
};

/// Whether an event leads a group, is in one, is the last of one; and whether it is counted once a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Flags {
    pub leader: bool,
    pub member: bool,
    pub end: bool,
    pub uncore: bool,
}

/// A `struct event`, whoever made it. A copy is the same event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pointer: NonNull<RawEvent>,
    attr_size: usize,
}

impl Event {
    /// The caller's event; None for NULL.
    ///
    /// # Safety
    /// NULL, or a `struct event` whose attr has `attr_size` bytes, with an `Efd` for each CPU that it is used with. It
    /// and what it points to stay valid as long as the result is used, and no other thread uses them.
    pub unsafe fn of(pointer: *mut RawEvent, attr_size: usize) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Event { pointer, attr_size })
    }

    /// A new event that is in no list and not open; None without memory.
    pub fn new(attr_size: usize, cpus: usize) -> Option<Self> {
        let size = ATTR + attr_size + size_of::<Tail>() + cpus * size_of::<Efd>();
        // SAFETY: calloc has no conditions. All members may be zero.
        let event = unsafe { Event::of(libc::calloc(1, size).cast(), attr_size) }?;
        (0..cpus).for_each(|cpu| event.efd(cpu).fd = -1);
        Some(event)
    }

    /// The `struct event *`.
    pub fn pointer(self) -> *mut RawEvent {
        self.pointer.as_ptr()
    }

    /// The attr in place, for the kernel: it has as many bytes as the caller's headers say, not as `Attr` has.
    pub fn attr_in_place(self) -> *mut Attr {
        // SAFETY: the attr is inside the event.
        unsafe { self.pointer().cast::<u8>().add(ATTR).cast() }
    }

    /// A copy of the attr; what the caller's is too short for is zero.
    pub fn attr(self) -> Attr {
        let mut attr = Attr::default();
        let bytes = self.attr_size.min(size_of::<Attr>());
        // SAFETY: both have that many bytes; any bytes are an Attr.
        unsafe { ptr::copy_nonoverlapping(self.attr_in_place().cast::<u8>(), (&raw mut attr).cast(), bytes) };
        attr
    }

    /// Puts the attr in place, as much of it as the caller's has room for.
    pub fn set_attr(self, attr: &Attr) {
        let bytes = self.attr_size.min(size_of::<Attr>());
        // SAFETY: both have that many bytes.
        unsafe {
            ptr::copy_nonoverlapping(ptr::from_ref(attr).cast(), self.attr_in_place().cast::<u8>(), bytes)
        };
    }

    fn tail(self) -> *mut Tail {
        // SAFETY: it is inside the event. The attr's size is a multiple of 8, so it is aligned.
        unsafe { self.pointer().cast::<u8>().add(ATTR + self.attr_size).cast() }
    }

    fn at(self, pointer: *mut RawEvent) -> Option<Self> {
        // SAFETY: events point to events of the same program.
        unsafe { Event::of(pointer, self.attr_size) }
    }

    /// The next of the list.
    pub fn next(self) -> Option<Self> {
        // SAFETY: `of`.
        self.at(unsafe { (*self.pointer()).next })
    }

    /// This one and those that follow it in the list.
    pub fn and_later(self) -> impl Iterator<Item = Event> {
        std::iter::successors(Some(self), |event| event.next())
    }

    /// Makes another one the next.
    pub fn set_next(self, next: Option<Event>) {
        // SAFETY: `of`.
        unsafe { (*self.pointer()).next = next.map_or(ptr::null_mut(), Event::pointer) };
    }

    /// Its text, that NULL may stand for.
    pub fn text_in_place(self) -> *const c_char {
        // SAFETY: `of`.
        unsafe { (*self.tail()).event }
    }

    /// Its text.
    pub fn text(self) -> Cow<'static, str> {
        let text = self.text_in_place();
        // SAFETY: the text is a C string, by `of` as long as the event is used: nobody here keeps it.
        if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() }
    }

    /// Gives it a text, of malloc, that is freed with it.
    pub fn set_text(self, text: *mut c_char) {
        // SAFETY: `of`.
        unsafe { (*self.tail()).event = text };
    }

    /// Its place in a group.
    pub fn flags(self) -> Flags {
        // SAFETY: `of`.
        let tail = unsafe { &*self.tail() };
        let [leader, member, end, uncore] =
            [tail.group_leader, tail.ingroup, tail.end_group, tail.uncore].map(|flag| flag != 0);
        Flags { leader, member, end, uncore }
    }

    /// Sets all four.
    pub fn set_flags(self, flags: Flags) {
        // SAFETY: `of`.
        let tail = unsafe { &mut *self.tail() };
        (tail.group_leader, tail.ingroup) = (flags.leader.into(), flags.member.into());
        (tail.end_group, tail.uncore) = (flags.end.into(), flags.uncore.into());
    }

    /// What it is one PMU of.
    pub fn orig(self) -> Option<Self> {
        // SAFETY: `of`.
        self.at(unsafe { (*self.tail()).orig })
    }

    /// Makes it a clone of `orig`, and counts it there.
    pub fn set_orig(self, orig: Event) {
        // SAFETY: `of`, for both.
        unsafe {
            (*self.tail()).orig = orig.pointer();
            (*orig.tail()).num_clones += 1;
        }
    }

    /// How many clones say that they are of this event.
    pub fn num_clones(self) -> c_int {
        // SAFETY: `of`.
        unsafe { (*self.tail()).num_clones }
    }

    /// What is known of it besides the attr.
    #[allow(clippy::mut_from_ref)]
    pub fn extra<'a>(self) -> &'a mut Extra {
        // SAFETY: `of`. No caller of this holds two of the same event.
        unsafe { &mut (*self.tail()).extra }
    }

    /// A CPU's descriptor and counts. The event has to have that many.
    pub fn efd<'a>(self, cpu: usize) -> &'a mut Efd {
        // SAFETY: `of` asks for this CPU's. No caller of this holds two of the same event and CPU.
        unsafe { &mut *self.tail().add(1).cast::<Efd>().add(cpu) }
    }

    /// Frees it and what it owns; its descriptors are closed before.
    pub fn free(self) {
        self.extra().free();
        // SAFETY: both are of malloc and of this event alone.
        unsafe {
            libc::free((*self.tail()).event.cast());
            libc::free(self.pointer().cast());
        }
    }
}

/// A `struct eventlist`, whoever made it.
#[derive(Clone, Copy)]
pub struct List {
    pointer: NonNull<EventList>,
    attr_size: usize,
}

impl List {
    /// The caller's list; None for NULL.
    ///
    /// # Safety
    /// NULL, or a `struct eventlist` of events as `Event::of` asks for, each with `num_cpus` `Efd`s.
    pub unsafe fn of(caller: Caller<EventList>) -> Option<Self> {
        NonNull::new(caller.pointer).map(|pointer| List { pointer, attr_size: caller.attr_size })
    }

    /// An empty list for so many CPUs, of malloc; None without memory.
    pub fn alloc(cpus: c_int, socket_cpus: &[c_int]) -> Option<NonNull<EventList>> {
        // SAFETY: calloc has no conditions; all members may be zero; what is written is inside of what was allocated.
        unsafe {
            let list = NonNull::new(libc::calloc(1, size_of::<EventList>()).cast::<EventList>())?;
            let sockets = libc::calloc(socket_cpus.len().max(1), size_of::<c_int>()).cast::<c_int>();
            if sockets.is_null() {
                libc::free(list.as_ptr().cast());
                return None;
            }
            ptr::copy_nonoverlapping(socket_cpus.as_ptr(), sockets, socket_cpus.len());
            (*list.as_ptr()).num_cpus = cpus;
            (*list.as_ptr()).num_sockets = socket_cpus.len() as c_int;
            (*list.as_ptr()).socket_cpus = sockets;
            Some(list)
        }
    }

    /// How large an attr is in this list's events.
    pub fn attr_size(self) -> usize {
        self.attr_size
    }

    fn raw<'a>(self) -> &'a mut EventList {
        // SAFETY: `of`. No caller of this, all below, holds two.
        unsafe { &mut *self.pointer.as_ptr() }
    }

    /// How many CPUs its events have room for.
    pub fn cpus(self) -> usize {
        self.raw().num_cpus.max(0) as usize
    }

    /// Whether events that are counted once a socket are counted on this CPU.
    pub fn is_socket_cpu(self, cpu: usize) -> bool {
        let list = self.raw();
        if list.socket_cpus.is_null() {
            return false;
        }
        // SAFETY: there are that many.
        let cpus = unsafe { std::slice::from_raw_parts(list.socket_cpus, list.num_sockets.max(0) as usize) };
        cpus.contains(&(cpu as c_int))
    }

    /// The first event.
    pub fn first(self) -> Option<Event> {
        // SAFETY: `of`.
        unsafe { Event::of(self.raw().eventlist, self.attr_size) }
    }

    /// Its events in order.
    pub fn events(self) -> impl Iterator<Item = Event> {
        std::iter::successors(self.first(), |event| event.next())
    }

    /// A new event of this list, not yet linked. Without memory it says so.
    pub fn new_event(self) -> Result<Event, ()> {
        Event::new(self.attr_size, self.cpus()).ok_or_else(|| say!("jevents: no memory for an event"))
    }

    /// Links an event in at the end, also if the program left `eventlist_last` behind or forgot it.
    pub fn append(self, event: Event) {
        let list = self.raw();
        match self.first() {
            None => list.eventlist = event.pointer(),
            Some(first) => {
                // SAFETY: `of`.
                let known = unsafe { Event::of(list.eventlist_last, self.attr_size) }.unwrap_or(first);
                known.and_later().last().unwrap_or(known).set_next(Some(event));
            }
        }
        list.eventlist_last = event.pointer();
    }

    /// Frees the list itself; its events are freed before.
    pub fn free(self) {
        // SAFETY: both are of malloc.
        unsafe {
            libc::free(self.raw().socket_cpus.cast());
            libc::free(self.pointer.as_ptr().cast());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 5] = [112, 120, 128, 136, 144];

    #[test]
    fn members_are_where_c_has_them() {
        for size in SIZES {
            let event = Event::new(size, 3).unwrap();
            let from = |pointer: *const u8| pointer.addr() - event.pointer().addr();
            let efd = |cpu| from(ptr::from_mut(event.efd(cpu)).cast());
            assert_eq!(from(event.attr_in_place().cast()), 8);
            assert_eq!(from(event.tail().cast()), 136 - 128 + size);
            assert_eq!(from(ptr::from_mut(event.extra()).cast()), 168 - 128 + size);
            assert_eq!((efd(0), efd(1), efd(2)), (272 - 128 + size, 304 - 128 + size, 336 - 128 + size));
            assert_eq!([0, 1, 2].map(|cpu| event.efd(cpu).fd), [-1; 3]);
            event.free();
        }
    }

    #[test]
    fn an_attr_ends_where_the_callers_does() {
        for size in SIZES {
            let event = Event::new(size, 1).unwrap();
            let mut attr = Attr::default();
            // SAFETY: any bytes are an Attr.
            unsafe { ptr::write_bytes(&raw mut attr, 0xff, 1) };
            event.set_attr(&attr);
            assert_eq!(event.text_in_place(), ptr::null(), "{size}");
            event.set_text(crate::capi::copy("behind"));
            event.set_flags(Flags { leader: true, ..Flags::default() });
            // SAFETY: any Attr is bytes.
            let bytes: [u8; 144] = unsafe { std::mem::transmute(event.attr()) };
            assert!(
                bytes[..size].iter().all(|&byte| byte == 0xff) && bytes[size..].iter().all(|&byte| byte == 0)
            );
            event.free();
        }
    }

    #[test]
    fn flags_are_four() {
        let event = Event::new(128, 1).unwrap();
        for bits in 0..16 {
            let bit = |n: u32| bits >> n & 1 == 1;
            let flags = Flags { leader: bit(0), member: bit(1), end: bit(2), uncore: bit(3) };
            event.set_flags(flags);
            assert_eq!(event.flags(), flags);
        }
        assert_eq!(event.orig(), None);
        event.free();
    }

    #[test]
    fn a_list_grows_at_its_end() {
        let list = List { pointer: List::alloc(2, &[0, 1]).unwrap(), attr_size: 120 };
        let events = [0; 3].map(|_| list.new_event().unwrap());
        list.append(events[0]);
        list.raw().eventlist_last = ptr::null_mut(); // a program forgot it
        list.append(events[1]);
        list.raw().eventlist_last = events[0].pointer();
        list.append(events[2]);
        assert!(list.events().eq(events));
        assert_eq!(list.raw().eventlist_last, events[2].pointer());
        assert!(list.is_socket_cpu(1) && !list.is_socket_cpu(2));
        events.into_iter().for_each(Event::free);
        list.free();
    }
}
