//! Handlers in C: how they are entered, and how they are called.
//!
//! # Invariants
//! As in the crate.

use crate::am::token_of;
use crate::codes::refused;
use crate::face::{Face, FaceMode, Shown};
use crate::layout::{ERR_BAD_ARG, ERR_RESOURCE, Endpoint, Entry, Flags, OK};
use crate::talk::ended_whole;
use gasworks_core::message::MAX_ARGS;
use gasworks_core::{Also, Category, Error, Incoming, Received, Signature};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;

const SHORT: Flags = 1;
const MEDIUM: Flags = 2;
const LONG: Flags = 4;
const REQUEST: Flags = 8;
const REPLY: Flags = 16;
/// Of GASNet-1's handlers, which say nothing of what they take.
pub(crate) const ANYTHING: Flags = 1 << 31;

type Function = unsafe extern "C" fn();

/// A handler of C's.
struct Handler<M: FaceMode> {
    face: &'static Face<M>,
    function: Function,
}

impl<M: FaceMode> Handler<M> {
    /// Calls it for a message. There are no errors: a call of C's that fails ends the job.
    #[inline(always)]
    fn run(&self, incoming: &Incoming<'_, M>) -> Result<(), Box<Error>> {
        match incoming.received() {
            // SAFETY: capi.5: C has registered `function` for this Short; its token leads to `incoming`, which stays during the call.
            Received::Nothing => unsafe { call_short(self.function, token_of(incoming), words(incoming)) },
            Received::Payload(bytes) if is_aligned(bytes) => {
                let (token, address) = (token_of(incoming), bytes.as_ptr().cast());
                // SAFETY: capi.5: C has registered `function` for this Medium, whose bytes stay during the call.
                unsafe { call_payload(self.function, token, address, bytes.len(), words(incoming)) }
            }
            _ => self.run_with_payload(incoming),
        }
        Ok(())
    }

    /// The same in a program that is compiled for debugging: whatever the handler began it has to have ended.
    fn run_watched(&self, incoming: &Incoming<'_, M>) -> Result<(), Box<Error>> {
        let handler = incoming.token().handler;
        self.run(incoming)?;
        ended_whole(handler);
        Ok(())
    }

    #[inline(never)]
    fn run_with_payload(&self, incoming: &Incoming<'_, M>) {
        let (token, args) = (token_of(incoming), words(incoming));
        match incoming.received() {
            Received::Nothing => {}
            Received::Payload(bytes) => {
                let mut aligned = Aligned::of(bytes);
                // SAFETY: capi.5: C has registered `function` for this Medium; `aligned` has `bytes.len()` bytes and stays during the call.
                unsafe { call_payload_of_many(self.function, token, aligned.as_mut_ptr(), bytes.len(), args) }
            }
            Received::Landed { offset, len } => {
                let address = self.face.own(offset).cast();
                // SAFETY: capi.5: C has registered `function` for this Long, whose `len` bytes are at `address` in this rank's segment.
                unsafe { call_payload_of_many(self.function, token, address, len as usize, args) }
            }
        }
    }
}

/// The payload of a Medium, aligned for anything.
enum Aligned<'a> {
    There(gasworks_sync::VolatileSlice<'a>),
    Small(Piece),
    Large(Vec<Piece>),
}

#[repr(align(16))]
#[derive(Clone, Copy)]
struct Piece([u8; SMALL]);
const SMALL: usize = 128;

/// Whether a payload lies where anything may.
#[inline]
fn is_aligned(bytes: gasworks_sync::VolatileSlice<'_>) -> bool {
    bytes.as_ptr().addr().is_multiple_of(align_of::<Piece>())
}

impl<'a> Aligned<'a> {
    fn of(bytes: gasworks_sync::VolatileSlice<'a>) -> Self {
        if is_aligned(bytes) {
            return Self::There(bytes);
        }
        if bytes.len() <= SMALL {
            let mut piece = Piece([0; SMALL]);
            bytes.read(&mut piece.0[..bytes.len()]);
            return Self::Small(piece);
        }
        let mut pieces = vec![Piece([0; SMALL]); bytes.len().div_ceil(SMALL)];
        pieces.iter_mut().enumerate().for_each(|(number, piece)| {
            let from = number * SMALL;
            let len = SMALL.min(bytes.len() - from);
            bytes.slice(from, len).into_iter().for_each(|part| part.read(&mut piece.0[..len]));
        });
        Self::Large(pieces)
    }

    /// Where the payload lies, which a handler may write to.
    fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Self::There(bytes) => bytes.as_ptr().cast(),
            Self::Small(piece) => (&raw mut *piece).cast(),
            Self::Large(pieces) => pieces.as_mut_ptr().cast(),
        }
    }
}

/// Arguments as a message has them.
type Words<'a> = &'a [[u8; 4]];

#[inline]
fn words<'a, M: FaceMode>(incoming: &Incoming<'a, M>) -> Words<'a> {
    incoming.args().as_chunks().0
}

/// Calls a function with what all of its kind are given, and the words of a message.
macro_rules! call {
    (@argument $word:ident) => { i32 };
    ($function:ident($($first:ident: $type:ty),*; $($word:ident),*)) => {{
        type Of = unsafe extern "C" fn($($type,)* $(call!(@argument $word)),*);
        // SAFETY: capi.5: the function's arguments are those of its category and then as many words as this message has: it is an `Of`.
        unsafe { transmute::<Function, Of>($function)($($first,)* $(i32::from_le_bytes($word)),*) }
    }};
}

/// Calls a Short's handler. Words that go in registers are passed here; what passes more of them wants a stack, and is apart.
///
/// # Safety
/// capi.5.
#[inline(always)]
unsafe fn call_short(function: Function, token: *mut c_void, args: Words<'_>) {
    match *args {
        [] => call!(function(token: *mut c_void;)),
        [a] => call!(function(token: *mut c_void; a)),
        [a, b] => call!(function(token: *mut c_void; a, b)),
        [a, b, c] => call!(function(token: *mut c_void; a, b, c)),
        [a, b, c, d] => call!(function(token: *mut c_void; a, b, c, d)),
        [a, b, c, d, e] => call!(function(token: *mut c_void; a, b, c, d, e)),
        // SAFETY: capi.5: the caller promises it of `function` and this message, whose `token` and words are passed on as they are.
        _ => unsafe { call_short_of_many(function, token, args) },
    }
}

/// Calls a handler of messages that have a payload, as [`call_short`].
///
/// # Safety
/// capi.5.
#[inline(always)]
unsafe fn call_payload(
    function: Function,
    token: *mut c_void,
    address: *mut c_void,
    len: usize,
    args: Words<'_>,
) {
    match *args {
        [] => call!(function(token: *mut c_void, address: *mut c_void, len: usize;)),
        [a] => call!(function(token: *mut c_void, address: *mut c_void, len: usize; a)),
        [a, b] => call!(function(token: *mut c_void, address: *mut c_void, len: usize; a, b)),
        [a, b, c] => call!(function(token: *mut c_void, address: *mut c_void, len: usize; a, b, c)),
        // SAFETY: capi.5: the caller promises it of `function` and this message, which is passed on as it is.
        _ => unsafe { call_payload_of_many(function, token, address, len, args) },
    }
}

macro_rules! calls {
    ($([$($word:ident),*])*) => {
        /// # Safety
        /// capi.5.
        #[inline(never)]
        unsafe fn call_short_of_many(function: Function, token: *mut c_void, args: Words<'_>) {
            match *args {
                $([$($word),*] => call!(function(token: *mut c_void; $($word),*)),)*
                _ => {}
            }
        }

        /// # Safety
        /// capi.5.
        #[inline(never)]
        unsafe fn call_payload_of_many(
            function: Function,
            token: *mut c_void,
            address: *mut c_void,
            len: usize,
            args: Words<'_>,
        ) {
            match *args {
                $([$($word),*] => {
                    call!(function(token: *mut c_void, address: *mut c_void, len: usize; $($word),*))
                })*
                _ => {}
            }
        }
    };
}

calls! {
    []
    [a]
    [a, b]
    [a, b, c]
    [a, b, c, d]
    [a, b, c, d, e]
    [a, b, c, d, e, f]
    [a, b, c, d, e, f, g]
    [a, b, c, d, e, f, g, h]
    [a, b, c, d, e, f, g, h, i]
    [a, b, c, d, e, f, g, h, i, j]
    [a, b, c, d, e, f, g, h, i, j, k]
    [a, b, c, d, e, f, g, h, i, j, k, l]
    [a, b, c, d, e, f, g, h, i, j, k, l, m]
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n]
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o]
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// What a handler takes; what is wrong with its entry. In a program that is not compiled for debugging the number of arguments there says nothing:
/// it may be wrong, as nobody has ever said.
fn signature(entry: &Entry, is_debug: bool) -> Result<Signature, String> {
    // SAFETY: capi.1: the name is not null here and ends with a zero; it is copied in this function.
    let name = (!entry.name.is_null()).then(|| unsafe { CStr::from_ptr(entry.name) }.to_string_lossy());
    let name = name.map_or_else(|| format!("handler {}", entry.index), |name| name.into_owned());
    let nargs = entry.nargs as usize;
    if entry.flags & ANYTHING != 0 {
        let also = Also::ANY_CATEGORY | Also::OTHER_WAY | Also::ANY_COUNT;
        return Ok(Signature { name, category: Category::Short, reply: false, nargs: 0, also });
    }
    if nargs > MAX_ARGS {
        return Err(format!("{name:?} takes {nargs} arguments: {MAX_ARGS} are the most"));
    }
    let (category, mut also) = match entry.flags & (SHORT | MEDIUM | LONG) {
        SHORT => (Category::Short, Also::empty()),
        MEDIUM => (Category::Medium, Also::empty()),
        LONG => (Category::Long, Also::empty()),
        flags if flags == MEDIUM | LONG => (Category::Medium, Also::LONG),
        _ => return Err(format!("the flags {:#x} of {name:?} say no category", entry.flags)),
    };
    if !is_debug {
        also |= Also::ANY_COUNT;
    }
    let reply = match entry.flags & (REQUEST | REPLY) {
        REQUEST => false,
        REPLY => true,
        0 => return Err(format!("the flags {:#x} of {name:?} say neither request nor reply", entry.flags)),
        _ => {
            also |= Also::OTHER_WAY;
            false
        }
    };
    Ok(Signature { name, category, reply, nargs, also })
}

/// `gex_EP_RegisterHandlers`.
///
/// # Safety
/// capi.1: there are so many entries, which nobody else uses meanwhile; capi.5.
pub unsafe fn register<M: FaceMode>(ep: *mut Endpoint, table: *mut Entry, count: usize) -> c_int {
    const CALL: &str = "gex_EP_RegisterHandlers";
    let face = M::slot().of(CALL);
    if ep != face.ep || (count > 0 && (table.is_null() || !table.is_aligned())) {
        return refused(CALL, format!("there is no endpoint {ep:p}, or no table at {table:p}"), ERR_BAD_ARG);
    }
    // Those that say where they stand come first, so that the others leave them their places.
    for fixed in [true, false] {
        for at in 0..count {
            // SAFETY: capi.1: `table` is aligned and not null, and `at` below `count`: C has an entry there, and nobody else uses it.
            let entry = unsafe { &mut *table.add(at) };
            if (entry.index != 0) != fixed {
                continue;
            }
            if let Err((code, what)) = enter::<M>(entry) {
                return refused(CALL, format!("entry {at}: {what}"), code);
            }
        }
    }
    OK
}

fn enter<M: FaceMode>(entry: &mut Entry) -> Result<(), (c_int, String)> {
    let bad = |what: String| (ERR_BAD_ARG, what);
    let face = M::slot().of("gex_EP_RegisterHandlers");
    let signature = signature(entry, face.is_debug).map_err(bad)?;
    let function = entry.function.ok_or_else(|| bad("it has no function".into()))?;
    let fixed = (entry.index != 0).then_some(entry.index);
    let handler = Handler { face, function };
    let function = if face.is_debug {
        M::function(move |incoming| handler.run_watched(incoming))
    } else {
        M::function(move |incoming| handler.run(incoming))
    };
    let handlers = face.engine().handlers();
    // A call of C's that fails ends the process, as a panic does.
    let entered = handlers.register_foreign(fixed, gasworks_core::Entry { signature, function });
    let index = entered.map_err(|error| {
        let code = if fixed.is_some() { ERR_BAD_ARG } else { ERR_RESOURCE };
        (code, error.to_string())
    })?;
    entry.index = index;
    // Nobody else has this index.
    let _ = face.entries[usize::from(index)].set(Shown(*entry));
    Ok(())
}
