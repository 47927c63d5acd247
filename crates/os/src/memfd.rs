//! Memory that processes share: anonymous files (`memfd_create(2)`) and their mappings (`mmap(2)`).
//!
//! # Invariants
//! - memfd.1: a [`Mapping`] covers `len` bytes from when it is made until it is dropped: of a file, shared, or in a [`Reserved`]
//!   addresses alone. Those bytes that were shown are readable and writable from then on; the others are addresses that nothing else
//!   gets. At least the first `shown` were.
//! - memfd.2: no reference to mapped bytes is made here: they leave as [`VolatileSlice`] only, which borrows the mapping.
//! - memfd.3: a call that is given no pointer touches no memory of ours.
//! - memfd.4: a [`Published`] covers whole words that stay mapped and readable until it is dropped. They are only loaded, as atomics.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

use gasworks_sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};
use gasworks_sync::{RawSlice, VolatileSlice};
use memmap2::MmapOptions;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::statfs::{HUGETLBFS_MAGIC, fstatfs};

use crate::{OsError, Result};

pub use crate::sys::page_size;

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

/// As [`create`], with a mapping of this process: nobody else to whom the file is given can write to it, whatever way it maps it.
///
/// # Errors
/// As of [`create`], or the system is older than Linux 5.1.
pub fn create_published(name: &str, len: usize) -> Result<(MemFd, Mapping)> {
    let file = create_unsealed(name, len, MFdFlags::empty())?;
    let mapping = file.map()?;
    seal(&file, name, SealFlag::from_bits_retain(libc::F_SEAL_FUTURE_WRITE))?;
    Ok((file, mapping))
}

fn create_with(name: &str, len: usize, pages: MFdFlags) -> Result<MemFd> {
    let file = create_unsealed(name, len, pages)?;
    seal(&file, name, SealFlag::empty())?;
    Ok(file)
}

/// Keeps everybody from changing the size, or the seals. A peer that could cut the file would turn every access of ours into SIGBUS; one that could grow it would
/// charge memory to our control group.
fn seal(file: &MemFd, name: &str, more: SealFlag) -> Result<()> {
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL | more;
    let failed = |e| OsError::new("seal", format!("memory file {name} of {} bytes", file.len), e);
    fcntl(&file.fd, FcntlArg::F_ADD_SEALS(seals)).map(drop).map_err(failed)
}

fn create_unsealed(name: &str, len: usize, pages: MFdFlags) -> Result<MemFd> {
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

/// Whether its pages are of the kernel's pool of huge ones: a mapping of it may end the process that touches it, where the pool is empty.
pub fn is_huge(fd: BorrowedFd<'_>) -> bool {
    !matches!(huge_page_of(fd), Ok(None))
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

/// Gives the memory of the bytes from `start` to `end` of a memory file back (`fallocate(2)`): they are zero from now on. Both are multiples
/// of the page size.
///
/// # Errors
/// The system refuses.
pub fn punch(fd: BorrowedFd<'_>, start: usize, end: usize) -> Result<()> {
    let operand = || format!("bytes {start} to {end} of descriptor {}", fd.as_raw_fd());
    let (Ok(at), Ok(len)) = (i64::try_from(start), i64::try_from(end.saturating_sub(start))) else {
        return Err(OsError::other("free", operand(), "no file is so long"));
    };
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(fd, flags, at, len).map_err(|e| OsError::new("free", operand(), e))
}

/// The size of the file behind `fd`, as the system knows it.
pub fn size_of_file(fd: BorrowedFd<'_>) -> Result<u64> {
    let stat = nix::sys::stat::fstat(fd).map_err(|e| OsError::new("stat", fd.as_raw_fd(), e))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// Maps the first `len` bytes of `fd`, shared, after checking that the file really has as many. No huge page is promised
/// to them.
pub fn map(fd: BorrowedFd<'_>, len: usize) -> Result<Mapping> {
    let mapping = map_hidden(fd, 0, len)?;
    mapping.show(0, len)?;
    Ok(mapping)
}

/// As [`map`], of the `len` bytes from `start` on, which are to be used when they are [shown](Mapping::show). Bytes that are not shown
/// cost nobody anything who goes through all that is mapped, such as `mlockall(2)` and the checkers of valgrind.
pub fn map_hidden(fd: BorrowedFd<'_>, start: usize, len: usize) -> Result<Mapping> {
    let operand = || format!("{len} bytes of descriptor {}", fd.as_raw_fd());
    let offset = part_of_file(fd, start, len, &operand)?;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: memfd.3: without an address the system maps where nothing is; `fd` is borrowed until the call returns.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, fd.as_raw_fd(), offset) };
    Ok(Mapping::hidden(mapped(at).ok_or_else(|| OsError::last("map", operand()))?, len))
}

/// Words of a file that somebody else writes, to be read.
#[derive(Debug)]
pub struct Published {
    at: NonNull<u8>,
    words: usize,
}

// SAFETY: memfd.4: the words are only loaded, as atomics.
unsafe impl Send for Published {}
// SAFETY: memfd.4: threads that share it can only load, too.
unsafe impl Sync for Published {}

/// Maps the first `words` words of 8 bytes of `fd` to be read, after checking that the file has as many and that its size cannot change.
///
/// # Errors
/// It has not, or the system refuses.
pub fn map_published(fd: BorrowedFd<'_>, words: usize) -> Result<Published> {
    let len = words.saturating_mul(8);
    let operand = || format!("{len} bytes of descriptor {}", fd.as_raw_fd());
    if !is_sealed(fd) {
        return Err(OsError::other("map", operand(), "the file's size can change"));
    }
    let offset = part_of_file(fd, 0, len, &operand)?;
    let access = libc::PROT_READ;
    // SAFETY: memfd.3: without an address the system maps where nothing is; `fd` is borrowed until the call returns.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd.as_raw_fd(), offset) };
    Ok(Published { at: mapped(at).ok_or_else(|| OsError::last("map", operand()))?, words })
}

impl Published {
    /// A word; what was written before it is there. `None` if there is no such word.
    pub fn load(&self, index: usize) -> Option<u64> {
        // SAFETY: memfd.4: one of the words, aligned as the mapping's pages are, which is only loaded.
        let word =
            (index < self.words).then(|| unsafe { &*self.at.as_ptr().cast::<AtomicU64>().add(index) })?;
        Some(word.load(Acquire))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: memfd.4: mapped here as a whole, and nobody has a reference to its words.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.words * 8) };
    }
}

/// The offset of a part that there is.
fn part_of_file(fd: BorrowedFd<'_>, start: usize, len: usize, operand: &dyn Fn() -> String) -> Result<i64> {
    let real = size_of_file(fd)?;
    if start.checked_add(len).is_none_or(|end| real < end as u64) {
        return Err(OsError::other("map", operand(), format!("the file has only {real} bytes")));
    }
    if len == 0 {
        return Err(OsError::other("map", operand(), "there is nothing to map"));
    }
    i64::try_from(start).map_err(|_| OsError::other("map", operand(), "no file is so long"))
}

/// Where `mmap(2)` has mapped something.
fn mapped(at: *mut libc::c_void) -> Option<NonNull<u8>> {
    (at != libc::MAP_FAILED).then(|| NonNull::new(at.cast())).flatten()
}

/// Addresses that are kept free for a mapping that is still to come, so that others may be told of them before.
#[derive(Debug)]
pub struct Reserved(Mapping);

/// Reserves `len` addresses, or a few more, from a multiple of `align` to another one, which is a power of two.
///
/// # Errors
/// There are not so many.
pub fn reserve(len: usize, align: usize) -> Result<Reserved> {
    let operand = || format!("{len} bytes of addresses");
    let align = align.max(page_size());
    let whole = len.checked_next_multiple_of(align).filter(|_| len > 0 && align.is_power_of_two());
    let both = whole.and_then(|whole| Some((whole, whole.checked_add(align)?)));
    let (len, all) =
        both.ok_or_else(|| OsError::other("reserve", operand(), "no address space is so large"))?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: memfd.3: without an address and a file the system maps fresh pages where nothing is.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
    let at = mapped(at).ok_or_else(|| OsError::last("reserve", operand()))?;
    let before = at.align_offset(align);
    let first = at.as_ptr().wrapping_add(before);
    let around = [(at.as_ptr(), before), (first.wrapping_add(len), all - len - before)];
    for (from, len) in around.into_iter().filter(|(_, len)| *len > 0) {
        // SAFETY: memfd.1: whole pages of what was just mapped here, on both sides of what is kept; nobody knows of them.
        unsafe { libc::munmap(from.cast(), len) };
    }
    let at = NonNull::new(first).ok_or_else(|| OsError::other("reserve", operand(), "it begins at 0"))?;
    Ok(Reserved(Mapping::hidden(at, len)))
}

impl Reserved {
    /// Where they begin.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Maps as many bytes of `fd` there, from `start` on, hidden as by [`map_hidden`].
    ///
    /// # Errors
    /// The file has not so many, its pages are larger than what the addresses are aligned to, or the system refuses.
    pub fn map(self, fd: BorrowedFd<'_>, start: usize) -> Result<Mapping> {
        let Mapping { at, len, .. } = self.0;
        let operand = || format!("{len} bytes of descriptor {}", fd.as_raw_fd());
        let offset = part_of_file(fd, start, len, &operand)?;
        // The system maps whole pages of the file, and puts them in the place of whatever is behind.
        let page = huge_page_of(fd)?.unwrap_or_else(page_size);
        if [len, at.as_ptr().addr(), start].iter().any(|number| !number.is_multiple_of(page)) {
            return Err(OsError::other("map", operand(), format!("its pages have {page} bytes")));
        }
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: memfd.1: what was there is this value's own, of which nobody has bytes, for none were shown; and whole pages of the file,
        // as was checked.
        let now =
            unsafe { libc::mmap(at.as_ptr().cast(), len, libc::PROT_NONE, flags, fd.as_raw_fd(), offset) };
        if mapped(now).is_none() {
            let error = OsError::last("map", operand());
            // Whether the addresses are still its own nobody knows: some kernels give them up before they ask the file.
            std::mem::forget(self.0);
            return Err(error);
        }
        Ok(self.0)
    }
}

/// The size of a file's pages, if they are of the kernel's pool of huge ones.
fn huge_page_of(fd: BorrowedFd<'_>) -> Result<Option<usize>> {
    let stat = fstatfs(fd).map_err(|e| OsError::new("stat the file system of", fd.as_raw_fd(), e))?;
    Ok((stat.filesystem_type() == HUGETLBFS_MAGIC)
        .then(|| usize::try_from(stat.block_size()).unwrap_or(usize::MAX)))
}

/// Shared memory mapped into this process until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    len: usize,
    shown: AtomicUsize,
}

// SAFETY: memfd.2: it gives its bytes to nobody but as `VolatileSlice`, which threads may share.
unsafe impl Send for Mapping {}
// SAFETY: memfd.2, and all else that it does is a call of the system.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: memfd.1: mapped here as a whole; who has its bytes borrows it (memfd.2), and so nobody has any.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

impl Mapping {
    fn hidden(at: NonNull<u8>, len: usize) -> Self {
        Self { at, len, shown: AtomicUsize::new(0) }
    }

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
        // SAFETY: memfd.1: they are this mapping's, and nobody is deprived of any.
        if unsafe { libc::mprotect(self.at.as_ptr().add(start).cast(), len, access) } != 0 {
            return Err(OsError::last("show", operand()));
        }
        // Relaxed: who uses the bytes has been told of them by another way.
        if start <= self.shown.load(Relaxed) {
            self.shown.fetch_max(end, Relaxed);
        }
        Ok(())
    }

    /// Puts private zero pages in the place of the file's, once and for all: who has bytes of it reads zeroes from now on, and writes to
    /// nobody. They take no memory until they are written.
    ///
    /// # Aborts
    /// If the system refuses: it may have taken the addresses away before.
    pub fn detach(&self) {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
        );
        // SAFETY: memfd.1: these addresses are this mapping's and stay so, readable and writable; memfd.2: nobody has references to their
        // bytes, which change at once.
        let now = unsafe { libc::mmap(self.at.as_ptr().cast(), self.len, access, flags, -1, 0) };
        if mapped(now).is_none() {
            crate::say(&format!("gasworks: {}", OsError::last("detach", format!("{} bytes", self.len))));
            std::process::abort();
        }
    }

    /// Where all of it lies, shown or not.
    pub fn raw(&self) -> RawSlice {
        RawSlice::new(self.at.as_ptr(), self.len)
    }

    /// A part of them.
    pub(crate) fn part(&self, part: &Range<usize>) -> Result<RawSlice> {
        let inside = part.end.checked_sub(part.start).and_then(|len| self.raw().slice(part.start, len));
        inside.ok_or_else(|| {
            OsError::other("use", format!("bytes {part:?} of {}", self.len), "they are not mapped")
        })
    }

    /// Its bytes, as far as they were shown from the first on.
    pub fn bytes(&self) -> VolatileSlice<'_> {
        // SAFETY: memfd.1: readable and writable as long as the mapping is borrowed; memfd.2: nobody has plain references to them.
        unsafe { RawSlice::new(self.at.as_ptr(), self.shown.load(Relaxed)).borrow() }
    }
}

/// Writes to the first word of `bytes` without changing it, whoever else may be writing: so its page gets memory.
pub(crate) fn touch(bytes: VolatileSlice<'_>) {
    bytes.with_u32(|word| {
        let value = word.load(Relaxed);
        // Where it fails another thread has just written. (An addition of zero would be compiled to a load.)
        let _ = word.compare_exchange(value, value, Relaxed, Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let file = create("test", 10_000).expect("a memfd");
        let (one, two) = (file.map().expect("a map"), map(file.as_fd(), 10_000).expect("a map"));
        let (a, b) = (one.bytes(), two.bytes());
        a.slice(9_990, 10).expect("inside").write(b"0123456789");
        let mut back = [0; 10];
        b.slice(9_990, 10).expect("inside").read(&mut back);
        assert_eq!(&back, b"0123456789");
    }

    #[test]
    fn what_is_detached_reads_zero_and_writes_to_nobody() {
        let page = page_size();
        let file = create("test", 2 * page).expect("a memfd");
        let (one, two) = (file.map().expect("a map"), file.map().expect("a map"));
        let (kept, other) = (one.bytes(), two.bytes());
        let byte = |of: VolatileSlice<'_>| {
            let mut found = [9; 1];
            of.slice(page, 1).expect("inside").read(&mut found);
            found[0]
        };
        let write = |of: VolatileSlice<'_>, value| of.slice(page, 1).expect("inside").write(&[value]);
        write(kept, 7);
        one.detach();
        assert_eq!((byte(kept), byte(other)), (0, 7));
        write(kept, 5);
        assert_eq!((byte(kept), byte(other)), (5, 7));
        punch(file.as_fd(), page, 2 * page).expect("its memory is given back");
        assert_eq!((byte(kept), byte(other)), (5, 0));
        assert!(punch(file.as_fd(), page, page).is_err() && punch(file.as_fd(), usize::MAX, 0).is_err());
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
        let mapping = map_hidden(file.as_fd(), page, 2 * page).expect("a map");
        let access = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped");
            let start = format!("{:x}-", mapping.as_ptr().addr());
            let lines = maps.lines().skip_while(|line| !line.starts_with(&start));
            let ours = lines.take_while(|line| line.contains("memfd:test"));
            ours.map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((access(), mapping.bytes().len()), (vec!["---s".to_owned()], 0));
        mapping.show(page, 2 * page).expect("mapped");
        assert_eq!(mapping.bytes().len(), 0, "the first are not there");
        mapping.show(0, 1).expect("mapped");
        assert_eq!((access(), mapping.bytes().len()), (vec!["rw-s".to_owned()], 1));
        for (start, end) in [(0, 2 * page + 1), (2 * page, page), (usize::MAX, usize::MAX)] {
            assert!(mapping.show(start, end).is_err(), "{start} to {end}");
        }
        // It is that part of the file.
        let all = file.map().expect("a map");
        let (part, all) = (mapping.bytes(), all.bytes());
        part.write(&[7; 1]);
        let mut found = [0; 2];
        all.slice(page - 1, 2).expect("inside").read(&mut found);
        assert_eq!(found, [0, 7]);
        for (start, len) in [(page, 2 * page + 1), (3 * page, 1), (usize::MAX, 2), (0, 0)] {
            assert!(map_hidden(file.as_fd(), start, len).is_err(), "{len} from {start}");
        }
    }

    #[test]
    fn a_file_comes_to_lie_where_addresses_were_reserved() {
        let page = page_size();
        let large = 2 << 20;
        let file = create("test", 2 * large).expect("a memfd");
        let all = file.map().expect("a map");
        for (align, len) in [(1, 2 * page), (page, 2 * page), (large, large)] {
            let place = reserve(page + 1, align).expect("addresses");
            let at = place.as_ptr();
            assert!(at.addr().is_multiple_of(align.max(page)), "{at:?}");
            let mapping = place.map(file.as_fd(), large - page).expect("mapped");
            assert_eq!((mapping.as_ptr(), mapping.len()), (at, len));
            mapping.show(0, len).expect("shown");
            let written = [align.trailing_zeros() as u8 + 1];
            let mut found = [0; 1];
            mapping.bytes().slice(page, 1).expect("inside").write(&written);
            all.bytes().slice(large, 1).expect("inside").read(&mut found);
            assert_eq!(found, written);
        }
        let refused = reserve(page, page).expect("addresses").map(file.as_fd(), 2 * large);
        assert!(refused.is_err_and(|e| e.to_string().contains("the file has only")));
        let refused = reserve(page, page).expect("addresses").map(file.as_fd(), 40);
        assert!(refused.is_err_and(|e| e.to_string().contains(&format!("its pages have {page} bytes"))));
        for (len, align) in [(0, page), (page, 3 * page), (usize::MAX, 2), (1 << 60, page)] {
            assert!(reserve(len, align).is_err(), "{len} at {align}");
        }
    }

    /// The system would map whole ones, and more than were reserved.
    #[test]
    fn huge_pages_come_to_lie_only_where_they_fit() {
        let Some(huge) = crate::huge::page_size() else { return };
        // None is touched, so that none has to be there.
        let file = create_huge("test", 2 * huge).expect("a file takes none yet");
        assert_eq!(huge_page_of(file.as_fd()).ok().flatten(), Some(huge));
        assert_eq!(huge_page_of(create("test", 1).expect("a file").as_fd()).expect("a file"), None);
        let fits = reserve(1, huge).expect("addresses").map(file.as_fd(), huge).expect("mapped");
        assert_eq!(fits.len(), huge);
        for len in [page_size(), huge - 1, huge + 1] {
            let refused = reserve(len, page_size()).expect("addresses").map(file.as_fd(), 0);
            let text = refused.map(|mapping| mapping.as_ptr().addr().is_multiple_of(huge));
            match text {
                Err(error) => {
                    assert!(error.to_string().contains(&format!("its pages have {huge} bytes")), "{error}")
                }
                // By chance.
                Ok(fits) => assert!(fits && len == huge - 1),
            }
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
