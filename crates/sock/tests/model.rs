//! Random calls on the two ends of a connection, against a model that is nothing but queues of numbers.
//!
//! A program of its own: what a test beside it starts would hold both ends for a moment, between fork and exec, and an end
//! that is closed here would not be closed.
#![cfg(not(gasworks_loom))]

use std::collections::VecDeque;
use std::time::Duration;

use gasworks_sock::{Class, Error, Event, Op, Set, Sock};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Call {
    PostRead { min: usize, more: usize },
    PostWrite(usize),
    Read(usize),
    Write(usize),
    Close,
}

/// What is known of one end.
#[derive(Default)]
struct End {
    /// Bytes on their way to it.
    arriving: VecDeque<u8>,
    /// The posted read: minimum, maximum, what it has.
    reading: Option<(usize, usize, Vec<u8>)>,
    /// The next byte that it sends.
    next: u8,
    closed: bool,
    /// It has been told the end, or written in vain.
    read_ended: bool,
    write_ended: bool,
}

impl End {
    /// The next bytes to send: they are numbered, so that a lost or doubled one is noticed.
    fn bytes(&self, len: usize) -> Vec<u8> {
        (0..len).map(|i| self.next.wrapping_add(i as u8)).collect()
    }

    fn take(&mut self, most: usize) -> Vec<u8> {
        let n = most.min(self.arriving.len());
        self.arriving.drain(..n).collect()
    }
}

struct Pair {
    set: Set,
    socks: [Sock; 2],
    ends: [End; 2],
}

/// An end that the peer's close makes; a reset, if it left bytes unread.
fn is_end(error: &Error) -> bool {
    matches!(error.class(), Class::ConnClosed | Class::ConnFailed)
}

impl Pair {
    fn new() -> Self {
        let set = Set::new().expect("a set");
        let (a, b) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let socks = [set.adopt(0, a).expect("adopted"), set.adopt(1, b).expect("adopted")];
        Self { set, socks, ends: Default::default() }
    }

    /// All events there are now, in order.
    fn events(&self) -> Vec<Event> {
        std::iter::from_fn(|| self.set.wait(Some(Duration::ZERO)).expect("waited")).collect()
    }

    /// What the calls before must have led to, and nothing else.
    fn settle(&mut self, mut wanted: Vec<(usize, Op)>) -> Result<(), TestCaseError> {
        let mut events: VecDeque<Event> = self.events().into();
        for i in 0..2 {
            let peer_closed = self.ends[1 - i].closed;
            let end = &mut self.ends[i];
            let Some((min, max, mut has)) = end.reading.take() else { continue };
            has.extend(end.take(max - has.len()));
            let ended = has.len() < min && peer_closed;
            if has.len() < min && !ended && !end.closed {
                end.reading = Some((min, max, has));
                continue;
            }
            let at = events.iter().position(|e| e.user == i as u64 && e.op == Op::Read);
            let Some(event) = at.and_then(|at| events.remove(at)) else {
                return Err(TestCaseError::fail(format!("the read of {i} has no event")));
            };
            prop_assert_eq!(event.data(), &has[..]);
            match &event.error {
                None => prop_assert!(has.len() >= min),
                Some(error) => {
                    prop_assert!(end.closed && error.class() == Class::SockClosed || ended && is_end(error));
                    end.read_ended = true;
                }
            }
        }
        for event in events {
            let told = (event.user as usize, event.op);
            let at = wanted.iter().position(|w| *w == told);
            prop_assert!(at.is_some(), "a stray event: {:?}", event);
            // Those of one sock come in the order in which they were asked for.
            let first = wanted.iter().position(|(user, _)| *user == told.0);
            prop_assert_eq!(at, first);
            wanted.remove(at.unwrap_or_default());
        }
        prop_assert!(wanted.is_empty(), "events that did not come: {:?}", wanted);
        Ok(())
    }

    fn call(&mut self, i: usize, call: Call) -> Result<(), TestCaseError> {
        let sock = self.socks[i].clone();
        let peer_closed = self.ends[1 - i].closed;
        let mut wanted = Vec::new();
        let end = &mut self.ends[i];
        let refuses = |result: Result<(), Error>, class: &[Class]| {
            let told = result.err().map(|error| error.class());
            prop_assert!(told.is_some_and(|told| class.contains(&told)), "{:?}, not {:?}", told, class);
            Ok(())
        };
        let dead = [Class::ConnClosed, Class::ConnFailed];
        match call {
            Call::Close if end.closed => refuses(sock.post_close(), &[Class::BadSock])?,
            Call::Close => {
                prop_assert!(sock.post_close().is_ok());
                end.closed = true;
                wanted.push((i, Op::Close));
            }
            Call::PostRead { min, more } => {
                let result = sock.post_read(vec![0; min + more], min, min + more, None);
                match () {
                    () if end.closed => refuses(result, &[Class::BadSock])?,
                    () if end.reading.is_some() => refuses(result, &[Class::InProgress])?,
                    () if end.read_ended => refuses(result, &dead)?,
                    () => {
                        prop_assert!(result.is_ok());
                        end.reading = Some((min, min + more, Vec::new()));
                    }
                }
            }
            Call::Read(len) => {
                let mut into = vec![0; len];
                let result = sock.read(&mut into);
                match () {
                    () if end.closed => refuses(result.map(drop), &[Class::BadSock])?,
                    () if end.reading.is_some() => refuses(result.map(drop), &[Class::InProgress])?,
                    () if end.read_ended || end.arriving.is_empty() && peer_closed => {
                        refuses(result.map(drop), &dead)?;
                        end.read_ended = true;
                    }
                    () => {
                        let taken = end.take(len);
                        prop_assert_eq!(result.map(|n| into[..n].to_vec()).ok(), Some(taken));
                    }
                }
            }
            Call::PostWrite(len) | Call::Write(len) => {
                let bytes = end.bytes(len);
                let posted = matches!(call, Call::PostWrite(_));
                let result = match posted {
                    true => sock.post_write(bytes.clone(), len, len, None),
                    false => sock.write(&bytes).map(|n| assert_eq!(n, len)),
                };
                match () {
                    () if end.closed => refuses(result, &[Class::BadSock])?,
                    () if end.write_ended || peer_closed && !posted => {
                        refuses(result, &dead)?;
                        end.write_ended = true;
                    }
                    () if peer_closed && result.is_err() => refuses(result, &dead)?,
                    () => {
                        prop_assert!(result.is_ok());
                        if posted {
                            wanted.push((i, Op::Write));
                        }
                        if peer_closed {
                            end.write_ended = true;
                        } else {
                            end.next = end.next.wrapping_add(len as u8);
                            self.ends[1 - i].arriving.extend(bytes);
                        }
                    }
                }
            }
        }
        self.settle(wanted)
    }
}

fn calls() -> impl Strategy<Value = Vec<(usize, Call)>> {
    let call = prop_oneof![
        6 => (1..40usize, 0..40usize).prop_map(|(min, more)| Call::PostRead { min, more }),
        6 => (1..40usize).prop_map(Call::PostWrite),
        3 => (1..40usize).prop_map(Call::Read),
        4 => (1..40usize).prop_map(Call::Write),
        1 => Just(Call::Close),
    ];
    proptest::collection::vec((0..2usize, call), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_any_order_do_what_the_model_does(calls in calls()) {
        let mut pair = Pair::new();
        for (i, call) in calls {
            pair.call(i, call)?;
        }
    }
}
