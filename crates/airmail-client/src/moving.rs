//! A stream's way from the node that it is open at to another, and what it hears on the way.
//!
//! The stream stays open while the connection to the other node is made, so that nothing waits for it; then its
//! owner opens it there.

use crate::context::ClientContext;
use crate::nodes::Node;
use crate::response_stream::ResponseStream;
use airmail_model::frame::{News, Welcome};
use prost::Message;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

/// Preparation of a stream's move to another node, if it is to move.
#[derive(Default)]
pub(crate) struct Moving(Option<Pin<Box<dyn Future<Output = bool> + Send>>>);

impl fmt::Debug for Moving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Moving").field(&self.0.is_some()).finish()
    }
}

impl Moving {
    /// Tells whether the stream is to stay where it is.
    pub(crate) fn is_not(&self) -> bool {
        self.0.is_none()
    }

    /// Waits until the stream can be opened at another node; for ever, if it is to stay.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(crate) async fn moved(&mut self) {
        if let Some(moving) = &mut self.0 {
            let moved = moving.await;
            self.0 = None;
            if moved {
                return;
            }
        }
        pending().await
    }

    fn begin(&mut self, shared: &Arc<ClientContext>, node: &Node) {
        if self.0.is_none() && shared.nodes.is_to_move_from(node) {
            let (shared, node) = (Arc::clone(shared), node.clone());
            self.0 = Some(Box::pin(async move { shared.nodes.move_from(&node).await }));
        }
    }
}

impl ClientContext {
    /// Takes note of the answer of `node` to Hello, on a stream of these responses.
    pub(crate) fn welcomed<M: Message + Default>(
        self: &Arc<Self>,
        node: &Node,
        responses: &mut ResponseStream<M>,
        welcome: &Welcome,
    ) -> Moving {
        if let Some((within, missed_max)) = self.nodes.welcomed(node, welcome) {
            responses.expect_life(within, missed_max);
        }
        let mut moving = Moving::default();
        moving.begin(self, node);
        moving
    }

    /// Takes note of what `node` says unasked, on a stream of these responses.
    pub(crate) fn heard<M: Message + Default>(
        self: &Arc<Self>,
        node: &Node,
        responses: &mut ResponseStream<M>,
        moving: &mut Moving,
        news: &News,
    ) {
        match news {
            News::Alive(within) => responses.expect_life(*within, self.nodes.missed_max()),
            News::Nodes(nodes) => self.nodes.told(node, nodes),
        }
        moving.begin(self, node);
    }
}
