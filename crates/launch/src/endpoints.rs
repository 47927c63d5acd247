//! `gasrun --endpoints`: lists the endpoints of this machine by which processes connect (`gasworks-cci`).

use anyhow::{Context, Result};
use gasworks_cci::directory::{Found, Liveness, endpoints};
use gasworks_cci::endpoint::default_base;
use std::fmt::Write;
use std::fs;
use std::io::{self, Write as _};

/// Prints the endpoints under a directory; of none, under those of all users where endpoints lie by default.
pub fn list(base: Option<&str>) -> Result<()> {
    let bases = match base {
        Some(base) => vec![base.to_owned()],
        None => default_bases(),
    };
    let mut found = Vec::new();
    for base in &bases {
        found.extend(endpoints(base, false).with_context(|| format!("list the endpoints in {base}"))?);
    }
    let mut out = io::stdout();
    match out.write_all(table(&found).as_bytes()).and_then(|()| out.flush()) {
        // Whoever closes the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("write standard output")
        }
        _ => Ok(()),
    }
}

/// The default directories of all users, as far as there are any.
fn default_bases() -> Vec<String> {
    let own = default_base();
    // The user's number stands before the last part.
    let parts = own.rsplit_once('/').and_then(|(of_user, last)| Some((of_user.rsplit_once('-')?.0, last)));
    let Some((begin, last)) = parts else { return vec![own] };
    let folder = begin.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut bases: Vec<String> = entries
        .filter_map(|entry| Some(entry.path().to_str()?.to_owned()))
        .filter(|path| path.strip_prefix(begin).is_some_and(|rest| rest.starts_with('-')))
        .map(|path| format!("{path}/{last}"))
        .collect();
    bases.sort_unstable();
    bases
}

fn table(found: &[Found]) -> String {
    let width = found.iter().map(|found| found.uri.to_string().len()).max().unwrap_or(0).max(8);
    let mut text = format!("{:width$}  STATE    PROGRAM\n", "ENDPOINT");
    for Found { uri, liveness } in found {
        let (state, program) = match liveness {
            Liveness::Alive => ("alive", program_of(uri.pid())),
            Liveness::Dead => ("dead", "-".into()),
            Liveness::Unknown => ("unknown", "-".into()),
        };
        // A string takes all that is written.
        let _ = writeln!(text, "{:width$}  {state:7}  {program}", uri.to_string());
    }
    text
}

/// What the system calls a process.
fn program_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.map_or_else(|_| "-".into(), |name| name.trim().to_owned())
}
