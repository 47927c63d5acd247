//! One rank's part in a collective: a schedule that goes on step by step, with what it sends and gets.

use super::buffers::{Buffer, Spare};
use super::bytes::{Bytes, Stop};
use super::layout::Layout;
use super::matching::{CLEAR_TO_SEND, EAGER, Matching, PIECE, Step, TeamNumber, WORDS};
use super::round::{Round, What, Which};
use super::ticket::Ticket;
use gasworks_core::{Category, CoreMode, Engine, Error, Members, Outgoing, Rank, SharedTeam, WordReduction};
use gasworks_sync::atomic::AtomicU32;
use gasworks_sync::{VolatileSlice, kill_point};
use std::sync::Arc;

/// What a member does in a collective. It is called again until it is through, and keeps where it was: a call of [`Io`] that stops it is made
/// again, with the same arguments.
pub(crate) trait Schedule: Send {
    /// Goes on.
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop>;

    /// Whether nobody is through before all have begun.
    fn meets(&self) -> bool {
        false
    }

    /// Whether it is one for a board, and goes through its round there by itself.
    fn posts(&self) -> bool {
        false
    }

    /// It is turned no more, whatever it waits for, and ends its round if it goes through that by itself.
    fn abandon(&mut self, _: &Round<'_>) {}
}

/// One of two schedules.
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

impl<A: Schedule, B: Schedule> Schedule for Either<A, B> {
    fn meets(&self) -> bool {
        match self {
            Either::First(schedule) => schedule.meets(),
            Either::Second(schedule) => schedule.meets(),
        }
    }
    fn posts(&self) -> bool {
        match self {
            Either::First(schedule) => schedule.posts(),
            Either::Second(schedule) => schedule.posts(),
        }
    }
    fn abandon(&mut self, round: &Round<'_>) {
        match self {
            Either::First(schedule) => schedule.abandon(round),
            Either::Second(schedule) => schedule.abandon(round),
        }
    }
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        match self {
            Either::First(schedule) => schedule.turn(io),
            Either::Second(schedule) => schedule.turn(io),
        }
    }
}

/// What sends messages.
pub(crate) trait Sender {
    fn try_request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error>;
    fn max_medium(&self) -> usize;
    /// The reduction of words that a network has, if one does.
    fn reduction(&self) -> Option<&dyn WordReduction> {
        None
    }
}

impl<M: CoreMode> Sender for Engine<M> {
    fn try_request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        Engine::try_request(self, to, message)
    }
    fn max_medium(&self) -> usize {
        Engine::max_medium(self)
    }
    fn reduction(&self) -> Option<&dyn WordReduction> {
        Engine::reduction(self)
    }
}

/// Which collective it is, and where this rank is in it.
pub(crate) struct Of {
    pub matching: Arc<Matching>,
    pub team: TeamNumber,
    /// How many the team had begun before; wraps round.
    pub order: u32,
    /// The same, which does not.
    pub before: u64,
    pub what: What,
    pub members: Arc<Members>,
    /// Which member this rank is.
    pub own: u32,
    /// How often the team's members have met, for how far they may go ahead.
    pub met: Arc<AtomicU32>,
    /// What they have in shared memory.
    pub shared: Option<Arc<dyn SharedTeam>>,
    /// Where they are, if in several neighbourhoods.
    pub layout: Option<Arc<Layout>>,
    /// Of a reduction of words that a network may do.
    pub ticket: Option<Ticket>,
}

impl Of {
    /// Its round on the team's board, if that has one.
    pub fn round(&self) -> Option<Round<'_>> {
        let place = (self.team, &*self.members, self.own);
        Round::new(self.shared.as_deref(), place, self.before, self.what)
    }

    /// Which collective it is.
    pub fn which(&self) -> Which {
        Which { what: self.what, team: self.team, before: self.before }
    }

    /// The same where this rank does nothing.
    pub fn of_nothing(self) -> Self {
        Self { what: What::NOTHING, ..self }
    }
}

/// How far a schedule's last call has come.
struct Progress {
    matching: Arc<Matching>,
    sent: usize,
    /// The receiver of what is being sent has cleared it.
    is_cleared: bool,
    /// What this rank clears its sender to send, and whether that is on its way.
    cleared: Option<(Step, bool)>,
    /// What was not what this rank wants, and how much that is; there was no room to say so.
    refused: Option<(Step, usize, Error)>,
    /// For pieces.
    piece: Spare,
    /// What received bytes lay in, to be used again.
    spare: Spare,
}

/// A schedule with its place in a collective.
pub(crate) struct Part<S> {
    pub of: Of,
    progress: Progress,
    pub schedule: S,
}

impl<S: Schedule> Part<S> {
    pub fn new(of: Of, schedule: S) -> Self {
        let matching = of.matching.clone();
        let (piece, spare) = Default::default();
        let progress =
            Progress { matching, sent: 0, is_cleared: false, cleared: None, refused: None, piece, spare };
        Self { of, progress, schedule }
    }

    /// Which collective it is.
    pub fn which(&self) -> Which {
        self.of.which()
    }

    /// Goes as far as it can at once.
    pub fn turn(&mut self, sender: &dyn Sender) -> Result<(), Stop> {
        self.schedule.turn(&mut Io { sender, of: &self.of, progress: &mut self.progress })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((step, _)) = self.cleared {
            self.matching.forget(step);
        }
        let buffers = [self.piece.empty(), self.spare.empty()];
        if buffers.iter().any(Option::is_some) {
            self.matching.give_back(buffers.into_iter().flatten());
        }
    }
}

/// What a schedule sends and gets by. Members are named by how far they are beyond another, around.
pub(crate) struct Io<'a> {
    sender: &'a dyn Sender,
    of: &'a Of,
    progress: &'a mut Progress,
}

impl<'a> Io<'a> {
    /// The round on the team's board, if that has one.
    pub fn round(&self) -> Option<Round<'a>> {
        self.of.round()
    }

    /// Where the members are, if in several neighbourhoods.
    pub fn layout(&self) -> Option<&'a Layout> {
        self.of.layout.as_deref()
    }

    /// The reduction of words that a network has, if one does.
    pub fn reduction(&self) -> Option<&'a dyn WordReduction> {
        self.sender.reduction()
    }

    /// The turn of a reduction of words that a network may do.
    pub fn ticket(&self) -> Option<&'a Ticket> {
        self.of.ticket.as_ref()
    }

    /// How many members there are.
    pub fn size(&self) -> u32 {
        self.of.members.size()
    }

    /// Which of them this rank is.
    pub fn own(&self) -> u32 {
        self.of.own
    }

    /// The member so much further on than another, around.
    pub fn beyond(&self, member: u32, distance: u32) -> u32 {
        ((u64::from(member) + u64::from(distance)) % u64::from(self.size())) as u32
    }

    fn rank(&self, member: u32) -> Rank {
        self.of.members.rank_of(member).unwrap_or(Rank::MAX)
    }

    fn step(&self, step: u32, from: Rank) -> Step {
        Step { team: self.of.team, order: self.of.order, step, from }
    }

    /// Sends a member the bytes of a step.
    pub fn send(&mut self, to: u32, step: u32, bytes: Bytes<'_>) -> Result<(), Stop> {
        let rank = self.rank(to);
        while self.progress.sent < bytes.len() {
            let sent = self.progress.sent;
            if sent >= EAGER && !self.progress.is_cleared {
                if !self.of.matching.is_cleared(self.step(step, rank), bytes.len())? {
                    return Err(Stop::Waits(Some(rank)));
                }
                self.progress.is_cleared = true;
            }
            let most = if sent < EAGER { EAGER - sent } else { usize::MAX };
            let len = self.sender.max_medium().min(bytes.len() - sent).min(most);
            let place = (sent, bytes.len());
            match bytes.part(sent, len) {
                Bytes::Plain(piece) => self.say(rank, step, place, piece)?,
                shared @ Bytes::Shared(_) => {
                    let piece = self.progress.piece.take(len);
                    let mut piece = piece.unwrap_or_else(|| self.progress.matching.buffer(len));
                    shared.read(&mut piece);
                    let said = self.say(rank, step, place, &piece);
                    let smaller = self.progress.piece.replace(piece);
                    smaller.into_iter().for_each(|buffer| self.give_back(buffer));
                    said?;
                }
            }
            self.progress.sent += len;
        }
        (self.progress.sent, self.progress.is_cleared) = (0, false);
        Ok(())
    }

    /// Clears a member to send the bytes of a step, so many, unless all of them come eagerly. Before this rank sends something, where that one
    /// might wait to be cleared before it does so itself.
    pub fn clear_to_send(&mut self, from: u32, step: u32, len: usize) -> Result<(), Stop> {
        if let Some((key, len, error)) = self.progress.refused.take() {
            return Err(self.refuse(key, len, error));
        }
        if len <= EAGER {
            return Ok(());
        }
        let rank = self.rank(from);
        let key = self.step(step, rank);
        if self.progress.cleared.is_none() {
            let room = self.buffer(len);
            if let Err(error) = self.of.matching.expect(key, room) {
                return Err(self.refuse(key, len, error));
            }
            self.progress.cleared = Some((key, false));
        }
        if let Some((key, false)) = self.progress.cleared {
            self.say(rank, step | CLEAR_TO_SEND, (0, len), &[])?;
            self.progress.cleared = Some((key, true));
        }
        Ok(())
    }

    /// The bytes that a member has sent for a step, so many; [`give_back`](Self::give_back) takes them when they are used.
    pub fn receive(&mut self, from: u32, step: u32, len: usize) -> Result<Buffer, Stop> {
        if len == 0 {
            return Ok(Buffer::default());
        }
        self.clear_to_send(from, step, len)?;
        let key = self.step(step, self.rank(from));
        match self.of.matching.take(key, len) {
            Ok(Some(taken)) => {
                self.progress.cleared = None;
                Ok(taken)
            }
            Ok(None) => Err(Stop::Waits(Some(key.from))),
            Err(error) => Err(self.refuse(key, len, error)),
        }
    }

    /// Receives the bytes that a member has sent for a step into a place of as many.
    pub fn receive_into(&mut self, from: u32, step: u32, place: VolatileSlice<'_>) -> Result<(), Stop> {
        let received = self.receive(from, step, place.len())?;
        place.write(&received);
        self.give_back(received);
        Ok(())
    }

    /// What comes is not what this rank wants, which whoever sends it may wait to hear.
    fn refuse(&mut self, key: Step, len: usize, error: Error) -> Stop {
        let is_told = self.progress.cleared.is_some_and(|(_, is_sent)| is_sent);
        if !is_told && let Err(Stop::Busy) = self.say(key.from, key.step | CLEAR_TO_SEND, (0, len), &[]) {
            self.progress.refused = Some((key, len, error));
            return Stop::Busy;
        }
        Stop::Failed(error)
    }

    /// A buffer of so many bytes; [`give_back`](Self::give_back) takes it when it is used.
    pub fn buffer(&mut self, len: usize) -> Buffer {
        let spare = self.progress.spare.take(len);
        spare.unwrap_or_else(|| self.progress.matching.buffer(len))
    }

    /// A buffer is not needed any more.
    pub fn give_back(&mut self, buffer: Buffer) {
        if let Some(other) = self.progress.spare.replace(buffer) {
            self.progress.matching.give_back([other]);
        }
    }

    fn say(&self, to: Rank, step: u32, (offset, total): (usize, usize), payload: &[u8]) -> Result<(), Stop> {
        let &Of { team, order, .. } = self.of;
        let words: [u32; WORDS] = [team.maker, team.counter, order, step, offset as u32, total as u32];
        let args = words.map(u32::to_le_bytes);
        let args = args.as_flattened();
        let message = Outgoing { category: Category::Medium, handler: PIECE, args, payload, landing: 0 };
        self.sender.try_request(to, &message)?;
        kill_point!("collective.sent");
        Ok(())
    }
}
