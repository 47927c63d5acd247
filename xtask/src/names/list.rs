//! `crates/capi/names.csv`: every public name, with a use of it.

use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::path::PathBuf;

const FILE: &str = "crates/capi/names.csv";
const COLUMNS: [&str; 6] = ["name", "kind", "area", "optional", "status", "use"];

/// What a name is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Type,
    Constant,
    Variable,
    Function,
    Macro,
}

impl Kind {
    const ALL: [(&str, Self); 5] = [
        ("type", Self::Type),
        ("constant", Self::Constant),
        ("variable", Self::Variable),
        ("function", Self::Function),
        ("macro", Self::Macro),
    ];

    pub fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// Who defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The headers.
    Headers,
    /// The headers, or nobody: that it is undefined says something, too.
    Maybe,
    /// The program, before it includes them.
    Program,
}

impl By {
    const ALL: [(&str, Self); 3] =
        [("", Self::Headers), ("undefined", Self::Maybe), ("program", Self::Program)];
}

/// A name of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub kind: Kind,
    pub area: String,
    pub by: By,
    /// Whether the list allows that it is declared and no more.
    pub declared: bool,
    /// A function's type; or a statement; behind `@` what stands outside of functions; behind `#if` what holds of it; from `-`
    /// on what the compiler is told, of a name that the program defines. Nothing where its kind says how it is used.
    pub use_: String,
}

impl Name {
    /// Whether its use stands outside of functions, or is the preprocessor's.
    pub fn is_outside(&self) -> bool {
        self.use_.starts_with(['@', '#'])
    }

    /// The names that the preprocessor has for it: that one, or those that begin so.
    pub fn is_defined(&self, macros: &BTreeSet<String>) -> bool {
        let plain = self.name.replace("[M]", "");
        match plain.strip_suffix('*') {
            Some(start) => {
                macros.range(start.to_owned()..).next().is_some_and(|found| found.starts_with(start))
            }
            None => macros.contains(&plain),
        }
    }
}

fn path() -> PathBuf {
    crate::root().join(FILE)
}

/// The list.
pub fn read() -> Result<Vec<Name>> {
    let text = std::fs::read_to_string(path()).with_context(|| format!("reading {FILE}"))?;
    parsed(&text).with_context(|| FILE.to_owned())
}

/// Writes it.
pub fn write(names: &[Name]) -> Result<()> {
    std::fs::write(path(), text(names)).with_context(|| format!("writing {FILE}"))
}

fn parsed(text: &str) -> Result<Vec<Name>> {
    let mut rows = rows(text)?.into_iter();
    ensure!(rows.next().is_some_and(|row| row == COLUMNS), "the columns are {}", COLUMNS.join(","));
    let names: Vec<_> = rows.map(|row| name(&row).with_context(|| row.join(","))).collect::<Result<_>>()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(&name.name)) {
        bail!("{} is there twice", twice.name);
    }
    Ok(names)
}

fn name(row: &[String]) -> Result<Name> {
    let [name, kind, area, optional, status, use_] = row else {
        bail!("it has {} columns", row.len());
    };
    let kind = Kind::ALL.into_iter().find(|(word, _)| word == kind).context("there is no such kind")?.1;
    let by = By::ALL.into_iter().find(|(word, _)| word == optional).context("nobody so defines names")?.1;
    ensure!(status.is_empty() || status == "declared", "there is no status {status:?}");
    ensure!(
        use_.starts_with('-') == (by == By::Program),
        "what a program defines has words for the compiler"
    );
    ensure!(kind != Kind::Function || !use_.is_empty(), "a function has a type");
    let is_type = kind == Kind::Function && !use_.ends_with(';');
    let start = name.split(['[', '*']).next().unwrap_or_default();
    ensure!(is_type || use_.is_empty() || use_.contains(start), "its use is another's");
    let (name, area, use_) = (name.clone(), area.clone(), use_.clone());
    Ok(Name { name, kind, area, by, declared: !status.is_empty(), use_ })
}

fn text(names: &[Name]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for name in names {
        let by = By::ALL.into_iter().find(|(_, by)| *by == name.by).map_or("", |(word, _)| word);
        let status = if name.declared { "declared" } else { "" };
        let fields = [&name.name, name.kind.word(), &name.area, by, status, &name.use_];
        text += &fields.map(quoted).join(",");
        text.push('\n');
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

/// The fields of lines; one in quotes may have commas, and a quote twice.
fn rows(text: &str) -> Result<Vec<Vec<String>>> {
    text.lines()
        .enumerate()
        .map(|(at, line)| fields(line).with_context(|| format!("line {}", at + 1)))
        .collect()
}

fn fields(line: &str) -> Result<Vec<String>> {
    let (mut fields, mut field, mut inside) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if inside && rest.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => inside = !inside,
            ',' if !inside => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    ensure!(!inside, "a quote is left open");
    fields.push(field);
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name,kind,area,optional,status,use\n\
                        gex_A,function,events,,declared,\"int(int, const char *)\"\n\
                        GEX_B[M],macro,events,undefined,,\"GEX_B(\"\"x\"\", 1);\"\n";

    #[test]
    fn the_list_is_read_and_written_as_it_is() {
        let names = parsed(TEXT).unwrap();
        assert_eq!((names[0].use_.as_str(), names[0].declared), ("int(int, const char *)", true));
        assert_eq!((names[1].use_.as_str(), names[1].by), ("GEX_B(\"x\", 1);", By::Maybe));
        assert_eq!(text(&names), TEXT);
        assert_eq!(text(&read().unwrap()), std::fs::read_to_string(path()).unwrap());
    }

    #[test]
    fn what_is_wrong_with_a_line_is_found() {
        for line in [
            "gex_A,function,events,,,int(void)",
            "gex_C,functional,events,,,int(void)",
            "gex_C,function,events,,,",
            "gex_C,macro,events,sometimes,,",
            "gex_C,macro,events,program,,",
            "gex_C,macro,events,,works,",
            "gex_C,macro,events,,",
            "gex_C,macro,events,,,D(1);",
            "gex_C,macro,events,,,\"C(",
        ] {
            assert!(parsed(&format!("{TEXT}{line}\n")).is_err(), "{line}");
        }
    }

    #[test]
    fn a_name_with_a_star_is_any_that_begins_so() {
        let mut name = parsed(TEXT).unwrap().remove(1);
        let macros: BTreeSet<String> = ["GEX_A", "GEX_B", "GEX_CD"].map(Into::into).into();
        assert!(name.is_defined(&macros));
        for (text, is) in [("GEX_C*", true), ("GEX_D*", false), ("GEX_C", false)] {
            name.name = text.into();
            assert_eq!(name.is_defined(&macros), is, "{text}");
        }
    }
}
