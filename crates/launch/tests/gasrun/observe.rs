//! Jobs that are observed.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use gasworks_testkit::Need;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::cases::{err, expect, expect_nobody, gasrun, mark, out, run};
use crate::harness::Case;
use crate::hosts::{Pretend, agent_of, me};
use crate::program::{BARRIERS, GET, GETS, LONG, LONGS, MEDIUM, MEDIUMS, PUTS, SHORTS};

pub const CASES: &[Case] = &[
    ("counts_are_exact", counts_are_exact),
    ("collectives_are_counted_and_traced", collectives_are_counted_and_traced),
    ("tables_are_printed", tables_are_printed),
    ("a_trace_is_whole", a_trace_is_whole),
    ("a_full_trace_keeps_the_last_events", a_full_trace_keeps_the_last_events),
    ("what_a_killed_rank_did_is_kept", what_a_killed_rank_did_is_kept),
    ("recordings_that_cannot_be_written", recordings_that_cannot_be_written),
    ("counts_over_hosts_are_exact", counts_over_hosts_are_exact),
    ("recordings_go_up_a_tree", recordings_go_up_a_tree),
    ("what_a_lost_host_did_is_said_to_be_lost", what_a_lost_host_did_is_said_to_be_lost),
];

pub const WITH_NEEDS: &[(Need, Case)] =
    &[(Need::Hosts, ("a_trace_over_hosts_is_in_order", a_trace_over_hosts_is_in_order))];

fn program(words: &[&str], action: &str) -> Output {
    let me = std::env::current_exe().expect("a path");
    run(&[words, &[me.to_str().expect("text"), "program", action]].concat())
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("written");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text:.300}"))
}

/// The operations of a rank or of all, by name and the largest size of their class.
fn operations(of: &Value) -> HashMap<(String, u64), (u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let rows = of["operations"].as_array().expect("rows").iter();
    rows.map(|row| {
        let name = row["operation"].as_str().expect("a name").to_owned();
        ((name, row["up_to"].as_u64().unwrap_or(u64::MAX)), (number(&row["count"]), number(&row["bytes"])))
    })
    .collect()
}

fn counts_are_exact() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("stats.json");
    let output = program(&["-n", "3", &format!("--stats={}", text(&file))], "counts");
    expect(&output, 0, &[]);
    let stats = read(&file);
    are_exact(&stats, 3);
    assert!(stats["by_rank"][0]["host"].is_null());
}

/// Each is an operation of as many bytes as the rank has in it, and a span by its name.
fn collectives_are_counted_and_traced() {
    let dir = tempfile::tempdir().expect("a directory");
    let (stats, trace) = (dir.path().join("stats.json"), dir.path().join("trace.json"));
    let (option, trace_name) = (format!("--stats={}", text(&stats)), text(&trace));
    expect(&program(&["-n", "3", &option, "--trace", &trace_name], "collectives"), 0, &[]);
    let stats = read(&stats);
    for (of, times) in stats["by_rank"]
        .as_array()
        .expect("ranks")
        .iter()
        .map(|rank| (rank, 1u64))
        .chain([(&stats["sum"], 3)])
    {
        let mut found = operations(of);
        found.retain(|(name, _), _| name == "collective");
        let row = |up_to, count: u64, bytes: u64| {
            (("collective".to_owned(), up_to), (times * count, times * bytes))
        };
        // Two broadcasts; a gather, and the words of a split; a reduction.
        assert_eq!(found, [row(8, 2, 16), row(64, 2, 9 + 24), row(4096, 1, 600)].into());
        assert!(of["tallies"]["ns in collectives"].as_u64() > Some(0));
    }
    let slices = slices(&read(&trace), 3);
    for slices in slices {
        let of = |slice: &&Value| slice["cat"] == "collective";
        let names: Vec<_> = slices.iter().filter(of).filter_map(|slice| slice["name"].as_str()).collect();
        assert_eq!(names, ["broadcast", "broadcast", "reduce_all", "split or create", "gather"]);
    }
}

/// Checks the counts of the program `counts` on so many ranks.
fn are_exact(stats: &Value, ranks: u64) {
    assert_eq!((stats["ranks"].as_u64(), &stats["lost"]), (Some(ranks), &serde_json::json!([])));
    let all = stats["by_rank"].as_array().expect("ranks");
    assert_eq!(all.len() as u64, ranks);
    for (of, times) in all.iter().map(|rank| (rank, 1)).chain([(&stats["sum"], ranks)]) {
        let mut found = operations(of);
        // How often credits travel alone depends on time: as often as they come, and without bytes.
        found.retain(|(name, _), _| !name.starts_with("credits"));
        let wanted = [
            ("short request", 0, SHORTS, 0),
            ("short request handled", 0, SHORTS, 0),
            ("short reply", 0, SHORTS, 0),
            ("short reply handled", 0, SHORTS, 0),
            ("medium request", 512, MEDIUMS, MEDIUM),
            ("medium request handled", 512, MEDIUMS, MEDIUM),
            ("long request", 64 << 10, LONGS, LONG),
            ("long request handled", 64 << 10, LONGS, LONG),
            ("put", 8, PUTS, 8),
            ("get", 1 << 20, GETS, GET),
        ];
        let wanted: HashMap<_, _> = wanted
            .into_iter()
            .map(|(name, up_to, count, bytes)| {
                ((name.to_owned(), up_to), (times * count, times * count * bytes as u64))
            })
            .collect();
        assert_eq!(found, wanted);
        let tally = |name: &str| of["tallies"][name].as_u64().expect(name);
        assert_eq!(tally("barriers"), times * BARRIERS);
        assert!(tally("polls") >= tally("empty polls") && tally("ns in barriers") > 0);
    }
    let credits = operations(&stats["sum"]);
    let of = |name: &str| credits.get(&(name.to_owned(), 0)).map_or(0, |(count, _)| *count);
    // A rank may leave before it has taken the last of them.
    assert!(of("credits received") <= of("credits sent"), "{credits:?}");
}

/// Of two hosts and of three, which have one rank or two.
fn counts_over_hosts_are_exact() {
    let pretend = Pretend::new("");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("stats.json");
    for (hosts, places) in [("a,b", &["a", "b"][..]), ("a,b:2,c", &["a", "b", "b", "c"])] {
        let (ranks, option) = (places.len().to_string(), format!("--stats={}", text(&file)));
        expect(&pretend.run(hosts, &["-n", &ranks, &option, &me(), "program", "counts"]), 0, &[]);
        let stats = read(&file);
        are_exact(&stats, places.len() as u64);
        let by_rank = stats["by_rank"].as_array().expect("ranks");
        assert!(by_rank.iter().zip(places).all(|(rank, place)| rank["host"] == *place), "{by_rank:?}");
        let output = pretend.run(hosts, &["-n", &ranks, "--stats", &me(), "program", "counts"]);
        let all = (places.len() as u64 * BARRIERS).to_string();
        let row = |line: &&str| line.starts_with("barriers ");
        assert!(err(&output).lines().find(row).is_some_and(|line| line.ends_with(&all)), "{}", err(&output));
    }
    let output = pretend.run("a,b", &["-n", "2", "--stats", "true"]);
    assert!(
        output.status.success() && err(&output).contains("gasrun: nothing was recorded"),
        "{}",
        err(&output)
    );
    let output = pretend.run("a,b", &["-n", "2", "--stats=/no/such/folder/t", "sh", "-c", "echo ran"]);
    assert!(output.status.code() == Some(1) && out(&output).is_empty(), "{}", err(&output));
}

/// On more hosts than `gasrun` itself starts agents on.
fn recordings_go_up_a_tree() {
    let pretend = Pretend::new("");
    let dir = tempfile::tempdir().expect("a directory");
    let (stats, trace) = (dir.path().join("stats.json"), dir.path().join("trace.json"));
    let hosts = (1..=18).map(|i| format!("h{i}")).collect::<Vec<_>>().join(",");
    let (option, trace_name) = (format!("--stats={}", text(&stats)), text(&trace));
    let words = ["-n", "18", &option, "--trace", &trace_name, &me(), "program", "counts"];
    expect(&pretend.run(&hosts, &words), 0, &[]);
    are_exact(&read(&stats), 18);
    let trace = read(&trace);
    slices(&trace, 18);
    let uncertain = trace["otherData"]["clock_uncertainties_ns"].as_array().expect("numbers");
    assert!(uncertain.iter().all(|number| number.as_u64() > Some(0)), "{uncertain:?}");
}

/// One host's clock is 5000 s ahead.
fn a_trace_over_hosts_is_in_order() {
    const AHEAD: &str = "test $FAKE_HOST != b || exec unshare -Ur --fork -T --monotonic 5000 sh -c \"$*\"";
    let pretend = Pretend::new(AHEAD);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.json");
    let words = ["-n", "3", "--trace", &text(&file), &me(), "program", "counts"];
    expect(&pretend.run("a,b:2", &words), 0, &[]);
    let trace = read(&file);
    for slices in slices(&trace, 3) {
        let count = |name: &str| slices.iter().filter(|slice| slice["name"] == name).count() as u64;
        assert_eq!([count("ping"), count("request ping"), count("pong"), count("reply pong")], [SHORTS; 4]);
        assert_eq!(count("barrier"), BARRIERS);
    }
    let events = trace["traceEvents"].as_array().expect("events");
    let arrows = events.iter().filter(|event| event["ph"] == "s").count();
    assert_eq!(arrows as u64, 3 * (2 * SHORTS + MEDIUMS + LONGS), "between hosts, too");
    let names: Vec<&str> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("rank 2 ") && name.ends_with(" on b)")), "{names:?}");
    let number = |key: &str, rank: usize| trace["otherData"][key][rank].as_i64().expect("a number");
    for (rank, ahead) in [0, 5_000_000_000_000, 5_000_000_000_000].into_iter().enumerate() {
        let (offset, most) = (number("clock_offsets_ns", rank), number("clock_uncertainties_ns", rank));
        assert!((offset + ahead).abs() <= most && most < 50_000_000, "rank {rank}: {offset}, off by {most}");
    }
}

fn what_a_lost_host_did_is_said_to_be_lost() {
    let pretend = Pretend::new("");
    let dir = tempfile::tempdir().expect("a directory");
    let (stats, trace) = (dir.path().join("stats.json"), dir.path().join("trace.json"));
    let (key, entry) = mark("LOST");
    let (option, trace_name) = (format!("--stats={}", text(&stats)), text(&trace));
    let words = ["-n", "3", &option, "--trace", &trace_name, &me(), "program", "hang-in-a-loop"];
    let mut command = pretend.gasrun("a,b:2", &words);
    let piped = command.env(&key, "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("gasrun starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("read");
    assert_eq!(line, "it hangs\n");
    kill(agent_of("b", &entry), Signal::SIGKILL).expect("killed");
    let output = child.wait_with_output().expect("ended");
    assert!(matches!(output.status.code(), Some(1 | 137)), "{}", err(&output));
    assert!(
        err(&output).contains("gasrun: what ranks 1-2 recorded is lost, or a part of it\n"),
        "{}",
        err(&output)
    );
    let (stats, trace) = (read(&stats), read(&trace));
    let lost = serde_json::json!([1, 2]);
    assert_eq!((&stats["lost"], &trace["otherData"]["lost"]), (&lost, &lost));
    let barriers = |rank: usize| stats["by_rank"][rank]["tallies"]["barriers"].as_u64();
    assert_eq!((barriers(0), barriers(1)), (Some(3), Some(0)));
    expect_nobody(&entry, Duration::from_secs(5));
}

fn tables_are_printed() {
    let output = program(&["-n", "2", "--stats"], "counts");
    assert!(output.status.success() && out(&output).is_empty(), "{}", err(&output));
    let text = err(&output);
    let cells = |begin: &str| -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| line.starts_with(begin));
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    // Once among the sizes, once among the ranks.
    assert_eq!(
        cells("get "),
        [vec!["get", "64", "KiB-1", "MiB", "8", "560,000"], vec!["get", "4", "4", "8"]]
    );
    assert_eq!(cells("rank "), [["rank", "0", "1", "all"]]);
    assert_eq!(cells("barriers"), [["barriers", "3", "3", "6"]]);
    let me = std::env::current_exe().expect("a path");
    let words = ["-n", "2", "--stats", me.to_str().expect("text"), "program", "counts"];
    let output = gasrun(&words).env("GASNET_BARRIER", "AMDISSEM").output().expect("started");
    assert!(
        err(&output).lines().any(|line| { line.split_whitespace().eq(["barriers", "3", "3", "6"]) }),
        "also by messages: {}",
        err(&output)
    );
    let output = run(&["-n", "2", "--stats", "true"]);
    assert!(
        output.status.success() && err(&output).contains("gasrun: nothing was recorded"),
        "{}",
        err(&output)
    );
    // Without it nothing is inherited that could be recorded in, whatever gasrun itself was started with.
    let list = "echo ${GASWORKS_OBSERVE_FD-none}; ls -l /proc/self/fd";
    let output =
        gasrun(&["-n", "1", "sh", "-c", list]).env("GASWORKS_OBSERVE_FD", "7").output().expect("started");
    assert!(
        out(&output).starts_with("none\n") && !out(&output).contains("gasworks-observe"),
        "{}",
        out(&output)
    );
    let text = out(&run(&["-n", "2", "--stats", "--label", "sh", "-c", list]));
    // To each rank its own, and no other's.
    assert_eq!(text.lines().filter(|line| line.contains("gasworks-observe")).count(), 2, "{text}");
}

/// Checks what every trace must be, and gives its slices by rank.
fn slices(trace: &Value, ranks: usize) -> Vec<Vec<Value>> {
    let events = trace["traceEvents"].as_array().expect("events");
    let number = |event: &Value, key: &str| event[key].as_f64().expect("a number");
    let mut by_rank = vec![Vec::new(); ranks];
    let (mut last, mut named) = (HashMap::new(), HashSet::new());
    let (mut begun, mut ended) = (HashMap::new(), HashMap::new());
    for event in events {
        let rank = event["pid"].as_u64().expect("a rank") as usize;
        let track = (rank, event["tid"].as_u64().expect("a thread"));
        match event["ph"].as_str().expect("a kind") {
            "M" => drop(named.insert((rank, event["name"].as_str().expect("a name").to_owned()))),
            "X" => {
                assert!(number(event, "dur") >= 0.0 && number(event, "ts") >= 0.0, "{event}");
                let before = last.insert(track, number(event, "ts")).unwrap_or(0.0);
                assert!(before <= number(event, "ts"), "time goes back: {event}");
                by_rank[rank].push(event.clone());
            }
            kind @ ("s" | "f") => {
                let ends = if kind == "s" { &mut begun } else { &mut ended };
                let id = event["id"].as_str().expect("an id").to_owned();
                assert!(
                    ends.insert(id, (rank, number(event, "ts"))).is_none(),
                    "two arrows are one: {event}"
                );
            }
            other => panic!("an event of kind {other:?}"),
        }
    }
    assert_eq!(begun.len(), ended.len());
    // Ranks of one host have one offset.
    let host = |rank: usize| trace["otherData"]["clock_offsets_ns"][rank].as_i64();
    for (id, (from, start)) in &begun {
        let (to, end) = ended.get(id).unwrap_or_else(|| panic!("{id} leads nowhere"));
        let uncertain =
            |rank: usize| trace["otherData"]["clock_uncertainties_ns"][rank].as_f64().expect("a number");
        let late = if host(*from) == host(*to) { 0.0 } else { (uncertain(*from) + uncertain(*to)) / 1000.0 };
        assert!(*start <= end + late && from != to, "{id} from {from} at {start} to {to} at {end}");
    }
    for rank in 0..ranks {
        assert!(named.contains(&(rank, "process_name".into())), "rank {rank} has no name");
    }
    // Slices of one thread lie apart or in each other, or nobody could draw them.
    for slices in &by_rank {
        let mut open: Vec<f64> = Vec::new();
        for slice in slices {
            let (start, end) = (number(slice, "ts"), number(slice, "ts") + number(slice, "dur"));
            open.retain(|&around| around > start);
            assert!(open.iter().all(|&around| end <= around + 0.002), "{slice} overlaps another");
            open.push(end);
        }
    }
    by_rank
}

fn a_trace_is_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.json");
    expect(&program(&["-n", "3", "--trace", &text(&file)], "counts"), 0, &[]);
    let trace = read(&file);
    for slices in slices(&trace, 3) {
        let count = |name: &str| slices.iter().filter(|slice| slice["name"] == name).count() as u64;
        assert_eq!([count("ping"), count("request ping"), count("pong"), count("reply pong")], [SHORTS; 4]);
        assert_eq!(
            [count("medium"), count("long"), count("put"), count("get")],
            [MEDIUMS, LONGS, PUTS, GETS]
        );
        assert_eq!(count("barrier"), BARRIERS);
        assert!(slices.iter().all(|slice| slice["args"]["unfinished"].is_null()));
        let get = slices.iter().find(|slice| slice["name"] == "get").expect("a get");
        assert_eq!(get["args"]["bytes"], GET);
    }
    let arrows =
        trace["traceEvents"].as_array().expect("events").iter().filter(|event| event["ph"] == "s").count();
    assert_eq!(arrows as u64, 3 * (2 * SHORTS + MEDIUMS + LONGS));
    assert_eq!(trace["otherData"]["clock_offsets_ns"], serde_json::json!([0, 0, 0]));
}

fn a_full_trace_keeps_the_last_events() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.json");
    let me = std::env::current_exe().expect("a path");
    let words = ["-n", "2", "--trace", &text(&file), me.to_str().expect("text"), "program", "counts"];
    let output = gasrun(&words).env("GASWORKS_TRACE_EVENTS", "8").output().expect("started");
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(err(&output).matches("gasrun: the trace lacks the first ").count(), 2, "{}", err(&output));
    for slices in slices(&read(&file), 2) {
        assert!((1..=8).contains(&slices.len()), "{slices:?}");
        // The last thing that a rank does is the barrier at the end of the job.
        assert!(slices.iter().any(|slice| slice["name"] == "barrier"), "{slices:?}");
    }
}

fn what_a_killed_rank_did_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let (trace, stats) = (dir.path().join("trace.json"), dir.path().join("stats.json"));
    let words = ["-n", "3", "--trace", &text(&trace), &format!("--stats={}", text(&stats))];
    expect(&program(&words, "die-in-a-handler"), 137, &["rank 2 (pid ", "was killed by signal 9"]);
    let slices = slices(&read(&trace), 3);
    let unfinished: HashSet<&str> = slices[2]
        .iter()
        .filter(|slice| slice["args"]["unfinished"] == true)
        .filter_map(|slice| slice["name"].as_str())
        .collect();
    assert!(unfinished.contains("fatal"), "{unfinished:?}");
    assert!(slices[0].iter().any(|slice| slice["name"] == "request fatal"));
    let count = operations(&read(&stats)["by_rank"][2]);
    assert_eq!(count.get(&("short request handled".to_owned(), 0)), Some(&(1, 0)));
}

fn recordings_that_cannot_be_written() {
    for words in [["--trace", "/no/such/folder/t"], ["--stats=/no/such/folder/t", "-v"]] {
        let output = run(&[&words[..], &["-n", "2", "sh", "-c", "echo ran"]].concat());
        assert!(
            output.status.code() == Some(1) && out(&output).is_empty(),
            "it is found before anything runs"
        );
        assert!(err(&output).contains("gasrun: write /no/such/folder/t: No such file"), "{}", err(&output));
    }
    let output = program(&["-n", "2", "--stats=/dev/full"], "counts");
    expect(&output, 1, &["write /dev/full: No space left on device"]);
    let output = gasrun(&["-n", "2", "--trace", "/dev/null", "true"])
        .env("GASWORKS_TRACE_EVENTS", "0")
        .output()
        .expect("started");
    expect(&output, 1, &["setting GASWORKS_TRACE_EVENTS=\"0\": wanted a whole number from 1 to 16777216"]);
}
