//! What the kernel knows of ranks, through `/proc`.

use std::fs;

use gasworks_os::inquiry::is_handled;

use super::Known;
use crate::{spawn, sweep};

/// For each rank that lives, the process that handles `signal`: the one that was started, or one that it started in its
/// place, as a script does.
pub(super) fn answering(known: &[Known], job: &str, signal: i32) -> Vec<Option<i32>> {
    let own = |rank: &Known| rank.pid.filter(|&pid| rank.lives && is_handled(pid, signal));
    let mut found: Vec<Option<i32>> = known.iter().map(own).collect();
    if known.iter().zip(&found).any(|(rank, found)| rank.lives && found.is_none()) {
        for pid in sweep::marked(&spawn::marker(job), None).into_iter().filter(|&pid| is_handled(pid, signal))
        {
            let place = rank_of(pid).and_then(|rank| known.iter().position(|known| known.rank == rank));
            if let Some(place) = place.filter(|&place| known[place].lives) {
                found[place].get_or_insert(pid);
            }
        }
    }
    found
}

/// The rank that a process was started as.
fn rank_of(pid: i32) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let rank = environment.split(|&b| b == 0).find_map(|entry| entry.strip_prefix(b"PMI_RANK="))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// What a process does, in a few words: its main thread's state, where it waits, how much it has computed.
pub(super) fn state(pid: i32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may hold anything, brackets too.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let Some(&letter) = fields.first() else { return "is gone".into() };
    let state = match letter {
        "R" => "runs",
        "S" => "sleeps",
        "D" => "waits for a device",
        "T" | "t" => "is stopped",
        "Z" | "X" => "has ended",
        _ => "is in a state of its own",
    };
    // What is not readable for us says nothing; 0 is nowhere.
    let place = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let place = match place.trim() {
        "" | "0" => String::new(),
        place => format!(" in {place}"),
    };
    let ticks: u64 = [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<u64>().ok()).sum();
    let threads = fields.get(17).map_or("?", |count| count);
    format!("{state}{place}; {:.2} s of processor time, {threads} threads", ticks as f64 / ticks_per_second())
}

/// In what `/proc` counts time: 100 on every Linux that programs see.
fn ticks_per_second() -> f64 {
    100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_of() {
        let me = i32::try_from(std::process::id()).expect("a pid");
        let text = state(me);
        assert!(text.contains(" s of processor time, "), "{text}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("a pid");
        child.kill().expect("killed");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !state(pid).starts_with("has ended") {
            assert!(std::time::Instant::now() < deadline, "{}", state(pid));
        }
        child.wait().expect("ended");
        assert_eq!(state(pid), "is gone");
    }
}
