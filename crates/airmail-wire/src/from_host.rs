//! Messages of the node that has the logs, to and from the wire.

use crate::batch::{stored_from_wire, stored_to_wire};
use crate::link_v1;
use crate::link_v1::from_host::Message;
use crate::link_v1::range_gap::Why;
use crate::malformed::Malformed;
use crate::message::OnWire;
use crate::values::{
    bounds_from_wire, bounds_to_wire, durability_from_wire, durability_to_wire, extent_from_wire,
    extent_to_wire, log_from_wire, log_of, log_to_wire, need, provisions_from_wire,
    provisions_to_wire, refusal_from_wire, refusal_to_wire,
};
use airmail_link::{Ancestor, FromHost, Heartbeat};
use airmail_log::{Completion, GapWhy, ReaderId, Tag, TopicSeen};
use airmail_model::{AppendTime, MapEpoch, NodeId, Sequence, bug};
use bytes::Bytes;

impl OnWire for FromHost {
    type Message = link_v1::FromHost;

    fn to_wire(self) -> (link_v1::FromHost, Bytes) {
        let generation = self.generation();
        let (message, batch) = match self {
            FromHost::Range {
                previous,
                completion,
                ..
            } => range_to_wire(previous, completion),
            FromHost::Told { completion, .. } => (told_to_wire(completion), Bytes::new()),
            FromHost::Behind { r, .. } => {
                let behind = link_v1::OfReader { reader: r.0 };
                (Some(Message::Behind(behind)), Bytes::new())
            }
            FromHost::Heartbeat {
                heartbeat,
                asked_us,
            } => {
                let heartbeat = heartbeat_to_wire(*heartbeat, asked_us);
                (Some(Message::Heartbeat(heartbeat)), Bytes::new())
            }
        };
        let message = link_v1::FromHost {
            generation,
            message,
            batch: Bytes::new(),
        };
        (message, batch)
    }

    fn from_wire(message: link_v1::FromHost) -> Result<FromHost, Malformed> {
        let link_v1::FromHost {
            generation,
            message,
            batch,
        } = message;
        Ok(match need(message, "from_host.message")? {
            Message::Stored(range) => FromHost::Range {
                generation,
                previous: Sequence(range.previous),
                completion: Completion::Batch {
                    r: ReaderId(range.reader),
                    stored: stored_from_wire(range.stored, batch)?,
                },
            },
            Message::Gap(range) => FromHost::Range {
                generation,
                previous: Sequence(range.previous),
                completion: Completion::Gap {
                    r: ReaderId(range.reader),
                    extent: extent_from_wire(range.extent)?,
                    why: why_from_wire(range.why)?,
                },
            },
            Message::Behind(behind) => FromHost::Behind {
                generation,
                r: ReaderId(behind.reader),
            },
            Message::Heartbeat(heartbeat) => FromHost::Heartbeat {
                asked_us: heartbeat.asked_us,
                heartbeat: Box::new(heartbeat_from_wire(heartbeat)),
            },
            told => FromHost::Told {
                generation,
                completion: told_from_wire(told)?,
            },
        })
    }

    fn batch_bytes(&self) -> usize {
        match self {
            FromHost::Range {
                completion: Completion::Batch { stored, .. },
                ..
            } => stored.batch.bytes().len(),
            FromHost::Range { .. }
            | FromHost::Told { .. }
            | FromHost::Behind { .. }
            | FromHost::Heartbeat { .. } => 0,
        }
    }
}

fn heartbeat_to_wire(heartbeat: Heartbeat, asked_us: u64) -> link_v1::Heartbeat {
    let path = heartbeat.path.into_iter().map(|above| link_v1::Ancestor {
        node: above.node.0,
        name: above.name,
        address: above.address,
    });
    link_v1::Heartbeat {
        boot: heartbeat.boot,
        count: heartbeat.count,
        path: path.collect(),
        asked_us,
    }
}

fn heartbeat_from_wire(heartbeat: link_v1::Heartbeat) -> Heartbeat {
    let path = heartbeat.path.into_iter().map(|above| Ancestor {
        node: NodeId(above.node),
        name: above.name,
        address: above.address,
    });
    Heartbeat {
        boot: heartbeat.boot,
        count: heartbeat.count,
        path: path.collect(),
    }
}

/// A reader's next numbers. Nothing else is a range; no version sends it.
fn range_to_wire(previous: Sequence, completion: Completion) -> (Option<Message>, Bytes) {
    match completion {
        Completion::Batch { r, stored } => {
            let (stored, batch) = stored_to_wire(stored);
            let range = link_v1::RangeStored {
                reader: r.0,
                previous: previous.0,
                stored: Some(stored),
            };
            (Some(Message::Stored(range)), batch)
        }
        Completion::Gap { r, extent, why } => {
            let range = link_v1::RangeGap {
                reader: r.0,
                previous: previous.0,
                extent: Some(extent_to_wire(extent)),
                why: why_to_wire(why).into(),
            };
            (Some(Message::Gap(range)), Bytes::new())
        }
        other => {
            bug!("{other:?} is no range");
            (None, Bytes::new())
        }
    }
}

fn why_to_wire(why: GapWhy) -> Why {
    match why {
        GapWhy::Unused => Why::Unused,
        GapWhy::Retention => Why::Retention,
        GapWhy::Loss => Why::Loss,
    }
}

fn why_from_wire(why: i32) -> Result<GapWhy, Malformed> {
    match Why::try_from(why) {
        Ok(Why::Unused) => Ok(GapWhy::Unused),
        Ok(Why::Retention) => Ok(GapWhy::Retention),
        Ok(Why::Loss) => Ok(GapWhy::Loss),
        Err(_) => Err(Malformed::value("gap.why", why)),
    }
}

fn told_to_wire(completion: Completion) -> Option<Message> {
    let bounds_of = |t: Tag, bounds| link_v1::BoundsOf {
        tag: t.0,
        bounds: Some(bounds_to_wire(&bounds)),
    };
    Some(match completion {
        Completion::Appended {
            t,
            extent,
            at,
            held,
            duplicate,
            exact,
        } => Message::Appended(link_v1::Appended {
            tag: t.0,
            extent: Some(extent_to_wire(extent)),
            at: at.0,
            held: Some(durability_to_wire(held)),
            duplicate,
            exact,
        }),
        Completion::Provisioned { t, provisions } => Message::Provisioned(link_v1::Provisioned {
            tag: t.0,
            provisions: provisions_to_wire(&provisions),
        }),
        Completion::Opened { t, bounds } => Message::Opened(bounds_of(t, bounds)),
        Completion::Bounds { t, bounds } => Message::Bounds(bounds_of(t, bounds)),
        Completion::Refused { t, why } => Message::Refused(link_v1::Refusing {
            tag: t.0,
            why: Some(refusal_to_wire(why)),
        }),
        Completion::Found { t, at } => Message::Found(link_v1::Found { tag: t.0, at: at.0 }),
        Completion::Clock { t, at } => Message::Clock(link_v1::Clock { tag: t.0, at: at.0 }),
        Completion::Topics { t, page } => Message::Topics(link_v1::TopicsSeen {
            tag: t.0,
            page: page.into_iter().map(topic_to_wire).collect(),
        }),
        Completion::Done { t } => Message::Done(link_v1::Done { tag: t.0 }),
        Completion::Gained { log, bounds } => Message::Gained(link_v1::Gained {
            log: Some(log_to_wire(log)),
            bounds: Some(bounds_to_wire(&bounds)),
        }),
        Completion::Lost { log } => Message::Lost(log_to_wire(log)),
        Completion::Suspended { log, loss } => {
            bug!("{log} has lost {loss:?}, which is its owner's to know");
            return None;
        }
        of_reader => return mark_to_wire(of_reader),
    })
}

/// Something that a reader is told, and that is no range.
fn mark_to_wire(completion: Completion) -> Option<Message> {
    Some(match completion {
        Completion::Tail { r, next } => Message::Tail(link_v1::Tail {
            reader: r.0,
            next: next.0,
        }),
        Completion::Sealed { r, last, next } => Message::Sealed(link_v1::Sealed {
            reader: r.0,
            last: last.0,
            next: next.0,
        }),
        Completion::Effective { r, edit, at } => Message::Effective(link_v1::Effective {
            reader: r.0,
            edit,
            at: at.map(|at| at.0),
        }),
        Completion::WantsLost { r } => Message::WantsLost(link_v1::OfReader { reader: r.0 }),
        Completion::Ended { r, why } => Message::Ended(link_v1::Ended {
            reader: r.0,
            why: why.map(refusal_to_wire),
        }),
        range => {
            bug!("{range:?} is a range, or an answer");
            return None;
        }
    })
}

fn topic_to_wire(topic: TopicSeen) -> link_v1::TopicSeen {
    link_v1::TopicSeen {
        name: topic.name,
        last: topic.last.0,
    }
}

fn told_from_wire(message: Message) -> Result<Completion, Malformed> {
    Ok(match message {
        Message::Appended(appended) => Completion::Appended {
            t: Tag(appended.tag),
            extent: extent_from_wire(appended.extent)?,
            at: AppendTime(appended.at),
            held: durability_from_wire(appended.held)?,
            duplicate: appended.duplicate,
            exact: appended.exact,
        },
        Message::Provisioned(provisioned) => Completion::Provisioned {
            t: Tag(provisioned.tag),
            provisions: Box::new(provisions_from_wire(&provisioned.provisions)?),
        },
        Message::Opened(opened) => Completion::Opened {
            t: Tag(opened.tag),
            bounds: bounds_from_wire(opened.bounds)?,
        },
        Message::Bounds(bounds) => Completion::Bounds {
            t: Tag(bounds.tag),
            bounds: bounds_from_wire(bounds.bounds)?,
        },
        Message::Refused(refused) => Completion::Refused {
            t: Tag(refused.tag),
            why: refusal_from_wire(need(refused.why, "refused.why")?)?,
        },
        Message::Found(found) => Completion::Found {
            t: Tag(found.tag),
            at: Sequence(found.at),
        },
        Message::Clock(clock) => Completion::Clock {
            t: Tag(clock.tag),
            at: AppendTime(clock.at),
        },
        Message::Topics(topics) => Completion::Topics {
            t: Tag(topics.tag),
            page: topics.page.into_iter().map(topic_from_wire).collect(),
        },
        Message::Done(done) => Completion::Done { t: Tag(done.tag) },
        Message::Gained(gained) => Completion::Gained {
            log: log_of(gained.log)?,
            bounds: bounds_from_wire(gained.bounds)?,
        },
        Message::Lost(log) => Completion::Lost {
            log: log_from_wire(log)?,
        },
        mark => mark_from_wire(mark)?,
    })
}

fn mark_from_wire(message: Message) -> Result<Completion, Malformed> {
    Ok(match message {
        Message::Tail(tail) => Completion::Tail {
            r: ReaderId(tail.reader),
            next: Sequence(tail.next),
        },
        Message::Sealed(sealed) => Completion::Sealed {
            r: ReaderId(sealed.reader),
            last: Sequence(sealed.last),
            next: MapEpoch(sealed.next),
        },
        Message::Effective(effective) => Completion::Effective {
            r: ReaderId(effective.reader),
            edit: effective.edit,
            at: effective.at.map(Sequence),
        },
        Message::WantsLost(lost) => Completion::WantsLost {
            r: ReaderId(lost.reader),
        },
        Message::Ended(ended) => Completion::Ended {
            r: ReaderId(ended.reader),
            why: ended.why.map(refusal_from_wire).transpose()?,
        },
        _ => return Err(Malformed::Missing { field: "told" }),
    })
}

fn topic_from_wire(topic: link_v1::TopicSeen) -> TopicSeen {
    TopicSeen {
        name: topic.name,
        last: Sequence(topic.last),
    }
}
