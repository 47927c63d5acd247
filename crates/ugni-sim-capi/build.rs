//! How the library is linked.

fn main() {
    // A rank's keeper and its hooks stay when a client unloads what it has opened: so must their code.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
