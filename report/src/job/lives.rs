//! One file of which rank R has byte R: 1 as soon as it has begun, and locked as long as its `topdown run` lives.
//! (Locks of bytes, since locks of whole files took a file for each rank.)

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Its name.
const NAME: &str = "lives";
/// The byte that is locked by who makes the report: there is no such rank.
const REPORT: i64 = 1 << 40;

/// A byte's state.
const BEGUN: [u8; 1] = [1];

/// The file, open in one place. Locks of it end when that is closed.
pub struct Lives(File);

impl Lives {
    /// That of a directory.
    pub fn open(directory: &Path) -> io::Result<Lives> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(Lives(options.open(directory.join(NAME))?))
    }

    /// To see who runs.
    pub fn open_to_see(directory: &Path) -> io::Result<Lives> {
        Ok(Lives(File::open(directory.join(NAME))?))
    }

    /// Has a rank begin. Whether it is the first of this number.
    pub fn begin(&self, rank: u32) -> io::Result<bool> {
        if !self.locked(libc::F_OFD_SETLK, i64::from(rank))? {
            return Ok(false);
        }
        let mut known = [0];
        let is_known = self.0.read_at(&mut known, u64::from(rank))? == 1 && known == BEGUN;
        if !is_known {
            self.0.write_all_at(&BEGUN, u64::from(rank))?;
        }
        Ok(!is_known)
    }

    /// Waits until nobody else makes the report; nobody does until this is closed.
    pub fn take_turn(&self) -> io::Result<()> {
        self.locked(libc::F_OFD_SETLKW, REPORT).map(drop)
    }

    /// Whether somebody else has a rank's byte locked.
    pub fn runs(&self, rank: u32) -> bool {
        let mut lock = lock_of(libc::F_RDLCK, i64::from(rank));
        // SAFETY: the file is open, and the lock a valid one, which is written to.
        let asked = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
        // (who cannot be asked for may run: nothing of it is thrown away)
        asked != 0 || lock.l_type != libc::F_UNLCK as libc::c_short
    }

    /// False: another has it.
    fn locked(&self, how: libc::c_int, byte: i64) -> io::Result<bool> {
        let lock = lock_of(libc::F_WRLCK, byte);
        loop {
            // SAFETY: the file is open, and the lock a valid one.
            if unsafe { libc::fcntl(self.0.as_raw_fd(), how, &lock) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => return Ok(false),
                Some(libc::EINTR) => {}
                _ => return Err(error),
            }
        }
    }
}

fn lock_of(kind: libc::c_int, byte: i64) -> libc::flock {
    // SAFETY: integers, of which 0 is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte;
    lock.l_len = 1;
    lock
}
