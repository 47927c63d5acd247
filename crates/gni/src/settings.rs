//! The transport's rows of the settings table.

use crate::domain::Chip;
use crate::error::GniError;
use crate::udreg::Known;
use gasworks_gni_sys::udreg::{self, Udreg};
use gasworks_gni_sys::*;
use gasworks_os::limits::{self, Limit};
use gasworks_os::settings::{Amount, Kind, Setting, SettingError, Share};
use std::path::Path;

const READER: &str = "gni";

const fn row(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { name, aliases: &[], kind, default, unit, meaning, reader: READER }
}

const LIBRARY: Setting = row(
    "GASWORKS_UGNI_LIBRARY",
    Kind::Text,
    "",
    "",
    "the path of libugni; unset: libugni.so.0, where the system finds it",
);
const UDREG: Setting = row(
    "GASNET_USE_UDREG",
    Kind::Boolean,
    "0",
    "",
    "whether Cray's UDREG keeps registrations for transfers, instead of the engine",
);
const UDREG_LIBRARY: Setting = row(
    "GASWORKS_UDREG_LIBRARY",
    Kind::Text,
    "",
    "",
    "the path of libudreg; unset: libudreg.so.0, where the system finds it",
);
const DEVICE: Setting = row(
    "PMI_GNI_DEV_ID",
    Kind::Text,
    "",
    "",
    "which NIC of the host is used, by Cray's PMI; the first of a list with colons",
);
const TAG: Setting = row(
    "PMI_GNI_PTAG",
    Kind::Text,
    "",
    "",
    "the job's protection tag, by Cray's PMI; the first of a list with colons",
);
const COOKIE: Setting = row(
    "PMI_GNI_COOKIE",
    Kind::Text,
    "",
    "",
    "the job's cookie, by Cray's PMI; the first of a list with colons",
);
const MAX_MEDIUM: Setting = row(
    "GASNET_GNI_MAX_MEDIUM",
    Kind::Size { min: 512, max: 65408 },
    "4032",
    "bytes",
    "the largest Medium over uGNI, brought down to a multiple of 64; the same in all ranks",
);
const FMA_SHARING: Setting = row(
    "GASNET_GNI_FMA_SHARING",
    Kind::Boolean,
    "",
    "",
    "whether processes share the NIC's descriptors for short transfers; unset: if there are not enough for all on the host",
);
const MDD_SHARING: Setting = row(
    "GASNET_GNI_MDD_SHARING",
    Kind::Boolean,
    "1",
    "",
    "whether registrations share the NIC's descriptors for memory",
);
const MULTI_CHANNEL: Setting = row(
    "GASNET_GNI_BTE_MULTI_CHANNEL",
    Kind::Boolean,
    "1",
    "",
    "whether all channels of the NIC's own transfers are used",
);
/// Routes, and what a post says to take them.
const ROUTES: [(&str, u16); 7] = [
    ("ADAPTIVE_0", GNI_DLVMODE_ADAPTIVE0),
    ("ADAPTIVE_1", GNI_DLVMODE_ADAPTIVE1),
    ("ADAPTIVE_2", GNI_DLVMODE_ADAPTIVE2),
    ("ADAPTIVE_3", GNI_DLVMODE_ADAPTIVE3),
    ("IN_ORDER", GNI_DLVMODE_IN_ORDER),
    ("MIN_HASH", GNI_DLVMODE_MIN_HASH),
    ("NMIN_HASH", GNI_DLVMODE_NMIN_HASH),
];
/// Those that Gemini has.
const ROUTES_OF_GEMINI: [&str; 2] = ["ADAPTIVE_0", "IN_ORDER"];
const ROUTING: Setting = row(
    "GASNET_GNI_ROUTING_MODE",
    Kind::Choice(&[
        ROUTES[0].0,
        ROUTES[1].0,
        ROUTES[2].0,
        ROUTES[3].0,
        ROUTES[4].0,
        ROUTES[5].0,
        ROUTES[6].0,
    ]),
    ROUTES[0].0,
    "",
    "which ways transfers take through the network; Gemini has ADAPTIVE_0 and IN_ORDER alone",
);
const CONSISTENCY: Setting = row(
    "GASNET_GNI_MEM_CONSISTENCY",
    Kind::Choice(&["relaxed", "strict", "none"]),
    "relaxed",
    "",
    "the order in which the NIC's writes to registered memory can be seen",
);
const ARRIVALS: Setting = row(
    "GASNET_GNI_AMPOLL_BURST",
    Kind::Number { min: 1, max: 1 << 16 },
    "20",
    "events",
    "notifications that a poll takes at most, and so messages",
);
const DONE: Setting = row(
    "GASWORKS_GNI_POLL_BURST",
    Kind::Number { min: 1, max: 1 << 16 },
    "10",
    "events",
    "events of what was posted that a poll of a domain takes at most, but for a message that waits for room",
);
const FETCH_FROM: Setting = row(
    "GASNET_GNI_AM_RVOUS_CUTOVER",
    Kind::Number { min: 0, max: 1 << 32 },
    "16384",
    "ranks",
    "in jobs of so many ranks and more a rank gives no mailboxes, and fetches every message; 0: it always gives some",
);
const FETCHES: Setting = row(
    "GASNET_GNI_AM_RVOUS_BUFFERS",
    Kind::Number { min: 1, max: 1 << 16 },
    "64",
    "messages",
    "messages that a rank fetches at once",
);
const MAILBOXES: Setting = row(
    "GASWORKS_GNI_MAILBOXES",
    Kind::Number { min: 0, max: 1 << 20 },
    "4096",
    "ranks",
    "to how many ranks that talk to it a rank gives a mailbox at most; it fetches the others' messages",
);

const MOST_ARRIVALS: Setting = row(
    "GASNET_GNI_AM_MAX_CQE",
    Kind::Number { min: 2, max: 1 << 24 },
    "262144",
    "events",
    "notifications for which there is room at most; those that find none are made again",
);

const LONGS: Setting = row(
    "GASNET_LONG_DEPTH",
    Kind::Number { min: 1, max: 64 },
    "",
    "requests",
    "Longs to one rank that may be under way beside their payloads, and not behind them; unset: as many as requests",
);
const PACKED_LONG: Setting = row(
    "GASNET_GNI_PACKEDLONG_CUTOVER",
    Kind::Size { min: 0, max: 65408 },
    "",
    "bytes",
    "the largest payload of a Long that goes in its message, brought down to the largest Medium; unset: 3072 on Aries, the largest Medium on \
     Gemini",
);
const SPINS: Setting = row(
    "GASWORKS_GNI_SPINLOCK",
    Kind::Boolean,
    "0",
    "",
    "whether threads that wait for the lock around uGNI spin, and do not sleep; in par alone there is one",
);

const DOMAINS: Setting = row(
    "GASNET_DOMAIN_COUNT",
    Kind::Number { min: 1, max: 120 },
    "1",
    "domains",
    "domains of the NIC that a rank has in par, each for the puts and gets of some threads; the others have one. Gemini has at most 30",
);
const THREADS: Setting = row(
    "GASNET_GNI_PTHREADS_PER_DOMAIN",
    Kind::Number { min: 1, max: 1 << 16 },
    "1",
    "threads",
    "threads that are given a domain before the next one is, and after the last the first again",
);
const POLL_MASK: Setting = row(
    "GASNET_AM_DOMAIN_POLL_MASK",
    Kind::Number { min: 0, max: u32::MAX as u64 },
    "255",
    "",
    "how rarely a thread looks for what is not its domain's, messages too if it does not have the first: in one of 2^n polls, for the 2^n - 1 that is given; 0: in every poll",
);

const ENGINES: Setting = row(
    "GASNET_USE_CE",
    Kind::Boolean,
    "1",
    "",
    "whether collective engines may be used, of which Aries has some: by the barrier GNICE, and by reductions of a word, where GASNET_BARRIER asks for it",
);
const ENGINES_BESIDE_MEMORY: Setting = row(
    "GASNET_USE_CE_PSHM",
    Kind::Boolean,
    "1",
    "",
    "whether ranks that share memory meet there first, so that one of them needs an engine; 0: each has one",
);
const ENGINES_BELOW: Setting = row(
    "GASNET_GNI_CE_RADIX",
    Kind::Number { min: 1, max: 31 },
    "2",
    "engines",
    "engines below each in the tree of collective engines; the same in all ranks",
);

const REPORT: Setting = row(
    "GASNET_GNI_AM_MEMORY_REPORT",
    Kind::Boolean,
    "0",
    "",
    "rank 0 says how much memory messages take when the job starts",
);

const PINNED: Setting = Setting {
    name: "GASNET_PHYSMEM_MAX",
    aliases: &["GASNET_PHYSMEM_PINNABLE_RATIO"],
    kind: Kind::Share,
    default: "0.8",
    unit: "",
    meaning: "how much memory of a host may be registered with the NIC, in equal parts for its ranks: a fraction below 1, or a size, of \
              at least 128M; it bounds segments, and what is registered for transfers",
    reader: READER,
};
const NO_SEARCH: Setting = row(
    "GASNET_PHYSMEM_NOPROBE",
    Kind::Boolean,
    "0",
    "",
    "the largest segment follows from limits alone: nobody tries whether it can be mapped",
);
const PATIENCE: Setting = row(
    "GASWORKS_BUG3480",
    Kind::Boolean,
    "",
    "",
    "the work-around of GASNet's bug 3480: memory that is given back may not be there at once, so ranks wait for each other and try \
     again; unset: on Cray's CLE 6",
);

/// All rows that this crate reads.
pub const SETTINGS: &[Setting] = &[
    LIBRARY,
    UDREG,
    UDREG_LIBRARY,
    DEVICE,
    TAG,
    COOKIE,
    MAX_MEDIUM,
    FMA_SHARING,
    MDD_SHARING,
    MULTI_CHANNEL,
    CONSISTENCY,
    ROUTING,
    DONE,
    ARRIVALS,
    MOST_ARRIVALS,
    FETCH_FROM,
    FETCHES,
    MAILBOXES,
    LONGS,
    PACKED_LONG,
    SPINS,
    DOMAINS,
    THREADS,
    POLL_MASK,
    ENGINES,
    ENGINES_BESIDE_MEMORY,
    ENGINES_BELOW,
    REPORT,
    PINNED,
    NO_SEARCH,
    PATIENCE,
];

/// Where the library is, if a setting says it.
pub(crate) fn library() -> Option<String> {
    LIBRARY.held().map(|(_, path)| path)
}

/// What the settings say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Whether UDREG keeps registrations, and where it is.
    udreg: bool,
    udreg_library: Option<String>,
    pub max_medium: usize,
    fma_sharing: Option<bool>,
    mdd_sharing: bool,
    multi_channel: bool,
    consistency: u32,
    route: &'static str,
    pub done: u32,
    pub arrivals: u32,
    pub most_arrivals: u32,
    fetch_from: u64,
    pub fetches: u32,
    pub mailboxes: u32,
    longs: Option<u64>,
    packed_long: Option<u64>,
    /// Whether who waits for the lock spins.
    pub spins: bool,
    domains: u32,
    /// How many threads are given a domain, and what they do of the others.
    pub threads: u32,
    pub poll_mask: u32,
    /// Whether the barrier may use collective engines, whether after ranks have met in memory, and how many are below each.
    pub engines: bool,
    pub engines_beside_memory: bool,
    pub engines_below: u32,
    pub report: bool,
    pinned: Share,
    pub searches: bool,
    pub is_patient: bool,
}

/// What the launcher says of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub device: u32,
    pub tag: u8,
    pub cookie: u32,
}

/// Domains that a process can have on Gemini.
const DOMAINS_OF_GEMINI: u32 = 30;
/// Domains of a host of which each can have a descriptor for short transfers of its own, on Aries; on Gemini there are as many as there are
/// domains of a process.
const DEDICATED: u32 = 123;

/// The largest payload of a Medium, as the settings say on this chip.
///
/// # Errors
/// The setting cannot be used.
pub fn max_medium(chip: Chip) -> Result<usize, SettingError> {
    let name = if chip == Chip::Aries { "aries" } else { "gemini" };
    Ok(MAX_MEDIUM.on(name).number()?.unwrap_or(0) as usize / 64 * 64)
}

impl Settings {
    /// What they say on this chip.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn read(chip: Chip) -> Result<Self, SettingError> {
        let name = if chip == Chip::Aries { "aries" } else { "gemini" };
        let on = |setting: &Setting| setting.on(name);
        let number = |setting: &Setting| Ok::<_, SettingError>(setting.number()?.unwrap_or(0));
        Ok(Self {
            udreg: on(&UDREG).boolean()?,
            udreg_library: UDREG_LIBRARY.held().map(|(_, path)| path),
            max_medium: max_medium(chip)?,
            fma_sharing: FMA_SHARING.optional_boolean()?,
            mdd_sharing: MDD_SHARING.boolean()?,
            multi_channel: MULTI_CHANNEL.boolean()?,
            consistency: match CONSISTENCY.choice()? {
                "strict" => GNI_MEM_STRICT_PI_ORDERING,
                "none" => 0,
                _ => GNI_MEM_RELAXED_PI_ORDERING,
            },
            route: ROUTING.choice()?,
            done: number(&DONE)? as u32,
            arrivals: number(&ARRIVALS)? as u32,
            most_arrivals: number(&MOST_ARRIVALS)? as u32,
            fetch_from: number(&FETCH_FROM)?,
            fetches: number(&FETCHES)? as u32,
            mailboxes: number(&MAILBOXES)? as u32,
            longs: LONGS.number()?,
            packed_long: PACKED_LONG.number()?,
            spins: on(&SPINS).boolean()?,
            domains: number(&DOMAINS)? as u32,
            threads: number(&THREADS)? as u32,
            poll_mask: number(&POLL_MASK)? as u32,
            engines: ENGINES.boolean()?,
            engines_beside_memory: ENGINES_BESIDE_MEMORY.boolean()?,
            engines_below: number(&ENGINES_BELOW)? as u32,
            report: REPORT.boolean()?,
            pinned: pinned()?,
            searches: !NO_SEARCH.boolean()?,
            is_patient: PATIENCE
                .optional_boolean()?
                .unwrap_or_else(|| is_cle_6(Path::new("/etc/opt/cray/release/cle-release"))),
        })
    }

    /// How many Longs to one rank may be under way beside their payloads, of so many requests.
    pub fn longs(&self, tickets: u32) -> u32 {
        self.longs.map_or(tickets, |longs| tickets.min(longs as u32))
    }

    /// The largest payload of a Long that goes in its message.
    pub fn packed_long(&self, chip: Chip) -> usize {
        let usual = if chip == Chip::Aries { 3072 } else { self.max_medium };
        self.packed_long.map_or(usual, |len| len as usize).min(self.max_medium)
    }

    /// How much one of so many ranks of a host may register.
    pub fn pinned(&self, here: u32) -> Limit {
        let bytes = self.pinned.for_each(limits::total_memory().bytes, here);
        let name = PINNED.raw().map_or(PINNED.name, |(variable, _)| variable);
        Limit { bytes, who: format!("the setting {name} ({})", self.pinned) }
    }

    /// The modes of a domain, of so many on its host.
    pub fn modes(&self, chip: Chip, here: u32) -> u32 {
        let dedicated = if chip == Chip::Aries { DEDICATED } else { DOMAINS_OF_GEMINI };
        let shares = self.fma_sharing.unwrap_or(here > dedicated);
        let fma = if shares { GNI_CDM_MODE_FMA_SHARED } else { GNI_CDM_MODE_FMA_DEDICATED };
        let mdd = if self.mdd_sharing { GNI_CDM_MODE_MDD_SHARED } else { GNI_CDM_MODE_MDD_DEDICATED };
        let single = if self.multi_channel { 0 } else { GNI_CDM_MODE_BTE_SINGLE_CHANNEL };
        GNI_CDM_MODE_FORK_FULLCOPY | GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_ERR_NO_KILL | fma | mdd | single
    }

    /// The library that keeps so many registrations, if one does, and its layout.
    ///
    /// # Errors
    /// It cannot be opened, or not keep so many.
    pub fn udreg(&self, registrations: Option<usize>) -> Result<Option<(Known, u32)>, GniError> {
        if !self.udreg {
            return Ok(None);
        }
        let entries = registrations.ok_or_else(|| SettingError {
            variable: "GASNET_GNI_MEMREG".into(),
            value: "0".into(),
            wanted: "UDREG keeps a number of registrations from 1 on; GASNET_USE_UDREG=0 goes without it"
                .into(),
        })?;
        let path = self.udreg_library.as_deref();
        let udreg = Udreg::open(path).map_err(GniError::UdregLibrary)?;
        let layout = udreg::layout(path).map_err(GniError::UdregLibrary)?;
        let library = || path.unwrap_or(udreg::LIBRARY[0]).into();
        let layout = layout.ok_or_else(|| GniError::UdregLayout { library: library() })?;
        Ok(Some(((udreg, layout), u32::try_from(entries).unwrap_or(u32::MAX))))
    }

    /// How many domains a rank has whose threads communicate at once, or one at a time.
    ///
    /// # Errors
    /// The chip has not so many.
    pub fn domains(&self, chip: Chip, parallel: bool) -> Result<u32, SettingError> {
        if !parallel {
            return Ok(1);
        }
        let wanted = format!("Gemini has at most {DOMAINS_OF_GEMINI}");
        let fits = chip == Chip::Aries || self.domains <= DOMAINS_OF_GEMINI;
        let refused =
            || SettingError { variable: DOMAINS.name.into(), value: self.domains.to_string(), wanted };
        fits.then_some(self.domains).ok_or_else(refused)
    }

    /// `GNI_DLVMODE_*` of transfers.
    ///
    /// # Errors
    /// The chip has no such.
    pub fn delivery(&self, chip: Chip) -> Result<u16, SettingError> {
        let known = ROUTES.iter().find(|(name, _)| *name == self.route);
        let has = |name: &str| chip == Chip::Aries || ROUTES_OF_GEMINI.contains(&name);
        known.filter(|(name, _)| has(name)).map(|(_, mode)| *mode).ok_or_else(|| SettingError {
            variable: ROUTING.name.into(),
            value: self.route.into(),
            wanted: format!("Gemini has {}", ROUTES_OF_GEMINI.join(" and ")),
        })
    }

    /// Flags of a registration for transfers.
    pub fn memory_flags(&self) -> u32 {
        GNI_MEM_READWRITE | self.consistency
    }

    /// To how many ranks mailboxes are given in a job of so many.
    pub fn mailboxes(&self, ranks: u32) -> u32 {
        let gives = self.fetch_from == 0 || u64::from(ranks) < self.fetch_from;
        if gives { self.mailboxes.min(ranks) } else { 0 }
    }
}

/// The least that may be registered on a host.
const LEAST_PINNED: u64 = 128 << 20;

/// All of a host's, whatever is said of that.
fn pinned() -> Result<Share, SettingError> {
    let share = PINNED.share()?.map_or(Share::of_host(0.8), |share| Share { of_host: true, ..share });
    let fits = match share.amount {
        Amount::Bytes(bytes) => bytes >= LEAST_PINNED,
        Amount::Fraction(part) => part < 1.0,
    };
    let (variable, value) = PINNED.held().unwrap_or_default();
    let wanted = "wanted a fraction of memory below 1, such as 0.8 or 5/8, or a size of at least 128M".into();
    fits.then_some(share).ok_or(SettingError { variable: variable.into(), value, wanted })
}

/// Whether Cray's system says that it is of the sixth version.
fn is_cle_6(release: &Path) -> bool {
    std::fs::read_to_string(release).is_ok_and(|text| text.lines().any(|line| line.starts_with("RELEASE=6.")))
}

/// Flags of a registration that messages go through: the message can be seen before its letter.
pub(crate) const MESSAGE_FLAGS: u32 = GNI_MEM_READWRITE | GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH;

impl Credentials {
    pub fn read() -> Result<Self, GniError> {
        let first = |setting: &Setting, most: u64| -> Result<u64, GniError> {
            let (variable, value) = setting.raw().ok_or(GniError::NoJob { variable: setting.name })?;
            let number = value.split(':').next().and_then(|first| first.trim().parse().ok());
            number.filter(|number| *number <= most).ok_or_else(|| {
                let wanted = format!("wanted a number up to {most}, or several with colons between");
                SettingError { variable: variable.into(), value, wanted }.into()
            })
        };
        Ok(Self {
            device: first(&DEVICE, u32::MAX.into())? as u32,
            tag: first(&TAG, u8::MAX.into())? as u8,
            cookie: first(&COOKIE, u32::MAX.into())? as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_has_few_of_the_routes() {
        let settings = Settings::read(Chip::Gemini).expect("nothing is set here");
        assert_eq!(settings.delivery(Chip::Gemini), Ok(GNI_DLVMODE_PERFORMANCE));
        for (route, mode) in ROUTES {
            let settings = Settings { route, ..settings.clone() };
            assert_eq!(settings.delivery(Chip::Aries), Ok(mode));
            let there = ROUTES_OF_GEMINI.contains(&route);
            assert_eq!(settings.delivery(Chip::Gemini).is_ok(), there, "{route}");
        }
        let refused =
            Settings { route: "MIN_HASH", ..settings }.delivery(Chip::Gemini).expect_err("it has none");
        let wanted = "setting GASNET_GNI_ROUTING_MODE=\"MIN_HASH\": Gemini has ADAPTIVE_0 and IN_ORDER";
        assert_eq!(refused.to_string(), wanted);
    }

    #[test]
    fn descriptors_are_shared_where_there_are_not_enough() {
        let usual = Settings::read(Chip::Aries).expect("nothing is set");
        let (shared, dedicated) = (GNI_CDM_MODE_FMA_SHARED, GNI_CDM_MODE_FMA_DEDICATED);
        let modes = |chip, here| usual.modes(chip, here) & (shared | dedicated);
        for (chip, most) in [(Chip::Aries, 123), (Chip::Gemini, 30)] {
            assert_eq!([modes(chip, most), modes(chip, most + 1)], [dedicated, shared], "{chip:?}");
        }
        let asked = |answer| Settings { fma_sharing: Some(answer), ..usual.clone() };
        assert_eq!(asked(true).modes(Chip::Gemini, 1) & shared, shared);
        assert_eq!(asked(false).modes(Chip::Gemini, 31) & dedicated, dedicated);
    }
}
