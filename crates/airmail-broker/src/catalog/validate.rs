//! Validation of a namespace command before it is written to log 0.

use super::CatalogCore;
use super::change::Change;
use super::fold::LOGS_EVER_MAX;
use super::losses::recreated;
use crate::input::Command;
use airmail_log::StorageTraits;
use airmail_model::bug;
use airmail_model::namespace::LOGS_MAX;
use airmail_model::role::ROLES_MAX;
use airmail_model::{
    Durability, Error, ErrorCode, LogId, Namespace, NamespaceSpec, Provisions, Retention, Role,
    StorageName,
};

impl CatalogCore {
    /// Checks a command against the namespaces as they stand.
    pub(super) fn to_change(&self, command: Command) -> Result<Change, Error> {
        match command {
            Command::CreateNamespace {
                name,
                logs,
                retention,
                durability,
                storage,
            } => {
                let spec = NamespaceSpec {
                    logs,
                    retention,
                    durability: self.durability(durability, storage)?,
                    storage,
                };
                self.to_create(name, spec)
            }
            Command::UpdateNamespace {
                name,
                logs,
                retention,
                durability,
                storage,
                based_on,
            } => {
                let namespace = self.named(&name, based_on)?;
                self.check_unchanged(&namespace.spec, logs, storage)?;
                self.to_update(&namespace, retention, durability)
            }
            Command::DeleteNamespace { name, based_on } => {
                let namespace = self.named(&name, based_on)?;
                Ok(Change::Delete {
                    id: namespace.id,
                    based_on: namespace.version,
                })
            }
            Command::MoveNamespace {
                name,
                storage,
                based_on,
            } => {
                let namespace = self.named(&name, based_on)?;
                self.check_move(&namespace, storage)?;
                Ok(Change::Move {
                    id: namespace.id,
                    based_on: namespace.version,
                    storage,
                    provisions: Provisions::NONE,
                })
            }
            Command::AcceptLoss { log } => self.to_truncate(log),
            Command::RecreateNamespace { name, based_on } => self.to_recreate(&name, based_on),
            Command::CreateRole { name } => self.to_create_role(name),
            Command::DeleteRole { name } => {
                let found = self.snapshot.roles().find(&name);
                let id = found.ok_or_else(|| Role::not_found(name))?;
                Ok(Change::DeleteRole { id })
            }
            Command::ListTopics { namespace, .. } => {
                bug!("a listing of namespace {namespace} came to the catalog");
                Err(Error::new(ErrorCode::InvalidArgument))
            }
        }
    }

    /// Checks how a namespace is to be kept from now on.
    fn to_update(
        &self,
        namespace: &Namespace,
        retention: Option<Retention>,
        durability: Option<Durability>,
    ) -> Result<Change, Error> {
        let retention = retention.unwrap_or(namespace.spec.retention);
        check_retention(retention)?;
        Ok(Change::Update {
            id: namespace.id,
            based_on: namespace.version,
            retention,
            durability: match durability {
                Some(_) => self.durability(durability, namespace.spec.storage)?,
                None => namespace.spec.durability,
            },
        })
    }

    /// Checks a role that is to be made.
    fn to_create_role(&self, name: String) -> Result<Change, Error> {
        Role::check_name(&name)?;
        let roles = self.snapshot.roles();
        if roles.find(&name).is_some() {
            let error = Error::new(ErrorCode::RoleExists).field("role");
            return Err(error.value(name));
        }
        let refused = |limit: String| {
            Error::new(ErrorCode::InvalidArgument)
                .field("role")
                .value(&name)
                .limit(limit)
        };
        if roles.len() >= ROLES_MAX {
            return Err(refused(format!("{ROLES_MAX} roles at once")));
        }
        let id = roles.next_id();
        let id = id.ok_or_else(|| refused(format!("{} were made", u32::MAX)))?;
        Ok(Change::CreateRole { id, name })
    }

    /// Checks whether a loss can be accepted.
    fn to_truncate(&self, log: LogId) -> Result<Change, Error> {
        let invalid = |limit: String| {
            let error = Error::new(ErrorCode::InvalidArgument).field("log");
            error.value(log).limit(limit)
        };
        let entry = self.snapshot.get(log.namespace);
        let Some((entry, loss)) = entry.and_then(|of| Some((of, of.suspended(log)?))) else {
            return Err(invalid("a log that is suspended".to_owned()));
        };
        let Some(at) = loss.at else {
            let name = &entry.namespace.name;
            let limit = format!("a log that is not all lost; namespace recreate {name}");
            return Err(invalid(limit));
        };
        let cuts = entry.spec_of(log).soundness.cuts + 1;
        Ok(Change::Truncate { log, cuts, at })
    }

    /// Checks whether a namespace can be made anew.
    fn to_recreate(&self, name: &str, based_on: Option<u64>) -> Result<Change, Error> {
        let namespace = self.named(name, based_on)?;
        let (id, based_on) = (namespace.id, namespace.version);
        let entry = self.snapshot.get(id).filter(|entry| entry.is_gone());
        let Some(entry) = entry else {
            return Err(Error::new(ErrorCode::InvalidArgument)
                .field("namespace")
                .value(name)
                .limit("one whose logs are known to be gone"));
        };
        // Its logs are to be made: it is refused before it is written.
        self.storage(namespace.spec.storage, ErrorCode::Elsewhere)?;
        if recreated(entry).is_none() {
            let limit = format!("{LOGS_EVER_MAX} logs that a namespace ever had");
            return Err(invalid("logs", namespace.spec.logs, limit));
        }
        Ok(Change::Recreate {
            id,
            based_on,
            provisions: Provisions::NONE,
        })
    }

    /// Checks a namespace that is to be made.
    fn to_create(&self, name: String, spec: NamespaceSpec) -> Result<Change, Error> {
        Namespace::check_name(&name)?;
        if self.snapshot.by_name(&name).is_some() {
            return Err(Error::new(ErrorCode::NamespaceExists)
                .field("namespace")
                .value(name));
        }
        let logs = spec.logs;
        if logs == 0 || logs > LOGS_MAX {
            return Err(invalid("logs", logs, format!("1 to {LOGS_MAX}")));
        }
        check_retention(spec.retention)?;
        let id = self.fold.next_id();
        let used_up = || invalid("namespace", &name, format!("{} were made", u32::MAX));
        Ok(Change::Create {
            id: id.ok_or_else(used_up)?,
            name,
            spec,
            provisions: Provisions::NONE,
        })
    }

    /// Checks what an update says of settings that stay as they were made.
    fn check_unchanged(
        &self,
        held: &NamespaceSpec,
        logs: Option<u16>,
        storage: Option<StorageName>,
    ) -> Result<(), Error> {
        if let Some(storage) = storage.filter(|storage| *storage != held.storage) {
            return Err(Error::unimplemented("namespace.storage")
                .value(shown(storage))
                .limit(format!("{}; namespace move moves it", shown(held.storage))));
        }
        if let Some(logs) = logs.filter(|logs| *logs != held.logs) {
            return Err(Error::unimplemented("logs").value(logs).limit(held.logs));
        }
        // Its logs are asked to take the change over: it is refused before it is written.
        self.storage(held.storage, ErrorCode::Elsewhere)?;
        Ok(())
    }

    /// Checks whether a namespace can be moved to a storage.
    fn check_move(&self, namespace: &Namespace, storage: StorageName) -> Result<(), Error> {
        let held = &namespace.spec;
        let wanted = self.storage(storage, ErrorCode::InvalidArgument)?;
        let invalid_storage = |limit: String| {
            let error = Error::new(ErrorCode::InvalidArgument).field("namespace.storage");
            Err(error.value(shown(storage)).limit(limit))
        };
        if storage == held.storage {
            return invalid_storage("another storage than it is in".to_owned());
        }
        let present = self.storage(held.storage, ErrorCode::Elsewhere)?;
        if !present.seal {
            // Nobody can say where logs end that many may append to.
            return Err(Error::unimplemented("namespace.storage")
                .value(format!("a move away from {}", shown(held.storage)))
                .limit("away from a storage whose logs can be sealed: disk: and memory:"));
        }
        if !wanted.strongest.satisfies(held.durability) {
            return Err(Error::new(ErrorCode::DurabilityUnavailable)
                .field("durability")
                .value(held.durability)
                .limit(format!("{} in {}", wanted.strongest, shown(storage))));
        }
        let first = u32::from(namespace.first_log.0) + u32::from(held.logs);
        if first + u32::from(held.logs) > LOGS_EVER_MAX {
            let limit =
                format!("{LOGS_EVER_MAX} logs that a namespace ever had, of which {first} were");
            return Err(invalid("logs", held.logs, limit));
        }
        Ok(())
    }

    fn named(&self, name: &str, based_on: Option<u64>) -> Result<Namespace, Error> {
        let Some(entry) = self.snapshot.by_name(name) else {
            return Err(Error::new(ErrorCode::NamespaceNotFound)
                .field("namespace")
                .value(name));
        };
        let version = entry.namespace.version;
        if based_on.is_some_and(|based_on| based_on != version) {
            return Err(Error::new(ErrorCode::NamespaceChanged)
                .field("based_on")
                .value(based_on.unwrap_or(0))
                .limit(version));
        }
        Ok(entry.namespace.clone())
    }

    /// Traits of a storage, or this error for one that the node has not.
    fn storage(&self, storage: StorageName, missing: ErrorCode) -> Result<StorageTraits, Error> {
        if storage.is_first() {
            return Ok(self.config.first);
        }
        let storages = &self.config.storages;
        storages.get(&storage).copied().ok_or_else(|| {
            let names: Vec<_> = storages.keys().map(StorageName::as_str).collect();
            let limit = if names.is_empty() {
                "none: the node has no other than its first".to_owned()
            } else {
                format!("{}, or none for the first", names.join(", "))
            };
            Error::new(missing)
                .field("namespace.storage")
                .value(storage)
                .limit(limit)
        })
    }

    /// The durability of a namespace in this storage.
    fn durability(
        &self,
        wanted: Option<Durability>,
        storage: StorageName,
    ) -> Result<Durability, Error> {
        let strongest = self.storage(storage, ErrorCode::InvalidArgument)?.strongest;
        match wanted {
            Some(wanted) if !strongest.satisfies(wanted) => {
                Err(Error::new(ErrorCode::DurabilityUnavailable)
                    .field("durability")
                    .value(wanted)
                    .limit(strongest))
            }
            wanted => Ok(wanted.unwrap_or(strongest)),
        }
    }
}

/// A storage as it is told: the first has no name.
fn shown(storage: StorageName) -> String {
    if storage.is_first() {
        "the first storage, without a name".to_owned()
    } else {
        storage.to_string()
    }
}

fn invalid(field: &str, value: impl std::fmt::Display, limit: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::NamespaceInvalid)
        .field(field)
        .value(value)
        .limit(limit)
}

fn check_retention(retention: Retention) -> Result<(), Error> {
    let limits = [
        ("retention.time_ms", retention.time_ms),
        ("retention.bytes", retention.bytes),
    ];
    for (field, limit) in limits {
        if limit == Some(0) {
            return Err(invalid(field, 0, "at least 1, or none"));
        }
    }
    Ok(())
}
