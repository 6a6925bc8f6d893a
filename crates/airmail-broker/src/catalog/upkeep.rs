//! Upkeep: storages that make something for namespaces are told what log 0 names, so that they can put right what is
//! otherwise and remove what nobody names.
//!
//! What they are told may be out of date, on a node that does not hear of log 0 any more. So they are told, too, up to where
//! ids and maps have been given: what is beyond may have been named meanwhile.

use super::fold::DyingLogs;
use super::messages::{CatalogEffect, CatalogEffects};
use super::namespaces::{EarlierState, Entry};
use super::{CatalogCore, Phase};
use airmail_log::{Kept, KeptMap, LogSpec};
use airmail_model::{Lane, LogId, NamespaceId, StorageName};
use std::collections::BTreeMap;

impl CatalogCore {
    /// Tells each storage what log 0 names of it.
    pub(super) fn keep(&mut self, out: &mut CatalogEffects) {
        if self.phase != Phase::Ready || self.log.is_torn {
            return;
        }
        let mut maps: Vec<KeptMap> = self
            .snapshot
            .iter()
            .flat_map(|entry| named(entry))
            .collect();
        for (id, dying) in &self.fold.dying {
            maps.extend(dying.logs.iter().map(|of| to_go(*id, of)));
        }
        let present = self.snapshot.iter().map(|entry| &entry.namespace);
        let present: BTreeMap<_, _> = present.map(|of| (of.id, of.epoch)).collect();
        let further = self.config.storages.keys().copied();
        for storage in std::iter::once(StorageName::FIRST).chain(further) {
            let maps = maps.iter().filter(|map| map.spec.storage == storage);
            out.push(CatalogEffect::Keep(Kept {
                storage,
                maps: maps.copied().collect(),
                present: present.clone(),
                last: self.fold.last_id,
            }));
        }
    }
}

/// Maps of a namespace whose logs may be there.
fn named(entry: &Entry) -> Vec<KeptMap> {
    let present = DyingLogs::of(&entry.to_earlier());
    let kept = |of: &DyingLogs, spec| KeptMap {
        spec,
        is_dying: false,
        ..to_go(entry.namespace.id, of)
    };
    let mut maps = vec![kept(&present, entry.log_spec())];
    for earlier in &entry.earlier {
        let of = DyingLogs::of(earlier);
        match earlier.state {
            EarlierState::Kept => maps.push(kept(&of, entry.earlier_spec(earlier))),
            EarlierState::Retired {
                is_purged: false, ..
            } => maps.push(to_go(entry.namespace.id, &of)),
            EarlierState::Retired { .. } => {}
        }
    }
    maps
}

/// A map whose logs are to be deleted.
fn to_go(namespace: NamespaceId, of: &DyingLogs) -> KeptMap {
    KeptMap {
        log: LogId {
            namespace,
            lane: Lane::Normal,
            index: of.first,
        },
        logs: of.logs,
        spec: LogSpec {
            storage: of.origin.storage,
            provisions: of.origin.provisions,
            ..LogSpec::default()
        },
        is_dying: true,
    }
}
