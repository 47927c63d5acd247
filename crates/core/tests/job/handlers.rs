//! Handlers: what they receive, what they may do, and messages that no handler accepts.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::{SHORT, pattern};
use gasworks_core::message::{Encoded, Head, Landing, Returned};
use gasworks_core::{
    Also, Ask, Category, Commit, Engine, Error, HandlerLock, Incoming, Outgoing, Rank, Received, Token,
};
use gasworks_shmem::inbox::Block;
use gasworks_sync::Par;
use std::sync::{Arc, Mutex};

const SHORT_REPLY: Outgoing<'static> = Outgoing { handler: REPLY[0], ..SHORT };

fn short(name: &str, reply: bool) -> gasworks_core::Signature {
    signature(name, Category::Short, reply, Also::empty())
}

fn fine<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Result<(), Box<Error>> {
    if found == wanted {
        return Ok(());
    }
    Err(Box::new(Error::Handler { from: 99, what: format!("{found:?} and not {wanted:?}") }))
}

/// The handlers make the checks. A failed check is an error, which the next poll of that rank returns.
#[test]
fn a_handler_knows_its_message_and_replies_once() {
    fn check<M: TestMode>() {
        for plan in Plan::kinds() {
            let job =
                Job::<M>::new(&Plan { ranks: 3, sharing: if plan.sharing > 0 { 3 } else { 0 }, ..plan });
            let request = short("asks", false);
            let wanted = request.clone();
            job.handle(150, request, move |message: &Incoming<'_, M>| {
                assert!(Engine::<M>::in_handler());
                let token =
                    Token { source: 1, handler: 150, entry: &wanted, is_request: true, is_long: false };
                fine(message.token(), token)?;
                fine((message.source(), message.rank(), message.engine().rank()), (1, 2, 2))?;
                fine((message.is_request(), message.signature(), message.args().len()), (true, &wanted, 0))?;
                fine(matches!(message.received(), Received::Nothing), true)?;
                let engine = message.engine();
                let refused = |what| Err(Error::InHandler(what));
                fine(engine.poll().map(|_| ()), refused("poll"))?;
                for to in [0, message.rank(), message.rank()] {
                    fine(engine.request(to, &SHORT), refused("active message request"))?;
                }
                let ask = Ask { category: Category::Medium, least: 0, most: 8, landing: None, source: None };
                fine(engine.prepare(0, &ask).map(drop), refused("prepare an active message request"))?;
                // Agreed on and given back, it is none.
                drop(message.prepare_reply(&ask)?);
                message.reply_prepared(&ask, |_| None)?;
                let held = HandlerLock::<M, _>::new(());
                let locked = held.with(|_| message.reply(&SHORT_REPLY))?;
                fine(locked, Err(Error::LockHeld("active message reply")))?;
                let large = Outgoing { payload: &[1], ..SHORT_REPLY };
                fine(message.reply(&large).is_err(), true)?;
                message.reply(&SHORT_REPLY)?;
                let second = || refused("a second reply to one request");
                fine(message.reply(&SHORT_REPLY), second())?;
                fine(message.prepare_reply(&ask).map(drop), second())?;
                fine(message.reply_prepared(&ask, |_| None), second())
            });
            job.handle(151, short("is told", true), move |message: &Incoming<'_, M>| {
                fine((message.is_request(), message.token().is_request), (false, false))?;
                fine(message.reply(&SHORT_REPLY), Err(Error::InHandler("a reply to a reply")))
            });
            assert!(!Engine::<M>::in_handler());
            assert_eq!(job.engines.iter().map(|engine| engine.ranks()).collect::<Vec<_>>(), [3; 3]);
            assert_eq!(job.engines[1].request(2, &Outgoing { handler: 150, ..SHORT }), Ok(()));
            job.poll();
            assert_eq!(job.seen().len(), 1, "the reply");
            // Nor does a thread communicate that holds a handler-safe lock.
            let engine = &job.engines[1];
            let held = HandlerLock::<M, _>::new(()).with(|_| (engine.request(0, &SHORT), engine.poll()));
            let refused = (Err(Error::LockHeld("active message request")), Err(Error::LockHeld("poll")));
            assert_eq!((held, engine.poll()), (Ok(refused), Ok(0)));
            job.handle(152, short("answers", false), |message: &Incoming<'_, M>| {
                Ok(message.reply(&Outgoing { handler: 151, ..SHORT })?)
            });
            assert_eq!(job.engines[1].request(2, &Outgoing { handler: 152, ..SHORT }), Ok(()));
            job.poll();
            job.assert_quiet();
        }
    }
    in_every_mode!(check);
}

/// A negotiated reply arrives as it was committed, and leaves the credits of its sender's own requests alone.
#[test]
fn a_prepared_reply_leaves_when_it_is_committed() {
    fn check<M: TestMode>() {
        let rows = [
            (Category::Medium, 10, 100, None, 20),
            (Category::Long, 10, 100, None, 20),
            (Category::Long, 10, 100, Some(40), 20),
            (Category::Long, MEDIUM + 1, LONG, None, 1000),
            (Category::Long, MEDIUM + 1, LONG, Some(40), 1000),
        ];
        for ((category, least, most, landing, len), plan, by_closure) in rows.into_iter().flat_map(|row| {
            Plan::kinds().into_iter().flat_map(move |plan| [(row, plan.clone(), false), (row, plan, true)])
        }) {
            if least > MEDIUM && plan.sharing == 0 && plan.descriptors == 0 {
                continue;
            }
            let job = Job::<M>::new(&plan);
            job.handle(
                150,
                signature("asks", Category::Medium, false, Also::empty()),
                move |message: &Incoming<'_, M>| {
                    let ask = Ask { category, least, most, landing, source: None };
                    let commit = Commit {
                        handler: REPLY[category as usize],
                        args: &[1, 2, 3, 4],
                        len,
                        landing: 40,
                        source: None,
                    };
                    if by_closure {
                        message.reply_prepared(&ask, |prepared| {
                            prepared.room().write(&pattern(len));
                            Some(commit)
                        })?;
                    } else {
                        let prepared = message.prepare_reply(&ask)?;
                        fine(prepared.prepared().granted(), most)?;
                        prepared.prepared().room().write(&pattern(len));
                        prepared.commit(&commit)?;
                    }
                    fine(message.reply(&SHORT_REPLY).is_err(), true)
                },
            );
            // Rank 1 has 100 bytes out itself, which rank 0 has not handled.
            let medium =
                Outgoing { category: Category::Medium, handler: REQUEST[1], payload: &[1; 100], ..SHORT };
            assert_eq!(job.engines[1].try_request(0, &medium), Ok(()));
            assert_eq!(job.engines[0].try_request(1, &Outgoing { handler: 150, ..medium }), Ok(()));
            assert!(job.engines[1].poll().is_ok_and(|handled| handled > 0));
            assert_eq!((job.engines[1].out(0), job.engines[1].peek().owed_to), ((1, 100), vec![]));
            job.poll();
            let seen = job.seen().into_iter().find(|seen| !seen.is_request).expect("the reply");
            assert_eq!((seen.payload, seen.args), (pattern(len), vec![1, 2, 3, 4]));
            assert_eq!(seen.landed, (category == Category::Long).then_some(40));
            job.assert_quiet();
        }
    }
    in_every_mode!(check);
}

#[test]
fn a_panic_is_told_by_the_next_poll() {
    let job = Job::<Par>::new(&Plan::kinds()[0]);
    job.handle(150, short("panics", false), |_| panic!("of words"));
    job.handle(151, short("panics too", false), |_| panic!("of {} words", 3));
    job.handle(152, short("panics at last", false), |_| std::panic::panic_any(7));
    let rows = [
        (150, "\"panics\" panicked: of words"),
        (151, "\"panics too\" panicked: of 3 words"),
        (152, "last\" panicked: "),
    ];
    for to in [1, 0] {
        for (handler, wanted) in rows {
            assert_eq!(job.engines[0].request(to, &Outgoing { handler, ..SHORT }), Ok(()));
            let told = job.engines[to as usize].poll().expect_err("it panics").to_string();
            assert!(told.ends_with(wanted) && told.contains("rank 0"), "{told}");
            assert!(!Engine::<Par>::in_handler());
        }
    }
    job.poll();
    job.assert_quiet();
}

/// A malformed message is an error that names the sender; no handler runs and the segment stays as it was.
#[test]
fn what_no_handler_takes_is_refused() {
    let (long, request, reply) = (Category::Long, false, true);
    let head = |category, reply, handler, landing: Option<(u64, u64, bool)>, count, args: &[u8]| {
        let landing = landing.map(|(offset, len, in_packet)| Landing { offset, len, in_packet });
        let head = Head::Message { category, reply, handler, landing };
        Encoded::new(head, Returned { count, bytes: 0 }, args).as_bytes().to_vec()
    };
    let credits =
        |count, bytes| Encoded::new(Head::Credits, Returned { count, bytes }, &[]).as_bytes().to_vec();
    let at = |offset, len, in_packet| head(long, request, REQUEST[2], Some((offset, len, in_packet)), 0, &[]);
    let rows: [(Vec<u8>, &[u8], &str); 16] = [
        (vec![], &[], "its head of 0 bytes is cut short"),
        (vec![0x80; 7], &[], "its head of 7 bytes is cut short"),
        (
            head(Category::Short, request, REQUEST[0], None, 0, &[]),
            &[1; 3],
            "a short message with 3 bytes of payload",
        ),
        (head(Category::Short, request, 130, None, 0, &[]), &[], "no handler is registered at index 130"),
        (
            head(Category::Short, reply, REQUEST[1], None, 1, &[0; 8]),
            &[],
            "a short reply with 2 arguments for handler 201 (\"any medium\"), which takes a medium request with 0",
        ),
        (head(Category::Short, reply, REPLY[0], None, 0, &[]), &[], "a reply that answers no request"),
        ([credits(0, 0), vec![0; 4]].concat(), &[], "its head has 12 bytes where 8 are due"),
        (credits(1, 0), &[1], "credits that bring something else"),
        (credits(1, 0), &[], "it returns credits that it never had"),
        (at(0, 8, true), &[1; 7], "a long message of 8 bytes with 7 bytes in its packet"),
        (at(0, 8, false), &[1; 8], "a long message of 8 bytes with 8 bytes in its packet"),
        (at(0, 0, true), &[1], "a long message of 0 bytes with 1 bytes in its packet"),
        (at(4089, 8, true), &[1; 8], "a long message: "),
        (at(u64::MAX, 8, false), &[], "a long message: "),
        (
            [head(Category::Short, request, REQUEST[0], None, 0, &[]), vec![0; 4]].concat(),
            &[],
            "its head has 12 bytes where 8 are due",
        ),
        ([at(0, 0, false), vec![0]].concat(), &[], "its head has 25 bytes where 24 are due"),
    ];
    for (head, payload, wanted) in rows {
        let job = Job::<Par>::new(&Plan::default());
        job.fabric.post(1, 0, &head, payload);
        let told = job.engines[0].poll().expect_err(wanted).to_string();
        assert!(told.starts_with(&format!("message from rank 1: {wanted}")), "{told} is not {wanted}");
        assert_eq!((job.engines[0].poll(), job.seen()), (Ok(0), vec![]), "{wanted}");
        assert_eq!(read(job.fabric.segment(0)), [0; SEGMENT], "{wanted}");
    }
    // Bytes of no request are nobody's.
    let job = Job::<Par>::new(&Plan::default());
    job.fabric.post(1, 0, &credits(0, 5), &[]);
    assert_eq!((job.engines[0].poll(), job.engines[0].poll()), (Ok(1), Ok(0)));
    // The last byte of the segment is one of it, and a Long of no bytes may land beyond.
    for (head, payload) in [(at(4088, 8, true), &[7; 8][..]), (at(u64::MAX, 0, false), &[])] {
        job.fabric.post(1, 0, &head, payload);
        assert_eq!((job.engines[0].poll(), job.seen().len()), (Ok(1), 1));
    }
    assert_eq!(read(job.fabric.segment(0))[4088..], [7; 8]);
}

/// A block is looked up before it is used: a peer that names one that does not exist is told of, and the next message arrives.
#[test]
fn a_block_that_a_peer_names_is_checked() {
    let head = |reply, handler| {
        let head = Head::Message { category: Category::Medium, reply, handler, landing: None };
        Encoded::new(head, Returned::default(), &[]).as_bytes().to_vec()
    };
    let (request, reply) = (head(false, REQUEST[1]), head(true, REPLY[1]));
    let rows = [
        (&request, BLOCKS, 8, format!("names request block {BLOCKS} with 8 bytes")),
        (&request, u32::MAX, 0, format!("names request block {} with 0 bytes", u32::MAX)),
        (&request, 0, BLOCK as u32 + 1, format!("names request block 0 with {} bytes", BLOCK + 1)),
        (&reply, 3, u32::MAX, format!("names reply block 3 with {} bytes", u32::MAX)),
    ];
    for (head, index, len, wanted) in rows {
        let job = Job::<Par>::new(&Plan { sharing: 2, ..Plan::default() });
        job.fabric.post_block(1, 0, head, Block { index, len });
        let told = job.engines[0].poll().expect_err(&wanted).to_string();
        assert!(
            told.contains(&format!("the shmem queue of rank 0 is corrupt: a message from rank 1 {wanted}")),
            "{told}"
        );
        assert_eq!((job.engines[0].poll(), job.seen()), (Ok(0), vec![]), "{wanted}");
        let block = job.fabric.blocks.fill(&[5; MEDIUM]);
        job.fabric.post_block(1, 0, &request, block);
        assert_eq!((job.engines[0].poll(), job.seen().len()), (Ok(1), 1), "{wanted}");
        assert_eq!(job.fabric.blocks.claimed(), 0, "the block is free once its handler has run");
    }
}

/// A handler of Mediums with `Also::LONG` accepts Longs.
#[test]
fn a_medium_handler_may_take_longs() {
    let job = Job::<Par>::new(&Plan::default());
    let seen: Arc<Mutex<Vec<(Rank, bool)>>> = Arc::default();
    let kept = seen.clone();
    job.handle(
        150,
        signature("both", Category::Medium, false, Also::LONG),
        move |message: &Incoming<'_, Par>| {
            lock(&kept).push((message.source(), message.token().is_long));
            Ok(())
        },
    );
    for category in [Category::Medium, Category::Long] {
        for to in [1, 0] {
            let message = Outgoing { category, handler: 150, payload: &[1; 4], ..SHORT };
            assert_eq!(job.engines[0].request(to, &message), Ok(()));
            job.poll();
        }
    }
    assert_eq!(*lock(&seen), [(0, false), (0, false), (0, true), (0, true)]);
}
