//! Everything that was delivered, held against the filters in force: by an index, and now and then by a loop.

use super::reader::ReaderGot;
use crate::system::Failure;
use airmail_client::{Client, Items, Start};
use airmail_match::{Cursor, FilterId, Matcher, MatcherLimits};
use airmail_model::filter::{Facts, Filter};
use airmail_model::random;
use std::collections::BTreeMap;

/// Messages of which one is held against all filters by a loop, too.
const LOOPED: u64 = 100;
/// Work of one call that tends the index.
const TEND_UNITS: u32 = 1 << 20;

/// Outcome of the check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    /// Messages and filters that match, and were not delivered.
    pub(super) missing: u64,
    /// Deliveries of what does not match, or again.
    pub(super) extra: u64,
    /// Messages that were held against all filters by a loop.
    pub(super) looped: u64,
    /// The loop has found what the index has found.
    pub(super) index_agrees: bool,
}

/// A filter while it was in force.
#[derive(Debug)]
struct Version {
    member: u32,
    /// The first number at which it was in force.
    from: u64,
    /// The first at which it was no longer.
    to: u64,
    filter: Filter,
}

/// All filters that were in force at any time.
pub(super) struct Versions {
    all: Vec<Version>,
    /// The last one of each member.
    latest: Vec<usize>,
    matcher: Matcher,
    by_id: BTreeMap<FilterId, usize>,
}

/// Deliveries, by number in the log: how many filters each message was given for, and the sum of their marks.
pub(super) struct Seen(Vec<(u32, u64)>);

impl Seen {
    /// None yet, of messages up to this number.
    pub(super) fn new(last: u64) -> Seen {
        Seen(vec![(0, 0); usize::try_from(last).unwrap_or_default() + 1])
    }

    /// Adds all that a reader has got.
    pub(super) fn add(&mut self, got: &ReaderGot) {
        for (number, member) in &got.seen {
            if let Some((count, sum)) = self.0.get_mut(*number as usize) {
                *count += 1;
                *sum = sum.wrapping_add(mark(*member));
            }
        }
    }
}

/// A mark of a filter: sums of different ones are different, nearly always.
fn mark(member: u32) -> u64 {
    random::nth(0x5eed, member.into())
}

impl Versions {
    /// The first filters of all members.
    pub(super) fn new(texts: &[String]) -> Result<Versions, String> {
        let mut versions = Versions {
            all: Vec::new(),
            latest: Vec::new(),
            matcher: Matcher::new(MatcherLimits {
                bytes: usize::MAX,
                ..MatcherLimits::DEFAULT
            }),
            by_id: BTreeMap::new(),
        };
        for (member, text) in (0..).zip(texts) {
            versions.latest.push(versions.all.len());
            versions.add(member, 0, text)?;
        }
        Ok(versions)
    }

    fn add(&mut self, member: u32, from: u64, text: &str) -> Result<(), String> {
        let filter = Filter::parse(text).map_err(|error| error.to_string())?;
        let id = self.matcher.insert(filter.clone());
        let id = id.map_err(|error| error.to_string())?;
        self.by_id.insert(id, self.all.len());
        self.all.push(Version {
            member,
            from,
            to: u64::MAX,
            filter,
        });
        Ok(())
    }

    /// A member has another filter from this number on.
    pub(super) fn change(&mut self, member: u32, from: u64, text: &str) -> Result<(), String> {
        let latest = &mut self.latest[member as usize];
        self.all[*latest].to = from;
        *latest = self.all.len();
        self.add(member, from, text)
    }

    /// Reads all messages, and holds each against the filters in force at its number.
    pub(super) async fn hold(
        &mut self,
        client: &Client,
        seen: &Seen,
        last: u64,
    ) -> Result<Checked, Failure> {
        while self.matcher.tend(TEND_UNITS) {}
        let all = client.subscribe_everything().from(Start::Earliest);
        let mut all = all.open().await?;
        let mut cursor = Cursor::new();
        let mut checked = Checked {
            index_agrees: true,
            ..Checked::default()
        };
        let mut next = 0;
        while next <= last {
            let Some(Items::Messages(batch)) = all.next_batch().await? else {
                return Err(Failure::new("a message expected"));
            };
            for (sequence, record) in batch.iter() {
                let facts = Facts::read(record.attributes);
                next = sequence.0 + 1;
                self.hold_one(next - 1, &facts, (seen, &mut cursor), &mut checked);
            }
        }
        Ok(checked)
    }

    fn hold_one(
        &mut self,
        number: u64,
        facts: &Facts<'_>,
        (seen, cursor): (&Seen, &mut Cursor),
        checked: &mut Checked,
    ) {
        self.matcher.begin(facts, cursor);
        let mut units = u32::MAX;
        while !self.matcher.advance(facts, cursor, &mut units) {
            units = u32::MAX;
        }
        let in_force = |version: &&Version| (version.from..version.to).contains(&number);
        let found = cursor.matches().iter();
        let found = found.filter_map(|id| self.all.get(*self.by_id.get(id)?));
        let members: Vec<u32> = found
            .filter(in_force)
            .map(|version| version.member)
            .collect();
        let sum = members
            .iter()
            .fold(0_u64, |sum, member| sum.wrapping_add(mark(*member)));
        let none = (0, 0);
        let (count, seen_sum) = seen.0.get(number as usize).unwrap_or(&none);
        let (due, given) = (members.len() as u64, u64::from(*count));
        checked.missing += due.saturating_sub(given);
        checked.extra += given.saturating_sub(due);
        if due == given && sum != *seen_sum {
            checked.missing += 1;
            checked.extra += 1;
        }
        if number.is_multiple_of(LOOPED) {
            checked.looped += 1;
            let matching = self.all.iter().filter(in_force);
            let matching = matching.filter(|version| version.filter.matches_facts(facts));
            let mut looped: Vec<u32> = matching.map(|version| version.member).collect();
            let mut members = members;
            members.sort_unstable();
            looped.sort_unstable();
            checked.index_agrees &= looped == members;
        }
    }
}
