//! The calls, and their effects on a storage of vectors.

use super::*;

impl VecStorage {
    pub(super) fn open(&mut self, t: Tag, log: LogId, spec: LogSpec) {
        if !spec.storage.is_first() {
            return self.elsewhere(t);
        }
        if self
            .deleted
            .get(&log)
            .is_some_and(|last| spec.as_of < *last)
        {
            let why = Refusal::NoLog;
            return self.done.push(Completion::Refused { t, why });
        }
        let incarnation = Incarnation(self.incarnation);
        let entry = self.logs.entry(log).or_insert(Log {
            entries: Vec::new(),
            first: Sequence::FIRST,
            next: Sequence::FIRST,
            incarnation,
            spec,
        });
        if entry.spec.as_of <= spec.as_of {
            entry.spec = spec;
        }
        let bounds = bounds(entry);
        self.done.push(Completion::Opened { t, bounds });
    }

    pub(super) fn append(&mut self, t: Tag, log: LogId, batch: Checked<Batch>) {
        if let Some(why) = self.refusal.clone().filter(|_| log != LogId::SYSTEM) {
            self.done.push(Completion::Refused { t, why });
            return;
        }
        self.waiting.push((t, log, batch));
    }

    pub(super) fn read(
        &mut self,
        r: ReaderId,
        log: LogId,
        from: Sequence,
        scope: Scope,
        credit: u32,
    ) {
        let next = self.logs.get(&log).map(|log| log.next);
        assert!(next.is_none_or(|next| from <= next), "beyond the end");
        self.reads += 1;
        let reader = Reader {
            log,
            next: from,
            scope,
            credit: credit.into(),
            told_tail: None,
            unwanted: scope.filter == ScopeFilter::Wanted,
        };
        self.readers.insert(r, reader);
        self.readers_most = self.readers_most.max(self.readers.len());
    }

    pub(super) fn credit(&mut self, r: ReaderId, bytes: u32) {
        if let Some(reader) = self.readers.get_mut(&r) {
            reader.credit += i64::from(bytes);
        }
    }

    /// Gives everything, from when it is known what is wanted.
    pub(super) fn want(&mut self, r: ReaderId, edit: u32, more: bool) {
        if let Some(reader) = self.readers.get_mut(&r).filter(|_| !more) {
            reader.unwanted = false;
            let at = Some(reader.next);
            self.done.push(Completion::Effective { r, edit, at });
        }
    }

    pub(super) fn stop(&mut self, r: ReaderId) {
        self.readers.remove(&r);
        self.done.push(Completion::Ended { r, why: None });
    }

    pub(super) fn find_time(&mut self, t: Tag, log: LogId, at: AppendTime) {
        let log = &self.logs[&log];
        let mut found = log.first;
        for entry in &log.entries {
            match entry {
                Entry::Batch(stored) if stored.appended >= at => break,
                // One entry earlier than need be, as the contract allows.
                _ => found = entry.extent().first.max(log.first),
            }
        }
        self.done.push(Completion::Found { t, at: found });
    }

    pub(super) fn bounds(&mut self, t: Tag, log: LogId) {
        let bounds = bounds(&self.logs[&log]);
        self.done.push(Completion::Bounds { t, bounds });
    }

    pub(super) fn topics(&mut self, t: Tag, log: LogId, page: &TopicPage) {
        let mut topics = BTreeMap::new();
        for entry in &self.logs[&log].entries {
            let Entry::Batch(stored) = entry else {
                continue;
            };
            for topic in stored.batch.topics() {
                if topic.name.starts_with(&page.prefix) && topic.name > page.after.as_str() {
                    topics.insert(topic.name.to_owned(), stored.extent.last);
                }
            }
        }
        let seen = topics
            .into_iter()
            .map(|(name, last)| TopicSeen { name, last });
        let page = seen.take(page.limit as usize).collect();
        self.done.push(Completion::Topics { t, page });
    }

    pub(super) fn cannot(&mut self, t: Tag, what: &'static str) {
        let why = Refusal::Unsupported(what.into());
        self.done.push(Completion::Refused { t, why });
    }

    pub(super) fn renew(&mut self, t: Tag, log: LogId) {
        if let Some(why) = self.renewal_refusal.clone() {
            self.done.push(Completion::Refused { t, why });
            return;
        }
        self.incarnation += 1;
        let entry = self.logs.get_mut(&log).expect("open");
        entry.incarnation = Incarnation(self.incarnation);
        let bounds = bounds(entry);
        self.done.push(Completion::Opened { t, bounds });
    }

    /// The call is about a log in a storage that is not this one.
    fn elsewhere(&mut self, t: Tag) {
        let why = Refusal::Elsewhere(Holder::default());
        self.done.push(Completion::Refused { t, why });
    }

    pub(super) fn delete(&mut self, t: Tag, log: LogId, as_of: Sequence, storage: StorageName) {
        if !storage.is_first() {
            return self.elsewhere(t);
        }
        if !self.deaf_to_delete {
            self.deleted.insert(log, as_of);
            self.logs.remove(&log);
            self.done.push(Completion::Done { t });
        }
    }
}

pub(super) fn bounds(log: &Log) -> Bounds {
    Bounds {
        first: log.first,
        next: log.next,
        reach: log.next,
        incarnation: log.incarnation,
        first_time: None,
        bytes: 0,
        sealed: None,
    }
}
