//! C programs: compiled with warnings as errors, linked with each form of the library, and run, alone or by `gasrun`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use gasworks_testkit::programs::Fixture;
use tempfile::TempDir;

/// The names that the library goes by.
const NAMES: [&str; 6] = ["ugni", "udreg", "pmi", "pmi2", "alpslli", "alpsutil"];

/// The programs of one C file, and where the libraries are that they use.
pub struct Programs {
    dir: TempDir,
    built: &'static Path,
}

/// What a process that ended well has written.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// All that a process has written.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Where the dev profile builds the library, `gasrun`, and a rank of ours.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| Fixture::Debug.get().unwrap_or_else(|error| panic!("{error:#}")))
}

impl Programs {
    /// Compiles `NAME.c` into `static`, linked with the archive, and `shared`, linked with the library by these of its
    /// names.
    pub fn of(name: &str, names: &[&str]) -> Self {
        let programs = Self::shared(name, names);
        let archive = programs.built.join("libgasworks_ugni_sim_c.a");
        programs.compile(name, "static", &[archive.to_str().expect("a path").to_owned()]);
        programs
    }

    /// The second alone.
    pub fn shared(name: &str, names: &[&str]) -> Self {
        let programs = Self { dir: tempfile::tempdir().expect("a directory"), built: built() };
        for name in NAMES {
            for link in [format!("lib{name}.so"), format!("lib{name}.so.0")] {
                let library = programs.built.join("libgasworks_ugni_sim_c.so");
                std::os::unix::fs::symlink(library, programs.dir.path().join(link)).expect("a link");
            }
        }
        let place = programs.dir.path().to_str().expect("a path").to_owned();
        let links = names.iter().map(|name| format!("-l{name}"));
        programs.compile(
            name,
            "shared",
            &["-L".to_owned(), place].into_iter().chain(links).collect::<Vec<_>>(),
        );
        programs
    }

    fn compile(&self, name: &str, form: &str, link: &[String]) {
        let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-I"])
            .arg(crate_dir.join("include"))
            .arg(crate_dir.join("tests/clients/c").join(name).with_extension("c"))
            .arg("-o")
            .arg(self.dir.path().join(form))
            .args(link)
            .args(["-lpthread", "-ldl", "-lm"]);
        run(&mut cc);
    }

    /// The library, by one of its names.
    pub fn library(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("lib{name}.so"))
    }

    /// A program, alone.
    pub fn alone(&self, form: &str) -> Command {
        self.dressed(Command::new(self.dir.path().join(form)))
    }

    /// A program, as this number of ranks.
    pub fn ranks(&self, form: &str, ranks: u32) -> Command {
        self.started(&self.dir.path().join(form), ranks)
    }

    /// A program of ours, written in Rust, that opens the libraries.
    pub fn ours(&self, ranks: u32) -> Command {
        self.started(&self.built.join("examples/wireup"), ranks)
    }

    fn started(&self, program: &Path, ranks: u32) -> Command {
        let mut gasrun = self.dressed(Command::new(self.built.join("gasrun")));
        gasrun.args(["-n", &ranks.to_string(), "--timeout", "60"]).arg(program);
        gasrun
    }

    /// No launcher but the one that is asked for, and our libraries.
    fn dressed(&self, mut command: Command) -> Command {
        for (name, _) in gasworks_os::environ::all() {
            let text = name.to_string_lossy();
            if ["PMI", "ALPS_", "GASWORKS_", "GASNET_"].iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        command.env("LD_LIBRARY_PATH", self.dir.path());
        command
    }
}

/// The names of the functions that a header declares, those that begin so.
pub fn declared(header: &str, start: &str) -> Vec<String> {
    let lines = header.lines().filter(|line| !line.starts_with(['#', ' ', '/', '*']));
    let before = lines.filter_map(|line| line.split_once('(').map(|(before, _)| before));
    let names = before.filter_map(|before| before.split_whitespace().next_back());
    names.filter(|name| name.starts_with(start)).map(str::to_owned).collect()
}

/// The names of the C functions of a source.
pub fn defined(source: &str) -> Vec<String> {
    const BEFORE: &str = "extern \"C\" fn ";
    let found = source.match_indices(BEFORE).map(|(at, _)| &source[at + BEFORE.len()..]);
    found.map(|rest| rest.split('(').next().expect("a name").to_owned()).collect()
}
