//! Who of those who asked at once gets which of the messages that came.

use super::batch::Receives;
use super::row::{message, missing};
use crate::message::{Inbox, Message};
use airmail_model::{Error, ErrorCode};
use std::collections::BTreeMap;
use tokio_postgres::Row;

/// Gives each request its messages: a row that names a request is its own, any other belongs to its
/// line, whose requests are served in their order, each with one before any is with more.
pub(super) fn share_out(
    jobs: &Receives,
    lines: &[Inbox],
    rows: Vec<Row>,
) -> Vec<Result<Vec<Message>, Error>> {
    let mut results: Vec<Result<Vec<Message>, Error>> =
        jobs.iter().map(|_| Ok(Vec::new())).collect();
    let mut of_lines: BTreeMap<Inbox, Vec<Message>> = BTreeMap::new();
    for row in rows {
        let at: Option<i32> = row.get("at");
        let slot = at.and_then(|at| usize::try_from(at - 1).ok());
        let fault: Option<&str> = row.get("fault");
        match (
            slot.and_then(|slot| Some((results.get_mut(slot)?, jobs.get(slot)?))),
            fault,
        ) {
            (Some((result, (request, _))), Some(fault)) => {
                *result = Err(match fault {
                    "queue" => missing(ErrorCode::QueueNotFound, "queue", request.queue),
                    _ => missing(ErrorCode::AccountNotFound, "as", request.reader),
                });
            }
            (Some((Ok(own), _)), None) => own.push(message(&row)),
            _ => {
                let message = message(&row);
                let (queue, recipients) = (message.queue, message.recipients);
                of_lines
                    .entry(Inbox { queue, recipients })
                    .or_default()
                    .push(message);
            }
        }
    }
    for messages in of_lines.values_mut() {
        messages.reverse();
    }
    let mut askers: BTreeMap<Inbox, usize> = BTreeMap::new();
    for line in lines {
        *askers.entry(*line).or_default() += 1;
    }
    for ((result, line), (request, _)) in results.iter_mut().zip(lines).zip(jobs) {
        if let (Ok(own), Some(messages), Some(askers)) =
            (result, of_lines.get_mut(line), askers.get_mut(line))
        {
            // Not all that there is may have come, so nobody may be left with nothing.
            *askers -= 1;
            let free = messages.len().saturating_sub(*askers).max(1);
            let rest = messages.len() - messages.len().min(request.count).min(free);
            own.extend(messages.drain(rest..).rev());
        }
    }
    results
}
