//! Machines of collectives that are over, and are used again: so a collective that is begun again and again, or a barrier, allocates no other one.

use gasworks_sync::{Lock, Mode, Par};
use std::any::Any;
use std::sync::Arc;

/// How many are kept, of whatever type: more than are usually under way at once.
const MAX_KEPT: usize = 32;

/// Machines that run, and machines that are over, which nobody else holds.
#[derive(Default)]
pub(super) struct Reused(<Par as Mode>::Lock<Vec<Arc<dyn Any + Send + Sync>>>);

impl Reused {
    /// A machine that `renew` makes: in the place of one of its type that is over, of which it may use what is left. It is kept for when it is over.
    pub fn renewed<T: Any + Send + Sync>(&self, renew: impl FnOnce(Option<&mut T>) -> T) -> Arc<T> {
        let one = match self.take::<T>() {
            Some(mut old) => match Arc::get_mut(&mut old) {
                Some(place) => {
                    let new = renew(Some(&mut *place));
                    *place = new;
                    old
                }
                None => Arc::new(renew(None)),
            },
            None => Arc::new(renew(None)),
        };
        self.keep(one.clone());
        one
    }

    /// One of that type that is over, which nobody else has.
    fn take<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let taken = self.0.with(|kept| {
            let at = kept.iter().position(|one| one.is::<T>() && is_over(one))?;
            Some(kept.swap_remove(at))
        });
        taken?.downcast().ok()
    }

    fn keep(&self, one: Arc<dyn Any + Send + Sync>) {
        let left = self.0.with(|kept| match kept.len() < MAX_KEPT {
            true => {
                kept.push(one);
                None
            }
            false => kept.iter_mut().find(|one| is_over(one)).map(|old| std::mem::replace(old, one)),
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
        let first = reused.renewed(|old: Option<&mut u32>| old.map_or(1, |old| *old + 1));
        let second = reused.renewed(|old: Option<&mut u32>| old.map_or(10, |old| *old + 1));
        assert_eq!((*first, *second), (1, 10), "the first is in use");
        let place = Arc::as_ptr(&first);
        drop(first);
        assert_eq!(*reused.renewed(|old: Option<&mut u64>| old.map_or(5, |old| *old)), 5, "of another type");
        let again = reused.renewed(|old: Option<&mut u32>| old.map_or(1, |old| *old + 1));
        assert_eq!((*again, Arc::as_ptr(&again)), (2, place));
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let reused = Reused::default();
        let number = |number: usize| reused.renewed(|_: Option<&mut usize>| number);
        let all: Vec<_> = (0..MAX_KEPT + 5).map(number).collect();
        assert_eq!(format!("{reused:?}"), format!("{MAX_KEPT} machines"));
        assert_eq!(Arc::strong_count(&all[MAX_KEPT]), 1, "there was no room");
        // One that is over makes room for one of another type.
        drop(all);
        let other = reused.renewed(|_: Option<&mut &str>| "other");
        assert_eq!(Arc::strong_count(&other), 2);
        reused.clear();
        assert_eq!(Arc::strong_count(&other), 1);
    }
}
