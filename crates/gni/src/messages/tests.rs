//! What hostile ranks may write, and what is told of it.

use super::play::*;
use super::*;
use crate::domain::Arrival;
use crate::handle::Handle;
use crate::letter::Call;
use gasworks_core::{Class, message};
use gasworks_rdma::Stage;
use proptest::prelude::*;

impl Victim {
    /// What a hostile rank did is told once, in these words.
    fn told(&mut self, wanted: &str) {
        let (heard, wrong) = self.hear();
        assert!(wrong.len() == 1 && wrong[0].contains(wanted), "{wrong:?}, not {wanted:?}");
        assert_eq!(heard, [], "of {wanted:?}");
        self.goes_on();
    }

    /// It changes nothing.
    fn untold(&mut self) {
        assert_eq!(self.hear(), (vec![], vec![]));
        self.goes_on();
    }

    /// Nothing has been lost: who is honest is heard, and every place is somebody's or free.
    fn goes_on(&mut self) {
        let sent = self.honest_word();
        assert_eq!(self.hear(), (vec![sent], vec![]));
        self.is_whole();
    }
}

/// Words that no rank writes as a letter; `fetch`: where a letter of a message to be fetched would stand.
fn no_letters(fetch: bool) -> Vec<u64> {
    let right = Letter { fetch, ..LETTER };
    let wrong = [
        Letter { fetch: !fetch, ..right },
        Letter { slot: SHAPE.slots as u16, ..right },
        Letter { slot: u16::MAX, ..right },
        Letter { head: 0, ..right },
        Letter { head: message::MAX_HEAD + 1, ..right },
        Letter { head: 255, ..right },
        Letter { payload: SHAPE.max_medium + 1, ..right },
        Letter { payload: (1 << 20) - 1, ..right },
        // What goes beside a message is not in it.
        Letter { beside: true, ..right },
    ];
    let bits = (52..60).map(|bit| right.encode() | 1 << bit);
    wrong.map(Letter::encode).into_iter().chain(bits).chain([1, right.encode() & !(1 << 63)]).collect()
}

#[test]
fn what_is_no_letter_is_told() {
    for word in no_letters(true) {
        let mut victim = Victim::new(2);
        victim.letter(HOSTILE, 3, word);
        victim.told(&format!("rank 1 has sent {word:#018x}, which is no letter"));
        // Nor is its ticket used up by that.
        victim.letter(HOSTILE, 3, LETTER.encode());
        assert_eq!(victim.hear(), (vec![(HOSTILE, vec![0; 16])], vec![]));
    }
}

/// A victim that has given the hostile rank a mailbox.
fn with_a_mailbox() -> Victim {
    let mut victim = Victim::new(2);
    victim.letter(HOSTILE, 0, LETTER.encode());
    assert_eq!(victim.hear(), (vec![(HOSTILE, vec![0; 16])], vec![]));
    victim
}

#[test]
fn what_is_no_letter_in_a_mailbox_is_told() {
    for word in no_letters(false) {
        let mut victim = with_a_mailbox();
        victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(1), word);
        victim.call(Call::Request(HOSTILE));
        victim.told(&format!("rank 1 has sent {word:#018x}, which is no letter"));
    }
    for (granule, payload) in [(255, 0), (63, 512), (64, 8)] {
        let mut victim = with_a_mailbox();
        let letter = Letter { fetch: false, granule, payload, ..LETTER };
        victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(1), letter.encode());
        victim.call(Call::Request(HOSTILE));
        victim.told("has sent a letter of a message beyond its mailbox");
    }
    // The last message that fits is one, also behind a set of tickets, which is empty here.
    for (ends, before) in [(false, 0), (true, ENDED)] {
        let mut victim = with_a_mailbox();
        let payload = victim.messages.mailboxes.shape.granule - before - HEAD;
        let letter = Letter { fetch: false, ends, granule: 63, payload, ..LETTER };
        victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(1), letter.encode());
        victim.call(Call::Request(HOSTILE));
        assert_eq!(victim.hear(), (vec![(HOSTILE, vec![0; payload])], vec![]));
    }
}

#[test]
fn a_ticket_that_is_used_twice_is_told() {
    let mut victim = with_a_mailbox();
    victim.letter(HOSTILE, 0, LETTER.encode());
    victim.told("rank 1 has used ticket 0 twice");
    // Also by the other way.
    let mut victim = with_a_mailbox();
    let letter = Letter { fetch: false, ..LETTER };
    victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(0), letter.encode());
    victim.call(Call::Request(HOSTILE));
    victim.told("rank 1 has used ticket 0 twice");
}

#[test]
fn who_ends_what_is_not_out_is_told() {
    // In a message that is fetched, in one in a mailbox, and in a reply: of nobody's, of another rank's, and once more.
    let mut victim = Victim::new(2);
    victim.request(HONEST).expect("there is room");
    let at = victim.layout.slot(LETTER.slot);
    victim.messages.domain.theirs[HOSTILE as usize][at] = 1;
    victim.letter(HOSTILE, 2, Letter { ends: true, ..LETTER }.encode());
    victim.told("rank 1 has ended a request that is not out");
    let mut victim = with_a_mailbox();
    let (mailbox, shape) = (victim.mailbox(HOSTILE), victim.messages.mailboxes.shape);
    mailbox.set(shape.granule(0), u64::MAX);
    mailbox.set(shape.letter(1), Letter { fetch: false, ends: true, ..LETTER }.encode());
    victim.call(Call::Request(HOSTILE));
    victim.told("rank 1 has ended a request that is not out");
    // A reply ends its own request without saying so.
    for ended in [1, 1 << 1, u64::MAX, 1 << 63] {
        let mut victim = Victim::new(2);
        let (ticket, slot) = victim.request(HOSTILE).expect("there is room");
        assert_eq!(ticket, 0);
        victim.answer(slot, Letter { fetch: false, ends: true, ..LETTER }.encode(), ended);
        victim.told("rank 1 has ended a request that is not out");
        // What it may end it may still.
        victim.answer(slot, Letter { fetch: false, ..LETTER }.encode(), 1);
        assert_eq!(victim.hear().1, Vec::<String>::new());
        victim.is_whole();
        assert_eq!(victim.messages.free_slots.len(), SHAPE.slots as usize);
        victim.answer(slot, Letter { fetch: false, ..LETTER }.encode(), 1);
        victim.told("in which nobody waits for one");
    }
}

/// Who is answered before the network is done with the question has not got its place back.
#[test]
fn an_answer_that_comes_early_frees_nothing() {
    let mut victim = Victim::new(2);
    victim.messages.domain.holds = true;
    let (_, slot) = victim.request(HOSTILE).expect("there is room");
    victim.answer(slot, Letter { fetch: false, ..LETTER }.encode(), 1);
    assert_eq!(victim.hear().0.len(), 1);
    assert!(!victim.messages.free_slots.contains(&slot), "the network may still read it");
    victim.messages.domain.holds = false;
    victim.goes_on();
    assert!(victim.messages.free_slots.contains(&slot));
}

#[test]
fn an_answer_that_is_none_is_told() {
    for word in no_letters(false) {
        let letter = Letter::decode(word);
        // A reply says nothing of a slot or of fetching.
        if letter.is_some_and(|letter| letter.fetch || u32::from(letter.slot) >= SHAPE.slots) {
            continue;
        }
        let mut victim = Victim::new(2);
        let (_, slot) = victim.request(HOSTILE).expect("there is room");
        victim.answer(slot, word, 1);
        victim.told(&format!("rank 1 has answered slot {slot} with {word:#018x}"));
    }
}

#[test]
fn calls_without_letters_change_nothing() {
    let mut victim = Victim::new(2);
    for value in [HOSTILE, SHAPE.ranks, 0x7f_ffff] {
        (0..100).for_each(|_| victim.call(Call::Request(value)));
    }
    for slot in [0, SHAPE.slots as u16, u16::MAX] {
        (0..100).for_each(|_| victim.call(Call::Reply(slot)));
    }
    victim.messages.domain.arrivals.push_back(Arrival::Call(u64::MAX));
    victim.untold();
    // It has called often enough for the letters that come now.
    victim.region.set(victim.layout.letter(HOSTILE, 1), LETTER.encode());
    assert_eq!(victim.hear(), (vec![(HOSTILE, vec![0; 16])], vec![]));
}

/// A message beside its payload is taken when both are there, whichever comes first; until then it is in nobody's way.
#[test]
fn a_message_waits_for_the_payload_beside_it() {
    let letter = Letter { beside: true, payload: 0, ..LETTER };
    let landed = |ticket| Call::RequestLanded(HOSTILE as u16, ticket);
    for first in [true, false] {
        let mut victim = Victim::new(2);
        if first {
            victim.call(landed(3));
        }
        victim.letter(HOSTILE, 3, letter.encode());
        victim.call(landed(2));
        if !first {
            victim.untold();
            // It cannot be ended before it was taken.
            assert_eq!(victim.messages.talk(HOSTILE).receiving.settle(1), None);
            victim.call(landed(3));
        }
        assert_eq!(victim.hear(), (vec![(HOSTILE, vec![])], vec![]), "{first}");
        assert_eq!(victim.messages.talk(HOSTILE).receiving.settle(1), Some((1 << 3, LETTER.slot)));
        // What has landed is used up.
        victim.letter(HOSTILE, 3, letter.encode());
        victim.untold();
    }
    // As many as there may be, and more than can be fetched at once.
    let mut victim = Victim::new(0);
    (0..SHAPE.tickets).for_each(|ticket| victim.letter(HOSTILE, ticket, letter.encode()));
    victim.untold();
}

#[test]
fn a_reply_waits_for_the_payload_beside_it() {
    for first in [true, false] {
        let mut victim = Victim::new(2);
        let (ticket, slot) = victim.request(HOSTILE).expect("room");
        let letter = Letter { fetch: false, beside: true, slot: 0, payload: 0, ..LETTER };
        if first {
            victim.call(Call::ReplyLanded(slot));
        }
        victim.answer(slot, letter.encode(), 1 << ticket);
        if !first {
            assert_eq!(victim.hear(), (vec![], vec![]));
            assert!(!victim.messages.free_slots.contains(&slot), "it is still waited in");
            victim.call(Call::ReplyLanded(slot));
        }
        assert_eq!(victim.hear().0.len(), 1, "{first}");
        victim.goes_on();
    }
}

/// A head that returns so many credits.
fn returning(count: u8) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[3] = count;
    head
}

/// Its sender writes to the place of a request again once it is ended: so nobody is told of the end while the payload is read there.
#[test]
fn what_is_being_read_is_not_ended() {
    let mut victim = with_a_mailbox();
    let (mailbox, shape) = (victim.mailbox(HOSTILE), victim.messages.mailboxes.shape);
    // The first one, which was fetched, is done with.
    assert_eq!(victim.messages.talk(HOSTILE).receiving.settle(1), Some((1, LETTER.slot)));
    mailbox.set(shape.granule(0), 5);
    mailbox.set(shape.letter(1), Letter { fetch: false, granule: 0, slot: 3, ..LETTER }.encode());
    victim.call(Call::Request(HOSTILE));
    let taken = victim.messages.next().expect("it is right").expect("it is there");
    assert_eq!(taken.payload.len(), 16);
    let posted = victim.messages.domain.posts.len();
    let (room, _) = victim.messages.reserve(HOSTILE, Class::Reply, 0, HEAD).expect("there is room");
    victim.messages.commit(HOSTILE, room, 0, &returning(1)).expect("it is posted later");
    assert_eq!(victim.messages.domain.posts.len(), posted, "its payload is being read");
    assert!(!victim.messages.is_settled());
    victim.messages.give_back(taken).expect("it is posted");
    assert_eq!(victim.messages.domain.posts.len(), posted + 1);
    let Kind::PutFlagged { value, .. } = victim.messages.domain.posts[posted].kind else {
        panic!("no reply")
    };
    let letter = Letter::decode(value).expect("a letter");
    assert_eq!((letter.ends, victim.messages.domain.posts[posted].local.len()), (false, HEAD));
    assert_eq!(victim.messages.domain.posts[posted].call, Some(Call::Reply(3).encode()));
    victim.goes_on();
}

/// What a message ends beside its own request is said at its start; what it does not end takes no byte.
#[test]
fn tickets_are_sent_where_there_are_some() {
    let mut victim = Victim::new(2);
    for ticket in 0..3 {
        victim.letter(HOSTILE, ticket, Letter { payload: 0, ..LETTER }.encode());
    }
    assert_eq!(victim.hear().0.len(), 3);
    let posted = victim.messages.domain.posts.len();
    let (room, _) = victim.messages.reserve(HOSTILE, Class::Reply, 0, HEAD).expect("there is room");
    victim.messages.commit(HOSTILE, room, 0, &returning(2)).expect("it is posted");
    let (room, _) = victim.messages.reserve(HOSTILE, Class::Request, 0, HEAD).expect("there is room");
    victim.messages.commit(HOSTILE, room, 0, &returning(1)).expect("it is posted");
    let first = |post: &Post| {
        let mut word = [0; 8];
        // SAFETY: `post.local` lies in the victim's region, which is there until the test ends, and nobody writes to it now.
        unsafe { post.local.borrow() }.read(&mut word);
        u64::from_le_bytes(word)
    };
    let posts = &victim.messages.domain.posts[posted..];
    assert_eq!(posts[0].local.len(), ENDED + HEAD);
    assert_eq!((first(&posts[0]), posts.len()), (1 << 1, 2), "the third request is the reply's own");
    let Room::Request { slot, .. } = room else { panic!("room of another kind") };
    assert_eq!(victim.region.look(victim.layout.slot(slot)), 1 << 0);
}

/// A slot is free when the reply in it has been read.
#[test]
fn a_reply_is_read_where_it_lies() {
    let mut victim = Victim::new(2);
    let (_, slot) = victim.request(HOSTILE).expect("there is room");
    victim.answer(slot, Letter { fetch: false, ..LETTER }.encode(), 77);
    victim.messages.begin_poll();
    let taken = victim.messages.next().expect("it is right").expect("it is there");
    let mut word = [0; 8];
    taken.payload.read(&mut word);
    assert_eq!(u64::from_le_bytes(word), 77);
    assert!(!victim.messages.free_slots.contains(&slot));
    victim.messages.give_back(taken).expect("nothing waits");
    assert!(victim.messages.free_slots.contains(&slot));
    victim.goes_on();
}

#[test]
fn letters_without_calls_are_found_once_calls_were_lost() {
    let mut victim = Victim::new(2);
    victim.region.set(victim.layout.letter(HOSTILE, 1), LETTER.encode());
    victim.region.set(victim.layout.letter(HOSTILE, 2), 1);
    victim.untold();
    victim.messages.domain.arrivals.push_back(Arrival::Overrun(None));
    let (heard, wrong) = victim.hear();
    assert_eq!((heard, wrong.len()), (vec![(HOSTILE, vec![0; 16])], 1));
    victim.goes_on();
}

#[test]
fn a_mailbox_at_any_address_is_put_to_and_nothing_else_happens() {
    for address in [0, 7, u64::MAX, u64::MAX - 200, home(HONEST)] {
        let mut victim = Victim::new(2);
        let at = victim.layout.grant(HOSTILE);
        for (word, value) in [address, u64::MAX, u64::MAX, 1].into_iter().enumerate() {
            victim.region.set(at + 8 * word, value);
        }
        for _ in 0..SHAPE.tickets {
            victim.request(HOSTILE).expect("there is room");
        }
        assert!(matches!(victim.request(HOSTILE), Err(WireError::Busy { to: HOSTILE })));
        let handle = Handle { words: [u64::MAX; 2] };
        assert!(victim.messages.domain.posts.iter().all(|post| post.remote_handle == handle));
        victim.untold();
    }
}

#[test]
fn any_word_of_a_barrier_is_a_step_of_it() {
    for word in [1, 1 << 63, u64::MAX, 3 << 32, 1 << 63 | 1 << 32 | 5] {
        let mut victim = Victim::new(2);
        let places: Vec<usize> = (0..64).map(|place| victim.layout.barrier(place)).collect();
        places.iter().for_each(|at| victim.region.set(*at, word));
        for name in [Name::Any, Name::Is(5), Name::Mismatch] {
            victim.messages.begin_barrier(name);
            assert!(victim.messages.barrier_done().is_some(), "all have come, they say");
            places.iter().for_each(|at| victim.region.set(*at, word));
        }
        victim.goes_on();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nobody_suffers_by_another(data in prop::collection::vec(any::<u8>(), 0..1000)) {
        suffer(&data);
    }
}

/// What the collective engines say is what all agree on; that they have failed is told, and nobody goes on.
#[test]
fn engines_say_what_all_agree_on_or_that_they_failed() {
    let begun = || {
        let mut victim = Victim::new(2);
        victim.messages.barrier = Phases::new(ME, SHAPE.ranks, true);
        victim.region.set(victim.layout.barrier(0), 7);
        victim.messages.begin_barrier(Name::Is(5));
        victim
    };
    let mut victim = begun();
    let result = victim.layout.barrier(0);
    let given: Vec<_> = victim.messages.domain.posts.iter().map(|post| (post.kind, post.owner)).collect();
    let word = 5 | u64::from(!5u32) << 32;
    let wanted = Kind::Give { to: EngineOf::Barrier, op: WordOp::And, number: 1, word };
    assert_eq!(given, [(wanted, Owner::Given)]);
    assert_eq!(victim.region.look(result), 0, "what said that an older one was whole");
    assert_eq!(victim.messages.barrier_done(), None);
    victim.region.set(result + FIRST, word);
    victim.messages.domain.gathered = Some(Ok(()));
    assert_eq!(victim.messages.barrier_done(), Some(Name::Is(5)));
    victim.goes_on();
    let mut victim = begun();
    victim.messages.domain.gathered = Some(Err(GNI_RC_TRANSACTION_ERROR));
    assert_eq!(victim.messages.barrier_done(), None);
    victim.messages.begin_poll();
    let error = victim.messages.next().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains("have no result of a barrier or a reduction (GNI_RC_TRANSACTION_ERROR)"),
        "{error}"
    );
    assert_eq!(victim.messages.barrier_done(), None);
    // So is that what was given did not arrive.
    let mut victim = begun();
    victim.messages.domain.done.iter_mut().for_each(|done| done.failed = Some("lost"));
    victim.messages.begin_poll();
    let error = victim.messages.next().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("have no result of a barrier"), "{error}");
}

/// Words are given to another engine than a barrier's, which is under way meanwhile, and one behind the other.
#[test]
fn words_are_combined_beside_a_barrier() {
    let mut victim = Victim::new(2);
    victim.messages.barrier = Phases::new(ME, SHAPE.ranks, true);
    victim.messages.begin_barrier(Name::Any);
    let result = victim.layout.barrier(MOST_STEPS);
    for (number, op) in [(1, WordOp::Add), (2, WordOp::Xor)] {
        victim.region.set(result, 7);
        victim.messages.domain.gathered = None;
        victim.messages.begin_words(number, op, 40 + number);
        let given = victim.messages.domain.posts.last().map(|post| (post.kind, post.owner));
        let wanted = Kind::Give { to: EngineOf::Words, op, number, word: 40 + number };
        assert_eq!(given, Some((wanted, Owner::Given)));
        assert_eq!(victim.region.look(result), 0, "what said that an older one was whole");
        assert_eq!(victim.messages.words_result(), None);
        assert!(!victim.messages.is_still(), "a rank that waits for a result looks for it");
        victim.region.set(result + FIRST, 100 + number);
        victim.messages.domain.gathered = Some(Ok(()));
        assert_eq!(victim.messages.words_result(), Some(100 + number));
        assert_eq!(victim.messages.words_result(), Some(100 + number), "as often as it is asked");
    }
    assert_eq!(victim.messages.domain.posts.len(), 3, "the barrier's, and one for each");
    victim.messages.domain.gathered = Some(Err(GNI_RC_TRANSACTION_ERROR));
    victim.messages.begin_words(3, WordOp::Or, 1);
    assert_eq!(victim.messages.words_result(), None);
    victim.messages.begin_poll();
    let error = victim.messages.next().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("have no result of a barrier or a reduction"), "{error}");
}

/// What is taken at once is what the settings say, of notifications and of what was posted.
#[test]
fn a_poll_takes_as_much_as_is_set() {
    for burst in [1, 5, 20, 50] {
        let mut victim = Victim::new(0);
        // A slot in which nobody waits for a reply, and a word that has landed.
        let call = Arrival::Call(Call::Reply(7).encode().into());
        let posted =
            Done { owner: Owner::Word, peer: HONEST, stage: Stage::Whole, failed: None, unheard: None };
        victim.messages.bursts = Bursts { done: burst, arrivals: burst };
        victim.messages.domain.arrivals.extend((0..100).map(|_| call));
        victim.messages.domain.done.extend((0..100).map(|_| posted));
        for polls in 1..=2 {
            victim.messages.begin_poll();
            // However often a poll looks for another message, and for transfers.
            for first in [true, false, false] {
                assert!(matches!(victim.messages.next(), Ok(None)));
                assert_eq!(victim.messages.next_transfer(first), None);
            }
            let Play { arrivals, done, .. } = &victim.messages.domain;
            let left = 100usize.saturating_sub((burst * polls) as usize);
            assert_eq!([arrivals.len(), done.len()], [left; 2], "{burst} at once, {polls} polls");
        }
    }
}
