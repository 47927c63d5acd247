//! A job over several hosts: what its nodes tell each other, and what each does with it.
//!
//! `gasrun` is the root and has no ranks. An agent has the ranks of its host; it judges what happens to them as `gasrun`
//! does on one host, but says so to its parent instead of acting on it: the root decides, and its orders reach
//! everybody. An agent that has lost its parent ends its ranks and itself.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::process::Child as Process;
use std::time::{Duration, Instant};

use anyhow::Context;
use gasworks_os::clock;
use gasworks_os::process::{self, Exit};
use gasworks_sock::{Event, HostDescription, Set};
use nix::sys::signal::{SigSet, Signal};

use super::{Job, Output};
use crate::hosts::Host;
use crate::observe::{Clock, Observation};
use crate::remote::gate::{Arrival, Gate};
use crate::remote::link::{BEAT, Link};
use crate::remote::message::{Down, RECORDINGS, Up};
use crate::remote::plan::{Plan, Ticket};
use crate::remote::rsh;
use crate::{code, token};

/// How long remote commands may take to end after their agents.
const REMOTE_END: Duration = Duration::from_millis(500);
/// How often an agent asks for the time at least, in the end.
const TRIPS: u32 = 8;

/// A part of the tree below this node.
#[derive(Debug)]
struct Below {
    node: u32,
    link: Option<Link>,
    /// The remote command, and whether it has ended.
    process: Process,
    ended: bool,
    /// When it must have come.
    until: Instant,
    /// It came, and will say no more; or it is lost.
    done: bool,
}

/// What a job over several hosts has besides.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) node: u32,
    pub(crate) plan: Plan,
    ports: String,
    parent: Option<Link>,
    /// When this process last looked at the clock.
    looked: Instant,
    /// All was said to it.
    leaves: bool,
    children: Vec<Below>,
    gate: Option<Gate>,
    /// Ranks anywhere below or here that have ended.
    ended: BTreeSet<u32>,
    /// Output that agents sent and that was not acknowledged: by node and stream.
    owed: HashMap<(u32, u8), u64>,
    /// How the clock here goes, by the best of so many answers.
    clock: Option<Clock>,
    answers: u32,
    /// How much of what the ranks here recorded was taken, and not reckoned with yet.
    taken: usize,
}

impl Tree {
    pub(crate) fn new(node: u32, plan: Plan, ports: String, parent: Option<Link>) -> Self {
        Self {
            node,
            plan,
            ports,
            parent,
            looked: Instant::now(),
            leaves: false,
            children: Vec::new(),
            gate: None,
            ended: BTreeSet::new(),
            owed: HashMap::new(),
            clock: None,
            answers: 0,
            taken: 0,
        }
    }

    pub(super) fn is_root(&self) -> bool {
        self.node == 0
    }

    /// Whether something below has not ended.
    pub(super) fn is_busy(&self) -> bool {
        self.children.iter().any(|child| !child.done)
    }

    /// The ranks that have not ended, of all.
    pub(super) fn living(&self) -> Vec<u32> {
        (0..self.plan.size).filter(|rank| !self.ended.contains(rank)).collect()
    }

    /// Which host this is; nothing for the root.
    pub(super) fn here(&self) -> String {
        self.plan.host(self.node).map_or_else(String::new, |host| format!(" on {}", host.name))
    }

    /// Where the ranks of this host say how they stand.
    pub(super) fn answers(&self) -> String {
        format!("gasworks-host-{}-{}", self.plan.job, self.node)
    }

    /// What to do about a child that has not come; its remote command, if it has ended, ended so.
    fn advice(&self, child: &Below, exit: Option<Exit>) -> String {
        let host = self.plan.host(child.node);
        host.map_or_else(String::new, |host| rsh::advice(&self.plan, &host.name, exit, &self.here()))
    }

    fn host_of(&self, rank: u32) -> Option<&str> {
        let host = self.plan.hosts.iter().find(|host| host.ranks.binary_search(&rank).is_ok())?;
        Some(&host.name)
    }

    fn child_towards(&mut self, node: u32) -> Option<&mut Below> {
        let child = self.plan.towards(self.node, node)?;
        self.children.iter_mut().find(|below| below.node == child)
    }

    /// The node of rank 0.
    fn first_node(&self) -> u32 {
        let place = self.plan.hosts.iter().position(|host| host.ranks.first() == Some(&0));
        place.map_or(0, |place| place as u32 + 1)
    }

    fn send_up(&mut self, message: &Up) {
        if let Some(parent) = &mut self.parent {
            parent.send(&message.encode());
        }
    }

    fn send_down(&mut self, node: u32, message: &Down) {
        if let Some(Below { link: Some(link), .. }) = self.child_towards(node) {
            link.send(&message.encode());
        }
    }

    /// Sends something to the host of rank 0.
    pub(super) fn send_to_first(&mut self, message: &Down) {
        let first = self.first_node();
        self.send_down(first, message);
    }

    pub(super) fn tell_children(&mut self, message: &Down) {
        for link in self.children.iter_mut().filter_map(|child| child.link.as_mut()) {
            link.send(&message.encode());
        }
    }

    /// Whether an agent is still to come.
    pub(super) fn is_starting(&self) -> bool {
        self.children.iter().any(|child| child.link.is_none() && !child.done)
    }

    /// The job ends: agents that have not come are not waited for, and not let in any more.
    pub(super) fn give_up_coming(&mut self) {
        for child in self.children.iter_mut().filter(|child| child.link.is_none() && !child.done) {
            child.done = true;
            if let (false, Ok(group)) = (child.ended, i32::try_from(child.process.id())) {
                // One that is gone has ended already.
                let _ = process::kill_group(group, Signal::SIGTERM);
            }
        }
    }

    /// Where this process has not run for a while, stopped or for want of processors, what came meanwhile was not heard.
    fn forgive(&mut self) {
        let gap = self.looked.elapsed();
        self.looked += gap;
        if gap > 2 * BEAT {
            let links =
                self.children.iter_mut().filter_map(|child| child.link.as_mut()).chain(&mut self.parent);
            links.for_each(|link| link.forgive(gap));
        }
    }

    /// Says something to those to whom nothing was said for a while.
    fn beat(&mut self) {
        let now = Instant::now();
        if let Some(parent) = self.parent.as_mut().filter(|link| link.beat_at() <= now) {
            parent.send(&Up::Beat.encode());
            if self.plan.events > Some(0) {
                parent.send(&Up::Time { node: self.node, asked: clock::monotonic() }.encode());
            }
        }
        for link in self.children.iter_mut().filter_map(|child| child.link.as_mut()) {
            if link.beat_at() <= now {
                link.send(&Down::Beat.encode());
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let links = self.children.iter().filter_map(|child| child.link.as_ref()).chain(&self.parent);
        // What is silent is looked for at each beat.
        let beats = links.map(Link::beat_at);
        let coming = self.children.iter().filter(|child| child.link.is_none() && !child.done);
        let gate = self.gate.as_ref().and_then(Gate::deadline);
        beats.chain(coming.map(|child| child.until)).chain(gate).min()
    }

    /// Starts the agents below this node.
    /// The port to which they connect is given back, if there are any.
    fn start_children(&mut self, set: &Set, mask: SigSet) -> anyhow::Result<Option<u16>> {
        let nodes: Vec<u32> = self.plan.children(self.node).collect();
        if nodes.is_empty() {
            return Ok(None);
        }
        let gate = Gate::open(set, &self.plan.cookie, token::GATE)?;
        let setting = |name: &str| {
            let found = self.plan.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
        };
        // Only gasrun itself was told by what name its host is reached.
        let own = match self.is_root() {
            true => HostDescription::local()?,
            false => HostDescription::describe(&setting("GASWORKS_INTERFACES"), "")?,
        };
        let parent = own.with_port(gate.port).to_string();
        let port = gate.port;
        self.gate = Some(gate);
        for node in nodes {
            let Some(host) = self.plan.host(node) else { continue };
            let ticket = Ticket {
                node,
                cookie: self.plan.cookie.clone(),
                answer: self.plan.answer.clone(),
                parent: parent.clone(),
                ports: self.ports.clone(),
            };
            let process = rsh::start(&self.plan, &host.name, &ticket, mask)?;
            let until = Instant::now() + self.plan.start_limit;
            self.children.push(Below { node, link: None, process, ended: false, until, done: false });
            self.beat();
        }
        Ok(Some(port))
    }

    /// The processes of remote commands that have not ended.
    pub(super) fn processes(&self) -> Vec<i32> {
        let running = self.children.iter().filter(|child| !child.ended);
        running.filter_map(|child| i32::try_from(child.process.id()).ok()).collect()
    }
}

impl Job {
    pub(super) fn start_children(&mut self) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let started = tree.start_children(&self.set, self.signals.mask_before());
        for process in tree.processes() {
            self.guardian.announce(process);
        }
        if let Some(port) = started?
            && self.verbose
        {
            self.say(&format!("agents are to come to port {port}{}", self.here()));
        }
        Ok(())
    }

    pub(super) fn beat(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.beat();
        }
    }

    /// Says something to the parent, if there is one; `false`: this process is the root.
    pub(super) fn say_up(&mut self, message: &Up) -> bool {
        match &mut self.tree {
            Some(tree) if !tree.is_root() => {
                tree.send_up(message);
                true
            }
            _ => false,
        }
    }

    /// Where a rank is, in a job over several hosts.
    pub(super) fn place_of(&self, rank: u32) -> String {
        let host = self.tree.as_ref().and_then(|tree| tree.host_of(rank));
        host.map_or_else(String::new, |host| format!(" on {host}"))
    }

    /// Something has come from another node.
    pub(super) fn tree_event(&mut self, event: Event) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        match event.user {
            token::PARENT => {
                let Some(parent) = &mut tree.parent else { return Ok(()) };
                parent.event(event);
                self.hear_parent()
            }
            gate if gate >= token::GATE => {
                let arrival = tree.gate.as_mut().and_then(|gate| gate.event(&self.set, &event));
                self.arrived(arrival)
            }
            child => {
                let index = usize::try_from(child - token::CHILDREN).unwrap_or(usize::MAX);
                let Some(Below { link: Some(link), .. }) = tree.children.get_mut(index) else {
                    return Ok(());
                };
                link.event(event);
                self.hear_child(index)
            }
        }
    }

    /// Somebody has come to the gate.
    fn arrived(&mut self, arrival: Option<Arrival>) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let why = match arrival {
            None => return Ok(()),
            Some(Arrival::Stranger { why }) => why,
            Some(Arrival::Agent { node, sock }) => {
                let expected = |child: &Below| child.node == node && child.link.is_none() && !child.done;
                match tree.children.iter().position(expected) {
                    Some(index) => {
                        sock.set_user(token::CHILDREN + index as u64);
                        let mut link = Link::new(sock);
                        link.send(&Down::Plan(tree.plan.encode()).encode());
                        tree.children[index].link = Some(link);
                        if tree.is_root() && tree.plan.towards(0, tree.first_node()) == Some(node) {
                            self.begin_input()?;
                        }
                        return Ok(());
                    }
                    None => {
                        let _ = sock.post_close();
                        format!("it calls itself node {node}, which is not expected here")
                    }
                }
            }
        };
        if self.verbose {
            self.say(&format!("sent a stranger away from the port for agents: {why}"));
        }
        Ok(())
    }

    fn hear_child(&mut self, index: usize) -> anyhow::Result<()> {
        loop {
            let Some(child) = self.tree.as_mut().and_then(|tree| tree.children.get_mut(index)) else {
                return Ok(());
            };
            let Some(link) = &mut child.link else { return Ok(()) };
            let message = match link.next() {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => Up::decode(&frame).map_err(|e| e.to_string()),
                Err(why) => Err(why),
            };
            match message {
                Ok(message) => self.heard_from_child(index, message)?,
                Err(why) => {
                    self.child_lost(index, &why);
                    return Ok(());
                }
            }
        }
    }

    fn heard_from_child(&mut self, index: usize, message: Up) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let root = tree.is_root();
        match message {
            Up::Beat => {}
            Up::Pmi(bytes) => {
                let mut out = Vec::new();
                if let Err(why) = self.server.from_child(index, &bytes, &mut out) {
                    self.child_lost(index, &why);
                }
                self.act_on(out)?;
            }
            Up::Say(text) => self.say(&text),
            Up::Output { node, stream, bytes } if root => {
                *tree.owed.entry((node, stream)).or_default() += bytes.len() as u64;
                match stream {
                    1 => self.stdout.pass_on(node, &bytes),
                    _ => self.stderr.pass_on(node, &bytes),
                }
            }
            Up::Taken(count) if root => {
                self.input_taken(usize::try_from(count).unwrap_or_default())?;
            }
            Up::Recorded { node, piece } if root => {
                let (rank, count) = (piece.rank, piece.bytes.len() as u64);
                let is_there = |host: &Host| host.ranks.binary_search(&rank).is_ok();
                let taken = match &mut self.observation {
                    Some(observation) if tree.plan.host(node).is_some_and(is_there) => {
                        observation.take(piece)
                    }
                    _ => Err(format!("it sends what rank {rank} recorded, which nobody asked it for")),
                };
                match taken {
                    Ok(()) => {
                        let room = Down::Room { node, stream: RECORDINGS, count, broken: false };
                        tree.send_down(node, &room);
                    }
                    Err(why) => self.child_lost(index, &why),
                }
            }
            Up::Time { node, asked } if root => {
                tree.send_down(node, &Down::Time { node, asked, now: clock::monotonic() });
            }
            Up::Clock { node, clock } if root && tree.plan.host(node).is_some() => {
                self.observation.iter_mut().for_each(|observation| observation.clock(node, clock));
            }
            Up::Stands { question, told } if root => {
                if let Some(inspector) = &mut self.inspector {
                    inspector.hear_host(question, told);
                }
            }
            Up::Stands { .. }
            | Up::Output { .. }
            | Up::Taken(_)
            | Up::Recorded { .. }
            | Up::Time { .. }
            | Up::Clock { .. } => {
                tree.send_up(&message);
            }
            Up::Exiting(announced) => self.exits(announced),
            Up::Exited { who, code } => self.exited(who, code),
            Up::Failed { text, code, spare } => {
                if !self.failed {
                    self.aborter = spare.filter(|_| code.is_none());
                }
                self.fail(&text, code, spare);
            }
            Up::Code { rank, code } => {
                if self.aborter == Some(rank) && self.code.is_none() {
                    self.code = Some(code);
                }
                self.say_up(&message);
            }
            Up::Ended { rank, exit } => {
                self.rank_gone(rank, exit);
                self.look_for_stuck();
            }
            // Closed from here, where all of it was read: who closes with something unread takes back what it sent.
            Up::Done => (tree.children[index].done, tree.children[index].link) = (true, None),
        }
        Ok(())
    }

    /// A rank here or below has ended.
    pub(super) fn rank_gone(&mut self, rank: u32, exit: Exit) {
        self.server.gone(rank);
        if let Some(tree) = &mut self.tree {
            tree.ended.insert(rank);
        }
        self.say_up(&Up::Ended { rank, exit });
    }

    /// A child does not speak any more, and with it all below it.
    fn child_lost(&mut self, index: usize, why: &str) {
        let Some(tree) = &mut self.tree else { return };
        let child = &mut tree.children[index];
        child.link = None;
        if std::mem::replace(&mut child.done, true) {
            return;
        }
        let node = child.node;
        let below = tree.plan.subtree(node);
        let host = tree.plan.host(node).map_or_else(String::new, |host| host.name.clone());
        let ranks: Vec<u32> =
            below.iter().filter_map(|&node| tree.plan.host(node)).flat_map(|h| h.ranks.clone()).collect();
        for rank in ranks {
            self.rank_gone(rank, Exit::Signal(Signal::SIGKILL as i32));
        }
        self.fail(&format!("host {host} is lost: {why}"), Some(code::FAILED), None);
    }

    fn hear_parent(&mut self) -> anyhow::Result<()> {
        loop {
            let Some(parent) = self.tree.as_mut().and_then(|tree| tree.parent.as_mut()) else {
                return Ok(());
            };
            let message = match parent.next() {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => Down::decode(&frame).map_err(|e| e.to_string()),
                Err(why) => Err(why),
            };
            match message {
                Ok(message) => self.heard_from_parent(message)?,
                Err(why) => {
                    self.parent_lost(&why);
                    return Ok(());
                }
            }
        }
    }

    fn heard_from_parent(&mut self, message: Down) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let here = tree.node;
        match message {
            // The plan was the first message; another one changes nothing.
            Down::Beat | Down::Plan(_) => {}
            Down::Pmi(bytes) => {
                let mut out = Vec::new();
                if let Err(why) = self.server.from_parent(&bytes, &mut out) {
                    self.parent_lost(&why);
                }
                self.act_on(out)?;
            }
            Down::Send { signal, spare } => match Signal::try_from(signal) {
                Ok(signal @ (Signal::SIGSTOP | Signal::SIGCONT)) => self.send_all(signal),
                Ok(signal) => self.signal_living(signal, spare),
                Err(_) => {}
            },
            Down::Pass { signal } => {
                if let Ok(signal) = Signal::try_from(signal) {
                    if !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) {
                        self.ended_by.get_or_insert(signal);
                    }
                    if let Some(tree) = &mut self.tree {
                        tree.tell_children(&Down::Pass { signal: signal as i32 });
                    }
                    self.signal_here(signal, None);
                }
            }
            Down::Room { node, stream: RECORDINGS, count, .. } if node == here => {
                tree.taken = tree.taken.saturating_add(usize::try_from(count).unwrap_or_default());
            }
            Down::Time { node, asked, now } if node == here => {
                tree.clock = Some(Clock::of_trip(asked, now, clock::monotonic()).better(tree.clock));
                tree.answers = tree.answers.wrapping_add(1);
            }
            Down::Time { node, .. } => tree.send_down(node, &message),
            Down::Ask { question, signal } => {
                tree.tell_children(&message);
                let known = self.known();
                self.inspector.iter_mut().for_each(|inspector| inspector.ask(question, signal, &known));
                self.inspect(None)?;
            }
            Down::Room { node, stream, count, broken } if node == here => {
                let sink = if stream == 1 { &mut self.stdout } else { &mut self.stderr };
                sink.room = sink.room.saturating_add(usize::try_from(count).unwrap_or_default());
                sink.broken |= broken;
            }
            Down::Room { node, .. } => tree.send_down(node, &message),
            Down::Input(bytes) if tree.first_node() == here => self.feed(&bytes)?,
            Down::Input(_) => tree.send_to_first(&message),
        }
        Ok(())
    }

    /// Nobody is left to decide: the ranks here and below end.
    fn parent_lost(&mut self, why: &str) {
        let Some(tree) = &mut self.tree else { return };
        if tree.parent.take().is_none() || tree.leaves {
            return;
        }
        if self.verbose {
            gasworks_os::say(&format!("gasrun: an agent has lost its parent: {why}"));
        }
        (self.stdout.broken, self.stderr.broken) = (true, true);
        self.end_all(None);
    }

    /// Sends up what ranks wrote, as long as there is room; or tells agents that there is room again.
    pub(super) fn flush_tree(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        if !tree.is_root() {
            for (stream, sink) in [(1, &mut self.stdout), (2, &mut self.stderr)] {
                while let Some(bytes) = sink.take_upward() {
                    tree.send_up(&Up::Output { node: tree.node, stream, bytes });
                }
            }
            return;
        }
        let mut told = VecDeque::new();
        for (&(node, stream), count) in &mut tree.owed {
            let sink = if stream == 1 { &self.stdout } else { &self.stderr };
            if *count > 0 && !sink.is_full() {
                told.push_back((node, stream, std::mem::take(count), sink.broken));
            }
        }
        for (node, stream, count, broken) in told {
            tree.send_down(node, &Down::Room { node, stream, count, broken });
        }
    }

    /// Beats, and looks for those that have been silent for too long.
    pub(super) fn look_at_tree(&mut self) -> anyhow::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        tree.forgive();
        tree.beat();
        let (now, patience) = (Instant::now(), tree.plan.lost_after);
        let lost: Vec<(usize, String)> = (0..)
            .zip(&tree.children)
            .filter(|(_, child)| !child.done)
            .filter_map(|(index, child)| match &child.link {
                Some(link) if link.is_silent(patience) => {
                    Some((index, format!("nothing was heard of it for {} s", patience.as_secs_f64())))
                }
                None if child.until <= now => {
                    let seconds = tree.plan.start_limit.as_secs_f64();
                    let advice = tree.advice(child, None);
                    Some((index, format!("its agent did not come within {seconds} s{advice}")))
                }
                _ => None,
            })
            .collect();
        let orphaned = tree.parent.as_ref().is_some_and(|link| link.is_silent(patience));
        let late = tree.gate.as_mut().and_then(Gate::late);
        self.arrived(late)?;
        for (index, why) in lost {
            self.child_lost(index, &why);
        }
        if orphaned {
            self.parent_lost("nothing was heard of it");
        }
        Ok(())
    }

    /// A process has ended that may be a remote command.
    pub(super) fn remote_ended(&mut self, pid: i32, exit: Exit) {
        let Some(tree) = &mut self.tree else { return };
        let of = |child: &Below| i32::try_from(child.process.id()).is_ok_and(|own| own == pid);
        let Some(index) = tree.children.iter().position(of) else { return };
        tree.children[index].ended = true;
        // Of one that came its connection tells more.
        if tree.children[index].link.is_none() {
            let advice = tree.advice(&tree.children[index], Some(exit));
            self.child_lost(index, &format!("the remote command {exit} before the agent came{advice}"));
        }
    }

    /// Gives remote commands a moment to end by themselves after their agents have.
    pub(super) fn await_remote_commands(&mut self) {
        let until = Instant::now() + REMOTE_END;
        while Instant::now() < until && self.tree.as_ref().is_some_and(|tree| !tree.processes().is_empty()) {
            while let Some((pid, exit)) = process::reap() {
                self.remote_ended(pid, exit);
            }
            self.pause(Duration::from_millis(5));
        }
    }

    /// Sends up what the ranks here have recorded, which have ended; `false`: it is not to be sent.
    pub(super) fn send_recordings(&mut self) -> bool {
        if self.tree.as_ref().is_none_or(Tree::is_root) {
            return false;
        }
        let Some(observation) = self.observation.take() else { return true };
        if let Err(e) = self.send_all_recorded(&observation) {
            self.say(&format!("{e:#}{}", self.here()));
        }
        true
    }

    fn send_all_recorded(&mut self, observation: &Observation) -> anyhow::Result<()> {
        let mut sender = observation.sender()?;
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let (node, has_times) = (tree.node, tree.plan.events > Some(0));
        let mut trips = if has_times { TRIPS } else { 0 };
        while let Some(tree) = self.tree.as_mut().filter(|tree| trips > 0 && tree.parent.is_some()) {
            let answers = tree.answers;
            tree.send_up(&Up::Time { node, asked: clock::monotonic() });
            self.wait_for_parent(|tree| tree.answers != answers)?;
            trips -= 1;
        }
        if let Some(clock) = self.tree.as_ref().and_then(|tree| tree.clock) {
            self.say_up(&Up::Clock { node, clock });
        }
        while let Some(tree) = self.tree.as_mut().filter(|tree| tree.parent.is_some()) {
            sender.has_room(std::mem::take(&mut tree.taken));
            match sender.next().context("read what the ranks recorded")? {
                Some(piece) => tree.send_up(&Up::Recorded { node, piece }),
                None if sender.is_done() => break,
                None => self.wait_for_parent(|tree| tree.taken > 0)?,
            }
        }
        Ok(())
    }

    /// Waits until the parent has said what makes it so, or is lost.
    fn wait_for_parent(&mut self, is_so: impl Fn(&Tree) -> bool) -> anyhow::Result<()> {
        while self.tree.as_ref().is_some_and(|tree| tree.parent.is_some() && !is_so(tree)) {
            self.wait(Some(BEAT))?;
            self.look_at_tree()?;
        }
        Ok(())
    }

    /// All has ended here and below: says so, and waits until the parent has heard it and closes. What is still to come from there is
    /// read until then.
    pub(super) fn leave_tree(&mut self) {
        self.say_up(&Up::Done);
        let Some(tree) = &mut self.tree else { return };
        tree.leaves = true;
        let until = Instant::now() + super::DRAIN;
        while self.tree.as_ref().is_some_and(|tree| tree.parent.is_some()) && Instant::now() < until {
            if self.wait(Some(until.saturating_duration_since(Instant::now()))).is_err() {
                break;
            }
        }
    }

    /// How many strangers were dropped at the gate.
    pub(super) fn strangers(&self) -> usize {
        self.tree.as_ref().and_then(|tree| tree.gate.as_ref()).map_or(0, |gate| gate.visitors.refused)
    }

    fn act_on(&mut self, outputs: Vec<Output>) -> anyhow::Result<()> {
        outputs.into_iter().try_for_each(|output| self.act(output))?;
        self.look_for_stuck();
        Ok(())
    }

    /// What the server here has to say to others.
    pub(super) fn pmi_up(&mut self, bytes: Vec<u8>) {
        self.say_up(&Up::Pmi(bytes));
    }

    pub(super) fn pmi_down(&mut self, child: usize, bytes: Vec<u8>) {
        let below = self.tree.as_mut().and_then(|tree| tree.children.get_mut(child));
        if let Some(Below { link: Some(link), .. }) = below {
            link.send(&Down::Pmi(bytes).encode());
        }
    }
}
