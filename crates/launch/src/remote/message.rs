//! What `gasrun` and its agents say to each other. Each message is one frame of a [`Link`](super::link::Link).

use anyhow::{Context, bail};
use gasworks_core::observe::Standing;
use gasworks_os::process::Exit;

use super::codec::{Reader, Writer};
use crate::inspect::Told;
use crate::observe::{Clock, Piece};

/// A rank announces the code with which it ends the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The rank, described in words.
    pub(crate) who: String,
    pub(crate) code: i32,
    /// Whether the others hear of it from that rank, and end by themselves.
    pub(crate) told: bool,
}

/// From an agent to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Up {
    /// Still here.
    Beat,
    /// For the parent's server.
    Pmi(Vec<u8>),
    /// A line about what is being done.
    Say(String),
    /// What ranks of a node wrote to standard output (1) or error (2), in whole lines.
    Output { node: u32, stream: u8, bytes: Vec<u8> },
    /// So many bytes of standard input have gone to rank 0.
    Taken(u64),
    /// A rank announces the code with which it ends the job.
    Exiting(Announced),
    /// A rank has ended with a code that is not zero. If another has announced that code, it was that one's.
    Exited { who: String, code: i32 },
    /// Something ends the job: why, with which code if that is known, and the rank that is to end by itself.
    Failed { text: String, code: Option<i32>, spare: Option<u32> },
    /// The code of the rank that ends by itself.
    Code { rank: u32, code: i32 },
    /// A rank's process has ended.
    Ended { rank: u32, exit: Exit },
    /// All ranks of this agent and of those below have ended, and all they wrote was sent.
    Done,
    /// A piece of what a rank of a node has recorded.
    Recorded { node: u32, piece: Piece },
    /// A node asks for the time; by its own clock it is `asked`.
    Time { node: u32, asked: u64 },
    /// How the clock of a node goes.
    Clock { node: u32, clock: Clock },
    /// How a rank stands, which was asked for.
    Stands { question: u64, told: Told },
}

/// From a parent to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Down {
    /// Still here.
    Beat,
    /// The first message: what to do.
    Plan(Vec<u8>),
    /// For the agent's server.
    Pmi(Vec<u8>),
    /// Send this signal to all ranks but one.
    Send { signal: i32, spare: Option<u32> },
    /// This signal came to `gasrun`: pass it on to the ranks.
    Pass { signal: i32 },
    /// So many bytes that a node's ranks wrote were passed on, or of what they recorded were taken (stream 3); nobody reads the stream any
    /// more if it is broken.
    Room { node: u32, stream: u8, count: u64, broken: bool },
    /// Standard input for rank 0; nothing: its end.
    Input(Vec<u8>),
    /// The time, for a node that asked for it when its own clock showed `asked`.
    Time { node: u32, asked: u64, now: u64 },
    /// Tell how all ranks stand, who are asked by this signal.
    Ask { question: u64, signal: i32 },
}

/// In [`Down::Room`], what is recorded.
pub(crate) const RECORDINGS: u8 = 3;

fn rank(word: u64) -> Option<u32> {
    u32::try_from(word).ok()
}

fn word(rank: Option<u32>) -> u64 {
    rank.map_or(u64::MAX, u64::from)
}

fn signed(code: i32) -> u64 {
    i64::from(code) as u64
}

fn code(word: u64) -> anyhow::Result<i32> {
    i32::try_from(word as i64).ok().context("a code in a message is too large")
}

/// In the place of a code: there is none.
const NONE: u64 = u64::MAX >> 1;

fn some_code(word: u64) -> anyhow::Result<Option<i32>> {
    (word != NONE).then(|| code(word)).transpose()
}

fn read_signed(reader: &mut Reader<'_>) -> anyhow::Result<i32> {
    code(reader.number()?)
}

impl Up {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let w = Writer::default();
        match self {
            Up::Beat => w.byte(0),
            Up::Pmi(bytes) => w.byte(1).bytes(bytes),
            Up::Say(text) => w.byte(2).bytes(text.as_bytes()),
            Up::Output { node, stream, bytes } => w.byte(3).number((*node).into()).byte(*stream).bytes(bytes),
            Up::Taken(count) => w.byte(4).number(*count),
            Up::Exiting(Announced { who, code, told }) => {
                w.byte(5).bytes(who.as_bytes()).number(signed(*code)).byte((*told).into())
            }
            Up::Exited { who, code } => w.byte(10).bytes(who.as_bytes()).number(signed(*code)),
            Up::Failed { text, code, spare } => {
                let code = code.map_or(NONE, signed);
                w.byte(6).bytes(text.as_bytes()).number(code).number(word(*spare))
            }
            Up::Code { rank, code } => w.byte(7).number((*rank).into()).number(signed(*code)),
            Up::Ended { rank, exit } => {
                let (kind, number) = match exit {
                    Exit::Code(code) => (0, *code),
                    Exit::Signal(signal) => (1, *signal),
                };
                w.byte(8).number((*rank).into()).byte(kind).number(signed(number))
            }
            Up::Done => w.byte(9),
            Up::Recorded { node, piece: Piece { rank, is_last, bytes } } => {
                w.byte(11).number((*node).into()).number((*rank).into()).byte((*is_last).into()).bytes(bytes)
            }
            Up::Time { node, asked } => w.byte(12).number((*node).into()).number(*asked),
            Up::Clock { node, clock: Clock { offset, uncertainty } } => {
                w.byte(13).number((*node).into()).number(*offset as u64).number(*uncertainty)
            }
            Up::Stands { question, told } => {
                let pid = told.pid.map_or(NONE, signed);
                let w = w.byte(14).number(*question).number(told.rank.into()).number(pid);
                let w = match told.standing {
                    None => w.byte(0).bytes(told.otherwise.as_bytes()),
                    Some(Standing { begun, waiting }) => w.byte(1).number(begun).byte(waiting.into()),
                };
                w.bytes(told.state.as_bytes()).bytes(told.text.as_bytes())
            }
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let r = &mut Reader(bytes);
        let message = match r.byte()? {
            0 => Up::Beat,
            1 => Up::Pmi(r.bytes()?.to_vec()),
            2 => Up::Say(r.text()?),
            3 => Up::Output { node: r.small()?, stream: r.byte()?, bytes: r.bytes()?.to_vec() },
            4 => Up::Taken(r.number()?),
            5 => {
                let (who, code) = (r.text()?, read_signed(r)?);
                Up::Exiting(Announced { who, code, told: r.byte()? != 0 })
            }
            6 => {
                let text = r.text()?;
                let code = some_code(r.number()?)?;
                Up::Failed { text, code, spare: rank(r.number()?) }
            }
            7 => Up::Code { rank: r.small()?, code: read_signed(r)? },
            8 => {
                let rank = r.small()?;
                let exit = if r.byte()? == 0 { Exit::Code } else { Exit::Signal };
                Up::Ended { rank, exit: exit(read_signed(r)?) }
            }
            9 => Up::Done,
            10 => Up::Exited { who: r.text()?, code: read_signed(r)? },
            11 => {
                let (node, rank, is_last) = (r.small()?, r.small()?, r.byte()? != 0);
                Up::Recorded { node, piece: Piece { rank, is_last, bytes: r.bytes()?.to_vec() } }
            }
            12 => Up::Time { node: r.small()?, asked: r.number()? },
            13 => {
                let (node, offset) = (r.small()?, r.number()? as i64);
                Up::Clock { node, clock: Clock { offset, uncertainty: r.number()? } }
            }
            14 => {
                let (question, rank, pid) = (r.number()?, r.small()?, some_code(r.number()?)?);
                let (standing, otherwise) = match r.byte()? {
                    0 => (None, r.text()?),
                    _ => (Some(Standing { begun: r.number()?, waiting: r.byte()? != 0 }), String::new()),
                };
                let (state, text) = (r.text()?, r.text()?);
                Up::Stands { question, told: Told { rank, pid, standing, otherwise, state, text } }
            }
            kind => bail!("a message of kind {kind} came from an agent"),
        };
        r.end()?;
        Ok(message)
    }
}

impl Down {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let w = Writer::default();
        match self {
            Down::Beat => w.byte(0),
            Down::Plan(bytes) => w.byte(1).bytes(bytes),
            Down::Pmi(bytes) => w.byte(2).bytes(bytes),
            Down::Send { signal, spare } => w.byte(3).number(signed(*signal)).number(word(*spare)),
            Down::Pass { signal } => w.byte(4).number(signed(*signal)),
            Down::Room { node, stream, count, broken } => {
                w.byte(5).number((*node).into()).byte(*stream).number(*count).byte((*broken).into())
            }
            Down::Input(bytes) => w.byte(6).bytes(bytes),
            Down::Time { node, asked, now } => w.byte(7).number((*node).into()).number(*asked).number(*now),
            Down::Ask { question, signal } => w.byte(8).number(*question).number(signed(*signal)),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let r = &mut Reader(bytes);
        let message = match r.byte()? {
            0 => Down::Beat,
            1 => Down::Plan(r.bytes()?.to_vec()),
            2 => Down::Pmi(r.bytes()?.to_vec()),
            3 => Down::Send { signal: read_signed(r)?, spare: rank(r.number()?) },
            4 => Down::Pass { signal: read_signed(r)? },
            5 => {
                let (node, stream) = (r.small()?, r.byte()?);
                Down::Room { node, stream, count: r.number()?, broken: r.byte()? != 0 }
            }
            6 => Down::Input(r.bytes()?.to_vec()),
            7 => Down::Time { node: r.small()?, asked: r.number()?, now: r.number()? },
            8 => Down::Ask { question: r.number()?, signal: read_signed(r)? },
            kind => bail!("a message of kind {kind} came from the parent"),
        };
        r.end()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pid: Option<i32>, standing: Option<Standing>) -> Told {
        let otherwise = if standing.is_some() { String::new() } else { "has ended".into() };
        Told { rank: 5, pid, standing, otherwise, state: "sleeps".into(), text: "polls: 1\n".into() }
    }

    #[test]
    fn messages_survive_the_way() {
        for up in [
            Up::Beat,
            Up::Pmi(vec![1, 2]),
            Up::Say("x".into()),
            Up::Output { node: 3, stream: 2, bytes: b"line\n".to_vec() },
            Up::Taken(7),
            Up::Exiting(Announced { who: "rank 1".into(), code: 255, told: true }),
            Up::Exited { who: "rank 2".into(), code: 7 },
            Up::Failed { text: "why".into(), code: None, spare: Some(0) },
            Up::Failed { text: "why".into(), code: Some(-1), spare: None },
            Up::Code { rank: 4, code: 42 },
            Up::Ended { rank: 4, exit: Exit::Signal(9) },
            Up::Ended { rank: 4, exit: Exit::Code(-3) },
            Up::Done,
            Up::Recorded { node: 2, piece: Piece { rank: 5, is_last: true, bytes: vec![1; 9] } },
            Up::Time { node: 1, asked: u64::MAX },
            Up::Clock { node: 1, clock: Clock { offset: -5, uncertainty: 7 } },
            Up::Stands { question: 1, told: told(None, None) },
            Up::Stands { question: 2, told: told(Some(7), Some(Standing { begun: 3, waiting: true })) },
        ] {
            let bytes = up.encode();
            assert_eq!(Up::decode(&bytes).expect("read"), up);
            assert!((0..bytes.len()).all(|cut| Up::decode(&bytes[..cut]).is_err()), "{up:?} cut");
        }
        for down in [
            Down::Beat,
            Down::Plan(vec![9]),
            Down::Pmi(Vec::new()),
            Down::Send { signal: 15, spare: Some(3) },
            Down::Pass { signal: 2 },
            Down::Room { node: 1, stream: 1, count: 1 << 40, broken: true },
            Down::Input(vec![0]),
            Down::Time { node: 1, asked: 3, now: 1 << 63 },
            Down::Ask { question: 9, signal: 62 },
        ] {
            let bytes = down.encode();
            assert_eq!(Down::decode(&bytes).expect("read"), down);
            assert!((0..bytes.len()).all(|cut| Down::decode(&bytes[..cut]).is_err()), "{down:?} cut");
        }
        // Whatever a byte is changed to, it is read or refused.
        let whole = Up::Failed { text: "why".into(), code: Some(3), spare: Some(0) }.encode();
        for at in 0..whole.len() {
            for byte in [0, 1, 127, 128, 255] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = (Up::decode(&changed), Down::decode(&changed));
            }
        }
        assert!(Up::decode(&[77]).is_err() && Up::decode(&[0, 0]).is_err());
        assert!(Up::decode(&[1, 255, 255, 255, 255, 255, 255, 255, 255]).is_err());
    }
}
