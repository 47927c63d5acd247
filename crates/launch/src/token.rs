//! User words of the socks: whom an event is about.

/// The connection to the parent.
pub(crate) const PARENT: u64 = 1;
pub(crate) const SIGNALS: u64 = 2;
pub(crate) const STDIN: u64 = 3;
pub(crate) const STDOUT: u64 = 4;
pub(crate) const STDERR: u64 = 5;
pub(crate) const RANK0_INPUT: u64 = 6;
pub(crate) const ASKED_BY_HAND: u64 = 7;
/// The first of the children.
pub(crate) const CHILDREN: u64 = 1 << 20;
/// The first of the ranks here, each of which has four: its connection and its streams.
pub(crate) const RANKS: u64 = 1 << 32;
pub(crate) const OUT: u64 = 1;
pub(crate) const ERR: u64 = 2;
/// The first of the gate.
pub(crate) const GATE: u64 = 1 << 40;
/// The first of `PMI_PORT`.
pub(crate) const ENTRANCE: u64 = 1 << 48;
/// The first of those that ask and answer how ranks stand.
pub(crate) const QUESTIONS: u64 = 1 << 56;

/// That of a rank's connection, to which `OUT` or `ERR` is added for a stream.
pub(crate) fn of_rank(rank: u32) -> u64 {
    RANKS + u64::from(rank) * 4
}
