//! One timeline of all ranks, in the trace-event format that Perfetto and `chrome://tracing` open: a process for each
//! rank, a track for each of its threads, arrows from where a message was sent to where it was handled.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use gasworks_core::observe::{Collective, Event, Recording, What};
use serde_json::{Value, json};

use super::Origin;

/// Clocks that differ by less are one clock, read at two moments (ns).
const ONE_CLOCK: u64 = 1_000_000;

/// Writes the events of all ranks.
pub(super) fn write(ranks: &[Recording], origins: &[Origin], out: &mut impl io::Write) -> io::Result<()> {
    let offsets = offsets(ranks, origins);
    let moved = |time: u64, rank: usize| time.saturating_add_signed(offsets[rank]);
    let of_all =
        || ranks.iter().enumerate().flat_map(|(rank, all)| all.events.iter().map(move |e| (rank, e)));
    let zero = of_all().map(|(rank, event)| moved(event.start, rank)).min().unwrap_or(0);
    let last = of_all().map(|(rank, event)| moved(event.end, rank)).max().unwrap_or(0);
    let flows = |sent: bool| {
        let wanted = of_all().filter(move |(_, event)| event.flow != 0 && is_sent(event) == sent);
        wanted.map(|(_, event)| event.flow).collect::<HashSet<u64>>()
    };
    let (sent, handled) = (flows(true), flows(false));

    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut first = true;
    let mut put = |out: &mut dyn io::Write, value: &Value| -> io::Result<()> {
        write!(out, "{}\n{value}", if std::mem::take(&mut first) { "" } else { "," })
    };
    for (rank, recording) in ranks.iter().enumerate().filter(|(_, recording)| recording.pid != 0) {
        let host = origins[rank].host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
        let name = format!("rank {rank} (process {}{host})", recording.pid);
        put(out, &json!({"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": name}}))?;
        put(
            out,
            &json!({"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}}),
        )?;
        let threads: BTreeSet<u32> = recording.events.iter().map(|event| event.thread).collect();
        for thread in threads {
            let name =
                if thread == recording.pid { "main thread".into() } else { format!("thread {thread}") };
            put(
                out,
                &json!({"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}}),
            )?;
        }
        // What lies in something else comes after it.
        let mut events: Vec<&Event> = recording.events.iter().collect();
        events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
        for event in events {
            let start = moved(event.start, rank);
            let end = if event.unfinished { last } else { moved(event.end, rank) };
            let (ts, dur) = (micros(start - zero), micros(end.saturating_sub(start)));
            put(out, &slice(recording, event, rank, ts, dur))?;
            if sent.contains(&event.flow) && handled.contains(&event.flow) {
                let id = format!("{:x}", event.flow);
                let (tid, cat) = (event.thread, "message");
                let arrow = if is_sent(event) {
                    json!({"ph": "s", "name": "flow", "cat": cat, "id": id, "pid": rank, "tid": tid, "ts": ts})
                } else {
                    json!({"ph": "f", "bp": "e", "name": "flow", "cat": cat, "id": id, "pid": rank, "tid": tid, "ts": ts})
                };
                put(out, &arrow)?;
            }
        }
    }
    let overwritten: Vec<u64> = ranks.iter().map(|rank| rank.overwritten).collect();
    let uncertain: Vec<_> =
        origins.iter().map(|origin| origin.clock.map(|clock| clock.uncertainty)).collect();
    let other = json!({
        "overwritten": overwritten,
        "lost": super::lost(origins),
        "clock_offsets_ns": offsets,
        "clock_uncertainties_ns": uncertain,
    });
    write!(out, "\n],\"otherData\":{other}}}\n")
}

/// What is added to each rank's clock so that all agree: that of its host, by which it goes unless it has a clock of its own.
fn offsets(ranks: &[Recording], origins: &[Origin]) -> Vec<i64> {
    // From the monotonic clock to the time of day, which all ranks of a host agree on.
    let boot = |rank: &Recording| rank.realtime.wrapping_sub(rank.monotonic) as i64;
    let mut of_host: HashMap<&Option<String>, i64> = HashMap::new();
    let mut offsets = Vec::with_capacity(ranks.len());
    for (rank, origin) in ranks.iter().zip(origins) {
        if rank.pid == 0 {
            offsets.push(0);
            continue;
        }
        let own = boot(rank).wrapping_sub(*of_host.entry(&origin.host).or_insert_with(|| boot(rank)));
        let own = if own.unsigned_abs() < ONE_CLOCK { 0 } else { own };
        offsets.push(own.wrapping_add(origin.clock.map_or(0, |clock| clock.offset)));
    }
    offsets
}

fn is_sent(event: &Event) -> bool {
    matches!(event.what, What::SendRequest | What::SendReply | What::SendCredits)
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn slice(recording: &Recording, event: &Event, rank: usize, ts: f64, dur: f64) -> Value {
    let handler = match recording.handler(event.handler) {
        "" => format!("handler {}", event.handler),
        name => name.to_owned(),
    };
    let category = ["short", "medium", "long"].get(usize::from(event.category)).copied().unwrap_or("unknown");
    let (peer, bytes) = (event.peer, event.bytes);
    let message = |way: &str, peer_is: &str| json!({ "category": category, "kind": way, "handler": event.handler, peer_is: peer, "bytes": bytes });
    let (name, cat, mut args) = match event.what {
        What::HandleRequest => (handler, "handler", message("request", "from")),
        What::HandleReply => (handler, "handler", message("reply", "from")),
        What::HandleCredits => ("take credits".into(), "credits", json!({ "from": peer })),
        What::SendRequest => (format!("request {handler}"), "message", message("request", "to")),
        What::SendReply => (format!("reply {handler}"), "message", message("reply", "to")),
        What::SendCredits => ("return credits".into(), "credits", json!({ "to": peer })),
        What::Idle => ("wait".into(), "wait", json!({ "polls": bytes })),
        What::Sleep => ("sleep".into(), "wait", json!({})),
        What::Barrier => ("barrier".into(), "barrier", json!({})),
        What::Collective => {
            let name = Collective::of(event.handler).map_or("collective", Collective::name);
            (name.into(), "collective", json!({ "bytes": bytes }))
        }
        What::Put => ("put".into(), "rma", json!({ "to": peer, "bytes": bytes })),
        What::Atomic => ("atomic operation".into(), "rma", json!({ "to": peer, "bytes": bytes })),
        What::Get => ("get".into(), "rma", json!({ "from": peer, "bytes": bytes })),
    };
    if event.unfinished {
        args["unfinished"] = true.into();
    }
    json!({ "ph": "X", "name": name, "cat": cat, "pid": rank, "tid": event.thread, "ts": ts, "dur": dur, "args": args })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Clock;
    use gasworks_core::observe::create;

    #[test]
    fn clocks_are_aligned_whatever_a_rank_wrote_of_its_own() {
        let joined = |realtime: u64, monotonic: u64| {
            let file = create(0).expect("a file");
            let mut recording = Recording::read(&file).expect("a recording");
            (recording.pid, recording.realtime, recording.monotonic) = (1, realtime, monotonic);
            recording
        };
        let hour = 3_600_000_000_000;
        let ranks =
            [joined(hour + 5, 5), joined(hour + 900, 7), joined(3 * hour, hour), joined(hour + (1 << 63), 0)];
        let origin = |host: Option<&str>, offset| Origin {
            host: host.map(str::to_owned),
            clock: Some(Clock { offset, uncertainty: 0 }),
            is_whole: true,
        };
        let here = [(); 4].map(|()| origin(None, 0));
        assert_eq!(offsets(&ranks, &here), [0, 0, hour as i64, i64::MIN]);
        // Whatever the time of day on different hosts is.
        let hosts =
            [("a", 5), ("b", -7), ("b", -7), ("c", 9)].map(|(host, offset)| origin(Some(host), offset));
        assert_eq!(offsets(&ranks, &hosts), [5, -7, hour as i64 - 900, 9]);
    }
}
