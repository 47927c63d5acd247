//! Bytes that are shared are nobody's alone.

fn main() {
    let mut bytes = [0; 8];
    let shared = gasworks_sync::VolatileSlice::from_mut(&mut bytes);
    bytes[0] = 1;
    shared.write(&[2; 8]);
}
