//! What a model gives against size, and how far that is from what was published.

use super::model::{Means, Measure, Model, Point};
use super::replay::replay;
use super::trace::{Events, Name, Posted, Record};

/// How many transactions are on their way at a time where bandwidth is measured, as in the tests of Ohio State University.
const WINDOW: u64 = 64;
const HERE: Name = (0, 0);
const THERE: Name = (0, 1);

/// What the model gives where a point was measured, by records as the measuring program would leave them.
pub fn modelled(model: &Model, point: &Point) -> f64 {
    let (means, gets) = (point.means.unwrap_or(Means::Fma), point.means.is_none());
    let one = |id: u64| {
        let events = Events { local: false, global: true, remote: !gets };
        Record::Post(Posted { id, means, gets, length: point.size, peer: THERE, events, value: 0 })
    };
    let count = match point.measure {
        Measure::Latency => 1,
        Measure::Bandwidth => WINDOW,
    };
    let posts = (0..count).map(one).chain((0..count).map(Record::Global));
    let here: Vec<_> = std::iter::once(Record::Nic(HERE)).chain(posts).collect();
    let there = vec![Record::Nic(THERE), Record::Remote(0)];
    let spent = replay(model, &[here, there]);
    match point.measure {
        Measure::Latency if gets => spent[0].all,
        Measure::Latency => spent[1].all,
        Measure::Bandwidth => (count * point.size) as f64 / spent[0].all * 1000.0,
    }
}

/// By which part of what was measured the model is off.
pub fn difference(model: &Model, point: &Point) -> f64 {
    modelled(model, point) / point.value - 1.0
}

/// All points of a model as a table.
pub fn table(model: &Model) -> String {
    let line = |point: &Point| {
        let (unit, scale) = match point.measure {
            Measure::Latency => ("us", 1000.0),
            Measure::Bandwidth => ("MB/s", 1.0),
        };
        let means = point.means.map_or("get", Means::name);
        let (value, own) = (point.value / scale, modelled(model, point) / scale);
        let off = 100.0 * difference(model, point);
        format!(
            "{means:>8} {:>10} {value:>10.2} {own:>10.2} {unit:<5} {off:>+6.1} %  {}\n",
            point.size, point.source
        )
    };
    let head = format!("{:>8} {:>10} {:>10} {:>10}\n", "", "bytes", "published", "model");
    head + &model.points.iter().map(line).collect::<String>()
}

// Safe code, of which Miri would see nothing new.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// The limits that the book states.
    #[test]
    fn curves_are_as_near_to_what_was_published_as_is_said() {
        for (text, limit) in [(Model::ARIES, 0.20), (Model::GEMINI, 0.02)] {
            let model = Model::parse(text).expect("a model");
            for point in &model.points {
                let off = difference(&model, point);
                assert!(off.abs() <= limit, "{point:?}: {off}");
            }
            assert_eq!(table(&model).lines().count(), 1 + model.points.len());
        }
    }

    /// EuroBen gives 0.7 to 1.4 us for Gemini, by the kind of transfer.
    #[test]
    fn what_is_short_takes_gemini_what_others_say() {
        let model = Model::parse(Model::GEMINI).expect("a model");
        let source = String::new();
        for means in [Some(Means::Fma), Some(Means::Smsg), Some(Means::Bte), None] {
            let point =
                Point { means, measure: Measure::Latency, size: 8, value: 1.0, source: source.clone() };
            let latency = modelled(&model, &point);
            assert!((600.0..=1400.0).contains(&latency), "{means:?}: {latency}");
        }
    }
}
