//! Whether a subscription may be made on a stream, and what it is for.

use super::Gateway;
use super::scope::{FilteredPlace, SlotLogs};
use crate::access::Action;
use crate::catalog::Entry;
use crate::keys::SessionKey;
use airmail_model::filter::Filter;
use airmail_model::frame::{Subscribe, Wanted};
use airmail_model::selector::Selector;
use airmail_model::{Error, ErrorCode, Lane, LogId, TopicHash};
use std::sync::Arc;

/// Messages that a subscription is to be for, where that is in the maps of its namespace.
pub(super) enum Asked {
    /// Those of this topic.
    Topic(TopicHash),
    /// Those of the logs of a slot whose topics a selector selects.
    Selection(SlotLogs, Arc<Selector>),
}

impl Asked {
    /// A hash that maps give the logs of what it is for.
    pub(super) fn in_maps(&self) -> TopicHash {
        match self {
            Asked::Topic(topic) => *topic,
            Asked::Selection(logs, _) => logs.in_maps(),
        }
    }

    fn filtered_place(&self) -> FilteredPlace {
        match self {
            Asked::Topic(topic) => FilteredPlace::Topic(*topic),
            Asked::Selection(logs, _) => FilteredPlace::Logs(*logs),
        }
    }
}

fn invalid(field: &str) -> Error {
    Error::new(ErrorCode::SubscriptionInvalid).field(field)
}

/// Finds in a namespace's map what a subscription is to be for.
fn asked(entry: &Entry, wanted: &Wanted) -> Result<Asked, Error> {
    let (log, selector) = match wanted {
        Wanted::Topic(topic) => return Ok(Asked::Topic(*topic)),
        Wanted::Selected { log, selector } => (*log, selector),
    };
    let logs = entry.map.logs(Lane::Normal).len();
    let place = match log {
        None if logs > 1 => {
            return Err(invalid("log")
                .value("none")
                .limit(format_args!("0 to {}: a selection of each log", logs - 1)));
        }
        log => log.unwrap_or(0),
    };
    let Some(slot) = entry.map.slot_of(place) else {
        let limit = format_args!("at most {}", logs - 1);
        return Err(invalid("log").value(place).limit(limit));
    };
    let namespace = entry.namespace.id;
    let logs = SlotLogs { namespace, slot };
    Ok(Asked::Selection(logs, Arc::clone(selector)))
}

impl Gateway {
    /// Whether a subscription may be made; what it is for, and its namespace.
    pub(super) fn may_add(
        &mut self,
        session: SessionKey,
        wanted: &Subscribe,
    ) -> Result<(Arc<Entry>, Asked), Error> {
        let id = wanted.namespace;
        if id == LogId::SYSTEM.namespace {
            return Err(Error::new(ErrorCode::NamespaceReserved)
                .field("namespace")
                .value(id)
                .limit("at least 1"));
        }
        let action = match wanted.until {
            None => Action::Subscribe(id, &wanted.wanted),
            Some(_) => Action::History(id, &wanted.wanted),
        };
        let principal = &self.sessions[session].principal;
        let grant = self.access.authorizer.authorize(principal, action)?;
        self.sessions[session].granted(id, grant.roles);
        if !self.namespaces.is_ready {
            return Err(self.busy("node"));
        }
        let mine = &self.sessions[session];
        if mine.find(&self.subs, wanted.subscription).is_some() {
            return Err(invalid("subscription")
                .value(wanted.subscription.0)
                .limit("a number not in use"));
        }
        let most = self.config.limits.subscriptions;
        if mine.subscriptions() >= most as usize {
            return Err(invalid("subscriptions")
                .value(mine.subscriptions() + 1)
                .limit(most));
        }
        let Some(entry) = self.catalog().get(id).cloned() else {
            return Err(Error::new(ErrorCode::NamespaceNotFound)
                .field("namespace")
                .value(id));
        };
        let asked = asked(&entry, &wanted.wanted)?;
        self.may_match(session, wanted, asked.filtered_place())?;
        self.may_select(session, &asked)?;
        self.may_filter(session, wanted, asked.filtered_place())?;
        Ok((entry, asked))
    }

    /// Whether the subscriptions of a stream may be named, or not, and so whether this one may be beside those before it.
    fn may_match(
        &self,
        session: SessionKey,
        wanted: &Subscribe,
        place: FilteredPlace,
    ) -> Result<(), Error> {
        if !self.sessions[session].may_match(wanted.matches) {
            let limit = "as those before it on its stream";
            return Err(invalid("matches").value(wanted.matches).limit(limit));
        }
        if wanted.matches {
            let with_filter = invalid("filter").value("none");
            let with_filter = with_filter.limit("a filter, where `matches` is asked for");
            return wanted.filter.as_ref().map(|_| ()).ok_or(with_filter);
        }
        if !self.subs.is_alone(session, place) {
            return Ok(());
        }
        let without_matches = "on a stream without `matches`";
        Err(match (&wanted.wanted, &wanted.filter) {
            (Wanted::Selected { selector, .. }, _) => {
                let limit = format_args!("one selection of a log {without_matches}");
                invalid("selector").value(selector).limit(limit)
            }
            (Wanted::Topic(_), filter) => {
                let filter = filter
                    .as_deref()
                    .map_or_else(String::new, Filter::to_string);
                let limit = format_args!("one subscription to a topic {without_matches}");
                invalid("filter").value(filter).limit(limit)
            }
        })
    }

    /// Whether a subscription may be a selection, or be none.
    fn may_select(&self, session: SessionKey, asked: &Asked) -> Result<(), Error> {
        let selection = match asked {
            Asked::Topic(_) => None,
            Asked::Selection(logs, selector) => Some((*logs, selector)),
        };
        if !self.sessions[session].may_select(selection.is_some()) {
            let (value, limit) = match selection {
                Some((_, selector)) => {
                    let limit = "none: those before it on its stream are to topics";
                    (selector.to_string(), limit)
                }
                None => {
                    let limit = "one: those before it on its stream are selections";
                    ("none".to_owned(), limit)
                }
            };
            return Err(invalid("selector").value(value).limit(limit));
        }
        let selectors = &self.subs.selectors;
        selection.map_or(Ok(()), |(logs, selector)| {
            selectors.may_add(logs.namespace, selector)
        })
    }

    /// Whether a subscription may have its filter, or have none.
    fn may_filter(
        &mut self,
        session: SessionKey,
        wanted: &Subscribe,
        place: FilteredPlace,
    ) -> Result<(), Error> {
        let filter = wanted.filter.as_deref();
        if !self.sessions[session].may_filter(filter.is_some()) {
            let (value, limit) = match filter {
                Some(filter) => (filter.to_string(), "none, as those before it on its stream"),
                None => (
                    "none".to_owned(),
                    "a filter, as those before it on its stream",
                ),
            };
            return Err(invalid("filter").value(value).limit(limit));
        }
        let filters = &mut self.subs.filters;
        filter.map_or(Ok(()), |filter| filters.may_add(place, filter))
    }
}
