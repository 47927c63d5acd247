//! What ranks hand each other cannot change its size afterwards. The test plays rank 1 against a real rank 0.

use super::fake::{self, CONFIG, Fake, SEGMENT};
use crate::layout::{Card, PAGE, Shape};
use crate::{Config, PshmError, meet, open};
use gasworks_bootstrap::Bootstrap;
use gasworks_os::{memfd, random, unix};
use gasworks_sync::Seq;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const ALLOWED: Duration = Duration::from_secs(10);

/// Announces rank 1 as a copy of rank 0, but for its nonce, which follows the eight bytes that say what this is.
/// Returns both nonces.
fn announce(rank: &Fake) -> [meet::Nonce; 2] {
    let mut card = rank.get(0, "pshm").expect("rank 0 announces itself");
    let mine = random::nonce().expect("random");
    let theirs = std::mem::replace(card[8..].first_chunk_mut().expect("a nonce"), mine);
    rank.put("pshm", &card).expect("put");
    [theirs, mine]
}

/// How long the file of a rank with [`CONFIG`] is.
fn file_len() -> usize {
    let Config { depth, total, volume, .. } = CONFIG;
    let shape = Shape { depth, total, volume, room: SEGMENT, page: PAGE };
    shape.lay_out().expect("it fits").len
}

#[test]
fn a_peer_can_neither_cut_nor_grow_a_ranks_file() {
    fake::each(2, |rank| {
        if rank.rank() == 0 {
            open::<Seq>(&rank, &CONFIG).expect("open");
            return;
        }
        let nonces = announce(&rank);
        let mine = memfd::create("rank 1", file_len()).expect("a file");
        let met = meet::exchange(1, &mine, &nonces, None, ALLOWED).expect("met");
        let own = met.files.into_iter().next().expect("the file of rank 0");
        for (file, expected) in [(own, file_len()), (met.cards, Card::file_len(2))] {
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

#[test]
fn a_file_that_a_peer_could_cut_is_refused() {
    fake::each(2, |rank| {
        if rank.rank() == 0 {
            let error = open::<Seq>(&rank, &CONFIG).expect_err("rank 1 can cut its file");
            assert!(matches!(&error, PshmError::Descriptor { rank: 1, what } if what.contains("not sealed")));
            return;
        }
        let [theirs, mine] = announce(&rank);
        let deadline = Instant::now() + ALLOWED;
        let address = format!("gasworks-{}", random::hex(&theirs));
        let stream = unix::connect(&address, deadline).expect("connected");
        // This program's own file: no memory file at all, so without seals.
        let file = File::open("/proc/self/exe").expect("this program");
        let card = [&1u32.to_le_bytes()[..], &mine].concat();
        stream.send_fds(&card, &[file.as_fd()], deadline).expect("sent");
        let served = stream.recv_fds(&mut [0], 3, deadline).expect("the cards and both files");
        assert_eq!(served.len(), 3);
    });
}
