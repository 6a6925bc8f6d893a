//! A plug: an end of one wire after another, as a node of a tree has one port for whichever parent it has, and one for
//! each child at a time.
//!
//! Whoever decides which wire it is has the [`Socket`]; the storage has the [`Plug`], which is a port. Before the next
//! wire begins, the storage is told that the one before is cut, and nothing of that comes later. Words that nodes have
//! for each other never reach the storage: they wait in the socket.

use super::wire::SimPort;
use airmail_link::{Event, FromHost, Port, ToHost};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// State that a plug and its socket share.
struct State<Out, In> {
    /// The end of the wire that comes next.
    next: Option<SimPort<Out, In>>,
    /// The storage has been told of a connection, and not of its cut.
    is_up: bool,
    /// The present wire is cut, and nothing more comes of it.
    is_over: bool,
    heard: VecDeque<In>,
}

/// The side of the one that decides which wire it is. See the module's documentation.
pub(super) struct Socket<Out, In>(Arc<Mutex<State<Out, In>>>);

/// The side of the storage. See the module's documentation.
pub(super) struct Plug<Out, In> {
    port: Option<SimPort<Out, In>>,
    is_word: fn(&In) -> bool,
    state: Arc<Mutex<State<Out, In>>>,
}

/// The plug of a node for its parent, and its socket.
pub(super) type NearPlug = Plug<ToHost, FromHost>;
pub(super) type NearSocket = Socket<ToHost, FromHost>;
/// The socket of a plug that is a child's at its parent.
pub(super) type FarSocket = Socket<FromHost, ToHost>;

/// A plug without a wire, for a node that asks.
pub(super) fn near() -> (NearPlug, NearSocket) {
    pair(|message| matches!(message, FromHost::Heartbeat { .. }))
}

/// A plug without a wire, for a node that is asked.
pub(super) fn far() -> (Plug<FromHost, ToHost>, FarSocket) {
    pair(|message| matches!(message, ToHost::Below { .. }))
}

fn pair<Out, In>(is_word: fn(&In) -> bool) -> (Plug<Out, In>, Socket<Out, In>) {
    let state = Arc::new(Mutex::new(State {
        next: None,
        is_up: false,
        is_over: false,
        heard: VecDeque::new(),
    }));
    let plug = Plug {
        port: None,
        is_word,
        state: Arc::clone(&state),
    };
    (plug, Socket(state))
}

impl<Out, In> Socket<Out, In> {
    /// Goes on with the end of another wire.
    pub(super) fn bind(&self, port: SimPort<Out, In>) {
        let mut state = self.0.lock();
        state.heard.clear();
        state.next = Some(port);
    }

    /// Whether nothing more comes over the last wire, and there is no other.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.0.lock();
        state.is_over && state.next.is_none()
    }

    /// Takes the words that have come over the present wire.
    pub(super) fn take_heard(&self) -> VecDeque<In> {
        std::mem::take(&mut self.0.lock().heard)
    }
}

impl<Out: Send, In: Send> Port for Plug<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, message: Out) -> Result<(), Out> {
        match &mut self.port {
            Some(port) => port.send(message),
            None => Err(message),
        }
    }

    fn receive(&mut self) -> Option<Event<In>> {
        let mut state = self.state.lock();
        if state.next.is_some() && state.is_up {
            state.is_up = false;
            self.port = None;
            return Some(Event::Cut);
        }
        if let Some(next) = state.next.take() {
            self.port = Some(next);
            state.is_over = false;
        }
        loop {
            let event = self.port.as_mut()?.receive()?;
            match event {
                Event::Message(word) if (self.is_word)(&word) => {
                    state.heard.push_back(word);
                    continue;
                }
                Event::Up => state.is_up = true,
                Event::Cut => (state.is_up, state.is_over) = (false, true),
                Event::Message(_) => {}
            }
            return Some(event);
        }
    }

    /// Does nothing: each node has its turn in every moment.
    fn flush(&mut self) {}
}

impl<Out, In> fmt::Debug for Plug<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plug")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl<Out, In> fmt::Debug for Socket<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("is_up", &self.0.lock().is_up)
            .finish_non_exhaustive()
    }
}
