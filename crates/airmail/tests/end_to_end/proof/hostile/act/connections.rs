//! Useless connections: silent ones, some that send only the preface of HTTP/2, some that send it
//! byte by byte, garbage, and a subscription that is never read. Other clients still get through,
//! and one that is turned away meanwhile gets an error that says so.

use crate::proof::hostile::history::Event;
use crate::proof::hostile::publishing::answer;
use crate::proof::hostile::stage::{CONNECTIONS, Stage};
use crate::proof::load;
use airmail_client::{ErrorCode, Start};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame: a connection that has begun and asks for nothing.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// Kinds of strangers; from this one on they say nothing.
const KINDS: u32 = 8;
const SILENT: u32 = 4;
/// Time that the node may take to see the strangers' bytes.
const BREATH: Duration = Duration::from_millis(150);
/// Time for which the impatient client looks for a node.
const IMPATIENT: Duration = Duration::from_millis(700);
/// Time for which the patient client does: within this somebody has been let in.
const PATIENT: Duration = Duration::from_secs(180);

/// Fills the node's connections with strangers, then lets an impatient client and a patient one come.
pub(super) fn strangers(stage: &mut Stage, choices: &mut SmallRng) {
    let topic = stage.a_topic(choices);
    let unread = stage.run(async {
        let client = stage.victim.client().connect().await.unwrap();
        let request = client.subscribe(&topic.name).namespace(topic.namespace);
        (request.from(Start::Earliest).open().await.unwrap(), client)
    });
    let fill = choices.random();
    let address = &stage.victim.address;
    let kinds = (0..CONNECTIONS / 2).map(|_| choices.random_range(0..KINDS));
    let kinds: Vec<u32> = kinds.collect();
    let mut strangers: Vec<Stranger> = kinds
        .into_iter()
        .filter_map(|kind| Stranger::come(address, kind, choices))
        .collect();
    if fill {
        // Some of these were closed for what they said; silent ones take the places that are left.
        thread::sleep(BREATH);
        let silent = (0..CONNECTIONS).filter_map(|_| Stranger::come(address, SILENT, choices));
        strangers.extend(silent);
        thread::sleep(BREATH);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| trickle(&strangers, &done));
        let _until_then = Ends(&done);
        if fill {
            turned_away_in_words(stage);
        }
        somebody_gets_in(stage, choices);
        stage.progress();
    });
    drop(unread);
}

/// A connection, and what it still has to say, byte by byte.
struct Stranger {
    stream: TcpStream,
    trickle: bool,
}

impl Stranger {
    /// One of some kind; `None` if it was closed at once.
    fn come(address: &str, kind: u32, choices: &mut SmallRng) -> Option<Stranger> {
        let mut stream = TcpStream::connect(address).ok()?;
        let mut trickle = false;
        let said = match kind {
            0 => stream.write_all(PREFACE),
            1 => stream
                .write_all(PREFACE)
                .and_then(|()| stream.write_all(SETTINGS)),
            2 => {
                trickle = true;
                Ok(())
            }
            3 => {
                let mut garbage = vec![0; choices.random_range(1..4_096)];
                choices.fill_bytes(&mut garbage);
                stream.write_all(&garbage)
            }
            _ => Ok(()),
        };
        said.ok()?;
        stream.set_nonblocking(true).ok()?;
        let closed = match stream.read(&mut [0; 64]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        (!closed).then_some(Stranger { stream, trickle })
    }
}

/// Ends what is done beside, also when the act fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says the preface a byte at a time, over and over, on those connections that do.
fn trickle(strangers: &[Stranger], done: &AtomicBool) {
    for byte in PREFACE.iter().cycle() {
        if done.load(Ordering::Relaxed) {
            return;
        }
        for stranger in strangers.iter().filter(|stranger| stranger.trickle) {
            // The node may have closed it: that is its right.
            (&stranger.stream).write_all(&[*byte]).ok();
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Lets a client look for a node for a moment only: it finds it, or learns that it has too many
/// connections.
fn turned_away_in_words(stage: &Stage) {
    let impatient = stage.victim.client().connect_timeout(IMPATIENT);
    let found = stage.run(impatient.connect());
    if let Err(error) = found {
        assert_eq!(
            error.code(),
            ErrorCode::Overloaded,
            "turned away by the bound of connections, and not told so: {error}"
        );
    }
}

/// Lets a patient client come: it gets in, and publishes.
fn somebody_gets_in(stage: &mut Stage, choices: &mut SmallRng) {
    let topic = stage.a_topic(choices);
    let stamp = stage.visitors_stamp(&topic);
    let patient = stage.victim.client().connect_timeout(PATIENT);
    let history = stage.history.clone();
    stage.run(async {
        let client = patient.connect().await;
        let client = client.unwrap_or_else(|error| {
            panic!("strangers have kept everybody out for {PATIENT:?}: {error}")
        });
        history.note(Event::Invoked(stamp));
        let publisher = client.publisher().namespace(topic.namespace);
        let ack = publisher.send(load::message(&topic, stamp)).await.unwrap();
        history.note(Event::Answered(stamp, answer(ack.await)));
        client.close().await.unwrap();
    });
}
