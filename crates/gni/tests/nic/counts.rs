//! What the NIC counted in a job: which posts and registrations operations of the transport take.

use crate::job::{CHIP, CHIPS, counted, suite};
use anyhow::{Result, ensure};
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{Fixture, release};
use gasworks_testkit::{Case, Log};

pub fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new("posts/messages", messages), Case::new("posts/sources", sources)];
    for ranks in [2, 4, 8] {
        cases.push(Case::new(format!("registrations/{ranks}"), move |log| registrations(log, ranks)));
    }
    // A case in which each of two ranks fetches 96 words of 64 bits and looks at the result, the first rank twice; and adds to 96
    // words of 32 bits, which Gemini's NIC cannot do.
    for (chip, posts) in [("aries", [96 + 1 + 96, 96 + 2 + 96]), ("gemini", [96 + 1, 96 + 2])] {
        cases.push(Case::new(format!("atomics/{chip}"), move |log| atomics(log, chip, posts)));
    }
    for chip in CHIPS {
        for (cache, udreg) in [("own", "0"), ("udreg", "1")] {
            cases.push(Case::new(format!("registers-once/{chip}/{cache}"), move |log| {
                registers_once(log, chip, udreg)
            }));
        }
    }
    cases
}

/// Ranks that talk do so by mailboxes.
fn messages(log: &Log) -> Result<()> {
    /// Requests that go before the mailbox has come: no more than may be under way.
    const FETCHED: u64 = 64;
    for counts in counted(log, suite(2, "seq")?.words("--case flow"), 2)? {
        let posts = |kind: &str| counts["posted"][kind]["posts"].as_u64().unwrap_or(0);
        let (messages, fetched) = (posts("GNI_POST_FMA_PUT_W_SYNCFLAG"), posts("GNI_POST_FMA_GET"));
        ensure!(messages > 1000 && fetched <= FETCHED, "{messages} messages by mailboxes, {fetched} fetched");
    }
    Ok(())
}

/// No event says that a source may be reused where nobody waits for that.
fn sources(log: &Log) -> Result<()> {
    for counts in counted(log, suite(2, "seq")?.words("--case rma.blocking"), 2)? {
        let events = &counts["events"];
        ensure!(events["global"].is_object() && events["local"].is_null(), "events of sources: {events}");
    }
    Ok(())
}

/// What a rank registers before the program does anything does not grow with the ranks: the memory of messages, and the
/// segment.
fn registrations(log: &Log, ranks: usize) -> Result<()> {
    const WANTED: u64 = 2;
    for counts in counted(log, suite(ranks, "seq")?.words("--silent"), ranks)? {
        let most = counts["registrations"]["most"].as_u64();
        ensure!(most == Some(WANTED), "{most:?} registrations at once, not {WANTED}");
    }
    Ok(())
}

/// The NIC does the atomic operations that it can do, each by one post, and the processor does the others.
fn atomics(log: &Log, chip: &str, wanted: [u64; 2]) -> Result<()> {
    let suite = suite(2, "seq")?.words("--case atomic.none-is-lost").env(CHIP, chip);
    let counts = counted(log, suite, 2)?;
    let posts = counts.iter().map(|counts| counts["posted"]["GNI_POST_AMO"]["posts"].as_u64().unwrap_or(0));
    let mut posts: Vec<_> = posts.collect();
    posts.sort_unstable();
    ensure!(posts == wanted, "{posts:?} in place of {wanted:?} atomic operations by the NIC");
    Ok(())
}

/// Memory that is put from again and again is registered once, by either cache of registrations.
fn registers_once(log: &Log, chip: &str, udreg: &str) -> Result<()> {
    /// The messages' memory, the segment, and all that the bench puts from and gets to.
    const MAX: u64 = 16;
    let bench = dressed(release()?.gasrun(2, "gasperf")?, &Fixture::Nic.get()?);
    let bench = bench.words("put-latency --bytes 64K --blocks 60");
    let counts = counted(log, bench.env(CHIP, chip).env("GASNET_USE_UDREG", udreg), 2)?;
    let posts = counts.iter().filter_map(|rank| rank["posted"]["GNI_POST_RDMA_PUT"]["posts"].as_u64()).max();
    let made = counts.iter().filter_map(|rank| rank["registrations"]["made"].as_u64()).max();
    let is_so = posts.is_some_and(|posts| posts > 4 * MAX) && made.is_some_and(|made| made <= MAX);
    ensure!(is_so, "{made:?} registrations for {posts:?} puts");
    Ok(())
}
