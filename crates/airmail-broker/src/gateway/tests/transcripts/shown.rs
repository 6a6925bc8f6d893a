//! Replies to clients, as lines.

use crate::transcript::{show_delivered, show_extent};
use airmail_model::frame::{Channel, Reply, State};

/// A reply, as a line.
pub(super) fn show_reply(reply: &Reply) -> String {
    match reply {
        Reply::Acked { request, result } => match result {
            Ok(ack) => {
                let numbers = show_extent(ack.extent);
                format!("publish #{} is stored as {numbers}", request.0)
            }
            Err(refused) => format!("publish #{} is refused: {}", request.0, refused.error),
        },
        Reply::Delivery(delivery) => format!(
            "{}, after {} up to {}: {}",
            show_channel(delivery.channel),
            delivery.previous,
            delivery.last,
            show_delivered(&delivery.body, delivery.base)
        ),
        Reply::Gap {
            channel,
            previous,
            last,
            why,
            ..
        } => format!(
            "{}, after {previous} up to {last}: gap ({})",
            show_channel(*channel),
            format!("{why:?}").to_lowercase()
        ),
        Reply::Expired(expired) => format!(
            "subscription {} is told that {:?} have expired",
            expired.subscription.0, expired.numbers
        ),
        Reply::Clock { node, .. } => format!("the node's clock shows {}", node.0),
        Reply::Mark { previous, next, .. } => {
            format!("live, after {previous} up to {}: mark", next.before())
        }
        Reply::Status {
            subscription,
            state,
            ..
        } => format!("subscription {} is {}", subscription.0, show_state(state)),
    }
}

fn show_channel(channel: Channel) -> String {
    match channel {
        Channel::Live => "live".to_owned(),
        Channel::Detached(id, _) => format!("subscription {}", id.0),
    }
}

fn show_state(state: &State) -> String {
    match state {
        State::Live { places } => {
            let places = places.iter().map(|place| {
                let (next, life) = (place.next, place.incarnation.0);
                format!("live from {next} on, in life {life}")
            });
            places.collect::<Vec<_>>().join(", and ")
        }
        State::Detached {
            incarnation,
            next,
            resumed,
            lost_before,
            ..
        } => {
            let resumed = if *resumed { ", and goes on" } else { "" };
            let lost = lost_before
                .map(|end| format!("; of the life before, {next} to {} is lost", end.before()));
            let (life, lost) = (incarnation.0, lost.unwrap_or_default());
            format!("detached from {next} on, in life {life}{resumed}{lost}")
        }
        State::Complete { places } => {
            let places = places.iter().map(|place| place.next.to_string());
            format!("complete before {}", places.collect::<Vec<_>>().join(", "))
        }
        State::Changed { places } => {
            let places = places.iter().map(|place| place.next.to_string());
            format!("changed from {} on", places.collect::<Vec<_>>().join(", "))
        }
        State::Unchanged(error) => format!("not changed: {error}"),
        State::Removed => "removed".to_owned(),
        State::Failed(error) => format!("ended: {error}"),
    }
}
