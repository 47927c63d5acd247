//! What a run would have taken, as a table.

use super::model::Means;
use super::replay::{Spent, Wait};

/// The times of all processes, by their names: for each its time and what that consists of, then all that was posted.
pub fn table(names: &[String], spent: &[Spent]) -> String {
    let us = |time: f64| format!("{:>10.2}", time / 1000.0);
    let waits = Wait::ALL.map(|wait| format!("{:>10}", format!("{wait:?}").to_lowercase())).concat();
    let mut text = format!("{:>10}{:>10}{:>10}{waits}{:>9}  us\n", "time", "posting", "taking", "unknown");
    for (name, of) in names.iter().zip(spent) {
        let waiting = of.waiting.map(us).concat();
        let posting = us(of.posting.iter().sum());
        text += &format!("{}{posting}{}{waiting}{:>9}  {name}\n", us(of.all), us(of.taking), of.unknown);
    }
    let all = spent.iter().map(|of| of.all).fold(0.0, f64::max);
    text += &format!("\n{:>10}{:>10}{:>14}{:>10}\n", "by", "posts", "bytes", "posting");
    for means in Means::ALL {
        let number = means as usize;
        let (posts, bytes) = spent
            .iter()
            .fold((0, 0), |(posts, bytes), of| (posts + of.posts[number].0, bytes + of.posts[number].1));
        let posting = us(spent.iter().map(|of| of.posting[number]).sum());
        if posts > 0 {
            text += &format!("{:>10}{posts:>10}{bytes:>14}{posting}\n", means.name());
        }
    }
    text + &format!("\nthe run takes {:.2} us\n", all / 1000.0)
}

/// When each process came to its marks: a line for each mark, the nanoseconds, its number, and the process's name.
pub fn marks(names: &[String], spent: &[Spent]) -> String {
    let of = |(name, of): (&String, &Spent)| {
        of.marks.iter().map(|(number, at)| format!("{at:.1} {number} {name}\n")).collect::<String>()
    };
    names.iter().zip(spent).map(of).collect()
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_is_what_the_run_takes() {
        let mut spent = [Spent::default(), Spent::default()];
        (spent[0].all, spent[1].all) = (1500.0, 2500.0);
        spent[1].waiting[Wait::Remote as usize] = 2250.0;
        spent[1].posts[Means::Bte as usize] = (3, 4711);
        let text = table(&["one".to_owned(), "two".to_owned()], &spent);
        assert!(text.ends_with("\nthe run takes 2.50 us\n"), "{text}");
        assert!(text.contains("      2.25") && text.contains("bte         3          4711"), "{text}");
        spent[1].marks = vec![(7, 12.25), (8, 20.0)];
        assert_eq!(marks(&["one".to_owned(), "two".to_owned()], &spent), "12.2 7 two\n20.0 8 two\n");
    }
}
