//! Beginning of a stream without the SDK: a connection of its own, and Hello.

use crate::system::Failure;
use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN};
use airmail_proto::v1;
use airmail_proto::v1::airmail_client::AirmailClient;
use tonic::transport::{Channel, Endpoint};

/// Connects to `airmail://HOST:PORT`.
///
/// # Errors
/// The URL is another one, or nobody answers there.
pub async fn connect(url: &str) -> Result<AirmailClient<Channel>, Failure> {
    let address = url.strip_prefix("airmail://");
    let address =
        address.ok_or_else(|| Failure::new(format!("the node's URL: {url}: not airmail://")))?;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(Failure::new)?;
    let channel = endpoint.connect().await.map_err(Failure::new)?;
    Ok(AirmailClient::new(channel))
}

/// The first message, with credit for deliveries in bytes; 0: the node's default.
#[must_use]
pub fn hello(credit_bytes: u32) -> v1::ClientHello {
    v1::ClientHello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        namespaces: vec!["default".to_owned()],
        credit_bytes,
        client: "airmail bench".to_owned(),
        ..v1::ClientHello::default()
    }
}
