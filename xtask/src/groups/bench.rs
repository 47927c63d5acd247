//! The bench itself: that it runs and leaves every row, and that the peers' programs compile and answer. No timing is
//! judged here.

use crate::exec::Cmd;
use crate::needs::Need;
use crate::rows::Row;
use anyhow::ensure;

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("bench/quick", |world, log| {
            let dir = world.scratch("bench/quick")?;
            let record = dir.join("bench.json");
            let cmd = Cmd::cargo("xtask bench --quick --json").arg(&record).arg("--svg").arg(&dir);
            let ended = log.run_ok(&cmd.limit(600))?;
            ensure!(ended.output.contains("measure "), "no table was printed");
            ensure!(dir.join("message-latency.svg").is_file(), "no plot was drawn");
            crate::bench::whole(&record)
        }),
        Row::new("bench/peers-build", |world, log| {
            crate::bench::smoke(&world.scratch("bench/peers-build")?, log)
        })
        .need(Need::Peers),
    ]
}
