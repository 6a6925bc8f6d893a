//! Records of a log, read from the storage that has it.

use airmail_log::memory::MemoryStorage;
use airmail_log::{Call, Completion, LogStorage, ReaderId, Scope};
use airmail_model::{Batch, Checked, LogId, Now, Sequence};
use std::collections::BTreeMap;

/// Payloads of a batch, by number.
pub(crate) fn records(
    base: Sequence,
    batch: &Checked<Batch>,
) -> impl Iterator<Item = (Sequence, String)> {
    let records = batch.iter().map(move |record| {
        let text = String::from_utf8(record.payload.to_vec()).unwrap();
        (base.plus(record.index.into()), text)
    });
    records.collect::<Vec<_>>().into_iter()
}

/// Everything that a storage has of a log.
pub(crate) fn contents(
    storage: &mut MemoryStorage,
    log: LogId,
    now: Now,
) -> BTreeMap<Sequence, String> {
    let own = ReaderId(u64::MAX - u64::from(log.index.0));
    storage.submit(Call::Read {
        r: own,
        log,
        from: Sequence::FIRST,
        scope: Box::new(Scope::default()),
        credit: u32::MAX,
    });
    let mut contents = BTreeMap::new();
    let mut out = Vec::new();
    loop {
        storage.poll(now, &mut out);
        for completion in out.drain(..) {
            match completion {
                Completion::Batch { r, stored } if r == own => {
                    contents.extend(records(stored.base, &stored.batch));
                }
                Completion::Tail { r, .. } if r == own => return contents,
                _ => {}
            }
        }
    }
}
