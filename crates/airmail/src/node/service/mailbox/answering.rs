//! How every call of mailboxes is answered: counted, timed, and with its error from the table.

use super::{Services, stopping};
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::status_from_error;
use std::future::Future;
use tonic::{Response, Status};

impl Services {
    /// Does a request and answers it, under a request id.
    pub(super) async fn answer_mailbox<T>(
        &self,
        name: &'static str,
        done: impl Future<Output = Result<T, Error>>,
    ) -> Result<Response<T>, Status> {
        let call = self.call(name);
        let begun = self.link.mono();
        let result = if self.link.stop().is_cancelled() {
            Err(stopping())
        } else {
            done.await
        };
        let code = result.as_ref().err().map(Error::code);
        let took = self.link.mono().since(begun);
        self.metrics.mailbox.answered(name, code, took);
        result.map(Response::new).map_err(|error| {
            if is_nothing_there(error.code()) {
                // Who looks again and again would fill the log.
                status_from_error(&error, &call.request_id)
            } else {
                call.status(&error)
            }
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
