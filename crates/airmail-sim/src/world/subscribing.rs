//! The beginnings of a client's subscriptions, and how it gives them up.

use super::Space;
use super::client::{Client, Saved};
use super::watch::{From, Watch};
use crate::batching::topic_name;
use crate::census::{Census, Kind};
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::invariants::Checked;
use crate::invariants::ends::Asked;
use crate::invariants::filters::{Wish, Wishes};
use crate::invariants::selections::Subject;
use crate::ledger::Ledger;
use crate::lines::number_of;
use crate::shape::popular;
use airmail_client::core::{SubscriptionKey, SubscriptionSpec};
use airmail_model::frame::{Start, Until, Wanted};
use airmail_model::{AppendTime, Lane, LogId, Position, Sequence, TopicHash};
use std::collections::BTreeSet;

impl Client {
    /// Begins a subscription somewhere, or a look into history.
    pub(super) fn subscribe(
        &mut self,
        at: usize,
        space: &Space,
        now: AppendTime,
        evidence: &mut Evidence,
        chance: &mut Entropy,
    ) {
        if let Some(overlap) = &mut self.overlap
            && overlap.coin()
        {
            return self.change_filter();
        }
        if self.watches.len() >= self.most {
            return;
        }
        let Evidence { ledger, census, .. } = evidence;
        let topic = topic_name(popular(chance, space.topics + 1)).hash(space.id);
        let mut log = space.map.log(topic, Lane::Normal);
        let mut subject = self.subject((topic, log), ledger);
        let high = |line| number_of(ledger.last_acked(line)).0;
        let (start, from) = match chance.below(6) {
            0 | 1 => (Start::Latest, From::Unknown),
            2 => (Start::Earliest, earliest(space)),
            3 => {
                let number = Sequence(chance.between(1, high(log) + 2));
                let from = match space.moved {
                    Some(_) => From::Wish(number, None),
                    None => From::Number(number),
                };
                (Start::Sequence(number), from)
            }
            4 => {
                let back = i64::try_from(chance.below(3_000_000)).unwrap_or(0);
                let time = AppendTime(now.0 - back);
                (Start::Time(time), From::Time(time))
            }
            _ => match chance.pick(&self.saved) {
                Some(saved) if saved.space == at => {
                    (subject, log) = (saved.subject, saved.log);
                    let from = from_saved(&saved.position, space, ledger, census);
                    (Start::Position(saved.position.clone()), from)
                }
                _ => (Start::Earliest, earliest(space)),
            },
        };
        let is_single = self.overlap.is_none()
            && (subject.topic().is_none() || self.wish((subject, log), ledger).is_some());
        let has_one = |watch: &Watch| (watch.subject, watch.log) == (subject, log);
        if is_single && self.watches.values().any(has_one) {
            // Where they do not overlap there is one selection of a log, and with filters one subscription to a topic.
            return;
        }
        census.count(kind_of(&start));
        let history = from != From::Unknown && chance.chance(250_000);
        let until = history.then(|| match chance.below(3) {
            0 => {
                census.count(Kind::HistoryNow);
                Until::Now
            }
            1 => {
                census.count(Kind::HistoryNumber);
                Until::Sequence(Sequence(chance.between(1, high(log) + 5)))
            }
            _ => {
                census.count(Kind::HistoryTime);
                let back = i64::try_from(chance.below(2_000_000)).unwrap_or(0);
                Until::Time(AppendTime(now.0 - back))
            }
        });
        self.begin_watch((at, from), space, (subject, log), (start, until), evidence);
    }

    /// Topics that it wants, by one of them and its log.
    fn subject(&mut self, (topic, log): (TopicHash, LogId), ledger: &Ledger) -> Subject {
        if let Some(overlap) = &mut self.overlap {
            // Topics beside selections.
            return match overlap.below(4) {
                0 => Subject::All,
                1 => Subject::Ends('1'),
                _ => Subject::Topic(topic),
            };
        }
        if ledger.selections.of_client(self.number) {
            return ledger.selections.of_subscription(self.number, log);
        }
        Subject::Topic(topic)
    }

    /// Asks for a subscription to topics of a log, which begins and ends there.
    fn begin_watch(
        &mut self,
        (at, from): (usize, From),
        space: &Space,
        (subject, log): (Subject, LogId),
        (start, until): (Start, Option<Until>),
        evidence: &mut Evidence,
    ) {
        let Evidence { ledger, census, .. } = evidence;
        let wish = self.wish((subject, log), ledger);
        let is_latest = matches!(start, Start::Latest);
        // Of lane high a number says nothing: it begins with the latest, and ends now.
        let is_latest_of_high = matches!(start, Start::Latest | Start::Sequence(_));
        let from_high = from_in_high((&start, &from), space, ledger);
        let wanted = SubscriptionSpec {
            namespace: space.id,
            wanted: wanted(subject, log, space),
            start,
            until,
            // A topic's subscriptions ask for it or not, so that no draw depends on it.
            tell_expired: subject
                .topic()
                .is_none_or(|topic| topic.0.is_multiple_of(2)),
            filter: wish.map(Wish::filter),
            headers_only: false,
        };
        census.add(Kind::SubscribedFiltered, u64::from(wish.is_some()));
        let key = self.core.add(wanted);
        self.asks += 1;
        census.add(
            Kind::SubscribedSelection,
            u64::from(subject.topic().is_none()),
        );
        let high = LogId {
            lane: Lane::High,
            ..log
        };
        let is_until_now = matches!(until, Some(Until::Now));
        let is_until_now_of_high = matches!(until, Some(Until::Now | Until::Sequence(_)));
        let of_lanes = [
            (log, from, (is_latest, is_until_now)),
            (high, from_high, (is_latest_of_high, is_until_now_of_high)),
        ];
        for (log, from, (begins_now, ends_now)) in of_lanes {
            let mut watch = Watch::new(at, subject, log, from, self.roles.clone());
            watch.given.wishes = wish.map(Wishes::new);
            watch.end = (begins_now || ends_now).then(|| Asked::now(ledger, log));
            watch.begins_at_end = begins_now;
            watch.is_early = log.lane == Lane::High && !space.has_high;
            watch.floor = ledger.last_acked(log);
            if let Some(Until::Time(time)) = until {
                watch.given.not_after = Some(time);
            }
            self.watches_in(log.lane).insert(key, watch);
        }
    }

    /// The wish that it has for messages of topics of a log, if its subscriptions have filters.
    fn wish(&mut self, (subject, log): (Subject, LogId), ledger: &Ledger) -> Option<Wish> {
        let filters = &ledger.filters;
        let has_filters = filters.of_client(self.number);
        let mut of = subject.topic().unwrap_or(TopicHash(log.index.0.into()));
        if let Some(overlap) = &mut self.overlap {
            of = TopicHash(overlap.next().into());
        }
        has_filters.then(|| filters.of_subscription(self.number, of))
    }

    /// Gives one of its subscriptions another filter.
    fn change_filter(&mut self) {
        let Some(overlap) = &mut self.overlap else {
            return;
        };
        let keys: Vec<SubscriptionKey> = self.watches.keys().copied().collect();
        let Some(key) = overlap.pick(&keys).copied() else {
            return;
        };
        let wish = Wish::of(overlap);
        let mut has_wishes = false;
        for lane in Lane::ALL {
            let watch = self.watches_in(lane).get_mut(&key);
            if let Some(wishes) = watch.and_then(|watch| watch.given.wishes.as_mut()) {
                wishes.ask(wish);
                has_wishes = true;
            }
        }
        if has_wishes {
            self.core.change(key, wish.filter());
        }
    }

    /// Subscribes to topics of a namespace that have messages, from its beginning: those whose logs are wanted.
    pub(super) fn read_all(
        &mut self,
        at: usize,
        space: &Space,
        ledger: &Ledger,
        wanted: impl Fn(LogId) -> bool,
    ) {
        const TOPICS_MAX: usize = 100;
        let entries = ledger.iter().map(|(_, entry)| entry);
        let here = entries.filter(|entry| entry.log.namespace == space.id && wanted(entry.log));
        let topics: BTreeSet<TopicHash> = here.map(|entry| entry.topic).collect();
        for topic in topics.into_iter().take(TOPICS_MAX) {
            let key = self.core.add(SubscriptionSpec {
                namespace: space.id,
                wanted: Wanted::Topic(topic),
                start: Start::Earliest,
                until: None,
                tell_expired: false,
                filter: None,
                headers_only: false,
            });
            self.asks += 1;
            for lane in Lane::ALL {
                let log = space.map.log(topic, lane);
                let subject = Subject::Topic(topic);
                let watch = Watch::new(at, subject, log, earliest(space), self.roles.clone());
                self.watches_in(lane).insert(key, watch);
            }
        }
    }

    /// Ends a subscription; its position is kept to begin from again.
    pub(super) fn unsubscribe(&mut self, ledger: &Ledger, chance: &mut Entropy) -> Checked {
        let keys: Vec<SubscriptionKey> = self.watches.keys().copied().collect();
        let Some(key) = chance.pick(&keys).copied() else {
            return Ok(());
        };
        self.note_positions();
        self.check_complete(key, ledger)?;
        self.high.remove(&key);
        if let Some(watch) = self.watches.remove(&key)
            && let Some(position) = watch.position
            && !watch.away
        {
            self.saved.push(Saved {
                space: watch.space,
                subject: watch.subject,
                log: watch.log,
                position,
            });
        }
        self.core.remove(key);
        Ok(())
    }
}

/// Messages that are asked for: of a topic, or of topics of a log.
fn wanted(subject: Subject, log: LogId, space: &Space) -> Wanted {
    match (subject.topic(), subject.selector()) {
        (None, Some(selector)) => {
            let place = space.map.logs(Lane::Normal).position(|of| of == log);
            let log = place.and_then(|place| u16::try_from(place).ok());
            Wanted::Selected { log, selector }
        }
        (topic, _) => Wanted::Topic(topic.unwrap_or_default()),
    }
}

/// Where a subscription from the earliest record begins. What was removed before is not told of.
const fn earliest(space: &Space) -> From {
    if space.shrinks {
        From::Unknown
    } else {
        From::Number(Sequence::FIRST)
    }
}

/// Where a subscription begins in lane high that begins so in lane normal.
fn from_in_high((start, from): (&Start, &From), space: &Space, ledger: &Ledger) -> From {
    match start {
        Start::Latest | Start::Sequence(_) => From::Unknown,
        Start::Earliest | Start::Time(_) => from.clone(),
        Start::Position(position) => {
            let mut logs = position.logs.iter();
            match logs.find(|at| at.log.lane == Lane::High) {
                Some(at) => From::Number(ledger.lines.place(at.log, at.next)),
                // It is from before there was lane high.
                None => earliest(space),
            }
        }
    }
}

/// Where a subscription from a saved position begins. Counts one in a log from before a move.
fn from_saved(position: &Position, space: &Space, ledger: &Ledger, census: &mut Census) -> From {
    let at = position.logs.first();
    debug_assert!(at.is_none_or(|at| at.log.lane == Lane::Normal));
    let next = at.map_or(Sequence(1), |at| ledger.lines.place(at.log, at.next));
    let moves = at.map_or(0, |at| ledger.lines.moves_before(at.log));
    let is_earlier = space.moves() > moves;
    census.add(Kind::PositionOfEarlierMap, u64::from(is_earlier));
    From::Number(next)
}

/// The kind of event that a beginning is.
const fn kind_of(start: &Start) -> Kind {
    match start {
        Start::Latest => Kind::SubscribedLatest,
        Start::Earliest => Kind::SubscribedEarliest,
        Start::Sequence(_) => Kind::SubscribedNumber,
        Start::Time(_) => Kind::SubscribedTime,
        Start::Position(_) => Kind::SubscribedPosition,
    }
}
