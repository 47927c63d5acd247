//! `cargo xtask install`: the programs, what clients in C are built with, and the sources that a Rust program depends on, with GASNet's
//! configure options as defaults of settings.
//!
//! The options are written into one file of the sources that are installed (`crates/os/src/configured.rs`), of which programs and
//! libraries are built: so a program that is built against them later has the same defaults ([`sources`]). Everything is made beside an
//! earlier installation, and takes its place at the end: [`placed`]. What clients in C read is made by [`clients`].

mod clients;
mod placed;
mod sources;

use crate::capi::{self, CONDUITS};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use gasworks_testkit::command::Cmd;
use gasworks_testkit::files::{copy, empty};
use gasworks_testkit::programs::variable;
pub use placed::Files;
use sources::Sources;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is installed, and how it is configured.
#[derive(Args, Debug, Default)]
pub struct InstallArgs {
    /// Where to: DIR/bin, DIR/include, DIR/lib, DIR/share/man and DIR/share/gasworks
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,

    /// The networks that programs in C can be linked for: smp, aries, gemini
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "smp", value_parser = conduit)]
    conduits: Vec<&'static str>,

    /// What is installed besides: ugni-sim, the software NIC of Gemini and Aries
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = extra)]
    with: Vec<&'static str>,

    /// The largest Medium on Aries and on Gemini, in bytes: a multiple of 64, from 512 to 65408 (GASNET_GNI_MAX_MEDIUM)
    #[arg(long, value_name = "BYTES", value_parser = max_medium)]
    with_gni_max_medium: Option<u32>,
    /// The same on Aries
    #[arg(long, value_name = "BYTES", value_parser = max_medium)]
    with_aries_max_medium: Option<u32>,
    /// The same on Gemini
    #[arg(long, value_name = "BYTES", value_parser = max_medium)]
    with_gemini_max_medium: Option<u32>,

    /// Have UDREG keep registrations, on both chips (GASNET_USE_UDREG); build with GASWORKS_UDREG_INCLUDE set then
    #[arg(long, conflicts_with = "disable_gni_udreg")]
    enable_gni_udreg: bool,
    /// Have the library's own cache keep them, which is the default
    #[arg(long)]
    disable_gni_udreg: bool,
    /// As --enable-gni-udreg, on Aries
    #[arg(long, conflicts_with = "disable_aries_udreg")]
    enable_aries_udreg: bool,
    /// As --disable-gni-udreg, on Aries
    #[arg(long)]
    disable_aries_udreg: bool,
    /// As --enable-gni-udreg, on Gemini
    #[arg(long, conflicts_with = "disable_gemini_udreg")]
    enable_gemini_udreg: bool,
    /// As --disable-gni-udreg, on Gemini
    #[arg(long)]
    disable_gemini_udreg: bool,

    /// Always work around GASNet's bug 3480 (GASWORKS_BUG3480); by default on Cray's CLE 6
    #[arg(long, conflicts_with = "disable_bug3480_workaround")]
    enable_bug3480_workaround: bool,
    /// Never do
    #[arg(long)]
    disable_bug3480_workaround: bool,

    /// Threads that wait for the lock around uGNI spin (GASWORKS_GNI_SPINLOCK): GASNet's GASNETC_USE_SPINLOCK
    #[arg(long)]
    enable_gni_spinlock: bool,

    /// Nothing more: several domains are always there (GASNET_DOMAIN_COUNT)
    #[arg(long, visible_aliases = ["enable-aries-multi-domain", "enable-gemini-multi-domain"])]
    enable_gni_multi_domain: bool,

    /// The command by which gasrun has another launcher start jobs (PMIRUN_CMD), such as `aprun -n %N %C`; where neither this nor the next
    /// is given, that of the variable PMIRUN_CMD, or of aprun or srun at the path that APRUN or SRUN says
    #[arg(long, value_name = "COMMAND")]
    with_pmirun_cmd: Option<String>,
    /// The same, where --with-pmirun-cmd is not given
    #[arg(long, value_name = "COMMAND")]
    with_mpirun_cmd: Option<String>,

    /// The default of any other setting; may be given several times
    #[arg(long = "default", value_name = "NAME=VALUE", value_parser = pair)]
    defaults: Vec<(String, String)>,
}

/// What is built from the sources.
const PROGRAMS: [&str; 2] = ["gasrun", "gasperf"];
/// The packages that are built for it.
const PACKAGES: [&str; 9] =
    ["launch", "perf", "man", "capi-seq", "capi-parsync", "capi-par", "tools-capi", "sock-capi", "cci-capi"];
/// What is installed where somebody asks for it.
const EXTRAS: [&str; 1] = [NIC];
/// The software NIC, and the package that is built for it.
pub const NIC: &str = "ugni-sim";
const NIC_PACKAGE: &str = "ugni-sim-capi";
/// What an installation had before there was anything for C.
const BEFORE: [&str; 2] = ["bin/gasrun", "bin/gasperf"];
/// Where an installation has files.
const FOLDERS: [&str; 4] = ["bin", "include", "lib", "share"];
/// The file of an installation that says how it was configured, and that it is one.
const CONFIGURED: &str = "configured";

fn max_medium(text: &str) -> Result<u32, String> {
    let number =
        text.parse().ok().filter(|number: &u32| (512..=65408).contains(number) && number.is_multiple_of(64));
    number.ok_or_else(|| "wanted a multiple of 64 from 512 to 65408".into())
}

fn conduit(text: &str) -> Result<&'static str, String> {
    let known = CONDUITS.into_iter().find(|name| *name == text);
    known.ok_or_else(|| format!("there are {}", CONDUITS.join(", ")))
}

fn extra(text: &str) -> Result<&'static str, String> {
    let known = EXTRAS.into_iter().find(|name| *name == text);
    known.ok_or_else(|| format!("there is {}", EXTRAS.join(", ")))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("wanted NAME=VALUE")?;
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if is_name { Ok((name.into(), value.into())) } else { Err(format!("{name:?} is no setting's name")) }
}

/// A default: the setting, the chip that it is for or none, the value.
type Default = (String, Option<&'static str>, String);

impl InstallArgs {
    /// The command of another launcher: by an option or, as GASNet's configure has it, by variables of the environment, of which `APRUN` and
    /// `SRUN` are paths.
    fn launcher(&self, environment: impl Fn(&str) -> Option<String>) -> Option<String> {
        let said = self.with_pmirun_cmd.clone().or_else(|| self.with_mpirun_cmd.clone());
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let is_default = self.defaults.iter().any(|(name, _)| name == "PMIRUN_CMD");
        let from_there = || {
            let alps = || set("APRUN").map(|path| format!("{path} -n %N %C"));
            let slurm = || set("SRUN").map(|path| format!("{path} -K0 -W60 %V -mblock -n %N %C"));
            set("PMIRUN_CMD").or_else(alps).or_else(slurm).filter(|_| !is_default)
        };
        said.or_else(from_there)
    }

    /// What is configured, in order, in such an environment.
    fn configured(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Vec<Default>> {
        let mut all = BTreeMap::new();
        let mut enter = |name: &str, chip: Option<&'static str>, value: String| {
            all.insert((name.to_owned(), chip), value);
        };
        let chips = [
            ("aries", self.with_aries_max_medium, self.enable_aries_udreg, self.disable_aries_udreg),
            ("gemini", self.with_gemini_max_medium, self.enable_gemini_udreg, self.disable_gemini_udreg),
        ];
        for (chip, medium, udreg, no_udreg) in chips {
            if let Some(bytes) = medium.or(self.with_gni_max_medium) {
                enter("GASNET_GNI_MAX_MEDIUM", Some(chip), bytes.to_string());
            }
            // What is said of a chip comes before what is said of both.
            let said =
                [(udreg, "1"), (no_udreg, "0"), (self.enable_gni_udreg, "1"), (self.disable_gni_udreg, "0")];
            if let Some((_, value)) = said.into_iter().find(|(is_said, _)| *is_said) {
                enter("GASNET_USE_UDREG", Some(chip), value.into());
            }
        }
        match (self.enable_bug3480_workaround, self.disable_bug3480_workaround) {
            (true, _) => enter("GASWORKS_BUG3480", None, "1".into()),
            (_, true) => enter("GASWORKS_BUG3480", None, "0".into()),
            _ => {}
        }
        if self.enable_gni_spinlock {
            enter("GASWORKS_GNI_SPINLOCK", None, "1".into());
        }
        if let Some(command) = self.launcher(environment) {
            enter("PMIRUN_CMD", None, command);
        }
        for (name, value) in &self.defaults {
            let given = all.keys().any(|(known, _)| known == name);
            ensure!(!given, "--default {name}: it is given twice, or by an option of its own");
            all.insert((name.clone(), None), value.clone());
        }
        Ok(all.into_iter().map(|((name, chip), value)| (name, chip, value)).collect())
    }
}

/// Installs.
pub fn run(args: &InstallArgs) -> Result<()> {
    let prefix = std::path::absolute(&args.prefix)?;
    clients::check_prefix(&prefix)?;
    let mut configured = args.configured(variable)?;
    // A program that starts its ranks by itself does it by this one.
    let starter = ("GASWORKS_GASRUN".to_owned(), None, prefix.join("bin/gasrun").display().to_string());
    if configured.iter().all(|(name, ..)| *name != starter.0) {
        configured.push(starter);
        configured.sort();
    }
    let (place, new) = (prefix.join("share/gasworks"), prefix.join("share/gasworks.new"));
    for folder in FOLDERS {
        may_write(&prefix.join(folder))?;
    }
    let is_ours = !place.exists() || place.join(CONFIGURED).is_file();
    ensure!(is_ours, "{} is there, and is no installation of Gasworks: remove it first", place.display());
    let earlier = placed::listed(&place, &BEFORE)?;
    let conduits: Vec<_> = CONDUITS.into_iter().filter(|name| args.conduits.contains(name)).collect();
    let target = crate::root().join("target/install");
    let ready = build(&new, &target, &configured, &args.with)
        .and_then(|()| ready(&target, &prefix, (&conduits, &args.with), &earlier))
        // Whoever is interrupted from here on leaves a list of all that may be there.
        .and_then(|ready| placed::list(&new, ready.files.union(&earlier)).map(|()| ready));
    let ready = ready.inspect_err(|_| {
        // An earlier installation is as it was.
        let _ = std::fs::remove_dir_all(&new);
    })?;
    empty(&place)?;
    std::fs::remove_dir(&place).with_context(|| format!("removing {}", place.display()))?;
    std::fs::rename(&new, &place).with_context(|| format!("moving the sources to {}", place.display()))?;
    ready.put(&prefix)?;
    let files = ready.files;
    placed::remove_stale(&prefix, &files, &earlier)?;
    placed::list(&place, &files)?;
    say(&prefix, &place, &files, &configured, (&conduits, &args.with));
    Ok(())
}

/// What was installed, and how to use it.
fn say(
    prefix: &Path,
    place: &Path,
    files: &Files,
    configured: &[Default],
    (conduits, extras): (&[&str], &[&str]),
) {
    println!("installed:");
    for program in files.iter().filter(|file| file.starts_with("bin")) {
        println!("  {}", prefix.join(program).display());
    }
    for folder in FOLDERS.iter().skip(1) {
        let count = files.iter().filter(|file| file.starts_with(folder)).count();
        println!("  {count} files in {}", prefix.join(folder).display());
    }
    println!("  {}", place.display());
    for line in listed(configured).lines() {
        println!("  default {line}");
    }
    println!("to use it:\n  export PATH={}:$PATH", prefix.join("bin").display());
    println!("  export PKG_CONFIG_PATH={}", prefix.join("lib/pkgconfig").display());
    if let Some(conduit) = conduits.first() {
        let module = format!("gasnet-{conduit}-seq");
        println!(
            "  cc $(pkg-config --cflags {module}) program.c -o program $(pkg-config --libs {module})  # or -parsync, -par"
        );
    }
    if extras.contains(&NIC) {
        println!(
            "  cc $(pkg-config --cflags cray-ugni cray-pmi) client.c -o client $(pkg-config --libs cray-ugni cray-pmi)"
        );
        println!("  export LD_LIBRARY_PATH={}  # the software NIC's libraries", prefix.join("lib").display());
    }
    println!("  gasworks = {{ path = {:?} }}  # in a program's Cargo.toml", place.join("crates/gasworks"));
}

/// Lays the sources out below the target directory, builds programs and libraries from them, and copies what they were built from to
/// where it is installed.
fn build(place: &Path, target: &Path, configured: &[Default], extras: &[&str]) -> Result<()> {
    let (sources, tree) = (Sources::configured(configured)?, target.join("sources"));
    sources.write(&tree)?;
    // The same packages each time: of others it would choose other features, and build all again.
    let packages = PACKAGES.into_iter().chain(extras.contains(&NIC).then_some(NIC_PACKAGE));
    let packages: Vec<_> = packages.map(|name| format!("-pgasworks-{name}")).collect();
    let cargo = |targets: &str| {
        println!("building from them: {targets}");
        let build = Cmd::cargo("build --release").words(targets).args(&packages);
        build.dir(&tree).env("CARGO_TARGET_DIR", target).limit(1800).show()
    };
    cargo("--bin gasrun")?;
    // Its settings are shown without this environment, which may say otherwise.
    let gasrun = target.join("release").join(PROGRAMS[0]);
    judged(&Cmd::new("env").arg("-i").arg(gasrun).arg("--env").read()?, configured)?;
    cargo("--lib --bin gasperf --bin gasworks-man")?;
    println!("copying the sources");
    sources.write(place)?;
    // With what these packages need alone, as cargo has left it.
    copy(&tree.join("Cargo.lock"), &place.join("Cargo.lock"))
}

/// What is ready to be put below a prefix.
pub struct Ready {
    staged: PathBuf,
    /// The files, from the prefix on.
    files: Files,
    /// Those that are other names of `gasrun`, and not staged.
    launchers: Files,
}

/// Makes all that lies below the prefix but the sources, as it will be used there, of what was built in a target directory. An error if
/// something is in its way.
pub fn ready(
    target: &Path,
    prefix: &Path,
    (conduits, extras): (&[&str], &[&str]),
    earlier: &Files,
) -> Result<Ready> {
    let (staged, built) = (target.join("staged"), target.join("release"));
    empty(&staged)?;
    // What is said is long, and matters where it fails alone.
    capi::lay_out(&staged, &built, conduits, |cmd| cmd.read().map(drop).or_else(|_| cmd.show()))?;
    let (bin, pages) = (staged.join("bin"), staged.join("share/man/man1"));
    std::fs::create_dir_all(&bin)?;
    std::fs::create_dir_all(&pages)?;
    for name in PROGRAMS {
        copy(&built.join(name), &bin.join(name))?;
    }
    clients::write(&staged, prefix, conduits)?;
    if extras.contains(&NIC) {
        crate::ugni::lay_out(&staged, &built, prefix)?;
    }
    Cmd::new(built.join("gasworks-man")).arg(&pages).read()?;
    let ours = |file: &PathBuf| FOLDERS.iter().any(|folder| file.starts_with(folder));
    let mut files: Files = placed::files(&staged)?.into_iter().filter(ours).collect();
    let launchers: Files =
        conduits.iter().map(|name| Path::new("bin").join(format!("gasnetrun_{name}"))).collect();
    files.extend(launchers.iter().cloned());
    placed::nothing_of_others(prefix, &files, earlier)?;
    Ok(Ready { staged, files, launchers })
}

impl Ready {
    /// Puts it there.
    pub fn put(&self, prefix: &Path) -> Result<()> {
        for file in self.files.difference(&self.launchers) {
            placed::put(&self.staged.join(file), &prefix.join(file))?;
        }
        self.launchers
            .iter()
            .try_for_each(|file| placed::put_link(&prefix.join("bin/gasrun"), &prefix.join(file)))
    }
}

/// Makes a directory, and tries whether something can be put there.
fn may_write(dir: &Path) -> Result<()> {
    let why = || format!("nothing can be installed in {}", dir.display());
    std::fs::create_dir_all(dir).with_context(why)?;
    let probe = dir.join(".gasworks-install");
    std::fs::write(&probe, "").with_context(why)?;
    std::fs::remove_file(&probe).with_context(why)
}

/// What is configured, for people.
fn listed(configured: &[Default]) -> String {
    let line = |(name, chip, value): &Default| match chip {
        Some(chip) => format!("{name}={value} on {chip}\n"),
        None => format!("{name}={value}\n"),
    };
    configured.iter().map(line).collect()
}

/// What the program shows of its settings says whether they are as they should be.
fn judged(shown: &str, configured: &[Default]) -> Result<()> {
    for (name, _, value) in configured {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(name));
        let unknown =
            || format!("{name} cannot have a default: there is no such setting; `gasrun --env` lists them");
        if let Some((_, wanted)) = line.with_context(unknown)?.split_once(" (wrong: ") {
            bail!("{name} cannot be {value} by default: {}", wanted.strip_suffix(')').unwrap_or(wanted));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches, Parser};
    use std::collections::BTreeSet;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: InstallArgs,
    }

    fn configured(words: &str) -> Result<String> {
        configured_in(words, &[])
    }

    fn configured_in(words: &str, environment: &[(&str, &str)]) -> Result<String> {
        let words = ["install", "--prefix=/there"].into_iter().chain(words.split_whitespace());
        let line = Line::from_arg_matches(&Line::command().try_get_matches_from(words)?)?;
        let variable = |name: &str| {
            let found = environment.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Ok(listed(&line.args.configured(variable)?))
    }

    #[test]
    fn the_environment_says_by_what_jobs_are_started() {
        let (aprun, srun) = (("APRUN", "/a/aprun"), ("SRUN", "/s/srun"));
        for (words, environment, wanted) in [
            ("", &[aprun][..], "PMIRUN_CMD=/a/aprun -n %N %C\n"),
            ("", &[srun], "PMIRUN_CMD=/s/srun -K0 -W60 %V -mblock -n %N %C\n"),
            ("", &[srun, aprun], "PMIRUN_CMD=/a/aprun -n %N %C\n"),
            ("", &[srun, ("PMIRUN_CMD", "start %C")], "PMIRUN_CMD=start %C\n"),
            ("", &[("PMIRUN_CMD", ""), ("SRUN", "")], ""),
            ("--with-pmirun-cmd=x", &[("PMIRUN_CMD", "start %C")], "PMIRUN_CMD=x\n"),
            ("--with-mpirun-cmd=x", &[aprun], "PMIRUN_CMD=x\n"),
            ("--default PMIRUN_CMD=x", &[aprun], "PMIRUN_CMD=x\n"),
        ] {
            let found = configured_in(words, environment).expect("it can be");
            assert_eq!(found, wanted, "{words} {environment:?}");
        }
    }

    #[test]
    fn what_is_said_of_a_chip_comes_before_what_is_said_of_both() {
        for (words, wanted) in [
            ("", ""),
            (
                "--with-gni-max-medium=512",
                "GASNET_GNI_MAX_MEDIUM=512 on aries\nGASNET_GNI_MAX_MEDIUM=512 on gemini\n",
            ),
            ("--with-aries-max-medium=576", "GASNET_GNI_MAX_MEDIUM=576 on aries\n"),
            (
                "--with-gni-max-medium=512 --with-gemini-max-medium=640",
                "GASNET_GNI_MAX_MEDIUM=512 on aries\nGASNET_GNI_MAX_MEDIUM=640 on gemini\n",
            ),
            (
                "--enable-gni-udreg --disable-gemini-udreg",
                "GASNET_USE_UDREG=1 on aries\nGASNET_USE_UDREG=0 on gemini\n",
            ),
            (
                "--disable-bug3480-workaround --enable-gni-spinlock",
                "GASWORKS_BUG3480=0\nGASWORKS_GNI_SPINLOCK=1\n",
            ),
            ("--with-mpirun-cmd=mpirun --enable-aries-multi-domain", "PMIRUN_CMD=mpirun\n"),
            ("--with-mpirun-cmd=mpirun --with-pmirun-cmd=aprun", "PMIRUN_CMD=aprun\n"),
            ("--default GASWORKS_B=x=y --default GASWORKS_A=", "GASWORKS_A=\nGASWORKS_B=x=y\n"),
        ] {
            assert_eq!(configured(words).expect("it can be"), wanted, "{words}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for words in [
            "--conduits=ibv",
            "--conduits=smp,",
            "--with=ugni",
            "--with-gni-max-medium=448",
            "--with-gni-max-medium=1000",
            "--with-gni-max-medium=65472",
            "--enable-gni-udreg --disable-gni-udreg",
            "--default GASWORKS_A",
            "--default a=1",
            "--default GASWORKS_A=1 --default GASWORKS_A=2",
            "--with-pmirun-cmd=aprun --default PMIRUN_CMD=srun",
        ] {
            assert!(configured(words).is_err(), "{words}");
        }
    }

    #[test]
    fn what_the_program_does_not_take_is_told_by_its_name() {
        let shown = "GASWORKS_A = 1 (default)\n    a\nGASWORKS_B = 0 (default) (wrong: wanted a number (1 to 3))\n    b\n";
        let judged =
            |name: &str| judged(shown, &[(name.into(), None, "0".into())]).map_err(|why| why.to_string());
        assert_eq!(judged("GASWORKS_A"), Ok(()));
        assert_eq!(
            judged("GASWORKS_B"),
            Err("GASWORKS_B cannot be 0 by default: wanted a number (1 to 3)".into())
        );
        let unknown = "GASWORKS_C cannot have a default: there is no such setting; `gasrun --env` lists them";
        assert_eq!(judged("GASWORKS_C"), Err(unknown.into()));
    }

    #[test]
    fn the_book_has_all_options() {
        let page = std::fs::read_to_string(crate::root().join("docs/src/installing.md")).expect("the page");
        let words = page.split('`').filter_map(|word| word.strip_prefix("--")).map(str::to_owned);
        let book: BTreeSet<String> = words.collect();
        let command = Line::command();
        let options = command.get_arguments().filter(|option| option.get_id() != "prefix");
        let names = options.flat_map(|option| {
            let others = option.get_visible_aliases().unwrap_or_default();
            option.get_long().into_iter().chain(others).map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(book, names.collect());
    }
}
