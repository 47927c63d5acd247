//! What an agent needs to know, and how it is handed over.
//!
//! On its standard input an agent finds a [`Ticket`]: who its parent is and two secrets. It connects, shows the first,
//! and is shown the second in the first message, which holds the [`Plan`]. So neither an agent nor a parent does
//! anything for somebody who has not read what went through the remote command; and nothing of it stands on a command
//! line.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use anyhow::{Context, ensure};
use gasworks_os::random;

use super::codec::{Reader, Writer};
use crate::hosts::Host;

/// How many agents one starts itself; the others are started by those.
pub(crate) const FAN: usize = 16;
/// What an agent's first line begins with: another version of this program speaks otherwise.
const VERSION: &str = "gasrun-agent-2";
/// Length of a secret: 128 random bits in hexadecimal digits.
pub(crate) const SECRET: usize = 32;

/// A secret of the job.
pub(crate) fn secret() -> anyhow::Result<String> {
    Ok(random::hex(&random::nonce()?))
}

/// Whether two secrets are the same, in a time that does not depend on where they differ.
pub(crate) fn same_secret(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// What stands on an agent's standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Which node of the tree the agent is.
    pub(crate) node: u32,
    /// What the agent shows.
    pub(crate) cookie: String,
    /// What the agent is shown.
    pub(crate) answer: String,
    /// Where its parent listens: a host description with a port.
    pub(crate) parent: String,
    /// The range of local ports, as the setting has it.
    pub(crate) ports: String,
}

impl Ticket {
    /// How many lines it has.
    pub(crate) const LINES: usize = 6;

    pub(crate) fn write(&self) -> String {
        let Self { node, cookie, answer, parent, ports } = self;
        format!("{VERSION}\n{node}\n{cookie}\n{answer}\n{parent}\n{ports}\n")
    }

    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let mut lines = text.lines();
        let mut next = || lines.next().context("the ticket is cut short");
        ensure!(next()? == VERSION, "the gasrun that starts this one is of another version");
        let node = next()?.parse().context("the ticket names no node")?;
        let (cookie, answer) = (next()?.to_owned(), next()?.to_owned());
        ensure!(cookie.len() == SECRET && answer.len() == SECRET, "the ticket holds no cookie");
        Ok(Self { node, cookie, answer, parent: next()?.to_owned(), ports: next()?.to_owned() })
    }
}

/// What all agents of a job are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) job: String,
    pub(crate) size: u32,
    /// Host `i` is node `i + 1` of the tree; `gasrun` itself is node 0.
    pub(crate) hosts: Vec<Host>,
    pub(crate) mapping: String,
    pub(crate) program: Vec<OsString>,
    pub(crate) directory: OsString,
    pub(crate) umask: u32,
    /// Names and values for the ranks' environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Resources by their number in the system, soft and hard limits.
    pub(crate) limits: Vec<(u32, u64, u64)>,
    /// The remote command, and this program as other hosts call it.
    pub(crate) rsh: Vec<OsString>,
    pub(crate) agent: OsString,
    pub(crate) cookie: String,
    pub(crate) answer: String,
    pub(crate) label: bool,
    pub(crate) verbose: bool,
    pub(crate) pmi_port: bool,
    pub(crate) strict: bool,
    pub(crate) bind: u8,
    /// How many events each rank keeps, if it records.
    pub(crate) events: Option<u32>,
    /// Silence after which the other end of a connection is lost.
    pub(crate) lost_after: Duration,
    /// How long an agent may take to come.
    pub(crate) start_limit: Duration,
}

impl Plan {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let os = |w: Writer, text: &OsString| w.bytes(text.as_bytes());
        let flag = |flag: bool| u8::from(flag);
        let w = Writer::default().bytes(self.answer.as_bytes()).bytes(self.cookie.as_bytes());
        let w = w.bytes(self.job.as_bytes()).number(self.size.into()).bytes(self.mapping.as_bytes());
        let w = w.list(self.hosts.iter(), |w, host| {
            w.bytes(host.name.as_bytes()).list(host.ranks.iter(), |w, rank| w.number((*rank).into()))
        });
        let w = w.list(self.program.iter(), os).bytes(self.directory.as_bytes()).number(self.umask.into());
        let w = w.list(self.environment.iter(), |w, (name, value)| os(os(w, name), value));
        let w = w.list(self.limits.iter(), |w, &(resource, soft, hard)| {
            w.number(resource.into()).number(soft).number(hard)
        });
        let w = w.list(self.rsh.iter(), os).bytes(self.agent.as_bytes());
        let w = w.byte(flag(self.label)).byte(flag(self.verbose)).byte(flag(self.pmi_port));
        let w = w.byte(flag(self.strict)).byte(self.bind).number(self.events.map_or(u64::MAX, u64::from));
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        w.number(micros(self.lost_after)).number(micros(self.start_limit)).0
    }

    /// Reads one, of somebody who knows the `answer` of the ticket.
    pub(crate) fn decode(bytes: &[u8], answer: &str) -> anyhow::Result<Self> {
        let r = &mut Reader(bytes);
        ensure!(same_secret(r.bytes()?, answer.as_bytes()), "whoever answered is not this agent's parent");
        let os = |r: &mut Reader<'_>| Ok(OsString::from_vec(r.bytes()?.to_vec()));
        let flag = |r: &mut Reader<'_>| Ok::<bool, anyhow::Error>(r.byte()? != 0);
        let plan = Self {
            answer: answer.to_owned(),
            cookie: r.text()?,
            job: r.text()?,
            size: r.small()?,
            mapping: r.text()?,
            hosts: r.list(|r| Ok(Host { name: r.text()?, ranks: r.list(|r| r.small())? }))?,
            program: r.list(os)?,
            directory: os(r)?,
            umask: r.small()?,
            environment: r.list(|r| Ok((os(r)?, os(r)?)))?,
            limits: r.list(|r| Ok((r.small()?, r.number()?, r.number()?)))?,
            rsh: r.list(os)?,
            agent: os(r)?,
            label: flag(r)?,
            verbose: flag(r)?,
            pmi_port: flag(r)?,
            strict: flag(r)?,
            bind: r.byte()?,
            events: u32::try_from(r.number()?).ok(),
            lost_after: Duration::from_micros(r.number()?),
            start_limit: Duration::from_micros(r.number()?),
        };
        r.end()?;
        let mut ranks: Vec<u32> = plan.hosts.iter().flat_map(|host| &host.ranks).copied().collect();
        ranks.sort_unstable();
        ensure!(ranks.into_iter().eq(0..plan.size), "the plan does not give each rank one host");
        let rising = plan.hosts.iter().all(|host| host.ranks.is_sorted());
        ensure!(rising, "the plan does not give a host its ranks in rising order");
        Ok(plan)
    }

    /// The host of a node; none for `gasrun` itself.
    pub(crate) fn host(&self, node: u32) -> Option<&Host> {
        self.hosts.get((node as usize).checked_sub(1)?)
    }

    /// The nodes that a node starts.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + use<> {
        let first = node as usize * FAN + 1;
        let last = (first + FAN).min(self.hosts.len() + 1);
        (first.min(last)..last).map(|child| child as u32)
    }

    /// Of the children of `at` the one on the way to `node`.
    pub(crate) fn towards(&self, at: u32, node: u32) -> Option<u32> {
        let mut node = node;
        while node > 0 {
            let parent = (node - 1) / FAN as u32;
            if parent == at {
                return Some(node);
            }
            node = parent;
        }
        None
    }

    /// The node and all below it.
    pub(crate) fn subtree(&self, node: u32) -> Vec<u32> {
        let mut all = vec![node];
        let mut next = 0;
        while let Some(&at) = all.get(next) {
            all.extend(self.children(at));
            next += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hosts: u32) -> Plan {
        Plan {
            job: "job".into(),
            size: hosts,
            hosts: (0..hosts).map(|i| Host { name: format!("h{i}"), ranks: vec![i] }).collect(),
            mapping: "(vector,(0,3,1))".into(),
            program: vec!["prog".into(), OsString::from_vec(vec![0xff])],
            directory: "/tmp".into(),
            umask: 0o22,
            environment: vec![("A".into(), "b".into())],
            limits: vec![(7, 1024, u64::MAX)],
            rsh: vec!["ssh".into()],
            agent: "/bin/gasrun".into(),
            cookie: "c".repeat(SECRET),
            answer: "a".repeat(SECRET),
            label: true,
            verbose: false,
            pmi_port: true,
            strict: false,
            bind: 1,
            events: Some(7),
            lost_after: Duration::from_millis(1000),
            start_limit: Duration::from_secs(30),
        }
    }

    #[test]
    fn plans_and_tickets_survive_the_way() {
        let plan = plan(3);
        let bytes = plan.encode();
        assert_eq!(Plan::decode(&bytes, &plan.answer).expect("read"), plan);
        assert!(Plan::decode(&bytes, &"b".repeat(SECRET)).is_err());
        assert!((0..bytes.len()).all(|cut| Plan::decode(&bytes[..cut], &plan.answer).is_err()));
        for at in SECRET + 8..bytes.len() {
            for byte in [0, 1, 127, 128, 255] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let _ = Plan::decode(&changed, &plan.answer);
            }
        }
        let ticket = Ticket {
            node: 5,
            cookie: secret().expect("random"),
            answer: secret().expect("random"),
            parent: "host".into(),
            ports: "5000:5010".into(),
        };
        assert_eq!(Ticket::read(&ticket.write()).expect("read"), ticket);
        assert!(Ticket::read("").is_err() && Ticket::read("gasrun-agent-0\n").is_err());
        assert!(same_secret(b"ab", b"ab") && !same_secret(b"ab", b"ac") && !same_secret(b"a", b"ab"));
    }

    #[test]
    fn the_tree_reaches_every_host_once() {
        for hosts in [1, 2, 16, 17, 40, 300] {
            let plan = plan(hosts);
            let mut seen = plan.subtree(0);
            seen.sort_unstable();
            assert_eq!(seen, (0..=hosts).collect::<Vec<_>>());
            for node in 1..=hosts {
                let mut at = 0;
                while at != node {
                    let next = plan.towards(at, node).expect("a way");
                    assert!(plan.children(at).any(|child| child == next));
                    at = next;
                }
                assert_eq!(plan.towards(node, 0), None);
            }
        }
    }
}
