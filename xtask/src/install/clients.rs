//! What clients in C are built with: fragments for Makefiles, pkg-config's files, a CMake package, and the page that tells how.
//! All are made from the templates in `crates/capi/install`.

use crate::capi::{MODES, SYSTEM};
use anyhow::{Context, Result, ensure};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// By whom ranks are started over a network where nothing else is said.
fn spawner(conduit: &str) -> &'static str {
    if conduit == "smp" { "fork" } else { "pmi" }
}

/// The modes of the tools alone, and what is defined for them.
const TOOLS: [(&str, &str); 2] =
    [("seq", "-DGASNETT_THREAD_SINGLE=1"), ("par", "-D_REENTRANT -DGASNETT_THREAD_SAFE=1")];
/// The packages that describe their libraries to pkg-config themselves, and the libraries.
const PACKAGES: [(&str, &str); 2] = [("sock-capi", "gasworks_sock"), ("cci-capi", "cci")];
/// Ways to start jobs that clients ask about.
const SPAWNERS: [&str; 4] = ["FORK", "PMI", "MPI", "SSH"];
/// Compilers, and what else is in the variables of clients.
const USUAL: [(&str, &str); 5] = [
    ("CC", "cc"),
    ("CXX", "c++"),
    ("OPT", "-O3"),
    // Clients leave unused much of what they have from headers.
    ("MISC", "-Wno-unused -Wunused-result -Wno-unused-parameter -Wno-address"),
    ("WARN", "-Wall"),
];
/// What clients that configure GASNet themselves call.
const CONFIGURE: &str = "share/gasworks/gasnet/configure";
/// What older C libraries have in a library of its own, besides what [`SYSTEM`] names.
const OLDER: &str = "-lrt";

/// Of a prefix, what clients' files can hold. Blanks can be quoted in all of them; of the rest each has its own that cannot.
pub fn check_prefix(prefix: &Path) -> Result<()> {
    let shown = prefix.to_str().context("the prefix is no text")?;
    let strange = shown.chars().find(|c| !c.is_alphanumeric() && !"/._-+@~,: ".contains(*c));
    ensure!(strange.is_none(), "--prefix {shown}: Makefiles cannot have {strange:?} in a path");
    Ok(())
}

/// Writes all of it below `staged`, where the headers are, for use below `prefix`.
pub fn write(staged: &Path, prefix: &Path, conduits: &[&str]) -> Result<()> {
    let prefix = prefix.to_str().context("the prefix is no text")?;
    let header = |name: &str| {
        let file = staged.join("include").join(name);
        std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
    };
    let config = header("gasnet_config.h")?;
    let number = |part: &str| defined(&config, &format!("GASNET_RELEASE_VERSION_{part}"));
    let release = format!("{}.{}.{}", number("MAJOR")?, number("MINOR")?, number("PATCH")?);
    for &name in conduits {
        let core = header(&format!("{name}-conduit/gasnet_core.h"))?;
        let (spawners, usual) = (spawners(&core)?, spawner(name).to_uppercase());
        ensure!(spawners.contains(&&*usual), "{name} has no spawner {usual}, but {spawners:?}");
        for (mode, define) in MODES {
            let threads = if mode == "par" { "-D_REENTRANT " } else { "" };
            let own =
                SPAWNERS.map(|way| (format!("SPAWNER_{way}"), u8::from(spawners.contains(&way)).to_string()));
            let named = [("NET", name), ("MODE", mode), ("SPAWNER_DEFAULT", spawner(name))];
            let client = Client {
                template: "gasnet",
                mak: format!("include/{name}-conduit/{name}-{mode}.mak"),
                library: format!("gasnet-{name}-{mode}"),
                folders: vec!["include".into(), format!("include/{name}-conduit")],
                defines: format!("-D_GNU_SOURCE=1 {threads}-D{define}"),
                values: named
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .chain(own)
                    .collect(),
            };
            client.write(staged, prefix, &release)?;
        }
    }
    for (mode, define) in TOOLS {
        let client = Client {
            template: "gasnet_tools",
            mak: format!("include/gasnet_tools-{mode}.mak"),
            library: format!("gasnet_tools-{mode}"),
            folders: vec!["include".into()],
            defines: format!("-D_GNU_SOURCE=1 {define}"),
            values: vec![("MODE".into(), mode.into())],
        };
        client.write(staged, prefix, &release)?;
    }
    for (package, library) in PACKAGES {
        described(staged, prefix, package, library)?;
    }
    package(staged, prefix, conduits)
}

/// Writes pkg-config's file of a library, from the template of its package.
fn described(staged: &Path, prefix: &str, package: &str, library: &str) -> Result<()> {
    let template = crate::root().join(format!("crates/{package}/{library}.pc.in"));
    let text =
        std::fs::read_to_string(&template).with_context(|| format!("reading {}", template.display()))?;
    let mut text = text.replace("@prefix@", prefix).replace("@version@", env!("CARGO_PKG_VERSION"));
    if prefix.contains(' ') {
        // A shell reads it, after pkg-config has.
        for folder in ["${includedir}", "${libdir}"] {
            text = text.replace(&format!("-I{folder}"), &format!("-I\"{folder}\""));
            text = text.replace(&format!("-L{folder}"), &format!("-L\"{folder}\""));
        }
    }
    let to = staged.join(format!("lib/pkgconfig/{library}.pc"));
    std::fs::write(&to, text).with_context(|| format!("writing {}", to.display()))
}

/// What a client of one library is built with.
struct Client {
    template: &'static str,
    /// The fragment for Makefiles.
    mak: String,
    library: String,
    /// Where headers are.
    folders: Vec<String>,
    defines: String,
    /// What else the templates name.
    values: Vec<(String, String)>,
}

impl Client {
    /// Writes the fragment for Makefiles, and pkg-config's file, which says everything from its prefix on, so that it can be told of
    /// another.
    fn write(&self, staged: &Path, prefix: &str, release: &str) -> Result<()> {
        let pc = format!("lib/pkgconfig/{}.pc", self.library);
        for (kind, to, root) in [("mak", &self.mak, prefix), ("pc", &pc, "${prefix}")] {
            // A shell reads these, after make or pkg-config has.
            let quote = if prefix.contains(' ') { "\"" } else { "" };
            let includes = self.folders.iter().map(|folder| format!("-I{quote}{root}/{folder}{quote}"));
            let own = [
                ("PREFIX", prefix.to_owned()),
                ("INCLUDED", format!("{prefix}/include").replace(' ', "\\ ")),
                ("RELEASE", release.to_owned()),
                ("DEFINES", self.defines.clone()),
                ("INCLUDES", includes.collect::<Vec<_>>().join(" ")),
                ("LIBS", format!("-L{quote}{root}/lib{quote} -l{} {SYSTEM} {OLDER}", self.library)),
            ];
            let usual = USUAL.map(|(name, value)| (name, value.to_owned()));
            let named = own.into_iter().chain(usual).map(|(name, value)| (name.to_owned(), value));
            let values: Vec<_> = named.chain(self.values.iter().cloned()).collect();
            fill(&format!("{}.{kind}.in", self.template), &values, &staged.join(to))?;
        }
        Ok(())
    }
}

/// Writes the CMake package, what stands for a source of GASNet, and the manual's page about clients.
fn package(staged: &Path, prefix: &str, conduits: &[&str]) -> Result<()> {
    let libraries = format!("{SYSTEM} {OLDER}");
    let linked: Vec<_> = libraries.split(' ').map(|word| word.trim_start_matches("-l")).collect();
    let values = [
        ("NETS", conduits.join(" ")),
        ("NET", conduits.first().map_or_else(String::new, ToString::to_string)),
        ("LINKED", linked.join(";")),
        ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
        // The page's sign for what is typed, not for what divides words.
        ("PAGE_PREFIX", prefix.replace('-', "\\-")),
        ("PREFIX", prefix.to_owned()),
        ("CC", USUAL[0].1.to_owned()),
        ("CXX", USUAL[1].1.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    for (template, to) in [
        ("GasworksConfig.cmake.in", "lib/cmake/Gasworks/GasworksConfig.cmake"),
        ("GasworksConfigVersion.cmake.in", "lib/cmake/Gasworks/GasworksConfigVersion.cmake"),
        ("gasworks.7.in", "share/man/man7/gasworks.7"),
        ("configure.in", CONFIGURE),
    ] {
        fill(template, &values, &staged.join(to))?;
    }
    // By the name of its template clients know a source of GASNet from a build.
    let source = staged.join(CONFIGURE);
    std::fs::write(
        source.with_file_name("gasnet_config.h.in"),
        "/* configure has nothing to find out. */\n",
    )?;
    std::fs::set_permissions(&source, Permissions::from_mode(0o755)).context("making configure executable")
}

/// Writes a template with values in the place of their names.
fn fill(template: &str, values: &[(String, String)], to: &Path) -> Result<()> {
    let file = crate::root().join("crates/capi/install").join(template);
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let filled = filled(&text, values).with_context(|| template.to_owned())?;
    if let Some(dir) = to.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    std::fs::write(to, filled).with_context(|| format!("writing {}", to.display()))
}

/// Names stand between signs that nothing else in the templates has.
fn filled(text: &str, values: &[(String, String)]) -> Result<String> {
    let mut filled = String::new();
    for (number, part) in text.split('@').enumerate() {
        if number % 2 == 0 {
            filled.push_str(part);
        } else {
            let value = values.iter().find(|(name, _)| name == part);
            filled.push_str(&value.with_context(|| format!("nothing is called {part:?}"))?.1);
        }
    }
    ensure!(text.matches('@').count().is_multiple_of(2), "a sign is left");
    Ok(filled)
}

/// The value of a macro.
fn defined<'a>(header: &'a str, name: &str) -> Result<&'a str> {
    let value = |line: &'a str| {
        let (found, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        (found == name).then(|| value.trim())
    };
    header.lines().find_map(value).with_context(|| format!("no header defines {name}"))
}

/// The ways to start jobs that a network's header names.
fn spawners(header: &str) -> Result<Vec<&str>> {
    let list = defined(header, "GASWORKS_SPAWNERS(spawner)")?;
    Ok(list.split("spawner(").filter_map(|word| word.split_once(')')).map(|(name, _)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_cannot_be_written_are_refused() {
        for fine in ["/opt/gasworks", "/a b/c-d_1.2+3", "/ä"] {
            check_prefix(Path::new(fine)).unwrap();
        }
        for strange in ["/a$b", "/a#b", "/a'b", "/a\"b", "/a\\b", "/a;b", "/a\nb", "/a(b)", "/a%b"] {
            assert!(check_prefix(Path::new(strange)).is_err(), "{strange:?}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let values = [("A".to_owned(), "1".to_owned()), ("B_C".to_owned(), "2".to_owned())];
        assert_eq!(filled("x=@A@ @B_C@@A@\n", &values).unwrap(), "x=1 21\n");
        assert!(filled("@D@", &values).is_err() && filled("a@b", &values).is_err());
    }

    #[test]
    fn headers_are_read() {
        let header =
            "#define A_B 2\n#define A 1\n#define GASWORKS_SPAWNERS(spawner) spawner(FORK) spawner(PMI)\n";
        assert_eq!(defined(header, "A").unwrap(), "1");
        assert!(defined(header, "B").is_err());
        assert_eq!(spawners(header).unwrap(), ["FORK", "PMI"]);
    }
}
