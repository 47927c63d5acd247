//! `ci/budgets`: the minutes that each group of rows may take. Over it warns, over three times fails.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::time::Duration;

/// The lines of `ci/budgets`.
#[derive(Debug, Default)]
pub struct Budgets {
    minutes: BTreeMap<String, f64>,
}

impl Budgets {
    /// Reads the committed file.
    pub fn load() -> Result<Self> {
        let path = crate::root().join("ci/budgets");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut minutes = BTreeMap::new();
        for (number, group, value) in crate::pairs_of(text) {
            let Some(value) = value.and_then(|v| v.parse().ok()).filter(|v| *v > 0.0) else {
                bail!("ci/budgets, line {number}: wanted `GROUP : MINUTES`");
            };
            minutes.insert(group.to_owned(), value);
        }
        Ok(Self { minutes })
    }

    /// Groups among `groups` that have no budget.
    pub fn without<'a>(&self, groups: &[&'a str]) -> Vec<&'a str> {
        groups.iter().copied().filter(|g| !self.minutes.contains_key(*g)).collect()
    }

    /// A warning if the group took longer than its budget, an error if three times as long.
    pub fn judge(&self, group: &str, took: Duration) -> Result<Option<String>> {
        let Some(&minutes) = self.minutes.get(group) else { return Ok(None) };
        let used = took.as_secs_f64() / 60.0;
        let text = format!("{group} took {used:.1} min; its budget in ci/budgets is {minutes} min");
        if used > 3.0 * minutes {
            bail!("{text}, and three times that is too much");
        }
        Ok((used > minutes).then_some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_warns_and_three_times_over_fails() {
        let budgets = Budgets::parse("unit : 2\n").unwrap();
        let judge = |seconds| budgets.judge("unit", Duration::from_secs(seconds));
        assert!(judge(119).unwrap().is_none());
        assert!(judge(121).unwrap().unwrap().contains("2.0 min"));
        assert!(judge(361).is_err());
        assert_eq!(budgets.without(&["unit", "loom"]), ["loom"]);
        assert!(Budgets::parse("unit: soon").unwrap_err().to_string().contains("line 1"));
    }
}
