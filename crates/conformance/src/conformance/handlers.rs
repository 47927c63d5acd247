//! The suite's handler table and what its handlers count.

use super::pattern::{self, tag};
use super::{Case, Failure, LANDING};
use crate::simnet::SimMode;
use gasworks::{
    Args, Error, GlobalPtr, HandlerLock, Job, Landed, LongReply, LongRequest, MediumReply, MediumRequest,
    Par, ParSync, Payload, Reply, Request, Seq, ShortReply, ShortRequest, Table,
};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Replies of the handlers that are there for every number of arguments.
    Answered,
    /// Requests that are not replied to, and the sum of what they brought.
    Plain,
    /// The sum.
    PlainSum,
    /// Echoes that came back, and their sum.
    Echoed,
    /// The sum.
    EchoSum,
    /// Medium replies of a flood.
    Flooded,
    /// Messages to the fixed index.
    Fixed,
    /// Replies that were refused to a handler.
    Refused,
    /// Messages of a storm that arrived, their sum, and their replies.
    Stormed,
    /// The sum.
    StormSum,
    /// The replies.
    StormReplies,
    /// Ranks that have said how much of the storm they sent here, how much that was, and its sum.
    StormEnds,
    /// How much.
    StormDue,
    /// Its sum.
    StormDueSum,
    /// Messages that say that a put is there.
    AfterPut,
    /// Replies of handlers that were registered later.
    Late,
    /// The size of the list.
    Last,
}

/// What the handlers of one rank count.
#[derive(Debug)]
pub struct State {
    counts: [AtomicU64; Count::Last as usize],
}

impl Default for State {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl State {
    /// Adds to a count.
    pub fn add(&self, count: Count, more: u64) {
        self.counts[count as usize].fetch_add(more, Ordering::AcqRel);
    }

    /// A count.
    pub fn get(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Acquire)
    }
}

/// The handlers for one type of arguments: requests of each category, each replied to in its own category.
pub struct Six<A> {
    /// Short requests.
    pub short: ShortRequest<A>,
    /// Medium requests.
    pub medium: MediumRequest<A>,
    /// Long requests.
    pub long: LongRequest<A>,
}

/// Handlers that are registered while the job is open.
pub struct Later {
    /// Replies with so many bytes, made in place.
    pub in_place: ShortRequest<u32>,
    /// Looks at its token, and replies.
    pub token: ShortRequest<u32>,
    /// Takes two locks, frees them, replies.
    pub locked: ShortRequest<u32>,
}

/// A storm's message: its value, its length, whether it wants a reply.
pub type Gust = [u32; 3];

macro_rules! handlers {
    ($($name:ident $count:literal),*) => {
        /// The handlers of the suite.
        pub struct Handlers {
            $(
                /// For so many arguments.
                pub $name: Six<[u32; $count]>,
            )*
            /// At index 200.
            pub fixed: ShortRequest<u32>,
            /// Counts, and does not reply.
            pub plain: ShortRequest<u32>,
            /// Replies with what it was given.
            pub echo: ShortRequest<u64>,
            /// Replies with a Medium of so many bytes.
            pub flood: MediumRequest<u32>,
            /// Tries to reply with so many bytes, one more than go.
            pub refused: ShortRequest<u32>,
            /// Fails.
            pub fails: ShortRequest<u32>,
            /// Says that the sender's put is there.
            pub after_put: ShortRequest<u32>,
            /// A storm's Short.
            pub gust_short: ShortRequest<Gust>,
            /// A storm's Medium.
            pub gust_medium: MediumRequest<Gust>,
            /// A storm's Long.
            pub gust_long: LongRequest<Gust>,
            /// How much of a storm was sent.
            pub storm_end: ShortRequest<[u64; 2]>,
        }

        /// Does `$visit!(field)` for the handlers of each number of arguments.
        macro_rules! each_count {
            ($visit:ident) => { $( $visit!($name); )* };
        }
        pub(super) use each_count;

        macro_rules! suite_mode {
            ($mode:ident, $if_par:expr) => {
                impl SuiteMode for $mode {
                    fn table(state: &Arc<State>) -> Result<(Table<Self>, Handlers), Error> {
                        let mut table = Table::<$mode>::new();
                        let fixed = table.at(200).short_request("fixed", {
                            let state = state.clone();
                            move |request: Request<'_, $mode>, word: u32| fixed(&state, request.source(), word)
                        })?;
                        let handlers = Handlers {
                            $( $name: six::<[u32; $count]>(&mut table, state, $count)?, )*
                            fixed,
                            plain: table.short_request("plain", {
                                let state = state.clone();
                                move |_: Request<'_, $mode>, value: u32| plain(&state, value)
                            })?,
                            echo: {
                                let reply = table.short_reply("echo.reply", {
                                    let state = state.clone();
                                    move |_: Reply<'_>, value: u64| echoed(&state, value)
                                })?;
                                table.short_request("echo", move |request: Request<'_, $mode>, value: u64| {
                                    request.reply_short(reply, value)
                                })?
                            },
                            flood: {
                                let reply = table.medium_reply("flood.reply", {
                                    let state = state.clone();
                                    move |from: Reply<'_>, len: u32, bytes: Payload<'_>| {
                                        flooded(&state, from.source(), from.rank(), len, &bytes)
                                    }
                                })?;
                                table.medium_request(
                                    "flood",
                                    move |request: Request<'_, $mode>, len: u32, bytes: Payload<'_>| {
                                        let (from, here) = (request.source(), request.rank());
                                        check_payload("flood", tag(from, here, 21), &bytes)?;
                                        let answer = pattern::made(tag(here, from, 22), len as usize);
                                        request.reply_medium(reply, len, &answer)
                                    },
                                )?
                            },
                            refused: {
                                let reply = table.medium_reply(
                                    "refused.reply",
                                    |from: Reply<'_>, _: u32, bytes: Payload<'_>| {
                                        let (len, from) = (bytes.len(), from.source());
                                        Err::<(), _>(wrong(format!("a reply of {len} bytes from rank {from}")))
                                    },
                                )?;
                                table.short_request("refused", {
                                    let state = state.clone();
                                    move |request: Request<'_, $mode>, len: u32| {
                                        let payload = vec![0u8; len as usize];
                                        match request.reply_medium(reply, len, &payload) {
                                            Ok(()) => Err(wrong(format!("a reply of {len} bytes was sent"))),
                                            Err(_) => {
                                                state.add(Count::Refused, 1);
                                                Ok(())
                                            }
                                        }
                                    }
                                })?
                            },
                            fails: table.short_request("fails", |_: Request<'_, $mode>, value: u32| {
                                Err::<(), _>(wrong(format!("on purpose, with {value}")))
                            })?,
                            after_put: table.short_request("after-put", {
                                let state = state.clone();
                                move |_: Request<'_, $mode>, _: u32| state.add(Count::AfterPut, 1)
                            })?,
                            gust_short: {
                                let reply = gust_reply(&mut table, state, "storm.short.reply")?;
                                table.short_request("storm.short", {
                                    let state = state.clone();
                                    move |request: Request<'_, $mode>, gust: Gust| {
                                        stormed(&state, gust);
                                        answer(request, reply, gust)
                                    }
                                })?
                            },
                            gust_medium: {
                                let reply = gust_reply(&mut table, state, "storm.medium.reply")?;
                                table.medium_request("storm.medium", {
                                    let state = state.clone();
                                    move |request: Request<'_, $mode>, gust: Gust, bytes: Payload<'_>| {
                                        let from = request.source();
                                        check_payload("storm", tag(from, request.rank(), gust[0].into()), &bytes)?;
                                        stormed(&state, gust);
                                        answer(request, reply, gust)
                                    }
                                })?
                            },
                            gust_long: {
                                let reply = gust_reply(&mut table, state, "storm.long.reply")?;
                                table.long_request("storm.long", {
                                    let state = state.clone();
                                    move |request: Request<'_, $mode>, gust: Gust, landed: Landed| {
                                        if landed.len != u64::from(gust[1]) {
                                            return Err(wrong(format!("a long of {} bytes: {gust:?}", landed.len)));
                                        }
                                        stormed(&state, gust);
                                        answer(request, reply, gust)
                                    }
                                })?
                            },
                            storm_end: table.short_request("storm.end", {
                                let state = state.clone();
                                move |_: Request<'_, $mode>, [count, sum]: [u64; 2]| {
                                    state.add(Count::StormDue, count);
                                    state.add(Count::StormDueSum, sum);
                                    state.add(Count::StormEnds, 1);
                                }
                            })?,
                        };
                        return Ok((table, handlers));

                        fn gust_reply(
                            table: &mut Table<$mode>,
                            state: &Arc<State>,
                            name: &str,
                        ) -> Result<ShortReply<u32>, Error> {
                            let state = state.clone();
                            table.short_reply(name, move |_: Reply<'_>, _: u32| state.add(Count::StormReplies, 1))
                        }

                        fn answer(
                            request: Request<'_, $mode>,
                            reply: ShortReply<u32>,
                            gust: Gust,
                        ) -> Result<(), Error> {
                            if gust[2] == 1 { request.reply_short(reply, gust[0]) } else { Ok(()) }
                        }

                        fn six<A: Args>(
                            table: &mut Table<$mode>,
                            state: &Arc<State>,
                            count: u64,
                        ) -> Result<Six<A>, Error> {
                            let own = state.clone();
                            let reply: ShortReply<A> =
                                table.short_reply(&format!("short.{count}.reply"), move |from: Reply<'_>, args: A| {
                                    let tag = tag(from.source(), from.rank(), count);
                                    pattern::check_value("arguments of a short reply", tag, &args)?;
                                    own.add(Count::Answered, 1);
                                    Ok::<(), Error>(())
                                })?;
                            let short = table.short_request(
                                &format!("short.{count}"),
                                move |request: Request<'_, $mode>, args: A| {
                                    let (from, here) = (request.source(), request.rank());
                                    pattern::check_value("arguments of a short", tag(from, here, count), &args)?;
                                    request.reply_short(reply, pattern::value(tag(here, from, count)))
                                },
                            )?;
                            let own = state.clone();
                            let reply: MediumReply<A> = table.medium_reply(
                                &format!("medium.{count}.reply"),
                                move |from: Reply<'_>, args: A, bytes: Payload<'_>| {
                                    let tag = tag(from.source(), from.rank(), count);
                                    pattern::check_value("arguments of a medium reply", tag, &args)?;
                                    check_payload("payload of a medium reply", tag, &bytes)?;
                                    own.add(Count::Answered, 1);
                                    Ok::<(), Error>(())
                                },
                            )?;
                            let medium = table.medium_request(
                                &format!("medium.{count}"),
                                move |request: Request<'_, $mode>, args: A, bytes: Payload<'_>| {
                                    let (from, here) = (request.source(), request.rank());
                                    let expected = tag(from, here, count);
                                    pattern::check_value("arguments of a medium", expected, &args)?;
                                    check_payload("payload of a medium", expected, &bytes)?;
                                    let back = tag(here, from, count);
                                    let payload = pattern::made(back, bytes.len());
                                    request.reply_medium(reply, pattern::value(back), &payload)
                                },
                            )?;
                            let own = state.clone();
                            let reply: LongReply<A> = table.long_reply(
                                &format!("long.{count}.reply"),
                                move |from: Reply<'_>, args: A, landed: Landed| {
                                    let tag = tag(from.source(), from.rank(), count);
                                    pattern::check_value("arguments of a long reply", tag, &args)?;
                                    if landed.at.rank() != from.rank() {
                                        return Err(wrong(format!("a long reply landed at {:?}", landed.at)));
                                    }
                                    own.add(Count::Answered, 1);
                                    Ok(())
                                },
                            )?;
                            let long = table.long_request(
                                &format!("long.{count}"),
                                move |request: Request<'_, $mode>, args: A, landed: Landed| {
                                    let (from, here) = (request.source(), request.rank());
                                    pattern::check_value("arguments of a long", tag(from, here, count), &args)?;
                                    let back = tag(here, from, count);
                                    let payload = pattern::made(back, landed.len as usize);
                                    // The requester keeps room for the reply behind the room of its requests: the
                                    // request landed in the requester's slot here, so the offset tells where.
                                    let base = landed.at.offset() - 2 * LANDING * u64::from(from);
                                    let room = base + LANDING * u64::from(2 * here + 1);
                                    let place = GlobalPtr::new(from, room);
                                    request.reply_long(reply, pattern::value(back), &payload, place)
                                },
                            )?;
                            Ok(Six { short, medium, long })
                        }
                    }

                    fn later(job: &Job<Self>, state: &Arc<State>) -> Result<Later, Error> {
                        let mut table = job.table();
                        let done = state.clone();
                        let made = table.medium_reply("late.made", move |from: Reply<'_>, len: u32, bytes: Payload<'_>| {
                            check_payload("reply made in place", tag(from.source(), from.rank(), 31), &bytes)?;
                            if bytes.len() != len as usize {
                                return Err(wrong(format!("{} bytes of {len} made in place", bytes.len())));
                            }
                            done.add(Count::Late, 1);
                            Ok(())
                        })?;
                        let in_place =
                            table.short_request("late.in-place", move |request: Request<'_, $mode>, len: u32| {
                                let payload = pattern::made(tag(request.rank(), request.source(), 31), len as usize);
                                request.reply_medium_in_place(made, len, len as usize, |room| {
                                    room.write(0, &payload).ok().map(|()| payload.len())
                                })
                            })?;
                        let done = state.clone();
                        let late = table.short_reply("late.done", move |_: Reply<'_>, _: u32| done.add(Count::Late, 1))?;
                        let token = table.short_request("late.token", move |request: Request<'_, $mode>, from: u32| {
                            let token = request.token();
                            let fits = token.source == from
                                && token.entry.name == "late.token"
                                && token.handler >= 128
                                && token.is_request
                                && !token.is_long;
                            if !fits {
                                return Err(wrong(format!("from rank {from}: {token:?}")));
                            }
                            request.reply_short(late, 0)
                        })?;
                        let lock = HandlerLock::<$mode, u32>::new(0);
                        let locked = table.short_request("late.locked", move |request: Request<'_, $mode>, from: u32| {
                            let refused = lock.with(|count| {
                                *count += 1;
                                HandlerLock::<$mode, ()>::new(()).with(|()| *count)
                            })?;
                            if refused.is_err() {
                                return Err(wrong(format!("one lock inside another, for rank {from}: {refused:?}")));
                            }
                            request.reply_short(late, 0)
                        })?;
                        Ok(Later { in_place, token, locked })
                    }

                    fn if_par(cases: Vec<Case<Par>>) -> Vec<Case<Self>> {
                        ($if_par)(cases)
                    }
                }
            };
        }
    };
}

handlers!(
    n0 0, n1 1, n2 2, n3 3, n4 4, n5 5, n6 6, n7 7, n8 8, n9 9, n10 10, n11 11, n12 12, n13 13, n14 14, n15 15, n16 16
);

/// A thread mode that the suite runs in.
pub trait SuiteMode: SimMode {
    /// The table, the same on every rank, its handlers counting in `state`.
    ///
    /// # Errors
    /// A handler was refused.
    fn table(state: &Arc<State>) -> Result<(Table<Self>, Handlers), Error>;
    /// Registers more, on every rank alike.
    ///
    /// # Errors
    /// A handler was refused.
    fn later(job: &Job<Self>, state: &Arc<State>) -> Result<Later, Error>;
    /// These cases where this mode is `Par`, in which a rank has several threads; none where it is another.
    fn if_par(cases: Vec<Case<Par>>) -> Vec<Case<Self>>;
}

suite_mode!(Seq, |_| Vec::new());
suite_mode!(ParSync, |_| Vec::new());
suite_mode!(Par, |cases| cases);

fn wrong(what: String) -> Error {
    Failure::Wrong(what).into()
}

fn check_payload(what: &str, tag: u64, bytes: &Payload<'_>) -> Result<(), Error> {
    let mut copy = vec![0; bytes.len()];
    bytes.copy_to(&mut copy);
    Ok(pattern::check(what, tag, &copy)?)
}

fn fixed(state: &State, from: u32, word: u32) -> Result<(), Error> {
    if word != from {
        return Err(wrong(format!("a message that says it is from rank {word} came from rank {from}")));
    }
    state.add(Count::Fixed, 1);
    Ok(())
}

fn plain(state: &State, value: u32) {
    state.add(Count::PlainSum, value.into());
    state.add(Count::Plain, 1);
}

fn echoed(state: &State, value: u64) {
    state.add(Count::EchoSum, value);
    state.add(Count::Echoed, 1);
}

fn flooded(state: &State, from: u32, here: u32, len: u32, bytes: &Payload<'_>) -> Result<(), Error> {
    if bytes.len() != len as usize {
        return Err(wrong(format!("a reply of {} bytes instead of {len}", bytes.len())));
    }
    check_payload("flood of replies", tag(from, here, 22), bytes)?;
    state.add(Count::Flooded, 1);
    Ok(())
}

fn stormed(state: &State, gust: Gust) {
    state.add(Count::StormSum, gust[0].into());
    state.add(Count::Stormed, 1);
}
