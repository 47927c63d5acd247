//! `perf/baseline.json`: what peers and the machine reached when the project began, and how that is carried to today.
//!
//! A machine's hours differ by up to a factor of four in what its cores pass between them. So a recorded figure is
//! multiplied by what the machine's own limit (`perf/peers/line.c`) takes now over what it took then.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A peer that takes longer than this many times its scaled figure was not at its best: its row is void.
pub const VOID: f64 = 1.3;

/// The peer that is not packaged, and stands in by its recorded figures.
pub const RECORDED: &str = "gasnet-ex";

/// Something that `line.c` measures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Probe {
    /// The name of the bench.
    pub bench: String,
    /// Its size.
    pub bytes: u64,
    /// Nanoseconds then.
    pub ns: f64,
}

/// What a system reached then.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Figure {
    system: String,
    bench: String,
    bytes: u64,
    ranks: u32,
    /// Nanoseconds then.
    pub ns: f64,
    /// The bench and the size of the probe to scale it by.
    probe: Option<(String, u64)>,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Baseline {
    probes: Vec<Probe>,
    figures: Vec<Figure>,
}

impl Baseline {
    /// Reads the committed file.
    pub fn load() -> Result<Self> {
        let path = crate::root().join("perf/baseline.json");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let baseline: Self = serde_json::from_str(text).context("understanding perf/baseline.json")?;
        ensure!(!baseline.probes.is_empty(), "perf/baseline.json has no probes");
        Ok(baseline)
    }

    /// What a system reached in this bench.
    pub fn figure(&self, system: &str, bench: &str, bytes: u64, ranks: u32) -> Option<&Figure> {
        let same = |f: &&Figure| {
            (f.system.as_str(), f.bench.as_str(), f.bytes, f.ranks) == (system, bench, bytes, ranks)
        };
        self.figures.iter().find(same)
    }

    /// The probe that tells where the machine's processors are: what a message in two lines takes.
    pub fn state(&self) -> &Probe {
        &self.probes[0]
    }

    /// The probes that figures of this bench and size are scaled by.
    pub fn probes(&self, bench: &str, bytes: u64, ranks: u32) -> Vec<&Probe> {
        let about = |f: &&Figure| (f.bench.as_str(), f.bytes, f.ranks) == (bench, bytes, ranks);
        let mut probes: Vec<_> = self.figures.iter().filter(about).filter_map(|f| self.probe_of(f)).collect();
        probes.sort_by_key(|probe| (&probe.bench, probe.bytes));
        probes.dedup();
        probes
    }

    /// The probe that a figure is scaled by.
    pub fn probe_of(&self, figure: &Figure) -> Option<&Probe> {
        let (bench, bytes) = figure.probe.as_ref()?;
        self.probes.iter().find(|probe| probe.bench == *bench && probe.bytes == *bytes)
    }

    /// The figure as it would be now, by what its probe takes `now`.
    pub fn scaled(&self, figure: &Figure, now: impl FnOnce(&Probe) -> Option<f64>) -> Option<f64> {
        match self.probe_of(figure) {
            None => Some(figure.ns),
            Some(probe) => Some(figure.ns * now(probe)? / probe.ns),
        }
    }
}

impl Baseline {
    /// What a figure must come near to: its scaled value, or that by the machine's state, or that with a software part
    /// that no hour makes faster, whichever is the most.
    pub fn reachable(&self, figure: &Figure, now: impl Fn(&Probe) -> Option<f64>) -> Option<f64> {
        let own = self.scaled(figure, &now)?;
        let Some(probe) = self.probe_of(figure) else { return Some(own) };
        let with_software = figure.ns + now(probe)? - probe.ns;
        let by_state = now(self.state()).map_or(own, |state| figure.ns * state / self.state().ns);
        Some(own.max(with_software).max(by_state))
    }
}

/// Whether a peer's figure is void: what it should reach is not reached within the tolerance.
pub fn void(measured: f64, scaled: f64) -> bool {
    measured > VOID * scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_names_a_probe_that_there_is() {
        let baseline = Baseline::load().unwrap();
        assert!(baseline.figures.len() > 40 && baseline.figures.iter().all(|f| f.ns > 0.0));
        for figure in &baseline.figures {
            assert_eq!(figure.probe.is_some(), baseline.probe_of(figure).is_some(), "{figure:?}");
            let same = |f: &&Figure| {
                (&f.system, &f.bench, f.bytes, f.ranks)
                    == (&figure.system, &figure.bench, figure.bytes, figure.ranks)
            };
            assert_eq!(baseline.figures.iter().filter(same).count(), 1, "{figure:?}");
        }
    }

    #[test]
    fn a_figure_is_scaled_by_its_probe() {
        let text = r#"{"probes":[{"bench":"line","bytes":8,"ns":100}],"figures":[
            {"system":"a","bench":"b","bytes":8,"ranks":2,"ns":50,"probe":["line",8]},
            {"system":"c","bench":"b","bytes":8,"ranks":2,"ns":50},
            {"system":"d","bench":"b","bytes":8,"ranks":2,"ns":500,"probe":["line",8]}]}"#;
        let baseline = Baseline::parse(text).unwrap();
        let (a, c) = (baseline.figure("a", "b", 8, 2).unwrap(), baseline.figure("c", "b", 8, 2).unwrap());
        assert_eq!(baseline.scaled(a, |probe| (probe.bench == "line").then_some(40.0)), Some(20.0));
        assert_eq!((baseline.scaled(a, |_| None), baseline.scaled(c, |_| None)), (None, Some(50.0)));
        // Where the line takes 20 less, the figure cannot take more than 20 less.
        let d = baseline.figure("d", "b", 8, 2).unwrap();
        assert_eq!(baseline.reachable(d, |_| Some(80.0)), Some(480.0));
        assert_eq!(baseline.reachable(d, |_| Some(200.0)), Some(1000.0));
        assert_eq!(baseline.reachable(d, |_| None), None);
        assert_eq!(baseline.reachable(c, |_| Some(40.0)), Some(50.0));
        assert_eq!(baseline.probes("b", 8, 2).len(), 1);
        assert!(baseline.figure("a", "b", 8, 4).is_none() && baseline.probes("x", 8, 2).is_empty());
    }

    #[test]
    fn a_peer_below_its_best_is_void() {
        assert!(void(131.0, 100.0) && !void(130.0, 100.0) && !void(10.0, 100.0));
    }
}
