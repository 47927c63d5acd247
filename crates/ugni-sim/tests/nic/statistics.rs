//! What a NIC counts.

use super::messages::{attributes, connected};
use super::*;

fn counts(rank: &Rank) -> Vec<(gni_statistic_t, u32)> {
    let all = (0..GNI_NUM_STATS).map(|which| (which, rank.nic.statistic(which).unwrap()));
    all.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn what_goes_through_windows_is_counted() {
    for mood in [Mood::Plain, Mood::Adversarial { seed: 4 }] {
        let ranks = job_in(mood, Chip::Aries, MODES, 2);
        assert_eq!(counts(&ranks[0]), []);
        for kind in
            [GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_CQWRITE, GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET]
        {
            ranks[0].post(1, &ranks[0].descriptor(&ranks[1], kind, 8)).unwrap();
        }
        let refused = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_GET, 0);
        assert_eq!(ranks[0].post(1, &refused), Err(GNI_RC_INVALID_PARAM));
        assert_eq!(counts(&ranks[0]), [(GNI_STAT_FMA_LAUNCH_COUNT, 3)]);
        assert_eq!(counts(&ranks[1]), []);
        assert_eq!(ranks[0].nic.forget_statistic(GNI_STAT_FMA_LAUNCH_COUNT), Ok(()));
        assert_eq!(counts(&ranks[0]), []);
        assert_eq!(ranks[0].nic.statistic(GNI_NUM_STATS), Err(GNI_RC_INVALID_PARAM));
        assert_eq!(ranks[0].nic.forget_statistic(GNI_NUM_STATS), Err(GNI_RC_INVALID_PARAM));
    }
}

/// Each refusal is counted by what was lacking: messages, bytes or requests.
#[test]
fn sends_that_have_to_wait_are_counted() {
    let plain = |credits, longest| {
        let like = attributes(GNI_SMSG_TYPE_MBOX, credits, longest);
        connected(Mood::Plain, Chip::Gemini, 2, &like).0
    };
    let refused = |ranks: &[Rank], length, which| {
        ranks[0].nic.forget_statistic(GNI_STAT_FMA_LAUNCH_COUNT).unwrap();
        for count in 1..3 {
            assert_eq!(ranks[0].send(1, &vec![0; length], 9, 0), Err(GNI_RC_NOT_DONE));
            assert_eq!(counts(&ranks[0]), [(which, count)]);
        }
    };
    let ranks = plain(2, 64);
    (0..2).for_each(|id| ranks[0].send(1, &[1], id, 0).unwrap());
    refused(&ranks, 1, GNI_STAT_SMSG_MBOX_CREDITS_STALL);
    let ranks = plain(5, 128);
    (0..3).for_each(|id| ranks[0].send(1, &[1; 128], id, 0).unwrap());
    refused(&ranks, 128, GNI_STAT_SMSG_BUFF_CREDITS_STALL);
    let ranks = plain(16, 16);
    (0..ENTRIES / 2).for_each(|id| ranks[0].send(1, &[], id, 0).unwrap());
    refused(&ranks, 0, GNI_STAT_SMSG_REQ_STALL);
}

#[test]
fn messages_that_are_sent_again_are_counted() {
    let like = attributes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 64);
    let (ranks, faults) = connected(Mood::Plain, Chip::Aries, 2, &like);
    faults.next(3);
    ranks[0].send(1, b"again", 5, 0).unwrap();
    event(&ranks[0].events);
    assert_eq!(counts(&ranks[0]), [(GNI_STAT_SMSG_RETRANS_COUNT, 3), (GNI_STAT_FMA_LAUNCH_COUNT, 4)]);
}
