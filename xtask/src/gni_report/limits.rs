//! What an operation may take.

use super::{Cost, Report, Side};
use std::collections::BTreeMap;

/// Bytes that a post descriptor has room for.
const IMMEDIATE: u64 = 128;
/// Bytes from which on memory is registered for a transfer.
const LARGE: u64 = 8192;
/// What a rank may take of another's memory before it has talked.
pub const SILENT: u64 = 1024;
/// The largest job of which that is asked.
pub const RANKS: u64 = 100_000;

/// The limits that do not hold: each with the operation, what was wanted, and what was found.
pub fn broken(report: &Report) -> Vec<String> {
    let costs = report.costs.iter().flat_map(|(chip, costs)| {
        let all: BTreeMap<&str, &Cost> = costs.iter().map(|cost| (cost.operation.as_str(), cost)).collect();
        let found = missing(&all).into_iter().chain(costs.iter().flat_map(|cost| of(cost, &all)));
        found.map(|found| format!("{chip}: {found}")).collect::<Vec<_>>()
    });
    let memory = super::CHIPS.into_iter().filter_map(|chip| {
        let all = report.memory.get(chip).map_or(&[][..], Vec::as_slice);
        let most = each(all).into_iter().map(|(_, own, queue)| own + queue).fold(0.0, f64::max);
        let whole = all.iter().any(|memory| memory.ranks == RANKS);
        let wanted = format!("{chip}: memory for each rank: wanted at most {SILENT} B up to {RANKS} ranks");
        (most > SILENT as f64 || !whole).then(|| format!("{wanted}, found {most:.0} B"))
    });
    costs.chain(memory).collect()
}

/// Of each number of ranks, what one of them takes that has not talked: of the transport's own memory, and of the library's queue.
pub fn each(all: &[super::Memory]) -> Vec<(u64, f64, f64)> {
    let Some(alone) = all.iter().find(|memory| memory.ranks == 1) else { return Vec::new() };
    let more = |here: u64, there: u64, ranks: u64| (here - there) as f64 / (ranks - 1) as f64;
    let others = all.iter().filter(|memory| memory.ranks > 1);
    let each =
        |m: &super::Memory| (m.ranks, more(m.own, alone.own, m.ranks), more(m.queue, alone.queue, m.ranks));
    others.map(each).collect()
}

/// Operations that no limit would be asked of, for they were not done.
fn missing(all: &BTreeMap<&str, &Cost>) -> Vec<String> {
    let transfer = |kind: &str, len: u64| {
        let places = ["inside aligned", "inside unaligned", "outside aligned", "outside unaligned"];
        places.map(|place| format!("{kind} {len} {place}"))
    };
    let ends = [8, IMMEDIATE, LARGE, 4 << 20];
    let transfers =
        ends.into_iter().flat_map(|len| transfer("put", len).into_iter().chain(transfer("get", len)));
    let messages = ["short", "medium 8", "long 64", "long 1048576", "add 8", "fetch-and-add 8", "barrier"];
    let messages = messages.map(String::from);
    let wanted = messages.into_iter().chain(transfers).filter(|name| !all.contains_key(name.as_str()));
    wanted.map(|name| format!("{name}: it was not done")).collect()
}

/// What an operation takes and may not.
fn of(cost: &Cost, all: &BTreeMap<&str, &Cost>) -> Vec<String> {
    let Cost { operation, here, there, first, .. } = cost;
    let mut found = Vec::new();
    let mut wants = |holds: bool, wanted: &str, is: String| {
        if !holds {
            found.push(format!("{operation}: wanted {wanted}, found {is}"));
        }
    };
    let is = |side: &Side| {
        let Side { posts, own, called, registrations, copies, .. } = side;
        format!("{posts} posts, {own} and {called} events, {registrations} registrations, {copies} copies")
    };
    let words: Vec<_> = operation.split(' ').collect();
    let len = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let (outside, aligned) = (words.get(2) == Some(&"outside"), words.get(3) == Some(&"aligned"));
    match words[0] {
        "short" | "medium" | "long" => {
            if words[0] != "long" {
                wants(here.posts == 1 && here.own == 1, "one post and its event", is(here));
            }
            wants(here.posts <= 2, "at most two posts", is(here));
            // The payload of a Long that goes by itself tells of itself.
            let calls = if words[0] == "long" { here.posts } else { 1 };
            wants(there.called == calls, "one event at the receiver for each post", is(there));
            let answer = there.posts == 1 && there.own == 1 && here.called == 1;
            wants(answer, "one post and one event for the reply, and no message for credit", is(there));
        }
        "put" | "get" => {
            wants(*there == Side::default(), "nothing of the other rank", is(there));
            wants(here.called == 0 && here.own == here.posts, "one event for each post", is(here));
            if aligned && !outside {
                wants(here.posts == 1 && here.copies == 0, "one post and no copy", is(here));
            }
            if aligned && outside && len <= IMMEDIATE {
                wants(here.posts == 1 && here.copies <= 1, "one post and at most one copy", is(here));
            }
            if outside {
                wants(here.registrations == 0 && *first <= 1, "no registration after the first", is(here));
            }
            if outside && aligned && len >= LARGE {
                wants(*first == 1, "a registration the first time", format!("{first}"));
                wants(here.posts == 1 && here.copies == 0, "one post and no copy", is(here));
            }
            if words[0] == "get" && !aligned {
                let alike = all.get(operation.replace("unaligned", "aligned").as_str());
                let most = alike.map_or(0, |alike| alike.here.posts) + 2;
                wants(here.posts <= most, &format!("at most {most} posts"), is(here));
            }
        }
        "add" | "fetch-and-add" => {
            wants(*there == Side::default(), "nothing of the other rank", is(there));
            wants((here.posts, here.own, here.called) == (1, 1, 0), "one post and its event", is(here));
        }
        "barrier" => {
            // Of two ranks it has one step, and by engines one in any job.
            let step = |side: &Side| (side.posts, side.called) == (1, 0);
            wants(step(here) && step(there), "one post of each rank", format!("{}; {}", is(here), is(there)));
        }
        _ => wants(false, "an operation that is known", "none".into()),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gni_report::{CHIPS, Memory};

    const POST: Side = Side { posts: 1, bytes: 8, own: 1, called: 0, registrations: 0, copies: 0, locks: 0 };

    fn cost(operation: &str) -> Cost {
        let answered = Side { called: 1, ..POST };
        let (here, there) = match operation.split(' ').next() {
            Some("short" | "medium" | "long") => (answered, answered),
            Some("barrier") => (POST, POST),
            _ => (POST, Side::default()),
        };
        let large = ["8192", "4194304"].iter().any(|len| operation.contains(len));
        let first = u64::from(large && operation.contains("outside"));
        Cost { operation: operation.into(), here, there, first, time: 1.0 }
    }

    fn report() -> Report {
        let names = missing(&BTreeMap::new());
        let names = names.iter().filter_map(|line| line.strip_suffix(": it was not done"));
        let costs: Vec<_> = names.map(cost).collect();
        let memory = [1, 2, 100_000].map(|ranks| Memory { ranks, own: 5000 + 600 * ranks, queue: 8 * ranks });
        let (costs, memory) = (|chip| (chip, costs.clone()), |chip| (chip, memory.to_vec()));
        Report { costs: CHIPS.map(costs).into(), memory: CHIPS.map(memory).into(), ..Report::default() }
    }

    #[test]
    fn what_is_as_it_should_be_passes() {
        assert_eq!(broken(&report()), [""; 0]);
    }

    #[test]
    fn each_limit_is_found_with_its_operation() {
        type Spoil = fn(&mut Cost);
        let spoils: [(&str, Spoil, &str); 12] = [
            ("short", |cost| cost.here.posts = 2, "wanted one post and its event, found 2 posts"),
            ("medium 8", |cost| cost.there.called = 2, "wanted one event at the receiver for each post"),
            ("long 64", |cost| cost.there.posts = 2, "no message for credit, found 2 posts"),
            ("put 8 inside aligned", |cost| cost.here.own = 2, "one event for each post"),
            ("get 8 inside aligned", |cost| cost.here.copies = 1, "no copy"),
            ("get 128 outside aligned", |cost| cost.here.copies = 2, "at most one copy"),
            ("put 4194304 outside unaligned", |cost| cost.here.registrations = 1, "after the first"),
            ("get 8192 outside aligned", |cost| cost.first = 0, "a registration the first time"),
            ("get 8 outside unaligned", |cost| (cost.here.posts, cost.here.own) = (4, 4), "at most 3 posts"),
            (
                "add 8",
                |cost| (cost.here.posts, cost.here.own) = (2, 2),
                "one post and its event, found 2 posts",
            ),
            ("fetch-and-add 8", |cost| cost.there.called = 1, "nothing of the other rank"),
            ("barrier", |cost| cost.there.posts = 2, "one post of each rank"),
        ];
        for (operation, spoil, says) in spoils {
            let mut report = report();
            let costs = report.costs.get_mut("gemini").expect("it is there");
            spoil(costs.iter_mut().find(|cost| cost.operation == operation).expect("it is there"));
            let found = broken(&report);
            assert!(found.len() == 1 && found[0].contains(says), "{operation}: {found:?}");
            assert!(found[0].starts_with(&format!("gemini: {operation}: ")), "{found:?}");
        }
    }

    #[test]
    fn what_was_not_done_is_found() {
        let mut few = report();
        few.costs.get_mut("aries").expect("it is there").retain(|cost| cost.operation != "barrier");
        assert_eq!(broken(&few), ["aries: barrier: it was not done"]);
        let mut large = report();
        // Neither is too large alone.
        let memory = &mut large.memory.get_mut("gemini").expect("it is there")[2];
        memory.own += 300 * RANKS;
        memory.queue += 200 * RANKS;
        assert!(broken(&large)[0].contains("found 1108 B"), "{:?}", broken(&large));
        let mut small = report();
        small.memory.get_mut("aries").expect("it is there").truncate(2);
        assert_eq!(broken(&small).len(), 1);
    }
}
