//! What a rank does in the cases.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, abort};
use std::time::Duration;

use gasworks_bootstrap::{Bootstrap, connect};
use gasworks_os::inherited;

fn number(name: &str) -> i32 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(-1)
}

/// Waits for what is to come: a signal, as a rule.
fn linger() -> ! {
    std::thread::sleep(Duration::from_secs(100));
    abort()
}

fn raw(bytes: &[u8]) -> UnixStream {
    let mut socket = UnixStream::from(inherited::socket(number("PMI_FD")).expect("a socket"));
    socket.write_all(bytes).expect("sent");
    socket
}

/// A connection to `PMI_PORT`.
struct Port(std::net::TcpStream);

const HELLO_1: &str = "cmd=init pmi_version=1 pmi_subversion=1\n";

/// Connects, is let in, and says something.
fn port(text: &str) -> Port {
    let address = std::env::var("PMI_PORT").expect("PMI_PORT");
    let mut stream = std::net::TcpStream::connect(address).expect("connected");
    let hello = format!("cmd=initack pmiid={}\n", number("PMI_ID"));
    stream.write_all(hello.as_bytes()).expect("sent");
    let mut port = Port(stream);
    port.read_until("cmd=set debug=0\n");
    port.0.write_all(text.as_bytes()).expect("sent");
    port
}

impl Port {
    fn read_until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("an answer");
            text.push(char::from(byte[0]));
        }
        text
    }

    fn ask(&mut self, line: &str) -> String {
        self.0.write_all(format!("{line}\n").as_bytes()).expect("sent");
        self.read_until("\n")
    }
}

/// A whole conversation in PMI-1.
fn port_one() {
    let mut port = port(HELLO_1);
    port.read_until("\n");
    let name = port.ask("cmd=get_my_kvsname");
    let name = name.trim_end().rsplit_once('=').expect("a name").1.to_owned();
    let me = number("PMI_ID");
    port.ask(&format!("cmd=put kvsname={name} key=k{me} value=v{me}"));
    assert_eq!(port.ask("cmd=barrier_in"), "cmd=barrier_out rc=0\n");
    print!("{}", port.ask(&format!("cmd=get kvsname={name} key=k1")));
    assert_eq!(port.ask("cmd=finalize"), "cmd=finalize_ack rc=0\n");
}

fn join() -> Box<dyn Bootstrap + Send> {
    connect().unwrap_or_else(|e| {
        eprintln!("rank {}: {e}", number("PMI_RANK"));
        std::process::exit(99)
    })
}

/// Acts, in most cases differently on rank 1 than on the others.
pub fn act(action: &str) -> ExitCode {
    let odd = number("PMI_RANK") == 1;
    match action {
        "exchange" => exchange(),
        "fence-all" => return fences(|| {}),
        "die-at-once" if odd => kill_me(),
        "die-greeted" if odd => {
            let _socket = raw(b"cmd=init pmi_version=2 pmi_subversion=0\n");
            kill_me()
        }
        "die-between-fences" if odd => return fences(kill_me),
        "exit-between-fences" if odd => return fences(|| std::process::exit(7)),
        "quit-between-fences" if odd => return fences(|| gasworks_os::process::exit_now(0)),
        "absent" if odd => return ExitCode::SUCCESS,
        "early-end" if odd => join().finalize().expect("ended"),
        "abort" if odd => join().abort(42, "no; more\nof this"),
        "abort-overtaken" if odd => {
            let words =
                ["cmd=fullinit;pmirank=1;", "cmd=gasworks-exit;code=42;", "cmd=abort;isworld=TRUE;msg=so;"];
            let words = words.map(|words| format!("{:6}{words}", words.len())).concat();
            let _socket = raw(format!("cmd=init pmi_version=2 pmi_subversion=0\n{words}").as_bytes());
            std::thread::sleep(Duration::from_millis(200));
            // The others were told to end, and this one ends as they do.
            return ExitCode::from(143);
        }
        "eat" if odd => {
            let meal = vec![1u8; 400 << 20];
            println!("ate {}", meal.iter().map(|&b| u64::from(b)).sum::<u64>());
        }
        "eat" => linger(),
        "hang-up" if odd => {
            let rank = join();
            let fd = number("PMI_FD");
            rank.started();
            // The client holds a duplicate: shutting the connection down closes it for all.
            let socket = UnixStream::from(inherited::socket(fd).expect("a socket"));
            drop(socket.shutdown(std::net::Shutdown::Write));
            linger()
        }
        "garbage" if odd => lingering(raw(b"\xff\xfe\x00\x01nonsense\n")),
        "endless-line" if odd => lingering(raw(&[b'x'; 5000])),
        "cut-line" if odd => {
            drop(raw(b"cmd=init pmi_ver"));
            return ExitCode::SUCCESS;
        }
        "lying-length" if odd => {
            lingering(raw(b"cmd=init pmi_version=2 pmi_subversion=0\n999999cmd=fullinit;"))
        }
        "second-init" if odd => {
            let hello = b"cmd=init pmi_version=2 pmi_subversion=0\n    23cmd=fullinit;pmirank=1;";
            let again = b"    23cmd=fullinit;pmirank=1;";
            lingering(raw(&[hello.as_slice(), again].concat()))
        }
        "flood" if odd => {
            let mut socket = raw(b"cmd=init pmi_version=2 pmi_subversion=0\n    23cmd=fullinit;pmirank=1;");
            // Never reads an answer.
            for _ in 0..2_000_000 {
                socket.write_all(b"    14cmd=job-getid;").expect("sent");
            }
        }
        "port-die" if odd => {
            let _port = port(HELLO_1);
            kill_me()
        }
        "port-abort" if odd => {
            let _port = port(&format!("{HELLO_1}cmd=abort exitcode=6\n"));
            linger()
        }
        "port-quit" if odd => {
            let mut port = port(HELLO_1);
            // The process ends when the launcher has heard of it.
            port.read_until("rc=0\n");
        }
        "port-garbage" if odd => {
            let _port = port("\u{1}nonsense\n");
            linger()
        }
        "port-mapping" => {
            let mut port = port(HELLO_1);
            port.read_until("\n");
            let name = port.ask("cmd=get_my_kvsname");
            let name = name.trim_end().rsplit_once('=').expect("a name").1.to_owned();
            print!("{}", port.ask(&format!("cmd=get kvsname={name} key=PMI_process_mapping")));
            port.ask("cmd=finalize");
        }
        "port-one" | "port-die" | "port-abort" | "port-quit" | "port-garbage" => port_one(),
        _ => return fences(|| {}),
    }
    ExitCode::SUCCESS
}

fn lingering(_socket: UnixStream) -> ! {
    linger()
}

fn kill_me() {
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).expect("raised");
}

/// Joins, passes a fence, does something, passes another.
fn fences(between: impl FnOnce()) -> ExitCode {
    let rank = join();
    let checked = (|| {
        rank.fence()?;
        between();
        rank.fence()?;
        rank.finalize()
    })();
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("rank {}: {e}", rank.rank());
            ExitCode::from(99)
        }
    }
}

/// Every rank gives bytes of its own length, through the launcher and among the ranks, and checks everybody's.
fn exchange() {
    let rank = join();
    let bytes = |r: u32| (0..r * 700 + 5).map(|i| (i * 31 + r) as u8).collect::<Vec<u8>>();
    for round in 0..2 {
        let mine = bytes(rank.rank() + round);
        let key = format!("value{round}");
        rank.put(&key, &mine).expect("put");
        rank.fence().expect("passed");
        let all = rank.exchange(&format!("card{round}"), &mine).expect("exchanged").to_vec();
        assert_eq!(all.len(), rank.size() as usize);
        for (r, got) in (0..).zip(all) {
            assert!(got == bytes(r + round), "rank {r} sent something else");
            assert!(got == rank.get(r, &key).expect("got"), "rank {r} put something else");
        }
    }
    assert!(rank.get(rank.size(), "value0").is_err());
    rank.finalize().expect("ended");
    println!("rank {} of {} is done", rank.rank(), rank.size());
}
