//! The asking half of a session: its requests, and how they are read until there are no more.

use super::Shared;
use super::window::Size;
use crate::frontdoor::{FrontDoor, PublishRefusal, SessionError, SubscribeRefusal, Unavailable};
use crate::runtime::select_cold::select_cold;
use crate::send_queue::{Event, NotAdded, Over, SendQueue};
use airmail_model::frame::{
    Change, Credit, Generation, Hello, Maps, Nodes, Reply, Request, RequestId, State, Subscribe,
    SubscriptionId, Welcome,
};
use airmail_model::namespace::DEFAULT_NAMESPACE;
use airmail_model::{Batch, Checked, Error, Message, Mono};
use bytes::Bytes;
use futures::future::Either;
use std::fmt;
use std::iter;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Source of a translator's requests.
pub(crate) trait RequestSource: Send {
    /// Reads one request and does it on `session`. `Break`: the client has no more.
    ///
    /// # Errors
    /// What the client did that ends the session.
    fn do_next(
        &mut self,
        session: &SessionRequests,
    ) -> impl Future<Output = Result<ControlFlow<()>, Error>> + Send;
}

/// The way on of a session whose client asks for nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRequests {
    /// It ends when everything published is answered.
    End,
    /// It goes on receiving until its client hangs up.
    Receive,
}

/// The asking half of a session.
pub struct SessionRequests {
    door: FrontDoor,
    queue: Arc<SendQueue>,
    shared: Arc<Shared>,
}

impl fmt::Debug for SessionRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRequests").finish_non_exhaustive()
    }
}

impl SessionRequests {
    pub(super) fn new(
        door: FrontDoor,
        queue: Arc<SendQueue>,
        shared: Arc<Shared>,
    ) -> SessionRequests {
        SessionRequests {
            door,
            queue,
            shared,
        }
    }

    /// The front door's view of the node.
    #[must_use]
    pub fn door(&self) -> &FrontDoor {
        &self.door
    }

    // ---- The requests ----

    /// Says Hello: first, and once. Answered by [`Event::Welcome`].
    ///
    /// # Errors
    /// [`SessionError`] if Hello was said already, a namespace or role does not exist, roles are not believed, or the node
    /// starts or stops.
    pub async fn hello(&self, hello: &Hello) -> Result<(), SessionError> {
        self.is_new()?;
        let welcome = self.welcome(hello)?;
        let roles = self.door.believed(&hello.roles)?;
        self.shared.greeted.store(true, Ordering::Relaxed);
        let bytes = match hello.credit {
            Credit::Nothing => 0,
            Credit::Bytes(bytes) => bytes,
            Credit::Automatic => {
                self.queue.set_automatic_credit(true);
                self.door.limits().credit_bytes
            }
        };
        let alive = welcome.alive;
        self.queue.push(Event::Welcome(Box::new(welcome)));
        if let Some(within) = alive {
            self.queue.begin_news(within);
        }
        if !roles.is_none() {
            self.ask(Request::Roles(roles)).await?;
        }
        if bytes > 0 {
            self.ask(Request::Credit { bytes }).await?;
        }
        Ok(())
    }

    /// Whether Hello is still to be said.
    ///
    /// # Errors
    /// [`SessionError::HelloExpected`] if it has been.
    pub(crate) fn is_new(&self) -> Result<(), SessionError> {
        if self.shared.greeted.load(Ordering::Relaxed) {
            let found = "a second hello";
            return Err(SessionError::HelloExpected { found });
        }
        Ok(())
    }

    /// Whether Hello has been said.
    ///
    /// # Errors
    /// [`SessionError::HelloExpected`] if it is still to be.
    pub(crate) fn is_greeted(&self) -> Result<(), SessionError> {
        if self.shared.greeted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let found = "a request before hello";
        Err(SessionError::HelloExpected { found })
    }

    fn welcome(&self, hello: &Hello) -> Result<Welcome, SessionError> {
        self.door.check_up()?;
        let default = [DEFAULT_NAMESPACE.to_owned()];
        let wanted: &[String] = if hello.namespaces.is_empty() {
            &default
        } else {
            &hello.namespaces
        };
        let mut namespaces = Vec::with_capacity(wanted.len());
        for name in wanted {
            namespaces.push(self.door.named_map(name)?);
        }
        let has_news = hello.protocol >= Hello::PROTOCOL_NEWS;
        let handle = self.door.handle();
        Ok(Welcome {
            protocol: hello.protocol,
            node: handle.node().to_owned(),
            limits: self.door.limits().clone(),
            namespaces,
            nodes: if has_news {
                self.serving_nodes()
            } else {
                Nodes::default()
            },
            alive: has_news.then(|| handle.alive_within()),
        })
    }

    /// Nodes that clients may use. How many connections this one has is known better than what was told last.
    fn serving_nodes(&self) -> Nodes {
        let handle = self.door.handle();
        let mut nodes = Nodes::clone(&handle.serving_nodes());
        let own = nodes
            .nodes
            .iter_mut()
            .find(|node| node.name == handle.node());
        if let Some(own) = own {
            let connections = self.door.metrics().connections.get();
            own.connections = u32::try_from(connections).unwrap_or(own.connections);
        }
        nodes
    }

    /// Publishes an encoded batch, which is checked here, once. Answered by [`Event::Reply`] with an ack, or
    /// by [`Event::PublishRefused`]; either has the client's own number, which it may use again.
    /// `begins_epoch` is the client's word ([`Request::Publish`]), `received` is when the request came, by [`FrontDoor::mono`].
    ///
    /// # Errors
    /// [`SessionError`]: nothing can be asked on this session any more.
    pub async fn publish(
        &self,
        request: RequestId,
        (batch, begins_epoch): (Bytes, bool),
        received: Mono,
    ) -> Result<(), SessionError> {
        self.is_greeted()?;
        let taken = self.door.takes_publishes().map_err(PublishRefusal::from);
        let checked = taken.and_then(|()| {
            let checked = Batch::check(batch, self.door.limits());
            checked.map_err(PublishRefusal::Unacceptable)
        });
        let batch = match checked {
            Ok(batch) => batch,
            Err(refusal) => {
                self.refuse(request, refusal);
                return Ok(());
            }
        };
        let size = iter::once(Size::of(&batch));
        let request = self.shared.window.begin(request, size, received);
        let publish = Request::Publish {
            request,
            batch,
            begins_epoch,
        };
        Ok(self.ask(publish).await?)
    }

    /// Publishes batches that have one number and one answer: the last one's ack, or the first refusal.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn publish_together(
        &self,
        request: RequestId,
        batches: Vec<Checked<Batch>>,
        received: Mono,
    ) -> Result<(), SessionError> {
        self.is_greeted()?;
        let taken = self.door.takes_publishes().map_err(PublishRefusal::from);
        let refusal = match taken {
            Err(refusal) => Some(refusal),
            Ok(()) => batches.is_empty().then_some(PublishRefusal::BodyAbsent),
        };
        if let Some(refusal) = refusal {
            self.refuse(request, refusal);
            return Ok(());
        }
        let sizes = batches.iter().map(|batch| Size::of(batch));
        let first = self.shared.window.begin(request, sizes, received);
        for (batch, number) in batches.into_iter().zip(first.0..) {
            let request = RequestId(number);
            let publish = Request::Publish {
                request,
                batch,
                begins_epoch: false,
            };
            self.ask(publish).await?;
        }
        Ok(())
    }

    /// Publishes plain messages to a namespace, as the batches that they make for its logs. A message that
    /// its front door could not read stands in its place as an error, and refuses all.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub fn publish_messages(
        &self,
        request: RequestId,
        namespace: &str,
        messages: impl IntoIterator<Item = Result<Message, Error>>,
        received: Mono,
    ) -> impl Future<Output = Result<(), SessionError>> {
        // Before anything is waited for, so that a session that waits does not hold room for the messages.
        let encoded = self.is_greeted();
        let encoded = encoded.map(|()| self.door.encode(namespace, messages));
        async move {
            match encoded? {
                Ok(batches) => self.publish_together(request, batches, received).await,
                Err(refusal) => {
                    self.refuse(request, refusal);
                    Ok(())
                }
            }
        }
    }

    /// Answers a publish that its front door found wrong, as one that was refused here.
    pub fn refuse(&self, request: RequestId, refusal: PublishRefusal) {
        let error = Error::from(refusal.clone());
        self.door.metrics().refused_at_edge(&error);
        let refused = Event::PublishRefused(request, Box::new(refusal));
        self.queue.push(refused);
    }

    /// Begins a subscription. Answered by a status.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn add(&self, subscribe: Subscribe) -> Result<(), SessionError> {
        self.is_greeted()?;
        if let Err(wrong) = self.door.takes_subscriptions() {
            let (subscription, generation) = (subscribe.subscription, subscribe.generation);
            self.refuse_subscription(subscription, generation, wrong.into());
            return Ok(());
        }
        Ok(self.ask(Request::Add(subscribe)).await?)
    }

    /// Answers a subscription that its front door found wrong.
    pub fn refuse_subscription(
        &self,
        subscription: SubscriptionId,
        generation: Generation,
        refusal: SubscribeRefusal,
    ) {
        self.queue.push(Event::NotAdded(Box::new(NotAdded {
            subscription,
            generation,
            refusal,
        })));
    }

    /// Gives a subscription another filter. Answered by a status.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn change(&self, change: Change) -> Result<(), SessionError> {
        self.is_greeted()?;
        Ok(self.ask(Request::Change(change)).await?)
    }

    /// Answers a change of a filter that its front door found wrong.
    pub fn refuse_change(
        &self,
        subscription: SubscriptionId,
        generation: Generation,
        error: Error,
    ) {
        self.door.metrics().refused_at_edge(&error);
        self.queue.push(Event::Reply(Reply::Status {
            subscription,
            generation,
            state: State::Unchanged(error),
        }));
    }

    /// Ends a subscription. Answered by a status.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn remove(&self, subscription: SubscriptionId) -> Result<(), SessionError> {
        self.is_greeted()?;
        Ok(self.ask(Request::Remove { subscription }).await?)
    }

    /// Grants credit for deliveries; from here on none comes back by itself.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn credit(&self, bytes: u32) -> Result<(), SessionError> {
        self.is_greeted()?;
        self.queue.set_automatic_credit(false);
        Ok(self.ask(Request::Credit { bytes }).await?)
    }

    /// Asks what the node's clock shows. Answered by [`Reply::Clock`](airmail_model::frame::Reply::Clock).
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn ask_clock(&self, asked: Mono) -> Result<(), SessionError> {
        self.is_greeted()?;
        Ok(self.ask(Request::Clock { asked }).await?)
    }

    /// Asks for the maps of namespaces. Answered by [`Event::Maps`].
    ///
    /// # Errors
    /// [`SessionError::HelloExpected`] before Hello.
    pub fn resolve(&self, namespaces: &[String]) -> Result<(), SessionError> {
        self.is_greeted()?;
        let mut maps = Maps::default();
        for name in namespaces {
            match self.door.named_map(name) {
                Ok(map) => maps.found.push(map),
                Err(missing) => maps.missing.push(missing.into()),
            }
        }
        self.queue.push(Event::Maps(Box::new(maps)));
        Ok(())
    }

    fn ask(&self, request: Request) -> impl Future<Output = Result<(), Unavailable>> {
        let session = self.queue.session();
        self.door.handle().request(session, request)
    }

    // ---- How they are read ----

    /// Whether another request may be read: what waits for its ack, and for the client, is within bounds.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shared.window.has_room() && self.queue.has_room()
    }

    /// Whether everything published has been answered.
    pub(super) fn has_all_answers(&self) -> bool {
        self.shared.window.is_empty()
    }

    /// Reads and does requests until the session ends, whyever it does.
    pub(crate) async fn read(self, mut source: impl RequestSource, after: AfterRequests) {
        let stop = self.door.handle().stop();
        let end = {
            // Pinned here: whoever is given a future by value has room for it twice.
            let over = pin!(self.queue.over(stop));
            let requests = pin!(self.read_all(&mut source));
            match select_cold(over, requests).await {
                Either::Left(Over::Gone) => return,
                Either::Left(Over::Stopping) => Err(Unavailable::Stopping.into()),
                Either::Right(end) => end,
            }
        };
        // What was taken in is still answered, in a stop as well.
        tokio::select! {
            () = self.queue.gone() => {}
            () = self.shared.window.empty() => {}
        }
        let end = if end.is_ok() && after == AfterRequests::Receive {
            match self.queue.over(stop).await {
                Over::Gone => return,
                Over::Stopping => Err(Unavailable::Stopping.into()),
            }
        } else {
            end
        };
        self.queue.end(end);
    }

    async fn read_all(&self, source: &mut impl RequestSource) -> Result<(), Error> {
        loop {
            self.shared.window.room().await;
            self.queue.room().await;
            if source.do_next(self).await?.is_break() {
                return Ok(());
            }
        }
    }
}
