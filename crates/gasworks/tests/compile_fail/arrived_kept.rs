//! What has arrived is gone when its sink returns.

use gasworks_core::Wire;
use gasworks_sync::Seq;

fn poll(wire: &dyn Wire<Seq>) {
    let mut kept = None;
    let _ = wire.poll(1, &mut |arrived| kept = Some(arrived.payload));
    kept.map(|payload| payload.read(&mut []));
}

fn main() {
    let _ = poll;
}
