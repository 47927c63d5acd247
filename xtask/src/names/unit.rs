//! A file in C or C++ that uses names, each in lines of its own and by what is called after its number.

use super::list::{Kind, Name};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;

/// Which names are whose header's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Ex,
    Legacy,
    Tools,
}

impl Header {
    pub const ALL: [Self; 3] = [Self::Ex, Self::Legacy, Self::Tools];

    pub fn of(area: &str) -> Self {
        match area {
            "GASNet-1" => Self::Legacy,
            _ if area.starts_with("tools: ") => Self::Tools,
            _ => Self::Ex,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Ex => "gasnetex",
            Self::Legacy => "gasnet",
            Self::Tools => "gasnet_tools",
        }
    }

    /// What a program includes for it. That of the tools comes second in a program of GASNet.
    fn includes(self) -> &'static str {
        match self {
            Self::Ex => "#include <gasnetex.h>\n",
            Self::Legacy => "#include <gasnet.h>\n",
            Self::Tools => "#include <gasnetex.h>\n#include <gasnet_tools.h>\n#define NAMES_OF_TOOLS\n",
        }
    }

    /// A file that includes it alone.
    pub fn alone(self) -> String {
        format!("#include <{}.h>\nint main(void) {{ return 0; }}\n", self.word())
    }
}

/// A file, and of each of its lines which name it is for.
#[derive(Debug)]
pub struct Unit {
    pub text: String,
    lines: Vec<Option<usize>>,
}

/// What a name's use is called.
pub fn symbol(number: usize) -> String {
    format!("names_use_{number}")
}

impl Unit {
    /// Of names, each with its number.
    pub fn of(header: Header, names: &[(usize, &Name)]) -> Self {
        let mut unit = Self { text: String::new(), lines: Vec::new() };
        unit.push(None, header.includes());
        unit.push(None, include_str!("prelude.h"));
        for &(number, name) in names {
            unit.push(Some(number), &used(number, name));
        }
        unit.push(None, "#ifdef __cplusplus\n}\n#endif\n");
        unit
    }

    fn push(&mut self, number: Option<usize>, text: &str) {
        self.text += text;
        self.lines.resize(self.lines.len() + text.lines().count(), number);
    }

    /// The names whose lines a compiler says something against, as file `shown`.
    pub fn wrong(&self, said: &str, shown: &str) -> Result<BTreeSet<usize>> {
        let mut wrong = BTreeSet::new();
        for line in said.lines().filter(|line| line.contains("error: ")) {
            let at = line.strip_prefix(shown).and_then(|rest| rest.strip_prefix(':'));
            let at = at.and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
            match at.and_then(|at| self.lines.get(at.checked_sub(1)?).copied().flatten()) {
                Some(number) => wrong.insert(number),
                None => bail!("it is no name's fault: {line}"),
            };
        }
        ensure!(!wrong.is_empty(), "the compiler does not say what is wrong");
        Ok(wrong)
    }
}

/// A use that fits a name's kind.
fn used(number: usize, name: &Name) -> String {
    let (symbol, plain) = (symbol(number), &name.name);
    let function = |body: &str| format!("void {symbol}(void); void {symbol}(void) {{ {body} }}\n");
    if let Some(condition) = name.use_.strip_prefix("#if ") {
        return format!("#if !({condition})\n#error {plain}\n#endif\n");
    }
    if let Some(outside) = name.use_.strip_prefix('@') {
        return format!("{outside}\n");
    }
    match name.kind {
        Kind::Function if !name.use_.ends_with(';') => {
            let (returns, takes) = name.use_.split_once('(').unwrap_or((&name.use_, ")"));
            function(&format!(
                "{returns} (*address)({takes} = {plain}; names_function = (void (*)(void))address;"
            ))
        }
        _ if !name.use_.is_empty() => function(&name.use_),
        Kind::Type => function(&format!("{plain} *one = NULL; names_value = sizeof *one + (uintptr_t)one;")),
        // A constant is one before the program begins.
        Kind::Constant => {
            format!("extern const uintptr_t {symbol}; const uintptr_t {symbol} = (uintptr_t)({plain});\n")
        }
        Kind::Variable => function(&format!("names_value = (uintptr_t)&{plain};")),
        Kind::Function | Kind::Macro => function(&format!("names_value = (uintptr_t)({plain});")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::list::By;

    fn name(kind: Kind, use_: &str) -> Name {
        let (name, area) = ("gex_A".to_owned(), "events".to_owned());
        Name { name, kind, area, by: By::Headers, declared: false, use_: use_.into() }
    }

    #[test]
    fn a_use_fits_its_kind() {
        for (kind, use_, wanted) in [
            (Kind::Function, "int(int, char *)", "int (*address)(int, char *) = gex_A; names_function"),
            (Kind::Function, "gex_A(1);", "void names_use_7(void) { gex_A(1); }"),
            (Kind::Type, "", "gex_A *one = NULL;"),
            (Kind::Constant, "", "const uintptr_t names_use_7 = (uintptr_t)(gex_A);"),
            (Kind::Constant, "#if gex_A > 1", "#if !(gex_A > 1)\n#error gex_A\n#endif\n"),
            (Kind::Variable, "", "(uintptr_t)&gex_A;"),
            (Kind::Macro, "", "names_value = (uintptr_t)(gex_A);"),
            (Kind::Macro, "@gex_A(x);", "gex_A(x);\n"),
        ] {
            let text = used(7, &name(kind, use_));
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    #[test]
    fn whose_fault_it_is_is_found() {
        let names = [name(Kind::Macro, "#if gex_A"), name(Kind::Type, "")];
        let unit = Unit::of(Header::Ex, &[(3, &names[0]), (5, &names[1])]);
        let line = |what: &str| unit.text.lines().position(|line| line.contains(what)).unwrap() + 1;
        let (first, second) = (line("#error"), line("sizeof *one"));
        let said =
            format!("u.c:{second}:9: error: no\nu.c: In function 'x':\nu.c:{first}:2: error: #error gex_A\n");
        assert_eq!(unit.wrong(&said, "u.c").unwrap(), BTreeSet::from([3, 5]));
        assert!(unit.wrong("", "u.c").is_err());
        for other in ["u.c:1:1: error: no", "gasnetex.h:7:1: error: no", "u.c:99999:1: error: no"] {
            assert!(unit.wrong(&format!("{said}{other}\n"), "u.c").is_err(), "{other}");
        }
    }
}
