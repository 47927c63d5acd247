//! A hash table distributed over the ranks: a key's hash names the rank that keeps it.
//!
//! To insert is a Medium request with the value as its payload; its reply says that the value is stored. To look up is
//! a Short request whose reply is a Medium with the value. Replies find their caller by a ticket.
//!
//! ```text
//! gasrun -n 4 dht --size 10000
//! ```

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gasworks::{Agent, Config, Error, Job, MediumRequest, Payload, Reply, Request, Seq, ShortRequest, Table};
use gasworks_examples::kmer::{mix, owner};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Inserts and looks up keys in a distributed hash table")]
struct Args {
    /// Keys that each rank inserts
    #[arg(long, default_value_t = 10_000)]
    size: u64,
}

/// The calls of a distributed hash table, and what its handlers keep.
struct Dht {
    insert: MediumRequest<[u64; 1]>,
    lookup: ShortRequest<[u64; 2]>,
    stored: Rc<Cell<u64>>,
    answers: Rc<RefCell<HashMap<u64, Option<Vec<u8>>>>>,
    inserted: Cell<u64>,
    tickets: Cell<u64>,
}

impl Dht {
    fn register(table: &mut Table<Seq>) -> Result<Self, Error> {
        let shard = Rc::new(RefCell::new(HashMap::<u64, Vec<u8>>::new()));
        let stored = Rc::new(Cell::new(0));
        let answers = Rc::new(RefCell::new(HashMap::new()));

        let count = stored.clone();
        let done =
            table.short_reply("stored", move |_: Reply<'_>, _: [u32; 0]| count.set(count.get() + 1))?;
        let keep = shard.clone();
        let insert = table.medium_request(
            "insert",
            move |request: Request<'_, Seq>, [key]: [u64; 1], value: Payload<'_>| {
                keep.borrow_mut().insert(key, value.to_vec());
                request.reply_short(done, [])
            },
        )?;

        let note = answers.clone();
        let found = table.medium_reply(
            "found",
            move |_: Reply<'_>, [ticket, some]: [u64; 2], value: Payload<'_>| {
                note.borrow_mut().insert(ticket, (some == 1).then(|| value.to_vec()));
            },
        )?;
        let lookup =
            table.short_request("lookup", move |request: Request<'_, Seq>, [ticket, key]: [u64; 2]| {
                match shard.borrow().get(&key) {
                    Some(value) => request.reply_medium(found, [ticket, 1], value),
                    None => request.reply_medium(found, [ticket, 0], &[]),
                }
            })?;
        let (inserted, tickets) = (Cell::new(0), Cell::new(0));
        Ok(Self { insert, lookup, stored, answers, inserted, tickets })
    }

    /// Sends a value to its owner; `settle` waits until it is there.
    fn insert(&self, agent: &Agent<'_, Seq>, key: u64, value: &[u8]) -> Result<(), Error> {
        self.inserted.set(self.inserted.get() + 1);
        agent.request_medium(owner(key, agent.ranks()), self.insert, [key], value)
    }

    /// Waits until all that this rank inserted is stored.
    fn settle(&self, agent: &Agent<'_, Seq>) -> Result<(), Error> {
        agent.wait_until(|| self.stored.get() == self.inserted.get())
    }

    /// Asks for a value; the ticket is for `take`.
    fn ask(&self, agent: &Agent<'_, Seq>, key: u64) -> Result<u64, Error> {
        let ticket = self.tickets.replace(self.tickets.get() + 1);
        agent.request_short(owner(key, agent.ranks()), self.lookup, [ticket, key])?;
        Ok(ticket)
    }

    /// Waits for the answer to a ticket.
    fn take(&self, agent: &Agent<'_, Seq>, ticket: u64) -> Result<Option<Vec<u8>>, Error> {
        agent.wait_until(|| self.answers.borrow().contains_key(&ticket))?;
        Ok(self.answers.borrow_mut().remove(&ticket).flatten())
    }
}

fn main() -> ExitCode {
    gasworks_examples::end("dht", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let mut table = Table::<Seq>::new();
    let dht = Dht::register(&mut table)?;
    let job = Job::open(Config::from_env()?, table)?;
    let agent = job.agent()?;
    let (rank, ranks) = (u64::from(agent.rank()), u64::from(agent.ranks()));

    let key = |rank: u64, i: u64| mix(rank << 40 | i);
    let value = |rank: u64, i: u64| format!("value {i} of rank {rank}").into_bytes();
    agent.barrier()?;
    let start = Instant::now();
    for i in 0..args.size {
        dht.insert(&agent, key(rank, i), &value(rank, i))?;
    }
    dht.settle(&agent)?;
    agent.barrier()?;

    // Look up what the next rank inserted, with a few questions under way at a time.
    let next = (rank + 1) % ranks;
    let all: Vec<u64> = (0..args.size).collect();
    for some in all.chunks(32) {
        let tickets: Vec<u64> =
            some.iter().map(|&i| dht.ask(&agent, key(next, i))).collect::<Result<_, _>>()?;
        for (&i, ticket) in some.iter().zip(tickets) {
            let found =
                dht.take(&agent, ticket)?.with_context(|| format!("key {i} of rank {next} is lost"))?;
            ensure!(found == value(next, i), "key {i} of rank {next} has a wrong value");
        }
    }
    let ticket = dht.ask(&agent, key(ranks, 0))?;
    ensure!(dht.take(&agent, ticket)?.is_none(), "a key was found that nobody inserted");
    agent.barrier()?;
    if rank == 0 {
        let calls = (2 * args.size * ranks) as f64;
        let rate = calls / start.elapsed().as_secs_f64() / 1e3;
        println!("dht: {calls} calls over {ranks} ranks, {rate:.0} thousand a second; every value was right");
    }
    Ok(job.close()?)
}
