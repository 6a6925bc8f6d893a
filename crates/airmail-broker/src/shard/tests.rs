//! The shard's parts together: what the link between gateway and tower promises.

mod queued_link;
