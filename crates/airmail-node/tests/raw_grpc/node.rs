//! A node in this process, and streams to it.

use crate::apart::start;
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::clock::SystemClock;
use airmail_model::{
    Batch, BatchEncoder, Checked, Error, Lane, Limits, LogId, LogIndex, MapEpoch, Message,
    NamespaceId, ProducerEpoch, ProducerId, ProducerSequence, TopicName,
};
use airmail_node::config::Config;
use airmail_node::{NodeOptions, Running};
use airmail_proto::error::error_from_proto;
use airmail_proto::v1;
use airmail_proto::v1::admin_client::AdminClient;
use airmail_proto::v1::airmail_client::AirmailClient;
use airmail_testkit::scale;
use airmail_testkit::waiting::{PATIENCE, Waiting, alive, waiting};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// The default namespace's number.
pub(crate) const DEFAULT: NamespaceId = NamespaceId(1);

pub(crate) struct Node {
    pub(crate) running: Running,
    above: Vec<Running>,
    pub(crate) address: SocketAddr,
    pub(crate) channel: Channel,
    _alive: Waiting,
}

impl Node {
    /// A node whose data is gone with it.
    pub(crate) async fn in_memory() -> Node {
        Node::with(Config {
            log_url: "memory:".into(),
            ..Config::default()
        })
        .await
    }

    /// A node on a disk.
    pub(crate) async fn on(data: &Path) -> Node {
        Node::with(Config {
            data: data.to_owned(),
            ..Config::default()
        })
        .await
    }

    pub(crate) async fn with(mut config: Config) -> Node {
        config.shards = scale::shards();
        let options = NodeOptions {
            access: airmail_node::Access::default(),
            config,
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            http: Some(TcpListener::bind("127.0.0.1:0").unwrap()),
            cluster: None,
            clock: Arc::new(SystemClock::new()),
            seed: 7,
            shutdown: CancellationToken::new(),
        };
        let (running, above) = start(options).await.unwrap();
        let address = running.address;
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.connect().await.unwrap();
        Node {
            running,
            above,
            address,
            channel,
            _alive: alive("a node"),
        }
    }

    pub(crate) fn client(&self) -> AirmailClient<Channel> {
        AirmailClient::new(self.channel.clone())
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn admin(&self) -> AdminClient<Channel> {
        AdminClient::new(self.channel.clone())
    }

    pub(crate) async fn stop(self) {
        let _waiting = waiting("the end of a node");
        self.running.stop().await;
        for node in self.above {
            node.stop().await;
        }
    }

    /// Stores one message.
    pub(crate) async fn publish_one(
        &self,
        topic: &str,
        payload: &str,
    ) -> Result<v1::PublishOneResponse, Status> {
        let request = v1::PublishOneRequest {
            namespace: String::new(),
            message: Some(message(topic, payload)),
        };
        let answer = self.client().publish_one(request).await?;
        Ok(answer.into_inner())
    }

    /// The stored payloads of a topic.
    pub(crate) async fn history(&self, topic: &str) -> Vec<String> {
        let request = v1::HistoryRequest {
            topic: topic.into(),
            ..Default::default()
        };
        self.history_of(request).await
    }

    /// The payloads of a look into history.
    pub(crate) async fn history_of(&self, request: v1::HistoryRequest) -> Vec<String> {
        let mut answers = self.client().history(request).await.unwrap().into_inner();
        let mut payloads = Vec::new();
        while let Some(answer) = answers.message().await.unwrap() {
            if let Some(v1::history_response::Kind::Delivery(delivery)) = answer.kind {
                payloads.extend(payloads_of(&delivery));
            }
        }
        payloads
    }

    /// A publish stream before its Hello.
    pub(crate) async fn publisher(&self) -> Publisher {
        let (requests, receiver) = mpsc::channel(64);
        let stream = ReceiverStream::new(receiver);
        let answers = self.client().publish(stream).await.unwrap().into_inner();
        Publisher { requests, answers }
    }

    /// A subscribe stream before its Hello.
    pub(crate) async fn subscriber(&self) -> Subscriber {
        let (requests, receiver) = mpsc::channel(64);
        let stream = ReceiverStream::new(receiver);
        let answers = self.client().subscribe(stream).await.unwrap().into_inner();
        Subscriber { requests, answers }
    }
}

/// The next answer of a stream.
async fn answer<T>(answers: &mut Streaming<T>, what: &str) -> Result<Option<T>, Status> {
    let _waiting = waiting(what);
    let answer = timeout(PATIENCE, answers.message()).await;
    answer.unwrap_or_else(|_| panic!("waited {} s for {what}", PATIENCE.as_secs()))
}

pub(crate) fn payloads_of(delivery: &v1::Delivery) -> Vec<String> {
    let Some(v1::delivery::Body::Messages(stored)) = &delivery.body else {
        panic!("plain messages expected: {delivery:?}");
    };
    let payload = |message: &v1::StoredMessage| String::from_utf8(message.payload.to_vec());
    stored
        .messages
        .iter()
        .map(|m| payload(m).unwrap())
        .collect()
}

pub(crate) fn message(topic: &str, payload: &str) -> v1::Message {
    v1::Message {
        topic: topic.into(),
        payload: payload.to_owned().into(),
        ..Default::default()
    }
}

/// The answer of a publish stream to Hello.
pub(crate) fn hello() -> v1::ClientHello {
    v1::ClientHello {
        protocol_min: 1,
        protocol_max: 1,
        client: "test".into(),
        ..Default::default()
    }
}

pub(crate) struct Publisher {
    pub(crate) requests: mpsc::Sender<v1::PublishRequest>,
    pub(crate) answers: Streaming<v1::PublishResponse>,
}

impl Publisher {
    pub(crate) async fn send(&self, kind: v1::publish_request::Kind) {
        let request = v1::PublishRequest { kind: Some(kind) };
        self.requests.send(request).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Result<v1::publish_response::Kind, Status> {
        let answer = answer(&mut self.answers, "a publish stream's next answer").await?;
        Ok(answer.expect("the stream goes on").kind.unwrap())
    }

    pub(crate) async fn greet(&mut self) -> v1::ServerHello {
        self.send(v1::publish_request::Kind::Hello(hello())).await;
        match self.next().await.unwrap() {
            v1::publish_response::Kind::Hello(hello) => hello,
            other => panic!("hello expected: {other:?}"),
        }
    }

    pub(crate) async fn publish(&self, request: u64, body: v1::publish_batch::Body) {
        let batch = v1::PublishBatch {
            request,
            body: Some(body),
            namespace: String::new(),
            begins_epoch: false,
        };
        let batches = v1::PublishBatches {
            batches: vec![batch],
        };
        self.send(v1::publish_request::Kind::Batches(batches)).await;
    }

    /// The next ack, which must come alone.
    pub(crate) async fn ack(&mut self) -> v1::Ack {
        match self.next().await.unwrap() {
            v1::publish_response::Kind::Acks(mut acks) if acks.acks.len() == 1 => {
                acks.acks.remove(0)
            }
            other => panic!("one ack expected: {other:?}"),
        }
    }

    /// Publishes a batch's bytes; its ack.
    pub(crate) async fn bytes(&mut self, request: u64, bytes: &[u8]) -> v1::Ack {
        let body = v1::publish_batch::Body::Batch(bytes.to_vec().into());
        self.publish(request, body).await;
        let ack = self.ack().await;
        assert_eq!(ack.request, request);
        ack
    }

    /// Publishes a batch that must be refused.
    pub(crate) async fn refused(&mut self, request: u64, bytes: &[u8]) -> Error {
        let ack = self.bytes(request, bytes).await;
        error_from_proto(&ack.error.expect("a refusal"))
    }
}

pub(crate) struct Subscriber {
    pub(crate) requests: mpsc::Sender<v1::SubscribeRequest>,
    pub(crate) answers: Streaming<v1::SubscribeResponse>,
}

impl Subscriber {
    pub(crate) async fn send(&self, kind: v1::subscribe_request::Kind) {
        let request = v1::SubscribeRequest { kind: Some(kind) };
        self.requests.send(request).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Result<v1::subscribe_response::Kind, Status> {
        let answer = answer(&mut self.answers, "a subscribe stream's next answer").await?;
        Ok(answer.expect("the stream goes on").kind.unwrap())
    }

    pub(crate) async fn greet(&mut self) -> v1::ServerHello {
        self.greet_with(hello()).await
    }

    pub(crate) async fn greet_with(&mut self, hello: v1::ClientHello) -> v1::ServerHello {
        self.send(v1::subscribe_request::Kind::Hello(hello)).await;
        match self.next().await.unwrap() {
            v1::subscribe_response::Kind::Hello(hello) => hello,
            other => panic!("hello expected: {other:?}"),
        }
    }

    pub(crate) async fn add(&self, subscription: u32, topic: &str, start: v1::start::At) {
        let add = v1::Add {
            subscription,
            topic: topic.into(),
            start: Some(v1::Start {
                at: Some(start),
                high: String::new(),
            }),
            ..Default::default()
        };
        self.send(v1::subscribe_request::Kind::Add(add)).await;
    }

    /// The next thing that is no mark and no gap without loss.
    pub(crate) async fn event(&mut self) -> v1::subscribe_response::Kind {
        loop {
            match self.next().await.unwrap() {
                v1::subscribe_response::Kind::Mark(_) => {}
                v1::subscribe_response::Kind::Gap(gap)
                    if gap.reason == v1::GapReason::Unused as i32 => {}
                other => return other,
            }
        }
    }

    /// The state of the next status.
    pub(crate) async fn state(&mut self) -> v1::status::State {
        match self.event().await {
            v1::subscribe_response::Kind::Status(status) => status.state.unwrap(),
            other => panic!("a status expected: {other:?}"),
        }
    }

    /// The next messages, `count` of them, and whatever states come between.
    /// Waits until a subscription is live.
    pub(crate) async fn live(&mut self, subscription: u32) {
        match self.event().await {
            v1::subscribe_response::Kind::Status(status) if status.subscription == subscription => {
                assert!(matches!(status.state, Some(v1::status::State::Live(_))));
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn messages(&mut self, count: usize) -> Vec<v1::StoredMessage> {
        let mut messages = Vec::new();
        while messages.len() < count {
            if let v1::subscribe_response::Kind::Delivery(delivery) = self.event().await {
                let Some(v1::delivery::Body::Messages(stored)) = delivery.body else {
                    panic!("plain messages expected");
                };
                messages.extend(stored.messages);
            }
        }
        messages
    }
}

/// A batch of messages for the default namespace's one log.
pub(crate) fn batch(messages: &[(&str, &str)], producer: Option<(u64, u64)>) -> Checked<Batch> {
    batch_for(DEFAULT, MapEpoch(1), messages, producer)
}

pub(crate) fn batch_for(
    namespace: NamespaceId,
    epoch: MapEpoch,
    messages: &[(&str, &str)],
    producer: Option<(u64, u64)>,
) -> Checked<Batch> {
    let producer = producer.map(|(id, sequence)| ProducerStamp {
        id: ProducerId(id),
        epoch: ProducerEpoch(0),
        sequence: ProducerSequence(sequence),
    });
    batch_of(namespace, epoch, messages, producer)
}

pub(crate) fn batch_of(
    namespace: NamespaceId,
    epoch: MapEpoch,
    messages: &[(&str, &str)],
    producer: Option<ProducerStamp>,
) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(namespace);
    for (topic, payload) in messages {
        let topic = TopicName::new(topic, &Limits::DEFAULT).unwrap();
        let message = Message::new(topic, (*payload).to_owned());
        encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    }
    encoder.finish(&BatchTarget {
        log: LogId {
            namespace,
            lane: Lane::Normal,
            index: LogIndex(0),
        },
        epoch,
        producer,
        producer_time: 0,
    })
}
