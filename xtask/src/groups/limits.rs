//! The limits of each setting that the transport over uGNI reads, as `gasrun --env` tells them: what is at a limit is taken, and what is
//! beyond is refused by name.

use super::{gni, input};
use crate::exec::{Cmd, Log};
use crate::rows::Row;
use crate::tidy::settings;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};

/// Who reads them.
const READERS: [&str; 2] = ["gni", "rdma"];

/// Numbers that the table has as text, for they may be lists: the largest that is taken.
const TEXTS: [(&str, u64); 3] =
    [("PMI_GNI_DEV_ID", u32::MAX as u64), ("PMI_GNI_PTAG", 255), ("PMI_GNI_COOKIE", u32::MAX as u64)];

pub fn row() -> Row {
    Row::new("gni/bad-input/limits", limits)
}

/// What is at the limits of a setting with these values, and what is beyond.
fn edges(values: &str) -> Result<(Vec<String>, Vec<String>)> {
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
    Ok(match values {
        "0 or 1" => (vec!["0".into(), "1".into()], vec!["2".into(), "perhaps".into()]),
        _ => Default::default(),
    })
}

fn limits(world: &World, log: &Log) -> Result<()> {
    // As few ranks as there can be: what is refused is refused by each.
    let job = |variable: &str, value: &str| -> Result<Cmd> {
        Ok(gni::suite(world, log, 1, "par")?.words("--silent").env(variable, value).limit(60))
    };
    let built = world.built(Build::Release)?;
    let table = Cmd::new("env").arg("-i").arg(built.program("gasrun")?).arg("--env").read()?;
    let table = settings::shown(&table)?;
    let mut cases = Vec::new();
    for setting in table.iter().filter(|setting| READERS.contains(&setting.reader)) {
        let (within, beyond) = edges(setting.values)?;
        let known = !within.is_empty() || setting.values == "text" || setting.name == "GASNET_PHYSMEM_MAX";
        ensure!(known, "{}: nobody knows the limits of {:?}", setting.name, setting.values);
        cases.push((setting.name, within, beyond));
    }
    for (name, max) in TEXTS {
        ensure!(table.iter().any(|setting| setting.name == name), "{name} is no setting");
        cases.push((name, Vec::new(), vec![(max + 1).to_string(), "-1".into(), "several".into()]));
    }
    for (name, within, beyond) in &cases {
        for value in within {
            log.run_ok(&job(name, value)?).with_context(|| format!("{name}={value}"))?;
        }
        for value in beyond {
            let ended = log.run(&job(name, value)?)?;
            let status = ended.status.with_context(|| format!("{name}={value}: it did not end"))?;
            ensure!(!status.success(), "{name}={value} is taken");
            input::told_once(&ended.output, &[&format!("{name}={value:?}")])
                .with_context(|| format!("{name}={value}"))?;
        }
    }
    let tried: usize = cases.iter().map(|(_, within, beyond)| within.len() + beyond.len()).sum();
    ensure!(tried > 100, "only {tried} values were tried");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::edges;

    #[test]
    fn limits_have_two_sides() {
        let of = |values| edges(values).expect("they are known");
        assert_eq!(of("number, 2 to 16 (events)").0, ["2", "16"]);
        assert_eq!(of("number, 2 to 16 (events)").1, ["1", "17", "several", "2x"]);
        assert_eq!(of("size in bytes, 0 to 9").1[..2], ["-1", "10"]);
        assert_eq!(of("one of , 0, 1").0, ["0", "1"]);
        assert_eq!(of("text"), Default::default());
        assert!(edges("number, from here on").is_err());
    }
}
