//! Everybody's bytes to everybody, through the launcher once for each host.

use std::time::Duration;

use gasworks_sync::kill_point;

use super::{Host, Hosts, Parcel, Parts};
use crate::{Bootstrap, BootstrapError};

/// With more hosts than this some collect what the others put first: a leader then asks for fewer, longer values.
const DIRECT: u32 = 16;
const DURING: &str = "exchange values among all ranks";

/// Collective over all ranks of the job: each gives `mine`, each gets all, in the order of ranks.
///
/// The leader of each host gathers what its ranks give and puts that under `label`; so a byte goes to the launcher once,
/// and from there once to each other host.
pub(crate) fn exchange(
    job: &dyn Bootstrap,
    host: &Host,
    hosts: &Hosts,
    label: &str,
    mine: &[u8],
    limit: Option<Duration>,
) -> Result<Parts, BootstrapError> {
    let collected = host.collect(mine, &[], limit)?;
    let mut whole: Option<Parts> = collected.map(|all| all.into_iter().map(|parcel| parcel.bytes).collect());
    kill_point!("host.exchange");
    if hosts.count() > 1 {
        whole = across(job, hosts, label, whole).inspect_err(|e| host.fail(e))?;
    }
    let whole =
        host.hand_out(whole.map(|whole| Parcel { bytes: whole.into_bytes(), fds: Vec::new() }), limit)?;
    let parts = Parts::read(whole.bytes).filter(|parts| parts.iter().count() == job.size() as usize);
    parts.ok_or_else(|| BootstrapError::protocol(DURING, "what came is not one value from each rank"))
}

/// From what the ranks of each host give, at its leader, to what all ranks give, at each leader. All ranks go through the
/// fences.
fn across(
    job: &dyn Bootstrap,
    hosts: &Hosts,
    label: &str,
    own: Option<Parts>,
) -> Result<Option<Parts>, BootstrapError> {
    let (leaders, number_of) = hosts.numbered();
    let me = number_of[job.rank() as usize];
    let own = own.map(Parts::into_bytes);
    if let Some(own) = &own {
        job.put(label, own)?;
    }
    job.fence()?;
    // Of the leader of the first host of each block: what the leaders of the block have put.
    let blocks = format!("{label}..");
    let step = if hosts.count() > DIRECT { hosts.count().isqrt() } else { 1 };
    let leader = |host: u32| leaders[host as usize];
    if step > 1 {
        if own.is_some() && me.is_multiple_of(step) {
            let block = (me..(me + step).min(hosts.count())).map(|host| job.get(leader(host), label));
            job.put(&blocks, &block.collect::<Result<Parts, _>>()?.into_bytes())?;
        }
        job.fence()?;
    }
    let Some(own) = own else { return Ok(None) };
    let damaged =
        || BootstrapError::protocol(DURING, format!("the launcher damaged what was put under {label}"));
    let mut of_host: Vec<Parts> = Vec::with_capacity(hosts.count() as usize);
    let read = |bytes| Parts::read(bytes).ok_or_else(damaged);
    for first in (0..hosts.count()).step_by(step as usize) {
        match step {
            1 if first == me => of_host.push(read(own.clone())?),
            1 => of_host.push(read(job.get(leader(first), label)?)?),
            _ => {
                let block = read(job.get(leader(first), &blocks)?)?;
                let hosts: Result<Vec<_>, _> = block.iter().map(|host| read(host.to_vec())).collect();
                of_host.extend(hosts?);
            }
        }
    }
    // Each host's values are in the order of its ranks.
    let mut values: Vec<_> = of_host.iter().map(Parts::iter).collect();
    let next = |&host: &u32| values.get_mut(host as usize)?.next();
    let all: Option<Parts> = number_of.iter().map(next).collect();
    Ok(Some(all.ok_or_else(damaged)?))
}
