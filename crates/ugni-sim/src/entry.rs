//! The words of which completion queues consist.
//!
//! Clients look into them through functions of the library alone. The layout of Gemini follows what is known of the chip;
//! that of Aries is not known, and ours:
//!
//! | field | Gemini | Aries |
//! |---|---|---|
//! | the queue overran | 63 | 63 |
//! | status | 59 to 62 | 57 to 62 |
//! | where it comes from | 56 to 58 | 54 to 56 |
//! | the queue of the target overran | 53 | 53 |
//! | type | 54 to 55 | 46 to 47 |
//! | instance | 21 to 52 | 22 to 45 |
//! | transaction | 0 to 20 | 0 to 21 |
//!
//! An event from afar holds data instead of the last three or four: 48 bits, of which a value is the lower 32. So does that of
//! a collective engine, whose data [`reduction`](crate::reduction) lays out. Bits 48 and 49 of such a word say of what it tells
//! ([`Tells`]); they are the NIC's own, and clear in what a client sees. The event of a
//! message, as the client sees it, holds the message's name in the lower 32 instead of the last two: no chip has room for both.

use gasworks_gni_sys::{GNI_CQ_EVENT_TYPE_MSGQ, GNI_CQ_EVENT_TYPE_SMSG};

use crate::chip::Chip;
use crate::memory::Fault;

/// Where an event comes from. A word that says nothing of it (0) is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Source {
    /// A request that wants no answer was sent.
    Request = 1,
    /// The same of a delayed one.
    Delayed = 2,
    /// The answer of the target's NIC came: the transaction is over.
    Answer = 3,
    /// The block transfer engine has read its source.
    Engine = 4,
    /// Another NIC wrote here.
    Remote = 5,
    /// The same by a delayed request.
    RemoteDelayed = 6,
    /// The same as an answer.
    RemoteAnswer = 7,
}

impl Source {
    const ALL: [Source; 7] = [
        Source::Request,
        Source::Delayed,
        Source::Answer,
        Source::Engine,
        Source::Remote,
        Source::RemoteDelayed,
        Source::RemoteAnswer,
    ];

    /// Whether it is told at the target.
    pub fn is_remote(self) -> bool {
        self as u8 >= Source::Remote as u8
    }
}

/// Why a transaction failed; both chips have room for these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It did not.
    #[default]
    Ok = 0,
    /// The memory handle is of no registration.
    Descriptor = 1,
    /// The address is not in the registration.
    Bounds = 2,
    /// It may not be written.
    Permission = 3,
    /// The address is not mapped any more.
    Translation = 4,
    /// The target breaks a rule of alignment.
    Alignment = 5,
    /// There is no such NIC, or it is gone.
    Gone = 6,
    /// A request was lost; it may work the next time.
    Lost = 7,
    /// No answer came in time; it may work the next time.
    Timeout = 8,
    /// The target's NIC had no room; it may work the next time.
    Congested = 9,
    /// Dynamic load alleviation ran over (Aries).
    DlaOverflow = 10,
    /// The block transfer engine did not take the transfer (Aries).
    Enqueue = 11,
    /// What was contributed to a reduction does not fit together (Aries).
    Mismatch = 12,
}

impl Status {
    /// All, in the order of their numbers.
    pub const ALL: [Status; 13] = [
        Status::Ok,
        Status::Descriptor,
        Status::Bounds,
        Status::Permission,
        Status::Translation,
        Status::Alignment,
        Status::Gone,
        Status::Lost,
        Status::Timeout,
        Status::Congested,
        Status::DlaOverflow,
        Status::Enqueue,
        Status::Mismatch,
    ];

    /// The status of this number; `None` if there is none.
    pub fn of(number: u64) -> Option<Status> {
        Status::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Its name: that of the variant in lower case, with hyphens between words.
    pub fn name(self) -> String {
        let mut text = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !text.is_empty() {
                text.push('-');
            }
            text.push(letter.to_ascii_lowercase());
        }
        text
    }

    /// The status of this [name](Self::name).
    pub fn named(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the same transaction may work if it is posted again.
    pub fn is_recoverable(self) -> bool {
        matches!(
            self,
            Status::Lost | Status::Timeout | Status::Congested | Status::DlaOverflow | Status::Enqueue
        )
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Status::Ok => "no error",
            Status::Descriptor => "the memory handle is of no registration",
            Status::Bounds => "the address is outside the registration",
            Status::Permission => "the registration may not be written",
            Status::Translation => "the registered memory is not mapped",
            Status::Alignment => "the address or length is not aligned",
            Status::Gone => "the target cannot be reached",
            Status::Lost => "a request was lost",
            Status::Timeout => "no answer came in time",
            Status::Congested => "the target had no room",
            Status::DlaOverflow => "a load alleviation buffer overflowed",
            Status::Enqueue => "the block transfer engine refused the transfer",
            Status::Mismatch => "the contributions to a reduction do not fit together",
        }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unmapped => Status::Translation,
            Fault::Gone => Status::Gone,
        }
    }
}

/// An event, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Events were lost at this queue.
    pub overrun: bool,
    /// An event was lost at the target's queue.
    pub remote_overrun: bool,
    /// Its number; [`Status::of`] says which.
    pub status: u8,
    /// Where it comes from.
    pub source: Source,
    /// The rest.
    pub body: Body,
}

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A transaction of this NIC.
    Local {
        /// `GNI_CQ_EVENT_TYPE_*`.
        kind: u8,
        /// The value.
        instance: u32,
        /// The transaction.
        transaction: u32,
    },
    /// A message of this NIC.
    Message {
        /// `GNI_CQ_EVENT_TYPE_SMSG` or `GNI_CQ_EVENT_TYPE_MSGQ`.
        kind: u8,
        /// What the client calls it.
        id: u32,
    },
    /// 48 bits from another NIC, and above them of what they tell.
    Remote(u64),
}

/// Of what an event tells that is none of a transaction of its own NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Somebody has reached the memory here.
    Memory,
    /// A value was written into the queue itself.
    Value,
    /// An engine of this NIC's has failed.
    Engine,
}

impl Tells {
    const ALL: [Tells; 3] = [Tells::Memory, Tells::Value, Tells::Engine];

    /// The data of such an event, marked.
    pub fn mark(self, data: u64) -> u64 {
        data & mask(DATA_BITS) | (self as u64) << DATA_BITS
    }

    /// Of what marked data tells, and what it is without the mark.
    pub fn open(data: u64) -> (Self, u64) {
        let mark = usize::try_from(data >> DATA_BITS & mask(MARK_BITS)).unwrap_or(0);
        (Self::ALL.get(mark).copied().unwrap_or(Tells::Memory), data & mask(DATA_BITS))
    }
}

/// The places of the fields of a chip.
struct Layout {
    status: (u32, u32),
    source: u32,
    kind: u32,
    instance: (u32, u32),
}

const OVERRUN: u32 = 63;
const REMOTE_OVERRUN: u32 = 53;
const SOURCE_BITS: u32 = 3;
const KIND_BITS: u32 = 2;
const DATA_BITS: u32 = 48;
const MARK_BITS: u32 = 2;

fn layout(chip: Chip) -> Layout {
    let bits = chip.instance_bits();
    match chip {
        Chip::Gemini => Layout { status: (59, 4), source: 56, kind: 54, instance: (21, bits) },
        Chip::Aries => Layout { status: (57, 6), source: 54, kind: 46, instance: (22, bits) },
    }
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// How many transactions can be told apart.
pub fn transactions(chip: Chip) -> u32 {
    1 << layout(chip).instance.0
}

impl Entry {
    /// The word of an event. What does not fit its field is cut.
    pub fn encode(&self, chip: Chip) -> u64 {
        let Layout { status, source, kind, instance } = layout(chip);
        let body = match self.body {
            Body::Local { kind: of, instance: value, transaction } => {
                (u64::from(of) & mask(KIND_BITS)) << kind
                    | (u64::from(value) & mask(instance.1)) << instance.0
                    | u64::from(transaction) & mask(instance.0)
            }
            Body::Message { kind: of, id } => (u64::from(of) & mask(KIND_BITS)) << kind | u64::from(id),
            Body::Remote(data) => data & mask(DATA_BITS + MARK_BITS),
        };
        u64::from(self.overrun) << OVERRUN
            | (u64::from(self.status) & mask(status.1)) << status.0
            | (self.source as u64) << source
            | u64::from(self.remote_overrun) << REMOTE_OVERRUN
            | body
    }

    /// Takes a word apart; `None` if it is no event.
    pub fn decode(word: u64, chip: Chip) -> Option<Self> {
        let Layout { status, source, kind, instance } = layout(chip);
        let field = |at: u32, bits: u32| word >> at & mask(bits);
        let source = Source::ALL.into_iter().find(|of| *of as u64 == field(source, SOURCE_BITS))?;
        let kind = field(kind, KIND_BITS);
        let body = match kind {
            _ if source.is_remote() => Body::Remote(field(0, DATA_BITS + MARK_BITS)),
            GNI_CQ_EVENT_TYPE_SMSG | GNI_CQ_EVENT_TYPE_MSGQ => {
                Body::Message { kind: kind as u8, id: field(0, u32::BITS) as u32 }
            }
            _ => Body::Local {
                kind: kind as u8,
                instance: field(instance.0, instance.1) as u32,
                transaction: field(0, instance.0) as u32,
            },
        };
        Some(Self {
            overrun: field(OVERRUN, 1) == 1,
            remote_overrun: field(REMOTE_OVERRUN, 1) == 1,
            status: field(status.0, status.1) as u8,
            source,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::LAP_BITS;
    use proptest::prelude::*;

    fn entry(chip: Chip) -> impl Strategy<Value = Entry> {
        let local =
            (0..4u8, 0..=u32::MAX, 0..transactions(chip)).prop_map(move |(kind, number, transaction)| {
                match u64::from(kind) {
                    GNI_CQ_EVENT_TYPE_SMSG | GNI_CQ_EVENT_TYPE_MSGQ => Body::Message { kind, id: number },
                    _ => Body::Local { kind, instance: number >> (32 - chip.instance_bits()), transaction },
                }
            });
        let local = (0..4usize, local).prop_map(|(i, body)| (Source::ALL[i], body));
        let remote = (4..7usize, 0..=mask(DATA_BITS + MARK_BITS))
            .prop_map(|(i, data)| (Source::ALL[i], Body::Remote(data)));
        let flags = (any::<bool>(), any::<bool>(), 0..13u8);
        (flags, prop_oneof![local, remote]).prop_map(|((overrun, remote_overrun, status), (source, body))| {
            Entry { overrun, remote_overrun, status, source, body }
        })
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn what_is_put_together_comes_apart(gemini in entry(Chip::Gemini), aries in entry(Chip::Aries)) {
            for (chip, entry) in [(Chip::Gemini, gemini), (Chip::Aries, aries)] {
                let word = entry.encode(chip);
                prop_assert_eq!(Entry::decode(word, chip), Some(entry));
                prop_assert!(word >> LAP_BITS > 0, "a queue tells it from a free place");
            }
        }

        #[test]
        fn any_word_is_an_event_or_none(word: u64) {
            for chip in Chip::ALL {
                if let Some(entry) = Entry::decode(word, chip) {
                    let _ = Status::of(entry.status.into()).map(Status::text);
                }
            }
        }

        /// The word of a free place in a queue is no event.
        #[test]
        fn a_free_place_is_no_event(lap in 0..1u64 << LAP_BITS) {
            prop_assert!(Chip::ALL.into_iter().all(|chip| Entry::decode(lap, chip).is_none()));
        }
    }

    #[test]
    fn the_numbers_of_statuses_are_their_places() {
        for (number, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!((status as usize, Status::of(number as u64)), (number, Some(status)));
        }
        assert_eq!(Status::of(13), None);
    }
}
