//! What a stream without the SDK begins with: a connection of its own, and Hello.

use airmail_proto::hello::{PROTOCOL_MAX, PROTOCOL_MIN};
use airmail_proto::v1;
use airmail_proto::v1::airmail_client::AirmailClient;
use anyhow::Context as _;
use tonic::transport::{Channel, Endpoint};

/// Connects to `airmail://HOST:PORT`.
pub(super) async fn connect(url: &str) -> anyhow::Result<AirmailClient<Channel>> {
    let address = url.strip_prefix("airmail://");
    let address = address.with_context(|| format!("the node's URL: {url}: not airmail://"))?;
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    Ok(AirmailClient::new(endpoint.connect().await?))
}

/// The first word, with room for so many bytes of deliveries; 0: as much as the node gives.
pub(super) fn hello(credit_bytes: u32) -> v1::ClientHello {
    v1::ClientHello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        namespaces: vec!["default".to_owned()],
        credit_bytes,
        client: "airmail bench".to_owned(),
        ..v1::ClientHello::default()
    }
}
