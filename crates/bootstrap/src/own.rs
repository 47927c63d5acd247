//! A program that starts all ranks of its job by itself, as GASNet's over shared memory do: `GASNET_PSHM_NODES` says how many.
//!
//! The process becomes `gasrun`, which starts the program anew for each rank: so such a job is like any other. What the
//! program did before it joined is done by each rank again.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gasworks_os::{ending, process};

use crate::settings::{self, BOOTSTRAP, CRAY_RANK, GASRUN, NODES, PMIX_RANK, RANK};
use crate::{BootstrapError, Start};

/// The variable that says which programs have become a launcher on the way to this process.
pub const BECAME: &str = settings::BECAME.name;

/// [`BECAME`] and its value, by which a process that becomes a launcher in the part of `who` tells so; `None` if it has
/// become one in this part already, so that it would go round for ever. A rank of a launcher's begins anew.
pub fn becoming(who: &str) -> Option<(&'static str, String)> {
    let is_rank = [RANK, PMIX_RANK, CRAY_RANK].iter().any(|variable| variable.raw().is_some());
    let before = settings::BECAME.raw().filter(|_| !is_rank).map(|(_, parts)| parts).unwrap_or_default();
    let is_new = before.split(',').all(|part| part != who);
    is_new.then(|| (BECAME, format!("{before},{who}").trim_start_matches(',').to_owned()))
}

/// Does not come back where this process is to start ranks. `start` is who started it.
///
/// # Errors
/// There is no `gasrun`, or a setting is wrong.
pub(crate) fn start_ranks(start: Option<&Start>) -> Result<(), BootstrapError> {
    let ranks = NODES.number()?.unwrap_or(1);
    if start.is_some() || ranks <= 1 || BOOTSTRAP.choice()? == "single" {
        return Ok(());
    }
    let failed = |source| BootstrapError::Io { during: "start the ranks of GASNET_PSHM_NODES", source };
    let Some((became, parts)) = becoming("program") else {
        let what =
            format!("{}={} leads back to this program, and starts no ranks", GASRUN.name, GASRUN.text());
        return Err(failed(io::Error::other(what)));
    };
    let program = std::env::current_exe().map_err(failed)?;
    let line = std::fs::read("/proc/self/cmdline").map_err(failed)?;
    let args = arguments(&line);
    // Each rank says again what is not written yet, and this process no more.
    ending::flush();
    // A timer outlives what it was to interrupt; each rank sets its own.
    process::stop_timers();
    let becomes = |gasrun: &str| {
        let mut command = Command::new(gasrun);
        command.arg("-n").arg(ranks.to_string()).arg("--").arg(&program).args(args.clone());
        let error = command.env(became, &parts).exec();
        (error.kind(), format!("{gasrun}: {error}; {} says where it is", GASRUN.name))
    };
    let (configured, on_path) = (GASRUN.text(), GASRUN.default);
    let (kind, why) = becomes(&configured);
    // An installation may have been moved.
    let is_moved = kind == io::ErrorKind::NotFound && configured != on_path;
    Err(failed(io::Error::other(if is_moved { becomes(on_path).1 } else { why })))
}

/// What follows the program's name, of words that each end with a zero byte.
fn arguments(line: &[u8]) -> impl Iterator<Item = std::ffi::OsString> + Clone {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    line.split(|byte| *byte == 0).skip(1).map(|word| OsStringExt::from_vec(word.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_end_with_zeros() {
        let read =
            |line: &[u8]| arguments(line).map(|word| word.into_string().expect("text")).collect::<Vec<_>>();
        assert_eq!(read(b"./program\0a b\0\0c\0"), ["a b", "", "c"]);
        assert!(read(b"./program\0").is_empty() && read(b"").is_empty());
    }
}
