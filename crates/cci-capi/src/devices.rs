//! The devices, and how often the library was initialised.

use crate::abi::{CDevice, EINVAL, ENODEV, ERR_NOT_FOUND, ERROR, of_call, of_create};
use crate::config::{self, Section, TRANSPORT};
use gasworks_cci::directory::DirectoryError;
use gasworks_cci::endpoint::{CallError, CreateError, Endpoint, EndpointConfig};
use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting};
use parking_lot::RwLock;
use std::cmp::Reverse;
use std::ffi::{CString, c_int};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const CONFIG: Setting = Setting {
    name: "CCI_CONFIG",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "The file that describes the devices of CCI's programs",
    reader: "cci-capi",
};

const DEBUG: Setting = Setting {
    name: "CCI_DEBUG",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "Whether the library says on standard error why calls of CCI's programs fail",
    reader: "cci-capi",
};

/// Bits per second of a copy, roughly: devices have to name a rate.
const RATE: u64 = 64_000_000_000;
/// How many addresses of a process are tried.
const MAX_IDS: u32 = 1 << 16;

/// A device, with all that its structure points to.
#[derive(Debug)]
pub struct Device {
    public: CDevice,
    section: Section,
    _texts: Vec<CString>,
    _arguments: Vec<usize>,
}

impl Device {
    fn new(section: Section) -> Self {
        // A line of the file has no zero byte that would be of use to anybody.
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let info = format!(
            "memory of this host; directory of endpoints: {}; address: {}/{}; up to {} bytes a message; {:?}",
            section.endpoints.base,
            section.pid.map_or("PID".into(), |pid| pid.to_string()),
            section.id.map_or("ID".into(), |id| id.to_string()),
            section.endpoints.max_send,
            section.endpoints.backend,
        );
        let mut texts = vec![text(&section.name), text(TRANSPORT), text(&info)];
        texts.extend(section.arguments.iter().map(|argument| text(argument)));
        let addresses: Vec<usize> = texts.iter().map(|text| text.as_ptr().expose_provenance()).collect();
        let arguments: Vec<usize> = addresses[3..].iter().copied().chain([0]).collect();
        let public = CDevice {
            name: addresses[0],
            transport: addresses[1],
            up: 1,
            info: addresses[2],
            conf_argv: arguments.as_ptr().expose_provenance(),
            max_send_size: section.endpoints.max_send as u32,
            rate: RATE,
            pci: [u32::MAX; 4],
        };
        Self { public, section, _texts: texts, _arguments: arguments }
    }

    /// The address of its structure.
    pub fn address(&self) -> usize {
        (&raw const self.public).expose_provenance()
    }

    /// Makes an endpoint, at an address if one is given.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(&self, service: Option<(u32, u32)>, wakes: bool) -> Result<Endpoint, CreateError> {
        let at = |service| {
            let config = EndpointConfig { service, wakes, ..self.section.endpoints.clone() };
            Endpoint::create(config)
        };
        match (service, self.section.pid, self.section.id) {
            (Some(service), ..) => at(Some(service)),
            (None, None, None) => at(None),
            (None, pid, Some(id)) => at(Some((pid.unwrap_or(std::process::id()), id))),
            (None, Some(pid), None) => {
                let of_process = Path::new(&self.section.endpoints.base).join(pid.to_string());
                let mut free = (0..MAX_IDS).filter(|id| !of_process.join(id.to_string()).exists());
                loop {
                    let id = free.next().unwrap_or(MAX_IDS);
                    match at(Some((pid, id))) {
                        // Another process has chosen it at the same time.
                        Err(CreateError::Directory(DirectoryError::InUse { .. })) if id < MAX_IDS => {}
                        made => return made,
                    }
                }
            }
        }
    }
}

/// What the library is between the first `cci_init` and the last `cci_finalize`.
pub struct Library {
    /// How many inits have no finalize yet.
    inits: u32,
    devices: Vec<Arc<Device>>,
    /// Their addresses, with null at the end.
    listed: Vec<usize>,
    /// The number in the list of the device that is used where none is named.
    default: usize,
}

static LIBRARY: RwLock<Library> =
    RwLock::new(Library { inits: 0, devices: Vec::new(), listed: Vec::new(), default: 0 });

/// `cci_init`
///
/// # Errors
/// `CCI_ERROR`, `CCI_ERR_NOT_FOUND`.
pub fn init() -> Result<(), c_int> {
    let mut library = LIBRARY.write();
    if library.inits == 0 {
        let mut sections = sections()?;
        sections.sort_by_key(|section| Reverse(section.priority));
        library.default = sections.iter().position(|section| section.is_default).unwrap_or(0);
        library.devices = sections.into_iter().map(|section| Arc::new(Device::new(section))).collect();
        library.listed = library.devices.iter().map(|device| device.address()).chain([0]).collect();
    }
    library.inits += 1;
    Ok(())
}

/// The devices that the configuration file describes; without one, one device.
fn sections() -> Result<Vec<Section>, c_int> {
    let Some((_, path)) = CONFIG.raw() else { return Ok(vec![Section::new(TRANSPORT)]) };
    let text = std::fs::read_to_string(&path).map_err(|cause| {
        say(&format!("cci: cannot read the file {path} (CCI_CONFIG): {cause}\n"));
        if cause.kind() == ErrorKind::NotFound { ERR_NOT_FOUND } else { ERROR }
    })?;
    let sections = config::parse(&text).map_err(|error| {
        say(&format!("cci: {path}:{error}\n"));
        ERROR
    })?;
    if sections.is_empty() {
        say(&format!("cci: {path}: no device has the transport {TRANSPORT}\n"));
        return Err(ERR_NOT_FOUND);
    }
    Ok(sections)
}

/// `cci_finalize`; the last one calls `last` before the devices go.
///
/// # Errors
/// `CCI_ERROR`: there was no init.
pub fn finalize(last: impl FnOnce()) -> Result<(), c_int> {
    let mut library = LIBRARY.write();
    library.inits = library.inits.checked_sub(1).ok_or(ERROR)?;
    if library.inits == 0 {
        last();
        (library.devices, library.listed) = Default::default();
    }
    Ok(())
}

/// The address of the list of devices.
///
/// # Errors
/// `CCI_ENODEV`: the library is not initialised.
pub fn list() -> Result<usize, c_int> {
    let library = LIBRARY.read();
    if library.inits == 0 { Err(ENODEV) } else { Ok(library.listed.as_ptr().expose_provenance()) }
}

/// Calls `make` with the device at an address, or the default one for null, while the library stays initialised.
///
/// # Errors
/// `CCI_ENODEV`: the library is not initialised. `CCI_EINVAL`: there is no such device. What `make` says.
pub fn with<T>(address: usize, make: impl FnOnce(&Device) -> Result<T, c_int>) -> Result<T, c_int> {
    let library = LIBRARY.read();
    if library.inits == 0 {
        return Err(ENODEV);
    }
    let number = match address {
        0 => Some(library.default),
        _ => library.listed.iter().position(|listed| *listed == address),
    };
    let device = number.and_then(|number| library.devices.get(number)).ok_or(EINVAL)?;
    make(device)
}

/// Says why a call fails, if `CCI_DEBUG` asks for it.
#[cold]
pub fn explain(call: &str, error: &dyn std::fmt::Display) {
    if DEBUG.raw().is_some() {
        say(&format!("{call}: {error}\n"));
    }
}

/// The status where there is no endpoint.
#[cold]
pub fn refused(error: &CreateError) -> c_int {
    explain("cci_create_endpoint", error);
    of_create(error)
}

/// The status of a call that did nothing.
#[cold]
pub fn failed(call: &str, error: &CallError) -> c_int {
    // Programs meet these in the course of their work, and try again.
    if !matches!(error, CallError::NoRoom | CallError::NoBuffers) {
        explain(call, error);
    }
    of_call(error)
}
