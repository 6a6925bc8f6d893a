//! The one place where environment variables are read: once, when the process begins.
//!
//! Everything else gets an [`Environment`] handed in, so that tests can set theirs without
//! touching the process. Names that Airmail understands begin with `AIRMAIL_`; beside them only
//! what says where a user's settings and programs are is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variables that Airmail looks at, as they were when the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the process's environment. Values that are not UTF-8 are left out.
    #[must_use]
    pub fn of_process() -> Environment {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where the environment is read"
        )]
        let all = std::env::vars_os();
        let text = all.filter_map(|(key, value)| {
            let (key, value) = (key.into_string().ok()?, value.into_string().ok()?);
            let places = ["HOME", "XDG_CONFIG_HOME", "PATH"];
            let ours = key.starts_with("AIRMAIL_") || places.contains(&key.as_str());
            ours.then_some((key, value))
        });
        Environment {
            variables: text.collect(),
        }
    }

    /// An environment made of these variables, for tests.
    pub fn of<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Environment {
        let owned = variables.into_iter().map(|(k, v)| (k.into(), v.into()));
        Environment {
            variables: owned.collect(),
        }
    }

    /// The same environment with one more variable, or another value of it.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Environment {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The value of `name`, if it is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// Every variable whose name begins with `prefix`, in order of name, without the prefix.
    pub fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.variables
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }

    /// Where this user's settings are kept: `$XDG_CONFIG_HOME/airmail` or `~/.config/airmail`.
    /// `None` where neither variable is set.
    #[must_use]
    pub fn settings_dir(&self) -> Option<PathBuf> {
        let base = match self.get("XDG_CONFIG_HOME") {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(self.get("HOME")?).join(".config"),
        };
        Some(base.join("airmail"))
    }
}
