//! The conformance suite over every transport, the examples, and the demo.

use super::Extent;
use crate::exec::Cmd;
use crate::matrix::{pairwise, product};
use crate::rows::Row;
use crate::world::{Build, Built, World};
use anyhow::{Result, ensure};

const TRANSPORTS: [&str; 3] = ["pshm", "simnet", "simnet-unmapped"];
const MODES: [&str; 2] = ["seq", "par"];
const RANKS: [usize; 4] = [1, 2, 4, 7];
const BUILDS: [Build; 2] = [Build::Debug, Build::Release];

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

pub fn rows(extent: Extent) -> Vec<Row> {
    cells(extent)
        .into_iter()
        .map(|cell| {
            let Cell { transport, mode, ranks, build } = cell;
            let name = format!("conformance/{transport}/{mode}/{ranks}/{}", build.name());
            Row::new(name, move |world, log| {
                let ended = log.run_ok(&command(world, cell)?)?;
                ensure!(!ended.output.trim().is_empty(), "the suite said nothing: did it run any case?");
                Ok(())
            })
        })
        .collect()
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
