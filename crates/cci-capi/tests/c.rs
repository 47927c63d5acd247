//! C programs: compiled with warnings as errors, linked with each form of the library, and run.

use gasworks_testkit::programs::Fixture;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A configuration with the other backend.
const BY_FIFO: &str = "[pipes]\ntransport = sm\nbackend = fifo\n";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = text_of(&output);
    assert!(output.status.success(), "{command:?}: {}: {text}", output.status);
    text
}

/// The libraries as the dev profile builds them: their directory.
fn libraries() -> PathBuf {
    Fixture::Debug.get().unwrap_or_else(|error| panic!("{error:#}"))
}

/// A directory in which programs are compiled and run, and which is their directory for temporary files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a program and links it with the static library, or the shared one.
    fn compile(&self, source_path: &str, is_shared: bool) -> Command {
        let (program, libraries) = (self.path().join("program"), libraries());
        let mut cc = Command::new("cc");
        cc.args("-std=c99 -pedantic -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g".split(' '));
        cc.arg("-I").arg(source("include")).arg(source(source_path)).arg("-o").arg(&program);
        match is_shared {
            true => cc.arg("-L").arg(&libraries).arg("-lcci"),
            false => cc.arg(libraries.join("libcci.a")),
        };
        run(cc.args(["-lpthread", "-ldl", "-lm"]));
        let mut program = Command::new(program);
        program.env("TMPDIR", self.path()).env("LD_LIBRARY_PATH", libraries);
        program.env_remove("CCI_CONFIG").env_remove("CCI_DEBUG");
        program
    }

    /// A configuration file.
    fn config(&self, text: &str) -> PathBuf {
        let path = self.path().join("config");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// The files that endpoints have left.
    fn left(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a directory").flatten() {
                match entry.file_type().expect("a type").is_dir() {
                    true => folders.push(entry.path()),
                    false => found.push(entry.path()),
                }
            }
        }
        found.retain(|path| !path.ends_with("program") && !path.ends_with("config"));
        found
    }
}

/// Runs a program of `tests/c` with both backends.
fn runs(name: &str) {
    for config in [None, Some(BY_FIFO)] {
        let place = Place::new();
        let mut program = place.compile(&format!("tests/c/{name}.c"), false);
        if let Some(text) = config {
            program.env("CCI_CONFIG", place.config(text));
        }
        assert_eq!(run(&mut program), format!("{name}: done\n"));
        // A killed process leaves its directory to whoever comes next.
        if name != "processes" {
            assert_eq!(place.left(), Vec::<PathBuf>::new());
        }
    }
}

#[test]
fn structures_lie_as_the_header_says() {
    let place = Place::new();
    assert_eq!(run(&mut place.compile("tests/c/layout.c", false)), "layout: done\n");
    for (compiler, standards) in
        [("cc", &["c99", "c11", "gnu17"][..]), ("c++ -x c++", &["c++11", "c++17", "c++20"])]
    {
        for standard in standards {
            let mut words = compiler.split(' ');
            let mut check = Command::new(words.next().expect("a compiler"));
            check.args(words).arg(format!("-std={standard}"));
            check.args("-pedantic -Wall -Wextra -Werror -fsyntax-only -I".split(' ')).arg(source("include"));
            assert_eq!(run(check.arg(source("tests/c/layout.c"))), "", "{standard}");
        }
    }
}

#[test]
fn the_library_starts_and_ends() {
    let place = Place::new();
    for is_shared in [false, true] {
        assert_eq!(run(&mut place.compile("tests/c/library.c", is_shared)), "library: done\n");
        assert_eq!(place.left(), Vec::<PathBuf>::new());
    }
}

#[test]
fn messages_come_as_they_were_sent() {
    runs("messages");
}

#[test]
fn transfers_move_what_they_may() {
    runs("transfers");
}

#[test]
fn what_is_wrong_is_refused_and_harms_nothing() {
    runs("wrong");
}

#[test]
fn threads_use_one_endpoint() {
    runs("threads");
}

#[test]
fn processes_wait_by_poll_and_one_is_killed() {
    runs("processes");
}

#[test]
fn a_silent_peer_is_told_of_once() {
    runs("keepalive");
}

#[test]
fn devices_are_those_of_the_configuration_file() {
    let place = Place::new();
    let base = place.path().join("other");
    let text = format!(
        "# Devices\n[low]\ntransport = sm\npriority = 1\n[of another transport]\ntransport = tcp\npriority = x\n\
         [high]\ntransport = sm # this one\npriority = 90\npath = {}\nmax_send_size = 4096\npid = 7\ncolour = blue\n\
         [middle]\ntransport = sm\ndefault = 1\nid = 5\n",
        base.display()
    );
    let mut program = place.compile("tests/c/library.c", false);
    let said = run(program.arg("show").env("CCI_CONFIG", place.config(&text)));
    let lines: Vec<&str> = said.lines().collect();
    let [init, high, middle, low, default] = lines.as_slice() else { panic!("{said}") };
    assert_eq!((*init, *default), ("init: 0", "default: middle"));
    let of_high = format!(
        "high sm up=1 max=4096: path={0} max_send_size=4096 pid=7 colour=blue at sm://{0}/7/0",
        base.display()
    );
    assert_eq!(*high, of_high);
    assert!(
        middle.starts_with("middle sm up=1 max=65536: id=5 at sm://") && middle.ends_with("/5"),
        "{middle}"
    );
    assert!(low.starts_with("low sm up=1 max=65536: at sm://"), "{low}");
}

#[test]
fn a_wrong_configuration_is_told_with_file_and_line() {
    let place = Place::new();
    let config = place.config("");
    let path = config.display().to_string();
    for (text, status, words) in [
        ("[a]\ntransport = sm\npriority = 200\n", 1, ":3: priority = 200: wanted a number from 0 to 100"),
        ("[a]\ntransport = sm\nwhat\n", 1, ":3: \"what\": wanted KEY = VALUE or [NAME]"),
        ("[a]\ntransport = tcp\n", 8, ": no device has the transport sm"),
        ("", 8, ": no device has the transport sm"),
    ] {
        place.config(text);
        let mut program = place.compile("tests/c/library.c", false);
        let output = program.arg("show").env("CCI_CONFIG", &config).output().expect("it starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("init: {status}\n"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("cci: {path}{words}\n"));
    }
    let mut program = place.compile("tests/c/library.c", false);
    let output = program.arg("show").env("CCI_CONFIG", "/no/such/file").output().expect("it starts");
    let said = text_of(&output);
    assert!(said.starts_with("init: 8\ncci: cannot read the file /no/such/file (CCI_CONFIG): "), "{said}");
    // Why there is no endpoint is said to who asks for it.
    let mut program = place.compile("tests/c/library.c", false);
    let nowhere = place.config("[a]\ntransport = sm\npath = /proc/cci\n");
    let output =
        program.arg("show").env("CCI_CONFIG", nowhere).env("CCI_DEBUG", "1").output().expect("it starts");
    let said = text_of(&output);
    assert!(said.contains("cci_create_endpoint: cannot make directory \"/proc/cci/"), "{said}");
}

/// A program that is killed when the test ends in some other way.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn clients_of_a_key_value_server_come_and_go() {
    let place = Place::new();
    let mut serve = place.compile("../../examples/c/kv.c", false);
    let mut server = Running(serve.arg("serve").stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut uri = String::new();
    let output = server.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut uri).expect("an address");
    let client = |words: &[&str]| {
        let mut client = Command::new(serve.get_program());
        client.env("TMPDIR", place.path()).env_remove("CCI_CONFIG").arg(uri.trim()).args(words);
        client
    };
    for nth in 0..20 {
        run(&mut client(&["put", &format!("key {nth}"), &format!("value {nth}")]));
    }
    assert_eq!(run(&mut client(&["get", "key 7"])), "value 7\n");
    assert_eq!(run(&mut client(&["put", "key 7", "another"])), "");
    assert_eq!(run(&mut client(&["get", "key 7"])), "another\n");
    run(&mut client(&["delete", "key 7"]));
    let missing = client(&["get", "key 7"]).output().expect("it starts");
    assert_eq!((missing.status.code(), &*text_of(&missing)), (Some(1), "kv: key 7: no such key\n"));
    let several: Vec<Child> = (0..8)
        .map(|nth| {
            client(&["get", &format!("key {}", nth + 8)]).stdout(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    for (nth, child) in several.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(text_of(&output), format!("value {}\n", nth + 8));
    }
    run(&mut client(&["stop"]));
    assert!(server.0.wait().expect("it ends").success());
    assert_eq!(place.left(), Vec::<PathBuf>::new());
    let nobody = client(&["get", "key 1"]).output().expect("it starts");
    assert!(!nobody.status.success(), "{}", text_of(&nobody));
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(source("include/cci.h")).expect("the header");
    let names = header.split("CCI_DECLSPEC ").skip(1).filter_map(|rest| {
        let name = rest.split('(').next()?.rsplit([' ', '*']).next()?;
        name.starts_with("cci_").then(|| name.to_owned())
    });
    names.collect()
}

/// Every function of the header is in the shared library, and nothing else is.
#[test]
fn the_library_exports_what_the_header_declares() {
    assert_eq!(declared().len(), 21);
    let table = run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libcci.so")));
    let exported: BTreeSet<String> =
        table.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect();
    assert_eq!(exported, declared());
}
