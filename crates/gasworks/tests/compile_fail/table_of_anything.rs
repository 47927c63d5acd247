//! Who makes a table of peers promises that their segments are mapped.

use gasworks_memory::{Peer, PeerFlags, RegionTable};

fn main() {
    let mapped = gasworks_sync::RawSlice::new(8 as *mut u8, 8);
    let peer = Peer { mapped, len: 8, remote_base: 0, key: Vec::new(), flags: PeerFlags::MAPPED };
    let _ = RegionTable::new(vec![peer], std::sync::Arc::new(()));
}
