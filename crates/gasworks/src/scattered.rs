//! Scattered data: the views by which puts and gets of many pieces say where these are, and the calls.
//!
//! # Invariants
//! - scattered.1: the pieces here lie inside a slice that is borrowed, exclusively for a get, or in a buffer that the operation keeps.

use crate::event::Event;
use crate::{Agent, Error, GlobalPtr, Scope, ThreadMode};
use bytemuck::Pod;
use gasworks_core::View;
use gasworks_extended::rma::{Local, Options};
use gasworks_extended::scattered::{self, Dimension, Lists, Peer, Side, Way};
use gasworks_memory::RegionId;

/// How the elements of a strided put or get lie on both sides. Dimensions are the innermost first; without any there is one element.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// How many values an element has, which lie together on both sides.
    pub element: usize,
    /// How many elements there are in each dimension.
    pub counts: &'a [usize],
    /// Which value of the slice here is the first one of the first element.
    pub first: usize,
    /// How many values an element here is from the one before, in each dimension.
    pub local: &'a [isize],
    /// The same of the rank's memory, in which the pointer names the first value of the first element.
    pub remote: &'a [isize],
}

/// The values here, as a transfer needs them.
#[derive(Clone, Copy)]
struct Here {
    first: *mut u8,
    /// How many bytes there are.
    len: usize,
}

impl Here {
    fn to_read<T: Pod>(values: &[T]) -> Self {
        Self { first: values.as_ptr().cast_mut().cast(), len: size_of_val(values) }
    }
    fn to_write<T: Pod>(values: &mut [T]) -> Self {
        Self { first: values.as_mut_ptr().cast(), len: size_of_val(values) }
    }
}

impl Strided<'_> {
    /// As the layer below takes it, with all elements here inside the slice.
    fn between<T: Pod>(&self, there: GlobalPtr<T>, here: Here) -> Result<scattered::Strided, Error> {
        let &Self { element, counts, first, local, remote } = self;
        if counts.len() != local.len() || counts.len() != remote.len() {
            let (levels, here, there) = (counts.len(), local.len(), remote.len());
            let what =
                format!("a strided array of {levels} counts with {here} strides here and {there} there");
            return Err(Error::Pointer(what));
        }
        // What is more than an address counts is in no memory.
        let step = |values: isize| values.saturating_mul(size_of::<T>() as isize);
        let dimension = |((&count, &local), &remote): ((&usize, &isize), &isize)| Dimension {
            count,
            local: step(local),
            remote: step(remote),
        };
        let (first, element) = (first.saturating_mul(size_of::<T>()), element.saturating_mul(size_of::<T>()));
        let places = (here.first.wrapping_add(first), there.offset());
        let dimensions = counts.iter().zip(local).zip(remote).map(dimension);
        let array = scattered::Strided::new(places, element, dimensions)?;
        let ((low, end), begin) = (array.here(), here.first.addr());
        let is_inside = first <= here.len && low >= begin && end - begin <= here.len;
        if is_inside || scattered::Runs::measure(&array)?.is_none() {
            return Ok(array);
        }
        Err(Error::Pointer(format!("a strided array is not inside the {} bytes of its slice", here.len)))
    }
}

/// Places in the memory of one rank, and how many values there are at each: the pieces of a vector there.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a, T> {
    pieces: &'a [(GlobalPtr<T>, usize)],
    rank: u32,
}

impl<'a, T: Pod> Vector<'a, T> {
    /// These places.
    ///
    /// # Errors
    /// There are none, or they are of different ranks, or in a rank's segment and a region of it, or in two regions.
    pub fn new(pieces: &'a [(GlobalPtr<T>, usize)]) -> Result<Self, Error> {
        let of = |place: &GlobalPtr<T>| (place.rank(), RegionId::of(place.offset()).map(|(id, _)| id));
        let first = pieces.first().map(|(place, _)| of(place));
        match first.filter(|first| pieces.iter().all(|(place, _)| of(place) == *first)) {
            Some((rank, _)) => Ok(Self { pieces, rank }),
            None => Err(Error::Pointer(
                "the places of a vector are in one rank's segment, or in one region of it".into(),
            )),
        }
    }
}

// SAFETY: runs.1 of `gasworks_extended`: what is borrowed does not change.
unsafe impl<T: Pod> Side<u64> for Vector<'_, T> {
    fn piece(&self, number: usize) -> Option<(u64, usize)> {
        let (place, count) = self.pieces.get(number)?;
        // What is more than an address counts is in no memory.
        Some((place.offset(), count.saturating_mul(size_of::<T>())))
    }
}

/// Slices that are put.
#[derive(Clone, Copy)]
struct Sources<'a, T>(&'a [&'a [T]]);

// SAFETY: runs.1 of `gasworks_extended`: what is borrowed does not change.
unsafe impl<T: Pod> Side<*mut u8> for Sources<'_, T> {
    fn piece(&self, number: usize) -> Option<(*mut u8, usize)> {
        let Here { first, len } = Here::to_read(self.0.get(number)?);
        Some((first, len))
    }
}

/// Slices that are got into.
fn targets<T: Pod>(targets: &mut [&mut [T]]) -> Vec<(*mut u8, usize)> {
    let piece = |target: &mut &mut [T]| {
        let Here { first, len } = Here::to_write(target);
        (first, len)
    };
    targets.iter_mut().map(piece).collect()
}

/// Blocks of values at places that are numbered from one place on.
#[derive(Clone, Copy)]
struct Indexed<'a> {
    base: u64,
    width: u64,
    indices: &'a [u64],
    len: usize,
}

// SAFETY: runs.1 of `gasworks_extended`: what is borrowed does not change.
unsafe impl Side<u64> for Indexed<'_> {
    fn piece(&self, number: usize) -> Option<(u64, usize)> {
        let index = self.indices.get(number)?;
        // What is more than an address counts is in no memory.
        Some((self.base.saturating_add(index.saturating_mul(self.width)), self.len))
    }
    fn each(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// Blocks of one length, one behind the other.
#[derive(Clone, Copy)]
struct Dense {
    here: Here,
    block: usize,
}

// SAFETY: runs.1 of `gasworks_extended`: it is a function of numbers that do not change.
unsafe impl Side<*mut u8> for Dense {
    fn piece(&self, number: usize) -> Option<(*mut u8, usize)> {
        let at = number.checked_mul(self.block).filter(|at| *at < self.here.len)?;
        Some((self.here.first.wrapping_add(at), self.block))
    }
    fn each(&self) -> Option<usize> {
        Some(self.block)
    }
}

/// Blocks of `block` values at `indices` from `place` on, and the same here without gaps.
fn indexed<'a, T: Pod>(
    place: GlobalPtr<T>,
    indices: &'a [u64],
    block: usize,
    here: Here,
) -> Result<Lists<Dense, Indexed<'a>>, Error> {
    let wanted =
        block.checked_mul(size_of::<T>()).filter(|len| len.checked_mul(indices.len()) == Some(here.len));
    let Some(len) = wanted else {
        let what = format!("{} blocks of {block} values with {} bytes here", indices.len(), here.len);
        return Err(Error::Pointer(what));
    };
    let width = size_of::<T>() as u64;
    let remote = Indexed { base: place.offset(), width, indices, len };
    Ok(Lists { local: Dense { here, block: len }, remote })
}

fn peer(view: View<'_>, member: u32) -> Peer<'_> {
    Peer { view, member }
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Puts the elements of a strided array; returns when they can be seen.
    ///
    /// # Errors
    /// The rank is wrong, an element is outside its memory or the slice, or the network failed. No byte has moved unless the network failed.
    pub fn put_strided<T: Pod>(
        &self,
        target: GlobalPtr<T>,
        source: &[T],
        array: &Strided<'_>,
    ) -> Result<(), Error> {
        let array = array.between(target, Here::to_read(source))?;
        // SAFETY: scattered.1: all elements here are inside `source`, which is borrowed until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), target.rank()), Way::Put, &array, false)
        }?)
    }

    /// Gets the elements of a strided array into their places in `target`.
    ///
    /// # Errors
    /// Those of [`put_strided`](Self::put_strided).
    pub fn get_strided<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: &mut [T],
        array: &Strided<'_>,
    ) -> Result<(), Error> {
        let array = array.between(source, Here::to_write(target))?;
        // SAFETY: scattered.1: all elements here are inside `target`, which is borrowed exclusively until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), source.rank()), Way::Get, &array, false)
        }?)
    }

    /// Puts slices, one behind the other, to the places of a vector, which together have as many values.
    ///
    /// # Errors
    /// Those of [`put_strided`](Self::put_strided); the numbers of values differ.
    pub fn put_vector<T: Pod>(&self, targets: Vector<'_, T>, sources: &[&[T]]) -> Result<(), Error> {
        let lists = Lists { local: Sources(sources), remote: targets };
        // SAFETY: scattered.1: the pieces here are `sources`, which are borrowed until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), targets.rank), Way::Put, &lists, false)
        }?)
    }

    /// Gets the places of a vector, one behind the other, into slices, which together have as many values.
    ///
    /// # Errors
    /// Those of [`put_vector`](Self::put_vector).
    pub fn get_vector<T: Pod>(&self, sources: Vector<'_, T>, targets: &mut [&mut [T]]) -> Result<(), Error> {
        let local = crate::scattered::targets(targets);
        let lists = Lists { local: &local[..], remote: sources };
        // SAFETY: scattered.1: the pieces here are `targets`, which are borrowed exclusively until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), sources.rank), Way::Get, &lists, false)
        }?)
    }

    /// Puts `source`, block by block of so many values, to `target` and the places of these numbers from there.
    ///
    /// # Errors
    /// Those of [`put_strided`](Self::put_strided); there are not as many blocks as numbers.
    pub fn put_indexed<T: Pod>(
        &self,
        target: GlobalPtr<T>,
        indices: &[u64],
        block: usize,
        source: &[T],
    ) -> Result<(), Error> {
        let lists = indexed(target, indices, block, Here::to_read(source))?;
        // SAFETY: scattered.1: the blocks here are those of `source`, which is borrowed until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), target.rank()), Way::Put, &lists, false)
        }?)
    }

    /// Gets blocks of so many values from the places of these numbers from `source` on into `target`.
    ///
    /// # Errors
    /// Those of [`put_indexed`](Self::put_indexed).
    pub fn get_indexed<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        indices: &[u64],
        block: usize,
        target: &mut [T],
    ) -> Result<(), Error> {
        let lists = indexed(source, indices, block, Here::to_write(target))?;
        // SAFETY: scattered.1: the blocks here are those of `target`, which is borrowed exclusively until this returns.
        Ok(unsafe {
            scattered::transfer(self.engine(), peer(self.view(), source.rank()), Way::Get, &lists, false)
        }?)
    }

    /// Starts a put of a strided array in `source`, and gives that back when it is done; on an error it is dropped. Whether it may be used
    /// before, the event [says](Event::source_free).
    ///
    /// # Errors
    /// Those of [`put_strided`](Self::put_strided).
    pub fn put_strided_owned<T: Pod + Send + Sync>(
        &self,
        target: GlobalPtr<T>,
        source: Vec<T>,
        array: &Strided<'_>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let array = array.between(target, Here::to_read(&source))?;
        let (peer, keep) = (peer(self.view(), target.rank()), Some(M::keep(source)));
        let apart = Options { local: Local::Apart, immediate: false };
        // SAFETY: scattered.1: all elements here are in the heap block of `source`, which the operation keeps and nobody changes.
        let started = unsafe { scattered::transfer_nb(self.engine(), peer, Way::Put, &array, keep, apart) };
        Ok(Event::new(self.engine(), started?, |kept| kept.and_then(M::unkeep)))
    }

    /// Starts a get of a strided array into its places in `target`, and gives that back when it is done; on an error it is dropped.
    ///
    /// # Errors
    /// Those of [`put_strided`](Self::put_strided).
    pub fn get_strided_owned<T: Pod + Send + Sync>(
        &self,
        source: GlobalPtr<T>,
        mut target: Vec<T>,
        array: &Strided<'_>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let array = array.between(source, Here::to_write(&mut target))?;
        let (peer, keep) = (peer(self.view(), source.rank()), Some(M::keep(target)));
        // SAFETY: scattered.1: all elements here are in the heap block of `target`, which the operation keeps and gives back when it is done.
        let started = unsafe {
            scattered::transfer_nb(self.engine(), peer, Way::Get, &array, keep, Options::default())
        };
        Ok(Event::new(self.engine(), started?, |kept| kept.and_then(M::unkeep)))
    }
}

impl<'scope, 'env, M: ThreadMode> Scope<'scope, 'env, M> {
    /// Starts a put of a strided array.
    ///
    /// # Errors
    /// Those of [`Agent::put_strided`].
    pub fn put_strided<T: Pod>(
        &'scope self,
        target: GlobalPtr<T>,
        source: &'scope [T],
        array: &Strided<'_>,
    ) -> Result<(), Error> {
        let array = array.between(target, Here::to_read(source))?;
        // SAFETY: scattered.1: all elements here are inside `source`, which is borrowed for `'scope`, at whose end the put is over (scope.1).
        unsafe { self.start(target.rank(), Way::Put, &array) }
    }

    /// Starts a get of a strided array.
    ///
    /// # Errors
    /// Those of [`Agent::get_strided`].
    pub fn get_strided<T: Pod>(
        &'scope self,
        source: GlobalPtr<T>,
        target: &'scope mut [T],
        array: &Strided<'_>,
    ) -> Result<(), Error> {
        let array = array.between(source, Here::to_write(target))?;
        // SAFETY: scattered.1: all elements here are inside `target`, which is borrowed exclusively for `'scope`, at whose end the get is over
        // (scope.1).
        unsafe { self.start(source.rank(), Way::Get, &array) }
    }

    /// Starts a put of slices to the places of a vector.
    ///
    /// # Errors
    /// Those of [`Agent::put_vector`].
    pub fn put_vector<T: Pod>(
        &'scope self,
        targets: Vector<'_, T>,
        sources: &[&'scope [T]],
    ) -> Result<(), Error> {
        let lists = Lists { local: Sources(sources), remote: targets };
        // SAFETY: scattered.1: the slices of `sources` are borrowed for `'scope`, at whose end the put is over (scope.1).
        unsafe { self.start(targets.rank, Way::Put, &lists) }
    }

    /// Starts a get of the places of a vector into slices.
    ///
    /// # Errors
    /// Those of [`Agent::get_vector`].
    pub fn get_vector<T: Pod>(
        &'scope self,
        sources: Vector<'_, T>,
        targets: Vec<&'scope mut [T]>,
    ) -> Result<(), Error> {
        let mut targets = targets;
        let local = crate::scattered::targets(&mut targets);
        let lists = Lists { local: &local[..], remote: sources };
        // SAFETY: scattered.1: the slices of `targets` are borrowed exclusively for `'scope`, at whose end the get is over (scope.1).
        unsafe { self.start(sources.rank, Way::Get, &lists) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_inside_its_slice_or_refused() {
        let values = [0u32; 10];
        let is_inside = |element, counts: &[usize], first, local: &[isize]| {
            let remote = vec![1; counts.len()];
            let array = Strided { element, counts, first, local, remote: &remote };
            array.between(GlobalPtr::<u32>::new(0, 1 << 20), Here::to_read(&values)).is_ok()
        };
        assert!(is_inside(1, &[], 9, &[]) && !is_inside(1, &[], 10, &[]) && !is_inside(2, &[], 9, &[]));
        assert!(
            is_inside(1, &[10], 0, &[1]) && !is_inside(1, &[11], 0, &[1]) && !is_inside(1, &[10], 1, &[1])
        );
        assert!(
            is_inside(2, &[5], 8, &[-2]) && !is_inside(2, &[6], 8, &[-2]) && !is_inside(2, &[5], 9, &[-2])
        );
        assert!(is_inside(3, &[2, 2], 0, &[3, 4]) && !is_inside(3, &[2, 2], 1, &[3, 4]));
        assert!(is_inside(3, &[0, 2], 100, &[3, 400]), "nothing is anywhere");
        for (element, counts, first, stride) in
            [(usize::MAX, 1, 0, 1), (1, 2, usize::MAX, 1), (1, 2, 0, isize::MAX), (1, usize::MAX, 0, 1)]
        {
            assert!(!is_inside(element, &[counts], first, &[stride]), "{element} {counts} {first} {stride}");
        }
        let uneven = Strided { element: 1, counts: &[1], first: 0, local: &[1, 2], remote: &[1] };
        assert!(uneven.between(GlobalPtr::<u32>::new(0, 0), Here::to_read(&values)).is_err());
    }

    #[test]
    fn a_vector_is_of_one_rank_and_blocks_are_as_many_as_their_numbers() {
        let at = |rank| (GlobalPtr::<u8>::new(rank, 0), 3);
        assert!(Vector::new(&[at(1), at(1)]).is_ok());
        assert!(Vector::new(&[at(1), at(2)]).is_err() && Vector::<u8>::new(&[]).is_err());
        let values = [0u16; 6];
        let fit = |indices: &[u64], block| {
            indexed(GlobalPtr::<u16>::new(0, 0), indices, block, Here::to_read(&values)).is_ok()
        };
        assert!(
            fit(&[7, 1], 3) && fit(&[1], 6) && !fit(&[1], 3) && !fit(&[], 6) && !fit(&[1, 2], usize::MAX)
        );
        let far = indexed(GlobalPtr::<u16>::new(0, 9), &[u64::MAX], 6, Here::to_read(&values))
            .expect("it fits here");
        assert!(scattered::Runs::measure(&far).is_err());
    }
}
