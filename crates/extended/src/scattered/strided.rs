//! Strided arrays: elements at regular distances in any number of dimensions, which are others on each side.
//!
//! # Invariants
//! - strided.1: the lowest and the highest byte on each side were computed without overflow when a [`Strided`] was made, and fit an address: so
//!   does every place between them, whatever way it is come to.

use super::runs::{Base, Measure, Run, Runs, Way, copy, too_large};
use crate::Error;

/// A dimension: how many times, and how far one is from the next on each side, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// How many there are.
    pub count: usize,
    /// From one to the next here.
    pub local: isize,
    /// From one to the next there.
    pub remote: isize,
}

/// So many dimensions need no memory of their own.
const FEW: usize = 6;

/// Dimensions, the innermost first.
#[derive(Clone, Debug, Default)]
struct Dimensions {
    few: [Dimension; FEW],
    many: Vec<Dimension>,
    len: usize,
}

impl Dimensions {
    fn push(&mut self, dimension: Dimension) {
        if self.len == FEW {
            self.many.extend(self.few);
        }
        match self.few.get_mut(self.len) {
            Some(place) => *place = dimension,
            None => self.many.push(dimension),
        }
        self.len += 1;
    }

    fn all(&self) -> &[Dimension] {
        self.few.get(..self.len).unwrap_or(&self.many)
    }

    fn all_mut(&mut self) -> &mut [Dimension] {
        self.few.get_mut(..self.len).unwrap_or(&mut self.many)
    }
}

/// A transfer between two strided arrays. Dimensions that need not be walked apart are one: those of one element are left out, and neighbours
/// that follow each other on both sides are merged.
#[derive(Clone, Debug)]
pub struct Strided {
    local: *mut u8,
    remote: u64,
    element: usize,
    dimensions: Dimensions,
    measure: Option<Measure>,
    /// The lowest address here, and the end of the highest element.
    here: (usize, usize),
}

/// The lowest of the places at `base` and at all numbers of steps from there, and the end of the highest.
fn span(base: u64, steps: impl Iterator<Item = (usize, isize)>, element: usize) -> Option<(u64, u64)> {
    let (mut below, mut above) = (0i64, 0i64);
    for (count, stride) in steps {
        let farthest = i64::try_from(count - 1).ok()?.checked_mul(stride as i64)?;
        (below, above) = (below.checked_add(farthest.min(0))?, above.checked_add(farthest.max(0))?);
    }
    let end = base.checked_add_signed(above)?.checked_add(element as u64)?;
    Some((base.checked_add_signed(below)?, end))
}

/// A place here and the one there.
type Places = (*mut u8, *mut u8);

/// Tells `act` the places of a dimension's steps.
#[inline(always)]
fn steps(
    Dimension { count, local, remote }: Dimension,
    (mut here, mut there): Places,
    mut act: impl FnMut(Places),
) {
    for _ in 0..count {
        act((here, there));
        (here, there) = (here.wrapping_offset(local), there.wrapping_offset(remote));
    }
}

impl Strided {
    /// A transfer of elements of so many bytes, the first of which is at `local` here and at `remote` there. Without dimensions it is of that one.
    ///
    /// # Errors
    /// A place, a distance or the number of bytes is more than an address counts.
    pub fn new(
        (local, remote): (*mut u8, u64),
        element: usize,
        dimensions: impl Iterator<Item = Dimension> + Clone,
    ) -> Result<Self, Error> {
        let mut made = Self {
            local,
            remote,
            element,
            dimensions: Dimensions::default(),
            measure: None,
            here: (local.addr(), local.addr()),
        };
        if element == 0 || dimensions.clone().any(|dimension| dimension.count == 0) {
            made.element = 0;
            return Ok(made);
        }
        let here = span(local.addr() as u64, dimensions.clone().map(|d| (d.count, d.local)), element);
        let there = span(remote, dimensions.clone().map(|d| (d.count, d.remote)), element);
        let bytes = dimensions.clone().try_fold(element as u64, |bytes, d| bytes.checked_mul(d.count as u64));
        let (Some((low_here, end_here)), Some((low, end)), Some(bytes)) = (here, there, bytes) else {
            return Err(too_large());
        };
        made.here = (low_here as usize, end_here as usize);
        let extent = (end - low) as usize;
        dimensions.for_each(|dimension| made.add(dimension));
        let runs = bytes / made.element as u64;
        made.measure = Some(Measure { bytes, runs, low, extent });
        Ok(made)
    }

    /// Has a dimension be walked around those that there are, or with one of them.
    fn add(&mut self, dimension: Dimension) {
        let Dimension { count, mut local, mut remote } = dimension;
        if count == 1 {
            return;
        }
        if remote < 0 {
            // From its other end: no order is promised.
            let last = (count - 1) as isize;
            self.local = self.local.wrapping_offset(local.wrapping_mul(last));
            self.remote = self.remote.wrapping_add_signed(remote.wrapping_mul(last) as i64);
            (local, remote) = (local.wrapping_neg(), remote.wrapping_neg());
        }
        let follows = |len: usize, here: isize, there: isize| {
            let all = |step: isize| isize::try_from(len).ok().and_then(|len| step.checked_mul(len));
            all(here) == Some(local) && all(there) == Some(remote)
        };
        match self.dimensions.all_mut().last_mut() {
            None if follows(self.element, 1, 1)
                && let Some(all) = self.element.checked_mul(count) =>
            {
                self.element = all
            }
            Some(last)
                if follows(last.count, last.local, last.remote)
                    && let Some(all) = last.count.checked_mul(count) =>
            {
                last.count = all;
            }
            _ => self.dimensions.push(Dimension { count, local, remote }),
        }
    }

    /// The lowest address here, and the end of the highest element: what is used of this rank's memory.
    pub fn here(&self) -> (usize, usize) {
        self.here
    }

    /// Walks one dimension around another; `act` is told the places of each element. Rows and tables are loops without a call.
    #[inline(always)]
    fn walk(dimensions: &[Dimension], at: Places, act: &impl Fn(*mut u8, *mut u8)) {
        match *dimensions {
            [] => act(at.0, at.1),
            [inner] => steps(inner, at, |at| act(at.0, at.1)),
            [inner, outer] => steps(outer, at, |at| steps(inner, at, |at| act(at.0, at.1))),
            [ref within @ .., outer] => steps(outer, at, |at| Self::walk_within(within, at, act)),
        }
    }

    fn walk_within(dimensions: &[Dimension], at: Places, act: &impl Fn(*mut u8, *mut u8)) {
        Self::walk(dimensions, at, act);
    }

    /// Copies elements of a usual size by a loop of its own.
    ///
    /// # Safety
    /// That of [`Runs::copy`].
    unsafe fn copy_all<const PUT: bool>(&self, there: Base<'_>) {
        let (dimensions, at) = (self.dimensions.all(), (self.local, there.at(self.remote)));
        macro_rules! elements {
            ($len:expr) => {
                // SAFETY: runs.1: all elements are inside what was opened; the caller promises those here.
                Self::walk(dimensions, at, &|local, remote| unsafe { copy::<PUT>(local, remote, $len) })
            };
        }
        match self.element {
            4 => elements!(4),
            8 => elements!(8),
            16 => elements!(16),
            32 => elements!(32),
            64 => elements!(64),
            len => elements!(len),
        }
    }
}

// SAFETY: runs.1 of [`super::runs`]: its fields do not change, and all of its elements are measured.
unsafe impl Runs for Strided {
    fn measure(&self) -> Result<Option<Measure>, Error> {
        Ok(self.measure)
    }

    fn runs(&self) -> impl Iterator<Item = Run> + Clone {
        let rows = self.measure.map_or(0, |all| all.runs / self.row().count as u64);
        Walk { of: self, row: 0, rows, left: 0, local: self.local, remote: self.remote }
    }

    unsafe fn copy(&self, way: Way, there: Base<'_>) {
        // SAFETY: the caller promises the runs here and there.
        unsafe {
            match way {
                _ if self.measure.is_none() => {}
                Way::Put => self.copy_all::<true>(there),
                Way::Get => self.copy_all::<false>(there),
            }
        }
    }
}

impl Strided {
    /// The innermost dimension.
    fn row(&self) -> Dimension {
        self.dimensions.all().first().copied().unwrap_or(Dimension { count: 1, local: 0, remote: 0 })
    }
}

/// Where an array is walked. Rows of the innermost dimension are counted, and the place of each is computed.
#[derive(Clone)]
struct Walk<'a> {
    of: &'a Strided,
    /// The number of the next row.
    row: u64,
    rows: u64,
    /// How many elements of this row are left.
    left: usize,
    local: *mut u8,
    remote: u64,
}

impl Iterator for Walk<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            if self.row == self.rows {
                return None;
            }
            let mut number = self.row;
            (self.local, self.remote, self.left) = (self.of.local, self.of.remote, self.of.row().count);
            for outer in self.of.dimensions.all().get(1..).unwrap_or_default() {
                let at = (number % outer.count as u64) as isize;
                number /= outer.count as u64;
                // strided.1: what is passed on the way may be outside, what is come to is not.
                self.local = self.local.wrapping_offset(outer.local.wrapping_mul(at));
                self.remote = self.remote.wrapping_add_signed(outer.remote.wrapping_mul(at) as i64);
            }
            self.row += 1;
        }
        let run = Run { local: self.local, remote: self.remote, len: self.of.element };
        let step = self.of.row();
        (self.local, self.remote) =
            (self.local.wrapping_offset(step.local), self.remote.wrapping_add_signed(step.remote as i64));
        self.left -= 1;
        Some(run)
    }
}
