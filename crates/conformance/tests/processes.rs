//! Jobs of real processes: what the suite cannot do within one job, since the job fails or only its memory is looked at.

use gasworks_testkit::{Cmd, Ended, programs};

fn suite(ranks: usize, args: &[&str]) -> Cmd {
    let programs = programs::debug().unwrap_or_else(|e| panic!("{e:#}"));
    programs.gasrun(ranks, "gasworks-conformance").unwrap_or_else(|e| panic!("{e:#}")).args(args)
}

fn run(cmd: Cmd) -> Ended {
    let ended = cmd.run().unwrap_or_else(|e| panic!("{e:#}"));
    assert!(ended.status.is_some(), "{}; it said:\n{}", ended.how(), ended.output);
    ended
}

/// The launcher's exit code.
fn code(ended: &Ended) -> Option<i32> {
    ended.status.and_then(|status| status.code())
}

#[test]
fn a_segment_larger_than_memory_is_refused() {
    let ended = run(suite(2, &["--segment", "1000000000000000"]));
    assert_eq!(code(&ended), Some(1), "{}", ended.output);
    assert!(ended.output.contains("segment"), "{}", ended.output);
}

#[test]
fn a_case_that_does_not_exist_is_not_a_success() {
    let ended = run(suite(1, &["--case", "no-such-case"]));
    assert!(!ended.ok() && ended.output.contains("no-such-case"), "{}", ended.output);
}

/// What a silent rank says of itself: its segment, the largest it could have had here and everywhere, and its memory.
fn silent(ranks: usize, settings: &[(&str, &str)]) -> Vec<[u64; 4]> {
    let job = settings.iter().fold(suite(ranks, &["--silent"]), |job, (name, value)| job.env(name, value));
    let ended = run(job);
    assert!(ended.ok(), "{}", ended.output);
    let numbers = |line: &str| -> Option<[u64; 4]> {
        let rest = line.split_once("silent ")?.1.split_once(' ')?.1;
        let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        numbers.collect::<Vec<_>>().try_into().ok()
    };
    let found: Vec<_> = ended.output.lines().filter_map(numbers).collect();
    assert_eq!(found.len(), ranks, "{}", ended.output);
    found
}

/// Private and shared-dirty memory may grow by 4 KiB at most for each further rank, in every rank.
#[test]
fn a_silent_rank_costs_every_other_little() {
    let most = |ranks| silent(ranks, &[]).into_iter().map(|rank| rank[3]).max().unwrap_or(0);
    let (few, many) = (most(8), most(64));
    assert!(few > 0, "memory is not measured");
    assert!(many < few + (64 - 8) * 4096, "{few} bytes in each of 8 ranks, {many} in each of 64");
    println!("{:.0} bytes for each further rank", (many as f64 - few as f64) / 56.0);
}

#[test]
fn segments_are_shares_of_memory() {
    let total = gasworks_os::limits::total_memory().bytes;
    for [segment, local, global, _] in
        silent(2, &[("GASWORKS_SEGMENT_SIZE", "0.125/H"), ("GASNET_MAX_SEGSIZE", "0.25/H")])
    {
        assert!((total / 16..=total / 16 + 4096).contains(&segment), "{segment} of {total}");
        assert!(
            local > segment && local <= total / 8 + 4096 && global <= local,
            "{local} {global} of {total}"
        );
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
        let job = settings.iter().fold(suite(2, &[]), |job, (name, value)| job.env(name, value));
        let ended = run(job);
        assert_eq!(code(&ended), Some(1), "{}", ended.output);
        assert!(words.iter().all(|word| ended.output.contains(word)), "{}", ended.output);
    }
    let ended = run(suite(2, &["--silent"]).env("GASWORKS_SEGMENT_MAX", "1000T"));
    assert_eq!(code(&ended), Some(1), "{}", ended.output);
    assert!(
        ended.output.contains("GASWORKS_SEGMENT_MAX") && ended.output.contains("address"),
        "{}",
        ended.output
    );
}

#[test]
fn limits_of_the_shell_are_named() {
    for (limit, words) in [("ulimit -v 200000", "ulimit -v"), ("ulimit -f 40000", "ulimit -f")] {
        let script = format!("{limit} && exec {}", suite(3, &["--silent"]).shown());
        let shell = Cmd::new("bash").arg("-c").arg(script).env("GASWORKS_SEGMENT_SIZE", "64M");
        let ended = run(shell.limit(60).job());
        assert_eq!(code(&ended), Some(1), "{}", ended.output);
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
    if !ended.ok() {
        let enough = pool.is_some_and(|pool| pool.free * pool.page as u64 > 1 << 30);
        assert!(!enough && ended.output.contains("sysctl vm.nr_hugepages="), "{pool:?}: {}", ended.output);
    }
    let ended =
        run(suite(3, &["--case", "memory"]).env("GASNET_USE_HUGEPAGES", "1").env("GASWORKS_POPULATE", "1"));
    assert!(ended.ok() && ended.output.contains("memory.growth ok"), "{}", ended.output);
    let segment = 32 << 20;
    let settings = [("GASWORKS_POPULATE", "1"), ("GASWORKS_SEGMENT_SIZE", "32M")];
    for rank in silent(2, &settings) {
        assert!(rank[0] == segment && rank[3] >= segment, "{rank:?}");
    }
}
