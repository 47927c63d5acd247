//! Shapes by seed against loops over every element.

use super::*;
use gasworks_sync::VolatileSlice;

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A side of an array: where its first element lies in a buffer of so many bytes, and its strides. No two elements overlap.
fn side(dice: &mut Dice, element: usize, counts: &[usize]) -> (usize, Vec<isize>, usize) {
    let mut order: Vec<_> = (0..counts.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, dice.below(at + 1));
    }
    if dice.below(2) == 0 {
        order.sort_unstable();
    }
    let (mut extent, mut first, mut strides) = (element, 0, vec![0; counts.len()]);
    for dimension in order {
        let stride = extent + if dice.below(2) == 0 { 0 } else { dice.below(20) };
        let far = stride * counts[dimension].saturating_sub(1);
        if dice.below(3) == 0 {
            strides[dimension] = -(stride as isize);
            first += far;
        } else {
            strides[dimension] = stride as isize;
        }
        extent += far;
    }
    let before = dice.below(9);
    (before + first, strides, before + extent + dice.below(9))
}

/// Where the elements are, in order of the numbers.
fn places(first: usize, strides: &[isize], counts: &[usize]) -> Vec<usize> {
    let mut places = vec![first];
    for (&stride, &count) in strides.iter().zip(counts) {
        let of = |number: usize| {
            places.iter().map(move |place| place.wrapping_add_signed(stride * number as isize))
        };
        places = (0..count).flat_map(of).collect();
    }
    places
}

fn bytes(dice: &mut Dice, len: usize) -> Vec<u8> {
    (0..len).map(|_| dice.next() as u8).collect()
}

/// Whether a transfer does what the model has done, by its copy and by its runs.
fn agrees(
    runs: &impl Runs,
    way: Way,
    (local, remote): (&mut [u8], &[u8]),
    wanted: (&[u8], &[u8]),
    what: &str,
) {
    let (before, base) = (local.to_vec(), local.as_mut_ptr());
    let all = runs.measure().expect(what);
    let moved: Vec<_> = runs.runs().collect();
    let total: u64 = moved.iter().map(|run| run.len as u64).sum();
    assert_eq!(all.map_or(0, |all| all.bytes), total, "{what}");
    assert!(moved.iter().all(|run| run.len > 0), "{what}");
    let (low, end) =
        (moved.iter().map(|run| run.remote).min(), moved.iter().map(|run| run.remote + run.len as u64).max());
    let extent = low.zip(end).map(|(low, end)| (low, (end - low) as usize));
    assert_eq!(all.map(|all| (all.low, all.extent)), extent, "{what}");
    let counted = moved.len() as u64;
    assert!(
        all.is_none_or(|all| all.runs <= counted && counted <= 2 * all.runs),
        "{what}: {all:?}, {counted}"
    );
    for by_runs in [false, true] {
        let mut there = remote.to_vec();
        if let Some(all) = all {
            let slice = VolatileSlice::from_mut(&mut there).slice(all.low as usize, all.extent).expect(what);
            let place = Base::new(slice, all.low);
            if by_runs {
                for Run { local, remote, len } in &moved {
                    // SAFETY: the runs are inside `local` and `there`, as the sums above say, and nobody else uses these.
                    unsafe {
                        match way {
                            Way::Put => runs::copy::<true>(*local, place.at(*remote), *len),
                            Way::Get => runs::copy::<false>(*local, place.at(*remote), *len),
                        }
                    }
                }
            } else {
                // SAFETY: as for the runs one by one, which are the same.
                unsafe { runs.copy(way, place) };
            }
        }
        // SAFETY: `base` is the start of `local`, which nobody else uses.
        let here = unsafe { std::slice::from_raw_parts_mut(base, before.len()) };
        assert_eq!((&*here, &there[..]), wanted, "{what}, by its runs: {by_runs}");
        here.copy_from_slice(&before);
    }
}

#[test]
fn arrays_of_any_shape() {
    for seed in 0..3000 {
        let dice = &mut Dice(seed);
        let levels = dice.below(6);
        let element = dice.one_of(&[1, 3, 4, 8, 16, 32, 64, 600]).min(1 + dice.below(600));
        let element = if dice.below(40) == 0 { 0 } else { element };
        let counts: Vec<_> = (0..levels).map(|_| dice.one_of(&[1, 1, 2, 3, 4])).collect();
        let counts =
            if dice.below(20) == 0 { counts.iter().map(|_| dice.below(2)).collect() } else { counts };
        let (first_here, strides_here, len_here) = side(dice, element, &counts);
        let (first_there, strides_there, len_there) = side(dice, element, &counts);
        let (mut local, remote) = (bytes(dice, len_here), bytes(dice, len_there));
        let way = dice.one_of(&[Way::Put, Way::Get]);
        let (mut wanted_here, mut wanted_there) = (local.clone(), remote.clone());
        let there = places(first_there, &strides_there, &counts);
        for (here, there) in places(first_here, &strides_here, &counts).into_iter().zip(there) {
            match way {
                Way::Put => wanted_there[there..][..element].copy_from_slice(&local[here..][..element]),
                Way::Get => wanted_here[here..][..element].copy_from_slice(&remote[there..][..element]),
            }
        }
        let dimensions = counts.iter().zip(&strides_here).zip(&strides_there);
        let dimensions = dimensions.map(|((&count, &local), &remote)| Dimension { count, local, remote });
        let start = local.as_mut_ptr();
        let first = start.wrapping_add(first_here);
        let array = Strided::new((first, first_there as u64), element, dimensions).expect("it is small");
        let (low, end) = array.here();
        assert!(start.addr() <= low && low <= end && end <= start.addr() + local.len());
        let what =
            format!("seed {seed}: {element} bytes, {counts:?}, {strides_here:?} and {strides_there:?}");
        agrees(&array, way, (&mut local, &remote), (&wanted_here, &wanted_there), &what);
    }
}

/// Pieces of `total` bytes in a buffer, in any order, and how long that is.
fn cut(dice: &mut Dice, total: usize, most: usize) -> (Vec<(usize, usize)>, usize) {
    let (mut pieces, mut at, mut left) = (Vec::new(), 0, total);
    while left > 0 {
        let len = left.min(dice.below(most + 1));
        at += if dice.below(2) == 0 { 0 } else { dice.below(9) };
        pieces.push((at, len));
        (at, left) = (at + len, left - len);
    }
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, dice.below(at + 1));
    }
    (pieces, at)
}

#[test]
fn lists_of_any_lengths() {
    for seed in 0..3000 {
        let dice = &mut Dice(seed);
        let is_blocks = dice.below(3) == 0;
        let block = dice.one_of(&[1, 7, 8, 16, 100]);
        let total = if is_blocks { block * dice.below(20) } else { dice.below(2000) };
        let (mut here, len_here) = cut(dice, total, 200);
        let most = dice.one_of(&[9, 500]);
        let (mut there, len_there) = cut(dice, total, most);
        if is_blocks {
            here = (0..total / block).map(|number| ((number * 5 % 23) * block, block)).collect();
            there = (0..total / block).map(|number| ((22 - number) * (block + 1), block)).collect();
        }
        let room = if is_blocks { 23 * (block + 1) } else { 0 };
        let (mut local, remote) = (bytes(dice, len_here + room), bytes(dice, len_there + room));
        let way = dice.one_of(&[Way::Put, Way::Get]);
        let (mut wanted_here, mut wanted_there) = (local.clone(), remote.clone());
        let each =
            |pieces: &[(usize, usize)]| pieces.iter().flat_map(|&(at, len)| at..at + len).collect::<Vec<_>>();
        for (here, there) in each(&here).into_iter().zip(each(&there)) {
            match way {
                Way::Put => wanted_there[there] = local[here],
                Way::Get => wanted_here[here] = remote[there],
            }
        }
        let start = local.as_mut_ptr();
        let here: Vec<_> = here.iter().map(|&(at, len)| (start.wrapping_add(at), len)).collect();
        let there: Vec<_> = there.iter().map(|&(at, len)| (at as u64, len)).collect();
        let what = format!("seed {seed}: {here:?} and {there:?}");
        let (sides, wanted) = ((&mut local[..], &remote[..]), (&wanted_here[..], &wanted_there[..]));
        if is_blocks {
            let (here, there): (Vec<_>, Vec<_>) =
                (here.iter().map(|piece| piece.0).collect(), there.iter().map(|piece| piece.0).collect());
            let (local, remote) =
                (Blocks { places: &here, len: block }, Blocks { places: &there, len: block });
            agrees(&Lists { local, remote }, way, sides, wanted, &what);
        } else {
            agrees(&Lists { local: &here[..], remote: &there[..] }, way, sides, wanted, &what);
        }
    }
}

#[test]
fn neighbours_that_follow_each_other_are_one() {
    let runs = |element, dimensions: &[(usize, isize, isize)]| {
        let dimensions = dimensions.iter().map(|&(count, local, remote)| Dimension { count, local, remote });
        let at = std::ptr::without_provenance_mut(1 << 20);
        let array = Strided::new((at, 1 << 20), element, dimensions).expect("it is small");
        array
            .measure()
            .expect("it was measured")
            .map(|all| (all.runs, array.runs().count() as u64, all.bytes))
    };
    assert_eq!(runs(8, &[]), Some((1, 1, 8)));
    assert_eq!(runs(8, &[(10, 8, 8), (3, 80, 80)]), Some((1, 1, 240)));
    assert_eq!(runs(8, &[(10, -8, -8), (3, 80, 80)]), Some((1, 1, 240)), "from the other end");
    assert_eq!(runs(8, &[(10, 8, -8)]), Some((10, 10, 80)));
    assert_eq!(runs(8, &[(10, 8, 8), (3, 80, 90)]), Some((3, 3, 240)));
    assert_eq!(runs(8, &[(10, 16, 8), (3, 160, 80)]), Some((30, 30, 240)));
    assert_eq!(runs(8, &[(1, 5, 5), (10, 8, 8), (1, 3, 3)]), Some((1, 1, 80)));
    assert_eq!(runs(0, &[(10, 8, 8)]), None);
    assert_eq!(runs(8, &[(10, 8, 8), (0, isize::MAX, isize::MIN)]), None);
    let many: Vec<_> = (0..40).map(|at| (1 + at % 2, 1000 << at, 3000 << at)).collect();
    assert_eq!(runs(8, &many), Some((1 << 20, 1 << 20, 8 << 20)), "20 dimensions");
}

#[test]
fn what_is_more_than_an_address_counts_is_refused() {
    let at = |address| std::ptr::without_provenance_mut::<u8>(address);
    let array = |local, remote, element, dimensions: &[(usize, isize, isize)]| {
        let dimensions = dimensions.iter().map(|&(count, local, remote)| Dimension { count, local, remote });
        Strided::new((at(local), remote), element, dimensions).and_then(|array| array.measure())
    };
    let (far, top) = (isize::MAX, usize::MAX);
    assert!(array(0, 0, top, &[]).is_ok());
    let wrong = [
        array(1, 0, top, &[]),
        array(0, 1, top, &[]),
        array(0, 0, 8, &[(top, 0, 0)]),
        array(0, 0, 8, &[(1 << 40, 0, 0), (1 << 40, 0, 0)]),
        array(100, 100, 8, &[(3, -51, 8)]),
        array(100, 100, 8, &[(3, 8, -51)]),
        array(top - 20, 0, 8, &[(3, 8, 8)]),
        array(0, u64::MAX - 20, 8, &[(3, 8, 8)]),
        array(0, 0, 8, &[(4, far, 8)]),
        array(0, 0, 8, &[(4, 8, far)]),
        array(0, 0, 8, &[(top, far, far), (1, 0, 0)]),
        array(0, 0, 1, &[(1 << 62, isize::MIN, isize::MIN), (2, isize::MIN, isize::MIN)]),
    ];
    for (number, wrong) in wrong.iter().enumerate() {
        assert!(matches!(wrong, Err(Error::Scattered(_))), "{number}: {wrong:?}");
    }
    let lists = |local: &[(*mut u8, usize)], remote: &[(u64, usize)]| Lists { local, remote }.measure();
    assert_eq!(lists(&[(at(9), 0)], &[]), Ok(None));
    assert_eq!(lists(&[(at(9), 5), (at(99), 3)], &[(7, 7)]), Err(Error::Unequal { here: 8, there: 7 }));
    let wrong = [
        lists(&[(at(2), top)], &[(0, top)]),
        lists(&[(at(0), top)], &[(1, top)]),
        lists(&[(at(0), top), (at(0), 1)], &[(0, top), (0, 1)]),
    ];
    for (number, wrong) in wrong.iter().enumerate() {
        assert!(matches!(wrong, Err(Error::Scattered(_))), "{number}: {wrong:?}");
    }
}
