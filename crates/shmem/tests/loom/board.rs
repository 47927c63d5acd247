//! The board, whose cells have two lines here.

use crate::{Contents, model, sleeps_on};
use gasworks_shmem::barrier::Meeting;
use gasworks_shmem::board::{Board, Cell, PIECES, Progress};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_sync::{VolatileSlice, spin};
use loom::sync::Arc;
use loom::thread;

fn cells<const N: usize>() -> [Cell; N] {
    [(); N].map(|()| Cell::new())
}

/// The buffers are bytes of the heap, which loom does not look at: those that nobody reads may be the same.
fn buffers() -> VolatileSlice<'static> {
    VolatileSlice::from_mut(vec![0; Board::ROOM].leak())
}

fn view(cells: &[Cell], own: usize) -> Board<'_> {
    let buffers = buffers();
    Board::new(cells.iter().map(|cell| (cell, buffers)), own).expect("a member")
}

/// Waits until a member has posted; what it has.
fn await_post(board: &Board<'_>, member: u32, round: u64) -> (u64, [u8; 8]) {
    let what = loop {
        match board.posted(member, round).expect("nobody is ahead") {
            Some(what) => break what,
            None => spin(),
        }
    };
    let mut bytes = [0; 8];
    board.read(member, round, 0, &mut bytes);
    (what, bytes)
}

/// What was posted is whole, with whatever was done before, also where a line is written again; and it stays until it has been read.
#[test]
fn what_is_posted_is_whole_and_stays() {
    model(|| {
        let shared = Arc::new((cells::<2>(), [(); 2].map(|()| Contents::new())));
        let other = shared.clone();
        let writer = thread::spawn(move || {
            let board = view(&other.0, 1);
            for round in 1..=3 {
                while !board.has_room(round, 8) {
                    spin();
                }
                // Free for the round that has the same line next.
                other.1[round as usize % 2].write(round as u32);
                board.post(round, 10 * round, &[round as u8; 8]);
                let _ = board.finish(round);
            }
        });
        let board = view(&shared.0, 0);
        for round in 1..=3 {
            assert_eq!(await_post(&board, 1, round), (10 * round, [round as u8; 8]));
            assert_eq!(shared.1[round as usize % 2].read(), round as u32);
            let _ = board.finish(round);
        }
        writer.join().expect("the writer");
    });
}

/// Two threads of a member: what one of them knew to be over is so for the other.
#[test]
fn room_that_another_thread_has_found_is_room() {
    model(|| {
        let shared: &'static _ = Box::leak(Box::new((cells::<2>(), Contents::new())));
        let board = Arc::new(view(&shared.0, 0));
        let reader = thread::spawn(move || {
            let board = view(&shared.0, 1);
            assert_eq!(shared.1.read(), 0);
            let _ = board.finish(1);
        });
        let _ = board.finish(1);
        let found = board.clone();
        let finder = thread::spawn(move || {
            let _ = found.has_room(3, 8);
        });
        // Until it succeeds: loom tries no order in which a single failing look would have come after the finder's.
        while !board.has_room(3, 8) {
            spin();
        }
        shared.1.write(1);
        reader.join().expect("the reader");
        finder.join().expect("the finder");
    });
}

/// Two threads of a member are through with a round each, in any order: who sees that both are over knows what both have read.
#[test]
fn rounds_that_end_in_any_order_are_over_when_both_are() {
    model(|| {
        let shared: &'static _ = Box::leak(Box::new((cells::<2>(), [(); 2].map(|()| Contents::new()))));
        let reader: &'static _ = Box::leak(Box::new(view(&shared.0, 1)));
        let threads = [1, 2].map(|round: u64| {
            thread::spawn(move || {
                assert_eq!(shared.1[round as usize - 1].read(), 0);
                let _ = reader.finish(round);
            })
        });
        let board = view(&shared.0, 0);
        for round in [1, 2] {
            let _ = board.finish(round);
        }
        if board.has_room(4, 8) {
            shared.1.iter().for_each(|contents| contents.write(1));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        assert!(board.has_room(4, 8));
    });
}

/// Who sleeps until another has posted is woken, or was awake.
#[test]
fn nobody_sleeps_through_a_post() {
    model(|| {
        let shared = Arc::new((cells::<3>(), Doorbell::new()));
        let post = |shared: &([Cell; 3], Doorbell), me: usize| {
            let board = view(&shared.0, me);
            board.post(1, 7, &[]);
            // Who is through with the round looks at that.
            if if me == 1 { board.has_sleepers() } else { board.finish(1) } {
                let _ = shared.1.ring();
            }
        };
        let others = [1, 2].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || post(&shared, me))
        });
        let board = view(&shared.0, 0);
        board.wait_for(1, 2);
        let ticket = shared.1.ticket();
        let asleep = board.arm().then_some(ticket);
        others.into_iter().for_each(|thread| thread.join().expect("a member"));
        assert!(!sleeps_on(&shared.1, asleep), "the member has posted, and it sleeps on");
    });
}

/// The same of one that waits for room.
#[test]
fn nobody_sleeps_through_the_end_of_a_round() {
    model(|| {
        let shared = Arc::new((cells::<2>(), Doorbell::new()));
        let other = shared.clone();
        let reader = thread::spawn(move || {
            if view(&other.0, 1).finish(1) {
                let _ = other.1.ring();
            }
        });
        let board = view(&shared.0, 0);
        let _ = board.finish(1);
        board.wait_for_room(3, 8);
        let ticket = shared.1.ticket();
        let asleep = board.arm().then_some(ticket);
        reader.join().expect("the reader");
        assert!(!sleeps_on(&shared.1, asleep), "there is room, and it sleeps on");
    });
}

/// Two that sleep on bells of their own: who takes the sleepers' bit away rings for both.
#[test]
fn all_sleepers_are_woken() {
    model(|| {
        let shared = Arc::new((cells::<3>(), [Doorbell::new(), Doorbell::new()]));
        let sleep = |shared: &([Cell; 3], [Doorbell; 2]), me: usize| {
            let board = view(&shared.0, me);
            board.wait_for(1, 2);
            let ticket = shared.1[me].ticket();
            board.arm().then_some(ticket)
        };
        let other = shared.clone();
        let sleeper = thread::spawn(move || sleep(&other, 1));
        let other = shared.clone();
        let poster = thread::spawn(move || {
            let board = view(&other.0, 2);
            board.post(1, 7, &[]);
            if board.has_sleepers() {
                other.1.iter().for_each(|bell| _ = bell.ring());
            }
        });
        let asleep = [sleep(&shared, 0), sleeper.join().expect("a sleeper")];
        poster.join().expect("the poster");
        for (bell, asleep) in shared.1.iter().zip(asleep) {
            assert!(!sleeps_on(bell, asleep), "the member has posted, and one sleeps on");
        }
    });
}

/// Pieces of a round, one more than there is room for: each is whole when it is found posted, and stays until it has been taken.
#[test]
fn pieces_are_whole_and_stay() {
    model(|| {
        let shared = Arc::new((cells::<2>(), [(); PIECES as usize].map(|()| Contents::new())));
        let place = |number: u32| (number % PIECES) as usize;
        let begin = |board: &Board<'_>| board.post(1, 7, &Progress::default().to_bytes());
        let other = shared.clone();
        let writer = thread::spawn(move || {
            let board = view(&other.0, 1);
            begin(&board);
            for number in 0..=PIECES {
                let has_room = || match board.posted(0, 1) {
                    Ok(Some(_)) => board.progress(0, 1).taken + PIECES > number,
                    _ => number < PIECES,
                };
                while !has_room() {
                    spin();
                }
                other.1[place(number)].write(number);
                let _ = board.advance(1, Progress { posted: number + 1, taken: 0 });
            }
        });
        let board = view(&shared.0, 0);
        begin(&board);
        let _ = await_post(&board, 1, 1);
        for number in 0..=PIECES {
            while board.progress(1, 1).posted <= number {
                spin();
            }
            assert_eq!(shared.1[place(number)].read(), number);
            let _ = board.advance(1, Progress { posted: 0, taken: number + 1 });
        }
        writer.join().expect("the writer");
    });
}

/// Who sleeps until another has posted a piece is woken, or was awake.
#[test]
fn nobody_sleeps_through_a_piece() {
    model(|| {
        let shared = Arc::new((cells::<2>(), Doorbell::new()));
        let other = shared.clone();
        let poster = thread::spawn(move || {
            let board = view(&other.0, 1);
            board.post(1, 7, &Progress::default().to_bytes());
            if board.advance(1, Progress { posted: 1, taken: 0 }) {
                let _ = other.1.ring();
            }
        });
        let board = view(&shared.0, 0);
        board.wait_for_progress(1, 1, Progress::default());
        let ticket = shared.1.ticket();
        let asleep = board.arm().then_some(ticket);
        poster.join().expect("the poster");
        assert!(!sleeps_on(&shared.1, asleep), "there is a piece, and it sleeps on");
    });
}

/// A group posts, leaves, and its cells are used by another, for which nothing of it is left.
#[test]
fn a_cell_is_as_good_as_new_once_all_have_left() {
    model(|| {
        let shared = Arc::new((cells::<2>(), [(); 2].map(|()| Meeting::new())));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let board = view(&other.0, 1);
            board.post(1, 7, &[1; 8]);
            if let Ok(Some(what)) = board.posted(0, 1) {
                assert_eq!(what, 8);
            }
            let _ = board.finish(1);
            other.1.iter().for_each(Meeting::leave);
        });
        let board = view(&shared.0, 0);
        board.post(1, 8, &[2; 8]);
        board.wait_for(1, 1);
        let _ = board.arm();
        let _ = board.finish(1);
        shared.1.iter().for_each(Meeting::leave);
        if shared.1[0].renew(2) {
            let cell = &shared.0[0];
            cell.renew();
            let board = view(std::slice::from_ref(cell), 0);
            assert_eq!((board.posted(0, 1), board.may_begin(3)), (Ok(None), false));
            for round in 1..=3 {
                assert!(board.has_room(round, 8));
                board.post(round, round, &[]);
                assert!(!board.has_sleepers(), "somebody seems to be asleep");
                assert_eq!(board.posted(0, round), Ok(Some(round)));
                assert!(!board.finish(round));
            }
        }
        thread.join().expect("the other member");
    });
}
