//! Every rank greets rank 0 with an active message, and rank 0 prints who did.
//!
//! ```text
//! gasrun -n 4 hello
//! ```

use anyhow::Result;
use clap::Parser;
use gasworks::{Config, Job, Payload, Request, Seq, Table};
use std::cell::RefCell;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

#[derive(Parser)]
#[command(about = "Every rank greets rank 0")]
struct Args {}

fn main() -> ExitCode {
    gasworks_examples::end("hello", run())
}

fn run() -> Result<()> {
    Args::parse();

    // Handlers are closures, registered before the job opens. This one keeps what it hears.
    let heard = Rc::new(RefCell::new(Vec::new()));
    let mut table = Table::<Seq>::new();
    let keep = heard.clone();
    let greet =
        table.medium_request("greet", move |from: Request<'_, Seq>, _: [u32; 0], text: Payload<'_>| {
            let text = String::from_utf8_lossy(&text.to_vec::<u8>()).into_owned();
            keep.borrow_mut().push((from.source(), text));
        })?;

    let job = Job::open(Config::from_env()?, table)?;
    let agent = job.agent()?;
    let (rank, ranks) = (agent.rank(), agent.ranks());
    let text = format!("hello from rank {rank} of {ranks}, process {}", std::process::id());
    agent.request_medium(0, greet, [], text.as_bytes())?;

    if rank == 0 {
        agent.wait_until(|| heard.borrow().len() == ranks as usize)?;
        heard.borrow_mut().sort();
        for (from, text) in heard.borrow().iter() {
            writeln!(stdout(), "{text}")?;
            anyhow::ensure!(
                text.starts_with(&format!("hello from rank {from} ")),
                "rank {from} gave a false name"
            );
        }
        writeln!(stdout(), "hello: all {ranks} ranks were heard")?;
    }
    Ok(job.close()?)
}
