//! Lost connections, nodes that stop and come back, several addresses.

use crate::node::{Cutter, NOBODY, Node, PATIENCE, Wire, message, numbers, stored, take};
use airmail_client::{Client, ErrorCode, Standing, Start};
use airmail_testkit::lasting::lasting_address;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

#[tokio::test]
async fn cut_connections_lose_double_and_reorder_nothing() {
    let node = Node::in_memory().await;
    let (one, two) = (Wire::to(node.address).await, Wire::to(node.address).await);
    let url = format!("airmail://{},{}", one.address, two.address);
    let client = Client::connect(&url).await.unwrap();
    let mut subscription = client.subscribe("t").open().await.unwrap();
    let mut tasks = JoinSet::new();
    let publisher = client.publisher();
    let cuts = [one.cutter(), two.cutter()];
    tasks.spawn(async move {
        for chunk in 0..100 {
            let messages = (0..50).map(|n| message("t", chunk * 50 + n)).collect();
            let ack = publisher.send_all(messages).await.unwrap();
            let summary = ack.await.unwrap();
            assert_eq!((summary.stored, summary.error), (50, None));
            if chunk % 5 == 0 {
                cuts.iter().for_each(Cutter::cut);
            }
        }
    });
    let seen = tokio::time::timeout(PATIENCE, take(&mut subscription, 5_000)).await;
    assert_eq!(seen.unwrap(), numbers(0..5_000));
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(stored(&client, "t").await, numbers(0..5_000));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_stops_and_comes_back_is_gone_on_with() {
    let data = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let mut node = Node::on(data.path(), &address).await;
    let client = node.client().await;
    let mut live = client.subscribe("t").open().await.unwrap();
    let publisher = client.publisher();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for n in 0..1_500 {
            let ack = publisher.send(message("t", n)).await.unwrap();
            if n % 10 == 0 {
                ack.await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        publisher.flush().await.unwrap();
    });
    for _ in 0..3 {
        take_some().await;
        node.stop().await;
        node = Node::on(data.path(), &address).await;
    }
    let seen = tokio::time::timeout(PATIENCE, take(&mut live, 1_500))
        .await
        .unwrap();
    assert_eq!(seen, numbers(0..1_500));
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(stored(&client, "t").await, numbers(0..1_500));
    client.close().await.unwrap();
    node.stop().await;
}

/// Lets the others get some way.
async fn take_some() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn a_position_holds_in_another_connection() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::on(data.path(), "127.0.0.1:0").await;
    let client = node.client().await;
    let messages = (0..100).map(|n| message("t", n)).collect();
    client
        .publisher()
        .send_all(messages)
        .await
        .unwrap()
        .await
        .unwrap();
    let mut first = client
        .subscribe("t")
        .from(Start::Earliest)
        .open()
        .await
        .unwrap();
    assert_eq!(take(&mut first, 40).await, numbers(0..40));
    let position = first.position().unwrap();
    client.close().await.unwrap();
    node.stop().await;
    let node = Node::on(data.path(), "127.0.0.1:0").await;
    let client = node.client().await;
    let start = Start::Position(position.to_string().parse().unwrap());
    let mut second = client.subscribe("t").from(start).open().await.unwrap();
    assert_eq!(take(&mut second, 60).await, numbers(40..100));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn without_a_node_the_error_names_the_address() {
    let builder = Client::builder()
        .url(format!("airmail://{NOBODY}"))
        .connect_timeout(Duration::from_millis(300));
    let error = builder.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Disconnected);
    assert!(error.found().starts_with(NOBODY), "{error}");
}

#[tokio::test]
async fn the_second_address_serves_when_the_first_does_not() {
    let node = Node::in_memory().await;
    let url = format!("airmail://{NOBODY},{}", node.address);
    let client = Client::connect(&url).await.unwrap();
    client.publish("t", "x").await.unwrap();
    assert_eq!(stored(&client, "t").await, ["x"]);
    client.close().await.unwrap();
    node.stop().await;
}

/// Takes connections, and never says anything on them.
fn mute() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

#[tokio::test]
async fn one_that_takes_connections_and_never_answers_is_given_up_in_time() {
    let mute = mute();
    let address = mute.local_addr().unwrap();
    let builder = Client::builder()
        .url(format!("airmail://{address}"))
        .connect_timeout(Duration::from_millis(300));
    let connected = tokio::time::timeout(PATIENCE, builder.connect());
    let error = connected.await.expect("given up").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Disconnected);
    assert!(error.found().starts_with(&address.to_string()), "{error}");
}

#[tokio::test]
async fn the_second_address_serves_when_the_first_never_answers() {
    let (mute, node) = (mute(), Node::in_memory().await);
    let mute = mute.local_addr().unwrap();
    let builder = Client::builder()
        .url(format!("airmail://{mute},{}", node.address))
        // Half of it is the mute one's.
        .connect_timeout(Duration::from_secs(20));
    let client = builder.connect().await.unwrap();
    client.publish("t", "x").await.unwrap();
    assert_eq!(stored(&client, "t").await, ["x"]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_subscription_says_that_it_looks_for_a_node_and_when_it_has_one_again() {
    let data = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let node = Node::on(data.path(), &address).await;
    let client = node.client().await;
    let mut subscription = client.subscribe("t").open().await.unwrap();
    assert_eq!(subscription.standing(), Standing::Live);
    node.stop().await;
    while subscription.standing() != Standing::Connecting {
        let moment = Duration::from_millis(10);
        let next = tokio::time::timeout(moment, subscription.next()).await;
        assert!(next.is_err(), "a lost connection is no item: {next:?}");
    }
    let builder = Client::builder()
        .url(format!("airmail://{address}"))
        .connect_timeout(Duration::from_millis(300));
    let error = builder.connect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Disconnected, "a new one is told");
    let node = Node::on(data.path(), &address).await;
    client.publish("t", "0").await.unwrap();
    assert_eq!(take(&mut subscription, 1).await, numbers(0..1));
    assert_ne!(subscription.standing(), Standing::Connecting);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_message_that_no_node_takes_in_time_fails_and_says_whether_it_may_be_stored() {
    let node = Node::in_memory().await;
    let wire = Wire::to(node.address).await;
    let builder = Client::builder()
        .url(format!("airmail://{}", wire.address))
        .delivery_timeout(Duration::from_millis(400));
    let client = builder.connect().await.unwrap();
    // A machine that stands still may take longer for it than it is given.
    while client.publish("t", "x").await.is_err() {}
    node.stop().await;
    let error = client.publish("t", "y").await.unwrap_err();
    let told = [
        ErrorCode::Disconnected,
        ErrorCode::OutcomeUnknown,
        ErrorCode::ShuttingDown,
    ];
    assert!(told.contains(&error.code()), "{error}");
    client.close().await.unwrap();
}

/// The node has taken its place away meanwhile, and nobody notices.
#[tokio::test]
async fn a_client_that_asks_for_nothing_at_first_is_served_when_it_does() {
    let node = Node::that_has("listen.begin", "100ms").await;
    let (one, other) = (node.client().await, node.client().await);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    one.mailbox().ping("ping").await.unwrap();
    other.publish("t", "x").await.unwrap();
    one.close().await.unwrap();
    other.close().await.unwrap();
    node.stop().await;
}

/// Something that speaks HTTP/2 and is no node: it knows nothing of whatever it is asked.
struct Stranger {
    address: SocketAddr,
    serving: JoinSet<()>,
}

impl Stranger {
    async fn at(address: &str) -> Stranger {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, axum::Router::new()).await.unwrap() });
        Stranger { address, serving }
    }

    async fn leave(mut self) {
        self.serving.shutdown().await;
    }
}

#[tokio::test]
async fn where_something_else_answers_another_address_is_tried_and_the_only_one_is_told() {
    let (node, stranger) = (Node::in_memory().await, Stranger::at("127.0.0.1:0").await);
    let alone = Client::connect(&format!("airmail://{}", stranger.address)).await;
    let error = alone.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProtocolUnsupported, "{error}");
    for seed in 0..8 {
        let url = format!("airmail://{},{}", stranger.address, node.address);
        let client = Client::builder()
            .url(url)
            .seed(seed)
            .connect()
            .await
            .unwrap();
        let mut live = client.subscribe("t").open().await.unwrap();
        client.publish("t", "x").await.unwrap();
        assert_eq!(take(&mut live, 1).await, ["x"]);
        client.close().await.unwrap();
    }
    stranger.leave().await;
    node.stop().await;
}

#[tokio::test]
async fn a_node_whose_address_something_else_has_for_a_while_is_waited_for() {
    let data = tempfile::tempdir().unwrap();
    let address = lasting_address();
    let node = Node::on(data.path(), &address).await;
    let client = node.client().await;
    let mut live = client.subscribe("t").open().await.unwrap();
    client.publish("t", "before").await.unwrap();
    node.stop().await;
    let stranger = Stranger::at(&address).await;
    let meanwhile = client
        .publisher()
        .send(message("t", "meanwhile"))
        .await
        .unwrap();
    take_some().await;
    stranger.leave().await;
    let node = Node::on(data.path(), &address).await;
    meanwhile.await.unwrap();
    client.publish("t", "after").await.unwrap();
    assert_eq!(take(&mut live, 3).await, ["before", "meanwhile", "after"]);
    client.close().await.unwrap();
    node.stop().await;
}
