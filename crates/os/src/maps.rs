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

/// What may be done with all of `len` bytes from an address on, at this moment.
pub fn access(address: u64, len: u64) -> Access {
    let Some(end) = address.checked_add(len).filter(|end| *end > address) else { return Access::None };
    let Ok(file) = std::fs::File::open("/proc/self/maps") else { return Access::None };
    let (mut at, mut all) = (address, Access::Write);
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let Some((first, last, access)) = parse(&line) else { return Access::None };
        if last <= at {
            continue;
        }
        if first > at {
            return Access::None;
        }
        (at, all) = (last, all.min(access));
        if at >= end {
            return all;
        }
    }
    Access::None
}

/// `7f0000000000-7f0000001000 rw-p ...`.
fn parse(line: &str) -> Option<(u64, u64, Access)> {
    let mut words = line.split_whitespace();
    let (first, last) = words.next()?.split_once('-')?;
    let access = match words.next()?.as_bytes() {
        [b'r', b'w', ..] => Access::Write,
        [b'r', ..] => Access::Read,
        _ => Access::None,
    };
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?, access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;

    #[test]
    fn what_is_mapped_is_known() {
        let word = 7u64;
        let here = &raw const word as u64;
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
    fn a_line_is_taken_apart() {
        assert_eq!(parse("7f00-8f00 r--p 0 0:0 0 [x]"), Some((0x7f00, 0x8f00, Access::Read)));
        assert_eq!(parse("0-1 ---p 0 0:0 0"), Some((0, 1, Access::None)));
        for wrong in ["", "7f00", "7f00-8f00", "x-y rw-p"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
