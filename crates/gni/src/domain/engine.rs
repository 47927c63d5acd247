//! A collective engine of the NIC (Aries): this rank's node of a tree over ranks, and how the rank gives it something.
//!
//! Every rank of the tree has an engine. Its children are the rank itself, and the engines of the next ranks of the tree; the root has no
//! parent. What all give is combined on the way up, and the result comes down to all of them.

use super::{Domain, check};
use crate::error::GniError;
use gasworks_core::WordOp;
use gasworks_gni_sys::*;
use gasworks_sync::VolatileSlice;
use std::ptr::null_mut;

/// Bytes of a result, and what it begins at a multiple of.
pub(crate) const RESULT: usize = size_of::<gni_ce_result_t>();
const RESULT_ALIGNMENT: usize = 32;
/// Where its first number lies in it.
pub(crate) const FIRST: usize = 8;
/// Which child a rank is of its own engine; engines come behind it.
const OWN: u32 = 0;

/// What an engine is for. Each does one reduction at a time, and a barrier may be under way beside reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineOf {
    Barrier,
    Words,
}

/// The engines' command, on one number.
pub(super) fn command(op: WordOp) -> gni_ce_cmd_type_t {
    match op {
        WordOp::And => GNI_FMA_CE_AND,
        WordOp::Or => GNI_FMA_CE_OR,
        WordOp::Xor => GNI_FMA_CE_XOR,
        WordOp::Add => GNI_FMA_CE_IADD,
    }
}

/// Where a rank is in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// The ranks of the tree, each with the number of its engine, from the root.
    pub ranks: &'a [(u32, u32)],
    /// Which of them this one is.
    pub me: usize,
    /// Engines below each.
    pub radix: usize,
}

/// An edge: the rank at the other end, the number of its engine, and which child of the upper one the lower one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    rank: u32,
    engine: u32,
    child: u32,
}

impl Place<'_> {
    fn edge(&self, to: usize, child: usize) -> Edge {
        let (rank, engine) = self.ranks[to];
        Edge { rank, engine, child: child as u32 }
    }

    /// The edge to the one above.
    pub fn above(&self) -> Option<Edge> {
        let below = self.me.checked_sub(1)?;
        Some(self.edge(below / self.radix, 1 + below % self.radix))
    }

    /// The edges to those below.
    pub fn below(&self) -> impl Iterator<Item = Edge> {
        let first = self.me * self.radix + 1;
        let all = first..self.ranks.len().min(first + self.radix);
        all.map(move |to| self.edge(to, 1 + to - first))
    }
}

/// What uGNI has of an engine. The domain ends it.
pub(super) struct Engine {
    handle: gni_ce_handle_t,
    number: u32,
    /// By which this rank gives it something; then those to its neighbours.
    ends: Vec<gni_ep_handle_t>,
}

impl Engine {
    /// By which this rank gives it something, once it is in a tree.
    pub fn end(&self) -> Option<gni_ep_handle_t> {
        self.ends.first().copied()
    }
}

/// A function that libraries for Gemini do not have.
fn there<F>(call: &'static str, function: Option<F>) -> Result<F, GniError> {
    function.ok_or(GniError::Missing { call })
}

impl Domain {
    /// Takes one of the NIC's engines for this, and tells its number.
    ///
    /// # Errors
    /// [`GniError::Missing`], [`GniError::Call`]: there is none, or none is left.
    pub fn take_engine(&mut self, of: EngineOf) -> Result<u32, GniError> {
        let create = there("GNI_CeCreate", self.ugni.GNI_CeCreate)?;
        let number_of = there("GNI_CeGetId", self.ugni.GNI_CeGetId)?;
        there("GNI_CeCheckResult", self.ugni.GNI_CeCheckResult)?;
        let (mut handle, mut number) = (null_mut(), 0);
        // SAFETY: domain.1: `self.nic` is attached. domain.2: the handle is written to `handle`, of this call.
        check("GNI_CeCreate", unsafe { create(self.nic, &raw mut handle) })?;
        // From here on `drop` gives it back.
        let engine = self.engines[of as usize].insert(Engine { handle, number: 0, ends: Vec::new() });
        // SAFETY: domain.1: `handle` was made just now. domain.2: its number is written to `number`, of this call.
        check("GNI_CeGetId", unsafe { number_of(handle, &raw mut number) })?;
        engine.number = number;
        Ok(number)
    }

    /// Puts an engine into a tree. Nothing is given before all ranks of the tree have done so.
    ///
    /// # Errors
    /// [`GniError::Missing`], [`GniError::Call`].
    pub fn join_tree(&mut self, of: EngineOf, place: &Place<'_>) -> Result<(), GniError> {
        let configure = there("GNI_CeConfigure", self.ugni.GNI_CeConfigure)?;
        let Some(&Engine { handle, number, .. }) = self.engines[of as usize].as_ref() else { return Ok(()) };
        let own = Edge { rank: place.ranks[place.me].0, engine: number, child: OWN };
        let end = self.end_in_tree(of, own, GNI_CE_CHILD_PE)?;
        let mut children = vec![end];
        for edge in place.below() {
            children.push(self.end_in_tree(of, edge, GNI_CE_CHILD_VCE)?);
        }
        let parent = place.above().map(|edge| self.end_in_tree(of, edge, GNI_CE_CHILD_VCE)).transpose()?;
        let (parent, count) = (parent.unwrap_or(null_mut()), children.len() as u32);
        // A failure is in the result, so no queue need hear of it.
        let modes = GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_RC_ADAPT;
        // SAFETY: domain.1: engine and endpoints are the domain's. domain.2: `children` has `count` of them, and outlives the call.
        check("GNI_CeConfigure", unsafe {
            configure(handle, children.as_mut_ptr(), count, parent, null_mut(), modes)
        })
    }

    /// An endpoint at one end of an edge.
    fn end_in_tree(
        &mut self,
        of: EngineOf,
        edge: Edge,
        kind: gni_ce_child_t,
    ) -> Result<gni_ep_handle_t, GniError> {
        let attribute = there("GNI_EpSetCeAttr", self.ugni.GNI_EpSetCeAttr)?;
        let Edge { rank, engine, child } = edge;
        let address = self.addresses.get(rank as usize).copied().unwrap_or_default();
        let mut end = null_mut();
        // SAFETY: domain.1: NIC and source queue are the domain's. domain.2: the handle is written to `end`, of this call.
        check("GNI_EpCreate", unsafe { (self.ugni.GNI_EpCreate)(self.nic, self.source, &raw mut end) })?;
        self.engines[of as usize].iter_mut().for_each(|engine| engine.ends.push(end));
        // SAFETY: domain.1: `end` was made just now, and is bound for the first time.
        check("GNI_EpBind", unsafe { (self.ugni.GNI_EpBind)(end, address, rank) })?;
        // SAFETY: domain.1: `end` was made and bound just now; all else that the call is given are numbers.
        check("GNI_EpSetCeAttr", unsafe { attribute(end, engine, child, kind) })?;
        Ok(end)
    }

    /// The result at the start of these bytes: `None` until it is there.
    ///
    /// # Errors
    /// The reduction failed: the code.
    pub(super) fn result_at(&mut self, place: VolatileSlice<'_>) -> Option<Result<(), gni_return_t>> {
        let look = self.ugni.GNI_CeCheckResult?;
        let fits = place.len() >= RESULT && place.as_ptr().addr().is_multiple_of(RESULT_ALIGNMENT);
        assert!(fits, "no place for a result");
        // SAFETY: `place` is borrowed, so its bytes stay mapped for the call; it has `RESULT` of them, aligned, as was checked.
        match unsafe { look(place.as_ptr().cast(), RESULT as u32) } {
            GNI_RC_SUCCESS => Some(Ok(())),
            GNI_RC_NOT_DONE => None,
            code => Some(Err(code)),
        }
    }

    /// Gives one of the engines back, if there is such.
    pub fn give_back_engine(&mut self, of: EngineOf) {
        let engine = self.engines[of as usize].take();
        engine.into_iter().for_each(|engine| self.end_engine(engine));
    }

    /// Gives the engines back.
    pub(super) fn end_engines(&mut self) {
        let engines = std::mem::take(&mut self.engines);
        engines.into_iter().flatten().for_each(|engine| self.end_engine(engine));
    }

    /// Gives one back, which the domain has no more.
    fn end_engine(&mut self, Engine { handle, ends, .. }: Engine) {
        if let Some(destroy) = self.ugni.GNI_CeDestroy {
            // SAFETY: domain.1: `handle` is not in the domain any more, so it is destroyed once, and not used again.
            unsafe { destroy(handle) };
        }
        ends.into_iter().for_each(|end| self.end_endpoint(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// Each edge is the same from both its ends, and leads to the root in the end.
        #[test]
        fn ranks_are_in_one_tree(count in 1usize..70, radix in 1usize..32) {
            let ranks: Vec<_> = (0..count as u32).map(|at| (10 * at, 100 + at)).collect();
            let place = |me| Place { ranks: &ranks, me, radix };
            for me in 0..count {
                let below: Vec<_> = place(me).below().collect();
                prop_assert!(below.len() <= radix);
                for (number, edge) in (1..).zip(&below) {
                    let to = edge.rank as usize / 10;
                    prop_assert!(to > me && edge.child == number && edge.engine == ranks[to].1);
                    let above = place(to).above();
                    prop_assert_eq!(above, Some(Edge { rank: ranks[me].0, engine: ranks[me].1, child: number }));
                }
                let above = place(me).above();
                prop_assert_eq!(above.is_none(), me == 0);
                if let Some(edge) = above {
                    let (mine, there) = (ranks[me].0, edge.rank as usize / 10);
                    prop_assert_eq!(place(there).below().filter(|below| below.rank == mine).count(), 1);
                }
            }
        }
    }
}
