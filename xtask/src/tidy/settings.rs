//! The book's page of settings, which `gasrun --env=markdown` prints from the one table.

use crate::scan::Tree;
use anyhow::{Context, Result, bail};

const PAGE: &str = "docs/src/reference/settings.md";

/// The page as the table has it.
fn generated() -> Result<String> {
    bail!("not yet")
}

/// How the committed page differs from the generated one.
pub fn page(tree: &Tree) -> Result<Vec<String>> {
    let wanted = generated()?;
    let Some(committed) = tree.get(PAGE) else { return Ok(vec![format!("{PAGE} is missing: {HOW}")]) };
    Ok(differs(&committed.text, &wanted))
}

const HOW: &str = "run `cargo xtask tidy --write`";

fn differs(committed: &str, wanted: &str) -> Vec<String> {
    let lines = committed.lines().zip(wanted.lines());
    let first = lines.clone().take_while(|(a, b)| a == b).count();
    if committed == wanted {
        Vec::new()
    } else {
        vec![format!("{PAGE}:{}: not as generated: {HOW}", first + 1)]
    }
}

/// Writes the generated page.
pub fn write() -> Result<()> {
    let path = crate::root().join(PAGE);
    std::fs::write(&path, generated()?).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_line_that_differs_is_named() {
        assert!(super::differs("a\nb\n", "a\nb\n").is_empty());
        assert!(super::differs("a\nb\n", "a\nc\n")[0].contains("settings.md:2:"));
        assert!(super::differs("a\n", "a\nc\n")[0].contains("settings.md:2:"));
    }
}
