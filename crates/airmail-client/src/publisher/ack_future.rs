//! Ack futures: they give a message's result to its publisher.

use super::completion_page::CompletionPage;
use super::group_completion::GroupCompletion;
use super::published::{Published, Summary};
use airmail_model::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The result of one message, as a future. It keeps the results of some neighbours in memory, 256
/// at most; dropping it costs nothing.
#[derive(Debug)]
#[must_use = "a message's failure is told by its ack future"]
pub struct AckFuture {
    pub(super) page: Arc<CompletionPage>,
    pub(super) number: u64,
}

impl Future for AckFuture {
    type Output = Result<Published, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.page.poll(self.number, context)
    }
}

/// The results of several messages, as a future. It fails only if the client is dropped before all
/// are known; otherwise the summary says how many failed, and why.
#[derive(Debug)]
#[must_use = "messages' failures are told by their ack future"]
pub struct SummaryFuture(pub(super) Arc<GroupCompletion>);

impl Future for SummaryFuture {
    type Output = Result<Summary, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}
