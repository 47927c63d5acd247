//! Which NICs there are on a host: the system lists the names of their sockets.

/// The numbers after the start of the names that begin so, in hexadecimal digits, each once. What the system does not list
/// is not there.
pub fn named(start: &str) -> Vec<u32> {
    let list = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut numbers = listed(&list, start);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Names that are no files' begin with an `@` there, in the last field of a line.
fn listed(list: &str, start: &str) -> Vec<u32> {
    let names = list.lines().filter_map(|line| line.split_once('@').map(|(_, name)| name));
    let numbers = names.filter_map(|name| name.strip_prefix(start));
    numbers.filter_map(|number| u32::from_str_radix(number, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_others() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 1 @ours-1f\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 2 @ours-1f\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 3\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 4 @ours-\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 5 @ours-xyz\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 6 @ours-fffffffff\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 7 /tmp/ours-3\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 8 @theirs-4\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 9 @ours-0\n";
        assert_eq!(listed(list, "ours-"), [0x1f, 0x1f, 0]);
    }
}
