//! A raw slice names bytes and gives no access to them.

fn main() {
    let bytes = gasworks_sync::RawSlice::new(8 as *mut u8, 8);
    bytes.read(&mut [0; 8]);
}
