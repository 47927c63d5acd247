//! The settings of this crate, and how a set's [`Options`] are read from them.

use gasworks_os::settings::{Kind, Setting};

use crate::{Class, Error, Options};

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[PORT_RANGE, INTERFACES, INTERFACE_HOSTNAME, BUFFER];

const PORT_RANGE: Setting = Setting {
    name: "GASWORKS_PORT_RANGE",
    aliases: &["MPIEXEC_PORT_RANGE", "MPICH_PORT_RANGE"],
    kind: Kind::Text,
    default: "",
    unit: "ports",
    meaning: "the local ports of TCP listeners and connectors, as lowest:highest; unset: the system chooses",
    reader: "gasworks-sock",
};

const INTERFACES: Setting = Setting {
    name: "GASWORKS_INTERFACES",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the network interfaces by which others may reach this host, such as eth0,ib*; with ^ in front: all but these",
    reader: "gasworks-sock",
};

const INTERFACE_HOSTNAME: Setting = Setting {
    name: "GASWORKS_INTERFACE_HOSTNAME",
    aliases: &["MPICH_INTERFACE_HOSTNAME"],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "the name or address by which others reach this host, tried before those of its interfaces",
    reader: "gasworks-sock",
};

const BUFFER: Setting = Setting {
    name: "GASWORKS_SOCKET_BUFFER",
    aliases: &[],
    kind: Kind::Size { min: 2 << 10, max: 1 << 30 },
    default: "",
    unit: "bytes",
    meaning: "the size of a socket's send and receive buffer; unset: the system's own",
    reader: "gasworks-sock",
};

/// What the host description is made from.
pub(crate) fn description() -> (String, String) {
    (INTERFACES.text(), INTERFACE_HOSTNAME.text())
}

impl Options {
    /// The usual options, with what the settings say about ports and buffers.
    ///
    /// # Errors
    /// `BadPort` or `BadLen`, with the setting and what it should have been.
    pub fn from_settings() -> Result<Self, Error> {
        const OPERATION: &str = "read the settings of sockets";
        let mut options = Options::default();
        if let Some((variable, value)) = PORT_RANGE.held() {
            options.ports = parse_ports(&value).ok_or_else(|| {
                let why = format!("{variable}={value:?}: wanted lowest:highest, each from 1 to 65535");
                Error::new(Class::BadPort, OPERATION).cause(why)
            })?;
        }
        let number = BUFFER.number();
        let number = number.map_err(|e| Error::new(Class::BadLen, OPERATION).cause(e.to_string()))?;
        options.buffer = number.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(options)
    }
}

/// `low:high`; `0:0`, as MPICH has it, leaves the choice to the system.
fn parse_ports(text: &str) -> Option<Option<std::ops::RangeInclusive<u16>>> {
    let (low, high) = text.split_once(':')?;
    let (low, high): (u16, u16) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    match (low, high) {
        (0, 0) => Some(None),
        (0, _) => None,
        _ if low > high => None,
        _ => Some(Some(low..=high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_ports_in_order() {
        assert_eq!(parse_ports("4000:4010"), Some(Some(4000..=4010)));
        assert_eq!(parse_ports(" 7 : 7 "), Some(Some(7..=7)));
        assert_eq!(parse_ports("0:0"), Some(None));
        for bad in ["", "4000", "4010:4000", "0:10", "1:65536", "a:b", "-1:5", "1:2:3"] {
            assert_eq!(parse_ports(bad), None, "{bad}");
        }
    }
}
