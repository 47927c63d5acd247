//! The limits of each setting that the transport reads, as `gasrun --env` prints them: a value at a limit is taken, and a value
//! beyond it is refused with an error that names it.

use crate::job::suite;
use anyhow::{Context, Result, ensure};
use gasworks_os::settings::{Kind, Setting};
use gasworks_testkit::output::told_once;
use gasworks_testkit::programs::release;
use gasworks_testkit::{Case, Cmd, Log, settings};
use std::collections::BTreeSet;

/// The crates whose settings these are.
const READERS: [&str; 2] = ["gni", "rdma"];

/// Numbers that the table has as text, because they may be lists: the largest that is taken.
const TEXTS: [(&str, u64); 3] =
    [("PMI_GNI_DEV_ID", u32::MAX as u64), ("PMI_GNI_PTAG", 255), ("PMI_GNI_COOKIE", u32::MAX as u64)];

/// Memory that is registered: its largest value is in its limits, and more than any machine allows.
const REGISTERED: &str = "GASNET_GNI_BOUNCE_SIZE";

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("judge/limits-have-two-sides", |_| limits_have_two_sides()),
        Case::new("bad-input/limits/all-are-known", all_are_known),
    ];
    for setting in all().filter(|setting| has_limits(setting)) {
        cases.push(Case::new(format!("bad-input/limits/{}", setting.name), move |log| {
            limits(log, setting.name)
        }));
    }
    cases
}

/// The rows of the table that these crates read.
fn all() -> impl Iterator<Item = &'static Setting> {
    gasworks_gni::SETTINGS.iter().chain(gasworks_rdma::SETTINGS)
}

/// Shares of memory have cases of their own among bad input; other texts have no limits.
fn has_limits(setting: &Setting) -> bool {
    let is_number = TEXTS.iter().any(|(name, _)| *name == setting.name);
    is_number || !matches!(setting.kind, Kind::Text | Kind::Share)
}

/// What `gasrun --env` prints where nothing is set.
fn printed() -> Result<String> {
    Cmd::new("env").arg("-i").arg(release()?.program("gasrun")?).arg("--env").read()
}

/// The values at the limits of a setting, and those beyond, by what `gasrun --env` prints of its values.
fn edges(name: &str, values: &str) -> Result<(Vec<String>, Vec<String>)> {
    if let Some((_, max)) = TEXTS.iter().find(|(text, _)| *text == name) {
        return Ok((Vec::new(), vec![(max + 1).to_string(), "-1".into(), "several".into()]));
    }
    let number = values.strip_prefix("number, ").or_else(|| values.strip_prefix("size in bytes, "));
    if let Some(range) = number {
        let range = range.split(" (").next().unwrap_or(range);
        let (min, max) = range.split_once(" to ").with_context(|| format!("{values:?} are no limits"))?;
        let (min, max): (u64, u64) = (min.parse()?, max.parse()?);
        let below = min.checked_sub(1).map_or("-1".to_owned(), |below| below.to_string());
        let beyond = vec![below, (max + 1).to_string(), "several".into(), format!("{min}x")];
        return Ok((vec![min.to_string(), max.to_string()], beyond));
    }
    if let Some(words) = values.strip_prefix("one of ") {
        let words = words.split(", ").filter(|word| !word.is_empty()).map(str::to_owned);
        return Ok((words.collect(), vec!["none of them".into()]));
    }
    ensure!(values == "0 or 1", "nobody knows the limits of {values:?}");
    Ok((vec!["0".into(), "1".into()], vec!["2".into(), "perhaps".into()]))
}

/// Runs a job for each value at the limits of a setting, and for each beyond. It has one rank, because each rank refuses a
/// value by itself.
fn limits(log: &Log, name: &str) -> Result<()> {
    let text = printed()?;
    let table = settings::parse(&text)?;
    let setting = table.iter().find(|setting| setting.name == name);
    let (within, beyond) = edges(name, setting.context("gasrun --env does not print it")?.values)?;
    let job =
        |value: &str| -> Result<Cmd> { Ok(suite(1, "par")?.words("--silent").env(name, value).limit(60)) };
    for value in within {
        if name == REGISTERED && value != "0" {
            let ended = log.run(&job(&value)?)?;
            ensure!(ended.code().context("it did not end")? != 0, "{name}={value} is taken");
            told_once(&ended.output, &["the setting GASNET_PHYSMEM_MAX", "allows a rank"])?;
            continue;
        }
        log.run_ok(&job(&value)?).with_context(|| format!("{name}={value}"))?;
    }
    for value in beyond {
        let refused = || -> Result<()> {
            let ended = log.run(&job(&value)?)?;
            ensure!(ended.code().context("it did not end")? != 0, "it is taken");
            told_once(&ended.output, &[&format!("{name}={value:?}")])
        };
        refused().with_context(|| format!("{name}={value}"))?;
    }
    Ok(())
}

/// `gasrun --env` prints the settings that have cases here, and the limits of each are known.
fn all_are_known(_: &Log) -> Result<()> {
    let text = printed()?;
    let table = settings::parse(&text)?;
    let read_here: Vec<_> = table.iter().filter(|setting| READERS.contains(&setting.reader)).collect();
    let printed: BTreeSet<_> = read_here.iter().map(|setting| setting.name).collect();
    let declared: BTreeSet<_> = all().map(|setting| setting.name).collect();
    ensure!(printed == declared, "printed: {printed:?}; declared: {declared:?}");
    let mut tried = 0;
    for setting in all().filter(|setting| has_limits(setting)) {
        let values = read_here.iter().find(|printed| printed.name == setting.name).map_or("", |s| s.values);
        let (within, beyond) = edges(setting.name, values).with_context(|| setting.name)?;
        tried += within.len() + beyond.len();
    }
    ensure!(tried > 100, "only {tried} values are tried");
    Ok(())
}

fn limits_have_two_sides() -> Result<()> {
    let of = |values| edges("SOME", values);
    assert_eq!(of("number, 2 to 16 (events)")?.0, ["2", "16"]);
    assert_eq!(of("number, 2 to 16 (events)")?.1, ["1", "17", "several", "2x"]);
    assert_eq!(of("size in bytes, 0 to 9")?.1[..2], ["-1", "10"]);
    assert_eq!(of("one of , 0, 1")?.0, ["0", "1"]);
    assert_eq!(edges("PMI_GNI_PTAG", "text")?.1[0], "256");
    assert!(of("text").is_err());
    assert!(of("number, from here on").is_err());
    Ok(())
}
