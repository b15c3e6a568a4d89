//! topdown_region.h looks for this library's functions through weak symbols, which some linkers (mold) settle in a program's file: there
//! are none. So whatever uses the header has two pointers to them, too, which are filled in here, and a note that says where they are.

use crate::engine::empty::MarkFunction;
use crate::{td_region_begin, td_region_end};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null_mut, slice_from_raw_parts};

/// `struct td_region_functions` of topdown_region.h.
#[repr(C)]
struct MarkFunctions {
    begin: MarkFunction,
    end: MarkFunction,
}

/// The note's head: lengths of its name and of what it says, its type, and its name.
const HEAD: [u8; 20] = *b"\x08\0\0\0\x04\0\0\0\x01\0\0\0topdown\0";

/// Fills in the pointers of all that is loaded. (What is loaded later has the symbols, as libraries do with any linker.)
pub fn find() {
    // SAFETY: the linker calls it for each object.
    unsafe { libc::dl_iterate_phdr(Some(object), null_mut()) };
}

unsafe extern "C" fn object(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the linker's record of an object that is loaded, whose segments are where it says.
    unsafe {
        let (base, segments) = ((*info).dlpi_addr as usize, (*info).dlpi_phdr);
        let segments = std::slice::from_raw_parts(segments, (*info).dlpi_phnum.into());
        let range = |one: &libc::Elf64_Phdr| {
            let from = base.wrapping_add(one.p_vaddr as usize);
            from..from.wrapping_add(one.p_memsz as usize)
        };
        let writable =
            segments.iter().filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W != 0);
        for note in segments.iter().filter(|one| one.p_type == libc::PT_NOTE) {
            // (notes begin at multiples of four)
            let bytes = &*slice_from_raw_parts(range(note).start as *const u8, range(note).len());
            for from in (0..bytes.len()).step_by(4) {
                let Some(found) = bytes[from..].strip_prefix(&HEAD).and_then(<[u8]>::first_chunk::<4>) else {
                    continue;
                };
                let place = found.as_ptr() as usize;
                let at = place.wrapping_add_signed(i32::from_ne_bytes(*found) as isize);
                if writable
                    .clone()
                    .any(|one| range(one).contains(&at) && range(one).end - at >= size_of::<MarkFunctions>())
                {
                    (at as *mut MarkFunctions)
                        .write_volatile(MarkFunctions { begin: td_region_begin, end: td_region_end });
                }
            }
        }
    }
    0
}

const _: () = assert!(offset_of!(MarkFunctions, end) == 8);
