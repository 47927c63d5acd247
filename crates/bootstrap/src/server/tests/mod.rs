//! The server driven without sockets.

mod pmi1;
mod tree;

use super::*;
use proptest::prelude::*;

/// Sends one message; gives what came of it.
fn say(server: &mut Server, rank: u32, message: Message) -> Vec<Output> {
    feed(server, rank, &message.encode().expect("encoded"))
}

fn feed(server: &mut Server, rank: u32, bytes: &[u8]) -> Vec<Output> {
    let mut out = Vec::new();
    server.feed(rank, &mut bytes.to_vec(), &mut out);
    out
}

fn joined(size: u32) -> Server {
    let mut server = Server::new(size, "job.1");
    for rank in 0..size {
        feed(&mut server, rank, b"cmd=init pmi_version=2 pmi_subversion=0\n");
        say(&mut server, rank, Message::new("fullinit").with("pmirank", rank).with("threaded", "FALSE"));
        assert_eq!(server.phase(rank), Phase::Joined);
    }
    server
}

fn sent(outputs: &[Output]) -> Vec<(u32, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[6..]).into_owned();
    outputs
        .iter()
        .filter_map(|o| match o {
            Output::Send { rank, bytes } => Some((*rank, text(bytes))),
            _ => None,
        })
        .collect()
}

fn broken(outputs: &[Output]) -> &str {
    match outputs.last() {
        Some(Output::Broken { what, .. }) => what,
        other => panic!("expected a broken rank, got {other:?}"),
    }
}

#[test]
fn values_appear_after_the_fence() {
    let mut server = joined(2);
    let put = Message::new("kvs-put").with("key", "k0").with("value", "v;0");
    assert_eq!(sent(&say(&mut server, 0, put)), [(0, "cmd=kvs-put-response;rc=0;".to_owned())]);
    let get = || Message::new("kvs-get").with("jobid", "job.1").with("srcid", 0).with("key", "k0");
    assert_eq!(sent(&say(&mut server, 1, get()))[0].1, "cmd=kvs-get-response;rc=0;found=FALSE;");
    assert!(say(&mut server, 0, Message::new("kvs-fence")).is_empty());
    assert_eq!(server.stuck(), None);
    let released = sent(&say(&mut server, 1, Message::new("kvs-fence")));
    assert_eq!(released.len(), 2);
    assert_eq!(sent(&say(&mut server, 1, get()))[0].1, "cmd=kvs-get-response;rc=0;found=TRUE;value=v;;0;");
    let end = say(&mut server, 1, Message::new("finalize"));
    assert!(end.contains(&Output::Finalized { rank: 1 }));
    assert!(say(&mut server, 0, Message::new("kvs-fence")).is_empty());
    server.gone(1);
    assert_eq!(server.stuck(), Some((0, 1)));
}

#[test]
fn node_attributes_are_waited_for() {
    let mut server = joined(3);
    let get = |wait| Message::new("info-getnodeattr").with("key", "seg").with("wait", wait).with("thrid", 7);
    assert!(say(&mut server, 1, get("TRUE")).is_empty());
    assert_eq!(
        sent(&say(&mut server, 2, get("FALSE")))[0].1,
        "cmd=info-getnodeattr-response;thrid=7;rc=0;found=FALSE;"
    );
    assert_eq!(server.stuck(), None);
    let put = Message::new("info-putnodeattr").with("key", "seg").with("value", "x");
    let got = sent(&say(&mut server, 0, put));
    assert_eq!(got[1], (1, "cmd=info-getnodeattr-response;thrid=7;rc=0;found=TRUE;value=x;".to_owned()));
    assert!(say(&mut server, 1, get("TRUE")).len() == 1);
    let never = Message::new("info-getnodeattr").with("key", "never").with("wait", "TRUE");
    assert!(say(&mut server, 1, never).is_empty());
    say(&mut server, 0, Message::new("finalize"));
    server.gone(0);
    assert_eq!(server.stuck(), None);
    server.gone(2);
    assert_eq!(server.stuck(), Some((1, 0)));
}

#[test]
fn attributes_names_and_the_rest() {
    let mut server = joined(2);
    let mut ask = |message: Message| sent(&say(&mut server, 0, message))[0].1.clone();
    let attribute = |key| Message::new("info-getjobattr").with("key", key);
    assert!(ask(attribute("PMI_process_mapping")).ends_with("value=(vector,(0,1,2));"));
    assert!(ask(attribute("universeSize")).ends_with("value=2;"));
    assert!(ask(attribute("nosuch")).ends_with("found=FALSE;"));
    assert_eq!(ask(Message::new("job-getid")), "cmd=job-getid-response;rc=0;jobid=job.1;");
    assert!(ask(Message::new("name-lookup").with("name", "n")).contains("rc=3;errmsg="));
    assert!(ask(Message::new("name-publish").with("name", "n").with("port", "p")).ends_with("rc=0;"));
    assert!(ask(Message::new("name-publish").with("name", "n").with("port", "p")).contains("rc=3"));
    assert!(ask(Message::new("name-lookup").with("name", "n")).contains("port=p;"));
    assert!(ask(Message::new("name-unpublish").with("name", "n")).ends_with("rc=0;"));
    assert!(ask(Message::new("spawn")).contains("rc=-1;errmsg="));
    assert!(ask(Message::new("nonsense")).contains("rc=14;errmsg="));
    let abort = say(&mut server, 1, Message::new("abort").with("isworld", "TRUE").with("msg", "no more"));
    assert_eq!(abort, [Output::Abort { rank: 1, code: None, message: "no more".into() }]);
}

#[test]
fn a_hostile_rank_is_reported_once() {
    for (bytes, wanted) in [
        (b"    14cmd=job-getid;\n".as_slice(), "does not keep to PMI:"),
        (b"cmd=init pmi_version=2\n  1 4cmd=job-getid;", "does not keep to PMI-2"),
        (b"cmd=init pmi_version=3 pmi_subversion=1\n", "PMI version 3"),
        (b"cmd=init\n", "without pmi_version"),
        (b"cmd=hello\n", "\"hello\" instead of init"),
        (b"cmd=init pmi_version=2\n    14cmd=job-getid;", "\"job-getid\" before fullinit"),
        (b"cmd=init pmi_version=2\n    25cmd=fullinit;pmirank=1000", "has no ';'"),
        (b"cmd=init pmi_version=2\n    23cmd=fullinit;pmirank=1;", "calls itself rank 1"),
        (b"cmd=init pmi_version=2\n999999cmd=", "announces 999999 bytes"),
        (b"cmd=init pmi_version=2\n    34cmd=fullinit;pmijobid=X;pmirank=0;", "belongs to the job \"X\""),
    ] {
        let mut server = Server::new(2, "job.1");
        let out = feed(&mut server, 0, bytes);
        assert!(broken(&out).contains(wanted), "{out:?} should say {wanted}");
        assert!(feed(&mut server, 0, b"anything").is_empty());
    }
    let again = |server: &mut Server, m| broken(&say(server, 0, m)).to_owned();
    let introduce = || Message::new("fullinit").with("pmirank", 0);
    assert!(again(&mut joined(2), introduce()).contains("a second time"));
    let mut server = joined(2);
    say(&mut server, 0, Message::new("kvs-fence"));
    assert!(again(&mut server, Message::new("kvs-fence")).contains("while it waited in a fence"));
    let mut server = joined(2);
    say(&mut server, 0, Message::new("finalize"));
    assert!(again(&mut server, Message::new("kvs-fence")).contains("after finalize"));
    // After a report nothing of it counts, not even its place in the fence.
    let mut server = joined(2);
    say(&mut server, 0, Message::new("kvs-fence"));
    say(&mut server, 0, Message::new("kvs-fence"));
    assert!(say(&mut server, 1, Message::new("kvs-fence")).is_empty());
    assert!(again(&mut joined(2), Message::new("kvs-put").with("key", "k")).contains("without value"));
}

#[test]
fn a_rank_cannot_fill_the_launcher() {
    const MOST: usize = 64 << 20;
    let mut server = joined(2);
    let mut put = |rank, key: &str, value: &str| {
        let put = Message::new("kvs-put").with("key", key).with("value", value);
        sent(&say(&mut server, rank, put))[0].1.clone()
    };
    // What it has put counts with its keys: 3 and 60,000 bytes.
    assert!(put(0, "one", &"x".repeat(60_000)).ends_with("rc=0;"));
    // All but the last 10 bytes, which no single message could bring.
    server.book(0, "most", &"x".repeat(MOST - 60_003 - 4 - 10)).expect("there is room");
    let mut put = |rank, key: &str, value: &str| {
        let put = Message::new("kvs-put").with("key", key).with("value", value);
        sent(&say(&mut server, rank, put))[0].1.clone()
    };
    let full = "cmd=kvs-put-response;rc=2;errmsg=this rank has put 64 MiB already;";
    assert_eq!(put(0, "four", "1234567"), full);
    assert!(put(0, "four", "123456").ends_with("rc=0;"));
    assert_eq!(put(0, "k", ""), full);
    assert!(put(1, "k", "").ends_with("rc=0;"), "another rank has room");
    let publish = Message::new("name-publish").with("name", "n").with("port", "p");
    assert!(sent(&say(&mut server, 0, publish))[0].1.contains("rc=2;errmsg="));
    let attribute = Message::new("info-putnodeattr").with("key", "n").with("value", "p");
    assert!(sent(&say(&mut server, 0, attribute))[0].1.contains("rc=2;errmsg="));
}

#[test]
fn a_thread_may_ask_while_another_waits_in_a_fence() {
    let mut server = joined(2);
    assert!(say(&mut server, 0, Message::new("kvs-fence").with("thrid", 1)).is_empty());
    let asked = sent(&say(&mut server, 0, Message::new("job-getid").with("thrid", 2)));
    assert_eq!(asked, [(0, "cmd=job-getid-response;thrid=2;rc=0;jobid=job.1;".to_owned())]);
    let out = say(&mut server, 0, Message::new("job-getid"));
    assert!(broken(&out).contains("\"job-getid\" while it waited in a fence"), "{out:?}");
    // PMI-1 has no threads.
    let mut server = Server::new(2, "job.1");
    let out = feed(&mut server, 0, b"cmd=init pmi_version=1\ncmd=barrier_in\ncmd=get_appnum thrid=1\n");
    assert!(broken(&out).contains("\"get_appnum\" while it waited in a fence"), "{out:?}");
}

#[test]
fn a_wait_is_stuck_only_for_a_rank_of_the_job() {
    let mut server = joined(2);
    say(&mut server, 0, Message::new("kvs-fence"));
    server.gone(2);
    assert_eq!(server.stuck(), None, "there is no such rank");
    server.gone(1);
    assert_eq!(server.stuck(), Some((0, 1)));
    // An attribute of this node is put by a rank of this server, and none has ended.
    let (children, has_parent, mapping) = (1, false, String::new());
    let mut server =
        Server::of_part(Part { job: "job.1".into(), size: 2, ranks: vec![0], children, has_parent, mapping });
    feed(&mut server, 0, b"cmd=init pmi_version=2\n");
    say(&mut server, 0, Message::new("fullinit").with("pmirank", 0));
    say(&mut server, 0, Message::new("info-getnodeattr").with("key", "k").with("wait", "true"));
    server.gone(1);
    assert_eq!(server.stuck(), None);
    // The same rank is counted once.
    let mut server = joined(3);
    say(&mut server, 1, Message::new("info-getnodeattr").with("key", "k").with("wait", "TRUE"));
    server.gone(0);
    server.gone(0);
    assert_eq!(server.stuck(), None);
    assert_eq!((server.phase(2), server.phase(3)), (Phase::Joined, Phase::Broken));
}

#[test]
fn a_value_that_fits_its_question_and_not_its_answer_is_refused() {
    let mut server = joined(1);
    // The answer has the words of its own around the value, which are longer than those of the question.
    let value = "x".repeat(wire::MAX_PAYLOAD - "cmd=kvs-put;key=k;value=;".len());
    let put = Message::new("kvs-put").with("key", "k").with("value", &value);
    assert!(sent(&say(&mut server, 0, put))[0].1.ends_with("rc=0;"));
    say(&mut server, 0, Message::new("kvs-fence"));
    let got = sent(&say(&mut server, 0, Message::new("kvs-get").with("key", "k")))[0].1.clone();
    assert!(got.starts_with("cmd=kvs-get-response;rc=-1;errmsg=a message of 65"), "{got}");
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        chunks in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                "cmd=(init|x) pmi_version=[123]\n".prop_map(String::into_bytes),
                "(cmd=(put|get|getbyidx|barrier_in|finalize|publish_name) kvsname=job.1 key=[ab] value=x idx=[0-9]|\
                 mcmd=spawn|totspawns=2|endcmd)\n".prop_map(String::into_bytes),
                ("(fullinit|finalize|kvs-put|kvs-get|kvs-fence|abort|job-getid|info-getnodeattr|name-lookup)",
                 proptest::collection::vec(("(key|value|pmirank|wait|name|thrid)", "[0-9a-z;]{0,9}"), 0..3))
                    .prop_map(|(command, pairs)| Message { command, pairs }.encode().unwrap_or_default()),
            ],
            0..20,
        ),
    ) {
        let mut server = Server::new(2, "job.1");
        let (mut inbox, mut out) = (Vec::new(), Vec::new());
        for chunk in chunks {
            inbox.extend_from_slice(&chunk);
            server.feed(0, &mut inbox, &mut out);
        }
        let reports = out.iter().filter(|o| matches!(o, Output::Broken { .. })).count();
        prop_assert!(reports <= 1);
        let empty = out.iter().any(|o| matches!(o, Output::Send { bytes, .. } if bytes.is_empty()));
        prop_assert!(!empty);
    }
}

#[test]
fn a_rank_may_end_from_within_a_fence() {
    let mut server = joined(3);
    assert!(say(&mut server, 0, Message::new("kvs-fence")).is_empty());
    assert!(say(&mut server, 1, Message::new("kvs-fence")).is_empty());
    let told = say(&mut server, 1, Message::new("gasworks-exit").with("code", 7));
    assert_eq!(told, [Output::Exits { rank: 1, code: 7, told: false }]);
    let end = say(&mut server, 1, Message::new("finalize"));
    assert_eq!(sent(&end), [(1, "cmd=finalize-response;rc=0;".to_owned())]);
    assert!(end.contains(&Output::Finalized { rank: 1 }));
    // The others wait for it in vain, and are not let go by the third.
    assert!(say(&mut server, 2, Message::new("kvs-fence")).is_empty());
    server.gone(1);
    assert_eq!(server.stuck(), Some((0, 1)));
    for code in ["0", "256", "-1", "x"] {
        let wrong = say(&mut joined(1), 0, Message::new("gasworks-exit").with("code", code));
        assert!(matches!(wrong[..], [Output::Broken { .. }]), "{code}: {wrong:?}");
    }
    for code in [1, 255] {
        let exit = Message::new("gasworks-exit").with("code", code).with("told", 1);
        assert_eq!(say(&mut joined(1), 0, exit), [Output::Exits { rank: 0, code, told: true }]);
    }
}

#[test]
fn a_key_is_put_once() {
    let mut server = joined(2);
    let put = |value| Message::new("kvs-put").with("key", "k").with("value", value);
    let fence = |server: &mut Server| (0..2).flat_map(|r| say(server, r, Message::new("kvs-fence"))).count();
    assert!(sent(&say(&mut server, 0, put("first")))[0].1.ends_with("rc=0;"));
    let refused = sent(&say(&mut server, 1, put("second")))[0].1.clone();
    assert!(refused.contains("rc=4;errmsg=duplicate key"), "{refused}");
    assert_eq!(fence(&mut server), 2);
    assert!(sent(&say(&mut server, 0, put("third")))[0].1.contains("rc=4;"));
    fence(&mut server);
    let got = sent(&say(&mut server, 1, Message::new("kvs-get").with("key", "k")))[0].1.clone();
    assert!(got.ends_with("value=first;"), "{got}");
    for key in ["", &"k".repeat(65)] {
        let put = Message::new("kvs-put").with("key", key).with("value", 1);
        assert!(sent(&say(&mut server, 0, put))[0].1.contains("rc=5;"));
    }
    for key in ["a", &"k".repeat(64)] {
        let put = Message::new("kvs-put").with("key", key).with("value", 1);
        assert!(sent(&say(&mut server, 0, put))[0].1.ends_with("rc=0;"));
    }
}

#[test]
fn a_thread_that_fences_is_named_in_the_answer() {
    let mut server = joined(1);
    let out = sent(&say(&mut server, 0, Message::new("kvs-fence").with("thrid", 9)));
    assert_eq!(out, [(0, "cmd=kvs-fence-response;thrid=9;rc=0;".to_owned())]);
}
