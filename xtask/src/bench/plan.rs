//! What is measured against what: the limits of the library, as data.

use super::place::Place;

/// Rows of gasperf that belong together, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The name of the bench.
    pub bench: &'static str,
    /// The variant; empty: whichever is the best.
    pub variant: &'static str,
    /// The size.
    pub bytes: u64,
    /// Which of the launches it comes from.
    pub launch: usize,
}

/// What ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// A figure in nanoseconds, which is the limit itself.
    Nothing,
    /// The best of the peers, the recorded one included.
    BestPeer,
    /// The recorded one, which answers this question.
    Recorded,
    /// Another of our own rows.
    Own(Pick),
    /// The same, but the limit is on how many nanoseconds ours takes more.
    Beside(Pick),
    /// The same loop on local memory: its blocks' own noise is added to the limit.
    Local(Pick),
}

/// A limit.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// What is measured, in words.
    pub what: &'static str,
    /// Ours.
    pub ours: Pick,
    /// The other side of the ratio.
    pub against: Against,
    /// The most that the ratio may be, or our figure if there is no other side.
    pub limit: f64,
}

/// A program that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// gasperf.
    Rust,
    /// gasperf-c, of a thread mode.
    C(&'static str),
}

/// What gasperf, or gasperf-c, is started with.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Which of them.
    pub program: Program,
    /// Ranks.
    pub ranks: u32,
    /// Arguments.
    pub args: &'static str,
}

/// Measurements that take turns with each other.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its name in what is printed.
    pub name: &'static str,
    /// Under which conditions.
    pub place: Place,
    /// What of ours runs in every turn.
    pub launches: &'static [Launch],
    /// What the peers are asked: bench, size; and on how many ranks.
    pub question: Option<(&'static str, u64, u32)>,
    /// What the recorded peer's figure is listed under, if not under the question.
    pub recorded: Option<(&'static str, u64)>,
    /// The limits.
    pub checks: &'static [Check],
    /// Whether a quick run has it.
    pub quick: bool,
    /// Whether its figures scatter so much that it needs more turns than others.
    pub scatters: bool,
}

/// Two ranks of gasperf.
pub const fn two(args: &'static str) -> Launch {
    many(2, args)
}

const fn many(ranks: u32, args: &'static str) -> Launch {
    Launch { program: Program::Rust, ranks, args }
}

/// From the first launch of the group.
pub const fn pick(bench: &'static str, variant: &'static str, bytes: u64) -> Pick {
    Pick { bench, variant, bytes, launch: 0 }
}

/// From the second.
pub const fn second(bench: &'static str, variant: &'static str, bytes: u64) -> Pick {
    Pick { bench, variant, bytes, launch: 1 }
}

/// A figure, and the most that it may be.
pub const fn at_most(what: &'static str, ours: Pick, limit: f64) -> Check {
    Check { what, ours, against: Against::Nothing, limit }
}

/// A figure, and the most that its ratio to another may be.
pub const fn to(what: &'static str, ours: Pick, limit: f64, against: Against) -> Check {
    Check { what, ours, against, limit }
}

/// What most groups have.
pub const GROUP: Group = Group {
    name: "",
    place: Place::RealTime,
    launches: &[],
    question: None,
    recorded: None,
    checks: &[],
    quick: false,
    scatters: false,
};

macro_rules! copies {
    ($name:literal, $bench:literal, $peers:literal, $bytes:literal, $size:literal, $quick:literal) => {
        Group {
            name: concat!($name, " ", $size),
            launches: &[two(concat!($bench, " --variant warm --bytes ", $bytes))],
            question: Some(($peers, $bytes, 2)),
            checks: &[to(
                concat!($name, " ", $size, ", to the same loop on local memory"),
                pick($bench, "warm", $bytes),
                1.0,
                Against::Local(pick($bench, "local-warm", $bytes)),
            )],
            quick: $quick,
            ..GROUP
        }
    };
}

macro_rules! flood {
    ($bytes:literal, $size:literal) => {
        Group {
            name: concat!("Medium flood ", $size),
            launches: &[
                two(concat!("am-bandwidth --bytes ", $bytes)),
                two(concat!("raw --variant raw-checked --bytes ", $bytes)),
            ],
            question: Some(("am-bandwidth", $bytes, 2)),
            checks: &[
                to(
                    concat!("Medium flood ", $size, ", payload unread, to the best peer"),
                    pick("am-bandwidth", "unread", $bytes),
                    1.0,
                    Against::BestPeer,
                ),
                to(
                    concat!("Medium flood ", $size, ", read and checked, to raw"),
                    pick("am-bandwidth", "checked", $bytes),
                    1.0 / 0.9,
                    Against::Own(second("raw-checked", "", $bytes)),
                ),
            ],
            quick: true,
            ..GROUP
        }
    };
}

macro_rules! medium {
    ($bytes:literal, $size:literal, $quick:literal) => {
        Group {
            name: concat!("Medium round trip ", $size),
            launches: &[
                two(concat!("am-latency --variant medium --bytes ", $bytes)),
                two(concat!("raw --variant raw-message --bytes ", $bytes)),
            ],
            question: Some(("am-latency", $bytes, 2)),
            checks: &[
                to(
                    concat!("Medium round trip ", $size, ", payload read, to raw"),
                    pick("am-latency", "medium-read", $bytes),
                    1.2,
                    Against::Own(second("raw-message", "", $bytes)),
                ),
                to(
                    concat!("Medium round trip ", $size, ", payload unread, to GASNet-EX"),
                    pick("am-latency", "medium-unread", $bytes),
                    1.0,
                    Against::Recorded,
                ),
            ],
            quick: $quick,
            scatters: $bytes == 8,
            ..GROUP
        }
    };
}

/// A collective of two ranks, to the best peer; and, where it says so, in nanoseconds.
macro_rules! collective {
    ($kind:literal, $bytes:literal, $size:literal, $limit:literal, $quick:literal $(, at most $ns:literal ns)?) => {
        Group {
            name: concat!($kind, " ", $size, ", 2 ranks"),
            launches: &[two(concat!("collective --variant ", $kind, " --bytes ", $bytes))],
            question: Some(($kind, $bytes, 2)),
            checks: &[
                to(
                    concat!($kind, " ", $size, ", 2 ranks, to the best peer"),
                    pick("collective", $kind, $bytes),
                    $limit,
                    Against::BestPeer,
                ),
                $(at_most(
                    concat!($kind, " ", $size, ", 2 ranks, ns"),
                    pick("collective", $kind, $bytes),
                    $ns,
                ),)?
            ],
            quick: $quick,
            ..GROUP
        }
    };
}

/// A collective of more ranks than there are cores.
macro_rules! crowded {
    ($kind:literal, $bytes:literal, $size:literal, $ranks:literal) => {
        Group {
            name: concat!($kind, " ", $size, ", ", $ranks, " ranks on 2 cores"),
            // A turn of 64 ranks takes seconds, most of them MPICH's.
            scatters: $ranks < 64,
            place: Place::Ordinary,
            launches: &[many($ranks, concat!("collective --variant ", $kind, " --bytes ", $bytes))],
            question: Some(($kind, $bytes, $ranks)),
            checks: &[to(
                concat!($kind, " ", $size, ", ", $ranks, " ranks on 2 cores, to the best peer"),
                pick("collective", $kind, $bytes),
                1.0,
                Against::BestPeer,
            )],
            ..GROUP
        }
    };
}

/// All of them, in the order of the table.
pub const GROUPS: &[Group] = &[
    Group {
        name: "put 8 B",
        launches: &[two("put-latency --variant value --bytes 8")],
        question: Some(("put-latency", 8, 2)),
        checks: &[at_most("8-byte blocking put, ns", pick("put-latency", "value", 8), 1.5)],
        quick: true,
        ..GROUP
    },
    Group {
        name: "get 8 B",
        launches: &[two("get-latency --variant value --bytes 8")],
        question: Some(("get-latency", 8, 2)),
        checks: &[at_most("8-byte blocking get, ns", pick("get-latency", "value", 8), 1.5)],
        quick: true,
        ..GROUP
    },
    Group {
        name: "Short round trip",
        launches: &[two("am-latency --variant short"), two("raw --variant raw-line")],
        question: Some(("am-latency", 8, 2)),
        recorded: Some(("am-latency", 0)),
        checks: &[to(
            "Short request and reply, round trip, to the best peer",
            pick("am-latency", "short", 0),
            0.75,
            Against::BestPeer,
        )],
        quick: true,
        ..GROUP
    },
    Group {
        name: "Short flood",
        launches: &[two("am-rate --variant short")],
        question: Some(("am-rate", 8, 2)),
        recorded: Some(("am-rate", 0)),
        checks: &[to("Short flood, to the best peer", pick("am-rate", "short", 0), 0.5, Against::BestPeer)],
        quick: true,
        ..GROUP
    },
    flood!(4096, "4 KiB"),
    flood!(65536, "64 KiB"),
    medium!(8, "8 B", true),
    medium!(512, "512 B", false),
    medium!(4096, "4 KiB", true),
    copies!("put", "put-bandwidth", "put-latency", 64, "64 B", false),
    copies!("put", "put-bandwidth", "put-latency", 4096, "4 KiB", true),
    copies!("put", "put-bandwidth", "put-latency", 65536, "64 KiB", false),
    copies!("put", "put-bandwidth", "put-latency", 1048576, "1 MiB", true),
    copies!("put", "put-bandwidth", "put-latency", 67108864, "64 MiB", false),
    copies!("get", "get-bandwidth", "get-latency", 64, "64 B", false),
    copies!("get", "get-bandwidth", "get-latency", 4096, "4 KiB", true),
    copies!("get", "get-bandwidth", "get-latency", 65536, "64 KiB", false),
    copies!("get", "get-bandwidth", "get-latency", 1048576, "1 MiB", false),
    copies!("get", "get-bandwidth", "get-latency", 67108864, "64 MiB", false),
    // Before that of everyone beside peers, whose row it would replace.
    Group {
        name: "barrier of a team, 2 ranks",
        scatters: true,
        launches: &[two("barrier --variant team"), two("barrier --variant shared")],
        checks: &[to(
            "barrier of a team of 2, to everyone's",
            pick("barrier", "team", 0),
            1.0,
            Against::Own(second("barrier", "shared", 0)),
        )],
        ..GROUP
    },
    Group {
        name: "barrier, 2 ranks",
        scatters: true,
        launches: &[two("barrier --variant shared"), two("raw --variant raw-barrier")],
        question: Some(("barrier", 0, 2)),
        checks: &[
            to(
                "barrier, 2 ranks, to raw",
                pick("barrier", "shared", 0),
                1.3,
                Against::Own(second("raw-barrier", "", 0)),
            ),
            to("barrier, 2 ranks, to the best peer", pick("barrier", "shared", 0), 1.0, Against::BestPeer),
        ],
        quick: true,
        ..GROUP
    },
    Group {
        name: "barrier, 4 ranks on 2 cores",
        scatters: true,
        place: Place::Ordinary,
        launches: &[many(4, "barrier --variant shared")],
        question: Some(("barrier", 0, 4)),
        checks: &[to(
            "barrier, 4 ranks on 2 cores, to the best peer",
            pick("barrier", "shared", 0),
            1.0,
            Against::BestPeer,
        )],
        quick: true,
        ..GROUP
    },
    Group {
        name: "round trip, 4 ranks on 2 cores",
        scatters: true,
        place: Place::Ordinary,
        launches: &[many(4, "am-latency --variant short")],
        question: Some(("am-latency", 8, 4)),
        recorded: Some(("am-latency", 0)),
        checks: &[to(
            "Short round trip, 4 ranks on 2 cores, to the best peer",
            pick("am-latency", "short", 0),
            1.0,
            Against::BestPeer,
        )],
        quick: true,
    },
    collective!("broadcast", 4, "4 B", 1.0, true, at most 300.0 ns),
    collective!("reduce-all", 8, "8 B", 0.9, true),
    collective!("all-gather", 8, "8 B", 1.0, false),
    collective!("all-gather", 16384, "16 KiB", 1.0, false, at most 5000.0 ns),
    collective!("all-to-all", 8, "8 B", 0.9, true),
    collective!("broadcast", 1048576, "1 MiB", 1.0, false),
    collective!("reduce-all", 1048576, "1 MiB", 1.0, false),
    collective!("all-gather", 1048576, "1 MiB", 1.0, false),
    crowded!("broadcast", 8, "8 B", 4),
    crowded!("reduce-all", 8, "8 B", 4),
    crowded!("all-gather", 8, "8 B", 4),
    crowded!("all-to-all", 8, "8 B", 4),
    crowded!("broadcast", 1024, "1 KiB", 4),
    crowded!("reduce-all", 1024, "1 KiB", 4),
    crowded!("all-gather", 1024, "1 KiB", 4),
    crowded!("all-to-all", 1024, "1 KiB", 4),
    crowded!("broadcast", 8, "8 B", 8),
    crowded!("reduce-all", 8, "8 B", 8),
    crowded!("all-gather", 8, "8 B", 8),
    crowded!("all-to-all", 8, "8 B", 8),
    crowded!("broadcast", 1024, "1 KiB", 8),
    crowded!("reduce-all", 1024, "1 KiB", 8),
    crowded!("all-gather", 1024, "1 KiB", 8),
    crowded!("all-to-all", 1024, "1 KiB", 8),
    crowded!("broadcast", 8, "8 B", 64),
    crowded!("reduce-all", 8, "8 B", 64),
    crowded!("all-gather", 8, "8 B", 64),
    crowded!("all-to-all", 8, "8 B", 64),
    Group {
        name: "barrier, 2 ranks on one core",
        place: Place::OneCore,
        launches: &[two("barrier --variant shared")],
        checks: &[at_most("barrier, 2 ranks on one core, ns", pick("barrier", "shared", 0), 5_000.0)],
        quick: true,
        ..GROUP
    },
    Group {
        name: "64 ranks on 2 cores",
        scatters: true,
        place: Place::Ordinary,
        launches: &[many(64, "am-rate --variant short"), two("am-rate --variant short")],
        checks: &[to(
            "Short flood, time for a message of the whole job, 64 ranks to 2",
            pick("am-rate", "short", 0),
            2.0,
            Against::Own(second("am-rate", "short", 0)),
        )],
        ..GROUP
    },
    Group {
        name: "two threads in each rank",
        place: Place::Ordinary,
        launches: &[
            two("am-rate --variant short --mode par --threads 2"),
            two("am-rate --variant short --mode seq"),
        ],
        checks: &[to(
            "Short flood, 2 threads in each of 2 ranks, to seq",
            pick("am-rate", "short", 0),
            1.25,
            Against::Own(second("am-rate", "short", 0)),
        )],
        ..GROUP
    },
    Group {
        name: "par alone",
        launches: &[
            two("am-latency --variant short --mode par"),
            two("am-latency --variant short --mode seq"),
        ],
        checks: &[to(
            "Short round trip, par without contention, to seq",
            pick("am-latency", "short", 0),
            1.2,
            Against::Own(second("am-latency", "short", 0)),
        )],
        ..GROUP
    },
    Group {
        name: "wake",
        scatters: true,
        launches: &[two("wake")],
        checks: &[
            to(
                "a sleeper woken, sender busy, to a bare futex",
                pick("wake", "sender busy", 0),
                1.2,
                Against::Own(pick("raw-wake", "waker busy", 0)),
            ),
            to(
                "a sleeper woken, sender slept too, to a bare futex",
                pick("wake", "sender slept too", 0),
                1.2,
                Against::Own(pick("raw-wake", "waker slept too", 0)),
            ),
        ],
        ..GROUP
    },
    Group { name: "fetch-and-add", launches: &[two("atomic")], question: Some(("atomic", 8, 2)), ..GROUP },
];

/// Every bench of gasperf, run once for its whole table: arguments, ranks, and where.
pub const SET: &[(&str, u32, Place)] = &[
    ("raw", 2, Place::RealTime),
    ("am-latency", 2, Place::RealTime),
    ("am-rate", 2, Place::RealTime),
    ("am-bandwidth", 2, Place::RealTime),
    ("put-latency", 2, Place::RealTime),
    ("get-latency", 2, Place::RealTime),
    ("put-bandwidth", 2, Place::RealTime),
    ("get-bandwidth", 2, Place::RealTime),
    ("barrier", 2, Place::RealTime),
    ("atomic", 2, Place::RealTime),
    ("gups", 2, Place::RealTime),
    ("wake", 2, Place::RealTime),
    ("startup", 4, Place::Ordinary),
    ("memory", 64, Place::Ordinary),
    ("memory", 512, Place::Ordinary),
    ("scale", 64, Place::Ordinary),
    ("scale", 256, Place::Ordinary),
    ("scale", 1000, Place::Ordinary),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn picks_come_from_launches_that_there_are() {
        for group in GROUPS.iter().chain(super::super::c::GROUPS) {
            assert!(!group.launches.is_empty(), "{}", group.name);
            for check in group.checks {
                let mut picks = vec![check.ours];
                if let Against::Own(other) | Against::Beside(other) | Against::Local(other) = check.against {
                    picks.push(other);
                }
                assert!(picks.iter().all(|pick| pick.launch < group.launches.len()), "{}", check.what);
                assert!(check.limit > 0.0);
                let asks = group.question.is_some();
                assert!(
                    asks || !matches!(check.against, Against::BestPeer | Against::Recorded),
                    "{}",
                    check.what
                );
            }
        }
    }

    #[test]
    fn names_are_used_once() {
        let all: Vec<_> = GROUPS.iter().chain(super::super::c::GROUPS).collect();
        let names: BTreeSet<_> = all.iter().map(|g| g.name).collect();
        let checks: Vec<_> = all.iter().flat_map(|g| g.checks).map(|c| c.what).collect();
        assert_eq!(names.len(), all.len());
        assert_eq!(checks.iter().collect::<BTreeSet<_>>().len(), checks.len());
    }
}
