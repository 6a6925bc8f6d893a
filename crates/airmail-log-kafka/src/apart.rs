//! The storage of a node that appends apart from where its logs are read: by a handle of its own where that is sound, and
//! else, like everything that is no append, by another storage, such as the links to the towers that have the logs.
//!
//! So publishes do not depend on towers. What a batch goes by is decided with the first of its producer's epoch: a sole
//! one ([`Call::Append`]) goes to the own handle if the log is open here, and the rest of the epoch follows it, as long as
//! it is sole and whole there. Whatever else comes goes to the storage behind, and the rest of its epoch after it. An epoch
//! changes over in this direction alone, and only when nothing of it is under way at the handle, or something of it has an
//! unknown outcome; so no batch overtakes another one of its producer that may still be acknowledged. A log is open here
//! from when the storage behind has told that it is, by the spec that it was opened with, until its deletion is asked for, or
//! log 0 says that it has stopped.
//!
//! Appends of one log are answered in the order of the calls *of each way*. While the storage behind has lost a log, what
//! would go to it is refused as away; the handle goes on.
//!
//! Invariant: a log is open at the handle only if the storage behind has opened it, and nobody has asked to delete it since, or
//! said that it has stopped.

use crate::appender::KafkaAppender;
use crate::brokers::Brokers;
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogSpec, LogStorage, Refusal, Tag, Trouble,
};
use airmail_model::{LogId, Mono, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time after which what was refused since the log is away is worth trying again.
const AWAY_RETRY: Duration = Duration::from_millis(250);

/// A storage with a handle beside it. See the module's documentation.
#[derive(Debug)]
pub struct ApartStorage<B, S> {
    appender: KafkaAppender<B>,
    storage: S,
    /// Specs of the logs that are being opened.
    opening: BTreeMap<Tag, (LogId, Box<LogSpec>)>,
    /// Logs that the storage behind has lost for now.
    lost: BTreeSet<LogId>,
    told: Vec<Completion>,
}

impl<B: Brokers, S: LogStorage> ApartStorage<B, S> {
    /// A storage that appends by `appender` where it can, and does all else by `storage`.
    pub fn new(appender: KafkaAppender<B>, storage: S) -> ApartStorage<B, S> {
        ApartStorage {
            appender,
            storage,
            opening: BTreeMap::new(),
            lost: BTreeSet::new(),
            told: Vec::new(),
        }
    }

    /// The storage behind, to look at.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    #[cfg(test)]
    pub(crate) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    fn hear(&mut self, told: &Completion) {
        match told {
            Completion::Opened { t, .. } => {
                if let Some((log, spec)) = self.opening.remove(t) {
                    self.appender.open(log, &spec);
                }
            }
            Completion::Refused { t, .. } => _ = self.opening.remove(t),
            Completion::Lost { log } => _ = self.lost.insert(*log),
            Completion::Gained { log, .. } => _ = self.lost.remove(log),
            _ => {}
        }
    }
}

impl<B: Brokers, S: LogStorage> LogStorage for ApartStorage<B, S> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            appends_apart: true,
            ..self.storage.capabilities()
        }
    }

    fn submit(&mut self, call: Call) {
        match &call {
            Call::Append {
                t,
                log,
                map,
                batch,
                sole: true,
            } => {
                let stamp = batch.producer();
                if stamp.is_some_and(|stamp| self.appender.takes(*log, stamp)) {
                    return self.appender.append((*t, *log), *map, batch);
                }
                if self.lost.contains(log) {
                    let (t, retry_after) = (*t, AWAY_RETRY);
                    let why = Refusal::Away { retry_after };
                    return self.told.push(Completion::Refused { t, why });
                }
            }
            Call::Open { t, log, spec } => {
                if spec.soundness.is_suspended {
                    // Nothing is appended by any way. What log 0 says later comes with another spec.
                    self.appender.close_log(*log);
                }
                self.opening.insert(*t, (*log, spec.clone()));
            }
            Call::Delete { log, .. } => {
                let log = *log;
                self.appender.close_log(log);
                self.opening.retain(|_, (of, _)| *of != log);
                self.lost.remove(&log);
            }
            _ => {}
        }
        self.storage.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        out.append(&mut self.told);
        let of_appender = self.appender.poll(now, out);
        let heard = out.len();
        let of_storage = self.storage.poll(now, out);
        for told in out.iter().skip(heard) {
            self.hear(told);
        }
        of_appender.into_iter().chain(of_storage).min()
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        self.appender.close();
        self.storage.close(now);
    }

    fn is_closed(&self) -> bool {
        self.told.is_empty() && self.appender.is_closed() && self.storage.is_closed()
    }

    /// The fault of the storage behind, or of the handle.
    fn trouble(&self) -> Option<Trouble> {
        let own = || {
            let error = self.appender.trouble()?;
            Some(Trouble { full: false, error })
        };
        self.storage.trouble().or_else(own)
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
