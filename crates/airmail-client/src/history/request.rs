//! A request for history: of what, from where to where, and which of it.

use super::History;
use super::log_history::Query;
use crate::context::ClientContext;
use crate::named_topic::{AskedTopics, NamedTopic, topic_name};
use airmail_model::Error;
use airmail_model::filter::Filter;
use airmail_model::frame::{Start, Until};
use std::sync::Arc;

/// A request for history, to be opened.
#[derive(Debug)]
#[must_use = "nothing is read before it is opened"]
pub struct HistoryRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topics: AskedTopics,
    since: Start,
    until: Until,
    limit: Option<u64>,
    tell_expired: bool,
    filter: Option<String>,
    headers_only: bool,
}

impl HistoryRequest {
    pub(crate) fn new(shared: Arc<ClientContext>, topics: AskedTopics) -> HistoryRequest {
        HistoryRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topics,
            since: Start::Earliest,
            until: Until::Now,
            limit: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
        }
    }

    /// Reads topics of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> HistoryRequest {
        self.namespace = namespace.into();
        self
    }

    /// Sets where it begins. Default: with the oldest message kept. For a selection a position has to name all logs of the
    /// namespace, as those do that a selection gives; a number is one of each log.
    pub fn since(mut self, since: Start) -> HistoryRequest {
        self.since = since;
        self
    }

    /// Sets where it ends. Default: with the newest message there is now.
    pub fn until(mut self, until: Until) -> HistoryRequest {
        self.until = until;
        self
    }

    /// Limits the number of messages, to the oldest ones. Default: no limit.
    pub fn limit(mut self, limit: u64) -> HistoryRequest {
        self.limit = Some(limit);
        self
    }

    /// Has it give [`crate::Item::Expired`] for each message that it leaves out because that has expired. Default: nothing is said
    /// of those.
    pub fn tell_expired(mut self, tell: bool) -> HistoryRequest {
        self.tell_expired = tell;
        self
    }

    /// Gives only messages that this filter matches, as `price > 20 and region in ('eu', 'us')`: of their attributes, in the
    /// language of `docs/filters.md`. Default: all.
    pub fn filter(mut self, filter: impl Into<String>) -> HistoryRequest {
        self.filter = Some(filter.into());
        self
    }

    /// Leaves payloads out: each message comes with its attributes and all else, and an empty payload, which the node
    /// does not send. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> HistoryRequest {
        self.headers_only = without;
        self
    }

    /// Opens it. No node is asked before [`History::next`].
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `SUBSCRIPTION_INVALID` for a pattern that is none, `FILTER_INVALID`, `FILTER_TOO_COMPLEX`.
    pub fn open(self) -> Result<History, Error> {
        let (topic, selector): (Arc<str>, _) = match self.topics {
            AskedTopics::Named(topic) => {
                topic_name(&topic)?;
                (topic, None)
            }
            AskedTopics::Selected(selector) => ("".into(), Some(Arc::new(selector?))),
        };
        let filter = self.filter.as_deref().map(Filter::parse).transpose()?;
        let query = Query {
            named: Arc::new(NamedTopic {
                namespace: self.namespace,
                topic,
            }),
            selector,
            since: self.since,
            until: self.until,
            tell_expired: self.tell_expired,
            filter,
            headers_only: self.headers_only,
        };
        Ok(History::new(self.shared, query, self.limit))
    }
}
