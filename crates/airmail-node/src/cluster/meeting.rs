//! Meeting: a node whose logs are its own joins others that have the same, by one that its settings name.
//!
//! A gateway meets nodes by its links. A tower has no link to another tower, so it only asks the one it is to join who it
//! is, and membership does the rest. It asks again whenever it is alone: the other may have been away for so long that
//! each has given up the other.

use super::credentials::Identity;
use super::dialing::dial;
use super::view::ClusterView;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_membership::Standing;
use airmail_wire::handshake::Asked;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two looks whether the node is alone.
const LOOK: Duration = Duration::from_millis(500);

/// One who meets the nodes that a tower is to join.
pub(crate) struct Meeting {
    pub(crate) addresses: Vec<String>,
    pub(crate) identity: Identity,
    pub(crate) metrics: Arc<Metrics>,
}

impl Meeting {
    /// Meets them until `stop`, whenever nobody else is there.
    pub(crate) async fn run(self, view: ClusterView, stop: CancellationToken) {
        let mut troubles = LoggingRateLimit::default();
        while !stop.is_cancelled() {
            let seen = view.seen();
            let mut members = seen.members.iter();
            if !members.any(|member| member.standing == Standing::Live) {
                self.meet_all(&mut troubles).await;
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn meet_all(&self, troubles: &mut LoggingRateLimit) {
        for address in &self.addresses {
            match dial(address, &self.identity, &Asked::default()).await {
                Ok(dialed) => {
                    if let Some(member) = dialed.member {
                        self.metrics.cluster.links.meet(member);
                    }
                }
                Err(end) => {
                    if let Some(times) = troubles.happened(Instant::now()) {
                        tracing::warn!(address, %end, times, "the node to join cannot be reached yet");
                    }
                }
            }
        }
    }
}
