//! What is found in a table of peers is lent as long as that is there.

use gasworks_memory::PeerTable;
use gasworks_sync::VolatileSlice;

fn reached(table: PeerTable) -> VolatileSlice<'static> {
    table.reach(0, 0, 8).unwrap().unwrap()
}

fn opened(table: &PeerTable) -> VolatileSlice<'static> {
    table.rows().open(0, 0, 8).unwrap()
}

fn main() {
    let _ = (reached, opened);
}
