//! What the headers of the C interface inline into a program for a put, a get, and a test of an event: to a rank whose
//! segment is mapped no call, and few instructions. The cases read the code that compilers make of
//! `crates/capi/perf/inlined.c`.

mod disassembly;

use anyhow::{Context, Result, ensure};
use disassembly::{FastPath, fast_path, locked, parse};
use gasworks_testkit::c::compiler;
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Case, Cmd, Log, Need};
use std::process::ExitCode;

/// A function of `inlined.c`.
#[derive(Clone, Copy)]
struct Inlined {
    name: &'static str,
    /// The one function that it calls, where there is more to do.
    slow: &'static str,
    /// The most instructions on a path to its end without that call.
    instructions: usize,
    /// The most bytes of them. GASNet's own put of eight bytes takes 83.
    bytes: u64,
    /// The locked instruction that is all that it does, if it is one.
    locked: Option<&'static str>,
}

const fn short(name: &'static str, slow: &'static str) -> Inlined {
    Inlined { name, slow, instructions: 24, bytes: 74, locked: None }
}

const fn atomic(name: &'static str, locked: Option<&'static str>) -> Inlined {
    Inlined { locked, ..short(name, "gasworks_ad_nbi") }
}

const INLINED: [Inlined; 22] = [
    short("put8", "gasworks_put"),
    short("get8", "gasworks_get"),
    short("put8_value", "gasworks_put"),
    short("put4_value", "gasworks_put"),
    short("get8_value", "gasworks_get"),
    short("get1_value", "gasworks_get"),
    short("put8_event", "gasworks_put_nb"),
    // It also checks where the leaf goes.
    Inlined { instructions: 28, bytes: 88, ..short("put8_leaf", "gasworks_put_nb") },
    short("put8_value_event", "gasworks_put_nb"),
    short("get8_event", "gasworks_get_nb"),
    short("put8_implicit", "gasworks_put_nbi"),
    short("put8_value_implicit", "gasworks_put_nbi"),
    short("get8_implicit", "gasworks_get_nbi"),
    // Four copies of sixteen bytes.
    Inlined { instructions: 30, bytes: 100, ..short("put64", "gasworks_put") },
    atomic("fetch_add8", Some("xadd")),
    atomic("fetch_add8_by_job", Some("xadd")),
    atomic("increment8", Some("add")),
    atomic("set4", None),
    atomic("load4", None),
    atomic("compare_swap8", Some("cmpxchg")),
    Inlined { instructions: 5, bytes: 16, ..short("test", "gasworks_event_test") },
    Inlined { instructions: 5, bytes: 16, ..short("wait_for", "gasworks_event_wait") },
];

/// Without what some distributions add to every function.
const FLAGS: &str = "-O2 -c -fcf-protection=none -fno-stack-protector";

fn main() -> ExitCode {
    let by_compiler = [
        Case::new("gcc", |log| all_are_inlined(log, "gcc")),
        Case::new("clang", |log| all_are_inlined(log, "clang")).need(Need::Clang),
    ];
    let judges = [
        Case::new("judge/the-fast-path-is-measured", |_| the_fast_path_is_measured()),
        Case::new("judge/a-call-on-the-fast-path-is-found", |_| a_call_on_the_fast_path_is_found()),
        Case::new("judge/locked-instructions-are-found", |_| locked_instructions_are_found()),
        Case::new("judge/a-long-path-and-no-path-are-found", |_| a_long_path_and_no_path_are_found()),
    ];
    // The instructions that are read are those of x86-64.
    let by_compiler = by_compiler.into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    gasworks_testkit::cases::main("capi/inlined", by_compiler.chain(judges).collect())
}

/// No function of `inlined.c` makes a call on its fast path, or is too long.
fn all_are_inlined(log: &Log, cc: &str) -> Result<()> {
    let (laid_out, object) = (Fixture::C.get()?, log.scratch()?.join("inlined.o"));
    let source = gasworks_testkit::root().join("crates/capi/perf/inlined.c");
    let compile = compiler(cc, "smp", "GASNET_SEQ", &laid_out).words(FLAGS).arg(source);
    log.run_ok(&compile.arg("-o").arg(&object))?;
    let text = log.run_ok(&Cmd::new("objdump").words("-dr --no-show-raw-insn").arg(&object))?.output;
    let functions = parse(&text)?;
    let mut wrong = Vec::new();
    for inlined in INLINED {
        let function = functions.get(inlined.name).with_context(|| format!("no {}", inlined.name))?;
        let path = fast_path(function, inlined.slow).and_then(|path| inlined.judge(path));
        match path.and_then(|path| inlined.judge_locked(&locked(function)).map(|()| path)) {
            Ok(path) => {
                let (name, FastPath { instructions, bytes }) = (inlined.name, path);
                log.note(&format!("{name}: {instructions} instructions in {bytes} bytes"))?;
            }
            Err(error) => wrong.push(format!("{}: {error:#}", inlined.name)),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

impl Inlined {
    /// The path, if it is short enough.
    fn judge(&self, path: FastPath) -> Result<FastPath> {
        let (most, most_bytes) = (self.instructions, self.bytes);
        ensure!(
            path.instructions <= most && path.bytes <= most_bytes,
            "{} instructions in {} bytes; at most {most} in {most_bytes} are allowed",
            path.instructions,
            path.bytes
        );
        Ok(path)
    }

    /// Whether these are the locked instructions that it should have.
    fn judge_locked(&self, found: &[&str]) -> Result<()> {
        let wanted = self.locked.as_slice();
        ensure!(found == wanted, "it has the locked instructions {found:?}, not {wanted:?}");
        Ok(())
    }
}

const PUT: Inlined = Inlined { name: "put", slow: "gasworks_put", instructions: 7, bytes: 24, locked: None };

/// Judges a function with these lines on its fast path and at its end.
fn judged(inlined: Inlined, fast: &str, slow: &str) -> Result<FastPath> {
    let text = format!(
        "in.o:     file format elf64-x86-64\n\n0000000000000000 <put>:\n   0:\ttest   $0x1,%dil\n   \
         4:\tjne    20 <put+0x20>\n{fast}   d:\tmov    (%rcx),%rax\n  10:\tmov    %rax,(%r8)\n  \
         13:\trepz ret\n  15:\tnop\n{slow}"
    );
    fast_path(&parse(&text)?["put"], inlined.slow).and_then(|path| inlined.judge(path))
}

fn refused(fast: &str, slow: &str) -> String {
    format!("{:#}", judged(PUT, fast, slow).unwrap_err())
}

const SLOW: &str = "  20:\tjmp    25 <put+0x25>\n\t\t\t21: R_X86_64_PLT32\tgasworks_put-0x4\n  25:\tnop\n";

fn the_fast_path_is_measured() -> Result<()> {
    assert_eq!(judged(PUT, "", SLOW)?, FastPath { instructions: 5, bytes: 0x15 });
    // The longer of two paths counts, and none that makes a call.
    let branch = "   6:\tjbe    d <put+0xd>\n   8:\txor    %eax,%eax\n";
    assert_eq!(judged(PUT, branch, SLOW)?.instructions, 7);
    let call = "  20:\tcall   25 <put+0x25>\n\t\t\t21: R_X86_64_PLT32\tgasworks_put-0x4\n  25:\tret\n";
    assert_eq!(judged(PUT, branch, call)?.instructions, 7);
    Ok(())
}

fn a_call_on_the_fast_path_is_found() -> Result<()> {
    let call = |name| format!("   6:\tcall   b <put+0xb>\n\t\t\t7: R_X86_64_PLT32\t{name}-0x4\n");
    assert!(refused(&call("memcpy"), SLOW).contains("it calls [\"memcpy\", \"gasworks_put\"]"));
    assert!(refused(&call("gasworks_put"), SLOW).contains("in one place"));
    assert!(refused(&call("gasworks_put"), "").contains("it jumps to 20, outside"));
    let local = "   6:\tcall   40 <copy.constprop.0>\n";
    assert!(refused(local, SLOW).contains("copy.constprop.0"));
    let pointer = "   6:\tcall   *0x8(%rax)\n";
    assert!(refused(pointer, SLOW).contains("call through *0x8(%rax)"));
    let cold = "   6:\tjbe    c <put+0xc>\n\t\t\t8: R_X86_64_PC32\tput.cold-0x4\n";
    assert!(refused(cold, SLOW).contains("put.cold"));
    Ok(())
}

fn locked_instructions_are_found() -> Result<()> {
    let text = "0000000000000000 <put>:\n   0:\tlock xadd %rcx,(%rdx,%rax,1)\n   6:\tlock addq $0x1,(%r8)\n   c:\tret\n";
    let functions = parse(text)?;
    assert_eq!(locked(&functions["put"]), ["xadd", "add"]);
    let one = atomic("put", Some("xadd"));
    assert!(one.judge_locked(&["xadd"]).is_ok() && one.judge_locked(&[]).is_err());
    assert!(PUT.judge_locked(&["xadd"]).unwrap_err().to_string().contains("[\"xadd\"], not []"));
    Ok(())
}

fn a_long_path_and_no_path_are_found() -> Result<()> {
    let long = "   6:\tnop\n   7:\tnop\n   8:\tnop\n";
    assert!(refused(long, SLOW).contains("8 instructions in 21 bytes"));
    let few = Inlined { bytes: 20, ..PUT };
    assert!(judged(few, "", SLOW).unwrap_err().to_string().contains("at most 7 in 20"));
    assert!(refused("   6:\tjmp    20 <put+0x20>\n", SLOW).contains("every path"));
    assert!(refused("   6:\tjmp    0 <put>\n", SLOW).contains("a loop"));
    assert!(parse("nothing").unwrap_err().to_string().contains("no function"));
    Ok(())
}
