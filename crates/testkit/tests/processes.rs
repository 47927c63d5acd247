//! Jobs of real processes: what the suite cannot do within one job, since the job fails.
//!
//! In a build with `--cfg gasworks_faults` every rank is killed at every place that the sources name.

use gasworks_testkit::processes::{Ended, Launch, build_launcher, program};
use std::path::PathBuf;
use std::sync::Once;

const SUITE: &str = env!("CARGO_BIN_EXE_gasworks-conformance");

/// `gasrun` belongs to another package, so a test of this one alone has not built it.
fn launcher_is_built() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| build_launcher("gasworks-conformance"));
}

fn suite(ranks: u32, args: &[&str]) -> Launch {
    launcher_is_built();
    Launch::new(ranks, &PathBuf::from(SUITE)).unwrap_or_else(|e| panic!("{e}")).args(args)
}

fn run(launch: Launch) -> Ended {
    launch.run().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_suite_over_shared_memory_leaves_nothing() {
    for mode in ["seq", "par"] {
        let ended = run(suite(3, &["--mode", mode]));
        assert!(ended.status.success(), "{}", ended.output);
        assert!(ended.output.contains("case flow.storm ok"), "{}", ended.output);
    }
}

#[test]
fn tables_that_differ_end_the_job_with_their_difference() {
    let ended = run(suite(3, &["--tables-differ"]));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
    assert!(ended.output.contains("the handler tables differ") && ended.output.contains("only.here"));
}

#[test]
fn a_wrong_setting_is_named() {
    let ended = run(suite(2, &[]).env("GASNET_NETWORKDEPTH_TOTAL", "0"));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
    assert!(
        ended.output.contains("GASNET_NETWORKDEPTH_TOTAL")
            && ended.output.contains("wanted a whole number from 1 to 65536"),
        "{}",
        ended.output
    );
}

#[test]
fn a_segment_larger_than_memory_is_refused() {
    let ended = run(suite(2, &["--segment", "1000000000000000"]));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
    assert!(ended.output.contains("segment"), "{}", ended.output);
}

#[test]
fn a_case_that_does_not_exist_is_not_a_success() {
    let ended = run(suite(1, &["--case", "no-such-case"]));
    assert!(!ended.status.success() && ended.output.contains("no-such-case"), "{}", ended.output);
}

/// What a silent rank says of itself: its segment, the largest it could have had here and everywhere, and its memory.
fn silent(ranks: u32, settings: &[(&str, &str)]) -> Vec<[u64; 4]> {
    let launch =
        settings.iter().fold(suite(ranks, &["--silent"]), |launch, (name, value)| launch.env(name, value));
    let ended = run(launch);
    assert!(ended.status.success(), "{}", ended.output);
    let numbers = |line: &str| -> Option<[u64; 4]> {
        let rest = line.split_once("silent ")?.1.split_once(' ')?.1;
        let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        numbers.collect::<Vec<_>>().try_into().ok()
    };
    let found: Vec<_> = ended.output.lines().filter_map(numbers).collect();
    assert_eq!(found.len(), ranks as usize, "{}", ended.output);
    found
}

/// Private and shared-dirty memory may grow by 4 KiB at most for each further rank, in every rank.
#[test]
fn a_silent_rank_costs_every_other_little() {
    let most = |ranks| silent(ranks, &[]).into_iter().map(|rank| rank[3]).max().unwrap_or(0);
    let (few, many) = (most(8), most(64));
    assert!(many < few + (64 - 8) * 4096, "{few} bytes in each of 8 ranks, {many} in each of 64");
    println!("{:.0} bytes for each further rank", (many as f64 - few as f64) / 56.0);
}

#[test]
fn segments_are_shares_of_memory() {
    let total = gasworks_os::limits::total_memory().bytes;
    for [segment, local, global, _] in
        silent(2, &[("GASWORKS_SEGMENT_SIZE", "0.125/H"), ("GASNET_MAX_SEGSIZE", "0.25/H")])
    {
        // A share of a host includes the queues.
        assert!(segment < total / 16 && segment > total / 16 - (64 << 20), "{segment} of {total}");
        assert!(local > segment && local <= total / 8 && global <= local, "{local} {global} of {total}");
    }
    // The limit alone says what is wanted as well.
    assert!(silent(2, &[("GASNET_MAX_SEGSIZE", "3M")]).iter().all(|rank| rank[..3] == [3 << 20; 3]));
    // Nobody asked for the default, so it gives way.
    assert!(silent(2, &[("GASWORKS_SEGMENT_LIMIT", "5M")]).iter().all(|rank| rank[..3] == [5 << 20; 3]));
}

#[test]
fn memory_that_cannot_be_had_is_refused_with_its_limit() {
    for (settings, words) in [
        (&[("GASNET_MAX_SEGSIZE", "1M")][..], &["GASNET_MAX_SEGSIZE", "1048576 bytes"][..]),
        (&[("GASNET_MAX_SEGSIZE", "0.9/X")], &["GASNET_MAX_SEGSIZE=\"0.9/X\"", "wanted a size"]),
        (&[("GASWORKS_SEGMENT_SIZE", "1.5")], &["GASWORKS_SEGMENT_SIZE=\"1.5\"", "wanted a size"]),
        (&[("GASWORKS_HUGE_PAGES", "2")], &["GASWORKS_HUGE_PAGES=\"2\"", "wanted one of off, try, require"]),
        (&[("GASWORKS_POPULATE", "all")], &["GASWORKS_POPULATE=\"all\"", "wanted 0 or 1"]),
    ] {
        let launch = settings.iter().fold(suite(2, &[]), |launch, (name, value)| launch.env(name, value));
        let ended = run(launch);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
        assert!(words.iter().all(|word| ended.output.contains(word)), "{}", ended.output);
    }
    let ended = run(suite(2, &["--silent"]).env("GASWORKS_SEGMENT_MAX", "1000T"));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
    assert!(
        ended.output.contains("GASWORKS_SEGMENT_MAX") && ended.output.contains("address"),
        "{}",
        ended.output
    );
}

#[test]
fn limits_of_the_shell_are_named() {
    launcher_is_built();
    let gasrun = program("gasrun").unwrap_or_else(|e| panic!("{e}"));
    for (limit, words) in [("ulimit -v 200000", "ulimit -v"), ("ulimit -f 40000", "ulimit -f")] {
        let script = format!("{limit} && exec {} -n 3 -- {SUITE} --silent", gasrun.display());
        let launch = Launch::plain(&PathBuf::from("/bin/bash")).unwrap_or_else(|e| panic!("{e}"));
        let ended = run(launch.args(&["-c", &script]).env("GASWORKS_SEGMENT_SIZE", "64M"));
        assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
        assert!(
            ended.output.contains(words) && ended.output.contains("GASWORKS_SEGMENT_SIZE"),
            "{}",
            ended.output
        );
    }
}

/// Whatever the machine has: huge pages that are required are there or named as missing, those that are tried for never
/// stop a job, and memory that is populated is there.
#[test]
fn huge_pages_and_population() {
    let pool = gasworks_os::huge::pool_now();
    let ended = run(suite(3, &["--case", "memory"]).env("GASWORKS_HUGE_PAGES", "require"));
    if !ended.status.success() {
        let enough = pool.is_some_and(|pool| pool.free * pool.page as u64 > 1 << 30);
        assert!(!enough && ended.output.contains("sysctl vm.nr_hugepages="), "{pool:?}: {}", ended.output);
    }
    let ended =
        run(suite(3, &["--case", "memory"]).env("GASNET_USE_HUGEPAGES", "1").env("GASWORKS_POPULATE", "1"));
    assert!(ended.status.success() && ended.output.contains("memory.growth ok"), "{}", ended.output);
    let segment = 32 << 20;
    let settings = [("GASWORKS_POPULATE", "1"), ("GASWORKS_SEGMENT_SIZE", "32M")];
    for rank in silent(2, &settings) {
        assert!(rank[0] == segment && rank[3] >= segment, "{rank:?}");
    }
}

#[cfg(gasworks_faults)]
mod killed {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Points that a job under a launcher does not pass: those of a rank alone or one that gives up, and a cancelled
    /// message, which nothing above the transport asks for yet. Tests of their own crates pass them.
    const ELSEWHERE: [&str; 8] = [
        "bootstrap.single",
        "bootstrap.single.finalize",
        "bootstrap.abort",
        "keeper.wished",
        "keeper.verdict",
        "keeper.ready",
        "keeper.finish",
        "inbox.cancel.before",
    ];
    /// How those begin that a job over shared memory does not pass; the matrix has jobs that do, with a NIC in software.
    const OVER_UGNI: &str = "gni.";
    /// And how those of a job whose segments are attached when it is open.
    const ATTACHED: &str = "job.attach.";
    /// And how those of a thread that makes progress.
    const THREAD: &str = "progress.";
    const RANKS: u32 = 3;

    fn points(dir: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                points(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let code =
                    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
                for part in code.split("kill_point!(\"").skip(1) {
                    found.extend(part.split_once("\")").map(|(name, _)| name.to_owned()));
                }
            }
        }
    }

    #[test]
    fn a_rank_killed_anywhere_ends_the_job_and_leaves_nothing() {
        let mut found = BTreeSet::new();
        points(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
        assert!(found.len() > 20, "{found:?}");
        let mut wrong = Vec::new();
        let here = |name: &&String| !ELSEWHERE.contains(&name.as_str()) && !name.starts_with(OVER_UGNI);
        for name in found.iter().filter(here) {
            let mut hit = 0;
            let thread = name.starts_with(THREAD);
            let options: &[&str] = if thread {
                &["--mode", "par"]
            } else if name.starts_with(ATTACHED) {
                &["--attach"]
            } else {
                &[]
            };
            for rank in 0..RANKS {
                let job = suite(RANKS, options).env("GASWORKS_KILL_AT", &format!("{name}@{rank}"));
                let job = if thread { job.env("GASWORKS_PROGRESS_THREAD", "1") } else { job };
                match job.run() {
                    Err(error) => wrong.push(format!("{name}@{rank}: {error}")),
                    // Some steps are one rank's alone, so the others do not pass them.
                    Ok(Ended { status, .. }) if status.success() => {}
                    Ok(Ended { status, output, .. }) => {
                        hit += 1;
                        let named = output
                            .lines()
                            .any(|l| l.contains(&format!("rank {rank} ")) && l.contains("SIGKILL"));
                        if status.code() != Some(137) || !named {
                            wrong.push(format!("{name}@{rank}: {status}; it said:\n{output}"));
                        }
                    }
                }
            }
            if hit == 0 {
                wrong.push(format!("{name}: no rank passes it"));
            }
        }
        assert!(wrong.is_empty(), "{} of {} points:\n{}", wrong.len(), found.len(), wrong.join("\n"));
    }
}
