//! A front door that is not gRPC, made of `FrontDoor` and `SessionHandle` alone.

use airmail_broker::Principal;
use airmail_model::frame::{
    Credit, Generation, Hello, Reply, RequestId, Start, State, Subscribe, SubscriptionId, Wanted,
};
use airmail_model::{Error, ErrorCode, Message, Sequence, TopicName};
use airmail_node::{Event, FrontDoor, SessionHandle};
use std::io;
use std::str::FromStr;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// Serves one connection, whose client is `principal`, to its end.
pub(crate) async fn serve(
    stream: UnixStream,
    door: FrontDoor,
    principal: Principal,
) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut lines = BufReader::new(reading).lines();
    let mut session = SessionHandle::open(&door, principal)
        .await
        .map_err(io::Error::other)?;
    loop {
        let said = tokio::select! {
            line = lines.next_line(), if session.has_room() => match line? {
                Some(line) => ask(&session, &line).await.map(|()| String::new()),
                None => return Ok(()),
            },
            event = session.next() => match event {
                Some(event) => event.map(tell),
                None => return Ok(()),
            },
        };
        match said {
            Ok(lines) => writing.write_all(lines.as_bytes()).await?,
            Err(error) => {
                let bye = format!("bye {}\n", facts(&error));
                return writing.write_all(bye.as_bytes()).await;
            }
        }
    }
}

/// Does what a line asks for.
async fn ask(session: &SessionHandle, line: &str) -> Result<(), Error> {
    let (requests, door) = (session.requests(), session.requests().door());
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    match words[..] {
        ["hello"] => {
            let hello = Hello {
                protocol: 1,
                namespaces: Vec::new(),
                credit: Credit::Automatic,
                roles: Vec::new(),
            };
            session.hello(&hello).await?;
        }
        ["publish", number, namespace, topic, payload] => {
            let request = RequestId(read("number", number)?);
            let topic = TopicName::new(topic, door.limits());
            let message = topic.map(|topic| Message::new(topic, payload.as_bytes().to_vec()));
            let (messages, now) = ([message], door.mono());
            let published = requests.publish_messages(request, namespace, messages, now);
            published.await?;
        }
        ["subscribe", number, namespace, topic, from] => {
            let subscription = SubscriptionId(read("number", number)?);
            let generation = Generation(0);
            let start = Start::Sequence(Sequence(read("sequence", from)?));
            match door.topic(namespace, topic) {
                Ok((namespace, topic)) => {
                    let subscribe = Subscribe {
                        subscription,
                        generation,
                        namespace,
                        wanted: Wanted::Topic(topic),
                        start,
                        until: None,
                        tell_expired: false,
                        filter: None,
                        headers_only: false,
                        matches: false,
                        lanes: airmail_model::frame::Lanes::Each,
                    };
                    session.add(subscribe).await?;
                }
                Err(refusal) => requests.refuse_subscription(subscription, generation, refusal),
            }
        }
        _ => return Err(Error::new(ErrorCode::InvalidArgument).field("line")),
    }
    Ok(())
}

fn read<T: FromStr>(field: &str, word: &str) -> Result<T, Error> {
    let wrong = |_| Error::new(ErrorCode::InvalidArgument).field(field);
    word.parse().map_err(wrong)
}

/// The lines that say an event.
fn tell(event: Event) -> String {
    match event {
        Event::Welcome(welcome) => format!("welcome {}\n", welcome.node),
        Event::PublishRefused(request, why) => refused(request, &(*why).into()),
        Event::NotAdded(not) => failed(not.subscription, &not.refusal.into()),
        Event::Reply(Reply::Acked { request, result }) => match result {
            Ok(ack) => format!("stored {} {}\n", request.0, ack.extent.first),
            Err(why) => refused(request, &why.error),
        },
        Event::Reply(Reply::Delivery(delivery)) => {
            let mut lines = String::new();
            for record in delivery.body.to_batch().iter() {
                let number = delivery.base.plus(record.index.into());
                if delivery.previous < number && number <= delivery.last {
                    let payload = String::from_utf8_lossy(record.payload);
                    lines += &format!("message {number} {} {payload}\n", record.topic_name);
                }
            }
            lines
        }
        Event::Reply(Reply::Gap {
            previous,
            last,
            why,
            ..
        }) => format!("gap {} {last} {why:?}\n", previous.plus(1)),
        Event::Maps(_)
        | Event::Alive(_)
        | Event::Nodes(_)
        | Event::Reply(Reply::Mark { .. } | Reply::Expired(_) | Reply::Clock { .. }) => {
            String::new()
        }
        Event::Reply(Reply::Status {
            subscription,
            state,
            ..
        }) => match state {
            State::Live { .. } => format!("live {}\n", subscription.0),
            State::Detached { .. } => format!("behind {}\n", subscription.0),
            State::Complete { .. } | State::Removed | State::Changed { .. } => String::new(),
            State::Failed(error) | State::Unchanged(error) => failed(subscription, &error),
        },
    }
}

fn facts(error: &Error) -> String {
    format!("{} {}", error.code().name(), error.field_name())
}

fn refused(request: RequestId, error: &Error) -> String {
    format!("refused {} {}\n", request.0, facts(error))
}

fn failed(subscription: SubscriptionId, error: &Error) -> String {
    format!("failed {} {}\n", subscription.0, facts(error))
}
