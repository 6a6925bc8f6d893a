//! A batch under another producer's stamp, for a node that publishes in its own name what came without one.

use super::Checked;
use super::checksum::crc32c;
use super::layout::{
    AT_BODIES_OFFSET, AT_HEADER_CRC, AT_PRODUCER_EPOCH, AT_PRODUCER_ID, AT_PRODUCER_SEQUENCE,
    AT_VERSION, u32_at,
};
use super::view::{Batch, ProducerStamp};

impl Batch {
    /// The same records under this stamp. Copies the batch.
    #[must_use]
    pub fn stamped(&self, stamp: ProducerStamp) -> Checked<Batch> {
        let mut bytes = self.bytes.to_vec();
        put(&mut bytes, AT_PRODUCER_ID, stamp.id.0.to_le_bytes());
        put(&mut bytes, AT_PRODUCER_EPOCH, stamp.epoch.0.to_le_bytes());
        let sequence = stamp.sequence.0.to_le_bytes();
        put(&mut bytes, AT_PRODUCER_SEQUENCE, sequence);
        let head = u32_at(&bytes, AT_BODIES_OFFSET) as usize;
        let crc = crc32c(&bytes[AT_VERSION..head]);
        put(&mut bytes, AT_HEADER_CRC, crc.to_le_bytes());
        Checked(Batch {
            bytes: bytes.into(),
            marks: self.marks,
        })
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BatchTarget;
    use crate::{
        BatchEncoder, Limits, LogId, MapEpoch, Message, NamespaceId, ProducerEpoch, ProducerId,
        ProducerSequence, TopicName,
    };

    fn batch(producer: Option<ProducerStamp>) -> Checked<Batch> {
        let mut encoder = BatchEncoder::new(NamespaceId(0));
        for n in 0..5 {
            let name = TopicName::new(&format!("t{}", n % 2), &Limits::DEFAULT).unwrap();
            let message = Message::new(name, format!("m{n}"));
            encoder.push(&message, 7, &Limits::DEFAULT).unwrap();
        }
        encoder.finish(&BatchTarget {
            log: LogId::SYSTEM,
            epoch: MapEpoch(1),
            producer,
            producer_time: 7,
        })
    }

    #[test]
    fn a_stamped_batch_is_the_one_that_its_producer_would_have_made() {
        let stamp = ProducerStamp {
            id: ProducerId(0x0102_0304_0506_0708),
            epoch: ProducerEpoch(9),
            sequence: ProducerSequence(1 << 40),
        };
        let stamped = batch(None).stamped(stamp);
        assert_eq!(stamped, batch(Some(stamp)));
        let (read, _) = Batch::check_stored(stamped.bytes().clone()).expect("sound");
        assert_eq!(read.producer(), Some(stamp));
    }
}
