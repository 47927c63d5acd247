//! Opening, and what it says when it cannot.

use super::fake::{self, CONFIG};
use crate::{Config, HugePages, Memory, PshmError, open};
use gasworks_bootstrap::Bootstrap;
use gasworks_memory::PeerFlags;
use gasworks_sync::{Par, Seq};

#[test]
fn a_segment_larger_than_memory_is_refused_on_every_rank() {
    let errors = fake::each(3, |rank| {
        let segment = if rank.rank() == 1 { 1 << 45 } else { 4096 };
        open::<Seq>(&rank, &Config { memory: Memory::of(segment), ..CONFIG })
            .expect_err("too large")
            .to_string()
    });
    for (rank, error) in errors.iter().enumerate() {
        assert!(error.contains("GASWORKS_SEGMENT_SIZE") && error.contains("35184372088832"), "{error}");
        assert_eq!(error.contains("rank 1 could not open"), rank != 1, "{error}");
    }
}

/// What is required of the kernel's pool is held against that alone.
#[test]
fn a_segment_larger_than_the_pool_of_huge_pages_is_refused_or_lies_elsewhere() {
    let [required, tried] = [HugePages::Require, HugePages::Try].map(|huge_pages| {
        let memory = Memory { huge_pages, ..Memory::of(1 << 42) };
        let refuse = |rank| open::<Seq>(&rank, &Config { memory, ..CONFIG }).expect_err("too large");
        fake::each(1, refuse).remove(0)
    });
    assert!(matches!(required, PshmError::HugePages { .. }), "{required}");
    assert!(matches!(tried, PshmError::Memory { .. }), "{tried}");
}

#[test]
fn segments_that_are_too_large_together_are_refused_on_every_rank() {
    // Each fits, four do not; the margin allows for memory that comes and goes meanwhile.
    let each = gasworks_os::limits::available_memory().bytes / 2;
    let errors = fake::each(4, |rank| {
        open::<Par>(&rank, &Config { memory: Memory::of(each), ..CONFIG }).expect_err("too large together")
    });
    for error in errors {
        assert!(matches!(error, PshmError::Memory { ranks: 4, asked, have, .. } if asked > have), "{error}");
    }
}

#[test]
fn segments_may_differ_and_may_be_empty() {
    let lens = fake::each(3, |rank| {
        let config = Config { memory: Memory::of(u64::from(rank.rank()) * 5000), ..CONFIG };
        let opened = open::<Seq>(&rank, &config).expect("open");
        let peers = &opened.peers;
        assert!(peers.get(rank.rank()).is_some_and(|peer| peer.flags == PeerFlags::SELF | PeerFlags::MAPPED));
        (0..3).map(|rank| peers.get(rank).expect("a peer").len).collect::<Vec<_>>()
    });
    assert!(lens.iter().all(|lens| lens == &[0, 8192, 12288]), "{lens:?}");
}

fn lead(listener: gasworks_os::unix::Listener) -> crate::meet::Lead {
    let cards = gasworks_os::memfd::create("cards", 4096).expect("a file");
    crate::meet::Lead { listener: Some(listener), cards }
}

#[test]
fn strangers_at_the_socket_do_no_harm() {
    use gasworks_os::{memfd, unix};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};
    let deadline = || Instant::now() + Duration::from_secs(10);
    let nonces = [[1; 16], [2; 16]];
    let mine = gasworks_os::random::nonce().expect("random");
    let nonces = [mine, nonces[1]];
    let listener = crate::meet::listen(&mine).expect("a listener");
    let allowed = Duration::from_secs(10);
    std::thread::scope(|scope| {
        let leader = scope.spawn(move || {
            let file = memfd::create("leader", 4096).expect("a file");
            crate::meet::exchange(0, &file, &nonces, Some(lead(listener)), allowed).map(|met| met.files.len())
        });
        let address = format!("gasworks-{}", gasworks_os::random::hex(&mine));
        let file = memfd::create("stranger", 4096).expect("a file");
        for card in [&b"short"[..], &[0xff; 20], &[0; 20], &[1; 20]] {
            let stream = unix::connect(&address, deadline()).expect("connected");
            stream.send_fds(card, &[file.as_fd(); 2][..card.len() % 3], deadline()).expect("sent");
        }
        let follower = crate::meet::exchange(1, &file, &nonces, None, allowed).map(|met| met.files.len());
        assert_eq!((leader.join().expect("the leader").ok(), follower.ok()), (Some(2), Some(2)));
    });
}

#[test]
fn a_missing_rank_is_named() {
    use gasworks_os::memfd;
    use std::time::{Duration, Instant};
    let mine = gasworks_os::random::nonce().expect("random");
    let file = memfd::create("lonely", 4096).expect("a file");
    let (start, allowed) = (Instant::now(), Duration::from_millis(300));
    let listener = crate::meet::listen(&mine).expect("a listener");
    let alone = crate::meet::exchange(0, &file, &[mine, [2; 16], [3; 16]], Some(lead(listener)), allowed);
    let error = alone.expect_err("nobody comes").to_string();
    assert!(error.contains("from rank 1, 2 within 0.3 s (GASWORKS_ATTACH_TIMEOUT)"), "{error}");
    let nobody = gasworks_os::random::nonce().expect("random");
    let error = crate::meet::exchange(1, &file, &[nobody, [2; 16]], None, allowed)
        .expect_err("no leader")
        .to_string();
    assert!(error.contains("rank 0 did not send") && error.contains("0.3 s"), "{error}");
    assert!(start.elapsed() >= 2 * allowed);
}

#[test]
fn ranks_that_came_are_told_who_did_not() {
    use gasworks_os::memfd;
    use std::time::Duration;
    let mine = gasworks_os::random::nonce().expect("random");
    let nonces = [mine, [2; 16], [3; 16]];
    let listener = crate::meet::listen(&mine).expect("a listener");
    let mut leads = [Some(lead(listener)), None];
    std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| {
            let lead = leads[rank].take();
            scope.spawn(move || {
                let file = memfd::create("present", 4096).expect("a file");
                let met =
                    crate::meet::exchange(rank as u32, &file, &nonces, lead, Duration::from_millis(300));
                met.expect_err("rank 2 does not come").to_string()
            })
        });
        for rank in ranks {
            let error = rank.join().expect("a rank");
            assert!(error.contains("no connection from rank 2 within 0.3 s"), "{error}");
        }
    });
}
