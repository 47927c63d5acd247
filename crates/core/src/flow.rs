//! The settings of flow control, in the seed's names, of waiting, and of how other processes are reached.

use gasworks_os::settings::{Kind, Setting, SettingError};
use gasworks_sock::sleeper::Policy;

/// How much may be under way before a sender polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Requests to one peer.
    pub depth: u32,
    /// Requests to all peers together.
    pub total: u32,
    /// Bytes of request payload to one peer.
    pub volume: u64,
}

const DEPTH: Setting = Setting {
    name: "GASNET_NETWORKDEPTH",
    aliases: &[],
    kind: Kind::Number { min: 1, max: 4096 },
    default: "",
    unit: "requests",
    meaning: "requests that may be under way from one rank to one other; 256 over pshm, 64 on Aries, where there may be no more over \
              uGNI, elsewhere 12",
    reader: "core",
};
const TOTAL: Setting = Setting {
    name: "GASNET_NETWORKDEPTH_TOTAL",
    aliases: &[],
    kind: Kind::Number { min: 1, max: 65536 },
    default: "",
    unit: "requests",
    meaning: "requests that may be under way from one rank to all others; 512 over pshm, elsewhere 64",
    reader: "core",
};
const SPACE: Setting = Setting {
    name: "GASNET_NETWORKDEPTH_SPACE",
    aliases: &[],
    kind: Kind::Size { min: 0, max: u64::MAX },
    default: "",
    unit: "bytes",
    meaning: "bytes of request payload under way from one rank to one other, brought within 2 to 64 of the \
              transport's largest Medium; over pshm 768K (12 Mediums), on Aries 4 Mediums, elsewhere 12K",
    reader: "core",
};

const SPIN: Setting = Setting {
    name: "GASWORKS_SPIN",
    aliases: &[],
    kind: Kind::Number { min: 0, max: 1_000_000_000 },
    default: "",
    unit: "polls",
    meaning: "empty polls before a waiting rank yields its core; 2000 where every rank has a core, else 0",
    reader: "core",
};

const WAIT: Setting = Setting {
    name: "GASWORKS_WAIT",
    aliases: &[],
    kind: Kind::Choice(&["spinblock", "spin", "block"]),
    default: "spinblock",
    unit: "",
    meaning: "how a rank waits: it spins, then yields, then sleeps (spinblock), only spins, or sleeps at once (block)",
    reader: "core",
};

const PROCESS_VM: Setting = Setting {
    name: "GASWORKS_PROCESS_VM",
    aliases: &[],
    kind: Kind::Boolean,
    default: "1",
    unit: "",
    meaning: "ranks of a host reach memory that a rank has given to a region by process_vm_readv and process_vm_writev where the system \
              allows it, and do not wait for its owner to poll; 0, or where it does not: by messages",
    reader: "core",
};

/// The rows of this crate in the table of settings.
pub const SETTINGS: &[Setting] = &[DEPTH, TOTAL, SPACE, SPIN, WAIT, PROCESS_VM, crate::observe::OBSERVE_FD];

/// How a rank waits: the specification's `GASNET_WAIT_SPIN`, `_BLOCK` and `_SPINBLOCK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// It spins and never gives its processor away: for a rank that has one to itself.
    Spin,
    /// It sleeps as soon as there is nothing to do: for a processor that has other work.
    Block,
    /// It spins for a while, yields for a while, then sleeps. Where ranks share processors it does not spin.
    SpinBlock,
}

impl WaitMode {
    pub(crate) fn from_number(number: u32) -> Self {
        const SPIN: u32 = WaitMode::Spin as u32;
        const BLOCK: u32 = WaitMode::Block as u32;
        match number {
            SPIN => WaitMode::Spin,
            BLOCK => WaitMode::Block,
            _ => WaitMode::SpinBlock,
        }
    }
}

/// How a rank waits in each mode, and the mode it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The mode at first.
    pub mode: WaitMode,
    /// What [`WaitMode::SpinBlock`] means on this host.
    pub spin_block: Policy,
}

impl Patience {
    /// Spins, yields, sleeps as this policy says.
    pub fn new(spin_block: Policy) -> Self {
        Self { mode: WaitMode::SpinBlock, spin_block }
    }

    pub(crate) fn policy(&self, mode: WaitMode) -> Policy {
        match mode {
            WaitMode::Spin => Policy { spins: u32::MAX, ..self.spin_block },
            WaitMode::Block => Policy { spins: 0, yields: 0, ..self.spin_block },
            WaitMode::SpinBlock => self.spin_block,
        }
    }
}

/// How a rank waits that shares `cores` cores with all in all `ranks` ranks, unless the settings say otherwise.
///
/// # Errors
/// A setting is not one of its words, not a number or out of its limits.
pub fn patience(ranks: usize, cores: usize) -> Result<Patience, SettingError> {
    let spins = SPIN.number()?.map(|spins| spins as u32);
    let spin_block = spins.map_or_else(|| Policy::for_host(ranks, cores), Policy::spinning);
    let mode = match WAIT.choice()? {
        "spin" => WaitMode::Spin,
        "block" => WaitMode::Block,
        _ => WaitMode::SpinBlock,
    };
    Ok(Patience { mode, spin_block })
}

/// Whether memory that ranks give to regions is reached by `process_vm_*`, where there is no network and the system allows it.
///
/// # Errors
/// The setting is neither 0 nor 1.
pub fn process_vm() -> Result<bool, SettingError> {
    PROCESS_VM.boolean()
}

impl Flow {
    /// What the seed allows over a network: 12 requests to one peer, 64 to all, 12K bytes.
    pub const SEED: Flow = Flow { depth: 12, total: 64, volume: 12 << 10 };

    /// Reads the settings for a transport whose largest Medium is this and that allows this much by default.
    ///
    /// # Errors
    /// A setting is not a number or out of its limits.
    pub fn from_settings(max_medium: usize, default: Flow) -> Result<Self, SettingError> {
        let number = |setting: &Setting, default: u64| Ok(setting.number()?.unwrap_or(default));
        Ok(Self {
            depth: number(&DEPTH, default.depth.into())? as u32,
            total: number(&TOTAL, default.total.into())? as u32,
            volume: number(&SPACE, default.volume)?,
        }
        .within(max_medium))
    }

    /// Brings the volume within 2 to 64 Mediums of `max_medium` bytes, silently, as the seed wants it, and the numbers to
    /// at least 1.
    #[must_use]
    pub fn within(mut self, max_medium: usize) -> Self {
        let medium = max_medium as u64;
        (self.depth, self.total) = (self.depth.max(1), self.total.max(1));
        self.volume = self.volume.clamp(2 * medium, 64 * medium).min(u64::from(u32::MAX));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_is_brought_within_2_to_64_mediums() {
        let flow = |volume| Flow { depth: 12, total: 64, volume }.within(4032).volume;
        assert_eq!(flow(12 << 10), 12 << 10);
        assert_eq!(flow(0), 2 * 4032);
        assert_eq!(flow(u64::MAX), 64 * 4032);
    }

    #[test]
    fn the_seed_of_all_flow_is_what_the_seed_allows() {
        assert_eq!(Flow::SEED, Flow { depth: 12, total: 64, volume: 12288 });
        let none = Flow { depth: 0, total: 0, volume: u64::MAX };
        assert_eq!(none.within(1 << 30), Flow { depth: 1, total: 1, volume: u32::MAX.into() });
    }

    #[test]
    fn each_mode_has_its_policy() {
        let usual = Policy { spins: 3, yields: 4, ..Policy::spinning(0) };
        let patience = Patience::new(usual);
        assert_eq!((patience.mode, patience.spin_block), (WaitMode::SpinBlock, usual));
        let rows = [
            (WaitMode::Spin, Policy { spins: u32::MAX, ..usual }),
            (WaitMode::Block, Policy { spins: 0, yields: 0, ..usual }),
            (WaitMode::SpinBlock, usual),
        ];
        for (mode, policy) in rows {
            assert_eq!((patience.policy(mode), WaitMode::from_number(mode as u32)), (policy, mode));
        }
        assert_eq!(WaitMode::from_number(3), WaitMode::SpinBlock);
    }

    #[cfg(not(miri))]
    type Row = (&'static [(&'static str, &'static str)], Result<(Flow, Patience), &'static str>);

    /// The environment is a process's own, so each row asks another one.
    #[cfg(not(miri))]
    #[test]
    fn settings_say_how_much_and_how_to_wait() {
        let (usual, patience) = (Flow::SEED, Patience::new(Policy::for_host(2, 2)));
        let spinning = Patience { mode: WaitMode::Spin, spin_block: Policy::spinning(7) };
        let rows: [Row; 8] = [
            (&[], Ok((usual, patience))),
            (&[("GASNET_NETWORKDEPTH", "5")], Ok((Flow { depth: 5, ..usual }, patience))),
            (&[("GASNET_NETWORKDEPTH_TOTAL", "7")], Ok((Flow { total: 7, ..usual }, patience))),
            (&[("GASNET_NETWORKDEPTH_SPACE", "64K")], Ok((Flow { volume: 65536, ..usual }, patience))),
            (&[("GASWORKS_SPIN", "7"), ("GASWORKS_WAIT", "spin")], Ok((usual, spinning))),
            (&[("GASWORKS_WAIT", "block")], Ok((usual, Patience { mode: WaitMode::Block, ..patience }))),
            (&[("GASNET_NETWORKDEPTH", "0")], Err("GASNET_NETWORKDEPTH")),
            (&[("GASWORKS_WAIT", "never")], Err("GASWORKS_WAIT")),
        ];
        let asked = std::env::args().find_map(|arg| arg.strip_prefix("row=").map(str::to_owned));
        if let Some(row) = asked {
            let found =
                Flow::from_settings(4032, Flow::SEED).and_then(|flow| Ok((flow, super::patience(2, 2)?)));
            match &rows[row.parse::<usize>().expect("a number")].1 {
                Ok(wanted) => assert_eq!(found.as_ref().ok(), Some(wanted)),
                Err(wanted) => assert!(found.is_err_and(|error| error.to_string().contains(wanted))),
            }
            return;
        }
        for (row, (settings, _)) in rows.iter().enumerate() {
            let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
            child.args([
                "--exact",
                "flow::tests::settings_say_how_much_and_how_to_wait",
                &format!("row={row}"),
            ]);
            let output = child.envs(settings.iter().copied()).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{settings:?}: {text}");
        }
    }
}
