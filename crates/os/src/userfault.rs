//! Being told when memory loses its pages (`userfaultfd(2)`): that it was unmapped, moved, or given back to the system.
//!
//! What is watched is registered for write protection, but no page ever is protected: so there are no faults to serve, only events.
//! Whoever changes watched memory waits in the kernel until the event has been read. So somebody has to read them all the time,
//! without waiting for anyone who may be changing memory: that is also whoever allocates or frees.
//!
//! # Invariants
//! - userfault.1: a structure goes to the kernel borrowed, of the type that the request names, and lives through the call. Every
//!   pattern of bits is a valid one.
//! - userfault.2: addresses are looked up by the kernel and not used: what is asked of it leaves all bytes as they are.
//! - userfault.3: a descriptor that a call gave us belongs to nobody else.
//! - userfault.4: nothing is allocated, freed or locked by [`Userfault::next`] and [`Userfault::wait`].
//! - userfault.5: a mapping of a test is the test's own, which has no reference to its bytes while it changes them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{OsError, Result};

/// `UFFD_API`.
const API: u64 = 0xAA;
/// `UFFD_USER_MODE_ONLY`: who may not serve the kernel's faults may serve the program's.
const USER_MODE_ONLY: libc::c_int = 1;
/// `UFFDIO_REGISTER_MODE_WP`.
const WRITE_PROTECT: u64 = 1 << 1;

/// What a kernel has to have: write protection, and events of what is moved, given back and unmapped.
mod feature {
    pub const WRITE_PROTECT: u64 = 1;
    pub const REMAP: u64 = 1 << 2;
    pub const REMOVE: u64 = 1 << 3;
    pub const UNMAP: u64 = 1 << 6;
    pub const EVENTS: u64 = REMAP | REMOVE | UNMAP;
}

/// `struct uffdio_api`.
#[repr(C)]
#[derive(Default)]
struct Handshake {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_range`.
#[repr(C)]
#[derive(Default)]
struct Range {
    start: u64,
    len: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
#[derive(Default)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_writeprotect`.
#[repr(C)]
#[derive(Default)]
struct Protect {
    range: Range,
    mode: u64,
}

/// `struct uffd_msg`.
#[repr(C)]
#[derive(Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    /// Of the events that are asked for: start and end, or from, to and length.
    words: [u64; 3],
}

const NEW: libc::Ioctl = libc::_IO(API as u32, 0);
const HANDSHAKE: libc::Ioctl = libc::_IOWR::<Handshake>(API as u32, 0x3F);
const REGISTER: libc::Ioctl = libc::_IOWR::<Register>(API as u32, 0);
const UNREGISTER: libc::Ioctl = libc::_IOR::<Range>(API as u32, 1);
const PROTECT: libc::Ioctl = libc::_IOWR::<Protect>(API as u32, 6);

/// What happened to watched memory. Addresses are those of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is not mapped any more; perhaps something else is already.
    Unmapped {
        /// Its first byte.
        start: usize,
        /// The byte after it.
        end: usize,
    },
    /// It is still mapped and about to lose its contents. The kernel goes on when this has been read.
    Emptied {
        /// Its first byte.
        start: usize,
        /// The byte after it.
        end: usize,
    },
    /// Its pages are elsewhere, where they are watched now.
    Moved {
        /// Where they were.
        from: usize,
        /// Where they are.
        to: usize,
        /// How many bytes.
        len: usize,
    },
    /// Something that was not asked for, or reading failed.
    Unknown,
}

/// What [`Userfault::wait`] waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// There are events.
    pub events: bool,
    /// The other descriptor is readable.
    pub other: bool,
}

/// Memory that is watched, and what happens to it.
#[derive(Debug)]
pub struct Userfault(OwnedFd);

/// A request that has a structure.
fn request<T>(fd: BorrowedFd<'_>, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: userfault.1: `argument` is borrowed exclusively, and every caller gives the type that its `request` names. userfault.2: the
    // addresses in it are only looked up.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes a descriptor as it came from the kernel.
fn owned(fd: impl Into<i64>) -> io::Result<OwnedFd> {
    match i32::try_from(fd.into()) {
        // SAFETY: userfault.3: the callers give what a call has just returned; not negative, it is open, and it is owned here, once.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn by_call(more: libc::c_int) -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | more;
    // SAFETY: `userfaultfd` is given its flags and no pointer.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

fn by_device() -> io::Result<OwnedFd> {
    let device = File::options().read(true).write(true).open("/dev/userfaultfd")?;
    // SAFETY: `device` is open until this returns, and the request is given flags and no pointer.
    owned(unsafe { libc::ioctl(device.as_raw_fd(), NEW, libc::O_CLOEXEC | libc::O_NONBLOCK) })
}

impl Userfault {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// The kernel has no such thing, not all of it, or not for this process.
    pub fn open() -> Result<Self> {
        let refused = |cause| OsError::new("watch", "memory", cause);
        if cfg!(miri) {
            return Err(refused(io::ErrorKind::Unsupported.into()));
        }
        let first =
            by_call(0).or_else(|cause| by_call(USER_MODE_ONLY).or_else(|_| by_device()).map_err(|_| cause));
        let this = Self(first.map_err(refused)?);
        let mut handshake = Handshake { api: API, features: feature::EVENTS, ioctls: 0 };
        request(this.0.as_fd(), HANDSHAKE, &mut handshake).map_err(refused)?;
        if handshake.features & feature::WRITE_PROTECT == 0 {
            return Err(OsError::other("watch", "memory", "the kernel has no write protection for that"));
        }
        Ok(this)
    }

    /// The same, by another descriptor.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn try_clone(&self) -> Result<Self> {
        let clone = self.0.try_clone();
        clone.map(Self).map_err(|cause| OsError::new("duplicate", "a descriptor on memory", cause))
    }

    /// Watches pages. Some of them may be watched already.
    ///
    /// # Errors
    /// Of some the kernel tells nothing (they lie in a file), or it tells somebody else.
    pub fn watch(&self, start: usize, len: usize) -> io::Result<()> {
        let range = Range { start: start as u64, len: len as u64 };
        request(self.0.as_fd(), REGISTER, &mut Register { range, mode: WRITE_PROTECT, ioctls: 0 })
    }

    /// Watches pages no more.
    ///
    /// # Errors
    /// Among them there are some that cannot be watched, or none are mapped.
    pub fn forget(&self, start: usize, len: usize) -> io::Result<()> {
        request(self.0.as_fd(), UNREGISTER, &mut Range { start: start as u64, len: len as u64 })
    }

    /// Whether watched memory is being changed now, by somebody who waits for an event to be read or will. The kernel says so from before
    /// the change until that one goes on.
    pub fn is_changing(&self) -> bool {
        // Of no pages: the kernel looks for changes first, and finds the length wrong if there are none.
        let asked = request(self.0.as_fd(), PROTECT, &mut Protect::default());
        !asked.is_err_and(|why| why.raw_os_error() == Some(libc::EINVAL))
    }

    /// The next event, if there is one. Whoever caused it goes on.
    pub fn next(&self) -> Option<Event> {
        let mut message = Message::default();
        let room = size_of::<Message>();
        // SAFETY: userfault.1: at most `room` bytes are written, the size of `message`, a local whose every pattern of bits is valid.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut message).cast(), room) };
        if read < 0 && matches!(nix::errno::Errno::last_raw(), libc::EAGAIN | libc::EINTR) {
            return None;
        }
        let [first, second, third] = message.words.map(|word| word as usize);
        Some(match message.event {
            _ if read != room as isize => Event::Unknown,
            0x14 => Event::Moved { from: first, to: second, len: third },
            0x15 => Event::Emptied { start: first, end: second },
            0x16 => Event::Unmapped { start: first, end: second },
            _ => Event::Unknown,
        })
    }

    /// Waits until there are events, or until another descriptor is readable.
    pub fn wait(&self, other: BorrowedFd<'_>) -> Ready {
        let readable = PollFlags::POLLIN;
        let mut fds = [PollFd::new(self.0.as_fd(), readable), PollFd::new(other, readable)];
        // Interrupted or refused: looked at again by the caller.
        let _ = poll(&mut fds, PollTimeout::NONE);
        let [events, other] = fds.map(|fd| fd.any().unwrap_or(false));
        Ready { events, other }
    }
}

/// Whether all of these pages are there and nobody else's: neither of a file nor shared. Of others the kernel does not tell all that may
/// happen to them: that the file was cut, or that memory of System V was detached.
pub fn is_private(start: usize, len: usize) -> bool {
    const FILE: u64 = 1 << 61;
    const PRESENT: u64 = 1 << 63;
    let page = crate::memfd::page_size();
    let Ok(map) = File::open("/proc/self/pagemap") else { return false };
    let (mut at, end) = (start / page, (start + len).div_ceil(page));
    let mut words = [0u8; 4096];
    while at < end {
        let some = &mut words[..(end - at).min(512) * 8];
        if map.read_exact_at(some, at as u64 * 8).is_err() {
            return false;
        }
        let mut pages = some.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        if !pages.all(|page| page & (FILE | PRESENT) == PRESENT) {
            return false;
        }
        at += some.len() / 8;
    }
    true
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::eventfd::EventFd;
    use memmap2::{MmapMut, MmapOptions, RemapOptions, UncheckedAdvice};
    use std::thread;

    const LEN: usize = 1 << 20;

    fn fresh() -> (MmapMut, usize) {
        let mut map = MmapOptions::new().len(LEN).map_anon().expect("mapped");
        map.fill(1);
        let start = map.as_ptr().addr();
        (map, start)
    }

    /// A kernel that admits none of this is no failure: then nothing is watched.
    fn opened() -> Option<Userfault> {
        let opened = Userfault::open();
        if let Err(why) = &opened {
            eprintln!("nothing can be watched here: {why}");
        }
        opened.ok()
    }

    /// What is told while `change` goes on in a thread of its own, which waits for it to be read.
    fn told(fault: &Userfault, change: impl FnOnce() + Send) -> Vec<Event> {
        let over = EventFd::new().expect("a counter");
        thread::scope(|scope| {
            scope.spawn(|| {
                change();
                over.ring().expect("rung");
            });
            let mut told = Vec::with_capacity(16);
            loop {
                let ready = fault.wait(over.as_fd());
                if ready.events {
                    assert!(fault.is_changing());
                    told.extend(fault.next());
                } else if ready.other {
                    break;
                }
            }
            assert!(!fault.is_changing() && fault.next().is_none());
            told
        })
    }

    #[test]
    fn what_happens_to_memory_is_told() {
        let Some(fault) = opened() else { return };
        let page = crate::memfd::page_size();
        let (map, start) = fresh();
        fault.watch(start, LEN).expect("watched");
        fault.watch(start + page, page).expect("watched by us already");
        assert!(!fault.is_changing());
        // SAFETY: userfault.5: `map` is this test's own, and nobody has a reference to its bytes while the second page is given back.
        let empty = || unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, page, page) };
        let emptied = told(&fault, || empty().expect("advised"));
        assert_eq!(emptied, [Event::Emptied { start: start + page, end: start + 2 * page }]);
        assert_eq!((map[page - 1], map[page]), (1, 0), "it was given back");
        assert_eq!(told(&fault, || drop(map)), [Event::Unmapped { start, end: start + LEN }]);
        // What is not watched is not told, by whichever descriptor.
        assert_eq!(told(&fault, || drop(fresh())), []);
        let (map, start) = fresh();
        fault.watch(start, LEN).expect("watched");
        fault.try_clone().expect("a descriptor").forget(start, LEN / 2).expect("half of it");
        // Some of it is watched, and all that was unmapped with it is told.
        assert_eq!(told(&fault, || drop(map)), [Event::Unmapped { start, end: start + LEN }]);
    }

    #[test]
    fn memory_that_moves_is_watched_where_it_goes() {
        let Some(fault) = opened() else { return };
        let (mut map, from) = fresh();
        fault.watch(from, LEN).expect("watched");
        let (mut to, grow) = (0, RemapOptions::new().may_move(true));
        let moved = told(&fault, || {
            // SAFETY: userfault.5: `map` is this test's own, borrowed exclusively here, and nobody has a reference to where it was.
            unsafe { map.remap(LEN << 10, grow) }.expect("moved");
            to = map.as_ptr().addr();
        });
        if to == from {
            assert_eq!(moved, []);
        } else {
            // What was moved is told also as unmapped, after that.
            assert_eq!(moved[0], Event::Moved { from, to, len: LEN });
        }
        // All of it, for what is watched grows with its mapping.
        fault.forget(to, LEN << 10).expect("forgotten");
        assert_eq!(told(&fault, || drop(map)), []);
    }

    #[test]
    fn what_others_may_change_is_not_private() {
        let page = crate::memfd::page_size();
        let (map, start) = fresh();
        assert!(is_private(start, LEN) && is_private(start + page, 1));
        let shared = crate::memfd::create("shared", LEN).expect("a file").map().expect("mapped");
        let first = shared.as_ptr().addr();
        // SAFETY: userfault.5: `shared` is this test's own, of `LEN` bytes that were all shown, to which nobody has a reference.
        unsafe { shared.as_ptr().write_bytes(1, LEN) };
        assert!(!is_private(first, page) && !is_private(first, LEN));
        // What was never touched is not there yet.
        let empty = MmapOptions::new().len(LEN).map_anon().expect("mapped");
        assert!(!is_private(empty.as_ptr().addr(), page) && !is_private(0, page));
        drop(map);
        assert!(!is_private(start, LEN));
    }
}
