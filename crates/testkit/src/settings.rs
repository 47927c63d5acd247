//! Reading the table of settings that `gasrun --env` prints.

use anyhow::{Context, Result, ensure};

/// A setting as `gasrun --env` prints it.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The environment variable.
    pub name: &'a str,
    /// The default, or an empty string.
    pub default: &'a str,
    /// Which values it takes, such as `number, 1 to 9 (requests)`.
    pub values: &'a str,
    /// What it means.
    pub meaning: &'a str,
    /// The crate or program that reads it.
    pub reader: &'a str,
    /// Other variables that set it, with `, ` between them.
    pub aliases: &'a str,
}

/// Parses what `gasrun --env` printed: three lines for each setting, none of which may be set.
pub fn parse(text: &str) -> Result<Vec<Setting<'_>>> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut found = Vec::new();
    for block in lines.chunks(3) {
        let setting = (|| {
            let [first, meaning, last] = block else { return None };
            let (name, value) = first.split_once(" = ")?;
            let (values, rest) = last.trim().split_once("; read by ")?;
            let (reader, aliases) = rest.split_once("; also ").unwrap_or((rest, ""));
            let default = value.strip_suffix(" (default)").or((value == "unset").then_some(""))?;
            Some(Setting { name, default, values, meaning: meaning.trim(), reader, aliases })
        })();
        found.push(setting.with_context(|| format!("gasrun --env printed what is no setting: {block:?}"))?);
    }
    ensure!(!found.is_empty(), "gasrun --env printed no setting");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_are_a_setting() {
        let text = "A = 12 (default)\n    what a does\n    number, 1 to 9 (requests); read by core\n\
                    B = unset\n    what b does\n    text; read by pshm; also C, D\n";
        let wanted = [
            Setting {
                name: "A",
                default: "12",
                values: "number, 1 to 9 (requests)",
                meaning: "what a does",
                reader: "core",
                aliases: "",
            },
            Setting {
                name: "B",
                default: "",
                values: "text",
                meaning: "what b does",
                reader: "pshm",
                aliases: "C, D",
            },
        ];
        assert_eq!(parse(text).unwrap(), wanted);
    }

    #[test]
    fn what_is_no_setting_is_an_error() {
        assert!(parse("A = 12 (set)\n  x\n  y; read by z\n").is_err());
        assert!(parse("").is_err());
        assert!(parse("A\n").unwrap_err().to_string().contains("[\"A\"]"));
    }
}
