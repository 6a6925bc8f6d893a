//! gRPC's standard health checks: every service is healthy while the node is ready.

use crate::shards::Shards;
use crate::{READY_STEP, bugs};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// The services as health checks name them; the empty name is the whole node.
const NAMES: [&str; 4] = [
    "",
    "airmail.v1.Airmail",
    "airmail.v1.Admin",
    "airmail.v1.Mailbox",
];

/// The state that health checks see.
#[derive(Clone, Default)]
pub(crate) struct Health(HealthReporter);

impl Health {
    /// The service that answers health checks.
    pub(super) fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.0.clone()))
    }

    /// Says that the node serves as soon as it is ready; ends when it is, or is to stop.
    pub(crate) async fn serve_when_ready(&self, shards: &Shards) {
        self.set(ServingStatus::NotServing).await;
        while !shards.are_ready() && !shards.stop().is_cancelled() {
            tokio::time::sleep(READY_STEP).await;
        }
        self.set(ServingStatus::Serving).await;
    }

    /// Waits until the node is to stop, and says then that it does not serve. A node that has met a bug is
    /// not ready, and works on.
    pub(crate) async fn serve_until_stopped(&self, shards: &Shards) {
        tokio::select! {
            () = shards.stop().cancelled() => return,
            () = bugs::met() => {}
        }
        self.set(ServingStatus::NotServing).await;
        shards.stop().cancelled().await;
    }

    /// Says that the node does not serve.
    pub(crate) async fn stop(&self) {
        self.set(ServingStatus::NotServing).await;
    }

    async fn set(&self, status: ServingStatus) {
        for name in NAMES {
            self.0.set_service_status(name, status).await;
        }
    }
}
