//! Jobs that another launcher starts: `PMIRUN_CMD`, a command with `%N`, `%C` and `%V` in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{anyhow, bail, ensure};

use crate::options::Options;
use crate::remote::rsh::{typed, words};
use crate::{hosts, report};

/// What stands for a launcher that is only named: the commands that GASNet's documentation gives for these.
const KNOWN: [(&str, &str); 2] = [("aprun", "aprun -n %N %C"), ("srun", "srun -K0 -W60 %V -mblock -n %N %C")];

/// Fills in a command: `%N` is the number of ranks, `%V` is `-v` or nothing, `%C` the program and its arguments, `%%` a
/// per cent sign.
fn fill(template: &str, options: &Options) -> anyhow::Result<Vec<OsString>> {
    let known = KNOWN.iter().find(|(name, _)| *name == template.trim());
    let template = known.map_or(template, |(_, command)| command);
    let mut command = Vec::new();
    let mut has_program = false;
    for word in words(template)? {
        let word = word.to_string_lossy().into_owned();
        match word.as_str() {
            "%C" => {
                has_program = true;
                command.extend(options.program.iter().cloned());
            }
            "%V" => command.extend(options.verbose.then(|| OsString::from("-v"))),
            _ => command.push(fill_word(&word, options)?.into()),
        }
    }
    ensure!(has_program, "PMIRUN_CMD={template:?} has no %C, which stands for the program and its arguments");
    Ok(command)
}

fn fill_word(word: &str, options: &Options) -> anyhow::Result<String> {
    let (mut filled, mut rest) = (String::new(), word.chars());
    while let Some(c) = rest.next() {
        match c {
            '%' => match rest.next() {
                Some('N') => filled.push_str(&options.ranks.to_string()),
                Some('%') => filled.push('%'),
                Some(other @ ('C' | 'V')) => {
                    bail!("PMIRUN_CMD: %{other} is a word of its own, not a part of {word:?}")
                }
                other => bail!(
                    "PMIRUN_CMD: %{} in {word:?} means nothing; there are %N, %C and %V",
                    other.map_or_else(String::new, String::from)
                ),
            },
            c => filled.push(c),
        }
    }
    Ok(filled)
}

/// Starts the job through another launcher, if `PMIRUN_CMD` names one, and does not come back then; or shows what would
/// be started. `None`: gasrun is to start the job itself.
pub(crate) fn start(options: &Options) -> anyhow::Result<Option<String>> {
    let template = report::PMIRUN.held().map(|(_, value)| value);
    let Some(template) = template else {
        return if options.dry_run { own_commands(options).map(Some) } else { Ok(None) };
    };
    for (given, name) in [
        (options.hosts.is_some(), "--hosts"),
        (options.hostfile.is_some(), "--hostfile"),
        (options.ppn.is_some(), "--ppn"),
        (options.rsh.is_some(), "--rsh"),
        (options.bind.is_some(), "--bind"),
        (options.timeout.is_some(), "--timeout"),
        (options.label, "--label"),
        (options.stats.is_some(), "--stats"),
        (options.trace.is_some(), "--trace"),
        (options.pmi_port, "--pmi-port"),
        (options.strict, "--strict"),
        (!options.export.is_empty(), "--export"),
    ] {
        ensure!(
            !given,
            "{name} is for jobs that gasrun starts itself: unset PMIRUN_CMD, or give that launcher's own option in it"
        );
    }
    let command = fill(&template, options)?;
    if options.dry_run {
        return Ok(Some(typed(&command)));
    }
    let (name, rest) = command.split_first().ok_or_else(|| anyhow!("PMIRUN_CMD holds no command"))?;
    let (became, parts) = gasworks_bootstrap::becoming("gasrun")
        .ok_or_else(|| anyhow!("PMIRUN_CMD={template:?} leads back to gasrun, and starts no ranks"))?;
    if options.verbose {
        gasworks_os::say(&format!("gasrun: {}", typed(&command)));
    }
    let failure = Command::new(name).args(rest).env(became, parts).exec();
    Err(anyhow!("start the job by PMIRUN_CMD: {}: {failure}", name.to_string_lossy()))
}

/// What gasrun starts where no other launcher does.
fn own_commands(options: &Options) -> anyhow::Result<String> {
    let placement =
        hosts::place(options.hosts.as_deref(), options.hostfile.as_deref(), options.ppn, options.ranks)?;
    let program = typed(&options.program);
    let Some(placement) = placement else {
        return Ok(format!("{} times: {program}", options.ranks));
    };
    let remote = options.rsh.clone().unwrap_or_else(report::remote_command);
    let agent = std::env::current_exe().map_or_else(|_| OsString::from("gasrun"), OsString::from);
    let line = |host: &hosts::Host| {
        let ranks = gasworks_core::observe::ranks(&host.ranks);
        let agent = typed(&[agent.clone(), OsStr::new("--agent").to_owned()]);
        format!("{remote} {} {agent}, which starts as {ranks}: {program}", host.name)
    };
    Ok(placement.hosts.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, verbose: bool) -> anyhow::Result<String> {
        let program = vec!["./a b".into(), "-n".into(), "%N".into()];
        fill(template, &Options { ranks: 12, verbose, program, ..Options::default() }).map(|c| typed(&c))
    }

    #[test]
    fn templates_are_filled() {
        let srun = "srun -K0 -W60 %V -mblock -n %N %C";
        assert_eq!(filled(srun, false).expect("filled"), "srun -K0 -W60 -mblock -n 12 './a b' -n %N");
        assert_eq!(filled("srun", true).expect("filled"), "srun -K0 -W60 -v -mblock -n 12 './a b' -n %N");
        assert_eq!(filled("aprun", true).expect("filled"), "aprun -n 12 './a b' -n %N");
        assert_eq!(filled("x --np=%N 100%% '%C'", false).expect("filled"), "x --np=12 100% './a b' -n %N");
        for (bad, wanted) in
            [("srun -n %N", "has no %C"), ("x %Q %C", "%Q"), ("x -%C", "word of its own"), ("x % %C", "% in")]
        {
            let said = filled(bad, false).expect_err(bad).to_string();
            assert!(said.contains(wanted), "{said}");
        }
    }
}
