//! Messages of the link, as the transcripts of gateway and tower write them: what the one sends is read by the
//! other in the same words.
//!
//! Each side names members in its own way, so it gives the functions that name one and that find one.

use super::{
    LOG, NAMESPACE, NEXT, THIRD, number, read_batch, read_bounds, read_extent, read_stored,
    show_batch, show_delivered, show_extent, show_records, show_topic,
};
use crate::link::{Answer, Follow, FromTower, Interest, MemberId, Part, Question, ToTower};
use airmail_log::{GapWhy, Refusal, WantEdit};
use airmail_model::frame::{Ack, Delivered};
use airmail_model::{
    AppendTime, Durability, Extent, Holder, Incarnation, LogId, Mono, ProducerSequence, TopicName,
};
use airmail_testkit::transcript::parts;

type Name<'a> = &'a dyn Fn(MemberId) -> String;
type Find<'a> = &'a dyn Fn(&str) -> Option<MemberId>;

/// Words that begin what is said of the logs after moves.
const AFTER_MOVES: [(LogId, &str); 2] =
    [(NEXT, "of the next log, "), (THIRD, "of the third log, ")];

/// Shows a message of the gateway.
pub(crate) fn show_to_tower(message: &ToTower, name: Name) -> String {
    let log = match message {
        ToTower::Attach { log, .. }
        | ToTower::Detach { log, .. }
        | ToTower::Ask { log, .. }
        | ToTower::Append { log, .. } => *log,
        ToTower::Follow(follow) => follow.log,
        _ => LOG,
    };
    let text = show_of_a_log(message, name);
    let words = AFTER_MOVES.iter().find(|(of, _)| *of == log);
    let words = words.map_or("", |(_, words)| words);
    format!("{words}{text}")
}

fn show_of_a_log(message: &ToTower, name: Name) -> String {
    match message {
        ToTower::Attach {
            generation,
            from,
            interest,
            ..
        } => {
            let what = match interest {
                Interest::All => "the log's tail",
                Interest::Wanted => "what is wanted of the log's tail",
            };
            format!("attach to {what} from {from} on, as attachment {generation}")
        }
        ToTower::Want {
            generation,
            edit,
            topics,
            ..
        } => {
            let mut text = format!("attachment {generation}, edit {edit}:");
            for (word, topics) in [("add", &topics.add), ("drop", &topics.drop)] {
                for topic in topics {
                    text += &format!(" {word} {}", show_topic(*topic));
                }
            }
            text + if topics.more { ", and more" } else { "" }
        }
        ToTower::Detach { generation, .. } => format!("detach attachment {generation}"),
        ToTower::Follow(follow) => show_follow(follow, name),
        ToTower::Leave { member } => format!("member {} leaves", name(*member)),
        ToTower::Ask {
            member, question, ..
        } => {
            let question = match question {
                Question::End => "where does the log end?".to_owned(),
                Question::Bounds => "what does the log hold?".to_owned(),
                Question::Time(time) => format!("where does time {} begin?", time.0),
            };
            format!("for member {}, {question}", name(*member))
        }
        ToTower::Append { number, batch, .. } => {
            let stamp = batch.producer().map_or_else(String::new, |stamp| {
                let (epoch, sequence) = (stamp.epoch.0, stamp.sequence.0);
                format!(", stamped {epoch}/{sequence}")
            });
            format!("append {number}: {}{stamp}", show_batch(batch))
        }
        ToTower::Clock { .. } => "what does the log's clock show?".to_owned(),
        ToTower::Renew { .. } => "begin a new life of the log".to_owned(),
        ToTower::Topics { .. } => "list topics of the log".to_owned(),
        ToTower::Moved { bytes } => format!("live traffic has moved {bytes} bytes"),
    }
}

fn show_follow(follow: &Follow, name: Name) -> String {
    let Follow { member, from, .. } = *follow;
    let topic = follow.topic.map_or("everything", show_topic);
    let mut text = format!("for member {}, read {topic} from {from} on", name(member));
    if let Some(until) = follow.until {
        text += &format!(", before {until}");
    }
    if let Some(time) = follow.not_before {
        text += &format!(", not before time {}", time.0);
    }
    if let Some(time) = follow.not_after {
        text += &format!(", until time {}", time.0);
    }
    text
}

/// Reads a message of the gateway.
pub(crate) fn read_to_tower(line: &str, find: Find) -> Option<ToTower> {
    let log = LOG;
    if let Some([from, generation]) = parts(
        "attach to the log's tail from {} on, as attachment {}",
        line,
    ) {
        Some(ToTower::Attach {
            log,
            generation: generation.parse().ok()?,
            from: number(from)?,
            interest: Interest::All,
        })
    } else if let Some([from, generation]) = parts(
        "attach to what is wanted of the log's tail from {} on, as attachment {}",
        line,
    ) {
        Some(ToTower::Attach {
            log,
            generation: generation.parse().ok()?,
            from: number(from)?,
            interest: Interest::Wanted,
        })
    } else if let Some([generation, edit, topic]) = parts("attachment {}, edit {}: add {}", line) {
        let add = vec![TopicName::hash_of(NAMESPACE, topic)];
        let topics = WantEdit {
            add,
            ..WantEdit::default()
        };
        Some(ToTower::Want {
            log,
            generation: generation.parse().ok()?,
            edit: edit.parse().ok()?,
            topics: Box::new(topics),
        })
    } else if let Some([generation]) = parts("detach attachment {}", line) {
        Some(ToTower::Detach {
            log,
            generation: generation.parse().ok()?,
        })
    } else if let Some([member]) = parts("member {} leaves", line) {
        let member = find(member)?;
        Some(ToTower::Leave { member })
    } else if let Some([number, topics]) = parts("append {}: {}", line) {
        Some(ToTower::Append {
            log,
            number: number.parse().ok()?,
            batch: read_batch(topics),
            sole: false,
        })
    } else if line == "what does the log's clock show?" {
        let asked = Mono(0);
        Some(ToTower::Clock { log, asked })
    } else if line == "begin a new life of the log" {
        Some(ToTower::Renew { log })
    } else {
        let [member, rest] = parts("for member {}, {}", line)?;
        read_request(find(member)?, rest)
    }
}

/// Reads what the gateway wants for a member.
fn read_request(member: MemberId, line: &str) -> Option<ToTower> {
    let log = LOG;
    if line.starts_with("read ") {
        return read_follow(member, line).map(ToTower::Follow);
    }
    let question = match line {
        "where does the log end?" => Question::End,
        "what does the log hold?" => Question::Bounds,
        _ => {
            let [time] = parts("where does time {} begin?", line)?;
            Question::Time(AppendTime(time.parse().ok()?))
        }
    };
    Some(ToTower::Ask {
        member,
        log,
        question,
    })
}

fn read_follow(member: MemberId, line: &str) -> Option<Follow> {
    let (range, end) = line.split_once(" on")?;
    let [topic, from] = parts("read {} from {}", range)?;
    let (end, not_after) = match parts("{}, until time {}", end) {
        Some([end, time]) => (end, Some(AppendTime(time.parse().ok()?))),
        None => (end, None),
    };
    let (until, not_before) = if end.is_empty() {
        (None, None)
    } else if let Some([time]) = parts(", not before time {}", end) {
        (None, Some(AppendTime(time.parse().ok()?)))
    } else {
        let [until] = parts(", before {}", end)?;
        (Some(number(until)?), None)
    };
    Some(Follow {
        member,
        log: LOG,
        topic: (topic != "everything").then(|| TopicName::hash_of(NAMESPACE, topic)),
        from: number(from)?,
        until,
        not_before,
        not_after,
    })
}

/// Shows a message of the tower.
pub(crate) fn show_from_tower(message: &FromTower, name: Name) -> String {
    match message {
        FromTower::Opened { incarnation, .. } => {
            format!("the log is open, in life {}", incarnation.0)
        }
        FromTower::Elsewhere { holder, .. } => format!("the log is elsewhere: {holder}"),
        FromTower::Sealed { end, .. } => format!("the log ends before {end}, for ever"),
        FromTower::Closed { .. } => "the log is closed".to_owned(),
        FromTower::Gone { .. } => "the log is gone".to_owned(),
        FromTower::Live {
            generation,
            previous,
            stored,
            ..
        } => {
            let records = show_records(&stored.batch, stored.base);
            format!("attachment {generation}, after {previous}: {records}")
        }
        FromTower::LiveGap {
            generation, extent, ..
        } => format!("attachment {generation}, lost: {}", show_extent(*extent)),
        FromTower::Effective {
            generation,
            edit,
            at: Some(at),
            ..
        } => format!("attachment {generation}, edit {edit} is in effect from {at} on"),
        FromTower::Effective {
            generation, edit, ..
        } => format!("attachment {generation}, there is no room for edit {edit}"),
        FromTower::WantsLost { generation, .. } => {
            format!("attachment {generation}, what is wanted is lost")
        }
        FromTower::Part { member, .. }
        | FromTower::PartGap { member, .. }
        | FromTower::Progress { member, .. }
        | FromTower::Reached { member, .. }
        | FromTower::Ended { member, .. }
        | FromTower::Answer { member, .. } => {
            format!("for member {}, {}", name(*member), show_result(message))
        }
        FromTower::Appended { number, result, .. } => match result {
            Ok(ack) => format!("append {number} is stored as {}", show_extent(ack.extent)),
            Err(why) => format!("append {number} is refused: {why}"),
        },
        FromTower::Clock {
            clock: Some(clock), ..
        } => format!("the log's clock shows {}", clock.0),
        FromTower::Clock { .. } => "the log's clock cannot be known".to_owned(),
        FromTower::Renewed { result, .. } => match result {
            Ok(incarnation) => format!("the log begins life {}", incarnation.0),
            Err(why) => format!("the log begins no new life: {why}"),
        },
        FromTower::Topics { .. } => "topics of the log".to_owned(),
    }
}

/// Shows a message for a member.
fn show_result(message: &FromTower) -> String {
    match message {
        FromTower::Part { part, .. } => {
            let last = part.end.before();
            format!("up to {last}: {}", show_delivered(&part.body, part.base))
        }
        FromTower::PartGap { extent, .. } => format!("lost: {}", show_extent(*extent)),
        FromTower::Progress { next, .. } => format!("up to {}: nothing", next.before()),
        FromTower::Reached { next, end, .. } => {
            format!("all before {next} is given, up to the tail; the log ends before {end}")
        }
        FromTower::Ended { next, .. } => format!("all before {next} is given, and no more is due"),
        FromTower::Answer { end, answer, .. } => match answer {
            Answer::End => format!("the log ends before {end}"),
            Answer::Bounds(bounds) => {
                let (first, last) = (bounds.first, bounds.next.before());
                let held = show_extent(Extent { first, last });
                format!("the log holds {held}; the log ends before {end}")
            }
            Answer::Time(at) => format!("the time begins at {at}; the log ends before {end}"),
            Answer::Refused(why) => format!("{why}; the log ends before {end}"),
        },
        _ => format!("{message:?}"),
    }
}

/// Reads a message of the tower.
pub(crate) fn read_from_tower(line: &str, find: Find) -> Option<FromTower> {
    let mut logs = AFTER_MOVES.iter();
    let of_later = logs.find_map(|(log, words)| Some((*log, line.strip_prefix(words)?)));
    let (log, line) = of_later.unwrap_or((LOG, line));
    read_of_a_log(log, line, find)
}

fn read_of_a_log(log: LogId, line: &str, find: Find) -> Option<FromTower> {
    if let Some([life]) = parts("the log is open, in life {}", line) {
        let incarnation = Incarnation(life.parse().ok()?);
        Some(FromTower::Opened { log, incarnation })
    } else if let Some([life]) = parts("the log begins life {}", line) {
        let result = Ok(Incarnation(life.parse().ok()?));
        Some(FromTower::Renewed { log, result })
    } else if let Some([clock]) = parts("the log's clock shows {}", line) {
        let clock = Some(AppendTime(clock.parse().ok()?));
        let asked = Mono(0);
        Some(FromTower::Clock { log, asked, clock })
    } else if line == "the log's clock cannot be known" {
        let (asked, clock) = (Mono(0), None);
        Some(FromTower::Clock { log, asked, clock })
    } else if line == "the log is elsewhere: a node not known" {
        let holder = Holder::default();
        Some(FromTower::Elsewhere { log, holder })
    } else if let Some([end]) = parts("the log ends before {}, for ever", line) {
        let end = number(end)?;
        Some(FromTower::Sealed { log, end })
    } else if line == "the log is closed" {
        Some(FromTower::Closed { log })
    } else if line == "the log is gone" {
        Some(FromTower::Gone { log })
    } else if let Some([generation, previous, records]) = parts("attachment {}, after {}: {}", line)
    {
        Some(FromTower::Live {
            log,
            generation: generation.parse().ok()?,
            previous: number(previous)?,
            stored: read_stored(records)?,
        })
    } else if let Some([generation, edit, at]) =
        parts("attachment {}, edit {} is in effect from {} on", line)
    {
        Some(FromTower::Effective {
            log,
            generation: generation.parse().ok()?,
            edit: edit.parse().ok()?,
            at: Some(number(at)?),
        })
    } else if let Some([generation, edit]) =
        parts("attachment {}, there is no room for edit {}", line)
    {
        Some(FromTower::Effective {
            log,
            generation: generation.parse().ok()?,
            edit: edit.parse().ok()?,
            at: None,
        })
    } else if let Some([generation]) = parts("attachment {}, what is wanted is lost", line) {
        Some(FromTower::WantsLost {
            log,
            generation: generation.parse().ok()?,
        })
    } else if let Some([generation, lost]) = parts("attachment {}, lost: {}", line) {
        Some(FromTower::LiveGap {
            log,
            generation: generation.parse().ok()?,
            extent: read_extent(lost)?,
            why: GapWhy::Loss,
        })
    } else if let Some([member, rest]) = parts("for member {}, {}", line) {
        read_result(find(member)?, rest)
    } else {
        read_appended(log, line)
    }
}

fn read_appended(log: LogId, line: &str) -> Option<FromTower> {
    let (number, result) = if let Some([n, numbers]) = parts("append {} is stored as {}", line) {
        (n, Ok(ack(read_extent(numbers)?)))
    } else if let Some([n]) = parts("append {}: nobody knows whether it is stored", line) {
        (n, Err(Refusal::OutcomeUnknown))
    } else if let Some([n]) = parts("append {} is refused: out of order", line) {
        let (expected, found) = (ProducerSequence(1), ProducerSequence(2));
        (n, Err(Refusal::OutOfOrder { expected, found }))
    } else if let Some([n]) = parts("append {} is refused: no such log", line) {
        (n, Err(Refusal::NoLog))
    } else {
        let [n, why] = parts("append {} is refused: storage failed: {}", line)?;
        (n, Err(Refusal::Io(why.to_owned())))
    };
    Some(FromTower::Appended {
        log,
        number: number.parse().ok()?,
        result,
    })
}

fn ack(extent: Extent) -> Ack {
    Ack {
        extent,
        appended: AppendTime(100),
        held: Durability::FSYNC,
        duplicate: false,
        exact: true,
    }
}

/// Reads a message for a member.
fn read_result(member: MemberId, line: &str) -> Option<FromTower> {
    if let Some([answer, end]) = parts("{}; the log ends before {}", line) {
        let end = number(end)?;
        if let Some([next]) = parts("all before {} is given, up to the tail", answer) {
            let next = number(next)?;
            return Some(FromTower::Reached { member, next, end });
        }
        let answer = read_answer(answer)?;
        return Some(FromTower::Answer {
            member,
            end,
            answer,
        });
    }
    if let Some([end]) = parts("the log ends before {}", line) {
        Some(FromTower::Answer {
            member,
            end: number(end)?,
            answer: Answer::End,
        })
    } else if let Some([next]) = parts("all before {} is given, and no more is due", line) {
        let next = number(next)?;
        Some(FromTower::Ended { member, next })
    } else if let Some([lost]) = parts("lost: {}", line) {
        Some(FromTower::PartGap {
            member,
            extent: read_extent(lost)?,
            why: GapWhy::Loss,
        })
    } else if let Some([last]) = parts("up to {}: nothing", line) {
        let next = number(last)?.plus(1);
        Some(FromTower::Progress { member, next })
    } else {
        let [last, records] = parts("up to {}: {}", line)?;
        let stored = read_stored(records)?;
        let part = Part {
            first: stored.extent.first,
            end: number(last)?.plus(1),
            base: stored.base,
            appended: stored.appended,
            body: Delivered::Whole(stored.batch),
        };
        Some(FromTower::Part { member, part })
    }
}

fn read_answer(line: &str) -> Option<Answer> {
    if let Some([held]) = parts("the log holds {}", line) {
        read_bounds(&format!("{held}, in life 7")).map(Answer::Bounds)
    } else if let Some([at]) = parts("the time begins at {}", line) {
        number(at).map(Answer::Time)
    } else {
        let [why] = parts("storage failed: {}", line)?;
        Some(Answer::Refused(Refusal::Io(why.to_owned())))
    }
}
