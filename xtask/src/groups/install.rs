//! `cargo xtask install`, as a user has it: what is configured, a program that depends on what is installed, wrong options. What
//! programs in C find there is tried by the module `clients`.

mod clients;

use super::Extent;
use crate::rows::Row;
use crate::world::World;
use anyhow::{Context, Result, ensure};
use gasworks_testkit::Need;
use gasworks_testkit::command::{Cmd, Log};
use gasworks_testkit::files::empty;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::Fixture;
use std::path::{Path, PathBuf};

/// A program outside the workspace.
const PROGRAM: &str = r#"
fn main() -> Result<(), gasworks::Error> {
    let job = gasworks::Job::open(gasworks::Config::from_env()?, gasworks::Table::<gasworks::Seq>::new())?;
    let agent = job.agent()?;
    println!("{} of {}: {}", agent.rank(), agent.ranks(), agent.max_medium());
    agent.barrier()?;
    job.close()
}
"#;

/// Options, and what is said of them.
const WRONG: [(&str, &[&str], &str); 9] = [
    ("not-a-multiple", &["--with-aries-max-medium=1000"], "wanted a multiple of 64 from 512 to 65408"),
    ("too-small", &["--with-gni-max-medium=448"], "wanted a multiple of 64 from 512 to 65408"),
    ("both-ways", &["--enable-aries-udreg", "--disable-aries-udreg"], "cannot be used with"),
    ("no-name", &["--default", "x=1"], "\"x\" is no setting's name"),
    ("twice", &["--with-gni-max-medium=512", "--default", "GASNET_GNI_MAX_MEDIUM=512"], "it is given twice"),
    (
        "no-such-network",
        &["--conduits", "smp,ibv"],
        "invalid value 'ibv' for '--conduits <NAME,...>': there are smp, aries, gemini",
    ),
    (
        "no-such-extra",
        &["--with", "ugni-sim,udreg"],
        "invalid value 'udreg' for '--with <NAME,...>': there is ugni-sim",
    ),
    (
        "strange-prefix",
        &["--prefix=/tmp/a$b"],
        "--prefix /tmp/a$b: Makefiles cannot have Some('$') in a path",
    ),
    ("no-directory", &["--prefix=/dev/null/here"], "nothing can be installed in /dev/null/here/bin"),
];

pub fn rows(extent: Extent) -> Vec<Row> {
    let wrong = WRONG.into_iter().map(|(name, options, says)| {
        Row::new(format!("install/bad-input/{name}"), move |world, log| {
            refused(world, log, name, options, says)
        })
    });
    let made = Row::new("install/made", |world, log| installed(world, log).map(drop)).need(Need::PkgConfig);
    let used = Row::new("install/used", used).need(Need::PkgConfig);
    // All is built anew for it.
    let anew = (extent == Extent::Nightly).then(|| Row::new("install/anew", anew));
    [made, used].into_iter().chain(clients::rows()).chain(wrong).chain(anew).collect()
}

/// The command, for this directory unless the options name another.
fn install(dir: &Path, options: &[&str]) -> Result<Cmd> {
    let prefix = format!("--prefix={}", dir.display());
    let prefix = options.iter().all(|option| !option.starts_with("--prefix")).then_some(prefix);
    let cmd = Cmd::new(std::env::current_exe()?).arg("install").args(prefix).args(options);
    // Whether it works does not depend on how far it is optimised, and others' crates are there already where the workspace is built.
    let cmd = cmd.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    let cmd = cmd.env("CARGO_BUILD_BUILD_DIR", gasworks_testkit::programs::target());
    Ok(cmd.env("CARGO_NET_OFFLINE", "true").limit(900))
}

fn refused(world: &World, log: &Log, name: &str, options: &[&str], says: &str) -> Result<()> {
    let dir = world.scratch(&format!("install/{name}"))?.join("there");
    let ended = log.run(&install(&dir, options)?)?;
    ensure!(!ended.ok(), "it went well");
    ensure!(ended.output.contains(says), "it does not say {says:?}");
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    ensure!(!dir.join("bin/gasrun").exists(), "it was installed");
    Ok(())
}

/// How it is installed for the other rows.
const OPTIONS: [&str; 5] = [
    "--with-aries-max-medium=1984",
    "--with-gni-max-medium=960",
    "--default",
    "GASNET_GNI_AMPOLL_BURST=7",
    "--with=ugni-sim",
];

/// Where it is installed, once for all rows: twice. What the first had alone is gone then.
fn installed(world: &World, log: &Log) -> Result<PathBuf> {
    let dir = world.log_path("install-there").with_extension("");
    world.once("install", || {
        empty(&dir)?;
        log.run_ok(&install(&dir, &OPTIONS)?)?;
        let stale =
            [dir.join("share/gasworks/crates/os/src/stale.rs"), dir.join("lib/stale/libgasnet-old-seq.a")];
        std::fs::write(&stale[0], "")?;
        // As if an installation had had it.
        std::fs::create_dir_all(dir.join("lib/stale"))?;
        std::fs::write(&stale[1], "")?;
        let list = dir.join("share/gasworks/installed");
        let listed = std::fs::read_to_string(&list)?;
        std::fs::write(&list, format!("{listed}lib/stale/libgasnet-old-seq.a\n"))?;
        let own = [dir.join("bin/own"), dir.join("lib/libown.a")];
        own.iter().try_for_each(|own| std::fs::write(own, ""))?;
        let again = log.run_ok(&install(&dir, &OPTIONS)?)?;
        ensure!(!again.output.contains("Compiling "), "what is the same was built anew");
        ensure!(stale.iter().all(|stale| !stale.exists()), "what was stale is there");
        ensure!(!dir.join("lib/stale").exists(), "an empty folder is left");
        ensure!(own.iter().all(|own| own.exists()), "what is somebody's own is gone");
        ensure!(std::fs::read_to_string(&list)? == listed, "the list is another");
        Ok(())
    })?;
    Ok(dir)
}

/// With other options it is configured by those.
fn anew(world: &World, log: &Log) -> Result<()> {
    let dir = installed(world, log)?;
    for (options, medium) in [
        (&["--with-gni-max-medium=512", "--with=ugni-sim"][..], "4032; 512 on aries; 512 on gemini"),
        (&OPTIONS, "4032; 1984 on aries; 960 on gemini"),
    ] {
        log.run_ok(&install(&dir, options)?)?;
        let shown = log.run_ok(&Cmd::new(dir.join("bin/gasrun")).arg("--env"))?.output;
        let wanted = format!("GASNET_GNI_MAX_MEDIUM = {medium} (default)");
        ensure!(shown.lines().any(|line| line == wanted), "gasrun --env does not say {wanted:?}");
    }
    Ok(())
}

/// Defaults that cannot be used leave an installation as it is, and those that can are in all that is built from it.
fn used(world: &World, log: &Log) -> Result<()> {
    let dir = installed(world, log)?;
    let (wrong, says) =
        ("GASNET_GNI_AMPOLL_BURST=0", "GASNET_GNI_AMPOLL_BURST cannot be 0 by default: wanted");
    let ended = log.run(&install(&dir, &["--default", wrong])?)?;
    ensure!(!ended.ok() && ended.output.contains(says), "it does not say {says:?}");
    ensure!(!dir.join("share/gasworks.new").exists(), "what was not installed is left");
    let shown = log.run_ok(&Cmd::new(dir.join("bin/gasrun")).arg("--env"))?.output;
    for wanted in [
        "GASNET_GNI_MAX_MEDIUM = 4032; 1984 on aries; 960 on gemini (default)",
        "GASNET_GNI_AMPOLL_BURST = 7 (default)",
    ] {
        ensure!(shown.lines().any(|line| line == wanted), "gasrun --env does not say {wanted:?}");
    }
    let listed = std::fs::read_to_string(dir.join("share/gasworks/configured"))?;
    ensure!(
        listed.contains("GASNET_GNI_MAX_MEDIUM=1984 on aries\n"),
        "the list of what is configured: {listed}"
    );
    let program = program(world, log, &dir)?;
    let prefix = world.fixture(Fixture::Nic)?;
    let job = || Cmd::new(dir.join("bin/gasrun")).words("-n 2 --timeout 60 --").arg(&program).limit(90);
    let says = |job: Cmd, medium: &str| -> Result<()> {
        let output = log.run_ok(&job)?.output;
        for rank in 0..2 {
            let line = format!("{rank} of 2: {medium}");
            ensure!(output.lines().any(|said| said == line), "no rank says {line:?}");
        }
        Ok(())
    };
    log.run_ok(&job())?;
    says(dressed(job(), &prefix).env("GASWORKS_UGNI_CHIP", "aries"), "1984")?;
    says(dressed(job(), &prefix).env("GASWORKS_UGNI_CHIP", "gemini"), "960")?;
    says(
        dressed(job(), &prefix).env("GASWORKS_UGNI_CHIP", "gemini").env("GASNET_GNI_MAX_MEDIUM", "1024"),
        "1024",
    )
}

/// A program that depends on what is installed.
fn program(world: &World, log: &Log, dir: &Path) -> Result<PathBuf> {
    let place = world.scratch("install/program")?;
    let crates = dir.join("share/gasworks/crates/gasworks");
    let manifest = format!(
        "[package]\nname = \"installed\"\nedition = \"2024\"\n\n[dependencies]\ngasworks = {{ path = {crates:?} }}\n\n[workspace]\n\n[profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    std::fs::create_dir_all(place.join("src"))?;
    std::fs::write(place.join("Cargo.toml"), manifest)?;
    std::fs::write(place.join("src/main.rs"), PROGRAM)?;
    // The versions that are here.
    std::fs::copy(dir.join("share/gasworks/Cargo.lock"), place.join("Cargo.lock"))
        .context("the lock file")?;
    // Where the workspace is built, by the same profile: most dependencies are there already.
    let target = gasworks_testkit::programs::target();
    let build = Cmd::cargo("build --offline").dir(&place).env("CARGO_TARGET_DIR", &target).limit(600);
    log.run_ok(&build)?;
    Ok(target.join("debug/installed"))
}
