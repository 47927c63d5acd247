//! The figures of a chip: text, a line each, `WHAT = FIGURE UNIT ; SOURCE`. A figure without a source is refused.

/// By what a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// The processor moves the bytes.
    Fma,
    /// The block transfer engine does.
    Bte,
    /// A word is changed there.
    Amo,
    /// A value goes into a queue.
    CqWrite,
    /// A short message.
    Smsg,
}

impl Means {
    /// All, in the order of their numbers.
    pub const ALL: [Means; 5] = [Means::Fma, Means::Bte, Means::Amo, Means::CqWrite, Means::Smsg];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Means::Fma => "fma",
            Means::Bte => "bte",
            Means::Amo => "amo",
            Means::CqWrite => "cqwrite",
            Means::Smsg => "smsg",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.name() == name)
    }
}

/// What a transaction costs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The processor's time, until the post returns.
    pub overhead: f64,
    /// How long the next one waits, besides its bytes.
    pub gap: f64,
    /// From the last byte's leaving until it is there.
    pub latency: f64,
    /// Each byte.
    pub byte: f64,
}

/// What a point is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// From the post until the target has taken the event, or of a get until the poster has: nanoseconds.
    Latency,
    /// Of many, one after the other: bytes in a microsecond, which are MB/s.
    Bandwidth,
}

/// A published measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Of what; `None`: a get by FMA.
    pub means: Option<Means>,
    /// Which quantity.
    pub measure: Measure,
    /// Of how many bytes.
    pub size: u64,
    /// What was measured.
    pub value: f64,
    /// By whom, and where that is to be read.
    pub source: String,
}

/// A chip's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    costs: [Cost; Means::ALL.len()],
    /// Taking an event.
    pub event: f64,
    /// From the target back to where the event is made that says that all is done.
    pub answer: f64,
    /// What it is compared with.
    pub points: Vec<Point>,
}

impl Model {
    /// That of Gemini.
    pub const GEMINI: &'static str = include_str!("../../models/gemini.model");
    /// That of Aries.
    pub const ARIES: &'static str = include_str!("../../models/aries.model");

    /// What one costs.
    pub fn cost(&self, means: Means) -> &Cost {
        &self.costs[means as usize]
    }

    /// Reads a model.
    ///
    /// # Errors
    /// Which line is wrong, and why; or which figure is missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut model = Self::default();
        let mut missing: Vec<String> = Self::figures();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            if line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| format!("line {number}: {why}: {line:?}");
            let (entry, source) = line.split_once(';').ok_or_else(|| wrong("it has no source"))?;
            let source = source.trim();
            if source.is_empty() {
                return Err(wrong("it has no source"));
            }
            let (what, figure) = entry.split_once('=').ok_or_else(|| wrong("wanted WHAT = FIGURE UNIT"))?;
            let value = value(figure).ok_or_else(|| wrong("wanted a number of ns, us or MB/s"))?;
            let what = what.trim();
            if let Some(point) = what.strip_prefix("point ") {
                let point = self::point(point, value, source);
                model.points.push(point.ok_or_else(|| wrong("wanted point MEANS MEASURE SIZE"))?);
                continue;
            }
            let at = missing.iter().position(|name| name == what);
            missing.remove(at.ok_or_else(|| wrong("there is no such figure, or it is there twice"))?);
            *model.figure(what).ok_or_else(|| wrong("there is no such figure"))? = value;
        }
        match missing.first() {
            Some(first) => Err(format!("{first} is missing")),
            None => Ok(model),
        }
    }

    /// The names of all figures.
    fn figures() -> Vec<String> {
        let of = |means: Means| {
            ["overhead", "gap", "latency", "byte"].map(|part| format!("{}.{part}", means.name()))
        };
        let all = Means::ALL.into_iter().flat_map(of);
        all.chain(["event.taken".to_owned(), "answer.latency".to_owned()]).collect()
    }

    fn figure(&mut self, name: &str) -> Option<&mut f64> {
        let (whose, part) = name.split_once('.')?;
        if let Some(means) = Means::named(whose) {
            let cost = &mut self.costs[means as usize];
            return match part {
                "overhead" => Some(&mut cost.overhead),
                "gap" => Some(&mut cost.gap),
                "latency" => Some(&mut cost.latency),
                "byte" => Some(&mut cost.byte),
                _ => None,
            };
        }
        match name {
            "event.taken" => Some(&mut self.event),
            "answer.latency" => Some(&mut self.answer),
            _ => None,
        }
    }
}

/// A number with its unit, in nanoseconds or MB/s.
fn value(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
    match unit {
        "ns" | "MB/s" => Some(number),
        "us" => Some(number * 1000.0),
        _ => None,
    }
}

fn point(text: &str, value: f64, source: &str) -> Option<Point> {
    let [means, measure, size] = text.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let means = if means == "get" { None } else { Some(Means::named(means)?) };
    let measure = match measure {
        "latency" => Measure::Latency,
        "bandwidth" => Measure::Bandwidth,
        _ => return None,
    };
    Some(Point { means, measure, size: size.parse().ok()?, value, source: source.to_owned() })
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn both_chips_have_all_their_figures_and_each_its_source() {
        for text in [Model::GEMINI, Model::ARIES] {
            let model = Model::parse(text).expect("a model");
            assert!(
                Means::ALL.iter().all(|means| model.cost(*means).byte > 0.0 && model.cost(*means).gap > 0.0)
            );
            assert!(model.event > 0.0 && model.answer > 0.0 && !model.points.is_empty());
        }
        let aries = Model::parse(Model::ARIES).expect("a model");
        assert_eq!((aries.cost(Means::Bte).byte, aries.cost(Means::Fma).gap), (0.1012, 568.0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let changed = |from: &str, to: &str| Model::parse(&Model::ARIES.replacen(from, to, 1)).expect_err(to);
        for (from, to, why) in [
            ("fma.gap = 0.568 us ;", "fma.gap = 0.568 us #", "it has no source"),
            ("fma.gap = 0.568 us ;", "fma.gap = 0.568 years ;", "wanted a number of ns, us or MB/s"),
            ("fma.gap = 0.568", "fma.gap = -1", "wanted a number"),
            ("fma.gap =", "fma.gasp =", "there is no such figure"),
            ("fma.gap =", "bte.gap =", "it is there twice"),
            ("fma.gap = 0.568 us ;", "# ;", "fma.gap is missing"),
            ("point smsg latency 8 =", "point smsg latency =", "wanted point MEANS"),
        ] {
            let error = changed(from, to);
            assert!(error.contains(why), "{to}: {error}");
        }
    }
}
