//! Judging what a program that failed wrote.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;

/// Checks the error message of a job: an error unless some rank, or the launcher, says every text, and none says any of them
/// twice. Lines are told apart by the rank with which `gasrun --label` starts them. Not every rank must speak: the first that
/// fails ends the others, maybe in the middle of a line.
pub fn told_once(output: &str, says: &[&str]) -> Result<()> {
    let mut speakers = BTreeMap::<&str, String>::new();
    for line in output.lines() {
        let labelled = line.strip_prefix('[').and_then(|l| l.split_once("] "));
        let labelled = labelled.filter(|(rank, _)| rank.bytes().all(|b| b.is_ascii_digit()));
        let (who, said) = labelled.unwrap_or(("", line));
        let text = speakers.entry(who).or_default();
        text.push_str(said);
        text.push('\n');
    }
    for (who, said) in &speakers {
        let twice = says.iter().find(|text| said.matches(**text).count() > 1);
        ensure!(twice.is_none(), "rank {who:?} says {:?} more than once", twice.unwrap_or(&""));
    }
    let all = |said: &String| says.iter().all(|text| said.contains(text));
    let missing = says.iter().find(|text| !output.contains(**text));
    ensure!(missing.is_none(), "no line says {:?}", missing.unwrap_or(&""));
    ensure!(speakers.values().any(all), "no rank says all of {says:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_missing_or_told_twice_is_found() {
        let says = ["setting X=\"y\"", "wanted a size"];
        let cause = "setting X=\"y\": wanted a size";
        let told = |output: String| told_once(&output, &says).map_err(|e| e.to_string());
        // Once for each rank, and the second rank was ended early.
        told(format!("[0] Error: {cause}\n[1] Error: {cause}\ngasrun: rank 0 failed\n")).unwrap();
        told(format!("[0] Error: setting X=\"y\": wan\n[1] Error: {cause}\n")).unwrap();
        let twice = told(format!("[0] Error: {cause}\n[0] \n[0] Caused by:\n[0]    {cause}\n")).unwrap_err();
        assert!(twice.contains("rank \"0\"") && twice.contains("more than once"), "{twice}");
        assert!(told(format!("{cause}\n{cause}\n")).is_err());
        assert!(told("[0] setting X=\"y\"\n".into()).unwrap_err().contains("wanted a size"));
        assert!(
            told("[0] setting X=\"y\"\n[1] wanted a size\n".into()).unwrap_err().contains("no rank says")
        );
        assert!(told(String::new()).is_err());
    }
}
