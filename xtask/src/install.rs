//! `cargo xtask install`: the programs, and the sources that a Rust program depends on, with GASNet's configure options as
//! defaults of settings.
//!
//! The options are written into one file of the sources that are installed (`crates/os/src/configured.rs`), from which the programs are
//! built: so a program that is built against them later has the same defaults. Everything is made beside an earlier
//! installation, and takes its place at the end.

use crate::exec::Cmd;
use crate::files::{copy, copy_tree, empty};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is installed, and how it is configured.
#[derive(Args, Debug, Default)]
pub struct InstallArgs {
    /// Where to: DIR/bin and DIR/share/gasworks
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,

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

    /// The command by which gasrun has another launcher start jobs (PMIRUN_CMD), such as `aprun -n %N %C`
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
/// The file of an installation that says how it was configured, and that it is one.
const CONFIGURED: &str = "configured";
/// What is installed of this tree's top.
const TOP: [&str; 5] = ["Cargo.lock", "rust-toolchain.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

fn max_medium(text: &str) -> Result<u32, String> {
    let number =
        text.parse().ok().filter(|number: &u32| (512..=65408).contains(number) && number.is_multiple_of(64));
    number.ok_or_else(|| "wanted a multiple of 64 from 512 to 65408".into())
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
    /// What is configured, in order.
    fn configured(&self) -> Result<Vec<Default>> {
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
        if let Some(command) = self.with_pmirun_cmd.as_ref().or(self.with_mpirun_cmd.as_ref()) {
            enter("PMIRUN_CMD", None, command.clone());
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
    let configured = args.configured()?;
    let prefix = std::path::absolute(&args.prefix)?;
    let (bin, share) = (prefix.join("bin"), prefix.join("share"));
    let (place, new) = (share.join("gasworks"), share.join("gasworks.new"));
    may_write(&bin)?;
    may_write(&share)?;
    let is_ours = !place.exists() || place.join(CONFIGURED).is_file();
    ensure!(is_ours, "{} is there, and is no installation of Gasworks: remove it first", place.display());
    let target = crate::root().join("target/install");
    if let Err(why) = build(&new, &target, &configured) {
        // An earlier installation is as it was.
        let _ = std::fs::remove_dir_all(&new);
        return Err(why);
    }
    for name in PROGRAMS {
        copy(&target.join("release").join(name), &bin.join(name))?;
    }
    empty(&place)?;
    std::fs::remove_dir(&place).with_context(|| format!("removing {}", place.display()))?;
    std::fs::rename(&new, &place).with_context(|| format!("moving the sources to {}", place.display()))?;
    println!("installed:");
    PROGRAMS.iter().for_each(|name| println!("  {}", bin.join(name).display()));
    println!("  {}", place.display());
    for line in listed(&configured).lines() {
        println!("  default {line}");
    }
    println!("to use it:\n  export PATH={}:$PATH", bin.display());
    println!("  gasworks = {{ path = {:?} }}  # in a program's Cargo.toml", place.join("crates/gasworks"));
    Ok(())
}

/// Lays the sources out, and builds the programs from them.
fn build(place: &Path, target: &Path, configured: &[Default]) -> Result<()> {
    println!("copying the sources");
    empty(place)?;
    lay_out(place, configured)?;
    println!("building {} from them", PROGRAMS.join(" and "));
    let words =
        "build --release --package gasworks-launch --bin gasrun --package gasworks-perf --bin gasperf";
    Cmd::cargo(words).dir(place).env("CARGO_TARGET_DIR", target).limit(1800).show()?;
    // Its settings are shown without this environment, which may say otherwise.
    let gasrun = target.join("release").join(PROGRAMS[0]);
    judged(&Cmd::new("env").arg("-i").arg(gasrun).arg("--env").read()?, configured)
}

/// Makes a directory, and tries whether something can be put there.
fn may_write(dir: &Path) -> Result<()> {
    let why = || format!("nothing can be installed in {}", dir.display());
    std::fs::create_dir_all(dir).with_context(why)?;
    let probe = dir.join(".gasworks-install");
    std::fs::write(&probe, "").with_context(why)?;
    std::fs::remove_file(&probe).with_context(why)
}

/// The sources of all crates, as a workspace, with what is configured.
fn lay_out(place: &Path, configured: &[Default]) -> Result<()> {
    let root = crate::root();
    for name in TOP {
        copy(&root.join(name), &place.join(name))?;
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    const MEMBERS: &str = r#"["crates/*", "examples", "xtask"]"#;
    ensure!(manifest.contains(MEMBERS), "Cargo.toml names other members than {MEMBERS}");
    std::fs::write(place.join("Cargo.toml"), manifest.replace(MEMBERS, r#"["crates/*"]"#))?;
    copy_tree(&root.join("crates"), &place.join("crates"))?;
    let file = "crates/os/src/configured.rs";
    let text = std::fs::read_to_string(root.join(file))?;
    std::fs::write(place.join(file), written(&text, configured)?)?;
    std::fs::write(place.join(CONFIGURED), listed(configured))?;
    Ok(())
}

/// The source file with these entries.
fn written(text: &str, configured: &[Default]) -> Result<String> {
    const NONE: &str = "CONFIGURED: &[Entry] = &[];";
    ensure!(text.contains(NONE), "crates/os/src/configured.rs has no line with {NONE:?}");
    let entry = |(name, chip, value): &Default| format!("    ({name:?}, {chip:?}, {value:?}),\n");
    let entries: String = configured.iter().map(entry).collect();
    Ok(text.replace(NONE, &format!("CONFIGURED: &[Entry] = &[\n{entries}];")))
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
        let words = ["install", "--prefix=/there"].into_iter().chain(words.split_whitespace());
        let line = Line::from_arg_matches(&Line::command().try_get_matches_from(words)?)?;
        Ok(listed(&line.args.configured()?))
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
    fn the_file_is_written_with_what_is_configured() {
        let text =
            std::fs::read_to_string(crate::root().join("crates/os/src/configured.rs")).expect("the file");
        let all = [
            ("GASWORKS_A".to_owned(), Some("aries"), "a \"b\"".to_owned()),
            ("GASWORKS_B".to_owned(), None, "1".to_owned()),
        ];
        let written = written(&text, &all).expect("there is the line");
        assert!(written.contains(r#"    ("GASWORKS_A", Some("aries"), "a \"b\""),"#), "{written}");
        assert!(written.contains(r#"    ("GASWORKS_B", None, "1"),"#), "{written}");
        assert!(super::written(&written, &all).is_err(), "it is written once");
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
