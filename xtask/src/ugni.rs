//! `cargo xtask ugni-sim`: the software NIC laid out as its clients expect to find the genuine libraries; and
//! `cargo xtask ugni-clock`: its clock.

use anyhow::{Context, Result};
use clap::Args;
use gasworks_testkit::Cmd;
use gasworks_testkit::files::{copy, copy_tree};
use gasworks_testkit::programs::target;
use std::path::{Path, PathBuf};

/// The names under which clients link the library.
const NAMES: [&str; 6] = ["ugni", "udreg", "pmi", "pmi2", "alpslli", "alpsutil"];
/// The file that all of them are links to.
const LIBRARY: &str = "libgasworks_ugni_sim_c";

/// Where it goes.
#[derive(Args)]
pub struct UgniArgs {
    /// The folder that gets lib, include and lib/pkgconfig
    #[arg(long, default_value = "target/ugni-sim")]
    prefix: PathBuf,
}

/// What the clock is asked.
#[derive(Args)]
pub struct ClockArgs {
    /// On the machines with this chip: aries or gemini
    #[arg(long, default_value = "aries")]
    chip: String,
    /// Print what the model gives beside what was published, instead of a run's times
    #[arg(long)]
    curve: bool,
    /// Print when each process would have come to the marks that it has made, in nanoseconds
    #[arg(long, conflicts_with = "curve")]
    marks: bool,
    /// What the processes of a run have written where `GASWORKS_UGNI_TRACE` said
    traces: Vec<PathBuf>,
}

/// Prints what the clock says.
pub fn clock(args: &ClockArgs) -> Result<()> {
    // Built as all programs are: alone it would have dependencies with other features, which are built once more.
    Cmd::cargo("build --quiet --release --workspace --exclude xtask --bin ugni-clock").limit(900).show()?;
    let run = Cmd::new(target().join("release/ugni-clock")).arg(&args.chip);
    let run = if args.curve { run.arg("--curve") } else { run };
    let run = if args.marks { run.arg("--marks") } else { run };
    args.traces.iter().fold(run, |run, trace| run.arg(trace)).limit(900).show()
}

/// Builds it, lays it out, and says how to use it.
pub fn run(args: &UgniArgs) -> Result<()> {
    let prefix = crate::root().join(&args.prefix);
    build().show()?;
    lay_out(&prefix, &target().join("release"), &prefix)?;
    println!("libraries, headers and cray-*.pc are in {}; to use them:", prefix.display());
    println!("  export PKG_CONFIG_PATH={0}/lib/pkgconfig LD_LIBRARY_PATH={0}/lib", prefix.display());
    Ok(())
}

/// The command that builds the library.
pub fn build() -> Cmd {
    Cmd::cargo("build --release -p gasworks-ugni-sim-capi").limit(900)
}

/// Lays out what that command left in the folder `built`: `lib`, `include` and `lib/pkgconfig` in the folder `to`, for use below
/// `prefix`.
pub fn lay_out(to: &Path, built: &Path, prefix: &Path) -> Result<()> {
    let own = crate::root().join("crates/ugni-sim-capi");
    let (lib, pkgconfig) = (to.join("lib"), to.join("lib/pkgconfig"));
    std::fs::create_dir_all(&pkgconfig).with_context(|| format!("making {}", pkgconfig.display()))?;
    for kind in ["so", "a"] {
        let file = format!("{LIBRARY}.{kind}");
        copy(&built.join(&file), &lib.join(&file))?;
        for name in NAMES {
            link(&file, &lib.join(format!("lib{name}.{kind}")))?;
        }
    }
    for name in NAMES {
        link(&format!("{LIBRARY}.so"), &lib.join(format!("lib{name}.so.0")))?;
    }
    copy_tree(&own.join("include"), &to.join("include"))?;
    for entry in std::fs::read_dir(&own)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(file) = name.strip_suffix(".in").filter(|file| file.ends_with(".pc")) else { continue };
        let text = std::fs::read_to_string(entry.path())?;
        std::fs::write(pkgconfig.join(file), module(&text, &prefix.display().to_string()))?;
    }
    Ok(())
}

/// A file of pkg-config's for use below a prefix. A shell reads what pkg-config says of one with blanks.
fn module(template: &str, prefix: &str) -> String {
    let quote = if prefix.contains(' ') { "\"" } else { "" };
    let mut text = template.replace("@prefix@", prefix).replace("@version@", env!("CARGO_PKG_VERSION"));
    for folder in ["-I${includedir}", "-L${libdir}"] {
        let (option, name) = folder.split_at(2);
        text = text.replace(folder, &format!("{option}{quote}{name}{quote}"));
    }
    text
}

fn link(to: &str, at: &Path) -> Result<()> {
    let _ = std::fs::remove_file(at);
    std::os::unix::fs::symlink(to, at).with_context(|| format!("linking {}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_say_everything_from_their_prefix_on() {
        const TEMPLATE: &str =
            "prefix=@prefix@\nVersion: @version@\nCflags: -I${includedir}\nLibs: -L${libdir} -lugni\n";
        let plain = module(TEMPLATE, "/opt/a");
        assert!(plain.contains("prefix=/opt/a\n") && plain.contains("-I${includedir}\n"), "{plain}");
        let quoted = module(TEMPLATE, "/opt/a b");
        assert!(
            quoted.contains("-I\"${includedir}\"\n") && quoted.contains("-L\"${libdir}\" -l"),
            "{quoted}"
        );
    }
}
