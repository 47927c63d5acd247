//! Every way in which a job can end, under each launcher that is there.

use crate::exec::Cmd;
use crate::leftovers::Leftovers;
use crate::needs::Need;
use crate::rows::Row;
use crate::world::Build;
use anyhow::{Context, Result, ensure};

/// Ways to end, each with two ranks that act: as many as there are at least, under `gasrun` and under others.
const ENDS: usize = 80;

pub fn rows() -> Vec<Row> {
    let row = |launcher: &'static str| {
        Row::new(format!("exit/{launcher}"), move |world, log| {
            let built = world.built(Build::Debug)?;
            let (program, leftovers) = (built.program("gasworks-ends")?, Leftovers::before());
            let check = Cmd::new(program).words("check --launcher").arg(launcher).limit(240);
            let ended = log.run_ok(&check)?;
            leftovers.check()?;
            enough(&ended.output)
        })
    };
    vec![
        row("gasrun"),
        row("hydra").need(Need::Hydra),
        // Where nobody ends the others when one is gone, they end by themselves.
        row("hydra-without-care").need(Need::Hydra),
    ]
}

fn enough(output: &str) -> Result<()> {
    let last = output.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" cases passed").and_then(|count| count.parse::<usize>().ok());
    let count = count.with_context(|| format!("the last line does not count the cases: {last:?}"))?;
    ensure!(count >= ENDS, "{count} ends were tried; there are {ENDS} or more");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_table_that_got_shorter_is_found() {
        assert!(super::enough("case exit by rank 0 ok (0.1 s)\n80 cases passed\n").is_ok());
        assert!(super::enough("70 cases passed\n").is_err());
        assert!(super::enough("80 cases passed\nbut\n").is_err());
    }
}
