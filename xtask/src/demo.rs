//! The main job: counting the k-mers of real reads.

use anyhow::Result;
use clap::Args;

/// What `cargo xtask demo` takes.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// The ranks of the job
    #[arg(long, default_value_t = 4)]
    ranks: u32,
}

/// Runs the demo.
pub fn run(args: DemoArgs) -> Result<()> {
    anyhow::bail!("the demo on {} ranks is not built yet", args.ranks)
}
