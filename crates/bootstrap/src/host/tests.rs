//! Ranks as threads, with a launcher that is a table; some of them elsewhere.

use super::meeting::{Acceptor, Gone, address, follow, go, take_in, welcome};
use super::*;
use crate::host::exchange::exchange;
use gasworks_os::eventfd::EventFd;
use gasworks_os::unix::Listener;
use gasworks_os::{memfd, random};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Barrier};

/// What the ranks of a job have in common.
struct Table {
    values: Mutex<HashMap<(u32, String), Vec<u8>>>,
    fence: Barrier,
    /// The host on which each rank believes it is.
    place: Vec<u32>,
    gets: Mutex<usize>,
    /// What the launcher cannot find.
    lost: Mutex<Option<&'static str>>,
    /// What the launcher cuts, and after how many bytes.
    cut: Mutex<Option<(&'static str, usize)>>,
    /// Rank 0 comes out of each fence later than the others.
    slow: bool,
}

struct Rank {
    rank: u32,
    table: Arc<Table>,
    fences: Cell<usize>,
}

impl Bootstrap for Rank {
    fn rank(&self) -> u32 {
        self.rank
    }
    fn size(&self) -> u32 {
        self.table.place.len() as u32
    }
    fn job(&self) -> &str {
        "hosts"
    }
    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let before = self.table.values.lock().unwrap().insert((self.rank, key.into()), value.into());
        assert!(before.is_none(), "{key} was put twice by rank {}", self.rank);
        Ok(())
    }
    fn fence(&self) -> Result<(), BootstrapError> {
        self.table.fence.wait();
        self.fences.set(self.fences.get() + 1);
        if self.table.slow && self.rank == 0 {
            std::thread::sleep(4 * TOO_SHORT);
        }
        Ok(())
    }
    /// A rank elsewhere hears of another name, so it cannot attach.
    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        *self.table.gets.lock().unwrap() += 1;
        if *self.table.lost.lock().unwrap() == Some(key) {
            return Err(BootstrapError::protocol("get a value", format!("{key} is lost")));
        }
        let values = self.table.values.lock().unwrap();
        let mut value = values.get(&(rank, key.to_owned())).expect("it was put").clone();
        if key == "host" && self.table.place[self.rank as usize] != self.table.place[0] {
            value.extend(self.table.place[self.rank as usize].to_le_bytes());
        }
        if let Some((_, length)) = self.table.cut.lock().unwrap().filter(|(cut, _)| *cut == key) {
            value.truncate(length);
        }
        Ok(value)
    }
    fn host(&self) -> Result<&Host, BootstrapError> {
        unreachable!("it is made here")
    }
    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        unreachable!("they are found here")
    }
    fn abort(&self, _: i32, message: &str) -> ! {
        panic!("{message}")
    }
    fn finalize(&self) -> Result<(), BootstrapError> {
        Ok(())
    }
}

const SOON: Duration = Duration::from_secs(20);
/// Too short for any rank that is waited for.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// Runs `body` as each rank of a job whose ranks are on these hosts; gives how often a value was asked for.
fn run(place: &[u32], body: impl Fn(&Rank, &Host, Lines) + Sync) -> usize {
    run_within(place, SOON, false, body)
}

/// The same with ranks that wait for each other as long as `limit` when they meet, and perhaps a slow rank 0.
fn run_within(
    place: &[u32],
    limit: Duration,
    slow: bool,
    body: impl Fn(&Rank, &Host, Lines) + Sync,
) -> usize {
    let table = Arc::new(Table {
        values: Mutex::default(),
        fence: Barrier::new(place.len()),
        place: place.to_vec(),
        gets: Mutex::new(0),
        lost: Mutex::new(None),
        cut: Mutex::new(None),
        slow,
    });
    std::thread::scope(|scope| {
        for rank in 0..place.len() as u32 {
            let (rank, body) = (Rank { rank, table: Arc::clone(&table), fences: Cell::new(0) }, &body);
            scope.spawn(move || {
                let (host, lines) = meet(&rank, limit, None).unwrap_or_else(|e| panic!("{e}"));
                body(&rank, &host, lines);
            });
        }
    });
    *table.gets.lock().unwrap()
}

/// A value whose length and bytes tell whose it is; every fifth is empty.
fn value(rank: u32) -> Vec<u8> {
    if rank.is_multiple_of(5) { Vec::new() } else { (0..rank * 3).map(|i| (i + rank) as u8).collect() }
}

fn check(place: &[u32]) -> usize {
    run(place, |rank, host, lines| {
        let here = place[rank.rank as usize];
        let together: Vec<u32> = (0u32..).zip(place).filter(|(_, p)| **p == here).map(|(r, _)| r).collect();
        assert_eq!(host.ranks(), together);
        assert!(together.contains(&host.leader()) && (together[0] > 0 || host.leader() == 0));
        assert_eq!(lines.leads, host.leads());
        let expected = if host.leads() { together.len() - 1 } else { 1 };
        assert_eq!(lines.lines.len(), expected);

        let hosts = Hosts::find(rank, host).unwrap();
        for (other, theirs) in (0u32..).zip(place) {
            assert_eq!(hosts.leader(other) == hosts.leader(rank.rank), *theirs == here);
        }
        for round in 0..2 {
            let all =
                exchange(rank, host, &hosts, &format!("x{round}"), &value(rank.rank), Some(SOON)).unwrap();
            assert_eq!(all.to_vec(), (0..place.len() as u32).map(value).collect::<Vec<_>>());
        }
        // To meet, to find the hosts, and for both exchanges: ranks of one host need no launcher for these.
        let fences = match hosts.count() {
            _ if place.len() == 1 => 0,
            1 => 2,
            2..=16 => 2 + 2 + 2,
            _ => 2 + 2 + 2 * 2,
        };
        assert_eq!(rank.fences.get(), fences);
    })
}

#[test]
fn ranks_find_those_of_their_host_and_exchange_with_all() {
    for place in [&[0][..], &[0, 0], &[0, 1], &[0, 1, 0, 1, 2], &[3, 3, 1, 1, 1, 0, 2, 2]] {
        check(place);
    }
    let scattered: Vec<u32> = (0..60).map(|rank| rank * 7 % 23).collect();
    check(&scattered);
}

#[test]
fn a_host_asks_the_launcher_for_a_name_and_nothing_else() {
    assert_eq!(check(&[0; 12]), 11);
    // Two hosts: the name, 12 numbers to those that collect, 4 blocks to 2 leaders, one value each in each of two exchanges.
    assert_eq!(check(&[0, 1].repeat(6)), 11 + 12 + 2 * 4 + 2 * 2);
}

#[test]
fn with_more_than_16_hosts_some_collect_for_the_others() {
    // A host for each rank. Each gets the name and one value from each of the others twice; four collect the numbers of four
    // ranks, and all get these.
    let all: Vec<u32> = (0..17).collect();
    assert_eq!(check(&all[..16]), 15 + 16 + 16 * 4 + 2 * 16 * 15);
    // Five blocks: in each exchange one of each block gets the values of the block, and all get the blocks.
    assert_eq!(check(&all), 16 + 17 + 17 * 5 + 2 * (17 + 17 * 5));
}

#[test]
fn who_follows_waits_longer_than_its_leader() {
    run_within(&[0; 3], TOO_SHORT, true, |_, host, _| assert_eq!(host.ranks(), [0, 1, 2]));
}

/// Who has come to a door that is closed now.
fn closed(me: u32, door: Listener) -> Vec<(u32, Stream)> {
    let closing = EventFd::new().unwrap();
    closing.ring().unwrap();
    take_in(me, 6, &[door], &closing).unwrap()
}

#[test]
fn one_who_connects_has_time_to_say_who_it_is() {
    let name = address(&random::nonce().unwrap());
    let door = unix::listen(&name).unwrap();
    let guest = unix::connect(&name, Instant::now() + SOON).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(TOO_SHORT);
            guest.send_fds(&5u32.to_le_bytes(), &[], Instant::now() + SOON).unwrap();
        });
        let (host, _) = welcome(3, closed(3, door), Instant::now() + SOON).unwrap();
        assert_eq!((host.ranks(), host.leader(), host.leads()), (&[3, 5][..], 3, true));
    });
}

#[test]
fn a_reason_has_time_to_leave() {
    let (ours, theirs) = unix::pair().unwrap();
    while ours.send_fds(&[0; 4096], &[], Instant::now()).is_ok() {}
    let begun = Instant::now();
    tell(&[ours], &BootstrapError::protocol(GATHER, "nobody reads it"));
    assert!(begun.elapsed() >= GRACE / 4);
    drop(theirs);
}

#[test]
fn descriptors_come_with_their_ranks() {
    run(&[0; 4], |rank, host, _| {
        let file = memfd::create("gathered", 4096).unwrap();
        let fds = vec![file.as_fd(); rank.rank as usize];
        let all = host.all_gather(&[rank.rank as u8], &fds, Some(SOON)).unwrap();
        for (other, parcel) in (0u32..).zip(all) {
            assert_eq!((parcel.bytes, parcel.fds.len()), (vec![other as u8], other as usize));
        }
    });
}

/// What each is given follows from what all gave, and descriptors go to those alone for whom they are.
#[test]
fn the_leader_gives_each_what_is_for_it() {
    run(&[0; 4], |rank, host, _| {
        let given = |all: &Parts| {
            let file = memfd::create("given", 4096).unwrap().into_fd();
            let first = Parcel { bytes: all.iter().flatten().copied().collect(), fds: vec![file] };
            vec![(1, first), (3, Parcel { bytes: b"nothing".to_vec(), fds: vec![] })]
        };
        let (all, given) = host.all_gather_with(&[rank.rank as u8; 2], Some(SOON), given).unwrap();
        assert!(all.iter().eq([[0; 2], [1; 2], [2; 2], [3; 2]]));
        let wanted = if rank.rank == 0 { (&[0, 0, 1, 1, 2, 2, 3, 3][..], 1) } else { (&b"nothing"[..], 0) };
        assert_eq!((&given.bytes[..], given.fds.len()), wanted);
        // All hear of it where somebody is left out.
        let few = |_: &Parts| vec![(3, Parcel::default())];
        let error = host.all_gather_with(b"x", Some(SOON), few).unwrap_err().to_string();
        assert!(error.contains("what is handed out is not for each rank"), "{error}");
    });
}

#[test]
fn a_rank_that_leaves_is_named_to_all() {
    run(&[0; 4], |rank, host, _| {
        // Nobody leaves before all have met.
        rank.fence().unwrap();
        let follower = host.ranks().iter().find(|&&rank| rank != host.leader());
        if follower == Some(&rank.rank) {
            host.streams.lock().unwrap().clear();
            return;
        }
        let error = host.all_gather(b"x", &[], Some(SOON)).unwrap_err().to_string();
        let wanted = format!("rank {}, on this host, is gone", follower.unwrap());
        assert!(error.contains(&wanted), "{error}");
    });
}

#[test]
fn one_that_is_silent_is_waited_for_no_longer_than_allowed() {
    run(&[0; 3], |rank, host, _| {
        let silent = host.ranks().iter().rfind(|&&rank| rank != host.leader()).copied();
        if silent != Some(rank.rank) {
            let error = host.all_gather(b"x", &[], Some(Duration::from_millis(50))).unwrap_err().to_string();
            // The others hear it from the leader, which gives up before them.
            let wanted = format!("rank {}, on this host: ", silent.unwrap());
            assert!(error.contains(&wanted), "{error} should say {wanted}");
            assert!(error.contains("nothing came within the time allowed"), "{error}");
        }
        rank.fence().unwrap();
    });
}

#[test]
fn what_a_leader_cannot_learn_is_told_to_its_host() {
    let lose = |rank: &Rank, key| {
        // Two ranks of each job ask for it, on behalf of the others, who ask for nothing.
        *rank.table.lost.lock().unwrap() = Some(key);
        rank.fence().unwrap();
    };
    run(&[0, 0, 1, 1], |rank, host, _| {
        lose(rank, "leaders");
        let error = Hosts::find(rank, host).unwrap_err().to_string();
        assert!(error.contains("leaders is lost"), "{error}");
    });
    run(&[0, 0, 1, 1], |rank, host, _| {
        let hosts = Hosts::find(rank, host).unwrap();
        lose(rank, "x");
        let error = exchange(rank, host, &hosts, "x", b"value", Some(SOON)).unwrap_err().to_string();
        assert!(error.contains("x is lost"), "{error}");
    });
}

#[test]
fn what_a_launcher_cuts_is_refused() {
    let cut = |rank: &Rank, key, length| {
        *rank.table.cut.lock().unwrap() = Some((key, length));
        rank.fence().unwrap();
    };
    run(&[0, 1, 0, 1], |rank, host, _| {
        cut(rank, "leaders", 4);
        let error = Hosts::find(rank, host).unwrap_err().to_string();
        assert!(error.ends_with("2 numbers came of 4 ranks, or some name a leader that is none"), "{error}");
    });
    // Half a length, and no value at all.
    for length in [2, 0] {
        run(&[0, 1], |rank, host, _| {
            let hosts = Hosts::find(rank, host).unwrap();
            cut(rank, "x", length);
            let error = exchange(rank, host, &hosts, "x", b"value", Some(SOON)).unwrap_err().to_string();
            assert_eq!(error, "exchange values among all ranks: the launcher damaged what was put under x");
        });
    }
}

#[test]
fn a_leader_that_hands_out_too_little_is_refused() {
    let (ours, theirs) = unix::pair().unwrap();
    let host = Host { me: 1, leader: 0, ranks: vec![0, 1], streams: Mutex::new(vec![ours]) };
    let file = memfd::create("handed", 4096).unwrap();
    for (parts, fds) in [
        (&[][..], 0),
        (&[vec![0; 8], vec![1]], 0),
        (&[vec![0; 4], vec![1], vec![2]], 0),
        (&[vec![0; 8], vec![1], vec![2]], 1),
    ] {
        let fds = vec![file.as_fd(); fds];
        send_parcel(&theirs, &parts.iter().collect::<Parts>().into_bytes(), &fds, Instant::now() + SOON)
            .unwrap();
        let error = host.all_gather(b"x", &[], Some(SOON)).unwrap_err().to_string();
        assert!(error.ends_with("rank 0 handed out something that is no collection"), "{parts:?}: {error}");
    }
    let all = Parts::from_iter([vec![0; 8], vec![1], vec![2]]).into_bytes();
    send_parcel(&theirs, &all, &[], Instant::now() + SOON).unwrap();
    let all = host.all_gather(b"x", &[], Some(SOON)).unwrap();
    assert_eq!(all.into_iter().map(|parcel| parcel.bytes).collect::<Vec<_>>(), [[1], [2]]);
}

#[test]
fn the_name_of_one_that_ends_before_it_is_reached_is_free_again() {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
    use std::os::fd::AsRawFd;
    let name = address(&random::nonce().unwrap());
    // The name is taken, and nobody listens there.
    let taken = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(taken.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
    let long = go(&"x".repeat(200), Instant::now() + SOON).err().expect("no name").to_string();
    assert!(long.starts_with("listen on socket @x"), "{long}");
    let short =
        go(&name, Instant::now() + Duration::from_millis(20)).err().expect("nobody listens").to_string();
    assert!(short.contains("refused"), "{short}");
    std::thread::scope(|scope| {
        let comes = scope.spawn(|| go(&name, Instant::now() + SOON));
        std::thread::sleep(Duration::from_millis(20));
        drop(taken);
        assert!(matches!(comes.join().unwrap().unwrap(), Gone::Taken(_)));
    });
}

#[test]
fn strangers_at_the_door_are_not_taken_in() {
    let name = address(&random::nonce().unwrap());
    let door = unix::listen(&name).unwrap();
    let knock = |bytes: &[u8]| {
        let stream = unix::connect(&name, Instant::now() + SOON).unwrap();
        stream.send_fds(bytes, &[], Instant::now() + SOON).unwrap();
        stream
    };
    // Its own number, one that no rank has, one twice, one that says nothing whole before it goes.
    let known = [3u32, 6, 5, 5].map(|number| knock(&number.to_le_bytes()));
    drop(knock(&[1, 2]));
    let (host, lines) = welcome(3, closed(3, door), Instant::now() + SOON).unwrap();
    assert_eq!((host.ranks(), lines.lines.len()), (&[3, 5][..], 1));
    let [own, nobody, first, second] = known;
    let sent_away = |stream: &Stream| receive(stream, 1, Instant::now() + SOON).unwrap_err().cause.kind();
    assert_eq!(sent_away(&own), io::ErrorKind::UnexpectedEof);
    assert_eq!(sent_away(&nobody), io::ErrorKind::UnexpectedEof);
    assert_eq!(receive(&first, 1, Instant::now() + SOON).unwrap().unwrap().fds.len(), 1);
    assert_eq!(sent_away(&second), io::ErrorKind::UnexpectedEof);
}

#[test]
fn strangers_do_not_keep_the_last_rank_away() {
    let name = address(&random::nonce().unwrap());
    let acceptor = Acceptor::start(3, 6, vec![unix::listen(&name).unwrap()]).unwrap();
    let knock = || unix::connect(&name, Instant::now() + SOON).unwrap();
    // A queue has no room for as many.
    (0..5000).for_each(|_| drop(knock()));
    let guest = knock();
    guest.send_fds(&5u32.to_le_bytes(), &[], Instant::now() + SOON).unwrap();
    let guests = acceptor.guests().unwrap();
    assert_eq!(guests.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [5]);
}

#[test]
fn a_leader_that_lies_is_refused() {
    let numbers = |list: &[u32]| list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    for (list, with_line) in [
        (&[][..], true),
        (&[0], true),
        (&[0, 0, 2, 1], true),
        (&[0, 0, 2], true),
        (&[5, 0, 1], true),
        (&[0, 0, 1], false),
    ] {
        let (ours, theirs) = unix::pair().unwrap();
        let (line, _other) = unix::pair().unwrap();
        let fds = if with_line { vec![line.as_fd()] } else { vec![] };
        send_parcel(&theirs, &numbers(list), &fds, Instant::now() + SOON).unwrap();
        let error = follow(1, ours, Instant::now() + SOON).unwrap_err().to_string();
        assert!(error.contains("no list of ranks"), "{list:?}: {error}");
    }
}
