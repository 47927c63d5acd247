//! Programs in C and C++ against the C interface as an installation has it: in all thread modes, over all conduits, by
//! several compilers, with any end and with wrong calls.

mod compiles;
mod ends;
mod environment;
mod limits;
mod links;
mod program;
mod wrong;

use gasworks_testkit::c::{CONDUITS, MODES};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::nic::TOGETHER;
use gasworks_testkit::pairwise::{Pick, covering, product};
use gasworks_testkit::{Case, Need};
use program::{BUILDS, LANGUAGES, PROGRAMS, Program, comes_to_its_end, runs_in};
use std::process::ExitCode;

/// The numbers of ranks of jobs.
const RANKS: [usize; 4] = [1, 2, 4, 7];
/// Finds uses of memory that is not the program's, and undefined behaviour.
const SANITIZED: &str = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";

fn main() -> ExitCode {
    let tables = [
        run(),
        sanitized(),
        sharing(),
        ends::cases(),
        environment::cases(),
        limits::cases(),
        links::cases(),
        compiles::cases(),
        wrong::cases(),
    ];
    gasworks_testkit::cases::main("capi/programs", tables.into_iter().flatten().collect())
}

/// Numbers of a program, a mode, a build, a number of ranks and a conduit, such that every two that can meet do.
fn combinations() -> Vec<Pick> {
    let sizes = [PROGRAMS.len(), MODES.len(), BUILDS.len(), RANKS.len(), CONDUITS.len()];
    let possible: Vec<_> = product(&sizes).into_iter().filter(|pick| runs_in(pick[0], pick[1])).collect();
    covering(&possible)
}

/// Every program runs to its end. One combination after the other has the next language, by night each has all; that the headers compile in each is
/// tried besides (`debug-names`).
fn run() -> Vec<Case> {
    let case = |(pick, language): (&Pick, usize)| {
        let (name, mode, language) = (PROGRAMS[pick[0]].0, pick[1], LANGUAGES[language]);
        let ((kind, options), ranks, conduit) = (BUILDS[pick[2]], RANKS[pick[3]], CONDUITS[pick[4]]);
        let shown = format!("{name}/{conduit}/{}/{}/{kind}/{ranks}", MODES[mode].0, language.name);
        let case = passes(shown, Program { name, conduit, mode, language, options }, ranks);
        if language.is_clang() { case.need(Need::Clang) } else { case }
    };
    let languages = LANGUAGES.len();
    let of = |at: usize| if is_nightly() { 0..languages } else { at % languages..at % languages + 1 };
    let combinations = combinations();
    let all =
        combinations.iter().enumerate().flat_map(|(at, pick)| of(at).map(move |language| (pick, language)));
    all.map(case).collect()
}

/// Every program runs to its end with sanitizers in it, by night in every mode.
fn sanitized() -> Vec<Case> {
    let modes = |program: usize| -> Vec<usize> {
        let possible: Vec<_> = (0..MODES.len()).filter(|&mode| runs_in(program, mode)).collect();
        if is_nightly() { possible } else { vec![possible[program % possible.len()]] }
    };
    let case = |(number, mode): (usize, usize)| {
        let program = Program { options: SANITIZED, ..Program::usual(PROGRAMS[number].0, mode) };
        passes(format!("{}/smp/{}/sanitized/3", program.name, MODES[mode].0), program, 3)
    };
    (0..PROGRAMS.len())
        .flat_map(|number| modes(number).into_iter().map(move |mode| (number, mode)))
        .map(case)
        .collect()
}

/// Atomic operations over networks where some ranks share memory, two by two, or all of them do: others are the NIC's.
fn sharing() -> Vec<Case> {
    let case = |pick: Pick| {
        let (mode, conduit, (name, together)) =
            (pick[0], CONDUITS[1 + pick[1]], [("pairs", "2"), ("one-host", "0")][pick[2]]);
        let program = Program { conduit, ..Program::usual("atomics", mode) };
        Case::new(format!("atomics/{conduit}/{}/{name}/4", MODES[mode].0), move |log| {
            let job = program.job(log, 4)?.env(TOGETHER, together);
            comes_to_its_end(log, &job, program.name)
        })
    };
    covering(&product(&[MODES.len(), CONDUITS.len() - 1, 2])).into_iter().map(case).collect()
}

fn passes(name: String, program: Program, ranks: usize) -> Case {
    Case::new(name, move |log| comes_to_its_end(log, &program.job(log, ranks)?, program.name))
}
