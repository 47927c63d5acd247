//! The bench itself: that it runs and leaves every row, and that the peers' programs compile and answer. No timing is
//! judged here.

use crate::rows::Row;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Cmd, Need};
use std::collections::BTreeMap;

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
        })
        .single(),
        Row::new("bench/sockets", |_, log| {
            // Of all packages, whose dependencies are built already: alone it would have them with other features.
            let cmd = Cmd::cargo("bench --workspace --exclude xtask --bench echo -- --short").limit(600);
            no_more_calls(&log.run_ok(&cmd)?.output)
        })
        .need(Need::Strace),
        Row::new("bench/peers-build", |world, log| {
            crate::bench::smoke(&world.scratch("bench/peers-build")?, log)
        })
        .need(Need::Peers)
        .single(),
    ]
}

/// Whether the socket engine makes no more system calls for an echo than plain epoll, for every length and number of
/// connections: that is a count, and no timing.
fn no_more_calls(output: &str) -> Result<()> {
    let mut calls = BTreeMap::new();
    for line in output.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [bytes, connections, server @ ("epoll" | "ours" | "posted"), .., count] = words[..] {
            let count: f64 = count.parse().with_context(|| format!("no count at the end of {line:?}"))?;
            calls.insert((bytes.to_owned(), connections.to_owned(), server.to_owned()), count);
        }
    }
    ensure!(!calls.is_empty() && calls.len() % 3 == 0, "not every row is there three times: {calls:?}");
    for ((bytes, connections, server), count) in &calls {
        let epoll = (bytes.clone(), connections.clone(), "epoll".to_owned());
        let epoll = calls.get(&epoll).context("epoll has no row")?;
        // How many connections a wait finds ready is chance where there are several; a call too many would be a whole one.
        let chance = if connections == "1" { 0.01 } else { 0.2 };
        ensure!(
            *count <= epoll + chance,
            "{server} takes {count} system calls for an echo of {bytes} bytes over {connections} connections, epoll {epoll}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::no_more_calls;

    #[test]
    fn a_call_too_many_is_found() {
        let table = |connections: u32, epoll: f64, ours: f64| {
            let row = |server, count| format!(" 8 {connections} {server} 1 1 (1 to 1) {count:.3}\n");
            [
                "echo over Unix sockets\n",
                &row("epoll", epoll),
                &row("mio", 9.0),
                &row("ours", ours),
                &row("posted", 2.0),
            ]
            .concat()
        };
        assert!(no_more_calls(&table(1, 3.0, 3.0)).is_ok());
        assert!(no_more_calls(&table(1, 3.0, 3.1)).is_err());
        assert!(no_more_calls(&table(50, 2.04, 2.055)).is_ok());
        assert!(no_more_calls(&table(50, 2.04, 3.04)).is_err());
        assert!(no_more_calls("echo over Unix sockets\n").is_err());
    }
}
