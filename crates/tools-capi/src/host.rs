//! The name of this machine.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

static HOST: OnceLock<CString> = OnceLock::new();

/// The name of this machine.
pub fn name() -> &'static CString {
    HOST.get_or_init(|| {
        let name = nix::unistd::gethostname().unwrap_or_else(|_| "unknown".into());
        CString::new(name.as_bytes()).unwrap_or_default()
    })
}

/// The same for C.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gethostname() -> *const c_char {
    name().as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_the_name_that_the_system_says() {
        assert_eq!(name().as_bytes(), nix::unistd::gethostname().expect("a name").as_bytes());
    }
}
