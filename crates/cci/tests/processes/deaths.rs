//! A process that is killed at each kill point: who talked with it learns that, its other connections work, and nothing is left behind.

use super::talker::Survivors;
use gasworks_testkit::{Case, scan};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;

/// Every kill point that an endpoint passes, and at which passage it is killed there.
const POINTS: [(&str, u32); 51] = [
    ("cci.directory.made", 1),
    ("cci.directory.locked", 1),
    ("cci.directory.emptied", 1),
    ("cci.directory.removed", 1),
    ("cci.endpoint.bound", 1),
    ("cci.endpoint.bound", 2),
    ("cci.endpoint.disconnected", 1),
    ("cci.request.sent", 1),
    ("cci.request.sent", 2),
    ("cci.request.taken", 1),
    ("cci.accept.joined", 1),
    ("cci.reply.sent", 1),
    ("cci.reply.joined", 1),
    ("cci.ack.sent", 1),
    ("cci.signal.set", 1),
    ("cci.signal.set", 9),
    ("cci.signal.sent", 1),
    ("cci.signal.sent", 9),
    ("cci.acknowledge.published", 1),
    ("cci.acknowledge.published", 6),
    ("cci.close.signalled", 1),
    ("cci.close.signalled", 2),
    ("cci.file.asked", 1),
    ("cci.file.sent", 1),
    ("cci.fragment.filled", 1),
    ("cci.fragment.filled", 3),
    ("cci.fragment.moved", 2),
    ("cci.fragment.acknowledged", 1),
    ("entry.publish.word", 1),
    ("entry.publish.word", 2),
    ("entry.publish.done", 1),
    ("entry.withdraw.done", 1),
    ("flag.set.done", 1),
    ("flag.set.done", 2),
    ("ready.set.bit", 1),
    ("ready.set.summary", 1),
    ("ready.take.summary", 1),
    ("blocks.claim_alone.claimed", 1),
    ("blocks.free.before", 1),
    ("blocks.free.freed", 1),
    ("doorbell.ticket.taken", 1),
    ("doorbell.ticket.taken", 5),
    ("doorbell.ring.rung", 1),
    ("eventcount.arm.armed", 1),
    ("eventcount.arm.armed", 5),
    ("eventcount.count.counted", 4),
    ("eventcount.disarm.disarmed", 2),
    ("inbox.send.placed", 3),
    ("inbox.send.filled", 7),
    ("inbox.send.published", 2),
    ("inbox.take.consumed", 1),
];

/// A case for each, and one that there is one for each.
pub fn cases() -> impl Iterator<Item = Case> {
    let all = Case::new("every_point_is_passed", |_| {
        let _beside_others = super::COUNTED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let passed: BTreeSet<_> = POINTS.iter().map(|(point, _)| *point).collect();
        let starts = ["cci.", "entry.", "flag.", "ready."];
        for site in scan::kill_points()? {
            let is_ours = starts.iter().any(|start| site.name.starts_with(start));
            assert!(!is_ours || passed.contains(&*site.name), "nobody is killed at {}", site.name);
        }
        Ok(())
    });
    let killed = POINTS.into_iter().map(|(point, nth)| {
        let at = format!("{point}@0#{nth}");
        Case::check(format!("killed/{at}"), move || {
            let _beside_others = super::COUNTED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            let mut survivors = Survivors::new();
            let end = survivors.outlive(Some(&at));
            assert_eq!(end.signal(), Some(9), "{at} was not passed: {end}");
            survivors.round_trip();
            super::nothing_is_left(&survivors.base, 2);
        })
    });
    std::iter::once(all).chain(killed)
}
