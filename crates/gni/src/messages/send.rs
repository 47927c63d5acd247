//! Sending: room for a message, and its post.

use super::{ENDED, Messages, NAME, Postponed, Room, SLOW_TRIES, Slot, TRIES, start_of, whole_len};
use crate::domain::{Kind, Network, Owner, Post};
use crate::letter::{Call, Letter};
use crate::region::{message_len, read_grant};
use crate::talk::Ticket;
use gasworks_core::{Class, Rank, WireError, wire};
use gasworks_sync::VolatileSlice;

/// Which requests a message ends.
struct Ended {
    /// Those of which it says so.
    tickets: u64,
    /// Of a reply, the one whose slot it goes to, and that slot.
    own: u64,
    slot: u16,
}

impl<N: Network> Messages<N> {
    /// Room for a message of so many bytes, with a head of at most `head`, and the part of it where the payload goes.
    pub fn reserve(
        &mut self,
        to: Rank,
        class: Class,
        payload: usize,
        head: usize,
    ) -> Result<(Room, VolatileSlice<'static>), WireError> {
        self.whole()?;
        if to >= self.layout.shape.ranks {
            return Err(WireError::PeerGone { rank: to });
        }
        let max = self.layout.shape.max_medium;
        if payload > max {
            return Err(WireError::TooLarge { transport: NAME, len: payload, max });
        }
        let (room, at) = match class {
            Class::Request => {
                let (room, slot) = self.request_room(to, ENDED + message_len(head, payload))?;
                (room, self.layout.slot(slot))
            }
            Class::Reply | Class::Credit => {
                let number = self.reply_room(to)?;
                (Room::Reply { number, ends: None }, self.layout.reply(number))
            }
        };
        Ok((room, self.region.part(at + ENDED, payload)))
    }

    fn request_room(&mut self, to: Rank, len: usize) -> Result<(Room, u16), WireError> {
        if self.free_slots.is_empty() {
            self.reap_some();
        }
        let busy = WireError::Busy { to };
        let slot = *self.free_slots.last().ok_or_else(|| busy.clone())?;
        let (region, offset) = (self.region, self.layout.grant(to));
        let (most, mailbox) = (self.layout.shape.tickets, self.mailboxes.shape);
        let sending = &mut self.talk(to).sending;
        if sending.mailbox.is_none() {
            sending.mailbox = read_grant(&region, offset);
        }
        let ticket = sending.take(most).ok_or_else(|| busy.clone())?;
        let granules = match sending.mailbox.map(|_| sending.take_granules(mailbox.count(len))) {
            Some(None) => {
                sending.untake(ticket);
                return Err(busy);
            }
            Some(granules) => granules,
            None => None,
        };
        self.free_slots.pop();
        self.slots[usize::from(slot)] = Slot { in_use: true, peer: to, ..Slot::default() };
        Ok((Room::Request { ticket, slot, granules, beside: false }, slot))
    }

    /// Waits for one at need: what is under way comes to its end without anybody's help.
    fn reply_room(&mut self, to: Rank) -> Result<u32, WireError> {
        for tried in 0..TRIES + SLOW_TRIES {
            if let Some(number) = self.free_replies.pop() {
                return Ok(number);
            }
            self.wait(tried);
            self.whole()?;
        }
        Err(WireError::Starved { transport: NAME, to, times: TRIES + SLOW_TRIES })
    }

    /// Has the message in this room wait at its receiver for a payload; the call that tells of it. `None`: it has to wait here.
    pub fn beside(&mut self, to: Rank, room: &mut Room) -> Option<u32> {
        let (me, longs) = (u16::try_from(self.me), self.longs);
        match room {
            Room::Request { ticket, beside, .. } => {
                let me = me.ok()?;
                *beside = self.talk(to).sending.go_beside(*ticket, longs);
                beside.then(|| Call::RequestLanded(me, *ticket as u8).encode())
            }
            Room::Reply { ends, .. } => {
                *ends = self.talk(to).receiving.settle(1);
                ends.map(|(_, slot)| Call::ReplyLanded(slot).encode())
            }
        }
    }

    /// Sends what lies in its room: the payload, of which so many bytes are there, and this head.
    pub fn commit(&mut self, to: Rank, room: Room, payload: usize, head: &[u8]) -> Result<(), WireError> {
        let at = match room {
            Room::Request { slot, .. } => self.layout.slot(slot),
            Room::Reply { number, .. } => self.layout.reply(number),
        };
        let ends = wire::ended(head);
        let Some(Ended { tickets, own, slot: answered }) = self.settle(to, room, ends) else {
            self.cancel(to, room);
            return Err(
                self.corrupt(to, &format!("is to be told the end of {ends} requests, which it has not sent"))
            );
        };
        let beside = matches!(room, Room::Request { beside: true, .. } | Room::Reply { ends: Some(_), .. });
        let letter = Letter {
            fetch: false,
            beside,
            ends: tickets != 0,
            slot: 0,
            granule: 0,
            head: head.len(),
            payload,
        };
        self.region.set(at, tickets);
        self.region.set_words(at + ENDED + payload.next_multiple_of(8), head);
        let len = whole_len(letter);
        let local = self.region.part(at + start_of(letter), len).raw();
        let home = self.homes[to as usize];
        let post = Post { local, ..self.post_to(to, Kind::Put, Owner::Word) };
        let layout = self.layout;
        let post = match room {
            Room::Reply { .. } if ends == 0 => {
                self.cancel(to, room);
                return Err(self.corrupt(to, "is to have a reply that ends no request"));
            }
            Room::Reply { number, .. } => Post {
                kind: Kind::PutFlagged { at: home.at(layout.answer(answered)), value: letter.encode() },
                remote: home.at(layout.slot(answered)),
                call: Some(Call::Reply(answered).encode()),
                owner: Owner::Reply { number },
                ..post
            },
            Room::Request { ticket, slot, granules, .. } => {
                let (mailbox, shape) = (self.talk(to).sending.mailbox, self.mailboxes.shape);
                let sending = &mut self.talk(to).sending;
                let granules = granules.map(|granules| sending.trim(granules, shape.count(len)));
                sending.enter(ticket, Ticket { slot, granules: granules.unwrap_or_default() });
                self.slots[usize::from(slot)].ticket = ticket as u8;
                let call = Some(Call::Request(self.me).encode());
                let owner = Owner::Request { slot };
                match (granules, mailbox) {
                    (Some(granules), Some(mailbox)) => {
                        let letter = Letter { slot, granule: granules.first as u8, ..letter };
                        let at = mailbox.at(shape.letter(ticket));
                        Post {
                            kind: Kind::PutFlagged { at, value: letter.encode() },
                            remote: mailbox.at(shape.granule(granules.first)),
                            remote_handle: mailbox.handle,
                            call,
                            owner,
                            ..post
                        }
                    }
                    _ => {
                        let letter = Letter { fetch: true, slot, ..letter };
                        let remote = home.at(layout.letter(self.me, ticket));
                        Post { kind: Kind::PutWord(letter.encode()), remote, call, owner, ..post }
                    }
                }
            }
        };
        let ended = tickets | own;
        if self.talk(to).receiving.has_lent(ended) {
            self.postponed.push(Postponed { post, ended });
            return Ok(());
        }
        self.hand_over(&post).inspect_err(|_| self.cancel(to, room))
    }

    /// Which requests of a rank a message ends in this room, so many in all. `None`: there are not so many.
    fn settle(&mut self, to: Rank, room: Room, count: usize) -> Option<Ended> {
        let receiving = &mut self.talk(to).receiving;
        let Room::Reply { ends, .. } = room else {
            let tickets = if count > 0 { receiving.settle(count)?.0 } else { 0 };
            return Some(Ended { tickets, own: 0, slot: 0 });
        };
        if count == 0 {
            return Some(Ended { tickets: 0, own: 0, slot: 0 });
        }
        let (own, slot) = ends.or_else(|| receiving.settle(1))?;
        let more = if count > 1 { receiving.settle(count - 1) } else { Some((0, 0)) };
        if more.is_none() && ends.is_none() {
            receiving.unsettle((own, slot));
        }
        more.map(|(tickets, _)| Ended { tickets, own, slot })
    }

    /// Gives room back.
    pub fn cancel(&mut self, to: Rank, room: Room) {
        match room {
            Room::Reply { number, ends } => {
                self.free_replies.push(number);
                ends.into_iter().for_each(|ends| self.talk(to).receiving.unsettle(ends));
            }
            Room::Request { ticket, slot, granules, .. } => {
                let sending = &mut self.talk(to).sending;
                sending.untake(ticket);
                granules.into_iter().for_each(|granules| sending.give_granules(granules));
                self.slots[usize::from(slot)] = Slot::default();
                self.free_slots.push(slot);
            }
        }
    }
}
