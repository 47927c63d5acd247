//! How an agent begins: it reads its ticket, connects to its parent, and takes the plan.

use std::io::{self, BufRead};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use gasworks_sock::{HostDescription, Op, Options as SockOptions, Set};

use super::gate::greeting;
use super::link::Link;
use super::message::Down;
use super::plan::{Plan, Ticket};
use crate::token;

/// How long it may take from the ticket to the plan.
const PATIENCE: Duration = Duration::from_secs(30);
/// No line of a ticket is longer.
const LONGEST_LINE: u64 = 8192;

/// An agent that has been let in.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) set: Set,
    pub(crate) node: u32,
    pub(crate) link: Link,
    pub(crate) plan: Plan,
    pub(crate) ports: String,
}

/// Reads the ticket and is let in.
pub(crate) fn begin() -> anyhow::Result<Started> {
    let ticket = read_ticket()?;
    let set = Set::with(SockOptions { ports: read_ports(&ticket.ports)?, ..SockOptions::default() })?;
    let parent = HostDescription::parse(&ticket.parent)?;
    let until = Instant::now() + PATIENCE;
    let sock = set.post_connect(token::PARENT, &parent, 0).context("connect to the parent")?;
    wait_for(&set, until, Op::Connect).context("connect to the parent")?;
    let greeting = greeting(&ticket.cookie, ticket.node);
    let length = greeting.len();
    sock.post_write(greeting, length, length, None)?;
    wait_for(&set, until, Op::Write).context("show the cookie to the parent")?;
    let mut link = Link::new(sock);
    let frame = loop {
        match link.next() {
            Ok(Some(frame)) => break frame,
            Ok(None) => {}
            Err(why) => bail!("the parent did not let this agent in: {why}"),
        }
        let left = until.saturating_duration_since(Instant::now());
        match set.wait(Some(left))? {
            Some(event) => link.event(event),
            None => bail!("the parent said nothing for {} s", PATIENCE.as_secs()),
        }
    };
    let Down::Plan(bytes) = Down::decode(&frame)? else { bail!("the parent did not begin with the plan") };
    let plan = Plan::decode(&bytes, &ticket.answer)?;
    ensure!(plan.host(ticket.node).is_some(), "the plan has no node {}", ticket.node);
    Ok(Started { set, node: ticket.node, link, plan, ports: ticket.ports })
}

/// The range of a ticket, `lowest:highest` or nothing.
fn read_ports(text: &str) -> anyhow::Result<Option<RangeInclusive<u16>>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (low, high) = text.split_once(':').context("the ticket's range of ports is none")?;
    Ok(Some(low.parse()?..=high.parse()?))
}

/// Reads the ticket, and leaves standard input alone from then on.
fn read_ticket() -> anyhow::Result<Ticket> {
    let mut text = String::new();
    let mut input = io::Read::take(io::stdin().lock(), LONGEST_LINE * Ticket::LINES as u64);
    for _ in 0..Ticket::LINES {
        if input.read_line(&mut text).context("read the ticket from standard input")? == 0 {
            break;
        }
    }
    Ticket::read(&text)
        .map_err(|e| anyhow!("{e} (--agent is for gasrun itself, which starts agents on other hosts)"))
}

fn wait_for(set: &Set, until: Instant, wanted: Op) -> anyhow::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(event) = set.wait(Some(left))? else { bail!("nothing came of it") };
        if event.op == wanted {
            return event.error.map_or(Ok(()), |e| Err(e.into()));
        }
    }
}
