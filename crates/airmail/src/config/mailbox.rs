//! The settings of mailboxes.

use super::invalid;
use super::quantity::{ByteSize, Span};
use crate::node::mailboxes::MailboxUrl;
use crate::node::storage::StorageUrl;
use airmail_mailbox::postgres::Options;
use airmail_model::Error;
use std::time::Duration;

/// Where mailboxes are kept, and with how much they are worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxConfig {
    /// `postgres://…` or `sqlite:PATH`. Empty: SQLite, beside the log.
    pub url: String,
    /// Connections to PostgreSQL for requests; four more are for what is done beside them.
    pub connections: u32,
    /// Threads that work on those connections.
    pub threads: u32,
    /// Requests that may wait for a connection.
    pub waiting: u32,
    /// How long a request waits for a database that is away.
    pub patience: Span,
    /// How large one of the three parts of the storage in PostgreSQL grows before the next is begun.
    pub slot: ByteSize,
}

impl Default for MailboxConfig {
    fn default() -> MailboxConfig {
        let options = Options::new("");
        MailboxConfig {
            url: String::new(),
            connections: u32::try_from(options.connections).unwrap_or(1),
            threads: 2,
            waiting: u32::try_from(options.waiting_max).unwrap_or(1),
            patience: Span(Duration::from_millis(options.patience_ms)),
            slot: ByteSize(options.slot_bytes),
        }
    }
}

impl MailboxConfig {
    /// How to use the database at `url`.
    #[must_use]
    pub fn options(&self, url: &str) -> Options {
        Options {
            url: url.to_owned(),
            connections: self.connections as usize,
            waiting_max: self.waiting as usize,
            patience_ms: u64::try_from(self.patience.0.as_millis()).unwrap_or(u64::MAX),
            slot_bytes: self.slot.0,
        }
    }

    /// Whether they can be used, as far as can be said without the database.
    pub(super) fn check(&self, log: &StorageUrl) -> Result<(), Error> {
        for (name, value) in [
            ("mailbox.connections", self.connections),
            ("mailbox.threads", self.threads),
            ("mailbox.waiting", self.waiting),
        ] {
            if value == 0 {
                return Err(invalid(name).value(0).limit("at least 1"));
            }
        }
        match MailboxUrl::parse(&self.url, log)? {
            MailboxUrl::Postgres(url) => self.options(&url).check().map_err(|error| {
                let field = format!("mailbox.{}", error.field_name());
                Error::new(error.code())
                    .field(field)
                    .value(error.found())
                    .limit(error.expected())
            }),
            MailboxUrl::Sqlite(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_cannot_be_used_is_refused_by_its_key() {
        for (name, value) in [
            ("mailbox.connections", "0"),
            ("mailbox.threads", "0"),
            ("mailbox.waiting", "0"),
            ("mailbox.url", "mailboxes.db"),
            ("mailbox.url", "postgres://db:port"),
        ] {
            let mut config = Config::default();
            config.set(name, value).unwrap();
            assert_eq!(config.validate().unwrap_err().field_name(), name);
        }
    }

    #[test]
    fn the_settings_are_what_the_store_is_given() {
        let options = MailboxConfig::default().options("postgres://db/mail");
        assert_eq!(options.connections, Options::new("").connections);
        assert_eq!(options.patience_ms, 5_000);
        assert_eq!(options.url, "postgres://db/mail");
    }
}
