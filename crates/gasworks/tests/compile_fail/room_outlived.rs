//! Bytes of the library's own memory are lent as long as that is there.

fn main() {
    let bytes = gasworks_sync::Room::zeroed(8).unwrap().bytes(8);
    bytes.write(&[1; 8]);
}
