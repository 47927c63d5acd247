//! A job of one collective, in which a rank may be killed at any step.

use gasworks::{Config, Error, Job, Seq, Table};
use std::process::ExitCode;

/// What goes of each member to each, in words.
const SHORT: usize = 1;
/// More than what goes without being cleared to send.
const LONG: usize = 625;
/// More than what is posted on a board at once: three pieces.
const PIECES: usize = 2500;

/// Is a rank of a job that does the collective `kind`, from or to member 0 if it has a root, and ends in good order.
pub fn collective(kind: &str) -> ExitCode {
    match play(kind) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            gasworks_os::say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn play(kind: &str) -> Result<(), Error> {
    let job = Job::open(Config::from_env()?.segment(4096), Table::<Seq>::new())?;
    let (agent, everyone) = (job.agent()?, job.everyone());
    let longer = [("-long", LONG), ("-pieces", PIECES)];
    let longer = longer.iter().find_map(|&(suffix, count)| Some((kind.strip_suffix(suffix)?, count)));
    let (kind, count) = longer.unwrap_or((kind, SHORT));
    let (ranks, me) = (job.ranks() as usize, u64::from(job.rank()));
    let (mut own, mut all) = (vec![me; count], vec![me; count * ranks]);
    // Of each as many.
    let counts = vec![count; ranks];
    match kind {
        "broadcast" => everyone.broadcast(&agent, 0, &mut own)?,
        "reduce" => everyone.reduce(&agent, 0, &mut own, u64::max)?,
        "reduce-all" => everyone.reduce_all(&agent, &mut own, u64::max)?,
        "scan" => everyone.scan(&agent, &mut own, u64::max)?,
        "gather" => everyone.gather(&agent, 0, &own, &mut all)?,
        "gather-each" => everyone.gather_each(&agent, 0, &own, &mut all, &counts)?,
        "scatter" => everyone.scatter(&agent, 0, &all, &mut own)?,
        "scatter-each" => everyone.scatter_each(&agent, 0, &all, &counts, &mut own)?,
        "all-gather" => everyone.all_gather(&agent, &own, &mut all)?,
        "all-to-all" => everyone.all_to_all(&agent, &all.clone(), &mut all)?,
        "all-to-all-each" => {
            everyone.all_to_all_each(&agent, (&all.clone(), &counts), (&mut all, &counts))?
        }
        "team" => {
            let team = everyone.split(&agent, Some(0), 0)?;
            team.map_or(Ok(()), |team| agent.on(&team).barrier())?;
        }
        _ => return Err(Error::Program(format!("{kind} is no collective"))),
    }
    // What each has then, as far as it is in `own` and `all`.
    let largest = ranks as u64 - 1;
    let wanted = match kind {
        "broadcast" | "scatter" | "scatter-each" => 0,
        "reduce" if me == 0 => largest,
        "reduce-all" => largest,
        _ => me,
    };
    let from_all = match kind {
        "gather" | "gather-each" => me == 0,
        "all-gather" | "all-to-all" | "all-to-all-each" => true,
        _ => false,
    };
    let mut all = all.chunks(count).zip(0..).map(|(block, from)| (block, if from_all { from } else { me }));
    let is_right = own.iter().all(|&word| word == wanted)
        && all.all(|(block, wanted)| block.iter().all(|&word| word == wanted));
    if !is_right {
        return Err(Error::Program(format!("{kind} brought other values")));
    }
    job.close()
}
