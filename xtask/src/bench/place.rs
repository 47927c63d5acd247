//! Where and how a program is run: on two cores at real-time priority, on one core, or more ranks than cores.

use gasworks_testkit::command::Cmd;
use std::sync::OnceLock;

/// The conditions of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At real-time priority where that is permitted, each rank pinned to a core of its own.
    RealTime,
    /// In a session of its own at high priority: with more ranks than cores, real-time priority would never let go of a
    /// core for a rank that spins without yielding. So it is given up, should the bench itself have been started so.
    Ordinary,
    /// The same, all ranks on one core.
    OneCore,
    /// As it comes.
    Plain,
}

impl Place {
    /// What stands before the command.
    pub fn words(self) -> Vec<String> {
        let group = "echo -20 2>/dev/null >/proc/self/autogroup; exec \"$@\"";
        let session = ["chrt", "-o", "0", "setsid", "--wait", "sh", "-c", group, "sh"];
        let core = first_core();
        let words: Vec<&str> = match self {
            Place::Plain => Vec::new(),
            Place::RealTime if real_time() => vec!["chrt", "-f", "1"],
            Place::RealTime | Place::Ordinary => session.to_vec(),
            Place::OneCore => ["taskset", "-c", &core].into_iter().chain(session).collect(),
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// In rows; nothing for the usual place.
    pub fn name(self) -> &'static str {
        match self {
            Place::RealTime | Place::Plain => "",
            Place::Ordinary => "ordinary priority",
            Place::OneCore => "one core",
        }
    }
}

/// The first core that programs started here may use: not always core 0.
fn first_core() -> String {
    first_of(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn first_of(status: &str) -> String {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let digits: String = list.trim().chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { "0".into() } else { digits }
}

/// Whether this user may run programs at real-time priority.
pub fn real_time() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| Cmd::new("chrt").words("-f 1 true").works())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_is_one_that_may_be_used() {
        assert_eq!(first_of("Name:\tx\nCpus_allowed_list:\t12-13,40\n"), "12");
        assert_eq!(first_of("Cpus_allowed_list:\t3,5\n"), "3");
        assert_eq!(first_of(""), "0");
    }

    #[test]
    fn where_ranks_share_cores_nobody_has_real_time_priority() {
        let policy = "test \"$(cut -d ' ' -f 41 /proc/$$/stat)\" =";
        for place in [Place::Ordinary, Place::OneCore] {
            let runs = |policy: String| {
                let started_so = if real_time() { vec!["chrt", "-f", "1"] } else { vec!["env"] };
                Cmd::new(started_so[0])
                    .args(&started_so[1..])
                    .args(place.words())
                    .args(["sh", "-c", &policy])
                    .works()
            };
            assert!(runs(format!("{policy} 0")) && !runs(format!("{policy} 1")), "{place:?}");
        }
    }

    #[test]
    fn every_place_runs_a_program() {
        for place in [Place::RealTime, Place::Ordinary, Place::OneCore] {
            let words = place.words();
            assert!(Place::Plain.words().is_empty());
            assert!(Cmd::new(&words[0]).args(&words[1..]).arg("true").works(), "{place:?}");
            assert!(!Cmd::new(&words[0]).args(&words[1..]).arg("false").works(), "{place:?}");
        }
    }
}
