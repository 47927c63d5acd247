//! Every bench as a job of real processes, with few operations: each prints whole rows, and all end by themselves.

use gasworks_perf::options::Bench;
use gasworks_perf::row::Row;
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::{Cmd, Ended, programs};

const GASPERF: &str = env!("CARGO_BIN_EXE_gasperf");

/// Runs `gasperf` with these arguments on so many ranks.
fn perf(ranks: u32, words: &str) -> Ended {
    let gasrun = programs::debug().and_then(|programs| programs.program("gasrun"));
    let gasrun = gasrun.unwrap_or_else(|e| panic!("{e:#}"));
    let job = Cmd::new(gasrun).words(&format!("-n {ranks} --timeout 120 --")).arg(GASPERF).words(words);
    job.limit(150).job().run().unwrap_or_else(|e| panic!("{e:#}"))
}

/// The rows of a bench, each of them whole and sane.
fn rows(ranks: u32, words: &str) -> Vec<Row> {
    let ended = perf(ranks, &format!("{words} --iters 3 --blocks 4 --json"));
    assert!(ended.ok(), "{words}: {}: {}", ended.how(), ended.output);
    let parse = |line: &str| serde_json::from_str::<Row>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let rows: Vec<Row> = ended.output.lines().map(parse).collect();
    assert!(!rows.is_empty(), "{words} printed nothing");
    for row in &rows {
        let figures = [row.min, row.p50, row.p99, row.p999];
        let sane = figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0);
        assert!(sane && row.p99 <= row.p999 && row.min <= row.p50, "{row:?}");
        assert!(row.unit == "B" || row.min > 0.0, "{row:?}");
        assert!(!row.blocks.is_empty() && row.blocks.iter().all(|block| block.is_finite()), "{row:?}");
        assert_eq!(row.ranks, ranks, "{row:?}");
        assert!(["pshm", "raw", "local"].contains(&row.transport.as_str()), "{row:?}");
        assert!(!row.machine.is_empty() && !row.bench.is_empty() && !row.variant.is_empty(), "{row:?}");
    }
    rows
}

/// The variants of one bench among the rows, in order, each once.
fn variants<'a>(rows: &'a [Row], bench: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.bench == bench) {
        if !names.contains(&row.variant.as_str()) {
            names.push(&row.variant);
        }
    }
    names
}

#[test]
fn messages_are_measured() {
    let latency = rows(2, "am-latency");
    assert_eq!(variants(&latency, "am-latency"), ["short", "long", "medium-unread", "medium-read"]);
    assert!(latency.iter().any(|row| row.bytes == 65536), "{latency:?}");
    assert_eq!(variants(&rows(2, "am-rate"), "am-rate"), ["short", "short-replies"]);
    let bandwidth = rows(2, "am-bandwidth --bytes 8..64");
    assert_eq!(variants(&bandwidth, "am-bandwidth"), ["long", "long-replies", "unread", "checked"]);
    assert_eq!(bandwidth.len(), 16, "four sizes, each in four ways");
}

#[test]
fn puts_and_gets_are_measured() {
    for bench in ["put-latency", "get-latency"] {
        assert_eq!(variants(&rows(2, bench), bench), ["value", "slice"]);
    }
    for bench in ["put-bandwidth", "get-bandwidth"] {
        let rows = rows(2, &format!("{bench} --bytes 64..1M"));
        assert_eq!(variants(&rows, bench), ["warm", "local-warm", "cold", "local-cold"]);
        assert_eq!(rows.len(), 15 * 4);
    }
    let strided = rows(2, "strided --bytes 8..16");
    let names =
        ["put warm", "copies warm", "rate of copies warm", "put cold", "copies cold", "rate of copies cold"];
    assert_eq!((variants(&strided, "strided"), strided.len()), (names.into(), 2 * names.len()));
    assert_eq!(variants(&rows(2, "given"), "given"), ["put", "get", "put askew", "get askew"]);
}

#[test]
fn what_all_ranks_do_is_measured() {
    for ranks in [1, 2, 3, 4] {
        assert_eq!(variants(&rows(ranks, "barrier"), "barrier"), ["shared", "team", "split"]);
        assert_eq!(variants(&rows(ranks, "gups"), "gups"), ["put-get", "atomic", "am-batch"]);
        let collectives = rows(ranks, "collective --bytes 8..8");
        let variants = variants(&collectives, "collective");
        assert_eq!(variants, ["broadcast", "reduce-all", "all-gather", "all-to-all"]);
    }
    // A maximum is of words.
    let short = rows(3, "collective --bytes 3..24");
    let sizes: Vec<_> = short.iter().map(|row| (&*row.variant, row.bytes)).collect();
    assert_eq!(sizes[..4], [("broadcast", 3), ("all-gather", 3), ("all-to-all", 3), ("broadcast", 6)]);
    assert_eq!(sizes[9..], [("broadcast", 24), ("reduce-all", 24), ("all-gather", 24), ("all-to-all", 24)]);
    let atomic = rows(2, "atomic");
    assert_eq!(variants(&atomic, "atomic"), ["fetch-add", "add-flood"]);
    assert_eq!(variants(&atomic, "raw-atomic").len(), 4);
}

#[test]
fn sleepers_and_jobs_are_measured() {
    let wake = rows(2, "wake");
    assert_eq!(variants(&wake, "wake"), ["sender busy", "sender slept too"]);
    assert_eq!(variants(&wake, "raw-wake"), ["waker busy", "waker slept too"]);
    assert!(wake.iter().all(|row| row.p50 > 100.0), "nobody wakes in no time: {wake:?}");
    assert_eq!(variants(&rows(2, "startup"), "startup"), ["empty job", "true"]);
    let memory = rows(3, "memory");
    let kinds = [
        "private-dirty",
        "shared-dirty",
        "private-and-shared-dirty",
        "page-tables",
        "resident",
        "proportional",
    ];
    assert_eq!(variants(&memory, "memory"), kinds);
    assert!(memory.iter().all(|row| row.blocks.len() == 3 && row.unit == "B"), "{memory:?}");
}

/// A job of many ranks starts, meets, talks and ends, and what each keeps of another does not become more than the results say: 192 bytes
/// that are its own, and 82 that are shared, in whole pages.
#[test]
fn many_ranks_keep_little_of_each_other() {
    let many = if is_nightly() { 1000 } else { 256 };
    let keeps = |ranks: u32, kind: &str| {
        let rows = rows(ranks, "memory");
        rows.iter().find(|row| row.variant == kind).expect("measured").p50
    };
    for (kind, limit) in [("private-dirty", 208.0), ("shared-dirty", 128.0)] {
        let more = keeps(many, kind) - keeps(64, kind);
        assert!(
            more <= limit * f64::from(many - 64) + 8192.0,
            "{kind}: {more} bytes for {} ranks",
            many - 64
        );
    }
    assert_eq!(variants(&rows(many, "scale"), "scale"), ["barrier", "neighbours"]);
}

#[test]
fn the_machine_itself_is_measured() {
    let raw = rows(2, "raw --bytes 64..4K");
    for (bench, least) in [
        ("raw-line", 10),
        ("raw-roundtrip", 6),
        ("raw-message", 7),
        ("raw-stream", 9),
        ("raw-unread", 6),
        ("raw-checked", 6),
        ("raw-barrier", 6),
        ("raw-memcpy-warm", 3),
        ("raw-memcpy-cold", 3),
        ("raw-atomic", 4),
        ("raw-wake", 2),
        ("raw-share", 2),
    ] {
        assert_eq!(variants(&raw, bench).len(), least, "{bench}");
        let best = raw.iter().filter(|row| row.bench == bench && row.best).count();
        assert!(best > 0, "{bench} has no best variant");
    }
    // Among more ranks than two, these still work in a pair, and all of them meet.
    assert!(rows(4, "raw --variant pause").iter().any(|row| row.bench == "raw-barrier"));
}

#[test]
fn pairs_and_one_left_over_are_measured() {
    for ranks in [3, 4, 5] {
        for bench in ["am-latency --bytes 8..64", "am-rate", "put-latency --bytes 8", "wake --variant busy"] {
            rows(ranks, bench);
        }
    }
}

#[test]
fn threads_are_measured() {
    for threads in [1, 2, 3] {
        for bench in ["am-latency --variant short", "am-rate", "am-latency --bytes 512 --variant read"] {
            let rows = rows(2, &format!("{bench} --mode par --threads {threads}"));
            assert!(rows.iter().all(|row| row.mode == "par" && row.threads == threads), "{rows:?}");
        }
    }
}

#[test]
fn many_ranks_finish() {
    for bench in ["am-rate", "barrier", "put-bandwidth --bytes 64..4K", "gups", "memory"] {
        rows(16, bench);
    }
}

#[test]
fn the_table_has_a_head_and_a_line_for_each_row() {
    let ended = perf(2, "am-latency --variant short --iters 3 --blocks 4");
    let lines: Vec<&str> = ended.output.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("p999") && lines[1].starts_with("am-latency"), "{lines:?}");
}

#[test]
fn one_rank_alone_is_told_how_to_start_two() {
    for bench in ["am-latency", "raw", "put-bandwidth", "wake"] {
        let ended = perf(1, bench);
        assert_eq!(ended.code(), Some(1), "{}", ended.output);
        assert!(ended.output.contains(&format!("gasrun -n 2 gasperf {bench}")), "{}", ended.output);
    }
    assert_eq!(Bench::Gups.least_ranks(), 1);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let ended = perf(2, "am-latency --bytes 1M");
    assert!(!ended.ok() && ended.output.contains("at most"), "{}", ended.output);
    let ended = perf(2, "am-rate --threads 2");
    assert!(!ended.ok() && ended.output.contains("--mode par"), "{}", ended.output);
    let ended = perf(2, "am-rate --variant no-such");
    assert!(!ended.ok() && ended.output.contains("no-such"), "{}", ended.output);
    let help = perf(1, "--help");
    assert!(help.ok() && help.output.contains("am-bandwidth"), "{}", help.output);
    assert!(perf(1, "--version").output.starts_with("gasperf "));
}
