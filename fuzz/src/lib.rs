//! What the fuzz targets do with their bytes. Each is a plain function, so that the corpora under `corpus/` are also
//! replayed as tests, on a stable compiler and without the fuzzer.

use gasworks_bootstrap::server::{Output, Part, Phase, Server};
use gasworks_bootstrap::wire;
use gasworks_core::message;
use gasworks_launch::remote::heard;
use gasworks_os::settings::parse_size;
use gasworks_sock::Address;
use gasworks_sock::host::{self, HostDescription};
use std::collections::{BTreeSet, VecDeque};
use std::io::Write;

pub mod cci;
pub mod ugni;

/// The targets by name.
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("agents", agents),
    ("am_head", am_head),
    ("cci_datagram", cci::datagram),
    ("cci_endpoint", cci::endpoint),
    ("cci_header", cci::header),
    ("gni_messages", gasworks_gni::play),
    ("host_description", host_description),
    ("pmi_server", pmi_server),
    ("pmi_tree", pmi_tree),
    ("pmi_wire", pmi_wire),
    ("reads", reads),
    ("size", size),
    ("ugni_descriptor", ugni::descriptor),
    ("ugni_letter", ugni::letter),
    ("ugni_window", ugni::window),
];

/// Makes a program of a target: libFuzzer's, or else one that replays the files it is given.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $run(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                $run(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}

/// The head of an active message: refused, or understood so well that encoding it again gives the same bytes.
pub fn am_head(data: &[u8]) {
    if let Ok(decoded) = message::decode(data) {
        let again = message::Encoded::new(decoded.head, decoded.returned, decoded.args);
        assert_eq!(again.as_bytes(), data);
    }
}

/// Takes a message from the front of what has come.
type Take = fn(&mut Vec<u8>) -> Result<Option<wire::Message>, wire::WireError>;

/// What a node of a job over several hosts hears: a message of an agent or of a parent, a plan, a ticket, or a stream of
/// messages, as the first byte says. What is understood is understood again, and alike, when it is passed on.
pub fn agents(data: &[u8]) {
    let [kind, bytes @ ..] = data else { return };
    let read = |bytes: &[u8]| match kind % 5 {
        0 => heard::from_agent(bytes),
        1 => heard::from_parent(bytes),
        2 => heard::plan(bytes, ANSWER),
        3 => heard::ticket(bytes),
        _ => None,
    };
    if let Some(sent) = read(bytes) {
        assert_eq!(read(&sent).as_ref(), Some(&sent));
    }
    if kind % 5 == 4 {
        let (front, back) = bytes.split_at(usize::from(*kind).min(bytes.len()));
        assert_eq!(heard::messages([front, back]), heard::messages([bytes]));
    }
}

/// What the sender of a plan must know.
const ANSWER: &str = "0123456789abcdef0123456789abcdef";

/// Both kinds of PMI from the other side: where the bytes are cut must make no difference, and what was read can be sent.
pub fn pmi_wire(data: &[u8]) {
    let cut = data.first().map_or(0, |&b| usize::from(b) % (data.len() + 1));
    let (front, back) = data.split_at(cut);
    let [twos, ones] = [wire::take_message as Take, wire::take_line].map(|take| {
        let whole = messages(&[data], take);
        assert_eq!(messages(&[front, back], take), whole);
        whole.0
    });
    for message in twos {
        let Ok(mut bytes) = message.encode() else { continue };
        assert_eq!(wire::take_message(&mut bytes), Ok(Some(message)));
        assert!(bytes.is_empty());
    }
    for message in ones {
        let mut bytes = message.encode_line();
        assert_eq!(wire::take_line(&mut bytes), Ok(Some(message)));
        assert!(bytes.is_empty());
    }
}

/// The messages in what arrives in these pieces, and whether it ended in an error.
fn messages(pieces: &[&[u8]], take: Take) -> (Vec<wire::Message>, bool) {
    let (mut inbox, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            match take(&mut inbox) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// A turn of a fuzzed job: whose it is (the top bit: what follows is a payload of PMI-2, and gets its length in front),
/// how many bytes, the bytes.
fn turns(data: &[u8]) -> impl Iterator<Item = (u8, Vec<u8>)> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let [turn, len, tail @ ..] = rest else { return None };
        let (bytes, after) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = after;
        let length = if turn & 0x80 != 0 { format!("{:>6}", bytes.len()) } else { String::new() };
        Some((turn & 0x7f, [length.as_bytes(), bytes].concat()))
    })
}

/// What has come of the ranks of a job.
#[derive(Default)]
struct Ranks {
    joined: BTreeSet<u32>,
    broken: BTreeSet<u32>,
}

const RANKS: u32 = 3;

impl Ranks {
    /// Whatever a server says of a rank must make sense.
    fn check(&mut self, server: &Server, output: Output) {
        match output {
            Output::Send { rank, bytes } => {
                assert!(rank < RANKS && !bytes.is_empty());
                let line = bytes.last() == Some(&b'\n');
                let mut inbox = bytes;
                let read = if line { wire::take_line(&mut inbox) } else { wire::take_message(&mut inbox) };
                assert!(matches!(read, Ok(Some(_))) && inbox.is_empty(), "an answer that no client can read");
            }
            Output::Joined { rank } => assert!(self.joined.insert(rank), "rank {rank} joined twice"),
            Output::Broken { rank, what } => {
                assert!(self.broken.insert(rank) && !what.is_empty(), "rank {rank} was reported twice");
                assert_eq!(server.phase(rank), Phase::Broken);
            }
            Output::Finalized { rank } | Output::Abort { rank, .. } => assert!(self.joined.contains(&rank)),
            Output::Exits { rank, code, .. } => assert!(rank < RANKS && code != 0),
            Output::Up { .. } | Output::Down { .. } => panic!("there is no other server"),
        }
        if let Some((waits, gone)) = server.stuck() {
            assert!(waits < RANKS && gone < RANKS);
        }
    }
}

/// The PMI server against ranks that say anything, in both dialects.
pub fn pmi_server(data: &[u8]) {
    let mut server = Server::new(RANKS, "job");
    let mut inboxes = vec![Vec::new(); RANKS as usize];
    let (mut ranks, mut out) = (Ranks::default(), Vec::new());
    for (turn, bytes) in turns(data) {
        let rank = u32::from(turn) % RANKS;
        let inbox = &mut inboxes[rank as usize];
        inbox.extend_from_slice(&bytes);
        server.feed(rank, inbox, &mut out);
        if bytes.is_empty() {
            server.gone(rank);
        }
        out.drain(..).for_each(|output| ranks.check(&server, output));
    }
}

/// The same ranks in a tree, rank 0 at the root and one more at each of two servers below it, and servers that say
/// anything: turn 3 is a message of the second child, turn 4 one of the first child's parent.
pub fn pmi_tree(data: &[u8]) {
    let part = |rank: u32| Part {
        job: "job".into(),
        size: RANKS,
        ranks: vec![rank],
        children: if rank == 0 { 2 } else { 0 },
        has_parent: rank != 0,
        mapping: "(vector,(0,3,1))".into(),
    };
    let mut servers: Vec<Server> = (0..RANKS).map(|rank| Server::of_part(part(rank))).collect();
    let mut inboxes = vec![Vec::new(); RANKS as usize];
    let (mut ranks, mut out) = (Ranks::default(), Vec::new());
    // After an error nothing is heard over a link any more.
    let mut good = true;
    for (turn, bytes) in turns(data) {
        let at = match turn % 5 {
            3 => {
                good &= servers[0].from_child(1, &bytes, &mut out).is_ok();
                0
            }
            4 => {
                good &= servers[1].from_parent(&bytes, &mut out).is_ok();
                1
            }
            rank => {
                let inbox = &mut inboxes[usize::from(rank)];
                inbox.extend_from_slice(&bytes);
                servers[usize::from(rank)].feed(rank.into(), inbox, &mut out);
                if bytes.is_empty() {
                    servers.iter_mut().for_each(|server| server.gone(rank.into()));
                }
                usize::from(rank)
            }
        };
        let mut queue: VecDeque<(usize, Output)> = out.drain(..).map(|output| (at, output)).collect();
        while let Some((at, output)) = queue.pop_front() {
            let (to, heard) = match output {
                Output::Up { .. } | Output::Down { .. } if !good => continue,
                Output::Up { bytes } => (0, servers[0].from_child(at - 1, &bytes, &mut out)),
                Output::Down { child, bytes } => {
                    (child + 1, servers[child + 1].from_parent(&bytes, &mut out))
                }
                output => {
                    ranks.check(&servers[at], output);
                    continue;
                }
            };
            // What a liar has said may make the words of others come at a wrong time, to their own harm only.
            good &= heard.is_ok();
            queue.extend(out.drain(..).map(|output| (to, output)));
        }
    }
}

/// A host description from another process: refused, or in the one form in which it would be written.
pub fn host_description(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(host) = HostDescription::parse(text) else { return };
    assert_eq!(host.to_string(), text);
    assert!(text.len() <= host::MOST_BYTES && host.interfaces().len() <= host::MOST_INTERFACES);
    // Names are not resolved here: a description with addresses alone is connected to.
    if !host.interfaces().is_empty() && !text.contains(";prefer=host") {
        for address in host.addresses(1).unwrap_or_default() {
            assert!(matches!(address, Address::Inet(_)));
        }
    }
}

/// A size as it stands in a setting.
pub fn size(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(bytes) = parse_size(text) else { return };
    assert_eq!(parse_size(&bytes.to_string()), Some(bytes));
    assert_eq!(parse_size(&format!(" {bytes} ")), Some(bytes));
    if let Some(more) = bytes.checked_mul(1024) {
        assert_eq!(parse_size(&format!("{bytes}K")), Some(more));
    }
}

/// FASTA and FASTQ, plain or gzip: however small the blocks, the file ends or is refused, and both ways of cutting it
/// hold the same number of k-mers.
pub fn reads(data: &[u8]) {
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(data).and_then(|()| file.flush()).is_err() {
        return;
    }
    let (small, large) = (kmers(file.path(), 64), kmers(file.path(), 1 << 16));
    assert_eq!(small.is_some(), large.is_some());
    assert_eq!(small, large);
}

/// How many runs of k bases a file holds when it is read in blocks of `capacity`; `None` if it is refused.
fn kmers(path: &std::path::Path, capacity: usize) -> Option<usize> {
    use gasworks_examples::{kmer, reads::Reads};
    let k = kmer::K::new(5).ok()?;
    let mut reads = Reads::open(path, k).ok()?;
    let (mut block, mut count) = (Vec::new(), 0);
    while reads.next_block(&mut block, capacity).ok()?.is_some() {
        let base = |b: &u8| matches!(b, b'A' | b'C' | b'G' | b'T' | b'a' | b'c' | b'g' | b't');
        count += block.windows(5).filter(|w| w.iter().all(base)).count();
    }
    Some(count)
}
