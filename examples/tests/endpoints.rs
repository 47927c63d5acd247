//! Examples of connected endpoints.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const KV: &str = env!("CARGO_BIN_EXE_kv");

/// A command for a program whose endpoints lie in a directory of this test's.
fn command(program: &str, directory: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("TMPDIR", directory.path());
    command
}

#[test]
fn clients_come_and_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = command(KV, &directory, &["serve", "--clients", "5"]);
    let mut server = server.stdout(Stdio::piped()).spawn().expect("a server");
    let mut output = BufReader::new(server.stdout.take().expect("its output"));
    let mut uri = String::new();
    output.read_line(&mut uri).expect("its address");
    let uri = uri.trim();
    for (words, wanted) in [
        (&["set", "colour", "a light green"][..], "done\n"),
        (&["get", "colour"], "a light green\n"),
        (&["del", "colour"], "done\n"),
        (&["get", "colour"], "there is no such key\n"),
        (&["set", "sound", "loud"], "done\n"),
    ] {
        let words: Vec<&str> = [&[uri], words].concat();
        let ended = command(KV, &directory, &words).output().expect("a client");
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stdout), wanted);
    }
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("its last words");
    assert_eq!(rest, "served; 1 values are left\n");
    assert!(server.wait().expect("it ends").success());
    let nobody = command(KV, &directory, &[uri, "get", "colour"]).output().expect("a client");
    assert!(!nobody.status.success() && String::from_utf8_lossy(&nobody.stderr).contains("connect to sm://"));
}

#[test]
fn tasks_talk() {
    let directory = tempfile::tempdir().expect("a directory");
    let ended =
        command(env!("CARGO_BIN_EXE_chat"), &directory, &["--clients", "5"]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "5 clients have heard each other\n", "{ended:?}");
}
