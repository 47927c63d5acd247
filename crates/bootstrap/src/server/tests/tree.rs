//! Servers in a tree, against one server for all.

use super::*;
use std::collections::VecDeque;

/// A tree of servers whose messages arrive one after the other.
struct Forest {
    servers: Vec<Server>,
    /// Of each server: its parent, and which child of that it is.
    above: Vec<Option<(usize, usize)>>,
    below: Vec<Vec<usize>>,
    home: Vec<usize>,
    /// Messages and bytes over each link up, and down.
    links: (usize, usize),
}

impl Forest {
    /// `homes[i]` are the ranks of server `i`; server `i` hangs below server `(i - 1) / fan`.
    fn new(homes: &[Vec<u32>], fan: usize) -> Self {
        let size: u32 = homes.iter().map(|ranks| ranks.len() as u32).sum();
        let mut home = vec![0; size as usize];
        let mut above = vec![None; homes.len()];
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); homes.len()];
        for (server, ranks) in homes.iter().enumerate() {
            ranks.iter().for_each(|&rank| home[rank as usize] = server);
            if let Some(before) = server.checked_sub(1) {
                let parent = before / fan;
                above[server] = Some((parent, below[parent].len()));
                below[parent].push(server);
            }
        }
        let part = |server: usize| Part {
            job: "job.1".into(),
            size,
            ranks: homes[server].clone(),
            children: below[server].len(),
            has_parent: server > 0,
            mapping: "(vector,(0,1,1))".into(),
        };
        let servers = (0..homes.len()).map(|server| Server::of_part(part(server))).collect();
        Self { servers, above, below, home, links: (0, 0) }
    }

    /// Feeds bytes of a rank, and carries messages until all is quiet; gives what goes to ranks.
    fn feed(&mut self, rank: u32, bytes: &[u8]) -> Vec<(u32, String)> {
        let mut answers = Vec::new();
        let home = self.home[rank as usize];
        let mut out = Vec::new();
        self.servers[home].feed(rank, &mut bytes.to_vec(), &mut out);
        let mut queue: VecDeque<(usize, Output)> = out.drain(..).map(|o| (home, o)).collect();
        while let Some((at, output)) = queue.pop_front() {
            let to = match output {
                Output::Send { rank, bytes } => {
                    answers.push((rank, String::from_utf8_lossy(&bytes).into_owned()));
                    continue;
                }
                Output::Up { bytes } => {
                    let (parent, child) = self.above[at].expect("a parent");
                    self.links = (self.links.0 + 1, self.links.1 + bytes.len());
                    self.servers[parent].from_child(child, &bytes, &mut out).expect("understood");
                    parent
                }
                Output::Down { child, bytes } => {
                    let child = self.below[at][child];
                    self.links = (self.links.0 + 1, self.links.1 + bytes.len());
                    self.servers[child].from_parent(&bytes, &mut out).expect("understood");
                    child
                }
                Output::Joined { .. } | Output::Finalized { .. } => continue,
                other => panic!("{other:?}"),
            };
            queue.extend(out.drain(..).map(|o| (to, o)));
        }
        answers
    }

    fn init(&mut self) {
        for rank in 0..self.home.len() as u32 {
            // Even ranks speak PMI-1.
            if rank.is_multiple_of(2) {
                self.feed(rank, b"cmd=init pmi_version=1 pmi_subversion=1\n");
            } else {
                let hello = Message::new("fullinit").with("pmirank", rank).encode().expect("encoded");
                self.feed(rank, &[b"cmd=init pmi_version=2\n".to_vec(), hello].concat());
            }
        }
    }

    fn tell(&mut self, rank: u32, one: &str, two: Message) -> Vec<(u32, String)> {
        let bytes =
            if rank.is_multiple_of(2) { one.as_bytes().to_vec() } else { two.encode().expect("encoded") };
        self.feed(rank, &bytes)
    }

    fn put(&mut self, rank: u32, key: &str, value: &str) -> bool {
        let one = format!("cmd=put kvsname=job.1 key={key} value={value}\n");
        let two = Message::new("kvs-put").with("key", key).with("value", value);
        self.tell(rank, &one, two)[0].1.contains("rc=0")
    }

    fn fence(&mut self, rank: u32) -> Vec<u32> {
        let answers = self.tell(rank, "cmd=barrier_in\n", Message::new("kvs-fence"));
        answers.into_iter().map(|(rank, _)| rank).collect()
    }

    fn get(&mut self, rank: u32, key: &str) -> Option<String> {
        let one = format!("cmd=get kvsname=job.1 key={key}\n");
        let answer = self.tell(rank, &one, Message::new("kvs-get").with("key", key))[0].1.clone();
        let value = answer.trim_end_matches(['\n', ';']).split_once("value=")?.1.to_owned();
        (value != "unknown").then_some(value)
    }
}

/// Seven servers: a root without ranks, ranks dealt to the others one by one.
fn seven() -> Forest {
    let mut homes = vec![Vec::new(); 7];
    (0..12).for_each(|rank: u32| homes[1 + rank as usize % 6].push(rank));
    let mut forest = Forest::new(&homes, 2);
    forest.init();
    forest
}

#[test]
fn what_is_put_anywhere_is_found_everywhere() {
    let mut forest = seven();
    for round in 0..3 {
        for rank in 0..12 {
            assert!(forest.put(rank, &format!("k{rank}.{round}"), &format!("v{rank}.{round}")));
        }
        for rank in 0..11 {
            assert!(forest.fence(rank).is_empty());
        }
        let mut released = forest.fence(11);
        released.sort_unstable();
        assert_eq!(released, (0..12).collect::<Vec<_>>());
        for rank in 0..12 {
            for other in 0..12 {
                let (key, value) = (format!("k{other}.{round}"), format!("v{other}.{round}"));
                assert_eq!(forest.get(rank, &key).as_deref(), Some(value.as_str()));
            }
        }
    }
    let before = forest.links;
    assert_eq!(forest.get(3, "k0.0").as_deref(), Some("v0.0"));
    assert_eq!(forest.links, before, "a value is answered where it is asked for");
}

#[test]
fn data_crosses_each_link_once_in_each_direction() {
    let mut forest = seven();
    let value = "x".repeat(500);
    (0..12).for_each(|rank| assert!(forest.put(rank, &format!("key{rank:02}"), &value)));
    assert_eq!(forest.links, (0, 0), "nothing moves before the fence");
    (0..12).for_each(|rank| drop(forest.fence(rank)));
    let (messages, bytes) = forest.links;
    assert_eq!(messages, 2 * 6, "one message each way on each of six links");
    // Over each link goes all that was put, what is below it up and the rest down, and a head each way.
    let pair = 4 + 1 + 5 + 4 + value.len();
    assert_eq!(bytes, 6 * (12 * pair + 5 + 1));
}

#[test]
fn names_are_known_everywhere() {
    let mut forest = seven();
    let publish = |rank, forest: &mut Forest| {
        let two = Message::new("name-publish").with("name", "n").with("port", format!("p{rank}"));
        forest.tell(rank, &format!("cmd=publish_name service=n port=p{rank}\n"), two)
    };
    assert!(publish(5, &mut forest)[0].1.contains("rc=0"));
    let refused = publish(6, &mut forest);
    assert_eq!(refused[0].0, 6);
    assert!(refused[0].1.contains("rc=-1 msg=this_name_is_published"), "{refused:?}");
    let lookup = Message::new("name-lookup").with("name", "n").with("thrid", 4);
    let found = forest.tell(11, "", lookup);
    assert!(found[0].1.contains("name-lookup-response;thrid=4;rc=0;port=p5;"), "{found:?}");
    assert!(forest.tell(0, "cmd=unpublish_name service=n\n", Message::default())[0].1.contains("rc=0"));
    assert!(forest.tell(2, "cmd=lookup_name service=n\n", Message::default())[0].1.contains("not_published"));
}

#[test]
fn of_two_values_for_one_key_one_is_seen_by_all() {
    let mut forest = seven();
    // In different servers neither can be refused; the lower rank's stays.
    assert!(forest.put(7, "k", "seven") && forest.put(2, "k", "two") && forest.put(10, "k", "ten"));
    (0..12).for_each(|rank| drop(forest.fence(rank)));
    for rank in 0..12 {
        assert_eq!(forest.get(rank, "k").as_deref(), Some("two"), "rank {rank}");
        assert!(!forest.put(rank, "k", "again"));
    }
}

#[test]
fn a_wait_that_cannot_end_is_found() {
    // Rank 0 at the root, 1 and 2 in a child each.
    let mut forest = Forest::new(&[vec![0], vec![1], vec![2]], 2);
    forest.init();
    forest.fence(0);
    forest.fence(1);
    assert_eq!(forest.servers[0].stuck(), None);
    assert_eq!(forest.servers[1].stuck(), None);
    forest.servers[0].gone(2);
    assert_eq!(forest.servers[0].stuck(), Some((0, 2)));
    // Nobody at the root itself: a rank below waits.
    let mut forest = Forest::new(&[vec![], vec![0], vec![1]], 2);
    forest.init();
    forest.fence(0);
    forest.servers[0].gone(1);
    assert_eq!(forest.servers[0].stuck(), Some((0, 1)));
    // A rank that has ended with all the others in order stands in nobody's way.
    let mut forest = seven();
    (0..12).for_each(|rank| drop(forest.fence(rank)));
    forest.servers[1].gone(0);
    assert!(forest.servers.iter().all(|server| server.stuck().is_none()));
}

#[test]
fn broken_messages_of_servers_are_refused() {
    let part = |has_parent| Part {
        job: "job.1".into(),
        size: 2,
        ranks: vec![0],
        children: 1,
        has_parent,
        mapping: String::new(),
    };
    let fence = |pairs: &[u8]| [&[1, 1, 0, 0, 0], pairs].concat();
    let pair = |rank: u8, key: &[u8], length: u32, value: &[u8]| {
        [&[rank, 0, 0, 0, key.len() as u8], key, &length.to_le_bytes(), value].concat()
    };
    for (bytes, wanted) in [
        (vec![], "lacks 1 bytes"),
        (vec![9], "kind 9 came from below"),
        (vec![3], "kind 3 came from below"),
        (vec![1, 0], "lacks 3 bytes"),
        (vec![1, 2, 0, 0, 0], "rank 2 of 2 is said to wait"),
        (fence(&[1]), "lacks 3 bytes"),
        (fence(&pair(2, b"k", 1, b"v")), "of rank 2 of 2"),
        (fence(&pair(1, b"", 1, b"v")), "key has 0 bytes"),
        (fence(&pair(1, &[b'k'; 65], 1, b"v")), "key has 65 bytes"),
        (fence(&pair(1, b"k", u32::MAX, b"v")), "lacks 4294967294 bytes"),
        (fence(&pair(1, b"\xff", 1, b"v")), "no text"),
        (vec![2, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], "no command 7"),
        (vec![2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5], "1 bytes too many"),
    ] {
        let said = Server::of_part(part(false)).from_child(0, &bytes, &mut Vec::new()).expect_err(wanted);
        assert!(said.contains(wanted), "{bytes:?}: {said} should say {wanted}");
    }
    let mut server = Server::of_part(part(true));
    let good = fence(&pair(1, b"k", 1, b"v"));
    let below = |server: &mut Server, child: usize, bytes: &[u8]| {
        server.from_child(child, bytes, &mut Vec::new()).err().unwrap_or_else(|| "understood".to_owned())
    };
    let above = |server: &mut Server, bytes: &[u8]| {
        server.from_parent(bytes, &mut Vec::new()).err().unwrap_or_else(|| "understood".to_owned())
    };
    assert_eq!(below(&mut server, 1, &good), "a fence came where none was to come", "no such child");
    assert_eq!(below(&mut server, 0, &good), "understood");
    assert_eq!(below(&mut server, 0, &good), "a fence came where none was to come", "a second fence");
    // Who asks for the name "n".
    let lookup = [&[2, 0, 0, 0, 0, 2, 1, 0, 0, 0][..], b"n", &[0; 4]].concat();
    assert_eq!(below(&mut server, 1, &lookup), "a question came from nowhere");
    assert_eq!(below(&mut server, 0, &lookup), "understood");
    let long = fence(&pair(1, &[b'k'; 64], 1, b"v"));
    assert_eq!(below(&mut Server::of_part(part(true)), 0, &long), "understood");
    assert_eq!(above(&mut server, &[3]), "a release came where none was to come");
    assert_eq!(above(&mut server, &[9]), "a message of kind 9 came from above");
    assert_eq!(above(&mut server, &[4, 1, 0, 0, 0, 0]), "nobody asked with ticket 1");
    for (answer, wanted) in [
        (&[7][..], "there is no answer 7"),
        (&[2, 4], "there is no refusal 4"),
        (&[0, 0], "a message has 1 bytes too many"),
        (&[2, 3], "understood"),
    ] {
        assert_eq!(above(&mut server, &[&[4, 0, 0, 0, 0], answer].concat()), wanted);
    }
    feed(&mut server, 0, b"cmd=init pmi_version=1\ncmd=barrier_in\n");
    assert_eq!(above(&mut server, &[3, 1]), "a message lacks 3 bytes");
    assert_eq!(above(&mut server, &[3]), "understood");
}

proptest! {
    /// In any tree, with the ranks anywhere, everybody sees what one server for all would show.
    #[test]
    fn a_tree_shows_what_one_server_shows(
        homes in proptest::collection::vec(0usize..6, 1..12),
        fan in 1usize..4,
        rounds in proptest::collection::vec(
            proptest::collection::vec((0usize..12, 0u32..8, 0u32..100), 0..10), 1..4),
    ) {
        let mut by_server = vec![Vec::new(); 6];
        (0..).zip(&homes).for_each(|(rank, &home)| by_server[home].push(rank));
        // The root may be without ranks if there are others.
        let spare = by_server[0].is_empty();
        by_server.retain(|ranks| !ranks.is_empty());
        if spare {
            by_server.insert(0, Vec::new());
        }
        let size = homes.len() as u32;
        let mut forest = Forest::new(&by_server, fan);
        forest.init();
        let mut kept = std::collections::HashMap::new();
        for round in rounds {
            let mut fresh: std::collections::HashMap<u32, (u32, u32)> = std::collections::HashMap::new();
            for (rank, key, value) in round {
                let rank = rank as u32 % size;
                if forest.put(rank, &format!("k{key}"), &value.to_string()) {
                    let lowest = fresh.entry(key).or_insert((rank, value));
                    if rank < lowest.0 {
                        *lowest = (rank, value);
                    }
                } else {
                    prop_assert!(kept.contains_key(&key) || fresh.contains_key(&key));
                }
            }
            for rank in 0..size {
                let released = forest.fence(rank).len() as u32;
                prop_assert_eq!(released, if rank + 1 == size { size } else { 0 });
            }
            kept.extend(fresh.into_iter().map(|(key, (_, value))| (key, value)));
            for rank in 0..size {
                for key in 0..8 {
                    let wanted = kept.get(&key).map(u32::to_string);
                    prop_assert_eq!(forest.get(rank, &format!("k{key}")), wanted);
                }
            }
        }
    }
}
