//! Which chip the NICs of this process play, and how kind they are.

use std::sync::{Arc, OnceLock};

use gasworks_gni_sys::gni_return_t;
use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting, SettingError};
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::faults::Faults;
use gasworks_ugni_sim::nic::Mood;

use super::calls::is_call;
use super::code_named;

/// Which chip.
const CHIP: Setting = Setting {
    name: "GASWORKS_UGNI_CHIP",
    aliases: &[],
    kind: Kind::Choice(&["aries", "gemini"]),
    default: "aries",
    unit: "",
    meaning: "The chip that the software NIC plays",
    reader: "ugni-sim",
};

/// How kind.
const MOOD: Setting = Setting {
    name: "GASWORKS_UGNI_MOOD",
    aliases: &[],
    kind: Kind::Choice(&["plain", "adversarial", "unordered"]),
    default: "plain",
    unit: "",
    meaning: "Whether the software NIC does all at once, or as late and as mixed up as a network may, or so that an event may come before the bytes",
    reader: "ugni-sim",
};

/// What an adversary's decisions follow from.
const SEED: Setting = Setting {
    name: "GASWORKS_UGNI_SEED",
    aliases: &[],
    kind: Kind::Number { min: 0, max: u64::MAX },
    default: "1",
    unit: "",
    meaning: "What the decisions of an adversarial software NIC follow from",
    reader: "ugni-sim",
};

/// What is to go wrong.
const FAULTS: Setting = Setting {
    name: "GASWORKS_UGNI_FAULTS",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "What is to go wrong with the software NIC: words PLACE:WHAT@N or PLACE:WHAT%PERCENT",
    reader: "ugni-sim",
};

/// Which way to the other ranks.
const WIRE: Setting = Setting {
    name: "GASWORKS_UGNI_WIRE",
    aliases: &[],
    kind: Kind::Choice(&["near", "sock"]),
    default: "near",
    unit: "",
    meaning: "Whether NICs of a host reach each other's memory, or go over sockets as those of several hosts do",
    reader: "ugni-sim",
};

/// A variable of the launcher's.
const fn of_launcher(name: &'static str, meaning: &'static str) -> Setting {
    Setting { name, aliases: &[], kind: Kind::Text, default: "", unit: "", meaning, reader: "ugni-sim" }
}

/// The job's protection tags.
pub(super) const TAGS: Setting =
    of_launcher("PMI_GNI_PTAG", "The protection tags of the job, with colons between");
/// The job's cookies.
pub(super) const COOKIES: Setting =
    of_launcher("PMI_GNI_COOKIE", "The cookies of the job, one for each tag, with colons between");

/// Says what is wrong with a setting; the caller gets none.
fn told<T>(value: Result<T, SettingError>) -> Option<T> {
    value.map_err(|error| say(&format!("libugni: {error}"))).ok()
}

/// The chip; `None` if the setting is wrong, which is said.
pub(super) fn chip() -> Option<Chip> {
    let word = told(CHIP.choice())?;
    Some(if word == "gemini" { Chip::Gemini } else { Chip::Aries })
}

/// The mood; `None` if a setting is wrong, which is said.
pub(super) fn mood() -> Option<Mood> {
    let word = told(MOOD.choice())?;
    if word == "plain" {
        return Some(Mood::Plain);
    }
    let seed = told(SEED.number())?.unwrap_or(0);
    Some(if word == "unordered" { Mood::Unordered { seed } } else { Mood::Adversarial { seed } })
}

/// Whether all NICs are reached over sockets.
///
/// # Errors
/// The setting is wrong.
pub(crate) fn always_sock() -> Result<bool, SettingError> {
    Ok(WIRE.choice()? == "sock")
}

/// Whether a place can fail so: a function with a code, UDREG's with its own, or what a NIC may meet.
fn can_fail(place: &str, what: &str) -> bool {
    match place {
        "transaction" => Status::named(what).is_some_and(|status| status != Status::Ok),
        "queue" | "remote-queue" => what == "overrun",
        "datagram" => ["timeout", "terminated"].contains(&what),
        "UDREG_CacheCreate" | "UDREG_Register" => what == "NO_SPACE",
        "UDREG_Evict" => what == "NO_MATCH",
        call => is_call(call) && what != "SUCCESS" && code_named(what).is_some(),
    }
}

/// What is to go wrong; `None` if the setting is wrong, which is said once.
pub(super) fn faults() -> Option<&'static Arc<Faults>> {
    static READ: OnceLock<Option<Arc<Faults>>> = OnceLock::new();
    let read = || {
        let faults = Faults::parse(&FAULTS.text(), told(SEED.number())?.unwrap_or(0), can_fail);
        faults.map_err(|error| say(&format!("libugni: setting {}: {error}", FAULTS.name))).ok().map(Arc::new)
    };
    READ.get_or_init(read).as_ref()
}

/// A function is called.
///
/// # Errors
/// What it is to give instead of doing anything.
pub(super) fn due(call: &str) -> Result<(), gni_return_t> {
    let Some(faults) = faults() else { return Ok(()) };
    match faults.due(call).and_then(code_named) {
        Some(code) => Err(code),
        None => Ok(()),
    }
}

/// Whether a function of UDREG is to fail: each has one way to.
pub(crate) fn is_due(call: &str) -> bool {
    faults().is_some_and(|faults| faults.due(call).is_some())
}
