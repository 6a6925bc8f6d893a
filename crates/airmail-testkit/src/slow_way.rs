//! A slow way: TCP connections through a proxy on loopback, as over a distance.
//!
//! What comes out has taken a time, at most so many bytes a second go in, and now and then a read is held back, with all
//! behind it. Nothing is lost: a connection ends when either side does.

use parking_lot::Mutex;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a read.
const READ_BYTES: usize = 16 << 10;
/// Reads that are on their way in a direction, at most.
const UNDER_WAY: usize = 16 << 10;

/// Time by which a direction may be late, and still have its bandwidth.
const LATE_MAX: Duration = Duration::from_millis(5);

/// Behaviour of the way, in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    /// Time that everything takes.
    pub delay: Duration,
    /// Bytes that go in each second.
    pub bytes_per_s: u64,
    /// One in so many reads is held back.
    pub held_one_in: u64,
    /// Time for which it is.
    pub hold: Duration,
}

/// See the module's documentation. It listens until the process ends.
#[derive(Debug)]
pub struct SlowWay {
    address: SocketAddr,
    carried: Arc<AtomicU64>,
}

impl SlowWay {
    /// A way to an address.
    pub fn to(target: &str, distance: Distance) -> SlowWay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let carried = Arc::<AtomicU64>::default();
        let (target, counted) = (target.to_owned(), Arc::clone(&carried));
        begin(move || {
            for near in listener.incoming().flatten() {
                // Nobody there: the connection ends.
                let Ok(far) = TcpStream::connect(&target) else {
                    continue;
                };
                carry(&near, &far, distance, &counted);
                carry(&far, &near, distance, &counted);
            }
        });
        SlowWay { address, carried }
    }

    /// Where it begins, as `HOST:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Bytes that have gone in, in both directions.
    pub fn carried_bytes(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }
}

/// Carries one direction of a connection, on two threads.
fn carry(from: &TcpStream, to: &TcpStream, distance: Distance, carried: &Arc<AtomicU64>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    to.set_nodelay(true).unwrap();
    let (send, receive): (SyncSender<(Instant, Vec<u8>)>, Receiver<_>) = sync_channel(UNDER_WAY);
    let carried = Arc::clone(carried);
    let schedule = Mutex::new(Schedule::new(distance));
    begin(move || {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            carried.fetch_add(count as u64, Ordering::Relaxed);
            let (free, due) = schedule.lock().next(count);
            if send.send((due, buffer[..count].to_vec())).is_err() {
                break;
            }
            sleep_until(free);
        }
        // The other end has gone, or never mind.
        let _ = from.shutdown(Shutdown::Read);
    });
    begin(move || {
        while let Ok((due, bytes)) = receive.recv() {
            sleep_until(due);
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// Runs something beside the test, until the connection that it is for ends, or the process does.
fn begin(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .name("slow-way".to_owned())
        .spawn(run)
        .unwrap();
}

fn sleep_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(now()));
}

#[expect(clippy::disallowed_methods, reason = "a proxy keeps real time")]
fn now() -> Instant {
    Instant::now()
}

/// Times of the reads of a direction.
struct Schedule {
    distance: Distance,
    reads: u64,
    /// Time at which another read may go in.
    free: Instant,
    /// Time at which the last one comes out.
    last: Instant,
}

impl Schedule {
    fn new(distance: Distance) -> Schedule {
        Schedule {
            distance,
            reads: 0,
            free: now(),
            last: now(),
        }
    }

    /// When another read may go in, and when this one comes out.
    fn next(&mut self, bytes: usize) -> (Instant, Instant) {
        let Distance {
            delay,
            bytes_per_s,
            held_one_in,
            hold,
        } = self.distance;
        self.reads += 1;
        let takes = Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_s.max(1));
        // A sleep that was too long is made up for.
        self.free = self.free.max(now() - LATE_MAX) + takes;
        let held = self.reads.is_multiple_of(held_one_in.max(1)) && held_one_in > 0;
        let due = self.free.max(now()) + delay + if held { hold } else { Duration::ZERO };
        self.last = self.last.max(due);
        (self.free, self.last)
    }
}
