//! The conformance suite on the model of brokers: calm, slow, and with leaders that change.

use crate::config::KafkaConfig;
use crate::model::{Faults, ModelBrokers, ModelCluster};
use crate::storage::KafkaStorage;
use airmail_log::LogStorage;
use airmail_log::conformance::{End, Subject};
use airmail_model::Now;
use std::time::Duration;

/// The storage on a model of brokers, which outlive it.
struct OnModel {
    config: KafkaConfig,
    faults: Faults,
    cluster: ModelCluster,
    busy: Option<ModelCluster>,
    opened: u64,
}

impl OnModel {
    fn new(config: KafkaConfig, faults: Faults) -> OnModel {
        OnModel {
            config,
            faults,
            cluster: ModelCluster::new(0, faults),
            busy: None,
            opened: 0,
        }
    }

    fn open(&mut self) -> KafkaStorage<ModelBrokers> {
        self.opened += 1;
        let config = KafkaConfig {
            seed: self.opened,
            ..self.config.clone()
        };
        self.busy = Some(self.cluster.clone());
        KafkaStorage::new(config, self.cluster.client())
    }
}

impl Subject for OnModel {
    type Storage = KafkaStorage<ModelBrokers>;

    fn fresh(&mut self, _: Now) -> Self::Storage {
        self.opened += 1;
        self.cluster = ModelCluster::new(self.opened, self.faults);
        self.open()
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, mut now: Now) -> Self::Storage {
        if end == End::Clean {
            storage.close(now);
            while !storage.is_closed() {
                now.mono.0 += 1_000;
                storage.poll(now, &mut Vec::new());
            }
        }
        drop(storage);
        self.open()
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.busy.as_ref().is_some_and(|cluster| !cluster.is_idle())
    }

    fn wait(&mut self) {}
}

fn small() -> KafkaConfig {
    KafkaConfig {
        recent_bytes: 300,
        catch_up_readers: 2,
        ..KafkaConfig::default()
    }
}

fn slow(to_us: u64) -> Faults {
    Faults {
        delay_min: Duration::ZERO,
        delay_max: Duration::from_micros(to_us),
        ..Faults::NONE
    }
}

mod calm {
    use super::*;

    airmail_log::conformance!(OnModel::new(KafkaConfig::default(), Faults::NONE));
}

mod small_and_slow {
    use super::*;

    airmail_log::conformance!(OnModel::new(small(), slow(20)));
}

mod with_leaders_that_change {
    use super::*;

    fn faults() -> Faults {
        Faults {
            leader_moves: 100,
            skew_ms: 2_500,
            ..slow(20)
        }
    }

    airmail_log::conformance!(OnModel::new(small(), faults()));
}
