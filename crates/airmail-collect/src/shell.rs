//! The collector's shell: threads and clients around the core.
//!
//! One thread runs it all ([`run`]): it takes a record, steps the core, and carries out the
//! effects. The clients of librdkafka have threads of their own, which fetch ahead and send in
//! batches; a further thread asks the main cluster every second for its leaders. Membership in the
//! group is always Kafka's: of the small cluster itself, or, for topics of Airmail, of a topic made
//! for it in the main cluster, whose partition *i* stands for topic *i* and keeps its position as
//! the committed offset's metadata. Either way a commit by an instance that is no member any more
//! is refused, so an instance that was thought dead takes nothing back.
//!
//! After a failure that is not a record's own, work begins anew from the committed places, with
//! fresh clients: recovery is the same as after a takeover.

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
