//! What programs in C are compiled and linked with: the C interface as an installation has it, `include` and `lib` in one
//! folder.

use crate::command::Cmd;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// The thread modes, as the names of libraries and the macros of programs spell them.
pub const MODES: [(&str, &str); 3] =
    [("seq", "GASNET_SEQ"), ("parsync", "GASNET_PARSYNC"), ("par", "GASNET_PAR")];
/// The conduits of an installation, as GASNet names them. Each has headers and libraries of its own.
pub const CONDUITS: [&str; 3] = ["smp", "aries", "gemini"];
/// What programs are linked with besides the library.
pub const SYSTEM: &str = "-lpthread -ldl -lm";
/// The folder of the shared libraries, below `lib`. A linker that found both kinds in one folder would take the shared
/// ones, and every program would have to be told where they are when it runs.
pub const SHARED: &str = "gasworks";
/// The version of the binary interface, in the symbol by which objects and libraries link: `GASWORKS_INTERFACE` in the
/// headers.
pub const INTERFACE: u32 = 2;
/// What public names begin with. By the last, configuration scripts look for the library.
const PUBLIC: [&str; 6] = ["gex_", "gasnet_", "gasnett_", "gasworks_", "cci_", "gasnetc_AMPoll"];

/// The symbol by which an object links only with the library of its conduit and mode.
pub fn linked_name(conduit: &str, mode: &str) -> String {
    format!("gasworks_linked_{}_{mode}_{INTERFACE}", conduit.to_uppercase())
}

/// Whether a library exports this name.
pub fn is_public(name: &str) -> bool {
    PUBLIC.iter().any(|public| name.starts_with(public))
}

/// The global names that a library or object defines.
///
/// # Errors
/// `readelf` cannot read it.
pub fn names(file: &Path) -> Result<BTreeSet<String>> {
    // `nm` depends on which plugins are installed where objects have sections for the compiler.
    Ok(defined(&Cmd::new("readelf").words("-sW").arg(file).read()?))
}

/// The command that makes one object of an archive: what these names are of, and what they need. It reads a list that is written
/// beside the object, with the extension `roots`.
///
/// # Errors
/// The list cannot be written.
pub fn one_object<'a>(
    archive: &Path,
    public: impl IntoIterator<Item = &'a String>,
    object: &Path,
) -> Result<Cmd> {
    let roots = object.with_extension("roots");
    let needed: String = public.into_iter().map(|name| format!("-u {name}\n")).collect();
    std::fs::write(&roots, needed).with_context(|| format!("writing {}", roots.display()))?;
    let link = Cmd::new("ld").words("-r --gc-sections --force-group-allocation");
    Ok(link.arg(format!("@{}", roots.display())).arg("-o").arg(object).arg(archive))
}

/// The global names that a symbol table defines, as `readelf -sW` prints it.
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

/// A command that compiles a program for a conduit and a mode (`define`, one of [`MODES`]) against the interface in
/// `laid_out`, with warnings as errors.
pub fn compiler(cc: &str, conduit: &str, define: &str, laid_out: &Path) -> Cmd {
    let include = |folder: &str| format!("-I{}", laid_out.join(folder).display());
    Cmd::new(cc)
        .words("-Wall -Wextra -Werror -D_GNU_SOURCE=1")
        .arg(format!("-D{define}"))
        .arg(include("include"))
        .arg(include(&format!("include/{conduit}-conduit")))
}

/// The same command, which also links with the library of a conduit and a mode in `laid_out`.
pub fn linking(compile: Cmd, conduit: &str, mode: &str, laid_out: &Path) -> Cmd {
    let lib = format!("-L{}", laid_out.join("lib").display());
    compile.arg(lib).arg(format!("-lgasnet-{conduit}-{mode}")).words(SYSTEM).limit(120)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_definitions_are_found() {
        let table = "Symbol table '.symtab' contains 5 entries:\n   Num:    Value          Size Type    Bind   Vis      Ndx Name\n\
                     1: 0000000000000000    14 FUNC    GLOBAL DEFAULT  168 gex_a\n\
                     2: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND malloc\n\
                     3: 0000000000000000     8 OBJECT  LOCAL  DEFAULT    9 gex_b\n\
                     4: 0000000000000000     8 OBJECT  WEAK   DEFAULT    9 other\n\
                     5: 0000000000000000     8 OBJECT  GLOBAL HIDDEN     9 gex_c\n";
        let found = defined(table);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["gex_a", "other"]);
        assert!(is_public("gex_a") && !is_public("other"));
    }

    #[test]
    fn a_linked_name_has_the_conduit_the_mode_and_the_version() {
        assert_eq!(linked_name("smp", "par"), "gasworks_linked_SMP_par_2");
    }
}
