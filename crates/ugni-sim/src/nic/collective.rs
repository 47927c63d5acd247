//! The collective engines of a NIC (Aries): nodes of trees that combine what their children contribute.
//!
//! # Protocol
//! - collective.1: an edge of a tree is known by the addresses of the NICs at its ends, the engine above, which of its children the lower
//!   end is, and which engine of its NIC that is, or that it is a client. Both ends are told the same by their clients; what comes over an
//!   edge that is not here is answered as one would be that cannot be reached, or dropped. The number that an endpoint was bound with names
//!   nobody: the name of an engine says of which instance it is, and a contribution from which instance it comes. Before a client's first
//!   contribution the instance with that number stands for it, if there is one.
//! - collective.2: over an edge one share at a time goes up, and then one comes down. So a client's second contribution is refused until
//!   it has the result of the first, and each engine is about one reduction at a time.
//! - collective.3: an engine that has a share of each child combines them in the order of the children, so the result does not depend on
//!   when they came. It hands that to its parent, or if it has none down to all whose shares they were. Names and operations
//!   that are not all the same make it a failure, which travels like a result; each gets it under the name that it has used.
//! - collective.4: a child that has gone contributes a failure as soon as another has contributed. Who waits for a parent that has gone
//!   has a failure. An engine that is given up, or configured anew, gives its children a failure, and its parent too.
//! - collective.5: the result's first word is cleared when the contribution is posted, and written when the others are there.

use std::sync::{Arc, Weak};

use gasworks_gni_sys::*;

use super::datagram::Who;
use super::endpoint::{Endpoint, Route};
use super::flight::{Cargo, Flight, Origin};
use super::{Cq, Nic};
use crate::entry::Status;
use crate::handle::Handle;
use crate::letter::{Body, Letter};
use crate::memory::{Arena, Memory};
use crate::post::{Action, Post, Way, Wishes};
use crate::reduction::{self, Part, Rounding, Seat, Share, control};
use crate::station::{Station, Want};

const ROUNDINGS: u32 =
    GNI_CE_MODE_ROUND_UP | GNI_CE_MODE_ROUND_DOWN | GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_ROUND_ZERO;
const EVENTS: u32 = GNI_CE_MODE_CQE_ONCOMP | GNI_CE_MODE_CQE_ONERR;
const ROUTINGS: u32 =
    GNI_CE_MODE_RC_NMIN_HASH | GNI_CE_MODE_RC_MIN_HASH | GNI_CE_MODE_RC_MNON_HASH | GNI_CE_MODE_RC_ADAPT;

/// The lowest bits of an engine's name are its number, those above them its NIC's instance.
const NUMBER_BITS: u32 = 2;

/// In which direction a share goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// What an endpoint's client has said of its place in a tree.
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    /// The name of the engine at the other end, where that is one.
    engine: u32,
    child: u8,
    kind: gni_ce_child_t,
}

/// An edge of a tree, seen from one end.
struct Edge {
    /// The other end.
    who: Who,
    seat: Seat,
    below: Option<u8>,
    station: Option<Arc<dyn Station>>,
    /// Whether its instance is known, or was there at least.
    is_known: bool,
}

impl Edge {
    /// One to an engine.
    fn new(who: Who, seat: Seat, below: Option<u8>) -> Self {
        Self { who, seat, below, station: None, is_known: true }
    }

    /// One to a client at the lower end, of which the address alone is known.
    fn to_client(who: Who, seat: Seat) -> Self {
        Self { is_known: false, ..Self::new(who, seat, None) }
    }

    /// Whether this came over it.
    fn carries(&self, (address, _): Who, share: &Share) -> bool {
        (self.who.0, self.seat, self.below) == (address, share.seat, share.below)
    }

    /// The other end is this instance.
    fn leads_to(&mut self, who: Who) {
        // Another may have come in its place.
        if self.who != who || self.station.as_ref().is_some_and(|station| station.is_gone()) {
            self.station = None;
        }
        (self.who, self.is_known) = (who, true);
    }

    /// Whether nobody is at the other end. Of one that has gone this tells once, for another may come in its place.
    fn is_lost(&mut self, nic: &Nic) -> bool {
        let (address, instance) = self.who;
        let station = self.station.take().or_else(|| nic.0.fabric.find(address, instance));
        self.station = station.filter(|station| !station.is_gone());
        self.is_known |= self.station.is_some();
        self.is_known && self.station.is_none()
    }

    /// Sends a share over it; `false` if nobody is there.
    fn send(
        &mut self,
        (nic, unsent): (&Nic, &mut Unsent),
        direction: Direction,
        id: u64,
        part: Result<Part, Status>,
    ) -> bool {
        let lost = self.is_lost(nic);
        let Some(station) = self.station.as_ref().filter(|_| !lost) else { return false };
        let share = Share { seat: self.seat, below: self.below, id, part };
        let letter = nic.letter(match direction {
            Direction::Up => Body::Up(share),
            Direction::Down => Body::Down(share),
        });
        if !station.deliver(&letter) {
            unsent.push((Arc::clone(station), letter));
        }
        true
    }
}

/// Letters that were not taken in yet.
type Unsent = Vec<(Arc<dyn Station>, Letter)>;

/// The engines of a NIC, and what its client awaits of any.
#[derive(Default)]
pub(super) struct Engines {
    all: [Option<Node>; GNI_JOB_CTRL_ALL_CE_MASK.count_ones() as usize],
    waiting: Vec<Waiting>,
    unsent: Unsent,
}

/// An engine in its tree.
#[derive(Default)]
struct Node {
    /// In the order of their numbers; none before it is configured.
    children: Vec<Child>,
    parent: Option<Edge>,
    /// The name of the reduction that its parent has been given.
    passed: Option<u64>,
    rounding: Rounding,
    queue: Option<Weak<Cq>>,
    modes: u32,
}

struct Child {
    edge: Edge,
    given: Option<Given>,
    /// It is to have the result, under this name.
    owed: Option<u64>,
}

struct Given {
    /// `None` where it has gone.
    id: Option<u64>,
    part: Result<Part, Status>,
}

/// A contribution of the client's whose result has not come.
struct Waiting {
    edge: Edge,
    id: u64,
    part: Part,
    /// Where the result is to be.
    address: u64,
    handle: gni_mem_handle_t,
    sent: Sent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    NotYet,
    Yes,
    /// Nobody was there.
    InVain,
}

impl Node {
    /// collective.4, collective.3: takes note of who has gone, and does what can be done.
    fn go_on(&mut self, number: u8, nic: &Nic, unsent: &mut Unsent) {
        if self.passed.is_some() {
            if self.parent.as_mut().is_some_and(|parent| parent.is_lost(nic)) {
                self.finish(number, nic, unsent, Err(Status::Gone));
            }
            return;
        }
        if self.children.iter().all(|child| child.given.is_none()) {
            return;
        }
        for child in self.children.iter_mut().filter(|child| child.given.is_none()) {
            if child.edge.is_lost(nic) {
                child.given = Some(Given { id: None, part: Err(Status::Gone) });
            }
        }
        if self.children.iter().all(|child| child.given.is_some()) {
            self.combine(number, nic, unsent);
        }
    }

    fn combine(&mut self, number: u8, nic: &Nic, unsent: &mut Unsent) {
        let (mut id, mut all) = (None, None);
        for child in &mut self.children {
            let Some(given) = child.given.take() else { continue };
            let same = id.is_none() || given.id.is_none() || id == given.id;
            id = id.or(given.id);
            child.owed = given.id;
            let part = if same { given.part } else { given.part.and(Err(Status::Mismatch)) };
            all = Some(match all {
                None => part,
                Some(all) => Result::and_then(all, |all: Part| all.with(part?, self.rounding)),
            });
        }
        let (id, all) = (id.unwrap_or(0), all.unwrap_or(Err(Status::Gone)));
        self.passed = Some(id);
        let passed = self.parent.as_mut().map(|parent| parent.send((nic, unsent), Direction::Up, id, all));
        match passed {
            Some(true) => {}
            Some(false) => self.finish(number, nic, unsent, Err(Status::Gone)),
            None => self.finish(number, nic, unsent, all),
        }
    }

    /// Hands the result down.
    fn finish(&mut self, number: u8, nic: &Nic, unsent: &mut Unsent, part: Result<Part, Status>) {
        let Some(id) = self.passed.take() else { return };
        let wanted = self.modes & GNI_CE_MODE_CQE_ONCOMP != 0
            || self.modes & GNI_CE_MODE_CQE_ONERR != 0 && part.is_err();
        if let Some(queue) = self.queue.as_ref().and_then(Weak::upgrade).filter(|_| wanted) {
            let name = nic.engine_name(number);
            queue.tell_of_reduction(reduction::short_name(name), id, part.err().unwrap_or_default());
        }
        for child in &mut self.children {
            if let Some(owed) = child.owed.take() {
                child.edge.send((nic, unsent), Direction::Down, owed, part);
            }
        }
    }

    /// collective.4: it is not what it was any more. Its parent learns of that if it is waited for, or will be in vain.
    fn give_up(&mut self, number: u8, for_good: bool, nic: &Nic, unsent: &mut Unsent) {
        let mut busy = self.passed.is_some();
        if !busy {
            for child in &mut self.children {
                child.owed = child.given.take().and_then(|given| given.id);
                busy |= child.owed.is_some();
            }
            if let Some(parent) = self.parent.as_mut().filter(|_| busy || for_good) {
                parent.send((nic, unsent), Direction::Up, 0, Err(Status::Gone));
            }
        }
        if busy {
            self.passed.get_or_insert(0);
            self.finish(number, nic, unsent, Err(Status::Gone));
        }
    }
}

impl Engines {
    /// A contribution for one of these engines.
    fn take_up(&mut self, nic: &Nic, from: Who, share: Share) {
        let node = self.all.get_mut(usize::from(share.seat.engine)).and_then(Option::as_mut);
        let mut children = node.into_iter().flat_map(|node| &mut node.children);
        if let Some(child) = children.find(|child| child.edge.carries(from, &share)) {
            child.edge.leads_to(from);
            child.given = Some(Given { id: Some(share.id), part: share.part });
        } else {
            // collective.1: over an edge that is not here it is answered like one that cannot be reached.
            let mut stranger = Edge::new(from, share.seat, share.below);
            stranger.send((nic, &mut self.unsent), Direction::Down, share.id, Err(Status::Gone));
        }
    }

    /// A result, for one of these engines or for what the client waits for, which is given.
    fn take_down(&mut self, nic: &Nic, from: Who, share: Share) -> Option<Waiting> {
        let Some(below) = share.below else {
            let fits = |waiting: &Waiting| waiting.edge.carries(from, &share) && waiting.id == share.id;
            return self.waiting.iter().position(fits).map(|at| self.waiting.swap_remove(at));
        };
        let node = self.all.get_mut(usize::from(below)).and_then(Option::as_mut)?;
        let comes = node.parent.as_ref().is_some_and(|parent| parent.carries(from, &share));
        if comes && node.passed == Some(share.id) {
            node.finish(below, nic, &mut self.unsent, share.part);
        }
        None
    }
}

impl Nic {
    /// One of its collective engines (`GNI_CeCreate`).
    ///
    /// # Errors
    /// `GNI_RC_ILLEGAL_OP`: the chip has none. `GNI_RC_ERROR_RESOURCE`: all are taken.
    pub fn engine(&self) -> Result<Engine, gni_return_t> {
        let most = self.0.rules.chip.engines();
        if most == 0 {
            return Err(GNI_RC_ILLEGAL_OP);
        }
        // What has come by now is for an engine that was here before under that number.
        self.serve_letters();
        let mut engines = self.0.engines.lock();
        let free = (0..most).zip(&mut engines.all).find(|(_, node)| node.is_none());
        let (number, node) = free.ok_or(GNI_RC_ERROR_RESOURCE)?;
        *node = Some(Node::default());
        Ok(Engine { nic: self.clone(), number })
    }

    /// What has come for the engines and of them, and what follows; whether something has to wait before it is sent.
    pub(super) fn serve_engines(&self, shares: Vec<(Who, Direction, Share)>) -> bool {
        let mut results = Vec::new();
        let mut engines = self.0.engines.lock();
        let engines_now = &mut *engines;
        for (from, direction, share) in shares {
            match direction {
                Direction::Up => engines_now.take_up(self, from, share),
                Direction::Down => {
                    let taken = engines_now.take_down(self, from, share);
                    results.extend(taken.map(|waiting| (waiting, share.part)));
                }
            }
        }
        let Engines { all, waiting, unsent } = engines_now;
        for (number, node) in (0..).zip(all) {
            if let Some(node) = node {
                node.go_on(number, self, unsent);
            }
        }
        let lost = |waiting: &mut Waiting| match waiting.sent {
            Sent::NotYet => false,
            Sent::Yes => waiting.edge.is_lost(self),
            Sent::InVain => true,
        };
        results.extend(waiting.extract_if(.., lost).map(|waiting| (waiting, Err(Status::Gone))));
        unsent.retain(|(station, letter)| !station.is_gone() && !station.deliver(letter));
        let waits = !unsent.is_empty();
        drop(engines);
        results.into_iter().for_each(|(waiting, part)| self.hand_over(&waiting, part));
        waits
    }

    /// Puts a result where it is to be.
    fn hand_over(&self, waiting: &Waiting, part: Result<Part, Status>) {
        let Waiting { id, address, handle, .. } = *waiting;
        let numbers = part.map_or([0; 2], |part| part.numbers());
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        let kept = Arena::new(0, numbers.len());
        if kept.write(0, &bytes).is_err() {
            return;
        }
        // collective.5: the first word is the flag, which is written after the others.
        let post = Post {
            action: Action::PutWithFlag { address, value: control(id, &part) },
            wishes: Wishes::default(),
            local_address: address,
            local_handle: handle,
            remote_address: address + 8,
            remote_handle: Handle::open(&handle),
            length: kept.len(),
            delivery: GNI_DLVMODE_PERFORMANCE,
            fenced: false,
            way: Way::Fma,
            id,
        };
        let target: Arc<dyn Station> = self.0.home.clone();
        let to = (self.address(), self.instance());
        let route = Route { here: 0, there: 0, target: Some(target), to };
        self.take_on(Flight::new(self.clone(), post, None, route, None).carrying(Cargo::Result(kept)));
    }

    /// Sends what waits at a seat to the engine there.
    ///
    /// # Errors
    /// [`Status::Gone`]: nobody is there.
    pub(super) fn contribute(&self, who: Who, seat: Seat) -> Result<(), Status> {
        let mut engines = self.0.engines.lock();
        let Engines { waiting, unsent, .. } = &mut *engines;
        let here = |waiting: &&mut Waiting| (waiting.edge.who, waiting.edge.seat) == (who, seat);
        let waiting = waiting.iter_mut().find(here).ok_or(Status::Gone)?;
        let sent = waiting.edge.send((self, unsent), Direction::Up, waiting.id, Ok(waiting.part));
        waiting.sent = if sent { Sent::Yes } else { Sent::InVain };
        if sent { Ok(()) } else { Err(Status::Gone) }
    }

    /// After something was done to its engines: goes on with them.
    fn settle(&self) {
        if self.serve_letters() {
            self.0.fabric.wake();
        }
    }
}

/// A collective engine, until this is dropped (`GNI_CeDestroy`).
pub struct Engine {
    nic: Nic,
    number: u8,
}

impl Engine {
    /// Its number, of those of its NIC.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Its name, which no other engine at the NIC's address has (`GNI_CeGetId`).
    pub fn name(&self) -> u32 {
        self.nic.engine_name(self.number)
    }

    /// Puts it into a tree (`GNI_CeConfigure`): below the engine that `parent` leads to, or at the root; `queue` hears of it as
    /// `modes` say (`GNI_CE_MODE_*`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there are no children, or more than 32, or two with a number; an endpoint is another NIC's, not
    /// bound, or not said to be in a tree; a queue is missing, or another NIC's; or the modes contradict each other.
    pub fn configure(
        &self,
        children: &[&Endpoint],
        parent: Option<&Endpoint>,
        queue: Option<&Arc<Cq>>,
        modes: u32,
    ) -> Result<(), gni_return_t> {
        let nic = &self.nic;
        let one_of = |bits: u32| (modes & bits).count_ones() <= 1;
        let known = modes & !(ROUNDINGS | EVENTS | ROUTINGS) == 0;
        if !known || !one_of(ROUNDINGS) || !one_of(EVENTS) || !one_of(ROUTINGS) {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let foreign = queue.map_or(modes & EVENTS != 0, |queue| !queue.is_of(nic));
        if foreign || children.is_empty() || children.len() > GNI_CE_MAX_CHILDREN as usize {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let child = |endpoint: &&Endpoint| -> Result<Child, gni_return_t> {
            let (who, Attributes { engine, child, kind }) = endpoint.place(nic)?;
            let seat = Seat { engine: self.number, child };
            let edge = match kind {
                GNI_CE_CHILD_PE => Edge::to_client(who, seat),
                _ => {
                    let (instance, below) = nic.engine_of(engine)?;
                    Edge::new((who.0, instance), seat, Some(below))
                }
            };
            Ok(Child { edge, given: None, owed: None })
        };
        let mut children: Vec<Child> = children.iter().map(child).collect::<Result<_, _>>()?;
        children.sort_unstable_by_key(|child| child.edge.seat.child);
        if children.windows(2).any(|two| two[0].edge.seat == two[1].edge.seat) {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let parent = parent.map(|endpoint| match endpoint.place(nic)? {
            (who, Attributes { engine, child, kind: GNI_CE_CHILD_VCE }) => {
                let (instance, engine) = nic.engine_of(engine)?;
                Ok(Edge::new((who.0, instance), Seat { engine, child }, Some(self.number)))
            }
            _ => Err(GNI_RC_INVALID_PARAM),
        });
        let rounding = match modes & ROUNDINGS {
            GNI_CE_MODE_ROUND_UP => Rounding::Up,
            GNI_CE_MODE_ROUND_DOWN => Rounding::Down,
            GNI_CE_MODE_ROUND_ZERO => Rounding::Zero,
            _ => Rounding::Near,
        };
        let queue = queue.map(Arc::downgrade);
        let new = Node { children, parent: parent.transpose()?, passed: None, rounding, queue, modes };
        self.become_another(Some(new));
        Ok(())
    }

    fn become_another(&self, new: Option<Node>) {
        let mut engines = self.nic.0.engines.lock();
        let Engines { all, unsent, .. } = &mut *engines;
        let for_good = new.is_none();
        let old = all.get_mut(usize::from(self.number)).and_then(|node| std::mem::replace(node, new));
        if let Some(mut old) = old {
            old.give_up(self.number, for_good, &self.nic, unsent);
        }
        drop(engines);
        self.nic.settle();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.become_another(None);
    }
}

impl Nic {
    fn engine_name(&self, number: u8) -> u32 {
        self.instance() << NUMBER_BITS | u32::from(number)
    }

    /// The instance of an engine of this name, and its number there.
    fn engine_of(&self, name: u32) -> Result<(u32, u8), gni_return_t> {
        let (instance, number) = (name >> NUMBER_BITS, name as u8 & ((1 << NUMBER_BITS) - 1));
        let chip = self.0.rules.chip;
        let is_there = number < chip.engines() && u64::from(instance) >> chip.instance_bits() == 0;
        if is_there { Ok((instance, number)) } else { Err(GNI_RC_INVALID_PARAM) }
    }
}

impl Endpoint {
    /// Says what it is in a tree (`GNI_EpSetCeAttr`): of an engine it leads to a child, whose number is `child`, or to its
    /// parent, one of whose children it is; of a client to the engine that it contributes to. `engine` is the one at the other
    /// end, if that is one.
    ///
    /// # Errors
    /// `GNI_RC_ILLEGAL_OP`: the chip has no engines. `GNI_RC_INVALID_PARAM`: there is no such child, or kind.
    pub fn set_attributes(&self, engine: u32, child: u32, kind: gni_ce_child_t) -> Result<(), gni_return_t> {
        if self.nic.0.rules.chip.engines() == 0 {
            return Err(GNI_RC_ILLEGAL_OP);
        }
        let child = u8::try_from(child).ok().filter(|child| u32::from(*child) < GNI_CE_MAX_CHILDREN);
        let child = child.ok_or(GNI_RC_INVALID_PARAM)?;
        self.state.lock().attributes = match kind {
            GNI_CE_CHILD_UNUSED => None,
            GNI_CE_CHILD_VCE | GNI_CE_CHILD_PE => Some(Attributes { engine, child, kind }),
            _ => return Err(GNI_RC_INVALID_PARAM),
        };
        Ok(())
    }

    /// Where it leads to, and as what.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is another NIC's, not bound, or in no tree.
    fn place(&self, nic: &Nic) -> Result<(Who, Attributes), gni_return_t> {
        let state = self.state.lock();
        let who = state.peer.as_ref().map(|peer| (peer.address, peer.instance));
        let place = who.zip(state.attributes).filter(|_| self.nic.is(nic));
        place.ok_or(GNI_RC_INVALID_PARAM)
    }

    /// Contributes to a reduction.
    ///
    /// # Errors
    /// As [`post`](Self::post). `GNI_RC_INVALID_PARAM`: besides that, it is no client's endpoint in a tree.
    /// `GNI_RC_ERROR_RESOURCE`: besides that, the result of an earlier one has not come.
    pub(super) fn reduce(
        &self,
        post: &Post,
        (id, part): (u64, Part),
        route: Route,
        begin: impl FnOnce(u32) -> Result<Option<Origin>, gni_return_t>,
    ) -> Result<(), gni_return_t> {
        let nic = &self.nic;
        let (who, Attributes { engine, child, kind }) = self.place(nic)?;
        if kind != GNI_CE_CHILD_PE {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let (instance, engine) = nic.engine_of(engine)?;
        let (who, seat) = ((who.0, instance), Seat { engine, child });
        let mut engines = nic.0.engines.lock();
        // collective.2: a second contribution is refused while the first has no result.
        if engines.waiting.iter().any(|waiting| (waiting.edge.who, waiting.edge.seat) == (who, seat)) {
            return Err(GNI_RC_ERROR_RESOURCE);
        }
        let Post { local_address: address, local_handle: handle, length, .. } = *post;
        // collective.5: the first word of the result is cleared below.
        let result = nic.own(&handle, (address, length), Want::Write)?;
        // The client looks where the address says.
        if result.is_scattered() {
            return Err(GNI_RC_INVALID_PARAM);
        }
        result.write(0, &0u64.to_le_bytes()).map_err(|_| GNI_RC_INVALID_PARAM)?;
        drop(result);
        let origin = begin(route.here)?;
        let edge = Edge::new(who, seat, None);
        engines.waiting.push(Waiting { edge, id, part, address, handle, sent: Sent::NotYet });
        drop(engines);
        let flight = Flight::new(nic.clone(), *post, None, route, origin).carrying(Cargo::Seat(who, seat));
        nic.take_on(flight);
        nic.settle();
        Ok(())
    }
}
