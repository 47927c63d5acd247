//! The C interface laid out as its clients expect to find it: headers, and for each thread mode a library that is one object, of which
//! nothing but the public names can be seen.

use crate::exec::Cmd;
use crate::files::{copy, copy_tree};
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

/// What builds the libraries of all modes.
pub fn build() -> Cmd {
    let packages = MODES.map(|(mode, _)| format!("-p gasworks-capi-{mode}"));
    Cmd::cargo(&format!("build --release {}", packages.join(" "))).limit(900)
}

/// Where that leaves the library of a mode.
fn built(mode: &str) -> PathBuf {
    crate::root().join(format!("target/release/libgasworks_gasnet_{mode}.a"))
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

/// Lays out `include` and `lib` below a folder, as `run` runs what that takes.
pub fn lay_out(to: &Path, mut run: impl FnMut(&Cmd) -> Result<()>) -> Result<()> {
    let (include, lib) = (to.join("include"), to.join("lib"));
    copy_tree(&crate::root().join("crates/capi/include"), &include)?;
    std::fs::create_dir_all(&lib)?;
    for (mode, _) in MODES {
        let archive = built(mode);
        let public: Vec<_> = names(&archive)?.into_iter().filter(|name| is_public(name)).collect();
        ensure!(public.len() > 50, "{} has {} public names", archive.display(), public.len());
        let (list, all, one) =
            (lib.join("names"), lib.join("all.o"), lib.join(format!("gasnet-smp-{mode}.o")));
        std::fs::write(&list, public.join("\n")).context("the list of public names")?;
        // Of the archive what these need.
        let roots = public.iter().flat_map(|name| ["-u", name]);
        run(&Cmd::new("ld").words("-r --gc-sections").args(roots).arg("-o").arg(&all).arg(&archive))?;
        let hide =
            Cmd::new("objcopy").words("--strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd");
        run(&hide.arg(format!("--keep-global-symbols={}", list.display())).arg(&all).arg(&one))?;
        let library = lib.join(format!("libgasnet-smp-{mode}.a"));
        let _ = std::fs::remove_file(&library);
        run(&Cmd::new("ar").arg("rcs").arg(&library).arg(&one))?;
        for done in [list, all, one] {
            std::fs::remove_file(&done).with_context(|| format!("removing {}", done.display()))?;
        }
    }
    copy(&crate::root().join("LICENSE-MIT"), &to.join("LICENSE-MIT"))?;
    copy(&crate::root().join("LICENSE-APACHE"), &to.join("LICENSE-APACHE"))
}

/// A compiler with what a program of a mode is compiled with, against what was laid out there.
pub fn compiler(cc: &str, define: &str, laid_out: &Path) -> Cmd {
    let include = |folder: &str| format!("-I{}", laid_out.join(folder).display());
    Cmd::new(cc)
        .words("-Wall -Wextra -Werror -D_GNU_SOURCE=1")
        .arg(format!("-D{define}"))
        .arg(include("include"))
        .arg(include("include/smp-conduit"))
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
