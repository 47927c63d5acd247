//! What the ranks do. See the invariants of the module above.

use bytemuck::Zeroable;
use gasworks::{Config, Error, Job, Par, Request, ShortRequest, Table};
use nix::sys::signal::{SigHandler, Signal};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a child outlives its rank, about; whoever has not noticed the rank's end by then never will.
const CHILD: Duration = Duration::from_secs(2);
/// Longer than any of these jobs may take.
const FOR_EVER: Duration = Duration::from_secs(30);

struct Rank {
    job: Job<Par>,
    end: ShortRequest<i32>,
    fall: ShortRequest<u32>,
}

fn end_it(_: Request<'_, Par>, code: i32) {
    gasworks::exit(code)
}

fn fall(_: Request<'_, Par>, _: u32) {
    panic!("in a handler")
}

fn open() -> Result<Rank, Error> {
    let mut table = Table::<Par>::new();
    let end = table.short_request("end", end_it)?;
    let fall = table.short_request("fall", fall)?;
    let job = Job::open(config()?, table)?;
    Ok(Rank { job, end, fall })
}

fn config() -> Result<Config, Error> {
    let may_return = std::env::args().any(|word| word == "return-allowed");
    Ok(Config::from_env()?.segment(4096).end_by_return(may_return))
}

/// This rank, as the launcher says before anything is open.
fn rank_told() -> u32 {
    let row = gasworks_bootstrap::SETTINGS.iter().find(|row| row.name == "PMI_RANK");
    row.and_then(|row| row.number().ok().flatten()).unwrap_or(0) as u32
}

/// Looks at nothing until the end.
fn compute() -> ! {
    compute_for(FOR_EVER)
}

fn compute_for(length: Duration) -> ! {
    let begun = Instant::now();
    let mut sum = 0u64;
    while begun.elapsed() < length {
        for n in 0..100_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
        // The ranks may be more than the cores.
        std::thread::yield_now();
    }
    println!("rank ended too late");
    std::process::exit(99)
}

fn raise(signal: Signal) {
    nix::sys::signal::raise(signal).unwrap_or_else(|e| panic!("raising {signal}: {e}"));
}

fn handle(signal: Signal, handler: extern "C" fn(i32)) {
    dispose(signal, SigHandler::Handler(handler));
}

fn dispose(signal: Signal, handler: SigHandler) {
    // SAFETY: ends.1: each handler that is given here makes safe calls alone, or ends the process, or is one of the system's.
    let done = unsafe { nix::sys::signal::signal(signal, handler) };
    done.unwrap_or_else(|e| panic!("handling {signal}: {e}"));
}

extern "C" fn on_quit(_: i32) {
    const TEXT: &[u8] = b"quit handler ran\n";
    // SAFETY: ends.2: the call reads `TEXT.len()` bytes of a constant.
    unsafe { nix::libc::write(1, TEXT.as_ptr().cast(), TEXT.len()) };
}

extern "C" fn for_ever(_: i32) {
    loop {
        std::hint::spin_loop();
    }
}

extern "C" fn exits(_: i32) {
    gasworks::exit(11)
}

extern "C" fn exits_by_libc(_: i32) {
    // Rust's own takes the signals' stack away from the first thread, which goes on for a moment.
    // SAFETY: ends.2: the call takes a number and does not return.
    unsafe { nix::libc::exit(12) }
}

extern "C" fn exits_with_7(_: i32) {
    gasworks::exit(7)
}

extern "C" fn exit_hook() {
    const TEXT: &[u8] = b"an exit hook of the program ran: rank ended too late\n";
    // SAFETY: ends.2: the call reads the bytes of `TEXT`, a constant of this hook.
    unsafe { nix::libc::write(1, TEXT.as_ptr().cast(), TEXT.len()) };
}

extern "C" fn good_hook() {
    const TEXT: &[u8] = b"an exit hook ran\n";
    // SAFETY: ends.2: the call reads the bytes of `TEXT`, a constant of this function.
    unsafe { nix::libc::write(1, TEXT.as_ptr().cast(), TEXT.len()) };
}

/// Runs when the library has let go of this process.
extern "C" fn signalled_hook() {
    raise(Signal::SIGTERM);
    compute()
}

/// Outlives every time-out of an end that another rank has wished for, and says so.
fn go_on(next: bool) {
    std::thread::sleep(Duration::from_millis(1500));
    println!("the {} rank went on", if next { "next" } else { "last" });
}

/// A job of all ranks that is used and closed.
fn one_job() -> Result<u32, Error> {
    let Rank { job, .. } = open()?;
    {
        let agent = job.agent()?;
        let mine = job.alloc::<u64>(1)?;
        let next = (job.rank() + 1) % job.ranks();
        agent.put(gasworks::GlobalPtr::new(next, mine.offset()), &[u64::from(job.rank()) + 1])?;
        agent.barrier()?;
        let mut found = [u64::zeroed()];
        agent.get(mine, &mut found)?;
        if found[0] == 0 {
            return Err(Error::Program("nothing was put".into()));
        }
    }
    let rank = job.rank();
    job.close()?;
    Ok(rank)
}

/// Plays this process's part in the case `name`, in which `victim` acts.
pub fn act(name: &str, victim: u32) -> ExitCode {
    match play(name, victim) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            gasworks_os::say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn play(name: &str, victim: u32) -> Result<(), Error> {
    let acts = rank_told() == victim;
    match name {
        "close" => return one_job().map(drop),
        "job-after-job" => {
            let mut rank = 0;
            for _ in 0..3 {
                rank = one_job()?;
            }
            println!("rank {rank} was in 3 jobs");
            return Ok(());
        }
        "exit-after-close" => {
            one_job()?;
            if acts {
                std::process::exit(5);
            }
            compute()
        }
        "exit-zero-after-close" => {
            let rank = one_job()?;
            if acts {
                gasworks::exit(0);
            }
            go_on(rank == (victim + 1) % super::RANKS);
            return Ok(());
        }
        "exit-before-open" if acts => gasworks::exit(7),
        "exit-while-opening" | "exit-zero-while-opening" => {
            let code = if name == "exit-while-opening" { 7 } else { 0 };
            if acts {
                std::thread::spawn(move || {
                    // Before that it would be a rank that nobody has heard of.
                    while !gasworks_os::ending::in_job() {
                        std::thread::yield_now();
                    }
                    gasworks::exit(code)
                });
            } else if (rank_told() + 1) % super::RANKS == victim {
                // It comes late, so that the others are still at it.
                std::thread::sleep(Duration::from_millis(400));
            }
            drop(open()?);
            compute()
        }
        "exit-in-signal" if acts => handle(Signal::SIGUSR1, exits_with_7),
        // As programs in C have it.
        "sigpipe-chosen" if acts => {
            dispose(Signal::SIGPIPE, SigHandler::SigDfl);
            handle(Signal::SIGQUIT, exits)
        }
        "sigterm-chosen" if acts => handle(Signal::SIGQUIT, exits),
        "sigterm-chosen-by-libc-exit" if acts => handle(Signal::SIGQUIT, exits_by_libc),
        "sigterm-chosen-never" if acts => handle(Signal::SIGQUIT, for_ever),
        "sigint-not-chosen" if acts => handle(Signal::SIGQUIT, on_quit),
        "exit-by-all" => handle(Signal::SIGQUIT, on_quit),
        "sigterm-before-exit-by-others" if !acts => handle(Signal::SIGQUIT, on_quit),
        "quit-handler" if !acts => handle(Signal::SIGQUIT, on_quit),
        "quit-handler-forever" if !acts => handle(Signal::SIGQUIT, for_ever),
        "quit-handler-exits" if !acts => handle(Signal::SIGQUIT, exits),
        // SAFETY: ends.2: `exit_hook` is a C function of the program, which stays loaded until it is called.
        "bypass-atexit" => unsafe {
            nix::libc::atexit(exit_hook);
        },
        // SAFETY: ends.2: `signalled_hook` is a C function of the program, which stays loaded until it is called.
        "signal-in-exit-hook" if acts => unsafe {
            nix::libc::atexit(signalled_hook);
        },
        // SAFETY: ends.2: `good_hook` is a C function of the program, which stays loaded until it is called.
        "return-not-caught-after-exit-zero" if acts => unsafe {
            nix::libc::atexit(good_hook);
        },
        _ => {}
    }
    let rank = open()?;
    let (job, me) = (&rank.job, rank.job.rank());
    let agent = job.agent()?;
    agent.barrier()?;
    let other = (victim + 1) % job.ranks();
    if acts && !["return-not-caught", "exit-by-all"].contains(&name) {
        // So that the others are deep in their work.
        std::thread::sleep(Duration::from_millis(50));
    }
    match name {
        "exit-zero-by-all" => gasworks::exit(0),
        "exit-by-all" => gasworks::exit(me as i32 + 3),
        "sigterm-before-exit-by-others" if !acts => {
            std::thread::sleep(Duration::from_millis(200));
            gasworks::exit(9)
        }
        "exit-zero-then-another" if me == other => {
            std::thread::sleep(Duration::from_millis(250));
            gasworks::exit(9)
        }
        "bypass-atexit" => {
            print!("no exit hook of the program");
            gasworks::exit(0)
        }
        "return-open-by-all" => {
            std::mem::forget(rank);
            return Ok(());
        }
        "exit-in-handler" | "panic-in-handler" => {
            if me == other {
                let call = |agent: &gasworks::Agent<'_, Par>| match name {
                    "exit-in-handler" => agent.request_short(victim, rank.end, 7),
                    _ => agent.request_short(victim, rank.fall, 7),
                };
                call(&agent)?;
                compute()
            }
            if me == victim {
                return agent.wait_until(|| false);
            }
        }
        "sigkill-with-child" if acts => fork_a_child(CHILD),
        "sigkill-with-child" => compute_for(CHILD),
        "quit-handler" if !acts => print!("what was printed before"),
        "stopped" | "stopped-zero" if me == other => raise(Signal::SIGSTOP),
        "return-not-caught" if !acts => {
            go_on(me == other);
            gasworks::exit(0)
        }
        "return-not-caught-after-exit-zero" | "sigkill-after-exit-zero" if !acts => gasworks::exit(0),
        _ => {}
    }
    if !acts {
        compute()
    }
    match name {
        "exit" | "quit-handler" | "quit-handler-forever" | "quit-handler-exits" | "stopped" => {
            gasworks::exit(7)
        }
        "exit-zero" | "exit-zero-then-another" | "stopped-zero" => gasworks::exit(0),
        "exit-large" => gasworks::exit(512),
        "exit-in-thread" => {
            std::thread::spawn(|| gasworks::exit(7));
            let phase = agent.barrier();
            phase.map(drop)
        }
        "exit-in-signal" => {
            raise(Signal::SIGUSR1);
            compute()
        }
        "libc-exit" => std::process::exit(7),
        "libc-exit-zero" => std::process::exit(0),
        "return-open" | "return-allowed" | "return-not-caught" | "signal-in-exit-hook" => {
            std::mem::forget(rank);
            Ok(())
        }
        "return-error" | "return-not-caught-after-exit-zero" => {
            std::mem::forget(rank);
            Err(Error::Program("this rank has had enough".into()))
        }
        "return-dropped" => Ok(()),
        "abort" => job.abort(42, "asked to"),
        "panic" => panic!("on purpose"),
        "panic-in-thread" => {
            std::thread::scope(|scope| {
                scope.spawn(|| panic!("on purpose, elsewhere"));
            });
            Ok(())
        }
        "sigterm"
        | "sigterm-chosen"
        | "sigterm-chosen-by-libc-exit"
        | "sigterm-chosen-never"
        | "sigterm-before-exit-by-others" => signalled(Signal::SIGTERM),
        "sigint" | "sigint-not-chosen" => signalled(Signal::SIGINT),
        "sigpipe-chosen" => write_to_nobody(),
        "sigquit" => signalled(Signal::SIGQUIT),
        "sighup" => signalled(Signal::SIGHUP),
        "sigkill" | "sigkill-after-exit-zero" | "sigkill-with-child" => signalled(Signal::SIGKILL),
        "sigsegv" => signalled(Signal::SIGSEGV),
        "libc-abort" => std::process::abort(),
        other => {
            let _ = std::io::stdout().flush();
            Err(Error::Program(format!("no case {other:?}")))
        }
    }
}

/// Leaves a child that has all that this process has open, and lives longer than `than`.
fn fork_a_child(than: Duration) {
    // SAFETY: ends.3: the child calls close, sleep and _exit with numbers alone, which is safe there, and ends by the last of them.
    unsafe {
        if let Ok(nix::unistd::ForkResult::Child) = nix::unistd::fork() {
            (0..3).for_each(|stream| {
                nix::libc::close(stream);
            });
            nix::libc::sleep(than.as_secs() as u32 + 1);
            nix::libc::_exit(0)
        }
    }
}

/// Standard output leads nowhere, and still holds something at the end.
fn write_to_nobody() -> Result<(), Error> {
    let (read, write) = nix::unistd::pipe().unwrap_or_else(|e| panic!("making a pipe: {e}"));
    drop(read);
    nix::unistd::dup2_stdout(&write).unwrap_or_else(|e| panic!("replacing standard output: {e}"));
    print!("for nobody");
    let _ = nix::unistd::write(&write, b"for nobody either");
    compute()
}

fn signalled(signal: Signal) -> Result<(), Error> {
    raise(signal);
    // Rust's own handler of SIGSEGV puts the default action back and waits for the fault to come again.
    raise(signal);
    compute()
}
