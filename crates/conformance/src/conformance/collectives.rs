//! What all members of a team do together.

use super::pattern::{Random, check, made, tag};
use super::{Failure, Stage, SuiteMode, require};
use gasworks::{Atomic, AtomicOps, Error, Par, Team};

/// Lengths around what is sent eagerly, what fits into a message, what goes at a time, and what goes on a board in one piece.
const LENGTHS: [usize; 12] = [0, 1, 8, 513, 4096, 4097, 16_384, 16_385, 40_000, 65_536, 65_537, 200_001];

/// Everyone, the ranks backwards, and the odd and the even ones.
fn teams<'a, M: SuiteMode>(stage: &Stage<'a, M>) -> Result<Vec<Team<'a, M>>, Error> {
    let (agent, me) = (&stage.agent, stage.rank());
    let split = |color, key| stage.job.everyone().split(agent, Some(color), key);
    let others = [split(0, -i64::from(me))?, split(me % 2, 0)?];
    Ok([stage.job.everyone()].into_iter().chain(others.into_iter().flatten()).collect())
}

/// From every member, of every length.
pub(super) fn broadcast<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    for team in teams(stage)? {
        for (which, len) in (0..).zip(LENGTHS) {
            // Of one length from all, of the others from one member after the other.
            let roots = if len == 8 {
                0..team.size()
            } else {
                which as u32 % team.size()..which as u32 % team.size() + 1
            };
            for root in roots {
                let tag = tag(root, team.size(), which);
                let mut bytes = if root == team.member() { made(tag, len) } else { vec![9; len] };
                team.broadcast(&stage.agent, root, &mut bytes)?;
                check("a broadcast", tag, &bytes)?;
            }
        }
        let wrong = team.broadcast(&stage.agent, team.size(), &mut [0u8]).err();
        let said = wrong.map(|error| error.to_string()).unwrap_or_default();
        require!(said.contains("member"), "a broadcast from nobody: {said:?}");
    }
    Ok(stage.agent.barrier()?)
}

/// Sums, and what does not commute, to each and to all; numbers of elements of several sizes.
pub(super) fn reduce<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    for team in teams(stage)? {
        let size = u64::from(team.size());
        for count in [0, 3, 513, 2048, 2049, 20_000] {
            let own = |member: u64| (0..count as u64).map(move |at| at * at + member);
            let mut sums: Vec<u64> = own(team.member().into()).collect();
            team.reduce_all(&stage.agent, &mut sums, |a, b| a + b)?;
            let wanted = own(0).map(|first| first * size + size * (size - 1) / 2);
            require!(sums.iter().copied().eq(wanted), "a sum of {count} numbers of all");
        }
        for root in 0..team.size() {
            // Maps x -> a x + b, one after the other; of 24 bytes, which are no part of a chunk.
            let map = |member: u32| [u64::from(member) + 2, u64::from(member) * 7 + 1, 5];
            let after = |[a, b, _]: [u64; 3], [c, d, _]: [u64; 3]| {
                [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d), 5]
            };
            let wanted = (0..team.size()).map(map).reduce(after).unwrap_or_default();
            let mut maps = vec![map(team.member()); if root == 0 { 4000 } else { 100 }];
            team.reduce(&stage.agent, root, &mut maps, after)?;
            let wanted = if root == team.member() { wanted } else { map(team.member()) };
            require!(maps.iter().all(|&found| found == wanted), "maps are {:?}, not {wanted:?}", maps[0]);
        }
        // Floating numbers, whose sum depends on its order, have the same one on all, each time; also many of them, which go by pieces.
        for count in [2049, 9000] {
            let own = |at: usize| f64::from(team.member() + 1).powi(-7) * at as f64;
            let mut sums: Vec<f64> = (0..count).map(own).collect();
            team.reduce_all(&stage.agent, &mut sums, |a, b| a + b)?;
            let bits: Vec<u64> = sums.iter().flat_map(|sum| [sum.to_bits(), !sum.to_bits()]).collect();
            let mut all = bits.clone();
            team.reduce_all(&stage.agent, &mut all, |a, b| a & b)?;
            require!(all == bits, "members have different sums of {count}");
        }
        let parts = |round: u64| f64::from(team.member() + 1).powi(-7) * round as f64;
        let mut before = None;
        for _ in 0..2 {
            let mut sum = [parts(3)];
            team.reduce_all(&stage.agent, &mut sum, |a, b| a + b)?;
            let [bits] = sum.map(f64::to_bits);
            require!(before.replace(bits).is_none_or(|before| before == bits), "two sums of the same");
            let mut all = [bits, !bits];
            team.reduce_all(&stage.agent, &mut all, |a, b| a & b)?;
            require!(all == [bits, !bits], "members have different sums");
        }
    }
    Ok(stage.agent.barrier()?)
}

/// Numbers of a type that is named, by operations that are: those of one word a network's engines may combine, also several that are under way, and beside a barrier.
pub(super) fn numbers<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    fn both<M: SuiteMode, T: Atomic + PartialEq + std::fmt::Debug>(
        stage: &Stage<'_, M>,
        team: &Team<'_, M>,
        op: AtomicOps,
        of: impl Fn(u32) -> T,
        combine: impl Fn(T, T) -> T,
    ) -> Result<(), Failure> {
        let wanted = (0..team.size()).map(&of).reduce(combine);
        for count in [1, 3] {
            let mut values = vec![of(team.member()); count];
            team.reduce_all_by(&stage.agent, &mut values, op)?;
            require!(
                values.iter().all(|value| Some(*value) == wanted),
                "{op:?} of {count}: {values:?}, not {wanted:?}"
            );
            let mut values = vec![of(team.member()); count];
            let root = team.size() - 1;
            team.reduce_by(&stage.agent, root, &mut values, op)?;
            let wanted =
                if team.member() == root { wanted } else { Some(of(root)).and(Some(of(team.member()))) };
            require!(
                values.iter().all(|value| Some(*value) == wanted),
                "{op:?} of {count} to one: {values:?}"
            );
        }
        Ok(())
    }
    let agent = &stage.agent;
    for team in teams(stage)? {
        let bits = |member: u32| 0xF0F0_1234_8000_FFFFu64.rotate_left(member);
        both(stage, &team, AtomicOps::AND, bits, |a, b| a & b)?;
        both(stage, &team, AtomicOps::OR, bits, |a, b| a | b)?;
        both(stage, &team, AtomicOps::XOR, bits, |a, b| a ^ b)?;
        both(stage, &team, AtomicOps::ADD, bits, u64::wrapping_add)?;
        both(stage, &team, AtomicOps::MAX, bits, u64::max)?;
        both(stage, &team, AtomicOps::ADD, |member| i32::MAX - member as i32, i32::wrapping_add)?;
        both(stage, &team, AtomicOps::MIN, |member| 5 - i64::from(member), i64::min)?;
        both(stage, &team, AtomicOps::XOR, |member| 0x8000_0001u32.rotate_left(member), |a, b| a ^ b)?;
        both(stage, &team, AtomicOps::ADD, |member| f64::from(member) + 0.5, |a, b| a + b)?;
        let ops = [AtomicOps::ADD, AtomicOps::OR, AtomicOps::ADD, AtomicOps::MAX];
        let begun = (0..)
            .zip(ops)
            .map(|(which, op)| team.begin_reduce_all_by(agent, vec![u64::from(team.member()) + which], op));
        let begun = begun.collect::<Result<Vec<_>, _>>()?;
        agent.barrier()?;
        let mut last = [team.member()];
        team.reduce_all_by(agent, &mut last, AtomicOps::MAX)?;
        require!(last == [team.size() - 1], "the last member is {last:?}");
        // The latest first.
        for (which, (op, event)) in [0u64, 1, 2, 3].into_iter().zip(ops.into_iter().zip(begun)).rev() {
            let members = (0..u64::from(team.size())).map(|member| member + which);
            let wanted = match op {
                AtomicOps::ADD => members.sum(),
                AtomicOps::OR => members.fold(0, |all, member| all | member),
                _ => members.max().unwrap_or(0),
            };
            let found = event.wait(agent)?;
            require!(found == [wanted], "{op:?}, number {which}: {found:?}, not {wanted}");
        }
        let wrong = team.reduce_all_by(agent, &mut [1.5f32], AtomicOps::AND).err();
        let said = wrong.map(|error| error.to_string()).unwrap_or_default();
        require!(said.contains("there is none"), "bits of numbers with a fraction: {said:?}");
    }
    Ok(agent.barrier()?)
}

/// Blocks of all lengths to and from each member, and between all; as many for each, and others for each.
pub(super) fn blocks<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let agent = &stage.agent;
    for team in teams(stage)? {
        let (own, size) = (team.member(), team.size());
        let others =
            |len: usize| (0..size).map(move |member| (len * member as usize) % (len + 3)).collect::<Vec<_>>();
        for (number, len) in (0..).zip([0, 7, 5000, 16_385, 70_000]) {
            let each = others(len);
            let starts = |counts: &[usize]| {
                counts
                    .iter()
                    .scan(0, |end, count| Some(std::mem::replace(end, *end + count)))
                    .collect::<Vec<_>>()
            };
            for root in [number % size] {
                let is_root = own == root;
                let mine = made(tag(own, root, 1), len);
                let mut all = vec![0u8; if is_root { len * size as usize } else { 0 }];
                team.gather(agent, root, &mine, &mut all)?;
                for (from, block) in (0..).zip(all.chunks_exact(len.max(1))) {
                    check("gathered", tag(from, root, 1), block)?;
                }
                let mut back = vec![0u8; len];
                team.scatter(agent, root, &all, &mut back)?;
                check("scattered", tag(own, root, 1), &back)?;
                let mine = made(tag(own, root, 2), each[own as usize]);
                let mut all = vec![0u8; if is_root { each.iter().sum() } else { 0 }];
                let counts = if is_root { &each[..] } else { &[] };
                team.gather_each(agent, root, &mine, &mut all, counts)?;
                for ((from, start), count) in (0..).zip(starts(counts)).zip(counts) {
                    check("gathered of each", tag(from, root, 2), &all[start..][..*count])?;
                }
                let mut back = vec![0u8; mine.len()];
                team.scatter_each(agent, root, &all, counts, &mut back)?;
                check("scattered to each", tag(own, root, 2), &back)?;
            }
            let mut all = vec![0u8; len * size as usize];
            team.all_gather(agent, &made(tag(own, 0, 3), len), &mut all)?;
            for (from, block) in (0..).zip(all.chunks_exact(len.max(1))) {
                check("gathered by all", tag(from, 0, 3), block)?;
            }
            let to: Vec<u8> = (0..size).flat_map(|to| made(tag(own, to, 4), len)).collect();
            team.all_to_all(agent, &to, &mut all)?;
            for (from, block) in (0..).zip(all.chunks_exact(len.max(1))) {
                check("from each to each", tag(from, own, 4), block)?;
            }
            // From one to another as many as their numbers say.
            let count = |from: u32, to: u32| (len * (1 + from as usize)) / (1 + to as usize);
            let going: Vec<usize> = (0..size).map(|to| count(own, to)).collect();
            let coming: Vec<usize> = (0..size).map(|from| count(from, own)).collect();
            let to: Vec<u8> = (0..).zip(&going).flat_map(|(to, len)| made(tag(own, to, 5), *len)).collect();
            let mut from = vec![0u8; coming.iter().sum()];
            team.all_to_all_each(agent, (&to, &going), (&mut from, &coming))?;
            for ((of, start), count) in (0..).zip(starts(&coming)).zip(&coming) {
                check("from each to each, so many", tag(of, own, 5), &from[start..][..*count])?;
            }
        }
        let wrong = team.all_gather(agent, &[0u8; 2], &mut vec![0u8; 2 * size as usize + 1]).err();
        let said = wrong.map(|error| error.to_string()).unwrap_or_default();
        require!(said.starts_with("all_gather: "), "room for one too many: {said:?}");
    }
    Ok(agent.barrier()?)
}

/// Of the members up to each, and before each; what does not commute, in chunks that are no multiple of it.
pub(super) fn scans<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let agent = &stage.agent;
    for team in teams(stage)? {
        let map = |member: u32| [u64::from(member) + 2, u64::from(member) * 7 + 1, 5];
        let after = |[a, b, _]: [u64; 3], [c, d, _]: [u64; 3]| {
            [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d), 5]
        };
        for count in [0, 1, 100, 700, 9000] {
            let mut maps = vec![map(team.member()); count];
            team.scan(agent, &mut maps, after)?;
            let wanted = (0..=team.member()).map(map).reduce(after).unwrap_or_default();
            require!(maps.iter().all(|&found| found == wanted), "up to {}: {:?}", team.member(), maps[0]);
            let mut maps = vec![map(team.member()); count];
            team.scan_before(agent, &mut maps, after)?;
            let wanted = (0..team.member()).map(map).reduce(after).unwrap_or(map(0));
            require!(maps.iter().all(|&found| found == wanted), "before {}: {:?}", team.member(), maps[0]);
        }
    }
    Ok(agent.barrier()?)
}

/// A member that begins many before the others come: what is sent to these is kept, and no more than it may be.
pub(super) fn ahead<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me) = (&stage.agent, stage.job.everyone(), stage.rank());
    for late in 0..stage.ranks() {
        agent.barrier()?;
        if me == late {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for round in 0..50u64 {
            let root = round as u32 % stage.ranks();
            let mut bytes = if me == root { made(tag(root, late, round), 700) } else { vec![0; 700] };
            everyone.broadcast(agent, root, &mut bytes)?;
            check("a broadcast to one that is late", tag(root, late, round), &bytes)?;
        }
    }
    Ok(agent.barrier()?)
}

/// All kinds one after the other, with lengths around those at which members go another way: so that each follows each.
pub(super) fn mixed<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    const LENGTHS: [usize; 12] = [0, 8, 104, 112, 120, 1032, 4096, 4104, 16_384, 16_392, 32_776, 50_000];
    let agent = &stage.agent;
    // All ranks draw the same numbers.
    let mut random = Random(0x3157);
    for team in teams(stage)? {
        let (own, size) = (team.member(), team.size());
        for round in 0..150u64 {
            let (kind, len) = (random.below(7), LENGTHS[random.below(LENGTHS.len() as u64) as usize]);
            let root = random.below(1 << 16) as u32 % size;
            let mine = |to: u32| made(tag(own, to, round), len);
            let mut all = vec![0u8; len * size as usize];
            let count = len / 8;
            match kind {
                0 => {
                    let mut bytes = if own == root { mine(0) } else { vec![7; len] };
                    team.broadcast(agent, root, &mut bytes)?;
                    check("a broadcast", tag(root, 0, round), &bytes)?;
                }
                1 => {
                    team.all_gather(agent, &mine(0), &mut all)?;
                    for (from, block) in (0..).zip(all.chunks_exact(len.max(1))) {
                        check("gathered by all", tag(from, 0, round), block)?;
                    }
                }
                2 => {
                    let to: Vec<u8> = (0..size).flat_map(mine).collect();
                    team.all_to_all(agent, &to, &mut all)?;
                    for (from, block) in (0..).zip(all.chunks_exact(len.max(1))) {
                        check("from each to each", tag(from, own, round), block)?;
                    }
                }
                3 => {
                    team.gather(agent, root, &mine(1), if own == root { &mut all } else { &mut [] })?;
                    for (from, block) in (0..).zip(all.chunks_exact(len.max(1))).filter(|_| own == root) {
                        check("gathered", tag(from, 1, round), block)?;
                    }
                    let mut back = vec![0; len];
                    team.scatter(agent, root, &all, &mut back)?;
                    check("scattered", tag(own, 1, round), &back)?;
                }
                4 => {
                    let mut sums = vec![u64::from(own) + round; count];
                    team.reduce_all(agent, &mut sums, |a, b| a + b)?;
                    let size = u64::from(size);
                    let wanted = size * (size - 1) / 2 + size * round;
                    require!(sums.iter().all(|&sum| sum == wanted), "a sum of {count}: {:?}", sums.first());
                }
                5 => {
                    let mut last = vec![u64::from(own); count];
                    team.reduce(agent, root, &mut last, |_, b| b)?;
                    let wanted = if own == root { size - 1 } else { own };
                    require!(last.iter().all(|&last| last == wanted.into()), "the last: {:?}", last.first());
                }
                _ => {
                    let mut up_to = vec![1u64; count];
                    team.scan(agent, &mut up_to, |a, b| a + b)?;
                    let wanted = u64::from(own) + 1;
                    require!(up_to.iter().all(|&sum| sum == wanted), "up to {own}: {:?}", up_to.first());
                    team.scan_before(agent, &mut up_to, |a, b| a + b)?;
                    let wanted = (1..=u64::from(own)).sum::<u64>().max(u64::from(own == 0));
                    require!(up_to.iter().all(|&sum| sum == wanted), "before {own}: {:?}", up_to.first());
                }
            }
        }
    }
    Ok(agent.barrier()?)
}

/// Many that are begun before any is waited for, short ones and long ones, of all kinds, with others between that are waited for at once.
pub(super) fn under_way<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    let everyone = stage.job.everyone();
    for team in teams(stage)? {
        many_under_way(stage, &team)?;
    }
    // One that is not waited for goes on, and what it owns stays until it is over; short or long.
    drop(everyone.begin_all_gather(agent, made(tag(me, 0, 99), 5000))?);
    drop(everyone.begin_all_gather(agent, made(tag(me, 0, 99), 50_000))?);
    let wrong = everyone.begin_broadcast(agent, ranks, vec![0u8; 8]);
    require!(wrong.is_err(), "a root that is no member");
    Ok(agent.barrier()?)
}

fn many_under_way<M: SuiteMode>(stage: &Stage<'_, M>, team: &Team<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, team.member(), team.size());
    for late in 0..2 {
        agent.barrier()?;
        if me == late {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let (mut begun, mut sums) = (Vec::new(), Vec::new());
        for round in 0..28u64 {
            let len = [8, 5000, 50_000, 16_384, 40_000, 4096, 120, 16][(round % 8) as usize];
            let root = round as u32 % ranks;
            let mine = |to: u32| made(tag(me, to, round), len);
            let all = || (0..ranks).flat_map(mine).collect();
            // The blocks that are to come, in order; of nobody: nothing is.
            let from_all = |to: u32| (0..ranks).map(|from| tag(from, to, round)).collect::<Vec<_>>();
            let (event, wanted) = match round % 7 {
                0 => (team.begin_broadcast(agent, root, mine(0))?, vec![tag(root, 0, round)]),
                1 => (team.begin_all_gather(agent, mine(0))?, from_all(0)),
                2 => (team.begin_all_to_all(agent, all())?, from_all(me)),
                3 => {
                    let wanted = if me == root { from_all(1) } else { Vec::new() };
                    (team.begin_gather(agent, root, mine(1))?, wanted)
                }
                4 => {
                    let all = if me == root { all() } else { Vec::new() };
                    (team.begin_scatter(agent, root, all, len)?, vec![tag(root, me, round)])
                }
                kind => {
                    let (own, add) = (vec![u64::from(me) + 1; len / 8], |a, b| a + b);
                    let (event, last) = match kind {
                        5 => (team.begin_reduce_all(agent, own, add)?, ranks),
                        _ if round < 14 => (team.begin_scan(agent, own, add)?, me + 1),
                        _ => (team.begin_reduce(agent, root, own, add)?, if me == root { ranks } else { 0 }),
                    };
                    let sum = if last == 0 { me + 1 } else { last * (last + 1) / 2 };
                    sums.push((event, u64::from(sum), len / 8));
                    continue;
                }
            };
            begun.push((event, wanted, len));
            if round % 8 == 7 {
                let mut sum = [1u64; 2];
                team.reduce_all(agent, &mut sum, |a, b| a + b)?;
                require!(sum == [u64::from(ranks); 2], "a sum between others: {sum:?}");
                agent.barrier()?;
            }
        }
        for (event, sum, count) in sums {
            let found = event.wait(agent)?;
            require!(found == vec![sum; count], "a sum under way: {:?}, not {sum}", found.first());
        }
        for (event, wanted, len) in begun.into_iter().rev() {
            let found = event.wait(agent)?;
            require!(
                found.len() == wanted.len() * len,
                "{} bytes under way, not {}",
                found.len(),
                wanted.len() * len
            );
            for (tag, block) in wanted.into_iter().zip(found.chunks_exact(len)) {
                check("one under way", tag, block)?;
            }
        }
    }
    Ok(())
}

/// What one member alone is told is wrong, which is none of what comes after it, whichever of the team's collectives it is; and what is the others', too.
pub(super) fn wrong<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me, ranks) = (&stage.agent, stage.job.everyone(), stage.rank(), stage.ranks());
    for round in 0..40u64 {
        let mut bytes = [0; 24];
        // The last member has nobody below it.
        let root = if me == ranks - 1 { ranks } else { 0 };
        let outcome = everyone.broadcast(agent, root, &mut bytes);
        require!(outcome.is_err() == (me == ranks - 1), "a root that is none, on rank {me}: {outcome:?}");
        let mut bytes = if me == 1 { made(tag(1, 0, round), 24) } else { vec![0; 24] };
        everyone.broadcast(agent, 1, &mut bytes)?;
        check("a broadcast after what was wrong", tag(1, 0, round), &bytes)?;
    }
    // Of other lengths: who gets it is told, whether it comes first or is waited for, and whether it is short or long.
    for (sent, wanted) in
        [(8usize, 200_000usize), (200_000, 8), (8, 16), (200_000, 100_000), (180_000, 180_001)]
    {
        for late in [0, 1] {
            let pair = everyone.split(agent, Some(me / 2), 0)?;
            let pair = pair.ok_or_else(|| Failure::Wrong("a member has no team".into()))?;
            if pair.size() == 2 {
                if pair.member() == late {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                let len = if pair.member() == 0 { sent } else { wanted };
                let outcome = pair.broadcast(agent, 0, &mut vec![1u8; len]);
                let said = outcome.err().map(|error| error.to_string()).unwrap_or_default();
                // What was all sent is no concern of who has sent it.
                let is_content = pair.member() == 0 && sent <= 4096;
                require!(
                    is_content == said.is_empty(),
                    "{sent} bytes for {wanted}, on member {}: {said:?}",
                    pair.member()
                );
                require!(is_content || said.contains("another number of values"), "{said}");
                // What comes after it is as it should be, however much either has gone through.
                for round in 0..3 {
                    let mut bytes = vec![pair.member() as u8; 24 + round * 20_000];
                    pair.broadcast(agent, 1, &mut bytes)?;
                    require!(bytes.iter().all(|&byte| byte == 1), "a broadcast after one of other lengths");
                }
            }
            agent.barrier()?;
        }
    }
    Ok(agent.barrier()?)
}

/// Collectives at random, on teams that are split at random, all at the same time.
pub(super) fn at_random<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone) = (&stage.agent, stage.job.everyone());
    // All ranks draw the same numbers.
    let mut random = Random(0xC011);
    for _ in 0..8 {
        let (colors, salt) = (1 + random.below(3), random.below(1 << 20));
        let of = |rank: u32| (u64::from(rank) * 2_654_435_761 + salt) >> 3;
        let key = (of(stage.rank()) % 17) as i64;
        let color = (of(stage.rank()) % colors) as u32;
        let team = everyone.split(agent, Some(color), key)?;
        let team = team.ok_or_else(|| Failure::Wrong("a member has no team".into()))?;
        for round in 0..6 {
            let (kind, len, draw) = (random.below(4), random.below(9000) as usize, random.below(1 << 16));
            let root = (draw % u64::from(team.size())) as u32;
            match kind {
                0 => {
                    let tag = tag(root, color, round);
                    let mut bytes = if root == team.member() { made(tag, len) } else { vec![0; len] };
                    team.broadcast(agent, root, &mut bytes)?;
                    check("a broadcast at random", tag, &bytes)?;
                }
                1 => {
                    let mut least = vec![u64::from(team.member()) + draw; len / 8];
                    team.reduce_all(agent, &mut least, |a, b| a.min(b))?;
                    require!(least.iter().all(|&least| least == draw), "the least is {:?}", least.first());
                }
                2 => {
                    let mut count = vec![1u32; len / 4];
                    team.reduce(agent, root, &mut count, |a, b| a + b)?;
                    let wanted = if root == team.member() { team.size() } else { 1 };
                    require!(count.iter().all(|&count| count == wanted), "counted {:?}", count.first());
                }
                _ => agent.on(&team).barrier()?,
            }
        }
    }
    Ok(agent.barrier()?)
}

/// Several threads of each rank are in collectives of one team at a time, all alike: which of them meet is as it comes, but what each gives comes to one thread of
/// every rank.
pub(super) fn threads(stage: &Stage<'_, Par>) -> Result<(), Failure> {
    const THREADS: u64 = 3;
    for team in teams(stage)? {
        let (job, team, size) = (stage.job, &team, u64::from(team.size()));
        for (count, rounds) in [(1usize, 40u64), (700, 12), (3000, 6)] {
            let number = |member: u64, thread: u64, round: u64| (member * THREADS + thread) * rounds + round;
            let own = u64::from(team.member());
            let work = |thread| -> Result<u64, Failure> {
                let (agent, mut all) = (job.agent()?, 0);
                for round in 0..rounds {
                    let mut sums = vec![number(own, thread, round); count];
                    team.reduce_all(&agent, &mut sums, |a, b| a + b)?;
                    require!(sums.iter().all(|sum| *sum == sums[0]), "sums of {count} numbers differ");
                    all += sums[0];
                }
                Ok(all)
            };
            let sums = std::thread::scope(|scope| {
                let started: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
                let panicked = |_| Failure::Wrong("a thread panicked".into());
                started
                    .into_iter()
                    .map(|thread| thread.join().map_err(panicked)?)
                    .sum::<Result<u64, Failure>>()
            })?;
            let last = size * THREADS * rounds;
            let wanted = last * (last - 1) / 2;
            require!(sums == wanted, "all that {THREADS} threads get is {sums}, not {wanted}");
        }
    }
    Ok(stage.agent.barrier()?)
}
