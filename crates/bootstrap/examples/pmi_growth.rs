//! How a fence and an exchange grow with the job, for one server and for a tree of servers: messages, bytes and time,
//! all in one process and without a network. The table goes to standard output.
//!
//! Ranks sit on hosts of sixteen. *flat*: one server talks to every rank. *tree*: a server on each host, each with up to
//! sixteen below it. In the exchange each rank gives 64 bytes: either every rank asks for what every other has put
//! (*each*), or one rank of a host puts and asks for all of that host (*hosts*), as ranks that gather among themselves
//! do. The columns of the busiest server are what decides: what it takes in and gives out.

use std::collections::VecDeque;
use std::time::Instant;

use gasworks_bootstrap::server::{Output, Part, Server};

const HOST: u32 = 16;
const FAN: usize = 16;
const CARD: usize = 64;
const JOB: &str = "growth";

#[derive(Clone, Copy, Default)]
struct Traffic {
    messages: u64,
    bytes: u64,
}

impl Traffic {
    fn count(&mut self, bytes: &[u8]) {
        self.messages += 1;
        self.bytes += bytes.len() as u64;
    }

    fn and(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    fn since(self, before: Self) -> Self {
        Self { messages: self.messages - before.messages, bytes: self.bytes - before.bytes }
    }
}

struct World {
    size: u32,
    servers: Vec<Server>,
    flat: bool,
    /// Of each server: with ranks, and with other servers.
    ranks: Vec<Traffic>,
    links: Vec<Traffic>,
}

impl World {
    fn new(size: u32, flat: bool) -> Self {
        let hosts = if flat { 1 } else { size.div_ceil(HOST) as usize };
        let part = |server: usize| {
            let first = server as u32 * HOST;
            Part {
                job: JOB.into(),
                size,
                ranks: if flat { (0..size).collect() } else { (first..size.min(first + HOST)).collect() },
                children: (server * FAN + 1..hosts.min(server * FAN + FAN + 1)).len(),
                has_parent: server > 0,
                mapping: format!("(vector,(0,{hosts},{HOST}))"),
            }
        };
        let servers = (0..hosts).map(|server| Server::of_part(part(server))).collect();
        let none = vec![Traffic::default(); hosts];
        let mut world = Self { size, servers, flat, ranks: none.clone(), links: none };
        (0..size).for_each(|rank| {
            world.tell(rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
        });
        world
    }

    /// What a rank says; how many ranks were answered in the end.
    fn tell(&mut self, rank: u32, text: &str) -> usize {
        let home = if self.flat { 0 } else { (rank / HOST) as usize };
        let (mut out, mut answered) = (Vec::new(), 0);
        self.ranks[home].count(text.as_bytes());
        self.servers[home].feed(rank, &mut text.as_bytes().to_vec(), &mut out);
        let mut queue: VecDeque<(usize, Output)> = out.drain(..).map(|o| (home, o)).collect();
        while let Some((at, output)) = queue.pop_front() {
            let to = match output {
                Output::Send { bytes, .. } => {
                    self.ranks[at].count(&bytes);
                    answered += 1;
                    continue;
                }
                Output::Up { bytes } => {
                    let (parent, child) = ((at - 1) / FAN, (at - 1) % FAN);
                    self.pass(at, parent, &bytes);
                    self.servers[parent].from_child(child, &bytes, &mut out).expect("understood");
                    parent
                }
                Output::Down { child, bytes } => {
                    let child = at * FAN + 1 + child;
                    self.pass(at, child, &bytes);
                    self.servers[child].from_parent(&bytes, &mut out).expect("understood");
                    child
                }
                _ => continue,
            };
            queue.extend(out.drain(..).map(|o| (to, o)));
        }
        answered
    }

    fn pass(&mut self, from: usize, to: usize, bytes: &[u8]) {
        self.links[from].count(bytes);
        self.links[to].count(bytes);
    }

    fn fence(&mut self) {
        let released: usize = (0..self.size).map(|rank| self.tell(rank, "cmd=barrier_in\n")).sum();
        assert_eq!(released, self.size as usize, "a fence lets everybody go once");
    }

    /// Those who speak put `length` bytes each, and ask for what the others have put.
    fn exchange(&mut self, speakers: &[u32], length: usize) {
        let value = "x".repeat(length.div_ceil(3) * 4);
        for &rank in speakers {
            // A value is cut into what fits a line.
            for (piece, part) in value.as_bytes().chunks(512).enumerate() {
                let part = String::from_utf8_lossy(part);
                self.tell(rank, &format!("cmd=put kvsname={JOB} key=card-{rank}-{piece} value={part}\n"));
            }
        }
        self.fence();
        for &rank in speakers {
            for &other in speakers {
                for piece in 0..value.len().div_ceil(512) {
                    self.tell(rank, &format!("cmd=get kvsname={JOB} key=card-{other}-{piece}\n"));
                }
            }
        }
    }

    /// Does something, and prints what it cost.
    fn report(&mut self, what: &str, act: impl FnOnce(&mut Self)) {
        let before = (self.ranks.clone(), self.links.clone());
        let start = Instant::now();
        act(self);
        let seconds = start.elapsed().as_secs_f64();
        let ranks: Vec<Traffic> = self.ranks.iter().zip(before.0).map(|(now, b)| now.since(b)).collect();
        let links: Vec<Traffic> = self.links.iter().zip(before.1).map(|(now, b)| now.since(b)).collect();
        let sum = |all: &[Traffic]| all.iter().fold(Traffic::default(), |sum, one| sum.and(*one));
        let busiest = ranks.iter().zip(&links).map(|(r, l)| r.and(*l)).max_by_key(|t| t.bytes);
        let (busiest, talk, link) = (busiest.unwrap_or_default(), sum(&ranks), sum(&links));
        println!(
            "{:>6} {:>5} {what:<14} {:>10} {:>13} {:>8} {:>13} {:>10} {:>13} {:>10.3}",
            self.size,
            if self.flat { "flat" } else { "tree" },
            talk.messages,
            talk.bytes,
            // Each was counted at both ends.
            link.messages / 2,
            link.bytes / 2,
            busiest.messages,
            busiest.bytes,
            seconds * 1e3,
        );
    }
}

fn main() {
    println!("each rank gives {CARD} bytes; {HOST} ranks on a host; up to {FAN} servers below one\n");
    println!(
        "{:>6} {:>5} {:<14} {:>10} {:>13} {:>8} {:>13} {:>10} {:>13} {:>10}",
        "ranks", "shape", "what", "messages", "bytes", "of links", "bytes", "busiest", "bytes", "ms"
    );
    for size in [16, 64, 256, 1024, 4096, 10_000] {
        for flat in [true, false] {
            let mut world = World::new(size, flat);
            world.report("fence", World::fence);
            if size <= 1024 {
                let all: Vec<u32> = (0..size).collect();
                world.report("exchange each", |world| world.exchange(&all, CARD));
            }
            // Another world: a key is put once.
            let mut world = World::new(size, flat);
            let first: Vec<u32> = (0..size).step_by(HOST as usize).collect();
            world.report("exchange hosts", |world| world.exchange(&first, CARD * HOST as usize));
        }
    }
}
