//! The subscriptions that the messages of a delivery are for, translated both ways.

use crate::v1;
use airmail_model::frame::{Matches, SubscriptionId};
use airmail_model::{Error, ErrorCode};
use bytes::Bytes;

/// The number of `Delivery.matches`.
const MATCHES_FIELD: u32 = 11;

/// The subscriptions that messages are for, as a message.
pub(super) fn matches_to_proto(matches: &Matches) -> v1::Matches {
    let is_each_for_one = matches.messages() == matches.subscriptions().len();
    let counts = matches.counts().filter(|_| !is_each_for_one);
    v1::Matches {
        counts: counts.collect(),
        subscriptions: matches.subscriptions().iter().map(|id| id.0).collect(),
    }
}

/// The subscriptions that messages are for, from a message: of a delivery of so many.
pub(super) fn matches_from_proto(matches: v1::Matches, messages: u16) -> Result<Matches, Error> {
    let one_each = vec![1; matches.subscriptions.len()];
    let counts = if matches.counts.is_empty() {
        &one_each
    } else {
        &matches.counts
    };
    let ids = matches.subscriptions.iter().copied().map(SubscriptionId);
    let known = Matches::new(counts, ids.collect());
    known
        .filter(|known| known.messages() == usize::from(messages))
        .ok_or_else(|| {
            let (counts, all) = (matches.counts.len(), matches.subscriptions.len());
            Error::new(ErrorCode::InvalidArgument)
                .field("delivery.matches")
                .value(format_args!("{counts} counts, {all} subscriptions"))
                .limit(format_args!("at least one for each of {messages} messages"))
        })
}

/// The field of a delivery that says for whom its messages are.
pub(super) fn tail_of(matches: &Matches) -> Bytes {
    let matches = matches_to_proto(matches);
    let length = prost::encoding::message::encoded_len(MATCHES_FIELD, &matches);
    let mut tail = Vec::with_capacity(length);
    prost::encoding::message::encode(MATCHES_FIELD, &matches, &mut tail);
    tail.into()
}
