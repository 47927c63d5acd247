//! A server that sends back what it hears, and a client, in one set.

use gasworks_sock::{Address, Class, Error, Op, Set};

const LISTENER: u64 = 0;
const CLIENT: u64 = 1;
const SERVER: u64 = 2;

fn main() -> Result<(), Error> {
    let set = Set::new()?;
    let (listener, port) = set.listen(LISTENER, &Address::Inet(([127, 0, 0, 1], 0).into()))?;
    set.post_connect_to(CLIENT, [Address::Inet(([127, 0, 0, 1], port).into())])?;
    loop {
        let Some(mut event) = set.wait(None)? else { continue };
        let sock = event.sock.and_then(|id| set.sock(id));
        match (event.user, event.op, sock, event.error.as_ref().map(Error::class)) {
            (CLIENT, Op::Connect, Some(client), None) => {
                client.post_write(b"hello".to_vec(), 5, 5, None)?;
                client.post_read(vec![0; 64], 5, 64, None)?;
            }
            (LISTENER, Op::Accept, ..) => {
                set.accept(&listener, SERVER)?.post_read(vec![0; 4096], 1, 4096, None)?;
            }
            (SERVER, Op::Read, Some(server), None) => {
                server.post_write(event.take_buffer(), event.bytes, event.bytes, None)?;
            }
            (SERVER, Op::Write, Some(server), None) => {
                server.post_read(event.take_buffer(), 1, 4096, None)?;
            }
            (SERVER, Op::Read, Some(server), Some(Class::ConnClosed)) => {
                server.post_close()?;
                listener.post_close()?;
            }
            (CLIENT, Op::Read, Some(client), None) => {
                println!("heard {}", String::from_utf8_lossy(event.data()));
                client.post_close()?;
            }
            (LISTENER, Op::Close, ..) => return set.destroy_now(),
            _ => {
                if let Some(error) = event.error {
                    return Err(error);
                }
            }
        }
    }
}
