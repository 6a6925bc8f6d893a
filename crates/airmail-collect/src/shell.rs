//! The collector's shell: threads and clients around what decides.
//!
//! One thread runs it all ([`run`]): it takes a record, steps the core, and does what comes out. The clients
//! of librdkafka have threads of their own, which fetch ahead and send in batches; a further thread asks the
//! main cluster every second who leads what. Membership in the group is always Kafka's: of the small cluster
//! itself, or, for topics of Airmail, of a topic made for it in the main cluster, whose partition *i* stands
//! for topic *i* and keeps its position as the committed offset's metadata. Either way a commit by an
//! instance that is no member any more is refused, so whoever was thought dead takes nothing back.
//!
//! What fails for other reasons than a record's own is begun anew from what was committed, with fresh
//! clients: there is no second way to recover beside the one that a takeover takes.

mod acks;
mod clients;
mod error;
mod feed;
mod group;
mod layout;
mod metrics;
mod parting;
mod properties;
mod run;
mod settings;
mod work;

pub use error::CollectError;
pub use metrics::{Metrics, Second};
pub use run::run;
pub use settings::{Begin, Origin, Route, Settings};
