//! The rules that the compiler does not check. Each is a function from the tree of files to what it found.

mod circles;
mod commands;
mod files;
mod floors;
mod links;
mod orderings;
mod safety;
pub mod settings;
mod statics;

pub use commands::{By, documented_commands, misplaced};

use anyhow::{Result, bail};
use clap::Args;
use gasworks_testkit::scan::Tree;

/// A rule.
pub struct Check {
    /// Its name in rows.
    pub name: &'static str,
    /// What it demands.
    pub rule: &'static str,
    find: fn(&Tree) -> Result<Vec<String>>,
}

impl Check {
    /// What breaks the rule in this repository.
    pub fn run(&self) -> Result<Vec<String>> {
        (self.find)(&Tree::load()?)
    }
}

/// All rules.
pub const CHECKS: &[Check] = &[
    Check { name: "floors", rule: "a crate depends only on crates of lower floors", find: floors::floors },
    Check {
        name: "circles",
        rule: "modules of a crate do not need each other in a circle",
        find: circles::circles,
    },
    Check {
        name: "atomics",
        rule: "atomics, fences and UnsafeCell are named in crates/sync only",
        find: statics::atomics,
    },
    Check {
        name: "statics",
        rule: "no mutable static below capi, but those listed with a reason",
        find: statics::statics,
    },
    Check {
        name: "orderings",
        rule: "in shmem and pshm an ordering above Relaxed is written ord!",
        find: orderings::named,
    },
    Check {
        name: "mutations",
        rule: "the name of an ordering is used once",
        find: orderings::mutation_names,
    },
    Check {
        name: "kill-points",
        rule: "kill points have unique names, and every publishing store has one of its own",
        find: orderings::kill_points,
    },
    Check {
        name: "safety",
        rule: "a SAFETY comment says why in words, and cites invariants of its own module or of one that it names",
        find: safety::safety,
    },
    Check { name: "sizes", rule: "no source file has more than 800 lines", find: files::sizes },
    Check {
        name: "words",
        rule: "nothing unfinished, and nothing of somebody's machine, is committed",
        find: files::words,
    },
    Check {
        name: "settings",
        rule: "the book's page of settings is the generated one",
        find: settings::page,
    },
    Check {
        name: "commands",
        rule: "every command in README and docs is run by a row, or says why not",
        find: commands::commands,
    },
    Check { name: "links", rule: "links in README and docs lead somewhere", find: links::links },
];

/// What `cargo xtask tidy` takes.
#[derive(Args, Debug)]
pub struct TidyArgs {
    /// Write the generated pages instead of comparing them
    #[arg(long)]
    write: bool,
}

/// Runs every check and prints what it found.
pub fn main(args: &TidyArgs) -> Result<()> {
    if args.write {
        return settings::write();
    }
    let (tree, mut total) = (Tree::load()?, 0);
    for check in CHECKS {
        let found = (check.find)(&tree)?;
        println!("{} {}: {}", if found.is_empty() { "ok    " } else { "BROKEN" }, check.name, check.rule);
        for line in &found {
            println!("       {line}");
        }
        total += found.len();
    }
    if total > 0 {
        bail!("{total} to be put right");
    }
    Ok(())
}
