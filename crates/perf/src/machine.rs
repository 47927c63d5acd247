//! The machine: its name for the rows, and the time that others took from it.

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

/// The time that the machine's host has given to others while we wanted it, in clock ticks since the start.
pub fn stolen() -> u64 {
    steal_of(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The processors that a process may use; all numbers below 1,024 if it does not say.
pub fn allowed_to(pid: u32) -> Vec<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let listed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    listed.and_then(gasworks_os::numa::parse_list).unwrap_or_else(|| (0..1024).collect())
}

fn steal_of(stat: &str) -> u64 {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    all.split_whitespace().nth(7).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_field() {
        assert_eq!(steal_of("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), 88);
        assert_eq!(steal_of(""), 0);
    }

    #[test]
    fn what_a_process_may_use_is_known() {
        assert_eq!(allowed_to(u32::MAX).len(), 1024, "no such process says");
        let own = gasworks_os::affinity::allowed().expect("this thread has some");
        assert_eq!(allowed_to(std::process::id()), own);
    }

    #[test]
    fn the_machine_has_a_name() {
        let name = describe();
        assert!(name.contains(" processors, Linux ") && !name.contains('\n'), "{name}");
    }
}
