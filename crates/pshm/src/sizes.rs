//! What the limits make of what is wanted of a rank's memory.

use crate::error::PshmError;
use crate::layout::PAGE;
use crate::memory::{HugePages, Memory};
use crate::settings;
use gasworks_os::huge;
use gasworks_os::limits::{self, Limit};
use gasworks_os::memfd;
use gasworks_os::settings::Share;

/// Sizes in bytes, limits applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// The segment, in whole pages.
    pub segment: u64,
    /// What it may grow to.
    pub room: u64,
    /// The largest segment that this rank could have had, if all had the same, and who allows no more.
    pub largest: Limit,
    /// The setting's limit on the segment, with its name.
    pub limit: Option<Limit>,
    /// What the machine and the control groups leave; all there can be of huge pages from the pool.
    pub available: Limit,
    /// How many bytes of addresses can still be mapped.
    pub space: u64,
}

/// What is left of the memory that a segment takes its pages from. The kernel's pool of huge pages is no part of what the
/// machine has available, nor of what control groups count: whether that has enough is known when pages are promised.
pub(crate) fn available(from_pool: bool) -> Limit {
    match from_pool {
        true => Limit { bytes: u64::MAX, who: "the kernel's pool of huge pages".into() },
        false => limits::available_memory(),
    }
}

/// The most bytes up to `most`, in whole pages and to a 256th, for which `there` says yes. It is asked once where that is all of them.
pub(crate) fn search(most: u64, page: u64, mut there: impl FnMut(u64) -> bool) -> u64 {
    let (mut fits, mut fails) = (0, most / page * page);
    if there(fails) {
        return fails;
    }
    while fails - fits > page.max(most / 256) {
        let middle = (fits + (fails - fits) / 2).next_multiple_of(page);
        if middle == fails {
            break;
        }
        *(if there(middle) { &mut fits } else { &mut fails }) = middle;
    }
    fits
}

/// Turns wishes into sizes, for rank `me` of `ranks` on this host, of which so many share memory `together`, whose queues take `internal`
/// bytes each, and where a network, too, sets a limit.
pub(crate) fn sizes(
    memory: &Memory,
    network: Option<&Limit>,
    from_pool: bool,
    me: u32,
    (ranks, together): (u32, u32),
    internal: u64,
) -> Result<Sizes, PshmError> {
    let shares = [Some(memory.segment), memory.room, memory.limit];
    if let Some(share) = shares.into_iter().flatten().find(|share| !share.is_sound()) {
        return Err(PshmError::Fraction { share });
    }
    let (available, total) = (available(from_pool), limits::total_memory().bytes);
    let page = memfd::page_size() as u64;
    let bytes = |share: Share| share.for_each(total, ranks);
    // As GASNet reckons: in whole pages, rounded up.
    let limit = memory.limit.map(|limit| Limit {
        bytes: bytes(limit).checked_next_multiple_of(page).unwrap_or(u64::MAX),
        who: settings::limit_name(limit),
    });
    let space = limits::address_space();
    let (each, together) = (u64::from(ranks.max(1)), u64::from(together.max(1)));
    // One file holds what those have that share memory: queues and segment of each in whole pages, and a page more; and cards.
    let large = match memory.huge_pages {
        HugePages::Off => PAGE,
        HugePages::Try | HugePages::Require => huge::page_size().map_or(PAGE, |page| page as u64),
    };
    let beside = internal.saturating_add(4 * large);
    let room = |bytes: u64| (bytes / together / large * large).saturating_sub(beside);
    let file = limits::file_size().map(|limit| Limit { bytes: room(limit.bytes), ..limit });
    // Half of the addresses that a limit leaves are the program's own. A rank that is not alone has its own segment twice.
    let mapped = if together > 1 { together + 1 } else { 1 };
    let addresses = Limit {
        bytes: (space / 2 / mapped).saturating_sub(beside),
        who: "the limit on addresses (ulimit -v)".into(),
    };
    let mine = Limit { bytes: available.bytes / each, ..available.clone() };
    let bounds = [limit.as_ref(), file.as_ref(), network, Some(&mine), Some(&addresses)];
    let least = bounds.into_iter().flatten().min_by_key(|bound| bound.bytes).unwrap_or(&mine);
    let largest = Limit { bytes: least.bytes / page * page, who: least.who.clone() };

    let mut segment = bytes(memory.segment);
    if memory.at_most {
        segment = segment.min(largest.bytes);
    }
    let too_large =
        |asked| PshmError::Memory { ranks: 1, asked, have: available.bytes, who: available.who.clone() };
    if segment > available.bytes {
        return Err(too_large(segment));
    }
    let segment = segment.checked_next_multiple_of(page).ok_or_else(|| too_large(segment))?;
    let room = memory.room.map_or(segment, bytes);
    let room = if memory.later { room.min(largest.bytes) } else { room }.max(segment);
    let room = room.checked_next_multiple_of(page).ok_or_else(|| too_large(room))?;
    // The own segment has its addresses before all together can be held against them.
    let asked = room.saturating_add(internal);
    if asked > space {
        return Err(PshmError::AddressSpace { rank: me, ranks: 1, asked, have: space });
    }
    for (asked, limit) in [(segment, limit.as_ref()), (segment, network), (room, file.as_ref())] {
        if let Some(Limit { bytes, who }) = limit
            && asked > *bytes
        {
            return Err(PshmError::Limit { asked, have: *bytes, who: who.clone() });
        }
    }
    Ok(Sizes { segment, room, largest, limit, available, space })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERNAL: u64 = 16 << 20;

    #[test]
    fn shares_of_a_host_are_equal_parts_in_whole_pages() {
        let total = limits::total_memory().bytes;
        let half = Memory { segment: Share::of_host(0.125), ..Memory::of(0) };
        let found = sizes(&half, None, false, 0, (4, 4), INTERNAL).expect("there is as much");
        assert!(found.segment >= total / 32 && found.segment < total / 32 + 4096 + 1, "{found:?}");
        assert_eq!(found.room, found.segment);
        // As GASNet reckons: 200 MiB for three or seven of a host, and sizes for each.
        for (text, ranks, wanted) in [
            ("200M/H", 1, 200 << 20),
            ("200M/H", 3, 69_906_432),
            ("200M/H", 7, 29_962_240),
            ("100M/H", 7, 14_983_168),
            ("1000001", 3, 1_003_520),
            ("1000001/P", 3, 1_003_520),
            ("1/P", 1, 4096),
        ] {
            let memory = Memory { limit: Share::parse(text), ..Memory::of(0) };
            let found = sizes(&memory, None, false, 0, (ranks, ranks), INTERNAL).expect("there is as much");
            assert_eq!(found.largest.bytes, wanted, "{text} for {ranks}");
        }
    }

    #[test]
    fn room_for_later_gives_way_and_a_wish_does_not() {
        let limit = Limit { bytes: 5 << 20, who: "the network".into() };
        let wish = Memory { room: Some(Share::bytes(1 << 40)), ..Memory::of(0) };
        let later = sizes(&Memory { later: true, ..wish }, Some(&limit), false, 0, (2, 2), INTERNAL);
        let later = later.expect("cut down");
        assert_eq!((later.room, later.largest), (5 << 20, limit.clone()));
        assert_eq!(sizes(&wish, Some(&limit), false, 0, (2, 2), INTERNAL).expect("room").room, 1 << 40);
    }

    #[test]
    fn a_fraction_is_above_0_and_at_most_1() {
        for fraction in [f64::NAN, -0.5, 0.0, 1.0625, f64::INFINITY] {
            let share = Share::of_host(fraction);
            let segment = Memory { segment: share, ..Memory::of(0) };
            let [room, limit] = [(Some(share), None), (None, Some(share))].map(|(room, limit)| Memory {
                room,
                limit,
                ..Memory::of(0)
            });
            for memory in [segment, room, limit] {
                let text =
                    sizes(&memory, None, false, 0, (1, 1), INTERNAL).expect_err("no fraction").to_string();
                assert!(text.contains(&format!("{fraction} of memory")), "{text}");
            }
        }
        let all = Memory { segment: Share::of_host(1.0), at_most: true, ..Memory::of(0) };
        assert!(sizes(&all, None, false, 0, (1, 1), INTERNAL).is_ok());
    }

    #[test]
    fn a_limit_is_an_error_for_whom_it_matters() {
        let limit = Share::parse("8M");
        let memory = Memory { limit, ..Memory::of(8 << 20) };
        let fits = sizes(&memory, None, false, 0, (2, 2), INTERNAL).expect("as large as the limit");
        assert_eq!((fits.segment, fits.largest.bytes), (8 << 20, 8 << 20));
        let beyond = Memory { segment: Share::bytes((8 << 20) + 1), ..memory };
        let text =
            sizes(&beyond, None, false, 0, (2, 2), INTERNAL).expect_err("beyond the limit").to_string();
        assert!(text.contains("8392704 bytes") && text.contains("GASWORKS_SEGMENT_LIMIT"), "{text}");
        let cut =
            sizes(&Memory { at_most: true, ..beyond }, None, false, 0, (2, 2), INTERNAL).expect("cut down");
        assert_eq!(cut.segment, 8 << 20);
    }

    #[test]
    fn a_network_sets_a_limit_besides() {
        let limit = Limit { bytes: 4 << 20, who: "the network".into() };
        let found = sizes(&Memory::of(4 << 20), Some(&limit), false, 0, (2, 2), INTERNAL).expect("as large");
        assert_eq!((found.segment, found.largest.bytes), (4 << 20, 4 << 20));
        let beyond =
            sizes(&Memory::of(5 << 20), Some(&limit), false, 0, (2, 2), INTERNAL).expect_err("beyond");
        assert!(beyond.to_string().contains("more than the network allows, 4194304 bytes"), "{beyond}");
    }

    proptest! {
        /// The search finds what there is but for a 256th, and asks seldom.
        #[test]
        fn the_most_that_is_there_is_found(most in 0u64..1 << 46, there in 0u64..1 << 46, page in 12u32..22) {
            let (page, mut asked) = (1 << page, 0);
            let found = search(most, page, |len| {
                asked += 1;
                len <= there
            });
            let wanted = most.min(there) / page * page;
            prop_assert!(found <= wanted && found % page == 0);
            prop_assert!(wanted - found <= page.max(most / 256), "{found} of {wanted}");
            prop_assert!(asked <= 10, "{asked} times");
        }
    }

    #[test]
    fn the_pool_of_huge_pages_is_not_what_the_machine_has_available() {
        let all = Memory::of(limits::available_memory().bytes.saturating_mul(2));
        let refused = sizes(&all, None, false, 0, (2, 2), INTERNAL).expect_err("twice as much").to_string();
        assert!(refused.contains("leaves"), "{refused}");
        let found = sizes(&all, None, true, 0, (2, 2), INTERNAL).expect("the pool is not asked here");
        assert_eq!((found.segment, found.available.bytes), (all.segment.for_each(0, 1), u64::MAX));
        let limit = Share::parse("8M");
        let limited = sizes(&Memory { limit, ..all }, None, true, 0, (2, 2), INTERNAL)
            .expect_err("the setting's limit");
        assert!(limited.to_string().contains("GASWORKS_SEGMENT_LIMIT"), "{limited}");
    }

    #[test]
    fn room_is_at_least_the_segment() {
        let memory = Memory { room: Some(Share::bytes(5000)), ..Memory::of(3 * 4096) };
        assert_eq!(
            sizes(&memory, None, false, 0, (1, 1), INTERNAL).map(|sizes| sizes.room).ok(),
            Some(3 * 4096)
        );
        let memory = Memory { room: Some(Share::bytes(u64::MAX)), ..memory };
        assert!(sizes(&memory, None, false, 0, (1, 1), INTERNAL).is_err());
        let wide = Memory { room: Some(Share::bytes(1 << 38)), ..memory };
        assert_eq!(
            sizes(&wide, None, false, 0, (1, 1), INTERNAL).map(|sizes| sizes.room).ok(),
            Some(1 << 38),
            "room costs nothing"
        );
    }
}
