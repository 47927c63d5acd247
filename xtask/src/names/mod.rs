//! `cargo xtask names`: every public name of the C interface, and what comes of a program that uses it.
//!
//! A use of each name of `crates/capi/names.csv` is compiled against the headers as they are laid out, all of a header's
//! names in one file, and linked with the library of each thread mode. What a use needs is followed through the object,
//! so that of what the linker does not find it is known which names want it.

mod list;
mod object;
mod page;
mod unit;

use crate::world::World;
use anyhow::{Context, Result, ensure};
use clap::Args;
use gasworks_testkit::c::{MODES, compiler, linking};
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Cmd, Ended, Log};
use list::{By, Kind, Name};
use object::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use unit::{Header, Unit};

pub use page::differs;

/// What to do with the names.
#[derive(Args)]
pub struct NamesArgs {
    /// Write the book's page, and take from the list that what works now is declared only
    #[arg(long)]
    write: bool,
}

/// What comes of a program that uses a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It compiles and links.
    Works,
    /// It compiles; the library does not have what it takes.
    Declared,
    /// It does not compile.
    Missing,
    /// The name is not defined, which says something, too.
    Undefined,
}

impl Status {
    pub fn words(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Declared => "declared only",
            Self::Missing => "missing",
            Self::Undefined => "not defined, as the specification allows",
        }
    }
}

/// A way to compile a program: the network, a mode's number, the compiler, and more words.
struct Way {
    conduit: &'static str,
    mode: usize,
    cc: &'static str,
    words: &'static str,
}

/// Those by which the modes are told apart, in the order of `MODES`.
const PLAIN: [Way; 3] = [plain(0), plain(1), plain(2)];
/// Those that make no difference.
const OTHERS: [Way; 5] = [
    Way { words: "-x c -std=c99 -O0 -DGASNET_DEBUG=1", ..plain(2) },
    Way { conduit: "gemini", words: "-x c -std=c2x -O1", ..plain(1) },
    Way { cc: "g++", words: "-x c++ -std=c++11 -O1", ..plain(2) },
    Way { conduit: "aries", cc: "g++", words: "-x c++ -std=c++2b -O1", ..plain(0) },
    Way { cc: "g++", words: "-x c++ -std=c++11 -O0 -DGASNET_DEBUG=1", ..plain(0) },
];
/// The mode that the page is of.
const PAR: usize = 2;

/// As most programs are compiled.
const fn plain(mode: usize) -> Way {
    Way { conduit: "smp", mode, cc: "gcc", words: "-x c -std=c11 -O1" }
}

/// All names, with what comes of each in each mode, and what is wrong.
#[derive(Debug)]
pub struct Report {
    names: Vec<Name>,
    statuses: [Vec<Status>; 3],
    wrong: Vec<String>,
}

/// What has programs run.
pub type Run<'a> = &'a dyn Fn(&Cmd) -> Result<Ended>;

/// The command.
pub fn run(args: &NamesArgs) -> Result<()> {
    let world = World::new();
    eprintln!("building; what the compiler says goes to target/xtask/prepare-*.log");
    let (place, scratch) = (world.fixture(Fixture::C)?, world.scratch("names")?);
    let log = Log::create(scratch.join("log"))?;
    let mut report = report(&place, &scratch.join("uses"), &|cmd| log.run(cmd))?;
    print!("{}", page::counts(&report));
    if args.write {
        report.take_what_works();
        list::write(&report.names)?;
        page::write(&report)?;
    }
    let wrong = report.wrong();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What comes of each name with what is laid out there; files are made at `scratch`.
pub fn report(laid_out: &Path, scratch: &Path, run: Run) -> Result<Report> {
    std::fs::create_dir_all(scratch).with_context(|| format!("making {}", scratch.display()))?;
    let names = list::read()?;
    let all = |way: &Way| Asked { laid_out, scratch, run, way }.statuses(&names);
    let statuses = [all(&PLAIN[0])?, all(&PLAIN[1])?, all(&PLAIN[2])?];
    let mut wrong = Vec::new();
    for way in &OTHERS {
        for ((found, plain), name) in all(way)?.into_iter().zip(&statuses[way.mode]).zip(&names) {
            // What a macro says by being undefined may differ from network to network.
            let is_said = |status| matches!(status, Status::Works | Status::Undefined);
            let is_free = name.by == By::Maybe && way.conduit != PLAIN[0].conduit;
            if found == *plain || (is_free && is_said(found) && is_said(*plain)) {
                continue;
            }
            let (found, plain, Way { conduit, mode, cc, words }) = (found.words(), plain.words(), way);
            let (name, mode) = (&name.name, MODES[*mode].1);
            wrong.push(format!(
                "{name}: {found} for {conduit} in {mode} with {cc} {words}, otherwise {plain}"
            ));
        }
    }
    Ok(Report { names, statuses, wrong })
}

impl Report {
    /// What comes of a name in all modes, if that is the same.
    fn everywhere(&self, number: usize) -> Option<Status> {
        let [first, others @ ..] = [0, 1, 2].map(|mode| self.statuses[mode][number]);
        others.iter().all(|other| *other == first).then_some(first)
    }

    /// The list says of none that works that it is declared only.
    fn take_what_works(&mut self) {
        for number in 0..self.names.len() {
            self.names[number].declared &= self.everywhere(number) != Some(Status::Works);
        }
    }

    /// What is not as the list says.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        for (number, name) in self.names.iter().enumerate() {
            let modes = (0..MODES.len()).filter(|mode| match self.statuses[*mode][number] {
                Status::Missing => true,
                Status::Declared => !name.declared,
                Status::Works | Status::Undefined => false,
            });
            let said =
                modes.map(|mode| format!("{} in {}", self.statuses[mode][number].words(), MODES[mode].1));
            let said: Vec<_> = said.collect();
            if !said.is_empty() {
                wrong.push(format!("{}: {}", name.name, said.join(", ")));
            }
            if name.declared && self.everywhere(number) == Some(Status::Works) {
                wrong.push(format!("{}: it works now: run `cargo xtask names --write`", name.name));
            }
        }
        wrong
    }
}

/// A way to ask the compiler.
struct Asked<'a> {
    laid_out: &'a Path,
    scratch: &'a Path,
    run: Run<'a>,
    way: &'a Way,
}

impl Asked<'_> {
    /// What comes of each name.
    fn statuses(&self, names: &[Name]) -> Result<Vec<Status>> {
        let mut statuses = vec![Status::Works; names.len()];
        for header in Header::ALL {
            let macros = self.macros(header)?;
            let mut uses = Vec::new();
            for (number, name) in
                names.iter().enumerate().filter(|(_, name)| Header::of(&name.area) == header)
            {
                let is_defined = name.kind != Kind::Macro || name.is_defined(&macros);
                match (name.by, is_defined) {
                    (By::Program, _) if self.compiles_with(header, &name.use_)? => {}
                    (By::Maybe, false) => statuses[number] = Status::Undefined,
                    (By::Headers | By::Maybe, true) => uses.push((number, name)),
                    _ => statuses[number] = Status::Missing,
                }
            }
            for (number, status) in self.used(header, uses).with_context(|| header.word())? {
                statuses[number] = status;
            }
        }
        Ok(statuses)
    }

    fn compiler(&self, define: &str) -> Cmd {
        compiler(self.way.cc, self.way.conduit, define, self.laid_out).env("LC_ALL", "C")
    }

    /// A file of this way's language, with that in it.
    fn file(&self, header: Header, text: &str) -> Result<PathBuf> {
        let path =
            self.scratch.join(format!("{}.{}", header.word(), if self.way.cc == "gcc" { "c" } else { "cc" }));
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// The macros that there are with a header.
    fn macros(&self, header: Header) -> Result<BTreeSet<String>> {
        let path = self.file(header, &Unit::of(header, &[]).text)?;
        let ask = self.compiler(MODES[self.way.mode].1).words(self.way.words).words("-E -dM").arg(&path);
        let said = ask.read().context("the macros of a header")?;
        let name = |line: &str| Some(line.strip_prefix("#define ")?.split([' ', '(']).next()?.to_owned());
        let macros: BTreeSet<_> =
            said.lines().filter_map(name).filter(|name| !name.starts_with("NAMES_")).collect();
        ensure!(macros.len() > 500, "{} macros", macros.len());
        Ok(macros)
    }

    /// Whether a program that includes nothing else compiles when the compiler is told that.
    fn compiles_with(&self, header: Header, words: &str) -> Result<bool> {
        let path = self.file(header, &header.alone())?;
        // Modes and checks are said in the words.
        let language = self.way.words.replace("-DGASNET_DEBUG=1", "").replace("-O1", "-O0");
        let ask = self.compiler("NOTHING_ELSE").words(&language).words("-fsyntax-only").words(words);
        Ok((self.run)(&ask.arg(&path))?.ok())
    }

    /// What comes of the names of a header.
    fn used(&self, header: Header, mut uses: Vec<(usize, &Name)>) -> Result<BTreeMap<usize, Status>> {
        let mut statuses = BTreeMap::new();
        let object = self.scratch.join(format!("{}.o", header.word()));
        loop {
            let unit = Unit::of(header, &uses);
            let path = self.file(header, &unit.text)?;
            // An error in what a macro stands for is where the macro is used.
            let sections = "-pedantic -ffunction-sections -fdata-sections -ftrack-macro-expansion=0 -c";
            let compile = self.compiler(MODES[self.way.mode].1).words(self.way.words).words(sections);
            let ended = (self.run)(&compile.arg("-o").arg(&object).arg(&path).limit(120))?;
            if ended.ok() {
                break;
            }
            let wrong = unit.wrong(&ended.output, &path.display().to_string())?;
            statuses.extend(wrong.iter().map(|number| (*number, Status::Missing)));
            uses.retain(|(number, _)| !wrong.contains(number));
        }
        let undefined = self.undefined(&object)?;
        let shown = Cmd::new("readelf").words("-SrsW").arg(&object).env("LC_ALL", "C").read()?;
        let object = Object::of(&shown);
        let mut wanted = BTreeSet::new();
        for (number, name) in uses {
            let symbol = unit::symbol(number);
            let needs = object.needs(&symbol);
            ensure!(object.defines(&symbol) || name.is_outside(), "{}: its use is not there", name.name);
            let lacks: Vec<_> = needs.into_iter().filter(|need| undefined.contains(*need)).collect();
            let status = if lacks.is_empty() { Status::Works } else { Status::Declared };
            wanted.extend(lacks.into_iter().map(str::to_owned));
            statuses.insert(number, status);
        }
        let unknown: Vec<_> = undefined.difference(&wanted).collect();
        ensure!(unknown.is_empty(), "not in the library, and no name's: {unknown:?}");
        Ok(statuses)
    }

    /// What the library lacks of what an object wants.
    fn undefined(&self, object: &Path) -> Result<BTreeSet<String>> {
        let Way { conduit, mode, .. } = self.way;
        let link = Cmd::new(self.way.cc).env("LC_ALL", "C").arg("-o").arg(object.with_extension("program"));
        let link = link.words("-Wl,--warn-unresolved-symbols -Wl,--no-demangle").arg(object);
        let ended = (self.run)(&linking(link, conduit, MODES[*mode].0, self.laid_out))?.check()?;
        object::undefined(&ended.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_list_does_not_say_is_wrong() {
        let name = |name: &str, declared| Name {
            name: name.into(),
            kind: Kind::Function,
            area: "events".into(),
            by: By::Headers,
            declared,
            use_: "int(void)".into(),
        };
        let names =
            vec![name("a", false), name("b", true), name("c", true), name("d", false), name("e", false)];
        let plain = vec![Status::Works, Status::Declared, Status::Works, Status::Declared, Status::Undefined];
        let mut seq = plain.clone();
        seq[4] = Status::Missing;
        let mut report = Report { names, statuses: [seq, plain.clone(), plain], wrong: vec!["x".into()] };
        let wrong = report.wrong();
        let said: Vec<_> = wrong.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
        assert_eq!(said, ["x", "c", "d", "e"], "{wrong:?}");
        report.take_what_works();
        assert_eq!(
            report.names.iter().map(|name| name.declared).collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
    }
}
