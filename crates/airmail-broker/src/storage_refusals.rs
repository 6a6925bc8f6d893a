//! Translation of the storage's refusals into the table of errors.

use airmail_log::{LogLoss, Refusal};
use airmail_model::batch::ProducerStamp;
use airmail_model::frame::Refused;
use airmail_model::{Error, ErrorCode, LogId, LogMap};

/// The error of a storage's refusal.
pub(crate) fn error(why: &Refusal, log: LogId, producer: Option<ProducerStamp>) -> Error {
    let producer = producer.as_ref();
    match why {
        Refusal::Full { retry_after } => Error::new(ErrorCode::StorageFull)
            .field("storage")
            .retry_after(*retry_after),
        Refusal::Busy { retry_after } => Error::new(ErrorCode::Overloaded)
            .field("storage")
            .retry_after(*retry_after),
        Refusal::Away { retry_after } => Error::new(ErrorCode::Unavailable)
            .field("log")
            .value(log)
            .retry_after(*retry_after),
        Refusal::StaleMap { current } => Error::new(ErrorCode::MapStale)
            .field("batch.map_epoch")
            .limit(current),
        Refusal::Sealed { next } => Error::new(ErrorCode::LogSealed)
            .field("batch.log")
            .value(log)
            .limit(format_args!("map epoch {next}")),
        Refusal::OutOfOrder { expected, found } => Error::new(ErrorCode::OutOfOrder)
            .field("producer_sequence")
            .value(found)
            .limit(expected),
        Refusal::UnknownProducer => Error::new(ErrorCode::UnknownProducer)
            .field("producer_id")
            .value(producer.map_or(0, |stamp| stamp.id.0)),
        Refusal::Fenced => Error::new(ErrorCode::ProducerFenced)
            .field("producer_epoch")
            .value(producer.map_or(0, |stamp| stamp.epoch.0)),
        Refusal::NoLog => Error::new(ErrorCode::StorageFailed)
            .field("log")
            .value(log)
            .limit(why),
        Refusal::Elsewhere(holder) => Error::new(ErrorCode::Elsewhere)
            .field("log")
            .value(log)
            .held_by(*holder),
        Refusal::Unsupported(what) => Error::unimplemented(what.as_ref()),
        Refusal::OutcomeUnknown => Error::new(ErrorCode::OutcomeUnknown)
            .field("log")
            .value(log),
        Refusal::Io(reason) => Error::new(ErrorCode::StorageFailed)
            .field("storage")
            .value(reason),
        Refusal::Suspended(reason) => Error::new(ErrorCode::LogSuspended)
            .field("log")
            .value(format_args!("{log}: {reason}"))
            .limit("airmail cluster status says what can be done"),
    }
}

/// The error of a log that log 0 says has stopped.
pub(crate) fn suspended(log: LogId, namespace: &str, loss: &LogLoss) -> Error {
    let error = Error::new(ErrorCode::LogSuspended).field("log");
    match loss.at {
        Some(at) => error
            .value(format_args!("{log} was cut at number {at}"))
            .limit(format_args!("airmail cluster accept-loss {log}")),
        None => error
            .value(format_args!("{log} is gone, or was made again"))
            .limit(format_args!("airmail namespace recreate {namespace}")),
    }
}

/// Makes the answer to a publish; `map` goes with it where the client's may be stale.
pub(crate) fn refused(error: Error, map: Option<&LogMap>) -> Refused {
    let stale = matches!(error.code(), ErrorCode::MapStale | ErrorCode::LogSealed);
    Refused {
        error,
        map: map.filter(|_| stale).cloned(),
    }
}
