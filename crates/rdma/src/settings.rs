//! The engine's rows of the settings table, and what they make of an engine.

use gasworks_os::settings::{Kind, Setting, SettingError};

/// The most that a cutover to the NIC's own engine may be.
const MOST_SHORT: usize = 16384;
/// The most that a cutover to registration may be.
const MOST_BOUNCE: usize = 32768;

const fn size(name: &'static str, default: &'static str, meaning: &'static str) -> Setting {
    let kind = Kind::Size { min: 0, max: 1 << 40 };
    Setting { name, aliases: &[], kind, default, unit: "bytes", meaning, reader: "rdma" }
}

/// How many post descriptors an engine has.
pub const DESCRIPTORS: Setting = Setting {
    name: "GASNET_GNI_NUM_PD",
    aliases: &["GASWORKS_POST_DESCRIPTORS"],
    kind: Kind::Number { min: 32, max: 1 << 20 },
    default: "512",
    unit: "descriptors",
    meaning: "post descriptors of each domain of a network: how many transfers, and messages over uGNI, may be under way at once",
    reader: "rdma",
};

/// The longest put that the processor hands to the NIC.
pub const PUT_SHORT: Setting = size(
    "GASNET_GNI_PUT_FMA_RDMA_CUTOVER",
    "",
    "the longest put that the processor hands to the NIC; more than 16 KiB is taken as that. Unset: 4096, on Aries 1023",
);

/// The longest get that the processor is handed.
pub const GET_SHORT: Setting = size(
    "GASNET_GNI_GET_FMA_RDMA_CUTOVER",
    "",
    "the longest get that the processor is handed; more than 16 KiB is taken as that. Unset: 4096, on Aries 1023",
);

/// The longest put from memory that is not registered for which it is not registered either.
pub const PUT_BOUNCE: Setting = size(
    "GASNET_GNI_PUT_BOUNCE_REGISTER_CUTOVER",
    "4096",
    "the longest put by a bounce buffer; beyond it memory is registered for the transfer. Less than a page is taken as a page, \
     more than 32 KiB as that",
);

/// The same of gets.
pub const GET_BOUNCE: Setting = size(
    "GASNET_GNI_GET_BOUNCE_REGISTER_CUTOVER",
    "4096",
    "the longest get by a bounce buffer; beyond it memory is registered for the transfer. Less than a page is taken as a page, \
     more than 32 KiB as that",
);

/// How much memory all bounce buffers have.
pub const BOUNCE_SPACE: Setting = size(
    "GASNET_GNI_BOUNCE_SIZE",
    "256K",
    "memory of all bounce buffers, each as large as the largest of both bounce cutovers and, over uGNI, the largest Medium and 64 bytes; \
     less than one buffer is taken as one",
);

/// How many registrations may be there for transfers.
pub const REGISTRATIONS: Setting = Setting {
    name: "GASNET_GNI_MEMREG",
    aliases: &[],
    kind: Kind::Number { min: 0, max: 1 << 20 },
    default: "",
    unit: "registrations",
    meaning: "registrations of memory for transfers, in use or kept for the next; 0: as many as the network admits. \
              Unset: 16, on Aries 3072",
    reader: "rdma",
};

/// How much memory may stay registered for the next transfer.
pub const REGISTRATION_SPACE: Setting = size(
    "GASWORKS_GNI_MEMREG_SPACE",
    "1G",
    "memory outside the segment that stays registered after a transfer, for the next one from or to the same place; \
     0: none does, and nothing is watched",
);

/// All rows that this crate reads.
pub const SETTINGS: &[Setting] = &[
    DESCRIPTORS,
    PUT_SHORT,
    GET_SHORT,
    PUT_BOUNCE,
    GET_BOUNCE,
    BOUNCE_SPACE,
    REGISTRATIONS,
    REGISTRATION_SPACE,
];

/// How an engine goes about transfers. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Post descriptors.
    pub descriptors: usize,
    /// The longest put by [`Way::Short`](crate::Way::Short), if the NIC has that.
    pub put_short: usize,
    /// The longest get.
    pub get_short: usize,
    /// The longest put by a bounce buffer, where the memory could be registered for it.
    pub put_bounce: usize,
    /// The longest get.
    pub get_bounce: usize,
    /// Memory of all bounce buffers.
    pub bounce_space: usize,
    /// What a bounce buffer is to hold at least, for whoever else uses them.
    pub least_buffer: usize,
    /// Registrations for transfers, in use or kept; `None`: as many as the NIC admits.
    pub registrations: Option<usize>,
    /// Memory of those that are kept.
    pub registration_space: usize,
}

/// Bytes of the buffer that each post descriptor has of its own.
pub const IMMEDIATE: usize = 128;

impl Default for Tuning {
    fn default() -> Self {
        Self::GEMINI
    }
}

impl Tuning {
    /// What GASNet takes on Gemini where nothing is set, and networks of which nothing else is known.
    pub const GEMINI: Self = Self {
        descriptors: 512,
        put_short: 4096,
        get_short: 4096,
        put_bounce: 4096,
        get_bounce: 4096,
        bounce_space: 256 << 10,
        least_buffer: 0,
        registrations: Some(16),
        registration_space: 1 << 30,
    };
    /// The same on Aries.
    pub const ARIES: Self =
        Self { put_short: 1023, get_short: 1023, registrations: Some(3072), ..Self::GEMINI };

    /// What the settings say, for pages of this size and buffers that hold at least so much. What has no default in their table is as
    /// `usual`.
    ///
    /// # Errors
    /// A setting is not a number, or out of range.
    pub fn from_settings(usual: Self, page: usize, least_buffer: usize) -> Result<Self, SettingError> {
        Self::said(usual, page, least_buffer, Setting::number)
    }

    /// The same, with the value of each setting from `value`.
    fn said(
        usual: Self,
        page: usize,
        least_buffer: usize,
        value: impl Fn(&Setting) -> Result<Option<u64>, SettingError>,
    ) -> Result<Self, SettingError> {
        let read = |setting: &Setting, unset: usize| -> Result<usize, SettingError> {
            Ok(value(setting)?.map_or(unset, |number| usize::try_from(number).unwrap_or(usize::MAX)))
        };
        let registrations = value(&REGISTRATIONS)?.map_or(usual.registrations, |number| {
            (number > 0).then(|| usize::try_from(number).unwrap_or(usize::MAX))
        });
        let said = Self {
            descriptors: read(&DESCRIPTORS, usual.descriptors)?,
            put_short: read(&PUT_SHORT, usual.put_short)?,
            get_short: read(&GET_SHORT, usual.get_short)?,
            put_bounce: read(&PUT_BOUNCE, usual.put_bounce)?,
            get_bounce: read(&GET_BOUNCE, usual.get_bounce)?,
            bounce_space: read(&BOUNCE_SPACE, usual.bounce_space)?,
            least_buffer,
            registrations,
            registration_space: read(&REGISTRATION_SPACE, usual.registration_space)?,
        };
        Ok(said.adjusted(page))
    }

    /// What is out of its limits is brought to them.
    fn adjusted(self, page: usize) -> Self {
        let bounce = |cutover: usize| cutover.clamp(page, page.max(MOST_BOUNCE));
        let within = Self {
            put_short: self.put_short.min(MOST_SHORT),
            get_short: self.get_short.min(MOST_SHORT),
            put_bounce: bounce(self.put_bounce),
            get_bounce: bounce(self.get_bounce),
            ..self
        };
        Self { bounce_space: within.bounce_space.max(within.buffer()), ..within }
    }

    /// How large a bounce buffer is to be.
    pub fn buffer(&self) -> usize {
        self.put_bounce.max(self.get_bounce).max(self.least_buffer)
    }

    /// Registered memory that the engine needs at least and would like to have.
    pub fn memory(&self) -> (usize, usize) {
        let immediate = self.descriptors * IMMEDIATE;
        (immediate + self.buffer(), immediate + self.bounce_space.max(self.buffer()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_tuned_as_gasnet_does() {
        let gemini = Tuning {
            descriptors: 512,
            put_short: 4096,
            get_short: 4096,
            put_bounce: 4096,
            get_bounce: 4096,
            bounce_space: 262_144,
            least_buffer: 0,
            registrations: Some(16),
            registration_space: 1_073_741_824,
        };
        let aries = Tuning { put_short: 1023, get_short: 1023, registrations: Some(3072), ..gemini };
        assert_eq!([Tuning::default(), Tuning::GEMINI, Tuning::ARIES], [gemini, gemini, aries]);
    }

    /// The limits of each, and what it is where nothing is set. A default that is empty depends on the network.
    #[test]
    fn settings_have_their_limits() {
        const MOST: u64 = 1_099_511_627_776;
        let rows = [
            ("GASNET_GNI_NUM_PD", 32, 1_048_576, "512"),
            ("GASNET_GNI_PUT_FMA_RDMA_CUTOVER", 0, MOST, ""),
            ("GASNET_GNI_GET_FMA_RDMA_CUTOVER", 0, MOST, ""),
            ("GASNET_GNI_PUT_BOUNCE_REGISTER_CUTOVER", 0, MOST, "4096"),
            ("GASNET_GNI_GET_BOUNCE_REGISTER_CUTOVER", 0, MOST, "4096"),
            ("GASNET_GNI_BOUNCE_SIZE", 0, MOST, "256K"),
            ("GASNET_GNI_MEMREG", 0, 1_048_576, ""),
            ("GASWORKS_GNI_MEMREG_SPACE", 0, MOST, "1G"),
        ];
        let found = SETTINGS.iter().map(|setting| match setting.kind {
            Kind::Number { min, max } | Kind::Size { min, max } => (setting.name, min, max, setting.default),
            other => panic!("{}: {other:?}", setting.name),
        });
        assert_eq!(found.collect::<Vec<_>>(), rows);
    }

    #[test]
    fn each_setting_sets_its_own() {
        let refused =
            || SettingError { variable: "one".into(), value: "many".into(), wanted: "a number".into() };
        let usual = Tuning { put_bounce: 5000, get_bounce: 5000, ..Tuning::ARIES };
        let (page, least_buffer) = (4096, 6000);
        let none = Tuning { least_buffer, ..usual };
        assert_eq!(Tuning::said(usual, page, least_buffer, |_| Ok(None)), Ok(none));
        for (setting, value, wanted) in [
            (DESCRIPTORS, 33, Tuning { descriptors: 33, ..none }),
            (PUT_SHORT, 0, Tuning { put_short: 0, ..none }),
            (PUT_SHORT, 16384, Tuning { put_short: 16384, ..none }),
            (GET_SHORT, 16385, Tuning { get_short: 16384, ..none }),
            (PUT_BOUNCE, 4097, Tuning { put_bounce: 4097, ..none }),
            (GET_BOUNCE, 1, Tuning { get_bounce: 4096, ..none }),
            (GET_BOUNCE, 32769, Tuning { get_bounce: 32768, ..none }),
            (BOUNCE_SPACE, 6000, Tuning { bounce_space: 6000, ..none }),
            (BOUNCE_SPACE, 5999, Tuning { bounce_space: 6000, ..none }),
            (REGISTRATIONS, 0, Tuning { registrations: None, ..none }),
            (REGISTRATIONS, 1, Tuning { registrations: Some(1), ..none }),
            (REGISTRATION_SPACE, 0, Tuning { registration_space: 0, ..none }),
            (REGISTRATION_SPACE, 7, Tuning { registration_space: 7, ..none }),
        ] {
            let is_it = |other: &Setting| other.name == setting.name;
            let said = Tuning::said(usual, page, least_buffer, |row| Ok(is_it(row).then_some(value)));
            assert_eq!(said, Ok(wanted), "{}={value}", setting.name);
            let wrong = |row: &Setting| if is_it(row) { Err(refused()) } else { Ok(None) };
            assert_eq!(Tuning::said(usual, page, least_buffer, wrong), Err(refused()), "{}", setting.name);
        }
    }

    #[test]
    fn what_is_out_of_limits_is_brought_to_them() {
        let page = 4096;
        for usual in [Tuning::GEMINI, Tuning::ARIES] {
            assert_eq!(usual.adjusted(page), usual);
            // Nothing is set here.
            assert_eq!(Tuning::from_settings(usual, page, 0), Ok(usual));
        }
        let wild = Tuning {
            put_short: 1 << 20,
            get_short: 16385,
            put_bounce: 0,
            get_bounce: 1 << 20,
            ..Tuning::default()
        };
        let tame = wild.adjusted(page);
        assert_eq!((tame.put_short, tame.get_short), (16384, 16384));
        assert_eq!((tame.put_bounce, tame.get_bounce), (4096, 32768));
        // Pages of 64 KiB come before the most.
        assert_eq!(wild.adjusted(65536).get_bounce, 65536);
        // There is room for one buffer at least, each as large as the largest of three.
        let tight = Tuning { bounce_space: 1, least_buffer: 5000, ..Tuning::default() }.adjusted(page);
        assert_eq!((tight.buffer(), tight.bounce_space), (5000, 5000));
        assert_eq!(tight.memory(), (512 * 128 + 5000, 512 * 128 + 5000));
        let usual = Tuning::default();
        assert_eq!(usual.memory(), (512 * 128 + 4096, 512 * 128 + (256 << 10)));
    }
}
