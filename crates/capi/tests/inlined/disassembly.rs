//! Reads disassembled functions, and finds the longest path through one that makes no call.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    at: u64,
    /// Where the next one begins.
    end: u64,
    mnemonic: String,
    operands: String,
    /// The symbol that the linker puts into it.
    symbol: Option<String>,
}

/// Where control goes from an instruction.
#[derive(Debug, PartialEq)]
enum Step {
    Next,
    Return,
    Jump(u64),
    /// To another instruction, or to the next.
    Branch(u64),
    /// Out of the function.
    Leave(String),
    /// Out of the function, or to the next instruction: a call, or a branch out.
    LeaveOrNext(String),
}

/// The longest path from a function's start to its return without a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastPath {
    pub instructions: usize,
    pub bytes: u64,
}

/// The fast path of a function that calls `slow` alone, in one place.
///
/// # Errors
/// It calls something else, every path makes the call, or a path has no end.
pub fn fast_path(function: &[Instruction], slow: &str) -> Result<FastPath> {
    let mut calls = Vec::new();
    for instruction in function {
        match instruction.step()? {
            Step::Leave(name) | Step::LeaveOrNext(name) => calls.push(name),
            _ => {}
        }
    }
    ensure!(calls == [slow], "it calls {calls:?}, and is to call {slow} alone, in one place");
    let by_address = function.iter().map(|i| (i.at, i)).collect();
    let first = function.first().context("it has no instruction")?.at;
    let path = longest(&by_address, first, &mut BTreeSet::new())?;
    path.with_context(|| format!("every path through it calls {slow}"))
}

/// What a function does by locked instructions, without their sizes.
pub fn locked(function: &[Instruction]) -> Vec<&str> {
    let locked = function.iter().filter(|instruction| instruction.mnemonic == "lock");
    // As objdump prints them: `lock addq $0x1,(%r8)`.
    let names = locked.filter_map(|instruction| instruction.operands.split_whitespace().next());
    names.map(|name| name.strip_suffix(['l', 'q']).unwrap_or(name)).collect()
}

/// The longest path from the instruction at `at` to a return without a call, if there is one. `on` holds the addresses on the
/// path so far.
fn longest(
    function: &BTreeMap<u64, &Instruction>,
    at: u64,
    on: &mut BTreeSet<u64>,
) -> Result<Option<FastPath>> {
    let instruction = *function.get(&at).with_context(|| format!("it jumps to {at:x}, outside"))?;
    ensure!(on.insert(at), "it goes round a loop at {at:x}");
    let next = instruction.end;
    let ahead = match instruction.step()? {
        Step::Return => Some(FastPath { instructions: 0, bytes: 0 }),
        Step::Leave(_) => None,
        // What follows a call belongs to the slow path. A branch out may not be taken.
        Step::LeaveOrNext(_) if instruction.mnemonic == "call" => None,
        Step::Next | Step::LeaveOrNext(_) => longest(function, next, on)?,
        Step::Jump(to) => longest(function, to, on)?,
        Step::Branch(to) => {
            let (one, other) = (longest(function, next, on)?, longest(function, to, on)?);
            one.into_iter().chain(other).max_by_key(|path| path.instructions)
        }
    };
    on.remove(&at);
    Ok(ahead.map(|path| FastPath {
        instructions: path.instructions + 1,
        bytes: path.bytes + instruction.end - instruction.at,
    }))
}

impl Instruction {
    fn step(&self) -> Result<Step> {
        let calls = self.mnemonic == "call";
        if !calls && !self.mnemonic.starts_with('j') {
            return Ok(if self.mnemonic == "ret" { Step::Return } else { Step::Next });
        }
        ensure!(
            !self.operands.starts_with('*'),
            "{:x}: {} through {}",
            self.at,
            self.mnemonic,
            self.operands
        );
        let out = match (&self.symbol, self.operands.split_once(' ')) {
            (Some(name), _) => Some(name.clone()),
            // A call to another function of the object needs no linker.
            (None, Some((_, name))) if calls => Some(name.trim_matches(['<', '>']).to_owned()),
            _ => None,
        };
        let to = || {
            let digits = self.operands.split_whitespace().next().unwrap_or_default();
            let address = u64::from_str_radix(digits, 16);
            address.with_context(|| format!("{} {}: no address", self.mnemonic, self.operands))
        };
        Ok(match (out, self.mnemonic.as_str()) {
            (Some(name), "jmp") => Step::Leave(name),
            (Some(name), _) => Step::LeaveOrNext(name),
            (None, "call") => bail!("{:x}: a call without a name", self.at),
            (None, "jmp") => Step::Jump(to()?),
            (None, _) => Step::Branch(to()?),
        })
    }
}

/// The functions of what `objdump -dr --no-show-raw-insn` prints. Padding after a function counts as part of it: no path leads
/// there.
///
/// # Errors
/// There is no function.
pub fn parse(text: &str) -> Result<BTreeMap<String, Vec<Instruction>>> {
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
        let Some((address, rest)) = line.trim().split_once(':') else { continue };
        let Ok(at) = u64::from_str_radix(address, 16) else { continue };
        if let Some((_, symbol)) = rest.trim().strip_prefix("R_").and_then(|rest| rest.split_once('\t')) {
            let symbol = symbol.rsplit_once("-0x").map_or(symbol, |(symbol, _)| symbol);
            function.last_mut().context("a symbol before the first instruction")?.symbol =
                Some(symbol.to_owned());
            continue;
        }
        if let Some(last) = function.last_mut() {
            last.end = at;
        }
        // Prefixes change nothing here: `bnd jmp`, `rep ret`.
        let rest = rest.trim();
        let rest =
            ["bnd ", "notrack ", "rep ", "repz "].iter().find_map(|w| rest.strip_prefix(w)).unwrap_or(rest);
        let (mnemonic, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let plain = mnemonic.strip_suffix('q').filter(|m| ["call", "jmp", "ret"].contains(m));
        function.push(Instruction {
            at,
            // One byte, if nothing follows: a return.
            end: at + 1,
            mnemonic: plain.unwrap_or(mnemonic).to_owned(),
            operands: operands.split(" #").next().unwrap_or(operands).trim().to_owned(),
            symbol: None,
        });
    }
    ensure!(!functions.is_empty(), "no function is in the disassembly");
    Ok(functions)
}
