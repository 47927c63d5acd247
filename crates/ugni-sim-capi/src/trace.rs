//! What the clock needs of a run: what this process posts and takes, written down where `GASWORKS_UGNI_TRACE` says.
//!
//! # Invariants
//! - trace.1: a function that runs at the end of the process uses nothing but statics that are never dropped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::OnceLock;

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting};
use gasworks_ugni_sim::clock::model::Means;
use gasworks_ugni_sim::clock::trace::{Events, Name, Posted, Record};
use gasworks_ugni_sim::nic::{Endpoint, Event, Kind as EventKind};
use gasworks_ugni_sim::post::Way;
use parking_lot::Mutex;

use crate::leave;

const PATH: Setting = Setting {
    name: "GASWORKS_UGNI_TRACE",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "Where each process writes what the clock of the software NIC needs of a run: PATH.PID.trace",
    reader: "ugni-sim",
};

/// By what a client knows a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    /// The token of a descriptor.
    Post(u64),
    /// A message, at the queue of its endpoint or any other: clients that call two alike at a time are told the later one's.
    Message(u32),
}

struct Tracer {
    file: BufWriter<File>,
    posted: u64,
    /// The numbers of transactions that are under way, as the client knows them.
    under_way: BTreeMap<Client, u64>,
}

/// The process that writes, if it does; a child of `fork` has a run of its own.
fn tracer() -> Option<&'static Mutex<Tracer>> {
    static TRACER: OnceLock<Option<(u32, Mutex<Tracer>)>> = OnceLock::new();
    let open = || {
        let (_, path) = PATH.raw()?;
        let path = format!("{path}.{}.trace", std::process::id());
        let file = File::create(&path).map_err(|error| say(&format!("libugni: {path}: {error}"))).ok()?;
        // SAFETY: trace.1: `at_exit` writes out what `TRACER` holds, a static; its code stays loaded (`build.rs`).
        unsafe { libc::atexit(at_exit) };
        leave::watch();
        let tracer = Tracer { file: BufWriter::new(file), posted: 0, under_way: BTreeMap::new() };
        Some((std::process::id(), Mutex::new(tracer)))
    };
    let (owner, tracer) = TRACER.get_or_init(open).as_ref()?;
    (*owner == std::process::id()).then_some(tracer)
}

extern "C" fn at_exit() {
    flush();
}

/// Writes all that was recorded so far.
pub(crate) fn flush() {
    if let Some(tracer) = tracer()
        && let Err(error) = tracer.lock().file.flush()
    {
        say(&format!("libugni: {}: {error}", PATH.name));
    }
}

impl Tracer {
    fn write(&mut self, record: &Record) {
        // What could not be written is told of at the end.
        let _ = writeln!(self.file, "{record}");
    }

    fn post(&mut self, client: Client, posted: Posted) {
        self.posted += 1;
        let id = self.posted;
        self.write(&Record::Post(Posted { id, ..posted }));
        if posted.events.local || posted.events.global {
            self.under_way.insert(client, id);
        }
    }
}

/// The process is attached to a NIC of this name.
pub(crate) fn attached(name: Name) {
    if let Some(tracer) = tracer() {
        tracer.lock().write(&Record::Nic(name));
    }
}

/// Transactions were posted in some way, of so many bytes each, or with such a value for a queue, one after the other: the client
/// hears of the last.
pub(crate) fn posted<'a>(
    descriptor: &gni_post_descriptor_t,
    way: Way,
    token: u64,
    all: impl IntoIterator<Item = (&'a Endpoint, u64, u64)>,
) {
    let Some(tracer) = tracer() else { return };
    let (means, gets) = match descriptor.r#type {
        GNI_POST_AMO | GNI_POST_AMO_W_FLAG => (Means::Amo, true),
        GNI_POST_FMA_GET | GNI_POST_FMA_GET_W_FLAG => (Means::Fma, true),
        GNI_POST_RDMA_GET => (Means::Bte, true),
        // Of an engine's tree nothing is known here: it goes as a value does.
        _ if way == Way::CqWrite || descriptor.r#type == GNI_POST_CE => (Means::CqWrite, false),
        _ if way == Way::Bte => (Means::Bte, false),
        _ => (Means::Fma, false),
    };
    let has = |bit| descriptor.cq_mode & bit != 0;
    let mut tracer = tracer.lock();
    let mut all = all.into_iter().peekable();
    while let Some((endpoint, length, written)) = all.next() {
        let Some((peer, value)) = endpoint.aim() else { continue };
        let is_last = all.peek().is_none();
        let events = Events {
            local: is_last && has(GNI_CQMODE_LOCAL_EVENT),
            global: is_last && has(GNI_CQMODE_GLOBAL_EVENT),
            remote: has(GNI_CQMODE_REMOTE_EVENT) || means == Means::CqWrite,
        };
        let (length, value) = match means {
            Means::CqWrite => (0, written & ((1 << 48) - 1)),
            _ => (length, value.into()),
        };
        tracer.post(Client::Post(token), Posted { id: 0, means, gets, length, peer, events, value });
    }
}

/// A message was sent.
pub(crate) fn sent(endpoint: &Endpoint, id: u32, length: u64) {
    let Some(tracer) = tracer() else { return };
    if let Some((peer, value)) = endpoint.aim() {
        let events = Events { local: false, global: true, remote: true };
        let (means, gets, value) = (Means::Smsg, false, value.into());
        let posted = Posted { id: 0, means, gets, length, peer, events, value };
        tracer.lock().post(Client::Message(id), posted);
    }
}

/// A message was read, and released.
pub(crate) fn got(endpoint: &Endpoint) {
    if let (Some(tracer), Some((peer, _))) = (tracer(), endpoint.aim()) {
        tracer.lock().write(&Record::Got(peer));
    }
}

/// An event was taken, that says this if it comes from afar, or calls a message so.
pub(crate) fn took(event: &Event, said: u64) {
    let Some(tracer) = tracer() else { return };
    let mut tracer = tracer.lock();
    let of = |client| tracer.under_way.get(&client).copied();
    let post = event.transaction.and_then(|(token, _)| of(Client::Post(token)));
    let record = match event.kind {
        EventKind::Local => post.map(Record::Local),
        EventKind::Global => post.map(Record::Global),
        EventKind::Message => of(Client::Message(said as u32)).map(Record::Global),
        EventKind::Remote | EventKind::CqWrite => Some(Record::Remote(said)),
        EventKind::Engine => None,
    };
    if let Some(record) = record {
        tracer.write(&record);
    }
}

/// All ranks have met.
pub(crate) fn met() {
    if let Some(tracer) = tracer() {
        tracer.lock().write(&Record::Met);
    }
}

/// From here on it is this number's turn.
pub(crate) fn marked(number: u64) {
    if let Some(tracer) = tracer() {
        tracer.lock().write(&Record::Mark(number));
    }
}
