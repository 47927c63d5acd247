//! On which memory node pages come to lie (`mbind(2)`).
//!
//! A policy that is set on a mapping of a memory file belongs to the file: it holds for whoever touches a page first.

use crate::memfd::Mapping;
use crate::{OsError, Result, sys};
use gasworks_sync::RawSlice;
use std::fs;
use std::ops::Range;
use std::path::Path;

const SYSFS: &str = "/sys/devices/system/node";
/// The numbers of the kernel's policies.
const PREFERRED: i32 = 1;
const PREFERRED_MANY: i32 = 5;

/// The nodes nearest to the processors `cpus`: those that the processors belong to. Empty where that makes no
/// difference: on one node, or where the processors belong to all nodes that have memory.
pub fn nodes_of(cpus: &[usize]) -> Vec<u32> {
    nodes_in(Path::new(SYSFS), cpus)
}

fn nodes_in(dir: &Path, cpus: &[usize]) -> Vec<u32> {
    let list = |path: &Path| fs::read_to_string(path).ok().and_then(|text| parse_list(&text));
    let with_memory = list(&dir.join("has_memory")).or_else(|| list(&dir.join("online"))).unwrap_or_default();
    if with_memory.len() < 2 {
        return Vec::new();
    }
    let near = |&node: &usize| {
        let its = list(&dir.join(format!("node{node}/cpulist"))).unwrap_or_default();
        its.iter().any(|cpu| cpus.contains(cpu))
    };
    let nodes: Vec<usize> = with_memory.iter().copied().filter(near).collect();
    if nodes.len() == with_memory.len() {
        return Vec::new();
    }
    nodes.into_iter().filter_map(|node| u32::try_from(node).ok()).collect()
}

/// Parses the kernel's lists of processors and nodes, `0-3,8,10-11`; `None` for what is no such list.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last > 1 << 20 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

/// Has the pages of a part of a memory file, by its mapping, that nobody has touched yet come from `nodes`, or from elsewhere where those are full. To be
/// called before the first touch.
///
/// # Errors
/// A node does not exist, or the kernel has no such policy (it prefers several nodes from 5.15 on).
pub fn prefer(mapping: &Mapping, part: Range<usize>, nodes: &[u32]) -> Result<()> {
    let operand = || format!("{} bytes on memory nodes {nodes:?}", part.len());
    let mode = match nodes.len() {
        0 => return Err(OsError::other("place", operand(), "no node is named")),
        1 => PREFERRED,
        _ => PREFERRED_MANY,
    };
    let mut mask = [0u64; 16];
    for &node in nodes {
        let word = mask.get_mut(node as usize / 64);
        *word.ok_or_else(|| OsError::other("place", operand(), "no kernel has so many nodes"))? |=
            1 << (node % 64);
    }
    sys::set_policy(mapping.part(&part)?, mode, &mask).map_err(|e| OsError::new("place", operand(), e))
}

/// The nodes that pages of `bytes` are preferably taken from, asked at their start; empty without such a policy.
pub fn preferred(bytes: RawSlice) -> Result<Vec<u32>> {
    let mut mask = [0u64; 16];
    let mode = sys::policy(bytes.as_ptr(), &mut mask)
        .map_err(|e| OsError::new("read", "the memory policy of an address", e))?;
    if mode != PREFERRED && mode != PREFERRED_MANY {
        return Ok(Vec::new());
    }
    Ok((0..64 * mask.len() as u32).filter(|&node| mask[node as usize / 64] >> (node % 64) & 1 == 1).collect())
}

/// The node that the first byte of `bytes` lies on, which must have been touched by this process.
pub fn node_of(bytes: RawSlice) -> Result<u32> {
    let node = sys::node_of(bytes.as_ptr());
    let node = node.map_err(|e| OsError::new("find", "the memory node of an address", e))?;
    Ok(u32::try_from(node).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;

    fn machine(memory: &str, cpus: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("has_memory"), memory).expect("written");
        for (node, list) in cpus.iter().enumerate() {
            let node = dir.path().join(format!("node{node}"));
            fs::create_dir(&node).expect("made");
            fs::write(node.join("cpulist"), list).expect("written");
        }
        dir
    }

    #[test]
    fn the_nodes_of_the_processors_are_found_where_they_matter() {
        let four = machine("0-1,3\n", &["0-3,16-19\n", "4-7\n", "8-11\n", "12-15\n"]);
        let nodes = |cpus: &[usize]| nodes_in(four.path(), cpus);
        assert_eq!(nodes(&[2]), [0]);
        assert_eq!(nodes(&[17, 4]), [0, 1]);
        assert_eq!(nodes(&[9]), [0u32; 0], "node 2 has no memory");
        assert_eq!(nodes(&[0, 4, 12]), [0u32; 0], "every node with memory is as good");
        assert_eq!(nodes(&[99]), [0u32; 0]);
        assert_eq!(nodes_in(machine("0\n", &["0-3\n"]).path(), &[1]), [0u32; 0]);
        assert_eq!(nodes_in(Path::new("/nonexistent"), &[1]), [0u32; 0]);
    }

    #[test]
    fn lists_are_parsed_and_nonsense_is_not() {
        assert_eq!(parse_list("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert!(["x", "1-", "0-99999999999", "-"].iter().all(|text| parse_list(text).is_none()));
    }

    /// Every machine that has the calls at all has node 0.
    #[test]
    fn a_policy_belongs_to_the_file_and_is_heeded() {
        let file = memfd::create("placed", 1 << 20).expect("a file");
        let (mine, theirs) = (file.map().expect("a map"), file.map().expect("a map"));
        let placed = prefer(&mine, 0..mine.len(), &[0]);
        let (owner, peer) = (mine.raw(), theirs.raw());
        match placed {
            // A kernel without NUMA support has nothing to place.
            Err(e) if e.cause.raw_os_error() == Some(libc::ENOSYS) => return,
            placed => placed.expect("placed"),
        }
        assert_eq!(preferred(owner).expect("a policy"), [0]);
        assert_eq!(preferred(peer).expect("a policy"), [0], "the policy is not the file's");
        theirs.bytes().slice(4096, 1).expect("inside").write(&[1]);
        assert_eq!(node_of(peer.slice(4096, 1).expect("inside")).expect("touched"), 0);
        assert!(node_of(peer.slice(8192, 1).expect("inside")).is_err(), "an untouched page lies nowhere");
    }

    #[test]
    fn nodes_that_do_not_exist_are_refused() {
        let file = memfd::create("placed", 1 << 20).expect("a file");
        let map = file.map().expect("a map");
        for nodes in [&[][..], &[1023], &[5000], &[1022, 1023]] {
            let refused = prefer(&map, 0..map.len(), nodes).expect_err("no such node").to_string();
            assert!(refused.starts_with("place 1048576 bytes on memory nodes ["), "{refused}");
        }
    }
}
