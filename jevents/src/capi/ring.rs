//! perf-iter.h.

use super::guard;
use crate::Attr;
use crate::ring::{self, AuxMap, Fd, Iter, RecordHeader};
use libc::{MAP_FAILED, c_int, c_uint, c_void};
use perf_event_open_sys::ioctls::{DISABLE, ENABLE};
use std::ptr::{NonNull, null_mut};

/// Opens an event of the calling thread, and maps its ring buffer.
///
/// # Safety
/// As perf_fd_open_other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_fd_open(fd: *mut Fd, attr: *mut Attr, shift: c_int) -> c_int {
    // SAFETY: the caller's word.
    unsafe { open(fd, attr, shift, 0, -1) }
}

/// The same of any thread or CPU.
///
/// # Safety
/// `fd` can be written, `attr` is as large as its `size` says; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_fd_open_other(
    fd: *mut Fd,
    attr: *mut Attr,
    shift: c_int,
    pid: c_int,
    cpu: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { open(fd, attr, shift, pid, cpu) }
}

/// (An exported name may be the program's own function.)
///
/// # Safety
/// As perf_fd_open_other.
unsafe fn open(fd: *mut Fd, attr: *mut Attr, shift: c_int, pid: c_int, cpu: c_int) -> c_int {
    if fd.is_null() {
        return -1;
    }
    // SAFETY: the caller's word.
    let opened = guard(None, || unsafe { (!attr.is_null()).then(|| Fd::open(attr, shift, pid, cpu).ok())? });
    let result = if opened.is_some() { 0 } else { -1 };
    // SAFETY: the caller's word.
    unsafe { fd.write(opened.unwrap_or(Fd::CLOSED)) };
    result
}

/// Unmaps and closes; what is not open stays closed.
///
/// # Safety
/// `fd` is as perf_fd_open left it, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_fd_close(fd: *mut Fd) {
    if !fd.is_null() {
        // SAFETY: the caller's word.
        guard((), || unsafe { (*fd).close() });
    }
}

/// # Safety
/// As perf_fd_close.
unsafe fn control(fd: *mut Fd, request: unsafe fn(c_int, c_uint) -> c_int) -> c_int {
    if fd.is_null() {
        return -1;
    }
    // SAFETY: the caller's word; the kernel checks the descriptor.
    if unsafe { request((*fd).pfd, 0) } < 0 { -1 } else { 0 }
}

/// The event counts from now on.
///
/// # Safety
/// As perf_fd_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_enable(fd: *mut Fd) -> c_int {
    // SAFETY: the caller's word.
    unsafe { control(fd, ENABLE) }
}

/// It counts no longer.
///
/// # Safety
/// As perf_fd_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_disable(fd: *mut Fd) -> c_int {
    // SAFETY: the caller's word.
    unsafe { control(fd, DISABLE) }
}

/// Bytes of control page and data; 0 if they are more than this can say.
#[unsafe(no_mangle)]
pub extern "C" fn perf_mmap_size(shift: c_int) -> c_uint {
    ring::mapping_size(shift).unwrap_or(0)
}

/// What is in the buffer now.
///
/// # Safety
/// `iter` can be written, `fd` is open; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_iter_init(iter: *mut Iter, fd: *mut Fd) {
    if !iter.is_null() {
        // SAFETY: the caller's word.
        unsafe { iter.write(fd.as_ref().map_or(Iter::EMPTY, |fd| Iter::of(fd))) };
    }
}

/// The next record, or NULL.
///
/// # Safety
/// `iter` is as perf_iter_init left it, of what is still open, or NULL; `buffer` has so many bytes, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_buffer_read(
    iter: *mut Iter,
    buffer: *mut c_void,
    bytes: c_int,
) -> *mut RecordHeader {
    if iter.is_null() {
        return null_mut();
    }
    let room = usize::try_from(bytes).unwrap_or(0);
    // SAFETY: the caller's word.
    let record = guard(None, || unsafe { (*iter).next(buffer.cast(), room) });
    record.map_or(null_mut(), NonNull::as_ptr)
}

/// Gives the kernel what was in the buffer at perf_iter_init.
///
/// # Safety
/// As perf_buffer_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_iter_continue(iter: *mut Iter) {
    if !iter.is_null() {
        // SAFETY: the caller's word.
        unsafe { (*iter).release() };
    }
}

/// Maps the AUX area: 2^shift pages.
///
/// # Safety
/// `fd` is open, `aux` can be written; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_aux_map(fd: *mut Fd, aux: *mut AuxMap, shift: c_int, snapshot: bool) -> c_int {
    if fd.is_null() || aux.is_null() {
        return -1;
    }
    // SAFETY: the caller's word.
    let map = guard(None, || unsafe { (*fd).map_aux(shift, snapshot).ok() });
    // SAFETY: the caller's word.
    unsafe { (*aux).aux_map = map.unwrap_or(MAP_FAILED) };
    if map.is_some() { 0 } else { -1 }
}

/// Unmaps it, before perf_fd_close.
///
/// # Safety
/// As perf_aux_map left both; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perf_aux_unmap(fd: *mut Fd, aux: *mut AuxMap) {
    if !fd.is_null() && !aux.is_null() {
        // SAFETY: the caller's word.
        guard((), || unsafe { (*fd).unmap_aux(&mut *aux) });
    }
}
