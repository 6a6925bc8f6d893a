//! Every gRPC service of the node behind one router, but for the two calls that
//! [`super::connection_calls`] answers.

use super::{Health, Services};
use crate::config::Config;
use airmail_proto::server::admin_server::AdminServer;
use airmail_proto::server::airmail_server::AirmailServer;
use airmail_proto::server::mailbox_server::MailboxServer;
use tonic::service::Routes;
use tonic_reflection::server::Builder;

/// The services, and what tells gRPC's health checks how they are.
pub(crate) fn all_routes(services: &Services, config: &Config) -> (Routes, Health) {
    let frame_bytes = config.limits.frame_bytes as usize;
    let airmail = AirmailServer::new(services.clone())
        .max_decoding_message_size(frame_bytes)
        .max_encoding_message_size(usize::MAX);
    let admin = AdminServer::new(services.clone());
    let mailbox = MailboxServer::new(services.clone())
        .max_decoding_message_size(frame_bytes)
        .max_encoding_message_size(usize::MAX);
    let health = Health::default();
    let mut routes = Routes::new(airmail)
        .add_service(admin)
        .add_service(mailbox)
        .add_service(health.service());
    let reflection = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(airmail_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(airmail_proto::ERROR_DETAILS_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (reflection().build_v1(), reflection().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes = routes.add_service(v1).add_service(v1alpha),
        (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "no reflection"),
    }
    (routes.prepare(), health)
}
