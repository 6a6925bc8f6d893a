//! Messages that a subscription is for: a topic, or a selection of topics.

use crate::v1;
use airmail_model::frame::Wanted;
use airmail_model::map::SLOTS;
use airmail_model::selector::{Glob, Selector};
use airmail_model::{Error, ErrorCode, Limits, NamespaceId, TopicName};
use std::sync::Arc;

impl From<v1::history_request::Selector> for v1::add::Selector {
    fn from(selector: v1::history_request::Selector) -> v1::add::Selector {
        match selector {
            v1::history_request::Selector::Prefix(text) => v1::add::Selector::Prefix(text),
            v1::history_request::Selector::Pattern(text) => v1::add::Selector::Pattern(text),
            v1::history_request::Selector::Everything(all) => v1::add::Selector::Everything(all),
        }
    }
}

impl From<v1::add::Selector> for v1::history_request::Selector {
    fn from(selector: v1::add::Selector) -> v1::history_request::Selector {
        match selector {
            v1::add::Selector::Prefix(text) => v1::history_request::Selector::Prefix(text),
            v1::add::Selector::Pattern(text) => v1::history_request::Selector::Pattern(text),
            v1::add::Selector::Everything(all) => v1::history_request::Selector::Everything(all),
        }
    }
}

/// Messages that are asked for, by names. They are not of a namespace yet, as its number is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// Those of this topic.
    Topic(&'a str),
    /// Those that a selector selects, of the log at this place.
    Selected(Arc<Selector>, Option<u16>),
}

impl Named<'_> {
    /// The same within a namespace.
    #[must_use]
    pub fn within(self, namespace: NamespaceId) -> Wanted {
        match self {
            Named::Topic(topic) => Wanted::Topic(TopicName::hash_of(namespace, topic)),
            Named::Selected(selector, log) => Wanted::Selected { log, selector },
        }
    }
}

fn invalid(field: &str, value: impl std::fmt::Display, limit: impl std::fmt::Display) -> Error {
    let error = Error::new(ErrorCode::SubscriptionInvalid).field(field);
    error.value(value).limit(limit)
}

/// Messages that are asked for, from the fields of a message: a topic, or a selector and the place of a log.
///
/// # Errors
/// `TOPIC_INVALID`; `SUBSCRIPTION_INVALID` for a selector that is none, and for fields that do not go together.
pub fn named_from_proto<'a>(
    topic: &'a str,
    selector: Option<&v1::add::Selector>,
    log: Option<u32>,
    limits: &Limits,
) -> Result<Named<'a>, Error> {
    let Some(selector) = selector else {
        if let Some(log) = log {
            return Err(invalid("log", log, "absent, where a topic is named"));
        }
        TopicName::check(topic, limits)?;
        return Ok(Named::Topic(topic));
    };
    if !topic.is_empty() {
        return Err(invalid("topic", topic, "empty, beside a selector"));
    }
    let selector = Arc::new(selector_from_proto(selector, limits)?);
    let place = |log: u32| {
        let place = u16::try_from(log).ok();
        let place = place.filter(|place| usize::from(*place) < SLOTS);
        place.ok_or_else(|| invalid("log", log, format_args!("at most {}", SLOTS - 1)))
    };
    Ok(Named::Selected(selector, log.map(place).transpose()?))
}

fn selector_from_proto(selector: &v1::add::Selector, limits: &Limits) -> Result<Selector, Error> {
    match selector {
        v1::add::Selector::Prefix(prefix) if prefix.len() > limits.topic_bytes as usize => {
            let value = format_args!("{} bytes", prefix.len());
            let limit = format_args!("at most {} bytes", limits.topic_bytes);
            Err(invalid("prefix", value, limit))
        }
        v1::add::Selector::Prefix(prefix) => Ok(Selector::Prefix(prefix.as_str().into())),
        v1::add::Selector::Pattern(pattern) => {
            let glob = Glob::parse(pattern);
            let glob = glob.map_err(|why| invalid("pattern", pattern, why))?;
            Ok(Selector::Pattern(glob))
        }
        v1::add::Selector::Everything(true) => Ok(Selector::All),
        v1::add::Selector::Everything(false) => Err(invalid("everything", false, true)),
    }
}

fn selector_to_proto(selector: &Selector) -> v1::add::Selector {
    match selector {
        Selector::Prefix(prefix) => v1::add::Selector::Prefix(prefix.to_string()),
        Selector::Pattern(pattern) => v1::add::Selector::Pattern(pattern.to_string()),
        Selector::All => v1::add::Selector::Everything(true),
    }
}

/// The selector and the place of the log of what is asked for, where it is a selection.
#[must_use]
pub fn selection_to_proto(wanted: &Wanted) -> (Option<v1::add::Selector>, Option<u32>) {
    match wanted {
        Wanted::Topic(_) => (None, None),
        Wanted::Selected { log, selector } => {
            (Some(selector_to_proto(selector)), log.map(u32::from))
        }
    }
}
