//! Compilers, libraries and programs, for tests over C.

use gasworks_testkit::c::{is_public, names, one_object};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, Once, OnceLock};

/// A compiler of C, and the one of C++ beside it.
pub struct Compiler {
    pub c: &'static str,
    pub cxx: &'static str,
}

/// How a client is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub threads: bool,
    pub debug: bool,
}

/// A program of `tests/c`.
pub struct Program<'a> {
    pub name: &'a str,
    pub standard: &'a str,
    pub is_cxx: bool,
    pub mode: Mode,
    pub extra: &'a [&'a str],
}

/// The libraries, one for each mode, and a place for programs.
pub struct Tools {
    dir: PathBuf,
    built: Mutex<usize>,
    libraries: [Once; 4],
}

const COMPILERS: &[Compiler] = &[Compiler { c: "gcc", cxx: "g++" }, Compiler { c: "clang", cxx: "clang++" }];
const STRICT: &[&str] = &["-Wall", "-Wextra", "-pedantic", "-Werror", "-D_GNU_SOURCE=1"];

/// The compilers that are here.
pub fn compilers() -> &'static [&'static Compiler] {
    static FOUND: OnceLock<Vec<&'static Compiler>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found: Vec<_> = COMPILERS.iter().filter(|compiler| is_here(compiler)).collect();
        assert!(!found.is_empty(), "there is no C compiler");
        found
    })
}

fn is_here(compiler: &Compiler) -> bool {
    let here = [compiler.c, compiler.cxx]
        .iter()
        .all(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    if !here {
        println!("{} and {} are not installed: not tried", compiler.c, compiler.cxx);
    }
    here
}

impl Mode {
    pub const ALL: [Mode; 4] = [
        Mode { threads: false, debug: false },
        Mode { threads: false, debug: true },
        Mode { threads: true, debug: false },
        Mode { threads: true, debug: true },
    ];

    fn name(self) -> String {
        let threads = if self.threads { "PAR" } else { "SEQ" };
        format!("{threads}_{}", if self.debug { "DEBUG" } else { "NDEBUG" })
    }

    fn flags(self) -> [&'static str; 2] {
        let threads = if self.threads { "-DGASNETT_THREAD_SAFE=1" } else { "-DGASNETT_THREAD_SINGLE=1" };
        [threads, if self.debug { "-DGASNET_DEBUG=1" } else { "-O2" }]
    }
}

impl Tools {
    /// The tools of this test, which are made once.
    pub fn get() -> &'static Tools {
        static TOOLS: OnceLock<Tools> = OnceLock::new();
        TOOLS.get_or_init(|| {
            let tools =
                Tools { dir: own_folder(), built: Mutex::new(0), libraries: [const { Once::new() }; 4] };
            std::fs::create_dir_all(&tools.dir).expect("a directory");
            tools
        })
    }

    /// The library of one mode, made when it is first wanted: of the symbols that name modes it keeps its own, as an installed one
    /// does.
    fn library(&self, mode: Mode) -> PathBuf {
        let library = self.dir.join(format!("gasnet_tools-{}.o", mode.name()));
        self.libraries[usize::from(mode.threads) * 2 + usize::from(mode.debug)].call_once(|| {
            // Of one object, for a changed archive takes a file of each of its hundreds of members.
            let archive = build();
            let names = names(&archive).expect("the names of the archive");
            let public = names.iter().filter(|name| is_public(name));
            one_object(&archive, public, &library).and_then(|link| link.read()).expect("an object");
            let mut objcopy = Command::new("objcopy");
            for other in Mode::ALL.into_iter().filter(|other| *other != mode) {
                objcopy.arg(format!("--localize-symbol=gasnett_linkconfig_{}", other.name()));
            }
            passes(objcopy.arg("--strip-debug").arg(&library));
        });
        library
    }

    /// A file of `include`.
    pub fn include(&self, name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name)
    }

    fn place(&self, name: &str) -> PathBuf {
        let mut built = self.built.lock().expect("no test failed while it counted");
        *built += 1;
        self.dir.join(format!("{name}-{built}"))
    }

    fn compile(&self, compiler: &Compiler, program: &Program<'_>) -> Command {
        let mut command = Command::new(if program.is_cxx { compiler.cxx } else { compiler.c });
        command.arg(format!("-std={}", program.standard)).args(STRICT).args(program.mode.flags());
        command.arg("-I").arg(self.include("")).args(program.extra);
        command.args(["-x", if program.is_cxx { "c++" } else { "c" }]);
        command.arg(source(program.name)).args(["-x", "none"]);
        command
    }

    /// Compiles a program without making anything of it.
    pub fn check(&self, compiler: &Compiler, program: &Program<'_>) -> Command {
        let mut command = self.compile(compiler, program);
        command.arg("-fsyntax-only");
        command
    }

    /// Builds a program, and gives its place.
    pub fn build(&self, compiler: &Compiler, program: &Program<'_>) -> PathBuf {
        let place = self.place(program.name);
        let mut command = self.compile(compiler, program);
        command.arg(self.library(program.mode)).args(SYSTEM).arg("-o").arg(&place);
        passes(&mut command);
        place
    }

    /// Compiles a text as C. To an object: some warnings come late.
    pub fn check_text(&self, compiler: &Compiler, text: &str, arguments: &[&str]) -> Command {
        let file = self.place("text").with_extension("c");
        std::fs::write(&file, format!("{text}\ntypedef int not_empty;\n")).expect("a file");
        let mut command = Command::new(compiler.c);
        command.args(STRICT).arg("-I").arg(self.include("")).args(arguments).arg("-c").arg(&file);
        command.arg("-o").arg(file.with_extension("o"));
        command
    }

    /// The instructions of a text in C.
    pub fn assembly(&self, compiler: &Compiler, text: &str, mode: Mode) -> String {
        let file = self.place("instructions").with_extension("c");
        std::fs::write(&file, format!("#include <gasnet_tools.h>\n{text}\n")).expect("a file");
        let mut command = Command::new(compiler.c);
        command.args(mode.flags()).args(STRICT).arg("-I").arg(self.include(""));
        passes(command.args(["-S", "-o", "-"]).arg(file))
    }

    /// An object that does nothing but include the header.
    pub fn object(&self, compiler: &Compiler, mode: Mode) -> PathBuf {
        let place = self.place("probe").with_extension("o");
        let program = Program { name: "probe", standard: "c11", is_cxx: false, mode, extra: &["-c"] };
        passes(self.compile(compiler, &program).arg("-o").arg(&place));
        place
    }

    /// Links an object with the library of a mode.
    pub fn link(&self, compiler: &Compiler, object: &Path, library: Mode) -> Command {
        let mut command = Command::new(compiler.c);
        command.arg(object).arg(self.library(library)).args(SYSTEM).arg("-o").arg(self.place("linked"));
        command
    }

    /// Whether an empty program links with these arguments.
    pub fn links(&self, compiler: &Compiler, arguments: &[&str]) -> bool {
        let file = self.place("empty").with_extension("c");
        std::fs::write(&file, "int main(void) { return 0; }\n").expect("a file");
        let mut command = Command::new(compiler.c);
        command.arg(&file).args(arguments).arg("-o").arg(self.place("empty"));
        ended(&mut command).0.success()
    }

    /// The headers as they are, and as the preprocessor leaves them.
    pub fn definitions(&self, compiler: &Compiler) -> String {
        let mode = Mode { threads: true, debug: false };
        let program = Program { name: "probe", standard: "c11", is_cxx: false, mode, extra: &["-E", "-dD"] };
        let mut text = passes(&mut self.compile(compiler, &program));
        for entry in std::fs::read_dir(self.include("")).expect("the headers") {
            text += &std::fs::read_to_string(entry.expect("a header").path()).expect("its text");
        }
        text
    }
}

/// What a library in Rust needs of the system.
const SYSTEM: &[&str] = &["-lpthread", "-ldl", "-lm", "-lrt", "-lgcc_s"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name).with_extension("c")
}

/// The library as the dev profile builds it.
fn build() -> PathBuf {
    let built = gasworks_testkit::programs::Fixture::Debug.get();
    built.unwrap_or_else(|error| panic!("{error:#}")).join("libgasworks_tools.a")
}

/// A folder of this process's own; those of processes that have ended are deleted.
fn own_folder() -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("tools-");
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another test may be deleting it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    all.join(format!("tools-{}", std::process::id()))
}

/// Runs a command, and gives how it ended and all that it said.
pub fn ended(command: &mut Command) -> (ExitStatus, String) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status, text)
}

/// Runs a command that succeeds, and gives what it said.
pub fn passes(command: &mut Command) -> String {
    let (status, text) = ended(command);
    assert!(status.success(), "{command:?}: {status}: {text}");
    text
}

/// Runs a command that fails, and gives what it said.
pub fn fails(command: &mut Command) -> String {
    let (status, text) = ended(command);
    assert!(!status.success(), "{command:?}: it did not fail: {text}");
    text
}
