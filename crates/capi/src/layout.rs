//! What C sees of the library: objects whose fields the headers read, and those that cross a call.
//!
//! # Invariants
//! As in the crate.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt::{self, Display, Formatter};

/// `gex_Flags_t`.
pub type Flags = u32;
/// `gex_Event_t`: 0 if it is done, 1 if nothing was started.
pub type Event = usize;
/// A value of `gex_Event_t *` that is no pointer, or one.
pub type Local = *mut Event;

/// `GEX_FLAG_IMMEDIATE`.
pub const IMMEDIATE: Flags = 1;
/// `GEX_FLAG_RANK_IS_JOBRANK`.
pub const RANK_IS_JOBRANK: Flags = 1 << 13;
/// `GEX_FLAG_GLOBALLY_QUIESCED`.
pub const GLOBALLY_QUIESCED: Flags = 1 << 13;
/// `GEX_EVENT_NO_OP`.
pub const NO_OP: Event = 1;
/// `GASNET_OK`.
pub const OK: c_int = 0;
/// `GASNET_ERR_NOT_INIT`.
pub const ERR_NOT_INIT: c_int = 10001;
/// `GEX_FLAG_DEFER_THREADS`.
pub const DEFER_THREADS: Flags = 1 << 1;
/// `GASNET_ERR_RESOURCE`.
pub const ERR_RESOURCE: c_int = 10002;
/// `GASNET_ERR_BAD_ARG`.
pub const ERR_BAD_ARG: c_int = 10003;
/// `GASNET_ERR_NOT_READY`.
pub const ERR_NOT_READY: c_int = 10004;
/// `GASNET_ERR_BARRIER_MISMATCH`.
pub const ERR_BARRIER_MISMATCH: c_int = 10005;

/// When the source of what is sent may be used again: what a `gex_Event_t *` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// When the call returns.
    Now,
    /// When all of it is done.
    Defer,
    /// With the implicit operations of the thread.
    Group,
    /// When the event says so that is stored there.
    At(Local),
}

impl When {
    /// Whether it says [`Now`](Self::Now) or [`Group`](Self::Group): nothing is to be done where the source was copied.
    #[inline(always)]
    pub fn is_plain(local: Local) -> bool {
        local.addr() == 1 || local.addr() == 3
    }

    /// What it says; `None`: it is null.
    pub fn of(local: Local) -> Option<Self> {
        match local.addr() {
            0 => None,
            1 => Some(Self::Now),
            2 => Some(Self::Defer),
            3 => Some(Self::Group),
            _ => Some(Self::At(local)),
        }
    }
}

/// What an object is, of which each begins with C's own word and this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A [`Client`].
    Client = 0x6777_636c,
    /// A [`Segment`].
    Segment = 0x6777_7367,
    /// An [`Endpoint`].
    Endpoint = 0x6777_6570,
    /// A [`Team`].
    Team = 0x6777_746d,
    /// A [`Team`] that is a pair of endpoints.
    Pair = 0x6777_7072,
    /// An [`AtomicDomain`].
    AtomicDomain = 0x6777_6164,
    /// One that was destroyed.
    Gone = 0x6777_676f,
}

impl Kind {
    /// What a word says.
    pub fn of(word: u32) -> Option<Self> {
        use Kind::*;
        [Client, Segment, Endpoint, Team, Pair, AtomicDomain, Gone]
            .into_iter()
            .find(|kind| *kind as u32 == word)
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Segment => "segment",
            Self::Endpoint => "endpoint",
            Self::Team => "team",
            Self::Pair => "pair of endpoints",
            Self::AtomicDomain => "domain of atomic operations",
            Self::Gone => "destroyed object",
        })
    }
}

/// How all objects begin.
#[repr(C)]
#[derive(Debug)]
pub struct Object {
    cdata: *const c_void,
    /// What it is.
    pub kind: u32,
}

/// `struct gasworks_client`.
#[repr(C)]
#[derive(Debug)]
pub struct Client {
    /// C's own.
    pub cdata: *const c_void,
    /// What it is: a word of [`Kind`].
    pub kind: u32,
    /// As they were given.
    pub flags: Flags,
    /// What C calls it.
    pub name: *const c_char,
}

/// `struct gasworks_segment`.
#[repr(C)]
#[derive(Debug)]
pub struct Segment {
    /// C's own.
    pub cdata: *const c_void,
    /// What it is: a word of [`Kind`].
    pub kind: u32,
    /// None.
    pub flags: Flags,
    /// Whose it is.
    pub client: *mut Client,
    /// Where it begins.
    pub address: *mut c_void,
    /// Its length.
    pub size: usize,
}

/// `struct gasworks_ep`.
#[repr(C)]
#[derive(Debug)]
pub struct Endpoint {
    /// C's own.
    pub cdata: *const c_void,
    /// What it is: a word of [`Kind`].
    pub kind: u32,
    /// None.
    pub flags: Flags,
    /// Whose it is.
    pub client: *mut Client,
    /// The segment that is bound to it.
    pub segment: *mut Segment,
    /// Its number.
    pub index: u16,
    /// With the endpoint of each number elsewhere: [`PAIRS`] of them, and one that stands for all other numbers.
    pub pairs: *mut Team,
}

/// How many numbers of endpoints there are for pairs: `GASWORKS_PAIRS`.
pub const PAIRS: usize = 64;

/// `struct gasworks_tm`: a team, or a pair of endpoints.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Team {
    /// C's own.
    pub cdata: *const c_void,
    /// What it is: a word of [`Kind`].
    pub kind: u32,
    /// None.
    pub flags: Flags,
    /// Whose it is.
    pub client: *mut Client,
    /// This rank's endpoint in it.
    pub ep: *mut Endpoint,
    /// The row of its first rank.
    pub rows: *const gasworks_memory::Row,
    /// How many bytes on the row of the next rank is: 0 where all have the same.
    pub pitch: isize,
    /// This rank.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
}

/// `struct gasworks_ad`.
#[repr(C)]
#[derive(Debug)]
pub struct AtomicDomain {
    /// C's own.
    pub cdata: *const c_void,
    /// What it is: a word of [`Kind`].
    pub kind: u32,
    /// As they were given.
    pub flags: Flags,
    /// The team of which ranks are.
    pub team: *const Team,
    /// `gex_DT_t`: what its words hold.
    pub of: c_uint,
    /// `gex_OP_t`: its operations.
    pub operations: c_uint,
    /// The row of the team's first rank, where the processor does the operations; a closed one where it does not.
    pub rows: *const gasworks_memory::Row,
    /// How many bytes on the row of the next rank is: 0 where all have the same.
    pub pitch: isize,
    /// The same for ranks of the job.
    pub job_rows: *const gasworks_memory::Row,
    /// The same for ranks of the job.
    pub job_pitch: isize,
}

/// `struct gasworks_objects`: those of the job that has begun.
#[repr(C)]
#[derive(Debug)]
pub struct Objects {
    /// The client.
    pub client: *mut Client,
    /// Its endpoint.
    pub ep: *mut Endpoint,
    /// The team of all ranks.
    pub tm: *mut Team,
}

/// `gex_AM_Entry_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it stands in the table; 0: wherever there is room.
    pub index: u8,
    /// What is called.
    pub function: Option<unsafe extern "C" fn()>,
    /// `GEX_FLAG_AM_*`.
    pub flags: Flags,
    /// How many arguments it takes.
    pub nargs: c_uint,
    /// C's own.
    pub cdata: *const c_void,
    /// What C calls it; null: nothing.
    pub name: *const c_char,
}

/// `gasnet_coll_reduce_fn_t`: results and how many they are, operands to their left and how many they are, operands to their right, bytes of an
/// element, the function's flags and the call's argument.
pub type RegisteredFn =
    unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, *const c_void, usize, c_int, c_int);

/// `gasnet_coll_fn_entry_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ReduceFnEntry {
    /// The function.
    pub function: Option<RegisteredFn>,
    /// `GASNET_COLL_NONCOMM`, or nothing.
    pub flags: c_uint,
}

/// `gex_Token_Info_t`.
#[repr(C)]
#[derive(Debug)]
pub struct TokenInfo {
    /// Who has sent the message.
    pub source: u32,
    /// The endpoint that it came to.
    pub ep: *mut Endpoint,
    /// The handler's entry.
    pub entry: *const Entry,
    /// Whether it is a request.
    pub is_request: c_int,
    /// Whether it is a Long.
    pub is_long: c_int,
}

/// `gex_RankInfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RankInfo {
    /// Its rank in the job.
    pub rank: u32,
}

/// `gex_EP_Location_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// The rank in the job.
    pub rank: u32,
    /// The number of the endpoint.
    pub index: u16,
}

/// `gex_Memvec_t`, and `gasnet_memvec_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memvec {
    /// Where it begins.
    pub at: *mut c_void,
    /// Its length.
    pub len: usize,
}

impl Memvec {
    /// No bytes.
    pub const NONE: Self = Self { at: std::ptr::null_mut(), len: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_memory::Row;
    use std::mem::offset_of;

    /// The header's assertions, which C checks, are what holds here.
    #[test]
    fn the_header_says_where_fields_lie() {
        let header = include_str!("../include/gasworks_layout.h");
        let lines = header.lines().filter_map(|line| {
            let rest = line.strip_prefix("GASWORKS_ASSERT_LAYOUT(")?.strip_suffix(");")?;
            let mut words = rest.split(", ");
            Some((words.next()?, words.next()?, words.next()?.parse::<usize>().ok()?))
        });
        let lines: Vec<_> = lines.collect();
        let row = |name: &str| Row::LAYOUT.iter().find(|(known, _)| *known == name).map(|(_, at)| *at);
        macro_rules! offsets {
            ($($name:literal: $of:ty { $($field:ident),* })*) => {
                [$($(($name, stringify!($field), offset_of!($of, $field)),)*)*]
            };
        }
        let here = offsets! {
            "gasworks_client": Client { cdata, kind, flags, name }
            "gasworks_segment": Segment { cdata, kind, flags, client, address, size }
            "gasworks_ep": Endpoint { cdata, kind, flags, client, segment, index, pairs }
            "gasworks_tm": Team { cdata, kind, flags, client, ep, rows, pitch, rank, size }
            "gasworks_ad": AtomicDomain { cdata, kind, flags, team, of, operations, rows, pitch, job_rows, job_pitch }
        };
        for &(of, field, at) in &lines {
            let found = match of {
                "gasworks_row" => row(field),
                _ => here.iter().find(|known| (known.0, known.1) == (of, field)).map(|known| known.2),
            };
            assert_eq!(found, Some(at), "{of}.{field}");
        }
        assert_eq!(lines.len(), here.len() + 4);
        assert_eq!(row("size"), Some(32), "as in C");
        assert!(include_str!("../include/gasnetex.h").contains(&format!("#define GASWORKS_PAIRS {PAIRS}\n")));
        let kinds = [
            ("client", Kind::Client),
            ("segment", Kind::Segment),
            ("pair", Kind::Pair),
            ("ep", Kind::Endpoint),
            ("tm", Kind::Team),
            ("ad", Kind::AtomicDomain),
        ];
        for (name, kind) in kinds {
            let line = format!("#define GASWORKS_KIND_{name} {:#x}u\n", kind as u32);
            assert!(header.contains(&line), "{line}");
            assert_eq!(Kind::of(kind as u32), Some(kind));
        }
        let here = offset_of!(Object, kind);
        assert!(lines.iter().filter(|(_, field, _)| *field == "kind").all(|(.., at)| *at == here));
    }

    #[test]
    fn a_pointer_to_an_event_may_be_none() {
        let mut event = 0;
        assert_eq!(When::of(std::ptr::null_mut()), None);
        let small = |number| When::of(std::ptr::without_provenance_mut(number));
        assert_eq!([small(1), small(2), small(3)], [Some(When::Now), Some(When::Defer), Some(When::Group)]);
        assert_eq!(When::of(&raw mut event), Some(When::At(&raw mut event)));
    }
}
