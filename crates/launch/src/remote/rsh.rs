//! The remote command: anything that is called `CMD HOST COMMAND...`, such as `ssh`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use gasworks_os::process::Exit;
use nix::sys::signal::SigSet;

use super::plan::{Plan, Ticket};
use crate::spawn;

/// Splits a command into words at blanks; quotes and backslashes keep them together, as in a shell.
pub(crate) fn words(text: &str) -> anyhow::Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let (mut quote, mut escaped) = (None, false);
    for &byte in text.as_bytes() {
        match (quote, byte) {
            _ if escaped => {
                word.get_or_insert_default().push(byte);
                escaped = false;
            }
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(mark), _) if mark == byte => quote = None,
            (None, b' ' | b'\t' | b'\n') => words.extend(word.take().map(OsString::from_vec)),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    ensure!(quote.is_none() && !escaped, "{text:?} ends within a quotation");
    words.extend(word.map(OsString::from_vec));
    ensure!(!words.is_empty(), "{text:?} holds no command");
    Ok(words)
}

/// A word as a shell reads it: remote commands put words together and give them to one.
pub(crate) fn quoted(word: &OsStr) -> OsString {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(b);
    if !word.is_empty() && word.as_bytes().iter().all(plain) {
        return word.to_owned();
    }
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

/// A command as one would type it.
pub(crate) fn typed(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word).to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// What to do about an agent that did not come: its remote command has ended so, or has not yet. It was started `here`,
/// which is empty where gasrun itself is. Of any other end the agent says more.
pub(crate) fn advice(plan: &Plan, host: &str, exit: Option<Exit>, here: &str) -> String {
    match exit {
        // A shell's codes for what cannot be executed, and what is not there.
        Some(Exit::Code(126 | 127)) => {
            format!(" (gasrun is to be there as {})", plan.agent.to_string_lossy())
        }
        // The code of ssh for what goes wrong with itself.
        None | Some(Exit::Code(255)) => {
            format!(" (to see by hand{here} why: {} {host} true)", typed(&plan.rsh))
        }
        Some(_) => String::new(),
    }
}

/// Starts the agent of a host.
pub(crate) fn start(plan: &Plan, host: &str, ticket: &Ticket, mask: SigSet) -> anyhow::Result<Child> {
    let name = plan.rsh.first().context("the remote command is empty")?;
    let mut command = Command::new(name);
    command
        .args(&plan.rsh[1..])
        .arg(host)
        .arg(quoted(&plan.agent))
        .arg("--agent")
        .stdin(Stdio::piped())
        // What a login prints there is nobody's output.
        .stdout(Stdio::null());
    let mut child = spawn::remote(command, mask)
        .with_context(|| format!("start {} for host {host}", name.to_string_lossy()))?;
    let mut input = child.stdin.take().context("the remote command has no standard input")?;
    match input.write_all(ticket.write().as_bytes()) {
        // It has ended already, which its end tells better.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("tell an agent who its parent is"),
        _ => Ok(child),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_splits_them() {
        let split = |text: &str| -> anyhow::Result<Vec<String>> {
            Ok(words(text)?.into_iter().map(|w| w.to_string_lossy().into_owned()).collect())
        };
        let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(split("ssh -o 'A b' x").expect("words"), list(&["ssh", "-o", "A b", "x"]));
        assert_eq!(split(r#"a\ b "c \" d" '' e"#).expect("words"), list(&["a b", "c \" d", "", "e"]));
        assert!(words("").is_err() && words("'a").is_err() && words("a\\").is_err());
        for word in ["/usr/bin/gasrun", "a b", "it's", "", "$(x)"] {
            let quoted = quoted(OsStr::new(word)).into_string().expect("text");
            let back: Vec<String> = split(&quoted).expect("a word");
            assert_eq!(back, [word]);
        }
    }
}
