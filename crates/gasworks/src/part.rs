//! What regions are made of: memory of the library's, or memory that ranks give.
//!
//! # Invariants
//! - part.1: memory that is given at an address stays as [`Given::at`] asks: whoever names it promises that ([`Part::at`]).

use bytemuck::Pod;
use gasworks_memory::{Asked, Given, Rights};
use gasworks_sync::RawSlice;

/// What a rank's part of a region is to be: memory of the library's, or memory that the rank gives.
///
/// ```
/// # fn main() -> Result<(), gasworks::Error> {
/// # let job = gasworks::Job::<gasworks::Seq>::open(gasworks::Config::from_env()?, gasworks::Table::new())?;
/// use gasworks::Part;
/// let squares: Box<[u64]> = (0..1000).map(|n| n * n).collect();
/// let region = job.create_region_of(Part::of(squares))?;
/// let agent = job.agent()?;
/// assert_eq!(agent.get_value::<u64>(region.at(job.rank(), 8 * 30, 1)?)?, 900);
/// region.withdraw()?;
/// # drop(agent);
/// # job.close()
/// # }
/// ```
#[derive(Debug)]
pub struct Part {
    memory: Memory,
    rights: Rights,
}

#[derive(Debug)]
enum Memory {
    New(u64),
    Given(Given),
}

impl Part {
    /// `len` bytes of zeroes, which the library has.
    pub fn new(len: u64) -> Self {
        Self { memory: Memory::New(len), rights: Rights::all() }
    }

    /// These values, with what they are now. The region owns them, and keeps them until the job is dropped; this rank reads and writes them by
    /// [`Agent::local`](crate::Agent::local), as all memory that peers may write. Only plain values can be given:
    ///
    /// ```compile_fail,E0277
    /// gasworks::Part::of(Box::new([String::new()]));
    /// ```
    pub fn of<T: Pod + Send + Sync>(values: Box<[T]>) -> Self {
        Self { memory: Memory::Given(Given::owned(values)), rights: Rights::all() }
    }

    /// The `len` bytes at `start`, with what they are now: of a heap, a static, a stack, or mapped from a file.
    ///
    /// # Safety
    /// From the call that creates the region on the bytes are mapped, readable and writable, and nobody has references to them but to atomics:
    /// whoever uses them beside the region does so by raw pointers or atomics. This ends when the job has been closed and dropped; if it is dropped
    /// without having been closed, when the process does. If the region was [withdrawn](crate::Region::withdraw), it ends then, provided that no
    /// thread of this process has a call under way to this rank's own part meanwhile, or serves ranks that do not keep to the rules (a progress
    /// thread, where peers are not trusted), or uses what [`Agent::local`](crate::Agent::local) has lent of it afterwards.
    ///
    /// ```compile_fail,E0133
    /// gasworks::Part::at(std::ptr::null_mut(), 0);
    /// ```
    pub unsafe fn at(start: *mut u8, len: usize) -> Self {
        // SAFETY: part.1: the caller promises that the bytes stay so until the job and its table are dropped, or the region is withdrawn and
        // no slice of it is used any more.
        let given = unsafe { Given::at(RawSlice::new(start, len)) };
        Self { memory: Memory::Given(given), rights: Rights::all() }
    }

    /// Of which peers may do no more than that.
    #[must_use]
    pub fn with_rights(self, rights: Rights) -> Self {
        Self { rights, ..self }
    }

    /// What is asked for, and what is given for it.
    pub(crate) fn asked(self) -> (Asked, Option<Given>) {
        let Self { memory, rights } = self;
        match memory {
            Memory::New(len) => (Asked { len, rights, given: None }, None),
            Memory::Given(given) => {
                let (start, len) = (given.bytes().as_ptr().addr() as u64, given.bytes().len() as u64);
                (Asked { len, rights, given: Some(start) }, Some(given))
            }
        }
    }
}
