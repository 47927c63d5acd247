//! A job taken over through functions that the program gives: the ranks are threads, the functions share memory.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use gasworks_bootstrap::{Bootstrap, BootstrapError, Launched, Start, Takeover, Way};

/// What stands in for MPI.
struct World {
    barrier: Barrier,
    board: Mutex<Vec<Vec<u8>>>,
}

fn takeover(world: &Arc<World>, rank: u32, size: u32, spoil: fn(&mut [u8])) -> Takeover {
    let (gathers, holds) = (Arc::clone(world), Arc::clone(world));
    Takeover {
        rank,
        size,
        all_gather: Box::new(move |mine, all| {
            assert_eq!(all.len(), mine.len() * size as usize);
            gathers.board.lock().expect("not poisoned")[rank as usize] = mine.to_vec();
            gathers.barrier.wait();
            all.copy_from_slice(&gathers.board.lock().expect("not poisoned").concat());
            gathers.barrier.wait();
            spoil(all);
            Ok(())
        }),
        barrier: Box::new(move || {
            holds.barrier.wait();
            Ok(())
        }),
        abort: Box::new(|_, _| {}),
    }
}

fn join(takeover: Takeover) -> Result<Launched, BootstrapError> {
    Launched::join(Start { way: Way::Takeover(takeover), timeout: Duration::from_secs(20) })
}

fn world(size: u32) -> Arc<World> {
    Arc::new(World {
        barrier: Barrier::new(size as usize),
        board: Mutex::new(vec![Vec::new(); size as usize]),
    })
}

#[test]
fn a_job_that_runs_already_is_taken_over() {
    const SIZE: u32 = 3;
    let world = world(SIZE);
    let names: Vec<String> = std::thread::scope(|scope| {
        let start = |rank| {
            let takeover = takeover(&world, rank, SIZE, |_| {});
            scope.spawn(move || {
                let job = join(takeover).expect("joined");
                assert_eq!((job.rank(), job.size()), (rank, SIZE));
                for len in [0, 1, 384, 5000] {
                    let bytes = |r: u32| (0..len * (r + 1)).map(|i| (i * 7 + r) as u8).collect::<Vec<u8>>();
                    let wanted: Vec<_> = (0..SIZE).map(bytes).collect();
                    assert_eq!(
                        job.exchange(&format!("gathered{len}"), &bytes(rank)).expect("exchanged").to_vec(),
                        wanted
                    );
                    job.put(&format!("put{len}"), &bytes(rank)).expect("put");
                    job.fence().expect("passed");
                    let got = (0..SIZE).map(|r| job.get(r, &format!("put{len}")).expect("there"));
                    assert_eq!(got.collect::<Vec<_>>(), wanted);
                }
                job.barrier().expect("passed");
                let absent = job.get(1, "nothing").expect_err("absent").to_string();
                assert_eq!(absent, "get a value: rank 1 has not put the key nothing-1");
                assert!(job.host_hint().expect("answered").is_none());
                job.finalize().expect("ended");
                job.job().to_owned()
            })
        };
        let ranks: Vec<_> = (0..SIZE).map(start).collect();
        ranks.into_iter().map(|rank| rank.join().expect("joined")).collect()
    });
    assert!(names[0].starts_with("taken-") && names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn functions_that_do_not_do_what_they_should_are_noticed() {
    let refused =
        |rank, size, spoil| join(takeover(&world(1), rank, size, spoil)).expect_err("refused").to_string();
    assert!(refused(0, 0, |_| {}).contains("the launcher says rank 0 of 0"));
    assert!(refused(1, 1, |_| {}).contains("the launcher says rank 1 of 1"));
    assert!(refused(0, 1, |all| all.fill(9)).contains("what came at place 0 of 1 is no rank's"));
    let mut broken = takeover(&world(1), 0, 1, |_| {});
    broken.all_gather = Box::new(|_, _| Err("MPI_Allgather returned 15".to_owned()));
    let error = join(broken).expect_err("refused").to_string();
    assert_eq!(error, "gather from all ranks: MPI_Allgather returned 15");
    let mut stuck = takeover(&world(1), 0, 1, |_| {});
    stuck.barrier = Box::new(|| Err("MPI_Barrier returned 16".to_owned()));
    let error = join(stuck).expect("joined").barrier().expect_err("refused").to_string();
    assert_eq!(error, "wait for all ranks: MPI_Barrier returned 16");
}
