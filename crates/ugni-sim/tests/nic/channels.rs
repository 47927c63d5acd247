//! Completion channels, looked at by hand; and waits for several queues that end for nothing.

use super::*;
use std::os::fd::AsFd;
use std::time::Duration;

use gasworks_ugni_sim::nic::Channel;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

fn readable(channel: &Channel) -> bool {
    poll(&mut [PollFd::new(channel.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO) == Ok(1)
}

fn channel() -> Arc<Channel> {
    let channel = Channel::new().unwrap();
    fcntl(&channel, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    Arc::new(channel)
}

/// Makes an event in the second queue of a rank.
fn tell(rank: &Rank) {
    let mut write = rank.descriptor(rank, GNI_POST_CQWRITE, 0);
    write.cq_mode = GNI_CQMODE_SILENT;
    rank.post(0, &write).unwrap();
}

#[test]
fn an_armed_queue_is_told_of_once() {
    let (rank, channel) = (&job(Chip::Aries, MODES, 1)[0], channel());
    assert!(!rank.nic.watch(), "nothing is armed");
    rank.nic.arm(&rank.arrivals, &channel, 7);
    assert!(rank.nic.watch() && !readable(&channel), "there is no event");
    assert_eq!(channel.next(), Err(GNI_RC_NOT_DONE));
    tell(rank);
    assert!(!rank.nic.watch() && readable(&channel));
    tell(rank);
    rank.nic.watch();
    assert_eq!(channel.next(), Ok(7));
    assert!(!readable(&channel));
    assert_eq!(channel.next(), Err(GNI_RC_NOT_DONE));
    // The events are there still, so that it is told of as soon as it is armed; twice is once.
    rank.nic.arm(&rank.arrivals, &channel, 8);
    rank.nic.arm(&rank.arrivals, &channel, 9);
    rank.nic.watch();
    assert_eq!([channel.next(), channel.next()], [Ok(9), Err(GNI_RC_NOT_DONE)]);
}

#[test]
fn a_channel_is_readable_until_all_is_told() {
    let (rank, channel) = (&job(Chip::Gemini, MODES, 1)[0], channel());
    let mut put = rank.descriptor(rank, GNI_POST_FMA_PUT, 8);
    put.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    rank.post(0, &put).unwrap();
    rank.nic.arm(&rank.arrivals, &channel, 1);
    rank.nic.arm(&rank.events, &channel, 2);
    rank.nic.watch();
    let first = channel.next();
    assert!(readable(&channel));
    assert_eq!([first, channel.next()], [Ok(1), Ok(2)]);
    assert!(!readable(&channel));
    // Read by the client: what there is to tell is told all the same, and nobody waits for the counter.
    for name in [3, 4] {
        rank.nic.arm(&rank.arrivals, &channel, name);
        rank.nic.watch();
        nix::unistd::read(channel.as_fd(), &mut [0; 8]).unwrap();
        fcntl(&*channel, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        assert_eq!(channel.next(), Ok(name));
        fcntl(&*channel, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    }
}

/// What is gone is watched no more.
#[test]
fn queues_and_channels_that_are_gone_are_not_looked_at() {
    let (rank, channel) = (&job(Chip::Aries, MODES, 1)[0], channel());
    let queue = rank.nic.queue(4).unwrap();
    rank.nic.arm(&queue, &channel, 1);
    assert!(rank.nic.watch());
    drop(queue);
    assert!(!rank.nic.watch());
    rank.nic.arm(&rank.arrivals, &channel, 1);
    assert!(rank.nic.watch());
    drop(channel);
    assert!(!rank.nic.watch());
}

#[test]
fn a_channel_that_waits_is_what_a_new_one_is() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    let channel = Arc::new(Channel::new().unwrap());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| channel.next());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waits.is_finished());
        tell(rank);
        rank.nic.arm(&rank.arrivals, &channel, 5);
        rank.nic.watch();
        assert_eq!(waits.join().unwrap(), Ok(5));
    });
}

/// The adversary ends a quarter of the waits for nothing, the same ones each time; a kind NIC ends none.
#[test]
fn waits_that_end_for_nothing_follow_from_the_seed() {
    let waits = |mood| {
        let rank = &job_in(mood, Chip::Aries, MODES, 1)[0];
        (0..1000).map(|_| rank.nic.wakes_falsely()).collect::<Vec<_>>()
    };
    assert!(!waits(Mood::Plain).contains(&true));
    let first = waits(Mood::Adversarial { seed: 1 });
    assert_eq!(first, waits(Mood::Adversarial { seed: 1 }));
    assert_ne!(first, waits(Mood::Adversarial { seed: 2 }));
    assert!((150..350).contains(&first.iter().filter(|falsely| **falsely).count()));
}
