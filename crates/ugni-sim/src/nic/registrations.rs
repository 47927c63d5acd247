//! The registrations of a NIC, as its client makes and ends them.
//!
//! A block of descriptors may be set apart: those in it are named by their place in the block, which ranks agree on, so that one who
//! has a handle of such a registration makes that of a peer's by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_os::maps::InFile;

use super::{Cq, Nic, mix};
use crate::handle::{Flags, Handle, MOST_ENTROPY, ORDERED};
use crate::shares::Files;
use crate::station::{Shown, There, Want, enter, handle_of};
use crate::table::Place;

/// How often somebody who wants to close a registration looks whether its visitors have left: far longer than any of them
/// stays, unless it is stopped or dead.
const LOOKS: u64 = 1 << 20;

/// Which descriptors are used.
pub(super) struct Descriptors {
    free: BTreeSet<u16>,
    /// What is registered, with the handles that say so.
    live: BTreeMap<u16, (Place, gni_mem_handle_t)>,
    /// The files in which some of it lies, by descriptors, as others are told of them.
    files: Files,
    kept: BTreeMap<u16, Arc<OwnedFd>>,
    /// The descriptors of the pieces of what is in several.
    pieces: BTreeMap<u16, Vec<u16>>,
    /// Set apart for those that are named by their place in it.
    block: Range<u16>,
    /// Tells handles apart that have the same descriptor one after the other.
    entropy: u16,
    /// The first that is given out. The NICs of a node start at different ones, so that a handle of one's is hardly another's too.
    start: u16,
}

impl Descriptors {
    /// `count` of them, of the NIC of an instance.
    pub(super) fn new(count: u16, instance: u32) -> Self {
        let (live, files, kept, pieces) = Default::default();
        let start = (mix(instance.into()) % u64::from(count.max(1))) as u16;
        Self { free: (0..count).collect(), live, files, kept, pieces, block: 0..0, entropy: 0, start }
    }

    /// Those that are free and not set apart, in the order in which they are given out.
    fn others(&self) -> impl Iterator<Item = u16> {
        let all = self.free.range(self.start..).chain(self.free.range(..self.start));
        all.copied().filter(|free| !self.block.contains(free))
    }

    /// What is registered.
    pub(super) fn live(&self) -> impl Iterator<Item = &(Place, gni_mem_handle_t)> {
        self.live.values()
    }

    /// A free one: that of a place in the block, or any other.
    fn find(&self, place: Option<u32>) -> Result<u16, gni_return_t> {
        let Some(place) = place else {
            return self.others().next().ok_or(GNI_RC_ERROR_RESOURCE);
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let descriptor = self.block.clone().nth(place);
        descriptor.filter(|descriptor| self.free.contains(descriptor)).ok_or(GNI_RC_INVALID_PARAM)
    }
}

impl Descriptors {
    /// So many more free ones.
    fn find_others(&self, taken: u16, count: usize) -> Result<Vec<u16>, gni_return_t> {
        let others: Vec<u16> = self.others().filter(|free| *free != taken).take(count).collect();
        if others.len() == count { Ok(others) } else { Err(GNI_RC_ERROR_RESOURCE) }
    }
}

/// Bytes that a client registers.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The address of the first.
    pub first: u64,
    /// How many there are.
    pub len: u64,
    /// In which memory file they lie, where that is known; others may reach them there.
    pub lies: Option<InFile>,
}

impl From<(u64, u64)> for Bytes {
    fn from((first, len): (u64, u64)) -> Self {
        Self { first, len, lies: None }
    }
}

/// What is to be registered.
enum What<'a> {
    Bytes(Bytes),
    Pieces(&'a [(u64, u64)]),
}

impl<'a> What<'a> {
    /// Where its addresses begin, and how many bytes there are; `None`: there cannot be such memory.
    fn range(&self) -> Option<(u64, u64)> {
        let can_be = |&(first, len): &(u64, u64)| len > 0 && first.checked_add(len).is_some();
        match self {
            Self::Bytes(bytes) => Some((bytes.first, bytes.len)).filter(can_be),
            Self::Pieces(pieces) => {
                let all = pieces.iter().try_fold(0u64, |all, piece| all.checked_add(piece.1))?;
                (!pieces.is_empty() && pieces.iter().all(can_be)).then_some((0, all))
            }
        }
    }

    fn pieces(&self) -> &'a [(u64, u64)] {
        match self {
            Self::Bytes(_) => &[],
            Self::Pieces(pieces) => pieces,
        }
    }
}

impl Nic {
    /// Registers bytes (`GNI_MemRegister`); `queue` is told of what comes there.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM` for no bytes, bytes beyond the end of all addresses, or a queue of endpoints;
    /// `GNI_RC_ERROR_RESOURCE` if there is no descriptor left.
    pub fn register(
        &self,
        bytes: impl Into<Bytes>,
        queue: Option<&Arc<Cq>>,
        flags: u32,
    ) -> Result<gni_mem_handle_t, gni_return_t> {
        self.register_at(None, What::Bytes(bytes.into()), queue, flags)
    }

    /// The same at a place of the block that was set apart (`GNI_MEM_USE_VMDH`).
    ///
    /// # Errors
    /// As [`register`](Self::register). `GNI_RC_INVALID_PARAM`: there is no such place, or something is registered there.
    pub fn register_virtually(
        &self,
        place: u32,
        bytes: impl Into<Bytes>,
        queue: Option<&Arc<Cq>>,
        flags: u32,
    ) -> Result<gni_mem_handle_t, gni_return_t> {
        self.register_at(Some(place), What::Bytes(bytes.into()), queue, flags)
    }

    /// The same of several pieces, which are one memory whose addresses are counted from 0 on (`GNI_MemRegisterSegments`), at a
    /// place of the block if one is given. Each piece takes a descriptor too.
    ///
    /// # Errors
    /// As [`register`](Self::register), of each piece; `GNI_RC_INVALID_PARAM` without any.
    pub fn register_pieces(
        &self,
        place: Option<u32>,
        pieces: &[(u64, u64)],
        queue: Option<&Arc<Cq>>,
        flags: u32,
    ) -> Result<gni_mem_handle_t, gni_return_t> {
        self.register_at(place, What::Pieces(pieces), queue, flags)
    }

    fn register_at(
        &self,
        virtually: Option<u32>,
        what: What<'_>,
        queue: Option<&Arc<Cq>>,
        flags: u32,
    ) -> Result<gni_mem_handle_t, gni_return_t> {
        let (first, len) = what.range().ok_or(GNI_RC_INVALID_PARAM)?;
        let pieces = what.pieces();
        let mut descriptors = self.0.descriptors.lock();
        // Taken when nothing can be refused any more: a refusal decides nothing about the queue either.
        let descriptor = descriptors.find(virtually)?;
        let others = descriptors.find_others(descriptor, pieces.len())?;
        if let Some(queue) = queue {
            queue.become_destination()?;
        }
        descriptors.free.remove(&descriptor);
        others.iter().for_each(|other| _ = descriptors.free.remove(other));
        let shared = flags & GNI_MEM_MDD_SHARED != 0 || self.0.rules.modes & GNI_CDM_MODE_MDD_SHARED != 0;
        let shared = shared && flags & GNI_MEM_MDD_DEDICATED == 0;
        let mut attributes = Flags::MRT;
        if flags & GNI_MEM_READ_ONLY != 0 {
            attributes = attributes.and(Flags::READ_ONLY);
        }
        let is_ordered = flags & (GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH) != 0;
        let mut entropy = if is_ordered { ORDERED } else { 0 };
        if virtually.is_some() {
            // Nothing tells it from what was there before: a handle that a peer makes cannot know it.
            attributes = attributes.and(Flags::VMDH);
            entropy = 0;
        } else if shared {
            attributes = attributes.and(Flags::NEW_FORMAT);
            descriptors.entropy = (descriptors.entropy + 1) & MOST_ENTROPY;
            entropy |= descriptors.entropy;
        }
        let shown = match what {
            // With a strict NIC others are to find out whether it is mapped.
            What::Bytes(Bytes { lies: Some(lies), .. }) if !self.is_strict() => descriptors.files.show(lies),
            _ => None,
        };
        let place = Place {
            first,
            len,
            flags: attributes.0,
            entropy,
            queue: queue.map(|queue| queue.number()),
            next: others.first().copied(),
            lies: shown.as_ref().map(|(lies, _)| *lies),
        };
        for (at, &(first, len)) in pieces.iter().enumerate() {
            let next = others.get(at + 1).copied();
            let piece = Place { first, len, flags: attributes.0, next, ..Place::default() };
            self.0.home.open(others[at], &piece);
        }
        self.0.home.open(descriptor, &place);
        let named = virtually.map_or(descriptor, |_| descriptor - descriptors.block.start);
        let handle = handle_of(named, &place).seal();
        descriptors.live.insert(descriptor, (place, handle));
        descriptors.kept.extend(shown.map(|(_, file)| (descriptor, file)));
        if !others.is_empty() {
            descriptors.pieces.insert(descriptor, others);
        }
        self.begun(&handle);
        Ok(handle)
    }

    /// The client has mapped bytes of a registration, or others than were there (`GNI_MEM_UPDATE_REGION`). A registration says
    /// which addresses may be reached, and what is behind them is found each time; so nothing is to be done.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: they are not of a registration of this NIC's with this handle.
    pub fn update(&self, handle: &gni_mem_handle_t, bytes: (u64, u64)) -> Result<(), gni_return_t> {
        self.own(handle, bytes, Want::Read).map(drop)
    }

    /// Ends a registration (`GNI_MemDeregister`). When this returns nobody touches the memory any more.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is no handle of this NIC's.
    pub fn deregister(&self, handle: &gni_mem_handle_t) -> Result<(), gni_return_t> {
        let named = Handle::open(handle).map_err(|_| GNI_RC_INVALID_PARAM)?;
        let mut descriptors = self.0.descriptors.lock();
        // That it is this very one, and open.
        let very = There { handle: named, address: named.first(), len: 0 };
        let own = enter(&*self.0.home, very, Want::Read);
        drop(own.map_err(|_| {
            self.misused(handle);
            GNI_RC_INVALID_PARAM
        })?);
        let descriptor = self.0.home.window().descriptor(&named).ok_or(GNI_RC_INVALID_PARAM)?;
        // Who is in the first may be in the others, which end after it.
        let others = descriptors.pieces.remove(&descriptor).unwrap_or_default();
        for descriptor in [descriptor].into_iter().chain(others) {
            if self.close(descriptor, &mut descriptors) {
                descriptors.free.insert(descriptor);
            }
        }
        descriptors.live.remove(&descriptor);
        self.ended(handle);
        Ok(())
    }

    /// Ends all registrations.
    pub(super) fn deregister_all(&self) {
        let mut descriptors = self.0.descriptors.lock();
        let (live, pieces) = (std::mem::take(&mut descriptors.live), std::mem::take(&mut descriptors.pieces));
        for descriptor in live.into_keys().chain(pieces.into_values().flatten()) {
            let _ = self.close(descriptor, &mut descriptors);
        }
    }

    /// `false`: somebody is still inside, who may need its file too.
    fn close(&self, descriptor: u16, descriptors: &mut Descriptors) -> bool {
        let left = self.0.home.close(descriptor, LOOKS);
        if left && descriptors.kept.remove(&descriptor).is_some_and(|file| Arc::into_inner(file).is_some()) {
            self.0.home.window().end_file();
        }
        left
    }

    /// Sets `count` descriptors apart, for what is registered [at places](Self::register_virtually)
    /// (`GNI_SetMddResources`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM` for none; `GNI_RC_INVALID_STATE`: some are; `GNI_RC_ERROR_NOMEM`: so many are not free in a row.
    pub fn set_apart(&self, count: u32) -> Result<(), gni_return_t> {
        let mut descriptors = self.0.descriptors.lock();
        if count == 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        if !descriptors.block.is_empty() {
            return Err(GNI_RC_INVALID_STATE);
        }
        let all = self.0.home.descriptors();
        let last = u16::try_from(count).ok().and_then(|count| all.checked_sub(count));
        let last = last.ok_or(GNI_RC_ERROR_NOMEM)?;
        // From the end, where the others come last.
        let blocks = (0..=last).rev().map(|first| first..first + count as u16);
        let free =
            |block: &Range<u16>| block.clone().all(|descriptor| descriptors.free.contains(&descriptor));
        let block = blocks.into_iter().find(free).ok_or(GNI_RC_ERROR_NOMEM)?;
        self.0.home.window().set_apart(&block);
        descriptors.block = block;
        Ok(())
    }

    /// The registration after that of a handle, in the order of their descriptors, or the first: its handle, where it begins
    /// and how long it is (`GNI_MemQueryHndls`). The one before need not be there any more.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: it is no handle. `GNI_RC_NO_MATCH`: there is no other.
    pub fn registration_after(
        &self,
        handle: Option<&gni_mem_handle_t>,
    ) -> Result<(gni_mem_handle_t, u64, u64), gni_return_t> {
        let next = match handle {
            None => 0,
            Some(handle) => {
                let named = Handle::open(handle).map_err(|_| GNI_RC_INVALID_PARAM)?;
                1 + self.0.home.window().descriptor(&named).ok_or(GNI_RC_INVALID_PARAM)?
            }
        };
        let descriptors = self.0.descriptors.lock();
        let (_, (place, handle)) = descriptors.live.range(next..).next().ok_or(GNI_RC_NO_MATCH)?;
        Ok((*handle, place.first, place.len))
    }

    /// How many registrations there are, and how many of them share one memory descriptor of the chip's
    /// (`GNI_MEM_MDD_SHARED`).
    pub fn registrations(&self) -> (usize, usize) {
        let descriptors = self.0.descriptors.lock();
        let shares = |(place, _): &&(Place, gni_mem_handle_t)| Flags(place.flags).has(Flags::NEW_FORMAT);
        (descriptors.live.len(), descriptors.live().filter(shares).count())
    }
}

/// The handle of a peer's registration at a place of its block, made of one of the same kind (`GNI_RebuildMemHndl`).
///
/// # Errors
/// `GNI_RC_INVALID_PARAM`: it is no handle, or there is no such place. `GNI_RC_INVALID_STATE`: it names no place.
pub fn rebuilt(handle: &gni_mem_handle_t, place: u32) -> Result<gni_mem_handle_t, gni_return_t> {
    let named = Handle::open(handle).map_err(|_| GNI_RC_INVALID_PARAM)?;
    if !named.flags.has(Flags::VMDH) {
        return Err(GNI_RC_INVALID_STATE);
    }
    let descriptor = u16::try_from(place).ok().filter(|place| *place <= crate::handle::MOST_DESCRIPTOR);
    Ok(Handle { descriptor: descriptor.ok_or(GNI_RC_INVALID_PARAM)?, ..named }.seal())
}
