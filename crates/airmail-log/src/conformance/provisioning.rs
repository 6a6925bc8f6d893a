//! Provisions of the suite's logs, where a storage asks for them: as a node would, for each log that is made. And what
//! such a storage promises of them.
//!
//! A case opens a log by a spec that says nothing of provisions. The driver has them made when the log is new, which
//! it is again when it was deleted and a spec of a later place is there; a spec of an earlier place names what
//! was made before.

use super::{Driver, End, Subject, log, spec};
use crate::contract::{Call, Completion, LogSpec, Origin, Tag};
use airmail_model::{LogId, Provisions, Sequence};

/// Provisions of a log, and the places of the last spec and deletion.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    provisions: Option<Provisions>,
    opened: Sequence,
    deleted: Option<Sequence>,
}

impl Provisioned {
    /// Takes note of a deletion, unless the log was made or changed by a later command; the provisions for it.
    pub(super) fn delete(&mut self, as_of: Sequence) -> Provisions {
        if as_of >= self.opened {
            self.deleted = self.deleted.max(Some(as_of));
        }
        self.provisions.unwrap_or_default()
    }

    /// The provisions for a spec of this place, if they need not be made.
    fn open(&mut self, as_of: Sequence) -> Option<Provisions> {
        self.opened = self.opened.max(as_of);
        if self.deleted.is_some_and(|deleted| as_of >= deleted) {
            self.deleted = None;
            self.provisions = None;
        }
        self.provisions
    }
}

impl<S: Subject> Driver<'_, S> {
    /// A spec with the provisions that the storage asks for; or the tag under which it has refused to make them.
    pub(super) fn provisioned_for(
        &mut self,
        log: LogId,
        spec: &LogSpec,
    ) -> Result<Box<LogSpec>, Tag> {
        let mut spec = Box::new(*spec);
        let is_here = spec.storage.is_first() && log != LogId::SYSTEM;
        if !self.capabilities().provisions || !is_here || !spec.provisions.is_none() {
            return Ok(spec);
        }
        let known = self.provisioned.entry(log).or_default().open(spec.as_of);
        if let Some(provisions) = known {
            spec.provisions = provisions;
            return Ok(spec);
        }
        spec.provisions = self.provision(log, &spec)?;
        self.provisioned.entry(log).or_default().provisions = Some(spec.provisions);
        Ok(spec)
    }

    /// Has the storage provision for a log; or the tag under which it has refused to.
    fn provision(&mut self, log: LogId, spec: &LogSpec) -> Result<Provisions, Tag> {
        let (logs, spec) = (1, Box::new(*spec));
        let tag = self.call(|t| Call::Provision { t, log, logs, spec });
        match self.answer(tag) {
            Completion::Provisioned { provisions, .. } => Ok(*provisions),
            refused => {
                self.answers.insert(tag, refused);
                Err(tag)
            }
        }
    }

    /// Asks for a log to be opened with these provisions; its answer.
    fn open_of(&mut self, log: LogId, provisions: Provisions) -> Completion {
        let durability = self.capabilities().strongest;
        let spec = Box::new(LogSpec {
            provisions,
            ..spec(durability)
        });
        self.ask(|t| Call::Open { t, log, spec })
    }

    fn withdraw(&mut self, log: LogId, provisions: Provisions) {
        let logs = 1;
        let origin = Box::new(Origin {
            provisions,
            ..Origin::default()
        });
        let answer = self.ask(|t| Call::Withdraw {
            t,
            log,
            logs,
            origin,
        });
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
    }
}

/// Provisions for a log, if the storage asks for any; what one that does not says to this is another case's.
fn provisions<S: Subject>(d: &mut Driver<'_, S>, log: LogId) -> Option<Provisions> {
    let can = d.capabilities();
    if !can.provisions {
        return None;
    }
    match d.provision(log, &spec(can.strongest)) {
        Ok(provisions) => Some(provisions),
        Err(tag) => panic!("{:?}", d.answers.get(&tag)),
    }
}

/// Opens it with provisions for it, with none, and with those for another log.
pub fn a_log_is_opened_with_its_provisions_alone<S: Subject>(d: &mut Driver<'_, S>) {
    let (Some(own), Some(other)) = (provisions(d, log(0)), provisions(d, log(1))) else {
        // Input: a storage that makes nothing beforehand.
        return;
    };
    for wrong in [Provisions::NONE, other] {
        let answer = d.open_of(log(0), wrong);
        assert!(matches!(answer, Completion::Refused { .. }), "{answer:?}");
    }
    let answer = d.open_of(log(0), own);
    assert!(matches!(answer, Completion::Opened { .. }), "{answer:?}");
}

/// Withdraws what was made, and once more; and is refused a log with it.
pub fn what_is_withdrawn_opens_no_log<S: Subject>(d: &mut Driver<'_, S>) {
    let Some(provisions) = provisions(d, log(0)) else {
        // Input: a storage that makes nothing beforehand.
        return;
    };
    d.withdraw(log(0), provisions);
    d.withdraw(log(0), provisions);
    let answer = d.open_of(log(0), provisions);
    assert!(matches!(answer, Completion::Refused { .. }), "{answer:?}");
}

/// Provisions twice for a log, of which one is withdrawn while the log is open with the other.
pub fn a_withdrawal_leaves_alone_what_was_made_besides<S: Subject>(d: &mut Driver<'_, S>) {
    let (Some(lost), Some(kept)) = (provisions(d, log(0)), provisions(d, log(0))) else {
        // Input: a storage that makes nothing beforehand.
        return;
    };
    assert_ne!(lost, kept);
    let answer = d.open_of(log(0), kept);
    assert!(matches!(answer, Completion::Opened { .. }), "{answer:?}");
    d.append(log(0), &[("a", "before")]);
    d.withdraw(log(0), lost);
    d.append(log(0), &[("a", "behind")]);
    let reader = d.read_all(log(0), 1);
    assert_eq!(d.records(reader).len(), 2);
}

/// Deletes a log that it knows by its provisions alone, as a node does that has been restarted.
pub fn a_log_that_was_not_opened_is_deleted_by_its_provisions<S: Subject>(d: &mut Driver<'_, S>) {
    let Some(provisions) = provisions(d, log(0)).filter(|_| d.outlives()) else {
        // Input: a storage that makes nothing beforehand, or whose logs do not outlive it.
        return;
    };
    let origin = Box::new(Origin {
        provisions,
        ..Origin::default()
    });
    let answer = d.open_of(log(0), origin.provisions);
    assert!(matches!(answer, Completion::Opened { .. }), "{answer:?}");
    d.append(log(0), &[("a", "kept")]);
    d.reopen(End::Crash);
    for _ in 0..2 {
        let origin = origin.clone();
        let answer = d.ask(|t| Call::Delete {
            t,
            log: log(0),
            as_of: Sequence(5),
            origin,
        });
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
    }
    let answer = d.open_of(log(0), origin.provisions);
    assert!(matches!(answer, Completion::Refused { .. }), "{answer:?}");
}
