//! `gasrun` starts the ranks of a job.
fn main() -> std::process::ExitCode {
    gasworks_launch::main()
}
