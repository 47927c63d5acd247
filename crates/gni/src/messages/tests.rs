//! What hostile ranks may write, and what their network may tell: a domain is played, and the rest is as it always is.

use super::*;
use crate::domain::Arrival;
use crate::domain::Handle;
use crate::letter::Call;
use crate::mailboxes;
use crate::region::{Closed, Shape};
use gasworks_core::{Class, wire};
use gasworks_gni_sys::gni_return_t;
use gasworks_rdma::Stage;
use proptest::prelude::*;

const ME: Rank = 0;
const HOSTILE: Rank = 1;
const HONEST: Rank = 2;
const SHAPE: Shape = Shape { ranks: 3, tickets: 4, slots: 8, max_medium: 512, replies: 4, fetches: 2 };
/// Bytes of a head without arguments.
const HEAD: usize = 24;
/// What any letter here may say.
const LETTER: Letter = Letter { fetch: true, slot: 1, granule: 0, head: HEAD, payload: 16 };

/// Where a rank's region is: it is never followed.
fn home(rank: Rank) -> u64 {
    u64::from(rank + 1) << 40
}

/// A domain on which all that is posted is over at once.
struct Play {
    arrivals: VecDeque<Arrival>,
    done: VecDeque<Done>,
    posts: Vec<Post>,
    /// It says nothing of what is over.
    holds: bool,
    /// What is in the regions of all ranks.
    theirs: Vec<Vec<u8>>,
}

impl Network for Play {
    unsafe fn register(&mut self, _: RawBytes, _: bool, _: u32) -> Result<Handle, gni_return_t> {
        Ok(Handle { words: [1, 2] })
    }

    unsafe fn post(&mut self, post: &Post) -> Result<(), Refused> {
        if matches!(post.kind, Kind::Get | Kind::BulkGet) {
            // Nobody is made to fetch what is not in that region.
            let from = (post.remote - home(post.peer)) as usize;
            post.local.write(&self.theirs[post.peer as usize][from..][..post.local.len()]);
        }
        self.posts.push(*post);
        let Post { owner, peer, .. } = *post;
        self.done.push_back(Done { owner, peer, stage: Stage::Whole, failed: false, unheard: None });
        Ok(())
    }

    fn next_done(&mut self) -> Option<Done> {
        if self.holds { None } else { self.done.pop_front() }
    }

    fn next_arrival(&mut self) -> Arrival {
        self.arrivals.pop_front().unwrap_or(Arrival::Nothing)
    }

    fn under_way(&self) -> usize {
        self.done.len()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn is_lost(&self) -> bool {
        false
    }
}

/// A message as it was taken: from whom, its payload.
type Heard = (Rank, Vec<u8>);

/// The rank that others write to.
struct Victim {
    messages: Messages<Play>,
    layout: Layout,
    region: Region,
    memory: *mut [u64],
    /// How many messages of the honest rank there were.
    honest: u8,
}

impl Victim {
    /// It gives so many mailboxes.
    fn new(mailboxes: u32) -> Self {
        let layout = Layout::new(SHAPE).expect("it is small");
        let memory = Box::into_raw(vec![0u64; layout.len.div_ceil(8)].into_boxed_slice());
        // SAFETY: R1: it is freed after `messages`, and words of it are reached as atomics alone.
        let region = Region::new(unsafe { RawBytes::new(memory.cast(), layout.len) });
        let homes = (0..SHAPE.ranks).map(|rank| Home { address: home(rank), handle: Handle::default() });
        let play = Play {
            arrivals: VecDeque::new(),
            done: VecDeque::new(),
            posts: Vec::new(),
            holds: false,
            theirs: vec![vec![0; layout.len]; SHAPE.ranks as usize],
        };
        let boxes = mailboxes::Shape::new(SHAPE.tickets, 4096, layout.slot_len);
        let mailboxes = Mailboxes::new(boxes, mailboxes, 0, Closed::default());
        let bursts = Bursts { done: 10, arrivals: 20 };
        let messages = Messages::new(play, ME, (layout, region), homes.collect(), mailboxes, bursts);
        Self { messages, layout, region, memory, honest: 0 }
    }

    fn call(&mut self, call: Call) {
        self.messages.domain.arrivals.push_back(Arrival::Call(call.encode().into()));
    }

    /// A rank's request is to be fetched, and says this.
    fn letter(&mut self, from: Rank, ticket: u32, word: u64) {
        self.region.set(self.layout.letter(from, ticket), word);
        self.call(Call::Request(from));
    }

    /// The mailbox that a rank has been given.
    fn mailbox(&self, of: Rank) -> Region {
        let talk = self.messages.talks[of as usize].as_ref().expect("it has talked");
        let number = talk.receiving.mailbox.expect("it has been given one");
        self.messages.mailboxes.get(number).expect("there is one")
    }

    /// A slot is answered so, by a message that ends these tickets.
    fn answer(&mut self, slot: u16, word: u64, ended: u64) {
        self.region.set(self.layout.slot(slot), ended);
        self.region.set(self.layout.answer(slot), word);
        self.call(Call::Reply(slot));
    }

    /// Sends a request of one word; its ticket and its slot.
    fn request(&mut self, to: Rank) -> Result<(u32, u16), WireError> {
        let (room, place) = self.messages.reserve(to, Class::Request, 8, HEAD)?;
        place.write(&[7; 8]);
        let Room::Request { ticket, slot, .. } = room else { panic!("room of another kind") };
        self.messages.commit(to, room, 8, &[0; HEAD]).map(|()| (ticket, slot))
    }

    /// All that arrives, and what is wrong, until nothing comes any more.
    fn hear(&mut self) -> (Vec<Heard>, Vec<String>) {
        let (mut heard, mut wrong, mut nothing) = (Vec::new(), Vec::new(), 0);
        while nothing < 3 || !self.messages.domain.arrivals.is_empty() {
            match self.messages.next() {
                Ok(Some(Taken { from, head, payload, bytes })) => {
                    assert!((1..=wire::MAX_HEAD).contains(&head) && payload <= SHAPE.max_medium);
                    heard.push((from, bytes[..payload].to_vec()));
                    self.messages.give_back(bytes);
                    nothing = 0;
                }
                Ok(None) => nothing += 1,
                Err(WireError::Corrupt { at: ME, what, .. }) => {
                    wrong.push(what);
                    nothing = 0;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(heard.len() + wrong.len() < 1000, "there is no end");
        }
        (heard, wrong)
    }

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

    /// The next message of the honest rank, with this payload.
    fn honest_word(&mut self) -> Heard {
        let (ticket, payload) = (u32::from(self.honest), [self.honest + 1; 16]);
        self.honest += 1;
        let slot = self.layout.slot(ticket as u16);
        self.messages.domain.theirs[HONEST as usize][slot + ENDED..][..16].copy_from_slice(&payload);
        self.letter(HONEST, ticket, Letter { slot: ticket as u16, ..LETTER }.encode());
        (HONEST, payload.to_vec())
    }

    /// Nothing has been lost: who is honest is heard, and every place is somebody's or free.
    fn goes_on(&mut self) {
        let sent = self.honest_word();
        assert_eq!(self.hear(), (vec![sent], vec![]));
        self.is_whole();
    }

    fn is_whole(&self) {
        let messages = &self.messages;
        let slots: std::collections::BTreeSet<u16> = messages.free_slots.iter().copied().collect();
        assert_eq!(slots.len(), messages.free_slots.len(), "a slot is free twice");
        for (number, slot) in (0..).zip(&messages.slots) {
            assert_eq!(slot.in_use, !slots.contains(&number), "slot {number}");
        }
        assert_eq!(messages.free_replies.len(), SHAPE.replies as usize);
        assert_eq!(messages.free_fetches.len(), SHAPE.fetches as usize);
        assert!(messages.fetching.iter().all(Option::is_none) && messages.to_fetch.is_empty());
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // SAFETY: R1: made by `Box::into_raw` in `new`, and nobody looks at it any more.
        drop(unsafe { Box::from_raw(self.memory) });
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
        Letter { head: wire::MAX_HEAD + 1, ..right },
        Letter { head: 255, ..right },
        Letter { payload: SHAPE.max_medium + 1, ..right },
        Letter { payload: (1 << 20) - 1, ..right },
    ];
    let bits = (52..62).map(|bit| right.encode() | 1 << bit);
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
    // The last message that fits is one.
    let mut victim = with_a_mailbox();
    let payload = victim.messages.mailboxes.shape.granule - ENDED - HEAD;
    let letter = Letter { fetch: false, granule: 63, payload, ..LETTER };
    victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(1), letter.encode());
    victim.call(Call::Request(HOSTILE));
    assert_eq!(victim.hear(), (vec![(HOSTILE, vec![0; payload])], vec![]));
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
    victim.letter(HOSTILE, 2, LETTER.encode());
    victim.told("rank 1 has ended a request that is not out");
    let mut victim = with_a_mailbox();
    let (mailbox, shape) = (victim.mailbox(HOSTILE), victim.messages.mailboxes.shape);
    mailbox.set(shape.granule(0), u64::MAX);
    mailbox.set(shape.letter(1), Letter { fetch: false, ..LETTER }.encode());
    victim.call(Call::Request(HOSTILE));
    victim.told("rank 1 has ended a request that is not out");
    for ended in [1 << 1, u64::MAX, 1 << 63] {
        let mut victim = Victim::new(2);
        let (ticket, slot) = victim.request(HOSTILE).expect("there is room");
        assert_eq!(ticket, 0);
        victim.answer(slot, Letter { fetch: false, ..LETTER }.encode(), ended);
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

#[test]
fn letters_without_calls_are_found_once_calls_were_lost() {
    let mut victim = Victim::new(2);
    victim.region.set(victim.layout.letter(HOSTILE, 1), LETTER.encode());
    victim.region.set(victim.layout.letter(HOSTILE, 2), 1);
    victim.untold();
    victim.messages.domain.arrivals.push_back(Arrival::Overrun);
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

/// Something that a hostile rank can do.
#[derive(Clone, Debug)]
enum Act {
    /// Writes a letter, right or wrong, and calls or does not.
    Letter {
        ticket: u32,
        word: u64,
        calls: bool,
    },
    /// The same in its mailbox, if it has one.
    Boxed {
        ticket: u32,
        word: u64,
    },
    /// Writes some word of its mailbox.
    Scribble {
        at: usize,
        word: u64,
    },
    /// Answers a slot, its own or not.
    Answer {
        slot: u16,
        word: u64,
        ended: u64,
    },
    /// Calls.
    Call(u32),
    /// Gives a mailbox.
    Grant([u64; 4]),
    /// A word of the barrier.
    Barrier {
        place: u32,
        word: u64,
    },
    /// Changes what is fetched.
    Content(u8),
    /// The victim sends it something, or comes to a barrier.
    Request,
    Meet,
    /// The victim looks.
    Hear,
    /// The honest rank sends something.
    Honest,
    Overrun,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let letter = (any::<bool>(), 0u16..10, any::<u8>(), 0usize..100, 0usize..600);
    let letter = letter.prop_map(|(fetch, slot, granule, head, payload)| {
        Letter { fetch, slot, granule, head, payload }.encode()
    });
    let word = || prop_oneof![letter.clone(), any::<u64>(), (0u32..64).prop_map(|bit| 1 << bit)].boxed();
    let tickets = 0..SHAPE.tickets;
    let act = prop_oneof![
        (tickets.clone(), word(), any::<bool>()).prop_map(|(ticket, word, calls)| Act::Letter {
            ticket,
            word,
            calls
        }),
        (tickets, word()).prop_map(|(ticket, word)| Act::Boxed { ticket, word }),
        (any::<usize>(), word()).prop_map(|(at, word)| Act::Scribble { at, word }),
        (0..SHAPE.slots as u16, word(), any::<u64>()).prop_map(|(slot, word, ended)| Act::Answer {
            slot,
            word,
            ended: ended & (ended >> 32)
        }),
        (0..1u32 << 24).prop_map(Act::Call),
        prop::array::uniform4(any::<u64>()).prop_map(Act::Grant),
        (0u32..64, any::<u64>()).prop_map(|(place, word)| Act::Barrier { place, word }),
        any::<u8>().prop_map(Act::Content),
        Just(Act::Request),
        Just(Act::Meet),
        Just(Act::Hear),
        Just(Act::Honest),
        Just(Act::Overrun),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever one rank does, what another one sends arrives as it was sent, once, and no place is lost.
    #[test]
    fn nobody_suffers_by_another(acts in acts(), mailboxes in 0u32..3) {
        let mut victim = Victim::new(mailboxes);
        let (mut sent, mut heard) = (Vec::new(), Vec::new());
        for act in acts {
            let has_mailbox = victim.messages.talks[HOSTILE as usize]
                .as_ref()
                .is_some_and(|talk| talk.receiving.mailbox.is_some());
            match act {
                Act::Letter { ticket, word, calls: true } => victim.letter(HOSTILE, ticket, word),
                Act::Letter { ticket, word, .. } => {
                    victim.region.set(victim.layout.letter(HOSTILE, ticket), word);
                }
                Act::Boxed { ticket, word } if has_mailbox => {
                    victim.mailbox(HOSTILE).set(victim.messages.mailboxes.shape.letter(ticket), word);
                    victim.call(Call::Request(HOSTILE));
                }
                Act::Scribble { at, word } if has_mailbox => {
                    let words = victim.messages.mailboxes.shape.len() / 8;
                    victim.mailbox(HOSTILE).set(8 * (at % words), word);
                }
                Act::Answer { slot, word, ended } => victim.answer(slot, word, ended),
                Act::Call(value) => {
                    victim.messages.domain.arrivals.push_back(Arrival::Call(value.into()));
                }
                Act::Grant(words) => {
                    let at = victim.layout.grant(HOSTILE);
                    words.into_iter().enumerate().for_each(|(word, value)| victim.region.set(at + 8 * word, value));
                }
                Act::Barrier { place, word } => victim.region.set(victim.layout.barrier(place), word),
                Act::Content(byte) => victim.messages.domain.theirs[HOSTILE as usize].fill(byte),
                Act::Request => match victim.request(HOSTILE) {
                    Ok(_) | Err(WireError::Busy { .. }) => {}
                    Err(other) => panic!("{other}"),
                },
                Act::Meet if victim.messages.barrier_done().is_some() => {
                    victim.messages.begin_barrier(Name::Any);
                }
                Act::Hear => heard.extend(victim.hear().0),
                Act::Honest if u32::from(victim.honest) < SHAPE.tickets => sent.push(victim.honest_word()),
                Act::Overrun => victim.messages.domain.arrivals.push_back(Arrival::Overrun),
                Act::Boxed { .. } | Act::Scribble { .. } | Act::Meet | Act::Honest => {}
            }
        }
        heard.extend(victim.hear().0);
        heard.retain(|(from, _)| *from == HONEST);
        heard.sort();
        prop_assert_eq!(heard, sent);
        victim.is_whole();
    }
}
