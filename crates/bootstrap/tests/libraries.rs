//! Launchers that are spoken to through their libraries: the declarations against installed headers, and real processes
//! over libraries that stand in for those, compiled here. Runs itself again as the ranks.

use std::ffi::{CStr, c_int};
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use gasworks_bootstrap::{
    Bootstrap, BootstrapError, Launched, Start, Takeover, connect, connect_as_cray, connect_with,
};
use tempfile::TempDir;

mod cases;

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
        Some("rank-unwatched") => match take_part_unwatched() {
            Ok(()) => println!("all well"),
            Err(e) => println!("error: {e}"),
        },
        Some("exit-from-fence") => {
            let rank = connect().expect("joined");
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                gasworks_bootstrap::exit(0);
            });
            println!("{:?}", rank.fence().map_err(|e| e.to_string()));
        }
        _ => {
            // Without pmix.h (libpmix-dev) there is nothing to compare with.
            let ignored = headers().is_none().then_some("the_declarations_of_pmix_are_those_of_its_headers");
            let cases: &[cases::Case] = &[
                ("the_declarations_of_pmix_are_those_of_its_headers", declarations),
                ("a_job_over_crays_libraries", cray),
                ("a_job_over_a_library_without_an_all_gather", cray_without_gather),
                ("crays_library_is_told_to_fork_nothing", no_fork),
                ("who_is_crays_library_does_not_ask_it", as_cray),
                ("every_fault_of_crays_libraries_is_one_error", cray_faults),
                ("libraries_that_lack_something_are_named", lacking),
                ("a_job_over_pmix", pmix),
                ("every_fault_of_pmix_is_one_error", pmix_faults),
                ("a_call_of_a_library_that_hangs_is_given_up", hanging),
                ("an_end_comes_whatever_a_library_makes_of_it", ends),
                ("a_job_taken_over_is_this_processs_from_then_on", taken_over),
                ("what_is_asked_for_must_be_there", wishes),
                ("a_launcher_further_out_is_not_asked", nested),
            ];
            return cases::run(cases, ignored);
        }
    }
    ExitCode::SUCCESS
}

/// A directory for one test.
fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
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
            assert!(all.to_vec() == wanted, "{len} bytes gathered");
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

/// The same, without anything that watches over this process: what it says at the end it says at once.
fn take_part_unwatched() -> Result<(), BootstrapError> {
    let rank = Launched::join(Start::from_settings()?.expect("a launcher"))?;
    rank.put("key", b"bytes")?;
    rank.fence()?;
    assert_eq!(rank.get(0, "key")?, b"bytes");
    rank.finalize()
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
fn compile(source: &str, flags: &[&str], to: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin").join(source);
    let mut cc = Command::new("cc");
    let done = cc.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(to).arg(source).args(flags).output();
    let done = done.expect("a C compiler, cc");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Where the headers of PMIx are, as the package of the system or `pkg-config` says.
fn headers() -> Option<String> {
    let asked = Command::new("pkg-config").args(["--variable=includedir", "pmix"]).output();
    let asked = asked.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let places = [asked, "/usr/lib/x86_64-linux-gnu/pmix2/include".into(), "/usr/include".into()];
    places.into_iter().find(|dir| !dir.is_empty() && Path::new(dir).join("pmix.h").exists())
}

fn declarations() {
    let dir = directory();
    let program = dir.path().join("layout");
    let headers = headers().expect("pmix.h");
    compile("layout.c", &["-I", &headers, "-lpmix"], &program);
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
        .env("GASNET_EXITTIMEOUT", "3")
        .envs(variables.iter().copied());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Compiles Cray's stand-ins into `dir`.
fn standins(dir: &Path) {
    compile("pmi.c", &["-shared", "-fPIC", "-DPMI2"], &dir.join("libpmi2.so.0"));
    compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi.so.0"));
}

/// A directory with both.
fn cray_directory() -> TempDir {
    let dir = directory();
    standins(dir.path());
    dir
}

/// A directory with a stand-in for `libpmix.so.2`.
fn pmix_directory() -> TempDir {
    let dir = directory();
    compile("pmix.c", &["-shared", "-fPIC"], &dir.path().join("libpmix.so.2"));
    dir
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

fn cray() {
    let dir = cray_directory();
    for (nodes, size, wanted) in [
        ("list", 5, "Some([40, 40, 41, 41, 42])"),
        ("near", 5, "Some([0, 0, 2, 2, 4])"),
        // All ranks are on one host.
        ("near", 2, "Some([0, 0])"),
        ("none", 5, "None"),
    ] {
        let name = format!("{nodes}-{size}");
        let own = dir.path().join(&name);
        std::fs::create_dir(&own).expect("a directory");
        let place = own.to_str().expect("text");
        let all = job(dir.path(), size, &[("STANDIN_NODES", nodes), ("STANDIN_DIR", place)]);
        for (rank, said) in all.iter().enumerate() {
            assert_eq!(*said, format!("rank {rank} of {size} in cray-{name}.1 on {wanted}\n"));
            assert!(own.join(format!("finalized.{rank}")).exists(), "rank {rank} has said its last word");
        }
    }
    let own = dir.path().join("unwatched");
    std::fs::create_dir(&own).expect("a directory");
    let variables =
        [("ALPS_APP_PE", "0"), ("STANDIN_SIZE", "1"), ("STANDIN_DIR", own.to_str().expect("text"))];
    let run = |more: &[(&str, &str)]| {
        let output = rank(dir.path(), "rank-unwatched", &variables).envs(more.iter().copied()).output();
        said(&output.expect("started"))
    };
    assert_eq!(run(&[]), "all well\n");
    assert!(own.join("finalized.0").exists());
    std::fs::remove_file(own.join("value.key-0")).expect("it was put");
    let refused = run(&[("STANDIN_FAULT", "finalize")]);
    assert_eq!(refused, "error: end in good order: the launcher's library refuses it with the code 9\n");
}

fn cray_without_gather() {
    let dir = directory();
    // As where Slurm is the launcher. Whatever the system has must not be found instead.
    compile("pmi.c", &["-shared", "-fPIC", "-DPMI2"], &dir.path().join("libpmi2.so.0"));
    std::fs::write(dir.path().join("libpmi.so.0"), b"no library").expect("written");
    std::fs::write(dir.path().join("libpmi.so"), b"no library").expect("written");
    for (rank, said) in job(dir.path(), 3, &[]).iter().enumerate() {
        let name = dir.path().file_name().and_then(|name| name.to_str()).expect("text");
        assert_eq!(*said, format!("rank {rank} of 3 in cray-{name}.1 on None\n"));
    }
}

fn no_fork() {
    let dir = cray_directory();
    // By itself; as somebody wishes; and where another thread may be reading the environment.
    for (action, wish, heard) in [
        ("rank", "", "1"),
        ("rank", "0", "0"),
        ("rank-with-threads", "", "a helper was forked"),
        ("rank-with-threads", "yes", "yes"),
    ] {
        let own = dir.path().join(format!("{action}-{wish}"));
        std::fs::create_dir(&own).expect("a directory");
        let place = own.to_str().expect("text");
        let variables = [("ALPS_APP_PE", "0"), ("STANDIN_SIZE", "1"), ("STANDIN_DIR", place)];
        let wish = (!wish.is_empty()).then_some(("PMI_NO_FORK", wish));
        let output = rank(dir.path(), action, &variables).envs(wish).output().expect("started");
        assert!(said(&output).starts_with("rank 0 of 1 in cray-"), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(own.join("no-fork.0")).expect("called"), heard, "{action}");
    }
}

fn as_cray() {
    let dir = cray_directory();
    let run = |variables: &[(&str, &str)]| {
        let own = [("ALPS_APP_PE", "1"), ("STANDIN_SIZE", "2")];
        said(&rank(dir.path(), "rank-as-cray", &[&own, variables].concat()).output().expect("started"))
    };
    for wish in ["auto", "cray", "single"] {
        let said = run(&[("GASWORKS_BOOTSTRAP", wish)]);
        assert!(said.starts_with("rank 0 of 1 in single-"), "{wish}: {said}");
    }
    // Another way is taken where there is one, although the setting asks for Cray's.
    let said = run(&[("GASWORKS_BOOTSTRAP", "cray"), ("PMI_PORT", "127.0.0.1:1"), ("PMI_ID", "1")]);
    assert!(said.contains("PMI_PORT=127.0.0.1:1: Connection refused"), "{said}");
}

fn cray_faults() {
    let dir = cray_directory();
    for (fault, wanted) in [
        ("init", "join the job by Cray's PMI: the launcher's library refuses it with the code 14"),
        ("rank", "the launcher says rank 1 of 1"),
        ("gather", "gather from all ranks: the launcher's library refuses it with the code 1"),
        ("null", "damaged the value of the key put0 of rank 0"),
    ] {
        let place = dir.path().join(fault);
        std::fs::create_dir(&place).expect("a directory");
        let place = ("STANDIN_DIR", place.to_str().expect("text"));
        let said = job(dir.path(), 1, &[("STANDIN_FAULT", fault), place]).concat();
        assert!(said.starts_with("error: ") && said.contains(wanted), "{said:?} should say {wanted:?}");
    }
    let twice = job(dir.path(), 2, &[("STANDIN_FAULT", "twice")]).concat();
    assert!(
        twice.contains("what came at place 1 of 2 is no rank's, or a rank's that came before"),
        "{twice}"
    );
}

fn lacking() {
    let dir = directory();
    let dir = dir.path();
    // One that has nothing of what is wanted: the other half.
    compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi2.so.0"));
    compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmi.so.0"));
    let output = rank(dir, "rank", &[("GASWORKS_BOOTSTRAP", "cray")]).output().expect("started");
    assert_eq!(said(&output), "error: open libpmi2.so.0 and libpmi.so.0: the libraries have no PMI2_Init\n");
    compile("pmi.c", &["-shared", "-fPIC"], &dir.join("libpmix.so.2"));
    let variables = [("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0")];
    let output = rank(dir, "rank", &variables).output().expect("started");
    assert_eq!(said(&output), "error: open libpmix.so.2: the library has no PMIx_Init\n");
    std::fs::write(dir.join("libpmix.so.2"), b"no library").expect("written");
    std::fs::write(dir.join("libpmix.so"), b"no library").expect("written");
    let output = rank(dir, "rank", &variables).output().expect("started");
    let said = said(&output);
    assert!(said.starts_with("error: open the library: libpmix.so.2 or libpmix.so: "), "{said}");
}

/// A rank of a job of one over PMIx's stand-in: its code, and what it says.
fn pmix_rank(dir: &Path, action: &str, fault: &str, more: &[(&str, &str)]) -> (Option<i32>, String) {
    let variables = [("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0"), ("STANDIN_FAULT", fault)];
    let begun = Instant::now();
    let output = rank(dir, action, &[&variables, more].concat()).output().expect("started");
    assert!(begun.elapsed() < Duration::from_secs(20), "{fault}: it ends in time");
    (output.status.code(), said(&output))
}

fn pmix() {
    let dir = pmix_directory();
    let run = |action, more: &[(&str, &str)]| pmix_rank(dir.path(), action, "none", more);
    for (more, wanted) in [(&[][..], "None"), (&[("STANDIN_NODE", "7")], "Some([7])")] {
        let (code, text) = run("rank", more);
        let end = format!(".1 on {wanted}\nfinalized\n");
        assert!(text.starts_with("rank 0 of 1 in standin-") && text.ends_with(&end), "{text}");
        assert_eq!(code, Some(0));
    }
    assert_eq!(run("rank-unwatched", &[]), (Some(0), "finalized\nall well\n".to_owned()));
    // A launcher that vanishes while nobody speaks with it.
    let (code, text) = pmix_rank(dir.path(), "compute", "vanishes", &[]);
    assert_eq!(code, Some(1));
    assert_eq!(
        text,
        "completed with -334\ngasworks: rank 0: the launcher is gone (it closed the connection): this rank ends\n"
    );
    let (code, text) = run("abort", &[]);
    assert_eq!(code, Some(42));
    assert!(text.contains("aborted with 42: no more, really\n"), "{text}");
    assert!(text.contains("gasworks: rank 0: no more, really\n"), "{text}");
}

fn pmix_faults() {
    let dir = pmix_directory();
    for (fault, wanted) in [
        ("init-refused", "join the job by PMIx: PMIx refuses this rank: REFUSED (-25)"),
        ("watch-refused", "join the job by PMIx: PMIx refuses to tell of its end: REFUSED (-27)"),
        ("size-is-0", "the launcher says rank 0 of 0"),
        ("size-is-text", "join the job by PMIx: the number of ranks is \"\""),
        ("put-refused", "put a value: PMIx refuses the key put0-0: REFUSED (-27)"),
        ("fence-refused", "wait for all ranks: PMIx refuses the fence: LOST-CONNECTION (-61)"),
        ("get-another-kind", "the launcher made something of kind 27 of the key put0-0 of rank 0"),
        ("get-a-number", "the launcher made 12 of the key put0-0 of rank 0"),
        ("get-nothing", "the launcher made something of kind 0 of the key"),
        ("get-damaged", "damaged the value of the key put0 of rank 0"),
    ] {
        let (_, text) = pmix_rank(dir.path(), "rank", fault, &[]);
        assert!(text.starts_with("error: ") && text.contains(wanted), "{text:?} should say {wanted:?}");
    }
    let (_, text) = pmix_rank(dir.path(), "rank-unwatched", "finalize-refused", &[]);
    assert_eq!(text, "error: end in good order: PMIx refuses the end: REFUSED (-27)\n");
}

fn hanging() {
    let (dir, cray) = (pmix_directory(), cray_directory());
    // An end that is not answered is waited for as long as the exit time-out.
    let limits = [("GASWORKS_BOOTSTRAP_TIMEOUT", "1"), ("GASNET_EXITTIMEOUT", "0.2")];
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let pmix = |fault| pmix_rank(dir.path(), "rank", fault, &limits).1;
        let join = scope.spawn(move || pmix("init-hangs"));
        let fence = scope.spawn(move || pmix("fence-hangs"));
        let cray_fence = job(cray.path(), 1, &[&[("STANDIN_FAULT", "fence")], &limits[..]].concat()).concat();
        let nothing = "nothing came for 1 s (GASWORKS_BOOTSTRAP_TIMEOUT)\n";
        assert_eq!(join.join().expect("ended"), format!("error: join the job by PMIx: {nothing}"));
        for text in [fence.join().expect("ended"), cray_fence] {
            assert!(text.starts_with(&format!("error: wait for all ranks: {nothing}")), "{text}");
        }
    });
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

fn ends() {
    let (dir, cray) = (pmix_directory(), cray_directory());
    let limit = [("GASNET_EXITTIMEOUT", "0.5")];
    // The end comes, whatever the library makes of the last words; but they are waited for.
    let begun = Instant::now();
    assert_eq!(pmix_rank(dir.path(), "rank", "finalize-hangs", &limit).0, Some(0));
    assert!(begun.elapsed() >= Duration::from_millis(500));
    let begun = Instant::now();
    let (code, text) = pmix_rank(dir.path(), "abort", "abort-hangs", &limit);
    assert_eq!(code, Some(42));
    assert!(text.contains("aborted with 42: no more, really\n"), "{text}");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    // A call that comes back with an error because the process ends is nobody's business.
    let (code, text) = pmix_rank(dir.path(), "exit-from-fence", "fence-until-end", &[]);
    assert_eq!((code, text.as_str()), (Some(0), "finalized\n"));
    // Nor over Cray's library, where the last word comes after that call.
    let variables = [("ALPS_APP_PE", "0"), ("STANDIN_SIZE", "1")];
    let late = [("STANDIN_FAULT", "fence-late")];
    let output =
        rank(cray.path(), "exit-from-fence", &[&variables[..], &late].concat()).output().expect("started");
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
    // Cray's order to abort has no place for a code: that of the process ends the job.
    let output = rank(cray.path(), "abort", &variables).output().expect("started");
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(said(&output), "gasworks: rank 0: no more, really\n");
}

fn taken_over() {
    let dir = directory();
    // Whatever there is besides: what the program says comes first.
    let output =
        rank(dir.path(), "take-over", &[("PMI_SIZE", "4"), ("PMI_FD", "77")]).output().expect("started");
    assert_eq!(
        said(&output),
        "rank 0 of 1: true\nthe program's own abort: 42, no more\ngasworks: rank 0: no more\n"
    );
    assert_eq!(output.status.code(), Some(42));
}

fn wishes() {
    let dir = directory();
    let run =
        |variables: &[(&str, &str)]| said(&rank(dir.path(), "rank", variables).output().expect("started"));
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
}

fn nested() {
    let dir = directory();
    let run = |variables: &[(&str, &str)]| {
        let outer = [("PMI_FD", "77"), ("PMI_RANK", "3")];
        let output = rank(dir.path(), "rank", &[&outer, variables].concat()).output();
        said(&output.expect("started"))
    };
    // The descriptor is not open in this process, so it is that of a launcher further out, if there is another way.
    let nothing = run(&[]);
    assert!(
        nothing.starts_with("error: read PMI_FD: PMI_FD=77 is no connection to the launcher ("),
        "{nothing}"
    );
    let port = run(&[("PMI_PORT", "127.0.0.1:1"), ("PMI_ID", "0")]);
    assert!(port.starts_with("error: connect to the launcher: PMI_PORT=127.0.0.1:1: "), "{port}");
    std::fs::write(dir.path().join("libpmix.so.2"), b"no library").expect("written");
    std::fs::write(dir.path().join("libpmix.so"), b"no library").expect("written");
    let pmix = [("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0")];
    let taken = run(&pmix);
    assert!(taken.starts_with("error: open the library: libpmix.so.2"), "{taken}");
    // What is asked for is a descriptor or a port, and PMIx is neither.
    let refused = run(&[&pmix[..], &[("GASWORKS_BOOTSTRAP", "pmi2")]].concat());
    assert!(
        refused.starts_with("error: read PMI_FD: PMI_FD=77 is no connection to the launcher ("),
        "{refused}"
    );
}
