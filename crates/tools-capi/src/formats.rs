//! The arguments of calls as text.
//!
//! # Invariants
//! - formats.1: the caller's lists have so many entries as it says.
//! - formats.2: the caller's buffer has as many bytes as the `_bufsz` function gives for the same numbers of entries.
//! - formats.3: the caller's buffer for a set is null, or has as many bytes as a null one is told for the same set.

use std::ffi::{c_char, c_uint, c_void};
use std::fmt::{self, Write};
use std::slice;

use crate::text;

/// Bytes enough for what stands around the entries of a list.
const AROUND: usize = 128;
/// Bytes enough for an entry: an address or a stride, a length, and what stands around them.
const ENTRY: usize = 48;
/// Bytes enough for a team, a rank, two addresses and the words of a call.
const CALL: usize = 256;

/// `gex_Memvec_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memvec {
    address: usize,
    length: usize,
}

/// `gasneti_memveclist_stats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemvecStats {
    shortest: usize,
    longest: usize,
    total: usize,
    first: usize,
    last: usize,
}

/// `gasneti_addrlist_stats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressStats {
    first: usize,
    last: usize,
}

/// From the first byte of pieces to behind the last, of those that have any.
fn bounds(pieces: impl Iterator<Item = Memvec>) -> (usize, usize) {
    pieces
        .filter(|piece| piece.length > 0)
        .map(|piece| (piece.address, piece.address.saturating_add(piece.length)))
        .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        .unwrap_or((0, 0))
}

/// A list of the caller's.
///
/// # Safety
/// formats.1.
unsafe fn list<'a, T>(entries: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: formats.1: the caller promises `count` entries at `entries`, which is aligned and not null; they stay for the call.
    unsafe { slice::from_raw_parts(entries, count) }
}

/// Pieces of memory: how many, how much, from where to where, and each.
struct Pieces<'a>(&'a [Memvec]);

impl Pieces<'_> {
    fn total(&self) -> usize {
        self.0.iter().fold(0, |sum, piece| sum.wrapping_add(piece.length))
    }

    fn bounds(&self) -> (usize, usize) {
        bounds(self.0.iter().copied())
    }

    fn stats(&self) -> MemvecStats {
        let lengths = || self.0.iter().map(|piece| piece.length).filter(|length| *length > 0);
        let (first, end) = self.bounds();
        MemvecStats {
            shortest: lengths().min().unwrap_or(0),
            longest: lengths().max().unwrap_or(0),
            total: self.total(),
            first,
            last: end.saturating_sub(1),
        }
    }
}

impl fmt::Display for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, (first, end)) = (self.total(), self.bounds());
        write!(f, "{} entries, {total} bytes in [{first:#x}..{end:#x}): ", self.0.len())?;
        entries(f, self.0.iter(), |f, piece| write!(f, "({:#x},{})", piece.address, piece.length))
    }
}

/// Pieces of one length, by their addresses.
struct Addresses<'a>(&'a [usize], usize);

impl Addresses<'_> {
    fn total(&self) -> usize {
        self.0.len().wrapping_mul(self.1)
    }

    fn bounds(&self) -> (usize, usize) {
        bounds(self.0.iter().map(|address| Memvec { address: *address, length: self.1 }))
    }

    fn stats(&self) -> AddressStats {
        let (first, end) = self.bounds();
        AddressStats { first, last: end.saturating_sub(1) }
    }
}

impl fmt::Display for Addresses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, (first, end)) = (self.total(), self.bounds());
        write!(f, "{} entries of {}, {total} bytes in [{first:#x}..{end:#x}): ", self.0.len(), self.1)?;
        entries(f, self.0.iter(), |f, address| write!(f, "{address:#x}"))
    }
}

/// Numbers in brackets.
struct Numbers<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Numbers<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        entries(f, self.0.iter(), |f, number| write!(f, "{number}"))
    }
}

fn entries<T>(
    f: &mut fmt::Formatter<'_>,
    all: impl Iterator<Item = T>,
    each: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_char('[')?;
    for (at, entry) in all.enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        each(f, entry)?;
    }
    f.write_char(']')
}

/// Writes into a buffer of the caller's.
///
/// # Safety
/// The buffer has `size` bytes (formats.2).
unsafe fn fill(buffer: *mut c_char, size: usize, what: impl fmt::Display) {
    // SAFETY: text.2: the caller promises `size` bytes at `buffer`, by formats.2.
    unsafe { text::write(&what.to_string(), buffer, size) };
}

/// The bytes for a list of pieces.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_memveclist_bufsz(count: usize) -> usize {
    AROUND + ENTRY * count
}

/// A list of pieces of memory.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_memveclist(
    buffer: *mut c_char,
    count: usize,
    pieces: *const Memvec,
) -> MemvecStats {
    // SAFETY: formats.1: `pieces` has `count` entries until this returns, and `Pieces` goes before.
    let pieces = Pieces(unsafe { list(pieces, count) });
    // SAFETY: formats.2: the caller has asked the `_bufsz` function for `count` entries, whose result is the size given here.
    unsafe { fill(buffer, gasnett_format_memveclist_bufsz(count), &pieces) };
    pieces.stats()
}

/// The bytes for a list of addresses.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_addrlist_bufsz(count: usize) -> usize {
    AROUND + ENTRY * count
}

/// A list of addresses of pieces of one length.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_addrlist(
    buffer: *mut c_char,
    count: usize,
    addresses: *const usize,
    length: usize,
) -> AddressStats {
    // SAFETY: formats.1: `addresses` has `count` entries until this returns.
    let addresses = Addresses(unsafe { list(addresses, count) }, length);
    // SAFETY: formats.2: `buffer` has what `gasnett_format_addrlist_bufsz` gives for `count` entries.
    unsafe { fill(buffer, gasnett_format_addrlist_bufsz(count), &addresses) };
    addresses.stats()
}

/// The bytes for strides.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_strides_bufsz(count: usize) -> usize {
    AROUND + ENTRY * count
}

/// Strides.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_strides(buffer: *mut c_char, count: usize, strides: *const isize) {
    // SAFETY: formats.1: `strides` has `count` entries. formats.2: `buffer` has the bytes that they need at most.
    unsafe { fill(buffer, gasnett_format_strides_bufsz(count), Numbers(list(strides, count))) };
}

/// The bytes for the arguments of a vector call.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putvgetv_bufsz(dst_count: usize, src_count: usize) -> usize {
    CALL + gasnett_format_memveclist_bufsz(dst_count) + gasnett_format_memveclist_bufsz(src_count)
}

/// The arguments of a vector call; gives how many bytes it moves.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putvgetv(
    buffer: *mut c_char,
    team: *const c_void,
    rank: u32,
    dst_count: usize,
    dst: *const Memvec,
    src_count: usize,
    src: *const Memvec,
) -> usize {
    // SAFETY: formats.1: `dst` has `dst_count` entries and `src` has `src_count`, until this returns.
    let (dst, src) = unsafe { (Pieces(list(dst, dst_count)), Pieces(list(src, src_count))) };
    let size = gasnett_format_putvgetv_bufsz(dst_count, src_count);
    // SAFETY: formats.2: `buffer` has `size` bytes, what the `_bufsz` function gives for these two counts.
    unsafe { fill(buffer, size, format_args!("team {team:?}, rank {rank}\ndst: {dst}\nsrc: {src}")) };
    dst.total()
}

/// The bytes for the arguments of an indexed call.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putigeti_bufsz(dst_count: usize, src_count: usize) -> usize {
    CALL + gasnett_format_addrlist_bufsz(dst_count) + gasnett_format_addrlist_bufsz(src_count)
}

/// The arguments of an indexed call; gives how many bytes it moves.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putigeti(
    buffer: *mut c_char,
    team: *const c_void,
    rank: u32,
    dst_count: usize,
    dst: *const usize,
    dst_length: usize,
    src_count: usize,
    src: *const usize,
    src_length: usize,
) -> usize {
    // SAFETY: formats.1: `dst` has `dst_count` addresses and `src` has `src_count`, until this returns.
    let (dst, src) = unsafe { (list(dst, dst_count), list(src, src_count)) };
    let (dst, src) = (Addresses(dst, dst_length), Addresses(src, src_length));
    let size = gasnett_format_putigeti_bufsz(dst_count, src_count);
    // SAFETY: formats.2: `buffer` has `size` bytes, by the `_bufsz` function of indexed calls for these two counts.
    unsafe { fill(buffer, size, format_args!("team {team:?}, rank {rank}\ndst: {dst}\nsrc: {src}")) };
    dst.total()
}

/// The bytes for the arguments of a strided call.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putsgets_bufsz(levels: usize) -> usize {
    CALL + 3 * gasnett_format_strides_bufsz(levels)
}

/// The arguments of a strided call; gives how many bytes it moves.
///
/// # Safety
/// formats.1 and formats.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putsgets(
    buffer: *mut c_char,
    _stats: *mut c_void,
    team: *const c_void,
    rank: u32,
    dst: *const c_void,
    dst_strides: *const isize,
    src: *const c_void,
    src_strides: *const isize,
    element: usize,
    count: *const usize,
    levels: usize,
) -> usize {
    // SAFETY: formats.1: each of the three lists has `levels` entries until this returns.
    let (from, to, count) = unsafe {
        (Numbers(list(src_strides, levels)), Numbers(list(dst_strides, levels)), Numbers(list(count, levels)))
    };
    let size = gasnett_format_putsgets_bufsz(levels);
    let what = format_args!(
        "team {team:?}, rank {rank}, {levels} levels of {element} bytes, count {count}\n\
         dst: {dst:?} strides {to}\nsrc: {src:?} strides {from}"
    );
    // SAFETY: formats.2: `buffer` has `size` bytes, by the `_bufsz` function of strided calls for `levels`.
    unsafe { fill(buffer, size, what) };
    count.0.iter().fold(element, |all, count| all.wrapping_mul(*count))
}

const OPS: &[(u32, &str)] = &[
    (0, "AND"),
    (1, "OR"),
    (2, "XOR"),
    (3, "ADD"),
    (4, "SUB"),
    (5, "MULT"),
    (6, "MIN"),
    (7, "MAX"),
    (8, "INC"),
    (9, "DEC"),
    (10, "SET"),
    (11, "CAS"),
    (15, "FAND"),
    (16, "FOR"),
    (17, "FXOR"),
    (18, "FADD"),
    (19, "FSUB"),
    (20, "FMULT"),
    (21, "FMIN"),
    (22, "FMAX"),
    (23, "FINC"),
    (24, "FDEC"),
    (25, "SWAP"),
    (26, "FCAS"),
    (27, "GET"),
    (30, "USER"),
    (31, "USER_NC"),
];
const DTS: &[(u32, &str)] =
    &[(0, "I32"), (1, "U32"), (2, "I64"), (3, "U64"), (4, "FLT"), (5, "DBL"), (6, "USER")];
const TIS: &[(u32, &str)] = &[(0, "SRCRANK"), (1, "ENTRY"), (2, "IS_REQ"), (3, "IS_LONG"), (4, "EP")];

/// The names of the bits of a set; bits without a name as one number at the end.
fn bits(kind: &str, names: &[(u32, &str)], mut set: u32) -> String {
    let mut found = Vec::new();
    for (bit, name) in names {
        if set & (1 << bit) != 0 {
            found.push(format!("{kind}{name}"));
            set &= !(1 << bit);
        }
    }
    if set != 0 || found.is_empty() {
        found.push(format!("{set:#x}"));
    }
    found.join("|")
}

/// Writes the names of a set into a buffer, if there is one; gives the bytes that they take.
///
/// # Safety
/// formats.3.
unsafe fn fill_set(buffer: *mut c_char, names: &str) -> usize {
    let size = names.len() + 1;
    if !buffer.is_null() {
        // SAFETY: text.2: the buffer is not null, so it has the `size` bytes that a null one is told (formats.3).
        unsafe { text::write(names, buffer, size) };
    }
    size
}

/// The names of operations; gives the bytes that they take.
///
/// # Safety
/// formats.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_op(buffer: *mut c_char, op: u32) -> usize {
    // SAFETY: formats.3: `buffer` is null or has room for the names of `op`.
    unsafe { fill_set(buffer, &bits("GEX_OP_", OPS, op)) }
}

/// The names of data types; gives the bytes that they take.
///
/// # Safety
/// formats.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_dt(buffer: *mut c_char, dt: u32) -> usize {
    // SAFETY: formats.3: `buffer` is null or has room for the names of `dt`.
    unsafe { fill_set(buffer, &bits("GEX_DT_", DTS, dt)) }
}

/// The names of what is known of a token; gives the bytes that they take.
///
/// # Safety
/// formats.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_ti(buffer: *mut c_char, ti: c_uint) -> usize {
    // SAFETY: formats.3: `buffer` is null or has room for the names of `ti`.
    unsafe { fill_set(buffer, &bits("GEX_TI_", TIS, ti)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_texts_fit() {
        const MOST: usize = 3;
        for count in 0..=MOST {
            let pieces = vec![Memvec { address: usize::MAX, length: usize::MAX }; count];
            assert!(Pieces(&pieces).to_string().len() < gasnett_format_memveclist_bufsz(count));
            let addresses = vec![usize::MAX; count];
            assert!(
                Addresses(&addresses, usize::MAX).to_string().len() < gasnett_format_addrlist_bufsz(count)
            );
            let strides = vec![isize::MIN; count];
            assert!(Numbers(&strides).to_string().len() < gasnett_format_strides_bufsz(count));
            let size = gasnett_format_putsgets_bufsz(count);
            let mut buffer = vec![b'?' as c_char; size + 1];
            let far = usize::MAX as *const c_void;
            // SAFETY: formats.1: the three vectors have `count` entries. formats.2: the buffer has `size` bytes and one more, and a text
            // after the call.
            let text = unsafe {
                gasnett_format_putsgets(
                    buffer.as_mut_ptr(),
                    std::ptr::null_mut(),
                    far,
                    u32::MAX,
                    far,
                    strides.as_ptr(),
                    far,
                    strides.as_ptr(),
                    usize::MAX,
                    addresses.as_ptr(),
                    count,
                );
                text::read(buffer.as_ptr()).expect("a text")
            };
            assert!(text.len() + 1 < size && text.ends_with(']'), "{text}");
            assert_eq!(buffer[size], b'?' as c_char);
        }
    }

    #[test]
    fn lists_are_summed_up() {
        let pieces = [Memvec { address: 0x2000, length: 40 }, Memvec { address: 0x1000, length: 8 }];
        let wanted = "2 entries, 48 bytes in [0x1000..0x2028): [(0x2000,40), (0x1000,8)]";
        assert_eq!(Pieces(&pieces).to_string(), wanted);
        let wanted = "2 entries of 4, 8 bytes in [0x10..0x24): [0x20, 0x10]";
        assert_eq!(Addresses(&[0x20, 0x10], 4).to_string(), wanted);
        assert_eq!(Numbers(&[-8isize, 3]).to_string(), "[-8, 3]");
    }

    #[test]
    fn pieces_without_bytes_bound_nothing() {
        let pieces = [Memvec { address: 0x2000, length: 40 }, Memvec { address: 0x10, length: 0 }];
        let stats = MemvecStats { shortest: 40, longest: 40, total: 40, first: 0x2000, last: 0x2027 };
        assert_eq!(Pieces(&pieces).stats(), stats);
        let stats = MemvecStats { shortest: 0, longest: 0, total: 0, first: 0, last: 0 };
        assert_eq!(Pieces(&pieces[1..]).stats(), stats);
        assert_eq!(Pieces(&[]).stats(), stats);
        assert_eq!(Addresses(&[0x20, 0x10], 4).stats(), AddressStats { first: 0x10, last: 0x23 });
        assert_eq!(Addresses(&[0x20], 0).stats(), AddressStats { first: 0, last: 0 });
    }

    #[test]
    fn bits_have_names() {
        assert_eq!(bits("GEX_OP_", OPS, 1 | 1 << 18 | 1 << 13), "GEX_OP_AND|GEX_OP_FADD|0x2000");
        assert_eq!(bits("GEX_DT_", DTS, 0), "0x0");
        // A fetching operation is the plain one 15 bits higher, but those that have none.
        for (bit, name) in OPS.iter().filter(|(bit, _)| (15..25).contains(bit)) {
            let plain = OPS.iter().find(|(other, _)| other + 15 == *bit).expect("a plain one");
            assert_eq!(*name, format!("F{}", plain.1));
        }
    }
}
