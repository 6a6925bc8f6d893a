//! Requests of the gateway about a log: appends, questions, its clock, a new life, topics. Each is a call of
//! the storage, but that the log's end is asked for all at once ([`ends`](super::ends)).

use super::storage_calls::Purpose;
use super::{Tower, TowerEffects};
use crate::keys::TowerLogKey;
use crate::link::{Answer, FromTower, MemberId, Question};
use airmail_log::{Bounds, Call, Refusal, TopicPage};
use airmail_model::frame::Ack;
use airmail_model::{AppendTime, Batch, Checked, LogId, Mono, Sequence};
use std::time::Duration;

/// Time after which what was refused since the log's node is away is worth trying again: links come back within half a
/// second of their nodes, and publishers should not wait for longer than that.
const AWAY_RETRY: Duration = Duration::from_millis(250);

impl Tower {
    /// Appends a batch of the gateway's.
    pub(super) fn append(
        &mut self,
        (log, number): (LogId, u64),
        batch: Checked<Batch>,
        sole: bool,
        out: &mut TowerEffects,
    ) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted before the gateway was told, which then answers by itself.
            return;
        };
        let is_apart = sole && self.capabilities.appends_apart;
        if self.logs[key].is_lost && !is_apart {
            let retry_after = AWAY_RETRY;
            let result = Err(Refusal::Away { retry_after });
            return out.tell(FromTower::Appended {
                log,
                number,
                result,
            });
        }
        out.call(Call::Append {
            t: self.calls.tag(Purpose::Append(key, number)),
            log,
            map: batch.map_epoch(),
            batch,
            sole,
        });
    }

    /// The storage has taken a batch of the gateway's, or has refused it.
    pub(super) fn appended(
        &mut self,
        key: TowerLogKey,
        number: u64,
        result: Result<Ack, Refusal>,
        out: &mut TowerEffects,
    ) {
        let Some(log) = self.logs.get_mut(key) else {
            // Input: a log that was deleted meanwhile, and whose publishes the gateway answered then.
            return;
        };
        if let Ok(ack) = &result {
            log.end = log.end.max(ack.extent.next());
        }
        out.tell(FromTower::Appended {
            log: log.id,
            number,
            result,
        });
    }

    /// Answers what the gateway asks about a log, or asks the storage.
    pub(super) fn ask(
        &mut self,
        member: MemberId,
        log: LogId,
        question: Question,
        out: &mut TowerEffects,
    ) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        let mut tag = || self.calls.tag(Purpose::Answer(key, member));
        match question {
            #[cfg(feature = "sabotage")]
            Question::End if self.config.bug == Some(crate::sabotage::Bug::EndNotAsked) => {
                self.answer(key, member, Answer::End, out);
            }
            #[cfg(feature = "sabotage")]
            Question::End if self.config.bug == Some(crate::sabotage::Bug::EarlierEndTaken) => {
                self.ends.ask_earlier(key, member);
            }
            Question::End => self.ends.ask(key, member),
            Question::Bounds => out.call(Call::Bounds { t: tag(), log }),
            Question::Time(at) => out.call(Call::FindTime { t: tag(), log, at }),
        }
    }

    /// Gives the gateway an answer, with where the log ends as far as the storage has told.
    pub(super) fn answer(
        &mut self,
        key: TowerLogKey,
        member: MemberId,
        answer: Answer,
        out: &mut TowerEffects,
    ) {
        let Some(log) = self.logs.get(key) else {
            // Input: a log that was deleted meanwhile, with its subscriptions.
            return;
        };
        out.tell(FromTower::Answer {
            member,
            end: log.end,
            answer,
        });
    }

    /// The storage has found where a time begins, which is not beyond the end: that may be further than was known.
    pub(super) fn found(
        &mut self,
        key: TowerLogKey,
        member: MemberId,
        at: Sequence,
        out: &mut TowerEffects,
    ) {
        if let Some(log) = self.logs.get_mut(key) {
            log.end = log.end.max(at);
        }
        self.answer(key, member, Answer::Time(at), out);
    }

    /// Asks the storage for a log's clock.
    pub(super) fn ask_clock(&mut self, log: LogId, asked: Mono, out: &mut TowerEffects) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        let t = self.calls.tag(Purpose::Clock(key, asked));
        out.call(Call::Clock { t, log });
    }

    /// The storage has told a log's clock, or could not.
    pub(super) fn clock_answered(
        &mut self,
        (key, asked): (TowerLogKey, Mono),
        clock: Option<AppendTime>,
        out: &mut TowerEffects,
    ) {
        if let Some(log) = self.logs.get(key) {
            let log = log.id;
            out.tell(FromTower::Clock { log, asked, clock });
        }
    }

    /// Begins a new life of a log.
    pub(super) fn renew(&mut self, log: LogId, out: &mut TowerEffects) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        let t = self.calls.tag(Purpose::Renew(key));
        out.call(Call::Renew { t, log });
    }

    /// A log has begun a new life, or could not.
    pub(super) fn renewed(
        &mut self,
        key: TowerLogKey,
        result: Result<Bounds, Refusal>,
        out: &mut TowerEffects,
    ) {
        let Some(log) = self.logs.get_mut(key) else {
            // Input: a log that was deleted meanwhile, with its subscriptions.
            return;
        };
        if let Ok(bounds) = &result {
            log.end = log.end.max(bounds.next);
        }
        let result = result.map(|bounds| bounds.incarnation);
        if let Ok(incarnation) = result {
            log.incarnation = incarnation;
        }
        out.tell(FromTower::Renewed {
            log: log.id,
            result,
        });
    }

    /// Lists a page of a log's topics.
    pub(super) fn list_topics(
        &mut self,
        listing: u64,
        part: usize,
        log: LogId,
        page: Box<TopicPage>,
        out: &mut TowerEffects,
    ) {
        let t = self.calls.tag(Purpose::Topics(listing, part));
        out.call(Call::Topics { t, log, page });
    }
}
