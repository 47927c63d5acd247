//! The handlers of all benches, and what they count. Each thread that measures has a lane of its own, whose number
//! travels in the messages.
//!
//! # Invariants
//! - handlers.1: a payload lies where its pointer says, for its whole length, until the handler returns; it is read by assembly
//!   and volatile words only, so a peer that goes on writing is no undefined behaviour here.

use crate::call::all_words;
use crate::clock::ticks;
use gasworks::{
    Error, GlobalPtr, Landed, LongReply, LongRequest, MediumReply, MediumRequest, Par, Payload, Reply,
    Request, Seq, ShortReply, ShortRequest, Table, ThreadMode,
};
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The most threads of a rank.
pub const LANES: usize = 64;

/// The most random updates in a message.
pub const BATCH: usize = 512;

/// What one thread's messages are counted by.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Lane {
    /// Requests that were handled here.
    pub requests: AtomicU64,
    /// Replies that came back, and notices that all has arrived.
    pub replies: AtomicU64,
    /// Payloads that were not what they should be.
    pub wrong: AtomicU64,
}

/// What the handlers of a rank count.
pub struct State<M: ThreadMode> {
    /// One for each thread.
    pub lanes: Arc<[Lane]>,
    /// Where each lane's payloads are copied to, and replies from.
    pub buffers: Box<[M::Lock<Vec<u8>>]>,
    /// Latencies of wake-ups, in ticks, one after another.
    pub woken: M::Lock<Vec<u64>>,
    /// The table of random updates, which belongs to its rank's handlers alone.
    pub words: M::Lock<Vec<u64>>,
}

impl<M: ThreadMode> State<M> {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self {
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            buffers: (0..LANES).map(|_| Lock::new(Vec::new())).collect(),
            woken: Lock::new(Vec::new()),
            words: Lock::new(Vec::new()),
        }
    }

    #[inline(always)]
    fn lane(&self, lane: u32) -> &Lane {
        &self.lanes[lane as usize % LANES]
    }

    #[inline(always)]
    fn buffer(&self, lane: u32) -> &M::Lock<Vec<u8>> {
        &self.buffers[lane as usize % LANES]
    }
}

/// Counts one more. In seq no other thread counts, and no locked instruction is paid for.
#[inline(always)]
fn count<M: ThreadMode>(counter: &AtomicU64, more: u64) {
    if M::PARALLEL {
        counter.fetch_add(more, Ordering::Release);
    } else {
        counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

/// What has been counted.
#[inline(always)]
pub fn counted(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Acquire)
}

/// The arguments of a Medium: the lane, unused, and the word that fills the payload.
pub type Filled = [u32; 4];

/// A lane and a filling word as arguments.
pub fn filled(lane: u32, word: u64) -> Filled {
    [lane, 0, word as u32, (word >> 32) as u32]
}

fn word_of(args: Filled) -> u64 {
    u64::from(args[2]) | u64::from(args[3]) << 32
}

/// The handlers of all benches.
#[derive(Clone, Copy)]
pub struct Handlers {
    /// Counts, and replies.
    pub ping: ShortRequest<u32>,
    /// Counts, does not read, and replies with as many bytes.
    pub ping_unread: MediumRequest<Filled>,
    /// Counts, copies out, and replies with what it copied.
    pub ping_read: MediumRequest<Filled>,
    /// Counts.
    pub flood: ShortRequest<u32>,
    /// Counts, and does not read.
    pub flood_unread: MediumRequest<Filled>,
    /// Counts, reads, and checks.
    pub flood_checked: MediumRequest<Filled>,
    /// Counts, and replies with as many bytes to the same offset.
    pub ping_long: LongRequest<u32>,
    /// Counts.
    pub flood_long: LongRequest<u32>,
    /// Counts, and replies with a Short.
    pub answer_long: LongRequest<u32>,
    /// The flood has arrived.
    pub arrived: ShortRequest<u32>,
    /// Random updates.
    pub update: MediumRequest<u32>,
    /// Wakes a rank; the argument is when it was sent.
    pub wake: ShortRequest<u64>,
}

/// Every handler is the same in both modes; but what a closure has to be differs, so each mode expands this for itself.
macro_rules! registers {
    ($name:ident, $mode:ty) => {
        /// Registers the handlers of all benches.
        ///
        /// # Errors
        /// The table is full.
        pub fn $name(table: &mut Table<$mode>, state: &Arc<State<$mode>>) -> Result<Handlers, Error> {
            type M = $mode;
            let s = state.clone();
            let pong: ShortReply<u32> = table.short_reply("pong", move |_: Reply<'_>, lane: u32| {
                count::<M>(&s.lane(lane).replies, 1);
            })?;
            let s = state.clone();
            let ping = table.short_request("ping", move |request: Request<'_, M>, lane: u32| {
                count::<M>(&s.lane(lane).requests, 1);
                request.reply_short(pong, lane)
            })?;
            let s = state.clone();
            let pong_unread: MediumReply<u32> =
                table.medium_reply("pong_unread", move |_: Reply<'_>, lane: u32, _: Payload<'_>| {
                    count::<M>(&s.lane(lane).replies, 1);
                })?;
            let s = state.clone();
            let ping_unread = table.medium_request(
                "ping_unread",
                move |request: Request<'_, M>, args: Filled, payload: Payload<'_>| {
                    let lane = s.lane(args[0]);
                    count::<M>(&lane.requests, 1);
                    let len = payload.len();
                    s.buffer(args[0]).with(|buffer| {
                        room(buffer, len);
                        request.reply_medium(pong_unread, args[0], &buffer[..len])
                    })
                },
            )?;
            let s = state.clone();
            let pong_read: MediumReply<Filled> = table.medium_reply(
                "pong_read",
                move |_: Reply<'_>, args: Filled, payload: Payload<'_>| {
                    let lane = s.lane(args[0]);
                    s.buffer(args[0]).with(|buffer| copy_out(buffer, &payload, args, &lane.wrong));
                    count::<M>(&lane.replies, 1);
                },
            )?;
            let s = state.clone();
            let ping_read = table.medium_request(
                "ping_read",
                move |request: Request<'_, M>, args: Filled, payload: Payload<'_>| {
                    let lane = s.lane(args[0]);
                    count::<M>(&lane.requests, 1);
                    s.buffer(args[0]).with(|buffer| {
                        copy_out(buffer, &payload, args, &lane.wrong);
                        request.reply_medium(pong_read, args, &buffer[..payload.len()])
                    })
                },
            )?;
            let s = state.clone();
            let flood = table.short_request("flood", move |_: Request<'_, M>, lane: u32| {
                count::<M>(&s.lane(lane).requests, 1);
            })?;
            let s = state.clone();
            let flood_unread = table.medium_request(
                "flood_unread",
                move |_: Request<'_, M>, args: Filled, _: Payload<'_>| {
                    count::<M>(&s.lane(args[0]).requests, 1);
                },
            )?;
            let s = state.clone();
            let flood_checked = table.medium_request(
                "flood_checked",
                move |_: Request<'_, M>, args: Filled, payload: Payload<'_>| {
                    let lane = s.lane(args[0]);
                    // SAFETY: handlers.1: `payload` is borrowed until this handler returns, and has `len` bytes at its pointer.
                    let right = unsafe { all_words(payload.as_ptr(), payload.len(), word_of(args)) };
                    count::<M>(&lane.wrong, u64::from(!right));
                    count::<M>(&lane.requests, 1);
                },
            )?;
            let s = state.clone();
            let pong_long: LongReply<u32> =
                table.long_reply("pong_long", move |_: Reply<'_>, lane: u32, _: Landed| {
                    count::<M>(&s.lane(lane).replies, 1);
                })?;
            let s = state.clone();
            let ping_long = table.long_request(
                "ping_long",
                move |request: Request<'_, M>, lane: u32, Landed { at, len }: Landed| {
                    count::<M>(&s.lane(lane).requests, 1);
                    let back = GlobalPtr::new(request.source(), at.offset());
                    s.buffer(lane).with(|buffer| {
                        room(buffer, len as usize);
                        request.reply_long(pong_long, lane, &buffer[..len as usize], back)
                    })
                },
            )?;
            let s = state.clone();
            let flood_long =
                table.long_request("flood_long", move |_: Request<'_, M>, lane: u32, _: Landed| {
                    count::<M>(&s.lane(lane).requests, 1);
                })?;
            let s = state.clone();
            let answer_long =
                table.long_request("answer_long", move |request: Request<'_, M>, lane: u32, _: Landed| {
                    count::<M>(&s.lane(lane).requests, 1);
                    request.reply_short(pong, lane)
                })?;
            let s = state.clone();
            let arrived = table.short_request("arrived", move |_: Request<'_, M>, lane: u32| {
                count::<M>(&s.lane(lane).replies, 1);
            })?;
            let s = state.clone();
            let update = table.medium_request(
                "update",
                move |_: Request<'_, M>, count_of: u32, payload: Payload<'_>| {
                    let mut values = [0u64; BATCH];
                    let values = &mut values[..(count_of as usize).min(BATCH)];
                    payload.copy_range_to(0, values)?;
                    s.words.with(|words| {
                        let mask = words.len().wrapping_sub(1);
                        for &value in &*values {
                            if let Some(word) = words.get_mut(value as usize & mask) {
                                *word ^= value;
                            }
                        }
                    });
                    count::<M>(&s.lane(0).requests, values.len() as u64);
                    Ok::<(), Error>(())
                },
            )?;
            let s = state.clone();
            let woke: ShortReply<u32> = table.short_reply("woke", move |_: Reply<'_>, _: u32| {
                count::<M>(&s.lane(0).replies, 1);
            })?;
            let s = state.clone();
            let wake = table.short_request("wake", move |request: Request<'_, M>, sent: u64| {
                s.woken.with(|woken| woken.push(ticks().wrapping_sub(sent)));
                count::<M>(&s.lane(0).requests, 1);
                request.reply_short(woke, 0)
            })?;
            Ok(Handlers {
                ping,
                ping_unread,
                ping_read,
                flood,
                flood_unread,
                flood_checked,
                ping_long,
                flood_long,
                answer_long,
                arrived,
                update,
                wake,
            })
        }
    };
}

registers!(seq, Seq);
registers!(par, Par);

/// Makes sure that a buffer has so many bytes.
#[inline(always)]
fn room(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// Copies a payload out, and looks whether its ends are what they should be.
#[inline(always)]
fn copy_out(buffer: &mut Vec<u8>, payload: &Payload<'_>, args: Filled, wrong: &AtomicU64) {
    let len = payload.len();
    room(buffer, len);
    let copy = &mut buffer[..len];
    payload.copy_to(copy);
    let word = word_of(args).to_ne_bytes();
    if copy.first_chunk::<8>().is_some_and(|first| *first != word)
        || copy.last_chunk::<8>().is_some_and(|last| *last != word)
    {
        wrong.fetch_add(1, Ordering::Relaxed);
    }
}
