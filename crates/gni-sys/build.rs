//! Compiles what a site's header of UDREG says, where `GASWORKS_UDREG_INCLUDE` names its directory: the header was never public, so nothing
//! here knows its layout beforehand.

const WHERE: &str = "GASWORKS_UDREG_INCLUDE";

#[allow(clippy::disallowed_methods)] // what cargo says to a build script is no setting of the library
fn main() {
    println!("cargo::rustc-check-cfg=cfg(udreg_header)");
    println!("cargo::rerun-if-env-changed={WHERE}");
    println!("cargo::rerun-if-changed=src/udreg_layout.c");
    let Some(dirs) = std::env::var_os(WHERE).filter(|dirs| !dirs.is_empty()) else { return };
    let dirs: Vec<_> = std::env::split_paths(&dirs).collect();
    // What the header includes is in these, too. One that is not there would be built for each time.
    dirs.iter()
        .filter(|dir| dir.exists())
        .for_each(|dir| println!("cargo::rerun-if-changed={}", dir.display()));
    if !dirs.iter().any(|dir| dir.join("udreg_pub.h").is_file()) {
        println!(
            "cargo::error={WHERE} says {dirs:?}, where there is no udreg_pub.h: it names the directory of the site's header"
        );
        return;
    }
    let mut build = cc::Build::new();
    build.flag("-Werror=incompatible-pointer-types").flag("-Werror=int-conversion");
    match build.file("src/udreg_layout.c").includes(&dirs).try_compile("gasworks_udreg_layout") {
        Ok(()) => println!("cargo::rustc-cfg=udreg_header"),
        Err(why) => println!(
            "cargo::error=the udreg_pub.h of {WHERE} lacks what is needed of UDREG, or another header; without {WHERE} the library is built \
             for none: {why}"
        ),
    }
}
