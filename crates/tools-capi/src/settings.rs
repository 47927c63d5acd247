//! The settings that the tools read. They are read by C's own rules, and where C asks for it; their names, and what holds where nothing is
//! said, stand here alone.

use crate::numbers;
use crate::text::c_text;
use crate::variable::value;
use gasworks_os::settings::{Kind, Setting};
use std::ffi::CString;

const READER: &str = "gasworks-tools";
/// The default of what is on unless a variable says no.
pub(crate) const YES: &str = "1";

const fn row(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Setting {
    Setting { name, aliases: &[], kind, default, unit: "", meaning, reader: READER }
}

pub(crate) const QUIET: Setting =
    row("GASNET_QUIET", Kind::Boolean, "0", "warnings of the tools are not said");
pub(crate) const FREEZE: Setting = row(
    "GASNET_FREEZE",
    Kind::Boolean,
    "0",
    "a program in C stops at its start, until a debugger sets gasnet_frozen to 0 or SIGCONT comes",
);
pub(crate) const FREEZE_ON_ERROR: Setting =
    row("GASNET_FREEZE_ON_ERROR", Kind::Boolean, "0", "the same where it fails, or a signal kills it");
pub(crate) const FREEZE_SIGNAL: Setting =
    row("GASNET_FREEZE_SIGNAL", Kind::Text, "", "the same when this signal comes, such as SIGUSR2");
pub(crate) const BACKTRACE: Setting = row(
    "GASNET_BACKTRACE",
    Kind::Boolean,
    "0",
    "a program in C says where it is when it fails, or a signal kills it",
);
pub(crate) const BACKTRACE_TYPE: Setting = row(
    "GASNET_BACKTRACE_TYPE",
    Kind::Text,
    "GDB,EXECINFO",
    "how it finds that out: the first that works of a list",
);
pub(crate) const BACKTRACE_SIGNAL: Setting =
    row("GASNET_BACKTRACE_SIGNAL", Kind::Text, "", "the same when this signal comes, and it goes on");
pub(crate) const BACKTRACE_MT: Setting = row(
    "GASNET_BACKTRACE_MT",
    Kind::Boolean,
    "1",
    "of all its threads, where that can be had; a program's own way is used if it can do that",
);
pub(crate) const BACKTRACE_NODES: Setting = row(
    "GASNET_BACKTRACE_NODES",
    Kind::Text,
    "*",
    "which ranks of a program in C say it: a list such as 0,3-5",
);
/// Whether files are written to their devices at a program's end.
pub const FS_SYNC: Setting =
    row("GASNET_FS_SYNC", Kind::Boolean, "0", "files are written to their devices before gasnet_exit ends");
pub(crate) const TSC_RATE: Setting = row(
    "GASNET_TSC_RATE",
    Kind::Text,
    "walltime",
    "how fast the processor's counter runs: measured (walltime), as the system says (cpuinfo), or in Hz",
);
pub(crate) const TSC_RATE_TOLERANCE: Setting =
    row("GASNET_TSC_RATE_TOLERANCE", Kind::Text, "0.0005", "how far that may be off before it is told");
pub(crate) const TSC_RATE_HARD_TOLERANCE: Setting =
    row("GASNET_TSC_RATE_HARD_TOLERANCE", Kind::Text, "0.02", "how far it may be off before it is an error");
pub(crate) const TSC_RATE_VERBOSE: Setting =
    row("GASNET_TSC_RATE_VERBOSE", Kind::Boolean, "0", "the rate that was found is told");
pub(crate) const DISABLE_MUNMAP: Setting = row(
    "GASNET_DISABLE_MUNMAP",
    Kind::Boolean,
    "0",
    "malloc of a program in C gives no memory back to the system, and takes none by mmap",
);

/// What the variable holds.
pub(crate) fn text(setting: &Setting) -> Option<String> {
    value(&name(setting))
}

/// Whether it says yes, where it says yes or no. What a process reads that may be ending is read so: a bad value must not end it again.
pub(crate) fn answer(setting: &Setting) -> Option<bool> {
    text(setting).and_then(|text| numbers::answer(&text))
}

/// The variable, as C calls it.
pub(crate) fn name(setting: &Setting) -> CString {
    c_text(setting.name)
}

/// A limit of the process, with whether it is to be raised.
type Limit = (libc::__rlimit_resource_t, Setting);

const fn limit(resource: libc::__rlimit_resource_t, name: &'static str) -> Limit {
    let meaning = "a program in C that asks for it gets as much as the process may have";
    (resource, row(name, Kind::Boolean, YES, meaning))
}

/// What `gasnett_maximize_rlimits` raises: `GASNET_MAXIMIZE_` and the name of a limit.
pub(crate) const MAXIMIZE: [Limit; 8] = [
    limit(libc::RLIMIT_CPU, "GASNET_MAXIMIZE_RLIMIT_CPU"),
    limit(libc::RLIMIT_FSIZE, "GASNET_MAXIMIZE_RLIMIT_FSIZE"),
    limit(libc::RLIMIT_DATA, "GASNET_MAXIMIZE_RLIMIT_DATA"),
    limit(libc::RLIMIT_STACK, "GASNET_MAXIMIZE_RLIMIT_STACK"),
    limit(libc::RLIMIT_RSS, "GASNET_MAXIMIZE_RLIMIT_RSS"),
    limit(libc::RLIMIT_AS, "GASNET_MAXIMIZE_RLIMIT_AS"),
    limit(libc::RLIMIT_NPROC, "GASNET_MAXIMIZE_RLIMIT_NPROC"),
    limit(libc::RLIMIT_MEMLOCK, "GASNET_MAXIMIZE_RLIMIT_MEMLOCK"),
];

/// The rows of this crate.
pub const SETTINGS: &[Setting] = &[
    QUIET,
    FREEZE,
    FREEZE_ON_ERROR,
    FREEZE_SIGNAL,
    BACKTRACE,
    BACKTRACE_TYPE,
    BACKTRACE_SIGNAL,
    BACKTRACE_MT,
    BACKTRACE_NODES,
    FS_SYNC,
    TSC_RATE,
    TSC_RATE_TOLERANCE,
    TSC_RATE_HARD_TOLERANCE,
    TSC_RATE_VERBOSE,
    DISABLE_MUNMAP,
    MAXIMIZE[0].1,
    MAXIMIZE[1].1,
    MAXIMIZE[2].1,
    MAXIMIZE[3].1,
    MAXIMIZE[4].1,
    MAXIMIZE[5].1,
    MAXIMIZE[6].1,
    MAXIMIZE[7].1,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_what_its_readers_take_it_for() {
        for setting in SETTINGS {
            match setting.kind {
                Kind::Boolean => assert!(["0", YES].contains(&setting.default), "{setting:?}"),
                _ if setting.name.ends_with("TOLERANCE") => {
                    assert!(setting.default.parse::<f64>().is_ok_and(|most| most > 0.0), "{setting:?}");
                }
                _ => {}
            }
        }
    }
}
