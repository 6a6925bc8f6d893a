//! `airmail context`: several nodes' addresses under names, in `contexts.toml` among the user's
//! settings. The file, and a directory that is made for it, are for this user alone.

use super::lines::printed;
use crate::cli::UsageError;
use airmail_node::environment::Environment;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::NamedTempFile;

/// The mode of a directory that is made for settings: its owner's alone, as XDG's specification has it.
const DIRECTORY_MODE: u32 = 0o700;

/// Arguments of `airmail context`.
#[derive(clap::Args, Debug)]
pub struct ContextArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on contexts.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Save a node's address under a name
    Add {
        /// The name
        name: String,
        /// airmail://HOST:PORT[,HOST:PORT…], where a port left out is 7400
        address: String,
        /// The namespace of commands that name none
        #[arg(long)]
        namespace: Option<String>,
    },
    /// Make a context the current one
    Use {
        /// Its name
        name: String,
    },
    /// List the contexts; the current one has a *
    List,
    /// Forget a context
    Rm {
        /// Its name
        name: String,
    },
}

/// One context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Where the nodes are.
    pub url: String,
    /// The namespace, if not `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// All contexts of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// The one that commands use which name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Contexts by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Entry>,
}

impl Book {
    /// Reads the user's contexts; none where there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is not as it should be.
    pub fn load(environment: &Environment) -> anyhow::Result<Book> {
        let Some(path) = path(environment) else {
            return Ok(Book::default());
        };
        match fs::read_to_string(&path) {
            Ok(text) => {
                // In one line: the reader's own text draws a picture.
                let wrong = |error: toml::de::Error| error.message().replace('\n', ", ");
                toml::from_str(&text).map_err(|error| {
                    anyhow::anyhow!("reading {}: {}", path.display(), wrong(error))
                })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Book::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes them, whole or not at all.
    ///
    /// # Errors
    /// There is no place for a user's settings, or it cannot be written.
    pub fn save(&self, environment: &Environment) -> anyhow::Result<()> {
        let path = path(environment).context("neither XDG_CONFIG_HOME nor HOME is set")?;
        let failed = || format!("writing {}", path.display());
        let dir = path.parent().with_context(failed)?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(dir).with_context(failed)?;
        // It is made for its owner alone, under a name of its own.
        let mut new = NamedTempFile::new_in(dir).with_context(failed)?;
        let text = toml::to_string(self)?;
        new.write_all(text.as_bytes()).with_context(failed)?;
        new.persist(&path).map(drop).with_context(failed)
    }

    /// The context of a name.
    ///
    /// # Errors
    /// Wrong usage, if there is no such context.
    pub fn get(&self, name: &str) -> anyhow::Result<Entry> {
        let known = || {
            if self.contexts.is_empty() {
                "none".to_owned()
            } else {
                self.contexts.keys().cloned().collect::<Vec<_>>().join(", ")
            }
        };
        let entry = self.contexts.get(name).cloned();
        let unknown = || UsageError(format!("no context is named {name} (known: {})", known()));
        Ok(entry.ok_or_else(unknown)?)
    }
}

fn path(environment: &Environment) -> Option<PathBuf> {
    Some(environment.settings_dir()?.join("contexts.toml"))
}

/// Runs it.
///
/// # Errors
/// A malformed address, a context that is not there, a file that cannot be read or written.
pub fn run(args: ContextArgs, environment: &Environment) -> anyhow::Result<ExitCode> {
    let mut book = Book::load(environment)?;
    match args.action {
        Action::Add {
            name,
            address,
            namespace,
        } => {
            airmail_client::parse_url(&address).map_err(|error| UsageError(error.to_string()))?;
            let entry = Entry {
                url: address,
                namespace,
            };
            book.contexts.insert(name, entry);
            book.save(environment)?;
        }
        Action::Use { name } => {
            book.get(&name)?;
            book.current = Some(name);
            book.save(environment)?;
        }
        Action::Rm { name } => {
            book.get(&name)?;
            book.contexts.remove(&name);
            book.current.take_if(|current| *current == name);
            book.save(environment)?;
        }
        Action::List => printed(list(&book))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(book: &Book) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, entry) in &book.contexts {
        let mark = if book.current.as_ref() == Some(name) {
            '*'
        } else {
            ' '
        };
        let namespace = entry.namespace.as_deref().unwrap_or("default");
        writeln!(out, "{mark} {name}\t{}\t{namespace}", entry.url)?;
    }
    Ok(())
}
