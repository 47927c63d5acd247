//! Who borrows what a raw slice names promises that it is there.

fn main() {
    let bytes = gasworks_sync::RawSlice::new(8 as *mut u8, 8);
    bytes.borrow().read(&mut [0; 8]);
}
