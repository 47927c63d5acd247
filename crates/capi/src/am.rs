//! Active messages from C, and their tokens.
//!
//! # Invariants
//! As in the crate.

use crate::check::{self, when};
use crate::face::{Face, FaceMode, fail, went};
use crate::layout::{Event, Flags, IMMEDIATE, Local, TokenInfo, When};
use crate::layout::{OK, Team};
use gasworks_core::message::MAX_ARGS;
use gasworks_core::{Category, Engine, Incoming, Outgoing};
use gasworks_extended::long;
use std::ffi::{c_int, c_uint, c_void};

/// The token of a message in a handler's hands: where it lies.
#[inline]
pub(crate) fn token_of<M: FaceMode>(incoming: &Incoming<'_, M>) -> *mut c_void {
    std::ptr::from_ref(incoming).cast_mut().cast()
}

/// What a token leads to.
///
/// # Safety
/// What is given is used in the handler alone.
#[inline]
pub(crate) unsafe fn incoming_of<'a, M: FaceMode>(token: *mut c_void, call: &str) -> &'a Incoming<'a, M> {
    check::token(call, token);
    // SAFETY: capi.4: `token` is that of the handler that runs on this thread, as was just seen: its `Incoming` stays until that returns.
    unsafe { &*token.cast::<Incoming<'a, M>>() }
}

/// Arguments as the engine has them.
///
/// # Safety
/// capi.1: there are so many.
#[inline]
pub(crate) unsafe fn args<'a>(call: &str, args: *const i32, count: c_uint) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    if count as usize > MAX_ARGS {
        fail(call, format!("{count} arguments: 16 are the most"));
    }
    // SAFETY: capi.1: there are `count` words at `args`, which stay for the call.
    unsafe { args_of(args, count) }
}

/// The same, of no more than there may be.
///
/// # Safety
/// capi.1: there are so many.
#[inline(always)]
unsafe fn args_of<'a>(args: *const i32, count: c_uint) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: capi.1: there are `count` words at `args`, which stay for the call. Words are bytes, and those of a little-endian
    // machine in the order that messages have.
    unsafe { std::slice::from_raw_parts(args.cast(), 4 * count as usize) }
}

/// A payload.
///
/// # Safety
/// capi.1: there are so many bytes, and nobody writes them while they are in use.
#[inline]
pub(crate) unsafe fn payload<'a>(call: &str, source: *const c_void, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    if source.is_null() {
        fail(call, format!("{len} bytes at no address"));
    }
    // SAFETY: capi.1: `source` is not null and has `len` readable bytes; the caller promises that nobody writes them while they are in use.
    unsafe { std::slice::from_raw_parts(source.cast(), len) }
}

/// When the source of a request may be used again.
#[inline]
fn of_request(call: &str, local: Local) -> When {
    match when(call, local) {
        When::Defer => fail(call, "GEX_EVENT_DEFER is none of an active message's options"),
        other => other,
    }
}

/// When the source of a reply may be used again.
fn of_reply(call: &str, local: Local) -> When {
    match of_request(call, local) {
        When::Group => fail(call, "GEX_EVENT_GROUP is none of a reply's options"),
        other => other,
    }
}

/// The source was copied: it may be used again.
///
/// # Safety
/// capi.1: where that is to be stored there is room.
unsafe fn copied(when: When) {
    if let When::At(place) = when {
        // SAFETY: capi.1: `place` is aligned (`check::when`) and none of the options' numbers, so it is C's room for an event.
        unsafe { *place = 0 };
    }
}

/// Does something with a Short of these arguments. What is done is compiled once more for each of the smaller numbers of
/// them, which messages have as a rule: a number that is known spares 90 instructions of a message's 690 on both sides.
macro_rules! with_short {
    ($handler:expr, $args:expr, |$message:ident| $act:expr) => {{
        let args: &[u8] = $args;
        macro_rules! of {
            ($few:expr) => {{
                let $message = &Outgoing {
                    category: Category::Short,
                    handler: $handler,
                    args: $few,
                    payload: &[],
                    landing: 0,
                };
                $act
            }};
        }
        match args.len() {
            0 => of!(&[]),
            4 => of!(&args[..4]),
            8 => of!(&args[..8]),
            12 => of!(&args[..12]),
            16 => of!(&args[..16]),
            _ => of!(args),
        }
    }};
}

/// Sends a request that is no Long.
#[inline(always)]
fn request<M: FaceMode>(face: &Face<M>, call: &str, flags: Flags, to: u32, message: &Outgoing<'_>) -> c_int {
    if flags & IMMEDIATE != 0 {
        return request_at_once(face, call, to, *message);
    }
    went(call, face.engine().request(to, message));
    OK
}

/// The same, unless it would have to wait. Apart and with a copy, so that on the usual way a message need not lie in memory.
#[inline(never)]
fn request_at_once<M: FaceMode>(face: &Face<M>, call: &str, to: u32, message: Outgoing<'_>) -> c_int {
    match face.engine().try_request(to, &message) {
        Err(error) if error.is_busy() => 1,
        other => {
            went(call, other);
            OK
        }
    }
}

/// `gex_AM_RequestShort`.
///
/// # Safety
/// capi.1.
#[inline(always)]
pub unsafe fn request_short<M: FaceMode>(
    team: *const Team,
    rank: u32,
    handler: u8,
    flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    if let Some(engine) = of_itself::<M>(team, rank)
        && (count as usize) <= MAX_ARGS
    {
        // SAFETY: capi.1: C passes `count` words at `words`, which stay until this call returns.
        let args = unsafe { args_of(words, count) };
        return ended("gex_AM_RequestShort", engine.request_short_to_itself(handler, args));
    }
    // SAFETY: capi.1: what C has promised is passed on.
    unsafe { request_short_to_another::<M>(team, rank, handler, flags, words, count) }
}

/// This rank's engine, if these name this rank itself: then what a message needs goes in registers, and little has to be asked.
#[inline(always)]
fn of_itself<M: FaceMode>(team: *const Team, rank: u32) -> Option<&'static Engine<M>> {
    let face = M::slot().get()?;
    (rank == face.engine().rank() && team == face.team).then_some(face.engine())
}

/// Apart, so that what is above needs no room on the stack.
///
/// # Safety
/// capi.1.
#[inline(never)]
unsafe fn request_short_to_another<M: FaceMode>(
    team: *const Team,
    rank: u32,
    handler: u8,
    flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_RequestShort";
    let face = M::slot().of(CALL);
    let to = face.rank(CALL, team, rank);
    // SAFETY: capi.1: C passes `count` words at `words`, which stay until this call returns.
    let args = unsafe { args(CALL, words, count) };
    with_short!(handler, args, |message| request(face, CALL, flags, to, message))
}

/// The code of a call that ends the job where something is wrong.
#[inline]
fn ended(call: &str, outcome: Result<(), Box<gasworks_core::Error>>) -> c_int {
    if let Err(error) = outcome {
        went::<(), _>(call, Err(*error));
    }
    OK
}

/// `gex_AM_RequestMedium`.
///
/// # Safety
/// capi.1.
#[expect(clippy::too_many_arguments, reason = "C's own")]
#[inline(always)]
pub unsafe fn request_medium<M: FaceMode>(
    team: *const Team,
    rank: u32,
    handler: u8,
    source: *const c_void,
    len: usize,
    local: Local,
    flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    if let Some(engine) = of_itself::<M>(team, rank)
        && (count as usize) <= MAX_ARGS
        && !source.is_null()
        && When::is_plain(local)
    {
        // SAFETY: capi.1: C passes `count` words and, at `source`, `len` bytes, which stay as they are until this call returns.
        let (args, payload) =
            unsafe { (args_of(words, count), std::slice::from_raw_parts(source.cast(), len)) };
        return ended("gex_AM_RequestMedium", engine.request_medium_to_itself(handler, args, payload));
    }
    // SAFETY: capi.1: what C has promised is passed on.
    unsafe { request_medium_to_another::<M>(team, rank, handler, source, len, local, flags, words, count) }
}

/// Apart, as for Shorts.
///
/// # Safety
/// capi.1.
#[expect(clippy::too_many_arguments, reason = "C's own")]
#[inline(never)]
unsafe fn request_medium_to_another<M: FaceMode>(
    team: *const Team,
    rank: u32,
    handler: u8,
    source: *const c_void,
    len: usize,
    local: Local,
    flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_RequestMedium";
    let face = M::slot().of(CALL);
    let to = face.rank(CALL, team, rank);
    // SAFETY: capi.1: C passes `count` words and, at `source`, `len` bytes, which stay as they are until this call returns.
    let (args, payload) = unsafe { (args(CALL, words, count), payload(CALL, source, len)) };
    let freed = of_request(CALL, local);
    let message = Outgoing { category: Category::Medium, handler, args, payload, landing: 0 };
    let sent = request(face, CALL, flags, to, &message);
    // SAFETY: capi.1: a place that `freed` names is C's room for an event: `local` was a pointer.
    unsafe { copied(freed) };
    sent
}

/// `gex_AM_RequestLong`.
///
/// # Safety
/// capi.1: also the source, until it may be used again.
#[expect(clippy::too_many_arguments, reason = "C's own")]
pub unsafe fn request_long<M: FaceMode>(
    team: *const Team,
    rank: u32,
    handler: u8,
    source: *const c_void,
    len: usize,
    dest: *const u8,
    local: Local,
    flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_RequestLong";
    let face = M::slot().of(CALL);
    let to = face.rank(CALL, team, rank);
    // SAFETY: capi.1: C passes `count` words, for this call, and `len` bytes at `source`, which stay as they are until `local` frees them.
    let (args, payload) = unsafe { (args(CALL, words, count), payload(CALL, source, len)) };
    let landing = face.offset(to, dest);
    let message = Outgoing { category: Category::Long, handler, args, payload, landing };
    match of_request(CALL, local) {
        When::Now | When::Defer => return request(face, CALL, flags, to, &message),
        freed if flags & IMMEDIATE != 0 => {
            let sent = request(face, CALL, flags, to, &message);
            // SAFETY: capi.1: a place that `freed` names is C's room for an event, with IMMEDIATE as well.
            unsafe { copied(freed) };
            return sent;
        }
        When::Group => {
            // SAFETY: capi.1: by GEX_EVENT_GROUP C leaves `source` as it is until this thread's set says that it may be used again.
            let sent =
                face.implicit(|set| unsafe { long::request_nbi(face.engine(), set, to, &message, None) });
            went(CALL, sent);
        }
        When::At(place) => {
            // SAFETY: capi.1: C leaves `source` as it is until the event is done that is stored at `place` below.
            let (event, _) = went(CALL, unsafe { long::request_nb(face.engine(), to, &message, None) });
            // SAFETY: capi.1: `place` is aligned (`check::when`), and C has room for an event there.
            unsafe { *place = event.into_bits() as Event };
        }
    }
    OK
}

/// Sends a reply.
///
/// # Safety
/// capi.4.
#[inline(always)]
unsafe fn reply<M: FaceMode>(call: &str, token: *mut c_void, message: &Outgoing<'_>) -> c_int {
    // SAFETY: capi.4: C calls this in the handler that was given `token`; `incoming` is used in this function alone.
    let incoming = unsafe { incoming_of::<M>(token, call) };
    went(call, incoming.reply(message));
    OK
}

/// `gex_AM_ReplyShort`.
///
/// # Safety
/// capi.1, capi.4.
#[inline(always)]
pub unsafe fn reply_short<M: FaceMode>(
    token: *mut c_void,
    handler: u8,
    _flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_ReplyShort";
    // SAFETY: capi.1: C passes `count` words at `words`, which stay until the reply is sent below.
    let args = unsafe { args(CALL, words, count) };
    // SAFETY: capi.4: C calls gex_AM_ReplyShort in the handler that was given `token`; `incoming` is used in this function alone.
    let incoming = unsafe { incoming_of::<M>(token, CALL) };
    match incoming.reply_short_to_itself(handler, args) {
        Some(outcome) => ended(CALL, outcome),
        None => reply_short_to_another(incoming, handler, args),
    }
}

/// Apart, as for requests.
#[inline(never)]
fn reply_short_to_another<M: FaceMode>(incoming: &Incoming<'_, M>, handler: u8, args: &[u8]) -> c_int {
    const CALL: &str = "gex_AM_ReplyShort";
    with_short!(handler, args, |message| {
        went(CALL, incoming.reply(message));
        OK
    })
}

/// `gex_AM_ReplyMedium`.
///
/// # Safety
/// capi.1, capi.4.
#[expect(clippy::too_many_arguments, reason = "C's own")]
pub unsafe fn reply_medium<M: FaceMode>(
    token: *mut c_void,
    handler: u8,
    source: *const c_void,
    len: usize,
    local: Local,
    _flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_ReplyMedium";
    // SAFETY: capi.1: C passes `count` words and, at `source`, `len` bytes, which stay as they are until the reply is sent below.
    let (args, payload) = unsafe { (args(CALL, words, count), payload(CALL, source, len)) };
    let freed = of_reply(CALL, local);
    let message = Outgoing { category: Category::Medium, handler, args, payload, landing: 0 };
    // SAFETY: capi.4: C calls this in the handler that was given `token`. capi.1: a place that `freed` names is C's room for an event.
    unsafe {
        reply::<M>(CALL, token, &message);
        copied(freed);
    }
    OK
}

/// `gex_AM_ReplyLong`.
///
/// # Safety
/// capi.1, capi.4.
#[expect(clippy::too_many_arguments, reason = "C's own")]
pub unsafe fn reply_long<M: FaceMode>(
    token: *mut c_void,
    handler: u8,
    source: *const c_void,
    len: usize,
    dest: *const u8,
    local: Local,
    _flags: Flags,
    words: *const i32,
    count: c_uint,
) -> c_int {
    const CALL: &str = "gex_AM_ReplyLong";
    // SAFETY: capi.1: C passes `count` words and `len` bytes at `source`; a reply takes them before this call returns.
    let (args, payload) = unsafe { (args(CALL, words, count), payload(CALL, source, len)) };
    // SAFETY: capi.4: C calls this in the handler that was given `token`; `incoming` is used until the reply is sent, and no longer.
    let incoming = unsafe { incoming_of::<M>(token, CALL) };
    let landing = M::slot().of(CALL).offset(incoming.source(), dest);
    let freed = of_reply(CALL, local);
    let message = Outgoing { category: Category::Long, handler, args, payload, landing };
    // SAFETY: capi.4: the handler of `token` still runs: it is in this call. capi.1: a place that `freed` names is C's room for an event.
    unsafe {
        reply::<M>(CALL, token, &message);
        copied(freed);
    }
    OK
}

/// `gex_Token_MaxReply*`: the largest payload of a reply to whoever has sent the message.
///
/// # Safety
/// capi.4.
pub unsafe fn max_reply<M: FaceMode>(call: &str, is_long: bool, token: *mut c_void) -> usize {
    // SAFETY: capi.4: C asks in the handler that was given `token`; `incoming` is used in this call alone.
    let incoming = unsafe { incoming_of::<M>(token, call) };
    crate::query::max_payload::<M>(call, is_long, Some(incoming.source()))
}

/// `gex_Token_Info`.
///
/// # Safety
/// capi.1, capi.4.
pub unsafe fn token_info<M: FaceMode>(token: *mut c_void, info: *mut TokenInfo, mask: c_uint) -> c_uint {
    const CALL: &str = "gex_Token_Info";
    const SOURCE: c_uint = 1;
    const ENTRY: c_uint = 2;
    const IS_REQUEST: c_uint = 4;
    const IS_LONG: c_uint = 8;
    const EP: c_uint = 16;
    // SAFETY: capi.4: C asks in the handler that was given `token`; `incoming` is used in this call alone.
    let incoming = unsafe { incoming_of::<M>(token, CALL) };
    if info.is_null() {
        fail(CALL, "there is no place for it");
    }
    let (face, known) = (M::slot().of(CALL), incoming.token());
    let entry = face.entries[usize::from(known.handler)].get();
    let known_entry = if entry.is_some() { ENTRY } else { 0 };
    let given = mask & (SOURCE | EP | IS_REQUEST | IS_LONG | known_entry);
    // SAFETY: capi.1: `info` is C's room for one structure, filled or not, which nobody else uses during the call: its fields are written
    // one by one.
    unsafe {
        if given & SOURCE != 0 {
            (&raw mut (*info).source).write(known.source);
        }
        if given & EP != 0 {
            (&raw mut (*info).ep).write(face.ep);
        }
        if given & IS_REQUEST != 0 {
            (&raw mut (*info).is_request).write(known.is_request.into());
        }
        if given & IS_LONG != 0 {
            (&raw mut (*info).is_long).write(known.is_long.into());
        }
        if let Some(shown) = entry.filter(|_| given & ENTRY != 0) {
            (&raw mut (*info).entry).write(&raw const shown.0);
        }
    }
    given
}
