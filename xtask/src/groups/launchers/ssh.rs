//! `gasrun` over real `ssh`: what goes through it arrives, what cannot be reached is told of, and nothing stays behind.

use super::launcher::AT_HOME;
use super::{LIMIT, LONGEST};
use crate::rows::Row;
use crate::world::World;
use anyhow::{Context, Result, bail, ensure};
use gasworks_testkit::Need;
use gasworks_testkit::command::{Cmd, Ended, Log};
use gasworks_testkit::hosts::Cluster;
use std::sync::Arc;

type Check = fn(&Job<'_>) -> Result<()>;

/// What is tried. The scripts find `gasrun` as `$0`.
const CHECKS: [(&str, Check); 7] = [
    ("streams", |job| job.says(STREAMS.0, STREAMS.1)),
    ("surroundings", |job| job.says(SURROUNDINGS.0, SURROUNDINGS.1)),
    ("signals", |job| job.says(SIGNALS.0, SIGNALS.1)),
    ("secrets", |job| job.says(SECRETS.0, SECRETS.1)),
    ("tree", tree),
    ("refused", refused),
    ("absent", absent),
];

pub fn rows() -> Vec<Row> {
    let row = |(name, check): (&'static str, Check)| {
        let row = Row::new(format!("launcher/gasrun/ssh/{name}"), move |world, log| {
            check(&Job::prepare(world, log)?)
        });
        row.need(Need::Hosts).need(Need::Ssh)
    };
    CHECKS.into_iter().map(row).collect()
}

/// Output, errors, codes and input: by the remote command that is named, and by the one that need not be.
const STREAMS: (&str, &str) = (
    r#"
    cd /run/ssh
    for rsh in "ssh -F /run/ssh/config" "ssh -o BatchMode=yes"; do
        rm -f said.*
        "$0" --rsh "$rsh" --hosts h1,h2:2,h3 -n 4 --label sh -c '
            hostname; echo error >&2; touch said.$PMI_RANK
            test $PMI_RANK = 2 || exit 0
            until test -e said.0 && test -e said.1 && test -e said.3; do sleep 0.02; done
            exit 7' >out 2>err
        echo code $?
        sort out
        grep -c '^\[[0-3]\] error$' err
        sed -n 's/^\(gasrun: rank 2\) (pid [0-9]* \(.*\)/\1 \2/p' err
    done
    seq 200000 >in
    "$0" --hosts h1,h2 -n 2 sh -c 'test $PMI_RANK = 1 || cat' <in | cmp - in && echo the same
    rm in out err said.*
    "#,
    "code 7\n[0] h1\n[1] h2\n[2] h2\n[3] h3\n4\ngasrun: rank 2 on h2) exited with code 7\n\
     code 7\n[0] h1\n[1] h2\n[2] h2\n[3] h3\n4\ngasrun: rank 2 on h2) exited with code 7\nthe same\n",
);

/// Ranks elsewhere find what is here: the directory, the mask, limits, and of the environment what is theirs.
const SURROUNDINGS: (&str, &str) = (
    r#"
    mkdir -p "/run/ssh/a directory"
    cd "/run/ssh/a directory"
    umask 027
    ulimit -S -c 7
    ulimit -S -n 321
    ulimit -H -n 654
    export GASNET_X=one GASWORKS_X=two PLAIN=three NAMED=four
    "$0" --hosts h3 -x NAMED -x 'VALUED=a b' -x ABSENT sh -c '
        hostname; pwd; umask; ulimit -S -c; ulimit -S -n; ulimit -H -n; echo $HOME
        echo $GASNET_X $GASWORKS_X ${PLAIN-none} $NAMED $VALUED ${ABSENT-none}'
    "#,
    "h3\n/run/ssh/a directory\n0027\n7\n321\n654\n/run/ssh/home\none two none four a b none\n",
);

/// A signal to `gasrun` comes to all ranks; they end with it when it is killed, but not with the ssh that started them.
const SIGNALS: (&str, &str) = (
    r#"
    cd /run/ssh
    run() { # SIGNAL SCRIPT: what becomes of a job when gasrun gets the signal, or, if it is none, its commands do.
        rm -f up.*
        env --default-signal=INT,QUIT "$gasrun" --rsh "ssh -F /run/ssh/config" --hosts h1,h2,h3 -n 3 \
            sh -c "touch up.\$PMI_RANK; $2" >out 2>&1 &
        job=$!
        until [ "$(ls up.* 2>/dev/null | wc -l)" = 3 ]; do sleep 0.02; done
        case $1 in
        NONE) kill $(grep -lazsx 's[s]h' /proc/[0-9]*/cmdline | cut -d / -f 3) && touch cut ;;
        *) kill -$1 $job ;;
        esac
        wait $job
        echo "$1: $?"
        sort out
    }
    gasrun=$0
    run INT 'exec sleep 40'
    run KILL 'exec sleep 40' 2>/dev/null
    run NONE 'until test -e cut; do sleep 0.02; done; sleep 0.2; echo $PMI_RANK'
    rm -f up.* out cut
    "#,
    "INT: 130\ngasrun: the job was ended by signal 2 (SIGINT), passed on to all ranks\nKILL: 137\nNONE: 0\n0\n1\n2\n",
);

/// Both secrets go through standard input, and stand on no command line and in no environment, anywhere: the hosts share
/// their processes. That they would be found is seen by putting one there.
const SECRETS: (&str, &str) = (
    r#"
    mkdir /run/ssh/told
    cd /run/ssh/told
    printf '#!/bin/sh\ncat >/run/ssh/told/$1\nexec ssh -F /run/ssh/config "$@" </run/ssh/told/$1\n' >../tell
    chmod 755 ../tell
    "$0" --rsh /run/ssh/tell --hosts h1,h2,h3 -n 3 sh -c '
        touch up.$PMI_RANK
        if test $PMI_RANK != 0; then
            until test -e done; do sleep 0.02; done
            exit
        fi
        until test -e up.1 && test -e up.2; do sleep 0.02; done
        sed -n 3,4p h1 h2 h3 | sort -u >secrets
        echo $(grep -cx "[0-9a-f]\{32\}" secrets) secrets
        look() { grep -lazsFf secrets /proc/[0-9]*/cmdline /proc/[0-9]*/environ | wc -l; }
        know=$(look)
        echo $(grep -lazsx -e "--agen[t]" /proc/[0-9]*/cmdline | wc -l) of ssh, agents and guardians, $know know
        test $know = 0 || { touch done; exit 1; }
        SECRET=$(head -n 1 secrets) sleep 40 &
        until test $(look) = 1; do sleep 0.02; done
        kill $!
        tail -f /dev/null $(tail -n 1 secrets) >/dev/null 2>&1 &
        until test $(look) = 1; do sleep 0.02; done
        kill $!
        echo both were found
        touch done'
    rm -r /run/ssh/told ../tell
    "#,
    "2 secrets\n9 of ssh, agents and guardians, 0 know\nboth were found\n",
);

/// More hosts than `gasrun` starts agents on: those start the others, by ssh again.
fn tree(job: &Job<'_>) -> Result<()> {
    let hosts = |last| (1..19).map(|i| format!("t{i},")).collect::<String>() + last;
    let script =
        format!("\"$0\" --hosts {} -n 19 sh -c 'echo $PMI_RANK $(hostname)' | sort -n", hosts("t19"));
    let wanted: String = (0..19).map(|rank| format!("{rank} h{}\n", rank % 3 + 1)).collect();
    job.says(&script, &wanted)?;
    let script = format!("\"$0\" --hosts {} -n 19 sleep 40", hosts("refusing"));
    let advice = "(to see by hand on t1 why: ssh -o BatchMode=yes refusing true)";
    job.fails(&script, "refusing", &["Permission denied", advice])
}

/// Hosts that cannot be reached, and what ssh says of each; the rest is of `gasrun`.
const UNREACHABLE: [(&str, &str); 5] = [
    ("refusing", "root@h2: Permission denied (publickey)."),
    ("unknown", "Host key verification failed."),
    ("closed", "ssh: connect to host h2 port 9: Connection refused"),
    ("nowhere", "ssh: connect to host 10.78.0.99 port 22: No route to host"),
    ("h9", "ssh: Could not resolve hostname h9: "),
];

fn refused(job: &Job<'_>) -> Result<()> {
    for (host, reason) in UNREACHABLE {
        let advice = format!(
            "the remote command exited with code 255 before the agent came (to see by hand why: ssh -F /run/ssh/config {host} true)"
        );
        let words = format!("--hosts h1,{host},h3 -n 3 sleep 40");
        // At a terminal ssh would ask: but nobody hears the question.
        for terminal in [false, true] {
            if terminal && host != "unknown" {
                continue;
            }
            let script = match terminal {
                false => format!("\"$0\" --rsh 'ssh -F /run/ssh/config' {words}"),
                true => format!("script -qec \"$0 --rsh 'ssh -F /run/ssh/config' {words}\" /dev/null"),
            };
            job.fails(&script, host, &[reason, &advice])?;
        }
    }
    Ok(())
}

/// `gasrun` is not on the last host.
fn absent(job: &Job<'_>) -> Result<()> {
    let here = "/run/ssh/here/gasrun";
    let script = format!("cp \"$0\" {here} && {here} --hosts h1,h2,h3 -n 3 sleep 40");
    let advice = format!(
        "the remote command exited with code 127 before the agent came (gasrun is to be there as {here})"
    );
    job.fails(&script, "h3", &["not found", &advice])
}

/// The hosts, with an `sshd` on each, for a row.
struct Job<'a> {
    cluster: Arc<Cluster>,
    gasrun: std::path::PathBuf,
    log: &'a Log,
}

impl<'a> Job<'a> {
    fn prepare(world: &World, log: &'a Log) -> Result<Self> {
        let (built, cluster) = (world.debug()?, world.cluster()?);
        cluster.ssh()?;
        Ok(Self { cluster, gasrun: built.program("gasrun")?.to_owned(), log })
    }

    /// Runs a script on `h0`; looks for what it leaves on the hosts.
    fn run(&self, script: &str) -> Result<Ended> {
        let shell = Cmd::new(AT_HOME).words("sh -c").arg(script).arg(&self.gasrun);
        let ended = self.log.run(&self.cluster.on_h0(shell.limit(LIMIT)))?;
        let Some(status) = ended.status else { bail!("no end within {} s", ended.took.as_secs()) };
        self.log.note(&status.to_string())?;
        self.log.run_ok(&self.cluster.on_h0(Cmd::new("sh").arg("-c").arg(NO_SESSIONS)))?;
        self.cluster.left()?;
        Ok(ended)
    }

    /// A script says this, and nothing else.
    fn says(&self, script: &str, wanted: &str) -> Result<()> {
        let said = self.run(script)?.check()?.output;
        ensure!(said == wanted, "it was to say {wanted:?}; it says {said:?}");
        Ok(())
    }

    /// A script starts a job that fails soon with 1: `gasrun` says one thing, of this host; and this is said.
    fn fails(&self, script: &str, host: &str, wanted: &[&str]) -> Result<()> {
        let ended = self.run(script)?;
        let at = || ended.shown.clone();
        let code = ended.status.and_then(|status| status.code());
        ensure!(code == Some(1), "{}, not 1, of {}", ended.how(), at());
        let lines: Vec<_> = ended.output.lines().filter(|line| line.starts_with("gasrun: ")).collect();
        let one = format!("gasrun: host {host} is lost: ");
        ensure!(
            lines.len() == 1 && lines[0].starts_with(&one),
            "not only {one:?}, but {lines:?}, of {}",
            at()
        );
        let silent = wanted.iter().find(|text| !ended.output.contains(**text));
        silent.map_or(Ok(()), |text| bail!("nobody says {text:?}")).with_context(at)?;
        ensure!(ended.took <= LONGEST, "{:.1} s to the end of {}", ended.took.as_secs_f64(), at());
        Ok(())
    }
}

/// Fails if an `sshd` has a connection, and still has five seconds later.
const NO_SESSIONS: &str = r#"
    sessions() { grep -ahzs '^sshd: ' /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -v '\[listener\]'; }
    for i in $(seq 250); do
        sessions >/dev/null || exit 0
        sleep 0.02
    done
    echo "left of ssh:"
    sessions
    exit 1
"#;
