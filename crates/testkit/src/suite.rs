//! Judging the output of the conformance suite.

use anyhow::{Context, Result, ensure};

/// Cases that the suite has at least: for a job of any size, more from two ranks on, and more that SimNet alone runs
/// beside them, once for each seed, of which it says in a line each that it begins, and of which no run has fewer. A new case need not be counted here;
/// a case that is lost is found.
const CASES: usize = 46;
const FROM_TWO_RANKS: usize = 4;
const SPECIAL: usize = 7;
const SEEDS: usize = 2;

/// Counts the cases that passed in the output of `gasworks-conformance`: an error unless its last line counts at least as many
/// as the suite has over `transport` (`pshm`, or any name that starts with `simnet`) on `ranks` ranks.
pub fn enough(output: &str, transport: &str, ranks: usize) -> Result<()> {
    let each = CASES + if ranks > 1 { FROM_TWO_RANKS } else { 0 };
    let seeds = output.lines().filter(|line| line.starts_with("simnet seed ")).count().max(SEEDS);
    let floor = if transport == "pshm" { each } else { seeds * (each + SPECIAL) };
    let last = output.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" cases passed").and_then(|count| count.parse::<usize>().ok());
    let count = count.with_context(|| format!("the suite's last line does not count its cases: {last:?}"))?;
    ensure!(
        count >= floor,
        "{count} cases passed; over {transport} on {ranks} ranks there are {floor} or more"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_runs_too_little_is_found() {
        assert!(enough("case a ok\n50 cases passed\n", "pshm", 2).is_ok());
        assert!(enough("46 cases passed\n", "pshm", 1).is_ok());
        assert!(enough("46 cases passed\n", "pshm", 2).unwrap_err().to_string().contains("50 or more"));
        assert!(enough("106 cases passed\n", "simnet", 1).is_ok());
        let third = "simnet seed 0, 1 ranks\n".repeat(3) + "106 cases passed\n";
        assert!(enough(&third, "simnet", 1).unwrap_err().to_string().contains("159 or more"));
        assert!(enough("53 cases passed\n", "simnet-unmapped", 1).is_err());
        for silent in ["", "case a ok\n", "99 cases passed\ncase b ok\n", "many cases passed\n"] {
            assert!(enough(silent, "pshm", 1).unwrap_err().to_string().contains("last line"), "{silent:?}");
        }
    }
}
