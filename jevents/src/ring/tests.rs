//! Iteration over a ring in memory. What the kernel does is in c-tests/jevents/ring.c and pmu_sampling.c.

use super::*;

/// One page of data behind a control page, as the kernel maps them.
struct Ring {
    memory: Vec<u64>,
    written: u64,
}

/// One page.
const DATA: u64 = PAGE_SIZE as u64;

impl Ring {
    /// Empty, after so many bytes.
    fn at(written: u64) -> Ring {
        let mut ring = Ring { memory: vec![0; 2 * PAGE_SIZE / 8], written };
        ring.page().data_head = written;
        ring.page().data_tail = written;
        ring
    }

    fn page(&mut self) -> &mut Page {
        // SAFETY: the first page of the memory, of which any bits are a value.
        unsafe { &mut *self.memory.as_mut_ptr().cast() }
    }

    /// A record whose words after the header count up from its size.
    fn write(&mut self, size: u16) {
        let header = u64::from(size) << 48 | 9;
        let words = (1..u64::from(size) / 8).map(|i| u64::from(size) + i);
        for word in std::iter::once(header).chain(words) {
            let at = (self.written % DATA / 8) as usize;
            self.memory[PAGE_SIZE / 8 + at] = word;
            self.written += 8;
        }
        self.page().data_head = self.written;
    }

    fn iterate(&mut self) -> Iter {
        let mpage: *mut Page = self.page();
        // SAFETY: a page, and one of data behind it.
        unsafe { Iter::of(&Fd { pfd: -1, mpage, buf_size_shift: 0 }) }
    }
}

/// The sizes of all records up to the first None, each of which is looked at whole. `room`: of the buffer.
fn sizes(iter: &mut Iter, room: usize) -> Vec<u16> {
    let mut buffer = vec![0u64; room / 8];
    let mut sizes = vec![];
    // SAFETY: the ring is there; a record is as long as it says.
    unsafe {
        while let Some(record) = iter.next(buffer.as_mut_ptr().cast(), room) {
            let size = record.as_ref().size;
            let words = std::slice::from_raw_parts(record.cast::<u64>().as_ptr(), usize::from(size) / 8);
            assert!(words[1..].iter().zip(1..).all(|(word, i)| *word == u64::from(size) + i), "{words:?}");
            sizes.push(size);
            assert!(sizes.len() <= PAGE_SIZE / 8, "no end");
        }
    }
    sizes
}

#[test]
fn records_are_read_in_order_wherever_they_begin() {
    for start in (0..DATA + 64).step_by(8).map(|start| start + 5 * DATA) {
        let mut ring = Ring::at(start);
        for size in [8, 16, 40, 64] {
            ring.write(size);
        }
        let mut iter = ring.iterate();
        assert_eq!((iter.avail, iter.raw_head), (128, start + 128));
        assert_eq!(sizes(&mut iter, 64), [8, 16, 40, 64]);
        assert!(iter.avail == 0 && iter.cur == iter.head);
        assert_eq!(ring.page().data_tail, start);
        // SAFETY: the ring is there.
        unsafe { iter.release() };
        assert_eq!(ring.page().data_tail, start + 128);
        assert_eq!(ring.iterate().avail, 0);
    }
}

#[test]
fn a_full_ring_is_read() {
    for start in [0, 8, DATA - 8, DATA - 24] {
        let mut ring = Ring::at(start);
        (0..DATA / 32).for_each(|_| ring.write(32));
        let mut iter = ring.iterate();
        assert_eq!(iter.avail, DATA as i64);
        assert_eq!(sizes(&mut iter, 32), [32; (DATA / 32) as usize]);
    }
}

#[test]
fn a_record_without_room_is_skipped() {
    // it wraps, so it would have to be copied
    let mut ring = Ring::at(DATA - 16);
    ring.write(48);
    ring.write(24);
    for (buffer, room) in [(std::ptr::dangling_mut(), 40), (null_mut(), 64)] {
        let mut iter = ring.iterate();
        // SAFETY: nothing is written to the buffer.
        assert!(unsafe { iter.next(buffer, room) }.is_none());
        assert_eq!(iter.avail, 24);
        assert_eq!(sizes(&mut iter, 0), [24]);
    }
    assert_eq!(sizes(&mut ring.iterate(), 48), [48, 24]);
}

#[test]
fn what_is_no_record_ends_it() {
    for (size, written) in [(0, 8), (7, 8), (16, 8), (u16::MAX, 64)] {
        let mut ring = Ring::at(DATA - 8);
        ring.write(8);
        ring.write(8);
        ring.memory[PAGE_SIZE / 8] = u64::from(size) << 48;
        ring.page().data_head = DATA - 8 + 8 + written;
        let mut iter = ring.iterate();
        assert_eq!(sizes(&mut iter, 64), [8]);
        assert_eq!(iter.avail, 0);
        // SAFETY: the ring is there.
        unsafe { iter.release() };
        assert_eq!(ring.page().data_tail, DATA + written);
    }
}

#[test]
fn positions_that_cannot_be_end_it() {
    for (head, tail) in [(DATA + 8, 0), (0, 8), (4, 0)] {
        let mut ring = Ring::at(0);
        (0..DATA / 8).for_each(|_| ring.write(8));
        ring.page().data_head = head;
        ring.page().data_tail = tail;
        assert!(sizes(&mut ring.iterate(), 64).is_empty());
        assert_eq!(ring.iterate().raw_head, head);
    }
    // SAFETY: nothing is open.
    let mut none = unsafe { Iter::of(&Fd::CLOSED) };
    assert!(sizes(&mut none, 64).is_empty());
    // SAFETY: as above.
    unsafe { none.release() };
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert_eq!(mapping_size(0), Some(8192));
    assert_eq!(mapping_size(19), Some((1 << 31) + 4096));
    for shift in [20, 30, 31, 32, 63, 64, c_int::MAX, -1, c_int::MIN] {
        assert_eq!(mapping_size(shift), None);
    }
    assert_eq!(pages(50), Some(1 << 62));
    assert_eq!([51, 52, 63, 64, -1].map(pages), [None; 5]);
}

#[test]
fn an_aux_area_stays_when_another_cannot_be_mapped() {
    let mut ring = Ring::at(0);
    (ring.page().aux_offset, ring.page().aux_size) = (0x2000, 0x4000);
    let fd = Fd { pfd: -1, mpage: ring.page(), buf_size_shift: 0 };
    // SAFETY: the page is there; nothing is mapped of no descriptor.
    assert!(unsafe { fd.map_aux(3, false) }.is_err());
    assert_eq!((ring.page().aux_offset, ring.page().aux_size), (0x2000, 0x4000));
}
