//! The states of a connection, from the request to the end: a table of transitions, without sockets, clocks or memory.
//!
//! Datagrams may be lost, doubled and late. Each side sends its own again when it has waited for too long, and answers a doubled one with what it said
//! before. The client's request has a nonce, by which the server knows it again.
//!
//! ```text
//! client:  Requested --reply--> Ready          server:  Offered --accept--> Accepting --ack or data--> Ready
//!          Requested --refusal, deadline--> Over         Offered --reject--> Rejected --expiry--> Over
//! both:    Ready --peer gone--> Broken --disconnect--> Over         Ready --disconnect--> Closing --drained, deadline--> Over
//! ```

/// Where a connection is, on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// Client: the request was sent.
    Requested,
    /// Server: the program has been given the request.
    Offered,
    /// Server: the program has accepted, and the reply was sent.
    Accepting,
    /// Server: the program has rejected. Kept for some time, to refuse a doubled request.
    Rejected,
    /// Messages and transfers go both ways.
    Ready,
    /// The peer is gone; the program has not disconnected yet.
    Broken,
    /// The program has disconnected; the peer may still read from this side's memory.
    Closing,
    /// Nothing is left of it but its id, which is given out again later.
    Over,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionEvent {
    /// The request has come once more (server).
    Request,
    /// The peer has accepted (client).
    Reply,
    /// The peer has rejected, or there is nobody at that address (client).
    Refusal,
    /// The peer has the reply (server).
    Ack,
    /// A message or a transfer of the peer's has come, which so has the reply (server).
    Data,
    /// The program accepts (server).
    Accept,
    /// The program rejects (server).
    Reject,
    /// No answer came for as long as one is waited for before a datagram is sent again.
    Retransmit,
    /// No answer came for as long as the program wants to wait; or a rejected request is not remembered any more.
    Deadline,
    /// The peer has ended or has closed the connection.
    PeerGone,
    /// The program disconnects.
    Disconnect,
    /// Nobody uses this side's memory any more.
    Drained,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionAction {
    /// Send the request (client).
    SendRequest,
    /// Send that the program has accepted, and where this side's memory is (server).
    SendReply,
    /// Send that the program has rejected (server).
    SendRefusal,
    /// Send that the reply has come (client).
    SendAck,
    /// Map the peer's memory and tell the program that it is connected (client).
    Connected,
    /// Tell the program that the connection was refused (client).
    Refused,
    /// Tell the program that nobody answered in time (client).
    TimedOut,
    /// Tell the program that the connection that it accepted is ready (server).
    Accepted,
    /// Tell the program that the client of a connection that it accepted is gone (server).
    AcceptFailed,
    /// Fail what the program has under way on it.
    Abort,
    /// Tell the peer that this side has closed it.
    Close,
    /// Give back memory and descriptors, and keep the id for some time.
    Release,
}

use ConnectionAction as Do;
use ConnectionEvent as On;
use ConnectionState as In;

impl ConnectionState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        In::Requested,
        In::Offered,
        In::Accepting,
        In::Rejected,
        In::Ready,
        In::Broken,
        In::Closing,
        In::Over,
    ];

    /// The state after an event, and what is to be done, in order. What means nothing in a state changes nothing.
    pub fn on(self, event: ConnectionEvent) -> (Self, &'static [ConnectionAction]) {
        match (self, event) {
            (In::Requested, On::Reply) => (In::Ready, &[Do::SendAck, Do::Connected]),
            (In::Requested, On::Refusal | On::PeerGone) => (In::Over, &[Do::Refused, Do::Release]),
            (In::Requested, On::Deadline) => (In::Over, &[Do::TimedOut, Do::Release]),
            (In::Requested, On::Retransmit) => (In::Requested, &[Do::SendRequest]),

            (In::Offered, On::Accept) => (In::Accepting, &[Do::SendReply]),
            (In::Offered, On::Reject) => (In::Rejected, &[Do::SendRefusal]),

            (In::Accepting, On::Request | On::Retransmit) => (In::Accepting, &[Do::SendReply]),
            (In::Accepting, On::Ack | On::Data) => (In::Ready, &[Do::Accepted]),
            // The client may have the reply, and take itself for connected.
            (In::Accepting, On::Deadline) => {
                (In::Over, &[Do::AcceptFailed, Do::Abort, Do::Close, Do::Release])
            }
            (In::Accepting, On::PeerGone) => (In::Over, &[Do::AcceptFailed, Do::Abort, Do::Release]),

            (In::Rejected, On::Request) => (In::Rejected, &[Do::SendRefusal]),
            (In::Rejected, On::Deadline) => (In::Over, &[Do::Release]),

            // The reply or its acknowledgement was lost.
            (In::Ready, On::Request) => (In::Ready, &[Do::SendReply]),
            (In::Ready, On::Reply) => (In::Ready, &[Do::SendAck]),
            (In::Ready, On::PeerGone) => (In::Broken, &[Do::Abort]),
            (In::Ready, On::Disconnect) => (In::Closing, &[Do::Abort, Do::Close]),

            (In::Broken, On::Disconnect) => (In::Over, &[Do::Release]),

            (In::Closing, On::Drained | On::PeerGone | On::Deadline) => (In::Over, &[Do::Release]),

            (state, _) => (state, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVENTS: [ConnectionEvent; 12] = [
        On::Request,
        On::Reply,
        On::Refusal,
        On::Ack,
        On::Data,
        On::Accept,
        On::Reject,
        On::Retransmit,
        On::Deadline,
        On::PeerGone,
        On::Disconnect,
        On::Drained,
    ];

    /// What each state does for each event, in the order of `EVENTS`: a letter for the state after it and one for each action, a dot where nothing happens.
    #[test]
    fn every_state_has_an_answer_to_every_event() {
        let state_letter =
            |state: ConnectionState| b"QFARyBCO"[In::ALL.iter().position(|of| *of == state).expect("one")];
        let action_letter = |action: &ConnectionAction| match action {
            Do::SendRequest => b'q',
            Do::SendReply => b'p',
            Do::SendRefusal => b'n',
            Do::SendAck => b'k',
            Do::Connected => b'+',
            Do::Refused => b'-',
            Do::TimedOut => b't',
            Do::Accepted => b'a',
            Do::AcceptFailed => b'f',
            Do::Abort => b'x',
            Do::Close => b'c',
            Do::Release => b'r',
        };
        let rows = [
            (In::Requested, ". yk+ O-r . . . . Qq Otr O-r . ."),
            (In::Offered, ". . . . . Ap Rn . . . . ."),
            (In::Accepting, "Ap . . ya ya . . Ap Ofxcr Ofxr . ."),
            (In::Rejected, "Rn . . . . . . . Or . . ."),
            (In::Ready, "yp yk . . . . . . . Bx Cxc ."),
            (In::Broken, ". . . . . . . . . . Or ."),
            (In::Closing, ". . . . . . . . Or Or . Or"),
            (In::Over, ". . . . . . . . . . . ."),
        ];
        for (state, wanted) in rows {
            let found = EVENTS.map(|event| match state.on(event) {
                (after, []) => {
                    assert_eq!(after, state, "{state:?} changes on {event:?} and nothing is done");
                    ".".to_owned()
                }
                (after, actions) => std::iter::once(state_letter(after))
                    .chain(actions.iter().map(action_letter))
                    .map(char::from)
                    .collect(),
            });
            assert_eq!(found.join(" "), wanted, "{state:?}");
        }
    }

    /// A client and a server, with the datagrams that are under way between them.
    #[derive(Debug)]
    struct Pair {
        client: ConnectionState,
        server: Option<ConnectionState>,
        to_server: Vec<ConnectionEvent>,
        to_client: Vec<ConnectionEvent>,
        told: Vec<ConnectionAction>,
    }

    impl Pair {
        fn client(&mut self, event: ConnectionEvent) {
            let (state, actions) = self.client.on(event);
            self.client = state;
            for action in actions {
                match action {
                    Do::SendRequest => self.to_server.push(On::Request),
                    Do::SendAck => self.to_server.push(On::Ack),
                    other => self.told.push(*other),
                }
            }
        }

        fn server(&mut self, event: ConnectionEvent) {
            let Some(state) = self.server else {
                // The first request makes the connection; anything else for an unknown one is dropped.
                self.server = (event == On::Request).then_some(In::Offered);
                return;
            };
            let (state, actions) = state.on(event);
            self.server = Some(state);
            for action in actions {
                match action {
                    Do::SendReply => self.to_client.push(On::Reply),
                    Do::SendRefusal => self.to_client.push(On::Refusal),
                    other => self.told.push(*other),
                }
            }
        }
    }

    proptest! {
        /// Over a network that loses, doubles and reorders datagrams, both sides are ready in the end, or the client is told once that it was refused.
        #[test]
        fn both_sides_agree_whatever_the_network_does(
            accepts: bool,
            choices in prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 0..60),
        ) {
            let mut pair = Pair {
                client: In::Requested, server: None, to_server: vec![On::Request], to_client: vec![], told: vec![],
            };
            for (choice, which) in choices {
                match choice {
                    0 if !pair.to_server.is_empty() => {
                        let event = pair.to_server.remove(which.index(pair.to_server.len()));
                        pair.server(event);
                    }
                    1 if !pair.to_client.is_empty() => {
                        let event = pair.to_client.remove(which.index(pair.to_client.len()));
                        pair.client(event);
                    }
                    2 if !pair.to_server.is_empty() => {
                        pair.to_server.swap_remove(which.index(pair.to_server.len()));
                    }
                    3 if !pair.to_client.is_empty() => {
                        let event = pair.to_client[which.index(pair.to_client.len())];
                        pair.to_client.push(event);
                    }
                    4 => pair.client(On::Retransmit),
                    _ => if pair.server.is_some() { pair.server(On::Retransmit) },
                }
                if pair.server == Some(In::Offered) {
                    pair.server(if accepts { On::Accept } else { On::Reject });
                }
            }
            // From now on the network delivers everything, and whoever waits sends again.
            for _ in 0..8 {
                for event in std::mem::take(&mut pair.to_server) {
                    pair.server(event);
                    if pair.server == Some(In::Offered) {
                        pair.server(if accepts { On::Accept } else { On::Reject });
                    }
                }
                for event in std::mem::take(&mut pair.to_client) {
                    pair.client(event);
                }
                pair.client(On::Retransmit);
                pair.server(On::Retransmit);
            }
            let count = |action| pair.told.iter().filter(|told| **told == action).count();
            match accepts {
                true => {
                    prop_assert_eq!((pair.client, pair.server), (In::Ready, Some(In::Ready)));
                    prop_assert_eq!((count(Do::Connected), count(Do::Accepted)), (1, 1));
                }
                false => {
                    prop_assert_eq!((pair.client, pair.server), (In::Over, Some(In::Rejected)));
                    prop_assert_eq!((count(Do::Refused), count(Do::Connected)), (1, 0));
                }
            }
        }
    }
}
