//! Chains: several transactions of a kind, posted at once, with one event that says that all are over.

use std::sync::Arc;

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use super::Endpoint;
use super::flight::{End, Flight, Origin};
use super::strict::joined;
use crate::entry::Status;
use crate::post::{Post, Way};

/// The most bytes of a chain.
pub const LONGEST_CHAIN: u64 = 1 << 30;
/// The same in a domain whose FMA windows are shared.
pub const LONGEST_SHARED_CHAIN: u64 = 1 << 20;

/// A link of a chain after the first, which is a whole descriptor.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    /// Where it is posted: what its `ep_hndl` names, if it names any.
    pub endpoint: Option<&'a Endpoint>,
    /// What is to be done.
    pub part: Part,
}

/// What a link says. The type of the first descriptor tells which of them `next_descr` leads to.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the types say it")]
pub enum Part {
    Put(gni_ct_put_post_descriptor_t),
    Get(gni_ct_get_post_descriptor_t),
    Atomic(gni_ct_amo_post_descriptor_t),
    CqWrite(gni_ct_cqw_post_descriptor_t),
}

impl Part {
    /// The descriptor that would do the same alone; `None` if it is not of the first one's kind.
    fn whole(&self, first: &gni_post_descriptor_t) -> Option<gni_post_descriptor_t> {
        let mut whole = *first;
        let kind = match self {
            Part::Put(part) => {
                whole.length = part.length;
                (whole.remote_addr, whole.remote_mem_hndl) = (part.remote_addr, part.remote_mem_hndl);
                whole.local_addr = part.local_addr;
                GNI_POST_FMA_PUT
            }
            Part::Get(part) => {
                whole.length = part.length;
                (whole.remote_addr, whole.remote_mem_hndl) = (part.remote_addr, part.remote_mem_hndl);
                (whole.local_addr, whole.local_mem_hndl) = (part.local_addr, part.local_mem_hndl);
                GNI_POST_FMA_GET
            }
            Part::Atomic(part) => {
                whole.length = part.length;
                (whole.remote_addr, whole.remote_mem_hndl) = (part.remote_addr, part.remote_mem_hndl);
                (whole.local_addr, whole.local_mem_hndl) = (part.local_addr, part.local_mem_hndl);
                whole.amo_cmd = part.amo_cmd;
                (whole.first_operand, whole.second_operand) = (part.first_operand, part.second_operand);
                GNI_POST_AMO
            }
            Part::CqWrite(part) => {
                (whole.remote_mem_hndl, whole.cqwrite_value) = (part.remote_mem_hndl, part.cqwrite_value);
                GNI_POST_CQWRITE
            }
        };
        (kind == first.r#type).then_some(whole)
    }
}

/// What the links of a chain have in common on their way.
pub(super) struct Chain(Mutex<(usize, End)>);

impl Chain {
    /// A link is over; how the chain ended if it was the last: as the first of its links that failed, if any did.
    pub(super) fn ended(&self, end: End) -> Option<End> {
        let (left, all) = &mut *self.0.lock();
        if all.status == Status::Ok {
            all.status = end.status;
        }
        all.remote_overrun |= end.remote_overrun;
        *left -= 1;
        (*left == 0).then_some(*all)
    }
}

impl Endpoint {
    /// Posts a chain (`GNI_CtPostFma` with [`Way::Fma`], `GNI_CtPostCqWrite` with [`Way::CqWrite`]): a descriptor, and the
    /// links that `next_descr` leads to from it on, which whoever can follow pointers gathers. They are asked for one by one,
    /// and no more of them once the chain is too long.
    ///
    /// Routing, events, token and name are the first descriptor's. Each link is a transaction like others, so they overtake
    /// each other, and each may have an event at its target; the poster has one, in the queue of this endpoint, when all are
    /// over. Nothing is done if one of them is refused.
    ///
    /// # Errors
    /// As [`post`](Self::post). `GNI_RC_INVALID_PARAM`: besides that, a link has no endpoint or another NIC's, is of another
    /// kind, or of one that cannot be chained. `GNI_RC_SIZE_ERROR`: there are more than [`LONGEST_CHAIN`] bytes in all, or
    /// [`LONGEST_SHARED_CHAIN`].
    pub fn post_chain<'a>(
        &'a self,
        first: &gni_post_descriptor_t,
        links: impl IntoIterator<Item = Link<'a>>,
        way: Way,
        token: u64,
    ) -> Result<(), gni_return_t> {
        self.check_sources();
        let rules = &self.nic.0.rules;
        let can_be_chained = matches!(
            (way, first.r#type),
            (Way::Fma, GNI_POST_FMA_PUT | GNI_POST_FMA_GET | GNI_POST_AMO) | (Way::CqWrite, GNI_POST_CQWRITE)
        );
        if !can_be_chained || first.dlvr_mode & GNI_DLVMODE_ORDERED_TAIL != 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let most =
            if rules.modes & GNI_CDM_MODE_FMA_SHARED != 0 { LONGEST_SHARED_CHAIN } else { LONGEST_CHAIN };
        let (mut posts, mut bytes) = (Vec::new(), 0u64);
        let whole = links.into_iter().map(|link| Some((link.endpoint?, link.part.whole(first)?)));
        for link in std::iter::once(Some((self, *first))).chain(whole) {
            let (endpoint, descriptor) = link.ok_or(GNI_RC_INVALID_PARAM)?;
            if !endpoint.nic.is(&self.nic) {
                return Err(GNI_RC_INVALID_PARAM);
            }
            let post = Post::read(&descriptor, way, rules);
            let post = post.map_err(|code| self.nic.refused(code, &descriptor))?;
            bytes = bytes.saturating_add(post.length);
            if bytes > most {
                return Err(GNI_RC_SIZE_ERROR);
            }
            posts.push((post, endpoint.check_memory(&post)?, endpoint.route()?));
        }
        let (head, _, route) = &posts[0];
        let watched = joined(posts.iter().map(|(post, ..)| self.nic.watch_source(post)));
        let origin = self.origin(head, token, (route.here, watched), None)?;
        let chain = Arc::new(Chain(Mutex::new((posts.len(), End::default()))));
        for (post, registered, route) in posts {
            let origin =
                origin.as_ref().map(|origin| Origin { chain: Some(chain.clone()), ..origin.clone() });
            let flight = Flight::new(self.nic.clone(), post, registered, route, origin);
            self.nic.take_on(flight);
        }
        Ok(())
    }
}
