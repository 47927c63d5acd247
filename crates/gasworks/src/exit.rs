//! The end of the whole job, from anywhere.

/// Ends the whole job with `code`: this process and, within the exit time-out (`GASNET_EXITTIMEOUT`), every other rank.
/// Does not return. This is the specification's `gex_Exit`.
///
/// It may be called at any time and from any thread: while a job opens, in a handler, by one rank or by all. The first
/// code that is not zero becomes the job's, and the launcher's. With code 0 the other ranks have the time-out to come to
/// the same wish; then they are ended. What a program has registered with `atexit` does not run; what the standard
/// output still holds is written.
///
/// In a process that is in no job, or has closed it, and in a job of one rank that no launcher started, only the process
/// ends.
///
/// ```no_run
/// # fn run() -> Result<(), gasworks::Error> { Ok(()) }
/// if let Err(error) = run() {
///     eprintln!("{error}");
///     gasworks::exit(3);
/// }
/// ```
pub fn exit(code: i32) -> ! {
    gasworks_bootstrap::exit(code)
}
