//! The transport: messages go to the receiver's queues, payloads beyond a slot into blocks.
//!
//! Every rank has two queues. Requests share one, in which a sender claims room before it fills a message, and meets
//! a busy wire if there is none. Replies and credits share the other, which has a slot for every request that its
//! owner may have out, so they never wait. Likewise a large request lies in a block of its sender's, a large reply
//! in one of the requester's, of which there are as many as requests it may have out. So nothing grows with the
//! number of ranks, and a poll looks at two words however many they are.
//!
//! Indices, lengths and ranks that come out of a queue are copied, then checked, then used.

use crate::error::PshmError;
use crate::layout::{self, MAX_MEDIUM};
use crate::region::{Host, Region};
use crate::stage::{self, Stage};
use gasworks_core::wire::{no_such_block, ring};
use gasworks_core::{
    Arrived, Attributes, Bell, Class, Flow, Limits, Rank, Reservation, Wait, Wire, WireError,
};
use gasworks_shmem::barrier::Barrier;
use gasworks_shmem::blocks::{Lent, Stock};
use gasworks_shmem::board::Board;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Block, Damage, MAX_HEAD, MAX_INLINE, Message, Payload};
use gasworks_shmem::queues::{Queue, Queues};
use gasworks_sync::{Mode, VolatileSlice, kill_point};
use std::sync::Arc;
use std::time::Duration;

/// What may be under way by default. A sender that is ahead by many messages and a receiver that is behind by as many
/// do not fetch the same line from each other all the time; so a window of 64 carries twice what 12 do. And where ranks
/// share cores, a window is what a rank gets done before another one has the core: 64 ranks on 2 cores carry twice as much
/// with 256 as with 64. The total is what two ranks cannot exceed, so that theirs need not be counted.
pub const FLOW: Flow = Flow { depth: 256, total: 512, volume: 12 * MAX_MEDIUM as u64 };

/// Blocks that are claimed at a time, of those of a rank's own that are small, of those of 4 KiB, and of those for replies. The more they
/// are, the seldomer a line of flags changes hands; the fewer, the longer the same blocks stay in the caches, which counts for payloads
/// that are read.
const STOCKS: [u32; 2] = [8, 4];
const REPLY_STOCK: u32 = 4;

/// In `Par`, the longest payload for which a block is taken of those claimed beforehand: one that is longer and read costs more by other
/// blocks each time than by a line of flags that changes hands.
const STOCKED: usize = 2048;

const NAME: &str = "pshm";

/// Places in a queue that are claimed at a time.
const BATCH: u32 = 8;

/// Where the payload of a reservation lies until it is committed: the first word of its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// There is none.
    Nowhere,
    /// In a private buffer, on its way into a slot.
    Staged(u32),
    /// In a block.
    Block(u32),
}

impl Place {
    fn ticket(self) -> [u64; 2] {
        match self {
            Self::Nowhere => [0, 0],
            Self::Staged(index) => [1, index.into()],
            Self::Block(index) => [2, index.into()],
        }
    }

    fn from_ticket(ticket: [u64; 2]) -> Self {
        match ticket {
            [1, index] => Self::Staged(index as u32),
            [2, index] => Self::Block(index as u32),
            _ => Self::Nowhere,
        }
    }
}

/// This rank's doorbell, and what keeps it mapped.
struct OwnBell {
    bell: &'static Doorbell,
    _host: Arc<Host>,
}

impl Bell for OwnBell {
    fn bell(&self) -> &Doorbell {
        self.bell
    }
}

/// The shared-memory transport. In `Par` any number of threads send and poll; in `Seq` one does.
pub struct Pshm<M: Mode> {
    pub(crate) host: Arc<Host>,
    queues: Queues<'static, M>,
    bell: Arc<OwnBell>,
    /// Blocks of the small classes, claimed beforehand.
    stocks: [Stock<M>; 2],
    /// Blocks for replies in each rank's memory, claimed beforehand: so many at a time that all ranks together hold no
    /// more than half of the blocks beyond one for each request.
    reply_stocks: Box<[Stock<M>]>,
    reply_stock: u32,
    stage: Stage,
    pub(crate) max_long: u64,
    flow: Flow,
}

impl<M: Mode> std::fmt::Debug for Pshm<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pshm<{}>(rank {} of {})", M::NAME, self.host.me, self.host.ranks.count())
    }
}

impl<M: Mode> Pshm<M> {
    pub(crate) fn new(host: Arc<Host>, flow: Flow) -> Result<Self, PshmError> {
        let queues = Queues::new(host.me, host.ranks.clone(), host.seats(), BATCH);
        let what = "its host has more ranks than a message can name";
        let queues = queues.ok_or(PshmError::Announcement { rank: host.me, what })?;
        let bell = host.bell(host.me);
        let bell = bell.ok_or(PshmError::Announcement { rank: host.me, what: "it has no doorbell" })?;
        let bell = Arc::new(OwnBell { bell, _host: host.clone() });
        let reply_stocks = host.regions.iter().map(|_| Stock::default()).collect();
        let reply_stock = (layout::SLACK / 2 / host.regions.len().max(1) as u32).min(REPLY_STOCK);
        Ok(Self {
            host,
            queues,
            bell,
            stocks: Default::default(),
            reply_stocks,
            reply_stock,
            stage: Stage::new(),
            max_long: u64::MAX,
            flow,
        })
    }

    #[inline]
    fn region(&self, rank: Rank) -> Result<&Region, WireError> {
        match self.host.of(rank) {
            Some(region) => Ok(region),
            None => Err(WireError::PeerGone { rank }),
        }
    }

    #[cold]
    fn corrupt(&self, what: String) -> WireError {
        WireError::Corrupt { transport: NAME, at: self.host.me, what }
    }

    #[cold]
    fn damaged(&self, queue: Queue, damage: Damage) -> WireError {
        self.corrupt(format!("in the {} queue, {damage}", name_of(queue)))
    }

    #[cold]
    fn unknown_sender(&self, queue: Queue, from: u16) -> WireError {
        let ranks = self.host.ranks.count();
        self.corrupt(format!(
            "a {} says it is from number {from} of the {ranks} ranks that share memory",
            name_of(queue)
        ))
    }

    /// Claims a block for `len` bytes of payload.
    #[inline]
    fn claim<'a>(
        &'a self,
        to: Rank,
        peer: &'a Region,
        class: Class,
        len: usize,
    ) -> Result<(u32, VolatileSlice<'a>), WireError> {
        let (index, bytes) = if class == Class::Request {
            let Some(index) = self.claim_request(len) else { return Err(WireError::Busy { to }) };
            (index, self.host.mine().request_bytes(index, len))
        } else {
            // Each block is worth a request that `to` has out, so there is one unless somebody replies twice.
            let index = self.claim_reply(to, peer, len).ok_or_else(|| WireError::Corrupt {
                transport: NAME,
                at: to,
                what: format!("all {} of its reply blocks are in use", peer.layout.reply_count),
            })?;
            (index, peer.reply_bytes(index, len))
        };
        kill_point!("pshm.reserve.claimed");
        bytes.map(|bytes| (index, bytes)).ok_or_else(|| too_large(len))
    }

    /// Blocks of this process's own that are claimed and not used.
    #[cfg(test)]
    pub(crate) fn request_blocks_at_hand(&self) -> usize {
        self.stocks.iter().map(Stock::at_hand).sum()
    }

    /// A block of this process's own, of the smallest class that has one.
    #[inline]
    fn claim_request(&self, len: usize) -> Option<u32> {
        let mine = self.host.mine();
        let blocks = || mine.request_blocks();
        mine.layout.classes.iter().enumerate().filter(|(_, class)| len <= class.size).find_map(
            |(at, class)| {
                let alone = !M::PARALLEL;
                let stock = self.stocks.get(at).filter(|_| alone || len <= STOCKED);
                match stock.and_then(|stock| stock.claim(alone, blocks, (class.first, class.end), STOCKS[at]))
                {
                    None if stock.is_some() && alone => None,
                    // The largest are taken one at a time, the lowest first: their bytes are what must stay in the caches.
                    None => stage::claim::<M>(blocks(), class.first, class.end),
                    found => found,
                }
            },
        )
    }

    /// A block of the requester's.
    #[inline]
    fn claim_reply(&self, to: Rank, peer: &Region, len: usize) -> Option<u32> {
        let (blocks, count) = (|| peer.reply_blocks(), peer.layout.reply_count);
        let stock = &self.reply_stocks[self.host.ranks.number(to)];
        if self.reply_stock > 0
            && (!M::PARALLEL || len <= STOCKED)
            && let Some(index) = stock.claim(false, blocks, (0, count), self.reply_stock)
        {
            return Some(index);
        }
        blocks().claim(0, count)
    }

    /// Claims a block and fills it.
    #[inline]
    fn fill(&self, to: Rank, peer: &Region, class: Class, payload: &[u8]) -> Result<Block, WireError> {
        let (index, bytes) = self.claim(to, peer, class, payload.len())?;
        bytes.write_away(payload);
        Ok(Block { index, len: payload.len() as u32 })
    }

    /// Gives back what a reservation holds, but for its place in the queue.
    fn release(&self, place: Place, peer: &Region, class: Class) {
        match place {
            Place::Nowhere => {}
            Place::Staged(index) => self.stage.free(index),
            Place::Block(index) if class == Class::Request => self.host.mine().request_blocks().free(index),
            Place::Block(index) => peer.reply_blocks().free(index),
        }
    }

    fn deliver(
        &self,
        queue: Queue,
        message: &Message,
        sink: &mut dyn FnMut(Arrived<'_>),
    ) -> Result<(), WireError> {
        let from = message.from;
        if usize::from(from) >= self.host.regions.len() {
            return Err(self.unknown_sender(queue, from));
        }
        let rank = self.queues.rank(from);
        let Some(block) = message.block else {
            sink(Arrived { from: rank, head: message.head(), payload: stage::lend(message) });
            return Ok(());
        };
        let class = if queue == Queue::Requests { Class::Request } else { Class::Reply };
        let lent = self.lend(from, class, block);
        let lent = lent.ok_or_else(|| no_such_block(NAME, self.host.me, rank, class, block))?;
        sink(Arrived { from: rank, head: message.head(), payload: lent.bytes() });
        Ok(())
    }
}

#[cold]
fn too_large(len: usize) -> WireError {
    WireError::TooLarge { transport: NAME, len, max: MAX_MEDIUM }
}

fn name_of(queue: Queue) -> &'static str {
    match queue {
        Queue::Requests => "request",
        Queue::Replies => "reply",
    }
}

impl<M: Mode> Wire<M> for Pshm<M> {
    fn attributes(&self) -> Attributes {
        let limits = Limits { max_medium: MAX_MEDIUM, max_long: self.max_long, packed_long: MAX_MEDIUM };
        Attributes::new(NAME, limits, self.flow)
    }

    #[inline]
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        let peer = self.region(to)?;
        if payload > MAX_MEDIUM {
            return Err(too_large(payload));
        }
        if class == Class::Request {
            self.queues.claim(to).map_err(|_| WireError::Busy { to })?;
        }
        if payload == 0 {
            let ticket = Place::Nowhere.ticket();
            return Ok(Reservation::new(to, class, VolatileSlice::EMPTY, ticket));
        }
        if payload <= MAX_INLINE
            && let Some((index, bytes)) = self.stage.claim::<M>(payload)
        {
            return Ok(Reservation::new(to, class, bytes, Place::Staged(index).ticket()));
        }
        match self.claim(to, peer, class, payload) {
            Ok((index, bytes)) => Ok(Reservation::new(to, class, bytes, Place::Block(index).ticket())),
            Err(error) => {
                if class == Class::Request {
                    self.queues.cancel(to);
                }
                Err(error)
            }
        }
    }

    #[inline]
    fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let Reservation { to, class, ticket, .. } = reservation;
        self.region(to)?;
        if head.len() > MAX_HEAD {
            self.cancel(reservation);
            return Err(WireError::TooLarge { transport: NAME, len: head.len(), max: MAX_HEAD });
        }
        let queue = class.queue();
        let wanted = match Place::from_ticket(ticket) {
            Place::Nowhere => self.queues.send(to, queue, head, Payload::NONE),
            Place::Staged(index) => {
                let len = reservation.payload().len();
                let staged = Payload::Inline { words: self.stage.words(index), len };
                let wanted = self.queues.send(to, queue, head, staged);
                self.stage.free(index);
                wanted
            }
            Place::Block(index) => {
                let block = Block { index, len: reservation.payload().len() as u32 };
                self.queues.send(to, queue, head, Payload::Block(block))
            }
        };
        if wanted {
            ring(self.queues.bell(to));
        }
        Ok(())
    }

    fn send(&self, to: Rank, class: Class, word: u64, args: &[u8], payload: &[u8]) -> Result<(), WireError> {
        let peer = self.region(to)?;
        if args.len() > MAX_HEAD - 8 {
            return Err(WireError::TooLarge { transport: NAME, len: 8 + args.len(), max: MAX_HEAD });
        }
        let (queue, full) = (class.queue(), |_| WireError::Busy { to });
        // What fits goes from the caller's memory into the slot, the rest into a block.
        let wanted = if payload.len() <= MAX_INLINE {
            self.queues.post(to, queue, word, args, payload).map_err(full)?
        } else {
            self.queues.post_block(to, queue, word, args, full, || self.fill(to, peer, class, payload))?
        };
        if wanted {
            ring(self.queues.bell(to));
        }
        Ok(())
    }

    fn cancel(&self, reservation: Reservation<'_>) {
        let Some(peer) = self.host.of(reservation.to) else { return };
        self.release(Place::from_ticket(reservation.ticket), peer, reservation.class);
        if reservation.class == Class::Request {
            self.queues.cancel(reservation.to);
        }
    }

    fn queues(&self) -> Option<&Queues<'_, M>> {
        Some(&self.queues)
    }

    #[inline]
    fn lend(&self, from: u16, class: Class, block: Block) -> Option<Lent<'_>> {
        let Block { index, len } = block;
        let (blocks, bytes) = if class == Class::Request {
            let peer = self.host.regions.get(usize::from(from))?;
            (peer.request_blocks(), peer.request_bytes(index, len as usize)?)
        } else {
            let mine = self.host.mine();
            (mine.reply_blocks(), mine.reply_bytes(index, len as usize)?)
        };
        blocks.lend(index, bytes)
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let mut message = Message::new();
        let mut taken = 0;
        while taken < burst {
            match self.queues.take(&mut message) {
                Ok(Some(queue)) => self.deliver(queue, &message, sink)?,
                Err((queue, damage)) => return Err(self.damaged(queue, damage)),
                Ok(None) => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    fn wait(&self) -> Wait<'_> {
        Wait::Bell(self.bell.clone())
    }

    fn arm(&self) -> Result<Duration, WireError> {
        self.queues.check().map_err(|(queue, damage)| self.damaged(queue, damage))?;
        if !self.host.all_barriers(Barrier::is_sound) {
            return Err(self.corrupt("a barrier counts arrivals that cannot be".into()));
        }
        let may_sleep = self.host.all_barriers(Barrier::arm);
        // Each board, so that whoever posts in any of them wakes this rank.
        let may_sleep = self.host.all_boards(Board::arm) && may_sleep;
        if !may_sleep && !M::PARALLEL {
            // A barrier that all have come to keeps a thread awake once, which now looks whether that is what it waits
            // for. Of several threads one may have looked before they came, and would sleep on for another's look.
            self.host.all_barriers(|barrier| {
                let _ = barrier.done_alone();
                true
            });
        }
        // Where another thread is taking a message, there is work as well.
        Ok(if self.queues.arm() && may_sleep { Duration::MAX } else { Duration::ZERO })
    }
}
