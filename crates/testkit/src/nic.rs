//! What jobs over the software NIC are started with.

use crate::command::Cmd;
use std::path::Path;

/// The setting that says how many ranks share memory; with 1, all traffic goes over the NIC.
pub const TOGETHER: &str = "GASNET_SUPERNODE_MAXSIZE";

/// A job whose ranks all talk over uGNI, by the software NIC that is laid out at `prefix` and checks its client strictly
/// (`Fixture::Nic` gives such a prefix).
pub fn dressed(job: Cmd, prefix: &Path) -> Cmd {
    let strict = job.env("GASWORKS_NETWORK", "gni").env(TOGETHER, "1").env("GASWORKS_UGNI_STRICT", "1");
    strict.env("GASWORKS_BOOTSTRAP", "cray").env("LD_LIBRARY_PATH", prefix.join("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_finds_the_library_and_uses_it_alone() {
        let shown = dressed(Cmd::new("true"), Path::new("/nic")).shown();
        for set in ["LD_LIBRARY_PATH=/nic/lib", "GASWORKS_NETWORK=gni", "GASNET_SUPERNODE_MAXSIZE=1"] {
            assert!(shown.split(' ').any(|word| word == set), "{shown}");
        }
    }
}
