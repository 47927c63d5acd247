//! Other libraries: installing, building and driving the programs under `perf/peers`.
//!
//! A peer stays up for the whole run and sleeps between questions, so that turns can be taken block by block. It is
//! spoken to through named pipes (see `perf/peers/peer.h`); when they close, it ends.

use super::place::Place;
use super::record::Row;
use anyhow::{Context, Result, anyhow, bail, ensure};
use gasworks_testkit::command::{Cmd, end_with_descendants};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// One of the other libraries, and what its program needs.
#[derive(Debug)]
pub struct Peer {
    /// Its name in rows.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Debian's packages.
    packages: &'static [&'static str],
    /// What these packages bring, by which they are found.
    files: &'static [&'static str],
    /// The compiler, the source beside `peer.c`, the libraries.
    compiler: &'static str,
    source: &'static str,
    libraries: &'static str,
    /// How it starts its ranks: `N` stands for their number; nothing if the program does that itself, for two.
    launcher: &'static str,
    /// Settings under which it does best here.
    settings: &'static [(&'static str, &'static str)],
}

/// The machine itself: no library, and so no package but the compiler's.
pub const LINE: Peer = Peer {
    name: "line",
    title: "the cores themselves",
    packages: &["gcc", "libc6-dev"],
    files: &["/usr/bin/cc"],
    compiler: "cc",
    source: "line.c",
    libraries: "",
    launcher: "",
    settings: &[],
};

/// The peers. Where copying by system calls is slower than through shared memory, as on the machines measured so far,
/// it is switched off: every peer shows its best.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "openmpi",
        title: "Open MPI",
        packages: &["openmpi-bin", "libopenmpi-dev"],
        files: &["/usr/bin/mpicc.openmpi", "/usr/bin/mpirun.openmpi"],
        compiler: "mpicc.openmpi",
        source: "mpi.c",
        libraries: "",
        launcher: "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n N",
        settings: &[("OMPI_MCA_btl_vader_single_copy_mechanism", "none"), ("OMPI_MCA_btl", "self,vader")],
    },
    Peer {
        name: "mpich",
        title: "MPICH",
        packages: &["mpich", "libmpich-dev"],
        files: &["/usr/bin/mpicc.mpich", "/usr/bin/mpiexec.hydra"],
        compiler: "mpicc.mpich",
        source: "mpi.c",
        libraries: "",
        launcher: "mpiexec.hydra -n N",
        settings: &[("UCX_RNDV_THRESH", "inf")],
    },
    Peer {
        name: "ucx",
        title: "UCX",
        packages: &["libucx-dev"],
        files: &["/usr/include/ucp/api/ucp.h"],
        compiler: "cc",
        source: "ucx.c",
        libraries: "-lucp -lucs",
        launcher: "",
        settings: &[("UCX_RNDV_THRESH", "inf")],
    },
    Peer {
        name: "libfabric",
        title: "libfabric, shm",
        packages: &["libfabric-dev"],
        files: &["/usr/include/rdma/fabric.h"],
        compiler: "cc",
        source: "fabric.c",
        libraries: "-lfabric",
        launcher: "",
        settings: &[],
    },
];

impl Peer {
    /// Whether what it needs is installed.
    pub fn there(&self) -> bool {
        self.files.iter().all(|file| Path::new(file).exists())
    }

    /// Installs what is missing, where this user may; whether all is there then.
    pub fn install(&self) -> Result<bool> {
        for package in self.packages {
            if !self.there() && !crate::tools::apt(package)? {
                return Ok(false);
            }
        }
        Ok(self.there())
    }

    /// How it can be had.
    pub fn missing(&self) -> String {
        format!("{} is not installed (apt-get install {})", self.title, self.packages.join(" "))
    }

    /// Whether it can run so many ranks.
    pub fn ranks(&self, ranks: u32) -> bool {
        ranks == 2 || !self.launcher.is_empty()
    }

    /// The command that compiles its program to `program`.
    pub fn compile(&self, program: &Path) -> Cmd {
        let sources = crate::root().join("perf/peers");
        let cmd = Cmd::new(self.compiler).words("-std=gnu11 -O2 -Wall -Wextra -Werror -o").arg(program);
        let cmd = cmd.arg(sources.join(self.source)).arg(sources.join("peer.c"));
        cmd.words(self.libraries).limit(120)
    }

    /// The command that starts its ranks with these arguments after the program's name.
    pub fn command(&self, place: Place, ranks: u32, program: &Path, args: &[&str]) -> Command {
        let mut words: Vec<String> = place.words();
        let launcher = self.launcher.split_whitespace();
        words.extend(launcher.map(|word| if word == "N" { ranks.to_string() } else { word.to_owned() }));
        words.push(program.display().to_string());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.settings.iter().copied()).stdin(Stdio::null());
        command
    }

    /// What its program is called with.
    fn args(&self) -> Vec<&'static str> {
        if self.launcher.is_empty() { Vec::new() } else { vec![self.name] }
    }
}

/// A peer that is up.
pub struct Running {
    /// Which.
    pub peer: &'static Peer,
    /// Its own words for itself.
    pub version: String,
    dir: PathBuf,
    asks: Vec<File>,
    answers: Receiver<String>,
    child: Child,
    /// It did not answer: it is of no use any more.
    pub broken: bool,
}

/// What a peer answers.
#[derive(Debug)]
pub enum Answer {
    /// It measured.
    Row(Box<Row>),
    /// It has no such thing.
    None,
}

/// How long a peer may take to start, or to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How a peer is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Iterations of a sample.
    pub iterations: u64,
    /// Samples of a question.
    pub samples: u32,
}

/// The most samples of a question, and about how long all of them should take, in nanoseconds.
pub const SAMPLES: u32 = 5;
const BLOCK: f64 = 5e6;

impl Running {
    /// Starts its ranks. `folder` holds the program, and will hold the pipes and what the program says.
    pub fn start(peer: &'static Peer, place: Place, ranks: u32, folder: &Path) -> Result<Self> {
        let what = || format!("starting {} on {ranks} ranks", peer.title);
        let dir = folder.join(format!("pipes-{}-{ranks}-{}", peer.name, std::process::id()));
        std::fs::create_dir_all(&dir).with_context(what)?;
        let pipe = |name: &str| -> Result<File> {
            let path = dir.join(name);
            mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)
                .with_context(|| format!("making {}", path.display()))?;
            // Open both ways, so that neither side waits for the other to open its end.
            let file = OpenOptions::new().read(true).write(true).open(&path);
            file.with_context(|| format!("opening {}", path.display()))
        };
        let asks = (0..ranks).map(|rank| pipe(&format!("ask.{rank}"))).collect::<Result<Vec<_>>>()?;
        let answer = pipe("answer")?;
        let log = File::create(folder.join(format!("{}.log", peer.name))).with_context(what)?;
        let mut command = peer.command(place, ranks, &folder.join(peer.name), &peer.args());
        let child = command
            .env("PEER_DIR", &dir)
            .stdout(log.try_clone().with_context(what)?)
            .stderr(log)
            .spawn()
            .with_context(what)?;
        let (lines, answers) = channel();
        std::thread::spawn(move || {
            // It ends with the answer `{"bye"`, which the drop of the other side writes.
            for line in BufReader::new(answer).lines().map_while(Result::ok) {
                if line.starts_with(BYE) || lines.send(line).is_err() {
                    break;
                }
            }
        });
        let mut running = Self { peer, version: String::new(), dir, asks, answers, child, broken: false };
        let ready: serde_json::Value = serde_json::from_str(&running.line()?).with_context(what)?;
        running.version = ready["ready"].as_str().unwrap_or(peer.title).to_owned();
        Ok(running)
    }

    fn line(&mut self) -> Result<String> {
        let line = self.next_line();
        self.broken = line.is_err();
        line
    }

    fn next_line(&mut self) -> Result<String> {
        let begun = Instant::now();
        loop {
            match self.answers.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => bail!("{} cannot be heard any more", self.peer.title),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A rank that has died has said why.
            if let Some(status) = self.child.try_wait().context("waiting for a peer")? {
                bail!(
                    "{} has ended ({status}); what it said is in target/peers/{}.log",
                    self.peer.title,
                    self.peer.name
                );
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "{} gave no answer in {} s",
                self.peer.title,
                PATIENCE.as_secs()
            );
        }
    }

    /// Asks for one block.
    pub fn ask(&mut self, bench: &str, bytes: u64, iterations: u64, samples: u32) -> Result<Answer> {
        let question = format!("{bench} {bytes} {iterations} {samples}\n");
        for ask in &mut self.asks {
            ask.write_all(question.as_bytes()).context("asking a peer")?;
        }
        let line = self.line()?;
        let value: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| anyhow!("{} answered {line:?}", self.peer.title))?;
        if value.get("none").is_some() {
            return Ok(Answer::None);
        }
        let row =
            serde_json::from_value(value).with_context(|| format!("{} answered {line}", self.peer.title))?;
        Ok(Answer::Row(Box::new(row)))
    }

    /// Warms up, and finds how it is to be asked; nothing if it does not measure this.
    pub fn settle(&mut self, bench: &str, bytes: u64) -> Result<Option<Sampling>> {
        // Of broadcasts a sample has at least as many as a block of gasperf's: its end, when all have the last, counts too.
        let least = if bench == "broadcast" { 64 } else { 1 };
        // One sample at first: ranks that share cores and never yield may take a second for an operation.
        let mut tried = Sampling { iterations: least.max(2), samples: 1 };
        loop {
            let Sampling { iterations, samples } = tried;
            let Answer::Row(row) = self.ask(bench, bytes, iterations, samples)? else { return Ok(None) };
            let each = row.p50.max(0.5);
            let wanted = (BLOCK / f64::from(SAMPLES) / each) as u64;
            // Never many times more than has been tried: the first iterations are slow.
            let next = wanted.clamp(least, iterations * 16).min(2_000_000);
            let samples = (BLOCK / (next as f64 * each)) as u32;
            let settled = next <= iterations * 2;
            tried = Sampling { iterations: next, samples: samples.clamp(1, SAMPLES) };
            if settled {
                return Ok(Some(tried));
            }
        }
    }
}

/// What tells the reader of answers to end.
const BYE: &str = "{\"bye\"";

impl Drop for Running {
    fn drop(&mut self) {
        // No more questions: it ends by itself. One that does not is ended.
        self.asks.clear();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if self.broken || begun.elapsed() > Duration::from_secs(3) {
                end_with_descendants(&mut self.child);
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The reader holds its pipe open both ways, and has to be told. What fails here leaves a pipe in `target`.
        let answer = OpenOptions::new().read(true).write(true).open(self.dir.join("answer"));
        let _ = answer.and_then(|mut file| writeln!(file, "{BYE}}}"));
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Starts what is there of `peers`; what is not is said in `notes`.
pub fn start_all(
    peers: impl Iterator<Item = &'static Peer>,
    place: Place,
    ranks: u32,
    folder: &Path,
    notes: &mut Vec<String>,
) -> Vec<Running> {
    let mut running = Vec::new();
    for peer in peers.filter(|peer| peer.ranks(ranks)) {
        match Running::start(peer, place, ranks, folder) {
            Ok(up) => running.push(up),
            Err(error) => notes.push(format!("{} is left out on {ranks} ranks: {error:#}", peer.title)),
        }
    }
    running
}

/// Installs (where it may) and compiles the programs. Those that cannot be had are said in `notes`.
pub fn build(folder: &Path, install: bool, notes: &mut Vec<String>) -> Result<Vec<&'static Peer>> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut built = Vec::new();
    for peer in PEERS {
        if !(peer.there() || install && peer.install()?) {
            notes.push(format!("left out: {}", peer.missing()));
            continue;
        }
        peer.compile(&folder.join(peer.name)).show()?;
        built.push(peer);
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_gets_its_number_of_ranks() {
        let words = |peer: &Peer, ranks| {
            let command = peer.command(Place::Ordinary, ranks, Path::new("/x/p"), &peer.args());
            let args: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
            args.join(" ")
        };
        let mpich = PEERS.iter().find(|p| p.name == "mpich").unwrap();
        assert!(words(mpich, 4).ends_with("mpiexec.hydra -n 4 /x/p mpich"), "{}", words(mpich, 4));
        assert!(words(&LINE, 2).ends_with("/x/p") && LINE.ranks(2) && !LINE.ranks(4) && mpich.ranks(4));
    }

    #[test]
    fn the_program_without_a_library_answers_and_ends() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LINE.compile(&dir.path().join("line")).works(), "perf/peers/line.c does not compile");
        let mut line = Running::start(&LINE, Place::Ordinary, 2, dir.path()).unwrap();
        let pipes = line.dir.clone();
        let Answer::Row(row) = line.ask("copy", 4096, 10, 3).unwrap() else { panic!("copies are measured") };
        row.sane().unwrap();
        assert_eq!((row.bench.as_str(), row.transport.as_str(), row.bytes), ("copy", "line", 4096));
        assert!(matches!(line.ask("dance", 8, 10, 3).unwrap(), Answer::None));
        assert_eq!(line.settle("dance", 8).unwrap(), None);
        let sampling = line.settle("copy", 4096).unwrap().unwrap();
        assert!(sampling.iterations > 1 && (1..=SAMPLES).contains(&sampling.samples), "{sampling:?}");
        drop(line);
        assert!(!pipes.exists());
    }
}
