//! [`Board`] against plain lists of what was posted and who is through.

use crate::{CALLS, config};
use gasworks_shmem::board::{
    Board, Cell, Damage, INLINE, LINES, MAX_POST, OPEN, PIECE, PIECES, Progress, SMALL,
};
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::AtomicU64;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MEMBERS: usize = 3;

/// A member, in plain words.
#[derive(Default)]
struct Model {
    /// What it has posted, by round: the word, and the bytes.
    posts: BTreeMap<u64, (u64, Vec<u8>)>,
    /// With which rounds it is through.
    through: BTreeSet<u64>,
    /// Up to which round it knows all to be.
    known: u64,
}

impl Model {
    /// The last round before which none is missing.
    fn last(&self) -> u64 {
        (1..).take_while(|round| self.through.contains(round)).last().unwrap_or(0)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn boards(calls in prop::collection::vec((0..MEMBERS, 0..5u8, 0..OPEN + 3, 0..9usize), 0..CALLS)) {
        let cells: Vec<_> = (0..MEMBERS).map(|_| Cell::new()).collect();
        let words: Vec<Vec<AtomicU64>> =
            (0..MEMBERS).map(|_| (0..Board::ROOM / 8).map(|_| AtomicU64::new(0)).collect()).collect();
        let members = || cells.iter().zip(&words).map(|(cell, words)| (cell, VolatileSlice::from_words(words)));
        let boards: Vec<_> = (0..MEMBERS).filter_map(|own| Board::new(members(), own)).collect();
        let mut models: Vec<Model> = (0..MEMBERS).map(|_| Model::default()).collect();
        for (number, (own, call, ahead, len)) in calls.into_iter().enumerate() {
            let len = [0, 1, 8, 31, INLINE, INLINE + 1, SMALL, SMALL + 1, MAX_POST][len];
            let (board, round) = (&boards[own], models[own].last() + 1 + ahead);
            let may_begin = ahead < OPEN;
            prop_assert_eq!(board.may_begin(round), may_begin);
            let (rounds, spare) = match () {
                () if len <= INLINE => (LINES, LINES / 2),
                () if len <= SMALL => (8, 4),
                () => (2, 0),
            };
            let needed = round.saturating_sub(rounds);
            let all = models.iter().map(Model::last).min().unwrap_or(0);
            if models[own].known < needed && all >= needed + spare {
                models[own].known = all;
            }
            let has_room = models[own].known >= needed;
            prop_assert_eq!(board.has_room(round, len), has_room);
            match call {
                0 | 1 if has_room && !models[own].posts.contains_key(&round) => {
                    let bytes: Vec<u8> = (0..len).map(|at| (at + number) as u8).collect();
                    let inline = if len > INLINE {
                        board.buffer(own as u32, round, len).expect("a buffer").write(&bytes);
                        &[][..]
                    } else {
                        &bytes
                    };
                    board.post(round, number as u64, inline);
                    prop_assert!(!board.has_sleepers(), "nobody sleeps");
                    models[own].posts.insert(round, (number as u64, bytes));
                }
                2 => {
                    prop_assert!(!board.finish(round));
                    if may_begin {
                        models[own].through.insert(round);
                    }
                }
                // So members get as far ahead of others as there are lines.
                3 if may_begin => {
                    for round in round - ahead..=round {
                        prop_assert!(!board.finish(round));
                        models[own].through.insert(round);
                    }
                }
                // What this member is not through with is there, whole.
                _ if !models[own].through.contains(&round) && may_begin => {
                    for (member, model) in (0..).zip(&models) {
                        let posted = model.posts.get(&round);
                        prop_assert_eq!(board.posted(member, round), Ok(posted.map(|(what, _)| *what)));
                        let Some((_, bytes)) = posted else { continue };
                        let from = ahead as usize % (bytes.len() + 1);
                        let mut found = vec![0; bytes.len() - from];
                        match bytes.len() > INLINE {
                            true => {
                                let buffer = board.buffer(member, round, bytes.len()).expect("a buffer");
                                buffer.slice(from, found.len()).expect("inside").read(&mut found);
                            }
                            false => board.read(member, round, from, &mut found),
                        }
                        prop_assert_eq!(&found, &bytes[from..]);
                    }
                }
                _ => {}
            }
        }
        prop_assert!(boards.iter().all(Board::arm), "nobody waits for anything");
    }
}

/// A hostile member's words are an error, and no more than that.
#[test]
fn a_line_of_a_round_to_come_is_damage() {
    let cells = [Cell::new(), Cell::new()];
    let room: Vec<_> = (0..Board::ROOM / 8).map(|_| AtomicU64::new(0)).collect();
    let room = VolatileSlice::from_words(&room);
    let members = || cells.iter().map(move |cell| (cell, room));
    let [honest, hostile] = [0, 1].map(|own| Board::new(members(), own).expect("a member"));
    hostile.post(1 + LINES, 0, &[]);
    assert!(!hostile.has_sleepers());
    assert_eq!(honest.posted(1, 1), Err(Damage { round: 1, found: 1 + LINES }));
    honest.wait_for(1, 1);
    assert!(!honest.arm(), "who waits for it looks again");
    // It has armed, and nobody of its own sort has rung since.
    let _ = honest.finish(1);
    let _ = hostile.finish(u64::MAX);
    assert!(
        honest.may_begin(1 + OPEN) && !honest.may_begin(2 + OPEN) && !honest.has_room(1 + LINES, 0),
        "that was no round of its own"
    );
    assert_eq!(honest.posted(2, 1), Ok(None), "there are two");
    assert!(honest.buffer(0, 1, MAX_POST + 1).is_none() && honest.buffer(2, 1, 1).is_none());
    assert!(Board::new(members(), 2).is_none());
    let small = room.slice(0, Board::ROOM - 1).expect("inside");
    assert!(Board::new([(&cells[0], small)], 0).is_none());
}

/// Who waits for more of a member may sleep as long as it is as far as it was; its pieces lie apart from each other, as many as there is room for.
#[test]
fn progress_is_seen_and_waited_for() {
    let cells = [Cell::new(), Cell::new()];
    let room: Vec<_> = (0..Board::ROOM / 8).map(|_| AtomicU64::new(0)).collect();
    let room = VolatileSlice::from_words(&room);
    let members = || cells.iter().map(move |cell| (cell, room));
    let [board, other] = [0, 1].map(|own| Board::new(members(), own).expect("a member"));
    // What a line had before is no progress.
    other.post(1, 3, &[0xff; 8]);
    assert!(!other.has_sleepers() && !other.finish(1) && !board.finish(1));
    let begin = Progress { posted: 0, taken: 3 };
    board.wait_for_progress(2, 1, begin);
    assert!(board.arm(), "it has not even begun");
    other.post(2, 3, &begin.to_bytes());
    assert!(other.has_sleepers());
    assert_eq!((other.posted(1, 2), board.progress(1, 2)), (Ok(Some(3)), begin));
    assert!(board.arm(), "it is as far as it was");
    for progress in [Progress { posted: 1, taken: 3 }, Progress { posted: 1, taken: 4 }, Progress::GIVEN_UP] {
        assert!(other.advance(2, progress), "somebody is asleep");
        assert_eq!(board.progress(1, 2), progress);
        assert!(!board.arm(), "it is further");
    }
    board.wait_for(2, 1);
    assert!(!board.arm(), "it has posted");
    assert_eq!(board.progress(2, 2), Progress::default(), "there are two");
    let place =
        |round, number| board.piece(0, round, number).map(|place| (place.as_ptr().addr(), place.len()));
    assert_eq!(place(2, 0), place(2, PIECES));
    assert_eq!(place(2, 0), place(4, 0));
    let mut places: Vec<_> =
        (0..PIECES).flat_map(|number| [place(2, number), place(3, number)]).flatten().collect();
    places.sort_unstable();
    assert_eq!(places.len(), 2 * PIECES as usize);
    assert!(places.windows(2).all(|two| two[0].0 + PIECE <= two[1].0 && two[1].1 == PIECE));
    assert!(board.piece(2, 1, 0).is_none());
}
