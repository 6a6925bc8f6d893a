//! The readers' side: order, nothing twice, nothing in silence, and in the end everything or a gap.

use super::Case;
use crate::proof::hostile::history::{Begin, Event, Hole, Place};
use crate::proof::stamp::Stamp;
use airmail_client::GapReason;
use std::collections::{BTreeMap, BTreeSet};

/// One reader's way through the round.
#[derive(Default)]
struct Walk {
    /// The last place given, since it last began anew.
    last: Option<Place>,
    seen: BTreeSet<Stamp>,
    /// Least number that may come, by publisher.
    next: BTreeMap<u32, u64>,
    /// It was told a loss, and has been given nothing since.
    told: bool,
    /// When it last began anew: after that, a restore lets it once more.
    anew: usize,
    /// It was given what was rolled back, by the restore at this time, and was not told yet.
    untold: Option<(usize, Place)>,
}

/// All that one reader was given and told.
#[derive(Default)]
struct Got {
    stamps: BTreeSet<Stamp>,
    gaps: Vec<(usize, Hole)>,
}

impl Case<'_> {
    /// Faults in the readers' deliveries, in the order in which they came.
    pub(super) fn read(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut walks: BTreeMap<usize, Walk> = BTreeMap::new();
        let mut numbers: BTreeMap<(u32, Place), Stamp> = BTreeMap::new();
        for (at, event) in self.events.iter().enumerate() {
            match event {
                Event::Wrong { reader, why } => wrong.push(format!("reader {reader}: {why}")),
                Event::Told { reader, gap } => {
                    let walk = walks.entry(*reader).or_default();
                    let told = self.told(walk, at, gap);
                    wrong.extend(told.err().map(|why| format!("reader {reader}: {why}")));
                }
                Event::Given {
                    reader,
                    place,
                    stamp,
                } => {
                    let walk = walks.entry(*reader).or_default();
                    let given = self.given(walk, at, *place, *stamp);
                    let here = format!("reader {reader}, {place:?}");
                    wrong.extend(given.into_iter().map(|why| format!("{here}: {why}")));
                    let first = numbers.entry((stamp.topic, *place)).or_insert(*stamp);
                    if first != stamp {
                        wrong.push(format!("{here}: is {stamp:?}, and was {first:?}"));
                    }
                }
                _ => {}
            }
        }
        for (place, stamp) in self.kept.values().flat_map(|kept| &kept.messages) {
            let given = numbers.get(&(stamp.topic, *place));
            if let Some(given) = given.filter(|given| *given != stamp) {
                wrong.push(format!("kept at {place:?}: {stamp:?}; given was {given:?}"));
            }
        }
        wrong
    }

    fn told(&self, walk: &mut Walk, at: usize, gap: &Hole) -> Result<(), String> {
        match gap.reason {
            GapReason::Unused => Ok(()),
            GapReason::Loss => {
                walk.told = true;
                walk.untold = None;
                let lost = self.losses().any(|loss| loss < at);
                lost.then_some(())
                    .ok_or_else(|| format!("was told {gap:?}, and nothing was lost"))
            }
            GapReason::Retention => Err(format!("was told {gap:?}, and nothing was too old")),
        }
    }

    fn given(&self, walk: &mut Walk, at: usize, place: Place, stamp: Stamp) -> Vec<String> {
        let mut wrong = Vec::new();
        let restored = |after: usize| {
            let mut times = self.restores.iter().map(|(_, restored)| *restored);
            times.any(|restored| (after..at).contains(&restored))
        };
        if std::mem::take(&mut walk.told) && restored(walk.anew) {
            *walk = Walk {
                anew: at,
                ..Walk::default()
            };
        }
        if let Some(last) = walk.last.replace(place) {
            if last.life != place.life && !restored(0) {
                wrong.push(format!("another life after {last:?}"));
            }
            if last.life == place.life && place.number <= last.number {
                wrong.push(format!("came after {last:?}: {stamp:?}"));
            }
        }
        if !walk.seen.insert(stamp) {
            wrong.push(format!("came twice: {stamp:?}"));
        }
        let next = walk.next.entry(stamp.publisher).or_default();
        if stamp.number < *next {
            wrong.push(format!("came out of order, {next} was next: {stamp:?}"));
        }
        *next = stamp.number + 1;
        let invoked = self.invoked.get(&stamp).copied().unwrap_or(usize::MAX);
        if invoked > at {
            wrong.push(format!("came before it was published: {stamp:?}"));
        }
        if self.was_refused(&stamp) {
            wrong.push(format!("was refused, and came: {stamp:?}"));
        }
        if let Some((restored, gone)) = walk.untold
            && invoked > restored
        {
            wrong.push(format!("was not told that {gone:?} is gone: {stamp:?}"));
            walk.untold = None;
        }
        if let Some(restored) = self.gone(at, place, stamp) {
            walk.untold = Some((restored, place));
        }
        wrong
    }

    /// The restore that took a message away that was given at `at`, if one did. What the copy has of what
    /// came while it was made stands under the same number, be it in another life.
    fn gone(&self, at: usize, place: Place, stamp: Stamp) -> Option<usize> {
        let (acknowledged, _) = self.stored(&stamp)?;
        let kept = self.places.get(&stamp);
        let stays = kept.is_some_and(|kept| kept.number == place.number) || self.removed(&stamp);
        self.rolled_back(acknowledged)
            .filter(|restored| !stays && at < *restored)
    }

    /// Messages that readers lack and were not told about.
    pub(super) fn incomplete(&self) -> Vec<String> {
        let mut all: BTreeMap<usize, Got> = BTreeMap::new();
        for (at, event) in self.events.iter().enumerate() {
            match event {
                Event::Given { reader, stamp, .. } => {
                    all.entry(*reader).or_default().stamps.insert(*stamp);
                }
                Event::Told { reader, gap } => {
                    all.entry(*reader).or_default().gaps.push((at, *gap));
                }
                _ => {}
            }
        }
        let mut wrong = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            if let Event::Began {
                reader,
                topic,
                from,
            } = event
            {
                let got = all.entry(*reader).or_default();
                let lacks = self.lacks(at, *topic, *from, got);
                wrong.extend(summary(*reader, &lacks));
            }
        }
        wrong
    }

    /// Numbers that a reader lacks that began at this event.
    fn lacks(&self, began: usize, topic: u32, from: Begin, got: &Got) -> Vec<u64> {
        let in_range = |stamp: &Stamp| match from {
            Begin::Earliest => true,
            Begin::Latest => self.invoked.get(stamp).is_some_and(|at| *at > began),
        };
        let kept = self.kept.get(&topic).into_iter();
        let kept = kept.flat_map(|kept| &kept.messages);
        let kept = kept.filter(|(_, stamp)| !got.stamps.contains(stamp) && in_range(stamp));
        let unexcused = kept.filter(|(place, stamp)| {
            let gaps = got.gaps.iter().filter(|(_, gap)| gap.covers(place.number));
            !gaps
                .into_iter()
                .any(|(told, _)| self.is_older(stamp, *told))
        });
        let mut lacks: Vec<u64> = unexcused.map(|(place, _)| place.number).collect();
        for stamp in self.removals.iter().flat_map(|(_, lost)| *lost) {
            let Some((acknowledged, Some((_, number)))) = self.stored(stamp) else {
                continue;
            };
            let excused = self.places.contains_key(stamp)
                || self.rolled_back(acknowledged).is_some()
                || got.stamps.contains(stamp)
                || got.gaps.iter().any(|(_, gap)| gap.covers(number));
            if stamp.topic == topic && in_range(stamp) && !excused {
                lacks.push(number);
            }
        }
        lacks
    }

    /// Whether a message was there before something was lost that a gap, told then, may tell of.
    fn is_older(&self, stamp: &Stamp, told: usize) -> bool {
        let acknowledged = self.stored(stamp).map(|(at, _)| at);
        let since = acknowledged.or_else(|| self.invoked.get(stamp).copied());
        let since = since.unwrap_or(usize::MAX);
        self.losses().any(|loss| (since..told).contains(&loss))
    }
}

fn summary(reader: usize, lacks: &[u64]) -> Option<String> {
    let (first, last) = (lacks.iter().min()?, lacks.iter().max()?);
    let count = lacks.len();
    Some(format!(
        "reader {reader} lacks {count} messages from number {first} to {last}, and no gap tells of them"
    ))
}
