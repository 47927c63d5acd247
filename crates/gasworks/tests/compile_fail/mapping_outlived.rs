//! The bytes of a mapping are lent as long as it is there.

fn main() {
    let bytes = gasworks_os::memfd::create("outlived", 8).unwrap().map().unwrap().bytes();
    bytes.write(&[1; 8]);
}
