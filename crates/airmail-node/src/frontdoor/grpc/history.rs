//! History: the stored messages of one topic, oldest first, then the end.
//!
//! A subscription with an end, on a session of its own, whose credit comes back as the connection
//! takes what is sent.

use super::plain_messages::Format;
use super::{Answers, Call, Services, principal_of};
use crate::frontdoor::{FrontDoor, SessionHandle};
use crate::send_queue::Event;
use airmail_broker::Principal;
use airmail_model::frame::{
    Delivered, Delivery, GapReason, Generation, Lanes, Reply, Start, State, Subscribe,
    SubscriptionId,
};
use airmail_model::position::LogPosition;
use airmail_model::{Error, Lane, LogId};
use airmail_proto::message::{lane_from_proto, no_such_lane};
use airmail_proto::subscribe::{
    delivery_to_proto, expired_to_proto, filter_from_proto, gap_to_proto, named_from_proto,
    no_place_in_high, place_to_proto, start_from_proto, until_from_proto,
};
use airmail_proto::v1;
use airmail_proto::v1::history_response::Kind;
use futures::Stream;
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tonic::{Request, Status};

/// Begins a look into history.
pub(super) async fn stream(
    services: &Services,
    call: &Call,
    request: Request<v1::HistoryRequest>,
) -> Result<Answers<v1::HistoryResponse>, Error> {
    let principal = principal_of(&request)?;
    let request = request.into_inner();
    let door = &services.door;
    door.check_up()?;
    door.takes_subscriptions()?;
    let selector = request.selector.map(v1::add::Selector::from);
    let (topic, log) = (&request.topic, request.log);
    let wanted = named_from_proto(topic, selector.as_ref(), log, door.limits())?;
    let entry = door.handle().namespace(&request.namespace)?;
    let (namespace, has_high) = (entry.namespace.id, entry.has_high);
    let lane = request.lane.map(wanted_lane).transpose()?;
    no_place_in_high(request.since.as_ref(), "since.high")?;
    no_place_in_high(request.until.as_ref(), "until.high")?;
    if lane == Some(Lane::High) && !has_high {
        // Nothing was ever published to it.
        return Ok(Box::pin(futures::stream::empty()));
    }
    let subscribe = Subscribe {
        subscription: SubscriptionId(0),
        generation: Generation(0),
        namespace,
        wanted: wanted.within(namespace),
        start: start_from_proto(request.since.as_ref())?.unwrap_or(Start::Earliest),
        until: Some(until_from_proto(request.until.as_ref())?),
        tell_expired: request.tell_expired,
        filter: filter_from_proto(&request.filter)?,
        headers_only: request.headers_only,
        matches: false,
        lanes: match lane {
            Some(lane) => Lanes::Only(lane),
            // A client of before there were lanes, which takes all batches for those of one log.
            None if request.batches => Lanes::Only(Lane::Normal),
            None => Lanes::Each,
        },
    };
    let mut format = Format::default();
    format.add(request.batches, &subscribe);
    let principal = Principal {
        roles: door.believed(&request.roles)?,
        ..Principal::clone(&principal)
    };
    let credit = door.limits().credit_bytes;
    let session = SessionHandle::for_one_call(door, principal, credit).await?;
    session.add(subscribe).await?;
    Ok(Box::pin(History {
        door: door.clone(),
        session,
        format,
        call: call.clone(),
        left: match request.limit {
            0 => u64::MAX,
            limit => limit,
        },
        has_high,
        begun: BTreeSet::new(),
        to_send: VecDeque::new(),
        ended: false,
    }))
}

/// The lane that a request names.
fn wanted_lane(lane: i32) -> Result<Lane, Error> {
    lane_from_proto(lane).ok_or_else(|| no_such_lane(lane))
}

struct History {
    door: FrontDoor,
    session: SessionHandle,
    format: Format,
    call: Call,
    /// Messages still to be sent.
    left: u64,
    /// Whether its namespace has logs of lane high.
    has_high: bool,
    /// Logs that it was told to begin in.
    begun: BTreeSet<LogId>,
    /// Answers that are to be sent before anything else.
    to_send: VecDeque<Kind>,
    ended: bool,
}

/// A reply's meaning for the stream.
enum Step {
    Send(Kind),
    Skip,
    End(Result<(), Error>),
}

impl History {
    fn step(&mut self, reply: Reply) -> Step {
        match reply {
            Reply::Delivery(delivery) => self.delivery(delivery).map_or(Step::Skip, Step::Send),
            Reply::Gap {
                channel,
                log,
                previous,
                last,
                why,
            } if why != GapReason::Unused => {
                if let Format::Plain(plain) = &mut self.format {
                    plain.account(channel, log, last.plus(1));
                }
                Step::Send(Kind::Gap(gap_to_proto(channel, log, (previous, last), why)))
            }
            Reply::Status {
                subscription,
                generation,
                ref state,
            } => match state {
                State::Complete { .. } | State::Removed => Step::End(Ok(())),
                State::Failed(error) => Step::End(Err(error.clone())),
                // Nobody asks for changes of it.
                State::Changed { .. } | State::Unchanged(_) => Step::Skip,
                State::Live { .. } | State::Detached { .. } => {
                    if let Format::Plain(plain) = &mut self.format {
                        plain.note((subscription, generation), state);
                    }
                    for place in state.places() {
                        self.begin(place);
                    }
                    Step::Skip
                }
            },
            Reply::Expired(expired) => Step::Send(Kind::Expired(expired_to_proto(&expired))),
            Reply::Clock { .. } | Reply::Gap { .. } | Reply::Mark { .. } | Reply::Acked { .. } => {
                Step::Skip
            }
        }
    }

    /// Where it begins, for whoever makes positions. Told once for each log that it goes over.
    fn begin(&mut self, place: LogPosition) {
        let log = place.log;
        if self.begun.insert(log) {
            let epoch = self.door.epoch_of(log.namespace);
            self.to_send.push_back(Kind::Begin(v1::At {
                node_ns: self.door.mono().0,
                has_high: self.has_high,
                ..place_to_proto(place, epoch)
            }));
        }
    }

    fn delivery(&mut self, delivery: Delivery) -> Option<Kind> {
        let delivery = match &mut self.format {
            Format::Plain(plain) => {
                let mut delivery = plain.delivery(&delivery, |id| self.door.epoch_of(id));
                if let Some(v1::delivery::Body::Messages(stored)) = &mut delivery.body {
                    let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                    stored.messages.truncate(most);
                    self.left -= stored.messages.len() as u64;
                }
                delivery
            }
            Format::Batches | Format::Unknown => self.batch(delivery)?,
        };
        Some(Kind::Delivery(delivery))
    }

    /// A delivery in the stored format, cut where the limit is.
    fn batch(&mut self, delivery: Delivery) -> Option<v1::Delivery> {
        let Delivery {
            previous,
            last,
            base,
            ..
        } = delivery;
        let whole = delivery.body.into_batch();
        let mut left = self.left;
        let mut end = last;
        let cut = whole.slice(|index, _| {
            let number = base.plus(index.into());
            let wanted = left > 0 && previous < number && number <= last;
            if wanted {
                left -= 1;
                end = number;
            }
            wanted
        })?;
        let last = if left == 0 { end } else { last };
        self.left = left;
        let body = if cut.records() == whole.records() {
            Delivered::Whole(whole)
        } else {
            Delivered::Slice(cut)
        };
        Some(delivery_to_proto(&Delivery {
            last,
            body,
            ..delivery
        }))
    }
}

impl Stream for History {
    type Item = Result<v1::HistoryResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended {
            if let Some(kind) = self.to_send.pop_front() {
                return Poll::Ready(Some(Ok(v1::HistoryResponse { kind: Some(kind) })));
            }
            if self.left == 0 {
                break;
            }
            let step = match ready!(self.session.poll_next(cx)) {
                Some(Ok(Event::Reply(reply))) => self.step(reply),
                Some(Ok(_)) => Step::Skip,
                Some(Err(error)) => Step::End(Err(error)),
                None => break,
            };
            match step {
                Step::Send(kind) => {
                    return Poll::Ready(Some(Ok(v1::HistoryResponse { kind: Some(kind) })));
                }
                Step::Skip => {}
                Step::End(Ok(())) => break,
                Step::End(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(self.call.status(&error))));
                }
            }
        }
        self.ended = true;
        Poll::Ready(None)
    }
}
