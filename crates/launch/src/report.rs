//! The table of settings, as `--env` prints it.

use std::io::Write;

use gasworks_os::settings::{Kind, LEAST_SECONDS, MOST_SECONDS, Setting};

/// The rows of this crate.
pub const SETTINGS: &[Setting] =
    &[VERBOSE, EXIT_TIMEOUT, RANDOMIZE, TRACE_EVENTS, RSH, LOST_AFTER, PMIRUN, SERVERS, NODEFILE];

pub(crate) const VERBOSE: Setting = Setting {
    name: "GASWORKS_SPAWN_VERBOSE",
    aliases: &["GASNET_SPAWN_VERBOSE"],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "gasrun says what it is doing, as with -v",
    reader: "gasrun",
};

pub(crate) const EXIT_TIMEOUT: Setting = Setting {
    name: "GASWORKS_EXIT_TIMEOUT",
    aliases: &[],
    kind: Kind::Seconds,
    default: "10",
    unit: "s",
    meaning: "how long ranks may take to end after gasrun passed a signal on to them; then they are killed; never less than GASNET_EXITTIMEOUT",
    reader: "gasrun",
};

pub(crate) const RANDOMIZE: Setting = Setting {
    name: "GASWORKS_RANDOMIZE",
    aliases: &[],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "each rank has its own addresses, drawn by lot; 0: all ranks of a job have the same, for programs and libraries that pass some of functions or of global variables",
    reader: "gasrun",
};

pub(crate) const TRACE_EVENTS: Setting = Setting {
    name: "GASWORKS_TRACE_EVENTS",
    aliases: &[],
    kind: Kind::Number { min: 1, max: 1 << 24 },
    default: "131072",
    unit: "events",
    meaning: "how many events gasrun --trace keeps of each rank, 48 bytes each: the last ones",
    reader: "gasrun",
};

pub(crate) const RSH: Setting = Setting {
    name: "GASWORKS_RSH",
    aliases: &["GASNET_SSH_CMD"],
    kind: Kind::Text,
    default: "ssh -o BatchMode=yes",
    unit: "",
    meaning: "the command with which gasrun --hosts starts its agents, called as CMD HOST COMMAND; it cannot ask for a password; --rsh comes first",
    reader: "gasrun",
};

pub(crate) const LOST_AFTER: Setting = Setting {
    name: "GASWORKS_LOST_AFTER",
    aliases: &[],
    kind: Kind::Seconds,
    default: "1",
    unit: "s",
    meaning: "after how much silence gasrun takes a host of a job for lost, and ends the job; hosts say something every 0.2 s",
    reader: "gasrun",
};

pub(crate) const PMIRUN: Setting = Setting {
    name: "PMIRUN_CMD",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "another launcher that gasrun starts the job with, such as srun -n %N %C: %N is the number of ranks, %C the program and its arguments, %V is -v if gasrun has it",
    reader: "gasrun",
};

pub(crate) const SERVERS: Setting = Setting {
    name: "GASNET_SSH_SERVERS",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "hosts on which gasnetrun_aries and gasnetrun_gemini start jobs, with commas or blanks between them",
    reader: "gasnetrun",
};

pub(crate) const NODEFILE: Setting = Setting {
    name: "GASNET_SSH_NODEFILE",
    aliases: &["GASNET_NODEFILE"],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "a file with such hosts, one in each line, where GASNET_SSH_SERVERS names none",
    reader: "gasnetrun",
};

/// The remote command of the settings.
pub(crate) fn remote_command() -> String {
    RSH.text()
}

/// Every setting of every crate that this program knows.
pub fn all_settings() -> Vec<Setting> {
    gasworks::settings::all().chain(gasworks_tools::SETTINGS).chain(SETTINGS).copied().collect()
}

/// Writes the table: name, present value and where it comes from, limits, meaning.
pub fn write(out: &mut impl Write) {
    for row in all_settings() {
        let value = match row.raw() {
            Some((variable, value)) if variable == row.name => format!("{value} (set)"),
            Some((variable, value)) => format!("{value} (set as {variable})"),
            None if row.usual_shown().is_empty() => "unset".to_owned(),
            None => format!("{} (default)", row.usual_shown()),
        };
        let wrong = row.check().err().map_or_else(String::new, |e| format!(" (wrong: {})", e.wanted));
        let kind = match row.kind {
            Kind::Number { min, max } => format!("number, {min} to {max}"),
            Kind::Size { min, max } => format!("size in bytes, {min} to {max}"),
            Kind::Share => "size or fraction of memory, with /P or /H".to_owned(),
            Kind::Seconds => format!("seconds, {LEAST_SECONDS} to {MOST_SECONDS}"),
            Kind::Boolean => "0 or 1".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Text => "text".to_owned(),
        };
        let unit = if row.unit.is_empty() || matches!(row.kind, Kind::Seconds) {
            String::new()
        } else {
            format!(" ({})", row.unit)
        };
        let aliases =
            if row.aliases.is_empty() { String::new() } else { format!("; also {}", row.aliases.join(", ")) };
        // The writer is a buffer in memory.
        let _ = writeln!(
            out,
            "{} = {value}{wrong}\n    {}\n    {kind}{unit}; read by {}{aliases}",
            row.name, row.meaning, row.reader
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_row_is_said_to_be_no_setting() {
        let ours = super::all_settings().into_iter().filter(|row| row.name.starts_with("GASWORKS_"));
        let unknown: Vec<_> =
            ours.map(|row| row.name).filter(|name| !gasworks::settings::is_known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn every_row_is_shown() {
        let mut text = Vec::new();
        super::write(&mut text);
        let text = String::from_utf8(text).expect("text");
        for row in super::all_settings() {
            assert!(text.contains(&format!("{} = ", row.name)) && text.contains(row.meaning), "{}", row.name);
        }
        assert!(text.contains("also GASNET_SPAWN_VERBOSE"));
    }
}
