//! Does the operations of the library over the software NIC, one kind after the other, each once, then some times, then twice as
//! often: what one of them costs is the difference of the last two, divided by how often. Before each of the three the NIC is told
//! a mark, and its witness says what lies between two of them. Two more marks are behind the first and the last operation: what the
//! clock says of these knows nothing of how the ranks met before.
//!
//! # Invariants
//! - gasworks_operations.1: `gasworks_ugni_mark` is the software NIC's: it takes a number, and touches nothing of its caller's.
//! - gasworks_operations.2: local bytes of a raw put or get are a part of this rank's segment, or of a vector that lives as long as the
//!   job and of which there is no slice meanwhile, or of a put constant; nobody else uses them but puts that are under way together,
//!   and all events are waited for before anything else is done.
#![allow(unsafe_code)]

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use gasworks::{
    Agent, AtomicOp, AtomicOps, By, Config, Favor, GlobalPtr, Job, Landed, LongRequest, MediumRequest, Par,
    Payload, Request, ShortRequest, Table,
};
use gasworks_gni::{Chip, Memory};
use gasworks_os::library::Library;
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::tally::{COPIES, LOCKS, Tally};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Parser)]
#[command(about = "Does each operation of the library over the software NIC, with marks around it")]
struct Args {
    /// How often each is done, and then twice as often
    #[arg(long, default_value_t = 8)]
    times: u64,
    /// Only the operation of this name
    #[arg(long)]
    only: Option<String>,
    /// Puts and gets that are under way at once, each with its own memory where that is outside the segment
    #[arg(long, default_value_t = 1)]
    together: usize,
    /// Puts from outside the segment are from memory that may only be read
    #[arg(long)]
    constant: bool,
    /// Have the first rank poll with many messages waiting, and a thread of it with many puts to be completed, with a mark before each poll
    #[arg(long)]
    polls: bool,
    /// Print what memory messages take in jobs of more and more ranks instead
    #[arg(long)]
    memory: bool,
}

const MEDIUMS: [usize; 3] = [8, 512, 4032];
const LONGS: [usize; 4] = [64, 4 << 10, 64 << 10, 1 << 20];
const TRANSFERS: [usize; 8] = [8, 128, 1 << 10, 4 << 10, 8 << 10, 64 << 10, 1 << 20, 4 << 20];
/// The largest transfer, and what is around it.
const ZONE: u64 = (4 << 20) + PAGE as u64;
const PAGE: usize = 4096;
/// By so many bytes is not aligned what is not.
const ASKEW: u64 = 3;
/// Memory that may only be read.
static CONSTANT: [u8; 64 << 10] = [7; 64 << 10];
/// Polls in which everything comes to rest.
const POLLS: u32 = 64;
/// Messages of each rank that wait, puts that do, and polls of each kind, of which those of puts have marks from a thousand on.
const WAITING: u64 = 60;
const PUTS: usize = 150;
const POLLED: u64 = 200;
const POLLED_FOR_PUTS: u64 = 1000;
/// Marks of so many of an operation: before them, behind the first, behind the last.
const MARKS: u64 = 3;

#[derive(Clone, Copy)]
enum What {
    Short,
    Medium(usize),
    Long(usize),
    Put(Transfer),
    Get(Transfer),
    /// On a word, by the NIC; and whether what it was is fetched.
    Add {
        fetches: bool,
    },
    Barrier,
}

#[derive(Clone, Copy)]
struct Transfer {
    len: usize,
    /// The local bytes are in the segment.
    inside: bool,
    aligned: bool,
}

impl What {
    /// Whether the other rank answers.
    fn talks(self) -> bool {
        matches!(self, What::Short | What::Medium(_) | What::Long(_))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Short => f.write_str("short"),
            What::Medium(len) => write!(f, "medium {len}"),
            What::Long(len) => write!(f, "long {len}"),
            What::Put(transfer) => write!(f, "put {transfer}"),
            What::Get(transfer) => write!(f, "get {transfer}"),
            What::Add { fetches: false } => f.write_str("add 8"),
            What::Add { fetches: true } => f.write_str("fetch-and-add 8"),
            What::Barrier => f.write_str("barrier"),
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.inside { "inside" } else { "outside" };
        write!(f, "{} {place} {}", self.len, if self.aligned { "aligned" } else { "unaligned" })
    }
}

/// All of them, in the order in which they are done.
fn operations() -> Vec<What> {
    let transfers = TRANSFERS.into_iter().flat_map(|len| {
        let places = [(true, true), (true, false), (false, true), (false, false)];
        places.map(|(inside, aligned)| Transfer { len, inside, aligned })
    });
    let mut all = vec![What::Short];
    all.extend(MEDIUMS.map(What::Medium));
    all.extend(LONGS.map(What::Long));
    all.extend(transfers.clone().map(What::Put));
    all.extend(transfers.map(What::Get));
    all.extend([false, true].map(|fetches| What::Add { fetches }));
    all.push(What::Barrier);
    all
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = if args.memory { memory() } else { run(&args) };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            gasworks_os::say(&format!("gasworks-operations: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// What memory messages take: a line for each chip and number of ranks.
fn memory() -> Result<()> {
    let ranks = (1..=5).flat_map(|power| [1, 2, 5].map(|step| step * 10_u32.pow(power)));
    let ranks: Vec<_> = [1, 2, 5].into_iter().chain(ranks).filter(|ranks| *ranks <= 100_000).collect();
    for (chip, name) in [(Chip::Aries, "aries"), (Chip::Gemini, "gemini")] {
        for &ranks in &ranks {
            let Memory { registered, tables, queue, .. } = Memory::of(chip, ranks)?;
            println!("{name}\t{ranks}\t{registered}\t{tables}\t{queue}");
        }
    }
    Ok(())
}

fn count(tally: &Tally) -> Result<u64> {
    tally.read().context("copies and locks are counted in a build with debug assertions alone")
}

/// What this rank has counted itself, for it is not the NIC's: in the calls that start something, not in polls that find nothing.
#[derive(Clone, Copy)]
struct Counted {
    copies: u64,
    locks: u64,
}

/// What handlers count.
#[derive(Default)]
struct Handled {
    requests: AtomicU64,
    replies: AtomicU64,
    /// Locks that replying has taken.
    locks: AtomicU64,
}

struct Stage<'a> {
    agent: Agent<'a, Par>,
    handled: Arc<Handled>,
    short: ShortRequest<u64>,
    medium: MediumRequest<u64>,
    long: LongRequest<u64>,
    mark: unsafe extern "C" fn(u64),
    /// Local bytes outside the segment, of each operation its own: nobody has registered them before.
    outside: Vec<Vec<u8>>,
    /// Puts and gets at once, and whether puts are from constants.
    together: usize,
    constant: bool,
    /// Requests, all in all.
    requests: u64,
    /// Locks of calls, all in all.
    locks: u64,
}

fn run(args: &Args) -> Result<()> {
    let handled = Arc::new(Handled::default());
    let mut table = Table::<Par>::new();
    let seen = handled.clone();
    let pong = table.short_reply("pong", move |_: gasworks::Reply<'_>, _: u64| {
        seen.replies.fetch_add(1, Ordering::Relaxed);
    })?;
    let seen = handled.clone();
    let answer = move |request: Request<'_, Par>, value: u64| {
        let before = LOCKS.read();
        let answered = request.reply_short(pong, value);
        let taken = LOCKS.read().zip(before).map_or(0, |(after, before)| after - before);
        seen.locks.fetch_add(taken, Ordering::Relaxed);
        seen.requests.fetch_add(1, Ordering::Relaxed);
        answered
    };
    let answer = Arc::new(answer);
    let own = answer.clone();
    let short =
        table.short_request("short", move |request: Request<'_, Par>, value: u64| own(request, value))?;
    let own = answer.clone();
    let medium = table
        .medium_request("medium", move |request: Request<'_, Par>, value: u64, _: Payload<'_>| {
            own(request, value)
        })?;
    let long = table.long_request("long", move |request: Request<'_, Par>, value: u64, _: Landed| {
        answer(request, value)
    })?;
    let job = Job::open(Config::from_env()?.segment(2 * ZONE), table)?;
    {
        let library = Library::open(gasworks_gni_sys::LIBRARY)?;
        // SAFETY: gasworks_operations.1: the software NIC's library has it as a C function of one `u64` without a result.
        let mark = unsafe { library.function::<unsafe extern "C" fn(u64)>(c"gasworks_ugni_mark") };
        let mark = mark.context("libugni has no gasworks_ugni_mark: this program is for the software NIC")?;
        let agent = job.agent()?;
        ensure!(agent.ranks() == 2 || args.polls, "two ranks are wanted, not {}", agent.ranks());
        let (outside, requests, locks) = (Vec::new(), 0, 0);
        let Args { together, constant, .. } = *args;
        let mut stage =
            Stage { agent, handled, short, medium, long, mark, outside, together, constant, requests, locks };
        if args.polls {
            stage.polls(&job)?;
        }
        let rank = stage.agent.rank();
        println!("process\t{rank}\t{}", std::process::id());
        let mut mark = 0;
        let wanted = |what: &What| args.only.as_ref().is_none_or(|name| *name == what.to_string());
        let times = args.times;
        for what in operations().into_iter().filter(|what| !args.polls && wanted(what)) {
            stage.prepare(what);
            let first = mark;
            let mut counted = Vec::new();
            for times in [1, times, 2 * times] {
                counted.push(stage.rest(mark)?);
                stage.some(what, times, mark)?;
                mark += MARKS;
            }
            counted.push(stage.rest(mark)?);
            mark += 1;
            let more = |of: fn(&Counted) -> u64| {
                let [_, some, twice, end] = counted[..] else { return 0 };
                of(&end) + of(&some) - 2 * of(&twice)
            };
            let (copies, locks) = (more(|counted| counted.copies), more(|counted| counted.locks));
            println!("operation\t{rank}\t{what}\t{first}\t{times}\t{copies}\t{locks}");
        }
    }
    Ok(job.close()?)
}

/// Polls with a mark before each, from this number on, and one behind the last.
fn marked(mark: unsafe extern "C" fn(u64), agent: &Agent<'_, Par>, first: u64) -> Result<()> {
    for number in first..first + POLLED {
        // SAFETY: gasworks_operations.1: `run` has looked `mark` up by its name in the software NIC's library, which stays loaded; it takes
        // a number.
        unsafe { mark(number) };
        agent.poll()?;
    }
    // SAFETY: gasworks_operations.1: `mark` is still loaded, and takes a number alone.
    unsafe { mark(first + POLLED) };
    Ok(())
}

impl Stage<'_> {
    fn mark(&self, number: u64) {
        // SAFETY: gasworks_operations.1: `run` has looked it up in the software NIC's library, which stays loaded as long as this stage.
        unsafe { (self.mark)(number) };
    }

    /// All others send the first rank messages, and say by a put when they have; then it polls, again and again. After that a thread of it,
    /// which is the first of another domain where there are several, polls for its puts.
    fn polls(&self, job: &Job<Par>) -> Result<()> {
        let (agent, me) = (&self.agent, self.agent.rank());
        let others = agent.ranks() - 1;
        let replied = |count| agent.wait_until(|| self.handled.replies.load(Ordering::Relaxed) >= count);
        if me > 0 {
            // Of the first one the first rank learns that this one talks, and gives it a mailbox.
            for number in 1..=2 {
                agent.request_short(0, self.short, number)?;
                replied(number)?;
            }
        }
        agent.barrier()?;
        // What comes while the first rank is still in the barrier it handles there: nobody sends before it says that it has left.
        let has_left = GlobalPtr::<u64>::new(0, 0);
        if me == 0 {
            let words = agent.local(has_left, others as usize + 1)?.as_ptr();
            agent.put_value(has_left, 1)?;
            for rank in 1..=others as usize {
                // SAFETY: gasworks_operations.2: `words` are in this rank's segment, which stays mapped, as many as there are ranks; one
                // rank writes to each.
                while unsafe { words.add(rank).read_volatile() } == 0 {
                    std::thread::yield_now();
                }
            }
            marked(self.mark, agent, 0)?;
        } else {
            while agent.get_value(has_left)? == 0 {
                std::thread::yield_now();
            }
            (0..WAITING).try_for_each(|number| agent.request_short(0, self.short, number))?;
            agent.put_value(GlobalPtr::<u64>::new(0, 8 * u64::from(me)), 1)?;
            replied(WAITING + 2)?;
        }
        agent.barrier()?;
        if me == 0 {
            let mark = self.mark;
            let of_another = move || -> Result<()> {
                let agent = job.agent()?;
                (0..POLLS).try_for_each(|_| agent.poll().map(drop))?;
                let here = agent.local(GlobalPtr::<u8>::new(0, ZONE), 8)?.as_ptr();
                // SAFETY: gasworks_operations.2: `here` is in this rank's segment, where nobody writes; all events are waited for below.
                let put = |_| unsafe { agent.put_raw(GlobalPtr::<u8>::new(1, 0), here, 8) };
                let events = (0..PUTS).map(put).collect::<Result<Vec<_>, _>>()?;
                marked(mark, &agent, POLLED_FOR_PUTS)?;
                Ok(events.into_iter().try_for_each(|event| event.wait(&agent))?)
            };
            std::thread::scope(|scope| scope.spawn(of_another).join())
                .unwrap_or_else(|_| bail!("it panicked"))?;
        }
        Ok(agent.barrier()?)
    }

    /// All is at rest here, a mark is made, and all have made it; what was counted up to it.
    fn rest(&self, mark: u64) -> Result<Counted> {
        self.agent.barrier()?;
        (0..POLLS).try_for_each(|_| self.agent.poll().map(drop))?;
        self.mark(mark);
        let locks = self.locks + self.handled.locks.load(Ordering::Relaxed);
        let counted = Counted { copies: count(&COPIES)?, locks };
        self.agent.barrier()?;
        Ok(counted)
    }

    /// Local bytes for an operation, which nobody has used before.
    fn prepare(&mut self, what: What) {
        if let What::Put(Transfer { len, .. })
        | What::Get(Transfer { len, .. })
        | What::Medium(len)
        | What::Long(len) = what
        {
            self.outside.extend((0..self.together).map(|_| vec![7; len + 2 * PAGE]));
        }
    }

    /// An operation so many times. The first rank does it, and the other lets it be done.
    fn some(&mut self, what: What, times: u64, mark: u64) -> Result<()> {
        let (talks, sent) = (what.talks(), self.requests);
        self.requests += if talks { times } else { 0 };
        for number in 1..=times {
            match what {
                What::Barrier => self.meet()?,
                _ if self.agent.rank() != 0 => break,
                What::Put(transfer) => self.transfer(transfer, true)?,
                What::Get(transfer) => self.transfer(transfer, false)?,
                What::Add { fetches } => self.add(fetches)?,
                What::Short | What::Medium(_) | What::Long(_) => self.talk(what, sent + number)?,
            }
            if number == 1 {
                self.mark(mark + 1);
            }
        }
        self.mark(mark + 2);
        if talks && self.agent.rank() != 0 {
            self.agent.wait_until(|| self.handled.requests.load(Ordering::Relaxed) >= self.requests)?;
        }
        Ok(())
    }

    /// Counts the locks of a call.
    fn call<R>(&mut self, call: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let before = count(&LOCKS)?;
        let called = call(self)?;
        self.locks += count(&LOCKS)? - before;
        Ok(called)
    }

    fn meet(&mut self) -> Result<()> {
        let phase = self.call(|stage| Ok(stage.agent.barrier_begin()?))?;
        phase.wait(&self.agent)?;
        // Its own post's event is taken before the next one begins.
        self.agent.poll()?;
        Ok(())
    }

    /// A request that is answered.
    fn talk(&mut self, what: What, number: u64) -> Result<()> {
        self.call(|stage| {
            let agent = &stage.agent;
            let payload = stage.outside.last().map_or(&[][..], Vec::as_slice);
            match what {
                What::Medium(len) => agent.request_medium(1, stage.medium, number, &payload[..len])?,
                What::Long(len) => {
                    agent.request_long(stage.long, number, &payload[..len], GlobalPtr::new(1, 0))?;
                }
                _ => agent.request_short(1, stage.short, number)?,
            }
            Ok(())
        })?;
        Ok(self.agent.wait_until(|| self.handled.replies.load(Ordering::Relaxed) >= number)?)
    }

    /// An atomic operation that is waited for.
    fn add(&mut self, fetches: bool) -> Result<()> {
        let word = GlobalPtr::<u64>::new(1, 0);
        let adding = self.agent.atomics::<u64>(AtomicOps::ADD | AtomicOps::FADD, Favor::Far)?;
        ensure!(adding.by() == By::Nic, "sums are not the NIC's but {:?}'s", adding.by());
        self.call(|stage| {
            match fetches {
                true => _ = adding.fetch(&stage.agent, word, AtomicOp::Add(1))?,
                false => adding.apply(&stage.agent, word, AtomicOp::Add(1))?,
            }
            Ok(())
        })
    }

    /// Puts or gets that are under way together, and waited for.
    fn transfer(&mut self, transfer: Transfer, puts: bool) -> Result<()> {
        let Transfer { len, inside, aligned } = transfer;
        let there = GlobalPtr::<u8>::new(1, if aligned { 0 } else { ASKEW });
        let here: Vec<*mut u8> = if inside {
            vec![self.agent.local(GlobalPtr::<u8>::new(0, ZONE), len)?.as_ptr(); self.together]
        } else if puts && self.constant {
            let bytes = CONSTANT.get(..len).context("constants are shorter")?;
            vec![bytes.as_ptr().cast_mut(); self.together]
        } else {
            let own = self.outside.iter_mut().rev().take(self.together);
            let starts = own.map(|bytes| bytes.as_mut_ptr());
            starts.map(|start| start.wrapping_add(start.align_offset(PAGE))).collect()
        };
        self.call(|stage| {
            // SAFETY: gasworks_operations.2: `len` bytes at `here` are in the segment, in `CONSTANT` for puts, or in a vector with two
            // pages more; all is waited for below.
            let start = |here: *mut u8| unsafe {
                match puts {
                    true => stage.agent.put_raw(there, here, len),
                    false => stage.agent.get_raw(there, here, len),
                }
            };
            let events = here.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
            Ok(events.into_iter().try_for_each(|event| event.wait(&stage.agent))?)
        })
    }
}
