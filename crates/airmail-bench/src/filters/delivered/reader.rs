//! Readers: one for each stream, whose set has its share of the filters.

use super::{PATIENCE, due_us};
use crate::clock::now_us;
use crate::latency::Latencies;
use crate::system::Failure;
use airmail_client::{Client, MemberKey, SetItem, SetItems, SetMember, SubscriptionSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Changes that wait for a reader.
const CHANGES_WAITING: usize = 1024;
/// Time between two looks whether all has come.
const LOOK: Duration = Duration::from_millis(50);

/// A change that is asked of a reader: of one of its members in turn.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) member: u64,
    pub(super) text: String,
}

/// Everything that a reader has got.
#[derive(Debug, Default)]
pub(super) struct ReaderGot {
    /// Number in the log, and filter, of each message for each member.
    pub(super) seen: Vec<(u32, u32)>,
    /// Messages, each once.
    pub(super) messages: u64,
    pub(super) latencies: Latencies,
    /// Filters that were changed: which, from which number on, and the new one.
    pub(super) versions: Vec<(u32, u64, String)>,
    /// Messages of a member that came behind later ones, or again.
    pub(super) out_of_order: u64,
    pub(super) gaps: u64,
}

impl ReaderGot {
    /// Messages, each once for each member.
    pub(super) fn delivered(&self) -> u64 {
        self.seen.len() as u64
    }
}

/// A reader of a stream.
pub(super) struct Reader {
    set: SubscriptionSet,
    /// Members in order, and the number of each one's filter.
    members: Vec<(MemberKey, u32)>,
    /// Last message of each member.
    last: Vec<u32>,
    /// Changes that are not answered, by member.
    asked: BTreeMap<MemberKey, VecDeque<String>>,
    changes: mpsc::Receiver<Asked>,
    /// Number of the last message, once all are published.
    stopped: watch::Receiver<Option<u64>>,
    got: ReaderGot,
}

impl Reader {
    /// Opens a set of every so many filters, and waits until a node has all of them.
    pub(super) async fn begin(
        client: Client,
        (stream, streams): (u32, u32),
        texts: Arc<[String]>,
        stopped: watch::Receiver<Option<u64>>,
    ) -> Result<(Reader, mpsc::Sender<Asked>), Failure> {
        let mut set = client.subscription_set().open().await?;
        let mut members = Vec::new();
        let mine = (0_u32..).zip(texts.iter()).skip(stream as usize);
        for (number, text) in mine.step_by(streams as usize) {
            members.push((set.add(SetMember::everything(text))?, number));
        }
        for _ in &members {
            match set.next().await? {
                Some(SetItem::Ready(_)) => {}
                other => return Err(Failure::new(format!("a member expected: {other:?}"))),
            }
        }
        let (sender, changes) = mpsc::channel(CHANGES_WAITING);
        let reader = Reader {
            last: vec![0; members.len()],
            set,
            members,
            asked: BTreeMap::new(),
            changes,
            stopped,
            got: ReaderGot::default(),
        };
        Ok((reader, sender))
    }

    /// Reads until all has come for every member.
    pub(super) async fn read(mut self) -> Result<ReaderGot, Failure> {
        let mut end: Option<(u64, Instant)> = None;
        loop {
            tokio::select! {
                biased;
                items = self.set.next_batch() => {
                    let (members, last, got) = (&self.members, &mut self.last, &mut self.got);
                    match items? {
                        Some(SetItems::Messages(batch)) => {
                            let now = now_us();
                            for (owners, sequence, record) in batch.iter() {
                                got.messages += 1;
                                if let Some(due) = due_us(record.payload) {
                                    got.latencies.record(now.saturating_sub(due));
                                }
                                let number = u32::try_from(sequence.0).unwrap_or(u32::MAX);
                                for owner in owners {
                                    let place = owner.number() as usize - 1;
                                    got.out_of_order += u64::from(last[place] >= number);
                                    last[place] = number;
                                    got.seen.push((number, members[place].1));
                                }
                            }
                        }
                        Some(SetItems::Item(item)) => self.apply(item)?,
                        None => return Err(Failure::new("a set has ended")),
                    }
                }
                Some(asked) = self.changes.recv() => {
                    let (member, _) = self.members[asked.member as usize % self.members.len()];
                    self.set.change(member, &asked.text)?;
                    self.asked.entry(member).or_default().push_back(asked.text);
                }
                () = tokio::time::sleep(LOOK) => {
                    if end.is_none() {
                        end = self.stopped.borrow().map(|last| (last, Instant::now()));
                    }
                    let Some((last, begun)) = end else { continue };
                    if self.has_all(last) || begun.elapsed() > PATIENCE {
                        return Ok(self.got);
                    }
                }
            }
        }
    }

    fn apply(&mut self, item: SetItem) -> Result<(), Failure> {
        match item {
            SetItem::Changed(member, from) => {
                let text = self.asked.get_mut(&member).and_then(VecDeque::pop_front);
                let text = text.ok_or_else(|| Failure::new("a change that was not asked for"))?;
                let next = from.logs.first().map_or(0, |place| place.next.0);
                let (_, number) = self.members[member.number() as usize - 1];
                self.got.versions.push((number, next, text));
            }
            SetItem::Gap(..) => self.got.gaps += 1,
            SetItem::Ready(_) | SetItem::Message(..) | SetItem::Expired(..) => {}
            SetItem::Unchanged(_, error) | SetItem::Failed(_, error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether every member has been told of everything up to a number, and every change was answered.
    fn has_all(&self, last: u64) -> bool {
        let is_behind = |key| {
            let position = self.set.position(key);
            position.is_some_and(|position| position.logs.iter().all(|at| at.next.0 > last))
        };
        self.asked.values().all(VecDeque::is_empty)
            && self.members.iter().all(|(key, _)| is_behind(*key))
    }
}
