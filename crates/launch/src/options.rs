//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueEnum};
use gasworks_os::settings::{LEAST_SECONDS, MOST_SECONDS};

/// The most ranks of one job.
pub const MOST_RANKS: u32 = 4096;

const AFTER: &str = "\
Exit codes:
  0        every rank ended with 0
  1 - 255  the first non-zero code of a rank; 128 + S for a rank that signal S killed
  1        also: a rank ended without saying so, broke the protocol, or the job could not be started
  2        the command line is wrong
  124      the job did not end within --timeout
  126      PROGRAM cannot be executed
  127      PROGRAM was not found

When one rank fails, the others get SIGTERM, and SIGKILL two seconds later. SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1
and SIGUSR2 are passed on to all ranks. Ranks that have not ended 10 seconds (GASWORKS_EXIT_TIMEOUT) after one of those
that end a program get SIGKILL; a second one kills them at once. SIGTSTP (Ctrl-Z) stops all ranks, too, until gasrun goes
on.";

/// Starts the ranks of a job, on this machine or on several hosts.
#[derive(Parser, Clone, Debug, Default)]
#[command(name = "gasrun", version, after_help = AFTER)]
pub struct Options {
    /// How many ranks to start.
    #[arg(short = 'n', long = "ranks", value_name = "N", default_value_t = 1, allow_negative_numbers = true,
          value_parser = ranks)]
    pub ranks: u32,

    /// Bind rank i to the i-th processor that gasrun may use, or do not place ranks at all [default: it begins there, and may move]
    #[arg(long, value_enum, value_name = "HOW")]
    pub bind: Option<Bind>,

    /// End the job after so many seconds.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seconds)]
    pub timeout: Option<Duration>,

    /// Begin each line of output with the rank it comes from: `[2] `.
    #[arg(long)]
    pub label: bool,

    /// Count the operations of each rank, by kind and size, and print tables at the end, or write them to FILE as JSON.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,

    /// Record what each rank does and when, and write the timeline of all to FILE, for Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Run on these hosts; so many ranks on each before the next gets some: `a,b:2,c`.
    #[arg(long, value_name = "LIST")]
    pub hosts: Option<String>,

    /// The same from a file, a host on each line: `a`, `b:2` or `b slots=2`.
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    pub hostfile: Option<PathBuf>,

    /// How many ranks in a row go to a host that does not say so itself [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ppn: Option<u32>,

    /// The command that starts something on another host, called as CMD HOST COMMAND [default: ssh -o
    /// BatchMode=yes].
    #[arg(long, value_name = "CMD")]
    pub rsh: Option<String>,

    /// Give the ranks this variable of the environment too, as it is or with this value. (Those whose names begin with
    /// GASWORKS_ or GASNET_ they have anyway.)
    #[arg(short = 'x', long = "export", value_name = "NAME[=VALUE]")]
    pub export: Vec<String>,

    /// Give rank 0 no input: what is typed while the job runs stays for the shell.
    #[arg(long)]
    pub no_input: bool,

    /// End the job when a rank ends without finalize, whatever its code, and kill the others at once, as strict launchers
    /// do.
    #[arg(long)]
    pub strict: bool,

    /// Print the command that PMIRUN_CMD makes of this job, and do not start it.
    #[arg(long)]
    pub dry_run: bool,

    /// Be the part of a job on one host: for gasrun itself, which starts this on other hosts.
    #[arg(long, hide = true)]
    pub agent: bool,

    /// Give ranks PMI_PORT, a port of 127.0.0.1 that they connect to, instead of the descriptor PMI_FD.
    #[arg(long)]
    pub pmi_port: bool,

    /// Print how the ranks of a running job stand, and end. JOB is its name, as -v prints it, or the process of its
    /// gasrun; for any other word the running jobs are listed.
    #[arg(long, value_name = "JOB")]
    pub inspect: Option<String>,

    /// Print the endpoints of this machine by which processes connect, whether they are alive, and end. DIR is the directory that
    /// they lie in; without it those are listed that lie where endpoints do by default.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub endpoints: Option<Option<String>>,

    /// Print the table of settings and end.
    #[arg(long)]
    pub env: bool,

    /// Say what is being done.
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// The program that each rank runs, and its arguments.
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["env", "inspect", "endpoints", "agent"], trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

impl Options {
    /// Reads a command line, the program's own name first.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(with_np(&Self::command(), words))?;
        // Everything from the program on is the program's; a misspelt option must not become the program.
        match options.program.first().map(|word| word.to_string_lossy()) {
            Some(word) if word.starts_with('-') => {
                let text = format!(
                    "unexpected argument '{word}' found (a program of that name is started as './{word}')"
                );
                Err(Self::command().error(clap::error::ErrorKind::UnknownArgument, text))
            }
            _ => Ok(options),
        }
    }
}

/// These words, the program's own name first, with `-n` in place of `-np`, which other launchers know, among the options of `command`.
pub(crate) fn with_np(command: &clap::Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let takes_value = |word: &str| {
        let is_it = |argument: &clap::Arg| match (word.strip_prefix("--"), argument.get_short()) {
            (Some(long), _) => argument.get_long() == Some(long) && !argument.is_require_equals_set(),
            (None, Some(short)) => word.strip_prefix('-').is_some_and(|rest| rest == short.to_string()),
            (None, None) => false,
        };
        command.get_arguments().any(|argument| argument.get_action().takes_values() && is_it(argument))
    };
    let mut words: Vec<OsString> = words.into_iter().collect();
    let mut at = 1;
    while let Some(word) = words.get_mut(at).filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        if word == "--" {
            break;
        }
        if word == "-np" {
            *word = "-n".into();
        }
        at += if takes_value(&word.to_string_lossy()) { 2 } else { 1 };
    }
    words
}

/// Whether ranks are bound to processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bind {
    /// Each rank to a processor of its own.
    Core,
    /// Not at all.
    None,
}

pub(crate) fn ranks(text: &str) -> Result<u32, String> {
    let parsed = text.parse().ok().filter(|n| (1..=MOST_RANKS).contains(n));
    parsed.ok_or_else(|| format!("wanted a whole number from 1 to {MOST_RANKS}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(s) if (LEAST_SECONDS..=MOST_SECONDS).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err(format!("wanted a number of seconds from {LEAST_SECONDS} to {MOST_SECONDS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        Options::read(std::iter::once("gasrun").chain(words.iter().copied()).map(OsString::from))
    }

    #[test]
    fn what_follows_the_program_is_the_programs() {
        let options = parse(&["-n", "4", "--timeout", "2.5", "prog", "-n", "5", "--", "x"]).expect("valid");
        assert_eq!((options.ranks, options.timeout), (4, Some(Duration::from_millis(2500))));
        assert_eq!(options.program, ["prog", "-n", "5", "--", "x"]);
        let options = parse(&["-n", "2", "--", "./--prog", "-v"]).expect("valid");
        assert_eq!((options.program, options.verbose), (vec!["./--prog".into(), "-v".into()], false));
        assert!(parse(&["--env"]).expect("valid").program.is_empty());
        let stats = |words| parse(words).expect("valid").stats;
        assert_eq!(stats(&["x", "--stats"]), None);
        assert_eq!(stats(&["--stats", "x"]), Some(None));
        assert_eq!(stats(&["--stats=f", "x"]), Some(Some("f".into())));
    }

    #[test]
    fn what_other_launchers_call_np_is_n() {
        let options = parse(&["--timeout", "2", "--label", "-np", "4", "prog", "-np", "5"]).expect("valid");
        assert_eq!((options.ranks, options.program), (4, vec!["prog".into(), "-np".into(), "5".into()]));
        assert_eq!(parse(&["--stats", "-np", "3", "x"]).expect("valid").ranks, 3);
        for theirs in [&["x", "-np", "3"][..], &["--", "x", "-np"]] {
            let options = parse(theirs).expect("valid");
            assert!(options.ranks == 1 && options.program.contains(&"-np".into()), "{theirs:?}");
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        let (ranks, seconds) =
            ("wanted a whole number from 1 to 4096", "wanted a number of seconds from 0.1 to 1000000000");
        for (words, wanted) in [
            (&["-n", "0", "x"][..], ranks),
            (&["-n", "4097", "x"], ranks),
            (&["-n", "-1", "x"], ranks),
            (&["-n", "99999999999999999999", "x"], ranks),
            (&["--ranks=two", "x"], ranks),
            (&["-n", "2"], "PROGRAM"),
            (&["--timeout", "0", "x"], seconds),
            (&["--timeout", "-1", "x"], seconds),
            (&["--timeout", "-0.5", "x"], seconds),
            (&["--timeout", "inf", "x"], seconds),
            (&["--timeout", "1e10", "x"], seconds),
            (&["--bind", "socket", "x"], "[possible values: core, none]"),
            (&["--nonsense", "x"], "unexpected argument '--nonsense'"),
        ] {
            let said = parse(words).expect_err(wanted).to_string();
            assert!(said.contains(wanted), "{words:?}: {said:?} should say {wanted:?}");
        }
    }
}
