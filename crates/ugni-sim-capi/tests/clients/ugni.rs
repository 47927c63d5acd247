//! The NIC: programs as clients of the genuine library write them, on both chips and with both deliveries, as several processes.

use super::program::{Programs, run, said};
use gasworks_testkit::cases::is_nightly;
use gasworks_ugni_sim::clock::model::Model;
use gasworks_ugni_sim::clock::replay::{Spent, replay};
use gasworks_ugni_sim::clock::trace::Record;

/// Chips and deliveries: on each chip one of them daily, of which `tests/jobs` runs the other; nightly all.
fn runs() -> &'static [(&'static str, &'static str)] {
    const ALL: [(&str, &str); 4] =
        [("gemini", "plain"), ("aries", "adversarial"), ("gemini", "adversarial"), ("aries", "plain")];
    if is_nightly() { &ALL } else { &ALL[..2] }
}

/// Runs a program with these numbers of ranks, of which daily runs take the last.
fn go(programs: &Programs, form: &str, ranks: &[u32]) {
    go_on_nodes(1, programs, form, ranks);
}

/// The same with the ranks on so many nodes.
fn go_on_nodes(nodes: u32, programs: &Programs, form: &str, ranks: &[u32]) {
    let daily = if is_nightly() { 0 } else { ranks.len() - 1 };
    for (chip, delivery) in runs() {
        for ranks in &ranks[daily..] {
            let mut command = programs.ranks(form, *ranks);
            command.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", delivery);
            command.env("GASWORKS_UGNI_NODES", nodes.to_string());
            assert_eq!(run(command.env("GASWORKS_UGNI_SEED", "1")), "all is well\n");
        }
    }
}

/// The same over sockets, as between hosts.
fn go_far(programs: &Programs, ranks: u32) {
    for (chip, delivery) in &runs()[1..] {
        let mut command = programs.ranks("shared", ranks);
        command.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", delivery);
        assert_eq!(run(command.env("GASWORKS_UGNI_WIRE", "sock")), "all is well\n");
    }
}

fn of(name: &str) -> Programs {
    Programs::shared(name, &["ugni", "pmi"])
}

fn of_all(name: &str) -> Programs {
    Programs::shared(name, &["ugni", "udreg", "pmi"])
}

/// Data that goes around at every alignment, with its events and flags.
#[test]
fn transfers() {
    let programs = Programs::of("transfers", &["ugni", "pmi"]);
    go(&programs, "shared", &[3]);
    go(&programs, "static", &[2]);
}

#[test]
fn atomics() {
    go(&of("atomics"), "shared", &[8]);
}

#[test]
fn overrun_and_recovery() {
    go(&of("overrun"), "shared", &[2, 5]);
}

#[test]
fn errors() {
    go(&of("errors"), "shared", &[2, 3]);
}

#[test]
fn waiting() {
    go(&of("waiting"), "shared", &[4]);
}

/// A rendezvous.
#[test]
fn datagrams() {
    go(&of("datagrams"), "shared", &[3, 8]);
}

/// The event of a put never comes before its bytes, unless somebody asks for that, nor then where the memory was registered so.
#[test]
fn arrivals() {
    let programs = of("arrivals");
    go(&programs, "shared", &[2]);
    for wire in ["near", "sock"] {
        let mut command = programs.ranks("shared", 2);
        command.env("GASWORKS_UGNI_MOOD", "unordered").env("GASWORKS_UGNI_WIRE", wire);
        assert_eq!(run(&mut command), "all is well\n", "{wire}");
    }
}

/// Short messages around a ring, with tags, credits and all.
#[test]
fn messages() {
    go(&of("messages"), "shared", &[2, 5]);
}

#[test]
fn chains() {
    go(&of("chains"), "shared", &[2, 4]);
}

/// Who does what the interface asks for gets through.
#[test]
fn faults_are_survived() {
    let programs = of_all("faults");
    let mut command = programs.ranks("shared", 2);
    command.env("GASWORKS_UGNI_STRICT", "1");
    let faults = "GNI_MemRegister:ERROR_RESOURCE@2 UDREG_Register:NO_SPACE@2 UDREG_Evict:NO_MATCH@2 \
                  GNI_PostFma:ERROR_RESOURCE%10 transaction:lost%2 transaction:congested%2";
    assert_eq!(run(command.env("GASWORKS_UGNI_FAULTS", faults)), "all is well\n");
    for (wrong, why) in [
        ("GNI_PostFma:NO_SUCH@1", "there is no such place, or it cannot fail so"),
        ("GNI_NoSuch:TIMEOUT@1", "there is no such place, or it cannot fail so"),
        ("queue:overrun", "wanted one @ or one %"),
    ] {
        let output =
            programs.ranks("shared", 2).env("GASWORKS_UGNI_FAULTS", wrong).output().expect("it starts");
        let text = said(&output);
        assert!(!output.status.success() && text.contains("GNI_CdmAttach"), "{text}");
        assert!(text.contains(&format!("setting GASWORKS_UGNI_FAULTS: {wrong:?}: {why}")), "{text}");
    }
}

/// What was asked of the NIC is written down, by each process for itself.
#[test]
fn a_witness_tells_what_was_asked() {
    let programs = of("chains");
    let dir = tempfile::tempdir().expect("a directory");
    let traces = tempfile::tempdir().expect("a directory");
    let mut command = programs.ranks("shared", 2);
    command.env("GASWORKS_UGNI_TRACE", traces.path().join("t"));
    assert_eq!(run(command.env("GASWORKS_UGNI_WITNESS", dir.path().join("w"))), "all is well\n");
    for spent in timed(traces.path()) {
        // Each link of a chain is a transaction, and the last alone is heard of.
        assert_eq!(spent.posts, [(22, 176), (0, 0), (11, 88), (11, 0), (0, 0)], "{spent:?}");
        assert_eq!(spent.unknown, 0, "{spent:?}");
    }
    let files: Vec<_> = std::fs::read_dir(dir.path()).expect("it is there").flatten().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("text");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let count = |call: &str, code: &str| all["calls"][call][code].as_u64();
        assert_eq!(count("GNI_CdmAttach", "GNI_RC_SUCCESS"), Some(1), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_SUCCESS"), Some(3), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_INVALID_PARAM"), Some(2), "{text}");
        assert_eq!(count("GNI_CtPostFma", "GNI_RC_SIZE_ERROR"), Some(1), "{text}");
        assert_eq!(count("GNI_GetDeviceType", "GNI_RC_ERROR_RESOURCE"), None, "{text}");
        assert_eq!(all["posted"]["GNI_POST_FMA_PUT"]["bytes"].as_u64(), Some(88), "{text}");
        assert_eq!(file.file_name().to_string_lossy(), format!("w.{}.json", all["process"]));
    }
}

/// What a process has counted and recorded is written however it ends, when it has given everything up.
#[test]
fn a_witness_is_written_however_a_process_ends() {
    let programs = Programs::of("endings", &["ugni", "pmi"]);
    for (form, how) in [
        ("shared", "exit"),
        ("shared", "_exit"),
        ("static", "_exit"),
        ("shared", "_Exit"),
        ("shared", "quick_exit"),
        ("shared", "kill"),
    ] {
        let (counts, traces) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let mut job = programs.ranks(form, 2);
        job.env("GASWORKS_UGNI_STRICT", "1").env("GASWORKS_UGNI_TRACE", traces.path().join("t"));
        let ended = job.env("GASWORKS_UGNI_WITNESS", counts.path().join("w")).arg(how).output();
        let ended = ended.expect("it starts");
        assert_eq!(ended.status.success(), how != "kill", "{form} {how}: {}", said(&ended));
        for spent in timed(traces.path()) {
            assert_eq!((spent.posts[0], spent.unknown), ((1, 100), 0), "{form} {how}: {spent:?}");
        }
        let files: Vec<_> = std::fs::read_dir(counts.path()).expect("it is there").flatten().collect();
        assert_eq!(files.len(), 2, "{form} {how}");
        for file in files {
            let text = std::fs::read_to_string(file.path()).expect("text");
            let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let count = |call: &str| all["calls"][call]["GNI_RC_SUCCESS"].as_u64();
            assert_eq!(
                (count("GNI_PostFma"), count("GNI_CdmDestroy")),
                (Some(1), Some(1)),
                "{form} {how}: {text}"
            );
        }
    }
}

/// Every count is right: of a program whose calls are all known.
#[test]
fn a_witness_counts_what_came_of_it() {
    let programs = of("witness");
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = programs.ranks("shared", 2);
    // The 19th transaction of each is one of the messages.
    command.env("GASWORKS_UGNI_FAULTS", "GNI_PostFma:ERROR_RESOURCE@1 transaction:lost@19");
    command.env("GASWORKS_UGNI_STRICT", "1");
    let traces = tempfile::tempdir().expect("a directory");
    command.env("GASWORKS_UGNI_TRACE", traces.path().join("t"));
    assert_eq!(run(command.env("GASWORKS_UGNI_WITNESS", dir.path().join("w"))), "all is well\n");
    is_timed(traces.path());
    let files: Vec<_> = std::fs::read_dir(dir.path()).expect("it is there").flatten().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("text");
        let mut all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        all["calls"] = serde_json::json!({ "GNI_PostFma": all["calls"]["GNI_PostFma"] });
        all["process"] = 0.into();
        // Between the marks lie the values that overrun a queue.
        let marks = all.as_object_mut().and_then(|all| all.remove("marks")).expect("there are marks");
        let values = |at: usize| marks[at]["posted"]["GNI_POST_CQWRITE"]["posts"].as_u64();
        assert_eq!((marks[0]["mark"].as_u64(), values(0)), (Some(7), Some(1)), "{marks}");
        assert_eq!((marks[1]["mark"].as_u64(), values(1)), (Some(8), Some(11)), "{marks}");
        assert_eq!(
            (&marks[0]["overruns"], &marks[1]["overruns"], &marks[2]),
            (&0.into(), &1.into(), &serde_json::Value::Null)
        );
        let expected = serde_json::json!({
            "process": 0,
            "calls": { "GNI_PostFma": { "GNI_RC_SUCCESS": 4, "GNI_RC_ERROR_RESOURCE": 1 } },
            "posted": {
                "GNI_POST_FMA_PUT": { "posts": 3, "bytes": 300 },
                "GNI_POST_RDMA_PUT": { "posts": 2, "bytes": 2000 },
                "GNI_POST_AMO": { "posts": 1, "bytes": 8 },
                "GNI_POST_CQWRITE": { "posts": 11, "bytes": 0 },
            },
            "registrations": { "made": 2, "ended": 2, "most": 2, "bytes": 65536 + 8192 },
            "events": {
                "local": { "ok": 2 },
                "global": { "ok": 17 },
                "remote": { "ok": 3 },
                "cqwrite": { "ok": 9 },
                "message": { "ok": 5 },
            },
            "overruns": 1,
            "retries": {
                "posts refused": 1,
                "posts again": 1,
                "messages refused": 1,
                "messages again": 1,
                "GNI_STAT_SMSG_MBOX_CREDITS_STALL": 1,
                "GNI_STAT_SMSG_RETRANS_COUNT": 1,
            },
        });
        assert_eq!(all, expected, "{text}");
    }
}

/// What the clock says of what a program has written down for it.
fn timed(dir: &std::path::Path) -> Vec<Spent> {
    let files: Vec<_> = std::fs::read_dir(dir).expect("it is there").flatten().collect();
    let read = |file: &std::fs::DirEntry| {
        let text = std::fs::read_to_string(file.path()).expect("text");
        Record::parse_all(&text).expect("records")
    };
    let model = Model::parse(Model::ARIES).expect("a model");
    let spent = replay(&model, &files.iter().map(read).collect::<Vec<_>>());
    assert_eq!(spent.len(), 2);
    spent
}

/// Of the program whose calls are all known that is all of them, and no event that nobody is known to have caused.
fn is_timed(dir: &std::path::Path) {
    let model = Model::parse(Model::ARIES).expect("a model");
    for of in timed(dir) {
        assert_eq!(of.posts, [(3, 300), (2, 2000), (1, 8), (11, 0), (5, 5 * 64)], "{of:?}");
        assert_eq!(of.unknown, 0, "{of:?}");
        let [(7, first), (8, second)] = of.marks[..] else { panic!("{of:?}") };
        // 10 values, one after the other, each behind the last one's event.
        assert!(second - first > 10.0 * 1000.0 && second < of.all, "{of:?}");
        // The 36 events that the witness has.
        assert_eq!((of.taking / model.event).round(), 36.0, "{of:?}");
        let parts = of.taking + of.posting.iter().sum::<f64>() + of.waiting.iter().sum::<f64>();
        assert!((parts - of.all).abs() < 1.0 && of.waiting.iter().sum::<f64>() > 20.0 * 1000.0, "{of:?}");
    }
}

/// All of it goes over sockets too.
#[test]
fn hosts_need_not_be_the_same() {
    for (name, ranks) in [("transfers", 3), ("atomics", 4), ("messages", 3), ("datagrams", 4), ("chains", 3)]
    {
        go_far(&of(name), ranks);
    }
    for (name, ranks) in [
        ("overrun", 3),
        ("errors", 3),
        ("waiting", 2),
        ("vmdh", 3),
        ("segments", 3),
        ("domains", 3),
        ("channels", 2),
        ("collective", 5),
    ] {
        go_far(&of(name), ranks);
    }
}

/// Registrations that are named by a place.
#[test]
fn virtual_descriptors() {
    go(&of("vmdh"), "shared", &[2, 3]);
}

/// Memory in pieces.
#[test]
fn segments() {
    go(&of("segments"), "shared", &[2, 3]);
}

/// Several domains of a process.
#[test]
fn domains() {
    go(&of("domains"), "shared", &[2, 3]);
}

#[test]
fn completion_channels() {
    go(&of("channels"), "shared", &[2, 4]);
}

/// What the NIC says of its resources, its statistics, its errors.
#[test]
fn queries() {
    go(&of("queries"), "shared", &[2, 3]);
}

/// Shared message queues, of one node that sends to itself and of several.
#[test]
fn shared_message_queues() {
    let programs = of("msgq");
    go(&programs, "shared", &[2, 4]);
    go_on_nodes(2, &programs, "shared", &[2, 5]);
    go_on_nodes(3, &programs, "shared", &[8]);
}

/// Reductions over a tree of all ranks.
#[test]
fn collective_engine() {
    go(&of("collective"), "shared", &[2, 5, 8]);
}

/// Who breaks no rule notices nothing of it: not those whose memory others write to, nor those who meet faults.
#[test]
fn good_clients_are_well_where_it_is_strict() {
    let good = [
        ("transfers", 2),
        ("atomics", 3),
        ("overrun", 2),
        ("waiting", 2),
        ("datagrams", 3),
        ("messages", 3),
        ("chains", 3),
        ("vmdh", 2),
        ("domains", 3),
        ("channels", 2),
        ("collective", 5),
        ("answers", 2),
    ];
    for (name, ranks) in good {
        let programs = of(name);
        for (chip, delivery) in &runs()[1..] {
            let mut client = programs.ranks("shared", ranks);
            client.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_MOOD", delivery);
            assert_eq!(run(client.env("GASWORKS_UGNI_STRICT", "1")), "all is well\n", "{name} {delivery}");
        }
    }
}

/// The mistakes of `strict.c`: how they are called, of what they are found guilty, in which call, and what is said of them.
const MISTAKES: [(&str, &str, &str, &str); 28] = [
    ("source_fma", SOURCE, "GNI_CqGetEvent", "2 of the 100 bytes at"),
    ("source_flag", SOURCE, "GNI_CqGetEvent", "1 of the 8 bytes at"),
    ("source_bte", SOURCE, "GNI_CqGetEvent", "1 of the 5000 bytes at"),
    ("source_chain", SOURCE, "GNI_CqGetEvent", "1 of the 8 bytes at"),
    ("source_answered", SOURCE, "GNI_PostFma", "1 of the 64 bytes at"),
    ("source_message", SOURCE, "GNI_CqGetEvent", "which message 0x1267 puts"),
    ("unmapped_source", UNMAPPED, "", "from 0x"),
    ("unmapped_target", UNMAPPED, "", "of the target"),
    ("unmapped_here", UNMAPPED, "", "8 bytes here, from 0x"),
    ("bounds", "reached beyond a registration", "", "of the target are not all in it"),
    ("leak_registration", LEAK, "GNI_CdmDestroy", "1 in all, the first 512 bytes at"),
    ("leak_request", LEAK, "GNI_CqDestroy", "with post_id 0xabc, has events that nobody took"),
    ("leak_answer", LEAK, "GNI_EpDestroy", "was not answered with GNI_GetCompleted"),
    ("leak_exit", LEAK, "exit", "1 in all, the first 65536 bytes at"),
    ("leak_exit_at_once", LEAK, "_exit", "1 in all, the first 65536 bytes at"),
    ("stale_queue", STALE, "GNI_CqGetEvent", "the completion queue of that handle was destroyed"),
    ("stale_source_queue", STALE, "GNI_PostFma", "the completion queue of that handle was destroyed"),
    ("stale_endpoint", STALE, "GNI_EpDestroy", "the endpoint of that handle was destroyed"),
    ("stale_nic", STALE, "GNI_CqCreate", "the NIC of that handle was destroyed"),
    ("stale_registration", STALE, "GNI_MemDeregister", "the registration of memory handle 0x"),
    ("stale_memory_here", STALE, "GNI_PostRdma", "the registration of memory handle 0x"),
    ("stale_memory_there", STALE, "", "is of no registration, or not any more"),
    ("align_remote", MISALIGNED, "GNI_PostFma", "is no multiple of 4; "),
    ("align_length", MISALIGNED, "GNI_PostFma", "length 0x7 is no multiple of 4; "),
    ("align_local", MISALIGNED, "GNI_PostFma", "is no multiple of 4; "),
    ("align_atomic", MISALIGNED, "GNI_PostFma", "is no multiple of 8; "),
    ("align_line", MISALIGNED, "GNI_PostFma", "are not in one line of 64 bytes"),
    ("align_flag", MISALIGNED, "", "sync_flag_addr, of a word at the target, is no multiple of 8"),
];
const SOURCE: &str = "touched the source too early";
const UNMAPPED: &str = "used memory that is not mapped";
const LEAK: &str = "left something behind";
const STALE: &str = "used what was ended";
const MISALIGNED: &str = "misaligned";

/// Each mistake ends its process where the NIC is strict, and says why; without it the same client is well, and so it is with it
/// where the NIC is not strict. Daily runs take the mistakes in turn with both deliveries, nightly ones each with both.
#[test]
fn mistakes_end_a_strict_job() {
    use std::os::unix::process::ExitStatusExt;
    let programs = of("strict");
    // What is to be aligned here is so on Gemini; in the other mood what is read late is spoiled, or not there.
    for (turn, mood) in ["plain", "adversarial"].into_iter().enumerate() {
        let (first, step) = if is_nightly() { (0, 1) } else { (turn, 2) };
        for (name, rule, call, what) in MISTAKES.into_iter().skip(first).step_by(step) {
            let client = |strict: &str, words: &[&str]| {
                let mut client = programs.alone("shared");
                client.env("GASWORKS_UGNI_CHIP", "gemini").env("GASWORKS_UGNI_MOOD", mood);
                client.env("GASWORKS_UGNI_STRICT", strict).args(words).output().expect("it starts")
            };
            let well = client("1", &[name, "well"]);
            assert!(well.status.success(), "{mood} {name}: {}", said(&well));
            let unseen = client("0", &[name]);
            assert!(unseen.status.success(), "{mood} {name}: {}", said(&unseen));
            let caught = client("1", &[name]);
            let words = said(&caught);
            assert_eq!(caught.status.signal(), Some(6), "{mood} {name}: {words}");
            assert!(words.contains(&format!("libugni: strict: {rule} ({call}")), "{mood} {name}: {words}");
            assert!(words.contains(what), "{mood} {name}: {words}");
        }
    }
    // What was asked for is nobody's mistake.
    let mut met = programs.alone("shared");
    met.env("GASWORKS_UGNI_STRICT", "1").env("GASWORKS_UGNI_FAULTS", "transaction:bounds@1");
    assert_eq!(run(met.args(["bounds", "well"])), "all is well\n");
    // And with the process the job, of which the launcher says that it was killed.
    let mut job = programs.ranks("shared", 2);
    let ended = job.env("GASWORKS_UGNI_STRICT", "1").arg("source_fma").output().expect("it starts");
    assert!(!ended.status.success() && said(&ended).contains(SOURCE), "{}", said(&ended));
}
