//! Put and get of memory that the partner has given to a region: by the system, or with `GASWORKS_PROCESS_VM=0` by messages.

use crate::session::{PerfMode, Plan, Session, since};
use anyhow::{Result, ensure};
use gasworks::Part;
use std::time::Instant;

/// What a place here lies behind one there that it is compared with, within their pages: so that the system is not to copy between such.
const ASKEW: usize = 8;

/// By size, on one place.
pub fn run<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let sizes = session.sizes(&[8, 4096, 1 << 20]);
    let largest = sizes.iter().copied().max().unwrap_or(8);
    let (job, agent) = (session.job, &session.agent);
    // Both begin a page, but for what an allocator keeps before them.
    let room = |len: u64| vec![0u8; (len.max(1 << 20) as usize) + ASKEW].into_boxed_slice();
    let region = job.create_region_of(Part::of(room(largest)))?;
    let partner = session.partner().unwrap_or_else(|| session.rank());
    let mut memory = room(largest);
    for bytes in sizes {
        let place = region.at::<u8>(partner, 0, bytes)?;
        for (variant, is_put, skip) in
            [("put", true, 0), ("get", false, 0), ("put askew", true, ASKEW), ("get askew", false, ASKEW)]
        {
            if !session.wants(variant) {
                continue;
            }
            let (mut number, local) = (0u8, &mut memory[skip..][..bytes as usize]);
            let plan = Plan { single: true, ..Plan::new("given", variant, bytes) };
            session.measure(&plan, |block| {
                if !session.leads() {
                    return Ok(0.0);
                }
                number = number.wrapping_add(1);
                local.fill(number);
                if !is_put {
                    agent.put(place, local)?;
                    local.fill(0);
                }
                let begin = Instant::now();
                block.begin();
                for _ in 0..block.n {
                    if is_put {
                        agent.put(place, local)?
                    } else {
                        agent.get(place, local)?
                    }
                    block.done();
                }
                let took = since(begin);
                if is_put {
                    local.fill(0);
                    agent.get(place, local)?;
                }
                ensure!(
                    local.iter().all(|&byte| byte == number),
                    "{bytes} bytes are not those that were put"
                );
                Ok(took)
            })?;
        }
    }
    Ok(region.withdraw()?)
}
