//! Lays out the C interface as an installation has it: the headers, and for each conduit and thread mode a library of one
//! object that exports public names alone; so, too, those of the tools, of the socket engine and of CCI.

use crate::world::{OPTIMISED, optimised};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::Cmd;
use gasworks_testkit::c::{INTERFACE, SHARED, is_public, linked_name, names, one_object};
use gasworks_testkit::files::{copy, copy_tree, newest};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use gasworks_testkit::c::{CONDUITS, MODES, SYSTEM, compiler, linking};

/// The command that builds the libraries of all modes, and the tools.
pub fn build() -> Cmd {
    Cmd::cargo(&optimised(OPTIMISED)).limit(900)
}

/// The folder in which that command leaves them.
pub fn built() -> PathBuf {
    gasworks_testkit::programs::target().join("release")
}

/// When something was changed last of what [`lay_out`] reads but the licences, this program among it.
pub fn changed(built: &Path) -> Result<SystemTime> {
    let mut all = vec![std::env::current_exe().context("this program")?];
    all.extend([TOOLS, SOCK, CCI].map(|archive| built.join(archive)));
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

/// The socket engine as cargo builds it.
const SOCK: &str = "libgasworks_sock.a";

/// CCI as cargo builds it.
const CCI: &str = "libcci.a";

/// The packages that have headers.
const HEADERS: [&str; 4] = ["capi", "tools-capi", "sock-capi", "cci-capi"];

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
        let any = format!("gasworks_linked_{mode}_{INTERFACE}");
        let object = Object::of(&built.join(archive(mode)), &lib, mode, &mut run)?;
        for conduit in conduits {
            let own = linked_name(conduit, mode);
            object.libraries(&format!("gasnet-{conduit}-{mode}"), Some((&any, &own)), &mut run)?;
        }
        object.remove()?;
    }
    for (archive, mode, library) in [
        (TOOLS, "seq", "gasnet_tools-seq"),
        (TOOLS, "par", "gasnet_tools-par"),
        (SOCK, "par", "gasworks_sock"),
        (CCI, "par", "cci"),
    ] {
        let object = Object::of(&built.join(archive), &lib, mode, &mut run)?;
        object.libraries(library, None, &mut run)?;
        object.remove()?;
    }
    copy(&crate::root().join("LICENSE-MIT"), &to.join("LICENSE-MIT"))?;
    copy(&crate::root().join("LICENSE-APACHE"), &to.join("LICENSE-APACHE"))
}

/// The one object that the libraries of a mode are made of.
struct Object<'a> {
    /// Where the libraries go, and meanwhile this.
    lib: &'a Path,
    /// Its public names.
    public: Vec<String>,
}

impl<'a> Object<'a> {
    const NAME: &'static str = "all.o";

    /// From an archive, its public names and what they need. Of the names `gasnett_linkconfig_*`, each of which stands for a mode
    /// of the tools, those of `mode` are public.
    fn of(
        archive: &Path,
        lib: &'a Path,
        mode: &str,
        run: &mut impl FnMut(&Cmd) -> Result<()>,
    ) -> Result<Self> {
        let threads = if mode == "seq" { "SEQ" } else { "PAR" };
        let is_own = |name: &str| {
            let tools = name.strip_prefix("gasnett_linkconfig_");
            is_public(name) && tools.is_none_or(|of| of.starts_with(threads))
        };
        let public: Vec<_> = names(archive)?.into_iter().filter(|name| is_own(name)).collect();
        ensure!(public.len() > 20, "{} has {} public names", archive.display(), public.len());
        // Section groups are dissolved: of a group that two libraries have, a linker keeps one, and its names are hidden in the
        // library that it keeps.
        run(&one_object(archive, &public, &lib.join(Self::NAME))?)?;
        Ok(Self { lib, public })
    }

    /// Makes a static library of it, and a shared one. Both export its public names. `another` is a name of the object and the
    /// name under which the libraries export it.
    fn libraries(
        &self,
        library: &str,
        another: Option<(&str, &str)>,
        run: &mut impl FnMut(&Cmd) -> Result<()>,
    ) -> Result<()> {
        let of = |name: &str| self.lib.join(name);
        let [list, script, all] = ["names", "versions", Self::NAME].map(of);
        let one = of(&format!("{library}.o"));
        let further = another.map_or("", |(_, own)| own);
        let names = format!("{}\n{further}", self.public.join("\n"));
        std::fs::write(&list, names).context("the list of public names")?;
        let global: String = self.public.iter().map(|name| format!("    {name};\n")).collect();
        let global = format!(
            "GASWORKS_{INTERFACE} {{\n  global:\n{global}    gasworks_linked_*;\n  local:\n    *;\n}};\n"
        );
        std::fs::write(&script, global).context("the versions of public names")?;
        let hide =
            Cmd::new("objcopy").words("--strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd");
        // The libraries of the conduits contain the tools too; where a program links with both, theirs take precedence.
        let change = match another {
            Some((any, own)) => format!("--redefine-sym={any}={own}"),
            None => format!("--weaken-symbols={}", list.display()),
        };
        // What only sections named that are left out remains as a name of nothing, which a shared library would ask for.
        let hide = if another.is_none() { hide.arg("--strip-unneeded") } else { hide };
        run(&hide.arg(change).arg(format!("--keep-global-symbols={}", list.display())).arg(&all).arg(&one))?;
        // Of the conduits' libraries: objects of each kind of build need a member of their own, and programs of both kinds do not link.
        let (apart, together) = match another {
            Some(_) => self.builds(run)?,
            None => Default::default(),
        };
        let archive = of(&format!("lib{library}.a"));
        let _ = std::fs::remove_file(&archive);
        run(&Cmd::new("ar").arg("rcs").arg(&archive).arg(&one).args(&apart))?;
        let (plain, soname) = (format!("lib{library}.so"), format!("lib{library}.so.{INTERFACE}"));
        let shared = of(SHARED);
        run(&Cmd::new("cc")
            .arg("-shared")
            .arg(format!("-Wl,-soname,{soname}"))
            .arg(format!("-Wl,--version-script={}", script.display()))
            .arg("-o")
            .arg(shared.join(&soname))
            .arg(&one)
            .args(&together)
            .words(SYSTEM))?;
        let _ = std::fs::remove_file(shared.join(&plain));
        std::os::unix::fs::symlink(&soname, shared.join(&plain))
            .with_context(|| format!("linking {plain}"))?;
        [list, script, one].iter().chain(&apart).chain(&together).try_for_each(|done| removed(done))
    }

    /// An object for each kind of build, which defines the name that objects of this kind refer to, and one that all of these objects define;
    /// and one that has the names of all kinds, for shared libraries.
    fn builds(&self, run: &mut impl FnMut(&Cmd) -> Result<()>) -> Result<(Vec<PathBuf>, Option<PathBuf>)> {
        let mut compiled = |name: &str, text: String| {
            let source = self.lib.join(format!("{name}.c"));
            let object = source.with_extension("o");
            std::fs::write(&source, text).with_context(|| format!("writing {}", source.display()))?;
            run(&Cmd::new("cc").words("-O1 -fPIC -c -o").arg(&object).arg(&source))?;
            removed(&source)?;
            Ok(object)
        };
        let apart = BUILDS.map(|build| compiled(build, format!("{}{}", linked(build), define(NO_MIXTURE))));
        let apart = apart.into_iter().collect::<Result<_>>()?;
        Ok((apart, Some(compiled("builds", BUILDS.map(linked).concat())?)))
    }

    /// Removes it and what it took to make.
    fn remove(self) -> Result<()> {
        [Self::NAME, "all.roots"].iter().try_for_each(|name| removed(&self.lib.join(name)))
    }
}

/// The kinds of builds that objects are of.
const BUILDS: [&str; 2] = ["debug", "optimised"];
/// What a linker says is defined twice where a program has objects of both.
const NO_MIXTURE: &str = "gasworks_objects_of_debug_and_optimised_builds_do_not_go_together";

/// In C: the name that objects of such a build refer to.
fn linked(build: &str) -> String {
    define(&format!("gasworks_linked_build_{build}_{INTERFACE}"))
}

fn define(name: &str) -> String {
    format!("extern const char {name}; const char {name} = 0;\n")
}

fn removed(file: &Path) -> Result<()> {
    std::fs::remove_file(file).with_context(|| format!("removing {}", file.display()))
}
