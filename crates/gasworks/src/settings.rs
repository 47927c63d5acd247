//! The one table of settings: every crate's rows, joined.

use gasworks_os::settings::{Kind, Setting, SettingError};

const VERBOSE: Setting = Setting {
    name: "GASNET_VERBOSEENV",
    aliases: &["GASWORKS_VERBOSE"],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "rank 0 prints every setting and where it comes from when the job starts",
    reader: "gasworks",
};

const PROGRESS_THREAD: Setting = Setting {
    name: "GASWORKS_PROGRESS_THREAD",
    aliases: &[],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "a thread of each rank serves the others while the program computes; par mode only",
    reader: "gasworks",
};

const INSPECT_SIGNAL: Setting = Setting {
    name: "GASWORKS_INSPECT_SIGNAL",
    aliases: &[],
    kind: Kind::Number { min: 0, max: 64 },
    default: "62",
    unit: "",
    meaning: "the number of the signal that asks a rank how it stands, and gasrun how all do; 0: none",
    reader: "gasworks, gasrun",
};

const INSPECT_ADDRESS: Setting = Setting {
    name: "GASWORKS_INSPECT_ADDRESS",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the socket to which a rank says how it stands, set by gasrun for ranks on other hosts; unset: that of its job",
    reader: "gasworks",
};

const NETWORK: Setting = Setting {
    name: "GASWORKS_NETWORK",
    aliases: &[],
    kind: Kind::Text,
    default: "pshm",
    unit: "",
    meaning: "over what the ranks talk: the memory of their host (pshm), Gemini or Aries (gni, or one alone: gemini, aries), or a \
              network that the program brings",
    reader: "gasworks",
};

const MAX_THREADS: Setting = Setting {
    name: "GASNET_MAX_THREADS",
    aliases: &[],
    kind: Kind::Number { min: 1, max: u32::MAX as u64 },
    default: "",
    unit: "threads",
    meaning: "how many threads programs in C are told they may have in par mode; unset: as many as can be told, for there is no limit",
    reader: "gasworks-capi",
};

const THREAD_STACK: Setting = Setting {
    name: "GASNET_THREAD_STACK_MIN",
    aliases: &[],
    kind: Kind::Size { min: 0, max: 1 << 40 },
    default: "",
    unit: "",
    meaning: "how large the stack of a progress thread is at least",
    reader: "gasworks",
};

const THREAD_STACK_PAD: Setting = Setting {
    name: "GASNET_THREAD_STACK_PAD",
    aliases: &[],
    kind: Kind::Size { min: 0, max: 1 << 40 },
    default: "0",
    unit: "",
    meaning: "how much larger it is",
    reader: "gasworks",
};

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[
    VERBOSE,
    NETWORK,
    INSPECT_SIGNAL,
    INSPECT_ADDRESS,
    PROGRESS_THREAD,
    MAX_THREADS,
    THREAD_STACK,
    THREAD_STACK_PAD,
];

/// Every setting that a program reads, by crate from the ground floor up.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    [
        gasworks_sock::SETTINGS,
        gasworks_bootstrap::SETTINGS,
        gasworks_rdma::SETTINGS,
        gasworks_core::flow::SETTINGS,
        gasworks_extended::SETTINGS,
        gasworks_pshm::SETTINGS,
        gasworks_gni::SETTINGS,
        SETTINGS,
    ]
    .into_iter()
    .flatten()
}

/// What others read of the library's variables: `gasrun`, the software NIC, and tests.
const OF_OTHERS: [&str; 9] = [
    "GASWORKS_EXIT_TIMEOUT",
    "GASWORKS_KILL_AT",
    "GASWORKS_LOST_AFTER",
    "GASWORKS_MUTATION",
    "GASWORKS_PANIC_AT",
    "GASWORKS_RSH",
    "GASWORKS_SPAWN_VERBOSE",
    "GASWORKS_RANDOMIZE",
    "GASWORKS_TRACE_EVENTS",
];
const BEGINNINGS: [&str; 3] = ["GASWORKS_UGNI_", "GASWORKS_TEST_", "GASWORKS_PREPARED_"];

/// Whether anything reads a variable of this name, as far as the library knows.
#[doc(hidden)]
pub fn is_known(name: &str) -> bool {
    let ours = all().any(|setting| setting.name == name || setting.aliases.contains(&name));
    ours || OF_OTHERS.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// What is to be said of variables that look like settings and are none, in the order of their names.
pub(crate) fn unknown() -> Vec<String> {
    let names = gasworks_os::environ::all().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("GASWORKS_") && !is_known(name)).collect();
    names.sort_unstable();
    names.iter().map(|name| unknown_line(name)).collect()
}

fn unknown_line(name: &str) -> String {
    let near = all().map(|setting| (distance(name, setting.name), setting.name)).min();
    let meant = near.filter(|(distance, _)| *distance <= 3).map(|(_, meant)| format!(", {meant} is one"));
    format!("gasworks: {name} is set, and is no setting{}", meant.unwrap_or_default())
}

/// How many letters have to be put in, taken out or changed to make the one of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in (1..).zip(one.bytes()) {
        let mut before = std::mem::replace(&mut row[0], at);
        for (at, theirs) in (1..).zip(other.bytes()) {
            let changed = before + usize::from(letter != theirs);
            before = row[at];
            row[at] = changed.min(row[at] + 1).min(row[at - 1] + 1);
        }
    }
    row[other.len()]
}

/// Checks that every setting of the environment can be used.
///
/// # Errors
/// The first that cannot.
pub fn check_all() -> Result<(), SettingError> {
    all().try_for_each(Setting::check)
}

/// The settings with their values in this process, a line each, as GASNet's programs are used to them: by the name of the variable
/// that says so, or else by GASNet's name where there is one.
pub fn report() -> String {
    lines(all())
}

/// The same of these settings, each name once.
#[doc(hidden)]
pub fn lines<'a>(settings: impl Iterator<Item = &'a Setting>) -> String {
    let mut known = std::collections::BTreeSet::new();
    let line = |setting: &Setting| {
        let raw = setting.raw();
        let (name, value, from) = match &raw {
            Some((variable, value)) => (*variable, value.clone(), ""),
            None => {
                // A variable that sets several is the first one's.
                let alias = setting.aliases.first().copied().filter(|&alias| !known.contains(alias));
                let name = alias.unwrap_or(setting.name);
                (name, setting.usual_shown().to_string(), " (default)")
            }
        };
        let value = if value.is_empty() { "*not set*" } else { &value };
        let is_new = known.insert(name.to_owned());
        is_new.then(|| format!("ENV parameter: {name} = {value:20}{from}").trim_end().to_owned() + "\n")
    };
    settings.filter_map(line).collect()
}

pub(crate) fn verbose() -> bool {
    VERBOSE.boolean().unwrap_or(false)
}

pub(crate) fn progress_thread() -> Result<bool, SettingError> {
    PROGRESS_THREAD.boolean()
}

/// How large the stack of a progress thread is, in bytes; `None`: as the system has it.
pub(crate) fn thread_stack() -> Result<Option<usize>, SettingError> {
    // What Rust gives a thread where nothing is said.
    const USUAL: u64 = 2 << 20;
    let (least, pad) = (THREAD_STACK.number()?, THREAD_STACK_PAD.number()?.unwrap_or(0));
    let wanted = (least.is_some() || pad > 0).then(|| least.unwrap_or(0).max(USUAL).saturating_add(pad));
    Ok(wanted.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// How many threads a program is told it may have; `None`: any number.
///
/// # Errors
/// The setting is no such number.
pub fn max_threads() -> Result<Option<u64>, SettingError> {
    MAX_THREADS.number()
}

/// Over what the ranks talk.
pub(crate) fn network() -> Box<str> {
    NETWORK.text().into()
}

/// The signal that asks a rank how it stands; 0 for none.
///
/// # Errors
/// The setting is not a number of a signal.
pub fn inspect_signal() -> Result<i32, SettingError> {
    Ok(INSPECT_SIGNAL.number()?.and_then(|signal| i32::try_from(signal).ok()).unwrap_or(0))
}

/// Where a rank says how it stands, if that is not where its job's name says.
pub(crate) fn inspect_address() -> Option<String> {
    Some(INSPECT_ADDRESS.text()).filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_setting_is_said_with_what_may_be_meant() {
        assert!(
            is_known("GASWORKS_SEGMENT_SIZE")
                && is_known("GASNET_MAX_SEGSIZE")
                && is_known("GASWORKS_UGNI_CHIP")
        );
        for (name, said) in [
            ("GASWORKS_SEGMENT_SIZ", "is set, and is no setting, GASWORKS_SEGMENT_SIZE is one"),
            ("GASWORKS_SPINS", "is no setting, GASWORKS_SPIN is one"),
            ("GASWORKS_HUGEPAGES", "is no setting, GASWORKS_HUGE_PAGES is one"),
        ] {
            assert!(!is_known(name));
            let line = unknown_line(name);
            assert!(line.starts_with(&format!("gasworks: {name} ")) && line.ends_with(said), "{line}");
        }
        assert_eq!(
            unknown_line("GASWORKS_OF_MY_OWN"),
            "gasworks: GASWORKS_OF_MY_OWN is set, and is no setting"
        );
        assert_eq!([distance("", "abc"), distance("abc", ""), distance("kitten", "sitting")], [3, 3, 3]);
    }
}
