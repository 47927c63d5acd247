//! A library that has nothing to do with Gasworks, for a program in C that links with both.

/// The sum of these numbers, found by several threads.
///
/// # Safety
/// There are so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn other_sum(numbers: *const u64, count: usize) -> u64 {
    // SAFETY: the caller promises `count` numbers at `numbers`, which nobody writes while they are copied here.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, count) }.to_vec();
    let threads: Vec<_> = numbers.into_iter().map(|number| std::thread::spawn(move || number)).collect();
    threads.into_iter().map(|thread| thread.join().expect("it adds nothing")).sum()
}
