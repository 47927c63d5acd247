//! Over what the ranks of a job can talk: the list of networks, of which one is chosen when a job opens. No other module, and no other
//! crate above the transports, knows one by name.
//!
//! - `memory`: the memory of one host; `gni`: Gemini and Aries, and the memory of each host.

mod gni;
mod memory;

use crate::{Config, Error, Transport};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::CoreMode;
use std::fmt::Display;

/// A way for ranks to talk, by which a job can be opened. The library's own stand in [`ThreadMode::networks`](crate::ThreadMode::networks);
/// another crate adds one by [`Networks::with`].
pub trait Network<M: CoreMode> {
    /// What it is called by [`Config::network`] and `GASWORKS_NETWORK`, in lower case, and then by what else.
    fn names(&self) -> &[&str];

    /// What it is, in a few words.
    fn about(&self) -> &str;

    /// Why it cannot be used by this process; `None` if it can, as far as can be told without opening it.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// The largest payload of a Medium in any job over it, in bytes, as the settings say: none needs to be open.
    ///
    /// # Errors
    /// A setting is wrong: the error names it.
    fn max_medium(&self) -> Result<usize, Error>;

    /// Opens it for a job. Collective: all ranks have chosen the same.
    ///
    /// # Errors
    /// What is in the way, on every rank within a bounded time.
    fn open(&self, bootstrap: &dyn Bootstrap, config: &Config) -> Result<Transport<M>, Error>;
}

/// The networks among which a job chooses by [`Config::network`].
///
/// Who has written one adds it to the library's own:
///
/// ```
/// use gasworks::{Config, Error, Network, Seq, ThreadMode, Transport};
/// # use gasworks_bootstrap::Bootstrap;
///
/// struct Pigeons;
///
/// impl Network<Seq> for Pigeons {
///     fn names(&self) -> &[&str] {
///         &["pigeons"]
///     }
///     fn about(&self) -> &str {
///         "letters by air"
///     }
///     fn max_medium(&self) -> Result<usize, Error> {
///         Ok(512)
///     }
///     fn open(&self, _: &dyn Bootstrap, _: &Config) -> Result<Transport<Seq>, Error> {
///         Err(Error::Program("they have flown".into()))
///     }
/// }
///
/// let networks = Seq::networks().with(Pigeons);
/// assert_eq!(networks.find("pigeons")?.about(), "letters by air");
/// // Job::open_among(networks, bootstrap, config, table)
/// # Ok::<(), Error>(())
/// ```
pub struct Networks<M>(Vec<Box<dyn Network<M>>>);

impl<M: CoreMode> Networks<M> {
    /// The library's own. This is the one list of them.
    pub(crate) fn own() -> Self
    where
        memory::Memory: Network<M>,
        gni::Gni: Network<M>,
    {
        Self(vec![Box::new(memory::Memory), Box::new(gni::ANY), Box::new(gni::ARIES), Box::new(gni::GEMINI)])
    }

    /// With one more, in the place of one that is called the same.
    #[must_use]
    pub fn with(mut self, network: impl Network<M> + 'static) -> Self {
        self.0.retain(|other| !other.names().iter().any(|name| network.names().contains(name)));
        self.0.push(Box::new(network));
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Network<M>> {
        self.0.iter().map(|network| &**network)
    }

    /// The one of that name, whatever the case of its letters.
    ///
    /// # Errors
    /// There is none: the error says which there are, and what is in the way of each.
    pub fn find(&self, name: &str) -> Result<&dyn Network<M>, Error> {
        let is_it =
            |network: &&dyn Network<M>| network.names().iter().any(|own| own.eq_ignore_ascii_case(name));
        self.iter().find(is_it).ok_or_else(|| {
            let line = |network: &dyn Network<M>| {
                let lacks = network.lacks().map(|why| format!("; not here: {why}")).unwrap_or_default();
                format!("{} ({}{lacks})", network.names().first().unwrap_or(&""), network.about())
            };
            Error::NoNetwork {
                name: name.into(),
                there: self.iter().map(line).collect::<Vec<_>>().join(", "),
            }
        })
    }
}

/// What is in the way of a network, as a job's error.
fn fails<E: std::error::Error + Send + Sync + 'static>(doing: &'static str) -> impl Fn(E) -> Error {
    move |cause| Error::Network { doing, cause: Box::new(cause) }
}

/// Why a library cannot be used, in one line.
fn in_a_line(why: impl Display) -> String {
    why.to_string().lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seq, ThreadMode};

    struct Own(&'static [&'static str]);

    impl Network<Seq> for Own {
        fn names(&self) -> &[&str] {
            self.0
        }
        fn about(&self) -> &str {
            "of a test"
        }
        fn lacks(&self) -> Option<String> {
            Some("there is no wire".into())
        }
        fn max_medium(&self) -> Result<usize, Error> {
            Ok(self.0.len())
        }
        fn open(&self, _: &dyn Bootstrap, _: &Config) -> Result<Transport<Seq>, Error> {
            Err(Error::Program("nothing is opened".into()))
        }
    }

    #[test]
    fn networks_are_found_by_any_of_their_names() {
        let networks = Seq::networks();
        for (name, most) in [("pshm", 65536), ("SMP", 65536)] {
            assert_eq!(
                networks.find(name).expect("it is there").max_medium().expect("settings"),
                most,
                "{name}"
            );
        }
        assert!(networks.find("Aries").is_ok() && networks.find("gni").is_ok());
        let with = networks.with(Own(&["pigeons", "smp"]));
        assert_eq!(
            with.find("smp").expect("it is there").about(),
            "of a test",
            "it has taken the other's place"
        );
        assert_eq!(with.iter().count(), 4);
    }

    #[test]
    fn a_name_that_nobody_has_is_answered_by_those_that_there_are() {
        let networks = Seq::networks().with(Own(&["pigeons"]));
        let said = networks.find("gnu").map(|_| ()).expect_err("there is none").to_string();
        for part in [
            "\"gnu\"",
            "GASWORKS_NETWORK",
            "pshm (the memory of one host)",
            "gni (",
            "pigeons (of a test; not here: there is no wire)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
