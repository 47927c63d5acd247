//! A transaction on its way: what it does to memory, and which events it makes, step by step.

use std::sync::Arc;

use super::chain::Chain;
use super::endpoint::Route;
use super::mood::Step;
use super::{Cq, Nic};
use crate::entry::{Source, Status};
use crate::handle::Corrupt;
use crate::memory::{self, Arena};
use crate::post::{Action, Post, Way};
use crate::queue::Overrun;
use crate::station::{Reach, Station, Want, reach};

/// Who hears of a transaction here.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) queue: Arc<Cq>,
    pub(super) transaction: u32,
    /// It is one of several, and they hear of all of them at once.
    pub(super) chain: Option<Arc<Chain>>,
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
}

/// A transaction that was posted and is not over.
pub(super) struct Flight {
    nic: Nic,
    post: Post,
    /// What the bytes here are registered for, if they must be.
    here: Option<Want>,
    /// The value of the event at the target.
    value: u32,
    target: Option<Arc<dyn Station>>,
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
        here: Option<Want>,
        route: Route,
        origin: Option<Origin>,
    ) -> Self {
        let Route { there: value, target, .. } = route;
        Self { nic, post, here, value, target, origin, cargo: Cargo::Client, end: End::default() }
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
            Step::Move => self.move_bytes(),
            Step::Flag => self.raise_flag(),
            Step::There => self.tell_there(),
        };
        if let Err(status) = taken {
            self.end.status = status;
            self.nic.report(status);
        }
    }

    /// Enters the bytes here, where they have to be registered: as long as this lives they are.
    fn registered(&self) -> Result<Option<Reach<'_>>, Status> {
        let Post { local_address, local_handle, length, .. } = &self.post;
        let enter = |want| {
            self.nic.own(local_handle, (*local_address, *length), want).map_err(|_| Status::Descriptor)
        };
        self.here.map(enter).transpose()
    }

    fn target(&self) -> Result<&dyn Station, Status> {
        self.target.as_deref().filter(|target| !target.is_gone()).ok_or(Status::Gone)
    }

    /// Enters bytes of the target.
    fn reach(&self, bytes: (u64, u64), want: Want) -> Result<Reach<'_>, Status> {
        reach(self.target()?, self.post.remote_handle.map_err(|Corrupt| Status::Descriptor)?, bytes, want)
    }

    /// The engine reads what it puts.
    fn fetch(&mut self) -> Result<(), Status> {
        let Post { action, way, local_address, length, .. } = self.post;
        if (action, way) == (Action::Put, Way::Bte) && length <= MOST_KEPT {
            let _registered = self.registered()?;
            let kept = Arena::new(0, length.div_ceil(8) as usize);
            memory::copy((&kept, 0), (self.nic.memory(), local_address), length)?;
            drop(_registered);
            self.cargo = Cargo::Kept(kept);
        }
        Ok(())
    }

    /// What the transaction is for.
    fn move_bytes(&mut self) -> Result<(), Status> {
        if let Some(fault) = self.nic.0.faults.due("transaction") {
            return Err(Status::named(fault).unwrap_or(Status::Lost));
        }
        let Post { local_address, remote_address, length, .. } = self.post;
        let bytes = (remote_address, length);
        let cargo = std::mem::replace(&mut self.cargo, Cargo::Client);
        let here = self.nic.memory();
        match cargo {
            Cargo::Kept(kept) => {
                let there = self.reach(bytes, Want::Write)?;
                return there.fill((&kept, 0));
            }
            Cargo::Pieces(pieces) => {
                let mut to = remote_address;
                for (from, len) in pieces {
                    let there = self.reach((to, len), Want::Write)?;
                    there.fill((here, from))?;
                    to += len;
                }
                return Ok(());
            }
            Cargo::Client => {}
        }
        let _registered = self.registered()?;
        match self.post.action {
            Action::Put | Action::PutWithFlag { .. } => {
                let there = self.reach(bytes, Want::Write)?;
                there.fill((here, local_address))
            }
            Action::Get | Action::GetWithFlag { .. } => {
                let there = self.reach(bytes, Want::Read)?;
                there.copy_to((here, local_address))
            }
            Action::Atomic { command, operands: [first, second], .. } => {
                let width = command.width();
                for offset in (0..length).step_by(width) {
                    let word = (remote_address.checked_add(offset).ok_or(Status::Bounds)?, width as u64);
                    let there = self.reach(word, Want::Write)?;
                    let old = there.update(width, |word| command.apply(word, first, second))?;
                    if command.fetches {
                        let bytes = &old.to_le_bytes()[..width];
                        let address = local_address.checked_add(offset).ok_or(Status::Bounds)?;
                        here.write(address, bytes)?;
                    }
                }
                Ok(())
            }
            Action::CqWrite { value } => {
                let there = self.reach((remote_address, 0), Want::Queue)?;
                let told = self.tell(&there, value).ok_or(Status::Descriptor)?;
                drop((there, _registered));
                self.end.remote_overrun = told.is_err();
                Ok(())
            }
        }
    }

    /// The flag that follows the bytes, there or here.
    fn raise_flag(&mut self) -> Result<(), Status> {
        match self.post.action {
            Action::PutWithFlag { address, value } => {
                if !address.is_multiple_of(8) {
                    return Err(Status::Alignment);
                }
                let flag = (address, size_of_val(&value) as u64);
                self.reach(flag, Want::Write)?.write(&value.to_le_bytes())
            }
            Action::GetWithFlag { address, value } | Action::Atomic { flag: Some((address, value)), .. } => {
                let flag = (value as u32).to_le_bytes();
                Ok(self.nic.memory().write(address, &flag)?)
            }
            _ => Ok(()),
        }
    }

    /// The event at the target.
    fn tell_there(&mut self) -> Result<(), Status> {
        if !self.post.wishes.remote || matches!(self.post.action, Action::CqWrite { .. }) {
            return Ok(());
        }
        let place = (self.post.remote_address, 0);
        let told = match self.reach(place, Want::Queue).map(|there| self.tell(&there, self.value.into())) {
            // A message that has arrived is not to be sent again.
            Err(_) if self.post.way == Way::Smsg => Some(Err(Overrun)),
            told => told?,
        };
        self.end.remote_overrun = told.is_some_and(|told| told.is_err());
        Ok(())
    }

    fn tell(&self, there: &Reach<'_>, data: u64) -> Option<Result<(), Overrun>> {
        match self.nic.0.faults.due("remote-queue") {
            Some(_) => there.lose(),
            None => there.tell(data),
        }
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
