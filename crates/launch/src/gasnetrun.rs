//! `gasnetrun_smp` and its like: GASNet's launcher for one network, in terms of `gasrun`.
//!
//! This program is it when it is called by such a name. It reads GASNet's options, looks whether the program was linked for that
//! network, and becomes the `gasrun` that lies beside it, whose job, messages and codes it is from there on.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, anyhow, ensure};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use gasworks_os::environ;

use crate::options::{MOST_RANKS, ranks, with_np};
use crate::remote::rsh::typed;
use crate::{code, report};

/// What such names begin with.
const PREFIX: &str = "gasnetrun_";
/// What a linked program says of itself begins so, and ends with [`END`].
const BEGIN: &[u8] = b"$GASNetConduitName: ";
const END: &[u8] = b" $";
/// The longest name that is looked for.
const LONGEST: usize = 32;

/// A network that programs are linked for.
struct Network {
    /// The launcher's name, which ends with the network's own.
    launcher: &'static str,
    /// What programs call it.
    conduit: &'static str,
    /// What the environment of its ranks has, and whether that is so whatever was set before.
    environment: &'static [(&'static str, &'static str, bool)],
}

const NETWORKS: [Network; 3] = [
    Network { launcher: "gasnetrun_smp", conduit: "SMP", environment: &[("GASWORKS_NETWORK", "pshm", true)] },
    Network { launcher: "gasnetrun_aries", conduit: "ARIES", environment: GNI },
    Network { launcher: "gasnetrun_gemini", conduit: "GEMINI", environment: GNI },
];
/// Cray's PMI knows what uGNI wants to know of a job.
const GNI: &[(&str, &str, bool)] =
    &[("GASWORKS_NETWORK", "gni", true), ("GASWORKS_BOOTSTRAP", "cray", false)];

const AFTER: &str = "\
The job is one of gasrun, or of the launcher that PMIRUN_CMD names, and its code is theirs. A program that was linked
for another network is refused; one of which this cannot be told is started.

With gasrun, processes are bound to processors with -c 1 alone. With another launcher the environment is passed on as
that launcher does it.";

/// Starts the processes of a GASNet program, for the network that is the end of its name: gasnetrun_smp,
/// gasnetrun_aries, gasnetrun_gemini.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "gasnetrun",
    version,
    after_help = AFTER,
    override_usage = "gasnetrun_NET -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]..."
)]
pub struct Options {
    /// How many processes to start.
    #[arg(short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = ranks)]
    processes: u32,

    /// On how many hosts: 1. Where there may be more, the launcher of PMIRUN_CMD is told so in its own words.
    #[arg(short = 'N', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)))]
    hosts: Option<u32>,

    /// How many processors each process wants: with 1 it is bound to one.
    #[arg(short = 'c', value_name = "N")]
    processors: Option<u32>,

    /// Give the processes these variables of the environment too. (On this host they have all of it.)
    #[arg(short = 'E', value_name = "NAME,...", value_delimiter = ',', value_parser = name)]
    export: Vec<String>,

    /// Say what is being done.
    #[arg(short = 'v')]
    verbose: bool,

    /// Print the command that would start the job, and do not start it.
    #[arg(short = 't')]
    test: bool,

    /// Keep temporary files: there are none.
    #[arg(short = 'k')]
    keep: bool,

    /// The program that each process runs, and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('=') {
        Err("wanted names, not values".into())
    } else {
        Ok(text.into())
    }
}

/// The network in the name that this program was called by, if it is such a name.
pub(crate) fn called(word: Option<OsString>) -> Option<String> {
    let word = word?;
    let name = Path::new(&word).file_name()?.to_string_lossy();
    name.starts_with(PREFIX).then(|| name.into_owned())
}

/// Becomes `gasrun`, or says why not.
pub(crate) fn main(launcher: &str) -> ExitCode {
    let usage = ExitCode::from(code::USAGE as u8);
    let Some(network) = NETWORKS.iter().find(|network| network.launcher == launcher) else {
        let known = NETWORKS.map(|network| network.launcher).join(", ");
        gasworks_os::say(&format!(
            "{launcher}: there is no such network: this program may be called {known}"
        ));
        return usage;
    };
    let options = read(network, std::env::args_os()).unwrap_or_else(|e| e.exit());
    match start(network, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            gasworks_os::say(&format!("{launcher}: {why:#}"));
            usage
        }
    }
}

/// Reads a command line, the program's own name first.
fn read(network: &Network, words: impl IntoIterator<Item = OsString>) -> Result<Options, clap::Error> {
    let usage = format!("{} -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]...", network.launcher);
    let command = Options::command().name(network.launcher).override_usage(usage);
    let options =
        Options::from_arg_matches(&command.clone().try_get_matches_from(with_np(&command, words))?)?;
    // As gasrun has it: a misspelt option must not become the program.
    match options.program.first().map(|word| word.to_string_lossy()) {
        Some(word) if word.starts_with('-') => {
            let text = format!(
                "unexpected argument '{word}' found (a program of that name is started as './{word}')"
            );
            Err(command.clone().error(ErrorKind::UnknownArgument, text))
        }
        _ => Ok(options),
    }
}

/// Comes back where the job is only shown, or cannot be started.
fn start(network: &Network, options: &Options) -> anyhow::Result<()> {
    let others = report::PMIRUN.held().is_some();
    if let Some(hosts) = options.hosts.filter(|hosts| *hosts > 1) {
        ensure!(network.conduit != "SMP", "-N {hosts}: a job of smp is on one host");
        return Err(anyhow!("-N {hosts}: say in PMIRUN_CMD on how many hosts its launcher starts the job"));
    }
    let path = environ::all().find_map(|(name, value)| (name == "PATH").then_some(value)).unwrap_or_default();
    if let Some(conduits) =
        options.program.first().and_then(|word| found(word, &path)).and_then(|file| of(&file))
    {
        check(network, &options.program, &conduits)?;
    }
    let this = std::env::current_exe().context("find this program")?;
    let gasrun = this.with_file_name("gasrun");
    ensure!(gasrun.is_file(), "{} is not there, which starts its jobs", gasrun.display());
    let mut words = words(options, others);
    if network.conduit != "SMP" && !others {
        words.splice(0..0, on_hosts(&report::SERVERS.text(), &report::NODEFILE.text()));
    }
    let set = |name: &str| environ::all().any(|(known, value)| known == name && !value.is_empty());
    let environment: Vec<_> =
        network.environment.iter().filter(|(name, _, always)| *always || !set(name)).collect();
    let mut shown: Vec<_> = environment.iter().map(|(name, value, _)| format!("{name}={value}")).collect();
    shown.push(typed(&[&[gasrun.clone().into_os_string()], words.as_slice()].concat()));
    let shown = shown.join(" ");
    if options.test && !others {
        let mut stdout = io::stdout();
        return writeln!(stdout, "{shown}").and_then(|()| stdout.flush()).context("write the command");
    }
    if options.verbose {
        gasworks_os::say(&format!("{}: {shown}", network.launcher));
    }
    let mut command = Command::new(&gasrun);
    let failure = command.args(words).envs(environment.iter().map(|(name, value, _)| (name, value))).exec();
    Err(anyhow!("start {}: {failure}", gasrun.display()))
}

/// What `gasrun` is told; `others`: another launcher starts the job, which knows for itself where processes run and what of the
/// environment they get.
fn words(options: &Options, others: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["-n".into(), options.processes.to_string().into()];
    if others {
        words.extend(options.test.then(|| "--dry-run".into()));
    } else {
        // What GASNet's programs know of is not bound, unless each process is to have one processor.
        let bound = options.processors == Some(1);
        words.extend((!bound).then_some(["--bind".into(), "none".into()]).into_iter().flatten());
        words.extend(options.export.iter().flat_map(|name| ["-x".into(), name.into()]));
    }
    words.extend(options.verbose.then(|| "-v".into()));
    words.push("--".into());
    words.extend(options.program.iter().cloned());
    words
}

/// The hosts of these settings, as `gasrun` is told them.
fn on_hosts(servers: &str, file: &str) -> Vec<OsString> {
    let hosts: Vec<_> = servers.split([',', ' ', '\t', '\n']).filter(|host| !host.is_empty()).collect();
    match (hosts.is_empty(), file.is_empty()) {
        (false, _) => vec!["--hosts".into(), hosts.join(",").into()],
        (true, false) => vec!["--hostfile".into(), file.into()],
        (true, true) => Vec::new(),
    }
}

/// An error if the program was linked for other networks than this.
fn check(network: &Network, program: &[OsString], conduits: &BTreeSet<String>) -> anyhow::Result<()> {
    if conduits.is_empty() || conduits.contains(network.conduit) {
        return Ok(());
    }
    let program = program.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let names = conduits.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    let other = NETWORKS.iter().find(|other| conduits.contains(other.conduit));
    let advice = other.map_or_else(String::new, |other| format!(": start it by {}", other.launcher));
    Err(anyhow!("{program} was linked for {names}, not for {}{advice}", network.conduit))
}

/// The file that a name stands for, as `execvp(3)` looks for it.
fn found(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Some(word.into());
    }
    std::env::split_paths(path).map(|dir| Path::new(".").join(dir).join(word)).find(|file| file.is_file())
}

/// The networks that a file was linked for. `None`: it cannot be told, which whoever starts it will say better.
fn of(file: &Path) -> Option<BTreeSet<String>> {
    let file = File::open(file).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    conduits(file).ok()
}

/// The same of its content.
fn conduits(mut from: impl Read) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut held: Vec<u8> = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut part)?;
        held.extend_from_slice(part.get(..count).unwrap_or_default());
        for at in held.iter().enumerate().filter_map(|(at, byte)| (*byte == b'$').then_some(at)) {
            found.extend(held.get(at..).and_then(named));
        }
        if count == 0 {
            return Ok(found);
        }
        // What began in this part may end in the next.
        let old = held.len().saturating_sub(BEGIN.len() + LONGEST + END.len());
        held.drain(..old);
    }
}

/// The name, if this begins with what names a network.
fn named(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(BEGIN)?;
    let length = rest.iter().take(LONGEST).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let (name, rest) = rest.split_at_checked(length).filter(|(name, _)| !name.is_empty())?;
    rest.starts_with(END).then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, clap::Error> {
        read(&NETWORKS[0], std::iter::once("gasnetrun_smp").chain(line.split(' ')).map(OsString::from))
    }

    fn translated(line: &str, others: bool) -> String {
        typed(&words(&options(line).expect("valid"), others))
    }

    #[test]
    fn names_of_this_program() {
        let called = |word: &str| called(Some(word.into()));
        assert_eq!(called("/a/gasnetrun_smp").as_deref(), Some("gasnetrun_smp"));
        assert_eq!(
            (called("gasrun"), called("/gasnetrun_smp/gasrun"), super::called(None)),
            (None, None, None)
        );
    }

    #[test]
    fn gasrun_is_told_the_same() {
        let line = "-n 3 -c 2 -E A,B -v -k ./p -n 4 -- -t";
        assert_eq!(translated(line, false), "-n 3 --bind none -x A -x B -v -- ./p -n 4 -- -t");
        assert_eq!(translated(line, true), "-n 3 -v -- ./p -n 4 -- -t");
        assert_eq!(translated("-n3 -c1 -N1 -- ./-p", false), "-n 3 -- ./-p");
        assert_eq!(translated("-n 1 -t p", true), "-n 1 --dry-run -- p");
    }

    #[test]
    fn hosts_come_from_settings() {
        let told = |servers: &str, file: &str| typed(&on_hosts(servers, file));
        assert_eq!(told("a, b:2 c,", "f"), "--hosts a,b:2,c");
        assert_eq!((told(" ", "f"), told("", "")), ("--hostfile f".into(), String::new()));
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (line, wanted) in [
            ("p", "-n <N>"),
            ("-n 2", "PROGRAM"),
            ("-n 0 p", "wanted a whole number from 1 to 4096"),
            ("-n -1 p", "wanted a whole number from 1 to 4096"),
            ("-n 2 -N 0 p", "0 is not in 1..=4096"),
            ("-n 2 -E A=1 p", "wanted names, not values"),
            ("-n 2 --label p", "unexpected argument '--label' found"),
            ("-n 2 -- --label", "unexpected argument '--label' found"),
        ] {
            let said = options(line).expect_err(line).to_string();
            assert!(said.contains(wanted), "{line}: {said:?} should say {wanted:?}");
            assert!(!said.contains("Usage") || said.contains("gasnetrun_smp -n N"), "{line}: {said}");
        }
    }

    /// A reader that gives so many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn a_program_says_what_it_was_linked_for() {
        let long = format!("$GASNetConduitName: {} $", "A".repeat(LONGEST + 1));
        let text = [
            b"\0$GASNetConduitName: SMP $\0$GASNetConduitName: %s $$GASNetConduitName:  $",
            long.as_bytes(),
            b"$$GASNetConduitName: ARIES $",
        ]
        .concat();
        for step in [1, 7, 40, 4096] {
            let names = conduits(Slow(&text, step)).expect("read");
            assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["ARIES", "SMP"], "{step}");
        }
        assert!(conduits(Slow(b"$GASNetConduitName: SMP", 4)).expect("read").is_empty());
    }

    #[test]
    fn a_program_of_another_network_is_refused() {
        let told = |conduits: &[&str]| {
            let conduits = conduits.iter().map(|name| (*name).to_owned()).collect();
            check(&NETWORKS[0], &["./p".into()], &conduits).map_err(|why| why.to_string())
        };
        assert_eq!((told(&[]), told(&["ARIES", "SMP"])), (Ok(()), Ok(())));
        let aries = "./p was linked for ARIES, not for SMP: start it by gasnetrun_aries";
        assert_eq!(told(&["ARIES"]), Err(aries.into()));
        assert_eq!(told(&["IBV"]), Err("./p was linked for IBV, not for SMP".into()));
    }
}
