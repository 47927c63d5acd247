//! Those who have connected and have not shown yet who they are: each has a limited time, and they are limited in number.
//!
//! When one more comes than may be there, the one that has taken longest goes: who belongs here says at once who it is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Visitors by the user words of their socks.
#[derive(Debug)]
pub(crate) struct Visitors<T> {
    there: HashMap<u64, (T, Instant)>,
    most: usize,
    patience: Duration,
    next: u64,
    /// How many were sent away.
    pub(crate) refused: usize,
}

impl<T> Visitors<T> {
    /// None yet. Their user words are `first` and above; each has `patience`, and at most `most` may be there.
    pub(crate) fn new(first: u64, most: usize, patience: Duration) -> Self {
        Self { there: HashMap::new(), most, patience, next: first, refused: 0 }
    }

    /// The user word of the next one.
    pub(crate) fn next_token(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// One has come; gives the one that goes for it, if there are too many.
    pub(crate) fn come(&mut self, token: u64, visitor: T) -> Option<T> {
        let oldest = self.there.keys().min().copied().filter(|_| self.there.len() >= self.most);
        self.there.insert(token, (visitor, Instant::now() + self.patience));
        self.refuse(oldest?)
    }

    /// One of them, to be listened to.
    pub(crate) fn get(&mut self, token: u64) -> Option<&mut T> {
        self.there.get_mut(&token).map(|(visitor, _)| visitor)
    }

    /// Lets one in.
    pub(crate) fn admit(&mut self, token: u64) -> Option<T> {
        self.there.remove(&token).map(|(visitor, _)| visitor)
    }

    /// Sends one away.
    pub(crate) fn refuse(&mut self, token: u64) -> Option<T> {
        let visitor = self.admit(token)?;
        self.refused += 1;
        Some(visitor)
    }

    /// When the next one has used up its time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.there.values().map(|(_, until)| *until).min()
    }

    /// Sends one away that has used up its time.
    pub(crate) fn late(&mut self) -> Option<T> {
        let now = Instant::now();
        let token = *self.there.iter().find(|(_, (_, until))| *until <= now)?.0;
        self.refuse(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_longest_goes_first() {
        let mut visitors = Visitors::new(5, 2, Duration::from_secs(60));
        let tokens: Vec<u64> = (0..3).map(|_| visitors.next_token()).collect();
        assert_eq!(tokens, [5, 6, 7]);
        assert_eq!((visitors.come(5, 'a'), visitors.come(6, 'b')), (None, None));
        assert_eq!(visitors.come(7, 'c'), Some('a'));
        assert_eq!((visitors.get(6).copied(), visitors.get(5).copied()), (Some('b'), None));
        assert_eq!((visitors.admit(6), visitors.refused), (Some('b'), 1));
        assert!(visitors.deadline().is_some() && visitors.late().is_none());
        let mut hasty = Visitors::new(0, 2, Duration::ZERO);
        assert_eq!(
            (hasty.come(0, 'a'), hasty.late(), hasty.late(), hasty.refused),
            (None, Some('a'), None, 1)
        );
    }
}
