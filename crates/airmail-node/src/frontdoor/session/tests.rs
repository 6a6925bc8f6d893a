use super::*;
use crate::config::Config;
use crate::config::cluster::Roles;
use crate::frontdoor::PublishRefusal;
use crate::metrics::Metrics;
use crate::send_queue::SendQueue;
use crate::shard_handle::{ShardHandle, ToShard};
use crate::shards::Shards;
use airmail_model::batch::BatchTarget;
use airmail_model::clock::SystemClock;
use airmail_model::frame::{Ack, Channel, Credit, Delivered, Delivery, Refused, Reply, Request};
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Durability, ErrorCode, Extent, Limits, LogId,
    MapEpoch, Message, Sequence, TopicName,
};
use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A shard that does nothing by itself.
struct Shard {
    door: FrontDoor,
    requests: mpsc::Receiver<ToShard>,
    stop: CancellationToken,
}

impl Shard {
    fn new() -> Shard {
        let stop = CancellationToken::new();
        let clock = Arc::new(SystemClock::new());
        let (handle, requests) = ShardHandle::new(
            ("n".into(), Roles::ALL, 1),
            Limits::DEFAULT,
            clock,
            stop.clone(),
            false,
        );
        Shard {
            door: FrontDoor::new(
                &handle.clone(),
                &Shards::new(handle, Vec::new()),
                &Config::default(),
                &Arc::new(Metrics::default()),
            ),
            requests,
            stop,
        }
    }

    /// A session for one call, and where its events are put in.
    async fn session(&mut self, credit: u32) -> (SessionHandle, Arc<SendQueue>) {
        let principal = Principal::default();
        let session = SessionHandle::for_one_call(&self.door, principal, credit).await;
        let Ok(ToShard::Opened { queue, .. }) = self.requests.try_recv() else {
            panic!("a session was opened");
        };
        (session.unwrap(), queue)
    }

    /// The number of the publish that is asked for next.
    fn published(&mut self) -> RequestId {
        let Ok(ToShard::Request {
            request: Request::Publish { request, .. },
            ..
        }) = self.requests.try_recv()
        else {
            panic!("a publish was asked for");
        };
        request
    }
}

fn batch() -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(LogId::SYSTEM.namespace);
    let topic = TopicName::new("t", &Limits::DEFAULT).unwrap();
    let message = Message::new(topic, vec![0; 10]);
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    encoder.finish(&BatchTarget {
        log: LogId::SYSTEM,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

fn acked(request: RequestId, first: u64) -> Event {
    let result: Result<Ack, Refused> = Ok(Ack {
        extent: Extent::starting_at(Sequence(first), 1),
        appended: AppendTime(0),
        held: Durability::FSYNC,
        duplicate: false,
        exact: true,
    });
    Event::Reply(Reply::Acked { request, result })
}

fn delivery() -> Event {
    Event::Reply(Reply::Delivery(Delivery {
        channel: Channel::Live,
        log: LogId::SYSTEM,
        previous: Sequence(0),
        last: Sequence(1),
        base: Sequence(1),
        appended: AppendTime(0),
        clock: None,
        body: Delivered::Whole(batch()),
        matches: None,
    }))
}

/// The next event, if it is there.
fn now(session: &mut SessionHandle) -> Option<Result<Event, Error>> {
    session.next().now_or_never().map(Option::unwrap)
}

#[tokio::test]
async fn batches_published_together_have_one_answer_under_their_clients_number() {
    let mut shard = Shard::new();
    let (mut session, queue) = shard.session(0).await;
    let (client, received) = (RequestId(7), shard.door.mono());
    let together = session.requests();
    let together = together.publish_together(client, vec![batch(), batch()], received);
    together.await.unwrap();
    let [one, two] = [shard.published(), shard.published()];
    queue.push(acked(two, 2));
    assert!(now(&mut session).is_none());
    queue.push(acked(one, 1));
    let Some(Ok(Event::Reply(Reply::Acked { request, result }))) = now(&mut session) else {
        panic!("an ack expected");
    };
    assert_eq!(request, client);
    assert_eq!(result.unwrap().extent.first, Sequence(1));
}

#[tokio::test]
async fn credit_comes_back_by_itself_until_the_client_grants_some() {
    let mut shard = Shard::new();
    let (mut session, queue) = shard.session(1_000).await;
    queue.push(delivery());
    assert!(matches!(now(&mut session), Some(Ok(_))));
    assert!(queue.take_notice().credit > 0);
    session.credit(50).await.unwrap();
    queue.push(delivery());
    assert!(matches!(now(&mut session), Some(Ok(_))));
    assert_eq!(queue.take_notice().credit, 0);
}

#[tokio::test]
async fn a_stop_is_told_when_everything_published_has_been_answered() {
    let mut shard = Shard::new();
    let (mut session, queue) = shard.session(0).await;
    let bytes = batch().bytes().clone();
    let published = session.publish(RequestId(1), bytes, shard.door.mono());
    published.await.unwrap();
    shard.stop.cancel();
    assert!(now(&mut session).is_none());
    queue.push(acked(shard.published(), 1));
    assert!(matches!(now(&mut session), Some(Ok(_))));
    let end = now(&mut session).unwrap().unwrap_err();
    assert_eq!(end.code(), ErrorCode::ShuttingDown);
}

#[tokio::test]
async fn a_stop_waits_for_every_session_that_is_open() {
    let mut shard = Shard::new();
    let (whole, _) = shard.session(0).await;
    let (split, _) = shard.session(0).await;
    let (requests, events) = split.split();
    drop(requests);
    assert_eq!(shard.door.tasks().len(), 2);
    drop((whole, events));
    assert!(shard.door.tasks().is_empty());
}

#[tokio::test]
async fn nothing_can_be_asked_before_hello() {
    let shard = Shard::new();
    let session = SessionHandle::open(&shard.door, Principal::default()).await;
    let session = session.unwrap();
    let early = session.credit(1).await.unwrap_err();
    assert!(matches!(early, SessionError::HelloExpected { .. }));
    let hello = Hello {
        protocol: 1,
        namespaces: Vec::new(),
        credit: Credit::Nothing,
        roles: Vec::new(),
    };
    // The shard of this test never is ready.
    let starting = SessionError::Unavailable(Unavailable::Starting);
    assert_eq!(session.hello(&hello).await, Err(starting));
}

#[tokio::test]
async fn a_batch_that_is_none_is_refused_and_the_session_goes_on() {
    let mut shard = Shard::new();
    let (mut session, _queue) = shard.session(0).await;
    let garbage = Bytes::from_static(b"garbage");
    let published = session.publish(RequestId(3), garbage, shard.door.mono());
    published.await.unwrap();
    let Some(Ok(Event::PublishRefused(RequestId(3), refusal))) = now(&mut session) else {
        panic!("a refusal expected");
    };
    assert!(matches!(*refusal, PublishRefusal::Unacceptable(_)));
    assert!(now(&mut session).is_none());
    assert!(session.has_room());
}
