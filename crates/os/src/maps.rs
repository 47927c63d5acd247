//! What is mapped in this process (`/proc/self/maps`, `proc_pid_maps(5)`).

use std::io::{BufRead, BufReader};

/// What may be done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing: some of it is not mapped, or not to be read.
    None,
    /// It may be read.
    Read,
    /// It may be read and written.
    Write,
}

/// Where memory lies in a file that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFile {
    /// The file: device and inode, as `stat(2)` tells them.
    pub file: (u64, u64),
    /// Where in it the first byte is.
    pub offset: u64,
}

/// What is known of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What may be done with all of it.
    pub access: Access,
    /// In which memory file (`memfd_create(2)`) all of it lies, if it is of one mapping that is shared and may be written.
    pub lies: Option<InFile>,
}

/// Looks at `len` bytes from an address on, as they are at this moment.
pub fn look(address: u64, len: u64) -> Found {
    look_among(areas(), address, len)
}

fn look_among(areas: impl Iterator<Item = Area>, address: u64, len: u64) -> Found {
    let nothing = Found { access: Access::None, lies: None };
    let Some(end) = address.checked_add(len).filter(|end| *end > address) else { return nothing };
    let (mut at, mut access) = (address, Access::Write);
    for area in areas {
        if area.last <= at {
            continue;
        }
        if area.first > at {
            return nothing;
        }
        access = access.min(area.access);
        if area.last >= end {
            let whole = area.first <= address && access == Access::Write;
            let inside = |lies: InFile| InFile { offset: lies.offset + (address - area.first), ..lies };
            return Found { access, lies: area.lies.filter(|_| whole).map(inside) };
        }
        at = area.last;
    }
    nothing
}

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    first: u64,
    last: u64,
    access: Access,
    /// Its first byte, of a memory file that is shared.
    lies: Option<InFile>,
}

/// What is mapped, by addresses; up to a line that cannot be read.
fn areas() -> impl Iterator<Item = Area> {
    let file = std::fs::File::open("/proc/self/maps").ok();
    let lines = file.into_iter().flat_map(|file| BufReader::new(file).lines());
    lines.map_while(Result::ok).map_while(|line| parse(&line))
}

/// `7f0000000000-7f0000001000 rw-s 00002000 00:01 1234 /memfd:name (deleted)`.
fn parse(line: &str) -> Option<Area> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split_whitespace();
    let (first, last) = words.next()?.split_once('-')?;
    let permissions = words.next()?.as_bytes();
    let access = match permissions {
        [b'r', b'w', ..] => Access::Write,
        [b'r', ..] => Access::Read,
        _ => Access::None,
    };
    let mut lies = || {
        let offset = number(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device =
            libc::makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let file = (device, words.next()?.parse().ok()?);
        let memory = permissions.get(3) == Some(&b's') && words.next()?.starts_with("/memfd:");
        memory.then_some(InFile { file, offset })
    };
    Some(Area { first: number(first)?, last: number(last)?, access, lies: lies() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;
    use std::os::fd::{AsFd, AsRawFd};

    #[test]
    fn what_is_mapped_is_known() {
        let word = 7u64;
        let here = &raw const word as u64;
        let access = |address, len| look(address, len).access;
        assert_eq!(access(here, 8), Access::Write);
        static CONSTANT: [u8; 9000] = [1; 9000];
        assert_eq!(access(CONSTANT.as_ptr() as u64, 9000), Access::Read);
        for (address, len) in
            [(0, 8), (here, 0), (here, u64::MAX), (here, 1 << 46), (u64::MAX - 3, 3), (1 << 62, 8)]
        {
            assert_eq!(access(address, len), Access::None, "{len} bytes at {address:#x}");
        }
        let map = memfd::create("maps", 1 << 20).expect("a file").map().expect("mapped");
        let first = map.as_ptr() as u64;
        assert_eq!(access(first, 1 << 20), Access::Write);
        drop(map);
        assert_eq!(access(first, 1 << 20), Access::None);
    }

    #[test]
    fn memory_is_known_by_its_file() {
        let file = memfd::create("maps", 1 << 20).expect("a file");
        let map = file.map().expect("mapped");
        let (first, stat) = (map.as_ptr() as u64, nix::sys::stat::fstat(&file).expect("a file"));
        let memory_file = |address, len| look(address, len).lies;
        let known = |offset| Some(InFile { file: (stat.st_dev, stat.st_ino), offset });
        for (at, len) in [(0, 1 << 20), (0, 1), (5, 10_000), ((1 << 20) - 1, 1)] {
            assert_eq!(memory_file(first + at, len), known(at));
        }
        for (address, len) in [(first, (1 << 20) + 1), (first - 1, 2), (first, u64::MAX), (0, 8)] {
            assert_eq!(memory_file(address, len), None, "{len} bytes at {address:#x}");
        }
        let read_only = memmap2::MmapOptions::new()
            .len(4096)
            .map_raw_read_only(file.as_fd().as_raw_fd())
            .expect("mapped");
        assert_eq!(memory_file(read_only.as_ptr() as u64, 8), None);
        let word = 7u64;
        assert_eq!(memory_file(&raw const word as u64, 8), None);
        drop(map);
        assert_eq!(memory_file(first, 8), None);
    }

    #[test]
    fn what_lies_in_several_areas_is_of_no_file() {
        let lies = |offset| Some(InFile { file: (1, 2), offset });
        let area = |first, lies, access| Area { first, last: first + 10, access, lies };
        let areas = [
            area(0, None, Access::Write),
            area(10, lies(100), Access::Write),
            area(20, lies(110), Access::Write),
            area(30, lies(120), Access::Read),
        ];
        for (address, len, access, lies) in [
            (12, 8, Access::Write, lies(102)),
            (20, 10, Access::Write, lies(110)),
            (9, 2, Access::Write, None),
            (15, 10, Access::Write, None),
            (25, 10, Access::Read, None),
            (30, 1, Access::Read, None),
            (30, 11, Access::None, None),
        ] {
            let found = look_among(areas.into_iter(), address, len);
            assert_eq!(found, Found { access, lies }, "{len} bytes from {address} on");
        }
    }

    #[test]
    fn a_line_is_taken_apart() {
        let area = |first, last, access| Some(Area { first, last, access, lies: None });
        assert_eq!(parse("7f00-8f00 r--p 0 0:0 0 [x]"), area(0x7f00, 0x8f00, Access::Read));
        assert_eq!(parse("0-1 ---p 0 0:0 0"), area(0, 1, Access::None));
        let file = "10-20 rw-s 0000a000 01:1f 77 ";
        let lies = InFile { file: (libc::makedev(1, 0x1f), 77), offset: 0xa000 };
        let known = |file: &str| parse(file).expect("a line").lies;
        assert_eq!(known(&format!("{file}  /memfd:x y (deleted)")), Some(lies));
        for other in ["/dev/shm/x", "", "/SYSV00000000 (deleted)"] {
            assert_eq!(known(&format!("{file}{other}")), None, "{other:?}");
        }
        assert_eq!(known("10-20 rw-p 0000a000 01:1f 77 /memfd:x"), None);
        for wrong in ["", "7f00", "7f00-8f00", "x-y rw-p"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
