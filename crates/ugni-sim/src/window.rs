//! What a NIC shows the others: its registrations, its queues, and a lock, in memory that they map.
//!
//! | from | what |
//! |---|---|
//! | 0 | what follows: a mark, the chip, how many registrations, queues and lines there are |
//! | 40 | the block of virtual descriptors: the first in the upper half, how many in the lower |
//! | 48 | how many of the files have ended in which registrations lay |
//! | 64 | the lock |
//! | 128 | the shared message queue, if it has one: its handle and its plan |
//! | 512 | which bytes others have written lately |
//! | 4,096 | registrations |
//! | after them | the directory: for each queue where it lies, or 0 |
//! | after that | lines of 128 bytes, of which queues are made |
//!
//! # Invariants
//! - window.1: the bytes of a window stay where they are as long as it lives, and are touched through atomics alone.
//! - window.2: what is laid over them consists of atomics, and any bits are a value of it.
//! - window.3: what a header or a directory says is checked before anything is laid there; it may be another process's.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gasworks_os::memfd::Mapping;
use gasworks_os::remote;
use gasworks_shmem::view::{self, Shared};
use gasworks_sync::RawSlice;
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::alone::{Alone, Inside, Verdict};
use crate::chip::Chip;
use crate::handle::{Flags, Handle};
use crate::queue::{Control, Queue};
use crate::table::Registration;
use crate::writes::Writes;

// SAFETY: window.2: repr(C), one atomic number; the padding after it is never read.
unsafe impl Shared for Alone {}
// SAFETY: window.2: repr(C), eight atomic words, without padding.
unsafe impl Shared for Registration {}
// SAFETY: window.2: repr(C), 32 atomic words, without padding.
unsafe impl Shared for Control {}
// SAFETY: window.2: repr(C), atomic words alone, those of its `Noted` too, without padding.
unsafe impl Shared for Writes {}

/// The mark of this layout.
const MARK: u64 = u64::from_le_bytes(*b"gwugni01");
const BLOCK: usize = 40;
const FILES_ENDED: usize = 48;
const LOCK: usize = 64;
const MESSAGES: usize = 128;
const WRITES: usize = 512;
const REGISTRATIONS: usize = 4096;
const _: () = assert!(WRITES + size_of::<Writes>() <= REGISTRATIONS);
/// Bytes of a line.
const LINE: usize = 128;
const WORDS: usize = LINE / size_of::<u64>();
/// Lines of a queue before its places.
const CONTROL_LINES: u64 = (size_of::<Control>() / LINE) as u64;
/// How long anybody is waited for who keeps the lock: far longer than what is done under it takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Registrations.
    pub registrations: usize,
    /// Queues.
    pub queues: usize,
    /// Lines of which they are made.
    pub lines: usize,
}

impl Shape {
    /// More bytes than any takes.
    pub const MOST_BYTES: usize = 128 << 20;

    /// All that a chip has room for.
    pub fn of(chip: Chip) -> Self {
        Self { registrations: chip.descriptors(), queues: chip.queues(), lines: (64 << 20) / LINE }
    }

    fn directory(&self) -> usize {
        REGISTRATIONS + self.registrations * size_of::<Registration>()
    }

    fn area(&self) -> usize {
        (self.directory() + self.queues * size_of::<u64>()).next_multiple_of(LINE)
    }

    /// How many bytes that takes.
    pub fn bytes(&self) -> usize {
        self.area() + self.lines * LINE
    }

    /// Whether a chip may have so much: what is not, a peer has made up.
    fn is_of(&self, chip: Chip) -> bool {
        let most = Self::of(chip);
        self.registrations <= most.registrations && self.queues <= most.queues && self.lines <= most.lines
    }
}

/// A line on the heap.
#[repr(C, align(128))]
struct Line([AtomicU64; WORDS]);

/// What a NIC shows.
pub struct Window {
    chip: Chip,
    shape: Shape,
    bytes: RawSlice,
    /// Keeps them (window.1).
    _backing: Box<dyn Send + Sync>,
}

impl Window {
    /// An empty one, of this process alone.
    pub fn on_heap(chip: Chip, shape: Shape) -> Self {
        let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
        // Not a box, whose bytes are its own alone whenever it is moved.
        let lines: Arc<[Line]> = (0..shape.bytes().div_ceil(LINE)).map(|_| line()).collect();
        let bytes = RawSlice::new(lines.as_ptr().cast_mut().cast(), size_of_val(&*lines));
        Self::write(chip, shape, bytes, Box::new(lines))
    }

    /// An empty one in shared memory of [`Shape::bytes`] zero bytes at least; `None` if it has fewer.
    pub fn make(chip: Chip, shape: Shape, mapping: Mapping) -> Option<Self> {
        let bytes = mapping.bytes().raw();
        (shape.bytes() <= bytes.len()).then(|| Self::write(chip, shape, bytes, Box::new(mapping)))
    }

    fn write(chip: Chip, shape: Shape, bytes: RawSlice, backing: Box<dyn Send + Sync>) -> Self {
        let window = Self { chip, shape, bytes, _backing: backing };
        let says =
            [chip.device().into(), shape.registrations as u64, shape.queues as u64, shape.lines as u64];
        if let [mark, rest @ ..] = window.header() {
            rest.iter().zip(says).for_each(|(word, value)| word.store(value, Relaxed));
            mark.store(MARK, Release);
        }
        window
    }

    /// Another's.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(mapping: Mapping) -> Result<Self, String> {
        let bytes = mapping.bytes().raw();
        let none = Shape { registrations: 0, queues: 0, lines: 0 };
        let mut window = Self { chip: Chip::Aries, shape: none, bytes, _backing: Box::new(mapping) };
        let [mark, device, registrations, queues, lines] = window.header() else {
            return Err(format!("{} bytes are too few", bytes.len()));
        };
        if mark.load(Acquire) != MARK {
            return Err("it is not laid out as this version does".to_owned());
        }
        // Copied once, checked, then used.
        let [device, registrations, queues, lines] =
            [device, registrations, queues, lines].map(|word| word.load(Relaxed));
        let chip = u32::try_from(device).ok().and_then(Chip::of_device);
        let chip = chip.ok_or_else(|| format!("there is no chip {device}"))?;
        let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let shape = Shape { registrations: small(registrations), queues: small(queues), lines: small(lines) };
        if !shape.is_of(chip) || shape.bytes() > bytes.len() {
            return Err(format!("{shape:?} does not fit {} bytes", bytes.len()));
        }
        (window.chip, window.shape) = (chip, shape);
        Ok(window)
    }

    /// Lays structures over the bytes, if they lie inside.
    fn lay<T: Shared>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: window.1: `_backing` keeps the bytes for as long as `self` is borrowed; window.2: a `Shared` type is atomics alone.
        view::slice(unsafe { self.bytes.borrow() }, offset, count).unwrap_or(&[])
    }

    /// One of a table.
    fn member<T: Shared>(&self, table: usize, count: usize, number: u16) -> Option<&T> {
        let number = usize::from(number);
        if number >= count {
            return None;
        }
        self.lay(table + number * size_of::<T>(), 1).first()
    }

    fn header(&self) -> &[AtomicU64] {
        self.lay(0, 5)
    }

    /// Which chip it is of.
    pub fn chip(&self) -> Chip {
        self.chip
    }

    /// How much there is room for.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The registration of this number, if the table is that large.
    pub fn registration(&self, descriptor: u16) -> Option<&Registration> {
        self.member(REGISTRATIONS, self.shape.registrations, descriptor)
    }

    /// Says which descriptors are named by their place among them. For its owner, once.
    pub fn set_apart(&self, block: &Range<u16>) {
        if let [word] = self.lay::<AtomicU64>(BLOCK, 1) {
            word.store(u64::from(block.start) << 32 | block.len() as u64, Release);
        }
    }

    /// Which registration a handle names; `None`: there is no place of that number.
    pub fn descriptor(&self, named: &Handle) -> Option<u16> {
        if !named.flags.has(Flags::VMDH) {
            return Some(named.descriptor);
        }
        let block = self.lay::<AtomicU64>(BLOCK, 1).first()?.load(Acquire);
        let (first, count) = (block >> 32, block & u64::from(u32::MAX));
        let inside = u64::from(named.descriptor) < count;
        // window.3: what lies beyond the table is no registration of it.
        inside.then(|| u16::try_from(first + u64::from(named.descriptor)).ok()).flatten()
    }

    /// A file in which registrations lay is not kept any more. For its owner.
    pub fn end_file(&self) {
        if let [ended] = self.lay::<AtomicU64>(FILES_ENDED, 1) {
            ended.fetch_add(1, Release);
        }
    }

    /// How many files had ended. Who has mapped some is to forget them when that changes.
    pub fn files_ended(&self) -> u64 {
        self.lay::<AtomicU64>(FILES_ENDED, 1).first().map_or(0, |ended| ended.load(Acquire))
    }

    /// What it shows of its client's shared message queue, to be read and changed under [the lock](Self::alone) alone.
    pub fn messages(&self) -> Option<&[AtomicU64; 4]> {
        self.lay(MESSAGES, 4).try_into().ok()
    }

    /// Which bytes others have written lately.
    pub fn writes(&self) -> Option<&Writes> {
        self.lay(WRITES, 1).first()
    }

    /// How many lines a queue takes of which so many places may be filled.
    pub fn lines_of(limit: u32) -> u64 {
        CONTROL_LINES + u64::from(limit).next_power_of_two().div_ceil(WORDS as u64)
    }

    fn place(&self, number: u16) -> Option<&AtomicU64> {
        self.member(self.shape.directory(), self.shape.queues, number)
    }

    /// Makes a queue of lines that no other is made of, and which hold zeros; `false` if there are not so many, or no such
    /// number. For its owner.
    pub fn make_queue(&self, number: u16, line: u32, limit: u32) -> bool {
        let inside = u64::from(line) + Self::lines_of(limit) <= self.shape.lines as u64;
        match self.place(number) {
            Some(place) if inside && limit > 0 => {
                place.store(u64::from(line) << 32 | u64::from(limit), Release);
                true
            }
            _ => false,
        }
    }

    /// The queue of this number, if there is one.
    pub fn queue(&self, number: u16) -> Option<Queue<'_>> {
        let word = self.place(number)?.load(Acquire);
        let (line, limit) = (word >> 32, word & u64::from(u32::MAX));
        let places = usize::try_from(limit.checked_next_power_of_two()?).ok()?;
        let at = |line: u64| Some(self.shape.area() + usize::try_from(line).ok()?.checked_mul(LINE)?);
        // window.3: what lies outside gives no places, of which there is no queue.
        let control = self.lay::<Control>(at(line)?, 1).first()?;
        Queue::new(control, self.lay(at(line + CONTROL_LINES)?, places), limit)
    }

    /// Keeps all other NICs from changing words here, until what it gives is dropped; `None` if another does that for too
    /// long.
    pub fn alone(&self) -> Option<Inside<'_>> {
        let lock = self.lay::<Alone>(LOCK, 1).first()?;
        let (mut looks, mut since) = (0u32, None);
        lock.enter(std::process::id(), |holder| {
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(1 << 10) {
                return Verdict::Wait;
            }
            std::thread::yield_now();
            if !looks.is_multiple_of(1 << 14) {
                return Verdict::Wait;
            }
            match i32::try_from(holder) {
                Ok(holder) if !remote::is_gone(holder) => {
                    let since = since.get_or_insert_with(Instant::now);
                    if since.elapsed() < PATIENCE { Verdict::Wait } else { Verdict::GiveUp }
                }
                _ => Verdict::Dead,
            }
        })
    }
}
