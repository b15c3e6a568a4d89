//! The table file of this process, and records in it.
//!
//! Mapped shared, so what is stored is in the file whatever becomes of the process; the descriptor is closed again at
//! once. Room is allocated before it is mapped: a full disk refuses records, it does not raise SIGBUS.

use crate::at_work::WorkGuard;
use crate::memory::page;
use crate::record::OwnRecord;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Error};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use topdown_table::{
    HEADER_SIZE, Header, MAGIC, MOST_RECORDS, NAME, NONE, Record, VERSION, offset_of_record,
};

/// Records that are mapped at a time.
const CHUNK: u32 = 32;
const CHUNK_SIZE: usize = CHUNK as usize * size_of::<Record>();
/// So many chunks at most.
const CHUNKS: usize = (MOST_RECORDS / CHUNK) as usize;

/// A mapped table file.
pub struct TableFile {
    path: PathBuf,
    /// Device and inode: whether the path still leads there.
    identity: (u64, u64),
    header: *mut Header,
    chunks: [AtomicPtr<Record>; CHUNKS],
    used: AtomicU32,
    growing: Mutex<()>,
    describing: Mutex<()>,
    /// The process is at its end: what its threads miss from here on does not count.
    closed: AtomicBool,
}

// SAFETY: records are written by those who took them; the rest is atomic, locked, or written before others see it.
unsafe impl Send for TableFile {}
// SAFETY: as above.
unsafe impl Sync for TableFile {}

impl TableFile {
    /// Creates a file that does not exist yet; the header is filled in but for what the caller knows.
    pub fn create(path: &Path) -> io::Result<TableFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(path)?;
        let make = || -> io::Result<_> {
            allocate(&file, 0, HEADER_SIZE)?;
            let header: *mut Header = map(&file, 0, HEADER_SIZE)?.cast();
            // SAFETY: a page that was just mapped, of a file of zeros that nobody else has open.
            unsafe {
                (*header).magic = MAGIC;
                (*header).version = VERSION;
                (*header).record_size = size_of::<Record>() as u32;
            }
            let about = file.metadata()?;
            Ok((header, (about.dev(), about.ino())))
        };
        let (header, identity) = make().inspect_err(|_| _ = std::fs::remove_file(path))?;
        Ok(TableFile {
            path: path.to_owned(),
            identity,
            header,
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            used: AtomicU32::new(0),
            growing: Mutex::new(()),
            describing: Mutex::new(()),
            closed: AtomicBool::new(false),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is a copy of the process, which has the memory but for the file.
    pub fn is_unmapped(&self) -> bool {
        let mut resident = 0;
        let start = self.header as usize & !(page() - 1); // (where pages are large, the header is not at the start of one)
        // SAFETY: the kernel says what is there of a page, or that nothing is.
        let code = unsafe { libc::mincore(start as *mut libc::c_void, 1, &mut resident) };
        code != 0 && Error::last_os_error().raw_os_error() == Some(libc::ENOMEM)
    }

    /// `Header::ended`.
    pub fn ended(&self) -> &AtomicU32 {
        // SAFETY: mapped as long as the process is this one.
        unsafe { &(*self.header).ended }
    }

    /// A region more of which nothing is known.
    pub fn refuse(&self) {
        // SAFETY: as above.
        unsafe { (*self.header).refused.fetch_add(1, Ordering::Relaxed) };
    }

    /// A thread more is not measured.
    pub fn refuse_thread(&self, why: &str) {
        // SAFETY: as above.
        unsafe { (*self.header).unmeasured.fetch_add(1, Ordering::Relaxed) };
        self.describe(|header| {
            if header.refusal[0] == 0 {
                put(&mut header.refusal, why.as_bytes());
            }
        });
    }

    /// Has the header say something more, unless another thread does (or the calling one, which a signal handler has interrupted).
    pub fn describe(&self, work: impl FnOnce(&mut Header)) {
        if let Ok(_describing) = self.describing.try_lock() {
            // SAFETY: mapped as long as the process is this one; others use the three atomics alone meanwhile, by `ended`, `refuse` and `refuse_thread`.
            work(unsafe { &mut *self.header });
        }
    }

    /// The process is at its end; whether that was known.
    pub fn close(&self) -> bool {
        self.closed.swap(true, Ordering::AcqRel)
    }

    /// Whether the process is at its end.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether this is an address in it.
    pub fn has(&self, address: usize) -> bool {
        let within = |from: usize, length: usize| from != 0 && (from..from + length).contains(&address);
        within(self.header as usize, HEADER_SIZE)
            || self.chunks.iter().any(|chunk| within(chunk.load(Ordering::Acquire) as usize, CHUNK_SIZE))
    }

    /// A record for this name, and its number, to be given a kind by the caller when the rest of it is as it should be. None
    /// if there is no room.
    pub fn take(&self, name: &CStr) -> Option<(OwnRecord, u32)> {
        let number = self.used.fetch_add(1, Ordering::Relaxed);
        let record = self.at(number)?;
        let length = name.to_bytes().len().min(NAME);
        // SAFETY: the record is nobody else's, and zeros, so the name ends in one. A table stays mapped.
        unsafe {
            (*record).parent = NONE;
            (&raw mut (*record).name).cast::<u8>().copy_from_nonoverlapping(name.as_ptr().cast(), length);
            Some((OwnRecord::new(NonNull::new(record)?), number))
        }
    }

    fn at(&self, number: u32) -> Option<*mut Record> {
        let chunk = self.chunks.get((number / CHUNK) as usize)?;
        let mut records = chunk.load(Ordering::Acquire);
        if records.is_null() {
            let _alone = WorkGuard::new();
            let _growing = self.growing.lock().ok()?;
            records = chunk.load(Ordering::Acquire);
            if records.is_null() {
                records = self.grow(number / CHUNK).ok()?;
                chunk.store(records, Ordering::Release);
            }
        }
        // SAFETY: a chunk has so many records.
        Some(unsafe { records.add((number % CHUNK) as usize) })
    }

    fn grow(&self, chunk: u32) -> io::Result<*mut Record> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(&self.path)?;
        let about = file.metadata()?;
        if (about.dev(), about.ino()) != self.identity {
            return Err(Error::from_raw_os_error(libc::ESTALE)); // a chroot, or somebody else's file
        }
        let from = offset_of_record(chunk * CHUNK);
        allocate(&file, from, CHUNK_SIZE)?;
        Ok(map(&file, from, CHUNK_SIZE)?.cast())
    }
}

static ZEROS: [u8; 4096] = [0; 4096];

/// Room on the disk, unless the program has set itself a limit that this would exceed (the kernel would send SIGXFSZ).
fn allocate(file: &File, from: usize, length: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limit is a live rlimit; the descriptor is live.
    let code = unsafe {
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        if (from + length) as u64 > limit.rlim_cur {
            libc::EFBIG
        } else {
            libc::posix_fallocate(file.as_raw_fd(), from as libc::off_t, length as libc::off_t)
        }
    };
    match code {
        0 => Ok(()),
        // a seccomp filter that does not know fallocate(2): man(1) has one
        libc::ENOSYS | libc::EPERM => {
            let write =
                |at: usize| file.write_all_at(&ZEROS[..ZEROS.len().min(from + length - at)], at as u64);
            (from..from + length).step_by(ZEROS.len()).try_for_each(write)
        }
        code => Err(Error::from_raw_os_error(code)),
    }
}

/// Maps a part of the file, with what is before it in its first page; a forked child does not get the mapping.
fn map(file: &File, from: usize, length: usize) -> io::Result<*mut libc::c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let before = from % page();
    let (begin, length) = ((from - before) as libc::off_t, before + length);
    // SAFETY: a new mapping where the kernel likes.
    let at = unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), begin) };
    if at == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    // SAFETY: the mapping is ours, and longer than what is before the part.
    unsafe {
        libc::madvise(at, length, libc::MADV_DONTFORK);
        Ok(at.byte_add(before))
    }
}

/// Copies a text into a field of the header, cut to fit.
pub fn put(field: &mut [u8], text: &[u8]) {
    let length = text.len().min(field.len() - 1);
    field[..length].copy_from_slice(&text[..length]);
    field[length] = 0;
}
