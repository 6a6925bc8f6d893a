//! An offer: everything that others may use of a node.

use crate::link_v1;
use crate::link_v1::capabilities::Dedup as WireDedup;
use crate::malformed::Malformed;
use crate::values::{
    durability_from_wire, durability_to_wire, log_of, log_to_wire, narrow, need, storage_from_wire,
};
use airmail_log::{AppendClock, Capabilities, Dedup, Numbering, StorageTraits};
use airmail_model::{LogId, StorageName};
use std::time::Duration;

/// Everything that others may use of a node: see [`LogHomes`](airmail_link::LogHomes) for what follows from shards and homes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its shards, at least 1.
    pub shards: u16,
    /// Logs that it has found at a shard.
    pub homes: Vec<(LogId, u16)>,
    /// Capabilities of its storage.
    pub capabilities: Capabilities,
    /// Its further storages.
    pub storages: Vec<OfferedStorage>,
    /// The UDP port at which it takes datagrams of membership. `None`: it takes none.
    pub membership: Option<u16>,
}

/// A further storage of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedStorage {
    /// Its name.
    pub name: StorageName,
    /// Traits by which a shard uses it.
    pub traits: StorageTraits,
}

impl Offer {
    pub(super) fn to_wire(&self, version: u32) -> link_v1::Welcome {
        let homes = self.homes.iter().map(|(log, shard)| link_v1::Home {
            log: Some(log_to_wire(*log)),
            shard: (*shard).into(),
        });
        let storages = self.storages.iter().map(|storage| link_v1::Storage {
            name: storage.name.as_str().to_owned(),
            strongest: Some(durability_to_wire(storage.traits.strongest)),
            topic_index: storage.traits.topic_index,
            seal: storage.traits.seal,
        });
        link_v1::Welcome {
            version,
            shards: self.shards.into(),
            homes: homes.collect(),
            capabilities: Some(capabilities_to_wire(&self.capabilities)),
            storages: storages.collect(),
            membership_port: self.membership.unwrap_or(0).into(),
        }
    }

    pub(super) fn from_wire(welcome: link_v1::Welcome) -> Result<Offer, Malformed> {
        let shards = narrow(welcome.shards, "welcome.shards")?;
        if shards == 0 {
            return Err(Malformed::value("welcome.shards", shards));
        }
        let home = |home: link_v1::Home| match narrow(home.shard, "home.shard")? {
            shard if shard < shards => Ok((log_of(home.log)?, shard)),
            shard => Err(Malformed::value("home.shard", shard)),
        };
        let storage = |storage: link_v1::Storage| {
            Ok(OfferedStorage {
                name: storage_from_wire(&storage.name)?,
                traits: StorageTraits {
                    strongest: durability_from_wire(storage.strongest)?,
                    topic_index: storage.topic_index,
                    seal: storage.seal,
                },
            })
        };
        Ok(Offer {
            shards,
            homes: welcome
                .homes
                .into_iter()
                .map(home)
                .collect::<Result<_, Malformed>>()?,
            capabilities: capabilities_from_wire(welcome.capabilities)?,
            storages: welcome
                .storages
                .into_iter()
                .map(storage)
                .collect::<Result<_, Malformed>>()?,
            membership: match narrow(welcome.membership_port, "welcome.membership_port")? {
                0 => None,
                port => Some(port),
            },
        })
    }
}

fn capabilities_to_wire(capabilities: &Capabilities) -> link_v1::Capabilities {
    let dedup = match capabilities.dedup {
        Dedup::AtAppend => WireDedup::AtAppend,
        Dedup::AtApply => WireDedup::AtApply,
        Dedup::AtRead => WireDedup::AtRead,
    };
    let clock_within_us = match capabilities.clock {
        AppendClock::Monotone => None,
        AppendClock::Within(within) => Some(u64::try_from(within.as_micros()).unwrap_or(u64::MAX)),
    };
    link_v1::Capabilities {
        dedup: dedup.into(),
        sparse: capabilities.numbering == Numbering::Sparse,
        clock_within_us,
        strongest: Some(durability_to_wire(capabilities.strongest)),
        topic_index: capabilities.topic_index,
        past_end: capabilities.past_end,
        seal: capabilities.seal,
        heal: capabilities.heal,
        many_writers: capabilities.many_writers,
        provisions: capabilities.provisions,
    }
}

fn capabilities_from_wire(
    capabilities: Option<link_v1::Capabilities>,
) -> Result<Capabilities, Malformed> {
    let capabilities = need(capabilities, "welcome.capabilities")?;
    let dedup = match capabilities.dedup() {
        WireDedup::AtAppend => Dedup::AtAppend,
        WireDedup::AtApply => Dedup::AtApply,
        WireDedup::AtRead => Dedup::AtRead,
        WireDedup::Unspecified => {
            return Err(Malformed::value("capabilities.dedup", capabilities.dedup));
        }
    };
    let within = capabilities.clock_within_us.map(Duration::from_micros);
    Ok(Capabilities {
        dedup,
        numbering: if capabilities.sparse {
            Numbering::Sparse
        } else {
            Numbering::Dense
        },
        clock: within.map_or(AppendClock::Monotone, AppendClock::Within),
        strongest: durability_from_wire(capabilities.strongest)?,
        topic_index: capabilities.topic_index,
        past_end: capabilities.past_end,
        seal: capabilities.seal,
        heal: capabilities.heal,
        many_writers: capabilities.many_writers,
        provisions: capabilities.provisions,
        // A matter of whoever uses the storage from afar.
        appends_apart: false,
    })
}
