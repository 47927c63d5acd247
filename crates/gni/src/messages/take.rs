//! Receiving: calls are answered, letters read, messages taken, or held until the payload beside them has landed.

use super::{ENDED, Fetching, Found, Held, LOOKS, Messages, NAME, Place, Postponed, Slot, Taken, whole_len};
use crate::domain::{Arrival, Network};
use crate::letter::{Call, Letter};
use crate::region::Region;
use gasworks_core::message::MAX_HEAD;
use gasworks_core::{Rank, WireError};
use gasworks_sync::kill_point;

impl<N: Network> Messages<N> {
    /// A message is not read any more.
    ///
    /// # Errors
    /// What was to be posted then cannot be.
    pub fn give_back(&mut self, taken: Taken) -> Result<(), WireError> {
        self.free(taken.from, taken.place)
    }

    /// Nobody reads a payload there any more.
    fn free(&mut self, from: Rank, place: Place) -> Result<(), WireError> {
        match place {
            Place::Nowhere => {}
            Place::Fetched { number } => self.free_fetches.push(number),
            Place::Slot { ticket } => _ = self.end(from, 1 << ticket),
            Place::Mailbox { ticket } => {
                self.talk(from).receiving.take_back(ticket.into());
                return self.post_postponed();
            }
        }
        Ok(())
    }

    /// Posts what has waited until nobody reads what it ends.
    fn post_postponed(&mut self) -> Result<(), WireError> {
        let mut at = 0;
        while let Some(Postponed { post, ended }) = self.postponed.get(at) {
            let (post, ended) = (*post, *ended);
            if self.talk(post.peer).receiving.has_lent(ended) {
                at += 1;
                continue;
            }
            self.postponed.remove(at);
            self.hand_over(&post)?;
        }
        Ok(())
    }

    /// A rank is done with the requests with these tickets. `None`: one of them is not out.
    fn end(&mut self, peer: Rank, ended: u64) -> Option<()> {
        let Self { talks, slots, free_slots, .. } = self;
        let talk = talks.get_mut(peer)?;
        talk.sending.end(ended, |number| slots[usize::from(number)].end(number, free_slots))
    }

    /// A poll begins: it looks once at what was posted here, and takes as many notifications as the settings say.
    pub fn begin_poll(&mut self) {
        self.left = self.bursts.arrivals;
        self.reap_some();
        self.reaped = true;
    }

    /// The next message that has arrived, for the poll that has begun.
    pub fn next(&mut self) -> Result<Option<Taken>, WireError> {
        self.whole()?;
        self.go_on()?;
        self.turn_barrier()?;
        while let Some(number) = self.fetched.pop_front() {
            if let Found::Message(taken) = self.take_fetched(number)? {
                return Ok(Some(taken));
            }
        }
        if let Some(taken) = self.take_early()? {
            return Ok(Some(taken));
        }
        while self.left > 0 {
            self.left -= 1;
            let call = match self.domain.next_arrival() {
                Arrival::Nothing => break,
                Arrival::Overrun(call) => {
                    // All are looked at from now on: nobody need be remembered.
                    self.early.clear();
                    self.early_slots.clear();
                    self.lossy.get_or_insert((0, 0));
                    call
                }
                Arrival::Call(call) => Some(call),
            };
            let Some(call) = call else { continue };
            if let Found::Message(taken) = self.answer_call(Call::decode(call))? {
                return Ok(Some(taken));
            }
        }
        self.look_around()
    }

    /// Looks for what a call tells of, and remembers it if it is not there.
    fn answer_call(&mut self, call: Call) -> Result<Found, WireError> {
        let found = match call {
            Call::Request(rank) if rank < self.layout.shape.ranks => self.take_request(rank)?,
            Call::Reply(slot) if u32::from(slot) < self.layout.shape.slots => self.take_reply(slot)?,
            Call::RequestLanded(rank, ticket) => return self.land_request(rank.into(), ticket.into()),
            Call::ReplyLanded(slot) if u32::from(slot) < self.layout.shape.slots => {
                return self.land_reply(slot);
            }
            _ => return Ok(Found::Nothing),
        };
        if matches!(found, Found::Nothing) && self.lossy.is_none() {
            match call {
                Call::Request(rank) => {
                    let early = &mut self.talk(rank).receiving.early;
                    *early = early.saturating_add(1);
                    if *early == 1 {
                        self.early.push(rank);
                    }
                }
                // A slot has one reply, and none where nobody waits for it.
                Call::Reply(slot) => {
                    if self.slots[usize::from(slot)].in_use && !self.early_slots.contains(&slot) {
                        self.early_slots.push(slot);
                    }
                }
                Call::RequestLanded(..) | Call::ReplyLanded(_) => {}
            }
        }
        Ok(found)
    }

    /// Looks once more for what was told of too early.
    fn take_early(&mut self) -> Result<Option<Taken>, WireError> {
        for at in (0..self.early.len()).rev() {
            let rank = self.early[at];
            loop {
                let found = self.take_request(rank)?;
                if matches!(found, Found::Nothing) {
                    break;
                }
                let early = &mut self.talk(rank).receiving.early;
                *early = early.saturating_sub(1);
                let is_last = *early == 0;
                if is_last {
                    self.early.swap_remove(at);
                }
                if let Found::Message(taken) = found {
                    return Ok(Some(taken));
                }
                if is_last {
                    break;
                }
            }
        }
        for at in (0..self.early_slots.len()).rev() {
            if let Found::Message(taken) = self.take_reply(self.early_slots[at])? {
                self.early_slots.swap_remove(at);
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Looks at some ranks and slots that nobody has told of, where calls were lost.
    fn look_around(&mut self) -> Result<Option<Taken>, WireError> {
        let Some((mut rank, mut slot)) = self.lossy else { return Ok(None) };
        let (ranks, slots) = (self.layout.shape.ranks, self.slots.len() as u16);
        for _ in 0..LOOKS {
            let found = self.take_request(rank)?;
            rank = (rank + 1) % ranks;
            let found = match found {
                Found::Nothing if self.slots[usize::from(slot)].in_use => self.take_reply(slot)?,
                found => found,
            };
            slot = (slot + 1) % slots;
            self.lossy = Some((rank, slot));
            if let Found::Message(taken) = found {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// A request of this rank, if there is one.
    fn take_request(&mut self, from: Rank) -> Result<Found, WireError> {
        let tickets = self.layout.shape.tickets;
        let (next, mailbox) = match self.talks.get(from) {
            Some(talk) => (talk.receiving.next, talk.receiving.mailbox),
            None => (0, None),
        };
        let turn = |i| (next + i) % tickets;
        let shape = self.mailboxes.shape;
        if let Some(mailbox) = mailbox.and_then(|number| self.mailboxes.get(number)) {
            let look =
                |ticket| Some((ticket, mailbox.look(shape.letter(ticket)))).filter(|(_, word)| *word != 0);
            if let Some((ticket, word)) = (0..tickets).map(turn).find_map(look) {
                mailbox.set(shape.letter(ticket), 0);
                let letter = self.read_letter(from, ticket, word, false)?;
                let at = shape.granule(letter.granule.into());
                if at + whole_len(letter) > shape.len() {
                    return Err(self.corrupt(from, "has sent a letter of a message beyond its mailbox"));
                }
                let place = Place::Mailbox { ticket: ticket as u8 };
                return self.take_or_hold((from, ticket), letter, &mailbox, at, place);
            }
        }
        let (region, layout) = (self.region, self.layout);
        let look =
            |ticket| Some((ticket, region.look(layout.letter(from, ticket)))).filter(|(_, word)| *word != 0);
        let Some((ticket, word)) = (0..tickets).map(turn).find_map(look) else { return Ok(Found::Nothing) };
        region.set(layout.letter(from, ticket), 0);
        let letter = self.read_letter(from, ticket, word, true)?;
        self.to_fetch.push_back(Fetching { peer: from, ticket, letter });
        if self.talk(from).receiving.mailbox.is_none() {
            let number = self.mailboxes.give(&mut self.domain);
            self.talk(from).receiving.mailbox = number;
            if number.is_some() {
                self.to_grant.push_back(from);
            }
        }
        self.go_on()?;
        Ok(Found::Begun)
    }

    /// What a letter says, if a rank may say so.
    fn read_letter(&mut self, from: Rank, ticket: u32, word: u64, fetch: bool) -> Result<Letter, WireError> {
        let shape = self.layout.shape;
        let letter = Letter::decode(word).filter(|letter| {
            letter.fetch == fetch
                && u32::from(letter.slot) < shape.slots
                && letter.payload <= shape.max_medium
                // What goes beside a message is not in it.
                && !(letter.beside && letter.payload > 0)
                && (1..=MAX_HEAD).contains(&letter.head)
        });
        let Some(letter) = letter else {
            return Err(self.corrupt(from, &format!("has sent {word:#018x}, which is no letter")));
        };
        let receiving = &mut self.talk(from).receiving;
        if !receiving.enter(ticket) {
            return Err(self.corrupt(from, &format!("has used ticket {ticket} twice")));
        }
        receiving.next = (ticket + 1) % shape.tickets;
        Ok(letter)
    }

    /// Takes a request, and holds it if it has to wait for the payload beside it. Once it is handed on it may be replied to.
    fn take_or_hold(
        &mut self,
        (from, ticket): (Rank, u32),
        letter: Letter,
        region: &Region,
        at: usize,
        place: Place,
    ) -> Result<Found, WireError> {
        let taken = self.take_message(from, region, at, letter, place)?;
        let receiving = &mut self.talk(from).receiving;
        if let Place::Mailbox { ticket } = taken.place {
            receiving.lend(ticket.into());
        }
        if letter.beside && !receiving.has_landed(ticket) {
            self.held.push(Held { ticket, slot: letter.slot, taken });
            return Ok(Found::Begun);
        }
        receiving.owe(ticket, letter.slot);
        Ok(Found::Message(taken))
    }

    /// The payload beside a request has landed.
    fn land_request(&mut self, from: Rank, ticket: u32) -> Result<Found, WireError> {
        if from >= self.layout.shape.ranks || ticket >= self.layout.shape.tickets {
            return Ok(Found::Nothing);
        }
        let is_it = |held: &Held| held.taken.from == from && held.ticket == ticket;
        match self.held.iter().position(is_it) {
            Some(at) => {
                let Held { ticket, slot, taken } = self.held.swap_remove(at);
                self.talk(from).receiving.owe(ticket, slot);
                Ok(Found::Message(taken))
            }
            None => {
                self.talk(from).receiving.land(ticket);
                Ok(Found::Nothing)
            }
        }
    }

    /// The payload beside the reply in a slot has landed.
    fn land_reply(&mut self, slot: u16) -> Result<Found, WireError> {
        let Slot { in_use, held, .. } = &mut self.slots[usize::from(slot)];
        let held = held.take();
        match held.filter(|_| *in_use) {
            Some(letter) => self.read_reply(slot, letter),
            None => {
                self.slots[usize::from(slot)].landed = true;
                Ok(Found::Nothing)
            }
        }
    }

    /// Copies the head of a message out, and does what it says it ends; the payload stays in its place.
    fn take_message(
        &mut self,
        from: Rank,
        region: &Region,
        at: usize,
        letter: Letter,
        place: Place,
    ) -> Result<Taken, WireError> {
        let begins = at + if letter.ends { ENDED } else { 0 };
        let (mut head, head_len) = ([0; MAX_HEAD], letter.head.min(MAX_HEAD));
        region.look_at_words(begins + letter.payload.next_multiple_of(8), &mut head[..head_len]);
        kill_point!("gni.take.copied");
        let own = if let Place::Slot { ticket } = place { 1 << ticket } else { 0 };
        let ended = if letter.ends { region.look(at) } else { 0 };
        // A reply ends its own request when it has been read.
        let is_known = ended & own == 0 && (ended == 0 || self.end(from, ended).is_some());
        if !is_known {
            return Err(self.corrupt(from, "has ended a request that is not out"));
        }
        let payload = region.part(begins, letter.payload);
        let place = if payload.is_empty() {
            self.free(from, place)?;
            Place::Nowhere
        } else {
            place
        };
        Ok(Taken { from, head, head_len, payload, place })
    }

    /// The reply in a slot is read.
    fn read_reply(&mut self, slot: u16, letter: Letter) -> Result<Found, WireError> {
        let (region, at) = (self.region, self.layout.slot(slot));
        let Slot { peer, ticket, .. } = self.slots[usize::from(slot)];
        self.take_message(peer, &region, at, letter, Place::Slot { ticket }).map(Found::Message)
    }

    /// The reply in a slot, if there is one.
    fn take_reply(&mut self, slot: u16) -> Result<Found, WireError> {
        let answer = self.layout.answer(slot);
        let word = self.region.look(answer);
        if word == 0 {
            return Ok(Found::Nothing);
        }
        self.region.set(answer, 0);
        let Slot { in_use, peer, .. } = self.slots[usize::from(slot)];
        if !in_use {
            let what =
                format!("some rank has written an answer to slot {slot}, in which nobody waits for one");
            return Err(WireError::Corrupt { transport: NAME, at: self.me, what });
        }
        let max = self.layout.shape.max_medium;
        let letter = Letter::decode(word).filter(|letter| {
            letter.payload <= max
                && !(letter.beside && letter.payload > 0)
                && (1..=MAX_HEAD).contains(&letter.head)
        });
        let Some(letter) = letter else {
            return Err(self.corrupt(peer, &format!("has answered slot {slot} with {word:#018x}")));
        };
        let state = &mut self.slots[usize::from(slot)];
        if letter.beside && !std::mem::take(&mut state.landed) {
            state.held = Some(letter);
            return Ok(Found::Begun);
        }
        self.read_reply(slot, letter)
    }

    /// A message that has been fetched.
    fn take_fetched(&mut self, number: u32) -> Result<Found, WireError> {
        let Some(Fetching { peer: from, ticket, letter }) = self.fetching[number as usize].take() else {
            return Ok(Found::Nothing);
        };
        let (region, at) = (self.region, self.layout.fetched(number));
        self.take_or_hold((from, ticket), letter, &region, at, Place::Fetched { number })
            .inspect_err(|_| self.free_fetches.push(number))
    }
}
