//! What a process writes down for the clock: text, a record each line.

use std::fmt;

use super::model::Means;

/// A NIC: its address, and its instance.
pub type Name = (u32, u32);

/// Which events a transaction makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The source is free.
    pub local: bool,
    /// All is done.
    pub global: bool,
    /// One at the target.
    pub remote: bool,
}

/// A transaction that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its number in the process.
    pub id: u64,
    /// By what it goes.
    pub means: Means,
    /// Whether the bytes come here.
    pub gets: bool,
    /// How many.
    pub length: u64,
    /// To whom.
    pub peer: Name,
    /// What it makes.
    pub events: Events,
    /// What the event at the target says.
    pub value: u64,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The process has a NIC of this name.
    Nic(Name),
    /// It posted something.
    Post(Posted),
    /// It took the event that frees the source of a transaction.
    Local(u64),
    /// It took the event that says that a transaction is over.
    Global(u64),
    /// It took an event from afar that says this.
    Remote(u64),
    /// It read a message of a peer's.
    Got(Name),
    /// It met all others.
    Met,
    /// It marked what comes from here on with a number.
    Mark(u64),
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Nic((address, instance)) => write!(f, "nic {address} {instance}"),
            Record::Post(Posted { id, means, gets, length, peer: (address, instance), events, value }) => {
                let way = if *gets { "get" } else { "put" };
                let letters = [(events.local, 'l'), (events.global, 'g'), (events.remote, 'r')];
                let letters: String =
                    letters.into_iter().filter_map(|(is, letter)| is.then_some(letter)).collect();
                let means = means.name();
                write!(f, "post {id} {means} {way} {length} {address} {instance} -{letters} {value}")
            }
            Record::Local(id) => write!(f, "local {id}"),
            Record::Global(id) => write!(f, "global {id}"),
            Record::Remote(value) => write!(f, "remote {value}"),
            Record::Got((address, instance)) => write!(f, "got {address} {instance}"),
            Record::Met => f.write_str("met"),
            Record::Mark(number) => write!(f, "mark {number}"),
        }
    }
}

impl Record {
    /// Reads one; `None` if it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = |address: &str, instance: &str| Some((address.parse().ok()?, instance.parse().ok()?));
        Some(match *words {
            ["nic", address, instance] => Record::Nic(name(address, instance)?),
            ["post", id, means, way @ ("put" | "get"), length, address, instance, events, value] => {
                let letters = events.strip_prefix('-')?;
                let has = |letter| letters.contains(letter);
                Record::Post(Posted {
                    id: id.parse().ok()?,
                    means: Means::named(means)?,
                    gets: way == "get",
                    length: length.parse().ok()?,
                    peer: name(address, instance)?,
                    events: Events { local: has('l'), global: has('g'), remote: has('r') },
                    value: value.parse().ok()?,
                })
            }
            ["local", id] => Record::Local(id.parse().ok()?),
            ["global", id] => Record::Global(id.parse().ok()?),
            ["remote", value] => Record::Remote(value.parse().ok()?),
            ["got", address, instance] => Record::Got(name(address, instance)?),
            ["met"] => Record::Met,
            ["mark", number] => Record::Mark(number.parse().ok()?),
            _ => return None,
        })
    }

    /// Reads all of a process's.
    ///
    /// # Errors
    /// Which line is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let one =
            |(number, line)| Self::parse(line).ok_or_else(|| format!("line {number}: no record: {line:?}"));
        (1..).zip(text.lines()).map(one).collect()
    }
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let events = Events { local: true, global: false, remote: true };
        let post =
            Posted { id: 7, means: Means::Bte, gets: true, length: 9, peer: (1, 2), events, value: 1 << 47 };
        let all = [
            Record::Nic((5, 6)),
            Record::Post(post),
            Record::Post(Posted { gets: false, events: Events::default(), means: Means::CqWrite, ..post }),
            Record::Local(7),
            Record::Global(8),
            Record::Remote(9),
            Record::Got((1, 2)),
            Record::Met,
            Record::Mark(10),
        ];
        let text: String = all.iter().map(|record| format!("{record}\n")).collect();
        assert_eq!(Record::parse_all(&text), Ok(all.to_vec()));
        for wrong in ["", "post", "post 1 fma put 8 1 2 g 3", "post 1 xma put 8 1 2 -g 3", "met 1", "local x"]
        {
            assert_eq!(Record::parse(wrong), None, "{wrong}");
        }
    }
}
