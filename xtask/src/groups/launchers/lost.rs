//! What happens to a job over real hosts around its ranks: a host vanishes, `gasrun` is killed, strangers come to its
//! ports. The same without ranks and with pretended hosts is among the tests of `gasrun`.

use super::launcher::Launcher;
use super::{Case, Fate, LIMIT, LONGEST, judge};
use crate::rows::Row;
use crate::world::World;
use anyhow::{Context, Result, anyhow, bail, ensure};
use gasworks_testkit::Need;
use gasworks_testkit::command::{Cmd, Ended, Log};
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::programs::Programs;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

const RANKS: usize = 6;
const THREE: &str = "--hosts h1,h2,h3 --ppn 2 --rsh /run/rsh";
/// Two ranks on each of three hosts.
const BLOCK: &str = "h1 h1 h2 h2 h3 h3";
/// A host that falls silent is noticed after this (`GASWORKS_LOST_AFTER`), and not much later.
const SILENCE: Duration = Duration::from_secs(1);
const NOTICED: Duration = Duration::from_secs(4);
/// Within this an abort has reached all that can be reached.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How often strangers must have come for a row to tell something.
const STRANGERS: usize = 50;

pub fn rows() -> Vec<Row> {
    let killed = |name: &str, words: &'static str| {
        Row::new(format!("launcher/gasrun/is-killed/{name}"), move |world, log| is_killed(world, log, words))
    };
    let rows = vec![
        Row::new("launcher/gasrun/host-vanishes", host_vanishes),
        Row::new("launcher/gasrun/host-vanishes-before-abort", host_vanishes_before_abort),
        killed("one-host", ""),
        killed("three-hosts", THREE),
        Row::new("launcher/gasrun/port-scan", port_scan),
    ];
    rows.into_iter().map(|row| row.need(Need::Hosts)).collect()
}

/// `gasrun` with ranks that stay until they are ended.
fn stays(built: &Programs, words: &str) -> Result<Cmd> {
    Ok(until_ended(built, words)?.arg("--stay"))
}

/// `gasrun` with ranks that end as is to follow; its number is in a file on the hosts.
fn until_ended(built: &Programs, words: &str) -> Result<Cmd> {
    let gasrun = Cmd::new("sh").arg("-c").arg("echo $$ >/run/tmp/launcher; exec \"$0\" \"$@\"");
    let gasrun = gasrun.arg(built.program("gasrun")?).words("-n").arg(RANKS.to_string()).words(words);
    Ok(gasrun.arg(built.program("gasworks-whereabouts")?).limit(LIMIT))
}

/// Waits until what a job has written to its log is found to tell something.
fn until<T>(log: &Log, found: impl Fn(&[String]) -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(told) = found(&log.tail(usize::MAX)) {
            return Ok(told);
        }
        ensure!(begun.elapsed() < LONGEST, "the job did not come so far within {} s", LONGEST.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a job that stays, and does `act` when all its ranks are there; how it ended, and how long after that.
fn amid(log: &Log, cmd: &Cmd, act: impl FnOnce() -> Result<()>) -> Result<(Ended, Duration)> {
    std::thread::scope(|scope| {
        let job = scope.spawn(|| log.run(cmd));
        let passed = |lines: &[String]| {
            let passed = lines.iter().filter(|line| line.ends_with(": passed")).count();
            (passed == RANKS).then_some(())
        };
        let acted = until(log, passed).and_then(|()| {
            let begun = Instant::now();
            act().map(|()| begun)
        });
        let ended = job.join().map_err(|_| anyhow!("the thread that runs the job panicked"))?;
        let took = acted?.elapsed();
        Ok((ended?, took))
    })
}

/// The link of a host is cut, so that nothing comes from it, not even its end. That its ranks are gone too, like all
/// others, a log checks of everything that is run into it.
fn host_vanishes(world: &World, log: &Log) -> Result<()> {
    // Of its own: it is of no use to others any more.
    let (built, cluster) = (world.debug()?, Cluster::up()?);
    let job = cluster.on_h0(stays(&built, THREE)?);
    let cut = Cmd::new("ip").words("link set port2 down");
    let (ended, took) = amid(log, &job, || {
        ensure!(cluster.on_h0(cut).works(), "the link of h2 could not be cut");
        Ok(())
    })?;
    log.note(&format!("the job was over {:.2} s after the cut", took.as_secs_f64()))?;
    ensure!(ended.status.is_some_and(|s| s.code() == Some(1)), "{}, not exit code 1", ended.how());
    let said: Vec<_> = ended.output.lines().filter(|line| line.starts_with("gasrun: ")).collect();
    let wanted = format!("gasrun: host h2 is lost: nothing was heard of it for {} s", SILENCE.as_secs());
    ensure!(said == [wanted.as_str()], "gasrun says {said:?}, not just {wanted:?}");
    ensure!(took >= SILENCE / 2, "{took:?} is no silence");
    ensure!(took <= NOTICED, "it took {took:?}");
    cluster.left()
}

/// A rank aborts when the link of another host has just been cut, before anybody can know: those that can be reached end at
/// once, with the rank's code; and `gasrun` waits for the rest no longer than it takes to miss a host.
fn host_vanishes_before_abort(world: &World, log: &Log) -> Result<()> {
    const CODE: i32 = 7;
    let (built, cluster) = (world.debug()?, Cluster::up()?);
    let job = until_ended(&built, THREE)?.words(&format!("--abort 0 {CODE} --when /run/tmp/cut"));
    let cut = Cmd::new("sh").arg("-c").arg("ip link set port2 down && >/run/tmp/cut");
    // All hosts see all processes; the ranks of the third are those with its name.
    let there = "for p in $(pgrep -f gasworks-whereabout[s]); do \
                 test $(readlink /proc/$p/ns/uts) = $(readlink /proc/self/ns/uts) && echo $p; done";
    let gone = format!("while ({there}) | grep -q .; do sleep 0.01; done");
    let gone = cluster.on_h0(Cmd::new("timeout").words("20 /run/rsh h3").arg(gone));
    let mut reached = Duration::MAX;
    let (ended, took) = amid(log, &cluster.on_h0(job), || {
        ensure!(cluster.on_h0(cut).works(), "the link of h2 could not be cut");
        let begun = Instant::now();
        ensure!(gone.works(), "the ranks of h3 stay");
        reached = begun.elapsed();
        Ok(())
    })?;
    log.note(&format!("the ranks of h3 were gone after {:.2} s", reached.as_secs_f64()))?;
    log.note(&format!("the job was over after {:.2} s", took.as_secs_f64()))?;
    ensure!(ended.status.is_some_and(|s| s.code() == Some(CODE)), "{}, not exit code {CODE}", ended.how());
    let said = ended.output.lines().find(|line| line.starts_with("gasrun: ")).unwrap_or_default();
    ensure!(said.contains("rank 0") && said.ends_with("aborted the job: asked to"), "gasrun says {said:?}");
    ensure!(reached < AT_ONCE, "the ranks of h3 ended {reached:?} after the abort");
    ensure!(took <= NOTICED, "it took {took:?}");
    cluster.left()
}

/// `gasrun` is killed outright: the ranks end all the same, wherever they are, within the second that a log allows.
fn is_killed(world: &World, log: &Log, words: &str) -> Result<()> {
    let (built, cluster) = (world.debug()?, world.cluster()?);
    let job = cluster.on_h0(stays(&built, words)?);
    let kill = Cmd::new("sh").arg("-c").arg("kill -9 $(cat /run/tmp/launcher)");
    let (ended, took) = amid(log, &job, || {
        ensure!(cluster.on_h0(kill).works(), "gasrun could not be killed");
        Ok(())
    })?;
    let code = ended.status.and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
    ensure!(code == Some(137), "{}, and not killed", ended.how());
    log.note(&format!("all was over {:.2} s after that", took.as_secs_f64()))?;
    cluster.left()
}

/// From the first moment to the last of a job over three hosts strangers come to the port for agents, and to one of the
/// ports for ranks.
fn port_scan(world: &World, log: &Log) -> Result<()> {
    let (built, cluster) = (world.debug()?, world.cluster()?);
    let case = Case {
        launcher: Launcher::Gasrun,
        protocol: "auto",
        name: "port-scan",
        words: String::new(),
        hosts: BLOCK,
        fate: Fate::Well,
    };
    // Agents come when strangers have been there already, and ranks likewise.
    let prepare = "rm -f /run/tmp/pmi.*; printf '#!/bin/sh\\nsleep 0.5\\nexec /run/rsh \"$@\"\\n' >/run/tmp/late; \
                   chmod 755 /run/tmp/late";
    ensure!(cluster.on_h0(Cmd::new("sh").arg("-c").arg(prepare)).works(), "no late remote command");
    let job = Cmd::new(built.program("gasrun")?).words("-v --pmi-port -n").arg(RANKS.to_string());
    let job = job.words("--hosts h1,h2,h3 --ppn 2 --rsh /run/tmp/late sh -c");
    let job = job.arg("echo $PMI_PORT >/run/tmp/pmi.$PMI_ID; sleep 0.5; exec \"$0\"");
    let job = cluster.on_h0(job.arg(built.program("gasworks-whereabouts")?).limit(LIMIT));
    let strangers = &built.program("gasworks-strangers")?;
    let cluster = &cluster;
    let at = |host: &str, port: String| -> Result<usize> {
        let said = cluster.on_h0(Cmd::new("/run/rsh").arg(host).arg(strangers).arg(port)).read()?;
        let times = said.trim().strip_prefix("sent away ").and_then(|rest| rest.split(' ').next());
        times.and_then(|times| times.parse().ok()).with_context(|| format!("the strangers say {said:?}"))
    };
    let (ended, agents, ranks) = std::thread::scope(|scope| {
        let job = scope.spawn(|| log.run(&job));
        let told = until(log, |lines| {
            lines.iter().find_map(|line| Some(line.split_once("agents are to come to port ")?.1.to_owned()))
        });
        let agents = told.map(|port| scope.spawn(move || at("h1", format!("h0:{port}"))));
        let address = "until test -s /run/tmp/pmi.2; do sleep 0.01; done; cat /run/tmp/pmi.2";
        let address = cluster.on_h0(Cmd::new("timeout").words("10 sh -c").arg(address)).read();
        let ranks = address.and_then(|address| at("h2", address.trim().to_owned()));
        let agents =
            agents.and_then(|strangers| strangers.join().map_err(|_| anyhow!("a thread panicked"))?);
        let ended = job.join().map_err(|_| anyhow!("the thread that runs the job panicked"))?;
        anyhow::Ok((ended?, agents?, ranks?))
    })?;
    log.note(&format!("strangers came {agents} times for agents and {ranks} times for ranks"))?;
    judge(&ended, &case)?;
    if agents.min(ranks) < STRANGERS {
        bail!("strangers came {agents} and {ranks} times: too seldom to tell anything");
    }
    let refused = |line: &str| line.contains("sent a stranger away from the port for agents");
    let refused = ended.output.lines().filter(|line| refused(line)).count();
    ensure!(refused > 0, "gasrun has noticed no stranger");
    cluster.left()
}
