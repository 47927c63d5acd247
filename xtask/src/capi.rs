//! Lays out the C interface as an installation has it: the headers, and for each conduit and thread mode a library of one
//! object that exports public names alone.

use crate::world::OPTIMISED;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::Cmd;
use gasworks_testkit::c::{INTERFACE, SHARED, is_public, linked_name, names, one_object};
use gasworks_testkit::files::{copy, copy_tree, newest};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use gasworks_testkit::c::{CONDUITS, MODES, SYSTEM, compiler, linking};

/// The command that builds the libraries of all modes, and the tools.
pub fn build() -> Cmd {
    Cmd::cargo(OPTIMISED).limit(900)
}

/// The folder in which that command leaves them.
pub fn built() -> PathBuf {
    gasworks_testkit::programs::target().join("release")
}

/// When something was changed last of what [`lay_out`] reads but the licences, this program among it.
pub fn changed(built: &Path) -> Result<SystemTime> {
    let mut all = vec![std::env::current_exe().context("this program")?, built.join(TOOLS)];
    all.extend(MODES.map(|(mode, _)| built.join(archive(mode))));
    all.extend(HEADERS.map(headers));
    all.iter().try_fold(SystemTime::UNIX_EPOCH, |last, path| Ok(last.max(newest(path)?)))
}

/// The library of a mode as cargo builds it.
fn archive(mode: &str) -> String {
    format!("libgasworks_gasnet_{mode}.a")
}

/// The tools as cargo builds them.
const TOOLS: &str = "libgasworks_tools.a";

/// The packages that have headers.
const HEADERS: [&str; 2] = ["capi", "tools-capi"];

fn headers(package: &str) -> PathBuf {
    crate::root().join(format!("crates/{package}/include"))
}

/// Lays out `include` and `lib` in the folder `to` for these conduits, from the archives in the folder `built`. `run` runs the
/// commands that this takes.
pub fn lay_out(
    to: &Path,
    built: &Path,
    conduits: &[&str],
    mut run: impl FnMut(&Cmd) -> Result<()>,
) -> Result<()> {
    let (include, lib) = (to.join("include"), to.join("lib"));
    for package in HEADERS {
        copy_tree(&headers(package), &include)?;
    }
    for other in CONDUITS.iter().filter(|other| !conduits.contains(other)) {
        std::fs::remove_dir_all(include.join(format!("{other}-conduit")))
            .with_context(|| format!("leaving out {other}"))?;
    }
    std::fs::create_dir_all(lib.join(SHARED))?;
    for (mode, _) in MODES {
        let archive = built.join(archive(mode));
        for conduit in conduits {
            let any = format!("gasworks_linked_{mode}_{INTERFACE}");
            let own = (any, linked_name(conduit, mode));
            let library = format!("gasnet-{conduit}-{mode}");
            libraries(&archive, &lib, &library, mode, Some(own), &mut run)?;
        }
    }
    for mode in ["seq", "par"] {
        let library = format!("gasnet_tools-{mode}");
        libraries(&built.join(TOOLS), &lib, &library, mode, None, &mut run)?;
    }
    copy(&crate::root().join("LICENSE-MIT"), &to.join("LICENSE-MIT"))?;
    copy(&crate::root().join("LICENSE-APACHE"), &to.join("LICENSE-APACHE"))
}

/// Makes a static library of one object, and a shared one, from an archive. Both export its public names. Of the names
/// `gasnett_linkconfig_*`, each of which stands for a mode of the tools, they export those of `mode`. `another` is a name of the
/// archive and the name under which the libraries export it.
fn libraries(
    archive: &Path,
    lib: &Path,
    library: &str,
    mode: &str,
    another: Option<(String, String)>,
    run: &mut impl FnMut(&Cmd) -> Result<()>,
) -> Result<()> {
    let threads = if mode == "seq" { "SEQ" } else { "PAR" };
    let is_own = |name: &str| {
        let tools = name.strip_prefix("gasnett_linkconfig_");
        is_public(name) && tools.is_none_or(|of| of.starts_with(threads))
    };
    let public: Vec<_> = names(archive)?.into_iter().filter(|name| is_own(name)).collect();
    ensure!(public.len() > 50, "{} has {} public names", archive.display(), public.len());
    let of = |name: &str| lib.join(name);
    let [list, script, all, roots] = ["names", "versions", "all.o", "all.roots"].map(of);
    let one = of(&format!("{library}.o"));
    let further = another.as_ref().map_or("", |(_, own)| own);
    std::fs::write(&list, format!("{}\n{further}", public.join("\n"))).context("the list of public names")?;
    let global: String = public.iter().map(|name| format!("    {name};\n")).collect();
    let global = format!(
        "GASWORKS_{INTERFACE} {{\n  global:\n{global}    gasworks_linked_*;\n  local:\n    *;\n}};\n"
    );
    std::fs::write(&script, global).context("the versions of public names")?;
    // The public names and what they need are taken from the archive. Section groups are dissolved: of a group that two libraries
    // have, a linker keeps one, and its names are hidden in the library that it keeps.
    run(&one_object(archive, &public, &all)?)?;
    let hide = Cmd::new("objcopy").words("--strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd");
    // The libraries of the conduits contain the tools too; where a program links with both, theirs take precedence.
    let change = match &another {
        Some((any, own)) => format!("--redefine-sym={any}={own}"),
        None => format!("--weaken-symbols={}", list.display()),
    };
    run(&hide.arg(change).arg(format!("--keep-global-symbols={}", list.display())).arg(&all).arg(&one))?;
    let archive = lib.join(format!("lib{library}.a"));
    let _ = std::fs::remove_file(&archive);
    run(&Cmd::new("ar").arg("rcs").arg(&archive).arg(&one))?;
    let (plain, soname) = (format!("lib{library}.so"), format!("lib{library}.so.{INTERFACE}"));
    let shared = lib.join(SHARED);
    run(&Cmd::new("cc")
        .arg("-shared")
        .arg(format!("-Wl,-soname,{soname}"))
        .arg(format!("-Wl,--version-script={}", script.display()))
        .arg("-o")
        .arg(shared.join(&soname))
        .arg(&one)
        .words(SYSTEM))?;
    let _ = std::fs::remove_file(shared.join(&plain));
    std::os::unix::fs::symlink(&soname, shared.join(&plain)).with_context(|| format!("linking {plain}"))?;
    for done in [list, roots, script, all, one] {
        std::fs::remove_file(&done).with_context(|| format!("removing {}", done.display()))?;
    }
    Ok(())
}
