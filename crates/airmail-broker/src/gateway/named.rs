//! Sessions that are told which of their subscriptions each message is for.
//!
//! Such subscriptions may overlap as they like, so one message may be for very many. A delivery names so many at most
//! (`matches_max`), or has a single message: where a piece of a batch has more for a session, that is given as
//! several deliveries, and each is work of its own.

use super::fanout::Fanout;
use super::matched::{OfSession, Recipient};
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::SessionKey;
use airmail_model::Sequence;
use std::sync::Arc;

/// Entries that it takes a unit of work to name, about.
const ENTRIES_A_UNIT: usize = 4;

/// The place of the first record that is beyond what one delivery may hold; `None` if all may be in it.
fn cut(those: &[Recipient], entries_max: usize) -> Option<u16> {
    let entries: usize = those.iter().map(|of| of.places.len()).sum();
    if entries <= entries_max {
        return None;
    }
    let places_of = |place: usize| those.iter().filter_map(move |of| of.places.get(place));
    match entries_max / those.len() {
        // So many that a single record may be for them all.
        0 => places_of(0).min().map(|first| first + 1),
        // None has more of its records before that.
        each => places_of(each).min().copied(),
    }
}

impl Gateway {
    /// Gives a session its part of a piece, and says which of its subscriptions each record is for; or the beginning of it, and
    /// gives back what is still to be given. Or detaches those whom it concerns.
    pub(super) fn give_named(
        &mut self,
        (session, from, end): (SessionKey, Sequence, Sequence),
        fanout: &mut Fanout<'_>,
        mut those: OfSession,
        out: &mut GatewayEffects,
    ) -> OfSession {
        if !self.may_deliver(session) {
            let range = self.logs[fanout.log]
                .tail
                .of(Pace::InTurns)
                .ranges
                .get(&session);
            // What comes before that was given already, where the piece was too much for one delivery.
            let at = range.map_or(from, |range| range.next.max(from));
            for of in those {
                self.detach(of.sub, fanout.log, at, out);
            }
            return OfSession::new();
        }
        let records = fanout.stored.batch.records();
        let cut = cut(&those, self.config.matches_max).filter(|cut| *cut < records);
        let rest = cut.map_or_else(OfSession::new, |cut| split(&mut those, cut));
        let last = match cut {
            Some(cut) => {
                let (index, _) = fanout.stored.batch.head(cut);
                fanout.stored.base.plus(index.into()).before()
            }
            None => end.before(),
        };
        let of = &self.sessions[session];
        let roles = fanout.roles_that_count(of.roles(fanout.id.namespace));
        let wants = (of.headers_only(), &roles);
        let named = those.iter().map(|of| (of.id, &*of.places));
        let (part, matches) = fanout.named_part(named, wants);
        #[cfg(feature = "sabotage")]
        let matches = match self.config.bug {
            Some(crate::sabotage::Bug::NamedOnce) => matches.and_then(|all| {
                let firsts = (0..all.messages()).filter_map(|at| all.of(at).first().copied());
                let counts = vec![1; all.messages()];
                airmail_model::frame::Matches::new(&counts, firsts.collect())
            }),
            _ => matches,
        };
        if let Some(left_out) = &part.left_out {
            for of in &those {
                let (forbidden, expired) = left_out.among(&of.places);
                self.stats.forbidden += forbidden;
                self.tell_expired(of.sub, fanout.log, &expired, out);
            }
        }
        if let Some(body) = part.body {
            let entries = matches.as_ref().map_or(0, |of| of.subscriptions().len());
            let units = u32::try_from(entries / ENTRIES_A_UNIT).unwrap_or(u32::MAX);
            self.live.work.spend(units);
            let clock = fanout.judged.as_ref().and_then(|of| of.clock);
            let range = (fanout.log, Pace::InTurns, last);
            self.give_live(session, range, fanout.stored, (clock, body, matches), out);
        }
        rest
    }
}

/// Takes out what is at a place or behind.
fn split(those: &mut OfSession, cut: u16) -> OfSession {
    let mut rest = OfSession::new();
    for of in those.iter_mut() {
        let (before, behind) = of
            .places
            .split_at(of.places.partition_point(|at| *at < cut));
        if !behind.is_empty() {
            let places = Arc::from(behind);
            rest.push(Recipient {
                places,
                ..of.clone()
            });
            of.places = before.into();
        }
    }
    those.retain(|of| !of.places.is_empty());
    rest
}

#[cfg(test)]
mod tests {
    use super::super::filters::FilterKey;
    use super::*;
    use crate::keys::SubKey;
    use airmail_model::frame::{Generation, SubscriptionId};
    use proptest::prelude::*;

    fn recipients(places: &[Vec<u16>]) -> OfSession {
        let of = |(n, places): (usize, &Vec<u16>)| Recipient {
            sub: SubKey::new(n),
            id: SubscriptionId(n as u32),
            generation: Generation(1),
            filter: FilterKey::default(),
            places: places.as_slice().into(),
        };
        places.iter().enumerate().map(of).collect()
    }

    proptest! {
        #[test]
        fn all_is_given_in_order_in_deliveries_that_are_bounded(
            places in prop::collection::vec(prop::collection::btree_set(0_u16..40, 1..12), 1..12),
            entries_max in 1_usize..30,
        ) {
            let places: Vec<Vec<u16>> = places.into_iter().map(|of| of.into_iter().collect()).collect();
            let mut left = recipients(&places);
            let mut given = vec![Vec::new(); places.len()];
            let mut begin = 0;
            while !left.is_empty() {
                let cut = cut(&left, entries_max);
                let rest = cut.map_or_else(OfSession::new, |cut| split(&mut left, cut));
                let entries: Vec<u16> = left.iter().flat_map(|of| of.places.to_vec()).collect();
                let first = entries.iter().min().copied().unwrap();
                let is_single = entries.iter().all(|place| *place == first);
                prop_assert!(entries.len() <= entries_max || is_single);
                prop_assert!(first >= begin, "what is behind comes later");
                begin = cut.unwrap_or(u16::MAX);
                prop_assert!(entries.iter().all(|place| *place < begin));
                for of in &left {
                    given[of.sub.place()].extend_from_slice(&of.places);
                }
                left = rest;
            }
            prop_assert_eq!(given, places);
        }
    }
}
