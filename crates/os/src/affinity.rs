//! Which processors a thread may run on (`sched_getaffinity(2)`, `sched_setaffinity(2)`).

use crate::{OsError, Result, sys};

/// The processors this thread may run on, in order.
pub fn allowed() -> Result<Vec<usize>> {
    // The kernel refuses a mask smaller than its own; 1,024 processors are enough for most, 64 Ki for all.
    let mut words = 16;
    loop {
        let mut mask = vec![0u64; words];
        match sys::affinity(&mut mask) {
            Ok(()) => return Ok(processors(&mask)),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) && words < 1024 => words *= 2,
            Err(e) => return Err(OsError::new("read", "the processors of this thread", e)),
        }
    }
}

/// How many processors this thread may run on, at least 1.
pub fn count() -> usize {
    allowed().map_or(1, |cpus| cpus.len().max(1))
}

/// Binds this thread, and the threads and processes it starts from now on, to the processor `cpu`.
pub fn bind(cpu: usize) -> Result<()> {
    bind_any(&[cpu])
}

/// Binds this thread to a set of processors.
pub fn bind_any(cpus: &[usize]) -> Result<()> {
    sys::set_affinity(&mask_of(cpus)).map_err(|e| OsError::new("bind to", format!("processors {cpus:?}"), e))
}

/// The mask that stands for a set of processors, as the kernel wants it.
pub fn mask_of(cpus: &[usize]) -> Vec<u64> {
    let highest = cpus.iter().copied().max().unwrap_or(0).min(65_535);
    let mut mask = vec![0u64; (highest / 64 + 1).max(16)];
    for &cpu in cpus {
        if let Some(word) = mask.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    mask
}

fn processors(mask: &[u64]) -> Vec<usize> {
    (0..mask.len() * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_round_trip() {
        for cpus in [vec![0], vec![3, 63, 64, 1025], vec![]] {
            assert_eq!(processors(&mask_of(&cpus)), cpus);
        }
    }

    #[test]
    fn a_thread_binds_to_what_it_is_allowed() {
        std::thread::spawn(|| {
            let all = allowed().expect("a mask");
            let last = *all.last().expect("one at least");
            bind(last).expect("bound");
            assert_eq!(allowed().expect("a mask"), vec![last]);
            bind_any(&all).expect("bound");
            assert_eq!(count(), all.len());
        })
        .join()
        .expect("no panic");
    }
}
