//! The Hello with which a client opens each of its streams.

use crate::context::ClientContext;
use airmail_model::frame::Hello;
use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN};
use airmail_proto::v1;

/// Makes the Hello of a stream that uses these namespaces, has room for `credit_bytes` of deliveries, and gets what is for
/// these roles.
pub(crate) fn client_hello(
    shared: &ClientContext,
    namespaces: Vec<String>,
    credit_bytes: u32,
    roles: &[String],
) -> v1::ClientHello {
    let feature = (!roles.is_empty()).then(|| Hello::FEATURE_ROLES.to_owned());
    v1::ClientHello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        features: feature.into_iter().collect(),
        token: String::new(),
        namespaces,
        credit_bytes,
        client: shared.client_name.clone(),
        roles: roles.to_vec(),
    }
}
