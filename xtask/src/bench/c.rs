//! What a program in C sees of the library: `gasperf-c`, in turns with gasperf.

use super::judge::shown;
use super::plan::{Against, Check, GROUP, Group, Launch, Program, at_most, pick, second, to, two};
use super::record::{Record, Row};
use crate::capi::{MODES, built, compiler, lay_out, linking};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::PathBuf;

/// The program; there is one for each mode, whose name follows.
pub const PROGRAM: &str = "gasperf-c";

/// What rows of Rust that were taken in turns with those of C have for a place: others were taken in turns with peers.
pub const BESIDE: &str = "in turns with C";

/// The modes in which it is measured, by their place among all.
const MEASURED: [usize; 2] = [0, 2];

/// Its benches: all of them run once for their whole table.
pub const SET: [Launch; 5] = [c("put-latency"), c("get-latency"), c("atomic"), c("am-latency"), c("am-rate")];

const fn c(args: &'static str) -> Launch {
    Launch { program: Program::C("seq"), ranks: 2, args }
}

/// How much longer a put or get takes than the machine needs for a look-up and a copy: nanoseconds are of a machine, this is of the library.
const fn bare(what: &'static str, bench: &'static str, variant: &'static str) -> Check {
    to(what, pick(bench, variant, 8), 1.5, Against::Own(pick(bench, "bare", 8)))
}

/// The groups. In each, the first launch is from C, and the second the same from Rust.
pub const GROUPS: &[Group] = &[
    Group {
        name: "put 8 B, from C",
        launches: &[c("put-latency"), two("put-latency --bytes 8")],
        checks: &[
            at_most("8-byte blocking put by value, ns", pick("put-latency", "value", 8), 1.5),
            at_most("8-byte blocking put by address, ns", pick("put-latency", "address", 8), 1.5),
            bare("8-byte blocking put by value, to a bare one", "put-latency", "value"),
            bare("8-byte blocking put by address, to a bare one", "put-latency", "address"),
        ],
        quick: true,
        ..GROUP
    },
    Group {
        name: "get 8 B, from C",
        launches: &[c("get-latency"), two("get-latency --bytes 8")],
        checks: &[
            at_most("8-byte blocking get by value, ns", pick("get-latency", "value", 8), 1.5),
            at_most("8-byte blocking get by address, ns", pick("get-latency", "address", 8), 1.5),
            bare("8-byte blocking get by value, to a bare one", "get-latency", "value"),
            bare("8-byte blocking get by address, to a bare one", "get-latency", "address"),
        ],
        quick: true,
        ..GROUP
    },
    Group {
        name: "fetch-and-add 8 B, from C",
        launches: &[c("atomic"), two("atomic --variant fetch-add")],
        checks: &[to(
            "8-byte fetch-and-add, to the processor's instruction",
            pick("atomic", "fetch-add", 8),
            1.3,
            Against::Own(pick("atomic", "instruction", 8)),
        )],
        quick: true,
        ..GROUP
    },
    Group {
        name: "Short flood, from C",
        launches: &[c("am-rate"), two("am-rate --variant short")],
        checks: &[to(
            "Short flood, more than from Rust, ns",
            pick("am-rate", "short", 0),
            5.0,
            Against::Beside(second("am-rate", "short", 0)),
        )],
        quick: true,
        ..GROUP
    },
    Group {
        name: "Short flood in par, from C",
        launches: &[
            Launch { program: Program::C("par"), ..c("am-rate") },
            two("am-rate --variant short --mode par"),
        ],
        ..GROUP
    },
    Group {
        name: "Short round trip, from C",
        launches: &[c("am-latency"), two("am-latency --variant short")],
        ..GROUP
    },
];

/// Builds the library, lays it out, and compiles the program against it; returns where.
pub fn build() -> Result<PathBuf> {
    let place = crate::root().join("target/xtask/perf-c");
    crate::capi::build().show()?;
    lay_out(&place, &built(), &["smp"], |cmd| cmd.read().map(drop))?;
    let source = |name: &str| crate::root().join(format!("crates/capi/perf/{name}.c"));
    for (mode, define) in MEASURED.map(|mode| MODES[mode]) {
        let compile = compiler("gcc", "smp", define, &place).words("-std=c99 -pedantic -O3");
        let compile = compile.args(["gasperf-c", "session", "stats"].map(source));
        let compile = compile.arg("-o").arg(place.join(format!("{PROGRAM}-{mode}")));
        linking(compile, "smp", mode, &place).show()?;
    }
    Ok(place)
}

/// An error unless a record holds what a short pass leaves.
pub fn whole(record: &Record) -> Result<()> {
    for (bench, variants, bytes) in [
        ("put-latency", &["value", "address", "event", "implicit", "bare"][..], 8),
        ("get-latency", &["value", "address", "event", "implicit", "bare"], 8),
        ("atomic", &["fetch-add", "fetch-add-late", "implicit", "bare", "instruction"], 8),
        ("am-latency", &["short"], 0),
        ("am-rate", &["short", "short-replies"], 0),
    ] {
        for variant in variants {
            let is = |row: &&Row| {
                (&*row.transport, &*row.bench, &*row.variant, row.bytes) == ("c", bench, variant, bytes)
            };
            let row = record.rows.iter().find(is);
            let row = row.with_context(|| format!("no row of {PROGRAM} {bench} {variant}"))?;
            // That nothing takes no time is known of every machine; how long it takes is not judged here.
            ensure!(row.min > 0.05 && row.ranks == 2, "{bench} {variant} from C: {row:?}");
        }
    }
    Ok(())
}

/// What a C program's figures are beside: bench; variant from C, and from Rust if it has the like; bytes; mode.
type Pair = (&'static str, (&'static str, &'static str, &'static str), u64, &'static str);

const PAIRS: &[Pair] = &[
    ("8 B put by value", ("put-latency", "value", "value"), 8, "seq"),
    ("8 B put by address", ("put-latency", "address", "slice"), 8, "seq"),
    ("8 B put, its event waited for", ("put-latency", "event", ""), 8, "seq"),
    ("8 B put, implicit, a wait for every 256", ("put-latency", "implicit", ""), 8, "seq"),
    ("a look-up and a store, without the library", ("put-latency", "bare", ""), 8, "seq"),
    ("8 B get by value", ("get-latency", "value", "value"), 8, "seq"),
    ("8 B get by address", ("get-latency", "address", "slice"), 8, "seq"),
    ("8 B get, its event waited for", ("get-latency", "event", ""), 8, "seq"),
    ("8 B get, implicit, a wait for every 256", ("get-latency", "implicit", ""), 8, "seq"),
    ("a look-up and a load, without the library", ("get-latency", "bare", ""), 8, "seq"),
    ("fetch-and-add 8 B, its event waited for", ("atomic", "fetch-add", "fetch-add"), 8, "seq"),
    ("fetch-and-add 8 B, known at run time only", ("atomic", "fetch-add-late", ""), 8, "seq"),
    ("sum 8 B, implicit, a wait for every 256", ("atomic", "implicit", ""), 8, "seq"),
    ("a look-up and a fetch-and-add, without the library", ("atomic", "bare", ""), 8, "seq"),
    ("the processor's fetch-and-add", ("atomic", "instruction", ""), 8, "seq"),
    ("flood of Shorts, each", ("am-rate", "short", "short"), 0, "seq"),
    ("flood of Shorts with replies, each", ("am-rate", "short-replies", "short-replies"), 0, "seq"),
    ("flood of Shorts in par, each", ("am-rate", "short", "short"), 0, "par"),
    ("request and reply", ("am-latency", "short", "short"), 0, "seq"),
];

/// The table of medians, from C and from Rust.
pub fn medians(page: &mut String, rows: &[Row]) -> std::fmt::Result {
    writeln!(page, "| | from C | from Rust |\n|---|---|---|")?;
    for &(title, (bench, from_c, from_rust), bytes, mode) in PAIRS {
        let median = |transport: &str, place: &str, variant: &str| {
            let is = |r: &&Row| {
                (&*r.transport, &*r.bench, &*r.variant, &*r.mode, r.bytes, r.ranks, r.threads, &*r.place)
                    == (transport, bench, variant, mode, bytes, 2, 1, place)
            };
            rows.iter().find(is).map_or_else(|| "-".to_owned(), |row| shown(row.p50))
        };
        writeln!(page, "| {title} | {} | {} |", median("c", "", from_c), median("pshm", BESIDE, from_rust))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::example;

    fn from(transport: &str, bench: &str, variant: &str, bytes: u64, ns: f64) -> Row {
        Row { variant: variant.into(), ..example(bench, transport, bytes, &[ns]) }
    }

    #[test]
    fn in_each_group_c_is_beside_rust() {
        for group in GROUPS {
            let [c, rust] = group.launches else {
                panic!("{}: {} launches", group.name, group.launches.len())
            };
            assert!(matches!(c.program, Program::C(_)) && rust.program == Program::Rust, "{}", group.name);
            assert_eq!(c.args.split(' ').next(), rust.args.split(' ').next(), "{}", group.name);
        }
    }

    #[test]
    fn a_row_that_is_missing_or_took_no_time_is_found() {
        let rows = PAIRS.iter().filter(|pair| pair.3 == "seq");
        let rows: Vec<_> =
            rows.map(|(_, (bench, c, _), bytes, _)| from("c", bench, c, *bytes, 1.2)).collect();
        let record = |rows: Vec<Row>| Record { rows, ..Record::default() };
        whole(&record(rows.clone())).unwrap();
        for at in 0..rows.len() {
            let mut other = rows.clone();
            other[at].transport = "pshm".into();
            assert!(whole(&record(other)).unwrap_err().to_string().starts_with("no row of gasperf-c"));
            let mut other = rows.clone();
            other[at].min = 0.01;
            assert!(whole(&record(other)).is_err());
        }
    }

    #[test]
    fn the_table_holds_both() {
        let beside = Row { place: BESIDE.into(), ..from("pshm", "put-latency", "slice", 8, 2.5) };
        let beside_peers = from("pshm", "put-latency", "slice", 8, 9.0);
        let rows = [beside_peers, beside, from("c", "put-latency", "address", 8, 1.25)];
        let mut page = String::new();
        medians(&mut page, &rows).unwrap();
        assert!(page.contains("| 8 B put by address | 1.25 ns | 2.50 ns |\n"), "{page}");
        assert!(page.contains("| 8 B put by value | - | - |\n"), "{page}");
    }
}
