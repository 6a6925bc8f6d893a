//! Typed names of accounts and queues, and the numbers by which a node knows them: a node's error
//! about a number is reported with the name.

use airmail_client::Error;
use airmail_client::mailbox::{AccountId, Mailbox, QueueId};
use std::cell::RefCell;

/// Names that have been looked up.
#[derive(Debug, Default)]
pub(super) struct Typed {
    queues: RefCell<Vec<(String, String)>>,
    accounts: RefCell<Vec<(String, String)>>,
}

impl Typed {
    /// The queue of a name.
    pub(super) async fn queue(&self, mailbox: &Mailbox, name: &str) -> Result<QueueId, Error> {
        let queue = mailbox.find_queue(name).await?;
        let mut queues = self.queues.borrow_mut();
        queues.push((queue.to_string(), name.to_owned()));
        Ok(queue)
    }

    /// The account of a name.
    pub(super) async fn account(&self, mailbox: &Mailbox, name: &str) -> Result<AccountId, Error> {
        let account = mailbox.find_account(name).await?;
        let mut accounts = self.accounts.borrow_mut();
        accounts.push((account.to_string(), name.to_owned()));
        Ok(account)
    }

    /// An error with the name that was typed in place of its number.
    pub(super) fn name(&self, error: Error) -> Error {
        let known = match error.field_name() {
            "queue" => &self.queues,
            "account" | "from" | "to" | "as" => &self.accounts,
            _ => return error,
        };
        // The number may have words behind it.
        let (number, words) = match error.found().split_once(' ') {
            Some((number, words)) => (number, format!(" {words}")),
            None => (error.found(), String::new()),
        };
        let known = known.borrow();
        let name = known.iter().find(|(known, _)| known == number);
        match name.map(|(_, name)| format!("{name}{words}")) {
            Some(name) => error.value(name),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_client::ErrorCode;

    #[test]
    fn a_number_is_told_by_its_name_and_nothing_else_is_changed() {
        let typed = Typed::default();
        typed
            .queues
            .borrow_mut()
            .push(("1".into(), "orders".into()));
        typed
            .accounts
            .borrow_mut()
            .push(("1".into(), "shop".into()));
        for (field, value, told) in [
            ("queue", "1", "orders"),
            (
                "queue",
                "1 takes the dead letters",
                "orders takes the dead letters",
            ),
            ("from", "1", "shop"),
            ("account", "2", "2"),
            ("message", "1", "1"),
        ] {
            let error = Error::new(ErrorCode::QueueNotFound)
                .field(field)
                .value(value);
            let error = typed.name(error.limit("x"));
            assert_eq!(error.found(), told);
            assert_eq!((error.field_name(), error.expected()), (field, "x"));
        }
    }
}
