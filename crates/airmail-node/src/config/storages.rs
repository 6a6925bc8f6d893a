//! The settings of a node's storages: `log.url`, and a further one for each `storage.NAME.url`.
//!
//! Names are not known beforehand, so these are no rows of the table of settings: they are read, printed and
//! checked here. A name has no underscore, and so is no key of the section `storage`, which all have one.

use super::{Config, invalid};
use crate::storage::{FURTHER, StorageUrl};
use airmail_log::StorageTraits;
use airmail_model::{Error, StorageName};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// The section of the file in which each further storage has one of its own.
pub(super) const SECTION: &str = "storage";
/// The key in that.
const URL: &str = "url";

impl Config {
    /// Every storage: the first, which has no name, and the others in order of name.
    ///
    /// # Errors
    /// A URL that cannot be read.
    pub fn storages(&self) -> Result<Vec<(StorageName, StorageUrl)>, Error> {
        let mut storages = vec![(StorageName::FIRST, self.first_storage()?)];
        for (name, url) in &self.storages {
            storages.push((*name, StorageUrl::of(&setting(*name), url)?));
        }
        Ok(storages)
    }

    /// The first storage: that of `log.url`, or of a node without role tower, that of the one which it joins.
    ///
    /// # Errors
    /// A URL that cannot be read.
    pub fn first_storage(&self) -> Result<StorageUrl, Error> {
        if self.is_gateway() {
            return Ok(StorageUrl::Node(self.cluster.towers().join(" or ")));
        }
        StorageUrl::parse(&self.log_url, &self.data)
    }

    /// Traits of each storage of its own beside the first.
    #[must_use]
    pub fn further_storages(&self) -> BTreeMap<StorageName, StorageTraits> {
        let storages = self.storages().unwrap_or_default();
        let further = storages.iter().filter(|(name, _)| !name.is_first());
        further.map(|(name, url)| (*name, url.traits())).collect()
    }

    /// Takes a storage as a flag gives it: `URL`, the first one's, or `NAME=URL`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what cannot be a name.
    pub fn set_storage(&mut self, text: &str) -> Result<Option<StorageName>, Error> {
        // What has a colon before it belongs to a URL.
        let named = text.split_once('=').filter(|(name, _)| !name.contains(':'));
        let Some((name, url)) = named else {
            self.set("log.url", text)?;
            return Ok(None);
        };
        let name = name.trim();
        let Some(name) = StorageName::new(name) else {
            return Err(invalid("log.url").value(text).limit(format!(
                "URL or NAME=URL, NAME being {}",
                StorageName::EXPECTED
            )));
        };
        self.storages.insert(name, url.trim().to_owned());
        Ok(Some(name))
    }

    /// Takes the part of the file about one further storage, if it is that; `false` if not.
    pub(super) fn take_storage(&mut self, key: &str, value: &toml::Value) -> Result<bool, Error> {
        let toml::Value::Table(keys) = value else {
            // Input: a setting of all storages.
            return Ok(false);
        };
        let named = format!("{SECTION}.{key}");
        let Some(name) = StorageName::new(key) else {
            return Err(invalid(&named).limit(format!("NAME being {}", StorageName::EXPECTED)));
        };
        for (key, value) in keys {
            match value {
                toml::Value::String(url) if key == URL => {
                    self.storages.insert(name, url.trim().to_owned());
                }
                _ => {
                    let error = invalid(&format!("{named}.{key}")).value(value);
                    return Err(error.limit(format!("{named}.{URL}, a text")));
                }
            }
        }
        if !keys.contains_key(URL) {
            return Err(invalid(&setting(name)).limit(FURTHER));
        }
        Ok(true)
    }

    /// The further storages as parts of a TOML file.
    pub(super) fn storages_to_toml(&self) -> String {
        let mut text = String::new();
        for (name, url) in &self.storages {
            let url = toml::Value::String(url.clone());
            let _ = write!(
                text,
                "\n[{SECTION}.{name}]\n# A further storage, for namespaces that are created in it or moved there: \
                 disk:PATH, memory: or kafka://HOST:PORT.\n{URL} = {url}\n"
            );
        }
        text
    }

    /// Whether the storages fit together.
    pub(super) fn validate_storages(&self) -> Result<(), Error> {
        let storages = self.storages()?;
        let mut paths: Vec<(PathBuf, String)> = Vec::new();
        let mut kafka: BTreeMap<(String, Vec<String>), String> = BTreeMap::new();
        let mut memory_first = false;
        for (name, url) in &storages {
            let wrong = |limit: String| Err(invalid(&setting(*name)).value(url).limit(limit));
            match url {
                StorageUrl::Node(_) => {}
                StorageUrl::Tree(_) if !name.is_first() => {
                    return wrong(format!("{FURTHER}: a tree has all logs"));
                }
                StorageUrl::Kafka(_) if name.is_first() && storages.len() > 1 => {
                    return wrong(
                        "no other storage beside Kafka as the first one: further ones stand beside \
                         disk: and memory:"
                            .to_owned(),
                    );
                }
                StorageUrl::Kafka(url) => {
                    let there = (url.prefix.clone(), url.brokers.clone());
                    if let Some(other) = kafka.insert(there, setting(*name)) {
                        return wrong(format!("a prefix of its own: {other} has this one"));
                    }
                }
                StorageUrl::Tree(_) => {}
                StorageUrl::Memory { .. } => memory_first |= name.is_first(),
                StorageUrl::Disk(_) if memory_first => {
                    return wrong(
                        "memory:, as long as log.url is memory: (log 0 would be lost at a restart, and \
                         the logs on the disk with it)"
                            .to_owned(),
                    );
                }
                StorageUrl::Disk(path) => {
                    let path = whole(path);
                    if let Some((_, other)) = paths.iter().find(|(other, _)| *other == path) {
                        return wrong(format!("a path of its own: {other} has this one"));
                    }
                    paths.push((path, setting(*name)));
                }
            }
        }
        Ok(())
    }
}

/// The name of the setting that has a storage's URL.
fn setting(name: StorageName) -> String {
    if name.is_first() {
        "log.url".to_owned()
    } else {
        format!("{SECTION}.{name}.{URL}")
    }
}

/// A path that is equal for equal places. Links are followed as far as the place is there; what is not
/// noticed here, the lock of the directory finds.
fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let mut whole = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            whole.pop();
        } else {
            whole.push(part);
        }
    }
    whole
}
