//! Machines of collectives that are over, and are used again: so a collective that is begun again and again, or a barrier, allocates no other one.

use gasworks_sync::{Lock, Mode, Par};
use std::any::Any;
use std::sync::Arc;

/// How many are kept, of whatever type: more than are usually under way at once.
const MAX_KEPT: usize = 32;

/// Those that are over, and those that run, which are told by that somebody else has them too.
#[derive(Default)]
pub(super) struct Reused(<Par as Mode>::Lock<Vec<Arc<dyn Any + Send + Sync>>>);

impl Reused {
    /// One of that type that is over, which nobody else has.
    pub fn take<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let taken = self.0.with(|kept| {
            let at = kept.iter().position(|one| one.is::<T>() && is_over(one))?;
            Some(kept.swap_remove(at))
        });
        taken?.downcast().ok()
    }

    /// Keeps one that is in use, for when it is over.
    pub fn keep<T: Any + Send + Sync>(&self, one: &Arc<T>) {
        let left = self.0.with(|kept| match kept.len() < MAX_KEPT {
            true => {
                kept.push(one.clone());
                None
            }
            false => kept.iter_mut().find(|one| is_over(one)).map(|old| std::mem::replace(old, one.clone())),
        });
        drop(left);
    }

    /// Keeps none of them any more.
    pub fn clear(&self) {
        drop(self.0.with(std::mem::take));
    }
}

fn is_over(one: &Arc<dyn Any + Send + Sync>) -> bool {
    Arc::strong_count(one) == 1
}

impl std::fmt::Debug for Reused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} machines", self.0.with(|kept| kept.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_over_is_used_again_and_no_other() {
        let reused = Reused::default();
        assert!(reused.take::<u32>().is_none());
        let first = Arc::new(1u32);
        reused.keep(&first);
        assert!(reused.take::<u32>().is_none(), "it is in use");
        let place = Arc::as_ptr(&first);
        drop(first);
        assert!(reused.take::<u64>().is_none(), "of another type");
        let again = reused.take::<u32>().expect("it is over");
        assert_eq!(Arc::as_ptr(&again), place);
        assert!(reused.take::<u32>().is_none(), "it is taken");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let reused = Reused::default();
        let all: Vec<_> = (0..MAX_KEPT + 5).map(Arc::new).collect();
        all.iter().for_each(|one| reused.keep(one));
        assert_eq!(format!("{reused:?}"), format!("{MAX_KEPT} machines"));
        assert_eq!(Arc::strong_count(&all[MAX_KEPT]), 1, "there was no room");
        // One that is over makes room for one of another type.
        drop(all);
        reused.keep(&Arc::new("other"));
        assert!(reused.take::<&str>().is_some());
        reused.clear();
        assert!(reused.take::<usize>().is_none());
    }
}
