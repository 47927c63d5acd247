//! The file that `CCI_CONFIG` names.
//!
//! ```text
//! # A device; its name is the program's to choose.
//! [node]
//! transport = sm
//! priority = 80        # 0 to 100, 50 where nothing is said
//! default = 1          # of one device at most
//! path = /run/cci      # the directory of its endpoints
//! pid = 7              # and their addresses there
//! id = 1
//! max_send_size = 4096
//! backend = fifo       # or rings
//! ```
//!
//! Devices of other transports are left out. What else a section says is kept for programs to read.

use gasworks_cci::channel::MAX_SEND;
use gasworks_cci::endpoint::{Backend, EndpointConfig};
use gasworks_cci::uri::Uri;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The transport of this library.
pub const TRANSPORT: &str = "sm";
/// The priority of a device of which nothing is said, and the highest.
pub const USUAL_PRIORITY: u8 = 50;
const MAX_PRIORITY: u8 = 100;

/// A device as the file describes it.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The higher, the earlier it comes.
    pub priority: u8,
    /// Whether it is used where a program names none.
    pub is_default: bool,
    /// How its endpoints are set up, but for their address.
    pub endpoints: EndpointConfig,
    /// The process in the address of its endpoints, if it is given.
    pub pid: Option<u32>,
    /// The number there.
    pub id: Option<u32>,
    /// What this library does not read, and what it does, as `key=value`.
    pub arguments: Vec<String>,
}

impl Section {
    /// A device of which nothing but its name is said.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            priority: USUAL_PRIORITY,
            is_default: false,
            endpoints: EndpointConfig::default(),
            pid: None,
            id: None,
            arguments: Vec::new(),
        }
    }
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    line: usize,
    what: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// A section that is being read.
struct Open {
    section: Section,
    /// Where it begins.
    line: usize,
    transport: Option<String>,
    /// The keys that it has.
    keys: BTreeSet<String>,
    /// What is wrong with it, if it is of this transport.
    error: Option<ConfigError>,
}

/// The devices of this transport that a file describes, in its order.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<Vec<Section>, ConfigError> {
    let (mut sections, mut open, mut names) = (Vec::new(), None::<Open>, BTreeSet::new());
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: String| ConfigError { line: at + 1, what };
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| wrong(format!("{line}: wanted [NAME]")))?;
            if !names.insert(name.to_owned()) {
                return Err(wrong(format!("[{name}]: there is another device of this name")));
            }
            close(open.take(), &mut sections)?;
            open = Some(Open {
                section: Section::new(name),
                line: at + 1,
                transport: None,
                keys: BTreeSet::new(),
                error: None,
            });
            continue;
        }
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) = pair
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| wrong(format!("{line:?}: wanted KEY = VALUE or [NAME]")))?;
        let open = open.as_mut().ok_or_else(|| wrong(format!("{key}: there is no [NAME] before it")))?;
        if !open.keys.insert(key.to_owned()) {
            return Err(wrong(format!("{key}: it is given twice")));
        }
        if key == "transport" {
            open.transport = Some(value.into());
        } else if let Err(wanted) = set(&mut open.section, key, value) {
            open.error.get_or_insert(wrong(format!("{key} = {value}: {wanted}")));
        }
    }
    close(open, &mut sections)?;
    Ok(sections)
}

/// Adds a section that has ended, if it is of this transport.
fn close(open: Option<Open>, sections: &mut Vec<Section>) -> Result<(), ConfigError> {
    let Some(Open { section, line, transport, error, .. }) = open else { return Ok(()) };
    let wrong = |what: String| ConfigError { line, what };
    let name = &section.name;
    match transport.as_deref() {
        None => return Err(wrong(format!("[{name}]: it does not say which transport it is of"))),
        Some(TRANSPORT) => {}
        Some(_) => return Ok(()),
    }
    if let Some(error) = error {
        return Err(error);
    }
    if section.is_default && sections.iter().any(|other| other.is_default) {
        return Err(wrong(format!("[{name}]: another device is the default")));
    }
    let base = &section.endpoints.base;
    let (pid, id) = (section.pid.unwrap_or(i32::MAX as u32), section.id.unwrap_or(0));
    Uri::new(base, pid, id).map_err(|error| wrong(format!("[{name}]: {error}")))?;
    sections.push(section);
    Ok(())
}

/// Takes what a line says. Otherwise what was wanted.
fn set(section: &mut Section, key: &str, value: &str) -> Result<(), String> {
    match key {
        "priority" => section.priority = number(value, 0, MAX_PRIORITY)?,
        "default" => section.is_default = boolean(value)?,
        _ => {
            match key {
                "path" => section.endpoints.base = absolute(value)?,
                "pid" => section.pid = Some(number(value, 0, u32::MAX)?),
                "id" => section.id = Some(number(value, 0, u32::MAX)?),
                "max_send_size" => section.endpoints.max_send = number(value, 1, MAX_SEND)?,
                "backend" => section.endpoints.backend = backend(value)?,
                _ => {}
            }
            section.arguments.push(format!("{key}={value}"));
        }
    }
    Ok(())
}

fn number<T: FromStr + PartialOrd + fmt::Display>(value: &str, min: T, max: T) -> Result<T, String> {
    let number = value.parse().ok().filter(|number| (&min..=&max).contains(&number));
    number.ok_or_else(|| format!("wanted a number from {min} to {max}"))
}

fn boolean(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("wanted 0 or 1".into()),
    }
}

fn backend(value: &str) -> Result<Backend, String> {
    match value {
        "rings" => Ok(Backend::Rings),
        "fifo" => Ok(Backend::Fifo),
        _ => Err("wanted rings or fifo".into()),
    }
}

/// A path from the root on.
fn absolute(value: &str) -> Result<String, String> {
    let path = std::path::absolute(value).map_err(|cause| format!("wanted a path: {cause}"))?;
    path.into_os_string().into_string().map_err(|_| "wanted a path in UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_file_is_read() {
        let text = "# comment\n\n[one] # a device\ntransport = sm\npriority = 10\ncolour = blue\n\
                    [other]\ntransport = tcp\npriority = quick\n\
                    [two]\n; comment\ntransport=sm\n default = yes\npath = /run/cci/\npid = 7\nid=3\nmax_send_size = 4096\nbackend = fifo\n";
        let found = parse(text).expect("a good file");
        let [one, two] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((&*one.name, one.priority, one.is_default), ("one", 10, false));
        assert_eq!(one.arguments, ["colour=blue"]);
        assert_eq!((one.pid, one.id, one.endpoints.max_send), (None, None, MAX_SEND));
        assert_eq!((&*two.name, two.priority, two.is_default), ("two", USUAL_PRIORITY, true));
        assert_eq!((two.pid, two.id, two.endpoints.max_send), (Some(7), Some(3), 4096));
        assert_eq!(two.endpoints.backend, Backend::Fifo);
        assert!(two.endpoints.base.starts_with("/run/cci"), "{}", two.endpoints.base);
        assert_eq!(two.arguments.len(), 5);
        assert!(parse("").expect("nothing is wrong with it").is_empty());
    }

    #[test]
    fn a_relative_path_is_made_absolute() {
        let found = parse("[a]\ntransport = sm\npath = here/cci").expect("a good file");
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(found[0].endpoints.base, here.join("here/cci").display().to_string());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let long = format!("[a]\ntransport = sm\npath = /{}", "x".repeat(100));
        for (text, wanted) in [
            ("key = 1", "1: key: there is no [NAME] before it"),
            ("[a", "1: [a: wanted [NAME]"),
            ("[]", "1: []: wanted [NAME]"),
            ("[a]\nwhat", "2: \"what\": wanted KEY = VALUE or [NAME]"),
            ("[a]\n= 7", "2: \"= 7\": wanted KEY = VALUE or [NAME]"),
            ("[a]\npriority = 1\n[b]\n", "1: [a]: it does not say which transport"),
            ("[a]\ntransport = sm\n[a]", "3: [a]: there is another device"),
            ("[a]\ntransport = sm\ntransport = sm", "3: transport: it is given twice"),
            ("[a]\npriority = 101\ntransport = sm", "2: priority = 101: wanted a number from 0 to 100"),
            ("[a]\ntransport = sm\npriority = -1", "3: priority = -1: wanted a number"),
            ("[a]\ntransport = sm\ndefault = maybe", "3: default = maybe: wanted 0 or 1"),
            ("[a]\ntransport = sm\nid = 4294967296", "3: id = 4294967296: wanted a number"),
            (
                "[a]\ntransport = sm\nmax_send_size = 0",
                "3: max_send_size = 0: wanted a number from 1 to 65536",
            ),
            ("[a]\ntransport = sm\nbackend = pipe", "3: backend = pipe: wanted rings or fifo"),
            ("[a]\ntransport = sm\npath = /a/../b", "1: [a]: "),
            ("[a]\ntransport = sm\ndefault = 1\n[b]\ntransport = sm\ndefault = 1", "4: [b]: another device"),
            (&*long, "use a shorter directory"),
        ] {
            let found = refused(text);
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([\\[\\]=#a-z0-9 /.]|\n|transport = sm\n|\\PC){0,80}") {
            if let Ok(found) = parse(&text) {
                prop_assert!(found.iter().filter(|section| section.is_default).count() <= 1);
            }
        }
    }
}
