//! Endpoints beyond the first, and segments for them: made by one rank, and made known to the others by
//! [`publish`]. The ranks' endpoints of one number are a region of the job then, of which each rank gives the bytes of its segment.
//!
//! # Invariants
//! As in the crate.
//! - endpoint.1: the bytes of a segment that C gives stay mapped, readable and writable as long as it is bound, and an endpoint never lets go of one.

use crate::codes::refused;
use crate::collective::agree;
use crate::face::{Face, FaceMode, fail};
use crate::job::give;
use crate::kind;
use crate::known::{Created, Endpoints, Publication};
use crate::layout::{Client, ERR_BAD_ARG, ERR_RESOURCE, Endpoint, Flags, Kind, OK, PAIRS, Segment, Team};
use crate::talk::may_talk;
use gasworks::Part;
use gasworks_core::{Error, Members};
use gasworks_extended::team;
use gasworks_memory::{MemoryError, RegionHandle, Row};
use gasworks_sync::Lock;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// `GEX_EP_CAPABILITY_RMA`, and all that needs messages or teams, which are the first endpoint's.
const RMA: c_uint = 1 << 0;
const AM: c_uint = 1 << 1;
const COLL: c_uint = 1 << 3;

/// `gex_EP_Create`.
///
/// # Safety
/// capi.1.
pub unsafe fn create<M: FaceMode>(
    place: *mut *mut Endpoint,
    client: *mut Client,
    capabilities: c_uint,
    flags: Flags,
) -> c_int {
    const CALL: &str = "gex_EP_Create";
    let face = M::slot().of(CALL);
    if client != face.client || place.is_null() {
        return refused(CALL, "there is no such client, or no place for the endpoint", ERR_BAD_ARG);
    }
    if capabilities & RMA == 0 || capabilities & (AM | COLL) != 0 {
        let what = format!(
            "capabilities {capabilities:#x}: an endpoint beyond the first is for RMA, which messages and collectives are not"
        );
        return refused(CALL, what, ERR_BAD_ARG);
    }
    let made = face.endpoints.with(|endpoints| {
        let number = endpoints.own.len();
        if number == PAIRS {
            return None;
        }
        let kind = Kind::Endpoint as u32;
        let (cdata, segment, pairs) = (std::ptr::null(), std::ptr::null_mut(), std::ptr::null_mut());
        let endpoint = Endpoint { cdata, kind, flags, client, segment, index: number as u16, pairs };
        let endpoint = Box::into_raw(Box::new(endpoint));
        // SAFETY: capi.2: the first endpoint's pairs stay; what is written of them is written under this lock.
        let mut pairs = unsafe { std::slice::from_raw_parts(face.pairs, PAIRS + 1) }.to_vec();
        pairs.iter_mut().for_each(|pair| pair.ep = endpoint);
        // SAFETY: capi.2: `endpoint` was made above and is never freed, and nobody else knows it yet.
        unsafe { (*endpoint).pairs = Box::leak(pairs.into_boxed_slice()).as_mut_ptr() };
        endpoints.own.push(endpoint);
        Some(endpoint)
    });
    let Some(endpoint) = made else {
        return refused(CALL, format!("there are {PAIRS} endpoints, the most that a rank has"), ERR_RESOURCE);
    };
    // SAFETY: capi.1: `place` is not null, so it is C's room for a handle.
    unsafe { give(place, endpoint) };
    OK
}

/// `gex_Segment_Create`: of memory that C gives, or without an address of the library's.
///
/// # Safety
/// capi.1; endpoint.1.
pub unsafe fn create_segment<M: FaceMode>(
    place: *mut *mut Segment,
    client: *mut Client,
    address: *mut c_void,
    size: usize,
    of: *const c_void,
    flags: Flags,
) -> c_int {
    const CALL: &str = "gex_Segment_Create";
    let face = M::slot().of(CALL);
    if client != face.client || place.is_null() {
        return refused(CALL, "there is no such client, or no place for the segment", ERR_BAD_ARG);
    }
    if !kind::is_host(of) {
        return refused(CALL, format!("{of:p} is no kind of memory: GEX_MK_HOST is"), ERR_BAD_ARG);
    }
    if size == 0 || address.addr().checked_add(size).is_none() {
        return refused(CALL, format!("{size} bytes at {address:p} are no segment"), ERR_BAD_ARG);
    }
    let mapping = match address.is_null() {
        false => None,
        true => match memmap2::MmapMut::map_anon(size) {
            Ok(mapping) => Some(mapping),
            Err(error) => return refused(CALL, format!("{size} bytes: {error}"), ERR_RESOURCE),
        },
    };
    let address = mapping.as_ref().map_or(address, |mapping| mapping.as_ptr().cast_mut().cast());
    let (cdata, kind) = (std::ptr::null(), Kind::Segment as u32);
    let segment = Box::into_raw(Box::new(Segment { cdata, kind, flags, client, address, size }));
    let created = Created { _mapping: mapping, bound: None };
    face.endpoints.with(|endpoints| endpoints.segments.insert(segment.addr(), created));
    // SAFETY: capi.1: `place` is not null, so it is C's room for a handle.
    unsafe { give(place, segment) };
    OK
}

/// `gex_Segment_Destroy`.
pub fn destroy_segment<M: FaceMode>(segment: *mut Segment) {
    const CALL: &str = "gex_Segment_Destroy";
    let face = M::slot().of(CALL);
    if segment == face.segment {
        fail(CALL, "the segment that was attached stays as long as the job");
    }
    face.endpoints.with(|endpoints| match endpoints.segments.get(&segment.addr()) {
        None => fail(CALL, format!("{segment:p} is no segment")),
        Some(&Created { bound: Some(number), .. }) => {
            fail(CALL, format!("{segment:p} is bound to endpoint {number}"))
        }
        Some(_) => {
            endpoints.segments.remove(&segment.addr());
            endpoints.gone.put(segment);
        }
    });
}

/// `gex_EP_BindSegment`.
///
/// # Safety
/// capi.1.
pub unsafe fn bind<M: FaceMode>(endpoint: *mut Endpoint, segment: *mut Segment) -> c_int {
    const CALL: &str = "gex_EP_BindSegment";
    let face = M::slot().of(CALL);
    let bound = face.endpoints.with(|endpoints| {
        let number = match endpoints.number(endpoint) {
            Some(0) => return Err("the first endpoint's segment is attached (gex_Segment_Attach)".into()),
            Some(number) => number,
            None => return Err(format!("{endpoint:p} is no endpoint of this rank")),
        };
        let endpoint = endpoints.own[number];
        // SAFETY: capi.2: endpoints stay; this field is written under this lock alone.
        if unsafe { !(*endpoint).segment.is_null() } {
            return Err(format!("endpoint {number} has a segment, which it keeps"));
        }
        match endpoints.segments.get_mut(&segment.addr()) {
            None => Err(format!("{segment:p} is no segment that was created")),
            Some(Created { bound: Some(other), .. }) => {
                Err(format!("the segment is bound to endpoint {other}, and to one alone"))
            }
            Some(created) => {
                created.bound = Some(number);
                // SAFETY: capi.2: the endpoint stays. C reads the field where it knows that this call has ended.
                unsafe { (&raw mut (*endpoint).segment).write(segment) };
                Ok(())
            }
        }
    });
    bound.map_or_else(|what: String| refused(CALL, what, ERR_BAD_ARG), |()| OK)
}

/// `gex_EP_PublishBoundSegment`: makes endpoints known to all members of a team, with what is bound to them. That of the first everybody knows since it was
/// attached. Collective.
///
/// # Safety
/// capi.1.
pub unsafe fn publish<M: FaceMode>(team: *const Team, list: *const *const Endpoint, count: usize) -> c_int {
    const CALL: &str = "gex_EP_PublishBoundSegment";
    let face = M::slot().of(CALL);
    if face.find(team).is_none() {
        return refused(CALL, format!("{team:p} is no team"), ERR_BAD_ARG);
    }
    may_talk::<M>(CALL);
    let known = face.team(CALL, team);
    let members = known.members();
    let asked: Result<u64, String> = match count > 0 && list.is_null() {
        true => Err(format!("{count} endpoints at no address")),
        false => (0..count).try_fold(0, |asked, at| {
            // SAFETY: capi.1: `list` is not null, and C has as many endpoints there.
            let endpoint = unsafe { list.add(at).read() };
            Ok(asked | face.asks(members, endpoint)?)
        }),
    };
    // What is wrong here all members know, so that none waits for this one. The first endpoint's bit is free for that. Nobody is through before all have come.
    let all = agree(CALL, face, &known.team, *asked.as_ref().unwrap_or(&WRONG));
    let asked = match asked {
        Ok(_) if all & WRONG != 0 => {
            return refused(CALL, "another rank was given something wrong", ERR_BAD_ARG);
        }
        Ok(asked) => asked,
        Err(what) => return refused(CALL, what, ERR_BAD_ARG),
    };
    for number in (0..PAIRS).filter(|number| all >> number & 1 != 0) {
        if let Err(error) = face.publish_one(&known.team, number, asked >> number & 1 != 0) {
            return refused(CALL, format!("endpoint {number}: {error}"), ERR_RESOURCE);
        }
    }
    OK
}

/// The bit of a rank that was given something wrong.
const WRONG: u64 = 1;

impl<M: FaceMode> Face<M> {
    /// The bit of an endpoint that is to be published, if these members do not all know it yet: what is published stays so. Or what is wrong with it.
    fn asks(&self, members: &Members, endpoint: *const Endpoint) -> Result<u64, String> {
        let number = self.endpoints.with(|endpoints| endpoints.number(endpoint));
        let number = number.ok_or_else(|| format!("{endpoint:p} is no endpoint of this rank"))?;
        // SAFETY: capi.2: endpoints stay; C binds a segment before it publishes.
        if number > 0 && unsafe { (*endpoint).segment.is_null() } {
            return Err(format!("endpoint {number} has no segment"));
        }
        let is_known = |endpoints: &mut Endpoints| {
            let published = endpoints.published.get(number).map_or(&[][..], Vec::as_slice);
            published.iter().any(|publication| publication.tells(members))
        };
        let is_new = number > 0 && !self.endpoints.with(is_known);
        Ok(u64::from(is_new) << number)
    }

    /// Makes the members' endpoints of a number a region, of which this rank gives its segment, if it takes part.
    fn publish_one(
        &'static self,
        team: &Arc<team::Team>,
        number: usize,
        takes_part: bool,
    ) -> Result<(), gasworks::Error> {
        let part = if takes_part {
            self.endpoints.with(|endpoints| part_of(endpoints, number))
        } else {
            Part::new(0)
        };
        let region = self.job.create_region_among(team, part)?;
        let id = region.handle(0).id;
        let peers = self.engine().peers();
        let gone = || {
            let region = RegionHandle { owner: self.job.rank(), id };
            Error::Memory { during: "publish an endpoint", cause: MemoryError::NoSuchRegion { region } }
        };
        let rows = peers.rows_in(id).ok_or_else(gone)?;
        self.endpoints.with(|endpoints| {
            let published = &mut endpoints.published[number];
            published.push(Publication { region: id, members: team.members().clone(), has_own: takes_part });
            if published.len() > 1 {
                // Another thread may use the rows of the first publication: what is more than those have is the library's.
                return;
            }
            for &own in &endpoints.own {
                // SAFETY: capi.2: endpoints and their pairs stay; nobody uses pairs with this number before it is published.
                unsafe {
                    let pair = (*own).pairs.add(number);
                    (&raw mut (*pair).rows).write(rows.as_ptr());
                    (&raw mut (*pair).pitch).write(size_of::<Row>() as isize);
                    (&raw mut (*pair).size).write(peers.ranks());
                }
            }
        });
        Ok(())
    }
}

/// The bytes that are bound to an endpoint.
fn part_of(endpoints: &Endpoints, number: usize) -> Part {
    // SAFETY: capi.2: endpoints stay, and so do segments that are bound to them.
    let (address, size) = unsafe {
        let segment = (*endpoints.own[number]).segment;
        ((*segment).address, (*segment).size)
    };
    // SAFETY: endpoint.1: C leaves the bytes there, and uses them beside the ranks as it does those of any segment.
    unsafe { Part::at(address.cast(), size) }
}
