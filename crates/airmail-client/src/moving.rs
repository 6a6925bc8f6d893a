//! A stream's way from the node that it is open at to another, and what it hears on the way.
//!
//! The stream stays open while the connection to the other node is made, so that nothing waits for it; then its
//! owner opens it there.

use crate::context::ClientContext;
use crate::core::Purpose;
use crate::nodes::Node;
use crate::response_stream::ResponseStream;
use airmail_model::frame::{News, Welcome};
use prost::Message;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

/// Preparation of a stream's move to another node, if it is to move.
pub(crate) struct Moving {
    /// The use that the stream is of.
    purpose: Purpose,
    preparing: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
}

impl fmt::Debug for Moving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moving").finish_non_exhaustive()
    }
}

impl Moving {
    /// Tells whether the stream is to stay where it is.
    pub(crate) fn is_not(&self) -> bool {
        self.preparing.is_none()
    }

    /// Waits until the stream can be opened at another node; for ever, if it is to stay.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(crate) async fn moved(&mut self) {
        if let Some(preparing) = &mut self.preparing {
            let moved = preparing.await;
            self.preparing = None;
            if moved {
                return;
            }
        }
        pending().await
    }

    fn begin(&mut self, shared: &Arc<ClientContext>, node: &Node) {
        let purpose = self.purpose;
        if self.is_not() && shared.nodes.is_to_move_from(node, purpose) {
            let (shared, node) = (Arc::clone(shared), node.clone());
            let preparing = async move { shared.nodes.move_from(&node, purpose).await };
            self.preparing = Some(Box::pin(preparing));
        }
    }
}

impl ClientContext {
    /// Takes note of the answer of `node` to Hello, on a stream of these responses.
    pub(crate) fn welcomed<M: Message + Default>(
        self: &Arc<Self>,
        (node, purpose): (&Node, Purpose),
        responses: &mut ResponseStream<M>,
        welcome: &Welcome,
    ) -> Moving {
        if let Some((within, missed_max)) = self.nodes.welcomed(node, welcome) {
            responses.expect_life(within, missed_max);
        }
        let mut moving = Moving {
            purpose,
            preparing: None,
        };
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
            News::Alive(within) => {
                responses.expect_life(*within, self.nodes.missed_max());
                self.nodes.look(node);
            }
            News::Nodes(nodes) => self.nodes.told(node, nodes),
        }
        moving.begin(self, node);
    }

    /// Takes note that `node` refuses what another one takes. It says so again and again, and nothing else.
    pub(crate) fn refused(self: &Arc<Self>, node: &Node, moving: &mut Moving) {
        self.nodes.look(node);
        moving.begin(self, node);
    }
}
