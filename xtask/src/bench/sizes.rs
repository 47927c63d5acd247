//! Latency and bandwidth against size: what the plots are drawn from.

use super::ours::Ours;
use super::peers::{Answer, PEERS, Running, Sampling};
use super::place::Place;
use super::record::{Record, Row};
use super::svg::{Across, Line, Plot};
use super::turns::{Prober, majority};
use anyhow::{Context, Result};
use gasworks_testkit::stats::median;
use std::collections::BTreeMap;
use std::path::Path;

/// Measurements over a range of sizes.
struct Sweep {
    bench: &'static str,
    /// What gasperf is started with, and which variant of it is drawn.
    launches: &'static [&'static str],
    /// What the peers are asked.
    question: &'static str,
    largest: u64,
}

const SWEEPS: &[Sweep] = &[
    Sweep {
        bench: "am-latency",
        launches: &[
            "am-latency --variant medium-read --bytes 8..64K",
            "raw --variant raw-message --bytes 8..64K",
        ],
        question: "am-latency",
        largest: 65536,
    },
    Sweep {
        bench: "am-bandwidth",
        launches: &["am-bandwidth --variant unread --bytes 8..64K"],
        question: "am-bandwidth",
        largest: 65536,
    },
    Sweep {
        bench: "put-bandwidth",
        launches: &["put-bandwidth --variant warm --bytes 8..4M"],
        question: "put-latency",
        largest: 4 << 20,
    },
    Sweep {
        bench: "get-bandwidth",
        launches: &["get-bandwidth --variant warm --bytes 8..4M"],
        question: "get-latency",
        largest: 4 << 20,
    },
];

/// A plot: its file, its title, which lines (bench, variant, transport; empty for any) and peers' bench it has.
struct Drawn {
    file: &'static str,
    title: &'static str,
    lines: &'static [(&'static str, &'static str, &'static str, &'static str)],
    peers: &'static str,
    bandwidth: bool,
}

const DRAWN: &[Drawn] = &[
    Drawn {
        file: "message-latency.svg",
        title: "Message there and back",
        lines: &[
            ("am-latency", "medium-read", "pshm", "Gasworks"),
            ("raw-message", "", "raw", "the machine itself"),
        ],
        peers: "am-latency",
        bandwidth: false,
    },
    Drawn {
        file: "message-bandwidth.svg",
        title: "Messages one way",
        lines: &[("am-bandwidth", "unread", "pshm", "Gasworks")],
        peers: "am-bandwidth",
        bandwidth: true,
    },
    Drawn {
        file: "put-latency.svg",
        title: "Blocking put",
        lines: &[
            ("put-bandwidth", "warm", "pshm", "Gasworks"),
            ("put-bandwidth", "local-warm", "local", "copy in local memory"),
        ],
        peers: "put-latency",
        bandwidth: false,
    },
    Drawn {
        file: "get-latency.svg",
        title: "Blocking get",
        lines: &[
            ("get-bandwidth", "warm", "pshm", "Gasworks"),
            ("get-bandwidth", "local-warm", "local", "copy in local memory"),
        ],
        peers: "get-latency",
        bandwidth: false,
    },
    Drawn {
        file: "put-bandwidth.svg",
        title: "Blocking puts",
        lines: &[
            ("put-bandwidth", "warm", "pshm", "Gasworks"),
            ("put-bandwidth", "local-warm", "local", "copy in local memory"),
        ],
        peers: "put-latency",
        bandwidth: true,
    },
];

/// The files that plots are drawn to, with their titles.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    DRAWN.iter().map(|drawn| (drawn.file, drawn.title))
}

/// The place of these rows: they are apart from those of turns, for they may be of another state of the machine.
const PLACE: &str = "by size";

/// A row with its figure in each round.
type Figures = BTreeMap<String, (Row, Vec<Option<f64>>)>;

/// Measures all sizes, in so many rounds of turns, and adds the rows. Rounds in another state of the machine than most
/// are left out.
pub fn measure(
    ours: &Ours,
    peers: &mut [Running],
    prober: &mut Prober<'_>,
    rounds: usize,
    rows: &mut Vec<Row>,
) -> Result<()> {
    for sweep in SWEEPS {
        eprintln!("  {} by size", sweep.bench);
        let (mut figures, mut states) = (Figures::new(), Vec::new());
        let mut settled = Vec::new();
        for peer in peers.iter_mut() {
            let mut samplings = Vec::new();
            for bytes in sizes(sweep.largest) {
                samplings.push((bytes, peer.settle(sweep.question, bytes)?));
            }
            settled.push(samplings);
        }
        for round in 0..rounds {
            let mut note = |row: Row| {
                let row = Row { place: PLACE.into(), ..row };
                let key = format!("{:?}", row.key());
                let (_, figures) = figures.entry(key).or_insert_with(|| (row.clone(), vec![None; rounds]));
                figures[round] = Some(row.p50);
            };
            let before = prober.take()?;
            for launch in sweep.launches {
                ours.gasperf(Place::RealTime, 2, &format!("{launch} --blocks 3"))?
                    .into_iter()
                    .for_each(&mut note);
            }
            for (peer, samplings) in peers.iter_mut().zip(&settled) {
                for &(bytes, sampling) in samplings {
                    let Some(Sampling { iterations, samples }) = sampling else { continue };
                    if let Answer::Row(row) = peer.ask(sweep.question, bytes, iterations, samples)? {
                        note(Row { threads: 1, ..*row });
                    }
                }
            }
            let after = prober.take()?;
            let both = |(a, b): (&Option<f64>, &Option<f64>)| a.zip(*b).map(|(a, b)| (a + b) / 2.0);
            states.push(before.first().zip(after.first()).and_then(both));
        }
        let most = majority(&states);
        for (row, figures) in figures.into_values() {
            let kept: Vec<f64> =
                figures.iter().zip(&most).filter_map(|(f, most)| f.filter(|_| *most)).collect();
            if !kept.is_empty() {
                let dropped = (figures.iter().flatten().count() - kept.len()) as u32;
                rows.push(row.of_blocks(kept, dropped));
            }
        }
    }
    Ok(())
}

fn sizes(largest: u64) -> impl Iterator<Item = u64> {
    (3..).map(|power| 1 << power).take_while(move |&size| size <= largest)
}

/// Draws the plots of a record into a folder; returns the files that there was enough for.
pub fn draw(record: &Record, dir: &Path) -> Result<Vec<&'static str>> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let mut drawn = Vec::new();
    for plot in DRAWN {
        if let Some(svg) = plot.plot(record).draw() {
            let path = dir.join(plot.file);
            std::fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
            drawn.push(plot.file);
        }
    }
    Ok(drawn)
}

impl Drawn {
    fn plot(&self, record: &Record) -> Plot {
        let line = |name: &str, colour: usize, of: &dyn Fn(&&Row) -> bool| {
            // Of several variants the best at each size.
            let mut best: BTreeMap<u64, f64> = BTreeMap::new();
            for row in record.rows.iter().filter(|r| r.place == PLACE && r.bytes >= 8).filter(of) {
                let figure = median(&row.blocks).unwrap_or(row.p50);
                let least = best.entry(row.bytes).or_insert(figure);
                *least = least.min(figure);
            }
            let shown = |(bytes, ns): (u64, f64)| {
                let bytes = bytes as f64;
                (bytes, if self.bandwidth { bytes / ns } else { ns })
            };
            Line { name: name.into(), colour, points: best.into_iter().map(shown).collect() }
        };
        let ours = self.lines.iter().enumerate().map(|(at, &(bench, variant, transport, name))| {
            line(name, at, &|r| {
                r.bench == bench && r.transport == transport && (variant.is_empty() || r.variant == variant)
            })
        });
        let peers = PEERS.iter().enumerate().map(|(at, peer)| {
            line(peer.title, 2 + at, &|r| r.bench == self.peers && r.transport == peer.name)
        });
        let unit = if self.bandwidth { "GB/s" } else { "ns" };
        let lines = ours.chain(peers).collect();
        Plot { title: self.title.into(), across: Across::Payload, unit: unit.into(), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::example;

    #[test]
    fn plots_have_a_line_for_each_system_and_the_best_variant() {
        let mut rows = Vec::new();
        for bytes in sizes(64) {
            for (bench, transport, variant, ns) in [
                ("am-latency", "pshm", "medium-read", 100.0),
                ("raw-message", "raw", "a", 90.0),
                ("raw-message", "raw", "b", 80.0),
                ("am-latency", "mpich", "", 300.0),
            ] {
                let row = example(bench, transport, bytes, &[ns]);
                rows.push(Row { variant: variant.into(), place: PLACE.into(), ..row });
            }
        }
        // Other conditions are not drawn.
        rows.push(example("am-latency", "mpich", 8, &[1.0]));
        let record = Record { rows, ..Record::default() };
        let plot = DRAWN[0].plot(&record);
        let there: Vec<_> =
            plot.lines.iter().filter(|l| l.points.len() == 4).map(|l| l.name.as_str()).collect();
        assert_eq!(there, ["Gasworks", "the machine itself", "MPICH"]);
        assert!(plot.lines[1].points.iter().all(|p| p.1 == 80.0));
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(draw(&record, dir.path()).unwrap(), ["message-latency.svg"]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn bandwidth_is_bytes_by_time() {
        let rows = [8, 16].map(|bytes| {
            let row = example("am-bandwidth", "pshm", bytes, &[4.0]);
            Row { variant: "unread".into(), place: PLACE.into(), ..row }
        });
        let record = Record { rows: rows.into(), ..Record::default() };
        assert_eq!(DRAWN[1].plot(&record).lines[0].points, [(8.0, 2.0), (16.0, 4.0)]);
    }
}
