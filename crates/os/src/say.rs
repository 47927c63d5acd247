//! Last words.

use std::io::Write;

/// Writes `text` and the end of its line to standard error, in one piece as far as the system allows.
///
/// That is a best effort: where standard error is full or closed there is nobody to tell, and what is going on
/// matters more than its description (`eprintln!` would panic).
pub fn say(text: &str) {
    let line = format!("{}\n", text.trim_end_matches('\n'));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
