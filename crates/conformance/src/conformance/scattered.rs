//! Data that lies in many pieces.

use super::pattern::{Random, made, tag};
use super::{Failure, Stage, SuiteMode, require};
use gasworks::{Event, GlobalPtr, Strided, Vector};

/// Bytes of the zone that the cases use.
const ZONE: usize = 96 << 10;

/// Makes the zone of the next rank what a model of it says.
fn clear<M: SuiteMode>(stage: &Stage<'_, M>, salt: u64) -> Result<Vec<u8>, Failure> {
    let model = made(tag(stage.rank(), stage.next(), salt), ZONE);
    stage.agent.put(stage.open(stage.next()), &model)?;
    Ok(model)
}

/// Whether the zone of the next rank is as the model.
fn compare<M: SuiteMode>(stage: &Stage<'_, M>, model: &[u8], what: &str) -> Result<(), Failure> {
    let mut found = vec![0; ZONE];
    stage.agent.get(stage.open(stage.next()), &mut found)?;
    let differs = found.iter().zip(model).position(|(found, wanted)| found != wanted);
    require!(differs.is_none(), "after {what} byte {differs:?} of the zone is another than the model's");
    Ok(())
}

/// A side of an array of these elements in so many bytes: the first element and the strides. No two elements overlap.
fn side(random: &mut Random, element: usize, counts: &[usize], room: usize) -> Option<(usize, Vec<isize>)> {
    let mut order: Vec<_> = (0..counts.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    let (mut extent, mut first, mut strides) = (element, 0, vec![0; counts.len()]);
    for dimension in order {
        let stride = extent + [0, 0, 1, 24][random.below(4) as usize];
        let far = stride * (counts[dimension] - 1);
        let is_backwards = random.below(3) == 0;
        strides[dimension] = if is_backwards { -(stride as isize) } else { stride as isize };
        first += if is_backwards { far } else { 0 };
        extent += far;
    }
    let free = room.checked_sub(extent)?;
    Some((first + random.below(free as u64 + 1) as usize, strides))
}

/// Where all elements are.
fn places(first: usize, strides: &[isize], counts: &[usize]) -> Vec<usize> {
    let mut places = vec![first];
    for (&stride, &count) in strides.iter().zip(counts) {
        let of = |at: usize| places.iter().map(move |place| place.wrapping_add_signed(stride * at as isize));
        places = (0..count).flat_map(of).collect();
    }
    places
}

/// A put and a get back of an array that nobody has thought of before.
fn an_array<M: SuiteMode>(
    stage: &Stage<'_, M>,
    random: &mut Random,
    model: &mut [u8],
) -> Result<(), Failure> {
    let (agent, zone) = (&stage.agent, stage.open(stage.next()));
    let levels = random.below(6) as usize;
    let element = [1, 4, 8, 16, 64, 600, 5000][random.below(7) as usize];
    let counts: Vec<_> =
        (0..levels).map(|_| 1 + random.below(if element < 100 { 6 } else { 3 }) as usize).collect();
    let (here, there) = (side(random, element, &counts, ZONE), side(random, element, &counts, ZONE));
    let (Some((first, local)), Some((place, remote))) = (here, there) else { return Ok(()) };
    let array = Strided { element, counts: &counts, first, local: &local, remote: &remote };
    let what = format!("a put of {array:?} from byte {place}");
    let mut source = made(random.below(1 << 40), ZONE);
    let pairs = || places(first, &local, &counts).into_iter().zip(places(place, &remote, &counts));
    for (here, there) in pairs() {
        model[there..][..element].copy_from_slice(&source[here..][..element]);
    }
    let target = zone.add(place as u64)?;
    match random.below(3) {
        0 => agent.put_strided(target, &source, &array)?,
        1 => agent.scope(|scope| scope.put_strided(target, &source, &array))?,
        _ => source = agent.put_strided_owned(target, source, &array)?.wait(agent)?,
    }
    compare(stage, model, &what)?;
    // What is got lies where it came from, and all other bytes are as before.
    let mut wanted = vec![0x3C; ZONE];
    for (here, _) in pairs() {
        wanted[here..][..element].copy_from_slice(&source[here..][..element]);
    }
    let mut back = vec![0x3C; ZONE];
    match random.below(3) {
        0 => agent.get_strided(target, &mut back, &array)?,
        1 => agent.scope(|scope| scope.get_strided(target, &mut back, &array))?,
        _ => back = agent.get_strided_owned(target, back, &array)?.wait(agent)?,
    }
    require!(back == wanted, "what was got after {what} differs");
    Ok(())
}

/// Pieces of so many bytes altogether that do not overlap.
fn cut(random: &mut Random, total: usize, longest: u64) -> Vec<(usize, usize)> {
    let (mut pieces, mut left) = (Vec::new(), total);
    while left > 0 {
        let len = left.min(random.below(longest + 1) as usize);
        pieces.push(len);
        left -= len;
    }
    let mut at = 0;
    let mut pieces: Vec<_> = pieces
        .into_iter()
        .map(|len| {
            let place = at + random.below(4) as usize;
            at = place + len;
            (place, len)
        })
        .collect();
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, random.below(at as u64 + 1) as usize);
    }
    pieces
}

/// The same of a vector.
fn a_vector<M: SuiteMode>(
    stage: &Stage<'_, M>,
    random: &mut Random,
    model: &mut [u8],
) -> Result<(), Failure> {
    let (agent, zone) = (&stage.agent, stage.open(stage.next()));
    let total = random.below(20_000) as usize;
    let longest = [20, 300, 9000][random.below(3) as usize];
    let other = 1 + random.below(2 * longest);
    let (here, there) = (cut(random, total, longest), cut(random, total, other));
    let end = |pieces: &[(usize, usize)]| pieces.iter().map(|(at, len)| at + len).max().unwrap_or(0);
    if there.is_empty() || end(&here).max(end(&there)) > ZONE {
        return Ok(());
    }
    let source = made(random.below(1 << 40), ZONE);
    let each =
        |pieces: &[(usize, usize)]| pieces.iter().flat_map(|&(at, len)| at..at + len).collect::<Vec<_>>();
    for (here, there) in each(&here).into_iter().zip(each(&there)) {
        model[there] = source[here];
    }
    let places: Result<Vec<_>, gasworks::Error> =
        there.iter().map(|&(at, len)| Ok((zone.add(at as u64)?, len))).collect();
    let places = places?;
    let vector = Vector::new(&places)?;
    let sources: Vec<&[u8]> = here.iter().map(|&(at, len)| &source[at..at + len]).collect();
    if random.below(2) == 0 {
        agent.put_vector(vector, &sources)?;
    } else {
        agent.scope(|scope| scope.put_vector(vector, &sources))?;
    }
    compare(stage, model, &format!("a put of {total} bytes from {here:?} to {there:?}"))?;
    let mut back = vec![0; total];
    let mut rest = &mut back[..];
    let mut targets = Vec::new();
    while !rest.is_empty() {
        let len = rest.len().min(1 + random.below(2 * longest) as usize);
        let (target, others) = rest.split_at_mut(len);
        targets.push(target);
        rest = others;
    }
    if random.below(2) == 0 {
        agent.get_vector(vector, &mut targets)?;
    } else {
        agent.scope(|scope| scope.get_vector(vector, targets))?;
    }
    require!(back == sources.concat(), "what was got of {total} bytes from {there:?} differs");
    Ok(())
}

/// The same of indexed blocks of words.
fn blocks<M: SuiteMode>(stage: &Stage<'_, M>, random: &mut Random, model: &mut [u8]) -> Result<(), Failure> {
    let (agent, zone) = (&stage.agent, stage.open(stage.next()).cast::<u64>());
    let block = [1, 1, 2, 8, 500][random.below(5) as usize];
    let slots = ZONE as u64 / 8 / block;
    let (count, step) = (random.below(slots.min(3000)), 2 * random.below(1000) + 1);
    // An odd step visits each of a power of two once.
    let ring = slots.next_power_of_two();
    let numbers = (0..ring).map(|at| at * step % ring).filter(|number| *number < slots);
    let indices: Vec<_> = numbers.take(count as usize).map(|number| number * block).collect();
    let source: Vec<u64> = (0..count * block).map(|_| random.below(u64::from(u32::MAX))).collect();
    for (words, index) in source.chunks(block as usize).zip(&indices) {
        let bytes = bytemuck::cast_slice(words);
        model[8 * *index as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    agent.put_indexed(zone, &indices, block as usize, &source)?;
    compare(stage, model, &format!("a put of {count} blocks of {block} words"))?;
    let mut back = vec![0; source.len()];
    agent.get_indexed(zone, &indices, block as usize, &mut back)?;
    require!(back == source, "what was got of {count} blocks of {block} words differs");
    Ok(())
}

/// All forms at random, against a model of the other rank's bytes.
pub(super) fn at_random<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let mut random = Random(0x5CA7 + u64::from(stage.rank()));
    let mut model = clear(stage, 0)?;
    for _ in 0..30 {
        match random.below(4) {
            0 | 1 => an_array(stage, &mut random, &mut model)?,
            2 => a_vector(stage, &mut random, &mut model)?,
            _ => blocks(stage, &mut random, &mut model)?,
        }
    }
    Ok(stage.agent.barrier()?)
}

/// A matrix, transposed on its way there, and back; and long rows.
pub(super) fn transposed<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, zone) = (&stage.agent, stage.open(stage.next()).cast::<u64>());
    let (rows, columns) = (90usize, 70usize);
    let number = |row: usize, column: usize| (row * 1000 + column) as u64 + (u64::from(stage.rank()) << 32);
    let matrix: Vec<u64> = (0..rows * columns).map(|at| number(at / columns, at % columns)).collect();
    let there = [rows as isize, 1];
    let array = Strided {
        element: 1,
        counts: &[columns, rows],
        first: 0,
        local: &[1, columns as isize],
        remote: &there,
    };
    agent.put_strided(zone, &matrix, &array)?;
    let mut found = vec![0; rows * columns];
    agent.get(zone, &mut found)?;
    let is_right = |(at, word): (usize, &u64)| *word == number(at % rows, at / rows);
    require!(found.iter().enumerate().all(is_right), "a matrix was not transposed");
    let mut back = vec![0; rows * columns];
    agent.get_strided(zone, &mut back, &array)?;
    require!(back == matrix, "a matrix was not transposed back");
    // Rows that are long enough to go one by one, from the last to the first.
    let rows = Strided { element: 1000, counts: &[6], first: 0, local: &[1000], remote: &[-1010] };
    agent.put_strided(zone.add(5 * 1010)?, &matrix[..6000], &rows)?;
    let mut last = vec![0; 1000];
    agent.get(zone, &mut last)?;
    require!(last == matrix[5000..6000], "rows were not turned round");
    let mut back = vec![0; 6000];
    agent.get_strided(zone.add(5 * 1010)?, &mut back, &rows)?;
    require!(back == matrix[..6000], "rows were not turned back");
    Ok(agent.barrier()?)
}

/// Every rank puts to all it talks to at once, with events, and others know a rank by another number.
pub(super) fn all_at_once<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let len = 3000usize;
    let array = Strided { element: 1, counts: &[len], first: 0, local: &[1], remote: &[3] };
    agent.barrier()?;
    let mut events = Vec::new();
    for to in stage.peers() {
        let zone = stage.landing_at(to, 0);
        events.push(agent.put_strided_owned(zone, made(tag(me, to, 1), len), &array)?);
    }
    let sources = Event::all(agent, events)?;
    require!(
        sources.iter().zip(stage.peers()).all(|(source, to)| *source == made(tag(me, to, 1), len)),
        "a source has changed"
    );
    agent.barrier()?;
    let mut gets = Vec::new();
    for of in stage.peers() {
        gets.push((of, agent.get_strided_owned(stage.landing_at(of, 0), vec![0; len], &array)?));
    }
    for (of, get) in gets {
        require!(get.wait(agent)? == made(tag(me, of, 1), len), "what this rank has put to {of}");
    }
    let backwards = stage.job.everyone().split(agent, Some(0), -i64::from(me))?;
    let team = backwards.ok_or_else(|| Failure::Wrong("a member has no team".into()))?;
    let member = team.size() - 1 - stage.next();
    let place = GlobalPtr::<u8>::new(member, stage.open(0).offset());
    agent.on(&team).put_strided(place, &made(tag(me, member, 2), len), &array)?;
    let mut back = vec![0; len];
    agent.get_strided(stage.open(stage.next()), &mut back, &array)?;
    require!(back == made(tag(me, member, 2), len), "what was put to member {member} of a team");
    Ok(agent.barrier()?)
}

/// Elements of eight bytes, one behind the other here.
fn eights<'a>(counts: &'a [usize], remote: &'a [isize]) -> Strided<'a> {
    Strided { element: 8, counts, first: 0, local: &[8], remote }
}

/// What is wrong moves no byte.
pub(super) fn wrong<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to) = (&stage.agent, stage.next());
    let model = clear(stage, 1)?;
    let (zone, source) = (stage.open(to), vec![0x77; 4096]);
    let len = agent.segment(to)?.len();
    let wrong = |what: &str, outcome: Result<(), gasworks::Error>, word: &str| {
        let said = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        require!(said.contains(word), "{what}: {said:?}, which does not say {word:?}");
        compare(stage, &model, what)
    };
    let across = len as isize / 3;
    wrong("an array beyond the end", agent.put_strided(zone, &source, &eights(&[4], &[across])), "outside")?;
    wrong(
        "an array before the start",
        agent.put_strided(zone, &source, &eights(&[4], &[-across])),
        "address counts",
    )?;
    wrong(
        "an array around the end",
        agent.put_strided(zone, &source, &eights(&[3], &[isize::MAX])),
        "address counts",
    )?;
    wrong("an array beyond its slice", agent.put_strided(zone, &source, &eights(&[513], &[8])), "slice")?;
    let nobody = zone.on(stage.ranks());
    wrong("an array of nobody's", agent.put_strided(nobody, &source, &eights(&[4], &[8])), "rank")?;
    wrong("nothing of nobody's", agent.put_strided(nobody, &source, &eights(&[0], &[8])), "rank")?;
    let pieces = [(zone, 100), (GlobalPtr::new(to, len - 50), 51)];
    let vector = Vector::new(&pieces)?;
    wrong("a vector beyond the end", agent.put_vector(vector, &[&source[..151]]), "outside")?;
    wrong(
        "a vector of other lengths",
        agent.put_vector(vector, &[&source[..150]]),
        "150 bytes of this rank and 151",
    )?;
    let mut back = [0x11; 151];
    let got = agent.get_vector(vector, &mut [&mut back]);
    wrong("a get beyond the end", got, "outside")?;
    require!(back == [0x11; 151], "a get that was refused has changed bytes");
    wrong("blocks beyond the end", agent.put_indexed(zone, &[0, len], 4, &source[..8]), "outside")?;
    let started = agent.put_strided_owned(zone, source.clone(), &eights(&[4], &[across]));
    wrong("an event of what is outside", started.map(drop), "outside")?;
    Ok(agent.barrier()?)
}
