//! PMI-1, alone and beside PMI-2, and the dialogue at the port.

use super::*;
use crate::server::port::{Admission, Door};

fn line(server: &mut Server, rank: u32, text: &str) -> Vec<Output> {
    feed(server, rank, format!("{text}\n").as_bytes())
}

/// The one answer to a line, without its end.
#[track_caller]
fn ask(server: &mut Server, rank: u32, text: &str) -> String {
    let out = line(server, rank, text);
    match &out[..] {
        [Output::Send { rank: to, bytes }, ..] if *to == rank => {
            String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned()
        }
        other => panic!("{text}: {other:?}"),
    }
}

fn greeted(size: u32) -> Server {
    let mut server = Server::new(size, "job.1");
    for rank in 0..size {
        let out = line(&mut server, rank, "cmd=init pmi_version=1 pmi_subversion=1");
        assert!(out.contains(&Output::Joined { rank }));
    }
    server
}

#[test]
fn a_conversation_as_mpich_has_it() {
    let mut server = Server::new(2, "job.1");
    let hello = ask(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1");
    assert_eq!(hello, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    ask(&mut server, 1, "cmd=init pmi_version=1 pmi_subversion=1");
    for (question, answer) in [
        ("cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=926"),
        ("cmd=get_appnum", "cmd=appnum rc=0 appnum=0"),
        ("cmd=get_universe_size", "cmd=universe_size rc=0 size=2"),
        ("cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=job.1"),
        (
            "cmd=get kvsname=job.1 key=PMI_process_mapping",
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))",
        ),
        ("cmd=put kvsname=job.1 key=k value=a=b;c", "cmd=put_result rc=0 msg=success"),
        ("cmd=get kvsname=job.1 key=k", "cmd=get_result rc=-1 msg=key_k_not_found value=unknown"),
        ("cmd=get kvsname=other key=k", "cmd=get_result rc=-1 msg=this_kvs_is_not_known"),
        ("cmd=create_kvs", "cmd=newkvs rc=-1 msg=this_launcher_starts_one_job_and_joins_none"),
        ("cmd=destroy_kvs", "cmd=kvs_destroyed rc=-1 msg=this_launcher_starts_one_job_and_joins_none"),
        ("cmd=lookup_name service=s", "cmd=lookup_result rc=-1 msg=this_name_is_not_published"),
        ("cmd=publish_name service=s port=p#1", "cmd=publish_result rc=0 msg=success"),
        ("cmd=publish_name service=s port=p#2", "cmd=publish_result rc=-1 msg=this_name_is_published"),
        ("cmd=lookup_name service=s", "cmd=lookup_result rc=0 msg=success port=p#1"),
        ("cmd=unpublish_name service=s", "cmd=unpublish_result rc=0 msg=success"),
    ] {
        assert_eq!(ask(&mut server, 0, question), answer);
    }
    assert!(line(&mut server, 0, "cmd=barrier_in").is_empty());
    let out = line(&mut server, 1, "cmd=barrier_in");
    let released = |rank| Output::Send { rank, bytes: b"cmd=barrier_out rc=0\n".to_vec() };
    assert_eq!(out, [released(0), released(1)]);
    assert_eq!(
        ask(&mut server, 1, "cmd=get kvsname=job.1 key=k"),
        "cmd=get_result rc=0 msg=success value=a=b;c"
    );
    assert_eq!(
        ask(&mut server, 1, "cmd=getbyidx kvsname=job.1 idx=0"),
        "cmd=getbyidx_results rc=0 nextidx=1 key=k val=a=b;c"
    );
    for beyond in ["1", "-1", "9223372036854775807"] {
        let answer = ask(&mut server, 1, &format!("cmd=getbyidx kvsname=job.1 idx={beyond}"));
        assert_eq!(answer, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals");
    }
    assert!(ask(&mut server, 1, "cmd=put kvsname=job.1 key=k value=2").contains("rc=-1 msg=duplicate_key_"));
    assert_eq!(ask(&mut server, 1, "cmd=finalize"), "cmd=finalize_ack rc=0");
    assert_eq!(server.phase(1), Phase::Finalized);
}

#[test]
fn aborts_carry_their_code() {
    for (text, code) in [
        ("cmd=abort exitcode=5", Some(5)),
        ("cmd=abort exitcode=-1", Some(-1)),
        ("cmd=abort exitcode=99999999999", None),
        ("cmd=abort", None),
    ] {
        let out = line(&mut greeted(2), 1, text);
        assert_eq!(out, [Output::Abort { rank: 1, code, message: String::new() }]);
    }
}

#[test]
fn a_spawn_is_heard_to_its_end_and_refused_once() {
    let mut server = greeted(1);
    let one = |i| {
        format!(
            "mcmd=spawn\nnprocs=2\nexecname=/bin/x\ntotspawns=2\nspawnssofar={i}\nargcnt=1\narg1=a b=c\nendcmd\n"
        )
    };
    let whole = one(1) + &one(2) + "cmd=get_appnum\n";
    let wanted =
        "cmd=spawn_result rc=-1 msg=this_launcher_starts_one_job_and_joins_none\ncmd=appnum rc=0 appnum=0\n";
    // Wherever it is cut.
    for cut in 0..whole.len() {
        let (mut inbox, mut out) = (whole.as_bytes()[..cut].to_vec(), Vec::new());
        server.feed(0, &mut inbox, &mut out);
        inbox.extend_from_slice(&whole.as_bytes()[cut..]);
        server.feed(0, &mut inbox, &mut out);
        let said: String = out
            .iter()
            .map(|o| match o {
                Output::Send { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, wanted, "cut at {cut}");
    }
    assert!(ask(&mut server, 0, "mcmd=spawn\nendcmd").starts_with("cmd=spawn_result rc=-1"));
}

#[test]
fn a_hostile_rank_of_pmi_1_is_reported_once() {
    let hello = "cmd=init pmi_version=1 pmi_subversion=1\n";
    let long = format!("cmd=put kvsname=job.1 key=k value={}\n", "x".repeat(1024));
    let endless = "x".repeat(1100);
    let spawn = format!("mcmd=spawn\n{}", "a=b\n".repeat(5000));
    for (text, wanted) in [
        ("cmd=init pmi_version=1\n", "a second time"),
        ("cmd=nonsense\n", "\"nonsense\", which PMI-1 does not have"),
        ("hello\n", "does not keep to PMI-1"),
        ("mcmd=launch\nendcmd\n", "is no command that has many lines"),
        ("cmd=put kvsname=job.1 value=x\n", "without key"),
        ("cmd=getbyidx kvsname=job.1 idx=x\n", "no whole number"),
        ("    14cmd=job-getid;\n", "does not keep to PMI-1"),
        ("cmd=barrier_in\ncmd=barrier_in\n", "while it waited in a fence"),
        (&long, "longer than 1024"),
        (&endless, "does not end within 1024"),
        (&format!("mcmd=spawn\n{endless}"), "does not end within 1024"),
        (&spawn, "more than 4096 lines"),
    ] {
        let mut server = Server::new(2, "job.1");
        let out = feed(&mut server, 0, format!("{hello}{text}").as_bytes());
        assert!(broken(&out).contains(wanted), "{out:?} should say {wanted}");
        assert!(feed(&mut server, 0, b"anything\n").is_empty());
    }
    let mut server = greeted(1);
    line(&mut server, 0, "cmd=finalize");
    assert!(broken(&line(&mut server, 0, "cmd=barrier_in")).contains("after finalize"));
}

#[test]
fn what_is_announced_as_the_longest_value_passes_both_ways() {
    let mut server = greeted(1);
    let longest: usize =
        ask(&mut server, 0, "cmd=get_maxes").rsplit_once('=').expect("a number").1.parse().expect("a number");
    let (key, value) = ("k".repeat(64), "v".repeat(longest));
    assert!(ask(&mut server, 0, &format!("cmd=put kvsname=job.1 key={key} value={value}")).contains("rc=0"));
    ask(&mut server, 0, "cmd=barrier_in");
    let got = ask(&mut server, 0, &format!("cmd=get kvsname=job.1 key={key}"));
    assert!(got.ends_with(&value) && got.len() < wire::MAX_LINE);
}

#[test]
fn both_dialects_share_one_job() {
    let mut server = Server::new(2, "job.1");
    line(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1");
    feed(&mut server, 1, b"cmd=init pmi_version=2 pmi_subversion=0\n");
    say(&mut server, 1, Message::new("fullinit").with("pmirank", 1));
    for (key, value) in [("plain", "x"), ("words", "a b"), ("long", &"y".repeat(2000))] {
        say(&mut server, 1, Message::new("kvs-put").with("key", key).with("value", value));
    }
    say(&mut server, 1, Message::new("name-publish").with("name", "n").with("port", "two words"));
    assert!(line(&mut server, 0, "cmd=barrier_in").is_empty());
    assert_eq!(say(&mut server, 1, Message::new("kvs-fence")).len(), 2);
    let mut get = |key| ask(&mut server, 0, &format!("cmd=get kvsname=job.1 key={key}"));
    assert!(get("plain").ends_with("value=x"));
    for key in ["words", "long"] {
        assert_eq!(get(key), "cmd=get_result rc=-1 msg=the_value_does_not_fit_a_line");
    }
    assert!(ask(&mut server, 0, "cmd=lookup_name service=n").ends_with("does_not_fit_a_line"));
}

#[test]
fn an_answer_has_at_most_1024_bytes_with_its_end() {
    let mut server = Server::new(2, "job.1");
    line(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1");
    feed(&mut server, 1, b"cmd=init pmi_version=2 pmi_subversion=0\n");
    say(&mut server, 1, Message::new("fullinit").with("pmirank", 1));
    let most = 1024 - "cmd=get_result rc=0 msg=success value=\n".len();
    for (key, length) in [("below", most - 1), ("most", most), ("beyond", most + 1)] {
        let value = "v".repeat(length);
        say(&mut server, 1, Message::new("kvs-put").with("key", key).with("value", value));
    }
    line(&mut server, 0, "cmd=barrier_in");
    say(&mut server, 1, Message::new("kvs-fence"));
    let mut get = |key: &str| ask(&mut server, 0, &format!("cmd=get kvsname=job.1 key={key}"));
    assert_eq!((get("below").len(), get("most").len()), (1022, 1023));
    assert_eq!(get("beyond"), "cmd=get_result rc=-1 msg=the_value_does_not_fit_a_line");
}

#[test]
fn lines_of_a_long_command_are_counted_and_measured() {
    let spawn = |lines: usize| format!("mcmd=spawn\n{}endcmd", "a=b\n".repeat(lines - 2));
    let mut server = greeted(1);
    assert!(ask(&mut server, 0, &spawn(4096)).starts_with("cmd=spawn_result rc=-1"));
    let out = line(&mut greeted(1), 0, &spawn(4097));
    assert!(broken(&out).contains("a command has more than 4096 lines"), "{out:?}");
    let long = |length: usize| format!("mcmd=spawn\n{}", "x".repeat(length));
    assert!(feed(&mut server, 0, long(1024).as_bytes()).is_empty());
    let mut server = greeted(1);
    let out = line(&mut server, 0, &format!("{}\nendcmd", long(1024)));
    assert!(matches!(out[..], [Output::Send { rank: 0, .. }]), "{out:?}");
    let out = line(&mut server, 0, &format!("{}\nendcmd", long(1025)));
    assert!(broken(&out).contains("(1025 bytes) is longer than 1024 bytes"), "{out:?}");
    let out = feed(&mut greeted(1), 0, long(1025).as_bytes());
    assert!(broken(&out).contains("(1025 bytes) does not end within 1024 bytes"), "{out:?}");
}

#[test]
fn each_expected_rank_is_let_in_once() {
    let mut door = Door::new(8, [2, 3]);
    let mut judge = |text: &str| door.judge(&mut text.as_bytes().to_vec());
    assert_eq!(judge("cmd=initack pmi"), Admission::Wait);
    assert_eq!(
        judge("cmd=initack pmiid=3\n"),
        Admission::Admit {
            rank: 3,
            answer: b"cmd=initack rc=0\ncmd=set size=8\ncmd=set rank=3\ncmd=set debug=0\n".to_vec()
        }
    );
    for (text, wanted) in [
        ("cmd=initack pmiid=3\n", "rank 3, which has come already"),
        ("cmd=initack pmiid=1\n", "rank 1, which is not expected here"),
        ("cmd=initack pmiid=-1\n", "rank -1, which is not expected here"),
        ("cmd=initack pmiid=99999999999\n", "is not expected here"),
        ("cmd=initack\n", "without pmiid"),
        ("cmd=init pmi_version=1\n", "\"init\" instead of initack"),
        ("GET / HTTP/1.1\r\n", "has no '='"),
        (&"x".repeat(2000), "does not end within"),
    ] {
        match judge(text) {
            Admission::Refuse { why } => assert!(why.contains(wanted), "{why} should say {wanted}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(judge("cmd=initack pmiid=2\nrest"), Admission::Admit { rank: 2, .. }));
}
