//! Which jobs are started, by whom, and what becomes of them.

use super::launcher::Launcher::{
    self, Gasrun, GasrunSsh, Gforker, Hydra4, Hydra5, OpenMpi, Prrte, Slurm, Template,
};
use std::collections::BTreeMap;

/// Where each rank is, and beside whom.
pub type Places = BTreeMap<usize, String>;

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ends well.
    Well,
    /// Its ranks are given these words, and it ends well, but something is said about it.
    Says(&'static str, &'static str),
    /// Its ranks are given these words, and it ends with one of these codes.
    Fails(&'static str, &'static [i32]),
    /// Its ranks open a job of the library, in which the suite's barriers pass.
    Opens,
    /// They try to, and are told that they are on several hosts.
    Refused,
}

use Fate::{Fails, Opens, Refused, Says, Well};

/// A job: its launcher and protocol, what the row is called besides, the launcher's words, where the ranks are to find
/// themselves, in rank order, and how they end.
#[derive(Debug)]
pub struct Case {
    pub launcher: Launcher,
    /// As `GASWORKS_BOOTSTRAP` names it; `auto` takes what there is.
    pub protocol: &'static str,
    pub name: &'static str,
    pub words: String,
    pub hosts: &'static str,
    pub fate: Fate,
}

/// Where six ranks are, two on each host, or all on the host of the launcher.
const BLOCK: &str = "h1 h1 h2 h2 h3 h3";
const CYCLIC: &str = "h1 h2 h3 h1 h2 h3";
const ARBITRARY: &str = "h1 h2 h1 h3 h1 h2";
const UNEVEN: &str = "h1 h2 h2 h2 h3 h3";
const HERE: &str = "h0 h0 h0 h0 h0 h0";

const KILL: &str = "--kill 1";
const ABORT: &str = "--abort 1 5";
const DESERT: &str = "--desert 2";
/// The exit time-out of six ranks.
const LINGER: Fate = Says("--linger 1", "within 1.6 s (GASNET_EXITTIMEOUT): rank 1 did not");
/// So on another host than the first, of a rank that follows there; and of all ranks but one, on the last host.
const LINGER_ELSEWHERE: Fate = Says("--linger 3", "within 1.6 s (GASNET_EXITTIMEOUT): rank 3 did not");
const EXIT_ALONE: Fate = Says("--linger 0 1 2 3 4", "within 1.6 s (GASNET_EXITTIMEOUT): rank 0, 1 did not");
/// The code that a rank aborts with, and a shell's for one that was killed.
const ABORTED: i32 = 5;
const KILLED: i32 = 137;

impl Case {
    pub fn row(&self) -> String {
        format!("launcher/{}/{}/{}", self.launcher.name(), self.protocol, self.name)
    }

    /// What the ranks are to say of where they are: exactly those of a host share memory.
    pub fn places(&self) -> Places {
        let hosts: Vec<_> = self.hosts.split(' ').collect();
        let ranks = |host: &str| {
            let there = hosts.iter().enumerate().filter(|(_, name)| **name == host);
            there.map(|(rank, _)| rank.to_string()).collect::<Vec<_>>().join(",")
        };
        hosts.iter().map(|host| format!("{host} beside {}", ranks(host))).enumerate().collect()
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = gasrun();
    cases.extend(gasrun_ssh());
    cases.extend(slurm());
    cases.extend(templates());
    cases.extend(hydra(Hydra4));
    cases.extend(hydra(Hydra5));
    cases.extend(gforker());
    cases.extend(pmix(OpenMpi, "--oversubscribe", "--mca plm_rsh_agent /run/rsh"));
    cases.extend(pmix(Prrte, "--map-by :OVERSUBSCRIBE", "--prtemca plm_ssh_agent /run/rsh"));
    cases
}

/// Ranks of PMI-2 and of PMI-1, as ours and other people's are.
fn gasrun() -> Vec<Case> {
    let of = |protocol| {
        let case = |name, words: &str, hosts, fate| Case {
            launcher: Gasrun,
            protocol,
            name,
            words: format!("-n 6 {words}"),
            hosts,
            fate,
        };
        let three = "--hosts h1,h2,h3 --ppn 2 --rsh /run/rsh";
        vec![
            case("one-host", "", HERE, Well),
            case("one-host-port", "--pmi-port", HERE, Well),
            case("three-hosts", three, BLOCK, Well),
            case("three-hosts-port", &format!("--pmi-port {three}"), BLOCK, Well),
            case("three-hosts-cyclic", "--hosts h1,h2,h3 --rsh /run/rsh", CYCLIC, Well),
            case("three-hosts-uneven", "--hosts h1:1,h2:3,h3:2 --rsh /run/rsh", UNEVEN, Well),
            case("killed", three, BLOCK, Fails(KILL, &[KILLED])),
            case("aborted", three, BLOCK, Fails(ABORT, &[ABORTED])),
            case("deserted", three, BLOCK, Fails(DESERT, &[1])),
            case("lingering", three, BLOCK, LINGER),
            case("lingering-elsewhere", three, BLOCK, LINGER_ELSEWHERE),
            case("exit-alone", three, BLOCK, EXIT_ALONE),
            case("job", "", HERE, Opens),
            case("job-on-three-hosts", three, BLOCK, Refused),
        ]
    };
    ["pmi2", "pmi1"].into_iter().flat_map(of).collect()
}

/// The same by the remote command that `gasrun` takes if nobody names one.
fn gasrun_ssh() -> Vec<Case> {
    let case = |name, words: &str, hosts, fate| Case {
        launcher: GasrunSsh,
        protocol: "pmi2",
        name,
        words: format!("-n 6 {words}"),
        hosts,
        fate,
    };
    let three = "--hosts h1,h2,h3 --ppn 2";
    vec![
        case("three-hosts", three, BLOCK, Well),
        case("three-hosts-uneven", "--hosts h1:1,h2:3,h3:2", UNEVEN, Well),
        case("killed", three, BLOCK, Fails(KILL, &[KILLED])),
        case("aborted", three, BLOCK, Fails(ABORT, &[ABORTED])),
        case("job-on-three-hosts", three, BLOCK, Refused),
    ]
}

/// Templates of `PMIRUN_CMD`: those of GASNet's documentation, by name and in full, and one that says more.
fn templates() -> Vec<Case> {
    let case = |name, template, words: &str, hosts, fate| Case {
        launcher: Template(template),
        protocol: "pmi2",
        name,
        words: format!("-n 6 {words}"),
        hosts,
        fate,
    };
    let more = "srun --quiet -K -N 3 -m cyclic -n %N %C";
    vec![
        case("srun", "srun", "", BLOCK, Well),
        case("srun-in-full", "srun -K0 -W60 %V -mblock -n %N %C", "-v", BLOCK, Well),
        case("srun-with-more", more, "", CYCLIC, Well),
        case("killed", more, "", CYCLIC, Fails(KILL, &[KILLED])),
        // ALPS cannot be had; what stands in for it takes the same options, and hands them to srun.
        case("aprun", "aprun", "", BLOCK, Well),
    ]
}

/// The plugin for PMI-2 serves PMI-1 as well. Without `-K` Slurm leaves the others alone when a rank is killed, and they end
/// by themselves.
fn slurm() -> Vec<Case> {
    let of = |(protocol, plugin, killed, aborted): (&'static str, &str, &'static [i32], &'static [i32])| {
        let case = |name, words: &str, hosts, fate| Case {
            launcher: Slurm,
            protocol,
            name,
            words: format!("--mpi={plugin} {words}"),
            hosts,
            fate,
        };
        let two_each = "-N 3 -n 6 --ntasks-per-node=2";
        vec![
            case("block", &format!("{two_each} -m block"), BLOCK, Well),
            case("cyclic", &format!("{two_each} -m cyclic"), CYCLIC, Well),
            case("arbitrary", "-n 6 -m arbitrary -w h1,h2,h1,h3,h1,h2", ARBITRARY, Well),
            case("killed", &format!("{two_each} -K"), BLOCK, Fails(KILL, killed)),
            case("killed-without-care", two_each, BLOCK, Fails(KILL, killed)),
            case("aborted", two_each, BLOCK, Fails(ABORT, aborted)),
            case("exit-alone", two_each, BLOCK, EXIT_ALONE),
            case("job", "-N 1 -n 4", "h1 h1 h1 h1", Opens),
            case("job-on-three-hosts", &format!("{two_each} -K"), BLOCK, Refused),
        ]
    };
    // What is left of the code is Slurm's affair: its step is killed. But an order by PMIx takes the code with it, and the
    // ranks of a host that miss one end with 1; and by PMI-2 no order is given, for the hosts tell each other.
    let ways = [
        ("pmi2", "pmi2", &[KILLED][..], &[ABORTED][..]),
        ("pmi1", "pmi2", &[KILLED], &[KILLED, ABORTED]),
        ("pmix", "pmix", &[KILLED, 1], &[KILLED, ABORTED]),
    ];
    ways.into_iter().flat_map(of).collect()
}

/// By descriptor and by port, on one host, on three that only hydra takes for three, and on three real ones.
fn hydra(launcher: Launcher) -> Vec<Case> {
    let of = |protocol| {
        let case = |name, words: String, hosts, fate| Case { launcher, protocol, name, words, hosts, fate };
        let (one, pretend) = ("-launcher fork -n 6", "-launcher fork -hosts a,b,c -ppn 2 -n 6");
        let three = "-launcher ssh -launcher-exec /run/rsh -hosts h1,h2,h3 -ppn 2 -n 6";
        let port = |words| format!("-pmi-port {words}");
        vec![
            case("one-host", one.into(), HERE, Well),
            case("one-host-port", port(one), HERE, Well),
            case("pretend-hosts", pretend.into(), HERE, Well),
            case("pretend-hosts-port", port(pretend), HERE, Well),
            case("three-hosts", three.into(), BLOCK, Well),
            case("three-hosts-port", port(three), BLOCK, Well),
            // It drops its other proxies, has no code of its own for that, and may die of writing to one.
            case("killed", three.into(), BLOCK, Fails(KILL, &[1, 9, KILLED, 141, 255])),
            case("aborted", three.into(), BLOCK, Fails(ABORT, &[1, ABORTED, 255])),
            case("exit-alone", three.into(), BLOCK, EXIT_ALONE),
            case("job-on-pretend-hosts", pretend.into(), HERE, Opens),
            case("job-on-three-hosts", three.into(), BLOCK, Refused),
        ]
    };
    ["pmi2", "pmi1"].into_iter().flat_map(of).collect()
}

fn gforker() -> Vec<Case> {
    let case = |name, fate| Case {
        launcher: Gforker,
        protocol: "pmi1",
        name,
        words: "-n 6".into(),
        hosts: HERE,
        fate,
    };
    // It interrupts the others when a rank is killed, and tells the code of the last.
    vec![
        case("one-host", Well),
        case("killed", Fails(KILL, &[1, 130, KILLED])),
        case("aborted", Fails(ABORT, &[ABORTED])),
        case("job", Opens),
    ]
}

/// Launchers that speak PMIx alone: with what makes them start more ranks than there are cores, and with what makes them
/// reach other hosts.
fn pmix(launcher: Launcher, crowd: &str, reach: &str) -> Vec<Case> {
    let case = |name, words, hosts, fate| Case { launcher, protocol: "pmix", name, words, hosts, fate };
    let one = format!("{crowd} -n 6");
    let three = format!("{reach} --host h1:2,h2:2,h3:2 -n 6");
    vec![
        case("one-host", one.clone(), HERE, Well),
        case("job", one, HERE, Opens),
        case("job-on-three-hosts", three.clone(), BLOCK, Refused),
        case("three-hosts", three.clone(), BLOCK, Well),
        // Ranks that learn of it from their fence end with 1, and which end is heard first is not always the same.
        case("killed", three.clone(), BLOCK, Fails(KILL, &[KILLED, 1])),
        case("exit-alone", three.clone(), BLOCK, EXIT_ALONE),
        case("aborted", three, BLOCK, Fails(ABORT, &[ABORTED])),
    ]
}
