//! The environment as a whole, to hand it on, and writing it, for libraries of others that read it when they are called.
//!
//! # Invariants
//! - environ.1: the environment is written by a process's only thread, or while no other thread uses it, as the caller promises:
//!   nobody can be reading it.

use std::ffi::OsString;

use crate::settings::Setting;

/// All of it: names and values.
#[allow(clippy::disallowed_methods)] // it is handed on, not read
pub fn all() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Gives the variable of a setting its default, unless the variable is set. `false`: it could not be, since this process
/// has other threads, which may be reading the environment.
pub fn set_default(setting: &Setting) -> bool {
    if setting.raw().is_some() {
        return true;
    }
    // A thread starts no other while it does something else: where there is one, there will be one.
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if alone {
        // SAFETY: environ.1: `alone` says that this is the process's only thread, and it starts no other meanwhile.
        unsafe { std::env::set_var(setting.name, setting.usual()) };
    }
    alone
}

/// Gives the variable of a setting a value, unless the variable is set: for libraries whose job it is to leave something in the
/// environment of a process that may have threads already.
///
/// # Safety
/// No other thread of the process reads or writes the environment meanwhile (environ.1).
pub unsafe fn set_unless_set(setting: &Setting, value: &str) {
    if setting.raw().is_none() {
        // SAFETY: environ.1: the caller promises what `set` asks for, that no other thread uses the environment meanwhile.
        unsafe { set(setting, value) };
    }
}

/// The same, whatever was there: for what is so of this process alone, and was inherited of another.
///
/// # Safety
/// As of [`set_unless_set`].
pub unsafe fn set(setting: &Setting, value: &str) {
    // SAFETY: environ.1: no other thread reads or writes the environment while the variable is set, as the caller promises.
    unsafe { std::env::set_var(setting.name, value) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Kind;

    #[test]
    fn other_threads_keep_the_environment_as_it_is() {
        let setting = |name| Setting {
            name,
            aliases: &[],
            kind: Kind::Text,
            default: "1",
            unit: "",
            meaning: "",
            reader: "",
        };
        let (hold, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv().is_err());
        assert!(!set_default(&setting("GASWORKS_TEST_OF_ENVIRON")));
        assert_eq!(setting("GASWORKS_TEST_OF_ENVIRON").raw(), None);
        assert!(set_default(&setting("PATH")), "it is set");
        drop(hold);
        assert!(other.join().expect("ended"));
    }

    #[test]
    fn what_is_set_stays() {
        let setting = |name| Setting {
            name,
            aliases: &[],
            kind: Kind::Text,
            default: "",
            unit: "",
            meaning: "",
            reader: "",
        };
        let (ours, path) = (setting("GASWORKS_TEST_OF_SETTING"), setting("PATH"));
        let before = path.raw();
        for value in ["first", "second"] {
            // SAFETY: environ.1: the tests of this crate read and write the environment through the standard library alone, which
            // has a lock for it.
            unsafe {
                set_unless_set(&ours, value);
                set_unless_set(&path, value);
            }
        }
        assert_eq!(ours.raw(), Some((ours.name, "first".to_owned())));
        assert_eq!(path.raw(), before);
    }
}
