//! What the kernel tells udev: that a CPU goes offline or comes online, when it does.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket on which the kernel's events come.
pub struct Hotplug(OwnedFd);

/// The group of the kernel's own events. (udev's go to another)
const KERNEL: u32 = 1;
/// In the path of a device that is a CPU.
const CPU: &[u8] = b"/devices/system/cpu/cpu";

impl Hotplug {
    /// From now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Hotplug> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a system call without pointers; what it returns is a new descriptor. Of an address any bytes are valid.
        let (socket, mut address): (_, libc::sockaddr_nl) = unsafe {
            match libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_KOBJECT_UEVENT) {
                fd @ 0.. => (OwnedFd::from_raw_fd(fd), std::mem::zeroed()),
                _ => return Err(io::Error::last_os_error()),
            }
        };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = KERNEL;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: an address of this size.
        match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) } {
            0 => Ok(Hotplug(socket)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// It can be read when events have come.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Reads what has come: whether a CPU has gone or come, or may have, since events were lost.
    pub fn has_changed(&self) -> bool {
        let mut event = [0_u8; 8192];
        let mut changed = false;
        loop {
            // SAFETY: a live buffer of this size.
            let got = unsafe { libc::recv(self.0.as_raw_fd(), event.as_mut_ptr().cast(), event.len(), 0) };
            match usize::try_from(got) {
                Ok(length) => changed |= event[..length].windows(CPU.len()).any(|part| part == CPU),
                Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS) => changed = true,
                Err(_) => return changed,
            }
        }
    }
}
