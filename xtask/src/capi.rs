//! The C interface laid out as its clients expect to find it: headers, and for each thread mode a library that is one object, of which
//! nothing but the public names can be seen.

use crate::exec::Cmd;
use crate::files::{copy, copy_tree};
use crate::world::OPTIMISED;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The thread modes, as libraries and macros spell them.
pub const MODES: [(&str, &str); 3] =
    [("seq", "GASNET_SEQ"), ("parsync", "GASNET_PARSYNC"), ("par", "GASNET_PAR")];
/// What public names begin with.
const PUBLIC: [&str; 4] = ["gex_", "gasnet_", "gasnett_", "gasworks_"];
/// What a linker wants besides the library.
pub const SYSTEM: &str = "-lpthread -ldl -lm";
/// The networks of an installation, as GASNet calls them: of each there are headers and libraries.
pub const CONDUITS: [&str; 3] = ["smp", "aries", "gemini"];
/// Where shared libraries are, below the folder of the others: a linker that finds both would take them, and the program would have to
/// be told where they are when it runs.
pub const SHARED: &str = "gasworks";
/// The number in the name by which objects and libraries link: the headers' `GASWORKS_INTERFACE`.
const INTERFACE: u32 = 1;

/// What builds the libraries of all modes, and the tools.
pub fn build() -> Cmd {
    Cmd::cargo(OPTIMISED).limit(900)
}

/// Where that leaves them in this tree.
pub fn built() -> PathBuf {
    crate::root().join("target/release")
}

/// By which name objects that were compiled for a network and a mode link with their library.
pub fn linked_name(conduit: &str, mode: &str) -> String {
    format!("gasworks_linked_{}_{mode}_{INTERFACE}", conduit.to_uppercase())
}

/// The names that a symbol table has, of those defined there for others.
fn defined(table: &str) -> BTreeSet<String> {
    let symbol = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, _, _, _, "GLOBAL" | "WEAK", visibility, section, name] = words.as_slice() else {
            return None;
        };
        (*section != "UND" && *visibility != "HIDDEN").then(|| (*name).to_owned())
    };
    table.lines().filter_map(symbol).collect()
}

/// Whether others are to see a name.
pub fn is_public(name: &str) -> bool {
    PUBLIC.iter().any(|public| name.starts_with(public))
}

/// The names that others see of a library or object.
pub fn names(file: &Path) -> Result<BTreeSet<String>> {
    // What `nm` does to objects with the compiler's own sections in them depends on which plugins are there.
    Ok(defined(&Cmd::new("readelf").words("-sW").arg(file).read()?))
}

/// Lays out `include` and `lib` below a folder for these networks, of what was built in another, as `run` runs what that takes.
pub fn lay_out(
    to: &Path,
    built: &Path,
    conduits: &[&str],
    mut run: impl FnMut(&Cmd) -> Result<()>,
) -> Result<()> {
    let (include, lib) = (to.join("include"), to.join("lib"));
    for part in ["capi", "tools-capi"] {
        copy_tree(&crate::root().join(format!("crates/{part}/include")), &include)?;
    }
    for other in CONDUITS.iter().filter(|other| !conduits.contains(other)) {
        std::fs::remove_dir_all(include.join(format!("{other}-conduit")))
            .with_context(|| format!("leaving out {other}"))?;
    }
    std::fs::create_dir_all(lib.join(SHARED))?;
    for (mode, _) in MODES {
        let archive = built.join(format!("libgasworks_gasnet_{mode}.a"));
        for conduit in conduits {
            let any = format!("gasworks_linked_{mode}_{INTERFACE}");
            let own = (any, linked_name(conduit, mode));
            let library = format!("gasnet-{conduit}-{mode}");
            libraries(&archive, &lib, &library, mode, Some(own), &mut run)?;
        }
    }
    for mode in ["seq", "par"] {
        let library = format!("gasnet_tools-{mode}");
        libraries(&built.join("libgasworks_tools.a"), &lib, &library, mode, None, &mut run)?;
    }
    copy(&crate::root().join("LICENSE-MIT"), &to.join("LICENSE-MIT"))?;
    copy(&crate::root().join("LICENSE-APACHE"), &to.join("LICENSE-APACHE"))
}

/// Makes a library of one object that shows public names alone, and the same as a shared one: of those that say for which mode objects
/// of the tools are, its own; and one under `another` name.
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
    let [list, roots, script, all] = ["names", "roots", "versions", "all.o"].map(of);
    let one = of(&format!("{library}.o"));
    let further = another.as_ref().map_or("", |(_, own)| own);
    std::fs::write(&list, format!("{}\n{further}", public.join("\n"))).context("the list of public names")?;
    let global: String = public.iter().map(|name| format!("    {name};\n")).collect();
    let global = format!(
        "GASWORKS_{INTERFACE} {{\n  global:\n{global}    gasworks_linked_*;\n  local:\n    *;\n}};\n"
    );
    std::fs::write(&script, global).context("the versions of public names")?;
    // Of the archive what these need. Groups, of which a linker keeps one of several libraries, would keep what is not to be seen there.
    let needed: String = public.iter().map(|name| format!("-u {name}\n")).collect();
    std::fs::write(&roots, needed).context("the list of what is needed")?;
    let link = Cmd::new("ld").words("-r --gc-sections --force-group-allocation");
    run(&link.arg(format!("@{}", roots.display())).arg("-o").arg(&all).arg(archive))?;
    let hide = Cmd::new("objcopy").words("--strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd");
    // The tools are in the other libraries, too, and these come first.
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

/// A compiler with what a program of a mode over a network is compiled with, against what was laid out there.
pub fn compiler(cc: &str, conduit: &str, define: &str, laid_out: &Path) -> Cmd {
    let include = |folder: &str| format!("-I{}", laid_out.join(folder).display());
    Cmd::new(cc)
        .words("-Wall -Wextra -Werror -D_GNU_SOURCE=1")
        .arg(format!("-D{define}"))
        .arg(include("include"))
        .arg(include(&format!("include/{conduit}-conduit")))
}

/// What makes a program of it: the library of a mode over a network, of what was laid out there.
pub fn linking(compile: Cmd, conduit: &str, mode: &str, laid_out: &Path) -> Cmd {
    let lib = format!("-L{}", laid_out.join("lib").display());
    compile.arg(lib).arg(format!("-lgasnet-{conduit}-{mode}")).words(SYSTEM).limit(120)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_others_are_found() {
        let table = "Symbol table '.symtab' contains 5 entries:\n   Num:    Value          Size Type    Bind   Vis      Ndx Name\n\
                     1: 0000000000000000    14 FUNC    GLOBAL DEFAULT  168 gex_a\n\
                     2: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND malloc\n\
                     3: 0000000000000000     8 OBJECT  LOCAL  DEFAULT    9 gex_b\n\
                     4: 0000000000000000     8 OBJECT  WEAK   DEFAULT    9 other\n";
        let found = defined(table);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["gex_a", "other"]);
        assert!(is_public("gex_a") && !is_public("other"));
    }
}
