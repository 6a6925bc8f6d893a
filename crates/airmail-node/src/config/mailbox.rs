//! The settings of mailboxes.

use super::invalid;
use crate::mailboxes::MailboxUrl;
use crate::storage::StorageUrl;
use airmail_mailbox::postgres::Options;
use airmail_model::Error;
use airmail_model::quantity::{ByteSize, Span};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Where mailboxes are kept, and with how much they are worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxConfig {
    /// `postgres://…` or `sqlite:PATH`. Empty: SQLite, beside the log.
    pub url: String,
    /// Connections to PostgreSQL for requests; one more is for what is done beside them.
    pub connections: u32,
    /// Threads that serve requests of mailboxes and work on those connections. 0: as many as there
    /// are processors.
    pub threads: u32,
    /// Requests that may wait for a connection.
    pub waiting: u32,
    /// Time that a request waits for a database that is away or locked.
    pub patience: Span,
    /// Size to which one of the three parts of the storage in PostgreSQL grows before the next is begun.
    pub slot: ByteSize,
}

impl Default for MailboxConfig {
    fn default() -> MailboxConfig {
        let options = Options::new("");
        MailboxConfig {
            url: String::new(),
            connections: u32::try_from(options.connections).unwrap_or(1),
            threads: 0,
            waiting: u32::try_from(options.waiting_max).unwrap_or(1),
            patience: Span(Duration::from_millis(options.patience_ms)),
            slot: ByteSize(options.slot_bytes),
        }
    }
}

impl MailboxConfig {
    /// Options for the database at `url`.
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

    /// The URL as it may be shown: with stars in place of a password.
    pub(super) fn url_without_password(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return self.url.clone();
        };
        let (place, parameters) = match rest.split_once('?') {
            Some((place, parameters)) => (place, Some(parameters)),
            None => (rest, None),
        };
        let mut shown = format!("{scheme}://");
        match place.rsplit_once('@') {
            Some((who, place)) => {
                let user = who.split_once(':').map_or(who, |(user, _)| user);
                let hidden = if user == who { "" } else { ":***" };
                shown.extend([user, hidden, "@", place]);
            }
            None => shown.push_str(place),
        }
        let parameters = parameters.into_iter().flat_map(|all| all.split('&'));
        for (nth, parameter) in parameters.enumerate() {
            let secret = parameter.starts_with("password=");
            shown.push(if nth == 0 { '?' } else { '&' });
            shown.push_str(if secret { "password=***" } else { parameter });
        }
        shown
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            threads => threads as usize,
        }
    }

    /// Whether they can be used, as far as can be said without the database.
    pub(super) fn check(&self, log: &StorageUrl) -> Result<(), Error> {
        for (name, value) in [
            ("mailbox.connections", self.connections),
            ("mailbox.waiting", self.waiting),
        ] {
            if value == 0 {
                return Err(invalid(name).value(0).limit("at least 1"));
            }
        }
        match MailboxUrl::parse(&self.url, log)? {
            MailboxUrl::Postgres(url) => Ok(self.options(&url).check()?),
            MailboxUrl::Sqlite(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use airmail_mailbox::StoreFailure;

    #[test]
    fn what_cannot_be_used_is_refused_by_its_key() {
        for (name, value) in [
            ("mailbox.connections", "0"),
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
    fn the_settings_that_errors_of_stores_name_are_settings_of_a_node() {
        let unusable = StoreFailure::Unusable {
            found: "a letter".to_owned(),
            expected: "a database".to_owned(),
        };
        let full = StoreFailure::QueueFull {
            waiting: 1,
            waiting_max: 1,
        };
        for (failure, value) in [(unusable, "sqlite:a"), (full, "2")] {
            let error = Error::from(failure);
            Config::default().set(error.field_name(), value).unwrap();
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("", ""),
            ("sqlite:a/b.db", "sqlite:a/b.db"),
            ("postgres://db/mail", "postgres://db/mail"),
            (
                "postgres://me@db:5432/mail?x=y",
                "postgres://me@db:5432/mail?x=y",
            ),
            ("postgres://me:s3cret@db/mail", "postgres://me:***@db/mail"),
            (
                "postgres://me:s3:c@ret@db/mail",
                "postgres://me:***@db/mail",
            ),
            (
                "postgresql://db/mail?user=me&password=s3cret&x=y",
                "postgresql://db/mail?user=me&password=***&x=y",
            ),
        ] {
            let mut config = Config::default();
            config.set("mailbox.url", url).unwrap();
            assert_eq!(config.mailbox.url, url);
            assert_eq!(config.mailbox.url_without_password(), shown);
            assert!(!config.to_toml().contains("s3"), "{url}");
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
