//! Collective engines: rules by name, and random trees against a plain sum.

use super::*;
use gasworks_ugni_sim::chip::RESULT_ALIGNMENT;
use gasworks_ugni_sim::entry::{Body, Entry, Status};
use gasworks_ugni_sim::nic::Engine;
use gasworks_ugni_sim::reduction::{self, exceptions, is_whole, name, status};
use proptest::prelude::*;

const PE: gni_ce_child_t = GNI_CE_CHILD_PE;
const VCE: gni_ce_child_t = GNI_CE_CHILD_VCE;
/// How often ranks look before they give up.
const LOOKS: usize = 400;

/// An endpoint of one rank in a tree.
fn end(rank: &Rank, to: usize, attributes: (u32, u32, gni_ce_child_t)) -> Endpoint {
    end_bound(rank, (to, to as u32), attributes)
}

/// The same, bound with a number of the client's choice.
fn end_bound(
    rank: &Rank,
    (to, number): (usize, u32),
    (engine, child, kind): (u32, u32, gni_ce_child_t),
) -> Endpoint {
    let end = rank.nic.endpoint(Some(&rank.events)).unwrap();
    end.bind(address(to as u32), number).unwrap();
    end.set_attributes(engine, child, kind).unwrap();
    end
}

/// The name of an engine of a rank.
fn engine_of(rank: usize, number: u32) -> u32 {
    (rank as u32) << 2 | number
}

/// A tree: an engine at each rank, whose children are its own client and the engines of the ranks that are below it.
struct Tree {
    engines: Vec<Engine>,
    /// By which each rank contributes.
    leaves: Vec<Endpoint>,
    /// Hears of each engine.
    told: Vec<Arc<Cq>>,
}

/// Rank 0 is the root; `parents` says who is above each of the others. The clients are last among the children.
fn tree(ranks: &[Rank], parents: &[usize], modes: u32) -> Tree {
    tree_bound(ranks, parents, modes, |to| to as u32)
}

/// The same, with these numbers for the endpoints.
fn tree_bound(ranks: &[Rank], parents: &[usize], modes: u32, number: impl Fn(usize) -> u32) -> Tree {
    let end = |rank: &Rank, to: usize, attributes| end_bound(rank, (to, number(to)), attributes);
    let engines: Vec<_> = ranks.iter().map(|rank| rank.nic.engine().unwrap()).collect();
    let told: Vec<_> = ranks.iter().map(|rank| rank.nic.queue(ENTRIES).unwrap()).collect();
    let below = |rank: usize| (1..ranks.len()).filter(move |other| parents[other - 1] == rank);
    for (at, rank) in ranks.iter().enumerate() {
        let mut ends: Vec<_> =
            (0..).zip(below(at)).map(|(child, to)| end(rank, to, (engines[to].name(), child, VCE))).collect();
        // An engine does not look at the number of a client's.
        ends.push(end(rank, at, (u32::MAX, ends.len() as u32, PE)));
        let parent = at.checked_sub(1).map(|other| {
            let child = below(parents[other]).position(|to| to == at).unwrap() as u32;
            end(rank, parents[other], (engines[parents[other]].name(), child, VCE))
        });
        let ends: Vec<&Endpoint> = ends.iter().rev().collect();
        engines[at].configure(&ends, parent.as_ref(), Some(&told[at]), modes).unwrap();
    }
    let leaf = |at: usize| end(&ranks[at], at, (engines[at].name(), below(at).count() as u32, PE));
    Tree { leaves: (0..ranks.len()).map(leaf).collect(), engines, told }
}

/// Where each rank has its result.
const PLACE: u64 = 4 * RESULT_ALIGNMENT;

fn contribution(rank: &Rank, command: u32, id: u64, numbers: [u64; 2]) -> gni_post_descriptor_t {
    gni_post_descriptor_t {
        r#type: GNI_POST_CE,
        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
        local_addr: rank.at(PLACE),
        local_mem_hndl: rank.handle,
        ce_cmd: command,
        ce_mode: GNI_CEMODE_TWO_OP,
        ce_red_id: id,
        first_operand: numbers[0],
        second_operand: numbers[1],
        ..gni_post_descriptor_t::zeroed()
    }
}

fn contribute(end: &Endpoint, what: &gni_post_descriptor_t) -> Result<(), gni_return_t> {
    end.post(what, Way::Fma, 1, None)
}

fn words(rank: &Rank) -> [u64; 3] {
    let bytes = rank.bytes(PLACE, 24);
    [0, 8, 16].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
}

/// All ranks go on once.
fn go_on(ranks: &[Rank]) {
    for rank in ranks {
        rank.nic.progress();
        rank.nic.serve_letters();
    }
}

/// Waits for a rank's result.
fn result(ranks: &[Rank], at: usize) -> [u64; 3] {
    for _ in 0..LOOKS {
        if is_whole(words(&ranks[at])[0]) {
            return words(&ranks[at]);
        }
        go_on(ranks);
    }
    panic!("rank {at} has no result")
}

fn failure(ranks: &[Rank], at: usize) -> (u64, u64) {
    let [control, first, second] = result(ranks, at);
    assert_eq!([first, second], [0, 0]);
    (status(control), name(control))
}

/// The event of a rank's contribution.
fn sent(ranks: &[Rank], at: usize) -> Status {
    let found = (0..LOOKS).find_map(|_| {
        go_on(ranks);
        match ranks[at].events.next() {
            Next::Event(event) => Some(event.word),
            Next::Nothing => None,
        }
    });
    ranks[at].events.completed(found.expect("an event")).unwrap().1
}

const ON_ERROR: u32 = GNI_CE_MODE_CQE_ONERR | GNI_CE_MODE_ROUND_NEAR;

#[test]
fn all_get_what_all_have_given() {
    let ranks = job(Chip::Aries, MODES, 3);
    let Tree { leaves, told, engines: _engines } = tree(&ranks, &[0, 1], ON_ERROR);
    for (at, leaf) in leaves.iter().enumerate() {
        ranks[at].write(PLACE, &[0xff; 32]);
        let what = contribution(&ranks[at], GNI_FMA_CE_IADD, 7, [1 << at, u64::MAX]);
        contribute(leaf, &what).unwrap();
        assert_eq!(sent(&ranks, at), Status::Ok, "it is over when the engine has it");
        assert!(at == 2 || !is_whole(words(&ranks[at])[0]), "not all have given, and the old word is gone");
    }
    for at in 0..3 {
        let [control, first, second] = result(&ranks, at);
        assert_eq!((status(control), exceptions(control), name(control)), (0, 0, 7));
        assert_eq!([first, second], [7, -3i64 as u64]);
        assert_eq!(ranks[at].bytes(PLACE + 24, 8), [0xff; 8], "a result has 24 bytes");
        assert!(nothing(&told[at]), "nothing has failed");
    }
    assert!(leaves.iter().all(|leaf| leaf.unbind() == Ok(())));
}

/// Addresses, the names of engines and the numbers of children say who is meant: the numbers of endpoints are the client's own.
#[test]
fn the_number_of_an_endpoint_names_nobody() {
    let others: [fn(usize) -> u32; 3] = [|to| 1000 + to as u32, |to| 2 - to as u32, |to| to as u32 + 1];
    for number in others {
        let ranks = job(Chip::Aries, MODES, 3);
        let Tree { leaves, told, engines } = tree_bound(&ranks, &[0, 0], ON_ERROR, number);
        for round in 1..3 {
            for (at, leaf) in leaves.iter().enumerate() {
                contribute(leaf, &contribution(&ranks[at], GNI_FMA_CE_IADD, round, [1 << at, 1])).unwrap();
            }
            for (at, told) in told.iter().enumerate() {
                assert_eq!(sent(&ranks, at), Status::Ok);
                assert_eq!(result(&ranks, at)[1..], [7, 3], "rank {at}, numbers from {}", number(0));
                assert!(nothing(told));
            }
        }
        let names: Vec<_> = engines.iter().map(Engine::name).collect();
        assert_eq!(names, [0, 1, 2].map(|rank| engine_of(rank, 0)), "no two engines have the same name");
    }
}

#[test]
fn an_engine_tells_of_what_it_has_done_if_it_is_told_to() {
    let ranks = job(Chip::Aries, MODES, 2);
    let Tree { leaves, told, engines } = tree(&ranks, &[0], GNI_CE_MODE_CQE_ONCOMP);
    for (id, other) in [(9, 9), (10, 11)] {
        contribute(&leaves[0], &contribution(&ranks[0], GNI_FMA_CE_OR, id, [1, 1])).unwrap();
        contribute(&leaves[1], &contribution(&ranks[1], GNI_FMA_CE_OR, other, [2, 2])).unwrap();
        for at in [1, 0] {
            result(&ranks, at);
            let word = event(&told[at]);
            let entry = Entry::decode(word.word, Chip::Aries).unwrap();
            let failed = id != other;
            assert_eq!(entry.status, if failed { Status::Mismatch as u8 } else { 0 });
            let Body::Remote(data) = entry.body else { panic!("{entry:?}") };
            // The child that is first in order has given the name: the engine below.
            let wanted = if at == 1 { other } else { other.max(id) };
            assert_eq!(
                (reduction::engine(data), reduction::name(data)),
                (reduction::short_name(engines[at].name()).into(), wanted)
            );
            assert_eq!(ranks[at].events.completed(word.word), Err(GNI_RC_DESCRIPTOR_ERROR));
        }
    }
    assert!(told.iter().all(|told| nothing(told)));
}

#[test]
fn what_does_not_fit_together_fails_and_the_next_is_well() {
    let ranks = job(Chip::Aries, MODES, 3);
    let Tree { leaves, told, engines: _engines } = tree(&ranks, &[0, 0], ON_ERROR);
    let (add, and) = (GNI_FMA_CE_IADD, GNI_FMA_CE_AND);
    // What the third rank does otherwise than the first two.
    for (command, id, mode) in [(add, 6, GNI_CEMODE_TWO_OP), (and, 5, GNI_CEMODE_TWO_OP), (add, 5, 0)] {
        for at in 0..2 {
            contribute(&leaves[at], &contribution(&ranks[at], add, 5, [1, 1])).unwrap();
        }
        let what = gni_post_descriptor_t { ce_mode: mode, ..contribution(&ranks[2], command, id, [1, 1]) };
        contribute(&leaves[2], &what).unwrap();
        for (at, told) in told.iter().enumerate() {
            let own = if at == 2 { id } else { 5 };
            assert_eq!(failure(&ranks, at), (Status::Mismatch as u64, own));
            assert_eq!(sent(&ranks, at), Status::Ok, "it was delivered all the same");
            assert_eq!(event(told).status, Status::Mismatch);
        }
        for at in 0..3 {
            contribute(&leaves[at], &contribution(&ranks[at], add, 5, [2, 3])).unwrap();
        }
        for at in 0..3 {
            assert_eq!(result(&ranks, at)[1..], [6, 9]);
            assert_eq!(sent(&ranks, at), Status::Ok);
        }
    }
}

/// And modes that are not said are none; the exceptions of what was before are kept.
#[test]
fn sums_are_rounded_as_the_engine_is_told() {
    let (one, little) = (1.0f64.to_bits(), 1e-30f64.to_bits());
    let modes = [
        (0, one),
        (GNI_CE_MODE_ROUND_NEAR, one),
        (GNI_CE_MODE_ROUND_ZERO, one),
        (GNI_CE_MODE_ROUND_DOWN, one),
        (GNI_CE_MODE_ROUND_UP, one + 1),
    ];
    for (mode, sum) in modes {
        let ranks = job(Chip::Aries, MODES, 2);
        let Tree { leaves, engines: _engines, .. } = tree(&ranks, &[0], mode);
        for (at, number) in [(0, one), (1, little)] {
            let what = contribution(&ranks[at], GNI_FMA_CE_FPADD, 0, [number, number]);
            let ce_mode = what.ce_mode | GNI_CEMODE_FPE_UFLOW;
            contribute(&leaves[at], &gni_post_descriptor_t { ce_mode, ..what }).unwrap();
        }
        let [control, first, second] = result(&ranks, 1);
        assert_eq!((first, second), (sum, sum), "mode {mode}");
        assert_eq!(exceptions(control), u64::from(GNI_CE_FPE_PRECISION | GNI_CE_FPE_UFLOW));
        assert_eq!(status(control), 0);
    }
}

/// The order of the children decides how a sum is rounded, and not who came first.
#[test]
fn a_sum_does_not_depend_on_when_its_parts_came() {
    let numbers = [1e16, 1.0, 1.0, -1e16].map(f64::to_bits);
    let mut seen = Vec::new();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]] {
        let ranks = job(Chip::Aries, MODES, 4);
        let Tree { leaves, engines: _engines, .. } = tree(&ranks, &[0, 0, 0], ON_ERROR);
        for at in order {
            contribute(&leaves[at], &contribution(&ranks[at], GNI_FMA_CE_FPADD, 1, [numbers[at], 0]))
                .unwrap();
            go_on(&ranks);
        }
        seen.push(f64::from_bits(result(&ranks, 0)[1]));
    }
    // The root's client is its last child.
    assert_eq!(seen, [(1.0 + 1.0 - 1e16) + 1e16; 3]);
}

#[test]
fn a_client_contributes_again_when_it_has_the_result() {
    let ranks = job(Chip::Aries, MODES, 2);
    let Tree { leaves, engines: _engines, .. } = tree(&ranks, &[0], ON_ERROR);
    let what = |at: usize| contribution(&ranks[at], GNI_FMA_CE_IADD, 1, [1, 1]);
    contribute(&leaves[0], &what(0)).unwrap();
    assert_eq!(contribute(&leaves[0], &what(0)), Err(GNI_RC_ERROR_RESOURCE));
    contribute(&leaves[1], &what(1)).unwrap();
    assert_eq!(result(&ranks, 0)[1], 2);
    contribute(&leaves[0], &what(0)).unwrap();
    assert!(!is_whole(words(&ranks[0])[0]));
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let ranks = job(Chip::Aries, MODES, 2);
    let Tree { leaves, engines: _engines, .. } = tree(&ranks, &[0], ON_ERROR);
    let good = contribution(&ranks[0], GNI_FMA_CE_IADD, 1, [1, 1]);
    let read_only = ranks[0].nic.register((ranks[0].at(0), 512), None, GNI_MEM_READ_ONLY).unwrap();
    let last = gni_post_descriptor_t { local_addr: ranks[0].at(WORDS as u64 * 8), ..good };
    let cases = [
        (gni_post_descriptor_t { local_addr: good.local_addr + 8, ..good }, GNI_RC_ALIGNMENT_ERROR),
        (last, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { local_mem_hndl: gni_mem_handle_t::default(), ..good }, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { local_mem_hndl: read_only, ..good }, GNI_RC_PERMISSION_ERROR),
        (gni_post_descriptor_t { ce_cmd: 6, ..good }, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { ce_mode: 0x20, ..good }, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { ce_red_id: 1 << 44, ..good }, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { cq_mode: GNI_CQMODE_LOCAL_EVENT, ..good }, GNI_RC_INVALID_PARAM),
        (gni_post_descriptor_t { cq_mode: GNI_CQMODE_REMOTE_EVENT, ..good }, GNI_RC_INVALID_PARAM),
    ];
    for (number, (what, code)) in cases.into_iter().enumerate() {
        assert_eq!(contribute(&leaves[0], &what), Err(code), "case {number}");
    }
    assert_eq!(leaves[0].post(&good, Way::Bte, 1, None), Err(GNI_RC_INVALID_PARAM));
    for (engine, kind) in [(u32::MAX, PE), (0, VCE)] {
        leaves[0].set_attributes(engine, 1, kind).unwrap();
        assert_eq!(contribute(&leaves[0], &good), Err(GNI_RC_INVALID_PARAM), "engine {engine}, kind {kind}");
    }
    leaves[0].set_attributes(0, 1, GNI_CE_CHILD_UNUSED).unwrap();
    assert_eq!(contribute(&leaves[0], &good), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(leaves[0].set_attributes(0, 32, PE), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(leaves[0].set_attributes(0, 256, PE), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(leaves[0].set_attributes(0, 1, 3), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(leaves[0].idle(), Ok(()), "nothing of all that is on its way");
    // A silent one has a result all the same.
    leaves[0].set_attributes(0, 1, PE).unwrap();
    contribute(&leaves[0], &gni_post_descriptor_t { cq_mode: 0, ..good }).unwrap();
    contribute(&leaves[1], &contribution(&ranks[1], GNI_FMA_CE_IADD, 1, [1, 1])).unwrap();
    assert_eq!(result(&ranks, 0)[1], 2);
    assert!(nothing(&ranks[0].events));
}

#[test]
fn an_engine_is_configured_by_the_rules() {
    let ranks = job(Chip::Aries, MODES, 2);
    let engine = ranks[0].nic.engine().unwrap();
    let queue = ranks[0].nic.queue(ENTRIES).unwrap();
    let client = |child| end(&ranks[0], 0, (255, child, PE));
    let (first, second, again) = (client(0), client(31), client(0));
    let third = engine_of(1, 3);
    let (child, parent) = (end(&ranks[0], 1, (third, 1, VCE)), end(&ranks[0], 1, (third, 31, VCE)));
    let no_such = end(&ranks[0], 1, (u32::MAX, 1, VCE));
    let foreign = end(&ranks[1], 0, (0, 2, PE));
    let unbound = ranks[0].nic.endpoint(None).unwrap();
    unbound.set_attributes(0, 2, PE).unwrap();
    let many: Vec<_> = (0..33).map(|child| client(child % 32)).collect();
    let all = |count: usize| many.iter().take(count).collect::<Vec<_>>();
    let refused = |children: &[&Endpoint], parent: Option<&Endpoint>, modes| {
        let configured = engine.configure(children, parent, Some(&queue), modes);
        assert_eq!(configured, Err(GNI_RC_INVALID_PARAM));
    };
    refused(&[], None, 0);
    refused(&all(33), None, 0);
    refused(&[&first, &again], None, 0);
    for wrong in [&no_such, &foreign, &unbound, &ranks[0].endpoints[1]] {
        refused(&[&first, wrong], None, 0);
        refused(&[&first], Some(wrong), 0);
    }
    refused(&[&first], Some(&second), 0);
    for modes in [3, 0xc, 0x50, 0x180, 0x20, 0x800] {
        refused(&[&first], None, modes);
    }
    let foreign = ranks[1].nic.queue(ENTRIES).unwrap();
    assert_eq!(engine.configure(&[&first], None, Some(&foreign), 0), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(engine.configure(&[&first], None, None, ON_ERROR), Err(GNI_RC_INVALID_PARAM));
    engine.configure(&[&first], None, None, GNI_CE_MODE_ROUND_UP | GNI_CE_MODE_RC_ADAPT).unwrap();
    engine.configure(&[&second, &child, &first], Some(&parent), Some(&queue), ON_ERROR).unwrap();
    engine.configure(&all(32), None, Some(&queue), ON_ERROR).unwrap();
}

#[test]
fn a_nic_has_four_engines_and_gemini_none() {
    let nic = &job(Chip::Aries, MODES, 1)[0].nic;
    let engines: Vec<_> = (0..4).map(|_| nic.engine().unwrap()).collect();
    assert_eq!(engines.iter().map(Engine::number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(nic.engine().err(), Some(GNI_RC_ERROR_RESOURCE));
    drop(engines.into_iter().nth(2));
    assert_eq!(nic.engine().map(|engine| engine.number()), Ok(0), "they are free again");

    let rank = &job(Chip::Gemini, MODES, 1)[0];
    assert_eq!(rank.nic.engine().err(), Some(GNI_RC_ILLEGAL_OP));
    assert_eq!(rank.endpoints[0].set_attributes(0, 0, PE), Err(GNI_RC_ILLEGAL_OP));
    let what = contribution(rank, GNI_FMA_CE_AND, 1, [0, 0]);
    assert_eq!(contribute(&rank.endpoints[0], &what), Err(GNI_RC_ILLEGAL_OP));
}

/// Where there is no such engine, child or NIC.
#[test]
fn who_contributes_to_nothing_is_told() {
    let ranks = job(Chip::Aries, MODES, 2);
    let _tree = tree(&ranks, &[0], ON_ERROR);
    let gone = Status::Gone as u64;
    // An engine that is not there; a child that is another's; one that is an engine.
    for (to, engine, child) in [(1, 1, 0), (1, 0, 0), (0, 0, 0), (0, 0, 7)] {
        let stranger = end(&ranks[0], to, (engine_of(to, engine), child, PE));
        contribute(&stranger, &contribution(&ranks[0], GNI_FMA_CE_AND, 3, [0, 0])).unwrap();
        assert_eq!(failure(&ranks, 0), (gone, 3), "{to}, {engine}, {child}");
        assert_eq!(sent(&ranks, 0), Status::Ok, "somebody has it");
    }
    let nobody = end(&ranks[0], 9, (engine_of(9, 0), 0, PE));
    contribute(&nobody, &contribution(&ranks[0], GNI_FMA_CE_AND, 4, [0, 0])).unwrap();
    assert_eq!(failure(&ranks, 0), (gone, 4));
    let word = event(&ranks[0].events);
    assert_eq!(word.status, Status::Gone);
}

/// An engine that is given up, in the middle, at the root or below, keeps nobody waiting.
#[test]
fn an_engine_that_is_given_up_fails_for_all_who_wait() {
    for (lost, early) in [(0, true), (1, true), (2, true), (1, false)] {
        let ranks = job(Chip::Aries, MODES, 3);
        let Tree { leaves, mut engines, .. } = tree(&ranks, &[0, 1], ON_ERROR);
        let give = |at: usize| {
            let what = contribution(&ranks[at], GNI_FMA_CE_IADD, 2, [1, 1]);
            contribute(&leaves[at], &what).unwrap();
            go_on(&ranks);
        };
        if early {
            engines.remove(lost);
        }
        (0..2).for_each(give);
        if !early {
            engines.remove(lost);
        }
        give(2);
        for at in 0..3 {
            assert_eq!(failure(&ranks, at), (Status::Gone as u64, 2), "{lost} is lost, rank {at}");
        }
    }
}

/// What is configured anew fails for those who are there, and is well for those who come.
#[test]
fn an_engine_may_be_configured_again() {
    let ranks = job(Chip::Aries, MODES, 2);
    let Tree { leaves, engines, .. } = tree(&ranks, &[0], ON_ERROR);
    let what = |at: usize| contribution(&ranks[at], GNI_FMA_CE_IADD, 1, [1, 1]);
    contribute(&leaves[0], &what(0)).unwrap();
    let configure = |count: u32| {
        let ends = [end(&ranks[0], 0, (255, 1, PE)), end(&ranks[0], 1, (engines[1].name(), 0, VCE))];
        let ends: Vec<&Endpoint> = ends.iter().take(count as usize).collect();
        engines[0].configure(&ends, None, None, 0).unwrap();
    };
    configure(1);
    assert_eq!(failure(&ranks, 0), (Status::Gone as u64, 1));
    contribute(&leaves[0], &what(0)).unwrap();
    assert_eq!(result(&ranks, 0)[1], 1, "alone");
    // One that nobody waits for is configured without a word to anybody.
    configure(2);
    configure(2);
    contribute(&leaves[1], &what(1)).unwrap();
    contribute(&leaves[0], &what(0)).unwrap();
    assert_eq!((result(&ranks, 0)[1], result(&ranks, 1)[1]), (2, 2));
}

/// That the engine has a contribution tells nothing of the result, nor one rank's result of another's.
#[cfg(not(miri))]
#[test]
fn a_result_may_be_late() {
    use super::moods::{is_met_by, is_well_by};
    let ranks = |mood| job_in(mood, Chip::Aries, MODES, 2);
    let run = |ranks: &[Rank], wait: &dyn Fn(&[Rank])| {
        let Tree { leaves, engines: _engines, .. } = tree(ranks, &[0], ON_ERROR);
        for at in 0..2 {
            contribute(&leaves[at], &contribution(&ranks[at], GNI_FMA_CE_IADD, 1, [1, 1])).unwrap();
        }
        wait(ranks);
        words(&ranks[1])[1] == 2 && is_whole(words(&ranks[1])[0])
    };
    is_met_by(ranks, |ranks| {
        run(ranks, &|ranks| {
            sent(ranks, 1);
        })
    });
    is_met_by(ranks, |ranks| {
        run(ranks, &|ranks| {
            result(ranks, 0);
        })
    });
    // Whoever sees the first word may read the others.
    is_well_by(ranks, |ranks| {
        run(ranks, &|ranks| {
            result(ranks, 1);
        })
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, failure_persistence: None, ..Default::default() })]
    /// Several reductions in a row over any tree, in any order, plainly and not.
    #[test]
    fn any_tree_computes(
        parents in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        rounds in prop::collection::vec((any::<u16>(), 0..4usize, any::<u64>()), 1..5),
        mood in prop_oneof![Just(Mood::Plain), any::<u64>().prop_map(|seed| Mood::Adversarial { seed })],
    ) {
        let count = parents.len() + 1;
        let parents: Vec<usize> = parents.iter().enumerate().map(|(at, above)| above.index(at + 1)).collect();
        let ranks = job_in(mood, Chip::Aries, MODES, count as u32);
        let Tree { leaves, told, engines: _engines } = tree(&ranks, &parents, ON_ERROR);
        for (id, operation, salt) in rounds {
            let command = [GNI_FMA_CE_IADD, GNI_FMA_CE_XOR, GNI_FMA_CE_IMAX_LIDX, GNI_FMA_CE_IMIN_GIDX][operation];
            // Some are the same.
            let number = |at: usize| salt.rotate_left(at as u32 % 3 * 21);
            let numbers = (0..count).map(|at| [number(at), at as u64]);
            let first = numbers.clone().map(|both| both[0]);
            let signed = numbers.clone().map(|[a, at]| (a as i64, at));
            let wanted = match operation {
                0 => [first.fold(0, u64::wrapping_add), (count * (count - 1) / 2) as u64],
                1 => [first.fold(0, |a, b| a ^ b), (0..count as u64).fold(0, |a, b| a ^ b)],
                2 => signed.max_by_key(|(a, at)| (*a, count as u64 - at)).map(|(a, at)| [a as u64, at]).unwrap(),
                _ => signed.min_by_key(|(a, at)| (*a, count as u64 - at)).map(|(a, at)| [a as u64, at]).unwrap(),
            };
            // Who is the first is anybody.
            for at in (0..count).map(|turn| (turn + salt as usize % 7) % count) {
                let what = contribution(&ranks[at], command, id.into(), [number(at), at as u64]);
                contribute(&leaves[at], &what).unwrap();
            }
            for at in 0..count {
                let [control, first, second] = result(&ranks, at);
                prop_assert_eq!((status(control), name(control)), (0, u64::from(id)));
                prop_assert_eq!([first, second], wanted, "rank {} of {:?}", at, &parents);
                prop_assert_eq!(sent(&ranks, at), Status::Ok);
            }
        }
        prop_assert!(told.iter().all(|told| nothing(told)));
        prop_assert!(leaves.iter().all(|leaf| leaf.idle() == Ok(())));
    }
}
