//! Launchers that are spoken to through their libraries: the declarations against installed headers, and real processes
//! over libraries that stand in for those, compiled here. Runs itself again as the ranks.

use std::ffi::{CStr, c_int};
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::{BootstrapError, Takeover, connect, connect_as_cray, connect_with};

#[path = "../src/pmix/abi.rs"]
mod abi;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("rank") => match take_part() {
            Ok(line) => println!("{line}"),
            Err(e) => println!("error: {e}"),
        },
        Some("compute") => {
            let _rank = connect().expect("joined");
            std::thread::sleep(Duration::from_secs(30));
        }
        Some("rank-with-threads") => {
            std::thread::spawn(|| std::thread::sleep(Duration::from_secs(30)));
            println!("{}", take_part().expect("joined"));
        }
        Some("rank-as-cray") => {
            let rank = connect_as_cray().expect("joined");
            println!("rank {} of {} in {}", rank.rank(), rank.size(), rank.job());
        }
        Some("take-over") => take_over(),
        Some("abort") => connect().expect("joined").abort(42, "no more; really"),
        _ => {
            let tests: [(&str, Test); 9] = [
                ("the_declarations_of_pmix_are_those_of_its_headers", declarations),
                ("a_job_over_crays_libraries", cray),
                ("crays_library_is_told_to_fork_nothing", no_fork),
                ("who_is_crays_library_does_not_ask_it", as_cray),
                ("every_fault_of_crays_libraries_is_one_error", cray_faults),
                ("libraries_that_lack_something_are_named", lacking),
                ("every_fault_of_pmix_is_one_error", pmix_faults),
                ("a_job_taken_over_is_this_processs_from_then_on", taken_over),
                ("what_is_asked_for_must_be_there", wishes),
            ];
            for (name, test) in tests {
                let dir = tempfile::tempdir().expect("a directory");
                match test(dir.path()) {
                    Outcome::Passed => println!("test {name} ... ok"),
                    Outcome::Skipped(why) => println!("test {name} ... skipped: {why}"),
                }
            }
        }
    }
    ExitCode::SUCCESS
}

type Test = fn(&Path) -> Outcome;

enum Outcome {
    Passed,
    Skipped(String),
}

/// Leaves a test that the machine has not what it takes for.
macro_rules! need {
    ($what:expr) => {
        match $what {
            Ok(there) => there,
            Err(why) => return Outcome::Skipped(why),
        }
    };
}

/// What a rank does: everything once, and two jobs.
fn take_part() -> Result<String, BootstrapError> {
    let mut line = String::new();
    for _ in 0..2 {
        let rank = connect()?;
        let bytes =
            |rank: u32, len: u32| (0..len * (rank + 1)).map(|i| (i * 7 + rank) as u8).collect::<Vec<u8>>();
        for len in [0, 1, 384, 5000] {
            let wanted: Vec<_> = (0..rank.size()).map(|r| bytes(r, len)).collect();
            let all = rank.exchange(&format!("gathered{len}"), &bytes(rank.rank(), len))?;
            assert!(all == wanted, "{len} bytes gathered");
            rank.put(&format!("put{len}"), &bytes(rank.rank(), len))?;
            rank.fence()?;
            let got = (0..rank.size()).map(|r| rank.get(r, &format!("put{len}")));
            assert!(got.collect::<Result<Vec<_>, _>>()? == wanted, "{len} bytes put");
        }
        rank.barrier()?;
        line =
            format!("rank {} of {} in {} on {:?}", rank.rank(), rank.size(), rank.job(), rank.host_hint()?);
        rank.finalize()?;
    }
    Ok(line)
}

/// A program that is in a job already, as the only rank.
fn take_over() {
    let takeover = Takeover {
        rank: 0,
        size: 1,
        all_gather: Box::new(|mine, all| {
            all.copy_from_slice(mine);
            Ok(())
        }),
        barrier: Box::new(|| Ok(())),
        abort: Box::new(|code, why| println!("the program's own abort: {code}, {why}")),
    };
    let first = connect_with(takeover).expect("joined");
    first.finalize().expect("ended");
    let next = connect().expect("joined");
    println!("rank {} of {}: {}", next.rank(), next.size(), next.job() == format!("{}.1", first.job()));
    next.abort(42, "no more");
}

/// Compiles a file of `tests/standin`.
fn compile(source: &str, flags: &[&str], to: &Path) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin").join(source);
    let mut cc = Command::new("cc");
    let done = cc.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(to).arg(source).args(flags).output();
    let done = done.map_err(|e| format!("no C compiler: cc: {e}"))?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// Where the headers of PMIx are, as the package of the system or `pkg-config` says.
fn headers() -> Result<String, String> {
    let asked = Command::new("pkg-config").args(["--variable=includedir", "pmix"]).output();
    let asked = asked.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let places = [asked, "/usr/lib/x86_64-linux-gnu/pmix2/include".into(), "/usr/include".into()];
    let found = places.into_iter().find(|dir| !dir.is_empty() && Path::new(dir).join("pmix.h").exists());
    found.ok_or_else(|| "no pmix.h (Debian: libpmix-dev)".to_owned())
}

fn declarations(dir: &Path) -> Outcome {
    let (headers, program) = (need!(headers()), dir.join("layout"));
    need!(compile("layout.c", &["-I", &headers, "-lpmix"], &program));
    let told = Command::new(program).output().expect("started");
    let told = String::from_utf8(told.stdout).expect("text");
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    let ours = [
        ("sizeof(pmix_proc_t)", size_of::<abi::Proc>().to_string()),
        ("sizeof(pmix_value_t)", size_of::<abi::Value>().to_string()),
        ("sizeof(pmix_info_t)", size_of::<abi::Info>().to_string()),
        ("sizeof(pmix_status_t)", size_of::<c_int>().to_string()),
        ("sizeof(pmix_scope_t)", size_of_val(&abi::GLOBAL).to_string()),
        ("offsetof(pmix_proc_t.nspace)", offset_of!(abi::Proc, nspace).to_string()),
        ("offsetof(pmix_proc_t.rank)", offset_of!(abi::Proc, rank).to_string()),
        ("offsetof(pmix_value_t.type)", offset_of!(abi::Value, kind).to_string()),
        ("offsetof(pmix_value_t.data)", offset_of!(abi::Value, data).to_string()),
        ("offsetof(pmix_info_t.key)", offset_of!(abi::Info, key).to_string()),
        ("offsetof(pmix_info_t.flags)", offset_of!(abi::Info, flags).to_string()),
        ("offsetof(pmix_info_t.value)", offset_of!(abi::Info, value).to_string()),
        ("PMIX_MAX_NSLEN", abi::MAX_NSLEN.to_string()),
        ("PMIX_MAX_KEYLEN", abi::MAX_KEYLEN.to_string()),
        ("PMIX_RANK_WILDCARD", abi::RANK_WILDCARD.to_string()),
        ("PMIX_GLOBAL", abi::GLOBAL.to_string()),
        ("PMIX_SUCCESS", abi::SUCCESS.to_string()),
        ("PMIX_BOOL", abi::BOOL.to_string()),
        ("PMIX_STRING", abi::STRING.to_string()),
        ("PMIX_INT", abi::INT.to_string()),
        ("PMIX_UINT32", abi::UINT32.to_string()),
        ("PMIX_POINTER", abi::POINTER.to_string()),
        ("PMIX_ERR_LOST_CONNECTION", abi::LOST_CONNECTION.to_string()),
        ("PMIX_ERR_LOST_CONNECTION_TO_SERVER", abi::LOST_CONNECTION_TO_SERVER.to_string()),
        ("PMIX_EVENT_ACTION_COMPLETE", abi::ACTION_COMPLETE.to_string()),
        ("PMIX_EVENT_RETURN_OBJECT", text(abi::RETURN_OBJECT)),
        ("PMIX_JOB_SIZE", text(abi::JOB_SIZE)),
        ("PMIX_NODEID", text(abi::NODEID)),
        ("PMIX_COLLECT_DATA", text(abi::COLLECT_DATA)),
        ("PMIX_TIMEOUT", text(abi::TIMEOUT)),
        ("PMIX_OPTIONAL", text(abi::OPTIONAL)),
    ];
    let ours: Vec<String> = ours.iter().map(|(name, value)| format!("{name} {value}")).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), ours);
    Outcome::Passed
}

/// A rank that finds its libraries in `dir`, and no launcher but the one that `variables` speak of.
fn rank(dir: &Path, action: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.arg(action).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in gasworks_bootstrap::SETTINGS.iter().flat_map(|row| row.aliases.iter().chain([&row.name]))
    {
        command.env_remove(variable);
    }
    command
        .env("LD_LIBRARY_PATH", dir)
        .env("STANDIN_DIR", dir)
        .envs(variables.iter().copied())
        .env("GASNET_EXITTIMEOUT", "3");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Compiles Cray's stand-ins into `dir`.
fn standins(dir: &Path) -> Result<(), String> {
    compile("pmi.c", &["-shared", "-fPIC", "-DPMI2"], &dir.join("libpmi2.so.0"))?;
    compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi.so.0"))
}

/// What the ranks of a job over them say, in their order.
fn job(dir: &Path, size: u32, variables: &[(&str, &str)]) -> Vec<String> {
    let size_text = size.to_string();
    let start = |number: u32| -> Child {
        let number = number.to_string();
        let own = [("ALPS_APP_PE", number.as_str()), ("STANDIN_SIZE", size_text.as_str())];
        rank(dir, "rank", &[&own, variables].concat()).spawn().expect("started")
    };
    let ranks: Vec<Child> = (0..size).map(start).collect();
    ranks.into_iter().map(|rank| said(&rank.wait_with_output().expect("ended"))).collect()
}

fn cray(dir: &Path) -> Outcome {
    need!(standins(dir));
    for (nodes, wanted) in
        [("list", "Some([40, 40, 41, 41, 42])"), ("near", "Some([0, 0, 2, 2, 4])"), ("none", "None")]
    {
        let own = dir.join(nodes);
        std::fs::create_dir(&own).expect("a directory");
        let place = own.to_str().expect("text");
        let all = job(dir, 5, &[("STANDIN_NODES", nodes), ("STANDIN_DIR", place)]);
        for (rank, said) in all.iter().enumerate() {
            assert_eq!(*said, format!("rank {rank} of 5 in cray-{nodes}.1 on {wanted}\n"));
            assert!(own.join(format!("finalized.{rank}")).exists(), "rank {rank} has said its last word");
        }
    }
    Outcome::Passed
}

fn no_fork(dir: &Path) -> Outcome {
    need!(standins(dir));
    // By itself; as somebody wishes; and where another thread may be reading the environment.
    for (action, wish, heard) in [
        ("rank", "", "1"),
        ("rank", "0", "0"),
        ("rank-with-threads", "", "a helper was forked"),
        ("rank-with-threads", "yes", "yes"),
    ] {
        let own = dir.join(format!("{action}-{wish}"));
        std::fs::create_dir(&own).expect("a directory");
        let place = own.to_str().expect("text");
        let variables = [("ALPS_APP_PE", "0"), ("STANDIN_SIZE", "1"), ("STANDIN_DIR", place)];
        let wish = (!wish.is_empty()).then_some(("PMI_NO_FORK", wish));
        let output = rank(dir, action, &variables).envs(wish).output().expect("started");
        assert!(said(&output).starts_with("rank 0 of 1 in cray-"), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(own.join("no-fork.0")).expect("called"), heard, "{action}");
    }
    Outcome::Passed
}

fn as_cray(dir: &Path) -> Outcome {
    need!(standins(dir));
    let run = |variables: &[(&str, &str)]| {
        let own = [("ALPS_APP_PE", "1"), ("STANDIN_SIZE", "2")];
        said(&rank(dir, "rank-as-cray", &[&own, variables].concat()).output().expect("started"))
    };
    for wish in ["auto", "cray", "single"] {
        let said = run(&[("GASWORKS_BOOTSTRAP", wish)]);
        assert!(said.starts_with("rank 0 of 1 in single-"), "{wish}: {said}");
    }
    // Another way is taken where there is one, although the setting asks for Cray's.
    let said = run(&[("GASWORKS_BOOTSTRAP", "cray"), ("PMI_PORT", "127.0.0.1:1"), ("PMI_ID", "1")]);
    assert!(said.contains("PMI_PORT=127.0.0.1:1: Connection refused"), "{said}");
    Outcome::Passed
}

fn cray_faults(dir: &Path) -> Outcome {
    need!(standins(dir));
    for (fault, wanted) in [
        ("init", "join the job by Cray's PMI: the launcher's library refuses it with the code 14"),
        ("rank", "the launcher says rank 1 of 1"),
        ("gather", "gather from all ranks: the launcher's library refuses it with the code 1"),
        ("fence", "wait for all ranks: nothing came for 1 s (GASWORKS_BOOTSTRAP_TIMEOUT)"),
        ("null", "damaged the value of the key put0 of rank 0"),
    ] {
        let place = dir.join(fault);
        std::fs::create_dir(&place).expect("a directory");
        let place = ("STANDIN_DIR", place.to_str().expect("text"));
        let said =
            job(dir, 1, &[("STANDIN_FAULT", fault), ("GASWORKS_BOOTSTRAP_TIMEOUT", "1"), place]).concat();
        assert!(said.starts_with("error: ") && said.contains(wanted), "{said:?} should say {wanted:?}");
    }
    let twice = job(dir, 2, &[("STANDIN_FAULT", "twice")]).concat();
    assert!(
        twice.contains("what came at place 1 of 2 is no rank's, or a rank's that came before"),
        "{twice}"
    );
    Outcome::Passed
}

fn lacking(dir: &Path) -> Outcome {
    // One that has nothing of what is wanted: the other half.
    need!(compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi2.so.0")));
    need!(compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi.so.0")));
    let output = rank(dir, "rank", &[("GASWORKS_BOOTSTRAP", "cray")]).output().expect("started");
    assert_eq!(said(&output), "error: open libpmi2.so.0 and libpmi.so.0: the libraries have no PMI2_Init\n");
    need!(compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmix.so.2")));
    let variables = [("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0")];
    let output = rank(dir, "rank", &variables).output().expect("started");
    assert_eq!(said(&output), "error: open libpmix.so.2: the library has no PMIx_Init\n");
    std::fs::write(dir.join("libpmix.so.2"), b"no library").expect("written");
    std::fs::write(dir.join("libpmix.so"), b"no library").expect("written");
    let output = rank(dir, "rank", &variables).output().expect("started");
    let said = said(&output);
    assert!(said.starts_with("error: open the library: libpmix.so.2 or libpmix.so: "), "{said}");
    Outcome::Passed
}

fn pmix_faults(dir: &Path) -> Outcome {
    need!(compile("pmix.c", &["-shared", "-fPIC"], &dir.join("libpmix.so.2")));
    let run = |action: &str, fault: &str| {
        let variables = [
            ("PMIX_NAMESPACE", "x"),
            ("PMIX_RANK", "0"),
            ("STANDIN_FAULT", fault),
            ("GASWORKS_BOOTSTRAP_TIMEOUT", "1"),
        ];
        let begun = Instant::now();
        let output = rank(dir, action, &variables).output().expect("started");
        assert!(begun.elapsed() < Duration::from_secs(20), "{fault}: it ends in time");
        (output.status.code(), said(&output))
    };
    let (code, text) = run("rank", "none");
    assert!(
        text.starts_with("rank 0 of 1 in standin-") && text.ends_with(".1 on None\nfinalized\n"),
        "{text}"
    );
    assert_eq!(code, Some(0));
    for (fault, wanted) in [
        ("init-hangs", "join the job by PMIx: nothing came for 1 s (GASWORKS_BOOTSTRAP_TIMEOUT)"),
        ("init-refused", "join the job by PMIx: PMIx refuses this rank: REFUSED (-25)"),
        ("size-is-0", "the launcher says rank 0 of 0"),
        ("size-is-text", "join the job by PMIx: the number of ranks is \"\""),
        ("put-refused", "put a value: PMIx refuses the key put0-0: REFUSED (-27)"),
        ("fence-refused", "wait for all ranks: PMIx refuses the fence: LOST-CONNECTION (-61)"),
        ("fence-hangs", "wait for all ranks: nothing came for 1 s (GASWORKS_BOOTSTRAP_TIMEOUT)"),
        ("get-another-kind", "the launcher made something of kind 27 of the key put0-0 of rank 0"),
        ("get-nothing", "the launcher made something of kind 0 of the key"),
        ("get-damaged", "damaged the value of the key put0 of rank 0"),
    ] {
        let (_, text) = run("rank", fault);
        assert!(text.starts_with("error: ") && text.contains(wanted), "{text:?} should say {wanted:?}");
    }
    // A launcher that vanishes while nobody speaks with it.
    let (code, text) = run("compute", "vanishes");
    assert_eq!(code, Some(1));
    assert_eq!(
        text,
        "completed with -334\ngasworks: rank 0: the launcher is gone (it closed the connection): this rank ends\n"
    );
    // The end comes, whatever the library makes of the last words.
    assert_eq!(run("rank", "finalize-hangs").0, Some(0));
    for fault in ["none", "abort-hangs"] {
        let (code, text) = run("abort", fault);
        assert_eq!(code, Some(42), "{fault}");
        assert!(text.contains("aborted with 42: no more, really\n"), "{text}");
        assert!(text.contains("gasworks: rank 0: no more, really\n"), "{text}");
    }
    Outcome::Passed
}

fn taken_over(dir: &Path) -> Outcome {
    // Whatever there is besides: what the program says comes first.
    let output = rank(dir, "take-over", &[("PMI_SIZE", "4"), ("PMI_FD", "77")]).output().expect("started");
    assert_eq!(
        said(&output),
        "rank 0 of 1: true\nthe program's own abort: 42, no more\ngasworks: rank 0: no more\n"
    );
    assert_eq!(output.status.code(), Some(42));
    Outcome::Passed
}

fn wishes(dir: &Path) -> Outcome {
    let run = |variables: &[(&str, &str)]| said(&rank(dir, "rank", variables).output().expect("started"));
    for wish in ["pmi1", "pmi2", "pmix"] {
        let nothing = run(&[("GASWORKS_BOOTSTRAP", wish)]);
        let ways = "PMI_FD, PMI_PORT, ALPS_APP_PE, PMIX_NAMESPACE";
        let wanted = format!(
            "error: join the job: GASWORKS_BOOTSTRAP={wish} cannot be had: no launcher has left a way in ({ways})\n"
        );
        assert_eq!(nothing, wanted);
    }
    let other = run(&[("GASWORKS_BOOTSTRAP", "pmi1"), ("PMIX_NAMESPACE", "ns@1"), ("PMIX_RANK", "3")]);
    let wanted = "GASWORKS_BOOTSTRAP=pmi1 cannot be had: there is PMIX_NAMESPACE=ns@1 (pmix)\n";
    assert!(other.ends_with(wanted), "{other}");
    let wrong = run(&[("GASWORKS_BOOTSTRAP", "pmi3")]);
    assert!(wrong.contains("wanted one of auto, pmi2, pmi1, pmix, cray, single"), "{wrong}");
    // Alone, though a launcher would have more: that is what was asked for.
    let alone = run(&[("GASWORKS_BOOTSTRAP", "single"), ("PMI_SIZE", "4")]);
    assert!(alone.starts_with("rank 0 of 1 in single-"), "{alone}");
    // Nobody listens there; and what is no place at all.
    for (port, wanted) in [
        ("127.0.0.1:1", "PMI_PORT=127.0.0.1:1: Connection refused"),
        ("nowhere", "PMI_PORT=nowhere: invalid socket address"),
    ] {
        let refused = run(&[("PMI_PORT", port), ("PMI_ID", "0")]);
        assert!(refused.starts_with("error: connect to the launcher: "), "{refused}");
        assert!(
            refused.contains(wanted) && refused.ends_with("wanted host:port of a launcher\n"),
            "{refused}"
        );
    }
    let nobody = run(&[("PMI_PORT", "127.0.0.1:1")]);
    assert!(nobody.contains("PMI_PORT=127.0.0.1:1 is set, but PMI_ID is not"), "{nobody}");
    Outcome::Passed
}
