//! Put and get: in a loop over places known at run time only, and by size beside the same copies in local memory.

use crate::options::{Bench, Options};
use crate::session::{Block, PerfMode, Plan, Session, Sum, since, timed_threads};
use anyhow::{Result, ensure};
use gasworks::GlobalPtr;
use std::hint::black_box;
use std::time::Instant;

/// The direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the partner.
    Put,
    /// From the partner.
    Get,
}

/// The places of the loop of small operations, 64 bytes apart.
const PLACES: u64 = 256;
/// More than a processor's caches hold.
const AREA: u64 = 128 << 20;
/// What all ranks together may take for that.
const AREAS: u64 = 1 << 30;

/// The segment that a bench needs. The number of ranks is not known yet, so room for their reports is there for many.
pub fn segment(options: &Options) -> u64 {
    let large = options.bytes.map_or(0, |sizes| sizes.last).saturating_mul(2);
    let room = match options.bench {
        Bench::PutBandwidth | Bench::GetBandwidth => large.max(AREA),
        Bench::PutLatency | Bench::GetLatency => PLACES.saturating_mul(large.max(4096)),
        Bench::Strided => crate::scattered::segment(),
        Bench::Gups => 16 << crate::gups::LOG_WORDS,
        _ => 0,
    };
    room.saturating_add(16 << 20)
}

/// Small operations, one after another, each on a place that is read from a list.
pub fn latency<M: PerfMode>(session: &Session<'_, M>, way: Way) -> Result<()> {
    let bench = if way == Way::Put { "put-latency" } else { "get-latency" };
    let sizes = session.sizes(&[8, 16, 64, 256, 1024, 4096]);
    let largest = sizes.iter().copied().max().unwrap_or(8).next_multiple_of(64);
    let room = session.job.alloc::<u8>(PLACES * largest)?;
    if session.wants("value") && sizes.contains(&8) && session.options.threads == 1 {
        let plan = Plan::new(bench, "value", 8);
        words(session, &plan, way, room.cast())?;
    }
    for bytes in sizes.into_iter().filter(|_| session.wants("slice")) {
        let stride = bytes.next_multiple_of(64);
        let places = places(
            session,
            room,
            PLACES.min((1 << 15) / stride).max(session.options.threads.into()),
            stride,
        )?;
        let mut local = vec![0u8; bytes as usize];
        let plan = Plan { single: bytes >= 65536, ..Plan::new(bench, "slice", bytes) };
        if session.options.threads > 1 {
            by_threads(session, &Plan { sum: Sum::Rate, ..plan }, way, &places)?;
            continue;
        }
        let mut number = 0u8;
        session.measure(&plan, |block| {
            number = number.wrapping_add(1);
            let took = match (session.leads(), way) {
                (false, _) => 0.0,
                (true, Way::Put) => {
                    local.fill(number);
                    let begin = Instant::now();
                    walk(&places, block, |place| session.agent.put(place, &local))?;
                    since(begin)
                }
                (true, Way::Get) => {
                    for &place in &places {
                        session.agent.put(place, &vec![number; bytes as usize])?;
                    }
                    let begin = Instant::now();
                    walk(&places, block, |place| session.agent.get(place, black_box(&mut local[..])))?;
                    since(begin)
                }
            };
            if session.leads() {
                let used = places.len().min(block.n as usize);
                check(session, &places[..used], bytes, number, (way == Way::Get).then_some(&local[..]))?;
            }
            Ok(took)
        })?;
    }
    Ok(())
}

/// The same by several threads at once, each with a part of the places.
fn by_threads<M: PerfMode>(
    session: &Session<'_, M>,
    plan: &Plan,
    way: Way,
    places: &[GlobalPtr<u8>],
) -> Result<()> {
    let threads = session.options.threads;
    let lanes: Vec<_> = places.chunks((places.len() / threads as usize).max(1)).collect();
    ensure!(lanes.len() >= threads as usize, "{} places are not enough for {threads} threads", places.len());
    let mut number = 0u8;
    session.measure(plan, |block| {
        number = number.wrapping_add(1);
        if !session.leads() {
            return Ok(0.0);
        }
        let each = block.n.div_ceil(threads.into());
        let local = vec![number; plan.bytes as usize];
        if way == Way::Get {
            places.iter().try_for_each(|&place| session.agent.put(place, &local))?;
        }
        let took = timed_threads(session.job, threads, |agent, lane| {
            let (lane, block) = (lanes[lane as usize], &mut Block::of(each));
            if way == Way::Put {
                return walk(lane, block, |place| agent.put(place, &local));
            }
            let mut back = vec![0; local.len()];
            walk(lane, block, |place| agent.get(place, black_box(&mut back[..])))?;
            ensure!(back == local, "what was got of {} bytes is not what is there", local.len());
            Ok(())
        })?;
        for lane in &lanes[..threads as usize] {
            check(session, &lane[..lane.len().min(each as usize)], plan.bytes, number, None)?;
        }
        Ok(took * block.n as f64 / (each * u64::from(threads)) as f64)
    })
}

/// The same with single words by value.
fn words<M: PerfMode>(session: &Session<'_, M>, plan: &Plan, way: Way, room: GlobalPtr<u64>) -> Result<()> {
    let places: Vec<GlobalPtr<u64>> =
        places(session, room.cast(), PLACES, 64)?.into_iter().map(GlobalPtr::cast).collect();
    let mut round = 0u64;
    session.measure(plan, |block| {
        if !session.leads() {
            return Ok(0.0);
        }
        round += 1 << 32;
        let agent = &session.agent;
        let used = places.len().min(block.n as usize);
        if way == Way::Put {
            let mut value = round;
            let begin = Instant::now();
            walk(&places, block, |place| {
                value += 1;
                agent.put_value(place, value)
            })?;
            let took = since(begin);
            // The last value that went to each place: places are used in turn.
            let n = block.n;
            for (at, &place) in (0..).zip(&places[..used]) {
                let last = round + n - (n - 1 - at) % PLACES;
                let found = agent.get_value(place)?;
                ensure!(found == last, "word {at} is {found:#x} after a put of {last:#x}");
            }
            return Ok(took);
        }
        for (at, &place) in (0..).zip(&places) {
            agent.put_value(place, round ^ at)?;
        }
        let mut sum = 0u64;
        let begin = Instant::now();
        walk(&places, block, |place| {
            sum = sum.wrapping_add(agent.get_value(place)?);
            Ok(())
        })?;
        let took = since(begin);
        let whole =
            (0..PLACES).fold(0u64, |sum, at| sum.wrapping_add(round ^ at)).wrapping_mul(block.n / PLACES);
        let wanted = (0..block.n % PLACES).fold(whole, |sum, at| sum.wrapping_add(round ^ at));
        ensure!(sum == wanted, "{} words add up to {sum:#x}, not {wanted:#x}", block.n);
        Ok(took)
    })
}

/// Places in the partner's segment, in an order that is known at run time only.
fn places<M: PerfMode>(
    session: &Session<'_, M>,
    room: GlobalPtr<u8>,
    count: u64,
    stride: u64,
) -> Result<Vec<GlobalPtr<u8>>> {
    let partner = session.partner().unwrap_or_else(|| session.rank());
    // An odd step visits all of a power of two before it comes back.
    let place = |at: u64| room.on(partner).add(at * 37 % count * stride);
    let places: Result<Vec<_>, _> = (0..count.next_power_of_two().min(count)).map(place).collect();
    Ok(black_box(places?))
}

/// `n` operations over the places in turn.
#[inline(always)]
fn walk<T: Copy>(
    places: &[T],
    block: &mut Block,
    mut f: impl FnMut(T) -> Result<(), gasworks::Error>,
) -> Result<()> {
    let mut left = block.n;
    block.begin();
    while left > 0 {
        let turn = left.min(places.len() as u64);
        for &place in &places[..turn as usize] {
            // Called at one place only, so that the operation stands in this loop and nowhere else.
            f(place)?;
            block.done();
        }
        left -= turn;
    }
    Ok(())
}

/// Whether all bytes at the places, and those that were got, are `number`.
fn check<M: PerfMode>(
    session: &Session<'_, M>,
    places: &[GlobalPtr<u8>],
    bytes: u64,
    number: u8,
    got: Option<&[u8]>,
) -> Result<()> {
    let mut back = vec![0; bytes as usize];
    for &place in places {
        session.agent.get(place, &mut back)?;
        ensure!(back.iter().all(|&byte| byte == number), "{place:?} does not hold {bytes} bytes of {number}");
    }
    ensure!(
        got.is_none_or(|got| got.iter().all(|&byte| byte == number)),
        "a get of {bytes} bytes got others"
    );
    Ok(())
}

/// By size, on one place and walking on; and copies in local memory in the same loop.
pub fn bandwidth<M: PerfMode>(session: &Session<'_, M>, way: Way) -> Result<()> {
    let bench = if way == Way::Put { "put-bandwidth" } else { "get-bandwidth" };
    let usual: Vec<u64> = (6..=26).step_by(2).map(|log| 1 << log).collect();
    let sizes = session.sizes(&usual);
    let largest = sizes.iter().copied().max().unwrap_or(64);
    let share = (AREAS / u64::from(session.ranks())).min(AREA);
    let asked = session.options.bytes.is_some();
    let area = if asked { share.max(2 * largest) } else { share }.min(AREA.max(2 * largest));
    let remote = session.job.alloc::<u8>(area + PAGE as u64)?;
    let partner = session.partner().unwrap_or_else(|| session.rank());
    let remote = black_box(GlobalPtr::new(partner, remote.offset().next_multiple_of(PAGE as u64)));
    let room = if session.leads() { area as usize } else { 0 };
    // All places begin a page: how two places lie to each other decides how fast a copy is.
    let (mut near, mut far) = (vec![1u8; room + PAGE], vec![2u8; room + PAGE]);
    let (near, far) = (paged(&mut near, room), paged(&mut far, room));
    if session.leads() {
        // Every page is there before anything is timed.
        session.agent.put(remote, near)?;
    }
    for bytes in sizes.into_iter().filter(|&bytes| asked || 2 * bytes <= area) {
        for (local, cold) in [(false, false), (true, false), (false, true), (true, true)] {
            let variant =
                [["warm", "cold"], ["local-warm", "local-cold"]][usize::from(local)][usize::from(cold)];
            if !session.wants(variant) {
                continue;
            }
            let transport = if local { "local" } else { "pshm" };
            let plan =
                Plan { transport, sum: Sum::Rate, single: bytes >= 4096, ..Plan::new(bench, variant, bytes) };
            let size = bytes as usize;
            // Places that a first-level cache holds, from all over a page: where in its page a place lies decides whether
            // a load waits for stores elsewhere. Or all of the area, whose lines are long out of every cache when their
            // turn comes again.
            let step = size.next_multiple_of(64);
            let turns = if cold { area as usize / step } else { (WARM / step).max(1) };
            let (mut next, mut number) = (0, 0u8);
            session.measure(&plan, |block| {
                if !session.leads() {
                    return Ok(0.0);
                }
                // The ends of what is copied last change from block to block, so that a copy not made is noticed.
                number = number.wrapping_add(1);
                let last = (next + block.n as usize - 1) % turns * step;
                let ends = [last, last + size - 1];
                for at in ends {
                    match (way, local) {
                        (Way::Put, _) => near[at] = number,
                        (Way::Get, true) => far[at] = number,
                        (Way::Get, false) => session.agent.put_value(remote.add(at as u64)?, number)?,
                    }
                }
                let begin = Instant::now();
                let agent = &session.agent;
                next = match (way, local) {
                    (Way::Put, false) => stride(block, next, step, turns, |at| {
                        agent.put(remote.add(at as u64)?, &near[at..][..size])
                    }),
                    (Way::Get, false) => stride(block, next, step, turns, |at| {
                        agent.get(remote.add(at as u64)?, &mut near[at..][..size])
                    }),
                    (Way::Put, true) => stride(block, next, step, turns, |at| {
                        copy(&mut far[at..][..size], &near[at..][..size]);
                        Ok(())
                    }),
                    (Way::Get, true) => stride(block, next, step, turns, |at| {
                        copy(&mut near[at..][..size], &far[at..][..size]);
                        Ok(())
                    }),
                }?;
                let took = since(begin);
                for at in ends {
                    let found = match (way, local) {
                        (Way::Put, false) => session.agent.get_value::<u8>(remote.add(at as u64)?)?,
                        (Way::Put, true) => far[at],
                        (Way::Get, _) => near[at],
                    };
                    ensure!(found == number, "byte {at} of a copy of {bytes} bytes is {found}, not {number}");
                }
                Ok(took)
            })?;
        }
    }
    Ok(())
}

/// `block.n` operations, `step` bytes apart, from place `next` of `turns` on. Returns which is next then.
#[inline(always)]
fn stride(
    block: &mut Block,
    mut next: usize,
    step: usize,
    turns: usize,
    mut f: impl FnMut(usize) -> Result<(), gasworks::Error>,
) -> Result<usize> {
    block.begin();
    for _ in 0..block.n {
        let at = next * step;
        next = if next + 1 < turns { next + 1 } else { 0 };
        f(at)?;
        block.done();
    }
    Ok(next)
}

const PAGE: usize = 4096;
/// What the places of a warm copy take together, at each side.
const WARM: usize = 16 << 10;

/// `len` of the bytes, from the first that begins a page.
fn paged(bytes: &mut [u8], len: usize) -> &mut [u8] {
    let at = bytes.as_ptr().align_offset(PAGE).min(PAGE);
    &mut bytes[at..][..len]
}

/// A copy that the compiler does not leave out.
#[inline(always)]
fn copy(target: &mut [u8], source: &[u8]) {
    black_box(target).copy_from_slice(source);
}
