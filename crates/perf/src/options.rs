//! The command line.

use clap::{Parser, ValueEnum};

const AFTER: &str = "\
Each bench warms up, then times blocks of operations. A block in which the machine was elsewhere (stolen time, or twice
the median) is left out. p50 is the median of the blocks; p99 and p999 are of operations timed one by one where these
are long enough, else of blocks. Floods and bandwidths count the operations of the whole job. Benches check the bytes
that arrive, and fail if they are wrong (not those of gups put-get, where ranks overwrite each other's, nor payloads
that are not read). The last column is what a line passed between two ranks cost meanwhile, in ns: on a virtual machine
the processors move, and only figures with the same one can be compared.

  raw            the machine itself: lines, messages, streams, barriers, copies, wake-ups between two processes over
                 shared memory without the library, in C; the best of several variants is marked
  am-latency     round trip of a request and its reply: Short; Long; Medium with the payload read by the handlers or not
  am-rate        one-way flood of Shorts, and of Shorts that are replied to, counted where handlers run, the last
                 acknowledgement included
  am-bandwidth   the same for Mediums, payload unread, and read and checked, and for Longs with and without replies
  put-latency    blocking puts in a loop over places that are known at run time only
  get-latency    the same for gets
  put-bandwidth  blocking puts by size, in places that the first cache holds (warm) and walking on
                 (cold), beside copies in local memory
  get-bandwidth  the same for gets
  strided        blocking puts of strided arrays by the length of a run, beside a loop of copies written by hand in
                 the same blocks, and the rate of the puts as a part of that of the copies
  given          puts and gets of memory that the partner has given to a region, in places that lie in their pages as
                 those of the partner do or not (askew): by process_vm_*, or with GASWORKS_PROCESS_VM=0 by messages
  barrier        the barrier of all ranks, that of a team of them, and splitting them
  collective     broadcasts from the first rank, maxima of words of 8 bytes for all, and what each has for all and for
                 each, by the size of what each has
  atomic         fetch-and-add on a word of the partner's, and a flood of sums; where the network does them, also by
                 processors (near); beside the processor's own
  gups           random updates of a table spread over the ranks: get and put of each, atomic, and batches of messages
  wake           a rank that sleeps is woken by a message, beside a bare futex
  startup        jobs of as many ranks, from the start of gasrun to its end: an empty one, and `true`
  memory         memory of each rank of a job in which nobody speaks
  scale          a job of many ranks: barriers, messages between neighbours, memory

Ranks work in pairs (0 and 1, 2 and 3, ...); one that is left over waits. `startup` starts jobs of its own.";

/// The benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the help text describes them")]
pub enum Bench {
    Raw,
    AmLatency,
    AmRate,
    AmBandwidth,
    PutLatency,
    GetLatency,
    PutBandwidth,
    GetBandwidth,
    Strided,
    Given,
    Barrier,
    Collective,
    Atomic,
    Gups,
    Wake,
    Startup,
    Memory,
    Scale,
}

impl Bench {
    /// Ranks that it needs.
    pub fn least_ranks(self) -> u32 {
        match self {
            Bench::Barrier | Bench::Collective | Bench::Gups | Bench::Startup | Bench::Memory => 1,
            _ => 2,
        }
    }

    /// Its name on the command line and in rows.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The thread modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One thread in each rank communicates
    Seq,
    /// Any number of threads do
    Par,
}

/// An inclusive range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest.
    pub first: u64,
    /// The largest.
    pub last: u64,
}

impl Sizes {
    /// The smallest, and its doubles up to the largest.
    pub fn doubling(self) -> Vec<u64> {
        let doubles = std::iter::successors(Some(self.first), |size| size.checked_mul(2));
        doubles.take_while(|&size| size <= self.last).collect()
    }
}

/// Measures what the library's operations cost between the ranks of a job, beside what the machine itself can do.
#[derive(Parser, Clone, Debug)]
#[command(name = "gasperf", version, after_help = AFTER, override_usage = "gasrun -n N gasperf [OPTIONS] BENCH")]
pub struct Options {
    /// What to measure
    #[arg(value_enum, value_name = "BENCH")]
    pub bench: Bench,

    /// Sizes from A to B, doubling, for benches that have sizes: `8..64K`, or one size
    #[arg(long, value_name = "A..B", value_parser = sizes)]
    pub bytes: Option<Sizes>,

    /// Operations in a block [default: as many as take 2 ms]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub iters: Option<u64>,

    /// Blocks of each measurement
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub blocks: u32,

    /// The thread mode
    #[arg(long, value_enum, default_value = "seq")]
    pub mode: Mode,

    /// Threads in each rank that communicate, for am-latency, am-rate, put-latency and get-latency in par
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,

    /// Only variants whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub variant: String,

    /// Print rows as JSON, one to a line
    #[arg(long)]
    pub json: bool,

    /// Open a job and close it again: what `startup` starts
    #[arg(long, hide = true)]
    pub empty: bool,
}

impl Options {
    /// What does not go together.
    ///
    /// # Errors
    /// Several threads in seq.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.threads == 1 || self.mode == Mode::Par,
            "--threads {} needs --mode par: in seq one thread of a rank communicates",
            self.threads
        );
        Ok(())
    }
}

fn sizes(text: &str) -> Result<Sizes, String> {
    let wanted = || "wanted a size or A..B with 1 <= A <= B, such as 8..64K".to_owned();
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (size(first).ok_or_else(wanted)?, size(last).ok_or_else(wanted)?);
    if first == 0 || first > last { Err(wanted()) } else { Ok(Sizes { first, last }) }
}

/// A number of bytes, with `K`, `M` or `G` for powers of 1,024.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(std::iter::once("gasperf").chain(words.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn every_bench_of_the_help_is_one_and_the_other_way_round() {
        for bench in Bench::value_variants() {
            assert!(AFTER.contains(&format!("\n  {} ", bench.name())), "{bench:?}");
            assert_eq!(parse(&bench.name()).expect("a bench").bench, *bench);
        }
    }

    #[test]
    fn sizes_have_suffixes_and_double() {
        let options =
            parse("put-bandwidth --bytes 8..1K --iters 5 --mode par --threads 2 --json").expect("valid");
        assert_eq!(options.bytes, Some(Sizes { first: 8, last: 1024 }));
        assert_eq!(Sizes { first: 3, last: 24 }.doubling(), [3, 6, 12, 24]);
        assert_eq!(Sizes { first: u64::MAX, last: u64::MAX }.doubling(), [u64::MAX]);
        assert_eq!(size("2M"), Some(2 << 20));
        assert_eq!(
            (options.iters, options.mode, options.threads, options.json),
            (Some(5), Mode::Par, 2, true)
        );
    }

    /// No memory is as large as what these ask for, and none is asked for that is small by mistake.
    #[test]
    fn the_segment_is_as_large_as_the_sizes_are() {
        let segment = |words: &str| crate::rma::segment(&parse(words).expect("valid"));
        assert_eq!(segment("put-latency --bytes 8192"), (256 * 2 * 8192) + (16 << 20));
        for size in ["18446744073709551615", "8..33554432G"] {
            for bench in ["put-latency", "get-bandwidth"] {
                let found = segment(&format!("{bench} --bytes {size}"));
                assert!(found >= 1 << 53, "{bench} of {size}: {found}");
            }
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        for words in [
            "",
            "raws",
            "raw --bytes 0",
            "raw --bytes 9..8",
            "raw --bytes ..8",
            "raw --bytes K",
            "raw --iters 0",
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
        let said = parse("am-rate --threads 2").expect("parsed").check().expect_err("refused").to_string();
        assert!(said.contains("--mode par"), "{said}");
    }
}
