//! The head of a message: a fixed layout in little-endian, sixteen words of arguments at most.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind: category in bits 0 and 1, bit 2 reply, bit 3 the payload of a Long travels in the packet, bit 7 credits only |
//! | 1 | handler index |
//! | 2 | number of arguments |
//! | 3 | credits returned |
//! | 4..8 | bytes of volume returned with the credits |
//! | 8..16, 16..24 | Long only: offset in the target's segment, length |
//! | then | the arguments |
//!
//! Who sent it is the transport's to know. All that every message has is one word, made and taken apart in a register.

/// The most arguments of a message.
pub const MAX_ARGS: usize = 16;
/// The most bytes in the head of a message: 24 of fields and 16 arguments of 4.
pub const MAX_HEAD: usize = 88;
const FIXED: usize = 8;
const LONG: usize = 16;

/// The category of an active message, in the specification's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// Arguments only.
    Short,
    /// Arguments and a payload in a buffer of the library's.
    Medium,
    /// Arguments and a payload that lands in the target's segment.
    Long,
}

impl std::fmt::Display for Category {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Category::Short => "short",
            Category::Medium => "medium",
            Category::Long => "long",
        })
    }
}

/// Where a Long's payload lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The offset in the target's segment.
    pub offset: u64,
    /// The length.
    pub len: u64,
    /// Whether the payload travels in the packet and the target copies it.
    pub in_packet: bool,
}

/// The fields of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An active message.
    Message {
        /// Its category.
        category: Category,
        /// Whether it is a reply.
        reply: bool,
        /// The handler's index.
        handler: u8,
        /// Where a Long lands.
        landing: Option<Landing>,
    },
    /// Credits alone.
    Credits,
}

/// Credits that a message returns to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// How many requests they stand for.
    pub count: u8,
    /// The bytes of volume that those requests took.
    pub bytes: u32,
}

/// A head with its arguments, encoded.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Encoded {
    /// The bytes that travel.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Encodes. `args` is at most 64 bytes, a multiple of 4: the engine has checked.
    #[inline]
    pub fn new(head: Head, returned: Returned, args: &[u8]) -> Self {
        debug_assert!(args.len() <= 4 * MAX_ARGS && args.len().is_multiple_of(4));
        let mut bytes = [0u8; MAX_HEAD];
        let mut at = FIXED;
        let word = match head {
            Head::Credits => u64::from(CREDITS),
            Head::Message { category, reply, handler, landing } => {
                let mut kind = category as u8 | u8::from(reply) << 2;
                if let Some(landing) = landing {
                    kind |= u8::from(landing.in_packet) << 3;
                    bytes[8..16].copy_from_slice(&landing.offset.to_le_bytes());
                    bytes[16..24].copy_from_slice(&landing.len.to_le_bytes());
                    at += LONG;
                }
                u64::from(shape(kind, handler, args.len() / 4))
            }
        };
        bytes[..FIXED].copy_from_slice(&word.to_le_bytes());
        bytes[at..at + args.len()].copy_from_slice(args);
        let mut this = Self { bytes, len: at + args.len() };
        this.set_returned(returned);
        this
    }

    /// Writes the credits into an encoded head: they are known last.
    #[inline]
    pub fn set_returned(&mut self, returned: Returned) {
        self.bytes[3] = returned.count;
        self.bytes[4..8].copy_from_slice(&returned.bytes.to_le_bytes());
    }
}

const CREDITS: u8 = 0x80;
/// The kind's bit for a Long whose payload travels in the packet.
const IN_PACKET: u8 = 8;

/// Bits of a shape: of the category, of request or reply, of the number of arguments.
pub(crate) const CATEGORY: u32 = 3;
pub(crate) const WAY: u32 = 4;
pub(crate) const COUNT: u32 = 0xff << 16;

/// What a handler and a message for it have in common: kind, index, number of arguments.
const fn shape(kind: u8, handler: u8, nargs: usize) -> u32 {
    kind as u32 | (handler as u32) << 8 | (nargs as u32) << 16
}

/// The first word of a message that is no Long.
#[inline]
pub(crate) fn first_word(
    category: Category,
    reply: bool,
    handler: u8,
    nargs: usize,
    returned: Returned,
) -> u64 {
    u64::from(shape_of(category, reply, handler, nargs))
        | u64::from(returned.count) << 24
        | u64::from(returned.bytes) << 32
}

/// The words before the arguments of a Long.
#[inline]
pub(crate) fn long_words(
    reply: bool,
    handler: u8,
    nargs: usize,
    landing: Landing,
    returned: Returned,
) -> [u64; 3] {
    let word = first_word(Category::Long, reply, handler, nargs, returned);
    let in_packet = if landing.in_packet { u64::from(IN_PACKET) } else { 0 };
    [word | in_packet, landing.offset, landing.len]
}

/// The first word, and all there is, of a message that returns credits.
#[inline]
pub(crate) fn credits_word(returned: Returned) -> u64 {
    u64::from(CREDITS) | u64::from(returned.count) << 24 | u64::from(returned.bytes) << 32
}

/// The shape of every message for this handler.
#[inline]
pub(crate) fn shape_of(category: Category, reply: bool, handler: u8, nargs: usize) -> u32 {
    shape(category as u8 | u8::from(reply) << 2, handler, nargs)
}

/// A head before anything but its first word was looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First(u64);

impl First {
    /// Of this word.
    #[inline]
    pub(crate) fn new(word: u64) -> Self {
        First(word)
    }

    /// The first word, if there is one.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk::<FIXED>().map(|first| First(u64::from_le_bytes(*first)))
    }

    /// Whether it only returns credits, and has nothing else.
    #[inline]
    pub(crate) fn is_credits(self, bytes: &[u8]) -> bool {
        self.0 as u32 & 0x00FF_FFFF == u32::from(CREDITS) && bytes.len() == FIXED
    }

    /// The shape of the handler it asks for.
    #[inline]
    pub(crate) fn shape(self) -> u32 {
        self.0 as u32 & 0x00FF_FFFF & !u32::from(IN_PACKET)
    }

    /// Its category, if it says one.
    #[inline]
    pub(crate) fn category(self) -> Option<Category> {
        match self.0 as u32 & CATEGORY {
            0 => Some(Category::Short),
            1 => Some(Category::Medium),
            2 => Some(Category::Long),
            _ => None,
        }
    }

    /// Whether it is a reply.
    #[inline]
    pub(crate) fn is_reply(self) -> bool {
        self.0 as u32 & WAY != 0
    }

    /// How many arguments it says that it has.
    #[inline]
    pub(crate) fn count(self) -> usize {
        usize::from((self.0 >> 16) as u8)
    }

    /// The index of its handler.
    #[inline]
    pub(crate) fn handler(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// What it returns.
    #[inline]
    pub(crate) fn returned(self) -> Returned {
        Returned { count: (self.0 >> 24) as u8, bytes: (self.0 >> 32) as u32 }
    }

    /// The arguments, of a message whose shape is that of a handler that is no Long's.
    #[inline]
    pub(crate) fn args(self, bytes: &[u8]) -> Option<&[u8]> {
        let args = bytes.get(FIXED..)?;
        (args.len() == 4 * self.count() && self.0 as u8 & IN_PACKET == 0).then_some(args)
    }

    /// Where it lands, and its arguments, of a Long whose shape is that of its handler.
    #[inline]
    pub(crate) fn landing(self, bytes: &[u8]) -> Option<(Landing, &[u8])> {
        let (fields, args) = bytes.get(FIXED..)?.split_first_chunk::<LONG>()?;
        let &[offset, len] = fields.as_chunks().0 else { return None };
        let landing = Landing {
            offset: u64::from_le_bytes(offset),
            len: u64::from_le_bytes(len),
            in_packet: self.0 as u8 & IN_PACKET != 0,
        };
        let is_long = self.category() == Some(Category::Long) && args.len() == 4 * self.count();
        is_long.then_some((landing, args))
    }
}

/// A decoded head: the arguments still lie in the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The fields.
    pub head: Head,
    /// The credits it returns.
    pub returned: Returned,
    /// The arguments.
    pub args: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let field = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    field.map(u32::from_le_bytes).ok_or_else(|| format!("its head of {} bytes is cut short", bytes.len()))
}

fn double(bytes: &[u8], at: usize) -> Result<u64, String> {
    Ok(u64::from(word(bytes, at)?) | u64::from(word(bytes, at + 4)?) << 32)
}

/// Decodes a head from the bytes a peer sent.
///
/// # Errors
/// What is wrong with them.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, String> {
    let returned_bytes = word(bytes, 4)?;
    let (kind, handler, nargs, count) = (bytes[0], bytes[1], usize::from(bytes[2]), bytes[3]);
    let mut at = FIXED;
    let head = if kind == CREDITS {
        if nargs != 0 || handler != 0 {
            return Err("a return of credits carries arguments".into());
        }
        Head::Credits
    } else {
        let category = match kind & 3 {
            _ if kind & 0xF0 != 0 => return Err(format!("its kind {kind:#04x} does not exist")),
            0 => Category::Short,
            1 => Category::Medium,
            2 => Category::Long,
            _ => return Err(format!("its kind {kind:#04x} does not exist")),
        };
        let in_packet = kind & IN_PACKET != 0;
        if in_packet && category != Category::Long {
            return Err(format!("its kind {kind:#04x} does not exist"));
        }
        let landing = if category == Category::Long {
            at += LONG;
            Some(Landing { offset: double(bytes, 8)?, len: double(bytes, 16)?, in_packet })
        } else {
            None
        };
        Head::Message { category, reply: kind & 4 != 0, handler, landing }
    };
    if nargs > MAX_ARGS {
        return Err(format!("it claims {nargs} arguments"));
    }
    if bytes.len() != at + 4 * nargs {
        return Err(format!("its head has {} bytes where {} are due", bytes.len(), at + 4 * nargs));
    }
    let returned = Returned { count, bytes: returned_bytes };
    Ok(Decoded { head, returned, args: &bytes[at..] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = Head> {
        let landing = (any::<u64>(), any::<u64>(), any::<bool>())
            .prop_map(|(offset, len, in_packet)| Landing { offset, len, in_packet });
        prop_oneof![
            Just(Head::Credits),
            (any::<bool>(), any::<u8>(), landing, 0..3u8).prop_map(|(reply, handler, landing, category)| {
                let category = [Category::Short, Category::Medium, Category::Long][usize::from(category)];
                let landing = (category == Category::Long).then_some(landing);
                Head::Message { category, reply, handler, landing }
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]
        #[test]
        fn round_trip(head in heads(), count: u8, bytes: u32, nargs in 0..=16usize, fill: u8) {
            let args = vec![fill; if head == Head::Credits { 0 } else { nargs * 4 }];
            let returned = Returned { count, bytes };
            let encoded = Encoded::new(head, returned, &args);
            let decoded = decode(encoded.as_bytes());
            let first = First::of(encoded.as_bytes()).expect("a word");
            prop_assert_eq!(first.returned(), returned);
            prop_assert_eq!(first.is_credits(encoded.as_bytes()), head == Head::Credits);
            if head == Head::Credits {
                prop_assert_eq!(&credits_word(returned).to_le_bytes()[..], encoded.as_bytes());
            }
            if let Head::Message { category, reply, handler, landing } = head {
                if landing.is_none() {
                    let word = first_word(category, reply, handler, nargs, returned);
                    prop_assert_eq!(&word.to_le_bytes()[..], &encoded.as_bytes()[..8]);
                }
                prop_assert_eq!(first.shape(), shape_of(category, reply, handler, nargs));
                prop_assert_eq!(first.handler(), handler);
                prop_assert_eq!((first.category(), first.is_reply()), (Some(category), reply));
                prop_assert_eq!(first.count(), nargs);
                prop_assert_eq!(first.args(encoded.as_bytes()), landing.is_none().then_some(&args[..]));
                if let Some(landing) = landing {
                    let bytes = encoded.as_bytes();
                    prop_assert_eq!(first.landing(bytes), Some((landing, &args[..])));
                    prop_assert_eq!(first.landing(&bytes[..bytes.len() - 1]), None);
                    let words = long_words(reply, handler, nargs, landing, returned).map(u64::to_le_bytes);
                    prop_assert_eq!(words.as_flattened(), &bytes[..24]);
                }
            }
            prop_assert_eq!(decoded, Ok(Decoded { head, returned, args: &args }));
        }

        #[test]
        fn any_bytes_are_refused_or_understood(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(decoded) = decode(&bytes) {
                let again = Encoded::new(decoded.head, decoded.returned, decoded.args);
                prop_assert_eq!(again.as_bytes(), &bytes[..]);
            }
        }
    }

    #[test]
    fn a_cut_head_is_named() {
        let encoded = Encoded::new(Head::Credits, Returned::default(), &[]);
        assert!(decode(&encoded.as_bytes()[..7]).is_err_and(|e| e.contains("7 bytes is cut short")));
        assert!(decode(&[3; 40]).is_err_and(|e| e.contains("0x03 does not exist")));
    }

    /// Every rule of a head, broken once.
    #[test]
    fn a_wrong_head_is_refused() {
        let head = |kind: u8, handler: u8, nargs: u8, more: usize| {
            [&[kind, handler, nargs, 0, 0, 0, 0, 0][..], &vec![0; more]].concat()
        };
        let (long, none) = (16, "does not exist");
        let rows = [
            (head(0, 1, 0, 0), None),
            (head(7, 1, 0, 0), Some(none)),
            (head(0x10, 1, 0, 0), Some(none)),
            (head(0x40, 1, 0, 0), Some(none)),
            (head(0x81, 0, 0, 0), Some(none)),
            (head(8, 1, 0, 0), Some(none)),
            (head(8 | 1, 1, 0, 0), Some(none)),
            (head(8 | 2, 1, 0, long), None),
            (head(0x80, 1, 0, 0), Some("a return of credits carries arguments")),
            (head(0x80, 0, 1, 4), Some("a return of credits carries arguments")),
            (head(0x80, 0, 0, 4), Some("has 12 bytes where 8 are due")),
            (head(0, 1, 16, 64), None),
            (head(0, 1, 17, 68), Some("claims 17 arguments")),
            (head(0, 1, 1, 3), Some("has 11 bytes where 12 are due")),
            (head(1, 1, 1, 5), Some("has 13 bytes where 12 are due")),
            (head(2, 1, 1, long), Some("has 24 bytes where 28 are due")),
            (head(2, 1, 0, 15), Some("cut short")),
        ];
        for (head, wrong) in rows {
            match (decode(&head), wrong) {
                (Ok(decoded), None) => assert_eq!(decoded.returned, Returned::default()),
                (Err(what), Some(wrong)) => assert!(what.contains(wrong), "{head:?}: {what}"),
                (found, _) => panic!("{head:?}: {found:?}"),
            }
        }
        // A short head by its first word alone: what is no credits, and whose arguments are not what it says.
        let first = |head: &[u8]| First::of(head).expect("a word");
        let credits = head(0x80, 0, 0, 0);
        assert!(
            first(&credits).is_credits(&credits)
                && !first(&credits).is_credits(&[&credits[..], &[0]].concat())
        );
        assert_eq!(first(&head(0, 1, 1, 8)).args(&head(0, 1, 1, 8)), None);
        assert_eq!(first(&head(8, 1, 1, 4)).args(&head(8, 1, 1, 4)), None);
        assert_eq!(first(&head(3, 1, 0, 0)).category(), None);
        assert!(First::of(&credits[..7]).is_none());
    }

    #[test]
    fn categories_have_names() {
        let names = [Category::Short, Category::Medium, Category::Long].map(|category| category.to_string());
        assert_eq!(names, ["short", "medium", "long"]);
    }
}
