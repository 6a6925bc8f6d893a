//! Every golden vector that a client may send, published to a node: each malformed one is refused
//! with the error it says, and the stream goes on.

use crate::node::{Node, batch};
use serde_json::Value;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[tokio::test]
async fn each_vector_is_answered_as_it_says_and_the_stream_goes_on() {
    let node = Node::in_memory().await;
    let vectors: Value =
        serde_json::from_str(include_str!("../../../../vectors/batch.json")).unwrap();
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let (mut accepted, mut refused) = (0, 0);
    for (request, case) in vectors["cases"].as_array().unwrap().iter().enumerate() {
        let bytes = bytes_of(case["hex"].as_str().unwrap());
        let ack = publisher.bytes(request as u64, &bytes).await;
        let error = ack
            .error
            .expect("no vector is made for this node's namespaces");
        let name = case["name"].as_str().unwrap_or_default();
        if case["edge"] == "accepted" {
            // Well formed, but for a namespace that is not here.
            assert_eq!(error.name, "NAMESPACE_NOT_FOUND", "{name}");
            accepted += 1;
        } else {
            assert_eq!(
                case["edge"]["error"],
                error.name.as_str(),
                "{name}: {error:?}"
            );
            assert_eq!(
                case["edge"]["field"],
                error.field.as_str(),
                "{name}: {error:?}"
            );
            refused += 1;
        }
    }
    assert!(accepted > 0 && refused >= 20, "{accepted}, {refused}");
    let good = publisher
        .bytes(9_999, batch(&[("t", "x")], None).bytes())
        .await;
    assert!(good.error.is_none());
    assert_eq!(node.history("t").await, ["x"]);
    node.stop().await;
}
