//! The machine: its name, and the time that its host has given to others.

/// One line: processor, how many, kernel.
pub fn describe() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let online = cpuinfo.lines().filter(|line| line.starts_with("processor")).count().max(count);
    format!("{model}, {online} processors, Linux {}", release.trim())
}

/// Clock ticks, since the start, for which the machine's host ran others while this machine wanted the processor.
pub fn stolen() -> u64 {
    stolen_of(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn stolen_of(stat: &str) -> u64 {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    all.split_whitespace().nth(7).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_field() {
        assert_eq!(stolen_of("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), 88);
        assert_eq!(stolen_of(""), 0);
    }

    #[test]
    fn the_machine_has_a_name() {
        let name = describe();
        assert!(name.contains(" processors, Linux ") && !name.contains('\n'), "{name}");
    }
}
