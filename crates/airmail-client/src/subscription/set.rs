//! Sets: many subscriptions with filters on one stream, for one user.
//!
//! Members come, go, and get other filters while messages flow. The node holds each message against the filters of all,
//! and sends it once, with the members that it is for; so they may overlap as they like. Each member is at any place of
//! its own, live or behind, with its own gaps and errors. The price is that all share one credit: a user who is slow with one
//! member is slow with all.

mod items;
mod member;

pub use items::{MemberKey, SetBatch, SetItem, SetItems};
pub use member::SetMember;

use super::connected_core::{ConnectedCore, Step};
use super::places::places_of;
use crate::context::ClientContext;
use crate::core::{Event, Subscriber, SubscriptionKey};
use crate::named_topic::{NamedTopic, TopicNames};
use crate::received::{BatchCursor, Expired, in_order};
use airmail_model::filter::Filter;
use airmail_model::frame::{Hello, Places, State};
use airmail_model::position::LogPosition;
use airmail_model::{Error, LogMap, Position};
use futures::FutureExt as _;
use items::{Members, member_of, note_expired};
use member::{ChangeOutcome, Member};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A set of subscriptions with filters, to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct SetRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    tell_expired: bool,
    headers_only: bool,
}

impl SetRequest {
    pub(crate) fn new(shared: Arc<ClientContext>) -> SetRequest {
        SetRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            tell_expired: false,
            headers_only: false,
        }
    }

    /// Subscribes to topics of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> SetRequest {
        self.namespace = namespace.into();
        self
    }

    /// Has it give [`SetItem::Expired`] for each message that it does not give because that has expired. Default: nothing is
    /// said of those.
    pub fn tell_expired(mut self, tell: bool) -> SetRequest {
        self.tell_expired = tell;
        self
    }

    /// Leaves payloads out. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> SetRequest {
        self.headers_only = without;
        self
    }

    /// Connects to a node. There are no members yet.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`; `UNIMPLEMENTED` from a node that has no sets; `DISCONNECTED` if no node answers within the client's
    /// `connect_timeout`.
    pub async fn open(self) -> Result<SubscriptionSet, Error> {
        let namespace = Arc::clone(&self.namespace);
        let nameless = NamedTopic {
            namespace: Arc::clone(&namespace),
            topic: "".into(),
        };
        let kind = Subscriber::matching;
        let mut set = SubscriptionSet {
            connected: ConnectedCore::new(self.shared, self.namespace, kind),
            options: (self.tell_expired, self.headers_only),
            map: None,
            members: BTreeMap::new(),
            last: 0,
            by_index: Vec::new(),
            names: TopicNames::new(namespace),
            nameless,
            items: VecDeque::new(),
            reading: None,
            given: 0,
        };
        let begun = set.connected.begin_opening();
        let all = set.connected.shared.call_timeout;
        let opened = tokio::time::timeout(all, async {
            while set.map.is_none() {
                set.advance().await?;
            }
            Ok(())
        });
        let opened = opened.await;
        set.connected.end_opening(begun, opened)?;
        Ok(set)
    }
}

/// Many subscriptions with filters, on one stream. See the module's documentation for what it is good for.
///
/// ```no_run
/// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
/// use airmail_client::{SetItem, SetMember};
///
/// let mut set = client.subscription_set().open().await?;
/// let cheap = set.add(SetMember::prefix("quotes/", "price < 10"))?;
/// let mine = set.add(SetMember::topic("quotes/ACME", "price between 40 and 45"))?;
/// while let Some(item) = set.next().await? {
///     match item {
///         SetItem::Message(members, message) if members.contains(&cheap) => {
///             println!("{} is cheap", message.topic());
///             set.change(cheap, "price < 5")?;
///         }
///         SetItem::Changed(member, from) => println!("{member:?} from {from} on"),
///         other => println!("{mine:?}: {other:?}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SubscriptionSet {
    connected: ConnectedCore,
    /// Whether expired messages are told, and whether messages come without payloads.
    options: (bool, bool),
    /// Map of the namespace, once a node has said it.
    map: Option<LogMap>,
    members: BTreeMap<MemberKey, Member>,
    last: u64,
    /// Members by the numbers of their subscriptions.
    by_index: Members,
    names: TopicNames,
    /// Name of the topic of members that select many: the empty one.
    nameless: NamedTopic,
    /// Items that are to be given before what comes next.
    items: VecDeque<SetItem>,
    reading: Option<BatchCursor>,
    /// Cost of the batches that were given as a whole.
    given: u32,
}

impl SubscriptionSet {
    /// Adds a member. [`SetItem::Ready`] tells when a node has it, [`SetItem::Failed`] if it is refused.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `FILTER_INVALID`, `FILTER_TOO_COMPLEX`, `SUBSCRIPTION_INVALID` for a pattern that is none: nothing is
    /// added.
    pub fn add(&mut self, member: SetMember) -> Result<MemberKey, Error> {
        let key = MemberKey(self.last + 1);
        let mut member = Member::new(member, &self.connected.namespace)?;
        let core = &mut self.connected.core;
        if let Some(map) = &self.map {
            member.begin(map, self.options, |spec| core.add(spec))?;
        }
        for part in member.keys() {
            let index = part.index() as usize;
            if index >= self.by_index.len() {
                self.by_index.resize(index + 1, None);
            }
            self.by_index[index] = Some((part, key));
        }
        self.last += 1;
        self.members.insert(key, member);
        Ok(key)
    }

    /// Gives a member another filter. [`SetItem::Changed`] tells from where on it is in force: of a selection of topics in several
    /// logs when all of them have it.
    ///
    /// If the connection is lost before a node has answered, the member goes on with the new filter from the last message
    /// that it was given.
    ///
    /// # Errors
    /// `FILTER_INVALID`, `FILTER_TOO_COMPLEX`: nothing is changed.
    pub fn change(&mut self, member: MemberKey, filter: &str) -> Result<(), Error> {
        let filter = Arc::new(Filter::parse(filter)?);
        self.change_to(member, &filter, false);
        Ok(())
    }

    fn change_to(&mut self, member: MemberKey, filter: &Arc<Filter>, is_quiet: bool) {
        let Some(member) = self.members.get_mut(&member) else {
            // Input: a member that has ended.
            return;
        };
        member.change(Arc::clone(filter), is_quiet);
        for part in member.keys() {
            self.connected.core.change(part, Arc::clone(filter));
        }
    }

    /// Removes a member: nothing comes for it any more.
    pub fn remove(&mut self, member: MemberKey) {
        let Some(member) = self.members.remove(&member) else {
            // Input: a member that has ended.
            return;
        };
        for part in member.keys() {
            self.connected.core.remove(part);
            self.by_index[part.index() as usize] = None;
        }
    }

    /// Counts the members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Tells whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Waits for the next thing; `None` once an error has ended all. A set without members waits until one is added, so
    /// whoever does both does not wait here alone.
    ///
    /// # Errors
    /// The error that ended all members: `NAMESPACE_NOT_FOUND` when the namespace is deleted, `PERMISSION_DENIED`, and the like. A
    /// lost connection does not end them.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<SetItem>, Error> {
        loop {
            if let Some(item) = self.at_hand() {
                return Ok(Some(item));
            }
            if !self.wait().await? {
                return Ok(None);
            }
        }
    }

    /// Waits like [`SubscriptionSet::next`], but gives all messages of one batch together.
    ///
    /// # Errors
    /// Those of [`SubscriptionSet::next`].
    ///
    /// # Cancel safety
    /// That of [`SubscriptionSet::next`].
    pub async fn next_batch(&mut self) -> Result<Option<SetItems<'_>>, Error> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(SetItems::Item(item)));
            }
            if let Some(reading) = self.reading.take_if(|reading| reading.has_more()) {
                self.given += reading.cost();
                let (shared, options) = (&self.connected.shared, self.options);
                let (by_index, items) = (&self.by_index, &mut self.items);
                let tell = |owner, gone| note_expired(options.0, by_index, items, owner, gone);
                if let Some(messages) = reading.rest(|| shared.mono(), tell) {
                    let by_index = &self.by_index;
                    return Ok(Some(SetItems::Messages(SetBatch { messages, by_index })));
                }
                continue;
            }
            if !self.wait().await? {
                return Ok(None);
            }
        }
    }

    /// Takes the next thing that has arrived.
    fn at_hand(&mut self) -> Option<SetItem> {
        loop {
            let reading = self.reading.as_mut();
            if let Some(reading) = reading.filter(|_| self.items.is_empty()) {
                let (shared, options) = (&self.connected.shared, self.options);
                let (by_index, items) = (&self.by_index, &mut self.items);
                let tell = |owner, gone| note_expired(options.0, by_index, items, owner, gone);
                reading.skip_expired(|| shared.mono(), tell);
            }
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            let (names, epoch) = (&mut self.names, self.connected.epoch);
            let reading = self.reading.as_mut()?;
            let (owners, message) = reading.next_named(epoch, |record| names.of(record))?;
            let members = owners.into_iter();
            let members = members.filter_map(|owner| member_of(&self.by_index, owner));
            let members: Vec<MemberKey> = members.collect();
            if !members.is_empty() {
                return Some(SetItem::Message(members, message));
            }
        }
    }

    /// Waits until there is something at hand; `false`: there is nothing more, now or later. What was given before counts as
    /// consumed.
    async fn wait(&mut self) -> Result<bool, Error> {
        self.connected.consumed(&mut self.reading, &mut self.given);
        loop {
            while let Some((key, event)) = self.next_arrived() {
                if self.apply(key, event) {
                    return Ok(true);
                }
            }
            if self.connected.has_ended()? {
                return Ok(false);
            }
            self.advance().await?;
        }
    }

    /// Takes what is handed over next, after a look at what has arrived meanwhile, by which it may be overtaken.
    fn next_arrived(&mut self) -> Option<(SubscriptionKey, Event)> {
        let wants_look = self.connected.wants_look();
        let looked = wants_look.then(|| self.advance().now_or_never());
        self.connected.next_arrived(looked.flatten())
    }

    /// Applies an event; tells whether there is something at hand now.
    fn apply(&mut self, key: SubscriptionKey, event: Event) -> bool {
        if let Event::Messages(received) = event {
            // Its key is that of any of those that it is for.
            self.reading = Some(BatchCursor::new(received));
            return true;
        }
        let Some(member) = member_of(&self.by_index, key) else {
            // Input: what had come for a member before it was removed.
            if let Event::Expired(seen) = event {
                self.connected.core.consumed(seen.cost);
            }
            return false;
        };
        match event {
            Event::Messages(_) => {}
            Event::Gap(gap) => self.items.push_back(SetItem::Gap(member, gap.into())),
            Event::Expired(seen) => {
                self.connected.core.consumed(seen.cost);
                let log = seen.log;
                let numbers = seen.numbers.into_iter();
                let gone = |sequence| SetItem::Expired(member, Expired { log, sequence });
                self.items.extend(numbers.map(gone));
            }
            Event::Status(State::Live { .. } | State::Detached { .. }) => {
                let is_told = self.connected.core.is_live(key).is_some();
                let of = self.members.get_mut(&member);
                if of.is_some_and(|of| is_told && of.told(key)) {
                    self.items.push_back(SetItem::Ready(member));
                }
            }
            Event::Status(State::Changed { places }) => {
                self.change_answered((member, key), Ok(places));
            }
            Event::Status(State::Unchanged(why)) => {
                self.change_answered((member, key), Err(why));
            }
            Event::Status(State::Failed(error)) => {
                // Its other logs end with it.
                self.remove(member);
                self.items.push_back(SetItem::Failed(member, error));
            }
            Event::Status(State::Complete { .. } | State::Removed) => {}
        }
        !self.items.is_empty()
    }

    fn change_answered(
        &mut self,
        (member, key): (MemberKey, SubscriptionKey),
        answer: Result<Places, Error>,
    ) {
        let of = self.members.get_mut(&member);
        match of.and_then(|of| of.change_answered(key, answer)) {
            None | Some(ChangeOutcome::Quiet) => {}
            Some(ChangeOutcome::Changed(logs)) => {
                let position = self.position_of(logs);
                let changed = position.map(|position| SetItem::Changed(member, position));
                self.items.extend(changed);
            }
            Some(ChangeOutcome::Unchanged(error, back)) => {
                if let Some(filter) = back {
                    self.change_to(member, &filter, true);
                }
                self.items.push_back(SetItem::Unchanged(member, error));
            }
        }
    }

    /// Gives the position from which a member goes on after the last message that it was given: one of all its logs. `None`
    /// before a node has answered, if it did not start at a position, and if it has ended.
    #[must_use]
    pub fn position(&self, member: MemberKey) -> Option<Position> {
        let ConnectedCore { core, events, .. } = &self.connected;
        let mut logs = Vec::new();
        for part in self.members.get(&member)?.keys() {
            logs.extend(places_of(core, part, self.reading.as_ref(), events)?);
        }
        self.position_of(logs)
    }

    fn position_of(&self, mut logs: Vec<LogPosition>) -> Option<Position> {
        in_order(&mut logs);
        Some(Position {
            namespace: self.connected.id?,
            epoch: self.connected.epoch,
            logs,
        })
    }

    async fn advance(&mut self) -> Result<(), Error> {
        let (members, by_index) = (&self.members, &self.by_index);
        let nameless = &self.nameless;
        let named = |index: u32| {
            let (_, member) = (*by_index.get(index as usize)?)?;
            Some(members.get(&member)?.named().unwrap_or(nameless))
        };
        let step = self.connected.advance(named).await;
        if let Step::Opened(map) = step? {
            if self.connected.protocol < Hello::PROTOCOL_MATCHES {
                self.connected.ended = true;
                let spoken = format!("protocol version {}", self.connected.protocol);
                return Err(Error::unimplemented("matches")
                    .value(spoken)
                    .limit(format!("at least {}", Hello::PROTOCOL_MATCHES)));
            }
            self.map = Some(map);
        }
        Ok(())
    }
}
