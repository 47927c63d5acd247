//! The net's own behaviour, and the RDMA engine on its NIC.

use super::*;
use gasworks::{Config, Job, Table};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::{Class, WaitSet, Wire, WireError};
use gasworks_rdma::{Engine, EngineError, Key, Nic, NicError, Progress, Source, There, Tuning};
use gasworks_sync::{RawSlice, Seq};
use std::cell::{Cell, RefCell};

/// A rank's transport, as threads that take turns use it.
fn wire(rank: &SimRank) -> Box<dyn Wire<Seq>> {
    Box::new(rank.wire())
}

fn send(wire: &dyn Wire<Seq>, to: u32, class: Class, head: &[u8], payload: &[u8]) -> Result<(), WireError> {
    let reservation = wire.reserve(to, class, payload.len())?;
    reservation.payload().write(payload);
    wire.commit(reservation, head)
}

fn insist(
    wire: &dyn Wire<Seq>,
    to: u32,
    head: &[u8],
    payload: &[u8],
    sink: &mut dyn FnMut(Vec<u8>, Vec<u8>),
) {
    while let Err(error) = send(wire, to, Class::Request, head, payload) {
        assert_eq!(error, WireError::Busy { to });
        receive(wire, sink);
    }
}

fn receive(wire: &dyn Wire<Seq>, sink: &mut dyn FnMut(Vec<u8>, Vec<u8>)) {
    wire.poll(4, &mut |arrived| {
        let mut payload = vec![0; arrived.payload.len()];
        arrived.payload.read(&mut payload);
        sink(arrived.head.to_vec(), payload);
    })
    .unwrap();
}

#[test]
fn every_message_arrives_once_and_whole_and_some_overtake() {
    let config = SimConfig { ranks: 3, seed: 11, queue: 8, segment: 0, ..SimConfig::default() };
    let overtakes = run(config, |rank| {
        let (wire, me) = (wire(&rank), rank.rank());
        let (got, orders) = (Cell::new(0u32), RefCell::new(vec![Vec::new(); 3]));
        let sink = &mut |head: Vec<u8>, payload: Vec<u8>| {
            assert_eq!(payload, vec![head[1]; usize::from(head[1])]);
            orders.borrow_mut()[usize::from(head[0])].push(head[1]);
            got.set(got.get() + 1);
        };
        for i in 0..100u8 {
            for to in 0..3 {
                insist(&*wire, to, &[me as u8, i], &vec![i; usize::from(i)], sink);
            }
        }
        while got.get() < 300 {
            receive(&*wire, sink);
            let sleep = WaitSet::new().sleep(std::iter::once(&*wire), Duration::from_millis(1), &|| true);
            sleep.expect("nothing is wrong");
        }
        let mut overtakes = 0;
        for order in orders.borrow_mut().iter_mut() {
            overtakes += order.windows(2).filter(|w| w[0] > w[1]).count();
            order.sort_unstable();
            assert_eq!(*order, (0..100).collect::<Vec<_>>());
        }
        overtakes
    });
    assert!(overtakes.unwrap().into_iter().all(|n| n > 0));
}

#[test]
fn without_reordering_messages_stay_in_order() {
    let config = SimConfig { reorder: false, busy: 0, segment: 0, ..SimConfig::default() };
    let ranks = SimNet::new(config);
    for i in 0..20 {
        send(&*wire(&ranks[0]), 1, Class::Request, &[i], &[]).unwrap();
    }
    let mut order = Vec::new();
    wire(&ranks[1]).poll(100, &mut |arrived| order.push(arrived.head[0])).unwrap();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn replies_need_a_request_each_and_are_never_refused() {
    let config = SimConfig { queue: 1, busy: 0, max_delay: 0, segment: 0, ..SimConfig::default() };
    let ranks = SimNet::new(config);
    let (a, b) = (wire(&ranks[0]), wire(&ranks[1]));
    let unpaid = send(&*b, 0, Class::Reply, &[], &[]);
    assert!(unpaid.is_err_and(|e| e.to_string().contains("a Reply to rank 0 without a request")));
    send(&*a, 1, Class::Request, &[], &[]).unwrap();
    assert_eq!(send(&*a, 1, Class::Request, &[], &[]), Err(WireError::Busy { to: 1 }));
    // The room is the message's until it has been handled.
    b.poll(1, &mut |_| {
        assert_eq!(send(&*a, 1, Class::Request, &[], &[]), Err(WireError::Busy { to: 1 }));
        let cancelled = b.reserve(0, Class::Reply, 4).unwrap();
        b.cancel(cancelled);
        send(&*b, 0, Class::Reply, &[1], &[2, 3]).unwrap();
        assert!(matches!(send(&*b, 0, Class::Credit, &[], &[]), Err(WireError::Corrupt { .. })));
    })
    .unwrap();
    send(&*a, 1, Class::Request, &[], &[]).unwrap();
    b.poll(1, &mut |_| ()).unwrap();
    send(&*b, 0, Class::Credit, &[], &[]).unwrap();
    assert_eq!(a.poll(9, &mut |_| ()), Ok(2));
}

#[test]
fn what_is_too_large_or_nowhere_is_refused() {
    let ranks = SimNet::new(SimConfig { max_medium: 100, segment: 0, ..SimConfig::default() });
    let wire = wire(&ranks[0]);
    let large = wire.reserve(1, Class::Request, 101).err();
    assert_eq!(large, Some(WireError::TooLarge { transport: "simnet", len: 101, max: 100 }));
    assert_eq!(wire.reserve(2, Class::Request, 1).err(), Some(WireError::PeerGone { rank: 2 }));
}

#[test]
fn the_same_seed_refuses_the_same_requests() {
    let refusals = |seed| -> Vec<bool> {
        let ranks = SimNet::new(SimConfig { seed, queue: 1000, segment: 0, ..SimConfig::default() });
        (0..200).map(|_| send(&*wire(&ranks[0]), 1, Class::Request, &[], &[]).is_err()).collect()
    };
    assert_eq!(refusals(5), refusals(5));
    assert_ne!(refusals(5), refusals(6));
    assert!(refusals(5).contains(&true));
}

#[test]
fn the_engine_moves_bytes_between_unmapped_ranks() {
    for seed in 0..if cfg!(miri) { 2 } else { 20 } {
        let config = SimConfig { ranks: 3, seed, segment: 40_000, ..SimConfig::default() };
        run(config, |rank| {
            let (boot, me) = (rank.bootstrap(), rank.rank());
            assert!(rank.peer_segment((me + 1) % 3).is_none());
            let tuning = Tuning { descriptors: 4, ..Tuning::default() };
            let mut bounce = vec![0u8; 9000];
            let bounce = RawSlice::new(bounce.as_mut_ptr(), bounce.len());
            // SAFETY: the vector is declared before the engine, so it goes after it, and nobody else uses its bytes.
            let engine =
                unsafe { Engine::<Seq, SimNic>::new(Box::new(rank.nic()), bounce, &tuning) }.unwrap();
            // SAFETY: the segment is a block of the net, which `rank` and the NIC in the engine hold.
            let key = unsafe { engine.register(rank.segment().raw()) }.unwrap();
            let keys = boot.exchange("keys", &key.0).unwrap().to_vec();
            let (to, from) = ((me + 1) % 3, (me + 2) % 3);
            let finish = |what: &str| {
                let mut polls = 0;
                while engine.pending() > 0 {
                    engine.poll(3, &mut |token, progress| {
                        let well = matches!(progress, Progress::Copied | Progress::Done(Ok(())));
                        assert!(token == 5 && well, "{what}: {progress:?} of {token}");
                    });
                    polls += 1;
                    assert!(polls < 100_000, "{what}");
                }
            };
            let source: Vec<u8> = (0..20_011).map(|i| (i * 13 + me as usize) as u8).collect();
            let key = |rank: u32| Key(keys[rank as usize].clone());
            let key = key(to);
            let there = There { peer: to, key: &key.0, base: 0, offset: 3 };
            // SAFETY: `source` is not changed, and `finish` waits below until the put is over.
            unsafe { engine.put(there, source.as_ptr(), source.len(), Source::WantedBack, 5) }.unwrap();
            finish("put");
            boot.fence().unwrap();
            let mut here = vec![0; source.len()];
            rank.segment().slice(3, here.len()).unwrap().read(&mut here);
            assert!(here.iter().enumerate().all(|(i, &b)| b == (i * 13 + from as usize) as u8));
            here.fill(0);
            // SAFETY: `here` has as many bytes, and is not used before `finish` has seen the get's end.
            unsafe { engine.get(there, here.as_mut_ptr(), here.len(), 5) }.unwrap();
            finish("get");
            assert_eq!(here, source);
            boot.fence().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn the_nic_keeps_its_rules() {
    let ranks = SimNet::new(SimConfig { segment: 64, nic_busy: 0, ..SimConfig::default() });
    let (nic, other) = (ranks[0].nic(), ranks[1].nic());
    // SAFETY: the segments are blocks of the net, which `ranks` holds until the end of the test.
    let (mine, theirs) = unsafe {
        (nic.register(ranks[0].segment().raw()).unwrap(), other.register(ranks[1].segment().raw()))
    };
    let theirs = theirs.unwrap();
    let post = gasworks_rdma::Post {
        direction: gasworks_rdma::Direction::Get,
        way: gasworks_rdma::Way::Short,
        peer: 1,
        local: ranks[0].segment().raw(),
        local_key: &mine,
        remote_base: 0,
        remote_offset: 0,
        remote_key: &theirs,
        source_apart: false,
        tells: None,
        token: 1,
    };
    // SAFETY: what is posted is in segments of the net, which `ranks` holds until the end of the test, and only the NIC uses their bytes.
    let posted = |post: &gasworks_rdma::Post<'_>| unsafe { nic.post(post) };
    assert_eq!(posted(&post), Ok(()));
    let shape = posted(&gasworks_rdma::Post { remote_offset: 2, ..post });
    assert_eq!(shape, Err(NicError::BadShape { len: 64, offset: 2 }));
    let outside = posted(&gasworks_rdma::Post { remote_offset: 4, ..post });
    assert_eq!(outside, Err(NicError::BadKey { peer: 1 }));
    let unregistered = posted(&gasworks_rdma::Post { local_key: &theirs, ..post });
    assert_eq!(unregistered, Err(NicError::BadKey { peer: 0 }));
    // The registration ends while the transfer is under way: it fails instead of touching freed memory.
    other.deregister(&theirs).unwrap();
    assert_eq!(other.deregister(&theirs), Err(NicError::BadKey { peer: 1 }));
    let mut completions = Vec::new();
    for _ in 0..10 {
        nic.poll(1, &mut |c| completions.push((c.token, c.result)));
    }
    assert_eq!(completions, [(1, Err(NicError::BadKey { peer: 1 }))]);
}

#[test]
fn faults_are_reported_as_what_they_are() {
    let faults = Faults { refuse_registration: Some(0), ..Faults::default() };
    let ranks = SimNet::new(SimConfig { faults, segment: 64, ..SimConfig::default() });
    let few = Tuning { descriptors: 4, ..Tuning::default() };
    let nic = Box::new(ranks[0].nic());
    // SAFETY: the segment is a block of the net, which `ranks` holds, and nobody else uses it.
    let engine = unsafe { Engine::<Seq, SimNic>::new(nic, ranks[0].segment().raw(), &few) };
    assert_eq!(
        engine.err(),
        Some(EngineError::Registration(NicError::Registration { len: 64, why: "as configured" }))
    );

    let faults = Faults { gone: Some((0, 3)), ..Faults::default() };
    let ranks = SimNet::new(SimConfig { faults, busy: 0, segment: 0, ..SimConfig::default() });
    let sent: Vec<_> = (0..5).map(|_| send(&*wire(&ranks[0]), 1, Class::Request, &[], &[])).collect();
    assert_eq!(sent[..3], [Ok(()), Ok(()), Ok(())]);
    assert_eq!(sent[3], Err(WireError::PeerGone { rank: 0 }));
    assert_eq!(send(&*wire(&ranks[1]), 0, Class::Request, &[], &[]), Err(WireError::PeerGone { rank: 0 }));
    let polls: Vec<_> = (0..20).map(|_| wire(&ranks[1]).poll(9, &mut |_| ())).collect();
    assert_eq!(polls.iter().flatten().sum::<usize>(), 3, "what was sent before still arrives");
    assert_eq!(polls.last(), Some(&Err(WireError::PeerGone { rank: 0 })));
    assert!(ranks[1].bootstrap().fence().is_err_and(|e| e.to_string().contains("rank 0 is gone")));
}

#[test]
fn a_run_reports_who_failed_first() {
    let config = SimConfig { segment: 0, seed: 77, ..SimConfig::default() };
    let panicked = run(config, |rank| {
        if rank.rank() == 1 {
            std::panic::resume_unwind(Box::new("one is odd"));
        }
        rank.bootstrap().fence().unwrap_or_else(|e| std::panic::resume_unwind(Box::new(e.to_string())));
    });
    let message = panicked.err().map(|e| e.to_string());
    assert_eq!(message.as_deref(), Some("simnet seed 77, 2 ranks: rank 1 panicked: one is odd"));

    let aborted = run(config, |rank| {
        if rank.rank() == 0 {
            rank.bootstrap().abort(3, "enough");
        }
        assert!(rank.bootstrap().fence().is_err());
    });
    assert!(matches!(aborted, Err(SimError::Aborted { rank: 0, code: 3, .. })));

    let stuck = run(SimConfig { watchdog: Duration::from_millis(50), ..config }, |rank| {
        if rank.rank() == 0 {
            assert!(rank.bootstrap().fence().is_err());
        }
    });
    assert!(matches!(stuck, Err(SimError::TimedOut { rank: 0, .. })));
}

#[test]
fn keys_are_put_once_and_known_after_the_fence() {
    let config = SimConfig { ranks: 4, segment: 0, ..SimConfig::default() };
    run(config, |rank| {
        let (boot, me) = (rank.bootstrap(), rank.rank());
        boot.put("a", &[me as u8]).unwrap();
        assert!(boot.put("a", &[]).is_err_and(|e| e.to_string().contains("twice")));
        boot.fence().unwrap();
        assert!((0..4).all(|r| boot.get(r, "a").is_ok_and(|v| v == [r as u8])));
        assert!(boot.get(0, "b").is_err());
        for round in 0..20 {
            let all = boot.exchange(&format!("round {round}"), &[me as u8, round]).unwrap();
            assert_eq!(all.to_vec(), (0..4).map(|r| vec![r, round]).collect::<Vec<_>>());
        }
        boot.finalize().unwrap();
    })
    .unwrap();
}

/// A network that another crate has added is asked for by the setting as any other; one that nobody has is answered by those that there are.
#[test]
fn a_net_is_asked_for_by_the_setting() {
    const SETTING: &str = "GASWORKS_NETWORK";
    const THIS: &str = "simnet::tests::a_net_is_asked_for_by_the_setting";
    let asked = gasworks::settings::all().find(|setting| setting.name == SETTING).expect("a setting").text();
    if asked == "pshm" {
        let me = std::env::current_exe().expect("a path");
        for (network, says) in
            [("SimNet", "2 ranks met over simnet"), ("gnu", "simnet (a net of this process")]
        {
            let child = gasworks_testkit::Cmd::new(&me).words(&format!("--exact {THIS} --nocapture"));
            let ended = child.env(SETTING, network).limit(60).run().expect("started");
            assert!(ended.ok() && ended.output.contains(says), "{network}: {}", ended.output);
        }
        return;
    }
    let config = SimConfig { ranks: 2, ..SimConfig::default() };
    let ended = run(config, |rank| {
        let boot = Box::new(rank.bootstrap());
        let job = Job::open_among(&Seq::with_net(&rank), boot, Config::from_env()?, Table::new())?;
        job.agent()?.barrier()?;
        job.close()?;
        Ok::<_, gasworks::Error>(job.ranks())
    });
    match ended.expect("no rank panics").into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(ranks) => println!("{} ranks met over simnet", ranks.len()),
        Err(error) => println!("{error}"),
    }
}
