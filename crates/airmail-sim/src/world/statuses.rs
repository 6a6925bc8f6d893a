//! Statuses: where a client is told that its subscriptions stand, in each lane.

use super::Space;
use super::client::Client;
use super::watch::{From, Watch};
use crate::census::{Census, Kind};
use crate::invariants::{Checked, Violation};
use crate::ledger::Ledger;
use airmail_client::core::SubscriptionKey;
use airmail_model::frame::State;
use airmail_model::position::LogPosition;
use airmail_model::{ErrorCode, Lane, Sequence};

impl Client {
    /// Forgets a subscription that has ended.
    pub(super) fn forget(&mut self, key: SubscriptionKey) {
        for lane in Lane::ALL {
            self.watches_in(lane).remove(&key);
        }
    }

    /// A subscription is told its state.
    pub(super) fn status(
        &mut self,
        key: SubscriptionKey,
        state: &State,
        (ledger, census): (&Ledger, &mut Census),
        spaces: &[Space],
    ) -> Checked {
        let who = format!("client {}", self.number);
        let Some(space) = self.watches.get(&key).map(|watch| watch.space) else {
            return Ok(());
        };
        match state {
            State::Live { .. } | State::Detached { .. } => {
                let is_live = matches!(state, State::Live { .. });
                let places = state.places();
                if places.is_empty() {
                    let detail = format!("{who}: {state:?}");
                    return Err(Violation::new("G2 a status names a log", detail));
                }
                census.add(Kind::ToldOfBothLanes, u64::from(places.len() > 1));
                for place in places {
                    self.stands((key, place), is_live, (ledger, census), spaces)?;
                }
            }
            State::Complete { places } => {
                for place in places {
                    self.completed((key, *place), ledger)?;
                }
                let missing = Lane::ALL.map(|lane| self.watches_in(lane).remove(&key));
                // A harmed log tells nothing. What was acknowledged since the files were set back to may be forgotten, with
                // the lane; and a gateway that has not heard of the lane ends a history without it.
                let is_owed = |watch: &Watch| {
                    watch.floor >= Sequence::FIRST
                        && !watch.is_early
                        && !ledger.restored
                        && ledger.harm_of(watch.log).is_none()
                };
                if let Some(watch) = missing.into_iter().flatten().find(is_owed) {
                    let detail = format!("{who}: {state:?} says nothing of {}", watch.log);
                    return Err(Violation::new("G2 a history ends in each lane", detail));
                }
            }
            State::Changed { .. } | State::Unchanged(_) => {
                census.count(Kind::FilterChanged);
                for lane in Lane::ALL {
                    let watch = self.watches_in(lane).get_mut(&key);
                    if watch.is_some_and(|watch| !watch.change_answered(state, ledger)) {
                        let detail = format!("{who}: {state:?}");
                        return Err(Violation::new("filters: a change was asked for", detail));
                    }
                }
            }
            State::Removed => {}
            State::Failed(error)
                if error.code() == ErrorCode::NamespaceNotFound && spaces[space].leaving =>
            {
                self.forget(key);
            }
            State::Failed(error) => {
                let detail = format!("{who}: {error}");
                return Err(Violation::new("G2 a good subscription holds", detail));
            }
        }
        Ok(())
    }

    /// A subscription is told where it stands in a lane.
    fn stands(
        &mut self,
        (key, at): (SubscriptionKey, LogPosition),
        is_live: bool,
        (ledger, census): (&Ledger, &mut Census),
        spaces: &[Space],
    ) -> Checked {
        let who = format!("client {}", self.number);
        let LogPosition { log, next, .. } = at;
        let Some(watch) = self.watches_in(log.lane).get_mut(&key) else {
            return Ok(());
        };
        if ledger.harm_of(watch.log).is_some() {
            return Ok(());
        }
        let shrinks = spaces[watch.space].shrinks;
        let gone_on = watch.stands((log, next), (is_live, shrinks), ledger);
        gone_on.into_iter().for_each(|kind| census.count(kind));
        let place = ledger.lines.place(log, next);
        watch.away = false;
        if shrinks {
            watch.begun.get_or_insert(place);
        }
        if watch.from == From::Unknown {
            watch.from = From::Number(place);
            // A gateway that hears of lane high later gives the subscription a part in it then, from its first on.
            let mut before = ledger.acked(watch.log, Sequence::FIRST, place);
            let is_first_of_all = watch.is_early && (shrinks || before.next().is_none());
            watch.is_early = false;
            let begins_at_end = watch.begins_at_end && !is_first_of_all;
            if let Some(end) = watch.end.as_mut().filter(|_| begins_at_end) {
                end.answered(ledger, place, &who)?;
            }
        }
        if ledger.lines.of(log) != watch.log {
            let detail = format!("{who}: {log} is not {}", watch.log);
            return Err(Violation::new("a topic keeps to its log", detail));
        }
        Ok(())
    }

    /// A subscription has had all that it asked for in a lane.
    fn completed(&mut self, (key, at): (SubscriptionKey, LogPosition), ledger: &Ledger) -> Checked {
        let who = format!("client {}", self.number);
        let lane = at.log.lane;
        let Some(watch) = self.watches_in(lane).get_mut(&key) else {
            return Ok(());
        };
        let end = ledger.lines.place(watch.at, at.next);
        if let (Some(asked), From::Number(from)) = (&mut watch.end, &watch.from)
            && *from <= asked.floor()
        {
            asked.answered(ledger, end, &who)?;
        }
        self.check_range((key, lane), end, ledger)?;
        let watch = self.watches_in(lane).remove(&key);
        watch.map_or(Ok(()), |watch| watch.check_ended(end, ledger, &who))
    }
}
