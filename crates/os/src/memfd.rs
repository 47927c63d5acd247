//! Memory that processes share: anonymous files (`memfd_create(2)`) and their mappings (`mmap(2)`).
//!
//! # Invariants
//! M1. A [`Mapping`] covers `len` bytes, shared, from when it is made until it is dropped. Those that were shown are readable and
//!     writable from then on; the others are addresses that nothing else gets.
//! M2. No reference to mapped bytes is made here: they leave as [`RawBytes`] only.
//! M3. A call that is given no pointer touches no memory of ours.
//! M4. An aligned word of a mapping may be borrowed as an atomic for as long as its bytes stay mapped.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use gasworks_sync::RawBytes;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use memmap2::MmapOptions;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::{OsError, Result};

/// An anonymous file of a fixed size.
#[derive(Debug)]
pub struct MemFd {
    fd: OwnedFd,
    len: usize,
}

/// Makes an anonymous file of `len` zero bytes, none of them committed, whose size nobody can change any more.
///
/// `name` shows in `/proc/PID/maps` only; nothing appears in any directory.
pub fn create(name: &str, len: usize) -> Result<MemFd> {
    create_with(name, len, MFdFlags::empty())
}

/// As [`create`], of the pool's huge pages; `len` is a multiple of their size. Pages are promised to a part of the file
/// only by [`MemFd::promise`].
pub fn create_huge(name: &str, len: usize) -> Result<MemFd> {
    create_with(name, len, MFdFlags::MFD_HUGETLB)
}

fn create_with(name: &str, len: usize, pages: MFdFlags) -> Result<MemFd> {
    let operand = || format!("memory file {name} of {len} bytes");
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING | pages;
    let fd = memfd_create(name, flags).map_err(|e| OsError::new("create", operand(), e))?;
    let size = i64::try_from(len)
        .map_err(|_| OsError::other("size", operand(), "no file is larger than 2^63 - 1 bytes"))?;
    // The system would not only refuse, but end the process by SIGXFSZ.
    if let Some(limit) = crate::limits::file_size().filter(|limit| len as u64 > limit.bytes) {
        return Err(OsError::other("size", operand(), format!("{} is {} bytes", limit.who, limit.bytes)));
    }
    nix::unistd::ftruncate(&fd, size).map_err(|e| OsError::new("size", operand(), e))?;
    // A peer that could cut the file would turn every access of ours into SIGBUS; one that could grow it would
    // charge memory to our control group.
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&fd, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| OsError::new("seal", operand(), e))?;
    Ok(MemFd { fd, len })
}

impl MemFd {
    /// Its size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Maps all of it.
    pub fn map(&self) -> Result<Mapping> {
        map(self.fd.as_fd(), self.len)
    }

    /// Maps all of it, with its first `shown` bytes to be used, and the rest when it is [shown](Mapping::show).
    pub fn map_hidden(&self, shown: usize) -> Result<Mapping> {
        map_hidden(self.fd.as_fd(), self.len, shown)
    }

    /// Has the kernel keep huge pages of its pool for the bytes from `start` to `end`, whichever process touches them;
    /// both are multiples of the page size. The promise lasts as long as the file.
    ///
    /// # Errors
    /// The pool has not so many left.
    pub fn promise(&self, start: usize, end: usize) -> Result<()> {
        promise(self.fd.as_fd(), start, end)
    }

    /// The descriptor, given away.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for MemFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether neither shrinking nor growing the file is possible any more; what came from a peer is asked before it
/// is trusted to stay mapped.
pub fn is_sealed(fd: BorrowedFd<'_>) -> bool {
    let wanted = (SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW).bits();
    fcntl(fd, FcntlArg::F_GET_SEALS).is_ok_and(|seals| seals & wanted == wanted)
}

/// A new descriptor of a memory file that this process has open, if it is sealed: the file is known by what `stat(2)` tells of it.
pub fn find(file: (u64, u64)) -> Option<OwnedFd> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?;
    let is_it = |path: &std::path::PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == file)
    };
    let path = open.filter_map(|entry| Some(entry.ok()?.path())).find(is_it)?;
    // Another thread may have closed it, and opened something else.
    let found: OwnedFd = File::options().read(true).write(true).open(path).ok()?.into();
    let stat = nix::sys::stat::fstat(&found).ok()?;
    ((stat.st_dev, stat.st_ino) == file && is_sealed(found.as_fd())).then_some(found)
}

/// As [`MemFd::promise`], for any descriptor of such a file.
pub fn promise(fd: BorrowedFd<'_>, start: usize, end: usize) -> Result<()> {
    let operand = || format!("bytes {start} to {end} of descriptor {}", fd.as_raw_fd());
    let len = end.checked_sub(start).filter(|&len| len > 0);
    let len = len.ok_or_else(|| OsError::other("promise huge pages to", operand(), "there are none"))?;
    // The promise is made to the file when it is mapped, and stays when it is unmapped.
    let mapped = MmapOptions::new().offset(start as u64).len(len).map_raw(fd.as_raw_fd());
    mapped.map(drop).map_err(|e| OsError::new("promise huge pages to", operand(), e))
}

/// The size of the file behind `fd`, as the system knows it.
pub fn size_of_file(fd: BorrowedFd<'_>) -> Result<u64> {
    let stat = nix::sys::stat::fstat(fd).map_err(|e| OsError::new("stat", fd.as_raw_fd(), e))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// Maps the first `len` bytes of `fd`, shared, after checking that the file really has as many. No huge page is promised
/// to them.
pub fn map(fd: BorrowedFd<'_>, len: usize) -> Result<Mapping> {
    map_hidden(fd, len, len)
}

/// As [`map`], with the first `shown` bytes to be used, and the rest when it is [shown](Mapping::show). Bytes that are not shown cost
/// nobody anything who goes through all that is mapped, such as `mlockall(2)` and the checkers of valgrind.
pub fn map_hidden(fd: BorrowedFd<'_>, len: usize, shown: usize) -> Result<Mapping> {
    let operand = || format!("{len} bytes of descriptor {}", fd.as_raw_fd());
    let real = size_of_file(fd)?;
    if real < len as u64 {
        return Err(OsError::other("map", operand(), format!("the file has only {real} bytes")));
    }
    if len == 0 {
        return Err(OsError::other("map", operand(), "there is nothing to map"));
    }
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: M3: the system chooses the place.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, fd.as_raw_fd(), 0) };
    let at = (at != libc::MAP_FAILED).then(|| NonNull::new(at.cast())).flatten();
    let at = at.ok_or_else(|| OsError::last("map", operand()))?;
    let mapping = Mapping { at, len };
    mapping.show(0, shown)?;
    Ok(mapping)
}

/// Shared memory mapped into this process until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: M2: it gives its bytes to nobody but as `RawBytes`, which threads may share.
unsafe impl Send for Mapping {}
// SAFETY: as above, and all else that it does is a call of the system.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: M1: mapped here as a whole; whoever has its bytes has promised that they are not used any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

impl Mapping {
    /// Its size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes: never, but the question is customary.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it is mapped.
    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Has the bytes from `start` to `end` be used from now on. `start` is the beginning of a page, and `end` is rounded up to the end
    /// of one.
    ///
    /// # Errors
    /// They are not all mapped, or the system refuses.
    pub fn show(&self, start: usize, end: usize) -> Result<()> {
        let operand = || format!("bytes {start} to {end} of {} that are mapped", self.len);
        let len = end.checked_sub(start).filter(|_| end <= self.len);
        let len = len.ok_or_else(|| OsError::other("show", operand(), "they are not all mapped"))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: M1: they are this mapping's, and nobody is deprived of any.
        match unsafe { libc::mprotect(self.at.as_ptr().add(start).cast(), len, access) } {
            0 => Ok(()),
            _ => Err(OsError::last("show", operand())),
        }
    }

    /// Its bytes, for calls to the kernel that end before the borrow does.
    pub(crate) fn raw(&self) -> RawBytes {
        // SAFETY: M1 gives Y1 while the mapping is borrowed, and M2 gives Y2: the kernel looks at the addresses alone.
        unsafe { RawBytes::new(self.at.as_ptr(), self.len) }
    }

    /// Its bytes, without a borrow.
    ///
    /// # Safety
    /// The view and its copies are not used after the mapping is dropped, nor where nothing was shown (M1).
    pub unsafe fn bytes(&self) -> RawBytes {
        // SAFETY: M1 and the caller's promise give Y1; M2 gives Y2.
        unsafe { RawBytes::new(self.at.as_ptr(), self.len) }
    }
}

/// Writes to the first word of `bytes` without changing it, whoever else may be writing: so its page gets memory.
pub(crate) fn touch(bytes: RawBytes) {
    let at = bytes.as_ptr().cast::<AtomicU32>();
    if bytes.len() >= size_of::<AtomicU32>() && at.is_aligned() {
        // SAFETY: M4; long enough and aligned, as was checked, and any bits are a valid value.
        let word = unsafe { &*at };
        let value = word.load(Relaxed);
        // Where it fails another thread has just written. (An addition of zero would be compiled to a load.)
        let _ = word.compare_exchange(value, value, Relaxed, Relaxed);
    }
}

/// How many bytes so many pages are as `sysconf(3)` tells of.
pub(crate) fn pages(of: libc::c_int) -> Option<u64> {
    // SAFETY: M3: sysconf is given a number and gives one.
    let pages = u64::try_from(unsafe { libc::sysconf(of) }).ok()?;
    pages.checked_mul(page_size() as u64)
}

/// The size of a base page.
pub fn page_size() -> usize {
    // SAFETY: M3: sysconf is given a number and gives one.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let file = create("test", 10_000).expect("a memfd");
        let (one, two) = (file.map().expect("a map"), map(file.as_fd(), 10_000).expect("a map"));
        // SAFETY: both mappings live to the end of the test (M1).
        let (a, b) = unsafe { (one.bytes(), two.bytes()) };
        a.slice(9_990, 10).expect("inside").write(b"0123456789");
        let mut back = [0; 10];
        b.slice(9_990, 10).expect("inside").read(&mut back);
        assert_eq!(&back, b"0123456789");
    }

    #[test]
    fn the_size_is_sealed_and_checked() {
        let file = create("test", 4096).expect("a memfd");
        assert!(is_sealed(file.as_fd()));
        assert!(nix::unistd::ftruncate(&file, 100).is_err());
        assert!(nix::unistd::ftruncate(&file, 10_000).is_err());
        let refused = map(file.as_fd(), 4097).expect_err("larger than the file");
        assert!(refused.to_string().contains("the file has only 4096 bytes"), "{refused}");
        assert!(map(file.as_fd(), 0).is_err());
        assert!(create("test", usize::MAX).is_err());
    }

    #[test]
    fn what_is_hidden_takes_addresses_until_it_is_shown() {
        let page = page_size();
        let file = create("test", 3 * page).expect("a memfd");
        let mapping = file.map_hidden(page).expect("a map");
        let access = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped");
            let start = format!("{:x}-", mapping.as_ptr().addr());
            let lines = maps.lines().skip_while(|line| !line.starts_with(&start));
            let ours = lines.take_while(|line| line.contains("memfd:test"));
            ours.map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(access(), ["rw-s", "---s"]);
        mapping.show(page, page + 1).expect("mapped");
        assert_eq!(access(), ["rw-s", "---s"]);
        mapping.show(page, 3 * page).expect("mapped");
        assert_eq!(access(), ["rw-s"]);
        for (start, end) in [(0, 3 * page + 1), (2 * page, page), (usize::MAX, usize::MAX)] {
            assert!(mapping.show(start, end).is_err(), "{start} to {end}");
        }
    }

    #[test]
    fn a_file_is_found_again_if_it_is_sealed() {
        let name = |fd: BorrowedFd<'_>| {
            let stat = nix::sys::stat::fstat(fd).expect("a file");
            (stat.st_dev, stat.st_ino)
        };
        let file = create("test", 4096).expect("a memfd");
        let of = name(file.as_fd());
        let found = find(of).expect("it is open");
        assert_eq!(name(found.as_fd()), of);
        drop((found, file));
        assert!(find(of).is_none());
        let open =
            memfd_create("test", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).expect("a memfd");
        assert!(find(name(open.as_fd())).is_none(), "somebody may shrink it");
    }
}
