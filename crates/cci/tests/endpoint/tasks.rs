//! Operations as futures.

use super::*;
use gasworks_cci::endpoint::{CallError, RmaKind, RmaRights};
use gasworks_cci::futures::{AsyncEndpoint, OperationError};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake};

/// An executor of one task: it sleeps on descriptors, and polls when it was woken.
fn run<T>(ends: &[&AsyncEndpoint], future: impl Future<Output = T>) -> T {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    struct Woken(Sender<()>);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
    let (woken, wakes) = channel();
    let waker = Arc::new(Woken(woken)).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        while wakes.try_recv().is_err() {
            let mut fds: Vec<_> =
                ends.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
            assert!(poll(&mut fds, PollTimeout::from(60_000u16)).expect("polled") > 0, "nothing happens");
            ends.iter().for_each(|end| end.turn().expect("no error"));
        }
    }
}

/// Both futures' results, each polled whenever the task is.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other, mut done) = (pin!(one), pin!(other), (None, None));
    std::future::poll_fn(move |context| {
        if done.0.is_none()
            && let Poll::Ready(found) = one.as_mut().poll(context)
        {
            done.0 = Some(found);
        }
        if done.1.is_none()
            && let Poll::Ready(found) = other.as_mut().poll(context)
        {
            done.1 = Some(found);
        }
        match (done.0.is_some(), done.1.is_some()) {
            (true, true) => done.0.take().zip(done.1.take()).map_or(Poll::Pending, Poll::Ready),
            _ => Poll::Pending,
        }
    })
    .await
}

const ORDERED: Attribute = Attribute::ReliableOrdered;

#[test]
fn tasks_connect_talk_and_move_bytes() {
    let directory = directory();
    let [client, server] = [(); 2].map(|()| {
        let config = EndpointConfig { send_buffers: 2, ..config(&directory) };
        AsyncEndpoint::create(config).expect("an endpoint")
    });
    let uri = server.uri();
    run(&[&client, &server], async {
        let accept = async {
            let request = server.request().await.expect("a request");
            assert_eq!(&*request.data, b"hello");
            server.accept(request).await.expect("accepted")
        };
        let (here, there) = both(client.connect(&uri, b"hello", ORDERED, None), accept).await;
        let here = here.expect("connected");
        // More at once than the endpoint admits: the third waits for room.
        let send = async {
            let (one, (two, three)) =
                both(here.send(&[b"one"]), both(here.send(&[b"two"]), here.send(&[b"th", b"ree"]))).await;
            one.and(two).and(three).expect("delivered");
        };
        let receive = async {
            for text in [&b"one"[..], b"two", b"three"] {
                assert_eq!(&*there.receive().await.expect("no error").expect("a message"), text);
            }
        };
        both(send, receive).await;
        let (local, memory) = client.with(|end| end.allocate(100, RmaRights::empty())).expect("memory");
        let (remote, peers) = server.with(|end| end.allocate(100, RmaRights::WRITE)).expect("memory");
        memory.bytes().write(&[7; 100]);
        here.rma(RmaKind::Write, (local, 0), (remote, 10), 90, None).await.expect("written");
        let mut found = [0; 100];
        peers.bytes().read(&mut found);
        assert_eq!(found, std::array::from_fn(|at| if at < 10 { 0 } else { 7 }));
        let refused = here.rma(RmaKind::Read, (local, 0), (remote, 0), 1, None).await.expect_err("refused");
        assert!(matches!(refused, OperationError::Call(CallError::Operation { .. })), "{refused}");
        // Who drops a connection closes it.
        drop(here);
        assert!(there.receive().await.expect("no error").is_none());
        let failed = there.send(&[b"x"]).await.expect_err("closed");
        assert!(matches!(failed, OperationError::Call(CallError::Disconnected)), "{failed}");
    });
    assert_eq!(client.with(|end| end.connections()), 0);
}

#[test]
fn a_task_learns_that_it_was_refused_or_that_it_took_too_long() {
    let directory = directory();
    let [client, server] = [(); 2].map(|()| AsyncEndpoint::create(config(&directory)).expect("an endpoint"));
    let uri = server.uri();
    run(&[&client, &server], async {
        let reject = async { server.reject(&server.request().await.expect("a request")).expect("rejected") };
        let (refused, ()) = both(client.connect(&uri, b"", ORDERED, None), reject).await;
        assert!(matches!(refused, Err(OperationError::Failed(Failure::Refused))));
    });
    let timeout = Some(Duration::from_millis(50));
    let late = run(&[&client], client.connect(&uri, b"", ORDERED, timeout));
    assert!(matches!(late, Err(OperationError::Failed(Failure::TimedOut))));
}
