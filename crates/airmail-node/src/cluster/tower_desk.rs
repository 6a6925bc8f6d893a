//! A desk between a shard's storage, whose logs several towers have, and who follows these ([`following`](super::following)).
//!
//! The storage takes from it what is new when it is polled, and leaves there which towers it uses no more. Both happen
//! at any time, so a tower may live again while the storage has just left it. Hence the desk knows which towers the
//! storage has, or is about to take, and whoever follows looks again and again whether one that lives is lacking.
//!
//! Invariant: links to a tower are kept for one storage at most once, from when that is told of the tower until it leaves
//! it.

use super::dialing::Dialer;
use airmail_link::{FromHost, ToHost, Tower, TowerName};
use airmail_log::Waker;
use airmail_wire::WirePort;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// A tower of a shard's storage.
pub(crate) type WireTower = Tower<WirePort<ToHost, FromHost>>;

/// News of towers for a shard's storage, and the towers that it has. See the module's documentation.
pub(crate) struct TowerDesk {
    known: Mutex<Known>,
    waker: Waker,
    /// Where the shard's links are kept, and until when.
    home: OnceLock<(Handle, CancellationToken)>,
}

/// Knowledge of both sides of the desk.
struct Known {
    news: TowerNews,
    /// Towers that the storage has, or is about to take, each with the stop of its links.
    kept: BTreeMap<TowerName, CancellationToken>,
}

/// News that were not taken yet.
#[derive(Default)]
pub(crate) struct TowerNews {
    /// Towers that have come.
    pub(crate) added: Vec<(TowerName, WireTower)>,
    /// Towers that live, if that has changed.
    pub(crate) live: Option<Vec<TowerName>>,
}

impl TowerDesk {
    /// The desk of a storage that has this tower, and is woken by `waker`.
    pub(crate) fn new(waker: Waker, first: TowerName) -> TowerDesk {
        TowerDesk {
            known: Mutex::new(Known {
                news: TowerNews::default(),
                kept: BTreeMap::from([(first, CancellationToken::new())]),
            }),
            waker,
            home: OnceLock::new(),
        }
    }

    /// Wakes the storage.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Has links of towers that come kept on the runtime that this is called in, until `stop`. Gives the stop of the links
    /// to the tower that the storage began with.
    pub(crate) fn begin(&self, stop: &CancellationToken) -> CancellationToken {
        // A shard begins once.
        let _ = self.home.set((Handle::current(), stop.clone()));
        let of_first = stop.child_token();
        // No other tower is known yet.
        for links in self.known.lock().kept.values_mut() {
            *links = of_first.clone();
        }
        of_first
    }

    /// News for the storage.
    pub(crate) fn take(&self) -> TowerNews {
        std::mem::take(&mut self.known.lock().news)
    }

    /// The storage uses these no more: their links end.
    pub(crate) fn leave(&self, unused: &[TowerName]) {
        let mut known = self.known.lock();
        for stop in unused.iter().filter_map(|name| known.kept.remove(name)) {
            stop.cancel();
        }
    }

    /// Whether the storage has a tower, or is about to take it.
    pub(super) fn has(&self, name: &TowerName) -> bool {
        self.known.lock().kept.contains_key(name)
    }

    /// Tells of towers that the storage lacks, each with those who keep its links, and of those that live, at once: one that
    /// does not live is not kept.
    pub(super) fn tell(
        &self,
        lacking: Vec<(TowerName, WireTower, Vec<Dialer>)>,
        live: &[TowerName],
    ) {
        let Some((home, stop)) = self.home.get() else {
            // Input: a shard that has not begun. Nobody follows before all have.
            return;
        };
        let mut known = self.known.lock();
        for (name, tower, dialers) in lacking {
            let stop = stop.child_token();
            for dialer in dialers {
                home.spawn(dialer.keep(stop.clone()));
            }
            known.kept.insert(name.clone(), stop);
            known.news.added.push((name, tower));
        }
        known.news.live = Some(live.to_vec());
        drop(known);
        (self.waker)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_link::{LinkLimits, LinkStorage, LogHomes};
    use airmail_log::{LogStorage as _, memory};
    use airmail_model::{Mono, Now, Wall};
    use airmail_wire::{PortLimits, wire_port};
    use std::sync::Arc;

    /// A tower to which nobody keeps a link.
    fn named(name: &str) -> (TowerName, WireTower, Vec<Dialer>) {
        let now = Now {
            mono: Mono(0),
            wall: Wall(0),
        };
        let capabilities = memory::open(1, now).unwrap().capabilities();
        let (port, _) = wire_port(PortLimits::default(), Arc::new(|| {}), Arc::new(|| {}));
        let link = LinkStorage::new(port, capabilities, LinkLimits::default());
        let tower = Tower::new(Arc::new(LogHomes::new(1)), vec![link]);
        (TowerName::new(name), tower, Vec::new())
    }

    fn stop_of(desk: &TowerDesk, name: &TowerName) -> CancellationToken {
        desk.known.lock().kept[name].clone()
    }

    #[tokio::test]
    async fn a_tower_that_lives_again_when_the_storage_has_just_left_it_is_lacking() {
        let [one, other] = ["one", "other"].map(TowerName::new);
        let live = [one.clone(), other.clone()];
        let desk = TowerDesk::new(Arc::new(|| {}), one.clone());
        let stop = CancellationToken::new();
        let of_first = desk.begin(&stop);
        assert!(desk.has(&one) && !desk.has(&other));
        desk.tell(vec![named("other")], &live);
        assert_eq!(desk.take().added.len(), 1);
        let links = stop_of(&desk, &other);
        // It has died, and lives again.
        desk.tell(Vec::new(), &live[..1]);
        desk.tell(Vec::new(), &live);
        assert!(desk.has(&other));
        desk.leave(std::slice::from_ref(&other));
        assert!(!desk.has(&other) && links.is_cancelled());
        desk.tell(vec![named("other")], &live);
        assert!(desk.has(&other) && !stop_of(&desk, &other).is_cancelled());
        desk.leave(std::slice::from_ref(&one));
        assert!(of_first.is_cancelled() && !stop.is_cancelled());
        stop.cancel();
        assert!(stop_of(&desk, &other).is_cancelled());
    }
}
