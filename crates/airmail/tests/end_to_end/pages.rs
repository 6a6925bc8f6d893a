//! Pages of `docs/` that are made from the code. Each test compares; with `AIRMAIL_REWRITE=1` it
//! writes.

use airmail_model::ErrorCode;
use airmail_testkit::node;
use airmail_testkit::pages::{self, Page};
use std::fmt::Write;

#[test]
fn the_page_of_errors_is_fresh() {
    let mut text = String::from(
        "| number | name | gRPC status | try again | what it means | what to do |\n|---|---|---|---|---|---|\n",
    );
    for code in ErrorCode::ALL {
        let again = match (code.retriable(), code.waited_for()) {
            (_, true) => "yes, SDKs wait",
            (true, false) => "yes, it is an answer",
            (false, false) => "no",
        };
        let (number, name, grpc) = (*code as u16, code.name(), status_name(*code));
        let _ = writeln!(
            text,
            "| {number} | `{name}` | `{grpc}` | {again} | {} | {} |",
            code.text(),
            advice(*code),
        );
    }
    for old in ErrorCode::RETIRED {
        let (number, name, instead) = (old.code, old.name, old.instead.name());
        let grpc = status_name(old.instead);
        let _ = writeln!(
            text,
            "| {number} | `{name}` | `{grpc}` | no | retired: no longer sent; `{instead}` is sent instead | see `{instead}` |",
        );
    }
    Page::of("airmail", "errors.md").freshen(&text);
}

#[test]
fn the_page_of_the_command_line_is_fresh() {
    Page::of("airmail", "command-line.md").freshen(&pages::command_line("airmail"));
}

#[test]
fn the_page_of_settings_is_fresh() {
    // Without what the tests are run with.
    let mut serve = node::program("airmail");
    let printed = node::run(serve.args(["serve", "--print-config"]), b"").ok();
    let printed = format!("```toml\n{}\n```\n", pages::trim_lines(&printed));
    Page::of("airmail", "configuration.md").freshen(&printed);
}

fn status_name(code: ErrorCode) -> String {
    let name = format!("{:?}", code.grpc());
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_uppercase());
    }
    words
}

/// Advice for the user who gets the error.
fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidArgument => "correct the field that the error names",
        ErrorCode::MessageTooLarge => "make it smaller, divide it, or send where it can be fetched",
        ErrorCode::BatchTooLarge => "put fewer messages into a batch; SDKs do by themselves",
        ErrorCode::BatchMalformed => "a fault of the SDK, or bytes damaged on their way",
        ErrorCode::TopicInvalid => "1 to 1,024 bytes of UTF-8 without control characters",
        ErrorCode::AttributesInvalid => "at most 64, each with a name of its own",
        ErrorCode::PositionInvalid => "use a position as it was given, in its own namespace",
        ErrorCode::NamespaceInvalid => "correct the name or the setting that the error names",
        ErrorCode::NamespaceNotFound => "`airmail namespace list`; create it, or correct the name",
        ErrorCode::NamespaceExists => "use it, or another name",
        ErrorCode::NamespaceChanged => "read it again, and decide again",
        ErrorCode::NamespaceReserved => "use another; this one is the system's own",
        ErrorCode::DurabilityUnavailable => "ask for less, or run the node on another storage",
        ErrorCode::MapStale => "take the map in the answer and divide anew; SDKs do by themselves",
        ErrorCode::LogSealed => "get the present map and divide anew; SDKs do by themselves",
        ErrorCode::OutOfOrder => "send what is missing first; with an SDK: a fault, tell us",
        ErrorCode::UnknownProducer => {
            "begin a new epoch; whether the last messages were stored, history tells"
        }
        ErrorCode::ProducerFenced => "stop: another process publishes as this producer",
        ErrorCode::StorageFull => {
            "make space: shorten retention, or enlarge the disk; it heals by itself"
        }
        ErrorCode::StorageFailed => "look at the node's log and its disk",
        ErrorCode::OutcomeUnknown => "look in history, or in the queue, before doing it again",
        ErrorCode::ProtocolUnsupported => "use versions of client and node that overlap",
        ErrorCode::HelloExpected => "begin each stream with one Hello; SDKs do by themselves",
        ErrorCode::Unimplemented => "do without the field that the error names",
        ErrorCode::SubscriptionInvalid => {
            "use a number that is free, or fewer subscriptions on a stream"
        }
        ErrorCode::Unauthenticated => "say who you are",
        ErrorCode::PermissionDenied => "ask whoever runs the node",
        ErrorCode::Overloaded => "wait as long as the error says; SDKs do by themselves",
        ErrorCode::ShuttingDown => "connect again, or to another node; SDKs do by themselves",
        ErrorCode::Internal => {
            "a fault of the node: tell us, with the request id and the node's log"
        }
        ErrorCode::Unavailable => {
            "does the node that has the logs run, and is it reached (docs/deploy.md)? SDKs ask again by themselves"
        }
        ErrorCode::LogSuspended => {
            "`airmail cluster status` names it, and the command that decides (docs/deploy.md)"
        }
        ErrorCode::Elsewhere => "ask the node that the error names; SDKs ask again by themselves",
        ErrorCode::Disconnected => "is the node running, and is the address right?",
        ErrorCode::FilterInvalid => {
            "correct the text at the column that the error names (docs/filters.md)"
        }
        ErrorCode::FilterTooComplex => {
            "a simpler filter; or fewer different ones, as the error says"
        }
        ErrorCode::RoleNotFound => "`airmail role list`; create it, or correct the name",
        ErrorCode::RoleExists => "use it, or another name",
        code => mailbox_advice(code),
    }
}

fn mailbox_advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::QueueNameExists | ErrorCode::AccountNameExists => "use it, or another name",
        ErrorCode::QueueNotFound => "`airmail mailbox queue list`; create it, or correct the name",
        ErrorCode::AccountNotFound => {
            "`airmail mailbox account list`; create it, or correct the name"
        }
        ErrorCode::QueueNotEmpty | ErrorCode::AccountNotEmpty => {
            "let readers empty it, or delete with `--force`"
        }
        ErrorCode::NoPermissionToRead => "ask as the account that the message is for",
        ErrorCode::QueueIsEmpty | ErrorCode::NoMessageFound | ErrorCode::NoQueuesFound => {
            "ask again later, or wait: `airmail mailbox receive --wait 5s`"
        }
        ErrorCode::UnknownRequestType => "use versions of client and node that overlap",
        ErrorCode::LeaseEnded => "take longer leases, or extend them in time",
        ErrorCode::MailboxesAway => {
            "does the database run, is its address right, has somebody locked its tables?"
        }
        ErrorCode::MailboxesUnusable => {
            "give `mailbox.url` the right database, or start a newer airmail on this one"
        }
        code => unreachable!("{code:?} has no advice"),
    }
}
