//! Calls of readers at the near end.

use super::{LinkStorage, Outgoing};
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use airmail_log::{Call, Completion, Refusal};
use airmail_model::bug;
use std::time::Duration;

impl<P: Port<Out = ToHost, In = FromHost>> LinkStorage<P> {
    /// Takes a call that has no tag.
    pub(super) fn read(&mut self, call: Call) {
        match call {
            Call::Read {
                r,
                log,
                from,
                scope,
                credit,
            } => {
                if self.readers.len() >= self.limits.calls {
                    let retry_after = Duration::from_millis(100);
                    let why = Some(Refusal::Busy { retry_after });
                    self.told.push_back(Completion::Ended { r, why });
                    return;
                }
                let run = self.readers.take(r, log, from, scope, credit);
                self.outgo(Outgoing::Start(run));
            }
            Call::Credit { r, bytes } => {
                if let Some(run) = self.readers.credit(r, bytes) {
                    self.outgo(Outgoing::Grant(run));
                }
            }
            Call::Want { r, edit, topics } => {
                if let Some(run) = self.readers.want(r, edit, topics) {
                    self.outgo(Outgoing::Want(run));
                }
            }
            Call::Stop { r } => {
                let earlier = self.readers.earlier(r);
                match self.readers.stop(r) {
                    Some(Ok(run)) => self.outgo(Outgoing::Stop(run)),
                    Some(Err(ended)) => self.told.push_back(ended),
                    None => {}
                }
                if let Some(run) = earlier {
                    self.outgo(Outgoing::Forget(run));
                }
            }
            other => bug!("{other:?} is no call of a reader"),
        }
    }
}
