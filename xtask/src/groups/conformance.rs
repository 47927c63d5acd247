//! The conformance suite over every transport, the examples, and the demo.

use super::Extent;
use crate::exec::Cmd;
use crate::leftovers::Leftovers;
use crate::matrix::{pairwise, product};
use crate::rows::Row;
use crate::world::{Build, Built, World};
use anyhow::{Context, Result, ensure};

const TRANSPORTS: [&str; 3] = ["pshm", "simnet", "simnet-unmapped"];
const MODES: [&str; 3] = ["seq", "par", "parsync"];
const RANKS: [usize; 4] = [1, 2, 4, 7];
const BUILDS: [Build; 2] = [Build::Debug, Build::Release];

/// Cases that the suite has at least: for a job of any size, more from two ranks on, and more that SimNet alone runs
/// beside them, once for each seed. Who adds cases need not count here; who loses some is told.
const CASES: usize = 46;
const FROM_TWO_RANKS: usize = 4;
const SPECIAL: usize = 7;
const SEEDS: usize = 4;

/// An error unless the suite's last line counts as many cases as there are.
pub fn enough(output: &str, transport: &str, ranks: usize) -> Result<()> {
    let each = CASES + if ranks > 1 { FROM_TWO_RANKS } else { 0 };
    let floor = if transport == "pshm" { each } else { SEEDS * (each + SPECIAL) };
    let last = output.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" cases passed").and_then(|count| count.parse::<usize>().ok());
    let count = count.with_context(|| format!("the suite's last line does not count its cases: {last:?}"))?;
    ensure!(
        count >= floor,
        "{count} cases passed; over {transport} on {ranks} ranks there are {floor} or more"
    );
    Ok(())
}

/// A cell of the matrix.
#[derive(Clone, Copy)]
struct Cell {
    transport: &'static str,
    mode: &'static str,
    ranks: usize,
    build: Build,
}

fn cells(extent: Extent) -> Vec<Cell> {
    let sizes = [TRANSPORTS.len(), MODES.len(), RANKS.len(), BUILDS.len()];
    let picks = if extent == Extent::Nightly { product(&sizes) } else { pairwise(&sizes) };
    let mut cells: Vec<_> = picks
        .iter()
        .map(|p| Cell {
            transport: TRANSPORTS[p[0]],
            mode: MODES[p[1]],
            ranks: RANKS[p[2]],
            build: BUILDS[p[3]],
        })
        .collect();
    cells.sort_by_key(|c| (c.build, c.transport, c.mode, c.ranks));
    cells.push(Cell { transport: "pshm", mode: "seq", ranks: 64, build: Build::Release });
    cells
}

/// Ways of running that are settings: what the row is called, the mode, the setting and its value.
const WAYS: [(&str, &str, &str, &str); 3] = [
    ("progress-thread", "par", "GASWORKS_PROGRESS_THREAD", "1"),
    ("wait-block", "seq", "GASWORKS_WAIT", "block"),
    ("wait-spin", "seq", "GASWORKS_WAIT", "spin"),
];

fn ways() -> impl Iterator<Item = Row> {
    WAYS.into_iter().map(|(name, mode, setting, value)| {
        Row::new(format!("conformance/pshm/{mode}/2/{name}"), move |world, log| {
            let cell = Cell { transport: "pshm", mode, ranks: 2, build: Build::Debug };
            let leftovers = Leftovers::before();
            let ended = log.run_ok(&command(world, cell)?.env(setting, value))?;
            leftovers.check()?;
            enough(&ended.output, "pshm", 2)
        })
    })
}

/// The suite in jobs whose segments are attached when they are open.
fn attached() -> impl Iterator<Item = Row> {
    ["seq", "parsync"].into_iter().map(|mode| {
        Row::new(format!("conformance/pshm/{mode}/3/attached"), move |world, log| {
            let cell = Cell { transport: "pshm", mode, ranks: 3, build: Build::Debug };
            let leftovers = Leftovers::before();
            let ended = log.run_ok(&command(world, cell)?.arg("--attach"))?;
            leftovers.check()?;
            enough(&ended.output, "pshm", 3)
        })
    })
}

/// The suite in jobs that are observed: whatever goes through the decorators arrives as without them.
fn observed() -> impl Iterator<Item = Row> {
    ["seq", "par"].into_iter().map(|mode| {
        let name = format!("conformance/pshm/{mode}/4/observed");
        Row::new(name.clone(), move |world, log| {
            let (built, dir) = (world.built(Build::Debug)?, world.scratch(&name)?);
            let suite =
                built.gasrun_with(4, "--stats=counts.json --trace trace.json", "gasworks-conformance")?;
            let leftovers = Leftovers::before();
            let ended = log.run_ok(&suite.words(&format!("--mode {mode}")).dir(&dir))?;
            leftovers.check()?;
            for (file, wanted) in [("counts.json", "short request handled"), ("trace.json", r#""ph":"s""#)] {
                let text =
                    std::fs::read_to_string(dir.join(file)).with_context(|| format!("reading {file}"))?;
                ensure!(text.contains(wanted), "{file} holds no {wanted:?}: {} bytes", text.len());
            }
            enough(&ended.output, "pshm", 4)
        })
    })
}

pub fn rows(extent: Extent) -> Vec<Row> {
    let cells = cells(extent).into_iter().map(|cell| {
        let Cell { transport, mode, ranks, build } = cell;
        let name = format!("conformance/{transport}/{mode}/{ranks}/{}", build.name());
        Row::new(name, move |world, log| {
            let leftovers = Leftovers::before();
            let ended = log.run_ok(&command(world, cell)?)?;
            leftovers.check()?;
            enough(&ended.output, transport, ranks)
        })
    });
    cells.chain(ways()).chain(attached()).chain(observed()).collect()
}

fn command(world: &World, cell: Cell) -> Result<Cmd> {
    let built = world.built(cell.build)?;
    let cmd = match cell.transport {
        "pshm" => built.gasrun(cell.ranks, "gasworks-conformance")?,
        simnet => return self::simnet(&built, simnet, cell.mode, cell.ranks),
    };
    Ok(cmd.words(&format!("--mode {}", cell.mode)))
}

/// The suite over `SimNet`, whose ranks are threads of one process.
pub fn simnet(built: &Built, transport: &str, mode: &str, ranks: usize) -> Result<Cmd> {
    let mapped = if transport == "simnet-unmapped" { "--unmapped" } else { "" };
    let words = format!("--transport simnet {mapped} --ranks {ranks} --mode {mode}");
    Ok(Cmd::new(built.program("gasworks-conformance")?).words(&words).limit(150))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_runs_too_little_is_found() {
        assert!(enough("case a ok\n50 cases passed\n", "pshm", 2).is_ok());
        assert!(enough("46 cases passed\n", "pshm", 1).is_ok());
        assert!(enough("46 cases passed\n", "pshm", 2).unwrap_err().to_string().contains("50 or more"));
        assert!(enough("212 cases passed\n", "simnet", 1).is_ok());
        assert!(enough("53 cases passed\n", "simnet-unmapped", 1).is_err());
        for silent in ["", "case a ok\n", "99 cases passed\ncase b ok\n", "many cases passed\n"] {
            assert!(enough(silent, "pshm", 1).unwrap_err().to_string().contains("last line"), "{silent:?}");
        }
    }
}
