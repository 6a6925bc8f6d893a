//! Choice of the node and namespace that a client command means.
//!
//! The nearest wins: `--url`, then `--context`, then `AIRMAIL_URL`, then `AIRMAIL_CONTEXT`, then
//! the saved current context, then the default. `docs/command-line.md` says so too, and a test that it does.

use super::context::{Book, Entry};
use crate::cli::{ClientOptions, UsageError};
use airmail_client::{Client, ClientBuilder, DEFAULT_URL};
use std::time::Duration;

/// Time for which a command looks for a node: somebody sits and waits.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which it waits for an answer of a node that is there.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The namespace where nothing names one.
const DEFAULT_NAMESPACE: &str = "default";

/// A node, or several of one system, and a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `airmail://HOST:PORT[,HOST:PORT…]`.
    pub url: String,
    /// The namespace's name.
    pub namespace: String,
    /// Time to wait for a node and for each of its answers, if not the usual one.
    pub timeout: Option<Duration>,
}

/// Reads a time-out.
///
/// # Errors
/// The form that it should have.
pub fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("expected more than 0, such as 30s".into()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

impl Target {
    /// Completes the options that were left open on the command line.
    ///
    /// # Errors
    /// A context that is not there, or a malformed URL: wrong usage.
    pub fn resolve(options: &ClientOptions, namespace: Option<&str>) -> anyhow::Result<Target> {
        let entry = entry(options)?;
        let named = namespace.map(str::to_owned).or(entry.namespace);
        let target = Target {
            url: entry.url,
            namespace: named.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            timeout: options.timeout,
        };
        airmail_client::parse_url(&target.url).map_err(|error| UsageError(error.to_string()))?;
        Ok(target)
    }

    /// A client of it, to be set further and connected.
    #[must_use]
    pub fn client(&self) -> ClientBuilder {
        Client::builder()
            .url(&self.url)
            .namespace(&self.namespace)
            .connect_timeout(self.timeout.unwrap_or(NODE_TIMEOUT))
            .call_timeout(self.timeout.unwrap_or(ANSWER_TIMEOUT))
            .name(concat!("airmail-cli/", env!("CARGO_PKG_VERSION")))
    }
}

fn entry(options: &ClientOptions) -> anyhow::Result<Entry> {
    let at = |url: &str| Entry {
        url: url.to_owned(),
        namespace: None,
    };
    let environment = &options.environment;
    if let Some(url) = &options.url {
        return Ok(at(url));
    }
    let book = || Book::load(environment);
    if let Some(name) = &options.context {
        return book()?.get(name);
    }
    if let Some(url) = environment.get("AIRMAIL_URL") {
        return Ok(at(url));
    }
    if let Some(name) = environment.get("AIRMAIL_CONTEXT") {
        return book()?.get(name);
    }
    let book = book()?;
    match &book.current {
        Some(name) => book.get(name),
        None => Ok(at(DEFAULT_URL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_node::environment::Environment;

    fn options(variables: &[(&str, &str)]) -> ClientOptions {
        ClientOptions {
            environment: Environment::of(variables.iter().copied()),
            ..ClientOptions::default()
        }
    }

    #[test]
    fn without_anything_it_is_this_machines_default() {
        let target = Target::resolve(&options(&[]), None).unwrap();
        assert_eq!((&*target.url, &*target.namespace), (DEFAULT_URL, "default"));
    }

    #[test]
    fn a_flag_wins_over_the_environment() {
        let mut options = options(&[("AIRMAIL_URL", "airmail://a:1")]);
        assert_eq!(
            Target::resolve(&options, None).unwrap().url,
            "airmail://a:1"
        );
        options.url = Some("airmail://b:2".into());
        let target = Target::resolve(&options, Some("logs")).unwrap();
        assert_eq!(
            (&*target.url, &*target.namespace),
            ("airmail://b:2", "logs")
        );
    }

    #[test]
    fn a_context_gives_url_and_namespace_and_the_environment_does_not_hide_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let mut options = options(&[("XDG_CONFIG_HOME", home), ("AIRMAIL_URL", "airmail://a:1")]);
        let mut book = Book::load(&options.environment).unwrap();
        let entry = Entry {
            url: "airmail://c:3".into(),
            namespace: Some("orders".into()),
        };
        book.contexts.insert("shop".into(), entry);
        book.save(&options.environment).unwrap();
        options.context = Some("shop".into());
        let target = Target::resolve(&options, None).unwrap();
        assert_eq!(
            (&*target.url, &*target.namespace),
            ("airmail://c:3", "orders")
        );
        options.context = Some("shed".into());
        assert!(
            Target::resolve(&options, None)
                .unwrap_err()
                .is::<UsageError>()
        );
    }

    #[test]
    fn the_nearest_wins_as_the_page_of_the_command_line_says() {
        let dir = tempfile::tempdir().unwrap();
        let home = ("XDG_CONFIG_HOME", dir.path().to_str().unwrap());
        let mut options = options(&[home]);
        let mut book = Book::load(&options.environment).unwrap();
        for name in ["given", "of-environment", "saved"] {
            let entry = Entry {
                url: format!("airmail://{name}"),
                namespace: None,
            };
            book.contexts.insert(name.into(), entry);
        }
        let page = include_str!("../../../../docs/command-line.md");
        let mut place = page.find("Which node:").unwrap();
        let mut then = |options: &ClientOptions, url: &str, name: &str| {
            assert_eq!(Target::resolve(options, None).unwrap().url, url);
            // In the order of the sentence.
            let found = page[place..].find(name);
            place += found.unwrap_or_else(|| panic!("{name} is not behind the one before"));
        };
        // From the farthest to the nearest, each set beside all behind it; told the other way round.
        let mut steps = vec![(options.clone(), DEFAULT_URL.to_owned(), DEFAULT_URL)];
        book.current = Some("saved".into());
        book.save(&options.environment).unwrap();
        steps.push((options.clone(), "airmail://saved".into(), "saved"));
        let environment = |more: &[(&str, &str)]| Environment::of([&[home], more].concat());
        let named = ("AIRMAIL_CONTEXT", "of-environment");
        options.environment = environment(&[named]);
        steps.push((
            options.clone(),
            "airmail://of-environment".into(),
            "AIRMAIL_CONTEXT",
        ));
        options.environment = environment(&[named, ("AIRMAIL_URL", "airmail://variable")]);
        steps.push((options.clone(), "airmail://variable".into(), "AIRMAIL_URL"));
        options.context = Some("given".into());
        steps.push((options.clone(), "airmail://given".into(), "--context"));
        options.url = Some("airmail://flag".into());
        steps.push((options.clone(), "airmail://flag".into(), "--url"));
        steps[0].0.environment = Environment::default();
        for (options, url, name) in steps.iter().rev() {
            then(options, url, name);
        }
    }

    #[test]
    fn without_a_port_it_is_7400() {
        let options = options(&[("AIRMAIL_URL", "airmail://127.0.0.1")]);
        let target = Target::resolve(&options, None).unwrap();
        let addresses = airmail_client::parse_url(&target.url).unwrap();
        assert_eq!(addresses[0].to_string(), "127.0.0.1:7400");
    }

    #[test]
    fn a_url_that_is_none_is_wrong_usage() {
        let options = options(&[("AIRMAIL_URL", "http://a:1")]);
        assert!(
            Target::resolve(&options, None)
                .unwrap_err()
                .is::<UsageError>()
        );
    }
}
