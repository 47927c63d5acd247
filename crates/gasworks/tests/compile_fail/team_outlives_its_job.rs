//! A team does not outlive its job, nor an agent on it the team.
use gasworks::{Agent, Error, Job, Seq};

fn escape(job: Job<Seq>) -> Result<(), Error> {
    let team = job.everyone();
    drop(job);
    team.size();
    Ok(())
}

fn agent_escapes<'job>(job: &'job Job<Seq>, agent: &Agent<'job, Seq>) -> Result<Agent<'job, Seq>, Error> {
    let team = job.everyone();
    Ok(agent.on(&team))
}

fn main() {}
