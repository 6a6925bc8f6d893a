//! Muted readers: what is wanted of a reader is kept at this link's far end too, which gives nothing of it.
//!
//! The reader itself is another link's. When that one's far end fails, it goes on here: its list is there already, so
//! one message does, and nobody has to say millions of topics while subscribers wait.
//!
//! A muted reader has no credit, so nothing comes of it but answers to edits. Whoever owns the links is told of them
//! as [`MutedNews`]. One that the far end cuts off for want of room goes on with its list, as another run. Over a cut
//! of the connection nothing of a muted reader is kept: it is lost, and has to be begun anew.
//!
//! Invariant: a run is of one muted reader, and each has one.

use super::edits::Edits;
use airmail_log::{Call, Completion, ReaderId, Scope, ScopeFilter, WantEdit};
use airmail_model::{LogId, Sequence, bug};
use std::collections::BTreeMap;

/// Events of muted readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MutedNews {
    /// An edit has taken effect, with all before it.
    Effective(u32),
    /// The far end has no room for what is wanted.
    Refused,
    /// The connection is gone, and with it what was wanted there.
    Lost,
}

/// A muted reader.
#[derive(Debug)]
struct MutedReader {
    log: LogId,
    from: Sequence,
    run: ReaderId,
    is_started: bool,
    edits: Edits,
}

/// Muted readers by the owner's id, and by run. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct MutedReaders {
    readers: BTreeMap<ReaderId, MutedReader>,
    runs: BTreeMap<ReaderId, ReaderId>,
    news: Vec<(ReaderId, MutedNews)>,
}

impl MutedReaders {
    /// Keeps what is wanted of a reader at the far end, under this run.
    pub(super) fn begin(&mut self, r: ReaderId, log: LogId, from: Sequence, run: ReaderId) {
        let reader = MutedReader {
            log,
            from,
            run,
            is_started: false,
            edits: Edits::default(),
        };
        self.runs.insert(run, r);
        if let Some(before) = self.readers.insert(r, reader) {
            self.runs.remove(&before.run);
        }
    }

    /// Whether a run is a muted reader's.
    pub(super) fn has_run(&self, run: ReaderId) -> bool {
        self.runs.contains_key(&run)
    }

    fn of_run(&mut self, run: ReaderId) -> Option<&mut MutedReader> {
        self.readers.get_mut(self.runs.get(&run)?)
    }

    /// Runs that the far end has not heard of.
    pub(super) fn not_begun(&self) -> impl Iterator<Item = ReaderId> {
        let readers = self.readers.values();
        readers
            .filter(|reader| !reader.is_started)
            .map(|reader| reader.run)
    }

    /// The call that starts a run, unless it is over.
    pub(super) fn start(&mut self, run: ReaderId) -> Option<Call> {
        let reader = self.of_run(run)?;
        reader.is_started = true;
        let filter = ScopeFilter::Wanted;
        Some(Call::Read {
            r: run,
            log: reader.log,
            from: reader.from,
            scope: Box::new(Scope {
                filter,
                ..Scope::default()
            }),
            credit: 0,
        })
    }

    /// The call was not sent after all.
    pub(super) fn not_started(&mut self, run: ReaderId) {
        if let Some(reader) = self.of_run(run) {
            reader.is_started = false;
        }
    }

    /// The far end has cut a run off for want of room: the list is that of another run, which is to be started.
    pub(super) fn resume(&mut self, earlier: ReaderId, run: ReaderId) {
        let Some(r) = self.runs.remove(&earlier) else {
            bug!("{earlier:?} is cut off, and is no muted reader's");
            return;
        };
        self.runs.insert(run, r);
        if let Some(reader) = self.readers.get_mut(&r) {
            reader.run = run;
            reader.is_started = false;
            reader.edits.resume(earlier);
        }
    }

    /// The owner changes what is wanted of a reader: the run that has to be told of it now.
    pub(super) fn want(
        &mut self,
        r: ReaderId,
        number: u32,
        topics: Box<WantEdit>,
    ) -> Option<ReaderId> {
        let reader = self.readers.get_mut(&r)?;
        reader.edits.take(number, topics);
        reader.is_started.then_some(reader.run)
    }

    /// The edits of a run, unless it is over.
    pub(super) fn edits(&mut self, run: ReaderId) -> Option<&mut Edits> {
        self.of_run(run).map(|reader| &mut reader.edits)
    }

    /// Something that the far end says of a run. The run, if it is of no use any more and is to be stopped.
    pub(super) fn told(&mut self, run: ReaderId, said: &Completion) -> Option<ReaderId> {
        let r = self.runs.get(&run).copied()?;
        match said {
            Completion::Effective {
                edit, at: Some(_), ..
            } => {
                self.edits(run)?.effective(*edit);
                self.news.push((r, MutedNews::Effective(*edit)));
                None
            }
            Completion::Effective { at: None, .. } | Completion::WantsLost { .. } => {
                self.refused(r);
                Some(run)
            }
            Completion::Ended { .. } => {
                self.refused(r);
                None
            }
            // What a reader without credit may be told of where it stands.
            _ => None,
        }
    }

    fn refused(&mut self, r: ReaderId) {
        if self.take(r).is_some() {
            self.news.push((r, MutedNews::Refused));
        }
    }

    /// Takes a muted reader, which is muted no more: the run under which the far end has its list, if it has, and the
    /// edits that have no answer.
    pub(super) fn take(&mut self, r: ReaderId) -> Option<(Option<ReaderId>, Edits)> {
        let reader = self.readers.remove(&r)?;
        self.runs.remove(&reader.run);
        let known = reader.edits.known_run(reader.run, reader.is_started);
        Some((known, reader.edits))
    }

    /// The connection is gone, and with it every list.
    pub(super) fn cut(&mut self) {
        self.runs.clear();
        let lost = std::mem::take(&mut self.readers).into_keys();
        self.news.extend(lost.map(|r| (r, MutedNews::Lost)));
    }

    /// Events since the last call.
    pub(super) fn take_news(&mut self) -> Vec<(ReaderId, MutedNews)> {
        std::mem::take(&mut self.news)
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        assert_eq!(
            self.runs.len(),
            self.readers.len(),
            "muted readers and runs"
        );
        for (run, r) in &self.runs {
            let reader = self.readers.get(r);
            assert!(
                reader.is_some_and(|reader| reader.run == *run),
                "{run:?} is the run of {r:?}, which is muted"
            );
        }
    }
}
