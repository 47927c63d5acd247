//! The client of PMI-1, the opening over a port, and the choice of a dialect, against scripted launchers.

use gasworks_bootstrap::Dialect;
use script::{Rank, message, script};

mod script;

const ONE: &[u8] = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
const TWO: &[u8] = b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
const REST: &[u8] = b"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n\
    cmd=my_kvsname kvsname=kvs_7\n\
    cmd=put_result rc=0 msg=success\n\
    cmd=barrier_out\n\
    cmd=get_result rc=0 msg=success value=1.Ynl0ZXM\n\
    cmd=finalize_ack\n";
/// What a rank then says.
const SAID: &str = "cmd=get_maxes\ncmd=get_my_kvsname\ncmd=put kvsname=kvs_7 key=key-1 value=1.Ynl0ZXM\n\
    cmd=barrier_in\ncmd=get kvsname=kvs_7 key=key-0\ncmd=finalize\n";

fn one() -> Rank {
    Rank { size: Some(2), ..Rank::speaking(Dialect::Pmi1) }
}

fn init(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Pmi1 => "cmd=init pmi_version=1 pmi_subversion=1\n",
        Dialect::Pmi2 => "cmd=init pmi_version=2 pmi_subversion=0\n",
    }
}

#[test]
fn a_conversation_in_pmi_1_goes_as_recorded() {
    let met = one().meet(&script(&[ONE, REST]), true);
    assert_eq!((met.outcome.as_str(), met.said), ("all well", init(Dialect::Pmi1).to_owned() + SAID));
    // Some servers add a return code to everything, some a tag to the answer of the barrier.
    let talkative = String::from_utf8_lossy(REST).replace("cmd=barrier_out", "cmd=barrier_out tag=0");
    let talkative = talkative.replace("maxes ", "maxes rc=0 ").replace("my_kvsname ", "my_kvsname rc=0 ");
    let talkative = talkative.replace("msg=success ", "").replace("finalize_ack", "finalize_ack rc=0");
    assert_eq!(one().meet(&script(&[ONE, talkative.as_bytes()]), true).outcome, "all well");
}

#[test]
fn every_bad_server_of_pmi_1_ends_in_one_clear_error() {
    let whole = script(&[ONE, REST]);
    for cut in 0..whole.len() {
        let error = one().meet(&whole[..cut], true).outcome;
        assert!(error.contains("the launcher closed the connection"), "cut at {cut}: {error}");
    }
    for cut in [0, 20, ONE.len(), whole.len() - 1] {
        let error = one().meet(&whole[..cut], false).outcome;
        assert!(
            error.starts_with("timed out: ")
                && error.ends_with("nothing came for 0 s (GASWORKS_BOOTSTRAP_TIMEOUT)"),
            "stopped at {cut}: {error}"
        );
    }
    let rest = String::from_utf8_lossy(REST);
    for (was, is, wanted) in [
        ("rc=0\n", "rc=-1\n", "answers rc=-1 and version 1 to PMI version 1: GASWORKS_BOOTSTRAP asks for it"),
        ("response_to_init", "response_to_fini", "came where response_to_init belongs"),
        ("cmd=maxes", "maxes", "\"maxes\" in the line"),
        ("cmd=maxes", "cmd=appnum", "\"appnum\" came where the answer to get_maxes belongs"),
        ("keylen_max=64", "keylen_max=32", "the launcher allows keylen_max=32 bytes, and 64 are needed"),
        ("vallen_max=1024", "vallen_max=256", "the launcher allows vallen_max=256 bytes, and 512 are needed"),
        ("vallen_max=1024", "vallen_max=many", "vallen_max=\"many\" is no whole number"),
        (" vallen_max=1024", "", "came without vallen_max"),
        (" kvsname=kvs_7", "", "ask for the job's name: \"my_kvsname\" came without kvsname"),
        (
            "put_result rc=0 msg=success",
            "put_result rc=-1 msg=no_room",
            "refuses the put of the key key-1, rc=-1: \"no_room\"",
        ),
        ("barrier_out", "barrier_out rc=1", "wait for all ranks: the launcher refuses the barrier_in, rc=1"),
        ("get_result rc=0", "get_result rc=-1", "refuses the get of the key key-0, rc=-1: \"success\""),
        ("get_result rc=0", "get_result rc=zero", "rc=\"zero\" is no whole number"),
        (" value=1.Ynl0ZXM", "", "\"get_result\" came without value"),
        ("value=1.Ynl0ZXM", "value=(null)", "damaged the value of the key key of rank 0: "),
        ("value=1.Ynl0ZXM", "value=1.Ynl0Z", "was cut"),
        ("finalize_ack", "finalize_ack rc=5", "end in good order: the launcher refuses the finalize, rc=5"),
    ] {
        let told = String::from_utf8_lossy(ONE) + &*rest;
        assert!(told.contains(was), "{was}");
        let error = one().meet(told.replacen(was, is, 1).as_bytes(), true).outcome;
        assert!(error.contains(wanted), "{error:?} should say {wanted:?}");
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
    let endless = script(&[ONE, &vec![b'x'; 2000]]);
    let error = one().meet(&endless, true).outcome;
    assert!(error.contains("does not end within 1024 bytes"), "{error}");
    // Nobody says how many ranks there are.
    let error = Rank::speaking(Dialect::Pmi1).meet(&whole, true).outcome;
    assert!(error.contains("and PMI_SIZE is not set"), "{error}");
    let error = Rank { size: Some(1), ..one() }.meet(&whole, true).outcome;
    assert!(error.contains("says rank 1 of 1"), "{error}");
}

#[test]
fn the_dialect_is_the_likely_one_or_the_one_that_is_spoken() {
    let refused = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n";
    // Whoever names the job is offered PMI-2, which gforker does not speak.
    let rank = || Rank { dialect: None, job: Some("j"), ..one() };
    let met = rank().meet(&script(&[refused, ONE, REST]), true);
    let both = [init(Dialect::Pmi2), init(Dialect::Pmi1), SAID].concat();
    assert_eq!((met.outcome.as_str(), met.said), ("all well", both));
    // Whoever does not is offered PMI-1.
    let met = Rank { job: None, ..rank() }.meet(&script(&[ONE, REST]), true);
    assert_eq!((met.outcome.as_str(), met.said), ("all well", init(Dialect::Pmi1).to_owned() + SAID));
    let refused_too = b"cmd=response_to_init rc=-1 pmi_version=2\n";
    let met = Rank { job: None, ..rank() }.meet(&script(&[refused_too, TWO]), true);
    assert!(met.said.contains("cmd=fullinit;pmirank=1;"), "{}", met.said);
    for (answers, wanted) in [
        (script(&[refused, refused]), "rc=-1 and version 1 to PMI version 1: and it had named that"),
        (script(&[refused, TWO]), "rc=0 and version 2 to PMI version 1: and it had named that"),
        (
            b"cmd=response_to_init rc=0 pmi_version=3\n".to_vec(),
            "rc=0 and version 3 to PMI version 2: ask it for PMI-2 (for srun",
        ),
        (
            b"cmd=response_to_init rc=-1 pmi_version=2\n".to_vec(),
            "rc=-1 and version 2 to PMI version 2: ask it",
        ),
    ] {
        let error = rank().meet(&answers, true).outcome;
        assert!(error.contains(wanted), "{error:?} should say {wanted:?}");
    }
}

#[test]
fn over_a_port_the_launcher_says_who_this_is() {
    let rank = |dialect| Rank { port: true, ..Rank::speaking(dialect) };
    let knock = "cmd=initack pmiid=1\n";
    // Hydra 4; and hydra 5, which says it twice.
    let four = b"cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n".as_slice();
    let five =
        b"cmd=initack rc=0 rank=1 size=2 appnum=0 debug=0\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n";
    for knocked in [four, five] {
        let met = rank(Dialect::Pmi1).meet(&script(&[knocked, ONE, REST]), true);
        let wanted = [knock, init(Dialect::Pmi1), SAID].concat();
        assert_eq!((met.outcome.as_str(), met.said), ("all well", wanted));
    }
    let fullinit = message("cmd=fullinit-response;rc=0;rank=1;size=2;appnum=0;");
    let met = rank(Dialect::Pmi2).meet(&script(&[five, TWO, &fullinit]), true);
    assert!(met.said.contains("cmd=job-getid;"), "{}", met.said);
    let other = message("cmd=fullinit-response;rc=0;rank=1;size=3;appnum=0;");
    let error = rank(Dialect::Pmi2).meet(&script(&[five, TWO, &other]), true).outcome;
    assert!(error.contains("says rank 1 of 3, its settings said rank 1 of 2"), "{error}");
    for cut in 0..four.len() {
        let error = rank(Dialect::Pmi1).meet(&four[..cut], true).outcome;
        assert!(error.contains("the launcher closed the connection"), "cut at {cut}: {error}");
    }
    for (answer, wanted) in [
        (b"cmd=initack rc=1\n".to_vec(), "does not know the rank 1 (PMI_ID): \"cmd=initack rc=1\""),
        (b"cmd=initack\ncmd=set size=-2\n".to_vec(), "\"cmd=set size=-2\" is no size"),
        (b"cmd=initack\ncmd=set rank=x\n".to_vec(), "rank=\"x\" is no whole number"),
        (b"cmd=barrier_out\n".to_vec(), "\"cmd=barrier_out\" came where the answer to initack belongs"),
        (b"cmd=set size=2\n".repeat(20), "does not end within 16 lines"),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "the launcher does not keep to PMI: "),
    ] {
        let error = rank(Dialect::Pmi1).meet(&answer, true).outcome;
        assert!(error.contains(wanted), "{error:?} should say {wanted:?}");
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
    let silent = rank(Dialect::Pmi1).meet(four.split_at(30).0, false).outcome;
    assert!(
        silent.starts_with("timed out: ") && silent.ends_with("(GASWORKS_BOOTSTRAP_TIMEOUT)"),
        "{silent}"
    );
}

#[test]
fn in_a_fence_of_three_a_rank_waits_for_both_others() {
    let joined = message("cmd=fullinit-response;rc=0;rank=1;size=3;appnum=0;");
    let (job, put) =
        (message("cmd=job-getid-response;jobid=kvs_7;rc=0;"), message("cmd=kvs-put-response;rc=0;"));
    let fence = message("cmd=kvs-fence-response;rc=0;");
    let token = message("cmd=kvs-get-response;found=TRUE;value=here;rc=0;");
    let value = message("cmd=kvs-get-response;found=TRUE;value=1.Ynl0ZXM;rc=0;");
    let end = message("cmd=finalize-response;rc=0;");
    let round = script(&[&put, &fence, &token]);
    let met = Rank::speaking(Dialect::Pmi2)
        .meet(&script(&[TWO, &joined, &job, &put, &round, &round, &value, &end]), true);
    assert_eq!(met.outcome, "all well");
    let asked: Vec<&str> = met.said.split(';').filter_map(|pair| pair.strip_prefix("key=fence+")).collect();
    // One before, and two before.
    assert_eq!(asked, ["1.1-1", "1.1-0", "1.2-1", "1.2-2"]);
}

#[test]
fn a_fence_that_holds_nobody_is_made_to() {
    // Hydra in PMI-2: the job's name is not what PMI_JOBID says, which a launcher further out has left.
    let joined = message("cmd=fullinit-response;rc=0;rank=1;size=2;appnum=0;");
    let (job, put) =
        (message("cmd=job-getid-response;jobid=kvs_7;rc=0;"), message("cmd=kvs-put-response;rc=0;"));
    let fence = message("cmd=kvs-fence-response;rc=0;");
    let token = message("cmd=kvs-get-response;found=TRUE;value=here;rc=0;");
    let value = message("cmd=kvs-get-response;found=TRUE;value=1.Ynl0ZXM;rc=0;");
    let end = message("cmd=finalize-response;rc=0;");
    let opening = script(&[TWO, &joined, &job, &put]);
    let rank = |job| Rank { job, ..Rank::speaking(Dialect::Pmi2) };
    for other in [None, Some("5.0")] {
        let met = rank(other).meet(&script(&[&opening, &put, &fence, &token, &value, &end]), true);
        assert_eq!(met.outcome, "all well");
        assert!(met.said.contains("kvs-put;key=fence+1.1-1;value=here;"), "{}", met.said);
        assert!(met.said.contains("kvs-get;jobid=kvs_7;srcid=0;key=fence+1.1-0;"), "{}", met.said);
    }
    let met = rank(Some("kvs_7")).meet(&script(&[&opening, &fence, &value, &end]), true);
    assert_eq!(met.outcome, "all well");
    assert!(!met.said.contains("fence+"), "{}", met.said);
}
