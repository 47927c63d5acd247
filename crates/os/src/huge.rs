//! Huge pages: the kernel's pool of them (`hugetlbfs`), and transparent ones (`madvise(2)`).

use crate::memfd::Mapping;
use crate::sys::{self, Advice};
use crate::{OsError, Result};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The size of the huge pages in the pool, in bytes; `None` where the kernel has none.
pub fn page_size() -> Option<usize> {
    pool(Path::new("/proc/meminfo")).map(|pool| pool.page)
}

/// The pool of huge pages of the default size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The size of a page in bytes.
    pub page: usize,
    /// How many pages nobody has and nobody was promised.
    pub free: u64,
}

/// What the kernel says of its pool; `None` where it has none.
pub fn pool_now() -> Option<Pool> {
    pool(Path::new("/proc/meminfo"))
}

fn pool(meminfo: &Path) -> Option<Pool> {
    let text = fs::read_to_string(meminfo).ok()?;
    let field = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    let page = usize::try_from(field("Hugepagesize")?.checked_mul(1024)?).ok()?;
    let promised = field("HugePages_Rsvd").unwrap_or(0);
    let free = field("HugePages_Free").unwrap_or(0).saturating_sub(promised);
    page.is_power_of_two().then_some(Pool { page, free })
}

/// Asks for transparent huge pages behind a part of a memory file, by its mapping; it begins with a page. Where the kernel's settings
/// exclude shared memory from them the call is accepted and has no effect: see [`transparent_allowed`].
///
/// # Errors
/// The kernel has no transparent huge pages.
pub fn advise(mapping: &Mapping, part: Range<usize>) -> Result<()> {
    let operand = || format!("{} bytes", part.len());
    sys::advise(mapping.part(&part)?, Advice::HugePages)
        .map_err(|e| OsError::new("ask for transparent huge pages for", operand(), e))
}

/// Where the kernel says whether shared memory may have transparent huge pages.
pub const TRANSPARENT_SETTING: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Whether advice leads to transparent huge pages in memory files.
pub fn transparent_allowed() -> bool {
    fs::read_to_string(TRANSPARENT_SETTING).is_ok_and(|text| heeds_advice(&text))
}

/// The chosen word stands in brackets.
fn heeds_advice(text: &str) -> bool {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.is_some_and(|(word, _)| ["always", "within_size", "advise", "force"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_is_what_is_free_and_not_promised() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("meminfo");
        let text = "MemTotal: 100 kB\nHugePages_Total:      10\nHugePages_Free:        7\nHugePages_Rsvd:        3\n\
                    Hugepagesize:       2048 kB\n";
        fs::write(&file, text).expect("written");
        assert_eq!(pool(&file), Some(Pool { page: 2 << 20, free: 4 }));
        fs::write(&file, "MemTotal: 100 kB\n").expect("written");
        assert_eq!(pool(&file), None);
        fs::write(&file, "Hugepagesize: 3 kB\n").expect("written");
        assert_eq!(pool(&file), None);
        assert_eq!(page_size(), pool_now().map(|pool| pool.page));
    }

    #[test]
    fn advice_is_accepted_or_says_why_not() {
        let file = crate::memfd::create("advised", 4 << 20).expect("a file");
        match advise(&file.map().expect("a map"), 0..4 << 20) {
            Ok(()) => assert!(Path::new("/sys/kernel/mm/transparent_hugepage").exists()),
            Err(refused) => {
                assert!(!Path::new("/sys/kernel/mm/transparent_hugepage").exists(), "{refused}");
                assert!(refused.to_string().contains("4194304 bytes"), "{refused}");
            }
        }
    }

    /// Whether the pool has pages or not: a file either gets what it was promised, or is refused.
    #[test]
    fn a_promise_is_kept_or_refused() {
        let Some(Pool { page, free }) = pool_now() else {
            let refused = crate::memfd::create_huge("huge", 2 << 20).expect_err("there are none").to_string();
            assert!(refused.starts_with("create memory file huge of 2097152 bytes"), "{refused}");
            return;
        };
        let pages = 2 + free as usize * 3;
        let file = crate::memfd::create_huge("huge", pages * page).expect("a file takes none yet");
        let all = file.promise(0, pages * page).expect_err("more than there are").to_string();
        assert!(all.starts_with("promise huge pages to bytes 0 to"), "{all}");
        assert!(file.promise(page, page).is_err(), "no pages at all");
        // Others may have taken the page meanwhile, which is a refusal like any other.
        if free > 0 && file.promise(page, 2 * page).is_ok() {
            let map = file.map().expect("a map");
            map.bytes().slice(page, 4).expect("inside").write(b"here");
            let mut found = [0; 4];
            map.bytes().slice(page, 4).expect("inside").read(&mut found);
            assert_eq!(&found, b"here");
        }
    }

    #[test]
    fn the_word_in_brackets_is_the_one_that_holds() {
        assert!(heeds_advice("always within_size [advise] never deny force\n"));
        assert!(heeds_advice("[always] within_size advise never deny force\n"));
        assert!(!heeds_advice("always within_size advise [never] deny force\n"));
        assert!(!heeds_advice("always within_size advise never [deny] force\n"));
        assert!(!heeds_advice("advise"));
    }
}
