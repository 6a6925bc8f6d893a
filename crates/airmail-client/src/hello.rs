//! The Hello with which a client opens each of its streams.

use crate::context::ClientContext;
use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN};
use airmail_proto::v1;

/// Makes the Hello of a stream that uses these namespaces and has room for `credit_bytes` of
/// deliveries.
pub(crate) fn client_hello(
    shared: &ClientContext,
    namespaces: Vec<String>,
    credit_bytes: u32,
) -> v1::ClientHello {
    v1::ClientHello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        features: Vec::new(),
        token: String::new(),
        namespaces,
        credit_bytes,
        client: shared.client_name.clone(),
    }
}
