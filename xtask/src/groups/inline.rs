//! What the headers of the C interface put into a program for a put, a get, a look at an event: to a mapped peer no call, and few
//! instructions. That is read off what compilers make of `crates/capi/perf/inlined.c`.

use super::capi::laid_out;
use crate::capi::compiler;
use crate::exec::{Cmd, Log};
use crate::rows::Row;
use crate::world::World;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// A function of `inlined.c`.
#[derive(Clone, Copy)]
struct Inlined {
    name: &'static str,
    /// What it calls if more is to be done, and nothing else.
    twin: &'static str,
    /// The most instructions on a way to its end without that.
    instructions: usize,
    /// The most bytes of them. GASNet's own put of eight takes 83.
    bytes: u64,
}

const fn short(name: &'static str, twin: &'static str) -> Inlined {
    Inlined { name, twin, instructions: 24, bytes: 74 }
}

const INLINED: [Inlined; 16] = [
    short("put8", "gasworks_put"),
    short("get8", "gasworks_get"),
    short("put8_value", "gasworks_put"),
    short("put4_value", "gasworks_put"),
    short("get8_value", "gasworks_get"),
    short("get1_value", "gasworks_get"),
    short("put8_event", "gasworks_put_nb"),
    // What it also looks at is where the leaf goes.
    Inlined { instructions: 28, bytes: 88, ..short("put8_leaf", "gasworks_put_nb") },
    short("put8_value_event", "gasworks_put_nb"),
    short("get8_event", "gasworks_get_nb"),
    short("put8_implicit", "gasworks_put_nbi"),
    short("put8_value_implicit", "gasworks_put_nbi"),
    short("get8_implicit", "gasworks_get_nbi"),
    // Four copies of sixteen bytes.
    Inlined { instructions: 30, bytes: 100, ..short("put64", "gasworks_put") },
    Inlined { instructions: 5, bytes: 16, ..short("test", "gasworks_event_test") },
    Inlined { instructions: 5, bytes: 16, ..short("wait_for", "gasworks_event_wait") },
];

/// Compilers that are looked at where they are there. What some distributions add to every function is left out.
const COMPILERS: [&str; 2] = ["gcc", "clang"];
const FLAGS: &str = "-O2 -c -fcf-protection=none -fno-stack-protector";

pub fn rows() -> Vec<Row> {
    // What is read is the language of one processor.
    let read = cfg!(target_arch = "x86_64");
    read.then(|| Row::new("capi/no-call", no_call)).into_iter().collect()
}

fn no_call(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    let source = crate::root().join("crates/capi/perf/inlined.c");
    let there = |cc: &&str| Cmd::new(cc).arg("--version").works();
    for cc in COMPILERS {
        if !there(&cc) {
            ensure!(cc != COMPILERS[0], "there is no {cc}");
            log.note(&format!("{cc} is not there: what it makes of the headers is not looked at"))?;
            continue;
        }
        let object = place.join(format!("inlined-{cc}.o"));
        let compile = compiler(cc, "smp", "GASNET_SEQ", &place).words(FLAGS).arg(&source);
        log.run_ok(&compile.arg("-o").arg(&object))?;
        let text = log.run_ok(&Cmd::new("objdump").words("-dr --no-show-raw-insn").arg(&object))?.output;
        let functions = parse(&text)?;
        for inlined in INLINED {
            let function = functions.get(inlined.name).with_context(|| format!("no {}", inlined.name))?;
            let way = inlined.look(function).with_context(|| format!("{cc}: {}", inlined.name))?;
            log.note(&format!(
                "{cc}: {}: {} instructions in {} bytes",
                inlined.name, way.instructions, way.bytes
            ))?;
        }
    }
    Ok(())
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
struct Instruction {
    at: u64,
    /// Where the next one begins.
    end: u64,
    /// What it does, and with what.
    does: String,
    with: String,
    /// The name that the linker puts into it.
    names: Option<String>,
}

/// What an instruction does to the way through a function.
#[derive(Debug, PartialEq)]
enum Step {
    Next,
    Return,
    /// To another instruction; perhaps.
    Jump(u64),
    Branch(u64),
    /// Out of the function, from where it does not come back, or comes back from a slow way; perhaps.
    Leave(String),
    LeaveOrNext(String),
}

/// What was found on the longest way to the end that leaves the function nowhere.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    instructions: usize,
    bytes: u64,
}

impl Inlined {
    fn look(&self, function: &[Instruction]) -> Result<Way> {
        let mut left = Vec::new();
        for instruction in function {
            match instruction.step()? {
                Step::Leave(name) | Step::LeaveOrNext(name) => left.push(name),
                _ => {}
            }
        }
        ensure!(left == [self.twin], "it calls {left:?}, and is to call {} alone, from one place", self.twin);
        let by_place = function.iter().map(|i| (i.at, i)).collect();
        let first = function.first().context("it has no instruction")?.at;
        let way = longest(&by_place, first, &mut BTreeSet::new())?;
        let way = way.with_context(|| format!("each way through it goes through {}", self.twin))?;
        ensure!(
            way.instructions <= self.instructions && way.bytes <= self.bytes,
            "{} instructions in {} bytes, and at most {} in {} are allowed",
            way.instructions,
            way.bytes,
            self.instructions,
            self.bytes
        );
        Ok(way)
    }
}

/// The longest way from there to a return that does not leave the function, if there is one.
fn longest(function: &BTreeMap<u64, &Instruction>, at: u64, on: &mut BTreeSet<u64>) -> Result<Option<Way>> {
    let instruction = *function.get(&at).with_context(|| format!("it jumps to {at:x}, outside"))?;
    ensure!(on.insert(at), "it goes round a loop at {at:x}");
    let next = instruction.end;
    let ahead = match instruction.step()? {
        Step::Return => Some(Way { instructions: 0, bytes: 0 }),
        Step::Leave(_) => None,
        // Only a call ends a way here: what comes after it belongs to the slow one. A branch out may be not taken.
        Step::LeaveOrNext(_) if instruction.does == "call" => None,
        Step::Next | Step::LeaveOrNext(_) => longest(function, next, on)?,
        Step::Jump(to) => longest(function, to, on)?,
        Step::Branch(to) => {
            let (one, other) = (longest(function, next, on)?, longest(function, to, on)?);
            one.into_iter().chain(other).max_by_key(|way| way.instructions)
        }
    };
    on.remove(&at);
    Ok(ahead.map(|way| Way {
        instructions: way.instructions + 1,
        bytes: way.bytes + instruction.end - instruction.at,
    }))
}

impl Instruction {
    fn step(&self) -> Result<Step> {
        let calls = self.does == "call";
        if !calls && !self.does.starts_with('j') {
            return Ok(if self.does == "ret" { Step::Return } else { Step::Next });
        }
        ensure!(!self.with.starts_with('*'), "{:x}: {} through {}", self.at, self.does, self.with);
        let out = match (&self.names, self.with.split_once(' ')) {
            (Some(name), _) => Some(name.clone()),
            // Within the object no linker is needed to get to another function.
            (None, Some((_, name))) if calls => Some(name.trim_matches(['<', '>']).to_owned()),
            _ => None,
        };
        let to = || {
            let digits = self.with.split_whitespace().next().unwrap_or_default();
            u64::from_str_radix(digits, 16).with_context(|| format!("{} {}: where to?", self.does, self.with))
        };
        Ok(match (out, self.does.as_str()) {
            (Some(name), "jmp") => Step::Leave(name),
            (Some(name), _) => Step::LeaveOrNext(name),
            (None, "call") => bail!("{:x}: a call of nobody", self.at),
            (None, "jmp") => Step::Jump(to()?),
            (None, _) => Step::Branch(to()?),
        })
    }
}

/// The functions of a disassembly. What fills the space between two is left to the first of them: nothing gets there.
fn parse(text: &str) -> Result<BTreeMap<String, Vec<Instruction>>> {
    let mut functions: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(begun) = line.strip_suffix(">:").and_then(|l| l.split_once(" <")) {
            name = Some(begun.1.to_owned());
            continue;
        }
        let Some(function) = name.as_ref().map(|name| functions.entry(name.clone()).or_default()) else {
            continue;
        };
        let Some((place, rest)) = line.trim().split_once(':') else { continue };
        let Ok(at) = u64::from_str_radix(place, 16) else { continue };
        if let Some((_, symbol)) = rest.trim().strip_prefix("R_").and_then(|rest| rest.split_once('\t')) {
            let symbol = symbol.rsplit_once("-0x").map_or(symbol, |(symbol, _)| symbol);
            function.last_mut().context("a name before the first instruction")?.names =
                Some(symbol.to_owned());
            continue;
        }
        if let Some(last) = function.last_mut() {
            last.end = at;
        }
        // Words before the one that matters change nothing here: `bnd jmp`, `rep ret`.
        let rest = rest.trim();
        let rest =
            ["bnd ", "notrack ", "rep ", "repz "].iter().find_map(|w| rest.strip_prefix(w)).unwrap_or(rest);
        let (does, with) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let does = does.strip_suffix('q').filter(|d| ["call", "jmp", "ret"].contains(d)).unwrap_or(does);
        function.push(Instruction {
            at,
            // One byte, if nothing follows: a return.
            end: at + 1,
            does: does.to_owned(),
            with: with.split(" #").next().unwrap_or(with).trim().to_owned(),
            names: None,
        });
    }
    ensure!(!functions.is_empty(), "no function is in the disassembly");
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: Inlined = Inlined { name: "put", twin: "gasworks_put", instructions: 7, bytes: 24 };

    /// A function with this in its fast way and that at its end.
    fn look(inlined: Inlined, fast: &str, slow: &str) -> Result<Way> {
        let text = format!(
            "in.o:     file format elf64-x86-64\n\n0000000000000000 <put>:\n   0:\ttest   $0x1,%dil\n   \
             4:\tjne    20 <put+0x20>\n{fast}   d:\tmov    (%rcx),%rax\n  10:\tmov    %rax,(%r8)\n  \
             13:\trepz ret\n  15:\tnop\n{slow}"
        );
        inlined.look(&parse(&text)?["put"])
    }

    fn refused(fast: &str, slow: &str) -> String {
        format!("{:#}", look(PUT, fast, slow).unwrap_err())
    }

    const SLOW: &str =
        "  20:\tjmp    25 <put+0x25>\n\t\t\t21: R_X86_64_PLT32\tgasworks_put-0x4\n  25:\tnop\n";

    #[test]
    fn the_way_to_the_end_is_counted() {
        assert_eq!(look(PUT, "", SLOW).unwrap(), Way { instructions: 5, bytes: 0x15 });
        // Of two ways the longer one, and none over a call.
        let branch = "   6:\tjbe    d <put+0xd>\n   8:\txor    %eax,%eax\n";
        assert_eq!(look(PUT, branch, SLOW).unwrap().instructions, 7);
        let call = "  20:\tcall   25 <put+0x25>\n\t\t\t21: R_X86_64_PLT32\tgasworks_put-0x4\n  25:\tret\n";
        assert_eq!(look(PUT, branch, call).unwrap().instructions, 7);
    }

    #[test]
    fn a_call_on_the_way_is_found() {
        let call = |name| format!("   6:\tcall   b <put+0xb>\n\t\t\t7: R_X86_64_PLT32\t{name}-0x4\n");
        assert!(refused(&call("memcpy"), SLOW).contains("it calls [\"memcpy\", \"gasworks_put\"]"));
        assert!(refused(&call("gasworks_put"), SLOW).contains("from one place"));
        assert!(refused(&call("gasworks_put"), "").contains("it jumps to 20, outside"));
        let local = "   6:\tcall   40 <copy.constprop.0>\n";
        assert!(refused(local, SLOW).contains("copy.constprop.0"));
        let pointer = "   6:\tcall   *0x8(%rax)\n";
        assert!(refused(pointer, SLOW).contains("call through *0x8(%rax)"));
        let cold = "   6:\tjbe    c <put+0xc>\n\t\t\t8: R_X86_64_PC32\tput.cold-0x4\n";
        assert!(refused(cold, SLOW).contains("put.cold"));
    }

    #[test]
    fn too_long_a_way_and_none_are_found() {
        let long = "   6:\tnop\n   7:\tnop\n   8:\tnop\n";
        assert!(refused(long, SLOW).contains("8 instructions in 21 bytes"));
        let few = Inlined { bytes: 20, ..PUT };
        assert!(look(few, "", SLOW).unwrap_err().to_string().contains("at most 7 in 20"));
        assert!(refused("   6:\tjmp    20 <put+0x20>\n", SLOW).contains("each way through it"));
        assert!(refused("   6:\tjmp    0 <put>\n", SLOW).contains("a loop"));
        assert!(parse("nothing").unwrap_err().to_string().contains("no function"));
    }
}
