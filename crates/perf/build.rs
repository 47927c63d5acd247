//! Compiles the measurements of the machine itself, which are in C.

fn main() {
    let sources = ["line", "stream", "memory", "meet", "table"].map(|name| format!("raw/{name}.c"));
    println!("cargo:rerun-if-changed=raw");
    // Optimised whatever the profile: a limit that an unoptimised build sets is none.
    cc::Build::new().files(sources).opt_level(2).warnings(true).extra_warnings(true).compile("gasperf_raw");
}
