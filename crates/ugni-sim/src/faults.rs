//! Faults that are to happen: at the nth passage of a place, or at a rate.
//!
//! `GNI_MemRegister:ERROR_RESOURCE@2 transaction:lost%0.5 queue:overrun@100` asks for three: the second registration fails with that
//! code, half a percent of all transactions are lost, and the hundredth event finds its queue full.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::nic::mix;

/// Faults. Which passages meet them follows from a seed and from how many there were.
#[derive(Debug, Default)]
pub struct Faults {
    seed: u64,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    place: String,
    what: String,
    when: When,
    passages: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// At this passage, counted from 1.
    At(u64),
    /// At so many of 2^64.
    Share(u64),
}

impl Faults {
    /// From text: words of the form `PLACE:WHAT@N` and `PLACE:WHAT%PERCENT`; `knows` says whether a place has such a fault.
    ///
    /// # Errors
    /// Which word is wrong, and why.
    pub fn parse(text: &str, seed: u64, knows: impl Fn(&str, &str) -> bool) -> Result<Self, String> {
        let rule = |word: &str| {
            let wrong = |why: &str| Err(format!("{word:?}: {why}"));
            let Some((place, rest)) = word.split_once(':') else {
                return wrong("wanted PLACE:WHAT@N or PLACE:WHAT%PERCENT");
            };
            let (what, when) = match (rest.split_once('@'), rest.split_once('%')) {
                (Some((what, number)), None) => match number.parse() {
                    Ok(number) if number > 0 => (what, When::At(number)),
                    _ => return wrong("after @ there is a whole number from 1 on"),
                },
                (None, Some((what, percent))) => match percent.parse::<f64>() {
                    // 2^64, as far as such a number goes.
                    Ok(percent) if (0.0..=100.0).contains(&percent) => {
                        (what, When::Share((percent / 100.0 * 18_446_744_073_709_551_616.0) as u64))
                    }
                    _ => return wrong("after % there is a number from 0 to 100"),
                },
                _ => return wrong("wanted one @ or one %"),
            };
            if !knows(place, what) {
                return wrong("there is no such place, or it cannot fail so");
            }
            let passages = AtomicU64::new(0);
            Ok(Rule { place: place.to_owned(), what: what.to_owned(), when, passages })
        };
        Ok(Self { seed, rules: text.split_whitespace().map(rule).collect::<Result<_, _>>()? })
    }

    /// Whether a place may meet such a fault.
    pub fn may(&self, place: &str, what: &str) -> bool {
        self.rules.iter().any(|rule| rule.place == place && rule.what == what)
    }

    /// A place is passed: the fault that is due, if one is.
    pub fn due(&self, place: &str) -> Option<&str> {
        let mut due = None;
        for (number, rule) in (1..).zip(&self.rules).filter(|(_, rule)| rule.place == place) {
            let passage = rule.passages.fetch_add(1, Relaxed) + 1;
            let meets = match rule.when {
                When::At(at) => passage == at,
                When::Share(share) => mix(mix(self.seed ^ number << 56) ^ passage) < share,
            };
            if meets {
                due = due.or(Some(&*rule.what));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Faults, String> {
        Faults::parse(text, 7, |place, what| place == "here" && what != "never")
    }

    #[test]
    fn the_nth_passage_meets_a_fault() {
        let faults = parse("here:first@1 here:third@3 here:also@3").expect("good");
        let met: Vec<_> = (0..5).map(|_| faults.due("here")).collect();
        assert_eq!(met, [Some("first"), None, Some("third"), None, None]);
        assert_eq!(faults.due("elsewhere"), None);
    }

    const PASSAGES: usize = if cfg!(miri) { 200 } else { 4000 };

    #[test]
    fn a_share_of_passages_meets_a_fault_and_the_same_again() {
        let run = |seed| {
            let faults = Faults::parse("here:x%25 ", seed, |_, _| true).expect("good");
            (0..PASSAGES).map(|_| faults.due("here").is_some()).collect::<Vec<_>>()
        };
        let first = run(1);
        let count = first.iter().filter(|met| **met).count();
        assert!((PASSAGES / 5..PASSAGES / 3).contains(&count), "{count} of {PASSAGES}");
        assert_eq!(run(1), first);
        assert_ne!(run(2), first);
        for (text, expected) in [("here:x%0", 0), ("here:x%100", 100)] {
            let faults = parse(text).expect("good");
            assert_eq!((0..100).filter(|_| faults.due("here").is_some()).count(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("here", "wanted PLACE:WHAT"),
            ("here:x", "wanted one @ or one %"),
            ("here:x@1%2", "wanted one @"),
            ("here:x@0", "whole number"),
            ("here:x@-1", "whole number"),
            ("here:x%101", "0 to 100"),
            ("here:x%nan", "0 to 100"),
            ("here:x@1 there:x@1", "\"there:x@1\": there is no such place"),
            ("here:never@1", "cannot fail so"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(parse(" ").expect("good").due("here").is_none());
    }
}
