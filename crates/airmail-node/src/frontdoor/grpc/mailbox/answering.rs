//! The answer to every call of mailboxes: if it may be made, counted, timed, and with its error from
//! the table.

use crate::frontdoor::grpc::{Services, principal_of};
use crate::shard_handle::stopping;
use airmail_broker::{Action, Authorizer as _, MailboxAction, Principal};
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::status_from_error;
use std::future::Future;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A call of mailboxes, and the client that makes it.
pub(super) struct Asked {
    name: &'static str,
    principal: Result<Arc<Principal>, Error>,
}

impl Asked {
    /// The call `name`, which came with `request`.
    pub(super) fn new<T>(name: &'static str, request: &Request<T>) -> Asked {
        Asked {
            name,
            principal: principal_of(request),
        }
    }

    /// The client, if its connection has said who it is.
    fn principal(&self) -> Result<&Principal, Error> {
        let principal = self.principal.as_deref();
        principal.map_err(Error::clone)
    }
}

impl Services {
    /// Does a request, if who asks may do all of this, and answers it under a request id.
    pub(super) async fn answer_mailbox<T>(
        &self,
        asked: &Asked,
        actions: &[MailboxAction],
        done: impl Future<Output = Result<T, Error>>,
    ) -> Result<Response<T>, Status> {
        let call = self.call(asked.name);
        let begun = self.door.mono();
        let result = if self.handle().stop().is_cancelled() {
            Err(stopping())
        } else if let Err(denied) = self.permit(asked, actions) {
            Err(denied)
        } else if !self.serves_mailboxes {
            let limit = "postgres://… on a node without role tower";
            Err(Error::unimplemented("mailbox.url").limit(limit))
        } else if let Some(why) = self.withheld() {
            let failed = Error::new(ErrorCode::StorageFailed).field("mailbox");
            Err(failed.value(why))
        } else {
            let result = done.await;
            // It was done where it may not be found again.
            match self.withheld().filter(|_| result.is_ok()) {
                Some(why) => Err(Error::new(ErrorCode::OutcomeUnknown)
                    .field("mailbox")
                    .value(why)),
                None => result,
            }
        };
        let code = result.as_ref().err().map(Error::code);
        let took = self.door.mono().since(begun);
        self.metrics().mailbox.answered(asked.name, code, took);
        result.map(Response::new).map_err(|error| {
            if is_nothing_there(error.code()) {
                // Who looks again and again would fill the log.
                status_from_error(&error, &call.request_id)
            } else {
                call.status(&error)
            }
        })
    }

    /// The cause why nothing is stored where the mailboxes are, if so.
    fn withheld(&self) -> Option<String> {
        self.mailbox_standing.as_ref()?.withheld()
    }

    fn permit(&self, asked: &Asked, actions: &[MailboxAction]) -> Result<(), Error> {
        let principal = asked.principal()?;
        let mut actions = actions.iter();
        actions.try_for_each(|action| {
            let action = Action::Mailbox(*action);
            self.authorizer.authorize(principal, action).map(drop)
        })
    }
}

/// Whether it says no more than that there is nothing at the moment.
fn is_nothing_there(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::QueueIsEmpty | ErrorCode::NoMessageFound | ErrorCode::NoQueuesFound
    )
}
