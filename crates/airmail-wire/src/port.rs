//! A port whose connection is a wire: the owner's end, and the carrier's, who moves the bytes.
//!
//! ```text
//! storage ── WirePort ──▶ waits to be sent ──▶ Carrier ──▶ FrameWriter ──▶ socket
//!                    ◀── has come ◀──────────         ◀── FrameReader ◀──
//! ```
//!
//! The owner polls it between other things, and the carrier runs where the socket is; each is woken when the
//! other has done something for it, once a turn. Connections come and go: the owner is told by
//! [`Event::Up`] and [`Event::Cut`], and what was under way at a cut is dropped, in both directions.
//!
//! Invariants: both queues are bounded, by number and by bytes of batches, but for one message that exceeds
//! them alone; a message of one connection never goes over another; the owner's events are in the order
//! in which things happened, `Up` and `Cut` in turn.

use crate::message::OnWire;
use airmail_link::{Event, Port};
use airmail_log::Waker;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bounds of each of a port's two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// Messages. Default: 1,024.
    pub messages: usize,
    /// Bytes of batches. Default: 1 MiB.
    pub bytes: usize,
}

impl Default for PortLimits {
    fn default() -> PortLimits {
        PortLimits {
            messages: 1024,
            bytes: 1 << 20,
        }
    }
}

/// A bounded queue.
#[derive(Debug)]
struct Queue<M> {
    messages: VecDeque<(M, usize)>,
    bytes: usize,
    /// The side that fills it waits for room.
    is_wanted: bool,
}

impl<M> Queue<M> {
    const fn new() -> Queue<M> {
        Queue {
            messages: VecDeque::new(),
            bytes: 0,
            is_wanted: false,
        }
    }

    /// Whether one more may come. If not, whoever asks waits for room.
    fn has_room(&mut self, limits: &PortLimits) -> bool {
        let has_room = self.messages.len() < limits.messages && self.bytes < limits.bytes;
        self.is_wanted = !has_room;
        has_room
    }

    fn push(&mut self, message: M, bytes: usize) {
        self.bytes += bytes;
        self.messages.push_back((message, bytes));
    }

    fn pop(&mut self) -> Option<M> {
        let (message, bytes) = self.messages.pop_front()?;
        self.bytes -= bytes;
        Some(message)
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }
}

#[derive(Debug)]
struct State<Out, In> {
    /// There is a connection.
    is_up: bool,
    /// The owner was told so.
    is_told: bool,
    /// To be told before anything else: a cut, then a connection.
    tells_cut: bool,
    tells_up: bool,
    outgoing: Queue<Out>,
    incoming: Queue<In>,
}

impl<Out, In> State<Out, In> {
    /// Ends the connection that there is, if there is one.
    fn end(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
        self.tells_cut = self.is_told;
        self.tells_up = false;
        self.is_up = false;
    }
}

struct Shared<Out, In> {
    state: Mutex<State<Out, In>>,
    /// There is something for the owner: it looks here first, without the lock.
    has_come: AtomicBool,
    limits: PortLimits,
    owner: Waker,
    carrier: Waker,
}

impl<Out, In> Shared<Out, In> {
    /// Lets the owner look at what has changed.
    fn tell(&self, state: MutexGuard<'_, State<Out, In>>) {
        self.has_come.store(true, Ordering::Release);
        drop(state);
        (self.owner)();
    }
}

/// The owner's end. See the module's documentation.
pub struct WirePort<Out, In> {
    shared: Arc<Shared<Out, In>>,
    /// Something was sent since the last flush, or room was made that the carrier waits for.
    wakes: bool,
}

/// The carrier's end. See the module's documentation.
pub struct Carrier<Out, In> {
    shared: Arc<Shared<Out, In>>,
}

/// A port without a connection, and its carrier's end. Each waker is called by the other end, from any thread.
#[must_use]
pub fn wire_port<Out, In>(
    limits: PortLimits,
    owner: Waker,
    carrier: Waker,
) -> (WirePort<Out, In>, Carrier<Out, In>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            is_up: false,
            is_told: false,
            tells_cut: false,
            tells_up: false,
            outgoing: Queue::new(),
            incoming: Queue::new(),
        }),
        has_come: AtomicBool::new(false),
        limits,
        owner,
        carrier,
    });
    let port = WirePort {
        shared: Arc::clone(&shared),
        wakes: false,
    };
    (port, Carrier { shared })
}

impl<Out: OnWire + Send, In: OnWire + Send> Port for WirePort<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, message: Out) -> Result<(), Out> {
        let mut state = self.shared.state.lock();
        // Of a connection that the owner has not seen yet, it cannot mean to send.
        let is_present = state.is_up && state.is_told && !state.tells_cut;
        if !is_present || !state.outgoing.has_room(&self.shared.limits) {
            return Err(message);
        }
        let bytes = message.batch_bytes();
        state.outgoing.push(message, bytes);
        self.wakes = true;
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<In>> {
        if !self.shared.has_come.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.shared.state.lock();
        if std::mem::take(&mut state.tells_cut) {
            state.is_told = false;
            return Some(Event::Cut);
        }
        if std::mem::take(&mut state.tells_up) {
            state.is_told = true;
            return Some(Event::Up);
        }
        let Some(message) = state.incoming.pop() else {
            self.shared.has_come.store(false, Ordering::Release);
            return None;
        };
        self.wakes |= std::mem::take(&mut state.incoming.is_wanted);
        Some(Event::Message(message))
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.wakes) {
            (self.shared.carrier)();
        }
    }
}

impl<Out: OnWire, In: OnWire> Carrier<Out, In> {
    /// There is a connection.
    pub fn up(&self) {
        let mut state = self.state();
        state.end();
        state.is_up = true;
        state.tells_up = true;
        self.shared.tell(state);
    }

    /// The connection is gone.
    pub fn cut(&self) {
        let mut state = self.state();
        state.end();
        self.shared.tell(state);
    }

    /// The next message to be sent, if there is one.
    #[must_use]
    pub fn take(&self) -> Option<Out> {
        let mut state = self.state();
        let message = state.outgoing.pop()?;
        let is_wanted = std::mem::take(&mut state.outgoing.is_wanted);
        drop(state);
        if is_wanted {
            (self.shared.owner)();
        }
        Some(message)
    }

    /// Bytes of batches that wait to be sent.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.state().outgoing.bytes
    }

    /// Whether another message may be given. If not, the carrier is woken when one may.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state().incoming.has_room(&self.shared.limits)
    }

    /// Gives a message that has come, of which the owner hears after [`Carrier::wake`].
    pub fn give(&self, message: In) {
        let bytes = message.batch_bytes();
        let mut state = self.state();
        if state.is_up {
            state.incoming.push(message, bytes);
            self.shared.has_come.store(true, Ordering::Release);
        }
    }

    /// Wakes the owner.
    pub fn wake(&self) {
        (self.shared.owner)();
    }

    fn state(&self) -> MutexGuard<'_, State<Out, In>> {
        self.shared.state.lock()
    }
}

impl<Out, In> Drop for Carrier<Out, In> {
    /// Nobody carries anything any more: the owner is told of the cut.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.end();
        self.shared.tell(state);
    }
}

impl<Out, In> fmt::Debug for WirePort<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_up = self.shared.state.lock().is_up;
        f.debug_struct("WirePort")
            .field("is_up", &is_up)
            .finish_non_exhaustive()
    }
}

impl<Out, In> fmt::Debug for Carrier<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_up = self.shared.state.lock().is_up;
        f.debug_struct("Carrier")
            .field("is_up", &is_up)
            .finish_non_exhaustive()
    }
}
