//! Messages to the node that has the logs, to and from the wire.

use crate::batch::{batch_from_wire, stored_from_wire, stored_to_wire};
use crate::link_v1;
use crate::link_v1::to_host::Message;
use crate::malformed::Malformed;
use crate::message::OnWire;
use crate::values::{
    log_of, log_to_wire, narrow, need, provisions_from_wire, provisions_to_wire, spec_from_wire,
    spec_to_wire, storage_from_wire,
};
use airmail_link::ToHost;
use airmail_log::{
    Call, Direction, Origin, ReaderId, Scope, ScopeFilter, Tag, TopicPage, WantEdit,
};
use airmail_model::{AppendTime, MapEpoch, Sequence, TopicHash, bug};
use bytes::Bytes;

/// Bytes of a topic's hash.
const HASH_BYTES: usize = 16;

impl OnWire for ToHost {
    type Message = link_v1::ToHost;

    fn to_wire(self) -> (link_v1::ToHost, Bytes) {
        let (generation, (message, batch)) = match self {
            ToHost::Begin { generation } => (generation, bare(Message::Begin(link_v1::Begin {}))),
            ToHost::Closing { generation } => {
                (generation, bare(Message::Closing(link_v1::Closing {})))
            }
            ToHost::Call { generation, call } => (generation, call_to_wire(call)),
            ToHost::Resume {
                generation,
                of,
                call,
            } => (generation, resume_to_wire(of, call)),
            ToHost::Below { children, asked_us } => {
                let below = link_v1::Below { children, asked_us };
                (0, bare(Message::Below(below)))
            }
        };
        let message = link_v1::ToHost {
            generation,
            message: Some(message),
            batch: Bytes::new(),
        };
        (message, batch)
    }

    fn from_wire(message: link_v1::ToHost) -> Result<ToHost, Malformed> {
        let link_v1::ToHost {
            generation,
            message,
            batch,
        } = message;
        Ok(match need(message, "to_host.message")? {
            Message::Begin(_) => ToHost::Begin { generation },
            Message::Closing(_) => ToHost::Closing { generation },
            Message::Below(link_v1::Below { children, asked_us }) => {
                ToHost::Below { children, asked_us }
            }
            Message::Resume(link_v1::Resume { of, read }) => ToHost::Resume {
                generation,
                of: ReaderId(of),
                call: read_from_wire(need(read, "resume.read")?)?,
            },
            other => ToHost::Call {
                generation,
                call: call_from_wire(other, batch)?,
            },
        })
    }

    fn batch_bytes(&self) -> usize {
        match self {
            ToHost::Call {
                call: Call::Append { batch, .. },
                ..
            } => batch.bytes().len(),
            ToHost::Call {
                call: Call::Heal { copy, .. },
                ..
            } => copy.batch.bytes().len(),
            ToHost::Begin { .. }
            | ToHost::Call { .. }
            | ToHost::Resume { .. }
            | ToHost::Closing { .. }
            | ToHost::Below { .. } => 0,
        }
    }
}

fn bare(message: Message) -> (Message, Bytes) {
    (message, Bytes::new())
}

fn call_to_wire(call: Call) -> (Message, Bytes) {
    bare(match call {
        Call::Append {
            t,
            log,
            map,
            batch,
            sole,
        } => {
            let append = link_v1::Append {
                tag: t.0,
                log: Some(log_to_wire(log)),
                map: map.0,
                sole,
            };
            return (Message::Append(append), batch.bytes().clone());
        }
        Call::Heal { t, log, copy } => {
            let (stored, batch) = stored_to_wire(*copy);
            let heal = link_v1::Heal {
                tag: t.0,
                log: Some(log_to_wire(log)),
                stored: Some(stored),
            };
            return (Message::Heal(heal), batch);
        }
        Call::Read {
            r,
            log,
            from,
            scope,
            credit,
        } => Message::Read(link_v1::Read {
            reader: r.0,
            log: Some(log_to_wire(log)),
            from: from.0,
            credit,
            ..scope_to_wire(&scope)
        }),
        Call::Credit { r, bytes } => Message::Credit(link_v1::Credit { reader: r.0, bytes }),
        Call::Want { r, edit, topics } => Message::Want(link_v1::Want {
            reader: r.0,
            edit,
            add: hashes_to_wire(&topics.add),
            drop: hashes_to_wire(&topics.drop),
            more: topics.more,
        }),
        Call::Stop { r } => Message::Stop(link_v1::Stop { reader: r.0 }),
        Call::Provision { t, log, logs, spec } => Message::Provision(link_v1::Provision {
            tag: t.0,
            log: Some(log_to_wire(log)),
            logs: logs.into(),
            spec: Some(spec_to_wire(&spec)),
        }),
        Call::Open { t, log, spec } => Message::Open(link_v1::Open {
            tag: t.0,
            log: Some(log_to_wire(log)),
            spec: Some(spec_to_wire(&spec)),
        }),
        question => return bare(question_to_wire(question)),
    })
}

/// A call that is neither of a reader nor carries a batch or a spec.
fn question_to_wire(call: Call) -> Message {
    let log = call.log().map(log_to_wire);
    let tag = call.tag().map_or(0, |t| t.0);
    match call {
        Call::FindTime { at, .. } => Message::FindTime(link_v1::FindTime { tag, log, at: at.0 }),
        Call::Renew { .. } => Message::Renew(link_v1::Ask { tag, log }),
        Call::Topics { page, .. } => Message::Topics(link_v1::Topics {
            tag,
            log,
            prefix: page.prefix,
            after: page.after,
            limit: page.limit,
        }),
        Call::Trim { before, .. } => Message::Trim(link_v1::Trim {
            tag,
            log,
            before: before.0,
        }),
        Call::Seal { next, .. } => Message::Seal(link_v1::Seal {
            tag,
            log,
            next: next.0,
        }),
        Call::Withdraw { logs, origin, .. } => Message::Withdraw(link_v1::Withdraw {
            tag,
            log,
            logs: logs.into(),
            storage: origin.storage.as_str().to_owned(),
            provisions: provisions_to_wire(&origin.provisions),
        }),
        Call::Delete { as_of, origin, .. } => Message::Delete(link_v1::Delete {
            tag,
            log,
            as_of: as_of.0,
            storage: origin.storage.as_str().to_owned(),
            provisions: provisions_to_wire(&origin.provisions),
        }),
        Call::Bounds { .. } => Message::Bounds(link_v1::Ask { tag, log }),
        Call::Clock { .. } => Message::Clock(link_v1::Ask { tag, log }),
        other => {
            bug!("{other:?} is no question");
            Message::Bounds(link_v1::Ask { tag, log })
        }
    }
}

/// A reader's call that goes on as another. Any other call resumes nothing, and is sent as itself.
fn resume_to_wire(of: ReaderId, call: Call) -> (Message, Bytes) {
    match call_to_wire(call) {
        (Message::Read(read), batch) => {
            let resume = link_v1::Resume {
                of: of.0,
                read: Some(read),
            };
            (Message::Resume(resume), batch)
        }
        other => other,
    }
}

fn call_from_wire(message: Message, batch: Bytes) -> Result<Call, Malformed> {
    Ok(match message {
        Message::Append(append) => Call::Append {
            t: Tag(append.tag),
            log: log_of(append.log)?,
            map: MapEpoch(append.map),
            batch: batch_from_wire(batch)?,
            sole: append.sole,
        },
        Message::Heal(heal) => Call::Heal {
            t: Tag(heal.tag),
            log: log_of(heal.log)?,
            copy: Box::new(stored_from_wire(heal.stored, batch)?),
        },
        Message::Provision(provision) => Call::Provision {
            t: Tag(provision.tag),
            log: log_of(provision.log)?,
            logs: narrow(provision.logs, "provision.logs")?,
            spec: Box::new(spec_from_wire(provision.spec)?),
        },
        Message::Open(open) => Call::Open {
            t: Tag(open.tag),
            log: log_of(open.log)?,
            spec: Box::new(spec_from_wire(open.spec)?),
        },
        Message::Read(read) => read_from_wire(read)?,
        Message::Credit(credit) => Call::Credit {
            r: ReaderId(credit.reader),
            bytes: credit.bytes,
        },
        Message::Want(want) => Call::Want {
            r: ReaderId(want.reader),
            edit: want.edit,
            topics: Box::new(WantEdit {
                add: hashes_from_wire(&want.add, "want.add")?,
                drop: hashes_from_wire(&want.drop, "want.drop")?,
                more: want.more,
            }),
        },
        Message::Stop(stop) => Call::Stop {
            r: ReaderId(stop.reader),
        },
        other => question_from_wire(other)?,
    })
}

/// A call that is neither of a reader nor carries a batch.
fn question_from_wire(message: Message) -> Result<Call, Malformed> {
    Ok(match message {
        Message::FindTime(find) => Call::FindTime {
            t: Tag(find.tag),
            log: log_of(find.log)?,
            at: AppendTime(find.at),
        },
        Message::Bounds(ask) => Call::Bounds {
            t: Tag(ask.tag),
            log: log_of(ask.log)?,
        },
        Message::Clock(ask) => Call::Clock {
            t: Tag(ask.tag),
            log: log_of(ask.log)?,
        },
        Message::Renew(ask) => Call::Renew {
            t: Tag(ask.tag),
            log: log_of(ask.log)?,
        },
        Message::Topics(topics) => Call::Topics {
            t: Tag(topics.tag),
            log: log_of(topics.log)?,
            page: Box::new(TopicPage {
                prefix: topics.prefix,
                after: topics.after,
                limit: topics.limit,
            }),
        },
        Message::Trim(trim) => Call::Trim {
            t: Tag(trim.tag),
            log: log_of(trim.log)?,
            before: Sequence(trim.before),
        },
        Message::Seal(seal) => Call::Seal {
            t: Tag(seal.tag),
            log: log_of(seal.log)?,
            next: MapEpoch(seal.next),
        },
        Message::Withdraw(withdraw) => Call::Withdraw {
            t: Tag(withdraw.tag),
            log: log_of(withdraw.log)?,
            logs: narrow(withdraw.logs, "withdraw.logs")?,
            origin: origin_from_wire(&withdraw.storage, &withdraw.provisions)?,
        },
        Message::Delete(delete) => Call::Delete {
            t: Tag(delete.tag),
            log: log_of(delete.log)?,
            as_of: Sequence(delete.as_of),
            origin: origin_from_wire(&delete.storage, &delete.provisions)?,
        },
        _ => return Err(Malformed::Missing { field: "call" }),
    })
}

fn origin_from_wire(storage: &str, provisions: &[u8]) -> Result<Box<Origin>, Malformed> {
    Ok(Box::new(Origin {
        storage: storage_from_wire(storage)?,
        provisions: provisions_from_wire(provisions)?,
    }))
}

fn scope_to_wire(scope: &Scope) -> link_v1::Read {
    let (filter, topic) = match scope.filter {
        ScopeFilter::All => (link_v1::read::Filter::All, Bytes::new()),
        ScopeFilter::Topic(topic) => (link_v1::read::Filter::Topic, hashes_to_wire(&[topic])),
        ScopeFilter::Wanted => (link_v1::read::Filter::Wanted, Bytes::new()),
    };
    link_v1::Read {
        filter: filter.into(),
        topic,
        until: scope.until.map(|until| until.0),
        backward: scope.direction == Direction::Backward,
        ..link_v1::Read::default()
    }
}

fn read_from_wire(read: link_v1::Read) -> Result<Call, Malformed> {
    let filter = match link_v1::read::Filter::try_from(read.filter) {
        Ok(link_v1::read::Filter::All) => ScopeFilter::All,
        Ok(link_v1::read::Filter::Wanted) => ScopeFilter::Wanted,
        Ok(link_v1::read::Filter::Topic) => {
            match hashes_from_wire(&read.topic, "read.topic")?[..] {
                [topic] => ScopeFilter::Topic(topic),
                _ => {
                    return Err(Malformed::Missing {
                        field: "read.topic",
                    });
                }
            }
        }
        Err(_) => return Err(Malformed::value("read.filter", read.filter)),
    };
    let direction = if read.backward {
        Direction::Backward
    } else {
        Direction::Forward
    };
    Ok(Call::Read {
        r: ReaderId(read.reader),
        log: log_of(read.log)?,
        from: Sequence(read.from),
        scope: Box::new(Scope {
            filter,
            until: read.until.map(Sequence),
            direction,
        }),
        credit: read.credit,
    })
}

fn hashes_to_wire(topics: &[TopicHash]) -> Bytes {
    let bytes = topics.iter().flat_map(|topic| topic.0.to_be_bytes());
    bytes.collect::<Vec<u8>>().into()
}

fn hashes_from_wire(bytes: &[u8], field: &'static str) -> Result<Vec<TopicHash>, Malformed> {
    let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
    if !rest.is_empty() {
        return Err(Malformed::value(field, format!("{} bytes", bytes.len())));
    }
    let hashes = hashes.iter().map(|hash| u128::from_be_bytes(*hash));
    Ok(hashes.map(TopicHash).collect())
}
