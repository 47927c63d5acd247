//! A transaction on its way: what it does to memory, and which events it makes, step by step.

use std::sync::Arc;

use super::chain::Chain;
use super::datagram::Who;
use super::endpoint::Route;
use super::kin::{Kin, enter_own, may_be_of_kin};
use super::mood::{Mood, Step};
use super::{Cq, Nic};
use crate::entry::{Source, Status, Tells};
use crate::handle::Corrupt;
use crate::memory::{self, Arena, Memory};
use crate::post::{Action, Post, Way};
use crate::queue::Overrun;
use crate::reduction::Seat;
use crate::station::{Reach, Station, There, Told, Want};

/// Who hears of a transaction here.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) queue: Arc<Cq>,
    pub(super) transaction: u32,
    /// It is one of several, and they hear of all of them at once.
    pub(super) chain: Option<Arc<Chain>>,
}

/// What bytes here are registered for, and with which other NIC of the process, if with one.
pub(super) struct Registered {
    pub(super) want: Want,
    pub(super) kin: Option<Kin>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Default)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) remote_overrun: bool,
}

/// Where the bytes of a put are until they arrive.
pub(super) enum Cargo {
    /// In the client's memory, where the post says.
    Client,
    /// There too, but in two pieces.
    Pieces([(u64, u64); 2]),
    /// In a copy: of what the block transfer engine has read, where it does that some time before, or of a message.
    Kept(Arena),
    /// What an engine hands its own client: it is on no way on which it could be lost.
    Result(Arena),
    /// There are none: a contribution waits at its seat.
    Seat(Who, Seat),
}

/// A transaction that was posted and is not over.
pub(super) struct Flight {
    nic: Nic,
    post: Post,
    /// As what the bytes here are registered, if they must be.
    here: Option<Registered>,
    /// The value of the event at the target.
    value: u32,
    target: Option<Arc<dyn Station>>,
    /// The target's address and instance.
    to: (u32, u32),
    origin: Option<Origin>,
    cargo: Cargo,
    end: End,
}

/// The longest put of which a copy is kept between the time that it is read and the time that it arrives.
const MOST_KEPT: u64 = 1 << 20;

impl Flight {
    pub(super) fn new(
        nic: Nic,
        post: Post,
        here: Option<Registered>,
        route: Route,
        origin: Option<Origin>,
    ) -> Self {
        let Route { there: value, target, to, .. } = route;
        Self { nic, post, here, value, target, to, origin, cargo: Cargo::Client, end: End::default() }
    }

    pub(super) fn carrying(self, cargo: Cargo) -> Self {
        Self { cargo, ..self }
    }

    pub(super) fn post(&self) -> &Post {
        &self.post
    }

    /// To which NIC it goes, as far as one has to be told from another.
    pub(super) fn peer(&self) -> usize {
        self.target.as_ref().map_or(0, |target| Arc::as_ptr(target).cast::<()>().addr())
    }

    /// All steps in the order in which one would wish for them; what is to arrive at once need not be kept.
    pub(super) fn finish(mut self) {
        Step::ALL.into_iter().filter(|step| *step != Step::Fetch).for_each(|step| self.take(step));
    }

    /// Takes a step. After a failure nothing more is done at the target, and of two events here one alone is made.
    pub(super) fn take(&mut self, step: Step) {
        let (wishes, failed) = (self.post.wishes, self.end.status != Status::Ok);
        let taken = match step {
            Step::Local => {
                if wishes.local && !(failed && wishes.global) {
                    self.tell_here(Source::Engine);
                }
                return;
            }
            Step::Global => {
                if wishes.global {
                    self.tell_here(Source::Answer);
                }
                return;
            }
            _ if failed => return,
            Step::Fetch => self.fetch(),
            Step::Move => {
                let before = self.nic.inbound();
                self.move_bytes().inspect(|()| self.has_arrived(before, false))
            }
            Step::Flag => self.raise_flag().inspect(|()| self.has_arrived(0, true)),
            Step::There => self.tell_there(),
        };
        if let Err(status) = taken {
            self.end.status = status;
            self.nic.report(status);
            self.nic.failed(&self.post, status);
        }
    }

    /// Says so of the bytes of its source, or of the flag after them, where the client is to leave the source alone.
    fn has_arrived(&self, before: u64, is_flag: bool) {
        let Some(Origin { queue, transaction, .. }) = &self.origin else { return };
        if self.nic.is_strict()
            && let Some(request) = queue.requests().get(*transaction)
            && let Some(guard) = &mut request.source
        {
            self.nic.arrived(guard, self.to, before, is_flag);
        }
    }

    /// Enters the bytes here, where they have to be registered: as long as this lives they are.
    fn registered(&self) -> Result<Option<Reach<'_>>, Status> {
        let Post { local_address, local_handle, length, .. } = &self.post;
        let Some(Registered { want, kin }) = &self.here else { return Ok(None) };
        let bytes = (*local_address, *length);
        match kin {
            None => self.nic.own(local_handle, bytes, *want).map_err(|_| Status::Descriptor),
            Some(kin) => enter_own(&**kin, local_handle, bytes, *want),
        }
        .map(Some)
    }

    /// The memory that holds the bytes here.
    fn here<'a>(&'a self, registered: &'a Option<Reach<'a>>) -> &'a dyn Memory {
        match registered {
            Some(reach) if reach.is_nearer(self.post.length) => reach,
            _ => self.nic.memory(),
        }
    }

    /// Does something with bytes of the target, or where it does not know the handle at another NIC of its process. Where no NIC has
    /// the number, it is the handle alone that says whose memory is meant.
    fn at_target<T>(
        &self,
        there: There,
        act: impl Fn(&dyn Station) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let Some(target) = self.target.as_deref() else {
            return self.nic.at_node(self.to, there, |nic| act(nic));
        };
        if target.is_gone() {
            return Err(Status::Gone);
        }
        let done = act(target);
        if !may_be_of_kin(&done) {
            return done;
        }
        let act = |kin: &Kin| Some(act(kin)).filter(|done| !may_be_of_kin(done));
        self.nic.of_kin(self.to, |kin| kin.iter().find_map(act)).unwrap_or(done)
    }

    /// Bytes of the target.
    fn there(&self, address: u64, len: u64) -> Result<There, Status> {
        let handle = self.post.remote_handle.map_err(|Corrupt| Status::Descriptor)?;
        Ok(There { handle, address, len })
    }

    /// The engine reads what it puts.
    fn fetch(&mut self) -> Result<(), Status> {
        let Post { action, way, local_address, length, .. } = self.post;
        if (action, way) == (Action::Put, Way::Bte) && length <= MOST_KEPT {
            let registered = self.registered()?;
            let kept = Arena::new(0, length.div_ceil(8) as usize);
            memory::copy((&kept, 0), (self.here(&registered), local_address), length)?;
            drop(registered);
            self.cargo = Cargo::Kept(kept);
        }
        Ok(())
    }

    /// What the transaction is for.
    fn move_bytes(&mut self) -> Result<(), Status> {
        if !matches!(self.cargo, Cargo::Result(_))
            && let Some(fault) = self.nic.0.faults.due("transaction")
        {
            return Err(Status::named(fault).unwrap_or(Status::Lost));
        }
        let Post { local_address, remote_address, length, .. } = self.post;
        let cargo = std::mem::replace(&mut self.cargo, Cargo::Client);
        if let Cargo::Seat(who, seat) = cargo {
            return self.nic.contribute(who, seat);
        }
        let here = self.nic.memory();
        let there = self.there(remote_address, length)?;
        match cargo {
            Cargo::Kept(kept) | Cargo::Result(kept) => {
                return self.at_target(there, |target| target.put(there, (&kept, 0)));
            }
            Cargo::Pieces(pieces) => {
                let mut to = remote_address;
                for (from, len) in pieces {
                    let piece = There { address: to, len, ..there };
                    self.at_target(piece, |target| target.put(piece, (here, from)))?;
                    to += len;
                }
                return Ok(());
            }
            Cargo::Client | Cargo::Seat(..) => {}
        }
        let registered = self.registered()?;
        let here = self.here(&registered);
        match self.post.action {
            Action::Put | Action::PutWithFlag { .. } => {
                self.at_target(there, |target| target.put(there, (here, local_address)))
            }
            Action::Get | Action::GetWithFlag { .. } => {
                self.at_target(there, |target| target.get(there, (here, local_address)))
            }
            Action::Atomic { command, operands, .. } => {
                // One word, whatever length its bytes are said to have.
                let width = command.width();
                let word = There { len: width as u64, ..there };
                let old = self.at_target(word, |target| target.change(word, command, operands))?;
                if command.fetches {
                    here.write(local_address, &old.to_le_bytes()[..width])?;
                }
                Ok(())
            }
            Action::CqWrite { value } => {
                let there = self.there(there.handle.first(), 0)?;
                let told = self.tell(there, Tells::Value.mark(value))?.ok_or(Status::Descriptor)?;
                drop(registered);
                self.end.remote_overrun = told.is_err();
                Ok(())
            }
            Action::Reduce { .. } => Err(Status::Gone),
        }
    }

    /// The flag that follows the bytes, there or here.
    fn raise_flag(&mut self) -> Result<(), Status> {
        match self.post.action {
            Action::PutWithFlag { address, value } => {
                let flag = self.flag(address)?;
                self.at_target(flag, |target| target.store(flag, value))
            }
            Action::GetWithFlag { address, value } | Action::Atomic { flag: Some((address, value)), .. } => {
                let flag = (value as u32).to_le_bytes();
                Ok(self.nic.memory().write(address, &flag)?)
            }
            _ => Ok(()),
        }
    }

    /// The word of the target that is a put's flag.
    fn flag(&self, address: u64) -> Result<There, Status> {
        if !address.is_multiple_of(8) {
            return Err(Status::Alignment);
        }
        self.there(address, size_of::<u64>() as u64)
    }

    /// The event at the target.
    fn tell_there(&mut self) -> Result<(), Status> {
        if !self.post.wishes.remote || matches!(self.post.action, Action::CqWrite { .. }) {
            return Ok(());
        }
        // It may come before the bytes and the flag, but not where they cannot.
        let there = self.there(self.post.remote_address, self.post.length)?;
        if let Action::PutWithFlag { address, .. } = self.post.action
            && self.post.way != Way::Smsg
            && self.nic.0.mood != Mood::Plain
        {
            let (flag, nowhere) = (self.flag(address)?, Arena::new(0, 1));
            self.at_target(flag, |target| target.get(flag, (&nowhere, 0)))?;
        }
        let told = match self.tell(there, self.value.into()) {
            // A message that has arrived is not to be sent again.
            Err(_) if self.post.way == Way::Smsg => Some(Err(Overrun)),
            told => told?,
        };
        self.end.remote_overrun = told.is_some_and(|told| told.is_err());
        Ok(())
    }

    fn tell(&self, there: There, data: u64) -> Result<Told, Status> {
        let lost = self.nic.0.faults.due("remote-queue").is_some();
        self.at_target(there, |target| target.tell(there, (!lost).then_some(data)))
    }

    /// An event here.
    fn tell_here(&self, source: Source) {
        let Some(Origin { queue, transaction, chain }) = &self.origin else { return };
        let end = chain.as_ref().map_or(Some(self.end), |chain| chain.ended(self.end));
        if let Some(End { status, remote_overrun }) = end {
            queue.tell(*transaction, source, status, remote_overrun);
        }
    }
}
