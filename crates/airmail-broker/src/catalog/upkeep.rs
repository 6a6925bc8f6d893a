//! Upkeep: storages that make something for namespaces are told what log 0 names, so that they can put right what is
//! otherwise and remove what nobody names.
//!
//! What they are told may be out of date, on a node that does not hear of log 0 any more. So they are told, too, up to where
//! ids and maps have been given: what is beyond may have been named meanwhile.

use super::messages::{CatalogEffect, CatalogEffects};
use super::namespaces::Entry;
use super::{CatalogCore, Phase};
use airmail_log::{Kept, KeptMap, Origin};
use airmail_model::StorageName;

impl CatalogCore {
    /// Tells each storage what log 0 names.
    pub(super) fn keep(&self, out: &mut CatalogEffects) {
        if self.phase != Phase::Ready || self.log.is_torn {
            return;
        }
        let living = self.snapshot.iter().flat_map(|entry| named(entry));
        let dying = self.fold.dying.iter().flat_map(|(namespace, dying)| {
            dying.logs.iter().map(|logs| KeptMap {
                namespace: *namespace,
                origin: logs.origin,
                retention: None,
            })
        });
        let present = self.snapshot.iter().map(|entry| &entry.namespace);
        let kept = Kept {
            storage: StorageName::FIRST,
            maps: living.chain(dying).collect(),
            present: present.map(|of| (of.id, of.epoch)).collect(),
            last: self.fold.last_id,
        };
        for storage in self.config.storages.keys() {
            out.push(CatalogEffect::Keep(Kept {
                storage: *storage,
                ..kept.clone()
            }));
        }
        out.push(CatalogEffect::Keep(kept));
    }
}

/// Maps of a namespace of which something may be left.
fn named(entry: &Entry) -> impl Iterator<Item = KeptMap> {
    let (namespace, spec) = (entry.namespace.id, &entry.namespace.spec);
    let map = move |origin, is_kept: bool| KeptMap {
        namespace,
        origin,
        retention: is_kept.then_some(spec.retention),
    };
    let present = Origin {
        storage: spec.storage,
        provisions: entry.provisions,
    };
    let left = entry.earlier.iter().filter(|of| !of.is_purged());
    let earlier = left.map(move |of| map(of.origin, of.is_kept()));
    earlier.chain([map(present, true)])
}
