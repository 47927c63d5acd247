//! How a transfer of any place and length becomes posts that a NIC's rules admit: by which way each goes, and where its bytes are here.
//!
//! A get whose edges are not aligned fetches more than was asked for into the engine's memory and keeps the part that
//! was. What lies askew, at another distance from an aligned place here than there, is fetched to the next aligned place here, and moved
//! back when it has come; what is behind it, where it lay meanwhile, is fetched after that. A put cannot do the same: writing back the bytes around an edge would undo what somebody else wrote there
//! meanwhile. So an unaligned put on a NIC with such a rule is refused, by [`Rules::check`].

use super::memory::Memory;
use crate::engine::EngineError;
use crate::nic::{Abilities, Atomics, Direction, Way};
use crate::settings::Tuning;
use gasworks_memory::atomic::Update;

/// The widest word of an atomic operation.
const WORD: usize = 8;
/// What the bulk of a get that begins askew is brought to at its peer: NICs read whole lines of the processor's caches.
const LINE: usize = 64;
/// The most that memory is registered for a single post.
const MOST_REGISTERED: usize = 8 << 20;

/// A NIC's rules, what the engine has, and what it is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub largest: usize,
    pub get_alignment: usize,
    pub put_alignment: usize,
    pub local_alignment: usize,
    pub tells_source: bool,
    /// The longest short put and get.
    pub put_short: usize,
    pub get_short: usize,
    /// The longest put and get by a buffer where the bytes here could be registered.
    pub put_bounce: usize,
    pub get_bounce: usize,
    /// Bytes that each descriptor has, and each buffer.
    pub immediate: usize,
    pub buffer: usize,
    pub atomics: Atomics,
}

/// What is left of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub direction: Direction,
    /// Where it begins there.
    pub offset: u64,
    /// Where it begins here.
    pub address: usize,
    pub len: usize,
    /// Whether the NIC can use the bytes here as they are.
    pub ready: bool,
    /// Whether they may be registered for it.
    pub may_register: bool,
    /// Whether the caller wants to use the source of a put again before all is over.
    pub wanted_back: bool,
}

/// Where the bytes of a post are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where the caller has them.
    Own,
    /// There, registered for this post.
    Registered,
    /// In the descriptor's part of the engine's memory.
    Immediate,
    /// In a buffer.
    Buffer,
}

/// The next post of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Bytes before the wanted ones that are fetched too.
    pub skip: usize,
    /// Bytes of the operation that this post moves; never 0.
    pub useful: usize,
    /// Bytes of the post: `skip`, `useful`, and what rounds the end up.
    pub wire: usize,
    /// So many bytes behind their place they go, and are moved back at the end.
    pub shift: usize,
    pub way: Way,
    pub place: Place,
}

fn down(n: usize, alignment: usize) -> usize {
    n - n % alignment
}

impl Rules {
    pub fn new(abilities: &Abilities, tuning: &Tuning, memory: &Memory) -> Self {
        Self {
            largest: abilities.largest,
            get_alignment: abilities.get_alignment.max(1),
            put_alignment: abilities.put_alignment.max(1),
            local_alignment: abilities.local_alignment.max(1),
            tells_source: abilities.tells_source,
            put_short: tuning.put_short.min(abilities.short),
            get_short: tuning.get_short.min(abilities.short),
            put_bounce: tuning.put_bounce,
            get_bounce: tuning.get_bounce,
            immediate: memory.immediate(),
            buffer: memory.buffer(),
            // Where a word goes that comes back.
            atomics: match memory.immediate().max(memory.buffer()) {
                0..WORD => Atomics::NONE,
                _ => abilities.atomics,
            },
        }
    }

    /// What no chunking can mend.
    pub fn check(&self, direction: Direction, offset: u64, len: usize) -> Result<(), EngineError> {
        if let Direction::Update(update) = direction {
            return self.check_update(&update, offset);
        }
        if offset.checked_add(len as u64).is_none() {
            return Err(EngineError::PastEnd { offset, len });
        }
        let alignment = self.put_alignment;
        if direction == Direction::Put
            && (!offset.is_multiple_of(alignment as u64) || !len.is_multiple_of(alignment))
        {
            return Err(EngineError::UnalignedPut { offset, len, alignment });
        }
        Ok(())
    }

    fn check_update(&self, update: &Update, offset: u64) -> Result<(), EngineError> {
        let width = update.width();
        if !self.atomics.on(update.of).contains(update.bit()) {
            return Err(EngineError::NoSuchAtomic { of: update.of, operation: update.bit() });
        }
        if !offset.is_multiple_of(width as u64) {
            return Err(EngineError::UnalignedWord { offset, width });
        }
        Ok(())
    }

    /// The first post of what is left of an operation.
    pub fn next(&self, rest: &Rest) -> Chunk {
        match rest.direction {
            Direction::Put => self.next_put(rest),
            Direction::Get => self.next_get(rest),
            Direction::Update(update) => self.only(&update, rest.len),
        }
    }

    /// The one post of an atomic operation, of which so many bytes are wanted here. What comes back lies in the engine's memory first: it
    /// is little, and so it may be wanted anywhere.
    fn only(&self, update: &Update, wanted: usize) -> Chunk {
        let wire = update.width();
        let place = self.kept(wire).unwrap_or(Place::Buffer);
        Chunk { skip: 0, useful: wanted, wire, shift: 0, way: Way::Short, place }
    }

    fn next_put(&self, rest: &Rest) -> Chunk {
        let &Rest { len, ready, may_register, wanted_back, .. } = rest;
        let chunk = |place, useful| {
            let way = if useful <= self.put_short { Way::Short } else { Way::Bulk };
            Chunk { skip: 0, useful, wire: useful, shift: 0, way, place }
        };
        if len <= self.put_short {
            // Nothing says when the source was read, before all is over.
            let place = if wanted_back { self.kept(len) } else { None };
            return chunk(place.unwrap_or(Place::Own), len);
        }
        let most = down(self.largest, self.put_alignment);
        if ready {
            let place = if wanted_back && !self.tells_source { self.kept(len) } else { None };
            return chunk(place.unwrap_or(Place::Own), len.min(most));
        }
        if len <= self.immediate {
            return chunk(Place::Immediate, len);
        }
        if len > self.put_bounce && may_register {
            let most = down(most.min(MOST_REGISTERED), self.put_alignment);
            return chunk(Place::Registered, len.min(most));
        }
        // What a buffer would take the processor may as well hand over from where it is.
        match down(self.put_short, self.put_alignment) {
            short if short >= self.buffer && !wanted_back => chunk(Place::Own, len.min(short)),
            _ => chunk(Place::Buffer, len.min(self.buffer)),
        }
    }

    /// Where so many bytes fit in the engine's memory, if they do.
    fn kept(&self, len: usize) -> Option<Place> {
        match len {
            _ if len <= self.immediate => Some(Place::Immediate),
            _ if len <= self.buffer => Some(Place::Buffer),
            _ => None,
        }
    }

    fn next_get(&self, rest: &Rest) -> Chunk {
        let &Rest { offset, address, len, ready, may_register, .. } = rest;
        let alignment = self.get_alignment;
        let skip = (offset % alignment as u64) as usize;
        let chunk = |place, skip: usize, useful: usize| {
            let wire = (skip + useful).next_multiple_of(alignment);
            let way = if wire <= self.get_short { Way::Short } else { Way::Bulk };
            Chunk { skip, useful, wire, shift: 0, way, place }
        };
        let fits = skip == 0 && address.is_multiple_of(self.local_alignment);
        let most = down(self.largest, alignment);
        if ready && fits && len.is_multiple_of(alignment) {
            return chunk(Place::Own, 0, len.min(most));
        }
        // All at once, with what is around it.
        let room = (skip.saturating_add(len)).checked_next_multiple_of(alignment).unwrap_or(usize::MAX);
        if (room <= self.get_bounce || !(ready || may_register))
            && let Some(place) = self.kept(room)
        {
            return chunk(place, skip, len);
        }
        let place = if ready { Place::Own } else { Place::Registered };
        let most = if ready { most } else { down(most.min(MOST_REGISTERED), alignment) };
        // Each of them begins as far from an aligned place as the first.
        let shift = address.next_multiple_of(self.local_alignment) - address;
        let shifts = skip == 0 && !fits && alignment.is_multiple_of(self.local_alignment);
        if shifts && (ready || may_register) && len >= shift + alignment {
            return Chunk { shift, ..chunk(place, 0, down(most.min(len - shift), alignment)) };
        }
        if !(ready || may_register) || len < alignment || !fits && skip == 0 {
            let room = if skip + len <= self.immediate { self.immediate } else { self.buffer };
            let place = if room == self.immediate { Place::Immediate } else { Place::Buffer };
            return chunk(place, skip, len.min(down(room, alignment) - skip));
        }
        if skip > 0 {
            // The edge alone, up to a line: the bulk then needs no copy.
            let line = if self.immediate >= LINE { alignment.next_multiple_of(LINE) } else { alignment };
            let before = (offset % line as u64) as usize;
            let edge = if line <= self.immediate { Place::Immediate } else { Place::Buffer };
            return chunk(edge, skip, len.min(line - before));
        }
        chunk(place, 0, down(len.min(most), alignment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a NIC like Aries, with the settings that an engine usually has.
    const USUAL: Rules = Rules {
        largest: 1 << 30,
        get_alignment: 4,
        put_alignment: 1,
        local_alignment: 1,
        tells_source: true,
        put_short: 4096,
        get_short: 4096,
        put_bounce: 4096,
        get_bounce: 4096,
        immediate: 128,
        buffer: 4096,
        atomics: Atomics::NONE,
    };
    const PUT: Rest = Rest {
        direction: Direction::Put,
        offset: 0,
        address: 0,
        len: 0,
        ready: false,
        may_register: true,
        wanted_back: false,
    };
    const GET: Rest = Rest { direction: Direction::Get, ..PUT };

    /// The posts of an operation.
    fn posts(rules: &Rules, mut rest: Rest) -> Vec<Chunk> {
        let mut posts = Vec::new();
        while rest.len > 0 {
            let chunk = rules.next(&rest);
            assert!(chunk.useful > 0 && chunk.useful <= rest.len, "{chunk:?} of {rest:?}");
            rest.offset += chunk.useful as u64;
            rest.address += chunk.useful;
            rest.len -= chunk.useful;
            posts.push(chunk);
        }
        posts
    }

    fn ways(rest: Rest) -> Vec<(Way, Place, usize)> {
        posts(&USUAL, rest).iter().map(|post| (post.way, post.place, post.useful)).collect()
    }

    #[test]
    fn puts_go_as_their_size_and_place_say() {
        use {Place::*, Way::*};
        for (len, ready, wanted_back, wanted) in [
            (8, false, false, (Short, Own)),
            (128, false, true, (Short, Immediate)),
            (129, false, true, (Short, Buffer)),
            (4096, false, false, (Short, Own)),
            (4097, true, true, (Bulk, Own)),
            (4097, false, false, (Bulk, Registered)),
            (1 << 20, true, false, (Bulk, Own)),
        ] {
            let rest = Rest { len, ready, wanted_back, ..PUT };
            assert_eq!(ways(rest), [(wanted.0, wanted.1, len)], "{rest:?}");
        }
        // What may not be registered goes in pieces, and what may in large ones.
        let refused = Rest { len: 10_000, may_register: false, ..PUT };
        assert_eq!(ways(refused), [(Short, Own, 4096), (Short, Own, 4096), (Short, Own, 1808)]);
        let copied = [(Short, Buffer, 4096), (Short, Buffer, 4096), (Short, Buffer, 1808)];
        assert_eq!(ways(Rest { wanted_back: true, ..refused }), copied);
        let long = Rest { len: (8 << 20) + 5000, ..PUT };
        assert_eq!(ways(long), [(Bulk, Registered, 8 << 20), (Bulk, Registered, 5000)]);
        let rules = Rules { put_bounce: 8192, buffer: 8192, ..USUAL };
        assert_eq!(
            posts(&rules, Rest { len: 8192, ..PUT }),
            [Chunk { skip: 0, useful: 8192, wire: 8192, shift: 0, way: Bulk, place: Buffer }]
        );
        // Where nothing is said of the source, it is copied as far as that goes.
        let silent = Rules { tells_source: false, put_short: 0, ..USUAL };
        let rest = Rest { len: 4000, ready: true, wanted_back: true, ..PUT };
        assert_eq!(posts(&silent, rest)[0].place, Buffer);
        assert_eq!(posts(&silent, Rest { len: 5000, ..rest })[0].place, Own);
    }

    #[test]
    fn gets_go_as_their_size_and_place_say() {
        use {Place::*, Way::*};
        let get = |offset, len, ready| ways(Rest { offset, len, ready, ..GET });
        assert_eq!(get(0, 4096, true), [(Short, Own, 4096)]);
        assert_eq!(get(4, 8192, true), [(Bulk, Own, 8192)]);
        assert_eq!(get(0, 128, false), [(Short, Immediate, 128)]);
        assert_eq!(get(0, 132, false), [(Short, Buffer, 132)]);
        assert_eq!(get(0, 8192, false), [(Bulk, Registered, 8192)]);
        // One post where all of it fits with what is around it, and two more than an aligned one at most.
        assert_eq!(get(3, 122, true), [(Short, Immediate, 122)]);
        assert_eq!(get(3, 4000, true), [(Short, Buffer, 4000)]);
        for ready in [true, false] {
            let middle = if ready { Own } else { Registered };
            let unaligned = get(3, 1 + 8192 + 2, ready);
            assert_eq!(unaligned, [(Short, Immediate, 61), (Bulk, middle, 8132), (Short, Immediate, 2)]);
        }
    }

    /// Next to the limits of each rule: what a put or get of such a length has of posts.
    #[test]
    fn posts_change_at_the_limits_of_the_rules() {
        use {Place::*, Way::*};
        type Posts<'a> = &'a [(Way, Place, usize)];
        let bulk = Rules { put_short: 0, get_short: 0, ..USUAL };
        let silent = Rules { tells_source: false, ..bulk };
        let small = Rules { get_bounce: 128, ..USUAL };
        let none = Rules { get_bounce: 0, ..USUAL };
        let ready = Rest { ready: true, ..PUT };
        let wanted_back = Rest { wanted_back: true, ..ready };
        let got = Rest { ready: true, ..GET };
        let refused = Rest { may_register: false, ..GET };
        let both = Rest { ready: true, ..refused };
        let rows: [(Rules, Rest, Posts<'_>); 35] = [
            // Puts by the processor, from where they are or copied first.
            (USUAL, Rest { len: 4096, ..ready }, &[(Short, Own, 4096)]),
            (USUAL, Rest { len: 4097, ..ready }, &[(Bulk, Own, 4097)]),
            (USUAL, Rest { len: 4096, ..wanted_back }, &[(Short, Buffer, 4096)]),
            (USUAL, Rest { len: 128, ..wanted_back }, &[(Short, Immediate, 128)]),
            // By the NIC, which may say of the source when it is free.
            (bulk, Rest { len: 100, ..ready }, &[(Bulk, Own, 100)]),
            (bulk, Rest { len: 100, ..wanted_back }, &[(Bulk, Own, 100)]),
            (silent, Rest { len: 100, ..ready }, &[(Bulk, Own, 100)]),
            (silent, Rest { len: 128, ..wanted_back }, &[(Bulk, Immediate, 128)]),
            (silent, Rest { len: 129, ..wanted_back }, &[(Bulk, Buffer, 129)]),
            (silent, Rest { len: 4096, ..wanted_back }, &[(Bulk, Buffer, 4096)]),
            (silent, Rest { len: 4097, ..wanted_back }, &[(Bulk, Own, 4097)]),
            // From memory that is not registered.
            (bulk, Rest { len: 128, ..PUT }, &[(Bulk, Immediate, 128)]),
            (bulk, Rest { len: 129, ..PUT }, &[(Bulk, Buffer, 129)]),
            (bulk, Rest { len: 4096, ..PUT }, &[(Bulk, Buffer, 4096)]),
            (bulk, Rest { len: 4097, ..PUT }, &[(Bulk, Registered, 4097)]),
            (
                bulk,
                Rest { len: 4097, may_register: false, ..PUT },
                &[(Bulk, Buffer, 4096), (Bulk, Immediate, 1)],
            ),
            (
                Rules { put_short: 4095, ..USUAL },
                Rest { len: 8192, may_register: false, ..PUT },
                &[(Bulk, Buffer, 4096), (Bulk, Buffer, 4096)],
            ),
            (
                Rules { put_short: 0, largest: 100, put_alignment: 8, ..USUAL },
                Rest { len: 200, ..ready },
                &[(Bulk, Own, 96), (Bulk, Own, 96), (Bulk, Own, 8)],
            ),
            // Gets, aligned.
            (USUAL, Rest { len: 4096, ..got }, &[(Short, Own, 4096)]),
            (USUAL, Rest { len: 4100, ..got }, &[(Bulk, Own, 4100)]),
            (USUAL, Rest { len: 4096, ..GET }, &[(Short, Buffer, 4096)]),
            (USUAL, Rest { len: 4100, ..GET }, &[(Bulk, Registered, 4100)]),
            (none, Rest { len: 4, ..GET }, &[(Short, Registered, 4)]),
            (none, Rest { len: 3, ..GET }, &[(Short, Immediate, 3)]),
            (
                Rules { largest: 102, ..bulk },
                Rest { len: 204, ..got },
                &[(Bulk, Own, 100), (Bulk, Own, 100), (Bulk, Own, 4)],
            ),
            // With edges that are not.
            (USUAL, Rest { offset: 3, len: 4093, ..got }, &[(Short, Buffer, 4093)]),
            (USUAL, Rest { offset: 3, len: 4094, ..got }, &[(Short, Immediate, 61), (Short, Buffer, 4033)]),
            (small, Rest { offset: 3, len: 125, ..got }, &[(Short, Immediate, 125)]),
            (
                small,
                Rest { offset: 3, len: 998, ..got },
                &[(Short, Immediate, 61), (Short, Own, 936), (Short, Immediate, 1)],
            ),
            (
                small,
                Rest { offset: 3, len: 998, ..both },
                &[(Short, Immediate, 61), (Short, Own, 936), (Short, Immediate, 1)],
            ),
            (
                small,
                Rest { offset: 3, len: 998, ..GET },
                &[(Short, Immediate, 61), (Short, Registered, 936), (Short, Immediate, 1)],
            ),
            (small, Rest { offset: 3, len: 998, ..refused }, &[(Short, Buffer, 998)]),
            (
                Rules { immediate: 0, ..none },
                Rest { offset: 3, len: 6, ..got },
                &[(Short, Buffer, 1), (Short, Own, 4), (Short, Buffer, 1)],
            ),
            // Only by the engine's memory.
            (
                USUAL,
                Rest { offset: 3, len: 4094, ..refused },
                &[(Short, Buffer, 4093), (Short, Immediate, 1)],
            ),
            (USUAL, Rest { len: 8192, ..refused }, &[(Short, Buffer, 4096), (Short, Buffer, 4096)]),
        ];
        for (number, (rules, rest, wanted)) in rows.into_iter().enumerate() {
            let found: Vec<_> =
                posts(&rules, rest).iter().map(|post| (post.way, post.place, post.useful)).collect();
            assert_eq!(found, wanted, "row {number}: {rest:?}");
        }
    }

    /// Gemini wants addresses here aligned too.
    #[test]
    fn what_lies_askew_here_is_moved_back() {
        let gemini = Rules { local_alignment: 4, ..USUAL };
        let askew = |rest| {
            let posts = posts(&gemini, rest);
            posts.iter().map(|post| (post.place, post.shift, post.useful)).collect::<Vec<_>>()
        };
        let get = Rest { address: 2, len: 10_000, ready: true, ..GET };
        assert_eq!(askew(get), [(Place::Own, 2, 9996), (Place::Immediate, 0, 4)]);
        let outside = Rest { offset: 3, len: (8 << 20) + 9000, ready: false, address: 0, ..get };
        let wanted = [
            (Place::Immediate, 0, 61),
            (Place::Registered, 3, 8 << 20),
            (Place::Registered, 3, 8936),
            (Place::Immediate, 0, 3),
        ];
        assert_eq!(askew(outside), wanted);
        let short = Rest { len: 4000, ..get };
        assert_eq!(askew(short), [(Place::Buffer, 0, 4000)]);
        let refused = Rest { ready: false, may_register: false, ..get };
        assert_eq!(askew(refused).iter().map(|post| post.0).collect::<Vec<_>>(), [Place::Buffer; 3]);
        // It need not be registered for it, and begins where it can: from there on one aligned piece has to be left.
        assert_eq!(
            askew(Rest { may_register: false, ..get }),
            [(Place::Own, 2, 9996), (Place::Immediate, 0, 4)]
        );
        let nearly = Rules { get_bounce: 0, ..gemini };
        let near = |len| {
            let posts = posts(&nearly, Rest { len, ..get });
            posts.iter().map(|post| (post.place, post.shift, post.useful)).collect::<Vec<_>>()
        };
        assert_eq!(near(5), [(Place::Immediate, 0, 5)]);
        assert_eq!(near(6), [(Place::Own, 2, 4), (Place::Immediate, 0, 2)]);
        assert_eq!(near(9), [(Place::Own, 2, 4), (Place::Immediate, 0, 5)]);
        assert_eq!(near(10), [(Place::Own, 2, 8), (Place::Immediate, 0, 2)]);
        // What is fetched in multiples of less than addresses are aligned to cannot be moved back: another address would not do either.
        let coarse = Rules { local_alignment: 8, ..USUAL };
        let pieces = posts(&coarse, get);
        let pieces: Vec<_> = pieces.iter().map(|post| (post.place, post.shift, post.useful)).collect();
        assert_eq!(pieces, [4096, 4096, 1808].map(|useful| (Place::Buffer, 0, useful)));
        // Both begin at the same distance from a word.
        let alike = posts(&gemini, Rest { offset: 3, address: 3, len: 9000, ready: true, ..GET });
        assert_eq!(alike[1].place, Place::Own);
    }

    #[test]
    fn an_unaligned_put_is_refused_with_the_rule() {
        let rules = Rules { put_alignment: 8, ..USUAL };
        let refused = rules.check(Direction::Put, 4, 8);
        assert_eq!(refused, Err(EngineError::UnalignedPut { offset: 4, len: 8, alignment: 8 }));
        assert!(rules.check(Direction::Put, 8, 12).is_err());
        assert_eq!(rules.check(Direction::Put, 8, 16), Ok(()));
        assert_eq!(rules.check(Direction::Get, 3, 5), Ok(()));
        for (offset, len, is_there) in [
            (u64::MAX, 0, true),
            (u64::MAX, 1, false),
            (u64::MAX, 2, false),
            (u64::MAX - 1, 1, true),
            (u64::MAX - 1, 2, false),
            (0, usize::MAX, true),
        ] {
            let checked = rules.check(Direction::Get, offset, len);
            assert_eq!(checked, if is_there { Ok(()) } else { Err(EngineError::PastEnd { offset, len }) });
        }
    }

    fn rules() -> impl Strategy<Value = Rules> {
        let alignment = || prop::sample::select(vec![1usize, 4, 16, 64]);
        let sizes = (0usize..300, 0usize..300, 0usize..300, 0usize..300, 0usize..300, 0usize..200);
        (alignment(), any::<bool>(), any::<bool>(), any::<bool>(), sizes).prop_map(
            |(alignment, local, tells_source, immediate, sizes)| {
                let (extra, put_short, get_short, put_bounce, get_bounce, buffer) = sizes;
                let largest = alignment + extra;
                Rules {
                    largest,
                    get_alignment: alignment,
                    put_alignment: 1,
                    local_alignment: if local { alignment } else { 1 },
                    tells_source,
                    put_short: put_short.min(largest),
                    get_short: get_short.min(largest),
                    put_bounce,
                    get_bounce,
                    immediate: if immediate && largest >= 128 { 128 } else { 0 },
                    buffer: (alignment + buffer).min(largest) / alignment * alignment,
                    atomics: Atomics::NONE,
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 2048 }, failure_persistence: None,
            ..ProptestConfig::default() })]
        #[test]
        fn chunks_cover_a_transfer_and_obey_the_rules(
            rules in rules(), put: bool, ready: bool, may_register: bool, wanted_back: bool,
            offset in 0u64..500, address in 0usize..500, len in 1usize..2000,
        ) {
            let direction = if put { Direction::Put } else { Direction::Get };
            let rest = Rest { direction, offset, address, len, ready, may_register, wanted_back };
            let (mut at, mut here) = (offset, address);
            for chunk in posts(&rules, rest) {
                let alignment = if put { 1 } else { rules.get_alignment };
                prop_assert!(chunk.wire <= rules.largest);
                prop_assert_eq!((at - chunk.skip as u64) % alignment as u64, 0);
                prop_assert_eq!(chunk.wire % alignment, 0);
                prop_assert!(chunk.skip + chunk.useful <= chunk.wire);
                let short = if put { rules.put_short } else { rules.get_short };
                prop_assert_eq!(chunk.way == Way::Short, chunk.wire <= short);
                match chunk.place {
                    Place::Immediate => prop_assert!(chunk.wire <= rules.immediate),
                    Place::Buffer => prop_assert!(chunk.wire <= rules.buffer),
                    Place::Own | Place::Registered => {
                        prop_assert!(chunk.skip == 0 && chunk.wire == chunk.useful);
                        prop_assert!(put || (here + chunk.shift).is_multiple_of(rules.local_alignment));
                        prop_assert!(here + chunk.shift + chunk.useful <= address + len);
                        let needs_none = put && chunk.way == Way::Short;
                        let usable = if chunk.place == Place::Own { ready } else { may_register };
                        prop_assert!(needs_none || usable);
                    }
                }
                at += chunk.useful as u64;
                here += chunk.useful;
            }
        }
    }
}
