//! What ranks hand each other cannot change its size afterwards. The test plays rank 1 against a real rank 0.

use super::fake::{self, CONFIG, SEGMENT};
use crate::announce::Announcement;
use crate::layout::{Card, PAGE, Shape};
use crate::{Config, PshmError, open};
use gasworks_bootstrap::Bootstrap;
use gasworks_os::memfd;
use gasworks_sync::Seq;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

const ALLOWED: Duration = Duration::from_secs(10);

/// How long the file of a rank with [`CONFIG`] is.
fn file_len() -> usize {
    let Config { depth, total, volume, .. } = CONFIG;
    let shape = Shape { depth, total, volume, room: SEGMENT, page: PAGE };
    shape.lay_out().expect("it fits").len
}

/// What rank 1 announces: it is like rank 0.
fn announcement() -> Vec<u8> {
    let Config { depth, total, volume, .. } = CONFIG;
    let shape = Shape { depth, total, volume, room: SEGMENT, page: PAGE };
    let (largest, space, available) = (SEGMENT, 1 << 46, 1 << 46);
    let who = "nobody".into();
    Announcement { shape, segment: SEGMENT, base: 0, largest, space, available, who, radix: 8 }.encode()
}

#[test]
fn a_peer_can_neither_cut_nor_grow_a_ranks_file() {
    fake::each(2, |rank| {
        if rank.rank() == 0 {
            open::<Seq>(&rank, &CONFIG).expect("open");
            return;
        }
        let mine = memfd::create("rank 1", file_len()).expect("a file");
        let host = rank.host().expect("a host");
        let mut all = host.all_gather(&announcement(), &[mine.as_fd()], Some(ALLOWED)).expect("gathered");
        let files = all.swap_remove(0).fds;
        assert_eq!(files.len(), 2);
        for (file, expected) in files.into_iter().zip([file_len(), Card::file_len(2)]) {
            let theirs = File::from(file);
            let len = theirs.metadata().expect("its size").len();
            assert_eq!(len, expected as u64);
            for wanted in [0, len - 4096, len + 4096] {
                let refused = theirs.set_len(wanted).expect_err("it is sealed");
                assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{wanted} of {len}: {refused}");
            }
            assert_eq!(theirs.metadata().expect("its size").len(), len);
        }
    });
}

/// What rank 0 says when rank 1 gives these files.
fn refusal(fds: &[BorrowedFd<'_>]) -> String {
    let refused = fake::each(2, |rank| {
        if rank.rank() == 0 {
            return Some(open::<Seq>(&rank, &CONFIG).expect_err("rank 1 is not to be trusted"));
        }
        let host = rank.host().expect("a host");
        host.all_gather(&announcement(), fds, Some(ALLOWED)).expect("gathered");
        None
    });
    let refused = refused.into_iter().flatten().next().expect("rank 0 refuses");
    assert!(matches!(refused, PshmError::Descriptor { rank: 1, .. }), "{refused}");
    refused.to_string()
}

#[test]
fn a_file_that_a_peer_could_cut_is_refused() {
    // This program's own file: no memory file at all, so without seals.
    let file = File::open("/proc/self/exe").expect("this program");
    let said = refusal(&[file.as_fd()]);
    assert!(said.contains("not sealed"), "{said}");
}

#[test]
fn more_or_fewer_files_than_belong_are_refused() {
    let file = memfd::create("rank 1", file_len()).expect("a file");
    for (fds, wanted) in [(&[][..], "0 descriptors"), (&[file.as_fd(); 2], "2 descriptors")] {
        let said = refusal(fds);
        assert!(said.contains(wanted), "{said}");
    }
}
