//! Calls: made on one node after the other, and made again while the error is one to wait
//! for.
//!
//! A call whose answer was lost with its connection may have been done. Only a call that changes
//! nothing is made again then; any other ends with `OUTCOME_UNKNOWN`.

use crate::api::Answer;
use crate::context::ClientContext;
use crate::core::Purpose;
use crate::nodes::Node;
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::{error_from_status, is_of_no_node, is_told_by_a_node};
use std::future::Future;
use std::time::Duration;
use tonic::{Response, Status};

/// Time for which a node's first answer is waited for where there are other nodes.
const OTHERS_PATIENCE: Duration = Duration::from_secs(3);

impl ClientContext {
    /// Waits for a node's first answer, for the part of `connect_timeout` that each address of the URL
    /// has, and for [`OTHERS_PATIENCE`] at most if there are other nodes: one that accepts
    /// connections and stays silent must not use up the time of the others.
    pub(crate) async fn first_answer<T>(
        &self,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let mut patience = self.connect_timeout / self.nodes.seeds();
        if self.nodes.addresses() > 1 {
            patience = patience.min(OTHERS_PATIENCE);
        }
        within(patience, answer).await
    }

    /// Waits for a node's next answer, for `call_timeout`: a node that is silent for so long is
    /// given up.
    pub(crate) async fn answer_in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        within(self.call_timeout, answer).await
    }

    /// Makes a call within the client's `call_timeout`; see [`ClientContext::call_within`].
    pub(crate) async fn call<R: Clone + Sync, A>(
        &self,
        repeatable: bool,
        call: fn(Node, R) -> Answer<'static, A>,
        request: R,
    ) -> Result<A, Error> {
        let call = |node| call(node, request.clone());
        let answer = self.call_within(self.call_timeout, repeatable, &call);
        Ok(answer.await?.into_inner())
    }

    /// Makes a call on one node after the other, until one answers. Errors that the table of
    /// errors says are waited for are retried: for `timeout` in all, and for `connect_timeout`
    /// while no node can be reached.
    ///
    /// A `repeatable` call is made again even if a node may have done it. Any other is made again
    /// only after it was certainly not done, and gives `OUTCOME_UNKNOWN` where that is not known.
    pub(crate) async fn call_within<'c, A>(
        &self,
        timeout: Duration,
        repeatable: bool,
        call: &(dyn Fn(Node) -> Answer<'c, A> + Sync),
    ) -> Result<Response<A>, Error> {
        let begun = self.mono();
        let until = begun.plus(timeout);
        let mut attempts = self.attempts(timeout).from(begun);
        // The last refusal by a node, which says more than the timeout that cuts the next attempt
        // off.
        let mut refusal = None;
        loop {
            let node = self.nodes.node(Purpose::Subscribe)?;
            let now = self.mono();
            attempts.begin(now);
            let rest = until.since(now);
            let status = match within(rest, call(node.clone())).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let error = error_from_status(&status);
            let is_no_node = is_of_no_node(&error);
            let error = self.explain(error, &node, &status);
            if !error.code().waited_for() {
                return Err(error);
            }
            self.nodes.failed(&node, &error);
            if !repeatable && !is_no_node && !is_certainly_not_done(&status, &error) {
                let unknown = Error::new(ErrorCode::OutcomeUnknown);
                return Err(unknown.field(error.field_name()).value(error.found()));
            }
            let now = self.mono();
            if now >= until
                && let Some(refusal) = refusal
            {
                return Err(Error::waited(refusal, now.since(begun)));
            }
            if is_told_by_a_node(&status) {
                refusal = Some(error.clone());
            }
            let retry = attempts.failed(now, error)?;
            self.sleep_until(retry).await;
        }
    }

    /// Adds to a lost connection's error which node it was, and what the system said. Where something answers that is no
    /// node, though there are others or was one there before, that one is lost: its address is somebody else's now.
    pub(crate) fn explain(&self, error: Error, node: &Node, status: &Status) -> Error {
        if is_of_no_node(&error) && self.nodes.are_known() {
            let address = node.address();
            let what = format!("{address}: {}", error.found());
            return Error::new(ErrorCode::Disconnected).field("url").value(what);
        }
        if error.code() != ErrorCode::Disconnected {
            return error;
        }
        let address = node.address();
        let cause = innermost_cause(status);
        Error::new(ErrorCode::Disconnected)
            .field("url")
            .value(format!("{address}: {cause}"))
    }
}

/// Waits for an answer for at most `time`.
async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let silent = |_| {
        let waited = time.as_millis();
        Err(Status::cancelled(format!("no answer within {waited} ms")))
    };
    let answer = tokio::time::timeout(time, answer).await;
    answer.unwrap_or_else(silent)
}

/// Tells whether a call that failed had no effect for certain: the node refused it, or no
/// connection could be made. A connection that breaks later proves nothing, whatever its error
/// says.
fn is_certainly_not_done(status: &Status, error: &Error) -> bool {
    let refused = is_told_by_a_node(status) && error.code() != ErrorCode::Disconnected;
    refused || is_unconnected(status)
}

/// Tells whether no connection could be made.
fn is_unconnected(status: &Status) -> bool {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(status);
    while let Some(inner) = cause {
        if inner.is::<tonic::ConnectError>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// Digs out the innermost cause of a transport's error: the words of the operating system.
fn innermost_cause(status: &Status) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(status);
    let mut text = status.message().to_owned();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}
