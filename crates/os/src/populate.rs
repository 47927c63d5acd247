//! Backing shared memory before it is used, so that what is missing is an error now and not a fault later.

use crate::sys::{self, Advice};
use crate::{OsError, Result, memfd};
use gasworks_sync::VolatileSlice;

/// How much is asked for at once: between two pieces progress can be told.
const PIECE: usize = 64 << 20;

/// Backs all pages of `bytes`, which are a mapping of a memory file, with memory; their contents stay as they are.
/// `tell` hears how many bytes are done, now and then.
///
/// # Errors
/// There is not enough memory. (A control group that is short may instead have the kernel kill the process; a kernel
/// before 5.14 raises a fault.)
pub fn populate(bytes: VolatileSlice<'_>, mut tell: impl FnMut(usize)) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let len = PIECE.min(bytes.len() - done);
        let Some(piece) = bytes.slice(done, len) else { break };
        match sys::advise(piece.raw(), Advice::Populate) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            // Older kernels do not know this advice.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => touch(piece),
            Err(e) => {
                let operand = format!("bytes {done} to {} of {} with memory", done + len, bytes.len());
                return Err(OsError::new("back", operand, e));
            }
        }
        done += len;
        tell(done);
    }
    Ok(())
}

/// Writes to every page without changing it, whoever else may be writing.
fn touch(bytes: VolatileSlice<'_>) {
    for at in (0..bytes.len()).step_by(memfd::page_size()) {
        let rest = bytes.len() - at;
        bytes.slice(at, rest).into_iter().for_each(memfd::touch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa;

    fn all_there(bytes: VolatileSlice<'_>) -> bool {
        let page = memfd::page_size();
        (0..bytes.len())
            .step_by(page)
            .all(|at| bytes.slice(at, 1).is_some_and(|page| numa::node_of(page.raw()).is_ok()))
    }

    #[test]
    fn every_page_is_backed_and_no_byte_changes() {
        let len = PIECE + (1 << 20);
        let file = memfd::create("populated", len).expect("a file");
        let map = file.map().expect("a map");
        let bytes = map.bytes();
        bytes.slice(5000, 5).expect("inside").write(b"hello");
        let mut told = Vec::new();
        populate(bytes, |done| told.push(done)).expect("populated");
        assert_eq!(told, [PIECE, len]);
        let mut found = [0; 5];
        bytes.slice(5000, 5).expect("inside").read(&mut found);
        assert_eq!(&found, b"hello");
        assert!(all_there(bytes));
    }

    #[test]
    fn touching_does_the_same() {
        let file = memfd::create("touched", 1 << 20).expect("a file");
        let map = file.map().expect("a map");
        let bytes = map.bytes();
        bytes.slice(0, 4).expect("inside").write(b"here");
        assert!(!all_there(bytes));
        touch(bytes);
        let mut found = [0; 4];
        bytes.read(&mut found);
        assert_eq!(&found, b"here");
        assert!(all_there(bytes));
    }
}
