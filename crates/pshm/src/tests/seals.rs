//! What ranks hand each other cannot change its size afterwards. The test plays one of two ranks against the other, a real one.

use super::fake::{self, CONFIG, SEGMENT};
use crate::announce::{self, Announcement};
use crate::layout::{PAGE, Shape};
use crate::{Config, PshmError, open};
use gasworks_bootstrap::Bootstrap;
use gasworks_bootstrap::host::{Parcel, Parts};
use gasworks_os::memfd;
use gasworks_sync::Seq;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

const ALLOWED: Duration = Duration::from_secs(10);

/// What a rank with [`CONFIG`] announces.
fn announcement() -> Announcement {
    let Config { depth, total, volume, .. } = CONFIG;
    let shape = Shape { depth, total, volume };
    let (segment, room, page, base) = (SEGMENT, SEGMENT, PAGE, 0);
    let (pooled, required) = (false, false);
    let (largest, space, available, radix) = (SEGMENT, 1 << 46, 1 << 46, 8);
    let who = "nobody".into();
    Announcement { shape, segment, room, page, pooled, required, base, largest, space, available, who, radix }
}

/// How long the file of two such ranks is.
fn file_len() -> usize {
    announce::lay_out(&[0, 1], &[announcement(), announcement()]).expect("it fits").len
}

#[test]
fn a_rank_can_neither_cut_nor_grow_the_file() {
    fake::each(2, |rank| {
        if rank.rank() == 0 {
            open::<Seq>(&rank, &CONFIG).expect("open");
            return;
        }
        let host = rank.host().expect("a host");
        let mine = announcement().encode();
        let (all, given) =
            host.all_gather_with(&mine, Some(ALLOWED), |_| unreachable!("rank 0 leads")).expect("gathered");
        assert_eq!((all.iter().count(), given.fds.len(), &given.bytes[..]), (2, 1, &b"file"[..]));
        let file = File::from(given.fds.into_iter().next().expect("one"));
        let len = file.metadata().expect("its size").len();
        assert!(len > file_len() as u64, "{len} bytes, and no room for regions");
        for wanted in [0, len - 4096, len + 4096] {
            let refused = file.set_len(wanted).expect_err("it is sealed");
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{wanted} of {len}: {refused}");
        }
        assert_eq!(file.metadata().expect("its size").len(), len);
    });
}

/// What rank 1 says when rank 0, which leads, gives it this.
fn refusal(bytes: &[u8], fds: impl Fn() -> Vec<OwnedFd> + Sync) -> PshmError {
    let refused = fake::each(2, |rank| {
        if rank.rank() == 1 {
            return Some(open::<Seq>(&rank, &CONFIG).expect_err("rank 0 is not to be trusted"));
        }
        let give = |_: &Parts| vec![(2, Parcel { bytes: bytes.to_vec(), fds: fds() })];
        let host = rank.host().expect("a host");
        host.all_gather_with(&announcement().encode(), Some(ALLOWED), give).expect("gathered");
        None
    });
    refused.into_iter().flatten().next().expect("rank 1 refuses")
}

#[test]
fn a_file_that_is_not_as_it_should_be_is_refused() {
    let short = || vec![memfd::create("short", file_len() - 4096).expect("a file").into_fd()];
    let file = || memfd::create("like it", file_len()).expect("a file").into_fd();
    // This program's own file: no memory file at all, so without seals.
    let open = || vec![File::open("/proc/self/exe").expect("this program").into()];
    let refused = [
        (refusal(b"file", open), "not sealed"),
        (refusal(b"file", short), "it has only"),
        (refusal(b"file", Vec::new), "gave something else"),
        (refusal(b"file", || vec![file(), file()]), "gave something else"),
        (refusal(b"pool", || vec![file()]), "gave something else"),
        (refusal(b"none", Vec::new), "gave something else"),
    ];
    for (refused, wanted) in refused {
        assert!(matches!(refused, PshmError::Descriptor { rank: 0, .. }), "{refused}");
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
    let refused = refusal(b"gwfail1\nit has no memory", Vec::new);
    assert_eq!(refused.to_string(), "rank 0 could not set it up: it has no memory");
}
