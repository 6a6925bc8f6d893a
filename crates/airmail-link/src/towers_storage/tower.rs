//! A tower, as a gateway uses it: a link to each of its shards.

use crate::homes::LogHomes;
use crate::link_storage::LinkStorage;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use airmail_model::LogId;
use std::sync::Arc;

/// A tower: which of its shards serves which log, and the links to them in order.
#[derive(Debug)]
pub struct Tower<P> {
    homes: Arc<LogHomes>,
    pub(super) links: Vec<LinkStorage<P>>,
}

impl<P: Port<Out = ToHost, In = FromHost>> Tower<P> {
    /// A tower whose logs have these homes, by links to its shards in order.
    ///
    /// # Panics
    /// If there are not as many links as `homes` has shards.
    pub fn new(homes: Arc<LogHomes>, links: Vec<LinkStorage<P>>) -> Tower<P> {
        assert_eq!(links.len(), homes.shards(), "links and shards");
        Tower { homes, links }
    }

    /// The link to the shard that serves a log.
    pub(super) fn link(&mut self, log: LogId) -> &mut LinkStorage<P> {
        &mut self.links[self.homes.home(log)]
    }
}
