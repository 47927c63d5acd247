//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueEnum};

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
and SIGUSR2 are passed on to all ranks; a second one of those that end a program kills them.";

/// Starts the ranks of a job on this machine.
#[derive(Parser, Clone, Debug)]
#[command(name = "gasrun", version, after_help = AFTER)]
pub struct Options {
    /// How many ranks to start.
    #[arg(short = 'n', long = "ranks", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)))]
    pub ranks: u32,

    /// Bind rank i to the i-th processor that gasrun may use, or do not bind [default: core if there are enough].
    #[arg(long, value_enum, value_name = "HOW")]
    pub bind: Option<Bind>,

    /// End the job after so many seconds.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,

    /// Begin each line of output with the rank it comes from: `[2] `.
    #[arg(long)]
    pub label: bool,

    /// Print the table of settings and end.
    #[arg(long)]
    pub env: bool,

    /// Say what is being done.
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// The program that each rank runs, and its arguments.
    #[arg(value_name = "PROGRAM", required_unless_present = "env", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

impl Options {
    /// Reads a command line, the program's own name first.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(words)?;
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

/// Whether ranks are bound to processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bind {
    /// Each rank to a processor of its own.
    Core,
    /// Not at all.
    None,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 1e9 => Ok(Duration::from_secs_f64(s)),
        _ => Err("wanted a number of seconds above 0".to_owned()),
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
    }

    #[test]
    fn wrong_lines_are_refused() {
        for words in [
            &["-n", "0", "x"][..],
            &["-n", "4097", "x"],
            &["-n", "x", "x"],
            &["-n", "2"],
            &["--timeout", "0", "x"],
            &["--timeout", "-1", "x"],
            &["--bind", "socket", "x"],
            &["--nonsense", "x"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
