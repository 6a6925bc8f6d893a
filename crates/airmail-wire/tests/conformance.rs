//! The conformance suite on a storage at the other end of a TCP connection: as it is, with everything tiny, and cut
//! all the time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../../airmail-log/tests/subjects/mod.rs"]
mod subjects;

use airmail_link::{FromHost, HostedStorage, LinkLimits, LinkStorage, ToHost};
use airmail_log::conformance::{End, Subject};
use airmail_log::journal::JournalConfig;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble, Waker};
use airmail_model::{Mono, Now};
use airmail_wire::{
    Carrier, FRAME_BYTES_MAX, FrameReader, FrameWriter, OnWire, PortLimits, WirePort, wire_port,
};
use bytes::Buf as _;
use bytes::BufMut as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use subjects::OnKept;

/// Cuts of one connection.
const CUTS_MAX: u32 = 500;

/// Bytes that were written to a socket and not read from the other end.
type UnderWay = Arc<AtomicI64>;

/// An end of a connection: what a shell does, without waiting for anything.
struct SocketEnd<Out, In> {
    carrier: Carrier<Out, In>,
    stream: TcpStream,
    writer: FrameWriter,
    reader: FrameReader,
    under_way: UnderWay,
}

impl<Out: OnWire, In: OnWire> SocketEnd<Out, In> {
    fn new(carrier: Carrier<Out, In>, stream: TcpStream, under_way: &UnderWay) -> Self {
        carrier.up();
        SocketEnd {
            carrier,
            stream,
            writer: FrameWriter::default(),
            reader: FrameReader::new(FRAME_BYTES_MAX),
            under_way: Arc::clone(under_way),
        }
    }

    /// The same over another connection.
    fn reconnect(&mut self, stream: TcpStream) {
        self.carrier.cut();
        self.carrier.up();
        self.stream = stream;
        self.writer = FrameWriter::default();
        self.reader = FrameReader::new(FRAME_BYTES_MAX);
    }

    /// Moves what can be moved; whether anything was.
    fn move_bytes(&mut self) -> bool {
        let mut moved = false;
        while let Some(message) = self.carrier.take() {
            self.writer.put(message);
        }
        while self.writer.has_remaining() {
            match self.stream.write(self.writer.chunk()) {
                Ok(count) => {
                    self.writer.advance(count);
                    let count = i64::try_from(count).unwrap();
                    self.under_way.fetch_add(count, Ordering::Relaxed);
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part) {
            Ok(count) => {
                self.reader.room().put_slice(&part[..count]);
                let count = i64::try_from(count).unwrap();
                self.under_way.fetch_sub(count, Ordering::Relaxed);
                moved = true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        while self.carrier.has_room()
            && let Some(message) = self.reader.message().expect("a message")
        {
            self.carrier.give(message);
            moved = true;
        }
        moved
    }
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    (near, far)
}

/// The near end, and everything behind it, as one storage.
struct Wired<S: LogStorage> {
    near: LinkStorage<WirePort<ToHost, FromHost>>,
    host: HostedStorage<S>,
    near_end: SocketEnd<ToHost, FromHost>,
    far_end: SocketEnd<FromHost, ToHost>,
    under_way: UnderWay,
    /// Polls between two cuts; 0: there are none.
    cut_every: u32,
    polls: u32,
    /// Cuts to come: what takes longer than the time between two is done after the last.
    cuts: u32,
}

impl<S: LogStorage> Wired<S> {
    fn new(storage: S, over: &OverTcp) -> Wired<S> {
        let (near_stream, far_stream) = connection();
        let waker: Waker = Arc::new(|| {});
        let (near, near_carrier) = wire_port(over.port, Arc::clone(&waker), Arc::clone(&waker));
        let (far, far_carrier) = wire_port(over.port, Arc::clone(&waker), waker);
        let host = HostedStorage::new(storage, over.limits);
        host.arrivals().try_send(Box::new(far)).expect("room");
        let under_way = &over.under_way;
        under_way.store(0, Ordering::Relaxed);
        Wired {
            near: LinkStorage::new(near, host.capabilities(), over.limits),
            near_end: SocketEnd::new(near_carrier, near_stream, under_way),
            far_end: SocketEnd::new(far_carrier, far_stream, under_way),
            host,
            under_way: Arc::clone(under_way),
            cut_every: over.cut_every,
            polls: 0,
            cuts: CUTS_MAX,
        }
    }

    /// Cuts the connection, if it is time. Not while appends are under way: the outcome of one without a producer
    /// would be unknown, which the suite does not ask for.
    fn cut(&mut self) {
        self.polls += 1;
        let is_time = self.cut_every > 0 && self.polls.is_multiple_of(self.cut_every);
        if is_time && self.cuts > 0 && self.near.unanswered_appends() == 0 {
            self.cuts -= 1;
            let (near, far) = connection();
            self.near_end.reconnect(near);
            self.far_end.reconnect(far);
            self.under_way.store(0, Ordering::Relaxed);
        }
    }
}

impl<S: LogStorage> LogStorage for Wired<S> {
    fn capabilities(&self) -> Capabilities {
        self.near.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.near.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.cut();
        let of_near = self.near.poll(now, out);
        let mut moved = self.near_end.move_bytes() | self.far_end.move_bytes();
        let of_host = self.host.poll(now, &mut Vec::new());
        moved |= self.far_end.move_bytes() | self.near_end.move_bytes();
        if moved || self.under_way.load(Ordering::Relaxed) > 0 {
            return Some(now.mono);
        }
        of_near.into_iter().chain(of_host).min()
    }

    fn opened(&mut self) {
        self.host.opened();
    }

    fn close(&mut self, now: Now) {
        self.near.close(now);
    }

    fn is_closed(&self) -> bool {
        self.near.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.near.trouble()
    }

    fn damage(&self) -> u64 {
        self.near.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.near.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.host.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.host.accept_clock(now);
    }
}

/// A storage that is used over TCP.
struct OverTcp {
    storage: OnKept,
    limits: LinkLimits,
    port: PortLimits,
    cut_every: u32,
    under_way: UnderWay,
}

impl Subject for OverTcp {
    type Storage = Wired<<OnKept as Subject>::Storage>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        let storage = self.storage.fresh(now);
        Wired::new(storage, self)
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, mut now: Now) -> Self::Storage {
        if end == End::Clean {
            now = subjects::close_before(&mut storage, &mut self.storage, now);
        }
        let storage = self.storage.reopen(storage.host.into_storage(), end, now);
        Wired::new(storage, self)
    }

    fn outlives(&self) -> bool {
        self.storage.outlives()
    }

    fn busy(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0 || self.storage.busy()
    }

    fn wait(&mut self) {
        if self.storage.busy() {
            self.storage.wait();
        }
    }
}

fn over_tcp(limits: LinkLimits, port: PortLimits, cut_every: u32) -> OverTcp {
    OverTcp {
        storage: OnKept::new(JournalConfig::default()),
        limits,
        port,
        cut_every,
        under_way: Arc::default(),
    }
}

/// Bounds under which readers are given what they want alone.
fn wanted() -> LinkLimits {
    LinkLimits {
        wants: 1 << 20,
        ..LinkLimits::default()
    }
}

/// Bounds so small that everything waits for room, and readers are cut off all the time.
fn narrow() -> (LinkLimits, PortLimits) {
    let limits = LinkLimits {
        window_bytes: 300,
        reader_bytes: 100,
        marks: 4,
        turn_messages: 3,
        ..wanted()
    };
    let port = PortLimits {
        messages: 2,
        bytes: 300,
    };
    (limits, port)
}

mod by_default {
    use super::{over_tcp, wanted};
    use airmail_wire::PortLimits;

    airmail_log::conformance!(over_tcp(wanted(), PortLimits::default(), 0));
}

mod narrow_ones {
    use super::{narrow, over_tcp};

    airmail_log::conformance!({
        let (limits, port) = narrow();
        over_tcp(limits, port, 0)
    });
}

mod cut_all_the_time {
    use super::{over_tcp, wanted};
    use airmail_wire::PortLimits;

    airmail_log::conformance!(over_tcp(wanted(), PortLimits::default(), 23));
}
