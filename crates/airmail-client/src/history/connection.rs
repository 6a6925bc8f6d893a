//! The connection over which the histories of several logs are read.
//!
//! Their streams are read in turn, as the times of their messages fall: one of which nothing is wanted for a while would fill
//! up, and on the client's connection keep all others waiting, for ever if it is the only one that is not wanted. So they have
//! a connection of their own.

use crate::context::ClientContext;
use crate::core::Purpose;
use crate::nodes::Node;
use airmail_model::Error;
use parking_lot::Mutex;

/// Connection for the streams of one history.
#[derive(Debug)]
pub(super) struct HistoryConnection {
    /// Number of streams. A single one uses the client's connection.
    streams: usize,
    apart: Mutex<Option<Node>>,
}

impl HistoryConnection {
    pub(super) fn new(streams: usize) -> HistoryConnection {
        HistoryConnection {
            streams,
            apart: Mutex::new(None),
        }
    }

    /// Gives the node to ask, which is the client's, by the connection for it.
    pub(super) fn node(&self, shared: &ClientContext) -> Result<Node, Error> {
        let node = shared.nodes.node(Purpose::Subscribe)?;
        if self.streams <= 1 {
            return Ok(node);
        }
        let mut apart = self.apart.lock();
        if let Some(apart) = apart.as_ref().filter(|apart| apart.is(&node)) {
            return Ok(apart.clone());
        }
        Ok(apart.insert(node.apart(self.streams)?).clone())
    }
}
