//! The memory of another process, by address (`process_vm_readv(2)`, `process_vm_writev(2)`).
//!
//! The system admits it to processes of the same user, unless it is set up not to (`ptrace(2)`); with Yama's
//! `ptrace_scope` 1 the other process has to agree first, by [`admit_all`].
//!
//! # Invariants
//! - remote.1: the system checks the addresses of both sides, and refuses what is not mapped or not to be written. It reads and
//!   writes as another thread would, and aligned words at once, unless the two addresses are askew (`is_askew`): it is not asked
//!   to copy between such.
//! - remote.2: what is written, here or there, is the caller's to be written: who calls an unsafe function of these promises it. The
//!   other process may be this one.
//! - remote.3: a call that takes numbers alone touches no memory; a descriptor that it gives is new, and nobody else's.
//! - remote.4: bytes of this process that the system could read a moment ago are there still: who names them keeps them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use gasworks_sync::RawSlice;
use libc::{c_ulong, c_void, iovec};
use nix::errno::Errno;

use crate::{OsError, Result};

/// Lets any process of the same user reach this one's memory, where that needs its consent. Elsewhere it does nothing.
pub fn admit_all() {
    // SAFETY: remote.3: the option and its argument are numbers. There is no such call without Yama, and no need for it.
    let _ = unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
}

/// Whether the process `pid` has ended, whether or not anybody has asked how.
pub fn is_gone(pid: i32) -> bool {
    Remote { pid }.read(0, &mut [0]) == Err(Refused::Gone)
}

/// Copies bytes of this process, faster than by [`Remote::read`] where they are few: it asks the system of each page whether it
/// may be read, and reads then.
///
/// # Errors
/// [`Refused::Unmapped`]: nothing was copied.
///
/// # Safety
/// What is mapped stays so until this returns (remote.4), and nobody has an exclusive reference to it.
pub unsafe fn read_here(address: u64, into: &mut [u8]) -> std::result::Result<(), Refused> {
    let (len, Some(last)) = (into.len(), address.checked_add(into.len() as u64)) else {
        return Err(Refused::Unmapped);
    };
    let mut at = address;
    while at < last {
        if !is_readable(at) {
            return Err(Refused::Unmapped);
        }
        at = (at / PAGE + 1).saturating_mul(PAGE);
    }
    // SAFETY: remote.4: each page of these bytes could be read just now, and the caller promises that it stays so and that nobody has an
    // exclusive reference. The slice is read once and dropped, which needs no right to write and bears shared references.
    unsafe { RawSlice::new(address as *mut u8, len).borrow() }.read(into);
    Ok(())
}

/// Whether the word of eight bytes in which an address lies may be read.
fn is_readable(address: u64) -> bool {
    const NO_SUCH_WAY: i64 = -1;
    // A set of signals is read before it is found that nobody knows what to do with it.
    // SAFETY: remote.1: the system reads eight bytes, if they are mapped; `NO_SUCH_WAY` is no way, so that no mask is changed.
    let done = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_WAY, address & !7, 0u64, 8u64) };
    Errno::result(done) == Err(Errno::EINVAL)
}

/// Why memory was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not mapped, there or here, or not to be written.
    Unmapped,
    /// The process is gone.
    Gone,
    /// The system does not allow it.
    Forbidden,
}

/// A process whose memory is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pid: i32,
}

impl Remote {
    /// The process `pid`.
    ///
    /// # Errors
    /// The system does not allow it, and why that may be; or there is no such process.
    pub fn open(pid: i32) -> Result<Self> {
        const OPERATION: &str = "reach the memory of process";
        let remote = Self { pid };
        // Nothing is mapped at 0, so that whoever is allowed is told of that.
        match remote.read(0, &mut [0]) {
            Err(Refused::Unmapped) | Ok(()) => Ok(remote),
            Err(Refused::Gone) => Err(OsError::new(OPERATION, pid, Errno::ESRCH)),
            Err(Refused::Forbidden) => {
                let why = "the system does not allow it: see `ptrace_scope` of Yama, and the capabilities and \
                           system calls that a container allows";
                Err(OsError::new(OPERATION, pid, io::Error::other(why)))
            }
        }
    }

    /// The number by which the system knows it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// One of its descriptors, as one of ours (`pidfd_getfd(2)`). Nothing says what it is of.
    ///
    /// # Errors
    /// It has none of that number, or the system does not allow it, or is older than Linux 5.6.
    pub fn descriptor(&self, number: RawFd) -> Result<OwnedFd> {
        let failed = |e| OsError::new("take a descriptor of process", self.pid, e);
        // SAFETY: remote.3: either call is given numbers alone, and the descriptor that it has just given is owned here, once.
        let taken = |call: i64, arguments: [i64; 2]| unsafe {
            let number = Errno::result(libc::syscall(call, arguments[0], arguments[1], 0)).map_err(failed)?;
            Ok(OwnedFd::from_raw_fd(number as RawFd))
        };
        let process = taken(libc::SYS_pidfd_open, [self.pid.into(), 0])?;
        taken(libc::SYS_pidfd_getfd, [process.as_raw_fd().into(), number.into()])
    }

    /// Copies bytes out of it.
    ///
    /// # Errors
    /// [`Refused`]; some may have been copied.
    pub fn read(&self, address: u64, into: &mut [u8]) -> std::result::Result<(), Refused> {
        // SAFETY: remote.2: `into` is borrowed exclusively until the call returns, so its bytes may be written.
        unsafe { self.read_to(address, into.as_mut_ptr() as u64, into.len() as u64) }
    }

    /// Copies bytes into it.
    ///
    /// ```compile_fail,E0133
    /// let this = gasworks_os::remote::Remote::open(std::process::id() as i32).unwrap();
    /// let truth = Box::new(true);
    /// this.write(std::ptr::from_ref::<bool>(&truth).addr() as u64, &[2]);
    /// ```
    ///
    /// # Safety
    /// Whoever runs there has let these bytes be written. If it is this process, they are as those of [`read_to`](Self::read_to).
    ///
    /// # Errors
    /// [`Refused`]; some may have been copied.
    pub unsafe fn write(&self, address: u64, from: &[u8]) -> std::result::Result<(), Refused> {
        // SAFETY: remote.2: the caller promises that the bytes at `address` may be written; `from` is borrowed and only read.
        unsafe { self.write_from(address, from.as_ptr() as u64, from.len() as u64) }
    }

    /// Copies `len` bytes out of it to the address `here` of this process.
    ///
    /// # Safety
    /// The bytes from `here` on are not this program's own: nobody has a reference to them, and nothing else of it lies
    /// there.
    ///
    /// # Errors
    /// [`Refused`]; some may have been copied.
    pub unsafe fn read_to(&self, address: u64, here: u64, len: u64) -> std::result::Result<(), Refused> {
        if is_askew(address, here) {
            // SAFETY: remote.2: what is written are `len` bytes from `here` on, to which nobody has a reference, as the caller promises.
            return unsafe { by_way((*self, address), (Self::own(), here), len) };
        }
        // SAFETY: remote.2: `fetch` writes from `here` on alone, and the caller promises that nobody has a reference to those bytes.
        unsafe { self.fetch(address, here, len) }
    }

    /// Copies `len` bytes from the address `here` of this process into it.
    ///
    /// # Safety
    /// As [`write`](Self::write).
    ///
    /// # Errors
    /// [`Refused`]; some may have been copied.
    pub unsafe fn write_from(&self, address: u64, here: u64, len: u64) -> std::result::Result<(), Refused> {
        if is_askew(here, address) {
            // SAFETY: remote.2: the caller promises that the bytes at `address` may be written; what lies at `here` is only read.
            return unsafe { by_way((Self::own(), here), (*self, address), len) };
        }
        // SAFETY: remote.2: `store` writes at `address` alone, in that process, and the caller promises that this may be written.
        unsafe { self.store(address, here, len) }
    }

    fn own() -> Self {
        Self { pid: std::process::id() as i32 }
    }

    /// # Safety
    /// As [`read_to`](Self::read_to).
    unsafe fn fetch(&self, there: u64, here: u64, len: u64) -> std::result::Result<(), Refused> {
        each_part(there, here, len, |there, here| {
            // SAFETY: remote.1, remote.2: `here` and `there` are locals of `each_part`, of one part each; the caller promises that the
            // part here may be written.
            unsafe { libc::process_vm_readv(self.pid, here, 1, there, 1, 0 as c_ulong) }
        })
    }

    /// # Safety
    /// As [`write`](Self::write).
    unsafe fn store(&self, there: u64, here: u64, len: u64) -> std::result::Result<(), Refused> {
        each_part(there, here, len, |there, here| {
            // SAFETY: remote.1, remote.2: `here` and `there` are locals of `each_part`, of one part each; the part here is only read, and
            // the caller promises that the other may be written.
            unsafe { libc::process_vm_writev(self.pid, here, 1, there, 1, 0 as c_ulong) }
        })
    }
}

/// Pages of the processor's: whether addresses are alike, it finds out within one.
const PAGE: u64 = 4096;

/// Whether bytes lie so near to where they are to go, within pages, that processors may copy them one by one: an aligned word would be
/// seen half written then. One did so up to 15 bytes before by `rep movsb`, and seldom a few behind; a line is taken to be on the safe side.
fn is_askew(from: u64, to: u64) -> bool {
    const NEAR: u64 = 64;
    let distance = to.wrapping_sub(from) % PAGE;
    distance != 0 && !(NEAR..=PAGE - NEAR).contains(&distance)
}

/// Copies by way of bytes that lie half a page from either.
///
/// # Safety
/// As [`Remote::write`].
unsafe fn by_way(
    (source, from): (Remote, u64),
    (target, to): (Remote, u64),
    len: u64,
) -> std::result::Result<(), Refused> {
    const PIECE: u64 = 16 * PAGE;
    let (mut page, mut pages);
    let (piece, room): (u64, &mut [u8]) = if len <= PAGE {
        page = [0u8; 2 * PAGE as usize];
        (PAGE, &mut page)
    } else {
        pages = vec![0u8; (PIECE + PAGE) as usize];
        (PIECE, &mut pages)
    };
    let first = room.as_mut_ptr() as u64;
    let mut done = 0;
    while done < len {
        let (from, to) = (from.wrapping_add(done), to.wrapping_add(done));
        let way = first + from.wrapping_add(PAGE / 2).wrapping_sub(first) % PAGE;
        // What is whole in one piece is a word of the target.
        let count = (piece - to % 8).min(len - done);
        // SAFETY: remote.2: `way` lies less than a page behind the start of `room`, this call's own, which is a page longer than `piece`, and
        // `count` is no more than that.
        unsafe { source.fetch(from, way, count) }?;
        // SAFETY: remote.2: these `count` bytes are among the `len` of the target, which the caller promises may be written.
        unsafe { target.store(to, way, count) }?;
        done += count;
    }
    Ok(())
}

/// Calls until all is moved; the system moves some 2 GiB at a time, and stops where something is not mapped.
fn each_part(
    mut there: u64,
    mut here: u64,
    mut len: u64,
    mut call: impl FnMut(*const iovec, *const iovec) -> isize,
) -> std::result::Result<(), Refused> {
    while len > 0 {
        let part = |at: u64| {
            Some(iovec {
                iov_base: usize::try_from(at).ok()? as *mut c_void,
                iov_len: usize::try_from(len).ok()?,
            })
        };
        let (Some(theirs), Some(ours)) = (part(there), part(here)) else { return Err(Refused::Unmapped) };
        let moved = match Errno::result(call(&raw const theirs, &raw const ours)) {
            Ok(moved) => moved as u64,
            Err(Errno::EINTR) => continue,
            Err(Errno::ESRCH) => return Err(Refused::Gone),
            Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => return Err(Refused::Forbidden),
            Err(_) => return Err(Refused::Unmapped),
        };
        if moved == 0 {
            return Err(Refused::Unmapped);
        }
        // What lies beyond the last address wraps around, and is refused by the next call.
        (there, here, len) = (there.wrapping_add(moved), here.wrapping_add(moved), len.saturating_sub(moved));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
    use std::os::fd::AsFd;
    use std::process::{Child, Command};

    const MARK: &str = "GASWORKS_REMOTE_TEST=one";

    /// A process that ends with this.
    struct Sleeper(Child);

    impl Sleeper {
        fn pid(&self) -> i32 {
            self.0.id() as i32
        }

        fn read(&self, name: &str) -> Vec<u8> {
            std::fs::read(format!("/proc/{}/{name}", self.pid())).expect("it is there")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A process, and the address of its environment.
    fn process() -> (Sleeper, u64) {
        let (name, value) = MARK.split_once('=').expect("two parts");
        let child = Command::new("sleep").arg("100").env_clear().env(name, value).spawn().expect("a process");
        let child = Sleeper(child);
        // It is another program soon.
        loop {
            let stat = String::from_utf8(child.read("stat")).expect("text");
            let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
            let start: u64 = fields[47].parse().expect("a number");
            let (remote, mut bytes) = (Remote { pid: child.pid() }, [0; MARK.len()]);
            let read = remote.read(start, &mut bytes);
            if stat.contains("(sleep)") && read == Ok(()) && bytes == *MARK.as_bytes() {
                return (child, start);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn another_process_is_read_and_written_until_it_is_gone() {
        let (mut child, environment) = process();
        let remote = Remote::open(child.pid()).expect("it is ours");
        // SAFETY: remote.2: the bytes are the environment of this test's child, a program that does not look at it.
        unsafe { remote.write(environment + MARK.len() as u64 - 3, b"two") }.expect("written");
        assert_eq!(child.read("environ"), [MARK.replace("one", "two").as_bytes(), b"\0"].concat());
        let pid = child.pid();
        assert!(!is_gone(pid));
        child.0.kill().expect("it is ours");
        // Nobody has asked how it ended.
        while !is_gone(pid) {
            std::thread::yield_now();
        }
        drop(child);
        assert_eq!(remote.read(environment, &mut [0]), Err(Refused::Gone));
        let error = Remote::open(pid).expect_err("it is gone").to_string();
        assert!(error.starts_with(&format!("reach the memory of process {pid}: ")), "{error}");
    }

    #[test]
    fn what_is_not_mapped_is_refused_on_either_side() {
        let remote = Remote::open(std::process::id() as i32).expect("this one");
        let (word, mut bytes) = (7u64.to_le_bytes(), [0; 8]);
        let address = word.as_ptr() as u64;
        assert_eq!(remote.read(address, &mut bytes), Ok(()));
        assert_eq!(bytes, word);
        for address in [0, 4096, 1 << 46, u64::MAX - 3] {
            assert_eq!(remote.read(address, &mut bytes), Err(Refused::Unmapped), "{address:#x}");
            // SAFETY: remote.1: nothing is mapped at `address`, so both calls are refused; the second would write this test's own `bytes`.
            let written = unsafe {
                [remote.write(address, &word), remote.write_from(bytes.as_mut_ptr() as u64, address, 8)]
            };
            assert_eq!(written, [Err(Refused::Unmapped); 2], "{address:#x}");
        }
        // SAFETY: remote.1: `MARK` is a constant, in memory that may only be read, so the call is refused.
        let written = unsafe { remote.write(MARK.as_ptr() as u64, b"GASWORKS") };
        assert_eq!(written, Err(Refused::Unmapped));
        assert_eq!(remote.read(0, &mut []), Ok(()));
    }

    #[test]
    fn bytes_here_are_read_where_they_may_be() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| at as u8).collect();
        let address = bytes.as_ptr() as u64;
        for (at, len) in [(0, 0), (3, 1), (4090, 12), (1, 16_001)] {
            let mut read = vec![0; len];
            // SAFETY: remote.4: the `len` bytes lie in `bytes`, which lives until the end of this test and is not written.
            assert_eq!(unsafe { read_here(address + at as u64, &mut read) }, Ok(()));
            assert_eq!(read, bytes[at..at + len]);
        }
        // A page that may not be read behind one that may.
        let page = memmap2::MmapOptions::new().len(8192).map_anon().expect("pages");
        let first = page.as_ptr() as u64;
        // SAFETY: the second half of `page`, a mapping of this test's own to which nobody has a reference, is taken from use.
        assert_eq!(unsafe { libc::mprotect((first + 4096) as *mut c_void, 4096, libc::PROT_NONE) }, 0);
        for (address, len) in [(first + 4096, 1), (first + 4090, 7), (0, 1), (1 << 46, 9), (u64::MAX - 3, 3)]
        {
            // SAFETY: remote.4: `page` stays mapped until the end of this test, without references; elsewhere nothing is mapped.
            let read = unsafe { read_here(address, &mut vec![0; len]) };
            assert_eq!(read, Err(Refused::Unmapped), "{address:#x}");
        }
        // SAFETY: remote.4: the six bytes end the first half of `page`, which stays mapped, without references, until the end of this test.
        assert_eq!(unsafe { read_here(first + 4090, &mut [0; 6]) }, Ok(()));
    }

    #[test]
    fn a_descriptor_is_taken() {
        let file = crate::memfd::create("remote", 4096).expect("a file");
        let remote = Remote::open(std::process::id() as i32).expect("this one");
        let taken = remote.descriptor(file.as_fd().as_raw_fd()).expect("it is there");
        assert!(crate::memfd::is_sealed(taken.as_fd()));
        let error = remote.descriptor(1 << 20).expect_err("there is none").to_string();
        assert!(error.starts_with("take a descriptor of process"), "{error}");
        assert!(remote.descriptor(-1).is_err());
    }

    /// How far bytes may lie behind others: within a page, from nothing to beyond a line, and a little before them.
    fn distances() -> impl Iterator<Item = u64> {
        (0..72).chain(PAGE - 8..PAGE)
    }

    fn is_whole(word: u64) -> bool {
        word == 0 || word == u64::MAX
    }

    /// Wherever the bytes lie, an aligned word is written at once: whoever looks sees the old one or the new one.
    #[test]
    fn a_word_is_not_torn() {
        const WORDS: usize = 16;
        let (words, done) = ([const { AtomicU64::new(0) }; WORDS], AtomicBool::new(false));
        let own = Remote::open(std::process::id() as i32).expect("this one");
        let address = words.as_ptr() as u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut pages = [0u8; 2 * PAGE as usize];
                let first = pages.as_ptr() as u64;
                for distance in distances() {
                    let len = if distance % 2 == 0 { 8 } else { 8 * WORDS };
                    let at = (address.wrapping_sub(distance).wrapping_sub(first) % PAGE) as usize;
                    for value in [0xff, 0].into_iter().cycle().take(4000) {
                        pages[at..at + len].fill(value);
                        // SAFETY: remote.2: what is written are the atomics of `words`, which outlive this thread's scope.
                        unsafe { own.write(address, &pages[at..at + len]) }.expect("written");
                    }
                }
                done.store(true, Relaxed);
            });
            while !done.load(Relaxed) {
                let torn = words.iter().map(|word| word.load(Relaxed)).find(|word| !is_whole(*word));
                assert_eq!(torn.map(|word| format!("{word:#x}")), None);
            }
        });
    }

    /// And is read at once.
    #[test]
    fn a_word_is_not_read_torn() {
        let (word, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let own = Remote::open(std::process::id() as i32).expect("this one");
        let address = &raw const word as u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    word.store(!word.load(Relaxed), Relaxed);
                }
            });
            let mut pages = [0u8; 2 * PAGE as usize];
            let first = pages.as_ptr() as u64;
            let mut torn = None;
            for distance in distances() {
                let at = (address.wrapping_add(distance).wrapping_sub(first) % PAGE) as usize;
                for _ in 0..10_000 {
                    own.read(address, &mut pages[at..at + 8]).expect("read");
                    let read = u64::from_ne_bytes(pages[at..at + 8].try_into().expect("a word"));
                    torn = torn.or((!is_whole(read)).then_some((distance, read)));
                }
            }
            done.store(true, Relaxed);
            assert_eq!(torn, None, "at which distance, and what was read");
        });
    }

    /// What goes by way of other bytes arrives whole, and what is not mapped is refused as elsewhere.
    #[test]
    fn bytes_go_by_another_way() {
        let own = Remote::open(std::process::id() as i32).expect("this one");
        let source: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        let mut target = vec![0u8; 210_000];
        let first = target.as_ptr() as u64;
        for (distance, len) in
            [(1, 1), (3, 100), (8, 4096), (8, 4097), (8, 200_000), (63, 65_537), (PAGE - 1, 150_000)]
        {
            let behind = (source.as_ptr() as u64).wrapping_add(distance).wrapping_sub(first) % PAGE;
            let at = behind as usize;
            assert!(is_askew(source.as_ptr() as u64, first + behind));
            target.fill(0);
            // SAFETY: remote.2: what is written lies in `target`, this test's own, which is only looked at when the call has returned.
            unsafe { own.write(first + behind, &source[..len]) }.expect("written");
            assert!(
                target[at..at + len] == source[..len] && target[at + len..].iter().all(|byte| *byte == 0)
            );
            target.fill(0);
            own.read(source.as_ptr() as u64, &mut target[at..at + len]).expect("read");
            assert!(target[at..at + len] == source[..len] && target[..at].iter().all(|byte| *byte == 0));
        }
        let mut bytes = [0; 16];
        let (low, word) = (bytes.as_ptr() as u64 % PAGE, 7u64.to_le_bytes());
        assert_eq!(own.read(low.wrapping_sub(8), &mut bytes), Err(Refused::Unmapped));
        // SAFETY: remote.1: nothing is mapped in the first page, so both calls are refused; the second would write to this test's `target`.
        let written = unsafe {
            [own.write(word.as_ptr() as u64 % PAGE + 8, &word), own.write_from(first + 8, first % PAGE, 8)]
        };
        assert_eq!(written, [Err(Refused::Unmapped); 2]);
    }
}
