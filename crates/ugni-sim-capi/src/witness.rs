//! What a process has asked of its NIC, and what came of it: calls with what they gave, bytes, registrations, events and
//! retries, written at its [end](crate::leave) where `GASWORKS_UGNI_WITNESS` says. A program that wants to know what of it a part of its own
//! took marks where that begins and ends.
//!
//! # Invariants
//! - witness.1: a function that runs at the end of the process uses nothing but statics that are never dropped.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use gasworks_gni_sys::*;
use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::nic::{Event, Kind as EventKind, Nic};
use parking_lot::Mutex;

use crate::{call, leave, trace};

const PATH: Setting = Setting {
    name: "GASWORKS_UGNI_WITNESS",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "Where each process writes what it has asked of the software NIC: PATH.PID.json",
    reader: "ugni-sim",
};

/// The function after which a client may have done all that it does.
const LAST: &str = "GNI_CdmDestroy";

const CODES: usize = GNI_RC_ERROR_NOMEM as usize + 1;
/// Types of posts are below this.
const TYPES: usize = 16;

/// What a function was asked, by what it gave.
pub(crate) struct Calls {
    name: &'static str,
    codes: [AtomicU64; CODES],
}

/// Posts of a type, and their bytes.
struct Posts {
    count: AtomicU64,
    bytes: AtomicU64,
}

/// What is lacking where a message is not sent, and what is sent again: statistics of a NIC.
const RETRIES: [gni_statistic_t; 4] = [
    GNI_STAT_SMSG_BUFF_CREDITS_STALL,
    GNI_STAT_SMSG_MBOX_CREDITS_STALL,
    GNI_STAT_SMSG_REQ_STALL,
    GNI_STAT_SMSG_RETRANS_COUNT,
];

/// What is counted besides calls.
struct Counts {
    posts: [Posts; TYPES],
    made: AtomicU64,
    ended: AtomicU64,
    /// How many registrations there were at the same time, at most.
    most: AtomicU64,
    bytes: AtomicU64,
    events: [[AtomicU64; Status::ALL.len()]; EventKind::ALL.len()],
    overruns: AtomicU64,
    /// Of posts, and of messages: those that were refused, and those of them that were tried again.
    refused: [AtomicU64; 2],
    again: [AtomicU64; 2],
    /// Of NICs that are gone.
    retries: [AtomicU64; RETRIES.len()],
}

static COUNTS: Counts = Counts {
    posts: [const { Posts { count: AtomicU64::new(0), bytes: AtomicU64::new(0) } }; TYPES],
    made: AtomicU64::new(0),
    ended: AtomicU64::new(0),
    most: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
    events: [const { [const { AtomicU64::new(0) }; Status::ALL.len()] }; EventKind::ALL.len()],
    overruns: AtomicU64::new(0),
    refused: [const { AtomicU64::new(0) }; 2],
    again: [const { AtomicU64::new(0) }; 2],
    retries: [const { AtomicU64::new(0) }; RETRIES.len()],
};

/// What was refused and not tried again: endpoints, with descriptors or messages.
static REFUSED: Mutex<BTreeSet<(usize, u64)>> = Mutex::new(BTreeSet::new());

/// What had been counted at each mark.
static MARKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From here on it is this number's turn: what was counted so far is written down for it, and for the clock.
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_ugni_mark(number: u64) {
    if is_wanted() {
        let text = format!("{{\n  \"mark\": {number}{}\n}}", parts());
        MARKS.lock().push(text);
    }
    trace::marked(number);
}

/// Whether anybody wants to know. The first time, the end of the process is seen to.
pub(crate) fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let wanted = PATH.raw().is_some();
        if wanted {
            // SAFETY: witness.1: `at_exit` reads `COUNTS`, `MARKS` and the tables of `ugni`, all of them statics; its code stays loaded
            // (`build.rs`).
            unsafe { libc::atexit(at_exit) };
            leave::watch();
        }
        wanted
    })
}

impl Calls {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, codes: [const { AtomicU64::new(0) }; CODES] }
    }

    /// It was called, and gave this.
    pub(crate) fn gave(&self, code: gni_return_t) {
        if is_wanted()
            && let Some(count) = self.codes.get(code as usize)
        {
            count.fetch_add(1, Relaxed);
            retried(code);
            if self.name == LAST && code == GNI_RC_SUCCESS {
                write();
            }
        }
    }
}

/// Sees whether a post or a message was refused, and whether it had been before.
fn retried(code: gni_return_t) {
    let now = call::now();
    if now.concern == 0 {
        return;
    }
    let kind = usize::from(now.name.starts_with("GNI_Smsg"));
    let mut refused = REFUSED.lock();
    if refused.remove(&(now.handle, now.concern)) {
        COUNTS.again[kind].fetch_add(1, Relaxed);
    }
    if [GNI_RC_ERROR_RESOURCE, GNI_RC_NOT_DONE].contains(&code) {
        COUNTS.refused[kind].fetch_add(1, Relaxed);
        refused.insert((now.handle, now.concern));
    }
}

/// Bytes were posted.
pub(crate) fn posted(kind: gni_post_type_t, bytes: u64) {
    if is_wanted()
        && let Some(posts) = COUNTS.posts.get(kind as usize)
    {
        posts.count.fetch_add(1, Relaxed);
        posts.bytes.fetch_add(bytes, Relaxed);
    }
}

/// Memory was registered.
pub(crate) fn registered(bytes: u64) {
    if is_wanted() {
        let made = COUNTS.made.fetch_add(1, Relaxed) + 1;
        COUNTS.most.fetch_max(made.saturating_sub(COUNTS.ended.load(Relaxed)), Relaxed);
        COUNTS.bytes.fetch_add(bytes, Relaxed);
    }
}

/// It is not any more.
pub(crate) fn deregistered() {
    if is_wanted() {
        COUNTS.ended.fetch_add(1, Relaxed);
    }
}

/// An event was taken.
pub(crate) fn took(event: &Event) {
    if is_wanted() {
        COUNTS.events[event.kind as usize][event.status as usize].fetch_add(1, Relaxed);
        COUNTS.overruns.fetch_add(event.overrun.into(), Relaxed);
    }
}

/// A NIC goes, and what it has counted with it.
pub(crate) fn nic_went(nic: &Nic) {
    if is_wanted() {
        for (which, sum) in RETRIES.into_iter().zip(&COUNTS.retries) {
            sum.fetch_add(nic.total(which), Relaxed);
        }
    }
}

extern "C" fn at_exit() {
    write();
}

/// Writes all that was counted so far.
pub(crate) fn write() {
    let Some((_, path)) = PATH.raw() else { return };
    let path = format!("{path}.{}.json", std::process::id());
    let marks = MARKS.lock();
    let marks =
        if marks.is_empty() { String::new() } else { format!(",\n  \"marks\": [{}]", marks.join(", ")) };
    let text = format!("{{\n  \"process\": {}{}{marks}\n}}\n", std::process::id(), parts());
    if let Err(error) = std::fs::write(&path, text) {
        say(&format!("libugni: {path}: {error}"));
    }
}

/// All that was counted so far, as fields of JSON: what never happened is left out.
fn parts() -> String {
    let calls = crate::ugni::all_calls().iter().map(|calls| {
        let codes = calls.codes.iter().zip(crate::ugni::code_names());
        (calls.name.to_owned(), line(codes.map(|(count, name)| (name, count.load(Relaxed)))))
    });
    let posted = (0..).zip(&COUNTS.posts).map(|(kind, posts)| {
        let (count, bytes) = (posts.count.load(Relaxed), posts.bytes.load(Relaxed));
        // One that moves none has bytes all the same.
        let text = format!("{{\"posts\": {count}, \"bytes\": {bytes}}}");
        (crate::ugni::post_name(kind).to_owned(), (count > 0).then_some(text))
    });
    let count = |count: &AtomicU64| count.load(Relaxed);
    let registrations = line([
        ("made", count(&COUNTS.made)),
        ("ended", count(&COUNTS.ended)),
        ("most", count(&COUNTS.most)),
        ("bytes", count(&COUNTS.bytes)),
    ]);
    let events = EventKind::ALL.into_iter().zip(&COUNTS.events).map(|(kind, events)| {
        let statuses = Status::ALL.into_iter().map(Status::name).zip(events.iter().map(count));
        (format!("{kind:?}").to_lowercase(), line(statuses))
    });
    let mut stalls = COUNTS.retries.each_ref().map(count);
    crate::ugni::each_nic(|nic| {
        RETRIES.into_iter().zip(&mut stalls).for_each(|(which, sum)| *sum += nic.total(which));
    });
    let stalls = RETRIES.into_iter().map(crate::ugni::statistic_name).zip(stalls);
    let tried = ["posts refused", "messages refused", "posts again", "messages again"];
    let tried = tried.into_iter().zip(COUNTS.refused.iter().chain(&COUNTS.again).map(count));
    let none = || "{}".to_owned();
    let parts = [
        ("calls", block(calls)),
        ("posted", block(posted)),
        ("registrations", registrations.unwrap_or_else(none)),
        ("events", block(events)),
        ("overruns", count(&COUNTS.overruns).to_string()),
        ("retries", line(tried.chain(stalls)).unwrap_or_else(none)),
    ];
    parts.map(|(name, text)| format!(",\n  \"{name}\": {text}")).concat()
}

/// Numbers that are not 0, if there are any.
fn line<N: std::fmt::Display>(numbers: impl IntoIterator<Item = (N, u64)>) -> Option<String> {
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    let all: Vec<_> = numbers.map(|(name, number)| format!("\"{name}\": {number}")).collect();
    (!all.is_empty()).then(|| format!("{{{}}}", all.join(", ")))
}

/// Parts that are there, a line each.
fn block(parts: impl Iterator<Item = (String, Option<String>)>) -> String {
    let lines = parts.filter_map(|(name, text)| Some(format!("    \"{name}\": {}", text?)));
    let all: Vec<_> = lines.collect();
    if all.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n  }}", all.join(",\n")) }
}
