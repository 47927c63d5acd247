//! Which ranks run on which hosts.

use std::net::Ipv6Addr;
use std::path::Path;

use anyhow::{Context, bail, ensure};

/// A host of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Its ranks, in rising order.
    pub(crate) ranks: Vec<u32>,
}

/// A host that may be used, and for how many ranks in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slots {
    name: String,
    count: Option<u32>,
}

/// Where the ranks of a job are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The hosts that have ranks.
    pub(crate) hosts: Vec<Host>,
    /// The same in the words of `PMI_process_mapping`.
    pub(crate) mapping: String,
}

/// Reads `a,b:2,c`: a colon and a number say how many ranks a host takes before the next one gets some.
fn read_list(text: &str) -> anyhow::Result<Vec<Slots>> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(read_host).collect()
}

/// Reads a file: a host on each line, as `a`, `a:2` or `a slots=2`; what follows `#` is a remark.
fn read_file(path: &Path) -> anyhow::Result<Vec<Slots>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("read hosts from {}", path.display()))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let at = || format!("{} line {number}", path.display());
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let mut host = read_host(first).with_context(at)?;
        for word in words {
            match word.strip_prefix("slots=") {
                Some(count) => host.count = Some(read_count(count).with_context(at)?),
                None => bail!("{}: {word:?} is neither a host nor slots=N", at()),
            }
        }
        hosts.push(host);
    }
    Ok(hosts)
}

fn read_host(word: &str) -> anyhow::Result<Slots> {
    let (user, host) = word.rsplit_once('@').map_or(("", word), |(user, _)| word.split_at(user.len() + 1));
    if let Some((address, count)) = read_address(host)? {
        return Ok(Slots { name: format!("{user}{address}"), count });
    }
    let (name, count) = match word.rsplit_once(':') {
        Some((name, count)) => (name, Some(read_count(count)?)),
        None => (word, None),
    };
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    // A name that begins with a dash would be an option to the remote command.
    ensure!(
        !name.is_empty() && !name.starts_with('-') && name.chars().all(sound),
        "{name:?} is no name of a host"
    );
    Ok(Slots { name: name.to_owned(), count })
}

/// An address of IPv6, perhaps with a scope: `::1`, or `[::1]`, after which there may be a colon and a number. The remote command gets
/// it without brackets.
fn read_address(word: &str) -> anyhow::Result<Option<(&str, Option<u32>)>> {
    let is_address = |text: &str| {
        let (address, scope) = text.split_once('%').unwrap_or((text, "0"));
        let sound =
            !scope.is_empty() && scope.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        sound && address.parse::<Ipv6Addr>().is_ok()
    };
    let Some(inner) = word.strip_prefix('[') else {
        return Ok(is_address(word).then_some((word, None)));
    };
    let (address, rest) = inner.split_once(']').unwrap_or((inner, "]"));
    let count = rest.strip_prefix(':').map(read_count).transpose()?;
    ensure!(
        is_address(address) && (rest.is_empty() || count.is_some()),
        "{word:?} is no address of IPv6: wanted [ADDRESS] or [ADDRESS]:N"
    );
    Ok(Some((address, count)))
}

fn read_count(text: &str) -> anyhow::Result<u32> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => bail!("{text:?} ranks on a host: wanted a whole number from 1"),
    }
}

/// Places `ranks` ranks on the hosts of a list or a file, or on none if neither is given: each host takes as many in a
/// row as it says, or `each`; when all have some the list is gone through again.
pub(crate) fn place(
    list: Option<&str>,
    file: Option<&Path>,
    each: Option<u32>,
    ranks: u32,
) -> anyhow::Result<Option<Placement>> {
    let slots = match (list, file) {
        (Some(list), _) => read_list(list)?,
        (None, Some(file)) => read_file(file)?,
        (None, None) => return Ok(None),
    };
    ensure!(!slots.is_empty(), "the list of hosts is empty");
    let mut hosts: Vec<Host> = Vec::new();
    // Runs of consecutive ranks: host and length.
    let mut runs: Vec<(usize, u32)> = Vec::new();
    let mut next = 0;
    for Slots { name, count } in slots.iter().cycle() {
        if next == ranks {
            break;
        }
        let place = hosts.iter().position(|host| host.name == *name).unwrap_or(hosts.len());
        if place == hosts.len() {
            hosts.push(Host { name: name.clone(), ranks: Vec::new() });
        }
        let length = count.or(each).unwrap_or(1).min(ranks - next);
        hosts[place].ranks.extend(next..next + length);
        next += length;
        match runs.last_mut() {
            Some((host, run)) if *host == place => *run += length,
            _ => runs.push((place, length)),
        }
    }
    Ok(Some(Placement { hosts, mapping: mapping(&runs) }))
}

/// Blocks of neighbouring hosts with as many ranks each: first host, how many hosts, ranks on each.
fn mapping(runs: &[(usize, u32)]) -> String {
    let mut blocks: Vec<(usize, usize, u32)> = Vec::new();
    for &(host, length) in runs {
        match blocks.last_mut() {
            Some((first, count, each)) if *each == length && *first + *count == host => *count += 1,
            _ => blocks.push((host, 1, length)),
        }
    }
    let text: String =
        blocks.iter().map(|(first, count, each)| format!(",({first},{count},{each})")).collect();
    format!("(vector{text})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(list: &str, each: Option<u32>, ranks: u32) -> (Vec<(String, Vec<u32>)>, String) {
        let placement = place(Some(list), None, each, ranks).expect("a list").expect("hosts");
        (placement.hosts.into_iter().map(|h| (h.name, h.ranks)).collect(), placement.mapping)
    }

    #[test]
    fn ranks_go_where_the_list_says() {
        let (hosts, mapping) = placed("a,b:2,c", None, 4);
        assert_eq!(hosts, [("a".into(), vec![0]), ("b".into(), vec![1, 2]), ("c".into(), vec![3])]);
        assert_eq!(mapping, "(vector,(0,1,1),(1,1,2),(2,1,1))");
        // Twice round; and ranks that do not fill the last host.
        let (hosts, mapping) = placed("a,b", None, 5);
        assert_eq!(hosts, [("a".into(), vec![0, 2, 4]), ("b".into(), vec![1, 3])]);
        assert_eq!(mapping, "(vector,(0,2,1),(0,2,1),(0,1,1))");
        assert_eq!(placed("a,b,c", Some(2), 6).1, "(vector,(0,3,2))");
        assert_eq!(placed("a,a:3,b", None, 5).0, [("a".into(), vec![0, 1, 2, 3]), ("b".into(), vec![4])]);
        assert_eq!(
            placed("::1,me@[fe80::1%eth0]:2,[2001:db8::7]", None, 4).0,
            [
                ("::1".into(), vec![0]),
                ("me@fe80::1%eth0".into(), vec![1, 2]),
                ("2001:db8::7".into(), vec![3])
            ]
        );
        // A host without ranks is none.
        assert_eq!(placed("a:4,b", None, 2).0, [("a".into(), vec![0, 1])]);
    }

    #[test]
    fn files_and_what_is_wrong() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hosts");
        std::fs::write(&path, "# mine\na slots=2\n\nuser@b:1 # the other\n").expect("written");
        let placement = place(None, Some(&path), None, 3).expect("read").expect("hosts");
        assert_eq!(placement.hosts[1], Host { name: "user@b".into(), ranks: vec![2] });
        std::fs::write(&path, "a\nb slot=2\n").expect("written");
        let said = format!("{:#}", place(None, Some(&path), None, 3).expect_err("wrong"));
        assert!(said.contains("line 2") && said.contains("slot=2"), "{said}");
        for bad in [
            "[::1",
            "[::1]x",
            "[::1]:0",
            "[a]:1",
            "::1%",
            "::1%a;b",
            "",
            ",",
            "a:0",
            "a:x",
            "-oProxyCommand=x",
            "a b",
            ":2",
            "a;b",
        ] {
            assert!(place(Some(bad), None, None, 1).is_err(), "{bad}");
        }
        assert_eq!(place(None, None, None, 4).expect("nothing"), None);
    }
}
