//! Many connections to one endpoint: what an idle poll takes, what a connection takes, and how many are made in a second.

use crate::{Bench, base, pin};
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event};
use std::io::BufRead;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Kilobytes of memory of this process, of which what it shares with others counts in part.
fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a line");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}

/// The other process: connects so many times, says so, and stays until its input ends.
pub fn clients(words: &[String]) {
    pin(1);
    let [base, uri, count] = words else { panic!("three words") };
    let count: usize = count.parse().expect("a number");
    let mut end =
        Endpoint::create(EndpointConfig { base: base.clone(), ..EndpointConfig::default() }).expect("one");
    let (mut asked, mut there) = (0, 0);
    while there < count {
        // Not so many at once that datagrams find no room.
        if asked < count && asked - there < 16 {
            end.connect(uri, &[], Attribute::ReliableOrdered, 0, None).expect("asked");
            asked += 1;
        }
        match end.event().expect("no error") {
            Some(Event::Connected { result: Ok(()), .. }) => there += 1,
            None => {}
            other => panic!("{other:?}"),
        }
    }
    println!("there");
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
}

/// Nanoseconds of a poll that finds nothing.
fn idle(end: &mut Endpoint, count: usize) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| assert!(end.event().expect("no error").is_none()));
    start.elapsed().as_nanos() as f64 / count as f64
}

pub fn measure(bench: &Bench) {
    if bench.only.as_ref().is_some_and(|only| !"crowd".contains(only.as_str())) {
        return;
    }
    let program = std::env::current_exe().expect("this program");
    for count in [10, 10_000 / bench.scale] {
        let (_directory, base) = base();
        let config = EndpointConfig { base: base.clone(), ..EndpointConfig::default() };
        let mut server = Endpoint::create(config).expect("an endpoint");
        pin(0);
        let before = memory();
        let mut command = Command::new(&program);
        command.args(["clients", &base, &server.uri().to_string(), &count.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let mut first = None;
        let mut there = 0;
        while there < count {
            match server.event().expect("no error") {
                Some(Event::Requested(request)) => {
                    first.get_or_insert_with(Instant::now);
                    server.accept(request.id, 0).expect("accepted");
                }
                Some(Event::Accepted { result: Ok(()), .. }) => there += 1,
                None => {}
                other => panic!("{other:?}"),
            }
        }
        let took = first.expect("the first").elapsed().as_secs_f64();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("a line");
        let each = (memory() - before) / count as f64;
        let polls: Vec<f64> = (0..7).map(|_| idle(&mut server, 200_000 / bench.scale)).collect();
        let poll = polls.into_iter().fold(f64::INFINITY, f64::min);
        println!(
            "crowd of {count}: {:.0} connections a second, {each:.2} KiB of the server's memory each, an idle poll {poll:.1} ns",
            count as f64 / took
        );
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }
}
