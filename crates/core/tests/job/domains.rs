//! Domains of a NIC and the threads that use them; segments that are attached late.

use crate::fake::*;
use crate::in_every_mode;
use gasworks_core::{Engine, Error, Transfer};
use gasworks_memory::MemoryError;
use gasworks_rdma::Direction;
use gasworks_sync::Par;

/// Makes a put, and returns the number of the domain that it went by.
fn puts_by(engine: &Engine<Par>, nics: &[std::sync::Arc<std::sync::Mutex<NicLog>>]) -> Option<usize> {
    let posts = || nics.iter().map(|nic| lock(nic).posts.len()).collect::<Vec<_>>();
    let (before, mut bytes) = (posts(), [1; 8]);
    let (local, len) = (bytes.as_mut_ptr(), bytes.len());
    let put =
        Transfer { direction: Direction::Put, peer: 1, offset: 0, local, len, set: None, local_apart: false };
    // SAFETY: `bytes` is of this function and not used during the call, which ends with the put.
    assert_eq!(unsafe { engine.transfer_and_wait(&put, false) }, Ok(()));
    posts().iter().zip(before).position(|(after, before)| *after > before)
}

/// Runs `act` on a thread of its own, and waits for its end.
fn alone(act: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(act).join().expect("it has not panicked"));
}

/// No other test of this process may number threads: the others have one domain or none.
#[test]
fn threads_use_their_own_domains() {
    // One domain is everybody's: whoever opens it gets no number for that.
    drop(Job::<Par>::new(&Plan { descriptors: 4, domains: Some((1, 1, 0)), ..Plan::default() }));
    let opener = |(domains, of_first_domain)| {
        let policy = gasworks_core::Policy { spins: 1, ..Plan::default().policy };
        let plan = Plan {
            descriptors: 4,
            domains: Some((domains, 1, 3)),
            policy,
            of_first_domain,
            ..Plan::default()
        };
        let job = Job::<Par>::new(&plan);
        let (engine, wire) = (&*job.engines[0], &*job.wires[0]);
        let nics = [job.nics[0].clone(), job.nics[2].clone()];
        // Whether a poll of this thread sees to the transport and to each domain.
        let sees = |poll: &mut dyn FnMut()| {
            let count =
                || [lock(wire).bursts.len(), lock(&nics[0]).polls as usize, lock(&nics[1]).polls as usize];
            let before = count();
            poll();
            let after = count();
            [0, 1, 2].map(|at| after[at] - before[at])
        };
        let polls = || [(); 8].map(|()| sees(&mut || _ = engine.poll().expect("nothing is wrong")));
        let (all, own) = ([1, 1, 1], [1, 1, 0]);
        // The thread that opened the job is the first, though it has not communicated yet.
        alone(|| assert_eq!(puts_by(engine, &nics), Some(1)));
        alone(|| {
            Engine::<Par>::serve();
            assert_eq!(puts_by(engine, &nics), Some(0), "it serves the others");
        });
        assert_eq!(puts_by(engine, &nics), Some(0));
        // A transport of no domain is seen to in every poll, another domain in one of four.
        let other = [usize::from(!of_first_domain), 0, 1];
        (0..2).for_each(|_| {
            alone(|| assert_eq!(polls(), [all, other, other, other, all, other, other, other]));
        });
        // Whoever has been idle looks around.
        alone(|| {
            let mut waiting = engine.sleeper();
            let mut turn = || engine.turn(&mut waiting).expect("nothing is wrong");
            let turns = [(); 4].map(|()| sees(&mut turn));
            assert_eq!(turns, [all, other, all, all], "it spins, then it sleeps");
        });
        // A thread that has started something ends: somebody else sees to it.
        lock(&nics[1]).hold = Hold::All;
        let room = job.fabric.segment(0);
        alone(|| {
            let (direction, local) = (Direction::Get, room.as_ptr());
            let get =
                Transfer { direction, peer: 1, offset: 0, local, len: 8, set: None, local_apart: false };
            // SAFETY: `room` is in this rank's segment, which the fabric keeps as long as the NIC's posts, and the get is its only use.
            let id = unsafe { engine.transfer(&get, None) }.map_err(|refused| refused.0).expect("started");
            engine.abandon(id);
        });
        assert_eq!(puts_by(engine, &nics), Some(0));
        assert_eq!(polls().iter().filter(|seen| **seen == own).count(), 6, "the other domain in one of four");
        lock(&nics[1]).hold = Hold::Nothing;
        assert_eq!((engine.drain(), lock(&nics[1]).under_way()), (Ok(()), 0));
        // Memory is registered once, and known to all.
        assert_eq!(engine.attach_segment(4000).map(|card| card.len()), Ok(10));
        assert_eq!((&lock(&nics[0]).registered, &lock(&nics[1]).registered), (&vec![SEGMENT], &vec![]));
    };
    [(2, true), (3, true), (2, false)].into_iter().for_each(|kind| alone(|| opener(kind)));
}

#[test]
fn a_network_knows_segments_that_are_attached_late() {
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan { descriptors: 4, is_keyless: true, ..Plan::default() });
        let mut bytes = [1; 8];
        let mut put = |offset| {
            let (local, len) = (bytes.as_mut_ptr(), bytes.len());
            let put = Transfer {
                direction: Direction::Put,
                peer: 1,
                offset,
                local,
                len,
                set: None,
                local_apart: false,
            };
            // SAFETY: `bytes` outlives this closure, and is not used during the call, which ends with the put.
            unsafe { job.engines[0].transfer_and_wait(&put, false) }
        };
        assert_eq!((put(0), job.nic(0).posts[0].3.clone()), (Ok(()), vec![]), "nobody has a key");
        let card = [&(SEGMENT as u64).to_le_bytes()[..], &[9, 9]].concat();
        assert_eq!(job.engines[0].attach_segment(100), Ok(card.clone()));
        assert_eq!(job.nic(0).registered, [SEGMENT]);
        let cause = MemoryError::FixedSegment { rank: 0, len: 5000 };
        assert_eq!(
            job.engines[0].attach_segment(5000),
            Err(Error::Memory { during: "attach a segment", cause })
        );
        let short = job.engines[0].meet_segments([&card[..], &[0; 7]].into_iter());
        let what = "a card of 7 bytes of its segment".into();
        assert_eq!(short, Err(Error::BadMessage { from: 1, what }));
        let unlike = job.engines[0].meet_segments([&card[..], &[0; 11]].into_iter());
        let what = "the keys of segments have different lengths".into();
        assert_eq!(unlike, Err(Error::BadMessage { from: 0, what }));
        // What a rank says of itself is believed, where nothing is mapped.
        let longer = [&5000u64.to_le_bytes()[..], &[3, 1]].concat();
        assert_eq!(job.engines[0].meet_segments([&card[..], &longer].into_iter()), Ok(()));
        assert_eq!([0, 1].map(|rank| job.engines[0].peers().len_of(rank)), [Some(4096), Some(5000)]);
        assert_eq!((put(8), job.nic(0).posts[1].3.clone()), (Ok(()), vec![3, 1]));
        // Without a network there is nothing to be known.
        let none = Job::<M>::new(&Plan::default());
        assert_eq!(none.engines[0].attach_segment(100), Ok((SEGMENT as u64).to_le_bytes().to_vec()));
    }
    in_every_mode!(check);
}
