//! The engine's rows of the settings table.

use gasworks_os::settings::{Kind, Setting, SettingError};

/// How many post descriptors an engine has.
pub const DESCRIPTORS: Setting = Setting {
    name: "GASNET_GNI_NUM_PD",
    aliases: &["GASWORKS_POST_DESCRIPTORS"],
    kind: Kind::Number { min: 32, max: 1 << 20 },
    default: "512",
    unit: "descriptors",
    meaning: "post descriptors of a network engine: how many transfers may be under way at once",
    reader: "rdma",
};

/// All rows that this crate reads.
pub const SETTINGS: &[Setting] = &[DESCRIPTORS];

/// The number of post descriptors that the settings ask for.
///
/// # Errors
/// The setting is not a number, or out of range.
pub fn descriptors() -> Result<usize, SettingError> {
    Ok(DESCRIPTORS.number()?.map_or(512, |n| n as usize))
}
