//! The bounds and timeouts of a producer.

use crate::core::backoff::BackoffConfig;
use airmail_model::Limits;
use std::time::Duration;

/// Bounds and patience of a [`super::Producer`].
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// Limits of the node, as its Hello gives them.
    pub limits: Limits,
    /// Number of batches of one log that may wait for their ack, at least 1; the node's limit holds as
    /// well, since it might not recognise a retry of more. Default: that limit alone.
    pub in_flight: usize,
    /// Number of bytes of these batches; one batch may always be sent. Default 4 MiB.
    pub in_flight_bytes: usize,
    /// Number of messages in one batch, at least 1; the node's limit holds as well. Default: that
    /// limit alone.
    pub batch_messages: u16,
    /// Number of bytes of messages held, sent or not, until they are settled; of lane high an eighth more. Default 64 MiB.
    pub memory_bytes: usize,
    /// Time that a message may take to be acknowledged, attempts and waits together. Default 30 s.
    pub delivery_timeout: Duration,
    /// True if another producer may go on under the same id, in a higher epoch. A storage that recognises retries only when
    /// it is read then answers later. Default: no, for ids are drawn at random.
    pub is_id_shared: bool,
    /// Delays after refusals that are waited for.
    pub backoff: BackoffConfig,
    /// Seed of the delays' jitter.
    pub seed: u64,
    /// Bug to plant.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            limits: Limits::DEFAULT,
            in_flight: usize::MAX,
            in_flight_bytes: 4 << 20,
            batch_messages: u16::MAX,
            memory_bytes: 64 << 20,
            delivery_timeout: Duration::from_secs(30),
            is_id_shared: false,
            backoff: BackoffConfig::default(),
            seed: 0,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

impl ProducerConfig {
    /// Lowers the node's limit for the messages of a batch to the configured one.
    pub(super) fn bound_batches(&mut self) {
        let messages = self.limits.batch_records.min(self.batch_messages);
        self.limits.batch_records = messages.max(1);
    }

    pub(super) fn window(&self) -> InFlightWindow {
        let known = usize::try_from(self.limits.batches_in_flight).unwrap_or(usize::MAX);
        InFlightWindow {
            batches: self.in_flight.min(known).max(1),
            bytes: self.in_flight_bytes,
        }
    }
}

/// Limits of what may be in flight of one log; one batch always may.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlightWindow {
    pub(super) batches: usize,
    pub(super) bytes: usize,
}
