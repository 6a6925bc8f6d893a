//! Where a subscription stands: by its own account, and at the node.

use super::subscription_slot::{Part, PartMode};
use super::{Subscriber, SubscriptionKey};
use airmail_model::position::LogPosition;
use airmail_model::{Lane, MapEpoch, Position, Sequence};

/// Lanes in which a node names a log of every subscription.
const LANES: [Lane; 1] = [Lane::Normal];

impl Subscriber {
    /// Gives the position of a subscription: everything before it has come by events. `None` until
    /// it is known, or when the key is void.
    #[must_use]
    pub fn position(&self, key: SubscriptionKey) -> Option<Position> {
        let slot = self.slot(key)?;
        let epoch = self.epochs.get(&slot.namespace).copied();
        slot.position(epoch.unwrap_or(MapEpoch(1)), |part| self.next_of(part))
    }

    /// Gives where a subscription stands in a lane: everything before it has come by events. `None` until that is known,
    /// where it has no log in the lane, or when the key is void.
    #[must_use]
    pub fn place(&self, key: SubscriptionKey, lane: Lane) -> Option<LogPosition> {
        let part = self.slot(key)?.part(lane)?;
        Some(LogPosition {
            next: self.next_of(part),
            ..part.at
        })
    }

    /// Gives where a subscription stands in each lane, in order: its position, taken apart. Nothing as long as it has none, as
    /// where it waits for a number that its log has not got to.
    pub fn places(&self, key: SubscriptionKey) -> impl Iterator<Item = LogPosition> {
        let slot = self.slot(key);
        let slot = slot.filter(|slot| !slot.waits_for_its_number(|part| self.next_of(part)));
        let places = slot.map(|slot| slot.places(|part| self.next_of(part)));
        places.into_iter().flatten()
    }

    /// Gives the first number of a part that is not accounted for.
    pub(super) fn next_of(&self, part: &Part) -> Sequence {
        match part.mode {
            PartMode::Live => self.live.next(part.at.log, part.at.next),
            PartMode::Detached | PartMode::Untold => part.at.next,
        }
    }

    /// Tells how a subscription stands at the node: live in every log, or behind in some. `None` until each log of it
    /// has been named since it was requested, or when the key is void.
    #[must_use]
    pub fn is_live(&self, key: SubscriptionKey) -> Option<bool> {
        let slot = self.slot(key)?;
        let is_named =
            |lane: &Lane| !slot.is(*lane, PartMode::Untold) && slot.part(*lane).is_some();
        if !LANES.iter().all(is_named) {
            return None;
        }
        let mut parts = slot.parts.iter().flatten();
        Some(parts.all(|part| part.mode == PartMode::Live))
    }
}
