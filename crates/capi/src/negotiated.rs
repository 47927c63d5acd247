//! Messages whose payload is agreed on first: prepared, filled in, and committed or cancelled.
//!
//! # Invariants
//! As in the crate, and:
//! - negotiated.1: a source descriptor is made by a prepare as a box, which its commit or cancel takes back. A thread has one at most,
//!   and knows it: what is not that one is not used.

use crate::am::{args, incoming_of, payload};
use crate::check::when;
use crate::face::{FaceMode, fail, went};
use crate::layout::{Flags, IMMEDIATE, Local, NO_OP, OK, Team, When};
use gasworks_core::{Ask, Category, Commit, Prepared, PreparedReply};
use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

thread_local! {
    /// This thread's source descriptor, between the prepare and what ends it.
    static PREPARED: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// Whether this thread has prepared a message.
pub(crate) fn is_under_way() -> bool {
    !PREPARED.get().is_null()
}

/// What a source descriptor leads to.
pub struct Source<M: FaceMode> {
    room: Room<M>,
    category: Category,
    nargs: c_uint,
    /// Where the payload is made: C's own buffer, or the library's room.
    address: *mut c_void,
    is_own: bool,
    len: usize,
    /// To whom a Long goes.
    to: u32,
}

enum Room<M: FaceMode> {
    Request(Prepared<'static, M>),
    Reply(PreparedReply<'static, M>),
}

/// What is asked for, by a call of this name.
struct Asked {
    call: &'static str,
    buffer: *const c_void,
    least: usize,
    most: usize,
    landing: Option<u64>,
    category: Category,
}

impl Asked {
    fn ask(&self) -> Ask {
        let &Self { buffer, least, most, landing, category, .. } = self;
        Ask { category, least, most, landing, source: (!buffer.is_null()).then_some(most) }
    }

    /// Looks at what C says; gives when its buffer may be used again, if it has one.
    fn look(&self, local: Local, nargs: c_uint, is_reply: bool) -> Option<When> {
        let call = self.call;
        if is_under_way() {
            fail(call, "what this thread prepared before is neither committed nor cancelled");
        }
        if nargs > 16 {
            fail(call, format!("{nargs} arguments: 16 are the most"));
        }
        if self.least > self.most {
            fail(call, format!("at least {} bytes, and at most {}", self.least, self.most));
        }
        if self.buffer.is_null() {
            if !local.is_null() && crate::place::is_known() {
                fail(call, "lc_opt is not null where there is no buffer");
            }
            return None;
        }
        if local.is_null() {
            fail(call, "lc_opt is null where there is a buffer");
        }
        match when(call, local) {
            When::Defer => fail(call, "GEX_EVENT_DEFER is none of an active message's options"),
            When::Group if is_reply => fail(call, "GEX_EVENT_GROUP is none of a reply's options"),
            freed => Some(freed),
        }
    }

    /// # Safety
    /// capi.1: where an event is to be stored there is room.
    unsafe fn local(&self, freed: Option<When>) {
        if let Some(When::At(place)) = freed {
            // SAFETY: capi.1: `place` is aligned (`check::when`), and the caller has room for an event there.
            unsafe { *place = 0 };
        }
    }

    fn source<M: FaceMode>(&self, room: Room<M>, to: u32, nargs: c_uint) -> *mut c_void {
        let prepared = match &room {
            Room::Request(prepared) => prepared,
            Room::Reply(prepared) => prepared.prepared(),
        };
        let len = prepared.granted();
        let address = match self.buffer.is_null() {
            true => prepared.room().as_ptr().cast(),
            false => self.buffer.cast_mut(),
        };
        let (category, is_own) = (self.category, !self.buffer.is_null());
        let source =
            Box::into_raw(Box::new(Source { room, category, nargs, address, is_own, len, to })).cast();
        PREPARED.set(source);
        source
    }
}

/// `gex_AM_PrepareRequestMedium`, and `Long` where there is a destination.
///
/// # Safety
/// capi.1.
#[expect(clippy::too_many_arguments, reason = "C's own")]
pub unsafe fn prepare_request<M: FaceMode>(
    call: &'static str,
    team: *const Team,
    rank: u32,
    buffer: *const c_void,
    (least, most): (usize, usize),
    dest: Option<*const u8>,
    local: Local,
    (flags, nargs): (Flags, c_uint),
) -> *mut c_void {
    let face = M::slot().of(call);
    let to = face.rank(call, team, rank);
    let category = if dest.is_some() { Category::Long } else { Category::Medium };
    // A destination of null is said at the commit.
    let landing = dest.filter(|dest| !dest.is_null()).map(|dest| face.offset(to, dest));
    let asked = Asked { call, buffer, least, most, landing, category };
    let freed = asked.look(local, nargs, false);
    let ask = asked.ask();
    let prepared = if flags & IMMEDIATE == 0 {
        face.engine().prepare(to, &ask)
    } else {
        match face.engine().try_prepare(to, &ask) {
            Err(error) if error.is_busy() => return null_mut(),
            other => other,
        }
    };
    let prepared = went(call, prepared);
    // SAFETY: capi.1: if `local` is a pointer, it leads to C's room for an event.
    unsafe { asked.local(freed) };
    asked.source::<M>(Room::Request(prepared), to, nargs)
}

/// `gex_AM_PrepareReplyMedium`, and `Long` where there is a destination.
///
/// # Safety
/// capi.1, capi.4.
pub unsafe fn prepare_reply<M: FaceMode>(
    call: &'static str,
    token: *mut c_void,
    buffer: *const c_void,
    (least, most): (usize, usize),
    dest: Option<*const u8>,
    local: Local,
    nargs: c_uint,
) -> *mut c_void {
    let face = M::slot().of(call);
    // SAFETY: capi.4: C calls this in the handler that was given `token`, and commits or cancels the descriptor before that returns.
    let incoming = unsafe { incoming_of::<M>(token, call) };
    let to = incoming.source();
    let category = if dest.is_some() { Category::Long } else { Category::Medium };
    let landing = dest.filter(|dest| !dest.is_null()).map(|dest| face.offset(to, dest));
    let asked = Asked { call, buffer, least, most, landing, category };
    let freed = asked.look(local, nargs, true);
    let ask = asked.ask();
    let prepared = went(call, incoming.prepare_reply(&ask));
    // SAFETY: capi.1: `local`, if there is a buffer and it is a pointer, leads to C's room for an event.
    unsafe { asked.local(freed) };
    asked.source::<M>(Room::Reply(prepared), to, nargs)
}

/// Whether it is this thread's, or ends the job.
fn look(call: &str, source: *mut c_void) {
    if source.addr() <= NO_OP {
        fail(call, "there is no source descriptor: nothing was prepared");
    }
    if source != PREPARED.get() {
        fail(call, format!("{source:p} is nothing that this thread has prepared and not ended"));
    }
}

/// `gex_AM_SrcDescAddr`.
pub fn address<M: FaceMode>(source: *mut c_void) -> *mut c_void {
    look("gex_AM_SrcDescAddr", source);
    // SAFETY: negotiated.1: `look` has found that `source` is what this thread has prepared, and its box is there until that is ended.
    unsafe { &*source.cast::<Source<M>>() }.address
}

/// `gex_AM_SrcDescSize`.
pub fn size<M: FaceMode>(source: *mut c_void) -> usize {
    look("gex_AM_SrcDescSize", source);
    // SAFETY: negotiated.1: `look` has found that `source` is this thread's; its box is not taken back while this function reads it.
    unsafe { &*source.cast::<Source<M>>() }.len
}

/// Takes a descriptor back.
fn take<M: FaceMode>(call: &str, source: *mut c_void) -> Box<Source<M>> {
    look(call, source);
    PREPARED.set(null_mut());
    // SAFETY: negotiated.1: `source` is this thread's (`look`), and forgotten since the line above: the box is taken back this once.
    unsafe { Box::from_raw(source.cast()) }
}

/// `gex_AM_Commit*`: of a kind that the header names.
///
/// # Safety
/// capi.1, capi.4.
#[expect(clippy::too_many_arguments, reason = "C's own")]
pub unsafe fn commit<M: FaceMode>(
    source: *mut c_void,
    kind: c_uint,
    handler: u8,
    len: usize,
    dest: *const u8,
    _flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALLS: [&str; 4] = [
        "gex_AM_CommitRequestMedium",
        "gex_AM_CommitRequestLong",
        "gex_AM_CommitReplyMedium",
        "gex_AM_CommitReplyLong",
    ];
    let call = CALLS[kind as usize % CALLS.len()];
    let source = take::<M>(call, source);
    if source.nargs != count {
        fail(call, format!("{count} arguments, where {} were prepared", source.nargs));
    }
    let is_reply = matches!(source.room, Room::Reply(_));
    if (is_reply, source.category == Category::Long) != (kind & 2 != 0, kind & 1 != 0) {
        fail(call, "it was prepared for another kind of message");
    }
    // SAFETY: capi.1: C passes `count` words at `words`, which stay until the commit is done.
    let args = unsafe { args(call, words, count) };
    let landing = M::slot().of(call).offset(source.to, dest);
    // More than was granted is refused by that.
    let has_source = source.is_own && len <= source.len;
    // SAFETY: capi.1: C has filled its own buffer, which has as many bytes as were granted, and leaves it as it is during the commit.
    let bytes = has_source.then(|| unsafe { payload(call, source.address, len) });
    let commit = Commit { handler, args, len, landing, source: bytes };
    match source.room {
        Room::Request(prepared) => went(call, prepared.commit(&commit)),
        Room::Reply(prepared) => went(call, prepared.commit(&commit)),
    }
    OK
}

/// `gex_AM_Cancel*`.
pub fn cancel<M: FaceMode>(call: &str, source: *mut c_void) -> c_int {
    drop(take::<M>(call, source));
    OK
}
