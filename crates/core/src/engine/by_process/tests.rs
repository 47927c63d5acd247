use super::*;
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::process::{Child, Command};
use std::time::Duration;

/// Sixteen bytes of its environment that another process is known by, and what follows them.
const MARK: &str = "MARK=0123456789abcdef and more";

/// A process that ends with this.
struct Sleeper(Child);

impl Sleeper {
    /// It and its card.
    fn start() -> (Self, Card) {
        let (name, value) = MARK.split_once('=').expect("two parts");
        let child = Command::new("sleep").arg("100").env_clear().env(name, value).spawn();
        let child = Self(child.expect("a process"));
        let pid = child.0.id() as i32;
        let nonce = *MARK.as_bytes()["MARK=".len()..].first_chunk().expect("so many bytes");
        // It is another program soon.
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
            let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
            let environment: u64 = fields[47].parse().expect("a number");
            let card = Card { pid, nonce, address: environment + "MARK=".len() as u64 };
            if stat.contains("(sleep)") && Process::open(&card).is_ok() {
                return (child, card);
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(process: &Process, address: u64, into: &mut [u8]) -> Result<(), NicError> {
    let local = RawSlice::new(into.as_mut_ptr(), into.len());
    // SAFETY: by_process.2: the bytes are borrowed exclusively until this returns, and of the other process nothing is written.
    unsafe { process.copy(false, 7, address, local) }
}

fn put(process: &Process, address: u64, from: &[u8]) -> Result<(), NicError> {
    let local = RawSlice::new(from.as_ptr().cast_mut(), from.len());
    // SAFETY: by_process.1: the process is this test's child, a program that does not look at its environment. by_process.2: a put reads
    // what is borrowed.
    unsafe { process.copy(true, 7, address, local) }
}

#[test]
fn a_key_says_whose_it_is_and_where() {
    let card = Card { pid: 77, nonce: [3; NONCE], address: 1 << 40 };
    let key = card.key();
    assert_eq!(Card::read(&key), Some(card));
    for wrong in [&key[1..], &[&key[..], &[0]].concat(), &[]] {
        assert_eq!(Card::read(wrong), None, "{} bytes", wrong.len());
    }
    let own = ByProcess::new().expect("random bytes");
    let mine = Card::read(&own.key()).expect("a key");
    assert_eq!((mine.pid, mine.nonce), (std::process::id() as i32, *own.nonce));
    assert_eq!(ByProcess::no_key().len(), own.key().len(), "ranks may differ in their settings");
    let error = Process::open(&Card::NONE).expect_err("nobody's").to_string();
    assert!(error.ends_with("its rank has messages be used"), "{error}");
    let error = Process::open(&mine).expect_err("by messages to itself").to_string();
    assert!(error.ends_with("it is this process"), "{error}");
}

#[test]
fn a_process_is_the_one_that_was_meant_or_is_not_reached() {
    let (mut child, card) = Sleeper::start();
    let by_process = ByProcess::new().expect("random bytes");
    let reach = |rank, card: &Card| by_process.with(rank, card, |process| Some(process.remote.pid()));
    assert_eq!(reach(1, &card), Some(card.pid));
    // One whose number is another process's here, and one that has nothing at that address.
    let mut other = card;
    other.nonce[15] ^= 1;
    let lost = Card { address: 4096, ..card };
    assert_eq!((reach(2, &other), reach(3, &lost)), (None, None));
    // A rank has one process, whatever a later key says; and what was refused once is not asked for again.
    assert_eq!((reach(1, &other), reach(2, &card)), (None, None));
    child.0.kill().and_then(|()| child.0.wait()).expect("it is ours");
    assert_eq!((reach(4, &card), reach(1, &card)), (None, Some(card.pid)));
    let (reached, refused) = by_process.standing();
    assert_eq!(reached, [1]);
    let why: Vec<_> = refused.iter().map(|(rank, why)| (*rank, why.contains("another process's"))).collect();
    assert_eq!(why, [(2, true), (3, true), (4, false)], "{refused:?}");
    by_process.close();
    assert_eq!(reach(1, &card), None, "after the end");
}

#[test]
fn bytes_are_copied_as_long_as_the_process_is_there() {
    let (mut child, card) = Sleeper::start();
    let process = Process::open(&card).expect("it is ours");
    let mut found = [0; 9];
    assert_eq!(get(&process, card.address + 16, &mut found), Ok(()));
    assert_eq!(&found, b" and more");
    assert_eq!(put(&process, card.address + 21, b"less"), Ok(()));
    assert_eq!(get(&process, card.address + 16, &mut found), Ok(()));
    assert_eq!(&found, b" and less");
    // The environment ends with its page; what begins inside and ends outside is one error, however much was moved.
    let mut beyond = vec![0; 1 << 20];
    for result in
        [get(&process, card.address, &mut beyond), put(&process, 4096, &found), get(&process, 0, &mut found)]
    {
        assert_eq!(result, Err(NicError::Fault { peer: 7 }));
    }
    assert_eq!(get(&process, 0, &mut []), Ok(()), "no bytes are everywhere");
    child.0.kill().expect("it is ours");
    while !process::has_ended(process.handle.as_fd()) {
        std::thread::yield_now();
    }
    // Nobody has asked how it ended; then its number is free.
    assert_eq!(put(&process, card.address, b"x"), Err(NicError::PeerGone { peer: 7 }));
    child.0.wait().expect("its end");
    assert_eq!(get(&process, card.address, &mut found), Err(NicError::PeerGone { peer: 7 }));
}

#[test]
fn who_settles_waits_for_copies() {
    let (_child, card) = Sleeper::start();
    let by_process = ByProcess::new().expect("random bytes");
    let (begun, over) = (std::sync::mpsc::channel(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            by_process.with(1, &card, |_| {
                begun.0.send(()).expect("it listens");
                std::thread::sleep(Duration::from_millis(30));
                over.store(true, Relaxed);
                Some(())
            })
        });
        begun.1.recv().expect("it has begun");
        by_process.settle();
        assert!(over.load(Relaxed), "what was begun before is over");
    });
}
