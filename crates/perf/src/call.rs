//! Calls into the measurements in C.
//!
//! # Invariants
//! - call.1: the C functions touch the shared memory, the private memory and the samples that a call brings, within the sizes
//!   they are given, and nothing else.
//! - call.2: sizes are checked before the call: a measurement of `bytes` needs at most 64 times that and 128 KiB of shared
//!   memory, four times that and 4 KiB of private memory; copies stay within the private memory's halves.
//! - call.3: names are static strings that end with a zero; a list of them is asked up to its end and no further.
//! - call.4: shared and private memory stay where they are until they are dropped with the [`Memory`].

use anyhow::{Context, Result};
use gasworks::{Agent, Job, ThreadMode};
use gasworks_os::memfd::Mapping;
use std::ffi::{CStr, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};

/// `struct call` of raw/raw.h.
#[repr(C)]
struct Passed {
    shared: *mut u8,
    own: *mut u8,
    samples: *mut u64,
    room: u64,
    base: u64,
    n: u64,
    bytes: u64,
    me: u32,
    ranks: u32,
    variant: u32,
    together: u32,
}

/// The number of `raw/raw.h` that says that bytes arrived wrong.
const WRONG: u64 = u64::MAX;

unsafe extern "C" {
    fn raw_run(which: u32, call: *const Passed) -> u64;
    fn raw_name(which: u32, variant: u32) -> *const c_char;
    fn raw_all_words(bytes: *const u8, len: usize, word: u64) -> c_int;
    #[cfg(not(target_arch = "x86_64"))]
    fn raw_ticks() -> u64;
}

/// A measurement, in the order of raw/table.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Measurement {
    /// A line there and back.
    Line,
    /// A whole line of words there and back.
    Trip,
    /// A message copied in and out, there and back.
    Message,
    /// Lines one way.
    Stream,
    /// Blocks one way, not read.
    Unread,
    /// Blocks one way, read and checked.
    Checked,
    /// A barrier by flags.
    Barrier,
    /// Copies on one place.
    Warm,
    /// Copies that walk on.
    Cold,
    /// The processor's atomics.
    Atomic,
    /// A sleeper woken by a futex.
    Wake,
    /// Two processes on one processor.
    Share,
}

impl Measurement {
    /// The names of its variants.
    pub fn names(self) -> Vec<&'static str> {
        let name = |variant| {
            // SAFETY: call.3: `self` is an index of the table, by its type, and `variant` is no further than the null that ends the list.
            let name = unsafe { raw_name(self as u32, variant) };
            // SAFETY: call.3: the name is not null, so it is a static string that ends with a zero byte.
            (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("?"))
        };
        (0..).map_while(name).collect()
    }

    /// Whether it copies within the private memory, all of it.
    pub fn copies(self) -> bool {
        matches!(self, Measurement::Warm | Measurement::Cold)
    }

    /// The largest size it may be given with so much memory.
    pub fn largest(self, shared: usize, own: usize) -> usize {
        if self.copies() { own / 2 } else { ((shared - (128 << 10)) / 64).min((own - 4096) / 4) }
    }
}

/// The memory of the measurements.
#[derive(Debug)]
pub struct Memory {
    shared: Mapping,
    own: Vec<u64>,
}

impl Memory {
    /// Shared memory, and so many bytes of private memory.
    pub fn new(shared: Mapping, own: usize) -> Self {
        Self { shared, own: vec![1; own / 8] }
    }

    /// The same shared memory in every rank, and so many bytes of private memory. Rank 0 makes a file without a name, and
    /// the others open it through `/proc`. Collective.
    ///
    /// # Errors
    /// The system refuses, or the job fails.
    pub fn shared<M: ThreadMode>(
        job: &Job<M>,
        agent: &Agent<'_, M>,
        bytes: usize,
        own: usize,
    ) -> Result<Self> {
        let told = job.alloc::<u64>(2)?;
        let file = (job.rank() == 0).then(|| gasworks_os::memfd::create("gasperf", bytes)).transpose()?;
        if let Some(file) = &file {
            let where_it_is = [u64::from(std::process::id()), file.as_fd().as_raw_fd() as u64];
            for rank in 0..job.ranks() {
                agent.put(told.on(rank), &where_it_is)?;
            }
        }
        agent.barrier()?;
        let mapping = match &file {
            Some(file) => file.map()?,
            None => {
                let told = agent.local(told, 2)?;
                let path = format!("/proc/{}/fd/{}", told.get(0), told.get(1));
                let opened = std::fs::File::options().read(true).write(true).open(&path);
                let opened = opened.with_context(|| format!("opening the memory of rank 0 at {path}"))?;
                gasworks_os::memfd::map(opened.as_fd(), bytes)?
            }
        };
        agent.barrier()?;
        Ok(Self::new(mapping, own))
    }

    /// Makes sure that there are so many bytes of private memory.
    pub fn grow_own(&mut self, own: usize) {
        if self.own.len() < own / 8 {
            self.own.resize(own / 8, 1);
        }
    }

    /// Zeroes the shared memory, while no other rank uses it.
    pub fn clear(&mut self) {
        // SAFETY: call.4: the mapping has these bytes as long as `self`; other ranks do not use it meanwhile, and nobody has a reference to
        // it.
        unsafe { self.shared.as_ptr().write_bytes(0, self.shared.len()) };
    }

    /// The largest size that `which` may be given.
    pub fn largest(&self, which: Measurement) -> u64 {
        which.largest(self.shared.len(), 8 * self.own.len()) as u64
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Operations done by earlier calls since the memory was cleared.
    pub base: u64,
    /// Operations.
    pub n: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// This rank.
    pub me: u32,
    /// Ranks that take part.
    pub ranks: u32,
    /// The variant.
    pub variant: u32,
    /// A processor that all ranks may use.
    pub together: u32,
}

impl Call {
    /// Makes it: how many ticks it took, `None` if bytes arrived wrong or it cannot be done in this memory.
    pub fn run(&self, which: Measurement, memory: &mut Memory, samples: &mut [u64]) -> Option<u64> {
        let Call { base, n, bytes, me, ranks, variant, together } = *self;
        let fits = bytes <= memory.largest(which) && ranks as usize * 16 * 64 <= memory.shared.len();
        if !fits || (!samples.is_empty() && (samples.len() as u64) < n) {
            return None;
        }
        let passed = Passed {
            shared: memory.shared.as_ptr(),
            own: memory.own.as_mut_ptr().cast(),
            samples: if samples.is_empty() { std::ptr::null_mut() } else { samples.as_mut_ptr() },
            room: 8 * memory.own.len() as u64,
            base,
            n,
            bytes,
            me,
            ranks,
            variant,
            together,
        };
        // SAFETY: call.1: C touches what `passed` names alone. call.2: `fits` has just looked at the sizes. call.4: all of it is borrowed
        // until C returns.
        let took = unsafe { raw_run(which as u32, &raw const passed) };
        (took != WRONG).then_some(took)
    }
}

/// Whether all whole words of the bytes are `word`, read by assembly or volatile words.
///
/// # Safety
/// The bytes are mapped. They may change meanwhile.
#[inline]
pub unsafe fn all_words(bytes: *const u8, len: usize, word: u64) -> bool {
    // SAFETY: call.1: C reads `len` bytes at `bytes`, which the caller promises are mapped; it reads them as volatile, so they may change.
    unsafe { raw_all_words(bytes, len, word) != 0 }
}

/// The counter, where it is the system's clock.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    // SAFETY: call.1: the function is given nothing, and asks for the time.
    unsafe { raw_ticks() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Measurement; 12] = [
        Measurement::Line,
        Measurement::Trip,
        Measurement::Message,
        Measurement::Stream,
        Measurement::Unread,
        Measurement::Checked,
        Measurement::Barrier,
        Measurement::Warm,
        Measurement::Cold,
        Measurement::Atomic,
        Measurement::Wake,
        Measurement::Share,
    ];

    fn memory() -> Memory {
        Memory::new(
            gasworks_os::memfd::create("test", 8 << 20).and_then(|file| file.map()).expect("memory"),
            1 << 20,
        )
    }

    #[test]
    fn every_measurement_has_variants_with_names_of_their_own() {
        for which in ALL {
            let names = which.names();
            assert!(names.len() >= 2, "{which:?}: {names:?}");
            let mut once = names.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{which:?}: {names:?}");
        }
        assert_eq!(Measurement::Share.names()[0], "sched_yield");
        assert_eq!(Measurement::Warm.names(), Measurement::Cold.names());
    }

    /// Both sides of every measurement between two ranks, as two threads.
    #[test]
    fn both_sides_of_every_variant_meet() {
        for which in ALL.into_iter().filter(|which| !which.copies()) {
            for (variant, name) in (0..).zip(which.names()) {
                for bytes in [8, 512, 4096] {
                    let mut two = [memory(), memory()];
                    two[1].shared = two_of(&mut two[0].shared);
                    let took: Vec<Option<u64>> = std::thread::scope(|scope| {
                        let sides: Vec<_> = (0..)
                            .zip(&mut two)
                            .map(|(me, memory)| {
                                let call = Call { base: 0, n: 3, bytes, me, ranks: 2, variant, together: 0 };
                                scope.spawn(move || call.run(which, memory, &mut []))
                            })
                            .collect();
                        sides.into_iter().map(|side| side.join().expect("it ends")).collect()
                    });
                    assert!(took.iter().all(Option::is_some), "{which:?} {name} {bytes}: {took:?}");
                    assert!(took[0] > Some(0), "{which:?} {name} {bytes}: {took:?}");
                }
            }
        }
    }

    /// Another mapping of the same file, which replaces the one that is given.
    fn two_of(shared: &mut Mapping) -> Mapping {
        let file = gasworks_os::memfd::create("test of two", shared.len()).expect("memory");
        *shared = file.map().expect("a mapping");
        file.map().expect("a mapping")
    }

    #[test]
    fn copies_stay_within_their_memory_and_sizes_are_refused() {
        let mut memory = memory();
        let mut call = Call { base: 7, n: 5, bytes: 1 << 19, me: 0, ranks: 1, variant: 0, together: 0 };
        for which in [Measurement::Warm, Measurement::Cold] {
            for variant in 0..3 {
                call.variant = variant;
                assert!(
                    call.run(which, &mut memory, &mut []).is_some_and(|took| took > 0),
                    "{which:?} {variant}"
                );
            }
        }
        call.bytes += 8;
        assert_eq!(call.run(Measurement::Warm, &mut memory, &mut []), None);
        assert_eq!(call.run(Measurement::Message, &mut memory, &mut []), None);
        call.bytes = 8;
        assert_eq!(call.run(Measurement::Wake, &mut memory, &mut [0; 4]), None, "too few samples");
    }

    #[test]
    fn words_that_differ_are_found_wherever_they_are() {
        for words in [1, 7, 8, 9, 512, 515] {
            let mut bytes = vec![0xabcd_u64; words];
            // SAFETY: the slice has so many bytes, and is borrowed until the call returns.
            let right = |bytes: &[u64]| unsafe { all_words(bytes.as_ptr().cast(), 8 * bytes.len(), 0xabcd) };
            assert!(right(&bytes));
            for at in 0..words {
                bytes[at] ^= 1 << (at % 64);
                assert!(!right(&bytes), "word {at} of {words}");
                bytes[at] = 0xabcd;
            }
        }
    }
}
