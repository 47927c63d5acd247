//! The settings that the tools read. Their functions read them by C's own rules, and where C asks for it: this is the list for people.

use gasworks_os::settings::{Kind, Setting};

const READER: &str = "gasworks-tools";

const fn row(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Setting {
    Setting { name, aliases: &[], kind, default, unit: "", meaning, reader: READER }
}

const QUIET: Setting = row("GASNET_QUIET", Kind::Boolean, "0", "warnings of the tools are not said");
const FREEZE: Setting = row(
    "GASNET_FREEZE",
    Kind::Boolean,
    "0",
    "a program in C stops at its start, until a debugger sets gasnet_frozen to 0 or SIGCONT comes",
);
const FREEZE_ON_ERROR: Setting =
    row("GASNET_FREEZE_ON_ERROR", Kind::Boolean, "0", "the same where it fails, or a signal kills it");
const FREEZE_SIGNAL: Setting =
    row("GASNET_FREEZE_SIGNAL", Kind::Text, "", "the same when this signal comes, such as SIGUSR2");
const BACKTRACE: Setting = row(
    "GASNET_BACKTRACE",
    Kind::Boolean,
    "0",
    "a program in C says where it is when it fails, or a signal kills it",
);
const BACKTRACE_TYPE: Setting = row(
    "GASNET_BACKTRACE_TYPE",
    Kind::Text,
    "GDB,EXECINFO",
    "how it finds that out: the first that works of a list",
);
const BACKTRACE_SIGNAL: Setting =
    row("GASNET_BACKTRACE_SIGNAL", Kind::Text, "", "the same when this signal comes, and it goes on");
const BACKTRACE_MT: Setting = row(
    "GASNET_BACKTRACE_MT",
    Kind::Boolean,
    "1",
    "of all its threads, where that can be had; a program's own way is used if it can do that",
);
const BACKTRACE_NODES: Setting = row(
    "GASNET_BACKTRACE_NODES",
    Kind::Text,
    "*",
    "which ranks of a program in C say it: a list such as 0,3-5",
);
const FS_SYNC: Setting =
    row("GASNET_FS_SYNC", Kind::Boolean, "0", "files are written to their devices before gasnet_exit ends");
const TSC_RATE: Setting = row(
    "GASNET_TSC_RATE",
    Kind::Text,
    "walltime",
    "how fast the processor's counter runs: measured (walltime), as the system says (cpuinfo), or in Hz",
);
const TSC_RATE_TOLERANCE: Setting =
    row("GASNET_TSC_RATE_TOLERANCE", Kind::Text, "0.0005", "how far that may be off before it is told");
const TSC_RATE_HARD_TOLERANCE: Setting =
    row("GASNET_TSC_RATE_HARD_TOLERANCE", Kind::Text, "0.02", "how far it may be off before it is an error");
const TSC_RATE_VERBOSE: Setting =
    row("GASNET_TSC_RATE_VERBOSE", Kind::Boolean, "0", "the rate that was found is told");
const DISABLE_MUNMAP: Setting = row(
    "GASNET_DISABLE_MUNMAP",
    Kind::Boolean,
    "0",
    "malloc of a program in C gives no memory back to the system, and takes none by mmap",
);

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
];
