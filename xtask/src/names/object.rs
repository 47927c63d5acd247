//! What a function or variable of an object needs, and what it needs in turn.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Which symbols the sections of an object refer to. Each function and variable is in a section of its own.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Of a section's name.
    refers: BTreeMap<String, BTreeSet<String>>,
    /// The section that a symbol is in.
    sections: BTreeMap<String, String>,
}

impl Object {
    /// As `readelf -SrsW` shows it.
    pub fn of(shown: &str) -> Self {
        let (mut object, mut numbers, mut section) = (Self::default(), BTreeMap::new(), None);
        for line in shown.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let Some((number, rest)) =
                line.trim_start().strip_prefix('[').and_then(|line| line.split_once(']'))
            {
                let name = rest.split_whitespace().next().unwrap_or_default();
                numbers.insert(number.trim().to_owned(), name.to_owned());
            } else if let Some(rest) = line.strip_prefix("Relocation section '.rela") {
                section = rest.split_once('\'').map(|(name, _)| name.to_owned());
            } else if line.starts_with("Symbol table") {
                section = None;
            } else if let (Some(section), [_, _, kind, _, symbol, ..]) = (&section, &words[..])
                && kind.starts_with("R_")
            {
                object.refers.entry(section.clone()).or_default().insert((*symbol).to_owned());
            } else if let [_, _, _, _, _, _, number, symbol] = words[..]
                && let Some(name) = numbers.get(number)
            {
                object.sections.insert(symbol.to_owned(), name.clone());
            }
        }
        object
    }

    /// Whether it defines a symbol.
    pub fn defines(&self, symbol: &str) -> bool {
        self.sections.contains_key(symbol)
    }

    /// The symbols of others that one of its own needs.
    pub fn needs(&self, symbol: &str) -> BTreeSet<&str> {
        let (mut needs, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut next: Vec<&str> = self.sections.get(symbol).map(String::as_str).into_iter().collect();
        while let Some(section) = next.pop() {
            if !seen.insert(section) {
                continue;
            }
            for other in self.refers.get(section).into_iter().flatten() {
                match self.sections.get(other) {
                    Some(section) => next.push(section),
                    // The section itself, by its name.
                    None if other.starts_with('.') => next.push(other),
                    None => drop(needs.insert(other.as_str())),
                }
            }
        }
        needs
    }
}

/// The symbols that a linker has not found, as it says.
pub fn undefined(said: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for line in said.lines().filter(|line| line.contains("undefined")) {
        let after = line.split_once("undefined reference").map(|(_, after)| after);
        let name = after.and_then(|after| after.split_once('`')?.1.split_once('\''));
        let (name, _) = name.with_context(|| format!("the linker says {line:?}"))?;
        found.insert(name.to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "\
Section Headers:
  [Nr] Name              Type            Address          Off    Size   ES Flg Lk Inf Al
  [ 0]                   NULL            0000000000000000 000000 000000 00      0   0  0
  [ 1] .text.names_use_1 PROGBITS        0000000000000000 000040 000010 00  AX  0   0  1
  [ 2] .rela.text.names_use_1 RELA       0000000000000000 000100 000030 18   I  9   1  8
  [ 3] .text.gex_Wait    PROGBITS        0000000000000000 000050 000010 00  AX  0   0  1
  [10] .data.names_use_2 PROGBITS        0000000000000000 000060 000008 00  WA  0   0  8

Relocation section '.rela.text.names_use_1' at offset 0x100 contains 2 entries:
    Offset             Info             Type               Symbol's Value  Symbol's Name + Addend
0000000000000003  0000000500000002 R_X86_64_PC32          0000000000000000 .text.gex_Wait - 4
0000000000000008  0000000600000002 R_X86_64_PC32          0000000000000000 names_value - 4

Relocation section '.rela.text.gex_Wait' at offset 0x130 contains 2 entries:
    Offset             Info             Type               Symbol's Value  Symbol's Name + Addend
0000000000000001  0000000700000004 R_X86_64_PLT32         0000000000000000 gasworks_wait - 4
0000000000000001  0000000700000004 R_X86_64_PLT32         0000000000000000 names_use_1 - 4

Symbol table '.symtab' contains 5 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     5 FUNC    LOCAL  DEFAULT    3 gex_Wait
     2: 0000000000000000    16 FUNC    GLOBAL DEFAULT    1 names_use_1
     3: 0000000000000000     8 OBJECT  GLOBAL DEFAULT   10 names_use_2
     4: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND gasworks_wait
";

    #[test]
    fn what_a_function_needs_is_found_through_others() {
        let object = Object::of(SHOWN);
        assert_eq!(object.needs("names_use_1"), BTreeSet::from(["gasworks_wait", "names_value"]));
        assert!(object.needs("names_use_2").is_empty());
        assert!(object.defines("names_use_2") && !object.defines("gasworks_wait"));
    }

    #[test]
    fn what_is_undefined_is_read_of_what_the_linker_says() {
        let said = "ld: a.o: in function `names_use_1':\n\
                    a.c:(.text.gex_Wait+0x1): warning: undefined reference to `gasworks_wait'\n\
                    ld: warning: undefined reference to `gasworks_wait'\n\
                    ld: a.o: warning: more undefined references to `gex_A' follow\n";
        let wanted = BTreeSet::from(["gasworks_wait".to_owned(), "gex_A".to_owned()]);
        assert_eq!(undefined(said).unwrap(), wanted);
        assert!(undefined("ld: undefined reference\n").is_err());
    }
}
