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

/// Entries that it takes a unit of work to name, about.
const ENTRIES_A_UNIT: usize = 4;

/// The place behind the last record that the next delivery holds: as many as it may hold, or one. Of a batch of so many.
fn cut(those: &[Recipient], (records, entries_max): (u16, usize)) -> u16 {
    let entries = |cut: u16| -> usize { those.iter().map(|of| of.before(cut).len()).sum() };
    let fits = |cut: u16| entries(cut) <= entries_max;
    let each = entries_max.checked_div(those.len()).unwrap_or_default();
    // None has more than `each` before that.
    let beyond = those.iter().filter_map(|of| of.left().get(each)).min();
    let Some(mut cut) = beyond.copied().filter(|_| !fits(records)) else {
        // Input: few enough for a single delivery.
        return records;
    };
    let is_single = each == 0 && !fits(cut + 1);
    let further = |cut: u16, step: u16| cut.saturating_add(step).min(records);
    let mut step = 1;
    while fits(further(cut, step)) {
        cut = further(cut, step);
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if fits(further(cut, step)) {
            cut = further(cut, step);
        }
    }
    cut + u16::from(is_single)
}

impl Gateway {
    /// Gives a session its part of a piece, and says which of its subscriptions each record is for; or the beginning of it, and
    /// gives back those for whom there is more. Or detaches those whom it concerns.
    pub(super) fn give_named(
        &mut self,
        (session, end): (SessionKey, Sequence),
        fanout: &mut Fanout<'_>,
        mut those: OfSession,
        out: &mut GatewayEffects,
    ) -> OfSession {
        if !self.may_deliver(session, fanout.log) {
            for of in those {
                self.detach(of.sub, fanout.log, end, out);
            }
            return OfSession::new();
        }
        let records = fanout.stored.batch.records();
        let cut = cut(&those, (records, self.config.matches_max));
        let last = if cut < records {
            let (index, _) = fanout.stored.batch.head(cut);
            fanout.stored.base.plus(index.into()).before()
        } else {
            end.before()
        };
        let of = &self.sessions[session];
        let roles = fanout.roles_that_count(of.roles(fanout.id.namespace));
        let wants = (of.headers_only(), &roles);
        let named = those.iter().map(|of| (of.id, of.before(cut)));
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
                let (forbidden, expired) = left_out.among(of.before(cut));
                self.stats.forbidden += forbidden;
                self.tell_expired(of.sub, fanout.log, &expired, out);
            }
        }
        let entries: usize = those.iter().map(|of| of.before(cut).len()).sum();
        let units = u32::try_from(entries / ENTRIES_A_UNIT).unwrap_or(u32::MAX);
        self.live.work.spend(units);
        if let Some(body) = part.body {
            let clock = fanout.judged.as_ref().and_then(|of| of.clock);
            let range = (fanout.log, Pace::InTurns, last);
            self.give_live(session, range, fanout.stored, (clock, body, matches), out);
        }
        those.retain(|of| of.give(cut));
        those
    }
}

#[cfg(test)]
mod tests {
    use super::super::filters::FilterKey;
    use super::*;
    use crate::keys::SubKey;
    use airmail_model::frame::{Generation, SubscriptionId};
    use proptest::prelude::*;

    const RECORDS: u16 = 40;

    fn recipients(places: &[Vec<u16>]) -> OfSession {
        let of = |(n, places): (usize, &Vec<u16>)| Recipient {
            sub: SubKey::new(n),
            id: SubscriptionId(n as u32),
            generation: Generation(1),
            filter: FilterKey::default(),
            places: places.as_slice().into(),
            given: 0,
        };
        places.iter().enumerate().map(of).collect()
    }

    proptest! {
        #[test]
        fn all_is_given_in_order_in_deliveries_that_are_bounded(
            places in prop::collection::vec(prop::collection::btree_set(0..RECORDS, 1..12), 1..12),
            entries_max in 1_usize..30,
        ) {
            let places: Vec<Vec<u16>> = places.into_iter().map(|of| of.into_iter().collect()).collect();
            let mut left = recipients(&places);
            let mut given = vec![Vec::new(); places.len()];
            let mut begin = 0;
            while !left.is_empty() {
                let cut = cut(&left, (RECORDS, entries_max));
                let entries: Vec<u16> = left.iter().flat_map(|of| of.before(cut).to_vec()).collect();
                let first = entries.iter().min().copied().unwrap();
                let is_single = entries.iter().all(|place| *place == first);
                prop_assert!(entries.len() <= entries_max || is_single);
                let with_next = left.iter().map(|of| of.before(cut + 1).len()).sum::<usize>();
                prop_assert!(cut == RECORDS || with_next > entries_max, "it holds as much as it may");
                prop_assert!(first >= begin, "what is behind comes later");
                begin = cut;
                prop_assert!(entries.iter().all(|place| *place < begin));
                for of in &left {
                    given[of.sub.place()].extend_from_slice(of.before(cut));
                }
                left.retain(|of| of.give(cut));
            }
            prop_assert_eq!(given, places);
        }
    }
}
