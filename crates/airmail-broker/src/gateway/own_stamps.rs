//! Stamps of the gateway's own: a publish without a producer gets one where a storage that many write to recognises
//! retries only by their stamps, when they are read. So a copy that a broken link has left behind is left out.
//!
//! The producer is drawn at each start of the gateway, so no start need count the ones before it; each log has its
//! own epoch and sequence. A refused batch ends the epoch, as no client would send it again under the same number: what
//! comes later is stamped anew. If it is not known what became of it, then neither is it of what was sent behind it, for
//! the later epoch has whatever comes late of the earlier one left out.

use super::log::GatewayLog;
use super::publish_order::StampedBy;
use super::{Gateway, GatewayLogs};
use crate::keys::LogKey;
use airmail_log::{Capabilities, Dedup, Refusal};
use airmail_model::batch::ProducerStamp;
use airmail_model::{Batch, Checked, ProducerEpoch, ProducerId, ProducerSequence};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Tells the seed of the gateway's producer from that of its other choices.
const OWN: u64 = 0x6f77_6e73_7461_6d70;

/// Place of the next batch of the gateway's own in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnPlace {
    pub(crate) epoch: ProducerEpoch,
    next: ProducerSequence,
}

/// The gateway's own producer, if it is to have one.
pub(super) fn producer(capabilities: &Capabilities, seed: u64) -> Option<ProducerId> {
    let needs = capabilities.dedup == Dedup::AtRead && capabilities.many_writers;
    needs.then(|| {
        let drawn: u64 = SmallRng::seed_from_u64(seed ^ OWN).random();
        ProducerId(drawn.max(1))
    })
}

impl GatewayLogs {
    /// Stamps a batch that has no producer, if it needs one; gives by whom it is stamped.
    pub(super) fn stamp(
        &mut self,
        key: LogKey,
        batch: Checked<Batch>,
    ) -> (Checked<Batch>, StampedBy) {
        let Some(id) = self.own_producer.filter(|_| batch.producer().is_none()) else {
            // Input: a batch that has a producer, or a storage that needs none.
            return (batch, StampedBy::Client);
        };
        let place = &mut self[key].own;
        let OwnPlace { epoch, next } = *place;
        place.next = ProducerSequence(next.0 + u64::from(batch.numbers()));
        let stamp = ProducerStamp {
            id,
            epoch,
            sequence: next,
        };
        (batch.stamped(stamp), StampedBy::Gateway(epoch))
    }
}

impl GatewayLog {
    /// A batch of the gateway's own was refused, or its outcome is not known: ends its epoch, if no other has.
    pub(super) fn end_epoch(&mut self, of: ProducerEpoch, number: u64, why: &Refusal) {
        if self.own.epoch == of {
            self.own = OwnPlace {
                epoch: ProducerEpoch(of.0 + 1),
                next: ProducerSequence(0),
            };
        }
        if *why == Refusal::OutcomeUnknown {
            self.publishes.doubt(number, of);
        }
    }
}

impl Gateway {
    /// The refusal of a batch of the gateway's own for its client, who knows of no producer. One that was refused for
    /// what was before it is not stored, and may come again.
    pub(super) fn without_producer(&self, why: Refusal) -> Refusal {
        match why {
            Refusal::OutOfOrder { .. } | Refusal::UnknownProducer | Refusal::Fenced => {
                let retry_after = self.config.retry_delay;
                Refusal::Busy { retry_after }
            }
            why => why,
        }
    }
}
