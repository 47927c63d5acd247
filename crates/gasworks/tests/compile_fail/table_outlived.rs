//! What is found in a table of peers is lent as long as that is there.

use gasworks_memory::{RegionTable, Rights};
use gasworks_sync::VolatileSlice;

fn reached(table: RegionTable) -> VolatileSlice<'static> {
    table.reach(0, 0, 8, Rights::all()).unwrap().unwrap()
}

fn opened(table: &RegionTable) -> VolatileSlice<'static> {
    table.rows().open(0, 0, 8).unwrap()
}

fn main() {
    let _ = (reached, opened);
}
