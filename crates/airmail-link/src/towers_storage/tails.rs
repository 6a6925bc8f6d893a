//! Tails: where a log ends, as each of its towers says, and whether the active one can be believed.
//!
//! A tower may hold its links and serve nothing: its own way to the storage is cut, or it is shown an old state of it.
//! So all towers of a log that is used are asked for its end, again and again. The active tower is *stale* if it has
//! not answered for a while and another one has, or if for a while it has answered with less than another one had said
//! before it was asked. A refusal is no answer: the link of a tower that stands still refuses whatever is asked when it is
//! full, and a tower that is cut off may refuse as well.
//!
//! Answers of towers are compared with each other, and never with where a reader stands: that may be behind because
//! this process is slow, and then no other tower is better.

use super::LOOK_AGAIN;
use crate::tower_ranks::TowerName;
use airmail_log::Tag;
use airmail_model::{LogId, Mono, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which a tower that has refused to say where a log ends is not asked again: it would refuse as fast as it is
/// asked.
const PAUSE: Duration = LOOK_AGAIN;

/// Marks the tags of questions among those of the owner, who has none above it.
const OWN: u64 = 1 << 61;

/// An answer of a tower.
#[derive(Clone, Copy, Debug)]
struct Answer {
    end: Sequence,
    asked: Mono,
    told: Mono,
}

#[derive(Debug, Default)]
struct Tail {
    answer: Option<Answer>,
    /// The question that has no answer.
    question: Option<(Tag, Mono)>,
    /// When it was first asked since it answered, whatever it has refused.
    unanswered: Option<Mono>,
    /// When the last question was refused, if it was.
    refused: Option<Mono>,
}

/// Tails by log and tower. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Tails {
    tails: BTreeMap<LogId, BTreeMap<TowerName, Tail>>,
    questions: BTreeMap<Tag, (LogId, TowerName)>,
    last: u64,
    /// Since when the active tower of a log has answered with less than another.
    behind: BTreeMap<LogId, Mono>,
}

/// Whether a tag is a question's.
pub(super) fn is_question(t: Tag) -> bool {
    t.0 & OWN != 0
}

impl Tails {
    /// A tower is asked where a log ends: the question's tag, unless it was asked already, or has just refused to say.
    pub(super) fn ask(&mut self, now: Mono, log: LogId, tower: &TowerName) -> Option<Tag> {
        let tail = self.tails.entry(log).or_default();
        let tail = tail.entry(tower.clone()).or_default();
        let is_early = |refused: Mono| now < refused.plus(PAUSE);
        if tail.question.is_some() || tail.refused.is_some_and(is_early) {
            return None;
        }
        self.last += 1;
        let t = Tag(OWN | self.last);
        tail.question = Some((t, now));
        tail.unanswered.get_or_insert(now);
        self.questions.insert(t, (log, tower.clone()));
        Some(t)
    }

    /// A question has its answer; `None`: a refusal. Whose it was.
    pub(super) fn answered(
        &mut self,
        now: Mono,
        t: Tag,
        end: Option<Sequence>,
    ) -> Option<(LogId, TowerName)> {
        let (log, tower) = self.questions.remove(&t)?;
        let tail = self.tails.get_mut(&log)?.get_mut(&tower)?;
        let (_, asked) = tail.question.take_if(|(question, _)| *question == t)?;
        tail.refused = end.is_none().then_some(now);
        if let Some(end) = end {
            let told = now;
            tail.answer = Some(Answer { end, asked, told });
            tail.unanswered = None;
        }
        Some((log, tower))
    }

    /// Forgets what a tower has said of a log, and what it was asked.
    pub(super) fn forget(&mut self, log: LogId, tower: &TowerName) {
        let Some(of_log) = self.tails.get_mut(&log) else {
            // Input: a log that nobody was asked about.
            return;
        };
        let question = of_log.remove(tower).and_then(|tail| tail.question);
        if let Some((t, _)) = question {
            self.questions.remove(&t);
        }
        if of_log.is_empty() {
            self.tails.remove(&log);
        }
        self.behind.remove(&log);
    }

    /// Logs that somebody was asked about.
    pub(super) fn logs(&self) -> Vec<LogId> {
        self.tails.keys().copied().collect()
    }

    /// Whether an answer of a tower about a log is awaited.
    pub(super) fn is_asked(&self, log: LogId, tower: &TowerName) -> bool {
        let tail = self.tails.get(&log).and_then(|of_log| of_log.get(tower));
        tail.is_some_and(|tail| tail.question.is_some())
    }

    /// Whether an answer is awaited.
    pub(super) fn is_watching(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether a tower has said where a log ends, when asked not longer ago than this.
    pub(super) fn has_answered(
        &self,
        now: Mono,
        log: LogId,
        tower: &TowerName,
        within: Duration,
    ) -> bool {
        let tail = self.tails.get(&log).and_then(|of_log| of_log.get(tower));
        let answer = tail.and_then(|tail| tail.answer);
        answer.is_some_and(|answer| answer.asked.plus(within) >= now)
    }

    /// The end of a log as a tower has told it.
    pub(super) fn end(&self, log: LogId, tower: &TowerName) -> Option<Sequence> {
        let answer = self.tails.get(&log)?.get(tower)?.answer?;
        Some(answer.end)
    }

    /// A tower among others that is to take a log over from the active one, which is stale; and whether the active one says
    /// nothing at all, not even that it refuses.
    pub(super) fn better<'a>(
        &mut self,
        now: Mono,
        log: LogId,
        active: &TowerName,
        others: impl Iterator<Item = &'a TowerName>,
        patience: Duration,
    ) -> Option<(TowerName, bool)> {
        let of_log = self.tails.get(&log)?;
        let own = of_log.get(active)?;
        let is_late = |asked: &Mono| asked.plus(patience) <= now;
        let says_nothing = own.question.is_some_and(|(_, asked)| is_late(&asked));
        let unanswered = own.unanswered.filter(is_late);
        let mut is_behind = false;
        for other in others {
            let Some(answer) = of_log.get(other).and_then(|tail| tail.answer) else {
                // Input: a tower that has not been asked yet.
                continue;
            };
            if unanswered.is_some_and(|asked| answer.asked >= asked) {
                return Some((other.clone(), says_nothing));
            }
            let is_ahead = own
                .answer
                .is_some_and(|own| own.asked >= answer.told && own.end < answer.end);
            if is_ahead {
                is_behind = true;
                let since = *self.behind.entry(log).or_insert(now);
                if since.plus(patience) <= now {
                    return Some((other.clone(), false));
                }
            }
        }
        if !is_behind {
            self.behind.remove(&log);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::conformance::log;

    const PATIENCE: Duration = Duration::from_secs(1);

    /// Two towers were asked for a log's end at once. What is told a while later of who is better than the first.
    fn asked(ends: [Option<u64>; 2], later: Duration) -> Option<(TowerName, bool)> {
        let mut tails = Tails::default();
        let towers = ["one", "other"].map(TowerName::new);
        let begun = Mono(1_000_000_000);
        let tell = |tails: &mut Tails, at: Mono| {
            for (tower, end) in towers.iter().zip(ends) {
                let t = tails.ask(at, log(0), tower);
                if let (Some(t), Some(end)) = (t, end) {
                    tails.answered(at, t, Some(Sequence(end)));
                }
            }
        };
        tell(&mut tails, begun);
        let better = |tails: &mut Tails, at: Mono| {
            tails.better(at, log(0), &towers[0], towers[1..].iter(), PATIENCE)
        };
        let soon = begun.plus(Duration::from_millis(1));
        tell(&mut tails, soon);
        assert_eq!(better(&mut tails, soon), None);
        better(&mut tails, soon.plus(later))
    }

    #[test]
    fn one_that_says_nothing_is_told_apart_from_one_that_says_less() {
        let other = TowerName::new("other");
        let nothing = asked([None, Some(5)], PATIENCE);
        assert_eq!(nothing, Some((other.clone(), true)));
        let less = asked([Some(3), Some(5)], PATIENCE);
        assert_eq!(less, Some((other, false)));
        assert_eq!(asked([Some(5), Some(5)], PATIENCE), None);
        assert_eq!(asked([None, None], PATIENCE), None);
        assert_eq!(asked([None, Some(5)], PATIENCE / 2), None);
    }

    #[test]
    fn one_that_only_refuses_for_a_while_is_left_for_one_that_answers() {
        let mut tails = Tails::default();
        let [one, other] = ["one", "other"].map(TowerName::new);
        let better = |tails: &mut Tails, at: Mono| {
            tails.better(at, log(0), &one, [&other].into_iter(), PATIENCE)
        };
        let (begun, mut now) = (Mono(1_000_000_000), Mono(1_000_000_000));
        while now < begun.plus(PATIENCE) {
            assert_eq!(better(&mut tails, now), None, "at {now:?}");
            for (tower, end) in [(&one, None), (&other, Some(Sequence(5)))] {
                let t = tails.ask(now, log(0), tower).expect("it is asked again");
                tails.answered(now, t, end);
            }
            now = now.plus(PAUSE);
        }
        let left = Some((other.clone(), false));
        assert_eq!(better(&mut tails, now), left);
        let t = tails.ask(now, log(0), &one).expect("it is asked again");
        tails.answered(now, t, Some(Sequence(5)));
        assert_eq!(better(&mut tails, now.plus(PATIENCE)), None);
    }

    #[test]
    fn a_tower_that_has_refused_to_say_is_not_asked_again_at_once() {
        let mut tails = Tails::default();
        let tower = TowerName::new("one");
        let begun = Mono(1_000_000_000);
        let t = tails.ask(begun, log(0), &tower).expect("it is asked");
        assert!(tails.is_asked(log(0), &tower));
        tails.answered(begun, t, None);
        assert!(!tails.is_asked(log(0), &tower));
        let early = begun.plus(PAUSE - Duration::from_nanos(1));
        assert_eq!(tails.ask(early, log(0), &tower), None);
        let t = tails.ask(begun.plus(PAUSE), log(0), &tower);
        let t = t.expect("it is asked again");
        let told = begun.plus(PAUSE);
        tails.answered(told, t, Some(Sequence(5)));
        assert!(tails.ask(told, log(0), &tower).is_some());
    }
}
