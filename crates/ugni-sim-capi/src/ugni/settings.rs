//! Which chip the NICs of this process play, and how kind they are.

use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting, SettingError};
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::nic::Mood;

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
    kind: Kind::Choice(&["plain", "adversarial"]),
    default: "plain",
    unit: "",
    meaning: "Whether the software NIC does all at once, or as late and as mixed up as a network may",
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
    match told(MOOD.choice())? {
        "plain" => Some(Mood::Plain),
        _ => Some(Mood::Adversarial { seed: told(SEED.number())?.unwrap_or(0) }),
    }
}
