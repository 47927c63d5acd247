//! What a process has to do with a job: all of it on one host, the root of several, or the part of one host.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use anyhow::{Context, ensure};
use gasworks_os::environ;
use gasworks_sock::{Options as SockOptions, Set};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::stat::{Mode, umask};

use super::tree::Tree;
use super::{Refused, raise_open_files};
use crate::options::{Bind, Options};
use crate::remote::agent::Started;
use crate::remote::plan::{Plan, secret};
use crate::remote::rsh;
use crate::{code, hosts, observe, report};

/// What a process has to do with a job.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) name: String,
    /// The ranks that it starts itself.
    pub(super) mine: Vec<u32>,
    pub(super) set: Set,
    pub(super) tree: Option<Tree>,
    /// The limit on open descriptors before this process raised its own; an agent does that later.
    pub(super) open_files: Option<(rlim_t, rlim_t)>,
    /// What is added to the ranks' environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// How long an agent may take to come: a remote command may log in first.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The limits that ranks elsewhere get as they are here, as far as their host allows.
const LIMITS: [Resource; 8] = [
    Resource::RLIMIT_AS,
    Resource::RLIMIT_CORE,
    Resource::RLIMIT_CPU,
    Resource::RLIMIT_DATA,
    Resource::RLIMIT_FSIZE,
    Resource::RLIMIT_MEMLOCK,
    Resource::RLIMIT_NOFILE,
    Resource::RLIMIT_STACK,
];

/// For the process that was told to run the job.
pub(super) fn first(options: &Options, name: String) -> Result<Setup, Refused> {
    let usage = |why| Refused { why, code: code::USAGE };
    let placement =
        hosts::place(options.hosts.as_deref(), options.hostfile.as_deref(), options.ppn, options.ranks)
            .map_err(usage)?;
    let exported = exported(&options.export).map_err(usage)?;
    let Some(placement) = placement else {
        let mine: Vec<u32> = (0..options.ranks).collect();
        // Before anything takes descriptors, so that too low a limit is told as that.
        let open_files = raise_open_files(mine.len(), observe::events(options)?.is_some())?;
        return Ok(Setup { name, mine, set: Set::new()?, tree: None, open_files, environment: exported });
    };
    let settings = SockOptions::from_settings()?;
    let ports = settings.ports.as_ref().map_or_else(String::new, |p| format!("{}:{}", p.start(), p.end()));
    let rsh = options.rsh.clone().unwrap_or_else(report::remote_command);
    let ours = |name: &OsStr| [&b"GASWORKS_"[..], b"GASNET_"].iter().any(|p| name.as_bytes().starts_with(p));
    let environment = environ::all().filter(|(name, _)| ours(name)).chain(exported).collect();
    let plan = Plan {
        job: name.clone(),
        size: options.ranks,
        hosts: placement.hosts,
        mapping: placement.mapping,
        program: options.program.clone(),
        directory: std::env::current_dir().context("find the working directory")?.into_os_string(),
        umask: own_umask(),
        environment,
        limits: limits()?,
        rsh: rsh::words(&rsh).context("read the remote command").map_err(usage)?,
        agent: std::env::current_exe().context("find this program")?.into_os_string(),
        cookie: secret()?,
        answer: secret()?,
        label: options.label,
        verbose: options.verbose || report::VERBOSE.boolean()?,
        pmi_port: options.pmi_port,
        strict: options.strict,
        bind: match options.bind {
            None => 0,
            Some(Bind::Core) => 1,
            Some(Bind::None) => 2,
        },
        events: observe::events(options)?,
        lost_after: report::LOST_AFTER.seconds()?.unwrap_or(Duration::from_secs(1)),
        start_limit: START_LIMIT,
    };
    let set = Set::with(settings)?;
    let tree = Some(Tree::new(0, plan, ports, None));
    Ok(Setup { name, mine: Vec::new(), set, tree, open_files: None, environment: Vec::new() })
}

/// For an agent: enters the job's directory and takes over its limits.
pub(super) fn agent(started: Started) -> anyhow::Result<(Options, Setup)> {
    let Started { set, node, link, plan, ports } = started;
    let mine = plan.host(node).map(|host| host.ranks.clone()).unwrap_or_default();
    let options = Options {
        ranks: plan.size,
        bind: [None, Some(Bind::Core), Some(Bind::None)].get(usize::from(plan.bind)).copied().flatten(),
        label: plan.label,
        verbose: plan.verbose,
        pmi_port: plan.pmi_port,
        strict: plan.strict,
        program: plan.program.clone(),
        ..Options::default()
    };
    let (name, environment) = (plan.job.clone(), plan.environment.clone());
    let tree = Some(Tree::new(node, plan, ports, Some(link)));
    Ok((options, Setup { name, mine, set, tree, open_files: None, environment }))
}

/// Makes an agent's process like the one that was told to run the job.
pub(super) fn imitate(plan: &Plan) -> anyhow::Result<()> {
    let directory = &plan.directory;
    std::env::set_current_dir(directory)
        .with_context(|| format!("enter the working directory {}", directory.to_string_lossy()))?;
    umask(Mode::from_bits_truncate(plan.umask));
    for &(number, soft, hard) in &plan.limits {
        let Some(resource) = LIMITS.into_iter().find(|r| *r as u32 == number) else { continue };
        let (_, most) = getrlimit(resource)?;
        // A host may allow less; what it allows is given.
        setrlimit(resource, soft.min(most), hard.min(most))
            .with_context(|| format!("set the limit {resource:?}"))?;
    }
    Ok(())
}

fn limits() -> anyhow::Result<Vec<(u32, u64, u64)>> {
    let read = |resource: Resource| {
        let (soft, hard) = getrlimit(resource)?;
        Ok((resource as u32, soft, hard))
    };
    LIMITS.into_iter().map(read).collect()
}

/// The mask can only be read by setting it.
fn own_umask() -> u32 {
    let mask = umask(Mode::empty());
    umask(mask);
    mask.bits()
}

/// The variables that `-x` names, with their values.
fn exported(words: &[String]) -> anyhow::Result<Vec<(OsString, OsString)>> {
    let own: Vec<_> = environ::all().collect();
    let mut pairs = Vec::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (word.as_str(), None),
        };
        ensure!(!name.is_empty(), "-x {word}: it names no variable");
        let inherited = || own.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        // One that is not set here is not set there.
        pairs.extend(value.or_else(inherited).map(|value| (OsString::from(name), value)));
    }
    Ok(pairs)
}
